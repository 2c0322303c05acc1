#include "durable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "hasher.h"
#include "waymark/capture/placed_file.h"

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

private:
    int number_;
};

Error cannot_write(const fs::path& path, int error) {
    return {Errc::unreadable, fmt::format("cannot write {}: {}", path.string(), std::strerror(error))};
}

/// Writes to a file, and computes the hash.
class HashedFile final : public ByteSink {
public:
    explicit HashedFile(std::FILE* file) : file_(file) {}
    void write(Bytes bytes) override {
        hasher_.add(bytes);
        count_ += bytes.size();
        if (error_ == 0 && std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) error_ = errno;
    }
    /// The first error, or 0.
    [[nodiscard]] int error() const { return error_; }
    [[nodiscard]] WrittenFile written() const { return {count_, hasher_.text()}; }

private:
    std::FILE* file_;
    int error_ = 0;
    std::uint64_t count_ = 0;
    Hasher hasher_;
};

Result<WrittenFile> place_file(const fs::path& place, const std::function<void(ByteSink&)>& write, bool sync) {
    // Folders of a job have a file for each of many shards, so writing must not list the folder.
    WM_ASSIGN_OR_RETURN(const auto file, capture::PlacedFile::open(
                                             place.string(), {},
                                             {.leftovers = capture::TemporaryName::Leftovers::leave, .synced = sync}));
    HashedFile sink(file->file());
    write(sink);
    if (const int error = file->commit(sink.error()); error != 0) return cannot_write(place, error);
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

Result<FolderLock> FolderLock::take(const fs::path& folder, std::string_view why, Held held) {
    const int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return cannot_write(folder, errno);
    FolderLock lock(file);
    int done = -1;
    do done = ::flock(file, LOCK_EX | (held == Held::fails ? LOCK_NB : 0));
    while (done != 0 && errno == EINTR);
    // Some network file systems do not support locks.
    if (done == 0 || errno != EWOULDBLOCK) return lock;
    return Error{Errc::usage, fmt::format("{}: {}", folder.string(), why)};
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

}  // namespace waymark::fleet
