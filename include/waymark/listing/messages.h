/// Messages of units that trace no program flow (protocol/message.h), line by line and in constant memory.
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

/// Which messages are listed.
struct MessageChoice {
    std::set<protocol::MessageKind> kinds{};  ///< empty: all
    std::set<std::uint32_t> ports{};          ///< of text; empty: all
    /// Of kinds that have one; empty: all. Losses concern all.
    std::set<std::uint32_t> masters{}, channels{};
    [[nodiscard]] bool has(const protocol::Message& message) const;
};

/// Writes to channels are joined to what software says by them. All is borrowed.
struct RecordChoice {
    syst::Layout layout{};
    const syst::Collateral* collateral{};
    const syst::Client* client{};  ///< of messages without GUID
};

struct MessagesListed {
    std::uint64_t messages = 0;  ///< of all kinds, without `damage`
    std::uint64_t listed = 0;
    std::uint64_t unconfirmed = 0;                            ///< of `messages`
    std::uint64_t problems = 0;                               ///< of `listed`, records that could not be read whole
    std::string problem{};                                    ///< of the first such record
    std::array<std::uint64_t, protocol::message_kinds> of{};  ///< by kind
};

/// Lines for reading join what is written to a port or channel up to the end of a line or message, an overflow or
/// damage, and have the time of its first byte; a value with bytes that are no text stands alone, in hexadecimal. Lines
/// for programs are a message each.
class MessageListing {
public:
    /// `out` is borrowed.
    MessageListing(TextSink& out, LineFormat format, const MessageChoice& choice,
                   std::optional<RecordChoice> records = {});
    ~MessageListing();
    /// Takes the bytes of one source in one buffer; null: the source has no messages. It ends before this object, and
    /// before what `stream` refers to.
    [[nodiscard]] std::unique_ptr<pipeline::Consumer> of(const pipeline::StreamInfo& stream);
    /// Lists the messages whose time is not known yet, without one: for streams that are listed while they come.
    void deliver_held();
    [[nodiscard]] MessagesListed listed() const;
    /// What was lost of each stream that was listed, in the report's order.
    [[nodiscard]] static std::vector<pipeline::Damage> damage_in(const pipeline::Report& report);

private:
    class Lines;
    class Source;
    std::unique_ptr<Lines> lines_;
};

}  // namespace waymark::listing
