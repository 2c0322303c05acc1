#include "waymark/pipeline/recover.h"

#include <algorithm>
#include <utility>

#include "waymark/flow/blocks.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pipeline {

namespace {

constexpr std::size_t most_held = std::size_t{1} << 20;

/// Puts what was recovered into the place of the end of the gap the stream begins with.
class HeadSink final : public flow::Sink {
public:
    HeadSink(flow::Sink& next, const pft::HeadRecovery& head) : next_(next), head_(head) {}
    void consume(const flow::Batch& batch) override {
        if (recovered_.empty()) return next_.consume(batch);
        std::size_t told = 0;
        if (!batch.events.empty() && batch.events.front().before == 0)
            if (const auto* gap = std::get_if<Gap>(&batch.events.front().what);
                gap != nullptr && gap->first == Offset{}) {
                told = 1;
                if (head_.first != Offset{}) {
                    const flow::Event event{0, {}, Gap{{}, head_.first, gap->reason}};
                    next_.consume({batch.blocks, batch.base, {}, {&event, 1}});
                }
                // What waits for an I-sync behind the A-sync is recovered too.
                if (batch.events.size() > 1 && batch.events[1].before == 0 &&
                    std::holds_alternative<Gap>(batch.events[1].what) &&
                    std::get<Gap>(batch.events[1].what).end == head_.sync)
                    told = 2;
            }
        for (const auto& owned : std::exchange(recovered_, {})) next_.consume(owned->batch(batch.blocks));
        next_.consume({batch.blocks, batch.base, batch.ranges, batch.events.subspan(told)});
    }
    void take(std::vector<std::unique_ptr<flow::BatchWriter::Owned>>&& recovered) { recovered_ = std::move(recovered); }

private:
    flow::Sink& next_;
    const pft::HeadRecovery& head_;
    std::vector<std::unique_ptr<flow::BatchWriter::Owned>> recovered_;
};

class RecoveringBase : public Consumer {
public:
    [[nodiscard]] virtual std::uint64_t packets() const = 0;
};

template <class Decoder>
class RecoveringConsumer final : public RecoveringBase {
public:
    RecoveringConsumer(const StreamInfo& stream, flow::Sink& sink, pft::HeadRecovery& found)
        : memory_(stream.source.memory),
          config_(stream.source.config),
          found_(found),
          head_(sink, found),
          out_(blocks_, head_),
          decoder_(config_, *memory_, out_) {}

    void feed(Bytes bytes) override {
        if (begun_) {
            decoder_.feed(bytes);
            return out_.flush();
        }
        held_.insert(held_.end(), bytes.begin(), bytes.end());
        if (held_.size() >= most_held) begin();
    }
    void reset() override {
        begin();
        decoder_.reset();
        out_.flush();
    }
    void finish() override {
        begin();
        decoder_.finish();
    }
    void flush() override {
        if (!begun_ && !enough()) return;
        begin();
        out_.flush();
    }
    [[nodiscard]] std::array<Offset, 2> pending() const override {
        return begun_ ? decoder_.pending() : std::array<Offset, 2>{};
    }
    [[nodiscard]] bool amid_packet() override {
        begin();
        return decoder_.amid_packet();
    }
    [[nodiscard]] std::uint64_t packets() const override { return decoder_.packets() + found_.packets; }

private:
    /// An A-sync, and so much behind it that its I-sync is there.
    [[nodiscard]] bool enough() const {
        constexpr std::array<std::uint8_t, 6> async{0, 0, 0, 0, 0, 0x80};
        constexpr auto behind = static_cast<std::ptrdiff_t>(pft::judged_bytes);
        const auto found = std::search(held_.begin(), held_.end(), async.begin(), async.end());
        return held_.end() - found > behind;
    }

    void begin() {
        if (std::exchange(begun_, true)) return;
        found_ = pft::recover_head(config_, *memory_, extents(), held_);
        flow::BatchWriter kept(blocks_);
        pft::decode_head(found_, config_, *memory_, held_, kept);
        head_.take(kept.take());
        decoder_.feed(held_);
        out_.flush();
        held_ = {};
    }
    [[nodiscard]] std::vector<pft::CodeExtent> extents() const {
        std::vector<pft::CodeExtent> out;
        for (const image::Region& region : memory_->regions())
            if (!region.shadowed_by && region.address.value <= 0xffffffffU)
                out.push_back({region.address, std::min(region.bytes, 0x100000000U - region.address.value)});
        return out;
    }

    std::shared_ptr<const image::MemoryMap> memory_;
    const pft::Config config_;
    pft::HeadRecovery& found_;
    HeadSink head_;
    flow::BlockTable blocks_;
    flow::BatchWriter out_;
    Decoder decoder_;
    std::vector<std::uint8_t> held_;
    bool begun_ = false;
};

}  // namespace

std::unique_ptr<Consumer> recovering_consumer(const StreamInfo& stream, flow::Sink& sink, DecoderKind kind,
                                              pft::HeadRecovery& found) {
    if (kind == DecoderKind::reference)
        return std::make_unique<RecoveringConsumer<pft::ReferenceDecoder>>(stream, sink, found);
    return std::make_unique<RecoveringConsumer<pft::Decoder>>(stream, sink, found);
}

std::uint64_t recovered_packets(const Consumer& consumer) {
    const auto* recovering = dynamic_cast<const RecoveringBase*>(&consumer);
    return recovering == nullptr ? 0 : recovering->packets();
}

}  // namespace waymark::pipeline
