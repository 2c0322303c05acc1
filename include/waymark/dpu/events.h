/// Events for counters: event wires, and the sets of three that CEG selects (docs/spec/dpu.md, section 8). The
/// published text names the classes; the assignment of codes to sets belongs to layout WL-1.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/dpu/format.h"

namespace waymark::dpu {

enum class EventWire : std::uint8_t {
    none,
    cycles,
    vles,
    wait,
    stall_all,
    stall_prog,
    stall_data,
    stall_interlock,
    stall_cof,
    stall_wb,
    stall_bank,
    ic_hit,
    ic_miss,
    ic_thrash,
    ic_pfhit,
    dc_hit,
    dc_miss,
    dc_thrash,
    dc_pfhit,
    dc_wback,
    bus_busy,
    bus_wait,
    bus_idle,
    cont_xaxb,
    cont_pd,
    cont_ext,
    task_active,
    task_total,
    task_in,
    interrupts,
    exceptions,
    task_switches,
    twb_low,
    twb_high,
    trace_lost,
    edca0,
    edca1,
    edca2,
    edca3,
    edca4,
    edca5,
    mark,
    debugev,
    l2_hit,
    l2_miss,
    l2_stall,
    ext0,
    ext1,
};
inline constexpr unsigned event_wires = 48;

/// The name in section 8, such as `STALL_PROG`; `–` if there is none.
[[nodiscard]] std::string_view name(EventWire wire);
/// The wire with that name, ignoring case; nullopt if there is none.
[[nodiscard]] std::optional<EventWire> event_wire(std::string_view name);
/// Whether the event counts cycles while the wire is true; other events count occurrences.
[[nodiscard]] bool is_duration(EventWire wire);
/// Whether the unit generates this wire itself, regardless of its environment (13.1).
[[nodiscard]] constexpr bool is_own(EventWire wire) {
    return wire == EventWire::none || wire == EventWire::cycles ||
           (wire >= EventWire::task_active && wire <= EventWire::debugev);
}

/// CEG 0 to 20; higher codes are reserved and count nothing.
using EventSet = std::array<EventWire, counters_per_triad>;
inline constexpr unsigned event_sets = 21;
[[nodiscard]] const EventSet& event_set(unsigned ceg);
/// The purpose of the set, in a few words.
[[nodiscard]] std::string_view event_set_purpose(unsigned ceg);

}  // namespace waymark::dpu
