/// `waymark pgo`: captures → a profile for a compiler.
#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "answers.h"
#include "commands.h"
#include "trouble.h"
#include "unit_answers.h"
#include "views.h"
#include "waymark/analysis/image_answers.h"
#include "waymark/analysis/profiled_files.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/metric_sets.h"
#include "waymark/answers/parts.h"
#include "waymark/answers/sampled.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/perf_file.h"
#include "waymark/capture/placed_file.h"
#include "waymark/core/file_error.h"
#include "waymark/core/file_name.h"
#include "waymark/core/quote.h"
#include "waymark/exports/autofdo.h"
#include "waymark/exports/bolt.h"
#include "waymark/exports/branch_list.h"
#include "waymark/exports/image_profile.h"
#include "waymark/image/dwarf_version.h"
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

/// A value of `--for`, with its format of exports.
struct Target {
    std::string_view name, format, then;  // then: what reads the profile
};
constexpr std::array targets{
    Target{"clang", "llvm-profile", "clang -fprofile-sample-use={}"},
    Target{"autofdo", "autofdo-text", "create_llvm_prof --profiler text --binary PROGRAM --out OUT --profile {}"},
    Target{"profgen", "profgen", "llvm-profgen --binary PROGRAM --output OUT --unsymbolized-profile {}"},
    Target{"bolt", "bolt", "perf2bolt --pa -o OUT PROGRAM -p {}"},
    Target{"branch-list", "branch-list", "simpleperf inject -i {}"},
};

/// Whether a count has reached the largest number, so that it is only a lower bound.
bool are_saturated(const answers::BranchLists& lists) {
    for (const auto& [key, image] : lists)
        for (const auto& [list, times] : image.lists)
            if (times == std::numeric_limits<std::uint64_t>::max()) return true;
    return false;
}

class PgoCommand {
public:
    explicit PgoCommand(const PgoOptions& options) : options_(options) {
        captures_ = {options.answers.input.capture};
        captures_.insert(captures_.end(), options.more.begin(), options.more.end());
        target_ =
            std::find_if(targets.begin(), targets.end(), [&](const Target& t) { return t.name == options.format; });
    }

    ExitStatus run() {
        if (options_.bolt_traces && target_->name != "bolt") {
            say("error", "--bolt-traces is for --for bolt. See waymark pgo --help");
            return usage;
        }
        if (!options_.list_version.empty() && target_->name != "branch-list") {
            say("error", "--branch-list-version is for --for branch-list. See waymark pgo --help");
            return usage;
        }
        if (!options_.autofdo_addresses.empty() && target_->name != "autofdo") {
            say("error", "--autofdo-addresses is for --for autofdo. See waymark pgo --help");
            return usage;
        }
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
        if (all_.ranges.empty()) return no_ranges();
        const auto images = chosen();
        if (!images) {
            say_head(all_);
            return fail_nothing(images.error());
        }
        std::string written;
        if (target_->name == "branch-list") {
            const auto report = place(output, [&](ByteSink& sink) {
                return exports::write_branch_list(all_, branch_list_version(options_.list_version), sink,
                                                  options_.of_image);
            });
            if (!report) return fail_nothing(report.error());
            notes(*report);
            written = output;
        } else {
            for (const Index image : *images) {
                const std::string path = options_.all ? path_of(image) : output;
                const auto report = place(path, [&](ByteSink& sink) { return write(image, sink); });
                if (!report) {
                    // If there are several programs, some may have no profile.
                    if (!options_.all || report.error().code != Errc::not_found) return fail_nothing(report.error());
                    say("warning", report.error().message);
                    continue;
                }
                notes(*report);
                written = path;
            }
        }
        if (written.empty()) return fail_nothing({Errc::not_found, "no program or library has a profile"});
        quality(*images);
        return with_left_out(left_out_, all_.cut ? unreadable : decoded);
    }

private:
    [[nodiscard]] std::vector<std::string> inputs() const {
        std::vector<std::string> out = options_.answers.input.files();
        out.insert(out.end(), captures_.begin(), captures_.end());
        return out;
    }

