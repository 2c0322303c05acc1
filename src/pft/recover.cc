#include "waymark/pft/recover.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "elements.h"
#include "waymark/follow/walk.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/pft/packet.h"
#include "waymark/pft/parser.h"

namespace waymark::pft {

namespace {

using follow::Walk;
using follow::WalkEnd;
using isa::Instruction;
using isa::Waypoint;

constexpr std::uint32_t none = 0xffffffff;

/// A packet of the head, and where it stood.
struct HeadPacket {
    Packet packet;
    Extent at;
};

/// What is on the return stack, where no entry is.
constexpr std::uint32_t empty_stack = 0xfffffffe;  ///< nothing; `none`: nothing is known

/// A step in what is known of the past of paths. Those that fork keep what they share.
struct Past {
    enum class Kind : std::uint8_t {
        start,   ///< from `packet` on execution is known, and began at `place`; what was known before ended at `cut`
        taken,   ///< an entry from before the start was taken from the return stack
        against  ///< the packets since the start are compressed against this
    };
    Kind kind{};
    bool last_known{};
    std::uint32_t before = none, depth = 0;
    std::uint32_t packet{};
    std::uint32_t cut = none;  ///< of what was known before it: the packet that no longer belongs to it
    std::uint32_t stack = none;
    Place place{}, last{};
};

/// One way in which execution may have gone.
struct Path {
    std::uint32_t current{}, last{};
    std::uint32_t stack = none;  ///< return stack: an index into entries
    std::uint32_t checks{};
    std::uint32_t believed = none;             ///< checks when an address first could have come from elsewhere
    std::array<std::uint64_t, 2> explained{};  ///< a bit for each waypoint instruction with its outcome, by a hash
    std::uint32_t past = none;                 ///< an index into pasts
    std::uint32_t cut = none;                  ///< where the knowledge of `past` ends; `none`: it goes on
    std::uint32_t start = none;  ///< the packet from which on this path has one past only; `none`: not yet
    std::uint32_t start_current{}, start_last{}, start_stack = none;
    Isa isa = Isa::a32, last_isa = Isa::a32, start_isa = Isa::a32, start_last_isa = Isa::a32;
    bool lost{};        ///< execution is where no code is known
    bool last_known{};  ///< else the next address decides what it was compressed against
    bool start_last_known{};
    bool kept{};     ///< the start is in `past`
    bool emptied{};  ///< since the start, a decoder has emptied its return stack where the unit may not have
    bool fresh{};    ///< a waypoint instruction, whose block may have been entered anywhere

    /// The path had to explain this. What it has explained before, as in a loop, adds nothing.
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

    [[nodiscard]] Place place() const { return {{current}, isa}; }
    [[nodiscard]] Place base() const { return {{last}, last_isa}; }
};

struct State {
    std::uint32_t current, last;
    std::uint16_t flags;
    friend bool operator==(const State&, const State&) = default;
};
struct StateHash {
    std::size_t operator()(const State& s) const {
        std::uint64_t h = (std::uint64_t{s.current} << 32 | s.last) * 0x9e37'79b9'7f4a'7c15U;
        h ^= s.flags * 0xc2b2'ae3d'27d4'eb4fU;
        return static_cast<std::size_t>(h ^ h >> 29);
    }
};
State state_of(const Path& p) {
    return {p.lost ? 0 : p.current, p.last_known ? p.last : 0,
            static_cast<std::uint16_t>((p.lost ? 0 : static_cast<unsigned>(p.isa)) |
                                       (p.last_known ? static_cast<unsigned>(p.last_isa) << 3 : 0U) |
                                       (p.lost ? 0x40U : 0U) | (p.last_known ? 0x80U : 0U) | (p.fresh ? 0x100U : 0U))};
}

/// The program: its waypoint instructions, and what lies between them. Shared by all searches of a head.
class Program {
public:
    Program(const Config& config, const isa::CodeReader& code, std::span<const CodeExtent> extents, isa::Space space,
            const RecoverLimits& limits)
        : code_(code), extents_(extents), space_(space), limits_(limits) {
        options_.dmb_dsb_waypoints = config.barrier_waypoints;
    }

    /// Every waypoint instruction there may be; none if there are too many.
    const std::vector<Place>& waypoints() {
        if (!std::exchange(known_, true)) find_waypoints();
        return waypoints_;
    }
    /// Places behind calls, of those.
    [[nodiscard]] const std::vector<Place>& behind_calls() const { return behind_calls_; }
    [[nodiscard]] std::span<const CodeExtent> extents() const { return extents_; }

    const Walk& walk(Place place) {
        const std::uint64_t key = place.address.value << 3 | static_cast<unsigned>(place.isa);
        const auto [found, is_new] = walks_.try_emplace(key);
        if (is_new) {
            found->second = follow::walk(code_, space_, place, {options_, longest_walk_bytes});
            steps += found->second.instructions + (found->second.end == WalkEnd::waypoint ? 0 : 1);
        }
        return found->second;
    }
    /// One instruction; nothing where no code is known.
    std::optional<Instruction> at(Place place) {
        ++steps;
        return isa::decode_at(code_, space_, place.address, place.isa, options_);
    }

