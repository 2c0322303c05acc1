/// The decoder behind `Decoder` and `ParallelDecoder`, for each kind of output.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "block_cache.h"
#include "elements.h"
#include "waymark/pft/parser.h"

namespace waymark::pft {

/// An atom byte taken apart: bit i of `e` is the outcome of atom i, counted from the oldest.
struct AtomByte {
    std::uint8_t count = 0;  ///< 0: no such packet
    std::uint8_t e = 0;
};
inline const std::array<AtomByte, 256> atom_bytes = [] {
    std::array<AtomByte, 256> all;
    for (unsigned byte = 0; byte < 256; ++byte) {
        const auto wire = static_cast<std::uint8_t>(byte);
        if ((wire & Atom::info.mask) != Atom::info.value) continue;
        Cursor cursor(Bytes(&wire, 1));
        Atoms atoms;
        AtomPattern::read(cursor, atoms);
        if (cursor.step() != Step::ok) continue;
        all[byte].count = atoms.count;
        for (unsigned i = 0; i < atoms.count; ++i)
            all[byte].e = static_cast<std::uint8_t>(all[byte].e | (atoms.e(i) ? 1U : 0U) << i);
    }
    return all;
}();

/// What a decoder knows of its stream, beside the blocks of the program.
struct MachineState {
    CoreState state_;         // CurrentState, but for address and instruction set: those are position_'s
    CoreState last_context_;  // LastState, but for what stands in the next two
    Place last_;
    bool last_alt_isa_ = false;
    bool synced_ = false, have_address_ = false, async_seen_ = false;
    bool vmid_due_ = false;  // an I-sync came, and no VMID since, though VMIDs are traced (2.6)
    Offset async_end_{};
    ReturnStack stack_;
    Place place_;                 // where execution has come to, unless Machine::at_ knows
    bool plain_context_ = false;  // last_context_ is state_'s
    Offset isync_end_{};          // behind the last I-sync
};

template <class Out>
class Machine : private MachineState {
public:
    /// `logs`: of several machines that decode the same stream.
    Machine(const Config& config, const isa::CodeReader& code, Out& out, std::shared_ptr<BlockLogs> logs = {})
        : config_(config),
          code_(code),
          out_(out),
          elements_(config_, out),
          parser_(config_, *this),
          logs_(std::move(logs)) {}

    void feed(Bytes bytes) { parser_.feed(bytes); }
    void reset() { parser_.reset(); }
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

    /// All that decides what the bytes to come mean: another machine can go on from there.
    struct Snapshot {
        ParserProgress parser;
        MachineState machine;
        typename Elements<Out>::State elements;
    };
    [[nodiscard]] Snapshot snapshot() {
        if (have_address_) place_ = place();
        return {parser_.progress(), *this, elements_.state()};
    }
    void resume(const Snapshot& snapshot) {
        parser_.resume(snapshot.parser);
        MachineState::operator=(snapshot.machine);
        elements_.resume(snapshot.elements);
        at_ = nowhere;
        cache_ = nullptr;
        if (have_address_) enter_space();
    }
    /// Begins inside a stream, directly behind an I-sync that gave this state. What the I-sync does not give: of the
    /// timestamps see Elements::begin_inside; the VMID is in `state`.
    void begin_behind_isync(Offset at, const CoreState& state) {
        parser_.resume_at(at);
        MachineState::operator=({});
        synced_ = have_address_ = plain_context_ = true;
        vmid_due_ = config_.vmid_trace && config_.minor_version >= 1;  // v1.0 has none (2.8)
        isync_end_ = at;
        remember(state);
        state_ = state;
        stand_at(state.place());
        enter_space();
        elements_.begin_inside(state.context());
    }
    /// Whether all bytes up to `at` were read, the last of them an I-sync that gave this state: then what comes means
    /// what it means behind `begin_behind_isync`.
    [[nodiscard]] static bool is_behind_isync(const Snapshot& s, Offset at, const CoreState& state) {
        const MachineState& m = s.machine;
        return m.synced_ && m.have_address_ && m.isync_end_ == at && s.parser.at_packet(at) && m.state_ == state;
    }
    /// The VMID, which an I-sync does not give.
    [[nodiscard]] static std::optional<std::uint32_t> vmid(const Snapshot& s) { return s.machine.state_.vmid; }
    [[nodiscard]] Offset offset() const { return parser_.offset(); }
    [[nodiscard]] Elements<Out>& elements() { return elements_; }

