#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>

#include "flow_sink.h"
#include "sample_sink.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/packet_counter.h"
#include "waymark/pipeline/piece_reader.h"

namespace waymark::capi {

namespace {

/// Fed bytes, kept until they are read.
class FedBytes final : public capture::ByteStream {
public:
    explicit FedBytes(const Bytes& waiting) : waiting_(waiting) {}
    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        const std::size_t count = std::min(into.size(), waiting_.size() - taken_);
        std::copy_n(waiting_.begin() + static_cast<std::ptrdiff_t>(taken_), count, into.begin());
        taken_ += count;
        return count;
    }
    /// The waiting elements are new.
    void begin() { taken_ = 0; }
    [[nodiscard]] bool empty() const { return taken_ == waiting_.size(); }

private:
    const Bytes& waiting_;
    std::size_t taken_ = 0;
};

/// The results of decoding one stream.
struct DecodedStream {
    std::unique_ptr<StreamSink> flow;
    std::unique_ptr<PacketSink> packets;
    const capture::Buffer* buffer{};
    const pipeline::Source* source{};
};

constexpr std::size_t piece_between_progress = std::size_t{1} << 20;

struct Damaged {
    wm_severity severity{};
    std::string sentence;
};

wm_severity severity_of(pipeline::Severity severity) {
    return severity == pipeline::Severity::error     ? WM_BAD
           : severity == pipeline::Severity::warning ? WM_WARNING
                                                     : WM_NOTE;
}

}  // namespace
}  // namespace waymark::capi

struct wm_decoder {
    explicit wm_decoder(const wm_capture& of) : capture(of) {}

    const wm_capture& capture;
    waymark::capi::Callbacks callbacks;
    std::vector<std::string> selectors;
    unsigned jobs = 1;
    std::atomic<bool> cancelled = false;

    std::vector<waymark::capi::DecodedStream> streams;
    std::unique_ptr<waymark::pipeline::PieceReader> reading;
    waymark::Bytes waiting;                  ///< the fed bytes, borrowed during the call
    waymark::capi::FedBytes* fed = nullptr;  ///< reads `waiting`; owned by `reading`
    std::uint64_t size = 0;                  ///< for progress
    bool running = false;                    ///< a call on this decoder has not returned
    bool done = false;                       ///< the report is complete
    std::optional<waymark::Error> error;     ///< of reading
    std::vector<waymark::capi::Damaged> damage;
    wm_totals totals{};  ///< when done: bytes, packets and samples; before, all zero

    wm_status begin(wm_error** error_out);
    /// The error for a finished decoder: it decodes only once.
    wm_status finished(std::string_view function, wm_error** error_out) const;
    wm_status step(std::size_t bytes, bool& more, wm_error** error_out);
    wm_status samples(wm_error** error_out);

private:
    std::unique_ptr<waymark::pipeline::Consumer> consumer(const waymark::pipeline::StreamInfo& stream);
    wm_status stopped(wm_error** error_out) const;
    void conclude();
};

std::unique_ptr<waymark::pipeline::Consumer> wm_decoder::consumer(const waymark::pipeline::StreamInfo& stream) {
    using namespace waymark;
    const wm_source& source =
        capture.sources[static_cast<std::size_t>(&stream.source - capture.session.sources.data())];
    if (callbacks.packets != nullptr) {
        if (!stream.source.has_packets()) return nullptr;
        capi::DecodedStream& s = streams.emplace_back();
        s.packets = std::make_unique<capi::PacketSink>(source, stream, callbacks);
        s.buffer = &stream.buffer;
        s.source = &stream.source;
        return pipeline::packet_consumer(stream, *s.packets);
    }
    if (!stream.source.has_flow()) return nullptr;
    capi::DecodedStream& s = streams.emplace_back();
    if (callbacks.flow != nullptr)
        s.flow = std::make_unique<capi::BatchSink>(source, stream, callbacks);
    else
        s.flow = std::make_unique<capi::CountSink>(source, stream, callbacks);
    s.buffer = &stream.buffer;
    s.source = &stream.source;
    return pipeline::flow_consumer(stream, *s.flow, pipeline::DecoderKind::fast, capi::threads_for(jobs));
}

