/// Makes a statistical profile from the execution of an AArch64 program's threads, or of a whole system: a perf.data
/// file like one that Linux would have written with an SPE unit beside each CPU. Operations, their order, data
/// addresses and branch outcomes are real; latencies, events and data sources come from the modelled machine
/// (record/machine.h).
///
/// Each thread runs on a CPU of the model. Threads are interleaved by the model's time, so that they meet in its caches
/// as on a real machine. The profile of one thread is always the same; with several threads, it depends on how they
/// really ran.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waymark/capture/perf_writer.h"
#include "waymark/core/result.h"
#include "waymark/record/a64_registers.h"
#include "waymark/record/perf_file.h"
#include "waymark/record/recording.h"
#include "waymark/record/ring.h"
#include "waymark/record_spe/machine.h"
#include "waymark/record_spe/spe_options.h"
#include "waymark/spe/model.h"
#include "waymark/spe/register_file.h"

namespace waymark::record {

struct ProfilerOptions {
    std::filesystem::path file;  ///< perf.data
    std::vector<std::string> command{};
    SpeOptions spe{};
    MachineModel machine{};
    std::uint64_t aux_bytes = 1U << 20;  ///< size of each CPU's buffer
    std::uint64_t seed = 1;              ///< of jitter
    unsigned info_version = 1;  ///< version of AUXTRACE_INFO: 2 has a block for each CPU, which perf takes from 6.13 on
    std::uint64_t limit_instructions = 0;
    /// `command` is a bare-metal image. Each processor is a thread with a CPU of its own. Writes of the program to
    /// registers of the unit take effect where CheckProfilingBufferAccess and CheckStatisticalProfilingAccess permit
    /// them.
    bool system = false;
    /// `system`: profiling is off at the beginning, and the controls of EL2 and EL3 are 0. Otherwise all levels of
    /// Non-secure state are profiled, and EL2 owns the buffer.
    bool begins_off = false;
    std::vector<spe::NamedValue> registers{};  ///< `system`: values from the beginning, fields behind their registers
};

/// Checks unit, machine and buffer. Errors: `usage`.
[[nodiscard]] Status check(const ProfilerOptions& options);

/// How a unit chooses and filters, in the fields of perf's event.
struct ProgrammedEvent {
    std::uint64_t period{}, config{}, config1{}, config2{}, config3{}, config4{};
    auto operator<=>(const ProgrammedEvent&) const = default;
};

/// Counts of the profile so far: the truth with which records are compared. It is written next to the profile.
struct Profiled {
    std::uint64_t instructions{};
    std::array<std::uint64_t, 5> classes{};  ///< of these, by isa::A64Class
    std::uint64_t taken{}, not_taken{};      ///< conditional branches
    std::uint64_t not_completed{};           ///< instructions that began and did not complete, which nothing counts
    std::uint64_t barriers{};                ///< profiling synchronisation barriers (PSB CSYNC)
    std::uint64_t mispredicted{};            ///< by the model, as all below
    std::uint64_t cycles{};                  ///< the latest time of any CPU
    std::uint64_t chosen{};                  ///< operations
    std::array<std::uint64_t, spe::fate_count> fates{};
    std::uint64_t trace_bytes{};
    std::uint32_t threads{}, cpus{};
    // Of a system:
    std::array<std::uint64_t, 4> levels{};  ///< instructions, by exception level
    std::uint64_t interrupts{};             ///< of buffers, which the recorder serves
    std::uint64_t outside{};                ///< operations while profiling was off, or off for their level
    std::uint64_t registers_written{};      ///< writes of the program to registers of the unit
    std::uint64_t registers_refused{};      ///< writes that a trap or an undefined register prevented
    /// Chosen operations by how the unit was programmed: the event that states it.
    std::map<ProgrammedEvent, std::uint64_t> programmed{};
    std::string refused{};             ///< the first refused write: its register, level and reason
    std::uint64_t registers_unread{};  ///< writes whose value QEMU's log does not show
    [[nodiscard]] std::uint64_t records() const { return fates[static_cast<std::size_t>(spe::Fate::written)]; }
};
[[nodiscard]] std::string to_text(const Profiled& profiled, const ProfilerOptions& options, bool complete);

class Profiler final : public Recording {
public:
    /// Begins the file. Errors: `usage`: impossible options of unit or machine; `unreadable`: it cannot be written.
    [[nodiscard]] static Result<std::unique_ptr<Profiler>> create(ProfilerOptions options);
    ~Profiler() override;

    void definitions(std::span<const std::uint32_t> parts) override;
    void execution(std::uint32_t thread, std::span<const std::uint32_t> chunk) override;
    [[nodiscard]] Status flush() override;
    [[nodiscard]] bool stopped() const override { return stopped_; }
    [[nodiscard]] const std::optional<Error>& failure() const override { return failure_; }

