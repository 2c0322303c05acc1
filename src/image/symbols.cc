#include "waymark/image/symbols.h"

#include <cxxabi.h>
#include <elf.h>
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "elf_file.h"

namespace waymark::image {
namespace {

/// Suffix of names for entries of the procedure linkage table.
constexpr std::string_view plt_suffix = "@plt";

struct Entry {
    std::string linkage_name;
    std::string demangled;  // empty: same as the linkage name
    std::uint64_t address{}, bytes{};
    std::uint64_t limit = highest;  // last address of its section; for symbols without a size
    SymbolKind kind{};
    isa::Isa isa{};
    bool global{};

    [[nodiscard]] std::string_view name() const { return demangled.empty() ? linkage_name : demangled; }
    [[nodiscard]] Symbol view() const { return {name(), linkage_name, Address{address}, bytes, kind, isa}; }
};

/// Two symbols of a file with the same address and name are one.
struct Named {
    std::uint64_t address;
    std::string_view name;
    friend bool operator==(const Named&, const Named&) = default;
};
struct NamedHash {
    std::size_t operator()(const Named& of) const {
        return std::hash<std::string_view>()(of.name) ^ static_cast<std::size_t>(of.address * 0x9e3779b97f4a7c15U);
    }
};

struct Mark {
    std::uint64_t address, limit;
    Contents contents;
};

/// A stretch [first, last] in which a lookup finds this entry. Stretches do not overlap.
struct Stretch {
    std::uint64_t first, last;
    std::size_t entry;
};

int rank(SymbolKind kind) {
    switch (kind) {
        case SymbolKind::function: return 0;
        case SymbolKind::object: return 1;
        case SymbolKind::none: return 2;
    }
    return 3;
}

/// Recognises $a, $t, $d, $x, each with an optional suffix as in `$d.realdata`.
std::optional<Contents> mapping_symbol(std::string_view name) {
    if (name.size() < 2 || name[0] != '$' || (name.size() > 2 && name[2] != '.')) return std::nullopt;
    switch (name[1]) {
        case 'a': return Contents::a32;
        case 't': return Contents::t32;
        case 'x': return Contents::a64;
        case 'd': return Contents::data;
        default: return std::nullopt;
    }
}

// A longer name is not readable.
constexpr std::size_t longest_demangled = std::size_t{1} << 16;
// Limit for the sum of a file's demangled names, for each byte of the file, and for the smallest file. Compilers' names
// grow to twice their length.
constexpr std::uint64_t most_demangled_per_file_byte = 16, most_demangled_at_least = std::uint64_t{1} << 20;

std::optional<std::string> run_demangler(const std::string& linkage_name) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(linkage_name.c_str(), nullptr, nullptr, &status), std::free);
    if (status != 0 || text == nullptr) return std::nullopt;
    return std::string(text.get());
}

/// Whether a demangled name would be absurdly long. Each substitution (`S_`, `S0_`, …) repeats an earlier part, so a
/// name's length can triple with every three substitutions, and the demangler itself has no limit. Names with many
/// substitutions are tried several times: at first the later ones are replaced by `Sa`, which is allowed at the same
/// places, and each attempt replaces a few less. So no attempt is much longer than the previous one.
bool grows_without_bound(const std::string& linkage_name) {
    constexpr std::size_t harmless = 18, step = 12;
    struct Part {
        std::size_t at, bytes;
    };
    std::vector<Part> substitutions;
    for (std::size_t i = 2; i < linkage_name.size(); ++i) {
        if (linkage_name[i] != 'S') continue;
        std::size_t end = i + 1;
        while (end < linkage_name.size() && ((linkage_name[end] >= '0' && linkage_name[end] <= '9') ||
                                             (linkage_name[end] >= 'A' && linkage_name[end] <= 'Z')))
            ++end;
        if (end == linkage_name.size() || linkage_name[end] != '_') continue;
        substitutions.push_back({i, end + 1 - i});
        i = end;
    }
    for (std::size_t kept = harmless; kept < substitutions.size(); kept += step) {
        std::string shorter = linkage_name.substr(0, substitutions[kept].at);
        for (std::size_t k = kept; k < substitutions.size(); ++k) {
            const std::size_t from = substitutions[k].at + substitutions[k].bytes;
            const std::size_t to = k + 1 < substitutions.size() ? substitutions[k + 1].at : linkage_name.size();
            shorter.append("Sa").append(linkage_name, from, to - from);
        }
        const std::optional<std::string> text = run_demangler(shorter);
        if (!text || text->size() > longest_demangled) return true;
    }
    return false;
}

}  // namespace

