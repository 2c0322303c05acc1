/// The blocks of a run, and the writer that turns a decoder's elements into batches.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "waymark/core/spinning_mutex.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/way_counts.h"

namespace waymark::flow {

/// All distinct blocks of a run; ids are indices, assigned in order of first use. The order depends on the run: never
/// print ids or sort by them. Thread-safe; looking up a known block takes no lock.
class BlockTable {
public:
    BlockTable();
    /// The id of this block; the same block always has the same id.
    std::uint32_t intern(const Block& block);
    /// Stays valid and unchanged while the table grows.
    [[nodiscard]] std::span<const Block> blocks() const;

private:
    static constexpr std::uint32_t none = 0xffffffff;
    /// A table for `most` rows, which never moves: a larger table replaces it, and readers of the old one still find
    /// its rows.
    struct Rows {
        explicit Rows(std::size_t most);
        struct Found {
            std::uint32_t id;  ///< or `none`
            std::size_t slot;  ///< slot in which it is, or belongs
        };
        [[nodiscard]] Found find(const Block& block) const;
        void add(const Block& block, std::size_t slot);
        const Block* first;  // of `blocks`
        unsigned shift;
        std::vector<std::atomic<std::uint32_t>> slots;        // ids; open addressing, at most half full
        alignas(cache_line_bytes) std::vector<Block> blocks;  // a row is written before its id
    };

    std::atomic<Rows*> rows_;
    // Members that change with each new row are on separate cache lines from those that all threads read.
    alignas(cache_line_bytes) SpinningMutex mutex_;
    std::atomic<std::size_t> size_ = 0;
    alignas(cache_line_bytes) std::vector<std::unique_ptr<Rows>> all_;  // the last is in use
};

/// Collects elements and passes them to a sink, about a thousand at a time.
class BatchWriter {
public:
    static constexpr std::size_t batch_ranges = 1024;
    /// Maximum number of ranges that `Run::put` and Run::path may write at once.
    static constexpr std::size_t most_at_once = 8, most_in_path = 24;
    /// Maximum number of repeats in a batch.
    static constexpr std::size_t most_repeats = 256;

    /// Events of a batch. Events are reused in later batches, since constructing one costs more than writing it.
    class Events {
    public:
        /// Whether there is no room for another event: call `grow`, or the batch has reached its limit.
        [[nodiscard]] WM_INLINE bool full() const { return next_ == made_end_; }
        void grow() {
            const std::size_t count = size();
            made_.resize(std::clamp<std::size_t>(2 * count, 16, batch_ranges));
            next_ = made_.data() + count;
            made_end_ = made_.data() + made_.size();
        }
        /// Appends an event; its old contents are not cleared. Precondition: !full().
        [[nodiscard]] WM_INLINE Event& add() { return *next_++; }
        [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(next_ - made_.data()); }
        [[nodiscard]] bool empty() const { return size() == 0; }
        [[nodiscard]] Event* begin() { return made_.data(); }
        [[nodiscard]] Event* end() { return next_; }
        [[nodiscard]] std::span<const Event> all() const { return {made_.data(), size()}; }
        void clear() { next_ = made_.data(); }

    private:
        std::vector<Event> made_;
        Event *next_ = nullptr, *made_end_ = nullptr;
    };

    /// Elements that belong together and own their memory, except ranges in the sink's memory.
    struct Owned {
        Owned() { ranges = own.data(); }
        Owned(const Owned&) = delete;
        Owned& operator=(const Owned&) = delete;

        Offset base{};
        std::size_t count = 0;
        Range* ranges = nullptr;  ///< room for batch_ranges, and for most_in_path more
        Events events;
        std::array<Range, batch_ranges + most_in_path> own;
        std::size_t repeat_count = 0;
        std::array<Repeat, most_repeats> repeats;

        [[nodiscard]] Batch batch(std::span<const Block> blocks) const {
            return {blocks, base, {ranges, count}, events.all(), std::span(repeats).first(repeat_count)};
        }
        void clear() {
            count = repeat_count = 0;
            events.clear();
        }
    };

