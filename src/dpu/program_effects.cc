#include "waymark/dpu/program_effects.h"

#include <fmt/format.h>

#include <cstddef>
#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/dpu/events.h"
#include "waymark/dpu/registers.h"

namespace waymark::dpu {

namespace {

/// What the unit counts.
std::vector<std::string> counting(const Registers& r) {
    std::vector<std::string> out;
    const auto say_set = [&](const std::string& who, unsigned ceg, unsigned mode, unsigned place, bool enabled) {
        if (ceg >= event_sets) return;
        const EventSet& set = event_set(ceg);
        std::string how = mode == 1 ? "and wraps" : "until zero, once";
        if (!enabled) how += "; but nothing enables it (TENM)";
        if (place == 3)
            out.push_back(fmt::format("{} counts {}, {}, {} ({}) {}", who, name(set[0]), name(set[1]), name(set[2]),
                                      event_set_purpose(ceg), how));
        else if (set[place] != EventWire::none)
            out.push_back(fmt::format("{} counts {} {}", who, name(set[place]), how));
    };
    const auto triad = [&](const char* who, const auto& control, const auto& a, const auto& b, const auto& c,
                           unsigned first) {
        if (control.tcen) {
            if (control.ceg != 0)
                say_set(fmt::format("triad {}", who), control.ceg, control.cmode, 3, control.tenm != 0);
            return;
        }
        say_set(fmt::format("counter {}", counter_name(first)), a.ceg, a.cmode, 0, a.tenm != 0);
        say_set(fmt::format("counter {}", counter_name(first + 1)), b.ceg, b.cmode, 1, b.tenm != 0);
        say_set(fmt::format("counter {}", counter_name(first + 2)), c.ceg, c.cmode, 2, c.tenm != 0);
    };
    triad("A", r.tac, r.ca0c, r.ca1c, r.ca2c, 0);
    triad("B", r.tbc, r.cb0c, r.cb1c, r.cb2c, 3);
    if (out.empty()) out.emplace_back("no counter has an event set");
    return out;
}

/// What the unit traces.
std::vector<std::string> tracing(const Registers& r) {
    std::vector<std::string> out;
    if (!r.tc.en) return {"tracing is off"};
    if (r.tc.tmode < trace_modes) out.push_back(fmt::format("trace mode {}", name(r.tc.mode())));
    // Bits 4 to 0 are ignored.
    const std::uint32_t first = to_value(r.tsa) & ~31U, last = to_value(r.tea) & ~31U;
    if (r.tc.vtb_mode() == VtbMode::single_address)
        out.push_back(fmt::format("every line goes to {:#010x}", to_value(r.tw)));
    else if (last >= first)
        out.push_back(fmt::format("the buffer is {:#010x} to {:#010x}, {}{}", first, last + 31,
                                  waymark::counted(std::uint64_t{last} - first + 32, "byte"),
                                  r.tc.vtb_mode() == VtbMode::trace_event_request
                                      ? fmt::format("; its readout is requested at {:#010x}", to_value(r.ter))
                                      : "; it wraps"));
    if (r.tc.uden) out.emplace_back("writes to DP_TD make entries in every mode");
    if (r.tc.idflt) out.emplace_back("only events of the reference task make entries");
    if (r.tc.nxmode != 0) out.emplace_back("the Nexus interface is on");
    return out;
}

/// Adds what the program does by one part of the registers. If it changes that later, each sentence names the cycle
/// from which it holds.
void add_over_time(const RegisterProgram& program, std::vector<std::string> (*part)(const Registers&),
                   std::vector<std::string>& out) {
    std::vector<std::pair<std::uint64_t, std::vector<std::string>>> states;
    Registers registers;
    std::vector<std::string> now = part(registers);
    for (std::size_t i = 0; i < program.size(); ++i) {
        registers.set(program[i].offset, program[i].value);
        if (i + 1 < program.size() && program[i + 1].cycle == program[i].cycle) continue;
        std::vector<std::string> next = part(registers);
        if (next == now) continue;
        states.emplace_back(program[i].cycle, next);
        now = std::move(next);
    }
    if (states.empty()) out.insert(out.end(), now.begin(), now.end());
    for (const auto& [cycle, sentences] : states)
        for (const std::string& sentence : sentences)
            out.push_back(states.size() == 1 ? sentence : fmt::format("from cycle {} on: {}", cycle, sentence));
}

}  // namespace

std::vector<std::string> effects_of(const RegisterProgram& program) {
    std::vector<std::string> out;
    add_over_time(program, counting, out);
    add_over_time(program, tracing, out);
    return out;
}

ModelConfig config_for(const RegisterProgram& program, const std::vector<std::string>& classes) {
    ModelConfig config;
    EonceSetup& eonce = config.eonce;
    for (const std::string& each : classes) {
        eonce.tchof |= each == "TCHOF";
        eonce.tint |= each == "TINT";
        eonce.texec |= each == "TEXEC";
        eonce.tmark |= each == "TMARK";
        eonce.tloop |= each == "TLOOP";
        eonce.tsub |= each == "TSUB";
        eonce.trte |= each == "TRTE";
    }
    if (!classes.empty()) return config;
    for (const RegisterWrite& w : program) {
        const auto tc = from_value<DpTc>(w.value);
        if (w.offset != DpTc::offset || !tc.en || tc.tmode >= trace_modes) continue;
        const EonceSetup needed = EonceSetup::for_mode(tc.mode());
        eonce.tchof |= needed.tchof;
        eonce.tint |= needed.tint;
        eonce.tloop |= needed.tloop;
        eonce.tsub |= needed.tsub;
        eonce.trte |= needed.trte;
    }
    return config;
}

}  // namespace waymark::dpu
