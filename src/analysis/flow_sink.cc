#include "waymark/analysis/flow_sink.h"

#include <type_traits>

namespace waymark::analysis {

namespace {
void add(Trouble& to, const Trouble& later) {
    const std::uint64_t times = to.times + later.times, bytes = to.bytes + later.bytes;
    if (to.times == 0) to = later;
    to.times = times;
    to.bytes = bytes;
}
}  // namespace

Troubles& Troubles::operator+=(const Troubles& later) {
    for (unsigned i = 0; i < gap_reasons; ++i) add(gaps[i], later.gaps[i]);
    for (unsigned i = 0; i < flow::conflicts; ++i) add(conflicts[i], later.conflicts[i]);
    add(no_memory, later.no_memory);
    add(overflows, later.overflows);
    contexts += later.contexts;
    timestamps += later.timestamps;
    triggers += later.triggers;
    if (!first_timestamp) first_timestamp = later.first_timestamp;
    if (later.last_timestamp) last_timestamp = later.last_timestamp;
    return *this;
}

FlowSink::FlowSink(FlowCode& code, MapOffset offset, const Options& options)
    : code_(code),
      offset_(std::move(offset)),
      options_(options),
      pool_(std::make_shared<CountsPool>()),
      calls_(code, false, options.limits) {
    calls_.observe(options.observer);
}

FlowSink::FlowSink(const FlowSink& parent, bool open)
    : code_(parent.code_),
      offset_(parent.offset_),
      options_(parent.options_),
      pool_(parent.pool_),
      calls_(parent.code_, open, parent.options_.limits) {}

std::unique_ptr<flow::Sink> FlowSink::fork() const { return std::unique_ptr<FlowSink>(new FlowSink(*this, true)); }

void FlowSink::consume(const flow::Batch& batch) {
    for (const flow::Event& event : batch.events) note(event);
    const CountsPool::Lease counts(*pool_);
    if (options_.calls) {
        calls_.consume(batch, *counts);
    } else {
        counts->reach(code_, batch.blocks);
        for (const flow::Range& range : batch.ranges) {
            counts->times[range.edge] += range.times;
            if (range.cycles != flow::no_cycles) counts->cycles += range.cycles;
        }
        for (const flow::Event& event : batch.events)
            if (const auto* e = std::get_if<flow::Exception>(&event.what)) ++counts->exceptions[*e->type].times;
    }
}

void FlowSink::take_counts(const flow::EdgeCounts& edges) {
    const CountsPool::Lease counts(*pool_);
    counts->reach(code_, edges.blocks);
    for (std::size_t i = 0; i < std::min(edges.times.size(), counts->times.size()); ++i)
        counts->times[i] += edges.times[i];
    counts->cycles += edges.cycles;
}

void FlowSink::join(flow::Sink& sink) {
    auto& fork = static_cast<FlowSink&>(sink);
    if (options_.calls) {
        const CountsPool::Lease counts(*pool_);
        calls_.join(fork.calls_, *counts);
    }
    troubles_ += fork.troubles_;
}

void FlowSink::finish() {
    const CountsPool::Lease counts(*pool_);
    counts->reach(code_);
    if (options_.calls) calls_.finish(*counts);
}

void FlowSink::hand_over(FlowSink& next) {
    if (!options_.calls) return;
    const CountsPool::Lease counts(*pool_);
    counts->reach(code_);
    calls_.hand_over(next.calls_, *counts);
}

std::vector<const FlowCounts*> FlowSink::counts() const {
    std::vector<const FlowCounts*> result;
    for (const auto& counts : pool_->all()) result.push_back(counts.get());
    return result;
}

void FlowSink::note(const flow::Event& event) {
    const auto keep = [&](Trouble& trouble, Offset at, std::uint64_t address, std::uint64_t expected) {
        if (trouble.times++ == 0) trouble = {1, trouble.bytes, offset_(at), address, expected};
    };
    std::visit(
        [&](const auto& what) {
            using T = std::decay_t<decltype(what)>;
            if constexpr (std::is_same_v<T, Gap>) {
                Trouble& trouble = troubles_.gaps[static_cast<unsigned>(what.reason)];
                keep(trouble, what.first, 0, 0);
                trouble.bytes += what.bytes();
            } else if constexpr (std::is_same_v<T, flow::TraceOn>) {
                if (what.reason == flow::TraceOnReason::overflow) keep(troubles_.overflows, event.offset, 0, 0);
            } else if constexpr (std::is_same_v<T, flow::Inconsistency>) {
                keep(troubles_.conflicts[static_cast<unsigned>(what.conflict)], event.offset, what.found.value,
                     what.expected.value);
            } else if constexpr (std::is_same_v<T, flow::NoMemory>) {
                keep(troubles_.no_memory, event.offset, what.address.value, 0);
            } else if constexpr (std::is_same_v<T, flow::Context>) {
                ++troubles_.contexts;
            } else if constexpr (std::is_same_v<T, flow::Timestamp>) {
                ++troubles_.timestamps;
                if (what.known) {
                    if (!troubles_.first_timestamp) troubles_.first_timestamp = what.value;
                    troubles_.last_timestamp = what.value;
                }
            } else if constexpr (std::is_same_v<T, flow::Trigger>) {
                ++troubles_.triggers;
            }
        },
        event.what);
}

}  // namespace waymark::analysis
