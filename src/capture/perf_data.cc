#include "waymark/capture/perf_data.h"

#include <fmt/format.h>
#include <zstd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "waymark/capture/perf_file.h"

namespace waymark::capture::perf {
namespace {

constexpr std::uint64_t file_header_bytes = 104, pipe_header_bytes = 16, record_header_bytes = 8;
constexpr std::uint64_t max_section_bytes = std::uint64_t{16} << 20;  // of a feature or list of ids: larger is damage
constexpr unsigned first_simpleperf_feature = 128;
constexpr std::uint64_t max_index_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t auxtrace_bytes = 48;
constexpr std::uint32_t simpleperf_types = 32768;                    // and above
constexpr std::uint64_t max_record_bytes = std::uint64_t{16} << 20;  // of simpleperf; a split one is longer
constexpr std::uint64_t max_split_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t max_kept_bytes = std::uint64_t{64} << 20, max_kept_ratio = 64;

/// Little-endian numbers out of bytes that may be too short: what is not there is 0.
class Fields {
public:
    explicit Fields(Bytes bytes) : bytes_(bytes) {}
    [[nodiscard]] std::uint64_t number(std::uint64_t offset, unsigned size) const {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < size && offset + i < bytes_.size(); ++i)
            value |= std::uint64_t{bytes_[static_cast<std::size_t>(offset + i)]} << (8 * i);
        return value;
    }
    [[nodiscard]] std::uint64_t u64(std::uint64_t offset) const { return number(offset, 8); }
    [[nodiscard]] std::uint32_t u32(std::uint64_t offset) const {
        return static_cast<std::uint32_t>(number(offset, 4));
    }
    [[nodiscard]] std::uint16_t u16(std::uint64_t offset) const {
        return static_cast<std::uint16_t>(number(offset, 2));
    }
    [[nodiscard]] std::uint8_t u8(std::uint64_t offset) const { return static_cast<std::uint8_t>(number(offset, 1)); }
    /// Up to a zero byte.
    [[nodiscard]] std::string text(std::uint64_t offset) const {
        const Bytes rest = from(offset);
        const auto end = std::find(rest.begin(), rest.end(), std::uint8_t{0});
        return {rest.begin(), end};
    }
    [[nodiscard]] Bytes from(std::uint64_t offset) const {
        return bytes_.subspan(static_cast<std::size_t>(std::min<std::uint64_t>(offset, bytes_.size())));
    }
    [[nodiscard]] std::vector<std::uint8_t> copy(std::uint64_t offset, std::uint64_t size) const {
        const Bytes rest = from(offset);
        const Bytes part = rest.first(static_cast<std::size_t>(std::min<std::uint64_t>(size, rest.size())));
        return {part.begin(), part.end()};
    }
    [[nodiscard]] std::uint64_t size() const { return bytes_.size(); }

private:
    Bytes bytes_;
};

struct Header {
    std::uint32_t type{};
    std::uint16_t misc{};
    std::uint32_t size{};
    [[nodiscard]] bool misc_bit(unsigned bit) const { return (misc >> bit & 1U) != 0; }
    [[nodiscard]] Type kind() const { return static_cast<Type>(type); }
    /// A type the kernel, perf or simpleperf may give, known here or not, and room for itself.
    [[nodiscard]] bool possible() const {
        return size >= record_header_bytes && size <= max_record_bytes &&
               ((type >= 1 && type < 32) || (type >= 64 && type < 128) ||
                (type >= simpleperf_types && type < simpleperf_types + 32));
    }
};
Header header_of(Bytes bytes) {
    const Fields f(bytes);
    // Records of simpleperf have a size of 32 bits, the high half of which comes first.
    if (f.u32(0) >= simpleperf_types) return {f.u32(0), 0, std::uint32_t{f.u16(4)} << 16 | f.u16(6)};
    return {f.u32(0), f.u16(4), f.u16(6)};
}

struct Section {
    std::uint64_t offset{}, bytes{};
};

Attr attr_of(Bytes bytes) {
    const Fields all(bytes);
    const Fields f(bytes.first(std::min<std::size_t>(bytes.size(), std::max<std::uint32_t>(all.u32(4), 64))));
    Attr a;
    a.type = f.u32(0);
    a.config = f.u64(8);
    a.sample_period = f.u64(16);
    a.sample_type = f.u64(24);
    a.read_format = f.u64(32);
    a.flags = f.u64(40);
    a.config1 = f.u64(56);
    a.config2 = f.u64(64);
    a.config3 = f.u64(128);
    a.config4 = f.u64(136);
    return a;
}

class Reader {
public:
    Reader(const ByteFile& file, Progress* progress, std::span<const PerfFile::Run> runs = {})
        : file_(file), progress_(progress), runs_(runs), size_(runs.empty() ? file.size() : runs.front().offset) {}
    Reader(const Reader&) = delete;
    Reader& operator=(const Reader&) = delete;
    ~Reader() { ZSTD_freeDStream(unpacker_); }

