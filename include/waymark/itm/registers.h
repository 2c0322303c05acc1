/// Registers of an Instrumentation Trace Macrocell (docs/spec/itm.md, 4).
#pragma once

#include <cstdint>
#include <string_view>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"

namespace waymark::itm {

/// ITM_TCR, the control register. Captures spell it without the underscore.
struct Itmtcr {
    static constexpr std::string_view name = "ITMTCR", title = "control";

    std::uint8_t unused_31_24{}, unused_15_12{}, unused_7_5{};
    std::uint8_t trace_id{}, global_timestamps{}, prescaler{};
    bool busy{}, asynchronous_clock{}, hardware_packets{}, syncs{}, local_timestamps{}, enable{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("reserved[31:24]", r.unused_31_24), bits<23>("busy", r.busy),
               bits<22, 16>("trace ID", r.trace_id), bits<15, 12>("reserved[15:12]", r.unused_15_12),
               bits<11, 10>("global timestamp frequency", r.global_timestamps),
               bits<9, 8>("local timestamp prescaler", r.prescaler), bits<7, 5>("reserved[7:5]", r.unused_7_5),
               bits<4>("asynchronous timestamp clock", r.asynchronous_clock),
               bits<3>("DWT packet enable", r.hardware_packets), bits<2>("synchronisation packet enable", r.syncs),
               bits<1>("local timestamp enable", r.local_timestamps), bits<0>("ITM enable", r.enable));
    }
    bool operator==(const Itmtcr&) const = default;
};

}  // namespace waymark::itm