    std::uint64_t steps = 0;  ///< of the limits
    [[nodiscard]] bool exhausted() const { return steps > limits_.steps; }
    [[nodiscard]] const RecoverLimits& limits() const { return limits_; }

private:
    void find_waypoints() {
        for (const CodeExtent& extent : extents_)
            for (const Isa isa : {Isa::a32, Isa::t32}) {
                const std::uint64_t size = isa == Isa::a32 ? 4 : 2;
                const std::uint64_t end = std::min(extent.first.value + extent.bytes, std::uint64_t{1} << 32);
                for (std::uint64_t at_ = (extent.first.value + size - 1) & ~(size - 1); at_ + size <= end;
                     at_ += size) {
                    if (waypoints_.size() > limits_.places || exhausted()) {
                        waypoints_.clear();
                        behind_calls_.clear();
                        return;
                    }
                    const auto i = at({{at_}, isa});
                    if (!i || i->waypoint == Waypoint::none || i->undefined) continue;
                    waypoints_.push_back({{at_}, isa});
                    if (i->link) behind_calls_.push_back({follow::advance({at_}, i->bytes, isa), isa});
                }
            }
    }

    static constexpr std::uint32_t longest_walk_bytes = 64 * 1024 + 1;

    const isa::CodeReader& code_;
    const std::span<const CodeExtent> extents_;
    const isa::Space space_;
    const RecoverLimits& limits_;
    isa::DecodeOptions options_;
    bool known_ = false;
    std::vector<Place> waypoints_, behind_calls_;
    std::unordered_map<std::uint64_t, Walk> walks_;
};

/// Follows places of the program through packets.
class Search {
public:
    /// `unseen`: how much likelier execution is where no code is known than where it is.
    Search(const Config& config, Program& program, double unseen)
        : config_(config), program_(program), unseen_(unseen) {}

    /// All packets up to the sync, which is the last.
    void run(std::span<const HeadPacket> packets) {
        seed(0, {});
        for (std::uint32_t k = 0; k + 1 < packets.size() && !exhausted(); ++k) {
            step(packets[k], k);
            if (forgotten_) {
                // Too many ways to follow: what they have in common stays, and the search begins anew.
                seed(k + 1, *std::exchange(forgotten_, {}));
                continue;
            }
            if (alive()) continue;
            // Nothing explains this packet after those before; perhaps it alone can be explained.
            if (seeded_at_ < k) {
                seed(k, {});
                step(packets[k], k);
                forgotten_.reset();
            }
            if (!alive()) seed(k + 1, {});
        }
        if (!exhausted())
            arrive(std::get<ISync>(packets.back().packet), static_cast<std::uint32_t>(packets.size() - 1));
    }

    [[nodiscard]] bool exhausted() const {
        const std::size_t most = program_.limits().places * 4;
        return program_.exhausted() || pasts_.size() > most || entries_.size() > most;
    }
    /// The path that counts, if there is one; it may end in a cut.
    [[nodiscard]] const std::optional<Path>& chosen() const { return chosen_; }
    [[nodiscard]] std::uint64_t left() const { return left_; }
    [[nodiscard]] bool confirmed() const { return confirmed_; }
    [[nodiscard]] double confidence() const { return confidence_; }
    [[nodiscard]] std::uint64_t places() const { return places_shown_; }
    [[nodiscard]] std::uint64_t checks() const { return checks_shown_; }
    [[nodiscard]] double chance() const {
        return tested_ < 64 ? 0.5 : std::clamp(static_cast<double>(passed_) / static_cast<double>(tested_), 0.02, 0.9);
    }

    /// Packets [first, end) and how execution stood before the first of them.
    struct Known {
        std::uint32_t first, end;
        Standing standing;
    };
    [[nodiscard]] std::vector<Known> known(const Path& path, std::uint32_t end) const {
        std::vector<Past> steps;
        if (path.start != none && !path.kept) steps.push_back(start_of(path));
        for (std::uint32_t i = path.past; i != none; i = pasts_[i].before) steps.push_back(pasts_[i]);
        std::vector<Known> out;
        std::vector<Place> taken, stack;
        const auto close = [&](std::uint32_t cut) {
            if (out.empty()) return;
            Known& last = out.back();
            last.end = cut;
            last.standing.returns.assign(taken.rbegin(), taken.rend());  // what was taken last lay deepest
            last.standing.returns.insert(last.standing.returns.end(), stack.rbegin(), stack.rend());
            if (last.end <= last.first) out.pop_back();
        };
        for (auto step = steps.rbegin(); step != steps.rend(); ++step) switch (step->kind) {
                case Past::Kind::start:
                    close(step->cut);
                    taken.clear();
                    stack.clear();
                    for (std::uint32_t i = step->stack; i < entries_.size(); i = entries_[i].below)
                        stack.push_back(entries_[i].place);
                    out.push_back({step->packet, none, {step->place, step->last_known ? step->last : step->place}});
                    break;
                case Past::Kind::taken: taken.push_back(step->place); break;
                case Past::Kind::against: out.back().standing.last = step->place; break;
            }
        close(path.start == none ? path.cut : end);
        return out;
    }

private:
    struct Entry {
        Place place;
        std::uint32_t below;
    };
    /// What paths have in common of their past, and the packet at which they part.
    struct Shared {
        std::uint32_t past = none, cut = none;
    };

    [[nodiscard]] bool alive() const { return everywhere_ || !paths_.empty(); }

    // ---- places to begin with

