#include "etm_unit.h"

#include <fmt/format.h>

#include <utility>

#include "waymark/core/numbers.h"
#include "waymark/record/files.h"

namespace waymark::record {

namespace {

constexpr std::uint32_t least_exc_return = 0xff000000;

}  // namespace

EtmUnit::EtmUnit(bool v4, const std::string& core, TraceOutput::Input to, std::string truth_name,
                 std::unique_ptr<RangeWriter> ranges)
    : v4_(v4),
      id_(to.id),
      macrocell_(v4 ? make_etm4(core, to.trace) : make_etm3(to.trace)),
      truth_name_(std::move(truth_name)),
      ranges_(std::move(ranges)) {}

Result<std::unique_ptr<CoreUnit>> EtmUnit::create(const std::filesystem::path& folder, bool v4, const std::string& core,
                                                  TraceOutput::Input to) {
    std::string name = fmt::format("truth_{}.bin", v4 ? etm4_name : etm3_name);
    WM_ASSIGN_OR_RETURN(auto ranges, RangeWriter::create(folder / name));
    return std::unique_ptr<CoreUnit>(new EtmUnit(v4, core, to, std::move(name), std::move(ranges)));
}

void EtmUnit::enable(bool on) {
    wanted_ = on;
    if (started_) macrocell_->enable(on, cycle_);
}

void EtmUnit::shown() {
    if (waiting_.instructions == 0) return;
    truth_.add(waiting_);
    ranges_->add(waiting_);
    waiting_ = {};
}

void EtmUnit::trace(const EtmModel::Step& step) {
    const CoreInstruction& i = step.instruction;
    if (!std::exchange(started_, true)) macrocell_->start(i, step.cycle);
    macrocell_->instruction(step);
    if (waiting_.instructions == 0) waiting_.start = i.address;
    waiting_.end = i.address + i.bytes;
    ++waiting_.instructions;
    if (macrocell_->shows_all() || i.decoded.waypoint != isa::Waypoint::none) shown();
}

void EtmUnit::trace_return(const Return& from, std::optional<std::uint32_t> next) {
    trace({from.instruction, next.value_or(0), from.cycle, true, !next, state_});
}

/// It is not known where execution went on: the unit is off until the next instruction.
void EtmUnit::omit() {
    truth_.unfinished_instructions += 1 + waiting_.instructions;
    waiting_ = {};
    returning_.reset();
}

void EtmUnit::instruction(const CoreInstruction& i, std::uint32_t next, std::uint64_t cycle) {
    if (!wanted_) return;
    cycle_ = cycle;
    if (next >= least_exc_return)
        returning_ = {i, cycle};
    else
        trace({i, next, cycle, false, false, state_});
}

void EtmUnit::lost(const CoreInstruction&, std::uint64_t cycle) {
    if (!wanted_) return;
    cycle_ = cycle;
    omit();
}

void EtmUnit::exception(std::uint32_t number, std::optional<std::uint32_t> back, std::uint32_t handler,
                        std::uint64_t cycle) {
    if (!wanted_) return;
    const std::optional<Return> chained = std::exchange(returning_, std::nullopt);
    if (chained && back) trace_return(*chained, std::nullopt);
    if (chained && !back) omit();
    if (!started_) return;
    if (!back) return macrocell_->discontinuity(handler, state_, cycle);
    macrocell_->exception({number, handler, cycle, chained.has_value(), state_});
    shown();
}

void EtmUnit::returned(std::uint32_t, std::uint32_t to, std::uint32_t, std::uint64_t) {
    if (wanted_ && returning_) trace_return(*std::exchange(returning_, std::nullopt), to);
}

Status EtmUnit::finish(const std::string& core, const std::string& core_type, std::uint32_t, capture::Capture& capture,
                       Truth& truth) {
    if (returning_) omit();
    if (started_) macrocell_->finish();
    truth_.unfinished_instructions += std::exchange(waiting_, {}).instructions;
    capture::Source source = macrocell_->source(id_);
    truth_.source = source.name;
    truth_.file = truth_name_;
    source.core = core;
    source.core_type = core_type;
    capture.sources.push_back(std::move(source));
    if (!ranges_->flush()) return cannot("write", std::filesystem::path(truth_name_));
    truth.sources.push_back(truth_);
    return Nothing{};
}

std::string EtmUnit::summary() const {
    return fmt::format("{} of the {} ({})", counted(truth_.instructions, "instruction"), v4_ ? "ETMv4" : "ETMv3",
                       counted(macrocell_->bytes(), "byte"));
}

}  // namespace waymark::record
