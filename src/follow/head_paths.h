/// The paths that a search for a head follows: how they begin, fork, merge and are forgotten. head_search.h applies
/// observations to them.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "head_past.h"
#include "head_program.h"
#include "positions.h"

namespace waymark::follow::head {

/// One possible path of execution.
struct Path {
    std::uint64_t current{};
    std::array<std::uint64_t, 2> explained{};  ///< a bit for each waypoint instruction with its outcome, by a hash
    std::uint32_t history = none;              ///< addresses against which later ones are compressed
    std::uint32_t stack = none;                ///< return stack
    std::uint32_t checks{};
    std::uint32_t believed = none;  ///< number of checks when an address first could have come from elsewhere
    std::uint32_t past = none;
    std::uint32_t cut = none;    ///< where the past ends; `none`: it continues
    std::uint32_t start = none;  ///< the packet from which on this path has a single past; `none`: not yet
    std::uint32_t start_history = none, start_stack = none;
    std::uint64_t start_current{};
    Isa isa = Isa::a32, start_isa = Isa::a32;
    Isa seed_isa = Isa::a32;  ///< instruction set in which the path was seeded
    bool lost{};              ///< execution is in unknown code, or at a place that no packet has named
    bool waits{};  ///< `current` is a taken indirect branch, whose target comes from the next packets or from the stack
    bool kept{};   ///< the start is stored in `past`
    bool emptied{};  ///< since the start, a decoder would have emptied its return stack although the unit may not have
    bool fresh{};    ///< at a waypoint instruction whose block may have been entered anywhere

    /// The path had to explain this outcome. An outcome that it has explained before, as in a loop, is not new
    /// evidence.
    void check(Address at, unsigned outcome) {
        const std::uint64_t hash = (at.value << 2 | outcome) * 0x9e37'79b9'7f4a'7c15U >> 57;
        std::uint64_t& bits = explained[hash >> 6];
        const std::uint64_t bit = std::uint64_t{1} << (hash & 63);
        if ((bits & bit) == 0) ++checks;
        bits |= bit;
    }
    void forget_checks() {
        checks = 0;
        believed = none;
        explained = {};
    }
    /// No earlier packet is known to belong to it.
    void forget_start() {
        start = none;
        kept = emptied = false;
    }
    [[nodiscard]] Place place() const { return {{current}, isa}; }
};

/// The probability that a wrong path is mistaken for the right one.
class Odds {
public:
    explicit Odds(double unseen) : unseen_(unseen) {}

    /// Probability that a place passes `checks` checks although execution is elsewhere.
    [[nodiscard]] double by_chance(std::uint32_t checks, double p = 1) const {
        return unseen_ * std::min(1.0, places * std::pow(chance(), static_cast<double>(checks)) * p);
    }
    [[nodiscard]] double sure_of(const Path& path, double p) const {
        return 1.0 / (1.0 + by_chance(path.checks, p) + (path.believed == none ? 0.0 : by_chance(path.believed)));
    }
    /// The lead in checks that a path needs to be accepted: it would have such a lead by chance once in a million.
    [[nodiscard]] std::uint32_t margin() const {
        return static_cast<std::uint32_t>(std::log(1e-6 / std::max(places, 1.0)) / std::log(chance()));
    }
    /// The measured share of checks that wrong places pass.
    [[nodiscard]] double chance() const {
        return tested_ < 64 ? 0.5 : std::clamp(static_cast<double>(passed_) / static_cast<double>(tested_), 0.02, 0.9);
    }
    /// Takes the number of paths that one observation tested, and the number that passed. Small numbers are ignored.
    void measure(std::size_t tested, std::size_t passed) {
        if (tested < 16) return;
        add({tested, passed});
    }
    /// The sums of the numbers given to measure().
    struct Measured {
        std::uint64_t tested = 0, passed = 0;
    };
    [[nodiscard]] Measured measured() const { return {tested_, passed_}; }
    void add(Measured more) {
        tested_ += more.tested;
        passed_ += more.passed;
    }

    double places = 1;  ///< number of places distinguished since the last seeding

private:
    const double unseen_;  ///< how much more likely execution is in unknown code than in known code
    std::uint64_t tested_ = 0, passed_ = 0;
};

class Paths {
public:
    Paths(const HeadRules& rules, Program& program, double unseen)
        : odds(unseen), histories(rules.history), program_(program) {}

    // ---- beginnings

    /// Execution may be anywhere. `shared` is the knowledge before packet `k`.
    void seed(std::uint32_t k, const Shared& shared);
    /// A path for which nothing more is known than before the seeding.
    [[nodiscard]] Path beginning() const {
        Path path;
        path.past = before.past;
        path.cut = before.cut;
        return path;
    }
    /// A packet ends. Paths that have a single past from here on begin here.
    void settle(std::uint32_t boundary);

    // ---- ways on

    /// Receives the continuations of a path.
    class Keep {
    public:
        void operator()(const Path& to) {
            kept = true;
            explained |= to.checks != checks_;
            paths_.put(next_, many_, to);
        }
        bool kept = false, explained = false;

