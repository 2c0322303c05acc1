/// A mutex for locks that are held for less time than sleeping takes.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

namespace waymark {

/// Size of a cache line on most machines: data that one thread writes should not share a line with data of others.
inline constexpr std::size_t cache_line_bytes = 64;

/// Tries again instead of sleeping; after a while it yields. For std::scoped_lock.
class SpinningMutex {
public:
    void lock() {
        for (unsigned tries = 1; held_.exchange(true, std::memory_order_acquire); ++tries)
            while (held_.load(std::memory_order_relaxed))
                if (++tries % 1024 == 0) std::this_thread::yield();
    }
    void unlock() { held_.store(false, std::memory_order_release); }

private:
    std::atomic<bool> held_ = false;
};

}  // namespace waymark
