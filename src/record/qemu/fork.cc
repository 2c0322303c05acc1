#include "fork.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "chunks.h"
#include "options.h"
#include "signals.h"
#include "vcpu.h"

namespace waymark::record::plugin {
namespace {

/// A forked child continues unrecorded: the memory shared with the recorder belongs to its parent.
void in_unrecorded_child() {
    detached = true;
    if (mmap(ring, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
        std::abort();
    for (Vcpu& v : vcpus) v.at = v.end = nullptr;
    if (options.signal_folder != nullptr) leave_parents_signals(false);
}

/// A forked child becomes a process of its own in the recording: it has its parent's blocks, and its only thread is
/// new.
void in_recorded_child() {
    self.parent_pid = self.own_pid;
    self.own_pid = static_cast<std::uint32_t>(getpid());
    self.parent_process = self.process;
    self.process = ++ring->processes;
    forget_definitions();
    for (Vcpu& v : vcpus) v = {};
    if (options.signal_folder != nullptr) leave_parents_signals(true);
}

void before_fork() {
    lock.lock();
    self.parent_tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    // A recorded child may execute blocks that its parent defined.
    if (options.children && !detached) queue_definitions_locked();
}
void in_parent() { lock.unlock(); }
void in_child() {
    if (options.children && !detached)
        in_recorded_child();
    else
        in_unrecorded_child();
    lock.unlock();
}

}  // namespace

void watch_forks() { pthread_atfork(before_fork, in_parent, in_child); }

}  // namespace waymark::record::plugin
