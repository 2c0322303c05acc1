#include "perf_peculiarities.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "waymark/capture/perf_cs_etm_writer.h"
#include "waymark/core/numbers.h"

namespace waymark::capture::perf {

namespace {

using Weight = Peculiarity::Weight;

constexpr std::uint64_t trcconfigr_ts = 1U << 11;
constexpr std::uint64_t config_ts = std::uint64_t{1} << 28, config_ts_interval = 0xf0;

std::uint64_t registers_with(const CsInfo& info, std::string_view name, std::uint64_t bits) {
    return static_cast<std::uint64_t>(std::count_if(info.units.begin(), info.units.end(), [&](const CsUnit& unit) {
        const Register* r = find_register(unit.registers, name);
        return r != nullptr && (r->value & bits) != 0;
    }));
}

class Finder {
public:
    explicit Finder(const CsFile& file) : file_(file), data_(file.data), info_(file.info) {}

    std::vector<Peculiarity> run() {
        shared_sink();
        wrong_magic();
        hardware_ids();
        contexts();
        simpleperf();
        formats();
        snapshot();
        clock();
        timestamp_bits();
        for (Peculiarity& made : made_samples(data_)) out_.push_back(std::move(made));
        other_readers();
        no_trace();
        return std::move(out_);
    }

private:
    void add(std::string kind, Weight weight, std::string found, std::string usual, std::string means,
             std::string advice) {
        out_.push_back(
            {std::move(kind), std::move(found), std::move(usual), std::move(means), std::move(advice), weight});
    }

    void shared_sink() {
        std::uint64_t empty = 0, formatted = 0;
        for (const AuxRange& aux : data_.aux) {
            empty += aux.bytes == 0 ? 1 : 0;
            formatted += aux.bytes != 0 && (aux.flags & cs_etm_format_mask) == 0 ? 1 : 0;
        }
        if (empty == 0 || formatted == 0) return;
        add("shared-sink", Weight::normal,
            fmt::format("{} of {} AUX ranges are empty, as where CPUs share a sink", grouped(empty),
                        grouped(data_.aux.size())),
            "trace of each CPU in its own ring",
            "the sink is copied into the ring of the CPU that stops last, so one ring has trace of several CPUs; "
            "Waymark assigns it to CPUs by trace ID, and decoders begin again at each range",
            "do not assume that the CPU of a ring or of an AUX record is the one that ran, and that empty ranges are "
            "losses");
    }

    void wrong_magic() {
        const auto wrong =
            std::count_if(info_.units.begin(), info_.units.end(), [](const CsUnit& unit) { return unit.wrong_magic; });
        if (wrong == 0) return;
        add("ete-magic", Weight::normal,
            fmt::format("{} of {} units are called ETE in the file, but are ETMv4 by TRCDEVARCH", wrong,
                        info_.units.size()),
            "the magic number of the unit's own protocol",
            "simpleperf writes ETE's number wherever the kernel shows TRCDEVARCH; Waymark goes by TRCDEVARCH",
            "look at bits 15:12 of TRCDEVARCH in other tools: 4 is ETMv4, 5 is ETE");
    }

    void hardware_ids() {
        if (file_.ids.empty()) return;
        const bool by_sink =
            std::any_of(file_.ids.begin(), file_.ids.end(), [](const auto& id) { return id.second.sink.has_value(); });
        std::uint64_t others = 0;
        for (const auto& [cpu, id] : file_.ids) {
            const CsUnit* unit = info_.unit(cpu);
            others += unit != nullptr && unit->trace_id != id.trace_id ? 1 : 0;
        }
        // Usual since perf 6.3: the records repeat what the metadata say.
        if (!by_sink && others == 0) return;
        add("hardware-ids", Weight::normal,
            fmt::format("trace IDs come from AUX_OUTPUT_HW_ID{}{}", by_sink ? ", each for its sink" : "",
                        others == 0
                            ? ""
                            : fmt::format("; for {} they differ from the IDs in the metadata", counted(others, "CPU"))),
            "trace IDs in the metadata",
            by_sink ? "the IDs in the metadata do not count, and one ID may belong to several CPUs in different sinks"
                    : "the IDs in the metadata do not count, wherever in the file the records come",
            "use perf 6.3 or newer, if perf is to decode it: older versions take the IDs in the metadata");
    }

