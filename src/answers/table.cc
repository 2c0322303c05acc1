#include "waymark/answers/table.h"

#include <fmt/format.h>

#include <algorithm>

#include "waymark/core/numbers.h"
#include "waymark/core/utf8.h"

namespace waymark::answers {

namespace {

double ratio(std::uint64_t part, std::uint64_t all) { return static_cast<double>(part) / static_cast<double>(all); }

/// A real in JSON notation: a whole value keeps its decimal point.
std::string real_text(double number) {
    std::string out = fmt::format("{}", number);
    if (out.find_first_of(".en") == out.npos) out += ".0";
    return out;
}

}  // namespace

Cell::Cell(std::string_view text) : shown(one_line(text)), value(text) {}
Cell::Cell(std::uint64_t number) : shown(grouped(number)), value(number) {}
Cell::Cell(std::string_view as, Value what, Colour in) : shown(one_line(as)), value(std::move(what)), colour(in) {}

Cell Cell::hex(std::uint64_t number) { return {address_text(number), fmt::format("{:#x}", number)}; }
Cell Cell::share(std::uint64_t part, std::uint64_t all) {
    return all == 0 ? Cell() : Cell(share_text(part, all), ratio(part, all));
}
Cell Cell::mean(std::uint64_t sum, std::uint64_t all) {
    return all == 0 ? Cell() : Cell(decimal_text(ratio(sum, all)), ratio(sum, all));
}
Cell Cell::bar(std::uint64_t part, std::uint64_t all) {
    const bool much = all != 0 && ratio(part, all) >= 0.1;
    return {bar_text(part, all), nullptr, much ? Colour::cyan : Colour::plain};
}

std::string Cell::field() const {
    struct Field {
        std::string operator()(std::monostate) const { return {}; }
        std::string operator()(bool flag) const { return flag ? "true" : "false"; }
        std::string operator()(std::uint64_t number) const { return std::to_string(number); }
        std::string operator()(std::int64_t number) const { return std::to_string(number); }
        std::string operator()(double number) const { return real_text(number); }
        std::string operator()(const std::string& text) const { return one_line(text); }
    };
    return std::visit(Field(), value.get());
}

std::size_t Table::keep(std::size_t most) {
    if (most == 0 || rows.size() <= most) return 0;
    const std::size_t removed = rows.size() - most;
    rows.resize(most);
    return removed;
}

std::string bar_text(std::uint64_t part, std::uint64_t all) {
    constexpr unsigned cells = 20;
    const auto full = all == 0 ? 0U : static_cast<unsigned>(ratio(part, all) * cells + 0.5);
    std::string out;
    for (unsigned i = 0; i < cells; ++i) out += i < full ? "█" : "·";
    return out + fmt::format(" {:>6}", share_text(part, all));
}

}  // namespace waymark::answers
