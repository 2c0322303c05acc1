/// Time does not go back: the timestamps of a stream, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "waymark/flow/flow.h"

namespace waymark::follow {

class TimeOrder {
public:
    /// Records a timestamp that is unknown, or not less than the previous one, so that it only needs to be delivered.
    /// Returns false, without effect, for any other timestamp.
    [[nodiscard]] WM_INLINE bool plain(const flow::Timestamp& t) {
        if (!t.known) return true;
        if (open_ || t.value < last_) [[unlikely]]
            return false;
        last_ = t.value;
        return true;
    }
    /// Records any timestamp; returns the previous one if it is greater.
    [[nodiscard]] std::optional<std::uint64_t> take(const flow::Timestamp& t) {
        if (plain(t)) return {};
        if (t.value == 0) return {};  // the unit did not know the time
        const std::uint64_t before = std::exchange(last_, t.value);
        if (!std::exchange(open_, false)) return before;
        first_ = t.value;
        return {};
    }
    /// Later timestamps may be smaller than earlier ones.
    void forget() {
        last_ = 0;
        open_ = false;
    }

    /// The last timestamp taken; 0 if there was none.
    [[nodiscard]] std::uint64_t latest() const { return last_; }
    /// Continues after that timestamp.
    void go_on_behind(std::uint64_t latest) {
        *this = {};
        last_ = latest;
    }

    // ---- for follow::Parallel

    /// Begins inside a stream, where the previous timestamp is not known.
    void begin_inside() {
        *this = {};
        open_ = true;
    }
    /// Whether the first timestamp since begin_inside() is less than the last one in `before`, the preceding part.
    [[nodiscard]] bool contradicts(const TimeOrder& before) const { return first_ && *first_ < before.last_; }
    /// Joins with the preceding part.
    void join(const TimeOrder& before) {
        first_.reset();
        if (!std::exchange(open_, false)) return;
        last_ = before.last_;
    }

private:
    std::uint64_t last_ = 0;
    bool open_ = false;                   // there was no timestamp since begin_inside()
    std::optional<std::uint64_t> first_;  // after begin_inside()
};

}  // namespace waymark::follow
