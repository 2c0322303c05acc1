// libwaymark-qemu.so: a QEMU TCG plugin that writes down which blocks each thread executes, into the memory it shares
// with `waymark record` (record/ring.h). It decides nothing: what the blocks mean is worked out there.
//
// Debian's QEMU 7.2 has version 1 of the plugin API and ships no header for it; what is used is declared here.
//
// Arguments: ring=PATH (the shared memory), exact=on|off; for a whole system: log=PATH (QEMU's log) and watch=FIRST-END
// for each stretch of addresses where that log shows how execution came there (record/qemu_log.h); for a Linux program:
// signals=PATH, the folder with QEMU's log of each thread's signals, by the thread's number in the host; for profiles
// of AArch64 programs: memory=on; for their flow, and for AArch64 systems: aarch64=on; for 32-bit programs that stand
// in for a DSP core: memory=sized; where the recording names threads as the kernel does: threads=on;
// where it follows forked children: children=on.
//
// An AArch64 system. QEMU's log names every exception and every exception return; `watch` is where it shows registers
// too. The log is a file in memory that the plugin maps: before each block one byte shows if there is more of it.
//
// Exactness. The API reports when a block is entered, not when it is left early. A block can be left early by an
// instruction that accesses memory and faults, or that QEMU starts over. So each instruction that may is followed by a
// callback: on the next such instruction, on the one after the last, or, when the last one ends the block, on its
// memory accesses. A block whose last callback did not come was cut. With exact=off there is only the callback on
// entry.

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "waymark/record/a64_log.h"
#include "waymark/record/a64_registers.h"
#include "waymark/record/checks.h"
#include "waymark/record/qemu_log.h"
#include "waymark/record/ring.h"

extern "C" {
using qemu_plugin_id_t = std::uint64_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum qemu_plugin_cb_flags { QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_CB_R_REGS, QEMU_PLUGIN_CB_RW_REGS };
enum qemu_plugin_mem_rw { QEMU_PLUGIN_MEM_R = 1, QEMU_PLUGIN_MEM_W, QEMU_PLUGIN_MEM_RW };
using qemu_plugin_vcpu_udata_cb_t = void (*)(unsigned, void*);
using qemu_plugin_vcpu_mem_cb_t = void (*)(unsigned, std::uint32_t, std::uint64_t, void*);
unsigned qemu_plugin_mem_size_shift(std::uint32_t);
bool qemu_plugin_mem_is_store(std::uint32_t);

std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
std::uint64_t qemu_plugin_tb_vaddr(const qemu_plugin_tb*);
qemu_plugin_insn* qemu_plugin_tb_get_insn(const qemu_plugin_tb*, std::size_t);
const void* qemu_plugin_insn_data(const qemu_plugin_insn*);
std::size_t qemu_plugin_insn_size(const qemu_plugin_insn*);
std::uint64_t qemu_plugin_insn_vaddr(const qemu_plugin_insn*);
void* qemu_plugin_insn_haddr(const qemu_plugin_insn*);
char* qemu_plugin_insn_disas(const qemu_plugin_insn*);
void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, qemu_plugin_vcpu_udata_cb_t, qemu_plugin_cb_flags, void*);
void qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_insn*, qemu_plugin_vcpu_udata_cb_t, qemu_plugin_cb_flags,
                                            void*);
void qemu_plugin_register_vcpu_mem_cb(qemu_plugin_insn*, qemu_plugin_vcpu_mem_cb_t, qemu_plugin_cb_flags,
                                      qemu_plugin_mem_rw, void*);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned));
void qemu_plugin_register_vcpu_exit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, unsigned));
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t,
                                          void (*)(qemu_plugin_id_t, unsigned, std::int64_t, std::uint64_t,
                                                   std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                                                   std::uint64_t, std::uint64_t, std::uint64_t));
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t,
                                              void (*)(qemu_plugin_id_t, unsigned, std::int64_t, std::int64_t));
void qemu_plugin_reset(qemu_plugin_id_t, void (*)(qemu_plugin_id_t));
__attribute__((visibility("default"))) int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t, const void* info, int argc,
                                                               char** argv);
}

