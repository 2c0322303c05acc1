/// The decoder behind `Decoder` and `ParallelDecoder`, for each kind of output. For a unit that does not speculate no
/// queue is needed: elements are delivered as their packets arrive, and an inner loop handles atoms and addresses of
/// known blocks. With speculation there are two loops: one queues the elements of plain packets, commits and cancels;
/// the other follows the elements that are due (follow/waiting.h).
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <memory>
#include <optional>
#include <utility>

#include "elements.h"
#include "path.h"
#include "plain_times.h"
#include "recent_addresses.h"
#include "waymark/etm4/parser.h"
#include "waymark/follow/cutting.h"
#include "waymark/follow/few_outcomes.h"
#include "waymark/follow/follower.h"
#include "waymark/follow/parallel.h"
#include "waymark/follow/paths.h"
#include "waymark/follow/waiting.h"

namespace waymark::etm4 {

/// The state after the address packet that follows a Trace Info, for a unit that does not speculate: everything on
/// which later packets depend, except identifiers that the context packet omits.
struct CutState {
    PacketState packets;
    KnownAddress place;
    ContextFields fields;
    Config config;
    std::optional<std::uint32_t> context_id{}, vmid{};  ///< assumed values, if `fields` has none

    [[nodiscard]] flow::Context context() const {
        flow::Context before;
        before.context_id = context_id;
        before.vmid = vmid;
        return to_flow(fields, before, config);
    }
    void carry(const std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>& last) {
        context_id = last.first;
        vmid = last.second;
    }
};

/// Atom packets of up to five atoms, decoded; count 0: the packet has more atoms.
inline constexpr std::array<follow::FewOutcomes, 64> few_atoms = [] {
    std::array<follow::FewOutcomes, 64> all;
    for (unsigned i = 0; i < 64; ++i)
        if (atom_table[i].count <= follow::FewOutcomes::most) all[i] = {atom_table[i].e, atom_table[i].count};
    return all;
}();

/// The same packets as rows of follow::Waiting, without their offsets.
inline constexpr std::array<follow::WaitingRow, 64> atom_rows = [] {
    std::array<follow::WaitingRow, 64> all{};
    for (unsigned i = 0; i < 64; ++i) all[i] = follow::WaitingRow::of({atom_table[i].e, atom_table[i].count}, {});
    return all;
}();

/// A cycle count as a number: the cycles, whether they are known, and the threshold.
[[nodiscard]] WM_INLINE follow::PackedCount pack(const element::CycleCount& e) {
    return {e.cycles.value_or(0) | std::uint64_t{e.cycles.has_value()} << 32 | std::uint64_t{e.threshold} << 33};
}
[[nodiscard]] WM_INLINE element::CycleCount unpack(const follow::PackedCount& e) {
    element::CycleCount out{std::nullopt, static_cast<std::uint32_t>(e.value >> 33)};
    if ((e.value >> 32 & 1U) != 0) out.cycles = static_cast<std::uint32_t>(e.value);
    return out;
}

template <class Out>
class Machine {
    using Waiting = follow::Waiting<Element>;
    using Follower = follow::Follower<Out>;
    using Paths = follow::KnownPaths<PathPackets, Out>;

public:
    /// `logs`: shared by several machines that decode the same stream.
    Machine(const Config& config, const isa::CodeReader& code, Out& out, std::shared_ptr<follow::BlockLogs> logs = {})
        : config_(config),
          out_(out),
          elements_(out),
          follower_(rules(config_), code, elements_, std::move(logs)),
          committed_(config_, code, elements_, follower_),
          assembler_(config_),
          paths_(out),
          direct_(config.max_speculation == 0),
          parser_(config_, *this) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void reset(GapReason why) { parser_.reset(why); }
    void finish() {
        parser_.finish();
        end_of_flow(parser_.offset());
        if (committed_.overflow_pending())
            elements_.event(parser_.offset(), flow::Mark{flow::Mark::Kind::overflow_at_end, 0, 0});
        committed_.set_overflow(false);
        synchronisation_.lost_until(parser_.offset(), report_);
        synchronisation_.lose(parser_.offset(), GapReason::unsynchronised);
        out_.flush();
    }
    [[nodiscard]] std::uint64_t packets() const { return packets_; }
    [[nodiscard]] Offset offset() const { return parser_.offset(); }
    [[nodiscard]] std::array<Offset, 2> pending() const {
        Offset oldest = parser_.pending();
        for (const std::optional<Offset> at :
             {synchronisation_.lost_first(), assembler_.pending(), elements_.unplaced_first(),
              waiting_.empty() ? std::nullopt : std::optional(waiting_.first())})
            if (at) oldest = std::min(oldest, *at);
        return {parser_.pending(), oldest};
    }
    [[nodiscard]] bool amid_packet() const { return parser_.progress().amid_packet(); }

