/// Profiles for compilers: which format each tool reads, for which programs and libraries a profile is made, and from
/// what.
#pragma once

#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/profiled_files.h"
#include "waymark/answers/answers.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"
#include "waymark/exports/branch_list.h"
#include "waymark/open/container.h"

namespace waymark::pgo {

/// A reader of profiles.
struct Tool {
    std::string_view name, format;  ///< `format`: of exports
    std::string_view then;          ///< the command that reads the profile in place of `{}`
};
[[nodiscard]] std::span<const Tool> targets();
/// Null if there is none with that name.
[[nodiscard]] const Tool* find_target(std::string_view name);

struct CompilerProfileOptions {
    const Tool* target{};      ///< never null
    std::string of_image{};    ///< path, file name or build ID; empty: the program
    bool all = false;          ///< a profile for each image
    bool bolt_traces = false;  ///< exports::BoltOptions
    bool as_loaded = false;    ///< exports::ImageProfileOptions
    exports::BranchListVersion list_version{};

    /// Whether one file has the lists of all images.
    [[nodiscard]] bool of_all_images() const { return target->name == "branch-list" && of_image.empty(); }
};

/// Makes profiles from answers. Borrows them and the files.
class Profiles {
public:
    Profiles(const answers::Answers& answers, const analysis::ProfiledFiles& files, CompilerProfileOptions options)
        : answers_(answers), files_(files), options_(std::move(options)) {}

    /// The images for which a profile is written. Errors: `not_found`: none, with the reason.
    [[nodiscard]] Result<std::vector<answers::Index>> images() const;
    /// A file name for the profile of an image, by its build ID; no two images share one.
    [[nodiscard]] std::string file_name_of(answers::Index image);
    /// Writes the profile of an image. A branch list contains all images that the options select. Errors: `not_found`;
    /// the errors of the format.
    [[nodiscard]] Result<exports::ExportReport> write(answers::Index image, ByteSink& sink);
    /// What a reader cannot do with the profile of an image; empty: nothing.
    [[nodiscard]] std::string doubt(answers::Index image) const;

    /// Samples contain no ranges, but some profiles can be made from them. `not_found`: this one cannot.
    [[nodiscard]] Status takes_samples() const;
    /// What the samples are of, in words.
    [[nodiscard]] std::string samples() const;
    [[nodiscard]] Result<exports::ExportReport> write_samples(ByteSink& sink) const;

    /// How much the profiles of these images cover, after they were written.
    [[nodiscard]] analysis::ProfileCover cover(const std::vector<answers::Index>& images) const;

private:
    /// Samples of SPE contain branches; samples of other sources contain only the instruction.
    [[nodiscard]] bool of_counter() const;
    /// What is wrong with the captures, as the end of a sentence.
    [[nodiscard]] std::string warnings() const;

    const answers::Answers& answers_;
    const analysis::ProfiledFiles& files_;
    CompilerProfileOptions options_;
    std::map<answers::Index, analysis::ImageQuality> quality_;
    std::set<std::string> names_;
};

/// Adds the branch lists of a file; simpleperf may have made the lists while it recorded. False: the file has no lists.
/// Errors: the errors of reading.
[[nodiscard]] Result<bool> add_branch_lists(answers::BranchLists& lists, const open::Container& container);
/// Keeps the lists of one image. Errors: `not_found`: it has none.
[[nodiscard]] Status keep_image(answers::BranchLists& lists, const std::string& image);
/// Whether a count has reached the largest number, so that it is only a lower bound.
[[nodiscard]] bool are_saturated(const answers::BranchLists& lists);

}  // namespace waymark::pgo
