#include "head_past.h"

#include <algorithm>

namespace waymark::follow::head {

std::size_t Histories::Hash::operator()(const History& history) const {
    std::uint64_t h = 0;
    for (const Entry& e : history) {
        h = (h ^ e.address.value ^ std::uint64_t{static_cast<unsigned>(e.isa)} << 56 ^
             std::uint64_t{static_cast<unsigned>(e.kind)} << 60) *
            0x9e37'79b9'7f4a'7c15U;
        h ^= h >> 29;
    }
    return static_cast<std::size_t>(h);
}

std::uint32_t Histories::intern(const History& history) {
    if (history == History{}) return none;
    const auto [found, is_new] = index_.try_emplace(history, static_cast<std::uint32_t>(histories_.size()));
    if (is_new) histories_.push_back(history);
    return found->second;
}

std::uint32_t Histories::push(std::uint32_t history, const Entry& entry) {
    History h = at(history);
    for (unsigned i = depth_ - 1; i > 0; --i) h[i] = h[i - 1];
    h[0] = entry;
    return intern(h);
}

std::uint32_t Histories::replace(std::uint32_t history, unsigned i, const Entry& entry) {
    History h = at(history);
    if (i < depth_) h[i] = entry;
    return intern(h);
}

std::uint32_t Stacks::push(Place place, std::uint32_t below) {
    const Entry entry{place, below};
    const auto [found, is_new] = index_.try_emplace(entry, static_cast<std::uint32_t>(entries_.size()));
    if (is_new) entries_.push_back(entry);
    return found->second;
}

std::uint32_t Stacks::common(std::uint32_t a, std::uint32_t b) {
    std::vector<Place> same;
    for (; a != b && has_top(a) && has_top(b) && top(a).place == top(b).place; a = top(a).below, b = top(b).below)
        same.push_back(top(a).place);
    std::uint32_t out = a == b ? a : none;
    for (; !same.empty(); same.pop_back()) out = push(same.back(), out);
    return out;
}

std::vector<Place> Stacks::entries(std::uint32_t stack) const {
    std::vector<Place> out;
    for (; has_top(stack); stack = top(stack).below) out.push_back(top(stack).place);
    return out;
}

}  // namespace waymark::follow::head
