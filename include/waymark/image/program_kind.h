/// What the headers of an ELF file say of how it is run.
#pragma once

#include <filesystem>
#include <string>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::image {

struct ProgramKind {
    bool aarch64{};               ///< else 32-bit Arm
    bool position_independent{};  ///< loaded anywhere: its type is ET_DYN
    bool dynamic{};               ///< it has a dynamic segment, so other files may be mapped when it runs
    Address entry{};              ///< where execution begins, before the load bias; without the Thumb bit
    /// Of the cores that it was built for, by its attributes (.ARM.attributes): `ARMv7E-M`; empty: it has none.
    std::string architecture{};
};

/// Errors: `not_found`, `unreadable`; `bad_format`: no ELF file, or its tables are damaged; `unsupported`: of another
/// machine or byte order.
[[nodiscard]] Result<ProgramKind> program_kind(const std::filesystem::path& path);

}  // namespace waymark::image
