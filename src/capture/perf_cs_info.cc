/// Reads AUXTRACE_INFO of CoreSight, which says how the trace units were programmed (docs/spec/perf-cs-etm.md, section
/// 1.3).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "waymark/capture/perf_cs_etm.h"
#include "waymark/capture/perf_cs_etm_writer.h"

namespace waymark::capture::perf {

namespace {

Error bad_info(std::string what) { return {Errc::bad_format, "AUXTRACE_INFO of CoreSight: " + std::move(what)}; }

/// The unit's registers from words, the first of which is `words[0]`.
CsUnit unit_of(const CsEtmBlock& block, std::uint32_t cpu, std::span<const std::uint64_t> words) {
    CsUnit out;
    out.cpu = cpu;
    std::uint64_t idr = 0;
    std::optional<std::uint64_t> devarch;
    for (std::size_t i = 0; i < std::min(block.registers.size(), words.size()); ++i) {
        const std::string_view name = block.registers[i];
        const std::uint64_t value = words[i] & 0xffffffff;
        if (name == "TS_SOURCE") {
            out.ts_source = words[i];
            continue;
        }
        if (name == "TRCTRACEIDR" || name == "ETMTRACEIDR") {
            // Bit 31: the kernel assigns another ID. If the CPU number is too large for the formula, the ID overflows
            // into higher bits; its low bits would be the ID of another unit.
            out.trace_id = (value & 0x7fffff80) != 0 ? std::uint8_t{0} : static_cast<std::uint8_t>(value & 0x7f);
            continue;
        }
        if (name == "ETMIDR") idr = value;
        if (name == "TRCDEVARCH") devarch = value;
        out.registers.push_back({std::string(name), value});
    }
    constexpr unsigned ptm_architecture = 3, ete_architecture = 5;
    if (block.magic == etmv3_magic)
        out.kind = (idr >> 8 & 0xf) == ptm_architecture ? CsUnit::Kind::ptm : CsUnit::Kind::etmv3;
    else if (block.magic == etmv4_magic)
        out.kind = CsUnit::Kind::etmv4;
    else
        out.kind = !devarch || (*devarch >> 12 & 0xf) >= ete_architecture ? CsUnit::Kind::ete : CsUnit::Kind::etmv4;
    out.wrong_magic = block.magic == ete_magic && out.kind == CsUnit::Kind::etmv4;
    return out;
}

}  // namespace

std::string source_type(const CsUnit& unit) {
    const auto bits = [&](std::string_view name, unsigned from) {
        const Register* r = find_register(unit.registers, name);
        return static_cast<unsigned>(r == nullptr ? 0 : r->value >> from & 0xf);
    };
    switch (unit.kind) {
        case CsUnit::Kind::etmv3: return fmt::format("ETM3.{}", bits("ETMIDR", 4));
        case CsUnit::Kind::ptm: return fmt::format("PTM1.{}", bits("ETMIDR", 4));
        case CsUnit::Kind::etmv4: return fmt::format("ETM4.{}", bits("TRCIDR1", 4));
        case CsUnit::Kind::ete: return "ETE";
    }
    return {};
}

const CsUnit* CsInfo::unit(std::uint32_t cpu) const {
    const auto found = std::find_if(units.begin(), units.end(), [&](const CsUnit& u) { return u.cpu == cpu; });
    return found == units.end() ? nullptr : &*found;
}

Result<CsInfo> cs_info(const AuxtraceInfo& info) {
    if (info.type != AuxtraceInfo::cs_etm)
        return Error{Errc::unsupported, fmt::format("the trace is of unit type {}, expected {} (CoreSight)", info.type,
                                                    AuxtraceInfo::cs_etm)};
    const auto& w = info.words;
    if (w.size() < 3) return bad_info(fmt::format("{} words, expected 3 or more", w.size()));
    CsInfo out;
    out.version = w[0];
    out.pmu_type = static_cast<std::uint32_t>(w[1] >> 32);
    out.snapshot = w[2] != 0;
    const std::uint64_t count = w[1] & 0xffffffff;
    if (out.version > CsInfo::newest_version)
        out.problems.push_back(
            fmt::format("AUXTRACE_INFO has version {}, but Waymark knows only 0 to {}: it is read as version {}. This "
                        "may "
                        "be the reason if the decoded trace makes no sense.",
                        out.version, CsInfo::newest_version, CsInfo::newest_version));
    std::size_t at = 3;
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto left = w.size() - at;
        const auto ends = [&](std::uint64_t needs) {
            out.problems.push_back(fmt::format(
                "AUXTRACE_INFO ends inside the block of unit {} of {}: {} words are left, expected {}. The trace of "
                "this CPU and those after it cannot be decoded.",
                i + 1, count, left, needs));
        };
        if (left < 3) {
            ends(3);
            break;
        }
        const std::uint64_t magic = w[at];
        const auto all = cs_etm_blocks();
        const auto block = std::find_if(all.begin(), all.end(), [&](const CsEtmBlock& b) { return b.magic == magic; });
        const bool known = block != all.end();
        // Magic, CPU and registers. ETE has no version 0: such a block is read like one of ETMv4.
        const std::uint64_t fixed = magic == etmv3_magic ? 6 : 9;
        // Blocks of version 0 have no count.
        if (out.version == 0 && !known) {
            out.problems.push_back(
                fmt::format("AUXTRACE_INFO: block {} of {} begins with {:#x}, which is not a trace "
                            "unit. This block and the following ones are left out.",
                            i + 1, count, magic));
            break;
        }
        const std::uint64_t length = out.version == 0 ? fixed : w[at + 2] > w.size() ? w[at + 2] : 3 + w[at + 2];
        if (length > left) {
            ends(length);
            break;
        }
        const auto words = std::span(w).subspan(at, static_cast<std::size_t>(length));
        const auto cpu = static_cast<std::uint32_t>(w[at + 1]);
        if (!known)
            out.problems.push_back(
                fmt::format("AUXTRACE_INFO: the unit of CPU {} is of a kind that Waymark does not "
                            "know ({:#x}). Its trace is left out.",
                            cpu, magic));
        else if (out.unit(cpu) != nullptr)
            out.problems.push_back(fmt::format("AUXTRACE_INFO describes CPU {} twice; the first is used.", cpu));
        else
            out.units.push_back(unit_of(*block, cpu, words.subspan(out.version == 0 ? 2 : 3)));
        at += static_cast<std::size_t>(length);
    }
    return out;
}

CsHardwareId cs_hardware_id(std::uint64_t id) {
    CsHardwareId out;
    out.trace_id = static_cast<std::uint8_t>(id & 0xff);
    out.minor = static_cast<unsigned>(id >> 56 & 0xf);
    out.major = static_cast<unsigned>(id >> 60);
    if (out.minor >= 1) out.sink = static_cast<std::uint32_t>(id >> 8);
    return out;
}

}  // namespace waymark::capture::perf
