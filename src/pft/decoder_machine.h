/// The decoder behind `Decoder` and `ParallelDecoder`, for each kind of output.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "elements.h"
#include "path.h"
#include "waymark/follow/cutting.h"
#include "waymark/follow/few_outcomes.h"
#include "waymark/follow/follower.h"
#include "waymark/follow/parallel.h"
#include "waymark/follow/paths.h"
#include "waymark/pft/exceptions.h"
#include "waymark/pft/parser.h"

namespace waymark::pft {

/// A decoder's state in its stream. The follower keeps the place of execution.
struct MachineState {
    flow::Context last_context_;  // LastState, and in the next two
    Place last_;
    bool last_alt_isa_ = false;
    bool synced_ = false, async_seen_ = false;
    bool vmid_due_ = false;  // an I-sync came, and no VMID since then, although VMIDs are traced (2.6)
    Offset async_end_{};
    bool plain_context_ = false;  // last_context_ equals the follower's context
    Offset isync_end_{};          // end of the last I-sync
    ReturningPacket returning_;
};

template <class Out>
class Machine : private MachineState {
    using Paths = follow::KnownPaths<PathPackets, Out>;

public:
    /// `logs`: shared by several machines that decode the same stream.
    Machine(const Config& config, const isa::CodeReader& code, Out& out, std::shared_ptr<follow::BlockLogs> logs = {})
        : config_(config),
          out_(out),
          elements_(config_, out),
          follower_(rules(config_), code, elements_, std::move(logs)),
          paths_(out),
          parser_(config_, *this) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void reset(GapReason why) { parser_.reset(why); }
    void finish() {
        parser_.finish();
        if (async_seen_) elements_.waited_for_isync(async_end_, parser_.offset());
        forget();
        elements_.forget();
        out_.flush();
    }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] std::array<Offset, 2> pending() const {
        return {parser_.pending(), async_seen_ ? async_end_ : elements_.unplaced_first().value_or(parser_.pending())};
    }
    [[nodiscard]] bool amid_packet() const { return parser_.progress().amid_packet(); }

    /// The state that determines the meaning of later bytes: another machine can continue from it.
    struct Snapshot {
        ParserProgress parser;
        MachineState machine;
        follow::FollowerState follower;
        typename Elements<Out>::State elements;
    };
    [[nodiscard]] Snapshot snapshot() const {
        return {parser_.progress(), *this, follower_.snapshot(), elements_.state()};
    }
    void resume(const Snapshot& snapshot) {
        parser_.resume(snapshot.parser);
        MachineState::operator=(snapshot.machine);
        elements_.resume(snapshot.elements);
        follower_.resume(snapshot.follower);
    }

    // Functions for follow::Parallel: a stream can be cut after an I-sync, which gives the whole state except the VMID
    // and the last timestamp.

    void begin_at(Offset at, const CoreState& state) {
        parser_.resume_at(at);
        MachineState::operator=({});
        synced_ = plain_context_ = true;
        vmid_due_ = config_.vmid_trace && config_.minor_version >= 1;  // v1.0 has no VMIDs (2.8)
        isync_end_ = at;
        remember(state);
        follower_.resume({.context = state.context(), .place = state.place(), .known = true});
        elements_.begin_inside(state.context());
    }
    [[nodiscard]] static bool continues(const Snapshot& s, Offset at, const CoreState& state) {
        const MachineState& m = s.machine;
        return m.synced_ && s.follower.known && m.isync_end_ == at && s.parser.at_packet(at) &&
               s.follower.place == state.place() && s.follower.context == state.context() &&
               m.last_alt_isa_ == state.alt_isa;
    }
    using Carried = std::optional<std::uint32_t>;  ///< the VMID
    [[nodiscard]] static Carried carried(const Snapshot& s) { return s.follower.context.vmid; }
    using Late = LateTimestamps;
    [[nodiscard]] Late late() const { return elements_.late(); }
    [[nodiscard]] static bool late_contradicts(const Config& config, const Snapshot& before, const Late& late) {
        TimestampState last = before.elements.timestamps;
        follow::TimeOrder times = before.elements.times;
        return late.contradict(config, last, times);
    }
    static void complete_late(const Config& config, const Snapshot& before, const Late& late,
                              const follow::Batches& batches, Snapshot& end) {
        const TimestampState last = complete_timestamps(config, before.elements.timestamps, late, batches);
        if (late.to_the_end) end.elements.timestamps = last;
        TimestampState behind = before.elements.timestamps;
        follow::TimeOrder times = before.elements.times;
        (void)late.contradict(config, behind, times);
        end.elements.times.join(times);
    }

