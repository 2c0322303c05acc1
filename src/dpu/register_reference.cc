#include "waymark/dpu/register_reference.h"

#include <fmt/format.h>

#include "waymark/dpu/registers.h"

namespace waymark::dpu {

namespace {

/// What each field means (docs/spec/dpu.md, sections 3.2 to 3.4).
constexpr RegisterMeaning meanings[] = {
    {"DP_CR", "What events do: interrupt lines, or a request to enter Debug state."},
    {"DP_CR.TIDCM",
     "what id_match compares: 0 nothing, always a match; 1 the program ID with DP_RPID; 2 the data ID with "
     "DP_RDID; 3 both"},
    {".ISEDCA5", "interrupt on an event of detection channel 5: 0 none; 1 line 0; 2 line 1; 3 both"},
    {".ISEDCA4", "interrupt on an event of detection channel 4: as ISEDCA5"},
    {".ISEDCA3", "interrupt on an event of detection channel 3: as ISEDCA5"},
    {".ISEDCA2", "interrupt on an event of detection channel 2: as ISEDCA5"},
    {".ISEDCA1", "interrupt on an event of detection channel 1: as ISEDCA5"},
    {".ISEDCA0", "interrupt on an event of detection channel 0: as ISEDCA5"},
    {".EIS", "interrupt on a request of the EOnCE: as ISEDCA5"},
    {".DETB", "what the trace event does: 0 nothing; 1 interrupt line 0; 2 interrupt line 1; 3 debug request"},
    {".DECB2", "what the event of counter B2 does: as DETB"},
    {".DECB1", "what the event of counter B1 does: as DETB"},
    {".DECB0", "what the event of counter B0 does: as DETB"},
    {".DECA2", "what the event of counter A2 does: as DETB"},
    {".DECA1", "what the event of counter A1 does: as DETB"},
    {".DECA0", "what the event of counter A0 does: as DETB"},
    {"DP_SR", "Read-only."},
    {".TWBA", "1: the trace write buffer holds something that is not in memory yet"},
    {".ENCB2", "1: counter B2 is enabled"},
    {".ENCB1", "1: counter B1 is enabled"},
    {".ENCB0", "1: counter B0 is enabled"},
    {".ENCA2", "1: counter A2 is enabled"},
    {".ENCA1", "1: counter A1 is enabled"},
    {".ENCA0", "1: counter A0 is enabled"},
    {"DP_MR", "What happened. Writing 1 clears a bit; an interrupt line stays asserted until its causes are cleared."},
    {".TLOST", "1: at least one trace entry was lost; an extension of Waymark"},
    {".TWRAP", "1: the write pointer wrapped at least once; an extension of Waymark"},
    {".TBF", "1: the trace write buffer is full now; read-only"},
    {".DRA", "1: debug request from outside"},
    {".DRN", "1: debug request of NEXUS"},
    {".DRTB", "1: the trace event made its request"},
    {".DRCB2", "1: the event of counter B2 made its request"},
    {".DRCB1", "1: the event of counter B1 made its request"},
    {".DRCB0", "1: the event of counter B0 made its request"},
    {".DRCA2", "1: the event of counter A2 made its request"},
    {".DRCA1", "1: the event of counter A1 made its request"},
    {".DRCA0", "1: the event of counter A0 made its request"},
    {"DP_RPID.value", "the program ID that id_match compares"},
    {"DP_RDID.value", "the data ID that id_match compares"},
    {"DP_TAC", "Control of the counters A0 to A2 together, if TCEN is 1."},
    {"DP_TBC", "Control of the counters B0 to B2 together, if TCEN is 1."},
    {".TDMP",
     "when the disable event counts: 0 always; 1 in user mode with id_match; 2 in supervisor mode with "
     "id_match; 3 with id_match"},
    {".DMP",
     "when the disable event counts: 0 always; 1 in user mode with id_match; 2 in supervisor mode with id_match; "
     "3 with id_match"},
    {".TDM",
     "event that disables: 0 none; 1 to 6 detection channels 0 to 5; 7 data channel; 8 MARK; 9 DEBUGEV; 15 at "
     "once"},
    {".DM",
     "event that disables: 0 none; 1 to 6 detection channels 0 to 5; 7 data channel; 8 MARK; 9 DEBUGEV; 15 at "
     "once"},
    {".TENMP", "when the enable event counts: as TDMP"},
    {".ENMP", "when the enable event counts: as DMP"},
    {".TENM", "event that enables: as TDM"},
    {".ENM", "event that enables: as DM"},
    {".CEGP",
     "which events are counted: 0 all; 1 in user mode with id_match; 2 in supervisor mode with id_match; 3 with "
     "id_match"},
    {".CEG", "the set of events that the counters count, by its number (docs/spec/dpu.md, section 8)"},
    {".CMODE", "0: one-shot, stops at its event; 1: trace, counts on and is read at each entry"},
    {".TCEN", "1: this register controls its three counters; 0: each obeys its own register"},
    {"DP_CA0C",
     "Control of one counter, while DP_TAC.TCEN is 0. The counter's place in its triad selects the event of "
     "the set."},
    {"DP_CA0V.value", "what the counter holds; it counts down. Write the start value while it is disabled"},
    {"DP_CA1V.value", "as DP_CA0V"},
    {"DP_CA2V.value", "as DP_CA0V"},
    {"DP_CB0V.value", "as DP_CA0V"},
    {"DP_CB1V.value", "as DP_CA0V"},
    {"DP_CB2V.value", "as DP_CA0V"},
    {"DP_TC", "What is traced, and how it goes to memory. TMODE, VTBWM, TIDS and NXMODE are written while EN is 0."},
    {".NXMODE",
     "NEXUS, an extension of Waymark: 0 off; 1 it mirrors what goes to memory; 2 it has the raw words of the "
     "EOnCE; 3 nothing goes to memory"},
    {".PROV", "privilege of the writes to memory: 0 user; 1 supervisor"},
    {".GLOBAL", "global attributes of the writes to memory, handed to the bus"},
    {".BURST-SIZE", "lines in a burst: 0 one; 1 two; 2 four; 3 eight"},
    {".TMPDIS", "1: tracing is held, and the write buffer is emptied; what happens meanwhile is in no entry"},
    {".IDFLT", "1: entries only where id_match holds before or after; an extension of Waymark"},
    {".CTXEN", "1: an entry with the context when tracing is enabled and behind each gap; an extension of Waymark"},
    {".VTBWM", "at the end of the buffer: 0 overwrite the oldest; 1 stay at one address; 2 request the trace event"},
    {".UDEN", "1: writes to DP_TD make entries in every mode; an extension of Waymark"},
    {".SAMPLE", "writing 1 samples all counters now; reads as 0"},
    {".TIDS", "the task ID of entries: 0 program ID; 1 data ID; an extension of Waymark"},
    {".TMODE",
     "0 words of the EOnCE; 1 the same, compressed; 2 task switches; 3 subroutines and interrupts; 4 samples "
     "when SAMPLE is written; 5 samples at events of detection channel 5; 6 user data; 7 user data unframed"},
    {".EN", "1: tracing is on; stays 0 if the buffer's addresses make no sense"},
    {"DP_TSA", "Address of the first line of the trace buffer in memory; lines have 32 bytes."},
    {"DP_TSA.value", "the address divided by 32"},
    {"DP_TEA", "Address of the last line of the trace buffer in memory."},
    {"DP_TEA.value", "the address divided by 32"},
    {"DP_TER.value", "an address in the line that requests the trace event when it is written"},
    {"DP_TW",
     "Address of the next line to be written. Write DP_TSA to it, and zeroes to the buffer, before the first "
     "EN."},
    {"DP_TW.value", "the address divided by 32"},
    {"DP_TD.value", "writing it makes an entry with the value, while tracing is on and TMPDIS is 0"},
};

}  // namespace

UnitReference register_reference() {
    UnitReference out{"Debug and Profiling Unit (DPU)", "dpu", "dpu", {}};
    const Registers all;
    Registers::for_each(all, [&]<class Register>(const Register&) {
        out.registers.push_back(reference_of<Register>(fmt::format("{:#04x}", Register::offset), meanings));
    });
    return out;
}

}  // namespace waymark::dpu
