/// Private to this layer: the meaning of packets, as text.
#pragma once

#include <string_view>
#include <type_traits>

#include "waymark/stm/text.h"

namespace waymark::stm {

WM_INLINE void explain_place(const SourceState& state, TextCursor& out) {
    const auto number = [&](const std::optional<std::uint32_t>& n) __attribute__((always_inline)) {
        if (n)
            out.decimal(*n);
        else
            out += '?';
    };
    out += "master ";
    number(state.master());
    out += " channel ";
    number(state.channel());
}

WM_INLINE void explain_time(const SourceState& state, TextCursor& out) {
    if (!state.time()) {
        out += "no VERSION says how to read the timestamp";
        return;
    }
    out += "at ";
    if (!state.exact()) out += "least ";
    out.decimal(*state.time());
}

WM_INLINE void explain_version(unsigned version, TextCursor& out) {
    switch (version) {
        case 1: out += "STPv1: timestamps are not read"; break;
        case 2: out += "timestamps are differences: not read"; break;
        case 3: out += "timestamps in binary"; break;
        case 4: out += "timestamps in Gray code"; break;
        default: break;
    }
}

template <class P>
WM_INLINE void Explainer::explain(const P& p, TextCursor& out) {
    state_.see(p);
    if constexpr (std::is_same_v<P, VersionPacket>) {
        explain_version(p.version, out);
    } else if constexpr (std::is_same_v<P, MasterError>) {
        explain_place(state_, out);
        out += ": writes of this master were lost";
    } else if constexpr (std::is_same_v<P, GlobalError>) {
        out += "writes of any master were lost";
    } else if constexpr (std::is_same_v<P, Null> || std::is_same_v<P, Async> || std::is_same_v<P, Master8> ||
                         std::is_same_v<P, Master16>) {
    } else if constexpr (std::is_same_v<P, Channel8> || std::is_same_v<P, Channel16>) {
        explain_place(state_, out);
    } else if constexpr (std::is_same_v<P, Frequency> || std::is_same_v<P, Frequency40>) {
        out += "timestamps count at ";
        out.decimal(p.value);
        out += " Hz";
    } else if constexpr (std::is_same_v<P, NullTimed> || std::is_same_v<P, FrequencyTimed> ||
                         std::is_same_v<P, Frequency40Timed>) {
        explain_time(state_, out);
    } else {
        explain_place(state_, out);
        if constexpr (requires { p.time; }) {
            out += ", ";
            explain_time(state_, out);
        }
    }
}

}  // namespace waymark::stm
