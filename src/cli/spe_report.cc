/// `waymark spe report`: where sampled operations spend their cycles.
#include <algorithm>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>

#include "commands.h"
#include "options.h"
#include "spe_answers.h"
#include "waymark/analysis/profile.h"

namespace waymark::cli {

namespace {

namespace perf = capture::perf;
using analysis::Measures;
using analysis::Profile;
using nlohmann::ordered_json;

struct ReportOptions : AnswerOptions {
    std::string by = "function", sort = "cycles";
    std::size_t limit = 20;
};

/// What rows can be sorted and measured by.
struct Key {
    std::string_view name, head;
    std::uint64_t Measures::*member;
};
constexpr Key sort_keys[] = {
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
};
const Key& sort_key(std::string_view name) {
    return *std::find_if(std::begin(sort_keys), std::end(sort_keys) - 1, [&](const Key& k) { return k.name == name; });
}

/// Samples that belong together, and what they are called.
struct Group {
    std::string name, file;
    std::uint32_t line{};
    std::optional<std::uint64_t> pc{};
    Measures measures;
};

std::string pc_text(const Group& g) { return g.pc ? fmt::format("{:#x}", *g.pc) : std::string(); }

class Report {
public:
    Report(const ReportOptions& options, const Answer& answer, const Profile& profile)
        : options_(options), answer_(answer), profile_(profile), key_(sort_key(options.sort)), all_(profile.all()) {}

    void print(Output& out) {
        if (options_.format == "tsv")
            return options_.by == "source" ? sources(true).print_tsv(out) : rows().print_tsv(out);
        if (options_.format == "json") return out.write(json_text(json()) + "\n");
        answer_.print_quality(out, false);
        out.write("\n");
        if (options_.by == "source") {
            sources(true).print_text(out);
        } else {
            rows().print_text(out);
            if (left_out_ != 0) out.print("… and {} more; --limit 0 shows all\n", counted(left_out_, "row"));
        }
        out.write(few_samples_note);
        out.print("Latency in cycles, means of samples: total is issue (waiting to begin) and execution.\n");
        if (profile_.rest().samples != 0)
            out.print("{} at further addresses are counted in no row.\n", counted(profile_.rest().samples, "sample"));
        if (options_.by != "source") print_sources(out);
        print_events(out);
        print_latency(out);
    }

private:
    /// Groups in the order asked for.
    [[nodiscard]] std::vector<Group> groups() const {
        std::vector<Group> out;
        if (options_.by == "thread") {
            for (const auto& [thread, m] : profile_.threads())
                out.push_back({answer_.thread_text(thread.pid, thread.tid), {}, {}, {}, m});
        } else {
            out = places();
        }
        std::sort(out.begin(), out.end(), [&](const Group& a, const Group& b) {
            const auto rank = [&](const Group& g) {
                return std::make_tuple(~(g.measures.*key_.member), ~g.measures.total, ~g.measures.samples);
            };
            return std::tuple_cat(rank(a), std::tie(a.name, a.file, a.line, a.pc)) <
                   std::tuple_cat(rank(b), std::tie(b.name, b.file, b.line, b.pc));
        });
        return out;
    }

