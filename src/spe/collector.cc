#include "collector.h"

#include <algorithm>

#include "sample_format.h"

namespace waymark::spe {
namespace {

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

}  // namespace

SampleCollector::SampleCollector(const State& state, const ModelChoices& choices)
    : state_(state), choices_(choices), events_(RecordFormat::events(choices, state.arch)), copies_(~choices.seed) {}

void SampleCollector::taken(const BranchTarget& target, bool enabled) {
    if (!state_.regs.pmsidr_el1.pbt) return;
    previous_target_.reset();
    if (enabled) previous_target_ = target_payload(target);
}

PendingSample SampleCollector::begin(const Executed& op, std::uint64_t member) {
    PendingSample sample;
    sample.fate = {member, op, {}, {}};
    Executed& executed = sample.fate.operation;
    choose_access(executed);
    sample.end = op.cycle + op.total_latency;
    sample.optype = filter_type(executed.operation);
    sample.details = details(executed, sample.optype);
    fill(sample, executed);
    return sample;
}

void SampleCollector::choose_access(Executed& op) {
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

SampleDetails SampleCollector::details(const Executed& op, OpType optype) const {
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

bool SampleCollector::has_source(const Executed& op, OpType optype) const {
    return state_.regs.pmsidr_el1.lds && op.data_source && (optype == OpType::Load || optype == OpType::LoadAtomic);
}

std::uint64_t SampleCollector::target_payload(const BranchTarget& target) const {
    return program_payload(target.address, target.exception_level.value_or(state_.regs.pstate.el),
                           target.security.value_or(CurrentSecurityState(state_)));
}

void SampleCollector::fill(PendingSample& sample, const Executed& op) {
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

void SampleCollector::fill_access(PendingSample& sample, const Executed& op, std::uint16_t translation) {
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

bool SampleCollector::enabled_at_el2() const {
    State at_el2 = state_;
    at_el2.regs.pstate.el = EL2;
    return HaveEL(state_, EL2) && StatisticalProfilingEnabled(at_el2);
}

std::uint64_t SampleCollector::events_of(const Executed& op) const {
    std::uint64_t events = op.events & ~(event::retired | event::not_taken | event::streaming);
    if (op.retired) events |= event::retired;
    if (op.condition_failed) events |= event::not_taken;
    if (state_.regs.pstate.sm) events |= event::streaming;
    return events & events_;
}

std::uint64_t SampleCollector::ticks(TimeStamp kind, std::uint64_t cycle) const {
    std::uint64_t physical = choices_.counter_first;
    if (counter_) {
        physical = *counter_;
    } else {
        const std::uint64_t whole = cycle / choices_.counter_denominator, rest = cycle % choices_.counter_denominator;
        physical +=
            whole * choices_.counter_numerator + rest * choices_.counter_numerator / choices_.counter_denominator;
    }
    if (kind == TimeStamp::Virtual) return physical - virtual_offset_;
    return kind == TimeStamp::OffsetPhysical ? physical - physical_offset_ : physical;
}

}  // namespace waymark::spe
