#include "waymark/pft/unit.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/pft/access.h"
#include "waymark/pft/config.h"
#include "waymark/pft/exceptions.h"
#include "waymark/pft/model.h"
#include "waymark/pft/recorded_unit.h"

namespace waymark::pft {

namespace {

bool is_a9(const flow::UnitOptions& options) { return options.core == "cortex-a9"; }

std::vector<RegisterField> fields_at(const Registers& registers, unsigned number) {
    std::vector<RegisterField> out;
    for_each_place(registers, [&](const auto& one, const RegisterPlace& place) {
        if (place.number == number) out = fields_of(one);
    });
    return out;
}

constexpr RecordedKind ptm{"PTM", "a PTM", Macrocell::ptm, fields_at};

ModelConfig basic_config(const flow::UnitOptions& options) {
    ModelConfig config;
    Registers& r = config.registers;
    r.cr.cycle_accurate = options.cycle_accurate;
    r.cr.timestamps = options.timestamps;
    r.cr.return_stack = options.return_stack;
    r.cr.branch_broadcast = options.branch_broadcast;
    r.cr.context_id_size = static_cast<std::uint8_t>(options.context_id_bytes == 4 ? 3 : options.context_id_bytes);
    if (is_a9(options)) {
        r.idr = from_value<Etmidr>(0x411cf301);
        r.ccer = from_value<Etmccer>(0x00c019a2);
    } else {
        r.idr = from_value<Etmidr>(0x411cf312);
        r.ccer = from_value<Etmccer>(0x34c01ac2);
    }
    r.syncfr.value = options.sync_bytes;
    config.choices.timestamp_numerator = 1;  // one tick is one cycle
    config.choices.fifo_bytes = options.fifo_bytes;
    config.choices.drain_cycles = options.drain_cycles;
    // OQ10: a reader cannot distinguish the address 0 from a real one.
    config.choices.prohibited_entry = ModelChoices::ProhibitedEntry::nothing;
    // The unit has four pairs of address comparators, two counters, a sequencer, four inputs, two outputs, and a
    // Context ID comparator.
    r.ccr = from_value<Etmccr>(0x8d294004);
    return config;
}

/// Errors: `usage`: a register or range cannot be programmed.
Result<ModelConfig> programmed_config(const flow::UnitOptions& options) {
    ModelConfig config = basic_config(options);
    WM_RETURN_IF_ERROR(program_by_options(config.registers, options, ptm));
    return config;
}

/// Precondition: check() accepted the options.
ModelConfig model_config(const flow::UnitOptions& options) {
    auto config = programmed_config(options);
    WM_CHECK(config);
    return *std::move(config);
}

class RecordedUnit final : public RecordedMacrocell<Model> {
public:
    RecordedUnit(const ModelConfig& config, ByteSink& trace) : RecordedMacrocell(config, trace) {}

    void waypoint(const flow::Straight& before, const flow::RetiredWaypoint& w, std::uint64_t cycle) override {
        Retired retired;
        retired.address = w.address;
        retired.isa = w.isa;
        retired.instruction = w.instruction;
        retired.passed = w.passed;
        retired.next = w.next;
        retired.ns = context_.ns;
        retired.hyp = context_.hyp;
        retired.cycle = cycle;
        model_.retire_block(retired, before.bytes == 0 ? std::uint8_t{0} : before.last_bytes);
    }
    std::size_t waypoints(Place, std::span<const flow::RetiredBlock> blocks) override {
        return model_.retire_blocks(blocks, context_.ns, context_.hyp);
    }
    std::unique_ptr<flow::PreparedSequence> prepare(Place from, std::uint64_t cycle,
                                                    std::span<const flow::RetiredBlock> blocks) override {
        return model_.prepare(from, cycle, blocks);
    }
    std::size_t sequences(std::span<const flow::RetiredSequence> sequences) override {
        return model_.retire_sequences(sequences, context_.ns, context_.hyp);
    }
    void exception(const flow::Straight& before, flow::ExceptionClass kind, std::optional<Place> handler,
                   std::uint64_t cycle) override {
        model_.run(before.bytes, before.last_bytes, cycle);
        ExceptionTaken taken;
        taken.number = exception_number(kind);
        taken.vector = handler.value_or(Place{{linux_vector(kind)}, Isa::a32});
        taken.ns = context_.ns;
        taken.hyp = context_.hyp;
        taken.cycle = cycle;
        model_.exception(taken);
    }
    void program(const flow::UnitOptions& options, std::uint64_t cycle) override {
        program_registers(model_config(options).registers, programs_all(options), cycle);
    }
    [[nodiscard]] std::uint64_t lost() const override { return model_.counts().overflowed; }
};

class Factory final : public flow::UnitFactory, public flow::MakesUnitSignals {
public:
    [[nodiscard]] std::string_view name() const override { return "PTM"; }
    [[nodiscard]] flow::UnitOptions defaults() const override { return {.core = "cortex-a15"}; }

