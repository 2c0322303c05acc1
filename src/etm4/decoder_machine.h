/// The decoder behind `Decoder` and `ParallelDecoder`, for each kind of output. A unit that does not speculate needs no
/// queue: elements are delivered as their packets come, and atoms and addresses of known blocks take an inner loop.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "elements.h"
#include "recent_addresses.h"
#include "waymark/etm4/parser.h"
#include "waymark/follow/few_outcomes.h"
#include "waymark/follow/follower.h"
#include "waymark/follow/parallel.h"

namespace waymark::etm4 {

/// What is known after the address packet that follows a Trace Info, for a unit that does not speculate: all that later
/// packets depend on, but for identifiers that the context packet omits.
struct CutState {
    PacketState packets;
    KnownAddress place;
    ContextFields fields;
    Config config;
    std::optional<std::uint32_t> context_id{}, vmid{};  ///< assumed, where `fields` has none

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

/// Atom packets of up to five atoms taken apart; count 0: more.
inline constexpr std::array<follow::FewOutcomes, 64> few_atoms = [] {
    std::array<follow::FewOutcomes, 64> all;
    for (unsigned i = 0; i < 64; ++i)
        if (atom_table[i].count <= follow::FewOutcomes::most) all[i] = {atom_table[i].e, atom_table[i].count};
    return all;
}();

template <class Out>
class Machine {
    using Follower = follow::Follower<Out>;

public:
    /// `logs`: of several machines that decode the same stream.
    Machine(const Config& config, const isa::CodeReader& code, Out& out, std::shared_ptr<follow::BlockLogs> logs = {})
        : config_(config),
          out_(out),
          elements_(out),
          follower_(rules(config_), code, elements_, std::move(logs)),
          committed_(config_, code, elements_, follower_),
          assembler_(config_),
          direct_(config.max_speculation == 0),
          parser_(config_, *this) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void reset() { parser_.reset(); }
    void finish() {
        parser_.finish();
        end_of_flow(parser_.offset(), false);
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
        end_of_flow(gap.first, false);
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
            if (!contradicts(p, assembler_, waiting_)) return add(p, at);
            end_of_flow(at.first, false);
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
        if (!config_.ete() || !synchronisation_.waits_for_info()) return;
        synchronisation_.taken(at, report_);
        elements_.event(at.first, flow::Mark{flow::Mark::Kind::unit_events, p.events, 0});
    }
    void operator()(const auto& p, Extent at) {
        ++packets_;
        if (synchronisation_.synchronised()) add(p, at);
    }

    /// Atoms and addresses of blocks that are known, as many as come one after another; gives back where they end. All
    /// else is left to the calls for single packets, which do the same one by one.
    const std::uint8_t* take(const std::uint8_t* at, const std::uint8_t* end, Offset here) {
        if (!direct_ || follower_.position() < 0 || assembler_.pending() || !committed_.state().may_push ||
            static_cast<std::size_t>(end - at) < most_plain_bytes)
            return at;
        // So that offsets less the base of a batch stay in 32 bits.
        end = at + std::min<std::ptrdiff_t>(end - at, 1 << 30);
        follow::Outcomes rest{};
        const std::uint8_t* const stopped = take_plain(at, end, here, rest);
        if (rest.count != 0) committed_(here + static_cast<std::uint64_t>(stopped - at - 1), rest);
        return stopped;
    }

    // ---- for follow::Parallel, of units that do not speculate

