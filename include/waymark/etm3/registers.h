/// Registers of an ETMv3 (docs/spec/etmv3.md, 1 and 13). Most are the same as in Program Flow Trace, which took them
/// over (pft/registers.h); the types here are those that have other fields.
#pragma once

#include <cstdint>
#include <string_view>
#include <type_traits>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"
#include "waymark/pft/access.h"
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

/// ETMACTR1 to 16, the address comparator access type registers. Registers 0x20 to 0x2F.
struct Etm3actr {
    static constexpr std::string_view name = "ETMACTR", title = "address comparator access type";
    static constexpr unsigned number = 0x20, count = 16;

    std::uint16_t unused_31_16{};
    std::uint8_t context_id{}, data_value{}, size{}, access{};
    bool vmid{}, hyp{}, ns_high{}, secure_high{}, ns_low{}, secure_low{}, exact{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("reserved[31:16]", r.unused_31_16), bits<15>("VMID comparator", r.vmid),
               bits<14>("Hyp mode control", r.hyp), bits<13>("Non-secure control[1]", r.ns_high),
               bits<12>("Secure control[1]", r.secure_high), bits<11>("Non-secure control[0]", r.ns_low),
               bits<10>("Secure control[0]", r.secure_low), bits<9, 8>("Context ID comparator", r.context_id),
               bits<7>("exact match", r.exact), bits<6, 5>("data value comparison", r.data_value),
               bits<4, 3>("access size", r.size), bits<2, 0>("access type", r.access));
    }
    bool operator==(const Etm3actr&) const = default;
};

using pft::Etmccer;
using pft::Etmtraceidr;
using pft::Registers;

/// The registers of a captured Cortex-A7's ETMv3.5 that traces everything. Its ETMCCR is that of a Cortex-A8.
[[nodiscard]] inline Registers tracing_registers() {
    Registers r;
    r.idr = from_value<pft::Etmidr>(0x410cf250);
    r.ccer = from_value<Etmccer>(0x344008f2);
    r.ccr = from_value<pft::Etmccr>(0x8d294024);
    for (auto& access : r.actr) access = from_value<pft::Etmactr>(9);  // instruction execute, halfword
    return r;
}

/// Calls `f(register, place)` for each register that an ETMv3 has, in the form it has there.
void for_each_place(const Registers& registers, auto&& f) {
    pft::for_each_place(registers, [&]<class Register>(const Register& one, const pft::RegisterPlace& place) {
        if constexpr (std::is_same_v<Register, pft::Etmcr>)
            f(from_value<Etm3cr>(to_value(one)), place);
        else if constexpr (std::is_same_v<Register, pft::Etmidr>)
            f(from_value<Etm3idr>(to_value(one)), place);
        else if constexpr (std::is_same_v<Register, pft::Etmactr>)
            f(from_value<Etm3actr>(to_value(one)), place);
        else if constexpr (!std::is_same_v<Register, pft::Etmauxcr>)
            f(one, place);
    });
}

}  // namespace waymark::etm3
