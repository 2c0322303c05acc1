/// Loops of a function, from the flow of control that was seen in it.
///
/// A natural loop has a header that dominates it: all ways from where the function is entered to the loop pass the
/// header. Its back edges are the flows from code that the header dominates to the header; it consists of the header
/// and all that leads to a back edge without passing the header. All back edges to one header make one loop. Natural
/// loops of different headers are disjoint or lie in one another.
///
/// What goes round without such a header is an irreducible region: once all back edges are left out, code that leads to
/// itself, with the natural loops whose headers are among it. Each such region is one loop here. It is entered at
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
    /// The header. For an irreducible region: the entry that the region itself leads to most often, or the first of
    /// those.
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
