#include <fmt/format.h>

#include "waymark/pft/config.h"
#include "waymark/pft/model.h"
#include "waymark/record/unit.h"

namespace waymark::record {

namespace {

bool is_a9(const PtmOptions& options) { return options.core == "cortex-a9"; }

pft::ModelConfig model_config(const PtmOptions& options) {
    pft::ModelConfig config;
    pft::Registers& r = config.registers;
    r.cr.cycle_accurate = options.cycle_accurate;
    r.cr.timestamps = options.timestamps;
    r.cr.return_stack = options.return_stack;
    r.cr.branch_broadcast = options.branch_broadcast;
    r.cr.context_id_size = static_cast<std::uint8_t>(options.context_id_bytes == 4 ? 3 : options.context_id_bytes);
    if (is_a9(options)) {
        r.idr = pft::from_value<pft::Etmidr>(0x411cf301);
        r.ccer = pft::from_value<pft::Etmccer>(0x00c019a2);
    } else {
        r.idr = pft::from_value<pft::Etmidr>(0x411cf312);
        r.ccer = pft::from_value<pft::Etmccer>(0x34c01ac2);
    }
    r.syncfr.value = options.sync_bytes;
    config.choices.timestamp_numerator = 1;  // a tick is a cycle
    config.choices.fifo_bytes = options.fifo_bytes;
    config.choices.drain_cycles = options.drain_cycles;
    return config;
}

class Ptm final : public Unit {
public:
    Ptm(const PtmOptions& options, std::uint32_t thread, ByteSink& trace)
        : model_(model_config(options), trace), thread_(thread), may_lose_(options.fifo_bytes != 0) {}

    void start(Place first, std::uint64_t cycle) override {
        model_.set_context_id(thread_);
        model_.start(arrival(first, cycle));
    }
    void waypoint(const Straight& before, const Waypoint& w, std::uint64_t cycle) override {
        pft::Retired retired;
        retired.address = w.address;
        retired.isa = w.isa;
        retired.instruction = w.instruction;
        retired.passed = w.passed;
        retired.next = {w.next.address, w.next.isa};
        retired.ns = state_.ns;
        retired.hyp = state_.hyp;
        retired.cycle = cycle;
        model_.retire_block(retired, before.bytes == 0 ? std::uint8_t{0} : before.last_bytes);
    }
    std::size_t waypoints(Place, std::span<const pft::RetiredBlock> blocks) override {
        return model_.retire_blocks(blocks, state_.ns, state_.hyp);
    }
    void state(const State& state) override { state_ = state; }
    void exception(const Straight& before, std::uint32_t number, std::optional<Place> handler,
                   std::uint64_t cycle) override {
        model_.run(before.bytes, before.last_bytes, cycle);
        pft::ExceptionTaken taken;
        taken.number = number;
        taken.vector =
            handler ? pft::Place{handler->address, handler->isa} : pft::Place{{vector(number)}, isa::Isa::a32};
        taken.ns = state_.ns;
        taken.hyp = state_.hyp;
        taken.cycle = cycle;
        model_.exception(taken);
    }
    void wait(std::uint64_t cycle) override { model_.wait(cycle); }
    void resume(Place next, std::uint64_t cycle) override { model_.discontinuity(arrival(next, cycle)); }
    void finish() override { model_.finish(); }
    [[nodiscard]] std::uint64_t lost() const override { return model_.counts().overflowed; }
    [[nodiscard]] bool overflowing() const override { return model_.status().overflow; }
    [[nodiscard]] bool may_lose() const override { return may_lose_; }

private:
    [[nodiscard]] pft::Arrival arrival(Place place, std::uint64_t cycle) const {
        return {{place.address, place.isa}, state_.ns, state_.hyp, cycle};
    }
    /// Where a Linux kernel has its vectors.
    static std::uint64_t vector(std::uint32_t number) {
        switch (number) {
            case 9: return 0xffff0004;   // Undefined Instruction
            case 10: return 0xffff0008;  // SVC
            case 11: return 0xffff000c;  // Prefetch Abort
            case 12: return 0xffff0010;  // Data Abort
            default: return 0xffff0018;  // IRQ
        }
    }

    pft::Model model_;
    std::uint32_t thread_;
    bool may_lose_;
    State state_;
};

}  // namespace

Status check(const PtmOptions& options) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (options.core != "cortex-a9" && options.core != "cortex-a15")
        return wrong(fmt::format("--core {} is not offered; cortex-a9 and cortex-a15 are", options.core));
    if (options.return_stack && options.branch_broadcast)
        return wrong("--return-stack and --branch-broadcast exclude each other: a PTM does not allow both");
    if (options.context_id_bytes > 4 || options.context_id_bytes == 3)
        return wrong(fmt::format("--context-id {}: the Context ID has 1, 2 or 4 bytes, or 0 for none",
                                 options.context_id_bytes));
    if (options.sync_bytes > 4095)
        return wrong(fmt::format("--sync {}: ETMSYNCFR holds at most 4095 bytes", options.sync_bytes));
    if (options.fifo_bytes != 0 && options.fifo_bytes < 32)
        return wrong(fmt::format("--fifo {}: a FIFO holds at least 32 bytes, or 0 for one that never fills",
                                 options.fifo_bytes));
    if (options.drain_cycles == 0) return wrong("--drain 0: at least one cycle passes while four bytes leave the FIFO");
    return Nothing{};
}

std::string core_type(const PtmOptions& options) { return is_a9(options) ? "Cortex-A9" : "Cortex-A15"; }
std::string source_type(const PtmOptions& options) { return is_a9(options) ? "PTM1.0" : "PTM1.1"; }

std::vector<capture::Register> registers(const PtmOptions& options, std::uint8_t trace_id) {
    const pft::ModelConfig config = model_config(options);
    pft::Etmtraceidr id;
    id.trace_id = trace_id;
    const auto reg = [](const auto& r) {
        using Register = std::remove_cvref_t<decltype(r)>;
        return capture::Register{std::string(Register::name), pft::to_value(r), Register::number};
    };
    return {reg(config.registers.cr), reg(config.registers.syncfr), reg(config.registers.idr),
            reg(config.registers.ccer), reg(id)};
}

isa::DecodeOptions decode_options(const PtmOptions&) {
    return {};  // neither Cortex-A9 nor A15 has DMB and DSB as waypoints (docs/spec/pft.md, 3)
}

std::unique_ptr<Unit> make_ptm(const PtmOptions& options, std::uint32_t thread, ByteSink& trace) {
    return std::make_unique<Ptm>(options, thread, trace);
}

}  // namespace waymark::record