    /// Execution may stand anywhere.
    void seed(std::uint32_t k, Shared shared) {
        paths_.clear();
        seeded_at_ = k;
        everywhere_ = true;
        before_ = shared;
        const std::vector<Place>& waypoints = program_.waypoints();
        if (waypoints.empty()) return;  // too many: a packet with an address must narrow them down
        everywhere_ = false;
        for (const Place& place : waypoints) {
            Path path = beginning();
            path.current = static_cast<std::uint32_t>(place.address.value);
            path.isa = path.last_isa = place.isa;
            path.fresh = true;
            paths_.push_back(path);
        }
        places_ = static_cast<double>(paths_.size());
        program_.steps += paths_.size();
    }
    [[nodiscard]] Path beginning() const {
        Path path;
        path.past = before_.past;
        path.cut = before_.cut;
        return path;
    }

    // ---- the past

    static Past start_of(const Path& path) {
        return {.kind = Past::Kind::start,
                .last_known = path.start_last_known,
                .packet = path.start,
                .cut = path.cut,
                .stack = path.start_stack,
                .place = {{path.start_current}, path.start_isa},
                .last = {{path.start_last}, path.start_last_isa}};
    }
    std::uint32_t add(Past past, std::uint32_t before) {
        past.before = before;
        past.depth = before == none ? 0 : pasts_[before].depth + 1;
        pasts_.push_back(past);
        return static_cast<std::uint32_t>(pasts_.size() - 1);
    }
    /// Before a path forks: what its branches share.
    void keep_start(Path& path) {
        if (path.start == none || path.kept) return;
        path.past = add(start_of(path), path.past);
        path.kept = true;
        path.cut = none;
    }
    void remember(Path& path, Past::Kind kind, const Place& place, std::uint32_t k) {
        path.past = add({.kind = kind, .packet = k, .cut = k, .place = place}, path.past);
    }
    [[nodiscard]] Shared shared(const Path& a, const Path& b) {
        Shared out;
        std::uint32_t x = a.past, y = b.past;
        std::uint32_t cut_x = a.cut, cut_y = b.cut;
        while (x != y) {
            ++program_.steps;
            if (exhausted()) return out;  // which ends the search
            const bool from_x = y == none || (x != none && pasts_[x].depth >= pasts_[y].depth);
            std::uint32_t& from = from_x ? x : y;
            (from_x ? cut_x : cut_y) = pasts_[from].cut;
            from = pasts_[from].before;
        }
        out.past = x;
        out.cut = std::min({cut_x, cut_y, packet_});
        return out;
    }
    /// A path with the past of both. What was always known to stand in the program speaks louder than what was out of
    /// sight.
    void join(Path& path, const Path& other) {
        if (path.checks > other.checks + margin()) return;
        if (other.checks > path.checks + margin()) {
            path = other;
            return;
        }
        path.checks = std::max(path.checks, other.checks);
        path.emptied |= other.emptied;
        path.stack = common_stack(path.stack, other.stack);
        if (path.past == other.past && path.cut == other.cut && path.start == other.start && path.kept == other.kept &&
            path.start_current == other.start_current && path.start_isa == other.start_isa &&
            path.start_last_known == other.start_last_known && path.start_last == other.start_last)
            return;
        const Shared both = shared(path, other);
        path.past = both.past;
        path.cut = both.cut;
        path.start = none;
        path.kept = path.emptied = false;
    }

    // ---- the return stack

    std::uint32_t push(Place place, std::uint32_t below) {
        const std::uint64_t key =
            (std::uint64_t{below} << 32 | place.address.value) ^ static_cast<std::uint64_t>(place.isa) << 61;
        const auto [found, is_new] = entry_of_.try_emplace(key, static_cast<std::uint32_t>(entries_.size()));
        if (is_new) entries_.push_back({place, below});
        return found->second;
    }

    /// What lies on top of both; nothing is known of what lies below.
    std::uint32_t common_stack(std::uint32_t a, std::uint32_t b) {
        std::vector<Place> common;
        for (; a != b && a < entries_.size() && b < entries_.size() && entries_[a].place == entries_[b].place;
             a = entries_[a].below, b = entries_[b].below)
            common.push_back(entries_[a].place);
        std::uint32_t out = a == b ? a : none;
        for (; !common.empty(); common.pop_back()) out = push(common.back(), out);
        return out;
    }

    // ---- one packet

    void step(const HeadPacket& packet, std::uint32_t k) {
        packet_ = k;
        std::visit([&](const auto& p) { take(p); }, packet.packet);
        settle(k + 1);
    }

    /// A packet ends: paths that have one past from here on begin here.
    void settle(std::uint32_t boundary) {
        for (Path& path : paths_) {
            if (path.start != none || path.lost || path.fresh) continue;
            path.start = boundary;
            path.kept = path.emptied = false;
            path.start_current = path.current;
            path.start_isa = path.isa;
            path.start_stack = path.stack;
            path.start_last_known = path.last_known;
            path.start_last = path.last_known ? path.last : path.current;
            path.start_last_isa = path.last_known ? path.last_isa : path.isa;
        }
    }

