/// Sessions of sigrok (`.sr`): samples of a logic analyser at the pins of a target, decoded to the bytes that were sent
/// there. A trace pin (SWO) sends characters of a UART; a trace port sends its data lines at both edges of a clock. The
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

/// Which channels carry the bytes, and in which form, inferred from samples at the beginning of a session.
struct LogicWiring {
    enum class Kind : std::uint8_t {
        uart,       ///< characters of eight bits with a stop bit, least significant bit first
        trace_port  ///< frames with syncs, least significant bit first
    } kind{};
    std::vector<unsigned> channels{};   ///< bits of a sample: the line, or the data lines from the lowest on
    unsigned clock = 0;                 ///< channel of a trace port's clock
    unsigned skipped_bits = 0;          ///< for a trace port: bits before the first byte
    std::string lines{};                ///< name for readers: `SWO`; `TRACECLK and TRACED0 to TRACED3`
    double sample_rate = 0;             ///< in Hz; 0: not stated
    double samples_per_bit = 0;         ///< of a UART
    std::uint64_t characters = 0;       ///< number of a UART's characters in the examined samples
    std::uint64_t bad_characters = 0;   ///< number of those without a stop bit
    std::vector<std::string> others{};  ///< further channels with characters
};

/// Whether a file begins like a zip archive, as sessions do.
[[nodiscard]] bool may_be_sigrok(Bytes head);

/// The channels and form of a session's bytes. nullopt if the file is not a session. Errors: `unreadable`: its samples
/// are damaged; `unsupported`: no channel has characters or is the clock of a trace port, or there are more than 64
/// channels.
[[nodiscard]] Result<std::optional<LogicWiring>> logic_wiring(const std::filesystem::path& path);

/// The bytes in a session, without characters that lack a stop bit. Null if the file is not a session. Errors: as
/// above.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> open_sigrok(const std::filesystem::path& path);

}  // namespace waymark::capture
