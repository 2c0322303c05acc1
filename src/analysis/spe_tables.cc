#include "waymark/analysis/spe_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "waymark/answers/interval.h"
#include "waymark/core/numbers.h"
#include "waymark/spe/record.h"

namespace waymark::analysis {

using answers::Cell;
using answers::Column;
using answers::Columns;
using answers::Table;

Cell sample_count(std::uint64_t samples) {
    return {grouped(samples) + (samples < answers::few_samples ? "*" : " "), samples};
}

Cell share_with_interval(std::uint64_t part, std::uint64_t all) {
    if (all == 0) return {};
    const answers::Interval i = answers::wilson_95(part, all);
    return {fmt::format("{} ({:.1f}-{:.1f}%)", share_text(part, all), 100 * i.low, 100 * i.high),
            static_cast<double>(part) / static_cast<double>(all)};
}

std::string source_text(std::uint32_t midr, std::uint32_t code) {
    const std::string_view name = spe::data_source_name(midr, code);
    return name.empty() ? fmt::format("unknown (code {})", code) : std::string(name);
}

std::string function_or_address(Program& program, std::uint32_t mapping, std::uint64_t pc) {
    const auto code = program.find(mapping, pc);
    // Code without a known file is identified by address alone.
    const bool bare = code.file == 0 && program.function(code.function).name.empty();
    return bare ? fmt::format("{:#x}", pc) : program.function_text(code.function);
}

namespace {

/// Quantities by which rows can be sorted and measured.
struct Key {
    std::string_view name, head;
    std::uint64_t Measures::*member;
};
constexpr std::array<Key, 15> keys{{
    {"cycles", "share of cycles", &Measures::total},
    {"samples", "share of samples", &Measures::samples},
    {"issue", "share of issue cycles", &Measures::issue},
    {"execution", "share of execution cycles", &Measures::execution},
    {"translation", "share of translation cycles", &Measures::translation},
    {"walks", "share of table walks", &Measures::walks},
    {"l1-misses", "share of L1 misses", &Measures::l1_misses},
    {"llc-misses", "share of last-level misses", &Measures::llc_misses},
    {"remote", "share of remote accesses", &Measures::remote},
    {"from-other", "share of accesses from other cores", &Measures::from_other},
    {"misaligned", "share of misaligned accesses", &Measures::misaligned},
    {"mispredicts", "share of mispredicts", &Measures::mispredicts},
    {"not-retired", "share of operations not retired", &Measures::not_retired},
    {"vector", "share of vector operations", &Measures::vector},
    {"atomics", "share of atomics", &Measures::atomics},
}};
const Key& key_of(std::string_view name) {
    return *std::find_if(keys.begin(), keys.end() - 1, [&](const Key& k) { return k.name == name; });
}

template <class Row>
std::size_t keep(std::vector<Row>& rows, std::size_t most) {
    if (most == 0 || rows.size() <= most) return 0;
    const std::size_t left_out = rows.size() - most;
    rows.erase(rows.begin() + static_cast<std::ptrdiff_t>(most), rows.end());
    return left_out;
}

/// Part of all samples, with its interval.
template <class Row, class Samples>
void add_shares(Columns<Row>& columns, const std::string& head, std::uint64_t all, Samples samples) {
    columns.add(Column::flag("few", "", "fewer than 30 samples: not reliable"),
                [=](const Row& r) { return Cell("", samples(r) < answers::few_samples); });
    columns.add(Column::real("share", head, "part of these samples"),
                [=](const Row& r) { return share_with_interval(samples(r), all); });
    columns.add(Column::real("share_low", "", "least share, with 95 % confidence (Wilson)"),
                [=](const Row& r) { return Cell("", answers::wilson_95(samples(r), all).low); });
    columns.add(Column::real("share_high", "", "greatest share, with 95 % confidence"),
                [=](const Row& r) { return Cell("", answers::wilson_95(samples(r), all).high); });
}

}  // namespace

std::vector<std::string> profile_sort_keys() {
    std::vector<std::string> out;
    for (const Key& key : keys) out.emplace_back(key.name);
    return out;
}

// ---- profiles

/// Samples that form one row, and the row's name.
struct ProfileTables::Group {
    std::string name, file;
    std::uint32_t line{};
    std::optional<std::uint64_t> pc{};
    Measures measures;
};

std::vector<ProfileTables::Group> ProfileTables::groups(const std::string& by) const {
    std::vector<Group> out;
    if (by == "thread") {
        for (const auto& [thread, m] : profile_.threads())
            out.push_back({thread_(thread.pid, thread.tid), {}, {}, {}, m});
        return out;
    }
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::string, std::uint32_t>, Group> found;
    for (std::size_t i = 0; i < profile_.places().size(); ++i) {
        const SampledPlace& place = profile_.places()[i];
        const Program::Code code = program_.find(place.mapping, place.pc);
        const std::string& file = program_.file(code.file).name;
        const auto line = by == "line" ? program_.line(place.mapping, place.pc) : std::nullopt;
        const bool bare = code.file == 0 && program_.function(code.function).name.empty();
        const std::uint64_t pc = code.address ? code.address->value : place.pc;
        Group& g = by == "function" ? found[{code.function, bare ? place.pc : 0, {}, 0}]
                   : by == "file"   ? found[{code.file, 0, {}, 0}]
                   : by == "pc"     ? found[{code.function, pc, file, place.exception_level}]
                   : line           ? found[{0, 0, line->file, line->line}]
                                    : found[{code.function, 0, {}, 0}];
        const bool fresh = g.measures.samples == 0;
        g.measures += profile_.measures()[i];
        if (!fresh) continue;
        g.file = file;
        if (by == "function") {
            g.name = function_or_address(program_, place.mapping, place.pc);
            if (bare) g.pc = place.pc;
        } else if (by == "file") {
            g.name = file;
        } else if (line) {
            g.name = fmt::format("{}:{}", line->file, line->line);
            g.file = line->file;
            g.line = line->line;
        } else if (by == "line") {
            g.name = program_.function_text(code.function) + " (no line)";
        } else {
            const auto& f = program_.function(code.function);
            g.name = f.name.empty() ? program_.function_text(code.function)
                                    : fmt::format("{}+{:#x}", f.name, pc - f.address.value);
            if (const auto at = program_.line(place.mapping, place.pc))
                g.name += fmt::format("  {}:{}", Program::short_name(at->file), at->line);
            g.pc = pc;
        }
    }
    out.reserve(found.size());
    for (auto& [what, group] : found) out.push_back(std::move(group));
    return out;
}

FirstRows ProfileTables::rows(const std::string& by, const std::string& sort, std::size_t most) const {
    const Key& key = key_of(sort);
    const Measures& all = profile_.all();
    std::vector<Group> rows = groups(by);
    std::sort(rows.begin(), rows.end(), [&](const Group& a, const Group& b) {
        const auto rank = [&](const Group& g) {
            return std::make_tuple(~(g.measures.*key.member), ~g.measures.total, ~g.measures.samples);
        };
        return std::tuple_cat(rank(a), std::tie(a.name, a.file, a.line, a.pc)) <
               std::tuple_cat(rank(b), std::tie(b.name, b.file, b.line, b.pc));
    });
    FirstRows out;
    out.left_out = keep(rows, most);
    Columns<Group> columns;
    columns.add(Column::bar(std::string(key.head)),
                [&](const Group& g) { return Cell::bar(g.measures.*key.member, all.*key.member); });
    columns.add(Column::count("samples", "samples ", "of the row"),
                [](const Group& g) { return sample_count(g.measures.samples); });
    add_shares(columns, "of all samples", all.samples, [](const Group& g) { return g.measures.samples; });
    const auto count = [&](const char* name, const std::string& head, std::uint64_t Measures::*member, const char* what,
                           const char* unit = "") {
        columns.add(Column::count(name, head, what, unit), [member](const Group& g) { return g.measures.*member; });
    };
    const auto mean = [&](const char* name, const char* head, std::uint64_t Measures::*sum, std::uint64_t Measures::*of,
                          const char* what) {
        columns.add(Column::real(name, head, what, "cycles"),
                    [=](const Group& g) { return Cell::mean(g.measures.*sum, g.measures.*of); });
    };
    count("cycles", "cycles", &Measures::total, "sum of total latencies", "cycles");
    mean("mean_total", "total", &Measures::total, &Measures::timed, "mean total latency");
    mean("mean_issue", "issue", &Measures::issue, &Measures::issued, "mean wait until issue");
    mean("mean_execution", "exec", &Measures::execution, &Measures::executed, "mean from issue to completion");
    mean("mean_translation", "transl", &Measures::translation, &Measures::translated, "mean wait for translation");
    columns.add(Column::address("pc", by == "pc" ? "address" : "", "address, of rows that have one"),
                [](const Group& g) { return g.pc ? Cell(fmt::format("{:#x}", *g.pc)) : Cell(); });
    columns.add(Column::text(by, by, "what the row is about"), [](const Group& g) { return g.name; });
    columns.add(Column::text("file", by == "thread" || by == "file" ? "" : "in", "program, library or source file"),
                [](const Group& g) { return Cell(Program::short_name(g.file), g.file); });
    // Readers always see the column that rows are sorted by.
    const auto shown = [&](std::string_view name) { return sort == name ? sort : std::string(); };
    count("issue", "", &Measures::issue, "sum of waits until issue", "cycles");
    count("execution", "", &Measures::execution, "sum of times from issue to completion", "cycles");
    count("translation", "", &Measures::translation, "sum of waits for translation", "cycles");
    count("longest", "", &Measures::longest, "longest total latency", "cycles");
    count("loads", "", &Measures::loads, "samples of loads");
    count("stores", "", &Measures::stores, "samples of stores");
    count("branches", "", &Measures::branches, "samples of branches");
    count("walks", shown("walks"), &Measures::walks, "samples with a table walk");
    count("walk_translation", "", &Measures::walk_translation, "of these: sum of waits for translation", "cycles");
    count("l1_misses", shown("l1-misses"), &Measures::l1_misses, "samples that missed the L1 cache");
    count("llc_misses", shown("llc-misses"), &Measures::llc_misses, "samples that missed the last-level cache");
    count("remote", shown("remote"), &Measures::remote, "samples with data from another socket");
    count("from_other", shown("from-other"), &Measures::from_other, "samples with data from another core's cache");
    count("misaligned", shown("misaligned"), &Measures::misaligned, "samples of misaligned accesses");
    count("mispredicts", shown("mispredicts"), &Measures::mispredicts, "samples of mispredicted branches");
    count("not_taken", "", &Measures::not_taken, "samples of branches that were not taken");
    columns.add(Column::count("not_retired", shown("not-retired"), "samples that did not retire; empty: all did"),
                [&](const Group& g) { return all.not_retired == 0 ? Cell() : Cell(g.measures.not_retired); });
    count("vector", shown("vector"), &Measures::vector, "samples of vector operations");
    count("atomics", shown("atomics"), &Measures::atomics, "samples of atomic and ordered accesses");
    out.table = columns.table(rows);
    return out;
}

FirstRows ProfileTables::sources(bool functions, std::size_t most) const {
    struct Sum {
        std::uint64_t samples{}, total{};
    };
    std::map<std::pair<std::string, std::string>, Sum> sums;
    std::uint64_t all = 0, cycles = 0;
    for (std::size_t i = 0; i < profile_.sources().size(); ++i) {
        const Profile::SourceKey& key = profile_.sources()[i];
        const SampledPlace& place = profile_.places()[key.place];
        Sum& sum = sums[{source_text(key.midr, key.code),
                         functions ? function_or_address(program_, place.mapping, place.pc) : std::string()}];
        sum.samples += profile_.source_sums()[i].samples;
        sum.total += profile_.source_sums()[i].total;
        all += profile_.source_sums()[i].samples;
        cycles += profile_.source_sums()[i].total;
    }
    using Row = std::pair<std::pair<std::string, std::string>, Sum>;
    std::vector<Row> rows(sums.begin(), sums.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Row& a, const Row& b) { return a.second.total > b.second.total; });
    FirstRows out;
    out.left_out = functions ? keep(rows, most) : 0;
    Columns<Row> columns;
    columns.add(Column::bar("share of cycles"), [=](const Row& r) { return Cell::bar(r.second.total, cycles); });
    columns.add(Column::count("loads", "loads ", "samples of loads"),
                [](const Row& r) { return sample_count(r.second.samples); });
    add_shares(columns, "of these loads", all, [](const Row& r) { return r.second.samples; });
    columns.add(Column::count("cycles", "cycles", "sum of total latencies", "cycles"),
                [](const Row& r) { return r.second.total; });
    columns.add(Column::real("mean_total", "total", "mean total latency", "cycles"),
                [](const Row& r) { return Cell::mean(r.second.total, r.second.samples); });
    columns.add(Column::text("source", "data from", "as the core's documentation calls it"),
                [](const Row& r) { return r.first.first; });
    columns.add(Column::text("function", functions ? "function" : "", "it was loaded in"),
                [=](const Row& r) { return functions ? Cell(r.first.second) : Cell(); });
    out.table = columns.table(rows);
    return out;
}

