#include "durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstring>
#include <string>
#include <vector>

#include "hasher.h"

namespace waymark::fleet {

namespace fs = std::filesystem;

namespace {

class Descriptor {
public:
    explicit Descriptor(int number) : number_(number) {}
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    ~Descriptor() {
        if (number_ >= 0) ::close(number_);
    }
    [[nodiscard]] int get() const { return number_; }
    /// Errors of the last writes come here on some file systems.
    [[nodiscard]] int close() { return ::close(std::exchange(number_, -1)) == 0 ? 0 : errno; }

private:
    int number_;
};

Error cannot_write(const fs::path& path, int error) {
    return {Errc::unreadable, fmt::format("cannot write {}: {}", path.string(), std::strerror(error))};
}

class DescriptorSink final : public ByteSink {
public:
    explicit DescriptorSink(int file) : file_(file) { buffer_.reserve(most); }
    void write(Bytes bytes) override {
        hasher_.add(bytes);
        count_ += bytes.size();
        if (buffer_.size() + bytes.size() > most) flush();
        if (bytes.size() > most)
            put(bytes);
        else
            buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    }
    /// 0, or the first error.
    [[nodiscard]] int finish() {
        flush();
        return error_;
    }
    [[nodiscard]] WrittenFile written() const { return {count_, hasher_.text()}; }

private:
    static constexpr std::size_t most = 1 << 18;
    void flush() {
        put(buffer_);
        buffer_.clear();
    }
    void put(Bytes bytes) {
        while (!bytes.empty() && error_ == 0) {
            const ssize_t done = ::write(file_, bytes.data(), bytes.size());
            if (done < 0 && errno == EINTR) continue;
            if (done < 0)
                error_ = errno;
            else
                bytes = bytes.subspan(static_cast<std::size_t>(done));
        }
    }
    int file_, error_ = 0;
    std::uint64_t count_ = 0;
    std::vector<std::uint8_t> buffer_;
    Hasher hasher_;
};

std::string part_suffix() { return fmt::format(".{}.{}.part", host_name(), ::getpid()); }

Result<WrittenFile> place_file(const fs::path& place, const std::function<void(ByteSink&)>& write, bool sync) {
    fs::path part = place;
    part += part_suffix();
    Descriptor file(::open(part.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (file.get() < 0) return cannot_write(place, errno);
    DescriptorSink sink(file.get());
    write(sink);
    int error = sink.finish();
    if (error == 0 && sync && ::fsync(file.get()) != 0) error = errno;
    if (const int at_close = file.close(); error == 0) error = at_close;
    if (error == 0 && std::rename(part.c_str(), place.c_str()) != 0) error = errno;
    if (error != 0) {
        ::unlink(part.c_str());
        return cannot_write(place, error);
    }
    if (sync) {
        const Descriptor folder(::open(place.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        // Some network file systems cannot sync a folder, and need not.
        if (folder.get() >= 0) static_cast<void>(::fsync(folder.get()));
    }
    return sink.written();
}

Status place_text(const fs::path& place, std::string_view text, bool sync) {
    WM_RETURN_IF_ERROR(place_file(
        place,
        [&](ByteSink& sink) {
            sink.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
        },
        sync));
    return Nothing{};
}

}  // namespace

Result<WrittenFile> write_durably(const fs::path& place, const std::function<void(ByteSink&)>& write) {
    return place_file(place, write, true);
}
Status write_durably(const fs::path& place, std::string_view text) { return place_text(place, text, true); }
Status replace_file(const fs::path& place, std::string_view text) { return place_text(place, text, false); }

Result<WrittenFile> hash_of_file(const fs::path& path) {
    const auto failed = [&] {
        return Error{errno == ENOENT ? Errc::not_found : Errc::unreadable,
                     fmt::format("cannot read {}: {}", path.string(), std::strerror(errno))};
    };
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return failed();
    Hasher hasher;
    WrittenFile out;
    std::vector<std::uint8_t> buffer(1 << 18);
    for (;;) {
        const ssize_t have = ::read(file.get(), buffer.data(), buffer.size());
        if (have < 0 && errno == EINTR) continue;
        if (have < 0) return failed();
        if (have == 0) break;
        hasher.add(Bytes(buffer.data(), static_cast<std::size_t>(have)));
        out.bytes += static_cast<std::uint64_t>(have);
    }
    out.hash = hasher.text();
    return out;
}

Result<std::string> read_small_file(const fs::path& path, std::uint64_t most) {
    const auto failed = [&](int error) {
        return Error{error == ENOENT ? Errc::not_found : Errc::unreadable,
                     fmt::format("cannot read {}: {}", path.string(), std::strerror(error))};
    };
    const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (file.get() < 0) return failed(errno);
    std::string out;
    std::array<char, 1 << 14> buffer{};
    for (;;) {
        const ssize_t have = ::read(file.get(), buffer.data(), buffer.size());
        if (have < 0 && errno == EINTR) continue;
        if (have < 0) return failed(errno);
        if (have == 0) return out;
        out.append(buffer.data(), static_cast<std::size_t>(have));
        if (out.size() > most) return failed(EFBIG);
    }
}

Result<FolderLock> FolderLock::take(const fs::path& folder) {
    const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return cannot_write(folder, errno);
    FolderLock lock(file);
    int done = -1;
    do done = ::flock(file, LOCK_EX | LOCK_NB);
    while (done != 0 && errno == EINTR);
    // Some network file systems have no locks.
    if (done == 0 || errno != EWOULDBLOCK) return lock;
    return Error{Errc::usage, fmt::format("{}: another 'waymark fleet plan' or 'fleet add' is writing its plan; wait "
                                          "until it has ended, or name another folder",
                                          folder.string())};
}

FolderLock::~FolderLock() {
    if (file_ >= 0) ::close(file_);
}

std::string host_name() {
    std::array<char, HOST_NAME_MAX + 1> name{};
    if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == 0) return "host";
    std::string out(name.data());
    return out.substr(0, out.find('.'));
}

void remove_leftovers(const fs::path& place) {
    std::error_code none;
    const std::string front = fmt::format("{}.{}.", place.filename().string(), host_name());
    constexpr std::string_view back = ".part";
    for (const fs::directory_entry& entry : fs::directory_iterator(place.parent_path(), none)) {
        const std::string name = entry.path().filename().string();
        if (!name.starts_with(front) || !name.ends_with(back)) continue;
        pid_t maker = 0;
        const char* const first = name.data() + front.size();
        const char* const last = name.data() + name.size() - back.size();
        const auto [end, error] = std::from_chars(first, last, maker);
        if (error != std::errc{} || end != last || maker <= 0) continue;
        if (::kill(maker, 0) != 0 && errno == ESRCH) fs::remove(entry.path(), none);
    }
}

}  // namespace waymark::fleet