    private:
        friend class Paths;
        Keep(Paths& paths, std::vector<Path>& next, bool& many, std::uint32_t checks)
            : paths_(paths), next_(next), many_(many), checks_(checks) {}
        Paths& paths_;
        std::vector<Path>& next_;
        bool& many_;
        const std::uint32_t checks_;  // number of checks the path had passed
    };
    /// `each(path, keep)` calls `keep` for every continuation of the path.
    template <class Each>
    void go_on(Each&& each);
    /// For `each` of go_on: the path returns, but the entry on its return stack is not known, so it continues at any
    /// place after a call.
    void to_any_call(const Path& path, const std::optional<Place>& back);
    /// Keeps only the common part of all paths.
    void forget() {
        forgotten = shared_past();
        all.clear();
    }
    /// Stores the common part of the branches of a path. Call it before the path forks.
    void keep_start(Path& path) {
        if (path.start == none || path.kept) return;
        path.past = pasts.add(start_of(path), path.past);
        path.kept = true;
        path.cut = none;
    }
    void remember(Path& path, PathStep::Kind kind, const Place& place) {
        path.past = pasts.add({.kind = kind, .packet = packet, .cut = packet, .place = place}, path.past);
    }

    // ---- the known past

    [[nodiscard]] static PathStep start_of(const Path& path) {
        return {.kind = PathStep::Kind::start,
                .packet = path.start,
                .cut = path.cut,
                .stack = path.start_stack,
                .history = path.start_history,
                .place = {{path.start_current}, path.start_isa}};
    }
    [[nodiscard]] Shared shared_past();
    [[nodiscard]] bool alive() const { return everywhere || !all.empty(); }
    /// Whether a limit ends the search.
    [[nodiscard]] bool exhausted() const {
        const std::size_t most = program_.limits().places * 4;
        return program_.exhausted() || pasts.size() > most || stacks.size() > most || histories.size() > most;
    }

    std::vector<Path> all;
    bool everywhere = true;  ///< no path is followed: execution may be anywhere
    std::uint32_t seeded_at = 0, packet = 0;
    std::optional<bool> a64;          ///< whether execution is in A64 state, if packets have shown it
    Shared before;                    ///< the knowledge before the seeding
    std::optional<Shared> forgotten;  ///< the shared past of paths that were too many
    Odds odds;
    Histories histories;
    Stacks stacks;
    Pasts pasts;

private:
    /// The properties that distinguish paths: paths that agree in them are merged.
    struct State {
        std::uint64_t current;
        std::uint32_t history, flags;
        friend bool operator==(const State&, const State&) = default;
    };
    struct StateHash {
        std::size_t operator()(const State& s) const {
            std::uint64_t h = (s.current ^ std::uint64_t{s.history} << 32) * 0x9e37'79b9'7f4a'7c15U;
            h ^= s.flags * 0xc2b2'ae3d'27d4'eb4fU;
            return static_cast<std::size_t>(h ^ h >> 29);
        }
    };
    [[nodiscard]] static State state_of(const Path& p) {
        const auto isa = static_cast<std::uint32_t>(p.lost ? (p.isa == Isa::a64 ? Isa::a64 : Isa::a32) : p.isa);
        return {p.lost ? 0 : p.current, p.history,
                isa | (p.lost ? 0x40U : 0U) | (p.waits ? 0x80U : 0U) | (p.fresh ? 0x100U : 0U)};
    }

    [[nodiscard]] Shared common(const Path& a, const Path& b) {
        return pasts.common({a.past, a.cut}, {b.past, b.cut}, packet, [this] {
            ++program_.steps;
            return exhausted();
        });
    }
    void join(Path& path, const Path& other);
    void put(std::vector<Path>& next, bool& many, const Path& to);
    void to_all_calls(Path path, const Place& back, std::vector<Path>& next, bool& many);
    [[nodiscard]] bool too_many(const std::vector<Path>& next) const { return next.size() > program_.limits().places; }

    static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
    /// A few paths are compared one by one, which takes less time than the table.
    static constexpr std::size_t few = 8;
    /// Limit for the number of places that are followed while returning paths may continue anywhere.
    static constexpr std::size_t most_that_return = std::size_t{1} << 16;

    Program& program_;
    Positions<State, StateHash> seen_;
    std::vector<Path> spare_;  // memory for the next paths
    // Paths that take an unknown entry from the return stack, by their differences: the last address, the place that
    // they push, the other addresses, and whether they are in A64 state.
    using Returning = std::tuple<bool, std::uint64_t, Isa, std::uint64_t, Isa, std::uint32_t, bool>;
    std::map<Returning, Path> returning_;
    bool returned_ = false;  // the present path is one of them
};

template <class Each>
void Paths::go_on(Each&& each) {
    std::vector<Path> next = std::move(spare_);
    next.clear();
    returning_.clear();
    bool many = all.size() > few;
    if (many) seen_.clear();
    std::size_t tested = 0, passed = 0;
    for (Path& path : all) {
        ++program_.steps;
        if (exhausted() || too_many(next)) break;
        Keep keep(*this, next, many, path.checks);
        returned_ = false;
        each(path, keep);
        keep.kept |= returned_;
        tested += !keep.kept || keep.explained ? 1 : 0;
        passed += keep.kept && keep.explained ? 1 : 0;
    }
    if (!returning_.empty() &&
        (program_.waypoints().empty() || returning_.size() * program_.after_calls().size() > most_that_return))
        return forget();
    for (auto& [key, path] : returning_) to_all_calls(path, {{std::get<3>(key)}, std::get<4>(key)}, next, many);
    if (too_many(next)) return forget();
    odds.measure(tested, passed);
    spare_ = std::exchange(all, std::move(next));
}

}  // namespace waymark::follow::head