std::vector<ProfileTables::Event> ProfileTables::events() const {
    const Measures& m = profile_.all();
    constexpr std::string_view memory = "loads and stores", vectors = "vector operations";
    return {{"table walk", memory, &Measures::walks, m.memory()},
            {"L1 miss", memory, &Measures::l1_misses, m.memory()},
            {"last-level miss", memory, &Measures::llc_misses, m.memory()},
            {"other socket", memory, &Measures::remote, m.memory()},
            {"from another core", memory, &Measures::from_other, m.memory()},
            {"misaligned", memory, &Measures::misaligned, m.memory()},
            {"atomic or ordered", memory, &Measures::atomics, m.memory()},
            {"mispredicted", "branches", &Measures::mispredicts, m.branches},
            {"not taken", "branches", &Measures::not_taken, m.branches},
            {"not retired", "samples", &Measures::not_retired, m.samples},
            {"vector", "samples", &Measures::vector, m.samples},
            {"partial predicate", vectors, &Measures::partial, m.vector},
            {"empty predicate", vectors, &Measures::empty, m.vector}};
}

Table ProfileTables::event_table() const {
    const Measures& all = profile_.all();
    std::unordered_map<std::uint32_t, Measures> functions;
    for (std::size_t i = 0; i < profile_.places().size(); ++i)
        functions[program_.find(profile_.places()[i].mapping, profile_.places()[i].pc).function] +=
            profile_.measures()[i];
    std::vector<Event> rows = events();
    std::erase_if(rows, [&](const Event& e) { return all.*e.member == 0; });
    Columns<Event> columns;
    columns.add(Column::text("event", "event", "what happened to them"), [](const Event& e) { return e.name; });
    columns.add(Column::count("samples", "samples ", "with the event"),
                [&](const Event& e) { return sample_count(all.*e.member); });
    columns.add(Column::real("share", "share", "part of those that can have it"),
                [&](const Event& e) { return share_with_interval(all.*e.member, e.among); });
    columns.add(Column::text("of", "of", "which can have it"), [](const Event& e) { return e.of; });
    columns.add(Column::text("most", "most of it in", "the function with most of it"), [&](const Event& e) {
        std::pair<std::uint64_t, std::string> most;
        for (const auto& [function, m] : functions) {
            if (m.*e.member == 0 || m.*e.member < most.first) continue;
            std::string name = program_.function_text(function);
            if (m.*e.member > most.first || name < most.second) most = {m.*e.member, std::move(name)};
        }
        return Cell(fmt::format("{} ({})", most.second, share_text(most.first, all.*e.member)));
    });
    return columns.table(rows);
}

