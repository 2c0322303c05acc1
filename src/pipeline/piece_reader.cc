#include "waymark/pipeline/piece_reader.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "ring_bytes.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/coresight/bypass.h"

namespace waymark::pipeline {

namespace {

constexpr std::size_t most_gaps = 100;

/// Counts bytes under IDs that no source of a buffer has.
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
    /// Bytes of undescribed source IDs count too.
    [[nodiscard]] bool takes(coresight::TraceId id) const {
        return coresight::is_source(id) ? !described_[id.value] && !any_source_ : true;
    }
    void note(coresight::TraceId id, std::size_t bytes, Offset first) {
        Seen& seen = seen_[id.value];
        if (seen.stray.bytes == 0) seen.stray.first = first;
        // Distance between bytes of one stretch: an auxiliary byte and a repeated ID, or syncs and a footer.
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
    bool any_source_ = false;  // undescribed IDs are allowed
    std::array<bool, coresight::trace_ids> described_{};
    std::array<Seen, coresight::trace_ids> seen_{};
};

/// Consecutive bytes, most of which arrive as the data of a frame.
class StreamBytes {
public:
    void add(Bytes bytes) {
        if (bytes.size() > room_.size() - size_) [[unlikely]]
            room_.resize(std::max(2 * room_.size(), size_ + bytes.size()));
        // A copy of constant length needs no call.
        if (constexpr std::size_t frame = coresight::frame_data_bytes; bytes.size() == frame) [[likely]]
            std::copy_n(bytes.data(), frame, room_.data() + size_);
        else
            std::copy_n(bytes.data(), bytes.size(), room_.data() + size_);
        size_ += bytes.size();
    }
    [[nodiscard]] std::size_t size() const { return size_; }
    [[nodiscard]] Bytes all() const { return Bytes(room_).first(size_); }
    void clear() { size_ = 0; }

private:
    std::vector<std::uint8_t> room_;
    std::size_t size_ = 0;
};

/// The stream of one source while its buffer is read.
class Stream {
public:
    Stream(const Source& source, const capture::Buffer& buffer, const MakeConsumer& make)
        : source_(source), buffer_(buffer), make_(make) {
        if (buffer.container == nullptr) start();
    }

    [[nodiscard]] const Source& source() const { return source_; }
    /// Whether the buffer contains bytes of this stream.
    [[nodiscard]] bool started() const { return started_; }

    void add(Bytes bytes, Offset capture) {
        if (!started_) [[unlikely]]
            start();
        offsets_.add(position(), capture);
        waiting_.add(bytes);
        last_ = capture + bytes.size();
    }
    /// Bytes arrived under an impossible ID; they may be missing from this stream, so later bytes do not continue an
    /// earlier packet. One break at a place is enough, even if pieces end between such bytes.
    void stray() {
        if (broken_at_ == position().value) return;
        broken_at_ = position().value;
        breaks_.push_back(broken_at_);
    }
    void reset() {
        pass_on();
        if (consumer_) consumer_->reset(GapReason::framing);
    }
    /// A part begins. It is borrowed until the next part begins.
    void begin(const capture::BufferPart& part) {
        part_ = &part;
        if (!started_) return;
        pass_on();
        if (!consumer_) return;
        if (!part.follows) consumer_->reset(part.lost ? GapReason::missing : GapReason::stopped);
        consumer_->begin(part);
    }
    /// The piece ends: listings can still map its offsets.
    void end_piece() {
        const Offset begin{fed_};
        pass_on();
        if (!consumer_) return offsets_.forget(position(), {});
        consumer_->flush();
        offsets_.forget(std::min(begin, consumer_->held_from().value_or(begin)), consumer_->pending());
    }
    /// Whether all bytes so far are passed on, and end inside a packet.
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
    [[nodiscard]] Offset position() const { return {fed_ - passed_ + waiting_.size()}; }
    void start() {
        started_ = true;
        consumer_ = make_({source_, buffer_, offsets_});
        if (consumer_ && part_ != nullptr) consumer_->begin(*part_);
    }
    void pass_on() {
        for (const std::uint64_t at : breaks_) {
            pass_on_up_to(at);
            if (consumer_) consumer_->reset(GapReason::framing);
        }
        breaks_.clear();
        pass_on_up_to(position().value);
        waiting_.clear();
        passed_ = 0;
    }
    void pass_on_up_to(std::uint64_t end) {
        const std::uint64_t begin = fed_ - passed_;
        const Bytes now = waiting_.all().subspan(passed_, end - begin - passed_);
        if (now.empty()) return;
        if (consumer_) consumer_->feed(now);
        fed_ += now.size();
        passed_ += now.size();
    }

