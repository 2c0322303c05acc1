#include "waymark/serve/window.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "seekable.h"
#include "waymark/analysis/flow_answers.h"
#include "waymark/analysis/flow_sink.h"
#include "waymark/answers/account.h"
#include "waymark/answers/costs.h"
#include "waymark/core/numbers.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/cycle_spread.h"
#include "waymark/image/disassembly.h"
#include "waymark/isa/cores.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/flow_answers.h"
#include "waymark/pipeline/piece_reader.h"

namespace waymark::serve {

namespace {

using analysis::FlowSink;
using analysis::FlowWindow;

/// Passes everything to one sink, and only the part that ran in the window to another sink, which counts.
class Divider final : public flow::Sink {
public:
    Divider(flow::Sink& all, FlowSink& part, FlowWindow window) : all_(all), part_(part), window_(window) {}
    /// The stream begins in the middle of a longer one.
    void begin_behind(std::uint64_t ran, const flow::Context& context) {
        ran_ = ran;
        context_ = context;
    }
    void consume(const flow::Batch& batch) override {
        take_part(batch);
        all_.consume(batch);
    }
    [[nodiscard]] bool wants_cycles_in_ranges() const override { return true; }
    [[nodiscard]] std::uint64_t ran() const { return ran_; }
    /// The window has begun.
    [[nodiscard]] bool counts() const { return counts_; }

private:
    void take_part(const flow::Batch& batch) {
        std::size_t event = 0;
        std::vector<flow::Range> ranges;
        std::vector<flow::Event> events;
        const auto pass_on = [&] {
            if (!ranges.empty() || !events.empty())
                part_.consume({.blocks = batch.blocks, .base = batch.base, .ranges = ranges, .events = events});
            ranges.clear();
            events.clear();
        };
        const auto take_events = [&](std::size_t before) {
            for (; event < batch.events.size() && batch.events[event].before <= before; ++event) {
                if (const auto* context = std::get_if<flow::Context>(&batch.events[event].what)) context_ = *context;
                if (ran_ >= window_.end && counts_) continue;
                events.push_back(batch.events[event]);
                events.back().before = static_cast<std::uint32_t>(ranges.size());
            }
        };
        for (std::size_t i = 0; i < batch.ranges.size(); ++i) {
            take_events(i);
            flow::Range range = batch.ranges[i];
            const std::uint64_t each = batch.blocks[range.block()].instructions;
            std::uint32_t left = range.times;
            // Executions that begin before the window, within it, and after it.
            const auto until = [&](std::uint64_t end) {
                if (ran_ >= end || left == 0) return std::uint32_t{0};
                if (each == 0) return left;
                return static_cast<std::uint32_t>(std::min<std::uint64_t>(left, (end - ran_ + each - 1) / each));
            };
            const auto take = [&](std::uint32_t times) {
                if (times == 0) return;
                range.times = times;
                ranges.push_back(range);
                range.cycles = flow::no_cycles;  // they came once
                ran_ += each * times;
                left -= times;
            };
            if (!counts_) {
                take(until(window_.begin));
                if (left == 0) continue;
                pass_on();
                part_.count_anew(context_);
                counts_ = true;
            }
            take(until(window_.end));
            ran_ += each * left;
        }
        take_events(batch.ranges.size());
        pass_on();
    }

    flow::Sink& all_;
    FlowSink& part_;
    const FlowWindow window_;
    std::uint64_t ran_ = 0;
    flow::Context context_{};
    bool counts_ = false;
};

/// One source in one buffer.
class WindowStream final : public pipeline::Consumer {
public:
    WindowStream(const pipeline::Source& source, const capture::Buffer& buffer, FlowWindow window,
                 std::shared_ptr<const Point> point, const WindowOptions& options)
        : source_(source),
          buffer_(buffer),
          window_(window),
          point_(std::move(point)),
          code_(source.names->symbols, *source.memory),
          timeline_(source.configuration->cycle_counts(), options.most_slices, window),
          steps_(options.most_steps, &timeline_, window),
          all_(code_, offset, {.calls = true, .observer = &steps_}),
          // A part of a repeat may be outside of the window, so repeats are not counted at once.
          part_(code_, offset, {.calls = true, .ways = true, .limits = {.repeats = {.none = true}}}),
          divider_(steps_, part_, window),
          spread_(divider_),
          spreads_(source.configuration->cycle_counts_apart()),
          out_(blocks_, spreads_ ? static_cast<flow::Sink&>(spread_) : divider_),
          decoder_(cutting_decoder(source, out_)) {
        steps_.lead_to(all_);
        steps_.name_modes(has_modes_);
    }