namespace {

using namespace waymark::record;

/// A translated block, as far as the callbacks need it. Never freed: QEMU may run it to the end.
struct Block {
    std::uint32_t id{};
    std::uint64_t address{}, end{};
    std::uint32_t first_check = no_check;     ///< index of the first instruction that may not complete
    std::uint32_t last_check = no_check;      ///< such an instruction ends the block: its index
    std::uint32_t last_accesses = 0;          ///< and how many accesses complete it
    bool watched = false;                     ///< QEMU's log shows how execution came there
    A64Register written = A64Register::none;  ///< by the instruction that ends it
    std::uint8_t source{};                    ///< the general-purpose register with the value
    std::atomic<bool> is_handler{false};      ///< a signal may lead there
    static constexpr std::uint32_t no_check = 0xffffffff, completed = 0xfffffffe;
    std::uint32_t reached_at_entry = completed;  ///< or 0, where there is something to reach
};

constexpr std::uint32_t completed = Block::completed;

/// One virtual processor; in user mode a thread. Its number is used again after the thread ended.
struct alignas(64) Vcpu {
    Chunk* chunk = nullptr;
    std::uint32_t* at = nullptr;
    std::uint32_t* end = nullptr;
    const Block* open = nullptr;   ///< entered last
    const Block* wrote = nullptr;  ///< its last instruction wrote a system register, and what, is not known yet
    std::uint32_t events = 0;      ///< how many of `a64_events` are of this processor
    std::uint32_t reached = 0;     ///< index of the last callback's instruction in it; 0: none yet
    std::uint32_t accesses = 0;    ///< of the instruction that ends it
    std::uint32_t thread = 0;
    bool named = false;                               ///< its system call gives the thread a name
    std::uint64_t unmapped = 0, unmapped_number = 0;  ///< by its system call: the address, and the UnmapPart's; 0: none
};

constexpr unsigned max_vcpus = 4096;
Ring* ring = nullptr;
Vcpu vcpus[max_vcpus];
qemu_plugin_id_t plugin_id;
bool exact = true;
bool memory_mode = false;
bool report_threads = false;  ///< says which threads of the kernel they are, and when their names change
bool a64 = false;             ///< an AArch64 program
bool sized = false;           ///< memory mode: accesses with their size, and blocks left early
bool detached = false;        ///< a forked child that is not recorded, or the recorder wants no more
bool children = false;        ///< forked children are recorded
std::uint32_t process = 0, parent_process = 0, own_pid = 0, parent_pid = 0, parent_tid = 0;  ///< see ProcessPart
std::atomic<bool> resetting{false};
std::mutex lock;  // guards everything below, and queueing
std::uint32_t next_block = 1;
std::uint64_t next_unmapping = 1;
Chunk* definitions = nullptr;
std::vector<std::pair<std::uint64_t, std::uint64_t>>* reported_maps = nullptr;  ///< from, to
std::set<std::pair<std::string, std::uint64_t>>* mapped_files = nullptr;        ///< name and inode of each reported one
std::unordered_map<std::uint64_t, std::string>* pages = nullptr;
std::deque<Block>* blocks = nullptr;

/// An instruction of a processor's vector table, or where it begins after reset.
struct Watched {
    std::uint64_t first, end;
};
bool system_mode = false;
std::vector<Watched>* watched = nullptr;
int log_file = -1;
off_t log_at = 0, log_freed = 0;
QemuLog* log_text = nullptr;
std::vector<LoggedEntry>* log_entries = nullptr;  ///< of all processors, not used yet

// An AArch64 system: QEMU runs one processor at a time.
A64Log* a64_log = nullptr;
std::vector<A64Event>* a64_events = nullptr;  ///< of all processors, not used yet
unsigned last_vcpu = 0;                       ///< entered a block last
/// A window on the log, which is longer than what is written of it: what follows is 0.
class LogWindow {
public:
    static constexpr std::size_t bytes = 1 << 24;
    static constexpr off_t file_bytes = off_t{1} << 40;
    bool open(int file) {
        file_ = file;
        return ftruncate(file, file_bytes) == 0 && move();
    }
    /// QEMU wrote more than was read.
    [[nodiscard]] bool has_more() const { return window_[at_] != 0; }
    template <class F>
    void read(F&& feed) {
        while (window_[at_] != 0) {
            const auto* const text = const_cast<const char*>(window_ + at_);
            const std::size_t n = strnlen(text, bytes - at_);
            feed(std::string_view(text, n));
            at_ += n;
            if (at_ == bytes && !move()) std::abort();
        }
    }

private:
    /// To where the one before ended, whose memory is given back.
    bool move() {
        if (window_ != nullptr) {
            munmap(const_cast<char*>(window_), bytes);
            fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, next_ - static_cast<off_t>(bytes), bytes);
        }
        void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_, next_);
        if (memory == MAP_FAILED) return false;
        window_ = static_cast<const volatile char*>(memory);
        next_ += bytes;
        at_ = 0;
        return true;
    }
    int file_ = -1;
    const volatile char* window_ = nullptr;
    std::size_t at_ = 0;
    off_t next_ = 0;
};
LogWindow a64_window;

// The signals of a Linux program.
std::string* signal_folder = nullptr;
std::vector<std::uint64_t>* handlers = nullptr;  ///< where signals ever led to
std::atomic<std::uintptr_t> guest_base{0};       ///< what the host adds to the program's addresses
std::atomic<bool> has_guest_base{false};
int own_memory = -1;  ///< reads what a wrong address must not crash

/// QEMU's log of one thread's signals, opened when it first enters a handler.
struct ThreadSignals {
    int file = -1;
    off_t at = 0, freed = 0;
    SignalLog log;
    ThreadSignals() = default;
    ThreadSignals(const ThreadSignals&) = delete;
    ThreadSignals& operator=(const ThreadSignals&) = delete;
    ~ThreadSignals() { forget(); }
    void forget() {
        if (file >= 0) close(file);
        file = -1;
        at = freed = 0;
        log = {};
    }
};
thread_local ThreadSignals thread_signals;

void pause_a_little() { usleep(100); }

/// Where a forked child goes on writing when nobody takes chunks any more.
Chunk nowhere;

/// Nobody takes what this process writes: it is a child that outlived the recording.
bool forsaken() {
    return process != 0 &&
           (ring->stop.load() != 0 || (kill(static_cast<pid_t>(ring->recorder), 0) != 0 && errno == ESRCH));
}

/// An empty chunk; waits for the recorder to empty one.
Chunk* take_chunk(ChunkKind kind, std::uint32_t thread) {
    for (;;) {
        for (Chunk& chunk : ring->chunks) {
            ChunkState expected = ChunkState::empty;
            if (!chunk.state.compare_exchange_strong(expected, ChunkState::filling)) continue;
            chunk.kind = kind;
            chunk.thread = thread;
            chunk.count = 0;
            chunk.owner = own_pid;
            return &chunk;
        }
        if (forsaken()) {
            nowhere.count = 0;
            return &nowhere;
        }
        pause_a_little();
    }
}

/// Other processes queue too. One that was killed while it did is not waited for.
class QueueLock {
public:
    QueueLock() {
        for (unsigned spins = 0;; ++spins) {
            std::uint32_t holder = 0;
            if (ring->queueing_for.compare_exchange_weak(holder, own_pid)) return;
            if (holder != 0 && spins > 10 && kill(static_cast<pid_t>(holder), 0) != 0 && errno == ESRCH &&
                ring->queueing_for.compare_exchange_strong(holder, own_pid))
                return;
            if (spins > 10) pause_a_little();
        }
    }
    ~QueueLock() { ring->queueing_for = 0; }
    QueueLock(const QueueLock&) = delete;
    QueueLock& operator=(const QueueLock&) = delete;
};

