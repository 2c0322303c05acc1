/// The files of a profile's images, and how much of the execution the profile covers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "waymark/analysis/image_answers.h"
#include "waymark/answers/answers.h"
#include "waymark/answers/branch_list.h"
#include "waymark/core/result.h"
#include "waymark/image/program_file.h"

namespace waymark::analysis {

/// Finds the files of images by path and build ID.
class ProfiledFiles {
public:
    /// `given`: files that may belong to any image.
    ProfiledFiles(image::FileSearch search, std::vector<std::string> given);
    /// Where it was, or where its build is found. Errors: `not_found`, `bad_format`: image::find_file's.
    [[nodiscard]] Result<image::FoundFile> file_of(const answers::Image& image) const;
    [[nodiscard]] const image::FileSearch& search() const { return search_; }

private:
    image::FileSearch search_;
    std::vector<std::string> given_;
};

/// Ranges and branches of all branch lists whose files are found; findings say which are not, and what of the lists
/// leads to no branch. Errors: the errors of reading a file.
[[nodiscard]] Result<answers::Answers> expanded(const answers::BranchLists& lists, const ProfiledFiles& files);

/// Instructions that ran in an image, by the exact ranges.
[[nodiscard]] std::uint64_t executed_in(const answers::Answers& answers, answers::Index image);

/// What a profile covers of all that was decoded, and of the run as far as its account knows it.
struct ProfileCover {
    std::uint64_t everything{};   ///< instructions that were decoded
    std::uint64_t profiled{};     ///< of them in the profile, and usable there
    std::uint64_t not_decoded{};  ///< instructions that ran besides, as far as the account has sizes
    bool has_account{};           ///< false: how much of the run was decoded is not known at all
    bool rounded{};               ///< `not_decoded` is computed from ranges, by the mean of those decoded
    bool open_ended{};            ///< a part of the run has no size, so the share is at most that
    bool estimated{};             ///< counts are estimates
    /// How much of the run it covers.
    [[nodiscard]] std::string text() const;
    std::vector<std::string> sentences;  ///< of each image that ran, and of code in no file
};
/// `in_profile`: whether an image is; `quality`: of those whose lines were looked up.
[[nodiscard]] ProfileCover profile_cover(const answers::Answers& answers,
                                         const std::function<bool(answers::Index)>& in_profile,
                                         const std::map<answers::Index, ImageQuality>& quality);

}  // namespace waymark::analysis
