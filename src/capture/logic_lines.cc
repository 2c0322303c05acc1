#include "logic_lines.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace waymark::capture {

namespace {

/// Lengths, in samples, of the stretches in which the line is low: a start bit and the 0 bits that follow it.
std::vector<double> low_stretches(const std::vector<std::uint64_t>& changes) {
    std::vector<double> out;
    for (std::size_t i = 0; i + 1 < changes.size(); i += 2)
        out.push_back(static_cast<double>(changes[i + 1] - changes[i]));
    std::sort(out.begin(), out.end());
    return out;
}

/// Refines a first guess of a bit's length so that all lengths are as near as possible to whole numbers of bits.
double fitted(const std::vector<double>& lows, double bit) {
    constexpr unsigned rounds = 4;
    constexpr double most_bits = 9;  // longest low stretch in one character
    for (unsigned round = 0; round < rounds; ++round) {
        double samples = 0, bits = 0;
        for (const double low : lows) {
            const double count = std::max(1.0, std::round(low / bit));
            if (count > most_bits) break;
            samples += low;
            bits += count;
        }
        if (bits == 0) break;
        bit = samples / bits;
    }
    return bit;
}

/// The speed if the line carries characters with bits of that length; nullopt if it does not carry two different
/// characters.
std::optional<UartSpeed> carried(const std::vector<std::uint64_t>& changes, double bit) {
    UartLine line(0, bit);
    std::array<bool, 256> seen{};
    const auto take = [&](std::uint8_t byte) { seen[byte] = true; };
    line.take({1, 0, changes.front()}, take);
    for (std::size_t i = 0; i < changes.size(); ++i) {
        const bool high = i % 2 == 1;
        // After its last change, the line is constant.
        const std::uint64_t end = i + 1 < changes.size() ? changes[i + 1] : changes[i] + 1;
        line.take({high ? 1U : 0U, changes[i], end}, take);
    }
    if (std::count(seen.begin(), seen.end(), true) < 2) return std::nullopt;
    return UartSpeed{bit, line.characters(), line.bad_characters()};
}

}  // namespace

std::optional<UartSpeed> uart_speed(const std::vector<std::uint64_t>& changes) {
    constexpr std::size_t least_changes = 40;
    constexpr std::uint64_t least_characters = 16, most_bad = 100;  // one bad character in 100
    constexpr double least_samples = 2;                             // of a bit
    if (changes.size() < least_changes) return std::nullopt;
    const std::vector<double> lows = low_stretches(changes);
    const double shortest = lows[lows.size() / 50];  // a few spikes may be shorter
    std::optional<UartSpeed> best;
    // The shortest stretch may consist of several bits, and may differ by a sample from others of the same length.
    for (unsigned bits = 1; bits <= 9; ++bits)
        for (const double wider : {1.0, 1.15, 1.3}) {
            const double guess = shortest * wider / bits;
            if (guess < least_samples) continue;
            const auto found = carried(changes, fitted(lows, guess));
            if (!found || found->characters < least_characters) continue;
            if (found->bad_characters * most_bad > found->characters) continue;
            if (!best || found->bad_characters * best->characters < best->bad_characters * found->characters)
                best = found;
        }
    return best;
}

}  // namespace waymark::capture