wm_status wm_decoder::begin(wm_error** error_out) {
    using namespace waymark;
    if (reading) return WM_OK;
    if (capture.kind != WM_CAPTURE_FLOW)
        return capi::fail(error_out, WM_USAGE,
                          fmt::format("{}: it gives only {}", capture.name,
                                      capture.kind == WM_CAPTURE_SAMPLES ? "samples, by wm_decoder_run, and answers"
                                                                         : "answers (wm_answers_of)"));
    const int wanted = (callbacks.flow != nullptr) + (callbacks.counts != nullptr) + (callbacks.packets != nullptr);
    if (wanted > 1 || callbacks.samples != nullptr)
        return capi::fail(
            error_out, WM_USAGE,
            wanted > 1
                ? "a decoder delivers either flow, or counts, or packets: use a second decoder for another output"
                : fmt::format("{} has program flow, but no samples", capture.name));
    auto selected = capture.session.select(selectors);
    if (!selected) return capi::fail(error_out, WM_NOT_FOUND, capture.named(selected.error()).message);
    pipeline::OpenBuffer open;
    if (capture.live)
        open = [this](const capture::Buffer&) -> Result<std::unique_ptr<capture::ByteStream>> {
            auto stream = std::make_unique<capi::FedBytes>(waiting);
            fed = stream.get();
            return std::unique_ptr<capture::ByteStream>(std::move(stream));
        };
    reading = std::make_unique<pipeline::PieceReader>(
        capture.session, std::move(*selected), [this](const pipeline::StreamInfo& stream) { return consumer(stream); },
        std::move(open));
    if (callbacks.progress != nullptr && !capture.live) size = reading->size().value_or(0);
    return WM_OK;
}

namespace {

/// `guarded`, unless the call comes from a callback of the decoder's own call.
template <class F>
wm_status entered(wm_decoder& decoder, std::string_view function, wm_error** error, F&& f) noexcept {
    return waymark::capi::guarded(error, [&] {
        if (decoder.running)
            return waymark::capi::fail(
                error, WM_USAGE,
                fmt::format("{}: a callback of this decoder called the function, or another thread did, while the "
                            "decoder was running; call it after that has returned, or use another decoder",
                            function));
        struct Leave {
            wm_decoder& of;
            ~Leave() { of.running = false; }
        } const leave{decoder};
        decoder.running = true;
        return std::forward<F>(f)();
    });
}

}  // namespace

wm_status wm_decoder::stopped(wm_error** error_out) const {
    return waymark::capi::fail(error_out, WM_CANCELLED, capture.name + ": decoding was cancelled");
}

wm_status wm_decoder::finished(std::string_view function, wm_error** error_out) const {
    if (cancelled || callbacks.stopped) return stopped(error_out);
    if (error) return waymark::capi::fail(error_out, *error);
    return waymark::capi::fail(
        error_out, WM_USAGE,
        fmt::format("{}: {} is decoded, and a decoder decodes only once; make another one with wm_decoder_new",
                    function, capture.name));
}

wm_status wm_decoder::step(std::size_t bytes, bool& more, wm_error** error_out) {
    using namespace waymark;
    more = false;
    if (cancelled || callbacks.stopped) return stopped(error_out);
    if (!done) {
        more = reading->step(bytes);
        if (!more) conclude();
        for (const capi::DecodedStream& stream : streams)
            if (stream.packets) stream.packets->deliver();
        if (more && callbacks.progress != nullptr && !callbacks.stopped &&
            callbacks.progress(reading->bytes(), size, callbacks.progress_user) != 0)
            callbacks.stopped = true;
    }
    if (cancelled || callbacks.stopped) return stopped(error_out);
    if (!more && error) return capi::fail(error_out, *error);
    return WM_OK;
}

/// All consumers are finished.
void wm_decoder::conclude() {
    using namespace waymark;
    done = true;
    fed = nullptr;
    const pipeline::Report report = reading->report();
    std::vector<pipeline::Damage> found;
    const auto add = [&](std::vector<pipeline::Damage> more) {
        std::move(more.begin(), more.end(), std::back_inserter(found));
    };
    for (const pipeline::BufferReport& buffer : report.buffers) {
        add(pipeline::damage_in(buffer));
        if (buffer.error && !error) {
            error = capture.named(*buffer.error);
            error->message = fmt::format("buffer {}: {}", buffer.name, error->message);
        }
    }
    for (const pipeline::StreamReport& stream : report.streams) {
        totals.bytes += stream.bytes;
        if (stream.consumer && callbacks.packets == nullptr) totals.packets += pipeline::packets(*stream.consumer);
        if (auto silence = pipeline::silence_of(stream)) found.push_back(std::move(*silence));
        for (const capi::DecodedStream& decoded : streams)
            if (decoded.flow && decoded.source == stream.source && decoded.buffer->name == stream.buffer)
                add(pipeline::damage_in(stream, decoded.flow->troubles(), decoded.flow->totals().ranges));
    }
    add(pipeline::code_damage(capture.session, report));
    for (pipeline::Damage& d : found)
        damage.push_back({capi::severity_of(d.severity), capture.named({Errc::usage, std::move(d.sentence)}).message});
}

