/// `waymark verify`: compares a recording with its truth.
#include <filesystem>
#include <memory>

#include "commands.h"
#include "dpu/verify.h"
#include "options.h"
#include "perf/verify.h"
#include "selected_session.h"
#include "views.h"
#include "waymark/core/regular_file.h"
#include "waymark/pipeline/account.h"
#include "waymark/record/truth.h"
#include "waymark/verify/flow.h"

namespace waymark::cli {

namespace {

using record::TruthRange;
using verify::Verdict;
using verify::VerifiedSource;

std::string_view heading(Verdict verdict, std::string_view equal) {
    switch (verdict) {
        case Verdict::equal: return equal;
        case Verdict::not_compared: return "NOT COMPARED";
        default: return "DIFFERENT";
    }
}

std::string text(const std::optional<TruthRange>& range, const image::Symbols& symbols) {
    if (!range) return "nothing further";
    const std::string symbol = symbols.text({range->start});
    return fmt::format("{:#010x}-{:#010x}, {} instruction{}{}", range->start, range->end, range->instructions,
                       range->instructions == 1 ? "" : "s", symbol.empty() ? "" : fmt::format("  ({})", symbol));
}

void print_difference(const VerifiedSource& s, Output& out) {
    const record::Difference& d = *s.difference;
    out.print("  first difference: range {}, from the packet at offset {:#x} of the buffer\n", grouped(d.number),
              d.capture.value);
    out.print("    before it  {}\n    executed   {}\n    decoded    {}\n",
              d.before ? text(d.before, s.source->names->symbols) : "nothing",
              text(d.executed, s.source->names->symbols), text(d.decoded, s.source->names->symbols));
    for (const verify::PacketNear& packet : s.around)
        out.write(fmt::format("  {} {:>#10x}  {}\n", packet.here ? '>' : ' ', packet.at.value, packet.text));
}

/// Prints the result for a source whose buffer wrapped, or stopped before the source ended.
void print_wrapped(const VerifiedSource& s, bool complete, Output& out) {
    out.print("source {}: {}\n", s.source->label(), heading(s.verdict, "equal, as far as the buffer kept it"));
    const char* const why = !s.executed.stopped   ? "the buffer wrapped: of {} ranges the last {}"
                            : !s.executed.wrapped ? "the buffer stopped early: of {} ranges {}"
                                                  : "the buffer wrapped and stopped early: of {} ranges {}";
    out.print("  {} ({} instructions) are in the trace\n",
              fmt::format(fmt::runtime(why), grouped(s.executed.ranges), grouped(s.decoded.ranges)),
              grouped(s.decoded.instructions));
    if (s.decodes) out.print("  {} bytes precede their first synchronisation\n", grouped(s.unsynchronised));
    if (s.verdict == Verdict::not_compared)
        out.write(complete ? "  only a recording made with --truth can be compared where the buffer wrapped or stopped "
                             "early\n"
                           : "  the recorder was killed: it is not known which part of the run the buffer contains\n");
    else if (s.verdict == Verdict::different)
        print_difference(s, out);
}

void print_source(const VerifiedSource& s, bool complete, Output& out) {
    const record::SourceTruth &executed = s.executed, &decoded = s.decoded;
    if (!complete && !s.has_ranges)
        say("note", fmt::format("source {}: only sums were stored, and it is not known where they end; record with "
                                "--truth to compare what was cut off",
                                s.source->label()));
    out.print("source {}: {}\n", s.source->label(), heading(s.verdict, "equal"));
    const auto row = [&](std::string_view name, auto a, auto b) {
        out.print("  {:<14} {:>20} {:>20}{}\n", name, a, b, a == b ? "" : "  *");
    };
    out.print("  {:<14} {:>20} {:>20}\n", "", "executed", "decoded");
    row("ranges", grouped(executed.ranges), grouped(decoded.ranges));
    row("instructions", grouped(executed.instructions), grouped(decoded.instructions));
    row("hash", fmt::format("{:#018x}", executed.hash), fmt::format("{:#018x}", decoded.hash));
    if (executed.lost_ranges != 0)
        out.print("  {} ranges ({} instructions) were lost to a full FIFO; the trace declares {} overflow{}\n",
                  grouped(executed.lost_ranges), grouped(executed.lost_instructions), grouped(s.overflows),
                  s.overflows == 1 ? "" : "s");
    if (executed.filtered_ranges != 0)
        out.print(
            "  {} more ranges ({} instructions) executed that the unit was programmed not to trace, or not permitted "
            "to trace\n",
            grouped(executed.filtered_ranges), grouped(executed.filtered_instructions));
    if (executed.unfinished_instructions != 0)
        out.print("  {} instructions executed after the last waypoint, which no unit traces\n",
                  grouped(executed.unfinished_instructions));
    if (s.verdict != Verdict::different) return;
    if (s.difference)
        print_difference(s, out);
    else if (s.decodes && !s.has_ranges)
        out.write("  only a recording made with --truth shows where the first difference is\n");
}

void print_messages(const VerifiedSource& s, bool complete, Output& out) {
    const record::SourceTruth &executed = s.executed, &decoded = s.decoded;
    out.print("source {}: {}\n", s.source->label(), heading(s.verdict, "equal"));
    const auto row = [&](std::string_view name, auto a, auto b) {
        out.print("  {:<14} {:>20} {:>20}{}\n", name, a, b, a == b ? "" : "  *");
    };
    out.print("  {:<14} {:>20} {:>20}\n", "", "executed", "decoded");
    row("messages", grouped(executed.ranges), grouped(decoded.ranges));
    row("hash", fmt::format("{:#018x}", executed.hash), fmt::format("{:#018x}", decoded.hash));
    if (!complete) out.write("  the recorder was killed: it is not known which messages the trace contains\n");
}

/// Prints the verdict: `equal: 1,234 instructions of 1 source; NOT COMPARED: ITM_0`.
void print_verdict(const verify::VerifiedFlow& all, Output& out) {
    const Verdict verdict = all.verdict();
    std::string others;
    std::size_t compared = 0;
    for (const VerifiedSource& s : all.sources) {
        if (s.verdict == Verdict::not_compared)
            others += (others.empty() ? "" : ", ") + s.source->label();
        else
            ++compared;
    }
    const bool some = verdict == Verdict::not_compared && compared != 0;
    std::string what;
    if (all.instructions != 0 || all.messages == 0) what = fmt::format("{} instructions", grouped(all.instructions));
    if (all.messages != 0) what += (what.empty() ? "" : " and ") + counted(all.messages, "message");
    const std::size_t sources = some ? compared : all.sources.size();
    out.print("{}: {} of {} source{}{}\n", some ? "equal" : heading(verdict, "equal"), what, sources,
              sources == 1 ? "" : "s", some ? "; NOT COMPARED: " + others : "");
}

class Verification {
public:
    explicit Verification(const InputOptions& options) : options_(options) {}

