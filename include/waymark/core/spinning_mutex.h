/// A mutex for what is held more briefly than it takes to sleep.
#pragma once

#include <atomic>
#include <cstddef>
#include <thread>

namespace waymark {

/// Bytes that threads should not share when one of them writes: a line of the cache, here and on most machines.
inline constexpr std::size_t cache_line_bytes = 64;

/// Tries again instead of sleeping; after a while lets others run. For std::scoped_lock.
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