struct Symbols::State {
    Machines machines = Machines::arm;
    std::deque<Entry> entries;  // a deque: views stay valid while the table grows
    std::vector<Mark> marks;

    // The index is built at the first lookup after an addition.
    mutable std::mutex mutex;
    mutable std::atomic<bool> ready{false};
    mutable std::vector<std::size_t> order;  // indices; the best symbol first among equal addresses
    mutable std::vector<Stretch> pieces;
    mutable std::vector<Mark> sorted_marks;
    mutable std::unordered_map<std::string_view, std::size_t> by_linkage_name, by_name;

    struct HeldArea {
        std::string file;
        std::uint64_t first{}, last{}, offset{};
    };
    std::shared_ptr<const Symbols> base;  // null if there is none
    bool for_linux = false;
    std::deque<HeldArea> areas;
    mutable std::vector<const HeldArea*> sorted_areas;

    std::size_t add_elf(const ElfFile& elf, std::uint64_t load_bias);
    [[nodiscard]] const HeldArea* area_at(std::uint64_t address) const;
    void index() const;
    void index_addresses() const;
    void index_names() const;
};

std::string demangle(const std::string& linkage_name) {
    // Without this check, a symbol `i` would become `int`: every type name is also a mangled name.
    if (linkage_name.rfind("_Z", 0) != 0) return linkage_name;
    if (linkage_name.ends_with(plt_suffix))
        return demangle(linkage_name.substr(0, linkage_name.size() - plt_suffix.size())) + std::string(plt_suffix);
    // The demangler recurses into nested names; compilers do not write names near this length.
    constexpr std::size_t longest = 4096;
    if (linkage_name.size() > longest || grows_without_bound(linkage_name)) return linkage_name;
    const std::optional<std::string> text = run_demangler(linkage_name);
    return text && text->size() <= longest_demangled ? *text : linkage_name;
}

Symbols::Symbols() : state_(std::make_unique<State>()) {}
Symbols::~Symbols() = default;
Symbols::Symbols(Symbols&&) noexcept = default;
Symbols& Symbols::operator=(Symbols&&) noexcept = default;

Result<std::size_t> Symbols::add_elf(const std::filesystem::path& path, std::uint64_t load_bias) {
    WM_ASSIGN_OR_RETURN(SharedBytes file, map_file(path.string()));
    WM_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::open(std::move(file), path.string(), state_->machines));
    return state_->add_elf(elf, load_bias);
}

Result<std::size_t> Symbols::add_elf_bytes(std::vector<std::uint8_t> file, std::uint64_t load_bias, std::string name) {
    WM_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::open(share(std::move(file)), std::move(name), state_->machines));
    return state_->add_elf(elf, load_bias);
}

void Symbols::accept(Machines machines) { state_->machines = machines; }
void Symbols::set_base(std::shared_ptr<const Symbols> base) { state_->base = std::move(base); }

void Symbols::add(std::string linkage_name, Address address, std::uint64_t bytes, SymbolKind kind) {
    Entry entry;
    entry.demangled = demangle(linkage_name);
    if (entry.demangled == linkage_name) entry.demangled.clear();
    entry.linkage_name = std::move(linkage_name);
    entry.address = address.value;
    entry.bytes = bytes;
    entry.kind = kind;
    entry.global = true;
    state_->entries.push_back(std::move(entry));
    state_->ready = false;
}

