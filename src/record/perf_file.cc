#include "waymark/record/perf_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "waymark/core/byte_sink.h"
#include "waymark/core/file_error.h"
#include "waymark/record/files.h"

namespace waymark::record {

namespace fs = std::filesystem;
namespace perf = capture::perf;

namespace {

/// The contents of the feature NUMA_TOPOLOGY for one node with all CPUs.
std::vector<std::uint8_t> one_node(std::uint32_t cpus) {
    constexpr std::uint64_t node_kib = 8U << 20;
    std::vector<std::uint8_t> bytes;
    const auto number = [&](std::uint64_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> 8 * i));
    };
    std::string list = cpus == 1 ? "0" : fmt::format("0-{}", cpus - 1);
    list.resize((list.size() / 64 + 1) * 64);
    number(1, 4);
    number(0, 4);
    number(node_kib, 8);
    number(node_kib, 8);
    number(list.size(), 4);
    bytes.insert(bytes.end(), list.begin(), list.end());
    return bytes;
}

}  // namespace

void like_tracking_event(perf::Attr& attr) {
    constexpr std::uint64_t inherit = 2, exclude_kernel = 1 << 5, sample_id_all = 1 << 18;
    attr.sample_type = perf::sample::identifier | perf::sample::ip | perf::sample::tid | perf::sample::time |
                       perf::sample::cpu | perf::sample::period;
    attr.flags |= inherit | exclude_kernel | sample_id_all;
}

perf::Attr tracking_event(std::vector<std::uint64_t> ids) {
    constexpr std::uint64_t mmap = 1 << 8, comm = 1 << 9, task = 1 << 13, mmap2 = 1 << 23, comm_exec = 1 << 24;
    constexpr std::uint32_t software = 1;
    constexpr std::uint64_t dummy = 9;
    perf::Attr out;
    out.type = software;
    out.config = dummy;
    out.sample_period = 1;
    out.flags = mmap | comm | task | mmap2 | comm_exec;
    out.ids = std::move(ids);
    out.name = "dummy:u";
    like_tracking_event(out);
    return out;
}

perf::TimeConversion conversion_of(std::uint64_t hz, std::uint64_t zero) {
    constexpr std::uint64_t shift = 20, ns = 1'000'000'000;
    return {.shift = shift, .multiplier = (ns << shift) / hz, .zero = zero};
}

class RecordedPerfFile::File final : public ByteSink {
public:
    explicit File(int file) : file_(file) {}
    ~File() override { close(file_); }
    void write(Bytes piece) override {
        buffer_.insert(buffer_.end(), piece.begin(), piece.end());
        if (buffer_.size() >= 1 << 20) flush();
    }
    void flush() {
        put(buffer_, at_);
        at_ += static_cast<off_t>(buffer_.size());
        buffer_.clear();
    }
    void put(Bytes bytes, off_t where) {
        while (!bytes.empty() && problem_ == 0) {
            const ssize_t n = pwrite(file_, bytes.data(), bytes.size(), where);
            if (n < 0 && errno == EINTR) continue;
            if (n <= 0) {
                problem_ = n == 0 ? ENOSPC : errno;
                return;
            }
            bytes = bytes.subspan(static_cast<std::size_t>(n));
            where += n;
        }
    }
    [[nodiscard]] int problem() const { return problem_; }

private:
    int file_;
    int problem_ = 0;
    off_t at_ = 0;
    std::vector<std::uint8_t> buffer_;
};

RecordedPerfFile::RecordedPerfFile(fs::path path, fs::path part, OutputLock lock, std::unique_ptr<File> file,
                                   std::vector<perf::Attr> attrs)
    : path_(std::move(path)),
      part_(std::move(part)),
      lock_(std::move(lock)),
      file_(std::move(file)),
      writer_(std::make_unique<perf::PerfWriter>(*file_, std::move(attrs))) {}

RecordedPerfFile::~RecordedPerfFile() {
    std::error_code none;
    fs::remove_all(part_, none);
}

