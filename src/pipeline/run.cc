#include "waymark/pipeline/run.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <iterator>
#include <mutex>
#include <numeric>
#include <thread>
#include <utility>

#include "waymark/capture/byte_stream.h"
#include "waymark/coresight/bypass.h"

namespace waymark::pipeline {

namespace {

constexpr std::size_t piece_bytes = std::size_t{1} << 22;
constexpr std::size_t most_gaps = 100;

/// Bytes under IDs that no source of a buffer has.
class Strays {
public:
    Strays(const Session& session, const capture::Buffer& buffer) : any_source_(buffer.other_sources) {
        for (const Source& source : session.sources) {
            if (std::find(buffer.sources.begin(), buffer.sources.end(), source.name) == buffer.sources.end()) continue;
            if (source.trace_id)
                described_[source.trace_id->value] = true;
            else
                any_source_ = true;
        }
    }
    [[nodiscard]] bool is_described(coresight::TraceId id) const { return described_[id.value]; }
    /// Bytes of source IDs that are not described count, too.
    [[nodiscard]] bool takes(coresight::TraceId id) const {
        return coresight::is_source(id) ? !described_[id.value] && !any_source_ : true;
    }
    void note(coresight::TraceId id, std::size_t bytes, Offset first) {
        Seen& seen = seen_[id.value];
        if (seen.stray.bytes == 0) seen.stray.first = first;
        // Between bytes of one stretch there are an auxiliary byte and a repeated ID, or syncs and a footer.
        constexpr std::uint64_t apart = 24;
        if (seen.stray.bytes == 0 || first.value > seen.end.value + apart) ++seen.stray.stretches;
        seen.stray.bytes += bytes;
        seen.end = first + bytes;
    }
    /// A formatter announces a source again and again, and repeats the ID in the eighth frame at the latest; damage to
    /// an ID holds until then.
    [[nodiscard]] bool is_damage(coresight::TraceId id) const {
        constexpr std::uint64_t stretches_of_a_source = 8, bytes_of_a_source = 1024;
        const Stray& stray = seen_[id.value].stray;
        return !coresight::is_source(id) ||
               (stray.stretches < stretches_of_a_source && stray.bytes < bytes_of_a_source);
    }
    [[nodiscard]] std::vector<Stray> all() const {
        std::vector<Stray> out;
        for (unsigned i = 0; i < coresight::trace_ids; ++i) {
            if (seen_[i].stray.bytes == 0) continue;
            out.push_back(seen_[i].stray);
            out.back().id = {static_cast<std::uint8_t>(i)};
            out.back().damage = is_damage(out.back().id);
        }
        return out;
    }

private:
    struct Seen {
        Stray stray;
        Offset end{};
    };
    bool any_source_ = false;  // undescribed IDs are nothing strange
    std::array<bool, coresight::trace_ids> described_{};
    std::array<Seen, coresight::trace_ids> seen_{};
};

/// One source's stream while its buffer is read.
class Stream {
public:
    Stream(const Source& source, const capture::Buffer& buffer, const Strays& strays, const MakeConsumer& make)
        : source_(source), buffer_(buffer), strays_(strays), make_(make) {
        if (buffer.container == nullptr) start();
    }

    [[nodiscard]] const Source& source() const { return source_; }
    /// It is in the buffer.
    [[nodiscard]] bool started() const { return started_; }

