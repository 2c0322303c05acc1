/// The code between two waypoints, decoded once and cached.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waymark/core/spinning_mutex.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/walk.h"

namespace waymark::follow {

/// The properties of a trace unit that determine how its trace is followed.
struct Rules {
    WalkRules walk{};
    bool return_stack = false;  ///< the unit omits addresses that are on its return stack
    /// The time at which the decoder pops the target of a taken indirect branch from the return stack.
    enum class Indirect : std::uint8_t {
        pops,  ///< at once: an outcome without an address means that the stack had the target, and the security state
               ///< (PFT)
        waits  ///< when the next outcome comes, unless an address came before (ETMv4, ETE)
    } indirect = Indirect::pops;
    /// The trace has no packet for an exception return: a taken exception return instruction implies it (ETE).
    bool report_exception_returns = false;
};

/// The block is not known, or following a link is not enough.
inline constexpr Position nowhere = -2;
/// The position after a taken branch whose target comes from the trace or the return stack.
inline constexpr Position indirect = -4;
/// With a return stack: the position after a taken direct branch with link; see BlockCache::call_target.
inline constexpr Position call = -6;
/// With a return stack: the position after a taken branch with link whose target comes from the trace.
inline constexpr Position indirect_call = -8;
/// Positions of nodes that execution cannot pass: smaller than all other positions, by index.
inline constexpr Position first_dead = -16;

/// What the general calls need of a block; inner loops need its links only. Small, because large programs have many,
/// used in random order.
struct Node {
    Address start_address{}, target_address{};
    std::uint32_t bytes{};         ///< of all instructions
    std::uint32_t edge{};          ///< block id * 2
    std::uint32_t instructions{};  ///< 0: a node that fails at its first instruction
    std::uint8_t last_bytes{};     ///< of the last instruction
    Isa isa{}, target_isa{};
    flow::End end{};
    WalkEnd walk_end{};
    bool link{}, exception_return{};
    bool whole : 1 = false;         ///< the whole block is in one section; only if spaces share blocks
    bool always_taken : 1 = false;  ///< follow::always_taken: its other outcome has no link
    std::uint32_t section{};        ///< of the first instruction

    [[nodiscard]] Place start() const { return {start_address, isa}; }
    /// The target of a direct branch or barrier.
    [[nodiscard]] Place target() const { return {target_address, target_isa}; }
    /// The place after the last instruction.
    [[nodiscard]] Place after() const { return {advance(start_address, bytes, isa), isa}; }
    /// The last instruction.
    [[nodiscard]] Place last() const { return {advance(start_address, bytes - last_bytes, isa), isa}; }
    /// Whether execution can continue after it, because it ends with a waypoint instruction.
    [[nodiscard]] bool passable() const { return walk_end == WalkEnd::waypoint; }
};
static_assert(sizeof(Node) == 40);

/// Blocks and links that decoders of one stream share after learning them in one BlockStore.
class BlockLog {
public:
    struct Link {
        std::uint32_t edge{};
        Position to{};
    };
    struct Met {
        Node node;
        std::uint32_t space{};  ///< isa::Space::number
    };
    struct Part {
        std::vector<Met> nodes;
        std::vector<Link> links;

        [[nodiscard]] std::size_t size() const { return nodes.size() + links.size(); }
        void clear() {
            nodes.clear();
            links.clear();
        }
    };
    /// The part of the log that a decoder has read.
    struct Read {
        std::size_t nodes{}, links{};
    };

