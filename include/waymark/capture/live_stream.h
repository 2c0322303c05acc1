/// Reads bytes as they arrive: from a file that grows, a pipe or a TCP port.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "waymark/capture/byte_stream.h"
#include "waymark/core/result.h"

namespace waymark::capture {

/// Callbacks of a live stream while `read` waits.
struct LiveEvents {
    std::function<bool()> ended;  ///< returns true to end the stream; called at least ten times a second
    std::function<void()> idle;   ///< called once when no byte has arrived for a fifth of a second
};

/// A file that grows, from its first byte on: `read` waits for more at its end. It is not unpacked. `-`: standard
/// input, which ends when its writers close it. Errors: the errors of `open_bytes`; from `read`, `unreadable` if the
/// file became shorter. An empty file is not an error.
[[nodiscard]] Result<std::unique_ptr<ByteStream>> follow_bytes(const std::filesystem::path& path, LiveEvents events);

/// A parsed address: `tcp:PORT` (of this machine), `tcp:HOST:PORT` or `tcp:[HOST]:PORT`.
struct TcpAddress {
    std::string host, port;
};
/// nullopt if the text does not begin with `tcp:`. Errors: `usage` if no valid port follows.
[[nodiscard]] Result<std::optional<TcpAddress>> tcp_address(const std::string& text);
/// Connects to a server that sends the bytes. Returns a descriptor, which the caller owns. Errors: `unreadable`.
[[nodiscard]] Result<int> connect_to(const TcpAddress& address);

}  // namespace waymark::capture
