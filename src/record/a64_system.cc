#include "waymark/record/a64_system.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "waymark/record/ring.h"

namespace waymark::record {

using flow::ExceptionClass;

namespace {

namespace qemu {
enum Exception : std::uint32_t { irq = 5, fiq = 6, virtual_irq = 14, virtual_fiq = 15, virtual_serror = 24 };
}  // namespace qemu

/// ESR_ELx.EC.
namespace syndrome {
enum Class : std::uint32_t {
    branch_target = 0x0d,
    svc_aarch32 = 0x11,
    hvc_aarch32 = 0x12,
    smc_aarch32 = 0x13,
    svc = 0x15,
    hvc = 0x16,
    smc = 0x17,
    pointer_authentication = 0x1c,
    instruction_abort_lower = 0x20,
    instruction_abort = 0x21,
    pc_alignment = 0x22,
    data_abort_lower = 0x24,
    data_abort = 0x25,
    sp_alignment = 0x26,
    serror = 0x2f,
    breakpoint_lower = 0x30,
    step = 0x33,
    watchpoint_lower = 0x34,
    watchpoint = 0x35,
    bkpt = 0x38,
    vector_catch = 0x3a,
    brk = 0x3c,
};
}  // namespace syndrome

std::uint64_t bit(unsigned n) { return std::uint64_t{1} << n; }

}  // namespace

ExceptionClass a64_exception(std::uint32_t number, std::uint32_t exception_class, bool returns_after) {
    switch (number) {
        case qemu::irq:
        case qemu::virtual_irq: return ExceptionClass::irq;
        case qemu::fiq:
        case qemu::virtual_fiq: return ExceptionClass::fiq;
        case qemu::virtual_serror: return ExceptionClass::system_error;
        default: break;
    }
    switch (exception_class) {
        case syndrome::svc_aarch32:
        case syndrome::svc: return returns_after ? ExceptionClass::supervisor_call : ExceptionClass::trap;
        case syndrome::hvc_aarch32:
        case syndrome::hvc: return returns_after ? ExceptionClass::hypervisor_call : ExceptionClass::trap;
        case syndrome::smc_aarch32:
        case syndrome::smc: return returns_after ? ExceptionClass::monitor_call : ExceptionClass::trap;
        case syndrome::branch_target:
        case syndrome::instruction_abort_lower:
        case syndrome::instruction_abort: return ExceptionClass::prefetch_abort;
        case syndrome::pointer_authentication:
        case syndrome::data_abort_lower:
        case syndrome::data_abort: return ExceptionClass::data_abort;
        case syndrome::pc_alignment:
        case syndrome::sp_alignment: return ExceptionClass::alignment;
        case syndrome::serror: return ExceptionClass::system_error;
        case syndrome::watchpoint_lower:
        case syndrome::watchpoint: return ExceptionClass::watchpoint;
        case syndrome::bkpt:
        case syndrome::vector_catch:
        case syndrome::brk: return ExceptionClass::breakpoint;
        default:
            return exception_class >= syndrome::breakpoint_lower && exception_class <= syndrome::step
                       ? ExceptionClass::breakpoint
                       : ExceptionClass::trap;
    }
}

bool stops_instruction(ExceptionClass kind) {
    switch (kind) {
        case ExceptionClass::supervisor_call:
        case ExceptionClass::hypervisor_call:
        case ExceptionClass::monitor_call:
        case ExceptionClass::irq:
        case ExceptionClass::fiq:
        case ExceptionClass::system_error: return false;
        default: return true;
    }
}

void A64State::state(std::uint32_t bits) {
    el_ = static_cast<std::uint8_t>((bits & words::el_mask) >> words::el_bit);
    aarch32_ = (bits & words::aarch32) != 0;
    if ((bits & words::ns_known) != 0 && el_ != 3) ns_ = (bits & words::ns) != 0;
}

void A64State::wrote(A64Register reg, std::uint64_t value) {
    constexpr unsigned scr_ns = 0, hcr_e2h = 34;
    switch (reg) {
        case A64Register::scr_el3: ns_ = (value & bit(scr_ns)) != 0; break;
        case A64Register::hcr_el2: hcr_el2_ = value; break;
        case A64Register::vttbr_el2: vttbr_el2_ = value; break;
        case A64Register::contextidr_el1:
            // With E2H set, this name accesses CONTEXTIDR_EL2 at EL2.
            (el_ == 2 && (hcr_el2_ & bit(hcr_e2h)) != 0 ? contextidr_el2_ : contextidr_el1_) =
                static_cast<std::uint32_t>(value);
            break;
        case A64Register::contextidr_el12: contextidr_el1_ = static_cast<std::uint32_t>(value); break;
        case A64Register::contextidr_el2: contextidr_el2_ = static_cast<std::uint32_t>(value); break;
        default: break;
    }
}

flow::Context A64State::context() const {
    constexpr unsigned vttbr_vmid = 48;
    std::optional<std::uint32_t> vmid;
    if (vmid_ == flow::VmidRegister::vttbr_el2) vmid = static_cast<std::uint32_t>(vttbr_el2_ >> vttbr_vmid);
    if (vmid_ == flow::VmidRegister::contextidr_el2) vmid = contextidr_el2_;
    return {.ns = ns_ && el_ != 3,
            .hyp = el_ == 2,
            .context_id = contextidr_el1_,
            .vmid = vmid,
            .nse = false,
            .aarch64 = true,
            .el = el_};
}

namespace {

constexpr std::size_t a64_bytes = 4;

/// Calls `f(address, word)` for each instruction in the executable parts.
void for_each_word(const image::MemoryMap& memory, auto&& f) {
    for (const image::Region& region : memory.regions()) {
        if (region.shadowed_by) continue;
        const std::uint64_t end = region.address.value + region.bytes;
        for (std::uint64_t at = (region.address.value + a64_bytes - 1) / a64_bytes * a64_bytes;
             at + a64_bytes <= end;) {
            const isa::Code code = memory.at({at}, {});
            const std::size_t whole = code.bytes.size() / a64_bytes * a64_bytes;
            if (whole == 0) break;
            for (std::size_t i = 0; i < whole; i += a64_bytes) {
                std::uint32_t word = 0;
                std::memcpy(&word, code.bytes.data() + i, a64_bytes);
                f(Address{at + i}, word);
            }
            at += whole;
        }
    }
}

}  // namespace

bool programs_profiling(const image::MemoryMap& memory) {
    bool found = false;
    for_each_word(memory,
                  [&](Address, std::uint32_t word) { found |= is_unknown_to_qemu(a64_register_written(word)); });
    return found;
}

std::vector<std::pair<Address, Address>> after_register_writes(const image::MemoryMap& memory, A64Needs needs) {
    std::vector<std::pair<Address, Address>> found, vectors;
    for_each_word(memory, [&](Address at, std::uint32_t word) {
        if (needs.includes(a64_register_written(word)) && found.size() < most_watched_writes)
            found.emplace_back(at + a64_bytes, at + 2 * a64_bytes);
        // The entries for synchronous exceptions that a level takes from itself; a table is aligned to its size.
        constexpr std::uint64_t table_bytes = 2048, with_own_stack = 0x200;
        const std::uint64_t entry = at.value % table_bytes;
        if (needs.profiling && (entry == 0 || entry == with_own_stack) && vectors.size() < most_watched_writes)
            vectors.emplace_back(at, at + a64_bytes);
    });
    found.insert(found.end(), vectors.begin(), vectors.end());
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
}

}  // namespace waymark::record
