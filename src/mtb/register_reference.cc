#include "waymark/mtb/register_reference.h"

#include "waymark/mtb/registers.h"

namespace waymark::mtb {

namespace {

/// What each field means (docs/spec/mtb.md, section 2).
constexpr RegisterMeaning meanings[] = {
    {"MTB_POSITION", "Save it with the memory: it says where the newest packet is."},
    {".pointer", "where the next packet of 8 bytes goes, in units of 8 bytes"},
    {".wrapped", "1: the pointer passed the end of the buffer, so older packets are gone"},
    {"MTB_MASTER", "Turns tracing on and off, and says how much of the memory is the buffer."},
    {".enable", "1: branches are traced. Software that reads its own trace must write 0 first"},
    {".Non-secure trace", "Armv8-M: 1: tracing is allowed in Non-secure state"},
    {".halt request", "1: asks the core to halt"},
    {".RAM privileged", "1: only privileged code reads the memory"},
    {".registers privileged", "1: only privileged code writes these registers"},
    {".stop input", "1: the input TSTOP clears enable"},
    {".start input", "1: the input TSTART sets enable"},
    {".mask", "the buffer has 2^(mask + 4) bytes and is aligned to that"},
    {"MTB_FLOW", "What happens when the pointer reaches the watermark."},
    {".watermark", "compared with the pointer behind each packet, in units of 8 bytes"},
    {".halts at the watermark", "1: sets halt request"},
    {".stops at the watermark", "1: clears enable"},
    {".address of the memory", "where the memory is in the processor's map; some chips read 0"},
    {"VTOR", "A register of the core: it tells the handlers' entries apart from branches."},
    {".address of the vector table", "where the addresses of the exception handlers are"},
};

}  // namespace

UnitReference register_reference() {
    return {"Micro Trace Buffer (MTB)",
            "mtb",
            "mtb",
            {reference_of<MtbPosition>("0x000", meanings), reference_of<MtbMaster>("0x004", meanings),
             reference_of<MtbFlow>("0x008", meanings), reference_of<MtbBase>("0x00c", meanings),
             reference_of<Vtor>("0xe000ed08 of the core", meanings)}};
}

}  // namespace waymark::mtb