    /// `each(path, keep)` calls `keep` for every way in which the path goes on.
    template <class Each>
    void go_on(Each&& each) {
        std::vector<Path> next;
        returning_.clear();
        // Few are compared one by one: to clear a large table takes longer.
        constexpr std::size_t few = 8;
        bool many = paths_.size() > few;
        if (many) seen_.clear();
        std::size_t tested = 0, passed = 0;
        const auto put = [&](const Path& to) {
            if (too_many(next)) return;  // and will all be forgotten
            if (!many && next.size() > few) {
                many = true;
                seen_.clear();
                for (std::uint32_t i = 0; i < next.size(); ++i) seen_.try_emplace(state_of(next[i]), i);
            }
            if (many) {
                const auto [found, is_new] = seen_.try_emplace(state_of(to), static_cast<std::uint32_t>(next.size()));
                return is_new ? next.push_back(to) : join(next[found->second], to);
            }
            const State state = state_of(to);
            const auto same =
                std::find_if(next.begin(), next.end(), [&](const Path& p) { return state_of(p) == state; });
            same == next.end() ? next.push_back(to) : join(*same, to);
        };
        for (Path& path : paths_) {
            ++program_.steps;
            if (exhausted() || too_many(next)) break;
            bool kept = false, explained = false;
            const auto keep = [&](const Path& to) {
                kept = true;
                explained |= to.checks != path.checks;
                put(to);
            };
            returned_ = false;
            each(path, keep);
            kept |= returned_;
            tested += !kept || explained ? 1 : 0;
            passed += kept && explained ? 1 : 0;
        }
        if (!returning_.empty() &&
            (program_.waypoints().empty() || returning_.size() * program_.behind_calls().size() > most_that_return))
            return forget();
        for (auto& [key, path] : returning_) to_all_calls(path, {{std::get<3>(key)}, std::get<4>(key)}, put);
        if (too_many(next)) return forget();
        if (tested >= 16) {
            tested_ += tested;
            passed_ += passed;
        }
        paths_ = std::move(next);
    }
    [[nodiscard]] bool too_many(const std::vector<Path>& next) const { return next.size() > program_.limits().places; }

    /// Of all paths only what they share stays known.
    void forget() {
        forgotten_ = shared_past();
        paths_.clear();
    }
    [[nodiscard]] Shared shared_past() {
        if (paths_.empty()) return {};
        Path all = paths_.front();
        keep_start(all);
        for (const Path& path : paths_) {
            const Shared both = shared(all, path);
            all.past = both.past;
            all.cut = std::min(all.cut, both.cut);
        }
        return {all.past, std::min(all.cut, packet_)};
    }

    void take(const Atom& p) {
        if (everywhere_) return;
        for (unsigned i = 0; i < p.outcome.atoms.count && !paths_.empty(); ++i) {
            const bool e = p.outcome.atoms.e(i);
            go_on([&](const Path& path, auto&& keep) { outcome(path, e, keep); });
        }
    }
    template <class Keep>
    void outcome(const Path& path, bool e, Keep&& keep) {
        if (path.lost) return keep(path);
        const Walk& w = program_.walk(path.place());
        Path to = path;
        if (w.end == WalkEnd::no_memory) return leave(to, keep);
        if (w.end != WalkEnd::waypoint) return;
        const Instruction& i = w.instruction;
        to.check(w.last, e ? 1 : 0);
        to.fresh = false;
        if (!e) {
            // In ARM state an instruction says itself whether it can fail.
            if (path.isa == Isa::a32 && !i.conditional) return;
            to.current = static_cast<std::uint32_t>(w.after.value);
            return keep(to);
        }
        const Place back{w.after, path.isa};
        if (i.waypoint == Waypoint::indirect) {
            if (config_.return_stack) take_return(to, i.link ? std::optional(back) : std::nullopt, keep);
            return;
        }
        to.current = static_cast<std::uint32_t>(i.target.value);
        to.isa = i.target_isa;
        if (config_.return_stack && i.link) to.stack = push(back, to.stack);
        keep(to);
    }
    template <class Keep>
    void take_return(Path to, std::optional<Place> back, Keep&& keep) {
        if (to.stack == empty_stack) return;
        if (to.stack != none) {
            const Entry entry = entries_[to.stack];
            to.current = static_cast<std::uint32_t>(entry.place.address.value);
            to.isa = entry.place.isa;
            to.stack = back ? push(*back, entry.below) : entry.below;
            return keep(to);
        }
        // It lay on the stack before anything was known: any place behind a call. Paths that differ in nothing else go
        // there together.
        returned_ = true;
        const auto [found, is_new] =
            returning_.try_emplace({to.last_known, to.last_known ? to.last : 0, to.last_isa,
                                    back ? back->address.value : nowhere, back ? back->isa : Isa::a32},
                                   to);
        if (!is_new) join(found->second, to);
    }
    template <class Put>
    void to_all_calls(Path path, const Place& back, Put&& put) {
        keep_start(path);
        // A decoder that starts where the path does can be given its outcomes in advance, unless it has emptied its
        // stack.
        const bool told = path.start != none && !path.emptied;
        for (const Place& place : program_.behind_calls()) {
            ++program_.steps;
            Path to = path;
            to.current = static_cast<std::uint32_t>(place.address.value);
            to.isa = place.isa;
            to.lost = to.fresh = false;
            if (back.address.value != nowhere) to.stack = push(back, to.stack);
            if (told) {
                remember(to, Past::Kind::taken, place, packet_);
            } else if (to.start != none) {
                to.start = none;
                to.kept = to.emptied = false;
                to.cut = packet_;
            }
            put(to);
            if (exhausted()) return;
        }
    }
    /// Execution goes where no code is known.
    template <class Keep>
    void leave(Path to, Keep&& keep) {
        if (!to.last_known) return;  // nothing would be known of it
        lose(to);
        keep(to);
    }
    static void lose(Path& path) {
        path.lost = path.emptied = true;
        path.stack = none;
    }

