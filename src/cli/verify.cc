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
#include "waymark/listing/verified.h"
#include "waymark/pipeline/account.h"
#include "waymark/record/truth.h"
#include "waymark/verify/flow.h"

namespace waymark::cli {

namespace {

using verify::Verdict;

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
        for (const verify::VerifiedSource& s : all.sources)
            if (s.named && !s.of_messages && !s.executed.wrapped && !s.executed.stopped && !truth.complete &&
                !s.has_ranges)
                say("note", fmt::format("source {}: only sums were stored, and it is not known where they end; record "
                                        "with --truth to compare what was cut off",
                                        s.source->label()));
        listing::print_verified(out, all, truth.complete);
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
        listing::print_verdict(out, all);
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
