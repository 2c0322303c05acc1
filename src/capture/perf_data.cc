#include "waymark/capture/perf_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "perf_contents.h"
#include "perf_records.h"
#include "waymark/capture/perf_file.h"
#include "waymark/core/numbers.h"

namespace waymark::capture::perf {
namespace {

constexpr std::uint64_t file_header_bytes = 104, pipe_header_bytes = 16;
constexpr std::uint64_t max_section_bytes = std::uint64_t{16}
                                            << 20;  // maximum for a feature or a list of ids; more is damage
constexpr unsigned first_simpleperf_feature = 128;
constexpr std::uint64_t max_index_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t max_list_bytes = std::uint64_t{1} << 30;

struct Section {
    std::uint64_t offset{}, bytes{};
};

class Reader {
public:
    Reader(const ByteFile& file, Progress* progress, std::span<const PerfFile::Run> runs = {})
        : file_(file),
          progress_(progress),
          runs_(runs),
          size_(runs.empty() ? file.size() : runs.front().offset),
          window_(file),
          records_(window_, progress, contents_) {}

    Result<PerfData> read() {
        WM_ASSIGN_OR_RETURN(const Bytes head, window_.get(0, file_header_bytes));
        const RecordFields f(head);
        if (!is_perf_data(head))
            return Error{Errc::bad_format,
                         fmt::format("{}: does not begin as a perf.data file does (PERFILE2)", file_.name())};
        if (head[0] != 'P')
            return Error{Errc::unsupported, fmt::format("{}: was written on a machine with the other byte order, but "
                                                        "only little-endian files are supported",
                                                        file_.name())};
        const std::uint64_t header_bytes = f.u64(8);
        if (header_bytes == pipe_header_bytes) {
            contents_.data.pipe = true;
            WM_RETURN_IF_ERROR(records_.read(pipe_header_bytes, size_, size_));
            return finish();
        }
        if (header_bytes < file_header_bytes || head.size() < file_header_bytes)
            return Error{
                Errc::bad_format,
                fmt::format("{}: the header is cut: {} bytes, expected {} or more (or {} from a pipe)", file_.name(),
                            std::min<std::uint64_t>(header_bytes, head.size()), file_header_bytes, pipe_header_bytes)};
        const std::uint64_t entry_bytes = f.u64(16);
        const Section attrs{f.u64(24), f.u64(32)}, data{f.u64(40), f.u64(48)};
        std::array<std::uint64_t, 4> features{};
        for (unsigned i = 0; i < 4; ++i) features[i] = f.u64(72 + 8 * i);

        WM_RETURN_IF_ERROR(read_attrs(attrs, entry_bytes));
        if (data.offset < file_header_bytes || data.offset > size_)
            return Error{Errc::bad_format, fmt::format("{}: states that its data begin at {:#x}, but has {:#x} bytes",
                                                       file_.name(), data.offset, size_)};
        const std::uint64_t room = size_ - data.offset;
        contents_.data.unfinished = data.bytes == 0;
        if (data.bytes != 0 && data.bytes <= room)
            WM_RETURN_IF_ERROR(read_features(data.offset + data.bytes, features));
        if (data.bytes > room)
            contents_.cut(
                size_, fmt::format("the file is cut: {} missing (the disk was full, or it was not copied completely)",
                                   counted(data.bytes - room, "byte of data is", "bytes of data are")));
        const std::uint64_t end = data.bytes == 0 || data.bytes > room ? size_ : data.offset + data.bytes;
        WM_RETURN_IF_ERROR(records_.read(data.offset, end, size_));
        return finish();
    }

    /// The same result as perf::auxtrace_type. It searches like `read`, so both agree about damaged files.
    std::optional<std::uint32_t> auxtrace_type() {
        const auto data = description();
        return data && data->auxtrace_info ? std::optional(data->auxtrace_info->type) : std::nullopt;
    }
    Holds holds() {
        const auto data = description();
        if (!data) return Holds::nothing_known;
        if (data->auxtrace_info)
            return data->auxtrace_info->type == AuxtraceInfo::cs_etm ? Holds::cs_etm : Holds::other_trace;
        if (!data->chunks.empty()) return Holds::other_trace;
        return data->has_branch_stacks() ? Holds::branch_stacks : Holds::nothing_known;
    }

private:
    Result<PerfData> description() {
        // AUXTRACE_INFO precedes all recorded data; the search stops early, so that a file without it is not read
        // completely.
        constexpr std::uint64_t most_records = 1 << 20;
        records_.only_description(most_records);
        return read();
    }
    Result<PerfData> finish() {
        for (const PerfFile::Run& run : runs_) {
            size_ = run.offset + run.bytes;
            contents_.next_file();
            records_.next_file();
            WM_RETURN_IF_ERROR(records_.read(run.offset, size_, size_));
        }
        if (progress_ != nullptr) progress_->at(size_, size_);
        contents_.finish();
        return std::move(contents_.data);
    }