    // ---- packets

    WM_INLINE void operator()(const Atom& p, Extent at) {
        ++packets_;
        if (direct_ && synchronisation_.synchronised() && !assembler_.pending()) [[likely]]
            return committed_(at.first, follow::Outcomes{p.atoms.e, p.atoms.count});
        if (synchronisation_.synchronised()) add(p, at);
    }
    void operator()(const Gap& gap) {
        end_of_flow(gap.first);
        committed_.set_overflow(false);
        synchronisation_.lost_until(gap.first, report_);
        report_(gap);
        elements_.forget();
        synchronisation_.lose(gap.end, GapReason::unsynchronised);
    }
    void operator()(const ASync&, Extent at) {
        ++packets_;
        synchronisation_.async(at, report_);
    }
    void operator()(const TraceInfo& p, Extent at) {
        ++packets_;
        if (synchronisation_.synchronised()) {
            if (!contradicts(p, assembler_, waiting_.depth())) return add(p, at);
            end_of_flow(at.first);
            committed_.set_overflow(false);
        } else {
            if (!synchronisation_.waits_for_info()) return;
            synchronisation_.info(at, report_);
        }
        assembler_.begin(p);
        committed_.synchronised();
        if (!direct_) waiting_.add_unseen(at.first, p.speculation);
        if (p.in_transaction())
            Queue{*this}.add(at.first, ElementKind::dropped,
                             element::Mark{{flow::Mark::Kind::transaction_inside, 0, 0}});
        resolve({}, at);
    }
    void operator()(const Discard&, Extent at) { discard(at, false); }
    void operator()(const Overflow&, Extent at) { discard(at, true); }
    void operator()(const Event& p, Extent at) {
        ++packets_;
        if (synchronisation_.synchronised()) return add(p, at);
        if (config_.ete()) mark_early(mark_of(p), at);
    }
    void operator()(const Instrumentation& p, Extent at) {
        ++packets_;
        if (synchronisation_.synchronised()) return add(p, at);
        mark_early(mark_of(p), at);
    }
    void operator()(const auto& p, Extent at) {
        ++packets_;
        if (synchronisation_.synchronised()) add(p, at);
    }

    /// Handles consecutive atoms, addresses and source addresses of known blocks; returns where they end. All other
    /// packets are left to the calls for single packets, which do the same one by one. With speculation: atoms,
    /// addresses, cycle counts, timestamps, Commit, Cancel and Mispredict, of unknown blocks too, but no source
    /// addresses.
    const std::uint8_t* take(const std::uint8_t* at, const std::uint8_t* end, Offset here) {
        if (static_cast<std::size_t>(end - at) < most_plain_bytes || assembler_.pending()) return at;
        // A limit, so that offsets minus the base of a batch fit 32 bits.
        end = at + std::min<std::ptrdiff_t>(end - at, 1 << 30);
        if (!direct_) return synchronisation_.synchronised() ? take_waiting(at, end, here) : at;
        if (!follows_links()) return at;
        follow::Outcomes rest{};
        const bool times = config_.cycle_counting || config_.timestamps;
        const std::uint8_t* const stopped =
            config_.return_stack
                ? (times ? take_plain<true, true>(at, end, here, rest) : take_plain<false, true>(at, end, here, rest))
                : (times ? take_plain<true, false>(at, end, here, rest)
                         : take_plain<false, false>(at, end, here, rest));
        if (rest.count != 0) committed_(here + static_cast<std::uint64_t>(stopped - at - 1), rest);
        return stopped;
    }

    // ---- for follow::Parallel, with units that do not speculate