    [[nodiscard]] std::vector<Group> places() const {
        analysis::Program& program = answer_.program();
        std::map<std::tuple<std::uint32_t, std::uint64_t, std::string, std::uint32_t>, Group> found;
        for (std::size_t i = 0; i < profile_.places().size(); ++i) {
            const analysis::Place& place = profile_.places()[i];
            const Measures& m = profile_.measures()[i];
            const analysis::Program::Code code = program.find(place.mapping, place.pc);
            const auto& file = program.file(code.file);
            const std::string function = program.function_text(code.function);
            if (options_.by == "function") {
                // Of code that nobody knows the file of, addresses are all there is to tell.
                const bool bare = code.file == 0 && program.function(code.function).name.empty();
                Group& g = found[{code.function, bare ? place.pc : 0, {}, 0}];
                if (g.measures.samples == 0) {
                    g.name = bare ? fmt::format("{:#x}", place.pc) : function;
                    g.file = file.name;
                    if (bare) g.pc = place.pc;
                }
                g.measures += m;
            } else if (options_.by == "file") {
                Group& g = found[{code.file, 0, {}, 0}];
                g.name = g.file = file.name;
                g.measures += m;
            } else if (options_.by == "line") {
                const auto line = program.line(place.mapping, place.pc);
                Group& g = line ? found[{0, 0, line->file, line->line}] : found[{code.function, 0, {}, 0}];
                if (g.measures.samples == 0) {
                    g.name = line ? fmt::format("{}:{}", line->file, line->line) : function + " (no line)";
                    g.file = line ? line->file : file.name;
                    g.line = line ? line->line : 0;
                }
                g.measures += m;
            } else {
                const std::uint64_t pc = code.address ? code.address->value : place.pc;
                Group& g = found[{code.function, pc, file.name, place.exception_level}];
                if (g.measures.samples == 0) {
                    const auto& f = program.function(code.function);
                    g.name = f.name.empty() ? function : fmt::format("{}+{:#x}", f.name, pc - f.address.value);
                    if (const auto line = program.line(place.mapping, place.pc))
                        g.name += fmt::format("  {}:{}", analysis::Program::short_name(line->file), line->line);
                    g.file = file.name;
                    g.pc = pc;
                }
                g.measures += m;
            }
        }
        std::vector<Group> out;
        out.reserve(found.size());
        for (auto& [what, group] : found) out.push_back(std::move(group));
        return out;
    }

    [[nodiscard]] Table rows() {
        std::vector<Group> all = groups();
        if (options_.limit != 0 && all.size() > options_.limit) {
            left_out_ = all.size() - options_.limit;
            all.resize(options_.limit);
        }
        const bool by_pc = options_.by == "pc", by_thread = options_.by == "thread";
        // What the rows are sorted by is not told by a bar alone.
        const auto shown = [&](std::string_view key) { return options_.sort == key ? options_.sort : std::string(); };
        Table table({{"", std::string(key_.head), true, true},
                     {"samples", "samples "},
                     {"few", ""},
                     {"share", "of all samples"},
                     {"share_low", ""},
                     {"share_high", ""},
                     {"cycles", "cycles"},
                     {"mean_total", "total"},
                     {"mean_issue", "issue"},
                     {"mean_execution", "exec"},
                     {"mean_translation", "transl"},
                     {"pc", by_pc ? "address" : ""},
                     {options_.by, options_.by, true},
                     {"file", by_thread || options_.by == "file" ? "" : "in", true},
                     {"issue", ""},
                     {"execution", ""},
                     {"translation", ""},
                     {"longest", ""},
                     {"loads", ""},
                     {"stores", ""},
                     {"branches", ""},
                     {"walks", shown("walks")},
                     {"walk_translation", ""},
                     {"l1_misses", shown("l1-misses")},
                     {"llc_misses", shown("llc-misses")},
                     {"remote", shown("remote")},
                     {"from_other", shown("from-other")},
                     {"misaligned", shown("misaligned")},
                     {"mispredicts", shown("mispredicts")},
                     {"not_taken", ""},
                     {"not_retired", shown("not-retired")},
                     {"vector", shown("vector")},
                     {"atomics", shown("atomics")}});
        for (const Group& g : all) {
            const Measures& m = g.measures;
            const analysis::Interval interval = analysis::wilson_95(m.samples, all_.samples);
            table.add({Value(bar(m.*key_.member, all_.*key_.member), nullptr),
                       sample_count(m.samples),
                       Value({}, m.samples < analysis::few_samples),
                       share_with_interval(m.samples, all_.samples),
                       Value({}, interval.low),
                       Value({}, interval.high),
                       Value(m.total),
                       Value::mean(m.total, m.timed),
                       Value::mean(m.issue, m.issued),
                       Value::mean(m.execution, m.executed),
                       Value::mean(m.translation, m.translated),
                       g.pc ? Value(pc_text(g)) : Value(),
                       Value(g.name),
                       Value(std::string(analysis::Program::short_name(g.file)), g.file),
                       Value(m.issue),
                       Value(m.execution),
                       Value(m.translation),
                       Value(m.longest),
                       Value(m.loads),
                       Value(m.stores),
                       Value(m.branches),
                       Value(m.walks),
                       Value(m.walk_translation),
                       Value(m.l1_misses),
                       Value(m.llc_misses),
                       Value(m.remote),
                       Value(m.from_other),
                       Value(m.misaligned),
                       Value(m.mispredicts),
                       Value(m.not_taken),
                       Value(all_.not_retired == 0 ? Value() : Value(m.not_retired)),
                       Value(m.vector),
                       Value(m.atomics)});
        }
        return table;
    }