    WM_INLINE void operator()(const Atom& p, Extent at) {
        ++packets_;
        if (vmid_due_) [[unlikely]]
            vmid_missing(at.first);
        if (!have_address_) [[unlikely]] {
            if (synced_) unplaced(p, 0, at.first);
            return;
        }
        const std::uint32_t count = elements_.cycles(p.outcome.cycles);
        for (unsigned i = 0; i < p.outcome.atoms.count; ++i) {
            const Node& node = here();
            if (node.dead != Dead::no) [[unlikely]] {
                give_up(node, at.first);
                return unplaced(p, i, at.first);
            }
            const bool e = p.outcome.atoms.e(i);
            out_.range(node.edge | (e ? 1U : 0U), at.first, count);
            if (e && (node.end == flow::End::indirect || (node.link && config_.return_stack))) {
                if (!take_with_return_stack(node, at.first)) {
                    if (i + 1U < p.outcome.atoms.count) unplaced(p, i + 1, at.first);
                    return;
                }
            } else {
                follow(node, e);
            }
        }
    }

    /// Atoms and plain branch packets of blocks that are known, as many as come one after another; gives back where
    /// they end. All else is left to the calls for single packets, which do the same one by one.
    const std::uint8_t* take(const std::uint8_t* at, const std::uint8_t* end, Offset here) {
        if (at_ < 0 || static_cast<std::size_t>(end - at) < most_plain_bytes) return at;
        // So that offsets less the base of a batch stay in 32 bits.
        end = at + std::min<std::ptrdiff_t>(end - at, 1 << 30);
        return config_.cycle_accurate ? take_plain<true>(at, end, here) : take_plain<false>(at, end, here);
    }

    void operator()(const BranchAddress& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        if (vmid_due_) [[unlikely]]
            vmid_missing(at.first);
        const CoreState target = branch_target(p, last_state(), config_);
        if (p.exception() != 0) return exception(p, target, at.first);
        if (have_address_) {
            const Node& node = here();
            if (node.dead == Dead::no) {
                out_.range(node.edge | 1U, at.first, elements_.cycles(p.cycles));
                if (node.end != flow::End::indirect &&
                    (node.target != target.address.value || node.target_isa != target.isa))
                    elements_.event(
                        at.first, flow::Inconsistency{flow::Conflict::branch_disagrees, {node.target}, target.address});
                if (node.link && config_.return_stack) push(node);
                return go(target, at.first);
            }
            give_up(node, at.first);
        }
        elements_.stray_cycles(at.first, p.cycles);
        go(target, at.first);
    }

    void operator()(const ISync& p, Extent at) {
        ++packets_;
        if (!synced_) elements_.waited_for_isync(async_end_, at.first);
        const CoreState state = isync_state(p, state_, config_);
        if (!synced_ || p.reason != ISyncReason::periodic) {
            elements_.trace_on(at.first, p);
        } else if (have_address_) {
            const Place reached = place();
            if (state.address != reached.address || state.isa != reached.isa ||
                (state_.context_id.has_value() && state.context_id != state_.context_id))
                elements_.event(at.first,
                                flow::Inconsistency{flow::Conflict::sync_disagrees, reached.address, state.address});
        }
        synced_ = true;
        async_seen_ = false;
        isync_end_ = at.end();
        vmid_due_ = config_.vmid_trace && config_.minor_version >= 1;  // v1.0 has none (2.8)
        stack_.clear();
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
        if (!have_address_) return elements_.event(at.first, flow::Reached{update.address});
        const Place from = place();
        if (update.address < from.address) {
            elements_.event(at.first, flow::Inconsistency{flow::Conflict::update_behind, from.address, update.address});
            return;
        }
        walk_to_update(from, update.address, at.first);
    }

