/// Consumers of a stream's bytes: decoders on one or several threads, and the listing of packets.
#include <algorithm>
#include <utility>

#include "waymark/flow/blocks.h"
#include "waymark/flow/cycle_spread.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

namespace {

/// The source of a decoder's code, and the sink that receives its output.
class Ends {
public:
    Ends(const StreamInfo& stream, flow::Sink& sink, Addresses addresses)
        : memory_(stream.source.memory), sink_(&sink) {
        add_processes(stream, addresses);
        // Placed nearest to the decoder, because a count also covers ranges that a filter omits.
        if (!sink.wants_cycles_in_ranges() || !stream.source.configuration->cycle_counts_apart()) return;
        spread_ = std::make_unique<flow::CycleSpread>(*sink_);
        sink_ = spread_.get();
    }
    [[nodiscard]] const isa::CodeReader& code() const {
        return reader_ ? static_cast<const isa::CodeReader&>(*reader_) : *memory_;
    }
    [[nodiscard]] flow::Sink& sink() const { return *sink_; }
    void begin(const capture::BufferPart& part) {
        // Waiting cycles belong to the previous part.
        if (reader_ && spread_) spread_->release();
        if (reader_) reader_->begin(part.from, part.to, part.thread);
        if (filter_) filter_->begin(part);
    }
    /// Called when the decoder has delivered everything.
    void finish() {
        if (spread_) spread_->release();
    }
    [[nodiscard]] std::optional<Offset> held_from() const { return spread_ ? spread_->first() : std::nullopt; }
    [[nodiscard]] const Filtered* filtered() const { return filter_ ? &filter_->filtered() : nullptr; }
    [[nodiscard]] std::vector<MissingCode> missing() const {
        return processes_ ? processes_->missing() : std::vector<MissingCode>();
    }
    [[nodiscard]] std::vector<UncertainCode> uncertain() const {
        return processes_ ? processes_->uncertain() : std::vector<UncertainCode>();
    }

private:
    void add_processes(const StreamInfo& stream, Addresses addresses) {
        if (!stream.source.code) return;
        reader_ = std::make_unique<ProcessReader>(stream.source.code);
        processes_ = std::make_unique<ProcessSink>(*reader_, *sink_, addresses == Addresses::placed);
        sink_ = processes_.get();
        if (stream.source.filter == nullptr) return;
        filter_ = std::make_unique<FilterSink>(stream.source.filter, *reader_, *processes_);
        sink_ = filter_.get();
    }

