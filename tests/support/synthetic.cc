#include "support/synthetic.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "waymark/core/result.h"

namespace waymark::synthetic {

using flow::Block;
using flow::End;

isa::Code Memory::at(Address address, const isa::Space&) const {
    for (const auto& [first, second] : holes)
        if (first <= address.value && address.value < second) return {};
    auto found = std::upper_bound(sections.begin(), sections.end(), address.value,
                                  [](std::uint64_t a, const Section& s) { return a < s.address; });
    if (found == sections.begin()) return {};
    --found;
    const std::uint64_t inside = address.value - found->address;
    if (inside >= found->bytes.size()) return {};
    Bytes bytes = Bytes(found->bytes).subspan(inside);
    for (const auto& [first, second] : holes)
        if (first > address.value && first - address.value < bytes.size())
            bytes = bytes.first(static_cast<std::size_t>(first - address.value));
    return {bytes, static_cast<std::uint32_t>(found - sections.begin())};
}

std::uint32_t Memory::section_of(std::uint64_t address) const {
    const auto found = std::upper_bound(sections.begin(), sections.end(), address,
                                        [](std::uint64_t a, const Section& s) { return a < s.address; });
    return static_cast<std::uint32_t>(found - sections.begin()) - 1;
}

namespace {

constexpr std::uint32_t it_eq = 0xbf08;
constexpr std::uint8_t conditional = Block::conditional, link = Block::link, fn_return = Block::function_return,
                       exc_return = Block::exception_return;

/// How a direct branch is written once its distance is known.
enum class Form : std::uint8_t { fixed, a32, a32_blx, t16_cond, t16_b, t16_cbz, t32_cond, t32_b, t32_bl, t32_blx };

/// A way to end a block.
struct Ending {
    std::uint32_t opcode;  ///< A32, T32: 32 bits, first halfword high; T16
    std::uint8_t bytes;
    End end;
    Going going;
    std::uint8_t flags = 0;
    Form form = Form::fixed;
    std::uint32_t random_bits = 0;  ///< opcode bits that may be anything
    bool has_condition = true;      ///< A32: bits 31:28 are a condition
};

constexpr Ending a32_inside[] = {
    {0x0a000000, 4, End::direct, Going::direct, 0, Form::a32},
    {0x0a000000, 4, End::direct, Going::direct, 0, Form::a32},
    {0x0a000000, 4, End::direct, Going::direct, 0, Form::a32},
    {0x0b000000, 4, End::direct, Going::call, link, Form::a32},
    {0x0b000000, 4, End::direct, Going::call, link, Form::a32},
    {0xfa000000, 4, End::direct, Going::call, link, Form::a32_blx, 0, false},
    {0x012fff30, 4, End::indirect, Going::call_anywhere, link, Form::fixed, 0x7},  // BLX Rm
    {0x0510f000, 4, End::indirect, Going::jump_near, 0, Form::fixed, 0x0007007c},  // LDR pc, [Rn, #-imm]
    {0x0790f102, 4, End::indirect, Going::jump_near, 0, Form::fixed, 0x00070000},  // LDR pc, [Rn, R2, LSL #2]
    {0x008ff000, 4, End::indirect, Going::jump_near, 0, Form::fixed, 0x7},         // ADD pc, pc, Rm
    {0xf57ff060, 4, End::barrier, Going::next, 0, Form::fixed, 0xf, false},        // ISB
    {0x0e070f95, 4, End::barrier, Going::next, 0, Form::fixed, 0x7000},            // ISB, CP15
};
constexpr Ending a32_outside[] = {
    {0x012fff1e, 4, End::indirect, Going::function_return, fn_return},  // BX LR
    {0x012fff1e, 4, End::indirect, Going::function_return, fn_return},
    {0x08bd8000, 4, End::indirect, Going::function_return, fn_return, Form::fixed, 0x5ff},  // POP {..pc}
    {0x08bd8000, 4, End::indirect, Going::function_return, fn_return, Form::fixed, 0x5ff},
    {0x049df004, 4, End::indirect, Going::function_return, fn_return},                 // LDR pc, [SP], #4
    {0x01a0f00e, 4, End::indirect, Going::function_return, fn_return},                 // MOV pc, LR
    {0x08978000, 4, End::indirect, Going::function_return, 0, Form::fixed, 0x1f},      // LDM R7, {..pc}
    {0x012fff10, 4, End::indirect, Going::jump_anywhere, 0, Form::fixed, 0x7},         // BX Rm
    {0x0590f000, 4, End::indirect, Going::jump_anywhere, 0, Form::fixed, 0x0007007c},  // LDR pc, [Rn, #imm]
    {0x03a0f000, 4, End::indirect, Going::jump_same_isa, 0, Form::fixed, 0xfff},       // MOV pc, #imm
    {0x01a0f000, 4, End::indirect, Going::jump_same_isa, 0, Form::fixed, 0x7},         // MOV pc, Rm
};
constexpr Ending a32_exception_return[] = {
    {0x025ef004, 4, End::indirect, Going::exception_return, exc_return},                         // SUBS pc, LR, #4
    {0x01b0f00e, 4, End::indirect, Going::exception_return, exc_return},                         // MOVS pc, LR
    {0x08fd8000, 4, End::indirect, Going::exception_return, exc_return, Form::fixed, 0x1fff},    // LDM SP!, {..pc}^
    {0xf8bd0a00, 4, End::indirect, Going::exception_return, exc_return, Form::fixed, 0, false},  // RFEIA SP!
};
constexpr Ending eret_a32{0x0160006e, 4, End::indirect, Going::exception_return, exc_return};
constexpr Ending a32_bxj{0x012fff20, 4, End::indirect, Going::jump_exchange, 0, Form::fixed, 0x7};
constexpr Ending a32_barriers[] = {
    {0xf57ff040, 4, End::barrier, Going::next, 0, Form::fixed, 0xf, false},
    {0xf57ff050, 4, End::barrier, Going::next, 0, Form::fixed, 0xf, false},
    {0x0e070f9a, 4, End::barrier, Going::next, 0, Form::fixed, 0x7000},
    {0x0e070fba, 4, End::barrier, Going::next, 0, Form::fixed, 0x7000},
};

constexpr Ending thumb_inside[] = {
    {0xd000, 2, End::direct, Going::direct, conditional, Form::t16_cond},
    {0xd000, 2, End::direct, Going::direct, conditional, Form::t16_cond},
    {0xe000, 2, End::direct, Going::direct, 0, Form::t16_b},
    {0xb100, 2, End::direct, Going::direct, conditional, Form::t16_cbz},
    {0xf0008000, 4, End::direct, Going::direct, conditional, Form::t32_cond},
    {0xf0009000, 4, End::direct, Going::direct, 0, Form::t32_b},
    {0xf000d000, 4, End::direct, Going::call, link, Form::t32_bl},
    {0xf000d000, 4, End::direct, Going::call, link, Form::t32_bl},
    {0xf000c000, 4, End::direct, Going::call, link, Form::t32_blx},
    {0x4780, 2, End::indirect, Going::call_anywhere, link, Form::fixed, 0x38},     // BLX Rm
    {0xe8d0f000, 4, End::indirect, Going::jump_near, 0, Form::fixed, 0x00070017},  // TBB, TBH
    {0x4487, 2, End::indirect, Going::jump_near, 0, Form::fixed, 0x38},            // ADD pc, Rm
    {0xf3bf8f60, 4, End::barrier, Going::next, 0, Form::fixed, 0xf},               // ISB
    {0xee070f95, 4, End::barrier, Going::next, 0, Form::fixed, 0x7000},            // ISB, CP15
};
constexpr Ending thumb_outside[] = {
    {0x4770, 2, End::indirect, Going::function_return, fn_return},  // BX LR
    {0x4770, 2, End::indirect, Going::function_return, fn_return},
    {0xbd00, 2, End::indirect, Going::function_return, fn_return, Form::fixed, 0xff},  // POP {..pc}
    {0xbd00, 2, End::indirect, Going::function_return, fn_return, Form::fixed, 0xff},
    {0xe8bd8000, 4, End::indirect, Going::function_return, fn_return, Form::fixed, 0x1ff},  // POP.W {..pc}
    {0xf85dfb04, 4, End::indirect, Going::function_return, fn_return},                      // LDR.W pc, [SP], #4
    {0x46f7, 2, End::indirect, Going::function_return, fn_return},                          // MOV pc, LR
    {0xe8978000, 4, End::indirect, Going::function_return, 0, Form::fixed, 0x7f},           // LDM.W R7, {..pc}
    {0x4700, 2, End::indirect, Going::jump_anywhere, 0, Form::fixed, 0x38},                 // BX Rm
    {0x4687, 2, End::indirect, Going::jump_same_isa, 0, Form::fixed, 0x38},                 // MOV pc, Rm
    {0xf8d0f000, 4, End::indirect, Going::jump_anywhere, 0, Form::fixed, 0x0007007c},       // LDR.W pc, [Rn, #imm]
    {0xf85ff000, 4, End::indirect, Going::jump_anywhere, 0, Form::fixed, 0x00800ffc},       // LDR.W pc, literal
    {0xf850f800, 4, End::indirect, Going::jump_anywhere, 0, Form::fixed, 0x000704fc},       // see below: P or W needed
    {0xf850f000, 4, End::indirect, Going::jump_anywhere, 0, Form::fixed, 0x00070037},       // LDR.W pc, [Rn, Rm, LSL]
};
constexpr Ending thumb_exception_return[] = {
    {0xf3de8f00, 4, End::indirect, Going::exception_return, exc_return},                           // ERET
    {0xf3de8f04, 4, End::indirect, Going::exception_return, exc_return},                           // SUBS pc, LR, #4
    {0xe81dc000, 4, End::indirect, Going::exception_return, exc_return, Form::fixed, 0x00200000},  // RFEDB SP
    {0xe99dc000, 4, End::indirect, Going::exception_return, exc_return, Form::fixed, 0x00200000},  // RFEIA SP
};
constexpr Ending thumb_bxj{0xf3c08f00, 4, End::indirect, Going::jump_exchange, 0, Form::fixed, 0x00070000};
constexpr Ending thumb_barriers[] = {
    {0xf3bf8f40, 4, End::barrier, Going::next, 0, Form::fixed, 0xf},
    {0xf3bf8f50, 4, End::barrier, Going::next, 0, Form::fixed, 0xf},
    {0xee070f9a, 4, End::barrier, Going::next, 0, Form::fixed, 0x7000},
    {0xee070fba, 4, End::barrier, Going::next, 0, Form::fixed, 0x7000},
};
constexpr Ending tee_handlers[] = {
    {0xc000, 2, End::indirect, Going::jump_same_isa, 0, Form::fixed, 0xff},      // HBP
    {0xc200, 2, End::indirect, Going::jump_same_isa, 0, Form::fixed, 0xff},      // HB
    {0xc300, 2, End::indirect, Going::call_anywhere, link, Form::fixed, 0xff},   // HBL
    {0xc400, 2, End::indirect, Going::call_anywhere, link, Form::fixed, 0x3ff},  // HBLP
};
constexpr Ending enterx{0xf3bf8f1f, 4, End::direct, Going::next};
constexpr Ending leavex{0xf3bf8f0f, 4, End::direct, Going::next};

struct Filler {
    std::uint32_t opcode, random_bits;
    std::uint8_t bytes;
};
// No filler is a waypoint; several are similar to rows of the tables in 1.3.
constexpr Filler a32_fillers[] = {
    {0xe1a00000, 0x00007007, 4}, {0xe0800000, 0x00077007, 4}, {0xe5900000, 0x00077ffc, 4}, {0xe5800000, 0x000f7ffc, 4},
    {0xe1500000, 0x00070007, 4}, {0xe0000090, 0x00070707, 4}, {0x03a00000, 0x700070ff, 4}, {0xe320f000, 0x00000003, 4},
    {0xe8900000, 0x00077fff, 4}, {0xe92d8000, 0x00004fff, 4}, {0xe1100000, 0x00070007, 4}, {0xe3000000, 0x000f7fff, 4},
    {0xf5d0f000, 0x00070fff, 4}, {0xed900a00, 0x000700ff, 4}, {0xee070f15, 0x00007000, 4}, {0xe10f0000, 0x00007000, 4},
    {0xe121f000, 0x00000007, 4}, {0xe3500000, 0x000700ff, 4}, {0xe16f0f10, 0x00007007, 4}, {0xf57ff01f, 0, 4},
};
constexpr Filler t16_fillers[] = {
    {0x0000, 0x07ff, 2}, {0x1800, 0x01ff, 2}, {0x2000, 0x1fff, 2}, {0x4000, 0x03ff, 2},
    {0x4600, 0x003f, 2}, {0x4800, 0x07ff, 2}, {0x6000, 0x0fff, 2}, {0xb500, 0x00ff, 2},
    {0xbc00, 0x00ff, 2}, {0xbf08, 0x0070, 2}, {0xbf00, 0, 2},      {0xb200, 0x00ff, 2},
    {0x8800, 0x07ff, 2}, {0xa000, 0x0fff, 2}, {0x4500, 0x003f, 2}, {0xb660, 0x0017, 2},
};
constexpr Filler t32_fillers[] = {
    {0xf1000000, 0x000777ff, 4}, {0xf8d00000, 0x00077fff, 4}, {0xf2400000, 0x040f77ff, 4}, {0xe8900000, 0x00073fff, 4},
    {0xfb00f000, 0x00070707, 4}, {0xf3ef8000, 0x00000700, 4}, {0xf3af8000, 0, 4},          {0xed900a00, 0x000700ff, 4},
    {0xe92d4000, 0x00001fff, 4}, {0xee070f15, 0x00007000, 4}, {0xf3808800, 0x00070000, 4}, {0xf890f000, 0x000700ff, 4},
};
constexpr Filler plain_barriers_a32[] = {{0xf57ff040, 0xf, 4}, {0xf57ff050, 0xf, 4}, {0xee070f9a, 0x7000, 4}};
constexpr Filler plain_barriers_t32[] = {{0xf3bf8f40, 0xf, 4}, {0xf3bf8f50, 0xf, 4}, {0xee070fba, 0x7000, 4}};

struct Trap {
    std::uint32_t opcode, random_bits;
    std::uint8_t bytes, number;
};
constexpr Trap a32_traps[] = {
    {0xef000000, 0x00ffffff, 4, 10}, {0xe1600070, 0xf, 4, 2}, {0xe1200070, 0xf, 4, 11}, {0xe7f000f0, 0x000fff0f, 4, 9}};
constexpr Trap thumb_traps[] = {{0xdf00, 0xff, 2, 10},
                                {0xf7f08000, 0x000f0000, 4, 2},
                                {0xbe00, 0xff, 2, 11},
                                {0xde00, 0xff, 2, 9},
                                {0xf7f0a000, 0x00000fff, 4, 9}};

class Builder {
public:
    explicit Builder(const ProgramOptions& options) : options_(options), random_(options.seed) {}

