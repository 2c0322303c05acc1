#include "table.h"

#include <algorithm>

#include "waymark/core/short_name.h"

namespace waymark::cli {

namespace {

using nlohmann::ordered_json;

ordered_json to_json(const answers::Value& value) {
    return std::visit(
        [](const auto& known) -> ordered_json {
            if constexpr (std::is_same_v<std::decay_t<decltype(known)>, std::monostate>)
                return nullptr;
            else
                return known;
        },
        value.get());
}

ordered_json to_json(const Table& table, const std::vector<Cell>& row) {
    ordered_json object = ordered_json::object();
    for (std::size_t c = 0; c < table.columns.size(); ++c)
        if (!table.columns[c].name.empty()) object[table.columns[c].name] = to_json(row[c].value);
    return object;
}

/// On one line, with a space after each comma and colon.
void add_line(std::string& out, const ordered_json& value) {
    if (!value.is_structured()) {
        out += value.dump(-1, ' ', false, ordered_json::error_handler_t::replace);
        return;
    }
    out += value.is_array() ? '[' : '{';
    bool first = true;
    for (auto at = value.begin(); at != value.end(); ++at) {
        if (!std::exchange(first, false)) out += ", ";
        if (value.is_object()) out += json_string(at.key()) + ": ";
        add_line(out, *at);
    }
    out += value.is_array() ? ']' : '}';
}

constexpr std::size_t gap = 2;  ///< between columns

/// The places that a row takes.
std::size_t row_width(const std::vector<std::size_t>& widths) {
    std::size_t all = 0;
    for (const std::size_t width : widths) all += width == 0 ? 0 : width + gap;
    return all - std::min(all, gap);
}

/// Of a bar: the figure behind the picture.
std::string figure_of_bar(const std::string& bar) {
    const std::size_t end = bar.find(' ');
    return end == bar.npos ? bar : bar.substr(end + 1);
}

/// `share` of "share of cycles", `ran` of "instructions that ran".
std::string narrow_head(const std::string& head) {
    constexpr std::string_view that = " that ";
    const std::size_t at = head.find(that);
    return at != head.npos ? head.substr(at + that.size()) : head.substr(0, head.find(' '));
}

/// Takes room from the widest texts until a row fits `most` places; each keeps enough to be recognised.
void make_fit(std::vector<std::size_t>& widths, const std::vector<Column>& columns, std::size_t most) {
    constexpr std::size_t least = 12;
    std::size_t all = row_width(widths);
    while (all > most) {
        std::size_t widest = columns.size();
        for (std::size_t c = 0; c < columns.size(); ++c)
            if (columns[c].type == Column::Type::text && widths[c] > std::max(least, shown_width(columns[c].head)) &&
                (widest == columns.size() || widths[c] > widths[widest]))
                widest = c;
        if (widest == columns.size()) return;
        --widths[widest];
        --all;
    }
}

}  // namespace

std::string json_text(const ordered_json& value) {
    return value.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json to_json(const Table& table) {
    ordered_json out = ordered_json::array();
    for (const auto& row : table.rows) out.push_back(to_json(table, row));
    return out;
}

std::string rows_json(const ordered_json& head, const Table& rows, std::string_view name) {
    std::string text = "{\n";
    for (const auto& [key, value] : head.items()) {
        text += fmt::format("  {}: ", json_string(key));
        add_line(text, value);
        text += ",\n";
    }
    text += fmt::format("  {}: [", json_string(name));
    for (std::size_t r = 0; r < rows.size(); ++r) {
        text += r == 0 ? "\n    " : ",\n    ";
        add_line(text, to_json(rows, rows.rows[r]));
    }
    return text + (rows.empty() ? "]\n}\n" : "\n  ]\n}\n");
}

void print_rows_json(Output& out, const ordered_json& head, const Table& rows) {
    out.write(rows_json(head, rows, "rows"));
}

void print_text(Output& out, const Table& table, std::uint64_t limit, std::string_view indent, std::size_t widest) {
    const auto& columns = table.columns;
    const auto& rows = table.rows;
    const std::size_t shown = limit == 0 ? rows.size() : std::min<std::size_t>(rows.size(), limit);
    const bool colours = out.colours();
    bool any_shortened = false;
    std::vector<std::vector<std::string>> texts(shown);
    for (std::size_t r = 0; r < shown; ++r)
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const std::string& text = rows[r][c].shown;
            const bool too_long = widest != 0 && columns[c].left() && shown_width(text) > widest;
            texts[r].push_back(too_long ? shortened(text, widest) : text);
            any_shortened |= too_long && !columns[c].head.empty();
        }
    std::vector<std::string> heads;
    for (const Column& column : columns) heads.push_back(column.head);
    const auto width_of = [&](std::size_t c) {
        std::size_t most = 0;
        for (std::size_t r = 0; r < shown; ++r) most = std::max(most, shown_width(texts[r][c]));
        return most == 0 || heads[c].empty() ? 0 : std::max(most, shown_width(heads[c]));
    };
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns.size(); ++c) widths.push_back(width_of(c));
    if (widest != 0 && out.columns() != 0) {
        const std::size_t room = out.columns() - std::min(out.columns(), indent.size());
        // The pictures go first; their figures stay.
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (columns[c].type != Column::Type::bar || widths[c] == 0 || row_width(widths) <= room) continue;
            heads[c] = narrow_head(columns[c].head);
            for (std::size_t r = 0; r < shown; ++r) texts[r][c] = figure_of_bar(texts[r][c]);
            widths[c] = width_of(c);
        }
        std::vector<std::size_t> with_figures = widths;
        make_fit(with_figures, columns, room);
        if (row_width(with_figures) > room)  // not even the figures fit
            for (std::size_t c = 0; c < columns.size(); ++c)
                if (columns[c].type == Column::Type::bar) widths[c] = 0;
        make_fit(widths, columns, room);
        for (std::size_t c = 0; c < columns.size(); ++c)
            for (std::size_t r = 0; r < shown; ++r) {
                if (widths[c] == 0 || shown_width(texts[r][c]) <= widths[c]) continue;
                texts[r][c] = shortened(rows[r][c].shown, widths[c]);
                any_shortened = true;
            }
    }
    const auto line = [&](const auto& text_of, const auto& colour_of) {
        std::string spaces(indent);
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (widths[c] == 0) continue;
            const std::string& cell = text_of(c);
            const std::string space(widths[c] - std::min(widths[c], shown_width(cell)), ' ');
            // Spaces are kept back, so that none end a line.
            if (!columns[c].left()) spaces += space;
            if (!cell.empty()) {
                out.print("{}{}", spaces, Coloured(cell, colour_of(c), colours));
                spaces.clear();
            }
            spaces += (columns[c].left() ? space : "") + std::string(gap, ' ');
        }
        out.write("\n");
    };
    line([&](std::size_t c) -> const std::string& { return heads[c]; }, [](std::size_t) { return Colour::bold; });
    for (std::size_t r = 0; r < shown; ++r)
        line([&](std::size_t c) -> const std::string& { return texts[r][c]; },
             [&](std::size_t c) { return rows[r][c].colour; });
    if (shown != rows.size())
        out.print("{}… and {} more; --limit 0 shows all\n", indent, counted(rows.size() - shown, "row"));
    if (any_shortened)
        out.print("{}… in a name: shortened; {} show names whole\n", indent,
                  widest == as_wide_as_the_terminal ? "a wider terminal and json" : "--wide, tsv and json");
}

void print_tsv(Output& out, const Table& table) {
    std::string text;
    bool first = true;
    const auto add = [&](const std::string& field) {
        if (!std::exchange(first, false)) text += '\t';
        text += field;
    };
    for (const Column& column : table.columns)
        if (!column.name.empty()) add(column.name);
    out.write(text + '\n');
    for (const auto& row : table.rows) {
        text.clear();
        first = true;
        for (std::size_t c = 0; c < table.columns.size(); ++c)
            if (!table.columns[c].name.empty()) add(row[c].field());
        out.write(text + '\n');
    }
}

}  // namespace waymark::cli
