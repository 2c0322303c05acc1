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

const MessageSource* message_source(const Configuration* configuration) {
    return dynamic_cast<const MessageSource*>(configuration);
}

}  // namespace waymark::protocol
