#include "waymark/spe/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "sample_format.h"
#include "waymark/spe/sampling.h"

namespace waymark::spe {

namespace {

constexpr std::size_t most_waiting_writes = 256;  // ModelChoices::writes_wait

/// SplitMix64.
class Source {
public:
    explicit Source(std::uint64_t seed) : state_(seed) {}
    std::uint64_t operator()() {
        std::uint64_t z = state_ += 0x9e3779b97f4a7c15U;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9U;
        z = (z ^ z >> 27) * 0x94d049bb133111ebU;
        return z ^ z >> 31;
    }
    std::uint8_t byte() { return static_cast<std::uint8_t>((*this)() >> 56); }

private:
    std::uint64_t state_;
};

/// The interval counter (1.2), and the random number that it will take next.
class Interval {
public:
    /// `zero`: what an interval of 0 means.
    Interval(std::uint64_t seed, std::uint32_t zero) : zero_(zero & 0xff'ffffU), source_(seed), draw_(source_.byte()) {}

    /// One member; true if it is chosen.
    bool count(Registers& registers) {
        const bool draws = takes_draw(registers);
        const std::uint32_t written = registers.pmsirr_el1.interval;
        if (written == 0) registers.pmsirr_el1.interval = zero_;
        const bool chosen = count_member(registers, draw_);
        registers.pmsirr_el1.interval = written;
        if (draws) draw_ = source_.byte();
        return chosen;
    }

    /// Members of which none is chosen.
    void skip(Registers& registers, std::uint64_t members) {
        if (never(registers)) return;
        while (members != 0) {
            const std::uint64_t jump = std::min(members, plain(registers));
            if (jump == 0) {
                WM_CHECK(!count(registers));
                --members;
                continue;
            }
            PmsicrEl1& counter = registers.pmsicr_el1;
            counter.count_31_0 -= static_cast<std::uint32_t>(jump);
            if (after(registers) && counter.ecount != 0) counter.ecount -= static_cast<std::uint8_t>(jump);
            members -= jump;
        }
    }

    /// How many members come before the next that is chosen.
    [[nodiscard]] std::uint64_t until_chosen(Registers registers) const {
        if (never(registers)) return std::numeric_limits<std::uint64_t>::max();
        Interval ahead = *this;
        std::uint64_t members = 0;
        // Without an interval, a reload may be one of 0 time after time.
        for (unsigned steps = 0; steps < 16; ++steps) {
            const std::uint64_t jump = ahead.plain(registers);
            ahead.skip(registers, jump);
            members += jump;
            if (ahead.count(registers)) return members;
            ++members;
        }
        return members;  // so many at least
    }

private:
    /// Without an interval nothing is ever chosen, unless jitter replaces it; and nothing changes.
    [[nodiscard]] bool never(const Registers& r) const {
        if (r.pmsirr_el1.interval != 0 || zero_ != 0 || r.pmsicr_el1.count_31_0 != 0) return false;
        return !r.pmsirr_el1.rnd || (r.pmsidr_el1.e_rnd && r.pmsicr_el1.ecount == 0);
    }
    [[nodiscard]] static bool after(const Registers& r) { return r.pmsirr_el1.rnd && r.pmsidr_el1.e_rnd; }
    [[nodiscard]] static bool takes_draw(const Registers& r) {
        return r.pmsirr_el1.rnd && r.pmsicr_el1.count_31_0 == (r.pmsidr_el1.e_rnd ? 1U : 0U);
    }
    /// Members that only count down.
    [[nodiscard]] static std::uint64_t plain(const Registers& r) {
        const PmsicrEl1& counter = r.pmsicr_el1;
        if (counter.count_31_0 == 0) return 0;
        const std::uint64_t count = counter.count_31_0 - 1;
        return after(r) && counter.ecount != 0 ? std::min<std::uint64_t>(count, counter.ecount - 1U) : count;
    }

    std::uint32_t zero_;
    Source source_;
    std::uint8_t draw_;
};

/// Sets one column of a record.
template <class Member, class Value>
void set(Record& r, RecordColumn column, Member Record::*member, Value value) {
    r.*member = static_cast<Member>(value);
    r.present = static_cast<std::uint16_t>(r.present | 1U << static_cast<unsigned>(column));
}

Security security_of(SecurityState state) {
    switch (state) {
        case SecurityState::NonSecure: return Security::non_secure;
        case SecurityState::Secure: return Security::secure;
        case SecurityState::Realm: return Security::realm;
        case SecurityState::Root: break;
    }
    return Security::reserved;  // nothing is sampled in Root state
}

std::uint64_t program_payload(Address address, std::uint8_t el, SecurityState state) {
    return from_program_address({address, el, security_of(state)});
}

std::uint64_t physical_payload(const Access& access, SecurityState current) {
    const auto space = static_cast<std::uint64_t>(security_of(access.physical_space.value_or(current)));
    return (access.physical->value & 0x00ff'ffff'ffff'ffffU) | std::uint64_t{access.physical_tag & 0xfU} << 56 |
           (space >> 1 & 1U) << 60 | std::uint64_t{access.tag_checked} << 62 | (space & 1U) << 63;
}

/// What records of one class can hold at most, for the length of the longest.
Record fullest(OperationClass kind, const State& s) {
    Record r;
    const auto add = [&](RecordColumn column) {
        r.present = static_cast<std::uint16_t>(r.present | 1U << static_cast<unsigned>(column));
    };
    for (const RecordColumn column :
         {RecordColumn::pc, RecordColumn::total_latency, RecordColumn::issue_latency, RecordColumn::events,
          RecordColumn::operation, RecordColumn::context_el1, RecordColumn::timestamp})
        add(column);
    if (s.arch.el2 || s.arch.as_printed) add(RecordColumn::context_el2);
    if (s.regs.pmsidr_el1.pbt) add(RecordColumn::previous_target);
    if (s.regs.pmsidr_el1.altclk != 0) add(RecordColumn::alternate_issue_latency);
    if (kind == OperationClass::branch) add(RecordColumn::branch_target);
    if (kind == OperationClass::load_store) {
        add(RecordColumn::data_virtual);
        add(RecordColumn::data_physical);
        add(RecordColumn::translation_latency);
        if (s.regs.pmsidr_el1.lds) add(RecordColumn::data_source);
    }
    return r;
}

Error unsupported(std::string message) { return {Errc::unsupported, std::move(message), {}}; }

}  // namespace

// ---- memory

std::uint64_t ProfilingBuffer::writable(Address at, std::uint64_t bytes, WriteFault& fault) {
    if (at < base_ || at >= end()) {
        fault = {};
        return 0;
    }
    std::uint64_t room = std::min(bytes, end() - at);
    if (room < bytes) fault = {};
    if (const auto it = faults_.lower_bound(at.value); it != faults_.end() && it->first - at.value < room) {
        room = it->first - at.value;
        fault = it->second;
    }
    return room;
}

void ProfilingBuffer::write(Address at, Bytes bytes) {
    if (at < base_ || at > end() || bytes.size() > end() - at) return;
    std::copy(bytes.begin(), bytes.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(at - base_));
}

Bytes ProfilingBuffer::written(Address pointer) const {
    if (pointer < base_ || pointer > end()) return {};
    return Bytes(bytes_).first(pointer - base_);
}

// ---- configuration

ModelChoices ModelChoices::neoverse() {
    ModelChoices c;
    c.order = {RecordColumn::pc,
               RecordColumn::context_el1,
               RecordColumn::context_el2,
               RecordColumn::operation,
               RecordColumn::events,
               RecordColumn::issue_latency,
               RecordColumn::total_latency,
               RecordColumn::branch_target,
               RecordColumn::data_virtual,
               RecordColumn::translation_latency,
               RecordColumn::data_physical,
               RecordColumn::data_source,
               RecordColumn::alternate_issue_latency,
               RecordColumn::previous_target};
    for (const RecordColumn column :
         {RecordColumn::context_el1, RecordColumn::context_el2, RecordColumn::branch_target, RecordColumn::data_virtual,
          RecordColumn::translation_latency, RecordColumn::data_physical, RecordColumn::data_source})
        c.slots = static_cast<std::uint16_t>(c.slots | 1U << static_cast<unsigned>(column));
    c.event_bytes = 2;
    c.padding_first = true;
    c.not_taken_target = true;
    return c;
}

ModelChoices ModelChoices::hiperf() {
    ModelChoices c;
    c.order = {RecordColumn::pc,
               RecordColumn::issue_latency,
               RecordColumn::total_latency,
               RecordColumn::events,
               RecordColumn::operation,
               RecordColumn::data_source,
               RecordColumn::branch_target,
               RecordColumn::data_virtual,
               RecordColumn::translation_latency,
               RecordColumn::context_el1,
               RecordColumn::context_el2,
               RecordColumn::data_physical,
               RecordColumn::alternate_issue_latency,
               RecordColumn::previous_target};
    for (const RecordColumn column : {RecordColumn::data_source, RecordColumn::branch_target,
                                      RecordColumn::data_virtual, RecordColumn::translation_latency})
        c.slots = static_cast<std::uint16_t>(c.slots | 1U << static_cast<unsigned>(column));
    c.event_bytes = 4;
    c.padding_first = true;
    c.not_taken_target = true;
    return c;
}

ModelConfig ModelConfig::linux_user(Version version, std::uint32_t interval, const ProfilingBuffer& buffer) {
    ModelConfig config;
    State& s = config.state;
    s.arch = Architecture::of(version);
    PmsidrEl1& id = s.regs.pmsidr_el1;
    id.fe = id.ft = id.fl = id.arch_inst = id.lds = id.e_rnd = true;
    id.fn_e = s.arch.fn_e;
    id.fds = s.arch.fds;
    id.max_size = 6;
    id.count_size = 2;
    s.regs.pmbidr_el1.align = 6;
    s.regs.scr_el3.ns = true;
    s.regs.mdcr_el3.nspb = 0b11;
    s.regs.hcr_el2.tge = s.regs.hcr_el2.e2h = true;
    s.regs.pstate.el = EL0;
    s.regs.pmscr_el2.e0hspe = s.regs.pmscr_el2.cx = s.regs.pmscr_el2.ts = true;
    s.regs.pmsirr_el1.interval = std::max(interval >> 8, 1U);
    s.regs.pmsirr_el1.rnd = true;
    s.regs.pmbptr_el1.ptr = buffer.base().value;
    s.regs.pmblimitr_el1.limit = buffer.end().value >> 12;
    s.regs.pmblimitr_el1.e = true;
    return config;
}

std::uint32_t ModelConfig::longest_record_bytes() const {
    const RecordFormat format = RecordFormat::of(choices, state.arch, state.regs.pmbidr_el1.align);
    std::size_t longest = 0;
    for (const OperationClass kind : {OperationClass::other, OperationClass::load_store, OperationClass::branch})
        longest = std::max(longest, format_record(fullest(kind, state), format).bytes.size());
    return static_cast<std::uint32_t>(longest);
}

Status ModelConfig::check() const {
    const PmsidrEl1& id = state.regs.pmsidr_el1;
    const Architecture& arch = state.arch;
    if (arch.version == Version::none) return unsupported("there is no unit: the version is none");
    if (id.max_size < 6 || id.max_size > 11)
        return unsupported(
            fmt::format("PMSIDR_EL1.MaxSize is {}; records of 2^6 to 2^11 bytes are permitted", id.max_size));
    if (id.count_size != 2 && id.count_size != 3)
        return unsupported(
            fmt::format("PMSIDR_EL1.CountSize is {}; there are 2 (12 bits) and 3 (16 bits)", id.count_size));
    if (id.format != 0) return unsupported(fmt::format("PMSIDR_EL1.Format is {}; there is only format 0", id.format));
    if (state.regs.pmbidr_el1.align > id.max_size)
        return unsupported(fmt::format("PMBIDR_EL1.Align is {}, more than PMSIDR_EL1.MaxSize, which is {}",
                                       state.regs.pmbidr_el1.align, id.max_size));
    struct Feature {
        std::string_view field;
        bool has, arch;
    };
    for (const Feature& f : {Feature{"FnE", id.fn_e, arch.fn_e}, Feature{"FDS", id.fds, arch.fds},
                             Feature{"EFT", id.eft, arch.eft}, Feature{"SME", id.sme, arch.sme}})
        if (f.has != f.arch)
            return unsupported(
                fmt::format("PMSIDR_EL1.{} is {:d}, but the architecture says {:d}", f.field, f.has, f.arch));
    if (arch.version < Version::v1_2 && (id.pbt || id.fn_e))
        return unsupported("PMSIDR_EL1.PBT and FnE come with v1.2");
    if (arch.version < Version::v1_4 && id.fds) return unsupported("PMSIDR_EL1.FDS comes with v1.4");

    const auto one_of = [](std::uint8_t value, std::initializer_list<std::uint8_t> list) {
        return std::find(list.begin(), list.end(), value) != list.end();
    };
    if (!one_of(choices.event_bytes, {0, 1, 2, 4, 8}))
        return unsupported(fmt::format("event_bytes is {}; it may be 0, 1, 2, 4 or 8", choices.event_bytes));
    if (!one_of(choices.data_source_bytes, {1, 2}))
        return unsupported(fmt::format("data_source_bytes is {}; it may be 1 or 2", choices.data_source_bytes));
    if (choices.in_flight == 0) return unsupported("in_flight is 0; a unit tracks at least one sample");
    if (choices.counter_denominator == 0) return unsupported("counter_denominator is 0");
    unsigned columns = 0;
    for (const RecordColumn column : choices.order) columns |= 1U << static_cast<unsigned>(column);
    if (columns != (1U << choices.order.size()) - 1)
        return unsupported("order must hold every packet but the terminator, each once");
    if (const std::uint32_t longest = longest_record_bytes(); longest > 1U << id.max_size)
        return unsupported(
            fmt::format("a record can have {} bytes, but PMSIDR_EL1.MaxSize allows {}", longest, 1U << id.max_size));
    return Nothing{};
}

void reset(State& state, ResetValues values, std::uint64_t seed) {
    Source random(seed);
    Registers& regs = state.regs;
    Registers::for_each(regs, [&]<class Register>(Register& r) {
        const std::string_view name = Register::name;
        if (!name.starts_with("PMS") && !name.starts_with("PMB")) return;
        if (name == PmsidrEl1::name || name == PmbidrEl1::name) return;
        std::uint64_t value = values == ResetValues::zero   ? 0
                              : values == ResetValues::ones ? ~std::uint64_t{0}
                                                            : random();
        for (const Field& field : fields_of(r))
            if (field.reserved()) value &= ~((~std::uint64_t{0} >> (64 - field.width())) << field.lo);
        r = from_value<Register>(value);
    });
    regs.pmblimitr_el1.e = false;
    if (!state.arch.el3) (state.arch.el2 ? regs.pmscr_el2.ee : regs.pmscr_el1.ee) = 0b00;
}

// ---- the unit

class Model::Unit {
public:
    Unit(const ModelConfig& config, ProfilingMemory& memory, SampleWitness* witness)
        : state_(config.state),
          choices_(config.choices),
          memory_(memory),
          witness_(witness),
          format_(RecordFormat::of(choices_, state_.arch, state_.regs.pmbidr_el1.align)),
          events_(RecordFormat::events(choices_, state_.arch)),
          longest_(config.longest_record_bytes()),
          interval_(choices_.seed, choices_.zero_interval),
          copies_(~choices_.seed),
          implemented_{state_.arch, state_.regs.pmsidr_el1, state_.regs.pmbidr_el1} {
        end_change();
    }

