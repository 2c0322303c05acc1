#include "waymark/isa/x86.h"

#include <algorithm>
#include <cstdint>

namespace waymark::isa {

namespace {

/// The operands of an opcode: a ModRM byte with the bytes that it announces, and constants.
struct Operands {
    bool modrm = false, invalid = false;
    unsigned bytes = 0;  // of constants
};

constexpr bool is_in(unsigned value, unsigned first, unsigned last) { return value >= first && value <= last; }

/// Reads one instruction from its first byte to its last.
class X86Reader {
public:
    X86Reader(Address address, Bytes bytes)
        : address_(address), bytes_(bytes.first(std::min(bytes.size(), longest_x86_instr))) {}

    std::optional<Instruction> read() {
        prefixes();
        const unsigned first = next();
        if (first == 0x0f)
            escaped();
        else if (first == 0xc5 || first == 0xc4)
            vector_extended(first == 0xc5 ? 1 : 2);
        else if (first == 0x62)
            vector_extended(3);
        else if (first == 0x8f && (peek() & 0x1fU) >= 8)
            xop();
        else
            one_byte(first);
        if (bad_ || at_ > bytes_.size()) return std::nullopt;
        out_.bytes = static_cast<std::uint8_t>(at_);
        out_.target_isa = Isa::x86_64;
        if (out_.waypoint == Waypoint::direct) out_.target = {address_.value + at_ + displacement_};
        return out_;
    }

private:
    [[nodiscard]] unsigned peek() const { return at_ < bytes_.size() ? bytes_[at_] : 0U; }
    unsigned next() {
        const unsigned value = peek();
        ++at_;
        return value;
    }
    void prefixes() {
        for (;; ++at_) {
            const unsigned b = peek();
            if (b == 0x66)
                short_operands_ = true;
            else if (b == 0x67)
                short_addresses_ = true;
            else if (b == 0xf2)
                repeat_not_equal_ = true;
            else if (b != 0xf0 && b != 0xf3 && b != 0x26 && b != 0x2e && b != 0x36 && b != 0x3e && b != 0x64 &&
                     b != 0x65)
                break;
            if (at_ >= bytes_.size()) return;
        }
        if (is_in(peek(), 0x40, 0x4f)) wide_ = (next() & 8U) != 0;
    }
    /// A constant of the operand's size, but of at most four bytes.
    [[nodiscard]] unsigned constant() const { return short_operands_ && !wide_ ? 2 : 4; }

    /// Reads the ModRM byte, SIB byte and displacement. Returns the field `reg`.
    unsigned modrm() {
        const unsigned b = next(), mode = b >> 6, rm = b & 7U;
        unsigned displacement = mode == 1 ? 1 : mode == 2 ? 4 : 0;
        if (mode != 3 && rm == 4) {
            if (const unsigned sib = next(); mode == 0 && (sib & 7U) == 5) displacement = 4;
        } else if (mode == 0 && rm == 5) {
            displacement = 4;
        }
        at_ += displacement;
        return b >> 3 & 7U;
    }
    void take(const Operands& what) {
        bad_ |= what.invalid;
        if (what.modrm) modrm();
        at_ += what.bytes;
    }
    /// A signed distance from the end of the instruction.
    void branch(unsigned size, bool conditional, bool link) {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < size; ++i) value |= std::uint64_t{next()} << (8 * i);
        const std::uint64_t sign = std::uint64_t{1} << (8 * size - 1);
        displacement_ = (value ^ sign) - sign;
        out_.waypoint = Waypoint::direct;
        out_.conditional = conditional;
        out_.link = link;
    }
    void returns(bool from_kernel) {
        out_.waypoint = Waypoint::indirect;
        (from_kernel ? out_.exception_return : out_.function_return) = true;
    }

