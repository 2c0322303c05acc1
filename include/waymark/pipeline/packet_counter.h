/// Counts the contents of one source's bytes without a program image: packets by name, gaps by reason, and where
/// packets begin.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "waymark/pipeline/run.h"
#include "waymark/protocol/message_survey.h"
#include "waymark/protocol/packets.h"

namespace waymark::pipeline {

/// For a source for which has_packets() is true.
class PacketCounter final : public Consumer {
public:
    explicit PacketCounter(const StreamInfo& stream) : reader_(stream.source.configuration->survey(stream.offsets)) {}

    void feed(Bytes bytes) override { reader_->feed(bytes); }
    void reset(GapReason why) override { reader_->reset(why); }
    void finish() override {
        reader_->finish();
        survey_ = reader_->survey();
        if (const auto* counter = dynamic_cast<const protocol::MessageCounter*>(reader_.get()); counter != nullptr)
            messages_ = counter->messages();
    }
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return reader_->pending(); }
    [[nodiscard]] bool amid_packet() override { return reader_->amid_packet(); }

    /// After finish().
    [[nodiscard]] const protocol::Survey& survey() const { return survey_; }
    /// The same; nullopt if such a source has no messages.
    [[nodiscard]] const std::optional<protocol::MessageCounts>& messages() const { return messages_; }

private:
    std::unique_ptr<protocol::Surveyor> reader_;
    protocol::Survey survey_;
    std::optional<protocol::MessageCounts> messages_;
};

/// A consumer that lists the packets of a source for which has_packets() is true; `listener` is borrowed.
[[nodiscard]] std::unique_ptr<Consumer> packet_consumer(const StreamInfo& stream, protocol::PacketListener& listener);

}  // namespace waymark::pipeline