    Result<PerfData> read() {
        WM_ASSIGN_OR_RETURN(const Bytes head, get(0, file_header_bytes));
        const Fields f(head);
        if (!is_perf_data(head))
            return Error{Errc::bad_format,
                         fmt::format("{}: does not begin as a perf.data file does (PERFILE2)", file_.name())};
        if (head[0] != 'P')
            return Error{Errc::unsupported,
                         fmt::format("{}: was written on a machine of the other byte order, which is not supported; "
                                     "only little-endian files are",
                                     file_.name())};
        const std::uint64_t header_bytes = f.u64(8);
        if (header_bytes == pipe_header_bytes) {
            out_.pipe = true;
            WM_RETURN_IF_ERROR(read_records(pipe_header_bytes, size_));
            return finish();
        }
        if (header_bytes < file_header_bytes || head.size() < file_header_bytes)
            return Error{
                Errc::bad_format,
                fmt::format("{}: its header is {} bytes long, expected {} or more (or {} from a pipe)", file_.name(),
                            std::min<std::uint64_t>(header_bytes, head.size()), file_header_bytes, pipe_header_bytes)};
        const std::uint64_t entry_bytes = f.u64(16);
        const Section attrs{f.u64(24), f.u64(32)}, data{f.u64(40), f.u64(48)};
        std::array<std::uint64_t, 4> features{};
        for (unsigned i = 0; i < 4; ++i) features[i] = f.u64(72 + 8 * i);

        WM_RETURN_IF_ERROR(read_attrs(attrs, entry_bytes));
        if (data.offset < file_header_bytes || data.offset > size_)
            return Error{Errc::bad_format, fmt::format("{}: says that its data begin at {:#x}, but has {:#x} bytes",
                                                       file_.name(), data.offset, size_)};
        const std::uint64_t room = size_ - data.offset;
        out_.unfinished = data.bytes == 0;
        if (data.bytes != 0 && data.bytes <= room)
            WM_RETURN_IF_ERROR(read_features(data.offset + data.bytes, features));
        if (data.bytes > room)
            lose(size_, size_, fmt::format("the file ends {:#x} bytes before its data do", data.bytes - room));
        const std::uint64_t end = data.bytes == 0 || data.bytes > room ? size_ : data.offset + data.bytes;
        WM_RETURN_IF_ERROR(read_records(data.offset, end));
        return finish();
    }

private:
    // Bytes of the file through a buffer; valid until the next call. Fewer only at the end.
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

    /// A few bytes, without moving the buffer: candidates for records may point anywhere.
    Result<Bytes> glance(std::uint64_t offset) {
        if (offset >= base_ && offset < base_ + filled_ + 8) return get(offset, glance_.size());
        WM_ASSIGN_OR_RETURN(const std::size_t got, file_.read_at(offset, glance_));
        return Bytes(glance_).first(got);
    }

    void lose(std::uint64_t first, std::uint64_t end, std::string message) {
        ++out_.loss_count;
        out_.lost_bytes += end - first;
        if (out_.losses.size() < PerfData::max_losses) out_.losses.push_back({{first}, {end}, std::move(message)});
    }

    Result<PerfData> finish() {
        for (const PerfFile::Run& run : runs_) {
            size_ = run.offset + run.bytes;
            index_.clear();  // it is that of a single file
            ZSTD_freeDStream(std::exchange(unpacker_, nullptr));
            unpacked_.clear();
            split_.clear();
            WM_RETURN_IF_ERROR(read_records(run.offset, size_));
        }
        if (progress_ != nullptr) progress_->at(size_, size_);
        for (auto& [id, name] : event_names_)
            if (const auto found = attr_by_id_.find(id); found != attr_by_id_.end())
                out_.attrs[found->second].name = name;
        return std::move(out_);
    }

    void add_attr(Attr attr) {
        for (const std::uint64_t id : attr.ids) attr_by_id_.emplace(id, out_.attrs.size());
        out_.attrs.push_back(std::move(attr));
    }

    /// The section's bytes, or why there are none.
    Result<std::vector<std::uint8_t>> section(const Section& s, std::uint64_t most, std::string_view what) {
        std::vector<std::uint8_t> bytes;
        if (s.offset > size_ || s.bytes > size_ - s.offset || s.bytes > most) {
            lose(std::min(s.offset, size_), std::min(s.offset, size_),
                 fmt::format("{}: said to be {:#x} bytes at {:#x} of a file of {:#x}", what, s.bytes, s.offset, size_));
            return bytes;
        }
        bytes.resize(static_cast<std::size_t>(s.bytes));
        if (bytes.empty()) return bytes;
        WM_ASSIGN_OR_RETURN(const std::size_t got, file_.read_at(s.offset, bytes));
        bytes.resize(got);
        return bytes;
    }