    void operator()(const ContextId& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        CoreState state = state_;
        last_context_.context_id = state.context_id = p.context_id;
        change_context(state, at.first);
    }
    void operator()(const Vmid& p, Extent at) {
        ++packets_;
        if (!synced_) return;
        CoreState state = state_;
        last_context_.vmid = state.vmid = p.vmid;
        vmid_due_ = false;
        change_context(state, at.first);
    }
    void operator()(const pft::ExceptionReturn&, Extent at) { plain_event(at, flow::ExceptionReturn{}); }
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
    /// As before the first byte: nothing is known of the core. Blocks stay.
    void forget() {
        synced_ = async_seen_ = vmid_due_ = false;
        lose_address();
        state_ = last_context_ = {};
        last_ = {};
        last_alt_isa_ = false;
        cache_ = nullptr;
    }

    void plain_event(Extent at, flow::What what) {
        ++packets_;
        if (synced_) elements_.event(at.first, std::move(what));
    }

    /// Atoms from number `from` on that belong to no known instruction.
    void unplaced(const Atom& p, unsigned from, Offset at) {
        elements_.unplaced(at, p.outcome.atoms, from);
        elements_.stray_cycles(at, p.outcome.cycles);
    }
    /// Once for each I-sync.
    [[gnu::noinline]] void vmid_missing(Offset at) {
        vmid_due_ = false;
        elements_.event(
            at, flow::Inconsistency{flow::Conflict::vmid_missing, have_address_ ? place().address : Address{}, {}});
    }

    /// LastState, put together: address and instruction set from `last_`, the rest from `last_context_`.
    [[nodiscard]] CoreState last_state() const {
        CoreState state = last_context_;
        state.address = last_.address;
        state.isa = last_.isa;
        state.alt_isa = last_alt_isa_;
        return state;
    }

    /// Where execution has come to. Precondition: have_address_.
    [[nodiscard]] Place place() {
        if (at_ < 0) return place_;
        const Node& node = cache_->node(at_);
        return {{node.start}, node.isa};
    }
    const Node& here() { return at_ >= 0 ? cache_->node(at_) : cache_->find(place_, out_, at_); }

    void stand_at(Place place) {
        at_ = nowhere;
        place_ = place;
    }

    /// Goes on behind a node by its own outcome. The first time, remembers where that leads.
    void follow(const Node& from, bool e) {
        const Position known = cache_->links()[at_ + (e ? 1 : 0)];
        if (known >= 0) {
            at_ = known;
            return;
        }
        place_ = e ? Place{{from.target}, from.target_isa} : Place{{from.after}, from.isa};
        const bool chains = !(e && from.link && config_.return_stack);
        const Position before = at_;
        cache_->find(place_, out_, at_);
        if (at_ >= 0 && chains) cache_->link(before, e, at_);
    }

    /// The longest packet that `take` reads, and the bytes it reads at once.
    static constexpr std::size_t most_plain_bytes = 16;

