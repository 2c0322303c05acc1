#include "waymark/pft/programming.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <string>

#include "waymark/pft/access.h"

namespace waymark::pft {

namespace {

using flow::RegisterStep, flow::wait_step, flow::write_step;

constexpr std::uint32_t programming_bit = 1U << 10;  ///< of ETMCR
constexpr std::uint32_t in_effect = 1U << 1;         ///< of ETMSR: the Programming bit
constexpr std::uint32_t keeps_power = 1U << 3;       ///< of ETMPDCR
constexpr unsigned byte_offset(unsigned number) { return 4 * number; }

/// The resource type of single address comparators in an event (5.6).
constexpr unsigned single_address = 0;

/// A bit for each address comparator that some resource uses.
std::uint32_t used_comparators(const Registers& r) {
    std::uint32_t used = r.tsscr.start | std::uint32_t{r.tsscr.stop} | r.tecr2.single;
    for (unsigned pair = 0; pair < 8; ++pair)
        if ((r.tecr1.ranges >> pair & 1U) != 0) used |= 3U << 2 * pair;
    const auto event = [&](const EventFields& e) {
        const bool of_first_alone = e.function <= 1;
        if (e.a_type == single_address) used |= 1U << e.a_index;
        if (e.b_type == single_address && !of_first_alone) used |= 1U << e.b_index;
    };
    event(r.trigger), event(r.teevr), event(r.tsevr);
    return used;
}

/// Whether a register decides which code is traced.
bool decides(std::uint32_t comparators, unsigned number) {
    constexpr std::array controls{Etmtrigger::number, Etmtsscr::number,    Etmtecr2::number,   Etmteevr::number,
                                  Etmtecr1::number,   Etmsyncfr::number,   Etmtsevr::number,   Etmauxcr::number,
                                  Etmfflr::number,    Etmtraceidr::number, Etmtesseicr::number};
    if (std::find(controls.begin(), controls.end(), number) != controls.end()) return true;
    const auto of_used = [&](unsigned first) {
        return number >= first && number < first + 16 && (comparators >> (number - first) & 1U) != 0;
    };
    return of_used(Etmacvr::number) || of_used(Etmactr::number);
}

std::vector<std::string> needs_of(const Registers& r) {
    std::vector<std::string> out;
    if (r.cr.return_stack) out.emplace_back("ETMCCER bit 23 is 1: the return stack");
    if (r.cr.timestamps) out.emplace_back("ETMCCER bit 22 is 1: timestamps");
    if (r.cr.vmid_trace) out.emplace_back("ETMCCER bit 26 is 1: the Virtualization Extensions");
    unsigned pairs = 0;
    for (unsigned n = 0; n < 16; ++n)
        if ((used_comparators(r) >> n & 1U) != 0) pairs = n / 2 + 1;
    if (pairs != 0) out.push_back(fmt::format("ETMCCR bits 3:0 are at least {}: pairs of address comparators", pairs));
    return out;
}

/// Bits of the file `mode` of Linux's driver.
namespace driver_mode {
constexpr std::uint32_t exclude = 1, cycle_accurate = 2, timestamps = 8, context_id = 16, branch_broadcast = 32,
                        return_stack = 64;
}

/// Adds the files of Linux's driver that set these registers.
void add_driver_files(const Registers& r, bool all, flow::ComponentProgram& out) {
    constexpr unsigned four_bytes = 3;
    if (all) out.not_in_files.emplace_back("registers that are given by name");
    if (r.cr.context_id_size != 0 && r.cr.context_id_size != four_bytes)
        out.not_in_files.emplace_back("Context IDs of 1 or 2 bytes");
    if (r.cr.vmid_trace) out.not_in_files.emplace_back("VMIDs");
    const auto put = [&](const char* file, std::string value) { out.driver_files.push_back({file, std::move(value)}); };
    const auto hex = [](std::uint64_t value) { return fmt::format("{:#x}", value); };
    put("reset", "1");
    // Excluding an empty set of ranges means tracing everything.
    std::uint32_t mode = r.tecr1.exclude ? driver_mode::exclude : 0;
    if (r.cr.cycle_accurate) mode |= driver_mode::cycle_accurate;
    if (r.cr.timestamps) mode |= driver_mode::timestamps;
    if (r.cr.context_id_size != 0) mode |= driver_mode::context_id;
    if (r.cr.branch_broadcast) mode |= driver_mode::branch_broadcast;
    if (r.cr.return_stack) mode |= driver_mode::return_stack;
    put("mode", hex(mode));
    put("sync_freq", hex(r.syncfr.value));
    for (unsigned pair = 0; pair < 8; ++pair) {
        if ((r.tecr1.ranges >> pair & 1U) == 0) continue;
        // Reset sets the access type to instruction fetches.
        for (const unsigned comparator : {2 * pair + 1, 2 * pair}) {
            put("addr_idx", hex(comparator));
            put("addr_acctype", hex(to_value(r.actr[comparator])));
        }
        put("addr_range", fmt::format("{:#x} {:#x}", r.acvr[2 * pair].value, r.acvr[2 * pair + 1].value));
    }
    if (r.trigger.function <= 1 && r.trigger.a_type == single_address) {
        put("addr_idx", hex(r.trigger.a_index));
        put("addr_acctype", hex(to_value(r.actr[r.trigger.a_index])));
        put("addr_single", hex(r.acvr[r.trigger.a_index].value));
        put("trigger_event", hex(to_value(r.trigger)));
    }
}

}  // namespace

std::vector<RegisterStep> program_steps(const Registers& wanted, bool all) {
    std::vector<RegisterStep> out;
    const unsigned control = byte_offset(Etmcr::number), status = byte_offset(Etmsr::number);
    out.push_back(write_step(control, programming_bit, "ETMCR", "power up and stop: the Programming bit"));
    out.push_back(wait_step(status, in_effect, in_effect, "ETMSR", "until the Programming bit is in effect"));
    const std::uint32_t comparators = used_comparators(wanted);
    for (const RegisterPlace& place : register_places()) {
        const RegisterAccess access = register_access(wanted, place.number);
        if (!access.writable || place.number == Etmcr::number || place.number >= management::oslar) continue;
        if (!all && !decides(comparators, place.number)) continue;
        out.push_back(write_step(byte_offset(place.number), wanted.get(place.number).value_or(0) & access.mask,
                                 place.name, std::string(place.title)));
    }
    Etmcr cr = wanted.cr;
    cr.programming = cr.power_down = false;
    out.push_back(write_step(control, to_value(cr), "ETMCR", "start: the Programming bit is 0"));
    return out;
}

flow::ComponentProgram program_of(const Registers& wanted, bool all) {
    flow::ComponentProgram out;
    out.needs = needs_of(wanted);
    add_driver_files(wanted, all, out);
    const auto add = [&](std::vector<RegisterStep>& to, unsigned number, std::uint32_t value, const char* name,
                         const char* why) {
        if (register_access(wanted, number).writable) to.push_back(write_step(byte_offset(number), value, name, why));
    };
    add(out.enable, management::lar, flow::UnitLocks::unlock_key, "ETMLAR", "open the software lock");
    // Switching power on sets the OS Lock again, so power comes first.
    add(out.enable, management::pdcr, keeps_power, "ETMPDCR", "turn the unit's power on, and keep it on");
    if (register_access(wanted, management::pdcr).writable)
        out.enable.push_back(wait_step(byte_offset(management::pdsr), 1, 1, "ETMPDSR", "until it has power"));
    add(out.enable, management::oslar, 0, "ETMOSLAR", "open the OS Lock: anything but the key");
    for (RegisterStep& step : program_steps(wanted, all)) out.enable.push_back(std::move(step));
    const unsigned control = byte_offset(Etmcr::number), status = byte_offset(Etmsr::number);
    out.enable.push_back(wait_step(status, in_effect, 0, "ETMSR", "until the Programming bit has no effect any more"));

    Etmcr stopped = wanted.cr;
    stopped.programming = true;
    stopped.power_down = false;
    out.disable.push_back(write_step(control, to_value(stopped), "ETMCR", "stop; what is pending is sent"));
    out.disable.push_back(wait_step(status, in_effect, in_effect, "ETMSR", "until all was sent"));
    stopped.power_down = true;
    out.release.push_back(write_step(control, to_value(stopped), "ETMCR", "the unit may sleep"));
    add(out.release, management::pdcr, 0, "ETMPDCR", "the power of the unit may go");
    add(out.release, management::lar, 0, "ETMLAR", "set the software lock");
    return out;
}

Registers found_registers(const Registers& unit, std::uint64_t seed) {
    Registers out = unit;
    std::mt19937_64 random(seed);
    for (const RegisterPlace& place : register_places()) {
        const RegisterAccess access = register_access(unit, place.number);
        if (access.writable && place.number < management::oslar)
            out.set(place.number, static_cast<std::uint32_t>(random()) & access.mask);
    }
    out.cr.programming = true;
    return out;
}

}  // namespace waymark::pft