Table ProfileTables::latency_table() const {
    struct Row {
        unsigned bucket{};
        std::uint64_t all{};
    };
    std::vector<Row> rows;
    for (unsigned b = 0; b < Profile::buckets; ++b) {
        std::uint64_t sum = 0;
        for (const auto& kind : profile_.latency()) sum += kind[b];
        if (sum != 0 || !rows.empty()) rows.push_back({b, sum});
    }
    while (!rows.empty() && rows.back().all == 0) rows.pop_back();
    Columns<Row> columns;
    columns.add(Column::count("cycles", "cycles", "total latency, from and to", "cycles"), [](const Row& r) {
        return r.bucket < 2 ? std::to_string(r.bucket)
                            : fmt::format("{}-{}", 1U << (r.bucket - 1), (1U << r.bucket) - 1);
    });
    columns.add(Column::bar("share of samples"), [&](const Row& r) { return Cell::bar(r.all, profile_.all().timed); });
    columns.add(Column::count("samples", "samples", "that took so long"), [](const Row& r) { return r.all; });
    constexpr std::array<const char*, Profile::kinds> kinds{"loads", "stores", "branches", "others"};
    for (std::size_t k = 0; k < kinds.size(); ++k)
        columns.add(Column::count(kinds[k], kinds[k], "of these"),
                    [&, k](const Row& r) { return profile_.latency()[k][r.bucket]; });
    return columns.table(rows);
}