    Program build() {
        plan_code();
        plan_vectors();
        for (std::uint32_t i = 0; i < endings_.size(); ++i) resolve(i);
        program_.memory.sections = std::move(sections_);
        cut_sections();
        for (ProgramBlock& b : program_.blocks) b.block.section = program_.memory.section_of(b.block.start);
        return std::move(program_);
    }

private:
    struct Open {  // the ending of a block, to be written when its target is known
        Ending ending;
        std::uint32_t opcode;
        std::uint32_t section;
        std::uint64_t address;
    };

    void plan_code() {
        constexpr std::uint64_t bases[] = {0x00008000, 0x00c00000, 0x7ff00000, 0xbf000000, 0xc0008000, 0xc0a00000};
        const unsigned count = std::clamp(options_.sections, 1U, 6U);
        std::array<unsigned, 6> chosen{};
        for (unsigned i = 0, left = count; i < 6 && left != 0; ++i)
            if (random_.below(6 - i) < left) chosen[count - left--] = i;
        for (unsigned i = 0; i < count; ++i) {
            sections_.push_back({bases[chosen[i]] + random_.below(64) * 64, {}});
            const unsigned quota = options_.blocks * (i + 1) / count;
            // Handlers first, so that even the smallest program has some.
            if (i == 0)
                for (unsigned h = 0; h < 6; ++h) function(i, h % 2 == 0 ? Isa::a32 : Isa::t32, true);
            do {
                const std::uint32_t kind = random_.below(options_.tee ? 9 : 8);
                function(i,
                         kind == 8                           ? Isa::tee
                         : kind + options_.t32_functions < 8 ? Isa::a32
                                                             : Isa::t32,
                         random_.chance(400));
            } while (program_.blocks.size() < quota);
        }
    }

