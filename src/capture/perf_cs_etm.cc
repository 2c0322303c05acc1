#include "waymark/capture/perf_cs_etm.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "perf_peculiarities.h"
#include "waymark/capture/perf_cs_etm_writer.h"
#include "waymark/capture/perf_part.h"
#include "waymark/core/numbers.h"
#include "waymark/coresight/guess.h"

namespace waymark::capture::perf {

namespace {

class Maker {
public:
    Maker(std::filesystem::path path, std::shared_ptr<const ByteFile> file, PerfData data)
        : path_(std::move(path)), file_(std::move(file)), data_(std::make_shared<const PerfData>(std::move(data))) {}

    Result<Capture> run() {
        if (!data_->auxtrace_info)
            return Error{Errc::bad_format,
                         path_.string() +
                             ": contains trace, but no AUXTRACE_INFO record, which describes the trace "
                             "units, so it cannot be decoded; the file is damaged: copy the whole "
                             "file again, or record again"};
        WM_ASSIGN_OR_RETURN(info_, cs_info(*data_->auxtrace_info));
        out_.path = path_;
        if (const auto process = data_->meta_info.find("recording_process"); process != data_->meta_info.end())
            out_.recorder = process->second.substr(process->second.rfind('/') + 1);
        for (std::string& sentence : info_.problems) problem(std::move(sentence));
        find_ids();
        add_sources();
        rings_ = cs_rings(*data_);
        if (rings_.without_aux) find_formats();
        out_.peculiarities = peculiarities_of({*data_, info_, rings_, ids_, context_in_vmid(), kernel_timestamps()});
        add_buffers();
        leave_out_idle_units();
        say_what_was_recorded();
        say_what_is_missing();
        say_what_was_not_traced();
        out_.description = describe();
        out_.spaces = address_spaces(data_, context_in_vmid(), kernel_timestamps() && has_timestamps(), out_.modules);
        if (data_->time_conversion && data_->time_conversion->valid() && kernel_timestamps())
            out_.timestamp_frequency_hz = static_cast<std::uint64_t>(data_->time_conversion->frequency_hz() + 0.5);
        return std::move(out_);
    }

private:
    void problem(std::string message, Problem::Kind kind = Problem::Kind::description) {
        out_.problems.push_back({path_, 0, std::move(message), {}, kind});
    }
    [[nodiscard]] bool kernel_timestamps() const {
        return !info_.units.empty() &&
               std::all_of(info_.units.begin(), info_.units.end(), [](const CsUnit& u) { return u.ts_source == 1U; });
    }
    /// Like perf, uses the first unit for all. nullopt: the trace has no context IDs.
    [[nodiscard]] std::optional<bool> context_in_vmid() const {
        constexpr std::uint64_t cid = 1U << 6, vmid = 1U << 7, vmidopt = 1U << 15;
        for (const CsUnit& unit : info_.units) {
            const Register* config = find_register(unit.registers, "TRCCONFIGR");
            if (config == nullptr) continue;
            if ((config->value & (vmid | vmidopt)) != 0) return true;
            if ((config->value & cid) != 0) return false;
            return std::nullopt;
        }
        constexpr std::uint64_t etmcr_context = 3U << 14;
        for (const CsUnit& unit : info_.units)
            if (const Register* control = find_register(unit.registers, "ETMCR"))
                return (control->value & etmcr_context) != 0 ? std::optional(false) : std::nullopt;
        return std::nullopt;
    }

