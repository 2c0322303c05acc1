/// Tables of answers. Each column is described once: its name for programs, its heading for readers, its type, unit and
/// meaning. Text, tab-separated values, JSON, exports, the report and the documentation of columns use that
/// description.
#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace waymark::answers {

struct Column {
    enum class Type : std::uint8_t {
        text,
        integer,
        real,
        address,  ///< 64 bits, hexadecimal in text
        flag,     ///< true or false
        bar,      ///< a picture, for reading only
    };
    std::string name{};    ///< for programs; empty: only for readers
    std::string head{};    ///< for readers; empty: only for programs
    Type type{};           ///< texts, addresses and bars are left-aligned, the others right-aligned
    std::string what{};    ///< its meaning, in words
    std::string unit{};    ///< empty: a count, or without unit
    std::string refers{};  ///< such as `functions.id`; empty: no other table

    [[nodiscard]] bool left() const { return type == Type::text || type == Type::address || type == Type::bar; }

    // Constructors, one for each type.
    [[nodiscard]] static Column text(std::string name, std::string head, std::string what = {}) {
        return {std::move(name), std::move(head), Type::text, std::move(what), {}, {}};
    }
    /// With one name for programs and readers.
    [[nodiscard]] static Column text(const std::string& name) { return text(name, name); }
    [[nodiscard]] static Column count(const std::string& name) { return count(name, name); }
    [[nodiscard]] static Column count(std::string name, std::string head, std::string what = {},
                                      std::string unit = {}) {
        return {std::move(name), std::move(head), Type::integer, std::move(what), std::move(unit), {}};
    }
    [[nodiscard]] static Column real(std::string name, std::string head, std::string what = {}, std::string unit = {}) {
        return {std::move(name), std::move(head), Type::real, std::move(what), std::move(unit), {}};
    }
    [[nodiscard]] static Column address(std::string name, std::string head, std::string what = {}) {
        return {std::move(name), std::move(head), Type::address, std::move(what), {}, {}};
    }
    [[nodiscard]] static Column flag(std::string name, std::string head, std::string what = {}) {
        return {std::move(name), std::move(head), Type::flag, std::move(what), {}, {}};
    }
    [[nodiscard]] static Column bar(std::string head) { return {{}, std::move(head), Type::bar, {}, {}, {}}; }
};

/// The value of a cell for programs.
class Value {
public:
    using Variant = std::variant<std::monostate, bool, std::uint64_t, std::int64_t, double, std::string>;
    Value() = default;
    Value(std::nullptr_t) {}
    Value(std::same_as<bool> auto flag) : value_(flag) {}
    Value(std::unsigned_integral auto number) requires(!std::same_as<decltype(number), bool>)
        : value_(std::uint64_t{number}) {}
    Value(std::signed_integral auto number) : value_(std::int64_t{number}) {}
    Value(double number) : value_(number) {}
    Value(std::string_view text) : value_(std::string(text)) {}
    Value(std::string text) : value_(std::move(text)) {}
    Value(const char* text) : value_(std::string(text)) {}

    [[nodiscard]] bool known() const { return value_.index() != 0; }
    [[nodiscard]] const Variant& get() const { return value_; }

private:
    Variant value_;
};

enum class Colour : std::uint8_t { plain, bold, dim, red, green, yellow, cyan };

/// A value for readers and for programs: `12,345` and 12345.
struct Cell {
    std::string shown{};  ///< one line
    Value value{};
    Colour colour{};

    Cell() = default;
    Cell(std::string_view text);
    Cell(const std::string& text) : Cell(std::string_view(text)) {}
    Cell(const char* text) : Cell(std::string_view(text)) {}
    Cell(std::uint64_t number);
    Cell(std::string_view as, Value what, Colour in = {});

    /// Hexadecimal; a text for programs, since not all can read such numbers.
    [[nodiscard]] static Cell hex(std::uint64_t number);
    /// `12.3%` for readers, 0.123 for programs; empty if `all` is 0.
    [[nodiscard]] static Cell share(std::uint64_t part, std::uint64_t all);
    /// `12.3`; empty if `all` is 0.
    [[nodiscard]] static Cell mean(std::uint64_t sum, std::uint64_t all);
    /// Only for readers: `████████········ 33.3%`.
    [[nodiscard]] static Cell bar(std::uint64_t part, std::uint64_t all);
    /// `-`: such a value does not exist.
    [[nodiscard]] static Cell none() { return {"-", nullptr}; }
    [[nodiscard]] Cell in(Colour what) const {
        Cell out = *this;
        out.colour = what;
        return out;
    }
    /// The value as a field of a line: text without tabs and line breaks, numbers in digits; empty if not known.
    [[nodiscard]] std::string field() const;
};

struct Table {
    std::string title{}, note{};
    std::vector<Column> columns{};
    std::vector<std::vector<Cell>> rows{};  ///< as many cells as there are columns

    [[nodiscard]] bool empty() const { return rows.empty(); }
    [[nodiscard]] std::size_t size() const { return rows.size(); }
    void add(std::vector<Cell> row) { rows.push_back(std::move(row)); }
    /// Keeps the first `most` rows; 0 keeps all. Returns the number of removed rows.
    std::size_t keep(std::size_t most);
};

/// Columns of a table, each with a function that returns a row's cell.
template <class Row>
class Columns {
public:
    using Show = std::function<Cell(const Row&)>;
    void add(Column column, Show show) {
        columns_.push_back(std::move(column));
        shows_.push_back(std::move(show));
    }
    /// `rows`: elements of type Row, or pointers to Row.
    template <class Rows>
    [[nodiscard]] Table table(const Rows& rows) const {
        Table out{{}, {}, columns_, {}};
        for (const auto& row : rows) {
            std::vector<Cell>& cells = out.rows.emplace_back();
            cells.reserve(shows_.size());
            for (const Show& show : shows_) {
                if constexpr (std::convertible_to<decltype(row), const Row&>)
                    cells.push_back(show(row));
                else
                    cells.push_back(show(*row));
            }
        }
        return out;
    }

private:
    std::vector<Column> columns_;
    std::vector<Show> shows_;
};

/// `████████············  40.0%`.
[[nodiscard]] std::string bar_text(std::uint64_t part, std::uint64_t all);

}  // namespace waymark::answers
