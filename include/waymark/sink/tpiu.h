/// A trace port (TPIU) as a model, with its registers: formatter, synchronisation, trigger counter, flush and stop
/// (docs/spec/trace-bus.md, 4).
///
///     Tpiu tpiu({.widths = 1U << 3});
///     tpiu.write_register(Tpiu::cspsr, 1U << 3);  // four pins
///     tpiu.write_register(Tpiu::ffcr, Tpiu::en_ftc | Tpiu::en_f_cont);
///     tpiu.write(TraceId{0x10}, bytes);
///     write_file(tpiu.take());
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/coresight/formatter.h"
#include "waymark/coresight/sinks.h"
#include "waymark/coresight/trace_id.h"

namespace waymark::sink {

struct TpiuConfig {
    std::uint32_t widths = 0x8000800b;  ///< supported port sizes: bit n - 1 for n pins; not 0
    /// Errors: `usage`: there is no such port.
    [[nodiscard]] Status check() const;
};

class Tpiu final : public coresight::BusSink {
public:
    static constexpr std::uint32_t sspsr = 0x000, cspsr = 0x004, stmr = 0x100, tcvr = 0x104, tmr = 0x108, stpr = 0x200,
                                   ctpr = 0x204, tprcr = 0x208, ffsr = 0x300, ffcr = 0x304, fscr = 0x308;
    /// Bits of FFCR.
    static constexpr std::uint32_t en_ftc = 1, en_f_cont = 2, f_on_fl_in = 1U << 4, f_on_trig = 1U << 5,
                                   f_on_man = 1U << 6, trig_in = 1U << 8, trig_evt = 1U << 9, trig_fl = 1U << 10,
                                   stop_fl = 1U << 12, stop_trig = 1U << 13;
    /// Bits of STMR, and of FFSR.
    static constexpr std::uint32_t triggered = 1U << 16, counting = 1U << 17;
    static constexpr std::uint32_t ft_stopped = 2, tc_present = 4;
    [[nodiscard]] static std::string_view register_name(std::uint32_t offset);

    /// Precondition: `config.check()`.
    explicit Tpiu(const TpiuConfig& config);
    Tpiu(const Tpiu&) = delete;
    Tpiu& operator=(const Tpiu&) = delete;

    /// Writes that the specification leaves UNPREDICTABLE change nothing. Returns the mistake; empty if there is none.
    std::string write_register(std::uint32_t offset, std::uint32_t value);
    [[nodiscard]] std::uint32_t read_register(std::uint32_t offset) const;
    [[nodiscard]] std::vector<RegisterValue> registers() const;

    /// Bytes that come while the formatter is stopped are lost, and counted in `refused_bytes`.
    void write(coresight::TraceId id, Bytes bytes) override;
    /// The sources were flushed, and all their bytes were written (FLUSHIN).
    void flush() override;
    /// A rising edge on TRIGIN.
    void trigger();
    /// No source has anything for the port.
    void idle();

    [[nodiscard]] bool stopped() const { return stopped_; }
    [[nodiscard]] std::uint64_t refused_bytes() const { return refused_; }
    /// Bytes that left through the pins since the last call. A stopped formatter has sent its last frame.
    [[nodiscard]] std::vector<std::uint8_t> take();
    [[nodiscard]] std::uint64_t sent_bytes() const { return sent_ + frames_.size(); }
    /// Number of bytes of whole frames and synchronisations before the first trigger.
    [[nodiscard]] std::optional<std::uint64_t> trigger_at() const { return trigger_at_; }
    /// Clocks of the port for `bytes` bytes, at the current size.
    [[nodiscard]] std::uint64_t clocks(std::uint64_t bytes) const { return (bytes * 8 + pins() - 1) / pins(); }
    [[nodiscard]] unsigned pins() const;

private:
    [[nodiscard]] bool formats() const { return (ffcr_ & (en_ftc | en_f_cont)) != 0; }
    [[nodiscard]] bool continuous() const { return (ffcr_ & en_f_cont) != 0; }
    void restart();
    void mark();
    void count();
    void trigger_event();
    void flushed();
    void stop();

    TpiuConfig config_;
    std::vector<std::uint8_t> frames_;
    std::optional<coresight::Formatter> formatter_;
    std::uint32_t cspsr_, tcvr_ = 0, tmr_ = 0, ctpr_ = 0, tprcr_ = 0, ffcr_ = 0, fscr_ = 0x40;
    bool stopped_ = false, triggered_ = false;
    bool fresh_ = true;  ///< the formatter was given nothing since it began
    std::uint64_t sent_ = 0, counted_ = 0, refused_ = 0;
    std::optional<std::uint64_t> trigger_at_;
    std::optional<std::uint64_t> left_;  ///< words until the trigger event
};

}  // namespace waymark::sink
