#include "rows.h"

#include <algorithm>

#include "waymark/core/numbers.h"

namespace waymark::cli {

namespace {

/// JSON as a field of a line: text without its quotes.
std::string field(const Cell& cell) {
    if (cell.value.empty() || cell.value.front() != '"') return cell.value;
    // Without escapes it is what stands between the quotes; numbers may be shown otherwise.
    if (cell.value.find('\\') == cell.value.npos)
        return one_line(std::string_view(cell.value).substr(1, cell.value.size() - 2));
    return cell.shown;
}

}  // namespace

Cell Cell::hex(std::uint64_t number) { return {address_text(number), fmt::format("\"{:#x}\"", number)}; }
Cell Cell::share(std::uint64_t part, std::uint64_t all) {
    if (all == 0) return {};
    const double share = static_cast<double>(part) / static_cast<double>(all);
    return {share_text(part, all), fmt::format("{}", share)};
}
Cell Cell::mean(std::uint64_t sum, std::uint64_t all) {
    if (all == 0) return {};
    const double mean = static_cast<double>(sum) / static_cast<double>(all);
    return {decimal_text(mean), fmt::format("{}", mean)};
}
Cell Cell::bar(std::uint64_t part, std::uint64_t all) {
    constexpr unsigned cells = 20;
    const double share = all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
    const auto full = static_cast<unsigned>(share * cells + 0.5);
    std::string out;
    for (unsigned i = 0; i < cells; ++i) out += i < full ? "█" : "·";
    return {out + fmt::format(" {:>6}", share_text(part, all)), {}, share >= 0.1 ? Colour::cyan : Colour::plain};
}

void Rows::print_text(Output& out, std::uint64_t limit, std::string_view indent) const {
    const std::size_t shown = limit == 0 ? rows_.size() : std::min<std::size_t>(rows_.size(), limit);
    const bool colours = out.colours();
    // Empty columns are omitted.
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t most = 0;
        for (std::size_t r = 0; r < shown; ++r) most = std::max(most, shown_width(rows_[r][c].shown));
        widths.push_back(most == 0 || columns_[c].head.empty() ? 0 : std::max(most, shown_width(columns_[c].head)));
    }
    const auto line = [&](const auto& text_of, const auto& colour_of) {
        std::string gap(indent);
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (widths[c] == 0) continue;
            const std::string& cell = text_of(c);
            const std::string space(widths[c] - shown_width(cell), ' ');
            // Spaces are kept back, so that none end a line.
            if (!columns_[c].left) gap += space;
            if (!cell.empty()) {
                out.print("{}{}", gap, Coloured(cell, colour_of(c), colours));
                gap.clear();
            }
            gap += (columns_[c].left ? space : "") + "  ";
        }
        out.write("\n");
    };
    line([&](std::size_t c) -> const std::string& { return columns_[c].head; },
         [](std::size_t) { return Colour::bold; });
    for (std::size_t r = 0; r < shown; ++r)
        line([&](std::size_t c) -> const std::string& { return rows_[r][c].shown; },
             [&](std::size_t c) { return rows_[r][c].colour; });
    if (shown != rows_.size())
        out.print("{}… and {} more; --limit 0 shows all\n", indent, counted(rows_.size() - shown, "row"));
}

void Rows::print_tsv(Output& out) const {
    std::string text;
    for (const Column& column : columns_)
        if (!column.name.empty()) text += (text.empty() ? "" : "\t") + column.name;
    out.write(text + '\n');
    for (const auto& row : rows_) {
        bool first = true;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (columns_[c].name.empty()) continue;
            if (!first) out.write("\t");
            out.write(field(row[c]));
            first = false;
        }
        out.write("\n");
    }
}

std::string Rows::json() const {
    std::string out = "[";
    for (std::size_t r = 0; r < rows_.size(); ++r) {
        out += r == 0 ? "\n    {" : ",\n    {";
        bool first = true;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (columns_[c].name.empty()) continue;
            const std::string& value = rows_[r][c].value;
            out += fmt::format("{}{}: {}", first ? "" : ", ", json_string(columns_[c].name),
                               value.empty() ? "null" : value);
            first = false;
        }
        out += "}";
    }
    return out + (rows_.empty() ? "]" : "\n  ]");
}

}  // namespace waymark::cli