    BatchWriter(BlockTable& table, Sink& sink) : table_(table), sink_(&sink), batch_(new Owned) { find_room(); }
    /// A writer that keeps batches instead of delivering them.
    explicit BatchWriter(BlockTable& table) : table_(table), batch_(new Owned) {}
    BatchWriter(const BatchWriter&) = delete;
    BatchWriter& operator=(const BatchWriter&) = delete;

    [[nodiscard]] BlockTable& table() { return table_; }

    WM_INLINE void range(std::uint32_t edge, Offset offset, std::uint32_t cycles = no_cycles) {
        Owned& b = *batch_;
        if (b.count >= batch_ranges || offset.value - b.base.value > 0xffffffff) [[unlikely]]
            return range_in_next(edge, offset, cycles);
        b.ranges[b.count++] = {edge, static_cast<std::uint32_t>(offset - b.base), cycles, 1};
    }
    /// `what`: a What, or one of its alternatives. Constructed in place: most are much smaller than the largest
    /// alternative.
    template <class Anything>
    WM_INLINE void event(Offset offset, Anything&& what) {
        if (batch_->events.full()) [[unlikely]]
            make_room_for_event();
        add_event(offset, std::forward<Anything>(what));
    }
    /// A range that is counted elsewhere (Sink::counts_suffice).
    void counted_range(std::uint32_t edge) {
        if (batch_->count >= batch_ranges) flush();
        batch_->ranges[batch_->count++] = {edge, 0, no_cycles, 0};
    }
    // Has no effect; CountWriter has such a function.
    void reserve(std::uint32_t) {}
    [[nodiscard]] static constexpr bool branch_waits() { return false; }
    void arrived(std::uint32_t) {}
    /// Delivers pending elements. Called by decoders at the end, and by callers that need everything decoded so far.
    void flush();

    /// Consecutive ranges without anything between them, for the inner loop of a decoder: the write position stays in
    /// registers. Nothing else may be written while such an object exists. A packet is named by its first byte in
    /// memory, or by its offset.
    class Run {
    public:
        /// For packets in `bytes`, whose first byte is at `first`.
        WM_INLINE Run(BatchWriter& out, Offset first, Bytes bytes)
            : Run(out, first, bytes.size(), address(bytes.data())) {}
        /// For packets at offsets from `first` on, at less than `bytes` distance.
        WM_INLINE Run(BatchWriter& out, Offset first, std::uint64_t bytes) : Run(out, first, bytes, address(first)) {}
        Run(const Run&) = delete;
        Run& operator=(const Run&) = delete;
        WM_INLINE ~Run() { end(out_, at_); }

