/// A model's FIFO: the number of bytes in it, and whether it drains after an overflow (docs/spec/pft.md, 5.5). The
/// macrocells of Program Flow Trace took it over from ETMv3.
#pragma once

#include <algorithm>
#include <cstdint>

#include "waymark/core/byte_sink.h"

namespace waymark::pft {

/// `Choices` has fifo_bytes, drain_bytes and drain_cycles.
template <class Choices>
class ModelFifo {
public:
    /// Both are borrowed.
    ModelFifo(const Choices& choices, ByteSink& trace) : choices_(choices), trace_(trace) {}

    /// Cycles pass, in which bytes leave the FIFO.
    void pass(std::uint64_t cycles) {
        if (choices_.fifo_bytes == 0) return;
        drained_ += cycles * choices_.drain_bytes;
        const std::uint64_t bytes = drained_ / std::max(choices_.drain_cycles, 1U);
        drained_ %= std::max(choices_.drain_cycles, 1U);
        level_ = bytes >= level_ ? 0 : level_ - bytes;
        if (level_ == 0) {
            drained_ = 0;
            draining_ = false;
        }
    }
    /// Passes the bytes to the trace. Returns false, without effect, if they do not fit together with `reserved` more
    /// bytes. An entry larger than the FIFO fits while the FIFO is empty.
    [[nodiscard]] WM_INLINE bool put(Bytes bytes, std::uint64_t reserved) {
        if (choices_.fifo_bytes != 0) {
            if (level_ != 0 && level_ + bytes.size() + reserved > choices_.fifo_bytes) return false;
            level_ += bytes.size();
        }
        trace_.write(bytes);
        return true;
    }
    /// Nothing more goes into the FIFO until it is empty.
    void drain() { draining_ = level_ != 0; }
    [[nodiscard]] bool draining() const { return draining_; }
    /// The state before the first byte.
    void reset() { draining_ = false; }
    /// All bytes in the FIFO leave.
    void flush() { level_ = 0; }

private:
    const Choices& choices_;
    ByteSink& trace_;
    std::uint64_t level_ = 0, drained_ = 0;
    bool draining_ = false;
};

}  // namespace waymark::pft
