#include "waymark/record/code.h"

#include <capstone/capstone.h>

#include <array>
#include <memory>

#include "waymark/record/checks.h"

namespace waymark::record {

namespace {

std::uint32_t halfword(const std::vector<std::uint8_t>& bytes, std::size_t at) {
    return at + 1 < bytes.size() ? static_cast<std::uint32_t>(bytes[at] | bytes[at + 1] << 8) : 0;
}

/// Produces the texts that QEMU's disassembler writes.
class Disassembler {
public:
    explicit Disassembler(cs_mode mode) { open_ = cs_open(CS_ARCH_ARM, mode, &handle_) == CS_ERR_OK; }
    ~Disassembler() {
        if (open_) cs_close(&handle_);
    }
    Disassembler(const Disassembler&) = delete;
    Disassembler& operator=(const Disassembler&) = delete;

    [[nodiscard]] std::string text(const std::vector<std::uint8_t>& bytes, Address address) const {
        if (!open_) return {};
        cs_insn* found = nullptr;
        const std::size_t count = cs_disasm(handle_, bytes.data(), bytes.size(), address.value, 1, &found);
        if (count == 0) return {};
        std::string out = std::string(found->mnemonic) + " " + found->op_str;
        cs_free(found, count);
        return out;
    }

private:
    csh handle_{};
    bool open_ = false;
};

bool same_words(std::string_view a, std::string_view b) {
    const auto trim = [](std::string_view text) {
        const std::size_t end = text.find_last_not_of(' ');
        return end == text.npos ? std::string_view{} : text.substr(0, end + 1);
    };
    return trim(a) == trim(b);
}

}  // namespace

std::optional<std::uint32_t> Code::index_of(Address at) const {
    if (at < address || at >= end()) return std::nullopt;
    for (std::uint32_t i = 0; i < instructions.size(); ++i)
        if (address + instructions[i].offset == at) return i;
    return std::nullopt;
}

std::optional<isa::Isa> instruction_set(const Definition& definition) {
    if ((definition.address.value & 3) != 0) return isa::Isa::t32;
    if (definition.second && *definition.second - definition.address == 2) return isa::Isa::t32;
    if (definition.bytes.size() < 4) return isa::Isa::t32;
    static const Disassembler arm(CS_MODE_ARM), thumb(CS_MODE_THUMB);
    const bool as_arm = same_words(definition.text, arm.text(definition.bytes, definition.address));
    const bool as_thumb = same_words(definition.text, thumb.text(definition.bytes, definition.address));
    if (definition.text.empty() || as_arm == as_thumb) return std::nullopt;
    return as_arm ? isa::Isa::a32 : isa::Isa::t32;
}

namespace {

Code understand_a64(const Definition& definition, const isa::DecodeOptions& options, bool each) {
    Code code{definition.address, isa::Isa::a64, {}, {}, {}};
    for (std::uint32_t i = 0; i < definition.instructions && (i + 1) * 4 <= definition.bytes.size(); ++i) {
        const std::size_t at = std::size_t{i} * 4;
        const std::uint32_t word = halfword(definition.bytes, at) | halfword(definition.bytes, at + 2) << 16;
        const isa::Instruction instruction =
            isa::decode_instr(definition.address + at, isa::Isa::a64, word, true, options);
        constexpr std::uint32_t immediate = 0xffe0001f, svc = 0xd4000001, brk = 0xd4200000, wfi = 0xd503207f;
        code.instructions.push_back({static_cast<std::uint32_t>(at), 4, instruction.waypoint,
                                     (word & immediate) == svc   ? Special::system_call
                                     : instruction.undefined     ? Special::undefined
                                     : (word & immediate) == brk ? Special::breakpoint
                                     : word == wfi               ? Special::wait
                                                                 : Special::none,
                                     may_stop_a64(word)});
        if (each || instruction.waypoint != isa::Waypoint::none)
            code.waypoints.push_back({i, definition.address + at, instruction});
    }
    code.bytes.assign(definition.bytes.begin(),
                      definition.bytes.begin() + static_cast<std::ptrdiff_t>(code.instructions.size() * 4));
    return code;
}

}  // namespace

Code understand(const Definition& definition, isa::Isa isa, const isa::DecodeOptions& options, bool each) {
    if (isa == isa::Isa::a64) return understand_a64(definition, options, each);
    Code code{definition.address, isa, {}, {}, {}};
    std::size_t at = 0;
    for (std::uint32_t i = 0; i < definition.instructions && at + 1 < definition.bytes.size(); ++i) {
        const Address address = definition.address + at;
        const std::uint32_t first = halfword(definition.bytes, at), second = halfword(definition.bytes, at + 2);
        const bool thumb_32 = isa != isa::Isa::a32 && isa::is_thumb_32(first);
        const std::uint32_t opcode = isa == isa::Isa::a32 ? first | second << 16
                                     : thumb_32           ? first << 16 | second
                                                          : first;
        const isa::Instruction instruction = isa::decode_instr(address, isa, opcode, thumb_32, options);
        if (at + instruction.bytes > definition.bytes.size()) break;
        const bool svc = isa == isa::Isa::a32 ? (opcode & 0x0f000000) == 0x0f000000 && (opcode >> 28) != 0xf
                                              : !thumb_32 && (opcode & 0xff00) == 0xdf00;
        const bool bkpt =
            isa == isa::Isa::a32 ? (opcode & 0x0ff000f0) == 0x01200070 : !thumb_32 && (opcode & 0xff00) == 0xbe00;
        const bool wfi =
            isa == isa::Isa::a32 ? (opcode & 0x0fffffff) == 0x0320f003 : opcode == (thumb_32 ? 0xf3af8003 : 0xbf30);
        code.instructions.push_back(
            {static_cast<std::uint32_t>(at), instruction.bytes, instruction.waypoint,
             svc                     ? Special::system_call
             : instruction.undefined ? Special::undefined
             : bkpt                  ? Special::breakpoint
             : wfi                   ? Special::wait
                                     : Special::none,
             isa == isa::Isa::a32 ? may_stop_arm(opcode) : may_stop_thumb(first | second << 16)});
        if (each || instruction.waypoint != isa::Waypoint::none) code.waypoints.push_back({i, address, instruction});
        at += instruction.bytes;
    }
    code.bytes.assign(definition.bytes.begin(), definition.bytes.begin() + static_cast<std::ptrdiff_t>(at));
    return code;
}

}  // namespace waymark::record