    /// Adds what one decoder has learned, and returns what others have added since. Nodes that a link connects come
    /// before the link or with it.
    void exchange(Part& mine, Part& theirs, Read& read) {
        const std::scoped_lock lock(mutex_);
        theirs.nodes.assign(all_.nodes.begin() + static_cast<std::ptrdiff_t>(read.nodes), all_.nodes.end());
        theirs.links.assign(all_.links.begin() + static_cast<std::ptrdiff_t>(read.links), all_.links.end());
        all_.nodes.insert(all_.nodes.end(), mine.nodes.begin(), mine.nodes.end());
        all_.links.insert(all_.links.end(), mine.links.begin(), mine.links.end());
        mine.clear();
        read = {all_.nodes.size(), all_.links.size()};
    }

private:
    SpinningMutex mutex_;
    Part all_;
};

/// The logs of one stream: one for each memory space, or one for all spaces that share a BlockStore.
class BlockLogs {
public:
    [[nodiscard]] std::shared_ptr<BlockLog> of(const isa::Space& space) {
        const std::scoped_lock lock(mutex_);
        for (const auto& [of, log] : logs_)
            if (of == space) return log;
        return logs_.emplace_back(space, std::make_shared<BlockLog>()).second;
    }
    /// For decoders that discard their caches, and would otherwise read the whole log again.
    void clear() {
        const std::scoped_lock lock(mutex_);
        logs_.clear();
    }

private:
    SpinningMutex mutex_;
    std::vector<std::pair<isa::Space, std::shared_ptr<BlockLog>>> logs_;
};

/// Beginnings of blocks, in 4 GB of addresses: an entry takes 8 bytes regardless of the size of an address.
class Starts {
public:
    explicit Starts(unsigned log2_size = 4)
        : starts_(std::size_t{1} << log2_size), mask_((1U << log2_size) - 1), shift_(32 - log2_size) {}

    /// A key from the low half of an address; instruction sets differ in bits that are 0 in the address. Only for
    /// places that are `regular`.
    [[nodiscard]] WM_INLINE static std::uint32_t key(std::uint32_t low, Isa isa) {
        // Branchless, since a program with both instruction sets would make the branch hard to predict.
        return low | static_cast<std::uint32_t>(isa == Isa::t32) | static_cast<std::uint32_t>(isa == Isa::a64) << 1;
    }
    /// Whether a place is A32, T32 or A64, at an address that such an instruction can have.
    [[nodiscard]] WM_INLINE static bool regular(const Place& place) {
        constexpr unsigned known = 1U << static_cast<unsigned>(Isa::a32) | 1U << static_cast<unsigned>(Isa::t32) |
                                   1U << static_cast<unsigned>(Isa::a64);
        return (known >> static_cast<unsigned>(place.isa) & 1) != 0 &&
               (place.address.value & (3U >> static_cast<unsigned>(place.isa == Isa::t32))) == 0;
    }

    struct Start {
        std::uint32_t key{};
        Position at = nowhere;
    };
    /// The present table, for inner loops: valid until a start is inserted.
    struct View {
        Start* starts;
        std::uint32_t mask, shift;

        /// The position of the block that begins there, or `nowhere` if it is not in the table. If the start is not in
        /// the first slot of its key, it takes that slot: so starts to which most branches lead are found at once.
        [[nodiscard]] WM_INLINE Position find(std::uint32_t key) const {
            Start& first = starts[slot(key, shift)];
            if (first.key == key || first.at == nowhere) [[likely]]
                return first.at;
            for (std::uint32_t i = slot(key, shift);;) {
                Start& start = starts[i = (i + 1) & mask];
                if (start.at == nowhere) return nowhere;
                if (start.key != key) continue;
                // All slots between are taken, so the other start is still found.
                std::swap(first, start);
                return first.at;
            }
        }
    };
    [[nodiscard]] WM_INLINE View view() const { return {starts_.data(), mask_, shift_}; }
    [[nodiscard]] WM_INLINE Position find(std::uint32_t key) const { return view().find(key); }
    /// Precondition: the key is not yet in the table.
    void insert(std::uint32_t key, Position at) {
        if (2 * ++met_ > starts_.size()) {
            const std::vector<Start> old = std::exchange(starts_, std::vector<Start>(2 * starts_.size()));
            mask_ = static_cast<std::uint32_t>(starts_.size() - 1);
            --shift_;
            for (const Start& start : old)
                if (start.at != nowhere) put(start);
        }
        put({key, at});
    }

private:
    [[nodiscard]] WM_INLINE static std::uint32_t slot(std::uint32_t key, std::uint32_t shift) {
        return static_cast<std::uint32_t>(key * 0x9e3779b1U) >> shift;
    }
    void put(const Start& start) {
        std::uint32_t i = slot(start.key, shift_);
        while (starts_[i].at != nowhere) i = (i + 1) & mask_;
        starts_[i] = start;
    }

