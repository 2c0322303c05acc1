#include "waymark/mtb/exceptions.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "waymark/isa/decode_instr.h"

namespace waymark::mtb {

namespace {

using flow::ExceptionClass, flow::ExceptionType;

constexpr std::array<ExceptionType, most_vectors> types = [] {
    std::array<ExceptionType, most_vectors> rows{};
    for (std::uint32_t n = 0; n < rows.size(); ++n)
        rows[n] = n < 16 ? ExceptionType{n, ExceptionClass::reserved, "reserved"}
                         : ExceptionType{n, ExceptionClass::external_interrupt, "external interrupt"};
    const auto row = [&](std::uint32_t n, ExceptionClass kind, std::string_view name) { rows[n] = {n, kind, name}; };
    row(1, ExceptionClass::reset, "Reset");
    row(2, ExceptionClass::nmi, "NMI");
    row(3, ExceptionClass::hard_fault, "HardFault");
    row(4, ExceptionClass::memory_fault, "MemManage");
    row(5, ExceptionClass::bus_fault, "BusFault");
    row(6, ExceptionClass::usage_fault, "UsageFault");
    row(7, ExceptionClass::secure_fault, "SecureFault");
    row(11, ExceptionClass::supervisor_call, "SVC");
    row(12, ExceptionClass::debug_monitor, "DebugMonitor");
    row(14, ExceptionClass::pend_sv, "PendSV");
    row(15, ExceptionClass::sys_tick, "SysTick");
    return rows;
}();
// Exceptions of which the kind is not certain; no trace unit sends their numbers, which have ten bits at most.
constexpr std::uint32_t first_other = 1024;
constexpr ExceptionType several{first_other, ExceptionClass::other, "one of several exceptions with this handler"};
constexpr ExceptionType unlisted{first_other + 1, ExceptionClass::other, "exception or debugger"};
constexpr ExceptionType in_lockup{first_other + 2, ExceptionClass::lockup, "lockup"};

}  // namespace

const ExceptionType& exception_type(std::uint32_t number) { return types[number]; }
const ExceptionType& one_of_several_exceptions() { return several; }
const ExceptionType& exception_or_debugger() { return unlisted; }
const ExceptionType& lockup() { return in_lockup; }

void Vectors::read() {
    read_ = true;
    // The length of the table is not stored. Handlers come after the table, so it ends where the first handler begins.
    std::uint64_t end = std::uint64_t{table_} + 4 * most_vectors;
    for (std::uint32_t n = 1; n < most_vectors && table_ + std::uint64_t{4} * n < end; ++n) {
        std::array<std::uint8_t, 4> bytes{};
        if (isa::read(code_, {}, {table_ + std::uint64_t{4} * n}, bytes) != bytes.size()) return;
        const std::uint32_t vector = static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8 |
                                     static_cast<std::uint32_t>(bytes[2]) << 16 |
                                     static_cast<std::uint32_t>(bytes[3]) << 24;
        if (vector == 0) continue;
        if ((vector & 1U) == 0) return;
        const std::uint32_t handler = vector & ~1U;
        if (handler > table_) end = std::min<std::uint64_t>(end, handler);
        const auto [at, fresh] = types_.try_emplace(handler, &types[n]);
        if (!fresh) at->second = &several;
    }
}

}  // namespace waymark::mtb
