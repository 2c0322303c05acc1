/// The chunks of the ring that this process fills (record/ring.h): taken, queued in order, and definitions among them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "waymark/record/ring.h"

namespace waymark::record::plugin {

/// Which process this is, as ProcessPart reports it.
struct OwnProcess {
    std::uint32_t process = 0, parent_process = 0, own_pid = 0, parent_pid = 0, parent_tid = 0;
};

#pragma GCC visibility push(hidden)
extern Ring* ring;
extern OwnProcess self;
extern bool detached;    ///< a forked child that is not recorded, or the recorder wants no more
extern std::mutex lock;  ///< guards queueing, definitions, and all that more than one thread changes
#pragma GCC visibility pop

/// An empty chunk; waits for the recorder to empty one.
Chunk* take_chunk(ChunkKind kind, std::uint32_t thread);

/// Queues a chunk of execution, and before it the definitions that it uses.
void queue_after_definitions(Chunk* chunk);

/// Queues the definitions so far. With `lock` held.
void queue_definitions_locked();
/// A forked child has no definitions yet: its parent's definitions stay with the parent.
void forget_definitions();
/// Queues the definitions and waits until the recorder has taken them. It reads a mapped file by its name, which may
/// belong to another file soon. A recorder that does not answer delays the program by two seconds at most. With `lock`
/// held.
void await_recorder_locked();

/// Adds a definition: its header and what follows that. With `lock` held.
void append(const void* header, std::size_t header_bytes, const void* a = nullptr, std::size_t a_bytes = 0,
            const void* b = nullptr, std::size_t b_bytes = 0);

}  // namespace waymark::record::plugin
