#include "waymark/dpu/events.h"

#include <algorithm>
#include <cctype>

namespace waymark::dpu {

namespace {

using enum EventWire;

constexpr std::array<std::string_view, event_wires> wire_names{
    "–",         "CYCLES",    "VLES",        "WAIT",       "STALL_ALL", "STALL_PROG", "STALL_DATA", "STALL_INTERLOCK",
    "STALL_COF", "STALL_WB",  "STALL_BANK",  "IC_HIT",     "IC_MISS",   "IC_THRASH",  "IC_PFHIT",   "DC_HIT",
    "DC_MISS",   "DC_THRASH", "DC_PFHIT",    "DC_WBACK",   "BUS_BUSY",  "BUS_WAIT",   "BUS_IDLE",   "CONT_XAXB",
    "CONT_PD",   "CONT_EXT",  "TASK_ACTIVE", "TASK_TOTAL", "TASK_IN",   "INT",        "EXC",        "TASKSW",
    "TWB_LOW",   "TWB_HIGH",  "TRACE_LOST",  "EDCA0",      "EDCA1",     "EDCA2",      "EDCA3",      "EDCA4",
    "EDCA5",     "MARK",      "DEBUGEV",     "L2_HIT",     "L2_MISS",   "L2_STALL",   "EXT0",       "EXT1"};
static_assert(wire_names[event_wires - 1] == "EXT1" && static_cast<unsigned>(ext1) == event_wires - 1);

struct Row {
    EventSet set;
    std::string_view purpose;
};
constexpr std::array<Row, event_sets> sets{{
    {{none, none, none}, "nothing"},
    {{cycles, vles, wait}, "utilisation"},
    {{cycles, stall_all, wait}, "stall and wait cycles"},
    {{stall_prog, stall_data, stall_interlock}, "causes of stalls: memory"},
    {{stall_cof, stall_wb, stall_bank}, "causes of stalls: pipeline and buffers"},
    {{ic_hit, ic_miss, ic_thrash}, "instruction cache"},
    {{ic_hit, ic_pfhit, ic_miss}, "instruction prefetch"},
    {{dc_hit, dc_miss, dc_thrash}, "data cache"},
    {{dc_hit, dc_pfhit, dc_miss}, "data prefetch"},
    {{dc_miss, dc_wback, stall_wb}, "write traffic"},
    {{bus_busy, bus_wait, bus_idle}, "master bus"},
    {{cont_xaxb, cont_pd, cont_ext}, "contention"},
    {{task_active, task_total, task_in}, "one task"},
    {{interrupts, exceptions, task_switches}, "system activity"},
    {{cycles, interrupts, wait}, "load"},
    {{twb_low, twb_high, trace_lost}, "cost of tracing itself"},
    {{edca0, edca1, edca2}, "watchpoints 0 to 2"},
    {{edca3, edca4, edca5}, "watchpoints 3 to 5"},
    {{mark, debugev, cycles}, "instrumented code"},
    {{l2_hit, l2_miss, l2_stall}, "second-level cache"},
    {{ext0, ext1, cycles}, "device-specific inputs"},
}};

}  // namespace

std::string_view name(EventWire wire) { return wire_names[static_cast<std::size_t>(wire)]; }

std::optional<EventWire> event_wire(std::string_view text) {
    const auto same = [&](std::string_view candidate) {
        return std::equal(text.begin(), text.end(), candidate.begin(), candidate.end(),
                          [](unsigned char a, unsigned char b) { return std::toupper(a) == std::toupper(b); });
    };
    const auto* const at = std::find_if(wire_names.begin() + 1, wire_names.end(), same);
    if (at == wire_names.end()) return std::nullopt;
    return static_cast<EventWire>(at - wire_names.begin());
}

bool is_duration(EventWire wire) {
    switch (wire) {
        case cycles:
        case wait:
        case stall_all:
        case stall_prog:
        case stall_data:
        case stall_interlock:
        case stall_cof:
        case stall_wb:
        case stall_bank:
        case bus_busy:
        case bus_wait:
        case bus_idle:
        case task_active:
        case task_total:
        case l2_stall: return true;
        default: return false;
    }
}

const EventSet& event_set(unsigned ceg) { return sets[ceg < event_sets ? ceg : 0].set; }
std::string_view event_set_purpose(unsigned ceg) { return ceg < event_sets ? sets[ceg].purpose : "reserved"; }

}  // namespace waymark::dpu
