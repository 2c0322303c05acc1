/// Finds the vector tables of a bare-metal image: for these places QEMU's log shows how execution reached them.
#pragma once

#include <vector>

#include "waymark/core/types.h"
#include "waymark/image/memory_map.h"

namespace waymark::record {

inline constexpr unsigned vector_table_bytes = 32;

/// Places aligned to 32 bytes at which five or more of eight words branch, in A32 or Thumb, including the vectors of
/// SVC, IRQ and at least one abort; and the two places of the AArch32 table without VBAR: 0 and 0xffff0000. At most 64,
/// ascending.
[[nodiscard]] std::vector<Address> vector_tables(const image::MemoryMap& memory);

}  // namespace waymark::record
