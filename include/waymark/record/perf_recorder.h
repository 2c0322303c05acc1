/// Writes the perf.data file that Linux would have written with a CoreSight trace unit at each CPU. Each thread is a
/// context on a CPU. When a CPU switches to another thread, or its trace buffer is half full, the unit is stopped; this
/// ends a range of the AUX ring and interrupts the program. The truth is written next to the file.
///
/// All CPUs share one clock with a tick for each instruction, so execution on all CPUs has one order.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waymark/capture/perf_cs_etm_writer.h"
#include "waymark/capture/perf_writer.h"
#include "waymark/core/result.h"
#include "waymark/coresight/formatter.h"
#include "waymark/flow/each_instruction.h"
#include "waymark/flow/unit.h"
#include "waymark/record/aux_rings.h"
#include "waymark/record/code.h"
#include "waymark/record/code_place.h"
#include "waymark/record/perf_file.h"
#include "waymark/record/recorded_extent.h"
#include "waymark/record/recording.h"
#include "waymark/record/ring.h"
#include "waymark/record/tracker.h"
#include "waymark/record/truth.h"

namespace waymark::record {

/// Where the units' trace is stored.
enum class TraceSink : std::uint8_t {
    etr,   ///< one for all CPUs, in CoreSight frames
    trbe,  ///< one for each CPU, its unit's bytes as they are
};

/// Which trace is lost.
enum class TraceLoss : std::uint8_t {
    none,      ///< none: buffers are read when they are half full
    late,      ///< buffers are read too late: an ETR wraps, a TRBE is full for a while
    snapshot,  ///< only at the end: each AUX ring holds its newest bytes
};

struct PerfRecorderOptions {
    std::filesystem::path file{};
    std::vector<std::string> command{};  ///< program and arguments
    const flow::UnitFactory* units{};    ///< borrowed, never null
    flow::UnitOptions unit{};
    TraceSink sink = TraceSink::etr;
    /// A ring for each thread instead of one for each CPU: neither context IDs nor timestamps.
    bool per_thread = false;
    std::uint32_t cpus = 4;
    std::uint64_t aux_bytes = 1U << 20;  ///< size of each AUX ring, and of a sink's memory
    TraceLoss loss = TraceLoss::none;
    unsigned info_version = 1;  ///< of AUXTRACE_INFO
    bool sink_ids = false;      ///< AUX_OUTPUT_HW_ID records name the sink of each trace ID
    bool truth_ranges = false;  ///< a file per thread with every range
    bool aarch64 = false;
    std::uint64_t limit_instructions = 0;
    std::optional<CodePlace> start_at{}, stop_at{};
    std::function<std::optional<isa::Isa>(Address)> instruction_set{};  ///< RecorderOptions's
};

/// Checks unit, sink and form of the file. Errors: `usage`.
[[nodiscard]] Status check(const PerfRecorderOptions& options);

/// Counts of the recording so far.
struct PerfRecorded {
    std::uint64_t instructions{}, ranges{}, trace_bytes{}, aux_ranges{};
    std::uint64_t lost_bytes{};  ///< trace that the units sent and that no AUXTRACE record has
    std::uint32_t processes{}, threads{}, cpus{};
    bool began{}, stopped{};  ///< `start_at` was reached; a limit or `stop_at` was reached
    bool start_known{}, stop_known{};
    bool replaced{};  ///< another file was there before
};

class PerfRecorder final : public Recording {
public:
    /// Begins the file. Errors: `usage`: the errors of check() and RecordedPerfFile::create(); `unreadable`.
    [[nodiscard]] static Result<std::unique_ptr<PerfRecorder>> create(PerfRecorderOptions options);
    ~PerfRecorder() override;

    void definitions(std::span<const std::uint32_t> parts) override;
    void execution(std::uint32_t thread, std::span<const std::uint32_t> chunk) override;
    [[nodiscard]] Status flush() override;
    /// The program has ended, and another one follows in the same session, with separate threads and processes.
    void next_program(std::vector<std::string> command);
    /// Ends the file: stops the units, then writes index, header and truth.
    [[nodiscard]] Status finish(bool complete);

