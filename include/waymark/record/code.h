/// Interprets code as QEMU translated it: its instruction set and its waypoints.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/isa/isa.h"

namespace waymark::record {

/// A block as the plugin defines it.
struct Definition {
    Address address;
    std::vector<std::uint8_t> bytes;
    std::uint32_t instructions{};
    std::optional<Address> second{};  ///< address of the second instruction, where there is one
    std::string text{};               ///< QEMU's disassembly of the first instruction; empty: it had none
};

/// The plugin API does not show the T bit. Evidence for Thumb is an address that is not a multiple of four, or a first
/// instruction of two bytes. QEMU's own disassembler knows the state, so its text is compared with both interpretations
/// of the same bytes. nullopt if both remain possible; then the path of execution to the block decides.
[[nodiscard]] std::optional<isa::Isa> instruction_set(const Definition& definition);

/// The meaning of an instruction for a recording, beside tracing.
enum class Special : std::uint8_t { none, system_call, undefined, breakpoint, wait };  ///< wait: WFI

struct CodeInstruction {
    std::uint32_t offset{};  ///< from the block's address
    std::uint8_t bytes{};
    isa::Waypoint waypoint = isa::Waypoint::none;
    Special special = Special::none;
    bool may_stop{};  ///< record/checks.h
};

/// A waypoint instruction of a block; where every instruction is traced (flow/each_instruction.h), any instruction.
struct CodeWaypoint {
    std::uint32_t index{};  ///< among the block's instructions
    Address address;
    isa::Instruction instruction;
};

struct Code {
    Address address;
    isa::Isa isa = isa::Isa::a32;
    std::vector<std::uint8_t> bytes;  ///< exactly the bytes of the instructions
    std::vector<CodeInstruction> instructions;
    std::vector<CodeWaypoint> waypoints;
    [[nodiscard]] Address end() const { return address + bytes.size(); }
    /// The index of the instruction at `at`; nullopt if none begins there.
    [[nodiscard]] std::optional<std::uint32_t> index_of(Address at) const;
};

/// Computes instruction sizes again: QEMU 7.2 reports four bytes for the last 16-bit instruction before the end of a
/// page. `each`: every instruction is a CodeWaypoint.
[[nodiscard]] Code understand(const Definition& definition, isa::Isa isa, const isa::DecodeOptions& options,
                              bool each = false);

}  // namespace waymark::record
