/// Makes a capture folder from the code that threads executed: a trace source for each thread, their bytes in CoreSight
/// frames, the executed code, and the truth. The folder can be read at any moment while it grows.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/capture/not_permitted.h"
#include "waymark/capture/snapshot_sinks.h"
#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"
#include "waymark/coresight/formatter.h"
#include "waymark/flow/each_instruction.h"
#include "waymark/flow/unit.h"
#include "waymark/flow/unit_signals.h"
#include "waymark/record/a64_system.h"
#include "waymark/record/code.h"
#include "waymark/record/code_place.h"
#include "waymark/record/earlier_code.h"
#include "waymark/record/images.h"
#include "waymark/record/modules.h"
#include "waymark/record/output_lock.h"
#include "waymark/record/recorded_extent.h"
#include "waymark/record/recording.h"
#include "waymark/record/ring.h"
#include "waymark/record/trace_buffers.h"
#include "waymark/record/tracker.h"
#include "waymark/record/truth.h"
#include "waymark/sink/programming.h"

namespace waymark::record {

/// A range of addresses for the unit's comparators, by the places at its ends.
struct PlacedRange {
    CodePlace first;
    std::optional<CodePlace> end{};  ///< none: the end of the function that `first` names
    bool exclude = false;
};

/// The debug authentication signals, with the values for a debugger without the right to stop the core.
struct AuthenticationSignals {
    bool niden = true, dbgen = false, spniden = true, spiden = false;
    [[nodiscard]] flow::TracePermission permission() const {
        const bool any = niden || dbgen;
        return {any, any && (spniden || spiden)};
    }
};

/// A signal from outside the unit changes.
struct SignalChange {
    enum class Of : std::uint8_t {
        authentication,  ///< of the units of all threads
        power,           ///< of the unit of the thread that reaches the place; with power it is programmed again
        os_lock,         ///< the same
    } of{};
    std::optional<bool> niden{}, dbgen{}, spniden{}, spiden{};  ///< `authentication`; none: unchanged
    bool on{};                                                  ///< `power`: it is there; `os_lock`: it is set
    /// The change occurs whenever execution reaches this place, before the instruction there; nullopt: from the
    /// beginning on.
    std::optional<CodePlace> at{};
    std::string option{};  ///< in messages: `--os-lock on@main`
};

struct RecorderOptions {
    std::filesystem::path folder{};
    std::string description{};
    const flow::UnitFactory* units{};      ///< borrowed, never null: the kind of unit that traces
    flow::UnitOptions unit{};              ///< programming of each unit
    bool force = false;                    ///< record into a folder with other contents
    bool truth_ranges = false;             ///< a file per source with every range
    std::uint64_t limit_instructions = 0;  ///< stop after this number of instructions; 0: no limit
    std::uint32_t limit_changes = 1000;    ///< number of code changes allowed; recording stops at the next one
    std::optional<CodePlace> start_at{};   ///< begin when execution first reaches it
    /// `start_at` is for the first thread: others are recorded from their first instruction on. The order in which
    /// threads reach their places is not known, so a thread that began before could otherwise be missed entirely.
    bool start_of_first_thread = false;
    std::optional<CodePlace> stop_at{};  ///< stop when execution reaches it
    /// Comparators of the unit besides the ranges of `unit`. A place in a file that is not mapped yet matches nothing;
    /// the unit is programmed again when the file is mapped.
    std::vector<PlacedRange> ranges{};
    std::optional<CodePlace> trigger_at{};
    std::vector<SignalChange> signals{};
    /// Size of each buffer, a multiple of 16, up to 1 GiB, in memory. The buffer keeps its last bytes and wraps, like
    /// the RAM of an ETB. 0: everything is kept.
    std::uint64_t buffer_bytes = 0;
    /// Each buffer is the end of a path like this, with the registers of its components in the folder; the unit's
    /// trigger reaches it. When the trigger stops it, the recording ends. Precondition: its check(). Not with
    /// `buffer_bytes`.
    std::optional<sink::PathSetup> sink{};
    bool aarch64 = false;            ///< a program in A64; else in A32 and T32
    bool system = false;             ///< processors of a whole system, not threads of a Linux program
    std::optional<Address> reset{};  ///< where a system's processors begin after reset
    /// The program of a whole system: the map states that it is mapped from the beginning on.
    std::filesystem::path system_image{};
    /// The instruction set at an address, as far as mapping symbols give it; may be null.
    std::function<std::optional<isa::Isa>(Address)> instruction_set{};
};

/// Counts of the recording so far.
struct Recorded {
    std::uint64_t instructions{}, ranges{}, trace_bytes{}, code_bytes{};
    /// Executed, but excluded from the trace by the unit's program or permission.
    std::uint64_t filtered_ranges{}, filtered_instructions{};
    std::uint64_t not_permitted_ranges{};  ///< the part of them that only signals kept out: Tracker::not_permitted()
    std::vector<capture::NotPermitted> prohibited{};  ///< the signals that prohibited trace
    std::uint64_t kept_bytes{};  ///< bytes of trace that were kept; later trace replaced the rest, see `buffer_bytes`
    std::uint32_t threads{}, code_changes{};
    std::uint32_t epochs{1};   ///< one more for each change of code, and whenever the trace IDs of a buffer are used up
    bool began{};              ///< false: `start_at` was never reached
    bool wrapped{};            ///< trace was replaced by later trace: `buffer_bytes`, `sink`
    std::uint64_t triggers{};  ///< edges of the sink's trigger input while it captured
    /// Number of bytes of frames before the first trigger in its buffer, and after it. nullopt: no trigger.
    std::optional<std::uint64_t> before_trigger{};
    std::uint64_t after_trigger{};
    bool stopped_by_trigger{};
    bool start_known{}, stop_known{};           ///< the places of `start_at` and `stop_at` are known
    std::vector<std::string> unknown_places{};  ///< places of `ranges` and `trigger_at` that no executed file has
    bool trigger_unreached{};                   ///< execution never reached the place of `trigger_at`, which is known
    /// Changes of signals whose place execution never reached, as SignalChange::option, and whether the place is known.
    std::vector<std::pair<std::string, bool>> unreached_signals{};
    bool decodable{};     ///< the folder describes recorded trace; else the description could not be written
    bool replaced{};      ///< another recording was in the folder before
    bool kept_earlier{};  ///< the earlier recording is back, because the new one has nothing, or nothing that can be
                          ///< decoded
    bool stopped{};       ///< by a limit or `stop_at`
    bool changed_too_often{};
    std::optional<Address> lost_way{};  ///< recording stopped there, see Tracker::lost_way
    std::optional<Address>
        stuck{};  ///< recording stopped at this vector: exceptions without any instruction between them
    std::optional<Address> unknown_vector{};  ///< see Tracker
    std::uint64_t jumps{};                    ///< see Tracker
    std::uint64_t stays_in_aarch32{};         ///< stays in AArch32 of an AArch64 system, which are not recorded
    std::uint64_t unread_registers{};         ///< writes of an A64Register whose value QEMU's log did not show
};

class Recorder final : public Recording {
public:
    /// Makes the folder, locks it and writes its description; an existing recording is replaced, other files stay.
    /// Errors: `usage`: another recording writes there, or the folder has other contents and `force` is not set;
    /// `unreadable`: it cannot be written.
    [[nodiscard]] static Result<std::unique_ptr<Recorder>> create(RecorderOptions options);
    ~Recorder() override;

