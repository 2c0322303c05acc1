#include "waymark/analysis/quality.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "waymark/capture/perf_part.h"
#include "waymark/core/numbers.h"
#include "waymark/isa/cores.h"

namespace waymark::analysis {

namespace perf = capture::perf;

namespace {

constexpr std::uint32_t neoverse_n1 = 0x410fd0c0;
constexpr std::uint32_t model_mask = 0xff0ffff0;

std::vector<std::string> filters_of(const perf::Attr& attr) {
    std::vector<std::string> out;
    const auto bit = [&](unsigned n) { return (attr.config >> n & 1U) != 0; };
    std::string types;
    const auto type = [&](unsigned n, std::string_view name) {
        if (bit(n)) types += (types.empty() ? "" : " or ") + std::string(name);
    };
    type(32, "branches");
    type(33, "loads");
    type(34, "stores");
    type(39, "SIMD");
    type(41, "floating point");
    if (!types.empty()) out.push_back(types);
    if ((attr.config >> 36 & 0x57U) != 0)
        out.push_back(fmt::format("filter masks {:#x} (config bits 36 to 42)", attr.config >> 36 & 0x57U));
    if (attr.config1 != 0) out.push_back(fmt::format("events {:#x} all set", attr.config1));
    if (attr.config3 != 0) out.push_back(fmt::format("events {:#x} all clear", attr.config3));
    if ((attr.config2 & 0xfffU) != 0) out.push_back(fmt::format("latency at least {} cycles", attr.config2 & 0xfffU));
    if (attr.config4 != 0) out.push_back(fmt::format("data sources but {:#x}", attr.config4));
    if (bit(35)) out.emplace_back("discard: nothing is written");
    if ((attr.flags >> 4 & 1U) != 0) out.emplace_back("not user space");
    if ((attr.flags >> 5 & 1U) != 0) out.emplace_back("not the kernel");
    return out;
}

void add(Flagged& to, std::uint64_t bytes) {
    ++to.stretches;
    to.bytes += bytes;
}

}  // namespace

std::vector<Erratum> sampling_errata(std::uint32_t midr) {
    std::vector<Erratum> out;
    if ((midr & model_mask) != (neoverse_n1 & model_mask)) return out;
    const std::uint32_t variant = midr >> 20 & 0xfU, revision = midr & 0xfU;
    if (variant < 4 || (variant == 4 && revision < 1))
        out.push_back({1694299,
                       "samples are biased: targets of branches are sampled too often, instructions shortly after "
                       "them too seldom"});
    out.push_back(
        {1912195, "compare-and-swap may leave records of class 'other' that carry the events of a memory operation"});
    return out;
}

bool is_modelled(const perf::PerfData& data) { return data.cpu_description.starts_with("modelled by waymark"); }

std::string core_name(std::uint32_t midr, bool modelled) {
    if (modelled) {
        const std::string name = midr == 0 ? std::string() : core_name(midr);
        return name.empty() ? "modelled" : fmt::format("modelled (near {})", name.substr(0, name.rfind(' ')));
    }
    if (midr == 0) return "not known";
    const std::uint32_t implementer = midr >> 24, part = midr >> 4 & 0xfffU;
    const std::string revision = fmt::format("r{}p{}", midr >> 20 & 0xfU, midr & 0xfU);
    const std::string_view name =
        isa::core_name(static_cast<std::uint8_t>(implementer), static_cast<std::uint16_t>(part));
    if (!name.empty()) return fmt::format("{} {}", name, revision);
    return fmt::format("implementer {:#04x} part {:#05x} {}", implementer, part, revision);
}

std::string interval_text(const Sampling& s) {
    if (s.longest == s.interval) return grouped(s.interval);
    return fmt::format("{} to {} (it changed)", grouped(s.interval), grouped(s.longest));
}

std::string why_no_address(const Quality& q) {
    const std::uint64_t others = q.without_address - q.sve_without_address;
    std::string out;
    if (q.modelled && q.sve_without_address != 0)
        out = fmt::format("{} of SVE: QEMU reports to plugins only the addresses of LDR, STR and LD1R",
                          q.sve_without_address);
    else if (q.sve_without_address != 0)
        out = fmt::format("{} of SVE", q.sve_without_address);
    if (others != 0 && !out.empty()) out += fmt::format("; {} others", others);
    return out;
}

std::uint64_t Quality::lost_bytes() const {
    std::uint64_t sum = 0;
    for (const StreamQuality& s : streams) sum += s.lost_bytes;
    return sum;
}
std::uint64_t Quality::damaged_bytes() const {
    std::uint64_t sum = 0;
    for (const StreamQuality& s : streams) sum += s.damaged_bytes;
    return sum;
}

Quality quality_of(const SampleCapture& capture, const SampleTotals& totals) {
    const perf::PerfData& data = *capture.data;
    Quality out;
    std::set<std::uint32_t> midrs;
    std::uint64_t min_interval = 0;
    for (const auto& [number, cpu] : capture.info.cpus) min_interval = std::max(min_interval, cpu.min_interval);
    const bool clock = data.time_conversion && data.time_conversion->valid();
    out.clock = clock;
    for (const StreamTotals& s : totals.streams) {
        StreamQuality q;
        q.cpu = s.facts.cpu;
        q.tid = s.tid;
        q.midr = s.facts.midr;
        q.bytes = s.totals.bytes;
        q.records = s.totals.records;
        q.selected = s.selected;
        q.no_pc = s.no_pc;
        q.damaged = s.totals.with(spe::Defect::damaged);
        q.inconsistent = s.totals.with(spe::Defect::inconsistent);
        q.lost_bytes = s.totals.lost_bytes + s.missing_bytes + s.unread_bytes;
        q.damaged_bytes = s.totals.damaged_bytes;
        if (const auto cpu = capture.info.cpus.find(q.cpu); cpu != capture.info.cpus.end())
            q.min_interval = cpu->second.min_interval;
        if (clock && s.timed > 1 && s.last_ticks > s.first_ticks)
            q.mean_ns = static_cast<double>(data.time_conversion->to_ns(s.last_ticks) -
                                            data.time_conversion->to_ns(s.first_ticks)) /
                        static_cast<double>(s.timed - 1);
        out.records += q.records;
        out.selected += q.selected;
        if (q.records != 0) midrs.insert(q.midr);
        out.streams.push_back(q);
    }
    for (const perf::AuxRange& range : data.aux) {
        StreamQuality* of = nullptr;
        for (StreamQuality& s : out.streams)
            if (s.tid != perf::nobody ? range.id.tid == s.tid : range.id.cpu == s.cpu) of = &s;
        const auto flag = [&](std::uint64_t bit, Flagged StreamQuality::*one, Flagged Quality::*all) {
            if ((range.flags & bit) == 0) return;
            if (all != nullptr) add(out.*all, range.bytes);
            if (of != nullptr) add(of->*one, range.bytes);
        };
        flag(perf::AuxRange::collision, &StreamQuality::collided, &Quality::collided);
        flag(perf::AuxRange::truncated, &StreamQuality::truncated, &Quality::truncated);
        flag(perf::AuxRange::partial, &StreamQuality::partial, &Quality::partial);
        flag(perf::AuxRange::overwrite, &StreamQuality::overwritten, nullptr);
    }
    const std::vector<std::uint64_t> intervals = perf::recorded_part(data.version).intervals;
    for (const perf::Attr* attr : capture.attrs()) {
        Sampling s;
        s.asked = attr->sample_period;
        s.interval = std::max(attr->sample_period & ~std::uint64_t{0xff}, min_interval);
        s.longest = s.interval;
        if (!intervals.empty()) {
            s.interval = *std::min_element(intervals.begin(), intervals.end());
            s.longest = *std::max_element(intervals.begin(), intervals.end());
        }
        s.timestamps = (attr->config & 1U) != 0;
        s.physical_addresses = (attr->config >> 1 & 1U) != 0;
        s.jitter = (attr->config >> 16 & 1U) != 0;
        s.filters = filters_of(*attr);
        out.sampling.push_back(std::move(s));
    }
    out.modelled = is_modelled(data);
    if (!out.modelled)
        for (const std::uint32_t midr : midrs)
            for (const Erratum& erratum : sampling_errata(midr)) out.errata.emplace_back(midr, erratum);
    out.lost_events = data.lost_records;
    out.container_losses = data.loss_count;
    out.container_lost_bytes = data.lost_bytes;
    out.unfinished = data.unfinished;
    out.without_thread = totals.without_thread;
    out.with_context = totals.with_context;
    out.without_mapping = totals.without_mapping;
    out.without_address = totals.without_address;
    out.sve_without_address = totals.sve_without_address;
    return out;
}

}  // namespace waymark::analysis
