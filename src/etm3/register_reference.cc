#include "waymark/etm3/register_reference.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/etm3/registers.h"
#include "waymark/pft/register_reference.h"

namespace waymark::etm3 {

namespace {

/// What fields mean that a PTM lacks, or that mean something else there (docs/spec/etmv3.md, 1 and 13).
constexpr RegisterMeaning own_meanings[] = {
    {"ETMCR.VMID trace enable", "1: VMIDs are traced"},
    {"ETMCR.processor select", "number of the processor that is traced, of an ETM that several share"},
    {"ETMCR.port size[3]", "with port size[2:0]: at 1 the port has 1 or 2 bits"},
    {"ETMCR.data-only mode", "1: no instructions are traced, and I-syncs have no address"},
    {"ETMCR.port mode", "0 normal; 1 multiplexed; 2 demultiplexed. It concerns the pins only"},
    {"ETMCR.half-rate clocking", "1: the trace port is clocked at half the rate"},
    {"ETMCR.cycle-accurate", "1: cycles are traced, and P-headers have other formats"},
    {"ETMCR.port enabled", "1: the trace port is on"},
    {"ETMCR.Programming bit",
     "1: the ETM does not trace and its registers may be written; wait until ETMSR bit 1 is 1 after setting it, and 0 "
     "after clearing it"},
    {"ETMCR.branch output", "1: an address packet for each taken branch, direct ones too"},
    {"ETMCR.stall processor", "1: the processor is stalled when the FIFO is nearly full"},
    {"ETMCR.port size[2:0]", "bits of the port: 0 4; 1 8; 2 16; 3 24; 4 32; 5 48; 6 64"},
    {"ETMCR.data address tracing", "1: addresses of loads and stores are traced"},
    {"ETMCR.data value tracing", "1: values of loads and stores are traced"},
    {"ETMCR.coprocessor transfers", "1: transfers of coprocessor registers are traced beside loads and stores"},
    {"ETMCR.power down", "1: the ETM is off; nothing is traced"},
    {"ETMSCR.no fetch comparisons", "1: address comparators compare executed instructions, not fetches"},
    {"ETMSCR.processors less one", "number of processors that share the ETM, less one"},
    {"ETMSR.trigger seen", "1: the trigger event has happened since the ETM was last programmed"},
    {"ETMSR.Programming bit in effect", "1: the ETM has stopped and its registers may be written"},
    {"ETMTECR1", "Which code is traced, together with ETMTECR2. 0x01000000 excludes nothing."},
    {"ETMTECR1.exclude",
     "0: only instructions of the selected ranges and at the selected addresses are traced; 1: all but these"},
    {"ETMTECR2", "Single addresses that ETMTECR1 includes or excludes. Write 0 to trace by ranges alone."},
    {"ETMTECR2.address comparators", "bit n: address comparator n + 1"},
    {"ETMACVR.value", "the address that is compared with each instruction"},
    {"ETMACTR.exact match",
     "1: the comparator waits for what becomes of the instruction; it matters for exceptions and data values"},
    {"ETMACTR.data value comparison", "0 none; 1 the value must match; 3 the value must not match"},
    {"ETMACTR.access size",
     "of a single comparator: 0 every bit of the address counts; 1 all but bit 0, for Thumb; 3 all but bits 1:0, for "
     "ARM"},
    {"ETMACTR.access type",
     "instruction: 0 fetch; 1 execute; 2 and 3 execute with its condition true, false; data: 4 load or store; 5 load; "
     "6 store"},
    {"ETMIDR.alternative branch encoding", "1: branch addresses have the alternative encoding; from ETMv3.4 on"},
    {"ETMIDR.Security Extensions", "1: the processor has them"},
    {"ETMIDR.32-bit Thumb traced as one instruction", "1: it is one instruction; 0: two"},
    {"ETMIDR.major version", "2: ETMv3"},
    {"ETMIDR.minor version", "the x of ETMv3.x"},
    {"ETMEIBCR.latched watchpoints", "bit n: EmbeddedICE watchpoint n + 1 stays true until the next instruction"},
};

/// Own rows first, then the rows of the PTM for what both units have.
std::vector<RegisterMeaning> all_meanings() {
    std::vector<RegisterMeaning> out(std::begin(own_meanings), std::end(own_meanings));
    constexpr std::array<std::string_view, 8> of_ptm_alone{"ETMCR.return stack enable",
                                                           "ETMCR.instrumentation resource access control",
                                                           "ETMCR.branch broadcast",
                                                           "ETMIDR.branch packet encoding",
                                                           "ETMIDR.family",
                                                           "ETMCCER.DMB and DSB generate timestamps",
                                                           "ETMCCER.DMB and DSB are waypoints",
                                                           "ETMCCER.return stack implemented"};
    for (const RegisterMeaning& row : pft::register_meanings()) {
        const bool own = std::any_of(out.begin(), out.end(), [&](const auto& other) { return other.name == row.name; });
        const bool foreign = std::find(of_ptm_alone.begin(), of_ptm_alone.end(), row.name) != of_ptm_alone.end();
        if (!own && !foreign && !row.name.starts_with("ETMAUXCR")) out.push_back(row);
    }
    return out;
}

}  // namespace

UnitReference register_reference() {
    static const std::vector<RegisterMeaning> meanings = all_meanings();
    UnitReference out{"Embedded Trace Macrocell v3 (ETMv3), for instruction trace", "etm3", "etmv3", {}};
    etm3::for_each_place(tracing_registers(), [&]<class Register>(const Register&, const pft::RegisterPlace& its) {
        std::string place = fmt::format("register {:#04x}, offset {:#05x}", its.number, 4 * its.number);
        const bool again = !out.registers.empty() && out.registers.back().name == Register::name;
        if (again) return out.registers.back().places.push_back(std::move(place));
        out.registers.push_back(reference_of<Register>(std::move(place), meanings));
        out.registers.back().first = 1;
        // Bits that only a PTM uses.
        std::erase_if(out.registers.back().fields, [](const FieldReference& f) { return f.meaning.empty(); });
    });
    return out;
}

}  // namespace waymark::etm3
