#include "table.h"

#include <algorithm>

#include "waymark/core/numbers.h"

namespace waymark::cli {

namespace {

std::string field(const nlohmann::ordered_json& value) {
    if (value.is_null()) return {};
    return value.is_string() ? one_line(value.get_ref<const std::string&>()) : value.dump();
}

}  // namespace

Value Value::mean(std::uint64_t sum, std::uint64_t all) {
    if (all == 0) return {};
    const double mean = static_cast<double>(sum) / static_cast<double>(all);
    return {decimal_text(mean), mean};
}
Value Value::ratio(std::uint64_t part, std::uint64_t all) {
    if (all == 0) return {};
    const double share = static_cast<double>(part) / static_cast<double>(all);
    return {share_text(part, all), share};
}

std::string json_text(const nlohmann::ordered_json& value) {
    return value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::string bar(std::uint64_t part, std::uint64_t all, unsigned cells) {
    const double share = all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
    const auto full = static_cast<unsigned>(share * cells + 0.5);
    std::string out;
    for (unsigned i = 0; i < cells; ++i) out += i < full ? "█" : "·";
    return out + fmt::format(" {:>6}", share_text(part, all));
}

void Table::print_text(Output& out, std::string_view indent) const {
    std::vector<std::size_t> widths;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
        std::size_t most = shown_width(columns_[c].head);
        for (const auto& row : rows_) most = std::max(most, shown_width(row[c].shown));
        widths.push_back(most);
    }
    const auto line = [&](const auto& text_of) {
        std::string text(indent);
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (columns_[c].head.empty()) continue;
            const std::string& cell = text_of(c);
            const std::string space(widths[c] - shown_width(cell), ' ');
            text += columns_[c].left ? cell + space : space + cell;
            text += "  ";
        }
        text.erase(text.find_last_not_of(' ') + 1);
        out.print("{}\n", text);
    };
    line([&](std::size_t c) -> const std::string& { return columns_[c].head; });
    for (const auto& row : rows_) line([&](std::size_t c) -> const std::string& { return row[c].shown; });
}

void Table::print_tsv(Output& out) const {
    std::string text;
    for (const Column& column : columns_)
        if (!column.for_reading) text += (text.empty() ? "" : "\t") + column.name;
    out.write(text + '\n');
    for (const auto& row : rows_) {
        bool first = true;
        for (std::size_t c = 0; c < columns_.size(); ++c) {
            if (columns_[c].for_reading) continue;
            if (!first) out.write("\t");
            out.write(field(row[c].value));
            first = false;
        }
        out.write("\n");
    }
}

nlohmann::ordered_json Table::json() const {
    nlohmann::ordered_json out = nlohmann::ordered_json::array();
    for (const auto& row : rows_) {
        nlohmann::ordered_json object = nlohmann::ordered_json::object();
        for (std::size_t c = 0; c < columns_.size(); ++c)
            if (!columns_[c].for_reading) object[columns_[c].name] = row[c].value;
        out.push_back(std::move(object));
    }
    return out;
}

}  // namespace waymark::cli