        /// Makes room for the ranges of one packet: call it before each `put`.
        template <class Packet>
        WM_INLINE void reserve(Packet packet) {
            if (at_ >= limit_) [[unlikely]]
                begin(next(out_, at_, first_ + (address(packet) - first_address_)));
        }
        /// Whether there is room for one range.
        [[nodiscard]] WM_INLINE bool has_room() const { return at_ < limit_; }
        /// Writes ranges for the packet at `packet`: for the first `count` of the given edges; writing the others too
        /// is faster than skipping them. Returns the last edge. Precondition: count >= 1.
        template <class Packet, class... Edge>
        WM_INLINE std::int32_t put(Packet packet, std::uint32_t cycles, unsigned count, Edge... edges) {
            static_assert(sizeof...(edges) <= most_at_once);
            const auto at = static_cast<std::uint32_t>(address(packet) - base_);
            Range* to = at_;
            ((*to++ = Range{static_cast<std::uint32_t>(edges), at, cycles, 1}), ...);
            at_ += count;
            return static_cast<std::int32_t>(at_[-1].edge);
        }
        /// Takes back the last ranges, all of one packet; the arguments are the same as in the call that wrote them.
        template <class... Edge>
        WM_INLINE void take_back(std::uint32_t, unsigned count, Edge...) {
            at_ -= count;
        }
        /// The ranges of a path (follow/paths.h) whose first packet is at `packet`, after `reserve`.
        template <class Path>
        WM_INLINE void path(const std::uint8_t* packet, const Path& path) {
            // One addition for each range: its fields have the same size.
            using Fields [[gnu::vector_size(sizeof(Range))]] = std::uint32_t;
            if (Owned& b = *out_.batch_; b.repeat_count < most_repeats) [[likely]]
                b.repeats[b.repeat_count++] = {path.times, static_cast<std::uint32_t>(at_ - b.ranges), path.count};
            const Fields moved{0, static_cast<std::uint32_t>(address(packet) - base_)};
            // Writes two ranges at a time: writing beyond the count costs less than testing it.
            for (unsigned i = 0; i < path.count; i += 2)
                for (unsigned j = i; j < i + 2; ++j) {
                    Fields range;
                    std::memcpy(&range, &path.ranges[j], sizeof range);
                    range += moved;
                    std::memcpy(static_cast<void*>(at_ + j), &range, sizeof range);
                }
            at_ += path.count;
        }
        // Has no effect; CountWriter has such a function.
        WM_INLINE void branched(std::int32_t) {}
        WM_INLINE void goes_on_at(std::ptrdiff_t) {}
        /// Adds an event between earlier and later ranges.
        template <class Packet, class Anything>
        WM_INLINE void event(Packet packet, Anything&& what) {
            end(out_, at_);
            if (out_.batch_->events.full()) [[unlikely]] {
                out_.make_room_for_event();
                begin(*out_.batch_);
            }
            out_.add_event(first_ + (address(packet) - first_address_), std::forward<Anything>(what));
        }

    private:
        WM_INLINE Run(BatchWriter& out, Offset first, std::uint64_t bytes, std::uintptr_t first_address)
            : out_(out), first_(first), first_address_(first_address) {
            if (first.value + bytes - out.batch_->base.value > 0xffffffff) [[unlikely]]
                out.next_base(first);
            begin(*out.batch_);
        }
        WM_INLINE static std::uintptr_t address(const std::uint8_t* byte) {
            return reinterpret_cast<std::uintptr_t>(byte);
        }
        /// The memory address of a byte if the stream began at address 0.
        WM_INLINE static std::uintptr_t address(Offset at) { return static_cast<std::uintptr_t>(at.value); }
        WM_INLINE void begin(Owned& b) {
            at_ = b.ranges + b.count;
            limit_ = b.ranges + batch_ranges;
            base_ = first_address_ - static_cast<std::uintptr_t>(first_.value - b.base.value);
        }
        WM_INLINE static void end(BatchWriter& out, const Range* at) {
            out.batch_->count = static_cast<std::size_t>(at - out.batch_->ranges);
        }
        /// Not a member function: an object whose address is passed on does not stay in registers.
        [[gnu::noinline]] static Owned& next(BatchWriter& out, const Range* at, Offset packet) {
            end(out, at);
            out.next(packet);
            return *out.batch_;
        }
        BatchWriter& out_;
        const Offset first_;
        const std::uintptr_t first_address_;
        Range *at_, *limit_;
        std::uintptr_t base_;  // address of the byte at the batch's base, as if it were in the same memory
    };

