/// Elements of a unit that traces speculatively executed instructions (ETMv4, ETE). They wait here, in order, until the
/// trace reports that they were committed, or are forgotten if it reports that they were cancelled. Uncommitted
/// elements are never delivered. The newest committed outcome stays until a newer one is committed, since the trace may
/// still report that it was mispredicted (docs/spec/etm4-registers.md, 2.16), and the elements after it stay too. A
/// unit that never speculates needs no such queue: its decoder delivers at once.
///
/// Commits and cancels count P0 elements: outcomes, exceptions and the like. The kind of a protocol's other elements
/// determines what happens to them when P0 elements are cancelled.
///
/// The queue consists of consecutive rows of 24 bytes, which contain outcomes and addresses completely. A commit is an
/// addition: committed elements stay in the queue as due elements, until `deliver_first` or an inner loop takes many of
/// them at once. So a decoder can read many packets, then follow the committed elements, and neither loop has to wait
/// for the other. `hold` excludes the newest outcome from the due elements. From head to tail the rows are
///
///     due:       the oldest P0 elements, `due()` of them, and the elements before each of them
///     held:      the newest committed outcome, and the committed elements after it
///     released:  elements before the oldest waiting P0 element, which nothing can cancel any more
///     waiting:   `depth()` P0 elements, and the elements after the oldest of them
///
/// The outcomes of one row may be in several of these parts: its oldest ones due, its newest ones waiting.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "waymark/core/types.h"

namespace waymark::follow {

/// Outcomes of waypoint instructions: bit i of `e` is the i-th, counted from the oldest.
struct Outcomes {
    std::uint32_t e{};
    std::uint8_t count{};  ///< 1 to 32
    friend bool operator==(const Outcomes&, const Outcomes&) = default;
};

/// Kinds of elements other than outcomes.
enum class WaitingKind : std::uint8_t {
    p0,       ///< commits and cancels count it
    address,  ///< discarded with cancelled elements, and with a mispredicted outcome
    dropped,  ///< discarded with cancelled elements: contexts, trace on
    kept      ///< survives when elements around it are cancelled: events, timestamps, cycle counts
};

/// An address in the queue, packed into a number by its protocol.
struct PackedAddress {
    std::uint64_t value{};
};

/// A cycle count in the queue, which nothing cancels, packed in the same way.
struct PackedCount {
    std::uint64_t value{};
};

/// An element of the queue.
struct WaitingRow {
    /// The first four are WaitingKind, in its order; their rows have a slot.
    enum class Is : std::uint32_t { p0, address, dropped, kept, outcomes, unseen, packed_address, packed_count };

    /// For outcomes: bit i is the i-th, counted from the oldest, and a 1 comes after the newest. For an address or a
    /// count: the packed one. Otherwise the slot with the element.
    std::uint64_t value{};
    Is is{};
    std::uint32_t weight{};  ///< P0 elements
    Offset at{};

    /// Whether it contains outcomes, or unseen P0 elements, which may be outcomes.
    [[nodiscard]] bool holds_outcomes() const { return is == Is::outcomes || is == Is::unseen; }
    /// Whether it stays when elements around it are cancelled.
    [[nodiscard]] bool is_kept() const { return is == Is::kept || is == Is::packed_count; }
    [[nodiscard]] static constexpr WaitingRow of(const Outcomes& outcomes, Offset at) {
        return {coded(outcomes.e, outcomes.count), Is::outcomes, outcomes.count, at};
    }
    [[nodiscard]] static constexpr WaitingRow of(const PackedAddress& address, Offset at) {
        return {address.value, Is::packed_address, 0, at};
    }
    /// The `value` of outcomes.
    [[nodiscard]] static constexpr std::uint64_t coded(std::uint64_t e, std::uint32_t count) {
        const std::uint64_t end = std::uint64_t{1} << count;
        return (e & (end - 1)) | end;
    }
};

/// `T`: an element of the protocol that is neither an outcome nor packed; rare.
template <class T>
class Waiting {
    using Row = WaitingRow;
    using Is = Row::Is;

public:
    using Kind = WaitingKind;
    static_assert(static_cast<Is>(Kind::p0) == Is::p0 && static_cast<Is>(Kind::address) == Is::address &&
                  static_cast<Is>(Kind::dropped) == Is::dropped && static_cast<Is>(Kind::kept) == Is::kept);

