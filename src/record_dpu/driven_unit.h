/// The unit beside a modelled core. It receives the events there cycle by cycle; the expected trace is counted
/// independently.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waymark/capture/dpu_folder.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/vtb.h"
#include "waymark/record_dpu/dpu_options.h"
#include "waymark/record_dpu/happened.h"

namespace waymark::record {

/// Describes modes and filters of the trace, unless the registers at its end are enough: software may have written them
/// since. `period_lines`: lines written before each period; `messages`: the unit sent Nexus messages.
void describe_programming(capture::DpuCapture& c, const dpu::Model& model,
                          const std::vector<std::uint64_t>& period_lines, bool messages);

class DrivenUnit {
public:
    /// Borrows `options`. Makes the writes of cycle 0; `initial_id` is the task that is expected to run first.
    DrivenUnit(const DpuOptions& options, std::uint8_t initial_id);

    // ---- what happens

    /// All events so far. Add cycles after `begin_cost`.
    [[nodiscard]] Happened& total() { return total_; }
    [[nodiscard]] const Happened& total() const { return total_; }
    /// The context of the core, after all items.
    [[nodiscard]] const dpu::CoreContext& now() const { return now_; }
    /// The core begins to execute, at `place`.
    void begin(const dpu::CoreContext& context, std::uint32_t place);
    /// An item occurs in the last cycle.
    void item(dpu::EonceItem what);
    /// A write to a register, in the last cycle.
    void write(std::uint32_t offset, std::uint32_t value) { writes_.emplace_back(offset, value); }
    /// Call this before adding cycles: passes the events of the last cycle to the unit.
    void begin_cost();
    /// Makes due writes of SAMPLE and of the register program.
    void due_writes();
    /// Passes all cycles except the last one to the unit, so that its effects on the core are seen in time. The last
    /// one may still receive items.
    void catch_up();
    /// Stops counting, then tracing, and flushes everything to the buffer.
    void stop();

    // ---- effects on the core

    /// Whether the register program, or a service routine, can interrupt the core or request debug state.
    [[nodiscard]] bool has_effects() const { return has_effects_; }
    [[nodiscard]] bool raised(Service service) const { return (raised_ >> static_cast<unsigned>(service) & 1U) != 0; }
    /// The cause of the service.
    [[nodiscard]] std::string cause(Service service) const;
    /// The core takes the service: the system acknowledges its causes in DP_MR, then makes the routine's writes.
    void serve(Service service);

    // ---- readout in request mode

    /// Whether the unit requests a readout.
    [[nodiscard]] bool requested() const { return requested_; }
    /// Reads the new data, withdraws the request and requests the next half.
    void serve_readout();

    // ---- output

    [[nodiscard]] const dpu::Model& model() const { return *model_; }
    /// The whole buffer, if it is a ring that is not read out.
    [[nodiscard]] std::optional<Bytes> ring() const {
        return ring_ && !readout_ ? std::optional<Bytes>(ring_->bytes()) : std::nullopt;
    }
    /// Trace that is not yet in its file.
    [[nodiscard]] const std::vector<std::uint8_t>& written() const { return written_; }
    [[nodiscard]] const std::vector<std::uint8_t>& messages() const { return nexus_; }
    void clear_written() {
        written_.clear();
        nexus_.clear();
    }
    [[nodiscard]] std::uint64_t message_bytes() const { return nexus_bytes_; }
    [[nodiscard]] std::uint64_t overruns() const { return overruns_.size(); }
    [[nodiscard]] const std::vector<dpu::ProgrammingError>& errors() const { return errors_; }
    /// Offset in the file of the unit's byte number `written`; for a byte that was overwritten before it was read, the
    /// offset at which it is missing.
    [[nodiscard]] std::uint64_t place_in_file(std::uint64_t written) const;
    /// Registers, periods, counters and losses.
    void describe(capture::DpuCapture& c) const;
    /// Lines of truth.txt: trace and counts, by context and interval.
    [[nodiscard]] std::string truth_text() const;

private:
    void program_unit(const dpu::CoreContext& context);
    void end_interval(std::uint32_t start);
    void advance();
    /// Runs `cycles` of `rest`, without items and writes.
    void run(Happened& rest, std::uint64_t cycles);
    void give(const dpu::CycleOutput& out);
    [[nodiscard]] std::uint32_t causes_of(Service service) const;
    [[nodiscard]] bool reads_out() const;
    /// Whether `is_harmless(write)` is true for every write after cycle 0, including writes of service routines.
    [[nodiscard]] bool later_writes(auto&& is_harmless) const;
    void read_out();
    void describe_off(capture::DpuCapture& c) const;
    [[nodiscard]] bool traces_all() const;
    [[nodiscard]] bool counts_all(unsigned counter) const;

    const DpuOptions& options_;
    std::unique_ptr<dpu::Model> model_;
    std::unique_ptr<dpu::VirtualTraceBuffer> ring_;
    std::optional<dpu::Readout> readout_;  ///< request mode: the system reads the ring on request
    bool requested_ = false;               ///< a readout was requested, and has not been done yet
    bool has_effects_ = false;
    std::uint8_t raised_ = 0;  ///< raised services, a bit for each Service
    std::uint64_t read_lines_ = 0, read_bytes_ = 0;
    std::vector<std::uint64_t> overruns_;  ///< capture::DpuCapture::overruns
    /// For each overrun: bytes that the unit had written before the piece after it.
    std::vector<std::uint64_t> written_before_;
    std::uint64_t lines_ = 0;                  ///< number of lines that left the unit
    std::vector<std::uint64_t> period_lines_;  ///< lines before each time that tracing was enabled
    std::vector<std::uint8_t> written_, nexus_;
    std::uint64_t nexus_bytes_ = 0;
    std::vector<dpu::ProgrammingError> errors_;

    dpu::CoreContext context_;  ///< context of the cycles that the unit has not received yet
    dpu::CoreContext now_;
    std::uint8_t id_before_ = 0;
    /// Items of the last cycle added.
    std::vector<dpu::EonceItem> items_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> writes_;
    Happened total_, done_,
        interval_;  ///< total so far; total passed to the unit; total at the beginning of the interval
    std::uint32_t interval_start_ = 0;
    dpu::CoreContext interval_context_;
    std::size_t next_write_ = 0;
    std::uint64_t next_sample_ = 0;

    struct Key {
        bool supervisor;
        std::uint8_t id;
        std::uint32_t start;
        auto operator<=>(const Key&) const = default;
    };
    std::map<Key, std::pair<std::uint64_t, Happened>> intervals_;  ///< times, sum
    std::optional<Key> first_;                                     ///< of them
    /// Items that the EOnCE traced, by kind and source: their number, and the sum of their destinations.
    std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> changes_;
    std::map<std::pair<bool, std::uint8_t>, std::uint64_t> stays_;
    std::optional<dpu::Counters> final_;
    std::optional<dpu::Registers> stopped_registers_;  ///< registers before the unit was stopped
    std::optional<dpu::CounterHistory> history_;
    bool ended_early_ = false;   ///< tracing was off when the program ended
    bool counted_all_ = false;   ///< tracing was on at the first and at the last instruction
    dpu::Registers programmed_;  ///< registers after the writes of cycle 0
};

/// Counts as the numbers of a line in truth.txt.
[[nodiscard]] std::string counts_text(const Happened& happened);

/// The classes of items that the EOnCE traces, as names of bits in TB_CTRL: `TCHOF`.
[[nodiscard]] std::vector<std::string> class_names(const dpu::EonceSetup& setup);

}  // namespace waymark::record
