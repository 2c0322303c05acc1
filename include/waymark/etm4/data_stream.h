/// The data trace stream of an ETMv4 (docs/spec/etm4.md, section 13). It is recognised by its trace ID, and counted,
/// but not decoded. Reports about a stream contain `data_stream_note`.
#pragma once

#include <algorithm>
#include <cstdint>

#include "waymark/core/types.h"

namespace waymark::etm4 {

/// The note for reports, beside the counts.
inline constexpr const char* data_stream_note = "data trace of an ETMv4: recognised and counted, not decoded";

/// Counts a data trace stream, in chunks of any size.
class DataStreamCounter {
public:
    void feed(Bytes chunk) {
        bytes_ += chunk.size();
        for (const std::uint8_t byte : chunk) {
            if (byte == 0x80 && zeros_ >= 11) ++syncs_;
            zeros_ = byte == 0 ? std::min(zeros_ + 1, 11U) : 0;
        }
    }
    /// The bytes that follow do not continue earlier ones.
    void reset() { zeros_ = 0; }

    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    /// Number of A-sync packets. If there are none, the bytes are probably not such a stream.
    [[nodiscard]] std::uint64_t syncs() const { return syncs_; }

private:
    std::uint64_t bytes_ = 0, syncs_ = 0;
    unsigned zeros_ = 0;  // number of preceding zeros, 11 for more
};

}  // namespace waymark::etm4
