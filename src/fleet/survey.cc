#include "waymark/fleet/survey.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "durable_file.h"
#include "hasher.h"
#include "waymark/answers/file.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/perf_cs_etm.h"
#include "waymark/capture/perf_data.h"
#include "waymark/capture/perf_file.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/utf8.h"
#include "waymark/open/container.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::fleet {

namespace fs = std::filesystem;
namespace perf = capture::perf;

namespace {

/// The files of a capture, relative to its folder; for a single file, an empty name.
Result<std::vector<std::string>> files_of(const std::string& capture) {
    std::error_code error;
    if (!fs::is_directory(capture, error)) return std::vector<std::string>{""};
    std::vector<std::string> out;
    for (auto at = fs::recursive_directory_iterator(capture, error); !error && at != fs::recursive_directory_iterator();
         at.increment(error)) {
        std::error_code none;
        if (at->is_regular_file(none)) out.push_back(at->path().lexically_relative(capture).string());
    }
    if (error) return Error{Errc::unreadable, fmt::format("cannot read the folder {}: {}", capture, error.message())};
    std::sort(out.begin(), out.end());
    return out;
}

fs::path place_of(const std::string& capture, const std::string& name) {
    return name.empty() ? fs::path(capture) : fs::path(capture) / name;
}

Error cannot_read(const fs::path& path, int error) {
    return {error == ENOENT ? Errc::not_found : Errc::unreadable,
            fmt::format("cannot read {}: {}", path.string(), std::strerror(error))};
}

/// Adds size and sampled blocks of one file.
Status sample_file(const fs::path& path, FileState& into, Hasher& hasher) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return cannot_read(path, errno);
    struct stat is {};
    int error = ::fstat(file, &is) == 0 ? 0 : errno;
    const auto bytes = static_cast<std::uint64_t>(is.st_size);
    constexpr std::uint64_t block = 4096;
    std::array<std::uint8_t, block> buffer{};
    const std::set<std::uint64_t> places = bytes <= 4 * block
                                               ? std::set<std::uint64_t>{0, block, 2 * block, 3 * block}
                                               : std::set<std::uint64_t>{0, bytes / 3, bytes / 3 * 2, bytes - block};
    for (const std::uint64_t place : places) {
        if (error != 0 || place >= bytes) break;
        const ssize_t have = ::pread(file, buffer.data(), block, static_cast<off_t>(place));
        if (have < 0) error = errno;
        if (have > 0) hasher.add(Bytes(buffer.data(), static_cast<std::size_t>(have)));
    }
    ::close(file);
    if (error != 0) return cannot_read(path, error);
    hasher.add(bytes);
    into.bytes += bytes;
    into.changed = std::max(into.changed, std::int64_t{is.st_mtim.tv_sec} * 1'000'000'000 + is.st_mtim.tv_nsec);
    return Nothing{};
}

void add_ran(std::vector<RanFile>& ran, const std::string& file, const std::vector<std::uint8_t>& build_id) {
    // This is not a file, but anonymous memory, the stack or the vDSO.
    if (file.empty() || file.front() == '[' || file.starts_with("//") || file.starts_with("/memfd:") ||
        file.starts_with("/dev/zero") || file.starts_with("/SYSV"))
        return;
    ran.push_back({utf8(file), capture::hex_text(build_id)});
}

void tidy(std::vector<RanFile>& ran) {
    std::sort(ran.begin(), ran.end());
    ran.erase(std::unique(ran.begin(), ran.end()), ran.end());
}

std::uint64_t file_bytes(const fs::path& path) {
    std::error_code none;
    const std::uintmax_t bytes = fs::file_size(path, none);
    return none ? 0 : bytes;
}

/// The unit's name in answers, by the type of a source.
std::string unit_of_type(std::string_view type) {
    const pipeline::Protocol* const protocol = pipeline::protocol_of(type);
    return protocol == nullptr ? std::string() : std::string(protocol->unit_of(type));
}

/// Time from the first record with a time to the last.
std::uint64_t recorded_ns(const perf::PerfData& data) {
    std::uint64_t first = ~std::uint64_t{0}, last = 0;
    const auto take = [&](std::uint64_t time) {
        if (time == 0) return;  // before everything
        first = std::min(first, time);
        last = std::max(last, time);
    };
    for (const perf::AuxRange& a : data.aux) take(a.id.time.value_or(0));
    for (const perf::Mapping& m : data.mappings) take(m.time);
    for (const perf::TaskEvent& t : data.tasks) take(t.time);
    for (const perf::Switch& s : data.switches) take(s.time);
    return last > first ? last - first : 0;
}

Status survey_perf(PlannedCapture& out, const open::Container& container) {
    if (container.unreadable) return *container.unreadable;
    WM_ASSIGN_OR_RETURN(const perf::PerfData data, perf::read_perf_data(container.file));
    for (const perf::Chunk& chunk : data.chunks) out.trace_bytes += chunk.bytes;
    out.machine = utf8(data.hostname);
    out.recorded_ns = recorded_ns(data);
    const bool flow = data.auxtrace_info && data.auxtrace_info->type == perf::AuxtraceInfo::cs_etm;
    if (flow) {
        if (const auto info = perf::cs_info(*data.auxtrace_info); info && !info->units.empty())
            out.unit = unit_of_type(perf::source_type(info->units.front()));
    } else {
        out.unit = "SPE";
    }
    out.needs_files = flow;
    std::map<std::string_view, const std::vector<std::uint8_t>*> ids;
    for (const perf::BuildId& id : data.build_ids) ids.try_emplace(id.file, &id.id);
    constexpr std::uint32_t executable = 4;
    for (const perf::Mapping& m : data.mappings) {
        if (m.pid == perf::nobody || m.data || (m.protection != 0 && (m.protection & executable) == 0)) continue;
        const auto id = ids.find(m.file);
        add_ran(out.ran, m.file, m.build_id.empty() && id != ids.end() ? *id->second : m.build_id);
    }
    return Nothing{};
}

Status survey_snapshot(PlannedCapture& out) {
    WM_ASSIGN_OR_RETURN(const capture::Capture read, capture::read_snapshot(out.path));
    for (const capture::Buffer& buffer : read.buffers)
        for (const fs::path& file : buffer.files) out.trace_bytes += file_bytes(file);
    for (const capture::Source& source : read.sources)
        if (out.unit.empty()) out.unit = unit_of_type(source.type);
    for (const capture::Module& m : read.modules.modules) add_ran(out.ran, m.file, m.build_id);
    return Nothing{};
}

Status survey_counters(PlannedCapture& out) {
    WM_ASSIGN_OR_RETURN(const capture::DpuCapture read, capture::read_dpu_folder(out.path));
    out.unit = "DPU";
    if (!read.buffer.empty()) out.trace_bytes += file_bytes(read.buffer);
    if (!read.nexus.empty()) out.trace_bytes += file_bytes(read.nexus);
    for (const capture::Module& m : read.modules.modules) add_ran(out.ran, m.file, m.build_id);
    return Nothing{};
}

}  // namespace

