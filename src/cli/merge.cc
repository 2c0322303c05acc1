/// `waymark merge`: answers files added up.
#include <algorithm>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "options.h"
#include "unit_answers.h"
#include "waymark/answers/answers.h"
#include "waymark/answers/parts.h"
#include "waymark/answers/sum.h"
#include "waymark/core/quote.h"
#include "waymark/pipeline/answers_file.h"
#include "waymark/pipeline/several.h"

namespace waymark::cli {

namespace {

using answers::Answers;

struct MergeOptions {
    std::vector<std::string> files;
    std::string output;
};

/// Adds answers. A single input is passed through unchanged, including parts that cannot be added.
class MergedFiles {
public:
    void add(Answers next) {
        for (const answers::Finding& f : next.health) said_.insert(f.what);
        if (!only_ && sum_.empty()) {
            only_ = std::move(next);
            return;
        }
        if (only_) sum_.add(std::move(*std::exchange(only_, std::nullopt)));
        sum_.add(std::move(next));
    }
    [[nodiscard]] Answers take() { return only_ ? std::move(*only_) : sum_.take(); }
    /// Whether the finding is in no input, so that merging made it.
    [[nodiscard]] bool is_new(const answers::Finding& f) const { return !said_.contains(f.what); }

private:
    std::optional<Answers> only_;
    answers::AnswersSum sum_;
    std::set<std::string> said_;
};

/// Why a file cannot be added, unless it is an answers file.
std::optional<Error> not_answers(const open::Container& container) {
    const std::string& path = container.path;
    switch (container.contents()) {
        case open::Content::answers: return {};
        case open::Content::branch_lists: return open::no_trace(container);
        case open::Content::nothing:
            return Error{Errc::usage, fmt::format("{} is {} and not an answers file; waymark answers makes one from a "
                                                  "capture",
                                                  path, open::info(container.kind).title)};
        default:
            return Error{Errc::usage, fmt::format("{} is not an answers file; make one from a capture with waymark "
                                                  "answers {} -o FILE",
                                                  path, shell_file(path))};
    }
}

ExitStatus merge(MergeOptions options) {
    auto listed = listed_files(options.files);
    if (!listed) return fail(listed.error());
    options.files = std::move(*listed);
    MergedFiles sum;
    std::string unit;
    for (const std::string& path : options.files) {
        std::error_code none;
        if (std::filesystem::is_regular_file(path, none) && std::filesystem::file_size(path, none) == 0)
            return fail(
                {Errc::unreadable, fmt::format("{} is empty; it was not written to its end, or was cut", path)});
        if (std::filesystem::exists(path, none))
            if (const auto error = not_answers(open::identify(path))) return fail(*error);
        auto read = pipeline::read_summand(path);
        if (!read) return fail(not_opened(read.error()));
        if (unit.empty()) unit = read->unit;
        if (const auto error = pipeline::not_of_one_unit(options.files.front(), unit, path, read->unit))
            return fail(*error);
        sum.add(std::move(*read));
    }
    const Answers all = sum.take();
    const auto bytes = pipeline::write_answers_file(all, options.output, options.files);
    if (!bytes) return fail(bytes.error());
    for (const answers::Finding& f : answers::captures_added_again(all)) say("note", f.what);
    for (const answers::Finding& f : all.health)
        if (sum.is_new(f)) say(f.severity >= answers::Finding::Severity::warning ? "warning" : "note", f.what);
    if (options.output != "-")
        say("note", fmt::format("wrote {}, {}: {} in {}", options.output, counted(*bytes, "byte"),
                                counted(answers::captures_in(all), "capture"), counted(options.files.size(), "file")));
    return decoded;
}

}  // namespace

Run add_merge(const Command& app) {
    const Command command = app.add("merge");
    auto options = std::make_shared<MergeOptions>();
    command.option("FILES", options->files);
    command.option("--output", options->output)->required();
    return [options] { return merge(*options); };
}

}  // namespace waymark::cli
