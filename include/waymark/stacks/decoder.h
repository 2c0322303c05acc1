/// Decodes branch stacks with a program to flow (docs/branch-stacks.md, "What follows from a stack"). Each stack is a
/// stretch of the run. Between two entries, and only there, the program shows which code ran.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "waymark/capture/branch_entry.h"
#include "waymark/core/gap.h"
#include "waymark/core/types.h"
#include "waymark/flow/flow.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"

namespace waymark::stacks {

using StackEntry = capture::perf::BranchEntry;
using capture::perf::BranchEntryType;
using capture::perf::Speculation;
inline constexpr std::size_t entry_bytes = capture::perf::branch_entry_bytes;

struct Config {
    isa::Isa isa = isa::Isa::a64;               ///< a64 or x86_64
    std::uint32_t max_walk_bytes = 64U * 1024;  ///< between two entries
    friend bool operator==(const Config&, const Config&) = default;
};

/// Takes the bytes of a stream: entries, in each stack the newest first. A stack ends where the stream is reset. `Out`
/// is a flow::BatchWriter or flow::CountWriter.
template <class Out>
class StackDecoder {
public:
    /// `code` and `out` are borrowed.
    StackDecoder(const Config& config, const isa::CodeReader& code, Out& out)
        : config_(config), code_(code), out_(out) {}
    void feed(Bytes bytes);
    void reset(GapReason why);
    void finish() { end_stack(); }
    [[nodiscard]] std::array<Offset, 2> pending() const { return {begin_, begin_}; }
    [[nodiscard]] bool amid_packet() const { return held_.size() % entry_bytes != 0; }
    /// Number of entries so far.
    [[nodiscard]] std::uint64_t packets() const { return entries_; }
    /// Number of stretches of code whose path is remembered, and its limit.
    [[nodiscard]] std::size_t remembered() const { return walks_.size(); }
    static constexpr std::size_t most_remembered = std::size_t{1} << 16;

private:
    /// The path from the target of one branch to the source of the next.
    struct Walk {
        enum class Found : std::uint8_t { branch, no_branch, no_code, nonsense } found{};
        std::vector<std::uint32_t> edges{};     // blocks that ended with a branch not taken
        std::optional<std::uint32_t> last{};    // the block that the branch ends
        std::optional<std::uint32_t> before{};  // the same block without its last instruction; none: it has one only
        isa::Instruction branch{};
        Address where{};  // where there is no code, or where the code contradicts the stack
        flow::Conflict conflict = flow::Conflict::address_disagrees;
    };
    void end_stack();
    [[nodiscard]] const Walk& walk(std::uint64_t from, std::uint64_t to);
    [[nodiscard]] Walk make_walk(std::uint64_t from, std::uint64_t to) const;
    /// The branch at `from` was taken; the code before it is unknown.
    void branch_alone(const StackEntry& entry, Offset at);
    void stretch(std::uint64_t start, const StackEntry& end, Offset at);
    void arrive(const StackEntry& newest, Offset at);
    void break_flow(Offset at);
    void interrupt(const StackEntry& entry, Offset at);
    [[nodiscard]] flow::Block block(std::uint64_t start, std::uint64_t end, std::uint32_t instructions) const;
    [[nodiscard]] static bool agrees(const isa::Instruction& branch, const StackEntry& entry);

    const Config config_;
    const isa::CodeReader& code_;
    Out& out_;
    std::vector<std::uint8_t> held_;  // bytes of the current stack, from begin_ on
    Offset begin_{};
    std::uint64_t entries_ = 0;
    isa::Space space_{};  // of that stack
    bool flows_ = false;  // the next block follows the last delivered one
    std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint64_t>, Walk> walks_;
    std::size_t walk_edges_ = 0;  // edges in all of walks_
};

}  // namespace waymark::stacks
