/// The server of `waymark serve`, as libwaymark-serve.so: the HTTP library it uses loads OpenSSL and others, which
/// takes longer than most commands.
#include "../http_module.h"

#include <fmt/format.h>
#include <httplib.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../listening_address.h"
#include "waymark/serve/server.h"

namespace waymark::serve {

namespace {

using Clock = std::chrono::steady_clock;

/// A number that nobody can guess: 128 bits, in hexadecimal. Empty: the operating system provides none.
std::string new_token() {
    std::array<unsigned char, 16> bytes{};
    std::ifstream random("/dev/urandom", std::ios::binary);
    if (!random.read(reinterpret_cast<char*>(bytes.data()), bytes.size())) return {};
    std::string out;
    for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
    return out;
}

constexpr auto glance = std::chrono::milliseconds(50);  // between two looks at whether the server ends

/// The time at which the connection of this thread was accepted.
thread_local Clock::time_point accepted_at{};

/// A fixed number of threads, and of connections that wait for a thread; no more are accepted meanwhile.
class BoundedQueue final : public httplib::TaskQueue {
public:
    /// `ending`: the server ends; then no connection waits for room any more.
    explicit BoundedQueue(const std::atomic<bool>& ending) : server_ends_(ending) {
        for (unsigned i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
    }
    // Later versions of the library ask whether there was room.
    using Taken = decltype(std::declval<httplib::TaskQueue&>().enqueue(std::function<void()>()));
    Taken enqueue(std::function<void()> job) override {
        {
            std::unique_lock lock(mutex_);
            while (jobs_.size() >= most_waiting && !server_ends_) changed_.wait_for(lock, glance);
            jobs_.push_back({std::move(job), Clock::now()});
        }
        changed_.notify_all();
        return static_cast<Taken>(true);
    }
    void shutdown() override {
        {
            const std::scoped_lock lock(mutex_);
            ending_ = true;
        }
        changed_.notify_all();
        for (std::thread& worker : workers_) worker.join();
    }

private:
    static constexpr unsigned threads = 4;
    static constexpr std::size_t most_waiting = 32;
    struct Job {
        std::function<void()> run;
        Clock::time_point accepted;
    };
    void work() {
        for (;;) {
            Job job;
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, [&] { return !jobs_.empty() || ending_; });
                if (jobs_.empty()) return;
                job = std::move(jobs_.front());
                jobs_.pop_front();
            }
            changed_.notify_all();
            accepted_at = job.accepted;
            job.run();
        }
    }
    const std::atomic<bool>& server_ends_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Job> jobs_;
    bool ending_ = false;
    std::vector<std::thread> workers_;
};

/// A connection whose requests must be complete, and whose answers must be received, within a bounded time. The library
/// itself only bounds each read and each write, so a client that sends single bytes could occupy a thread for ever.
class Connection final : public httplib::Stream {
public:
    Connection(socket_t socket, const std::atomic<bool>& ending, Clock::time_point accepted)
        : socket_(socket), ending_(ending), read_until_(accepted + whole_within) {}

    /// Waits for the first byte of the next request. Returns false if there is none.
    bool next_request() {
        read_until_ = Clock::now() + next_within;
        if (at_ == held_ && !fill()) return false;
        read_until_ = Clock::now() + whole_within;
        read_ = 0;
        written_ = 0;
        writes_since_.reset();
        return true;
    }
    /// Whether the connection ended, or the received bytes are not a request.
    [[nodiscard]] bool failed() const { return failed_; }

