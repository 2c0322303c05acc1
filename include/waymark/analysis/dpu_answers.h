/// What a trace of the Debug and Profiling Unit says of its program, as `Answers` (docs/spec/dpu.md, section 12). Costs
/// of the call tree add up to `DpuCosts::total` exactly.
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

/// What happened when, beside the stays that `DpuCosts` keeps: counts over time, interrupts and system calls one by
/// one, and losses. Takes the same elements, and measures time the same way. Memory does not grow with the trace.
class DpuTimes final : public dpu::ElementSink {
public:
    static constexpr unsigned most_bins = 512;
    static constexpr std::size_t most_services = 1 << 20, most_losses = 10000;

    struct Loss {
        Offset offset;
        std::uint64_t begin{}, end{};  ///< from the reading before to the reading after it
        std::uint64_t entries{};       ///< for which there was no room; 0: `reason` says why
        GapReason reason{};
        dpu::ElementKind kind{};  ///< of the element that shows it
    };
    struct Service {
        std::uint32_t entry{};
        std::uint64_t begin{}, end{};
    };

    explicit DpuTimes(const DpuSetup& setup);
    void consume(const dpu::Batch& batch) override;
    /// The trace ends here.
    void finish();

    /// Counts of [i << shift(), (i + 1) << shift()); an interval's are spread evenly over it. They add up to all.
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

/// What the capture says of itself, and what decoding it gave.
struct DpuSaid {
    /// By counter: what it counts, such as `CYCLES`; empty: nothing.
    std::array<std::string, dpu::counter_count> events{};
    std::array<bool, dpu::counter_count> unconnected{};  ///< its event is not driven: its count says nothing
    std::array<bool, dpu::counter_count> rewritten{};    ///< its value was written while tracing was on
    /// The differences of a counter are counts.
    [[nodiscard]] bool counts(unsigned counter) const { return !unconnected[counter] && !rewritten[counter]; }
    std::optional<dpu::TraceMode> mode{};
    std::string mode_text{};
    std::optional<unsigned> cycles{};                ///< the counter that counts CYCLES
    std::map<std::uint8_t, std::string> tasks{};     ///< what a task is, by its ID
    std::string program{}, cycles_note{}, layout{};  ///< cycles_note: how cycles came to be
    dpu::Totals totals{};
    bool overwritten = false, cut = false, complete = true;
    std::string ended{};       ///< how the recording ended before the run did: `by --limit, and the program ran on`
    bool all_changes = true;   ///< every change of flow makes an entry: TCHOF, TINT and TLOOP of the EOnCE were on
    bool lost_unseen = false;  ///< the unit says that entries were lost (TLOST), and none of the trace says which
    std::uint64_t offs{};      ///< times that tracing was off (EN = 0) between two stretches of trace
    std::uint64_t unplaced{};  ///< times that it began again nobody knows where in the trace
    /// Of the run, where the recording says so: cycles, and those while tracing was off.
    std::optional<std::uint64_t> run_cycles{}, off_cycles{};
    bool filter_changed = false;  ///< what IDFLT lets by is not the same all the time
    std::string filter{};         ///< what IDFLT lets by, as `PID 3`; empty: everything
    std::uint64_t missing_bytes{};
    std::vector<std::string> problems{};
    std::vector<std::string> rules{};  ///< of counters that do not count all: what each counts when
    /// The first that counts something; 0: none does.
    [[nodiscard]] unsigned first_counter() const {
        unsigned c = 0;
        while (c < events.size() && events[c].empty()) ++c;
        return c < events.size() ? c : 0;
    }
};

/// What holds for the figures of a view, by the trace mode and by what is missing. Views: `tasks`, `functions`,
/// `paths`, `interrupts`, `ranges`, `timeline`, `loops`, `data`, `health`; and `report`, of tasks and functions. Of
/// `said` it looks at mode, totals and what is missing.
[[nodiscard]] answers::Trust trust_in(std::string_view view, const DpuSaid& said, const DpuCosts& costs);

struct DpuAnswersOptions {
    std::size_t most_slices = 200000;  ///< of the timeline
    std::size_t most_rows = 10000;     ///< of the table of user data, and of marks
};

/// Everything but `capture` and `version`. `times` may be null: the timeline is left empty.
[[nodiscard]] answers::Answers answers_of_dpu(const DpuCosts& costs, const DpuTimes* times, const DpuCode& code,
                                              const DpuSaid& said, const DpuAnswersOptions& options = {});

}  // namespace waymark::analysis
