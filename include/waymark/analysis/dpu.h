/// Costs in a trace of the Debug and Profiling Unit: counter values by task, function, call path, interrupt and range
/// of code, activations, loops, user data, losses (docs/spec/dpu.md, section 12). Each interval between two readings
/// goes to exactly one bucket, so every view adds up to the counters' totals.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/analysis/dpu_calls.h"
#include "waymark/analysis/dpu_code.h"
#include "waymark/analysis/dpu_counts.h"
#include "waymark/analysis/dpu_loops.h"
#include "waymark/core/types.h"
#include "waymark/dpu/element.h"
#include "waymark/dpu/format.h"
#include "waymark/dpu/registers.h"
#include "waymark/dpu/state.h"

namespace waymark::analysis {

// ---- facts about the recording

/// The setting of DP_TC.IDFLT from one place in the trace on: with a filter, only changes from or to a matching task
/// make entries (3.2, 5.1).
struct DpuFilter {
    std::uint64_t from{};  ///< offset of the first element to which it applies
    bool on = false;
    dpu::IdCompare compare{};  ///< DP_CR.TIDCM
    std::uint8_t rpid{}, rdid{};
    bool shows_did = false;  ///< DP_TC.TIDS: IDs in the trace are data IDs
    bool same_ids = false;   ///< both IDs of a context are the same number in this capture

    /// Whether a context matches; nullopt if that depends on the ID that the trace does not show.
    [[nodiscard]] std::optional<bool> matches(const dpu::TaskContext& context) const;
    [[nodiscard]] bool matches(std::uint8_t pid, std::uint8_t did) const;
};

/// Code at [first, second): of any image, or only of one of DpuCode::images.
struct DpuCodeRange {
    std::uint32_t first{}, second{};
    std::size_t image = DpuCode::no_image;
    auto operator<=>(const DpuCodeRange&) const = default;
};

struct DpuSetup {
    std::optional<dpu::TraceMode> mode{};
    bool complete = false;  ///< the unit had written everything
    std::optional<dpu::TaskContext> initial_context{};
    std::optional<dpu::Counters> initial{}, final{};
    std::vector<DpuFilter> filters{};  ///< oldest first; empty: everything makes entries
    std::optional<std::pair<std::uint8_t, std::uint8_t>> initial_ids{};  ///< program and data ID of initial_context
    std::optional<unsigned> cycles{};  ///< the counter that counts CYCLES, without qualifier and all the time
    std::uint8_t within_cycles{};      ///< a bit for each counter that never counts more than `cycles`
    /// A bit for each counter whose value was written while tracing was on. The differences of such a counter are not
    /// counts, so they are never doubted.
    std::uint8_t rewritten{};
    std::vector<DpuCodeRange> ranges{};
    std::size_t most_stays = std::size_t{1} << 20;  ///< number of stays that are stored individually
    /// The program ran before tracing began, or after it ended, so its first or last stay is incomplete.
    bool began_before = false, ended_after = false;
    /// Numbers of implausible readings, counting from 0, ascending (dpu_doubts.h). They are left out: the interval
    /// between their neighbours is counted as a whole, but its owner is not known.
    std::vector<std::uint64_t> doubtful{};
};

/// Passes on consecutive readings without the doubtful ones. Keeps the data of each reading from the trace, adjusted
/// for readings that are left out.
class DpuReadings {
public:
    explicit DpuReadings(const DpuSetup& setup) : values_(setup.initial), doubtful_(setup.doubtful) {}
    /// The next reading; null if it is doubtful. Valid until the next call.
    WM_INLINE const dpu::Reading* next(const dpu::Reading& reading) {
        if (number_++ == doubted_) [[unlikely]]
            return doubt();
        if (skipped_) [[unlikely]]
            return join(reading);
        values_ = reading.values;
        return &reading;
    }
    /// The values of the last reading that is not doubtful, or those at the beginning of counting.
    [[nodiscard]] const std::optional<dpu::Counters>& values() const { return values_; }
    /// Whether the preceding readings were doubtful.
    [[nodiscard]] bool skipped() const { return skipped_; }

private:
    const dpu::Reading* doubt();
    const dpu::Reading* join(const dpu::Reading& reading);

