/// Answers as text, every field that says something, beside approved text in tests/<layer>/whole: so that no field,
/// order, message or default changes unseen. WM_UPDATE_APPROVED=1 writes the text: review it like code.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/approved.h"
#include "waymark/answers/schema.h"

namespace waymark::support {

/// Writes the fields of a row that are not 0, empty or `none`.
class RowText {
public:
    RowText(std::ostream& out, const std::string& folder) : out_(out), folder_(folder) {}

    void number(std::string_view name, std::integral auto value, std::string_view) {
        if (value != 0) put(name, fmt::format("{}", std::uint64_t{value}));
    }
    void address(std::string_view name, std::integral auto value, std::string_view) {
        if (value != 0) put(name, fmt::format("{:#x}", value));
    }
    void text(std::string_view name, const std::string& value, std::string_view) {
        if (!value.empty()) put(name, fmt::format("'{}'", without_folder(value)));
    }
    void shared(std::string_view name, const SharedText& value, std::string_view what) {
        text(name, value.str(), what);
    }
    void real(std::string_view name, double value, std::string_view) {
        if (value != 0) put(name, fmt::format("{:.6g}", value));
    }
    void index(std::string_view name, answers::Index value, answers::IndexedTable, std::string_view) {
        if (value != answers::none) put(name, fmt::format("#{}", value));
    }
    template <class T>
    void choice(std::string_view name, const T& value, const auto& words, std::string_view) {
        const auto number = static_cast<std::size_t>(value);
        put(name, number < words.size() ? std::string(words[number]) : fmt::format("?{}", number));
    }
    template <class T>
    void maybe(std::string_view name, const std::optional<T>& value, std::string_view) {
        if (value) put(name, fmt::format("{}", std::uint64_t{*value}));
    }
    template <class T>
    void list(std::string_view name, const std::vector<T>& values, std::string_view) {
        if (values.empty()) return;
        put(name, "[");
        constexpr std::size_t most = 16;  // of thousands of values in a series
        for (std::size_t i = 0; i < std::min(most, values.size()); ++i)
            if constexpr (std::integral<T>)
                out_ << ' ' << std::uint64_t{values[i]};
            else if constexpr (std::same_as<T, std::string>)
                out_ << " '" << values[i] << '\'';
            else {
                out_ << " (";
                answers::schema::fields(*this, values[i]);
                out_ << " )";
            }
        if (values.size() > most) out_ << fmt::format(" and {} more", values.size() - most);
        out_ << " ]";
    }
    /// A temporary folder has another name each time.
    [[nodiscard]] std::string without_folder(std::string text) const {
        for (std::size_t at = 0; !folder_.empty() && (at = text.find(folder_, at)) != std::string::npos;)
            text.replace(at, folder_.size(), "FOLDER");
        return text;
    }

private:
    void put(std::string_view name, const std::string& value) { out_ << ' ' << name << '=' << value; }
    std::ostream& out_;
    const std::string& folder_;
};

inline void write_table(std::ostream& out, const answers::Table& table, const std::string& folder = {}) {
    const RowText text(out, folder);
    out << "table '" << table.title << "': " << text.without_folder(table.note) << "\n ";
    for (const answers::Column& c : table.columns) out << " | " << c.name << " / " << c.head;
    for (const auto& row : table.rows) {
        out << "\n ";
        for (const answers::Cell& cell : row) {
            out << " | " << text.without_folder(cell.shown);
            if (const std::string field = cell.field(); field != cell.shown) out << " = " << text.without_folder(field);
            if (cell.colour != answers::Colour::plain) out << " ~" << static_cast<int>(cell.colour);
        }
    }
    out << '\n';
}

inline void write_answers_text(std::ostream& out, const answers::Answers& a, const std::string& folder = {}) {
    RowText text(out, folder);
    out << fmt::format("unit '{}', {} bytes, cut {}, hides others {}, resolution {}\naxis", a.unit, a.trace_bytes,
                       a.cut, a.hides_others, a.timeline.resolution);
    answers::schema::fields(text, a.timeline.axis);
    out << '\n';
    answers::schema::tables(
        [&](std::string_view name, const auto& rows, std::string_view) {
            if (!rows.empty()) out << name << '\n';
            for (std::size_t i = 0; i < rows.size(); ++i) {
                out << " #" << i;
                answers::schema::fields(text, rows[i]);
                out << '\n';
            }
        },
        a);
    for (const answers::Table& table : a.tables) write_table(out, table, folder);
}

/// The answers that a test makes, beside the approved file of the test, when the test ends. Of a test that makes many,
/// the first.
class WholeAnswers {
public:
    void add(const answers::Answers& a, const std::string& folder = {}) {
        constexpr std::size_t most_bytes = 16000;
        if (bytes_ > most_bytes) return;
        std::ostringstream text;
        write_answers_text(text, a, folder);
        bytes_ += text.str().size();
        next(std::to_string(count_ + 1)) << text.str();
    }
    std::ostream& next(std::string_view name) { return ++count_, approved_.add(name); }
    ~WholeAnswers() {
        const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
        if (count_ != 0 && test != nullptr)
            approved_.check(layer_ + "/whole/" + test->test_suite_name() + "." + test->name() + ".txt");
    }
    /// The file is in tests/LAYER/whole.
    explicit WholeAnswers(std::string layer = "analysis") : layer_(std::move(layer)) {}
    WholeAnswers(const WholeAnswers&) = delete;
    WholeAnswers& operator=(const WholeAnswers&) = delete;

private:
    const std::string layer_;
    Approved approved_;
    unsigned count_ = 0;
    std::size_t bytes_ = 0;
};

}  // namespace waymark::support
