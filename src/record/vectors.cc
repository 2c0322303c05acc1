#include "waymark/record/vectors.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

namespace waymark::record {

namespace {

constexpr std::size_t most_tables = 64;

bool arm_branches(std::uint32_t word) {
    return (word & 0xff000000) == 0xea000000      // B
           || (word & 0xff7ff000) == 0xe51ff000;  // LDR pc, [pc, #±n]
}

bool thumb_branches(std::uint32_t word) {
    const std::uint32_t first = word & 0xffff, second = word >> 16;
    return ((first & 0xf800) == 0xf000 && (second & 0xd000) == 0x9000)      // B.W
           || ((first & 0xff7f) == 0xf85f && (second & 0xf000) == 0xf000);  // LDR.W pc, [pc, #±n]
}

bool is_table(Bytes bytes) {
    std::array<std::uint32_t, 8> words{};
    std::memcpy(words.data(), bytes.data(), vector_table_bytes);
    for (const auto branches : {arm_branches, thumb_branches}) {
        const bool aborts = branches(words[3]) || branches(words[4]);
        if (std::count_if(words.begin(), words.end(), branches) >= 5 && branches(words[2]) && branches(words[6]) &&
            aborts)
            return true;
    }
    return false;
}

}  // namespace

std::vector<Address> vector_tables(const image::MemoryMap& memory) {
    std::vector<Address> tables{{0}, {0xffff0000}};
    for (const image::Region& region : memory.regions()) {
        if (region.shadowed_by) continue;
        constexpr std::uint64_t step = vector_table_bytes;
        const std::uint64_t end = region.address.value + region.bytes;
        for (std::uint64_t at = (region.address.value + step - 1) / step * step; at + step <= end; at += step) {
            const isa::Code code = memory.at({at}, {});
            if (code.bytes.size() < step || !is_table(code.bytes)) continue;
            if (tables.size() < most_tables) tables.push_back({at});
        }
    }
    std::sort(tables.begin(), tables.end());
    tables.erase(std::unique(tables.begin(), tables.end()), tables.end());
    return tables;
}

}  // namespace waymark::record