    // Functions for follow::Cutting.

    [[nodiscard]] static follow::CutMemory memory(const Snapshot& s) {
        return {.vmid = carried(s),
                .timestamp = s.elements.timestamps.transmitted(),
                .timestamp_known = s.elements.timestamps.known(),
                .latest = s.elements.times.latest()};
    }
    [[nodiscard]] static Carried carried(const follow::CutMemory& memory) { return memory.vmid; }
    static void remember(Snapshot& s, const follow::CutMemory& memory) {
        s.elements.timestamps.go_on_behind(memory.timestamp, memory.timestamp_known);
        s.elements.times.go_on_behind(memory.latest);
    }

    [[nodiscard]] Offset offset() const { return parser_.offset(); }

    WM_INLINE void operator()(const Atom& p, Extent at) {
        ++packets_;
        if (vmid_due_) [[unlikely]]
            vmid_missing(at.first);
        if (!synced_) [[unlikely]]
            return;
        place(p, 0, at);
    }

private:
    /// Places the outcomes of an atom packet from number `first` on.
    void place(const Atom& p, unsigned first, Extent at) {
        returning_.atoms_until(at.end());
        const std::uint32_t count = elements_.cycles(at.first, p.outcome.cycles);
        for (unsigned i = first; i < p.outcome.atoms.count; ++i)
            if (!follower_.known() || !follower_.atom(p.outcome.atoms.e(i), at.first, count)) [[unlikely]] {
                elements_.unplaced(at.first, p.outcome.atoms, i);
                return elements_.stray_cycles(at.first, p.outcome.cycles);
            }
        // A return from the stack may have changed the security state.
        if (config_.return_stack) plain_context_ = last_context_.ns == follower_.context().ns;
    }

public:
    /// Handles consecutive atoms and plain branch packets of known blocks, and timestamps; returns where they end. All
    /// other packets are left to the calls for single packets, which do the same one by one.
    const std::uint8_t* take(const std::uint8_t* at, const std::uint8_t* end, Offset here) {
        if (follower_.position() < 0 || static_cast<std::size_t>(end - at) < most_plain_bytes) return at;
        // A limit, so that offsets minus the base of a batch fit 32 bits.
        end = at + std::min<std::ptrdiff_t>(end - at, 1 << 30);
        unsigned followed = 0;
        const std::uint8_t* const stopped =
            config_.return_stack ? (config_.cycle_accurate ? take_plain<true, true>(at, end, here, followed)
                                                           : take_plain<false, true>(at, end, here, followed))
                                 : (config_.cycle_accurate ? take_plain<true, false>(at, end, here, followed)
                                                           : take_plain<false, false>(at, end, here, followed));
        if (stopped != at && stopped < end && *stopped == ExceptionReturn::info.value) [[unlikely]]
            note_returning(stopped, here + static_cast<std::uint64_t>(stopped - at));
        if (followed != 0) [[unlikely]] {
            Cursor cursor(Bytes(stopped - 1, 1));
            Atom atom;
            AtomPattern::read(cursor, atom.outcome.atoms);
            place(atom, followed, {here + static_cast<std::uint64_t>(stopped - 1 - at), 1});
        }
        return stopped;
    }