    // ---- execution

    void retire(const Executed& op) {
        advance(op.cycle);
        const bool further = op.continues && state_.regs.pmsidr_el1.arch_inst;
        if (!enabled_ || further || !(op.retired || choices_.speculation)) {
            ++counts_.outside;
        } else {
            ++counts_.pmu.sample_pop;
            if (interval_.count(state_.regs)) choose(op);
        }
        if (op.operation.kind == Operation::Kind::branch && op.retired && !op.condition_failed) taken(op.target);
    }

    void skip(std::uint64_t members) {
        if (!enabled_) {
            counts_.outside += members;
            return;
        }
        counts_.pmu.sample_pop += members;
        interval_.skip(state_.regs, members);
    }

    [[nodiscard]] std::uint64_t skippable() const {
        if (may_stop()) return 0;
        return enabled_ ? interval_.until_chosen(state_.regs) : std::numeric_limits<std::uint64_t>::max();
    }

    /// A branch was taken: what the next record may name as the one before it (FEAT_SPE_PBT).
    void taken(const BranchTarget& target) {
        if (!state_.regs.pmsidr_el1.pbt) return;
        previous_target_.reset();
        if (enabled_) previous_target_ = target_payload(target);
    }

    void advance(std::uint64_t cycle) {
        now_ = std::max(now_, cycle);
        complete_until(now_);
    }

