/// `waymark pgo`: captures → a profile for a compiler.
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "answers.h"
#include "commands.h"
#include "trouble.h"
#include "unit_answers.h"
#include "views.h"
#include "waymark/analysis/profiled_files.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/metric_sets.h"
#include "waymark/capture/placed_file.h"
#include "waymark/core/file_error.h"
#include "waymark/core/quote.h"
#include "waymark/exports/branch_list.h"
#include "waymark/pgo/profile.h"
#include "waymark/pipeline/answers_file.h"
#include "waymark/pipeline/several.h"

namespace waymark::cli {

namespace {

namespace fs = std::filesystem;
using answers::Answers;
using answers::Index;
using exports::ExportReport;

struct PgoOptions {
    AnswersOptions answers;
    std::vector<std::string> more;
    std::string format, of_image;
    bool all = false, bolt_traces = false;
    std::string list_version, autofdo_addresses;  // empty: not given
};

class PgoCommand {
public:
    explicit PgoCommand(const PgoOptions& options) : options_(options) {
        captures_ = {options.answers.input.capture};
        captures_.insert(captures_.end(), options.more.begin(), options.more.end());
        target_ = pgo::find_target(options.format);
    }

    ExitStatus run() {
        for (const auto& [given, option, target] :
             {std::tuple{options_.bolt_traces, "--bolt-traces", "bolt"},
              {!options_.list_version.empty(), "--branch-list-version", "branch-list"},
              {!options_.autofdo_addresses.empty(), "--autofdo-addresses", "autofdo"}})
            if (given && target_->name != target)
                return fail({Errc::usage, fmt::format("{} is for --for {}. See waymark pgo --help", option, target)});
        auto listed = listed_files(captures_);
        if (!listed) return fail(listed.error());
        captures_ = std::move(*listed);
        const std::string& output = options_.answers.input.output;
        const std::vector<std::string> inputs = this->inputs();
        if (!options_.all)
            if (const auto error = capture::would_replace(output, inputs)) return fail(*error);
        auto search = options_.answers.input.file_search();
        if (!search) return fail(search.error());
        files_.emplace(std::move(*search), options_.answers.input.symbols);
        auto read = read_all();
        if (!read) return fail_answers(read.error(), captures_);
        all_ = std::move(*read);
        if (!lists_.empty() && target_->name == "branch-list") return merge_lists();
        pgo::Profiles profiles(all_, *files_,
                               {.target = target_,
                                .of_image = options_.of_image,
                                .all = options_.all,
                                .bolt_traces = options_.bolt_traces,
                                .as_loaded = options_.autofdo_addresses == "loaded",
                                .list_version = branch_list_version(options_.list_version)});
        if (all_.ranges.empty()) return no_ranges(profiles);
        const auto images = profiles.images();
        if (!images) {
            say_head(all_);
            return fail_nothing(images.error());
        }
        std::string written;
        for (const Index image : target_->name == "branch-list" ? std::vector<Index>{answers::none} : *images) {
            const std::string path = options_.all && image != answers::none
                                         ? (fs::path(output) / profiles.file_name_of(image)).string()
                                         : output;
            const auto report = place(path, [&](ByteSink& sink) {
                if (image != answers::none)
                    if (const std::string doubt = profiles.doubt(image); !doubt.empty()) say("warning", doubt);
                return profiles.write(image, sink);
            });
            if (!report) {
                // If there are several programs, some may have no profile.
                if (image == answers::none || !options_.all || report.error().code != Errc::not_found)
                    return fail_nothing(report.error());
                say("warning", report.error().message);
                continue;
            }
            notes(*report);
            written = path;
        }
        if (written.empty()) return fail_nothing({Errc::not_found, "no program or library has a profile"});
        quality(profiles.cover(*images));
        return with_left_out(left_out_, all_.cut ? unreadable : decoded);
    }

private:
    [[nodiscard]] std::vector<std::string> inputs() const {
        std::vector<std::string> out = options_.answers.input.files();
        out.insert(out.end(), captures_.begin(), captures_.end());
        return out;
    }

    Result<Answers> read_all() {
        std::vector<Answers> all;
        std::string first;
        std::optional<Error> nothing_in_first;
        for (const std::string& capture : captures_) {
            AnswersOptions wanted = options_.answers;
            wanted.input.capture = capture;
            wanted.ranges = true;
            const open::Container& container = wanted.input.container();
            WM_ASSIGN_OR_RETURN(const bool is_list, pgo::add_branch_lists(lists_, container));
            const bool decoded_before = is_list || container.contents() == Content::answers;
            if (const char* const given = options_.answers.input.selection.given(); given != nullptr && decoded_before)
                return Error{Errc::usage, fmt::format("{} is {}, which is already decoded: leave out {}", capture,
                                                      is_list ? "a branch list" : "an answers file", given)};
            if (is_list) continue;
            if (container.contents() == Content::samples) wanted.instructions = wanted.inlined = true;
            auto one = decoded_before ? pipeline::read_summand(capture) : answers_of(wanted);
            if (!one) {
                if (!pipeline::may_be_left_out(capture, one.error())) return one.error();
                left_out_.push_back({capture, one.error().message});
                if (!nothing_in_first) nothing_in_first = one.error();
                continue;
            }
            if (all.empty())
                first = capture;
            else if (auto error = pipeline::not_of_one_unit(first, all.front().unit, capture, one->unit))
                return std::move(*error);
            all.push_back(std::move(*one));
            if (all.size() == 1) continue;
            answers::merge(all.front(), all.back());
            all.pop_back();
        }
        if (lists_.empty() && all.empty()) {
            if (nothing_in_first) return std::move(*nothing_in_first);
            return Error{Errc::not_found,
                         fmt::format("no profile is made: the branch list {} has no branches", captures_.front())};
        }
        if (pgo::are_saturated(lists_))
            say("warning",
                "a count of the branch lists has reached 18,446,744,073,709,551,615, the largest number: such "
                "counts are lower bounds");
        say_left_out(left_out_);
        if (lists_.empty()) {
            answers::scale_metrics(all.front());
            return std::move(all.front());
        }
        if (!all.empty())
            return Error{Errc::usage,
                         "give branch lists or captures, not both: write the branch lists of the captures "
                         "with --for branch-list"};
        WM_ASSIGN_OR_RETURN(Answers out, analysis::expanded(lists_, *files_));
        out.capture = captures_.front();
        return out;
    }