    void definitions(std::span<const std::uint32_t> parts) override;
    void execution(std::uint32_t thread, std::span<const std::uint32_t> chunk) override;
    /// Afterwards the folder contains the recording up to here, except the last frame.
    [[nodiscard]] Status flush() override;
    /// Copies the files with names of generated code that a process wrote since `began`, and lists them in the map: a
    /// perf map (`/tmp/perf-PID.map`) and a jitdump file (`jit-PID.dump` in the current folder). Call it before
    /// `finish`. Returns the number of files. Errors: `unreadable`: a file could not be copied.
    [[nodiscard]] Result<std::size_t> take_generated_names(std::uint32_t process,
                                                           std::filesystem::file_time_type began);
    /// Ends the recording: completes frames, truth and description. `complete`: the recording was not cut off. `ended`:
    /// how the program ended, for the description; empty if there is nothing remarkable.
    [[nodiscard]] Status finish(bool complete, std::string_view ended = {});

    [[nodiscard]] bool stopped() const override { return recorded_.stopped; }
    [[nodiscard]] const std::optional<Error>& failure() const override { return failure_; }
    [[nodiscard]] Recorded recorded() const;

private:
    struct Collected final : ByteSink {
        void write(Bytes piece) override { bytes.insert(bytes.end(), piece.begin(), piece.end()); }
        std::vector<std::uint8_t> bytes;
    };
    /// A thread in an epoch, which has its own source.
    struct Stream {
        std::string name;
        coresight::TraceId id;
        Collected trace;
        std::unique_ptr<flow::Unit> unit;
        std::size_t truth{};
        std::unique_ptr<RangeWriter> ranges;
        bool fresh = true;  ///< nothing ran yet
        /// Figures of the tracker when the signals changed last.
        std::uint64_t not_permitted_before = 0, instructions_before = 0, perhaps_before = 0;
    };
    struct Thread {
        Thread(std::uint32_t n, Clock& clock, bool system, const flow::UnitFactory& units, flow::VmidRegister vmid)
            : number(n),
              tracker(clock, system, units.undefined_executes(), flow::traces_each_instruction(units)),
              a64(vmid) {}
        std::uint32_t number;
        Tracker tracker;
        bool powered = true, locked = false;  ///< state of its unit
        std::uint32_t held = 0;               ///< the last entered block, until it is known whether it ran to its end
        std::optional<std::uint32_t> cut;     ///< first instruction of that block that did not complete, by the plugin
        std::unique_ptr<Stream> stream;
        A64State a64;
        std::uint64_t exception_cycle = 0;  ///< cycle of the last exception
        std::uint32_t fruitless = 0;        ///< exceptions since the last executed instruction
        /// An exception, a signal or a written register for which some words are still missing: its number, the kind of
        /// word that announced it, and the values of its `half` words.
        std::uint32_t exception = 0, kind = 0;
        std::vector<std::uint32_t> halves;
    };
    struct Block {
        std::optional<Definition> definition;  ///< until its instruction set is known
        Code code;
        std::uint32_t epoch = 0;  ///< the epoch in which its bytes were last found to fit
        std::uint32_t module = Modules::none;
    };

