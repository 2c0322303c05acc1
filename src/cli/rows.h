/// A table of answers: for reading, with bars and colours; as tab-separated values; as JSON. As `Table`, but for
/// sources that do without the library for JSON, which takes long to compile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "output.h"
#include "waymark/core/utf8.h"

namespace waymark::cli {

struct Cell {
    std::string shown{};  ///< for reading
    std::string value{};  ///< for programs, as JSON; empty: not known
    Colour colour{};

    Cell() = default;
    Cell(std::string_view text) : shown(one_line(text)), value(json_string(text)) {}
    Cell(const std::string& text) : Cell(std::string_view(text)) {}
    Cell(const char* text) : Cell(std::string_view(text)) {}
    Cell(std::uint64_t number) : shown(grouped(number)), value(std::to_string(number)) {}
    /// `value` is JSON.
    Cell(std::string_view as, std::string what, Colour in = {})
        : shown(one_line(as)), value(std::move(what)), colour(in) {}

    /// Hexadecimal; for programs text, for not all read such numbers.
    static Cell hex(std::uint64_t number);
    /// `12.3%`, and 0.123; nothing if `all` is 0.
    static Cell share(std::uint64_t part, std::uint64_t all);
    /// `12.3`; nothing if `all` is 0.
    static Cell mean(std::uint64_t sum, std::uint64_t all);
    /// For reading only: `████········  33.3%`.
    static Cell bar(std::uint64_t part, std::uint64_t all);
    [[nodiscard]] Cell in(Colour what) const {
        Cell out = *this;
        out.colour = what;
        return out;
    }
};

class Rows {
public:
    struct Column {
        std::string name;   ///< for programs; empty: for reading only
        std::string head;   ///< for reading; empty: for programs only
        bool left = false;  ///< text stands left, numbers right
    };
    explicit Rows(std::vector<Column> columns) : columns_(std::move(columns)) {}
    /// As many cells as there are columns.
    void add(std::vector<Cell> row) { rows_.push_back(std::move(row)); }
    [[nodiscard]] std::size_t size() const { return rows_.size(); }

    /// The first `limit` rows, 0: all; and how many more there are.
    void print_text(Output& out, std::uint64_t limit, std::string_view indent = "") const;
    void print_tsv(Output& out) const;
    /// An array of objects.
    [[nodiscard]] std::string json() const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<Cell>> rows_;
};

}  // namespace waymark::cli
