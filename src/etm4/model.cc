#include "waymark/etm4/model.h"

#include <optional>
#include <utility>

#include "model_registers.h"
#include "model_session.h"

namespace waymark::etm4 {

/// One trace session after another, and the registers between them.
class Model::Unit {
public:
    Unit(const ModelConfig& config, ByteSink& trace) : config_(config), trace_(trace), registers_(config.registers) {
        registers_.set_enable(false);
        ModelCore core;
        core.random.seed(config.choices.seed);
        session_.emplace(config_, trace_, core);
    }

    [[nodiscard]] ModelSession& session() { return *session_; }
    [[nodiscard]] const ModelSession& session() const { return *session_; }

    void start(const Arrival& first) {
        session_->arrive(first);
        registers_.set_enable(true);
        follow();
    }
    void finish() {
        registers_.set_enable(false);
        follow();
    }
    [[nodiscard]] AccessResult write(unsigned offset, std::uint32_t value, std::uint64_t cycle, Requester from) {
        session_->pass(cycle);
        const AccessResult result = registers_.write(offset, value, from, status(), running());
        follow();
        return result;
    }
    [[nodiscard]] ReadResult read(unsigned offset, std::uint64_t cycle, Requester from) {
        session_->pass(cycle);
        return registers_.read(offset, from, status(), registers());
    }
    void set_os_lock(bool locked, std::uint64_t cycle) {
        session_->pass(cycle);
        registers_.set_os_lock(locked);
        follow();
    }
    void set_permission(const flow::TracePermission& permission) {
        permission_ = permission;
        session_->set_permission(permission);
    }
    void on_trigger(std::function<void()> called) {
        trigger_ = std::move(called);
        session_->on_trigger(trigger_);
    }
    void set_power(bool on, std::uint64_t cycle) {
        session_->pass(cycle);
        registers_.set_power(on);
        follow();
    }
    void read_back(Registers& registers) const {
        if (session_->enabled()) {
            session_->read_back(registers);
            return;
        }
        const Registers& file = registers_.file();
        registers.cntvr = file.cntvr;
        registers.seqstr = file.seqstr;
        registers.victlr.ssstatus = file.victlr.ssstatus;
        registers.sscsr = file.sscsr;
        registers.rsr = file.rsr;
    }
    /// The present values.
    [[nodiscard]] Registers registers() const {
        Registers out = registers_.file();
        read_back(out);
        return out;
    }

private:
    /// 2.1. A change of the enable state takes effect one clock later.
    [[nodiscard]] ModelRegisters::Status status() const {
        const bool settled = !changed_ || session_->now() > *changed_;
        if (session_->enabled()) return {!settled, false};
        return {settled && session_->drained(), settled};
    }
    [[nodiscard]] bool running() const { return session_->enabled() && session_->now() > changed_.value_or(0); }
    /// Begins or ends the session as the registers say.
    void follow() {
        const bool enabled = registers_.enabled();
        if (enabled == session_->enabled()) return;
        changed_ = session_->now();
        if (enabled) {
            config_.registers = registers_.file();
            const ModelCore core = session_->core();
            session_.emplace(config_, trace_, core);
            session_->on_trigger(trigger_);
            session_->set_permission(permission_);
            session_->enable(registers_.file().rsr.ta);
            return;
        }
        if (!registers_.powered()) return session_->abandon();
        session_->disable();
        session_->read_back(registers_.file());
    }

