#include "waymark/etm4/access.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace waymark::etm4 {

namespace {

template <class Register>
constexpr unsigned first_number() {
    if constexpr (std::is_same_v<Register, Trcrsctlr>) return 2;
    if constexpr (std::is_same_v<Register, Trcimspec>) return 1;
    return 0;
}

std::vector<RegisterPlace> all_places() {
    std::vector<RegisterPlace> out;
    const Registers registers{};
    Registers::for_each(registers, [&](const auto& r, unsigned offset) {
        using Register = std::remove_cvref_t<decltype(r)>;
        std::string name(Register::name);
        const unsigned number = (offset - Register::offset) / Register::stride + first_number<Register>();
        // The name contains the number of the first register.
        if constexpr (std::is_same_v<Register, Trcpidr5>)
            name.back() = static_cast<char>('5' + number);
        else if constexpr (Register::count > 1)
            name += std::to_string(number);
        out.push_back({std::move(name), offset, Register::bytes, Register::title});
    });
    return out;
}

constexpr std::uint32_t ones(unsigned count) { return count >= 32 ? 0xffffffffU : (std::uint32_t{1} << count) - 1; }

/// Number of resources of each kind in the unit (1.4, 1.5).
struct Resources {
    explicit Resources(const Registers& r)
        : pairs(std::min<unsigned>(r.idr4.numacpairs, 8)),
          selectors(r.idr4.numrspair == 0 ? 0 : std::min(2U * (r.idr4.numrspair + 1U), 32U)),
          single_shots(std::min<unsigned>(r.idr4.numsscc, 8)),
          context_ids(std::min<unsigned>(r.idr4.numcidc, 8)),
          vmids(std::min<unsigned>(r.idr4.numvmidc, 8)),
          inputs(std::min<unsigned>(r.idr4.numpc, 8)),
          counters(std::min<unsigned>(r.idr5.numcntr, 4)),
          external(std::min<unsigned>(r.idr5.numextinsel, 4)),
          events(selectors == 0 ? 0 : r.idr0.numevent + 1U),
          sequencer(r.idr5.numseqstate == 4) {}

    unsigned pairs, selectors, single_shots, context_ids, vmids, inputs, counters, external, events;
    bool sequencer;

    /// TYPE, and as many bits of SEL as the number of selectors needs (2.5).
    [[nodiscard]] std::uint32_t event() const {
        return selectors == 0 ? 0 : 0x80U | ones(static_cast<unsigned>(std::bit_width(selectors - 1)));
    }
    [[nodiscard]] std::uint32_t events_of(unsigned count) const {
        std::uint32_t out = 0;
        for (unsigned n = 0; n < count; ++n) out |= event() << 8 * n;
        return out;
    }
};

std::uint32_t configr_mask(const Registers& r, bool ete) {
    const auto bit = [](bool there, std::uint32_t bits) { return there ? bits : 0; };
    return bit(r.idr0.instp0 != 0, 6) | bit(r.idr0.trcbb, 1U << 3) | bit(r.idr0.trccci, 1U << 4) |
           bit(r.idr2.cidsize != 0, 1U << 6) | bit(r.idr2.vmidsize != 0, 1U << 7) | bit(r.idr0.trccond, 7U << 8) |
           bit(r.idr0.tssize != 0, 1U << 11) | bit(r.idr0.retstack, 1U << 12) | bit(r.idr0.qsupp != 0, 3U << 13) |
           bit(r.idr2.vmidopt == 1, 1U << 15) | bit(r.idr0.trcdata != 0, 3U << 16) | bit(ete && r.idr0.ite, 1U << 18);
}

std::uint32_t levels_mask(const Registers& r, bool ete) {
    return r.idr3.exlevel_s | r.idr3.exlevel_ns << 4 | (ete ? r.idr6.exlevel_rl << 8 : 0);
}

/// Whether `offset` is in a group of `count` registers, and which one it is.
template <class Register>
std::optional<unsigned> index_in(unsigned offset, unsigned count = Register::count) {
    if (offset < Register::offset || offset >= Register::offset + count * Register::stride) return std::nullopt;
    return (offset - Register::offset) / Register::stride;
}

}  // namespace

const std::vector<RegisterPlace>& register_places() {
    static const std::vector<RegisterPlace> places = all_places();
    return places;
}
const RegisterPlace* register_called(std::string_view name) {
    if (name == Trcextinselr::name) name = "TRCEXTINSELR0";
    for (const RegisterPlace& place : register_places())
        if (place.name == name) return &place;
    return nullptr;
}
const RegisterPlace* register_at(unsigned offset) {
    for (const RegisterPlace& place : register_places())
        if (offset >= place.offset && offset < place.offset + place.bytes && offset % 4 == 0) return &place;
    return nullptr;
}

