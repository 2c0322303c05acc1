#include "waymark/capture/branch_stacks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "perf_peculiarities.h"
#include "waymark/capture/branch_entry.h"
#include "waymark/capture/perf_cs_etm.h"
#include "waymark/core/numbers.h"

namespace waymark::capture::perf {

namespace {

/// The stacks were synthesised from trace, as `perf inject --itrace=l` does.
bool is_made(const PerfData& data) {
    const auto traces = [&](std::string_view name) {
        return std::any_of(data.attrs.begin(), data.attrs.end(), [&](const Attr& attr) {
            const auto pmu = data.pmus.find(attr.type);
            return attr.name.starts_with(name) || (pmu != data.pmus.end() && pmu->second == name);
        });
    };
    return traces("cs_etm") || traces("intel_pt") || traces("arm_spe") || traces("intel_bts");
}

std::string_view type_of(bool x86_64, bool made) {
    if (made) return x86_64 ? "STACKS.X86-64" : "STACKS.A64";
    return x86_64 ? "LBR" : "BRBE";
}

/// Threads that occur only in samples belong to the process that the sample names.
void name_threads(PerfData& data) {
    std::set<std::uint32_t> known;
    for (const TaskEvent& e : data.tasks) known.insert(e.tid);
    for (const BranchSample& s : data.branch_samples)
        if (s.tid != nobody && s.pid != nobody && known.insert(s.tid).second)
            data.tasks.push_back({TaskEvent::Kind::comm, s.pid, s.tid, nobody, nobody, 0, {}});
}

}  // namespace

std::optional<bool> is_x86_64(const PerfData& data) {
    if (data.architecture == "x86_64") return true;
    if (data.architecture == "aarch64" || data.architecture == "arm64") return false;
    return std::nullopt;
}

void set_x86_64(Capture& capture, bool x86_64, bool assumed) {
    const std::string core_type = assumed ? "" : x86_64 ? "x86-64" : "ARM-AA64";
    capture.x86_64 = x86_64;
    for (Source& source : capture.sources) {
        source.type = assumed ? "STACKS" : type_of(x86_64, source.type.starts_with("STACKS"));
        source.core_type = core_type;
    }
    for (Core& core : capture.cores) core.type = core_type;
}

Result<Capture> branch_stack_capture(const std::filesystem::path& path, std::shared_ptr<const ByteFile> file,
                                     PerfData data) {
    if (data.branch_samples.empty())
        return Error{Errc::not_found,
                     fmt::format("{}: nothing decoded: {}", path.string(),
                                 data.empty_branch_samples == 0
                                     ? "the file has no sample with a branch stack (perf record -b, -j any)"
                                     : fmt::format("its {} {} empty branch stacks: the filter (-j) excluded all "
                                                   "branches, or a virtual machine has no branch recording",
                                                   counted(data.empty_branch_samples, "sample"),
                                                   data.empty_branch_samples == 1 ? "has" : "have"))};
    name_threads(data);
    const bool made = is_made(data);
    const auto shared = std::make_shared<PerfData>(std::move(data));
    Capture out;
    out.path = path;
    out.sampled = true;
    out.description = shared->version.empty() ? "branch stacks" : "branch stacks, recorded by perf " + shared->version;
    if (!shared->release.empty()) out.description += " under Linux " + shared->release;
    if (!shared->command_line.empty()) out.description += ": " + shared->command_line;
    if (made) out.description += "; made of trace";
    const std::shared_ptr<const ByteFile> unpacked =
        byte_file_from_memory(std::move(shared->unpacked_branches), path.string());
    std::map<std::pair<std::uint32_t, bool>, std::size_t> buffers;
    // Each CPU's samples sorted by time, so that memory maps are traversed once.
    std::vector<const BranchSample*> samples;
    for (const BranchSample& s : shared->branch_samples) samples.push_back(&s);
    std::stable_sort(samples.begin(), samples.end(), [](const BranchSample* a, const BranchSample* b) {
        return std::pair(a->cpu, a->time.value_or(0)) < std::pair(b->cpu, b->time.value_or(0));
    });
    for (const BranchSample* s : samples) {
        const auto [at, fresh] = buffers.try_emplace({s->cpu, s->unpacked}, out.buffers.size());
        if (fresh) {
            const std::string name = s->cpu == nobody ? "samples" : fmt::format("cpu{}", s->cpu);
            Buffer buffer;
            buffer.name = "branches_" + name + (buffers.contains({s->cpu, !s->unpacked}) ? "_2" : "");
            buffer.format = Buffer::Format::source_data;
            buffer.format_name = std::string(capture::name(buffer.format));
            buffer.files.push_back(path);
            buffer.container = s->unpacked ? unpacked : file;
            buffer.sources.push_back(name);
            out.buffers.push_back(std::move(buffer));
            if (out.find_source(name) == nullptr) {
                Core core;
                core.name = s->cpu == nobody ? "CPU" : fmt::format("CPU {}", s->cpu);
                Source source;
                source.name = name;
                source.type = made ? "STACKS" : "";
                source.core = core.name;
                source.file = path.filename().string();
                out.cores.push_back(std::move(core));
                out.sources.push_back(std::move(source));
            }
        }
        BufferPart part;
        part.offset = s->offset;
        part.bytes = std::uint64_t{s->entries} * branch_entry_bytes;
        part.from = s->time.value_or(0);
        part.to = s->time.value_or(~std::uint64_t{0});
        if (s->tid != nobody) part.thread = s->tid;
        out.buffers[at->second].parts.push_back(part);
    }
    set_x86_64(out, is_x86_64(*shared).value_or(false));
    const auto problem = [&](std::string message, Problem::Kind kind = Problem::Kind::description) {
        out.problems.push_back({path, 0, std::move(message), {}, kind});
    };
    if (shared->empty_branch_samples != 0)
        problem(fmt::format("the branch stacks of {} are empty; those samples contain no information.",
                            counted(shared->empty_branch_samples, "sample")));
    if (shared->unfinished)
        problem(
            "the file was not finished: perf was killed before it wrote the size of the data. Records are read up "
            "to the end of the file; end perf with Ctrl-C.",
            Problem::Kind::part);
    if (shared->lost_records != 0)
        problem(fmt::format("{} of the kernel were lost: samples, maps and names of processes may be missing. With a "
                            "larger ring (perf record -m SIZE), fewer are lost.",
                            counted(shared->lost_records, "record")),
                Problem::Kind::part);
    for (const Loss& loss : shared->losses)
        problem(fmt::format("offset {:#x}: {}", loss.first.value, loss.message), Problem::Kind::damage);
    if (shared->loss_count > shared->losses.size())
        problem(fmt::format("{} more places could not be read.", shared->loss_count - shared->losses.size()),
                Problem::Kind::damage);
    if (made) out.peculiarities = made_samples(*shared);
    out.spaces = address_spaces(shared, std::nullopt, false, out.modules);
    return out;
}

}  // namespace waymark::capture::perf