    // ---- registers and barriers

    State& state() { return state_; }

    void end_change() {
        state_.arch = implemented_.arch;
        state_.regs.pmsidr_el1 = implemented_.pmsidr;
        state_.regs.pmbidr_el1 = implemented_.pmbidr;
        if (implemented_.pmsidr.count_size == 2) state_.regs.pmslatfr_el1.minlat &= 0xfff;  // RES0 above (2.4)
        if (choices_.pointer_res0 && !discard_mode())
            state_.regs.pmbptr_el1.ptr &= ~((std::uint64_t{1} << state_.regs.pmbidr_el1.align) - 1);
        if (!state_.regs.pmblimitr_el1.e || stopped()) discard();
        refresh();
    }

    void set_context(std::uint32_t el1, std::uint32_t el2) {
        context_el1_ = el1;
        context_el2_ = el2;
    }
    void set_counter(std::uint64_t ticks) { counter_ = ticks; }
    void set_counter_offsets(std::uint64_t virtual_offset, std::uint64_t physical_offset) {
        virtual_offset_ = virtual_offset;
        physical_offset_ = physical_offset;
    }

    void psb_csync() {
        complete_until(std::numeric_limits<std::uint64_t>::max());
        initiate_all_but(0);
    }

    void dsb() {
        for (const Write& write : waiting_) memory_.write(write.at, write.bytes);
        waiting_.clear();
    }

