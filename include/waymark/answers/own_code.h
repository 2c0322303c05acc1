/// Kinds of code, known from the files: the program's own code, and what it runs on.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::answers {

/// Each kind is shown together with the kinds before it.
enum class CodeKind : std::uint8_t {
    own,      ///< of files that are not the system's, with source that is not installed below /usr; of a file without
              ///< any lines, all its code
    library,  ///< the rest of these files: libraries that are linked into them
    system,   ///< files of the system: its libraries, the dynamic linker, the kernel; and what is no code of a file
};
/// The words of `--code`, by kind.
inline constexpr std::array<std::string_view, 3> code_words{"own", "libraries", "all"};

/// By function.
[[nodiscard]] std::vector<CodeKind> code_kinds(const Answers& answers);
/// Which functions are of this kind or one before it.
[[nodiscard]] std::vector<bool> functions_of(const Answers& answers, CodeKind most);
/// Which functions are the program's own code. All false: nothing tells them apart.
[[nodiscard]] std::vector<bool> own_functions(const Answers& answers);

}  // namespace waymark::answers
