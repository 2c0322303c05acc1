#include "waymark/sink/tpiu.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

namespace waymark::sink {

namespace {

struct TpiuRegister {
    std::uint32_t offset;
    std::string_view name;
};
constexpr TpiuRegister tpiu_registers[] = {{Tpiu::sspsr, "SSPSR"}, {Tpiu::cspsr, "CSPSR"}, {Tpiu::stmr, "STMR"},
                                           {Tpiu::tcvr, "TCVR"},   {Tpiu::tmr, "TMR"},     {Tpiu::stpr, "STPR"},
                                           {Tpiu::ctpr, "CTPR"},   {Tpiu::tprcr, "TPRCR"}, {Tpiu::ffsr, "FFSR"},
                                           {Tpiu::ffcr, "FFCR"},   {Tpiu::fscr, "FSCR"}};

/// Bits of FFCR that keep their value; FOnMan reads 0 when the flush is done.
constexpr std::uint32_t tpiu_ffcr_bits = Tpiu::en_ftc | Tpiu::en_f_cont | Tpiu::f_on_fl_in | Tpiu::f_on_trig |
                                         Tpiu::trig_in | Tpiu::trig_evt | Tpiu::trig_fl | Tpiu::stop_fl |
                                         Tpiu::stop_trig;
constexpr std::uint32_t multipliers = 0x1f;
constexpr std::uint32_t has_counter = 1U << 8;
constexpr std::uint32_t patterns = 0x3000f;

}  // namespace

Status TpiuConfig::check() const {
    if (widths == 0)
        return Error{Errc::usage, "a trace port without a size: give a bit for each size, bit 0 for 1 pin"};
    return Nothing{};
}

std::string_view Tpiu::register_name(std::uint32_t offset) {
    for (const TpiuRegister& r : tpiu_registers)
        if (r.offset == offset) return r.name;
    return {};
}

Tpiu::Tpiu(const TpiuConfig& config) : config_(config), cspsr_(1U << std::countr_zero(config.widths)) {
    WM_CHECK(config.check());
    restart();
}

unsigned Tpiu::pins() const { return static_cast<unsigned>(std::countr_zero(cspsr_)) + 1; }

/// A formatter for the frames from now on.
void Tpiu::restart() {
    coresight::FormatterOptions options;
    if (continuous()) options.full_sync_frames = fscr_;
    formatter_.emplace(frames_, options);
    fresh_ = true;
}

std::string Tpiu::write_register(std::uint32_t offset, std::uint32_t value) {
    const std::string_view called = register_name(offset);
    if (called.empty()) return fmt::format("offset {:#x} is not a register of a trace port", offset);
    switch (offset) {
        case cspsr:
            if (!std::has_single_bit(value) || (value & config_.widths) == 0)
                return fmt::format("CSPSR {:#x}: exactly one bit must be 1, and it must be 1 in SSPSR, {:#x}", value,
                                   config_.widths);
            cspsr_ = value;
            return {};
        case tcvr:
            tcvr_ = value & 0xff;
            left_.reset();
            return {};
        case tmr: tmr_ = value & multipliers; return {};
        case ctpr: ctpr_ = value & patterns; return {};
        case tprcr: tprcr_ = value & 0xff; return {};
        case fscr:
            fscr_ = value & 0xfff;
            if (fresh_ && sent_bytes() == 0) restart();
            return {};
        case ffcr: {
            const std::uint32_t changed = (value ^ ffcr_) & (en_ftc | en_f_cont);
            if (changed != 0 && !stopped_ && (!fresh_ || sent_bytes() != 0))
                return "EnFTC and EnFCont change only while the formatter is stopped (FFSR.FtStopped); stop it by a "
                       "flush first";
            const bool formatter_changes = changed != 0;
            const std::uint32_t stops = stop_fl | stop_trig;
            const bool again = stopped_ && (value & stops) == 0;
            ffcr_ = value & tpiu_ffcr_bits;
            if (formatter_changes || again) {
                stopped_ = stopped_ && !again;
                restart();
            }
            if ((value & f_on_man) != 0 && !stopped_) flushed();
            return {};
        }
        default: return fmt::format("{} is read-only", called);
    }
}

std::uint32_t Tpiu::read_register(std::uint32_t offset) const {
    switch (offset) {
        case sspsr: return config_.widths;
        case cspsr: return cspsr_;
        case stmr: return multipliers | has_counter | (triggered_ ? triggered : 0) | (left_ ? counting : 0);
        case tcvr: return tcvr_;
        case tmr: return tmr_;
        case stpr: return patterns;
        case ctpr: return ctpr_;
        case tprcr: return tprcr_;
        case ffsr: return (stopped_ ? ft_stopped : 0) | tc_present;
        case ffcr: return ffcr_;
        case fscr: return fscr_;
        default: return 0;
    }
}

std::vector<RegisterValue> Tpiu::registers() const {
    std::vector<RegisterValue> out;
    for (const TpiuRegister& r : tpiu_registers) out.push_back({std::string(r.name), read_register(r.offset), {}, 32});
    return out;
}

void Tpiu::write(coresight::TraceId id, Bytes bytes) {
    for (const std::uint8_t byte : bytes) {
        if (stopped_) {
            ++refused_;
            continue;
        }
        if (id == coresight::trigger_id) {
            trigger();
            continue;
        }
        fresh_ = false;
        if (formats())
            formatter_->add(id, Bytes(&byte, 1));
        else
            frames_.push_back(byte);
        count();
    }
}

/// Words that leave make the trigger counter count.
void Tpiu::count() {
    const std::uint64_t words = sent_bytes() / 4;
    const std::uint64_t more = words - std::exchange(counted_, words);
    if (!left_ || more == 0) return;
    *left_ -= std::min(*left_, more);
    if (*left_ == 0) trigger_event();
}

void Tpiu::mark() {
    // Without continuous formatting the pin TRACECTL shows triggers.
    if (!continuous() || stopped_) return;
    const std::uint8_t none = 0;
    fresh_ = false;
    formatter_->add(coresight::trigger_id, Bytes(&none, 1));
}

void Tpiu::trigger() {
    if (stopped_) return;
    if (!trigger_at_) trigger_at_ = sent_bytes();
    if ((ffcr_ & trig_in) != 0) mark();
    if (left_ || triggered_) return;
    std::uint64_t times = 1;
    constexpr unsigned shifts[] = {1, 2, 4, 8, 16};
    for (unsigned bit = 0; bit < 5; ++bit)
        if ((tmr_ >> bit & 1U) != 0) times <<= shifts[bit];
    left_ = std::uint64_t{tcvr_} * times;
    counted_ = sent_bytes() / 4;
    if (*left_ == 0) trigger_event();
}

void Tpiu::trigger_event() {
    left_.reset();
    triggered_ = true;
    if ((ffcr_ & trig_evt) != 0) mark();
    if ((ffcr_ & f_on_trig) != 0) flushed();
    if ((ffcr_ & stop_trig) != 0) stop();
}

void Tpiu::flushed() {
    if ((ffcr_ & trig_fl) != 0) mark();
    if ((ffcr_ & stop_fl) != 0) stop();
}

void Tpiu::flush() {
    if (!stopped_ && (ffcr_ & f_on_fl_in) != 0) flushed();
}

void Tpiu::idle() {
    if (!continuous() || stopped_) return;
    fresh_ = false;
    formatter_->idle();
}

void Tpiu::stop() {
    if (stopped_) return;
    if (formats()) formatter_->flush();
    stopped_ = true;
    left_.reset();
}

std::vector<std::uint8_t> Tpiu::take() {
    sent_ += frames_.size();
    return std::exchange(frames_, {});
}

}  // namespace waymark::sink