    void contexts() {
        const bool per_thread =
            !file_.rings.rings.empty() && std::all_of(file_.rings.rings.begin(), file_.rings.rings.end(),
                                                      [](const CsRing& ring) { return ring.cpu == nobody; });
        if (file_.context_in_vmid == true)
            add("context-in-vmid", Weight::normal, "threads are known by VMID", "threads in context IDs",
                "the kernel runs at EL2 (TRCCONFIGR.VMID or VMIDOPT), so CONTEXTIDR_EL2 has the thread and the context "
                "ID, if there is one, has none of this machine",
                "use the VMID as the thread in other tools");
        if (!file_.context_in_vmid && !per_thread) {
            const auto [unknown, all] = bytes_without_thread();
            add("no-context-ids", unknown == 0 ? Weight::normal : Weight::ambiguous,
                "threads are not in the trace: context IDs were not traced",
                "context IDs or VMIDs, from which threads are known",
                unknown == 0 ? "the thread of each AUX range is the thread that its record or SWITCH records name"
                : unknown == all
                    ? "the processes that ran are not known, so no code of a process is found"
                    : fmt::format("for {} of {} bytes the process that ran is not known, so no code of a process is "
                                  "found there; for the other bytes AUX or SWITCH records name the process",
                                  grouped(unknown), grouped(all)),
                "record with contextid (perf sets it for a program, or with -a), with --switch-events, or with "
                "--per-thread");
        }
    }
    /// Bytes of trace whose thread is known only from the trace itself, and bytes of all trace.
    [[nodiscard]] std::pair<std::uint64_t, std::uint64_t> bytes_without_thread() const {
        std::uint64_t unknown = 0, all = 0;
        for (const CsRing& ring : file_.rings.rings)
            for (const CsRange& range : ring.ranges)
                for (const BufferPart& part : range.parts) {
                    all += part.bytes;
                    unknown += part.thread ? 0 : part.bytes;
                }
        return {unknown, all};
    }

    void simpleperf() {
        if (data_.index_without_count)
            add("index-without-count", Weight::normal, "its AUXTRACE index has no count, which perf does not read",
                "a count before the entries (feature 18)",
                "simpleperf up to about 2024 leaves it out; perf then says 'Failed to process auxtrace index', decodes "
                "no raw trace, and exits with 0",
                "decode it with Waymark, or record with a newer simpleperf");
        const auto packed =
            std::count_if(data_.chunks.begin(), data_.chunks.end(), [](const Chunk& chunk) { return chunk.packed; });
        if (packed != 0)
            add("compressed-trace", Weight::normal,
                fmt::format("the trace of {} is compressed, which no field of them says",
                            counted(static_cast<std::uint64_t>(packed), "AUXTRACE record")),
                "trace in the form in which it was in the ring",
                "simpleperf -z compresses trace too; perf decodes the compressed bytes",
                "decode it with Waymark or simpleperf, or record without -z");
        if (data_.split_records != 0)
            add("split-records", Weight::normal,
                fmt::format("{} in SPLIT records of simpleperf",
                            counted(data_.split_records, "record is", "records are")),
                "records of at most 64 KiB", "the size of records of simpleperf's own types has 32 bits",
                "do not read its upper half as flags (misc) in other tools");
    }

    void formats() {
        std::uint64_t raw = 0, formatted = 0;
        bool in_one_ring = false;
        for (const CsRing& ring : file_.rings.rings) {
            std::uint64_t r = 0, f = 0;
            for (const CsRange& range : ring.ranges) (range.raw ? r : f) += range.parts.empty() ? 0 : 1;
            raw += r;
            formatted += f;
            in_one_ring |= r != 0 && f != 0;
        }
        if (raw == 0 || formatted == 0) return;
        add("mixed-formats", Weight::normal,
            fmt::format("{} of {} AUX ranges are raw trace of one unit, the others CoreSight frames{}", grouped(raw),
                        grouped(raw + formatted), in_one_ring ? ", even within one ring" : ""),
            "one format in a file",
            "flag 0x100 of each AUX record decides, not the sink's name; where the driver knows of a loss, a barrier "
            "replaces the first frame",
            in_one_ring ? "decode it with Waymark: perf 6.12 refuses two formats in one ring"
                        : "look at the flags of AUX records in other tools");
    }

