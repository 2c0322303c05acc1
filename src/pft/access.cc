#include "waymark/pft/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <type_traits>

namespace waymark::pft {

namespace {

std::vector<RegisterPlace> all_places() {
    constexpr std::array transitions{"12", "21", "23", "31", "32", "13"};
    std::vector<RegisterPlace> out;
    const Registers registers{};
    Registers::for_each(registers, [&](const auto& r) {
        using Register = std::remove_cvref_t<decltype(r)>;
        const bool again = !out.empty() && out.back().title == Register::title;
        const unsigned number = again ? out.back().number + 1 : Register::number;
        std::string name(Register::name);
        // Numbers in the names begin with 1.
        if constexpr (std::is_same_v<Register, Etmsqevr>)
            name = fmt::format("ETMSQ{}EVR", transitions[number - Register::number]);
        else if constexpr (Register::count > 1)
            name += std::to_string(number - Register::number + 1);
        out.push_back({std::move(name), number, Register::title});
    });
    return out;
}

constexpr std::uint32_t ones(unsigned count) { return count >= 32 ? 0xffffffffU : (std::uint32_t{1} << count) - 1; }

bool in(unsigned number, unsigned first, unsigned count) { return number >= first && number < first + count; }

}  // namespace

const std::vector<RegisterPlace>& register_places() {
    static const std::vector<RegisterPlace> places = all_places();
    return places;
}
const RegisterPlace* register_called(std::string_view name) {
    for (const RegisterPlace& place : register_places())
        if (place.name == name) return &place;
    return nullptr;
}

bool has_os_lock(const Registers& unit) { return unit.idr.minor >= (unit.is_etmv3() ? 5 : 1); }

RegisterAccess register_access(const Registers& r, unsigned number) {
    const auto traces = [](bool present, std::uint32_t mask) {
        return present ? RegisterAccess{true, true, true, mask} : RegisterAccess{};
    };
    constexpr RegisterAccess read_only{true, true, false, 0};
    constexpr std::uint32_t event = 0x1ffff;
    const bool whole = to_value(r.ccr) == 0;
    const unsigned pairs = whole ? 8 : std::min<unsigned>(r.ccr.address_comparator_pairs, 8);
    const unsigned counters = whole ? 4 : std::min<unsigned>(r.ccr.counters, 4);
    const unsigned outputs = whole ? 4 : std::min<unsigned>(r.ccr.external_outputs, 4);
    const unsigned context_ids = whole ? 3 : r.ccr.context_id_comparators;
    const bool sequencer = whole || r.ccr.sequencer, start_stop = whole || r.ccr.start_stop;
    const bool etmv3 = r.is_etmv3();
    const bool newest = has_os_lock(r), virtualised = newest && r.ccer.virtualization;
    switch (number) {
        case Etmcr::number: {
            const std::uint32_t features = (r.ccer.timestamps ? 1U << 28 : 0) | (virtualised ? 1U << 30 : 0);
            // Of an ETMv3 also the trace port; no data trace.
            if (etmv3) return {true, true, true, 0x0e23ff71U | (r.ccr.fifo_full ? 1U << 7 : 0) | features};
            return {true, true, true, 0x0f00d701U | (r.ccer.return_stack ? 1U << 29 : 0) | features};
        }
        case Etmccr::number:
        case Etmscr::number:
        case Etmidr::number:
        case Etmccer::number: return read_only;
        case Etmtrigger::number:
        case Etmteevr::number: return traces(true, event);
        case Etmtsevr::number: return traces(r.ccer.timestamps, event);
        // The start/stop block's state and the trigger flag can be restored.
        case Etmsr::number: return traces(true, 0xc);
        case Etmtsscr::number: return traces(start_stop && pairs != 0, ones(2 * pairs) << 16 | ones(2 * pairs));
        case Etmtecr2::number: return traces(etmv3 && pairs != 0, ones(2 * pairs));
        case Etmtecr1::number: return traces(true, 1U << 24 | (start_stop ? 1U << 25 : 0) | ones(pairs));
        case Etmfflr::number: return traces(true, 0xff);
        case Etmsqr::number: return traces(sequencer, 3);
        case Etmcidcmr::number: return traces(context_ids != 0, 0xffffffff);
        case Etmsyncfr::number: return traces(true, 0xfff);
        case Etmextinselr::number:
            return traces(r.ccer.selectors != 0, ones(8 * std::min<unsigned>(r.ccer.selectors, 4)));
        case Etmtesseicr::number: return traces(r.ccer.embedded_ice != 0 || whole, 0x00ff00ff);
        case Etmeibcr::number: return traces(r.ccer.embedded_ice != 0 || whole, 0xff);
        case Etmauxcr::number: return traces(!etmv3, 7);
        case Etmtraceidr::number: return traces(true, 0x7f);
        case Etmvmidcvr::number: return traces(virtualised, 0xff);
        case management::oslar: return {has_os_lock(r), false, has_os_lock(r), 0xffffffff};
        case management::oslsr:
        case management::pdsr: return read_only;
        case management::pdcr: return {newest, newest, newest, 1U << 3};
        case management::claimset:
        case management::claimclr: return {true, true, true, 0xf};
        case management::lar: return {true, false, true, 0xffffffff};
        case management::lsr: return read_only;
        default: break;
    }
    if (in(number, Etmacvr::number, 2 * pairs)) return traces(true, 0xffffffff);
    if (in(number, Etmactr::number, 2 * pairs))
        return traces(true,
                      (etmv3 ? 0x3c9fU : 0x3c07U) | (context_ids != 0 ? 0x300U : 0) | (virtualised ? 0xc000U : 0));
    if (in(number, Etmcntrldvr::number, counters) || in(number, Etmcntvr::number, counters))
        return traces(true, 0xffff);
    if (in(number, Etmcntenr::number, counters)) return traces(true, 0x3ffff);
    if (in(number, Etmcntrldevr::number, counters)) return traces(true, event);
    if (in(number, Etmsqevr::number, 6)) return traces(sequencer, event);
    if (in(number, Etmextoutevr::number, outputs)) return traces(true, event);
    if (in(number, Etmcidcvr::number, context_ids)) return traces(true, 0xffffffff);
    return {};
}

std::vector<std::string> objections_to(const Registers& r) {
    std::vector<std::string> out;
    if (r.cr.return_stack && r.cr.branch_broadcast)
        out.emplace_back(
            "ETMCR enables both the return stack and branch broadcast; a macrocell does not allow that (4.5)");
    if (r.sqr.value > 2) out.emplace_back("ETMSQR is 3; 0 to 2 are states 1 to 3 of the sequencer");
    for (unsigned n = 0; n < 8; ++n) {
        bool used = (r.tecr1.ranges >> n & 1U) != 0;
        const auto uses = [&](const EventFields& e) {
            used |= e.a_type == 1 && e.a_index == n;
            used |= e.function >= 2 && e.b_type == 1 && e.b_index == n;
        };
        uses(r.trigger), uses(r.teevr), uses(r.tsevr);
        for (const auto& e : r.cntenr) uses(e);
        for (const auto& e : r.cntrldevr) uses(e);
        for (const auto& e : r.sqevr) uses(e);
        for (const auto& e : r.extoutevr) uses(e);
        if (!used) continue;
        if (r.acvr[2 * n].value >= r.acvr[2 * n + 1].value)
            out.push_back(
                fmt::format("the range of ETMACVR{} and ETMACVR{} is from {:#x} to before {:#x}, which is empty",
                            2 * n + 1, 2 * n + 2, r.acvr[2 * n].value, r.acvr[2 * n + 1].value));
        if (!(r.actr[2 * n] == r.actr[2 * n + 1]))
            out.push_back(
                fmt::format("ETMACTR{} and ETMACTR{} differ; of a range both must be equal", 2 * n + 1, 2 * n + 2));
    }
    for (unsigned n = 0; n < 16; ++n)
        if (r.is_etmv3() && r.actr[n].access > 3)
            out.push_back(fmt::format(
                "ETMACTR{}: the access type is {}, a transfer of data, which an ETMv3 without data trace does not have",
                n + 1, r.actr[n].access));
        else if (!r.is_etmv3() && r.actr[n].access != 1)
            out.push_back(fmt::format("ETMACTR{}: the access type is {}; a macrocell has only 1, instruction execute",
                                      n + 1, r.actr[n].access));
    return out;
}

}  // namespace waymark::pft