void queue_locked(Chunk* chunk) {
    if (chunk == &nowhere) return;
    const QueueLock held;
    chunk->state = ChunkState::queued;
    const std::uint32_t n = ring->queued.load();
    ring->queue[n % Ring::chunk_count] = static_cast<std::uint32_t>(chunk - ring->chunks.data());
    ring->queued.store(n + 1);
}

void queue(Vcpu& v) {
    if (v.chunk == nullptr) return;
    const std::lock_guard held(lock);
    // Whatever the chunk names was defined before.
    if (definitions != nullptr && definitions->count != 0) {
        queue_locked(definitions);
        definitions = nullptr;
    }
    v.chunk->count = static_cast<std::uint32_t>(v.at - v.chunk->data.data());
    queue_locked(v.chunk);
    v.chunk = nullptr;
    v.at = v.end = nullptr;
}

void stop_recording(qemu_plugin_id_t) {}

void append(const void* header, std::size_t header_bytes, const void* a, std::size_t a_bytes, const void* b,
            std::size_t b_bytes);

/// Says who the current thread is.
void report_thread_locked(const Vcpu& v, std::string_view name) {
    ThreadPart part;
    part.thread = v.thread;
    part.pid = static_cast<std::uint32_t>(getpid());
    part.tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    part.name_bytes = static_cast<std::uint32_t>(name.size());
    part.words = static_cast<std::uint32_t>((sizeof part + name.size() + 3) / 4);
    append(&part, sizeof part, name.data(), name.size(), nullptr, 0);
}

/// Reads what QEMU wrote into a log from `at` on, and gives back the memory this took.
template <class F>
void read_on(int file, off_t& at, off_t& freed, F&& feed) {
    std::array<char, 4096> piece;
    for (ssize_t n; (n = pread(file, piece.data(), piece.size(), at)) > 0;) {
        at += n;
        feed(std::string_view(piece.data(), static_cast<std::size_t>(n)));
    }
    constexpr off_t worth_it = 1 << 20;
    if (at - freed < worth_it) return;
    const off_t upto = at & ~off_t{page_bytes - 1};
    fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, freed, upto - freed);
    freed = upto;
}

void read_log_locked() {
    read_on(log_file, log_at, log_freed, [](std::string_view text) {
        log_text->feed(text, [](const LoggedEntry& entry) { log_entries->push_back(entry); });
    });
}

void refill(Vcpu& v) {
    queue(v);
    if (log_text != nullptr) {
        const std::lock_guard held(lock);
        read_log_locked();
    }
    if (ring->stop.load() != 0 && !resetting.exchange(true)) {
        detached = true;
        qemu_plugin_reset(plugin_id, stop_recording);
    }
    if (v.thread == 0) {
        const std::lock_guard held(lock);
        v.thread = system_mode ? static_cast<std::uint32_t>(&v - vcpus) + 1 : ++ring->threads;
        if (report_threads) report_thread_locked(v, {});
    }
    v.chunk = take_chunk(ChunkKind::execution, v.thread);
    v.at = v.chunk->data.data();
    v.end = v.at + Chunk::capacity;
}

/// Memory mode: an access never has its words in two chunks.
void on_memory(unsigned vcpu, std::uint32_t, std::uint64_t address, void* data) {
    Vcpu& v = vcpus[vcpu];
    if (v.end - v.at < 2) [[unlikely]] {
        if (detached) return;
        refill(v);
    }
    const auto high = static_cast<std::uint32_t>(address >> 32) & words::access_high_mask;
    v.at[0] = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data)) | high;
    v.at[1] = static_cast<std::uint32_t>(address);
    v.at += 2;
}

/// Memory mode of 32-bit programs: what an address does not need says how large the access was.
void on_sized_memory(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data) {
    const std::uint64_t size = qemu_plugin_mem_size_shift(info) << words::access_size_bit;
    const std::uint64_t store = qemu_plugin_mem_is_store(info) ? words::access_store : 0;
    on_memory(vcpu, info, (address & 0xffffffff) | (size | store) << 32, data);
}

inline void put(Vcpu& v, std::uint32_t word) {
    if (v.at == v.end) [[unlikely]] {
        if (detached) return;
        refill(v);
    }
    *v.at++ = word;
}

/// Was the block entered last left early? `next`: where execution went on.
inline void settle(Vcpu& v, std::uint64_t next) {
    const Block* open = v.open;
    if (v.reached == completed || open == nullptr) return;
    // The instruction that ends the block came up: its accesses completed it, or its condition failed and the next one
    // follows.
    const std::uint32_t reached = v.reached != 0 ? v.reached : open->first_check;
    if (reached == open->last_check && (v.accesses >= open->last_accesses || next == open->end)) return;
    put(v, words::cut | reached);
}

inline void opened(Vcpu& v, const Block* block) {
    v.open = block;
    v.reached = block->reached_at_entry;
    v.accesses = 0;
}
inline void enter(Vcpu& v, const Block* block) {
    put(v, block->id);
    opened(v, block);
}

/// Reads the program's memory; false where there is none.
bool read_guest(std::uint64_t address, void* to, std::size_t bytes) {
    if (!has_guest_base.load()) return false;
    const auto from = static_cast<off_t>(guest_base.load() + address);
    return pread(own_memory, to, bytes, from) == static_cast<ssize_t>(bytes);
}

