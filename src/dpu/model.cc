#include "waymark/dpu/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>
#include <utility>

#include "compressor.h"
#include "counter_logic.h"
#include "nexus_port.h"
#include "trace_buffer.h"
#include "waymark/dpu/encoder.h"
#include "waymark/dpu/packet.h"
#include "waymark/dpu/vtb.h"

namespace waymark::dpu {

namespace {

constexpr std::uint32_t routed_causes = 0x7f;  // DRTB and the counters
constexpr std::uint8_t all_counters = (1U << counter_count) - 1;

/// Counter actions of DP_CR, A0 first.
Action counter_action(const DpCr& cr, unsigned i) {
    const std::uint8_t codes[] = {cr.deca0, cr.deca1, cr.deca2, cr.decb0, cr.decb1, cr.decb2};
    return static_cast<Action>(codes[i]);
}

/// ISEDCAn and EIS: bit 0 line 0, bit 1 line 1.
std::uint8_t channel_lines(const DpCr& cr, unsigned channel) {
    const std::uint8_t codes[] = {cr.isedca0, cr.isedca1, cr.isedca2, cr.isedca3, cr.isedca4, cr.isedca5};
    return codes[channel % 6];
}

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

// ---- what feeds the unit

EonceSetup EonceSetup::for_mode(TraceMode mode) {
    EonceSetup e;
    switch (mode) {
        case TraceMode::eonce_raw:
        case TraceMode::eonce_comp: e.tchof = e.tint = e.tloop = true; break;
        case TraceMode::task: e.tint = e.trte = true; break;
        case TraceMode::flow: e.tint = e.trte = e.tsub = true; break;
        case TraceMode::sw_sample:
        case TraceMode::edca5:
        case TraceMode::user:
        case TraceMode::user_raw: break;
    }
    return e;
}

std::string EonceSetup::missing(TraceMode mode) const {
    const bool interrupts = passes(ItemKind::interrupt) && passes(ItemKind::rte);
    if (mode == TraceMode::task && !interrupts)
        return "TMODE TASK traces interrupts and their returns; turn TINT and TRTE of the EOnCE on";
    if (mode == TraceMode::flow && !(interrupts && passes(ItemKind::call)))
        return "TMODE FLOW traces interrupts, calls and returns; turn TINT, TRTE and TSUB of the EOnCE on";
    return {};
}

Status ModelConfig::check() const {
    if (dpu_base % flag_page_bytes != 0)
        return Error{Errc::unsupported,
                     fmt::format("the base address {:#x} of the unit is not a multiple of {}: flags derive from it",
                                 dpu_base, flag_page_bytes),
                     {}};
    if (choices.bus_cycles_per_line == 0)
        return Error{Errc::unsupported, "bus_cycles_per_line is 0; a line takes one cycle at least", {}};
    if ((eonce.texec || eonce.tmark) && eonce.counters() != 0)
        return Error{Errc::unsupported,
                     "TEXEC and TMARK of the EOnCE cannot be combined with TCOUNT or TCNTEXT; turn one of them off",
                     {}};
    return Nothing{};
}

// ---- the unit

class Model::Unit {
public:
    explicit Unit(const ModelConfig& config) : config_(config) { WM_CHECK(config.check().has_value()); }

    void write(std::uint32_t offset, std::uint32_t value) { writes_.push_back({offset, value}); }
    [[nodiscard]] std::uint32_t read(std::uint32_t offset) const;

    const CycleOutput& step(const CycleInput& in) {
        if (plain_ && !dirty_output_ && in.items.empty() && writes_.empty() && in.ctx == last_context_ && in.dpue &&
            !in.eonce_irq && !in.debug_ext && !in.debug_nexus) [[likely]]
            count_plain(in);
        else
            whole_cycle(in);
        return output_;
    }
    const CycleOutput* run(const CycleInput& in, std::uint64_t cycles);

    Status set_eonce(const EonceSetup& eonce);
    void set_arbiter(ModelChoices::Grant high, ModelChoices::Grant low) {
        config_.choices.high = high;
        config_.choices.low = low;
        plain_ = false;
    }
    void capture(std::uint8_t mask) {
        for (unsigned i = 0; i < counter_count; ++i)
            if ((mask >> i & 1U) != 0) shadow_[i] = counters_.value(i);
    }

    [[nodiscard]] std::uint64_t cycle() const { return cycle_; }
    [[nodiscard]] const Counters& shadow() const { return shadow_; }
    [[nodiscard]] Counters values() const { return counters_.values(); }
    [[nodiscard]] Registers registers() const;
    [[nodiscard]] bool idle() const {
        return (phase_ == Phase::off || phase_ == Phase::held) && !holds_data() && nexus_.drained();
    }
    [[nodiscard]] const ModelCounts& counts() const { return counts_; }
    [[nodiscard]] const std::vector<TracePeriod>& periods() const { return periods_; }
    [[nodiscard]] const std::vector<FilterChange>& filters() const { return filters_; }
    [[nodiscard]] CounterHistory counter_history() const {
        CounterHistory out = history_;
        if (registers_.tc.en) out.partial |= not_counting();
        return out;
    }
    [[nodiscard]] const ModelConfig& config() const { return config_; }

private:
    /// 5.10.
    enum class Phase : std::uint8_t { off, run, flush, held, close };

    struct Write {
        std::uint32_t offset, value;
    };