    void add(Bytes bytes, Offset capture) {
        if (!started_) [[unlikely]]
            start();
        offsets_.add(position(), capture);
        waiting_.insert(waiting_.end(), bytes.begin(), bytes.end());
        last_ = capture + bytes.size();
    }
    /// Bytes of this ID came here, which may be missing from this stream.
    void stray(coresight::TraceId id) {
        // All IDs that come here are damage, so one break at a place is enough.
        if (!breaks_.empty() && breaks_.back().at == position().value) return;
        breaks_.push_back({position().value, id});
    }
    void reset() {
        pass_on();
        if (consumer_) consumer_->reset();
    }
    /// A part begins, which is borrowed until the next one.
    void begin(const capture::BufferPart& part) {
        part_ = &part;
        if (!started_) return;
        pass_on();
        if (!consumer_) return;
        if (!part.follows) consumer_->reset();
        consumer_->begin(part);
    }
    /// The piece ends: whoever prints can still map its offsets.
    void end_piece() {
        const Offset begin{fed_};
        pass_on();
        if (!consumer_) return offsets_.forget(position(), {});
        consumer_->flush();
        offsets_.forget(begin, consumer_->pending());
    }
    /// All bytes added so far are passed on, and they end inside a packet.
    [[nodiscard]] bool amid_packet() {
        pass_on();
        return consumer_ && consumer_->amid_packet();
    }
    StreamReport finish(std::uint64_t padding) {
        pass_on();
        const bool amid = consumer_ && fed_ != 0 && consumer_->amid_packet();
        if (consumer_) consumer_->finish();
        return {&source_, buffer_.name,         fed_,
                padding,  std::move(consumer_), amid ? std::optional(last_) : std::nullopt};
    }

private:
    struct Break {
        std::uint64_t at{};  // in the stream
        coresight::TraceId id;
    };
    [[nodiscard]] Offset position() const { return {fed_ - passed_ + waiting_.size()}; }
    void start() {
        started_ = true;
        consumer_ = make_({source_, buffer_, offsets_});
        if (consumer_ && part_ != nullptr) consumer_->begin(*part_);
    }
    /// Where bytes went astray, what follows does not continue what came before. Whose they were is judged only now,
    /// when most of what the piece holds of them is known.
    void pass_on() {
        std::uint64_t begun_anew_at = ~std::uint64_t{0};
        for (const Break& b : breaks_) {
            if (b.at == begun_anew_at || !strays_.is_damage(b.id)) continue;
            pass_on_up_to(b.at);
            if (consumer_) consumer_->reset();
            begun_anew_at = b.at;
        }
        breaks_.clear();
        pass_on_up_to(position().value);
        waiting_.clear();
        passed_ = 0;
    }
    void pass_on_up_to(std::uint64_t end) {
        const std::uint64_t begin = fed_ - passed_;
        const Bytes now = Bytes(waiting_).subspan(passed_, end - begin - passed_);
        if (now.empty()) return;
        if (consumer_) consumer_->feed(now);
        fed_ += now.size();
        passed_ += now.size();
    }

    const Source& source_;
    const capture::Buffer& buffer_;
    const Strays& strays_;
    const MakeConsumer& make_;
    OffsetMap offsets_;
    bool started_ = false;
    const capture::BufferPart* part_ = nullptr;
    std::unique_ptr<Consumer> consumer_;
    std::vector<std::uint8_t> waiting_;
    std::vector<Break> breaks_;
    std::size_t passed_ = 0;  // of waiting_
    std::uint64_t fed_ = 0;
    Offset last_{};  // one past the last byte, in the buffer
};

/// A buffer of frames: bytes to streams by trace ID.
class Framed {
public:
    Framed(std::vector<std::unique_ptr<Stream>>& streams, Strays& strays, bool dstream, BufferReport& report)
        : streams_(streams), strays_(strays), report_(report) {
        if (!dstream) deformatter_.emplace(report_.layout);
        for (const auto& stream : streams_)
            if (stream->source().trace_id && by_id_[stream->source().trace_id->value] == nullptr)
                by_id_[stream->source().trace_id->value] = stream.get();
    }