    /// Describes which program recorded it, and how.
    [[nodiscard]] std::string describe() const {
        std::string out = data_->simpleperf ? "recorded by simpleperf" : "recorded by perf";
        if (!data_->simpleperf && !data_->version.empty())
            out += " " +
                   data_->version.substr(0, std::min(data_->version.find(begins_mark), data_->version.find(ends_mark)));
        if (!data_->release.empty()) out += fmt::format(" under Linux {}", data_->release);
        if (!data_->command_line.empty()) out += ": " + data_->command_line;
        const auto add = [&](const std::string& sentence) { out += "; " + sentence; };
        if (info_.snapshot) add("a snapshot");
        const auto vmid = context_in_vmid();
        add(!vmid   ? "the trace does not identify threads"
            : *vmid ? "threads are identified by VMID"
                    : "threads are identified by context ID");
        if (kernel_timestamps() && has_timestamps()) add("timestamps are the kernel's");
        if (!idle_.empty())
            add(fmt::format("the unit{} of CPU{} {} wrote no trace", idle_.size() == 1 ? "" : "s",
                            idle_.size() == 1 ? "" : "s", list(idle_)));
        return out;
    }
    [[nodiscard]] bool has_timestamps() const {
        return std::any_of(info_.units.begin(), info_.units.end(), [](const CsUnit& unit) {
            constexpr std::uint64_t ts = 1U << 11;
            const Register* config = find_register(unit.registers, "TRCCONFIGR");
            return config != nullptr && (config->value & ts) != 0;
        });
    }

    static std::string source_name(std::uint32_t cpu) { return fmt::format("cpu{}", cpu); }
    static std::string core_name(std::uint32_t cpu) { return fmt::format("CPU {}", cpu); }

    // Section 1.5.
    void find_ids() {
        std::set<std::uint32_t> changed;
        for (const HardwareId& record : data_->hardware_ids) {
            const CsHardwareId id = cs_hardware_id(record.id);
            if (id.major != 0) {
                problem(
                    fmt::format("an AUX_OUTPUT_HW_ID record has version {}.{}, expected 0: it is ignored. The "
                                "file comes from a newer kernel than this Waymark supports.",
                                id.major, id.minor));
                continue;
            }
            if (!record.where.cpu || *record.where.cpu == nobody) {
                problem("an AUX_OUTPUT_HW_ID record does not contain its CPU and is ignored.");
                continue;
            }
            const std::uint32_t cpu = *record.where.cpu;
            const auto [at, fresh] = ids_.try_emplace(cpu, id);
            if (!fresh && at->second.trace_id != id.trace_id && changed.insert(cpu).second)
                problem(
                    fmt::format("AUX_OUTPUT_HW_ID records give CPU {} the trace IDs {:#04x} and {:#04x}; the first "
                                "one is used.",
                                cpu, at->second.trace_id, id.trace_id));
            if (record.where.tid) threads_of_[cpu].insert(*record.where.tid);
        }
    }
    /// 0: none.
    [[nodiscard]] std::uint8_t trace_id(const CsUnit& unit) const {
        if (ids_.empty()) return unit.trace_id;
        const auto found = ids_.find(unit.cpu);
        return found == ids_.end() ? std::uint8_t{0} : found->second.trace_id;
    }
    static bool is_id(std::uint8_t id) { return id >= 0x01 && id <= 0x6f; }

    void add_sources() {
        std::vector<std::uint32_t> without_id;
        for (const CsUnit& unit : info_.units) {
            Core core;
            core.name = core_name(unit.cpu);
            const bool aarch32 = unit.kind == CsUnit::Kind::ptm || unit.kind == CsUnit::Kind::etmv3;
            core.type = aarch32 ? "ARMv7-A" : "ARM-AA64";
            Source source;
            source.name = source_name(unit.cpu);
            source.type = source_type(unit);
            source.core = core.name;
            source.core_type = core.type;
            source.registers = unit.registers;
            source.file = path_.filename().string();
            if (const std::uint8_t id = trace_id(unit); is_id(id)) {
                const Register r{aarch32 ? "ETMTRACEIDR" : "TRCTRACEIDR", id};
                source.registers.insert(source.registers.begin() + (source.registers.empty() ? 0 : 1), r);
            } else if (ids_.empty()) {
                without_id.push_back(unit.cpu);
            }
            out_.cores.push_back(std::move(core));
            out_.sources.push_back(std::move(source));
        }
        if (!without_id.empty())
            problem(
                fmt::format("the metadata give CPU{} {} trace IDs that no unit can have (IDs are 0x01 to 0x6f). perf "
                            "before 6.3 computes 0x10 + 2 * CPU, which leaves that range from CPU 48 on; the IDs from "
                            "the kernel are only in AUX_OUTPUT_HW_ID records, which this file lacks. Formatted trace "
                            "of these CPUs is counted, but not decoded. Record with perf 6.3 and Linux 6.3 or newer.",
                            without_id.size() == 1 ? "" : "s", list(without_id)));
    }

