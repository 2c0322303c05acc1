/// What is known of a stream that unpacks a file.
#pragma once

#include <cstdint>

namespace waymark::capture {

class PackedStream {
public:
    PackedStream() = default;
    PackedStream(const PackedStream&) = delete;
    PackedStream& operator=(const PackedStream&) = delete;
    virtual ~PackedStream() = default;
    /// Bytes of the file that were read.
    [[nodiscard]] virtual std::uint64_t taken() const = 0;
};

}  // namespace waymark::capture
