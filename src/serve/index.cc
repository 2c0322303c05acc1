#include "waymark/serve/index.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>
#include <utility>

#include "seekable.h"
#include "waymark/analysis/flow_sink.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/cycle_spread.h"
#include "waymark/pipeline/piece_reader.h"

namespace waymark::serve {

namespace {

using analysis::FlowTimeline;
using analysis::Work;

/// Observes the facts about earlier flow that a timeline beginning at a place needs.
class PlaceObserver final : public analysis::CallObserver {
public:
    explicit PlaceObserver(bool cycles) : cycles_(cycles) {}
    // Repeats are applied to stacks that have frames: the first call of a context is reported.
    [[nodiscard]] bool wants_each_call() const override { return false; }
    void enter(const Work&, std::uint32_t depth, analysis::FunctionId) override {
        if (known_ || depth >= FlowTimeline::most_depth) return;
        known_ = true;
        if (seen_.insert(context_).second) before_.tracks.push_back(context_);
    }
    void leave(const Work&, std::uint32_t) override {}
    void switch_to(const Work&, std::optional<std::uint32_t> context_id) override {
        context_ = context_id;
        known_ = false;
    }
    void happened(const Work& now, const flow::Event& event) override {
        if (const auto* untraced = std::get_if<flow::Untraced>(&event.what)) untraced_ += untraced->instructions;
        const auto* t = std::get_if<flow::Timestamp>(&event.what);
        if (t == nullptr || !t->known) return;
        if (before_.anchors.size() == 2) before_.anchors.erase(before_.anchors.begin());
        before_.anchors.push_back({cycles_ ? now.cycles : now.instructions, t->value});
    }
    void regained(const Work&) override {}
    [[nodiscard]] const FlowTimeline::Before& before() const { return before_; }
    /// Number of instructions that are in no range.
    [[nodiscard]] std::uint64_t untraced() const { return untraced_; }

private:
    const bool cycles_;
    bool known_ = false;  // the context has a track
    std::optional<std::uint32_t> context_;
    std::set<std::optional<std::uint32_t>> seen_;
    FlowTimeline::Before before_;
    std::uint64_t untraced_ = 0;
};

/// Decodes a stream, and adds a place now and then.
class IndexConsumer final : public pipeline::Consumer {
public:
    IndexConsumer(const pipeline::StreamInfo& stream, Index& index, std::size_t number, const IndexOptions& options)
        : stream_(stream),
          index_(index),
          number_(number),
          options_(options),
          framed_(stream.buffer.format == capture::Buffer::Format::coresight),
          code_(stream.source.names->symbols, *stream.source.memory),
          observer_(stream.source.configuration->cycle_counts()),
          sink_(code_, [](Offset at) { return at.value; }, {.calls = true, .observer = &observer_}),
          spread_(sink_),
          spreads_(stream.source.configuration->cycle_counts_apart()),
          out_(blocks_, spreads_ ? static_cast<flow::Sink&>(spread_) : sink_),
          decoder_(cutting_decoder(stream.source, out_)),
          next_(options.spacing) {}

