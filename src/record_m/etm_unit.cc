#include "etm_unit.h"

#include <fmt/format.h>

#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/etm3/registers.h"
#include "waymark/record/files.h"

namespace waymark::record {

namespace {

constexpr const char* etm_truth = "truth_ETMV3_0.bin";
// Values of the macrocell of Cortex-M3 and M4 (docs/spec/etmv3.md, 1).
constexpr std::uint32_t cortex_m3_idr = 0x4114f250, cortex_m3_ccer = 0x18541800;
constexpr std::uint32_t least_exc_return = 0xff000000;

etm3::Etm3cr control() {
    etm3::Etm3cr cr;
    cr.port_enabled = true;
    return cr;
}

etm3::ModelConfig model_config() {
    etm3::ModelConfig config;
    config.registers.cr = from_value<pft::Etmcr>(to_value(control()));
    config.registers.idr = from_value<pft::Etmidr>(cortex_m3_idr);
    config.registers.ccer = from_value<etm3::Etmccer>(cortex_m3_ccer);
    config.m_profile = true;
    return config;
}

/// The number in a branch packet (docs/spec/etmv3.md, 4) of an exception of ARMv7-M.
std::uint32_t packet_number(std::uint32_t exception) {
    switch (exception) {
        case 1: return 17;   // Reset
        case 2: return 10;   // NMI
        case 3: return 19;   // HardFault
        case 4: return 13;   // MemManage
        case 5: return 21;   // BusFault
        case 6: return 9;    // UsageFault
        case 11: return 11;  // SVC
        case 12: return 12;  // DebugMonitor
        case 14: return 14;  // PendSV
        case 15: return 15;  // SysTick
        case 16: return 8;   // IRQ0
        default: break;
    }
    constexpr std::uint32_t first_interrupt = 16, small_numbers = 8;
    const std::uint32_t interrupt = exception - first_interrupt;
    return interrupt < small_numbers ? interrupt : exception;
}

}  // namespace

EtmUnit::EtmUnit(TraceOutput::Input to, std::unique_ptr<RangeWriter> ranges)
    : id_(to.id), model_(model_config(), to.trace), ranges_(std::move(ranges)) {}

Result<std::unique_ptr<CoreUnit>> EtmUnit::create(const std::filesystem::path& folder, TraceOutput::Input to) {
    WM_ASSIGN_OR_RETURN(auto ranges, RangeWriter::create(folder / etm_truth));
    return std::unique_ptr<CoreUnit>(new EtmUnit(to, std::move(ranges)));
}

void EtmUnit::enable(bool on) {
    wanted_ = on;
    if (started_) model_.set_programming(!on, cycle_);
}

void EtmUnit::give(etm3::Executed executed, const CoreInstruction& i) {
    executed.address = {i.address};
    executed.isa = isa::Isa::t32;
    executed.next.isa = isa::Isa::t32;
    if (!std::exchange(started_, true)) model_.start({{executed.address, executed.isa}, false, false, executed.cycle});
    model_.instruction(executed);
    const TruthRange range{i.address, i.address + i.bytes, 1, false};
    truth_.add(range);
    ranges_->add(range);
}

void EtmUnit::trace(const CoreInstruction& i, std::uint32_t next, std::uint64_t cycle) {
    etm3::Executed executed;
    executed.instruction = i.decoded;
    executed.passed = passes(i);
    executed.next.address = {next};
    executed.cycle = cycle;
    give(std::move(executed), i);
}

void EtmUnit::trace_return(const Return& from, std::optional<std::uint32_t> next) {
    etm3::Executed executed;
    executed.instruction = from.instruction.decoded;
    executed.instruction.exception_return = true;
    executed.tail_chains = !next;
    executed.next.address = {next.value_or(from.instruction.address + from.instruction.bytes)};
    executed.cycle = from.cycle;
    give(std::move(executed), from.instruction);
}

/// It is not known where execution went on: the unit is off until the next instruction.
void EtmUnit::omit() {
    ++truth_.unfinished_instructions;
    returning_.reset();
}

void EtmUnit::instruction(const CoreInstruction& i, std::uint32_t next, std::uint64_t cycle) {
    if (!wanted_) return;
    cycle_ = cycle;
    if (next >= least_exc_return)
        returning_ = {i, cycle};
    else
        trace(i, next, cycle);
}

void EtmUnit::lost(const CoreInstruction&, std::uint64_t cycle) {
    if (!wanted_) return;
    cycle_ = cycle;
    omit();
}

void EtmUnit::exception(std::uint32_t number, std::optional<std::uint32_t> back, std::uint32_t handler,
                        std::uint64_t cycle) {
    if (!wanted_) return;
    const isa::Place vector{{handler}, isa::Isa::t32};
    const std::optional<Return> chained = std::exchange(returning_, std::nullopt);
    if (chained && back) trace_return(*chained, std::nullopt);
    if (chained && !back) omit();
    if (!started_) return;
    if (!back) return model_.discontinuity({vector, false, false, cycle});
    etm3::ExceptionTaken taken;
    taken.number = packet_number(number);
    taken.vector = vector;
    taken.cycle = cycle;
    taken.cancels_return = chained.has_value();
    model_.exception(taken);
}

void EtmUnit::returned(std::uint32_t, std::uint32_t to, std::uint32_t, std::uint64_t) {
    if (wanted_ && returning_) trace_return(*std::exchange(returning_, std::nullopt), to);
}

Status EtmUnit::finish(const std::string& core, const std::string& core_type, std::uint32_t, capture::Capture& capture,
                       Truth& truth) {
    if (returning_) omit();
    if (started_) model_.finish();
    etm3::Etmtraceidr id;
    id.trace_id = id_.value;
    capture.sources.push_back(
        {.name = std::string(etm_name),
         .type = "ETM3.5",
         .core = core,
         .core_type = core_type,
         .registers = {register_value(control()), register_value(from_value<etm3::Etm3idr>(cortex_m3_idr)),
                       register_value(from_value<etm3::Etmccer>(cortex_m3_ccer)), register_value(id)}});
    if (!ranges_->flush()) return cannot("write", std::filesystem::path(etm_truth));
    truth_.source = etm_name;
    truth_.file = etm_truth;
    truth.sources.push_back(truth_);
    return Nothing{};
}

std::string EtmUnit::summary() const {
    return fmt::format("{} of the ETMv3 ({})", counted(model_.counts().instructions, "instruction"),
                       counted(model_.counts().bytes, "byte"));
}

}  // namespace waymark::record