    void add(Offset at, const Outcomes& outcomes) { push(Row::of(outcomes, at)); }
    /// Kind::address.
    void add(Offset at, const PackedAddress& address) { push(Row::of(address, at)); }
    void add(Offset at, Kind kind, T element) {
        std::uint64_t slot = slots_.size();
        if (free_.empty()) {
            slots_.push_back(std::move(element));
        } else {
            slot = free_.back();
            free_.pop_back();
            slots_[slot] = std::move(element);
        }
        push({slot, static_cast<Is>(kind), kind == Kind::p0 ? 1U : 0U, at});
    }
    /// Adds a count after all committed elements: before the oldest waiting P0 element.
    void add_before_waiting(Offset at, const PackedCount& count) {
        (void)room(2);
        push({count.value, Is::packed_count, 0, at});
        move_before_waiting();
    }
    /// Adds P0 elements from before the synchronisation point, for which only their number is known.
    void add_unseen(Offset at, std::uint32_t count) {
        if (count != 0) push({0, Is::unseen, count, at});
    }

    /// Number of uncommitted P0 elements.
    [[nodiscard]] std::uint64_t depth() const { return depth_; }
    [[nodiscard]] bool empty() const { return head_ == tail_; }
    /// Number of rows; all outcomes of a packet are one row.
    [[nodiscard]] std::size_t size() const { return tail_ - head_; }
    /// Offset of the oldest packet in the queue. Precondition: not empty.
    [[nodiscard]] Offset first() const { return rows_[head_].at; }

    /// The `count` oldest P0 elements were committed: they are due. Returns false, without effect, if fewer wait.
    [[nodiscard]] bool commit(std::uint64_t count) {
        if (count > depth_) return false;
        depth_ -= count;
        due_ += count;
        return true;
    }
    /// The `count` newest P0 elements were cancelled, together with all elements after the oldest of them, except
    /// Kind::kept. Returns false, without effect, if fewer wait.
    [[nodiscard]] bool cancel(std::uint64_t count) {
        if (count > depth_) return false;
        depth_ -= count;
        std::size_t from = tail_;  // rows at and after this index are removed
        while (count != 0) {
            Row& row = rows_[from - 1];
            if (row.weight > count) {
                row.weight -= static_cast<std::uint32_t>(count);
                if (row.is == Is::outcomes) row.value = Row::coded(row.value, row.weight);
                break;
            }
            count -= row.weight;
            --from;
        }
        remove_from(from, [](const Row& row) { return !row.is_kept(); });
        return true;
    }
    /// Inverts the newest outcome, even if it was committed; addresses after it belong to the wrong path and are
    /// discarded. Returns false if there is no outcome, and no P0 element from before the synchronisation point that
    /// could be one.
    [[nodiscard]] bool mispredict() {
        const std::size_t i = newest_outcome(0).first;
        if (i == 0) return false;
        if (Row& row = rows_[i - 1]; row.is == Is::outcomes) row.value ^= std::uint64_t{1} << (row.weight - 1);
        remove_from(i, [](const Row& r) { return r.is == Is::address || r.is == Is::packed_address; });
        return true;
    }
    /// Whether mispredict() would return true after cancel(`count`). Precondition: `count` P0 elements wait.
    [[nodiscard]] bool outcome_before(std::uint64_t count) const { return newest_outcome(count).first != 0; }

