#include "waymark/record_spe/spe_options.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

namespace waymark::record {

namespace {

/// The unit of a version: bits without a meaning do not filter.
spe::Architecture unit_of(spe::Version version) {
    spe::Architecture arch = spe::Architecture::of(version);
    arch.own_events = 0;
    arch.sve = version > spe::Version::v1_0;
    return arch;
}

}  // namespace

std::uint64_t SpeOptions::config() const {
    return std::uint64_t{ts_enable} | std::uint64_t{pa_enable} << 1 | std::uint64_t{jitter} << 16 |
           std::uint64_t{branch_filter} << 32 | std::uint64_t{load_filter} << 33 | std::uint64_t{store_filter} << 34 |
           std::uint64_t{discard} << 35 | std::uint64_t{branch_filter_mask} << 36 |
           std::uint64_t{load_filter_mask} << 37 | std::uint64_t{store_filter_mask} << 38 |
           std::uint64_t{simd_filter} << 39 | std::uint64_t{simd_filter_mask} << 40 |
           std::uint64_t{float_filter} << 41 | std::uint64_t{float_filter_mask} << 42;
}

spe::Version SpeOptions::version() const {
    spe::Version least = spe::Version::v1_0;
    if (discard || inv_event_filter != 0) least = spe::Version::v1_2;
    if (inv_data_src_filter != 0 || extended_types()) least = spe::Version::v1_4;
    constexpr std::array all{spe::Version::v1_0, spe::Version::v1_1, spe::Version::v1_2, spe::Version::v1_3,
                             spe::Version::v1_4};
    for (const spe::Version version : all)
        if (version >= least && ((event_filter | inv_event_filter) & ~filterable_events(unit_of(version))) == 0)
            return version;
    return spe::Version::v1_4;
}

Status set_from_event(SpeOptions& options, std::string_view event) {
    const std::string_view all = event;
    const auto wrong = [&](std::string what) {
        return Error{Errc::usage,
                     fmt::format("{}: {}; expected such as arm_spe/load_filter=1,min_latency=30/", all, what)};
    };
    const auto slash = event.find('/');
    const std::string_view unit = event.substr(0, slash);
    if (unit != "arm_spe" && unit != "arm_spe_0") return wrong(fmt::format("{} is not arm_spe", unit));
    event = slash == event.npos ? std::string_view{} : event.substr(slash + 1);
    const auto end = event.find('/');
    if (slash != all.npos && end == event.npos) return wrong("a second / is missing");
    if (end != event.npos && event.substr(end + 1) != "" && event.substr(end + 1) != "u")
        return wrong(fmt::format("/{}: only u, code of the program itself, can be traced", event.substr(end + 1)));
    event = event.substr(0, end == event.npos ? 0 : end);
    while (!event.empty()) {
        const auto comma = event.find(',');
        const std::string_view term = event.substr(0, comma);
        event = comma == event.npos ? std::string_view{} : event.substr(comma + 1);
        const auto equals = term.find('=');
        const std::string_view name = term.substr(0, equals);
        std::uint64_t value = 1;
        if (equals != term.npos) {
            std::string_view digits = term.substr(equals + 1);
            const int base = digits.starts_with("0x") ? 16 : 10;
            if (base == 16) digits.remove_prefix(2);
            const auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
            if (error != std::errc{} || rest != digits.data() + digits.size() || digits.empty())
                return wrong(fmt::format("{} is not a number", term.substr(equals + 1)));
        }
        bool found = false, fits = true;
        std::string names;
        SpeOptions::for_each(options, [&](std::string_view each, auto& field, const char*) {
            names += (names.empty() ? "" : ", ") + std::string(each);
            if (each != name) return;
            found = true;
            using Field = std::remove_reference_t<decltype(field)>;
            fits = value <= std::numeric_limits<Field>::max();
            if (fits) field = static_cast<Field>(value);
        });
        if (name == "period" && value <= std::numeric_limits<std::uint32_t>::max()) {
            options.period = static_cast<std::uint32_t>(value);
            continue;
        }
        if (!found) return wrong(fmt::format("no term {}; the terms are {}, period", name, names));
        if (!fits) return wrong(fmt::format("{} = {} is too large", name, value));
    }
    return Nothing{};
}

Status check(const SpeOptions& options) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (options.period < 256)
        return wrong(fmt::format("period {}: an interval has at least 256 operations", options.period));
    if (options.min_latency > 4095) return wrong(fmt::format("min_latency {}: at most 4095", options.min_latency));
    const std::uint64_t filterable = filterable_events(unit_of(options.version()));
    for (const auto& [name, events] :
         {std::pair{"event_filter", options.event_filter}, {"inv_event_filter", options.inv_event_filter}})
        if ((events & ~filterable) != 0)
            return wrong(
                fmt::format("{} {:#x}: no version of SPE up to v1.4 filters by the events {:#x}; it can by {:#x}", name,
                            events, events & ~filterable, filterable));
    if ((options.event_filter & options.inv_event_filter) != 0)
        return wrong(fmt::format("event_filter and inv_event_filter both have {:#x}, which no operation can satisfy",
                                 options.event_filter & options.inv_event_filter));
    return Nothing{};
}

void SpeOptions::program(spe::Registers& r) const {
    r.pmsirr_el1.rnd = jitter;
    r.pmscr_el2.ts = ts_enable;
    r.pmscr_el2.pa = pa_enable;
    r.pmsfcr_el1.b = branch_filter;
    r.pmsfcr_el1.ld = load_filter;
    r.pmsfcr_el1.st = store_filter;
    r.pmsfcr_el1.ft = branch_filter || load_filter || store_filter;
    r.pmsfcr_el1.fe = event_filter != 0;
    r.pmsfcr_el1.fl = min_latency != 0;
    if (extended_types()) {
        r.pmsfcr_el1.ft = true;
        r.pmsfcr_el1.simd = simd_filter;
        r.pmsfcr_el1.fp = float_filter;
        r.pmsfcr_el1.b_m = branch_filter_mask;
        r.pmsfcr_el1.ld_m = load_filter_mask;
        r.pmsfcr_el1.st_m = store_filter_mask;
        r.pmsfcr_el1.simd_m = simd_filter_mask;
        r.pmsfcr_el1.fp_m = float_filter_mask;
    }
    r.pmsfcr_el1.fn_e = inv_event_filter != 0;
    r.set("PMSNEVFR_EL1", inv_event_filter);
    r.pmsfcr_el1.fds = inv_data_src_filter != 0;
    if (inv_data_src_filter != 0) r.set("PMSDSFR_EL1", ~inv_data_src_filter);
    constexpr std::uint8_t discard_mode = 0b10;
    if (discard) r.pmblimitr_el1.fm = discard_mode;
    r.set("PMSEVFR_EL1", event_filter);
    r.set("PMSLATFR_EL1", min_latency);
}

spe::ModelConfig SpeOptions::unit(spe::Version version, const spe::ProfilingBuffer& buffer) const {
    spe::ModelConfig config = spe::ModelConfig::linux_user(version, period, buffer);
    config.choices = spe::ModelChoices::neoverse();
    if (version > spe::Version::v1_0) config.state.arch.own_events = 0;
    config.state.arch.sve = version > spe::Version::v1_0;
    if (version >= spe::Version::v1_4) {
        // Events above 15 are recorded, which makes records longer.
        config.choices.event_bytes = 4;
        config.state.regs.pmsidr_el1.max_size = 7;
        config.state.arch.eft = config.state.regs.pmsidr_el1.eft = extended_types();
    }
    program(config.state.regs);
    return config;
}

}  // namespace waymark::record
