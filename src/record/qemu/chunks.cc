#include "chunks.h"

#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>

namespace waymark::record::plugin {

Ring* ring = nullptr;
OwnProcess self;
bool detached = false;
std::mutex lock;

namespace {

Chunk* definitions = nullptr;

void pause_a_little() { usleep(100); }

/// The chunk in which a forked child writes when no recorder takes chunks any more.
Chunk nowhere;

/// Whether no recorder takes this process's chunks, because it is a child that outlived the recording.
bool forsaken() {
    return self.process != 0 &&
           (ring->stop.load() != 0 || (kill(static_cast<pid_t>(ring->recorder), 0) != 0 && errno == ESRCH));
}

/// Lock of the queue, which other processes use too. Does not wait for a process that was killed while it held the
/// lock.
class QueueLock {
public:
    QueueLock() {
        for (unsigned spins = 0;; ++spins) {
            std::uint32_t holder = 0;
            if (ring->queueing_for.compare_exchange_weak(holder, self.own_pid)) return;
            if (holder != 0 && spins > 10 && kill(static_cast<pid_t>(holder), 0) != 0 && errno == ESRCH &&
                ring->queueing_for.compare_exchange_strong(holder, self.own_pid))
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

}  // namespace

Chunk* take_chunk(ChunkKind kind, std::uint32_t thread) {
    for (;;) {
        for (Chunk& chunk : ring->chunks) {
            ChunkState expected = ChunkState::empty;
            if (!chunk.state.compare_exchange_strong(expected, ChunkState::filling)) continue;
            chunk.kind = kind;
            chunk.thread = thread;
            chunk.count = 0;
            chunk.owner = self.own_pid;
            return &chunk;
        }
        if (forsaken()) {
            nowhere.count = 0;
            return &nowhere;
        }
        pause_a_little();
    }
}

void queue_after_definitions(Chunk* chunk) {
    const std::lock_guard held(lock);
    if (definitions != nullptr && definitions->count != 0) queue_definitions_locked();
    queue_locked(chunk);
}

void queue_definitions_locked() {
    if (definitions == nullptr) return;
    queue_locked(definitions);
    definitions = nullptr;
}

void forget_definitions() { definitions = nullptr; }

void await_recorder_locked() {
    if (definitions == nullptr) return;
    const Chunk* const chunk = definitions;
    queue_definitions_locked();
    for (int pauses = 0; pauses < 20'000 && chunk->state.load() == ChunkState::queued && ring->stop.load() == 0;
         ++pauses)
        pause_a_little();
}

void append(const void* header, std::size_t header_bytes, const void* a, std::size_t a_bytes, const void* b,
            std::size_t b_bytes) {
    const std::size_t words_needed = (header_bytes + a_bytes + b_bytes + 3) / 4;
    if (definitions != nullptr && definitions->count + words_needed > Chunk::capacity) queue_definitions_locked();
    if (definitions == nullptr) {
        definitions = take_chunk(ChunkKind::definitions, 0);
        if (self.process != 0) {
            const ProcessPart part{PartKind::process, sizeof(ProcessPart) / 4, self.process,   self.parent_process,
                                   self.own_pid,      self.parent_pid,         self.parent_tid};
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

}  // namespace waymark::record::plugin
