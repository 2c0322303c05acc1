#include "waymark/itm/register_reference.h"

#include "waymark/itm/registers.h"

namespace waymark::itm {

namespace {

/// What each field means (docs/spec/itm.md, section 4).
constexpr RegisterMeaning meanings[] = {
    {"ITMTCR", "The manual writes ITM_TCR. Timestamps are read by it, so save it with the capture."},
    {".busy", "1: the ITM still sends"},
    {".trace ID", "the source's number on the trace bus"},
    {".global timestamp frequency", "how often global timestamps are sent; 0: never"},
    {".local timestamp prescaler",
     "local timestamps count 1, 4, 16 or 64 cycles as one, while the clock is asynchronous"},
    {".asynchronous timestamp clock", "1: local timestamps count the clock of the port; 0: that of the core"},
    {".DWT packet enable", "1: packets of the DWT are sent"},
    {".synchronisation packet enable",
     "1: synchronisation packets are sent; without them a reader cannot begin amid the "
     "trace with certainty"},
    {".local timestamp enable", "1: local timestamps are sent"},
    {".ITM enable", "1: the ITM is on"},
};

}  // namespace

UnitReference register_reference() {
    return {"Instrumentation Trace Macrocell (ITM)", "itm", "itm", {reference_of<Itmtcr>("0xe0000e80", meanings)}};
}

}  // namespace waymark::itm
