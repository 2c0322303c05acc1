/// Makes a capture of a Debug and Profiling Unit from what the threads of a 32-bit Arm program executed: the program
/// stands in for a DSP core that the unit watches (docs/spec/dpu.md, 13.2). Instructions, their order in each thread,
/// branches, accesses and system calls are the program's. Cycles, stalls and caches are those of a modelled core, and
/// one virtual core runs all threads, a chunk at a time, in the order in which the chunks were ended.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waymark/capture/dpu_folder.h"
#include "waymark/core/result.h"
#include "waymark/dpu/model.h"
#include "waymark/dpu/register_program.h"
#include "waymark/dpu/vtb.h"
#include "waymark/record/code.h"
#include "waymark/record/modules.h"
#include "waymark/record/output_lock.h"
#include "waymark/record/recording.h"
#include "waymark/record/ring.h"
#include "waymark/record/set_associative.h"

namespace waymark::record {

// ---- options

/// The modelled core: one instruction a cycle, and what stalls it.
struct CoreModel {
    std::uint32_t icache_kib = 16, dcache_kib = 32, ways = 4, line_bytes = 64;
    std::uint32_t miss_cycles = 20, flow_cycles = 2, os_cycles = 200, thrash_window = 10000, short_loop_max = 2;

    /// Calls `f(name, value, what it is)` for every number.
    static void for_each(auto& m, auto&& f) {
        f("icache_kib", m.icache_kib, "instruction cache");
        f("dcache_kib", m.dcache_kib, "data cache: writes allocate");
        f("ways", m.ways, "of both caches");
        f("line_bytes", m.line_bytes, "of both caches");
        f("miss_cycles", m.miss_cycles, "stall of a miss: STALL_PROG, STALL_DATA");
        f("flow_cycles", m.flow_cycles, "stall of a taken change of flow: STALL_COF; a hardware loop has none");
        f("os_cycles", m.os_cycles, "each stay in the operating system");
        f("thrash_window", m.thrash_window, "a line fetched again within so many cycles of its eviction thrashes");
        f("short_loop_max", m.short_loop_max, "instructions of a loop that counts as short");
    }
    bool operator==(const CoreModel&) const = default;
};
/// Errors: `usage`, naming the number.
[[nodiscard]] Status set(CoreModel& model, std::string_view name, std::uint64_t value);
[[nodiscard]] Status check(const CoreModel& model);
[[nodiscard]] std::string to_text(const CoreModel& model);

/// An EDCA channel: six of them watch an address, executed or accessed.
struct Watchpoint {
    std::uint8_t channel{};
    Address address;
};

struct DpuOptions {
    std::filesystem::path folder{};
    bool force = false;  ///< record into a folder that holds something else too
    std::vector<std::string> command{};
    dpu::TraceMode mode = dpu::TraceMode::flow;
    std::array<std::uint8_t, 2> events{2, 7};   ///< CEG of triad A and B
    std::uint32_t initial = dpu::counter_mask;  ///< value of all six counters at first
    std::uint64_t buffer_bytes = 0;             ///< of the virtual trace buffer, a ring; 0: everything is kept
    bool request = false;   ///< the ring requests its readout, half by half, and the system serves it
    bool user_data = true;  ///< DP_TD writes make entries in every mode
    dpu::NexusMode nexus = dpu::NexusMode::off;     ///< beside the buffer
    std::uint64_t sample_every = 0;                 ///< cycles; mode sw_sample
    bool loops = true;                              ///< backward branches are hardware loops; else changes of flow
    std::optional<dpu::RegisterProgram> program{};  ///< instead of mode, events, initial, buffer, user_data, nexus
    std::vector<Address> marks{};                   ///< executing them is a MARK
    std::vector<Watchpoint> watchpoints{};
    dpu::EonceSetup eonce{};              ///< set by resolve()
    std::vector<std::string> warnings{};  ///< set by resolve(): what will hardly be as it was meant
    dpu::ModelChoices choices{};
    CoreModel core{};
    std::uint64_t limit_instructions = 0;
};
/// Completes and checks. Errors: `usage`.
[[nodiscard]] Status resolve(DpuOptions& options);
/// `task`, `flow`, `raw`, `compressed`, `sample`, `edca5`, `user`, `user-raw`: modes as users name them.
[[nodiscard]] const std::vector<std::pair<std::string, dpu::TraceMode>>& dpu_modes();
/// Event wires a recorded program drives, the unit's own included.
[[nodiscard]] const std::vector<dpu::EventWire>& driven_wires();

// ---- truth

/// What truly happened, counted beside the unit: by event wire, in the order of `truth_wires`.
inline constexpr std::array truth_wires{
    dpu::EventWire::cycles,     dpu::EventWire::vles,       dpu::EventWire::stall_all,  dpu::EventWire::stall_prog,
    dpu::EventWire::stall_data, dpu::EventWire::stall_cof,  dpu::EventWire::ic_hit,     dpu::EventWire::ic_miss,
    dpu::EventWire::ic_thrash,  dpu::EventWire::dc_hit,     dpu::EventWire::dc_miss,    dpu::EventWire::dc_thrash,
    dpu::EventWire::dc_wback,   dpu::EventWire::interrupts, dpu::EventWire::exceptions, dpu::EventWire::task_switches,
    dpu::EventWire::mark,       dpu::EventWire::edca0,      dpu::EventWire::edca1,      dpu::EventWire::edca2,
    dpu::EventWire::edca3,      dpu::EventWire::edca4,      dpu::EventWire::edca5,
};
struct Happened {
    std::array<std::uint64_t, truth_wires.size()> count{};
    Happened& operator+=(const Happened& other) {
        for (std::size_t i = 0; i < count.size(); ++i) count[i] += other.count[i];
        return *this;
    }
    friend Happened operator-(Happened a, const Happened& b) {
        for (std::size_t i = 0; i < a.count.size(); ++i) a.count[i] -= b.count[i];
        return a;
    }
    bool operator==(const Happened&) const = default;
};

/// How a recording ended, for DpuRecorder::finish(): the program came to its own end, so that all of its run is there.
inline constexpr std::string_view whole_run = "exit";
/// The same where DpuOptions::limit_instructions was reached.
inline constexpr std::string_view limited_run = "by --limit, and the program ran on";

/// Sums of a recording.
struct DpuRecorded {
    std::uint64_t instructions{}, cycles{}, lines{}, lost{}, user_data{}, switches{};
    std::uint64_t entries{};                ///< accepted by the unit
    std::uint64_t nexus_bytes{};            ///< of messages
    std::optional<std::uint64_t> buffer{};  ///< lines the buffer holds; none: everything is kept
    std::uint64_t readouts{}, overruns{};   ///< request mode: interrupts served; of them: trace was overwritten unread
    std::uint32_t threads{};
    bool replaced{};   ///< another recording was in the folder before
    bool shared_id{};  ///< more than 254 threads at a time: some shared a task ID
    bool limited{};    ///< DpuOptions::limit_instructions was reached
    std::vector<dpu::ProgrammingError> errors{};
};

class DpuRecorder final : public Recording {
public:
    /// Makes the folder. Precondition: resolve(options). Errors: `usage`: it holds something else; `unreadable`.
    [[nodiscard]] static Result<std::unique_ptr<DpuRecorder>> create(DpuOptions options);
    ~DpuRecorder() override;

