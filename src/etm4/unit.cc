#include "waymark/etm4/unit.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "programming.h"
#include "waymark/etm4/access.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/exceptions.h"
#include "waymark/etm4/explain.h"
#include "waymark/etm4/model.h"
#include "waymark/flow/unit_signals.h"

namespace waymark::etm4 {

namespace {

/// One in this many conditional branches is mispredicted, if the unit speculates.
constexpr std::uint32_t mispredicted_branches = 16;

std::uint64_t value_at(const Registers& r, const RegisterPlace& place) {
    const std::uint64_t low = r.get(place.offset).value_or(0);
    return place.bytes == 8 ? low | std::uint64_t{r.get(place.offset + 4).value_or(0)} << 32 : low;
}
std::uint64_t writable_at(const Registers& r, const RegisterPlace& place) {
    const auto mask = [&](unsigned offset) {
        const WordAccess access = word_access(r, offset);
        // Locks, claim tags and the enable bit do not belong to a program.
        return access.writable && !access.always ? std::uint64_t{access.mask} : 0;
    };
    return place.bytes == 8 ? mask(place.offset) | mask(place.offset + 4) << 32 : mask(place.offset);
}

Status apply(Registers& r, const flow::RegisterSetting& setting, bool ete) {
    const RegisterPlace* const place = register_called(setting.name);
    if (place == nullptr || !word_access(r, place->offset).present) {
        std::vector<std::string_view> names;
        for (const RegisterPlace& p : register_places())
            if (word_access(r, p.offset).present) names.push_back(p.name);
        return flow::unknown_register(setting, ete ? "this ETE" : "this ETMv4", names);
    }
    // The recorder enables the unit.
    if (place->offset == Trcprgctlr::offset) return Nothing{};
    flow::SettableRegister it{place->name, value_at(r, *place), writable_at(r, *place), place->bytes, {}};
    Registers::for_each(r, [&](const auto& one, unsigned offset) {
        if (offset == place->offset) it.fields = fields_of(one);
    });
    WM_ASSIGN_OR_RETURN(const std::uint64_t value, flow::value_after(setting, it));
    r.set(place->offset, static_cast<std::uint32_t>(value));
    if (place->bytes == 8) r.set(place->offset + 4, static_cast<std::uint32_t>(value >> 32));
    return Nothing{};
}

/// Address comparators that are not used yet.
class FreeComparators {
public:
    explicit FreeComparators(const Registers& r) : pairs_(r.idr4.numacpairs) {
        for (unsigned n = 0; n < pairs_; ++n) {
            const unsigned both = 3U << 2 * n, range = 1U << n;
            bool used = r.acvr[2 * n].address != 0 || r.acvr[2 * n + 1].address != 0;
            used |= ((r.viiectlr.include | r.viiectlr.exclude | r.bbctlr.range | r.qctlr.range) & range) != 0;
            used |= ((r.vissctlr.start | r.vissctlr.stop) & both) != 0;
            if (!used) free_.push_back(n);
        }
    }
    /// nullopt if all are used.
    [[nodiscard]] std::optional<unsigned> take() {
        if (free_.empty()) return std::nullopt;
        const unsigned n = free_.front();
        free_.erase(free_.begin());
        return n;
    }
    [[nodiscard]] unsigned pairs() const { return pairs_; }

private:
    unsigned pairs_;
    std::vector<unsigned> free_;
};

/// Assigns comparators to the options that need them, in order.
Status use_comparators(Registers& r, const flow::UnitOptions& options) {
    FreeComparators comparators(r);
    const auto too_many = [&] {
        return Error{
            Errc::usage,
            fmt::format("--view-range, --exclude-range and --trigger-at need {} pairs of address comparators; "
                        "this unit has {}{}",
                        options.view.size() + options.exclude.size() + (options.trigger_at ? 1 : 0),
                        comparators.pairs(), options.registers.empty() ? "" : ", less those that --registers uses")};
    };
    for (const auto* const ranges : {&options.view, &options.exclude})
        for (const flow::AddressRange& range : *ranges) {
            const auto pair = comparators.take();
            if (!pair) return too_many();
            r.acvr[2 * *pair].address = range.first.value;
            r.acvr[2 * *pair + 1].address = range.end.value - 1;
            auto& used = ranges == &options.view ? r.viiectlr.include : r.viiectlr.exclude;
            used |= static_cast<std::uint8_t>(1U << *pair);
        }
    if (!options.trigger_at) return Nothing{};
    const auto pair = comparators.take();
    if (!pair) return too_many();
    r.acvr[2 * *pair].address = options.trigger_at->value;
    unsigned selector = 2;
    while (selector < 2U * (r.idr4.numrspair + 1U) && to_value(r.rsctlr[selector - 2]) != 0) ++selector;
    if (selector == 2U * (r.idr4.numrspair + 1U) || r.eventctl0r.sel0 != 0 || r.eventctl0r.type0)
        return Error{Errc::usage, "--trigger-at needs a resource selector and event 0, which --registers uses already"};
    r.rsctlr[selector - 2].group = 4;  // single address comparators
    r.rsctlr[selector - 2].select = static_cast<std::uint16_t>(1U << 2 * *pair);
    r.eventctl0r.sel0 = static_cast<std::uint8_t>(selector);
    r.eventctl1r.insten |= 1;
    return Nothing{};
}

ModelConfig basic_config(const flow::UnitOptions& options, bool ete) {
    Config c;
    c.version = ete ? 0x50 : 0x40;
    c.context_id_trace = options.context_id_bytes != 0 && !options.context_in_vmid;
    c.vmid_trace = options.vmid || (options.context_id_bytes != 0 && options.context_in_vmid);
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
    // OpenCSD 1.3.3 crashes, and 1.8.0 stops, at an exception whose address is also the target of a return that the
    // return stack knows. Both read two separate addresses correctly.
    choices.folds_exception_address = !options.return_stack;
    // One tick is one cycle. The value 0 would mean that the time is not known.
    choices.timestamp_first = 1;
    return config;
}

/// Errors: `usage`: a register or range cannot be programmed.
Result<ModelConfig> programmed_config(const flow::UnitOptions& options, bool ete) {
    ModelConfig config = basic_config(options, ete);
    if (!options.programmed()) return config;
    Registers& r = config.registers;
    for (const flow::RegisterSetting& setting : options.registers) WM_RETURN_IF_ERROR(apply(r, setting, ete));
    if (options.cycle_threshold != 0) r.ccctlr.threshold = static_cast<std::uint16_t>(options.cycle_threshold);
    WM_RETURN_IF_ERROR(use_comparators(r, options));
    for (const Objection& objection : objections_to(r))
        return Error{Errc::usage, fmt::format("the unit would behave unpredictably: {}", objection.message)};
    return config;
}

/// Precondition: check() accepted the options.
ModelConfig model_config(const flow::UnitOptions& options, bool ete) {
    auto config = programmed_config(options, ete);
    WM_CHECK(config);
    return *std::move(config);
}

/// Registers that are given by name may use features that the options alone never use: counters, the sequencer,
/// comparators.
bool programs_all(const flow::UnitOptions& options) {
    return std::any_of(options.registers.begin(), options.registers.end(), [](const flow::RegisterSetting& setting) {
        const RegisterPlace* const place = register_called(setting.name);
        return place != nullptr && place->offset > last_control;
    });
}

/// Adds the registers that explain() needs beside those in `out`: registers with value 0 may also decide whether the
/// unit traces.
void add_decisive(const Registers& r, CoreProfile profile, std::vector<RegisterValue>& out) {
    for (bool more = true; std::exchange(more, false);) {
        const protocol::UnitExplanation explanation =
            explain(r, profile, [&](std::string_view name) { return find_register(out, name) != nullptr; });
        for (const auto* const names : {&explanation.undecided, &explanation.undescribed})
            for (const std::string& name : *names) {
                const RegisterPlace* const place = register_called(name);
                if (place == nullptr || find_register(out, name) != nullptr) continue;
                out.push_back({place->name, value_at(r, *place), std::nullopt, 8 * place->bytes});
                more = true;
            }
    }
}

class RecordedUnit final : public flow::Unit, public flow::UnitSignals, private flow::RegisterPort {
public:
    RecordedUnit(const ModelConfig& config, ByteSink& trace, bool ete)
        : model_(config, trace), may_lose_(config.choices.fifo_bytes != 0), ete_(ete) {}

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
    std::unique_ptr<flow::PreparedSequence> prepare(flow::Place from, std::uint64_t,
                                                    std::span<const flow::RetiredBlock> blocks) override {
        return model_.prepare(from, blocks);
    }
    std::size_t sequences(std::span<const flow::RetiredSequence> sequences) override {
        return model_.retire_sequences(sequences);
    }
    void exception(const flow::Straight& before, flow::ExceptionClass kind, std::optional<flow::Place> handler,
                   std::uint64_t cycle) override {
        model_.run(before.bytes, cycle);
        model_.exception({.type = exception_type_of(kind), .back = {}, .handler = handler, .cycle = cycle});
    }
    void wait(std::uint64_t cycle) override { model_.wait(cycle); }
    void resume(flow::Place next, std::uint64_t cycle) override { model_.discontinuity({next, cycle}); }
    void finish() override { model_.finish(); }
    void program(const flow::UnitOptions& options, std::uint64_t cycle) override {
        // Waits take time that the program does not notice: until the FIFO has drained, regardless of its size and
        // speed.
        constexpr std::uint64_t drains = std::numeric_limits<std::uint64_t>::max();
        std::uint64_t at = cycle;
        WM_CHECK(flow::carry_out(program_steps(model_config(options, ete_).registers, programs_all(options)), *this, at,
                                 drains));
    }
    void permit(const flow::TracePermission& permission, std::uint64_t) override { model_.set_permission(permission); }
    void set_power(bool on, std::uint64_t cycle) override { model_.set_power(on, cycle); }
    void set_os_lock(bool locked, std::uint64_t cycle) override {
        if (ete_)
            model_.set_os_lock(locked, cycle);
        else
            model_.write(Trcoslar::offset, locked ? 1 : 0, cycle, flow::Requester::external);
    }
    void on_trigger(std::function<void()> called) override { model_.on_trigger(std::move(called)); }
    [[nodiscard]] flow::RegisterPort* registers() override { return this; }
    /// Another program runs, and locks everything that can be locked. An ETE has no such locks and refuses this.
    void start_and_lock() {
        model_.write(Trcprgctlr::offset, 1, 0);
        model_.write(Trcoslar::offset, 1, 1);
        model_.write(Trclar::offset, 0, 1);
    }
    /// The core sleeps, and the unit loses power with it.
    void lose_power() { model_.set_power(false, 1); }
    [[nodiscard]] std::uint64_t lost() const override { return model_.counts().overflowed; }
    [[nodiscard]] std::uint64_t untraced() const override { return model_.counts().untraced; }
    [[nodiscard]] bool overflowing() const override { return model_.overflowing(); }
    [[nodiscard]] bool may_lose() const override { return may_lose_; }

private:
    flow::AccessResult write(unsigned offset, std::uint32_t value, std::uint64_t cycle) override {
        return model_.write(offset, value, cycle);
    }
    flow::ReadResult read(unsigned offset, std::uint64_t cycle) override { return model_.read(offset, cycle); }

