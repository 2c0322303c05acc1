#include "waymark/record/thread_comparison.h"

#include <charconv>

namespace waymark::record {

std::optional<ExecutedAddresses::Change> ExecutedAddresses::first(const ExecutedAddresses& other,
                                                                  bool seldom_too) const {
    std::map<std::uint64_t, std::int64_t> change = changes_;
    for (const auto& [address, by] : other.changes_) change[address] -= by;
    std::int64_t more = 0;
    for (const auto& [address, by] : change) {
        more += by;
        if (more > 0 || (seldom_too && more < 0)) return Change{address, more};
    }
    return std::nullopt;
}

std::optional<ExecutedAddresses::Change> ExecutedAddresses::difference(const ExecutedAddresses& other) const {
    return first(other, true);
}
std::optional<ExecutedAddresses::Change> ExecutedAddresses::excess(const ExecutedAddresses& other) const {
    return first(other, false);
}

void ThreadExecutionSink::consume(const flow::Batch& batch) {
    blocks_.assign(batch.blocks.begin(), batch.blocks.end());
    auto* times = &times_[thread_];
    flow::in_order(
        batch, [&](const flow::Block&, const flow::Range& range) { (*times)[range.block()] += range.times; },
        [&](const flow::Event& event) {
            if (const auto* context = std::get_if<flow::Context>(&event.what)) {
                thread_ = thread_of_(*context);
                times = &times_[thread_];
            }
            no_memory_ += std::holds_alternative<flow::NoMemory>(event.what) ? 1 : 0;
        });
}

void ThreadExecutionSink::add_to(ThreadExecutions& all) const {
    for (const auto& [thread, times] : times_) {
        if (times.empty()) continue;
        ThreadExecution& to = all[thread];
        for (const auto& [id, count] : times) {
            const flow::Block& block = blocks_[id];
            to.addresses.add(block.start, block.start + block.bytes, static_cast<std::int64_t>(count));
            to.instructions += count * block.instructions;
        }
    }
}

ThreadExecution execution_of(RangeReader& truth, const std::function<bool(std::uint64_t)>& comparable,
                             std::uint64_t& left_out) {
    ThreadExecution out;
    while (const auto range = truth.next()) {
        if (range->lost) continue;
        if (!comparable(range->start)) {
            left_out += range->instructions;
            continue;
        }
        out.addresses.add(range->start, range->end, 1);
        out.instructions += range->instructions;
    }
    return out;
}

std::optional<std::uint32_t> thread_of_truth(const SourceTruth& truth) {
    const std::size_t slash = truth.source.find('/');
    if (slash == truth.source.npos) return std::nullopt;
    std::uint32_t out = 0;
    const char* const first = truth.source.data() + slash + 1;
    const char* const last = truth.source.data() + truth.source.size();
    const auto [end, error] = std::from_chars(first, last, out);
    return error == std::errc() && end == last ? std::optional(out) : std::nullopt;
}

}  // namespace waymark::record
