/// Splits the frames of a CoreSight formatter: the source and the position of each byte (docs/spec/pft.md, 6.1, 6.2,
/// 6.4, 6.5). Every byte read is counted in exactly one member of `Totals`.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>

#include "waymark/core/gap.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/coresight/frame.h"
#include "waymark/coresight/trace_id.h"

namespace waymark::coresight {

/// How frames are stored in a capture.
enum class Framing : std::uint8_t {
    aligned,  ///< memory of an ETB, TMC or ETR: a frame every 16 bytes, from the first byte on
    tpiu,     ///< continuous mode of a trace port: full and half sync packets among the frames; starts anywhere
};

struct DeformatterOptions {
    Framing framing = Framing::aligned;
    /// Aligned framing: a frame of four full syncs separates captures. If false, it counts as a damaged frame.
    bool reset_on_4_fsync = true;
};

/// How the bytes of a capture were used. After `Deformatter::finish`, `accounted() == bytes_read`; before, the sum
/// lacks the bytes of an incomplete frame and of an open gap.
struct Totals {
    std::uint64_t bytes_read{};

    std::uint64_t id_bytes{};   ///< mixed bytes that contained an ID
    std::uint64_t aux_bytes{};  ///< auxiliary bytes: one for each frame
    std::uint64_t fsyncs{};     ///< full sync packets, 4 bytes each; a barrier has four
    std::uint64_t hsyncs{};     ///< half sync packets, 2 bytes each

    /// Data by ID: sources, padding ([0x00]), flush and trigger indications, and reserved IDs. [0x7F] stays 0.
    std::array<std::uint64_t, trace_ids> data{};
    std::uint64_t footer_bytes{};  ///< not in frames: the ends of a DSTREAM's blocks (dstream.h)
    std::uint64_t unassociated{};  ///< data before the first ID, or between a reset and the next ID: without a source
    std::array<std::uint64_t, gap_reasons> lost{};  ///< bytes in gaps, by `GapReason`

    std::uint64_t frames{};          ///< split frames, without barriers and damaged ones
    std::uint64_t barriers{};        ///< frames of four full syncs
    std::uint64_t damaged_frames{};  ///< aligned framing: frames rejected because of a forbidden ID
    std::uint64_t sync_losses{};     ///< TPIU: how often frame synchronisation was lost

    /// The first 0xFF at an even place of a frame that is not a sync packet in an allowed place: the forbidden ID, or a
    /// full sync inside a frame. It indicates damage, or a wrong assumption about the capture.
    std::optional<Offset> first_forbidden{};
    std::optional<Offset> first_id{};     ///< the first ID byte; data before it are unassociated
    std::optional<Offset> first_fsync{};  ///< the first full sync packet

    [[nodiscard]] std::uint64_t sync_bytes() const { return 4 * fsyncs + 2 * hsyncs; }
    /// Bytes that the formatter added: IDs, auxiliary bytes, sync packets.
    [[nodiscard]] std::uint64_t overhead_bytes() const { return id_bytes + aux_bytes + sync_bytes(); }
    [[nodiscard]] std::uint64_t padding_bytes() const { return data[null_id.value]; }
    /// Number of data bytes with IDs of this class.
    [[nodiscard]] std::uint64_t data_bytes(TraceIdClass kind) const;
    [[nodiscard]] std::uint64_t lost_bytes() const;
    /// The sum over all uses of a byte.
    [[nodiscard]] std::uint64_t accounted() const;

    friend bool operator==(const Totals&, const Totals&) = default;
};

/// The functions that a deformatter calls, in the order of the capture.
///
/// - `data(id, bytes, first)`: 1 to 15 bytes of one source (0x01 to 0x6F). They are contiguous: byte i is at `first +
///   i`. Borrowed for the call.
/// - `trigger(id, at, payload)`: one byte under the ID of a trigger or a flush indication; it is not trace.
/// - `gap(gap)`: bytes without a result. `framing`: a damaged frame, or TPIU framing lost. `unsynchronised`: before the
///   first full sync. `incomplete_packet`: a part of a frame at the end.
/// - `reset(at)`: bytes from `at` on do not continue the bytes before it, so decoders of all sources start again. It
///   follows every `framing` gap and every barrier.
template <class H>
concept FrameHandler = requires(H& handler, TraceId id, Bytes bytes, Offset at, std::uint8_t payload, const Gap& gap) {
    handler.data(id, bytes, at);
    handler.trigger(id, at, payload);
    handler.gap(gap);
    handler.reset(at);
};

template <class H>
concept TakesStrays = requires(H& handler, TraceId id, Bytes bytes, Offset at) {
    handler.stray(id, bytes, at);
};

template <class H>
concept TakesUnassociated = requires(H& handler, Bytes bytes, Offset at) {
    handler.unassociated(bytes, at);
};

/// Push-style: `feed` the capture in pieces of any size, then `finish` once. The division into pieces never changes the
/// calls. Offsets count from the first byte fed. No allocation; one thread at a time.
///
/// The current ID persists across frames and pieces; a reset forgets it. Padding, reserved IDs and unassociated data
/// are counted, not delivered. A frame with the forbidden ID is lost as a whole: one impossible byte is a reason to
/// distrust its neighbours.
///
/// A handler with a function `stray(id, bytes, first)`, called like `data`, also receives the bytes of reserved IDs,
/// and padding that is not zero. No formatter sends them: they are damaged bytes, or bytes of a source whose ID was
/// damaged.
class Deformatter {
public:
    explicit Deformatter(DeformatterOptions options = {}) : options_(options) {
        // A trace port may be tapped at any moment, so its stream begins unsynchronised.
        if (options_.framing == Framing::tpiu) open_gap_ = Gap{{0}, {0}, GapReason::unsynchronised};
    }