    Model model_;
    bool may_lose_, ete_;
};

class Factory final : public flow::UnitFactory, public flow::MakesUnitSignals {
public:
    explicit Factory(bool ete) : ete_(ete) {}

    [[nodiscard]] std::string_view name() const override { return ete_ ? "ETE" : "ETMV4"; }
    [[nodiscard]] bool traces_aarch64() const override { return true; }
    [[nodiscard]] bool undefined_executes() const override { return false; }
    [[nodiscard]] flow::VmidRegister vmid() const override {
        return ete_ ? flow::VmidRegister::contextidr_el2 : flow::VmidRegister::vttbr_el2;
    }
    [[nodiscard]] flow::UnitOptions defaults() const override { return {.core = ete_ ? "armv9-a" : "cortex-a53"}; }

    [[nodiscard]] Status check(const flow::UnitOptions& options) const override {
        const auto wrong = [](std::string message) { return Error{Errc::usage, std::move(message)}; };
        if (options.core != defaults().core)
            return wrong(fmt::format("--core {} is not offered with --unit {}; {} is", options.core,
                                     ete_ ? "ete" : "etmv4", defaults().core));
        if (options.context_id_bytes != 0 && options.context_id_bytes != 4)
            return wrong(
                fmt::format("--context-id {}: a Context ID has 4 bytes; 0 means none", options.context_id_bytes));
        if (options.context_in_vmid && options.vmid)
            return wrong("--vmid: with --context-in-vmid the place of the VMID contains the Context ID");
        if (options.context_in_vmid && !ete_)
            return wrong("the VMIDs of this unit have 8 bits, too few for Context IDs; VMIDs of an ETE have 32");
        if (options.sync_bytes != 0 &&
            (!std::has_single_bit(options.sync_bytes) || options.sync_bytes < 256 || options.sync_bytes > 1U << 20))
            return wrong(
                fmt::format("--sync {}: TRCSYNCPR needs a power of two from 256 to 1048576 bytes, or 0 for none",
                            options.sync_bytes));
        WM_RETURN_IF_ERROR(flow::check_fifo(options, 64));
        if (options.speculation_depth == 1 || options.speculation_depth > most_speculation)
            return wrong(
                fmt::format("--speculation {}: from 2 to {} P0 elements can wait for their commit; 0 means none",
                            options.speculation_depth, most_speculation));
        if (options.cycle_threshold != 0 && !options.cycle_accurate)
            return wrong("--cycle-threshold needs --cycle-accurate");
        const ModelConfig basic = basic_config(options, ete_);
        if (const unsigned least = basic.registers.idr3.ccitmin;
            options.cycle_threshold != 0 && (options.cycle_threshold < least || options.cycle_threshold > 0xfff))
            return wrong(fmt::format("--cycle-threshold {}: TRCCCCTLR takes {} to {} cycles", options.cycle_threshold,
                                     least, 0xfff));
        if (const auto config = programmed_config(options, ete_); !config) return config.error();
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
        r.prgctlr.enable = true;
        std::vector<RegisterValue> out;
        const auto add = [&](const auto&... registers) { (out.push_back(register_value(registers)), ...); };
        add(r.configr, r.traceidr);
        if (options.sync_bytes != 0) add(r.syncpr);
        if (options.cycle_accurate) add(r.ccctlr);
        add(r.idr0, r.idr1, r.idr2, r.idr3, r.idr4, r.idr5, r.idr8);
        if (ete_) add(r.devarch);
        add(r.prgctlr);
        for (const RegisterPlace& place : register_places()) {
            const std::uint64_t value = value_at(r, place);
            if (value == 0 || find_register(out, place.name) != nullptr || writable_at(r, place) == 0) continue;
            out.push_back({place.name, value, std::nullopt, 8 * place.bytes});
        }
        add_decisive(r, isa::core_profile(core_type(options)).value_or(CoreProfile::a), out);
        return out;
    }
    [[nodiscard]] std::optional<flow::SelectedBlocks> selects(const flow::UnitOptions& options) const override {
        const Registers r = model_config(options, ete_).registers;
        const bool plain = !r.victlr.type && r.victlr.sel == 1 && r.victlr.ssstatus && r.victlr.exlevel_s == 0 &&
                           r.victlr.exlevel_ns == 0 && r.victlr.exlevel_rl == 0 && r.vissctlr == Trcvissctlr{};
        if (!plain) return std::nullopt;
        flow::SelectedBlocks out;
        out.by_instruction = true;
        for (unsigned n = 0; n < r.idr4.numacpairs; ++n)
            for (const auto& [mask, ranges] :
                 {std::pair{r.viiectlr.include, &out.include}, std::pair{r.viiectlr.exclude, &out.exclude}}) {
                if ((mask >> n & 1U) == 0) continue;
                if (to_value(r.acatr[2 * n]) != 0) return std::nullopt;
                ranges->push_back({{r.acvr[2 * n].address}, {r.acvr[2 * n + 1].address + 1}});
            }
        return out;
    }
    [[nodiscard]] Signals signals(const flow::UnitOptions&) const override {
        // The interface never prohibits trace of Non-secure state on an ETE (docs/spec/etm4-registers.md, 2.18).
        return {.non_secure = !ete_, .os_lock = true};
    }
    [[nodiscard]] isa::DecodeOptions decode_options(const flow::UnitOptions&) const override {
        return {.transaction_start_waypoints = ete_};
    }
    [[nodiscard]] std::unique_ptr<flow::Unit> make(const flow::UnitOptions& options, ByteSink& trace) const override {
        return std::make_unique<RecordedUnit>(model_config(options, ete_), trace, ete_);
    }
    [[nodiscard]] Result<flow::ComponentProgram> program(const flow::UnitOptions& options,
                                                         std::uint8_t trace_id) const override {
        Registers wanted = model_config(options, ete_).registers;
        wanted.traceidr.trace_id = trace_id;
        flow::ComponentProgram out = program_of(wanted, programs_all(options));
        if (!options.registers.empty()) out.not_in_files.emplace_back("registers that are given by name");
        return out;
    }
    [[nodiscard]] std::unique_ptr<flow::Unit> make_unprogrammed(const flow::UnitOptions& options, std::uint64_t seed,
                                                                ByteSink& trace) const override {
        ModelConfig config = model_config(options, ete_);
        config.registers = found_registers(config.registers, seed);
        auto unit = std::make_unique<RecordedUnit>(config, trace, ete_);
        unit->start_and_lock();
        // An ETE cannot request power.
        if (!ete_ && seed % 2 == 1) unit->lose_power();
        return unit;
    }

private:
    /// Number of executed ranges that a tracker keeps in case trace is lost.
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
