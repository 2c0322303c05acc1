/// The memory that the QEMU plugin and the recorder share: chunks of the code that each thread executed, and
/// definitions of that code. The plugin only fills it. If the program dies in any way, the recorder still lives and
/// finishes the capture.
///
/// A chunk belongs to one thread. Chunks are taken out in the order in which they were queued; a definition is always
/// queued before the first chunk that refers to it. Unused words of a chunk are 0: if the program was killed, its
/// chunks that were not queued yet are read up to the first 0.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace waymark::record {

/// Meanings of a chunk's words. 1 to `max_block`: this block was entered, and ran to its end unless `cut` follows.
namespace words {
inline constexpr std::uint32_t max_block = 0x7fffffff;
inline constexpr std::uint32_t kind_mask = 0xff000000, value_mask = 0x00ffffff;
/// The last entered block stopped at the instruction with this index, which did not complete.
inline constexpr std::uint32_t cut = 0x81000000;
/// The instruction that ended the previous block made a system call with this number.
inline constexpr std::uint32_t system_call = 0x82000000;
/// The thread ended.
inline constexpr std::uint32_t thread_end = 0x83000000;
/// An exception, with QEMU's number, was taken after the last entered block, or within it. Five `half` words follow:
/// the link register (low half, high half), the address of the vector, and the state of the handler. For an AArch64
/// system there are ten: ELR and the address of the vector in four halves each, the state, and the class of ESR (EC).
inline constexpr std::uint32_t exception = 0x84000000;
inline constexpr std::uint32_t half = 0x85000000;
/// The processor's state from here on.
inline constexpr std::uint32_t state = 0x86000000;
/// A Linux program's thread went to a signal handler, from the target of the last entered block, or from within that
/// block. The value is the signal's number, with `raised` if the thread's own instruction was the cause. Three `half`
/// words follow: the interrupted address (low half, high half), and the state there. For an AArch64 program there are
/// five, since its addresses have four halves.
inline constexpr std::uint32_t signal = 0x87000000;
inline constexpr std::uint32_t raised = 0x100;
/// An AArch64 system wrote the system register in the value (record/a64_registers.h) with the instruction that ended
/// the last entered block. Four `half` words with the written value follow, low half first; `unread`: they are 0, since
/// QEMU's log does not show the value.
inline constexpr std::uint32_t written = 0x88000000;
inline constexpr std::uint32_t unread = 0x100;
/// From here on an AArch64 system's processor has this page elsewhere in memory: eight `half` words follow, the number
/// of the virtual page and the number of the physical page, low half first. Only if accesses are recorded.
inline constexpr std::uint32_t page = 0x89000000;
/// Bits of a state.
inline constexpr std::uint32_t ns = 1, hyp = 2, thumb = 4;
/// Further bits for an AArch64 system: the exception level from bit 3 on; whether the state is AArch32; whether QEMU's
/// log shows `ns`, which is unknown otherwise.
inline constexpr unsigned el_bit = 3;
inline constexpr std::uint32_t el_mask = 3U << el_bit, aarch32 = 0x20, ns_known = 0x40;
/// A completed access to memory, if accesses are recorded: the instruction's index in the last entered block in bits
/// 29:21, 53 bits of the virtual address below them and in the next word, which may be 0. For a system, bits 63:53 are
/// copies of bit 52.
inline constexpr std::uint32_t access = 0xc0000000, access_mask = 0xc0000000;
inline constexpr unsigned access_index_bit = 21;
inline constexpr std::uint32_t access_index_mask = 0x1ff, access_high_mask = 0x001fffff;
/// If accesses of 32-bit programs are recorded with their size, bits of the first word: the size, as a power of two,
/// and whether the access is a store.
inline constexpr unsigned access_size_bit = 0;
inline constexpr std::uint32_t access_size_mask = 7, access_store = 8;
/// The system call by which a program writes to DP_TD (guest/waymark_dpu.h), if accesses are recorded with their size.
/// Linux has no call with this number. Two `half` words with the datum follow, low half first.
inline constexpr std::uint32_t user_data_call = 0xd9d0;
}  // namespace words

enum class ChunkKind : std::uint32_t { execution, definitions };
enum class ChunkState : std::uint32_t { empty, filling, queued };

