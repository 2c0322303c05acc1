#include "waymark/pft/recover.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "elements.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/pft/packet.h"
#include "waymark/pft/parser.h"

namespace waymark::pft {

namespace {

using isa::Instruction;
using isa::Waypoint;

constexpr std::uint32_t none = 0xffffffff;

/// A packet of the head, and where it stood.
struct HeadPacket {
    Packet packet;
    Extent at;
};

/// The code between a place and the next waypoint instruction.
struct Walk {
    enum class End : std::uint8_t { waypoint, no_memory, impossible };
    End end{};
    Address at{};  ///< of the waypoint instruction
    Instruction instruction{};
};

/// One way in which execution may have gone.
struct Path {
    std::uint32_t current{}, last{};
    std::uint32_t start = none;  ///< the packet from which on this path has one past only; `none`: not yet
    std::uint32_t start_current{}, start_last{};
    std::uint32_t stack = none;    ///< return stack: an index into entries, none: nothing is known to be on it
    std::uint32_t returns = none;  ///< what was taken from the stack beyond that, since `start`
    std::uint32_t calls = none;    ///< calls that have not returned: an index into entries, none: none is known
    std::uint32_t checks{};
    Isa isa = Isa::a32, last_isa = Isa::a32, start_isa = Isa::a32, start_last_isa = Isa::a32;
    bool lost{};        ///< execution is where no code is known
    bool last_known{};  ///< else the next address decides what it was compressed against
    bool start_last_known{};
    bool fresh{};   ///< a waypoint instruction, whose block may have been entered anywhere
    bool merged{};  ///< has several pasts since the last packet

    [[nodiscard]] Place place() const { return {{current}, isa}; }
    [[nodiscard]] Place base() const { return {{last}, last_isa}; }
};

struct State {
    std::uint32_t current, last, stack;
    std::uint16_t flags;
    friend bool operator==(const State&, const State&) = default;
};
struct StateHash {
    std::size_t operator()(const State& s) const {
        std::uint64_t h = (std::uint64_t{s.current} << 32 | s.last) * 0x9e37'79b9'7f4a'7c15U;
        h ^= (std::uint64_t{s.stack} << 16 | s.flags) * 0xc2b2'ae3d'27d4'eb4fU;
        return static_cast<std::size_t>(h ^ h >> 29);
    }
};
State state_of(const Path& p) {
    return {p.lost ? 0 : p.current, p.last_known ? p.last : 0, p.stack,
            static_cast<std::uint16_t>(static_cast<unsigned>(p.isa) | static_cast<unsigned>(p.last_isa) << 3 |
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
        if (is_new) found->second = walk_from(place.address, place.isa);
        return found->second;
    }
    /// One instruction; nothing where no code is known.
    std::optional<Instruction> at(Place place) {
        ++steps;
        const isa::Fetched fetched = isa::fetch(code_, space_, place.address, place.isa);
        if (fetched.bytes == 0) return {};
        return isa::decode_instr(place.address, place.isa, fetched.opcode, fetched.bytes == 4, options_);
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
                    if (i->link) behind_calls_.push_back({advance({at_}, i->bytes), isa});
                }
            }
    }
    Walk walk_from(Address here, Isa isa) {
        constexpr std::uint64_t longest = 64 * 1024;
        for (const Address first = here;;) {
            const auto i = at({here, isa});
            if (!i) return {Walk::End::no_memory, here, {}};
            if (i->undefined || here.value - first.value > longest) return {Walk::End::impossible, here, {}};
            if (i->waypoint != Waypoint::none) return {Walk::End::waypoint, here, *i};
            here = advance(here, i->bytes);
        }
    }

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
    /// `returns`: functions return to where they were called from, and a path on which one does not is given up.
    Search(const Config& config, Program& program, bool returns)
        : config_(config), program_(program), functions_return_(returns) {}

    /// All packets up to the sync, which is the last.
    void run(std::span<const HeadPacket> packets) {
        seed(0);
        for (std::uint32_t k = 0; k + 1 < packets.size() && !exhausted(); ++k) {
            step(packets[k], k);
            if (alive()) continue;
            // Nothing explains this packet after those before; perhaps it alone can be explained.
            if (seeded_at_ < k) {
                seed(k);
                step(packets[k], k);
            }
            if (!alive()) seed(k + 1);
        }
        if (!exhausted())
            arrive(std::get<ISync>(packets.back().packet), static_cast<std::uint32_t>(packets.size() - 1));
    }

