/// The components that trace passes after its sources: a funnel that joins them, a formatter that puts bytes into
/// frames, and the RAM of a trace buffer or the pins of a trace port at the end (docs/spec/pft.md, 6.3 to 6.5). Each
/// stores a bounded number of bytes, for a trace of any length.
///
///     TraceRam ram(32 * 1024);  // an ETB of 32 KiB
///     FrameSink frames(ram);    // a trace port: FrameSink(file, {.full_sync_frames = 1})
///     Funnel funnel(frames);
///     pft::Model first(config, funnel.input({TraceId{0x10}}));
///     pft::Model second(config, funnel.input({TraceId{0x11}}));
///     …
///     funnel.flush();
///     write_file(ram.contents());
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "waymark/core/byte_sink.h"
#include "waymark/core/types.h"
#include "waymark/coresight/formatter.h"
#include "waymark/coresight/trace_id.h"

namespace waymark::coresight {

/// The end of a trace bus: receives bytes with the ID of their source.
class BusSink {
public:
    virtual ~BusSink() = default;
    virtual void write(TraceId id, Bytes bytes) = 0;
    /// Makes everything written reach the output of this sink.
    virtual void flush() = 0;
};

/// The RAM of a trace buffer (ETB, or a TMC in that role): a ring. Once it is full, each byte replaces the oldest.
class TraceRam final : public ByteSink {
public:
    /// Frames must not be split by the wrap: the size is a nonzero multiple of 16.
    [[nodiscard]] static constexpr bool is_size(std::uint64_t bytes) { return bytes != 0 && bytes % frame_bytes == 0; }
    explicit TraceRam(std::size_t size_bytes);

    void write(Bytes bytes) override;
    /// The trigger has occurred: the sink takes `bytes` more bytes, then none.
    void stop_after(std::uint64_t bytes);

    [[nodiscard]] bool stopped() const { return left_ == 0; }
    /// Whether the RAM was filled at least once, so that the oldest byte is at the write pointer and not at 0.
    [[nodiscard]] bool wrapped() const { return written_ >= ram_.size(); }
    [[nodiscard]] std::size_t write_pointer() const { return static_cast<std::size_t>(written_ % ram_.size()); }
    /// Number of bytes written, including overwritten ones.
    [[nodiscard]] std::uint64_t written() const { return written_; }
    /// The RAM from address 0 on, as a debugger sees it.
    [[nodiscard]] Bytes ram() const { return ram_; }
    /// The trace for a reader: the oldest byte first, without memory that was never written.
    [[nodiscard]] std::vector<std::uint8_t> contents() const;

private:
    std::vector<std::uint8_t> ram_;
    std::uint64_t written_ = 0;
    std::uint64_t left_ = ~std::uint64_t{0};
};

/// A formatter that passes on its frames when they are complete.
class FrameSink final : public BusSink {
public:
    /// `frames` is borrowed.
    explicit FrameSink(ByteSink& frames, FormatterOptions options = {}) : out_(frames), formatter_(buffer_, options) {}
    FrameSink(const FrameSink&) = delete;
    FrameSink& operator=(const FrameSink&) = delete;

    void write(TraceId id, Bytes bytes) override;
    /// Completes the last frame.
    void flush() override;
    /// Trace port: there is nothing to output now (6.4).
    void idle();
    /// The trigger, as a formatter marks it: a byte that names the source (6.1).
    void trigger(TraceId source);

private:
    void give();

    ByteSink& out_;
    std::vector<std::uint8_t> buffer_;
    Formatter formatter_;
};

/// A formatter in bypass: passes on the bytes of one source, without its ID (6.5).
class BypassSink final : public BusSink {
public:
    /// `out` is borrowed. `memory_width_bytes`: for the end mark that flush() adds; 0: none.
    explicit BypassSink(ByteSink& out, unsigned memory_width_bytes = 4)
        : out_(out), memory_width_bytes_(memory_width_bytes) {}

    void write(TraceId, Bytes bytes) override;
    void flush() override;

private:
    ByteSink& out_;
    unsigned memory_width_bytes_;
    std::uint64_t written_ = 0;
};

struct FunnelOptions {
    /// Number of bytes that the funnel takes from one input, while it has bytes, before it selects another.
    unsigned hold_bytes = 4;
};

/// Joins trace sources. Among the inputs with enough bytes for a turn, the one with the highest priority is next;
/// inputs with equal priority take turns.
class Funnel {
public:
    /// `out` is borrowed.
    explicit Funnel(BusSink& out, FunnelOptions options = {});
    Funnel(const Funnel&) = delete;
    Funnel& operator=(const Funnel&) = delete;

    struct Port {
        TraceId id;
        unsigned priority = 0;  ///< 0 is the highest
    };
    /// Adds an input. It lives as long as the funnel.
    [[nodiscard]] ByteSink& input(Port port);
    /// Passes on the bytes of all inputs, and flushes the sinks downstream.
    void flush();

private:
    class Input final : public ByteSink {
    public:
        Input(Funnel& funnel, Port port) : funnel_(funnel), port_(port) {}
        void write(Bytes bytes) override;

    private:
        friend class Funnel;
        Funnel& funnel_;
        Port port_;
        std::vector<std::uint8_t> waiting_;
    };

    void pass(std::size_t least_bytes);

    BusSink& out_;
    const FunnelOptions options_;
    std::deque<Input> inputs_;  // a deque: inputs never move
    std::size_t last_ = 0;      // the input that had the last turn
};

}  // namespace waymark::coresight
