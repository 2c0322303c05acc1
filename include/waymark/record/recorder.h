/// Makes a capture folder from what threads executed: a trace source for each thread, their bytes in CoreSight frames,
/// the code that ran, and the truth. The folder can be read at any moment while it grows.
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

/// A range of addresses that the unit looks at, by the places at its ends.
struct PlacedRange {
    CodePlace first;
    std::optional<CodePlace> end{};  ///< none: the end of the function that `first` names
    bool exclude = false;
};

/// The debug authentication signals, as a debugger without the right to stop the core has them.
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
    std::optional<bool> niden{}, dbgen{}, spniden{}, spiden{};  ///< `authentication`; none: as it was
    bool on{};                                                  ///< `power`: it is there; `os_lock`: it is set
    /// Whenever execution reaches it, before the instruction there; none: from the beginning on.
    std::optional<CodePlace> at{};
};

struct RecorderOptions {
    std::filesystem::path folder{};
    std::string description{};
    const flow::UnitFactory* units{};      ///< borrowed, never null: what kind of unit traces
    flow::UnitOptions unit{};              ///< how each is programmed
    bool force = false;                    ///< record into a folder that holds something else too
    bool truth_ranges = false;             ///< a file per source with every range
    std::uint64_t limit_instructions = 0;  ///< stop after this number of instructions; 0: no limit
    std::uint32_t limit_changes = 1000;    ///< of code that executed; stop at the next one
    std::optional<CodePlace> start_at{};   ///< begin when execution first reaches it
    /// `start_at` is for the first thread: others are recorded from their first instruction on. In which order threads
    /// reached their places is not known, so else a thread that began before could be missed as a whole.
    bool start_of_first_thread = false;
    std::optional<CodePlace> stop_at{};  ///< stop when execution reaches it
    /// What the unit's comparators look at besides the ranges of `unit`. One that lies in a file that is not mapped yet
    /// matches nothing; the unit is programmed again when it is.
    std::vector<PlacedRange> ranges{};
    std::optional<CodePlace> trigger_at{};
    std::vector<SignalChange> signals{};
    /// Size of each buffer, which keeps its last bytes and wraps, as the RAM of an ETB does: a multiple of 16, up to 1
    /// GiB, held in memory. 0: everything is kept.
    std::uint64_t buffer_bytes = 0;
    /// Each buffer is a sink like this, with its registers in the folder; the unit's trigger is its trigger input. When
    /// it stops by the trigger, the recording ends. Precondition: its check(). Not with `buffer_bytes`.
    std::optional<sink::SinkSetup> sink{};
    bool aarch64 = false;            ///< a program in A64; else in A32 and T32
    bool system = false;             ///< processors of a whole system, not threads of a Linux program
    std::optional<Address> reset{};  ///< where a system's processors begin after reset
    /// The program of a whole system: what its map says is mapped from the beginning on.
    std::filesystem::path system_image{};
    /// What is known of the instruction set at an address, from mapping symbols; may be null.
    std::function<std::optional<isa::Isa>(Address)> instruction_set{};
};

/// What was recorded so far.
struct Recorded {
    std::uint64_t instructions{}, ranges{}, trace_bytes{}, code_bytes{};
    std::uint64_t filtered_ranges{};  ///< that executed, and that the unit was programmed or not permitted to trace
    std::vector<std::string> prohibited{};  ///< what did not permit it: `NIDEN=0`
    std::uint64_t kept_bytes{};             ///< of the trace: the rest was replaced by later trace, see `buffer_bytes`
    std::uint32_t threads{}, code_changes{};
    std::uint32_t epochs{1};   ///< one more for each change of code, and whenever the trace IDs of a buffer are used up
    bool began{};              ///< false: `start_at` was never reached
    bool wrapped{};            ///< trace was replaced by later trace: `buffer_bytes`, `sink`
    std::uint64_t triggers{};  ///< edges of the sink's trigger input while it captured
    /// Bytes of frames before the first trigger in its buffer, and after it. None: no trigger.
    std::optional<std::uint64_t> before_trigger{};
    std::uint64_t after_trigger{};
    bool stopped_by_trigger{};
    bool start_known{}, stop_known{};           ///< where `start_at` and `stop_at` lie
    std::vector<std::string> unknown_places{};  ///< of `ranges` and `trigger_at`: in no file that ran
    bool decodable{};     ///< the folder has a description of something recorded; else it could not be written
    bool replaced{};      ///< another recording was in the folder before
    bool kept_earlier{};  ///< it is there again, because nothing was recorded, or nothing that can be decoded
    bool stopped{};       ///< by a limit or `stop_at`
    bool changed_too_often{};
    std::optional<Address> lost_way{};        ///< see Tracker: recording stopped there
    std::optional<Address> stuck{};           ///< recording stopped at this vector: only exceptions, no instruction
    std::optional<Address> unknown_vector{};  ///< see Tracker
    std::uint64_t jumps{};                    ///< see Tracker
    std::uint64_t stays_in_aarch32{};         ///< of an AArch64 system, which are not recorded
    std::uint64_t unread_registers{};         ///< writes of an A64Register whose value QEMU's log did not show
};

class Recorder final : public Recording {
public:
    /// Makes the folder, locks it and writes its description; a recording that is there already is replaced, other
    /// files stay. Errors: `usage`: another recording writes there, or the folder holds something else and there is no
    /// `force`; `unreadable`: it cannot be written.
    [[nodiscard]] static Result<std::unique_ptr<Recorder>> create(RecorderOptions options);
    ~Recorder() override;

