/// The chunks of the ring that this process fills (record/ring.h): taking, queueing in order, and definitions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>

#include "waymark/record/ring.h"

namespace waymark::record::plugin {

/// Identity of this process, as ProcessPart reports it.
struct OwnProcess {
    std::uint32_t process = 0, parent_process = 0, own_pid = 0, parent_pid = 0, parent_tid = 0;
};

#pragma GCC visibility push(hidden)
extern Ring* ring;
extern OwnProcess self;
extern bool detached;    ///< a forked child that is not recorded, or the recorder wants no more
extern std::mutex lock;  ///< guards queueing, definitions, and everything that several threads change
#pragma GCC visibility pop

/// Takes an empty chunk; waits for the recorder to empty one.
Chunk* take_chunk(ChunkKind kind, std::uint32_t thread);

/// Queues a chunk of execution after the definitions that it uses.
void queue_after_definitions(Chunk* chunk);

/// Queues the definitions so far. Call with `lock` held.
void queue_definitions_locked();
/// A forked child has no definitions yet: its parent's definitions stay with the parent.
void forget_definitions();
/// Queues the definitions and waits until the recorder has taken them. The recorder opens mapped files by name, and a
/// name may belong to another file soon. A recorder that does not answer delays the program by at most two seconds.
/// Call with `lock` held.
void await_recorder_locked();

/// Adds a definition: its header and the data after it. Call with `lock` held.
void append(const void* header, std::size_t header_bytes, const void* a = nullptr, std::size_t a_bytes = 0,
            const void* b = nullptr, std::size_t b_bytes = 0);

}  // namespace waymark::record::plugin
