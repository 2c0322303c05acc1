#include "waymark/record/qemu.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <sstream>
#include <thread>

#include "waymark/core/beside_program.h"
#include "waymark/core/quote.h"
#include "waymark/record/child.h"
#include "waymark/record/qemu_log.h"
#include "waymark/record/ring.h"

namespace waymark::record {

namespace fs = std::filesystem;

namespace {

using Time = std::chrono::steady_clock;

Error failed(const char* what) { return {Errc::unreadable, fmt::format("{}: {}", what, std::strerror(errno))}; }

/// Memory shared with QEMU. Its only name in the file system is in /proc, while this process exists.
class SharedFile {
public:
    static Result<SharedFile> create() {
        const int file = memfd_create("waymark", MFD_CLOEXEC);
        if (file < 0) return failed("cannot create memory to share with QEMU");
        return SharedFile(file);
    }
    SharedFile(SharedFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
    SharedFile& operator=(SharedFile&&) = delete;
    ~SharedFile() {
        if (file_ >= 0) close(file_);
    }
    [[nodiscard]] int number() const { return file_; }
    [[nodiscard]] std::string path() const { return fmt::format("/proc/{}/fd/{}", getpid(), file_); }

private:
    explicit SharedFile(int file) : file_(file) {}
    int file_;
};

/// A folder for QEMU's log of each thread. It is removed with its contents.
class TemporaryFolder {
public:
    static Result<TemporaryFolder> create() {
        std::error_code error;
        // The plugin compares the path with links in /proc, and QEMU interprets a % in the name of a log.
        fs::path base = fs::temp_directory_path(error);
        if (!error) base = fs::canonical(base, error);
        if (!error && base.string().find('%') != std::string::npos) base = "/tmp";
        std::string path = (base / "waymark-XXXXXX").string();
        if (error || mkdtemp(path.data()) == nullptr) return failed("cannot create a temporary folder for QEMU's log");
        return TemporaryFolder(std::move(path));
    }
    TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
    TemporaryFolder& operator=(TemporaryFolder&&) = delete;
    ~TemporaryFolder() {
        std::error_code error;
        if (!path_.empty()) fs::remove_all(path_, error);
    }
    [[nodiscard]] const std::string& path() const { return path_; }

private:
    explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
    std::string path_;
};

/// The memory shared with the plugin.
class SharedRing {
public:
    static Result<SharedRing> create() {
        WM_ASSIGN_OR_RETURN(SharedFile file, SharedFile::create());
        if (ftruncate(file.number(), sizeof(Ring)) != 0) return failed("cannot create memory to share with QEMU");
        void* const memory = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
        if (memory == MAP_FAILED) return failed("cannot map memory to share with QEMU");
        SharedRing shared(std::move(file), static_cast<Ring*>(memory));
        shared.ring_->magic = Ring::expected_magic;
        shared.ring_->recorder = static_cast<std::uint32_t>(getpid());
        return shared;
    }
    SharedRing(SharedRing&& other) noexcept
        : file_(std::move(other.file_)), ring_(std::exchange(other.ring_, nullptr)) {}
    SharedRing& operator=(SharedRing&&) = delete;
    ~SharedRing() {
        if (ring_ != nullptr) munmap(ring_, sizeof(Ring));
    }
    [[nodiscard]] Ring& operator*() const { return *ring_; }
    [[nodiscard]] std::string path() const { return file_.path(); }

private:
    SharedRing(SharedFile file, Ring* ring) : file_(std::move(file)), ring_(ring) {}
    SharedFile file_;
    Ring* ring_;
};

class Feeder {
public:
    Feeder(Ring& ring, Recording& recording) : ring_(ring), recording_(recording) {}

