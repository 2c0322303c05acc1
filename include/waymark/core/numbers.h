/// Formats numbers for reading: docs/numbers.md. The page of the report has the same rules (web/src/ui/text.ts);
/// web/test/numbers.tsv has cases for both. Output for programs has plain numbers.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace waymark {

/// Text with thousands separators: `12,345,678`.
[[nodiscard]] inline std::string grouped(std::uint64_t value) {
    const std::string digits = std::to_string(value);
    std::string out;
    for (std::size_t i = 0; i < digits.size(); ++i) {
        if (i != 0 && (digits.size() - i) % 3 == 0) out += ',';
        out += digits[i];
    }
    return out;
}

/// `1 byte`, `2,345 bytes`; `many` is for irregular plurals.
[[nodiscard]] inline std::string counted(std::uint64_t number, std::string_view one, std::string_view many = {}) {
    std::string out = grouped(number) + ' ';
    out += number == 1 || many.empty() ? one : many;
    if (number != 1 && many.empty()) out += 's';
    return out;
}

/// The verb for a count: `is` or `are`.
[[nodiscard]] inline std::string_view are(std::uint64_t number) { return number == 1 ? "is" : "are"; }
/// `once`, `2,345 times`.
[[nodiscard]] inline std::string times(std::uint64_t number) { return number == 1 ? "once" : counted(number, "time"); }

/// `1,234.5`; below 1 with three decimals: `0.125`; from 10^15 on, where a double has hardly a decimal, `1.234e+15`.
/// Halves are rounded up. `–` if it is not a number. For means and other numbers that are not counts.
[[nodiscard]] inline std::string decimal_text(double value) {
    if (!std::isfinite(value)) return "–";
    const double size = std::fabs(value);
    const unsigned decimals = size != 0 && std::floor(size * 1000 + 0.5) < 1000 ? 3 : 1;
    const double scale = decimals == 3 ? 1000 : 10;
    if (size >= 1e15) {
        char text[24];
        std::snprintf(text, sizeof text, "%.3e", value);
        return text;
    }
    const auto scaled = static_cast<std::uint64_t>(std::floor(size * scale + 0.5));
    const std::string part = std::to_string(scaled % static_cast<std::uint64_t>(scale));
    return (value < 0 && scaled != 0 ? "-" : "") + grouped(scaled / static_cast<std::uint64_t>(scale)) + "." +
           std::string(decimals - part.size(), '0') + part;
}

/// Formats whole numbers like counts, others with decimals: `12`, `12.5`.
[[nodiscard]] inline std::string quantity_text(double value) {
    constexpr double most = 9007199254740991;  // doubles represent every whole number up to this one
    if (value >= 0 && value <= most && value == std::floor(value)) return grouped(static_cast<std::uint64_t>(value));
    return decimal_text(value);
}

/// `33.3%`. A nonzero share is never written as 0.0%, and an incomplete one never as 100.0%: `<0.1%`, `>99.9%`. `–` if
/// `all` is 0.
[[nodiscard]] inline std::string share_text(std::uint64_t part, std::uint64_t whole) {
    if (whole == 0) return "–";
    const auto permille =
        static_cast<std::uint64_t>(std::floor(1000 * static_cast<double>(part) / static_cast<double>(whole) + 0.5));
    if (part != 0 && permille == 0) return "<0.1%";
    if (part < whole && permille >= 1000) return ">99.9%";
    return grouped(permille / 10) + "." + std::to_string(permille % 10) + "%";
}

/// `500 ns`, `1.5 µs`, `12.3 ms`, `1,234.5 s`
[[nodiscard]] inline std::string duration_text(double nanoseconds) {
    const double size = std::fabs(nanoseconds);
    const double scale = size >= 1e9 ? 1e9 : size >= 1e6 ? 1e6 : size >= 1e3 ? 1e3 : 1;
    const std::string_view unit = size >= 1e9 ? "s" : size >= 1e6 ? "ms" : size >= 1e3 ? "µs" : "ns";
    return quantity_text(nanoseconds / scale) + " " + std::string(unit);
}

/// `1 byte`, `12,345 bytes`; from a million on `12.3 MB`, from a thousand million on `1.2 GB` (powers of ten).
[[nodiscard]] inline std::string size_text(std::uint64_t bytes) {
    if (bytes == 1) return "1 byte";
    if (bytes < 1'000'000) return grouped(bytes) + " bytes";
    const bool large = bytes >= 1'000'000'000;
    return decimal_text(static_cast<double>(bytes) / (large ? 1e9 : 1e6)) + (large ? " GB" : " MB");
}

/// `0x00008010`, `0xffff800008001000`: at least eight digits.
[[nodiscard]] inline std::string address_text(std::uint64_t address) {
    char text[24];
    std::snprintf(text, sizeof text, "0x%08llx", static_cast<unsigned long long>(address));
    return text;
}

}  // namespace waymark