    void snapshot() {
        const auto overwrite = std::count_if(data_.aux.begin(), data_.aux.end(), [](const AuxRange& aux) {
            return (aux.flags & AuxRange::overwrite) != 0;
        });
        if (overwrite == 0 && !info_.snapshot) return;
        add("snapshot", Weight::normal,
            fmt::format("a snapshot: {} of {} AUX ranges are marked OVERWRITE", overwrite, data_.aux.size()),
            "trace from its beginning on",
            "the offset of such a range is its end; the trace that the ring kept is there, and nothing is known about "
            "the time before",
            "treat code that did not run as not observed");
    }

    void clock() {
        if (registers_with(info_, "TRCCONFIGR", trcconfigr_ts) == 0 || file_.kernel_timestamps) return;
        const bool known = std::any_of(info_.units.begin(), info_.units.end(),
                                       [](const CsUnit& unit) { return unit.ts_source.has_value(); });
        add("other-clock", Weight::normal, "timestamps may not count the kernel's clock, so they only show the order",
            "TS_SOURCE = 1, the virtual counter, for every unit",
            fmt::format("{}, so TIME_CONV does not hold for them, and perf's own times are the AUX records'",
                        known ? "TS_SOURCE contains another counter" : "no TS_SOURCE states what they count"),
            "record with perf 6.3 or newer, which writes TS_SOURCE; if their frequency is known, give it with "
            "--timestamp-hz");
    }

    void timestamp_bits() {
        const auto event = std::find_if(data_.attrs.begin(), data_.attrs.end(),
                                        [&](const Attr& a) { return a.type == info_.pmu_type; });
        if (event == data_.attrs.end()) return;
        const std::uint64_t units = registers_with(info_, "TRCCONFIGR", trcconfigr_ts);
        const bool etmv4 = std::any_of(info_.units.begin(), info_.units.end(), [](const CsUnit& unit) {
            return find_register(unit.registers, "TRCCONFIGR") != nullptr;
        });
        const bool interval = (event->config & config_ts_interval) != 0, old = (event->config & config_ts) != 0;
        if (interval)
            add("timestamp-bits", Weight::normal,
                fmt::format("the event requests timestamps in bits 7:4 of its config ({:#x}), as Linux 7.0 does",
                            event->config),
                "bit 28", "older readers use bit 28, and conclude that the trace has no timestamps",
                "use TRCCONFIGR.TS and the packets");
        else if (etmv4 && old != (units != 0))
            add("timestamp-bits", Weight::normal,
                fmt::format("the event's config ({:#x}) requests {}timestamps, but the units were programmed {} them",
                            event->config, old ? "" : "no ", units != 0 ? "with" : "without"),
                "the same in both", "the bits of the config moved in Linux 7.0; TRCCONFIGR.TS counts",
                "use TRCCONFIGR.TS and the packets");
    }

