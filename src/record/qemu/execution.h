/// What QEMU calls while the program executes: entries of blocks, instructions that may not complete, accesses.
#pragma once

#include <cstdint>

namespace waymark::record::plugin {

/// A block is entered, with nothing known of how the one before it ended.
void on_block(unsigned vcpu, void* block);
/// A block is entered, and one that was left early is reported.
void on_exact_block(unsigned vcpu, void* block);

/// What comes before the instruction with this index was done; or `completed`: the block was.
void on_check(unsigned vcpu, void* index);
/// The instruction that ends a block accesses memory.
void on_access(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data);
/// QEMU 7.2 does not take back the callbacks of an access that ends a block. The next access made in a helper function
/// would call them, and they are gone once the first thread began: such an access brings its own.
void on_atomic_access(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data);

/// Memory mode: an access never has its words in two chunks.
void on_memory(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data);
/// Memory mode of 32-bit programs: what an address does not need says how large the access was.
void on_sized_memory(unsigned vcpu, std::uint32_t info, std::uint64_t address, void* data);

}  // namespace waymark::record::plugin
