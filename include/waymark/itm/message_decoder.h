/// Converts packets of ITM and DWT to messages (docs/spec/itm.md, 2): joins the packets of one access, and gives
/// messages the time of the timestamp that follows them.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "waymark/itm/config.h"
#include "waymark/itm/parser.h"
#include "waymark/itm/state.h"
#include "waymark/protocol/message.h"

namespace waymark::itm {

/// Name of an exception: `SysTick`, `IRQ 28`, `thread`.
[[nodiscard]] std::string exception_name(std::uint32_t number);
/// Names of the counters in an event counter packet: `CPI, SLEEP`.
[[nodiscard]] std::string counter_names(std::uint32_t bits);

class MessageDecoder final : public protocol::Reader, public protocol::HeldMessages {
public:
    /// Maximum number of messages that wait for a timestamp; beyond it, the oldest are delivered without a time.
    static constexpr std::size_t most_held = 4096;

    /// `listener` is borrowed and must outlive this.
    MessageDecoder(const Config& config, protocol::MessageListener& listener);
    void feed(Bytes bytes) override { parser_.feed(bytes); }
    void reset(GapReason why) override;
    void finish() override;
    void deliver_held() override { release(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override;
    [[nodiscard]] bool amid_packet() const override { return parser_.amid_packet(); }

    // The interface that the parser requires.
    void operator()(const Stimulus& p, Extent at);
    void operator()(const HardwareSource& p, Extent at);
    void operator()(const ShortTimestamp& p, Extent at);
    void operator()(const LocalTimestamp& p, Extent at);
    void operator()(const GlobalTimestamp1& p, Extent at);
    void operator()(const GlobalTimestamp2& p, Extent at);
    void operator()(const Extension& p, Extent at);
    void operator()(const Overflow& p, Extent at);
    void operator()(const Sync& p, Extent at);
    void operator()(const Gap& gap);

private:
    [[nodiscard]] protocol::Message of(protocol::MessageKind kind, Extent at) const;
    void hold(protocol::Message message);
    void global_time(Extent at);
    void access(const HardwareSource& p, Extent at);
    /// The group of an access is complete.
    void end_group();
    /// All held messages get the time of a timestamp.
    void stamp(Relation relation);
    /// All held messages are released without a timestamp.
    void release();
    void deliver(std::size_t count);

    SourceState state_;
    protocol::MessageListener& listener_;
    std::optional<protocol::Message> group_;  // packets of an access so far
    std::vector<protocol::Message> held_;
    std::size_t delivered_ = 0;  // number of messages at the beginning of held_ that were delivered
    Parser<MessageDecoder> parser_;
};

}  // namespace waymark::itm