    /// Where a packet's address leads from a path: `go(place)` for every place it may mean.
    template <class Go>
    void complete_for(const Path& path, const Target& target, bool alt_isa, Go&& go) {
        if (target.bytes == 5 || path.last_known) {
            Place place = complete(target, path.base());
            place.isa = with_alt_isa(place.isa, alt_isa);
            return go(place);
        }
        for_each_place(target, go);
    }
    template <class Go>
    void for_each_place(const Target& target, Go&& go) {
        for (const CodeExtent& extent : program_.extents())
            for (const Isa isa : {Isa::a32, Isa::t32}) {
                const unsigned shift = address_shift(isa);
                const std::uint64_t every = std::uint64_t{1} << (target_bits(target.bytes) + shift);
                const std::uint64_t low = std::uint64_t{target.bits} << shift;
                std::uint64_t at = (extent.first.value & ~(every - 1)) | low;
                if (at < extent.first.value) at += every;
                for (; at < extent.first.value + extent.bytes && at <= 0xffffffffU && !exhausted(); at += every) {
                    ++program_.steps;
                    go(Place{{at}, isa});
                }
            }
    }
    [[nodiscard]] std::uint64_t places_of(const Target& target) const {
        if (target.bytes == 5) return 1;
        std::uint64_t bytes = 0;
        for (const CodeExtent& extent : program_.extents()) bytes += extent.bytes;
        return (bytes >> (target_bits(target.bytes) + 2)) + (bytes >> (target_bits(target.bytes) + 1)) +
               2 * program_.extents().size();
    }

    void arrive_at(Path& path, const Place& place) {
        const auto address = static_cast<std::uint32_t>(place.address.value);
        if (!path.last_known) {
            // Against this the packets since the start would be completed to what they were.
            path.last_known = true;
            if (path.start != none && !path.start_last_known) {
                path.start_last_known = true;
                path.start_last = address;
                path.start_last_isa = place.isa;
                if (path.kept) remember(path, Past::Kind::against, place, packet_);
            }
        }
        path.current = path.last = address;
        path.isa = path.last_isa = place.isa;
        path.lost = path.fresh = false;
    }

    void take(const BranchAddress& p) {
        if (everywhere_) {
            if (places_of(p.target) > program_.limits().places || p.exception() == 1) return;
            everywhere_ = false;
            const auto begin = [&](Place place) {
                place.isa = with_alt_isa(place.isa, p.alt_isa);
                Path path = beginning();
                arrive_at(path, place);
                paths_.push_back(path);
            };
            if (p.target.bytes == 5)
                begin(complete(p.target, {}));
            else
                for_each_place(p.target, begin);
            places_ = static_cast<double>(paths_.size());
            return;
        }
        go_on([&](const Path& path, auto&& keep) { branch(path, p, keep); });
    }
    template <class Keep>
    void branch(const Path& path, const BranchAddress& p, Keep&& keep) {
        Path to = path;
        std::optional<Place> only;  // where a direct branch goes
        if (p.exception() == 0 && !path.lost) {
            const Walk& w = program_.walk(path.place());
            if (w.end != WalkEnd::waypoint && w.end != WalkEnd::no_memory) return;
            if (w.end == WalkEnd::waypoint) {
                to.check(w.last, 2);
                if (w.instruction.waypoint != Waypoint::indirect)
                    only = Place{w.instruction.target, w.instruction.target_isa};
                if (config_.return_stack && w.instruction.link) to.stack = push({w.after, path.isa}, to.stack);
            } else {
                if (!to.last_known && p.target.bytes != 5) return;  // out of sight from the beginning
                lose(to);                                           // until the address
            }
        }
        if (only && !path.last_known && p.target.bytes != 5) {
            const unsigned shift = address_shift(only->isa);
            const std::uint64_t mask = (std::uint64_t{1} << target_bits(p.target.bytes)) - 1;
            if ((only->address.value >> shift & mask) != p.target.bits) return;
            arrive_at(to, *only);
            return keep(to);
        }
        if (!path.last_known && p.target.bytes != 5) keep_start(to);  // the address may mean several places
        complete_for(path, p.target, p.alt_isa, [&](const Place& place) {
            if (only && *only != place) return;
            Path there = to;
            doubt(there);
            arrive_at(there, place);
            if (p.exception() == 1 || place.isa == Isa::jazelle) lose(there);
            keep(there);
        });
    }

    /// Execution may have come to this address from where no code is known, and the path be wrong up to here.
    void doubt(Path& path) {
        if (path.believed != none || path.lost) return;
        if (by_chance(path.checks) <= doubtful) {
            path.believed = path.checks;
            return;
        }
        path.past = before_.past;
        path.cut = before_.cut;
        path.start = none;
        path.kept = path.emptied = false;
    }

