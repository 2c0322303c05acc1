/// Random AArch32 programs and random executions of them: ground truth for decoders. The properties of each instruction
/// follow from its generation, not from decoding it.
#pragma once

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "support/random.h"
#include "support/trace_writer.h"
#include "waymark/flow/flow.h"
#include "waymark/isa/isa.h"

namespace waymark::synthetic {

/// Pieces of memory at addresses; the section id is the index.
class Memory final : public isa::CodeReader {
public:
    struct Section {
        std::uint64_t address{};
        std::vector<std::uint8_t> bytes;
    };

    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override;
    [[nodiscard]] isa::Space view(const isa::Space& space) const override { return one_view ? isa::Space{} : space; }
    [[nodiscard]] std::uint32_t section_of(std::uint64_t address) const;

    /// Ascending, without overlap.
    std::vector<Section> sections;
    /// Addresses [first, second) that answer as if there were no memory.
    std::vector<std::pair<std::uint64_t, std::uint64_t>> holes;
    /// The same memory in every space; if false, decoders must assume that each space differs.
    bool one_view = true;
};

struct ProgramOptions {
    std::uint64_t seed = 1;
    unsigned blocks = 300;           ///< approximate number
    unsigned sections = 3;           ///< of code, beside the sections of the vectors
    bool tee = false;                ///< some ThumbEE functions
    unsigned t32_functions = 4;      ///< number of T32 functions among every 8 functions in ARM or Thumb; handlers are
                                     ///< of both kinds
    bool barrier_waypoints = false;  ///< Config::barrier_waypoints: DMB and DSB end blocks
    bool a32_eret = true;            ///< the A32 ERET occurs
    bool blx_may_fail = true;        ///< a T32 BLX to an address may stand in an IT block
    std::uint32_t large_block_chance = 30;  ///< in 10 000 blocks: longer than 4096 bytes
};

/// Where execution continues after the waypoint instruction of a block, beyond flow::Block.
enum class Going : std::uint8_t {
    direct,         ///< to `target`
    call,           ///< to `target`, and returns to the instruction after the block
    call_anywhere,  ///< to any function start, and returns to the instruction after the block
    jump_anywhere,  ///< to any function start
    jump_exchange,  ///< to any function start, or to Jazelle
    jump_same_isa,  ///< to any function start in the same instruction set
    jump_near,      ///< to a block of the same function, in the same instruction set
    function_return,
    exception_return,
    next,  ///< barriers, ENTERX, LEAVEX
};

/// A block in the layout of the program.
struct ProgramBlock {
    flow::Block block{};
    std::uint32_t target_block{};  ///< of a direct branch
    std::uint32_t function{};
    std::uint32_t first_size{};  ///< index into Program::sizes
    std::uint32_t trap = none;   ///< index of an instruction in it that raises `trap_number`
    std::uint8_t trap_number{};
    Going going{};
    bool may_fail{};  ///< the waypoint instruction can fail: a block follows it
    static constexpr std::uint32_t none = 0xffffffff;
};

struct ProgramFunction {
    std::uint32_t first_block{}, blocks{};
    Isa isa{};
};

struct Program {
    Memory memory;
    std::vector<ProgramBlock> blocks;  ///< in one function: one after the other in memory
    std::vector<ProgramFunction> functions;
    std::vector<std::uint8_t> sizes;       ///< of every instruction of every block
    std::vector<std::uint32_t> by_isa[3];  ///< functions that start in A32, T32, ThumbEE
    std::vector<std::uint32_t> vectors;    ///< blocks, one for each exception and kind of table
};

[[nodiscard]] Program make_program(const ProgramOptions& options);

/// Chances in 10 000 waypoints.
struct WalkOptions {
    std::uint64_t seed = 1;
    std::uint32_t exceptions = 60;
    std::uint32_t debug = 5;
    std::uint32_t prohibited = 0;
    std::uint32_t context_changes = 20;
    std::uint32_t vmid_changes = 5;
    std::uint32_t filter_changes = 10;
    std::uint32_t overflows = 3;
    std::uint32_t jazelle = 3000;         ///< in 10 000 BXJ
    std::uint32_t security_changes = 10;  ///< by MCR or MSR, within a block
    std::uint32_t wrong_returns = 200;    ///< in 10 000 returns
    std::uint32_t odd_exceptions = 500;   ///< in 10 000 exceptions: numbers that no A/R core gives
    std::uint32_t pauses = 20;            ///< of many cycles between two waypoints
    unsigned pause_bits = 34;             ///< pauses are shorter than 2 to the power of it; up to 64
    bool trustzone = true;                ///< S and NS
    bool virtualization = false;          ///< Hyp
};

/// An execution, waypoint by waypoint.
class Walk {
public:
    Walk(const Program& program, const WalkOptions& options);
    /// Runs for this many waypoints and exceptions.
    void run(Execution& execution, std::uint64_t steps);

private:
    struct Position {
        std::uint32_t block{};
        std::uint32_t instruction{};  ///< index in the block
    };
    struct Frame {
        Position back;
        bool ns{}, hyp{};
    };

    void step(Execution& execution);
    void changes(Execution& execution);
    void interrupt(Execution& execution, std::uint32_t at, std::uint32_t number, bool trap);
    void go(Execution& execution);
    [[nodiscard]] flow::Block part(std::uint32_t to) const;
    [[nodiscard]] Position function_start(std::uint32_t function) const;
    [[nodiscard]] Position anywhere(bool same_isa);
    [[nodiscard]] pft::Place place(Position position) const;
    [[nodiscard]] const ProgramBlock& block() const { return program_.blocks[at_.block]; }

    const Program& program_;
    const WalkOptions options_;
    Random random_;
    Position at_;
    std::uint64_t address_ = 0;  ///< of at_
    bool ns_ = false, hyp_ = false, filtered_ = false;
    std::uint64_t cycle_ = 100;
    std::vector<Position> calls_;
    std::vector<Frame> exceptions_;
};

}  // namespace waymark::synthetic
