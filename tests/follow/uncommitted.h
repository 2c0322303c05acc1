/// The simple form of follow::Waiting (waymark/follow/waiting.h), which delivers each element when it is committed:
/// tests compare the two.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "waymark/follow/waiting.h"

namespace waymark::follow {

/// `T`: an element of the protocol that is not an outcome.
template <class T>
class Uncommitted {
public:
    using Kind = WaitingKind;

    /// Outcomes of the packet at `at`; each is a P0 element.
    void add(Offset at, const Outcomes& outcomes) {
        entries_.push_back({at, Is::outcomes, outcomes.count, outcomes.e, {}});
        depth_ += outcomes.count;
    }
    void add(Offset at, Kind kind, T element) {
        const std::size_t weight = kind == Kind::p0 ? 1 : 0;
        entries_.push_back({at, static_cast<Is>(kind), weight, {}, std::move(element)});
        depth_ += weight;
    }
    /// Adds P0 elements from before the synchronisation point, for which only their number is known.
    void add_unseen(Offset at, std::size_t count) {
        if (count != 0) entries_.push_back({at, Is::unseen, count, {}, {}});
        depth_ += count;
    }

    /// Number of waiting P0 elements.
    [[nodiscard]] std::size_t depth() const { return depth_; }
    /// Whether nothing waits, so that the next element may be delivered without being added.
    [[nodiscard]] bool empty() const { return entries_.empty(); }
    /// Number of waiting entries; all outcomes of a packet are one entry.
    [[nodiscard]] std::size_t size() const { return entries_.size(); }
    /// Offset of the oldest packet that waits. Precondition: not empty.
    [[nodiscard]] Offset first() const { return entries_.front().at; }

    /// Adds an element after all committed elements: before the oldest waiting P0 element.
    void add_before_waiting(Offset at, T element) {
        std::size_t to = entries_.size(), waits = depth_;
        while (waits != 0 && entries_[to - 1].weight <= waits) waits -= entries_[--to].weight;
        const auto place = [&] { return entries_.begin() + static_cast<std::ptrdiff_t>(to); };
        if (waits != 0) {
            // The oldest P0 elements of this entry are committed.
            Entry& older = entries_[to - 1];
            const std::size_t due = older.weight - waits;
            Entry newer{older.at, older.is, waits, static_cast<std::uint32_t>(std::uint64_t{older.e} >> due), {}};
            older.weight = due;
            if (older.is == Is::outcomes) older.e &= low_bits(due);
            entries_.insert(place(), std::move(newer));
        }
        entries_.insert(place(), {at, Is::kept, 0, {}, std::move(element)});
    }

    /// The `count` oldest P0 elements were committed. Delivers them and other elements before them, by `deliver(at,
    /// outcomes)` and `deliver(at, element)`, except the newest outcome and the elements after it: the trace may still
    /// report that it was mispredicted. Returns false, without effect, if fewer wait.
    template <class Deliver>
    [[nodiscard]] bool commit(std::size_t count, Deliver&& deliver) {
        if (count > depth_) return false;
        depth_ -= count;
        committed_ += count;
        deliver_oldest(committed_ - held(), deliver);
        return true;
    }
    /// Delivers all committed elements, including the newest outcome, and elements that cannot be cancelled.
    template <class Deliver>
    void settle(Deliver&& deliver) {
        deliver_oldest(committed_, deliver);
        release(deliver);
    }
    /// Delivers the elements before the oldest remaining P0 element, which cannot change any more.
    template <class Deliver>
    void release(Deliver&& deliver) {
        while (!entries_.empty() && entries_.front().weight == 0) deliver_front(deliver);
    }