    void one_byte(unsigned op) {
        if (op < 0x40) {
            const unsigned low = op & 7U;
            return take({low<4, low> 5, low == 4 ? 1 : low == 5 ? constant() : 0});
        }
        if (is_in(op, 0x50, 0x5f) || is_in(op, 0x6c, 0x6f)) return;
        if (is_in(op, 0x70, 0x7f) || is_in(op, 0xe0, 0xe3)) return branch(1, true, false);
        if (is_in(op, 0xb0, 0xb7)) return take({false, false, 1});
        if (is_in(op, 0xb8, 0xbf)) return take({false, false, wide_ ? 8 : constant()});
        if (is_in(op, 0xa0, 0xa3)) return take({false, false, short_addresses_ ? 4U : 8U});
        if (is_in(op, 0xd8, 0xdf) || is_in(op, 0xd0, 0xd3) || is_in(op, 0x84, 0x8f)) return take({true, false, 0});
        switch (op) {
            case 0x63:
            case 0xfe: return take({true, false, 0});
            case 0x68:
            case 0xa9: return take({false, false, constant()});
            case 0x69:
            case 0x81:
            case 0xc7: return take({true, false, constant()});
            case 0x6a:
            case 0xa8:
            case 0xcd:
            case 0xe4:
            case 0xe5:
            case 0xe6:
            case 0xe7: return take({false, false, 1});
            case 0x6b:
            case 0x80:
            case 0x83:
            case 0xc0:
            case 0xc1:
            case 0xc6: return take({true, false, 1});
            case 0xc2:
            case 0xca: at_ += 2; return returns(false);
            case 0xc3:
            case 0xcb: return returns(false);
            case 0xc8: return take({false, false, 3});
            case 0xcf: return returns(true);
            case 0xe8: return branch(4, false, true);
            case 0xe9: return branch(4, false, false);
            case 0xeb: return branch(1, false, false);
            case 0xf6: return take({false, false, modrm() < 2 ? 1U : 0U});
            case 0xf7: return take({false, false, modrm() < 2 ? constant() : 0U});
            case 0xff: {
                const unsigned what = modrm();
                if (what >= 2 && what <= 5) {
                    out_.waypoint = Waypoint::indirect;
                    out_.link = what < 4;
                }
                bad_ |= what == 7;
                return;
            }
            case 0x60:
            case 0x61:
            case 0x82:
            case 0x9a:
            case 0xce:
            case 0xd4:
            case 0xd5:
            case 0xd6:
            case 0xea: bad_ = true; return;
            default: return;
        }
    }
    void escaped() {
        const unsigned op = next();
        if (op == 0x38) return opcode_of_map(2, next(), false);
        if (op == 0x3a) return opcode_of_map(3, next(), false);
        opcode_of_map(1, op, false);
    }
    /// `vector`: the opcode has a VEX or EVEX prefix.
    void opcode_of_map(unsigned map, unsigned op, bool vector) {
        if (map == 3) return take({true, false, 1});
        if (map != 1) return take({true, map == 0 || map == 4 || map > 6, 0});
        const bool constant_byte = is_in(op, 0x70, 0x73) || op == 0xc2 || is_in(op, 0xc4, 0xc6);
        if (vector) return take({op != 0x77, false, constant_byte ? 1U : 0U});
        if (is_in(op, 0x80, 0x8f)) return branch(4, true, false);
        if (op == 0x07 || op == 0x35) return returns(true);
        if (op == 0x0b) out_.undefined = true;
        if (is_in(op, 0x20, 0x23)) return take({false, false, 1});  // always registers, in every addressing mode
        const bool alone = is_in(op, 0x05, 0x0b) || op == 0x0e || is_in(op, 0x30, 0x37) || op == 0x77 ||
                           is_in(op, 0xa0, 0xa2) || is_in(op, 0xa8, 0xaa) || is_in(op, 0xc8, 0xcf);
        const bool none = op == 0x04 || op == 0x0a || op == 0x0c || op == 0x36 || is_in(op, 0x24, 0x27) ||
                          is_in(op, 0x3b, 0x3f) || op == 0x39;
        if (op == 0x78 && (short_operands_ || repeat_not_equal_)) return take({true, none, 2});
        const bool byte = constant_byte || op == 0x0f || op == 0xa4 || op == 0xac || op == 0xba;
        take({!alone, none, byte ? 1U : 0U});
    }
    /// VEX of two or three bytes, EVEX of four: `more` bytes follow the first.
    void vector_extended(unsigned more) {
        unsigned map = 1;
        if (more != 1) map = peek() & (more == 2 ? 0x1fU : 7U);
        at_ += more;
        opcode_of_map(map, next(), true);
    }
    void xop() {
        const unsigned map = peek() & 0x1fU;
        at_ += 3;
        take({true, map > 10, map == 8 ? 1U : map == 10 ? 4U : 0U});
    }

    const Address address_;
    const Bytes bytes_;
    std::size_t at_ = 0;
    bool short_operands_ = false, short_addresses_ = false, repeat_not_equal_ = false, wide_ = false, bad_ = false;
    std::uint64_t displacement_ = 0;
    Instruction out_;
};

}  // namespace

std::optional<Instruction> decode_x86_instr(Address address, Bytes bytes) { return X86Reader(address, bytes).read(); }

}  // namespace waymark::isa