    void feed(Bytes bytes) override {
        const std::uint64_t begin = fed_;
        std::size_t at = 0;
        const auto decode = [&](std::size_t count) {
            decoder_->feed(bytes.subspan(at, count));
            out_.flush();
            at += count;
            fed_ += count;
        };
        while (at < bytes.size()) {
            // All bytes of the frame that contains a place have to be in this piece.
            const std::uint64_t least = std::max(next_, framed_ ? begin + most_skipped : begin);
            if (fed_ < least) {
                decode(static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size() - at, least - fed_)));
                continue;
            }
            const std::uint64_t from = fed_;
            const std::optional<std::size_t> cut = decoder_->find(bytes, at, bytes.size());
            if (!cut || *cut <= at || *cut - at > std::numeric_limits<std::uint32_t>::max()) {
                decode(bytes.size() - at);
                break;
            }
            const auto length = static_cast<std::uint32_t>(*cut - at);
            decode(length);
            if (add(from, length, begin)) next_ = fed_ + options_.spacing;
        }
        index_.reached(number_, sink_.now().instructions, fed_);
    }
    void reset(GapReason why) override {
        decoder_->reset(why);
        out_.flush();
    }
    void finish() override {
        decoder_->finish();
        out_.flush();
        spread_.release();
        index_.reached(number_, sink_.now().instructions, fed_);
    }
    void flush() override { out_.flush(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return decoder_->pending(); }
    [[nodiscard]] std::optional<Offset> held_from() const override { return spreads_ ? spread_.first() : std::nullopt; }
    [[nodiscard]] bool amid_packet() override { return decoder_->amid_packet(); }

private:
    static constexpr std::uint64_t most_skipped = 15;

    /// Adds the place that was reached, if the whole state is known and there is room. `begin`: beginning of the piece.
    bool add(std::uint64_t from, std::uint32_t length, std::uint64_t begin) {
        if (spreads_ && spread_.first()) return false;
        const std::optional<follow::CutMemory> memory = decoder_->memory();
        if (!memory) return false;
        std::optional<analysis::KeptCalls> calls = sink_.keep();
        if (!calls) return false;
        Point point{.from = from, .length = length, .memory = *memory};
        point.ran = calls->stacks.now.instructions - observer_.untraced();
        point.timeline = observer_.before();
        point.calls = std::move(*calls);
        set_place(point, begin);
        std::vector<std::uint8_t> bytes;
        append(bytes, point);
        kept_ += bytes.size();
        if (kept_ > fed_ / options_.one_part_of) {
            // It is added later, when more bytes have been read.
            kept_ -= bytes.size();
            next_ = fed_ + options_.spacing / 4;
            return false;
        }
        index_.add(number_, std::make_shared<const Point>(std::move(point)));
        return true;
    }
    /// Sets the place where reading has to begin: at the beginning of the byte's frame.
    void set_place(Point& point, std::uint64_t begin) const {
        const auto in_buffer = [&](std::uint64_t at) { return stream_.offsets.capture(Offset{at}).value; };
        point.read_from = in_buffer(point.from);
        if (!framed_) return;
        point.read_from -= point.read_from % 16;
        std::uint64_t first = point.from;
        while (first > begin && in_buffer(first - 1) >= point.read_from) --first;
        point.skip = static_cast<std::uint32_t>(point.from - first);
        // Two bytes may come before the first trace ID of a frame.
        point.amid_source = in_buffer(first) - point.read_from <= 1;
    }

    const pipeline::StreamInfo stream_;
    Index& index_;
    const std::size_t number_;
    const IndexOptions& options_;
    const bool framed_;
    analysis::FlowCode code_;
    PlaceObserver observer_;
    analysis::FlowSink sink_;
    flow::CycleSpread spread_;
    const bool spreads_;
    flow::BlockTable blocks_;
    flow::BatchWriter out_;
    std::unique_ptr<follow::Cutting> decoder_;
    std::uint64_t fed_ = 0, next_, kept_ = 0;
};

bool has_source(const capture::Buffer& buffer, const pipeline::Source& source) {
    return std::find(buffer.sources.begin(), buffer.sources.end(), source.name) != buffer.sources.end();
}

}  // namespace

// ---- the index

namespace {

/// Number of instructions up to a place that is not after the last timestamp before place `i`.
std::uint64_t before_timestamp(const StreamPoints& s, std::size_t i) {
    const FlowTimeline::Anchor& last = s.points[i]->timeline.anchors.back();
    while (i-- > 0) {
        // That place is earlier exactly if the timestamp is not known there.
        const std::vector<FlowTimeline::Anchor>& anchors = s.points[i]->timeline.anchors;
        if (anchors.empty() || anchors.back() != last) return s.points[i]->now().instructions;
    }
    return 0;
}

}  // namespace

std::shared_ptr<const Point> Index::before(std::string_view buffer, std::string_view source,
                                           std::uint64_t instruction) const {
    const std::scoped_lock lock(mutex_);
    for (const StreamPoints& s : streams_) {
        if (s.buffer != buffer || s.source != source) continue;
        const auto behind = std::partition_point(s.points.begin(), s.points.end(),
                                                 [&](const auto& p) { return p->now().instructions < instruction; });
        return behind == s.points.begin() ? nullptr : *(behind - 1);
    }
    return nullptr;
}

std::uint64_t Index::instructions() const {
    const std::scoped_lock lock(mutex_);
    std::uint64_t most = 0;
    for (const StreamPoints& s : streams_) most = std::max(most, s.instructions);
    return most;
}

bool Index::complete() const {
    const std::scoped_lock lock(mutex_);
    return complete_;
}