    void function(std::uint32_t section, Isa isa, bool handler) {
        std::vector<std::uint8_t>& bytes = sections_[section].bytes;
        const std::size_t alignment = isa == Isa::a32 ? 4 : 2;
        std::size_t padding = random_.below(4) * 2;
        while ((bytes.size() + padding) % alignment != 0) ++padding;
        for (; padding != 0; --padding) bytes.push_back(static_cast<std::uint8_t>(random_()));
        const auto first = static_cast<std::uint32_t>(program_.blocks.size());
        const auto number = static_cast<std::uint32_t>(program_.functions.size());
        const unsigned blocks = 1 + random_.below(handler ? 4 : 12);
        const Isa start = isa;
        for (unsigned i = 0; i < blocks; ++i) isa = block(section, number, isa, handler, i + 1 == blocks);
        program_.functions.push_back({first, blocks, start});
        if (handler)
            handlers_.push_back(number);
        else
            program_.by_isa[static_cast<unsigned>(start)].push_back(number);
    }

    /// Returns the instruction set of the block after it.
    Isa block(std::uint32_t section, std::uint32_t function, Isa isa, bool handler, bool last) {
        const Ending ending = choose(isa, handler, last);
        ProgramBlock b;
        b.function = function;
        b.first_size = static_cast<std::uint32_t>(program_.sizes.size());
        b.block.isa = isa;
        b.block.start = sections_[section].address + sections_[section].bytes.size();
        b.block.end = ending.end;
        b.going = ending.going;
        const bool large = random_.chance(options_.large_block_chance) && ending.form != Form::t16_b;
        const std::uint32_t fillers = large ? 1000 + random_.below(1500) : random_.chance(2000) ? 0 : random_.below(9);
        for (std::uint32_t i = 0; i < fillers; ++i) filler(section, isa);
        if (fillers != 0 && !large && random_.chance(300)) {
            b.trap = fillers;
            trap(section, isa, b);
        }
        if (random_.half()) filler(section, isa);
        finish(section, b, ending, !last);
        if (ending.opcode == enterx.opcode) return Isa::tee;
        if (ending.opcode == leavex.opcode) return Isa::t32;
        return isa;
    }

