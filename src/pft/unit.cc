#include "waymark/pft/unit.h"

#include <fmt/format.h>

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "programming.h"
#include "waymark/flow/unit_signals.h"
#include "waymark/pft/access.h"
#include "waymark/pft/config.h"
#include "waymark/pft/exceptions.h"
#include "waymark/pft/explain.h"
#include "waymark/pft/model.h"

namespace waymark::pft {

namespace {

bool is_a9(const flow::UnitOptions& options) { return options.core == "cortex-a9"; }

Status apply(Registers& r, const flow::RegisterSetting& setting) {
    const RegisterPlace* const place = register_called(setting.name);
    if (place == nullptr || !register_access(r, place->number).present) {
        std::vector<std::string_view> names;
        for (const RegisterPlace& p : register_places())
            if (register_access(r, p.number).present) names.push_back(p.name);
        return flow::unknown_register(setting, "this PTM", names);
    }
    const RegisterAccess access = register_access(r, place->number);
    flow::SettableRegister it{place->name, r.get(place->number).value_or(0), access.writable ? access.mask : 0, 4, {}};
    unsigned at = 0;
    Registers::for_each(r, [&](const auto& one) {
        if (register_places()[at++].number == place->number) it.fields = fields_of(one);
    });
    WM_ASSIGN_OR_RETURN(const std::uint64_t value, flow::value_after(setting, it));
    r.set(place->number, static_cast<std::uint32_t>(value));
    return Nothing{};
}

/// Assigns comparators to the options that need them, in order.
Status use_comparators(Registers& r, const flow::UnitOptions& options) {
    const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
    if (!options.view.empty() && !options.exclude.empty())
        return wrong("--view-range and --exclude-range: a PTM includes ranges or excludes them, not both");
    const bool ranges = !options.view.empty() || !options.exclude.empty();
    if (ranges && r.tecr1.ranges != 0)
        return wrong("--view-range and --exclude-range need ETMTECR1, which --registers programs already");
    unsigned next = 0;
    const auto pair = [&]() -> std::optional<unsigned> {
        while (next < r.ccr.address_comparator_pairs &&
               (r.acvr[2 * next].value != 0 || r.acvr[2 * next + 1].value != 0))
            ++next;
        if (next == r.ccr.address_comparator_pairs) return std::nullopt;
        return next++;
    };
    const auto too_many = [&] {
        return wrong(fmt::format(
            "--view-range, --exclude-range and --trigger-at need {} pairs of address comparators; "
            "this unit has {}{}",
            options.view.size() + options.exclude.size() + (options.trigger_at ? 1 : 0), r.ccr.address_comparator_pairs,
            options.registers.empty() ? "" : ", less those that --registers uses"));
    };
    for (const auto* const list : {&options.view, &options.exclude})
        for (const flow::AddressRange& range : *list) {
            const auto n = pair();
            if (!n) return too_many();
            r.acvr[2 * *n].value = static_cast<std::uint32_t>(range.first.value);
            r.acvr[2 * *n + 1].value = static_cast<std::uint32_t>(range.end.value);
            r.tecr1.exclude = list == &options.exclude;
            r.tecr1.ranges |= static_cast<std::uint8_t>(1U << *n);
        }
    if (!options.trigger_at) return Nothing{};
    if (!(r.trigger == Registers{}.trigger))
        return wrong("--trigger-at needs ETMTRIGGER, which --registers programs already");
    const auto n = pair();
    if (!n) return too_many();
    r.acvr[2 * *n].value = static_cast<std::uint32_t>(options.trigger_at->value);
    r.trigger = from_value<Etmtrigger>(2 * *n);  // single address comparator
    return Nothing{};
}

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
    if (!options.programmed()) return config;
    for (const flow::RegisterSetting& setting : options.registers) WM_RETURN_IF_ERROR(apply(config.registers, setting));
    WM_RETURN_IF_ERROR(use_comparators(config.registers, options));
    for (const std::string& objection : objections_to(config.registers))
        return Error{Errc::usage, fmt::format("the unit would behave unpredictably: {}", objection)};
    return config;
}

/// Precondition: check() accepted the options.
ModelConfig model_config(const flow::UnitOptions& options) {
    auto config = programmed_config(options);
    WM_CHECK(config);
    return *std::move(config);
}

/// Registers that are given by name may use features that the options alone never use.
bool programs_all(const flow::UnitOptions& options) { return !options.registers.empty(); }

/// Adds the registers that explain() needs beside those in `out`: registers with their values at reset may also decide
/// whether the unit traces.
void add_decisive(const Registers& r, std::vector<RegisterValue>& out) {
    for (bool more = true; std::exchange(more, false);) {
        const protocol::UnitExplanation explanation =
            explain(r, {}, [&](std::string_view name) { return find_register(out, name) != nullptr; });
        for (const auto* const names : {&explanation.undecided, &explanation.undescribed})
            for (const std::string& name : *names) {
                const RegisterPlace* const place = register_called(name);
                if (place == nullptr || find_register(out, name) != nullptr) continue;
                out.push_back({place->name, r.get(place->number).value_or(0), place->number, 32});
                more = true;
            }
    }
}

class RecordedUnit final : public flow::Unit, public flow::UnitSignals, private flow::RegisterPort {
public:
    RecordedUnit(const ModelConfig& config, ByteSink& trace)
        : model_(config, trace), may_lose_(config.choices.fifo_bytes != 0) {}