    /// The stored batches of a writer that stores them; the caller becomes the owner.
    [[nodiscard]] std::vector<std::unique_ptr<Owned>> take();
    /// Recycled batches that were not used again.
    [[nodiscard]] std::vector<std::unique_ptr<Owned>> take_spare() { return std::exchange(spare_, {}); }
    /// Takes batches back, so that their memory can be reused.
    void recycle(std::vector<std::unique_ptr<Owned>>&& batches);

private:
    template <class Anything>
    WM_INLINE void add_event(Offset offset, Anything&& what) {
        Event& event = batch_->events.add();
        event.before = static_cast<std::uint32_t>(batch_->count);
        event.offset = offset;
        if constexpr (std::is_same_v<std::decay_t<Anything>, What>)
            event.what = std::forward<Anything>(what);
        else
            event.what.template emplace<std::decay_t<Anything>>(std::forward<Anything>(what));
    }
    void make_room_for_event();
    void next(Offset offset) {
        flush();
        // Batches in one room share a base, as long as packets and the bytes of a Run are close enough to it.
        constexpr std::uint64_t close = 0x3fffffff;
        if (room_end_ == nullptr || offset.value - batch_->base.value > close) batch_->base = offset;
    }
    void next_base(Offset offset) {
        flush();
        batch_->base = offset;
    }
    /// Chooses the memory of the next batch.
    void find_room();
    void range_in_next(std::uint32_t edge, Offset offset, std::uint32_t cycles);

    BlockTable& table_;
    Sink* sink_ = nullptr;
    std::unique_ptr<Owned> batch_;
    Range* room_end_ = nullptr;  ///< end of the sink's room that contains the batch; null: none
    std::vector<std::unique_ptr<Owned>> kept_, spare_;
};

class CountWriter;

/// Counts of edges that another object keeps together for a CountWriter.
class FoldedCounts {
public:
    virtual ~FoldedCounts() = default;
    /// Adds these counts to the writer's counts (CountWriter::add_path), and resets them.
    virtual void unfold() = 0;
};

/// Counts how often each edge ran instead of delivering each range. Everything else goes to a sink, as from a
/// BatchWriter. Between two events, one range with `times` 0 stands for the counted ranges (but not before cycle counts
/// and timestamps). On request, it also counts the targets of indirect branches: each leads to the block of the next
/// range, unless flow was lost or changed to another thread in between.
class CountWriter {
public:
    /// `table` and `events` are borrowed.
    CountWriter(BlockTable& table, Sink& events) : events_(table, events) {}
    /// Stores events instead of delivering them.
    explicit CountWriter(BlockTable& table) : events_(table) {}

    [[nodiscard]] BlockTable& table() { return events_.table(); }
    WM_INLINE void range(std::uint32_t edge, Offset, std::uint32_t cycles = no_cycles) {
        reserve(edge | 1U);
        counts_[guard + edge] += step_;
        last_ = edge;
        if (cycles != no_cycles) cycles_ += step_ * cycles;
        if (!ways_on_) return;
        arrived(edge / 2);
        if ((edge & 1U) != 0 && table().blocks()[edge / 2].end == End::indirect) state_.from = edge;
    }
    template <class Anything>
    WM_INLINE void event(Offset offset, Anything&& what) {
        if (ways_on_) [[unlikely]]
            before_event(what);
        deliver_range();
        events_.event(offset, std::forward<Anything>(what));
    }
    void flush() { events().flush(); }
    /// Makes room for this edge and all lower ones.
    void reserve(std::uint32_t edge) {
        if (guard + edge >= counts_.size()) counts_.resize(2 * (guard + edge) + 1024);
    }

    class Run {
    public:
        /// Precondition: there is room for all edges written (reserve).
        WM_INLINE Run(CountWriter& out, Offset first, Bytes bytes)
            : out_(out),
              counts_(out.counts_.data() + guard),
              steps_((out.step_ == 1 ? steps_of<1> : steps_of<minus_1>).data()),
              step_(out.step_),
              first_(first),
              first_byte_(bytes.data()),
              ways_on_(out.ways_on_),
              from_(out.state_.from) {}
        WM_INLINE Run(CountWriter& out, Offset first, std::uint64_t) : Run(out, first, Bytes()) {}
        Run(const Run&) = delete;
        Run& operator=(const Run&) = delete;
        WM_INLINE ~Run() {
            out_.cycles_ += cycles_;
            out_.state_.from = from_;
            if (last_ != nothing) out_.last_ = last_;
        }

