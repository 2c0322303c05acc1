/// The code between two waypoints, decoded once and kept.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "elements.h"
#include "waymark/core/spinning_mutex.h"
#include "waymark/flow/blocks.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/it_block.h"
#include "waymark/pft/config.h"
#include "waymark/pft/state.h"

namespace waymark::pft {

using isa::Instruction;
using isa::Waypoint;

/// Where execution stands: block id * 2, an index into BlockCache::links(). Below 0: no block.
using Position = std::int32_t;
/// No block known, or more to do than to follow a link.
constexpr Position nowhere = -2;
/// Behind a taken branch whose target only the trace knows.
constexpr Position indirect = -4;
/// Of nodes that no execution passes: less than any other, by their index.
constexpr Position first_dead = -16;

/// Why a walk cannot reach a waypoint.
enum class Dead : std::uint8_t { no, no_memory, undefined, runaway };

/// A block as the irregular paths need it.
struct Node {
    std::uint32_t edge{};  ///< block id * 2
    Dead dead{};
    flow::End end{};
    bool link{};
    Isa isa{}, target_isa{};
    std::uint32_t start{}, after{},
        target{};                  ///< addresses: first instruction, behind the last one, of a direct target
    std::uint32_t instructions{};  ///< 0: a dead node that fails at its first instruction
    std::uint32_t last{};          ///< address of the last instruction
};

/// What decoders of one stream have learned of one memory space, each for the others.
class BlockLog {
public:
    struct Link {
        std::uint32_t edge{};
        Position to{};
    };
    struct Part {
        std::vector<Node> nodes;
        std::vector<Link> links;

        [[nodiscard]] std::size_t size() const { return nodes.size() + links.size(); }
        void clear() {
            nodes.clear();
            links.clear();
        }
    };
    /// How much of the log a decoder has.
    struct Place {
        std::size_t nodes{}, links{};
    };

    /// Puts in what one has learned and takes out what others have put in since. Nodes that a link connects come
    /// before it or with it.
    void exchange(Part& mine, Part& theirs, Place& place) {
        const std::scoped_lock lock(mutex_);
        theirs.nodes.assign(all_.nodes.begin() + static_cast<std::ptrdiff_t>(place.nodes), all_.nodes.end());
        theirs.links.assign(all_.links.begin() + static_cast<std::ptrdiff_t>(place.links), all_.links.end());
        all_.nodes.insert(all_.nodes.end(), mine.nodes.begin(), mine.nodes.end());
        all_.links.insert(all_.links.end(), mine.links.begin(), mine.links.end());
        mine.clear();
        place = {all_.nodes.size(), all_.links.size()};
    }

private:
    SpinningMutex mutex_;
    Part all_;
};

/// The logs of one stream's memory spaces.
class BlockLogs {
public:
    [[nodiscard]] std::shared_ptr<BlockLog> of(const isa::Space& space) {
        const std::scoped_lock lock(mutex_);
        for (const auto& [of, log] : logs_)
            if (of == space) return log;
        return logs_.emplace_back(space, std::make_shared<BlockLog>()).second;
    }
    /// For those who forget what they knew: else they would learn it all again at once.
    void clear() {
        const std::scoped_lock lock(mutex_);
        logs_.clear();
    }

private:
    SpinningMutex mutex_;
    std::vector<std::pair<isa::Space, std::shared_ptr<BlockLog>>> logs_;
};

/// The blocks met in one memory space, found by where they start, and chained by outcome: the hot path follows links
/// and looks nothing up. A block's links are 8 bytes, so that those of some 100 000 blocks fit a second-level cache.
class BlockCache {
public:
    /// `log`: if there are others to learn from.
    BlockCache(const Config& config, const isa::CodeReader& code, const isa::Space& space,
               std::shared_ptr<BlockLog> log = {})
        : config_(config), code_(code), space_(space), log_(std::move(log)) {}

    [[nodiscard]] const isa::Space& space() const { return space_; }
    /// By position + taken: where execution goes on. `nowhere` and `indirect` are rows too, which lead to themselves.
    [[nodiscard]] WM_INLINE const Position* links() const { return links_.data() + hubs; }
    [[nodiscard]] const Node& node(Position at) const { return nodes_[index_[static_cast<std::size_t>(at) / 2]]; }
    void link(Position at, bool e, Position to) {
        const std::uint32_t edge = static_cast<std::uint32_t>(at) | (e ? 1U : 0U);
        links_[hubs + edge] = to;
        if (log_) learned_.links.push_back({edge, to});
    }
    [[nodiscard]] std::size_t rows() const { return index_.size() + nodes_.size(); }