Result<std::unique_ptr<RecordedPerfFile>> RecordedPerfFile::create(const fs::path& path,
                                                                   std::vector<perf::Attr> attrs) {
    std::error_code none;
    const bool replaces = fs::is_regular_file(path, none) && fs::file_size(path, none) != 0;
    if (replaces) {
        std::array<char, 8> head{};
        std::ifstream(path, std::ios::binary).read(head.data(), head.size());
        if (!perf::is_perf_data({reinterpret_cast<const std::uint8_t*>(head.data()), head.size()}))
            return Error{
                Errc::usage,
                fmt::format("{} exists and is not a perf.data file; name another file, or remove it", path.string())};
    }
    if (fs::is_directory(path, none)) return cannot_create(path, EISDIR);
    if (fs::exists(path, none) && !fs::is_regular_file(path, none))
        return Error{
            Errc::usage,
            fmt::format("{} is not a regular file, which perf.data needs: its header is written last. Name a file",
                        path.string())};
    if (fs::exists(path, none) && access(path.c_str(), W_OK) != 0) return cannot_create(path, errno);
    const fs::path place = fs::is_symlink(path, none) ? fs::weakly_canonical(path, none) : path;
    fs::path part = place;
    part += ".part";
    WM_ASSIGN_OR_RETURN(OutputLock lock, OutputLock::of_new_folder(part, path));
    // A recording that was killed may have left files there.
    for (const fs::directory_entry& entry : fs::directory_iterator(part, none)) fs::remove(entry.path(), none);
    const int file = open((part / place.filename()).c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (file < 0) {
        const Error error = cannot_create(path, errno);
        fs::remove_all(part, none);
        return error;
    }
    std::unique_ptr<RecordedPerfFile> out(
        new RecordedPerfFile(place, std::move(part), std::move(lock), std::make_unique<File>(file), std::move(attrs)));
    out->replaced_ = replaces;
    WM_RETURN_IF_ERROR(out->status());
    return out;
}

fs::path RecordedPerfFile::beside(std::string_view suffix) const {
    return part_ / (path_.filename().string() + std::string(suffix));
}

Error RecordedPerfFile::as_placed(Error error) const {
    const std::string within = part_.string() + "/", folder = path_.parent_path().string();
    if (const std::size_t at = error.message.find(within); at != error.message.npos)
        error.message.replace(at, within.size(), folder.empty() || folder == "/" ? folder : folder + "/");
    return error;
}

Status RecordedPerfFile::finish_with_truth(std::string_view truth) {
    const fs::path file = beside(".truth.txt");
    errno = 0;
    std::ofstream out(file, std::ios::binary);
    if (!(out << truth).flush()) return as_placed(cannot("write", file));
    return place();
}

Status RecordedPerfFile::place() {
    std::error_code error;
    const auto move = [&](const fs::path& name) -> Status {
        fs::rename(part_ / name, path_.parent_path() / name, error);
        if (!error) return Nothing{};
        return Error{Errc::unreadable,
                     fmt::format("cannot write {}: {}", (path_.parent_path() / name).string(), error.message())};
    };
    // The truth must never be next to the trace of another recording: the earlier truth is removed first, and the new
    // one is moved last.
    const fs::path truth = perf_truth_file(path_);
    fs::remove(truth, error);
    const std::string ranges = path_.filename().string() + ".truth_";
    const fs::path folder = path_.has_parent_path() ? path_.parent_path() : fs::path(".");
    std::vector<fs::path> earlier, now;
    const auto are_ranges = [&](const fs::path& file) {
        const std::string name = file.filename().string();
        return name.starts_with(ranges) && name.ends_with(".bin") &&
               name.find_first_not_of("0123456789", ranges.size()) == name.size() - std::strlen(".bin");
    };
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error))
        if (are_ranges(entry.path())) earlier.push_back(entry.path());
    for (const fs::directory_entry& entry : fs::directory_iterator(part_, error))
        if (are_ranges(entry.path())) now.push_back(entry.path().filename());
    for (const fs::path& file : earlier) fs::remove(file, error);
    for (const fs::path& name : now) WM_RETURN_IF_ERROR(move(name));
    WM_RETURN_IF_ERROR(move(path_.filename()));
    return move(truth.filename());
}

void RecordedPerfFile::mapped(const MapPart& part, std::string_view name, const perf::PerfWriter::At& at) {
    perf::Mapping m;
    m.pid = m.tid = at.pid;
    constexpr std::uint32_t read_execute = 5, map_private = 2;
    m.protection = read_execute;
    m.flags = map_private;
    m.time = at.time;
    m.file = name.empty() ? "//anon" : std::string(name);
    const MappedFile file = name.empty() ? MappedFile{} : read_mapped_file(m.file);
    m.build_id = file.build_id;
    std::vector<Mapped>& known = mapped_[at.pid];
    for (const MappedPiece& piece : executable_pieces(file, part)) {
        const auto same = [&](const Mapped& k) { return k.piece == piece && k.file == m.file; };
        if (std::any_of(known.begin(), known.end(), same)) continue;
        forget(known, piece.address, piece.bytes);
        known.push_back({piece, m.file});
        m.address = Address{piece.address};
        m.bytes = piece.bytes;
        m.file_offset = piece.file_offset;
        writer_->mapping(m, at);
    }
    if (m.build_id.empty()) return;
    const auto listed = [&](const perf::BuildId& b) { return b.file == m.file && b.id == m.build_id; };
    if (std::none_of(build_ids_.begin(), build_ids_.end(), listed))
        build_ids_.push_back({perf::nobody, m.build_id, m.file});
}

void RecordedPerfFile::forget(std::vector<Mapped>& known, std::uint64_t address, std::uint64_t bytes) {
    std::erase_if(known, [&](const Mapped& k) {
        return k.piece.address < address + bytes && address < k.piece.address + k.piece.bytes;
    });
}

void RecordedPerfFile::unmapped(std::uint32_t pid, const UnmapPart& part) {
    forget(mapped_[pid], part.address, part.bytes);
}

Status RecordedPerfFile::finish(const Machine& machine) {
    perf::PerfWriter& w = *writer_;
    w.build_ids(build_ids_);
    utsname host{};
    if (uname(&host) == 0) {
        w.feature_text(perf::Feature::hostname, host.nodename);
        w.feature_text(perf::Feature::os_release, host.release);
    }
    w.feature_text(perf::Feature::arch, machine.arch);
    w.feature_text(perf::Feature::version, perf::version_with(machine.part));
    w.feature_text(perf::Feature::cpu_id, fmt::format("{:#018x}", machine.midr));
    w.feature_text(perf::Feature::cpu_description, "modelled by waymark record");
    w.cpus(machine.cpus, machine.cpus);
    w.feature(perf::Feature::numa_topology, one_node(machine.cpus));
    w.pmus(machine.pmus);
    w.command_line(machine.command);
    const std::vector<std::uint8_t> header = w.finish();
    file_->flush();
    file_->put(header, 0);
    return status();
}

Status RecordedPerfFile::flush() {
    file_->flush();
    return status();
}

Status RecordedPerfFile::status() const {
    if (file_->problem() == 0) return Nothing{};
    return Error{Errc::unreadable, fmt::format("cannot write {}: {}", path_.string(), reason(file_->problem()))};
}

fs::path perf_truth_file(const fs::path& file) { return file.string() + ".truth.txt"; }

}  // namespace waymark::record
