/// Compares a DPU's trace with the truth of its recording.
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

/// A figure as executed and as decoded.
struct DpuFigure {
    std::string name;
    std::uint64_t executed{}, decoded{};
};

/// Numbers of compared items.
struct DpuCompared {
    std::vector<DpuFigure> sums;         ///< in the order of output
    std::vector<DpuFigure> differences;  ///< the first ten of `different`
    std::uint64_t compared = 0, different = 0;
    unsigned counters_left_out = 0;  ///< number of counters that are not compared
    std::vector<std::string>
        notes;             ///< parts that were not compared, or not exactly, and why: sentences without full stop
    bool damaged = false;  ///< the trace is damaged or cut
    bool whole =
        false;  ///< all execution was traced and is there, so both sides must be equal; else the trace may contain less
};

/// Takes the elements of a trace, adds them up in the form of the truth, and compares. With losses, a filter or
/// untraced parts of the run, the trace may have less than was executed; more is always an error.
class DpuComparison final : public dpu::ElementSink {
public:
    struct Setup {
        std::optional<dpu::TraceMode> mode{};       ///< mode of the whole trace; none: not known, or there were several
        std::optional<dpu::TaskContext> context{};  ///< context in which the program began; none: not known
        std::optional<dpu::Counters> initial{}, final{};
        bool overwritten = false;  ///< older trace was overwritten, so the beginning is unknown
        bool user_data = false;    ///< DP_TC.UDEN
        bool filtered = false;     ///< IDFLT: only matching contexts make entries
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