    struct Snapshot {
        ParserProgress parser;
        Assembler::State assembler;
        CommittedState committed;
        Synchronisation synchronisation;
        follow::FollowerState follower;
        typename follow::Elements<Out>::State elements;
    };
    [[nodiscard]] Snapshot snapshot() const {
        return {parser_.progress(), assembler_.snapshot(), committed_.state(),
                synchronisation_,   follower_.snapshot(),  elements_.state()};
    }
    void resume(const Snapshot& snapshot) {
        parser_.resume(snapshot.parser);
        assembler_.resume(snapshot.assembler);
        committed_.resume(snapshot.committed);
        synchronisation_ = snapshot.synchronisation;
        elements_.resume(snapshot.elements);
        follower_.resume(snapshot.follower);
    }
    void begin_at(Offset at, const CutState& state) {
        parser_.resume_at(at);
        assembler_.resume({state.packets, {}});
        CommittedState committed;
        committed.context = state.context();
        committed.context_known = true;
        committed.sf = state.fields.sf;
        committed.last = state.place;
        committed.times.begin_inside();
        committed_.resume(committed);
        synchronisation_.resume_synchronised();
        elements_.resume({.context = committed.context});
        follower_.resume({.context = committed.context,
                          .place = committed_.place_of(state.place, state.fields.sf),
                          .known = !config_.p0_loads && !config_.p0_stores});
    }
    [[nodiscard]] static bool continues(const Snapshot& s, Offset at, const CutState& state) {
        using Flow = Committed<Follower, Out>;
        return s.synchronisation.synchronised() && s.parser.at_packet(at) && s.follower.known && !s.follower.pop_due &&
               s.follower.stack.empty() && s.follower.may_push && s.follower.context == state.context() &&
               s.follower.place == Flow::place_of(state.place, state.fields.sf) && s.committed.context_known &&
               s.committed.sf == state.fields.sf && s.committed.last == state.place && s.committed.may_push &&
               !s.committed.overflowed && !s.committed.begins && !s.committed.address_waits && !s.assembler.pending &&
               s.assembler.packets == state.packets && s.elements.context == state.context() &&
               s.elements.unplaced.taken == 0 && s.elements.unplaced.not_taken == 0;
    }
    using Carried = std::pair<std::optional<std::uint32_t>, std::optional<std::uint32_t>>;
    [[nodiscard]] static Carried carried(const Snapshot& s) {
        return {s.committed.context.context_id, s.committed.context.vmid};
    }
    using Late = follow::TimeOrder;
    [[nodiscard]] Late late() const { return committed_.state().times; }
    [[nodiscard]] static bool late_contradicts(const Config&, const Snapshot& before, const Late& late) {
        return late.contradicts(before.committed.times);
    }
    static void complete_late(const Config&, const Snapshot& before, const Late&, const follow::Batches&,
                              Snapshot& end) {
        end.committed.times.join(before.committed.times);
    }

    // Functions for follow::Cutting.

    [[nodiscard]] static follow::CutMemory memory(const Snapshot& s) {
        return {.context_id = s.committed.context.context_id,
                .vmid = s.committed.context.vmid,
                .latest = s.committed.times.latest()};
    }
    [[nodiscard]] static Carried carried(const follow::CutMemory& memory) { return {memory.context_id, memory.vmid}; }
    static void remember(Snapshot& s, const follow::CutMemory& memory) {
        s.committed.times.go_on_behind(memory.latest);
    }

private:
    /// Receives the assembler's elements: passes them to the follower at once, or queues them.
    struct Queue {
        Machine& machine;
        void add(Offset at, const follow::Outcomes& outcomes) {
            if (machine.direct_)
                machine.committed_(at, outcomes);
            else
                machine.waiting_.add(at, outcomes);
        }
        void add(Offset at, ElementKind, const element::Address& address) {
            if (machine.direct_)
                machine.committed_.commit(at, address);
            else
                machine.waiting_.add(at, follow::PackedAddress{pack(address.place)});
        }
        template <class E>
        void add(Offset at, ElementKind kind, E&& element) {
            if (!machine.direct_)
                machine.waiting_.add(at, kind, std::forward<E>(element));
            else if constexpr (std::is_same_v<std::decay_t<E>, Element>)
                machine.committed_(at, element);
            else
                machine.committed_.commit(at, element);
        }
    };

    void add(const auto& p, Extent at) {
        Queue queue{*this};
        resolve(assembler_(p, at.first, queue), at);
    }
    WM_INLINE void resolve(const Request& request, Extent at) {
        bool possible = !request.impossible;
        if (direct_) {
            possible = possible && request.commit == 0 && request.cancel == 0 && !request.mispredict;
            if (possible && request.count) committed_.commit(at.first, *request.count);
        } else {
            const std::uint64_t depth = waiting_.depth();
            // What exceeds the maximum depth is committed.
            const std::uint64_t excess = depth > config_.max_speculation ? depth - config_.max_speculation : 0;
            if (waiting_.size() > most_waiting) waiting_.settle(Deliver{committed_});
            possible = possible && waiting_.size() <= most_waiting && waiting_.commit(std::max(request.commit, excess));
            if (possible && request.count) waiting_.add_before_waiting(at.first, pack(*request.count));
            possible = possible && waiting_.cancel(request.cancel) && (!request.mispredict || waiting_.mispredict());
            if (possible) deliver_waiting();
        }
        if (possible) [[likely]]
            return;
        end_of_flow(at.first);
        committed_.set_overflow(false);
        synchronisation_.lose(at.first, GapReason::malformed_packet);
    }
    /// An element that needs an A-sync, but no Trace Info.
    void mark_early(const flow::Mark& mark, Extent at) {
        if (!synchronisation_.waits_for_info()) return;
        synchronisation_.taken(at, report_);
        elements_.event(at.first, mark);
    }
    void discard(Extent at, bool overflow) {
        ++packets_;
        if (!synchronisation_.synchronised()) return;
        end_of_flow(at.first);
        if (overflow) committed_.set_overflow(true);
        synchronisation_.lose(at.end(), GapReason::unsynchronised);
    }
    void end_of_flow(Offset at) {
        const std::uint64_t lost = waiting_.discard(Deliver{committed_}) + (assembler_.pending() ? 1 : 0);
        if (lost != 0) elements_.event(at, flow::Mark{flow::Mark::Kind::uncommitted, lost, 0});
        assembler_.forget();
        committed_.forget();
    }

