#include "waymark/sink/register_reference.h"

#include <fmt/format.h>

#include <utility>

#include "waymark/sink/bus.h"
#include "waymark/sink/cti.h"
#include "waymark/sink/tmc.h"
#include "waymark/sink/tpiu.h"

namespace waymark::sink {

namespace {

RegisterReference reference(std::uint32_t offset, std::string_view title, std::string_view purpose,
                            std::vector<FieldReference> fields) {
    return {Tmc::register_name(offset), title, {fmt::format("{:#05x}", offset)}, 32, purpose, std::move(fields)};
}
RegisterReference on_bus(std::string_view name, std::uint32_t offset, std::string_view title, std::string_view purpose,
                         std::vector<FieldReference> fields) {
    return {name, title, {fmt::format("{:#05x}", offset)}, 32, purpose, std::move(fields)};
}
/// A row of registers, one for each trigger.
RegisterReference row(std::string_view name, std::uint32_t first, std::string_view title, std::string_view purpose,
                      std::vector<FieldReference> fields) {
    RegisterReference out{name, title, {}, 32, purpose, std::move(fields)};
    for (unsigned n = 0; n < Cti::most; ++n) out.places.push_back(fmt::format("{:#05x}", first + 4 * n));
    return out;
}
std::vector<FieldReference> whole(std::string_view meaning) { return {{"value", 31, 0, meaning}}; }

}  // namespace

// docs/spec/tmc.md, sections 2 and 3.
UnitReference register_reference() {
    UnitReference out{"Trace buffers: ETB, and TMC as ETB, ETF or ETR", "tmc", "tmc", {}};
    out.registers = {
        reference(Tmc::rsz, "size", "Read-only but in an ETR.", whole("words of 32 bits in the memory")),
        reference(Tmc::sts, "status", "Read-only.",
                  {{"MemErr", 5, 5, "ETR: 1: the memory answered with an error; the formatter has stopped"},
                   {"Empty", 4, 4, "1: there is no trace in the memory; only while CTL.TraceCaptEn is 1"},
                   {"FtEmpty", 3, 3, "1: capture has stopped and the formatter is empty"},
                   {"TMCReady", 2, 2, "1: capture has stopped and everything is in the memory: it may be read"},
                   {"Triggered", 1, 1, "circular mode: 1: the Trigger Event happened in this capture"},
                   {"Full", 0, 0,
                    "circular mode: 1: RWP wrapped, so older trace is gone; it does not say how much. FIFO "
                    "modes: 1: not more than BUFWM words are free"}}),
        reference(Tmc::rrd, "RAM read data", "", whole("the next word of the memory; 0xffffffff: there is none")),
        reference(Tmc::rrp, "RAM read pointer", "An ETB counts words, a TMC bytes; of an ETR it is an address.",
                  whole("where RRD reads next")),
        reference(Tmc::rwp, "RAM write pointer", "An ETB counts words, a TMC bytes; of an ETR it is an address.",
                  whole("where the next word is written; if STS.Full is 1 the oldest trace is there")),
        reference(Tmc::trg, "trigger counter",
                  "Written while capture is off; it is 0 when capture has stopped, so each "
                  "capture needs it anew.",
                  whole("words that are written behind the trigger before the Trigger Event, less one")),
        reference(Tmc::ctl, "control", "",
                  {{"TraceCaptEn", 0, 0,
                    "1: capture. 0 is written once STS.TMCReady is 1: earlier, what the formatter "
                    "holds is lost"}}),
        reference(Tmc::rwd, "RAM write data", "", whole("writes a word into the memory")),
        reference(Tmc::mode, "mode", "Written while capture is off. An older ETB has no such register: it is circular.",
                  {{"mode", 1, 0,
                    "0 circular: the newest trace replaces the oldest; 1 software FIFO: it is read through "
                    "RRD while it fills; 2 hardware FIFO: an ETF hands it on"}}),
        reference(Tmc::lbuflevel, "highest fill", "", whole("words, since this was read last")),
        reference(Tmc::cbuflevel, "fill", "", whole("words in the memory now")),
        reference(Tmc::bufwm, "watermark", "Written while capture is off.",
                  whole("FIFO modes: STS.Full is 1 while not more words than this are free")),
        reference(Tmc::rrphi, "RAM read pointer, high half", "ETR.", whole("bits 63:32 of the address")),
        reference(Tmc::rwphi, "RAM write pointer, high half", "ETR.", whole("bits 63:32 of the address")),
        reference(Tmc::axictl, "bus control", "ETR.",
                  {{"burst length", 11, 8, "longest burst, less one"},
                   {"scatter-gather", 7, 7, "1: DBALO points to a list of pages"},
                   {"non-secure", 1, 1, "1: accesses are Non-secure"}}),
        reference(Tmc::dbalo, "data buffer address, low half", "ETR.",
                  whole("bits 31:0 of the address of the memory, or of the first scatter list")),
        reference(Tmc::dbahi, "data buffer address, high half", "ETR.", whole("bits 63:32 of the address")),
        reference(Tmc::ffsr, "formatter and flush status", "Read-only.",
                  {{"FtStopped", 1, 1, "1: the formatter has stopped"}, {"FlInProg", 0, 0, "1: a flush is going on"}}),
        reference(Tmc::ffcr, "formatter and flush control", "EnFt and EnTI change only while the formatter is stopped.",
                  {{"DrainBuffer", 14, 14, "ETF: writing 1 after capture hands the memory to the next sink"},
                   {"StopOnTrigEvt", 13, 13, "1: the Trigger Event stops capture; circular mode only"},
                   {"StopOnFl", 12, 12, "1: a completed flush stops capture"},
                   {"TrigOnFl", 10, 10, "1: a completed flush is marked in the trace"},
                   {"TrigOnTrigEvt", 9, 9, "1: the Trigger Event is marked in the trace; circular mode only"},
                   {"TrigOnTrigIn", 8, 8, "1: a trigger is marked in the trace"},
                   {"FlushMan", 6, 6, "writing 1 flushes; reads 0 when it is done. To stop by it set StopOnFl first"},
                   {"FOnTrigEvt", 5, 5, "1: the Trigger Event flushes; circular mode only"},
                   {"FOnFlIn", 4, 4, "1: the input FLUSHIN flushes"},
                   {"EnTI", 1, 1, "1: triggers are marked under ID 0x7d; needs EnFt"},
                   {"EnFt", 0, 0,
                    "1: frames of 16 bytes with the ID of each source; 0: bytes as they come, of one "
                    "source"}}),
        reference(Tmc::pscr, "synchronisation", "", whole("distance of frame synchronisations")),
    };
    return out;
}

// docs/spec/trace-bus.md, sections 2 to 4, and docs/spec/cti.md, section 2.
std::vector<UnitReference> path_register_references() {
    std::vector<UnitReference> out;
    out.push_back({"Funnel", "funnel", "trace-bus", {}});
    out.back().registers = {
        on_bus("FUNCTL", BusFunnel::functl, "control", "SoC-400: Ctrl_Reg; SoC-600: FUNNELCONTROL; Linux: funnel_ctrl.",
               {{"hold time", 11, 8, "transfers that an input keeps the bus for, less one; 15 is reserved"},
                {"inputs", 7, 0, "bit n: input n is open; trace that comes to a closed one is lost"}}),
        on_bus(
            "PRICTL", BusFunnel::prictl, "priority",
            "SoC-400: Priority_Ctrl_Reg; SoC-600: PRIORITYCONTROL; Linux: priority. Written while inputs are closed.",
            {{"priorities", 23, 0, "three bits for each input, input 0 in bits 2:0; the lowest value goes first"}})};
    out.push_back({"Replicator", "replicator", "trace-bus", {}});
    for (const auto& [name, offset] :
         {std::pair{"IDFILTER0", BusReplicator::idfilter0}, {"IDFILTER1", BusReplicator::idfilter1}})
        out.back().registers.push_back(
            on_bus(name, offset, offset == 0 ? "filter of output 0" : "filter of output 1", "",
                   {{"IDs", 7, 0, "bit n: the trace IDs 16n to 16n + 15 are left out at this output"}}));
    out.push_back({"Trace port (TPIU)", "tpiu", "trace-bus", {}});
    out.back().registers = {
        on_bus("SSPSR", Tpiu::sspsr, "supported port sizes", "Read-only.",
               whole("bit n - 1: a port of n pins is there")),
        on_bus("CSPSR", Tpiu::cspsr, "current port size", "", whole("exactly one bit: n - 1 for n pins")),
        on_bus("STMR", Tpiu::stmr, "trigger modes", "Read-only.",
               {{"TrgRun", 17, 17, "1: the trigger counter counts"},
                {"Triggered", 16, 16, "1: the trigger event happened"},
                {"TCount8", 8, 8, "1: there is a trigger counter of eight bits"},
                {"multipliers", 4, 0, "the multipliers 2, 4, 16, 256 and 65536 are there"}}),
        on_bus("TCVR", Tpiu::tcvr, "trigger counter value", "",
               {{"value", 7, 0, "words from the trigger to its event"}}),
        on_bus("TMR", Tpiu::tmr, "trigger multiplier", "",
               {{"multipliers", 4, 0, "bits 0 to 4: TCVR counts 2, 4, 16, 256, 65536 times; the product of all"}}),
        on_bus("STPR", Tpiu::stpr, "supported test patterns", "Read-only.", whole("as CTPR")),
        on_bus("CTPR", Tpiu::ctpr, "current test pattern", "",
               {{"mode", 17, 16, "bit 17: on and on; bit 16: for a time; then the port sends no trace"},
                {"pattern", 3, 0, "which pattern is sent"}}),
        on_bus("TPRCR", Tpiu::tprcr, "test pattern repeat counter", "",
               {{"value", 7, 0, "how often it is sent, less one"}}),
        on_bus("FFSR", Tpiu::ffsr, "formatter and flush status", "Read-only.",
               {{"TCPresent", 2, 2, "1: the pin TRACECTL is there"},
                {"FtStopped", 1, 1, "1: the formatter has stopped"},
                {"FlInProg", 0, 0, "1: a flush is going on"}}),
        on_bus("FFCR", Tpiu::ffcr, "formatter and flush control",
               "EnFTC and EnFCont change only while the formatter is stopped.",
               {{"StopTrig", 13, 13, "1: the trigger event stops the formatter"},
                {"StopFl", 12, 12, "1: a completed flush stops the formatter"},
                {"TrigFl", 10, 10, "1: a completed flush is marked in the trace"},
                {"TrigEvt", 9, 9, "1: the trigger event is marked in the trace"},
                {"TrigIn", 8, 8, "1: a trigger is marked in the trace"},
                {"FOnMan", 6, 6, "writing 1 flushes; reads 0 when it is done"},
                {"FOnTrig", 5, 5, "1: the trigger event flushes"},
                {"FOnFlIn", 4, 4, "1: the input FLUSHIN flushes"},
                {"EnFCont", 1, 1, "1: continuous frames, with triggers and synchronisation; no TRACECTL is needed"},
                {"EnFTC", 0, 0, "1: frames of 16 bytes with the ID of each source"}}),
        on_bus("FSCR", Tpiu::fscr, "formatter synchronisation counter", "",
               {{"CycCount", 11, 0, "frames from one full sync to the next; 0: none is sent periodically"}})};
    out.push_back({"Cross-trigger interface (CTI)", "cti", "cti", {}});
    const auto channels = [](std::string_view meaning) {
        return std::vector<FieldReference>{{"channels", 31, 0, meaning}};
    };
    const auto triggers = [](std::string_view meaning) {
        return std::vector<FieldReference>{{"triggers", 31, 0, meaning}};
    };
    out.back().registers = {
        on_bus("CTICONTROL", Cti::control, "control", "", {{"GLBEN", 0, 0, "1: triggers and channels are mapped"}}),
        on_bus("CTIINTACK", Cti::intack, "output acknowledge", "Write-only.", triggers("bit n: acknowledges output n")),
        on_bus("CTIAPPSET", Cti::appset, "application trigger set", "",
               channels("bit n: software makes channel n active")),
        on_bus("CTIAPPCLEAR", Cti::appclear, "application trigger clear", "Write-only.",
               channels("bit n: software does no longer")),
        on_bus("CTIAPPPULSE", Cti::apppulse, "application pulse", "Write-only; while GLBEN is 1.",
               channels("bit n: a pulse on channel n")),
        row("CTIINEN", Cti::inen, "input to channel enable", "One for each trigger input.",
            channels("channels that this input makes active")),
        row("CTIOUTEN", Cti::outen, "channel to output enable", "One for each trigger output.",
            channels("channels that make this output active")),
        on_bus("CTITRIGINSTATUS", Cti::triginstatus, "input status", "Read-only.", triggers("levels of the inputs")),
        on_bus("CTITRIGOUTSTATUS", Cti::trigoutstatus, "output status", "Read-only.",
               triggers("levels of the outputs")),
        on_bus("CTICHINSTATUS", Cti::chinstatus, "channel input status", "Read-only.",
               channels("channels that other interfaces make active")),
        on_bus("CTICHOUTSTATUS", Cti::choutstatus, "channel output status", "Read-only.",
               channels("channels that this interface makes active for others")),
        on_bus("CTIGATE", Cti::gate, "channel gate", "All 1 after reset.",
               channels("bit n: channel n goes to the other interfaces"))};
    return out;
}

}  // namespace waymark::sink
