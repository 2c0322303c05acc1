/// Finds the files of a profile's images, and computes how much of the execution the profile covers.
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
    /// The file at its recorded path, or where its build is found. Errors: `not_found`, `bad_format`: the errors of
    /// image::find_file.
    [[nodiscard]] Result<image::FoundFile> file_of(const answers::Image& image) const;
    [[nodiscard]] const image::FileSearch& search() const { return search_; }

private:
    image::FileSearch search_;
    std::vector<std::string> given_;
};

/// Ranges and branches of all branch lists whose files are found; findings name the missing files, and outcomes in the
/// lists that lead to no branch. Errors: the errors of reading a file.
[[nodiscard]] Result<answers::Answers> expanded(const answers::BranchLists& lists, const ProfiledFiles& files);

/// Number of instructions that ran in an image, by the exact ranges.
[[nodiscard]] std::uint64_t executed_in(const answers::Answers& answers, answers::Index image);

/// How much a profile covers of everything decoded, and of the run as far as its account knows it.
struct ProfileCover {
    std::uint64_t everything{};   ///< instructions that were decoded
    std::uint64_t profiled{};     ///< instructions that are in the profile, and usable there
    std::uint64_t not_decoded{};  ///< further instructions that ran, as far as the account has sizes; one for a range
    bool has_account{};           ///< false: it is not known how much of the run was decoded
    bool open_ended{};            ///< a part has no size in instructions, so the share is an upper bound
    bool estimated{};             ///< counts are estimates
    /// A sentence that states how much of the run the profile covers.
    [[nodiscard]] std::string text() const;
    std::vector<std::string> sentences;  ///< for each image that ran, and for code without a file
};
/// `in_profile`: whether an image is in the profile. `quality`: results for the images whose lines were looked up.
[[nodiscard]] ProfileCover profile_cover(const answers::Answers& answers,
                                         const std::function<bool(answers::Index)>& in_profile,
                                         const std::map<answers::Index, ImageQuality>& quality);

}  // namespace waymark::analysis
