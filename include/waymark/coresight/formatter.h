/// Puts the bytes of trace sources into frames, as a CoreSight formatter does (docs/spec/pft.md, 6.3 and 6.4).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/coresight/frame.h"
#include "waymark/coresight/trace_id.h"

namespace waymark::coresight {

struct FormatterOptions {
    /// Number of frames after which an unchanged ID is repeated at byte 0, counted from 1 after the last frame with an
    /// ID. Hardware repeats it in the eighth frame. 0: never.
    unsigned repeat_frames = 8;
    /// Trace port: number of frames from one full sync to the next, with the first before the first frame. 0: none, for
    /// memory.
    unsigned full_sync_frames = 0;
    /// `flush` adds frames of padding until the size is a multiple of this many bytes. With 0 or a divisor of 16, a
    /// frame is enough.
    unsigned memory_width_bytes = 0;
    /// The ID that the reader is assumed to know, so that its data need no ID before it: for the middle of a capture.
    std::optional<TraceId> initial_id{};
};

/// Bytes are written to `output` in whole frames; `flush` completes the last one. Equal calls give equal bytes.
class Formatter {
public:
    /// Appends to `output`, which must outlive the formatter.
    explicit Formatter(std::vector<std::uint8_t>& output, FormatterOptions options = {})
        : output_(output), options_(options), current_(options.initial_id) {}

    /// Bytes of one source, in order. `id` is any but the forbidden one: 0x00 adds padding, 0x7D a trigger.
    void add(TraceId id, Bytes bytes);

    /// Announces the ID of the next byte even if it is the current one: at an even place at once, at an odd place in
    /// the delayed form. Hardware does so where an input word happens to begin; `add` itself only at byte 0.
    void repeat_id() { repeat_due_ = true; }

    /// Trace port: there is nothing to output now. Inserts a half sync at the next even place, which is here or one
    /// byte later.
    void idle();

    /// Completes the frame with padding, and adds frames of padding up to the memory width. No effect between frames if
    /// the memory width is filled.
    void flush();

    /// `flush`, then a frame of four full syncs: later bytes are a separate capture. The next byte announces its ID.
    void barrier();

private:
    std::size_t whole_frames(TraceId id, Bytes bytes);
    void put(TraceId id, std::uint8_t byte);
    void put_id(TraceId id, unsigned at, bool delayed);
    void full_sync_if_due();
    void complete();
    void append(Bytes bytes) { output_.insert(output_.end(), bytes.begin(), bytes.end()); }

    std::vector<std::uint8_t>& output_;
    FormatterOptions options_;
    std::optional<TraceId> current_;

    std::array<std::uint8_t, frame_bytes> frame_{};
    unsigned index_ = 0;  ///< index of the next byte in `frame_`, 0 to 14
    bool repeat_due_ = false;
    bool id_in_frame_ = false;
    unsigned frames_without_id_ = 0;
    unsigned frames_to_full_sync_ = 0;
    std::uint64_t frame_bytes_written_ = 0;  ///< without sync packets, with barriers
    std::array<std::uint64_t, frame_pairs>
        half_syncs_{};  ///< number before each pair of `frame_`; none before the first
};

}  // namespace waymark::coresight
