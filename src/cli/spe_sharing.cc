/// `waymark spe sharing`: cache lines that several threads use.
#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <set>

#include "commands.h"
#include "options.h"
#include "spe_answers.h"
#include "waymark/analysis/profile.h"
#include "waymark/analysis/sharing.h"

namespace waymark::cli {

namespace {

namespace perf = capture::perf;
using analysis::Accessor;
using analysis::LineAccess;
using analysis::SharedLine;
using nlohmann::ordered_json;

struct SharingOptions : AnswerOptions {
    std::uint32_t line_bytes = 64;
    std::string sort = "kind";
    std::size_t limit = 10;
    bool all = false;
};

std::string line_text(const analysis::LineKey& key) {
    if (key.physical) return fmt::format("{:#x} physical", key.line);
    return fmt::format("{:#x}{}", key.line,
                       key.pid == perf::nobody ? std::string() : fmt::format(" of process {}", key.pid));
}

class SharingReport {
public:
    SharingReport(const SharingOptions& options, const Answer& answer, const analysis::LineCandidates& candidates,
                  const analysis::Sharing& sharing)
        : options_(options), answer_(answer), candidates_(candidates), sharing_(sharing), lines_(sharing.lines()) {
        if (!options.all)
            std::erase_if(lines_, [](const SharedLine& l) { return l.kind == SharedLine::Kind::true_sharing; });
        const auto by = [&](auto value) {
            std::stable_sort(lines_.begin(), lines_.end(),
                             [&](const SharedLine& a, const SharedLine& b) { return value(a) > value(b); });
        };
        if (options.sort == "samples") by([](const SharedLine& l) { return l.samples(); });
        if (options.sort == "cycles") by([](const SharedLine& l) { return l.total; });
        if (options.sort == "apart") by([](const SharedLine& l) { return l.apart; });
        if (options.sort == "from-other") by([](const SharedLine& l) { return l.from_other; });
        found_ = lines_.size();
        if (options.limit != 0 && lines_.size() > options.limit) lines_.resize(options.limit);
    }

    void print(Output& out) const {
        const std::string none = fmt::format("line of {} bytes is {} among the samples", options_.line_bytes,
                                             options_.all ? "used by several threads and written" : "shared falsely");
        if (options_.format != "text" && lines_.empty()) say("note", "no " + none);
        if (options_.format == "tsv") return print_tsv(out);
        if (options_.format == "json") return out.write(json_text(json()) + "\n");
        answer_.print_quality(out, false);
        out.print("accesses  {} with an address{}{}\n\n", grouped(candidates_.accesses()),
                  candidates_.without_address() == 0
                      ? std::string()
                      : fmt::format("; {} without one are left out", grouped(candidates_.without_address())),
                  candidates_.without_accessor() == 0 ? std::string()
                                                      : fmt::format("; of {} neither thread nor CPU is known",
                                                                    grouped(candidates_.without_accessor())));
        if (lines_.empty()) {
            out.print("No {}.\n", none);
            if (!options_.all) out.print("--all shows lines whose sharing is meant, too.\n");
            return;
        }
        summary().print_text(out);
        if (found_ > lines_.size())
            out.print("… and {}; --limit 0 shows all\n", counted(found_ - lines_.size(), "more line", "more lines"));
        out.write(few_samples_note);
        out.print(
            "apart: samples at places nobody else writes, while another thread writes elsewhere in the line.\n"
            "Widths of accesses are not recorded: places of different offsets may overlap.\n");
        if (sharing_.left_out() != 0)
            out.print("{} more had no room and are in no line.\n", counted(sharing_.left_out(), "sample"));
        for (const SharedLine& line : lines_) {
            const std::string variables = variables_of(line);
            out.print("\n{}: {} sharing{}{}\n", line_text(line.key), name(line.kind), variables.empty() ? "" : " of ",
                      variables);
            accesses(line).print_text(out, "  ");
        }
    }

private:
    [[nodiscard]] Table summary() const {
        Table table({{"sharing", "sharing", true},
                     {"samples", "samples "},
                     {"loads", "loads"},
                     {"stores", "stores"},
                     {"apart", "apart"},
                     {"threads", "threads"},
                     {"writers", "writers"},
                     {"from_other", "from other core"},
                     {"mean_total", "cycles"},
                     {"line", "line", true},
                     {"variables", "variable", true},
                     {"places", "written and read in", true}});
        for (const SharedLine& l : lines_) {
            std::set<std::string> functions;
            for (const LineAccess& a : l.accesses) functions.insert(function_of(a));
            std::string places;
            std::size_t shown = 0;
            for (const std::string& f : functions) {
                if (++shown > 3) break;
                places += (places.empty() ? "" : ", ") + f;
            }
            if (functions.size() > 3) places += fmt::format(" and {} more", functions.size() - 3);
            table.add({Value(std::string(name(l.kind))), sample_count(l.samples()), Value(l.loads), Value(l.stores),
                       Value(l.apart), Value(std::uint64_t{l.accessors}), Value(std::uint64_t{l.writers}),
                       Value(Value::ratio(l.from_other, l.samples()).shown, l.from_other),
                       Value::mean(l.total, l.samples()), Value(line_text(l.key)), Value(variables_of(l)),
                       Value(places)});
        }
        return table;
    }

