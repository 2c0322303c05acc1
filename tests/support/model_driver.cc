#include "support/model_driver.h"

#include <algorithm>
#include <utility>

#include "waymark/pft/exceptions.h"

namespace waymark::synthetic {

using flow::Block;
using flow::End;
using isa::Isa;

namespace {

pft::Retired retired(const Executed& w) {
    pft::Retired r;
    r.address = {w.block.start + w.block.bytes - w.block.last_bytes};
    r.isa = w.block.isa;
    r.instruction.bytes = w.block.last_bytes;
    r.instruction.waypoint = w.block.end == End::direct     ? isa::Waypoint::direct
                             : w.block.end == End::indirect ? isa::Waypoint::indirect
                                                            : isa::Waypoint::barrier;
    r.instruction.target = {w.block.target};
    r.instruction.link = (w.block.flags & Block::link) != 0;
    r.instruction.conditional = (w.block.flags & Block::conditional) != 0;
    r.instruction.exception_return = (w.block.flags & Block::exception_return) != 0;
    r.passed = w.passed;
    r.next = w.to;
    r.ns = w.ns;
    r.hyp = w.hyp;
    r.cycle = w.cycle;
    return r;
}

}  // namespace

ModelDriver::ModelDriver(const pft::ModelConfig& config, const ModelDriverOptions& options, ByteSink& trace)
    : config_(config),
      packets_(config.packets()),
      options_(options),
      random_(options.seed),
      watch_(trace),
      model_(config, watch_),
      authentication_(options.authentication) {
    model_.set_external_input(1, true);
}

void ModelDriver::Watch::write(Bytes bytes) {
    if (bytes.front() == pft::ISync::info.value) ++isyncs;
    to_.write(bytes);
}

bool ModelDriver::prohibited() const {
    return !authentication_.non_invasive || (!ns_ && !authentication_.secure_non_invasive);
}

/// Without Security Extensions a macrocell traces as if it were always Secure (3).
void ModelDriver::go_to(bool ns, bool hyp) {
    ns_ = ns && config_.registers.idr.security != 0;
    hyp_ = hyp && packets_.minor_version >= 1;
}

/// docs/spec/pft.md, 5.6. Called once for each block, up to the instruction at `end`.
bool ModelDriver::wants(const Block& block, std::uint64_t end) {
    const std::uint64_t start = block.start;
    if (programming_ || prohibited()) return false;
    if (!options_.start_at.empty() || !options_.stop_at.empty()) {
        const auto within = [&](std::uint64_t address) { return start <= address && address <= end; };
        const bool started = std::any_of(options_.start_at.begin(), options_.start_at.end(), within);
        const bool stopped = std::any_of(options_.stop_at.begin(), options_.stop_at.end(), within);
        const bool before = start_stop_, on = before || started;
        using Both = pft::ModelChoices::StartAndStop;
        const Both both = config_.choices.start_and_stop;
        if (started && stopped)
            start_stop_ = both == Both::on || (both == Both::turns && !before);
        else
            start_stop_ = on && !stopped;
        if (!on) return false;
    }
    if (!enabled_) return false;
    if (options_.ranges.empty()) return true;
    return std::any_of(options_.ranges.begin(), options_.ranges.end(), [&](const auto& range) {
               return options_.exclude ? range.first <= start && range.second > end
                                       : range.first <= end && range.second > start;
           }) != options_.exclude;
}

std::uint32_t ModelDriver::delivered(std::uint64_t cycle) const {
    return packets_.cycle_accurate ? static_cast<std::uint32_t>(cycle - first_cycle_) : flow::no_cycles;
}

void ModelDriver::happens(std::uint64_t cycle) {
    last_cycle_ = cycle;
    const pft::ModelChoices& c = config_.choices;
    std::uint64_t ticks = c.timestamp_first + cycle * c.timestamp_numerator / c.timestamp_denominator;
    if (packets_.minor_version == 0)
        ticks += std::uint64_t{c.packet_delay_cycles} * c.timestamp_numerator / c.timestamp_denominator;
    times_.insert(packets_.timestamp_bytes == 9 ? ticks : ticks & ((std::uint64_t{1} << 48) - 1));
}

Element ModelDriver::in_context(Element e) const {
    e.a = shown_ns_ ? 1 : 0;
    e.b = shown_hyp_ ? 1 : 0;
    e.c = packets_.context_id_bytes != 0 ? context_id_ : Element::absent;
    e.d = packets_.vmid_trace ? vmid_ : Element::absent;
    return e;
}

/// The beginning of the block, if that is not where the model left off.
void ModelDriver::begin(const Block& block, std::uint64_t cycle) {
    const pft::Arrival arrival{{{block.start}, block.isa}, ns_, hyp_, cycle - 2};
    if (!started_) {
        started_ = true;
        first_cycle_ = arrival.cycle;
        model_.start(arrival);
        model_.set_authentication(options_.authentication);
    } else if (in_debug_) {
        model_.debug_exit(arrival);
        debug_exit_ = true;
    } else if (jazelle_) {
        model_.discontinuity(arrival);
    } else {
        return noise(cycle - 2);
    }
    arrival_ = in_debug_ ? last_cycle_ : arrival.cycle;
    happens(arrival_);
    if (in_debug_) happens(arrival.cycle);
    in_debug_ = jazelle_ = false;
}

/// Where trace is prohibited the event is false, and may become true again afterwards (5.3).
std::uint64_t ModelDriver::most_triggers() const {
    const bool always = options_.authentication == pft::Authentication{} && options_.authentication_changes == 0;
    return always ? rises_[1] : ~std::uint64_t{0};
}

bool ModelDriver::silent_entry() const {  // OQ10
    return config_.choices.prohibited_entry == pft::ModelChoices::ProhibitedEntry::nothing;
}

void ModelDriver::noise(std::uint64_t cycle) {
    const std::uint64_t overflowed = model_.counts().overflowed;
    if (random_.chance(options_.sync_requests)) model_.request_sync();
    if (random_.chance(options_.waits)) model_.wait(cycle);
    if (random_.chance(options_.clock_changes)) model_.clock_changed();
    if (random_.chance(options_.flushes)) model_.flush();
    for (unsigned i = 0; i < 2; ++i)
        if (random_.chance(options_.input_changes)) {
            inputs_[i] = !inputs_[i];
            rises_[i] += inputs_[i];
            model_.set_external_input(i + 2, inputs_[i]);
        }
    if (random_.chance(options_.authentication_changes)) {
        authentication_ = {!random_.chance(2000), random_.half()};
        model_.set_authentication(authentication_);
    }
    if (random_.chance(programming_ ? 3000 : options_.stops)) {
        programming_ = !programming_;
        model_.set_programming(programming_, cycle);
        if (!programming_) happens(cycle);
    }
    drop(model_.counts().overflowed - overflowed);
}

/// The atoms of the last waypoints did not fit.
void ModelDriver::drop(std::uint64_t lost) {
    if (lost > entries_.size() && wrong_.empty()) wrong_ = "more lost than was traced";
    entries_.resize(entries_.size() - std::min<std::uint64_t>(lost, entries_.size()));
}

/// Takes in the model's output for a waypoint that should, or should not, have been traced.
void ModelDriver::end(const Before& was, Wanted wanted, Entry entry) {
    const pft::ModelCounts& now = model_.counts();
    const std::uint64_t untraced = now.untraced - was.counts.untraced;
    std::uint64_t lost = now.overflowed - was.counts.overflowed;
    const bool as_wanted =
        wanted == Wanted::silent ? untraced != 0 || lost != 0 : (untraced == 0) == (wanted == Wanted::yes);
    if (!as_wanted && wrong_.empty()) wrong_ = "TraceEnable: " + to_text(entry.elements.back());
    const bool overflowed = now.overflows != was.counts.overflows;
    const bool restarted = overflowed && !model_.status().overflow;
    const bool traced = untraced == 0 && (lost == 0 ? now.waypoints != was.counts.waypoints : restarted);
    if (untraced == 0 && !traced && lost != 0) --lost;  // this one
    drop(lost);
    if (traced) {
        if (!was.tracing || overflowed) {
            Element on;
            on.kind = Kind::trace_on;
            on.a = static_cast<std::uint64_t>(debug_exit_ && !was.overflow ? flow::TraceOnReason::debug_restart
                                              : was.overflow || overflowed ? flow::TraceOnReason::overflow
                                                                           : flow::TraceOnReason::enabled);
            entry.elements.insert(entry.elements.begin(), on);
        }
        entries_.push_back(std::move(entry));
    }
    debug_exit_ = false;
    if (entries_.size() != now.waypoints && wrong_.empty()) wrong_ = "counts disagree";
}

void ModelDriver::waypoint(const Executed& w) {
    begin(w.block, w.cycle);
    const std::uint64_t last = w.block.start + w.block.bytes - w.block.last_bytes;
    const bool wanted = wants(w.block, last);
    const Before was = before();
    pft::Retired r = retired(w);
    if (w.block.end == End::barrier) r.dmb_dsb = packets_.barrier_waypoints && random_.half();
    const std::uint32_t ahead = w.block.bytes - w.block.last_bytes;
    if (random_.half()) {
        model_.retire_block(r, w.before_last_bytes);
    } else {
        if (ahead > w.before_last_bytes && random_.half()) {
            model_.run(ahead - w.before_last_bytes, 2, w.cycle - 1);
            model_.run(w.before_last_bytes, w.before_last_bytes, w.cycle);
        } else {
            model_.run(ahead, w.before_last_bytes, w.cycle);
        }
        model_.retire(r);
    }

    Entry entry;
    if (was.isyncs != watch_.isyncs) {  // it shows the whole state
        shown_ns_ = ns_;
        shown_hyp_ = hyp_;
    }
    Block block = w.block;
    const bool by_length = config_.choices.large_block_test == pft::ModelChoices::LargeBlockTest::length;  // OQ4
    if ((by_length ? block.bytes : last - block.start) > 4096) {
        Block first = block;
        first.bytes -= block.last_bytes;
        --first.instructions;
        first.last_bytes = w.before_last_bytes;
        first.end = End::not_a_waypoint;
        first.target = first.flags = 0;
        entry.elements.push_back(in_context(range_element(0, first, false)));
        block.start = last;
        block.bytes = block.last_bytes;
        block.instructions = 1;
        block.section = w.last_section;
    }
    entry.elements.push_back(in_context(range_element(0, block, w.passed, delivered(w.cycle))));
    if (w.passed && (block.flags & Block::exception_return) != 0 && packets_.minor_version >= 1)
        entry.elements.push_back(event_element(0, flow::ExceptionReturn{}));
    go_to(w.ns, w.hyp);
    if (w.passed && wanted) {
        shown_ns_ = ns_;
        shown_hyp_ = hyp_;
    }
    jazelle_ = w.to.isa == Isa::jazelle;
    happens(w.cycle);
    const bool silent = w.passed && prohibited() && silent_entry();
    end(was, !wanted ? Wanted::no : silent ? Wanted::silent : Wanted::yes, std::move(entry));
}

void ModelDriver::exception(const Interrupted& e) {
    begin(e.block, e.cycle);
    const bool some = e.block.instructions != 0;
    const std::uint64_t last = e.block.start + e.block.bytes - e.block.last_bytes;
    const bool wanted = wants(e.block, last);
    const Before was = before();
    const bool debug = e.number == pft::exceptions::debug_entry;
    pft::ExceptionTaken x{e.number, e.vector, e.ns, e.hyp, e.cycle, {}, 4};
    if (some && (e.number == 2 || e.number == 9 || e.number == 10) && random_.half()) {
        model_.run(e.block.bytes - e.block.last_bytes, 2, e.cycle - 1);
        x.raised_by = pft::Place{{last}, e.block.isa};
        x.raised_by_bytes = e.block.last_bytes;
    } else {
        model_.run(e.block.bytes, e.block.last_bytes, e.cycle - 1);
    }
    if (debug)
        model_.debug_entry(e.cycle);
    else
        model_.exception(x);

    if (was.isyncs != watch_.isyncs) {
        shown_ns_ = ns_;
        shown_hyp_ = hyp_;
    }
    Entry entry;
    flow::Exception expected_exception{&pft::exception_type(e.number), Address{e.block.start}, std::nullopt,
                                       flow::no_cycles};
    if (e.update && some && (e.number != pft::exceptions::hyp_entry || config_.choices.hyp_entry_updates)) {
        Block block = e.block;
        block.end = End::not_a_waypoint;
        block.target = block.flags = 0;
        entry.elements.push_back(in_context(range_element(0, block, false)));
        expected_exception.preferred_return = Address{block.start + block.bytes};
    }
    go_to(e.ns, e.hyp);
    const bool hidden = prohibited();
    if (!debug) expected_exception.vector = hidden ? Address{0} : e.vector.address;
    expected_exception.cycles = delivered(e.cycle);
    entry.elements.push_back(event_element(0, expected_exception));
    if (wanted && !debug && !hidden &&
        config_.choices.exception_state == pft::ModelChoices::ExceptionState::handler) {  // OQ17
        shown_ns_ = ns_;
        shown_hyp_ = hyp_;
    }
    in_debug_ = debug;
    jazelle_ = false;
    happens(e.cycle);
    const bool silent = hidden && !debug && silent_entry();
    end(was, !wanted ? Wanted::no : silent ? Wanted::silent : Wanted::yes, std::move(entry));
}

void ModelDriver::context_id(std::uint32_t value) {
    model_.set_context_id(value);
    context_id_ = packets_.context_id_bytes == 4 ? value : value & ((1U << (8 * packets_.context_id_bytes)) - 1);
}
void ModelDriver::vmid(std::uint8_t value) {
    model_.set_vmid(value);
    vmid_ = value;
}
void ModelDriver::enable(bool on) {
    model_.set_external_input(1, on);
    enabled_ = on;
}
void ModelDriver::finish() {
    const std::uint64_t overflowed = model_.counts().overflowed;
    model_.finish();
    drop(model_.counts().overflowed - overflowed);
}

std::vector<Element> ModelDriver::truth() const {
    std::vector<Element> out;
    for (const Entry& entry : entries_) out.insert(out.end(), entry.elements.begin(), entry.elements.end());
    return out;
}

std::vector<Element> normalise(const std::vector<Element>& elements, const ModelDriver& driver, std::string& wrong,
                               std::vector<std::uint64_t>* offsets) {
    std::vector<Element> out;
    std::vector<std::uint64_t> told_at;
    const auto put = [&](const Element& e, std::uint64_t offset) {
        out.push_back(e);
        told_at.push_back(offset);
    };
    const auto take_back = [&] {
        out.pop_back();
        told_at.pop_back();
    };
    std::uint64_t triggers = 0;
    Element context;
    std::uint32_t cycles = 0;
    std::uint64_t last_timestamp = 0;
    for (Element e : elements) {
        const std::uint64_t offset = std::exchange(e.offset, 0);
        const std::uint32_t own = e.cycles;
        if (own != flow::no_cycles) cycles += own;
        switch (e.kind) {
            case Kind::context: context = e; break;
            case Kind::trigger: ++triggers; break;
            case Kind::timestamp:
                // Each timestamp gives a later time than the one before, with all its bits.
                if ((e.b == 0 || e.a < last_timestamp || !driver.knows_time(e.a)) && wrong.empty()) wrong = to_text(e);
                last_timestamp = e.a;
                break;
            case Kind::trace_on:
                e.cycles = flow::no_cycles;
                // Elements after an I-sync may have been lost.
                if (!out.empty() && out.back().kind == Kind::trace_on) take_back();
                put(e, offset);
                break;
            case Kind::range:
                e.a = context.a;
                e.b = context.b;
                e.c = context.c;
                e.d = context.d;
                if (own != flow::no_cycles) e.cycles = cycles;
                put(e, offset);
                break;
            case Kind::exception:
                if (own != flow::no_cycles) e.cycles = cycles;
                put(e, offset);
                break;
            case Kind::exception_return: put(e, offset); break;
            case Kind::gap:
            case Kind::no_memory:
            case Kind::cycles:
            case Kind::atoms:
            case Kind::reached:
            case Kind::untraced:
            case Kind::mark:
            case Kind::inconsistency:
                if (wrong.empty()) wrong = to_text(e);
                break;
        }
    }
    if (!out.empty() && out.back().kind == Kind::trace_on) take_back();
    if (triggers > driver.most_triggers() && wrong.empty()) wrong = "more triggers than their event had";
    if (offsets != nullptr) *offsets = std::move(told_at);
    return out;
}

}  // namespace waymark::synthetic