    // ---- what can be read

    [[nodiscard]] const State& state() const { return state_; }
    [[nodiscard]] bool enabled() const { return enabled_; }
    [[nodiscard]] const ModelCounts& counts() const { return counts_; }
    [[nodiscard]] std::uint64_t pending() const { return in_flight_.size() + queue_.size(); }

    [[nodiscard]] bool pmbirq() const { return state_.regs.pmbsr_el1.s && !exception_form(); }

    [[nodiscard]] std::optional<std::uint8_t> profiling_exception() const {
        const Registers& r = state_.regs;
        const std::uint8_t el = r.pstate.el;
        if (!state_.arch.exc) return std::nullopt;
        if (all_to_el3() && r.pmbsr_el3.s && el < EL3) return EL3;
        if (el2_takes() && r.pmbsr_el2.s && (el < EL2 || (el == EL2 && r.pmscr_el2.ke))) return EL2;
        if (exception_form() && r.pmbsr_el1.s && (el == EL0 || (el == EL1 && r.pmscr_el1.ke))) return EL1;
        return std::nullopt;
    }

    [[nodiscard]] bool pmu_frozen(bool control) const {
        const bool frozen = state_.arch.version >= Version::v1_2 && state_.regs.pmblimitr_el1.pmfz && stopped();
        return frozen && control;
    }

private:
    struct Implemented {
        Architecture arch;
        PmsidrEl1 pmsidr;
        PmbidrEl1 pmbidr;
    };
    struct Sample {
        SampleFate fate;
        Record record;
        std::uint64_t end{};
        OpType optype{};
        SampleDetails details;
        std::optional<TimeStamp> timestamp_at_end{};
    };
    struct Formatted {
        Sample sample;
        FormattedRecord record;
    };
    struct Write {
        Address at;
        std::vector<std::uint8_t> bytes;
    };

