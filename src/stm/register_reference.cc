#include "waymark/stm/register_reference.h"

#include "waymark/stm/registers.h"

namespace waymark::stm {

namespace {

/// What each field means (docs/spec/stm.md, section 5). No bit changes how the bytes are read.
constexpr RegisterMeaning meanings[] = {
    {".busy", "1: the STM still sends"},
    {".trace ID", "the source's number on the trace bus"},
    {".leading zeros left out", "1: data is sent without its leading zeros"},
    {".hardware event enable", "1: hardware events make messages"},
    {".synchronisation enable", "1: synchronisation packets are sent"},
    {".timestamp enable", "1: timestamps are sent where software or hardware asks for them"},
    {".STM enable", "1: the STM is on"},
    {".master", "the number under which hardware events are sent"},
};

}  // namespace

UnitReference register_reference() {
    return {"System Trace Macrocell (STM)",
            "stm",
            "stm",
            {reference_of<Stmtcsr>("0xe80", meanings), reference_of<Stmhemastr>("0xdf4", meanings)}};
}

}  // namespace waymark::stm
