#include "waymark/dpu/config.h"

#include <fmt/format.h>

#include "waymark/dpu/format.h"

namespace waymark::dpu {

EonceSetup EonceSetup::for_mode(TraceMode mode) {
    EonceSetup e;
    switch (mode) {
        case TraceMode::eonce_raw:
        case TraceMode::eonce_comp: e.tchof = e.tint = e.tloop = true; break;
        case TraceMode::task: e.tint = e.trte = true; break;
        case TraceMode::flow: e.tint = e.trte = e.tsub = true; break;
        case TraceMode::sw_sample:
        case TraceMode::edca5:
        case TraceMode::user:
        case TraceMode::user_raw: break;
    }
    return e;
}

std::string EonceSetup::missing(TraceMode mode) const {
    const bool interrupts = passes(ItemKind::interrupt) && passes(ItemKind::rte);
    if (mode == TraceMode::task && !interrupts)
        return "TMODE TASK traces interrupts and their returns; turn TINT and TRTE of the EOnCE on";
    if (mode == TraceMode::flow && !(interrupts && passes(ItemKind::call)))
        return "TMODE FLOW traces interrupts, calls and returns; turn TINT, TRTE and TSUB of the EOnCE on";
    return {};
}

Status ModelConfig::check() const {
    if (dpu_base % flag_page_bytes != 0)
        return Error{
            Errc::unsupported,
            fmt::format(
                "the base address {:#x} of the unit is not a multiple of {}: the unit computes its flags from it",
                dpu_base, flag_page_bytes),
            {}};
    if (choices.bus_cycles_per_line == 0)
        return Error{Errc::unsupported, "bus_cycles_per_line is 0; a line takes at least one cycle", {}};
    if ((eonce.texec || eonce.tmark) && eonce.counters() != 0)
        return Error{Errc::unsupported,
                     "TEXEC and TMARK of the EOnCE cannot be combined with TCOUNT or TCNTEXT; turn one of them off",
                     {}};
    return Nothing{};
}

}  // namespace waymark::dpu
