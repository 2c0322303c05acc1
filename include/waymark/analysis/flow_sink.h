/// What analyses of program flow keep of one stream: counts of edges and, where asked for, the calls. Memory does not
/// grow with the stream. Any number of workers gives the same.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "waymark/analysis/flow_calls.h"
#include "waymark/analysis/flow_code.h"
#include "waymark/analysis/flow_counts.h"
#include "waymark/core/gap.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"

namespace waymark::analysis {

/// Something wrong, and where it was met first.
struct Trouble {
    std::uint64_t times{}, bytes{};
    std::uint64_t offset{};  ///< of the first, in the capture's buffer
    std::uint64_t address{}, expected{};
    friend bool operator==(const Trouble&, const Trouble&) = default;
};

/// All that keeps flow from being known.
struct Troubles {
    std::array<Trouble, gap_reasons> gaps{};
    std::array<Trouble, flow::conflicts> conflicts{};
    Trouble no_memory, overflows;
    std::uint64_t contexts{}, timestamps{}, triggers{};
    std::optional<std::uint64_t> first_timestamp, last_timestamp;
    Troubles& operator+=(const Troubles& later);
    friend bool operator==(const Troubles&, const Troubles&) = default;
};

/// From an offset in the stream to one in the capture's buffer.
using MapOffset = std::function<std::uint64_t(Offset)>;

class FlowSink final : public flow::Sink {
public:
    struct Options {
        bool calls = false;  ///< else counts of edges alone
        /// Calls too are told as they happen; then nothing can be divided among workers.
        CallObserver* observer = nullptr;
        FlowCalls::Limits limits{};
    };
    /// `code` is borrowed, and of this stream alone. `offset` is called while its offsets are known.
    FlowSink(FlowCode& code, MapOffset offset, const Options& options);

    void consume(const flow::Batch& batch) override;
    [[nodiscard]] bool counts_suffice() const override { return !options_.calls; }
    void take_counts(const flow::EdgeCounts& counts) override;
    [[nodiscard]] flow::Split split() const override {
        return options_.observer == nullptr ? flow::Split::per_chunk : flow::Split::none;
    }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override;
    void begin_at(const flow::Context& context) override { calls_.begin_at(context); }
    void join(flow::Sink& fork) override;
    /// At the end of the stream, once.
    void finish();
    /// At the end of a stream that is not the end of its thread, before `finish`: calls go on in `next`, which is to
    /// take the thread's next stream and has taken nothing yet.
    void hand_over(FlowSink& next);

    /// After `finish`.
    [[nodiscard]] const FlowCode& code() const { return code_; }
    [[nodiscard]] std::vector<const FlowCounts*> counts() const;
    [[nodiscard]] const FlowCalls& calls() const { return calls_; }
    [[nodiscard]] const Troubles& troubles() const { return troubles_; }
    [[nodiscard]] const Options& options() const { return options_; }

private:
    FlowSink(const FlowSink& parent, bool open);
    void note(const flow::Event& event);

    FlowCode& code_;
    MapOffset offset_;
    Options options_;
    std::shared_ptr<CountsPool> pool_;
    FlowCalls calls_;
    Troubles troubles_;
};

}  // namespace waymark::analysis
