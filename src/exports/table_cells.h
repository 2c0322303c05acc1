/// Shared code for descriptions of tables: types of columns, and values as cells.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "look_up.h"
#include "waymark/answers/schema.h"
#include "waymark/exports/tables.h"

namespace waymark::exports {
namespace cells {

using answers::Answers;
using answers::Index;

inline constexpr Column::Type integer = Column::Type::integer, address = Column::Type::address,
                              real = Column::Type::real, string = Column::Type::text;

inline Cell nothing() { return std::monostate{}; }
inline Cell index(Index i) { return i == answers::none ? nothing() : Cell(std::uint64_t{i}); }
inline Cell number(std::uint64_t n) { return n; }
inline Cell words(std::string_view t) { return t.empty() ? nothing() : Cell(t); }
/// A cell for a line or a rate: 0 means not known.
inline Cell known(std::uint64_t n) { return n == 0 ? nothing() : Cell(n); }
inline Cell flag(bool b) { return std::uint64_t{b}; }

/// The word for a value of an enumeration.
template <class Enum, std::size_t N>
Cell word(const std::array<std::string_view, N>& list, Enum value) {
    const auto at = static_cast<std::size_t>(value);
    return at < N ? Cell(list[at]) : nothing();
}

template <std::size_t N>
void put_row(const RowSink& sink, const Cell (&cells)[N]) {
    sink(std::span<const Cell>(cells, N));
}

}  // namespace cells

/// The tables, by group, in the order of importance for a reader.
[[nodiscard]] std::span<const TableInfo> capture_tables();
[[nodiscard]] std::span<const TableInfo> code_tables();
[[nodiscard]] std::span<const TableInfo> time_tables();
[[nodiscard]] std::span<const TableInfo> unit_tables();

}  // namespace waymark::exports