    /// The maximum number of bytes that `take` reads from the first byte of a packet on: an atom, a cycle count, an
    /// address; or the reach of read_timestamp.
    static constexpr std::size_t most_plain_bytes =
        Atom::info.max_bytes + CycleCountF1::info.max_bytes + LongAddress::info.max_bytes;
    static_assert(most_plain_bytes >= 18 &&
                  most_plain_bytes >= LongSourceAddress::info.max_bytes + LongAddress::info.max_bytes);

    /// Whether an address comes next, possibly after a cycle count.
    template <bool times>
    [[nodiscard]] WM_INLINE bool address_follows(const std::uint8_t* at) const {
        if (is_address(*at)) return true;
        if constexpr (!times) return false;
        const PlainCount count = PlainCount::at(at, assembler_.packets(), config_);
        return count.bytes != 0 && is_address(at[count.bytes]);
    }
    /// Converts the cycle count or timestamp at `at` to an event. Returns its size, or 0 if there is none.
    /// Precondition: direct_.
    template <class Run>
    WM_INLINE unsigned take_time(const std::uint8_t* at, Run& run) {
        const PlainCount count = PlainCount::at(at, assembler_.packets(), config_);
        if (count.bytes != 0) {
            run.event(at, flow_of(count.element(assembler_.packets().threshold())));
            return count.bytes;
        }
        return take_timestamp(at, run);
    }
    template <class Run>
    WM_INLINE unsigned take_timestamp(const std::uint8_t* at, Run& run) {
        Timestamp p;
        const unsigned bytes = read_timestamp(at, p);
        if (bytes == 0) return 0;
        const flow::Timestamp timestamp = assembler_.timestamp(p);
        if (!committed_.plain(timestamp)) [[unlikely]]
            return 0;  // the call for single packets takes it again, which changes nothing in the assembler
        run.event(at, timestamp);
        return bytes;
    }

    /// The `beyond` of follow_calls: follows calls and returns by the return stack. `address`, `outcomes`: what the
    /// next packet has. A last return is popped only if outcomes follow.
    [[nodiscard]] WM_INLINE auto beyond(bool address, bool outcomes) {
        return [this, address, outcomes](follow::Position from, follow::Position link, bool is_last) {
            if (link == follow::call || (link == follow::indirect_call && is_last && address)) {
                follower_.push_call(from);
                return link == follow::call ? follower_.cache().call_target(from) : follow::indirect;
            }
            return link == follow::indirect && (!is_last || outcomes) ? follower_.pop_return() : link;
        };
    }