    Status read_attrs(const Section& attrs, std::uint64_t entry_bytes) {
        WM_ASSIGN_OR_RETURN(const auto bytes, section(attrs, max_section_bytes, "event attributes"));
        if (bytes.empty()) return Nothing{};
        if (entry_bytes < 64 + 16 || entry_bytes > bytes.size()) {
            lose(attrs.offset, attrs.offset,
                 fmt::format("event attributes of {} bytes each in {} bytes", entry_bytes, attrs.bytes));
            return Nothing{};
        }
        for (std::uint64_t at = 0; at + entry_bytes <= bytes.size(); at += entry_bytes) {
            const Bytes entry =
                Bytes(bytes).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(entry_bytes));
            Attr attr = attr_of(entry.first(entry.size() - 16));
            const Fields f(entry);
            WM_ASSIGN_OR_RETURN(const auto ids, section({f.u64(entry_bytes - 16), f.u64(entry_bytes - 8)},
                                                        max_section_bytes, "event ids"));
            const Fields id(ids);
            for (std::uint64_t i = 0; i + 8 <= ids.size(); i += 8) attr.ids.push_back(id.u64(i));
            add_attr(std::move(attr));
        }
        return Nothing{};
    }

    Status read_features(std::uint64_t table, const std::array<std::uint64_t, 4>& set) {
        std::uint64_t at = table;
        for (unsigned feature = 0; feature < 256; ++feature) {
            if ((set[feature / 64] >> feature % 64 & 1U) == 0) continue;
            WM_ASSIGN_OR_RETURN(const Bytes entry, get(at, 16));
            if (entry.size() < 16) {
                lose(std::min(at, size_), size_, fmt::format("the table of features ends before feature {}", feature));
                return Nothing{};
            }
            const Fields f(entry);
            const Section where{f.u64(0), f.u64(8)};
            at += 16;
            if (feature >= first_simpleperf_feature) out_.simpleperf = true;
            if (feature == 133) out_.branch_list = true;
            constexpr unsigned known[] = {2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16, 18, 129};
            if (std::find(std::begin(known), std::end(known), feature) == std::end(known)) continue;
            WM_ASSIGN_OR_RETURN(const auto bytes, section(where, feature == 18 ? max_index_bytes : max_section_bytes,
                                                          fmt::format("feature {}", feature)));
            take_feature(feature, bytes);
        }
        return Nothing{};
    }

    /// u32 length, and that many bytes with a zero among them.
    static std::string counted_text(const Fields& f, std::uint64_t& at) {
        const std::uint64_t bytes = f.u32(at);
        const std::vector<std::uint8_t> raw = f.copy(at + 4, bytes);
        at += 4 + bytes;
        return Fields(raw).text(0);
    }

    void take_feature(std::uint64_t feature, Bytes bytes) {
        const Fields f(bytes);
        std::uint64_t at = 0;
        switch (feature) {
            case 2:
                while (at + record_header_bytes <= bytes.size()) {
                    const Header h = header_of(f.from(at));
                    if (h.size < record_header_bytes) break;
                    take_build_id(h, Bytes(f.copy(at, h.size)));
                    at += h.size;
                }
                break;
            case 3: out_.hostname = counted_text(f, at); break;
            case 4: out_.release = counted_text(f, at); break;
            case 5: out_.version = counted_text(f, at); break;
            case 6: out_.architecture = counted_text(f, at); break;
            case 7:
                out_.cpus_online = f.u32(0);
                out_.cpus_available = f.u32(4);
                break;
            case 8: out_.cpu_description = counted_text(f, at); break;
            case 9: out_.cpu_id = counted_text(f, at); break;
            case 11: {
                const std::uint32_t count = f.u32(0);
                at = 4;
                for (std::uint32_t i = 0; i < count && at < bytes.size(); ++i) {
                    if (i != 0) out_.command_line += ' ';
                    out_.command_line += counted_text(f, at);
                }
                break;
            }
            case 12: take_event_descriptions(f); break;
            case 16: {
                const std::uint32_t count = f.u32(0);
                at = 4;
                for (std::uint32_t i = 0; i < count && at < bytes.size(); ++i) {
                    const std::uint32_t type = f.u32(at);
                    at += 4;
                    out_.pmus[type] = counted_text(f, at);
                }
                break;
            }
            case 18:
                // A count and pairs of words; older simpleperf writes the pairs alone.
                out_.index_without_count = bytes.size() / 8 % 2 == 0 && bytes.size() >= 16;
                for (at = out_.index_without_count ? 0 : 8; at + 16 <= bytes.size(); at += 16)
                    index_.push_back(f.u64(at));
                std::sort(index_.begin(), index_.end());
                break;
            case 129:
                while (at < bytes.size()) {
                    const std::string key = f.text(at);
                    at += key.size() + 1;
                    if (key.empty()) break;
                    std::string value = f.text(at);
                    at += value.size() + 1;
                    out_.meta_info[key] = std::move(value);
                }
                break;
            default: break;
        }
    }

