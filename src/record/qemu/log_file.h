/// Files in memory into which QEMU logs. They grow all the time, so parts that were read are freed.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "waymark/record/ring.h"

namespace waymark::record::plugin {

/// A log that is read from where the last read ended.
struct LogFile {
    int file = -1;
    off_t at = 0, freed = 0;

    /// Calls feed(text) with QEMU's output since the last call, and frees its memory.
    template <class F>
    void read_on(F&& feed) {
        std::array<char, 4096> piece;
        for (ssize_t n; (n = pread(file, piece.data(), piece.size(), at)) > 0;) {
            at += n;
            feed(std::string_view(piece.data(), static_cast<std::size_t>(n)));
        }
        constexpr off_t worth_it = 1 << 20;
        if (at - freed < worth_it) return;
        const off_t upto = at & ~off_t{page_bytes - 1};
        fallocate(file, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, freed, upto - freed);
        freed = upto;
    }
};

/// A window on a log file that is longer than its written part; the rest is 0.
class LogWindow {
public:
    static constexpr std::size_t bytes = 1 << 24;
    static constexpr off_t file_bytes = off_t{1} << 40;
    bool open(int file) {
        file_ = file;
        return ftruncate(file, file_bytes) == 0 && move();
    }
    /// Whether QEMU has written more than was read.
    [[nodiscard]] bool has_more() const { return window_[at_] != 0; }
    template <class F>
    void read(F&& feed) {
        while (window_[at_] != 0) {
            const auto* const text = const_cast<const char*>(window_ + at_);
            const std::size_t n = strnlen(text, bytes - at_);
            feed(std::string_view(text, n));
            at_ += n;
            if (at_ == bytes && !move()) std::abort();
        }
    }

private:
    /// Moves the window to its end, and frees the memory of the old window.
    bool move() {
        if (window_ != nullptr) {
            munmap(const_cast<char*>(window_), bytes);
            fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, next_ - static_cast<off_t>(bytes), bytes);
        }
        void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, file_, next_);
        if (memory == MAP_FAILED) return false;
        window_ = static_cast<const volatile char*>(memory);
        next_ += bytes;
        at_ = 0;
        return true;
    }
    int file_ = -1;
    const volatile char* window_ = nullptr;
    std::size_t at_ = 0;
    off_t next_ = 0;
};

}  // namespace waymark::record::plugin