    /// Excludes the newest committed outcome and the elements after it from the due ones: the trace may still report
    /// that it was mispredicted.
    void hold() {
        due_ += std::exchange(held_, 0);
        constexpr std::size_t few_rows = 512;  // searched from the tail
        if (size() <= few_rows) {
            const auto [row, newer] = newest_outcome(depth_);
            if (row != 0) held_ = std::max(newer, depth_) - depth_ + 1;  // itself, and committed elements after it
        } else {                                                         // only committed rows, however many wait
            std::uint64_t left = due_;
            for (std::size_t i = head_; left != 0; ++i) {
                const std::uint64_t of_row = std::min<std::uint64_t>(rows_[i].weight, left);
                if (of_row != 0 && rows_[i].holds_outcomes()) held_ = left - of_row + 1;
                left -= of_row;
            }
        }
        due_ -= held_;
    }
    /// Delivers the first row, or its outcomes that are due, after hold(), by `deliver(at, outcomes)`, `deliver(at,
    /// packed)` or `deliver(at, element)`, which must not add to the queue. Returns whether another may follow.
    template <class Deliver>
    bool deliver_first(Deliver&& deliver) {
        if (head_ == tail_) return false;
        Row& row = rows_[head_];
        if (row.weight <= due_) {
            due_ -= row.weight;
            ++head_;
            give(row, deliver);
            return head_ != tail_;
        }
        if (due_ == 0) return false;
        const auto count = static_cast<std::uint8_t>(due_);
        row.weight -= static_cast<std::uint32_t>(std::exchange(due_, 0));
        if (row.is == Is::outcomes) {
            const Outcomes oldest{static_cast<std::uint32_t>(row.value) & low_bits(count), count};
            row.value >>= count;
            deliver(row.at, oldest);
        }
        return false;
    }
    /// Delivers all committed elements, including the newest outcome, and elements that cannot be cancelled.
    template <class Deliver>
    void settle(Deliver&& deliver) {
        due_ += std::exchange(held_, 0);
        while (deliver_first(deliver)) {
        }
    }
    /// No waiting element will be committed: settles the committed ones, delivers elements of Kind::kept and discards
    /// the rest. Returns the number of discarded P0 elements.
    template <class Deliver>
    std::uint64_t discard(Deliver&& deliver) {
        settle(deliver);
        for (; head_ != tail_; ++head_)
            if (rows_[head_].is_kept()) give(rows_[head_], deliver);
        slots_.clear();
        free_.clear();
        return std::exchange(depth_, 0);
    }

    // ---- for inner loops

    /// Number of P0 elements that were committed and not yet delivered; after hold(), without the held ones.
    [[nodiscard]] std::uint64_t due() const { return due_; }
    /// Room for an inner loop to write rows, and the number of P0 elements.
    struct Room {
        Row* row;
        std::uint64_t depth;
        std::uint64_t undelivered;  ///< depth, and the number of committed elements that are not delivered yet
    };
    /// Room for `count` rows. It stays in place until any calls have added that number of rows; add_before_waiting()
    /// adds up to two.
    [[nodiscard]] Room room(std::size_t count) {
        if (tail_ + count >= rows_.size()) [[unlikely]]
            make_room(count);
        return {rows_.data() + tail_, depth_, depth_ + due_ + held_};
    }
    /// The inner loop has written rows, up to `now.row`.
    void added(const Room& now) {
        tail_ = static_cast<std::size_t>(now.row - rows_.data());
        depth_ = now.depth;
        due_ = now.undelivered - now.depth;
        held_ = 0;
    }
    /// The first row. The last one is followed by one that is neither outcomes nor packed.
    [[nodiscard]] Row* rows() {
        rows_[tail_].is = Is::p0;
        return rows_.data() + head_;
    }
    [[nodiscard]] const Row* rows_end() const { return rows_.data() + tail_; }
    /// The follower has consumed the rows before `end`; `due` P0 elements are still due.
    void taken(const Row* end, std::uint64_t due) {
        head_ = static_cast<std::size_t>(end - rows_.data());
        due_ = due;
    }

private:
    static constexpr std::uint32_t low_bits(std::uint32_t count) {
        return static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
    }

