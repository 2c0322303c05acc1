/// Kinds of code, derived from files: the program's own code, and the code below it.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "waymark/answers/answers.h"

namespace waymark::answers {

/// Each kind is shown together with the kinds before it.
enum class CodeKind : std::uint8_t {
    own,      ///< code of files that are not the system's, with sources that are not installed below /usr; for a file
              ///< without lines, all its code
    library,  ///< other code of these files: libraries that are linked into them
    system,   ///< files of the system: libraries, the dynamic linker, the kernel; and code outside of files
};
/// The words of `--code`, by kind.
inline constexpr std::array<std::string_view, 3> code_words{"own", "libraries", "all"};

/// Whether a file belongs to the system: a library of the system or of a compiler, the dynamic linker, the kernel.
/// `path`: as recorded. A program that is installed below /usr counts too.
[[nodiscard]] bool is_system_file(std::string_view path);
/// By function.
[[nodiscard]] std::vector<CodeKind> code_kinds(const Answers& answers);
/// Which functions are of this kind or an earlier one.
[[nodiscard]] std::vector<bool> functions_of(const Answers& answers, CodeKind most);
/// Which functions are the program's own code. All false: they cannot be distinguished.
[[nodiscard]] std::vector<bool> own_functions(const Answers& answers);

}  // namespace waymark::answers