    template <bool cycle_accurate>
    [[gnu::noinline]] const std::uint8_t* take_plain(const std::uint8_t* const first, const std::uint8_t* const end,
                                                     Offset here) {
        typename Out::Run run(out_, here, static_cast<std::size_t>(end - first));
        const Position* const links = cache_->links();
        const std::uint8_t* at = first;
        Position now = at_;
        std::uint64_t packets = 0;
        while (static_cast<std::size_t>(end - at) >= most_plain_bytes) {
            const Offset offset = here + static_cast<std::uint64_t>(at - first);
            if ((*at & Atom::info.mask) == Atom::info.value) {
                if constexpr (cycle_accurate) {
                    CycleAtom atom;
                    const unsigned bytes = CycleAtomField::read_at_once(at, atom);
                    const Position edge = now + (atom.atoms.n == 0 ? 1 : 0);
                    const Position next = links[edge];
                    if (next < 0 || bytes == 0) [[unlikely]]
                        break;
                    run.put(offset, std::min(atom.cycles, flow::no_cycles - 1), 1, edge);
                    now = next;
                    at += bytes;
                } else {
                    const AtomByte atoms = atom_bytes[*at];
                    // All five, whether they are there or not: to ask costs more.
                    const Position edge_0 = now + (atoms.e & 1);
                    const Position edge_1 = links[edge_0] + (atoms.e >> 1 & 1);
                    const Position edge_2 = links[edge_1] + (atoms.e >> 2 & 1);
                    const Position edge_3 = links[edge_2] + (atoms.e >> 3 & 1);
                    const Position edge_4 = links[edge_3] + (atoms.e >> 4);
                    const std::array<Position, 6> after{nowhere,       links[edge_0], links[edge_1],
                                                        links[edge_2], links[edge_3], links[edge_4]};
                    const Position next = after[atoms.count];
                    if (next < 0) [[unlikely]]
                        break;
                    run.put(offset, flow::no_cycles, atoms.count, edge_0, edge_1, edge_2, edge_3, edge_4);
                    now = next;
                    ++at;
                }
            } else if ((*at & BranchAddress::info.mask) == BranchAddress::info.value) {
                if (links[now + 1] != indirect || !plain_context_) [[unlikely]]
                    break;
                Target sent;
                std::uint32_t cycles = flow::no_cycles;
                std::size_t bytes = TargetField::read_at_once(at, sent);
                if (cycle_accurate || bytes == 0) {
                    Cursor cursor(Bytes(at, most_plain_bytes));
                    BranchAddress p;
                    wire::Reader reader(cursor);
                    BranchAddress::fields(reader, p, config_);
                    if (cursor.step() != Step::ok || p.target.information) [[unlikely]]
                        break;
                    sent = p.target;
                    bytes = cursor.consumed();
                    if (cycle_accurate) cycles = std::min(p.cycles, flow::no_cycles - 1);
                }
                Place target = complete(sent, last_);
                target.isa = with_alt_isa(target.isa, last_alt_isa_);
                if (target.isa != Isa::a32 && target.isa != Isa::t32) [[unlikely]]
                    break;
                run.put(offset, cycles, 1, now + 1);
                last_ = target;
                at += bytes;
                ++packets;
                now = cache_->peek(BlockCache::key(static_cast<std::uint32_t>(target.address.value), target.isa));
                if (now < 0) [[unlikely]] {
                    stand_at(target);
                    packets_ += packets;
                    return at;
                }
                continue;
            } else {
                break;
            }
            ++packets;
        }
        at_ = now;
        packets_ += packets;
        return at;
    }

    void push(const Node& node) { stack_.push({{node.after}, node.isa, state_.ns}); }

    /// An E atom whose next address, or whose own, concerns the return stack (4.5). The pop comes before the push.
    /// False: where it went is unknown.
    bool take_with_return_stack(const Node& at_node, Offset at) {
        const Node node = at_node;
        const bool ns = state_.ns;
        if (node.end == flow::End::indirect) {
            if (!config_.return_stack || stack_.empty()) {
                elements_.event(at, flow::Inconsistency{flow::Conflict::no_return_address, {node.last}, {}});
                lose_address();
                return false;
            }
            const ReturnStack::Entry entry = stack_.pop();
            stand_at({entry.address, entry.isa});
            if (entry.ns != state_.ns) {
                state_.ns = entry.ns;
                plain_context_ = false;
                enter_space();
            }
            elements_.context(at, state_);
        } else {
            follow(node, true);
        }
        if (config_.return_stack && node.link) stack_.push({{node.after}, node.isa, ns});
        return true;
    }

    void exception(const BranchAddress& p, const CoreState& target, Offset at) {
        flow::Exception e{p.exception(), {}, {}, elements_.cycles(p.cycles)};
        if (have_address_) e.preferred_return = place().address;
        const bool debug_entry = p.exception() == 1;
        if (!debug_entry) e.vector = target.address;
        elements_.event(at, e);
        if (debug_entry) {
            remember(target);
            return lose_address();
        }
        go(target, at);
    }