struct Chunk {
    static constexpr std::size_t capacity = 16 * 1024 - 5;
    std::atomic<ChunkState> state;
    ChunkKind kind;
    /// For execution: number of the thread or processor, from 1; threads in the order in which they appeared.
    std::uint32_t thread;
    std::atomic<std::uint32_t> owner;  ///< the kernel's number of the process that fills it
    std::atomic<std::uint32_t> count;  ///< definitions: words in use; execution: set when queued
    std::array<std::uint32_t, capacity> data;
};

/// The parts of a definitions chunk, one after the other, each padded to whole words.
enum class PartKind : std::uint32_t {
    block = 1,
    page = 2,
    map = 3,
    thread = 4,
    unmap = 5,
    still_mapped = 6,
    process = 7
};

/// Code that QEMU translated. It is followed by `code_bytes` bytes of the code, then `text_bytes` of the disassembly of
/// its first instruction.
struct BlockPart {
    PartKind kind = PartKind::block;
    std::uint32_t words{};  ///< words of this part, header included
    std::uint32_t id{};
    std::uint32_t instructions{};
    std::uint32_t code_bytes{};
    std::uint32_t text_bytes{};
    std::uint64_t address{};
    std::uint64_t second{};  ///< address of the second instruction; 0: there is none
};

/// The contents of memory around code at the time of the definitions that follow. Followed by `page_bytes` bytes.
struct PagePart {
    PartKind kind = PartKind::page;
    std::uint32_t words{};
    std::uint64_t address{};
};
inline constexpr std::uint32_t page_bytes = 4096;

/// The origin of code that is about to run. The `name_bytes` of the file's name follow; if they are 0, there is no
/// file.
struct MapPart {
    PartKind kind = PartKind::map;
    std::uint32_t words{};
    std::uint64_t address{}, bytes{}, file_offset{}, inode{};
    std::uint32_t major{}, minor{};
    std::uint32_t name_bytes{};
};

/// The program is about to unmap this memory, so earlier reports about it are no longer valid. Sent before the kernel
/// unmaps it, since another thread may map other code there before the system call has returned.
struct UnmapPart {
    PartKind kind = PartKind::unmap;
    std::uint32_t words{};
    std::uint64_t address{}, bytes{};
    std::uint64_t number{};  ///< of this report
};

/// The system call that an UnmapPart announced changed nothing, so the earlier reports are valid again.
struct StillMappedPart {
    PartKind kind = PartKind::still_mapped;
    std::uint32_t words{};
    std::uint64_t number{};  ///< of the UnmapPart
};

/// If forked children are recorded: the rest of this chunk concerns this process, which at first has all blocks and
/// mappings of its parent. Each of its chunks of definitions begins with this part; a chunk without it concerns the
/// program.
struct ProcessPart {
    PartKind kind = PartKind::process;
    std::uint32_t words{};
    std::uint32_t process{}, parent{};  ///< in the order of their forks from 1; the program itself is 0
    std::uint32_t pid{}, parent_pid{}, parent_tid{};
};

/// A thread's numbers in the kernel, written before its first chunk, and again when its name changes. Its name follows;
/// if that is empty, it is the program's name.
struct ThreadPart {
    PartKind kind = PartKind::thread;
    std::uint32_t words{};
    std::uint32_t thread{}, pid{}, tid{};
    std::uint32_t name_bytes{};
};

struct Ring {
    static constexpr std::uint64_t expected_magic = 0x374b52414d594157;  // changes with the layout
    static constexpr std::uint32_t chunk_count = 96;

    std::uint64_t magic;
    std::atomic<std::uint32_t> queued;  ///< number of chunks ever queued
    std::atomic<std::uint32_t> taken;   ///< number of chunks taken out
    std::atomic<std::uint32_t> stop;    ///< the recording is complete; the program runs on
    std::atomic<std::uint32_t> attached;
    std::uint32_t recorder;                        ///< the kernel's number of the process that takes chunks
    std::atomic<std::uint32_t> threads;            ///< number of thread numbers assigned
    std::atomic<std::uint32_t> processes;          ///< number of forked children
    std::atomic<std::uint32_t> queueing_for;       ///< the process that queues a chunk; 0: none
    std::array<std::uint32_t, chunk_count> queue;  ///< queue[n % chunk_count]: index of the n-th chunk queued
    std::array<Chunk, chunk_count> chunks;
};
static_assert(std::atomic<std::uint32_t>::is_always_lock_free);

}  // namespace waymark::record