    /// Loads by where their data came from; with `functions` also by function.
    [[nodiscard]] Table sources(bool functions) {
        struct Sum {
            std::uint64_t samples{}, total{};
        };
        std::map<std::pair<std::string, std::string>, Sum> sums;
        std::uint64_t all = 0, cycles = 0;
        for (std::size_t i = 0; i < profile_.sources().size(); ++i) {
            const Profile::SourceKey& key = profile_.sources()[i];
            std::string function;
            if (functions) {
                const analysis::Place& place = profile_.places()[key.place];
                analysis::Program& program = answer_.program();
                const auto code = program.find(place.mapping, place.pc);
                function = code.file == 0 && program.function(code.function).name.empty()
                               ? fmt::format("{:#x}", place.pc)
                               : program.function_text(code.function);
            }
            Sum& sum = sums[{source_text(key.midr, key.code), function}];
            sum.samples += profile_.source_sums()[i].samples;
            sum.total += profile_.source_sums()[i].total;
            all += profile_.source_sums()[i].samples;
            cycles += profile_.source_sums()[i].total;
        }
        std::vector<std::pair<std::pair<std::string, std::string>, Sum>> order(sums.begin(), sums.end());
        std::stable_sort(order.begin(), order.end(),
                         [](const auto& a, const auto& b) { return a.second.total > b.second.total; });
        if (functions && options_.limit != 0 && order.size() > options_.limit) {
            left_out_ = order.size() - options_.limit;
            order.resize(options_.limit);
        }
        Table table({{"", "share of cycles", true, true},
                     {"loads", "loads "},
                     {"few", ""},
                     {"share", "of these loads"},
                     {"share_low", ""},
                     {"share_high", ""},
                     {"cycles", "cycles"},
                     {"mean_total", "total"},
                     {"source", "data from", true},
                     {"function", functions ? "function" : "", true}});
        for (const auto& [what, sum] : order) {
            const analysis::Interval interval = analysis::wilson_95(sum.samples, all);
            table.add({Value(bar(sum.total, cycles), nullptr), sample_count(sum.samples),
                       Value({}, sum.samples < analysis::few_samples), share_with_interval(sum.samples, all),
                       Value({}, interval.low), Value({}, interval.high), Value(sum.total),
                       Value::mean(sum.total, sum.samples), Value(what.first),
                       functions ? Value(what.second) : Value()});
        }
        return table;
    }

    void print_sources(Output& out) {
        out.write("\nwhere loads got their data\n");
        const Table table = sources(false);
        if (table.empty()) {
            out.print("  not known: {}\n", all_.loads == 0 ? "there are no loads" : "the core records no data source");
            return;
        }
        table.print_text(out, "  ");
        out.write("  waymark spe report --by source lists it by function\n");
    }

    struct EventRow {
        std::string_view name, of;
        std::uint64_t Measures::*member;
        std::uint64_t among{};
        Value mean{}, others{};
    };
    [[nodiscard]] std::vector<EventRow> event_rows() const {
        const Measures& m = all_;
        const auto others = [&](std::uint64_t sum, std::uint64_t count) {
            return count == 0 ? Value() : Value::mean(sum, count);
        };
        std::vector<EventRow> out;
        out.push_back({"table walk", "loads and stores", &Measures::walks, m.memory(),
                       Value::mean(m.walk_translation, m.walks),
                       others(m.translation - m.walk_translation, m.translated - std::min(m.translated, m.walks))});
        out.push_back({"L1 miss", "loads and stores", &Measures::l1_misses, m.memory()});
        out.push_back({"last-level miss", "loads and stores", &Measures::llc_misses, m.memory()});
        out.push_back({"other socket", "loads and stores", &Measures::remote, m.memory()});
        out.push_back({"from another core", "loads and stores", &Measures::from_other, m.memory()});
        out.push_back({"misaligned", "loads and stores", &Measures::misaligned, m.memory()});
        out.push_back({"atomic or ordered", "loads and stores", &Measures::atomics, m.memory(),
                       Value::mean(m.atomic_total, m.atomics)});
        out.push_back({"mispredicted", "branches", &Measures::mispredicts, m.branches});
        out.push_back({"not taken", "branches", &Measures::not_taken, m.branches});
        out.push_back({"not retired", "samples", &Measures::not_retired, m.samples});
        out.push_back({"vector", "samples", &Measures::vector, m.samples});
        out.push_back({"partial predicate", "vector operations", &Measures::partial, m.vector});
        out.push_back({"empty predicate", "vector operations", &Measures::empty, m.vector});
        return out;
    }