    /// Takes the queued chunks, at most as many as the ring holds; false if none was queued.
    bool take() {
        bool any = false;
        for (std::uint32_t i = 0; i < Ring::chunk_count && ring_.taken.load() != ring_.queued.load(); ++i) {
            const std::uint32_t n = ring_.taken.load();
            const std::uint32_t index = ring_.queue[n % Ring::chunk_count];
            if (index < Ring::chunk_count) {
                Chunk& chunk = ring_.chunks[index];
                feed(chunk, std::min<std::size_t>(chunk.count.load(), Chunk::capacity));
            }
            ring_.taken.store(n + 1);
            any = true;
            if (recording_.stopped() || recording_.failure()) ring_.stop.store(1);
        }
        return any;
    }

    /// Takes the chunks that the program, which has ended, and its children had not queued. Children that still run are
    /// no longer recorded.
    void take_rest() {
        ring_.stop.store(1);
        while (take()) {
        }
        take_unqueued([](const Chunk&) { return true; });
    }

    /// Takes unqueued chunks of children that have ended, so that others find empty chunks.
    void take_rest_of_children(pid_t program) {
        std::map<std::uint32_t, bool> known;
        const auto is_gone = [&](std::uint32_t owner) {
            const auto [found, first] = known.try_emplace(owner, false);
            if (first) found->second = gone(owner);
            return found->second;
        };
        take_unqueued([&](const Chunk& chunk) {
            // 0: the chunk was just taken, and its owner is not yet stored.
            const std::uint32_t owner = chunk.owner.load();
            return owner != 0 && owner != static_cast<std::uint32_t>(program) && is_gone(owner);
        });
    }

private:
    /// Whether the process has ended, even if its parent has not asked for its status yet.
    static bool gone(std::uint32_t process) {
        std::string line;
        if (!std::getline(std::ifstream(fmt::format("/proc/{}/stat", process)), line)) return true;
        const std::size_t name_end = line.rfind(')');
        return name_end != line.npos && name_end + 2 < line.size() &&
               (line[name_end + 2] == 'Z' || line[name_end + 2] == 'X');
    }

    void take_unqueued(const std::function<bool(const Chunk&)>& chosen) {
        for (const ChunkKind kind : {ChunkKind::definitions, ChunkKind::execution}) {
            for (Chunk& chunk : ring_.chunks) {
                if (chunk.state.load() != ChunkState::filling || chunk.kind != kind || !chosen(chunk)) continue;
                std::size_t count = std::min<std::size_t>(chunk.count.load(), Chunk::capacity);
                if (kind == ChunkKind::execution)
                    for (count = 0; count < Chunk::capacity && chunk.data[count] != 0;)
                        count += (chunk.data[count] & words::access_mask) == words::access ? 2 : 1;
                feed(chunk, std::min(count, Chunk::capacity));
            }
        }
    }

    void feed(Chunk& chunk, std::size_t count) {
        const std::span<const std::uint32_t> data(chunk.data.data(), count);
        if (chunk.kind == ChunkKind::definitions)
            recording_.definitions(data);
        else
            recording_.execution(chunk.thread, data);
        std::memset(chunk.data.data(), 0, count * sizeof(std::uint32_t));
        chunk.owner.store(0);
        chunk.state.store(ChunkState::empty);
    }

