/// Exact ranges and branches of an image, and its file → functions, instructions with lines and inlined calls, edges:
/// what a profile for a compiler needs of answers that were made where the file, or its debug information, was not.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"

namespace waymark::analysis {

/// How much of an image's execution has what a profile is made of, in instructions.
struct ImageQuality {
    std::uint64_t executed{};    ///< all of the image
    std::uint64_t with_lines{};  ///< of them, with a source line
    std::uint64_t unknown{};     ///< of them, in ranges that the file has no code for
    bool debug_info{};           ///< the file has debug information
};
struct ImageAnswers {
    answers::Answers answers;  ///< of this image alone, which is its image 0; addresses are the file's
    ImageQuality quality;
};

/// `file`: of the image's build. Instructions of functions that ran and did not run themselves are `not_executed`
/// unless the answers say that trace was lost. Errors: the errors of reading the file.
[[nodiscard]] Result<ImageAnswers> image_answers(const answers::Answers& answers, answers::Index image,
                                                 const std::filesystem::path& file,
                                                 const std::vector<std::filesystem::path>& debug_folders);

}  // namespace waymark::analysis
