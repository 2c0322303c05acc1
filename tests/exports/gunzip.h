/// Unpacks gzip.
#pragma once

#include <gtest/gtest.h>
#include <zlib.h>

#include <string>

namespace waymark::support {

/// Fails the test if the bytes are not one whole gzip stream.
inline std::string gunzip(const std::string& bytes) {
    z_stream stream{};
    EXPECT_EQ(inflateInit2(&stream, 15 + 16), Z_OK);
    std::string out, buffer(1 << 16, '\0');
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(bytes.size());
    int state = Z_OK;
    while (state == Z_OK) {
        stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
        stream.avail_out = static_cast<uInt>(buffer.size());
        state = inflate(&stream, Z_NO_FLUSH);
        out.append(buffer, 0, buffer.size() - stream.avail_out);
    }
    EXPECT_EQ(state, Z_STREAM_END);
    inflateEnd(&stream);
    return out;
}

}  // namespace waymark::support
