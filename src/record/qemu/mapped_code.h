/// Where translated code is mapped: its file, and its page.
#pragma once

#include <cstdint>

namespace waymark::record::plugin {

/// Creates the state of the functions below; it is never freed.
void begin_maps();
/// Reports the mapping of the code at `address`, which the host has at `host`, unless it was reported before. Call this
/// and all functions below with `lock` held.
void define_map_locked(std::uint64_t address, const void* host);
/// Reports the page around the code, unless it was already reported with these contents.
void define_page_locked(std::uint64_t address, const void* host);
/// A system call may have changed the mappings.
void forget_maps_locked();

}  // namespace waymark::record::plugin
