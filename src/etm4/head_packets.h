/// Converts packets of the head of a stream to observations for the search (follow/observation.h). Cancelled elements
/// are omitted: cancels count from the newest P0 element, so the number of elements that waited when the head began is
/// not needed.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "elements.h"
#include "waymark/follow/observation.h"

namespace waymark::etm4 {

/// The address in a packet; nullopt for packets without an address.
template <class P>
[[nodiscard]] std::optional<follow::SentPlace> sent_in(const P& p) {
    const auto repeated = [](std::uint8_t entry) { return follow::SentPlace{.repeats = entry}; };
    if constexpr (std::is_same_v<P, Q>) {
        if (p.has_entry()) return repeated(p.type);
        if (!p.has_short_address() && !p.has_long_address()) return {};
    }
    if constexpr (requires { p.entry; }) {
        return repeated(p.entry);
    } else if constexpr (requires { p.address; }) {
        const SentAddress& a = p.address;
        const unsigned shift = a.is1 ? 1 : 2;
        return follow::SentPlace{.bits = a.value >> shift,
                                 .width = static_cast<std::uint8_t>(address_bits(a.bytes, a.is1) - shift),
                                 .whole = a.bytes == 8,
                                 .halfword = a.is1};
    } else {
        return {};
    }
}

/// The maximum number of P0 elements that waited for their commit at each place of a head (section 8), computed
/// backwards from the depth at its end.
class SpeculationDepth {
public:
    explicit SpeculationDepth(std::uint64_t most) : most_(most) {}
    void packet(Offset at, std::uint64_t added, std::uint64_t commit, std::uint64_t cancel) {
        packets_.push_back({at, added, commit, cancel});
    }
    void clear() { packets_.clear(); }
    /// Solves for a depth between `least` and `most` at the end. Returns false if no depth at the beginning leads
    /// there.
    [[nodiscard]] bool solve(std::uint64_t least, std::uint64_t most);
    /// The maximum before the packet at `at`. Precondition: solve() was true.
    [[nodiscard]] std::uint64_t before(Offset at) const;

private:
    struct One {
        Offset at;
        std::uint64_t added, commit, cancel;
        std::uint64_t depth = 0;
    };
    const std::uint64_t most_;
    std::vector<One> packets_;
};

/// Takes the packets of a head in order.
class HeadPackets {
public:
    explicit HeadPackets(const Config& config) : config_(config), assembler_(config_), depth_(config.max_speculation) {
        clear();
    }

    template <class P>
    void operator()(const P& p, Offset at) {
        if (lost_) return;
        if constexpr (std::is_same_v<P, Discard> || std::is_same_v<P, Overflow>) {
            lost_ = at;
        } else {
            const std::uint64_t before = queue_.waiting.depth();
            owner_ = 0;
            if (const auto sent = sent_in(p)) name(*sent, at);
            if constexpr (std::is_same_v<P, Exception>)
                if (p.address_unknown(config_)) name({.bits = 0, .width = 62, .whole = true}, at), owner_ = 0;
            queue_.owner = owner_;
            const Request request = assembler_(p, at, queue_);
            if (request.impossible) return clear();
            depth_.packet(at, queue_.waiting.depth() - before, request.commit, request.cancel);
            (void)queue_.waiting.cancel(request.cancel);
            if (request.mispredict) (void)queue_.waiting.mispredict();
        }
    }

    /// The observations of all packets; the caller adds the sync. Call it once.
    [[nodiscard]] std::vector<follow::Observation> observations();
    /// Offset of a loss of trace: later packets do not belong to the head. nullopt if there was no loss.
    [[nodiscard]] std::optional<Offset> lost() const { return lost_; }
    [[nodiscard]] SpeculationDepth& depth() { return depth_; }

private:
    /// A named address, and the number that refers to it.
    struct Name {
        follow::SentPlace sent;
    };
    struct Item {
        std::uint32_t owner{};  ///< the number of an address, from 1
        std::variant<Name, Element> what;
    };
    using Waiting = follow::Waiting<Item>;
    /// The queue to which Assembler adds elements.
    struct Queue {
        Waiting waiting;
        std::uint32_t owner = 0;
        void add(Offset at, const follow::Outcomes& outcomes) { waiting.add(at, outcomes); }
        void add(Offset at, ElementKind kind, Element element) {
            waiting.add(at, kind, Item{owner, std::move(element)});
        }
    };
    struct Entry {
        Offset at;
        std::variant<follow::Outcomes, Item> what;
    };

    void name(const follow::SentPlace& sent, Offset at) {
        sent_.push_back(sent);
        owner_ = static_cast<std::uint32_t>(sent_.size());
        queue_.waiting.add(at, ElementKind::kept, Item{owner_, Name{sent}});
    }
    /// A packet is impossible at its place, so the packets before it do not belong to the trace.
    void clear() {
        queue_.waiting = {};
        // As many as the head's packets can cancel, and as many as a loss can.
        for (int i = 0; i < 2; ++i) queue_.waiting.add_unseen({}, std::numeric_limits<std::uint32_t>::max());
        assembler_.forget();
        sent_.clear();
        depth_.clear();
    }
    [[nodiscard]] std::vector<Entry> committed();
    /// Whether execution is AArch64 from entry `i` on, if a context states so before anything runs.
    [[nodiscard]] static std::optional<bool> width_from(const std::vector<Entry>& entries, std::size_t i);

    const Config config_;
    Assembler assembler_;
    Queue queue_;
    std::vector<follow::SentPlace> sent_;
    std::uint32_t owner_ = 0;
    SpeculationDepth depth_;
    std::optional<Offset> lost_;
};

}  // namespace waymark::etm4