    mutable std::vector<Start> starts_;  // open addressing, at most half full; a lookup may exchange two starts
    std::uint32_t mask_, shift_;
    std::size_t met_ = 0;
};

struct PlaceHash {
    std::size_t operator()(const Place& place) const {
        const std::uint64_t h = (place.address.value ^ static_cast<unsigned>(place.isa)) * 0x9e3779b97f4a7c15U;
        return static_cast<std::size_t>(h ^ h >> 32);
    }
};

/// Blocks by id, and the blocks to which their outcomes lead. A block's links take 8 bytes, so that the links of some
/// 100 000 blocks fit a second-level cache. For one memory space, or for all spaces of a reader whose sections are
/// whole.
class BlockStore {
public:
    /// `log`: if other decoders share learned blocks.
    explicit BlockStore(const Rules& rules, std::shared_ptr<BlockLog> log = {}) : rules_(rules), log_(std::move(log)) {}

    /// Unique among all stores and caches of this process, past and present.
    [[nodiscard]] WM_INLINE std::uint32_t serial() const { return serial_; }
    [[nodiscard]] static std::uint32_t next_serial() {
        static std::atomic<std::uint32_t> last;
        return ++last;
    }

    /// Indexed by position + taken: the position where execution continues. `nowhere`, `indirect`, `call` and
    /// `indirect_call` are rows too, which lead to themselves.
    [[nodiscard]] WM_INLINE const Position* links() const { return links_.data() + hubs; }
    /// The target of the direct branch with link at the end of this block. Precondition: links()[at + 1] is `call`.
    [[nodiscard]] WM_INLINE Position call_target(Position at) const {
        return calls_[static_cast<std::size_t>(at) / 2].target;
    }
    /// The position at which execution continues when the call at the end of this block returns; negative: not known.
    /// Precondition: there is a return stack.
    [[nodiscard]] WM_INLINE Position return_target(Position at) const {
        return calls_[static_cast<std::size_t>(at) / 2].back;
    }
    [[nodiscard]] const Node& node(Position at) const { return nodes_[index_[static_cast<std::size_t>(at) / 2]]; }
    /// Precondition: `at` is less than `nowhere`, as returned by `add`.
    [[nodiscard]] const Node& dead_node(Position at) const { return nodes_[static_cast<std::size_t>(first_dead - at)]; }
    void link(Position at, bool e, Position to) {
        const std::uint32_t edge = static_cast<std::uint32_t>(at) | (e ? 1U : 0U);
        set_link(edge, to);
        if (log_) learned_.links.push_back({edge, to});
    }
    /// Number of blocks, and of places of blocks in the caches that use this store, to which its memory is
    /// proportional.
    [[nodiscard]] std::size_t rows() const { return index_.size() + nodes_.size() + starts_; }
    void add_starts(std::ptrdiff_t count) { starts_ += static_cast<std::size_t>(count); }

    /// The position of this node. If its block is new, it is added; a node that cannot be passed gets a new position
    /// each time.
    template <class Out>
    Position add(const Node& node, Out& out) {
        const std::size_t id = node.edge / 2;
        if (node.passable() && id < index_.size() && index_[id] != no_node) return static_cast<Position>(node.edge);
        const auto index = static_cast<std::uint32_t>(nodes_.size());
        nodes_.push_back(node);
        out.reserve(node.edge | 1U);
        if (!node.passable()) return first_dead - static_cast<Position>(index);
        if (id >= index_.size()) {
            index_.resize(std::max<std::size_t>({1024, id + 1, 2 * index_.size()}), no_node);
            links_.resize(hubs + 2 * index_.size(), nowhere);
            if (rules_.return_stack) calls_.resize(index_.size());
        }
        index_[id] = index;
        if (node.end == flow::End::indirect && !(node.exception_return && rules_.report_exception_returns))
            links_[hubs + node.edge + 1] = node.link && rules_.return_stack ? indirect_call : indirect;
        return static_cast<Position>(node.edge);
    }