    // Kept out of the parser's loop, where it would use registers that atoms need.
    [[gnu::noinline]] void operator()(const BranchAddress& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        if (vmid_due_) [[unlikely]]
            vmid_missing(at.first);
        if (p.target.information) {
            const CoreState target = branch_target(p, last_state(), config_);
            if (p.exception() != 0) return exception(p, target, at.first);
            remember(target);
        } else {
            // As above, without copies of the state: most branch packets only carry an address.
            last_ = plain_target(p.target);
        }
        const std::optional<follow::BranchInstruction> branch =
            follower_.known() ? follower_.next_branch() : std::nullopt;
        const std::uint32_t cycles = elements_.cycles(at.first, p.cycles);
        if (!follower_.known() || !follower_.branch(last_, at.first, cycles))
            elements_.stray_cycles(at.first, p.cycles);
        else if (branch)
            returning_.branch_until(at.end(), branch->address, branch->exception_return);
        go_on(at.first);
    }

    [[gnu::noinline]] void operator()(const ISync& p, Extent at) {
        ++packets_;
        if (!synced_) elements_.waited_for_isync(async_end_, at.first);
        const CoreState state = isync_state(p, follower_.context().vmid, config_);
        if (!synced_ || p.reason != ISyncReason::periodic)
            elements_.trace_on(at.first, p);
        else
            follower_.confirm(state.place(), state.context(), at.first);
        synced_ = true;
        async_seen_ = false;
        isync_end_ = at.end();
        vmid_due_ = config_.vmid_trace && config_.minor_version >= 1;  // v1.0 has no VMIDs (2.8)
        follower_.clear_return_stack();
        go(state, at.first);
    }

    void operator()(const Timestamp& p, Extent at) {
        ++packets_;
        if (synced_)
            elements_.timestamp(at.first, p);
        else
            elements_.timestamp_unsynced(p);
    }

    void operator()(const WaypointUpdate& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        const Place update = complete(p.target, last_);
        if (config_.update_is_compression_base) {
            if (p.target.information) last_alt_isa_ = p.alt_isa;
            last_ = {update.address, with_alt_isa(update.isa, last_alt_isa_)};
        }
        follower_.walk_to(update.address, follow::Stop::after, at.first);
    }

    void operator()(const ContextId& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        flow::Context context = follower_.context();
        last_context_.context_id = context.context_id = p.context_id;
        follower_.set_context(context, at.first);
    }
    void operator()(const Vmid& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        vmid_due_ = false;
        flow::Context context = follower_.context();
        last_context_.vmid = context.vmid = p.vmid;
        follower_.set_context(context, at.first);
    }
    void operator()(const pft::ExceptionReturn&, Extent at) {
        if (synced_ && follower_.known())
            if (const auto other = returning_.contradicts(at.first, follower_.place().address, config_))
                elements_.event(at.first, flow::Inconsistency{flow::Conflict::no_exception_return, *other, {}});
        plain_event(at, flow::ExceptionReturn{});
    }
    void operator()(const pft::Trigger&, Extent at) { plain_event(at, flow::Trigger{}); }
    void operator()(const Ignore&, Extent) { ++packets_; }
    void operator()(const ASync&, Extent at) {
        ++packets_;
        if (synced_ || async_seen_) return;
        async_seen_ = true;
        async_end_ = at.end();
    }
    void operator()(const Gap& gap) {
        if (async_seen_) elements_.waited_for_isync(async_end_, gap.first);
        forget();
        elements_.gap(gap);
    }

private:
    /// Resets to the state before the first byte: nothing is known of the core. Blocks are kept.
    void forget() {
        synced_ = async_seen_ = vmid_due_ = false;
        follower_.forget();
        last_context_ = {};
        last_ = {};
        last_alt_isa_ = false;
    }