    [[nodiscard]] bool discard_mode() const {
        return state_.arch.version >= Version::v1_2 && state_.regs.pmblimitr_el1.fm == 0b10;
    }
    [[nodiscard]] bool stopped() const {
        return state_.regs.pmbsr_el1.s || (el2_takes() && state_.regs.pmbsr_el2.s) ||
               (el3_takes() && state_.regs.pmbsr_el3.s);
    }

    void refresh() { enabled_ = StatisticalProfilingEnabled(state_); }

    // ---- FEAT_SPE_EXC

    [[nodiscard]] bool el3_takes() const {
        return state_.arch.exc && state_.arch.el3 && (state_.regs.mdcr_el3.pmsee & 0b10) != 0;
    }
    [[nodiscard]] bool all_to_el3() const { return el3_takes() && state_.regs.mdcr_el3.pmsee == 0b11; }
    [[nodiscard]] bool el2_takes() const {
        return state_.arch.exc && state_.arch.el2 && (state_.regs.pmscr_el2.ee & 0b10) != 0;
    }
    /// EL1 has an exception instead of PMBIRQ.
    [[nodiscard]] bool exception_form() const {
        return state_.arch.exc && state_.regs.pmscr_el1.ee == 0b11 &&
               (!EL2Enabled(state_) || state_.regs.pmscr_el2.ee != 0b00);
    }
    /// Where a buffer management event is recorded.
    [[nodiscard]] PmbsrFields& status(bool stage2) {
        if (all_to_el3()) return state_.regs.pmbsr_el3;
        if (el2_takes() && (stage2 || state_.regs.pmscr_el2.ee == 0b11)) return state_.regs.pmbsr_el2;
        return state_.regs.pmbsr_el1;
    }

    // ---- a sample

    void choose(const Executed& op) {
        ++counts_.chosen;
        if (in_flight_.size() >= choices_.in_flight) {
            ++counts_.pmu.sample_collision;
            status(false).coll = true;
            report({counts_.pmu.sample_pop, op, Fate::collided, {}});
            return;
        }
        in_flight_.push_back(begin(op));
    }

    [[nodiscard]] Sample begin(const Executed& op) {
        Sample sample;
        sample.fate = {counts_.pmu.sample_pop, op, {}, {}};
        Executed& executed = sample.fate.operation;
        choose_access(executed);
        sample.end = op.cycle + op.total_latency;
        sample.optype = filter_type(executed.operation);
        sample.details = details(executed, sample.optype);
        fill(sample, executed);
        return sample;
    }

    /// An operation that loads and stores is sampled as one of both (3.11).
    void choose_access(Executed& op) {
        Operation& o = op.operation;
        if (!o.load || !o.store) return;
        const PmsfcrEl1& filter = state_.regs.pmsfcr_el1;
        bool store = (copies_() >> 63) != 0;
        if (filter.ft && filter.ld != filter.st) store = filter.st;
        if (o.kind == Operation::Kind::memory_set) store = true;
        o.load = !store;
        o.store = store;
        if (store) op.access = op.store_access;
        op.store_access.reset();
    }

    [[nodiscard]] SampleDetails details(const Executed& op, OpType optype) const {
        using Kind = Operation::Kind;
        const Operation& o = op.operation;
        SampleDetails d;
        if (has_source(op, optype)) d.data_source = op.data_source;
        if (o.kind == Kind::other || o.kind == Kind::sve || o.kind == Kind::sme) {
            d.fp = o.floating_point;
            d.simd = o.simd;
        } else if (o.kind == Kind::simd_fp) {
            d.fp = !o.simd;
            d.simd = o.simd;
        } else if (o.kind == Kind::sve_memory) {
            d.simd = true;
        } else if (o.kind == Kind::branch && o.control_stack) {
            d.stores = o.call == Operation::Call::call;
            d.loads = o.call == Operation::Call::procedure_return;
        }
        return d;
    }

    [[nodiscard]] bool has_source(const Executed& op, OpType optype) const {
        return state_.regs.pmsidr_el1.lds && op.data_source && (optype == OpType::Load || optype == OpType::LoadAtomic);
    }

    [[nodiscard]] std::uint64_t target_payload(const BranchTarget& target) const {
        return program_payload(target.address, target.exception_level.value_or(state_.regs.pstate.el),
                               target.security.value_or(CurrentSecurityState(state_)));
    }