    void take(const WaypointUpdate& p) {
        if (everywhere_) return;
        go_on([&](const Path& path, auto&& keep) {
            if (path.fresh) return;  // it may name an instruction before the one the path stands on
            Path to = path;
            std::optional<Place> place;
            if (path.last_known || p.target.bytes == 5) place = complete(p.target, path.base());
            if (path.lost) {
                if (place && config_.update_is_compression_base) {
                    to.last = static_cast<std::uint32_t>(place->address.value);
                    to.last_isa = place->isa;
                }
                return keep(to);
            }
            update(to, place, p.target, keep);
        });
    }
    /// Walks to the instruction a waypoint update names, which has no waypoint before it.
    template <class Keep>
    void update(Path to, std::optional<Place> place, const Target& target, Keep&& keep) {
        const unsigned shift = address_shift(to.isa);
        const std::uint64_t mask = (std::uint64_t{1} << target_bits(target.bytes)) - 1;
        const auto named = [&](Address at) {
            return place ? at == place->address : (at.value >> shift & mask) == target.bits;
        };
        constexpr std::uint64_t longest = 64 * 1024;
        Address at{to.current};
        for (std::uint64_t walked = 0; walked < longest;) {
            const auto i = program_.at({at, to.isa});
            if (!i) return leave(to, keep);
            if (named(at)) {
                Path there = to;
                there.check(at, 3);
                const Address behind = i->waypoint != Waypoint::none ? at : follow::advance(at, i->bytes, to.isa);
                if (config_.update_is_compression_base || !to.last_known) arrive_at(there, {at, to.isa});
                there.current = static_cast<std::uint32_t>(behind.value);
                keep(there);
                if (place) return;
            }
            if (i->waypoint != Waypoint::none || i->undefined) return;
            at = follow::advance(at, i->bytes, to.isa);
            walked += i->bytes;
        }
    }

    void take(const ISync& p) {
        if (p.reason == ISyncReason::periodic && !everywhere_) {
            go_on([&](const Path& path, auto&& keep) {
                if (!path.lost && !path.fresh && path.place() != Place{p.address(), p.isa()}) return;
                Path to = path;
                if (!path.lost) to.check(p.address(), 3);
                arrive_at(to, {p.address(), p.isa()});
                to.stack = empty_stack;
                keep(to);
            });
            if (!paths_.empty()) return;
        }
        // Tracing was off: where it begins again is told in full, and what came before stands or falls for itself.
        std::optional<Path> before = choose();
        const double sure = before ? sure_of(*before, 1.0) : 0.0;
        const bool any = before && (before->start != none || before->past != none);
        if (any && sure >= least_confidence) {
            confidence_ = std::min(confidence_, sure);
            note(*before);
        } else {
            before.reset();
            confidence_ = 1.0;
        }
        everywhere_ = false;
        Path path = before.value_or(Path{});
        arrive_at(path, {p.address(), p.isa()});
        path.stack = empty_stack;
        path.forget_checks();
        if (path.start == none) {
            // Here the path begins, at the I-sync itself.
            path.start = packet_;
            path.start_current = path.start_last = path.current;
            path.start_isa = path.start_last_isa = path.isa;
            path.start_last_known = true;
            path.start_stack = empty_stack;
            path.kept = path.emptied = false;
        }
        paths_.assign(1, path);
        places_ = fixed_bits_of_isync;
    }

    void take(const auto&) {}  // does not say where execution goes

    /// The one path, or the one for which far more speaks than for any other, or what all of them share.
    [[nodiscard]] std::optional<Path> choose() {
        if (everywhere_ || paths_.empty()) return {};
        std::uint32_t most = 0;
        for (const Path& path : paths_) most = std::max(most, path.checks);
        std::erase_if(paths_, [&](const Path& path) { return path.checks + margin() < most; });
        Path chosen = paths_.front();
        if (paths_.size() == 1) return chosen;
        for (const Path& path : paths_) chosen.checks = std::min(chosen.checks, path.checks);
        const Shared common = shared_past();
        chosen.past = common.past;
        chosen.cut = common.cut;
        chosen.start = none;
        chosen.kept = false;
        return chosen;
    }
    /// How likely a place passes so many checks though execution is elsewhere.
    [[nodiscard]] double by_chance(std::uint32_t checks, double p = 1) const {
        return unseen_ * std::min(1.0, places_ * std::pow(chance(), static_cast<double>(checks)) * p);
    }
    [[nodiscard]] double sure_of(const Path& path, double p) const {
        return 1.0 / (1.0 + by_chance(path.checks, p) + (path.believed == none ? 0.0 : by_chance(path.believed)));
    }
    void note(const Path& path) {
        places_shown_ = std::max(places_shown_, places_ < 1 ? 1 : static_cast<std::uint64_t>(places_));
        checks_shown_ += path.checks;
    }

    /// The I-sync behind the A-sync.
    void arrive(const ISync& p, std::uint32_t last) {
        if (everywhere_) return;
        packet_ = last;
        if (p.reason == ISyncReason::periodic)
            go_on([&](const Path& path, auto&& keep) {
                if (path.lost || (!path.fresh && path.place() == Place{p.address(), p.isa()})) keep(path);
            });
        left_ = paths_.size();
        chosen_ = choose();
        if (!chosen_) return;
        confirmed_ = p.reason == ISyncReason::periodic && chosen_->start != none && !chosen_->lost;
        confidence_ = std::min(confidence_, sure_of(*chosen_, confirmed_ && places_ > 1 ? 1.0 / places_ : 1.0));
        note(*chosen_);
    }

