/// simpleperf's branch lists: program flow trace in a form that needs no program file, by build ID. An entry is an
/// address from the trace, with the outcomes of the branches from there to the next address.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace waymark::answers {

/// Outcomes, the first in bit 0 of the first byte, 1 for taken. Their number need not be a multiple of 8.
struct Outcomes {
    std::vector<std::uint8_t> bytes{};
    std::uint32_t count{};
    [[nodiscard]] bool taken(std::uint32_t n) const { return (bytes[n / 8] >> n % 8 & 1U) != 0; }
    friend auto operator<=>(const Outcomes&, const Outcomes&) = default;
};

/// Place of a kernel module in memory, by which addresses in its list are converted to addresses in its file.
struct ModulePlace {
    std::uint64_t first{}, end{};      ///< of its memory
    std::string symbol{};              ///< one of its symbols
    std::uint64_t address{}, bytes{};  ///< of the symbol in memory
    friend auto operator<=>(const ModulePlace&, const ModulePlace&) = default;
};

struct BranchListImage {
    std::string path, build_id;  ///< build ID hexadecimal
    std::uint32_t type{};        ///< 0 ELF, 1 kernel, 2 kernel module
    std::uint64_t kernel_start{};
    ModulePlace module{};  ///< if `first` is 0, addresses in its list are those in the file
    /// By address in the file (bit 0: Thumb) and outcomes: number of occurrences.
    std::map<std::pair<std::uint64_t, Outcomes>, std::uint64_t> lists{};
};

/// Images by build ID, or by path if there is none, and by the place of the kernel and the module in memory.
using BranchLists = std::map<std::tuple<std::string, std::string, std::uint64_t, ModulePlace>, BranchListImage>;
/// Adds to the lists of the image's build; among several paths and forms of a build ID, the alphabetically first is
/// kept.
void add_image(BranchLists& lists, BranchListImage image);

}  // namespace waymark::answers