    template <FrameHandler Handler>
    void feed(Bytes bytes, Handler& handler) {
        if (options_.framing == Framing::aligned) {
            feed_aligned(bytes, handler);
        } else {
            feed_tpiu(bytes, handler);
        }
    }

    /// The capture ends here. Nothing may be fed after it.
    template <FrameHandler Handler>
    void finish(Handler& handler) {
        if (open_gap_ && options_.framing == Framing::tpiu) open_gap_->end = position();
        close_gap(handler);
        if (filled_ > 0) report({frame_start_, position(), GapReason::incomplete_packet}, handler);
        filled_ = 0;
    }

    [[nodiscard]] const Totals& totals() const { return totals_; }
    /// The present ID for data, if one is known.
    [[nodiscard]] std::optional<TraceId> current() const { return current_; }

private:
    /// For each pair of a frame: bytes of half syncs before it in the frame, that is, the pair's displacement.
    using Displacement = std::array<std::uint64_t, frame_pairs>;
    static constexpr Displacement undisplaced{};

    /// The offset of the next byte to be read.
    [[nodiscard]] Offset position() const { return {totals_.bytes_read}; }

    template <class Handler>
    void feed_aligned(Bytes bytes, Handler& handler) {
        if (filled_ > 0) {
            bytes = fill(bytes);
            if (filled_ < frame_bytes) return;
            filled_ = 0;
            take_aligned(frame_.data(), handler);
        }
        while (bytes.size() >= frame_bytes) {
            totals_.bytes_read += frame_bytes;
            take_aligned(bytes.data(), handler);
            bytes = bytes.subspan(frame_bytes);
        }
        if (!bytes.empty()) {
            frame_start_ = position();
            fill(bytes);
        }
    }

    /// Completes the frame that spans two pieces; returns the rest.
    Bytes fill(Bytes bytes) {
        const auto count = std::min<std::size_t>(frame_bytes - filled_, bytes.size());
        std::copy_n(bytes.begin(), count, frame_.begin() + filled_);
        filled_ += static_cast<unsigned>(count);
        totals_.bytes_read += count;
        return bytes.subspan(count);
    }

    /// A complete frame in aligned framing, whose last byte has just been read.
    template <class Handler>
    WM_INLINE void take_aligned(const std::uint8_t* frame, Handler& handler) {
        const Offset start = position() - frame_bytes;
        if (!open_gap_ && take_data(frame, start, handler)) [[likely]]
            return;
        if (const auto pair = forbidden_pair(frame); pair < frame_pairs) [[unlikely]] {
            refuse_aligned(frame, start, pair, handler);
            return;
        }
        if (open_gap_) [[unlikely]]
            close_gap(handler);
        take_apart(frame, start, undisplaced, handler);
    }

    template <class Handler>
    [[gnu::noinline]] void refuse_aligned(const std::uint8_t* frame, Offset start, unsigned pair, Handler& handler) {
        current_.reset();
        if (options_.reset_on_4_fsync && std::equal(barrier_frame.begin(), barrier_frame.end(), frame)) {
            close_gap(handler);
            if (!totals_.first_fsync) totals_.first_fsync = start;
            totals_.fsyncs += 4;
            ++totals_.barriers;
            handler.reset(position());
            return;
        }
        if (!totals_.first_forbidden) totals_.first_forbidden = start + 2 * pair;
        ++totals_.damaged_frames;
        if (!open_gap_) open_gap_ = Gap{start, start, GapReason::framing};
        open_gap_->end = position();  // adjacent damaged frames form one gap
    }

