/// The trace buffers of a recording, one after the other: CoreSight frames in a file that grows, or in a RAM that
/// wraps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/coresight/formatter.h"
#include "waymark/coresight/sinks.h"

namespace waymark::record {

class TraceBuffers {
public:
    /// `ram_bytes`: number of bytes that each buffer keeps, the last ones, as the RAM of an ETB does; it is written out
    /// as a whole. 0: all bytes.
    explicit TraceBuffers(std::uint64_t ram_bytes) : ram_bytes_(ram_bytes) {}
    TraceBuffers(const TraceBuffers&) = delete;
    TraceBuffers& operator=(const TraceBuffers&) = delete;
    ~TraceBuffers();

    [[nodiscard]] bool is_open() const { return formatter_ != nullptr; }
    /// Begins the next one. Errors: `unreadable`: the file cannot be created; the buffer is open all the same.
    [[nodiscard]] Status open(std::filesystem::path file);
    /// Bytes of a source, for the one that is open.
    void add(coresight::TraceId id, Bytes bytes) { formatter_->add(id, bytes); }
    /// The last frame is filled up.
    void flush();
    /// Bytes of frames that were not written yet.
    [[nodiscard]] std::size_t waiting() const { return frames_.size(); }
    /// Writes whole frames: into the RAM if there is one, else into the file. Errors: `unreadable`, with errno's
    /// reason.
    [[nodiscard]] Status write();
    /// Writes what the RAM holds, oldest frame first; nothing without a RAM. Errors: `unreadable`.
    [[nodiscard]] Status write_ram() const;
    /// The one that is open is complete.
    void close();

    [[nodiscard]] bool wrapped() const { return replaced() != 0; }
    /// Bytes of the buffer that is open that later ones took the place of.
    [[nodiscard]] std::uint64_t replaced() const;
    /// Bytes of all buffers, and how many of them are still there.
    [[nodiscard]] std::uint64_t sent_bytes() const { return sent_ + frames_.size(); }
    [[nodiscard]] std::uint64_t kept_bytes() const { return sent_bytes() - replaced_before_ - replaced(); }

private:
    std::uint64_t ram_bytes_;
    std::vector<std::uint8_t> frames_;
    std::unique_ptr<coresight::Formatter> formatter_;
    std::filesystem::path path_;
    int file_ = -1;
    std::optional<coresight::TraceRam> ram_;
    std::uint64_t sent_ = 0, file_bytes_ = 0;
    std::uint64_t replaced_before_ = 0;  ///< of buffers that were closed
};

}  // namespace waymark::record