    /// The inner loop of a unit that does not speculate. It repeats three steps, from position `now` and the packet
    /// `at`:
    ///
    /// 1. follow known paths, unless `times`; `until` is where the next lookup is due
    /// 2. read packets up to `until` one by one: atoms follow links, an address after an indirect branch is looked up
    /// 3. where step 2 stopped early: take a Source Address, or an address that repeats the place of execution
    ///
    /// It ends at the first packet that none of them takes. `times`: also handles cycle counts and timestamps. `calls`:
    /// there is a return stack. `rest`: outcomes of the last packet taken that could not be followed along links.
    template <bool times, bool calls>
    [[gnu::noinline]] const std::uint8_t* take_plain(const std::uint8_t* const first, const std::uint8_t* const end,
                                                     Offset here, follow::Outcomes& rest) {
        using follow::Position;
        typename Out::Run run(out_, here, Bytes(first, end));
        const Position* const links = follower_.cache().links();
        const std::uint8_t* const stop = end - most_plain_bytes;
        const std::uint8_t* at = first;
        std::ptrdiff_t now = follower_.position();
        std::ptrdiff_t further_bytes = 0;  // bytes of packets after their first bytes
        RecentAddresses addresses(assembler_.addresses());
        const bool a64 = committed_.state().sf;
        TargetFinder targets(follower_.cache(), FlowTarget{addresses.newest(), a64}.high_half());
        // `goes_on_at` tells a CountWriter where the last indirect branch led. It is called only if a range of that
        // block comes next: an event before it could end the flow.
        const auto atom_follows = [&] { return is_atom(*at); };
        if (atom_follows()) run.goes_on_at(now);
        const auto outcome_at = [](const std::uint8_t* packet) { return is_atom(*packet); };
        // A copy of `targets`, so that the original stays in registers.
        const auto find_target = [finder = targets, a64](const RecentAddresses& recent) {
            return TargetFinder(finder).find({recent.newest(), a64});
        };
        if constexpr (!times) paths_.begin();
        const std::uint8_t* until = stop;
        for (bool goes_on = true; goes_on && at < stop;) {
            if constexpr (!times)
                until = paths_.follow(at, stop, now, addresses, further_bytes, run, follower_, outcome_at, find_target);
            while (at < until) {
                const std::uint8_t header = *at;
                if (is_atom(header)) {
                    const follow::FewOutcomes& few = few_atoms[header & 0x3fU];
                    const Atoms& atoms = atom_table[header & 0x3fU];
                    Position next = follow::nowhere, last = follow::nowhere;
                    unsigned followed = 0;  // outcomes
                    // The same as atoms.count, mostly without its table.
                    const unsigned count = few.count != 0 ? few.count : atoms.count;
                    if (few.count != 0) {
                        // With cycle counts, a packet has one or two outcomes.
                        const follow::FewFollowed all = times && few.count <= 2
                                                            ? follow::follow_two(links, now, few, at, run)
                                                            : follow::follow_few(links, now, few, at, run);
                        // A target that only the trace shows must be in the next packet.
                        if (all.next >= 0 || (all.next == follow::indirect && all.last >= 0 &&
                                              address_follows<times>(at + 1))) [[likely]] {
                            next = all.next;
                            last = all.last;
                            followed = few.count;
                        } else {
                            follow::take_back_few(links, now, few, run);
                            if constexpr (!calls) break;
                            next = static_cast<Position>(now);
                        }
                    } else {
                        const follow::EachFollowed each = follow::follow_each(links, now, atoms.e, atoms.count,
                                                                              address_follows<times>(at + 1), at, run);
                        next = each.next;
                        last = each.last;
                        followed = each.count;
                    }
                    if (followed != count) [[unlikely]] {
                        if constexpr (calls) {
                            const follow::EachFollowed further =
                                follow::follow_calls(links, next, atoms.e >> followed, atoms.count - followed,
                                                     address_follows<times>(at + 1), at, run,
                                                     beyond(address_follows<times>(at + 1), is_atom(at[1])));
                            if (further.count != 0) {
                                next = further.next;
                                last = further.last;
                                followed += further.count;
                            }
                        }
                        if (followed == 0) break;
                        if (followed != atoms.count) {
                            rest = {atoms.e >> followed, static_cast<std::uint8_t>(atoms.count - followed)};
                            now = next;
                            ++at;
                            break;
                        }
                        if (next >= 0) run.goes_on_at(next);
                    }
                    now = next;
                    ++at;
                    if (next >= 0) continue;
                    run.branched(last);
                    if (times && !is_address(*at)) [[unlikely]] {
                        const unsigned bytes = take_time(at, run);
                        at += bytes;
                        further_bytes += bytes - 1;
                    }
                } else if (!is_address(header)) {
                    const unsigned bytes = times ? take_time(at, run) : 0;
                    if (bytes == 0) break;
                    at += bytes;
                    further_bytes += bytes - 1;
                    if (atom_follows()) run.goes_on_at(now);
                    continue;
                } else {
                    break;  // no link leads from the place of execution
                }
                // An indirect branch was taken: its address.
                const unsigned bytes = addresses.take(at);
                at += bytes;
                further_bytes += bytes - 1;
                now = targets.find({addresses.newest(), a64});
                if (now < 0) [[unlikely]]
                    break;
                if (atom_follows()) run.goes_on_at(now);
            }
            goes_on = at >= until && now >= 0 && rest.count == 0;
            // Source addresses, and addresses that repeat the place of execution, as with branch broadcast. Other
            // addresses are left to the call for single packets. Kept out of the loop above, which would have fewer
            // registers.
            if (!goes_on && now >= 0 && rest.count == 0 && at < stop) {
                bool address = is_address(*at) && repeats(addresses, at, a64, targets, now);
                goes_on = address;
                if (const FollowedSource source = follow_source<calls>(at, now, addresses, a64); source.bytes != 0) {
                    run.goes_on_at(now);
                    for (bool taken = false; !taken; now = links[now]) {  // the last step is replaced by source.next
                        taken = now == source.last;
                        run.reserve(at);
                        run.put(at, flow::no_cycles, 1, now + (taken ? 1 : 0));
                    }
                    if (source.branched) run.branched(source.last + 1);
                    addresses.push(source.address);
                    at += source.bytes;
                    further_bytes += source.bytes - 1;
                    now = source.next;
                    address = now < 0;
                    goes_on = true;
                }
                if (address) {
                    const unsigned bytes = addresses.take(at);
                    at += bytes;
                    further_bytes += bytes - 1;
                    now = targets.find({addresses.newest(), a64});
                    goes_on = now >= 0;
                }
                if (goes_on && atom_follows()) run.goes_on_at(now);
                if (!times && goes_on) {
                    paths_.stopped(at, until);
                    paths_.begin();
                }
            }
        }
        if constexpr (!times) paths_.stopped(at, until);
        if (addresses.moved()) {
            addresses.give(assembler_.addresses());
            const follow::Place target = committed_.moved_to(assembler_.addresses().entry(0));
            if (now < 0) follower_.set_place(target);
        }
        if (now >= 0) follower_.set_position(static_cast<Position>(now));
        packets_ += static_cast<std::uint64_t>(at - first - further_bytes);
        return at;
    }