std::size_t Symbols::State::add_elf(const ElfFile& elf, std::uint64_t load_bias) {
    const std::uint64_t mask = elf.is_32_bit() ? std::numeric_limits<std::uint32_t>::max() : highest;
    std::size_t added = 0;
    for_linux |= elf.is_for_linux();
    std::uint64_t demangled_left =
        std::max(elf.file().bytes.size() * most_demangled_per_file_byte, most_demangled_at_least);
    ready = false;
    std::vector<ElfFile::SymbolEntry> all = elf.symbols();
    for (const auto more : {&ElfFile::compressed_symbols, &ElfFile::linkage_symbols})
        for (ElfFile::SymbolEntry& symbol : (elf.*more)()) all.push_back(std::move(symbol));
    std::unordered_set<Named, NamedHash> seen;  // .dynsym repeats symbols of .symtab
    seen.reserve(all.size());
    for (ElfFile::SymbolEntry& symbol : all) {
        // An absolute symbol whose value happens to be in code does not name code.
        if (symbol.absolute) continue;
        // The section's last address, which must not wrap below its start.
        const std::uint64_t biased_end = (symbol.section_end + load_bias - 1) & mask;
        const bool in_section = symbol.section_end > symbol.section_start;
        const std::uint64_t address = (symbol.value + load_bias) & mask;
        // A label at the end of its section names only that address.
        const std::uint64_t limit = in_section ? std::max(biased_end, address) : mask;
        if (const auto contents = mapping_symbol(symbol.name)) {
            marks.push_back({address, limit, *contents});
            continue;
        }
        if (seen.contains({address, symbol.name})) continue;
        Entry entry;
        switch (symbol.type) {
            case STT_FUNC:
            case STT_GNU_IFUNC: entry.kind = SymbolKind::function; break;
            case STT_OBJECT: entry.kind = SymbolKind::object; break;
            case STT_NOTYPE: entry.kind = SymbolKind::none; break;
            default: continue;  // sections, files, thread-local offsets are not addresses of code
        }
        const bool thumb = elf.is_arm() && entry.kind == SymbolKind::function && (address & 1) != 0;
        entry.isa = elf.is_x86_64() ? isa::Isa::x86_64
                    : !elf.is_arm() ? isa::Isa::a64
                    : thumb         ? isa::Isa::t32
                                    : isa::Isa::a32;
        entry.address = thumb ? address - 1 : address;
        entry.bytes = symbol.bytes;
        entry.limit = limit;
        entry.global = symbol.binding != STB_LOCAL;
        if (demangled_left != 0) entry.demangled = demangle(symbol.name);
        // A name that failed to demangle may have grown to any length.
        const bool in_vain = entry.demangled == symbol.name && symbol.name.rfind("_Z", 0) == 0;
        if (entry.demangled == symbol.name) entry.demangled.clear();
        demangled_left -= std::min<std::uint64_t>(demangled_left, in_vain ? longest_demangled : entry.demangled.size());
        entry.linkage_name = std::move(symbol.name);
        entries.push_back(std::move(entry));
        seen.insert({address, entries.back().linkage_name});
        ++added;
    }
    return added;
}

void Symbols::State::index() const {
    if (ready.load(std::memory_order_acquire)) return;
    const std::scoped_lock lock(mutex);
    if (ready.load(std::memory_order_relaxed)) return;
    order.resize(entries.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        const auto key = [&](std::size_t i) {
            const Entry& e = entries[i];
            return std::tuple(e.address, rank(e.kind), !e.global, e.bytes == 0, i);
        };
        return key(a) < key(b);
    });
    index_addresses();
    index_names();
    sorted_marks = marks;
    std::stable_sort(sorted_marks.begin(), sorted_marks.end(),
                     [](const Mark& a, const Mark& b) { return a.address < b.address; });
    sorted_areas.clear();
    for (const HeldArea& area : areas) sorted_areas.push_back(&area);
    std::stable_sort(sorted_areas.begin(), sorted_areas.end(),
                     [](const HeldArea* a, const HeldArea* b) { return a->first < b->first; });
    ready.store(true, std::memory_order_release);
}