    Ending choose(Isa isa, bool handler, bool last) {
        const bool a32 = isa == Isa::a32;
        if (options_.barrier_waypoints && !last && random_.chance(400))
            return a32 ? pick(random_, a32_barriers) : pick(random_, thumb_barriers);
        if (isa == Isa::tee && random_.chance(2500)) {
            const Ending& ending = pick(random_, tee_handlers);
            if (!last || ending.going == Going::jump_same_isa) return ending;
        }
        if (options_.tee && !a32 && !last && random_.chance(800)) return isa == Isa::t32 ? enterx : leavex;
        if (last && handler) {
            if (options_.a32_eret && a32 && random_.chance(2000)) return eret_a32;
            return a32 ? pick(random_, a32_exception_return) : pick(random_, thumb_exception_return);
        }
        if (last || random_.chance(1500)) {
            if (random_.chance(300)) return a32 ? a32_bxj : thumb_bxj;
            return a32 ? pick(random_, a32_outside) : pick(random_, thumb_outside);
        }
        for (;;) {
            const Ending& ending = a32 ? pick(random_, a32_inside) : pick(random_, thumb_inside);
            if (isa != Isa::tee || ending.form != Form::t32_blx) return ending;  // undefined in ThumbEE
        }
    }

    void filler(std::uint32_t section, Isa isa) {
        const bool barrier = !options_.barrier_waypoints && random_.chance(200);
        if (isa == Isa::a32)
            append(section, isa, barrier ? pick(random_, plain_barriers_a32) : pick(random_, a32_fillers));
        else if (barrier)
            append(section, isa, pick(random_, plain_barriers_t32));
        else
            append(section, isa, random_.chance(6000) ? pick(random_, t16_fillers) : pick(random_, t32_fillers));
    }
    void append(std::uint32_t section, Isa isa, const Filler& f) {
        append(section, isa, f.opcode | (static_cast<std::uint32_t>(random_()) & f.random_bits), f.bytes);
    }
    void trap(std::uint32_t section, Isa isa, ProgramBlock& b) {
        const Trap& t = isa == Isa::a32 ? pick(random_, a32_traps) : pick(random_, thumb_traps);
        b.trap_number = t.number;
        const std::uint32_t opcode = t.opcode | (static_cast<std::uint32_t>(random_()) & t.random_bits);
        append(section, isa, opcode, t.bytes);
    }

