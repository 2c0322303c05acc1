#include "profiler_options.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <string_view>

namespace waymark::record {

namespace perf = capture::perf;

std::vector<perf::Attr> attributes(const ProfilerOptions& options) {
    perf::Attr spe;
    spe.type = arm_spe_pmu;
    spe.config = options.spe.config();
    spe.config1 = options.spe.event_filter;
    spe.config2 = options.spe.min_latency;
    spe.config3 = options.spe.inv_event_filter;
    spe.config4 = options.spe.inv_data_src_filter;
    spe.sample_period = options.spe.period & ~0xffU;
    spe.ids = {1};
    spe.name = options.system ? "arm_spe_0//" : "arm_spe_0//u";
    like_tracking_event(spe);
    constexpr std::uint64_t exclude_kernel = 1 << 5;
    if (options.system) spe.flags &= ~exclude_kernel;
    return {spe, tracking_event({2})};
}

perf::AuxtraceInfo auxtrace_info(const ProfilerOptions& options) {
    perf::AuxtraceInfo info{.type = perf::AuxtraceInfo::arm_spe};
    constexpr std::uint64_t per_cpu = 1, min_interval = 256;
    if (options.info_version == 1) {
        info.words = {arm_spe_pmu, per_cpu};
        return info;
    }
    info.words = {2, 4, arm_spe_pmu, options.machine.cpus};
    constexpr std::uint64_t magic = 0x1010101010101010;
    for (std::uint32_t cpu = 0; cpu < options.machine.cpus; ++cpu)
        info.words.insert(info.words.end(), {magic, cpu, 3, options.machine.midr, arm_spe_pmu, min_interval});
    return info;
}

Status check(const ProfilerOptions& options) {
    WM_RETURN_IF_ERROR(check(options.spe));
    WM_RETURN_IF_ERROR(check(options.machine));
    if (options.info_version != 1 && options.info_version != 2)
        return Error{Errc::usage, fmt::format("--info-version {}: AUXTRACE_INFO of Arm SPE has versions 1 and 2",
                                              options.info_version)};
    constexpr std::uint64_t least = 8192, most = 1U << 30;
    if (options.aux_bytes < least || options.aux_bytes > most || (options.aux_bytes & (page_bytes - 1)) != 0)
        return Error{Errc::usage, fmt::format("a buffer of {} bytes: whole pages, from {} to {} bytes",
                                              options.aux_bytes, least, most)};
    return Nothing{};
}

std::string to_text(const Profiled& p, const ProfilerOptions& options, bool complete) {
    std::string text = "# What really executed, and what became of the samples.\n";
    const auto line = [&](std::string_view name, const auto& value) { text += fmt::format("{} {}\n", name, value); };
    line("complete", complete ? "yes" : "no");
    line("period", options.spe.period & ~0xffU);
    line("unit", "modelled");
    line("threads", p.threads);
    line("cpus", p.cpus);
    line("operations", p.instructions);
    constexpr std::array<const char*, 5> classes{"other", "loads", "stores", "load-atomics", "branches"};
    for (std::size_t i = 0; i < classes.size(); ++i) line(std::string("operations.") + classes[i], p.classes[i]);
    line("branches.conditional-taken", p.taken);
    line("branches.conditional-not-taken", p.not_taken);
    line("not-completed", p.not_completed);
    line("barriers", p.barriers);
    line("modelled.mispredicted", p.mispredicted);
    line("modelled.cycles", p.cycles);
    line("samples.chosen", p.chosen);
    for (std::size_t i = 0; i < spe::fate_count; ++i)
        line(fmt::format("samples.{}", name(static_cast<spe::Fate>(i))), p.fates[i]);
    line("trace-bytes", p.trace_bytes);
    if (!options.system) return text;
    for (std::size_t el = 0; el < p.levels.size(); ++el) line(fmt::format("operations.el{}", el), p.levels[el]);
    line("operations.outside", p.outside);
    line("buffer-interrupts", p.interrupts);
    line("registers.written", p.registers_written);
    line("registers.refused", p.registers_refused);
    line("registers.unread", p.registers_unread);
    return text;
}

}  // namespace waymark::record