    /// Where a Source Address packet leads.
    struct FollowedSource {
        unsigned bytes = 0;       ///< of the packet; 0: it is left to the call for single packets
        follow::Position last{};  ///< the block that ends with the instruction at the source address
        follow::Position next{};  ///< where its taken branch leads
        std::uint64_t address{};  ///< packed
        bool branched{};          ///< that branch is indirect
    };
    /// Follows the Source Address packet at `at` from `now`, if all blocks on the way are known: outcomes N up to the
    /// block that ends there, whose outcome is E.
    template <bool calls>
    [[nodiscard, gnu::noinline]] FollowedSource follow_source(const std::uint8_t* at, std::ptrdiff_t now,
                                                              RecentAddresses addresses, bool a64) {
        if (!config_.ete() || !is_source_address(*at)) return {};
        const unsigned bytes = addresses.take_source(at);
        const follow::BlockCache& cache = follower_.cache();
        const Address to = Committed<Follower, Out>::place_of(unpack(addresses.newest()), a64).address;
        auto last = static_cast<follow::Position>(now);
        Address before = cache.node(last).start_address;
        if (to < before || to - before > config_.max_walk_bytes) return {};
        while (true) {
            const Address end = cache.node(last).last().address;
            if (end == to) break;
            if (end > to || end < before) return {};
            before = end;
            last = cache.links()[last];
            if (last < 0) return {};
        }
        const follow::Position link = cache.links()[last + 1];
        follow::Position next = link;
        const bool address_next = is_address(at[bytes]);
        if constexpr (calls)
            if (link < 0) next = beyond(address_next, is_atom(at[bytes]))(last, link, true);
        if (next < 0 && (next != follow::indirect || !address_next)) return {};
        const bool branched = link == follow::indirect || link == follow::indirect_call;
        return {bytes, last, next, addresses.newest(), branched};
    }

    /// Whether the address packet at `at` repeats the address of the block at `now`.
    [[nodiscard, gnu::noinline]] static bool repeats(RecentAddresses addresses, const std::uint8_t* at, bool a64,
                                                     TargetFinder targets, std::ptrdiff_t now) {
        addresses.take(at);
        return targets.find({addresses.newest(), a64}) == now;
    }

    /// Looks up the place of execution. Returns whether links can be followed from there: not while pushes to the
    /// return stack are forbidden, since the loops push calls without asking.
    [[nodiscard]] bool follows_links() { return committed_.state().may_push && follower_.find_position() >= 0; }

    /// Maximum number of rows that wait: no unit has more elements, and a damaged MAXSPEC must not exhaust memory.
    static constexpr std::size_t most_waiting = std::size_t{1} << 20;
    /// Number of rows that are queued before due rows are followed: as many as fit the first-level cache.
    static constexpr std::size_t most_rows = 256;

