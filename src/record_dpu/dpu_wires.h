/// Indices of `Happened::count`, and addresses of the recorded system.
#pragma once

#include <cstdint>

#include "waymark/dpu/format.h"
#include "waymark/record_dpu/happened.h"

namespace waymark::record {

inline constexpr std::uint32_t vtb_base = 0x20000000, line_bytes = 32;
/// The operating system: entry k at +16k, its exit 8 bytes later. Linux maps no program there.
inline constexpr std::uint32_t os_base = dpu::default_dpu_base + dpu::flag_page_bytes, os_exit = 8;

namespace happened {

constexpr std::size_t index_of(dpu::EventWire wire) {
    std::size_t at = 0;
    while (at < truth_wires.size() && truth_wires[at] != wire) ++at;
    return at;
}
inline constexpr std::size_t cycles = index_of(dpu::EventWire::cycles), vles = index_of(dpu::EventWire::vles),
                             stall_all = index_of(dpu::EventWire::stall_all),
                             stall_prog = index_of(dpu::EventWire::stall_prog),
                             stall_data = index_of(dpu::EventWire::stall_data),
                             stall_cof = index_of(dpu::EventWire::stall_cof), ic_hit = index_of(dpu::EventWire::ic_hit),
                             ic_miss = index_of(dpu::EventWire::ic_miss),
                             ic_thrash = index_of(dpu::EventWire::ic_thrash), dc_hit = index_of(dpu::EventWire::dc_hit),
                             dc_miss = index_of(dpu::EventWire::dc_miss),
                             dc_thrash = index_of(dpu::EventWire::dc_thrash),
                             dc_wback = index_of(dpu::EventWire::dc_wback),
                             interrupts = index_of(dpu::EventWire::interrupts),
                             exceptions = index_of(dpu::EventWire::exceptions),
                             task_switches = index_of(dpu::EventWire::task_switches),
                             mark = index_of(dpu::EventWire::mark), edca0 = index_of(dpu::EventWire::edca0);

}  // namespace happened

}  // namespace waymark::record
