/// Reads the records of a perf.data file in order; after damage it searches for the next place with records.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "perf_contents.h"
#include "perf_fields.h"
#include "waymark/capture/byte_stream.h"

struct ZSTD_DCtx_s;

namespace waymark::capture::perf {

inline constexpr std::uint64_t auxtrace_bytes = 48;  ///< size of an AUXTRACE record

/// Bytes of a file through a buffer.
class FileWindow {
public:
    /// The file is borrowed.
    explicit FileWindow(const ByteFile& file) : file_(file) {}
    [[nodiscard]] const ByteFile& file() const { return file_; }
    /// The result is valid until the next call. Shorter than asked only at the end of the file.
    Result<Bytes> get(std::uint64_t offset, std::uint64_t bytes) {
        if (offset < base_ || offset + bytes > base_ + filled_) {
            if (buffer_.size() < bytes)
                buffer_.resize(static_cast<std::size_t>(std::max<std::uint64_t>(bytes, 1U << 17)));
            WM_ASSIGN_OR_RETURN(filled_, file_.read_at(offset, buffer_));
            base_ = offset;
        }
        const std::uint64_t skip = offset - base_;
        const std::uint64_t there = skip < filled_ ? std::min<std::uint64_t>(bytes, filled_ - skip) : 0;
        return Bytes(buffer_).subspan(static_cast<std::size_t>(there == 0 ? 0 : skip), static_cast<std::size_t>(there));
    }

    /// A few bytes, without moving the buffer: candidates for records may be anywhere.
    Result<Bytes> glance(std::uint64_t offset) {
        if (offset >= base_ && offset < base_ + filled_ + 8) return get(offset, glance_.size());
        WM_ASSIGN_OR_RETURN(const std::size_t got, file_.read_at(offset, glance_));
        return Bytes(glance_).first(got);
    }

private:
    const ByteFile& file_;
    std::array<std::uint8_t, auxtrace_bytes> glance_{};
    std::vector<std::uint8_t> buffer_;
    std::uint64_t base_ = 0;
    std::size_t filled_ = 0;
};

class RecordReader {
public:
    /// All are borrowed; `progress` may be null.
    RecordReader(FileWindow& window, Progress* progress, PerfContents& contents)
        : window_(window), progress_(progress), contents_(contents) {}
    RecordReader(const RecordReader&) = delete;
    RecordReader& operator=(const RecordReader&) = delete;
    ~RecordReader();

    /// Reads the records at [from, end) of a file of `size` bytes. Errors: `unreadable`.
    [[nodiscard]] Status read(std::uint64_t from, std::uint64_t end, std::uint64_t size);
    /// The next file of the same recording follows.
    void next_file();
    /// Makes `read` end when AUXTRACE_INFO was read, or after `most_records` records. Compressed trace is not unpacked
    /// to measure it.
    void only_description(std::uint64_t most_records) { records_left_ = most_records; }

private:
    /// The next place at or after `at` where records follow one another, or `end`.
    Result<std::uint64_t> find_records(std::uint64_t at, std::uint64_t end);
    Result<bool> records_at(std::uint64_t at, std::uint64_t end);
    /// Returns the offset of the next record.
    Result<std::uint64_t> take_auxtrace(std::uint64_t at, const RecordHeader& h, std::uint64_t end);
    /// simpleperf -z compresses trace without marking it: determines the unpacked size (docs/spec/perf-cs-etm.md,
    /// section 1.8).
    Status measure_packed(Chunk& c);
    [[nodiscard]] bool seen_enough() const {
        return records_left_ && (*records_left_ == 0 || contents_.data.auxtrace_info);
    }
    void unpack(std::uint64_t at, const RecordHeader& h, Bytes record);
    /// Handles whole records in the unpacked bytes. False: they are invalid, and the bytes are lost.
    bool take_unpacked(std::uint64_t at);

    FileWindow& window_;
    Progress* progress_;
    PerfContents& contents_;
    std::uint64_t begin_ = 0, size_ = 0;  // beginning of the records; size of the file
    bool compressed_ = false;
    std::optional<std::uint64_t> records_left_;  // set if only the description is needed
    ZSTD_DCtx_s* unpacker_ = nullptr;
    std::vector<std::uint8_t> unpacked_;
    std::uint64_t packed_bytes_ = 0,
                  kept_bytes_ = 0;  // size of compressed records; size of the unpacked ones that are kept
};

}  // namespace waymark::capture::perf
