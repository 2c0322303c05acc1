/// Bytes as they come: from a file that grows, a pipe or a TCP port.
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

namespace waymark::cli {

/// What a live stream asks and tells while it waits, from within `read`.
struct LiveEvents {
    std::function<bool()> ended;  ///< true: the stream ends here. Asked at least ten times a second
    std::function<void()> idle;   ///< once where no byte has come for a fifth of a second
};

/// A file that grows, from its first byte on: at its end `read` waits for more. It is not unpacked. `-`: standard
/// input, which ends when its writers close it. Errors: the errors of `open_bytes`; from `read`, `unreadable` if the
/// file became shorter. An empty file is none.
[[nodiscard]] waymark::Result<std::unique_ptr<capture::ByteStream>> follow_bytes(const std::filesystem::path& path,
                                                                                 LiveEvents events);

/// An address as `tcp:PORT` (of this machine), `tcp:HOST:PORT` or `tcp:[HOST]:PORT` names it.
struct TcpAddress {
    std::string host, port;
};
/// Nothing: the text does not begin with `tcp:`. Errors: `usage`: what follows is no port.
[[nodiscard]] waymark::Result<std::optional<TcpAddress>> tcp_address(const std::string& text);
/// Connects to a server that sends the bytes; gives a descriptor, which is the caller's. Errors: `unreadable`.
[[nodiscard]] waymark::Result<int> connect_to(const TcpAddress& address);

}  // namespace waymark::cli
