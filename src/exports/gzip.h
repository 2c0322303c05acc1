/// Compresses bytes to gzip, piece by piece.
#pragma once

#include <zlib.h>

#include <array>

#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"

namespace waymark::exports {

/// Equal input gives equal output: no file name and no time are stored. `finish` writes the end.
class GzipSink final : public ByteSink {
public:
    explicit GzipSink(ByteSink& next) : next_(next) {
        constexpr int gzip_of_32_kib = 15 + 16, memory_level = 8;
        WM_CHECK(deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_of_32_kib, memory_level,
                              Z_DEFAULT_STRATEGY) == Z_OK);
    }
    GzipSink(const GzipSink&) = delete;
    GzipSink& operator=(const GzipSink&) = delete;
    ~GzipSink() override { deflateEnd(&stream_); }

    void write(Bytes bytes) override {
        while (!bytes.empty()) {
            const std::size_t piece = std::min<std::size_t>(bytes.size(), 1U << 30);
            stream_.next_in = const_cast<Bytef*>(bytes.data());  // zlib only reads the input
            stream_.avail_in = static_cast<uInt>(piece);
            run(Z_NO_FLUSH);
            bytes = bytes.subspan(piece);
        }
    }
    /// Total number of bytes written.
    std::uint64_t finish() {
        stream_.next_in = nullptr;
        stream_.avail_in = 0;
        run(Z_FINISH);
        return stream_.total_out;
    }

private:
    void run(int flush) {
        int state = Z_OK;
        do {
            stream_.next_out = out_.data();
            stream_.avail_out = static_cast<uInt>(out_.size());
            state = deflate(&stream_, flush);
            next_.write({out_.data(), out_.size() - stream_.avail_out});
        } while (stream_.avail_out == 0 || (flush == Z_FINISH && state != Z_STREAM_END));
    }

    ByteSink& next_;
    z_stream stream_{};
    std::array<std::uint8_t, 1 << 14> out_{};
};

}  // namespace waymark::exports
