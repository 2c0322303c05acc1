/// A trace buffer as a model: ETB, and TMC as ETB, ETF or ETR, with its registers (docs/spec/tmc.md): formatter,
/// memory, trigger counter, flush and stop; circular buffer and both FIFO modes.
///
///     Tmc tmc({.kind = SinkKind::etr, .memory_bytes = 64 * 1024, .base = 0x80000000});
///     tmc.write_register(Tmc::ffcr, Ffcr::en_ft | Ffcr::en_ti | Ffcr::stop_on_trig_evt);
///     tmc.write_register(Tmc::trg, 1023);
///     tmc.write_register(Tmc::ctl, 1);
///     tmc.write(TraceId{0x10}, bytes);
///     …
///     tmc.trigger();
///     …
///     if (tmc.stopped()) write_file(tmc.contents());
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/core/register_value.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/coresight/formatter.h"
#include "waymark/coresight/frame.h"
#include "waymark/coresight/sinks.h"
#include "waymark/coresight/trace_id.h"
#include "waymark/sink/sparse_memory.h"

namespace waymark::sink {

enum class SinkKind : std::uint8_t {
    etb11,  ///< the older CoreSight ETB: no MODE, pointers count words
    etb,    ///< a TMC as ETB
    etf,
    etr,
};
[[nodiscard]] std::string_view name(SinkKind kind);

/// CTL, STS, MODE and the two formatter registers (2).
struct Ctl {
    static constexpr std::uint32_t trace_capt_en = 1;
};
struct Sts {
    static constexpr std::uint32_t full = 1, triggered = 2, ready = 4, ft_empty = 8, empty = 16, mem_err = 32;
};
enum class Mode : std::uint8_t { circular, software_fifo, hardware_fifo };
struct Ffcr {
    static constexpr std::uint32_t en_ft = 1, en_ti = 2, f_on_fl_in = 1U << 4, f_on_trig_evt = 1U << 5,
                                   flush_man = 1U << 6, trig_on_trig_in = 1U << 8, trig_on_trig_evt = 1U << 9,
                                   trig_on_fl = 1U << 10, stop_on_fl = 1U << 12, stop_on_trig_evt = 1U << 13,
                                   drain_buffer = 1U << 14;
};
struct Ffsr {
    static constexpr std::uint32_t fl_in_prog = 1, ft_stopped = 2;
};

/// A scatter list of an ETR: words that name the pages of its memory (2.5). `Last` and `Link` end a page of the list.
struct ScatterEntry {
    enum Kind : std::uint32_t { last = 1, page = 2, link = 3 };
    static constexpr std::uint64_t page_bytes = 4096, most_address = (std::uint64_t{1} << 40) - page_bytes;
    static constexpr unsigned in_page = page_bytes / 4;
    /// `address` is a multiple of page_bytes, up to most_address.
    [[nodiscard]] static constexpr std::uint32_t word(Kind kind, std::uint64_t address) {
        return static_cast<std::uint32_t>(address >> 12 << 4) | kind;
    }
    [[nodiscard]] static constexpr std::uint64_t address(std::uint32_t word) { return std::uint64_t{word >> 4} << 12; }
};

struct TmcConfig {
    SinkKind kind = SinkKind::etb;
    std::uint64_t memory_bytes = 64 * 1024;  ///< a multiple of 16; of an ETR the size programmed in RSZ
    std::uint64_t base = 0;                  ///< ETR: DBA, the address of the memory
    /// Whether such a buffer is possible. Errors: `usage`.
    [[nodiscard]] Status check() const;
};

class Tmc final : public coresight::BusSink {
public:
    static constexpr std::uint32_t rsz = 0x004, sts = 0x00c, rrd = 0x010, rrp = 0x014, rwp = 0x018, trg = 0x01c,
                                   ctl = 0x020, rwd = 0x024, mode = 0x028, lbuflevel = 0x02c, cbuflevel = 0x030,
                                   bufwm = 0x034, rrphi = 0x038, rwphi = 0x03c, axictl = 0x110, dbalo = 0x118,
                                   dbahi = 0x11c, ffsr = 0x300, ffcr = 0x304, pscr = 0x308;
    /// The name of the register at an offset; empty if there is none.
    [[nodiscard]] static std::string_view register_name(std::uint32_t offset);

    /// Precondition: `config.check()`.
    explicit Tmc(const TmcConfig& config);
    Tmc(const Tmc&) = delete;
    Tmc& operator=(const Tmc&) = delete;

    // ---- registers

    /// Writes that the specification leaves UNPREDICTABLE change nothing; the returned sentence explains the mistake
    /// and the remedy. Empty: the write was legal.
    std::string write_register(std::uint32_t offset, std::uint32_t value);
    /// Reading RRD takes a word out of the memory; without one it is 0xffffffff.
    [[nodiscard]] std::uint32_t read_register(std::uint32_t offset);
    /// The registers that a debugger would save, without side effects.
    [[nodiscard]] std::vector<RegisterValue> registers() const;