/// A signal that led the current thread to a handler since this was asked last. Where several did, one after the other,
/// the first interrupted the program, and the others its handler before that began.
std::optional<LoggedSignal> taken_signal() {
    ThreadSignals& t = thread_signals;
    if (t.file < 0) {
        const std::string path = *signal_folder + "/" + std::to_string(syscall(SYS_gettid));
        t.file = open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (t.file < 0) return std::nullopt;  // nothing was logged of this thread
        unlink(path.c_str());
    }
    std::optional<LoggedSignal> first;
    read_on(t.file, t.at, t.freed, [&](std::string_view text) {
        t.log.feed(text, [&](const LoggedSignal& signal) {
            if (!first) first = signal;
        });
    });
    return first;
}

/// The first block of what may be a signal's handler: says which signal led there, if one did.
void enter_handler(Vcpu& v, const Block* block) {
    // The pc and, in AArch32, the CPSR.
    std::array<std::uint32_t, 2> interrupted{};
    const auto signal = taken_signal();
    const auto pc_at = [&] {
        return signal->frame +
               (a64 ? a64_frame_pc : SignalFrame::pc + (signal->with_info ? SignalFrame::info_bytes : 0));
    };
    if (!signal || !read_guest(pc_at(), interrupted.data(), sizeof interrupted)) {
        if (exact) settle(v, block->address);
        enter(v, block);
        return;
    }
    // The interrupted place shows how far the block before it came.
    put(v, words::signal | (signal->number & (words::raised - 1)) | (signal->raised ? words::raised : 0));
    for (std::size_t i = 0; i < (a64 ? 2U : 1U); ++i) {
        put(v, words::half | (interrupted[i] & 0xffff));
        put(v, words::half | interrupted[i] >> 16);
    }
    put(v, words::half | (!a64 && (interrupted[1] & SignalFrame::thumb) != 0 ? words::thumb : 0));
    enter(v, block);
}

void on_block(unsigned vcpu, void* data) {
    Vcpu& v = vcpus[vcpu];
    const auto* block = static_cast<const Block*>(data);
    if (block->is_handler.load(std::memory_order_relaxed)) [[unlikely]] {
        enter_handler(v, block);
        return;
    }
    put(v, block->id);
}

/// on_exact_block(), where more is to be done than to write down the block.
[[gnu::noinline]] void on_unusual_block(Vcpu& v, const Block* block) {
    if (block->is_handler.load(std::memory_order_relaxed)) {
        enter_handler(v, block);
        return;
    }
    settle(v, block->address);
    enter(v, block);
}

void on_exact_block(unsigned vcpu, void* data) {
    Vcpu& v = vcpus[vcpu];
    const auto* block = static_cast<const Block*>(data);
    if (v.reached != completed || v.at == v.end || block->is_handler.load(std::memory_order_relaxed)) [[unlikely]] {
        on_unusual_block(v, block);
        return;
    }
    *v.at++ = block->id;
    opened(v, block);
}

/// A block that may begin an exception handler: says which exception led there, if one did.
void on_watched_block(unsigned vcpu, void* data) {
    Vcpu& v = vcpus[vcpu];
    const auto* block = static_cast<const Block*>(data);
    std::vector<LoggedEntry> mine;
    {
        const std::lock_guard held(lock);
        read_log_locked();
        const auto others = std::stable_partition(log_entries->begin(), log_entries->end(),
                                                  [&](const LoggedEntry& entry) { return entry.cpu != vcpu; });
        mine.assign(others, log_entries->end());
        log_entries->erase(others, log_entries->end());
    }
    if (exact) settle(v, block->address);
    // Two may come one after the other without an instruction between them.
    for (const LoggedEntry& entry : mine) {
        const std::uint32_t state =
            (entry.ns ? words::ns : 0) | (entry.hyp ? words::hyp : 0) | (entry.thumb ? words::thumb : 0);
        if (!entry.exception) {
            put(v, words::state | state);
            continue;
        }
        put(v, words::exception | (*entry.exception & words::value_mask));
        for (const std::uint32_t value : {entry.lr, entry.pc}) {
            put(v, words::half | (value & 0xffff));
            put(v, words::half | value >> 16);
        }
        put(v, words::half | state);
    }
    enter(v, block);
}

/// What was logged up to here; exception returns are of the processor that ran last.
void read_a64_log() {
    const std::lock_guard held(lock);
    a64_window.read([](std::string_view text) {
        a64_log->feed(text, [](const A64Event& event) {
            a64_events->push_back(event);
            if (event.kind == A64Event::Kind::exception_return) a64_events->back().cpu = last_vcpu;
            if (a64_events->back().cpu < max_vcpus) ++vcpus[a64_events->back().cpu].events;
        });
    });
}

void put_wide(Vcpu& v, std::uint64_t value) {
    for (unsigned i = 0; i < 4; ++i) put(v, words::half | static_cast<std::uint32_t>(value >> 16 * i & 0xffff));
}

/// The value that the instruction at the end of `v.wrote` wrote, if `event` shows the registers right after it.
void put_written(Vcpu& v, const A64Event* event) {
    const Block& block = *std::exchange(v.wrote, nullptr);
    put(v, words::written | static_cast<std::uint32_t>(block.written) | (event == nullptr ? words::unread : 0));
    put_wide(v, event == nullptr ? 0 : event->x[block.source]);
}

void put_a64_event(Vcpu& v, const A64Event& event) {
    std::uint32_t state = event.el << words::el_bit | (event.aarch32 ? words::aarch32 : 0);
    if (event.ns) state |= words::ns_known | (*event.ns ? words::ns : 0);
    if (event.kind != A64Event::Kind::exception) {
        put(v, words::state | state);
        if (event.kind == A64Event::Kind::registers && v.wrote != nullptr && v.wrote->end == event.pc)
            put_written(v, &event);
        return;
    }
    // It was taken to be executed, and was not.
    if (v.wrote != nullptr && event.elr + 4 == v.wrote->end) v.wrote = nullptr;
    put(v, words::exception | (event.number & words::value_mask));
    put_wide(v, event.elr);
    put_wide(v, event.pc);
    put(v, words::half | state);
    put(v, words::half | event.exception_class);
}

