/// A server of HTTP for one user of this machine: pages of a capture, under addresses that nobody else knows.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "waymark/core/result.h"
#include "waymark/serve/pages.h"

namespace waymark::serve {

struct ServerOptions {
    /// Where it listens. Other machines reach it only where this is not an address of the loopback interface.
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  ///< 0: one that is free
    /// Without a request for this time, it ends; 0: never. Whoever asks only how far reading is does not count.
    std::chrono::minutes idle{0};
};

/// An address of the loopback interface, which no other machine reaches.
[[nodiscard]] bool is_of_this_machine_alone(const std::string& address);

/// Answers requests until `stop`, which is called several times a second, gives true, or nobody asks any more.
/// `listening` gets the URL when the server listens. What it refuses, and how:
///
/// - another method than GET and HEAD: 405, unread;
/// - a path without the token of this run: 404;
/// - a Host header that does not name the address and port that it listens at, as after DNS rebinding: 421;
/// - numbers that are no numbers: 400; windows that are too long: 413;
/// - a request that is not whole five seconds after its first byte (the first one: after the connection), or whose head
///   has more than 64 KB; an answer that is taken at less than 16 KB a second: the connection ends.
///
/// Four are answered at once, and 32 more wait; no others are accepted meanwhile. When it ends, so do all connections.
///
/// No path of a request is a path of a file. Errors: it cannot listen there, or not any more.
[[nodiscard]] Status serve(Pages& pages, const ServerOptions& options, const std::function<bool()>& stop,
                           const std::function<void(const std::string& url)>& listening);

}  // namespace waymark::serve
