/// Whether an ELF file is the program that memory holds: its machine, its build, and where its code lies.
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
/// `Arm (32 bits)`, `AArch64`, `x86-64`.
[[nodiscard]] std::string_view name(ElfMachine machine);

/// What an ELF file and memory say of each other.
struct Agreement {
    ElfMachine machine{};
    bool position_independent{}, relocatable{};  ///< an executable or library; an object file or kernel module
    Address first{}, end{};                      ///< where its code lies, and where it ends; equal: it has none
    std::uint64_t known{};                       ///< bytes of its code at whose addresses memory holds something
    std::uint64_t compared{};                    ///< of those; none in a separate debug file, which holds no code
    std::uint64_t different{};                   ///< of those compared
    std::string build_id{};                      ///< hexadecimal; empty: it has none
    std::string build_id_there{};                ///< what memory holds in its place; empty: nothing is known
};

/// Compares a file with each map, as seen in each state, and reports where it agrees best: several programs may have
/// had one address. Zeros in memory say nothing: recordings hold them where nothing ran. Errors: as
/// `MemoryMap::add_elf`, but separate debug files serve.
[[nodiscard]] Result<Agreement> agreement(const std::filesystem::path& path, std::uint64_t load_bias,
                                          std::span<const std::shared_ptr<const MemoryMap>> maps);

}  // namespace waymark::image