    template <class Handler>
    void feed_tpiu(Bytes bytes, Handler& handler) {
        while (!bytes.empty()) {
            // The fast path: a complete frame without anything that looks like a sync packet.
            if (filled_ == 0 && !open_gap_ && bytes.size() >= frame_bytes &&
                forbidden_pair(bytes.data()) == frame_pairs) [[likely]] {
                const Offset start = position();
                totals_.bytes_read += frame_bytes;
                // Byte 14 is not 0xFF, so only the last byte can belong to a full sync.
                last_four_ = bytes[frame_bytes - 1];
                if (!take_data(bytes.data(), start, handler)) take_apart(bytes.data(), start, undisplaced, handler);
                bytes = bytes.subspan(frame_bytes);
            } else {
                take_tpiu(bytes.front(), handler);
                bytes = bytes.subspan(1);
            }
        }
    }

    /// One byte of a TPIU stream (6.4). Frame data cannot imitate a sync packet, because it has no 0xFF at an even
    /// place.
    template <class Handler>
    void take_tpiu(std::uint8_t byte, Handler& handler) {
        const Offset at = position();
        ++totals_.bytes_read;
        last_four_ = last_four_ << 8 | byte;
        if (open_gap_) {
            if (last_four_ == full_sync_word) regain(handler);
            return;
        }
        if (filled_ == 0) {
            frame_start_ = at;
            hsyncs_in_frame_ = 0;
        }
        if (filled_ % 2 == 0) displacement_[filled_ / 2] = 2 * hsyncs_in_frame_;
        frame_[filled_++] = byte;

        const bool maybe_full_sync = filled_ >= 2 && frame_[0] == 0xFF && frame_[1] == 0xFF;
        if (maybe_full_sync) {
            if (byte != full_sync[filled_ - 1]) {
                lose(frame_start_, handler);
            } else if (filled_ == full_sync.size()) {
                count_full_sync(frame_start_);
                filled_ = 0;
            }
        } else if (filled_ % 2 == 0 && frame_[(filled_ - 2) % frame_bytes] == 0xFF) {
            if (byte != half_sync[1]) {
                lose(at - 1, handler);
            } else {
                filled_ -= 2;
                // Inside a frame, it is counted with the frame: the gap of a lost frame includes its half syncs.
                ++(filled_ == 0 ? totals_.hsyncs : hsyncs_in_frame_);
            }
        } else if (filled_ == frame_bytes) {
            filled_ = 0;
            totals_.hsyncs += hsyncs_in_frame_;
            take_apart(frame_.data(), frame_start_, displacement_, handler);
        }
    }

    /// The pair at `offence` shows that frame synchronisation is lost: drops the present frame and searches a full
    /// sync.
    template <class Handler>
    void lose(Offset offence, Handler& handler) {
        if (!totals_.first_forbidden) totals_.first_forbidden = offence;
        ++totals_.sync_losses;
        current_.reset();
        filled_ = 0;
        open_gap_ = Gap{frame_start_, frame_start_, GapReason::framing};
        if (last_four_ == full_sync_word) regain(handler);
    }

    /// A full sync was found while unsynchronised; a frame follows.
    template <class Handler>
    void regain(Handler& handler) {
        const Offset sync = position() - full_sync.size();
        if (sync < open_gap_->first) {
            // Its first byte was mistaken for the auxiliary byte of a frame that was already delivered, and is counted
            // there.
            open_gap_->end = position();
        } else {
            open_gap_->end = sync;
            count_full_sync(sync);
        }
        close_gap(handler);
    }

    void count_full_sync(Offset at) {
        if (!totals_.first_fsync) totals_.first_fsync = at;
        ++totals_.fsyncs;
    }

    template <class Handler>
    void close_gap(Handler& handler) {
        if (!open_gap_) return;
        const Gap gap = *open_gap_;
        open_gap_.reset();
        if (gap.bytes() > 0) report(gap, handler);
        if (gap.reason == GapReason::framing) handler.reset(gap.end);
    }

    template <class Handler>
    void report(const Gap& gap, Handler& handler) {
        totals_.lost[static_cast<unsigned>(gap.reason)] += gap.bytes();
        handler.gap(gap);
    }

    /// The first pair whose mixed byte is 0xFF, or `frame_pairs`.
    WM_INLINE static unsigned forbidden_pair(const std::uint8_t* frame) {
        // One branchless test for the common case without a sync.
        bool any = false;
        for (unsigned k = 0; k < frame_pairs; ++k) any |= frame[2 * k] == 0xFF;
        if (!any) [[likely]]
            return frame_pairs;
        unsigned pair = 0;
        while (frame[2 * pair] != 0xFF) ++pair;
        return pair;
    }

