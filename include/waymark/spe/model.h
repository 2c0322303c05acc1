/// A Statistical Profiling unit as a model: executed operations → exactly the records that the hardware would write
/// into its profiling buffer (docs/spec/spe.md, sections 1 to 4). architecture.h decides what is enabled and which
/// samples are kept; the model shares only the packets and the names in record.h with readers of records.
///
///     ProfilingBuffer buffer(Address{0x10000}, 0x4000);
///     ModelConfig config = ModelConfig::linux_user(Version::v1_2, 4096, buffer);
///     Model model(config, buffer);
///     while (…) {
///         if (const auto n = std::min(model.until_next(), ahead)) {
///             model.skip(n);              // fast: members that are not examined
///         } else {
///             model.retire(operation);    // the chosen member, or one that must not be skipped
///         }
///         if (model.pmbirq()) …           // store model.pointer(), program the registers again with model.change()
///     }
///     model.drain(cycle);
///     buffer.written(model.pointer());
///
/// Operations come in program order, and cycles never decrease. Passing every operation to retire() gives the same
/// records and counts as skipping the ones that until_next() allows to skip.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/spe/architecture.h"
#include "waymark/spe/record.h"

namespace waymark::spe {

// ---- memory

/// The reason why a byte of the profiling buffer is not writable (1.6, 2.7).
struct WriteFault {
    enum class Kind : std::uint8_t { stage1, stage2, granule_protection, external_abort } kind = Kind::stage1;
    std::uint8_t status = 0x07;  ///< the fault status code: MSS[5:0]
    std::uint32_t mss2 = 0;
    bool operator==(const WriteFault&) const = default;
};

/// The memory that contains a profiling buffer.
class ProfilingMemory {
public:
    virtual ~ProfilingMemory() = default;
    /// Number of writable bytes among the next `bytes` bytes from `at` on; sets `fault` if it is less than `bytes`.
    virtual std::uint64_t writable(Address at, std::uint64_t bytes, WriteFault& fault) = 0;
    /// Writes writable bytes; borrowed for the call.
    virtual void write(Address at, Bytes bytes) = 0;
};

/// A separate buffer. Every write outside it faults.
class ProfilingBuffer final : public ProfilingMemory {
public:
    ProfilingBuffer(Address base, std::uint64_t bytes) : base_(base), bytes_(bytes) {}

    std::uint64_t writable(Address at, std::uint64_t bytes, WriteFault& fault) override;
    void write(Address at, Bytes bytes) override;

    /// The byte at `at` faults from now on. Call Model::change() so that the model takes notice.
    void fault_at(Address at, const WriteFault& fault) { faults_[at.value] = fault; }
    void clear_faults() { faults_.clear(); }

    [[nodiscard]] Address base() const { return base_; }
    [[nodiscard]] Address end() const { return base_ + bytes_.size(); }
    /// The whole buffer in memory.
    [[nodiscard]] Bytes bytes() const { return bytes_; }
    /// The bytes below a write pointer; empty if the pointer is outside.
    [[nodiscard]] Bytes written(Address pointer) const;

private:
    Address base_;
    std::vector<std::uint8_t> bytes_;
    std::map<std::uint64_t, WriteFault> faults_;
};

// ---- choices that the architecture leaves open

/// All packets of a record except the terminator, each once.
using RecordOrder = std::array<RecordColumn, column_count - 1>;

/// Choices that the specification leaves to the implementation (impl), or on which it is unclear. The defaults come
/// from the architecture's reference model (3.11).

struct ModelChoices {
    /// Maximum number of samples in flight; one more is a collision (1.3). At least 1.
    std::uint32_t in_flight = 1;
    /// Whether operations that never retire are members of the population too. If not, they do not count, and all
    /// samples have event 1 (retired).
    bool speculation = true;
    /// The interval for PMSIRR_EL1.INTERVAL = 0, which is UNKNOWN (1.2). 0: only jitter chooses samples.
    std::uint32_t zero_interval = 0;
    /// Seed of random numbers: jitter, and the access of a memory copy that is sampled.
    std::uint64_t seed = 0;

    /// Events of the unit. Events that its version lacks have no effect (4.5), and the events of SME come with SME.
    /// Default: all events with a name.
    std::uint64_t events = 0x00fe'0fff;
    /// Number of bytes of an event packet: 1, 2, 4 or 8; events beyond that are omitted. 0: as many bytes as the
    /// highest event needs.
    std::uint8_t event_bytes = 0;
    /// Bytes of a data source packet, 1 or 2.
    std::uint8_t data_source_bytes = 1;
    /// Whether a branch that was not taken also has a target packet, with the instruction after it, as captures show
    /// (1.4).
    bool not_taken_target = false;
    /// FEAT_SPE_PBT: whether other operations than branches also carry the previous branch target.
    bool previous_target_on_all = true;
    /// Bits 63:56 of a data address without a tag: 0, or unchanged (4.2).
    bool data_top_byte = false;
    /// Whether the timestamp belongs to the end of the operation, not to its beginning (3.11).
    bool timestamp_at_end = false;

