#include "waymark/image/dwarf_version.h"

#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>

namespace waymark::image {

unsigned dwarf_version(const std::filesystem::path& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    unsigned newest = 0;
    if (Dwarf* const dwarf = dwarf_begin(file, DWARF_C_READ); dwarf != nullptr) {
        Dwarf_Off at = 0, next = 0;
        for (std::size_t header = 0; true; at = next) {
            Dwarf_Half version = 0;
            if (dwarf_next_unit(dwarf, at, &next, &header, &version, nullptr, nullptr, nullptr, nullptr, nullptr) !=
                    0 ||
                next <= at)
                break;
            newest = std::max<unsigned>(newest, version);
        }
        dwarf_end(dwarf);
    }
    ::close(file);
    return newest;
}

}  // namespace waymark::image
