/// Records the execution of a Cortex-M program under qemu-system-arm: the trace that its Micro Trace Buffer (MTB), its
/// Embedded Trace Macrocell (ETM) and its Instrumentation Trace Macrocell (ITM) with the Data Watchpoint and Trace unit
/// (DWT) would have written, and the trace of a System Trace Macrocell (STM) beside it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"
#include "waymark/record/record_outcome.h"

namespace waymark::record {

/// The user's wishes. Messages name the command-line option of each.
struct CortexMRecording {
    std::vector<std::string> program;  ///< with its arguments
    std::string folder;
    std::string machine;  ///< QEMU's name; empty: by the architecture that the program was built for
    std::vector<std::string> qemu_options;
    bool force = false;
    /// Which units, at least one. The MTB and the ETM exclude each other. An ETM shares a funnel with the others.
    bool mtb = false, itm = false, stm = false;
    enum class Etm : std::uint8_t { none, v3, v4 } etm = Etm::none;
    std::string start_at, stop_at;  ///< addresses or symbols; empty: all
    std::uint64_t limit = 0;        ///< instructions; 0: all

    std::uint64_t mtb_bytes = 4096;                ///< size of the buffer
    std::optional<std::uint64_t> mtb_watermark{};  ///< tracing stops when this number of bytes is in the buffer

    std::vector<std::string> watch;        ///< variables, by name; as many as there are comparators
    std::uint64_t sample_cycles = 0;       ///< between samples of the program counter; 0: none
    std::uint64_t ports = 0xe0000000;      ///< address of the stimulus ports
    std::uint64_t stm_ports = 0x21000000;  ///< address of the extended stimulus ports of the STM
    bool timestamps = true, exceptions = true;
};

inline constexpr std::uint64_t least_mtb_bytes = 16, most_mtb_bytes = std::uint64_t{1} << 26;
inline constexpr std::size_t most_watched_variables = 4;

/// QEMU's machine for programs of this architecture, in the spelling of image::ProgramKind; empty: none.
[[nodiscard]] std::string machine_of(const std::string& architecture);

/// Runs the program and makes a snapshot folder. `show` may be null. Errors: `usage`: options that exclude each other,
/// or an unknown place; `not_found`, `unreadable`, `bad_format`, `unsupported`: program, QEMU or folder.
[[nodiscard]] Result<RecordOutcome> record_cortex_m(const CortexMRecording& options, const ShowRecording& show);

}  // namespace waymark::record
