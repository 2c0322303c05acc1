/// One entry of a branch stack: a branch that was taken, as Linux has it in samples (docs/branch-stacks.md, "The
/// bytes"). LBR of x86-64, BRBE of Armv9 and the branch stacks that perf makes of trace have one form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::capture::perf {

/// What kind of branch the hardware or the kernel took it for (PERF_BR_…).
enum class BranchEntryType : std::uint8_t {
    unknown,
    conditional,
    unconditional,
    indirect,
    call,
    indirect_call,
    function_return,
    system_call,
    system_return,
    conditional_call,
    conditional_return,
    exception_return,
    interrupt,
    system_error,
    no_transaction,
    extended  ///< `BranchEntry::new_type` has it
};
/// As `perf script` writes it: `COND`, `CALL`; empty for `unknown`.
[[nodiscard]] std::string_view name(BranchEntryType type);

/// Whether it was executed on a path that the program really took.
enum class Speculation : std::uint8_t { not_known, wrong_path, not_speculative, right_path };

struct BranchEntry {
    std::uint64_t from{}, to{};  ///< addresses of branch and target; 0: not recorded
    bool mispredicted{}, predicted{}, in_transaction{}, aborted{};
    std::uint16_t cycles{};  ///< since the entry before; 0: not known
    BranchEntryType type{};
    Speculation speculation{};
    std::uint8_t new_type{};   ///< PERF_BR_NEW_…, of BranchEntryType::extended
    std::uint8_t privilege{};  ///< 0: not known, 1: user, 2: kernel, 3: hypervisor

    /// Not a branch of the program: an interrupt, fault or system call.
    [[nodiscard]] constexpr bool is_exception() const {
        return type == BranchEntryType::system_call || type == BranchEntryType::interrupt ||
               type == BranchEntryType::system_error || type == BranchEntryType::extended || aborted;
    }
    friend bool operator==(const BranchEntry&, const BranchEntry&) = default;
};

inline constexpr std::size_t branch_entry_bytes = 24;
[[nodiscard]] BranchEntry parse_branch_entry(std::span<const std::uint8_t, branch_entry_bytes> bytes);
[[nodiscard]] std::array<std::uint8_t, branch_entry_bytes> encode_branch_entry(const BranchEntry& entry);

/// Linux has the kernel in the upper half of addresses, on AArch64 as on x86-64.
[[nodiscard]] constexpr bool is_kernel_address(std::uint64_t address) { return (address >> 63) != 0; }

}  // namespace waymark::capture::perf