    /// The section's bytes, or the reason why there are none.
    Result<std::vector<std::uint8_t>> section(const Section& s, std::uint64_t most, std::string_view what) {
        std::vector<std::uint8_t> bytes;
        if (s.offset > size_ || s.bytes > size_ - s.offset || s.bytes > most) {
            contents_.lose(std::min(s.offset, size_), std::min(s.offset, size_),
                           fmt::format("{}: said to be {} at {:#x}, but the file has {}", what,
                                       counted(s.bytes, "byte"), s.offset, counted(size_, "byte")));
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
            contents_.lose(attrs.offset, attrs.offset,
                           fmt::format("event attributes of {} bytes each in {} bytes", entry_bytes, attrs.bytes));
            return Nothing{};
        }
        for (std::uint64_t at = 0; at + entry_bytes <= bytes.size(); at += entry_bytes) {
            const Bytes entry =
                Bytes(bytes).subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(entry_bytes));
            Attr attr = attr_of(entry.first(entry.size() - 16));
            const RecordFields f(entry);
            WM_ASSIGN_OR_RETURN(const auto ids, section({f.u64(entry_bytes - 16), f.u64(entry_bytes - 8)},
                                                        max_section_bytes, "event ids"));
            const RecordFields id(ids);
            for (std::uint64_t i = 0; i + 8 <= ids.size(); i += 8) attr.ids.push_back(id.u64(i));
            contents_.add_attr(std::move(attr));
        }
        return Nothing{};
    }

    Status read_features(std::uint64_t table, const std::array<std::uint64_t, 4>& set) {
        std::uint64_t at = table;
        for (unsigned feature = 0; feature < 256; ++feature) {
            if ((set[feature / 64] >> feature % 64 & 1U) == 0) continue;
            WM_ASSIGN_OR_RETURN(const Bytes entry, window_.get(at, 16));
            if (entry.size() < 16) {
                contents_.lose(std::min(at, size_), size_,
                               fmt::format("the table of features ends before feature {}", feature));
                return Nothing{};
            }
            const RecordFields f(entry);
            const Section where{f.u64(0), f.u64(8)};
            at += 16;
            if (feature >= first_simpleperf_feature) contents_.data.simpleperf = true;
            if (feature == 133) contents_.data.branch_list = true;
            constexpr unsigned known[] = {2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 16, 18, 25, 129, 132, 133, 134};
            if (std::find(std::begin(known), std::end(known), feature) == std::end(known)) continue;
            const std::uint64_t most = feature == 18                      ? max_index_bytes
                                       : feature == 132 || feature == 133 ? max_list_bytes
                                                                          : max_section_bytes;
            WM_ASSIGN_OR_RETURN(const auto bytes, section(where, most, fmt::format("feature {}", feature)));
            contents_.take_feature(feature, bytes);
        }
        return Nothing{};
    }

    const ByteFile& file_;
    Progress* progress_;
    const std::span<const PerfFile::Run> runs_;
    std::uint64_t size_;  // of the current file; offsets count from the beginning of the first file
    FileWindow window_;
    PerfContents contents_;
    RecordReader records_;
};

}  // namespace

bool is_perf_data(Bytes bytes) {
    constexpr std::string_view magic = "PERFILE2", swapped = "2ELIFREP";
    return bytes.size() >= magic.size() && (std::equal(magic.begin(), magic.end(), bytes.begin()) ||
                                            std::equal(swapped.begin(), swapped.end(), bytes.begin()));
}

Result<PerfData> read_perf_data(const ByteFile& file, Progress* progress) { return Reader(file, progress).read(); }
Result<PerfData> read_perf_data(const PerfFile& file, Progress* progress) {
    return Reader(*file.file, progress, file.runs).read();
}

std::optional<std::uint32_t> auxtrace_type(const ByteFile& file) { return Reader(file, nullptr).auxtrace_type(); }
Holds holds(const ByteFile& file) { return Reader(file, nullptr).holds(); }
Holds holds(const PerfFile& file) { return Reader(*file.file, nullptr, file.runs).holds(); }
std::optional<std::uint32_t> auxtrace_type(const PerfFile& file) {
    return Reader(*file.file, nullptr, file.runs).auxtrace_type();
}

}  // namespace waymark::capture::perf
