#include "waymark/pft/recorded_unit.h"

#include <fmt/format.h>

#include <string>

namespace waymark::pft {

namespace {

Status apply(Registers& r, const flow::RegisterSetting& setting, const RecordedKind& kind) {
    const RegisterPlace* const place = register_called(setting.name);
    if (place == nullptr || !register_access(r, place->number).present) {
        std::vector<std::string_view> names;
        for (const RegisterPlace& p : register_places())
            if (register_access(r, p.number).present) names.push_back(p.name);
        return flow::unknown_register(setting, fmt::format("this {}", kind.name), names);
    }
    const RegisterAccess access = register_access(r, place->number);
    flow::SettableRegister it{place->name, r.get(place->number).value_or(0), access.writable ? access.mask : 0, 4,
                              kind.fields(r, place->number)};
    WM_ASSIGN_OR_RETURN(const std::uint64_t value, flow::value_after(setting, it));
    r.set(place->number, static_cast<std::uint32_t>(value));
    return Nothing{};
}

/// Assigns comparators to the options that need them, in order.
Status use_comparators(Registers& r, const flow::UnitOptions& options, const RecordedKind& kind) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (!options.view.empty() && !options.exclude.empty())
        return wrong(
            fmt::format("--view-range and --exclude-range: {} includes ranges or excludes them, not both", kind.one));
    const bool ranges = !options.view.empty() || !options.exclude.empty();
    if (ranges && (r.tecr1.ranges != 0 || r.tecr2.single != 0))
        return wrong(fmt::format("--view-range and --exclude-range need {}, which --registers programs already",
                                 r.tecr1.ranges != 0 ? Etmtecr1::name : Etmtecr2::name));
    unsigned next = 0;
    const auto pair = [&]() -> std::optional<unsigned> {
        while (next < r.ccr.address_comparator_pairs &&
               (r.acvr[2 * next].value != 0 || r.acvr[2 * next + 1].value != 0))
            ++next;
        if (next == r.ccr.address_comparator_pairs) return std::nullopt;
        return next++;
    };
    const auto too_many = [&] {
        return wrong(fmt::format(
            "--view-range, --exclude-range and --trigger-at need {} pairs of address comparators; "
            "this unit has {}{}",
            options.view.size() + options.exclude.size() + (options.trigger_at ? 1 : 0), r.ccr.address_comparator_pairs,
            options.registers.empty() ? "" : ", less those that --registers uses"));
    };
    for (const auto* const list : {&options.view, &options.exclude})
        for (const flow::AddressRange& range : *list) {
            const auto n = pair();
            if (!n) return too_many();
            r.acvr[2 * *n].value = static_cast<std::uint32_t>(range.first.value);
            r.acvr[2 * *n + 1].value = static_cast<std::uint32_t>(range.end.value);
            r.tecr1.exclude = list == &options.exclude;
            r.tecr1.ranges |= static_cast<std::uint8_t>(1U << *n);
        }
    if (!options.trigger_at) return Nothing{};
    if (!(r.trigger == Registers{}.trigger))
        return wrong("--trigger-at needs ETMTRIGGER, which --registers programs already");
    const auto n = pair();
    if (!n) return too_many();
    r.acvr[2 * *n].value = static_cast<std::uint32_t>(options.trigger_at->value);
    r.trigger = from_value<Etmtrigger>(2 * *n);  // single address comparator
    return Nothing{};
}

/// Adds the registers that explain() needs beside those in `out`: registers with their values at reset may also decide
/// whether the unit traces.
void add_decisive(const Registers& r, Macrocell kind, std::vector<RegisterValue>& out) {
    for (bool more = true; std::exchange(more, false);) {
        const protocol::UnitExplanation explanation = explain(
            r, {}, [&](std::string_view name) { return find_register(out, name) != nullptr; }, kind);
        for (const auto* const names : {&explanation.undecided, &explanation.undescribed})
            for (const std::string& name : *names) {
                const RegisterPlace* const place = register_called(name);
                if (place == nullptr || find_register(out, name) != nullptr) continue;
                out.push_back({place->name, r.get(place->number).value_or(0), place->number, 32});
                more = true;
            }
    }
}

}  // namespace

Status check_macrocell(const flow::UnitOptions& options, const RecordedKind& kind) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (options.context_id_bytes > 4 || options.context_id_bytes == 3)
        return wrong(
            fmt::format("--context-id {}: a Context ID has 1, 2 or 4 bytes; 0 means none", options.context_id_bytes));
    if (options.sync_bytes > 4095)
        return wrong(fmt::format("--sync {}: ETMSYNCFR holds at most 4095 bytes", options.sync_bytes));
    WM_RETURN_IF_ERROR(flow::check_fifo(options, 32));
    if (options.speculation_depth != 0)
        return wrong(fmt::format("--speculation: {} does not trace speculation", kind.one));
    const auto fits = [](Address a) { return a.value <= 0xffffffff; };
    for (const auto* const ranges : {&options.view, &options.exclude})
        for (const flow::AddressRange& range : *ranges)
            if (!fits(range.first) || !fits(range.end))
                return wrong(fmt::format("the range from {:#x} to {:#x}: addresses of {} have 32 bits",
                                         range.first.value, range.end.value, kind.one));
    if (options.trigger_at && !fits(*options.trigger_at))
        return wrong(
            fmt::format("--trigger-at {:#x}: addresses of {} have 32 bits", options.trigger_at->value, kind.one));
    return Nothing{};
}

Status program_by_options(Registers& registers, const flow::UnitOptions& options, const RecordedKind& kind) {
    if (!options.programmed()) return Nothing{};
    for (const flow::RegisterSetting& setting : options.registers) WM_RETURN_IF_ERROR(apply(registers, setting, kind));
    WM_RETURN_IF_ERROR(use_comparators(registers, options, kind));
    for (const std::string& objection : objections_to(registers))
        return Error{Errc::usage, fmt::format("the unit would behave unpredictably: {}", objection)};
    return Nothing{};
}

std::vector<RegisterValue> captured_registers(const Registers& registers, const Registers& untouched,
                                              std::vector<RegisterValue> least, const RecordedKind& kind) {
    for (const RegisterPlace& place : register_places()) {
        const std::uint32_t value = registers.get(place.number).value_or(0);
        const bool said = find_register(least, place.name) != nullptr;
        if (said || value == untouched.get(place.number) || !register_access(registers, place.number).writable)
            continue;
        least.push_back({place.name, value, place.number, 32});
    }
    add_decisive(registers, kind.macrocell, least);
    return least;
}

std::optional<flow::SelectedBlocks> selected_by(const Registers& r) {
    if (to_value(r.teevr) != to_value(Registers{}.teevr) || r.tecr1.start_stop || r.tecr2.single != 0)
        return std::nullopt;
    flow::SelectedBlocks out;
    for (unsigned n = 0; n < 8; ++n) {
        if ((r.tecr1.ranges >> n & 1U) == 0) continue;
        // Nothing but the address of an executed instruction counts.
        constexpr std::uint32_t size = 3U << 3;
        if ((to_value(r.actr[2 * n]) & ~(r.is_etmv3() ? size : 0U)) != 1) return std::nullopt;
        (r.tecr1.exclude ? out.exclude : out.include).push_back({{r.acvr[2 * n].value}, {r.acvr[2 * n + 1].value}});
    }
    // Without an include range, nothing is traced.
    if (r.tecr1.ranges == 0 && !r.tecr1.exclude) out.include.push_back({});
    return out;
}

}  // namespace waymark::pft