    /// 1.4 and 3.11: what is collected.
    void fill(Sample& sample, const Executed& op) {
        Record& r = sample.record;
        const Registers& regs = state_.regs;
        const auto cycles = [&](std::uint32_t count) {
            return static_cast<std::uint16_t>(std::min(count, regs.pmsidr_el1.count_size == 3 ? 0xffffU : 0xfffU));
        };
        set(r, RecordColumn::pc, &Record::pc, program_payload(op.pc, regs.pstate.el, CurrentSecurityState(state_)));
        set(r, RecordColumn::total_latency, &Record::total_latency, cycles(op.total_latency));
        set(r, RecordColumn::issue_latency, &Record::issue_latency, cycles(op.issue_latency));
        if (regs.pmsidr_el1.altclk != 0 && op.alternate_issue_latency)
            set(r, RecordColumn::alternate_issue_latency, &Record::alternate_issue_latency,
                cycles(*op.alternate_issue_latency));
        set(r, RecordColumn::events, &Record::events, events_of(op));

        const OperationType type = operation_type(op.operation, state_.arch, regs.pmsidr_el1.crr, regs.pmsidr_el1.fpf);
        set(r, RecordColumn::operation, &Record::operation_type, type.type);
        r.operation_class = type.kind;
        const bool branch = type.kind == OperationClass::branch;
        if (branch && (!op.condition_failed || choices_.not_taken_target))
            set(r, RecordColumn::branch_target, &Record::branch_target, target_payload(op.target));
        if (type.kind == OperationClass::load_store) fill_access(sample, op, cycles(op.translation_latency));
        if (previous_target_ && (branch || choices_.previous_target_on_all))
            set(r, RecordColumn::previous_target, &Record::previous_target, *previous_target_);

        if (CollectContextIDR1(state_)) set(r, RecordColumn::context_el1, &Record::context_el1, context_el1_);
        if (CollectContextIDR2(state_)) set(r, RecordColumn::context_el2, &Record::context_el2, context_el2_);
        const TimeStamp kind = CollectTimeStamp(state_);
        if (kind == TimeStamp::None) return;
        set(r, RecordColumn::timestamp, &Record::timestamp, ticks(kind, op.cycle));
        if (choices_.timestamp_at_end) sample.timestamp_at_end = kind;
    }

    void fill_access(Sample& sample, const Executed& op, std::uint16_t translation) {
        Record& r = sample.record;
        set(r, RecordColumn::translation_latency, &Record::translation_latency, translation);
        if (has_source(op, sample.optype)) set(r, RecordColumn::data_source, &Record::data_source, *op.data_source);
        if (!op.access) return;
        const bool redirected = op.operation.kind == Operation::Kind::system_register;
        if (!redirected || enabled_at_el2()) {
            std::uint64_t payload = op.access->address.value;
            if (!op.access->tagged && !choices_.data_top_byte) payload &= 0x00ff'ffff'ffff'ffffU;
            set(r, RecordColumn::data_virtual, &Record::data_virtual, payload);
        }
        if (op.access->physical && CollectPhysicalAddress(state_))
            set(r, RecordColumn::data_physical, &Record::data_physical,
                physical_payload(*op.access, CurrentSecurityState(state_)));
    }

    [[nodiscard]] bool enabled_at_el2() const {
        State at_el2 = state_;
        at_el2.regs.pstate.el = EL2;
        return HaveEL(state_, EL2) && StatisticalProfilingEnabled(at_el2);
    }

    [[nodiscard]] std::uint64_t events_of(const Executed& op) const {
        std::uint64_t events = op.events & ~(event::retired | event::not_taken | event::streaming);
        if (op.retired) events |= event::retired;
        if (op.condition_failed) events |= event::not_taken;
        if (state_.regs.pstate.sm) events |= event::streaming;
        return events & events_;
    }

    [[nodiscard]] std::uint64_t ticks(TimeStamp kind, std::uint64_t cycle) const {
        std::uint64_t physical = choices_.counter_first;
        if (counter_) {
            physical = *counter_;
        } else {
            const std::uint64_t whole = cycle / choices_.counter_denominator,
                                rest = cycle % choices_.counter_denominator;
            physical +=
                whole * choices_.counter_numerator + rest * choices_.counter_numerator / choices_.counter_denominator;
        }
        if (kind == TimeStamp::Virtual) return physical - virtual_offset_;
        return kind == TimeStamp::OffsetPhysical ? physical - physical_offset_ : physical;
    }

    // ---- from the end of the operation to memory

    void complete_until(std::uint64_t cycle) {
        while (!in_flight_.empty()) {
            const auto first = std::min_element(in_flight_.begin(), in_flight_.end(),
                                                [](const Sample& a, const Sample& b) { return a.end < b.end; });
            if (first->end > cycle) return;
            Sample sample = std::move(*first);
            in_flight_.erase(first);
            complete(std::move(sample));
        }
    }

    /// 3.11, SPECompleteSample.
    void complete(Sample&& sample) {
        if (sample.timestamp_at_end) sample.record.timestamp = ticks(*sample.timestamp_at_end, sample.end);
        ++counts_.pmu.sample_feed;
        ++state_.choices.seed;  // a choice that is drawn is drawn for each sample
        count_feeds(sample);
        if (!passes(sample)) return end(sample, Fate::filtered);
        ++counts_.pmu.sample_filtrate;
        if (discard_mode()) return end(sample, Fate::discarded);
        FormattedRecord record = format_record(sample.record, format_);
        WM_CHECK(record.bytes.size() <= longest_);
        queue_.push_back({std::move(sample), std::move(record)});
        initiate_all_but(choices_.queued_records);
    }

