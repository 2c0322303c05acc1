#include "model_registers.h"

#include <array>

namespace waymark::etm4 {

namespace {

/// Whether a register describes the unit, not its program: it survives a loss of power.
bool is_identification(unsigned offset) {
    return (offset >= Trcidr8::offset && offset <= Trcidr13::offset) ||
           (offset >= Trcidr0::offset && offset <= Trcidr7::offset) || offset == Trcoslsr::offset ||
           offset == Trcpdcr::offset || offset >= Trcdevaff0::offset;
}
/// 1.1: registers of class M, and the registers of the OS Lock and power, which are outside the core power domain in
/// ETMv4.
bool is_management(unsigned offset) {
    return offset == Trcoslar::offset || offset == Trcoslsr::offset || offset == Trcpdcr::offset ||
           offset == Trcpdsr::offset || offset >= Trcdevaff0::offset;
}

}  // namespace

ModelRegisters::ModelRegisters(const Registers& registers) : file_(registers) {
    // 1.6: these values are equal in every unit.
    file_.devtype = from_value<Trcdevtype>(0x13);
    constexpr std::array<std::uint32_t, 4> component{0x0d, 0x90, 0x05, 0xb1};
    for (std::size_t n = 0; n < component.size(); ++n) file_.cidr[n] = from_value<Trccidr>(component[n]);
    locks_.lock_os(registers.oslsr.oslk);
    if (registers.lsr.slk) locks_.write_key(0);
    locks_.claim(static_cast<std::uint32_t>(to_value(registers.claimclr)));
    locks_.request_power(registers.pdcr.pu);
}

bool ModelRegisters::refused(unsigned offset, Requester from) const {
    if (!powered()) return ete() || !is_management(offset);
    return from == Requester::external && locks_.os_locked() && !is_management(offset);
}

AccessResult ModelRegisters::write(unsigned offset, std::uint32_t value, Requester from, Status status, bool running) {
    if (refused(offset, from)) return AccessResult::error;
    const WordAccess access = word_access(file_, offset);
    if (!access.present) return AccessResult::not_present;
    if (!access.writable) return AccessResult::read_only;
    const bool by_lock = from == Requester::software && !ete();
    if (by_lock && locks_.software_locked() && offset != Trclar::offset) return AccessResult::locked;
    if (!access.always && (!status.idle || !status.stable)) return AccessResult::not_idle;
    switch (offset) {
        case Trcprgctlr::offset: {
            const bool enable = (value & 1U) != 0;
            // Unpredictable except in Idle and Running (1.1).
            if (enable != file_.prgctlr.enable && !(status.idle && status.stable) && !running)
                return AccessResult::not_idle;
            file_.prgctlr.enable = enable;
            return AccessResult::done;
        }
        case Trcoslar::offset: locks_.lock_os((value & 1U) != 0); return AccessResult::done;
        case Trclar::offset:
            if (by_lock) locks_.write_key(value);
            return AccessResult::done;
        case Trcclaimset::offset: locks_.claim(value); return AccessResult::done;
        case Trcclaimclr::offset: locks_.unclaim(value); return AccessResult::done;
        default: break;
    }
    const std::uint32_t kept = file_.get(offset).value_or(0) & ~access.mask;
    file_.set(offset, kept | (value & access.mask));
    if (offset == Trcpdcr::offset && locks_.request_power(file_.pdcr.pu)) forget_program();
    return AccessResult::done;
}

ReadResult ModelRegisters::read(unsigned offset, Requester from, Status status, const Registers& now) {
    if (refused(offset, from)) return {AccessResult::error, 0};
    const WordAccess access = word_access(file_, offset);
    if (!access.present) return {AccessResult::not_present, 0};
    if (!access.readable) return {AccessResult::write_only, 0};
    const auto value_of = [](const auto& r) { return static_cast<std::uint32_t>(to_value(r)); };
    std::uint32_t value = now.get(offset).value_or(0);
    switch (offset) {
        case Trcstatr::offset: {
            Trcstatr s;
            s.idle = status.idle;
            s.pmstable = status.stable;
            value = value_of(s);
            break;
        }
        case Trcoslsr::offset: {
            Trcoslsr s = file_.oslsr;
            s.oslk = locks_.os_locked();
            value = value_of(s);
            break;
        }
        case Trcpdsr::offset: {
            Trcpdsr s;
            s.power = powered();
            s.stickypd = s.power && locks_.lost_power();
            s.oslk = locks_.os_locked();
            value = value_of(s);
            // 1.6: reading clears this bit while there is power.
            static_cast<void>(locks_.take_power_loss());
            break;
        }
        case Trcclaimset::offset: value = flow::UnitLocks::claim_tags; break;
        case Trcclaimclr::offset: value = locks_.claimed(); break;
        case Trclsr::offset: {
            Trclsr s;
            // A debugger bypasses the lock, and reads it as absent.
            s.sli = from == Requester::software;
            s.slk = s.sli && locks_.software_locked();
            value = value_of(s);
            break;
        }
        case Trcvictlr::offset: {
            Trcvictlr v = now.victlr;
            // Fixed where nothing can be programmed (1.3).
            if (file_.idr4.numacpairs == 0 && file_.idr4.numpc == 0) v.ssstatus = true;
            if (file_.idr4.numrspair == 0) v.sel = 1;
            value = value_of(v);
            break;
        }
        default: break;
    }
    if (offset >= Trcsscsr::offset && offset < Trcsscsr::offset + 4 * Trcsscsr::count) value |= 1;  // INST
    return {AccessResult::done, value};
}

void ModelRegisters::set_power(bool on) {
    if (locks_.set_power(on)) forget_program();
}

void ModelRegisters::forget_program() {
    Registers::for_each(file_, [&](auto& r, unsigned offset) {
        if (!is_identification(offset)) r = {};
    });
}

}  // namespace waymark::etm4
