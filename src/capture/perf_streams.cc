/// Results of reading perf.data: the streams of trace that its chunks belong to, times, and names of records.
#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "waymark/capture/perf_data.h"

namespace waymark::capture::perf {

std::uint64_t Stream::bytes() const {
    std::uint64_t sum = 0;
    for (const Stretch& s : stretches) sum += s.bytes;
    return sum;
}

bool PerfData::has_branch_stacks() const {
    return std::any_of(attrs.begin(), attrs.end(),
                       [](const Attr& a) { return (a.sample_type & sample::branch_stack) != 0; });
}

std::vector<Stream> streams(const PerfData& data) {
    std::vector<Stream> out;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::size_t> by_key;  // by CPU and thread: the ring
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

}  // namespace waymark::capture::perf
