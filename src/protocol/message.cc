#include "waymark/protocol/message.h"

#include <array>

namespace waymark::protocol {

std::string_view name(MessageKind kind) {
    constexpr std::array<std::string_view, message_kinds> names{
        "text",     "sample", "exception", "access",  "counters",  "time",  "overflow",
        "reserved", "damage", "flag",      "trigger", "frequency", "record"};
    return names[static_cast<std::size_t>(kind)];
}

std::string_view name(Message::Change change) {
    constexpr std::array<std::string_view, 4> names{"", "entered", "left", "returned to"};
    return names[static_cast<std::size_t>(change)];
}

std::string_view name(Message::Direction direction) {
    constexpr std::array<std::string_view, 3> names{"", "read", "write"};
    return names[static_cast<std::size_t>(direction)];
}

std::array<std::uint64_t, 14> contents(const Message& m) {
    // Absent fields must differ from 0.
    const auto number = [](const auto& field) { return field ? std::uint64_t{*field} + 1 : 0; };
    return {static_cast<std::uint64_t>(m.kind),
            number(m.cycles),
            number(m.timestamp),
            number(m.port),
            number(m.master),
            number(m.channel),
            number(m.value),
            std::uint64_t{m.value_bytes} << 32 | std::uint64_t{m.address_bits},
            number(m.pc),
            number(m.address),
            number(m.comparator),
            number(m.number),
            static_cast<std::uint64_t>(m.change),
            static_cast<std::uint64_t>(m.direction)};
}

const MessageSource* message_source(const Configuration* configuration) {
    return dynamic_cast<const MessageSource*>(configuration);
}

}  // namespace waymark::protocol
