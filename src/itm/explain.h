/// Private to this layer: the meaning of packets, as text.
#pragma once

#include <array>
#include <string_view>
#include <type_traits>

#include "waymark/itm/text.h"

namespace waymark::itm {

WM_INLINE void explain_hardware(const HardwareSource& p, TextCursor& out) {
    if (is_reserved(p)) {
        out += "reserved";
        return;
    }
    const unsigned bytes = payload_bytes(p.size), comparator = p.discriminator >> 1 & 3U;
    switch (p.discriminator) {
        case 0: {
            constexpr std::array<std::string_view, 6> names{"CPI", "EXC", "SLEEP", "LSU", "FOLD", "CYC"};
            std::string_view before = "wrapped: ";
            for (unsigned bit = 0; bit < names.size(); ++bit) {
                if ((p.data >> bit & 1U) == 0) continue;
                (out += before) += names[bit];
                before = ", ";
            }
            return;
        }
        case 1: {
            constexpr std::array<std::string_view, 4> what{"", " entered", " left", " returned to"};
            const unsigned number = p.data & 0x1ffU;
            out += number == 0 ? std::string_view("thread") : std::string_view("exception ");
            if (number != 0) out.decimal(number);
            if (number >= 16) {
                out += " (IRQ ";
                out.decimal(number - 16);
                out += ')';
            }
            out += what[p.data >> 12 & 3U];
            return;
        }
        case 2:
            if (bytes == 1) {
                out += p.data == 0 ? std::string_view("sleeping") : std::string_view("sampling is not permitted");
            } else {
                out += "PC ";
                out.hexadecimal(p.data, 8);
            }
            return;
        case 3:
            out += "PMU counters overflowed: ";
            out.hexadecimal(p.data, 2);
            return;
        default: break;
    }
    out += "comparator ";
    out.decimal(comparator);
    if (p.discriminator >= 16) {
        out += (p.discriminator & 1U) != 0 ? std::string_view(": wrote ") : std::string_view(": read ");
        out.hexadecimal(p.data, 2 * bytes);
    } else if ((p.discriminator & 1U) != 0) {
        out += ": address …";
        out.hexadecimal_digits(p.data, 4);
    } else if (bytes == 1) {
        out += ": match";
    } else {
        out += ": PC ";
        out.hexadecimal(p.data, 8);
    }
}

WM_INLINE void explain_local_time(const SourceState& state, std::string_view relation, TextCursor& out) {
    out += "at ";
    if (!state.exact()) out += "least ";
    out.decimal(state.local());
    out += " cycles";
    out += relation;
}

template <class P>
WM_INLINE void Explainer::explain(const P& p, TextCursor& out) {
    state_.see(p);
    if constexpr (std::is_same_v<P, Stimulus>) {
        const auto port = state_.port(p);
        out += "port ";
        out.decimal(port.value_or(p.port));
        if (!port) out += " of an unknown page";
    } else if constexpr (std::is_same_v<P, HardwareSource>) {
        explain_hardware(p, out);
    } else if constexpr (std::is_same_v<P, ShortTimestamp>) {
        explain_local_time(state_, {}, out);
    } else if constexpr (std::is_same_v<P, LocalTimestamp>) {
        constexpr std::array<std::string_view, 4> relations{"", ", sent late", ", packets sent late",
                                                            ", both sent late"};
        explain_local_time(state_, relations[static_cast<unsigned>(p.relation) & 3U], out);
    } else if constexpr (std::is_same_v<P, GlobalTimestamp1> || std::is_same_v<P, GlobalTimestamp2>) {
        const auto time = state_.global();
        out += "global time ";
        if (time)
            out.decimal(*time);
        else
            out += "not known yet";
    } else if constexpr (std::is_same_v<P, Extension>) {
        if (p.more || p.hardware) {
            out += "reserved";
        } else {
            out += "page ";
            out.decimal(p.low);
        }
    } else if constexpr (std::is_same_v<P, Overflow>) {
        out += "packets were lost before it";
    }
}

}  // namespace waymark::itm
