/// Text that many rows share: each copy has the size of two pointers, for a text of any length.
#pragma once

#include <compare>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace waymark {

class SharedText {
public:
    SharedText() = default;
    SharedText(std::string text)
        : text_(text.empty() ? nullptr : std::make_shared<const std::string>(std::move(text))) {}
    SharedText(const char* text) : SharedText(std::string(text)) {}

    [[nodiscard]] const std::string& str() const {
        static const std::string none;
        return text_ == nullptr ? none : *text_;
    }
    [[nodiscard]] std::string_view view() const { return str(); }
    operator const std::string&() const { return str(); }
    operator std::string_view() const { return str(); }
    [[nodiscard]] bool empty() const { return text_ == nullptr; }
    void clear() { text_.reset(); }

    friend bool operator==(const SharedText& a, const SharedText& b) {
        return a.text_ == b.text_ || a.str() == b.str();
    }
    friend std::strong_ordering operator<=>(const SharedText& a, const SharedText& b) {
        return a.text_ == b.text_ ? std::strong_ordering::equal : a.str() <=> b.str();
    }

private:
    std::shared_ptr<const std::string> text_;  ///< null: empty
};

}  // namespace waymark
