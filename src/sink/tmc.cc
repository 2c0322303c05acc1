#include "waymark/sink/tmc.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "waymark/coresight/frame.h"

namespace waymark::sink {

namespace {

using coresight::frame_bytes;

constexpr std::uint32_t nothing_to_read = 0xffffffff;
constexpr std::uint32_t scatter_gather = 1U << 7;  ///< of AXICTL

struct NamedRegister {
    std::uint32_t offset;
    std::string_view name;
};
constexpr NamedRegister register_names[] = {{Tmc::rsz, "RSZ"},
                                            {Tmc::sts, "STS"},
                                            {Tmc::rrd, "RRD"},
                                            {Tmc::rrp, "RRP"},
                                            {Tmc::rwp, "RWP"},
                                            {Tmc::trg, "TRG"},
                                            {Tmc::ctl, "CTL"},
                                            {Tmc::rwd, "RWD"},
                                            {Tmc::mode, "MODE"},
                                            {Tmc::lbuflevel, "LBUFLEVEL"},
                                            {Tmc::cbuflevel, "CBUFLEVEL"},
                                            {Tmc::bufwm, "BUFWM"},
                                            {Tmc::rrphi, "RRPHI"},
                                            {Tmc::rwphi, "RWPHI"},
                                            {Tmc::axictl, "AXICTL"},
                                            {Tmc::dbalo, "DBALO"},
                                            {Tmc::dbahi, "DBAHI"},
                                            {Tmc::ffsr, "FFSR"},
                                            {Tmc::ffcr, "FFCR"},
                                            {Tmc::pscr, "PSCR"}};

/// Bits of FFCR that keep their value; FlushMan and DrainBuffer trigger an action and read 0.
constexpr std::uint32_t ffcr_bits = Ffcr::en_ft | Ffcr::en_ti | Ffcr::f_on_fl_in | Ffcr::f_on_trig_evt |
                                    Ffcr::trig_on_trig_in | Ffcr::trig_on_trig_evt | Ffcr::trig_on_fl |
                                    Ffcr::stop_on_fl | Ffcr::stop_on_trig_evt;

}  // namespace

std::string_view name(SinkKind kind) {
    switch (kind) {
        case SinkKind::etb11: return "ETB";
        case SinkKind::etb: return "TMC-ETB";
        case SinkKind::etf: return "TMC-ETF";
        case SinkKind::etr: return "TMC-ETR";
    }
    return {};
}

Status TmcConfig::check() const {
    if (!coresight::TraceRam::is_size(memory_bytes) || memory_bytes > std::uint64_t{1} << 32)
        return Error{Errc::usage,
                     fmt::format("a trace memory of {} bytes: the size must be a multiple of {}, up to 4 GiB",
                                 memory_bytes, frame_bytes)};
    if (base != 0 && kind != SinkKind::etr)
        return Error{Errc::usage, fmt::format("base {:#x}: only an ETR has its memory at an address", base)};
    if (base % frame_bytes != 0)
        return Error{Errc::usage, fmt::format("base {:#x}: the address of the memory of an ETR is a multiple of {}",
                                              base, frame_bytes)};
    return Nothing{};
}

std::string_view Tmc::register_name(std::uint32_t offset) {
    for (const NamedRegister& r : register_names)
        if (r.offset == offset) return r.name;
    return {};
}

Tmc::Tmc(const TmcConfig& config) : config_(config) { WM_CHECK(config.check()); }

// ---- registers

std::uint64_t Tmc::pointer(std::uint64_t at) const {
    const std::uint64_t in_memory = (start_ + at) % size();
    if (!pages_.empty())
        return pages_[static_cast<std::size_t>(in_memory / ScatterEntry::page_bytes)] +
               in_memory % ScatterEntry::page_bytes;
    return config_.kind == SinkKind::etb11 ? in_memory / 4 : config_.base + in_memory;
}

std::string Tmc::write_register(std::uint32_t offset, std::uint32_t value) {
    const std::string_view called = register_name(offset);
    if (called.empty() || (config_.kind == SinkKind::etb11 && (offset == mode || offset == bufwm)))
        return fmt::format("offset {:#x} is not a register that a {} has", offset, name(config_.kind));
    const auto only_disabled = [&]() -> std::string {
        if (!capt_en_) return {};
        return fmt::format("{} is written while CTL.TraceCaptEn is 1; write 0 to it first", called);
    };
    switch (offset) {
        case ctl:
            if (((value & Ctl::trace_capt_en) != 0) == capt_en_) return {};
            if (!capt_en_)
                if (std::string wrong = read_list(); !wrong.empty()) return wrong;
            capt_en_ = !capt_en_;
            if (!capt_en_) {
                // Without a stop before, data in the formatter are lost.
                state_ = State::disabled;
                trg_ = 0;
                counting_.reset();
                return {};
            }
            start_ = pages_.empty() ? (start_ + written_) % size() : 0;
            written_ = read_ = most_filled_ = 0;
            full_ = triggered_ = false;
            trigger_at_.reset();
            counting_.reset();
            frames_.clear();
            formatter_.emplace(frames_, coresight::FormatterOptions{});
            state_ = State::running;
            return {};
        case mode:
            if (std::string wrong = only_disabled(); !wrong.empty()) return wrong;
            if (value > 2 || (value == 2 && config_.kind != SinkKind::etf))
                return fmt::format("MODE {} is not a mode of a {}; write 0 (circular){}", value, name(config_.kind),
                                   config_.kind == SinkKind::etf ? ", 1 (software FIFO) or 2 (hardware FIFO)"
                                                                 : " or 1 (software FIFO)");
            mode_ = static_cast<Mode>(value);
            return {};
        case trg:
            if (std::string wrong = only_disabled(); !wrong.empty()) return wrong;
            trg_ = value;
            return {};
        case bufwm:
            if (std::string wrong = only_disabled(); !wrong.empty()) return wrong;
            if (value >= size() / 4)
                return fmt::format("BUFWM {:#x} is not below the {:#x} words of the memory", value, size() / 4);
            bufwm_ = value;
            return {};
        case rwp:
            if (std::string wrong = only_disabled(); !wrong.empty()) return wrong;
            if ((axictl_ & scatter_gather) != 0) return "RWP: with scatter lists a capture begins at the first page";
            {
                // RWP has the low half of an address: the memory may reach across a multiple of 4 GiB.
                const std::uint64_t at = config_.kind == SinkKind::etb11
                                             ? std::uint64_t{value} * 4
                                             : value - static_cast<std::uint32_t>(config_.base);
                if (at >= size() || at % frame_bytes != 0)
                    return fmt::format("RWP {:#x} lies outside the memory, or not on a frame of {} bytes", value,
                                       frame_bytes);
                start_ = at;
                written_ = read_ = 0;
            }
            return {};
        case ffcr: {
            if (is_fifo() && (value & (Ffcr::trig_on_trig_evt | Ffcr::stop_on_trig_evt | Ffcr::f_on_trig_evt)) != 0)
                return "TrigOnTrigEvt, StopOnTrigEvt and FOnTrigEvt are only for circular buffer mode; write 0 to them";
            if (capt_en_ && state_ == State::running && ((value ^ ffcr_) & (Ffcr::en_ft | Ffcr::en_ti)) != 0)
                return "EnFt and EnTI change only while the formatter is stopped (FFSR.FtStopped)";
            if ((value & Ffcr::en_ti) != 0 && (value & Ffcr::en_ft) == 0)
                return "EnTI without EnFt: triggers can be marked in formatted trace only; write EnFt too";
            ffcr_ = value & ffcr_bits;
            if ((value & Ffcr::flush_man) != 0 && state_ == State::running) flush_completed(true);
            if ((value & Ffcr::drain_buffer) != 0 && (config_.kind != SinkKind::etf || state_ != State::stopped ||
                                                      mode_ != Mode::circular || (ffcr_ & Ffcr::en_ft) == 0))
                return "DrainBuffer works only on a stopped ETF in circular buffer mode with EnFt alone";
            return {};
        }
        case pscr: pscr_ = value; return {};
        case rsz:
        case dbalo:
        case dbahi:
        case axictl: return write_memory_register(offset, value);
        case rrp:
        case rwphi:
        case rrphi:
        case rwd: return fmt::format("the model does not take {}: give it in its configuration", called);
        default: return fmt::format("{} is read-only", called);
    }
}

/// Writes the address of an ETR's memory and its access attributes.
std::string Tmc::write_memory_register(std::uint32_t offset, std::uint32_t value) {
    const std::string_view called = register_name(offset);
    if (config_.kind != SinkKind::etr)
        return fmt::format("{} is {} a {}", called, offset == rsz ? "read-only in" : "no register of",
                           name(config_.kind));
    if (capt_en_) return fmt::format("{} is written while CTL.TraceCaptEn is 1; write 0 to it first", called);
    TmcConfig config = config_;
    switch (offset) {
        case rsz: config.memory_bytes = std::uint64_t{value} * 4; break;
        case dbalo: config.base = (config.base & ~std::uint64_t{0xffffffff}) | value; break;
        case dbahi: config.base = (config.base & 0xffffffff) | std::uint64_t{value} << 32; break;
        default:
            if (((axictl_ ^ value) & scatter_gather) != 0) forget();
            axictl_ = value;
            return {};
    }
    if (const auto status = config.check(); !status) return status.error().message;
    config_ = config;
    forget();
    return {};
}

/// Another memory than before holds nothing.
void Tmc::forget() {
    memory_.clear();
    pages_.clear();
    start_ = written_ = read_ = 0;
}

/// Reads the scatter list, if there is to be one. Returns the mistake in it.
std::string Tmc::read_list() {
    if ((axictl_ & scatter_gather) == 0) return {};
    std::vector<std::uint64_t> pages;
    // More pages than fit into 4 GiB: links go in a circle.
    constexpr std::uint64_t most_pages = std::uint64_t{1} << 20;
    constexpr std::uint64_t most_entries = 2 * most_pages;
    std::uint64_t at = config_.base;
    if (at % ScatterEntry::page_bytes != 0)
        return fmt::format(
            "the scatter list at {:#x} does not begin at a multiple of {:#x}; write its address to DBALO", at,
            ScatterEntry::page_bytes);
    for (std::uint64_t entries = 0; entries < most_entries; ++entries) {
        const std::optional<std::uint32_t> word = list_ ? list_(at) : std::nullopt;
        if (!word) return fmt::format("the scatter list at {:#x} cannot be read: no memory is there", at);
        const std::uint64_t to = ScatterEntry::address(*word);
        const bool ends_table = (at + 4) % ScatterEntry::page_bytes == 0;
        switch (*word & 0xf) {
            case ScatterEntry::last:
            case ScatterEntry::page:
                if (pages.size() == most_pages) break;
                pages.push_back(to);
                if ((*word & 3U) == ScatterEntry::last) {
                    if (pages != pages_) forget();
                    pages_ = std::move(pages);
                    return {};
                }
                if (ends_table)
                    return fmt::format(
                        "the scatter list's word at {:#x}, the last one of its page, is neither Last nor Link", at);
                at += 4;
                continue;
            case ScatterEntry::link: at = to; continue;
            default:
                return fmt::format(
                    "the scatter list's word at {:#x} is {:#x}: bits 3:0 are 1 (Last), 2 (a page) or 3 "
                    "(Link)",
                    at, *word);
        }
        break;
    }
    return "the scatter list has no Last word among two million: its links go in a circle";
}

std::uint32_t Tmc::read_register(std::uint32_t offset) {
    switch (offset) {
        case rsz: return static_cast<std::uint32_t>(config_.memory_bytes / 4);
        case sts: {
            const bool empty = fill() == 0;
            const bool full = is_fifo() ? fill() >= size() - std::uint64_t{bufwm_} * 4 : full_;
            return (full ? Sts::full : 0) | (triggered_ ? Sts::triggered : 0) |
                   (stopped() ? Sts::ready | Sts::ft_empty : 0) | (capt_en_ && empty ? Sts::empty : 0);
        }
        case rrd: {
            // A circular buffer can be read after it is stopped; a software FIFO at any time.
            if ((mode_ == Mode::circular && !stopped()) || mode_ == Mode::hardware_fifo) return nothing_to_read;
            const std::uint64_t kept = std::min<std::uint64_t>(written_, size());
            const std::uint64_t oldest = mode_ == Mode::circular ? written_ - kept : 0;
            const std::uint64_t at = std::max(read_, oldest);
            if (at + 4 > written_) return nothing_to_read;
            read_ = at + 4;
            note_level();
            std::uint32_t word = 0;
            for (unsigned i = 0; i < 4; ++i) word |= std::uint32_t{memory_.get((start_ + at + i) % size())} << 8 * i;
            return word;
        }
        case rrp: {
            const std::uint64_t oldest = mode_ == Mode::circular && written_ > size() ? written_ - size() : 0;
            return static_cast<std::uint32_t>(pointer(std::max(read_, oldest)));
        }
        case rwp: return static_cast<std::uint32_t>(pointer(written_));
        case rrphi: return static_cast<std::uint32_t>(pointer(read_) >> 32);
        case rwphi: return static_cast<std::uint32_t>(pointer(written_) >> 32);
        case trg: return counting_ ? static_cast<std::uint32_t>(*counting_ == 0 ? 0 : *counting_ - 1) : trg_;
        case ctl: return capt_en_ ? Ctl::trace_capt_en : 0;
        case mode: return static_cast<std::uint32_t>(mode_);
        case cbuflevel: return static_cast<std::uint32_t>(std::min<std::uint64_t>(fill(), size()) / 4);
        case lbuflevel:
            return static_cast<std::uint32_t>(std::exchange(most_filled_, std::min<std::uint64_t>(fill(), size())) / 4);
        case bufwm: return bufwm_;
        case dbalo: return static_cast<std::uint32_t>(config_.base);
        case dbahi: return static_cast<std::uint32_t>(config_.base >> 32);
        case axictl: return axictl_;
        case ffsr: return stopped() ? Ffsr::ft_stopped : 0;
        case ffcr: return ffcr_;
        case pscr: return pscr_;
        default: return 0;
    }
}

std::vector<RegisterValue> Tmc::registers() const {
    std::vector<RegisterValue> out;
    Tmc& self = const_cast<Tmc&>(*this);
    for (const NamedRegister& r : register_names) {
        const bool moves = r.offset == rrd || r.offset == rwd || r.offset == lbuflevel;
        const bool of_tmc = r.offset == mode || r.offset == cbuflevel || r.offset == bufwm || r.offset == pscr;
        const bool of_etr =
            r.offset == dbalo || r.offset == dbahi || r.offset == axictl || r.offset == rrphi || r.offset == rwphi;
        if (moves || (of_tmc && config_.kind == SinkKind::etb11) || (of_etr && config_.kind != SinkKind::etr)) continue;
        out.push_back({std::string(r.name), self.read_register(r.offset), {}, 32});
    }
    return out;
}

// ---- trace

void Tmc::note_level() { most_filled_ = std::max(most_filled_, std::min<std::uint64_t>(fill(), size())); }

/// Stores completed frames in the memory, word by word.
void Tmc::store() {
    if (frames_.empty()) return;
    for (std::size_t at = 0; at < frames_.size(); at += 4) {
        for (std::size_t i = 0; i < 4; ++i) memory_.put((start_ + written_ + i) % size(), frames_[at + i]);
        written_ += 4;
        if (mode_ == Mode::circular && written_ >= size()) full_ = true;
        if (counting_ && *counting_ != 0) --*counting_;
    }
    frames_.clear();
    note_level();
    if (counting_ && *counting_ == 0) trigger_event();
}

void Tmc::take(coresight::TraceId id, std::uint8_t byte) {
    formatter_->add(id, Bytes(&byte, 1));
    store();
}

void Tmc::write(coresight::TraceId id, Bytes bytes) {
    for (const std::uint8_t byte : bytes) {
        if (state_ != State::running || !has_room()) {
            ++refused_;
            continue;
        }
        if (id == coresight::trigger_id) {
            trigger();
            continue;
        }
        if ((ffcr_ & Ffcr::en_ft) != 0) {
            take(id, byte);
            continue;
        }
        // Bypass: bytes are stored unformatted, in words. An incomplete word waits for more bytes.
        frames_.push_back(byte);
        if (frames_.size() == 4) store();
    }
}

void Tmc::put_trigger() {
    if ((ffcr_ & Ffcr::en_ti) == 0 || state_ != State::running || !has_room()) return;
    const std::uint8_t none = 0;
    formatter_->add(coresight::trigger_id, Bytes(&none, 1));
    store();
}

void Tmc::begin_count() {
    if (mode_ != Mode::circular || counting_) return;  // a second trigger is ignored (3.2)
    trigger_at_ = written_;
    counting_ = std::uint64_t{trg_} + 1;
}

void Tmc::trigger() {
    if (state_ != State::running) return;
    begin_count();
    if ((ffcr_ & Ffcr::trig_on_trig_in) != 0) put_trigger();
}

void Tmc::trigger_event() {
    if (triggered_) return;
    triggered_ = true;
    if ((ffcr_ & Ffcr::trig_on_trig_evt) != 0) put_trigger();
    if ((ffcr_ & Ffcr::f_on_trig_evt) != 0) flush_completed(true);
    if ((ffcr_ & Ffcr::stop_on_trig_evt) != 0) stop();
}

void Tmc::flush_completed(bool stops) {
    if ((ffcr_ & Ffcr::trig_on_fl) != 0) put_trigger();
    if (stops && (ffcr_ & Ffcr::stop_on_fl) != 0 && state_ == State::running) stop();
}

void Tmc::flush() {
    if (state_ == State::running && (ffcr_ & Ffcr::f_on_fl_in) != 0) flush_completed(true);
}

/// The formatter completes its frame, and accepts no more data.
void Tmc::stop() {
    if (state_ != State::running) return;
    if ((ffcr_ & Ffcr::en_ft) != 0) {
        formatter_->flush();
    } else {
        while (!frames_.empty() && frames_.size() % 4 != 0) frames_.push_back(0);
    }
    state_ = State::stopped;
    counting_.reset();
    trg_ = 0;  // with TMCReady (3.2)
    store();
}

// ---- memory

std::vector<std::uint8_t> Tmc::contents() const {
    const std::uint64_t kept = is_fifo() ? fill() : std::min<std::uint64_t>(written_, size());
    std::vector<std::uint8_t> out;
    out.reserve(static_cast<std::size_t>(kept));
    for (std::uint64_t at = std::max(read_, written_ - kept); at < written_; ++at)
        out.push_back(memory_.get((start_ + at) % size()));
    return out;
}

std::vector<std::uint8_t> Tmc::contents_with_barrier() const {
    std::vector<std::uint8_t> out = contents();
    static constexpr std::array<std::uint8_t, 4> full_sync{0xff, 0xff, 0xff, 0x7f};
    if (wrapped() && written_ > size())
        for (std::size_t i = 0; i < std::min<std::size_t>(out.size(), frame_bytes); ++i) out[i] = full_sync[i % 4];
    return out;
}

std::vector<std::uint8_t> Tmc::drain(std::uint64_t most) {
    std::vector<std::uint8_t> out;
    if (mode_ != Mode::hardware_fifo) return out;
    while (out.size() + frame_bytes <= most && fill() >= frame_bytes)
        for (unsigned i = 0; i < frame_bytes; ++i) out.push_back(memory_.get((start_ + read_++) % size()));
    return out;
}

}  // namespace waymark::sink
