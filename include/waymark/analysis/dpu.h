/// What a trace of the Debug and Profiling Unit cost, and whom: counter values per task, function, call path, interrupt
/// and range of code, activations, loops, user data, losses (docs/spec/dpu.md, section 12). Each interval between two
/// readings goes to exactly one bucket, so every view adds up to what the counters say.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/analysis/code_turns.h"
#include "waymark/core/types.h"
#include "waymark/dpu/element.h"
#include "waymark/dpu/format.h"
#include "waymark/dpu/loop_starts.h"
#include "waymark/dpu/registers.h"
#include "waymark/dpu/state.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_file.h"
#include "waymark/image/symbols.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::analysis {

/// By counter, A0 to B2. Sums have 64 bits, for counters have 31 and wrap.
using DpuCounts = std::array<std::uint64_t, dpu::counter_count>;
void add(DpuCounts& to, const DpuCounts& counts);

// ---- names of code

class FlowCode;

/// Names for the addresses of a trace, and the instructions there.
class DpuCode {
public:
    DpuCode();
    ~DpuCode();
    DpuCode(const DpuCode&) = delete;
    DpuCode& operator=(const DpuCode&) = delete;

    /// A program or library that `add_image` took.
    struct Image {
        std::string path;  ///< of the file that was read
        std::string name;  ///< of the file that was mapped: a capture has copies under other names
        std::uint32_t load_bias{};
    };
    /// Where separate debug files of programs that are added from now on may be.
    void look_in(image::FileSearch files) { files_ = std::move(files); }
    /// Where files took turns at one address, before anything is added. `names`: of the files, by their number in
    /// `turns`; empty: code of no file.
    void take_turns(CodeTurns turns, std::vector<std::string> names);
    /// A program or library, called `name` (empty: as the file) where only a place in it is known; what is wrong
    /// with it, or empty. `file`: its number in the turns that were taken; none: it is there all the time.
    [[nodiscard]] std::string add_image(const std::string& path, std::uint32_t load_bias, const std::string& name = {},
                                        std::optional<std::size_t> file = {});
    /// Code of a file of which nothing but its name is known: [first, first + bytes), from the byte at `offset` on.
    void add_unread(const std::string& name, std::uint32_t first, std::uint64_t bytes, std::uint64_t offset,
                    std::optional<std::size_t> file);
    /// A name that no program has.
    void add_name(std::uint32_t address, std::string name);

    static constexpr std::size_t no_image = ~std::size_t{0};
    struct Function {
        std::uint32_t address{};  ///< where it begins; the address asked for where nothing is known of it
        std::string name;         ///< empty: not known; with `?` at its end: of what comes before it (image/symbols.h)
        std::string linkage_name{};    ///< as in the symbol table; empty: not from one
        std::size_t image = no_image;  ///< it lies in: a place in `images`
        auto operator<=>(const Function&) const = default;
    };
    /// An address, and which of the files that took turns there is meant.
    struct Place {
        std::uint32_t address{}, layer{};
        auto operator<=>(const Place&) const = default;
    };
    /// Of what the trace has at an offset.
    [[nodiscard]] Place at(std::uint32_t address, Offset offset) const {
        return {address, turns_.layer(address, offset.value)};
    }
    /// Where nothing is known of the time: what several files may be is named after all of them.
    [[nodiscard]] Place at(std::uint32_t address) const { return {address, turns_.layer(address)}; }
    /// Both lie where files took turns, at different times: what ran from one to the other may be of either.
    [[nodiscard]] bool takes_turns(const Place& a, const Place& b) const {
        return a.layer != b.layer && a.layer != 0 && b.layer != 0 && turns_.unknown(a.layer) == turns_.unknown(b.layer);
    }
    /// The same memory, at an unknown time. Precondition: files took turns there.
    [[nodiscard]] Place any_of(const Place& place) const { return {place.address, turns_.unknown(place.layer)}; }

    [[nodiscard]] Function function(const Place& place) const;
    [[nodiscard]] Function function(std::uint32_t address) const { return function(at(address)); }
    /// The same for an address that is not where the function was entered: code without a name begins where the
    /// function before it ends.
    [[nodiscard]] Function function_around(const Place& place) const;
    /// Equal for two addresses: they lie in one function, or both in the code without names of one file. 0: nothing
    /// is known of the address. A rarely executed part (`f.cold` of GCC) is part of its function.
    [[nodiscard]] std::uint64_t home(const Place& place) const;
    /// In the order in which they were added.
    [[nodiscard]] const std::vector<Image>& images() const { return images_; }
    /// The image an address lies in, as a place in `images`, or `no_image`.
    [[nodiscard]] std::size_t image(const Place& place) const;
    /// Where functions of this name begin, one for each image; the first that was added where one image has several.
    [[nodiscard]] std::vector<Place> places_of(const std::string& name) const;
    /// Files that took turns where it is not known when, each zone as it is named: `[a.so or b.so]`.
    [[nodiscard]] std::vector<std::string> unknown_turns() const;

