#include "waymark/etm3/unit.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waymark/etm3/config.h"
#include "waymark/etm3/model.h"
#include "waymark/etm3/registers.h"
#include "waymark/flow/each_instruction.h"
#include "waymark/pft/exceptions.h"
#include "waymark/pft/unit.h"

namespace waymark::etm3 {

namespace {

// Values of a captured Cortex-A7 (docs/spec/etmv3.md, 1).
constexpr std::uint32_t cortex_a7_idr = 0x410cf250, cortex_a7_ccer = 0x344008f2;

Etm3cr control(const flow::UnitOptions& options) {
    Etm3cr cr;
    cr.cycle_accurate = options.cycle_accurate;
    cr.timestamps = options.timestamps;
    cr.branch_output = options.branch_broadcast;
    cr.context_id_size = static_cast<std::uint8_t>(options.context_id_bytes == 4 ? 3 : options.context_id_bytes);
    return cr;
}

ModelConfig model_config(const flow::UnitOptions& options) {
    ModelConfig config;
    config.config = Config::from_registers(control(options), from_value<Etmccer>(cortex_a7_ccer),
                                           from_value<Etm3idr>(cortex_a7_idr));
    config.choices.sync_bytes = options.sync_bytes;
    config.choices.fifo_bytes = options.fifo_bytes;
    config.choices.drain_cycles = options.drain_cycles;
    // One tick is one cycle. The value 0 would mean that the time is not known.
    config.choices.timestamp_first = 1;
    return config;
}

class RecordedUnit final : public flow::Unit {
public:
    RecordedUnit(const flow::UnitOptions& options, ByteSink& trace)
        : model_(model_config(options), trace), may_lose_(options.fifo_bytes != 0) {}

    void context(const flow::Context& context) override {
        if (context.context_id && context.context_id != context_.context_id) model_.set_context_id(*context.context_id);
        context_ = context;
    }
    void start(Place first, std::uint64_t cycle) override { model_.start(arrival(first, cycle)); }
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
    void exception(const flow::Straight& before, flow::ExceptionClass kind, std::optional<Place> handler,
                   std::uint64_t cycle) override {
        WM_CHECK(before.bytes == 0);
        using flow::ExceptionClass;
        ExceptionTaken taken;
        taken.number = pft::exception_number(kind);
        taken.vector = handler.value_or(Place{{pft::linux_vector(kind)}, Isa::a32});
        taken.ns = context_.ns;
        taken.hyp = context_.hyp;
        taken.cycle = cycle;
        // The instruction had begun, and is executed again or not at all.
        taken.cancels = kind == ExceptionClass::data_abort || kind == ExceptionClass::undefined;
        model_.exception(taken);
    }
    void wait(std::uint64_t cycle) override { model_.wait(cycle); }
    void resume(Place next, std::uint64_t cycle) override { model_.discontinuity(arrival(next, cycle)); }
    void finish() override { model_.finish(); }
    void program(const flow::UnitOptions&, std::uint64_t cycle) override {
        model_.set_programming(true, cycle);
        model_.set_programming(false, cycle);
    }
    [[nodiscard]] std::uint64_t lost() const override { return model_.counts().lost; }
    [[nodiscard]] std::uint64_t untraced() const override { return model_.counts().untraced; }
    [[nodiscard]] bool overflowing() const override { return model_.overflowing(); }
    [[nodiscard]] bool may_lose() const override { return may_lose_; }

private:
    [[nodiscard]] Arrival arrival(Place place, std::uint64_t cycle) const {
        return {place, context_.ns, context_.hyp, cycle};
    }

    Model model_;
    bool may_lose_;
    flow::Context context_;
};

class Factory final : public flow::UnitFactory, public flow::EachInstruction {
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
        WM_RETURN_IF_ERROR(pft::check_macrocell(options));
        if (options.speculation_depth != 0) return wrong("--speculation: an ETMv3 does not trace speculation");
        if (options.cycle_threshold != 0) return wrong("--cycle-threshold: an ETMv3 counts cycles with every P-header");
        if (options.programmed())
            return wrong(
                "--view-range, --exclude-range, --trigger-at and --registers: the model of the ETMv3 has no "
                "comparators; record with --unit ptm, whose registers are the same");
        return Nothing{};
    }

    [[nodiscard]] std::string core_type(const flow::UnitOptions&) const override { return "Cortex-A7"; }
    [[nodiscard]] std::string source_type(const flow::UnitOptions&) const override { return "ETM3.5"; }
    [[nodiscard]] std::vector<RegisterValue> registers(const flow::UnitOptions& options,
                                                       std::uint8_t trace_id) const override {
        Etmtraceidr id;
        id.trace_id = trace_id;
        pft::Etmsyncfr sync;
        sync.value = static_cast<decltype(sync.value)>(options.sync_bytes);
        return {register_value(control(options)), register_value(sync),
                register_value(from_value<Etm3idr>(cortex_a7_idr)), register_value(from_value<Etmccer>(cortex_a7_ccer)),
                register_value(id)};
    }
    [[nodiscard]] std::optional<flow::SelectedBlocks> selects(const flow::UnitOptions&) const override {
        return flow::SelectedBlocks{};  // all
    }
    [[nodiscard]] isa::DecodeOptions decode_options(const flow::UnitOptions&) const override { return {}; }
    [[nodiscard]] std::unique_ptr<flow::Unit> make(const flow::UnitOptions& options, ByteSink& trace) const override {
        return std::make_unique<RecordedUnit>(options, trace);
    }
};

}  // namespace

const flow::UnitFactory& unit_factory() {
    static const Factory factory;
    return factory;
}

}  // namespace waymark::etm3
