#include "waymark/pipeline/run.h"

#include <algorithm>

#include "waymark/capture/byte_stream.h"
#include "waymark/coresight/bypass.h"
#include "waymark/flow/blocks.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/parallel_decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pipeline {

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 22;
constexpr std::size_t most_gaps = 100;

/// One source's stream while its buffer is read.
class Stream {
public:
    Stream(const Source& source, const capture::Buffer& buffer, const MakeConsumer& make)
        : source_(source), buffer_(buffer), consumer_(make({source, buffer, offsets_})) {}

    [[nodiscard]] const Source& source() const { return source_; }

    void add(Bytes bytes, Offset capture) {
        offsets_.add(position(), capture);
        waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
    }
    void reset() {
        pass_on();
        if (consumer_) consumer_->reset();
    }
    /// The piece ends: whoever prints can still map its offsets.
    void end_piece() {
        const Offset begin{fed_};
        pass_on();
        if (!consumer_) return offsets_.forget(position(), {});
        consumer_->flush();
        offsets_.forget(begin, consumer_->pending());
    }
    StreamReport finish(std::uint64_t padding) {
        pass_on();
        if (consumer_) consumer_->finish();
        return {&source_, buffer_.name, fed_, padding, std::move(consumer_)};
    }

private:
    [[nodiscard]] Offset position() const { return {fed_ + waiting_.size()}; }
    void pass_on() {
        if (waiting_.empty()) return;
        if (consumer_) consumer_->feed(waiting_);
        fed_ += waiting_.size();
        waiting_.clear();
    }

    const Source& source_;
    const capture::Buffer& buffer_;
    OffsetMap offsets_;
    std::unique_ptr<Consumer> consumer_;
    std::vector<std::uint8_t> waiting_;
    std::uint64_t fed_ = 0;
};

/// A buffer of frames: bytes to streams by trace ID.
class Framed {
public:
    Framed(std::vector<std::unique_ptr<Stream>>& streams, coresight::Framing framing, BufferReport& report)
        : streams_(streams), report_(report), deformatter_({.framing = framing}) {
        for (const auto& stream : streams_)
            if (stream->source().trace_id && by_id_[stream->source().trace_id->value] == nullptr)
                by_id_[stream->source().trace_id->value] = stream.get();
    }

    void feed(Bytes bytes) { deformatter_.feed(bytes, *this); }
    void finish() {
        deformatter_.finish(*this);
        report_.frames = deformatter_.totals();
    }

    // What coresight::FrameHandler asks for.
    void data(coresight::TraceId id, Bytes bytes, Offset first) {
        if (Stream* stream = by_id_[id.value]) stream->add(bytes, first);
    }
    void trigger(coresight::TraceId, Offset, std::uint8_t) {}
    void gap(const Gap& gap) {
        if (report_.gaps.size() < most_gaps) report_.gaps.push_back(gap);
    }
    void reset(Offset) {
        for (const auto& stream : streams_) stream->reset();
    }

private:
    std::vector<std::unique_ptr<Stream>>& streams_;
    BufferReport& report_;
    coresight::Deformatter deformatter_;
    std::array<Stream*, coresight::trace_ids> by_id_{};
};

/// A buffer of one source's bytes. Its last bytes are held back until it is known whether they are the end mark.
class Bare {
public:
    explicit Bare(Stream& stream) : stream_(stream) {}

    void feed(Bytes bytes) {
        held_.insert(held_.end(), bytes.begin(), bytes.end());
        if (held_.size() > coresight::max_memory_width_bytes) pass(held_.size() - coresight::max_memory_width_bytes);
    }
    std::uint64_t finish() {
        const std::size_t trace = coresight::strip_bypass_padding(held_).size();
        const std::size_t padding = held_.size() - trace;
        pass(trace);
        return padding;
    }

private:
    void pass(std::size_t count) {
        stream_.add(Bytes(held_).first(count), {passed_});
        held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(count));
        passed_ += count;
    }
    Stream& stream_;
    std::vector<std::uint8_t> held_;
    std::uint64_t passed_ = 0;
};

class Runner {
public:
    Runner(const Session& session, std::span<const Source* const> selected, const MakeConsumer& make,
           const Progress& progress)
        : session_(session), selected_(selected), make_(make), progress_(progress) {}

    Report run() {
        if (progress_) find_sizes();
        for (const capture::Buffer& buffer : session_.capture.buffers) run(buffer);
        return std::move(report_);
    }

private:
    void find_sizes() {
        of_ = 0;
        for (const capture::Buffer& buffer : session_.capture.buffers) {
            const auto stream = capture::concatenate(buffer.files);
            const auto size = stream.has_value() ? (*stream)->size() : std::nullopt;
            if (!size) return of_.reset();
            *of_ += *size;
        }
    }

