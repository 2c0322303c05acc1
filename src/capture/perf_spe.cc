#include "waymark/capture/perf_spe.h"

#include <fmt/format.h>

#include <algorithm>

namespace waymark::capture::perf {

namespace {
Error bad_spe_info(std::string what) { return {Errc::bad_format, "AUXTRACE_INFO of Arm SPE: " + std::move(what)}; }
}  // namespace

Result<SpeInfo> spe_info(const AuxtraceInfo& info) {
    if (info.type != AuxtraceInfo::arm_spe)
        return Error{Errc::unsupported, fmt::format("no SPE samples: the trace is of unit type {}, not {}; waymark "
                                                    "info shows its contents",
                                                    info.type, AuxtraceInfo::arm_spe)};
    const auto& w = info.words;
    SpeInfo out;
    if (w.size() < 2) return bad_spe_info(fmt::format("{} words, expected 2 or more", w.size()));
    if (w.size() == 2) {
        out.pmu_type = static_cast<std::uint32_t>(w[0]);
        return out;
    }
    if (w[0] == 1) {
        out.form = SpeInfo::Form::simpleperf;
        out.pmu_type = static_cast<std::uint32_t>(w[1] >> 32);
        // Blocks of magic, cpu, MIDR, enabled, min interval; the stated number of CPUs may be larger than the number of
        // blocks.
        for (std::size_t at = 3; at + 5 <= w.size(); at += 5)
            out.cpus[static_cast<std::uint32_t>(w[at + 1])] = {
                static_cast<std::uint32_t>(w[at + 2]), w[at + 3] != 0 ? out.pmu_type : ~std::uint64_t{0}, w[at + 4], 0};
        return out;
    }
    out.form = SpeInfo::Form::version_2;
    const std::uint64_t header_words = w[1];
    if (header_words < 4 || header_words > w.size())
        return bad_spe_info(fmt::format("a header of {} words in {}, expected 4 or more", header_words, w.size()));
    out.pmu_type = static_cast<std::uint32_t>(w[2]);
    const std::uint64_t cpus = w[3];
    std::size_t at = static_cast<std::size_t>(header_words);
    for (std::uint64_t i = 0; i < cpus && at < w.size(); ++i) {
        if (w.size() - at < 3) return bad_spe_info(fmt::format("ends inside the block of CPU {} of {}", i, cpus));
        const std::uint64_t parameters = w[at + 2];
        if (parameters > w.size() - at - 3)
            return bad_spe_info(
                fmt::format("block {} has {} parameters, {} words are left", i, parameters, w.size() - at - 3));
        const auto parameter = [&](std::uint64_t n, std::uint64_t otherwise) {
            return n < parameters ? w[at + 3 + static_cast<std::size_t>(n)] : otherwise;
        };
        out.cpus[static_cast<std::uint32_t>(w[at + 1])] = {
            static_cast<std::uint32_t>(parameter(0, 0)), parameter(1, out.pmu_type), parameter(2, 0), parameter(3, 0)};
        at += 3 + static_cast<std::size_t>(parameters);
    }
    return out;
}

std::uint32_t spe_midr(const PerfData& data, const SpeInfo& info, std::uint32_t cpu) {
    if (const auto found = info.cpus.find(cpu); found != info.cpus.end()) return found->second.midr;
    if (info.cpus.empty()) return data.midr();
    const std::uint32_t first = info.cpus.begin()->second.midr;
    const bool agree =
        std::all_of(info.cpus.begin(), info.cpus.end(), [&](const auto& entry) { return entry.second.midr == first; });
    return cpu == nobody && agree ? first : 0;
}

}  // namespace waymark::capture::perf
