/// `waymark spe sharing`: cache lines that several threads use.
#include <algorithm>
#include <bit>
#include <memory>

#include "../options.h"
#include "answers.h"
#include "commands.h"
#include "waymark/analysis/spe_tables.h"

namespace waymark::cli {

namespace {

namespace perf = capture::perf;
using analysis::SharedLine;
using nlohmann::ordered_json;

struct SharingOptions : AnswerOptions {
    std::uint32_t line_bytes = 64;
    std::string sort = "kind";
    std::size_t limit = 10;
    bool all = false;
};

class SharingReport {
public:
    SharingReport(const SharingOptions& options, const Answer& answer, const analysis::LineCandidates& candidates,
                  const analysis::Sharing& sharing)
        : options_(options),
          answer_(answer),
          candidates_(candidates),
          sharing_(sharing),
          tables_(answer.program(),
                  [&answer](std::uint32_t pid, std::uint32_t tid) { return answer.thread_text(pid, tid); }),
          lines_(sharing.lines()) {
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
        const std::string none =
            candidates_.accesses() == 0
                ? std::string("sample of an access has an address and a thread or CPU, so sharing is not known")
                : fmt::format("line of {} bytes is {} among the samples", options_.line_bytes,
                              options_.all ? "used by several threads and written" : "shared falsely");
        if (options_.format != "text" && lines_.empty()) say("note", "no " + none);
        if (options_.format == "tsv") return print_tsv(out, tables_.accesses(lines_, true));
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
            if (!options_.all && candidates_.accesses() != 0) out.print("--all also shows true sharing.\n");
            return;
        }
        print_text(out, tables_.summary(lines_));
        if (found_ > lines_.size())
            out.print("… and {}; --limit 0 shows all\n", counted(found_ - lines_.size(), "more line", "more lines"));
        out.write(few_samples_note);
        out.print(
            "apart: samples of bytes that no other thread writes, while another thread writes other bytes of the "
            "line.\n"
            "Widths of accesses are not recorded: places of different offsets may overlap.\n");
        if (sharing_.left_out() != 0)
            out.print("{} more had no room and are in no line.\n", counted(sharing_.left_out(), "sample"));
        for (const SharedLine& line : lines_) {
            const std::string variables = tables_.variables_of(line);
            out.print("\n{}: {} sharing{}{}\n", analysis::line_text(line.key), name(line.kind),
                      variables.empty() ? "" : " of ", variables);
            print_text(out, tables_.places(line), 0, "  ");
        }
    }

private:
    [[nodiscard]] ordered_json json() const {
        ordered_json lines = ordered_json::array();
        for (const SharedLine& l : lines_) {
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
                 {"accesses", to_json(tables_.accesses({l}, false))}});
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
    analysis::SharingTables tables_;
    std::vector<SharedLine> lines_;
    std::size_t found_ = 0;
};

ExitStatus sharing(const SharingOptions& options) {
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
        say("note", "only the selected samples were examined: sharing with other threads or CPUs is not shown");
    if (answer->quality().selected != 0) SharingReport(options, *answer, candidates, sharing).print(*out);
    return answer->finish(options, *out, true);
}

}  // namespace

Run add_spe_sharing(const Command& spe) {
    auto options = std::make_shared<SharingOptions>();
    const Command command = spe.add("sharing");
    options->add_to(command);
    command.option("--line-size", options->line_bytes);
    command.flag("--all", options->all);
    command.option("--sort", options->sort);
    command.option("--limit", options->limit);
    return [options] { return sharing(*options); };
}

}  // namespace waymark::cli