    // ---- data shared by memory spaces

    /// The block that begins there in that section, if it was stored; else `nowhere`.
    [[nodiscard]] Position in_section(std::uint32_t section, const Place& start) const {
        const auto found = by_section_.find({section, start});
        return found == by_section_.end() ? nowhere : found->second;
    }
    /// Precondition: the node is whole.
    void keep_in_section(const Node& node, Position at) {
        by_section_.emplace(InSection{node.section, node.start()}, at);
    }

    // ---- data shared by decoders

    void learned(const Node& node, std::uint32_t space) {
        if (log_) learned_.nodes.push_back({node, space});
    }
    /// Whether enough was learned to share it now.
    [[nodiscard]] bool has_learned_much() const { return learned_.size() >= 64; }
    /// Shares the blocks learned here, and takes those of others: calls met(space, node, position) for each.
    template <class Out, class OnMet>
    void exchange(Out& out, OnMet&& met) {
        if (!log_) return;
        log_->exchange(learned_, theirs_, read_);
        for (const BlockLog::Met& m : theirs_.nodes) {
            const Position at = add(m.node, out);
            met(m.space, m.node, at);
            if (m.node.whole) keep_in_section(m.node, at);
        }
        for (const BlockLog::Link& link : theirs_.links) set_link(link.edge, link.to);
    }

private:
    static constexpr std::size_t hubs = 8;
    static constexpr std::uint32_t no_node = 0xffffffff;

    void set_link(std::uint32_t edge, Position to) {
        const Node& from = nodes_[index_[edge / 2]];
        const bool taken = (edge & 1U) != 0, calls = rules_.return_stack && from.link;
        if (calls) (taken ? calls_[edge / 2].target : calls_[edge / 2].back) = to;
        if (taken || !from.always_taken) links_[hubs + edge] = calls && taken ? call : to;
    }

    struct Call {
        Position target = nowhere, back = nowhere;
    };
    struct InSection {
        std::uint32_t section{};
        Place start{};
        friend bool operator==(const InSection&, const InSection&) = default;
    };
    struct InSectionHash {
        std::size_t operator()(const InSection& of) const { return PlaceHash()(of.start) ^ of.section * 0x9e3779b1U; }
    };

    const Rules rules_;
    const std::uint32_t serial_ = next_serial();
    std::vector<Position> links_{indirect_call, indirect_call, call, call, indirect, indirect, nowhere, nowhere};
    std::vector<Call> calls_;           // by block id, if there is a return stack
    std::vector<std::uint32_t> index_;  // by block id: index in nodes_, or no_node
    std::vector<Node> nodes_;
    std::unordered_map<InSection, Position, InSectionHash> by_section_;  // whole blocks, if spaces share them
    std::size_t starts_ = 0;
    const std::shared_ptr<BlockLog> log_;
    BlockLog::Part learned_, theirs_;  // since the last exchange; by it
    BlockLog::Read read_;
};

/// The blocks executed in one memory space, found by start address and linked by outcome: the hot path follows links
/// without look-ups.
class BlockCache {
public:
    /// A cache with blocks of its own. `log`: set if other decoders share learned blocks.
    BlockCache(const Rules& rules, const isa::CodeReader& code, const isa::Space& space,
               std::shared_ptr<BlockLog> log = {})
        : BlockCache(rules, code, space, std::make_shared<BlockStore>(rules, std::move(log)), false) {}
    /// `shared`: the store in which all spaces of a reader with whole sections share the blocks
    /// (isa::CodeReader::whole_sections).
    BlockCache(const Rules& rules, const isa::CodeReader& code, const isa::Space& space,
               std::shared_ptr<BlockStore> store, bool shared)
        : rules_(rules), code_(code), space_(space), shared_(shared), store_(std::move(store)), low_(shared ? 4 : 10) {}
    ~BlockCache() { store_->add_starts(-static_cast<std::ptrdiff_t>(other_starts_)); }
    BlockCache(const BlockCache&) = delete;
    BlockCache& operator=(const BlockCache&) = delete;