        template <class Packet>
        WM_INLINE void reserve(Packet) {}
        [[nodiscard]] static constexpr bool has_room() { return true; }
        template <class Packet, class... Edge>
        WM_INLINE std::int32_t put(Packet, std::uint32_t cycles, unsigned count, Edge... edges) {
            const std::int32_t last = add(steps_, step_, cycles, count, edges...);
            before_ = std::exchange(last_, static_cast<std::uint32_t>(last));
            return last;
        }
        template <class... Edge>
        void take_back(std::uint32_t cycles, unsigned count, Edge... edges) {
            last_ = before_;
            (void)add((step_ == 1 ? steps_of<minus_1> : steps_of<1>).data(), ~step_ + 1, cycles, count, edges...);
        }
        /// Adds a path whose repetitions it counts: a FoldedCounts.
        template <class Path>
        WM_INLINE void path(const std::uint8_t*, Path& path) {
            path.times += step_;
            last_ = path.ranges[0].edge;
        }
        /// The last edge is a taken indirect branch.
        WM_INLINE void branched(std::int32_t edge) { from_ = ways_on_ ? static_cast<std::uint32_t>(edge) : 0; }
        /// The next range belongs to this block (a position).
        WM_INLINE void goes_on_at(std::ptrdiff_t position) {
            if (from_ == 0) return;
            out_.way(std::exchange(from_, 0), static_cast<std::uint32_t>(position) / 2);
        }
        /// Cycle counts and timestamps, which do not affect the targets of branches.
        template <class Anything>
        WM_INLINE void event(const std::uint8_t* packet, Anything&& what) {
            event(first_ + static_cast<std::uint64_t>(packet - first_byte_), std::forward<Anything>(what));
        }
        template <class Anything>
        WM_INLINE void event(Offset at, Anything&& what) {
            out_.events_.event(at, std::forward<Anything>(what));
        }

    private:
        /// For each number of edges: the addition to the count of each edge, with the first edge separate from the
        /// others.
        using Steps = std::array<std::array<std::uint64_t, BatchWriter::most_at_once>, BatchWriter::most_at_once + 1>;
        template <std::uint64_t step>
        static constexpr Steps steps_of = [] {
            Steps all{};
            for (std::size_t count = 0; count < all.size(); ++count)
                for (std::size_t i = 0; i < count; ++i) all[count][i] = step;
            return all;
        }();
        static constexpr std::uint64_t minus_1 = ~std::uint64_t{0};

        template <class... Edge>
        WM_INLINE std::int32_t add(const Steps::value_type* steps, std::uint64_t step, std::uint32_t cycles,
                                   unsigned count, Edge... edges) {
            if (cycles != no_cycles) cycles_ += step * cycles;
            if constexpr (sizeof...(edges) == 1) {
                ((counts_[edges] += step), ...);
                return (static_cast<std::int32_t>(edges), ...);
            } else {
                const std::uint64_t* of = steps[count].data();
                ((counts_[edges] += *of++), ...);
                return std::array{static_cast<std::int32_t>(edges)...}[count - 1];
            }
        }

        CountWriter& out_;
        std::uint64_t* const counts_;
        const Steps::value_type* const steps_;
        const std::uint64_t step_;
        const Offset first_;
        const std::uint8_t* const first_byte_;
        const bool ways_on_;
        std::uint32_t from_;
        std::uint32_t last_ = nothing, before_ = nothing;  // the last edge, and the last edge before that `put`
        std::uint64_t cycles_ = 0;
    };

    // ---- targets of indirect branches

