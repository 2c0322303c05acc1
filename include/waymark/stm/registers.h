/// Registers of a System Trace Macrocell (docs/spec/stm.md, 5).
#pragma once

#include <cstdint>
#include <string_view>

#include "waymark/core/registers.h"
#include "waymark/core/wire.h"

namespace waymark::stm {

struct Stmtcsr {
    static constexpr std::string_view name = "STMTCSR", title = "control";

    std::uint8_t unused_31_24{}, trace_id{}, unused_4{};
    std::uint16_t unused_15_6{};
    bool busy{}, compression{}, hardware_events{}, syncs{}, timestamps{}, enable{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 24>("reserved[31:24]", r.unused_31_24), bits<23>("busy", r.busy),
               bits<22, 16>("trace ID", r.trace_id), bits<15, 6>("reserved[15:6]", r.unused_15_6),
               bits<5>("leading zeros left out", r.compression), bits<4>("reserved[4]", r.unused_4),
               bits<3>("hardware event enable", r.hardware_events), bits<2>("synchronisation enable", r.syncs),
               bits<1>("timestamp enable", r.timestamps), bits<0>("STM enable", r.enable));
    }
    bool operator==(const Stmtcsr&) const = default;
};

struct Stmhemastr {
    static constexpr std::string_view name = "STMHEMASTR", title = "master of hardware events";

    std::uint16_t unused_31_16{}, master{};

    static void fields(auto& w, auto& r) {
        using wire::bits;
        w.word(bits<31, 16>("reserved[31:16]", r.unused_31_16), bits<15, 0>("master", r.master));
    }
    bool operator==(const Stmhemastr&) const = default;
};

}  // namespace waymark::stm
