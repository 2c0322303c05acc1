/// The trace write buffer: eight lines of 256 bits and the line being assembled (docs/spec/dpu.md, section 5.6). Its
/// state is one number: the number of words in it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "waymark/core/result.h"
#include "waymark/dpu/registers.h"

namespace waymark::dpu {

class TraceWriteBuffer {
public:
    static constexpr unsigned line_words = 8, lines = 8, capacity = line_words * (lines + 1);

    enum class Request : std::uint8_t { none, low, high };

    [[nodiscard]] bool fits(std::size_t words) const { return held_ + words <= capacity; }
    /// Precondition: fits().
    void put(std::span<const std::uint32_t> words) {
        WM_CHECK(fits(words.size()));
        for (const std::uint32_t word : words) {
            unsigned at = first_ + held_;
            if (at >= capacity) at -= capacity;
            words_[at] = word;
            ++held_;
        }
    }
    [[nodiscard]] unsigned held() const { return held_; }
    [[nodiscard]] unsigned lines_held() const { return std::min(lines, held_ / line_words); }
    [[nodiscard]] bool full() const { return lines_held() == lines; }
    /// Words missing from the line being assembled.
    [[nodiscard]] unsigned missing() const { return (line_words - held_ % line_words) % line_words; }

    /// The buffer's request to the data control unit.
    [[nodiscard]] Request request(unsigned burst_lines, bool flush) const {
        const unsigned n = lines_held();
        if (n == lines) return Request::high;
        return n != 0 && (flush || n >= burst_lines) ? Request::low : Request::none;
    }
    /// Removes the oldest lines. Precondition: `count` lines are held.
    void take(unsigned count, std::span<std::uint32_t> out) {
        WM_CHECK(count <= lines_held() && out.size() >= std::size_t{count} * line_words);
        for (unsigned line = 0; line < count; ++line) {  // lines lie whole
            std::copy_n(words_.begin() + first_, line_words, out.begin() + line * line_words);
            first_ = first_ + line_words == capacity ? 0 : first_ + line_words;
        }
        held_ -= count * line_words;
    }

private:
    std::array<std::uint32_t, capacity> words_{};
    unsigned first_ = 0, held_ = 0;
};

}  // namespace waymark::dpu