    [[nodiscard]] std::string function_of(const LineAccess& a) const {
        analysis::Program& program = answer_.program();
        const auto code = program.find(a.mapping, a.pc);
        return program.function(code.function).name.empty() && code.file == 0 ? fmt::format("{:#x}", a.pc)
                                                                              : program.function_text(code.function);
    }
    /// `counters+0x8`; empty: no variable of a file, or only the physical address is known.
    [[nodiscard]] std::string variable_of(const SharedLine& line, const LineAccess& a) const {
        if (line.key.physical) return {};
        const auto found = answer_.program().variable(a.mapping, line.key.line + a.offset);
        if (!found) return {};
        return found->offset == 0 ? std::string(found->name) : fmt::format("{}+{:#x}", found->name, found->offset);
    }
    /// The names alone, at most three.
    [[nodiscard]] std::string variables_of(const SharedLine& line) const {
        if (line.key.physical) return {};
        std::set<std::string> names;
        for (const LineAccess& a : line.accesses)
            if (const auto found = answer_.program().variable(a.mapping, line.key.line + a.offset))
                names.emplace(found->name);
        constexpr std::size_t most = 3;
        std::string out;
        std::size_t shown = 0;
        for (const std::string& name : names) {
            if (++shown > most) break;
            out += (out.empty() ? "" : ", ") + name;
        }
        return names.size() > most ? out + fmt::format(" and {} more", names.size() - most) : out;
    }
    [[nodiscard]] std::string place_of(const LineAccess& a, bool whole) const {
        if (const auto line = answer_.program().line(a.mapping, a.pc))
            return fmt::format("{}:{}", whole ? line->file : analysis::Program::short_name(line->file), line->line);
        return fmt::format("{:#x}", a.pc);
    }
    [[nodiscard]] std::string accessor_text(const Accessor& a) const {
        return a.is_cpu() ? fmt::format("CPU {}", a.number()) : answer_.thread_text(perf::nobody, a.number());
    }

    /// One row for each offset, thread, function and line.
    [[nodiscard]] Table accesses(const SharedLine& line) const {
        Table table({{"offset", "offset"},
                     {"thread", "thread", true},
                     {"samples", "samples "},
                     {"loads", "loads"},
                     {"stores", "stores"},
                     {"from_other", "from other core"},
                     {"mean_total", "cycles"},
                     {"variable", "variable", true},
                     {"function", "function", true},
                     {"place", "at", true}});
        struct Sum {
            std::uint64_t loads{}, stores{}, total{}, from_other{};
        };
        std::map<std::tuple<std::uint32_t, Accessor, std::string, std::string>, Sum> rows;
        std::map<std::uint32_t, std::string> variables;
        for (const LineAccess& a : line.accesses) {
            variables.try_emplace(a.offset, variable_of(line, a));
            Sum& s = rows[{a.offset, a.accessor, function_of(a), place_of(a, false)}];
            (a.store ? s.stores : s.loads) += a.samples;
            s.total += a.total;
            s.from_other += a.from_other;
        }
        for (const auto& [what, s] : rows) {
            const auto& [offset, accessor, function, place] = what;
            const std::uint64_t samples = s.loads + s.stores;
            table.add({Value(fmt::format("+{:#04x}", offset), offset), Value(accessor_text(accessor)),
                       sample_count(samples), Value(s.loads), Value(s.stores),
                       Value(Value::ratio(s.from_other, samples).shown, s.from_other), Value::mean(s.total, samples),
                       Value(variables[offset]), Value(function), Value(place)});
        }
        return table;
    }

    void print_tsv(Output& out) const {
        Table table({{"line", ""},
                     {"pid", ""},
                     {"physical", ""},
                     {"sharing", ""},
                     {"offset", ""},
                     {"tid", ""},
                     {"cpu", ""},
                     {"store", ""},
                     {"samples", ""},
                     {"cycles", ""},
                     {"from_other", ""},
                     {"pc", ""},
                     {"function", ""},
                     {"place", ""},
                     {"variable", ""}});
        for (const SharedLine& l : lines_)
            for (const LineAccess& a : l.accesses) table.add(row(l, a));
        table.print_tsv(out);
    }
    [[nodiscard]] std::vector<Value> row(const SharedLine& l, const LineAccess& a) const {
        const auto hex = [](std::uint64_t v) { return Value(fmt::format("{:#x}", v)); };
        const auto number = [](bool known, std::uint64_t v) { return known ? Value(v) : Value(); };
        return {hex(l.key.line),
                number(!l.key.physical && l.key.pid != perf::nobody, l.key.pid),
                Value({}, l.key.physical),
                Value(std::string(name(l.kind))),
                Value(std::uint64_t{a.offset}),
                number(!a.accessor.is_cpu(), a.accessor.number()),
                number(a.accessor.is_cpu(), a.accessor.number()),
                Value({}, a.store),
                Value(a.samples),
                Value(a.total),
                Value(a.from_other),
                hex(a.pc),
                Value(function_of(a)),
                Value(place_of(a, true)),
                Value(variable_of(l, a))};
    }