    [[nodiscard]] bool exhausted() const { return program_.exhausted(); }
    /// The path that counts, if there is one.
    [[nodiscard]] const std::optional<Path>& chosen() const { return chosen_; }
    [[nodiscard]] std::uint64_t left() const { return left_; }
    [[nodiscard]] bool confirmed() const { return confirmed_; }
    [[nodiscard]] double confidence() const { return confidence_; }
    [[nodiscard]] std::uint64_t places() const { return places_shown_; }
    [[nodiscard]] std::uint64_t checks() const { return checks_shown_; }
    [[nodiscard]] double chance() const {
        return tested_ < 64 ? 0.5 : std::clamp(static_cast<double>(passed_) / static_cast<double>(tested_), 0.02, 0.9);
    }
    [[nodiscard]] std::vector<Place> returns(const Path& path) const {
        std::vector<Place> out;
        for (std::uint32_t i = path.returns; i != none; i = entries_[i].below) out.push_back(entries_[i].place);
        return out;  // what was taken last lay deepest, and stands first
    }

private:
    struct Entry {
        Place place;
        std::uint32_t below;
    };

    [[nodiscard]] bool alive() const { return everywhere_ || !paths_.empty(); }

    // ---- places to begin with

    /// Execution may stand anywhere.
    void seed(std::uint32_t k) {
        paths_.clear();
        seeded_at_ = k;
        everywhere_ = true;
        const std::vector<Place>& waypoints = program_.waypoints();
        if (waypoints.empty()) return;  // too many: a packet with an address must narrow them down
        everywhere_ = false;
        for (const Place& place : waypoints) {
            Path path;
            path.current = static_cast<std::uint32_t>(place.address.value);
            path.isa = path.last_isa = place.isa;
            path.fresh = true;
            paths_.push_back(path);
        }
        places_ = static_cast<double>(paths_.size());
        program_.steps += paths_.size();
    }

    // ---- the return stack

    std::uint32_t push(Place place, std::uint32_t below) {
        const std::uint64_t key =
            (std::uint64_t{below} << 32 | place.address.value) ^ static_cast<std::uint64_t>(place.isa) << 61;
        const auto [found, is_new] = entry_of_.try_emplace(key, static_cast<std::uint32_t>(entries_.size()));
        if (is_new) entries_.push_back({place, below});
        return found->second;
    }

    // ---- one packet

    void step(const HeadPacket& packet, std::uint32_t k) {
        std::visit([&](const auto& p) { take(p, k); }, packet.packet);
        settle(k + 1);
    }

    /// A packet ends: paths that have one past from here on begin here.
    void settle(std::uint32_t boundary) {
        for (Path& path : paths_) {
            if (path.merged) path.start = none;
            path.merged = false;
            if (path.start != none || path.lost || path.fresh) continue;
            path.start = boundary;
            path.returns = none;
            path.start_current = path.current;
            path.start_isa = path.isa;
            path.start_last_known = path.last_known;
            path.start_last = path.last_known ? path.last : path.current;
            path.start_last_isa = path.last_known ? path.last_isa : path.isa;
        }
    }

    /// `each(path, keep)` calls `keep` for every way in which the path goes on.
    template <class Each>
    void go_on(Each&& each) {
        std::vector<Path> next;
        seen_.clear();
        returned_ = false;
        const bool alone = paths_.size() == 1;
        const std::size_t tested = paths_.size();
        std::size_t passed = 0;
        for (const Path& path : paths_) {
            ++program_.steps;
            if (exhausted() || next.size() > program_.limits().places) break;
            bool kept = false;
            const auto keep = [&](const Path& to) {
                kept = true;
                if (alone) {
                    next.push_back(to);
                    return;
                }
                const auto [found, is_new] = seen_.try_emplace(state_of(to), static_cast<std::uint32_t>(next.size()));
                if (is_new) {
                    next.push_back(to);
                    return;
                }
                Path& other = next[found->second];
                if (other.calls != to.calls) other.calls = none;
                // What was always known to stand in the program speaks louder than what was out of sight.
                if (to.checks > other.checks + margin)
                    other = to;
                else if (other.checks <= to.checks + margin)
                    other.merged = true;
            };
            each(path, keep);
            passed += kept ? 1 : 0;
        }
        if (next.size() > program_.limits().places) program_.steps = program_.limits().steps + 1;
        if (tested >= 16) {
            tested_ += tested;
            passed_ += passed;
        }
        paths_ = std::move(next);
    }

