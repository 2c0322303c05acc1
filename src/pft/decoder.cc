#include "waymark/pft/decoder.h"

#include <unordered_map>
#include <vector>

#include "elements.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/pft/parser.h"

namespace waymark::pft {

using isa::Instruction;
using isa::Waypoint;

namespace {

constexpr std::uint32_t nowhere = 0xffffffff;

/// Why a walk cannot reach a waypoint.
enum class Dead : std::uint8_t { no, no_memory, undefined, runaway };

/// A block and what follows it. Blocks are chained by outcome, so that the hot path follows links and looks nothing up.
struct Node {
    std::uint32_t edge{};               ///< block id * 2
    std::uint32_t taken = nowhere;      ///< next node after E, once known
    std::uint32_t not_taken = nowhere;  ///< next node after N, once known
    Dead dead{};
    flow::End end{};
    bool link{};
    Isa isa{}, target_isa{};
    std::uint32_t start{}, after{},
        target{};                  ///< addresses: first instruction, behind the last one, of a direct target
    std::uint32_t instructions{};  ///< 0: a dead node that fails at its first instruction
    std::uint32_t last{};          ///< address of the last instruction
};

/// The blocks met in one memory space, found by where they start.
class BlockCache {
public:
    BlockCache(const Config& config, const isa::CodeReader& code, const isa::Space& space)
        : config_(config), code_(code), space_(space) {}

    [[nodiscard]] const isa::Space& space() const { return space_; }
    [[nodiscard]] Node& operator[](std::uint32_t node) { return nodes_[node]; }

    /// The node that starts here, made at first sight.
    std::uint32_t find(Address address, Isa isa, flow::BlockTable& table) {
        const std::uint64_t key = address.value << 8 | static_cast<std::uint64_t>(isa);
        const auto [found, added] = by_start_.try_emplace(key, static_cast<std::uint32_t>(nodes_.size()));
        if (added) nodes_.push_back(build(address, isa, table));
        return found->second;
    }

private:
    Node build(Address start, Isa isa, flow::BlockTable& table) const {
        Node node;
        node.start = node.after = static_cast<std::uint32_t>(start.value);
        node.isa = isa;
        flow::Block block{.start = start.value, .isa = isa};
        Instruction instruction;
        for (;;) {
            if (node.after - node.start >= config_.max_walk_bytes) {
                node.dead = Dead::runaway;
                break;
            }
            const isa::Fetched fetched = isa::fetch(code_, space_, {node.after}, isa);
            if (fetched.bytes == 0) {
                node.dead = Dead::no_memory;
                break;
            }
            instruction = isa::decode_instr({node.after}, isa, fetched.opcode, fetched.bytes == 4,
                                            {.dmb_dsb_waypoints = config_.barrier_waypoints});
            if (instruction.undefined) {
                node.dead = Dead::undefined;
                break;
            }
            if (block.instructions == 0) block.section = fetched.section;
            ++block.instructions;
            block.bytes += instruction.bytes;
            block.last_bytes = instruction.bytes;
            node.last = node.after;
            node.after += instruction.bytes;
            if (instruction.waypoint != Waypoint::none) {
                block.end = node.end = block_end(instruction.waypoint);
                block.flags = block_flags(instruction);
                block.target = instruction.target.value;
                node.target = static_cast<std::uint32_t>(instruction.target.value);
                node.target_isa = instruction.target_isa;
                node.link = instruction.link;
                break;
            }
        }
        node.instructions = block.instructions;
        if (block.instructions != 0) node.edge = table.intern(block) * 2;
        return node;
    }

    const Config& config_;
    const isa::CodeReader& code_;
    const isa::Space space_;
    std::unordered_map<std::uint64_t, std::uint32_t> by_start_;
    std::vector<Node> nodes_;
};

}  // namespace

class Decoder::Machine {
public:
    Machine(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
        : config_(config), code_(code), out_(out), elements_(config_, out), parser_(config_, *this) {}

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
        return {parser_.pending(), async_seen_ ? async_end_ : parser_.pending()};
    }

    WM_INLINE void operator()(const Atom& p, Extent at) {
        ++packets_;
        if (!have_address_) [[unlikely]] {
            if (synced_) elements_.stray_cycles(at.first, p.outcome.cycles);
            return;
        }
        const std::uint32_t count = elements_.cycles(p.outcome.cycles);
        for (unsigned i = 0; i < p.outcome.atoms.count; ++i) {
            if (node_ == nowhere) [[unlikely]]
                node_ = cache_->find(place_.address, place_.isa, out_.table());
            const Node& node = (*cache_)[node_];
            if (node.dead != Dead::no) [[unlikely]] {
                give_up(node, at.first);
                return elements_.stray_cycles(at.first, p.outcome.cycles);
            }
            const bool e = p.outcome.atoms.e(i);
            out_.range(node.edge | (e ? 1U : 0U), at.first, count);
            if (e && (node.end == flow::End::indirect || (node.link && config_.return_stack))) [[unlikely]] {
                if (!take_with_return_stack(node, at.first)) {
                    if (i + 1U < p.outcome.atoms.count) elements_.stray_cycles(at.first, p.outcome.cycles);
                    return;
                }
                continue;
            }
            const std::uint32_t next = e ? node.taken : node.not_taken;
            node_ = next != nowhere ? next : chain(node_, e);
        }
    }

