/// Compares an ELF file with the program in memory: its machine, its build, and the address of its code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/image/memory_map.h"

namespace waymark::image {

enum class ElfMachine : std::uint8_t { arm, aarch64, x86_64 };
/// Names such as `Arm (32 bits)`, `AArch64`, `x86-64`.
[[nodiscard]] std::string_view name(ElfMachine machine);

/// The result of comparing an ELF file with memory.
struct Agreement {
    ElfMachine machine{};
    bool position_independent{}, relocatable{};  ///< an executable or library; an object file or kernel module
    Address first{}, end{};                      ///< beginning and end of its code; equal: it has none
    std::uint64_t known{};                       ///< number of bytes of its code at addresses where memory is known
    std::uint64_t compared{};   ///< number of those that were compared; 0 for a separate debug file, which has no code
    std::uint64_t different{};  ///< of those compared
    std::string build_id{};     ///< hexadecimal; empty: it has none
    std::string build_id_there{};  ///< what memory has in its place; empty: not known
};

/// Compares a file with each map, in each state, and returns the best agreement: several programs may have been at one
/// address. Zeros in memory are ignored, since recordings contain zeros where nothing ran. Errors: as
/// `MemoryMap::add_elf`, but separate debug files are accepted.
[[nodiscard]] Result<Agreement> agreement(const std::filesystem::path& path, std::uint64_t load_bias,
                                          std::span<const std::shared_ptr<const MemoryMap>> maps);

}  // namespace waymark::image
