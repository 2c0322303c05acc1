#include "waymark/analysis/known_repeats.h"

#include <algorithm>
#include <utility>

namespace waymark::analysis {

bool KnownRepeats::missed(const KnownRepeat::Begin& begin) {
    if (missed_.empty()) {
        known_.resize(std::size_t{1} << options_.log2_size);
        rests_.resize(known_.size());
        missed_.resize(std::size_t{4} << options_.log2_size);
        shift_ = 64 - options_.log2_size;
    }
    if (options_.eager) return true;
    const std::uint64_t h = hash(begin);
    const auto tag = static_cast<std::uint16_t>(h >> 24 | 1U);
    const bool again = std::exchange(missed_[h >> (shift_ - 2)], tag) == tag;
    if (++misses_ == misses_judged) {
        const bool pays = hits_ - hits_judged_ >= misses_judged / 2;
        rest_ = next_rest_ = pays ? 0 : std::min(std::max(2 * next_rest_, least_rest), most_rest);
        hits_judged_ = hits_;
        misses_ = 0;
    }
    return again;
}

void WatchedRepeat::ran(std::uint32_t node, const Work& work) {
    if (work.cycles != 0 || work.instructions > ~std::uint32_t{0} - known_.instructions) return give_up();
    known_.instructions += static_cast<std::uint32_t>(work.instructions);
    visit(node).instructions += work.instructions;
}

void WatchedRepeat::called(std::uint32_t node) { ++visit(node).calls; }

void WatchedRepeat::popped(std::size_t frames, const KnownRepeat::Pop& pop) {
    if (known_.pops == KnownRepeat::most_pops) return give_up();
    (known_.pops == 0 ? known_.popped : rest_.popped[known_.pops - 1U]) = pop;
    ++known_.pops;
    known_.replaced = rest_.unwinds = false;
    base_ = frames;
}

KnownRepeat::Turn& WatchedRepeat::turn(const Way& way) {
    const auto end = rest_.turn.begin() + rest_.turns;
    const auto found = std::find_if(rest_.turn.begin(), end, [&](const auto& t) { return t.way == way; });
    if (found != end) return *found;
    if (rest_.turns == KnownRepeat::most_turns) {
        give_up();
        return rest_.turn.front();
    }
    rest_.turn[rest_.turns].way = way;
    return rest_.turn[rest_.turns++];
}

KnownRepeat::Visit& WatchedRepeat::visit(std::uint32_t node) {
    const auto end = rest_.visit.begin() + rest_.visits;
    const auto found = std::find_if(rest_.visit.begin(), end, [&](const auto& v) { return v.node == node; });
    if (found != end) return *found;
    if (rest_.visits == KnownRepeat::most_visits) {
        give_up();
        return rest_.visit.front();
    }
    rest_.visit[rest_.visits].node = node;
    return rest_.visit[rest_.visits++];
}

}  // namespace waymark::analysis
