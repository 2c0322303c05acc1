/// Cross triggers as a model: the interface of a component (CTI), whose trigger inputs and outputs are mapped to
/// channels, and the matrix that connects the channels of several (CTM) (docs/spec/cti.md).
///
///     Cti core({}), system({});
///     Ctm matrix;
///     matrix.connect(core);
///     matrix.connect(system);
///     core.write_register(Cti::inen + 4 * 4, 1);     // the trace unit's external output 0 → channel 0
///     system.write_register(Cti::outen + 4 * 1, 1);  // channel 0 → TRIGIN of the trace buffer
///     for (Cti* cti : {&core, &system}) cti->write_register(Cti::control, 1);
///     system.on_trigger_out([&](unsigned, bool active) { if (active) tmc.trigger(); });
///     core.set_trigger_in(4, true);
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/core/result.h"

namespace waymark::sink {

struct CtiConfig {
    unsigned triggers = 8;  ///< inputs, and as many outputs; 1 to 32
    unsigned channels = 4;  ///< 1 to 32
    /// Outputs whose receiver acknowledges them: bit n for output n. The other outputs stay active until CTIINTACK.
    std::uint32_t acknowledged = 0;
    /// Whether such an interface can exist. Errors: `usage`.
    [[nodiscard]] Status check() const;
};

class Ctm;

class Cti {
public:
    /// Offsets. `inen` and `outen` are the offsets of the first register of a row with one for each trigger.
    static constexpr std::uint32_t control = 0x000, intack = 0x010, appset = 0x014, appclear = 0x018, apppulse = 0x01c,
                                   inen = 0x020, outen = 0x0a0, triginstatus = 0x130, trigoutstatus = 0x134,
                                   chinstatus = 0x138, choutstatus = 0x13c, gate = 0x140;
    static constexpr unsigned most = 32;  ///< triggers, channels
    /// A name such as `CTIINEN4`; empty if there is no such register.
    [[nodiscard]] static std::string register_name(std::uint32_t offset);

    /// Precondition: `config.check()`.
    explicit Cti(const CtiConfig& config);
    Cti(const Cti&) = delete;
    Cti& operator=(const Cti&) = delete;

    /// Bits without a trigger or channel are ignored. Returns the mistake of the access; empty if there is none.
    std::string write_register(std::uint32_t offset, std::uint32_t value);
    /// Write-only and missing registers read as 0.
    [[nodiscard]] std::uint32_t read_register(std::uint32_t offset) const;
    /// The registers that a debugger would save.
    [[nodiscard]] std::vector<RegisterValue> registers() const;

    /// Sets the level of a trigger input. Precondition: there is an input `number`.
    void set_trigger_in(unsigned number, bool active);
    [[nodiscard]] bool trigger_out(unsigned number) const { return (outputs_ >> number & 1U) != 0; }
    /// The function is called at each edge of a trigger output, with the output's number and new level. It must not
    /// call this interface.
    void on_trigger_out(std::function<void(unsigned number, bool active)> called) { called_ = std::move(called); }

private:
    friend class Ctm;

    [[nodiscard]] std::uint32_t channel_bits() const { return bits(config_.channels); }
    [[nodiscard]] static std::uint32_t bits(unsigned count) { return count >= most ? ~0U : (1U << count) - 1; }
    /// Channels that this interface itself activates, before the gate.
    [[nodiscard]] std::uint32_t own_channels() const;
    [[nodiscard]] std::uint32_t channels_out() const { return own_channels() & gate_; }
    /// Passes changes here to the other interfaces, and from there to their outputs.
    void settle();
    /// Outputs follow the channels.
    void map_outputs();

    CtiConfig config_;
    std::array<std::uint32_t, most> in_enables_{}, out_enables_{};
    bool enabled_ = false;
    std::uint32_t gate_, application_ = 0, pulse_ = 0, acknowledge_ = 0;
    std::uint32_t inputs_ = 0, outputs_ = 0, channels_in_ = 0;
    std::function<void(unsigned, bool)> called_;
    Ctm* matrix_ = nullptr;
};

/// Channel n of each interface reaches channel n of all others.
class Ctm {
public:
    Ctm() = default;
    Ctm(const Ctm&) = delete;
    Ctm& operator=(const Ctm&) = delete;
    /// `cti` is borrowed, outlives this, and is connected to no other matrix.
    void connect(Cti& cti);

private:
    friend class Cti;
    void settle();

    std::vector<Cti*> interfaces_;
};

}  // namespace waymark::sink
