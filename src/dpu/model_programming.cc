/// Reads and writes of registers.
#include "model_unit.h"

#include <fmt/format.h>

namespace waymark::dpu {

namespace {

constexpr std::uint32_t routed_causes = 0x7f;  // DRTB and the counters

/// Fields of DP_TC that cannot change while tracing is on (3.4).
void keep_locked(DpTc& next, const DpTc& current) {
    next.tmode = current.tmode;
    next.vtbwm = current.vtbwm;
    next.tids = current.tids;
    next.nxmode = current.nxmode;
}

/// The value of a register without its reserved bits.
template <class Register>
std::uint32_t without_reserved(std::uint32_t value) {
    for (const Field& field : fields_of(from_value<Register>(value)))
        if (field.reserved()) value &= ~(wire::mask_of<32> >> (32 - field.width()) << field.lo);
    return value;
}

}  // namespace

void Model::Unit::apply_writes(const CycleInput& in) {
    if (writes_.empty()) return;
    const std::size_t periods = periods_.size();
    for (const Write& w : writes_) apply(w, in);
    writes_.clear();
    // Values that are written after EN in the same cycle apply from the same place on.
    if (periods_.size() != periods) periods_.back().initial = counters_.values();
    note_filter();
}

void Model::Unit::apply(const Write& w, const CycleInput& in) {
    if (w.offset != DpTd::offset)
        if (std::string wrong = wrong_value(w.offset, w.value); !wrong.empty()) report(w.offset, std::move(wrong));
    if (w.offset == DpTc::offset) return write_trace_control(w.value, in);
    const auto about = Registers::find(w.offset);
    if (!about || about->access == Permission::read_only) return;
    if (w.offset == DpMr::offset) {
        // TBF shows the present state; all other bits are cleared by writing 1.
        registers_.mr = from_value<DpMr>(to_value(registers_.mr) & ~w.value);
        causes_ = (to_value(registers_.mr) & routed_causes) != 0;
        return;
    }
    const bool tcen_a = registers_.tac.tcen, tcen_b = registers_.tbc.tcen;
    std::array<CounterLogic::Control, counter_count> before{};
    for (unsigned i = 0; i < counter_count; ++i) before[i] = counters_.control(i);
    const auto compared = [&] { return std::tuple(registers_.cr.tidcm, registers_.rpid.value, registers_.rdid.value); };
    const auto compared_before = compared();
    Registers::for_each(registers_, [&](auto& r) {
        using Register = std::remove_cvref_t<decltype(r)>;
        if (Register::offset == w.offset) r = from_value<Register>(without_reserved<Register>(w.value));
    });
    counters_.control_written(registers_, w.offset, tcen_a != registers_.tac.tcen || tcen_b != registers_.tbc.tcen);
    // This applies even while tracing is off: the registers then no longer describe what the trace counted.
    const bool has_trace = traced_before() || (!registers_.tc.en && !periods_.empty());
    for (unsigned i = 0; has_trace && i < counter_count; ++i) {
        const CounterLogic::Control &was = before[i], &is = counters_.control(i);
        if (was.event != is.event || was.count_in != is.count_in || was.wraps != is.wraps ||
            (is.count_in != Qualifier::any && compared() != compared_before))
            history_.changed |= static_cast<std::uint8_t>(1U << i);
    }

    constexpr std::uint32_t values[] = {DpCa0v::offset, DpCa1v::offset, DpCa2v::offset,
                                        DpCb0v::offset, DpCb1v::offset, DpCb2v::offset};
    for (unsigned i = 0; i < counter_count; ++i) {
        if (values[i] != w.offset) continue;
        if (registers_.tc.en && (counters_.enabled() >> i & 1U) != 0)
            report(w.offset, fmt::format("counter {} is counting and traced; differences across this write mean "
                                         "nothing. Disable it, or write EN = 0, before its value is written",
                                         counter_name(i)));
        if (traced_before()) history_.rewritten |= static_cast<std::uint8_t>(1U << i);
        counters_.set_value(i, w.value);
    }
    if (w.offset == DpTd::offset) {
        const DpTc& tc = registers_.tc;
        const bool wanted =
            tc.tmode < trace_modes && (tc.mode() == TraceMode::user || tc.mode() == TraceMode::user_raw || tc.uden);
        if (wanted && phase_ == Phase::run) user_data_.push_back(w.value);
    }
    const bool moves = w.offset == DpTsa::offset || w.offset == DpTea::offset || w.offset == DpTw::offset;
    if (moves && registers_.tc.en && registers_.tc.vtb_mode() != VtbMode::single_address &&
        (registers_.tw.value < registers_.tsa.value || registers_.tw.value > registers_.tea.value))
        report(w.offset,
               fmt::format("with tracing on, DP_TW {:#x} now lies outside the trace buffer of {:#x} to {:#x}; "
                           "write EN = 0 before the buffer is moved",
                           to_value(registers_.tw), to_value(registers_.tsa), to_value(registers_.tea)));
}

void Model::Unit::write_trace_control(std::uint32_t value, const CycleInput& in) {
    const DpTc old = registers_.tc;
    DpTc next = from_value<DpTc>(without_reserved<DpTc>(value));
    if (old.en) {
        DpTc kept = next;
        keep_locked(kept, old);
        // A write that turns tracing off with 0 in all other fields does not request a new mode.
        const bool plain_off = !next.en && next.tmode == 0 && next.vtbwm == 0 && !next.tids && next.nxmode == 0;
        if (kept != next && !plain_off)
            report(DpTc::offset,
                   "TMODE, VTBWM, TIDS and NXMODE cannot change while EN is 1; write EN = 0 first, then the new mode");
        next = kept;
    }
    if (next.idflt != old.idflt && compressor_.pending()) flush_compressor();
    const bool wants_sample = std::exchange(next.sample, false);

    if (!old.en && next.en) {
        registers_.tc = next;
        if (phase_ == Phase::close) {
            report(DpTc::offset, "tracing is still being closed; wait for DP_SR.TWBA = 0 before EN is written 1 again");
            next.en = false;
        } else if (!can_trace()) {
            next.en = false;
        } else {
            phase_ = Phase::run;
            lost_ = 0;
            hold_due_ = false;
            compressor_.clear();
            format_ = config_.format(next);
            context_due_ = shows_context();
            last_switch_ = shown_ = shown_as(in.ctx);
            if (next.nexus_mode() != NexusMode::off && next.tmode < trace_modes) {
                const bool raw = next.nexus_mode() == NexusMode::raw;
                const EonceSetup& e = config_.eonce;
                nexus_.open(raw ? TraceMode::eonce_raw : next.mode(),
                            (raw || in_eonce_mode()) && e.tchof && e.tint && e.tloop, config_.choices, in.ctx,
                            counters_.values());
            }
            periods_.push_back({cycle_, to_value(registers_.tw), to_value(next), in.ctx, counters_.values(), {}, {}});
            if (next.tmode < trace_modes)
                if (std::string missing = config_.eonce.missing(next.mode()); !missing.empty())
                    report(DpTc::offset, std::move(missing));
        }
    } else if (old.en && !next.en) {
        periods_.back().final = counters_.values();
        periods_.back().end = cycle_;
        history_.partial |= not_counting();
        phase_ = phase_ == Phase::held ? Phase::off : Phase::close;
        if (phase_ == Phase::off) nexus_.close();
        flushed_ = false;
    }
    if (phase_ == Phase::run && next.tmpdis) {
        phase_ = Phase::flush;
        flushed_ = false;
        // No entry is made from here on, so the place gets a mark.
        hold_due_ = next.nexus_mode() != NexusMode::only;
        // Even if no pad marks the place, a context entry is due.
        if (!hold_due_) context_due_ = shows_context();
    } else if (phase_ == Phase::held && !next.tmpdis) {
        resume();
    }
    registers_.tc = next;
    if (wants_sample) {
        if (honours_sample(next))
            sample_queued_ = true;
        else
            report(DpTc::offset, "SAMPLE does nothing now: it needs EN = 1, TMPDIS = 0 and a TMODE other than USERRAW");
    }
}

/// Notes changes of IDFLT and of its comparison values while tracing is on.
void Model::Unit::note_filter() {
    if (!registers_.tc.en) return;
    const FilterChange now{counts_.words,
                           registers_.tc.idflt,
                           registers_.tc.tids,
                           registers_.cr.tidcm,
                           static_cast<std::uint8_t>(registers_.rpid.value),
                           static_cast<std::uint8_t>(registers_.rdid.value),
                           nexus_.accepted()};
    if (!filters_.empty() && filters_.back().same(now)) return;
    filters_.push_back(now);
}

/// 3.4: whether EN may be set.
bool Model::Unit::can_trace() {
    if (registers_.tc.vtb_mode() == VtbMode::single_address) return true;
    const std::uint32_t first = to_value(registers_.tsa), last = to_value(registers_.tea), at = to_value(registers_.tw);
    if (last < first) {
        report(DpTc::offset,
               fmt::format("EN stays 0: the trace buffer ends at DP_TEA {:#x}, before it begins at DP_TSA "
                           "{:#x}; write the addresses of its last and first line",
                           last, first));
        return false;
    }
    if (at < first || at > last) {
        report(DpTc::offset,
               fmt::format("EN stays 0: DP_TW {:#x} lies outside the trace buffer of {:#x} to {:#x}; write "
                           "DP_TSA's value to DP_TW",
                           at, first, last));
        return false;
    }
    return true;
}

// ---- reading

Registers Model::Unit::registers() const {
    Registers r = registers_;
    const std::uint8_t on = counters_.enabled();
    r.sr = from_value<DpSr>(on);
    r.sr.twba = holds_data();
    r.mr.tbf = buffer_.full();
    r.tc.sample = sample_queued_;
    r.ca0v.value = counters_.value(0);
    r.ca1v.value = counters_.value(1);
    r.ca2v.value = counters_.value(2);
    r.cb0v.value = counters_.value(3);
    r.cb1v.value = counters_.value(4);
    r.cb2v.value = counters_.value(5);
    return r;
}

std::uint32_t Model::Unit::read(std::uint32_t offset) const {
    if (!powered_) return 0;
    Registers r = registers();
    for (const Write& w : writes_) {
        const auto about = Registers::find(w.offset);
        if (w.offset != offset || !about || about->access != Permission::read_write) continue;
        if (offset == DpTc::offset) {
            // EN and TMPDIS have effects beyond their values.
            DpTc next = from_value<DpTc>(without_reserved<DpTc>(w.value));
            if (r.tc.en) keep_locked(next, r.tc);
            next.en = r.tc.en;
            next.tmpdis = r.tc.tmpdis;
            next.sample = r.tc.sample || (next.sample && honours_sample(r.tc));
            r.tc = next;
            continue;
        }
        Registers::for_each(r, [&](auto& reg) {
            using Register = std::remove_cvref_t<decltype(reg)>;
            if (Register::offset == offset) reg = from_value<Register>(without_reserved<Register>(w.value));
        });
    }
    return r.get(offset).value_or(0);
}

Status Model::Unit::set_eonce(const EonceSetup& eonce) {
    if (phase_ != Phase::off)
        return Error{Errc::usage,
                     "the EOnCE is programmed while the unit traces; write EN = 0 and wait for DP_SR.TWBA = 0 first",
                     {}};
    ModelConfig next = config_;
    next.eonce = eonce;
    WM_RETURN_IF_ERROR(next.check());
    config_ = next;
    return Nothing{};
}

}  // namespace waymark::dpu
