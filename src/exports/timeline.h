/// Helpers for exporting timelines: slices as open and close events, times in nanoseconds, and fewer rows if not all
/// would fit.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/answers/answers.h"
#include "waymark/core/result.h"
#include "waymark/exports/export.h"
#include "writer.h"

namespace waymark::exports {

/// Converts times of an axis to nanoseconds, which every viewer of timelines expects. If the axis has no unit of time,
/// 1 step counts as 1 ns.
class Nanoseconds {
public:
    explicit Nanoseconds(const answers::TimeAxis& axis);
    [[nodiscard]] std::uint64_t operator()(std::uint64_t time) const {
        return rate_ == 0 ? time : time / rate_ * 1'000'000'000 + time % rate_ * 1'000'000'000 / rate_;
    }
    /// A note such as `1 ns = 1 instruction`; empty if times are nanoseconds.
    [[nodiscard]] const std::string& note() const { return note_; }

private:
    std::uint64_t rate_ = 0;  // ticks per second; 0: times are used unchanged
    std::string note_;
};

/// The slices of one track: a part of Timeline::slices.
[[nodiscard]] std::span<const answers::Slice> slices_of(const answers::Timeline& timeline, answers::Index track);

/// The marks of one track: a part of Timeline::marks.
[[nodiscard]] std::span<const answers::TimelineMark> marks_of(const answers::Timeline& timeline, answers::Index track);
/// The word for a kind of marks.
[[nodiscard]] std::string_view name(answers::TimelineMark::Kind kind);

/// Calls `open(slice)` and `close(slice, time)` in order of time, always properly nested: a slice that would outlast
/// the one around it is closed together with it.
template <class Open, class Close>
void walk(std::span<const answers::Slice> slices, Open&& open, Close&& close) {
    struct Level {
        const answers::Slice* slice;
        std::uint64_t end;
    };
    std::vector<Level> stack;
    std::uint64_t now = 0;
    const auto pop = [&] {
        now = std::max(now, stack.back().end);
        close(*stack.back().slice, now);
        stack.pop_back();
    };
    for (const answers::Slice& s : slices) {
        while (!stack.empty() && (stack.back().slice->depth >= s.depth || stack.back().end < s.begin ||
                                  (stack.back().end == s.begin && s.end > s.begin)))
            pop();
        answers::Slice opened = s;
        opened.begin = now = std::max(now, s.begin);
        std::uint64_t end = std::max(s.end, now);
        if (!stack.empty()) end = std::max(now, std::min(end, stack.back().end));
        open(static_cast<const answers::Slice&>(opened));
        stack.push_back({&s, end});
    }
    while (!stack.empty()) pop();
}

/// How much detail a coarser timeline omits.
struct Reduction {
    std::uint64_t resolution{};  ///< in the axis' unit; 0: nothing was omitted
    std::uint64_t merged{};      ///< slices that a merged slice represents
    std::uint64_t dropped{};     ///< slices that were dropped
    std::uint64_t marks{}, points{};
    /// The reduction as sentences; empty if nothing was omitted.
    [[nodiscard]] std::string text(const answers::TimeAxis& axis) const;
};

/// Merges adjacent slices shorter than `resolution` into one, or drops them if even their sum is shorter. Marks that
/// follow a kept mark of the same kind at a shorter distance are dropped. Among the points of a series in each stretch
/// of that length, the highest is kept.
[[nodiscard]] answers::Timeline reduce(const answers::Timeline& timeline, std::uint64_t resolution, Reduction& what);

struct Fitted {
    answers::Timeline timeline;
    Reduction what;
    bool fits{};  ///< false: even the coarsest timeline is larger
};
/// The finest timeline that fits into `limit` bytes. `size(timeline)` returns the size of one.
template <class Size>
Fitted fit(const answers::Timeline& timeline, std::uint64_t limit, Size&& size) {
    Fitted best;
    const auto fits = [&](std::uint64_t resolution) {
        Fitted trial;
        trial.timeline = reduce(timeline, resolution, trial.what);
        trial.fits = size(static_cast<const answers::Timeline&>(trial.timeline)) <= limit;
        const bool answer = trial.fits;
        if (answer || !best.fits) best = std::move(trial);
        return answer;
    };
    if (fits(0)) return best;
    // Find the smallest power of two that fits, then search between it and the previous one.
    unsigned low = 0, high = 64;
    while (low < high) {
        const unsigned middle = (low + high) / 2;
        if (fits(middle == 64 ? ~std::uint64_t{0} : std::uint64_t{1} << middle))
            high = middle;
        else
            low = middle + 1;
    }
    if (!best.fits || high == 0 || high >= 64) {
        static_cast<void>(fits(~std::uint64_t{0}));
        return best;
    }
    std::uint64_t below = std::uint64_t{1} << (high - 1), above = std::uint64_t{1} << high;
    for (unsigned step = 0; step < 4 && above - below > 1; ++step) {
        const std::uint64_t middle = below + (above - below) / 2;
        (fits(middle) ? above : below) = middle;
    }
    return best;
}

/// `fit` for files that contain more than a timeline; adds the omitted details to the report. `usage`: the rest alone
/// is larger than the limit.
template <class Size>
Result<Fitted> fit_beside_costs(const answers::Timeline& timeline, std::uint64_t limit, Size&& size,
                                ExportReport& report) {
    Fitted fitted = fit(timeline, limit, size);
    if (!fitted.fits)
        return Error{Errc::usage, fmt::format("--max-size {} is too small: without a timeline it takes {} bytes",
                                              grouped(limit), grouped(size(fitted.timeline)))};
    if (const std::string text = fitted.what.text(timeline.axis); !text.empty()) report.notes.push_back(text);
    return fitted;
}

}  // namespace waymark::exports