    struct Snapshot {
        ParserProgress parser;
        Assembler::State assembler;
        CommittedState committed;
        Synchronisation synchronisation;
        follow::FollowerState follower;
        typename follow::Elements<Out>::State elements;
        Uncommitted waiting;
    };
    [[nodiscard]] Snapshot snapshot() const {
        return {parser_.progress(),
                assembler_.snapshot(),
                committed_.state(),
                synchronisation_,
                follower_.snapshot(),
                elements_.state(),
                waiting_};
    }
    void resume(const Snapshot& snapshot) {
        parser_.resume(snapshot.parser);
        assembler_.resume(snapshot.assembler);
        committed_.resume(snapshot.committed);
        synchronisation_ = snapshot.synchronisation;
        elements_.resume(snapshot.elements);
        follower_.resume(snapshot.follower);
        waiting_ = snapshot.waiting;
    }
    void begin_at(Offset at, const CutState& state) {
        parser_.resume_at(at);
        assembler_.resume({state.packets, {}});
        CommittedState committed;
        committed.context = state.context();
        committed.context_known = true;
        committed.sf = state.fields.sf;
        committed.last = state.place;
        committed_.resume(committed);
        synchronisation_.resume_synchronised();
        elements_.resume({.context = committed.context});
        follower_.resume({.context = committed.context,
                          .place = committed_.place_of(state.place, state.fields.sf),
                          .known = !config_.p0_loads && !config_.p0_stores});
        waiting_ = {};
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
    struct Late {};
    [[nodiscard]] Late late() const { return {}; }
    static void complete_late(const Config&, const Snapshot&, const Late&, const follow::Batches&, Snapshot&) {}

private:
    /// Where the assembler's elements go: at once to the follower, or to those that wait.
    struct Queue {
        Machine& machine;
        void add(Offset at, const follow::Outcomes& outcomes) {
            if (machine.direct_)
                machine.committed_(at, outcomes);
            else
                machine.waiting_.add(at, outcomes);
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
        } else {
            const std::uint64_t depth = waiting_.depth();
            const std::uint64_t excess = depth > config_.max_speculation ? depth - config_.max_speculation : 0;
            possible = possible && waiting_.size() <= most_waiting &&
                       waiting_.commit(std::max(request.commit, excess), committed_) &&
                       waiting_.cancel(request.cancel) && (!request.mispredict || waiting_.mispredict());
            if (possible) waiting_.release(committed_);
        }
        if (possible) [[likely]]
            return;
        end_of_flow(at.first, false);
        synchronisation_.lose(at.first, GapReason::malformed_packet);
    }
    void discard(Extent at, bool overflow) {
        ++packets_;
        if (!synchronisation_.synchronised()) return;
        end_of_flow(at.first, overflow);
        synchronisation_.lose(at.end(), GapReason::unsynchronised);
    }
    void end_of_flow(Offset at, bool overflow) {
        const std::size_t lost = waiting_.discard(committed_) + (assembler_.pending() ? 1 : 0);
        if (lost != 0) elements_.event(at, flow::Mark{flow::Mark::Kind::uncommitted, lost, 0});
        assembler_.forget();
        committed_.forget(overflow);
    }

    /// The longest packet that `take` reads, and the bytes it looks at beyond one.
    static constexpr std::size_t most_plain_bytes = 16;

    /// Short, long and exact match addresses, without context.
    [[nodiscard]] static constexpr bool is_address(std::uint8_t header) {
        constexpr std::uint32_t headers = [] {
            std::uint32_t all = 0;
            for (unsigned i = 0; i < 16; ++i) {
                const auto h = static_cast<std::uint8_t>(0x90 + i);
                all |= is_header<ShortAddress>(h) || is_header<LongAddress>(h) || is_header<ExactMatchAddress>(h)
                           ? 1U << i
                           : 0U;
            }
            return all;
        }();
        return header >> 4 == 9 && (headers >> (header & 15U) & 1U) != 0;
    }

    /// `rest`: outcomes of the last packet taken that could not be followed along links.
    [[gnu::noinline]] const std::uint8_t* take_plain(const std::uint8_t* const first, const std::uint8_t* const end,
                                                     Offset here, follow::Outcomes& rest) {
        using follow::Position;
        typename Out::Run run(out_, here, Bytes(first, end));
        const Position* const links = follower_.cache().links();
        const std::uint8_t* const stop = end - most_plain_bytes;
        const std::uint8_t* at = first;
        std::ptrdiff_t now = follower_.position();
        std::ptrdiff_t further_bytes = 0;  // of packets, after their first ones
        RecentAddresses addresses(assembler_.addresses(), committed_.state().sf);
        follow::BlockCache::Window window = follower_.cache().window(addresses.high_half());
        bool moved = false;  // an address was read
        while (at < stop) {
            const std::uint8_t header = *at;
            if (header >= 0xc0) {
                const follow::FewOutcomes& few = few_atoms[header & 0x3fU];
                Position next;
                if (few.count != 0) {
                    const follow::FewFollowed followed = follow::follow_few(links, now, few, at, run);
                    next = followed.next;
                    // A target that only the trace gives must be the next packet.
                    if (next < 0 && (next != follow::indirect || followed.last < 0 || !is_address(at[1])))
                        [[unlikely]] {
                        follow::take_back_few(links, now, few, run);
                        break;
                    }
                } else {
                    const Atoms atoms = atom_table[header & 0x3fU];
                    next = static_cast<Position>(now);
                    unsigned i = 0;
                    for (; i < atoms.count; ++i) {
                        const std::ptrdiff_t edge = next + static_cast<std::ptrdiff_t>(atoms.e >> i & 1U);
                        const Position to = links[edge];
                        if (to < 0 && (to != follow::indirect || i + 1U != atoms.count || !is_address(at[1])))
                            [[unlikely]]
                            break;
                        run.reserve(at);
                        run.put(at, flow::no_cycles, 1, edge);
                        next = to;
                    }
                    if (i != atoms.count) [[unlikely]] {
                        if (i == 0) break;
                        rest = {atoms.e >> i, static_cast<std::uint8_t>(atoms.count - i)};
                        now = next;
                        ++at;
                        break;
                    }
                }
                now = next;
                ++at;
                if (next >= 0) continue;
            } else if (!is_address(header)) {
                break;
            }
            const unsigned bytes = addresses.take(at);
            at += bytes;
            further_bytes += bytes - 1;
            moved = true;
            if (addresses.high_half() != window.high_half) [[unlikely]]
                window = follower_.cache().window(addresses.high_half());
            now = addresses.regular() ? window.starts.find(addresses.key()) : follow::nowhere;
            if (now < 0) [[unlikely]]
                break;
        }
        if (moved) {
            addresses.give(assembler_.addresses());
            const follow::Place target = committed_.moved_to(assembler_.addresses().entry(0));
            if (now < 0) follower_.set_place(target);
        }
        if (now >= 0) follower_.set_position(static_cast<Position>(now));
        packets_ += static_cast<std::uint64_t>(at - first - further_bytes);
        return at;
    }

    const Config config_;
    Out& out_;
    follow::Elements<Out> elements_;
    Follower follower_;
    Committed<Follower, Out> committed_;
    Assembler assembler_;
    const bool direct_;  // nothing waits
    Uncommitted waiting_;
    Synchronisation synchronisation_;
    Parser<Machine> parser_;
    struct Report {
        follow::Elements<Out>& elements;
        void operator()(const Gap& gap) const { elements.event(gap.first, gap); }
    } report_{elements_};
    std::uint64_t packets_ = 0;
};

}  // namespace waymark::etm4