    static constexpr std::uint64_t nothing = ~std::uint64_t{0};
    std::optional<dpu::Counters> values_;
    std::vector<std::uint64_t> doubtful_;
    std::size_t next_ = 0;  ///< index in doubtful_, after doubted_
    std::uint64_t number_ = 0, doubted_ = doubtful_.empty() ? nothing : doubtful_[next_++];
    bool skipped_ = false;
    dpu::Reading joined_;
};

// ---- costs

struct DpuTask {
    DpuCounts sum{}, sampled{}, tail{};  ///< all counts; the part from samples only; the part after the last reading
    /// Uninterrupted stays whose beginning and end are in the trace; outside modes TASK and FLOW stretches between
    /// samples.
    DpuSpread stays;
    /// Modes TASK, FLOW, EONCE_RAW and EONCE_COMP: number of stays in the trace. Where trace is missing, two stays that
    /// may be one count once.
    std::uint64_t entered = 0;
    bool known = true;  ///< false: counts from before the first available value are missing in `sum`
};

/// One uninterrupted stay of a context. Outside modes TASK and FLOW: a stretch between samples that show no other
/// context.
struct DpuStay {
    dpu::TaskContext context;
    std::uint64_t begin{}, end{};  ///< cycles, or numbers of readings if no counter counts cycles
    DpuCounts counts{};
    bool begins = true;  ///< the trace shows its beginning
};

struct DpuRange {
    DpuCounts inside{}, crossing{};
    std::uint64_t intervals = 0, crossings = 0;
};

struct DpuDatum {
    Offset offset;
    std::optional<dpu::TaskContext> context;
    std::uint32_t value{};
    std::uint64_t time{};  ///< at the previous reading
};

/// Differences of 2^30 or more: either the events occurred, and the counter may have wrapped unnoticed, or a word of
/// the trace is damaged. A damaged value makes one of the two differences around it negative, which appears as such a
/// difference, unless the true one is larger than the damage; `DpuDoubts` finds these.
struct DpuWide {
    std::uint64_t intervals = 0;
    std::uint64_t lossy = 0;      ///< number of them in which entries are missing
    std::uint64_t beyond = 0;     ///< further intervals in which WAIT or a stall counted more than CYCLES
    std::uint8_t counters = 0;    ///< a bit for each counter with such a difference
    std::optional<Offset> first;  ///< the reading at the end of the first such interval; nullopt: the final values
};

/// The meaning of such a difference, in the words of every command.
inline constexpr std::string_view wide_means = "a damaged word, or it wrapped unseen";

/// Readings that were omitted (DpuSetup::doubtful).
struct DpuDoubted {
    std::uint64_t readings = 0;
    std::uint64_t intervals = 0;        ///< number of intervals that replace those around them
    DpuCounts counts{};                 ///< counts of these intervals: included in all sums, without an owner
    std::optional<Offset> first, last;  ///< entries
};

/// One counter: the sum of its buckets compared with the counter's own values.
struct DpuReconciled {
    std::uint64_t sum{}, intervals{};           ///< sum of all buckets; sum of all intervals
    std::optional<std::uint32_t> from{}, to{};  ///< first and last known value
    [[nodiscard]] std::uint32_t counted() const { return from && to ? (*from - *to) & dpu::counter_mask : 0; }
    /// Any other value than 0 indicates an error.
    [[nodiscard]] std::uint64_t residual() const {
        if (sum != intervals) return sum - intervals;
        return from && to ? ((sum & dpu::counter_mask) - counted()) & dpu::counter_mask : 0;
    }
};

/// Takes the elements of a whole trace.
class DpuCosts final : public dpu::ElementSink {
public:
    /// `code` is borrowed.
    DpuCosts(DpuSetup setup, const DpuCode& code);
    ~DpuCosts() override;
    void consume(const dpu::Batch& batch) override;
    /// The trace ends: adds the time after its last reading, and ends the open stay and all open calls.
    void finish();

