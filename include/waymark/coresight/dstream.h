/// The blocks in which a DSTREAM unit stores the frames of a trace port: 512 bytes, the last 8 of which are not trace
/// (docs/spec/pft.md, 6.5).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/core/gap.h"
#include "waymark/core/types.h"
#include "waymark/coresight/deformatter.h"

namespace waymark::coresight {

inline constexpr unsigned dstream_block_bytes = 512;
inline constexpr unsigned dstream_footer_bytes = 8;  ///< at the end of each block
inline constexpr unsigned dstream_frame_bytes = dstream_block_bytes - dstream_footer_bytes;

/// Removes the footers from the blocks. `first`: offset of `bytes` in the file.
[[nodiscard]] std::vector<std::uint8_t> without_dstream_footers(Bytes bytes, Offset first = {});

/// How a trace port's frames are stored.
struct DstreamLayout {
    Framing framing = Framing::tpiu;  ///< `aligned`: the port sent no syncs, the frames follow one another
    bool footers = false;             ///< each block ends in a footer
    friend bool operator==(const DstreamLayout&, const DstreamLayout&) = default;
};
/// The layout that best explains the first bytes of a file: whether blocks end in footers, and whether there are syncs.
/// If two are equally good, syncs and no footers are preferred. Frames without syncs and without footers are not
/// considered, since a DSTREAM does not write them. In less than two blocks, footers cannot be distinguished from
/// trace.
[[nodiscard]] DstreamLayout dstream_layout(Bytes head);

/// A deformatter that skips footers, if there are any. Offsets, gaps and totals refer to the file; a gap includes the
/// footers inside it, while `Totals::lost` does not.
class DstreamDeformatter {
public:
    /// `first`: offset in the file of the first byte fed, which locates the blocks. Offsets count from that
    /// byte.
    explicit DstreamDeformatter(DstreamLayout layout, Offset first = {})
        : footers_(layout.footers),
          phase_(static_cast<unsigned>(first.value % dstream_block_bytes)),
          deformatter_({.framing = layout.framing}) {}

    template <FrameHandler Handler>
    void feed(Bytes bytes, Handler& handler) {
        if (!footers_) return deformatter_.feed(bytes, handler);
        Mapped<Handler> mapped{*this, handler};
        while (!bytes.empty()) {
            const auto at = static_cast<unsigned>((phase_ + read_) % dstream_block_bytes);
            const bool footer = at >= dstream_frame_bytes;
            const auto count =
                std::min<std::size_t>(bytes.size(), (footer ? dstream_block_bytes : dstream_frame_bytes) - at);
            if (footer)
                footer_bytes_ += count;
            else
                deformatter_.feed(bytes.first(count), mapped);
            read_ += count;
            bytes = bytes.subspan(count);
        }
    }
    template <FrameHandler Handler>
    void finish(Handler& handler) {
        if (!footers_) return deformatter_.finish(handler);
        Mapped<Handler> mapped{*this, handler};
        deformatter_.finish(mapped);
    }

    [[nodiscard]] Totals totals() const {
        Totals totals = deformatter_.totals();
        if (!footers_) return totals;
        totals.footer_bytes = footer_bytes_;
        totals.bytes_read += footer_bytes_;
        for (auto* offset : {&totals.first_forbidden, &totals.first_id, &totals.first_fsync})
            if (*offset) **offset = place(**offset);
        return totals;
    }

private:
    /// Offset in the file of byte number `at` of the trace, without footers.
    [[nodiscard]] Offset place(Offset at) const {
        const std::uint64_t before = std::min(phase_, dstream_frame_bytes);
        const std::uint64_t q = before + at.value;
        return {q / dstream_frame_bytes * dstream_block_bytes + q % dstream_frame_bytes - phase_};
    }
    [[nodiscard]] Offset place_behind(Offset end) const {
        return end == Offset{} ? end : place(Offset{end.value - 1}) + 1;
    }

    template <class Handler>
    struct Mapped {
        const DstreamDeformatter& from;
        Handler& handler;

        void data(TraceId id, Bytes bytes, Offset first) {
            // Bytes before and after a footer are not contiguous.
            while (!bytes.empty()) {
                const std::uint64_t q = std::min(from.phase_, dstream_frame_bytes) + first.value;
                const auto count = std::min<std::size_t>(bytes.size(), dstream_frame_bytes - q % dstream_frame_bytes);
                handler.data(id, bytes.first(count), from.place(first));
                bytes = bytes.subspan(count);
                first = first + count;
            }
        }
        void stray(TraceId id, Bytes bytes, Offset first) {
            if constexpr (TakesStrays<Handler>) handler.stray(id, bytes, from.place(first));
        }
        void unassociated(Bytes bytes, Offset first) {
            if constexpr (TakesUnassociated<Handler>) handler.unassociated(bytes, from.place(first));
        }
        void trigger(TraceId id, Offset at, std::uint8_t payload) { handler.trigger(id, from.place(at), payload); }
        void gap(const Gap& gap) { handler.gap({from.place(gap.first), from.place_behind(gap.end), gap.reason}); }
        void reset(Offset at) { handler.reset(from.place_behind(at)); }
    };

    bool footers_;
    unsigned phase_;
    std::uint64_t read_ = 0, footer_bytes_ = 0;
    Deformatter deformatter_;
};

}  // namespace waymark::coresight