// ---- branches

namespace {

/// A branch kind as text: `conditional`, `indirect call`, `return`.
std::string kind_text(std::uint8_t operation_type) {
    const spe::Operation o = spe::operation(spe::OperationClass::branch, operation_type);
    using Call = spe::Operation::Call;
    if (o.call == Call::procedure_return) return "return";
    std::string out;
    const auto word = [&](bool is, std::string_view text) {
        if (is) out += (out.empty() ? "" : " ") + std::string(text);
    };
    word(o.conditional, "conditional");
    word(o.indirect, "indirect");
    word(o.call == Call::call, "call");
    return out.empty() ? "direct" : out;
}

/// A place as text: `function+0x10`, and the line if it is known.
std::string place_text(Program& program, std::uint32_t mapping, std::uint64_t pc) {
    const auto code = program.find(mapping, pc);
    const auto& f = program.function(code.function);
    if (f.name.empty())
        return code.file == 0 ? fmt::format("{:#x}", pc)
                              : fmt::format("{}+{:#x}", Program::short_name(program.file(code.file).name),
                                            code.address ? code.address->value : pc);
    std::string out = fmt::format("{}+{:#x}", f.name, code.address ? code.address->value - f.address.value : 0);
    if (const auto line = program.line(mapping, pc))
        out += fmt::format(" {}:{}", Program::short_name(line->file), line->line);
    return out;
}

/// Branches at one place, or from one place to another.
struct BranchRow {
    std::string from, to, kind, file;
    std::uint64_t from_address{}, to_address{};
    BranchSum sum;
    std::size_t targets{};  ///< of taken ones
};

std::vector<BranchRow> branch_rows(const Branches& branches, Program& program, bool pairs) {
    // The same code may be mapped at many addresses, so rows are keyed by place in a file.
    std::map<std::tuple<std::string, std::uint64_t, std::uint8_t, std::string, std::uint64_t>, BranchRow> found;
    std::map<std::pair<std::string, std::uint64_t>, std::set<std::uint64_t>> targets;
    for (std::size_t i = 0; i < branches.pairs().size(); ++i) {
        const BranchPair& p = branches.pairs()[i];
        const auto from = program.find(p.mapping, p.from);
        const std::uint32_t to_mapping = p.has_target ? program.mapping_beside(p.mapping, p.to) : 0;
        const auto to = program.find(to_mapping, p.to);
        const std::string& file = program.file(from.file).name;
        const std::uint64_t from_address = from.address ? from.address->value : p.from;
        const std::uint64_t to_address = to.address ? to.address->value : p.to;
        BranchRow& row = pairs ? found[{file, from_address, p.operation_type, program.file(to.file).name, to_address}]
                               : found[{file, from_address, p.operation_type, {}, 0}];
        if (row.sum.samples == 0) {
            row.from = place_text(program, p.mapping, p.from);
            row.file = file;
            row.from_address = from_address;
            row.kind = kind_text(p.operation_type);
            if (pairs) {
                row.to = p.has_target ? place_text(program, to_mapping, p.to) : "unknown";
                row.to_address = p.has_target ? to_address : 0;
            }
        }
        row.sum += branches.sums()[i];
        if (p.has_target && branches.sums()[i].taken() != 0) targets[{file, from_address}].insert(to_address);
    }
    std::vector<BranchRow> out;
    out.reserve(found.size());
    for (auto& [what, row] : found) {
        row.targets = targets[{row.file, row.from_address}].size();
        out.push_back(std::move(row));
    }
    return out;
}

Cell plain_hex(std::uint64_t value) { return fmt::format("{:#x}", value); }

}  // namespace

