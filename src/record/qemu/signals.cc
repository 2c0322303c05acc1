#include "signals.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "log_file.h"
#include "options.h"
#include "waymark/record/qemu_log.h"

namespace waymark::record::plugin {
namespace {

std::vector<std::uint64_t>* handlers = nullptr;  // addresses of all handlers so far
std::atomic<std::uintptr_t> guest_base{0};       // distance from the program's addresses to the host's
std::atomic<bool> has_guest_base{false};
int own_memory = -1;  // for reading addresses that may be invalid without crashing

/// QEMU's log of one thread's signals, opened when it first enters a handler.
struct ThreadSignals {
    LogFile log;
    SignalLog signals;
    ThreadSignals() = default;
    ThreadSignals(const ThreadSignals&) = delete;
    ThreadSignals& operator=(const ThreadSignals&) = delete;
    ~ThreadSignals() { forget(); }
    void forget() {
        if (log.file >= 0) close(log.file);
        log = {};
        signals = {};
    }
};
thread_local ThreadSignals thread_signals;

/// Reads the program's memory; false if the address is not mapped.
bool read_guest(std::uint64_t address, void* to, std::size_t bytes) {
    if (!has_guest_base.load()) return false;
    const auto from = static_cast<off_t>(guest_base.load() + address);
    return pread(own_memory, to, bytes, from) == static_cast<ssize_t>(bytes);
}

/// A signal that led the current thread to a handler since the last call. If there were several, the first interrupted
/// the program, and each later one interrupted the handler of the previous one before that began.
std::optional<LoggedSignal> taken_signal() {
    ThreadSignals& t = thread_signals;
    if (t.log.file < 0) {
        const std::string path = *options.signal_folder + "/" + std::to_string(syscall(SYS_gettid));
        t.log.file = open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (t.log.file < 0) return std::nullopt;  // QEMU has not logged anything for this thread
        unlink(path.c_str());
    }
    std::optional<LoggedSignal> first;
    t.log.read_on([&](std::string_view text) {
        t.signals.feed(text, [&](const LoggedSignal& signal) {
            if (!first) first = signal;
        });
    });
    return first;
}

/// Iterates over the files into which QEMU logs signals: each belongs to a thread of the parent. Calls f(file, path).
template <class F>
void for_each_signal_log(F&& f) {
    DIR* const files = opendir("/proc/self/fd");
    while (const dirent* const entry = files != nullptr ? readdir(files) : nullptr) {
        const int file = std::atoi(entry->d_name);
        std::array<char, 4096> path{};
        if (file <= 2 || readlinkat(dirfd(files), entry->d_name, path.data(), path.size() - 1) < 0) continue;
        const std::string_view text = path.data();
        if (text.starts_with(*options.signal_folder + "/")) f(file, text);
    }
    if (files != nullptr) closedir(files);
}

/// Without this call a forked child's signals would be logged with its parent's. `own`: the log of this thread, the
/// child's only one.
void leave_signal_logs(const std::string& own) {
    const int file = open(own.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    for_each_signal_log([&](int log, std::string_view path) {
        if (log != file && path != own) dup2(file, log);
    });
    close(file);
}

}  // namespace

bool open_signals() {
    own_memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    handlers = new std::vector<std::uint64_t>;
    return own_memory >= 0;
}

void see_code(std::uint64_t address, const void* code) {
    if (code == nullptr || has_guest_base.load()) return;
    guest_base = reinterpret_cast<std::uintptr_t>(code) - address;
    has_guest_base = true;
}

bool is_handler_locked(std::uint64_t address) {
    return std::find(handlers->begin(), handlers->end(), address) != handlers->end();
}

void see_handler(std::uint64_t action, std::deque<Block>& translated) {
    std::uint64_t address = 0;
    if (!read_guest(options.a64 ? action : action & 0xffffffff, &address, options.a64 ? 8 : 4) || address <= 1) return;
    address &= ~std::uint64_t{1};
    const std::lock_guard held(lock);
    if (is_handler_locked(address)) return;
    handlers->push_back(address);
    for (Block& block : translated)
        if (block.address == address) block.is_handler = true;
}

void enter_handler(Vcpu& v, const Block* block) {
    // The pc and, in AArch32, the CPSR.
    std::array<std::uint32_t, 2> interrupted{};
    const auto signal = taken_signal();
    const auto pc_at = [&] {
        return signal->frame +
               (options.a64 ? a64_frame_pc : SignalFrame::pc + (signal->with_info ? SignalFrame::info_bytes : 0));
    };
    if (!signal || !read_guest(pc_at(), interrupted.data(), sizeof interrupted)) {
        if (options.exact) settle(v, block->address);
        enter(v, block);
        return;
    }
    // The interrupted address shows how far the previous block came.
    put(v, words::signal | (signal->number & (words::raised - 1)) | (signal->raised ? words::raised : 0));
    for (std::size_t i = 0; i < (options.a64 ? 2U : 1U); ++i) {
        put(v, words::half | (interrupted[i] & 0xffff));
        put(v, words::half | interrupted[i] >> 16);
    }
    put(v, words::half | (!options.a64 && (interrupted[1] & SignalFrame::thumb) != 0 ? words::thumb : 0));
    enter(v, block);
}

void leave_parents_signals(bool recorded) {
    if (!recorded) return leave_signal_logs("/dev/null");
    close(own_memory);
    own_memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    thread_signals.forget();
    leave_signal_logs(*options.signal_folder + "/" + std::to_string(self.own_pid));
}

}  // namespace waymark::record::plugin
