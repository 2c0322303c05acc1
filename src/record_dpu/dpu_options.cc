#include "waymark/record_dpu/dpu_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>

#include "dpu_wires.h"
#include "waymark/dpu/vtb.h"

namespace waymark::record {

using dpu::EventWire;

namespace {

constexpr std::uint64_t least_buffer = 2 * line_bytes, most_buffer = 1U << 30;

Error wrong(std::string message) { return {Errc::usage, std::move(message)}; }

}  // namespace

Status set(CoreModel& model, std::string_view name, std::uint64_t value) {
    std::string names;
    bool found = false, fits = true;
    CoreModel::for_each(model, [&](std::string_view each, std::uint32_t& field, const char*) {
        names += (names.empty() ? "" : ", ") + std::string(each);
        if (each != name) return;
        found = true;
        fits = value <= 0xffffffff;
        if (fits) field = static_cast<std::uint32_t>(value);
    });
    if (!found) return wrong(fmt::format("the modelled core has no number '{}'; it has {}", name, names));
    if (!fits) return wrong(fmt::format("{} = {} is too large; at most 4294967295", name, value));
    return Nothing{};
}

Status check(const CoreModel& m) {
    const auto power = [](std::uint64_t n) { return n != 0 && std::has_single_bit(n); };
    if (!power(m.line_bytes) || m.line_bytes < 8 || m.line_bytes > 4096)
        return wrong(fmt::format("line_bytes {}: a power of two from 8 to 4096", m.line_bytes));
    if (m.ways == 0 || m.ways > 64) return wrong(fmt::format("ways {}: from 1 to 64", m.ways));
    for (const auto& [name, kib] : {std::pair{"icache_kib", m.icache_kib}, {"dcache_kib", m.dcache_kib}}) {
        const std::uint64_t bytes = std::uint64_t{kib} << 10, way = std::uint64_t{m.line_bytes} * m.ways;
        if (kib > 1 << 20 || bytes % way != 0 || !power(bytes / way))
            return wrong(fmt::format("{} {}: a power of two times ways ({}) and line_bytes ({})", name, kib, m.ways,
                                     m.line_bytes));
    }
    if (m.os_cycles == 0 || m.os_cycles > 1'000'000)
        return wrong(fmt::format("os_cycles {}: from 1 to 1000000", m.os_cycles));
    for (const auto& [name, n] : {std::pair{"miss_cycles", m.miss_cycles}, {"flow_cycles", m.flow_cycles}})
        if (n > 100'000) return wrong(fmt::format("{} {}: at most 100000", name, n));
    return Nothing{};
}

std::string to_text(const CoreModel& model) {
    std::string out;
    CoreModel::for_each(model, [&](const char* name, std::uint32_t value, const char* what) {
        out += fmt::format("{:<16} {:>6}  {}\n", name, value, what);
    });
    return out;
}

const std::vector<std::pair<std::string, dpu::TraceMode>>& dpu_modes() {
    using enum dpu::TraceMode;
    static const std::vector<std::pair<std::string, dpu::TraceMode>> modes{
        {"task", task},   {"flow", flow},        {"sample", sw_sample},
        {"edca5", edca5}, {"raw", eonce_raw},    {"compressed", eonce_comp},
        {"user", user},   {"user-raw", user_raw}};
    return modes;
}

std::string_view name(Service service) {
    constexpr std::array names{"line 0", "line 1", "debug exceptions"};
    return names[static_cast<std::size_t>(service)];
}

const std::vector<EventWire>& driven_wires() {
    static const std::vector<EventWire> wires = [] {
        std::set<EventWire> out(truth_wires.begin(), truth_wires.end());
        for (unsigned i = 0; i < dpu::event_wires; ++i)
            if (const auto wire = static_cast<EventWire>(i); wire != EventWire::none && dpu::is_own(wire))
                out.insert(wire);
        return std::vector<EventWire>(out.begin(), out.end());
    }();
    return wires;
}

namespace {

/// The registers that the options select.
dpu::RegisterProgram program_of(const DpuOptions& o) {
    dpu::RegisterProgram program;
    const auto write = [&](std::uint32_t offset, std::uint32_t value) { program.push_back({0, offset, value, 0}); };
    dpu::DpTsa tsa;
    tsa.value = vtb_base / line_bytes;
    const auto lines = static_cast<std::uint32_t>(std::max<std::uint64_t>(o.buffer_bytes / line_bytes, 1));
    dpu::DpTea tea;
    tea.value = tsa.value + lines - 1;
    write(dpu::DpTsa::offset, to_value(tsa));
    write(dpu::DpTea::offset, to_value(tea));
    write(dpu::DpTw::offset, to_value(tsa));
    if (o.request) {
        // The middle of the buffer: one half is read out while the other is filled.
        dpu::DpTer ter;
        ter.value = to_value(tsa) + (lines / 2 - 1) * line_bytes;
        write(dpu::DpTer::offset, to_value(ter));
        dpu::DpCr cr;
        cr.detb = static_cast<std::uint8_t>(dpu::Action::line_0);
        write(dpu::DpCr::offset, to_value(cr));
    }
    for (const std::uint32_t offset : {dpu::DpCa0v::offset, dpu::DpCa1v::offset, dpu::DpCa2v::offset,
                                       dpu::DpCb0v::offset, dpu::DpCb1v::offset, dpu::DpCb2v::offset})
        write(offset, o.initial);
    const auto triad = [&](auto control, std::uint8_t ceg) {
        control.tenm = static_cast<std::uint8_t>(dpu::Selector::immediate);
        control.ceg = ceg;
        control.cmode = static_cast<std::uint8_t>(dpu::CounterMode::trace);
        control.tcen = true;
        write(control.offset, to_value(control));
    };
    triad(dpu::DpTac{}, o.events[0]);
    triad(dpu::DpTbc{}, o.events[1]);
    dpu::DpTc tc;
    tc.prov = true;
    tc.tmode = static_cast<std::uint8_t>(o.mode);
    tc.vtbwm = static_cast<std::uint8_t>(o.buffer_bytes == 0 ? dpu::VtbMode::single_address
                                         : o.request         ? dpu::VtbMode::trace_event_request
                                                             : dpu::VtbMode::overwrite);
    tc.uden = o.user_data && o.mode != dpu::TraceMode::user_raw;
    tc.nxmode = static_cast<std::uint8_t>(o.nexus);
    tc.en = true;
    write(dpu::DpTc::offset, to_value(tc));
    return program;
}

/// Refuses effects on the core without a service routine, and routines that nothing starts.
void check_effects(DpuOptions& o) {
    std::array<bool, services> routed{};
    bool eonce_requests = false;
    o.each_write([&](const dpu::RegisterWrite& w) {
        if (w.offset != dpu::DpCr::offset) return;
        const auto cr = from_value<dpu::DpCr>(w.value);
        eonce_requests |= cr.eis != 0;
        for (const std::uint8_t action : {cr.deca0, cr.deca1, cr.deca2, cr.decb0, cr.decb1, cr.decb2, cr.detb})
            if (action != 0) routed[action - 1U] = true;
        for (const std::uint8_t lines : {cr.isedca0, cr.isedca1, cr.isedca2, cr.isedca3, cr.isedca4, cr.isedca5})
            for (unsigned line = 0; line < 2; ++line) routed[line] |= (lines >> line & 1U) != 0;
    });
    for (const Service service : all_services)
        if (o.routines[static_cast<std::size_t>(service)] && !routed[static_cast<std::size_t>(service)])
            o.warnings.push_back(
                fmt::format("the routine of {} never runs: no field of DP_CR selects it", name(service)));
    if (eonce_requests)
        o.warnings.emplace_back(
            "DP_CR.EIS routes interrupt requests of the EOnCE, and the EOnCE of a recorded program makes none");
}

/// Checks that events for which the program waits can occur: samples, and events of its EDCA channels and MARK.
Status check_sources(DpuOptions& o) {
    dpu::Registers r;
    bool samples = o.sample_every != 0, size_told = false;
    std::set<EventWire> waited;
    for (const auto& routine : o.routines)
        if (routine)
            samples |= std::any_of(routine->begin(), routine->end(), [](const dpu::RegisterWrite& w) {
                return w.offset == dpu::DpTc::offset && from_value<dpu::DpTc>(w.value).sample;
            });
    const auto watched = [&](unsigned channel) {
        return std::any_of(o.watchpoints.begin(), o.watchpoints.end(),
                           [&](const Watchpoint& w) { return w.channel == channel; });
    };
    for (const dpu::RegisterWrite& w : *o.program) {
        r.set(w.offset, w.value);
        const std::uint64_t bytes = std::uint64_t{to_value(r.tea)} - to_value(r.tsa) + line_bytes;
        if (w.offset != dpu::DpTc::offset || !r.tc.en) continue;
        samples |= r.tc.sample;
        size_told |= r.tc.vtb_mode() != dpu::VtbMode::single_address && to_value(r.tea) >= to_value(r.tsa) &&
                     bytes > most_buffer;
    }
    if (size_told)
        return wrong(
            fmt::format("the trace buffer of the register program is larger than {} bytes; a recording holds "
                        "no more: give DP_TEA a smaller address",
                        most_buffer));
    for (const dpu::RegisterWrite& w : *o.program) {
        const auto tc = from_value<dpu::DpTc>(w.value);
        if (w.offset != dpu::DpTc::offset || !tc.en || tc.tmode >= dpu::trace_modes) continue;
        if (tc.mode() == dpu::TraceMode::sw_sample && !samples)
            return wrong(
                "the register program traces in TMODE SWSAMPLE, but nothing asks for a sample, so the trace "
                "would be empty: add --sample-every CYCLES, or lines such as "
                "'@5000 DP_TC TMODE=SWSAMPLE SAMPLE=1 EN=1'");
        if (tc.mode() == dpu::TraceMode::edca5 && !watched(5))
            return wrong(
                "the register program traces in TMODE EDCA5, but EDCA5 watches nothing, so the trace would be "
                "empty: add --edca 5=SYMBOL");
    }
    // Checks events that counters count, or that enable and disable them.
    const auto control = [&](const auto& c, unsigned first, unsigned count) {
        if (c.ceg < dpu::event_sets && c.tenm != 0)
            for (unsigned i = first; i < first + count; ++i) waited.insert(dpu::event_set(c.ceg)[i]);
        for (const unsigned selector : {unsigned{c.tenm}, unsigned{c.tdm}}) {
            if (selector >= 1 && selector <= 6)
                waited.insert(static_cast<EventWire>(static_cast<unsigned>(EventWire::edca0) + selector - 1));
            if (selector == static_cast<unsigned>(dpu::Selector::mark)) waited.insert(EventWire::mark);
            if (selector == static_cast<unsigned>(dpu::Selector::edcd) ||
                selector == static_cast<unsigned>(dpu::Selector::debugev))
                o.warnings.push_back("a counter waits for EDCD or DEBUGEV, which no recorded program has");
        }
    };
    const auto triad = [&](const auto& all, const auto& a, const auto& b, const auto& c) {
        if (all.tcen) return control(all, 0, dpu::counters_per_triad);
        unsigned place = 0;
        for (const std::uint32_t value : {to_value(a), to_value(b), to_value(c)})
            control(from_value<dpu::DpTac>(value), place++, 1);
    };
    triad(r.tac, r.ca0c, r.ca1c, r.ca2c);
    triad(r.tbc, r.cb0c, r.cb1c, r.cb2c);
    for (unsigned channel = 0; channel < 6; ++channel)
        if (waited.contains(static_cast<EventWire>(static_cast<unsigned>(EventWire::edca0) + channel)) &&
            !watched(channel))
            o.warnings.push_back(
                fmt::format("counters wait for EDCA{0}, which watches nothing and never happens: add "
                            "--edca {0}=SYMBOL",
                            channel));
    if (waited.contains(EventWire::mark) && o.marks.empty())
        o.warnings.emplace_back("counters wait for MARK, which nothing executes: add --mark SYMBOL");
    return Nothing{};
}

}  // namespace

Status resolve(DpuOptions& o) {
    WM_RETURN_IF_ERROR(check(o.core));
    if (!o.program) {
        for (const unsigned ceg : o.events)
            if (ceg >= dpu::event_sets)
                return wrong(fmt::format("event set {}: there are sets 0 to {}; --events-help lists them", ceg,
                                         dpu::event_sets - 1));
        if (o.initial > dpu::counter_mask)
            return wrong(fmt::format("a counter begins at {:#x} at most, not {:#x}", dpu::counter_mask, o.initial));
        if (o.buffer_bytes != 0 &&
            (o.buffer_bytes % line_bytes != 0 || o.buffer_bytes < least_buffer || o.buffer_bytes > most_buffer))
            return wrong(
                fmt::format("a buffer of {} bytes: a multiple of {} (a line), from {} to {}; 0 keeps everything",
                            o.buffer_bytes, line_bytes, least_buffer, most_buffer));
        if (o.request && o.buffer_bytes == 0)
            return wrong("a buffer that keeps everything has no end at which to request its readout; give a size");
        if (o.sample_every != 0 && o.mode == dpu::TraceMode::user_raw)
            return wrong("mode user-raw has no samples; choose another mode, or do without sampling");
        if (o.sample_every == 0 && o.mode == dpu::TraceMode::sw_sample)
            return wrong("mode sample needs to know how often: --sample-every CYCLES");
        const bool edca5 =
            std::any_of(o.watchpoints.begin(), o.watchpoints.end(), [](const Watchpoint& w) { return w.channel == 5; });
        if (o.mode == dpu::TraceMode::edca5 && !edca5)
            return wrong("mode edca5 needs to know what EDCA5 watches: --edca 5=SYMBOL");
        o.program = program_of(o);
    } else if (o.program->empty()) {
        return wrong("the register program is empty; it would neither count nor trace");
    }
    // The EOnCE traces everything that any mode of the program needs.
    o.eonce = {};
    bool first = true;
    o.each_write([&](const dpu::RegisterWrite& write) {
        const auto tc = from_value<dpu::DpTc>(write.value);
        if (write.offset != dpu::DpTc::offset || !tc.en || tc.tmode >= dpu::trace_modes) return;
        if (std::exchange(first, false)) o.mode = tc.mode();
        const dpu::EonceSetup needed = dpu::EonceSetup::for_mode(tc.mode());
        o.eonce.tint |= needed.tint;
        o.eonce.trte |= needed.trte;
        o.eonce.tsub |= needed.tsub;
        if (tc.mode() != dpu::TraceMode::eonce_raw && tc.mode() != dpu::TraceMode::eonce_comp) return;
        o.eonce.tchof = o.eonce.tint = true;
        o.eonce.tloop = o.loops;
        o.eonce.tmark = !o.marks.empty();
    });
    dpu::ModelConfig config;
    config.eonce = o.eonce;
    config.choices = o.choices;
    WM_RETURN_IF_ERROR(config.check());
    std::string mistakes;
    for (const dpu::Diagnosis& d : diagnose(*o.program, config)) {
        const std::string text =
            fmt::format("{}{}", d.line == 0 ? std::string() : fmt::format("line {}: ", d.line), d.message);
        if (d.doubtful)
            o.warnings.push_back(text);
        else
            mistakes += "\n  " + text;
    }
    if (!mistakes.empty()) return wrong("the register program is wrong:" + mistakes);
    WM_RETURN_IF_ERROR(check_sources(o));
    check_effects(o);
    return Nothing{};
}

}  // namespace waymark::record
