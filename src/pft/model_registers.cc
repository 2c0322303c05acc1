#include "waymark/pft/model_registers.h"

namespace waymark::pft {

namespace {

/// Whether a register is outside the core power domain, and readable while the OS Lock is set.
bool is_management(unsigned number) { return number >= management::oslar; }

constexpr std::uint32_t power_up_request = 1U << 3;

}  // namespace

AccessResult ModelRegisters::write(unsigned number, std::uint32_t value, Requester from, bool programming) {
    const bool management = is_management(number);
    if (!management && (!powered() || (from == Requester::external && locks_.os_locked()))) return AccessResult::error;
    const RegisterAccess access = register_access(file_, number);
    if (!access.present) return AccessResult::not_present;
    if (!access.writable) return AccessResult::read_only;
    if (from == Requester::software && locks_.software_locked() && number != management::lar)
        return AccessResult::locked;
    switch (number) {
        case Etmcr::number: {
            Etmcr cr = from_value<Etmcr>(value & access.mask);
            if (!programming) {
                // Only a write that stops the unit has effect: other changes wait until it has stopped.
                const bool stops = cr.programming, powers_down = cr.power_down;
                if (!stops) {
                    cr = file_.cr;
                    cr.power_down = powers_down;
                }
            }
            written_ |= !(cr == file_.cr);
            file_.cr = cr;
            return AccessResult::done;
        }
        case management::oslar: locks_.lock_os(value == flow::UnitLocks::unlock_key); return AccessResult::done;
        case management::pdcr:
            if (locks_.request_power((value & power_up_request) != 0)) forget_program();
            return AccessResult::done;
        case management::claimset: locks_.claim(value); return AccessResult::done;
        case management::claimclr: locks_.unclaim(value); return AccessResult::done;
        case management::lar:
            if (from == Requester::software) locks_.write_key(value);
            return AccessResult::done;
        default: break;
    }
    if (!programming) return AccessResult::not_idle;
    const std::uint32_t kept = file_.get(number).value_or(0) & ~access.mask;
    file_.set(number, kept | (value & access.mask));
    written_ = true;
    return AccessResult::done;
}

ReadResult ModelRegisters::read(unsigned number, Requester from, const Registers& now) {
    const bool management = is_management(number);
    if (!management && (!powered() || (from == Requester::external && locks_.os_locked())))
        return {AccessResult::error, 0};
    const RegisterAccess access = register_access(file_, number);
    if (!access.present) return {AccessResult::not_present, 0};
    if (!access.readable) return {AccessResult::write_only, 0};
    const bool os_lock = has_os_lock(file_);
    switch (number) {
        // Bit 0: there is an OS Lock; bit 1: it is locked.
        case management::oslsr: return {AccessResult::done, (os_lock ? 1U : 0U) | (locks_.os_locked() ? 2U : 0U)};
        case management::pdcr: return {AccessResult::done, locks_.power_requested() ? power_up_request : 0U};
        case management::pdsr: {
            // Bit 0: power; bit 1: registers were lost, until read; bit 5: the OS Lock is locked.
            const std::uint32_t value = (powered() ? 1U : 0U) | (powered() && locks_.lost_power() ? 2U : 0U) |
                                        (locks_.os_locked() ? 0x20U : 0U);
            static_cast<void>(locks_.take_power_loss());
            return {AccessResult::done, value};
        }
        case management::claimset: return {AccessResult::done, flow::UnitLocks::claim_tags};
        case management::claimclr: return {AccessResult::done, locks_.claimed()};
        case management::lsr:
            return {AccessResult::done, from != Requester::software ? 0U : 1U | (locks_.software_locked() ? 2U : 0U)};
        default: return {AccessResult::done, now.get(number).value_or(0)};
    }
}

void ModelRegisters::forget_program() {
    Registers fresh;
    fresh.cr = {};
    fresh.cr.programming = fresh.cr.power_down = true;
    fresh.ccr = file_.ccr;
    fresh.scr = file_.scr;
    fresh.idr = file_.idr;
    fresh.ccer = file_.ccer;
    file_ = fresh;
    written_ = true;
}

}  // namespace waymark::pft
