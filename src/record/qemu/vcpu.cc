#include "vcpu.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "options.h"
#include "system_log.h"

namespace waymark::record::plugin {

Vcpu vcpus[max_vcpus];
qemu_plugin_id_t plugin_id;
std::atomic<bool> only_one{true};

namespace {
std::atomic<bool> resetting{false};
void stop_recording(qemu_plugin_id_t) {}
}  // namespace

void queue(Vcpu& v) {
    if (v.chunk == nullptr) return;
    v.chunk->count = static_cast<std::uint32_t>(v.at - v.chunk->data.data());
    queue_after_definitions(v.chunk);
    v.chunk = nullptr;
    v.at = v.end = nullptr;
}

void refill(Vcpu& v) {
    queue(v);
    if (reads_log()) {
        const std::lock_guard held(lock);
        read_log_locked();
    }
    if (ring->stop.load() != 0 && !resetting.exchange(true)) {
        detached = true;
        qemu_plugin_reset(plugin_id, stop_recording);
    }
    if (v.thread == 0) {
        const std::lock_guard held(lock);
        v.thread = options.system_mode ? static_cast<std::uint32_t>(&v - vcpus) + 1 : ++ring->threads;
        if (options.report_threads) report_thread_locked(v, {});
    }
    v.chunk = take_chunk(ChunkKind::execution, v.thread);
    v.at = v.chunk->data.data();
    v.end = v.at + Chunk::capacity;
}

void report_thread_locked(const Vcpu& v, std::string_view name) {
    ThreadPart part;
    part.thread = v.thread;
    part.pid = static_cast<std::uint32_t>(getpid());
    part.tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    part.name_bytes = static_cast<std::uint32_t>(name.size());
    part.words = static_cast<std::uint32_t>((sizeof part + name.size() + 3) / 4);
    append(&part, sizeof part, name.data(), name.size());
}

}  // namespace waymark::record::plugin