    /// Reports what a writer that supports every version of perf avoids (1.9).
    void other_readers() {
        std::string lacks;
        const auto add_reason = [&](std::string reason) { lacks += (lacks.empty() ? "" : "; ") + std::move(reason); };
        constexpr std::uint64_t version_of_every_perf = 1;
        if (info_.version > version_of_every_perf)
            add_reason(
                fmt::format("AUXTRACE_INFO has version {}, which perf before 6.3 refuses ('failed to process "
                            "type: 70')",
                            info_.version));
        const bool cpus = std::any_of(data_.aux.begin(), data_.aux.end(),
                                      [](const AuxRange& aux) { return aux.id.cpu && *aux.id.cpu != nobody; });
        const bool per_thread = std::any_of(data_.chunks.begin(), data_.chunks.end(),
                                            [](const Chunk& chunk) { return chunk.cpu == nobody; });
        if (cpus && per_thread)
            add_reason("AUX records of threads name CPUs, where perf 6.1 expects -1 ('Couldn't find auxtrace buffer')");
        if (!data_.indexed && !data_.pipe)
            add_reason("there is no AUXTRACE index (feature 18), without which perf script -F prints nothing");
        if (data_.late_time_conversion) add_reason("TIME_CONV comes after AUXTRACE_INFO, so perf does not use it");
        if (lacks.empty()) return;
        add("not-for-every-perf", Weight::normal, std::move(lacks),
            "what all versions of perf read: version 1, CPU -1 in AUX records of threads, an index, TIME_CONV first",
            "perf may decode less, or nothing, without an error",
            "decode it with Waymark, or with the perf that recorded it");
    }

    void no_trace() {
        const bool any =
            std::any_of(data_.chunks.begin(), data_.chunks.end(), [](const Chunk& chunk) { return chunk.bytes != 0; });
        if (any) return;
        const std::uint64_t ranges = data_.aux.size();
        add("no-trace", Weight::fatal,
            ranges == 0
                ? std::string(
                      "the file describes trace units, but has no trace: neither AUX nor AUXTRACE records with bytes")
                : fmt::format("the file has no byte of trace: {}, and no AUXTRACE record with bytes",
                              counted(ranges, "AUX record")),
            "AUXTRACE records with the trace",
            "other tools write an empty result and exit with 0; here that is an error",
            !data_.losses.empty() ? "the file is cut or damaged: copy the whole file again"
            : ranges == 0         ? "check that the event was cs_etm and ran where the program did, and record again"
                          : "let the recorder end by itself with enough space (it was killed, or the disk was full), "
                            "and record again");
    }

    const CsFile& file_;
    const PerfData& data_;
    const CsInfo& info_;
    std::vector<Peculiarity> out_;
};

}  // namespace

std::vector<Peculiarity> made_samples(const PerfData& data) {
    std::vector<Peculiarity> out;
    const std::uint64_t samples = data.count(Type::sample);
    if (samples == 0) return out;
    out.push_back({"made-samples",
                   fmt::format("{} among its records, made from trace as perf inject does", counted(samples, "sample")),
                   "trace alone: a cs_etm event gives no samples",
                   "perf counts instructions between them whatever the unit of --itrace=i is, so i1us is every 1000th "
                   "instruction",
                   "do not use their number as time; waymark profile counts every instruction of the trace",
                   Weight::normal});
    const bool stacks = std::any_of(data.attrs.begin(), data.attrs.end(),
                                    [](const Attr& a) { return (a.sample_type & sample::branch_stack) != 0; });
    if (stacks)
        out.push_back({"branch-stacks", "its samples have branch stacks", "ranges as in the trace",
                       "ranges between two branches end with the last instruction itself in the text of AutoFDO and "
                       "llvm-profgen, but after it inside perf",
                       "make compiler profiles from the trace: waymark export writes the last instruction",
                       Weight::normal});
    return out;
}

std::vector<Peculiarity> peculiarities_of(const CsFile& file) { return Finder(file).run(); }

std::vector<Peculiarity> without_cs_trace(const PerfData& data) {
    const auto is_cs_etm = [&](const Attr& attr) {
        const auto pmu = data.pmus.find(attr.type);
        return attr.name.starts_with("cs_etm") || (pmu != data.pmus.end() && pmu->second == "cs_etm");
    };
    // If the file has trace, it is damaged, and was not written like this.
    if (data.auxtrace_info || !data.chunks.empty() || std::none_of(data.attrs.begin(), data.attrs.end(), is_cs_etm))
        return {};
    std::vector<Peculiarity> out = made_samples(data);
    out.push_back({"no-trace", "the file has a cs_etm event, but neither AUXTRACE_INFO nor trace",
                   "AUXTRACE records with the trace",
                   "perf inject removes the trace; the remaining samples are not program flow",
                   "decode the file that perf inject read", Weight::fatal});
    return out;
}

}  // namespace waymark::capture::perf
