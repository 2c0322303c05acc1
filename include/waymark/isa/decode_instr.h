/// Classifies instructions for program flow trace: is it a waypoint, and where does it lead? docs/spec/pft.md, section
/// 1.3. This is not a disassembler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "waymark/isa/isa.h"

namespace waymark::isa {

/// The end of a block. A barrier's target is the next instruction in the same instruction set; WFI, WFE and TSTART
/// count as barriers if they are waypoint instructions.
enum class Waypoint : std::uint8_t { none, direct, indirect, barrier };

/// Further instructions that count as waypoints; a property of the implementation.
struct DecodeOptions {
    bool dmb_dsb_waypoints = false;  ///< ETMCCER[24]: DMB and DSB, CP15 forms included, are waypoint instructions
    bool wait_waypoints = false;     ///< TRCIDR2.WFXMODE: WFI, WFE, WFIT and WFET are waypoint instructions
    bool transaction_start_waypoints = false;  ///< TSTART is (ETE)
};

/// The properties of an instruction that tracing needs.
struct Instruction {
    Address target{};        ///< direct: target if taken; barrier: the next instruction; else 0
    std::uint8_t bytes = 0;  ///< 2 or 4; for x86-64 1 to 15
    Waypoint waypoint = Waypoint::none;
    Isa target_isa = Isa::a32;  ///< direct and barrier: the instruction set there
    bool link = false;          ///< leaves a return address: pushes on the return stack
    bool conditional = false;   ///< by its own opcode (IT blocks are not tracked); informative
    bool exception_return = false;
    bool function_return = false;  ///< BX LR, POP {..pc}, MOV pc, LR and the like: a return by convention; informative
    bool undefined = false;        ///< permanently undefined (UDF): execution never passes it
    bool wait = false;             ///< WFI, WFE, WFIT, WFET, if they are waypoint instructions
    bool transaction_start = false;  ///< TSTART, if it is a waypoint instruction
    friend bool operator==(const Instruction&, const Instruction&) = default;
};

/// Whether a halfword is the first of a 32-bit Thumb instruction.
[[nodiscard]] constexpr bool is_thumb_32(std::uint32_t halfword) { return (halfword & 0xf800U) >= 0xe800U; }

/// Classifies one instruction. `opcode` is written as in section 1.3: the word for A32 and A64, the halfword for 16-bit
/// Thumb, `first << 16 | second` for 32-bit Thumb (`thumb_32`, from `is_thumb_32`, shows which of the two it is). In
/// Jazelle, and in x86-64, which decode_at() reads, no instruction is a waypoint and `bytes` is 0. Targets wrap at 32
/// bits, A64 targets at 64.
[[nodiscard]] Instruction decode_instr(Address address, Isa isa, std::uint32_t opcode, bool thumb_32,
                                       const DecodeOptions& options);

/// An instruction fetched from memory.
struct Fetched {
    std::uint32_t opcode{};
    std::uint8_t bytes{};     ///< 2 or 4; 0: the memory of the instruction, or of its second half, is not known
    std::uint32_t section{};  ///< section of its first byte
    friend bool operator==(const Fetched&, const Fetched&) = default;
};

/// Fills `into` with the known bytes from `address` on, and returns their number.
[[nodiscard]] std::size_t read(const CodeReader& code, const Space& space, Address address,
                               std::span<std::uint8_t> into);

/// Fetches the instruction at `address`; its two halves may be in different sections. Instructions are little-endian.
[[nodiscard]] Fetched fetch(const CodeReader& code, const Space& space, Address address, Isa isa);

/// `fetch` for instructions of one space that are mostly adjacent: it asks the reader again only at the end of the last
/// piece of memory.
class Fetcher {
public:
    /// Both are borrowed.
    Fetcher(const CodeReader& code, const Space& space) : code_(code), space_(space) {}
    [[nodiscard]] Fetched operator()(Address address, Isa isa);

private:
    const CodeReader& code_;
    const Space& space_;
    Code known_{};  // from `first_` on
    Address first_{};
};

/// Fetches and classifies the instruction at `address`; nullopt if its memory is not known, or if decode_instr() does
/// not know the instruction set.
[[nodiscard]] std::optional<Instruction> decode_at(const CodeReader& code, const Space& space, Address address, Isa isa,
                                                   const DecodeOptions& options);

}  // namespace waymark::isa