FirstRows branch_table(const Branches& branches, Program& program, bool pairs, bool by_samples, std::size_t most) {
    std::vector<BranchRow> rows = branch_rows(branches, program, pairs);
    std::stable_sort(rows.begin(), rows.end(), [&](const BranchRow& a, const BranchRow& b) {
        const auto rank = [&](const BranchRow& r) {
            return by_samples ? std::pair(r.sum.samples, r.sum.mispredicts)
                              : std::pair(r.sum.mispredicts, r.sum.samples);
        };
        return rank(a) > rank(b);
    });
    FirstRows out;
    out.left_out = keep(rows, most);
    const BranchSum& all = branches.all();
    Columns<BranchRow> columns;
    columns.add(Column::bar(by_samples ? "share of branches" : "share of mispredicts"), [&](const BranchRow& r) {
        return by_samples ? Cell::bar(r.sum.samples, all.samples) : Cell::bar(r.sum.mispredicts, all.mispredicts);
    });
    columns.add(Column::count("samples", "samples ", "of the branch"),
                [](const BranchRow& r) { return sample_count(r.sum.samples); });
    columns.add(Column::count("mispredicts", "mispredicts", "of these"),
                [](const BranchRow& r) { return r.sum.mispredicts; });
    columns.add(Column::real("mispredict_share", "mispredicted", "part of samples"),
                [](const BranchRow& r) { return share_with_interval(r.sum.mispredicts, r.sum.samples); });
    columns.add(Column::count("not_taken", "", "samples in which it was not taken"),
                [](const BranchRow& r) { return r.sum.not_taken; });
    columns.add(Column::real("taken_share", "taken", "part of samples"),
                [](const BranchRow& r) { return Cell::share(r.sum.taken(), r.sum.samples); });
    columns.add(Column::count("not_retired", "", "samples that did not retire"),
                [](const BranchRow& r) { return r.sum.not_retired; });
    columns.add(Column::count("cycles", "", "sum of total latencies", "cycles"),
                [](const BranchRow& r) { return r.sum.total; });
    columns.add(Column::real("mean_total", "cycles", "mean total latency", "cycles"),
                [](const BranchRow& r) { return Cell::mean(r.sum.total, r.sum.samples); });
    columns.add(Column::count("targets", pairs ? "" : "targets", "different ones it was taken to"),
                [](const BranchRow& r) { return std::uint64_t{r.targets}; });
    columns.add(Column::text("kind", "kind", "direct, conditional, indirect, call, indirect call or return"),
                [](const BranchRow& r) { return r.kind; });
    columns.add(Column::address("from_address", "", "of the branch in its file"),
                [](const BranchRow& r) { return plain_hex(r.from_address); });
    columns.add(Column::text("from", "from", "function, distance from its beginning, line of source"),
                [](const BranchRow& r) { return r.from; });
    columns.add(Column::address("to_address", "", "of the target in its file"),
                [=](const BranchRow& r) { return pairs ? plain_hex(r.to_address) : Cell(); });
    columns.add(Column::text("to", pairs ? "to" : "", "as from"), [](const BranchRow& r) { return r.to; });
    columns.add(Column::text("file", "in", "program or library of the branch"),
                [](const BranchRow& r) { return Cell(Program::short_name(r.file), r.file); });
    out.table = columns.table(rows);
    return out;
}

}  // namespace waymark::analysis