    ExitStatus run() {
        std::filesystem::path folder = options_.capture;
        if (folder.extension() == ".ini") folder = folder.parent_path();
        const open::Container& container = options_.container();
        if (container.contents() == Content::counters) {
            if (!options_.sources.empty() || !options_.symbols.empty())
                return fail(
                    {Errc::usage, fmt::format("{} is a recording of a DPU, one unit; leave out {}", options_.capture,
                                              options_.sources.empty() ? "--symbols" : "--source")});
            return run_verify_dpu(options_.capture, options_.output);
        }
        if (container.kind == open::Kind::missing)
            return fail({Errc::not_found, fmt::format("{}: no such file or folder", options_.capture)});
        if (const auto no_file = no_regular_file(options_.capture)) return fail(*no_file);
        if (container.contents() == Content::samples) return not_for_samples();
        if (container.kind == open::Kind::coresight_perf) return verify_perf(options_);
        auto truth = record::read_truth(folder.empty() ? "." : folder);
        if (!truth) {
            // A path that is not a capture is reported first.
            if (const auto opened = open_session(options_); !opened) return fail(opened.error());
            const ExitStatus status = fail(truth.error());
            std::error_code none;
            const std::filesystem::path capture = options_.capture;
            const bool is_folder = std::filesystem::is_directory(capture, none) ||
                                   (capture.extension() == ".ini" && std::filesystem::exists(capture, none));
            return truth.error().code == Errc::not_found && is_folder ? static_cast<ExitStatus>(not_compared) : status;
        }
        const auto opened = open_selected(options_);
        if (!opened) return fail(opened.error());
        const pipeline::Session& session = opened->session;
        auto out = Output::open(options_.output, options_.files());
        if (!out) return fail(out.error());
        const ExitStatus status = compare(session, opened->selected, *truth, folder, *out);
        if (out->close() != decoded) return unreadable;
        return status;
    }

private:
    /// Samples cover only a part of the run, so sums cannot be compared with single samples.
    ExitStatus not_for_samples() const {
        const std::string sums = options_.capture + ".truth.txt";
        std::error_code none;
        say("error", fmt::format("{}: NOT COMPARED: a profile contains samples, not the whole run, so it is not "
                                 "decoded and compared as trace is. {}",
                                 options_.capture,
                                 std::filesystem::exists(sums, none)
                                     ? fmt::format("The real execution is summed in {}", sums)
                                     : "There is no truth file next to it: 'waymark record --unit spe' writes one "
                                       "to PATH.truth.txt"));
        return static_cast<ExitStatus>(not_compared);
    }

