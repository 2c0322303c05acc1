/// Time does not go back: the timestamps of a stream, in order.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "waymark/flow/flow.h"

namespace waymark::follow {

class TimeOrder {
public:
    /// It is not known, or not less than the one before, and so needs nothing but to be delivered; it is taken in.
    /// False: nothing was done.
    [[nodiscard]] WM_INLINE bool plain(const flow::Timestamp& t) {
        if (!t.known) return true;
        if (open_ || t.value < last_) [[unlikely]]
            return false;
        last_ = t.value;
        return true;
    }
    /// Takes any timestamp in: the one before it, if that is greater.
    [[nodiscard]] std::optional<std::uint64_t> take(const flow::Timestamp& t) {
        if (plain(t)) return {};
        if (t.value == 0) return {};  // the unit did not know the time
        const std::uint64_t before = std::exchange(last_, t.value);
        if (!std::exchange(open_, false)) return before;
        first_ = t.value;
        return {};
    }
    /// What comes need not be later than what was.
    void forget() {
        last_ = 0;
        open_ = false;
    }

    // ---- for follow::Parallel

    /// Begins inside a stream, where the timestamp before is not known.
    void begin_inside() {
        *this = {};
        open_ = true;
    }
    /// The first timestamp since begin_inside() is less than the last of `before`, which is what came before.
    [[nodiscard]] bool contradicts(const TimeOrder& before) const { return first_ && *first_ < before.last_; }
    /// `before` is what came before.
    void join(const TimeOrder& before) {
        first_.reset();
        if (!std::exchange(open_, false)) return;
        last_ = before.last_;
    }

private:
    std::uint64_t last_ = 0;
    bool open_ = false;                   // none came since begin_inside()
    std::optional<std::uint64_t> first_;  // after begin_inside()
};

}  // namespace waymark::follow
