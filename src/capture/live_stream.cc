#include "waymark/capture/live_stream.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <utility>

#include "waymark/core/file_error.h"

namespace waymark::capture {
namespace {

class LiveStream final : public ByteStream {
public:
    LiveStream(int descriptor, bool grows, std::string name, LiveEvents events)
        : descriptor_(descriptor), grows_(grows), name_(std::move(name)), events_(std::move(events)) {}
    LiveStream(const LiveStream&) = delete;
    LiveStream& operator=(const LiveStream&) = delete;
    ~LiveStream() override {
        if (descriptor_ > STDIN_FILENO) ::close(descriptor_);
    }

    Result<std::size_t> read(std::span<std::uint8_t> into) override {
        using Clock = std::chrono::steady_clock;
        constexpr auto idle_after = std::chrono::milliseconds(200);
        const auto since = Clock::now();
        bool told = false;
        while (!over_ && !events_.ended()) {
            if (grows_ || ready()) {
                const ssize_t got = ::read(descriptor_, into.data(), into.size());
                if (got > 0) {
                    read_ += static_cast<std::uint64_t>(got);
                    return static_cast<std::size_t>(got);
                }
                if (got < 0 && errno != EINTR && errno != EAGAIN)
                    return Error{Errc::unreadable,
                                 fmt::format("{}: offset {:#x}: cannot be read: {}", name_, read_, reason(errno))};
                if (got == 0 && !grows_) break;
            }
            if (grows_) {
                WM_RETURN_IF_ERROR(check_size());
                wait();
            }
            if (!told && Clock::now() - since >= idle_after) {
                told = true;
                events_.idle();
            }
        }
        over_ = true;
        return std::size_t{0};
    }

private:
    static constexpr int wait_milliseconds = 50;
    static void wait() { ::poll(nullptr, 0, wait_milliseconds); }
    /// Whether a pipe or socket has bytes or has ended.
    [[nodiscard]] bool ready() const {
        pollfd one{descriptor_, POLLIN, 0};
        return ::poll(&one, 1, wait_milliseconds) > 0;
    }
    [[nodiscard]] Status check_size() const {
        struct stat now {};
        if (::fstat(descriptor_, &now) != 0 || static_cast<std::uint64_t>(now.st_size) >= read_) return Nothing{};
        return Error{
            Errc::unreadable,
            fmt::format("{}: became shorter while it was followed: {} bytes were read, and it has {}; follow it again",
                        name_, read_, now.st_size)};
    }

    int descriptor_;
    bool grows_;
    std::string name_;
    LiveEvents events_;
    std::uint64_t read_ = 0;
    bool over_ = false;
};

}  // namespace

Result<std::unique_ptr<ByteStream>> follow_bytes(const std::filesystem::path& path, LiveEvents events) {
    int descriptor = STDIN_FILENO;
    if (path != "-") {
        descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
        if (descriptor < 0)
            return Error{errno == ENOENT || errno == ENOTDIR ? Errc::not_found : Errc::unreadable,
                         fmt::format("{}: cannot be opened: {}", path.string(), reason(errno))};
    }
    struct stat status {};
    const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    return std::unique_ptr<ByteStream>(std::make_unique<LiveStream>(
        descriptor, regular, path == "-" ? "standard input" : path.string(), std::move(events)));
}

Result<std::optional<TcpAddress>> tcp_address(const std::string& text) {
    constexpr std::string_view scheme = "tcp:";
    if (!text.starts_with(scheme)) return std::optional<TcpAddress>();
    const std::string rest = text.substr(scheme.size());
    TcpAddress out{"localhost", rest};
    if (const std::size_t colon = rest.rfind(':'); colon != rest.npos) {
        out.host = rest.substr(0, colon);
        out.port = rest.substr(colon + 1);
        if (out.host.size() > 2 && out.host.front() == '[' && out.host.back() == ']')
            out.host = out.host.substr(1, out.host.size() - 2);
    }
    unsigned port = 0;
    const char* const end = out.port.data() + out.port.size();
    const auto [stopped, error] = std::from_chars(out.port.data(), end, port);
    if (error != std::errc{} || stopped != end || port == 0 || port > 0xffff || out.host.empty())
        return Error{Errc::usage, fmt::format("'{}': give tcp:PORT of this machine, or tcp:HOST:PORT; a port is a "
                                              "number from 1 to 65535",
                                              text)};
    return std::optional(std::move(out));
}

Result<int> connect_to(const TcpAddress& address) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const auto failed = [&](std::string_view why) {
        return Error{Errc::unreadable,
                     fmt::format("tcp:{}:{}: cannot connect: {}; a debug server or probe must serve the trace there",
                                 address.host, address.port, why)};
    };
    if (const int error = ::getaddrinfo(address.host.c_str(), address.port.c_str(), &hints, &found); error != 0)
        return failed(::gai_strerror(error));
    const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, ::freeaddrinfo);
    int last = ECONNREFUSED;
    for (const addrinfo* each = found; each != nullptr; each = each->ai_next) {
        const int descriptor = ::socket(each->ai_family, each->ai_socktype | SOCK_CLOEXEC, each->ai_protocol);
        if (descriptor < 0) {
            last = errno;
            continue;
        }
        if (::connect(descriptor, each->ai_addr, each->ai_addrlen) == 0) return descriptor;
        last = errno;
        ::close(descriptor);
    }
    return failed(reason(last));
}

}  // namespace waymark::capture