    void take_event_descriptions(const Fields& f) {
        const std::uint32_t count = f.u32(0);
        const std::uint64_t attr_bytes = f.u32(4);
        std::uint64_t at = 8;
        for (std::uint32_t i = 0; i < count && at < f.size(); ++i) {
            at += attr_bytes;
            const std::uint32_t ids = f.u32(at);
            at += 4;
            const std::string event = counted_text(f, at);
            for (std::uint32_t k = 0; k < ids && at + 8 <= f.size(); ++k, at += 8) event_names_[f.u64(at)] = event;
        }
    }

public:
    /// As perf::auxtrace_type.
    std::optional<std::uint32_t> find_auxtrace_type() {
        const auto head = get(0, file_header_bytes);
        if (!head || !is_perf_data(*head) || (*head)[0] != 'P') return std::nullopt;
        const Fields f(*head);
        const bool pipe = f.u64(8) == pipe_header_bytes;
        std::uint64_t at = pipe ? pipe_header_bytes : f.u64(40);
        // It comes before all that is recorded; but a file without one is not read to its end for it.
        constexpr unsigned most_records = 1 << 20;
        for (unsigned i = 0; i < most_records && at < size_; ++i) {
            const auto record = get(at, auxtrace_bytes);
            if (!record || record->size() < record_header_bytes) return std::nullopt;
            const Header h = header_of(*record);
            if (h.kind() == Type::auxtrace_info) return Fields(*record).u32(8);
            if (!h.possible() || h.kind() == Type::auxtrace) return std::nullopt;
            at += h.size;
        }
        return std::nullopt;
    }

private:
    Status read_records(std::uint64_t from, std::uint64_t end) {
        std::uint64_t at = from;
        begin_ = from;
        while (at < end) {
            if (progress_ != nullptr) progress_->at(at, size_);
            WM_ASSIGN_OR_RETURN(const Bytes head, get(at, record_header_bytes));
            const Header h = header_of(head);
            if (head.size() < record_header_bytes || !h.possible() || h.size > end - at) {
                const std::string found =
                    end - at < record_header_bytes ? fmt::format("{} bytes, too few for a record", end - at)
                    : h.possible()
                        ? fmt::format("a record of type {} and {} bytes, where {} are left", h.type, h.size, end - at)
                        : fmt::format("no record: type {}, size {}", h.type, h.size);
                WM_ASSIGN_OR_RETURN(const std::uint64_t next, find_records(at + 1, end));
                lose(at, next, found);
                at = next;
                continue;
            }
            if (h.kind() == Type::auxtrace) {
                WM_ASSIGN_OR_RETURN(at, take_auxtrace(at, h, end));
                continue;
            }
            WM_ASSIGN_OR_RETURN(const Bytes record, get(at, h.size));
            if (record.size() < h.size)  // the file became shorter while it was read
                return Error{Errc::unreadable,
                             fmt::format("{}: offset {:#x}: the file changed while it was read", file_.name(), at),
                             Offset{at}};
            if (h.kind() == Type::compressed || h.kind() == Type::compressed2)
                unpack(at, h, record);
            else
                take(at, h, record);
            at += h.size;
        }
        if (!unpacked_.empty())
            lose(at, at,
                 fmt::format("{} bytes of a record that the last compressed one leaves open", unpacked_.size()));
        return Nothing{};
    }