    [[nodiscard]] Status check(const flow::UnitOptions& options) const override {
        const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
        if (options.core != "cortex-a9" && options.core != "cortex-a15")
            return wrong(fmt::format("--core {} is not offered; cortex-a9 and cortex-a15 are", options.core));
        if (options.return_stack && options.branch_broadcast)
            return wrong("--return-stack and --branch-broadcast exclude each other: a PTM does not allow both");
        WM_RETURN_IF_ERROR(check_macrocell(options, ptm));
        if (options.cycle_threshold != 0)
            return wrong("--cycle-threshold: a PTM counts cycles with every packet that can carry a count");
        if (const auto config = programmed_config(options); !config) return config.error();
        return Nothing{};
    }

    [[nodiscard]] std::string core_type(const flow::UnitOptions& options) const override {
        return is_a9(options) ? "Cortex-A9" : "Cortex-A15";
    }
    [[nodiscard]] std::string source_type(const flow::UnitOptions& options) const override {
        return is_a9(options) ? "PTM1.0" : "PTM1.1";
    }
    [[nodiscard]] std::vector<RegisterValue> registers(const flow::UnitOptions& options,
                                                       std::uint8_t trace_id) const override {
        const ModelConfig config = model_config(options);
        Etmtraceidr id;
        id.trace_id = trace_id;
        const Registers& r = config.registers;
        return captured_registers(r, Registers{},
                                  {register_value(r.cr), register_value(r.syncfr), register_value(r.idr),
                                   register_value(r.ccer), register_value(id)},
                                  ptm);
    }
    [[nodiscard]] std::optional<flow::SelectedBlocks> selects(const flow::UnitOptions& options) const override {
        return selected_by(model_config(options).registers);
    }
    [[nodiscard]] Signals signals(const flow::UnitOptions& options) const override {
        return {.non_secure = true, .os_lock = !is_a9(options)};  // PFT v1.0 has none
    }
    [[nodiscard]] isa::DecodeOptions decode_options(const flow::UnitOptions&) const override {
        return {};  // neither Cortex-A9 nor A15 has DMB and DSB as waypoints (docs/spec/pft.md, 3)
    }
    [[nodiscard]] std::unique_ptr<flow::Unit> make(const flow::UnitOptions& options, ByteSink& trace) const override {
        return std::make_unique<RecordedUnit>(model_config(options), trace);
    }
    [[nodiscard]] Result<flow::ComponentProgram> program(const flow::UnitOptions& options,
                                                         std::uint8_t trace_id) const override {
        Registers wanted = model_config(options).registers;
        wanted.traceidr.trace_id = trace_id;
        return program_of(wanted, programs_all(options));
    }
    [[nodiscard]] std::unique_ptr<flow::Unit> make_unprogrammed(const flow::UnitOptions& options, std::uint64_t seed,
                                                                ByteSink& trace) const override {
        ModelConfig config = model_config(options);
        config.registers = found_registers(config.registers, seed);
        auto unit = std::make_unique<RecordedUnit>(config, trace);
        unit->set_locks();
        // PFT v1.0 cannot request power.
        if (seed % 2 == 1 && register_access(config.registers, management::pdcr).writable) unit->lose_power();
        return unit;
    }
};

}  // namespace

const flow::UnitFactory& unit_factory() {
    static const Factory factory;
    return factory;
}

}  // namespace waymark::pft