    /// What the instruction that changed the flow at `source` does.
    enum class Change : std::uint8_t { unknown, call, ret };
    [[nodiscard]] Change change(const Place& source) const;
    /// What happens without a condition on the way from one address on.
    struct Way {
        std::vector<Place> entered;  ///< functions that direct jumps lead to, where they are entered
        bool jumps_on = false;       ///< then an indirect jump leaves: the way ends there
    };
    /// From `start` up to the change of flow at `last`, as far as the instructions decide it. The entry of a procedure
    /// linkage table (`puts@plt`) always jumps on, to the function of that name if there is one and the way from it
    /// ends in the function at `last`. Not for several threads at once.
    [[nodiscard]] Way way(Place start, const Place& last) const;
    /// Where the direct branch at `last` jumps back to: where a loop begins whose last address it is.
    [[nodiscard]] std::optional<std::uint32_t> loop_start(const Place& last) const;
    /// Instructions from `start` up to and with the one at `last`.
    [[nodiscard]] std::optional<std::uint64_t> instructions(std::uint32_t start, const Place& last) const;

private:
    struct Instruction {
        isa::Instruction decoded;
        bool begins_it_block = false;
    };
    /// All memory where no files took turns, or what lay in a part of the rest for some time.
    struct Layer;
    [[nodiscard]] Layer& layer(const Place& place) const { return *layers_[place.layer]; }
    [[nodiscard]] std::string name_of_zone(std::uint32_t layer) const;
    /// The numbers of the layers that have code at [first, first + bytes) of a file, or of one that is there always.
    [[nodiscard]] std::vector<std::uint32_t> layers_with(std::optional<std::size_t> file, std::uint32_t first,
                                                         std::uint64_t bytes) const;
    [[nodiscard]] std::optional<isa::Isa> isa_at(const Place& place) const;
    [[nodiscard]] std::optional<Instruction> instruction(const Place& place) const;
    [[nodiscard]] std::optional<Instruction> instruction(const Place& place, isa::Isa isa) const;
    [[nodiscard]] std::optional<image::Symbol> function_symbol(const Place& place) const;
    /// None where several files have a function of that name: which one the dynamic linker takes is not known.
    [[nodiscard]] std::optional<Place> only_function(std::string_view linkage_name,
                                                     const std::vector<std::uint32_t>& layers) const;
    image::FileSearch files_;
    std::map<std::uint32_t, std::string> names_;
    std::vector<Image> images_;
    CodeTurns turns_;
    std::vector<std::string> file_names_;  ///< of the turns
    std::map<std::uint32_t, std::size_t> image_of_zone_;
    std::vector<std::unique_ptr<Layer>> layers_;
};

// ---- what is known of the recording

/// DP_TC.IDFLT, from one place in the trace on: only what a task that matches has to do with makes entries (3.2, 5.1).
struct DpuFilter {
    std::uint64_t from{};  ///< offset of the first element it is in force for
    bool on = false;
    dpu::IdCompare compare{};  ///< DP_CR.TIDCM
    std::uint8_t rpid{}, rdid{};
    bool shows_did = false;  ///< DP_TC.TIDS: IDs in the trace are data IDs
    bool same_ids = false;   ///< both IDs of a context are the same number in this capture

    /// Whether a context matches; none: that would take the ID that the trace does not show.
    [[nodiscard]] std::optional<bool> matches(const dpu::TaskContext& context) const;
    [[nodiscard]] bool matches(std::uint8_t pid, std::uint8_t did) const;
};

/// Code at [first, second): of whatever lies there, or of one of DpuCode::images alone.
struct DpuCodeRange {
    std::uint32_t first{}, second{};
    std::size_t image = DpuCode::no_image;
    auto operator<=>(const DpuCodeRange&) const = default;
};

