/// Records what each virtual processor executes, word by word, into its chunk of the ring.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "api.h"
#include "chunks.h"
#include "waymark/record/a64_registers.h"

namespace waymark::record::plugin {

/// The data of a translated block that callbacks need. It is never freed: QEMU may run the block until the end.
struct Block {
    std::uint32_t id{};
    std::uint64_t address{}, end{};
    std::uint32_t first_check = no_check;     ///< index of the first instruction that may not complete
    std::uint32_t last_check = no_check;      ///< index of the last such instruction, if it ends the block
    std::uint32_t last_accesses = 0;          ///< number of accesses that complete it
    bool watched = false;                     ///< QEMU's log shows how execution came there
    A64Register written = A64Register::none;  ///< system register that the last instruction writes
    std::uint8_t source{};                    ///< the general-purpose register with the value
    std::atomic<bool> is_handler{false};      ///< a signal may lead there
    static constexpr std::uint32_t no_check = 0xffffffff, completed = 0xfffffffe;
    std::uint32_t reached_at_entry = completed;  ///< or 0, if the block has checks
};

constexpr std::uint32_t completed = Block::completed;

/// One virtual processor; in user mode a thread. Its number is reused after the thread has ended.
struct alignas(64) Vcpu {
    Chunk* chunk = nullptr;
    std::uint32_t* at = nullptr;
    std::uint32_t* end = nullptr;
    const Block* open = nullptr;   ///< entered last
    const Block* wrote = nullptr;  ///< block whose last instruction wrote a system register; the value is not known yet
    std::uint32_t events = 0;      ///< number of `a64_events` that belong to this processor
    std::uint64_t reached = 0;     ///< index in it of the last check's instruction; 0: none yet
    std::uint64_t accesses = 0;    ///< accesses of the instruction that ends it
    std::uint32_t thread = 0;
    /// A system whose accesses are recorded: physical pages of virtual pages, as reported last.
    struct Page {
        std::uint64_t page = ~std::uint64_t{0}, physical = 0;
    };
    static constexpr std::size_t known_pages = 64;
    Page* pages = nullptr;
    bool named = false;  ///< its system call gives the thread a name
    std::uint64_t unmapped = 0,
                  unmapped_number = 0;  ///< for its system call: the address, and the number of the UnmapPart; 0: none
};

constexpr unsigned max_vcpus = 4096;
#pragma GCC visibility push(hidden)
extern Vcpu vcpus[max_vcpus];
extern qemu_plugin_id_t plugin_id;
/// Whether there was never more than one processor, number 0. QEMU translates all code again when a second one begins.
extern std::atomic<bool> only_one;
#pragma GCC visibility pop

/// Queues the words that the processor has executed so far.
void queue(Vcpu& v);
/// Takes an empty chunk for the processor; there is none if the recorder needs no more.
void refill(Vcpu& v);
/// Reports the identity of the current thread. Call with `lock` held.
void report_thread_locked(const Vcpu& v, std::string_view name);

/// Adds a word to the processor's execution.
inline void put(Vcpu& v, std::uint32_t word) {
    if (v.at == v.end) [[unlikely]] {
        if (detached) return;
        refill(v);
    }
    *v.at++ = word;
}

/// Adds 64 bits as four `half` words.
inline void put_wide(Vcpu& v, std::uint64_t value) {
    for (unsigned i = 0; i < 4; ++i) put(v, words::half | static_cast<std::uint32_t>(value >> 16 * i & 0xffff));
}

/// Reports whether the previous block was left early. `next`: where execution continued.
inline void settle(Vcpu& v, std::uint64_t next) {
    const Block* open = v.open;
    if (v.reached == completed || open == nullptr) return;
    // The instruction that ends the block was reached: its accesses completed it, or its condition failed and the next
    // one follows.
    const std::uint32_t reached = v.reached != 0 ? static_cast<std::uint32_t>(v.reached) : open->first_check;
    if (reached == open->last_check && (v.accesses >= open->last_accesses || next == open->end)) return;
    put(v, words::cut | reached);
}

/// Starts a block: none of its checks was reached yet.
inline void opened(Vcpu& v, const Block* block) {
    v.open = block;
    v.reached = block->reached_at_entry;
    v.accesses = 0;
}
/// Records that the block was entered.
inline void enter(Vcpu& v, const Block* block) {
    put(v, block->id);
    opened(v, block);
}

}  // namespace waymark::record::plugin
