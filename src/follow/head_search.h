/// The search for a head: applies each observation to the paths.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "head_paths.h"

namespace waymark::follow::head {

class Search {
    using Keep = Paths::Keep;

public:
    /// `unseen`: how much more likely execution is in unknown code than in known code. All arguments are borrowed.
    Search(const HeadRules& rules, Program& program, double unseen)
        : rules_(rules), program_(program), paths_(rules, program, unseen) {}

    /// Takes all observations up to the sync, which is the last.
    void run(std::span<const Observation> observations);

    [[nodiscard]] bool exhausted() const { return paths_.exhausted(); }
    /// The chosen path, if there is one; it may end in a cut.
    [[nodiscard]] const std::optional<Path>& chosen() const { return chosen_; }
    [[nodiscard]] std::uint64_t left() const { return left_; }
    [[nodiscard]] bool confirmed() const { return confirmed_; }
    [[nodiscard]] double confidence() const { return confidence_; }
    [[nodiscard]] std::uint64_t places() const { return places_shown_; }
    [[nodiscard]] std::uint64_t checks() const { return checks_shown_; }
    [[nodiscard]] double chance() const { return paths_.odds.chance(); }
    [[nodiscard]] const Obstacles& obstacles() const { return obstacles_; }

    /// Observations [first, end), and the state of execution before the first of them.
    struct Known {
        std::uint32_t first, end;
        Standing standing;
    };
    [[nodiscard]] std::vector<Known> known(const Path& path, std::uint32_t end) const;

private:
    /// The state in which a search without any path begins.
    struct Outset {
        std::uint32_t first = 0;  ///< observation
        std::optional<bool> a64{};
        Odds::Measured measured{};
        Obstacles obstacles{};
    };
    /// Observations that, from such a state on, led to too many paths without a common part. A loop whose calls through
    /// a pointer repeat an address can give the same observations hundreds of times. The search then assumes the same
    /// result, and begins after them. This is not certain: the lead that a path needs (Odds::margin) depends on the
    /// checks counted so far, so a second search could drop other paths. Skipped flow is reported as not known, so no
    /// wrong conclusion is drawn.
    struct Barren {
        std::span<const Observation> run;
        std::optional<bool> a64{};
        Odds::Measured measured{};
        Obstacles met{};
    };
    /// The barren observations with which `next` begins; null if there are none. Each comparison counts as a step.
    [[nodiscard]] const Barren* find_barren(std::span<const Observation> next, std::optional<bool> a64);
    void note_barren(const Outset& outset, std::span<const Observation> run);
    void step(const Observation& observation, std::uint32_t k);

    // ---- observations

    void take(const seen::Outcomes& o);
    void take(const seen::Branch& o);
    void take(const seen::Jump& o);
    void take(const seen::Arrival& o);
    void take(const seen::Named& o);
    void take(const seen::Reached& o);
    void take(const seen::Interrupted& o);
    void take(const seen::Source& o);
    void take(const seen::Sync& o);
    void take(const seen::Restart& o);
    void take(const seen::Width& o);
    void take(const seen::Untraced& o);
    void take(const seen::Departed& o);
    void take(const seen::Nothing&) {}

    void outcome(const Path& path, bool taken, Keep& keep);
    void branch(const Path& path, const SentPlace& sent, Keep& keep);
    void jump(const Path& path, const SentPlace& sent, bool lost_there, const std::optional<Place>& only, Keep& keep);
    void reach(Path to, const std::optional<Place>& place, const SentPlace& sent, Keep& keep);
    void arrive_on(const Path& path, const SentPlace& sent, Keep& keep);
    void interrupt(const Path& path, const SentPlace& sent, Keep& keep);
    void source(const Path& path, const SentPlace& sent, Keep& keep);

    /// The paths begin at every possible place of this address. Returns false if there are too many.
    bool begin_at(const SentPlace& sent);
    /// Tracing begins again, at the place `at`, or at the place of a later Arrival.
    void restart(const std::optional<Place>& at);
    /// No address followed a taken indirect branch: execution continues at the address on the return stack.
    void leave_to_stack();

    // ---- one path

    void take_return(Path to, const std::optional<Place>& back, Keep& keep);
    /// Execution leaves known code.
    void leave(Path to, Keep& keep);
    static void lose(Path& path) {
        path.lost = path.emptied = true;
        path.waits = false;
        path.stack = none;
    }
    /// Execution continues at a place that no packet has given yet.
    static void depart(Path& path);
    /// The known path up to this packet does not continue after it.
    void cut(Path& path);
    /// Execution is at `place`, which a packet gave.
    void arrive_at(Path& path, const Place& place);
    /// Makes the place the base of the next address.
    void name(Path& path, const Place& place);
    /// A packet gave an address that cannot be completed.
    void name_unknown(Path& path, const SentPlace& sent);
    /// Execution may have come to this address from unknown code, so the path may be wrong up to here.
    void doubt(Path& path);

    // ---- addresses

    /// Whether the bits that are not sent are known, from the address that this one repeats or against which it is
    /// compressed.
    [[nodiscard]] bool base_known(const Path& path, const SentPlace& sent) const;
    /// Precondition: whole, or base_known().
    [[nodiscard]] Place complete(const Path& path, const SentPlace& sent) const;
    [[nodiscard]] bool is_known(const Path& path, const SentPlace& sent) const {
        return sent.whole || base_known(path, sent);
    }
    /// Whether `place` has the bits that were sent.
    [[nodiscard]] static bool agrees(const SentPlace& sent, const Place& place);
    /// Calls `go(place)` for every place that the address may mean on this path.
    template <class Go>
    void complete_for(const Path& path, const SentPlace& sent, Go&& go) {
        if (is_known(path, sent)) return go(complete(path, sent));
        program_.for_each_place(sent, go);
    }
    /// Whether all paths would have to continue at every place; then only their common part is kept.
    [[nodiscard]] bool means_anything(const SentPlace& sent) const;

    // ---- the end

    /// The only path, or the path with far more evidence than any other, or the common part of all paths.
    [[nodiscard]] std::optional<Path> choose();
    void note(const Path& path);
    /// The synchronisation point after the head.
    void arrive(const seen::Sync& o, std::uint32_t last);

    /// An I-sync is recognised by eleven bits: its header, its reserved bits and bit 0 of its information byte.
    static constexpr double fixed_bits_of_sync = 1.0 / 2048;
    static constexpr double doubtful = 2e-2;
    static constexpr std::uint64_t longest_bytes = std::uint64_t{64} * 1024;  ///< limit of a walk to an address

    const HeadRules& rules_;
    Program& program_;
    Paths paths_;
    Obstacles obstacles_{};
    std::vector<Barren> barren_;
    std::optional<Path> chosen_;
    std::uint64_t left_ = 0, places_shown_ = 0, checks_shown_ = 0;
    bool confirmed_ = false;
    double confidence_ = 1;
};

}  // namespace waymark::follow::head