    [[nodiscard]] bool passes(const Sample& s) const {
        return passes_filters(state_, s.record.events, s.record.total_latency, s.optype, s.details);
    }
    /// What one filter alone says of a sample, on or not.
    [[nodiscard]] bool passes_alone(const Sample& s, bool PmsfcrEl1::*filter) {
        PmsfcrEl1& control = state_.regs.pmsfcr_el1;
        const PmsfcrEl1 before = control;
        control.fe = control.ft = control.fl = control.fn_e = control.fds = false;
        control.*filter = true;
        const bool passed = passes(s);
        control = before;
        return passed;
    }

    void count_feeds(const Sample& s) {
        const Architecture& arch = state_.arch;
        if (arch.version < Version::v1_2) return;
        PmuCounts& pmu = counts_.pmu;
        pmu.sample_feed_br += s.optype == OpType::Branch;
        pmu.sample_feed_ld += s.optype == OpType::Load || s.optype == OpType::LoadAtomic || s.details.loads;
        pmu.sample_feed_st += s.optype == OpType::Store || s.optype == OpType::LoadAtomic || s.details.stores;
        pmu.sample_feed_op += passes_alone(s, &PmsfcrEl1::ft);
        pmu.sample_feed_event += passes_alone(s, &PmsfcrEl1::fe);
        pmu.sample_feed_lat += passes_alone(s, &PmsfcrEl1::fl);
        if (arch.eft) {
            pmu.sample_feed_fp += s.details.fp;
            pmu.sample_feed_simd += s.details.simd || s.optype == OpType::OtherSVE || s.optype == OpType::OtherSME;
        }
        if (arch.fds) pmu.sample_feed_ds += s.details.data_source && passes_alone(s, &PmsfcrEl1::fds);
    }

    void initiate_all_but(std::size_t left) {
        while (queue_.size() > left) {
            Formatted next = std::move(queue_.front());
            queue_.pop_front();
            initiate(std::move(next));
        }
    }

    /// 3.11, SPEWriteToBuffer: the addresses are translated, the pointer moves, and the bytes are on their way.
    void initiate(Formatted&& next) {
        Registers& r = state_.regs;
        if (buffer_full(r)) {  // software left no room in the first place
            end(next.sample, Fate::lost);
            return stop_full();
        }
        const std::uint64_t at = r.pmbptr_el1.ptr, bytes = next.record.bytes.size();
        WriteFault fault;
        const std::uint64_t good = std::min(memory_.writable({at}, bytes, fault), bytes);
        put({at}, Bytes(next.record.bytes).first(good));
        if (good == bytes) {
            r.pmbptr_el1.ptr += bytes;
            next.sample.record.first = {at + next.record.lead_bytes};
            next.sample.record.bytes = next.record.record_bytes;
            end(next.sample, Fate::written);
        } else if (fault.kind == WriteFault::Kind::external_abort && !reported()) {
            if (r.pmbidr_el1.ea != 1) ++counts_.serrors;
            r.pmbptr_el1.ptr += bytes;
            end(next.sample, Fate::torn);
        } else {
            r.pmbptr_el1.ptr += good;
            end(next.sample, good != 0 ? Fate::torn : Fate::lost);
            return stop_fault(fault, good != 0);
        }
        if (buffer_full(r)) stop_full();
    }

    /// PMBSR_EL1 reports external aborts (PMBIDR_EL1.EA).
    [[nodiscard]] bool reported() const { return state_.regs.pmbidr_el1.ea == 0 && !choices_.external_abort_serror; }

    void put(Address at, Bytes bytes) {
        if (bytes.empty()) return;
        counts_.bytes += bytes.size();
        if (!choices_.writes_wait) return memory_.write(at, bytes);
        waiting_.push_back({at, {bytes.begin(), bytes.end()}});
        if (waiting_.size() <= most_waiting_writes) return;
        memory_.write(waiting_.front().at, waiting_.front().bytes);
        waiting_.pop_front();
    }

    void stop_full() {
        ++counts_.pmu.sample_buffer_full;
        PmbsrFields& s = status(false);
        s.s = true;
        s.ec = 0;
        s.mss = 0x0001;
        s.mss2 = 0;
        stop();
    }

    void stop_fault(const WriteFault& fault, bool partial) {
        using Kind = WriteFault::Kind;
        ++counts_.fault_events;
        const bool stage2 = fault.kind == Kind::stage2, granule = fault.kind == Kind::granule_protection;
        PmbsrFields& s = status(stage2);
        s.s = true;
        s.ec = granule ? 0x1e : stage2 ? 0x25 : 0x24;
        s.mss = granule ? 0 : fault.status & 0x3fU;
        s.mss2 = fault.mss2 & 0xff'ffffU;
        s.ea = fault.kind == Kind::external_abort;
        s.dl = partial;
        stop();
    }

    void stop() {
        discard();
        refresh();
    }

