#include "waymark/pipeline/selection_texts.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "waymark/core/wire.h"

namespace waymark::pipeline {

namespace {

bool is_number(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

/// Parses seconds with up to nine decimals into ns.
std::optional<std::uint64_t> nanoseconds(std::string_view text) {
    const std::size_t point = text.find('.');
    const std::string_view whole = text.substr(0, point);
    std::string decimals(point == text.npos ? std::string_view() : text.substr(point + 1));
    constexpr std::size_t most_decimals = 9, most_digits = 10;
    if (!is_number(whole) || whole.size() > most_digits || decimals.size() > most_decimals ||
        (point != text.npos && !is_number(decimals)))
        return std::nullopt;
    decimals.resize(most_decimals, '0');
    return std::stoull(std::string(whole)) * 1'000'000'000 + std::stoull(decimals);
}

}  // namespace

Result<std::pair<std::uint64_t, std::uint64_t>> read_time(const std::string& text) {
    const Error wrong{
        Errc::usage,
        fmt::format("--time takes FIRST..LAST in seconds, as perf prints times, such as 12.5..12.75, 12.5.. "
                    "or ..12.75; not '{}'",
                    text)};
    const std::size_t dots = text.find("..");
    if (dots == text.npos || text.size() == 2) return wrong;
    std::pair<std::uint64_t, std::uint64_t> out{0, ~std::uint64_t{0}};
    const std::string_view first = std::string_view(text).substr(0, dots),
                           last = std::string_view(text).substr(dots + 2);
    for (const auto& [part, into] : {std::pair(first, &out.first), std::pair(last, &out.second)}) {
        if (part.empty()) continue;
        const auto time = nanoseconds(part);
        if (!time) return wrong;
        *into = *time;
    }
    if (out.first > out.second)
        return Error{Errc::usage, fmt::format("--time {}: the first time is later than the last", text)};
    return out;
}

Result<std::vector<std::uint32_t>> read_cpus(const std::vector<std::string>& texts) {
    constexpr std::uint64_t most = 65535;
    std::vector<std::uint32_t> out;
    for (const std::string& text : texts) {
        const Error wrong{Errc::usage, fmt::format("--cpu takes numbers of CPUs, such as 3 or 0-3,7; not '{}'", text)};
        for (std::size_t at = 0; at <= text.size();) {
            const std::size_t end = std::min(text.find(',', at), text.size());
            const std::string item = text.substr(at, end - at);
            const std::size_t dash = item.find('-');
            const std::string from = item.substr(0, dash), to = dash == item.npos ? from : item.substr(dash + 1);
            std::uint64_t first = 0, last = 0;
            if (!is_number(from) || !is_number(to) || !wire::scan_number(from, first) || !wire::scan_number(to, last) ||
                first > last || last > most)
                return wrong;
            for (std::uint64_t cpu = first; cpu <= last; ++cpu) out.push_back(static_cast<std::uint32_t>(cpu));
            at = end + 1;
        }
    }
    return out;
}

}  // namespace waymark::pipeline
