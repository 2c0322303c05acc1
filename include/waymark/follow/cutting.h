/// A decoder of one stream that can also begin inside the stream, at a place where it can be cut (parallel.h). With an
/// index of such places, a part of a long trace is decoded without everything before it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "waymark/core/gap.h"
#include "waymark/core/types.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/parallel.h"

namespace waymark::follow {

/// State that affects bytes after a cut, and that the cut itself does not contain.
struct CutMemory {
    std::optional<std::uint32_t> context_id{}, vmid{};
    std::uint64_t timestamp{};  ///< the last one, as transmitted
    bool timestamp_known{};     ///< all its bits are
    std::uint64_t latest{};     ///< the last timestamp that was compared with the one before it
    friend bool operator==(const CutMemory&, const CutMemory&) = default;
};

/// A decoder on one thread that can also begin at a cut, at which a synchronisation point gives nearly all of the
/// state.
class Cutting : public StreamDecoder {
public:
    /// Looks for the first cut whose synchronisation point begins in [from, end) of `bytes`: the index of the first
    /// byte after the cut, or nullopt. The next two calls concern the cut that was found last.
    [[nodiscard]] virtual std::optional<std::size_t> find(Bytes bytes, std::size_t from, std::size_t end) = 0;
    /// Call it when all bytes before the cut were fed, and none after it. Returns the state to be remembered, so that a
    /// decoder that begins there delivers the same elements as this one. nullopt: it would deliver other elements.
    [[nodiscard]] virtual std::optional<CutMemory> memory() const = 0;
    /// The context at the cut.
    [[nodiscard]] virtual flow::Context context(const CutMemory& memory) const = 0;
    /// Begins at the cut, which is `at` bytes into the stream.
    virtual void begin(Offset at, const CutMemory& memory) = 0;
};

/// A protocol's Configuration also derives from this class if streams of its units can be cut.
class Cuttable {
public:
    virtual ~Cuttable() = default;
    /// A decoder that can begin at cuts. Everything is borrowed and must outlive it. Null if this unit's streams have
    /// no cuts.
    [[nodiscard]] virtual std::unique_ptr<Cutting> cutting(const isa::CodeReader& code,
                                                           flow::BatchWriter& out) const = 0;
};

/// Its decoder (`Decoder<Out>`) has these functions in addition to the requirements of ParallelProtocol:
///
///     memory(snapshot)            the CutMemory of a decoder in that state
///     remember(snapshot, memory)  puts it into a state, except for the part in `carried`
///     carried(memory)             the same as carried(snapshot)
template <ParallelProtocol Protocol>
class CuttingDecoder final : public StreamDecoderOf<typename Protocol::template Decoder<flow::BatchWriter>, Cutting> {
    using Config = typename Protocol::Config;
    using Decoder = typename Protocol::template Decoder<flow::BatchWriter>;
    using Base = StreamDecoderOf<Decoder, Cutting>;
    using Base::machine_;

public:
    CuttingDecoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
        : Base(config, code, out, nullptr), config_(config) {}

    [[nodiscard]] std::optional<std::size_t> find(Bytes bytes, std::size_t from, std::size_t end) override {
        cut_ = Protocol::find_cut(bytes, from, end, config_);
        return cut_ ? std::optional(cut_->at) : std::nullopt;
    }
    [[nodiscard]] std::optional<CutMemory> memory() const override {
        if (!cut_) return {};
        const auto snapshot = machine_.snapshot();
        auto state = cut_->state;
        state.carry(Decoder::carried(snapshot));
        if (!Decoder::continues(snapshot, machine_.offset(), state)) return {};
        return Decoder::memory(snapshot);
    }
    [[nodiscard]] flow::Context context(const CutMemory& memory) const override {
        auto state = cut_->state;
        state.carry(Decoder::carried(memory));
        return state.context();
    }
    void begin(Offset at, const CutMemory& memory) override {
        auto state = cut_->state;
        state.carry(Decoder::carried(memory));
        machine_.begin_at(at, state);
        auto snapshot = machine_.snapshot();
        Decoder::remember(snapshot, memory);
        machine_.resume(snapshot);
    }

private:
    const Config config_;
    std::optional<typename Protocol::Cut> cut_;
};

}  // namespace waymark::follow