    /// A walk that ends at an address, not at a waypoint: not worth a node.
    void walk_to_update(Place from, Address update, Offset at) {
        flow::Block block{.start = from.address.value, .isa = from.isa};
        Address address = from.address, last = address;
        Dead dead = Dead::no;
        isa::ItBlock it;
        do {
            if (static_cast<std::uint32_t>(address.value - from.address.value) >= config_.max_walk_bytes) {
                dead = Dead::runaway;
                break;
            }
            const isa::Fetched fetched = isa::fetch(code_, state_.space(), address, from.isa);
            if (fetched.bytes == 0) {
                dead = Dead::no_memory;
                break;
            }
            const Instruction instruction = isa::decode_instr(address, from.isa, fetched.opcode, fetched.bytes == 4,
                                                              {.dmb_dsb_waypoints = config_.barrier_waypoints});
            const bool may_be_passed = it.next(fetched, from.isa);
            // At the update's address stands the instruction that has raised its exception.
            if (instruction.undefined && address != update && !may_be_passed) {
                dead = Dead::undefined;
                break;
            }
            last = address;
            if (instruction.waypoint != Waypoint::none) break;
            if (block.instructions == 0) block.section = fetched.section;
            ++block.instructions;
            block.bytes += instruction.bytes;
            block.last_bytes = instruction.bytes;
            address = advance(address, instruction.bytes);
        } while (address <= update && address >= from.address);
        if (block.instructions != 0) out_.range(out_.table().intern(block) * 2, at);
        if (dead != Dead::no) {
            report_dead(dead, address, at);
            return elements_.event(at, flow::Reached{update});
        }
        if (last != update) elements_.event(at, flow::Inconsistency{flow::Conflict::update_disagrees, last, update});
        stand_at({address, from.isa});
    }

    /// A dead node: the instructions before the failure, the failure, and flow is unknown.
    void give_up(const Node& node, Offset at) {
        const Dead dead = node.dead;
        const Address after{node.after};
        if (node.instructions != 0) out_.range(node.edge, at);
        report_dead(dead, after, at);
    }
    void report_dead(Dead dead, Address at_address, Offset at) {
        if (dead == Dead::no_memory)
            elements_.event(at, flow::NoMemory{at_address});
        else if (dead == Dead::undefined)
            elements_.event(at, flow::Inconsistency{flow::Conflict::undefined_reached, at_address, {}});
        else
            elements_.event(at, flow::Inconsistency{flow::Conflict::runaway_walk, at_address, {}});
        lose_address();
    }

    void remember(const CoreState& state) {
        last_context_ = state;
        last_ = state.place();
        last_alt_isa_ = state.alt_isa;
    }

    /// Sets both states; flow goes on there.
    void go(const CoreState& state, Offset at) {
        remember(state);
        const bool moved = cache_ == nullptr || !(state.space() == state_.space());
        state_ = state;
        have_address_ = plain_context_ = true;
        stand_at(state.place());
        if (moved) enter_space();
        elements_.context(at, state);
        if (state.isa == Isa::jazelle) lose_address();
    }

    /// Same place, other context.
    void change_context(const CoreState& state, Offset at) {
        if (!(state.space() == state_.space())) {
            if (have_address_) stand_at(place());
            state_ = state;
            enter_space();
        }
        elements_.context(at, state);
    }

    void enter_space() {
        find_cache();
        cache_->exchange(out_);
    }
    void find_cache() {
        const isa::Space space = code_.view(state_.space());
        for (const auto& cache : caches_)
            if (cache->space() == space) {
                cache_ = cache.get();
                return;
            }
        // A stream of nothing but new contexts must not fill the memory.
        std::size_t rows = 0;
        for (const auto& cache : caches_) rows += cache->rows();
        if (caches_.size() == most_caches || rows > most_rows) {
            caches_.clear();
            if (logs_) logs_->clear();
        }
        caches_.push_back(std::make_unique<BlockCache>(config_, code_, space, logs_ ? logs_->of(space) : nullptr));
        cache_ = caches_.back().get();
    }

    void lose_address() {
        have_address_ = false;
        at_ = nowhere;
        stack_.clear();
    }

    const Config config_;
    const isa::CodeReader& code_;
    Out& out_;
    Elements<Out> elements_;
    Parser<Machine> parser_;

    static constexpr std::size_t most_caches = 64, most_rows = std::size_t{1} << 21;
    const std::shared_ptr<BlockLogs> logs_;
    std::vector<std::unique_ptr<BlockCache>> caches_;
    BlockCache* cache_ = nullptr;  // of state_'s space
    Position at_ = nowhere;        // where execution has come to, or, if below 0, place_
    std::uint64_t packets_ = 0;
};

}  // namespace waymark::pft