WordAccess word_access(const Registers& r, unsigned offset) {
    if (register_at(offset) == nullptr) return {};
    const bool ete = r.devarch.archver == 5, data = !ete && r.idr0.trcdata != 0;
    const Resources has(r);
    const auto trace = [](bool present, std::uint32_t mask) {
        return present ? WordAccess{true, true, true, false, mask} : WordAccess{};
    };
    const auto read_only = [](bool present = true) {
        return present ? WordAccess{true, true, false, true, 0} : WordAccess{};
    };
    const std::uint32_t event = has.event();
    switch (offset) {
        case Trcprgctlr::offset: return {true, true, true, true, 1};
        case Trcprocselr::offset: return trace(!ete && (r.idr3.numproc_low != 0 || r.idr3.numproc_high != 0), 0x1f);
        case Trcstatr::offset: return read_only();
        case Trcconfigr::offset: return trace(true, configr_mask(r, ete));
        case Trcauxctlr::offset: return trace(true, 0xffffffff);
        case Trceventctl0r::offset: return trace(has.events != 0, has.events_of(has.events));
        case Trceventctl1r::offset:
            return trace(true, ones(has.events) | (data ? 1U << 4 : 0) | (r.idr5.atbtrig ? 1U << 11 : 0) |
                                   (r.idr5.lpoverride ? 1U << 12 : 0) | (ete && r.idr5.redfuncntr_oe ? 1U << 13 : 0));
        case Trcrsr::offset: return trace(ete, 1U << 12 | ones(has.events) << 8 | ones(has.external));
        case Trcstallctlr::offset:
            return trace(r.idr3.stallctl, 0x10fU | (r.idr3.nooverflow ? 1U << 13 : 0) | (data ? 0x1e00U : 0));
        case Trctsctlr::offset: return trace(r.idr0.tssize != 0, event);
        case Trcsyncpr::offset: return r.idr3.syncpr ? WordAccess{true, true, false, true, 0} : trace(true, 0x1f);
        case Trcccctlr::offset: return trace(r.idr0.trccci, 0xfff);
        case Trcbbctlr::offset: return trace(r.idr0.trcbb && has.pairs != 0, 1U << 8 | ones(has.pairs));
        case Trctraceidr::offset: return trace(r.idr5.traceidsize != 0, 0x7f);
        case Trcqctlr::offset: return trace(r.idr0.qfilt, 1U << 8 | ones(has.pairs));
        case Trciteedcr::offset: return trace(ete && r.idr0.ite, 0x7f);
        case Trcvictlr::offset:
            return trace(true, event | (has.pairs != 0 || has.inputs != 0 ? 1U << 9 : 0) | 1U << 10 |
                                   (r.idr3.trcerr ? 1U << 11 : 0) | levels_mask(r, ete) << 16);
        case Trcviiectlr::offset: return trace(has.pairs != 0, ones(has.pairs) << 16 | ones(has.pairs));
        case Trcvissctlr::offset: return trace(has.pairs != 0, ones(2 * has.pairs) << 16 | ones(2 * has.pairs));
        case Trcvipcssctlr::offset: return trace(has.inputs != 0, ones(has.inputs) << 16 | ones(has.inputs));
        case Trcvdctlr::offset: return trace(data, event | 0x1f00U);
        case Trcvdsacctlr::offset: return trace(data && has.pairs != 0, 0xffffffff);
        case Trcvdarcctlr::offset: return trace(data && has.pairs != 0, 0x00ff00ff);
        case Trcseqrstevr::offset: return trace(has.sequencer, event);
        case Trcseqstr::offset: return trace(has.sequencer, 3);
        case Trcimspec0::offset: return trace(true, static_cast<std::uint32_t>(r.imspec0.support << 4));
        case Trcoslar::offset: return r.oslsr.oslm_high == 1 ? WordAccess{true, false, true, true, 1} : WordAccess{};
        case Trcoslsr::offset: return read_only();
        case Trcpdcr::offset: return {!ete, !ete, !ete, true, 1U << 3};
        case Trcpdsr::offset: return read_only();
        case Trcitctrl::offset: return trace(true, 0);
        case Trcclaimset::offset:
        case Trcclaimclr::offset: return {true, true, true, true, 0xf};
        case Trclar::offset: return {!ete, false, !ete, true, 0xffffffff};
        case Trclsr::offset: return read_only(!ete);
        default: break;
    }
    if (index_in<Trcseqevr>(offset)) return trace(has.sequencer, event << 8 | event);
    if (const auto n = index_in<Trcextinselr>(offset)) {
        // One register for all selectors, or one register for each.
        if (ete) return trace(*n < has.external, 0xffff);
        return trace(*n == 0 && has.external != 0, ones(8 * has.external));
    }
    if (const auto n = index_in<Trccntrldvr>(offset)) return trace(*n < has.counters, 0xffff);
    if (const auto n = index_in<Trccntvr>(offset)) return trace(*n < has.counters, 0xffff);
    if (const auto n = index_in<Trccntctlr>(offset))
        return trace(*n < has.counters, event << 8 | event | 1U << 16 | (*n % 2 == 1 ? 1U << 17 : 0));
    if (const auto n = index_in<Trcrsctlr>(offset))
        return trace(*n + 2 < has.selectors, 0x1fffffU | (*n % 2 == 0 ? 1U << 21 : 0));
    if (const auto n = index_in<Trcssccr>(offset))
        return trace(*n < has.single_shots, 1U << 24 | ones(has.pairs) << 16 | ones(2 * has.pairs));
    if (const auto n = index_in<Trcsscsr>(offset)) return trace(*n < has.single_shots, 1U << 31 | (ete ? 1U << 30 : 0));
    if (const auto n = index_in<Trcsspcicr>(offset))
        return trace(*n < has.single_shots && has.inputs != 0 && r.sscsr[*n].pc, ones(has.inputs));
    if (const auto n = index_in<Trcacvr>(offset)) return trace(*n < 2 * has.pairs, 0xffffffff);
    if (const auto n = index_in<Trcacatr>(offset)) {
        const bool low = offset % 8 == 0;
        const std::uint32_t contexts = (has.context_ids != 0 ? 1U << 2 : 0) | (has.vmids != 0 ? 1U << 3 : 0);
        const unsigned most = std::max({has.context_ids, has.vmids, 1U});
        const std::uint32_t context = ones(static_cast<unsigned>(std::bit_width(most - 1))) << 4;
        return trace(*n < 2 * has.pairs,
                     low ? contexts | context | levels_mask(r, ete) << 8 | (data ? 0x3f0003U : 0) : 0);
    }
    if (const auto n = index_in<Trcdvcvr>(offset)) return trace(data && *n < r.idr4.numdvc, 0xffffffff);
    if (const auto n = index_in<Trcdvcmr>(offset)) return trace(data && *n < r.idr4.numdvc, 0xffffffff);
    // Context IDs have 32 bits; VMIDSIZE gives the size of VMIDs in bytes.
    if (const auto n = index_in<Trccidcvr>(offset))
        return trace(*n < has.context_ids, offset % 8 == 0 ? ones(8U * r.idr2.cidsize) : 0);
    if (const auto n = index_in<Trcvmidcvr>(offset))
        return trace(*n < has.vmids, offset % 8 == 0 ? ones(8U * r.idr2.vmidsize) : 0);
    const auto masks = [](unsigned comparators, unsigned n, unsigned id_bytes) {
        std::uint32_t out = 0;
        for (unsigned i = 4 * n; i < std::min(comparators, 4 * n + 4); ++i) out |= ones(id_bytes) << 8 * (i % 4);
        return out;
    };
    // Linux writes the first of these registers even if there is no comparator (5.4).
    if (const auto n = index_in<Trccidcctlr>(offset)) return trace(true, masks(has.context_ids, *n, r.idr2.cidsize));
    if (const auto n = index_in<Trcvmidcctlr>(offset)) return trace(true, masks(has.vmids, *n, r.idr2.vmidsize));
    if (index_in<Trcimspec>(offset)) return trace(r.imspec0.support != 0, 0xffffffff);
    return read_only();
}

