/// Writes text and bytes to a sink, buffered and counted.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "waymark/core/byte_sink.h"
#include "waymark/core/numbers.h"
#include "waymark/core/utf8.h"

namespace waymark::exports {

/// Discards bytes: for computing sizes.
class NullSink final : public ByteSink {
public:
    void write(Bytes) override {}
};

/// Call `finish` before destruction to flush the buffer.
class Writer {
public:
    explicit Writer(ByteSink& sink) : sink_(sink) {}

    template <class... Args>
    void print(fmt::format_string<Args...> format, Args&&... args) {
        // `vformat` is compiled only once, in fmt's own library, unlike `format_to`.
        write(fmt::vformat(format, fmt::make_format_args(args...)));
    }
    void write(std::string_view text) {
        buffer_.append(text.data(), text.data() + text.size());
        if (buffer_.size() >= flush_bytes) flush();
    }
    /// Writes a JSON string with its quotes; invalid UTF-8 becomes U+FFFD.
    void json(std::string_view text);
    /// Writes the text of an XML element or attribute.
    void xml(std::string_view text);

    /// Flushes the buffer and returns the total size.
    std::uint64_t finish() {
        flush();
        return bytes_;
    }

private:
    static constexpr std::size_t flush_bytes = 1 << 16;
    void flush() {
        bytes_ += buffer_.size();
        if (buffer_.size() != 0) sink_.write({reinterpret_cast<const std::uint8_t*>(buffer_.data()), buffer_.size()});
        buffer_.clear();
    }

    ByteSink& sink_;
    fmt::memory_buffer buffer_;
    std::uint64_t bytes_ = 0;
};

}  // namespace waymark::exports