    Ring& ring_;
    Recording& recording_;
};

}  // namespace

Result<fs::path> find_qemu(const std::string& name, const std::string& package) {
    const char* const path = std::getenv("PATH");
    std::istringstream folders(path == nullptr ? "/usr/bin:/bin" : path);
    for (std::string folder; std::getline(folders, folder, ':');) {
        const fs::path candidate = fs::path(folder.empty() ? "." : folder) / name;
        if (access(candidate.c_str(), X_OK) == 0 && !fs::is_directory(candidate)) return candidate;
    }
    return Error{Errc::not_found, fmt::format("{} is not on PATH; it is in the Debian package {}: apt-get install {}",
                                              name, package, package)};
}

Result<fs::path> find_plugin() { return find_beside_program("libwaymark-qemu.so"); }

Result<Ending> run_qemu(const QemuOptions& options, Recording& recording, const RecordProgress& progress) {
    WM_ASSIGN_OR_RETURN(const SharedRing shared, SharedRing::create());
    Ring& ring = *shared;
    std::string plugin = fmt::format("{},ring={},exact={},memory={}", qemu_value(options.plugin.string()),
                                     qemu_value(shared.path()), options.exact ? "on" : "off",
                                     options.sized    ? "sized"
                                     : options.memory ? "on"
                                                      : "off");
    if (options.aarch64) plugin += ",aarch64=on";
    if (options.threads) plugin += ",threads=on";
    if (options.children) plugin += ",children=on";
    std::vector<std::string> command{options.qemu.string()};
    std::optional<SharedFile> log;
    if (!options.watched.empty()) {
        WM_ASSIGN_OR_RETURN(SharedFile file, SharedFile::create());
        log.emplace(std::move(file));
        std::string filter;
        for (const auto& [first, end] : options.watched) {
            plugin += fmt::format(",watch={:x}-{:x}", first.value, end.value);
            filter += fmt::format("{}{:#x}+{:#x}", filter.empty() ? "" : ",", first.value, end - first);
        }
        plugin += ",log=" + qemu_value(log->path());
        command.insert(command.end(), {"-d", "int,exec,cpu", "-dfilter", filter, "-D", log->path()});
    }
    std::optional<TemporaryFolder> signals;
    if (options.signals) {
        WM_ASSIGN_OR_RETURN(TemporaryFolder folder, TemporaryFolder::create());
        signals.emplace(std::move(folder));
        plugin += ",signals=" + qemu_value(signals->path());
        command.insert(command.end(), {"-d", fmt::format("tid,{}", SignalLog::events), "-D", signals->path() + "/%d"});
    }
    command.insert(command.end(), {"-plugin", plugin});
    command.insert(command.end(), options.qemu_arguments.begin(), options.qemu_arguments.end());
    command.insert(command.end(), options.program.begin(), options.program.end());

    SignalHandlers handlers;
    WM_ASSIGN_OR_RETURN(const pid_t pid, start_program(command, options.input));
    handlers.pass_to(pid);
    Feeder feeder(ring, recording);
    Ending ending;
    ending.process = static_cast<std::uint32_t>(pid);
    int status = 0;
    auto flushed = Time::now(), shown = flushed, looked = flushed;
    for (;;) {
        const bool any = feeder.take();
        const auto now = Time::now();
        if (progress && now - shown >= std::chrono::milliseconds(200)) {
            progress();
            shown = now;
        }
        // Everything is written to disk regularly, so that a capture that is killed is nearly complete.
        if (now - flushed >= std::chrono::seconds(1)) {
            static_cast<void>(recording.flush());  // the recorder keeps the error
            flushed = now;
        }
        if (log && recording.stopped() && !ending.ended) {
            kill(pid, SIGTERM);
            ending.ended = true;
        }
        if (recording.failure() && !ending.killed) {
            kill(pid, SIGKILL);
            ending.killed = true;
        }
        if (any) continue;
        if (options.children && now - looked >= std::chrono::milliseconds(10)) {
            feeder.take_rest_of_children(pid);
            looked = now;
        }
        const pid_t gone = waitpid(pid, &status, WNOHANG);
        if (gone == pid || (gone < 0 && errno != EINTR)) break;
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    }
    handlers.pass_to(0);
    feeder.take_rest();
    ending.interrupt = handlers.received();
    if (WIFSIGNALED(status)) {
        ending.kind = Ending::Kind::signalled;
        ending.code = WTERMSIG(status);
    } else {
        ending.code = WEXITSTATUS(status);
    }
    if (ring.attached.load() == 0)
        return Error{Errc::unreadable,
                     fmt::format("{} ended with status {} before it loaded the plugin {}; see its own message. Waymark "
                                 "needs a QEMU with TCG plugins, such as Debian's 7.2",
                                 options.qemu.string(), ending.code, options.plugin.string())};
    return ending;
}

}  // namespace waymark::record
