/// An HTTP server for one user of this machine: pages of a capture, under addresses that nobody else knows.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "waymark/core/result.h"

namespace waymark::serve {

/// The reply to a request.
struct Reply {
    unsigned status = 200;  ///< of HTTP
    std::string type = "text/plain; charset=utf-8";
    std::shared_ptr<const std::string> body;
};

/// Replies to the requests that a server receives (`Pages`). All functions are thread-safe.
class Replies {
public:
    virtual ~Replies() = default;
    [[nodiscard]] virtual Reply report() = 0;
    [[nodiscard]] virtual Reply window(std::string_view unit, std::uint64_t begin, std::uint64_t end) = 0;
    [[nodiscard]] virtual Reply status() = 0;
    /// The server ends: threads that wait for a reply stop waiting.
    virtual void stop() = 0;
};

struct ServerOptions {
    /// The address at which it listens. Other machines can reach the server only if this is not an address of the
    /// loopback interface.
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  ///< 0: one that is free
    /// The server ends after this time without a request; 0: never. Requests about the progress of reading do not
    /// count.
    std::chrono::minutes idle{0};
};

/// Whether this is an address of the loopback interface, which no other machine can reach.
[[nodiscard]] bool is_of_this_machine_alone(const std::string& address);

/// Answers requests until `stop`, which is called several times a second, returns true, or until there have been no
/// requests for the idle time. `listening` receives the URL when the server listens. The server refuses:
///
/// - a method other than GET and HEAD: 405, without reading the request;
/// - a path without the token of this run: 404;
/// - a Host header with another address or port than the server's, as after DNS rebinding: 421;
/// - numbers that are not numbers: 400; windows that are too long: 413;
/// - a request that is not complete five seconds after its first byte (for the first request: after the connection), or
///   whose head has more than 64 KB; an answer that is received at less than 16 KB a second: the connection ends.
///
/// Four requests are answered at once, and 32 more wait; no others are accepted meanwhile. When the server ends, all
/// connections end.
///
/// No path in a request is used as the path of a file. Loads libwaymark-serve.so, which contains the server. Errors:
/// this library is missing; the server cannot listen there, or can no longer listen.
[[nodiscard]] Status serve(Replies& replies, const ServerOptions& options, const std::function<bool()>& stop,
                           const std::function<void(const std::string& url)>& listening);

}  // namespace waymark::serve