    /// A start as the table of starts knows it: of A32 and T32 blocks only.
    [[nodiscard]] WM_INLINE static std::uint32_t key(std::uint32_t address, Isa isa) {
        return address | (isa == Isa::t32 ? 1U : 0U);
    }
    /// The block that starts there, if it was met: else below 0.
    [[nodiscard]] WM_INLINE Position peek(std::uint32_t key) const {
        for (std::uint32_t i = slot(key);; i = (i + 1) & mask_)
            if (starts_[i].key == key || starts_[i].at == nowhere) return starts_[i].at;
    }

    /// The node that starts here, made at first sight. `at` is set to its position, or to `nowhere` if it is dead.
    template <class Out>
    const Node& find(Place place, Out& out, Position& at) {
        const auto address = static_cast<std::uint32_t>(place.address.value);
        Position found = known(address, place.isa);
        if (found == nowhere && learned_.size() >= much_learned) {
            exchange(out);
            found = known(address, place.isa);
        }
        if (found == nowhere) {
            const Node node = build(place.address, place.isa, out.table());
            found = add(node, out);
            if (log_ && found >= 0) learned_.nodes.push_back(node);
        }
        at = found >= 0 ? found : nowhere;
        return found >= 0 ? node(found) : nodes_[static_cast<std::size_t>(first_dead - found)];
    }

    /// Tells others what was learned here, and learns what they have.
    template <class Out>
    void exchange(Out& out) {
        if (!log_) return;
        log_->exchange(learned_, theirs_, place_);
        for (const Node& node : theirs_.nodes)
            if (known(node.start, node.isa) == nowhere) add(node, out);
        for (const BlockLog::Link& link : theirs_.links) links_[hubs + link.edge] = link.to;
    }

private:
    struct Start {
        std::uint32_t key{};
        Position at = nowhere;
    };
    static constexpr std::size_t hubs = 4;
    static constexpr std::size_t much_learned = 64;  // the others need not wait for more

    [[nodiscard]] static bool is_other(Isa isa) { return isa != Isa::a32 && isa != Isa::t32; }
    /// As `peek`, in any instruction set.
    [[nodiscard]] Position known(std::uint32_t address, Isa isa) const {
        if (!is_other(isa)) return peek(key(address, isa));
        const auto other = others_.find(address);
        return other == others_.end() ? nowhere : other->second;
    }
    [[nodiscard]] WM_INLINE std::uint32_t slot(std::uint32_t key) const {
        return static_cast<std::uint32_t>(key * 0x9e3779b1U) >> shift_;
    }
    void insert(std::uint32_t key, Position at) {
        if (2 * ++met_ > starts_.size()) {
            const std::vector<Start> old = std::exchange(starts_, std::vector<Start>(2 * starts_.size()));
            mask_ = static_cast<std::uint32_t>(starts_.size() - 1);
            --shift_;
            for (const Start& start : old)
                if (start.at != nowhere) place(start);
        }
        place({key, at});
    }
    void place(const Start& start) {
        std::uint32_t i = slot(start.key);
        while (starts_[i].at != nowhere) i = (i + 1) & mask_;
        starts_[i] = start;
    }

    template <class Out>
    Position add(const Node& node, Out& out) {
        const auto index = static_cast<std::uint32_t>(nodes_.size());
        Position at = first_dead - static_cast<Position>(index);
        nodes_.push_back(node);
        out.reserve(node.edge | 1U);
        if (node.dead == Dead::no) {
            at = static_cast<Position>(node.edge);
            const std::size_t id = node.edge / 2;
            if (id >= index_.size()) {
                index_.resize(std::max<std::size_t>({1024, id + 1, 2 * index_.size()}));
                links_.resize(hubs + 2 * index_.size(), nowhere);
            }
            index_[id] = index;
            if (node.end == flow::End::indirect && !(node.link && config_.return_stack))
                links_[hubs + node.edge + 1] = indirect;
        }
        if (is_other(node.isa))
            others_.emplace(node.start, at);
        else
            insert(key(node.start, node.isa), at);
        return at;
    }

    Node build(Address start, Isa isa, flow::BlockTable& table) const {
        Node node;
        node.start = node.after = static_cast<std::uint32_t>(start.value);
        node.isa = isa;
        flow::Block block{.start = start.value, .isa = isa};
        Instruction instruction;
        isa::ItBlock it;
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
            if (const bool may_be_passed = it.next(fetched, isa); instruction.undefined && !may_be_passed) {
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
    std::vector<Position> links_{indirect, indirect, nowhere, nowhere};
    std::vector<Start> starts_ = std::vector<Start>(1024);  // open addressing, at most half full
    std::uint32_t mask_ = 1023, shift_ = 32 - 10;
    std::size_t met_ = 0;
    std::unordered_map<std::uint32_t, Position> others_;  // starts in ThumbEE
    std::vector<std::uint32_t> index_;                    // by block id: index in nodes_
    std::vector<Node> nodes_;
    const std::shared_ptr<BlockLog> log_;
    BlockLog::Part learned_, theirs_;  // since the last exchange; by it
    BlockLog::Place place_;
};

}  // namespace waymark::pft
