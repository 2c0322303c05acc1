/// A table that is printed for reading, as tab-separated values, or as JSON.
#pragma once

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "output.h"
#include "waymark/core/utf8.h"

namespace waymark::cli {

/// Numbers are told apart from their looks: `12,345` for reading, 12345 for programs.
struct Value {
    std::string shown{};             ///< for reading
    nlohmann::ordered_json value{};  ///< null: not known, an empty field

    Value() = default;
    Value(std::string text) : shown(one_line(text)), value(std::move(text)) {}
    Value(std::uint64_t number) : shown(grouped(number)), value(number) {}
    Value(std::string_view as, nlohmann::ordered_json what) : shown(one_line(as)), value(std::move(what)) {}
    /// `shown` empty if `all` is 0.
    static Value mean(std::uint64_t sum, std::uint64_t all);
    static Value ratio(std::uint64_t part, std::uint64_t all);
};

class Table {
public:
    struct Column {
        std::string name;          ///< for programs
        std::string head;          ///< for reading; empty: for programs only
        bool left = false;         ///< text stands left, numbers right
        bool for_reading = false;  ///< a bar, which programs do not want
    };
    explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
    /// As many values as there are columns.
    void add(std::vector<Value> row) { rows_.push_back(std::move(row)); }
    [[nodiscard]] bool empty() const { return rows_.empty(); }
    /// Keeps the first `most` rows; gives back how many went.
    [[nodiscard]] std::size_t keep(std::size_t most) {
        const std::size_t left_out = rows_.size() - std::min(rows_.size(), most);
        rows_.resize(rows_.size() - left_out);
        return left_out;
    }

    void print_text(Output& out, std::string_view indent = "") const;
    void print_tsv(Output& out) const;
    [[nodiscard]] nlohmann::ordered_json json() const;

private:
    std::vector<Column> columns_;
    std::vector<std::vector<Value>> rows_;
};

/// JSON as text, over several lines; strings in it that are not UTF-8 have U+FFFD where they are not.
[[nodiscard]] std::string json_text(const nlohmann::ordered_json& value);

/// `████████············  40.0%`: a bar of `cells` and the number.
[[nodiscard]] std::string bar(std::uint64_t part, std::uint64_t all, unsigned cells = 20);

}  // namespace waymark::cli
