/// Makes a capture of a Debug and Profiling Unit from the code that the threads of a 32-bit Arm program executed: the
/// program stands in for a DSP core that the unit watches (docs/spec/dpu.md, 13.2). Instructions, their order in each
/// thread, branches, accesses and system calls are real. Cycles, stalls and caches come from a modelled core. One
/// virtual core runs all threads, a chunk at a time, in the order in which the chunks ended.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/capture/dpu_folder.h"
#include "waymark/core/result.h"
#include "waymark/dpu/model.h"
#include "waymark/record/code.h"
#include "waymark/record/modules.h"
#include "waymark/record/output_lock.h"
#include "waymark/record/recording.h"
#include "waymark/record/ring.h"
#include "waymark/record_dpu/dpu_options.h"
#include "waymark/record_dpu/happened.h"

namespace waymark::record {

// Texts for the end of a recording, for DpuRecorder::finish().
using capture::limited_run;
using capture::whole_run;

/// Sums of a recording.
struct DpuRecorded {
    std::uint64_t instructions{}, cycles{}, lines{}, lost{}, user_data{}, switches{};
    std::uint64_t entries{};                ///< accepted by the unit
    std::uint64_t nexus_bytes{};            ///< of messages
    std::optional<std::uint64_t> buffer{};  ///< number of lines that the buffer holds; none: all are kept
    std::uint64_t readouts{},
        overruns{};  ///< request mode: interrupts served; and how often trace was overwritten unread
    std::array<std::uint64_t, services> served{};  ///< interrupts and debug exceptions, without readouts
    std::string debug_state{};                     ///< why the core stopped in debug state; empty: it did not stop
    std::uint32_t threads{};
    bool replaced{};   ///< another recording was in the folder before
    bool shared_id{};  ///< more than 254 threads at a time: some shared a task ID
    bool limited{};    ///< DpuOptions::limit_instructions was reached
    std::vector<dpu::ProgrammingError> errors{};
};

class DpuCache;
class DrivenUnit;
class RecordedImages;

class DpuRecorder final : public Recording {
public:
    /// Makes the folder. Precondition: resolve(options). Errors: `usage`: it has other contents; `unreadable`.
    [[nodiscard]] static Result<std::unique_ptr<DpuRecorder>> create(DpuOptions options);
    ~DpuRecorder() override;

    void definitions(std::span<const std::uint32_t> parts) override;
    void execution(std::uint32_t thread, std::span<const std::uint32_t> chunk) override;
    [[nodiscard]] Status flush() override;
    [[nodiscard]] bool stopped() const override { return stopped_; }
    [[nodiscard]] const std::optional<Error>& failure() const override { return failure_; }
    /// Ends the recording: stops and drains the unit; writes buffer, description and truth. `ended`: `whole_run`, or a
    /// sentence on why the recording ended before the program.
    [[nodiscard]] Status finish(std::string_view ended);
    [[nodiscard]] DpuRecorded recorded() const;
    /// Nothing was recorded: removes the files of this recorder, and the folder if this recorder created it; earlier
    /// files are restored.
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
        std::vector<std::pair<std::uint32_t, std::uint32_t>>
            lines;  ///< and the number of instructions of each, in order
        std::vector<Watch> watches;
        Happened happened;
        std::uint32_t module = Modules::none;
    };
    struct Thread {
        std::uint32_t number{};
        std::uint8_t id{};
        std::uint32_t held = 0;  ///< the last entered block
        std::optional<std::uint32_t> cut{};
        std::vector<Access> accesses{};
        bool wide = false;  ///< the next word is the second of an access
        Access access{};
        std::vector<std::uint32_t> halves{};  ///< the halves of the datum for DP_TD
        unsigned halves_due = 0;
        std::uint32_t last_pc{};
        isa::Isa isa = isa::Isa::a32;
        std::uint32_t arrival{};                ///< destination of its last item
        std::optional<std::uint32_t> stands{};  ///< the place where it continues, once it executed anything
        std::optional<isa::Isa> expected{};     ///< and the instruction set there, if a branch shows it
    };
    DpuRecorder(DpuOptions options, bool nexus);
    Thread& thread(std::uint32_t number);
    Block& known(Thread& t, std::uint32_t id);
    void settle(Thread& t, std::optional<std::uint32_t> next);
    void execute(Thread& t, Block& block, std::uint32_t end);
    void leave(Thread& t, const Block& block, std::optional<std::uint32_t> next);
    void cost(const Block& block, std::uint32_t first, std::uint32_t end, const Thread& t, std::size_t& access);
    void arrive(Thread& t, std::uint32_t place);
    void end_thread(Thread& t);
    void enter_os(std::uint32_t pc, std::uint32_t entry, dpu::InterruptCause cause, std::string name);
    void leave_os(Thread& t, std::uint32_t place);
    void serve_readout(const Thread& t);
    void serve(const Thread& t, Service service);
    void stop_unit();
    [[nodiscard]] std::optional<dpu::EonceItem> branch(const Thread& t, const Block& block, const CodeWaypoint& w,
                                                       std::uint32_t next) const;
    void fail(Error error);
    [[nodiscard]] std::string truth_text() const;
    [[nodiscard]] Status describe();

    DpuOptions options_;
    std::unique_ptr<DrivenUnit> unit_;
    std::unique_ptr<RecordedImages> images_;
    int file_ = -1, nexus_file_ = -1;
    std::unique_ptr<DpuCache> icache_, dcache_;
    std::vector<Block> blocks_;
    std::map<std::uint32_t, Thread> threads_;
    std::vector<std::uint8_t> free_ids_;
    std::map<std::uint8_t, std::vector<std::uint32_t>> threads_of_id_;

    Thread* current_ = nullptr;
    bool in_os_ = false;
    std::uint32_t os_exit_ = 0;
    std::map<std::uint32_t, std::string> os_symbols_;
    std::vector<std::pair<std::uint8_t, std::uint32_t>> user_data_;
    OutputLock lock_;
    DpuRecorded sums_;
    std::string ended_ = "not yet, because it is still being recorded, or the recorder was killed";
    bool stopped_ = false, finished_ = false, made_folder_ = false, earlier_aside_ = false;
    std::optional<Error> failure_;
};

}  // namespace waymark::record