    void take(const Atom& p, std::uint32_t) {
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
        if (w.end == Walk::End::no_memory) return leave(to, keep);
        if (w.end == Walk::End::impossible) return;
        const Instruction& i = w.instruction;
        ++to.checks;
        to.fresh = false;
        if (!e) {
            // In ARM state an instruction says itself whether it can fail.
            if (path.isa == Isa::a32 && !i.conditional) return;
            to.current = static_cast<std::uint32_t>(advance(w.at, i.bytes).value);
            return keep(to);
        }
        const Place back{advance(w.at, i.bytes), path.isa};
        if (i.waypoint == Waypoint::indirect) {
            if (!config_.return_stack) return;
            return take_return(to, i.link ? std::optional(back) : std::nullopt, keep);
        }
        to.current = static_cast<std::uint32_t>(i.target.value);
        to.isa = i.target_isa;
        if (config_.return_stack && i.link) to.stack = push(back, to.stack);
        if (i.link) to.calls = push(back, to.calls);
        keep(to);
    }
    template <class Keep>
    void take_return(Path to, std::optional<Place> back, Keep&& keep) {
        const auto go = [&](const Place& place) {
            Path there = to;
            there.current = static_cast<std::uint32_t>(place.address.value);
            there.isa = place.isa;
            if (back) there.stack = push(*back, there.stack);
            keep(there);
        };
        if (to.stack != none) {
            const Entry entry = entries_[to.stack];
            to.stack = entry.below;
            return go(entry.place);
        }
        // It lay on the stack before anything was known: any place behind a call. Of many paths that differ in nothing
        // else, one goes there for all; of many that do differ, none, or the search would not end.
        const bool many = paths_.size() > 1;
        if (many && (paths_.size() > most_that_return || (!to.last_known && returned_))) return;
        if (many && !to.last_known) to.merged = returned_ = true;
        const std::uint32_t before = to.returns;
        for (const Place& place : program_.behind_calls()) {
            ++program_.steps;
            to.returns = push(place, before);
            go(place);
        }
    }
    /// Execution goes where no code is known.
    template <class Keep>
    void leave(Path to, Keep&& keep) {
        if (!to.last_known) return;  // nothing would be known of it
        to.lost = true;
        to.stack = to.calls = none;
        keep(to);
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

    static void arrive_at(Path& path, const Place& place) {
        const auto address = static_cast<std::uint32_t>(place.address.value);
        if (!path.last_known) {
            // Against this the packets since the start would be completed to what they were.
            path.last_known = true;
            if (path.start != none && !path.start_last_known) {
                path.start_last_known = true;
                path.start_last = address;
                path.start_last_isa = place.isa;
            }
        }
        path.current = path.last = address;
        path.isa = path.last_isa = place.isa;
        path.lost = path.fresh = false;
    }

    void take(const BranchAddress& p, std::uint32_t) {
        if (everywhere_) {
            if (places_of(p.target) > program_.limits().places || p.exception() == 1) return;
            everywhere_ = false;
            const auto begin = [&](Place place) {
                place.isa = with_alt_isa(place.isa, p.alt_isa);
                Path path;
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
            if (w.end == Walk::End::impossible) return;
            if (w.end == Walk::End::waypoint) {
                ++to.checks;
                if (w.instruction.waypoint != Waypoint::indirect) {
                    only = Place{w.instruction.target, w.instruction.target_isa};
                } else if (functions_return_ && w.instruction.function_return && to.calls != none) {
                    // Functions return to where they were called from; a program that jumps out of them is not
                    // followed.
                    only = entries_[to.calls].place;
                    to.calls = entries_[to.calls].below;
                }
                if (w.instruction.link) to.calls = push({advance(w.at, w.instruction.bytes), path.isa}, to.calls);
                if (config_.return_stack && w.instruction.link)
                    to.stack = push({advance(w.at, w.instruction.bytes), path.isa}, to.stack);
            } else if (!to.last_known && p.target.bytes != 5) {
                return;  // out of sight from the beginning
            }
        }
        if (only && !path.last_known && p.target.bytes != 5) {
            const unsigned shift = address_shift(only->isa);
            const std::uint64_t mask = (std::uint64_t{1} << target_bits(p.target.bytes)) - 1;
            if ((only->address.value >> shift & mask) != p.target.bits) return;
            arrive_at(to, *only);
            return keep(to);
        }
        complete_for(path, p.target, p.alt_isa, [&](const Place& place) {
            if (only && *only != place) return;
            Path there = to;
            arrive_at(there, place);
            there.lost = p.exception() == 1 || place.isa == Isa::jazelle;
            if (there.lost || p.exception() != 0) there.stack = there.calls = none;
            keep(there);
        });
    }

    void take(const WaypointUpdate& p, std::uint32_t) {
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
                ++there.checks;
                const Address behind = i->waypoint != Waypoint::none ? at : advance(at, i->bytes);
                if (config_.update_is_compression_base || !to.last_known) arrive_at(there, {at, to.isa});
                there.current = static_cast<std::uint32_t>(behind.value);
                keep(there);
                if (place) return;
            }
            if (i->waypoint != Waypoint::none || i->undefined) return;
            at = advance(at, i->bytes);
            walked += i->bytes;
        }
    }