    /// The next place from `at` on where records follow one another, or `end`.
    Result<std::uint64_t> find_records(std::uint64_t at, std::uint64_t end) {
        const auto indexed = std::lower_bound(index_.begin(), index_.end(), at);
        const std::uint64_t limit = indexed == index_.end() ? end : std::min(*indexed, end);
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
    Result<bool> records_at(std::uint64_t at, std::uint64_t end) {
        for (unsigned n = 0; n < 3; ++n) {
            if (at == end) return n == 2;  // one alone may be chance
            WM_ASSIGN_OR_RETURN(const Bytes head, glance(at));
            const Header h = header_of(head);
            const bool aligned = h.size % 4 == 0 || h.kind() == Type::compressed;
            if (head.size() < record_header_bytes || !h.possible() || name(h.kind()).empty() || !aligned ||
                h.size > end - at)
                return false;
            std::uint64_t bytes = h.size;
            if (h.kind() == Type::auxtrace) {
                const std::uint64_t payload = Fields(head).u64(8);
                if (h.size != auxtrace_bytes || payload > end - at - h.size) return false;
                bytes += payload;
            }
            at += bytes;
        }
        return true;
    }

    /// Returns the offset of the next record.
    Result<std::uint64_t> take_auxtrace(std::uint64_t at, const Header& h, std::uint64_t end) {
        WM_ASSIGN_OR_RETURN(const Bytes record, get(at, h.size));
        const Fields f(record);
        ++out_.counts[h.type];
        if (h.size < auxtrace_bytes) {
            lose(at, at + h.size, fmt::format("an AUXTRACE record of {} bytes, expected {}", h.size, auxtrace_bytes));
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
            lose(next, next,
                 fmt::format("the AUXTRACE record at {:#x} has {:#x} bytes of trace, not the {:#x} it "
                             "promises",
                             at, there, c.bytes));
            c.missing = c.bytes - there;
            c.bytes = there;
        }
        WM_RETURN_IF_ERROR(measure_packed(c));
        out_.chunks.push_back(c);
        return next;
    }
    /// simpleperf -z compresses trace without saying so: how many bytes it is (docs/spec/perf-cs-etm.md, section 1.8).
    Status measure_packed(Chunk& c) {
        constexpr std::array<std::uint8_t, 4> magic{0x28, 0xb5, 0x2f, 0xfd};
        std::vector<std::uint8_t> piece(magic.size());
        if (!out_.simpleperf || c.bytes < magic.size()) return Nothing{};
        WM_ASSIGN_OR_RETURN(const std::size_t first, file_.read_at(c.payload, piece));
        if (first < magic.size() || !std::equal(magic.begin(), magic.end(), piece.begin())) return Nothing{};
        c.packed = true;
        c.packed_bytes = std::exchange(c.bytes, 0);
        // Trace is known to shrink to a fifth; a file that unpacks without end is none.
        const std::uint64_t most = max_kept_bytes + 256 * c.packed_bytes;
        const std::unique_ptr<ZSTD_DStream, decltype(&ZSTD_freeDStream)> stream(ZSTD_createDStream(), ZSTD_freeDStream);
        std::vector<std::uint8_t> unpacked(std::size_t{1} << 17);
        piece.resize(std::size_t{1} << 16);
        for (std::uint64_t at = 0; at < c.packed_bytes;) {
            const auto want = static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), c.packed_bytes - at));
            WM_ASSIGN_OR_RETURN(const std::size_t got, file_.read_at(c.payload + at, std::span(piece).first(want)));
            if (got == 0) break;
            at += got;
            ZSTD_inBuffer in{piece.data(), got, 0};
            for (;;) {
                ZSTD_outBuffer out{unpacked.data(), unpacked.size(), 0};
                const std::size_t status = ZSTD_decompressStream(stream.get(), &out, &in);
                c.bytes += out.pos;
                const bool failed = ZSTD_isError(status) != 0;
                if (failed || c.bytes > most) {
                    lose(c.payload, c.payload,
                         failed ? fmt::format("compressed trace cannot be unpacked beyond {} bytes: {}", c.bytes,
                                              ZSTD_getErrorName(status))
                                : fmt::format("{} bytes of compressed trace unpack to more than {}, which no trace "
                                              "does; the rest is left out",
                                              c.packed_bytes, most));
                    return Nothing{};
                }
                // The end of a frame: zeros that pad the record follow.
                if (status == 0) return Nothing{};
                if (in.pos == in.size && out.pos < out.size) break;
            }
        }
        return Nothing{};
    }

    void unpack(std::uint64_t at, const Header& h, Bytes record) {
        ++out_.counts[h.type];
        compressed_ = true;
        packed_bytes_ += h.size;
        Bytes packed = record.subspan(record_header_bytes);
        if (h.kind() == Type::compressed2) {
            const std::uint64_t bytes = Fields(packed).u64(0);
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
                lose(at, at + h.size, fmt::format("a compressed record: {}", ZSTD_getErrorName(status)));
                ZSTD_freeDStream(std::exchange(unpacker_, nullptr));
                unpacked_.clear();
                return;
            }
            unpacked_.insert(unpacked_.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(out.pos));
            if (!take_unpacked(at)) return;
            if (in.pos == in.size && out.pos < out.size) return;
        }
    }
    /// Whole records of what was unpacked. False: they make no sense, and what was there is lost.
    bool take_unpacked(std::uint64_t at) {
        std::size_t done = 0;
        while (unpacked_.size() - done >= record_header_bytes) {
            const Bytes rest = Bytes(unpacked_).subspan(done);
            const Header h = header_of(rest);
            if (!h.possible() || h.kind() == Type::auxtrace || h.kind() == Type::compressed ||
                h.kind() == Type::compressed2) {
                lose(at, at, fmt::format("no record among unpacked ones: type {}, size {}", h.type, h.size));
                unpacked_.clear();
                return false;
            }
            if (h.size > rest.size()) break;
            // A few bytes can unpack to any number: what is kept of them must stay in proportion.
            if (h.kind() != Type::sample) kept_bytes_ += h.size;
            if (kept_bytes_ > max_kept_bytes + max_kept_ratio * packed_bytes_) {
                lose(at, at,
                     fmt::format("records unpacked from {} compressed bytes exceed {} bytes", packed_bytes_,
                                 kept_bytes_));
                unpacked_.clear();
                return false;
            }
            take(at, h, rest.first(h.size));
            done += h.size;
        }
        unpacked_.erase(unpacked_.begin(), unpacked_.begin() + static_cast<std::ptrdiff_t>(done));
        return true;
    }

    /// From the end of a record of the kernel.
    SampleId sample_id(Bytes record) {
        SampleId out;
        if (out_.attrs.empty()) return out;
        const Fields f(record);
        const Attr* attr = &out_.attrs.front();
        if (out_.attrs.size() > 1 && (attr->sample_type & sample::identifier) != 0 && record.size() >= 16)
            if (const std::uint64_t id = f.u64(record.size() - 8); id != 0) {
                if (const auto found = attr_by_id_.find(id); found != attr_by_id_.end())
                    attr = &out_.attrs[found->second];
                else
                    ++out_.unknown_ids;
            }
        if (!attr->sample_id_all()) return out;
        // In this order; so from the end backwards.
        constexpr std::uint64_t order[] = {sample::tid,       sample::time, sample::id,
                                           sample::stream_id, sample::cpu,  sample::identifier};
        std::uint64_t at = record.size();
        for (const std::uint64_t bit : order)
            if ((attr->sample_type & bit) != 0) at -= std::min<std::uint64_t>(at, 8);
        if (at < record_header_bytes) return out;
        for (const std::uint64_t bit : order) {
            if ((attr->sample_type & bit) == 0) continue;
            if (bit == sample::tid) {
                out.pid = f.u32(at);
                out.tid = f.u32(at + 4);
            } else if (bit == sample::time) {
                out.time = f.u64(at);
            } else if (bit == sample::cpu) {
                out.cpu = f.u32(at);
            }
            at += 8;
        }
        return out;
    }

    void take_build_id(const Header& h, Bytes record) {
        const Fields f(record);
        BuildId b;
        b.pid = f.u32(8);
        const std::uint64_t bytes = h.misc_bit(15) ? std::min<std::uint64_t>(f.u8(12 + 20), 20) : 20;
        b.id = f.copy(12, bytes);
        // Without a size, a shorter build ID is filled up with zeros.
        if (!h.misc_bit(15))
            for (const std::size_t shorter : {std::size_t{16}, std::size_t{8}})
                if (b.id.size() > shorter && std::all_of(b.id.begin() + static_cast<std::ptrdiff_t>(shorter),
                                                         b.id.end(), [](std::uint8_t x) { return x == 0; }))
                    b.id.resize(shorter);
        b.file = f.text(36);
        out_.build_ids.push_back(std::move(b));
    }

    void take(std::uint64_t at, const Header& h, Bytes record) {
        ++out_.counts[h.type];
        const Fields f(record);
        switch (h.kind()) {
            case Type::mmap:
            case Type::mmap2: return take_mapping(h, record);
            case Type::comm: {
                const SampleId id = sample_id(record);
                out_.tasks.push_back({h.misc_bit(13) ? TaskEvent::Kind::exec : TaskEvent::Kind::comm, f.u32(8),
                                      f.u32(12), nobody, nobody, id.time.value_or(0), f.text(16)});
                return;
            }
            case Type::fork:
            case Type::exit:
                out_.tasks.push_back({h.kind() == Type::fork ? TaskEvent::Kind::fork : TaskEvent::Kind::exit,
                                      f.u32(8),
                                      f.u32(16),
                                      f.u32(12),
                                      f.u32(20),
                                      f.u64(24),
                                      {}});
                return;
            case Type::aux: out_.aux.push_back({f.u64(8), f.u64(16), f.u64(24), sample_id(record)}); return;
            case Type::itrace_start: {
                const SampleId id = sample_id(record);
                add_switch(id, f.u32(8), f.u32(12));
                return;
            }
            case Type::context_switch: {
                const SampleId id = sample_id(record);
                if (h.misc_bit(13))
                    add_switch(id, nobody, nobody);
                else
                    add_switch(id, id.pid.value_or(nobody), id.tid.value_or(nobody));
                return;
            }
            case Type::context_switch_cpu_wide: {
                const SampleId id = sample_id(record);
                if (h.misc_bit(13))
                    add_switch(id, f.u32(8), f.u32(12));
                else
                    add_switch(id, id.pid.value_or(nobody), id.tid.value_or(nobody));
                return;
            }
            case Type::lost: out_.lost_records += f.u64(16); return;
            case Type::lost_samples: out_.lost_records += f.u64(8); return;
            case Type::ksymbol:
                out_.kernel_symbols.push_back(
                    {{f.u64(8)}, f.u32(16), sample_id(record).time.value_or(0), (f.u16(22) & 1U) != 0, f.text(24)});
                return;
            case Type::text_poke: {
                TextPoke poke{{f.u64(8)}, sample_id(record).time.value_or(0), {}, {}};
                const std::uint64_t before = f.u16(16), after = f.u16(18);
                poke.before = f.copy(20, before);
                poke.after = f.copy(20 + before, after);
                out_.text_pokes.push_back(std::move(poke));
                return;
            }
            case Type::simpleperf_split:
                if (split_.size() + record.size() > max_split_bytes) {
                    lose(at, at, fmt::format("a split record of more than {} bytes", max_split_bytes));
                    split_.clear();
                    return;
                }
                split_.insert(split_.end(), record.begin() + record_header_bytes, record.end());
                return;
            case Type::simpleperf_split_end: {
                const std::vector<std::uint8_t> whole = std::exchange(split_, {});
                const Header inner = header_of(whole);
                if (whole.size() < record_header_bytes || inner.kind() == Type::simpleperf_split ||
                    inner.kind() == Type::simpleperf_split_end || inner.kind() == Type::auxtrace)
                    return lose(at, at, "the parts of a split record make no record");
                return take(at, inner, whole);
            }
            case Type::aux_output_hw_id: out_.hardware_ids.push_back({f.u64(8), sample_id(record)}); return;
            case Type::header_attr: {
                const std::uint64_t bytes = std::max<std::uint32_t>(f.u32(12), 64);
                Attr attr = attr_of(Bytes(f.copy(8, bytes)));
                for (std::uint64_t i = 8 + bytes; i + 8 <= record.size(); i += 8) attr.ids.push_back(f.u64(i));
                return add_attr(std::move(attr));
            }
            case Type::header_feature: return take_feature(f.u64(8), f.from(16));
            case Type::header_build_id: return take_build_id(h, record);
            case Type::event_update:
                if (constexpr std::uint64_t event_name = 2; f.u64(8) == event_name)
                    event_names_[f.u64(16)] = f.text(24);
                return;
            case Type::auxtrace_info: {
                AuxtraceInfo info;
                info.type = f.u32(8);
                for (std::uint64_t i = 16; i + 8 <= record.size(); i += 8) info.words.push_back(f.u64(i));
                if (!out_.auxtrace_info)
                    out_.auxtrace_info = std::move(info);
                else
                    lose(at, at + h.size, "a second AUXTRACE_INFO record; the first one counts");
                return;
            }
            case Type::time_conv: {
                TimeConversion t;
                t.shift = f.u64(8);
                t.multiplier = f.u64(16);
                t.zero = f.u64(24);
                if (h.size >= 56) {
                    t.cycles = f.u64(32);
                    t.mask = f.u64(40);
                    t.short_counter = f.u8(49) != 0;
                }
                out_.time_conversion = t;
                return;
            }
            default: return;
        }
    }

    void take_mapping(const Header& h, Bytes record) {
        const Fields f(record);
        Mapping m;
        m.pid = f.u32(8);
        m.tid = f.u32(12);
        m.address = {f.u64(16)};
        m.bytes = f.u64(24);
        m.file_offset = f.u64(32);
        m.time = sample_id(record).time.value_or(0);
        if (h.kind() == Type::mmap) {
            m.data = h.misc_bit(13);
            m.protection = m.data ? 0 : 4;
            m.file = f.text(40);
        } else {
            if (h.misc_bit(14)) m.build_id = f.copy(44, std::min<std::uint64_t>(f.u8(40), 20));
            m.protection = f.u32(64);
            m.flags = f.u32(68);
            m.data = (m.protection & 4U) == 0;
            m.file = f.text(72);
        }
        out_.mappings.push_back(std::move(m));
    }

    void add_switch(const SampleId& id, std::uint32_t pid, std::uint32_t tid) {
        if (!id.cpu || !id.time) return;
        out_.switches.push_back({*id.cpu, pid, tid, *id.time});
    }

    const ByteFile& file_;
    Progress* progress_;
    const std::span<const PerfFile::Run> runs_;
    std::uint64_t size_;  // of the file that is being read, counted from the beginning of the first
    PerfData out_;
    std::unordered_map<std::uint64_t, std::size_t> attr_by_id_;
    std::unordered_map<std::uint64_t, std::string> event_names_;
    std::vector<std::uint64_t> index_;  // file offsets of AUXTRACE records, ascending
    std::uint64_t begin_ = 0;           // of the records
    bool compressed_ = false;
    ZSTD_DStream* unpacker_ = nullptr;
    std::vector<std::uint8_t> unpacked_, split_;
    std::uint64_t packed_bytes_ = 0, kept_bytes_ = 0;  // of compressed records; of those unpacked that are kept
    std::array<std::uint8_t, auxtrace_bytes> glance_{};
    std::vector<std::uint8_t> buffer_;
    std::uint64_t base_ = 0;
    std::size_t filled_ = 0;
};

}  // namespace

