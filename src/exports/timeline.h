/// Timelines on their way out: slices as the events that open and close them, times in nanoseconds, and fewer rows
/// where not all would fit.
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

/// Times of an axis as nanoseconds, which every viewer of timelines wants. If the axis has no unit of time, 1 step
/// counts as 1 ns.
class Nanoseconds {
public:
    explicit Nanoseconds(const answers::TimeAxis& axis);
    [[nodiscard]] std::uint64_t operator()(std::uint64_t time) const {
        return rate_ == 0 ? time : time / rate_ * 1'000'000'000 + time % rate_ * 1'000'000'000 / rate_;
    }
    /// `1 ns = 1 instruction`; empty: they are nanoseconds.
    [[nodiscard]] const std::string& note() const { return note_; }

private:
    std::uint64_t rate_ = 0;  // per second; 0: taken as they are
    std::string note_;
};

/// The slices of one track: a part of Timeline::slices.
[[nodiscard]] std::span<const answers::Slice> slices_of(const answers::Timeline& timeline, answers::Index track);

/// The marks of one track: a part of Timeline::marks.
[[nodiscard]] std::span<const answers::TimelineMark> marks_of(const answers::Timeline& timeline, answers::Index track);
/// The word for a kind of marks.
[[nodiscard]] std::string_view name(answers::TimelineMark::Kind kind);

/// Calls `open(slice)` and `close(slice, time)` in the order of time, properly nested whatever the slices are like: one
/// that would outlast the one around it ends with that.
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

/// How much a coarser timeline leaves out.
struct Reduction {
    std::uint64_t resolution{};  ///< in the axis' unit; 0: nothing was left out
    std::uint64_t merged{};      ///< slices that others represent
    std::uint64_t dropped{};     ///< slices that nothing represents
    std::uint64_t marks{}, points{};
    /// As sentences; empty: nothing was left out.
    [[nodiscard]] std::string text(const answers::TimeAxis& axis) const;
};

/// Slices shorter than `resolution` next to each other become one that represents them, or nothing where even together
/// they are shorter. Marks that follow a kept one of their kind sooner are left out; of a series' points in each
/// stretch of that length the highest stays.
[[nodiscard]] answers::Timeline reduce(const answers::Timeline& timeline, std::uint64_t resolution, Reduction& what);

struct Fitted {
    answers::Timeline timeline;
    Reduction what;
    bool fits{};  ///< false: even the coarsest is larger
};
/// As fine as fits into `limit` bytes, where `size(timeline)` says how many one takes.
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
    // The shortest power of two that fits, then closer between it and the one before.
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

/// `fit` for files that hold more than a timeline; adds to the report what was left out. `usage`: the rest alone is
/// larger.
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
