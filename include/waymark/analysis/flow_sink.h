/// The results that analyses of program flow keep for one stream: counts of edges and, if requested, calls. Memory does
/// not grow with the stream. The result does not depend on the number of workers.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "waymark/analysis/flow_calls.h"
#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/flow_counts.h"
#include "waymark/analysis/kept_calls.h"
#include "waymark/flow/blocks.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/troubles.h"

namespace waymark::analysis {

using flow::MapOffset;
using flow::Trouble;
using flow::Troubles;

class FlowSink final : public flow::Sink {
public:
    struct Options {
        bool calls = false;  ///< otherwise only counts of edges
        bool ways = false;   ///< without calls: also the targets of indirect branches
        /// Calls are also reported as they happen; then work cannot be divided among workers.
        CallObserver* observer = nullptr;
        FlowCalls::Limits limits{};
    };
    /// `code` is borrowed, and only this stream uses it. `offset` is called while its offsets are valid.
    FlowSink(FlowCode& code, MapOffset offset, const Options& options);

    void consume(const flow::Batch& batch) override;
    [[nodiscard]] bool counts_suffice() const override { return !options_.calls; }
    [[nodiscard]] bool wants_ways() const override { return !options_.calls && options_.ways; }
    void take_counts(const flow::EdgeCounts& counts) override;
    [[nodiscard]] bool wants_cycles_in_ranges() const override { return options_.calls; }
    [[nodiscard]] flow::Split split() const override {
        if (options_.observer != nullptr) return flow::Split::none;
        return options_.calls ? flow::Split::when_behind : flow::Split::per_chunk;
    }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override;
    void begin_at(const flow::Context& context) override { calls_.begin_at(context); }
    void join(flow::Sink& fork) override;
    /// Call it once, at the end of the stream.
    void finish();
    /// Call it before `finish` at the end of a stream that does not end its thread: calls continue in `next`, which
    /// will take the thread's next stream and must be unused.
    void hand_over(FlowSink& next);

    // Only for sinks that count calls; not for forks.

    /// The result of FlowCalls::keep.
    [[nodiscard]] std::optional<KeptCalls> keep() { return calls_.keep(own_counts()); }
    /// Begins at kept calls (FlowCalls::begin_from), before anything is consumed. `table`: the decoder's table.
    void begin_from(const KeptCalls& kept, const flow::Context& context, flow::BlockTable& table);
    /// Forgets what was counted so far (FlowCalls::count_anew).
    void count_anew(const flow::Context& context);
    /// Instructions and cycles so far.
    [[nodiscard]] Work now() const { return calls_.now(); }

    /// After `finish`.
    [[nodiscard]] const FlowCode& code() const { return code_; }
    [[nodiscard]] std::vector<const FlowCounts*> counts() const;
    [[nodiscard]] const FlowCalls& calls() const { return calls_; }
    [[nodiscard]] const Troubles& troubles() const { return troubles_; }
    [[nodiscard]] const Options& options() const { return options_; }

private:
    struct Fork {};
    FlowSink(const FlowSink& parent, Fork);
    [[nodiscard]] FlowCounts& own_counts() {
        if (!own_) own_.emplace(*pool_);
        return **own_;
    }
    void consume(const flow::Batch& batch, FlowCounts& counts);
    FlowCode& code_;
    MapOffset offset_;
    Options options_;
    std::shared_ptr<CountsPool> pool_;
    std::optional<CountsPool::Lease> own_;  ///< not for forks: calls on the stack have their sums there, until `finish`
    bool fork_ = false;
    FlowCalls calls_;
    Troubles troubles_;
};

}  // namespace waymark::analysis