    const Source& source_;
    const capture::Buffer& buffer_;
    const MakeConsumer& make_;
    OffsetMap offsets_;
    bool started_ = false;
    const capture::BufferPart* part_ = nullptr;
    std::unique_ptr<Consumer> consumer_;
    StreamBytes waiting_;
    std::vector<std::uint64_t> breaks_;            // in the stream
    std::uint64_t broken_at_ = ~std::uint64_t{0};  // offset of the last break
    std::size_t passed_ = 0;                       // of waiting_
    std::uint64_t fed_ = 0;
    Offset last_{};  // one past the last byte, in the buffer
};

/// A buffer of frames: assigns bytes to streams by trace ID.
class Framed {
public:
    Framed(std::vector<std::unique_ptr<Stream>>& streams, Strays& strays, bool dstream, BufferReport& report)
        : streams_(streams), strays_(strays), report_(report) {
        if (!dstream) deformatter_.emplace(report_.layout);
        for (const auto& stream : streams_)
            if (stream->source().trace_id && by_id_[stream->source().trace_id->value] == nullptr)
                by_id_[stream->source().trace_id->value] = stream.get();
    }

    /// Frames begin again, `at` bytes into the buffer; the source of the first bytes is not known.
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
    /// Number of bytes of other sources after this stream's last byte, if that byte was inside a packet.
    [[nodiscard]] std::uint64_t bytes_after(const StreamReport& stream) const {
        return stream.source->trace_id ? sum_ - last_sum_[stream.source->trace_id->value] : 0;
    }

    // The interface that coresight::FrameHandler requires.
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
        // An undescribed ID may still belong to a source; the others are not affected.
        if (coresight::is_source(id)) return;
        for (const auto& stream : streams_) stream->stray();
    }
    void unassociated(Bytes bytes, Offset) {
        if (std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte != 0; }))
            report_.nobodys += bytes.size();
    }
    void trigger(coresight::TraceId id, Offset at, std::uint8_t payload) {
        // The payload is 0, or the ID of the source that triggered (6.1).
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
    std::uint64_t base_ = 0;  // base of the deformatter's offsets
    std::uint64_t sum_ = 0;   // number of bytes of sources
    std::array<std::uint64_t, coresight::trace_ids> last_sum_{};
};

/// A buffer with the bytes of one source. The last bytes wait until it is known whether they are the end mark.
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
        // The last packet needs the byte 0x01, so it is not the end mark; zeros after the packet are still padding.
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

/// A buffer that is being read. Streams keep references to its members.
class OpenedBuffer {
public:
    OpenedBuffer(const Session& session, std::span<const Source* const> selected, const MakeConsumer& make,
                 const capture::Buffer& of, bool live)
        : buffer_(of), strays_(session, of), live_(live) {
        report_.name = of.name;
        report_.buffer = &of;
        report_.framed = of.format != capture::Buffer::Format::source_data;
        for (const std::string& name : of.sources)
            for (const Source* source : selected)
                if (source->name == name) streams_.push_back(std::make_unique<Stream>(*source, of, make));
    }

    /// Prepares the receivers of its bytes. Returns false if nothing has to be read.
    bool begin(const OpenBuffer& open) {
        auto opened = open ? open(buffer_) : capture::open_buffer(buffer_);
        if (!opened) {
            report_.error = opened.error();
            return false;
        }
        if (buffer_.format == capture::Buffer::Format::unknown) {
            report_.error =
                Error{Errc::unsupported, "buffer '" + buffer_.name + "' has format '" + buffer_.format_name +
                                             "'; known are coresight, source_data and dstream_coresight"};
            return false;
        }
        in_parts_ = buffer_.container != nullptr && !open;
        if (report_.framed)
            framed_.emplace(streams_, strays_,
                            buffer_.format == capture::Buffer::Format::dstream_coresight && !in_parts_, report_);
        else if (streams_.empty() && !in_parts_)
            return false;
        else if (!in_parts_ && !live_)
            bare_.emplace(*streams_.front());
        if (!in_parts_) input_ = std::move(*opened);
        return true;
    }

    /// Reads into `piece`, and passes the bytes on. Returns 0 if the buffer ends here or cannot be read further.
    std::size_t read(std::span<std::uint8_t> piece) {
        for (;;) {
            if (!input_ && !next_part()) return 0;
            const auto count = input_->read(piece);
            if (count && *count != 0) {
                take(Bytes(piece).first(*count));
                for (const auto& stream : streams_) stream->end_piece();
                report_.bytes += *count;
                return *count;
            }
            if (!count) report_.error = count.error();
            input_.reset();
            if (!count || !in_parts_) return 0;
        }
    }

