/// How an ELF file is run, according to its headers.
#pragma once

#include <filesystem>
#include <string>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::image {

struct ProgramKind {
    bool aarch64{};               ///< else 32-bit Arm
    bool position_independent{};  ///< can be loaded at any address: its type is ET_DYN
    bool dynamic{};               ///< it has a dynamic segment, so other files may be mapped when it runs
    Address entry{};              ///< entry point, before the load bias; without the Thumb bit
    /// Architecture of the cores for which the file was built, from its attributes (.ARM.attributes): `ARMv7E-M`; empty
    /// if it has none.
    std::string architecture{};
};

/// Errors: `not_found`, `unreadable`; `bad_format`: not an ELF file, or its tables are damaged; `unsupported`: another
/// machine or byte order.
[[nodiscard]] Result<ProgramKind> program_kind(const std::filesystem::path& path);

}  // namespace waymark::image