    /// An I-sync is taken for one by its header, its reserved bits and bit 0 of its information byte: eleven.
    static constexpr double fixed_bits_of_isync = 1.0 / 2048;
    static constexpr double doubtful = 2e-2;
    static constexpr std::uint64_t nowhere = ~std::uint64_t{0};
    /// So many places are followed where those that return may go anywhere.
    static constexpr std::size_t most_that_return = std::size_t{1} << 16;
    /// So many checks more make one path believed before another: by chance they would be passed once in a million.
    [[nodiscard]] std::uint32_t margin() const {
        return static_cast<std::uint32_t>(std::log(1e-6 / std::max(places_, 1.0)) / std::log(chance()));
    }

    const Config& config_;
    Program& program_;
    const double unseen_;

    std::vector<Path> paths_;
    bool everywhere_ = true;  // no path is followed: execution may stand anywhere
    std::uint32_t seeded_at_ = 0, packet_ = 0;
    Shared before_;                    // what was known before the seeding
    std::optional<Shared> forgotten_;  // what is left of paths that were too many
    double places_ = 1;                // that were distinguished since the last seeding
    std::uint64_t tested_ = 0, passed_ = 0;

    std::unordered_map<std::uint64_t, std::uint32_t> entry_of_;
    std::vector<Entry> entries_;
    std::vector<Past> pasts_;
    std::unordered_map<State, std::uint32_t, StateHash> seen_;
    // Paths that take from the return stack what is not known, by what they differ in.
    std::map<std::tuple<bool, std::uint32_t, Isa, std::uint64_t, Isa>, Path> returning_;
    bool returned_ = false;  // the path at hand is one of them

    std::optional<Path> chosen_;
    std::uint64_t left_ = 0, places_shown_ = 0, checks_shown_ = 0;
    bool confirmed_ = false;
    double confidence_ = 1;
};

/// Where the head ends, and what comes up to the I-sync behind it.
struct Sync {
    std::size_t zeros = 0, mark = 0;  ///< of the A-sync: its first zero, its last byte
    std::vector<HeadPacket> packets;  ///< behind it, the I-sync last
};

std::optional<Sync> find_sync(const Config& config, Bytes stream) {
    Sync sync;
    std::size_t zeros = 0, at = 0;
    for (; at < stream.size(); ++at) {
        if (stream[at] == 0x80 && zeros >= 5) break;
        zeros = stream[at] == 0 ? zeros + 1 : 0;
    }
    if (at == stream.size()) return {};
    sync.mark = at;
    sync.zeros = at - zeros;
    for (++at; at < stream.size();) {
        bool isync = false;
        const Parsed parsed = parse_one(stream.subspan(at), config, [&](const auto& packet, std::size_t bytes) {
            isync = std::is_same_v<std::decay_t<decltype(packet)>, ISync>;
            sync.packets.push_back({packet, {{at}, bytes}});
        });
        if (parsed.step != Step::ok) return {};
        if (isync) return sync;
        at += parsed.bytes;
    }
    return {};
}

/// The chains of packets that lead from the first bytes of the head to its A-sync, none of them part of another.
class Chains {
public:
    Chains(const Config& config, Bytes head, std::size_t zeros) : config_(config), head_(head), size_(head.size()) {
        leads_.resize(size_ + 1);
        length_.resize(size_ + 1);
        // A packet may end in zeros that look like more of the A-sync, which needs five.
        for (std::size_t end = zeros; end <= size_; ++end) leads_[end] = 1;
        for (std::size_t at = std::min(zeros, size_); at-- > 0;) {
            const std::size_t length = packet_at(at);
            length_[at] = static_cast<std::uint8_t>(length);
            leads_[at] = length != 0 && leads_[at + length] != 0;
        }
    }

    /// Where all of them have become one. A chain may begin at any of the first bytes, as many as a packet has at most
    /// beyond its header: the rest of one that was cut can look like packets. Nothing if they meet nowhere.
    [[nodiscard]] std::optional<std::size_t> joined(std::size_t zeros) const {
        std::size_t from = 0;
        while (from < zeros && leads_[from] == 0) ++from;
        std::vector<std::size_t> chains;
        for (std::size_t at = from; at < std::min(zeros, from + longest_packet(config_)); ++at)
            if (leads_[at] != 0) chains.push_back(at);
        if (chains.empty()) return {};
        for (;;) {
            const auto [least, most] = std::minmax_element(chains.begin(), chains.end());
            if (*least >= zeros) return {};  // they end apart, or in the A-sync
            if (*least == *most) return *least;
            *least += length_[*least];
        }
    }
    [[nodiscard]] std::size_t length(std::size_t at) const { return length_[at]; }

private:
    static std::size_t longest_packet(const Config& config) {
        const std::size_t cycles = config.cycle_accurate ? 5 : 0;
        const std::size_t branch = 7 + cycles, isync = 6 + cycles + config.context_id_bytes;
        const std::size_t timestamp = config.timestamps ? 1 + config.timestamp_bytes + cycles : 0;
        return std::max({branch, isync, timestamp});
    }
    [[nodiscard]] std::size_t packet_at(std::size_t at) const {
        if (head_[at] == 0) return 0;
        const Parsed parsed = parse_one(head_.subspan(at), config_, [](const auto&, std::size_t) {});
        return parsed.step == Step::ok ? parsed.bytes : 0;
    }
    const Config& config_;
    const Bytes head_;
    const std::size_t size_;
    std::vector<std::uint8_t> leads_, length_;
};

/// Counts the bytes of trace of execution where no code is known, or of code other than the image's.
class Unseen final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        flow::in_order(
            batch, [&](const flow::Block&, const flow::Range& range) { see(batch.base + range.offset); },
            [&](const flow::Event& event) {
                if (std::holds_alternative<flow::NoMemory>(event.what) ||
                    std::holds_alternative<flow::Inconsistency>(event.what))
                    from_ = from_.value_or(event.offset);
            });
    }
    std::uint64_t finish(Offset end) {
        see(end);
        return bytes_;
    }

private:
    void see(Offset at) {
        if (from_ && at > *from_) bytes_ += at - *from_;
        from_.reset();
    }
    std::optional<Offset> from_;
    std::uint64_t bytes_ = 0;
};