/// A block of an AArch64 system.
void on_a64_system_block(unsigned vcpu, void* data) {
    Vcpu& v = vcpus[vcpu];
    const auto* block = static_cast<const Block*>(data);
    if (a64_window.has_more()) [[unlikely]]
        read_a64_log();
    last_vcpu = vcpu;
    if (exact) settle(v, block->address);
    if (v.events != 0) [[unlikely]] {
        std::vector<A64Event> mine;
        const auto others = std::stable_partition(a64_events->begin(), a64_events->end(),
                                                  [&](const A64Event& event) { return event.cpu != vcpu; });
        mine.assign(others, a64_events->end());
        a64_events->erase(others, a64_events->end());
        v.events = 0;
        for (const A64Event& event : mine) put_a64_event(v, event);
    }
    if (v.wrote != nullptr && v.wrote->end == block->address) [[unlikely]]
        put_written(v, nullptr);
    enter(v, block);
    if (block->written != A64Register::none) [[unlikely]]
        v.wrote = block;
}

void on_check(unsigned vcpu, void* data) {
    vcpus[vcpu].reached = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data));
}
void on_access(unsigned vcpu, std::uint32_t, std::uint64_t, void*) { ++vcpus[vcpu].accesses; }

/// QEMU 7.2 does not take back the callbacks of an access that ends a block. The next access made in a helper function
/// would call them, and they are gone once the first thread began: such an access brings its own.
void on_atomic_access(unsigned, std::uint32_t, std::uint64_t, void*) {}

/// Numbers of system calls.
struct Calls {
    std::int64_t prctl, munmap, mremap, mmap, mprotect, clone;
    std::array<std::int64_t, 4> fork;  ///< all that may make a process
    std::array<std::int64_t, 4> end;   ///< all after which the program may be gone
};
constexpr std::size_t exit_group = 1;  ///< in `end`
constexpr std::int64_t clone3 = 435;
constexpr Calls a64_calls{167, 215, 216, 222, 226, 220, {220, clone3, 220, clone3}, {93, 94, 221, 281}};
constexpr Calls arm_calls{172, 91, 163, 192, 125, 120, {2, 120, 190, clone3}, {1, 248, 11, 387}};
constexpr std::int64_t arm_sigaction = 67, arm_rt_sigaction = 174, a64_rt_sigaction = 134;
const Calls& calls() { return a64 ? a64_calls : arm_calls; }
bool installs_handler(std::int64_t number) {
    return a64 ? number == a64_rt_sigaction : number == arm_sigaction || number == arm_rt_sigaction;
}

/// Reports what a system call is about to unmap.
void report_unmapping(Vcpu& v, std::uint64_t address, std::uint64_t bytes) {
    const std::lock_guard held(lock);
    UnmapPart part;
    part.words = sizeof part / 4;
    part.address = address;
    part.bytes = bytes;
    part.number = next_unmapping++;
    append(&part, sizeof part, nullptr, 0, nullptr, 0);
    reported_maps->clear();
    v.unmapped = address;
    v.unmapped_number = part.number;
}

/// Whether a system call that was reported to unmap something left all as it was: it failed, or an mremap did not
/// move what it was to resize.
bool unmapped_nothing(const Vcpu& v, std::int64_t number, std::int64_t result) {
    constexpr std::int64_t last_error = -4095;
    if (result < 0 && result >= last_error) return true;
    const std::uint64_t mask = &calls() == &arm_calls ? 0xffffffff : ~std::uint64_t{0};
    return number == calls().mremap && ((static_cast<std::uint64_t>(result) ^ v.unmapped) & mask) == 0;
}

/// A handler is installed: both structures begin with its address. 0 and 1 are none.
void see_handler(std::uint64_t action) {
    std::uint64_t address = 0;
    if (!read_guest(a64 ? action : action & 0xffffffff, &address, a64 ? 8 : 4) || address <= 1) return;
    address &= ~std::uint64_t{1};
    const std::lock_guard held(lock);
    if (std::find(handlers->begin(), handlers->end(), address) != handlers->end()) return;
    handlers->push_back(address);
    for (Block& block : *blocks)
        if (block.address == address) block.is_handler = true;
}

void on_system_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t first, std::uint64_t second,
                    std::uint64_t, std::uint64_t fourth, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t) {
    if (vcpu >= max_vcpus) return;
    Vcpu& v = vcpus[vcpu];
    if (v.open != nullptr) settle(v, v.open->end);
    v.open = nullptr;
    if (signal_folder != nullptr && second != 0 && !detached && installs_handler(number)) see_handler(second);
    put(v, words::system_call | (static_cast<std::uint32_t>(number) & words::value_mask));
    if (detached) return;
    // The recorder sees what led to a new thread before it sees the thread.
    if (number == calls().clone || number == clone3) queue(v);
    v.unmapped_number = 0;
    if (number == calls().munmap || (number == calls().mremap && (fourth & MREMAP_MAYMOVE) != 0))
        report_unmapping(v, first, second);
    // A child, or whoever reads what this process leaves behind, is to find all that came before.
    const auto among = [&](const std::array<std::int64_t, 4>& all) {
        return std::find(all.begin(), all.end(), number) != all.end();
    };
    if (children && number == calls().end[exit_group]) put(v, words::thread_end);
    if (children && (among(calls().fork) || among(calls().end))) queue(v);
    if (report_threads) v.named = number == calls().prctl && first == PR_SET_NAME;
    if (!memory_mode) return;
    if (sized && number == words::user_data_call) {
        put(v, words::half | static_cast<std::uint32_t>(first & 0xffff));
        put(v, words::half | static_cast<std::uint32_t>(first >> 16 & 0xffff));
        return;
    }
    queue(v);
}

