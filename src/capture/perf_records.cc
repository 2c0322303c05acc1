#include "perf_records.h"

#include <fmt/format.h>
#include <zstd.h>

#include <span>
#include <utility>

#include "waymark/core/numbers.h"

namespace waymark::capture::perf {
namespace {

constexpr std::uint64_t max_kept_bytes = std::uint64_t{64} << 20, max_kept_ratio = 64;

}  // namespace

RecordReader::~RecordReader() { ZSTD_freeDStream(unpacker_); }

void RecordReader::next_file() {
    ZSTD_freeDStream(std::exchange(unpacker_, nullptr));
    unpacked_.clear();
}

Status RecordReader::read(std::uint64_t from, std::uint64_t end, std::uint64_t size) {
    std::uint64_t at = from;
    begin_ = from;
    size_ = size;
    while (at < end) {
        if (seen_enough()) return Nothing{};
        if (records_left_) --*records_left_;
        if (progress_ != nullptr) progress_->at(at, size_);
        WM_ASSIGN_OR_RETURN(const Bytes head, window_.get(at, record_header_bytes));
        const RecordHeader h = header_of(head);
        if (head.size() < record_header_bytes || !h.possible() || h.size > end - at) {
            const std::string found =
                end - at < record_header_bytes ? counted(end - at, "byte") + ", too few for a record"
                : h.possible()
                    ? fmt::format("a record of type {} and {} bytes, but {} are left", h.type, h.size, end - at)
                    : fmt::format("no record: type {}, size {}", h.type, h.size);
            WM_ASSIGN_OR_RETURN(const std::uint64_t next, find_records(at + 1, end));
            contents_.lose(at, next, found);
            at = next;
            continue;
        }
        if (h.kind() == Type::auxtrace) {
            WM_ASSIGN_OR_RETURN(at, take_auxtrace(at, h, end));
            continue;
        }
        WM_ASSIGN_OR_RETURN(const Bytes record, window_.get(at, h.size));
        if (record.size() < h.size)  // the file became shorter while it was read
            return Error{Errc::unreadable,
                         fmt::format("{}: offset {:#x}: the file changed while it was read", window_.file().name(), at),
                         Offset{at}};
        if (h.kind() == Type::compressed || h.kind() == Type::compressed2)
            unpack(at, h, record);
        else
            contents_.take(at, h, record);
        at += h.size;
    }
    if (!unpacked_.empty())
        contents_.lose(at, at,
                       fmt::format("{} bytes of a record that the last compressed one leaves open", unpacked_.size()));
    return Nothing{};
}

Result<std::uint64_t> RecordReader::find_records(std::uint64_t at, std::uint64_t end) {
    const auto indexed = std::lower_bound(contents_.index.begin(), contents_.index.end(), at);
    const std::uint64_t limit = indexed == contents_.index.end() ? end : std::min(*indexed, end);
    // perf keeps records at multiples of 8, of 4 after build IDs, and anywhere after compressed ones.
    const std::uint64_t step = compressed_ ? 1 : 4;
    at += (step - (at - begin_) % step) % step;
    for (; at < limit; at += step) {
        if (progress_ != nullptr && at % 65536 == 0) progress_->at(at, size_);
        WM_ASSIGN_OR_RETURN(const bool here, records_at(at, end));
        if (here) return at;
    }
    return limit;
}

Result<bool> RecordReader::records_at(std::uint64_t at, std::uint64_t end) {
    for (unsigned n = 0; n < 3; ++n) {
        if (at == end) return n == 2;  // a single record may be chance
        WM_ASSIGN_OR_RETURN(const Bytes head, window_.glance(at));
        const RecordHeader h = header_of(head);
        const bool aligned = h.size % 4 == 0 || h.kind() == Type::compressed;
        if (head.size() < record_header_bytes || !h.possible() || name(h.kind()).empty() || !aligned ||
            h.size > end - at)
            return false;
        std::uint64_t bytes = h.size;
        if (h.kind() == Type::auxtrace) {
            const std::uint64_t payload = RecordFields(head).u64(8);
            if (h.size != auxtrace_bytes || payload > end - at - h.size) return false;
            bytes += payload;
        }
        at += bytes;
    }
    return true;
}

Result<std::uint64_t> RecordReader::take_auxtrace(std::uint64_t at, const RecordHeader& h, std::uint64_t end) {
    WM_ASSIGN_OR_RETURN(const Bytes record, window_.get(at, h.size));
    const RecordFields f(record);
    ++contents_.data.counts[h.type];
    if (h.size < auxtrace_bytes) {
        contents_.lose(at, at + h.size,
                       fmt::format("an AUXTRACE record of {} bytes, expected {}", h.size, auxtrace_bytes));
        return at + h.size;
    }
    Chunk c;
    c.record = {at};
    c.payload = at + h.size;
    c.bytes = f.u64(8);
    c.ring = f.u64(16);
    c.reference = f.u64(24);
    c.index = f.u32(32);
    c.tid = f.u32(36);
    c.cpu = f.u32(40);
    std::uint64_t next = c.payload + c.bytes;
    if (c.bytes > end - c.payload) {
        WM_ASSIGN_OR_RETURN(next, find_records(c.payload, end));
        const std::uint64_t there = next - c.payload;
        contents_.lose(next, next,
                       fmt::format("the AUXTRACE record at {:#x} has {} of trace, not the {} it promises", at,
                                   counted(there, "byte"), grouped(c.bytes)));
        c.missing = c.bytes - there;
        c.bytes = there;
    }
    WM_RETURN_IF_ERROR(measure_packed(c));
    contents_.data.chunks.push_back(c);
    return next;
}

Status RecordReader::measure_packed(Chunk& c) {
    constexpr std::array<std::uint8_t, 4> magic{0x28, 0xb5, 0x2f, 0xfd};
    std::vector<std::uint8_t> piece(magic.size());
    if (records_left_ || !contents_.data.simpleperf || c.bytes < magic.size()) return Nothing{};
    WM_ASSIGN_OR_RETURN(const std::size_t first, window_.file().read_at(c.payload, piece));
    if (first < magic.size() || !std::equal(magic.begin(), magic.end(), piece.begin())) return Nothing{};
    c.packed = true;
    c.packed_bytes = std::exchange(c.bytes, 0);
    // Trace typically shrinks to a fifth; data that expands much further is not trace.
    const std::uint64_t most = max_kept_bytes + 256 * c.packed_bytes;
    const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
    std::vector<std::uint8_t> unpacked(std::size_t{1} << 17);
    piece.resize(std::size_t{1} << 16);
    for (std::uint64_t at = 0; at < c.packed_bytes;) {
        const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), c.packed_bytes - at));
        WM_ASSIGN_OR_RETURN(const std::size_t got,
                            window_.file().read_at(c.payload + at, std::span(piece).first(want)));
        if (got == 0) break;
        at += got;
        ZSTD_inBuffer in{piece.data(), got, 0};
        for (;;) {
            ZSTD_outBuffer out{unpacked.data(), unpacked.size(), 0};
            const std::size_t status = ZSTD_decompressStream(stream.get(), &out, &in);
            c.bytes += out.pos;
            const bool failed = ZSTD_isError(status) != 0;
            if (failed || c.bytes > most) {
                contents_.lose(c.payload, c.payload,
                               failed ? fmt::format("compressed trace cannot be unpacked beyond {} bytes: {}", c.bytes,
                                                    ZSTD_getErrorName(status))
                                      : fmt::format("{} bytes of compressed trace unpack to more than {}, which no "
                                                    "trace does; the rest is omitted",
                                                    c.packed_bytes, most));
                return Nothing{};
            }
            // The frame ends; the zeros that follow pad the record.
            if (status == 0) return Nothing{};
            if (in.pos == in.size && out.pos < out.size) break;
        }
    }
    return Nothing{};
}

