#include "waymark/spe/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>

#include "collector.h"
#include "interval.h"
#include "management_events.h"
#include "sample_format.h"
#include "waymark/spe/sampling.h"

namespace waymark::spe {

namespace {

constexpr std::size_t most_waiting_writes = 256;  // ModelChoices::writes_wait

}  // namespace

class Model::Unit {
public:
    Unit(const ModelConfig& config, ProfilingMemory& memory, SampleWitness* witness)
        : state_(config.state),
          choices_(config.choices),
          memory_(memory),
          witness_(witness),
          format_(RecordFormat::of(choices_, state_.arch, state_.regs.pmbidr_el1.align)),
          events_(state_),
          collector_(state_, choices_),
          longest_(config.longest_record_bytes()),
          interval_(choices_.seed, choices_.zero_interval),
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

    void taken(const BranchTarget& target) { collector_.taken(target, enabled_); }

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
        if (!state_.regs.pmblimitr_el1.e || events_.stopped()) discard();
        refresh();
    }

    [[nodiscard]] SampleCollector& collector() { return collector_; }

    void psb_csync() {
        complete_until(std::numeric_limits<std::uint64_t>::max());
        initiate_all_but(0);
    }

    void dsb() {
        for (const Write& write : waiting_) memory_.write(write.at, write.bytes);
        waiting_.clear();
    }

    // ---- reading

    [[nodiscard]] const ManagementEvents& events() const { return events_; }
    [[nodiscard]] const State& state() const { return state_; }
    [[nodiscard]] bool enabled() const { return enabled_; }
    [[nodiscard]] const ModelCounts& counts() const { return counts_; }
    [[nodiscard]] std::uint64_t pending() const { return in_flight_.size() + queue_.size(); }

private:
    struct Implemented {
        Architecture arch;
        PmsidrEl1 pmsidr;
        PmbidrEl1 pmbidr;
    };
    struct Formatted {
        PendingSample sample;
        FormattedRecord record;
    };
    struct Write {
        Address at;
        std::vector<std::uint8_t> bytes;
    };

    [[nodiscard]] bool discard_mode() const {
        return state_.arch.version >= Version::v1_2 && state_.regs.pmblimitr_el1.fm == 0b10;
    }
    void refresh() { enabled_ = StatisticalProfilingEnabled(state_); }

    // ---- a sample

    void choose(const Executed& op) {
        ++counts_.chosen;
        if (in_flight_.size() >= choices_.in_flight) {
            ++counts_.pmu.sample_collision;
            events_.collision();
            report({counts_.pmu.sample_pop, op, Fate::collided, {}});
            return;
        }
        in_flight_.push_back(collector_.begin(op, counts_.pmu.sample_pop));
    }

    // ---- from the end of the operation to memory

    void complete_until(std::uint64_t cycle) {
        while (!in_flight_.empty()) {
            const auto first =
                std::min_element(in_flight_.begin(), in_flight_.end(),
                                 [](const PendingSample& a, const PendingSample& b) { return a.end < b.end; });
            if (first->end > cycle) return;
            PendingSample sample = std::move(*first);
            in_flight_.erase(first);
            complete(std::move(sample));
        }
    }

    /// 3.11, SPECompleteSample.
    void complete(PendingSample&& sample) {
        collector_.complete(sample);
        ++counts_.pmu.sample_feed;
        ++state_.choices.seed;  // a random choice is drawn again for each sample
        count_feeds(sample);
        if (!passes(sample)) return end(sample, Fate::filtered);
        ++counts_.pmu.sample_filtrate;
        if (discard_mode()) return end(sample, Fate::discarded);
        FormattedRecord record = format_record(sample.record, format_);
        WM_CHECK(record.bytes.size() <= longest_);
        queue_.push_back({std::move(sample), std::move(record)});
        initiate_all_but(choices_.queued_records);
    }

    [[nodiscard]] bool passes(const PendingSample& s) const {
        return passes_filters(state_, s.record.events, s.record.total_latency, s.optype, s.details);
    }
    /// Whether a single filter passes a sample, even if the filter is not enabled.
    [[nodiscard]] bool passes_alone(const PendingSample& s, bool PmsfcrEl1::*filter) {
        PmsfcrEl1& control = state_.regs.pmsfcr_el1;
        const PmsfcrEl1 before = control;
        control.fe = control.ft = control.fl = control.fn_e = control.fds = false;
        control.*filter = true;
        const bool passed = passes(s);
        control = before;
        return passed;
    }

    void count_feeds(const PendingSample& s) {
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

    /// 3.11, SPEWriteToBuffer: the addresses are translated, the pointer advances, and the bytes are written.
    void initiate(Formatted&& next) {
        Registers& r = state_.regs;
        if (buffer_full(r)) {  // software left no room
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

    /// Whether PMBSR_EL1 reports external aborts (PMBIDR_EL1.EA).
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
        events_.full();
        stop();
    }

    void stop_fault(const WriteFault& fault, bool partial) {
        ++counts_.fault_events;
        events_.fault(fault, partial);
        stop();
    }

    void stop() {
        discard();
        refresh();
    }

    /// Samples that are not yet being written are discarded (1.6).
    void discard() {
        for (const Formatted& formatted : queue_) end(formatted.sample, Fate::lost);
        for (const PendingSample& sample : in_flight_) end(sample, Fate::lost);
        queue_.clear();
        in_flight_.clear();
    }

    void end(const PendingSample& sample, Fate fate) {
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

    /// Whether, when samples in flight complete, the buffer may fill or a write may fault: then the time matters.
    [[nodiscard]] bool may_stop() const {
        if (in_flight_.empty() || discard_mode()) return false;  // a formatted sample waits for the next to complete
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
    ManagementEvents events_;
    SampleCollector collector_;
    std::uint32_t longest_;
    IntervalCounter interval_;
    Implemented implemented_;

    bool enabled_ = false;
    std::uint64_t now_ = 0;
    std::vector<PendingSample> in_flight_;
    std::deque<Formatted> queue_;
    std::deque<Write> waiting_;  // initiated
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
    settled().collector().set_context(context_el1, context_el2);
}
void Model::set_counter(std::uint64_t ticks) { settled().collector().set_counter(ticks); }
void Model::set_counter_offsets(std::uint64_t virtual_offset, std::uint64_t physical_offset) {
    settled().collector().set_counter_offsets(virtual_offset, physical_offset);
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
bool Model::pmbirq() const { return unit_->events().pmbirq(); }
std::optional<std::uint8_t> Model::profiling_exception() const { return unit_->events().profiling_exception(); }
bool Model::pmu_frozen() const { return unit_->events().pmu_frozen(unit_->state().regs.pmcr_el0.fzs); }
bool Model::pmu_frozen_el2() const { return unit_->events().pmu_frozen(unit_->state().regs.mdcr_el2.hpmfzs); }
const ModelCounts& Model::counts() const { return settled().counts(); }
std::uint64_t Model::pending() const { return unit_->pending(); }

std::string_view name(Fate fate) {
    constexpr std::string_view names[] = {"written", "filtered", "collided", "discarded", "lost", "torn"};
    return names[static_cast<unsigned>(fate)];
}

}  // namespace waymark::spe
