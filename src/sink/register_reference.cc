#include "waymark/sink/register_reference.h"

#include <fmt/format.h>

#include <utility>

#include "waymark/sink/tmc.h"

namespace waymark::sink {

namespace {

RegisterReference reference(std::uint32_t offset, std::string_view title, std::string_view purpose,
                            std::vector<FieldReference> fields) {
    return {Tmc::register_name(offset), title, {fmt::format("{:#05x}", offset)}, 32, purpose, std::move(fields)};
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

}  // namespace waymark::sink