    /// Adds the file's lists, if it is a branch list.
    Result<bool> add_lists(const open::Container& container) {
        const std::string& path = container.path;
        if (container.contents() != Content::branch_lists) return add_recorded_lists(container);
        WM_ASSIGN_OR_RETURN(const std::unique_ptr<capture::ByteStream> stream, capture::open_bytes(path));
        constexpr std::uint64_t most = std::uint64_t{1} << 32;
        WM_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, capture::read_all(*stream, most));
        WM_RETURN_IF_ERROR(exports::add_branch_lists(lists_, bytes, path));
        return true;
    }
    /// Adds the branch lists that simpleperf made while it recorded.
    Result<bool> add_recorded_lists(const open::Container& container) {
        if (!container.is_perf() || container.kind == open::Kind::stacks_perf) return false;
        if (container.unreadable) return *container.unreadable;
        WM_ASSIGN_OR_RETURN(const capture::perf::PerfData data, capture::perf::read_perf_data(container.file));
        if (data.branch_lists.empty()) return false;
        WM_RETURN_IF_ERROR(exports::add_branch_lists(lists_, data.branch_lists, container.path));
        return true;
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
            WM_ASSIGN_OR_RETURN(const bool is_list, add_lists(container));
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
        if (are_saturated(lists_))
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
        if (!options_.of_image.empty()) {
            const auto is_it = [&](const answers::BranchListImage& of) {
                const std::string build = answers::build_key(options_.of_image);
                constexpr std::size_t least_digits = 6;
                return of.path == options_.of_image || fs::path(of.path).filename() == options_.of_image ||
                       (build.size() >= least_digits && answers::build_key(of.build_id).starts_with(build));
            };
            std::string names;
            for (const auto& [key, of] : lists_) names += (names.empty() ? "" : ", ") + of.path;
            std::erase_if(lists_, [&](const auto& list) { return !is_it(list.second); });
            if (lists_.empty())
                return fail_nothing(
                    {Errc::not_found, fmt::format("no image is called '{}'; there are: {}", options_.of_image, names)});
        }
        const auto report = place(options_.answers.input.output, [&](ByteSink& sink) {
            return exports::write_branch_lists(lists_, branch_list_version(options_.list_version), sink);
        });
        if (!report) return fail_nothing(report.error());
        notes(*report);
        return with_left_out(left_out_, decoded);
    }

    /// Samples contain no ranges, but some profiles can be made from them.
    ExitStatus no_ranges() const {
        if (answers::of_messages(all_)) return fail_nothing({Errc::not_found, "messages do not show which code ran"});
        const bool sampled = !all_.metrics.empty() && !all_.metrics.front().exact;
        // Samples of SPE contain branches; samples of other sources contain only the instruction.
        const bool of_counter = answers::of_samples(all_) && all_.unit != "SPE";
        const std::string samples = of_counter ? "samples of the program counter" : "samples";
        const bool takes_samples = target_->name == "clang" || (target_->name == "bolt" && !of_counter);
        const bool lacks_lines = target_->name == "clang" && all_.instructions.empty();
        if (!sampled || !takes_samples || lacks_lines) {
            const std::string why =
                !sampled         ? "no code that was decoded belongs to a file that was found"
                : !takes_samples ? fmt::format("{} have no {}; --for clang {} them", samples,
                                               target_->name == "bolt" ? "branches" : "executed ranges",
                                               of_counter ? "takes" : "and --for bolt take")
                                 : "there are samples, but not of which instructions; an answers file of samples must "
                                   "be written without --only-ranges";
            return fail_nothing({Errc::not_found, why + warnings()});
        }
        const auto report = place(options_.answers.input.output, [&](ByteSink& sink) {
            return target_->name == "clang" ? exports::write_autofdo(all_, sink)
                                            : exports::write_bolt(all_, {options_.of_image, false}, sink);
        });
        if (!report) return fail_nothing(report.error());
        notes(*report);
        say_head(all_);
        say_estimates();
        say("note", fmt::format("made from {}; next: {}", samples, next()));
        return with_left_out(left_out_, all_.cut ? unreadable : decoded);
    }

    /// What is wrong with the captures, as the end of a sentence.
    [[nodiscard]] std::string warnings() const {
        std::string out;
        for (const answers::Finding& f : all_.health)
            if (f.severity >= answers::Finding::Severity::warning) out += "; " + f.what;
        return out;
    }
    ExitStatus fail_nothing(const Error& error) const {
        if (error.code != Errc::not_found) return fail(error);
        say("error", "the profile would be empty and is not written: " + error.message);
        return all_.cut ? unreadable : nothing;
    }

    /// The images for which a profile is written.
    [[nodiscard]] Result<std::vector<Index>> chosen() const {
        if (!options_.all && (target_->name != "branch-list" || !options_.of_image.empty())) {
            WM_ASSIGN_OR_RETURN(const Index image, exports::profile_image(all_, options_.of_image));
            if (analysis::executed_in(all_, image) == 0)
                return Error{Errc::not_found, fmt::format("nothing of {} ran in a file that was found{}",
                                                          all_.images[image].name, warnings())};
            return std::vector<Index>{image};
        }
        std::vector<Index> out;
        for (Index i = 0; i < all_.images.size(); ++i)
            if (analysis::executed_in(all_, i) != 0) out.push_back(i);
        return out;
    }
    /// The file for a binary, named by its build ID; no two binaries share one.
    [[nodiscard]] std::string path_of(Index image) {
        const answers::Image& of = all_.images[image];
        const std::string name = file_name(of.build_id.empty() ? of.name : of.build_id);
        std::string one = name;
        for (unsigned n = 2; !files_written_.insert(one).second; ++n) one = fmt::format("{}-{}", name, n);
        return (fs::path(options_.answers.input.output) /
                (one + std::string(exports::find_format(target_->format)->extension)))
            .string();
    }

    Result<ExportReport> write(Index image, ByteSink& sink) {
        const answers::Image& of = all_.images[image];
        if (target_->name == "autofdo") {
            warn_of_dwarf(of);
            return exports::write_autofdo_text(
                all_, {.index = image, .as_loaded = options_.autofdo_addresses == "loaded"}, sink);
        }
        if (target_->name == "profgen") return exports::write_profgen(all_, {.index = image}, sink);
        if (target_->name == "bolt")
            return exports::write_bolt(all_, {.traces = options_.bolt_traces, .index = image}, sink);
        const auto file = files_->file_of(of);
        if (!file)
            return Error{Errc::not_found, fmt::format("the file of {} is needed for its lines, and was not found: {}",
                                                      of.name, file.error().message)};
        WM_ASSIGN_OR_RETURN(const analysis::ImageAnswers made,
                            analysis::image_answers(all_, image, file->path, files_->search().debug_path()));
        quality_[image] = made.quality;
        if (!made.quality.debug_info)
            return Error{Errc::not_found,
                         fmt::format("{} has no debug information; build it with -g "
                                     "-fdebug-info-for-profiling, or name the folder of its debug file "
                                     "with --debug-dir",
                                     file->path.string())};
        return exports::write_autofdo(made.answers, sink);
    }

    /// Debian's create_llvm_prof writes an empty profile for a program whose debug information it cannot read.
    void warn_of_dwarf(const answers::Image& of) {
        constexpr unsigned newest_read = 4;
        const auto file = files_->file_of(of);
        if (!file) return;
        if (const unsigned version = image::dwarf_version(file->path); version > newest_read)
            say("warning", fmt::format("{} has debug information of DWARF {}, from which create_llvm_prof 0.19 "
                                       "(Debian's) makes an empty profile; it reads DWARF 4: compile with -gdwarf-4",
                                       of.name, version));
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
    void quality(const std::vector<Index>& images) const {
        const auto in_profile = [&](Index i) {
            return (target_->name == "branch-list" && options_.of_image.empty()) ||
                   std::find(images.begin(), images.end(), i) != images.end();
        };
        const analysis::ProfileCover cover = analysis::profile_cover(all_, in_profile, quality_);
        for (const std::string& sentence : cover.sentences) say("note", sentence);
        say_head(all_);
        say_estimates();
        say("note", fmt::format("the profile covers {}; next: {}", cover.text(), next()));
    }

    const PgoOptions& options_;
    std::vector<std::string> captures_;
    std::array<Target, 5>::const_iterator target_;
    std::optional<analysis::ProfiledFiles> files_;
    Answers all_;
    answers::BranchLists lists_;
    std::vector<pipeline::LeftOut> left_out_;
    std::map<Index, analysis::ImageQuality> quality_;
    std::set<std::string> files_written_;  // without the format's extension
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
    for (const Target& t : targets) names.emplace_back(t.name);
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
