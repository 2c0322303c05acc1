/// Packets of ITM and DWT → messages (docs/spec/itm.md, 2): joins the packets of one access, and gives messages the
/// time of the timestamp that follows them.
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

/// `SysTick`, `IRQ 28`, `thread`.
[[nodiscard]] std::string exception_name(std::uint32_t number);
/// `CPI, SLEEP`, by the bits of an event counter packet.
[[nodiscard]] std::string counter_names(std::uint32_t bits);

class MessageDecoder final : public protocol::Reader, public protocol::HeldMessages {
public:
    /// Messages that wait for a timestamp; of more, the oldest are delivered without a time.
    static constexpr std::size_t most_held = 4096;

    /// `listener` is borrowed and must outlive this.
    MessageDecoder(const Config& config, protocol::MessageListener& listener);
    void feed(Bytes bytes) override { parser_.feed(bytes); }
    void reset(GapReason why) override;
    void finish() override;
    void deliver_held() override { release(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override;
    [[nodiscard]] bool amid_packet() const override { return parser_.amid_packet(); }

    // What the parser asks for.
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
    /// All that is held gets the time of a timestamp.
    void stamp(Relation relation);
    /// All that is held has no timestamp.
    void release();
    void deliver(std::size_t count);

    SourceState state_;
    protocol::MessageListener& listener_;
    std::optional<protocol::Message> group_;  // packets of an access so far
    std::vector<protocol::Message> held_;
    std::size_t delivered_ = 0;  // of held_, those at its begin
    Parser<MessageDecoder> parser_;
};

}  // namespace waymark::itm
