/// Converts a decoded trace of the Debug and Profiling Unit to `Answers` (docs/spec/dpu.md, section 12). Costs of the
/// call tree add up to `DpuCosts::total` exactly.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/dpu.h"
#include "waymark/answers/answers.h"

namespace waymark::analysis {

/// Events over time, in addition to the stays of `DpuCosts`: counts, single interrupts and system calls, and losses.
/// Takes the same elements, and measures time the same way. Memory does not grow with the trace.
class DpuTimes final : public dpu::ElementSink {
public:
    static constexpr unsigned most_bins = 512;
    static constexpr std::size_t most_services = 1 << 20, most_losses = 10000;

    struct Loss {
        Offset offset;
        std::uint64_t begin{}, end{};  ///< from the previous reading to the next one
        std::uint64_t entries{};       ///< number of lost entries; 0: see `reason`
        GapReason reason{};
        dpu::ElementKind kind{};  ///< kind of the element that shows it
    };
    struct Service {
        std::uint32_t entry{};
        std::uint64_t begin{}, end{};
    };

    explicit DpuTimes(const DpuSetup& setup);
    void consume(const dpu::Batch& batch) override;
    /// The trace ends here.
    void finish();

    /// Counts of [i << shift(), (i + 1) << shift()); the counts of an interval are spread evenly over it. They add up
    /// to the total.
    [[nodiscard]] const std::array<DpuCounts, most_bins>& bins() const { return bins_; }
    [[nodiscard]] unsigned shift() const { return shift_; }
    [[nodiscard]] std::uint64_t time() const { return time_; }
    [[nodiscard]] const std::vector<Service>& services() const { return services_; }
    [[nodiscard]] const std::vector<Loss>& losses() const { return losses_; }
    [[nodiscard]] std::uint64_t services_left_out() const { return services_left_out_; }
    [[nodiscard]] std::uint64_t losses_left_out() const { return losses_left_out_; }

private:
    void interval(const DpuCounts& counts);
    void lose(const dpu::Element& element);
    void close_service();

    std::optional<unsigned> cycles_;
    DpuReadings readings_checked_;
    std::optional<dpu::Counters> final_;
    std::optional<dpu::TaskContext> context_;
    std::uint64_t time_ = 0;
    unsigned shift_ = 0;
    std::array<DpuCounts, most_bins> bins_{};
    std::optional<Service> open_;
    std::vector<Service> services_;
    std::vector<Loss> losses_;
    std::size_t ended_losses_ = 0;
    std::uint64_t services_left_out_ = 0, losses_left_out_ = 0;
};

/// The capture's statements about itself, and the results of decoding.
struct DpuSaid {
    /// The event that each counter counts, such as `CYCLES`; empty: no event.
    std::array<std::string, dpu::counter_count> events{};
    std::array<bool, dpu::counter_count>
        unconnected{};  ///< its event input is not connected, so its count has no meaning
    std::array<bool, dpu::counter_count> rewritten{};  ///< its value was written while tracing was on
    /// Whether differences of a counter are counts.
    [[nodiscard]] bool counts(unsigned counter) const { return !unconnected[counter] && !rewritten[counter]; }
    std::optional<dpu::TraceMode> mode{};
    std::string mode_text{};
    std::optional<unsigned> cycles{};                ///< the counter that counts CYCLES
    std::map<std::uint8_t, std::string> tasks{};     ///< name of each task, by ID
    std::string program{}, cycles_note{}, layout{};  ///< cycles_note: how the cycles were produced
    dpu::Totals totals{};
    bool overwritten = false, cut = false, complete = true;
    std::string ended{};       ///< how the recording ended if the run continued: `by --limit, and the program ran on`
    bool all_changes = true;   ///< every change of flow makes an entry: TCHOF, TINT and TLOOP of the EOnCE were on
    bool lost_unseen = false;  ///< the unit reports lost entries (TLOST), but nothing in the trace shows which
    std::uint64_t offs{};      ///< number of times that tracing was off (EN = 0) between two stretches of trace
    std::uint64_t unplaced{};  ///< number of restarts whose place in the trace is not known
    /// Cycles of the run, if the recording states them, and cycles while tracing was off.
    std::optional<std::uint64_t> run_cycles{}, off_cycles{};
    bool filter_changed = false;  ///< the setting of IDFLT changed during the run
    std::string filter{};         ///< what IDFLT selects, as `PID 3`; empty: everything
    std::uint64_t missing_bytes{};
    std::vector<std::string> problems{};
    std::vector<std::string> rules{};  ///< for counters that do not always count: the condition of each
    /// The first counter that counts something; 0 if none does.
    [[nodiscard]] unsigned first_counter() const {
        unsigned c = 0;
        while (c < events.size() && events[c].empty()) ++c;
        return c < events.size() ? c : 0;
    }
};

/// The trust in the figures of a view, according to the trace mode and to the missing trace. Views: `tasks`,
/// `functions`, `paths`, `interrupts`, `ranges`, `timeline`, `loops`, `data`, `health`; and `report`, for tasks and
/// functions. Uses mode, totals and losses of `said`.
[[nodiscard]] answers::Trust trust_in(std::string_view view, const DpuSaid& said, const DpuCosts& costs);

struct DpuAnswersOptions {
    std::size_t most_slices = 200000;  ///< of the timeline
    std::size_t most_rows = 10000;     ///< limit for the table of user data, and for marks
};

/// Fills everything except `capture` and `version`. `times` may be null: then the timeline is empty.
[[nodiscard]] answers::Answers answers_of_dpu(const DpuCosts& costs, const DpuTimes* times, const DpuCode& code,
                                              const DpuSaid& said, const DpuAnswersOptions& options = {});

}  // namespace waymark::analysis
