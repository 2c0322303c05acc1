/// The model's return stack: a ring that drops its oldest entry (docs/spec/pft.md, 4.5).
#pragma once

#include <algorithm>
#include <array>

#include "waymark/pft/state.h"

namespace waymark::pft {

class ModelReturnStack {
public:
    struct Entry {
        Place place;
        bool ns{}, certain{};  ///< not `certain`: its state is not in the trace, so it never matches
    };
    static constexpr unsigned most_entries = 16;

    /// `depth` 0: no entry is kept.
    explicit ModelReturnStack(unsigned depth) : depth_(std::min(depth, most_entries)) {}

    [[nodiscard]] bool empty() const { return size_ == 0; }
    /// Precondition: not empty.
    [[nodiscard]] const Entry& top() const { return entries_[top_]; }
    void push(const Entry& entry) {
        if (depth_ == 0) return;
        top_ = (top_ + 1) % depth_;
        entries_[top_] = entry;
        size_ = std::min(size_ + 1, depth_);
    }
    /// Precondition: not empty.
    void pop() {
        top_ = (top_ + depth_ - 1) % depth_;
        --size_;
    }
    void clear() { size_ = 0; }

private:
    unsigned depth_;
    std::array<Entry, most_entries> entries_{};
    unsigned top_ = 0, size_ = 0;
};

}  // namespace waymark::pft