std::string_view name(Type type) {
    switch (type) {
        case Type::mmap: return "MMAP";
        case Type::lost: return "LOST";
        case Type::comm: return "COMM";
        case Type::exit: return "EXIT";
        case Type::fork: return "FORK";
        case Type::sample: return "SAMPLE";
        case Type::mmap2: return "MMAP2";
        case Type::aux: return "AUX";
        case Type::itrace_start: return "ITRACE_START";
        case Type::lost_samples: return "LOST_SAMPLES";
        case Type::context_switch: return "SWITCH";
        case Type::context_switch_cpu_wide: return "SWITCH_CPU_WIDE";
        case Type::namespaces: return "NAMESPACES";
        case Type::ksymbol: return "KSYMBOL";
        case Type::bpf_event: return "BPF_EVENT";
        case Type::cgroup: return "CGROUP";
        case Type::text_poke: return "TEXT_POKE";
        case Type::aux_output_hw_id: return "AUX_OUTPUT_HW_ID";
        case Type::header_attr: return "HEADER_ATTR";
        case Type::header_build_id: return "HEADER_BUILD_ID";
        case Type::finished_round: return "FINISHED_ROUND";
        case Type::id_index: return "ID_INDEX";
        case Type::auxtrace_info: return "AUXTRACE_INFO";
        case Type::auxtrace: return "AUXTRACE";
        case Type::auxtrace_error: return "AUXTRACE_ERROR";
        case Type::event_update: return "EVENT_UPDATE";
        case Type::time_conv: return "TIME_CONV";
        case Type::header_feature: return "HEADER_FEATURE";
        case Type::compressed: return "COMPRESSED";
        case Type::finished_init: return "FINISHED_INIT";
        case Type::compressed2: return "COMPRESSED2";
        case Type::simpleperf_kernel_symbol: return "KERNEL_SYMBOL";
        case Type::simpleperf_dso: return "DSO";
        case Type::simpleperf_symbol: return "SYMBOL";
        case Type::simpleperf_split: return "SPLIT";
        case Type::simpleperf_split_end: return "SPLIT_END";
        case Type::simpleperf_event_id: return "EVENT_ID";
        case Type::simpleperf_callchain: return "CALLCHAIN";
        case Type::simpleperf_unwinding_result: return "UNWINDING_RESULT";
        case Type::simpleperf_tracing_data: return "TRACING_DATA";
        case Type::simpleperf_debug: return "DEBUG";
    }
    return {};
}

