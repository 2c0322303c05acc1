#include "waymark/etm4/exceptions.h"

#include <fmt/format.h>

#include <array>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "waymark/core/result.h"

namespace waymark::etm4 {

namespace {

using flow::ExceptionClass, flow::ExceptionType;
using Table = std::array<ExceptionType, exception_types>;

constexpr std::array a_profile{
    ExceptionType{0x00, ExceptionClass::reset, "PE reset"},
    ExceptionType{0x01, ExceptionClass::debug_halt, "Debug halt"},
    ExceptionType{0x02, ExceptionClass::call, "Call"},
    ExceptionType{0x03, ExceptionClass::trap, "Trap"},
    ExceptionType{0x04, ExceptionClass::system_error, "System error"},
    ExceptionType{0x06, ExceptionClass::breakpoint, "Inst debug"},
    ExceptionType{0x07, ExceptionClass::watchpoint, "Data debug"},
    ExceptionType{0x0a, ExceptionClass::alignment, "Alignment"},
    ExceptionType{0x0b, ExceptionClass::prefetch_abort, "Inst fault"},
    ExceptionType{0x0c, ExceptionClass::data_abort, "Data fault"},
    ExceptionType{0x0e, ExceptionClass::irq, "IRQ"},
    ExceptionType{0x0f, ExceptionClass::fiq, "FIQ"},
};
constexpr ExceptionType transaction_failure{0x18, ExceptionClass::transaction_failure, "Transaction failure"};

constexpr std::array m_profile{
    ExceptionType{0x01, ExceptionClass::reset, "PE reset"},
    ExceptionType{0x02, ExceptionClass::nmi, "NMI"},
    ExceptionType{0x03, ExceptionClass::hard_fault, "HardFault"},
    ExceptionType{0x04, ExceptionClass::memory_fault, "MemManage"},
    ExceptionType{0x05, ExceptionClass::bus_fault, "BusFault"},
    ExceptionType{0x06, ExceptionClass::usage_fault, "UsageFault"},
    ExceptionType{0x07, ExceptionClass::secure_fault, "SecureFault"},
    ExceptionType{0x0b, ExceptionClass::supervisor_call, "SVC"},
    ExceptionType{0x0c, ExceptionClass::debug_monitor, "DebugMonitor"},
    ExceptionType{0x0e, ExceptionClass::pend_sv, "PendSV"},
    ExceptionType{0x0f, ExceptionClass::sys_tick, "SysTick"},
    ExceptionType{0x18, ExceptionClass::debug_halt, "Debug halt"},
    ExceptionType{0x19, ExceptionClass::lazy_fp_push, "Lazy FP push"},
    ExceptionType{0x1a, ExceptionClass::lockup, "Lockup"},
};

/// The tables of A and M profile, and names that contain a number.
class Tables {
public:
    Tables() {
        for (std::uint32_t type = 0; type < exception_types; ++type)
            a_[type] = m_[type] = {type, ExceptionClass::reserved, "reserved"};
        for (const ExceptionType& row : a_profile) a_[row.number] = row;
        for (const ExceptionType& row : m_profile) m_[row.number] = row;
        for (std::uint32_t n = 0; n < 8; ++n)
            numbered(a_, 0x10 + n, ExceptionClass::other, fmt::format("implementation defined {}", n));
        ete_ = a_;
        ete_[transaction_failure.number] = transaction_failure;
        for (std::uint32_t n = 0; n <= 495; ++n)
            numbered(m_, n < 8 ? 0x10 + n : 0x200 + n, ExceptionClass::external_interrupt, fmt::format("IRQ{}", n));
    }
    [[nodiscard]] const Table& of(const Config& config) const {
        return config.profile == CoreProfile::m ? m_ : config.ete() ? ete_ : a_;
    }

private:
    void numbered(Table& table, std::uint32_t type, ExceptionClass kind, std::string name) {
        table[type] = {type, kind, names_.emplace_back(std::move(name))};
    }
    std::deque<std::string> names_;
    Table a_, ete_, m_;
};

}  // namespace

const flow::ExceptionType& exception_type(std::uint32_t type, const Config& config) {
    static const auto tables = std::make_unique<const Tables>();
    WM_CHECK(type < exception_types);
    return tables->of(config)[type];
}

std::uint32_t exception_type_of(ExceptionClass kind) {
    if (kind == ExceptionClass::supervisor_call || kind == ExceptionClass::hypervisor_call ||
        kind == ExceptionClass::monitor_call)
        kind = ExceptionClass::call;
    for (const ExceptionType& row : a_profile)
        if (row.kind == kind) return row.number;
    return kind == ExceptionClass::transaction_failure ? transaction_failure.number : 0x03;
}

}  // namespace waymark::etm4
