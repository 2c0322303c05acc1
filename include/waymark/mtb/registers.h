/// Registers of a Micro Trace Buffer (docs/spec/mtb.md, 2), and the core's register with the address of its vectors.
#pragma once

#include <cstdint>
#include <string_view>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"

namespace waymark::mtb {

struct MtbPosition {
    static constexpr std::string_view name = "MTB_POSITION", title = "position";
    std::uint32_t pointer{};  ///< in packets
    bool wrap{};
    std::uint8_t unused_1_0{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 3>("pointer", r.pointer), bits<2>("wrapped", r.wrap),
               bits<1, 0>("reserved[1:0]", r.unused_1_0));
    }
    bool operator==(const MtbPosition&) const = default;
};

struct MtbMaster {
    static constexpr std::string_view name = "MTB_MASTER", title = "control";
    bool enable{}, non_secure{};
    std::uint32_t unused_29_10{};
    bool halt_request{}, ram_privileged{}, registers_privileged{}, stop_input{}, start_input{};
    std::uint8_t mask{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31>("enable", r.enable), bits<30>("Non-secure trace", r.non_secure),
               bits<29, 10>("reserved[29:10]", r.unused_29_10), bits<9>("halt request", r.halt_request),
               bits<8>("RAM privileged", r.ram_privileged), bits<7>("registers privileged", r.registers_privileged),
               bits<6>("stop input", r.stop_input), bits<5>("start input", r.start_input), bits<4, 0>("mask", r.mask));
    }
    bool operator==(const MtbMaster&) const = default;
};

struct MtbFlow {
    static constexpr std::string_view name = "MTB_FLOW", title = "watermark";
    std::uint32_t watermark{};  ///< in packets
    bool unused_2{}, auto_halt{}, auto_stop{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 3>("watermark", r.watermark), bits<2>("reserved[2]", r.unused_2),
               bits<1>("halts at the watermark", r.auto_halt), bits<0>("stops at the watermark", r.auto_stop));
    }
    bool operator==(const MtbFlow&) const = default;
};

struct MtbBase {
    static constexpr std::string_view name = "MTB_BASE", title = "base address";
    std::uint32_t address{};

    static void fields(auto& w, auto& r) { w.word(wire::bits<31, 0>("address of the memory", r.address)); }
    bool operator==(const MtbBase&) const = default;
};

/// VTOR, the vector table offset register of the core.
struct Vtor {
    static constexpr std::string_view name = "VTOR", title = "vector table";
    std::uint32_t address{};

    static void fields(auto& w, auto& r) { w.word(wire::bits<31, 0>("address of the vector table", r.address)); }
    bool operator==(const Vtor&) const = default;
};

}  // namespace waymark::mtb
