#include "model_resources.h"

#include <algorithm>

namespace waymark::etm4 {

ModelResources::ModelResources(const Registers& registers)
    : r_(registers),
      comparators_(std::min(2U * registers.idr4.numacpairs, 16U)),
      selectors_(registers.idr4.numrspair == 0 ? 0 : std::min(2U * (registers.idr4.numrspair + 1U), 32U)),
      counters_(std::min<unsigned>(registers.idr5.numcntr, 4)),
      view_event_fixed_(selectors_ == 0) {
    start_stop_used_ = comparators_ != 0 && (r_.vissctlr.start != 0 || r_.vissctlr.stop != 0);
    start_stop_ = comparators_ == 0 || r_.victlr.ssstatus;
    for (unsigned n = 0; n < counters_; ++n) {
        counter_[n] = r_.cntvr[n].value;
        const bool self = r_.cntctlr[n].reload_self;
        zeros_ |= (counter_[n] == 0 && !self ? 1U : 0U) << n;
    }
    state_ = r_.seqstr.state;
    for (unsigned n = 0; n < 8; ++n) single_shots_ |= (r_.sscsr[n].status ? 1U : 0U) << n;
    const bool always = view_event_fixed_ || (!r_.victlr.type && r_.victlr.sel == 1);
    const bool levels = r_.victlr.exlevel_s != 0 || r_.victlr.exlevel_ns != 0 || r_.victlr.exlevel_rl != 0;
    const bool events = r_.eventctl1r.insten != 0 || to_value(r_.eventctl0r) != 0 ||
                        (r_.configr.ts && (r_.tsctlr.type || r_.tsctlr.sel != 0));
    bool single_shots = false;
    for (const Trcssccr& s : r_.ssccr) single_shots |= s.sac != 0 || s.arc != 0;
    trivial_ = always && !levels && !events && !single_shots && start_stop_ && !start_stop_used_ &&
               (comparators_ == 0 || (r_.viiectlr.include == 0 && r_.viiectlr.exclude == 0)) && selectors_ <= 32;
    for (unsigned n = 0; n < counters_; ++n)
        trivial_ = trivial_ && !r_.cntctlr[n].count_type && r_.cntctlr[n].count_sel == 0 &&
                   !r_.cntctlr[n].reload_type && r_.cntctlr[n].reload_sel == 0 && !r_.cntctlr[n].chain;
    for (const Trcseqevr& s : r_.seqevr)
        trivial_ = trivial_ && !s.forward_type && s.forward_sel == 0 && !s.back_type && s.back_sel == 0;
    trivial_ = trivial_ && !r_.seqrstevr.type && r_.seqrstevr.sel == 0;
    if (r_.devarch.archver != 5) return;
    // 2.2: input that arrived while the resources were paused takes effect now, for one clock.
    input_pulse_ = r_.rsr.extin;
    events_ = outputs_ = r_.rsr.event;
    events_ &= r_.eventctl1r.insten;
    for (unsigned n = 0; n < r_.idr4.numsscc && n < 8; ++n) {
        const std::uint32_t bit = 1U << n;
        if (!r_.sscsr[n].pending || ((single_shots_ & bit) != 0 && !r_.ssccr[n].rst)) continue;
        single_shots_ |= bit;
        matched_.single_shot |= bit;
        has_matches_ = true;
    }
}

bool ModelResources::excluded(std::uint8_t secure, std::uint8_t non_secure, std::uint8_t realm,
                              const flow::Context& context) const {
    const unsigned el = context.el ? *context.el : context.hyp ? 2U : 0U;
    const auto bit = [](std::uint8_t mask, unsigned n) { return (mask >> n & 1U) != 0; };
    switch (context.security()) {
        case flow::Security::root: return bit(secure, 3);
        case flow::Security::realm: return bit(realm, el) != bit(non_secure, el);
        case flow::Security::non_secure: return bit(non_secure, el);
        default: return bit(secure, el);
    }
}

namespace {

/// Which comparators of `values` match `id` in the bytes that `controls` does not mask (2.7).
std::uint32_t matching(std::uint64_t id, unsigned count, const auto& values, const auto& controls) {
    std::uint32_t out = 0;
    for (unsigned n = 0; n < std::min(count, 8U); ++n) {
        const auto& c = controls[n / 4];
        const std::array masks{c.comp0, c.comp1, c.comp2, c.comp3};
        std::uint32_t compared = 0;
        for (unsigned byte = 0; byte < 4; ++byte)
            if ((masks[n % 4] >> byte & 1U) == 0) compared |= 0xffU << 8 * byte;
        if (((id ^ values[n].value) & compared) == 0) out |= 1U << n;
    }
    return out;
}

}  // namespace

std::uint32_t ModelResources::context_ids(const flow::Context& context) const {
    return matching(context.context_id.value_or(0), r_.idr4.numcidc, r_.cidcvr, r_.cidcctlr);
}
std::uint32_t ModelResources::vmids(const flow::Context& context) const {
    return matching(context.vmid.value_or(0), r_.idr4.numvmidc, r_.vmidcvr, r_.vmidcctlr);
}

bool ModelResources::applies(unsigned comparator, const flow::Context& context) const {
    const Trcacatr& a = r_.acatr[comparator];
    if (a.type != 0) return false;  // it compares data addresses
    if (excluded(a.exlevel_s, a.exlevel_ns, a.high, context)) return false;
    const bool cid = (context_ids(context) >> a.context & 1U) != 0, vmid = (vmids(context) >> a.context & 1U) != 0;
    return ((a.contexttype & 1U) == 0 || cid) && ((a.contexttype & 2U) == 0 || vmid);
}

bool ModelResources::in_range(Address address, const flow::Context& context, std::uint8_t mask) const {
    for (unsigned n = 0; 2 * n < comparators_; ++n)
        if ((mask >> n & 1U) != 0 && applies(2 * n, context) && address.value >= r_.acvr[2 * n].address &&
            address.value <= r_.acvr[2 * n + 1].address)
            return true;
    return false;
}

bool ModelResources::raw(unsigned n, const Active& a) const {
    const Trcrsctlr& s = r_.rsctlr[n - 2];
    std::uint32_t resources = 0;
    switch (s.group) {
        case 0: resources = a.inputs; break;
        case 2: resources = a.counters | a.sequencer << 4; break;
        case 3: resources = a.single_shot; break;
        case 4: resources = a.sac; break;
        case 5: resources = a.arc; break;
        case 6: resources = a.cid; break;
        case 7: resources = a.vmid; break;
        default: break;  // no PE comparator inputs; reserved
    }
    return (resources & s.select) != 0;
}
bool ModelResources::selector(unsigned n, const Active& active) const {
    if (n < 2) return n == 1;
    return n < selectors_ && raw(n, active) != r_.rsctlr[n - 2].inv;
}
bool ModelResources::event(bool pair, unsigned sel, const Active& active) const {
    if (!pair) return selector(sel, active);
    const unsigned a = 2 * (sel & 0xfU);
    if (a == 0 || a + 1 >= selectors_) return false;
    return (selector(a, active) && selector(a + 1, active)) != r_.rsctlr[a - 2].pairinv;
}

ModelResources::Active ModelResources::steady() const {
    Active a;
    a.inputs = inputs_ | input_pulse_;
    a.counters = zeros_;
    a.sequencer = 1U << state_;
    for (unsigned n = 0; n < 8; ++n)
        if ((single_shots_ >> n & 1U) != 0 && !r_.ssccr[n].rst) a.single_shot |= 1U << n;
    return a;
}

bool ModelResources::tick(Active a) {
    bool changed = false, reloaded = false;
    for (unsigned n = 0; n < counters_; ++n) {
        const Trccntctlr& c = r_.cntctlr[n];
        const bool reload = event(c.reload_type, c.reload_sel, a);
        const bool chained = c.chain && n % 2 == 1 && reloaded;
        const bool dec = event(c.count_type, c.count_sel, a) || chained;
        const bool zero = counter_[n] == 0 && (!c.reload_self || (dec && !reload));
        const std::uint16_t before = counter_[n];
        reloaded = reload || (c.reload_self && dec && counter_[n] == 0);
        if (reloaded)
            counter_[n] = r_.cntrldvr[n].value;
        else if (dec && counter_[n] != 0)
            --counter_[n];
        const std::uint32_t bit = 1U << n;
        changed |= counter_[n] != before || reloaded || zero != ((zeros_ & bit) != 0);
        zeros_ = (zeros_ & ~bit) | (zero ? bit : 0U);
        a.counters = (a.counters & ~bit) | (zero ? bit : 0U);
    }
    if (r_.idr5.numseqstate == 4) {
        const unsigned before = state_;
        if (event(r_.seqrstevr.type, r_.seqrstevr.sel, a)) {
            state_ = 0;
        } else {
            std::array<bool, 3> f{}, b{};
            for (unsigned n = 0; n < 3; ++n) {
                f[n] = event(r_.seqevr[n].forward_type, r_.seqevr[n].forward_sel, a);
                b[n] = event(r_.seqevr[n].back_type, r_.seqevr[n].back_sel, a);
            }
            // Moves backward if nothing leads forward; otherwise forward (2.10).
            const auto passes = [&](unsigned to) { a.sequencer |= to != state_ ? 1U << state_ : 0U, state_ = to; };
            const auto stays = [&](unsigned s) { return s < 3 && f[s]; };
            if (stays(state_)) {
                while (stays(state_)) passes(state_ + 1);
            } else {
                while (state_ > 0 && b[state_ - 1] && !f[state_ - 1]) passes(state_ - 1);
            }
        }
        changed |= state_ != before;
    }
    take(a);
    return changed;
}

void ModelResources::take(const Active& a) {
    const Trceventctl0r& e = r_.eventctl0r;
    const std::array types{e.type0, e.type1, e.type2, e.type3};
    const std::array sels{e.sel0, e.sel1, e.sel2, e.sel3};
    const bool was_active = (outputs_ & 1U) != 0;
    outputs_ = 0;
    for (unsigned n = 0; n <= r_.idr0.numevent; ++n)
        if (event(types[n], sels[n], a)) outputs_ |= static_cast<std::uint8_t>(1U << n);
    events_ |= outputs_ & r_.eventctl1r.insten;
    bus_trigger_ |= r_.eventctl1r.atb && (outputs_ & 1U) != 0 && !was_active;
    timestamp_ |= event(r_.tsctlr.type, r_.tsctlr.sel, a);
}

void ModelResources::advance(std::uint64_t cycles) {
    if (trivial_) return;
    for (; cycles != 0; --cycles) {
        Active a = steady();
        const bool matched = std::exchange(has_matches_, false) || input_pulse_ != 0;
        input_pulse_ = 0;
        if (matched) {
            a.sac |= matched_.sac, a.arc |= matched_.arc, a.cid |= matched_.cid, a.vmid |= matched_.vmid;
            a.single_shot |= matched_.single_shot;
            matched_ = {};
        }
        // From here on nothing changes, however many cycles pass.
        if (!tick(a) && !matched) break;
    }
}

bool ModelResources::view(const ViewedBlock& block) {
    if (trivial_) return true;
    const flow::Context& context = block.context;
    const std::uint64_t first = block.first.value, last = block.last.value;
    Active a = steady();
    bool start = false;
    std::uint64_t start_at = 0, stop_at = 0;
    bool stop = false;
    for (unsigned n = 0; n < comparators_; ++n) {
        const std::uint64_t at = r_.acvr[n].address;
        if (at < first || at > last || (at - first) % block.step != 0 || !applies(n, context)) continue;
        a.sac |= 1U << n;
        if ((r_.vissctlr.start >> n & 1U) != 0) start_at = start ? std::max(start_at, at) : at, start = true;
        if ((r_.vissctlr.stop >> n & 1U) != 0) stop_at = stop ? std::max(stop_at, at) : at, stop = true;
    }
    bool excluded_whole = false;
    for (unsigned n = 0; 2 * n < comparators_; ++n) {
        const std::uint64_t low = r_.acvr[2 * n].address, high = r_.acvr[2 * n + 1].address;
        if (low > high || high < first || low > last || !applies(2 * n, context)) continue;
        // The first instruction at or after `low`.
        const std::uint64_t begins =
            low <= first ? first : first + (low - first + block.step - 1) / block.step * block.step;
        if (begins > high || begins > last) continue;
        a.arc |= 1U << n;
        if ((r_.viiectlr.exclude >> n & 1U) != 0) excluded_whole |= low <= first && high >= last;
    }
    a.cid = context_ids(context);
    a.vmid = vmids(context);
    for (unsigned n = 0; n < r_.idr4.numsscc && n < 8; ++n) {
        const bool matches = (a.sac & r_.ssccr[n].sac) != 0 || (a.arc & r_.ssccr[n].arc) != 0;
        const std::uint32_t bit = 1U << n;
        if (!matches || ((single_shots_ & bit) != 0 && !r_.ssccr[n].rst)) continue;
        if (in_transaction_) {
            undecided_ |= bit;
            continue;
        }
        single_shots_ |= bit;
        a.single_shot |= bit;
    }
    // The clock of this block is counted by advance(), but ViewInst sees its resources at once.
    matched_.sac |= a.sac, matched_.arc |= a.arc, matched_.cid |= a.cid, matched_.vmid |= a.vmid;
    matched_.single_shot |= a.single_shot;
    has_matches_ = true;

    bool started = start_stop_;
    if (start_stop_used_) {
        started = start_stop_ || start;
        // If both are at one address, start/stop is on at the instruction and off after it.
        if (start || stop) start_stop_ = start && (!stop || start_at > stop_at);
    }
    const bool included =
        comparators_ == 0 || ((r_.viiectlr.include == 0 || (a.arc & r_.viiectlr.include) != 0) && !excluded_whole);
    const bool level = !excluded(r_.victlr.exlevel_s, r_.victlr.exlevel_ns, r_.victlr.exlevel_rl, context);
    const bool event_active = view_event_fixed_ || event(r_.victlr.type, r_.victlr.sel, a);
    return started && included && level && event_active;
}

void ModelResources::begin_transaction() {
    in_transaction_ = true;
    start_stop_before_ = start_stop_;
    undecided_ = 0;
}

void ModelResources::end_transaction(bool committed) {
    if (!std::exchange(in_transaction_, false)) return;
    if (!committed) {
        start_stop_ = start_stop_before_;
        return;
    }
    single_shots_ |= undecided_;
    matched_.single_shot |= undecided_;
    has_matches_ |= undecided_ != 0;
}

void ModelResources::external_input(unsigned selector, bool level) {
    if (selector >= 4) return;
    inputs_ = (inputs_ & ~(1U << selector)) | (level ? 1U << selector : 0U);
}

void ModelResources::read_back(Registers& registers) const {
    for (unsigned n = 0; n < counters_; ++n) registers.cntvr[n].value = counter_[n];
    registers.seqstr.state = static_cast<std::uint8_t>(state_ & 3U);
    registers.victlr.ssstatus = start_stop_;
    registers.rsr.extin = registers.rsr.event = 0;
    for (unsigned n = 0; n < 8; ++n) {
        registers.sscsr[n].status = (single_shots_ >> n & 1U) != 0;
        registers.sscsr[n].pending = false;
    }
}

}  // namespace waymark::etm4