    /// Frames begin anew, `at` bytes into the buffer; the source of what comes first is not known.
    void begin_part(std::uint64_t at) {
        if (deformatter_) {
            deformatter_->finish(*this);
            add(report_.frames, deformatter_->totals(), base_);
        }
        deformatter_.emplace(report_.layout);
        base_ = at;
    }
    void feed(Bytes bytes) {
        if (deformatter_) return deformatter_->feed(bytes, *this);
        head_.insert(head_.end(), bytes.begin(), bytes.end());
        if (head_.size() >= layout_bytes) begin();
    }
    void finish() {
        if (!deformatter_) begin();
        deformatter_->finish(*this);
        add(report_.frames, deformatter_->totals(), base_);
        report_.strays = strays_.all();
    }
    /// Bytes of other sources that came after this one's last, where that was inside a packet.
    [[nodiscard]] std::uint64_t bytes_after(const StreamReport& stream) const {
        return stream.source->trace_id ? sum_ - last_sum_[stream.source->trace_id->value] : 0;
    }

    // What coresight::FrameHandler asks for.
    void data(coresight::TraceId id, Bytes bytes, Offset first) {
        sum_ += bytes.size();
        last_sum_[id.value] = sum_;
        if (Stream* stream = by_id_[id.value]) [[likely]]
            return stream->add(bytes, first + base_);
        if (!strays_.is_described(id)) stray(id, bytes, first);
    }
    void stray(coresight::TraceId id, Bytes bytes, Offset first) {
        if (!strays_.takes(id)) return;
        strays_.note(id, bytes.size(), first + base_);
        // An ID that is not described may be a source's all the same; that costs the others nothing.
        if (coresight::is_source(id)) return;
        for (const auto& stream : streams_) stream->stray(id);
    }
    void trigger(coresight::TraceId id, Offset at, std::uint8_t payload) {
        // 0, or the source that triggered (6.1).
        if (payload == 0 || (payload < coresight::trace_ids && strays_.is_described({payload}))) return;
        stray(id, Bytes(&payload, 1), at);
    }
    void gap(const Gap& gap) {
        if (report_.gaps.size() < most_gaps) report_.gaps.push_back({gap.first + base_, gap.end + base_, gap.reason});
    }
    void reset(Offset) {
        for (const auto& stream : streams_) stream->reset();
    }

private:
    static constexpr std::size_t layout_bytes = std::size_t{1} << 16;
    static void add(coresight::Totals& to, const coresight::Totals& from, std::uint64_t base) {
        to.bytes_read += from.bytes_read;
        to.id_bytes += from.id_bytes;
        to.aux_bytes += from.aux_bytes;
        to.fsyncs += from.fsyncs;
        to.hsyncs += from.hsyncs;
        for (std::size_t i = 0; i < to.data.size(); ++i) to.data[i] += from.data[i];
        to.footer_bytes += from.footer_bytes;
        to.unassociated += from.unassociated;
        for (std::size_t i = 0; i < to.lost.size(); ++i) to.lost[i] += from.lost[i];
        to.frames += from.frames;
        to.barriers += from.barriers;
        to.damaged_frames += from.damaged_frames;
        to.sync_losses += from.sync_losses;
        const auto first = [&](std::optional<Offset>& a, const std::optional<Offset>& b) {
            if (!a && b) a = *b + base;
        };
        first(to.first_forbidden, from.first_forbidden);
        first(to.first_id, from.first_id);
        first(to.first_fsync, from.first_fsync);
    }
    void begin() {
        report_.layout = coresight::dstream_layout(head_);
        deformatter_.emplace(report_.layout);
        deformatter_->feed(head_, *this);
        head_ = {};
    }

