#include "waymark/pipeline/recover.h"

#include <algorithm>
#include <utility>

#include "waymark/flow/blocks.h"

namespace waymark::pipeline {

namespace {

constexpr std::size_t most_held = std::size_t{1} << 20;

/// Inserts recovered flow at the end of the gap with which the stream begins, in place of that part of the gap.
class HeadSink final : public flow::Sink {
public:
    HeadSink(flow::Sink& next, const follow::HeadRecovery& head) : next_(next), head_(head) {}
    void consume(const flow::Batch& batch) override {
        if (recovered_.empty()) return next_.consume(batch);
        std::size_t replaced = 0;
        if (!batch.events.empty() && batch.events.front().before == 0)
            if (const auto* gap = std::get_if<Gap>(&batch.events.front().what);
                gap != nullptr && gap->first == Offset{}) {
                replaced = 1;
                if (head_.first != Offset{}) {
                    const flow::Event event{0, {}, Gap{{}, head_.first, gap->reason}};
                    next_.consume({batch.blocks, batch.base, {}, {&event, 1}});
                }
                // The flow between the A-sync and the I-sync is recovered too.
                if (batch.events.size() > 1 && batch.events[1].before == 0 &&
                    std::holds_alternative<Gap>(batch.events[1].what) &&
                    std::get<Gap>(batch.events[1].what).end == head_.sync)
                    replaced = 2;
            }
        for (const auto& owned : std::exchange(recovered_, {})) next_.consume(owned->batch(batch.blocks));
        next_.consume({batch.blocks, batch.base, batch.ranges, batch.events.subspan(replaced)});
    }
    void take(std::vector<std::unique_ptr<flow::BatchWriter::Owned>>&& recovered) { recovered_ = std::move(recovered); }

private:
    flow::Sink& next_;
    const follow::HeadRecovery& head_;
    std::vector<std::unique_ptr<flow::BatchWriter::Owned>> recovered_;
};

class RecoveringConsumer final : public FlowConsumer {
public:
    RecoveringConsumer(const StreamInfo& stream, flow::Sink& sink, DecoderKind kind, follow::HeadRecovery& found)
        : memory_(stream.source.memory),
          configuration_(stream.source.configuration),
          found_(found),
          head_(sink, found),
          out_(blocks_, head_),
          decoder_(configuration_->decoder(*memory_, out_, {.kind = kind})) {}

    void feed(Bytes bytes) override {
        if (begun_) {
            decoder_->feed(bytes);
            return out_.flush();
        }
        held_.insert(held_.end(), bytes.begin(), bytes.end());
        if (held_.size() >= most_held) start();
    }
    void reset(GapReason why) override {
        start();
        decoder_->reset(why);
        out_.flush();
    }
    void finish() override {
        start();
        decoder_->finish();
    }
    void flush() override {
        if (!begun_ && !configuration_->has_sync(held_)) return;
        start();
        out_.flush();
    }
    [[nodiscard]] std::array<Offset, 2> pending() const override {
        return begun_ ? decoder_->pending() : std::array<Offset, 2>{};
    }
    [[nodiscard]] bool amid_packet() override {
        start();
        return decoder_->amid_packet();
    }
    [[nodiscard]] std::uint64_t packets() const override { return decoder_->packets() + found_.packets; }

private:
    void start() {
        if (std::exchange(begun_, true)) return;
        found_ = configuration_->recover_head(*memory_, code_extents(*memory_), held_);
        flow::BatchWriter kept(blocks_);
        configuration_->decode_head(found_, *memory_, held_, kept);
        head_.take(kept.take());
        decoder_->feed(held_);
        out_.flush();
        held_ = {};
    }
    std::shared_ptr<const image::MemoryMap> memory_;
    const std::shared_ptr<const protocol::Configuration> configuration_;
    follow::HeadRecovery& found_;
    HeadSink head_;
    flow::BlockTable blocks_;
    flow::BatchWriter out_;
    std::unique_ptr<protocol::Decoder> decoder_;
    std::vector<std::uint8_t> held_;
    bool begun_ = false;
};

}  // namespace

std::vector<follow::CodeExtent> code_extents(const image::MemoryMap& memory) {
    std::vector<follow::CodeExtent> out;
    for (const image::Region& region : memory.regions())
        if (!region.shadowed_by) out.push_back({region.address, region.bytes});
    return out;
}

std::unique_ptr<FlowConsumer> recovering_consumer(const StreamInfo& stream, flow::Sink& sink, DecoderKind kind,
                                                  follow::HeadRecovery& found) {
    // Trace with many parts begins many times, and is synchronised each time.
    if (stream.buffer.container != nullptr) return flow_consumer(stream, sink, kind, 1, Addresses::as_they_were);
    return std::make_unique<RecoveringConsumer>(stream, sink, kind, found);
}

}  // namespace waymark::pipeline