    void count_ways() { ways_on_ = true; }
    [[nodiscard]] const WayCounts& ways() {
        unfold();
        return ways_;
    }
    /// Whether an indirect branch ran last.
    [[nodiscard]] bool branch_waits() const { return state_.from != 0; }
    /// Execution has reached this block, or `EdgeWay::no_block`, even if no range of the block follows.
    void arrived(std::uint32_t block) {
        if (state_.from != 0) way(std::exchange(state_.from, 0), block);
    }
    /// The state on which later ways depend. A part of a stream that is decoded separately begins with `begin`; `then`
    /// joins its final state to that of the previous part.
    struct WayState {
        static constexpr std::uint32_t part_begins = 0xffffffff;
        std::uint32_t from = 0;  ///< the edge of the waiting branch, or 0; or `part_begins`: nothing came yet
        std::optional<std::uint32_t> first{};  ///< for a part: the block with which it begins, if a way can lead there
        std::optional<std::uint32_t> context_id{}, vmid{};
    };
    [[nodiscard]] const WayState& way_state() const { return state_; }
    void resume(const WayState& state) { state_ = state; }
    void begin(const Context& context) { state_ = {WayState::part_begins, {}, context.context_id, context.vmid}; }
    /// The state after a part that ended with `part`, if the state before the part was `before`. Counts the way into
    /// the part.
    [[nodiscard]] WayState then(const WayState& before, const WayState& part) {
        if (before.from != 0 && part.first) ways_.add(before.from, *part.first, 1);
        return {part.from == WayState::part_begins ? before.from : part.from, {}, part.context_id, part.vmid};
    }

    /// Number of executions of each edge. Edges beyond the end never ran.
    [[nodiscard]] std::span<const std::uint64_t> counts() {
        unfold();
        return std::span(counts_).subspan(guard);
    }
    /// The sum of the cycle counts that came with ranges.
    [[nodiscard]] std::uint64_t cycles() const { return cycles_; }
    // ---- paths (follow/paths.h)

    /// `folded` is borrowed until `forget_folded`, which adds its counts.
    void keep_folded(FoldedCounts* folded) { folded_.push_back(folded); }
    void forget_folded(FoldedCounts* folded) {
        folded->unfold();
        std::erase(folded_, folded);
    }
    /// Adds a sequence of ranges that occurred `times` times. Bit i of `branches`: ranges[i] ends with a taken indirect
    /// branch.
    void add_path(std::span<const Range> ranges, std::uint32_t branches, std::uint64_t times) {
        for (std::size_t i = 0; i < ranges.size(); ++i) {
            counts_[guard + ranges[i].edge] += times;
            if (ways_on_ && (branches >> i & 1U) != 0 && i + 1 < ranges.size())
                ways_.add(ranges[i].edge, ranges[i + 1].block(), times);
        }
    }

    /// With `on`, ranges are subtracted instead of added: to take back ranges that did not happen, a caller writes them
    /// again.
    void take_back(bool on) { step_ = on ? ~std::uint64_t{0} : 1; }
    /// The events' own writer.
    [[nodiscard]] BatchWriter& events() {
        deliver_range();
        return events_;
    }

private:
    /// Later elements must come after the ranges counted so far.
    WM_INLINE void deliver_range() {
        if (last_ != nothing) events_.counted_range(std::exchange(last_, nothing));
    }
    WM_INLINE void way(std::uint32_t from, std::uint32_t block) {
        if (from == WayState::part_begins) [[unlikely]] {
            state_.first = block;
            return;
        }
        ways_.add(from, block, step_);
    }
    /// Flow is lost, or another thread runs.
    void before_event(const What& what);
    void unfold() {
        for (FoldedCounts* folded : folded_) folded->unfold();
    }

    // Number of negative edges that Run::put may receive for ranges that are not counted.
    static constexpr std::size_t guard = 8;
    static constexpr std::uint32_t nothing = 0xffffffff;
    BatchWriter events_;
    std::uint32_t last_ = nothing;  // the edge that ran last, unless a range stands for it already
    bool ways_on_ = false;
    WayState state_;
    WayCounts ways_;
    std::vector<std::uint64_t> counts_ = std::vector<std::uint64_t>(guard + 1024);
    std::uint64_t step_ = 1, cycles_ = 0;
    std::vector<FoldedCounts*> folded_;
};

}  // namespace waymark::flow