    /// A complete frame without IDs, and so without the forbidden one. Returns false, without effect, if it has an ID.
    template <class Handler>
    WM_INLINE bool take_data(const std::uint8_t* frame, Offset start, Handler& handler) {
        // By four bits of the auxiliary byte: bit 0 of four mixed bytes, in the processor's byte order.
        static constexpr std::array<std::uint64_t, 16> mixed_bits = [] {
            std::array<std::uint64_t, 16> all{};
            for (unsigned bits = 0; bits < all.size(); ++bits) {
                std::array<std::uint8_t, 8> bytes{};
                for (unsigned k = 0; k < 4; ++k) bytes[2 * k] = static_cast<std::uint8_t>(bits >> k & 1U);
                all[bits] = std::bit_cast<std::uint64_t>(bytes);
            }
            return all;
        }();
        std::array<std::uint64_t, 2> data;
        std::memcpy(data.data(), frame, sizeof data);
        if (((data[0] | data[1]) & mixed_bits[15]) != 0) return false;
        data[0] |= mixed_bits[frame[frame_bytes - 1] & 0xfU];
        data[1] |= mixed_bits[frame[frame_bytes - 1] >> 4];
        ++totals_.frames;
        ++totals_.aux_bytes;
        deliver({reinterpret_cast<const std::uint8_t*>(data.data()), frame_data_bytes}, start, handler);
        return true;
    }

    /// 6.2: a whole frame without a forbidden ID. Pair k is at `start + 2k + displacement[k]`.
    template <class Handler>
    WM_INLINE void take_apart(const std::uint8_t* frame, Offset start, const Displacement& displacement,
                              Handler& handler) {
        ++totals_.frames;
        ++totals_.aux_bytes;
        const unsigned aux = frame[frame_bytes - 1];
        unsigned ids = 0;  // bit k: byte 2k is an ID
        std::array<std::uint8_t, frame_bytes> data;
        for (unsigned k = 0; k < frame_pairs; ++k) {
            ids |= (frame[2 * k] & 1U) << k;
            data[2 * k] = static_cast<std::uint8_t>((frame[2 * k] & 0xFEU) | (aux >> k & 1U));
            data[2 * k + 1] = frame[2 * k + 1];
        }

        // [run, end) is contiguous and belongs to the current ID.
        unsigned run = 0;
        const auto deliver_up_to = [&](unsigned end) {
            if (run < end) deliver({data.data() + run, end - run}, start + run + displacement[run / 2], handler);
        };
        for (unsigned k = 0; k < frame_pairs; ++k) {
            if (k > 0 && displacement[k] != displacement[k - 1]) {
                deliver_up_to(2 * k);
                run = std::max(run, 2 * k);
            }
            if ((ids >> k & 1U) == 0) continue;
            deliver_up_to(2 * k);
            run = 2 * k + 1;
            const bool delayed = k < frame_pairs - 1 && (aux >> k & 1U) != 0;
            if (delayed) {
                deliver_up_to(2 * k + 2);
                run = 2 * k + 2;
            }
            current_ = TraceId{static_cast<std::uint8_t>(frame[2 * k] >> 1)};
            ++totals_.id_bytes;
            if (!totals_.first_id) totals_.first_id = start + 2 * k + displacement[k];
        }
        deliver_up_to(frame_data_bytes);
    }

    /// Data of the current ID, contiguous from `first` on.
    template <class Handler>
    WM_INLINE void deliver(Bytes bytes, Offset first, Handler& handler) {
        if (!current_) {
            totals_.unassociated += bytes.size();
            if constexpr (TakesUnassociated<Handler>) handler.unassociated(bytes, first);
            return;
        }
        const TraceId id = *current_;
        totals_.data[id.value] += bytes.size();
        if (is_source(id)) [[likely]] {
            handler.data(id, bytes, first);
        } else if (id == trigger_id || id == flush_id) {
            for (std::size_t i = 0; i < bytes.size(); ++i) handler.trigger(id, first + i, bytes[i]);
        } else if constexpr (TakesStrays<Handler>) {
            if (id != null_id || std::any_of(bytes.begin(), bytes.end(), [](std::uint8_t b) { return b != 0; }))
                handler.stray(id, bytes, first);
        }
    }

    static constexpr std::uint32_t full_sync_word = 0xFFFFFF7F;  // the value of `last_four_` after a full sync

    DeformatterOptions options_;
    Totals totals_;
    std::optional<TraceId> current_;
    /// Aligned: damaged frames so far. TPIU: set while searching a full sync.
    std::optional<Gap> open_gap_;
    /// An incomplete frame of `filled_` bytes, which begins at `frame_start_`.
    std::array<std::uint8_t, frame_bytes> frame_{};
    unsigned filled_ = 0;
    Offset frame_start_;
    // TPIU only.
    Displacement displacement_{};
    std::uint64_t hsyncs_in_frame_ = 0;
    std::uint32_t last_four_ = 0;  // the last four bytes read, the newest in bits 7:0
};

}  // namespace waymark::coresight
