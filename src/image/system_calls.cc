#include "waymark/image/system_calls.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <span>
#include <string>
#include <vector>

#include "waymark/image/disassembly.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/it_block.h"

namespace waymark::image {

namespace {

using isa::Isa;

struct NumberedName {
    std::uint32_t number;
    std::string_view name;
};
constexpr NumberedName calls_aarch64[] = {
#define WM_LINUX_CALLS_AARCH64
#include "linux_calls.inc"
#undef WM_LINUX_CALLS_AARCH64
};
constexpr NumberedName calls_arm[] = {
#define WM_LINUX_CALLS_ARM
#include "linux_calls.inc"
#undef WM_LINUX_CALLS_ARM
};

/// Bounds of the search, in bytes: the length of a function, and the distance of the constant from its supervisor call.
constexpr std::uint64_t longest_function = 0x4000, around = 256;

/// The instruction set of the supervisor call that ends at `back`.
std::optional<Isa> supervisor_call(const isa::CodeReader& code, const isa::Space& space, Address back) {
    constexpr std::uint32_t svc_a64 = 0xd4000001, svc_a32 = 0xef000000, svc_t32 = 0xdf00;
    if (back.value < 4) return std::nullopt;
    if (back.value % 4 == 0) {
        const isa::Fetched word = isa::fetch(code, space, {back.value - 4}, Isa::a64);
        if (word.bytes == 4 && word.opcode == svc_a64) return Isa::a64;
        if (word.bytes == 4 && word.opcode == svc_a32) return Isa::a32;
    }
    const isa::Fetched half = isa::fetch(code, space, {back.value - 2}, Isa::t32);
    return half.bytes == 2 && half.opcode == svc_t32 ? std::optional(Isa::t32) : std::nullopt;
}

/// The constant that an instruction moves into X8 or R7; its condition is not looked at in T32.
std::optional<std::uint32_t> moved_constant(const isa::Fetched& instruction, Isa isa) {
    const std::uint32_t op = instruction.opcode;
    const auto bits = [&](unsigned high, unsigned low) { return op >> low & ((1U << (high - low + 1)) - 1); };
    if (isa == Isa::a64)  // MOVZ without a shift
        return (op & 0x7fe00000U) == 0x52800000U && bits(4, 0) == 8 ? std::optional(bits(20, 5)) : std::nullopt;
    if (isa == Isa::a32) {
        if (bits(31, 28) != 0xe || bits(15, 12) != 7) return std::nullopt;
        if ((op & 0x0fef0000U) == 0x03a00000U)  // MOV
            return std::rotr(bits(7, 0), static_cast<int>(2 * bits(11, 8)));
        if ((op & 0x0ff00000U) == 0x03000000U) return bits(19, 16) << 12 | bits(11, 0);  // MOVW
        return std::nullopt;
    }
    if (instruction.bytes == 2) return (op & 0xff00U) == 0x2700U ? std::optional(bits(7, 0)) : std::nullopt;  // MOVS
    if (bits(11, 8) != 7 || bits(15, 15) != 0) return std::nullopt;
    const std::uint32_t low = bits(26, 26) << 11 | bits(14, 12) << 8 | bits(7, 0);
    if ((op & 0xfbf00000U) == 0xf2400000U) return bits(19, 16) << 12 | low;  // MOVW
    if ((op & 0xfbef0000U) != 0xf04f0000U) return std::nullopt;              // MOV
    if (low < 0x100) return low;
    if (low < 0x400) return std::nullopt;  // a pattern of repeated bytes, larger than any number
    return std::rotr(0x80U | (low & 0x7fU), static_cast<int>(low >> 7));
}

/// Whether the text of an instruction names the register; true for an instruction that the disassembler does not know.
bool names_register(const std::string& text, Isa isa) {
    const auto letter = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
    const std::string_view number = isa == Isa::a64 ? "8" : "7", kinds = isa == Isa::a64 ? "xw" : "r";
    if (text.empty() || !std::isalpha(static_cast<unsigned char>(text.front()))) return true;
    for (std::size_t i = 1; i + 1 < text.size(); ++i)
        if (kinds.find(text[i]) != kinds.npos && text[i + 1] == number.front() && !letter(text[i - 1]) &&
            (i + 2 == text.size() || !letter(text[i + 2])))
            return true;
    return false;
}

}  // namespace

std::string_view SystemCall::name() const {
    const auto named = [&](std::span<const NumberedName> all) -> std::string_view {
        const auto found =
            std::lower_bound(all.begin(), all.end(), number,
                             [](const NumberedName& n, std::uint32_t wanted) { return n.number < wanted; });
        return found != all.end() && found->number == number ? found->name : std::string_view();
    };
    return aarch64 ? named(calls_aarch64) : named(calls_arm);
}

std::optional<SystemCall> system_call_before(const isa::CodeReader& code, const isa::Space& space,
                                             const Symbols& symbols, Address back) {
    const std::optional<Isa> isa = supervisor_call(code, space, back);
    if (!isa) return std::nullopt;
    const std::uint64_t call = back.value - (isa == Isa::t32 ? 2 : 4);
    std::uint64_t begin = call - std::min(call, around), end = back.value + around;
    const auto found = symbols.find({call});
    const bool is_function = found && found->symbol.kind == SymbolKind::function;
    if (is_function) {
        begin = found->symbol.address.value;
        if (found->symbol.bytes != 0) end = begin + found->symbol.bytes;
        if (call - begin > longest_function) return std::nullopt;
        end = std::min(end, call + longest_function);
    } else if (isa == Isa::t32) {
        return std::nullopt;
    }

    // Places of the function to which a direct branch leads.
    std::vector<std::uint64_t> targets;
    isa::Fetcher fetch(code, space);
    for (std::uint64_t at = begin; at < end;) {
        const isa::Fetched fetched = fetch({at}, *isa);
        if (fetched.bytes == 0) {
            if (at > call) break;
            if (is_function) return std::nullopt;
            begin = at += 4;
            continue;
        }
        const isa::Instruction what =
            isa::decode_instr({at}, *isa, fetched.opcode, *isa == Isa::t32 && fetched.bytes == 4, {});
        if (what.waypoint == isa::Waypoint::direct) targets.push_back(what.target.value);
        at += fetched.bytes;
    }

    Disassembler disassembler;
    isa::ItBlock it;
    std::optional<std::uint32_t> number;
    std::uint64_t at = begin;
    while (at < call) {
        const isa::Fetched fetched = fetch({at}, *isa);
        if (fetched.bytes == 0) return std::nullopt;
        const isa::Instruction what =
            isa::decode_instr({at}, *isa, fetched.opcode, *isa == Isa::t32 && fetched.bytes == 4, {});
        const bool conditional = it.next(fetched, *isa);
        if (std::find(targets.begin(), targets.end(), at) != targets.end()) number.reset();
        const bool branches = what.waypoint == isa::Waypoint::direct || what.waypoint == isa::Waypoint::indirect;
        const auto constant = moved_constant(fetched, *isa);
        if (call - at > around)
            number.reset();
        else if (constant && !conditional)
            number = constant;
        else if (number && (branches || names_register(disassembler.text(code, space, at, *isa), *isa)))
            number.reset();
        at += fetched.bytes;
    }
    if (at != call || !number || std::find(targets.begin(), targets.end(), call) != targets.end()) return std::nullopt;
    return SystemCall{*number, *isa == Isa::a64};
}

}  // namespace waymark::image