    /// The inner loop that reads packets of a unit that speculates: queues atoms, addresses, cycle counts and
    /// timestamps, commits, cancels, and has due rows followed after each `most_rows`. Impossible packets are left to
    /// the call for single packets.
    [[gnu::noinline]] const std::uint8_t* take_waiting(const std::uint8_t* const first, const std::uint8_t* const end,
                                                       Offset here) {
        const std::uint8_t* const stop = end - most_plain_bytes;
        const std::uint8_t* at = first;
        const std::uint64_t most_depth = config_.max_speculation;
        std::ptrdiff_t further_bytes = 0;
        RecentAddresses addresses(assembler_.addresses());
        bool goes_on = true;
        while (goes_on && at < stop && waiting_.size() + most_rows <= most_waiting) {
            // A cycle count adds up to two rows: the loop ends at the first row beyond `most_rows`.
            auto [row, depth, undelivered] = waiting_.room(most_rows + 2);
            const follow::WaitingRow* const end_of_room = row + most_rows;
            while (at < stop && row < end_of_room) {
                const std::uint8_t header = *at;
                const Offset offset = here + static_cast<std::uint64_t>(at - first);
                if (is_atom(header)) {
                    *row = atom_rows[header & 0x3fU];
                    row->at = offset;
                    undelivered += row->weight;
                    depth = std::min(depth + row->weight, most_depth);  // what exceeds it is committed
                    ++row;
                    ++at;
                } else if (is_address(header)) {
                    const unsigned bytes = addresses.take(at);
                    *row++ = follow::WaitingRow::of(follow::PackedAddress{addresses.newest()}, offset);
                    at += bytes;
                    further_bytes += bytes - 1;
                } else if (header == Commit::info.value && at[1] <= std::min<std::uint64_t>(depth, 0x7f)) {
                    // The number is one byte.
                    depth -= at[1];
                    at += 2;
                    ++further_bytes;
                } else {
                    waiting_.added({row, depth, undelivered});
                    static_assert(Timestamp::info.value < 0x20 && CycleCountF3::info.value < 0x20);
                    const std::size_t bytes =
                        header < 0x20 ? take_waiting_time(at, end, offset) : take_wrong_path(at, end, offset);
                    goes_on = bytes != 0;
                    if (!goes_on) break;
                    at += bytes;
                    further_bytes += static_cast<std::ptrdiff_t>(bytes) - 1;
                    const auto now = waiting_.room(0);
                    assert(now.row <= end_of_room + 1);
                    row = now.row;
                    depth = now.depth;
                    undelivered = now.undelivered;
                }
            }
            if (goes_on) waiting_.added({row, depth, undelivered});
            deliver_waiting();
        }
        addresses.give(assembler_.addresses());
        packets_ += static_cast<std::uint64_t>(at - first - further_bytes);
        return at;
    }
    /// Handles a Cancel or Mispredict packet that is possible and needs no commit. Returns its size; 0 if nothing was
    /// done.
    [[gnu::noinline]] std::size_t take_wrong_path(const std::uint8_t* at, const std::uint8_t* end, Offset offset) {
        using WrongPath = wire::PacketList<CancelF1, CancelF2, CancelF3, Mispredict>;
        struct {
            follow::Outcomes outcomes{};
            void add(Offset, const follow::Outcomes& atoms) { outcomes = atoms; }
        } queue;
        Request request;
        const Parsed parsed = wire::Dispatch<WrongPath>::parse(
            Bytes(at, end), [&](const auto& p, std::size_t) { request = assembler_(p, offset, queue); }, config_);
        if (parsed.step != Step::ok) return 0;
        const std::uint64_t added = queue.outcomes.count;
        const std::uint64_t depth = waiting_.depth() + added;
        if (depth > config_.max_speculation || request.cancel > depth) return 0;
        if (request.mispredict && request.cancel >= added && !waiting_.outcome_before(request.cancel - added)) return 0;
        if (added != 0) waiting_.add(offset, queue.outcomes);
        (void)waiting_.cancel(request.cancel);
        if (request.mispredict) (void)waiting_.mispredict();
        return parsed.bytes;
    }

    /// Handles a cycle count or timestamp. Returns its size; 0 if there is none, or if it commits more elements than
    /// exist; then nothing was done.
    [[gnu::noinline]] std::size_t take_waiting_time(const std::uint8_t* at, const std::uint8_t* end, Offset offset) {
        const PacketState& packets = assembler_.packets();
        if (const PlainCount count = PlainCount::at(at, packets, config_); count.bytes != 0) {
            if (!waiting_.commit(count.commit)) return 0;
            waiting_.add_before_waiting(offset, pack(count.element(packets.threshold())));
            return count.bytes;
        }
        const auto take = [&](const Timestamp& p, std::size_t) {
            Queue queue{*this};
            (void)assembler_(p, offset, queue);
        };
        const Parsed parsed = wire::Dispatch<wire::PacketList<Timestamp>>::parse(Bytes(at, end), take, config_);
        return parsed.step == Step::ok ? parsed.bytes : 0;
    }

