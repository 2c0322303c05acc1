/// When functions were active: slices of calls by track and depth, with bounded memory. When the limit is reached, the
/// resolution doubles, and shorter slices merge with neighbours of the same depth and caller.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "waymark/analysis/flow_calls.h"
#include "waymark/analysis/flow_window.h"
#include "waymark/answers/answers.h"

namespace waymark::analysis {

/// The timeline of one stream. Positions are cycles or instructions since its beginning.
class FlowTimeline final : public CallObserver {
public:
    static constexpr std::uint32_t most_depth = 128;
    static constexpr std::size_t most_anchors = std::size_t{1} << 16, most_marks = 10000;

    FlowTimeline(bool cycles, std::size_t most_slices, FlowWindow window = {})
        : cycles_(cycles), most_slices_(most_slices), window_(window) {}

    /// A timestamp, and where it came.
    struct Anchor {
        std::uint64_t at{}, ticks{};
        friend bool operator==(const Anchor&, const Anchor&) = default;
    };
    /// Facts about the stream before the window, for a timeline that begins in the middle of a stream.
    struct Before {
        std::vector<std::optional<std::uint32_t>>
            tracks{};                   ///< Context IDs of calls, in the order of their first sight
        std::vector<Anchor> anchors{};  ///< the last two
        friend bool operator==(const Before&, const Before&) = default;
    };
    void begin_from(const Before& before);

    void enter(const Work& now, std::uint32_t depth, FunctionId function) override;
    void leave(const Work& now, std::uint32_t depth) override;
    void switch_to(const Work& now, std::optional<std::uint32_t> context_id) override;
    void happened(const Work& now, const flow::Event& event) override;
    void regained(const Work& now) override;
    void finish(const Work& now);

    struct Piece {
        std::uint64_t begin{}, end{};
        FunctionId function{};
        std::uint32_t track{}, depth{}, merged = 1;
        friend bool operator==(const Piece&, const Piece&) = default;
    };
    struct Note {
        std::uint64_t at{}, end{};  ///< for a gap, the place where code is known again; otherwise equal to `at`
        std::uint32_t track{};
        answers::TimelineMark::Kind kind{};
        std::uint32_t number{};                  ///< a Context ID, a GapReason or `no_image`
        const flow::ExceptionType* exception{};  ///< null if it is not an exception
        /// For an overflow between two timestamps: the bounds of the time in which nothing was traced.
        std::uint64_t ticks_before{}, ticks_after{};
        bool bounded = false;
    };
    /// Flow continued in unknown code.
    static constexpr std::uint32_t no_image = 0xffffffff;
    /// Sorted by track, begin, depth. With a window, calls that extend beyond it are cut.
    [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
    [[nodiscard]] const std::vector<Note>& notes() const { return notes_; }
    [[nodiscard]] const std::vector<Anchor>& anchors() const { return anchors_; }
    /// By track: its Context ID.
    [[nodiscard]] const std::vector<std::optional<std::uint32_t>>& tracks() const { return tracks_; }
    [[nodiscard]] std::uint64_t resolution() const { return resolution_; }
    /// Positions that bound the pieces. A window in cycles begins and ends where calls change.
    [[nodiscard]] std::uint64_t begin() const { return begin_; }
    [[nodiscard]] std::uint64_t end() const { return end_; }
    [[nodiscard]] bool cycles() const { return cycles_; }
    [[nodiscard]] std::uint64_t notes_left_out() const { return notes_left_out_; }

private:
    static constexpr std::size_t nothing = ~std::size_t{0};
    [[nodiscard]] std::uint64_t at(const Work& now) const { return cycles_ ? now.cycles : now.instructions; }
    /// Returns false if there are already too many marks.
    bool note(std::uint64_t at, answers::TimelineMark::Kind kind, std::uint32_t number);
    void look(const Work& now);
    void cut_pieces();
    std::uint32_t track();
    void sort_pieces();
    void coarsen();

    bool cycles_;
    std::size_t most_slices_;
    FlowWindow window_;
    enum class Phase : std::uint8_t { before, within, behind } phase_ = Phase::before;
    std::vector<std::size_t> open_;  // by depth: index in `pieces_`; `nothing`: a frame that was never reported
    std::optional<std::uint32_t> context_;
    std::optional<std::uint32_t> track_;
    std::map<std::optional<std::uint32_t>, std::uint32_t> track_of_;
    std::vector<std::optional<std::uint32_t>> tracks_;
    std::vector<Piece> pieces_;
    std::vector<Note> notes_;
    std::optional<std::size_t> gap_;       // index of the note for a gap that is still open
    std::optional<std::size_t> overflow_;  // the mark of an overflow without a later timestamp so far
    std::optional<std::uint64_t> last_ticks_;
    std::vector<Anchor> anchors_;
    std::size_t every_ = 1,
                skipped_ = 0;  // one anchor of `every_` is kept; `skipped_` anchors were skipped since the last one
    std::uint64_t resolution_ = 0, begin_ = 0, end_ = 0, notes_left_out_ = 0;
};

/// Merges pieces shorter than `resolution` with their neighbours, up to a length of `resolution`. Pieces are sorted by
/// track, begin, depth, before and after.
void merge_pieces(std::vector<FlowTimeline::Piece>& pieces, std::uint64_t resolution);

/// Converts positions of a stream to ticks: positions between timestamps are interpolated.
class TickMap {
public:
    explicit TickMap(std::vector<FlowTimeline::Anchor> anchors) : anchors_(std::move(anchors)) {}
    [[nodiscard]] std::uint64_t ticks(std::uint64_t at) const;
    /// The interval between two timestamps; `passed`: work between them.
    struct Interval {
        std::uint64_t ticks{}, passed{};
    };
    void add_intervals(std::vector<Interval>& out) const;
    /// Uncertainty of positions: for 95 % of the work, and at most. A thread that slept is one long interval in which
    /// little ran.
    struct Uncertainty {
        std::uint64_t usual{}, most{};
    };
    [[nodiscard]] static Uncertainty uncertainty(std::vector<Interval> intervals);

private:
    std::vector<FlowTimeline::Anchor> anchors_;
};

}  // namespace waymark::analysis