    /// Packets were handled up to an exception return packet.
    [[gnu::noinline]] void note_returning(const std::uint8_t* until, Offset end) {
        follow::Position branched = paths_.branched(until);
        if (until == branched_until_) branched = branched_;
        if (branched >= 0) {
            const follow::Node& node = follower_.cache().node(branched & ~1);
            returning_.branch_until(end, node.last().address, node.exception_return);
        } else if (until != timed_until_) {
            returning_.atoms_until(end);
        }
    }

    void plain_event(Extent at, flow::What what) {
        ++packets_;
        if (synced_) elements_.event(at.first, std::move(what));
    }

    /// Reports that the VMID is missing, once for each I-sync.
    [[gnu::noinline]] void vmid_missing(Offset at) {
        vmid_due_ = false;
        elements_.event(
            at, flow::Inconsistency{
                    flow::Conflict::vmid_missing, follower_.known() ? follower_.place().address : Address{}, {}});
    }

    /// LastState: address and instruction set from `last_`, the rest from `last_context_`.
    [[nodiscard]] CoreState last_state() const {
        const flow::Context& c = last_context_;
        return {last_.address, last_.isa, last_alt_isa_, c.ns, c.hyp, c.context_id, c.vmid};
    }

    /// The target of a branch packet without information bytes; the rest of LastState stays the same.
    [[nodiscard]] WM_INLINE Place plain_target(const Target& sent) const {
        Place target = complete(sent, last_);
        target.isa = with_alt_isa(target.isa, last_alt_isa_);
        return target;
    }

    /// The maximum number of bytes that `take` reads from the first byte of a packet on: for a timestamp its header,
    /// nine bytes, and eight of its cycle count.
    static constexpr std::size_t most_plain_bytes = 18;

    /// A timestamp packet as an event.
    struct TakenTimestamp {
        unsigned bytes;  ///< size of the packet; 0: there is none
        flow::Timestamp event;
    };
    template <bool cycle_accurate>
    [[nodiscard]] WM_INLINE TakenTimestamp take_timestamp(const std::uint8_t* at) {
        if ((*at & Timestamp::info.mask) != Timestamp::info.value) return {};
        Timestamp p;
        p.frequency_changed = (*at & 4U) != 0;
        unsigned bytes = TimestampField{config_.timestamp_bytes}.read_at_once(at + 1, p.value);
        if (bytes == 0) [[unlikely]]
            return {};
        ++bytes;
        if constexpr (cycle_accurate) {
            const unsigned count_bytes = CycleCount::read_likely(at + bytes, p.cycles);
            if (count_bytes == 0 || p.cycles == flow::no_cycles) [[unlikely]]
                return {};
            bytes += count_bytes;
        }
        const flow::Timestamp timestamp = elements_.complete(p);
        if (!elements_.plain(timestamp)) [[unlikely]]
            return {};
        return {bytes, timestamp};
    }

    /// Follows atoms before `until` with cycle counts of one or two bytes along known links, while there is room for
    /// their ranges. Returns false if there is none. It makes no calls, so that its state stays in registers.
    template <class Run>
    WM_INLINE static bool take_short_counts(const std::uint8_t*& at, const std::uint8_t* until,
                                            const follow::Position* links, std::ptrdiff_t& now,
                                            std::ptrdiff_t& further_bytes, Run& run) {
        const std::uint8_t* packet = at;
        std::ptrdiff_t from = now;
        std::ptrdiff_t further = further_bytes;
        do {
            std::uint32_t e = 0, cycles = 0;
            const unsigned bytes = CycleAtomField::read_short(packet, e, cycles);
            const std::ptrdiff_t edge = from + e;
            const follow::Position next = links[edge];
            if (bytes == 0 || next < 0) [[unlikely]]
                break;
            run.put(packet, cycles, 1, edge);
            from = static_cast<std::uint32_t>(next);
            packet += bytes;
            further += bytes - 1;
        } while (packet < until && run.has_room() && (*packet & Atom::info.mask) == Atom::info.value);
        if (packet == at) return false;
        run.goes_on_at(now);
        at = packet;
        now = from;
        further_bytes = further;
        return true;
    }