    void feed(Bytes bytes) override {
        if (failed_) return;
        bytes_ += bytes.size();
        if (point_ && !begun_) {
            waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
            const std::size_t all = std::size_t{point_->skip} + point_->length;
            if (waiting_.size() < all) return;
            if (!begin_at_cut(Bytes(waiting_).subspan(point_->skip, point_->length))) return;
            const std::vector<std::uint8_t> rest(waiting_.begin() + static_cast<std::ptrdiff_t>(all), waiting_.end());
            waiting_.clear();
            return decode(rest);
        }
        decode(bytes);
    }
    void reset(GapReason why) override {
        // Before the place, nothing changes.
        if (point_ && !begun_) return;
        decoder_->reset(why);
        out_.flush();
    }
    void finish() override {
        if (point_ && !begun_) {
            failed_ = true;
            return;
        }
        decoder_->finish();
        out_.flush();
        spread_.release();
    }
    void flush() override { out_.flush(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return decoder_->pending(); }
    [[nodiscard]] bool amid_packet() override { return decoder_->amid_packet(); }

    /// Whether the whole window is decoded, and the place where it ended is known.
    [[nodiscard]] bool done() const {
        if (failed_) return true;
        if (divider_.ran() < window_.end || bytes_behind_ == 0) return false;
        // With timestamps, continues up to the first one after the window: it gives the pace before it. If no timestamp
        // came before a place, there is no pace.
        const auto& anchors = timeline_.anchors();
        const bool timed =
            anchors.size() < 2 ? anchors.empty() && point_ != nullptr : anchors.back().at > timeline_.end();
        constexpr std::uint64_t enough = std::uint64_t{1} << 16;
        return bytes_behind_ >= enough || (timeline_.end() != 0 && timed);
    }
    /// Whether the stream did not begin at the place in the index.
    [[nodiscard]] bool failed() const { return failed_; }
    [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
    [[nodiscard]] bool counts() const { return divider_.counts(); }

    /// After reading.
    analysis::FlowStream finished() {
        all_.finish();
        if (!divider_.counts()) part_.count_anew({});
        part_.finish();
        timeline_.finish(all_.now());
        return {&part_,  source_.label(), source_.configuration->waypoints(), buffer_.name, &timeline_,
                &steps_, has_modes_};
    }
    [[nodiscard]] const pipeline::Source& source() const { return source_; }
    [[nodiscard]] const std::string& buffer() const { return buffer_.name; }
    [[nodiscard]] const FlowSink& part() const { return part_; }

private:
    static std::uint64_t offset(Offset at) { return at.value; }

    bool begin_at_cut(Bytes head) {
        const std::optional<std::size_t> cut = decoder_->find(head, 0, head.size());
        if (!cut || *cut != head.size()) {
            failed_ = true;
            return false;
        }
        begun_ = true;
        const flow::Context context = decoder_->context(point_->memory);
        timeline_.begin_from(point_->timeline);
        steps_.begin_behind(point_->ran);
        divider_.begin_behind(point_->ran, context);
        all_.begin_from(point_->calls, context, blocks_);
        part_.begin_from(point_->calls, context, blocks_);
        decoder_->begin(Offset{point_->from + point_->length}, point_->memory);
        return true;
    }
    void decode(Bytes bytes) {
        // Reading does not continue far beyond the window.
        constexpr std::size_t most = std::size_t{1} << 12;
        while (!bytes.empty() && !done()) {
            const Bytes now = bytes.first(std::min(most, bytes.size()));
            decoder_->feed(now);
            out_.flush();
            if (divider_.ran() >= window_.end) bytes_behind_ += now.size();
            bytes = bytes.subspan(now.size());
        }
    }

    const pipeline::Source& source_;
    const bool has_modes_ = isa::core_profile(source_.core_type) == isa::CoreProfile::m;
    const capture::Buffer& buffer_;
    const FlowWindow window_;
    const std::shared_ptr<const Point> point_;
    analysis::FlowCode code_;
    analysis::FlowTimeline timeline_;
    analysis::FlowSteps steps_;
    FlowSink all_, part_;
    Divider divider_;
    flow::CycleSpread spread_;
    const bool spreads_;
    flow::BlockTable blocks_;
    flow::BatchWriter out_;
    std::unique_ptr<follow::Cutting> decoder_;
    std::vector<std::uint8_t> waiting_;
    bool begun_ = false, failed_ = false;
    std::uint64_t bytes_ = 0, bytes_behind_ = 0;
};

/// Passes a consumer that is stored elsewhere to a reader.
class Borrowed final : public pipeline::Consumer {
public:
    explicit Borrowed(WindowStream& to) : to_(to) {}
    void feed(Bytes bytes) override { to_.feed(bytes); }
    void reset(GapReason why) override { to_.reset(why); }
    void finish() override { to_.finish(); }
    void flush() override { to_.flush(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return to_.pending(); }
    [[nodiscard]] bool amid_packet() override { return to_.amid_packet(); }

private:
    WindowStream& to_;
};

/// Reads as much of the stream as its window needs.
Status read_stream(const pipeline::Session& session, const capture::Buffer& buffer, WindowStream& stream,
                   const std::shared_ptr<const Point>& point, const std::function<bool()>& stop) {
    const auto make = [&](const pipeline::StreamInfo&) -> std::unique_ptr<pipeline::Consumer> {
        return std::make_unique<Borrowed>(stream);
    };
    pipeline::OpenBuffer open;
    if (point) open = [&](const capture::Buffer& of) { return open_at(of, *point, stream.source().trace_id); };
    pipeline::PieceReader reader(session, {&stream.source()}, make, open, &buffer);
    constexpr std::size_t piece_bytes = std::size_t{1} << 15;
    bool more = true;
    while (!stream.done() && (more = reader.step(piece_bytes)))
        if (stop && stop()) return Error{Errc::unreadable, "the window was ended early"};
    if (!more)
        for (const pipeline::BufferReport& report : reader.report().buffers)
            if (report.error) return *report.error;
    if (stream.failed())
        return Error{Errc::bad_format,
                     fmt::format("the trace of {} has changed since its index was made", stream.source().label())};
    return Nothing{};
}

void disassemble(answers::Answers& out, const std::deque<WindowStream>& streams) {
    image::Disassembler disassembler;
    for (answers::Instruction& i : out.instructions)
        for (const WindowStream& s : streams) {
            // Uses the first state that has memory there, as in a whole report.
            for (const bool ns : {false, true})
                if (i.text.empty())
                    i.text = disassembler.text(*s.source().memory, {ns, false, {}, {}}, i.address, i.isa);
            if (!i.text.empty()) break;
        }
}

void summarise(answers::Answers& out, const std::deque<WindowStream>& streams) {
    std::uint64_t instructions = 0, ranges = 0, calls = 0, functions = 0;
    for (const WindowStream& s : streams)
        for (const analysis::FlowCounts* counts : s.part().counts())
            for (std::size_t edge = 0; edge < counts->times.size(); ++edge) {
                instructions += counts->times[edge] * counts->known.edges[edge].instructions;
                ranges += counts->times[edge];
            }
    const std::vector<answers::FunctionCosts> costs = answers::function_costs(out);
    for (std::size_t i = 0; i < costs.size(); ++i) {
        if (!answers::ran(costs[i])) continue;
        ++functions;
        if (!out.functions[i].synthetic) calls += costs[i].calls;
    }
    for (const auto& [name, value] :
         {std::pair("instructions", instructions), {"ranges", ranges}, {"calls", calls}, {"functions", functions}})
        out.summary.push_back({name, std::to_string(value)});
}

answers::Account account_of(const pipeline::Session& session, const std::vector<const pipeline::Source*>& selected,
                            const std::deque<WindowStream>& streams) {
    std::deque<pipeline::StreamReport> reports;
    std::vector<pipeline::DecodedStream> decoded;
    for (const WindowStream& s : streams) {
        pipeline::StreamReport& report = reports.emplace_back();
        report.source = &s.source();
        report.buffer = s.buffer();
        report.bytes = s.bytes();
        pipeline::DecodedStream& stream = decoded.emplace_back();
        stream = {&report, &s.part().troubles(), 0, 0};
        for (const analysis::FlowCounts* counts : s.part().counts())
            for (std::size_t edge = 0; edge < counts->times.size(); ++edge) {
                stream.instructions += counts->times[edge] * counts->known.edges[edge].instructions;
                stream.ranges += counts->times[edge];
            }
    }
    return pipeline::part_account(session, selected, decoded);
}

}  // namespace

Result<WindowAnswers> window_answers(const pipeline::Session& session,
                                     const std::vector<const pipeline::Source*>& selected, const Index& index,
                                     FlowWindow window, const WindowOptions& options) {
    WindowAnswers out;
    std::deque<WindowStream> streams;
    for (const capture::Buffer& buffer : session.capture.buffers)
        for (const pipeline::Source* source : selected) {
            if (!source->has_flow() ||
                std::find(buffer.sources.begin(), buffer.sources.end(), source->name) == buffer.sources.end())
                continue;
            const std::shared_ptr<const Point> point = index.before(buffer.name, source->name, window.begin);
            WindowStream& stream = streams.emplace_back(*source, buffer, window, point, options);
            WM_RETURN_IF_ERROR(read_stream(session, buffer, stream, point, options.stop));
            out.decoded_bytes += stream.bytes();
        }
    if (std::none_of(streams.begin(), streams.end(), [](const WindowStream& s) { return s.counts(); }))
        return Error{Errc::not_found, fmt::format("no source executed its instruction {}", grouped(window.begin))};

    std::vector<analysis::FlowStream> finished;
    std::vector<const pipeline::Names*> names;
    analysis::FlowAnswersOptions how;
    for (WindowStream& s : streams) {
        finished.push_back(s.finished());
        names.push_back(s.source().names.get());
        how.cycles |= s.source().configuration->cycle_counts();
    }
    const pipeline::Source& first = streams.front().source();
    out.answers.unit = first.protocol->unit_of(first.type);
    how.instructions = how.inlined = options.instructions;
    how.partial = true;
    out.answers.account = account_of(session, selected, streams);
    how.account = &out.answers.account;
    how.ticks_per_second =
        options.timestamp_hz != 0 ? options.timestamp_hz : session.capture.timestamp_frequency_hz.value_or(0);
    how.most_slices = options.most_slices;
    how.steps = &out.steps;
    how.window = window;
    pipeline::fill_by_names(out.answers, finished, names, how);
    disassemble(out.answers, streams);
    summarise(out.answers, streams);
    return out;
}

}  // namespace waymark::serve
