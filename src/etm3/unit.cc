#include "waymark/etm3/unit.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waymark/etm3/model.h"
#include "waymark/etm3/registers.h"
#include "waymark/flow/each_instruction.h"
#include "waymark/pft/exceptions.h"
#include "waymark/pft/recorded_unit.h"

namespace waymark::etm3 {

namespace {

std::vector<RegisterField> fields_at(const Registers& registers, unsigned number) {
    std::vector<RegisterField> out;
    etm3::for_each_place(registers, [&](const auto& one, const pft::RegisterPlace& place) {
        if (place.number == number) out = fields_of(one);
    });
    return out;
}

constexpr pft::RecordedKind kind{"ETMv3", "an ETMv3", pft::Macrocell::etmv3, fields_at};

/// Errors: `usage`: a register or range cannot be programmed.
Result<ModelConfig> programmed_config(const flow::UnitOptions& options) {
    ModelConfig config;
    Etm3cr cr;
    cr.port_enabled = true;
    cr.cycle_accurate = options.cycle_accurate;
    cr.timestamps = options.timestamps;
    cr.branch_output = options.branch_broadcast;
    cr.context_id_size = static_cast<std::uint8_t>(options.context_id_bytes == 4 ? 3 : options.context_id_bytes);
    config.registers.cr = from_value<pft::Etmcr>(to_value(cr));
    config.registers.syncfr.value = options.sync_bytes;
    config.choices.fifo_bytes = options.fifo_bytes;
    config.choices.drain_cycles = options.drain_cycles;
    // One tick is one cycle. The value 0 would mean that the time is not known.
    config.choices.timestamp_first = 1;
    WM_RETURN_IF_ERROR(program_by_options(config.registers, options, kind));
    return config;
}

/// Precondition: check() accepted the options.
ModelConfig model_config(const flow::UnitOptions& options) {
    auto config = programmed_config(options);
    WM_CHECK(config);
    return *std::move(config);
}

class RecordedUnit final : public pft::RecordedMacrocell<Model> {
public:
    RecordedUnit(const ModelConfig& config, ByteSink& trace) : RecordedMacrocell(config, trace) {}

    void waypoint(const flow::Straight& before, const flow::RetiredWaypoint& w, std::uint64_t cycle) override {
        WM_CHECK(before.bytes == 0);
        Executed executed;
        executed.address = w.address;
        executed.isa = w.isa;
        executed.instruction = w.instruction;
        executed.passed = w.passed;
        executed.next = w.next;
        executed.ns = context_.ns;
        executed.hyp = context_.hyp;
        executed.cycle = cycle;
        model_.instruction(executed);
    }
    void exception(const flow::Straight& before, flow::ExceptionClass cause, std::optional<Place> handler,
                   std::uint64_t cycle) override {
        WM_CHECK(before.bytes == 0);
        using flow::ExceptionClass;
        ExceptionTaken taken;
        taken.number = pft::exception_number(cause);
        taken.vector = handler.value_or(Place{{pft::linux_vector(cause)}, Isa::a32});
        taken.ns = context_.ns;
        taken.hyp = context_.hyp;
        taken.cycle = cycle;
        // The instruction had begun, and is executed again or not at all.
        taken.cancels = cause == ExceptionClass::data_abort || cause == ExceptionClass::undefined;
        model_.exception(taken);
    }
    void program(const flow::UnitOptions& options, std::uint64_t cycle) override {
        program_registers(model_config(options).registers, pft::programs_all(options), cycle);
    }
    [[nodiscard]] std::uint64_t lost() const override { return model_.counts().lost; }
};

class Factory final : public flow::UnitFactory, public flow::EachInstruction, public flow::MakesUnitSignals {
public:
    [[nodiscard]] std::string_view name() const override { return "ETMV3"; }
    /// The instruction did not complete.
    [[nodiscard]] bool undefined_executes() const override { return false; }
    [[nodiscard]] flow::UnitOptions defaults() const override { return {.core = "cortex-a7"}; }

    [[nodiscard]] Status check(const flow::UnitOptions& options) const override {
        const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
        if (options.core != defaults().core)
            return wrong(
                fmt::format("--core {} is not offered with --unit etmv3; {} is", options.core, defaults().core));
        if (options.return_stack) return wrong("--return-stack: an ETMv3 has no return stack");
        WM_RETURN_IF_ERROR(check_macrocell(options, kind));
        if (options.cycle_threshold != 0) return wrong("--cycle-threshold: an ETMv3 counts cycles with every P-header");
        if (const auto config = programmed_config(options); !config) return config.error();
        return Nothing{};
    }

    [[nodiscard]] std::string core_type(const flow::UnitOptions&) const override { return "Cortex-A7"; }
    [[nodiscard]] std::string source_type(const flow::UnitOptions&) const override { return "ETM3.5"; }
    [[nodiscard]] std::vector<RegisterValue> registers(const flow::UnitOptions& options,
                                                       std::uint8_t trace_id) const override {
        Etmtraceidr id;
        id.trace_id = trace_id;
        const Registers r = model_config(options).registers;
        return captured_registers(r, tracing_registers(),
                                  {register_value(r.cr), register_value(r.syncfr), register_value(r.idr),
                                   register_value(r.ccer), register_value(id)},
                                  kind);
    }
    [[nodiscard]] std::optional<flow::SelectedBlocks> selects(const flow::UnitOptions& options) const override {
        return pft::selected_by(model_config(options).registers);
    }
    [[nodiscard]] Signals signals(const flow::UnitOptions&) const override {
        return {.non_secure = true, .os_lock = true};
    }
    [[nodiscard]] isa::DecodeOptions decode_options(const flow::UnitOptions&) const override { return {}; }
    [[nodiscard]] std::unique_ptr<flow::Unit> make(const flow::UnitOptions& options, ByteSink& trace) const override {
        return std::make_unique<RecordedUnit>(model_config(options), trace);
    }
    [[nodiscard]] Result<flow::ComponentProgram> program(const flow::UnitOptions& options,
                                                         std::uint8_t trace_id) const override {
        Registers wanted = model_config(options).registers;
        wanted.traceidr.trace_id = trace_id;
        return pft::program_of(wanted, pft::programs_all(options));
    }
    [[nodiscard]] std::unique_ptr<flow::Unit> make_unprogrammed(const flow::UnitOptions& options, std::uint64_t seed,
                                                                ByteSink& trace) const override {
        ModelConfig config = model_config(options);
        config.registers = pft::found_registers(config.registers, seed);
        auto unit = std::make_unique<RecordedUnit>(config, trace);
        unit->set_locks();
        if (seed % 2 == 1) unit->lose_power();
        return unit;
    }
};

}  // namespace

const flow::UnitFactory& unit_factory() {
    static const Factory factory;
    return factory;
}

}  // namespace waymark::etm3