    // Reads and writes wait themselves.
    [[nodiscard]] bool is_readable() const override { return at_ < held_ || !failed_; }
    [[nodiscard]] bool is_writable() const override { return !failed_; }
    ssize_t read(char* to, std::size_t size) override {
        if (read_ >= most_of_a_head) failed_ = true;
        if (failed_ || (at_ == held_ && !fill())) return -1;
        const std::size_t count = std::min({size, held_ - at_, most_of_a_head - read_});
        std::copy_n(buffer_.begin() + static_cast<std::ptrdiff_t>(at_), count, to);
        at_ += count;
        read_ += count;
        return static_cast<ssize_t>(count);
    }
    ssize_t write(const char* from, std::size_t size) override {
        if (!writes_since_) writes_since_ = Clock::now();
        for (;;) {
            const auto slowest = std::chrono::seconds(written_ / least_bytes_per_second);
            if (!wait(POLLOUT, *writes_since_ + take_within + slowest)) return -1;
            const ssize_t count = ::send(socket_, from, size, MSG_NOSIGNAL | MSG_DONTWAIT);
            if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (count < 0) failed_ = true;
            written_ += static_cast<std::size_t>(std::max<ssize_t>(count, 0));
            return count;
        }
    }
    // Has no effect, since nothing uses addresses.
    void get_remote_ip_and_port(std::string& ip, int& port) const override { no_address(ip, port); }
    void get_local_ip_and_port(std::string& ip, int& port) const override { no_address(ip, port); }
    [[nodiscard]] socket_t socket() const override { return socket_; }

private:
    static constexpr std::chrono::seconds whole_within{5}, next_within{2}, take_within{10};
    static constexpr std::size_t most_of_a_head = std::size_t{1} << 16, least_bytes_per_second = std::size_t{1} << 14;