const Symbols::State::HeldArea* Symbols::State::area_at(std::uint64_t address) const {
    index();
    const auto after = std::upper_bound(sorted_areas.begin(), sorted_areas.end(), address,
                                        [](std::uint64_t a, const HeldArea* area) { return a < area->first; });
    return after == sorted_areas.begin() || address > (*(after - 1))->last ? nullptr : *(after - 1);
}

/// Cuts overlapping symbols into pieces, so that a lookup is one binary search. Symbols are sorted by address.
void Symbols::State::index_addresses() const {
    struct Span {
        std::uint64_t last;
        std::size_t entry;
    };
    pieces.clear();
    std::vector<Span> open;  // open symbols with a size: the innermost on top
    std::optional<Span>
        unsized{};  // an open symbol without a size: used only if no symbol with a size contains the place
    const auto cut = [&](std::uint64_t first, std::uint64_t last) {
        while (true) {
            while (!open.empty() && open.back().last < first) open.pop_back();
            if (open.empty()) {
                if (unsized && unsized->last >= first)
                    pieces.push_back({first, std::min(last, unsized->last), unsized->entry});
                return;
            }
            const std::uint64_t end = std::min(last, open.back().last);
            pieces.push_back({first, end, open.back().entry});
            if (end == last) return;
            first = end + 1;
        }
    };
    for (std::size_t i = 0; i < order.size();) {
        const std::uint64_t address = entries[order[i]].address;
        std::size_t next = i;
        while (next < order.size() && entries[order[next]].address == address) ++next;
        unsized.reset();
        // The best symbol is pushed last. A worse one with the same address has an effect only if it is longer.
        for (std::size_t k = next; k-- > i;) {
            const Entry& e = entries[order[k]];
            if (e.bytes == 0)
                unsized = Span{e.limit, order[k]};
            else
                open.push_back({e.bytes - 1 > highest - address ? highest : address + (e.bytes - 1), order[k]});
        }
        while (!open.empty() && open.back().last < address) open.pop_back();
        // A label inside a function does not end the function.
        if (!open.empty()) unsized.reset();
        cut(address, next < order.size() ? entries[order[next]].address - 1 : highest);
        i = next;
    }
}

void Symbols::State::index_names() const {
    by_linkage_name.clear();
    by_name.clear();
    // Global symbols first: the first entry keeps the name.
    for (const bool global : {true, false})
        for (std::size_t i = 0; i < entries.size(); ++i) {
            if (entries[i].global != global) continue;
            by_linkage_name.emplace(entries[i].linkage_name, i);
            by_name.emplace(entries[i].name(), i);
        }
}

std::optional<SymbolOffset> Symbols::find(Address address) const {
    state_->index();
    const auto& pieces = state_->pieces;
    const auto found = std::lower_bound(pieces.begin(), pieces.end(), address.value,
                                        [](const Stretch& p, std::uint64_t a) { return p.last < a; });
    if (found == pieces.end() || found->first > address.value)
        return state_->base ? state_->base->find(address) : std::nullopt;
    const Entry& entry = state_->entries[found->entry];
    return SymbolOffset{entry.name(), address.value - entry.address, entry.view()};
}

void Symbols::add_area(const std::string& file, Address first, std::uint64_t bytes, std::uint64_t offset) {
    if (bytes == 0) return;
    const std::uint64_t last = bytes - 1 > highest - first.value ? highest : first.value + (bytes - 1);
    state_->areas.push_back({file, first.value, last, offset});
    state_->ready = false;
}

std::optional<Symbols::Area> Symbols::area(Address address) const {
    const State::HeldArea* const held = state_->area_at(address.value);
    if (held == nullptr) return state_->base ? state_->base->area(address) : std::nullopt;
    const std::string_view file = held->file;
    const std::size_t slash = file.rfind('/');
    return Area{file, slash == file.npos ? file : file.substr(slash + 1), Address{held->first},
                held->last - held->first + 1, held->offset};
}

