/// The whole path of trace from units to one sink as models, programmed as software does it: a funnel, a replicator, a
/// trace buffer or trace port, and the cross triggers that lead the units' triggers to the sink.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/core/result.h"
#include "waymark/coresight/trace_id.h"
#include "waymark/flow/register_steps.h"
#include "waymark/flow/unit_program.h"
#include "waymark/sink/bus.h"
#include "waymark/sink/cti.h"
#include "waymark/sink/programming.h"
#include "waymark/sink/tmc.h"
#include "waymark/sink/tpiu.h"

namespace waymark::sink {

struct PathSetup {
    std::optional<SinkSetup> buffer{};
    unsigned port_pins = 0;  ///< instead of `buffer`: a trace port; 1 to 32
    /// Registers of all components by name. They replace the values of the programs; registers of cross triggers hold
    /// for all interfaces.
    std::vector<flow::RegisterSetting> registers{};
    /// Errors: `usage`: the buffer or port is impossible, or no component has a register, or does not take its value.
    [[nodiscard]] Status check() const;
    /// Bytes after the trigger at which the buffer stops; nullopt: it does not.
    [[nodiscard]] std::optional<std::uint64_t> after_trigger() const {
        return buffer ? buffer->after_trigger : std::nullopt;
    }
    /// The sink's name: `TMC-ETR`, `TPIU`.
    [[nodiscard]] std::string name() const;
};

class SinkPath {
public:
    /// A component with the registers that a debugger would save.
    struct Device {
        std::string name, type;  ///< `CTI_0`, `CTI`
        std::vector<RegisterValue> registers;
        bool is_link = true;  ///< not the sink itself
    };

    /// Precondition: `setup.check()`.
    explicit SinkPath(const PathSetup& setup);
    SinkPath(const SinkPath&) = delete;
    SinkPath& operator=(const SinkPath&) = delete;

    /// Opens the funnel for a source, and connects its trigger. Sources with the same number modulo 8 share an input.
    void connect(unsigned source);
    /// Precondition: the source is connected.
    void write(unsigned source, coresight::TraceId id, Bytes bytes);
    /// An edge of the source's trigger, after all bytes written so far.
    void trigger(unsigned source);
    /// Flushes and stops the sink, as software does before it reads it.
    void stop();

    /// Whether the sink takes no more trace.
    [[nodiscard]] bool stopped() const { return tmc_ ? tmc_->stopped() : tpiu_->stopped(); }
    [[nodiscard]] const Tmc* buffer() const { return tmc_.get(); }
    [[nodiscard]] const Tpiu* port() const { return tpiu_.get(); }
    /// Bytes that left through the port's pins since the last call.
    [[nodiscard]] std::vector<std::uint8_t> take() { return tpiu_ ? tpiu_->take() : std::vector<std::uint8_t>(); }
    /// The sink first.
    [[nodiscard]] std::vector<Device> devices() const;

private:
    friend struct PathSetup;
    [[nodiscard]] static unsigned input_of(unsigned source) { return source % BusFunnel::most_inputs; }
    /// Carries out a program with the given registers in place of its own values.
    template <class Model>
    void enable(const flow::ComponentProgram& program, Model& model, flow::RegisterPort& port);
    [[nodiscard]] const flow::RegisterSetting* setting(std::string_view name) const;
    void make_list(const SinkSetup& setup);

    PathSetup setup_;
    std::unique_ptr<Tmc> tmc_;
    std::unique_ptr<Tpiu> tpiu_;
    flow::ComponentProgram sink_program_;
    std::unique_ptr<flow::RegisterPort> sink_port_;
    std::unordered_map<std::uint64_t, std::uint32_t> list_;
    NoSink nothing_;
    std::unique_ptr<BusReplicator> replicator_;
    std::unique_ptr<BusFunnel> funnel_;
    std::unique_ptr<flow::RegisterPort> funnel_port_;
    Ctm matrix_;
    std::unique_ptr<Cti> sink_cti_;
    std::array<std::unique_ptr<Cti>, BusFunnel::most_inputs> unit_ctis_;
    std::string refused_;  ///< the first given register that a component did not take
};

}  // namespace waymark::sink