    /// Delivers due elements.
    void deliver_waiting() {
        waiting_.hold();
        do {
            if (!waiting_.empty() && follows_links()) follow_waiting();
        } while (waiting_.deliver_first(Deliver{committed_}));
    }
    struct Deliver {
        Committed<Follower, Out>& committed;
        WM_INLINE void operator()(Offset at, const follow::Outcomes& outcomes) const { committed(at, outcomes); }
        void operator()(Offset at, const follow::PackedAddress& a) const {
            committed.commit(at, element::Address{unpack(a.value)});
        }
        void operator()(Offset at, const follow::PackedCount& count) const { committed.commit(at, unpack(count)); }
        void operator()(Offset at, const Element& element) const { committed(at, element); }
    };
    /// The inner loop for rows that are due: handles as many as links allow. Rows whose outcomes lead to an indirect
    /// branch need its address in the next row, or behind a cycle count. The first row that it does not take is left to
    /// Deliver. Precondition: follows_links(), and rows wait.
    [[gnu::noinline]] void follow_waiting() {
        using follow::Position;
        using Is = follow::WaitingRow::Is;
        follow::WaitingRow* row = waiting_.rows();
        std::uint64_t due = waiting_.due();
        if (row->weight > due || (row->is != Is::outcomes && row->is != Is::packed_address)) return;
        const std::uint64_t bytes = waiting_.rows_end()[-1].at.value - row->at.value + 1;
        if (bytes > 1U << 30) return;  // so that offsets fit 32 bits, as in take()
        typename Out::Run run(out_, row->at, bytes);
        const Position* const links = follower_.cache().links();
        std::ptrdiff_t now = follower_.position();
        const bool a64 = committed_.state().sf;
        const follow::WaitingRow* moved = nullptr;  // the last address
        TargetFinder targets(follower_.cache(), FlowTarget{pack(committed_.state().last), a64}.high_half());
        // If so, a range comes before any event.
        const auto is_due_outcome = [&](const follow::WaitingRow& r) {
            return r.is == Is::outcomes && r.weight <= due;
        };
        const auto address_follows = [&] {
            return row[1].is == Is::packed_address ||
                   (row[1].is == Is::packed_count && row[2].is == Is::packed_address);
        };
        if (is_due_outcome(*row)) run.goes_on_at(now);
        for (;; ++row) {
            if (row->is == Is::outcomes) {
                if (row->weight > due) break;
                follow::FewFollowed to{};
                if (row->value < follow::few_by_code.size()) {
                    // Commits come between outcomes, so most packets have one or two outcomes.
                    const follow::FewOutcomes& few = follow::few_by_code[row->value];
                    to = few.count <= 2 ? follow::follow_two(links, now, few, row->at, run)
                                        : follow::follow_few(links, now, few, row->at, run);
                    if (to.next < 0 && (to.next != follow::indirect || to.last < 0 || !address_follows()))
                        [[unlikely]] {
                        follow::take_back_few(links, now, few, run);
                        break;
                    }
                } else {
                    const follow::EachFollowed followed =
                        follow::follow_each(links, now, row->value, row->weight, address_follows(), row->at, run);
                    to = {followed.last, followed.next};
                    if (followed.count != row->weight) [[unlikely]] {
                        due -= followed.count;
                        row->value >>= followed.count;
                        row->weight -= followed.count;
                        now = to.next;
                        break;
                    }
                }
                due -= row->weight;
                now = to.next;
                if (now >= 0) continue;
                run.branched(to.last);
                if (row[1].is != Is::packed_address) continue;
                ++row;
            } else if (row->is == Is::packed_count) {
                run.event(row->at, flow_of(unpack(follow::PackedCount{row->value})));
                if (is_due_outcome(row[1])) run.goes_on_at(now);
                continue;
            } else if (row->is != Is::packed_address) {
                break;
            }
            const Position found = targets.find({row->value, a64});
            // If no branch separates them, the address must be the place of execution.
            if (now >= 0 && found != now) [[unlikely]]
                break;
            moved = row;
            now = found;
            if (now < 0) [[unlikely]] {
                ++row;
                break;
            }
            if (is_due_outcome(row[1])) run.goes_on_at(now);
        }
        waiting_.taken(row, due);
        if (moved != nullptr) {
            const follow::Place target = committed_.moved_to(unpack(moved->value));
            if (now < 0) follower_.set_place(target);
        }
        if (now >= 0) follower_.set_position(static_cast<Position>(now));
    }

    const Config config_;
    Out& out_;
    follow::Elements<Out> elements_;
    Follower follower_;
    Committed<Follower, Out> committed_;
    Assembler assembler_;
    Paths paths_;
    const bool direct_;  // nothing waits
    Waiting waiting_;
    Synchronisation synchronisation_;
    FastParser<Machine> parser_;
    struct Report {
        follow::Elements<Out>& elements;
        void operator()(const Gap& gap) const { elements.event(gap.first, gap); }
    } report_{elements_};
    std::uint64_t packets_ = 0;
};

}  // namespace waymark::etm4
