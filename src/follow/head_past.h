/// The past of paths in a search for a head. Paths that fork share it: everything is stored once, and paths have
/// indices into the store.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "waymark/follow/place.h"
#include "waymark/follow/recover.h"

namespace waymark::follow::head {

inline constexpr std::uint32_t none = 0xffffffff;
/// A return stack without entries. `none`: the return stack is not known.
inline constexpr std::uint32_t empty_stack = 0xfffffffe;

// ---- address histories

/// The most recent addresses, the newest first.
class Histories {
public:
    enum class Kind : std::uint8_t {
        unknown,
        known,
        within  ///< in the straight run of instructions that ends with the waypoint instruction at this address
    };
    struct Entry {
        Address address{};
        Isa isa = Isa::a32;
        Kind kind = Kind::unknown;
        friend bool operator==(const Entry&, const Entry&) = default;
    };
    using History = std::array<Entry, 3>;

    /// `depth`: number of remembered addresses, 1 to 3.
    explicit Histories(unsigned depth) : depth_(depth) {}

    /// The history with this index; `none` is a history without known addresses.
    [[nodiscard]] History at(std::uint32_t history) const { return history == none ? History{} : histories_[history]; }
    [[nodiscard]] Entry last(std::uint32_t history) const {
        return history == none ? Entry{} : histories_[history].front();
    }
    [[nodiscard]] bool last_known(std::uint32_t history) const { return last(history).kind == Kind::known; }
    /// The history with another address.
    [[nodiscard]] std::uint32_t push(std::uint32_t history, const Entry& entry);
    /// The history with entry `i` replaced.
    [[nodiscard]] std::uint32_t replace(std::uint32_t history, unsigned i, const Entry& entry);
    [[nodiscard]] std::size_t size() const { return histories_.size(); }

private:
    [[nodiscard]] std::uint32_t intern(const History& history);
    struct Hash {
        std::size_t operator()(const History& h) const;
    };
    const unsigned depth_;
    std::vector<History> histories_;
    std::unordered_map<History, std::uint32_t, Hash> index_;
};

// ---- return stacks

class Stacks {
public:
    struct Entry {
        Place place;
        std::uint32_t below;
        friend bool operator==(const Entry&, const Entry&) = default;
    };
    [[nodiscard]] std::uint32_t push(Place place, std::uint32_t below);
    [[nodiscard]] const Entry& top(std::uint32_t stack) const { return entries_[stack]; }
    [[nodiscard]] static bool has_top(std::uint32_t stack) { return stack < empty_stack; }
    /// The number of topmost entries that both stacks share; the entries below are unknown.
    [[nodiscard]] std::uint32_t common(std::uint32_t a, std::uint32_t b);
    /// The entries, from the top down.
    [[nodiscard]] std::vector<Place> entries(std::uint32_t stack) const;
    [[nodiscard]] std::size_t size() const { return entries_.size(); }

private:
    struct Hash {
        std::size_t operator()(const Entry& e) const {
            std::uint64_t h = (e.place.address.value ^ std::uint64_t{e.below} << 32) * 0x9e37'79b9'7f4a'7c15U;
            h ^= static_cast<unsigned>(e.place.isa) * 0xc2b2'ae3d'27d4'eb4fU;
            return static_cast<std::size_t>(h ^ h >> 29);
        }
    };
    std::vector<Entry> entries_;
    std::unordered_map<Entry, std::uint32_t, Hash> index_;
};

// ---- the known part of a path

/// A step in the known past of paths.
struct PathStep {
    enum class Kind : std::uint8_t {
        start,   ///< execution is known from `packet` on, and began at `place`; the earlier known part ended at `cut`
        taken,   ///< an entry from before the start was taken from the return stack
        against  ///< packets since the start are compressed against this address
    };
    Kind kind{};
    std::uint32_t before = none, depth = 0;
    std::uint32_t packet{};
    std::uint32_t cut = none;  ///< for the earlier known part: the first packet that does not belong to it
    std::uint32_t stack = none, history = none;
    Place place{};
};

/// A known past, and the packet at which it ends; `none`: it continues.
struct Shared {
    std::uint32_t past = none, cut = none;
};

class Pasts {
public:
    [[nodiscard]] std::uint32_t add(PathStep step, std::uint32_t before) {
        step.before = before;
        step.depth = before == none ? 0 : steps_[before].depth + 1;
        steps_.push_back(step);
        return static_cast<std::uint32_t>(steps_.size() - 1);
    }
    /// The part that two pasts share. `count()` is called for each step examined, and may end the search by returning
    /// true. The pasts differ at `packet` at the latest.
    template <class Count>
    [[nodiscard]] Shared common(Shared a, Shared b, std::uint32_t packet, Count&& count) const {
        Shared out;
        while (a.past != b.past) {
            if (count()) return out;
            const bool from_a = b.past == none || (a.past != none && steps_[a.past].depth >= steps_[b.past].depth);
            Shared& from = from_a ? a : b;
            from.cut = steps_[from.past].cut;
            from.past = steps_[from.past].before;
        }
        out.past = a.past;
        out.cut = std::min({a.cut, b.cut, packet});
        return out;
    }
    [[nodiscard]] const PathStep& at(std::uint32_t past) const { return steps_[past]; }
    [[nodiscard]] std::size_t size() const { return steps_.size(); }

private:
    std::vector<PathStep> steps_;
};

}  // namespace waymark::follow::head