    void finish(std::uint32_t section, ProgramBlock& b, const Ending& ending, bool followed) {
        std::uint32_t opcode = ending.opcode | (static_cast<std::uint32_t>(random_()) & ending.random_bits);
        // LDR.W with imm8: without indexing and write-back it would be undefined.
        if (ending.opcode == 0xf850f800) opcode |= 0x100;
        b.block.flags = ending.flags;
        const bool next = ending.going == Going::next;
        const bool a32 = b.block.isa == Isa::a32;
        if (a32 && ending.has_condition) {
            const bool may_fail = followed && random_.chance(6000);
            opcode |= may_fail ? random_.below(14) << 28 : 0xe0000000;
            b.may_fail = may_fail;
            if (may_fail) b.block.flags |= conditional;
        } else if (!a32) {
            // In an IT block every branch is conditional, though its opcode does not say so.
            b.may_fail = followed && (ending.flags & conditional) != 0 ? true : followed && random_.chance(1000);
            if (ending.opcode == enterx.opcode || ending.opcode == leavex.opcode) b.may_fail = false;
            if (ending.form == Form::t32_blx && !options_.blx_may_fail) b.may_fail = false;
            if (b.may_fail && (ending.flags & conditional) == 0) append(section, b.block.isa, it_eq, 2);
        }
        if (next) b.block.target = sections_[section].address + sections_[section].bytes.size() + ending.bytes;
        const auto index = static_cast<std::uint32_t>(program_.blocks.size());
        if (next) b.target_block = index + 1;
        endings_.push_back({ending, opcode, section, sections_[section].address + sections_[section].bytes.size()});
        append(section, b.block.isa, opcode, ending.bytes);
        b.block.last_bytes = ending.bytes;
        b.block.instructions = static_cast<std::uint32_t>(program_.sizes.size()) - b.first_size;
        b.block.bytes =
            static_cast<std::uint32_t>(sections_[section].address + sections_[section].bytes.size() - b.block.start);
        program_.blocks.push_back(b);
    }

    void append(std::uint32_t section, Isa isa, std::uint32_t opcode, std::uint8_t bytes) {
        std::vector<std::uint8_t>& out = sections_[section].bytes;
        out.resize(out.size() + bytes);
        store(section, isa, sections_[section].address + out.size() - bytes, opcode, bytes);
        program_.sizes.push_back(bytes);
    }
    void store(std::uint32_t section, Isa isa, std::uint64_t address, std::uint32_t opcode, unsigned bytes) {
        if (isa != Isa::a32 && bytes == 4)
            opcode = opcode << 16 | opcode >> 16;  // the first halfword comes first in
                                                   // memory
        std::uint8_t* const out = sections_[section].bytes.data() + (address - sections_[section].address);
        for (unsigned i = 0; i < bytes; ++i) out[i] = static_cast<std::uint8_t>(opcode >> (8 * i));
    }

    // ---- direct branches, when all addresses are known

    struct Reach {
        std::int64_t low, high;  ///< target - address of the branch
    };
    static Reach reach(Form form) {
        switch (form) {
            case Form::a32:
            case Form::a32_blx: return {8 - (1 << 25), 8 + (1 << 25) - 4};
            case Form::t16_cond: return {4 - 256, 4 + 254};
            case Form::t16_b: return {4 - 2048, 4 + 2046};
            case Form::t16_cbz: return {4, 4 + 126};
            case Form::t32_cond: return {4 - (1 << 20), 4 + (1 << 20) - 2};
            case Form::t32_b:
            case Form::t32_bl: return {4 - (1 << 24), 4 + (1 << 24) - 2};
            case Form::t32_blx: return {4 - (1 << 24) + 4, 4 + (1 << 24) - 8};
            case Form::fixed: break;
        }
        return {0, 0};
    }

    void resolve(std::uint32_t index) {
        Open& open = endings_[index];
        if (open.ending.form == Form::fixed) return;
        ProgramBlock& b = program_.blocks[index];
        std::uint32_t to = b.target_block;
        if (!vector_from_ || index < *vector_from_) to = find_target(index);
        if (to == ProgramBlock::none && open.ending.form == Form::t16_cbz) {
            open.ending.form = Form::t16_cond;  // it has the same size, and reaches backwards
            open.opcode = 0xd000;
            to = find_target(index);
        }
        if (to == ProgramBlock::none) to = own_or_next(index);
        b.target_block = to;
        b.block.target = program_.blocks[to].block.start;
        store(open.section, b.block.isa, open.address, write(open, b.block.target), open.ending.bytes);
    }

    [[nodiscard]] bool reaches(const Open& open, std::uint32_t to) const {
        const Reach r = reach(open.ending.form);
        const auto distance =
            static_cast<std::int64_t>(program_.blocks[to].block.start) - static_cast<std::int64_t>(open.address);
        return r.low <= distance && distance <= r.high;
    }
    [[nodiscard]] Isa target_isa(const Open& open, Isa own) const {
        return open.ending.form == Form::a32_blx ? Isa::t32 : open.ending.form == Form::t32_blx ? Isa::a32 : own;
    }

