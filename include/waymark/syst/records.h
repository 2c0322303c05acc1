/// Converts writes to the channels of an STM to messages of software, by packets that are timestamped or marked and by
/// flags (docs/spec/sys-t.md, 1).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "waymark/protocol/message.h"
#include "waymark/syst/describe.h"

namespace waymark::syst {

/// Takes the messages of a unit, and passes on one message of kind record for each message of software, when that ends.
/// Messages that are neither writes nor flags are passed on unchanged.
class Records final : public protocol::MessageListener {
public:
    /// Limit on channels with a message that has not ended; beyond it, the oldest such message is passed on unchanged.
    static constexpr std::size_t most_open = 4096;
    /// Limit on a message's size: a payload of 64 KB and the parts before and after it.
    static constexpr std::size_t most_bytes = 65536 + 64;

    /// All is borrowed.
    Records(Layout layout, const Collateral* collateral, const Client* client, protocol::MessageListener& next)
        : layout_(layout), describe_(layout, collateral, client), next_(next) {}
    void message(const protocol::Message& m) override;
    /// The stream ends here.
    void finish();
    /// The beginning of the first message that has not ended; nullopt if there is none.
    [[nodiscard]] std::optional<Offset> first_open() const;

private:
    using Channel = std::pair<std::uint32_t, std::uint32_t>;
    struct Open {
        protocol::Message first;
        Offset end;
        std::vector<std::uint8_t> bytes;
        bool no_begin = false, too_long = false;
    };
    void write(const protocol::Message& m);
    void end(std::map<Channel, Open>::iterator at, const std::string& problem);
    /// Discards the open messages of a master, or of all masters.
    void lose(const std::optional<std::uint32_t>& master, const std::string& problem);

    Layout layout_;
    Describer describe_;
    protocol::MessageListener& next_;
    std::map<Channel, Open> open_;
    std::set<std::pair<std::uint64_t, Channel>> by_begin_;  ///< the same, by the offsets where they began
};

}  // namespace waymark::syst
