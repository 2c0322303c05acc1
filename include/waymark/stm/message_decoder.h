/// Converts packets of STPv2 to messages (docs/spec/stm.md, 2 and 3): each write with its master, channel and
/// timestamp.
#pragma once

#include <array>

#include "waymark/protocol/message.h"
#include "waymark/stm/config.h"
#include "waymark/stm/parser.h"
#include "waymark/stm/state.h"

namespace waymark::stm {

class MessageDecoder final : public protocol::Reader {
public:
    /// `listener` is borrowed and must outlive this.
    MessageDecoder(const Config& config, protocol::MessageListener& listener);
    void feed(Bytes bytes) override;
    void reset(GapReason why) override;
    void finish() override;
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {parser_.pending(), parser_.pending()}; }
    [[nodiscard]] bool amid_packet() const override { return parser_.amid_packet(); }

    // Called by the parser.
    template <class P>
    void operator()(const P& packet, Extent at);
    void operator()(const Gap& gap);

private:
    const Config config_;
    SourceState state_;
    protocol::MessageListener& listener_;
    Parser<MessageDecoder> parser_;
};

}  // namespace waymark::stm