/// A system call that may have changed what is mapped where, or a name.
void on_system_call_return(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::int64_t result) {
    if (vcpu >= max_vcpus || detached) return;
    Vcpu& v = vcpus[vcpu];
    const Calls& c = calls();
    if (number == c.munmap || number == c.mremap || number == c.mmap || number == c.mprotect) {
        const std::lock_guard held(lock);
        reported_maps->clear();
        // Again: what was asked in between may have been answered before the call did its work.
        if (v.unmapped_number != 0 && unmapped_nothing(v, number, result)) {
            StillMappedPart part;
            part.words = sizeof part / 4;
            part.number = v.unmapped_number;
            append(&part, sizeof part, nullptr, 0, nullptr, 0);
        }
        v.unmapped_number = 0;
    } else if (v.named && v.thread != 0) {
        std::array<char, 16> name{};
        prctl(PR_GET_NAME, name.data());
        const std::lock_guard held(lock);
        report_thread_locked(v, name.data());
    }
    v.named = false;
}

void on_vcpu_exit(qemu_plugin_id_t, unsigned vcpu) {
    if (vcpu >= max_vcpus || detached) return;
    Vcpu& v = vcpus[vcpu];
    if (v.thread != 0) {
        put(v, words::thread_end);
        queue(v);
    }
    v = {};
}

// ---- translation

void append(const void* header, std::size_t header_bytes, const void* a, std::size_t a_bytes, const void* b,
            std::size_t b_bytes) {
    const std::size_t words_needed = (header_bytes + a_bytes + b_bytes + 3) / 4;
    if (definitions != nullptr && definitions->count + words_needed > Chunk::capacity) {
        queue_locked(definitions);
        definitions = nullptr;
    }
    if (definitions == nullptr) {
        definitions = take_chunk(ChunkKind::definitions, 0);
        if (process != 0) {
            const ProcessPart part{
                PartKind::process, sizeof(ProcessPart) / 4, process, parent_process, own_pid, parent_pid, parent_tid};
            std::memcpy(definitions->data.data(), &part, sizeof part);
            definitions->count = part.words;
        }
    }
    const std::uint32_t count = definitions->count;
    auto* to = reinterpret_cast<std::uint8_t*>(definitions->data.data() + count);
    std::memcpy(to, header, header_bytes);
    if (a_bytes != 0) std::memcpy(to + header_bytes, a, a_bytes);
    if (b_bytes != 0) std::memcpy(to + header_bytes + a_bytes, b, b_bytes);
    definitions->count = count + static_cast<std::uint32_t>(words_needed);
}

void define_page(std::uint64_t address, const void* host) {
    if (host == nullptr) return;
    const std::uint64_t first = address & ~std::uint64_t{page_bytes - 1};
    const auto* from = static_cast<const char*>(host) - (address - first);
    std::string& known = (*pages)[first];
    if (known.size() == page_bytes && std::memcmp(known.data(), from, page_bytes) == 0) return;
    known.assign(from, page_bytes);
    PagePart part;
    part.words = (sizeof part + page_bytes) / 4;
    part.address = first;
    append(&part, sizeof part, known.data(), page_bytes, nullptr, 0);
}

/// Queues the definitions and waits until the recorder has taken them. It reads a mapped file by its name, which may
/// belong to another file soon. A recorder that does not answer delays the program by two seconds at most.
void await_recorder_locked() {
    if (definitions == nullptr) return;
    const Chunk* const chunk = definitions;
    queue_locked(definitions);
    definitions = nullptr;
    for (int pauses = 0; pauses < 20'000 && chunk->state.load() == ChunkState::queued && ring->stop.load() == 0;
         ++pauses)
        pause_a_little();
}

/// Says where the code at `address` was mapped from, unless that was said.
void define_map(std::uint64_t address, const void* host) {
    if (host == nullptr) return;
    for (const auto& [from, to] : *reported_maps)
        if (address >= from && address < to) return;
    std::FILE* const maps = std::fopen("/proc/self/maps", "re");
    if (maps == nullptr) return;
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(host);
    std::array<char, 4096 + 128> line;
    while (std::fgets(line.data(), line.size(), maps) != nullptr) {
        std::uint64_t from = 0, to = 0, offset = 0, inode = 0;
        unsigned major = 0, minor = 0;
        int name_at = 0;
        if (std::sscanf(line.data(), "%lx-%lx %*s %lx %x:%x %lu %n", &from, &to, &offset, &major, &minor, &inode,
                        &name_at) < 6 ||
            at < from || at >= to)
            continue;
        std::string_view name = line.data() + name_at;
        if (name.ends_with('\n')) name.remove_suffix(1);
        if (!name.starts_with('/')) name = {};  // such as [heap]
        MapPart part;
        part.address = address - (at - from);
        part.bytes = to - from;
        part.file_offset = offset;
        part.inode = inode;
        part.major = major;
        part.minor = minor;
        part.name_bytes = static_cast<std::uint32_t>(name.size());
        part.words = static_cast<std::uint32_t>((sizeof part + name.size() + 3) / 4);
        append(&part, sizeof part, name.data(), name.size(), nullptr, 0);
        reported_maps->emplace_back(part.address, part.address + part.bytes);
        if (!name.empty() && mapped_files->emplace(name, inode).second) await_recorder_locked();
        break;
    }
    std::fclose(maps);
}