std::uint64_t TimeConversion::to_ticks(std::uint64_t ns) const {
    const std::uint64_t t = ns - zero;
    const Wide quotient = t / multiplier, rest = t % multiplier;
    return static_cast<std::uint64_t>((quotient << shift) + (rest << shift) / multiplier);
}

double TimeConversion::frequency_hz() const {
    double f = 1e9;
    for (std::uint64_t i = 0; i < shift; ++i) f *= 2;
    return f / static_cast<double>(multiplier);
}

std::uint32_t PerfData::midr() const {
    std::string_view text = cpu_id;
    if (text.starts_with("0x")) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    return error == std::errc{} && end == text.data() + text.size() ? static_cast<std::uint32_t>(value) : 0;
}

bool is_perf_data(Bytes bytes) {
    constexpr std::string_view magic = "PERFILE2", swapped = "2ELIFREP";
    return bytes.size() >= magic.size() && (std::equal(magic.begin(), magic.end(), bytes.begin()) ||
                                            std::equal(swapped.begin(), swapped.end(), bytes.begin()));
}

Result<PerfData> read_perf_data(const ByteFile& file, Progress* progress) { return Reader(file, progress).read(); }
Result<PerfData> read_perf_data(const PerfFile& file, Progress* progress) {
    return Reader(*file.file, progress, file.runs).read();
}

