/// Where code lies that is translated: the mapped file it is of, and its page.
#pragma once

#include <cstdint>

namespace waymark::record::plugin {

/// Creates what the functions below keep; it is never freed.
void begin_maps();
/// Says where the code at `address`, which the host has at `host`, was mapped from, unless that was said. With `lock`
/// held, as are all below.
void define_map_locked(std::uint64_t address, const void* host);
/// Reports the page around the code, unless it was reported with these contents.
void define_page_locked(std::uint64_t address, const void* host);
/// A system call may have changed what is mapped where.
void forget_maps_locked();

}  // namespace waymark::record::plugin
