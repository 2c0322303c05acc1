#include "waymark/analysis/flow_sink.h"

namespace waymark::analysis {

FlowSink::FlowSink(FlowCode& code, MapOffset offset, const Options& options)
    : code_(code),
      offset_(std::move(offset)),
      options_(options),
      pool_(std::make_shared<CountsPool>()),
      calls_(code, false, options.limits) {
    calls_.observe(options.observer);
}

FlowSink::FlowSink(const FlowSink& parent, Fork)
    : code_(parent.code_),
      offset_(parent.offset_),
      options_(parent.options_),
      pool_(parent.pool_),
      fork_(true),
      calls_(parent.code_, true, parent.options_.limits) {}

std::unique_ptr<flow::Sink> FlowSink::fork() const { return std::unique_ptr<FlowSink>(new FlowSink(*this, Fork{})); }

void FlowSink::consume(const flow::Batch& batch) {
    troubles_.consume(batch, offset_);
    if (!fork_) return consume(batch, own_counts());
    const CountsPool::Lease counts(*pool_);
    consume(batch, *counts);
}

void FlowSink::consume(const flow::Batch& batch, FlowCounts& counts) {
    if (options_.calls) return calls_.consume(batch, counts);
    counts.reach(code_, batch.blocks);
    for (const flow::Range& range : batch.ranges) {
        counts.times[range.edge] += range.times;
        if (range.cycles != flow::no_cycles) counts.cycles += range.cycles;
    }
    for (const flow::Event& event : batch.events)
        if (const auto* e = std::get_if<flow::Exception>(&event.what)) ++counts.exceptions[code_.type_of(*e)].times;
}

void FlowSink::take_counts(const flow::EdgeCounts& edges) {
    FlowCounts& counts = own_counts();
    counts.reach(code_, edges.blocks);
    for (std::size_t i = 0; i < std::min(edges.times.size(), counts.times.size()); ++i)
        counts.times[i] += edges.times[i];
    counts.cycles += edges.cycles;
    // No file contains the highest address.
    constexpr std::uint64_t nowhere = ~std::uint64_t{0};
    for (const flow::EdgeWay& way : edges.ways) {
        WaySum* const sum =
            counts.way(way.edge, way.block < edges.blocks.size() ? edges.blocks[way.block].start : nowhere);
        if (sum != nullptr) sum->times += way.times;
    }
    counts.ways_left_out += edges.ways_left_out;
}

void FlowSink::join(flow::Sink& sink) {
    auto& fork = static_cast<FlowSink&>(sink);
    if (options_.calls) calls_.join(fork.calls_, own_counts());
    troubles_ += fork.troubles_;
}

void FlowSink::finish() {
    FlowCounts& counts = own_counts();
    counts.reach(code_);
    if (options_.calls) calls_.finish(counts);
    own_.reset();
}

void FlowSink::hand_over(FlowSink& next) {
    if (!options_.calls) return;
    FlowCounts& counts = own_counts();
    counts.reach(code_);
    calls_.hand_over(next.calls_, counts);
}

void FlowSink::begin_from(const KeptCalls& kept, const flow::Context& context, flow::BlockTable& table) {
    FlowCounts& counts = own_counts();
    std::optional<std::uint32_t> last;
    if (kept.last) last = table.intern(*kept.last);
    counts.reach(code_, table.blocks());
    calls_.begin_from(kept, last, context, counts);
}

void FlowSink::count_anew(const flow::Context& context) {
    calls_.count_anew(context, own_counts());
    troubles_ = {};
}

std::vector<const FlowCounts*> FlowSink::counts() const {
    std::vector<const FlowCounts*> result;
    for (const auto& counts : pool_->all()) result.push_back(counts.get());
    return result;
}

}  // namespace waymark::analysis
