/* Calls that the compiler puts in their callers' places: nested, twice in one line, under a condition, with parts of
 * their own code elsewhere, and of functions that also have code of their own. */
#include <stdio.h>
#include <stdlib.h>

#include "inlines.h"

#define INLINE static inline __attribute__((always_inline))

static unsigned table[64];

INLINE unsigned square(unsigned x) { return x * x; }

INLINE unsigned cube(unsigned x) {
    unsigned y = square(x);
    return mix(y, x) * x;
}

INLINE unsigned look_up(unsigned at) {
    for (unsigned i = 0; i < 4; ++i)
        if (table[(at + i) % 64] > at) return mix(table[(at + i) % 64], i);
    return cube(at);
}

/* Has code of its own too: main takes its address. */
static unsigned both(unsigned x) {
    unsigned sum = 0;
    for (unsigned i = 0; i < (x & 7); ++i) sum += mix(sum, i);
    return sum;
}

__attribute__((noinline)) unsigned outer(unsigned x) { return square(x) + square(x + 1) + look_up(x); }

INLINE unsigned rare(unsigned x) {
    if (__builtin_expect(x % 61 == 0, 0)) {
        table[x % 64] ^= cube(x);
        return look_up(x + 1);
    }
    return x;
}

__attribute__((noinline)) unsigned chain(unsigned x) {
    unsigned sum = 0;
    for (unsigned i = 0; i < x % 9; ++i) sum += rare(look_up(x + i)) + both(i);
    return sum;
}

int main(int argc, char** argv) {
    const unsigned times = argc > 1 ? (unsigned)atoi(argv[1]) : 50;
    unsigned (*volatile called)(unsigned) = both;
    unsigned sum = 0;
    for (unsigned i = 0; i < 64; ++i) table[i] = mix(i, i * 7) % 100;
    for (unsigned i = 0; i < times; ++i) sum += outer(i) + chain(i) + called(i);
    printf("%u\n", sum);
    return 0;
}