    /// The kernel reports a trace ID for each unit in use. So a unit without an ID wrote nothing, unless its trace is
    /// raw.
    void leave_out_idle_units() {
        if (ids_.empty()) return;
        std::set<std::string> used;
        for (const Buffer& buffer : out_.buffers) used.insert(buffer.sources.begin(), buffer.sources.end());
        for (const CsUnit& unit : info_.units)
            if (!is_id(trace_id(unit)) && !used.contains(source_name(unit.cpu))) idle_.push_back(unit.cpu);
        const std::set<std::uint32_t> idle(idle_.begin(), idle_.end());
        std::set<std::string> sources, cores;
        for (const std::uint32_t cpu : idle) {
            sources.insert(source_name(cpu));
            cores.insert(core_name(cpu));
        }
        std::erase_if(out_.sources, [&](const Source& s) { return sources.contains(s.name); });
        std::erase_if(out_.cores, [&](const Core& c) { return cores.contains(c.name); });
    }

    /// Numbers as a list, such as `0 to 3, 7`.
    static std::string list(const std::vector<std::uint32_t>& numbers) {
        std::string out;
        for (std::size_t i = 0; i < numbers.size();) {
            std::size_t k = i;
            while (k + 1 < numbers.size() && numbers[k + 1] == numbers[k] + 1) ++k;
            out += fmt::format("{}{}", out.empty() ? "" : ", ", numbers[i]);
            if (k == i + 1) out += fmt::format(", {}", numbers[k]);
            if (k > i + 1) out += fmt::format(" to {}", numbers[k]);
            i = k + 1;
        }
        return out;
    }

    /// The sources that may occur in the formatted trace of this ring.
    std::vector<std::string> sources_in(const CsRing& ring) {
        std::optional<std::uint32_t> sink;
        bool by_sink = false;
        for (const auto& [cpu, id] : ids_) {
            if (!id.sink) continue;
            by_sink = true;
            const auto threads = threads_of_.find(cpu);
            const bool of_thread = threads != threads_of_.end() && threads->second.contains(ring.tid);
            if ((cpu == ring.cpu || (ring.cpu == nobody && of_thread)) && !sink) sink = id.sink;
        }
        std::vector<std::string> out;
        std::map<std::uint8_t, std::uint32_t> taken;
        for (const CsUnit& unit : info_.units) {
            const std::uint8_t id = trace_id(unit);
            if (!is_id(id)) continue;
            const auto known = ids_.find(unit.cpu);
            if (by_sink && sink && known != ids_.end() && known->second.sink != sink) continue;
            const auto [at, fresh] = taken.try_emplace(id, unit.cpu);
            if (!fresh) {
                if (shared_ids_.insert({id, at->second, unit.cpu}).second)
                    problem(
                        fmt::format("CPU {} and CPU {} have the trace ID {:#04x} in one trace buffer; its bytes are "
                                    "given to CPU {}.",
                                    at->second, unit.cpu, id, at->second));
                continue;
            }
            out.push_back(source_name(unit.cpu));
        }
        return out;
    }