    void print_events(Output& out) const {
        out.write("\nwhat happened to them (a sample may count in several rows)\n");
        Table table({{"event", "event", true},
                     {"samples", "samples "},
                     {"share", "share", true},
                     {"of", "of", true},
                     {"most", "most of it in", true}});
        // The function with most of each.
        analysis::Program& program = answer_.program();
        std::unordered_map<std::uint32_t, Measures> functions;
        for (std::size_t i = 0; i < profile_.places().size(); ++i)
            functions[program.find(profile_.places()[i].mapping, profile_.places()[i].pc).function] +=
                profile_.measures()[i];
        for (const EventRow& row : event_rows()) {
            const std::uint64_t count = all_.*row.member;
            if (count == 0) continue;
            std::pair<std::uint64_t, std::string> most;
            for (const auto& [function, m] : functions) {
                if (m.*row.member == 0 || m.*row.member < most.first) continue;
                std::string name = program.function_text(function);
                if (m.*row.member > most.first || name < most.second) most = {m.*row.member, std::move(name)};
            }
            table.add({Value(std::string(row.name)), sample_count(count), share_with_interval(count, row.among),
                       Value(std::string(row.of)),
                       Value(fmt::format("{} ({})", most.second, Value::ratio(most.first, count).shown))});
        }
        if (table.empty())
            out.write("  no sample has such an event\n");
        else
            table.print_text(out, "  ");
        const Measures& m = all_;
        if (m.walks != 0)
            out.print("  A table walk costs {} cycles of translation, other accesses {}; walks are {} of translation\n",
                      Value::mean(m.walk_translation, m.walks).shown,
                      m.translated > m.walks
                          ? Value::mean(m.translation - m.walk_translation, m.translated - m.walks).shown
                          : "-",
                      Value::ratio(m.walk_translation, m.translation).shown);
        if (m.atomics != 0)
            out.print("  Atomic and ordered accesses take {} cycles, samples in all {}\n",
                      Value::mean(m.atomic_total, m.atomics).shown, Value::mean(m.total, m.timed).shown);
        if (m.not_retired == 0)
            out.write(
                "  Every sample was retired: the core does not sample speculation that was thrown away, or none "
                "was\n");
        if (m.vector != 0) {
            std::string lengths;
            for (const auto& [bits, count] : profile_.vector_lengths())
                lengths += fmt::format("{}{}: {}", lengths.empty() ? "" : ", ",
                                       bits == 0 ? "unknown length" : fmt::format("{} bits", bits), grouped(count));
            out.print("  Vector operations by length: {}\n", lengths);
        }
    }

    /// `64-127`.
    static std::string bucket_text(unsigned bucket) {
        if (bucket < 2) return std::to_string(bucket);
        return fmt::format("{}-{}", 1U << (bucket - 1), (1U << bucket) - 1);
    }
    [[nodiscard]] std::array<std::uint64_t, Profile::buckets> buckets() const {
        std::array<std::uint64_t, Profile::buckets> out{};
        for (const auto& kind : profile_.latency())
            for (unsigned b = 0; b < Profile::buckets; ++b) out[b] += kind[b];
        return out;
    }

    void print_latency(Output& out) const {
        out.write("\nhow long they took\n");
        Table table({{"cycles", "cycles"},
                     {"", "share of samples", true, true},
                     {"samples", "samples"},
                     {"loads", "loads"},
                     {"stores", "stores"},
                     {"branches", "branches"},
                     {"others", "others"}});
        const auto sums = buckets();
        unsigned first = 0, last = Profile::buckets;
        while (first < last && sums[first] == 0) ++first;
        while (last > first && sums[last - 1] == 0) --last;
        for (unsigned b = first; b < last; ++b)
            table.add({Value(bucket_text(b)), Value(bar(sums[b], all_.timed), nullptr), Value(sums[b]),
                       Value(profile_.latency()[0][b]), Value(profile_.latency()[1][b]),
                       Value(profile_.latency()[2][b]), Value(profile_.latency()[3][b])});
        if (table.empty())
            out.write("  not known: no sample has latencies\n");
        else
            table.print_text(out, "  ");
        if (profile_.saturated() != 0)
            out.print("  {} of them took {} cycles or more: their counters stopped there\n",
                      grouped(profile_.saturated()), grouped(all_.longest));
    }