    /// Order of packets; the terminator follows them.
    RecordOrder order = reference_order;
    /// Absent packets for which the record has zeros of the same size: a bit for each RecordColumn. If a branch target
    /// and a data address are adjacent, they share their place.
    std::uint16_t slots = 0;
    /// Whether padding to PMBIDR_EL1.Align comes before the terminator, not after it.
    bool padding_first = false;

    /// Number of formatted records that may wait before the oldest is written (1.7).
    std::uint32_t queued_records = 0;
    /// Whether initiated writes are complete after a DSB, or 256 records later.
    bool writes_wait = false;
    /// PMBPTR_EL1 bits below PMBIDR_EL1.Align are RES0.
    bool pointer_res0 = true;
    /// Whether an external abort becomes an SError instead of a report in PMBSR_EL1, unless PMBIDR_EL1.EA shows that
    /// PMBSR_EL1 reports it (1.6).
    bool external_abort_serror = false;

    /// The physical counter: ticks = first + cycle * numerator / denominator, unless set_counter() says otherwise.
    std::uint64_t counter_first = 0;
    std::uint32_t counter_numerator = 1, counter_denominator = 1;

    static constexpr RecordOrder reference_order{RecordColumn::context_el1,
                                                 RecordColumn::context_el2,
                                                 RecordColumn::total_latency,
                                                 RecordColumn::issue_latency,
                                                 RecordColumn::translation_latency,
                                                 RecordColumn::alternate_issue_latency,
                                                 RecordColumn::pc,
                                                 RecordColumn::branch_target,
                                                 RecordColumn::data_virtual,
                                                 RecordColumn::data_physical,
                                                 RecordColumn::previous_target,
                                                 RecordColumn::data_source,
                                                 RecordColumn::operation,
                                                 RecordColumn::events};
    /// Records of 64 bytes with a place for each packet: Neoverse N1, V1 and V2 (7.1).
    [[nodiscard]] static ModelChoices neoverse();
    /// Records of 48 bytes, 56 with a context: the captures hiperf-* of 7.1.
    [[nodiscard]] static ModelChoices hiperf();

    bool operator==(const ModelChoices&) const = default;
};

struct ModelConfig {
    /// The implemented features, the initial registers, and the CONSTRAINED UNPREDICTABLE choices.
    State state;
    ModelChoices choices;

