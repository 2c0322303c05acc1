/// Lists messages of units without program flow (protocol/message.h), line by line and in constant memory.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "waymark/listing/text.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/run.h"
#include "waymark/protocol/message.h"
#include "waymark/syst/records.h"

namespace waymark::listing {

/// The selection of messages to list.
struct MessageChoice {
    std::set<protocol::MessageKind> kinds{};  ///< empty: all
    std::set<std::uint32_t> ports{};          ///< ports of text; empty: all
    /// Filters for kinds of messages with a master or channel; empty: all. Losses concern all channels.
    std::set<std::uint32_t> masters{}, channels{};
    [[nodiscard]] bool has(const protocol::Message& message) const;
};

/// Joins writes to channels to the records of software. All members are borrowed.
struct RecordChoice {
    syst::Layout layout{};
    const syst::Collateral* collateral{};
    const syst::Client* client{};  ///< for messages without GUID
};

struct MessagesListed {
    std::uint64_t messages = 0;  ///< number of all kinds, without `damage`
    std::uint64_t listed = 0;
    std::uint64_t unconfirmed = 0;  ///< of `messages`
    std::uint64_t problems = 0;     ///< number of records among `listed` that could not be read completely
    std::string problem{};          ///< of the first such record
    std::array<std::uint64_t, protocol::message_kinds> of{};  ///< by kind
};

/// Lines for reading join writes to a port or channel up to the end of a line or message, an overflow or
/// damage, with the time of the first byte; a value with bytes that are not text is shown alone, in hexadecimal. Lines
/// for programs are one message each.
class MessageListing {
public:
    /// `out` is borrowed.
    MessageListing(TextSink& out, LineFormat format, const MessageChoice& choice,
                   std::optional<RecordChoice> records = {});
    ~MessageListing();
    /// Receives the bytes of one source in one buffer; null: the source has no messages. It must be destroyed before
    /// this object, and before the objects in `stream`.
    [[nodiscard]] std::unique_ptr<pipeline::Consumer> of(const pipeline::StreamInfo& stream);
    /// Lists the messages whose time is not known yet, without a time: for live streams.
    void deliver_held();
    [[nodiscard]] MessagesListed listed() const;
    /// The losses of each listed stream, in the order of the report.
    [[nodiscard]] static std::vector<pipeline::Damage> damage_in(const pipeline::Report& report);

private:
    class Lines;
    class Source;
    std::unique_ptr<Lines> lines_;
};

}  // namespace waymark::listing