    /// Without AUX records, the format of a ring has to be inferred from its bytes.
    void find_formats() {
        constexpr std::size_t most = std::size_t{1} << 16;
        for (CsRing& ring : rings_.rings) {
            if (ring.ranges.empty() || ring.ranges.front().parts.empty()) continue;
            const BufferPart& part = ring.ranges.front().parts.front();
            if (part.packed != 0) continue;
            std::vector<std::uint8_t> head(std::min<std::uint64_t>(part.bytes, most));
            const auto read = file_->read_at(part.offset, head);
            if (!read) continue;
            const coresight::FramingGuess guess = coresight::guess_framing(Bytes(head).first(*read));
            if (guess.kind != coresight::BufferKind::raw || guess.confidence != coresight::Confidence::high) continue;
            for (CsRange& range : ring.ranges) range.raw = true;
            guessed_raw_.push_back(name_of(ring));
        }
    }
    static std::string name_of(const CsRing& ring) {
        return ring.cpu != nobody ? fmt::format("CPU {}", ring.cpu) : fmt::format("thread {}", ring.tid);
    }

    // Section 1.4.
    void add_buffers() {
        for (CsRing& ring : rings_.rings) {
            const std::string owner =
                ring.cpu != nobody ? fmt::format("aux_cpu{}", ring.cpu) : fmt::format("aux_thread_{}", ring.tid);
            bool formatted = false, raw = false;
            for (const CsRange& range : ring.ranges) (range.raw ? raw : formatted) = true;
            // Trace grouped by format; raw trace also by unit.
            std::map<std::pair<bool, std::uint32_t>, std::size_t> by_kind;
            for (CsRange& range : ring.ranges) {
                if (range.parts.empty()) continue;
                const std::uint32_t unit = !range.raw ? nobody : ring.cpu != nobody ? ring.cpu : raw_unit(range);
                if (range.raw && (unit == nobody || info_.unit(unit) == nullptr)) {
                    for (const BufferPart& part : range.parts) unknown_unit_bytes_ += part.bytes;
                    continue;
                }
                const auto [at, fresh] = by_kind.try_emplace({range.raw, unit}, out_.buffers.size());
                if (fresh) {
                    Buffer buffer;
                    if (by_kind.size() == 1) {
                        buffer.wrapped = ring.wrapped;
                        buffer.overwritten = ring.overwritten;
                    }
                    buffer.name = owner;
                    if (range.raw && ring.cpu == nobody) buffer.name += fmt::format("_cpu{}", unit);
                    if (range.raw && formatted) buffer.name += "_raw";
                    buffer.format = range.raw ? Buffer::Format::source_data : Buffer::Format::coresight;
                    buffer.format_name = std::string(name(buffer.format));
                    buffer.files.push_back(path_);
                    buffer.container = file_;
                    buffer.other_sources = !range.raw;
                    buffer.sources = range.raw ? std::vector{source_name(unit)} : sources_in(ring);
                    out_.buffers.push_back(std::move(buffer));
                }
                std::vector<BufferPart>& parts = out_.buffers[at->second].parts;
                parts.insert(parts.end(), range.parts.begin(), range.parts.end());
                range.parts = {};
            }
        }
    }
    /// For a thread's ring, the CPU comes from the AUX record. Without a record any CPU is right, if all units are
    /// programmed alike.
    [[nodiscard]] std::uint32_t raw_unit(const CsRange& range) const {
        if (range.cpu) return *range.cpu;
        const auto like_first = [&](const CsUnit& u) {
            return u.kind == info_.units.front().kind && u.registers == info_.units.front().registers;
        };
        return !info_.units.empty() && std::all_of(info_.units.begin(), info_.units.end(), like_first)
                   ? info_.units.front().cpu
                   : nobody;
    }

    static std::string bytes_text(std::uint64_t bytes) {
        return fmt::format("{} byte{}", bytes, bytes == 1 ? "" : "s");
    }
    static std::string ranges_text(std::uint64_t ranges) {
        return ranges == 1 ? "1 AUX range" : fmt::format("{} AUX ranges", ranges);
    }

