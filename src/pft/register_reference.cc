#include "waymark/pft/register_reference.h"

#include <fmt/format.h>

#include <string_view>

#include "waymark/pft/access.h"

namespace waymark::pft {

namespace {

/// What each field means (docs/spec/pft.md, sections 3 and 5.6).
constexpr RegisterMeaning meanings[] = {
    // The parts of an event are the same in all event registers.
    {".function",
     "of the resources A and B: 0 A; 1 not A; 2 A and B; 3 not A and B; 4 not A and not B; 5 A or B; 6 not "
     "A or B; 7 not A or not B"},
    {".resource B type", "as resource A type"},
    {".resource B index", "as resource A index"},
    {".resource A type",
     "0 address comparators; 1 address ranges (0 to 7) and instrumentation resources (8 to 11); 2 "
     "EmbeddedICE watchpoints; 4 counters at zero; 5 sequencer states (0 to 2), Context ID "
     "comparators (8 to 10), VMID comparator (11), start/stop block (15); 6 external inputs (0 to "
     "3), extended external inputs (8 to 11), Non-secure state (13), trace prohibited (14), always "
     "true (15)"},
    {".resource A index", "number of the resource in its type, from 0"},

    {"ETMCR",
     "Turns tracing on and off and says what the trace has. It decides how the bytes are read, so save it with "
     "the capture; bit 10 is often set there, for it was read after stopping."},
    {"ETMCR.VMID trace enable", "1: VMIDs are traced; needs PFTv1.1 and the Virtualization Extensions"},
    {"ETMCR.return stack enable",
     "1: a return to the address behind its call needs no address packet; never together "
     "with branch broadcast"},
    {"ETMCR.timestamp enable", "1: timestamps"},
    {"ETMCR.processor select", "number of the processor that is traced, of a macrocell that several share"},
    {"ETMCR.instrumentation resource access control", "1: only privileged code may write instrumentation resources"},
    {"ETMCR.ContextIDSize", "bytes of a Context ID in the trace: 0 none, 1 one, 2 two, 3 four"},
    {"ETMCR.cycle-accurate", "1: each waypoint comes with the cycles since the one before"},
    {"ETMCR.Programming bit",
     "1: the macrocell does not trace and its registers may be written; wait until ETMSR bit 1 "
     "is 1 after setting it, and 0 after clearing it"},
    {"ETMCR.debug request control", "1: the trigger event asks the processor to enter Debug state"},
    {"ETMCR.branch broadcast", "1: an address packet for each taken branch, direct ones too"},
    {"ETMCR.power down", "1: the macrocell is off; nothing is traced"},
    {"ETMCCR", "Read-only: how many resources there are."},
    {"ETMCCR.ETMIDR implemented", "1: ETMIDR is there"},
    {"ETMCCR.start/stop block", "1: the TraceEnable start/stop block is there"},
    {"ETMCCR.Context ID comparators", "their number"},
    {"ETMCCR.FIFOFULL logic", "1: the processor can be stalled"},
    {"ETMCCR.external outputs", "their number"},
    {"ETMCCR.external inputs", "their number"},
    {"ETMCCR.sequencer", "1: it is there"},
    {"ETMCCR.counters", "their number"},
    {"ETMCCR.memory map decoders", "their number"},
    {"ETMCCR.data value comparators", "their number"},
    {"ETMCCR.address comparator pairs", "their number"},
    {"ETMTRIGGER", "The event that makes a trigger packet and asserts the trigger output. 0x406f: never."},
    {"ETMSR.trigger seen", "1: the trigger event has happened since the macrocell was last programmed"},
    {"ETMSR.start/stop block on", "state of the start/stop block; may be written to restore it"},
    {"ETMSR.Programming bit in effect", "1: the macrocell has stopped and its registers may be written"},
    {"ETMSR.untraced overflow", "1: an overflow that the trace has not shown yet"},
    {"ETMSCR", "Read-only: what the system around the macrocell supports."},
    {"ETMSCR.no fetch comparisons", "1: address comparators compare executed instructions, not fetches"},
    {"ETMSCR.processors less one", "number of processors that share the macrocell, less one"},
    {"ETMTSSCR", "Comparators that turn the start/stop block on and off; it counts if ETMTECR1 says that it is used."},
    {"ETMTSSCR.stop comparators", "bit n: address comparator n + 1 turns it off"},
    {"ETMTSSCR.start comparators", "bit n: address comparator n + 1 turns it on"},
    {"ETMTEEVR", "Tracing is on while this event is true, and start/stop block and ranges agree. 0x006f: always."},
    {"ETMTECR1", "Which code is traced. 0x01000000 excludes nothing."},
    {"ETMTECR1.start/stop block used", "1: tracing also needs the start/stop block to be on"},
    {"ETMTECR1.exclude",
     "0: only the selected ranges are traced, whole blocks that touch them; 1: all but blocks wholly "
     "inside them"},
    {"ETMTECR1.address range comparators", "bit n: the range of address comparators 2n + 1 and 2n + 2"},
    {"ETMFFLR.value", "bytes free in the FIFO below which the processor is stalled, where it can be"},
    {"ETMACVR.value", "the address that is compared, at waypoints, with the block that ends there"},
    {"ETMACTR",
     "What must hold beside the address. The two bits of a state's control: 0 match; 1 no match; 2 match when "
     "privileged; 3 match in User mode."},
    {"ETMACTR.VMID comparator", "1: the VMID comparator must match too"},
    {"ETMACTR.Hyp mode control", "1: no match in Hyp mode"},
    {"ETMACTR.Non-secure control[1]", "high bit of the control for Non-secure state"},
    {"ETMACTR.Secure control[1]", "high bit of the control for Secure state"},
    {"ETMACTR.Non-secure control[0]", "low bit of the control for Non-secure state"},
    {"ETMACTR.Secure control[0]", "low bit of the control for Secure state"},
    {"ETMACTR.Context ID comparator", "0: any Context ID; n: comparator n must match too"},
    {"ETMACTR.access type", "1: instruction execute; a PTM has no other"},
    {"ETMCNTRLDVR.value", "the value that the counter takes when it is reloaded"},
    {"ETMCNTENR", "The event during which a counter counts down, each cycle. 0x2406f: never."},
    {"ETMCNTENR.enabled by the event", "1: it counts while the event is true; 0: always"},
    {"ETMCNTRLDEVR", "The event that reloads the counter. 0x406f: never."},
    {"ETMCNTVR.value", "what the counter holds"},
    {"ETMSQEVR",
     "The events that move the sequencer, in this order: from state 1 to 2, 2 to 1, 2 to 3, 3 to 1, 3 to 2, 1 "
     "to 3."},
    {"ETMSQR.value", "state of the sequencer, from 0 for state 1"},
    {"ETMEXTOUTEVR", "The event during which an external output is asserted."},
    {"ETMCIDCVR.value", "the Context ID that is compared"},
    {"ETMCIDCMR.value", "bits that are 1 are not compared"},
    {"ETMSYNCFR.value", "bytes between periodic synchronisation; 0: none; 1024 after reset"},
    {"ETMIDR", "Read-only: the version. It decides how the bytes are read, so save it with the capture."},
    {"ETMIDR.implementer", "0x41: Arm"},
    {"ETMIDR.branch packet encoding", "reads as 1"},
    {"ETMIDR.Security Extensions", "0: the processor behaves as always Secure"},
    {"ETMIDR.32-bit Thumb traced as one instruction", "1: it is one instruction"},
    {"ETMIDR.family", "15: no processor family is named"},
    {"ETMIDR.major version", "3: Program Flow Trace version 1"},
    {"ETMIDR.minor version", "0: PFTv1.0, whose timestamps have 48 bits in Gray code; 1: PFTv1.1"},
    {"ETMIDR.revision", "revision of the implementation"},
    {"ETMCCER",
     "Read-only: more about what is implemented. It decides how the bytes are read, so save it with the "
     "capture."},
    {"ETMCCER.64-bit timestamps", "1: timestamps have up to 64 bits; 0: 48"},
    {"ETMCCER.natural binary timestamps", "1: they count in natural binary; 0: in Gray code"},
    {"ETMCCER.counter 1 is a reduced-function counter", "1: it is"},
    {"ETMCCER.Virtualization Extensions", "1: implemented"},
    {"ETMCCER.DMB and DSB generate timestamps", "1: they do"},
    {"ETMCCER.DMB and DSB are waypoints", "1: they are, so each has an atom"},
    {"ETMCCER.return stack implemented", "1: ETMCR bit 29 can be set"},
    {"ETMCCER.timestamping implemented", "1: ETMCR bit 28 can be set"},
    {"ETMCCER.EmbeddedICE", "options of the EmbeddedICE watchpoint inputs"},
    {"ETMCCER.instrumentation resources", "their number"},
    {"ETMCCER.read as one", "reads as 1"},
    {"ETMCCER.registers readable", "1: all registers can be read"},
    {"ETMCCER.extended external input bus", "number of its inputs"},
    {"ETMCCER.extended external input selectors", "their number"},
    {"ETMEXTINSELR", "Which input of the extended external input bus each selector gives."},
    {".selector 4", "number of the input that is extended external input 4"},
    {".selector 3", "number of the input that is extended external input 3"},
    {".selector 2", "number of the input that is extended external input 2"},
    {".selector 1", "number of the input that is extended external input 1"},
    {"ETMTESSEICR.stop watchpoints", "bit n: EmbeddedICE watchpoint n + 1 turns the start/stop block off"},
    {"ETMTESSEICR.start watchpoints", "bit n: EmbeddedICE watchpoint n + 1 turns the start/stop block on"},
    {"ETMEIBCR.latched watchpoints", "bit n: EmbeddedICE watchpoint n + 1 stays true until the next waypoint"},
    {"ETMTSEVR", "The event that asks for a timestamp. 0x406f: never."},
    {"ETMAUXCR", "As the Cortex-A15 has it."},
    {"ETMAUXCR.no timestamps on exception entry and return", "1: there are none"},
    {"ETMAUXCR.no timestamps on barriers", "1: there are none"},
    {"ETMAUXCR.no forced overflow", "1: the macrocell does not force an overflow"},
    {"ETMTRACEIDR.trace ID", "the source's number on the trace bus, 0x01 to 0x6f, different for each source"},
    {"ETMVMIDCVR.value", "the VMID that is compared"},
};

}  // namespace

std::span<const RegisterMeaning> register_meanings() { return meanings; }

UnitReference register_reference() {
    UnitReference out{"Program Trace Macrocell (PTM)", "ptm", "pft", {}};
    const Registers all;
    for_each_place(all, [&]<class Register>(const Register&, const RegisterPlace& its) {
        if (!register_access(all, its.number).present) return;
        std::string place = fmt::format("register {:#04x}, offset {:#05x}", its.number, 4 * its.number);
        const bool again = !out.registers.empty() && out.registers.back().name == Register::name;
        if (again) return out.registers.back().places.push_back(std::move(place));
        out.registers.push_back(reference_of<Register>(std::move(place), meanings));
        out.registers.back().first = 1;
    });
    return out;
}

}  // namespace waymark::pft
