/// Converts the output of a decoder to the arrays of waymark.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "objects.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/troubles.h"
#include "waymark/pipeline/run.h"
#include "waymark/protocol/packets.h"

namespace waymark::capi {

/// The callbacks of a decoder, and whether they asked to stop.
struct Callbacks {
    wm_flow_callback flow = nullptr;
    wm_room_callback room = nullptr;
    wm_counts_callback counts = nullptr;
    wm_packet_callback packets = nullptr;
    wm_sample_callback samples = nullptr;
    wm_progress_callback progress = nullptr;
    void *flow_user = nullptr, *room_user = nullptr, *counts_user = nullptr, *packets_user = nullptr,
         *samples_user = nullptr, *progress_user = nullptr;
    bool stopped = false;  ///< a callback requested a stop: none is called any more

    /// Calls a callback if it exists and none has stopped decoding.
    template <class Call, class What>
    void call(Call callback, const What& what, void* user) {
        if (callback != nullptr && !stopped && callback(what, user) != 0) stopped = true;
    }
};

/// The common part of sinks for one stream.
class StreamSink : public flow::Sink {
public:
    StreamSink(const wm_source& source, const pipeline::StreamInfo& stream, Callbacks& callbacks)
        : source_(source), buffer_(stream.buffer.name), offsets_(stream.offsets), callbacks_(callbacks) {}
    [[nodiscard]] const flow::Troubles& troubles() const { return troubles_; }
    [[nodiscard]] const wm_totals& totals() const { return totals_; }

protected:
    /// Sums up events, and converts them to events of the C interface.
    void take_events(const flow::Batch& batch, bool wanted);

    const wm_source& source_;
    const std::string buffer_;
    const OffsetMap& offsets_;
    Callbacks& callbacks_;
    flow::Troubles troubles_;
    wm_totals totals_{};
    std::vector<wm_event> events_;
};

/// Delivers ranges and events as they are decoded.
class BatchSink final : public StreamSink {
public:
    using StreamSink::StreamSink;
    void consume(const flow::Batch& batch) override;
    /// Memory of the user, if a callback provides it.
    [[nodiscard]] std::span<flow::Range> room(std::size_t least) override;

private:
    [[nodiscard]] std::span<flow::Range> given_room(std::size_t least);
    /// The same batch with its ranges copied to the user's memory.
    [[nodiscard]] flow::Batch moved(const flow::Batch& batch);

    bool writes_there_ = false;    ///< the writer of batches has room in the user's memory
    std::span<flow::Range> room_;  ///< unused part of the room for other writers' ranges
    Offset base_{};                ///< base of the offsets of ranges in it
};

/// Delivers only counts of blocks.
class CountSink final : public StreamSink {
public:
    using StreamSink::StreamSink;
    [[nodiscard]] bool counts_suffice() const override { return true; }
    void consume(const flow::Batch& batch) override { take_events(batch, false); }
    void take_counts(const flow::EdgeCounts& counts) override;
};

/// Delivers the packets of one stream in batches.
class PacketSink final : public protocol::PacketListener {
public:
    PacketSink(const wm_source& source, const pipeline::StreamInfo& stream, Callbacks& callbacks)
        : source_(source), buffer_(stream.buffer.name), callbacks_(callbacks) {}
    void packet(const protocol::PacketView& packet, protocol::Extent at) override;
    void gap(const Gap& gap) override;
    /// Delivers the packets collected so far.
    void deliver();
    [[nodiscard]] const wm_totals& totals() const { return totals_; }

private:
    void add(const wm_packet& packet, std::string name, std::string fields, std::string meaning);

    static constexpr std::size_t most = 512;
    const wm_source& source_;
    const std::string buffer_;
    Callbacks& callbacks_;
    wm_totals totals_{};
    std::vector<wm_packet> packets_;
    std::vector<std::string> texts_;  ///< three for each packet
};

/// Adds to sums, including bytes and packets.
void add_totals(wm_totals& to, const wm_totals& from);

}  // namespace waymark::capi
