/// Converts packets to text and back, for all packets with a description: the name, then `field=value` for each field.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "waymark/core/result.h"
#include "waymark/core/wire.h"

namespace waymark::wire {

/// Only the fields: `target=0x17/1 cycles=12`. `config`: the configuration that the packet's description needs, if any.
template <class P, class... Config>
requires requires { P::info; }
[[nodiscard]] std::string fields_text(const P& packet, const Config&... config) {
    std::string out;
    Printer printer(out);
    P::fields(printer, packet, config...);
    return out;
}

/// Name and fields.
template <class P, class... Config>
requires requires { P::info; }
[[nodiscard]] std::string to_text(const P& packet, const Config&... config) {
    const std::string fields = fields_text(packet, config...);
    return std::string(P::info.name) + (fields.empty() ? "" : " ") + fields;
}

/// The inverse of to_text, for the packets of a list; `what`: the word for such a packet. `bad_format`: unknown name,
/// or a field is missing, in the wrong place or has an invalid value; the message names it.
template <class List, class Any, class FieldScanner = Scanner, class... Config>
[[nodiscard]] Result<Any> packet_from_text(std::string_view text, std::string_view what, const Config&... config) {
    const std::string_view name = text.substr(0, text.find(' '));
    std::optional<Any> out;
    std::string wrong;
    List::for_each([&]<class P>() {
        if (P::info.name != name) return;
        P packet{};
        FieldScanner scanner(text.substr(name.size()));
        P::fields(scanner, packet, config...);
        wrong = scanner.wrong();
        out = packet;
    });
    if (!out) return Error{Errc::bad_format, "no " + std::string(what) + " is called '" + std::string(name) + "'"};
    if (!wrong.empty())
        return Error{Errc::bad_format,
                     std::string(name) + ": cannot read '" + wrong + "' in '" + std::string(text) + "'"};
    return *out;
}

}  // namespace waymark::wire