    void operator()(const BranchAddress& p, Extent at) {
        ++packets_;
        if (!synced_) return;
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
        if (!have_address_) return;
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
        synced_ = async_seen_ = false;
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
        if (node_ == nowhere) return place_;
        const Node& node = (*cache_)[node_];
        return {{node.start}, node.isa};
    }
    Node& here() {
        if (node_ == nowhere) node_ = cache_->find(place_.address, place_.isa, out_.table());
        return (*cache_)[node_];
    }

    /// First time this outcome leads on: remembers where.
    std::uint32_t chain(std::uint32_t from, bool e) {
        const Node node = (*cache_)[from];  // a copy: making the next one may move it
        const std::uint32_t next = e ? cache_->find({node.target}, node.target_isa, out_.table())
                                     : cache_->find({node.after}, node.isa, out_.table());
        Node& known = (*cache_)[from];
        (e ? known.taken : known.not_taken) = next;
        return next;
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
            place_ = {entry.address, entry.isa};
            node_ = nowhere;
            if (entry.ns != state_.ns) {
                state_.ns = entry.ns;
                enter_space();
            }
            elements_.context(at, state_);
        } else {
            node_ = node.taken != nowhere ? node.taken : chain(node_, true);
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
        Address address = from.address;
        Dead dead = Dead::no;
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
            // At the update's address stands the instruction that has raised its exception.
            if (instruction.undefined && address != update) {
                dead = Dead::undefined;
                break;
            }
            if (instruction.waypoint != Waypoint::none) break;
            if (block.instructions == 0) block.section = fetched.section;
            ++block.instructions;
            block.bytes += instruction.bytes;
            block.last_bytes = instruction.bytes;
            address = advance(address, instruction.bytes);
        } while (address <= update && address >= from.address);
        if (block.instructions != 0) out_.range(out_.table().intern(block) * 2, at);
        if (dead != Dead::no) return report_dead(dead, address, at);
        node_ = nowhere;
        place_ = {address, from.isa};
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
        have_address_ = true;
        node_ = nowhere;
        place_ = state.place();
        if (moved) enter_space();
        elements_.context(at, state);
        if (state.isa == Isa::jazelle) lose_address();
    }

    /// Same place, other context.
    void change_context(const CoreState& state, Offset at) {
        if (!(state.space() == state_.space())) {
            if (have_address_) place_ = place();
            node_ = nowhere;
            state_ = state;
            enter_space();
        }
        elements_.context(at, state);
    }

    void enter_space() {
        const isa::Space space = code_.view(state_.space());
        for (const auto& cache : caches_)
            if (cache->space() == space) {
                cache_ = cache.get();
                return;
            }
        // A stream of nothing but new contexts must not fill the memory.
        if (caches_.size() == most_caches) caches_.clear();
        caches_.push_back(std::make_unique<BlockCache>(config_, code_, space));
        cache_ = caches_.back().get();
    }

    void lose_address() {
        have_address_ = false;
        node_ = nowhere;
        stack_.clear();
    }

    const Config config_;
    const isa::CodeReader& code_;
    flow::BatchWriter& out_;
    Elements elements_;
    Parser<Machine> parser_;

    CoreState state_;         // CurrentState, but for address and instruction set: those are node_'s or place_'s
    CoreState last_context_;  // LastState, but for what stands in the next two
    Place last_;
    bool last_alt_isa_ = false;
    bool synced_ = false, have_address_ = false, async_seen_ = false;
    Offset async_end_{};
    ReturnStack stack_;

    static constexpr std::size_t most_caches = 64;
    std::vector<std::unique_ptr<BlockCache>> caches_;
    BlockCache* cache_ = nullptr;   // of state_'s space
    std::uint32_t node_ = nowhere;  // where execution has come to, or
    Place place_;                   // so, while no node is known
    std::uint64_t packets_ = 0;
};

Decoder::Decoder(const Config& config, const isa::CodeReader& code, flow::BatchWriter& out)
    : machine_(std::make_unique<Machine>(config, code, out)) {}
Decoder::~Decoder() = default;
void Decoder::feed(Bytes bytes) { machine_->feed(bytes); }
void Decoder::reset() { machine_->reset(); }
void Decoder::finish() { machine_->finish(); }
std::uint64_t Decoder::packets() const { return machine_->packets(); }
std::array<Offset, 2> Decoder::pending() const { return machine_->pending(); }

}  // namespace waymark::pft
