#include "waymark/image/program_kind.h"

#include "elf_file.h"

namespace waymark::image {

Result<ProgramKind> program_kind(const std::filesystem::path& path) {
    WM_ASSIGN_OR_RETURN(SharedBytes bytes, map_file(path.string()));
    WM_ASSIGN_OR_RETURN(const ElfFile file, ElfFile::open(std::move(bytes), path.string()));
    WM_ASSIGN_OR_RETURN(const bool dynamic, file.is_dynamic());
    constexpr std::uint64_t thumb = 1;
    return ProgramKind{!file.is_arm(), file.is_position_independent(), dynamic, Address{file.entry() & ~thumb}};
}

}  // namespace waymark::image
