/// Makes a capture folder from a dump of a DPU's registers and a dump of its trace buffer.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "waymark/core/result.h"

namespace waymark::doctor {

/// Whether a file is a text whose first register belongs to a DPU: `DP_TC`.
[[nodiscard]] bool is_dpu_registers(const std::string& path);

/// Makes the folder, with its dpu.ini and a copy of the buffer. Returns the inferences, one sentence each. Errors:
/// `usage`: the folder is not empty, registers that are needed for reading are missing, or the dump's size differs from
/// the registers'; `bad_format`, `unreadable`: the files.
[[nodiscard]] Result<std::vector<std::string>> write_dpu_dump(const std::string& registers, const std::string& dump,
                                                              const std::filesystem::path& folder);

}  // namespace waymark::doctor
