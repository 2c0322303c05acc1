/// Messages of units that do not trace program flow: words of software, samples of the program counter, exceptions,
/// accesses to watched addresses, counters. The same for every protocol with such messages; see MessageSource.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "waymark/core/packet_parser.h"
#include "waymark/core/types.h"
#include "waymark/protocol/packets.h"
#include "waymark/protocol/protocol.h"

namespace waymark::protocol {

/// The subject of a message.
enum class MessageKind : std::uint8_t {
    text,       ///< software wrote `value` to `port`, or to `channel` as `master`
    sample,     ///< of the program counter: `pc`; absent: the core slept or did not permit it (`name`)
    exception,  ///< `number` and `change`
    access,     ///< to a watched address: `pc`, `address` and `value`, as far as the unit sent them
    counters,   ///< the counters in `name` wrapped; `value`: their bits
    time,       ///< of a clock that several units share: `value`
    overflow,   ///< the unit lost trace here
    reserved,   ///< a packet that the protocol reserves: `number`, `value`
    damage,     ///< bytes that are no packet
    flag,       ///< the writes to a channel up to here are one message
    trigger,    ///< `value`
    frequency,  ///< at which timestamps count, in Hz: `value`
    record,     ///< contents of several writes to a channel, by the layout that software uses: `record`
};
inline constexpr unsigned message_kinds = 13;
[[nodiscard]] std::string_view name(MessageKind kind);

/// Contents of writes to a channel, up to the end of a message, by the layout that software uses.
struct Record {
    std::string layout{}, type{};  ///< `sys-t`, `STRING:GENERIC`
    std::string text{};            ///< text of the message, UTF-8
    std::string severity{}, client{}, guid{}, origin{}, location{};
    std::optional<std::uint32_t> unit{};
    std::optional<std::uint64_t> time{};  ///< by a clock of the software
    std::uint64_t bytes{};                ///< of the message
    std::optional<bool> checksum{};       ///< it is right
    std::string problem{};                ///< why the record, or a part, could not be read; empty: all was read
    friend bool operator==(const Record&, const Record&) = default;
};

/// One message. Fields that the packet does not have are absent or 0.
struct Message {
    enum class Change : std::uint8_t { none, entered, left, returned };
    enum class Direction : std::uint8_t { unknown, read, write };

    MessageKind kind{};
    Extent at{};  ///< from its first packet to the end of its last, in the stream
    /// The time by the unit's own timestamps, in cycles from the first one on; absent: no timestamp follows the
    /// message.
    std::optional<std::uint64_t> cycles{};
    /// The time by a clock that always counts, whether the unit traces or not, in ticks of that clock.
    std::optional<std::uint64_t> timestamp{};
    /// Whether timestamps were lost before it, so that `cycles` and `timestamp` are lower bounds.
    bool at_least{};
    /// Whether the unit sent the timestamp, or the message, later than it should.
    bool timestamp_late{}, message_late{};
    /// Whether the stream itself showed where packets begin. Otherwise that is an assumption.
    bool confirmed{};

    std::optional<std::uint32_t> port{}, master{}, channel{};
    /// Whether it ends the writes of one message to its channel.
    bool marked{};
    std::optional<std::uint64_t> value{}, pc{}, address{};
    std::uint8_t value_bytes{}, address_bits{};  ///< of `value`, 0 if it has four bits; of `address`, its low bits
    std::optional<std::uint32_t> comparator{}, number{};
    Change change{};
    Direction direction{};
    std::shared_ptr<const Record> record{};
    std::string name{};  ///< name of an exception or of counters; of other kinds, a phrase or empty

    friend bool operator==(const Message&, const Message&) = default;
};
/// Contents and time of a message as numbers, without its place and certainty: for comparisons of messages of one
/// stream. Absent fields are 0.
[[nodiscard]] std::array<std::uint64_t, 14> contents(const Message& message);
[[nodiscard]] std::string_view name(Message::Change change);
[[nodiscard]] std::string_view name(Message::Direction direction);

class MessageListener {
public:
    virtual ~MessageListener() = default;
    /// Called in the order of the stream.
    virtual void message(const Message& message) = 0;
};

/// Also implemented by a Reader whose messages wait until their time is known.
class HeldMessages {
public:
    virtual ~HeldMessages() = default;
    /// Delivers the waiting messages without a time, because no bytes may come for a long time.
    virtual void deliver_held() = 0;
};

/// Also implemented by the Configuration of a protocol with messages.
class MessageSource {
public:
    virtual ~MessageSource() = default;
    /// The kind of its messages' times: `Message::cycles` or `Message::timestamp`.
    [[nodiscard]] virtual std::string_view clock() const { return "cycles"; }
    /// The address that a comparator watches, by its register; nullopt if unknown.
    [[nodiscard]] virtual std::optional<std::uint64_t> watched([[maybe_unused]] std::uint32_t comparator) const {
        return std::nullopt;
    }
    /// `listener` is borrowed and must outlive the reader. Messages may wait in the reader until their time is known;
    /// its `pending` includes them.
    [[nodiscard]] virtual std::unique_ptr<Reader> messages(MessageListener& listener) const = 0;
};
/// Null if units of this kind have no messages.
[[nodiscard]] const MessageSource* message_source(const Configuration* configuration);

}  // namespace waymark::protocol