wm_status wm_decoder::samples(wm_error** error_out) {
    using namespace waymark;
    if (callbacks.flow != nullptr || callbacks.counts != nullptr || callbacks.packets != nullptr)
        return capi::fail(error_out, WM_USAGE, fmt::format("{} has samples, but no program flow", capture.name));
    if (!selectors.empty())
        return capi::fail(error_out, WM_USAGE, fmt::format("{} has samples, but no sources to select", capture.name));
    done = true;
    class Observer final : public capture::perf::Progress {
    public:
        explicit Observer(wm_decoder& of) : of_(of) {}
        void at(std::uint64_t bytes, std::uint64_t all) override {
            capi::Callbacks& c = of_.callbacks;
            if (c.progress != nullptr && c.progress(bytes, all, c.progress_user) != 0) c.stopped = true;
            if (of_.cancelled || c.stopped) throw capi::Stopped{};
        }

    private:
        wm_decoder& of_;
    } observer(*this);
    try {
        auto opened = open::open_samples(capture.input.container(), capture.midr);
        if (!opened) return capi::fail(error_out, capture.named(opened.error()));
        capi::CallbackSampleSink sink(callbacks, totals.samples);
        const analysis::SampleTotals sums = analysis::run_samples(*opened, {}, sink, 1, &observer);
        for (const analysis::StreamTotals& stream : sums.streams) {
            totals.bytes += stream.totals.bytes;
            totals.gap_bytes += stream.totals.lost_bytes;
            for (const std::uint64_t gaps : stream.totals.gaps) totals.gaps += gaps;
        }
        for (const Error& e : opened->damage) damage.push_back({WM_BAD, capture.named(e).message});
        for (const capture::perf::Loss& loss : opened->data->losses)
            damage.push_back(
                {WM_BAD, fmt::format("{}, offset {:#x}: {}", capture.name, loss.first.value, loss.message)});
        if (totals.gap_bytes != 0)
            damage.push_back(
                {WM_WARNING, fmt::format("{}: {} bytes of trace are in no record", capture.name, totals.gap_bytes)});
        if (!sums.errors.empty()) return capi::fail(error_out, capture.named(sums.errors.front()));
    } catch (const capi::Stopped&) {
        return stopped(error_out);
    }
    return WM_OK;
}

