/// What recordings of a PTM and of an ETMv3 have alike (flow/unit.h): how options program the registers, which
/// registers a capture has, and the registers and signals of the unit.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/flow/unit.h"
#include "waymark/flow/unit_signals.h"
#include "waymark/pft/access.h"
#include "waymark/pft/explain.h"
#include "waymark/pft/model.h"
#include "waymark/pft/programming.h"

namespace waymark::pft {

/// The differences.
struct RecordedKind {
    std::string_view name, one;  ///< for messages: `PTM`, `a PTM`
    Macrocell macrocell{};
    std::vector<RegisterField> (*fields)(const Registers& registers, unsigned number);
};

/// What both can have: sizes of the Context ID, of the synchronisation period and of the FIFO, addresses of 32 bits, no
/// speculation. Errc::usage.
[[nodiscard]] Status check_macrocell(const flow::UnitOptions& options, const RecordedKind& kind);

/// Programs registers by name first, then the comparators that options need. Errc::usage.
[[nodiscard]] Status program_by_options(Registers& registers, const flow::UnitOptions& options,
                                        const RecordedKind& kind);

/// Registers that are given by name may use features that the options alone never use.
[[nodiscard]] inline bool programs_all(const flow::UnitOptions& options) { return !options.registers.empty(); }

/// The registers of a capture: `least`, those that differ from `untouched`, and those that explain() needs.
[[nodiscard]] std::vector<RegisterValue> captured_registers(const Registers& registers, const Registers& untouched,
                                                            std::vector<RegisterValue> least, const RecordedKind& kind);

/// As flow::UnitFactory.
[[nodiscard]] std::optional<flow::SelectedBlocks> selected_by(const Registers& registers);

/// The unit's model with its registers and signals; derived classes add execution.
template <class Model>
class RecordedMacrocell : public flow::Unit, public flow::UnitSignals, private flow::RegisterPort {
public:
    void context(const flow::Context& context) override {
        if (context.context_id && context.context_id != context_.context_id) model_.set_context_id(*context.context_id);
        context_ = context;
    }
    void start(Place first, std::uint64_t cycle) override { model_.start(arrival(first, cycle)); }
    void wait(std::uint64_t cycle) override { model_.wait(cycle); }
    void resume(Place next, std::uint64_t cycle) override { model_.discontinuity(arrival(next, cycle)); }
    void finish() override { model_.finish(); }
    void permit(const flow::TracePermission& permission, std::uint64_t) override {
        model_.set_authentication({permission.non_secure, permission.secure});
    }
    void set_power(bool on, std::uint64_t cycle) override { model_.set_power(on, cycle); }
    void set_os_lock(bool locked, std::uint64_t cycle) override {
        model_.write(management::oslar, locked ? flow::UnitLocks::unlock_key : 0, cycle, Requester::external);
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
    [[nodiscard]] std::uint64_t untraced() const override { return model_.counts().untraced; }
    [[nodiscard]] bool overflowing() const override { return model_.status().overflow; }
    [[nodiscard]] bool may_lose() const override { return may_lose_; }

protected:
    template <class Config>
    RecordedMacrocell(const Config& config, ByteSink& trace)
        : model_(config, trace), may_lose_(config.choices.fifo_bytes != 0) {}

    [[nodiscard]] Arrival arrival(Place place, std::uint64_t cycle) const {
        return {place, context_.ns, context_.hyp, cycle};
    }
    void program_registers(const Registers& wanted, bool all, std::uint64_t cycle) {
        // Waits take time that the program does not notice: until the FIFO has drained, regardless of its size and
        // speed.
        constexpr std::uint64_t drains = std::numeric_limits<std::uint64_t>::max();
        std::uint64_t at = cycle;
        WM_CHECK(flow::carry_out(program_steps(wanted, all), *this, at, drains));
    }

    Model model_;
    flow::Context context_;

private:
    flow::AccessResult write(unsigned offset, std::uint32_t value, std::uint64_t cycle) override {
        return model_.write(offset / 4, value, cycle);
    }
    flow::ReadResult read(unsigned offset, std::uint64_t cycle) override { return model_.read(offset / 4, cycle); }

    bool may_lose_;
};

}  // namespace waymark::pft