    [[nodiscard]] const std::map<DpuOwner, DpuTask>& tasks() const { return tasks_; }
    [[nodiscard]] const DpuCounts& total() const { return total_; }
    [[nodiscard]] const std::vector<DpuStay>& stays() const { return stays_; }
    [[nodiscard]] std::uint64_t stays_left_out() const { return stays_left_out_; }
    /// Mode FLOW. Costs without a function are listed under a name in angle brackets.
    [[nodiscard]] const std::map<DpuCode::Function, DpuFunctionCost>& functions() const { return calls_.functions(); }
    [[nodiscard]] const std::vector<DpuPath>& paths() const { return calls_.paths(); }
    [[nodiscard]] std::uint64_t returns_without_call() const { return calls_.returns_without_call(); }
    /// Number of functions that replaced their caller: code continued in them after a jump, which is not in the trace.
    /// They count as called.
    [[nodiscard]] std::uint64_t jumps() const { return calls_.jumps(); }
    /// Number of intervals with such a jump: any part of their cost may have been spent before the jump. See
    /// `DpuFunctionCost::crossed`.
    [[nodiscard]] std::uint64_t crossings() const { return calls_.crossings(); }
    [[nodiscard]] const std::map<std::uint32_t, DpuService>& services() const { return calls_.services(); }
    [[nodiscard]] const std::vector<DpuRange>& ranges() const { return ranges_; }
    [[nodiscard]] const DpuCounts& outside_ranges() const { return outside_; }
    /// By last address of the loop.
    [[nodiscard]] const std::map<DpuCode::Place, DpuLoop>& loops() const { return loops_.loops(); }
    [[nodiscard]] bool runs_of_loops_uncertain() const { return loops_.uncertain(); }
    [[nodiscard]] const std::vector<DpuDatum>& data() const { return data_; }
    /// Compares the rows of a view, whose sum is `rows`, with everything that was counted.
    [[nodiscard]] std::array<DpuReconciled, dpu::counter_count> reconciled(const DpuCounts& rows) const;
    [[nodiscard]] std::uint64_t readings() const { return readings_; }
    [[nodiscard]] const DpuWide& wide() const { return wide_; }
    /// Whether IDFLT was on for some part of the trace.
    [[nodiscard]] bool filtered() const;
    /// Whether the filter was on for only a part of the trace, or compared with different IDs.
    [[nodiscard]] bool filter_changed() const;
    /// Whether there are counts without a known owner: where trace is missing, or the deciding ID is not shown.
    [[nodiscard]] bool has_unattributed() const;
    [[nodiscard]] const DpuDoubted& doubted() const { return doubted_; }
    /// Whether changes of flow show the task of every interval (modes TASK and FLOW).
    [[nodiscard]] bool knows_stays() const { return changes_; }
    [[nodiscard]] bool knows_time() const { return setup_.cycles.has_value(); }
    [[nodiscard]] std::uint64_t time() const { return time_; }

private:
    using Place = DpuCode::Place;

    void reading(const dpu::Element& element, const dpu::Reading& reading);
    [[nodiscard]] DpuOwner owner(const dpu::Element& element, const dpu::Reading& reading) const;
    [[nodiscard]] std::optional<bool> shown(std::uint64_t end) const;
    [[nodiscard]] bool stays_shown(const dpu::TaskContext& context, std::uint64_t at) const;
    [[nodiscard]] bool beyond(const DpuCounts& counts) const;
    void doubt(const DpuCounts& counts, std::uint8_t wide, std::optional<Offset> at, bool lossy);
    void book(const DpuOwner& who, const DpuCounts& counts, std::optional<Place> last_pc, bool known);
    void show(const dpu::TaskContext& context);
    void stay(const std::optional<dpu::TaskContext>& context, bool begins, bool ended);
    [[nodiscard]] std::optional<Place> last_place(const dpu::Element& element) const;
    void lose_stacks();

    DpuSetup setup_;
    const DpuCode& code_;
    bool changes_ = false;  ///< mode TASK or FLOW: readings come with changes of flow

    bool eonce_ = false;  ///< mode EONCE_RAW or EONCE_COMP: every change of context is in the trace

    std::optional<dpu::TaskContext> shown_;    ///< the last known context before a loss
    std::optional<dpu::TaskContext> context_;  ///< known from the previous reading
    std::optional<Place> run_;                 ///< beginning of the run after that reading
    std::uint32_t run_came_from_{};            ///< source of the change of flow that led there
    DpuReadings readings_checked_;
    std::optional<dpu::Counters> first_values_;
    std::optional<std::uint64_t> reading_at_;  ///< offset of the previous reading
    bool lossy_ = false;                       ///< trace was lost since that reading
    bool mixed_ = false;
    DpuCounts total_{}, intervals_{};
    std::uint64_t readings_ = 0, time_ = 0;
    DpuWide wide_;
    DpuDoubted doubted_;

    std::map<DpuOwner, DpuTask> tasks_;
    std::optional<DpuStay> stay_;
    std::vector<DpuStay> stays_;
    std::uint64_t stays_left_out_ = 0;
    DpuCalls calls_;
    std::vector<DpuRange> ranges_;
    DpuCounts outside_{};
    DpuLoops loops_;
    std::vector<DpuDatum> data_;
};

}  // namespace waymark::analysis