    std::uint32_t find_target(std::uint32_t index) {
        const Open& open = endings_[index];
        const ProgramBlock& b = program_.blocks[index];
        const Isa isa = target_isa(open, b.block.isa);
        const bool call = b.going == Going::call;
        const auto& functions = program_.by_isa[static_cast<unsigned>(isa)];
        const ProgramFunction& own = program_.functions[b.function];
        for (unsigned tries = 0; tries < 12; ++tries) {
            std::uint32_t to = 0;
            if (!call)
                to = own.first_block + random_.below(own.blocks);
            else if (functions.empty())
                break;
            else
                to = program_.functions[functions[random_.below(static_cast<std::uint32_t>(functions.size()))]]
                         .first_block;
            if (program_.blocks[to].block.isa == isa && reaches(open, to)) return to;
        }
        if (isa == b.block.isa) return ProgramBlock::none;
        // A change of instruction set must find some function; every section has a few of both kinds nearby.
        for (const std::uint32_t f : functions)
            if (reaches(open, program_.functions[f].first_block)) return program_.functions[f].first_block;
        for (const std::uint32_t f : handlers_)
            if (program_.functions[f].isa == isa && reaches(open, program_.functions[f].first_block))
                return program_.functions[f].first_block;
        // No target in reach: the block ends with an ordinary call of itself instead.
        endings_[index].ending.form = b.block.isa == Isa::a32 ? Form::a32 : Form::t32_bl;
        endings_[index].opcode = b.block.isa == Isa::a32 ? 0xeb000000 : 0xf000d000;
        return index;
    }
    [[nodiscard]] std::uint32_t own_or_next(std::uint32_t index) const {
        if (reaches(endings_[index], index)) return index;
        WM_CHECK(index + 1 < program_.blocks.size() &&
                 program_.blocks[index + 1].function == program_.blocks[index].function);
        return index + 1;
    }

    static std::uint32_t write(const Open& open, std::uint64_t target) {
        const auto from = static_cast<std::uint32_t>(open.address);
        const auto to = static_cast<std::uint32_t>(target);
        const std::uint32_t a32 = to - (from + 8);
        const std::uint32_t thumb = to - (from + 4);
        const auto wide = [](std::uint32_t opcode, std::uint32_t d) {
            const std::uint32_t s = d >> 24 & 1, j1 = (d >> 23 & 1) ^ s ^ 1, j2 = (d >> 22 & 1) ^ s ^ 1;
            return opcode | s << 26 | (d >> 12 & 0x3ff) << 16 | j1 << 13 | j2 << 11 | (d >> 1 & 0x7ff);
        };
        switch (open.ending.form) {
            case Form::a32: return open.opcode | (a32 >> 2 & 0xffffff);
            case Form::a32_blx: return open.opcode | (a32 >> 1 & 1) << 24 | (a32 >> 2 & 0xffffff);
            case Form::t16_cond: return open.opcode | (from >> 1 & 7) << 8 | (thumb >> 1 & 0xff);
            case Form::t16_b: return open.opcode | (thumb >> 1 & 0x7ff);
            case Form::t16_cbz:
                return open.opcode | (from & 2) << 10 | (thumb >> 6 & 1) << 9 | (thumb >> 1 & 0x1f) << 3;
            case Form::t32_cond:
                return open.opcode | (thumb >> 20 & 1) << 26 | (from >> 1 & 7) << 22 | (thumb >> 12 & 0x3f) << 16 |
                       (thumb >> 18 & 1) << 13 | (thumb >> 19 & 1) << 11 | (thumb >> 1 & 0x7ff);
            case Form::t32_b:
            case Form::t32_bl: return wide(open.opcode, thumb);
            case Form::t32_blx: return wide(open.opcode, to - ((from + 4) & ~3U));
            case Form::fixed: break;
        }
        return open.opcode;
    }

    // ---- exception vectors: one table for Secure, one for Non-secure, one for Hyp

    void plan_vectors() {
        vector_from_ = static_cast<std::uint32_t>(program_.blocks.size());
        constexpr std::uint64_t tables[] = {0x00000000, 0xffff0000, 0xbe000000};
        for (unsigned table = 0; table < 3; ++table) {
            const bool thumb = table == 1 && random_.half();
            const auto section = static_cast<std::uint32_t>(sections_.size());
            sections_.push_back({tables[table], {}});
            for (unsigned entry = 0; entry < 8; ++entry) {
                std::uint32_t handler = handlers_[random_.below(static_cast<std::uint32_t>(handlers_.size()))];
                const std::uint32_t to = program_.functions[handler].first_block;
                Ending ending = thumb ? Ending{0xf0009000, 4, End::direct, Going::direct, 0, Form::t32_b}
                                      : Ending{0x0a000000, 4, End::direct, Going::direct, 0, Form::a32};
                const bool same_isa = program_.blocks[to].block.isa == (thumb ? Isa::t32 : Isa::a32);
                const Open open{ending, 0, section, tables[table] + entry * 4};
                if (!same_isa || !reaches(open, to))
                    ending = thumb ? Ending{0xf8dff018, 4, End::indirect, Going::direct, 0}
                                   : Ending{0x059ff018, 4, End::indirect, Going::direct, 0};
                ProgramBlock b;
                b.function = static_cast<std::uint32_t>(program_.functions.size());
                b.first_size = static_cast<std::uint32_t>(program_.sizes.size());
                b.block.isa = thumb ? Isa::t32 : Isa::a32;
                b.block.start = tables[table] + entry * 4;
                b.block.end = ending.end;
                b.going = ending.going;
                b.target_block = to;
                const auto index = static_cast<std::uint32_t>(program_.blocks.size());
                finish(section, b, ending, false);
                program_.functions.push_back({index, 1, b.block.isa});
                program_.vectors.push_back(index);
            }
        }
        std::sort(sections_.begin(), sections_.end(),
                  [](const auto& x, const auto& y) { return x.address < y.address; });
        for (Open& open : endings_) open.section = section_at(open.address);
    }
    [[nodiscard]] std::uint32_t section_at(std::uint64_t address) const {
        std::uint32_t i = 0;
        while (i + 1 < sections_.size() && sections_[i + 1].address <= address) ++i;
        return i;
    }

