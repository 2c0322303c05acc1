/// simpleperf's branch lists: what program flow trace says without any program's file, by build ID. An entry is an
/// address that the trace gave, and the outcomes of the branches from there on until the next address.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace waymark::answers {

/// Outcomes, the first in bit 0 of the first byte, 1 for taken. How many there are need not be a multiple of 8.
struct Outcomes {
    std::vector<std::uint8_t> bytes{};
    std::uint32_t count{};
    [[nodiscard]] bool taken(std::uint32_t n) const { return (bytes[n / 8] >> n % 8 & 1U) != 0; }
    friend auto operator<=>(const Outcomes&, const Outcomes&) = default;
};

/// Where a kernel module was in memory, by which addresses of its list become those in its file.
struct ModulePlace {
    std::uint64_t first{}, end{};      ///< of its memory
    std::string symbol{};              ///< one of its symbols
    std::uint64_t address{}, bytes{};  ///< of the symbol, in memory
    friend auto operator<=>(const ModulePlace&, const ModulePlace&) = default;
};

struct BranchListImage {
    std::string path, build_id;  ///< build ID hexadecimal
    std::uint32_t type{};        ///< 0 ELF, 1 kernel, 2 kernel module
    std::uint64_t kernel_start{};
    ModulePlace module{};  ///< where `first` is 0, addresses of its list are those in the file
    /// Address in the file (bit 0: Thumb), outcomes → how often.
    std::map<std::pair<std::uint64_t, Outcomes>, std::uint64_t> lists{};
};

/// Images by build, or without a build ID by path, and by where the kernel and the module were in memory.
using BranchLists = std::map<std::tuple<std::string, std::string, std::uint64_t, ModulePlace>, BranchListImage>;
/// Adds to the lists of the image's build; of several paths and forms of a build ID, the first in the alphabet counts.
void add_image(BranchLists& lists, BranchListImage image);

}  // namespace waymark::answers
