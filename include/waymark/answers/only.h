/// What `--only` asks for: functions, source files or images, by name; and with `--code`, by kind.
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

/// Whether a word names a function: its whole name, with or without its parameters and what compilers add to it; or a
/// pattern (`*`, `?`, `[…]`) of that.
[[nodiscard]] bool names_function(std::string_view word, std::string_view name);

/// Whether a word names a source file or an image: the end of its path, by whole parts; a folder in it, with `/` at the
/// end; or a pattern of the end or the whole.
[[nodiscard]] bool names_file(std::string_view word, std::string_view path);

/// Whether a function is code without symbols whose name was made from that of its image: `libc.so+0x1a40?`,
/// `(no symbol) in libc.so`.
[[nodiscard]] bool is_named_by_image(const Answers& answers, const Function& function);

/// Words, of which each names functions; where no function is called so, source files; where no such file is there
/// either, images. So `sort` is the function, and `sort.c` the file with all its functions. A name that was made from
/// that of an image comes last, so that a pattern of images means them whole, and not the code in them without symbols.
class Only {
public:
    enum class Kind : std::uint8_t { nothing, named_by_image, image, source, function };
    explicit Only(const std::vector<std::string>& words) {
        for (const std::string& word : words) words_.push_back({word, Kind::nothing, {}});
    }
    /// Nothing in particular is asked for.
    [[nodiscard]] bool empty() const { return words_.empty(); }
    /// Words are given, and each is the name of functions and no pattern.
    [[nodiscard]] bool is_by_whole_names() const;
    /// The words that name things of this kind.
    [[nodiscard]] std::vector<std::string> words(Kind kind) const;
    /// Adds a name that exists. All names are added before the first question.
    void add(Kind kind, std::string_view name);
    void add(const Answers& answers, const Function& function);
    void add(const Image& image);
    [[nodiscard]] bool asks_for(Kind kind, std::string_view name) const;
    [[nodiscard]] bool asks_for(const Answers& answers, const Function& function) const;
    [[nodiscard]] bool asks_for(const Image& image) const;
    /// A sentence on words that name nothing, with names that resemble them; empty: there are none. `things`: what was
    /// added. `patterns`: the option takes them.
    [[nodiscard]] std::string unknown(std::string_view things = "function, source file or image",
                                      bool patterns = true) const;

private:
    struct Word {
        std::string text;
        Kind kind;  ///< of what it names
        std::vector<std::string> alike;
    };
    std::vector<Word> words_;
    std::set<std::string, std::less<>> all_;  ///< what was added, without parameters and folders
};

/// The functions and sources of answers that `--only` and `--code` ask for: the ones that `--only` names, and the ones
/// in images that it names; of these, the code of the kinds up to `code`.
class Chosen {
public:
    Chosen(const Answers& answers, const std::vector<std::string>& only, CodeKind code = CodeKind::system);
    /// Everything is asked for.
    [[nodiscard]] bool is_all() const { return only_.empty() && code_ == CodeKind::system; }
    /// What is not everything, as options: `--code own`, `--only`.
    [[nodiscard]] std::string options() const;
    [[nodiscard]] bool operator()(Index function, Index source) const {
        if (code_ != CodeKind::system && (function >= of_kind_.size() || !of_kind_[function])) return false;
        return only_.empty() || (function < functions_.size() && functions_[function]) ||
               (source < sources_.size() && sources_[source]);
    }
    /// A function without code of its own: every call was inlined.
    [[nodiscard]] bool inlined(std::string_view name, Index image) const {
        if (code_ != CodeKind::system && (image >= images_of_kind_.size() || !images_of_kind_[image])) return false;
        return only_.empty() || only_.asks_for(Only::Kind::function, name) ||
               (image < images_.size() && images_[image]);
    }
    /// Words are given, and each is the name of functions and no pattern.
    [[nodiscard]] bool is_by_whole_names() const { return only_.is_by_whole_names(); }
    /// What is wrong if a word names nothing, or no code is of the kind, so that no gate passes without it; else empty.
    [[nodiscard]] std::string unknown() const;

private:
    std::string capture_;
    Only only_;
    CodeKind code_;
    std::vector<bool> functions_{}, sources_{}, images_{}, of_kind_{}, images_of_kind_{};
};

}  // namespace waymark::answers