    explicit Recorder(RecorderOptions options);
    void place_unit();
    void program_units();
    void map_unit(const MapPart& part, const std::string& name);
    Thread& thread(std::uint32_t number);
    /// Settles how far the last entered block ran: completed_part().
    void settle(Thread& t, std::optional<std::uint32_t> end = {}, bool stopped = false);
    void execute(Thread& t, Block& block, CompletedPart part);
    Block& known(Thread& t, std::uint32_t id);
    [[nodiscard]] std::size_t halves_of(std::uint32_t kind) const;
    void take_halves(Thread& t);
    void exception_aarch32(Thread& t);
    void exception_aarch64(Thread& t);
    void signal(Thread& t);
    /// Called for each exception: stops a recording in which nothing executes between exceptions.
    void notice_progress(Thread& t, Address vector);
    void state(Thread& t, std::uint32_t bits);
    void written(Thread& t);
    [[nodiscard]] static flow::Context context_of(std::uint32_t bits, std::uint32_t thread);
    [[nodiscard]] std::optional<std::uint32_t> index_in_held(Thread& t, Address address);
    [[nodiscard]] isa::Isa arriving(const Thread& t, Address address) const;
    [[nodiscard]] isa::Isa isa_at(const Thread& t, Address address) const;
    void open_stream(Thread& t);
    void close_stream(Thread& t);
    void new_epoch();
    [[nodiscard]] Status archive_images();
    void describe_images();
    [[nodiscard]] std::optional<capture::RanBefore> ran_before() const;
    void map_system_image();
    /// `where`: a text for capture::Buffer::ends.
    void stop(std::string where);
    void fail(Error error);
    void fail_if(const Status& status);
    void collect(Thread& t);
    void collect(Stream& s);
    /// The unit's trigger reaches the sink.
    void trigger(Stream& s);
    /// Notes the state of the open sink.
    void note_sink();
    /// Tracker::run(), with signals that change during the run.
    void run(Thread& t, const Code& code, CompletedPart part);
    void change(Thread& t, const SignalChange& change);
    /// Gives a new unit the present signals.
    void begin_signals(Thread& t);
    /// Called before the signals change, and at the end: notes whether they kept the unit from tracing.
    void note_prohibited(Thread& t);
    /// `ended`: the current buffer is complete. If no description names it yet, no description is written only for it.
    [[nodiscard]] Status write_trace(bool ended = false);
    [[nodiscard]] Status write_ram();
    [[nodiscard]] capture::Capture description(bool complete, const std::filesystem::path& folder) const;
    [[nodiscard]] Status describe(bool complete);

    OutputLock lock_;
    bool earlier_aside_ = false;  ///< an earlier recording waits (files.h)
    RecorderOptions options_;
    RecordedExtent extent_;
    EarlierCode earlier_code_;
    std::optional<flow::SelectedBlocks> selected_ = flow::SelectedBlocks{};  ///< none: only the unit itself decides
    std::optional<flow::SelectedBlocks> programmed_{};  ///< with signals: what its programming alone selects
    Clock clock_;
    std::vector<bool> reached_signals_;  ///< of `options_.signals`: their place was reached
    bool reached_trigger_ = false;       ///< a block with the place of `options_.trigger_at` ran
    std::vector<Block> blocks_;
    std::vector<OrdinaryBlock> rows_;                         ///< rows of these blocks, for Tracker::follow
    std::unordered_map<std::uint64_t, isa::Isa> block_isas_;  ///< instruction sets of a system's blocks, by address
    std::map<std::uint32_t, Thread> threads_;
    Images images_;
    Modules modules_;
    capture::Capture capture_;
    std::vector<capture::GeneratedNames> generated_names_;
    Truth truth_;
    std::size_t dumps_before_ = 0;  ///< dumps of earlier epochs
    std::vector<std::string> epoch_cores_;
    std::uint8_t next_id_ = first_id;
    TraceBuffers buffers_;
    AuthenticationSignals authentication_;
    /// Sinks, and what is between them and the units, with the registers they had when the buffer was written. The
    /// devices of the open buffer begin at `open_sinks_`.
    std::vector<capture::SinkDevice> sinks_;
    std::size_t open_sinks_ = 0;
    bool described_ = false;
    bool before_waits_ = false;          ///< there is code that ran before, and no trace yet that it would belong to
    std::size_t described_buffers_ = 0;  ///< number of buffers that the description on disk names
    std::string ends_;                   ///< capture::Buffer::ends
    std::optional<Error> failure_;
    Recorded recorded_;

    static constexpr std::uint8_t first_id = 0x10, last_id = 0x6f;
};

}  // namespace waymark::record
