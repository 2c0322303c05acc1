/// Converts samples of a logic analyser to the bytes that its lines carry.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace waymark::capture {

/// Adjacent samples in which no channel changes: [first, end). Bit n of `value` is channel n.
struct SampleRun {
    std::uint64_t value = 0, first = 0, end = 0;
};

/// Decodes characters of a UART: a start bit, eight bits from the lowest on, a stop bit. An idle line is high.
class UartLine {
public:
    UartLine(unsigned channel, double samples_per_bit) : channel_(channel), bit_(samples_per_bit) {}

    /// Takes the next samples; calls `byte(value)` for each character that ends in them.
    template <class Take>
    void take(const SampleRun& run, Take&& byte) {
        const bool high = (run.value >> channel_ & 1U) != 0;
        if (state_ == State::waits_for_idle && high) state_ = State::idle;
        if (state_ == State::idle && !high) {
            state_ = State::character;
            begins_ = static_cast<double>(run.first);
            taken_ = 0;
            value_ = 0;
        }
        while (state_ == State::character && begins_ + (taken_ + 0.5) * bit_ < static_cast<double>(run.end)) {
            constexpr unsigned stop_bit = 9;
            if (taken_ == 0 && high) {
                state_ = State::idle;  // a spike
            } else if (taken_ == stop_bit) {
                if (high) {
                    ++characters_;
                    byte(static_cast<std::uint8_t>(value_));
                } else {
                    ++bad_;
                }
                state_ = high ? State::idle : State::waits_for_idle;
            } else if (taken_ != 0) {
                value_ |= (high ? 1U : 0U) << (taken_ - 1);
            }
            ++taken_;
        }
    }
    [[nodiscard]] std::uint64_t characters() const { return characters_; }
    [[nodiscard]] std::uint64_t bad_characters() const { return bad_; }

private:
    enum class State : std::uint8_t { waits_for_idle, idle, character } state_ = State::waits_for_idle;
    const unsigned channel_;
    const double bit_;
    double begins_ = 0;               // the character
    unsigned taken_ = 0, value_ = 0;  // number of bits of the current character so far, and their value
    std::uint64_t characters_ = 0, bad_ = 0;
};

/// The data lines of a trace port, sampled at both edges of its clock; the bits become bytes from the lowest on.
class TracePort {
public:
    TracePort(unsigned clock, std::vector<unsigned> data, unsigned skipped_bits)
        : clock_(clock), data_(std::move(data)), skip_(skipped_bits) {}

    template <class Take>
    void take(const SampleRun& run, Take&& byte) {
        const bool high = (run.value >> clock_ & 1U) != 0;
        const bool edge = before_ && *before_ != high;
        before_ = high;
        if (!edge) return;
        for (const unsigned line : data_) {
            if (skip_ != 0) {
                --skip_;
                continue;
            }
            value_ |= static_cast<unsigned>(run.value >> line & 1U) << bits_;
            if (++bits_ != 8) continue;
            byte(static_cast<std::uint8_t>(value_));
            value_ = bits_ = 0;
        }
    }

private:
    const unsigned clock_;
    const std::vector<unsigned> data_;
    unsigned skip_;
    std::optional<bool> before_{};
    unsigned value_ = 0, bits_ = 0;
};

/// Length of a bit of a UART.
struct UartSpeed {
    double samples_per_bit = 0;
    std::uint64_t characters = 0, bad_characters = 0;
};
/// Finds the speed from the samples at which a line changes; the first of them must be a falling edge. nullopt if the
/// line carries no characters, or no two different ones, like a clock.
[[nodiscard]] std::optional<UartSpeed> uart_speed(const std::vector<std::uint64_t>& changes);

}  // namespace waymark::capture
