#include "waymark/serve/server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <httplib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
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

namespace waymark::serve {

namespace {

using Clock = std::chrono::steady_clock;

/// A number that nobody guesses: 128 bits, in hexadecimal. Empty: the operating system gives none.
std::string new_token() {
    std::array<unsigned char, 16> bytes{};
    std::ifstream random("/dev/urandom", std::ios::binary);
    if (!random.read(reinterpret_cast<char*>(bytes.data()), bytes.size())) return {};
    std::string out;
    for (const unsigned char byte : bytes) out += fmt::format("{:02x}", byte);
    return out;
}

/// Some threads, and some connections that wait for one; no more are accepted meanwhile.
class BoundedQueue final : public httplib::TaskQueue {
public:
    BoundedQueue() {
        for (unsigned i = 0; i < threads; ++i) workers_.emplace_back([this] { work(); });
    }
    void enqueue(std::function<void()> job) override {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [&] { return jobs_.size() < most_waiting || ending_; });
        jobs_.push_back(std::move(job));
        changed_.notify_all();
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
    void work() {
        for (;;) {
            std::function<void()> job;
            {
                std::unique_lock lock(mutex_);
                changed_.wait(lock, [&] { return !jobs_.empty() || ending_; });
                if (jobs_.empty()) return;
                job = std::move(jobs_.front());
                jobs_.pop_front();
            }
            changed_.notify_all();
            job();
        }
    }
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> jobs_;
    bool ending_ = false;
    std::vector<std::thread> workers_;
};

bool is_address(const std::string& text) {
    std::array<unsigned char, sizeof(in6_addr)> out{};
    return inet_pton(AF_INET, text.c_str(), out.data()) == 1 || inet_pton(AF_INET6, text.c_str(), out.data()) == 1;
}
bool is_loopback(const std::string& address) { return address.starts_with("127.") || address == "::1"; }
/// As it stands in a URL and in a Host header.
std::string in_url(const std::string& address) {
    return address.find(':') == address.npos ? address : "[" + address + "]";
}

/// Who a request may say that it asks. A page of another site that has its name lead to this machine says that name.
class Hosts {
public:
    Hosts(const std::string& address, std::uint16_t port) : address_(address), end_(fmt::format(":{}", port)) {
        std::array<char, 256> name{};
        if (!is_loopback(address) && gethostname(name.data(), name.size() - 1) == 0) own_name_ = name.data();
    }
    [[nodiscard]] bool allows(std::string_view host) const {
        if (!host.ends_with(end_)) return false;
        host.remove_suffix(end_.size());
        if (host == in_url(address_)) return true;
        if (is_loopback(address_)) return host == "localhost";
        if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
        return is_address(std::string(host)) || (!own_name_.empty() && host == own_name_);
    }

private:
    const std::string address_, end_;
    std::string own_name_;
};

/// A number of instructions, in decimal digits alone.
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
    // The text is shared by all who ask for it.
    response.set_content_provider(reply.body->size(), reply.type,
                                  [body = reply.body](std::size_t at, std::size_t length, httplib::DataSink& sink) {
                                      return sink.write(body->data() + at, length);
                                  });
}
void refuse(httplib::Response& response, int status, std::string why) {
    response.status = status;
    response.set_content(std::move(why) + "\n", "text/plain; charset=utf-8");
}

void set_limits(httplib::Server& server) {
    constexpr std::time_t whole_within_seconds = 5, next_within_seconds = 2;
    constexpr std::size_t most_of_a_connection = 100;
    server.set_read_timeout(whole_within_seconds);
    server.set_write_timeout(whole_within_seconds);
    server.set_keep_alive_timeout(next_within_seconds);
    server.set_keep_alive_max_count(most_of_a_connection);
    server.set_payload_max_length(1);
    server.set_tcp_nodelay(true);
    // No other process may listen at the same port beside this one, as the library allows by default.
    server.set_socket_options([](socket_t socket) {
        const int yes = 1;
        ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    });
    server.new_task_queue = [] { return new BoundedQueue; };
    server.set_default_headers({{"Cache-Control", "no-store"},
                                {"Referrer-Policy", "no-referrer"},
                                {"X-Content-Type-Options", "nosniff"},
                                {"Cross-Origin-Resource-Policy", "same-origin"},
                                {"Cross-Origin-Opener-Policy", "same-origin"},
                                {"Content-Security-Policy", "frame-ancestors 'none'"}});
}

}  // namespace

Status serve(Pages& pages, const ServerOptions& options, const std::function<bool()>& stop,
             const std::function<void(const std::string& url)>& listening) {
    if (!is_address(options.address))
        return Error{Errc::usage,
                     fmt::format("--listen takes an address such as 127.0.0.1, not '{}'", options.address)};
    const std::string token = new_token();
    if (token.empty()) return Error{Errc::unreadable, "/dev/urandom: cannot be read, so the address could be guessed"};
    httplib::Server server;
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
            refuse(response, 421, "This request names another host than the one that waymark serve listens at.");
            return Handled;
        }
        return Unhandled;
    });
    const auto answer = [&](const std::string& path, auto&& make) {
        server.Get("/" + token + path, [&, make](const httplib::Request& request, httplib::Response& response) {
            ++working;
            make(request, response);
            last = Clock::now().time_since_epoch().count();
            --working;
        });
    };
    answer("/", [&](const httplib::Request&, httplib::Response& response) { give(response, pages.report()); });
    answer("/status", [&](const httplib::Request&, httplib::Response& response) { give(response, pages.status()); });
    answer("/window", [&](const httplib::Request& request, httplib::Response& response) {
        const auto from = number_of(request, "from"), to = number_of(request, "to");
        if (!from || !to)
            return refuse(response, 400, "A window is asked for as window?from=FIRST&to=END, in instructions.");
        give(response,
             pages.window(request.has_param("unit") ? request.get_param_value("unit") : "instructions", *from, *to));
    });
    server.set_error_handler([](const httplib::Request&, httplib::Response& response) {
        if (response.body.empty() && response.status == 404)
            response.set_content("There is no such page, or the address lacks the token of this run.\n",
                                 "text/plain; charset=utf-8");
    });

    std::atomic<bool> over{false};
    std::thread listener([&] {
        server.listen_after_bind();
        over = true;
    });
    listening(fmt::format("http://{}:{}/{}/", in_url(options.address), port, token));
    constexpr auto pause = std::chrono::milliseconds(100);
    while (!over && !stop()) {
        std::this_thread::sleep_for(pause);
        const Clock::time_point before{Clock::duration(last.load())};
        if (options.idle.count() != 0 && working == 0 && Clock::now() - before > options.idle) break;
    }
    // Whoever waits for the first page waits no longer.
    pages.stop();
    // A server that does not run yet would not notice.
    while (!over && !server.is_running()) std::this_thread::sleep_for(pause);
    server.stop();
    listener.join();
    return Nothing{};
}

}  // namespace waymark::serve
