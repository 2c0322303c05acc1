#include "waymark/capture/text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "waymark/core/file_error.h"
#include "waymark/core/regular_file.h"

namespace waymark::capture {

namespace {

namespace fs = std::filesystem;

class Descriptor {
public:
    /// Opens without blocking: a named pipe without a writer would block otherwise.
    explicit Descriptor(const fs::path& path)
        : file_(path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (file_ > STDIN_FILENO) ::close(file_);
    }
    [[nodiscard]] int get() const { return file_; }

private:
    int file_;
};

}  // namespace

std::optional<Error> no_text_file(const fs::path& path) {
    std::error_code none;
    if (path == "-" || fs::is_fifo(path, none)) return {};
    if (fs::is_directory(path, none))
        return Error{Errc::unreadable, fmt::format("{}: is a folder where a file is needed", path.string())};
    return no_regular_file(path);
}

Result<std::string> read_text_file(const fs::path& path, std::size_t most_bytes) {
    if (auto error = no_text_file(path)) return std::move(*error);
    const auto cannot = [&](int error) {
        return Error{Errc::unreadable, fmt::format("cannot read {}: {}", path.string(), reason(error))};
    };
    const Descriptor file(path);
    if (file.get() < 0) return cannot(errno);
    std::string out;
    constexpr std::size_t piece = 1 << 16;
    for (;;) {
        const std::size_t have = out.size();
        // One byte more than allowed shows that the file is too long.
        const std::size_t room = std::min(piece, most_bytes + 1 - have);
        out.resize(have + room);
        const ssize_t count = ::read(file.get(), out.data() + have, room);
        const int error = errno;
        out.resize(have + (count > 0 ? static_cast<std::size_t>(count) : 0));
        if (count == 0) break;
        if (count < 0) {
            if (error == EINTR) continue;
            if (error != EAGAIN) return cannot(error);
            pollfd writer{file.get(), POLLIN, 0};
            if (::poll(&writer, 1, -1) < 0 && errno != EINTR) return cannot(errno);
        }
        if (out.size() > most_bytes)
            return Error{
                Errc::unsupported,
                fmt::format(
                    "{}: contains more than {} bytes, which is too much for a file of this kind; name another file",
                    path.string(), most_bytes)};
    }
    std::error_code none;
    if (out.empty() && path != "-" && fs::is_fifo(path, none))
        return Error{
            Errc::unreadable,
            fmt::format("{}: this named pipe has no writer; first start the program that writes to it, or name a file",
                        path.string())};
    return out;
}

}  // namespace waymark::capture