    void definitions(std::span<const std::uint32_t> parts) override;
    void execution(std::uint32_t thread, std::span<const std::uint32_t> chunk) override;
    [[nodiscard]] Status flush() override;
    [[nodiscard]] bool stopped() const override { return stopped_; }
    [[nodiscard]] const std::optional<Error>& failure() const override { return failure_; }
    /// The end: the unit is stopped and drained; buffer, description and truth are written. `ended`: `whole_run`, or a
    /// sentence on what ended the recording before the program was at its end.
    [[nodiscard]] Status finish(std::string_view ended);
    [[nodiscard]] DpuRecorded recorded() const;
    /// Nothing was recorded: what this recorder wrote is removed, and the folder if it made it.
    void discard();

private:
    struct Access {
        std::uint32_t index, address, bytes;
        bool store;
    };
    struct Watch {
        std::uint32_t index;
        dpu::ItemKind kind;
        std::uint8_t channel;
    };
    struct Block {
        std::optional<Definition> definition;  ///< until its instruction set is known
        Code code;
        std::vector<std::pair<std::uint32_t, std::uint32_t>> lines;  ///< and instructions in each, in order
        std::vector<Watch> watches;
        Happened happened;
        std::uint32_t module = Modules::none;
    };
    struct Thread {
        std::uint32_t number{};
        std::uint8_t id{};
        std::uint32_t held = 0;  ///< the block entered last
        std::optional<std::uint32_t> cut{};
        std::vector<Access> accesses{};
        bool wide = false;  ///< the next word is the second of an access
        Access access{};
        std::vector<std::uint32_t> halves{};  ///< what DP_TD is given
        unsigned halves_due = 0;
        std::uint32_t last_pc{};
        isa::Isa isa = isa::Isa::a32;
        std::uint32_t arrival{};                ///< destination of its last item
        std::optional<std::uint32_t> stands{};  ///< where it goes on, once it executed anything
        std::optional<isa::Isa> expected{};     ///< and in which instruction set, if a branch shows it
    };
    class Cache;