    /// Says how rings without AUX records are read.
    [[nodiscard]] std::string guessed_formats() const {
        if (guessed_raw_.empty()) return "as CoreSight frames, which is wrong where it is unformatted (TRBE)";
        const std::string raw = "as unformatted trace of one unit (TRBE), as its bytes suggest";
        if (guessed_raw_.size() == rings_.rings.size()) return raw;
        return fmt::format("the trace of {} {}, the rest as CoreSight frames", fmt::join(guessed_raw_, ", "), raw);
    }

    /// A recording by `waymark record` states which part of the run it contains.
    void say_what_was_recorded() {
        if (out_.buffers.empty()) return;
        RecordedPart part = recorded_part(data_->version);
        out_.buffers.front().begins = std::move(part.begins);
        out_.buffers.back().ends = std::move(part.ends);
        for (const Buffer& buffer : out_.buffers)
            for (std::string& sentence : missing_parts(buffer)) problem(std::move(sentence), Problem::Kind::part);
    }

    void say_what_is_missing() {
        using Kind = Problem::Kind;
        if (rings_.unplaced_ranges != 0)
            problem(fmt::format("{} with {} of trace{} {} no AUXTRACE record in the file: the trace was recorded, but "
                                "not written; perhaps perf was killed or the disk was full. This trace is lost; "
                                "record again.",
                                ranges_text(rings_.unplaced_ranges), bytes_text(rings_.unplaced_bytes),
                                rings_.unplaced_cpus.empty()
                                    ? ""
                                    : fmt::format(" of CPU{} {}", rings_.unplaced_cpus.size() == 1 ? "" : "s",
                                                  list(rings_.unplaced_cpus)),
                                rings_.unplaced_ranges == 1 ? "has" : "have"),
                    Kind::part);
        std::uint64_t truncated = 0, collided = 0, ranges = 0;
        for (const AuxRange& aux : data_->aux) {
            ++ranges;
            truncated += (aux.flags & AuxRange::truncated) != 0 ? 1 : 0;
            collided += (aux.flags & AuxRange::collision) != 0 ? 1 : 0;
        }
        for (const CsRing& ring : rings_.rings) {
            const std::string owner = name_of(ring);
            std::uint64_t missing = 0, cut = 0, again = 0;
            for (const CsRange& range : ring.ranges) {
                missing += std::min(range.missing, ~missing);
                cut += range.missing != 0 ? 1 : 0;
                again += range.again;
            }
            if (cut != 0)
                problem(
                    fmt::format("{} of {} lack {} of their trace: no AUXTRACE record contains it. The rest is decoded.",
                                ranges_text(cut), owner, bytes_text(missing)),
                    Kind::part);
            if (again != 0 && !info_.snapshot)
                problem(
                    fmt::format("AUX ranges of {} overlap in {}, which are decoded once.", owner, bytes_text(again)));
            if (ring.uncovered_bytes != 0)
                problem(fmt::format("{} of the trace of {} are outside the ranges of all AUX records; their format is "
                                    "not known, so they are omitted. AUX records were lost (with a larger ring, perf "
                                    "record -m SIZE, fewer are lost), or the file was cut or filtered; record again.",
                                    bytes_text(ring.uncovered_bytes), owner),
                        Kind::part);
        }
        if (data_->unfinished)
            problem(
                "the file was not finished: perf was killed, or the machine stopped, before it wrote the size of the "
                "data. Records are read up to the end of the file; build IDs and unwritten data are missing. End perf "
                "with Ctrl-C, and record again.",
                Kind::part);
        if (data_->branch_list)
            problem(
                "the file has lists of branches, which simpleperf made while it recorded, instead of trace "
                "(--decode-etm). waymark pgo reads them; all other commands need trace: record without --decode-etm.");
        if (rings_.without_aux && !rings_.rings.empty())
            problem(fmt::format(
                "the file has no AUX records, which describe where trace begins and ends and how it is "
                "formatted; {}. The trace of each ring is read as one range, {}. Copy the whole file again, "
                "or record again.",
                data_->loss_count != 0 ? "they are in the missing or damaged part"
                                       : "they were lost, or the file was filtered",
                guessed_formats()));
        if (truncated != 0)
            problem(fmt::format("{} of {} AUX ranges are marked TRUNCATED: the trace buffer was full or had wrapped, "
                                "and an unknown amount of trace is lost there. With a larger AUX buffer (perf record "
                                "-m ,SIZE) or less trace (no timestamps, strobing, a filter), less is lost.",
                                truncated, ranges),
                    Kind::part);
        if (collided != 0)
            problem(
                fmt::format(
                    "{} of {} AUX ranges are marked COLLISION: the TRBE continued to write while its buffer was full, "
                    "and trace was lost between them. With a larger AUX buffer (perf record -m ,SIZE) there are fewer.",
                    collided, ranges),
                Kind::part);
        if (unknown_unit_bytes_ != 0)
            problem(fmt::format(
                        "{} of unformatted trace belong to a CPU that the file does not describe; they are omitted.",
                        bytes_text(unknown_unit_bytes_)),
                    Kind::part);
        if (data_->lost_records != 0)
            problem(fmt::format("{} records of the kernel were lost: maps and names of processes may be missing. With "
                                "a larger ring (perf record -m SIZE), fewer are lost.",
                                data_->lost_records),
                    Kind::part);
        for (const Loss& loss : data_->losses)
            problem(fmt::format("offset {:#x}: {}", loss.first.value, loss.message), Kind::damage);
        if (data_->loss_count > data_->losses.size())
            problem(fmt::format("{} more places could not be read.", data_->loss_count - data_->losses.size()),
                    Kind::damage);
    }