extern "C" {

wm_status wm_decoder_new(const wm_capture* capture, wm_decoder** decoder, wm_error** error) {
    if (capture == nullptr) return waymark::capi::missing(error, "wm_decoder_new", "capture");
    if (decoder == nullptr) return waymark::capi::missing(error, "wm_decoder_new", "decoder");
    return waymark::capi::guarded(error, [&] {
        *decoder = new wm_decoder(*capture);
        return WM_OK;
    });
}

void wm_decoder_free(wm_decoder* decoder) { delete decoder; }

wm_status wm_decoder_select(wm_decoder* decoder, const char* source, wm_error** error) {
    if (decoder == nullptr) return waymark::capi::missing(error, "wm_decoder_select", "decoder");
    if (source == nullptr) return waymark::capi::missing(error, "wm_decoder_select", "source");
    return waymark::capi::guarded(error, [&] {
        const auto found = decoder->capture.session.select({source});
        if (!found) return waymark::capi::fail(error, WM_NOT_FOUND, decoder->capture.named(found.error()).message);
        decoder->selectors.emplace_back(source);
        return WM_OK;
    });
}

void wm_decoder_set_jobs(wm_decoder* decoder, unsigned jobs) { decoder->jobs = jobs; }

void wm_decoder_on_flow(wm_decoder* decoder, wm_flow_callback callback, void* user) {
    decoder->callbacks.flow = callback;
    decoder->callbacks.flow_user = user;
}
void wm_decoder_set_room(wm_decoder* decoder, wm_room_callback callback, void* user) {
    decoder->callbacks.room = callback;
    decoder->callbacks.room_user = user;
}
void wm_decoder_on_counts(wm_decoder* decoder, wm_counts_callback callback, void* user) {
    decoder->callbacks.counts = callback;
    decoder->callbacks.counts_user = user;
}
void wm_decoder_on_packets(wm_decoder* decoder, wm_packet_callback callback, void* user) {
    decoder->callbacks.packets = callback;
    decoder->callbacks.packets_user = user;
}
void wm_decoder_on_samples(wm_decoder* decoder, wm_sample_callback callback, void* user) {
    decoder->callbacks.samples = callback;
    decoder->callbacks.samples_user = user;
}
void wm_decoder_on_progress(wm_decoder* decoder, wm_progress_callback callback, void* user) {
    decoder->callbacks.progress = callback;
    decoder->callbacks.progress_user = user;
}
void wm_decoder_cancel(wm_decoder* decoder) { decoder->cancelled = true; }

uint64_t wm_flow_buffer_offset(const wm_flow_batch* batch, uint64_t stream_offset) {
    return static_cast<const waymark::OffsetMap*>(batch->internal)->capture({stream_offset}).value;
}

wm_status wm_decoder_step(wm_decoder* decoder, size_t bytes, int* more, wm_error** error) {
    if (decoder == nullptr) return waymark::capi::missing(error, "wm_decoder_step", "decoder");
    if (more == nullptr) return waymark::capi::missing(error, "wm_decoder_step", "more");
    *more = 0;
    return entered(*decoder, "wm_decoder_step", error, [&] {
        if (decoder->capture.live)
            return waymark::capi::fail(error, WM_USAGE, "a live capture is decoded by wm_decoder_feed");
        if (decoder->done) return decoder->finished("wm_decoder_step", error);
        if (const wm_status begun = decoder->begin(error); begun != WM_OK) return begun;
        bool goes_on = false;
        const wm_status status = decoder->step(bytes, goes_on, error);
        *more = goes_on ? 1 : 0;
        return status;
    });
}

wm_status wm_decoder_run(wm_decoder* decoder, wm_error** error) {
    if (decoder == nullptr) return waymark::capi::missing(error, "wm_decoder_run", "decoder");
    return entered(*decoder, "wm_decoder_run", error, [&] {
        if (decoder->capture.live)
            return waymark::capi::fail(error, WM_USAGE, "a live capture is decoded by wm_decoder_feed");
        if (decoder->done) return decoder->finished("wm_decoder_run", error);
        if (decoder->capture.kind == WM_CAPTURE_SAMPLES) return decoder->samples(error);
        if (const wm_status begun = decoder->begin(error); begun != WM_OK) return begun;
        wm_status status = WM_OK;
        for (bool more = true; more && status == WM_OK;)
            status = decoder->step(waymark::capi::piece_between_progress, more, error);
        return status;
    });
}

wm_status wm_decoder_feed(wm_decoder* decoder, const void* bytes, size_t count, wm_error** error) {
    if (decoder == nullptr) return waymark::capi::missing(error, "wm_decoder_feed", "decoder");
    if (bytes == nullptr && count != 0) return waymark::capi::missing(error, "wm_decoder_feed", "bytes");
    return entered(*decoder, "wm_decoder_feed", error, [&] {
        if (!decoder->capture.live)
            return waymark::capi::fail(error, WM_USAGE,
                                       decoder->capture.name + ": only a capture from wm_open_live can be fed");
        if (decoder->done) return waymark::capi::fail(error, WM_USAGE, "the stream is finished: nothing can be fed");
        if (const wm_status begun = decoder->begin(error); begun != WM_OK) return begun;
        decoder->waiting = {static_cast<const std::uint8_t*>(bytes), count};
        if (decoder->fed != nullptr) decoder->fed->begin();
        wm_status status = WM_OK;
        constexpr std::size_t piece = std::size_t{1} << 16;
        while (status == WM_OK && count != 0 && !decoder->done && (decoder->fed == nullptr || !decoder->fed->empty())) {
            bool more = false;
            status = decoder->step(piece, more, error);
        }
        decoder->waiting = {};
        if (decoder->fed != nullptr) decoder->fed->begin();
        return status;
    });
}

wm_status wm_decoder_finish(wm_decoder* decoder, wm_error** error) {
    if (decoder == nullptr) return waymark::capi::missing(error, "wm_decoder_finish", "decoder");
    return entered(*decoder, "wm_decoder_finish", error, [&] {
        if (!decoder->capture.live)
            return waymark::capi::fail(error, WM_USAGE,
                                       decoder->capture.name + ": only a capture from wm_open_live can be finished");
        if (const wm_status begun = decoder->begin(error); begun != WM_OK) return begun;
        bool more = true;
        wm_status status = WM_OK;
        while (status == WM_OK && more) status = decoder->step(1, more, error);
        return status;
    });
}

void wm_decoder_get_totals(const wm_decoder* decoder, wm_totals* totals) {
    wm_totals sum = decoder->totals;
    for (const waymark::capi::DecodedStream& stream : decoder->streams) {
        if (stream.flow) waymark::capi::add_totals(sum, stream.flow->totals());
        if (stream.packets) waymark::capi::add_totals(sum, stream.packets->totals());
    }
    if (!decoder->done && decoder->reading) sum.bytes = decoder->reading->bytes();
    waymark::capi::fill(totals, sum);
}

size_t wm_decoder_damage_count(const wm_decoder* decoder) { return decoder->damage.size(); }
const char* wm_decoder_damage(const wm_decoder* decoder, size_t index, wm_severity* severity) {
    if (index >= decoder->damage.size()) return nullptr;
    if (severity != nullptr) *severity = decoder->damage[index].severity;
    return decoder->damage[index].sentence.c_str();
}

}  // extern "C"