/// The share of such bytes behind the A-sync, where execution is known.
double unseen_share(const Config& config, const isa::CodeReader& code, Bytes behind) {
    behind = behind.first(std::min(behind.size(), judged_bytes));
    Unseen sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    ReferenceDecoder decoder(config, code, out);
    decoder.feed(behind);
    decoder.finish();
    constexpr double least = 8;  // bytes: where none is met, the next may be
    return (static_cast<double>(sink.finish({behind.size()})) + least) /
           (static_cast<double>(behind.size()) + 2 * least);
}

}  // namespace

HeadRecovery recover_head(const Config& config, const isa::CodeReader& code, std::span<const CodeExtent> extents,
                          Bytes stream, const RecoverLimits& limits) {
    HeadRecovery out;
    const auto without = [&](HeadOutcome why) {
        out.outcome = why;
        out.first = out.sync;
        return out;
    };
    const auto sync = find_sync(config, stream);
    if (!sync) return without(HeadOutcome::no_sync);
    const ISync& isync = std::get<ISync>(sync->packets.back().packet);
    out.sync = sync->packets.back().at.first;
    out.async = {sync->zeros};
    if (sync->zeros == 0) return without(HeadOutcome::no_head);
    if (extents.empty()) return without(HeadOutcome::no_code);

    // The five zeros next to the mark are the A-sync's.
    const std::size_t last_end = sync->mark - 5;
    const std::size_t base = last_end > limits.head_bytes ? last_end - limits.head_bytes : 0;
    const Chains chains(config, stream.subspan(base, last_end - base), sync->zeros - std::min(sync->zeros, base));
    const std::size_t end = sync->zeros - std::min(sync->zeros, base);
    const auto begin = chains.joined(end);
    if (!begin) return without(HeadOutcome::no_parse);

    std::vector<HeadPacket> packets;
    for (std::size_t at = *begin; at < end; at += chains.length(at))
        (void)parse_one(stream.subspan(base + at), config, [&](const auto& packet, std::size_t bytes) {
            packets.push_back({packet, {{base + at}, bytes}});
        });
    packets.insert(packets.end(), sync->packets.begin(), sync->packets.end());

    Program program(config, code, extents, {isync.ns, isync.hyp, {}, {}}, limits);
    out.unseen = unseen_share(config, code, stream.subspan(sync->zeros));
    Search search(config, program, out.unseen / (1 - out.unseen));
    search.run(packets);
    if (search.exhausted()) return without(HeadOutcome::too_much);
    out.paths = search.left();
    const auto& path = search.chosen();
    if (!path) return without(HeadOutcome::no_path);
    const auto known = search.known(*path, static_cast<std::uint32_t>(packets.size() - 1));
    if (known.empty()) return without(search.left() > 1 ? HeadOutcome::ambiguous : HeadOutcome::no_path);
    if (search.confidence() < least_confidence) return without(HeadOutcome::unconfirmed);
    out.outcome = HeadOutcome::recovered;
    for (const Search::Known& k : known) {
        out.stretches.push_back({packets[k.first].at.first, packets[k.end].at.first, k.standing});
        out.stretches.back().standing.ns = isync.ns;
        out.stretches.back().standing.hyp = isync.hyp;
        out.packets += k.end - k.first;
    }
    out.first = out.stretches.front().first;
    out.checks = search.checks();
    out.places = search.places();
    out.chance = search.chance();
    out.confirmed = search.confirmed();
    out.confidence = search.confidence();
    return out;
}

void decode_head(const HeadRecovery& head, const Config& config, const isa::CodeReader& code, Bytes stream,
                 flow::BatchWriter& out) {
    Offset end = head.first;
    const auto gap = [&](Offset until) {
        if (until > end) out.event(end, Gap{end, until, GapReason::unsynchronised});
    };
    for (const HeadStretch& stretch : head.stretches) {
        gap(stretch.first);
        ReferenceDecoder decoder(config, code, out);
        decoder.begin_at(stretch.first, stretch.standing);
        decoder.feed(stream.subspan(stretch.first.value, stretch.end - stretch.first));
        decoder.finish();
        end = stretch.end;
    }
    if (!head.stretches.empty()) gap(head.sync);
    out.flush();
}

}  // namespace waymark::pft