    [[nodiscard]] bool stopped() const override { return recorded_.stopped; }
    [[nodiscard]] const std::optional<Error>& failure() const override { return failure_; }
    [[nodiscard]] PerfRecorded recorded() const;

private:
    struct Block {
        std::optional<Definition> definition;  ///< until its instruction set is known
        Code code;
    };
    /// A process: the program, or a forked child, which has all blocks of its parent.
    struct Process {
        std::uint32_t pid{}, parent_pid{}, parent_tid{};  ///< no parent: the program
        std::vector<std::shared_ptr<Block>> blocks{};
        std::vector<OrdinaryBlock> rows{};                          ///< of these blocks, for Tracker::follow
        std::vector<std::pair<MapPart, std::string>> early_maps{};  ///< mappings that came before its pid was known
    };
    struct Thread {
        Thread(Clock& clock, const flow::UnitFactory& units)
            : tracker(clock, false, units.undefined_executes(), flow::traces_each_instruction(units)) {}
        std::uint32_t number{}, pid{}, tid{};
        Process* process{};
        Tracker tracker;
        std::optional<std::uint32_t> cpu{};  ///< CPU on which it runs, or ran last
        bool ended = false;
        std::uint32_t held = 0;                 ///< the last entered block, until it is known whether it ran to its end
        std::optional<std::uint32_t> cut{};     ///< its first instruction that did not complete, by the plugin
        std::optional<std::uint32_t> signal{};  ///< a signal for which some `half` words are still missing
        std::vector<std::uint32_t> halves{};
        std::size_t truth{};
        std::filesystem::path ranges_file{};
        std::unique_ptr<RangeWriter> ranges{};
    };
    /// The memory of an ETR or a TRBE.
    struct Memory {
        std::vector<std::uint8_t> bytes{};
        std::unique_ptr<coresight::Formatter> formatter{};  ///< formatter of an ETR, once trace came
    };
    struct Cpu {
        std::uint32_t number{};
        coresight::TraceId id{};
        Thread* running = nullptr;
        std::uint64_t since{};  ///< the clock when the thread began to run
        std::unique_ptr<flow::Unit> unit{};
        ByteCollector trace{};  ///< trace that the unit sent, for the sink
        Memory own{};           ///< used where `shares_sink()` is false
        bool announced{};       ///< its trace ID was reported
    };

    explicit PerfRecorder(PerfRecorderOptions options);
    Process& process(const ProcessPart& part);
    void define_block(Process& p, std::uint32_t id, Definition definition);
    void define_map(Process& p, const MapPart& part, std::string_view name);
    void define_thread(Process& p, const ThreadPart& part, std::string_view name);
    void introduce(Thread& t);
    void run(Thread& t, std::span<const std::uint32_t> words);
    /// Settles how far the last entered block ran: completed_part().
    void settle(Thread& t, std::optional<std::uint32_t> end = {});
    void execute(Thread& t, std::uint32_t id, CompletedPart part);
    /// The decoded block; null if there is no block with this number.
    const Code* known(const Thread& t, std::uint32_t id);
    void signal(Thread& t);
    /// Gives the thread a CPU, if it has none.
    void schedule(Thread& t);
    void start_unit(Cpu& c);
    /// The event is switched off: the trace of the CPU's unit becomes a range of the ring, or part of one.
    void stop_unit(Cpu& c);
    /// Moves the unit's trace into the sink.
    void collect(Cpu& c);
    void stop_all();
    void end(Thread& t);
    void end_program();
    void close_range(Cpu& c, std::vector<std::uint8_t> trace);
    /// Marks the truth of all running threads as incomplete in the trace.
    void mark_lost(std::uint64_t bytes);
    /// Writes the contents of the rings to the file.
    void drain();
    void stop();
    [[nodiscard]] capture::perf::RecordedPart recorded_part(bool complete) const;
    /// Whether all CPUs write into one ETR; with a ring for each thread, each thread has its own ETR.
    [[nodiscard]] bool shares_sink() const { return options_.sink == TraceSink::etr && !options_.per_thread; }
    [[nodiscard]] Memory& sink(Cpu& c) { return shares_sink() ? etr_ : c.own; }
    [[nodiscard]] std::uint64_t time() const { return conversion_.to_ns(clock_.cycle + 1); }
    [[nodiscard]] capture::perf::PerfWriter::At at(const Thread& t, std::size_t attr) const;
    void fail(const Status& status);

    PerfRecorderOptions options_;
    RecordedExtent extent_;
    std::vector<std::string> program_;  ///< the running program with its arguments
    capture::perf::TimeConversion conversion_;
    Clock clock_;
    std::unique_ptr<RecordedPerfFile> file_;
    std::optional<flow::SelectedBlocks> selected_;
    std::map<std::uint32_t, Process> processes_;  ///< by ProcessPart's number
    std::map<std::uint32_t, Thread> threads_;
    std::vector<Cpu> cpus_;
    AuxRings rings_;
    Memory etr_;  ///< used where `shares_sink()`
    Truth truth_;
    PerfRecorded recorded_;
    std::optional<Error> failure_;
};

}  // namespace waymark::record
