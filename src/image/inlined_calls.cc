#include "inlined_calls.h"

#include <dwarf.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>

#include "waymark/image/symbols.h"

namespace waymark::image {

namespace {

// Names may share their tails, so a small file can claim gigabytes of names; compilers' names are far shorter.
constexpr std::size_t longest_name = std::size_t{1} << 16;
// A GNU extension that elfutils does not define: distinguishes several calls on one line.
constexpr unsigned gnu_discriminator = 0x2136;

std::string text_of(Dwarf_Die& die, unsigned attribute) {
    Dwarf_Attribute value;
    const char* const text = dwarf_formstring(dwarf_attr_integrate(&die, attribute, &value));
    return text == nullptr ? std::string() : std::string(text, ::strnlen(text, longest_name));
}

/// GCC describes all variants of a constructor or destructor once, by names that no symbol has (`C4`, `D4` of the
/// Itanium C++ ABI's extension). Replaces such a name by the name of the variant for base classes, which all other
/// variants call or are aliases of.
std::string with_real_variant(std::string name) {
    // Each part of a name may be a constructor or destructor; each attempt demangles the whole name.
    unsigned tries = 16;
    for (std::size_t at = 0; (at = name.find_first_of("CD", at)) != name.npos && tries != 0; ++at) {
        if (at + 1 >= name.size() || name[at + 1] != '4') continue;
        --tries;
        std::string base = name;
        base[at + 1] = '2';
        if (demangle(base) == demangle(name)) name = std::move(base);
    }
    return name;
}

std::string linkage_name_of(Dwarf_Die& die) {
    std::string name = text_of(die, DW_AT_linkage_name);
    if (name.empty()) name = text_of(die, DW_AT_MIPS_linkage_name);
    return with_real_variant(std::move(name));
}

/// A numeric attribute of a DIE or of its abstract origin; 0 if there is none, or a number larger than any line.
std::uint32_t number_of(Dwarf_Die& die, unsigned attribute) {
    Dwarf_Attribute value;
    Dwarf_Word number = 0;
    if (dwarf_formudata(dwarf_attr_integrate(&die, attribute, &value), &number) != 0) return 0;
    return number <= std::numeric_limits<std::uint32_t>::max() ? static_cast<std::uint32_t>(number) : 0;
}

/// The file in which a DIE is declared; null if not known. dwarf_decl_file() takes file 0 for none, which is right only
/// before DWARF 5.
const char* declared_in(Dwarf_Die& die) {
    Dwarf_Attribute value;
    Dwarf_Word file = 0;
    Dwarf_Die unit;
    Dwarf_Files* files = nullptr;
    std::size_t count = 0;
    if (dwarf_formudata(dwarf_attr_integrate(&die, DW_AT_decl_file, &value), &file) != 0) return nullptr;
    if (dwarf_cu_die(value.cu, &unit, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr) == nullptr) return nullptr;
    if (dwarf_getsrcfiles(&unit, &files, &count) != 0 || file >= count) return nullptr;
    return dwarf_filesrc(files, file, nullptr, nullptr);
}

/// Whether entries with this tag contain no code: they are skipped with their children.
bool is_data(int tag) {
    switch (tag) {
        case DW_TAG_enumeration_type:
        case DW_TAG_array_type:
        case DW_TAG_subroutine_type:
        case DW_TAG_call_site:
        case DW_TAG_GNU_call_site: return true;
        default: return false;
    }
}

}  // namespace

InlinedCalls::InlinedCalls(Dwarf_Die die, std::uint64_t bias) {
    Dwarf_Die unit = die, split{};
    std::uint8_t type = 0;
    // A unit that is stored in a separate file is read from there, if the file is found.
    if (dwarf_cu_info(die.cu, nullptr, &type, nullptr, &split, nullptr, nullptr, nullptr) == 0 &&
        type == DW_UT_skeleton) {
        if (split.addr == nullptr) return;
        unit = split;
    }
    const std::string producer = text_of(unit, DW_AT_producer);
    by_llvm_ = producer.find("clang") != producer.npos || producer.find("LLVM") != producer.npos;
    std::vector<Span> spans;
    read(unit, bias, spans);
    cut(spans);
    std::sort(bodies_.begin(), bodies_.end(), [](const Body& a, const Body& b) { return a.first < b.first; });
}

/// The function of an inlined call, stored once for all its calls.
std::uint32_t InlinedCalls::callee_of(Dwarf_Die& die) {
    Dwarf_Attribute value;
    Dwarf_Die origin;
    const bool own = dwarf_hasattr(&die, DW_AT_name) != 0 || dwarf_hasattr(&die, DW_AT_linkage_name) != 0 ||
                     dwarf_hasattr(&die, DW_AT_decl_line) != 0;
    const bool shared = !own && dwarf_attr(&die, DW_AT_abstract_origin, &value) != nullptr &&
                        dwarf_formref_die(&value, &origin) != nullptr;
    const auto [found, is_new] = callee_at_.try_emplace(static_cast<const void*>((shared ? origin : die).addr),
                                                        static_cast<std::uint32_t>(callees_.size()));
    if (!is_new) return found->second;
    Callee& out = callees_.emplace_back();
    const std::string name = text_of(die, DW_AT_name);
    std::string linkage_name = linkage_name_of(die);
    out.declared_line = number_of(die, DW_AT_decl_line);
    out.function = linkage_name.empty() ? name : demangle(linkage_name);
    if (linkage_name != out.function.str()) out.linkage_name = std::move(linkage_name);
    return found->second;
}

InlinedCalls::Call InlinedCalls::describe(Dwarf_Die& die, Dwarf_Files* files, std::size_t file_count,
                                          std::uint32_t parent) {
    Call out{callee_of(die), parent, nullptr, 0, 0};
    Dwarf_Attribute value;
    Dwarf_Word file = 0, line = 0;
    if (files != nullptr && dwarf_formudata(dwarf_attr(&die, DW_AT_call_file, &value), &file) == 0 &&
        dwarf_formudata(dwarf_attr(&die, DW_AT_call_line, &value), &line) == 0 && file < file_count && line != 0 &&
        line <= std::numeric_limits<std::uint32_t>::max()) {
        out.file = dwarf_filesrc(files, file, nullptr, nullptr);
        out.line = static_cast<std::uint32_t>(line);
        out.discriminator = number_of(die, gnu_discriminator);
    }
    return out;
}

void InlinedCalls::read(Dwarf_Die unit, std::uint64_t bias, std::vector<Span>& spans) {
    Dwarf_Files* files = nullptr;
    std::size_t file_count = 0;
    if (dwarf_getsrcfiles(&unit, &files, &file_count) != 0) files = nullptr;
    struct Open {
        Dwarf_Die die;
        std::uint32_t call, depth;  // the innermost enclosing call, and the depth of nesting
    };
    // The entries from the unit down to the present one; their next siblings have not been visited yet.
    std::vector<Open> open;
    Open first_of{{}, none, 0};
    if (dwarf_child(&unit, &first_of.die) != 0) return;
    open.push_back(first_of);
    Dwarf_Off unread = 0;
    while (!open.empty()) {
        Open here = open.back();
        // In valid files the walk follows the order of offsets. A sibling that points back among the children would be
        // visited once for each path to it.
        const Dwarf_Off at = dwarf_dieoffset(&here.die);
        if (at < unread) return;
        unread = at + 1;
        if (dwarf_siblingof(&open.back().die, &open.back().die) != 0) open.pop_back();
        const int tag = dwarf_tag(&here.die);
        if (tag == DW_TAG_subprogram) {
            here.call = none;
            here.depth = 0;
            Dwarf_Addr base = 0, first = 0, end = 0;
            for (std::ptrdiff_t next = 0; (next = dwarf_ranges(&here.die, next, &base, &first, &end)) > 0;)
                if (first < end && bodies_.size() < most_spans) bodies_.push_back({first + bias, end + bias, here.die});
        }
        if (tag == DW_TAG_inlined_subroutine && here.depth < most_depth) {
            const auto number = static_cast<std::uint32_t>(calls_.size());
            Dwarf_Addr base = 0, first = 0, end = 0;
            bool any = false;
            for (std::ptrdiff_t next = 0; (next = dwarf_ranges(&here.die, next, &base, &first, &end)) > 0;)
                if (first < end && spans.size() < most_spans) {
                    spans.push_back({first + bias, end + bias, number, here.depth});
                    any = true;
                }
            // A call without code is not a caller.
            if (!any) continue;
            calls_.push_back(describe(here.die, files, file_count, here.call));
            here.call = number;
            ++here.depth;
        }
        if (is_data(tag)) continue;
        Open child = here;
        if (dwarf_child(&here.die, &child.die) == 0) open.push_back(child);
    }
}

/// Cuts nested spans into pieces: at each address the deepest span applies.
void InlinedCalls::cut(std::vector<Span>& spans) {
    std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
        return std::tuple(a.first, a.depth, b.end, a.call) < std::tuple(b.first, b.depth, a.end, b.call);
    });
    std::set<std::pair<std::uint32_t, std::size_t>> open;  // depth and index of open spans; the last one applies
    const auto put = [&](std::uint64_t first, std::uint64_t end) {
        while (!open.empty() && first < end) {
            const Span& top = spans[open.rbegin()->second];
            if (top.end <= first) {
                open.erase(std::prev(open.end()));
                continue;
            }
            const std::uint64_t until = std::min(end, top.end);
            if (!pieces_.empty() && pieces_.back().end == first && pieces_.back().call == top.call)
                pieces_.back().end = until;
            else
                pieces_.push_back({first, until, top.call});
            first = until;
        }
    };
    std::uint64_t from = 0;
    for (std::size_t i = 0; i < spans.size(); ++i) {
        put(from, spans[i].first);
        from = spans[i].first;
        open.emplace(spans[i].depth, i);
    }
    put(from, std::numeric_limits<std::uint64_t>::max());
}

