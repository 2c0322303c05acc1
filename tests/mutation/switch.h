/// The first include of a source with mutants: each mutant asks `wm_mutant(its number)` whether the environment
/// variable WAYMARK_MUTANT names it. Without the variable no mutant is active.
#pragma once

#include <cstdlib>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

/// During compilation there are no mutants, so constant expressions keep their values.
inline const int wm_active = [] {
    const char* number = std::getenv("WAYMARK_MUTANT");
    return number != nullptr ? std::atoi(number) : -1;
}();

/// The mutants that were asked: a byte for each in the file that WAYMARK_REACHED names. All processes of a test share
/// it.
inline unsigned char* const wm_reached = []() -> unsigned char* {
    const char* const path = std::getenv("WAYMARK_REACHED");
    const int file = path == nullptr ? -1 : ::open(path, O_RDWR | O_CLOEXEC);
    if (file < 0 || ::ftruncate(file, WAYMARK_MUTANTS) != 0) return nullptr;
    void* const bytes = ::mmap(nullptr, WAYMARK_MUTANTS, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    ::close(file);
    return bytes == MAP_FAILED ? nullptr : static_cast<unsigned char*>(bytes);
}();

inline bool wm_ask(int number) {
    if (wm_reached != nullptr) wm_reached[number] = 1;
    return wm_active == number;
}

constexpr bool wm_mutant(int number) { return !__builtin_is_constant_evaluated() && wm_ask(number); }

/// Around the value of a table that is computed during compilation: computes it at run time.
template <class T>
[[gnu::noinline]] T wm_dynamic(T value) {
    return value;
}
