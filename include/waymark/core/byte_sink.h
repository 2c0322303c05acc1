/// Receives bytes that are produced piece by piece: a file, a buffer of bounded size, the next unit on a trace bus.
#pragma once

#include <vector>

#include "waymark/core/types.h"

namespace waymark {

/// Receives bytes in order. The division into pieces has no meaning for a sink.
class ByteSink {
public:
    virtual ~ByteSink() = default;
    /// Borrowed for the call.
    virtual void write(Bytes bytes) = 0;
};

/// Keeps everything.
class ByteCollector final : public ByteSink {
public:
    void write(Bytes bytes) override { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }
    [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }
    [[nodiscard]] std::vector<std::uint8_t> take() { return std::move(bytes_); }

private:
    std::vector<std::uint8_t> bytes_;
};

}  // namespace waymark