    ModelConfig config_;
    ByteSink& trace_;
    ModelRegisters registers_;
    std::optional<ModelSession> session_;
    std::function<void()> trigger_;
    flow::TracePermission permission_;
    std::optional<std::uint64_t> changed_;  ///< when the unit became enabled or disabled
};

Registers tracing_registers(const Config& config) {
    Registers r;
    const RegisterValues values = to_registers(config);
    r.configr = from_value<Trcconfigr>(*values.configr);
    r.traceidr = from_value<Trctraceidr>(*values.traceidr);
    r.idr0 = from_value<Trcidr0>(*values.idr0);
    r.idr1 = from_value<Trcidr1>(*values.idr1);
    r.idr2 = from_value<Trcidr2>(*values.idr2);
    r.idr8 = from_value<Trcidr8>(*values.idr8);
    r.idr9 = from_value<Trcidr9>(*values.idr9);
    r.idr10 = from_value<Trcidr10>(*values.idr10);
    r.idr11 = from_value<Trcidr11>(*values.idr11);
    r.idr12 = from_value<Trcidr12>(*values.idr12);
    r.idr13 = from_value<Trcidr13>(*values.idr13);
    r.devarch = from_value<Trcdevarch>(*values.devarch);
    r.idr0.numevent = 3;
    // Values of a Cortex-A53 (docs/spec/etm4-registers.md, 3).
    r.idr3 = from_value<Trcidr3>(0x0d7b0004);
    r.idr4 = from_value<Trcidr4>(0x11170004);
    r.idr5 = from_value<Trcidr5>(0x28c7081e);
    r.victlr = from_value<Trcvictlr>(0x201);
    if (config.cycle_counting) r.ccctlr.threshold = r.idr3.ccitmin;
    r.rsr.ta = config.ete();
    r.oslsr.oslm_high = config.ete() ? 2 : 1;  // the processor's OS Lock, or the unit's own
    return r;
}

Config packets_of(const Registers& registers, CoreProfile profile) {
    const auto word = [](const auto& r) { return static_cast<std::uint32_t>(to_value(r)); };
    const RegisterValues values{.configr = word(registers.configr),
                                .traceidr = word(registers.traceidr),
                                .idr0 = word(registers.idr0),
                                .idr1 = word(registers.idr1),
                                .idr2 = word(registers.idr2),
                                .idr8 = word(registers.idr8),
                                .devarch = word(registers.devarch),
                                .idr9 = word(registers.idr9),
                                .idr10 = word(registers.idr10),
                                .idr11 = word(registers.idr11),
                                .idr12 = word(registers.idr12),
                                .idr13 = word(registers.idr13)};
    return read_config(values, profile).config;
}

Model::Model(const ModelConfig& config, ByteSink& trace) : unit_(std::make_unique<Unit>(config, trace)) {}
Model::~Model() = default;
void Model::start(const Arrival& first) { unit_->start(first); }
void Model::set_context(const flow::Context& context) { unit_->session().set_context(context); }
void Model::run(std::uint32_t bytes, std::uint64_t cycle) { unit_->session().run(bytes, cycle); }
void Model::retire_block(const Retired& p0) { unit_->session().retire_block(p0); }
std::size_t Model::retire_blocks(std::span<const RetiredBlock> blocks) {
    return unit_->session().retire_blocks(blocks);
}
std::unique_ptr<flow::PreparedSequence> Model::prepare(const isa::Place& from,
                                                       std::span<const RetiredBlock> blocks) const {
    return unit_->session().prepare(from, blocks);
}
std::size_t Model::retire_sequences(std::span<const flow::RetiredSequence> sequences) {
    return unit_->session().retire_sequences(sequences);
}
void Model::exception(const ExceptionTaken& taken) { unit_->session().exception(taken); }
void Model::discontinuity(const Arrival& next) { unit_->session().discontinuity(next); }
void Model::debug_entry(std::uint64_t cycle) { unit_->session().debug_entry(cycle); }
void Model::debug_exit(const Arrival& restart) { unit_->session().debug_exit(restart); }
void Model::wait(std::uint64_t cycle) { unit_->session().wait(cycle); }
void Model::transaction_start(std::uint64_t cycle) { unit_->session().transaction_start(cycle); }
void Model::transaction_commit(std::uint64_t cycle) { unit_->session().transaction_commit(cycle); }
void Model::transaction_fail(const Arrival& resume) { unit_->session().transaction_fail(resume); }
void Model::instrument(std::uint64_t value, std::uint64_t cycle) { unit_->session().instrument(value, cycle); }
void Model::request_sync() { unit_->session().request_sync(); }
void Model::flush() { unit_->session().flush_for_bus(); }
void Model::finish() { unit_->finish(); }
const ModelCounts& Model::counts() const { return unit_->session().counts(); }
bool Model::tracing() const { return unit_->session().tracing(); }
void Model::set_external_input(unsigned selector, bool level) { unit_->session().set_external_input(selector, level); }
void Model::set_permission(const flow::TracePermission& permission) { unit_->set_permission(permission); }
void Model::on_trigger(std::function<void()> called) { unit_->on_trigger(std::move(called)); }
std::uint8_t Model::external_outputs() const { return unit_->session().external_outputs(); }
void Model::read_back(Registers& registers) const { unit_->read_back(registers); }
bool Model::overflowing() const { return unit_->session().is_overflowing(); }
AccessResult Model::write(unsigned offset, std::uint32_t value, std::uint64_t cycle, Requester from) {
    return unit_->write(offset, value, cycle, from);
}
ReadResult Model::read(unsigned offset, std::uint64_t cycle, Requester from) {
    return unit_->read(offset, cycle, from);
}
void Model::set_os_lock(bool locked, std::uint64_t cycle) { unit_->set_os_lock(locked, cycle); }
void Model::set_power(bool on, std::uint64_t cycle) { unit_->set_power(on, cycle); }
Registers Model::registers() const { return unit_->registers(); }

}  // namespace waymark::etm4