    /// Memory may come in pieces whose borders have no meaning for the program.
    void cut_sections() {
        std::vector<Memory::Section> cut;
        for (Memory::Section& s : program_.memory.sections) {
            std::size_t from = 0;
            if (s.bytes.size() > 64 && random_.half()) {
                const std::size_t at = 2 + random_.below(static_cast<std::uint32_t>(s.bytes.size() / 2 - 2)) * 2;
                cut.push_back({s.address, {s.bytes.begin(), s.bytes.begin() + static_cast<std::ptrdiff_t>(at)}});
                from = at;
            }
            cut.push_back({s.address + from, {s.bytes.begin() + static_cast<std::ptrdiff_t>(from), s.bytes.end()}});
        }
        program_.memory.sections = std::move(cut);
    }

    const ProgramOptions options_;
    Random random_;
    Program program_;
    std::vector<Memory::Section> sections_;
    std::vector<Open> endings_;  // one for each block
    std::vector<std::uint32_t> handlers_;
    std::optional<std::uint32_t> vector_from_;
};

}  // namespace

Program make_program(const ProgramOptions& options) { return Builder(options).build(); }

Walk::Walk(const Program& program, const WalkOptions& options)
    : program_(program), options_(options), random_(options.seed) {
    at_ = anywhere(false);
    address_ = place(at_).address.value;
}

void Walk::run(Execution& execution, std::uint64_t steps) {
    for (; steps != 0; --steps) step(execution);
}

void Walk::step(Execution& execution) {
    cycle_ += 4 + random_.below(40);
    if (random_.chance(options_.pauses)) cycle_ += random_() >> (64 - options_.pause_bits) >> random_.below(30);
    const ProgramBlock& b = block();
    const std::uint32_t instructions = b.block.instructions;
    if (random_.chance(options_.exceptions + options_.debug + options_.prohibited)) {
        const std::uint32_t at = at_.instruction + random_.below(instructions - at_.instruction);
        if (b.trap == ProgramBlock::none || at <= b.trap || at_.instruction > b.trap) {
            constexpr std::uint8_t numbers[] = {14, 14, 14, 15, 12, 11, 4, 9, 8, 13, 5};
            std::uint32_t number = numbers[random_.below(11)];
            if (random_.chance(options_.odd_exceptions)) number = 16 + random_.below(496);
            const std::uint32_t kind = random_.below(options_.exceptions + options_.debug + options_.prohibited);
            if (kind < options_.debug) number = 1;
            if (number != 1 && options_.virtualization && ns_ && random_.chance(1500)) number = 3;
            // An undefined instruction counts as executed, so the waypoint instruction cannot be undefined.
            if (number == 9 && at + 1 == instructions) number = 14;
            interrupt(execution, number == 9 ? at + 1 : at, number, false);
            while (random_.chance(300)) {
                cycle_ += 8;
                interrupt(execution, at_.instruction, random_.half() ? 14 : 15, false);
            }
            return changes(execution);
        }
    }
    if (b.trap != ProgramBlock::none && at_.instruction <= b.trap) {
        // A breakpoint is not executed, the other traps are.
        interrupt(execution, b.trap_number == 11 ? b.trap : b.trap + 1, b.trap_number, true);
        return changes(execution);
    }
    go(execution);
    changes(execution);
}

/// Changes at a waypoint, and events of the trace unit meanwhile.
void Walk::changes(Execution& execution) {
    if (random_.chance(options_.context_changes))
        execution.context_id(static_cast<std::uint32_t>(random_()) >> random_.below(30));
    if (random_.chance(options_.vmid_changes)) execution.vmid(static_cast<std::uint8_t>(random_()));
    if (random_.chance(filtered_ ? 500 : options_.filter_changes)) {
        filtered_ = !filtered_;
        execution.enable(!filtered_);
    }
    if (random_.chance(options_.overflows)) execution.overflow(1 + random_.below(20));
}

/// Execution up to, not including, instruction `at` of the block; then an exception.
void Walk::interrupt(Execution& execution, std::uint32_t at, std::uint32_t number, bool trap) {
    const ProgramBlock& b = block();
    Interrupted e;
    e.block = part(at);
    e.number = number;
    e.cycle = cycle_;
    e.update = number != 8;
    Frame frame{{at_.block, trap && number == 11 ? at + 1 : at}, ns_, hyp_};
    WM_CHECK(frame.back.instruction < b.block.instructions);
    if (number == 1) {
        e.ns = ns_;
        e.hyp = hyp_;
        execution.exception(e);
        if (random_.half()) execution.context_id(static_cast<std::uint32_t>(random_()));
        cycle_ += random_.below(100000);
        at_ = random_.half() ? frame.back : anywhere(false);
        address_ = place(at_).address.value;
        return;
    }
    if (number == 8) {
        ns_ = hyp_ = false;
        calls_.clear();
        exceptions_.clear();
    } else if (number == 2 || (options_.trustzone && random_.chance(1500))) {
        ns_ = ns_ && !options_.trustzone;
        hyp_ = false;
    } else if (number == 3 || (options_.virtualization && ns_ && random_.chance(2000))) {
        hyp_ = options_.virtualization && ns_;
    }
    e.ns = ns_;
    e.hyp = hyp_;
    const std::uint32_t vector = program_.vectors[(hyp_ ? 16U : ns_ ? 8U : 0U) + number % 8];
    e.vector = place({vector, 0});
    e.hidden = options_.prohibited != 0 && random_.chance(1000);
    execution.exception(e);
    if (e.hidden) {
        filtered_ = true;
        execution.enable(false);
    }
    exceptions_.push_back(frame);
    if (exceptions_.size() > 32) exceptions_.erase(exceptions_.begin());
    at_ = {vector, 0};
    address_ = e.vector.address.value;
}

/// Executes the rest of the block, including its waypoint instruction.
void Walk::go(Execution& execution) {
    const ProgramBlock& b = block();
    Executed w;
    w.block = b.block;
    w.cycle = cycle_;
    if (at_.instruction != 0) {
        w.block.bytes -= static_cast<std::uint32_t>(address_ - b.block.start);
        w.block.start = address_;
        w.block.instructions -= at_.instruction;
        w.block.section = program_.memory.section_of(address_);
    }
    if (w.block.instructions > 1) w.before_last_bytes = program_.sizes[b.first_size + b.block.instructions - 2];
    if (w.block.bytes > 4096)
        w.last_section = program_.memory.section_of(b.block.start + b.block.bytes - b.block.last_bytes);
    if (options_.trustzone && !hyp_ && w.block.instructions > 1 && random_.chance(options_.security_changes))
        ns_ = !ns_;
    w.passed = !b.may_fail || random_.chance(6000);
    Position to{at_.block + 1, 0};
    if (w.passed) {
        const auto call = [&] {
            calls_.push_back({at_.block + 1, 0});
            if (calls_.size() > 64) calls_.erase(calls_.begin());
        };
        switch (b.going) {
            case Going::direct: to = {b.target_block, 0}; break;
            case Going::next: to = {at_.block + 1, 0}; break;
            case Going::call:
                call();
                to = {b.target_block, 0};
                break;
            case Going::call_anywhere:
                // Sometimes a call goes to the place on the return stack.
                to = !calls_.empty() && random_.chance(100) ? calls_.back() : anywhere(b.block.isa == Isa::tee);
                call();
                break;
            case Going::jump_exchange:
            case Going::jump_anywhere: to = anywhere(false); break;
            case Going::jump_same_isa: to = anywhere(true); break;
            case Going::jump_near: {
                const ProgramFunction& f = program_.functions[b.function];
                to = {f.first_block + random_.below(f.blocks), 0};
                if (program_.blocks[to.block].block.isa != b.block.isa) to = {at_.block, 0};
                break;
            }
            case Going::function_return:
                if (!calls_.empty() && !random_.chance(options_.wrong_returns)) {
                    to = calls_.back();
                    calls_.pop_back();
                } else {
                    to = anywhere(false);
                }
                break;
            case Going::exception_return:
                to = anywhere(false);
                if (!exceptions_.empty()) {
                    const Frame frame = exceptions_.back();
                    exceptions_.pop_back();
                    if (!random_.chance(options_.wrong_returns)) to = frame.back;
                    ns_ = frame.ns;
                    hyp_ = frame.hyp;
                }
                // The monitor may switch the security state.
                if (options_.trustzone && !ns_ && random_.chance(2000)) ns_ = true;
                break;
        }
    }
    w.ns = ns_;
    w.hyp = hyp_;
    w.to = place(to);
    const bool jazelle = w.passed && b.going == Going::jump_exchange && random_.chance(options_.jazelle);
    if (jazelle) w.to = {{static_cast<std::uint32_t>(random_())}, Isa::jazelle};
    execution.waypoint(w);
    if (jazelle) cycle_ += 1000;
    at_ = to;
    address_ = place(to).address.value;
}

/// The instructions from the place of execution up to `to`, as a block without a waypoint at its end.
Block Walk::part(std::uint32_t to) const {
    const ProgramBlock& b = block();
    Block out;
    out.start = address_;
    out.isa = b.block.isa;
    out.section = program_.memory.section_of(address_);
    out.instructions = to - at_.instruction;
    for (std::uint32_t i = at_.instruction; i < to; ++i) {
        out.last_bytes = program_.sizes[b.first_size + i];
        out.bytes += out.last_bytes;
    }
    return out;
}

Walk::Position Walk::function_start(std::uint32_t function) const {
    return {program_.functions[function].first_block, 0};
}

Walk::Position Walk::anywhere(bool same_isa) {
    const Isa isa = at_.block < program_.blocks.size() && same_isa ? block().block.isa
                    : random_.half()                               ? Isa::a32
                                                                   : Isa::t32;
    const auto& some = program_.by_isa[static_cast<unsigned>(isa)];
    const auto& list = some.empty() ? program_.by_isa[program_.by_isa[0].empty() ? 1 : 0] : some;
    if (list.empty()) return {0, 0};
    return function_start(list[random_.below(static_cast<std::uint32_t>(list.size()))]);
}

pft::Place Walk::place(Position position) const {
    const ProgramBlock& b = program_.blocks[position.block];
    std::uint64_t address = b.block.start;
    for (std::uint32_t i = 0; i < position.instruction; ++i) address += program_.sizes[b.first_size + i];
    return {{address}, b.block.isa};
}

}  // namespace waymark::synthetic
