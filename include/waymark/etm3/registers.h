/// Registers of an ETMv3 that decide how its bytes are read (docs/spec/etmv3.md, 1). ETMCCER and ETMTRACEIDR are the
/// same as in Program Flow Trace, which took them over.
#pragma once

#include <cstdint>
#include <string_view>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"
#include "waymark/pft/registers.h"

namespace waymark::etm3 {

/// ETMCR, the main control register. Register 0x00.
struct Etm3cr {
    static constexpr std::string_view name = "ETMCR", title = "main control";
    static constexpr unsigned number = 0x00, count = 1;

    std::uint8_t unused_31{}, unused_24_22{}, unused_19_18{}, port_mode{}, port_size{}, processor_select{};
    std::uint8_t context_id_size{};
    bool vmid_trace{}, unused_29{}, timestamps{}, port_size_3{}, data_only{}, half_rate{}, cycle_accurate{};
    bool port_enabled{}, programming{}, debug_request{}, branch_output{}, stall{}, data_address{}, data_value{};
    bool coprocessor{}, power_down{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("reserved[31]", r.unused_31), bits<30>("VMID trace enable", r.vmid_trace),
               bits<29>("reserved[29]", r.unused_29), bits<28>("timestamp enable", r.timestamps),
               bits<27, 25>("processor select", r.processor_select), bits<24, 22>("reserved[24:22]", r.unused_24_22),
               bits<21>("port size[3]", r.port_size_3), bits<20>("data-only mode", r.data_only),
               bits<19, 18>("reserved[19:18]", r.unused_19_18), bits<17, 16>("port mode", r.port_mode),
               bits<15, 14>("ContextIDSize", r.context_id_size), bits<13>("half-rate clocking", r.half_rate),
               bits<12>("cycle-accurate", r.cycle_accurate), bits<11>("port enabled", r.port_enabled),
               bits<10>("Programming bit", r.programming), bits<9>("debug request control", r.debug_request),
               bits<8>("branch output", r.branch_output), bits<7>("stall processor", r.stall),
               bits<6, 4>("port size[2:0]", r.port_size), bits<3>("data address tracing", r.data_address),
               bits<2>("data value tracing", r.data_value), bits<1>("coprocessor transfers", r.coprocessor),
               bits<0>("power down", r.power_down));
    }
    bool operator==(const Etm3cr&) const = default;
};

/// ETMIDR, the identification register. Register 0x79.
struct Etm3idr {
    static constexpr std::string_view name = "ETMIDR", title = "identification";
    static constexpr unsigned number = 0x79, count = 1;

    std::uint8_t implementer{}, unused_23_21{}, unused_17_12{}, major{}, minor{}, revision{};
    bool alternative_branches{}, security{}, thumb_32_as_one{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("implementer", r.implementer), bits<23, 21>("reserved[23:21]", r.unused_23_21),
               bits<20>("alternative branch encoding", r.alternative_branches),
               bits<19>("Security Extensions", r.security),
               bits<18>("32-bit Thumb traced as one instruction", r.thumb_32_as_one),
               bits<17, 12>("reserved[17:12]", r.unused_17_12), bits<11, 8>("major version", r.major),
               bits<7, 4>("minor version", r.minor), bits<3, 0>("revision", r.revision));
    }
    bool operator==(const Etm3idr&) const = default;
};

using pft::Etmccer;
using pft::Etmtraceidr;

}  // namespace waymark::etm3