    void take(const ISync& p, std::uint32_t k) {
        if (p.reason == ISyncReason::periodic && !everywhere_) {
            go_on([&](const Path& path, auto&& keep) {
                if (!path.lost && !path.fresh && path.place() != Place{p.address(), p.isa()}) return;
                Path to = path;
                if (!path.lost) ++to.checks;
                arrive_at(to, {p.address(), p.isa()});
                to.stack = to.calls = none;
                keep(to);
            });
            if (!paths_.empty()) return;
        }
        // Tracing was off: where it begins again is told in full, and what came before stands or falls for itself.
        std::optional<Path> before = choose();
        if (before && before->start != none && sure_of(*before, 1.0) < least_confidence) before.reset();
        confidence_ = before && before->start != none ? std::min(confidence_, sure_of(*before, 1.0)) : 1.0;
        if (before && before->start != none && !before->lost) note(*before);
        everywhere_ = false;
        Path path = before && before->start != none ? *before : Path{};
        const std::uint32_t start = path.start;
        arrive_at(path, {p.address(), p.isa()});
        path.stack = path.calls = none;
        path.checks = 0;
        path.start = start;
        if (start == none) {
            // Here the path begins, at the I-sync itself.
            path.start = k;
            path.start_current = path.start_last = path.current;
            path.start_isa = path.start_last_isa = path.isa;
            path.start_last_known = true;
            path.returns = none;
        }
        paths_.assign(1, path);
        places_ = fixed_bits_of_isync;
    }

    void take(const auto&, std::uint32_t) {}  // tells nothing of where execution goes

    /// The one path, or the one for which far more speaks than for any other.
    [[nodiscard]] std::optional<Path> choose() const {
        if (everywhere_ || paths_.empty()) return {};
        const Path* best = &paths_.front();
        for (const Path& path : paths_)
            if (path.checks > best->checks) best = &path;
        for (const Path& path : paths_)
            if (&path != best && path.checks + margin >= best->checks) return {};
        return *best;
    }
    [[nodiscard]] double sure_of(const Path& path, double p) const {
        return 1.0 / (1.0 + places_ * std::pow(chance(), static_cast<double>(path.checks)) * p);
    }
    void note(const Path& path) {
        places_shown_ = std::max(places_shown_, places_ < 1 ? 1 : static_cast<std::uint64_t>(places_));
        checks_shown_ += path.checks;
    }

    /// The I-sync behind the A-sync.
    void arrive(const ISync& p, std::uint32_t) {
        if (everywhere_) return;
        if (p.reason == ISyncReason::periodic)
            go_on([&](const Path& path, auto&& keep) {
                if (path.lost || (!path.fresh && path.place() == Place{p.address(), p.isa()})) keep(path);
            });
        std::erase_if(paths_, [](const Path& path) { return path.start == none; });
        left_ = paths_.size();
        chosen_ = choose();
        if (!chosen_) return;
        confirmed_ = p.reason == ISyncReason::periodic && !chosen_->lost;
        confidence_ = std::min(confidence_, sure_of(*chosen_, confirmed_ && places_ > 1 ? 1.0 / places_ : 1.0));
        note(*chosen_);
    }

    /// An I-sync is taken for one by its header, its reserved bits and bit 0 of its information byte: eleven.
    static constexpr double fixed_bits_of_isync = 1.0 / 2048;
    /// So many checks more make one path believed before another.
    static constexpr std::uint32_t margin = 8;
    static constexpr std::size_t most_that_return = 1024;

    const Config& config_;
    Program& program_;
    const bool functions_return_;

    std::vector<Path> paths_;
    bool everywhere_ = true;  // no path is followed: execution may stand anywhere
    std::uint32_t seeded_at_ = 0;
    double places_ = 1;  // that were told apart since the last seeding
    std::uint64_t tested_ = 0, passed_ = 0;

    std::unordered_map<std::uint64_t, std::uint32_t> entry_of_;
    std::vector<Entry> entries_;
    std::unordered_map<State, std::uint32_t, StateHash> seen_;
    bool returned_ = false;  // at this outcome: a path took what is not known from the return stack

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