std::optional<std::uint32_t> auxtrace_type(const ByteFile& file) { return Reader(file, nullptr).find_auxtrace_type(); }

std::uint64_t Stream::bytes() const {
    std::uint64_t sum = 0;
    for (const Stretch& s : stretches) sum += s.bytes;
    return sum;
}

std::vector<Stream> streams(const PerfData& data) {
    std::vector<Stream> out;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> by_key;  // CPU and thread; ring
    for (std::size_t i = 0; i < data.chunks.size(); ++i) {
        const Chunk& c = data.chunks[i];
        const std::uint32_t tid = c.cpu == nobody ? c.tid : nobody;
        const auto [found, fresh] = by_key.try_emplace({std::uint64_t{c.cpu} << 32 | tid, c.index}, out.size());
        if (fresh) out.push_back({c.cpu, tid, c.index, false, {}});
        Stream& s = out[found->second];
        bool follows = false;
        if (!s.stretches.empty()) {
            Stretch& before = s.stretches.back();
            const std::uint64_t end = before.ring + before.bytes;
            const bool whole = data.chunks[before.chunk].missing == 0;
            // perf pads a chunk to a multiple of 8, which its ring position does not count (section 5.4).
            if (whole && end - c.ring < 8 && end - c.ring <= before.bytes) {
                before.bytes -= end - c.ring;
                follows = true;
            }
        }
        s.stretches.push_back({c.payload, c.bytes, c.ring, i, follows});
    }
    for (const AuxRange& aux : data.aux)
        if ((aux.flags & AuxRange::overwrite) != 0)
            for (Stream& s : out)
                if (s.cpu == nobody ? aux.id.tid == s.tid : aux.id.cpu == s.cpu) s.overwrite = true;
    return out;
}

}  // namespace waymark::capture::perf
