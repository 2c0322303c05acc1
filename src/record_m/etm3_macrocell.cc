#include <string>
#include <utility>

#include "macrocell.h"
#include "waymark/core/registers.h"
#include "waymark/etm3/model.h"
#include "waymark/etm3/registers.h"

namespace waymark::record {

namespace {

// Values of the macrocell of Cortex-M3 and M4 (docs/spec/etmv3.md, 1).
constexpr std::uint32_t cortex_m3_idr = 0x4114f250, cortex_m3_ccer = 0x18541800;

etm3::Etm3cr etm3_control() {
    etm3::Etm3cr cr;
    cr.port_enabled = true;
    return cr;
}

etm3::ModelConfig etm3_config() {
    etm3::ModelConfig config;
    config.registers.cr = from_value<pft::Etmcr>(to_value(etm3_control()));
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

class Etm3 final : public EtmModel {
public:
    explicit Etm3(ByteSink& trace) : model_(etm3_config(), trace) {}

    void start(const CoreInstruction& first, std::uint64_t cycle) override {
        model_.start({thumb_at(first.address), false, false, cycle});
    }
    void instruction(const Step& step) override {
        const CoreInstruction& i = step.instruction;
        etm3::Executed executed;
        executed.address = {i.address};
        executed.isa = isa::Isa::t32;
        executed.instruction = i.decoded;
        executed.instruction.exception_return = step.returns;
        executed.passed = passes(i);
        executed.tail_chains = step.chained;
        executed.next = thumb_at(step.chained ? i.address + i.bytes : step.next);
        executed.cycle = step.cycle;
        model_.instruction(executed);
    }
    void exception(const Taken& taken) override {
        etm3::ExceptionTaken out;
        out.number = packet_number(taken.number);
        out.vector = thumb_at(taken.vector);
        out.cycle = taken.cycle;
        out.cancels_return = taken.chained;
        model_.exception(out);
    }
    void discontinuity(std::uint32_t to, const CoreMode&, std::uint64_t cycle) override {
        model_.discontinuity({thumb_at(to), false, false, cycle});
    }
    void enable(bool on, std::uint64_t cycle) override { model_.set_programming(!on, cycle); }
    void finish() override { model_.finish(); }
    [[nodiscard]] bool shows_all() const override { return true; }
    [[nodiscard]] std::uint64_t bytes() const override { return model_.counts().bytes; }
    [[nodiscard]] capture::Source source(coresight::TraceId trace_id) const override {
        etm3::Etmtraceidr id;
        id.trace_id = trace_id.value;
        return {.name = std::string(etm3_name),
                .type = "ETM3.5",
                .registers = {register_value(etm3_control()), register_value(from_value<etm3::Etm3idr>(cortex_m3_idr)),
                              register_value(from_value<etm3::Etmccer>(cortex_m3_ccer)), register_value(id)}};
    }

private:
    etm3::Model model_;
};

}  // namespace

std::unique_ptr<EtmModel> make_etm3(ByteSink& trace) { return std::make_unique<Etm3>(trace); }

}  // namespace waymark::record
