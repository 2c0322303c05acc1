/// The trace buffers of a recording, one after the other: CoreSight frames in a file that grows, in a RAM that wraps,
/// or in the model of a sink at the end of a modelled path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/coresight/formatter.h"
#include "waymark/coresight/sinks.h"
#include "waymark/sink/path.h"

namespace waymark::record {

class TraceBuffers {
public:
    /// `ram_bytes`: number of last bytes that each buffer keeps, like the RAM of an ETB; the RAM is written out as a
    /// whole. 0: all bytes. `sink`: each buffer is the end of a path like this instead. Precondition: its check().
    TraceBuffers(std::uint64_t ram_bytes, std::optional<sink::PathSetup> sink)
        : ram_bytes_(ram_bytes), setup_(std::move(sink)) {}
    TraceBuffers(const TraceBuffers&) = delete;
    TraceBuffers& operator=(const TraceBuffers&) = delete;
    ~TraceBuffers();

    [[nodiscard]] bool is_open() const { return formatter_ != nullptr || path_to_sink_ != nullptr; }
    /// Begins the next buffer. Errors: `unreadable`: the file cannot be created; the buffer is open nevertheless.
    [[nodiscard]] Status open(std::filesystem::path file);
    /// A source comes to the open buffer.
    void connect(coresight::TraceId id);
    /// Adds bytes of a source that is connected.
    void add(coresight::TraceId id, Bytes bytes);
    /// For a sink: an edge of the source's trigger, after all bytes added so far.
    void trigger(coresight::TraceId id);
    /// Whether the sink was stopped, so that it takes no more bytes.
    [[nodiscard]] bool stopped() const { return path_to_sink_ && path_to_sink_->stopped(); }
    /// The open trace buffer; null if there is none.
    [[nodiscard]] const sink::Tmc* sink() const { return path_to_sink_ ? path_to_sink_->buffer() : nullptr; }
    /// The components between the units and the sink; null if none are modelled.
    [[nodiscard]] const sink::SinkPath* path() const { return path_to_sink_.get(); }
    /// Fills up the last frame. Flushes and stops a sink, as software does before it reads.
    void flush();
    /// Number of bytes of frames that are not written yet.
    [[nodiscard]] std::size_t waiting() const { return frames_.size(); }
    /// Writes whole frames: into the RAM if there is one, otherwise into the file. Errors: `unreadable`, with errno's
    /// reason.
    [[nodiscard]] Status write();
    /// Writes the contents of the RAM or sink, oldest frame first; does nothing if there is none. Errors: `unreadable`.
    [[nodiscard]] Status write_ram() const;
    /// Completes the open buffer.
    void close();

    /// Number of bytes of whole frames in the open buffer's file, as far as write() wrote them.
    [[nodiscard]] std::uint64_t file_bytes() const { return file_bytes_; }
    /// Whether a RAM or sink keeps the trace, and write_ram() writes it.
    [[nodiscard]] bool in_memory() const { return ram_bytes_ != 0 || (setup_ && setup_->buffer); }

    [[nodiscard]] bool wrapped() const { return replaced() != 0; }
    /// Number of bytes of the open buffer that later bytes replaced.
    [[nodiscard]] std::uint64_t replaced() const;
    /// Number of bytes sent to all buffers, and number of bytes that are still there.
    [[nodiscard]] std::uint64_t sent_bytes() const {
        return sent_ + frames_.size() + (sink() != nullptr ? sink()->written() : 0);
    }
    [[nodiscard]] std::uint64_t kept_bytes() const { return sent_bytes() - replaced_before_ - replaced(); }

private:
    void take_from_port();

    std::uint64_t ram_bytes_;
    std::vector<std::uint8_t> frames_;
    std::unique_ptr<coresight::Formatter> formatter_;
    std::filesystem::path path_;
    int file_ = -1;
    std::optional<coresight::TraceRam> ram_;
    std::optional<sink::PathSetup> setup_;
    std::unique_ptr<sink::SinkPath> path_to_sink_;
    std::uint64_t sent_ = 0, file_bytes_ = 0;
    std::uint64_t replaced_before_ = 0;  ///< the same of closed buffers
};

}  // namespace waymark::record