    // A cycle (4.2).
    void whole_cycle(const CycleInput& in);
    bool power(const CycleInput& in) { return in.dpue && was_powered_ ? true : power_changed(in); }
    bool power_changed(const CycleInput& in);
    void begin_output();
    void apply_writes(const CycleInput& in);
    void apply(const Write& write, const CycleInput& in);
    void write_trace_control(std::uint32_t value, const CycleInput& in);
    bool can_trace();
    void note_filter();
    [[nodiscard]] std::uint8_t not_counting() const {
        return static_cast<std::uint8_t>(~counters_.enabled() & all_counters);
    }
    /// Tracing is on, and not since this cycle alone.
    [[nodiscard]] bool traced_before() const { return registers_.tc.en && periods_.back().cycle != cycle_; }
    void occurrences(const CycleInput& in);
    void count(const CycleInput& in);
    void counter_event(unsigned i);
    void entries(const CycleInput& in);
    void bus(bool others);
    void advance_phase();
    void resume() {
        phase_ = Phase::run;
        nexus_.resume();
    }
    void outputs(const CycleInput& in);
    void find_plain(const CycleInput& in);
    void plan();
    void count_plain(const CycleInput& in);

    // Context.
    [[nodiscard]] bool id_match(const CoreContext& context) const {
        const bool pid = context.pid == registers_.rpid.value, did = context.did == registers_.rdid.value;
        switch (static_cast<IdCompare>(registers_.cr.tidcm)) {
            case IdCompare::neither: return true;
            case IdCompare::program: return pid;
            case IdCompare::data: return did;
            case IdCompare::both: return pid && did;
        }
        return true;
    }
    [[nodiscard]] TaskContext shown_as(const CoreContext& context) const {
        return {context.supervisor, registers_.tc.tids ? context.did : context.pid};
    }

    // Trace information logic and switches (5.2, 5.3).
    void trace_item(const EonceItem& item);
    void nexus_item(const EonceItem& item);
    void trace_raw(const EonceItem& item);
    void compress(const EonceItem& item);
    void flush_compressor();
    void context_entry_if_due();
    [[nodiscard]] bool in_eonce_mode() const {
        return registers_.tc.mode() == TraceMode::eonce_raw || registers_.tc.mode() == TraceMode::eonce_comp;
    }
    /// Context entries are written where tracing begins and after a gap.
    [[nodiscard]] bool shows_context() const {
        const DpTc& tc = registers_.tc;
        return in_eonce_mode() || (tc.ctxen && tc.tmode < trace_modes && tc.mode() != TraceMode::user_raw);
    }
    [[nodiscard]] bool honours_sample(const DpTc& tc) const {
        return phase_ == Phase::run && !tc.tmpdis && tc.tmode < trace_modes && tc.mode() != TraceMode::user_raw;
    }
    bool refused(std::uint32_t pc, std::string_view what);
    template <class Make>
    void sample(const CoreContext& context, std::optional<ItemKind> kind, Make&& make);

    // Trace write management (5.5, 5.6).
    /// `context`: in force after the entry. `kind`: of the item it describes, for pairs.
    template <class E>
    bool emit(const E& entry, const CoreContext& context, std::optional<ItemKind> kind = {});
    void mirror(const Entry& entry, const CoreContext& context, std::optional<ItemKind> kind = {});
    void lose();
    void closing();
    bool make_room(std::size_t words);
    void grant(unsigned lines);
    [[nodiscard]] unsigned lines_in_a_burst() const;
    [[nodiscard]] TraceWriteBuffer::Request request() const {
        return buffer_.request(registers_.tc.burst_lines(), flushing());
    }
    [[nodiscard]] bool granted(TraceWriteBuffer::Request request, bool others) const {
        const auto rule = request == TraceWriteBuffer::Request::high ? config_.choices.high : config_.choices.low;
        return rule == ModelChoices::Grant::always || (rule == ModelChoices::Grant::when_idle && !others);
    }
    [[nodiscard]] bool gap_waits() const { return lost_ != 0 && format_.mode != TraceMode::user_raw; }
    [[nodiscard]] bool flushing() const { return phase_ == Phase::flush || phase_ == Phase::close; }
    [[nodiscard]] bool holds_data() const { return buffer_.held() != 0 || cycle_ < bus_free_at_; }
    void line_written(std::uint32_t address);

    void report(std::uint32_t offset, std::string message) {
        output_.errors.push_back({cycle_, offset, std::move(message)});
    }
    [[nodiscard]] std::uint64_t& own(EventWire wire) { return own_[static_cast<std::size_t>(wire)]; }

    ModelConfig config_;
    std::uint64_t cycle_ = 0;
    Registers registers_;
    CounterLogic counters_;
    Counters shadow_{};
    TraceWriteBuffer buffer_;
    Compressor compressor_;
    NexusPort nexus_;
    TraceFormat format_;
    std::vector<Write> writes_;
    CycleOutput output_;
    ModelCounts counts_;
    std::vector<TracePeriod> periods_;
    std::vector<FilterChange> filters_;
    CounterHistory history_;
    std::vector<std::uint32_t> words_;  ///< of the entry being emitted

    bool causes_ = false;  ///< DP_MR has a cause that may hold an interrupt line

    // Power: DPUE falls once.
    bool powered_ = true, was_powered_ = false, dead_ = false;

    // What happened in this cycle.
    std::uint32_t selectors_ = 0;  ///< a bit for each Selector
    std::uint8_t lines_pulsed_ = 0;
    std::array<std::uint64_t, event_wires> own_{};
    std::vector<std::uint32_t> user_data_;
    bool sample_queued_ = false;

    // Context.
    CoreContext last_context_, now_;
    bool seen_a_cycle_ = false, last_match_ = false, match_ = false;