    /// Adding branch lists needs no file of the program.
    ExitStatus merge_lists() {
        if (!options_.of_image.empty())
            if (const Status kept = pgo::keep_image(lists_, options_.of_image); !kept)
                return fail_nothing(kept.error());
        const auto report = place(options_.answers.input.output, [&](ByteSink& sink) {
            return exports::write_branch_lists(lists_, branch_list_version(options_.list_version), sink);
        });
        if (!report) return fail_nothing(report.error());
        notes(*report);
        return with_left_out(left_out_, decoded);
    }

    /// Samples contain no ranges, but some profiles can be made from them.
    ExitStatus no_ranges(const pgo::Profiles& profiles) const {
        if (const Status taken = profiles.takes_samples(); !taken) return fail_nothing(taken.error());
        const auto report =
            place(options_.answers.input.output, [&](ByteSink& sink) { return profiles.write_samples(sink); });
        if (!report) return fail_nothing(report.error());
        notes(*report);
        say_head(all_);
        say_estimates();
        say("note", fmt::format("made from {}; next: {}", profiles.samples(), next()));
        return with_left_out(left_out_, all_.cut ? unreadable : decoded);
    }

    ExitStatus fail_nothing(const Error& error) const {
        if (error.code != Errc::not_found) return fail(error);
        say("error", "the profile would be empty and is not written: " + error.message);
        return all_.cut ? unreadable : nothing;
    }

    template <class Write>
    Result<ExportReport> place(const std::string& path, Write&& write_to) const {
        if (options_.all) WM_RETURN_IF_ERROR(make_folder(options_.answers.input.output));
        WM_ASSIGN_OR_RETURN(const auto sink, capture::FileSink::open(path, inputs()));
        WM_ASSIGN_OR_RETURN(ExportReport report, write_to(*sink));
        WM_RETURN_IF_ERROR(sink->commit());
        return report;
    }
    static void notes(const ExportReport& report) {
        for (const std::string& note : report.notes) say("note", note);
    }
    [[nodiscard]] std::string next() const {
        return fmt::format(fmt::runtime(target_->then),
                           options_.all ? "FILE" : shell_file(options_.answers.input.output));
    }

    void say_estimates() const {
        if (answers::completeness(all_.account).estimates) say("note", answers::counts_note(all_.account));
    }

    /// Prints the quality of the profile.
    void quality(const analysis::ProfileCover& cover) const {
        for (const std::string& sentence : cover.sentences) say("note", sentence);
        say_head(all_);
        say_estimates();
        say("note", fmt::format("the profile covers {}; next: {}", cover.text(), next()));
    }

    const PgoOptions& options_;
    std::vector<std::string> captures_;
    const pgo::Tool* target_;
    std::optional<analysis::ProfiledFiles> files_;
    Answers all_;
    answers::BranchLists lists_;
    std::vector<pipeline::LeftOut> left_out_;
};

}  // namespace

Run add_pgo(const Command& app) {
    const Command command = app.add("pgo");
    auto options = std::make_shared<PgoOptions>();
    AnswersOptions& answers = options->answers;
    answers.input.add_to(command);
    answers.input.selection.add_to(command);
    command.get_option("CAPTURE")->description(
        "The capture, an answers file, or a branch list; or a bare trace file (.gz and .zst too), which needs "
        "--protocol");
    command.option("MORE", options->more);
    command.get_option("--output")->required()->description("Output file; with --all: folder for the profiles");
    std::vector<std::string> names;
    for (const pgo::Tool& t : pgo::targets()) names.emplace_back(t.name);
    command.option("--for", options->format)->transform(one_of(names));
    command.option("--of-image", options->of_image);
    command.flag("--bolt-traces", options->bolt_traces);
    command.option("--branch-list-version", options->list_version);
    command.option("--autofdo-addresses", options->autofdo_addresses);
    command.flag("--all", options->all);
    command.option("--jobs", answers.jobs)->check(range(0U, 256U));
    command.option("--kallsyms", answers.kallsyms);
    return [options] { return PgoCommand(*options).run(); };
}

}  // namespace waymark::cli
