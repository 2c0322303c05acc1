#include "waymark/etm3/register_reference.h"

#include <fmt/format.h>

#include "waymark/etm3/registers.h"

namespace waymark::etm3 {

namespace {

/// What each field means (docs/spec/etmv3.md, section 1).
constexpr RegisterMeaning meanings[] = {
    {"ETMCR",
     "Turns tracing on and off and says what the trace has. It decides how the bytes are read, so save it with "
     "the capture; bit 10 is often set there, for it was read after stopping."},
    {".VMID trace enable", "1: VMIDs are traced"},
    {".timestamp enable", "1: timestamps"},
    {".processor select", "number of the processor that is traced, of an ETM that several share"},
    {".port size[3]", "with port size[2:0]: at 1 the port has 1 or 2 bits"},
    {".data-only mode", "1: no instructions are traced, and I-syncs have no address"},
    {".port mode", "0 normal; 1 multiplexed; 2 demultiplexed. It concerns the pins only"},
    {".ContextIDSize", "bytes of a Context ID in the trace: 0 none, 1 one, 2 two, 3 four"},
    {".half-rate clocking", "1: the trace port is clocked at half the rate"},
    {".cycle-accurate", "1: cycles are traced, and P-headers have other formats"},
    {".port enabled", "1: the trace port is on"},
    {".Programming bit", "1: the ETM does not trace and its registers may be written"},
    {".debug request control", "1: the trigger event asks the processor to enter Debug state"},
    {".branch output", "1: an address packet for each taken branch, direct ones too"},
    {".stall processor", "1: the processor is stalled when the FIFO is nearly full"},
    {".port size[2:0]", "bits of the port: 0 4; 1 8; 2 16; 3 24; 4 32; 5 48; 6 64"},
    {".data address tracing", "1: addresses of loads and stores are traced"},
    {".data value tracing", "1: values of loads and stores are traced"},
    {".coprocessor transfers", "1: transfers of coprocessor registers are traced beside loads and stores"},
    {".power down", "1: the ETM is off; nothing is traced"},
    {"ETMIDR", "Read-only: the version. It decides how the bytes are read, so save it with the capture."},
    {".implementer", "0x41: Arm"},
    {".alternative branch encoding", "1: branch addresses have the alternative encoding; from ETMv3.4 on"},
    {".Security Extensions", "1: the processor has them"},
    {".32-bit Thumb traced as one instruction", "1: it is one instruction; 0: two"},
    {".major version", "2: ETMv3"},
    {".minor version", "the x of ETMv3.x"},
    {".revision", "revision of the implementation"},
    {"ETMCCER", "Read-only. The PTM took this register over: docs/registers/ptm.md has all of its fields."},
    {".64-bit timestamps", "1: timestamps have up to 64 bits; 0: 48"},
    {".natural binary timestamps", "1: they count in natural binary; 0: in Gray code"},
    {".Virtualization Extensions", "1: implemented"},
    {".timestamping implemented", "1: ETMCR bit 28 can be set"},
    {".trace ID", "the source's number on the trace bus, 0x01 to 0x6f, different for each source"},
};

template <class Register>
RegisterReference place_of() {
    RegisterReference out = reference_of<Register>(
        fmt::format("register {:#04x}, offset {:#05x}", Register::number, 4 * Register::number), meanings);
    // The PTM has more fields in a register that both units have.
    std::erase_if(out.fields, [](const FieldReference& f) { return f.meaning.empty(); });
    return out;
}

}  // namespace

UnitReference register_reference() {
    return {"Embedded Trace Macrocell v3 (ETMv3): registers that decide how its bytes are read",
            "etm3",
            "etmv3",
            {place_of<Etm3cr>(), place_of<Etm3idr>(), place_of<Etmccer>(), place_of<Etmtraceidr>()}};
}

}  // namespace waymark::etm3