    void run(const capture::Buffer& buffer) {
        BufferReport report;
        report.name = buffer.name;
        report.buffer = &buffer;
        report.framed = buffer.format != capture::Buffer::Format::source_data;
        std::vector<std::unique_ptr<Stream>> streams;
        for (const std::string& name : buffer.sources)
            for (const Source* source : selected_)
                if (source->name == name) streams.push_back(std::make_unique<Stream>(*source, buffer, make_));

        auto opened = capture::concatenate(buffer.files);
        std::uint64_t padding = 0;
        if (!opened) {
            report.error = opened.error();
        } else if (buffer.format == capture::Buffer::Format::unknown) {
            report.error = Error{Errc::unsupported, "buffer '" + buffer.name + "' has format '" + buffer.format_name +
                                                        "'; known are coresight, source_data and dstream_coresight"};
        } else if (report.framed) {
            const bool syncs = buffer.format == capture::Buffer::Format::dstream_coresight;
            Framed framed(streams, syncs ? coresight::Framing::tpiu : coresight::Framing::aligned, report);
            read(**opened, report, streams, [&](Bytes bytes) { framed.feed(bytes); });
            framed.finish();
        } else if (!streams.empty()) {
            Bare bare(*streams.front());
            read(**opened, report, streams, [&](Bytes bytes) { bare.feed(bytes); });
            padding = bare.finish();
        }
        for (const auto& stream : streams) {
            report_.streams.push_back(stream->finish(padding));
            padding = 0;
        }
        report_.buffers.push_back(std::move(report));
    }

    template <class Take>
    void read(capture::ByteStream& input, BufferReport& report, std::vector<std::unique_ptr<Stream>>& streams,
              Take&& take) {
        std::vector<std::uint8_t> piece(piece_bytes);
        for (;;) {
            const auto count = input.read(piece);
            if (!count) {
                report.error = count.error();
                return;
            }
            if (*count == 0) return;
            take(Bytes(piece).first(*count));
            for (const auto& stream : streams) stream->end_piece();
            report.bytes += *count;
            done_ += *count;
            if (progress_) progress_(done_, of_);
        }
    }

    const Session& session_;
    const std::span<const Source* const> selected_;
    const MakeConsumer& make_;
    const Progress& progress_;
    Report report_;
    std::uint64_t done_ = 0;
    std::optional<std::uint64_t> of_;
};

template <class Decoder>
class FlowConsumer final : public Consumer {
public:
    FlowConsumer(const StreamInfo& stream, flow::Sink& sink)
        : memory_(stream.source.memory), out_(blocks_, sink), decoder_(stream.source.config, *memory_, out_) {}
    // Delivers at once, as ParallelConsumer does: several sources then tell in one order with any number of threads.
    void feed(Bytes bytes) override {
        decoder_.feed(bytes);
        out_.flush();
    }
    void reset() override {
        decoder_.reset();
        out_.flush();
    }
    void finish() override { decoder_.finish(); }
    void flush() override { out_.flush(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return decoder_.pending(); }
    [[nodiscard]] std::uint64_t packets() const { return decoder_.packets(); }

private:
    std::shared_ptr<const image::MemoryMap> memory_;
    flow::BlockTable blocks_;
    flow::BatchWriter out_;
    Decoder decoder_;
};

class ParallelConsumer final : public Consumer {
public:
    ParallelConsumer(const StreamInfo& stream, flow::Sink& sink, unsigned jobs)
        : memory_(stream.source.memory),
          sink_(sink),
          decoder_(
              stream.source.config, *memory_, blocks_, sink,
              {.workers = jobs,
               .ranges =
                   sink.counts_suffice() ? pft::ParallelDecoder::Ranges::counted : pft::ParallelDecoder::Ranges::told,
               // Some ten thousand rows of text are in memory for each piece.
               .piece_bytes = sink.split() == flow::Split::per_chunk ? std::size_t{1} << 13 : std::size_t{1} << 14}) {}
    void feed(Bytes bytes) override { decoder_.feed(bytes); }
    void reset() override { decoder_.reset(); }
    void finish() override {
        decoder_.finish();
        if (sink_.counts_suffice()) sink_.take_counts({blocks_.blocks(), decoder_.counts(), decoder_.cycles()});
    }
    void flush() override { decoder_.flush(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return decoder_.pending(); }
    [[nodiscard]] std::uint64_t packets() const { return decoder_.packets(); }

private:
    std::shared_ptr<const image::MemoryMap> memory_;
    flow::Sink& sink_;
    flow::BlockTable blocks_;
    pft::ParallelDecoder decoder_;
};

}  // namespace

Report run(const Session& session, std::span<const Source* const> selected, const MakeConsumer& make,
           const Progress& progress) {
    return Runner(session, selected, make, progress).run();
}

std::unique_ptr<Consumer> flow_consumer(const StreamInfo& stream, flow::Sink& sink, DecoderKind kind, unsigned jobs) {
    if (kind == DecoderKind::fast && (jobs > 1 || sink.counts_suffice()))
        return std::make_unique<ParallelConsumer>(stream, sink, std::max(1U, jobs));
    if (kind == DecoderKind::reference) return std::make_unique<FlowConsumer<pft::ReferenceDecoder>>(stream, sink);
    return std::make_unique<FlowConsumer<pft::Decoder>>(stream, sink);
}

std::uint64_t packets(const Consumer& consumer) {
    if (const auto* fast = dynamic_cast<const FlowConsumer<pft::Decoder>*>(&consumer)) return fast->packets();
    if (const auto* parallel = dynamic_cast<const ParallelConsumer*>(&consumer)) return parallel->packets();
    if (const auto* reference = dynamic_cast<const FlowConsumer<pft::ReferenceDecoder>*>(&consumer))
        return reference->packets();
    return 0;
}

}  // namespace waymark::pipeline