    [[nodiscard]] const isa::Space& space() const { return space_; }
    /// No other cache of this process has or had the same number.
    [[nodiscard]] WM_INLINE std::uint32_t serial() const { return serial_; }
    /// Unique for the set of caches that share their blocks with this one.
    [[nodiscard]] WM_INLINE std::uint32_t common_serial() const { return shared_ ? store_->serial() : serial_; }
    /// Whether every space that has the whole block `from` also has `to`, because both are in one section.
    [[nodiscard]] bool come_together(Position from, Position to) const {
        const Node &a = node(from), &b = node(to);
        return a.whole && b.whole && a.section == b.section;
    }
    [[nodiscard]] WM_INLINE const Position* links() const { return store_->links(); }
    [[nodiscard]] WM_INLINE Position call_target(Position at) const { return store_->call_target(at); }
    [[nodiscard]] WM_INLINE Position return_target(Position at) const { return store_->return_target(at); }
    [[nodiscard]] const Node& node(Position at) const { return store_->node(at); }
    /// Links outcome `e` of the block to that one, in this space. If spaces share blocks, the link is stored only if it
    /// is right in all of them: both blocks are in one section, which a space has completely or not at all.
    void link(Position at, bool e, Position to) {
        if (shared_ && (!node(to).whole || node(to).section != node(at).section)) return;
        store_->link(at, e, to);
    }
    [[nodiscard]] std::size_t rows() const { return store_->rows(); }

    /// The starts below 4 GB, for inner loops: all AArch32 code is there.
    [[nodiscard]] WM_INLINE const Starts& low_starts() const { return low_; }
    /// The starts in 4 GB of addresses, for inner loops: valid until a block is added.
    struct Window {
        std::uint32_t high_half;
        Starts::View starts;
    };
    [[nodiscard]] Window window(std::uint32_t high_half) const {
        static const Starts none;
        if (high_half == 0) return {0, low_.view()};
        const Starts* const found = high_starts(high_half);
        return {high_half, found == nullptr ? none.view() : found->view()};
    }
    /// The position of the block that begins there, if it is in the cache; otherwise negative.
    [[nodiscard]] WM_INLINE Position peek(const Place& place) const {
        if (place.address.value >> 32 == 0 && Starts::regular(place)) [[likely]]
            return low_.find(low_key(place));
        return peek_elsewhere(place);
    }

    /// The node that begins here, which is made at first use. `at` is set to its position, or to `nowhere` if it is
    /// dead. `others`: as for `exchange`.
    template <class Out, class Others>
    const Node& find(const Place& place, Out& out, Position& at, Others&& others) {
        Position found = peek(place);
        if (found == nowhere && store_->has_learned_much()) {
            exchange(out, others);
            found = peek(place);
        }
        if (found == nowhere && shared_) found = find_of_others(place);
        if (found == nowhere) {
            const Node node = build(place, out.table());
            found = store_->add(node, out);
            insert(place, found);
            if (found >= 0) store_->learned(node, space_.number);
            if (found >= 0 && node.whole) store_->keep_in_section(node, found);
        }
        at = found >= 0 ? found : nowhere;
        return found >= 0 ? node(found) : store_->dead_node(found);
    }
    template <class Out>
    const Node& find(const Place& place, Out& out, Position& at) {
        return find(place, out, at, [this](std::uint32_t) { return this; });
    }