    /// The `count` newest P0 elements were cancelled, together with all elements after the oldest of them, except
    /// Kind::kept. Returns false, without effect, if fewer wait.
    [[nodiscard]] bool cancel(std::size_t count) {
        if (count > depth_) return false;
        depth_ -= count;
        std::vector<Entry> stay;  // newest first
        while (count != 0) {
            Entry& entry = entries_.back();
            if (entry.weight > count) {
                entry.weight -= count;
                if (entry.is == Is::outcomes) entry.e &= low_bits(entry.weight);
                break;
            }
            count -= entry.weight;
            if (entry.is == Is::kept) stay.push_back(std::move(entry));
            entries_.pop_back();
        }
        for (auto entry = stay.rbegin(); entry != stay.rend(); ++entry) entries_.push_back(std::move(*entry));
        return true;
    }

    /// Inverts the newest outcome, even if it was committed; addresses after it belong to the wrong path and are
    /// discarded. Returns false if there is no outcome, and no P0 element from before the synchronisation point that
    /// could be one.
    [[nodiscard]] bool mispredict() {
        std::size_t i = entries_.size();
        while (i != 0 && entries_[i - 1].is != Is::outcomes && entries_[i - 1].is != Is::unseen) --i;
        if (i == 0) return false;
        if (Entry& atom = entries_[i - 1]; atom.is == Is::outcomes) atom.e ^= 1U << (atom.weight - 1);
        const auto after = entries_.begin() + static_cast<std::ptrdiff_t>(i);
        entries_.erase(std::remove_if(after, entries_.end(), [](const Entry& e) { return e.is == Is::address; }),
                       entries_.end());
        return true;
    }

    /// No waiting element will be committed: settles the committed ones, delivers elements of Kind::kept and discards
    /// the rest. Returns the number of discarded P0 elements.
    template <class Deliver>
    std::size_t discard(Deliver&& deliver) {
        settle(deliver);
        for (Entry& entry : entries_)
            if (entry.is == Is::kept) deliver(entry.at, std::move(entry.element));
        entries_.clear();
        return std::exchange(depth_, 0);
    }

private:
    enum class Is : std::uint8_t { p0, address, dropped, kept, outcomes, unseen };
    struct Entry {
        Offset at;
        Is is{};
        std::size_t weight{};  ///< P0 elements
        std::uint32_t e{};     ///< outcomes: as Outcomes::e
        T element;
    };

    static constexpr std::uint32_t low_bits(std::size_t count) {
        return static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
    }
    /// Number of committed P0 elements from the newest outcome on.
    [[nodiscard]] std::size_t held() const {
        std::size_t held = 0, left = committed_;
        for (auto entry = entries_.begin(); left != 0; ++entry) {
            const std::size_t committed = std::min(entry->weight, left);
            if (committed != 0 && (entry->is == Is::outcomes || entry->is == Is::unseen)) held = left - committed + 1;
            left -= committed;
        }
        return held;
    }
    /// Delivers the `count` oldest P0 elements, and other elements before them. Precondition: they are committed.
    template <class Deliver>
    void deliver_oldest(std::size_t count, Deliver& deliver) {
        committed_ -= count;
        while (count != 0) {
            Entry& entry = entries_.front();
            if (entry.weight <= count) {
                count -= entry.weight;
                deliver_front(deliver);
                continue;
            }
            entry.weight -= count;
            if (entry.is == Is::outcomes) {
                const Outcomes now{entry.e & low_bits(count), static_cast<std::uint8_t>(count)};
                entry.e = static_cast<std::uint32_t>(std::uint64_t{entry.e} >> count);
                deliver(entry.at, now);
            }
            break;
        }
    }
    template <class Deliver>
    void deliver_front(Deliver& deliver) {
        Entry entry = std::move(entries_.front());
        entries_.pop_front();
        if (entry.is == Is::outcomes)
            deliver(entry.at, Outcomes{entry.e, static_cast<std::uint8_t>(entry.weight)});
        else if (entry.is != Is::unseen)
            deliver(entry.at, std::move(entry.element));
    }

    std::deque<Entry> entries_;
    std::size_t depth_ = 0, committed_ = 0;  // waiting P0 elements; held P0 elements
};

}  // namespace waymark::follow
