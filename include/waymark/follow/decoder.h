/// The decoders of a protocol for their users: classes that hide the machine behind them, which is a template over its
/// output and includes every packet.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "waymark/core/stream_reader.h"
#include "waymark/core/types.h"
#include "waymark/follow/parallel.h"

namespace waymark::follow {

/// Decodes one trace unit's stream, in chunks of any size. A protocol's Decoder and ReferenceDecoder derive from it,
/// and call `hold<Machine>(…)` once, in their constructors. A machine has the calls that are forwarded here.
class HeldDecoder {
public:
    /// The next bytes of the stream, borrowed for the call.
    void feed(Bytes bytes) { held_->feed(bytes); }
    /// The bytes that follow do not continue earlier ones. `why`: framing, missing or stopped.
    void reset(GapReason why = GapReason::framing) { held_->reset(why); }
    /// The stream ends: reports the rest and delivers everything to the sink. Bytes fed afterwards belong to another
    /// stream, which needs its own synchronisation; offsets continue.
    void finish() { held_->finish(); }
    /// Number of whole packets.
    [[nodiscard]] std::uint64_t packets() const { return held_->packets(); }
    /// Offsets that later elements may name: the beginnings of unfinished parts.
    [[nodiscard]] std::array<Offset, 2> pending() const { return held_->pending(); }
    /// Whether the bytes fed so far end inside a packet that later bytes complete.
    [[nodiscard]] bool amid_packet() const { return held_->amid_packet(); }

protected:
    template <class Machine, class... Arguments>
    Machine& hold(Arguments&&... arguments) {
        auto holder = std::make_unique<StreamDecoderOf<Machine>>(std::forward<Arguments>(arguments)...);
        Machine& machine = holder->machine();
        held_ = std::move(holder);
        return machine;
    }

private:
    std::unique_ptr<StreamDecoder> held_;
};

/// The same on several threads, made by make_parallel: with larger chunks, more cores have work at once. Memory: about
/// 20 MB for two workers, for any size of chunk.
class HeldParallel : public Parallel {
public:
    using Ranges = follow::Ranges;
    using Options = ParallelOptions;

    /// The next bytes of the stream, borrowed for the call. When it returns, all elements that the single-threaded
    /// decoder would know were delivered, or `flush` will deliver them.
    void feed(Bytes bytes) override { held_->feed(bytes); }
    void reset(GapReason why) override { held_->reset(why); }
    void finish() override { held_->finish(); }
    void flush() override { held_->flush(); }
    [[nodiscard]] std::uint64_t packets() const override { return held_->packets(); }
    [[nodiscard]] std::array<Offset, 2> pending() const override { return held_->pending(); }
    [[nodiscard]] bool amid_packet() const override { return held_->amid_packet(); }
    [[nodiscard]] std::vector<std::uint64_t> counts() const override { return held_->counts(); }
    [[nodiscard]] std::uint64_t cycles() const override { return held_->cycles(); }
    [[nodiscard]] Ways ways() const override { return held_->ways(); }
    [[nodiscard]] std::uint64_t repeated() const override { return held_->repeated(); }

protected:
    explicit HeldParallel(std::unique_ptr<Parallel> held) : held_(std::move(held)) {}

private:
    const std::unique_ptr<Parallel> held_;
};

/// For find_cut of a ParallelProtocol: the first cut that `cut_after(i)` returns, where i is the end of a
/// synchronisation packet (`zeros` zeros and 0x80) that begins in [from, end). `cut_after` returns an optional.
template <std::size_t zeros, class CutAfter>
[[nodiscard]] auto first_cut(Bytes bytes, std::size_t from, std::size_t end, CutAfter&& cut_after) {
    static constexpr auto sync = [] {
        std::array<std::uint8_t, zeros + 1> pattern{};
        pattern.back() = 0x80;
        return pattern;
    }();
    static const std::boyer_moore_horspool_searcher searcher(sync.begin(), sync.end());
    const auto place = [&](std::size_t i) {
        return bytes.begin() + static_cast<std::ptrdiff_t>(std::min(i, bytes.size()));
    };
    decltype(cut_after(from)) cut;
    for (auto at = place(from); !cut && (at = std::search(at, place(end), searcher)) != place(end);) {
        at += sync.size();
        cut = cut_after(static_cast<std::size_t>(at - bytes.begin()));
    }
    return cut;
}

}  // namespace waymark::follow