void RecordReader::unpack(std::uint64_t at, const RecordHeader& h, Bytes record) {
    ++contents_.data.counts[h.type];
    compressed_ = true;
    packed_bytes_ += h.size;
    Bytes packed = record.subspan(record_header_bytes);
    if (h.kind() == Type::compressed2) {
        const std::uint64_t bytes = RecordFields(packed).u64(0);
        packed = packed.subspan(std::min<std::size_t>(packed.size(), 8));
        packed = packed.first(static_cast<std::size_t>(std::min<std::uint64_t>(bytes, packed.size())));
    }
    if (unpacker_ == nullptr) unpacker_ = ZSTD_createDStream();
    ZSTD_inBuffer in{packed.data(), packed.size(), 0};
    std::array<std::uint8_t, 1U << 15> piece{};
    while (true) {
        ZSTD_outBuffer out{piece.data(), piece.size(), 0};
        const std::size_t status = ZSTD_decompressStream(unpacker_, &out, &in);
        if (ZSTD_isError(status) != 0) {
            contents_.lose(at, at + h.size, fmt::format("a compressed record: {}", ZSTD_getErrorName(status)));
            ZSTD_freeDStream(std::exchange(unpacker_, nullptr));
            unpacked_.clear();
            return;
        }
        unpacked_.insert(unpacked_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(out.pos));
        if (!take_unpacked(at)) return;
        if (in.pos == in.size && out.pos < out.size) return;
    }
}

bool RecordReader::take_unpacked(std::uint64_t at) {
    std::size_t done = 0;
    while (unpacked_.size() - done >= record_header_bytes) {
        const Bytes rest = Bytes(unpacked_).subspan(done);
        const RecordHeader h = header_of(rest);
        if (!h.possible() || h.kind() == Type::auxtrace || h.kind() == Type::compressed ||
            h.kind() == Type::compressed2) {
            contents_.lose(at, at, fmt::format("no record among unpacked ones: type {}, size {}", h.type, h.size));
            unpacked_.clear();
            return false;
        }
        if (h.size > rest.size()) break;
        // A few bytes can expand to any size: limit the kept bytes in proportion to the file.
        if (h.kind() != Type::sample || contents_.data.has_branch_stacks()) kept_bytes_ += h.size;
        if (kept_bytes_ > max_kept_bytes + max_kept_ratio * packed_bytes_) {
            contents_.lose(
                at, at,
                fmt::format("records unpacked from {} compressed bytes exceed {} bytes", packed_bytes_, kept_bytes_));
            unpacked_.clear();
            return false;
        }
        contents_.unpacked = true;
        contents_.take(at, h, rest.first(h.size));
        contents_.unpacked = false;
        done += h.size;
    }
    unpacked_.erase(unpacked_.begin(), unpacked_.begin() + static_cast<std::ptrdiff_t>(done));
    return true;
}

}  // namespace waymark::capture::perf