InlinedCall InlinedCalls::with_names(const Call& call) const {
    const Callee& callee = callees_[call.callee];
    InlinedCall out;
    out.function = callee.function;
    out.linkage_name = callee.linkage_name;
    out.declared_line = callee.declared_line;
    if (call.file != nullptr) out.at = SourceLine{call.file, call.line, call.discriminator};
    return out;
}

InlinedPlace InlinedCalls::at(std::uint64_t address) const {
    InlinedPlace out{Address{address}, Address{address + 1}, {}};
    const auto after = std::upper_bound(pieces_.begin(), pieces_.end(), address,
                                        [](std::uint64_t a, const Piece& p) { return a < p.first; });
    if (after == pieces_.begin() || address >= (after - 1)->end) return out;
    const Piece& piece = *(after - 1);
    out.first = {piece.first};
    out.end = {piece.end};
    for (std::uint32_t call = piece.call; call != none; call = calls_[call].parent)
        out.calls.push_back(with_names(calls_[call]));
    std::reverse(out.calls.begin(), out.calls.end());
    return out;
}

std::optional<DeclaredFunction> InlinedCalls::function(std::uint64_t address) const {
    const auto after = std::upper_bound(bodies_.begin(), bodies_.end(), address,
                                        [](std::uint64_t a, const Body& b) { return a < b.first; });
    if (after == bodies_.begin() || address >= (after - 1)->end) return std::nullopt;
    Dwarf_Die die = (after - 1)->die;
    DeclaredFunction out{linkage_name_of(die), {}, by_llvm_};
    const char* const file = declared_in(die);
    out.at.line = number_of(die, DW_AT_decl_line);
    if (file == nullptr || out.at.line == 0) return std::nullopt;
    out.at.file = file;
    return out;
}

}  // namespace waymark::image
