/// The first include of a source with mutants: each mutant asks `wm_mutant(its number)` whether the environment
/// variable WAYMARK_MUTANT names it. Without the variable no mutant is active.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string>

/// During compilation there are no mutants, so constant expressions keep their values.
inline const int wm_active = [] {
    const char* number = std::getenv("WAYMARK_MUTANT");
    return number != nullptr ? std::atoi(number) : -1;
}();

/// Mutants that were asked since listener.cc cleared the list.
inline unsigned char wm_reached[WAYMARK_MUTANTS + 1];

inline bool wm_ask(int number) {
    if (wm_active < 0) wm_reached[number] = 1;
    return wm_active == number;
}

/// A program that is not a test appends, when it ends, a line with its asked mutants to the file that
/// WAYMARK_REACHED_BY_PROGRAM names.
struct WmReachedByProgram {
    ~WmReachedByProgram() {
        const char* const path = std::getenv("WAYMARK_REACHED_BY_PROGRAM");
        std::FILE* const file = path == nullptr ? nullptr : std::fopen(path, "a");
        if (file == nullptr) return;
        std::string line;
        for (int i = 0; i <= WAYMARK_MUTANTS; ++i)
            if (wm_reached[i] != 0) line += std::to_string(i) + ' ';
        std::fputs((line + '\n').c_str(), file);
        std::fclose(file);
    }
};
inline const WmReachedByProgram wm_reached_by_program;

constexpr bool wm_mutant(int number) { return !__builtin_is_constant_evaluated() && wm_ask(number); }

/// Around the value of a table that is computed during compilation: computes it at run time.
template <class T>
[[gnu::noinline]] T wm_dynamic(T value) {
    return value;
}
