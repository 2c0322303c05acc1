/// Sessions of sigrok (`.sr`): what a logic analyser sampled at the pins of a target, read as the bytes that were sent
/// there. A trace pin (SWO) sends characters of a UART, a trace port sends its data lines at both edges of a clock. The
/// file is a zip archive of an ini file, `metadata`, and of samples: `logic-1`, or parts `logic-1-1`, `logic-1-2`, …
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/capture/byte_stream.h"
#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::capture {

/// Which channels carry the bytes, and how, as the samples at the beginning of a session show.
struct LogicWiring {
    enum class Kind : std::uint8_t {
        uart,       ///< characters of eight bits with a stop bit, least significant bit first
        trace_port  ///< frames with syncs, least significant bit first
    } kind{};
    std::vector<unsigned> channels{};   ///< bits of a sample: the line, or the data lines from the lowest on
    unsigned clock = 0;                 ///< of a trace port
    unsigned skipped_bits = 0;          ///< of a trace port: before the first byte
    std::string lines{};                ///< for people: `SWO`; `TRACECLK and TRACED0 to TRACED3`
    double sample_rate = 0;             ///< in Hz; 0: the session does not say
    double samples_per_bit = 0;         ///< of a UART
    std::uint64_t characters = 0;       ///< of a UART, in the samples that were looked at
    std::uint64_t bad_characters = 0;   ///< those without a stop bit
    std::vector<std::string> others{};  ///< channels that carry characters, too
};

/// The beginning of a file is that of a zip archive, which a session is.
[[nodiscard]] bool may_be_sigrok(Bytes head);

/// What a file carries, and how. Nothing: it is no session. Errors: `unreadable`: its samples are damaged;
/// `unsupported`: no channel carries characters or is the clock of a trace port; it has more than 64 channels.
[[nodiscard]] Result<std::optional<LogicWiring>> logic_wiring(const std::filesystem::path& path);

/// The bytes that a session carries. Characters without a stop bit are left out. Null: it is no session. Errors: as
/// above.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> open_sigrok(const std::filesystem::path& path);

}  // namespace waymark::capture