    void definitions(std::span<const std::uint32_t> parts) override;
    void execution(std::uint32_t thread, std::span<const std::uint32_t> chunk) override;
    /// The folder then holds everything up to here but for the last frame.
    [[nodiscard]] Status flush() override;
    /// Copies the names of generated code that a process wrote since `began`, and names them in the map: a perf map
    /// (`/tmp/perf-PID.map`) and a jitdump file (`jit-PID.dump` in the current folder). Before `finish`. Returns how
    /// many files there are. Errors: `unreadable`: one could not be copied.
    [[nodiscard]] Result<std::size_t> take_generated_names(std::uint32_t process,
                                                           std::filesystem::file_time_type began);
    /// The end: completes frames, truth and description. `complete`: the recording was not cut off.
    [[nodiscard]] Status finish(bool complete);

    [[nodiscard]] bool stopped() const override { return recorded_.stopped; }
    [[nodiscard]] const std::optional<Error>& failure() const override { return failure_; }
    [[nodiscard]] Recorded recorded() const;

private:
    struct Collected final : ByteSink {
        void write(Bytes piece) override { bytes.insert(bytes.end(), piece.begin(), piece.end()); }
        std::vector<std::uint8_t> bytes;
    };
    /// A thread in an epoch: a source of its own.
    struct Stream {
        std::string name;
        coresight::TraceId id;
        Collected trace;
        std::unique_ptr<flow::Unit> unit;
        std::size_t truth{};
        std::unique_ptr<RangeWriter> ranges;
        bool fresh = true;                  ///< nothing ran yet
        std::uint64_t filtered_before = 0;  ///< ranges, when the signals changed last
    };
    struct Thread {
        Thread(std::uint32_t n, Clock& clock, bool system, const flow::UnitFactory& units, flow::VmidRegister vmid)
            : number(n),
              tracker(clock, system, units.undefined_executes(), flow::traces_each_instruction(units)),
              a64(vmid) {}
        std::uint32_t number;
        Tracker tracker;
        bool powered = true, locked = false;  ///< its unit
        std::uint32_t held = 0;               ///< the block entered last, until it is known whether it ran to its end
        std::optional<std::uint32_t>
            cut;  ///< that block's first instruction that did not complete, as the plugin saw it
        std::unique_ptr<Stream> stream;
        A64State a64;
        std::uint64_t exception_cycle = 0;  ///< of the last exception
        std::uint32_t fruitless = 0;        ///< exceptions since an instruction executed
        /// An exception, a signal or a written register whose words are not all there yet: its number, the kind of word
        /// that announced it, and the values of its `half` words.
        std::uint32_t exception = 0, kind = 0;
        std::vector<std::uint32_t> halves;
    };
    struct Block {
        std::optional<Definition> definition;  ///< until its instruction set is known
        Code code;
        std::uint32_t epoch = 0;  ///< in which its bytes were last found to fit
        std::uint32_t module = Modules::none;
    };

    explicit Recorder(RecorderOptions options);
    void place_unit();
    void program_units();
    void map_unit(const MapPart& part, const std::string& name);
    Thread& thread(std::uint32_t number);
    /// The block entered last ran: completed_part().
    void settle(Thread& t, std::optional<std::uint32_t> end = {}, bool stopped = false);
    void execute(Thread& t, Block& block, CompletedPart part);
    Block& known(Thread& t, std::uint32_t id);
    [[nodiscard]] std::size_t halves_of(std::uint32_t kind) const;
    void take_halves(Thread& t);
    void exception_aarch32(Thread& t);
    void exception_aarch64(Thread& t);
    void signal(Thread& t);
    /// Of each exception: stops a recording in which nothing executes between one and the next.
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
    /// `where`: capture::Buffer::ends.
    void stop(std::string where);
    void fail(Error error);
    void fail_if(const Status& status);
    void collect(Thread& t);
    void collect(Stream& s);
    /// The unit's trigger reaches the sink.
    void trigger(Stream& s);
    /// Notes what became of the sink that is open.
    void note_sink();
    /// Tracker::run(), with the signals that change on the way.
    void run(Thread& t, const Code& code, CompletedPart part);
    void change(Thread& t, const SignalChange& change);
    /// A unit that begins gets the signals as they are.
    void begin_signals(Thread& t);
    /// Before the signals change, and at the end: whether they kept the unit from tracing.
    void note_prohibited(Thread& t);
    /// `ended`: the buffer at hand is complete; where no description names it yet, none is written for it alone.
    [[nodiscard]] Status write_trace(bool ended = false);
    [[nodiscard]] Status write_ram();
    [[nodiscard]] capture::Capture description(bool complete, const std::filesystem::path& folder) const;
    [[nodiscard]] Status describe(bool complete);

    OutputLock lock_;
    bool earlier_aside_ = false;  ///< files.h: an earlier recording waits
    RecorderOptions options_;
    RecordedExtent extent_;
    EarlierCode earlier_code_;
    std::optional<flow::SelectedBlocks> selected_ = flow::SelectedBlocks{};  ///< none: only the unit knows
    Clock clock_;
    std::vector<Block> blocks_;
    std::vector<OrdinaryBlock> rows_;                         ///< of these blocks, for Tracker::follow
    std::unordered_map<std::uint64_t, isa::Isa> block_isas_;  ///< of a system's blocks, by address
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
    std::vector<capture::SinkDevice> sinks_;  ///< one for each buffer, with the registers it had when it was written
    bool described_ = false;
    std::size_t described_buffers_ = 0;  ///< number of buffers that the description on disk names
    std::string ends_;                   ///< capture::Buffer::ends
    std::optional<Error> failure_;
    Recorded recorded_;

    static constexpr std::uint8_t first_id = 0x10, last_id = 0x6f;
};

}  // namespace waymark::record
