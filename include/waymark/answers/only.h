/// The code selected by `--only`, as functions, source files or images by name, and by `--code`, by kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/answers/own_code.h"

namespace waymark::answers {

/// Whether a word names a function: its whole name, with or without its parameters and compilers' suffixes; or a
/// pattern (`*`, `?`, `[…]`) for it.
[[nodiscard]] bool names_function(std::string_view word, std::string_view name);

/// Whether a word names a source file or an image: the end of its path, in whole components; or a folder in it, with
/// `/` at the end; or a pattern for the end or the whole path.
[[nodiscard]] bool names_file(std::string_view word, std::string_view path);

/// Whether the name of a function was derived from its image's, because its code has no symbol: `libc.so+0x1a40?`, `(no
/// symbol) in libc.so`.
[[nodiscard]] bool is_named_by_image(const Answers& answers, const Function& function);

/// A list of words. Each names functions; if no function matches, source files; if no such file exists either, images.
/// So `sort` is the function, and `sort.c` the file with all its functions. Names derived from an image's name are
/// tried last, so that a pattern for images selects whole images, not just their code without symbols.
class Only {
public:
    enum class Kind : std::uint8_t { nothing, named_by_image, image, source, function };
    explicit Only(const std::vector<std::string>& words) {
        for (const std::string& word : words) words_.push_back({word, Kind::nothing, {}});
    }
    /// Whether nothing is selected.
    [[nodiscard]] bool empty() const { return words_.empty(); }
    /// Whether there are words, and each is the name of functions, not a pattern.
    [[nodiscard]] bool is_by_whole_names() const;
    /// The words that name items of this kind.
    [[nodiscard]] std::vector<std::string> words(Kind kind) const;
    /// Adds an existing name. Add all names before the first query.
    void add(Kind kind, std::string_view name);
    void add(const Answers& answers, const Function& function);
    void add(const Image& image);
    [[nodiscard]] bool asks_for(Kind kind, std::string_view name) const;
    [[nodiscard]] bool asks_for(const Answers& answers, const Function& function) const;
    [[nodiscard]] bool asks_for(const Image& image) const;
    /// A sentence about words that name nothing, with similar names; empty if there are none. `things`: the kind of
    /// names added. `patterns`: the option accepts patterns.
    [[nodiscard]] std::string unknown(std::string_view things = "function, source file or image",
                                      bool patterns = true) const;

private:
    struct Word {
        std::string text;
        Kind kind;  ///< of the items it names
        std::vector<std::string> alike;
    };
    std::vector<Word> words_;
    std::set<std::string, std::less<>> all_;  ///< names that were added, without parameters and folders
};

/// Functions and sources of answers that `--only` and `--code` select: functions and sources that `--only` names, or
/// that are in images it names; among these, the code of the kinds up to `code`.
class Chosen {
public:
    Chosen(const Answers& answers, const std::vector<std::string>& only, CodeKind code = CodeKind::system);
    /// Whether everything is selected.
    [[nodiscard]] bool is_all() const { return only_.empty() && code_ == CodeKind::system; }
    /// The selection as options, `--code own`, `--only`, without options that select everything.
    [[nodiscard]] std::string options() const;
    [[nodiscard]] bool operator()(Index function, Index source) const {
        if (code_ != CodeKind::system && (function >= of_kind_.size() || !of_kind_[function])) return false;
        return only_.empty() || (function < functions_.size() && functions_[function]) ||
               (source < sources_.size() && sources_[source]);
    }
    /// Whether a function has no code of its own, since every call was inlined.
    [[nodiscard]] bool inlined(std::string_view name, Index image) const {
        if (code_ != CodeKind::system && (image >= images_of_kind_.size() || !images_of_kind_[image])) return false;
        return only_.empty() || only_.asks_for(Only::Kind::function, name) ||
               (image < images_.size() && images_[image]);
    }
    /// Whether there are words, and each is the name of functions, not a pattern.
    [[nodiscard]] bool is_by_whole_names() const { return only_.is_by_whole_names(); }
    /// The error if a word names nothing, or no code is of the kind, so that a gate cannot pass by mistake; otherwise
    /// empty.
    [[nodiscard]] std::string unknown() const;

private:
    std::string capture_;
    Only only_;
    CodeKind code_;
    std::vector<bool> functions_{}, sources_{}, images_{}, of_kind_{}, images_of_kind_{};
};

}  // namespace waymark::answers
