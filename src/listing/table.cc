#include "waymark/listing/table.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>

#include "print.h"
#include "table_json.h"
#include "waymark/core/numbers.h"
#include "waymark/core/short_name.h"

namespace waymark::listing {

namespace {

using answers::Cell;
using answers::Colour;
using answers::Column;
using answers::Table;
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

/// Adds a value on one line, with a space after each comma and colon.
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

/// Headings of columns that are omitted first where a row is too wide, in the order of omission.
constexpr auto dispensable = std::to_array<std::string_view>({"line",
                                                              "tail",
                                                              "target",
                                                              "depth",
                                                              "kind",
                                                              "in places",
                                                              "spread %",
                                                              "source",
                                                              "bound",
                                                              "nested",
                                                              "in",
                                                              "head",
                                                              "returned",
                                                              "address",
                                                              "least",
                                                              "most",
                                                              "caller",
                                                              "95 %",
                                                              "mean",
                                                              "calls",
                                                              "inlined",
                                                              "begins at",
                                                              "lines not run",
                                                              "never taken",
                                                              "lines unknown",
                                                              "directions unknown"});

/// The place of column `c` in the order of omission: behind the first ones, columns leave from the right to the left.
/// The share by which rows are sorted and the figure beside it stay: nullopt.
std::optional<std::size_t> order_of_leaving(const std::vector<Column>& columns, std::size_t c) {
    const auto found = std::ranges::find(dispensable, std::string_view(columns[c].head));
    if (found != dispensable.end()) return static_cast<std::size_t>(found - dispensable.begin());
    constexpr std::size_t never = 2;
    return c < never ? std::nullopt : std::optional(dispensable.size() + columns.size() - c);
}

/// Width of a share without its bar: `100.0%`.
constexpr std::size_t share_width = 6;

/// The share at the end of a bar; empty if there is none.
std::string_view share_of_bar(std::string_view text) {
    return text.ends_with('%') && text.size() > share_width ? text.substr(text.size() - share_width)
                                                            : std::string_view();
}

/// A short heading: `share` for `share of cycles`, `ran` for `instructions that ran`.
std::string_view short_head(std::string_view head) {
    constexpr std::string_view that = " that ";
    const std::size_t at = head.find(that);
    return at != head.npos ? head.substr(at + that.size()) : head.substr(0, head.find(' '));
}

/// Shortens the widest texts until a row fits `most` places; each keeps at least `least`. False if the row does not
/// fit.
bool shorten_texts(std::vector<std::size_t>& widths, const std::vector<Column>& columns, std::size_t most,
                   std::size_t least) {
    constexpr std::size_t gap = 2;
    std::size_t all = 0;
    for (const std::size_t width : widths) all += width == 0 ? 0 : width + gap;
    while (all > most + gap) {
        std::size_t widest = columns.size();
        for (std::size_t c = 0; c < columns.size(); ++c)
            if (columns[c].type == Column::Type::text && widths[c] > std::max(least, shown_width(columns[c].head)) &&
                (widest == columns.size() || widths[c] > widths[widest]))
                widest = c;
        if (widest == columns.size()) return false;
        --widths[widest];
        --all;
    }
    return true;
}

/// Makes a row fit `most` places: omits bars, but never the shares beside them, shortens texts, and omits columns in
/// their order of omission. Returns the headings of omitted columns.
std::vector<std::string_view> make_fit(std::vector<std::size_t>& widths, const std::vector<Column>& columns,
                                       const std::vector<bool>& has_share, std::size_t most) {
    constexpr std::size_t recognised = 12, known = 20, readable = 28;
    std::vector<std::string_view> out;
    if (std::vector<std::size_t> fitting = widths; shorten_texts(fitting, columns, most, readable)) {
        widths = std::move(fitting);
        return out;
    }
    for (std::size_t c = 0; c < columns.size(); ++c)
        if (widths[c] != 0 && columns[c].type == Column::Type::bar)
            widths[c] = has_share[c] ? std::max(share_width, shown_width(short_head(columns[c].head))) : 0;
    const auto is_shown_text = [&](std::size_t c) { return widths[c] != 0 && columns[c].type == Column::Type::text; };
    while (true) {
        std::vector<std::size_t> fitting = widths;
        std::size_t last = columns.size(), least = 0, texts = 0;
        for (std::size_t c = 0; c < columns.size(); ++c) texts += is_shown_text(c) ? 1 : 0;
        for (std::size_t c = 0; c < columns.size(); ++c) {
            // The last text names the subject of the row.
            if (widths[c] == 0 || (is_shown_text(c) && texts == 1)) continue;
            if (const auto order = order_of_leaving(columns, c); order && (last == columns.size() || *order < least)) {
                last = c;
                least = *order;
            }
        }
        const std::size_t named = last == columns.size() ? recognised : least < dispensable.size() ? readable : known;
        if (shorten_texts(fitting, columns, most, named) || last == columns.size()) {
            widths = std::move(fitting);
            return out;
        }
        out.emplace_back(columns[last].head);
        widths[last] = 0;
    }
}

/// Whether a name belongs to the symbol before an address, as `qsort+0x1a4?`.
bool is_symbol_before(std::string_view name) {
    const std::size_t distance = name.find("+0x");
    const std::size_t end = distance == name.npos ? distance : name.find_first_not_of("0123456789abcdef", distance + 3);
    return end != name.npos && name[end] == '?';
}

}  // namespace

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

std::string rows_json(const std::vector<std::pair<std::string, std::string>>& head, const Table& rows,
                      std::string_view name) {
    ordered_json members = ordered_json::object();
    for (const auto& [key, text] : head) members[key] = text;
    return rows_json(members, rows, name);
}

void print_text(TextSink& out, const Table& table, std::uint64_t limit, std::string_view indent, std::size_t widest) {
    const auto& columns = table.columns;
    const auto& rows = table.rows;
    const std::size_t shown = limit == 0 ? rows.size() : std::min<std::size_t>(rows.size(), limit);
    const bool colours = out.colours();
    bool any_shortened = false, any_of_symbol_before = false;
    std::vector<std::vector<std::string>> texts(shown);
    for (std::size_t r = 0; r < shown; ++r)
        for (std::size_t c = 0; c < columns.size(); ++c) {
            const std::string& text = rows[r][c].shown;
            const bool too_long = widest != 0 && columns[c].left() && shown_width(text) > widest;
            texts[r].push_back(too_long ? shortened(text, widest) : text);
            any_shortened |= too_long && !columns[c].head.empty();
            any_of_symbol_before |= columns[c].left() && !columns[c].head.empty() && is_symbol_before(text);
        }
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns.size(); ++c) {
        std::size_t most = 0;
        for (std::size_t r = 0; r < shown; ++r) most = std::max(most, shown_width(texts[r][c]));
        widths.push_back(most == 0 || columns[c].head.empty() ? 0 : std::max(most, shown_width(columns[c].head)));
    }
    std::vector<std::string_view> left_out;
    std::vector<std::string> heads;
    for (const Column& column : columns) heads.push_back(column.head);
    if (widest != 0 && out.columns() != 0) {
        const std::vector<std::size_t> whole = widths;
        std::vector<bool> has_share(columns.size());
        for (std::size_t c = 0; c < columns.size(); ++c)
            for (std::size_t r = 0; r < shown; ++r) has_share[c] = has_share[c] || !share_of_bar(texts[r][c]).empty();
        left_out = make_fit(widths, columns, has_share, out.columns() - std::min(out.columns(), indent.size()));
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (columns[c].type != Column::Type::bar || widths[c] == whole[c] || widths[c] == 0) continue;
            heads[c] = short_head(columns[c].head);
            for (std::size_t r = 0; r < shown; ++r) texts[r][c] = share_of_bar(texts[r][c]);
        }
        for (std::size_t c = 0; c < columns.size(); ++c)
            for (std::size_t r = 0; r < shown; ++r) {
                if (widths[c] == 0 || columns[c].type != Column::Type::text || shown_width(texts[r][c]) <= widths[c])
                    continue;
                texts[r][c] = shortened(rows[r][c].shown, widths[c]);
                any_shortened = true;
            }
    }
    const auto line = [&](const auto& text_of, const auto& colour_of) {
        std::string gap(indent);
        for (std::size_t c = 0; c < columns.size(); ++c) {
            if (widths[c] == 0) continue;
            const std::string& cell = text_of(c);
            const std::string space(widths[c] - std::min(widths[c], shown_width(cell)), ' ');
            // Spaces are held back, so that no line ends in spaces.
            if (!columns[c].left()) gap += space;
            if (!cell.empty()) {
                print(out, "{}{}", gap, Coloured(cell, colour_of(c), colours));
                gap.clear();
            }
            gap += (columns[c].left() ? space : "") + "  ";
        }
        out.write("\n");
    };
    line([&](std::size_t c) -> const std::string& { return heads[c]; }, [](std::size_t) { return Colour::bold; });
    for (std::size_t r = 0; r < shown; ++r)
        line([&](std::size_t c) -> const std::string& { return texts[r][c]; },
             [&](std::size_t c) { return rows[r][c].colour; });
    if (shown != rows.size())
        print(out, "{}… and {} more; --limit 0 shows all\n", indent, counted(rows.size() - shown, "row"));
    if (!left_out.empty())
        out.write(fmt::format("{}… no room for {}; {} all columns\n", indent, fmt::join(left_out, ", "),
                              widest == as_wide_as_the_terminal ? "a wider terminal and json show" : "--wide shows"));
    if (any_of_symbol_before)
        print(out, "{}+0x…? in a name: the symbol before code without a symbol of its own\n", indent);
    if (any_shortened)
        print(out, "{}… in a name: shortened; {} show names whole\n", indent,
              widest == as_wide_as_the_terminal ? "a wider terminal and json" : "--wide, tsv and json");
}

void print_tsv(TextSink& out, const Table& table) {
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

}  // namespace waymark::listing
