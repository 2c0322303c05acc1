/// What streams of files know beside their bytes.
#pragma once

#include <cstdint>

namespace waymark::capture {

/// A stream that unpacks a file.
class PackedStream {
public:
    PackedStream() = default;
    PackedStream(const PackedStream&) = delete;
    PackedStream& operator=(const PackedStream&) = delete;
    virtual ~PackedStream() = default;
    /// Bytes of the file that were read.
    [[nodiscard]] virtual std::uint64_t taken() const = 0;
};

/// A stream of the bytes of a file as they are.
class DescriptorStream {
public:
    DescriptorStream() = default;
    DescriptorStream(const DescriptorStream&) = delete;
    DescriptorStream& operator=(const DescriptorStream&) = delete;
    virtual ~DescriptorStream() = default;
    /// Of the open file; the stream closes it.
    [[nodiscard]] virtual int descriptor() const = 0;
};

}  // namespace waymark::capture
