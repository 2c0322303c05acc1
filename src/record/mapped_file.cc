#include "waymark/record/mapped_file.h"

#include <algorithm>

#include "waymark/image/debug_info.h"

namespace waymark::record {

MappedFile read_mapped_file(const std::string& path) {
    MappedFile file;
    const auto info = image::DebugInfo::open(path);
    if (!info) return file;
    file.build_id = info->build_id();
    for (const image::DebugInfo::Segment& s : info->segments()) {
        if (!s.executable) continue;
        const std::uint64_t first = s.offset & ~std::uint64_t{page_bytes - 1};
        const std::uint64_t end = (s.offset + s.bytes + page_bytes - 1) & ~std::uint64_t{page_bytes - 1};
        if (end > first) file.executable.push_back({first, end - first, s.address.value - (s.offset - first)});
    }
    return file;
}

std::vector<MappedPiece> executable_pieces(const MappedFile& file, const MapPart& part) {
    std::vector<MappedPiece> out;
    for (const MappedFile::Part& executable : file.executable) {
        const std::uint64_t first = std::max(executable.offset, part.file_offset);
        const std::uint64_t end = std::min(executable.offset + executable.bytes, part.file_offset + part.bytes);
        if (first < end) out.push_back({part.address + (first - part.file_offset), end - first, first});
    }
    if (out.empty()) out.push_back({part.address, part.bytes, part.file_offset});
    return out;
}

}  // namespace waymark::record