    // Trace.
    Phase phase_ = Phase::off;
    TaskContext shown_, last_switch_;
    bool context_due_ = false;
    bool shown_matches_ = false;  ///< id_match of the context last shown
    bool flushed_ = false;        ///< the compressor, and the gap entry
    bool hold_due_ = false;       ///< tracing is held, and no pad marks the place yet
    std::uint32_t lost_ = 0;      ///< entries since the last gap entry
    std::uint64_t shadow_busy_until_ = 0, bus_free_at_ = 0;
    /// Counted in the next cycle: requests and losses of this one.
    std::uint64_t low_ = 0, high_ = 0, lost_now_ = 0;

    // The quick path: counters that count something while nothing changes.
    struct Planned {
        std::uint8_t counter;
        bool clock;  ///< one a cycle, but in debug state
        EventWire wire;
    };
    std::array<Planned, counter_count> plan_{};
    unsigned plan_size_ = 0;
    bool plain_ = false, planned_ = false, dirty_output_ = false;
};

// ---- one cycle

void Model::Unit::whole_cycle(const CycleInput& in) {
    begin_output();
    if (!power(in)) {
        ++cycle_;
        return;
    }
    ++counts_.cycles;
    counters_.begin_cycle();
    apply_writes(in);  // 1
    match_ = id_match(in.ctx);
    occurrences(in);
    counters_.resolve(selectors_, in.ctx.supervisor, match_);  // 2
    counters_.note_match(match_);
    if (registers_.tc.en) history_.partial |= not_counting();
    count(in);           // 3, 4
    entries(in);         // 5, 6
    bus(in.bus_others);  // 7
    const Phase before = phase_;
    advance_phase();
    nexus_.drain(output_.nexus, 1);
    counts_.nexus_lost = nexus_.lost();
    counts_.nexus_bytes = nexus_.accepted();
    outputs(in);  // 8
    last_context_ = in.ctx;
    last_match_ = match_;
    seen_a_cycle_ = true;
    find_plain(in);
    plain_ = plain_ && phase_ == before;  // what a flush held back may be due
    ++cycle_;
}

void Model::Unit::begin_output() {
    output_.pic = {};
    output_.debug_request = false;
    output_.bursts.clear();
    output_.nexus.clear();
    output_.errors.clear();
    lines_pulsed_ = 0;
}

/// M_CR.DPUE is not as it was, or 0.
bool Model::Unit::power_changed(const CycleInput& in) {
    if (was_powered_ && !in.dpue) {
        dead_ = true;
        if (registers_.tc.en || holds_data())
            report(DpTc::offset,
                   "the unit was disabled with trace data in its buffer, which are lost; write EN = 0 and wait for "
                   "DP_SR.TWBA = 0 before M_CR.DPUE is cleared");
    }
    powered_ = in.dpue && !dead_;
    was_powered_ = powered_;
    if (powered_) return true;
    for (const Write& w : writes_)
        report(w.offset, dead_ ? "the unit was disabled and stays so until a platform reset; the write does nothing"
                               : "the unit is not enabled; set M_CR.DPUE before its registers are written");
    writes_.clear();
    plain_ = false;
    return false;
}

// ---- 1: register writes

void Model::Unit::apply_writes(const CycleInput& in) {
    if (writes_.empty()) return;
    const std::size_t periods = periods_.size();
    for (const Write& w : writes_) apply(w, in);
    writes_.clear();
    // Values written after EN in the same cycle count from there, too.
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
        // TBF is live; all else is cleared by writing 1.
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
    for (unsigned i = 0; traced_before() && i < counter_count; ++i) {
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
        // Turning tracing off with 0 in all of them asks for no new mode.
        const bool plain_off = !next.en && next.tmode == 0 && next.vtbwm == 0 && !next.tids && next.nxmode == 0;
        if (kept != next && !plain_off)
            report(
                DpTc::offset,
                "TMODE, VTBWM, TIDS and NXMODE stay as they are while EN is 1; write EN = 0 first, then the new mode");
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
            periods_.push_back({cycle_, to_value(registers_.tw), to_value(next), in.ctx, counters_.values(), {}});
            if (next.tmode < trace_modes)
                if (std::string missing = config_.eonce.missing(next.mode()); !missing.empty())
                    report(DpTc::offset, std::move(missing));
        }
    } else if (old.en && !next.en) {
        periods_.back().final = counters_.values();
        history_.partial |= not_counting();
        phase_ = phase_ == Phase::held ? Phase::off : Phase::close;
        if (phase_ == Phase::off) nexus_.close();
        flushed_ = false;
    }
    if (phase_ == Phase::run && next.tmpdis) {
        phase_ = Phase::flush;
        flushed_ = false;
        // Nothing from here on has an entry, so the place gets a mark.
        hold_due_ = next.nexus_mode() != NexusMode::only;
    } else if (phase_ == Phase::held && !next.tmpdis) {
        resume();
    }
    registers_.tc = next;
    if (wants_sample) {
        if (honours_sample(next))
            sample_queued_ = true;
        else
            report(DpTc::offset,
                   "SAMPLE does nothing now: it asks for EN = 1, TMPDIS = 0 and a TMODE other than USERRAW");
    }
}

/// IDFLT and what it compares with, where they change while tracing is on.
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

// ---- 2: what occurred

void Model::Unit::occurrences(const CycleInput& in) {
    selectors_ = 0;
    std::fill(&own(EventWire::task_active), &own(EventWire::debugev) + 1, 0);
    own(EventWire::cycles) = in.in_debug ? 0 : 1;
    own(EventWire::task_active) = match_ && !in.in_debug ? 1 : 0;
    own(EventWire::task_in) = match_ && !last_match_ ? 1 : 0;
    own(EventWire::task_switches) = seen_a_cycle_ && shown_as(in.ctx).id != shown_as(last_context_).id ? 1 : 0;
    own(EventWire::twb_low) = std::exchange(low_, 0);
    own(EventWire::twb_high) = std::exchange(high_, 0);
    own(EventWire::trace_lost) = std::exchange(lost_now_, 0);
    for (const EonceItem& item : in.items) {
        switch (item.kind) {
            case ItemKind::interrupt:
                ++own(item.cause == InterruptCause::interrupt ? EventWire::interrupts : EventWire::exceptions);
                break;
            case ItemKind::mark:
                ++own(EventWire::mark);
                selectors_ |= 1U << static_cast<unsigned>(Selector::mark);
                break;
            case ItemKind::debugev:
                ++own(EventWire::debugev);
                selectors_ |= 1U << static_cast<unsigned>(Selector::debugev);
                break;
            case ItemKind::edcd: selectors_ |= 1U << static_cast<unsigned>(Selector::edcd); break;
            case ItemKind::edca: {
                const unsigned channel = item.channel % 6U;
                ++own_[static_cast<std::size_t>(EventWire::edca0) + channel];
                selectors_ |= 1U << (static_cast<unsigned>(Selector::edca0) + channel);
                lines_pulsed_ |= channel_lines(registers_.cr, channel);
                break;
            }
            default: break;
        }
    }
}

// ---- 3 and 4: counting

void Model::Unit::count(const CycleInput& in) {
    for (unsigned i = 0; i < counter_count; ++i) {
        const CounterLogic::Control& c = counters_.control(i);
        if (!counters_.counting(i) || !qualified(c.count_in, in.ctx.supervisor, match_)) continue;
        std::uint64_t n = is_own(c.event) ? own(c.event) : in.wire[static_cast<std::size_t>(c.event)];
        if (c.event == EventWire::task_total) n = counters_.total_open(i) && !in.in_debug ? 1 : 0;
        if (n != 0 && counters_.count(i, n)) counter_event(i);
    }
}

void Model::Unit::counter_event(unsigned i) {
    registers_.mr = from_value<DpMr>(to_value(registers_.mr) | 1U << i);
    causes_ = true;
    if (counter_action(registers_.cr, i) == Action::debug_request) output_.debug_request = true;
    plain_ = false;
}

/// Whether the next cycle is one of plain counting, if it gets no new input.
void Model::Unit::find_plain(const CycleInput& in) {
    plain_ = now_ == in.ctx && nexus_.idle() && low_ == 0 && high_ == 0 && lost_now_ == 0 &&
             !(context_due_ && phase_ == Phase::run) && !flushing() && request() == TraceWriteBuffer::Request::none;
    planned_ = false;
}

/// What counts while nothing changes: of the unit's own events, only those of the clock do.
void Model::Unit::plan() {
    planned_ = true;
    plan_size_ = 0;
    for (unsigned i = 0; i < counter_count; ++i) {
        const CounterLogic::Control& c = counters_.control(i);
        if ((counters_.enabled() >> i & 1U) == 0 || !qualified(c.count_in, last_context_.supervisor, match_)) continue;
        const bool clock = c.event == EventWire::cycles || (c.event == EventWire::task_active && match_) ||
                           (c.event == EventWire::task_total && (match_ || counters_.total_open(i)));
        if (clock || !is_own(c.event)) plan_[plan_size_++] = {static_cast<std::uint8_t>(i), clock, c.event};
    }
}

/// A cycle in which nothing can happen but counting.
void Model::Unit::count_plain(const CycleInput& in) {
    if (!planned_) plan();
    bool fired = false;
    for (unsigned k = 0; k < plan_size_; ++k) {
        const Planned& p = plan_[k];
        const std::uint64_t n = p.clock ? (in.in_debug ? 0 : 1) : in.wire[static_cast<std::size_t>(p.wire)];
        if (counters_.count(p.counter, n)) [[unlikely]] {
            counter_event(p.counter);
            fired = true;
        }
    }
    ++counts_.cycles;
    if (fired) [[unlikely]] {
        outputs(in);
        find_plain(in);
    }
    ++cycle_;
}

// ---- 5 and 6: triggers and entries

void Model::Unit::entries(const CycleInput& in) {
    now_ = in.ctx;
    const bool raw = nexus_.open() && registers_.tc.nexus_mode() == NexusMode::raw && phase_ == Phase::run;
    if (raw) nexus_.owner(now_);
    if (compressor_.pending() && compressor_.context() != shown_as(now_)) flush_compressor();
    for (const EonceItem& item : in.items) {
        if (phase_ == Phase::run) {
            if (nexus_.open()) nexus_item(item);
            trace_item(item);
        }
        now_ = item.after;
        if (compressor_.pending() && compressor_.context() != shown_as(now_)) flush_compressor();
    }
    if (std::exchange(sample_queued_, false)) {
        flush_compressor();
        sample(now_, {}, [&] { return Sample{shown_as(now_), shadow_}; });
    }
    for (const std::uint32_t datum : user_data_) {
        flush_compressor();
        if (format_.mode == TraceMode::user_raw)
            emit(UserRaw{datum}, now_);
        else
            emit(UserData{shown_as(now_), datum}, now_);
    }
    user_data_.clear();
    if (phase_ == Phase::run)
        context_entry_if_due();
    else if (flushing())
        closing();
}

/// Watchpoints; and under NXMODE 10 every item, as the EOnCE passes it. An address in the unit's own page is reported
/// where it is traced.
void Model::Unit::nexus_item(const EonceItem& item) {
    if (item.kind == ItemKind::edca) nexus_.watchpoint(item.channel % 6U);
    if (registers_.tc.nexus_mode() != NexusMode::raw || item.kind == ItemKind::exec_set) return;
    if (config_.eonce.passes(item.kind)) nexus_.item(item);
}

void Model::Unit::trace_item(const EonceItem& item) {
    const DpTc& tc = registers_.tc;
    if (!format_.mode) return;
    const bool edca5 = item.kind == ItemKind::edca && item.channel == 5;
    if (*format_.mode == TraceMode::edca5 ? !edca5 : !config_.eonce.passes(item.kind)) return;
    if (tc.idflt && !id_match(now_) && !id_match(item.after)) return;
    const TaskContext after = shown_as(item.after);
    const bool interrupts = item.kind == ItemKind::interrupt || item.kind == ItemKind::rte;
    const std::uint32_t src = item.src & ~1U, dst = item.dst & ~1U;
    switch (*format_.mode) {
        case TraceMode::eonce_raw: return trace_raw(item);
        case TraceMode::eonce_comp: return compress(item);
        case TraceMode::task:
            if (!interrupts || after == last_switch_) return;
            last_switch_ = after;
            if (refused(src, "source") || refused(dst, "destination")) return;
            return sample(item.after, item.kind, [&] { return TaskSwitch{src, dst, shadow_, after}; });
        case TraceMode::flow:
            if (!interrupts && item.kind != ItemKind::call && item.kind != ItemKind::ret) return;
            if (refused(src, "source") || refused(dst, "destination")) return;
            return sample(item.after, item.kind, [&] { return Flow{src, dst, shadow_, after}; });
        case TraceMode::edca5: return sample(item.after, item.kind, [&] { return Sample{after, shadow_}; });
        case TraceMode::sw_sample:
        case TraceMode::user:
        case TraceMode::user_raw: return;
    }
}

/// A trigger: the shadow registers load, unless an entry still leaves them (5.2).
template <class Make>
void Model::Unit::sample(const CoreContext& context, std::optional<ItemKind> kind, Make&& make) {
    if (cycle_ < shadow_busy_until_) return lose();
    capture(all_counters);
    ++counts_.triggers;
    const std::uint32_t rate = config_.choices.drain_words_per_cycle;
    const auto entry = make();
    if (emit(entry, context, kind) && rate != 0) shadow_busy_until_ = cycle_ + (entry.info.words + rate - 1) / rate;
}

/// 6.2: no program counter lies in the page of the flags.
bool Model::Unit::refused(std::uint32_t pc, std::string_view what) {
    if (!format_.in_flag_page(pc)) return false;
    report(DpTc::offset, fmt::format("the {} {:#x} of a change of flow lies in the unit's own page at {:#x}, where no "
                                     "program can be; its entry is lost. Give the unit another base address",
                                     what, pc, format_.dpu_base));
    lose();
    return true;
}

void Model::Unit::trace_raw(const EonceItem& item) {
    const std::uint32_t src = item.src & ~1U, dst = item.dst & ~1U;
    EonceCounters counters{};
    unsigned c = 0;
    if (config_.eonce.tcount) counters[c++] = item.count & counter_mask;
    if (config_.eonce.tcntext) counters[c++] = item.ext & counter_mask;
    const bool one =
        item.kind == ItemKind::loop_short || item.kind == ItemKind::mark || item.kind == ItemKind::exec_set;
    if (one || item.kind == ItemKind::loop_long) context_entry_if_due();
    if (refused(src, "source") || (!one && refused(dst, "destination"))) return;
    if (one)
        emit(RawPc{src, counters}, item.after, item.kind);
    else
        emit(RawPair{src, dst, counters}, item.after, item.kind);
}

void Model::Unit::compress(const EonceItem& item) {
    const std::uint32_t src = item.src & ~1U, dst = item.dst & ~1U;
    const TaskContext after = shown_as(item.after);
    const auto kind = Compressor::kind_of(item.kind, src, dst);
    const std::uint32_t second = kind == Compressor::Loop::Kind::short_loop ? 0 : dst;
    if (compressor_.again(kind, src, second, after)) {
        if (compressor_.full()) flush_compressor();
        return;
    }
    flush_compressor();
    const bool pc = item.kind == ItemKind::mark || item.kind == ItemKind::exec_set;
    if (pc || kind == Compressor::Loop::Kind::short_loop || kind == Compressor::Loop::Kind::long_loop)
        context_entry_if_due();
    if (refused(src, "source") || (!pc && refused(second, "destination"))) return;
    if (pc)
        emit(CompressedPc{src, after}, item.after, item.kind);
    else if (kind == Compressor::Loop::Kind::none)
        emit(CompressedFlow{src, dst, after}, item.after, item.kind);
    else
        compressor_.begin(kind, src, second, after, item.after);
}

void Model::Unit::flush_compressor() {
    if (!compressor_.pending()) return;
    const Compressor::Loop loop = compressor_.take();
    using Kind = Compressor::Loop::Kind;
    if (loop.kind == Kind::short_loop)
        emit(ShortLoop{loop.context.id, loop.src, loop.reps}, loop.core);
    else if (loop.kind == Kind::long_loop || loop.reps > 1)
        emit(LongLoop{loop.context.id, loop.src, loop.reps}, loop.core);
    else
        emit(CompressedFlow{loop.src, loop.dst, loop.context}, loop.core, ItemKind::cof);
}

/// 5.3: the context in force is shown where nothing else has shown it.
void Model::Unit::context_entry_if_due() {
    const TaskContext now = shown_as(now_);
    const auto due = [&] {
        if (context_due_) return true;
        if (!in_eonce_mode() || shown_ == now) return false;
        // A filter lets by the change from or to a context that matches.
        return !registers_.tc.idflt || id_match(now_) || shown_matches_;
    };
    if (!due()) return;
    flush_compressor();
    if (!due()) return;
    context_due_ = false;
    if (!emit(ContextEntry{now}, now_)) {
        // A gap entry will ask for it again.
        shown_ = now;
        shown_matches_ = id_match(now_);
    }
    context_due_ = false;
}

// ---- trace write management

/// Switch 2 → buffer. An entry is accepted whole or not at all (5.5).
template <class E>
bool Model::Unit::emit(const E& entry, const CoreContext& context, std::optional<ItemKind> kind) {
    const bool gap = gap_waits();
    words_.clear();
    if (gap) WM_CHECK(encode(words_, GapEntry{lost_}, format_));
    WM_CHECK(encode(words_, entry, format_));
    if (registers_.tc.nexus_mode() != NexusMode::only) {
        if (!buffer_.fits(words_.size()) && !make_room(words_.size())) {
            lose();
            return false;
        }
        buffer_.put(words_);
        counts_.words += words_.size();
    }
    ++counts_.entries;
    if constexpr (requires { entry.context; }) {
        shown_ = entry.context;
        shown_matches_ = id_match(context);
    }
    if (nexus_.open()) {
        if (gap) mirror(GapEntry{lost_}, context);
        mirror(entry, context, kind);
    }
    if (gap) {
        ++counts_.gaps;
        lost_ = 0;
        context_due_ = shows_context();
    }
    return true;
}

/// What goes to the buffer goes to the Nexus interface too (NXMODE 01, 11); execution sets do not.
void Model::Unit::mirror(const Entry& entry, const CoreContext& context, std::optional<ItemKind> kind) {
    if (registers_.tc.nexus_mode() == NexusMode::raw || kind == ItemKind::exec_set) return;
    nexus_.entry(entry, context, kind ? std::optional(NexusPort::branch_type(*kind)) : std::nullopt);
}

void Model::Unit::lose() {
    ++counts_.lost;
    ++lost_now_;
    if (lost_ < counter_mask) ++lost_;
    registers_.mr.tlost = true;
}

/// 5.10: what is left is written, and the line filled.
void Model::Unit::closing() {
    if (!flushed_) {
        flush_compressor();
        flushed_ = true;
        if (phase_ == Phase::flush) nexus_.hold();
    }
    if (gap_waits()) {
        words_.clear();
        WM_CHECK(encode(words_, GapEntry{lost_}, format_));
        if (registers_.tc.nexus_mode() != NexusMode::only) {
            if (!buffer_.fits(words_.size()) && !make_room(words_.size())) return;
            buffer_.put(words_);
            counts_.words += words_.size();
        }
        if (nexus_.open()) mirror(GapEntry{lost_}, now_);
        ++counts_.gaps;
        lost_ = 0;
        context_due_ = shows_context();
    }
    // A hold is marked by one pad at least, so that what is in its interval is known to be more than the trace shows.
    const bool whole_line = hold_due_ && buffer_.missing() == 0;
    if (whole_line && !buffer_.fits(TraceWriteBuffer::line_words) && !make_room(TraceWriteBuffer::line_words)) return;
    if (const unsigned missing = whole_line ? TraceWriteBuffer::line_words : buffer_.missing(); missing != 0) {
        words_.clear();
        for (unsigned i = 0; i < missing; ++i)
            WM_CHECK(phase_ == Phase::close && !hold_due_ ? encode(words_, Closed{}, format_)
                                                          : encode(words_, Pad{}, format_));
        buffer_.put(words_);
        counts_.words += missing;
    }
    if (std::exchange(hold_due_, false)) context_due_ = shows_context();
    if (phase_ == Phase::close) nexus_.close();
}

// ---- 7: the bus

void Model::Unit::bus(bool others) {
    const auto asked = request();
    if (asked == TraceWriteBuffer::Request::none) return;
    ++(asked == TraceWriteBuffer::Request::high ? high_ : low_);
    if (cycle_ >= bus_free_at_ && granted(asked, others)) grant(lines_in_a_burst());
}

/// Full::stall: the core waits while lines leave.
bool Model::Unit::make_room(std::size_t words) {
    if (config_.choices.full != ModelChoices::Full::stall || config_.choices.high == ModelChoices::Grant::never)
        return false;
    while (!buffer_.fits(words)) {
        const unsigned lines = lines_in_a_burst();
        counts_.stalled_cycles += std::uint64_t{config_.choices.bus_cycles_per_line} * lines;
        grant(lines);
    }
    return true;
}

unsigned Model::Unit::lines_in_a_burst() const {
    const std::uint32_t lines = std::min(registers_.tc.burst_lines(), buffer_.lines_held());
    if (registers_.tc.vtb_mode() == VtbMode::single_address) return lines;
    std::uint32_t left = registers_.tea.value - registers_.tw.value;  // one less than there are
    if (registers_.tc.vtb_mode() == VtbMode::trace_event_request) {
        const std::uint32_t requested = line_of(registers_.ter.value) / line_bytes;
        if (requested >= registers_.tw.value) left = std::min(left, requested - registers_.tw.value);
    }
    return left < lines ? left + 1 : lines;
}

void Model::Unit::grant(unsigned lines) {
    const DpTc& tc = registers_.tc;
    Burst& burst = output_.bursts.emplace_back();
    burst.cycle = cycle_;
    burst.address = to_value(registers_.tw);
    burst.lines = static_cast<std::uint8_t>(lines);
    burst.prov = tc.prov;
    burst.global = tc.global;
    burst.fixed = tc.vtb_mode() == VtbMode::single_address;
    buffer_.take(lines, burst.words);
    bus_free_at_ = cycle_ + std::uint64_t{config_.choices.bus_cycles_per_line} * lines;
    counts_.lines_written += lines;
    for (unsigned i = 0; i < lines && !burst.fixed; ++i) line_written(to_value(registers_.tw));
}

/// 5.7: the pointer goes on, and a line that was asked for is signalled.
void Model::Unit::line_written(std::uint32_t address) {
    if (registers_.tc.vtb_mode() == VtbMode::trace_event_request && address == line_of(registers_.ter.value) &&
        !registers_.mr.drtb) {
        registers_.mr.drtb = causes_ = true;
        if (static_cast<Action>(registers_.cr.detb) == Action::debug_request) output_.debug_request = true;
    }
    if (address == to_value(registers_.tea)) {
        registers_.tw.value = registers_.tsa.value;
        registers_.mr.twrap = true;
    } else {
        registers_.tw = from_value<DpTw>(address + line_bytes);
    }
}

/// 5.10: a flush ends when everything has reached memory.
void Model::Unit::advance_phase() {
    if (!flushing() || buffer_.held() != 0 || gap_waits() || hold_due_ || cycle_ + 1 < bus_free_at_) return;
    if (phase_ == Phase::close) {
        phase_ = Phase::off;
    } else if (registers_.tc.tmpdis) {
        phase_ = Phase::held;
    } else {
        resume();
    }
}

// ---- 8: interrupts and debug requests

void Model::Unit::outputs(const CycleInput& in) {
    if (in.eonce_irq) lines_pulsed_ |= registers_.cr.eis;
    if (in.debug_ext) registers_.mr.dra = true;
    if (in.debug_nexus) registers_.mr.drn = true;
    if (in.debug_ext || in.debug_nexus) output_.debug_request = true;
    std::uint8_t level = 0;
    if (causes_) {
        const std::uint32_t causes = to_value(registers_.mr);
        const auto route = [&](bool cause, Action action) {
            if (cause && action == Action::line_0) level |= 1;
            if (cause && action == Action::line_1) level |= 2;
        };
        for (unsigned i = 0; i < counter_count; ++i) route((causes >> i & 1U) != 0, counter_action(registers_.cr, i));
        route(registers_.mr.drtb, static_cast<Action>(registers_.cr.detb));
    }
    output_.pic = {((level | lines_pulsed_) & 1U) != 0, ((level | lines_pulsed_) & 2U) != 0};
    // Pulses and bursts must not be seen twice: the next cycle is a whole one.
    dirty_output_ = lines_pulsed_ != 0 || output_.debug_request || !output_.bursts.empty() || !output_.nexus.empty() ||
                    !output_.errors.empty();
}

// ---- many cycles at once

const CycleOutput* Model::Unit::run(const CycleInput& in, std::uint64_t cycles) {
    const bool powers_down = was_powered_ && !in.dpue;
    if (!in.items.empty() || !writes_.empty() || powers_down) return nullptr;
    if (dead_ || !in.dpue) {
        powered_ = false;
        begin_output();
        cycle_ += cycles;
        return &output_;
    }

    // What each counter will count. Of the buffer's requests and losses, no more than one a cycle and what waits.
    const bool match = id_match(in.ctx);
    const std::uint64_t clock = in.in_debug ? 0 : cycles;
    std::array<std::uint64_t, counter_count> totals{};
    for (unsigned i = 0; i < counter_count; ++i) {
        const CounterLogic::Control& c = counters_.control(i);
        if ((counters_.enabled() >> i & 1U) == 0 || !qualified(c.count_in, in.ctx.supervisor, match)) continue;
        std::uint64_t unsure = 0;
        switch (c.event) {
            case EventWire::cycles: totals[i] = clock; break;
            case EventWire::task_active: totals[i] = match ? clock : 0; break;
            case EventWire::task_total: totals[i] = match || counters_.total_open(i) ? clock : 0; break;
            case EventWire::task_in: totals[i] = cycles != 0 && match && !last_match_ ? 1 : 0; break;
            case EventWire::task_switches:
                totals[i] = cycles != 0 && seen_a_cycle_ && shown_as(in.ctx).id != shown_as(last_context_).id ? 1 : 0;
                break;
            case EventWire::twb_low: unsure = cycles + low_; break;
            case EventWire::twb_high: unsure = cycles + high_; break;
            case EventWire::trace_lost: unsure = cycles + lost_now_ + 4; break;
            default: totals[i] = is_own(c.event) ? 0 : in.wire[static_cast<std::size_t>(c.event)]; break;
        }
        if (!c.wraps && totals[i] + unsure >= counters_.until_zero(i)) return nullptr;
    }
    begin_output();
    if (cycles == 0) return &output_;
    powered_ = was_powered_ = true;
    match_ = match;
    counters_.note_match(match);
    counts_.cycles += cycles;

    std::uint64_t low = 0, high = 0, lost = 0;
    const auto collect = [&] {
        low += std::exchange(low_, 0);
        high += std::exchange(high_, 0);
        lost += std::exchange(lost_now_, 0);
    };
    Phase before = phase_;
    for (const std::uint64_t end = cycle_ + cycles; cycle_ != end;) {
        collect();
        before = phase_;
        entries(in);
        bus(in.bus_others);
        advance_phase();
        nexus_.drain(output_.nexus, 1);
        ++cycle_;
        if (phase_ != before || (context_due_ && phase_ == Phase::run)) continue;

        // Cycles alike from here on: those without a request, those refused, those that wait for the bus.
        const auto asked = request();
        std::uint64_t alike = end - cycle_;
        if (asked != TraceWriteBuffer::Request::none && granted(asked, in.bus_others))
            alike = bus_free_at_ > cycle_ ? std::min(alike, bus_free_at_ - cycle_) : 0;
        else if (asked == TraceWriteBuffer::Request::none && flushing())
            alike = bus_free_at_ > cycle_ + 1 ? std::min(alike, bus_free_at_ - 1 - cycle_) : 0;
        if (alike == 0) continue;
        collect();
        if (asked == TraceWriteBuffer::Request::low) low += alike - 1, low_ = 1;
        if (asked == TraceWriteBuffer::Request::high) high += alike - 1, high_ = 1;
        nexus_.drain(output_.nexus, alike);
        cycle_ += alike;
        before = phase_;
    }
    for (unsigned i = 0; i < counter_count; ++i) {
        const CounterLogic::Control& c = counters_.control(i);
        if ((counters_.enabled() >> i & 1U) == 0 || !qualified(c.count_in, in.ctx.supervisor, match)) continue;
        if (c.event == EventWire::twb_low) totals[i] = low;
        if (c.event == EventWire::twb_high) totals[i] = high;
        if (c.event == EventWire::trace_lost) totals[i] = lost;
        WM_CHECK(!counters_.count(i, totals[i]));
    }
    counts_.nexus_lost = nexus_.lost();
    counts_.nexus_bytes = nexus_.accepted();
    outputs(in);
    last_context_ = in.ctx;
    last_match_ = match;
    seen_a_cycle_ = true;
    find_plain(in);
    plain_ = plain_ && phase_ == before;
    return &output_;
}

// ---- what can be read

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
            // EN and TMPDIS are more than plain fields.
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

// ---- Model

Model::Model(const ModelConfig& config) : unit_(std::make_unique<Unit>(config)) {}
Model::~Model() = default;
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;

void Model::reset() { unit_ = std::make_unique<Unit>(unit_->config()); }
void Model::write(std::uint32_t offset, std::uint32_t value) { unit_->write(offset, value); }
std::uint32_t Model::read(std::uint32_t offset) const { return unit_->read(offset); }
const CycleOutput& Model::step(const CycleInput& in) { return unit_->step(in); }
const CycleOutput* Model::run(const CycleInput& in, std::uint64_t cycles) { return unit_->run(in, cycles); }
std::uint64_t Model::cycle() const { return unit_->cycle(); }
Status Model::set_eonce(const EonceSetup& eonce) { return unit_->set_eonce(eonce); }
void Model::set_arbiter(ModelChoices::Grant high, ModelChoices::Grant low) { unit_->set_arbiter(high, low); }
void Model::capture(std::uint8_t mask) { unit_->capture(mask); }
const Counters& Model::shadow() const { return unit_->shadow(); }
Counters Model::values() const { return unit_->values(); }
Registers Model::registers() const { return unit_->registers(); }
bool Model::idle() const { return unit_->idle(); }
const ModelCounts& Model::counts() const { return unit_->counts(); }
const std::vector<TracePeriod>& Model::periods() const { return unit_->periods(); }
const std::vector<FilterChange>& Model::filters() const { return unit_->filters(); }
CounterHistory Model::counter_history() const { return unit_->counter_history(); }
const ModelConfig& Model::config() const { return unit_->config(); }

// ---- memory

VirtualTraceBuffer::VirtualTraceBuffer(std::uint32_t first, std::uint32_t last, ByteOrder order)
    : first_(line_of(first)), order_(order), bytes_(std::size_t{line_of(last) - line_of(first)} + line_bytes) {}

bool VirtualTraceBuffer::store(const Burst& burst) {
    const std::uint64_t at = std::uint64_t{burst.address} - first_;
    const std::uint64_t bytes = std::uint64_t{burst.fixed ? 1U : burst.lines} * line_bytes;
    if (burst.address < first_ || at + bytes > bytes_.size()) return false;
    std::vector<std::uint8_t> line;
    for (const std::uint32_t word : burst.used()) append_word(line, word, order_);
    std::copy(line.end() - static_cast<std::ptrdiff_t>(bytes), line.end(),
              bytes_.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
}

std::uint32_t VirtualTraceBuffer::word(std::uint32_t address) const {
    const std::size_t at = address - first_;
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i)
        value |= std::uint32_t{bytes_[at + i]} << 8 * (order_ == ByteOrder::big ? 3 - i : i);
    return value;
}

std::vector<std::uint32_t> VirtualTraceBuffer::in_order(std::uint32_t tw, bool wrapped) const {
    std::vector<std::uint32_t> out;
    const auto end = static_cast<std::uint32_t>(first_ + bytes_.size());
    if (wrapped)
        for (std::uint32_t at = tw; at != end; at += 4) out.push_back(word(at));
    for (std::uint32_t at = first_; at != tw; at += 4) out.push_back(word(at));
    return out;
}

}  // namespace waymark::dpu