    std::vector<std::unique_ptr<Stream>>& streams_;
    Strays& strays_;
    BufferReport& report_;
    std::vector<std::uint8_t> head_;  // until the layout is known
    std::optional<coresight::DstreamDeformatter> deformatter_;
    std::array<Stream*, coresight::trace_ids> by_id_{};
    std::uint64_t base_ = 0;  // what the deformatter's offsets count from
    std::uint64_t sum_ = 0;   // of bytes of sources
    std::array<std::uint64_t, coresight::trace_ids> last_sum_{};
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
        if (padding == 0 || !stream_.amid_packet()) return padding;
        // The last packet needs the byte 0x01, so it is no end mark; zeros after the packet are padding all the same.
        pass(padding);
        return 0;
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

/// Counts bytes of all buffers; calls come from several threads.
class ProgressSum {
public:
    ProgressSum(const Progress& progress, std::optional<std::uint64_t> of) : progress_(progress), of_(of) {}
    void add(std::uint64_t bytes) {
        if (!progress_) return;
        const std::scoped_lock lock(mutex_);
        done_ += bytes;
        progress_(done_, of_);
    }

private:
    const Progress& progress_;
    const std::optional<std::uint64_t> of_;
    std::mutex mutex_;
    std::uint64_t done_ = 0;
};

/// Reads one buffer.
class BufferRunner {
public:
    BufferRunner(const Session& session, std::span<const Source* const> selected, const MakeConsumer& make,
                 ProgressSum& progress, const OpenBuffer& open)
        : session_(session), selected_(selected), make_(make), progress_(progress), open_(open) {}

    Report run(const capture::Buffer& buffer) {
        Report out;
        BufferReport& report = out.buffers.emplace_back();
        report.name = buffer.name;
        report.buffer = &buffer;
        report.framed = buffer.format != capture::Buffer::Format::source_data;
        Strays strays(session_, buffer);
        std::vector<std::unique_ptr<Stream>> streams;
        for (const std::string& name : buffer.sources)
            for (const Source* source : selected_)
                if (source->name == name) streams.push_back(std::make_unique<Stream>(*source, buffer, strays, make_));

        auto opened = open_ ? open_(buffer) : capture::open_buffer(buffer);
        std::uint64_t padding = 0;
        std::optional<Framed> framed;
        if (!opened) {
            report.error = opened.error();
        } else if (buffer.format == capture::Buffer::Format::unknown) {
            report.error = Error{Errc::unsupported, "buffer '" + buffer.name + "' has format '" + buffer.format_name +
                                                        "'; known are coresight, source_data and dstream_coresight"};
        } else if (buffer.container != nullptr && !open_) {
            run_parts(buffer, report, streams, strays, framed);
        } else if (report.framed) {
            framed.emplace(streams, strays, buffer.format == capture::Buffer::Format::dstream_coresight, report);
            read(**opened, report, streams, [&](Bytes bytes) { framed->feed(bytes); });
            framed->finish();
        } else if (!streams.empty()) {
            Bare bare(*streams.front());
            read(**opened, report, streams, [&](Bytes bytes) { bare.feed(bytes); });
            padding = bare.finish();
        }
        for (const auto& stream : streams) {
            if (!stream->started()) continue;
            StreamReport finished = stream->finish(padding);
            finished.bytes_of_others = framed ? framed->bytes_after(finished) : 0;
            // A port's funnel holds back a few bytes of each source until it has more.
            constexpr std::uint64_t sudden = 256;
            if (finished.bytes_of_others < sudden) finished.silent_from.reset();
            out.streams.push_back(std::move(finished));
            padding = 0;
        }
        return out;
    }

private:
    /// A buffer that lies in parts of a file: each that does not follow the one before begins anew.
    void run_parts(const capture::Buffer& buffer, BufferReport& report, std::vector<std::unique_ptr<Stream>>& streams,
                   Strays& strays, std::optional<Framed>& framed) {
        if (report.framed) framed.emplace(streams, strays, false, report);
        std::uint64_t at = 0;
        for (const capture::BufferPart& part : buffer.parts) {
            for (const auto& stream : streams) stream->begin(part);
            if (framed && !part.follows) framed->begin_part(at);
            const auto input = capture::open_part(*buffer.container, part);
            read(*input, report, streams, [&](Bytes bytes) {
                if (framed)
                    framed->feed(bytes);
                else if (!streams.empty())
                    streams.front()->add(bytes, {at});
                at += bytes.size();
            });
            if (report.error) break;
        }
        if (framed) framed->finish();
    }

