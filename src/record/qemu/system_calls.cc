#include "system_calls.h"

#include <sys/mman.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "mapped_code.h"
#include "options.h"
#include "signals.h"
#include "translation.h"
#include "vcpu.h"

namespace waymark::record::plugin {
namespace {

std::uint64_t next_unmapping = 1;

/// Numbers of system calls.
struct Calls {
    std::int64_t prctl, munmap, mremap, mmap, mprotect, clone;
    std::array<std::int64_t, 4> fork;  ///< all that may create a process
    std::array<std::int64_t, 4> end;   ///< all that may end the program
};
constexpr std::size_t exit_group = 1;  ///< in `end`
constexpr std::int64_t clone3 = 435;
constexpr Calls a64_calls{167, 215, 216, 222, 226, 220, {220, clone3, 220, clone3}, {93, 94, 221, 281}};
constexpr Calls arm_calls{172, 91, 163, 192, 125, 120, {2, 120, 190, clone3}, {1, 248, 11, 387}};
constexpr std::int64_t arm_sigaction = 67, arm_rt_sigaction = 174, a64_rt_sigaction = 134;
const Calls& calls() { return options.a64 ? a64_calls : arm_calls; }
bool installs_handler(std::int64_t number) {
    return options.a64 ? number == a64_rt_sigaction : number == arm_sigaction || number == arm_rt_sigaction;
}

/// Reports the memory that a system call will unmap.
void report_unmapping(Vcpu& v, std::uint64_t address, std::uint64_t bytes) {
    const std::lock_guard held(lock);
    UnmapPart part;
    part.words = sizeof part / 4;
    part.address = address;
    part.bytes = bytes;
    part.number = next_unmapping++;
    append(&part, sizeof part);
    forget_maps_locked();
    v.unmapped = address;
    v.unmapped_number = part.number;
}

/// Whether a system call that was reported as an unmapping changed nothing: it failed, or an mremap resized in place.
bool unmapped_nothing(const Vcpu& v, std::int64_t number, std::int64_t result) {
    constexpr std::int64_t last_error = -4095;
    if (result < 0 && result >= last_error) return true;
    const std::uint64_t mask = &calls() == &arm_calls ? 0xffffffff : ~std::uint64_t{0};
    return number == calls().mremap && ((static_cast<std::uint64_t>(result) ^ v.unmapped) & mask) == 0;
}

}  // namespace

void on_system_call(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::uint64_t first, std::uint64_t second,
                    std::uint64_t, std::uint64_t fourth, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t) {
    if (vcpu >= max_vcpus) return;
    Vcpu& v = vcpus[vcpu];
    if (v.open != nullptr) settle(v, v.open->end);
    v.open = nullptr;
    if (options.signal_folder != nullptr && second != 0 && !detached && installs_handler(number))
        see_handler(second, *blocks);
    put(v, words::system_call | (static_cast<std::uint32_t>(number) & words::value_mask));
    if (detached) return;
    // The recorder must see the code that led to a new thread before it sees the thread.
    if (number == calls().clone || number == clone3) queue(v);
    v.unmapped_number = 0;
    if (number == calls().munmap || (number == calls().mremap && (fourth & MREMAP_MAYMOVE) != 0))
        report_unmapping(v, first, second);
    // A child, or the reader of this process's output, must find everything before this call.
    const auto among = [&](const std::array<std::int64_t, 4>& all) {
        return std::find(all.begin(), all.end(), number) != all.end();
    };
    if (options.children && number == calls().end[exit_group]) put(v, words::thread_end);
    if (options.children && (among(calls().fork) || among(calls().end))) queue(v);
    if (options.report_threads) v.named = number == calls().prctl && first == PR_SET_NAME;
    if (!options.memory_mode) return;
    if (options.sized && number == words::user_data_call) {
        put(v, words::half | static_cast<std::uint32_t>(first & 0xffff));
        put(v, words::half | static_cast<std::uint32_t>(first >> 16 & 0xffff));
        return;
    }
    queue(v);
}

void on_system_call_return(qemu_plugin_id_t, unsigned vcpu, std::int64_t number, std::int64_t result) {
    if (vcpu >= max_vcpus || detached) return;
    Vcpu& v = vcpus[vcpu];
    const Calls& c = calls();
    if (number == c.munmap || number == c.mremap || number == c.mmap || number == c.mprotect) {
        const std::lock_guard held(lock);
        forget_maps_locked();
        // Repeated: an earlier query may have been answered before the call took effect.
        if (v.unmapped_number != 0 && unmapped_nothing(v, number, result)) {
            StillMappedPart part;
            part.words = sizeof part / 4;
            part.number = v.unmapped_number;
            append(&part, sizeof part);
        }
        v.unmapped_number = 0;
    } else if (v.named && v.thread != 0) {
        std::array<char, 16> name{};
        prctl(PR_GET_NAME, name.data());
        const std::lock_guard held(lock);
        report_thread_locked(v, name.data());
    }
    v.named = false;
}

}  // namespace waymark::record::plugin
