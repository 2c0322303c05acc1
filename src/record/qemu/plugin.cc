// libwaymark-qemu.so: a QEMU TCG plugin that records which blocks each thread executes, in the memory that it shares
// with `waymark record` (record/ring.h). It makes no decisions: `waymark record` interprets the blocks.
//
// Arguments: ring=PATH (the shared memory), exact=on|off; for a whole system: log=PATH (QEMU's log) and watch=FIRST-END
// for each stretch of addresses where that log shows how execution came there (record/qemu_log.h); for a Linux program:
// signals=PATH, the folder with QEMU's log of each thread's signals, by the thread's number in the host; for profiles
// of AArch64 programs: memory=on; for their flow, and for AArch64 systems: aarch64=on; for 32-bit programs that stand
// in for a DSP core: memory=sized; if the recording names threads as the kernel does: threads=on; if it follows forked
// children: children=on.
//
// An AArch64 system: QEMU's log contains every exception and every exception return; at `watch` addresses it also shows
// registers. The log is a file in memory that the plugin maps: before each block one byte shows whether the log has
// grown.
//
// Exactness: the API reports when a block is entered, not when it is left early. An instruction that accesses memory
// and faults, or that QEMU starts over, leaves a block early. So each such instruction is followed by a check: on the
// next such instruction, on the one after the last, or, if the last one ends the block, on its memory accesses. A block
// whose last check did not come was cut. With exact=off there is only the callback on entry.
//
// A check is a callback that records how far the block came, or an addition to that record, which QEMU translates with
// the program, so that there is no call. An addition is to one place in memory for all threads, so a program has
// additions until it starts its first thread.

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>

#include "api.h"
#include "chunks.h"
#include "fork.h"
#include "mapped_code.h"
#include "options.h"
#include "signals.h"
#include "system_calls.h"
#include "system_log.h"
#include "translation.h"
#include "vcpu.h"

extern "C" {
__attribute__((visibility("default"))) int qemu_plugin_version = 1;
__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t, const void* info, int argc,
                                                               char** argv);
}

namespace waymark::record::plugin {
namespace {

void on_vcpu_init(qemu_plugin_id_t, unsigned vcpu) {
    if (vcpu != 0) only_one = false;
    if (vcpu < max_vcpus) return;
    std::fprintf(stderr, "waymark: more than %u threads at a time cannot be recorded\n", max_vcpus);
    std::abort();
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

/// Maps the shared memory; false if that fails, or the memory belongs to another version.
bool map_ring() {
    const int file = open(options.ring, O_RDWR | O_CLOEXEC);
    if (file < 0) return false;
    void* const memory = mmap(nullptr, sizeof(Ring), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (memory == MAP_FAILED) return false;
    ring = static_cast<Ring*>(memory);
    if (ring->magic == Ring::expected_magic) return true;
    std::fprintf(stderr, "waymark: the QEMU plugin does not belong to this waymark\n");
    return false;
}

bool install(qemu_plugin_id_t id, int argc, char** argv) {
    if (!read_options(argc, argv) || !map_ring()) return false;
    self.own_pid = static_cast<std::uint32_t>(getpid());
    if (options.system_mode && !open_system_log()) return false;
    if (options.signal_folder != nullptr && !open_signals()) return false;
    blocks = new std::deque<Block>;
    begin_maps();
    plugin_id = id;
    if (options.system_mode) only_one = false;
    watch_forks();
    qemu_plugin_register_vcpu_init_cb(id, on_vcpu_init);
    qemu_plugin_register_vcpu_exit_cb(id, on_vcpu_exit);
    qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
    qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
    if (!options.system_mode) qemu_plugin_register_vcpu_syscall_ret_cb(id, on_system_call_return);
    ring->attached = 1;
    return true;
}

}  // namespace
}  // namespace waymark::record::plugin

int qemu_plugin_install(qemu_plugin_id_t id, const void*, int argc, char** argv) {
    return waymark::record::plugin::install(id, argc, argv) ? 0 : -1;
}