    void finish(Report& all) {
        if (framed_) framed_->finish();
        std::uint64_t padding = bare_ ? bare_->finish() : 0;
        for (const auto& stream : streams_) {
            if (!stream->started()) continue;
            StreamReport finished = stream->finish(padding);
            finished.bytes_of_others = framed_ ? framed_->bytes_after(finished) : 0;
            // A port's funnel holds back a few bytes of each source until it has more.
            constexpr std::uint64_t sudden = 256;
            if (finished.bytes_of_others < sudden) finished.silent_from.reset();
            all.streams.push_back(std::move(finished));
            padding = 0;
        }
        all.buffers.push_back(std::move(report_));
    }

private:
    /// Moves to the next part of a buffer that consists of parts of a file. A part that does not continue the previous
    /// one begins again.
    bool next_part() {
        if (!in_parts_ || part_ == buffer_.parts.size()) return false;
        const capture::BufferPart& next = buffer_.parts[part_++];
        for (const auto& stream : streams_) stream->begin(next);
        if (framed_ && !next.follows) framed_->begin_part(part_bytes_);
        place_ = dynamic_cast<const RingBytes*>(buffer_.container.get()) != nullptr ? next.offset : part_bytes_;
        input_ = capture::open_part(*buffer_.container, next);
        return true;
    }
    void take(Bytes bytes) {
        if (framed_)
            framed_->feed(bytes);
        else if (bare_)
            bare_->feed(bytes);
        else if (!streams_.empty())
            streams_.front()->add(bytes, {place_});
        part_bytes_ += bytes.size();
        place_ += bytes.size();
    }

    const capture::Buffer& buffer_;
    BufferReport report_;
    Strays strays_;
    std::vector<std::unique_ptr<Stream>> streams_;
    std::optional<Framed> framed_;
    std::optional<Bare> bare_;
    std::unique_ptr<capture::ByteStream> input_;
    const bool live_;
    bool in_parts_ = false;
    std::size_t part_ = 0;
    std::uint64_t part_bytes_ = 0;  // size of all parts read so far
    std::uint64_t place_ = 0;       // offset in the buffer of the next byte of a part
};

}  // namespace

class PieceReader::State {
public:
    State(const Session& session, std::vector<const Source*> selected, MakeConsumer make, OpenBuffer open,
          const capture::Buffer* only, bool live)
        : session_(session),
          selected_(std::move(selected)),
          make_(std::move(make)),
          open_(std::move(open)),
          live_(live),
          buffers_(only != nullptr ? std::span(only, 1) : std::span(session.capture.buffers)) {}

    bool step(std::size_t most_bytes) {
        const std::size_t size = std::max<std::size_t>(most_bytes, 1);
        // A vector would clear the memory, which costs time: most captures are smaller.
        if (size > piece_size_) piece_ = std::make_unique_for_overwrite<std::uint8_t[]>(piece_size_ = size);
        for (;;) {
            if (!now_) {
                if (next_ == buffers_.size()) return false;
                now_.emplace(session_, selected_, make_, buffers_[next_++], live_);
                if (!now_->begin(open_)) {
                    end();
                    continue;
                }
            }
            if (const std::size_t count = now_->read({piece_.get(), size}); count != 0) {
                done_ += count;
                return true;
            }
            end();
        }
    }
    [[nodiscard]] std::uint64_t bytes() const { return done_; }
    [[nodiscard]] std::optional<std::uint64_t> size() const {
        std::uint64_t sum = 0;
        for (const capture::Buffer& buffer : buffers_) {
            const auto stream = capture::open_buffer(buffer);
            const auto size = stream.has_value() ? (*stream)->size() : std::nullopt;
            if (!size) return std::nullopt;
            sum += *size;
        }
        return sum;
    }
    Report take_report() { return std::move(report_); }

private:
    void end() {
        now_->finish(report_);
        now_.reset();
    }

    const Session& session_;
    const std::vector<const Source*> selected_;
    const MakeConsumer make_;
    const OpenBuffer open_;
    const bool live_;
    const std::span<const capture::Buffer> buffers_;
    Report report_;
    std::optional<OpenedBuffer> now_;
    std::size_t next_ = 0;  // of the buffers
    std::unique_ptr<std::uint8_t[]> piece_;
    std::size_t piece_size_ = 0;
    std::uint64_t done_ = 0;
};

PieceReader::PieceReader(const Session& session, std::vector<const Source*> selected, MakeConsumer make,
                         OpenBuffer open, const capture::Buffer* only, bool live)
    : state_(std::make_unique<State>(session, std::move(selected), std::move(make), std::move(open), only, live)) {}
PieceReader::~PieceReader() = default;
bool PieceReader::step(std::size_t most_bytes) { return state_->step(most_bytes); }
std::uint64_t PieceReader::bytes() const { return state_->bytes(); }
std::optional<std::uint64_t> PieceReader::size() const { return state_->size(); }
Report PieceReader::report() { return state_->take_report(); }

}  // namespace waymark::pipeline