    /// The programming by Linux for a program at EL0, with jitter, timestamps and CONTEXTIDR_EL2 and without filters:
    /// EL2 owns the buffer and is the host. `interval`: number of operations from one sample to the next, a multiple
    /// of 256. The caller may change single features.
    [[nodiscard]] static ModelConfig linux_user(Version version, std::uint32_t interval, const ProfilingBuffer& buffer);
    /// Whether such a unit is possible. `unsupported` names the field and its possible values.
    [[nodiscard]] Status check() const;
    /// Size of the longest record with this configuration; PMSIDR_EL1.MaxSize must not be less.
    [[nodiscard]] std::uint32_t longest_record_bytes() const;
};

/// The values of registers that a warm reset leaves UNKNOWN (2): 0, all ones, or random.
enum class ResetValues : std::uint8_t { zero, ones, random };
/// A warm reset of the registers PMS* and PMB*: PMBLIMITR_EL1.E is 0, and so are the profiling exception of the highest
/// exception level and all reserved bits; ID registers keep their values. `seed` is for random values.
void reset(State& state, ResetValues values, std::uint64_t seed = 0);

// ---- inputs

/// Bits of the events (4.5) that the caller supplies. The unit itself supplies `retired`, `not_taken` and `streaming`,
/// from Executed and PSTATE.
namespace event {
inline constexpr std::uint64_t exception = 1U << 0, retired = 1U << 1, l1d_access = 1U << 2, l1d_refill = 1U << 3,
                               tlb_access = 1U << 4, tlb_walk = 1U << 5, not_taken = 1U << 6, mispredict = 1U << 7,
                               llc_access = 1U << 8, llc_miss = 1U << 9, remote = 1U << 10, misaligned = 1U << 11,
                               partial_predicate = 1U << 17, empty_predicate = 1U << 18, l2d_access = 1U << 19,
                               l2d_miss = 1U << 20, data_modified = 1U << 21, recently_fetched = 1U << 22,
                               snooped = 1U << 23, streaming = 1U << 24, shared_unit = 1U << 25;
}  // namespace event

/// The target of a branch.
struct BranchTarget {
    Address address{};
    /// Exception level and security state of the target, if they differ from the branch's: exception returns.
    std::optional<std::uint8_t> exception_level{};
    std::optional<SecurityState> security{};
    bool operator==(const BranchTarget&) const = default;
};

/// The first access of an operation to data, except the accesses of 3.11.
struct Access {
    Address address{};    ///< virtual, all 64 bits
    bool tagged = false;  ///< bits 63:56 are a tag: TBI applies
    /// The physical address; nullopt if the access aborted.
    std::optional<Address> physical{};
    std::optional<SecurityState> physical_space{};  ///< if it differs from the current one
    bool tag_checked = false;                       ///< CH
    std::uint8_t physical_tag = 0;                  ///< PAT, bits 3:0
    bool operator==(const Access&) const = default;
};

/// One operation that went through the pipeline: an instruction, or one of its micro-operations.
struct Executed {
    Address pc{};
    std::uint64_t cycle{};          ///< of its dispatch
    Operation operation{};          ///< in full: the unit leaves out parts that its version cannot express
    std::uint64_t events{};         ///< of namespace event
    bool retired = true;            ///< false: speculative, and discarded
    bool condition_failed = false;  ///< conditional, and its condition failed: a branch not taken, …
    /// Whether it is a further micro-operation of the previous instruction, which is not a member of a population of
    /// instructions (PMSIDR_EL1.ArchInst).
    bool continues = false;
    /// Cycles from dispatch to completion and to issue, and cycles of waiting for a translation; issue by the other
    /// clock (FEAT_SPE_ALTCLK).
    std::uint32_t total_latency = 1, issue_latency{}, translation_latency{};
    std::optional<std::uint32_t> alternate_issue_latency{};
    BranchTarget target{};           ///< branches: the target if taken, else the next instruction
    std::optional<Access> access{};  ///< loads, stores, atomics
    /// For a memory copy, and GCSSS2, which load and store (`operation.load` and `.store`): the store access.
    std::optional<Access> store_access{};
    std::optional<std::uint16_t> data_source{};
};

/// EVL and ETS of 4.6, rounded up: `Operation::length_code` of SVE and SME operations.
[[nodiscard]] std::uint8_t vector_length_code(std::uint32_t bits);
[[nodiscard]] std::uint8_t tile_size_code(std::uint32_t bits);
/// The payload of an operation type packet (4.6) from a unit of this architecture. `crr`, `fpf`: the fields of
/// PMSIDR_EL1.
[[nodiscard]] OperationType operation_type(const Operation& operation, const Architecture& arch, bool crr, bool fpf);
/// The operation type for filters (3.0, 3.12).
[[nodiscard]] OpType filter_type(const Operation& operation);

// ---- results

/// The fate of a sample.
enum class Fate : std::uint8_t {
    written,
    filtered,
    collided,
    discarded,  ///< discard mode: the sample passed the filters, and is not written
    lost,  ///< not yet in the buffer when profiling stopped or the buffer was turned off, or the buffer had no room
    torn,  ///< the write faulted within the record
};
inline constexpr unsigned fate_count = 6;
[[nodiscard]] std::string_view name(Fate fate);

/// A sample and its fate, reported when the fate is known.
struct SampleFate {
    std::uint64_t member{};  ///< number of the member, from 1: SAMPLE_POP at that time
    Executed operation;
    Fate fate{};
    /// The contents of its record: absent if the sample did not get that far. `first` and `bytes`: the place from
    /// address 0 on, if the record was written.
    std::optional<Record> record{};
};

/// Receives the fates of samples: the truth beside the records. It must not call the model.
class SampleWitness {
public:
    virtual ~SampleWitness() = default;
    virtual void sampled(const SampleFate& sample) = 0;
};

/// PMU events of the unit (1.8).
struct PmuCounts {
    std::uint64_t sample_pop = 0, sample_feed = 0, sample_filtrate = 0, sample_collision = 0, sample_buffer_full = 0;
    /// Events from v1.2 on; _fp and _simd with FEAT_SPE_EFT, _ds with FEAT_SPE_FDS.
    std::uint64_t sample_feed_br = 0, sample_feed_ld = 0, sample_feed_st = 0, sample_feed_op = 0, sample_feed_event = 0,
                  sample_feed_lat = 0, sample_feed_fp = 0, sample_feed_simd = 0, sample_feed_ds = 0;
    bool operator==(const PmuCounts&) const = default;
};

/// Counts of the model, for callers that store the truth beside the records.
struct ModelCounts {
    PmuCounts pmu;
    std::uint64_t outside =
        0;  ///< operations passed or skipped that were no members: profiling was off, or off for them
    std::uint64_t chosen = 0;  ///< members that the interval chose; each has one fate in the end
    std::array<std::uint64_t, fate_count> fates{};
    std::uint64_t bytes = 0;         ///< bytes written, with padding and torn records
    std::uint64_t serrors = 0;       ///< external aborts that PMBSR_EL1 does not report
    std::uint64_t fault_events = 0;  ///< buffer management events other than a full buffer

