/// Trace sessions of a macrocell's model one after another, and the registers between them, which decide when one ends
/// and the next begins (docs/spec/pft.md, 3.1; docs/spec/etmv3.md, 9).
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "waymark/core/byte_sink.h"
#include "waymark/pft/model_registers.h"

namespace waymark::pft {

/// `Session` is a session from a cleared Programming bit to the next change of registers. `Config` has `registers`.
template <class Session, class Config>
class ModelUnit {
public:
    ModelUnit(const Config& config, ByteSink& trace) : config_(config), trace_(trace), registers_(config.registers) {
        session_.emplace(config_, trace_);
    }

    [[nodiscard]] Session& session() { return *session_; }
    [[nodiscard]] const Session& session() const { return *session_; }

    void start(const Arrival& first) {
        registers_.set_programming(false);
        session_->start(first);
    }
    void set_programming(bool set, std::uint64_t cycle) {
        registers_.set_programming(set);
        follow(cycle);
    }
    [[nodiscard]] AccessResult write(unsigned number, std::uint32_t value, std::uint64_t cycle, Requester from) {
        session_->pass(cycle);
        const AccessResult result = registers_.write(number, value, from, session_->programming());
        follow(cycle);
        return result;
    }
    [[nodiscard]] ReadResult read(unsigned number, std::uint64_t cycle, Requester from) {
        session_->pass(cycle);
        return registers_.read(number, from, registers());
    }
    void on_trigger(std::function<void()> called) {
        trigger_ = std::move(called);
        session_->on_trigger(trigger_);
    }
    void set_power(bool on, std::uint64_t cycle) {
        session_->pass(cycle);
        registers_.set_power(on);
        follow(cycle);
    }
    /// The present values.
    [[nodiscard]] Registers registers() const {
        Registers out = registers_.file();
        if (!session_->programming()) session_->read_back(out);
        out.sr.programming = session_->programming();
        return out;
    }

private:
    /// Stops or continues the session as the registers say.
    void follow(std::uint64_t cycle) {
        if (registers_.stopped() == session_->programming()) return;
        if (registers_.stopped()) {
            if (!registers_.powered()) return session_->abandon();
            session_->set_programming(true, cycle);
            session_->read_back(registers_.file());
            return;
        }
        if (registers_.take_written()) {
            config_.registers = registers_.file();
            Session before = std::move(*session_);
            session_.emplace(config_, trace_);
            session_->take_over(before);
            session_->on_trigger(trigger_);
        }
        session_->set_programming(false, cycle);
    }

    Config config_;
    ByteSink& trace_;
    ModelRegisters registers_;
    std::optional<Session> session_;
    std::function<void()> trigger_;
};

}  // namespace waymark::pft
