/// Random programs for tests: A64, A32 and T32 code with every kind of P0 instruction, whose branches stay inside.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/synthetic.h"
#include "waymark/core/wire.h"
#include "waymark/etm4/config.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/place.h"

namespace waymark::etm4::test {

class Program {
public:
    struct Contents {
        bool aarch32 = true;              ///< AArch32 code is part of the program
        bool newest_instructions = true;  ///< compare and branch (FEAT_CMPBR)
        bool exception_returns = true;    ///< ERET is part of the program
    };
    /// The code up to and including the next P0 instruction.
    struct Piece {
        std::vector<std::uint64_t> starts;  ///< of instructions
        std::uint64_t end{};
        isa::Instruction last;
    };

    Program(const Config& config, std::uint64_t seed, const Contents& contents)
        : random_(seed), decode_options_{.wait_waypoints = config.wfx_p0}, options_(contents) {
        build_program();
    }

    synthetic::Memory memory;

    /// A random instruction of A64 code, or of A32 or T32 code.
    [[nodiscard]] std::pair<std::uint64_t, isa::Isa> somewhere(bool a64) {
        std::vector<const Code*> fit;
        for (const Code& code : codes_)
            if ((code.isa == isa::Isa::a64) == a64) fit.push_back(&code);
        const Code& code = *fit[below(fit.size())];
        const std::uint64_t size = code.isa == isa::Isa::t32 ? 2 : 4;
        return {code.first + below((code.end - code.first) / size) * size, code.isa};
    }
    /// The code from `place` on.
    [[nodiscard]] Piece ahead(const isa::Place& place) const {
        Piece piece;
        std::uint64_t at = place.address.value;
        for (;;) {
            const isa::Fetched fetched = isa::fetch(memory, {}, {at}, place.isa);
            piece.starts.push_back(at);
            piece.last = isa::decode_instr({at}, place.isa, fetched.opcode, fetched.bytes == 4, decode_options_);
            at += piece.last.bytes;
            if (piece.last.waypoint != isa::Waypoint::none) break;
        }
        piece.end = at;
        return piece;
    }

protected:
    [[nodiscard]] bool one_in(unsigned n) { return random_() % n == 0; }
    [[nodiscard]] std::uint64_t below(std::uint64_t n) { return random_() % n; }
    wire::Random random_;

private:
    struct Code {
        std::uint64_t first, end;
        isa::Isa isa;
    };

    void build_program() {
        add_code(0x40'0000, 600, isa::Isa::a64);
        add_code(0xffff'8000'0008'0000, 300, isa::Isa::a64);
        if (options_.aarch32) {
            add_code(0x2'0000, 200, isa::Isa::a32);
            add_code(0x1'0000, 200, isa::Isa::t32);
        }
        std::sort(memory.sections.begin(), memory.sections.end(),
                  [](const auto& a, const auto& b) { return a.address < b.address; });
    }
    void add_code(std::uint64_t first, unsigned words, isa::Isa isa) {
        synthetic::Memory::Section section{first, {}};
        const auto put = [&](std::uint32_t value, unsigned size) {
            for (unsigned n = 0; n < size; ++n) section.bytes.push_back(static_cast<std::uint8_t>(value >> 8 * n));
        };
        for (unsigned i = 0; i < words; ++i) {
            // Instructions backwards and forwards, so that branches stay inside.
            const auto target = static_cast<std::int64_t>(below(words));
            std::int64_t to = std::clamp<std::int64_t>(target - i, -60, 60);
            if (i + 1 == words) to = -static_cast<std::int64_t>(1 + below(60));
            const auto imm = [&](std::int64_t value, unsigned width) {
                return static_cast<std::uint32_t>(value) & ((1U << width) - 1);
            };
            const std::uint64_t kind = i + 1 == words ? 100 : below(24);
            if (isa == isa::Isa::a64) {
                switch (kind) {
                    case 0: put(0x54000000 | imm(to, 19) << 5 | static_cast<std::uint32_t>(below(14)), 4); break;
                    case 1: put(0x34000000 | imm(to, 19) << 5, 4); break;
                    case 2: put(0x36000000 | imm(to, 14) << 5, 4); break;
                    case 3:
                        put(options_.newest_instructions ? 0x74000000 | imm(to, 9) << 5 : 0x35000000 | imm(to, 19) << 5,
                            4);
                        break;  // CBGT, CBNZ
                    case 4:
                    case 100: put(0x14000000 | imm(to, 26), 4); break;
                    case 5: put(0x94000000 | imm(to, 26), 4); break;
                    case 6: put(0xd61f0000, 4); break;  // BR
                    case 7: put(0xd63f0000, 4); break;  // BLR
                    case 8: put(0xd65f03c0, 4); break;  // RET
                    case 9:
                        put(one_in(3) && options_.exception_returns ? 0xd69f03e0 : 0xd65f0bff, 4);
                        break;                           // ERET, RETAA
                    case 10: put(0xd5033fdf, 4); break;  // ISB
                    case 11: put(0xd503207f, 4); break;  // WFI
                    default: put(0x91000400, 4); break;  // ADD
                }
            } else if (isa == isa::Isa::a32) {
                switch (kind) {
                    case 0: put(0x0a000000 | imm(to - 2, 24), 4); break;  // BEQ
                    case 4:
                    case 100: put(0xea000000 | imm(to - 2, 24), 4); break;
                    case 5: put(0xeb000000 | imm(to - 2, 24), 4); break;
                    case 6: put(0xe12fff11, 4); break;   // BX
                    case 7: put(0xe12fff31, 4); break;   // BLX
                    case 8: put(0xe12fff1e, 4); break;   // BX LR
                    case 10: put(0xf57ff06f, 4); break;  // ISB
                    default: put(0xe2811001, 4); break;  // ADD
                }
            } else {
                switch (kind) {
                    case 0: put(0xd000 | imm(to - 2, 8), 2); break;  // BEQ
                    case 4:
                    case 100: put(0xe000 | imm(to - 2, 11), 2); break;
                    case 6: put(0x4708, 2); break;   // BX
                    case 7: put(0x4788, 2); break;   // BLX
                    case 8: put(0xbd00, 2); break;   // POP {pc}
                    default: put(0x3101, 2); break;  // ADDS
                }
            }
        }
        codes_.push_back({first, first + section.bytes.size(), isa});
        // OpenCSD reads four bytes of a T32 instruction, also where it has two.
        if (isa == isa::Isa::t32) put(0, 2);
        memory.sections.push_back(std::move(section));
    }

    const isa::DecodeOptions decode_options_;
    const Contents options_;
    std::vector<Code> codes_;
};

}  // namespace waymark::etm4::test
