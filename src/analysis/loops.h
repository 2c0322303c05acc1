/// Loops of a function, from the observed control flow within it.
///
/// A natural loop has a header that dominates it: every path from the function's entry to the loop passes the header.
/// Its back edges are the flows to the header from code that the header dominates. The loop consists of the header and
/// all code that leads to a back edge without passing the header. All back edges to one header make one loop. Two
/// natural loops with different headers are either disjoint or nested.
///
/// An irreducible region repeats without such a header: without all back edges, it is code that leads to itself,
/// together with the natural loops whose headers it contains. Each such region is one loop here. It is entered at
/// several places.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace waymark::analysis {

/// A flow of control within a function, and how often it was taken. Instructions are numbered by address.
struct CodeFlow {
    std::uint32_t from{}, to{};
    std::uint64_t times{};
    friend bool operator==(const CodeFlow&, const CodeFlow&) = default;
};

/// A function whose flows are known.
struct LoopCode {
    std::uint32_t instructions{};
    std::vector<CodeFlow> flows{};
    std::vector<std::uint32_t> begins{};  ///< where the function is entered
    /// Instructions that control also reached by an unknown flow, as after lost trace. Such an instruction is taken for
    /// an entry only if nothing else leads to it.
    std::vector<std::uint32_t> resumes{};
};

constexpr std::uint32_t no_loop = ~std::uint32_t{0};

struct CodeLoop {
    /// The header. For an irreducible region: its entry with the most flows from inside the region; of equals, the
    /// first.
    std::uint32_t head{};
    std::uint32_t tail{};           ///< the last instruction in the loop that leads to the head
    std::uint32_t outer = no_loop;  ///< the loop directly around it
    std::uint32_t depth = 1;        ///< 1: outermost loop
    bool irreducible{};
    std::vector<std::uint32_t> entries{};  ///< where it is entered; a natural loop only at its header
    std::uint64_t inside{};                ///< number of flows from the loop to its entries
};

struct CodeLoops {
    std::vector<CodeLoop> loops;           ///< inner ones before outer ones
    std::vector<std::uint32_t> innermost;  ///< by instruction: the innermost loop it is in, or `no_loop`

    [[nodiscard]] bool contains(std::uint32_t loop, std::uint32_t instruction) const;
    /// By loop: pre-order number of the loop, and one past the last number among its inner loops. Set by `find_loops`.
    std::vector<std::uint32_t> first, last;
};

/// Takes O(n log n).
[[nodiscard]] CodeLoops find_loops(const LoopCode& code);

}  // namespace waymark::analysis