    std::shared_ptr<const image::MemoryMap> memory_;
    std::unique_ptr<ProcessReader> reader_;
    std::unique_ptr<ProcessSink> processes_;
    std::unique_ptr<FilterSink> filter_;
    std::unique_ptr<flow::CycleSpread> spread_;
    flow::Sink* sink_;
};

/// A consumer on one thread.
class SerialConsumer final : public FlowConsumer {
public:
    SerialConsumer(const StreamInfo& stream, flow::Sink& sink, DecoderKind kind, Addresses addresses)
        : ends_(stream, sink, addresses),
          out_(blocks_, ends_.sink()),
          decoder_(stream.source.configuration->decoder(ends_.code(), out_, {.kind = kind})) {}
    void begin(const capture::BufferPart& part) override { ends_.begin(part); }
    [[nodiscard]] std::vector<MissingCode> missing() const override { return ends_.missing(); }
    [[nodiscard]] std::vector<UncertainCode> uncertain() const override { return ends_.uncertain(); }
    [[nodiscard]] const Filtered* filtered() const override { return ends_.filtered(); }
    // Delivers at once, as ParallelConsumer does: then several sources deliver in the same order with any number of
    // threads.
    void feed(Bytes bytes) override {
        decoder_->feed(bytes);
        out_.flush();
    }
    void reset(GapReason why) override {
        decoder_->reset(why);
        out_.flush();
    }
    void finish() override {
        decoder_->finish();
        out_.flush();
        ends_.finish();
        packets_ = decoder_->packets();
        decoder_.reset();
    }
    void flush() override { out_.flush(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return decoder_->pending(); }
    [[nodiscard]] std::optional<Offset> held_from() const override { return ends_.held_from(); }
    [[nodiscard]] bool amid_packet() override { return decoder_->amid_packet(); }
    [[nodiscard]] std::uint64_t packets() const override { return decoder_ ? decoder_->packets() : packets_; }

private:
    Ends ends_;
    flow::BlockTable blocks_;
    flow::BatchWriter out_;
    std::unique_ptr<protocol::Decoder>
        decoder_;                // null when finished; a thousand threads may have ended before the last
    std::uint64_t packets_ = 0;  // packets of the finished decoder
};

class ParallelConsumer final : public FlowConsumer {
public:
    ParallelConsumer(const StreamInfo& stream, flow::Sink& sink, unsigned jobs, Addresses addresses)
        : ends_(stream, sink, addresses),
          sink_(ends_.sink()),
          decoder_(stream.source.configuration->parallel_decoder(
              ends_.code(), blocks_, sink_,
              {.workers = jobs,
               .ranges = sink_.counts_suffice() ? follow::Ranges::counted : follow::Ranges::delivered,
               .ways = sink_.wants_ways()})) {}
    void begin(const capture::BufferPart& part) override { ends_.begin(part); }
    [[nodiscard]] std::vector<MissingCode> missing() const override { return ends_.missing(); }
    [[nodiscard]] std::vector<UncertainCode> uncertain() const override { return ends_.uncertain(); }
    [[nodiscard]] const Filtered* filtered() const override { return ends_.filtered(); }
    void feed(Bytes bytes) override { decoder_->feed(bytes); }
    void reset(GapReason why) override { decoder_->reset(why); }
    void finish() override {
        decoder_->finish();
        ends_.finish();
        if (sink_.counts_suffice()) {
            const std::vector<std::uint64_t> counts = decoder_->counts();
            const follow::Parallel::Ways ways = decoder_->ways();
            sink_.take_counts({blocks_.blocks(), counts, decoder_->cycles(), ways.ways, ways.left_out});
        }
        packets_ = decoder_->packets();
        decoder_.reset();
    }
    void flush() override { decoder_->flush(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return decoder_->pending(); }
    [[nodiscard]] std::optional<Offset> held_from() const override { return ends_.held_from(); }
    [[nodiscard]] bool amid_packet() override { return decoder_->amid_packet(); }
    [[nodiscard]] std::uint64_t packets() const override { return decoder_ ? decoder_->packets() : packets_; }

private:
    Ends ends_;
    flow::Sink& sink_;
    flow::BlockTable blocks_;
    std::unique_ptr<follow::Parallel> decoder_;  // null: finished
    std::uint64_t packets_ = 0;
};

class ListingConsumer final : public ReaderConsumer {
public:
    ListingConsumer(const StreamInfo& stream, protocol::PacketListener& listener) {
        reader_ = stream.source.configuration->list(listener);
    }
};

}  // namespace

std::unique_ptr<FlowConsumer> flow_consumer(const StreamInfo& stream, flow::Sink& sink, DecoderKind kind, unsigned jobs,
                                            Addresses addresses) {
    if (kind == DecoderKind::fast && (jobs > 1 || sink.counts_suffice()))
        return std::make_unique<ParallelConsumer>(stream, sink, std::max(1U, jobs), addresses);
    return std::make_unique<SerialConsumer>(stream, sink, kind, addresses);
}

std::uint64_t packets(const Consumer& consumer) {
    const auto* flow = dynamic_cast<const FlowConsumer*>(&consumer);
    return flow == nullptr ? 0 : flow->packets();
}

std::unique_ptr<Consumer> packet_consumer(const StreamInfo& stream, protocol::PacketListener& listener) {
    return std::make_unique<ListingConsumer>(stream, listener);
}

}  // namespace waymark::pipeline
