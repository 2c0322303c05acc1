/// What a source full of mutants includes before anything else: each mutant asks `wm_mutant(its number)`
/// whether it is the one that the environment variable WAYMARK_MUTANT names. Without the variable there are none.
#pragma once

#include <cstdlib>

/// While compiling there are no mutants, so what must be known then stays as it was.
inline const int wm_active = [] {
    const char* number = std::getenv("WAYMARK_MUTANT");
    return number != nullptr ? std::atoi(number) : -1;
}();

/// Which mutants were asked since listener.cc cleared them.
inline unsigned char wm_reached[WAYMARK_MUTANTS + 1];

inline bool wm_ask(int number) {
    if (wm_active < 0) wm_reached[number] = 1;
    return wm_active == number;
}

constexpr bool wm_mutant(int number) { return !__builtin_is_constant_evaluated() && wm_ask(number); }

/// Around the value of a table that is made while compiling, this has it made at run time.
template <class T>
[[gnu::noinline]] T wm_dynamic(T value) {
    return value;
}
