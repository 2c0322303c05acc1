#include "programming.h"

#include <fmt/format.h>

#include <random>
#include <string>

#include "waymark/etm4/access.h"

namespace waymark::etm4 {

namespace {

using flow::RegisterStep, flow::wait_step, flow::write_step;

/// The resource group of single address comparators (1.4).
constexpr unsigned address_group = 4;
/// A bit for each address comparator that some resource uses.
std::uint32_t used_comparators(const Registers& r) {
    std::uint32_t used = r.vissctlr.start | std::uint32_t{r.vissctlr.stop};
    for (unsigned pair = 0; pair < 8; ++pair)
        if (((r.viiectlr.include | r.viiectlr.exclude | r.bbctlr.range | r.qctlr.range) >> pair & 1U) != 0)
            used |= 3U << 2 * pair;
    for (const Trcrsctlr& selector : r.rsctlr)
        if (selector.group == address_group) used |= selector.select;
    return used;
}

/// Whether a register decides which code is traced.
bool decides(const Registers& r, std::uint32_t comparators, unsigned offset) {
    if (offset <= last_control) return true;
    const auto of_used = [&](unsigned base) {
        return offset >= base && offset < base + 8 * 16 && (comparators >> (offset - base) / 8 & 1U) != 0;
    };
    if (of_used(Trcacvr::offset) || of_used(Trcacatr::offset)) return true;
    return offset >= Trcrsctlr::offset && offset < Trcssccr::offset && r.get(offset).value_or(0) != 0;
}

std::string name_of(const RegisterPlace& place, unsigned offset) {
    return place.name + (place.bytes == 4 ? "" : offset == place.offset ? "[31:0]" : "[63:32]");
}

std::vector<std::string> needs_of(const Registers& r) {
    std::vector<std::string> out;
    const auto need = [&](bool needed, std::string_view what) {
        if (needed) out.emplace_back(what);
    };
    need(r.configr.bb, "TRCIDR0.TRCBB (bit 5) is 1: branch broadcast");
    need(r.configr.cci, "TRCIDR0.TRCCCI (bit 7) is 1: cycle counting");
    need(r.configr.rs, "TRCIDR0.RETSTACK (bit 9) is 1: the return stack");
    need(r.configr.ts, "TRCIDR0.TSSIZE (bits 28:24) is not 0: timestamps");
    need(r.configr.qe != 0, "TRCIDR0.QSUPP (bits 16:15) is not 0: Q elements");
    need(r.configr.cid, "TRCIDR2.CIDSIZE (bits 9:5) is not 0: Context IDs");
    need(r.configr.vmid, "TRCIDR2.VMIDSIZE (bits 14:10) is not 0: VMIDs");
    if (r.configr.cci)
        out.push_back(fmt::format("TRCIDR3.CCITMIN (bits 11:0) is at most {}: the threshold of cycle counts",
                                  r.ccctlr.threshold));
    unsigned pairs = 0, selectors = 0;
    for (unsigned n = 0; n < 16; ++n)
        if ((used_comparators(r) >> n & 1U) != 0) pairs = n / 2 + 1;
    for (unsigned n = 0; n < r.rsctlr.size(); ++n)
        if (to_value(r.rsctlr[n]) != 0) selectors = (n + 2) / 2;
    if (pairs != 0)
        out.push_back(fmt::format("TRCIDR4.NUMACPAIRS (bits 3:0) is at least {}: address comparators", pairs));
    if (selectors != 0)
        out.push_back(fmt::format("TRCIDR4.NUMRSPAIR (bits 19:16) is at least {}: resource selectors", selectors));
    need(r.eventctl1r.atb, "TRCIDR5.ATBTRIG (bit 22) is 1: event 0 triggers the trace bus");
    need(r.devarch.archver == 5,
         "an interface of the unit to the debug bus: software can reach an ETE only by MRS and MSR");
    if (r.oslsr.oslm_high == 2)
        out.emplace_back("the processor's OS Lock is clear (OSLAR_EL1), which governs this unit");
    return out;
}

/// Bits of the file `mode` of Linux's driver, as in the driver's sysfs reference.
namespace driver_mode {
constexpr std::uint32_t branch_broadcast = 1U << 4, cycle_accurate = 1U << 5, context_id = 1U << 6, vmid = 1U << 7,
                        timestamps = 1U << 11, return_stack = 1U << 12, q_elements = 13, start_stop = 1U << 27;
}

/// Adds the files of Linux's driver that set these registers.
void add_driver_files(const Registers& r, flow::ComponentProgram& out) {
    const auto put = [&](const char* file, std::string value) { out.driver_files.push_back({file, std::move(value)}); };
    const auto hex = [](std::uint64_t value) { return fmt::format("{:#x}", value); };
    put("reset", "1");
    std::uint32_t mode = std::uint32_t{r.configr.qe} << driver_mode::q_elements;
    if (r.configr.bb) mode |= driver_mode::branch_broadcast;
    if (r.configr.cci) mode |= driver_mode::cycle_accurate;
    if (r.configr.cid) mode |= driver_mode::context_id;
    if (r.configr.vmid) mode |= driver_mode::vmid;
    if (r.configr.ts) mode |= driver_mode::timestamps;
    if (r.configr.rs) mode |= driver_mode::return_stack;
    // Without this bit the driver resets TRCVICTLR.SSSTATUS, and nothing is traced.
    if (r.victlr.ssstatus) mode |= driver_mode::start_stop;
    put("mode", hex(mode));
    put("syncfreq", hex(r.syncpr.period));
    if (r.configr.cci) put("cyc_threshold", hex(r.ccctlr.threshold));
    for (unsigned pair = 0; pair < 8; ++pair) {
        const bool include = (r.viiectlr.include >> pair & 1U) != 0, exclude = (r.viiectlr.exclude >> pair & 1U) != 0;
        if (!include && !exclude) continue;
        put("addr_idx", hex(2 * pair));
        put("addr_range",
            fmt::format("{:#x} {:#x} {}", r.acvr[2 * pair].address, r.acvr[2 * pair + 1].address, exclude ? 1 : 0));
    }
    for (unsigned n = 0; n < r.rsctlr.size(); ++n) {
        if (to_value(r.rsctlr[n]) == 0) continue;
        for (unsigned comparator = 0; comparator < 16; ++comparator) {
            if (r.rsctlr[n].group != address_group || (r.rsctlr[n].select >> comparator & 1U) == 0) continue;
            put("addr_idx", hex(comparator));
            put("addr_single", hex(r.acvr[comparator].address));
        }
        put("res_idx", hex(n + 2));
        put("res_ctrl", hex(to_value(r.rsctlr[n])));
    }
    if (to_value(r.eventctl0r) != 0) {
        put("event", hex(to_value(r.eventctl0r)));
        put("event_instren", hex(r.eventctl1r.insten));
    }
}

}  // namespace

std::vector<RegisterStep> program_steps(const Registers& wanted, bool all) {
    std::vector<RegisterStep> out;
    out.push_back(
        write_step(Trcprgctlr::offset, 0, "TRCPRGCTLR", "stop: registers can be written only while the unit is idle"));
    out.push_back(wait_step(Trcstatr::offset, 1, 1, "TRCSTATR", "until IDLE is 1"));
    const std::uint32_t comparators = used_comparators(wanted);
    for (const RegisterPlace& place : register_places())
        for (unsigned offset = place.offset; offset < place.offset + place.bytes; offset += 4) {
            const WordAccess access = word_access(wanted, offset);
            // The upper words of many 64-bit registers have no fields.
            const bool empty = access.mask == 0 && offset != place.offset;
            if (!access.writable || access.always || empty || !(all || decides(wanted, comparators, offset))) continue;
            out.push_back(write_step(offset, wanted.get(offset).value_or(0) & access.mask, name_of(place, offset),
                                     std::string(place.title)));
        }
    out.push_back(write_step(Trcprgctlr::offset, 1, "TRCPRGCTLR", "start"));
    return out;
}

flow::ComponentProgram program_of(const Registers& wanted, bool all) {
    flow::ComponentProgram out;
    out.needs = needs_of(wanted);
    add_driver_files(wanted, out);
    const auto add = [&](unsigned offset, std::uint32_t value, const char* name, const char* why) {
        if (word_access(wanted, offset).writable) out.enable.push_back(write_step(offset, value, name, why));
    };
    add(Trclar::offset, flow::UnitLocks::unlock_key, "TRCLAR", "open the software lock");
    // Switching power on sets the OS Lock again, so power comes first (2.1).
    add(Trcpdcr::offset, 1U << 3, "TRCPDCR", "PU: turn the unit's power on, and keep it on");
    if (word_access(wanted, Trcpdcr::offset).writable)
        out.enable.push_back(wait_step(Trcpdsr::offset, 1, 1, "TRCPDSR", "until POWER is 1"));
    add(Trcoslar::offset, 0, "TRCOSLAR", "open the OS Lock");
    for (RegisterStep& step : program_steps(wanted, all)) out.enable.push_back(std::move(step));
    out.enable.push_back(wait_step(Trcstatr::offset, 1, 0, "TRCSTATR", "until IDLE is 0: it traces"));

    out.disable.push_back(write_step(Trcprgctlr::offset, 0, "TRCPRGCTLR", "stop; what is pending is sent"));
    out.disable.push_back(wait_step(Trcstatr::offset, 1, 1, "TRCSTATR", "until IDLE is 1: all was sent"));
    if (word_access(wanted, Trcpdcr::offset).writable)
        out.release.push_back(write_step(Trcpdcr::offset, 0, "TRCPDCR", "the power of the unit may go"));
    if (word_access(wanted, Trclar::offset).writable)
        out.release.push_back(write_step(Trclar::offset, 0, "TRCLAR", "set the software lock"));
    return out;
}

Registers found_registers(const Registers& unit, std::uint64_t seed) {
    Registers out = unit;
    std::mt19937_64 random(seed);
    for (const RegisterPlace& place : register_places())
        for (unsigned offset = place.offset; offset < place.offset + place.bytes; offset += 4) {
            const WordAccess access = word_access(unit, offset);
            if (access.writable && !access.always) out.set(offset, static_cast<std::uint32_t>(random()) & access.mask);
        }
    return out;
}

}  // namespace waymark::etm4