    [[nodiscard]] std::uint64_t with(Fate fate) const { return fates[static_cast<std::size_t>(fate)]; }
    bool operator==(const ModelCounts&) const = default;
};

// ---- the unit

class Model {
public:
    /// `memory` and `witness` are borrowed. Precondition: `config.check()`.
    Model(const ModelConfig& config, ProfilingMemory& memory, SampleWitness* witness = nullptr);
    ~Model();

    // ---- execution

    /// Takes one operation. PMSIDR_EL1.ArchInst decides which operations are members of the population:
    /// `Executed::continues`.
    void retire(const Executed& operation);

    /// Number of operations that can be skipped: none of them is chosen, and none depends on the time. Operations that
    /// the unit ignores do not count: further micro-operations of an instruction if ArchInst is 1, and operations that
    /// never retire without `ModelChoices::speculation`.
    [[nodiscard]] std::uint64_t until_next() const {
        if (!looked_) [[unlikely]]
            look_ahead();
        return left_;
    }
    /// Skips members of the population without details. Precondition: `members` <= until_next().
    void skip(std::uint64_t members) {
        if (members > until_next()) [[unlikely]]
            skip_too_far();
        left_ -= members;
        skipped_ += members;
    }
    /// The last taken branch among skipped operations: only FEAT_SPE_PBT needs it.
    void skipped_branch(const BranchTarget& target);

    /// Time passed without an operation.
    void advance(std::uint64_t cycle);

    // ---- registers and barriers

    /// `f(State&)` changes registers, exception level or other parts of the state, but not the implementation: ID
    /// registers and `arch` stay. The caller checks whether software may write a register (architecture.h). Call this
    /// also when memory begins or ceases to fault.
    template <class F>
    void change(std::uint64_t cycle, F&& f) {
        begin_change(cycle);
        std::forward<F>(f)(mutable_state());
        end_change();
    }
    /// PSTATE.EL.
    void set_exception_level(std::uint64_t cycle, std::uint8_t el);
    /// CONTEXTIDR_EL1 and _EL2.
    void set_context(std::uint32_t context_el1, std::uint32_t context_el2);
    /// Sets the value of the physical counter from the next operation on; and the values that CNTVOFF_EL2 and
    /// CNTPOFF_EL2 subtract.
    void set_counter(std::uint64_t ticks);
    void set_counter_offsets(std::uint64_t virtual_offset, std::uint64_t physical_offset);

    /// PSB CSYNC: the samples taken so far are on their way to memory (1.7).
    void psb_csync();
    /// DSB: the samples are in memory.
    void dsb();
    /// The steps by which Linux stops the unit: PMSCR_EL1 and _EL2 = 0, PSB CSYNC, DSB, PMBLIMITR_EL1 = 0 (1.7). The
    /// pointer and PMBSR_EL1 can be read afterwards.
    void drain(std::uint64_t cycle);

    // ---- results, as of the last cycle passed

    [[nodiscard]] const State& state() const;
    [[nodiscard]] const Registers& registers() const { return state().regs; }
    /// PMBPTR_EL1.
    [[nodiscard]] Address pointer() const { return {registers().pmbptr_el1.ptr}; }
    /// Whether profiling is enabled at the current exception level.
    [[nodiscard]] bool enabled() const;
    /// The level of PMBIRQ.
    [[nodiscard]] bool pmbirq() const;
    /// FEAT_SPE_EXC: the exception level for which a profiling exception is pending; nullopt if none is pending.
    [[nodiscard]] std::optional<std::uint8_t> profiling_exception() const;
    /// Whether PMBLIMITR_EL1.PMFZ freezes the event counters of the PMU that PMCR_EL0.FZS or MDCR_EL2.HPMFZS selects.
    [[nodiscard]] bool pmu_frozen() const;
    [[nodiscard]] bool pmu_frozen_el2() const;
    [[nodiscard]] const ModelCounts& counts() const;
    /// Number of samples without a fate: operations in flight, and formatted records that are not on their way to
    /// memory.
    [[nodiscard]] std::uint64_t pending() const;

private:
    class Unit;
    void look_ahead() const;
    [[noreturn]] static void skip_too_far();
    void begin_change(std::uint64_t cycle);
    [[nodiscard]] State& mutable_state();
    void end_change();
    /// The unit, after counting skipped members.
    [[nodiscard]] Unit& settled() const;

    std::unique_ptr<Unit> unit_;
    // Counted in advance, so that skipping takes two additions.
    mutable std::uint64_t left_ = 0, skipped_ = 0;
    mutable bool looked_ = false;
};

}  // namespace waymark::spe