    static void no_address(std::string& ip, int& port) {
        ip.clear();
        port = 0;
    }
    /// Bytes that have already arrived are accepted at any time: the connection may have waited for a thread.
    bool wait(short what, Clock::time_point until) {
        while (!failed_) {
            pollfd of{socket_, what, 0};
            const int found = ::poll(&of, 1, Clock::now() < until ? static_cast<int>(glance.count()) : 0);
            if (found > 0 && !ending_) return true;
            if (ending_ || (found == 0 && Clock::now() >= until) || (found < 0 && errno != EINTR)) failed_ = true;
        }
        return false;
    }
    bool fill() {
        for (;;) {
            if (!wait(POLLIN, read_until_)) return false;
            const ssize_t count = ::recv(socket_, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
            if (count < 0 && (errno == EINTR || errno == EAGAIN)) continue;
            if (count <= 0) {
                failed_ = true;
                return false;
            }
            at_ = 0;
            held_ = static_cast<std::size_t>(count);
            return true;
        }
    }

    const socket_t socket_;
    const std::atomic<bool>& ending_;
    Clock::time_point read_until_;
    std::optional<Clock::time_point> writes_since_{};
    std::array<char, 4096> buffer_{};
    std::size_t at_ = 0, held_ = 0;       // in the buffer
    std::size_t read_ = 0, written_ = 0;  // of this request and its answer
    bool failed_ = false;
};

/// The library's server, with connections whose time is bounded.
class BoundedServer final : public httplib::Server {
public:
    /// Ends all connections, and accepts no others. Answers in preparation are discarded.
    void end() {
        ending_ = true;
        stop();
    }
    [[nodiscard]] const std::atomic<bool>& ending() const { return ending_; }

private:
    bool process_and_close_socket(socket_t socket) override {
        constexpr std::size_t most_of_a_connection = 100;
        Connection connection(socket, ending_, accepted_at);
        bool good = true;
        for (std::size_t left = most_of_a_connection; left != 0 && good && !ending_; --left) {
            if (left != most_of_a_connection && !connection.next_request()) break;
            bool closed = false;
            good = process_request(connection, left == 1, closed, nullptr) && !closed && !connection.failed();
        }
        ::shutdown(socket, SHUT_RDWR);
        ::close(socket);
        return good;
    }
    std::atomic<bool> ending_{false};
};

/// Counts one while the object exists.
class Counted {
public:
    explicit Counted(std::atomic<unsigned>& number) : number_(number) { ++number_; }
    ~Counted() { --number_; }
    Counted(const Counted&) = delete;
    Counted& operator=(const Counted&) = delete;

private:
    std::atomic<unsigned>& number_;
};

/// An address in the form for a URL and a Host header.
std::string in_url(const std::string& address) {
    return address.find(':') == address.npos ? address : "[" + address + "]";
}

/// The host names that a request may use. A page of another site whose name leads to this machine would use that site's
/// name.
class Hosts {
public:
    Hosts(const std::string& address, std::uint16_t port)
        : address_(address_of(address)), port_(fmt::format(":{}", port)), usual_port_(port == usual_port) {
        std::array<char, 256> name{};
        if (!is_loopback(address_) && gethostname(name.data(), name.size() - 1) == 0) own_name_ = in_lower(name.data());
    }
    [[nodiscard]] bool allows(std::string_view given) const {
        std::string host = in_lower(given);
        if (host.ends_with(port_))
            host.resize(host.size() - port_.size());
        else if (!usual_port_)
            return false;
        const bool bracketed = host.starts_with('[') && host.ends_with(']');
        if (bracketed) host = host.substr(1, host.size() - 2);
        const std::vector<std::uint8_t> asked = address_of(host);
        // RFC 3986, 3.2.2: an IPv6 address is always in brackets, and no other address is.
        if (bracketed != (asked.size() == sizeof(in6_addr))) return false;
        if (!asked.empty()) return asked == address_ || !is_loopback(address_);
        return is_loopback(address_) ? host == "localhost" : !own_name_.empty() && host == own_name_;
    }

private:
    static constexpr std::uint16_t usual_port = 80;  // a browser leaves it out
    static std::string in_lower(std::string_view text) {
        std::string out(text);
        for (char& c : out)
            if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
        return out;
    }
    const std::vector<std::uint8_t> address_;
    const std::string port_;
    const bool usual_port_;
    std::string own_name_;
};

/// A number of instructions, which may only consist of decimal digits.
std::optional<std::uint64_t> number_of(const httplib::Request& request, const char* name) {
    if (request.get_param_value_count(name) != 1) return {};
    const std::string text = request.get_param_value(name);
    std::uint64_t out = 0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (text.empty() || failure != std::errc{} || end != text.data() + text.size()) return {};
    return out;
}

void give(httplib::Response& response, const Reply& reply) {
    response.status = static_cast<int>(reply.status);
    // All requests share the text.
    response.set_content_provider(reply.body->size(), reply.type,
                                  [body = reply.body](std::size_t at, std::size_t length, httplib::DataSink& sink) {
                                      return sink.write(body->data() + at, length);
                                  });
}
void refuse(httplib::Response& response, int status, std::string why) {
    response.status = status;
    response.set_content(std::move(why) + "\n", "text/plain; charset=utf-8");
}

void set_limits(BoundedServer& server) {
    server.set_payload_max_length(1);
    server.set_tcp_nodelay(true);
    // No other process may listen at the same port, which the library allows by default.
    server.set_socket_options([](socket_t socket) {
        const int yes = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server.new_task_queue = [&server] { return new BoundedQueue(server.ending()); };
    server.set_default_headers({{"Cache-Control", "no-store"},
                                {"Referrer-Policy", "no-referrer"},
                                {"X-Content-Type-Options", "nosniff"},
                                {"Cross-Origin-Resource-Policy", "same-origin"},
                                {"Cross-Origin-Opener-Policy", "same-origin"},
                                {"Content-Security-Policy", "frame-ancestors 'none'"}});
}

Status serve_http(Replies& replies, const ServerOptions& options, const std::function<bool()>& stop,
                  const std::function<void(const std::string& url)>& listening) {
    if (address_of(options.address).empty())
        return Error{Errc::usage,
                     fmt::format("--listen takes an address such as 127.0.0.1, not '{}'", options.address)};
    const std::string token = new_token();
    if (token.empty()) return Error{Errc::unreadable, "/dev/urandom: cannot be read, so the address could be guessed"};
    BoundedServer server;
    set_limits(server);
    int port = options.port;
    if (port == 0)
        port = server.bind_to_any_port(options.address);
    else if (!server.bind_to_port(options.address, port))
        port = -1;
    if (port <= 0)
        return Error{Errc::unreadable,
                     fmt::format("{}:{}: cannot be listened at: is the port in use?", options.address, options.port)};
    const Hosts hosts(options.address, static_cast<std::uint16_t>(port));

    std::atomic<Clock::rep> last{Clock::now().time_since_epoch().count()};
    std::atomic<unsigned> working{0};
    server.set_pre_routing_handler([&](const httplib::Request& request, httplib::Response& response) {
        using enum httplib::Server::HandlerResponse;
        if (request.method != "GET" && request.method != "HEAD") {
            response.set_header("Allow", "GET, HEAD");
            response.set_header("Connection", "close");
            refuse(response, 405, "Only GET and HEAD are answered.");
            return Handled;
        }
        if (request.get_header_value_count("Host") != 1 || !hosts.allows(request.get_header_value("Host"))) {
            refuse(
                response, 421,
                "This request names another host or port than waymark serve listens at. A tunnel needs the same port "
                "on both sides: ssh -L N:127.0.0.1:N, with N as in the URL.");
            return Handled;
        }
        return Unhandled;
    });
    const auto answer = [&](const std::string& path, bool counts, auto&& make) {
        server.Get("/" + token + path, [&, counts, make](const httplib::Request& request, httplib::Response& response) {
            const Counted counted(working);
            make(request, response);
            // A page that asks about the progress of reading may be one that nobody looks at.
            if (counts) last = Clock::now().time_since_epoch().count();
        });
    };
    answer("/", true, [&](const httplib::Request&, httplib::Response& response) { give(response, replies.report()); });
    answer("/status", false,
           [&](const httplib::Request&, httplib::Response& response) { give(response, replies.status()); });
    answer("/window", true, [&](const httplib::Request& request, httplib::Response& response) {
        const auto from = number_of(request, "from"), to = number_of(request, "to");
        if (!from || !to)
            return refuse(response, 400, "A window is requested as window?from=FIRST&to=END, in instructions.");
        give(response,
             replies.window(request.has_param("unit") ? request.get_param_value("unit") : "instructions", *from, *to));
    });
    server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
        if (response.status == 404 && !response.has_header("Content-Type"))
            response.set_content("There is no such page, or the address lacks the token of this run.\n",
                                 "text/plain; charset=utf-8");
    });

    std::atomic<bool> over{false}, died{false};
    std::thread listener([&] {
        died = !server.listen_after_bind();
        over = true;
    });
    listening(fmt::format("http://{}:{}/{}/", in_url(options.address), port, token));
    constexpr auto pause = std::chrono::milliseconds(100);
    while (!over && !stop()) {
        std::this_thread::sleep_for(pause);
        const Clock::time_point before{Clock::duration(last.load())};
        if (options.idle.count() != 0 && working == 0 && Clock::now() - before > options.idle) break;
    }
    const bool ended_itself = over;
    // A server that does not run yet would miss the request to end.
    while (!over && !server.is_running()) std::this_thread::sleep_for(pause);
    server.end();
    // Threads that wait for the first page stop waiting.
    replies.stop();
    listener.join();
    if (ended_itself && died)
        return Error{Errc::unreadable,
                     fmt::format("{}:{}: connections cannot be accepted any more", options.address, port)};
    return Nothing{};
}

}  // namespace

extern "C" [[gnu::visibility("default")]] void waymark_serve(const HttpCall& call) {
    call.result = serve_http(call.replies, call.options, call.stop, call.listening);
}

}  // namespace waymark::serve
