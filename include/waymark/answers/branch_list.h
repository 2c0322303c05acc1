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

struct BranchListImage {
    std::string path, build_id;  ///< build ID hexadecimal
    std::uint32_t type{};        ///< 0 ELF, 1 kernel, 2 kernel module
    std::uint64_t kernel_start{};
    /// Address in the file (bit 0: Thumb), outcomes → how often.
    std::map<std::pair<std::uint64_t, Outcomes>, std::uint64_t> lists{};
};

/// Images by path, build ID and where the kernel began.
using BranchLists = std::map<std::tuple<std::string, std::string, std::uint64_t>, BranchListImage>;

}  // namespace waymark::answers
