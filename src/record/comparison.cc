#include "waymark/record/comparison.h"

#include <utility>
#include <variant>

namespace waymark::record {

Comparison::Comparison(flow::MapOffset captured, std::optional<RangeReader> truth, std::uint64_t gone)
    : captured_(std::move(captured)), truth_(std::move(truth)) {
    for (; truth_ && gone != 0; --gone)
        if (!next_executed()) break;
}

void Comparison::consume(const flow::Batch& batch) {
    summary_.consume(batch);
    flow::in_order(
        batch,
        [&](const flow::Block& block, const flow::Range& range) {
            if (open_ && decoded_.end == block.start) {
                decoded_.end += block.bytes;
                decoded_.instructions += block.instructions;
            } else {
                close();
                decoded_ = {block.start, block.start + block.bytes, block.instructions, false};
                offset_ = batch.base + range.offset;
            }
            open_ = true;
            if (block.end != flow::End::not_a_waypoint || (block.flags & flow::Block::own_outcome) != 0) close();
        },
        [&](const flow::Event& event) {
            if (!std::holds_alternative<flow::Timestamp>(event.what) &&
                !std::holds_alternative<flow::Context>(event.what))
                close();
            last_ = event.offset;
        });
    last_captured_ = captured(open_ ? offset_ : last_);
}

void Comparison::finish(bool cut_off) {
    over_ = true;
    close();
    if (cut_off || difference_ || !truth_) return;
    if (const auto rest = next_executed())
        difference_ = {sums_.ranges + 1, last_, captured(last_), *rest, std::nullopt, before_};
}

std::optional<TruthRange> Comparison::next_executed() {
    for (;;) {
        const auto range = truth_->next();
        if (!range || !range->lost) return range;
    }
}

void Comparison::close() {
    if (!open_) return;
    open_ = false;
    last_ = offset_;
    sums_.add(decoded_);
    if (kept_ != nullptr) kept_->push_back(decoded_);
    if (!truth_ || difference_ || truth_ended_) return;
    const auto executed = next_executed();
    if (executed && executed->start == decoded_.start && executed->end == decoded_.end) {
        before_ = decoded_;
        return;
    }
    truth_ended_ = !executed;
    difference_ = {sums_.ranges, offset_, captured(offset_), executed, decoded_, before_};
}

std::optional<std::uint64_t> last_place_of(const std::vector<TruthRange>& ranges, RangeReader truth) {
    const auto same = [](const TruthRange& a, const TruthRange& b) { return a.start == b.start && a.end == b.end; };
    // Knuth, Morris, Pratt: the length of the beginning with which the ranges up to here end.
    std::vector<std::size_t> shorter(ranges.size(), 0);
    for (std::size_t i = 1, k = 0; i < ranges.size(); ++i) {
        while (k != 0 && !same(ranges[i], ranges[k])) k = shorter[k - 1];
        if (same(ranges[i], ranges[k])) ++k;
        shorter[i] = k;
    }
    std::optional<std::uint64_t> place;
    std::uint64_t read = 0;
    std::size_t k = 0;
    while (const auto executed = truth.next()) {
        if (executed->lost) continue;
        ++read;
        if (ranges.empty()) continue;
        if (k == ranges.size()) k = shorter[k - 1];
        while (k != 0 && !same(*executed, ranges[k])) k = shorter[k - 1];
        if (same(*executed, ranges[k])) ++k;
        if (k == ranges.size()) place = read - k;
    }
    return ranges.empty() ? read : place;
}

}  // namespace waymark::record
