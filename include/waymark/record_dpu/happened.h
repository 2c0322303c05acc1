/// Events that a recorded program caused, counted beside the unit that watches it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "waymark/dpu/events.h"

namespace waymark::record {

/// The counted event wires.
inline constexpr std::array truth_wires{
    dpu::EventWire::cycles,     dpu::EventWire::vles,       dpu::EventWire::stall_all,  dpu::EventWire::stall_prog,
    dpu::EventWire::stall_data, dpu::EventWire::stall_cof,  dpu::EventWire::ic_hit,     dpu::EventWire::ic_miss,
    dpu::EventWire::ic_thrash,  dpu::EventWire::dc_hit,     dpu::EventWire::dc_miss,    dpu::EventWire::dc_thrash,
    dpu::EventWire::dc_wback,   dpu::EventWire::interrupts, dpu::EventWire::exceptions, dpu::EventWire::task_switches,
    dpu::EventWire::mark,       dpu::EventWire::edca0,      dpu::EventWire::edca1,      dpu::EventWire::edca2,
    dpu::EventWire::edca3,      dpu::EventWire::edca4,      dpu::EventWire::edca5,
};
/// Number of events, in the order of `truth_wires`.
struct Happened {
    std::array<std::uint64_t, truth_wires.size()> count{};
    Happened& operator+=(const Happened& other) {
        for (std::size_t i = 0; i < count.size(); ++i) count[i] += other.count[i];
        return *this;
    }
    friend Happened operator-(Happened a, const Happened& b) {
        for (std::size_t i = 0; i < a.count.size(); ++i) a.count[i] -= b.count[i];
        return a;
    }
    bool operator==(const Happened&) const = default;
};

}  // namespace waymark::record