    void say_what_was_not_traced() {
        const auto strobing = strobing_of(*data_, info_.pmu_type);
        if (!strobing) return;
        out_.strobed = true;
        const std::string_view means =
            "Code that ran between bursts is not known, and counts are estimates, from the bursts alone";
        if (strobing->window == 0 || strobing->period == 0)
            return problem(
                fmt::format("The units were programmed with a stored configuration{}, which traces in bursts "
                            "(strobing): it is not known which part of the run is in the trace. {}.",
                            strobing->configuration.empty() ? "" : fmt::format(" ({})", strobing->configuration),
                            means),
                Problem::Kind::not_traced);
        problem(fmt::format("Trace was taken in bursts (strobing, {}): {} cycles of about every {}, so about {:.3g} % "
                            "of the run is in the trace. {}.",
                            strobing->configuration, grouped(strobing->window),
                            grouped(strobing->window * strobing->period), 100 / static_cast<double>(strobing->period),
                            means),
                Problem::Kind::not_traced);
    }

    const std::filesystem::path path_;
    const std::shared_ptr<const ByteFile> file_;
    const std::shared_ptr<const PerfData> data_;
    CsInfo info_;
    CsRings rings_;
    Capture out_;
    std::map<std::uint32_t, CsHardwareId> ids_;                    // by CPU
    std::map<std::uint32_t, std::set<std::uint32_t>> threads_of_;  // of AUX_OUTPUT_HW_ID, by CPU
    std::set<std::tuple<std::uint8_t, std::uint32_t, std::uint32_t>> shared_ids_;
    std::uint64_t unknown_unit_bytes_ = 0;
    std::vector<std::string> guessed_raw_;  ///< rings whose trace was found to be unformatted by its bytes alone
    std::vector<std::uint32_t> idle_;       ///< CPUs whose units wrote no trace, according to the file
};

}  // namespace

Result<Capture> cs_etm_capture(const std::filesystem::path& path, std::shared_ptr<const ByteFile> file, PerfData data) {
    return Maker(path, std::move(file), std::move(data)).run();
}

}  // namespace waymark::capture::perf