    void context(const flow::Context& context) override {
        if (context.context_id && context.context_id != context_.context_id) model_.set_context_id(*context.context_id);
        context_ = context;
    }
    void start(Place first, std::uint64_t cycle) override { model_.start(arrival(first, cycle)); }
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
    void wait(std::uint64_t cycle) override { model_.wait(cycle); }
    void resume(Place next, std::uint64_t cycle) override { model_.discontinuity(arrival(next, cycle)); }
    void finish() override { model_.finish(); }
    void program(const flow::UnitOptions& options, std::uint64_t cycle) override {
        // Waits take time that the program does not notice: until the FIFO has drained, regardless of its size and
        // speed.
        constexpr std::uint64_t drains = std::numeric_limits<std::uint64_t>::max();
        std::uint64_t at = cycle;
        WM_CHECK(
            flow::carry_out(program_steps(model_config(options).registers, programs_all(options)), *this, at, drains));
    }
    void permit(const flow::TracePermission& permission, std::uint64_t) override {
        model_.set_authentication({permission.non_secure, permission.secure});
    }
    void set_power(bool on, std::uint64_t cycle) override { model_.set_power(on, cycle); }
    void set_os_lock(bool locked, std::uint64_t cycle) override {
        model_.write(management::oslar, locked ? flow::UnitLocks::unlock_key : 0, cycle, flow::Requester::external);
    }
    void on_trigger(std::function<void()> called) override { model_.on_trigger(std::move(called)); }
    [[nodiscard]] flow::RegisterPort* registers() override { return this; }
    /// Sets the locks as after a loss of power. A unit without an OS Lock refuses that write.
    void set_locks() {
        model_.write(management::oslar, flow::UnitLocks::unlock_key, 0);
        model_.write(management::lar, 0, 0);
    }
    /// The core sleeps, and the unit loses power with it.
    void lose_power() { model_.set_power(false, 0); }
    [[nodiscard]] std::uint64_t lost() const override { return model_.counts().overflowed; }
    [[nodiscard]] std::uint64_t untraced() const override { return model_.counts().untraced; }
    [[nodiscard]] bool overflowing() const override { return model_.status().overflow; }
    [[nodiscard]] bool may_lose() const override { return may_lose_; }

private:
    [[nodiscard]] Arrival arrival(Place place, std::uint64_t cycle) const {
        return {place, context_.ns, context_.hyp, cycle};
    }
    flow::AccessResult write(unsigned offset, std::uint32_t value, std::uint64_t cycle) override {
        return model_.write(offset / 4, value, cycle);
    }
    flow::ReadResult read(unsigned offset, std::uint64_t cycle) override { return model_.read(offset / 4, cycle); }

    Model model_;
    bool may_lose_;
    flow::Context context_;
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
        WM_RETURN_IF_ERROR(check_macrocell(options));
        if (options.speculation_depth != 0) return wrong("--speculation: a PTM does not trace speculation");
        if (options.cycle_threshold != 0)
            return wrong("--cycle-threshold: a PTM counts cycles with every packet that can carry a count");
        const auto fits = [](Address a) { return a.value <= 0xffffffff; };
        for (const auto* const ranges : {&options.view, &options.exclude})
            for (const flow::AddressRange& range : *ranges)
                if (!fits(range.first) || !fits(range.end))
                    return wrong(fmt::format("the range from {:#x} to {:#x}: addresses of a PTM have 32 bits",
                                             range.first.value, range.end.value));
        if (options.trigger_at && !fits(*options.trigger_at))
            return wrong(fmt::format("--trigger-at {:#x}: addresses of a PTM have 32 bits", options.trigger_at->value));
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
        std::vector<RegisterValue> out{register_value(r.cr), register_value(r.syncfr), register_value(r.idr),
                                       register_value(r.ccer), register_value(id)};
        const Registers untouched;
        for (const RegisterPlace& place : register_places()) {
            const std::uint32_t value = r.get(place.number).value_or(0);
            const bool said = find_register(out, place.name) != nullptr;
            if (said || value == untouched.get(place.number) || !register_access(r, place.number).writable) continue;
            out.push_back({place.name, value, place.number, 32});
        }
        add_decisive(r, out);
        return out;
    }
    [[nodiscard]] std::optional<flow::SelectedBlocks> selects(const flow::UnitOptions& options) const override {
        const Registers r = model_config(options).registers;
        if (to_value(r.teevr) != to_value(Registers{}.teevr) || r.tecr1.start_stop) return std::nullopt;
        flow::SelectedBlocks out;
        for (unsigned n = 0; n < 8; ++n) {
            if ((r.tecr1.ranges >> n & 1U) == 0) continue;
            if (to_value(r.actr[2 * n]) != 1) return std::nullopt;
            (r.tecr1.exclude ? out.exclude : out.include).push_back({{r.acvr[2 * n].value}, {r.acvr[2 * n + 1].value}});
        }
        // Without an include range, nothing is traced.
        if (r.tecr1.ranges == 0 && !r.tecr1.exclude) out.include.push_back({});
        return out;
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

Status check_macrocell(const flow::UnitOptions& options) {
    if (options.context_id_bytes > 4 || options.context_id_bytes == 3)
        return Error{Errc::usage, fmt::format("--context-id {}: the Context ID has 1, 2 or 4 bytes, or 0 for none",
                                              options.context_id_bytes)};
    if (options.sync_bytes > 4095)
        return Error{Errc::usage, fmt::format("--sync {}: ETMSYNCFR holds at most 4095 bytes", options.sync_bytes)};
    return flow::check_fifo(options, 32);
}

const flow::UnitFactory& unit_factory() {
    static const Factory factory;
    return factory;
}

}  // namespace waymark::pft
