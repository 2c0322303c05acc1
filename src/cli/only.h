/// What `--only` asks for: functions, source files or images, by name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/analysis/answers.h"

namespace waymark::cli {

/// Whether a word names a function: its whole name, with or without its parameters and what compilers add to it; or a
/// pattern (`*`, `?`, `[…]`) of that.
[[nodiscard]] bool names_function(std::string_view word, std::string_view name);

/// Whether a word names a source file or an image: the end of its path, by whole parts; a folder in it, with `/` at the
/// end; or a pattern of the end or the whole.
[[nodiscard]] bool names_file(std::string_view word, std::string_view path);

/// Words, of which each names functions; where no function is called so, source files; where no such file is there
/// either, images. So `sort` is the function, and `sort.c` the file with all its functions.
class Only {
public:
    enum class Kind : std::uint8_t { nothing, image, source, function };
    explicit Only(const std::vector<std::string>& words) {
        for (const std::string& word : words) words_.push_back({word, Kind::nothing, {}});
    }
    /// Nothing in particular is asked for.
    [[nodiscard]] bool empty() const { return words_.empty(); }
    /// The words that name things of this kind.
    [[nodiscard]] std::vector<std::string> words(Kind kind) const;
    /// What there is, all of it before anything is asked for.
    void add(Kind kind, std::string_view name);
    void add(const analysis::Function& function);
    void add(const analysis::Image& image);
    [[nodiscard]] bool asks_for(Kind kind, std::string_view name) const;
    [[nodiscard]] bool asks_for(const analysis::Function& function) const;
    [[nodiscard]] bool asks_for(const analysis::Image& image) const;
    /// A sentence on words that name nothing, with names that resemble them; empty: there are none. `things`: what was
    /// added.
    [[nodiscard]] std::string unknown(std::string_view things = "function, source file or image") const;

private:
    struct Word {
        std::string text;
        Kind kind;  ///< of what it names
        std::vector<std::string> alike;
    };
    std::vector<Word> words_;
};

}  // namespace waymark::cli
