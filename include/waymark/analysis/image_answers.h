/// Computes functions, instructions with lines and inlined calls, and edges from exact ranges and branches of an image
/// and its file: the input of a compiler's profile, if the answers were made without the file or its debug information.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"

namespace waymark::analysis {

/// How much of an image's execution a profile can use, in instructions.
struct ImageQuality {
    std::uint64_t executed{};    ///< all executed instructions of the image
    std::uint64_t with_lines{};  ///< those with a source line
    std::uint64_t unknown{};     ///< those in ranges for which the file has no code
    bool debug_info{};           ///< the file has debug information
};
struct ImageAnswers {
    answers::Answers answers;  ///< answers of this image alone, which is image 0; addresses are relative to the file
    ImageQuality quality;
};

/// `file`: the file of the image's build. Instructions that did not run, in functions that ran, are `not_executed`
/// unless the answers state that trace was lost. Errors: the errors of reading the file.
[[nodiscard]] Result<ImageAnswers> image_answers(const answers::Answers& answers, answers::Index image,
                                                 const std::filesystem::path& file,
                                                 const std::vector<std::filesystem::path>& debug_folders);

}  // namespace waymark::analysis