    void push(const Row& row) {
        *room(1).row = row;
        ++tail_;
        depth_ += row.weight;
    }
    /// Moves the last row. Precondition: it has no P0 element, and there is room for another one.
    void move_before_waiting() {
        const Row added = rows_[tail_ - 1];
        std::size_t to = tail_ - 1;
        std::uint64_t waits = depth_;
        for (; waits != 0 && rows_[to - 1].weight <= waits; --to) {
            waits -= rows_[to - 1].weight;
            rows_[to] = rows_[to - 1];
        }
        rows_[to] = added;
        if (waits == 0) return;
        // The oldest outcomes of the row before it are committed.
        const auto place = [&](std::size_t i) { return rows_.begin() + static_cast<std::ptrdiff_t>(i); };
        std::move_backward(place(to + 1), place(tail_), place(tail_ + 1));
        ++tail_;
        Row& older = rows_[to - 1];
        Row& newer = rows_[to + 1] = older;
        const auto due = older.weight - static_cast<std::uint32_t>(waits);
        newer.weight = static_cast<std::uint32_t>(waits);
        older.weight = due;
        if (older.is != Is::outcomes) return;
        newer.value >>= due;
        older.value = Row::coded(older.value, due);
    }
    /// Each row moves at most once for each row added since.
    void make_room(std::size_t count) {
        if (head_ >= rows_.size() / 2) {
            std::move(rows_.begin() + static_cast<std::ptrdiff_t>(head_),
                      rows_.begin() + static_cast<std::ptrdiff_t>(tail_), rows_.begin());
            tail_ -= std::exchange(head_, 0);
        }
        if (tail_ + count >= rows_.size()) rows_.resize(2 * (tail_ + count) + 1);
    }
    /// Index + 1 of the row with the newest outcome, or unseen P0 element, that is older than the `count` newest P0
    /// elements, or 0; and the number of P0 elements after that row.
    [[nodiscard]] std::pair<std::size_t, std::uint64_t> newest_outcome(std::uint64_t count) const {
        std::uint64_t behind = 0;
        for (std::size_t i = tail_; i != head_; behind += rows_[--i].weight)
            if (behind + rows_[i - 1].weight > count && rows_[i - 1].holds_outcomes()) return {i, behind};
        return {};
    }
    template <class Goes>
    void remove_from(std::size_t from, Goes&& goes) {
        std::size_t to = from;
        for (; from != tail_; ++from) {
            const Row& row = rows_[from];
            if (!goes(row))
                rows_[to++] = row;
            else if (row.is <= Is::kept)  // the row has a slot
                free_.push_back(static_cast<std::uint32_t>(row.value));
        }
        tail_ = to;
    }
    template <class Deliver>
    void give(const Row row, Deliver& deliver) {
        switch (row.is) {
            case Is::outcomes:
                return deliver(row.at, Outcomes{static_cast<std::uint32_t>(row.value) & low_bits(row.weight),
                                                static_cast<std::uint8_t>(row.weight)});
            case Is::packed_address: return deliver(row.at, PackedAddress{row.value});
            case Is::packed_count: return deliver(row.at, PackedCount{row.value});
            case Is::unseen: return;
            default: break;
        }
        free_.push_back(static_cast<std::uint32_t>(row.value));
        deliver(row.at, std::move(slots_[row.value]));
    }

    std::vector<Row> rows_ = std::vector<Row>(16);
    std::size_t head_ = 0, tail_ = 0;  // tail_ < rows_.size()
    std::uint64_t depth_ = 0, due_ = 0, held_ = 0;
    std::vector<T> slots_;             // of rows that have one
    std::vector<std::uint32_t> free_;  // slots that no row has
};

}  // namespace waymark::follow
