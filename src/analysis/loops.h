/// How often control came into loops from themselves.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace waymark::analysis {

/// A way that control went within a function, however often. Instructions have numbers in the order of their addresses.
struct CodeFlow {
    std::uint32_t from{}, to{};
    std::uint64_t times{};
    friend bool operator==(const CodeFlow&, const CodeFlow&) = default;
};

struct LoopBounds {
    std::uint32_t head{}, tail{};
    friend bool operator==(const LoopBounds&, const LoopBounds&) = default;
};

/// A function whose flows are known.
struct LoopCode {
    std::uint32_t instructions{};
    std::vector<CodeFlow> flows{};
    std::vector<std::uint32_t> begins{};  ///< what control came to by no flow
};

struct LoopFlows {
    /// Of each loop: times control came to what lies between head and tail from there, or, not to the head, from code
    /// outside that control got to only through the loop.
    std::vector<std::uint64_t> inside;
    std::vector<bool> at_least;  ///< by loop: it may be more
};

/// Takes O(n log n), but for loops that are entered at several places, where none alone leads to code outside that they
/// may lead to together: each costs O(n), and is counted in `work`. Once that is above `most_work`, they are
/// `at_least`.
[[nodiscard]] LoopFlows flows_within(const LoopCode& code, std::span<const LoopBounds> loops, std::uint64_t& work,
                                     std::uint64_t most_work);

}  // namespace waymark::analysis
