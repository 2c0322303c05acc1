#include "waymark/image/source_folders.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>

#include "waymark/image/debug_info.h"

namespace waymark::image {

namespace fs = std::filesystem;

namespace {

/// Folders that do not contain a program's sources, even if debug information names them.
bool is_of_the_system(const fs::path& folder) {
    constexpr std::string_view names[] = {"etc", "proc", "sys", "dev", "run", "boot"};
    const fs::path inner = folder.relative_path();
    return inner.empty() || std::find(std::begin(names), std::end(names), inner.begin()->string()) != std::end(names);
}

class Folders {
public:
    void add_unit(const fs::path& ran_in, const fs::path& file) {
        const fs::path folder = without_slash(ran_in.lexically_normal());
        const fs::path own = (folder / file).lexically_normal().parent_path();
        const auto end = std::mismatch(folder.begin(), folder.end(), own.begin(), own.end()).first;
        fs::path both;
        for (auto part = folder.begin(); part != end; ++part) both /= *part;
        // The root, or the folder of all users' folders, does not belong to the program.
        constexpr std::ptrdiff_t least_parts = 3;
        if (std::distance(both.begin(), both.end()) >= least_parts ||
            (both.has_relative_path() && (both == folder || both == own))) {
            add(both);
        } else {
            add(folder);
            add(own);
        }
    }
    [[nodiscard]] std::vector<fs::path> all() const { return {folders_.begin(), folders_.end()}; }

private:
    static fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }
    void add(const fs::path& folder) {
        if (folder.is_absolute() && !is_of_the_system(folder)) folders_.insert(folder);
    }
    std::set<fs::path> folders_;
};

void add_units(Dwarf* dwarf, Folders& folders) {
    Dwarf_CU* unit = nullptr;
    Dwarf_Half version = 0;
    std::uint8_t type = 0;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, nullptr) == 0) {
        const auto text = [&](unsigned name) {
            Dwarf_Attribute value;
            const char* const found = dwarf_formstring(dwarf_attr(&die, name, &value));
            return fs::path(found == nullptr ? "" : found);
        };
        if (const fs::path file = text(DW_AT_name); !file.empty()) folders.add_unit(text(DW_AT_comp_dir), file);
    }
}

}  // namespace

std::vector<fs::path> source_folders(const fs::path& file, const std::vector<fs::path>& debug_folders) {
    auto info = DebugInfo::open(file, debug_folders);
    if (!info || !info->has_lines()) return {};
    const fs::path with_dwarf = info->debug_file().empty() ? file : info->debug_file();
    const int descriptor = ::open(with_dwarf.c_str(), O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) return {};
    Folders out;
    if (Dwarf* const dwarf = dwarf_begin(descriptor, DWARF_C_READ); dwarf != nullptr) {
        add_units(dwarf, out);
        dwarf_end(dwarf);
    }
    ::close(descriptor);
    return out.all();
}

}  // namespace waymark::image
