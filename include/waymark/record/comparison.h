/// Compares decoded ranges with the executed ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"
#include "waymark/flow/troubles.h"
#include "waymark/record/truth.h"

namespace waymark::record {

/// The first difference.
struct Difference {
    std::uint64_t number{};              ///< of the range, counted from 1
    Offset stream{}, capture{};          ///< offset of the packet that gave it
    std::optional<TruthRange> executed;  ///< nothing: the truth ends there
    std::optional<TruthRange> decoded;   ///< nothing: the trace ends there
    std::optional<TruthRange> before;    ///< the last range both agree on
};

/// Takes the decoded ranges of one source and compares them with the truth. A range that the unit divided in two is
/// joined again.
class Comparison final : public flow::Sink {
public:
    /// `truth`: the executed ranges; if there are none, only sums are computed. `gone`: number of the truth's ranges
    /// before the trace. `captured` maps offsets while the stream is read.
    Comparison(flow::MapOffset captured, std::optional<RangeReader> truth, std::uint64_t gone);

    /// Keeps the decoded ranges in `ranges`, so that their place in the truth can be searched. Call it before anything
    /// is consumed.
    void keep(std::vector<TruthRange>& ranges) { kept_ = &ranges; }

    void consume(const flow::Batch& batch) override;
    /// The trace ends. `cut_off`: truth and trace may end at different places.
    void finish(bool cut_off);

    [[nodiscard]] const SourceTruth& sums() const { return sums_; }
    [[nodiscard]] const flow::Totals& totals() const { return summary_.totals(); }
    [[nodiscard]] const std::optional<Difference>& difference() const { return difference_; }
    [[nodiscard]] bool has_ranges() const { return truth_.has_value(); }

private:
    [[nodiscard]] std::optional<TruthRange> next_executed();
    [[nodiscard]] Offset captured(Offset at) const { return over_ ? last_captured_ : Offset{captured_(at)}; }
    void close();

    flow::MapOffset captured_;
    std::optional<RangeReader> truth_;
    flow::Summary summary_;
    SourceTruth sums_;
    std::vector<TruthRange>* kept_ = nullptr;  ///< borrowed
    TruthRange decoded_;
    bool open_ = false, truth_ended_ = false, over_ = false;
    Offset offset_{}, last_{}, last_captured_{};
    std::optional<TruthRange> before_;
    std::optional<Difference> difference_;
};

/// The last place in the truth at which these ranges ran one after the other: the number of ranges before it. nullopt
/// if there is no such place. Lost ranges are not counted.
[[nodiscard]] std::optional<std::uint64_t> last_place_of(const std::vector<TruthRange>& ranges, RangeReader truth);

}  // namespace waymark::record
