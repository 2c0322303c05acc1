/// Messages (protocol/message.h) in words, and the lines of text that software writes in several messages.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "waymark/pipeline/session.h"
#include "waymark/protocol/message.h"

namespace waymark::pipeline {

/// Whether the message is a hardware event, which an STM sends as a write with a name.
[[nodiscard]] bool is_hardware_event(const protocol::Message& message);
/// The bytes of a write, the lowest first, if all are characters of text; otherwise empty.
[[nodiscard]] std::string text_of(const protocol::Message& message);
/// The sender of a message: `port 0`; for a unit with masters `64:3`, master and channel, or `?:?` if neither is known.
/// For other kinds of messages, the kind.
[[nodiscard]] std::string sender_of(const protocol::Message& message);
/// The variable at the accessed address, by the symbols of the source's program: `level`, `table+0x8`. Empty: the
/// message is not an access, or neither the address nor its variable is known.
[[nodiscard]] std::string variable_of(const protocol::Message& message, const Source& source);
/// A message in words. `variable`: variable_of, or empty.
[[nodiscard]] std::string words_of(const protocol::Message& message, std::string_view variable = {});

/// Joins writes to each port or channel up to the end of a line or message, an overflow or damage. A value with bytes
/// that are not text is shown alone. At most 4,096 lines are open, of 4,096 bytes each.
class MessageLines {
public:
    struct Line {
        protocol::Message first;  ///< the message that began it
        std::uint64_t number{};   ///< number of that message, in the order of `take`, from 1
        std::string text;
    };
    explicit MessageLines(std::function<void(const Line&)> put) : put_(std::move(put)) {}

    /// Returns true if the message became part of a line, which `put` receives when it is complete. If `wanted` is
    /// false, the message only ends the lines that it interrupts.
    bool take(const protocol::Message& message, bool wanted = true);
    void finish();

private:
    using Place = std::pair<std::uint32_t, std::uint32_t>;  // master and channel, or 0 and the port
    [[nodiscard]] static std::optional<Place> place_of(const protocol::Message& message);
    void add(const protocol::Message& message, const Place& place, const std::string& text);
    void end_line(const Place& place);

    std::function<void(const Line&)> put_;
    std::map<Place, Line> open_;
    std::uint64_t taken_ = 0;
};

}  // namespace waymark::pipeline
