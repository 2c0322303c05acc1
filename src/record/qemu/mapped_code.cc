#include "mapped_code.h"

#include <array>
#include <cstdio>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "chunks.h"

namespace waymark::record::plugin {
namespace {

std::vector<std::pair<std::uint64_t, std::uint64_t>>* reported_maps = nullptr;  // from, to
std::set<std::pair<std::string, std::uint64_t>>* mapped_files =
    nullptr;  // name and inode of each file already reported
std::unordered_map<std::uint64_t, std::string>* pages = nullptr;

}  // namespace

void begin_maps() {
    pages = new std::unordered_map<std::uint64_t, std::string>;
    reported_maps = new std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    mapped_files = new std::set<std::pair<std::string, std::uint64_t>>;
}

void forget_maps_locked() { reported_maps->clear(); }

void define_page_locked(std::uint64_t address, const void* host) {
    if (host == nullptr) return;
    const std::uint64_t first = address & ~std::uint64_t{page_bytes - 1};
    const auto* from = static_cast<const char*>(host) - (address - first);
    std::string& known = (*pages)[first];
    if (known.size() == page_bytes && std::memcmp(known.data(), from, page_bytes) == 0) return;
    known.assign(from, page_bytes);
    PagePart part;
    part.words = (sizeof part + page_bytes) / 4;
    part.address = first;
    append(&part, sizeof part, known.data(), page_bytes);
}

void define_map_locked(std::uint64_t address, const void* host) {
    if (host == nullptr) return;
    for (const auto& [from, to] : *reported_maps)
        if (address >= from && address < to) return;
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return;
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(host);
    std::array<char, 4096 + 128> line;
    while (std::fgets(line.data(), line.size(), maps) != nullptr) {
        std::uint64_t from = 0, to = 0, offset = 0, inode = 0;
        unsigned major = 0, minor = 0;
        int name_at = 0;
        if (std::sscanf(line.data(), "%lx-%lx %*s %lx %x:%x %lu %n", &from, &to, &offset, &major, &minor, &inode,
                        &name_at) < 6 ||
            at < from || at >= to)
            continue;
        std::string_view name = line.data() + name_at;
        if (name.ends_with('\n')) name.remove_suffix(1);
        if (!name.starts_with('/')) name = {};  // such as [heap]
        MapPart part;
        part.address = address - (at - from);
        part.bytes = to - from;
        part.file_offset = offset;
        part.inode = inode;
        part.major = major;
        part.minor = minor;
        part.name_bytes = static_cast<std::uint32_t>(name.size());
        part.words = static_cast<std::uint32_t>((sizeof part + name.size() + 3) / 4);
        append(&part, sizeof part, name.data(), name.size());
        reported_maps->emplace_back(part.address, part.address + part.bytes);
        if (!name.empty() && mapped_files->emplace(name, inode).second) await_recorder_locked();
        break;
    }
    std::fclose(maps);
}

}  // namespace waymark::record::plugin