    ExitStatus compare(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                       const record::Truth& truth, const std::filesystem::path& folder, Output& out) {
        ProgressLine progress;
        const verify::VerifiedFlow all = verify::verify_flow(session, selected, truth, folder, shown_on(progress));
        for (const std::string& warning : all.warnings) say("warning", warning);
        const bool read_errors = report_read_errors(session, all.report);
        if (!truth.complete)
            say("note", "the recorder was killed; trace and truth are compared up to where the shorter one ends");
        for (const VerifiedSource& s : all.sources) {
            if (!s.named)
                out.print("source {}: NOT COMPARED: truth.txt does not contain this source\n", s.source->label());
            else if (s.of_messages)
                print_messages(s, truth.complete, out);
            else if (s.executed.wrapped || s.executed.stopped)
                print_wrapped(s, truth.complete, out);
            else
                print_source(s, truth.complete, out);
        }
        std::vector<Error> unread;
        print_account(out, pipeline::account_of(session, selected, {}, &unread));
        if (selected.empty() || truth.sources.empty()) {
            say("error", "nothing to compare: nothing was recorded");
            return static_cast<ExitStatus>(not_compared);
        }
        if (read_errors || say_unread(unread)) return unreadable;
        if (all.instructions == 0 && all.messages == 0 && all.wrapped) {
            say("error", "nothing to compare: the buffer kept no synchronisation (--sync, --buffer)");
            return static_cast<ExitStatus>(not_compared);
        }
        const Verdict verdict = all.verdict();
        print_verdict(all, out);
        return verdict == Verdict::equal       ? decoded
               : verdict == Verdict::different ? nothing
                                               : static_cast<ExitStatus>(not_compared);
    }

    const InputOptions& options_;
};

}  // namespace

Run add_verify(const Command& app) {
    auto options = std::make_shared<InputOptions>();
    const Command command = app.add("verify");
    command.option("DIR", options->capture);
    command.option("--source", options->sources);
    command.option("--symbols", options->symbols);
    options->add_folders_to(command);
    command.option("--output", options->output);
    return [options] { return Verification(*options).run(); };
}

}  // namespace waymark::cli