    /// Ends the profile: writes the records in the units, then the file's index and header, and the truth.
    [[nodiscard]] Status finish(bool complete);
    [[nodiscard]] Profiled profiled() const;

private:
    struct Access {
        std::uint32_t index;
        std::uint64_t address;
        std::uint64_t physical;  ///< page, of a system
    };
    struct Memory {
        std::uint16_t bytes = 0;
        MachineSimulation::Kind kind = MachineSimulation::Kind::load;
    };
    struct Block {
        Address address{};
        std::vector<isa::A64Instruction> instructions;
        std::vector<Memory> memory;                 ///< the accesses of each
        std::vector<std::uint16_t> must_access;     ///< indices
        std::vector<std::uint16_t> psb_csync, dsb;  ///< indices of these barriers
        std::array<std::uint32_t, 5> classes{};
    };
    /// A CPU with its unit.
    struct Cpu;
    struct Thread {
        std::uint32_t number{}, pid{}, tid{}, cpu{};
        std::string name{};
        std::deque<std::vector<std::uint32_t>> chunks{};
        std::size_t at = 0;    ///< index in the first of them
        bool running = false;  ///< the thread executes, even if no chunk arrived yet
        bool ended = false;
        const Block* open = nullptr;
        std::vector<Access> accesses{};  ///< of `open`
        // Of a system:
        std::uint32_t word = 0;               ///< the word whose `half` words follow
        std::vector<std::uint32_t> halves{};  ///< so far
        std::vector<std::pair<A64Register, std::optional<std::uint64_t>>>
            written{};                                             ///< by the instruction that ended `open`
        std::optional<std::uint32_t> state{};                      ///< after `open`
        std::unordered_map<std::uint64_t, std::uint64_t> pages{};  ///< physical pages of virtual pages
        std::uint32_t context_el1 = 0, context_el2 = 0;
    };

    explicit Profiler(ProfilerOptions options);
    Thread& thread(std::uint32_t number);
    void introduce(Thread& t);
    void define_block(const BlockPart& part, const std::uint8_t* code);
    void define_map(const MapPart& part, std::string_view name);
    void define_thread(const ThreadPart& part, std::string_view name);
    void schedule(bool all);
    void run(Thread& t, std::uint64_t until);
    /// Accounts for the block of `t.open`, now that the next place is known; nullopt: the code did not run to the end
    /// of a block.
    void settle(Thread& t, std::optional<Address> next, std::optional<Address> stopped_at = std::nullopt);
    /// Takes a word that only a system has.
    void system_word(Thread& t, std::uint32_t word);
    void take_halves(Thread& t);
    /// Applies what the instruction that ended the last block did to the processor.
    void take_effect(Thread& t);
    void change_state(Thread& t, std::uint32_t bits);
    /// `value`: nullopt if it is not known.
    void write_register(Thread& t, A64Register reg, std::optional<std::uint64_t> value);
    void map_system_image();
    /// States in the file how the program programmed the unit.
    void change_event();
    void execute(Thread& t, const Block& block, std::uint32_t end, std::optional<Address> next);
    void barrier(Thread& t, const Block& block, std::uint32_t index);
    std::optional<Accessed> accesses(Thread& t, Memory memory, std::uint32_t index, std::size_t& from);
    [[nodiscard]] bool is_taken(const Block& block, const isa::A64Instruction& last, Address next) const;
    void end(Thread& t);
    Cpu& cpu(std::uint32_t number);
    void write_out(Cpu& c, bool last);
    [[nodiscard]] std::uint64_t now() const;
    [[nodiscard]] std::uint64_t ticks(std::uint64_t cycle) const;
    [[nodiscard]] std::uint64_t time(std::uint64_t cycle) const;
    [[nodiscard]] capture::perf::PerfWriter::At at(const Thread& t, std::uint64_t cycle, std::size_t attr) const;
    void check_file();
    [[nodiscard]] capture::perf::RecordedPart recorded_part(const Profiled& p, bool complete) const;

    ProfilerOptions options_;
    MachineSimulation machine_;
    capture::perf::TimeConversion conversion_;
    CounterRatio counter_;
    std::unique_ptr<RecordedPerfFile> file_;
    std::vector<Block> blocks_;
    std::map<std::uint32_t, Thread> threads_;
    std::vector<std::unique_ptr<Cpu>> cpus_;
    std::vector<std::uint32_t> threads_on_;  ///< of each CPU
    std::uint32_t program_pid_ = 0;          ///< 0: not known yet
    std::vector<std::pair<MapPart, std::string>> early_maps_;
    std::uint64_t now_ = 0;  ///< time of the last execution
    std::size_t held_ = 0;   ///< chunks that wait for chunks of other threads
    bool stopped_ = false;
    Profiled sums_;
    std::optional<Error> failure_;
};

}  // namespace waymark::record
