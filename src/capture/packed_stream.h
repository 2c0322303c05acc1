/// Properties of streams that belong to files.
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
    /// Number of bytes of the file that were read.
    [[nodiscard]] virtual std::uint64_t taken() const = 0;
};

/// A stream that gives the bytes of a file unchanged.
class DescriptorStream {
public:
    DescriptorStream() = default;
    DescriptorStream(const DescriptorStream&) = delete;
    DescriptorStream& operator=(const DescriptorStream&) = delete;
    virtual ~DescriptorStream() = default;
    /// Descriptor of the open file; the stream closes it.
    [[nodiscard]] virtual int descriptor() const = 0;
};

}  // namespace waymark::capture