    [[nodiscard]] ordered_json json() {
        ordered_json latency = ordered_json::array(), events = ordered_json::object(), lengths = ordered_json::object();
        for (unsigned b = 0; b < Profile::buckets; ++b) {
            if (buckets()[b] == 0) continue;
            latency.push_back({{"from", b == 0 ? 0U : 1U << (b - 1)},
                               {"to", (1U << b) - 1},
                               {"loads", profile_.latency()[0][b]},
                               {"stores", profile_.latency()[1][b]},
                               {"branches", profile_.latency()[2][b]},
                               {"others", profile_.latency()[3][b]}});
        }
        for (const EventRow& row : event_rows()) {
            const analysis::Interval i = analysis::wilson_95(all_.*row.member, row.among);
            events[std::string(row.name)] = {{"samples", all_.*row.member},
                                             {"of", row.of},
                                             {"among", row.among},
                                             {"share_low", i.low},
                                             {"share_high", i.high}};
        }
        for (const auto& [bits, count] : profile_.vector_lengths()) lengths[std::to_string(bits)] = count;
        const Table main = options_.by == "source" ? sources(true) : rows();
        return {{"quality", answer_.quality_json()},
                {"by", options_.by},
                {"rows", main.json()},
                {"rows_left_out", left_out_},
                {"samples_in_no_row", profile_.rest().samples},
                {"sources", sources(false).json()},
                {"events", events},
                {"walk_translation_cycles", all_.walk_translation},
                {"translation_cycles", all_.translation},
                {"retired_always", all_.not_retired == 0},
                {"vector_lengths", lengths},
                {"latency", latency},
                {"saturated", profile_.saturated()}};
    }

    const ReportOptions& options_;
    const Answer& answer_;
    const Profile& profile_;
    const Key& key_;
    Measures all_;
    std::size_t left_out_ = 0;
};

Status report(const ReportOptions& options) {
    auto answer = Answer::open(options);
    if (!answer) return fail(answer.error());
    Profile profile;
    answer->run(profile);
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    if (answer->quality().selected != 0) Report(options, *answer, profile).print(*out);
    return answer->finish(options, *out, options.by != "thread");
}

}  // namespace

Run add_spe_report(CLI::App& spe) {
    auto options = std::make_shared<ReportOptions>();
    CLI::App& command = *spe.add_subcommand("report", "Where sampled operations spend their cycles, and why");
    options->add_to(command);
    command
        .add_option("--by", options->by,
                    "What makes a row: function, line, pc, file, thread, or source (loads by where their data came "
                    "from, and function)")
        ->type_name("NAME")
        ->transform(one_of({"function", "line", "pc", "file", "thread", "source"}))
        ->capture_default_str();
    std::vector<std::string> keys;
    std::string list;
    for (const Key& key : sort_keys) {
        keys.emplace_back(key.name);
        list += (list.empty() ? "" : ", ") + std::string(key.name);
    }
    command.add_option("--sort", options->sort, "What rows are sorted by, and bars show: " + list)
        ->type_name("NAME")
        ->transform(one_of(keys))
        ->capture_default_str();
    command.add_option("--limit", options->limit, "Show so many rows; 0: all")
        ->type_name("N")
        ->check(not_negative())
        ->capture_default_str();
    command.footer(
        "The head shows how the samples were taken and what is missing. Every sample counts in exactly one row of a\n"
        "table, unless the table says otherwise. Cycles are those of the samples; a sample stands for as many\n"
        "operations as the interval says, so shares hold for the program, sums do not.\n"
        "tsv is the table of --by alone, with more columns; json is everything.\n"
        "\n"
        "  waymark spe report perf.data\n"
        "  waymark spe report perf.data --by line --sort llc-misses --symfs /srv/board-rootfs\n"
        "\n"
        "Exit status: 0 there are samples; 1 there are none, or something was lost under --strict; 2 usage;\n"
        "3 the capture cannot be read to its end, or the output not be written.\n");
    return [options] { return report(*options); };
}

}  // namespace waymark::cli
