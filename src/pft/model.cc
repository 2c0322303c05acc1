#include "waymark/pft/model.h"

#include <utility>

#include "model_session.h"
#include "waymark/pft/model_unit.h"

namespace waymark::pft {

class Model::Unit : public ModelUnit<ModelSession, ModelConfig> {
    using ModelUnit::ModelUnit;
};

Model::Model(const ModelConfig& config, ByteSink& trace) : unit_(std::make_unique<Unit>(config, trace)) {}
Model::~Model() = default;
void Model::start(const Arrival& first) { unit_->start(first); }
void Model::retire(const Retired& instruction) { unit_->session().retire(instruction); }
void Model::run(std::uint32_t bytes, std::uint8_t last_bytes, std::uint64_t cycle) {
    unit_->session().run(bytes, last_bytes, cycle);
}
void Model::retire_block(const Retired& waypoint, std::uint8_t bytes_before) {
    unit_->session().retire_block(waypoint, bytes_before);
}
std::size_t Model::retire_blocks(std::span<const RetiredBlock> blocks, bool ns, bool hyp) {
    return unit_->session().retire_blocks(blocks, ns, hyp);
}
std::unique_ptr<flow::PreparedSequence> Model::prepare(Place from, std::uint64_t cycle,
                                                       std::span<const RetiredBlock> blocks) const {
    return unit_->session().prepare(from, cycle, blocks);
}
std::size_t Model::retire_sequences(std::span<const flow::RetiredSequence> sequences, bool ns, bool hyp) {
    return unit_->session().retire_sequences(sequences, ns, hyp);
}
void Model::exception(const ExceptionTaken& taken) { unit_->session().exception(taken); }
void Model::discontinuity(const Arrival& next) { unit_->session().discontinuity(next); }
void Model::debug_entry(std::uint64_t cycle) { unit_->session().debug_entry(cycle); }
void Model::debug_exit(const Arrival& restart) { unit_->session().debug_exit(restart); }
void Model::wait(std::uint64_t cycle) { unit_->session().wait(cycle); }
void Model::set_context_id(std::uint32_t value) { unit_->session().set_context_id(value); }
void Model::set_vmid(std::uint8_t value) { unit_->session().set_vmid(value); }
void Model::set_user_mode(bool user) { unit_->session().set_user_mode(user); }
void Model::set_authentication(const Authentication& signals) { unit_->session().set_authentication(signals); }
void Model::set_timestamp(std::uint64_t ticks) { unit_->session().set_timestamp(ticks); }
void Model::clock_changed() { unit_->session().clock_changed(); }
void Model::set_external_input(unsigned number, bool level) {
    unit_->session().signal([&](Resources& r) { r.external(number, level); });
}
void Model::set_extended_input(unsigned number, bool level) {
    unit_->session().signal([&](Resources& r) { r.extended(number, level); });
}
void Model::set_watchpoint(unsigned number, bool level) {
    unit_->session().signal([&](Resources& r) { r.watchpoint(number, level); });
}
void Model::set_instrumentation(unsigned number, bool level) {
    unit_->session().signal([&](Resources& r) { r.instrumentation(number, level); });
}
void Model::request_sync() { unit_->session().request_sync(); }
void Model::flush() { unit_->session().flush(); }
void Model::set_programming(bool set, std::uint64_t cycle) { unit_->set_programming(set, cycle); }
void Model::finish() { unit_->set_programming(true, unit_->session().now()); }
const ModelCounts& Model::counts() const { return unit_->session().counts(); }
bool Model::tracing() const { return unit_->session().tracing(); }
Etmsr Model::status() const { return unit_->session().status(); }
bool Model::external_output(unsigned number) const { return unit_->session().external_output(number); }
AccessResult Model::write(unsigned number, std::uint32_t value, std::uint64_t cycle, Requester from) {
    return unit_->write(number, value, cycle, from);
}
ReadResult Model::read(unsigned number, std::uint64_t cycle, Requester from) {
    return unit_->read(number, cycle, from);
}
void Model::on_trigger(std::function<void()> called) { unit_->on_trigger(std::move(called)); }
void Model::set_power(bool on, std::uint64_t cycle) { unit_->set_power(on, cycle); }
Registers Model::registers() const { return unit_->registers(); }

}  // namespace waymark::pft