std::optional<Symbol> Symbols::function_before(Address address) const {
    const State::HeldArea* const where = state_->area_at(address.value);
    if (where == nullptr) return state_->base ? state_->base->function_before(address) : std::nullopt;
    // Symbols of data within code do not name code; there are at most a few in a row.
    constexpr unsigned most_steps = 256;
    const auto& order = state_->order;
    auto before = std::upper_bound(order.begin(), order.end(), address.value, [&](std::uint64_t a, std::size_t entry) {
        return a < state_->entries[entry].address;
    });
    for (unsigned i = 0; i < most_steps && before != order.begin(); ++i) {
        const Entry& entry = state_->entries[*--before];
        if (entry.address < where->first) break;
        if (entry.kind != SymbolKind::function) continue;
        // The procedure linkage table is a separate section: the code after it does not belong to its last entry.
        if (entry.linkage_name.ends_with(plt_suffix)) break;
        return entry.view();
    }
    return std::nullopt;
}

std::optional<Symbols::Nameless> Symbols::before(Address address) const {
    if (find(address)) return std::nullopt;
    const auto function = function_before(address);
    if (!function) return std::nullopt;
    const Address begin = function->address + std::min(function->bytes, address - function->address);
    return Nameless{fmt::format("{}+{:#x}?", function->name, begin - function->address), begin};
}

std::string Symbols::approximate(Address address) const {
    const auto where = area(address);
    if (!where) return {};
    if (const auto function = function_before(address))
        return fmt::format("{}+{:#x}?", function->name, address - function->address);
    return fmt::format("{}+{:#x}?", where->name.empty() ? "[no file]" : where->name,
                       address - where->first + where->offset);
}

std::string Symbols::text(Address address) const {
    const auto found = find(address);
    if (!found) return approximate(address);
    return found->offset == 0 ? std::string(found->name) : fmt::format("{}+{:#x}", found->name, found->offset);
}

std::optional<Address> Symbols::address_of(std::string_view name) const {
    state_->index();
    for (const auto* names : {&state_->by_linkage_name, &state_->by_name})
        if (const auto found = names->find(name); found != names->end())
            return Address{state_->entries[found->second].address};
    return state_->base ? state_->base->address_of(name) : std::nullopt;
}

std::optional<Address> Symbols::function_called(std::string_view name) const {
    if (const auto exact = address_of(name)) return exact;
    std::optional<Address> found;
    for (const Symbol& symbol : all()) {
        const bool fits = symbol.kind == SymbolKind::function && symbol.name.size() > name.size() &&
                          symbol.name.starts_with(name) && symbol.name[name.size()] == '(' &&
                          !symbol.linkage_name.ends_with(plt_suffix);
        if (!fits || found == symbol.address) continue;
        if (found) return std::nullopt;
        found = symbol.address;
    }
    return found;
}

std::optional<Contents> Symbols::contents(Address address) const {
    state_->index();
    const auto& marks = state_->sorted_marks;
    const auto after = std::upper_bound(marks.begin(), marks.end(), address.value,
                                        [](std::uint64_t a, const Mark& m) { return a < m.address; });
    if (after == marks.begin() || (after - 1)->limit < address.value)
        return state_->base ? state_->base->contents(address) : std::nullopt;
    return (after - 1)->contents;
}

bool Symbols::are_for_linux() const { return state_->for_linux || (state_->base && state_->base->are_for_linux()); }

std::size_t Symbols::size() const { return state_->entries.size() + (state_->base ? state_->base->size() : 0); }

std::vector<Symbol> Symbols::all() const {
    state_->index();
    std::vector<Symbol> result;
    result.reserve(state_->order.size());
    for (const std::size_t i : state_->order) result.push_back(state_->entries[i].view());
    if (!state_->base) return result;
    const std::vector<Symbol> below = state_->base->all();
    const auto middle = result.insert(result.end(), below.begin(), below.end());
    std::inplace_merge(result.begin(), middle, result.end(),
                       [](const Symbol& a, const Symbol& b) { return a.address < b.address; });
    return result;
}

}  // namespace waymark::image