std::vector<Objection> objections_to(const Registers& r) {
    std::vector<Objection> out;
    const auto object = [&](unsigned offset, std::string message) { out.push_back({offset, std::move(message)}); };
    const Resources has(r);
    if (const unsigned qe = r.configr.qe; qe != 0) {
        // 1.2: QSUPP decides which values exist.
        constexpr unsigned allowed[] = {0b0001, 0b0011, 0b1001, 0b1011};
        if ((allowed[r.idr0.qsupp & 3U] >> qe & 1U) == 0)
            object(Trcconfigr::offset, fmt::format("TRCCONFIGR.QE is {}; this unit has {}", qe,
                                                   r.idr0.qsupp == 0   ? "no Q elements: 0"
                                                   : r.idr0.qsupp == 1 ? "0 and 1"
                                                   : r.idr0.qsupp == 2 ? "0 and 3"
                                                                       : "0, 1 and 3"));
        if (r.configr.bb) object(Trcconfigr::offset, "TRCCONFIGR.QE must be 0 where TRCCONFIGR.BB is 1");
    }
    if (r.stallctlr.nooverflow && !r.stallctlr.istall)
        object(Trcstallctlr::offset, "TRCSTALLCTLR.NOOVERFLOW is 1 with ISTALL 0; set ISTALL too");
    if (const unsigned period = r.syncpr.period; period != 0 && (period < 8 || period > 20) && !r.idr3.syncpr)
        object(Trcsyncpr::offset, fmt::format("TRCSYNCPR.PERIOD is {}; 0 and 8 to 20 are allowed", period));
    if (r.configr.cci && (r.ccctlr.threshold == 0 || r.ccctlr.threshold < r.idr3.ccitmin))
        object(Trcccctlr::offset,
               fmt::format("TRCCCCTLR.THRESHOLD is {}; with TRCCONFIGR.CCI it is at least TRCIDR3.CCITMIN, {}",
                           r.ccctlr.threshold, std::max<unsigned>(r.idr3.ccitmin, 1)));
    if (r.configr.bb && r.bbctlr.mode && r.bbctlr.range == 0)
        object(Trcbbctlr::offset, "TRCBBCTLR.MODE is 1 (inside the ranges) with RANGE 0, no range");
    if (r.configr.qe != 0 && r.idr0.qfilt && r.qctlr.mode && r.qctlr.range == 0)
        object(Trcqctlr::offset, "TRCQCTLR.MODE is 1 (inside the ranges) with RANGE 0, no range");
    if ((r.vissctlr.start & r.vissctlr.stop) != 0)
        object(Trcvissctlr::offset,
               fmt::format("TRCVISSCTLR.START and STOP have comparator {} both",
                           std::countr_zero(static_cast<unsigned>(r.vissctlr.start & r.vissctlr.stop))));
    for (unsigned n = 0; n + 2 < has.selectors; ++n)
        if (r.rsctlr[n].group >= 8)
            object(Trcrsctlr::offset + 4 * n,
                   fmt::format("TRCRSCTLR{}.GROUP is {}; 8 to 15 are reserved", n + 2, r.rsctlr[n].group));
    for (unsigned n = 0; n < has.pairs; ++n) {
        const std::uint8_t bit = static_cast<std::uint8_t>(1U << n);
        bool used = ((r.viiectlr.include | r.viiectlr.exclude) & bit) != 0;
        used |= r.configr.bb && (r.bbctlr.range & bit) != 0;
        used |= r.configr.qe != 0 && (r.qctlr.range & bit) != 0;
        for (unsigned s = 0; s < has.single_shots; ++s) used |= (r.ssccr[s].arc & bit) != 0;
        for (unsigned s = 0; s + 2 < has.selectors; ++s)
            used |= r.rsctlr[s].group == 5 && (r.rsctlr[s].select & bit) != 0;
        if (!used) continue;
        const Trcacvr &low = r.acvr[2 * n], &high = r.acvr[2 * n + 1];
        if (low.address > high.address)
            object(Trcacvr::offset + 16 * n, fmt::format("the range of TRCACVR{} and TRCACVR{} begins at {:#x}, after "
                                                         "its end {:#x}",
                                                         2 * n, 2 * n + 1, low.address, high.address));
        if (!(r.acatr[2 * n] == r.acatr[2 * n + 1]))
            object(Trcacatr::offset + 16 * n,
                   fmt::format("TRCACATR{} and TRCACATR{} differ; of a range both must be equal", 2 * n, 2 * n + 1));
    }
    const auto context_number = [&](unsigned n) {
        const Trcacatr& a = r.acatr[n];
        return ((a.contexttype & 1U) != 0 && a.context >= has.context_ids) ||
               ((a.contexttype & 2U) != 0 && a.context >= has.vmids);
    };
    for (unsigned n = 0; n < 2 * has.pairs; ++n)
        if (context_number(n))
            object(Trcacatr::offset + 8 * n,
                   fmt::format("TRCACATR{}.CONTEXT names comparator {}; the unit has {} of Context IDs and {} of VMIDs",
                               n, r.acatr[n].context, has.context_ids, has.vmids));
    std::stable_sort(out.begin(), out.end(),
                     [](const Objection& a, const Objection& b) { return a.offset < b.offset; });
    return out;
}

}  // namespace waymark::etm4