    /// `calls`: there is a return stack. `followed`: outcomes of the last packet that were followed, if the others
    /// could not be; otherwise 0.
    template <bool cycle_accurate, bool calls>
    [[gnu::noinline]] const std::uint8_t* take_plain(const std::uint8_t* const first, const std::uint8_t* const end,
                                                     Offset here, unsigned& followed) {
        using follow::Position;
        typename Out::Run run(out_, here, Bytes(first, end));
        const Position* const links = follower_.cache().links();
        const follow::Starts::View starts = follower_.cache().low_starts().view();
        const std::uint8_t* const stop = end - most_plain_bytes;
        const std::uint8_t* at = first;
        std::ptrdiff_t now = follower_.position();
        std::ptrdiff_t further_bytes = 0;  // bytes of packets after their first bytes
        const std::uint8_t *branched_until = nullptr, *timed_until = nullptr;
        Position branched = follow::nowhere;
        // Branch packets are read only if their target depends on nothing but the address.
        const bool branches = plain_context_ && !last_alt_isa_ && LastTarget::holds(last_);
        LastTarget last(branches ? last_ : Place{});
        // `goes_on_at` tells a CountWriter where the last indirect branch led. It is called only if a range of that
        // block comes next: an event before it could end the flow.
        const auto atom_follows = [&] { return !cycle_accurate && atom_bytes[*at].count != 0; };
        if (atom_follows()) run.goes_on_at(now);
        // The position after calls and returns whose target the return stack has.
        const auto beyond = [this](Position from, Position link, bool) {
            if constexpr (!calls) return link;
            if (link == follow::call) {
                follower_.push_call(from);
                return follower_.cache().call_target(from);
            }
            return link == follow::indirect ? follower_.pop_return() : link;
        };
        // Paths may contain branch packets, and have no cycle counts.
        const bool has_paths = branches && !cycle_accurate;
        if (has_paths) paths_.begin();
        const auto outcome_at = [](const std::uint8_t* packet) { return atom_bytes[*packet].count != 0; };
        const auto find_target = [starts](const LastTarget& target) { return starts.find(target.key()); };
        const std::uint8_t* until = stop + 1;
        for (bool goes_on = true; goes_on && at <= stop;) {
            if (has_paths)
                until = paths_.follow(at, stop + 1, now, last, further_bytes, run, follower_, outcome_at, find_target);
            while (at < until) {
                // The kind of a packet is hard to predict, so it must be known early: not from a table.
                if ((*at & Atom::info.mask) == Atom::info.value) {
                    if constexpr (cycle_accurate) {
                        run.reserve(at);
                        if (take_short_counts(at, until, links, now, further_bytes, run)) continue;
                        std::uint32_t cycles = 0;
                        const unsigned bytes = CycleCount::read_at_once(at, cycles);
                        if (bytes == 0 || cycles == flow::no_cycles) [[unlikely]]
                            break;
                        const std::ptrdiff_t edge = now + (~*at >> 1 & 1);
                        const Position link = links[edge];
                        Position next = link;
                        if constexpr (calls)
                            if (link < 0) next = beyond(static_cast<Position>(now), link, true);
                        if (next < 0) [[unlikely]]
                            break;
                        run.goes_on_at(now);
                        run.put(at, cycles, 1, edge);
                        if constexpr (calls)
                            if (link == follow::indirect) run.branched(static_cast<Position>(edge));
                        now = next;
                        at += bytes;
                        further_bytes += bytes - 1;
                    } else {
                        const follow::FewOutcomes& atoms = atom_bytes[*at];
                        if (atoms.count == 0) [[unlikely]]
                            break;
                        const Position next = follow::follow_few(links, now, atoms, at, run).next;
                        if (next >= 0) [[likely]] {
                            now = next;
                            ++at;
                            continue;
                        }
                        follow::take_back_few(links, now, atoms, run);
                        if constexpr (!calls) break;
                        const follow::EachFollowed each =
                            follow::follow_calls(links, now, atoms.bits(), atoms.count, false, at, run, beyond);
                        if (each.count == 0) break;
                        now = each.next;
                        ++at;
                        if (each.count != atoms.count) {
                            followed = each.count;
                            break;
                        }
                        if (atom_follows()) run.goes_on_at(now);
                    }
                    continue;
                }
                const Position link = links[now + 1];
                if ((*at & BranchAddress::info.mask) != BranchAddress::info.value ||
                    (link != follow::indirect && (!calls || link != follow::indirect_call)) || !branches) [[unlikely]] {
                    const TakenTimestamp timestamp = take_timestamp<cycle_accurate>(at);
                    if (timestamp.bytes == 0) break;
                    run.event(at, timestamp.event);
                    at += timestamp.bytes;
                    timed_until = at;
                    further_bytes += timestamp.bytes - 1;
                    if (atom_follows()) run.goes_on_at(now);
                    continue;
                }
                LastTarget target = last;
                unsigned bytes = target.take(at);
                if (bytes == 0) [[unlikely]]
                    break;
                std::uint32_t cycles = flow::no_cycles;
                if constexpr (cycle_accurate) {
                    const unsigned count_bytes = CycleCount::read_likely(at + bytes, cycles);
                    if (count_bytes == 0 || cycles == flow::no_cycles) [[unlikely]]
                        break;
                    bytes += count_bytes;
                }
                run.reserve(at);
                run.goes_on_at(now);
                run.put(at, cycles, 1, now + 1);
                run.branched(static_cast<follow::Position>(now + 1));
                if (calls && link == follow::indirect_call) follower_.push_call(static_cast<Position>(now));
                last = target;
                at += bytes;
                branched = static_cast<Position>(now);
                branched_until = at;
                further_bytes += bytes - 1;
                now = starts.find(last.key());
                if (now < 0) [[unlikely]]
                    break;
                if (atom_follows()) run.goes_on_at(now);
            }
            goes_on = at >= until && now >= 0 && followed == 0;
        }
        if (has_paths) paths_.stopped(at, until);
        branched_ = branched;
        branched_until_ = branched_until;
        timed_until_ = timed_until;
        if (branches) last_ = last.place();
        if (now >= 0)
            follower_.set_position(static_cast<Position>(now));
        else
            follower_.set_place(last_);
        packets_ += static_cast<std::uint64_t>(at - first - further_bytes);
        return at;
    }

