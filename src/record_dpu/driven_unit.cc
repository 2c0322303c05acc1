#include "driven_unit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "dpu_wires.h"

namespace waymark::record {

using namespace happened;
using dpu::EonceItem;
using dpu::EventWire;
using dpu::ItemKind;

namespace {

std::string_view kind_name(ItemKind kind) {
    switch (kind) {
        case ItemKind::call: return "call";
        case ItemKind::ret: return "return";
        case ItemKind::rte: return "interrupt-return";
        case ItemKind::interrupt: return "interrupt";
        case ItemKind::cof: return "jump";
        case ItemKind::loop_short: return "short-loop";
        case ItemKind::loop_long: return "long-loop";
        case ItemKind::mark: return "mark";
        default: return "other";
    }
}

/// The register that controls a counter: its own register, or its triad's.
dpu::DpTac control_of(const dpu::Registers& r, unsigned counter) {
    const std::array own{to_value(r.ca0c), to_value(r.ca1c), to_value(r.ca2c),
                         to_value(r.cb0c), to_value(r.cb1c), to_value(r.cb2c)};
    const auto all = from_value<dpu::DpTac>(counter < dpu::counters_per_triad ? to_value(r.tac) : to_value(r.tbc));
    return all.tcen ? all : from_value<dpu::DpTac>(own[counter]);
}

std::string context_text(const dpu::CoreContext& c) {
    return fmt::format("{}:{}", c.supervisor ? "supervisor" : "user", c.pid);
}

constexpr std::uint32_t monitor_causes = 0xffff;

std::uint32_t trace_event_cause() {
    dpu::DpMr monitor;
    monitor.drtb = true;
    return to_value(monitor);
}

/// Causes that DP_CR routes to a service: the causes in DP_MR, and channels of the EOnCE from bit 16 on.
std::uint32_t routed(const dpu::DpCr& cr, Service service) {
    const std::array counters{cr.deca0, cr.deca1, cr.deca2, cr.decb0, cr.decb1, cr.decb2};
    const std::array channels{cr.isedca0, cr.isedca1, cr.isedca2, cr.isedca3, cr.isedca4, cr.isedca5};
    const unsigned code = static_cast<unsigned>(service) + 1;  // dpu::Action
    std::uint32_t out = cr.detb == code ? trace_event_cause() : 0;
    for (std::size_t i = 0; i < counters.size(); ++i)
        if (counters[i] == code) out |= 1U << i;
    for (std::size_t i = 0; i < channels.size(); ++i)
        if (service != Service::debug && (channels[i] & code) != 0) out |= 1U << (16 + i);
    return out;
}

constexpr std::array seconds_of_a_cycle{vles, stall_prog, stall_data, stall_cof};

/// Takes one cycle out of `rest`; `all`: with all counts that can occur in one cycle. If nothing reads the counters,
/// the order of cycles within a stretch is not visible.
void one_cycle(dpu::CycleInput& in, Happened& rest, bool last, bool all) {
    in.wire.fill(0);
    const auto take = [&](std::size_t what) {
        if (rest.count[what] == 0) return false;
        --rest.count[what];
        in.set(truth_wires[what], 1);
        if (what != vles) {
            --rest.count[stall_all];
            in.set(EventWire::stall_all, 1);
        }
        return true;
    };
    if (!(last && take(stall_cof)))
        for (const std::size_t what : seconds_of_a_cycle)
            if (take(what)) break;
    --rest.count[cycles];
    if (!all) return;
    for (const std::size_t what : {ic_hit, ic_miss, ic_thrash, dc_hit, dc_miss, dc_thrash, dc_wback})
        in.set(truth_wires[what], std::exchange(rest.count[what], 0));
}

void whole(dpu::CycleInput& in, const Happened& happened) {
    in.wire.fill(0);
    for (std::size_t i = vles; i <= dc_wback; ++i) in.set(truth_wires[i], happened.count[i]);
}

}  // namespace

DrivenUnit::DrivenUnit(const DpuOptions& options, std::uint8_t initial_id) : options_(options) {
    dpu::ModelConfig config;
    config.eonce = options_.eonce;
    config.choices = options_.choices;
    model_ = std::make_unique<dpu::Model>(config);
    next_sample_ = options_.sample_every;
    dpu::Registers registers;
    // The buffer type at the time of tracing counts, and not the value written when tracing is turned off.
    bool single = true;
    for (const dpu::RegisterWrite& w : *options_.program) {
        registers.set(w.offset, w.value);
        if (w.offset == dpu::DpTc::offset && registers.tc.en)
            single &= registers.tc.vtb_mode() == dpu::VtbMode::single_address;
    }
    options_.each_write([&](const dpu::RegisterWrite& w) {
        if (w.offset != dpu::DpCr::offset) return;
        for (const Service service : all_services) has_effects_ |= routed(from_value<dpu::DpCr>(w.value), service) != 0;
    });
    if (!single) ring_ = std::make_unique<dpu::VirtualTraceBuffer>(to_value(registers.tsa), to_value(registers.tea));
    program_unit({false, initial_id, initial_id});
    if (reads_out()) readout_.emplace(to_value(registers.tsa), to_value(registers.tea), to_value(programmed_.tw));
}

/// The unit's first cycle, in which the writes of cycle 0 take effect. The program runs from the next cycle on.
void DrivenUnit::program_unit(const dpu::CoreContext& context) {
    context_ = now_ = context;
    id_before_ = context.pid;
    dpu::CycleInput in;
    in.ctx = context;
    for (next_write_ = 0; next_write_ < options_.program->size() && (*options_.program)[next_write_].cycle == 0;
         ++next_write_) {
        const dpu::RegisterWrite& w = (*options_.program)[next_write_];
        model_->write(w.offset, w.value);
    }
    give(model_->step(in));
    programmed_ = model_->registers();
}

void DrivenUnit::begin(const dpu::CoreContext& context, std::uint32_t place) {
    if (!first_ && context != now_) {
        // Another thread than expected runs first; the unit is programmed while the expected one waits to run.
        model_->reset();
        raised_ = 0;
        period_lines_.clear();
        errors_.clear();
        nexus_.clear();
        nexus_bytes_ = 0;
        program_unit(context);
    }
    now_ = context_ = context;
    id_before_ = context.pid;
    interval_context_ = now_;
    interval_start_ = place;
    if (first_) return;
    first_ = Key{now_.supervisor, now_.pid, place};
    ++stays_[{now_.supervisor, now_.pid}];
}

void DrivenUnit::item(EonceItem what) {
    switch (what.kind) {
        case ItemKind::call:
        case ItemKind::ret:
        case ItemKind::rte:
        case ItemKind::interrupt: {
            const bool changes = what.after != now_;
            end_interval(what.dst);
            now_ = interval_context_ = what.after;
            if (changes) ++stays_[{now_.supervisor, now_.pid}];
            break;
        }
        default: break;
    }
    if (options_.eonce.passes(what.kind)) {
        auto& [times, destinations] = changes_[std::uint64_t{what.src} << 8 | static_cast<std::uint64_t>(what.kind)];
        ++times;
        destinations += what.dst;
    }
    const bool own = what.kind == ItemKind::interrupt || what.kind == ItemKind::mark || what.kind == ItemKind::edca;
    // An item that only changes the context must still be passed on.
    if (own || what.kind == ItemKind::rte || options_.eonce.passes(what.kind)) items_.push_back(what);
}

void DrivenUnit::end_interval(std::uint32_t start) {
    auto& [times, sum] = intervals_[{interval_context_.supervisor, interval_context_.pid, interval_start_}];
    ++times;
    sum += total_ - interval_;
    interval_ = total_;
    interval_start_ = start;
}

void DrivenUnit::begin_cost() {
    if (!items_.empty() || !writes_.empty()) advance();
    if (now_.pid != std::exchange(id_before_, now_.pid)) ++total_.count[task_switches];
}

/// Passes everything since the last call to the unit; items and writes belong to the last of these cycles.
void DrivenUnit::advance() {
    Happened rest = total_ - done_;
    done_ = total_;
    const std::uint64_t left = rest.count[cycles];
    dpu::CycleInput in;
    in.ctx = context_;
    const bool special = !items_.empty() || !writes_.empty();
    if (left == 0) return;
    const std::uint64_t stretch = left - (special ? 1 : 0);
    if (stretch != 0) {
        // The last cycle belongs to the branch itself, or to its stall.
        Happened last = rest;
        if (special) {
            dpu::CycleInput unused;
            one_cycle(unused, rest, true, false);
        }
        run(rest, stretch);
        if (special) {
            one_cycle(in, last, true, false);
        }
    } else if (special) {
        one_cycle(in, rest, true, true);
    }
    if (!special) return;
    for (const auto& [offset, value] : writes_) model_->write(offset, value);
    writes_.clear();
    in.items = items_;
    give(model_->step(in));
    items_.clear();
    context_ = now_;
}

void DrivenUnit::run(Happened& rest, std::uint64_t cycle_count) {
    dpu::CycleInput in;
    in.ctx = context_;
    whole(in, rest);
    if (const dpu::CycleOutput* out = model_->run(in, cycle_count)) {
        give(*out);
        return;
    }
    for (std::uint64_t i = 0; i < cycle_count; ++i) {
        one_cycle(in, rest, false, i == 0);
        give(model_->step(in));
    }
}

void DrivenUnit::catch_up() {
    Happened rest = total_ - done_;
    const std::uint64_t left = rest.count[cycles];
    if (left <= 1) return;
    dpu::CycleInput unused;
    one_cycle(unused, rest, true, false);
    done_ += rest;
    run(rest, left - 1);
}

void DrivenUnit::due_writes() {
    const std::uint64_t now = total_.count[cycles];
    if (options_.sample_every != 0 && now >= next_sample_) {
        dpu::DpTc tc = from_value<dpu::DpTc>(model_->read(dpu::DpTc::offset));
        tc.sample = true;
        writes_.emplace_back(dpu::DpTc::offset, to_value(tc));
        next_sample_ = (now / options_.sample_every + 1) * options_.sample_every;
    }
    const dpu::RegisterProgram& program = *options_.program;
    for (; next_write_ < program.size() && program[next_write_].cycle <= now; ++next_write_)
        writes_.emplace_back(program[next_write_].offset, program[next_write_].value);
}

void DrivenUnit::give(const dpu::CycleOutput& out) {
    while (period_lines_.size() < model_->periods().size()) period_lines_.push_back(lines_);
    for (const dpu::Burst& burst : out.bursts) {
        lines_ += burst.lines;
        if (ring_) {
            (void)ring_->store(burst);
            requested_ |= readout_ && model_->registers().mr.drtb;
            continue;
        }
        for (const std::uint32_t word : burst.used())
            for (unsigned shift = 32; shift != 0;) written_.push_back(static_cast<std::uint8_t>(word >> (shift -= 8)));
    }
    raised_ |= static_cast<std::uint8_t>(out.pic[0] | out.pic[1] << 1 | out.debug_request << 2);
    nexus_.insert(nexus_.end(), out.nexus.begin(), out.nexus.end());
    nexus_bytes_ += out.nexus.size();
    errors_.insert(errors_.end(), out.errors.begin(), out.errors.end());
}

void DrivenUnit::stop() {
    const std::uint32_t tc = model_->read(dpu::DpTc::offset);
    if (options_.mode == dpu::TraceMode::sw_sample && total_.count[cycles] != 0) {
        dpu::DpTc sample = from_value<dpu::DpTc>(tc);
        sample.sample = true;
        writes_.emplace_back(dpu::DpTc::offset, to_value(sample));
    }
    advance();
    end_interval(0);
    // If tracing was disabled before, later counts belong to no interval.
    stopped_registers_ = model_->registers();
    history_ = model_->counter_history();
    const auto& periods = model_->periods();
    const bool was_off = !periods.empty() && !stopped_registers_->tc.en && periods.back().final;
    final_ = was_off ? *periods.back().final : model_->values();
    ended_early_ = was_off;
    counted_all_ = !periods.empty() && periods.front().cycle == 0 && !was_off;

    dpu::CycleInput in;
    in.ctx = context_;
    constexpr std::uint32_t disable = 0xfU << 24;
    for (const std::uint32_t offset :
         {dpu::DpTac::offset, dpu::DpTbc::offset, dpu::DpCa0c::offset, dpu::DpCa1c::offset, dpu::DpCa2c::offset,
          dpu::DpCb0c::offset, dpu::DpCb1c::offset, dpu::DpCb2c::offset})
        model_->write(offset, (model_->read(offset) & ~(0xfU << 16)) | disable);
    dpu::DpTc off = from_value<dpu::DpTc>(model_->read(dpu::DpTc::offset));
    off.en = false;
    model_->write(dpu::DpTc::offset, to_value(off));
    constexpr unsigned most = 100'000;
    for (unsigned i = 0; i < most; ++i) {
        give(model_->step(in));
        if (model_->idle()) break;
    }
    if (readout_) read_out();
}

// ---- effects on the core

std::uint32_t DrivenUnit::causes_of(Service service) const {
    return routed(model_->registers().cr, service) & model_->read(dpu::DpMr::offset) & monitor_causes;
}

std::string DrivenUnit::cause(Service service) const {
    const std::uint32_t causes = causes_of(service);
    std::vector<std::string> out;
    for (unsigned i = 0; i < dpu::counter_count; ++i)
        if ((causes >> i & 1U) != 0) out.push_back(fmt::format("counter {} reached zero", dpu::counter_name(i)));
    if ((causes & trace_event_cause()) != 0) out.emplace_back("a request line of the trace buffer was written");
    return fmt::format("{}", fmt::join(out, ", "));
}

void DrivenUnit::serve(Service service) {
    model_->write(dpu::DpMr::offset, causes_of(service));
    if (const auto& routine = options_.routines[static_cast<std::size_t>(service)])
        for (const dpu::RegisterWrite& w : *routine) model_->write(w.offset, w.value);
    raised_ &= static_cast<std::uint8_t>(~(1U << static_cast<unsigned>(service)));
}

// ---- readout in request mode

/// Whether the request interrupts the core and the buffer stays in place: then the operating system reads it out.
bool DrivenUnit::reads_out() const {
    bool all = true;
    dpu::Registers registers;
    for (const dpu::RegisterWrite& w : *options_.program) {
        registers.set(w.offset, w.value);
        all &= w.cycle == 0 || (w.offset != dpu::DpTsa::offset && w.offset != dpu::DpTea::offset &&
                                w.offset != dpu::DpTw::offset && w.offset != dpu::DpMr::offset);
        if (w.offset == dpu::DpTc::offset && registers.tc.en)
            all &= registers.tc.vtb_mode() == dpu::VtbMode::trace_event_request;
    }
    for (const auto& routine : options_.routines)
        if (routine)
            for (const dpu::RegisterWrite& w : *routine)
                all &=
                    w.offset != dpu::DpTsa::offset && w.offset != dpu::DpTea::offset && w.offset != dpu::DpTw::offset;
    const auto action = static_cast<dpu::Action>(programmed_.cr.detb);
    return all && programmed_.tc.vtb_mode() == dpu::VtbMode::trace_event_request && ring_ &&
           (action == dpu::Action::line_0 || action == dpu::Action::line_1);
}

void DrivenUnit::serve_readout() {
    read_out();
    const dpu::Registers r = model_->registers();
    dpu::DpMr clear;
    clear.drtb = clear.twrap = true;
    model_->write(dpu::DpMr::offset, to_value(clear));
    const std::uint32_t lines = r.tea.value - r.tsa.value + 1;
    const std::uint32_t line = (r.tw.value - r.tsa.value + lines / 2) % lines;
    model_->write(dpu::DpTer::offset, to_value(r.tsa) + line * line_bytes);
    requested_ = false;
    // The service also handles the line through which this interrupt came.
    if (r.cr.detb != 0) raised_ &= static_cast<std::uint8_t>(~(1U << (r.cr.detb - 1U)));
}

void DrivenUnit::read_out() {
    const dpu::Registers r = model_->registers();
    const dpu::Readout::Piece piece = readout_->take(to_value(r.tw), r.mr.twrap);
    const Bytes bytes = ring_->bytes();
    if (piece.overrun || lines_ - read_lines_ > bytes.size() / line_bytes) {
        overruns_.push_back(read_bytes_);
        std::uint64_t kept = 0;
        for (const dpu::Stretch& s : piece.stretches) kept += s.bytes;
        written_before_.push_back(lines_ * line_bytes - kept);
    }
    read_lines_ = lines_;
    for (const dpu::Stretch& s : piece.stretches) {
        const Bytes part = bytes.subspan(static_cast<std::size_t>(s.offset), static_cast<std::size_t>(s.bytes));
        written_.insert(written_.end(), part.begin(), part.end());
        read_bytes_ += s.bytes;
    }
}

// ---- output

std::uint64_t DrivenUnit::place_in_file(std::uint64_t written) const {
    std::uint64_t out = written;
    for (std::size_t i = 0; i < overruns_.size(); ++i) {
        if (written < written_before_[i]) return std::min(out, overruns_[i]);
        out = overruns_[i] + (written - written_before_[i]);
    }
    return out;
}

void describe_programming(capture::DpuCapture& c, const dpu::Model& model,
                          const std::vector<std::uint64_t>& period_lines, bool messages) {
    const dpu::Registers& last = model.registers();
    const auto& periods = model.periods();
    const auto is_last = [&](const dpu::TracePeriod& p) {
        const auto tc = from_value<dpu::DpTc>(p.tc);
        return tc.tmode == last.tc.tmode && tc.tids == last.tc.tids;
    };
    if (periods.size() > 1 || (!periods.empty() && !is_last(periods.front())))
        for (std::size_t i = 0; i < periods.size(); ++i) {
            const dpu::TracePeriod& p = periods[i];
            const capture::DpuContext context{p.context.supervisor, p.context.pid, p.context.did};
            c.periods.push_back({p.tw, p.tc, context, period_lines[i]});
        }
    const auto& filters = model.filters();
    const dpu::FilterChange at_end{0,
                                   last.tc.idflt,
                                   last.tc.tids,
                                   last.cr.tidcm,
                                   static_cast<std::uint8_t>(last.rpid.value),
                                   static_cast<std::uint8_t>(last.rdid.value),
                                   0};
    if (filters.size() > 1 || (!filters.empty() && !filters.front().same(at_end)))
        for (const dpu::FilterChange& f : filters)
            c.filters.push_back({f.words, f.idflt, f.tids, f.tidcm, f.rpid, f.rdid,
                                 messages ? std::optional(f.nexus_bytes) : std::nullopt});
}

void DrivenUnit::describe(capture::DpuCapture& c) const {
    dpu::Registers registers = model_->registers();
    if (stopped_registers_) {
        // The values while the program ran: stopping changed them.
        const dpu::Registers& r = *stopped_registers_;
        registers.tac = r.tac;
        registers.tbc = r.tbc;
        registers.ca0c = r.ca0c;
        registers.ca1c = r.ca1c;
        registers.ca2c = r.ca2c;
        registers.cb0c = r.cb0c;
        registers.cb1c = r.cb1c;
        registers.cb2c = r.cb2c;
        const bool twba = registers.sr.twba;
        registers.sr = r.sr;
        registers.sr.twba = twba;
    }
    dpu::Registers::for_each(registers, [&](const auto& r) {
        if (r.offset < dpu::DpTd::offset) c.registers.push_back({std::string(r.name), to_value(r), {}});
    });
    const auto& periods = model_->periods();
    if (!periods.empty()) {
        c.initial = periods.front().initial;
        const dpu::CoreContext& context = periods.front().context;
        c.initial_context = capture::DpuContext{context.supervisor, context.pid, context.did};
    }
    describe_programming(c, *model_, period_lines_, !c.nexus.empty());
    if (final_) c.final = *final_;
    describe_off(c);
    const dpu::CounterHistory history = history_.value_or(model_->counter_history());
    c.history = capture::DpuCounterHistory{history.partial, history.changed, history.rewritten};
    c.readout = readout_.has_value();
    c.overruns = overruns_;
    c.lines_written = model_->counts().lines_written;
}

/// Describes how long tracing was off, and where.
void DrivenUnit::describe_off(capture::DpuCapture& c) const {
    const auto& periods = model_->periods();
    if (periods.empty()) return;
    const std::uint64_t run = total_.count[cycles];
    // The unit's cycle 0 comes before the program's first cycle.
    const auto time = [&](std::uint64_t cycle) { return std::min(run, cycle == 0 ? 0 : cycle - 1); };
    std::uint64_t between = 0;
    for (std::size_t i = 1; i < periods.size(); ++i)
        between += time(periods[i].cycle) - time(periods[i - 1].end.value_or(periods[i].cycle));
    const std::uint64_t before = time(periods.front().cycle);
    const std::uint64_t after = ended_early_ && periods.back().end ? run - time(*periods.back().end) : 0;
    if (before == 0 && between == 0 && after == 0) return;
    for (const auto& [key, value] : {std::pair{capture::run_cycles_key, run},
                                     {capture::off_before_key, before},
                                     {capture::off_between_key, between},
                                     {capture::off_after_key, after}})
        c.parameters.emplace_back(std::string(key), std::to_string(value));
}

bool DrivenUnit::later_writes(auto&& is_harmless) const {
    const auto harmless = [&](const dpu::RegisterProgram& writes, bool from_start) {
        return std::all_of(writes.begin(), writes.end(),
                           [&](const dpu::RegisterWrite& w) { return (from_start && w.cycle == 0) || is_harmless(w); });
    };
    return harmless(*options_.program, true) &&
           std::all_of(options_.routines.begin(), options_.routines.end(),
                       [&](const auto& routine) { return !routine || harmless(*routine, false); });
}

/// Whether tracing was on in one mode from the first instruction to the last.
bool DrivenUnit::traces_all() const {
    dpu::DpTc first = programmed_.tc;
    if (model_->periods().size() != 1 || model_->filters().size() != 1 || !first.en || first.tmpdis) return false;
    return later_writes([&](const dpu::RegisterWrite& w) {
        if (w.offset != dpu::DpTc::offset) return true;
        auto tc = from_value<dpu::DpTc>(w.value);
        tc.sample = first.sample;
        return tc == first;
    });
}

/// Whether the counter counted its event from the first instruction to the last, for all tasks.
bool DrivenUnit::counts_all(unsigned counter) const {
    const dpu::DpTac control = control_of(programmed_, counter);
    const bool always = control.tenm == static_cast<std::uint8_t>(dpu::Selector::immediate) && control.tdm == 0 &&
                        control.cegp == 0 && control.cmode == static_cast<std::uint8_t>(dpu::CounterMode::trace);
    const bool first = counter < dpu::counters_per_triad;
    const std::uint32_t triad = first ? dpu::DpTac::offset : dpu::DpTbc::offset;
    constexpr std::array controls{dpu::DpCa0c::offset, dpu::DpCa1c::offset, dpu::DpCa2c::offset,
                                  dpu::DpCb0c::offset, dpu::DpCb1c::offset, dpu::DpCb2c::offset};
    constexpr std::array values{dpu::DpCa0v::offset, dpu::DpCa1v::offset, dpu::DpCa2v::offset,
                                dpu::DpCb0v::offset, dpu::DpCb1v::offset, dpu::DpCb2v::offset};
    return always && later_writes([&](const dpu::RegisterWrite& w) {
               return w.offset != triad && w.offset != controls[counter] && w.offset != values[counter];
           });
}

std::string counts_text(const Happened& happened) { return fmt::format("{}", fmt::join(happened.count, " ")); }

std::string DrivenUnit::truth_text() const {
    std::string out =
        "# whether the unit traced from the first instruction to the last; counters that counted so long, and what\n";
    out += fmt::format("traced {}\n", traces_all() ? "whole" : "part");
    out += "# whether the counters' first and last values in the capture are of these, too\n";
    out += fmt::format("counted {}\ncounters", counted_all_ ? "whole" : "part");
    for (unsigned i = 0; i < dpu::counter_count; ++i) {
        const dpu::DpTac control = control_of(programmed_, i);
        const EventWire wire =
            control.ceg < dpu::event_sets ? dpu::event_set(control.ceg)[i % dpu::counters_per_triad] : EventWire::none;
        out += counts_all(i) && wire != EventWire::none ? fmt::format(" {}", dpu::name(wire)) : " -";
    }
    out += "\nwires";
    for (const EventWire wire : truth_wires) out += fmt::format(" {}", dpu::name(wire));
    out += fmt::format("\ntotal {}\n", counts_text(total_));
    std::map<std::pair<bool, std::uint8_t>, Happened> contexts;
    for (const auto& [key, value] : intervals_) contexts[{key.supervisor, key.id}] += value.second;
    out += "# context, its stays: uninterrupted, the first included\n";
    for (const auto& [key, sum] : contexts) {
        const auto stays = stays_.find(key);
        out += fmt::format("context {} {} {}\n", context_text({key.first, key.second, 0}),
                           stays == stays_.end() ? 0 : stays->second, counts_text(sum));
    }
    if (first_)
        out += fmt::format("first {} {:#010x}\n", context_text({first_->supervisor, first_->id, 0}), first_->start);
    out +=
        "# from where a call, return, interrupt or return from one led to the next such change: context, address, "
        "times\n";
    for (const auto& [key, value] : intervals_)
        out += fmt::format("interval {} {:#010x} {} {}\n", context_text({key.supervisor, key.id, 0}), key.start,
                           value.first, counts_text(value.second));
    out += "# what the EOnCE traced: kind, source, times, sum of the destinations\n";
    std::map<std::uint64_t, std::pair<std::uint64_t, std::uint64_t>> changes(changes_.begin(), changes_.end());
    for (const auto& [key, value] : changes)
        out += fmt::format("change {} {:#010x} {} {:#x}\n", kind_name(static_cast<ItemKind>(key & 0xff)), key >> 8,
                           value.first, value.second);
    return out;
}

}  // namespace waymark::record