    explicit DpuRecorder(DpuOptions options);
    Thread& thread(std::uint32_t number);
    void define_block(const BlockPart& part, const std::uint8_t* code);
    void define_map(const MapPart& part, std::string_view name);
    void each_map(auto&& f);
    [[nodiscard]] std::size_t image(const MapPart& part, const std::string& name, std::uint32_t load_bias);
    Block& known(Thread& t, std::uint32_t id);
    void settle(Thread& t, std::optional<std::uint32_t> next);
    void execute(Thread& t, Block& block, std::uint32_t end);
    void leave(Thread& t, const Block& block, std::optional<std::uint32_t> next);
    void cost(const Block& block, std::uint32_t first, std::uint32_t end, const Thread& t, std::size_t& access);
    void arrive(Thread& t, std::uint32_t place);
    void end_thread(Thread& t);
    void enter_os(std::uint32_t pc, std::uint32_t entry, dpu::InterruptCause cause, std::string name);
    void leave_os(Thread& t, std::uint32_t place);
    void item(dpu::EonceItem item);
    void begin_cost();
    void advance();
    void give(const dpu::CycleOutput& out);
    void end_interval(std::uint32_t start);
    void due_writes();
    [[nodiscard]] bool reads_out() const;
    void serve_readout(const Thread& t);
    void read_out();
    void stop_unit();
    [[nodiscard]] std::optional<dpu::EonceItem> branch(const Thread& t, const Block& block, const CodeWaypoint& w,
                                                       std::uint32_t next) const;
    void fail(Error error);
    [[nodiscard]] std::string truth_text() const;
    [[nodiscard]] bool traces_all() const;
    [[nodiscard]] bool counts_all(unsigned counter) const;
    [[nodiscard]] Status describe();
    void describe_code(capture::DpuCapture& c, bool by_message) const;
    [[nodiscard]] std::uint64_t place_in_file(std::uint64_t written) const;

    DpuOptions options_;
    std::unique_ptr<dpu::Model> model_;
    std::unique_ptr<dpu::VirtualTraceBuffer> ring_;
    std::optional<dpu::Readout> readout_;  ///< request mode: the system reads the ring when it is asked to
    bool requested_ = false;               ///< and has not done so yet
    std::uint64_t read_lines_ = 0, read_bytes_ = 0;
    std::vector<std::uint64_t> overruns_;  ///< capture::DpuCapture::overruns
    /// Of each overrun: bytes that the unit had written before the piece after it.
    std::vector<std::uint64_t> written_before_;
    std::uint64_t lines_ = 0;                    ///< that left the unit
    std::vector<std::uint64_t> period_lines_;    ///< before each time that tracing was enabled
    std::vector<std::uint8_t> written_, nexus_;  ///< not yet in their files
    int file_ = -1, nexus_file_ = -1;
    std::unique_ptr<Cache> icache_, dcache_;
    std::vector<Block> blocks_;
    std::map<std::uint32_t, Thread> threads_;
    std::vector<std::uint8_t> free_ids_;
    std::map<std::uint8_t, std::vector<std::uint32_t>> threads_of_id_;
    /// A program or library that was mapped, as it was then: it may be built anew later, under the same name.
    struct MappedImage {
        std::string file;
        std::uint64_t inode{}, bytes{};
        std::filesystem::file_time_type changed{};
        std::uint32_t load_bias{};
        std::filesystem::path copy;  ///< in the folder; where that failed, the file itself
        std::vector<std::uint8_t> build_id;
    };
    std::vector<MappedImage> images_;
    std::size_t copies_ = 0;
    std::map<std::uint32_t, std::size_t> image_of_;  ///< by module
    Modules modules_;                                ///< by bytes of the buffer's trace
    std::optional<Modules> modules_by_message_;      ///< by bytes of Nexus messages, where these are recorded

    Thread* current_ = nullptr;
    bool in_os_ = false;
    std::uint32_t os_exit_ = 0;
    std::map<std::uint32_t, std::string> os_symbols_;
    dpu::CoreContext context_;  ///< of the cycles that the unit has not received yet
    dpu::CoreContext now_;      ///< after all items
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
    std::vector<std::pair<std::uint8_t, std::uint32_t>> user_data_;
    OutputLock lock_;
    DpuRecorded sums_;
    std::optional<dpu::Counters> final_;
    std::optional<dpu::Registers> stopped_registers_;  ///< as they were before the unit was stopped
    std::optional<dpu::CounterHistory> history_;
    bool counted_all_ = false;   ///< tracing was on at the first and at the last instruction
    dpu::Registers programmed_;  ///< after the writes of cycle 0
    std::string ended_ = "not yet, for it is still being recorded, or the recorder was killed";
    bool stopped_ = false, finished_ = false, made_folder_ = false;
    std::optional<Error> failure_;
};

}  // namespace waymark::record