Result<FileState> file_state(const std::string& capture) {
    WM_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_of(capture));
    FileState out;
    Hasher hasher;
    for (const std::string& name : names) {
        hasher.add(name);
        WM_RETURN_IF_ERROR(sample_file(place_of(capture, name), out, hasher));
    }
    out.sample = hasher.text();
    return out;
}

Result<std::string> whole_hash(const std::string& capture) {
    WM_ASSIGN_OR_RETURN(const std::vector<std::string> names, files_of(capture));
    Hasher hasher;
    for (const std::string& name : names) {
        WM_ASSIGN_OR_RETURN(const WrittenFile file, hash_of_file(place_of(capture, name)));
        hasher.add(name);
        hasher.add(file.hash);
    }
    return hasher.text();
}

Result<PlannedCapture> survey_capture(const std::string& path, bool bare) {
    PlannedCapture out;
    out.path = path;
    WM_ASSIGN_OR_RETURN(const FileState state, file_state(path));
    out.bytes = state.bytes;
    out.changed = state.changed;
    out.sample = state.sample;
    const open::Container container = open::identify(path);
    if (container.is_perf()) {
        WM_RETURN_IF_ERROR(survey_perf(out, container));
    } else if (container.kind == open::Kind::counters) {
        WM_RETURN_IF_ERROR(survey_counters(out));
    } else if (container.is_folder) {
        WM_RETURN_IF_ERROR(survey_snapshot(out));
    } else if (container.kind == open::Kind::answers) {
        out.trace_bytes = 0;
    } else if (bare) {
        out.trace_bytes = out.bytes;
        out.needs_files = true;
    } else {
        if (auto error = open::no_trace(container)) return std::move(*error);
        return Error{Errc::bad_format,
                     fmt::format("{} is neither a perf.data file, nor a capture folder, nor an answers file; for "
                                 "bare trace give --protocol",
                                 path)};
    }
    tidy(out.ran);
    return out;
}

}  // namespace waymark::fleet