struct DpuSetup {
    std::optional<dpu::TraceMode> mode{};
    bool complete = false;  ///< the unit had written all it had
    std::optional<dpu::TaskContext> initial_context{};
    std::optional<dpu::Counters> initial{}, final{};
    std::vector<DpuFilter> filters{};  ///< oldest first; none: everything makes entries
    std::optional<std::pair<std::uint8_t, std::uint8_t>> initial_ids{};  ///< program and data ID of initial_context
    std::optional<unsigned> cycles{};  ///< the counter that counts CYCLES, all of them and all the time
    std::uint8_t within_cycles{};      ///< a bit for each counter that never counts more than `cycles` does
    std::vector<DpuCodeRange> ranges{};
    std::size_t most_stays = std::size_t{1} << 20;  ///< kept one by one
    /// Readings that cannot be true, by number from 0, ascending (dpu_doubts.h): nothing is added up by them, and the
    /// interval between their neighbours is whole, but whose it is is not known.
    std::vector<std::uint64_t> doubtful{};
};

/// Readings one after another, without those that are doubtful. For each that is not, what the trace says of it, or
/// what it says with those before left out.
class DpuReadings {
public:
    explicit DpuReadings(const DpuSetup& setup) : values_(setup.initial), doubtful_(setup.doubtful) {}
    /// The next one; null: it is doubtful. Valid until the next call.
    WM_INLINE const dpu::Reading* next(const dpu::Reading& reading) {
        if (number_++ == doubted_) [[unlikely]]
            return doubt();
        if (skipped_) [[unlikely]]
            return join(reading);
        values_ = reading.values;
        return &reading;
    }
    /// Of the last that is not doubtful, or those that counting began with.
    [[nodiscard]] const std::optional<dpu::Counters>& values() const { return values_; }
    /// Those before were doubtful, and nothing came since.
    [[nodiscard]] bool skipped() const { return skipped_; }

private:
    const dpu::Reading* doubt();
    const dpu::Reading* join(const dpu::Reading& reading);

    static constexpr std::uint64_t nothing = ~std::uint64_t{0};
    std::optional<dpu::Counters> values_;
    std::vector<std::uint64_t> doubtful_;
    std::size_t next_ = 0;  ///< in doubtful_, after doubted_
    std::uint64_t number_ = 0, doubted_ = doubtful_.empty() ? nothing : doubtful_[next_++];
    bool skipped_ = false;
    dpu::Reading joined_;
};

// ---- what it cost

/// Whom an interval belongs to (12.1).
struct DpuOwner {
    enum class Kind : std::uint8_t { context, sampled, tail_context, between, filtered, before, tail, unattributed };
    Kind kind{};
    dpu::TaskContext context{}, other{};  ///< context: of `context` to `between`; `other`: between these
    [[nodiscard]] bool is_context() const { return kind <= Kind::tail_context; }
    auto operator<=>(const DpuOwner& o) const {
        const auto key = [](const DpuOwner& w) {
            return std::tuple(w.is_context() ? Kind::context : w.kind, w.context.supervisor, w.context.id,
                              w.other.supervisor, w.other.id);
        };
        return key(*this) <=> key(o);
    }
    bool operator==(const DpuOwner& o) const { return (*this <=> o) == 0; }
};
/// `user 5`, `<between user 5 and supervisor 5>`.
[[nodiscard]] std::string to_text(const DpuOwner& owner);
[[nodiscard]] std::string to_text(const dpu::TaskContext& context);

/// Sum, least and most of something that happened several times.
struct DpuSpread {
    std::uint64_t times = 0;
    DpuCounts sum{}, least{}, most{};
    void take(const DpuCounts& counts);
};

struct DpuTask {
    DpuCounts sum{}, sampled{}, tail{};  ///< all; of it from samples alone, and after the last reading
    DpuSpread stays;                     ///< uninterrupted; outside modes TASK and FLOW stretches between samples
    std::uint64_t entered = 0;           ///< modes EONCE_RAW and EONCE_COMP: times the trace shows its stay to begin
    bool known = true;                   ///< not: what came before the first value there is; `sum` lacks it
};

/// One uninterrupted stay of a context. Outside modes TASK and FLOW: a stretch between samples that show no other.
struct DpuStay {
    dpu::TaskContext context;
    std::uint64_t begin{}, end{};  ///< cycles, or numbers of readings where none counts cycles
    DpuCounts counts{};
};

struct DpuFunctionCost {
    std::uint64_t calls = 0;
    DpuCounts self{}, inclusive{}, crossed{};  ///< crossed: of self, intervals that a jump takes to another function
    DpuSpread activations;                     ///< outermost, from its call to its return
    bool known = true;                         ///< as DpuTask::known
};