void on_translate(qemu_plugin_id_t, qemu_plugin_tb* tb) {
    const std::size_t count = qemu_plugin_tb_n_insns(tb);
    if (detached) return;
    const std::lock_guard held(lock);
    if (next_block > words::max_block) return;
    // A block without instructions is one of the kernel's helpers, which QEMU does itself.
    qemu_plugin_insn* const first = count == 0 ? nullptr : qemu_plugin_tb_get_insn(tb, 0);
    BlockPart part;
    part.id = next_block++;
    part.instructions = static_cast<std::uint32_t>(count);
    part.address = qemu_plugin_tb_vaddr(tb);
    if (count > 1) part.second = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, 1));

    // The bytes there, without gaps; the size given for an instruction before a page end may be too large.
    std::string code;
    bool thumb = (part.address & 3) != 0;
    for (std::size_t i = 0; i < count; ++i) {
        const qemu_plugin_insn* instruction = qemu_plugin_tb_get_insn(tb, i);
        const std::uint64_t offset = qemu_plugin_insn_vaddr(instruction) - part.address;
        const std::size_t bytes = qemu_plugin_insn_size(instruction);
        code.resize(offset);
        code.append(static_cast<const char*>(qemu_plugin_insn_data(instruction)), bytes);
        thumb |= !a64 && ((offset & 3) != 0 || bytes == 2);
    }
    char* const text = code.empty() || a64 ? nullptr : qemu_plugin_insn_disas(first);
    part.code_bytes = static_cast<std::uint32_t>(code.size());
    part.text_bytes = text == nullptr ? 0 : static_cast<std::uint32_t>(std::strlen(text));
    part.words = static_cast<std::uint32_t>((sizeof part + part.code_bytes + part.text_bytes + 3) / 4);
    if (!code.empty() && !system_mode) define_map(part.address, qemu_plugin_insn_haddr(first));
    if (!code.empty() && !memory_mode) {
        define_page(part.address, qemu_plugin_insn_haddr(first));
        const qemu_plugin_insn* last = qemu_plugin_tb_get_insn(tb, count - 1);
        if (((qemu_plugin_insn_vaddr(last) ^ part.address) & ~std::uint64_t{page_bytes - 1}) != 0)
            define_page(qemu_plugin_insn_vaddr(last), qemu_plugin_insn_haddr(last));
    }
    append(&part, sizeof part, code.data(), code.size(), text, part.text_bytes);
    std::free(text);

    const auto word_at = [&](std::size_t i) {
        const std::size_t offset = qemu_plugin_insn_vaddr(qemu_plugin_tb_get_insn(tb, i)) - part.address;
        std::uint32_t word = 0;
        if (offset < code.size())
            std::memcpy(&word, code.data() + offset, std::min<std::size_t>(4, code.size() - offset));
        return word;
    };
    Block& block = blocks->emplace_back();
    block.id = part.id;
    block.address = part.address;
    block.end = part.address + code.size();
    block.watched = std::any_of(watched->begin(), watched->end(),
                                [&](const Watched& w) { return block.address >= w.first && block.address < w.end; });
    const bool a64_system = a64_log != nullptr;
    if (a64_system && count != 0) {
        block.written = a64_register_written(word_at(count - 1));
        block.source = static_cast<std::uint8_t>(a64_register_source(word_at(count - 1)));
    }
    if (signal_folder != nullptr) {
        if (first != nullptr && !has_guest_base.load() && qemu_plugin_insn_haddr(first) != nullptr) {
            guest_base = reinterpret_cast<std::uintptr_t>(qemu_plugin_insn_haddr(first)) - part.address;
            has_guest_base = true;
        }
        block.is_handler = std::find(handlers->begin(), handlers->end(), block.address) != handlers->end();
    }
    if (memory_mode) {
        if (!sized) qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, &block);
        for (std::size_t i = 0; i < count && i <= words::access_index_mask; ++i)
            qemu_plugin_register_vcpu_mem_cb(
                qemu_plugin_tb_get_insn(tb, i), sized ? on_sized_memory : on_memory, QEMU_PLUGIN_CB_NO_REGS,
                QEMU_PLUGIN_MEM_RW,
                reinterpret_cast<void*>(
                    std::uintptr_t{words::access | static_cast<std::uint32_t>(i) << words::access_index_bit}));
        if (!sized) return;
    }
    const auto on_entry = a64_system      ? on_a64_system_block
                          : block.watched ? on_watched_block
                          : exact         ? on_exact_block
                                          : on_block;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, on_entry, QEMU_PLUGIN_CB_NO_REGS, &block);
    if (!exact) return;
    // Without a 16-bit instruction as proof, these may be Thumb all the same. Then what either reading watches is
    // watched, and the recorder ignores a cut at an instruction that cannot be one.
    bool unsure = !thumb && !a64;
    for (std::size_t i = 0; i < count && unsure; ++i) unsure = is_thumb_32_word(word_at(i));
    std::size_t last_check = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint32_t word = word_at(i);
        if ((a64 ? may_be_atomic_a64(word) : may_be_atomic(word, thumb)) || (unsure && may_be_atomic(word, true)))
            qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), on_atomic_access, QEMU_PLUGIN_CB_NO_REGS,
                                             QEMU_PLUGIN_MEM_RW, nullptr);
        const bool stops = a64     ? may_stop_a64(word)
                           : thumb ? may_stop_thumb(word)
                                   : may_stop_arm(word) || (unsure && may_stop_thumb(word));
        if (!stops) continue;
        last_check = i;
        if (block.first_check == Block::no_check) {
            block.first_check = static_cast<std::uint32_t>(i);
            block.reached_at_entry = 0;
            continue;
        }
        qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, i), on_check, QEMU_PLUGIN_CB_NO_REGS,
                                               reinterpret_cast<void*>(i));
    }
    if (block.first_check == Block::no_check) return;
    if (last_check + 1 < count) {
        qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, last_check + 1), on_check,
                                               QEMU_PLUGIN_CB_NO_REGS, reinterpret_cast<void*>(std::size_t{completed}));
        return;
    }
    const std::uint32_t word = word_at(last_check);
    qemu_plugin_insn* const last = qemu_plugin_tb_get_insn(tb, last_check);
    block.last_check = static_cast<std::uint32_t>(last_check);
    // A64 has no load of the pc: what follows such an instruction is the one after it.
    block.last_accesses = a64 ? 0xffffffff : unsure ? 1 : accesses_of(word, thumb);
    block.end = qemu_plugin_insn_vaddr(last) + (thumb && !is_thumb_32_word(word) ? 2 : 4);
    qemu_plugin_register_vcpu_mem_cb(last, on_access, QEMU_PLUGIN_CB_NO_REGS, QEMU_PLUGIN_MEM_RW, nullptr);
}

