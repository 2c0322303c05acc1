/// Lies between a decoder and a sink. A count of cycles that comes apart from ranges (Cycles::Of::flow) is spread over
/// the ranges that ran since the previous count, by their instructions. So each sum of a sink (of blocks, functions,
/// levels, exceptions, times) has the cycles of the ranges in it. Ranges wait here until their count comes.
///
/// A count of a stretch with lost flow stays apart (Of::unknown), since the share of the lost part is unknown. If the
/// number of unseen instructions is known (Untraced), only their share stays apart. Ranges after the last count, and
/// before a count that the unit does not know, have no cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "waymark/flow/flow.h"

namespace waymark::flow {

class CycleSpread final : public Sink {
public:
    /// A count that covers more ranges stays separate, so that memory is bounded.
    static constexpr std::size_t most_ranges = std::size_t{1} << 20;

    /// `next` is borrowed.
    explicit CycleSpread(Sink& next) : next_(&next) {}

    void consume(const Batch& batch) override;
    [[nodiscard]] Split split() const override;
    [[nodiscard]] std::unique_ptr<Sink> fork() const override;
    void begin_at(const Context& context) override { context_ = begun_in_ = context; }
    void join(Sink& fork) override;
    /// Passes on ranges that wait for a count, without cycles: the stream ends, or they must not wait any longer.
    void release();
    /// Offset of the oldest element that waits for a count; nullopt if none waits.
    [[nodiscard]] std::optional<Offset> first() const;

private:
    explicit CycleSpread(std::unique_ptr<Sink> next) : next_(next.get()), own_(std::move(next)), in_head_(true) {}

    /// Consecutive elements, which own their memory.
    struct Elements {
        Offset base{};
        std::vector<Range> ranges;
        std::vector<Event> events;
    };
    /// The flow since the last count.
    struct Window {
        std::size_t begin = 0;           ///< index of its first range that waits
        std::size_t passed = 0;          ///< number of the window's ranges that were passed on
        bool lost = false;               ///< some of this flow is unknown
        bool off = false;                ///< tracing was off at some time
        std::vector<std::size_t> holes;  ///< indices of Untraced events with a number of instructions
    };

    void keep_head(const Batch& batch);
    void append(const Batch& batch);
    void take(const Batch& batch, std::size_t from_range, std::size_t from_event);
    std::size_t count(std::size_t event);
    [[nodiscard]] std::optional<std::size_t> spread(std::size_t end, std::uint32_t cycles);
    [[nodiscard]] std::uint64_t instructions_of(const Range& range) const;
    void pass_on(std::size_t ranges, std::size_t events);

    Sink* next_;
    std::unique_ptr<Sink> own_;  ///< `next_` of a fork

    std::span<const Block> blocks_;
    Elements waiting_;
    Window window_;

    /// A fork's first count also covers ranges of the previous part: elements up to that count are stored for `join`.
    bool in_head_ = false;
    bool head_given_up_ = false;      ///< the first count covers too many ranges
    Elements head_;                   ///< complete, with its count
    Context begun_in_{}, context_{};  ///< for a fork: context at the beginning of its part; context in the head
};

}  // namespace waymark::flow