    void exception(const BranchAddress& p, const CoreState& target, Offset at) {
        flow::Exception e{&exception_type(p.exception()), {}, {}, elements_.cycles(at, p.cycles)};
        const bool debug_entry = p.exception() == 1;
        if (!debug_entry) e.vector = target.address;
        follower_.exception(e, at);
        if (!debug_entry) return go(target, at);
        remember(target);
        follower_.lose();
    }

    void remember(const CoreState& state) {
        last_context_ = state.context();
        last_ = state.place();
        last_alt_isa_ = state.alt_isa;
    }
    /// Sets both states; flow continues there.
    void go(const CoreState& state, Offset at) {
        remember(state);
        go_on(at);
    }
    void go_on(Offset at) {
        plain_context_ = true;
        follower_.go(last_, last_context_, at);
    }

    const Config config_;
    Out& out_;
    Elements<Out> elements_;
    follow::Follower<Out> follower_;
    Paths paths_;
    FastParser<Machine> parser_;
    std::uint64_t packets_ = 0;
    // For take_plain: the end of the last plain branch packet, its block, and the end of the last timestamp.
    const std::uint8_t *branched_until_ = nullptr, *timed_until_ = nullptr;
    follow::Position branched_ = follow::nowhere;
};

}  // namespace waymark::pft