std::optional<analysis::FlowWindow> Index::window_of(std::string_view unit, std::uint64_t begin,
                                                     std::uint64_t end) const {
    if (unit == "instructions") return analysis::FlowWindow{begin, end};
    const std::scoped_lock lock(mutex_);
    analysis::FlowWindow out{std::numeric_limits<std::uint64_t>::max(), 0};
    for (const StreamPoints& s : streams_) {
        std::uint64_t first = 0, behind = s.instructions;
        bool reached = complete_;
        for (std::size_t i = 0; i < s.points.size(); ++i) {
            const Point& p = *s.points[i];
            const std::vector<FlowTimeline::Anchor>& anchors = p.timeline.anchors;
            if (unit == "ticks" && anchors.empty()) continue;
            // The last timestamp came before the place, and time has passed since then.
            const std::uint64_t at = unit == "ticks" ? anchors.back().ticks : p.now().cycles;
            if (at <= begin) first = i == 0 || unit != "ticks" ? p.now().instructions : before_timestamp(s, i);
            if (at >= end) {
                behind = p.now().instructions;
                reached = true;
                break;
            }
        }
        if (!reached) return {};
        out.begin = std::min(out.begin, first);
        out.end = std::max(out.end, behind);
    }
    return out;
}

bool Index::has_timestamps() const {
    const std::scoped_lock lock(mutex_);
    return std::any_of(streams_.begin(), streams_.end(), [](const StreamPoints& s) {
        return std::any_of(s.points.begin(), s.points.end(),
                           [](const auto& point) { return !point->timeline.anchors.empty(); });
    });
}

std::vector<StreamPoints> Index::streams() const {
    const std::scoped_lock lock(mutex_);
    return streams_;
}

std::uint64_t Index::bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
}

void Index::add(std::size_t stream, std::shared_ptr<const Point> point) {
    std::vector<std::uint8_t> bytes;
    append(bytes, *point);
    const std::scoped_lock lock(mutex_);
    bytes_ += bytes.size();
    streams_[stream].points.push_back(std::move(point));
}

void Index::reached(std::size_t stream, std::uint64_t instructions, std::uint64_t bytes) {
    const std::scoped_lock lock(mutex_);
    streams_[stream].instructions = instructions;
    streams_[stream].bytes = bytes;
}

void Index::finish() {
    const std::scoped_lock lock(mutex_);
    complete_ = true;
}

// ---- the pass

std::string why_not_indexed(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected) {
    using Format = capture::Buffer::Format;
    if (session.capture.spaces)
        return "which process ran where, and with which code, is known only from the beginning on";
    if (session.capture.strobed || session.capture.sampled) return "it consists of stretches of the run";
    for (const pipeline::Source* source : selected) {
        if (!source->has_flow()) continue;
        if (!source->continues.empty()) return "a source continues with the thread of another one";
        flow::BlockTable blocks;
        flow::BatchWriter out(blocks);
        if (cutting_decoder(*source, out) == nullptr)
            return "the trace of " + source->label() + " has no places at which decoding can begin";
        for (const capture::Buffer& buffer : session.capture.buffers) {
            if (!has_source(buffer, *source)) continue;
            if (buffer.format != Format::coresight && buffer.format != Format::source_data)
                return "frames of the buffer " + buffer.name + " do not lie at multiples of 16 bytes";
            if (buffer.container != nullptr || !is_seekable(buffer))
                return "the buffer " + buffer.name + " is compressed, or cannot be read from the middle on";
        }
    }
    return {};
}

std::shared_ptr<Index> new_index(const pipeline::Session& session,
                                 const std::vector<const pipeline::Source*>& selected) {
    std::vector<StreamPoints> streams;
    for (const capture::Buffer& buffer : session.capture.buffers)
        for (const pipeline::Source* source : selected)
            if (source->has_flow() && has_source(buffer, *source))
                streams.push_back({.buffer = buffer.name, .source = source->name});
    return std::make_shared<Index>(std::move(streams));
}

Status fill_index(Index& index, const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                  const IndexOptions& options, const std::function<bool()>& stop) {
    const std::vector<StreamPoints> streams = index.streams();
    const auto make = [&](const pipeline::StreamInfo& stream) -> std::unique_ptr<pipeline::Consumer> {
        if (!stream.source.has_flow()) return nullptr;
        for (std::size_t i = 0; i < streams.size(); ++i)
            if (streams[i].buffer == stream.buffer.name && streams[i].source == stream.source.name)
                return std::make_unique<IndexConsumer>(stream, index, i, options);
        return nullptr;
    };
    pipeline::PieceReader reader(session, selected, make);
    // Small pieces, so that the known part grows steadily and the end of the program does not have to wait.
    constexpr std::size_t piece_bytes = std::size_t{1} << 20;
    while (!stop() && reader.step(piece_bytes)) continue;
    if (stop()) return Nothing{};
    const pipeline::Report report = reader.report();
    for (const pipeline::BufferReport& buffer : report.buffers)
        if (buffer.error) return *buffer.error;
    index.finish();
    return Nothing{};
}

}  // namespace waymark::serve