void on_vcpu_init(qemu_plugin_id_t, unsigned vcpu) {
    if (vcpu < max_vcpus) return;
    std::fprintf(stderr, "waymark: more than %u threads at a time cannot be recorded\n", max_vcpus);
    std::abort();
}

/// The files into which QEMU logs signals: each is of one thread of the parent. Calls f(file, path).
template <class F>
void for_each_signal_log(F&& f) {
    DIR* const files = opendir("/proc/self/fd");
    while (const dirent* const entry = files != nullptr ? readdir(files) : nullptr) {
        const int file = std::atoi(entry->d_name);
        std::array<char, 4096> path{};
        if (file <= 2 || readlinkat(dirfd(files), entry->d_name, path.data(), path.size() - 1) < 0) continue;
        const std::string_view text = path.data();
        if (text.starts_with(*signal_folder + "/")) f(file, text);
    }
    if (files != nullptr) closedir(files);
}

/// In a forked child its signals would otherwise be logged among those of its parent. `own`: where those of this
/// thread go; the child has no other.
void leave_signal_logs(const std::string& own) {
    const int file = open(own.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    for_each_signal_log([&](int log, std::string_view path) {
        if (log != file && path != own) dup2(file, log);
    });
    close(file);
}

/// A forked child goes on unrecorded: what it shares with the recorder belongs to its parent.
void in_unrecorded_child() {
    detached = true;
    if (mmap(ring, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        std::abort();
    for (Vcpu& v : vcpus) v.at = v.end = nullptr;
    if (signal_folder != nullptr) leave_signal_logs("/dev/null");
}

/// A forked child becomes a process of its own: it has the blocks of its parent, and its only thread is a new one.
void in_recorded_child() {
    parent_pid = own_pid;
    own_pid = static_cast<std::uint32_t>(getpid());
    parent_process = process;
    process = ++ring->processes;
    definitions = nullptr;
    for (Vcpu& v : vcpus) v = {};
    if (signal_folder == nullptr) return;
    close(own_memory);
    own_memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    thread_signals.forget();
    leave_signal_logs(*signal_folder + "/" + std::to_string(own_pid));
}

void before_fork() {
    lock.lock();
    parent_tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    // What a recorded child executes may have been defined by its parent.
    if (!children || detached || definitions == nullptr) return;
    queue_locked(definitions);
    definitions = nullptr;
}
void in_parent() { lock.unlock(); }
void in_child() {
    if (children && !detached)
        in_recorded_child();
    else
        in_unrecorded_child();
    lock.unlock();
}

}  // namespace

int qemu_plugin_install(qemu_plugin_id_t id, const void*, int argc, char** argv) {
    std::string path, log_path;
    watched = new std::vector<Watched>;
    for (int i = 0; i < argc; ++i) {
        const std::string_view argument = argv[i];
        if (argument.starts_with("ring=")) path = argument.substr(5);
        if (argument == "exact=off") exact = false;
        if (argument == "memory=on" || argument == "memory=sized") memory_mode = true;
        if (argument == "memory=sized") sized = true;
        if (argument == "threads=on") report_threads = true;
        if (argument == "children=on") children = true;
        if (argument == "memory=on" || argument == "aarch64=on") a64 = true;
        if (argument.starts_with("log=")) log_path = argument.substr(4);
        if (argument.starts_with("signals=")) signal_folder = new std::string(argument.substr(8));
        if (argument.starts_with("watch=")) {
            Watched w{};
            const char* const end = argv[i] + argument.size();
            const auto first = std::from_chars(argv[i] + 6, end, w.first, 16);
            if (first.ec != std::errc{} || first.ptr == end ||
                std::from_chars(first.ptr + 1, end, w.end, 16).ec != std::errc{})
                return -1;
            watched->push_back(w);
        }
    }
    const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
    if (file < 0) return -1;
    void* const memory = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return -1;
    ring = static_cast<Ring*>(memory);
    own_pid = static_cast<std::uint32_t>(getpid());
    if (ring->magic != Ring::expected_magic) {
        std::fprintf(stderr, "waymark: the QEMU plugin does not belong to this waymark\n");
        return -1;
    }
    if (!log_path.empty()) {
        system_mode = true;
        log_file = open(log_path.c_str(), O_RDWR | O_CLOEXEC);
        if (log_file < 0) return -1;
        if (a64) {
            a64_log = new A64Log;
            a64_events = new std::vector<A64Event>;
            if (!a64_window.open(log_file)) return -1;
        } else {
            log_text = new QemuLog;
            log_entries = new std::vector<LoggedEntry>;
        }
    }
    if (signal_folder != nullptr) {
        own_memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
        if (own_memory < 0) return -1;
        handlers = new std::vector<std::uint64_t>;
    }
    pages = new std::unordered_map<std::uint64_t, std::string>;
    blocks = new std::deque<Block>;
    reported_maps = new std::vector<std::pair<std::uint64_t, std::uint64_t>>;
    mapped_files = new std::set<std::pair<std::string, std::uint64_t>>;
    if (memory_mode && !sized) exact = false;
    report_threads |= memory_mode;
    if (!system_mode) qemu_plugin_register_vcpu_syscall_ret_cb(id, on_system_call_return);
    plugin_id = id;
    pthread_atfork(before_fork, in_parent, in_child);
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
    qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_exit);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
    ring->attached = 1;
    return 0;
}