    /// Shares the blocks learned here, and takes those of others. others(number): the cache of the space with that
    /// number among all that use the same BlockStore, or null.
    template <class Out, class Others>
    void exchange(Out& out, Others&& others) {
        store_->exchange(out, [&](std::uint32_t space, const Node& node, Position at) {
            BlockCache* const of = others(space);
            if (of != nullptr && of->peek(node.start()) == nowhere) of->insert(node.start(), at);
        });
    }

private:
    [[nodiscard]] WM_INLINE static std::uint32_t low_key(const Place& place) {
        return Starts::key(static_cast<std::uint32_t>(place.address.value), place.isa);
    }
    [[nodiscard]] static std::uint32_t high_half(const Place& place) {
        return static_cast<std::uint32_t>(place.address.value >> 32);
    }
    [[nodiscard]] Position peek_elsewhere(const Place& place) const {
        if (!Starts::regular(place)) {
            const auto found = irregular_.find(place);
            return found == irregular_.end() ? nowhere : found->second;
        }
        const Starts* const found = high_starts(high_half(place));
        return found == nullptr ? nowhere : found->find(low_key(place));
    }
    /// The starts in these 4 GB; null if there are none.
    [[nodiscard]] const Starts* high_starts(std::uint32_t high_half) const {
        if (high_half == last_high_) return last_starts_;
        const auto found = high_.find(high_half);
        if (found == high_.end()) return nullptr;
        last_high_ = high_half;
        return last_starts_ = &found->second;
    }
    void insert(const Place& place, Position at) {
        if (!Starts::regular(place)) {
            irregular_.emplace(place, at);
        } else if (high_half(place) != 0) {
            high_[high_half(place)].insert(low_key(place), at);
        } else {
            low_.insert(low_key(place), at);
            if (!shared_) return;  // there is no other cache with them
        }
        ++other_starts_;
        store_->add_starts(1);
    }

    /// The block that begins there, if another space with the same section has it.
    [[nodiscard]] Position find_of_others(const Place& place) {
        const isa::Code code = code_.at(place.address, space_);
        if (code.bytes.empty()) return nowhere;
        const Position found = store_->in_section(code.section, place);
        if (found < 0) return nowhere;
        insert(place, found);
        store_->learned(node(found), space_.number);
        return found;
    }

    Node build(const Place& start, flow::BlockTable& table) const {
        const Walk w = walk(code_, space_, start, rules_.walk);
        Node node{.start_address = start.address,
                  .bytes = w.bytes,
                  .instructions = w.instructions,
                  .last_bytes = w.last_bytes,
                  .isa = start.isa,
                  .walk_end = w.end};
        if (w.instructions == 0) return node;
        const flow::Block block = w.block();
        node.edge = table.intern(block) * 2;
        node.section = w.section;
        if (node.passable()) {
            node.end = block.end;
            node.link = w.instruction.link;
            node.exception_return = w.instruction.exception_return;
            node.target_address = w.instruction.target;
            node.target_isa = w.instruction.target_isa;
            node.always_taken = always_taken(w, code_, space_);
            if (shared_) node.whole = code_.at(node.last().address, space_).section == w.section;
        }
        return node;
    }

    const Rules rules_;
    const isa::CodeReader& code_;
    const isa::Space space_;
    const std::uint32_t serial_ = BlockStore::next_serial();
    const bool shared_;
    const std::shared_ptr<BlockStore> store_;
    Starts low_;
    std::unordered_map<std::uint32_t, Starts> high_;  // by the high half of addresses
    mutable std::uint32_t last_high_ = 0;  // the last key looked up in it, which nearly all lookups repeat; 0: none
    mutable const Starts* last_starts_ = nullptr;
    std::unordered_map<Place, Position, PlaceHash> irregular_;  // places in ThumbEE, and addresses between instructions
    std::size_t other_starts_ = 0;                              // number of those counted in the store
};

}  // namespace waymark::follow