    [[nodiscard]] ordered_json json() const {
        ordered_json lines = ordered_json::array();
        for (const SharedLine& l : lines_) {
            ordered_json accesses = ordered_json::array();
            for (const LineAccess& a : l.accesses) {
                const auto known = [](bool is, std::uint32_t v) { return is ? ordered_json(v) : ordered_json(); };
                accesses.push_back({{"offset", a.offset},
                                    {"tid", known(!a.accessor.is_cpu(), a.accessor.number())},
                                    {"cpu", known(a.accessor.is_cpu(), a.accessor.number())},
                                    {"store", a.store},
                                    {"samples", a.samples},
                                    {"cycles", a.total},
                                    {"from_other", a.from_other},
                                    {"pc", fmt::format("{:#x}", a.pc)},
                                    {"function", function_of(a)},
                                    {"place", place_of(a, true)},
                                    {"variable", variable_of(l, a)}});
            }
            lines.push_back(
                {{"line", fmt::format("{:#x}", l.key.line)},
                 {"physical", l.key.physical},
                 {"pid", l.key.physical || l.key.pid == perf::nobody ? ordered_json() : ordered_json(l.key.pid)},
                 {"sharing", name(l.kind)},
                 {"samples", l.samples()},
                 {"loads", l.loads},
                 {"stores", l.stores},
                 {"apart", l.apart},
                 {"threads", l.accessors},
                 {"writers", l.writers},
                 {"from_other", l.from_other},
                 {"cycles", l.total},
                 {"accesses", std::move(accesses)}});
        }
        return {{"quality", answer_.quality_json()},
                {"line_bytes", options_.line_bytes},
                {"accesses", candidates_.accesses()},
                {"without_address", candidates_.without_address()},
                {"without_accessor", candidates_.without_accessor()},
                {"without_room", sharing_.left_out()},
                {"lines_found", found_},
                {"lines", lines}};
    }

    const SharingOptions& options_;
    const Answer& answer_;
    const analysis::LineCandidates& candidates_;
    const analysis::Sharing& sharing_;
    std::vector<SharedLine> lines_;
    std::size_t found_ = 0;
};

Status sharing(const SharingOptions& options) {
    if (!std::has_single_bit(options.line_bytes) || options.line_bytes < 8 || options.line_bytes > (1U << 21)) {
        say("error",
            fmt::format("--line-size takes a power of two from 8 to 2097152 bytes, not {}", options.line_bytes));
        return usage;
    }
    auto answer = Answer::open(options);
    if (!answer) return fail(answer.error());
    analysis::LineCandidates candidates(options.line_bytes);
    answer->run(candidates);
    analysis::Sharing sharing(candidates);
    answer->run(sharing);
    auto out = Output::open(options.output, {options.capture});
    if (!out) return fail(out.error());
    if (!options.threads.empty() || !options.cpus.empty() || !options.functions.empty())
        say("note", "only the samples asked for were looked at: what is shared with others does not show");
    if (answer->quality().selected != 0) SharingReport(options, *answer, candidates, sharing).print(*out);
    return answer->finish(options, *out, true);
}

}  // namespace

Run add_spe_sharing(CLI::App& spe) {
    auto options = std::make_shared<SharingOptions>();
    CLI::App& command = *spe.add_subcommand("sharing", "Cache lines that several threads use, and whether in vain");
    options->add_to(command);
    command.add_option("--line-size", options->line_bytes, "Bytes of a cache line; larger: blocks, such as pages")
        ->type_name("BYTES")
        ->capture_default_str();
    command.add_flag("--all", options->all, "Also lines whose sharing is meant: all threads use the same places");
    command
        .add_option("--sort", options->sort,
                    "kind: false sharing first, then mixed; samples, cycles, apart, from-other: most of those first")
        ->type_name("NAME")
        ->transform(one_of({"kind", "samples", "cycles", "apart", "from-other"}))
        ->capture_default_str();
    command.add_option("--limit", options->limit, "Show so many lines; 0: all")
        ->type_name("N")
        ->check(not_negative())
        ->capture_default_str();
    command.footer(
        "A line is shared if several threads use it and one writes. It is shared falsely if no place that one of them\n"
        "writes is used by another: then the threads wait for each other over nothing, and moving the data apart\n"
        "helps. Lines are physical where samples have physical addresses (pa_enable=1), else of a process: then\n"
        "memory shared between processes is not seen as shared. Where threads are not known, CPUs are used instead.\n"
        "tsv has a row for each access of each line.\n"
        "\n"
        "  waymark spe sharing perf.data\n"
        "  waymark spe sharing perf.data --line-size 128 --all --sort cycles\n"
        "\n"
        "Exit status: 0 there are samples; 1 there are none, or something was lost under --strict; 2 usage;\n"
        "3 the capture cannot be read to its end, or the output not be written.\n");
    return [options] { return sharing(*options); };
}

}  // namespace waymark::cli