    /// Where chains begin: up to the longest packet behind the first byte; behind the last place that leads nowhere if
    /// those do not.
    [[nodiscard]] std::vector<std::size_t> begins(std::size_t zeros) const {
        std::vector<std::size_t> out;
        std::size_t from = 0;
        while (from < zeros && leads_[from] == 0) ++from;
        std::vector<std::uint8_t> on_a_chain(size_ + 1);
        for (std::size_t at = from; at < std::min(zeros, from + Packets::max_bytes); ++at) {
            if (leads_[at] == 0 || on_a_chain[at] != 0) continue;
            out.push_back(at);
            for (std::size_t i = at; i < zeros && on_a_chain[i] == 0; i += length_[i]) on_a_chain[i] = 1;
        }
        return out;
    }
    [[nodiscard]] std::size_t length(std::size_t at) const { return length_[at]; }

private:
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

}  // namespace

std::string_view name(HeadOutcome outcome) {
    constexpr std::array<std::string_view, 9> names{
        "recovered",
        "the stream begins with its A-sync",
        "no A-sync with an I-sync behind it",
        "no chain of packets leads to the A-sync",
        "no program image",
        "no path through the program explains the packets",
        "several paths through the program explain the packets",
        "too little speaks for the one path that is left",
        "the limits of the search are reached",
    };
    return names[static_cast<unsigned>(outcome)];
}

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
    const std::vector<std::size_t> begins = chains.begins(sync->zeros - std::min(sync->zeros, base));
    if (begins.empty()) return without(HeadOutcome::no_parse);

    HeadOutcome why = HeadOutcome::no_path;
    Program program(config, code, extents, {isync.ns, isync.hyp, {}, {}}, limits);
    bool any = false;
    std::size_t best = 0;
    for (const std::size_t begin : begins) {
        std::vector<HeadPacket> packets;
        std::size_t at = begin;
        while (at < sync->zeros - base) {
            (void)parse_one(stream.subspan(base + at), config, [&](const auto& packet, std::size_t bytes) {
                packets.push_back({packet, {{base + at}, bytes}});
            });
            at += chains.length(at);
        }
        packets.insert(packets.end(), sync->packets.begin(), sync->packets.end());
        // Most programs keep to that rule, and with it less is ambiguous; of others more is found without it.
        constexpr std::uint64_t near_bytes = 32;
        for (const bool returns : {true, false}) {
            if (!returns && any && out.first.value <= base + begin + near_bytes) break;
            Search search(config, program, returns);
            search.run(packets);
            if (search.exhausted()) {
                why = HeadOutcome::too_much;
                break;
            }
            const auto& path = search.chosen();
            if (!path) {
                if (search.left() > 1 && why == HeadOutcome::no_path) why = HeadOutcome::ambiguous;
                out.paths = std::max(out.paths, search.left());
                continue;
            }
            if (search.confidence() < least_confidence) {
                why = HeadOutcome::unconfirmed;
                continue;
            }
            const Offset first = packets[path->start].at.first;
            // Two chains that are both explained: from where they are one, the longer story holds; else only the
            // shorter.
            if (any) {
                const auto begins_packet = [&](std::size_t chain, Offset wanted) {
                    std::size_t from = chain;
                    while (from < sync->zeros - base && base + from < wanted.value) from += chains.length(from);
                    return base + from >= wanted.value &&
                           (base + from == wanted.value || wanted >= Offset{sync->zeros});
                };
                const bool longer = first < out.first;
                const bool agree = longer ? begins_packet(begin, out.first) : begins_packet(best, first);
                if (longer != agree) continue;
            }
            best = begin;
            any = true;
            out.outcome = HeadOutcome::recovered;
            out.first = first;
            out.standing = {{{path->start_current}, path->start_isa},
                            {{path->start_last}, path->start_last_isa},
                            isync.ns,
                            isync.hyp,
                            search.returns(*path)};
            out.packets = packets.size() - 1 - path->start;
            out.checks = search.checks();
            out.places = search.places();
            out.paths = search.left();
            out.chance = search.chance();
            out.confirmed = search.confirmed();
            out.confidence = search.confidence();
        }
        if (why == HeadOutcome::too_much) break;
    }
    return any && out.first < out.sync ? out : without(why);
}

void decode_head(const HeadRecovery& head, const Config& config, const isa::CodeReader& code, Bytes stream,
                 flow::BatchWriter& out) {
    if (head.outcome != HeadOutcome::recovered) return;
    ReferenceDecoder decoder(config, code, out);
    decoder.begin_at(head.first, head.standing);
    decoder.feed(stream.subspan(head.first.value, head.bytes()));
    decoder.finish();
}

}  // namespace waymark::pft
