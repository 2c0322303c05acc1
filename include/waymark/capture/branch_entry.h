/// One entry of a branch stack: a taken branch in the form that Linux uses in samples (docs/branch-stacks.md, "The
/// bytes"). LBR of x86-64, BRBE of Armv9 and the branch stacks that perf synthesises from trace have the same form.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::capture::perf {

/// Kind of branch, as classified by the hardware or the kernel (PERF_BR_…).
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
/// The name that `perf script` writes: `COND`, `CALL`; empty for `unknown`.
[[nodiscard]] std::string_view name(BranchEntryType type);

/// Whether the branch was on the path that the program really took.
enum class Speculation : std::uint8_t { not_known, wrong_path, not_speculative, right_path };

struct BranchEntry {
    std::uint64_t from{}, to{};  ///< addresses of branch and target; 0: not recorded
    bool mispredicted{}, predicted{}, in_transaction{}, aborted{};
    std::uint16_t cycles{};  ///< cycles since the previous entry; 0: not known
    BranchEntryType type{};
    Speculation speculation{};
    std::uint8_t new_type{};   ///< PERF_BR_NEW_…, of BranchEntryType::extended
    std::uint8_t privilege{};  ///< 0: not known, 1: user, 2: kernel, 3: hypervisor

    /// Whether the entry is not a branch of the program but an interrupt, fault or system call.
    [[nodiscard]] constexpr bool is_exception() const {
        return type == BranchEntryType::system_call || type == BranchEntryType::interrupt ||
               type == BranchEntryType::system_error || type == BranchEntryType::extended || aborted;
    }
    friend bool operator==(const BranchEntry&, const BranchEntry&) = default;
};

inline constexpr std::size_t branch_entry_bytes = 24;
[[nodiscard]] BranchEntry parse_branch_entry(std::span<const std::uint8_t, branch_entry_bytes> bytes);
[[nodiscard]] std::array<std::uint8_t, branch_entry_bytes> encode_branch_entry(const BranchEntry& entry);

/// Whether an address belongs to the kernel: Linux uses the upper half of addresses, on AArch64 and x86-64.
[[nodiscard]] constexpr bool is_kernel_address(std::uint64_t address) { return (address >> 63) != 0; }

}  // namespace waymark::capture::perf
