/// Callbacks from QEMU while the program executes: entries of blocks, instructions that may not complete, accesses.
#pragma once

#include <cstdint>

namespace waymark::record::plugin {

/// A block is entered; it is not known how the previous one ended.
void on_block(unsigned vcpu, void* block);
/// A block is entered; reports if the previous one was left early.
void on_exact_block(unsigned vcpu, void* block);

/// All instructions before the one with this index completed. `completed`: the whole block completed.
void on_check(unsigned vcpu, void* index);
/// The instruction that ends a block accesses memory.
void on_access(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data);
/// QEMU 7.2 does not remove the callbacks of an access that ends a block. The next access in a helper function would
/// call them, although they no longer exist after the first thread has begun. So such an access installs its own.
void on_atomic_access(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data);

/// Memory mode: all words of an access are in one chunk.
void on_memory(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data);
/// Memory mode of a system: reports the page's place in memory before, where it is new.
void on_system_memory(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data);
/// Memory mode of 32-bit programs: unused bits of the address state the size of the access.
void on_sized_memory(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data);

}  // namespace waymark::record::plugin
