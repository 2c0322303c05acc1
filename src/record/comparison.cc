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
    if (!truth_ || difference_ || truth_ended_) return;
    const auto executed = next_executed();
    if (executed && executed->start == decoded_.start && executed->end == decoded_.end) {
        before_ = decoded_;
        return;
    }
    truth_ended_ = !executed;
    difference_ = {sums_.ranges, offset_, captured(offset_), executed, decoded_, before_};
}

}  // namespace waymark::record
