/// What a DPU's trace says against what truly happened while it was recorded.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/dpu/decoder.h"
#include "waymark/dpu/events.h"
#include "waymark/record_dpu/dpu_truth.h"

namespace waymark::record {

/// A figure as it executed and as it was decoded.
struct DpuFigure {
    std::string name;
    std::uint64_t executed{}, decoded{};
};

/// What was compared.
struct DpuCompared {
    std::vector<DpuFigure> sums;         ///< in the order in which they are shown
    std::vector<DpuFigure> differences;  ///< the first ten of `different`
    std::uint64_t compared = 0, different = 0;
    unsigned counters_left_out = 0;  ///< counters of which nothing is compared
    std::vector<std::string> notes;  ///< what was not compared, or not exactly, and why: sentences without their ends
    bool damaged = false;            ///< the trace is, or cut
    bool whole = false;  ///< all was traced and is there, so both sides must be the same; else the trace may hold less
};

/// Takes the elements of a trace, adds them up in the words of the truth, and compares. Losses, a filter or a part of
/// the run that was not traced leave less in the trace than executed; more is never equal.
class DpuComparison final : public dpu::ElementSink {
public:
    struct Setup {
        std::optional<dpu::TraceMode> mode{};       ///< of the whole trace; none: not known, or there were several
        std::optional<dpu::TaskContext> context{};  ///< in which the program began; none: not known
        std::optional<dpu::Counters> initial{}, final{};
        bool overwritten = false;  ///< older trace is gone, and with it what is known of the beginning
        bool user_data = false;    ///< DP_TC.UDEN
        bool filtered = false;     ///< IDFLT: only contexts that match make entries
        bool filter_changed = false;
        std::function<bool(const dpu::TaskContext&)> matches;  ///< the filter
        /// The counters' events, and the names of the events.
        std::array<std::optional<dpu::EventWire>, dpu::counter_count> events{};
        std::array<std::string, dpu::counter_count> event_names{};
    };
    /// `truth` is borrowed.
    DpuComparison(const DpuTruth& truth, Setup setup);
    ~DpuComparison() override;
    void consume(const dpu::Batch& batch) override;
    /// The trace is over. `cut`: the file lacks a part of the trace.
    [[nodiscard]] DpuCompared finish(const dpu::Totals& totals, bool cut);

private:
    class Inside;
    std::unique_ptr<Inside> inside_;
};

}  // namespace waymark::record
