#include "waymark/etm4/unit.h"

#include <fmt/format.h>

#include <bit>
#include <string_view>
#include <utility>

#include "waymark/etm4/config.h"
#include "waymark/etm4/exceptions.h"
#include "waymark/etm4/model.h"

namespace waymark::etm4 {

namespace {

/// One in so many conditional branches is mispredicted, where the unit speculates.
constexpr std::uint32_t mispredicted_branches = 16;

ModelConfig model_config(const flow::UnitOptions& options, bool ete) {
    Config c;
    c.version = ete ? 0x50 : 0x40;
    c.context_id_trace = options.context_id_bytes != 0;
    c.context_id_bytes = 4;
    c.vmid_bytes = ete ? 4 : 1;
    c.vmid_is_contextidr = ete;
    c.cycle_counting = options.cycle_accurate;
    c.timestamps = options.timestamps;
    c.return_stack = options.return_stack;
    c.branch_broadcast = options.branch_broadcast;
    c.max_speculation = options.speculation_depth;
    // Commits are implied without speculation (docs/spec/etm4-registers.md, 1.5).
    c.commit_mode_1 = options.speculation_depth == 0;
    ModelConfig config{.registers = tracing_registers(c)};
    // The units have a return stack and a cycle counter, whether they are used or not.
    config.registers.idr0.retstack = config.registers.idr0.trccci = true;
    if (options.sync_bytes != 0)
        config.registers.syncpr.period = static_cast<std::uint8_t>(std::bit_width(options.sync_bytes) - 1);
    ModelChoices& choices = config.choices;
    choices.fifo_bytes = options.fifo_bytes;
    choices.drain_cycles = options.drain_cycles;
    choices.mispredict_one_in = options.speculation_depth == 0 ? 0 : mispredicted_branches;
    choices.seed = options.seed;
    // A tick is a cycle. 0 would be a time that is not known.
    choices.timestamp_first = 1;
    return config;
}

class RecordedUnit final : public flow::Unit {
public:
    RecordedUnit(const ModelConfig& config, ByteSink& trace)
        : model_(config, trace), may_lose_(config.choices.fifo_bytes != 0) {}

    void context(const flow::Context& context) override { model_.set_context(context); }
    void start(flow::Place first, std::uint64_t cycle) override { model_.start({first, cycle}); }
    void waypoint(const flow::Straight&, const flow::RetiredWaypoint& w, std::uint64_t cycle) override {
        model_.retire_block({.address = w.address,
                             .isa = w.isa,
                             .instruction = w.instruction,
                             .passed = w.passed,
                             .next = w.next,
                             .cycle = cycle});
    }
    std::size_t waypoints(flow::Place, std::span<const flow::RetiredBlock> blocks) override {
        return model_.retire_blocks(blocks);
    }
    void exception(const flow::Straight& before, flow::ExceptionClass kind, std::optional<flow::Place> handler,
                   std::uint64_t cycle) override {
        model_.run(before.bytes, cycle);
        model_.exception({.type = exception_type_of(kind), .back = {}, .handler = handler, .cycle = cycle});
    }
    void wait(std::uint64_t cycle) override { model_.wait(cycle); }
    void resume(flow::Place next, std::uint64_t cycle) override { model_.discontinuity({next, cycle}); }
    void finish() override { model_.finish(); }
    [[nodiscard]] std::uint64_t lost() const override { return model_.counts().overflowed; }
    [[nodiscard]] bool overflowing() const override { return model_.overflowing(); }
    [[nodiscard]] bool may_lose() const override { return may_lose_; }

private:
    Model model_;
    bool may_lose_;
};

class Factory final : public flow::UnitFactory {
public:
    explicit Factory(bool ete) : ete_(ete) {}

    [[nodiscard]] std::string_view name() const override { return ete_ ? "ETE" : "ETMV4"; }
    [[nodiscard]] bool traces_aarch64() const override { return true; }
    [[nodiscard]] bool undefined_executes() const override { return false; }
    [[nodiscard]] flow::UnitOptions defaults() const override { return {.core = ete_ ? "armv9-a" : "cortex-a53"}; }

    [[nodiscard]] Status check(const flow::UnitOptions& options) const override {
        const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
        if (options.core != defaults().core)
            return wrong(fmt::format("--core {} is not offered with --unit {}; {} is", options.core,
                                     ete_ ? "ete" : "etmv4", defaults().core));
        if (options.context_id_bytes != 0 && options.context_id_bytes != 4)
            return wrong(
                fmt::format("--context-id {}: the Context ID has 4 bytes, or 0 for none", options.context_id_bytes));
        if (options.sync_bytes != 0 &&
            (!std::has_single_bit(options.sync_bytes) || options.sync_bytes < 256 || options.sync_bytes > 1U << 20))
            return wrong(
                fmt::format("--sync {}: TRCSYNCPR takes a power of two from 256 to 1048576 bytes, or 0 for none",
                            options.sync_bytes));
        if (options.fifo_bytes != 0 && options.fifo_bytes < 64)
            return wrong(fmt::format("--fifo {}: a FIFO holds at least 64 bytes, or 0 for one that never fills",
                                     options.fifo_bytes));
        if (options.drain_cycles == 0)
            return wrong("--drain 0: at least one cycle passes while four bytes leave the FIFO");
        if (options.speculation_depth == 1 || options.speculation_depth > most_speculation)
            return wrong(fmt::format("--speculation {}: from 2 to {} P0 elements wait for their commit, or 0 for none",
                                     options.speculation_depth, most_speculation));
        return Nothing{};
    }

    [[nodiscard]] std::string core_type(const flow::UnitOptions&) const override {
        return ete_ ? "ARMv9-A" : "Cortex-A53";
    }
    [[nodiscard]] std::string source_type(const flow::UnitOptions&) const override { return ete_ ? "ETE" : "ETM4"; }
    [[nodiscard]] std::vector<RegisterValue> registers(const flow::UnitOptions& options,
                                                       std::uint8_t trace_id) const override {
        Registers r = model_config(options, ete_).registers;
        r.traceidr.trace_id = trace_id;
        std::vector<RegisterValue> out;
        const auto add = [&]<class Register>(const Register& value, const char* name) {
            out.push_back({name, to_value(value), std::nullopt, 32});
        };
        add(r.configr, "TRCCONFIGR");
        add(r.traceidr, "TRCTRACEIDR");
        if (options.sync_bytes != 0) add(r.syncpr, "TRCSYNCPR");
        if (options.cycle_accurate) add(r.ccctlr, "TRCCCCTLR");
        add(r.idr0, "TRCIDR0");
        add(r.idr1, "TRCIDR1");
        add(r.idr2, "TRCIDR2");
        add(r.idr8, "TRCIDR8");
        if (ete_) add(r.devarch, "TRCDEVARCH");
        return out;
    }
    [[nodiscard]] isa::DecodeOptions decode_options(const flow::UnitOptions&) const override {
        return {.transaction_start_waypoints = ete_};
    }
    [[nodiscard]] std::unique_ptr<flow::Unit> make(const flow::UnitOptions& options, ByteSink& trace) const override {
        return std::make_unique<RecordedUnit>(model_config(options, ete_), trace);
    }

private:
    /// What a tracker of executed ranges still knows of them when trace is lost.
    static constexpr unsigned most_speculation = 256;
    const bool ete_;
};

}  // namespace

const std::array<const flow::UnitFactory*, 2>& unit_factories() {
    static const Factory ete(true), etmv4(false);
    static const std::array<const flow::UnitFactory*, 2> factories{&ete, &etmv4};
    return factories;
}

}  // namespace waymark::etm4