/// A node of the call tree; the first is the root of all.
struct DpuPath {
    std::size_t parent = 0;
    DpuCode::Function function;
    std::optional<dpu::TaskContext> root;  ///< of a task: the name of what begins there
    bool service = false;                  ///< an interrupt or a system call
    std::uint64_t calls = 0;
    DpuCounts self{};
    bool known = true;  ///< as DpuTask::known
};

struct DpuService {
    DpuSpread stays;  ///< from entry to return, what interrupted it included
};

struct DpuRange {
    DpuCounts inside{}, crossing{};
    std::uint64_t intervals = 0, crossings = 0;
};

struct DpuLoop {
    bool is_short = false;
    std::uint64_t runs = 0, jumps = 0, least = std::numeric_limits<std::uint64_t>::max(), most = 0;
    std::optional<std::uint32_t> start{};
};

struct DpuDatum {
    Offset offset;
    std::optional<dpu::TaskContext> context;
    std::uint32_t value{};
    std::uint64_t time{};  ///< at the reading before
};

/// Differences of 2^30 or more: so much happened, and the counter may have wrapped unseen, or a word of the trace is
/// damaged. A damaged value makes one of the two differences around it negative, which is such a difference, unless the
/// true one is larger than the damage; `DpuDoubts` finds these.
struct DpuWide {
    std::uint64_t intervals = 0;
    std::uint64_t lossy = 0;      ///< of them: something in them is missing
    std::uint64_t beyond = 0;     ///< intervals beside them in which WAIT or a stall counted more than CYCLES
    std::uint8_t counters = 0;    ///< a bit for each that had one
    std::optional<Offset> first;  ///< the reading at whose end the first was seen; none: the final values
};

/// What such a difference means, in every command's words.
inline constexpr std::string_view wide_means = "a damaged word, or it wrapped unseen";

/// Readings that were left out (DpuSetup::doubtful).
struct DpuDoubted {
    std::uint64_t readings = 0;
    std::uint64_t intervals = 0;        ///< that replace those around them
    DpuCounts counts{};                 ///< of these: in all sums, and nobody's
    std::optional<Offset> first, last;  ///< entries
};

/// One counter, from what its buckets hold to what it said itself.
struct DpuReconciled {
    std::uint64_t sum{}, intervals{};           ///< of all buckets; of all intervals
    std::optional<std::uint32_t> from{}, to{};  ///< first and last value known
    [[nodiscard]] std::uint32_t counted() const { return from && to ? (*from - *to) & dpu::counter_mask : 0; }
    /// Not 0: something is wrong.
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
    /// The trace ends here: what comes after its last reading, and what is still open.
    void finish();

    [[nodiscard]] const std::map<DpuOwner, DpuTask>& tasks() const { return tasks_; }
    [[nodiscard]] const DpuCounts& total() const { return total_; }
    [[nodiscard]] const std::vector<DpuStay>& stays() const { return stays_; }
    [[nodiscard]] std::uint64_t stays_left_out() const { return stays_left_out_; }
    /// Mode FLOW. Costs that belong to no function are under those names in angle brackets.
    [[nodiscard]] const std::map<DpuCode::Function, DpuFunctionCost>& functions() const { return functions_; }
    [[nodiscard]] const std::vector<DpuPath>& paths() const { return paths_; }
    [[nodiscard]] std::uint64_t returns_without_call() const { return returns_without_call_; }
    /// Functions that took the place of another: code went on in them by a jump, which the trace does not have. They
    /// count as called.
    [[nodiscard]] std::uint64_t jumps() const { return jumps_; }
    /// Of the intervals with such a jump those that may have spent any part of their cost before it; they are
    /// `DpuFunctionCost::crossed`.
    [[nodiscard]] std::uint64_t crossings() const { return crossings_; }
    [[nodiscard]] const std::map<std::uint32_t, DpuService>& services() const { return services_; }
    [[nodiscard]] const std::vector<DpuRange>& ranges() const { return ranges_; }
    [[nodiscard]] const DpuCounts& outside_ranges() const { return outside_; }
    /// By the last address.
    [[nodiscard]] const std::map<DpuCode::Place, DpuLoop>& loops() const { return loops_; }
    [[nodiscard]] const std::vector<DpuDatum>& data() const { return data_; }
    /// Whether the rows of a view, which add up to `rows`, hold all that was counted.
    [[nodiscard]] std::array<DpuReconciled, dpu::counter_count> reconciled(const DpuCounts& rows) const;
    [[nodiscard]] std::uint64_t readings() const { return readings_; }
    [[nodiscard]] const DpuWide& wide() const { return wide_; }
    /// IDFLT was on for some of the trace.
    [[nodiscard]] bool filtered() const;
    [[nodiscard]] const DpuDoubted& doubted() const { return doubted_; }
    /// All intervals are of tasks that changes of flow show (modes TASK and FLOW).
    [[nodiscard]] bool knows_stays() const { return changes_; }
    [[nodiscard]] bool knows_time() const { return setup_.cycles.has_value(); }
    [[nodiscard]] std::uint64_t time() const { return time_; }

private:
    struct Frame {
        std::size_t path = 0;
        std::uint32_t call = 0;  ///< address of the call
        bool service = false;
        bool outermost = true;
        std::uint64_t home = 0;  ///< DpuCode::home
        DpuCode::Function function;
        DpuCounts inclusive{};
    };
    using Stack = std::vector<Frame>;
    using Place = DpuCode::Place;
    struct Known {
        DpuCode::Function function;  ///< entered here
        std::uint64_t home{};
    };