    /// What is not yet on its way to memory never gets there (1.6).
    void discard() {
        for (const Formatted& formatted : queue_) end(formatted.sample, Fate::lost);
        for (const Sample& sample : in_flight_) end(sample, Fate::lost);
        queue_.clear();
        in_flight_.clear();
    }

    void end(const Sample& sample, Fate fate) {
        if (witness_ == nullptr) {
            ++counts_.fates[static_cast<std::size_t>(fate)];
            return;
        }
        SampleFate reported = sample.fate;
        reported.fate = fate;
        reported.record = sample.record;
        report(reported);
    }
    void report(const SampleFate& sample) {
        ++counts_.fates[static_cast<std::size_t>(sample.fate)];
        if (witness_ != nullptr) witness_->sampled(sample);
    }

    /// When what is in flight completes, the buffer may fill or a write fault: then time matters.
    [[nodiscard]] bool may_stop() const {
        if (in_flight_.empty() || discard_mode()) return false;  // what is formatted waits for the next to complete
        const std::uint64_t bytes = pending() * longest_;
        Registers ahead = state_.regs;
        ahead.pmbptr_el1.ptr += bytes;
        WriteFault fault;
        return buffer_full(ahead) || memory_.writable({state_.regs.pmbptr_el1.ptr}, bytes, fault) < bytes;
    }

    State state_;
    ModelChoices choices_;
    ProfilingMemory& memory_;
    SampleWitness* witness_;
    RecordFormat format_;
    std::uint64_t events_;  // those that are recorded
    std::uint32_t longest_;
    Interval interval_;
    Source copies_;
    Implemented implemented_;

    bool enabled_ = false;
    std::uint64_t now_ = 0;
    std::vector<Sample> in_flight_;
    std::deque<Formatted> queue_;
    std::deque<Write> waiting_;  // initiated
    std::optional<std::uint64_t> previous_target_;
    std::uint32_t context_el1_ = 0, context_el2_ = 0;
    std::optional<std::uint64_t> counter_;
    std::uint64_t virtual_offset_ = 0, physical_offset_ = 0;
    ModelCounts counts_;
};

// ---- the interface

Model::Model(const ModelConfig& config, ProfilingMemory& memory, SampleWitness* witness) {
    WM_CHECK(config.check());
    unit_ = std::make_unique<Unit>(config, memory, witness);
}
Model::~Model() = default;

Model::Unit& Model::settled() const {
    if (skipped_ != 0) unit_->skip(std::exchange(skipped_, 0));
    return *unit_;
}
void Model::look_ahead() const {
    left_ = settled().skippable();
    looked_ = true;
}
void Model::skip_too_far() {
    constexpr bool within_until_next = false;
    WM_CHECK(within_until_next);
    std::abort();
}

void Model::retire(const Executed& operation) {
    settled().retire(operation);
    looked_ = false;
}
void Model::skipped_branch(const BranchTarget& target) { settled().taken(target); }
void Model::advance(std::uint64_t cycle) { begin_change(cycle); }

void Model::begin_change(std::uint64_t cycle) {
    settled().advance(cycle);
    looked_ = false;
}
State& Model::mutable_state() { return unit_->state(); }
void Model::end_change() { unit_->end_change(); }

void Model::set_exception_level(std::uint64_t cycle, std::uint8_t el) {
    change(cycle, [&](State& s) { s.regs.pstate.el = el; });
}
void Model::set_context(std::uint32_t context_el1, std::uint32_t context_el2) {
    settled().set_context(context_el1, context_el2);
}
void Model::set_counter(std::uint64_t ticks) { settled().set_counter(ticks); }
void Model::set_counter_offsets(std::uint64_t virtual_offset, std::uint64_t physical_offset) {
    settled().set_counter_offsets(virtual_offset, physical_offset);
}

void Model::psb_csync() {
    settled().psb_csync();
    looked_ = false;
}
void Model::dsb() { settled().dsb(); }
void Model::drain(std::uint64_t cycle) {
    change(cycle, [](State& s) {
        s.regs.pmscr_el1 = {};
        s.regs.pmscr_el2 = {};
    });
    psb_csync();
    dsb();
    change(cycle, [](State& s) { s.regs.pmblimitr_el1.e = false; });
}

const State& Model::state() const { return settled().state(); }
bool Model::enabled() const { return unit_->enabled(); }
bool Model::pmbirq() const { return unit_->pmbirq(); }
std::optional<std::uint8_t> Model::profiling_exception() const { return unit_->profiling_exception(); }
bool Model::pmu_frozen() const { return unit_->pmu_frozen(unit_->state().regs.pmcr_el0.fzs); }
bool Model::pmu_frozen_el2() const { return unit_->pmu_frozen(unit_->state().regs.mdcr_el2.hpmfzs); }
const ModelCounts& Model::counts() const { return settled().counts(); }
std::uint64_t Model::pending() const { return unit_->pending(); }

std::string_view name(Fate fate) {
    constexpr std::string_view names[] = {"written", "filtered", "collided", "discarded", "lost", "torn"};
    return names[static_cast<unsigned>(fate)];
}

}  // namespace waymark::spe