    template <class Take>
    void read(capture::ByteStream& input, BufferReport& report, std::vector<std::unique_ptr<Stream>>& streams,
              Take&& take) {
        if (piece_.empty()) piece_.resize(piece_bytes);
        for (;;) {
            const auto count = input.read(piece_);
            if (!count) {
                report.error = count.error();
                return;
            }
            if (*count == 0) return;
            take(Bytes(piece_).first(*count));
            for (const auto& stream : streams) stream->end_piece();
            report.bytes += *count;
            progress_.add(*count);
        }
    }

    const Session& session_;
    const std::span<const Source* const> selected_;
    const MakeConsumer& make_;
    ProgressSum& progress_;
    const OpenBuffer& open_;
    std::vector<std::uint8_t> piece_;
};

/// How many bytes the buffers have in all; nothing: not known.
std::optional<std::uint64_t> size_of_all(const std::vector<capture::Buffer>& buffers) {
    std::uint64_t sum = 0;
    for (const capture::Buffer& buffer : buffers) {
        const auto stream = capture::open_buffer(buffer);
        const auto size = stream.has_value() ? (*stream)->size() : std::nullopt;
        if (!size) return std::nullopt;
        sum += *size;
    }
    return sum;
}

}  // namespace

Report run(const Session& session, std::span<const Source* const> selected, const MakeConsumer& make,
           const Progress& progress, const OpenBuffer& open, unsigned at_once) {
    const std::vector<capture::Buffer>& buffers = session.capture.buffers;
    ProgressSum sum(progress, progress ? size_of_all(buffers) : std::nullopt);
    std::vector<Report> reports(buffers.size());
    if (at_once <= 1) {
        BufferRunner runner(session, selected, make, sum, open);
        for (std::size_t i = 0; i < buffers.size(); ++i) reports[i] = runner.run(buffers[i]);
    } else {
        // The largest first, so that none is left for one thread alone at the end.
        std::vector<std::size_t> order(buffers.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
            return capture::bytes_in(buffers[a].parts) > capture::bytes_in(buffers[b].parts);
        });
        std::mutex making;
        const MakeConsumer make_one = [&](const StreamInfo& stream) {
            const std::scoped_lock lock(making);
            return make(stream);
        };
        std::atomic<std::size_t> next{0};
        std::exception_ptr failed;  // guarded by `making`
        const auto work = [&] {
            try {
                BufferRunner runner(session, selected, make_one, sum, open);
                for (std::size_t i = 0; (i = next++) < order.size();) reports[order[i]] = runner.run(buffers[order[i]]);
            } catch (...) {
                const std::scoped_lock lock(making);
                failed = std::current_exception();
            }
        };
        {
            std::vector<std::jthread> threads;
            for (unsigned i = 1; i < std::min<std::size_t>(at_once, buffers.size()); ++i) threads.emplace_back(work);
            work();
        }
        if (failed) std::rethrow_exception(failed);
    }
    Report out;
    for (Report& report : reports) {
        std::move(report.buffers.begin(), report.buffers.end(), std::back_inserter(out.buffers));
        std::move(report.streams.begin(), report.streams.end(), std::back_inserter(out.streams));
    }
    return out;
}

unsigned buffers_at_once(const Session& session, unsigned workers) {
    // Elsewhere a source may go on in another buffer.
    if (session.capture.spaces == nullptr) return 1;
    std::uint64_t bytes = 0, in_short_parts = 0;
    std::size_t buffers = 0;
    for (const capture::Buffer& buffer : session.capture.buffers) {
        buffers += buffer.parts.empty() ? 0 : 1;
        for (const capture::BufferPart& part : buffer.parts) {
            bytes += part.bytes;
            if (part.bytes < least_bytes_for_threads) in_short_parts += part.bytes;
        }
    }
    return in_short_parts > bytes / 4 ? static_cast<unsigned>(std::min<std::size_t>(workers, buffers)) : 1;
}

}  // namespace waymark::pipeline