    /// For an ETR with scatter lists: `read` returns the word of the system's memory at an address, which is a multiple
    /// of 4; nullopt: there is no memory.
    void on_list(std::function<std::optional<std::uint32_t>(std::uint64_t address)> read) { list_ = std::move(read); }
    /// Addresses of the pages that hold the trace, in their order; empty without a scatter list.
    [[nodiscard]] const std::vector<std::uint64_t>& pages() const { return pages_; }

    // ---- trace

    /// Bytes that are not accepted, because capture is off or stopped or a FIFO is full, are lost and counted in
    /// `refused_bytes`.
    void write(coresight::TraceId id, Bytes bytes) override;
    /// The sources were flushed, and all their bytes were written (FLUSHIN, FFCR.FlushMan and a flush by a trigger).
    void flush() override;
    /// A rising edge on TRIGIN.
    void trigger();

    /// Formatter, trigger and memory have finished: the state Stopped, or Disabled.
    [[nodiscard]] bool stopped() const { return state_ != State::running; }
    /// The trigger counter has counted down: the Trigger Event.
    [[nodiscard]] bool triggered() const { return triggered_; }
    /// Number of bytes of frames stored before the trigger, and in total.
    [[nodiscard]] std::optional<std::uint64_t> trigger_at() const { return trigger_at_; }
    [[nodiscard]] std::uint64_t written() const { return written_; }
    /// Bytes of sources that were not accepted.
    [[nodiscard]] std::uint64_t refused_bytes() const { return refused_; }
    [[nodiscard]] bool wrapped() const { return full_ && mode_ == Mode::circular; }

    // ---- memory

    /// Size of the memory; for an ETR the value of RSZ, or of all pages of its scatter list. The model stores only
    /// pages that were written.
    [[nodiscard]] std::uint64_t memory_bytes() const { return size(); }
    /// The bytes for a reader: the oldest byte first, without bytes that were never written or already read.
    [[nodiscard]] std::vector<std::uint8_t> contents() const;
    /// The same after a wrap in the form in which drivers pass it on: a barrier of four full syncs replaces the first
    /// 16 bytes, so that no reader continues the lost trace before them (4.3).
    [[nodiscard]] std::vector<std::uint8_t> contents_with_barrier() const;
    /// Hardware FIFO mode: frames that leave for the next sink, whole frames up to `most` bytes.
    [[nodiscard]] std::vector<std::uint8_t> drain(std::uint64_t most);

private:
    enum class State : std::uint8_t { disabled, running, stopped };

    std::string write_memory_register(std::uint32_t offset, std::uint32_t value);
    std::string read_list();
    void forget();
    void take(coresight::TraceId id, std::uint8_t byte);
    void store();
    void put_trigger();
    void begin_count();
    void trigger_event();
    void flush_completed(bool stops);
    void stop();
    [[nodiscard]] std::uint64_t fill() const { return written_ - read_; }
    [[nodiscard]] bool is_fifo() const { return mode_ != Mode::circular; }
    /// Whether there is room for the frame being filled and the next one.
    [[nodiscard]] bool has_room() const { return !is_fifo() || fill() + 2 * coresight::frame_bytes <= size(); }
    [[nodiscard]] std::uint64_t size() const {
        return pages_.empty() ? config_.memory_bytes : pages_.size() * ScatterEntry::page_bytes;
    }
    void note_level();
    [[nodiscard]] std::uint64_t pointer(std::uint64_t at) const;

    TmcConfig config_;
    SparseMemory memory_;
    std::function<std::optional<std::uint32_t>(std::uint64_t)> list_;
    std::vector<std::uint64_t> pages_;
    std::vector<std::uint8_t> frames_;
    std::optional<coresight::Formatter> formatter_;
    State state_ = State::disabled;
    Mode mode_ = Mode::circular;
    std::uint32_t ffcr_ = 0, trg_ = 0, bufwm_ = 0, pscr_ = 0xa, axictl_ = 0;
    bool capt_en_ = false, full_ = false, triggered_ = false;
    std::uint64_t start_ = 0;    ///< place in the memory of the first byte of this capture
    std::uint64_t written_ = 0;  ///< bytes stored in this capture
    std::uint64_t read_ = 0;     ///< FIFO modes, and a stopped circular buffer: number of bytes already read
    std::uint64_t refused_ = 0;
    std::uint64_t most_filled_ = 0;
    std::optional<std::uint64_t> trigger_at_;
    std::optional<std::uint64_t> counting_;  ///< words to be written before the Trigger Event
};

}  // namespace waymark::sink
