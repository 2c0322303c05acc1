/// The unit beside a modelled core, given what happens there cycle by cycle; and what it shall say, counted beside it.
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

/// Modes and filters of the trace, unless the registers at its end say it all: software may have written them since.
/// `period_lines`: lines written before each period; `messages`: the unit sent Nexus messages.
void describe_programming(capture::DpuCapture& c, const dpu::Model& model,
                          const std::vector<std::uint64_t>& period_lines, bool messages);

class DrivenUnit {
public:
    /// Borrows `options`. Writes of cycle 0 are made; `initial_id` is the task that is expected to run first.
    DrivenUnit(const DpuOptions& options, std::uint8_t initial_id);

    // ---- what happens

    /// All so far. Cycles are added after `begin_cost`.
    [[nodiscard]] Happened& total() { return total_; }
    [[nodiscard]] const Happened& total() const { return total_; }
    /// Of the core, after all items.
    [[nodiscard]] const dpu::CoreContext& now() const { return now_; }
    /// The core begins to execute, at `place`.
    void begin(const dpu::CoreContext& context, std::uint32_t place);
    /// Something happens in the last cycle.
    void item(dpu::EonceItem what);
    /// A write to a register, in the last cycle.
    void write(std::uint32_t offset, std::uint32_t value) { writes_.emplace_back(offset, value); }
    /// Before cycles are added: what belongs to the last one is given to the unit.
    void begin_cost();
    /// SAMPLE, and writes of the register program, where their time has come.
    void due_writes();
    /// Gives the unit all cycles but the last one, which may still get items, so that its effects on the core are seen
    /// in time.
    void catch_up();
    /// Counting ends, then tracing, and everything reaches the buffer.
    void stop();

    // ---- effects on the core

    /// The register program, or a service routine, can interrupt the core or ask for debug state.
    [[nodiscard]] bool has_effects() const { return has_effects_; }
    [[nodiscard]] bool raised(Service service) const { return (raised_ >> static_cast<unsigned>(service) & 1U) != 0; }
    /// What raised it.
    [[nodiscard]] std::string cause(Service service) const;
    /// The core takes it: the system acknowledges its causes in DP_MR, then the routine's writes are made.
    void serve(Service service);

    // ---- readout in request mode

    /// It asks for a readout.
    [[nodiscard]] bool requested() const { return requested_; }
    /// Reads what is new, takes back the request and asks for the next half.
    void serve_readout();

    // ---- what it wrote

    [[nodiscard]] const dpu::Model& model() const { return *model_; }
    /// The whole buffer, where it is a ring that nobody reads out.
    [[nodiscard]] std::optional<Bytes> ring() const {
        return ring_ && !readout_ ? std::optional<Bytes>(ring_->bytes()) : std::nullopt;
    }
    /// Trace and Nexus messages that are not yet in their files.
    [[nodiscard]] const std::vector<std::uint8_t>& written() const { return written_; }
    [[nodiscard]] const std::vector<std::uint8_t>& messages() const { return nexus_; }
    void clear_written() {
        written_.clear();
        nexus_.clear();
    }
    [[nodiscard]] std::uint64_t message_bytes() const { return nexus_bytes_; }
    [[nodiscard]] std::uint64_t overruns() const { return overruns_.size(); }
    [[nodiscard]] const std::vector<dpu::ProgrammingError>& errors() const { return errors_; }
    /// Position in the file of the unit's byte number `written`; for a byte that was overwritten unread, the position
    /// where it is missing.
    [[nodiscard]] std::uint64_t place_in_file(std::uint64_t written) const;
    /// Registers, periods, counters and losses.
    void describe(capture::DpuCapture& c) const;
    /// Lines of truth.txt: what was traced and counted, by context and interval.
    [[nodiscard]] std::string truth_text() const;

private:
    void program_unit(const dpu::CoreContext& context);
    void end_interval(std::uint32_t start);
    void advance();
    /// `cycles` of `rest`, without items and writes.
    void run(Happened& rest, std::uint64_t cycles);
    void give(const dpu::CycleOutput& out);
    [[nodiscard]] std::uint32_t causes_of(Service service) const;
    [[nodiscard]] bool reads_out() const;
    /// Whether `is_harmless(write)` for every write after cycle 0, also of service routines.
    [[nodiscard]] bool later_writes(auto&& is_harmless) const;
    void read_out();
    void describe_off(capture::DpuCapture& c) const;
    [[nodiscard]] bool traces_all() const;
    [[nodiscard]] bool counts_all(unsigned counter) const;

    const DpuOptions& options_;
    std::unique_ptr<dpu::Model> model_;
    std::unique_ptr<dpu::VirtualTraceBuffer> ring_;
    std::optional<dpu::Readout> readout_;  ///< request mode: the system reads the ring when it is asked to
    bool requested_ = false;               ///< and has not done so yet
    bool has_effects_ = false;
    std::uint8_t raised_ = 0;  ///< a bit for each Service
    std::uint64_t read_lines_ = 0, read_bytes_ = 0;
    std::vector<std::uint64_t> overruns_;  ///< capture::DpuCapture::overruns
    /// Of each overrun: bytes that the unit had written before the piece after it.
    std::vector<std::uint64_t> written_before_;
    std::uint64_t lines_ = 0;                  ///< that left the unit
    std::vector<std::uint64_t> period_lines_;  ///< before each time that tracing was enabled
    std::vector<std::uint8_t> written_, nexus_;
    std::uint64_t nexus_bytes_ = 0;
    std::vector<dpu::ProgrammingError> errors_;

    dpu::CoreContext context_;  ///< of the cycles that the unit has not received yet
    dpu::CoreContext now_;
    std::uint8_t id_before_ = 0;
    /// Of the last cycle that was added up.
    std::vector<dpu::EonceItem> items_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> writes_;
    Happened total_, done_, interval_;  ///< so far; given to the unit; where the interval began
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
    /// What the EOnCE traced: by kind and source, how often and the sum of the destinations.
    std::unordered_map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> changes_;
    std::map<std::pair<bool, std::uint8_t>, std::uint64_t> stays_;
    std::optional<dpu::Counters> final_;
    std::optional<dpu::Registers> stopped_registers_;  ///< as they were before the unit was stopped
    std::optional<dpu::CounterHistory> history_;
    bool ended_early_ = false;   ///< tracing was off when the program ended
    bool counted_all_ = false;   ///< tracing was on at the first and at the last instruction
    dpu::Registers programmed_;  ///< after the writes of cycle 0
};

/// Numbers of a line of truth.txt.
[[nodiscard]] std::string counts_text(const Happened& happened);

/// The classes of items that the EOnCE traces, by the names of the bits of TB_CTRL: `TCHOF`.
[[nodiscard]] std::vector<std::string> class_names(const dpu::EonceSetup& setup);

}  // namespace waymark::record
