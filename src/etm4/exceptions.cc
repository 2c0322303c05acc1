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

using flow::ExceptionClass;
using Table = std::array<flow::ExceptionType, exception_types>;

struct Row {
    std::uint32_t type;
    ExceptionClass kind;
    std::string_view name;
};

constexpr std::array a_profile{
    Row{0x00, ExceptionClass::reset, "PE reset"},
    Row{0x01, ExceptionClass::debug_halt, "Debug halt"},
    Row{0x02, ExceptionClass::call, "Call"},
    Row{0x03, ExceptionClass::trap, "Trap"},
    Row{0x04, ExceptionClass::system_error, "System error"},
    Row{0x06, ExceptionClass::breakpoint, "Inst debug"},
    Row{0x07, ExceptionClass::watchpoint, "Data debug"},
    Row{0x0a, ExceptionClass::alignment, "Alignment"},
    Row{0x0b, ExceptionClass::prefetch_abort, "Inst fault"},
    Row{0x0c, ExceptionClass::data_abort, "Data fault"},
    Row{0x0e, ExceptionClass::irq, "IRQ"},
    Row{0x0f, ExceptionClass::fiq, "FIQ"},
};
constexpr Row transaction_failure{0x18, ExceptionClass::transaction_failure, "Transaction failure"};

constexpr std::array m_profile{
    Row{0x01, ExceptionClass::reset, "PE reset"},
    Row{0x02, ExceptionClass::nmi, "NMI"},
    Row{0x03, ExceptionClass::hard_fault, "HardFault"},
    Row{0x04, ExceptionClass::memory_fault, "MemManage"},
    Row{0x05, ExceptionClass::bus_fault, "BusFault"},
    Row{0x06, ExceptionClass::usage_fault, "UsageFault"},
    Row{0x07, ExceptionClass::secure_fault, "SecureFault"},
    Row{0x0b, ExceptionClass::supervisor_call, "SVC"},
    Row{0x0c, ExceptionClass::debug_monitor, "DebugMonitor"},
    Row{0x0e, ExceptionClass::pend_sv, "PendSV"},
    Row{0x0f, ExceptionClass::sys_tick, "SysTick"},
    Row{0x18, ExceptionClass::debug_halt, "Debug halt"},
    Row{0x19, ExceptionClass::lazy_fp_push, "Lazy FP push"},
    Row{0x1a, ExceptionClass::lockup, "Lockup"},
};

/// The tables of A and M profile, and names that contain a number.
class Tables {
public:
    Tables() {
        for (const bool m : {false, true}) {
            Table& table = m ? m_ : a_;
            for (std::uint32_t type = 0; type < table.size(); ++type)
                table[type] = {type, ExceptionClass::reserved, "reserved"};
        }
        for (const Row& row : a_profile) a_[row.type] = {row.type, row.kind, row.name};
        for (const Row& row : m_profile) m_[row.type] = {row.type, row.kind, row.name};
        for (std::uint32_t n = 0; n < 8; ++n)
            numbered(a_, 0x10 + n, ExceptionClass::other, fmt::format("implementation defined {}", n));
        ete_ = a_;
        ete_[transaction_failure.type] = {transaction_failure.type, transaction_failure.kind, transaction_failure.name};
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
    switch (kind) {
        case ExceptionClass::supervisor_call:
        case ExceptionClass::hypervisor_call:
        case ExceptionClass::monitor_call: kind = ExceptionClass::call; break;
        default: break;
    }
    for (const Row& row : a_profile)
        if (row.kind == kind) return row.type;
    return kind == ExceptionClass::transaction_failure ? transaction_failure.type : 0x03;
}

}  // namespace waymark::etm4