    void reading(const dpu::Element& element, const dpu::Reading& reading);
    [[nodiscard]] DpuOwner owner(const dpu::Element& element, const dpu::Reading& reading) const;
    [[nodiscard]] std::optional<bool> shown(std::uint64_t end) const;
    [[nodiscard]] bool stays_shown(const dpu::TaskContext& context, std::uint64_t at) const;
    [[nodiscard]] bool beyond(const DpuCounts& counts) const;
    void doubt(const DpuCounts& counts, std::uint8_t wide, std::optional<Offset> at, bool lossy);
    void book(const DpuOwner& who, const DpuCounts& counts, std::optional<Place> last_pc, bool known);
    void show(const dpu::TaskContext& context);
    void stay(const std::optional<dpu::TaskContext>& context);
    void flow(const dpu::Element& element);
    void lose_stacks();
    Stack& stack(std::uint8_t id);
    void push(Stack& stack, const Place& to, std::uint32_t call, bool service, const dpu::TaskContext& context);
    void begin(Stack& stack, const std::optional<Place>& at, const dpu::TaskContext& context);
    void pop(Stack& stack);
    void replace(Stack& stack, const DpuCode::Function& function, std::uint64_t home, bool called);
    bool jump(Stack& stack, const Place& start, const Place& last);
    [[nodiscard]] bool begins_at(const Place& place);
    [[nodiscard]] bool unwind(Stack& stack, const Place& to);
    std::size_t child(std::size_t parent, const DpuCode::Function& function,
                      const std::optional<dpu::TaskContext>& root, bool service);
    const Known& known(const Place& place);

    DpuSetup setup_;
    const DpuCode& code_;
    bool changes_ = false;  ///< mode TASK or FLOW: readings come with changes of flow

    bool eonce_ = false;  ///< mode EONCE_RAW or EONCE_COMP: every change of context is shown

    std::optional<dpu::TaskContext> shown_;    ///< by whatever element
    std::optional<dpu::TaskContext> context_;  ///< shown by the reading before
    std::optional<Place> run_;                 ///< where the run behind that reading began
    DpuReadings readings_checked_;
    std::optional<dpu::Counters> first_values_;
    std::optional<std::uint64_t> reading_at_;  ///< offset of the reading before
    bool lossy_ = false;                       ///< something was lost since
    bool mixed_ = false;
    DpuCounts total_{}, intervals_{};
    std::uint64_t readings_ = 0, time_ = 0;
    DpuWide wide_;
    DpuDoubted doubted_;

    std::map<DpuOwner, DpuTask> tasks_;
    std::optional<DpuStay> stay_;
    std::vector<DpuStay> stays_;
    std::uint64_t stays_left_out_ = 0;
    std::map<std::uint8_t, Stack> stacks_;
    std::map<DpuCode::Function, DpuFunctionCost> functions_;
    std::map<Place, Known> known_;
    std::map<std::pair<Place, Place>, DpuCode::Way> ways_;
    std::vector<DpuPath> paths_;
    std::map<std::tuple<std::size_t, DpuCode::Function, bool>, std::size_t> children_;
    std::uint64_t returns_without_call_ = 0, jumps_ = 0, crossings_ = 0;
    struct OpenService {
        std::uint32_t entry = 0;
        DpuCounts counts{};
    };
    std::vector<OpenService> open_services_;
    std::map<std::uint32_t, DpuService> services_;
    std::vector<DpuRange> ranges_;
    DpuCounts outside_{};
    std::map<Place, DpuLoop> loops_;
    std::map<std::uint32_t, dpu::LoopStarts> starts_;  ///< by layer of the last address
    std::vector<DpuDatum> data_;
};

}  // namespace waymark::analysis
