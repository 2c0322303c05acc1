/* Branches that nobody can predict, in guess(); those in know() go the same way always. */
#include <stdint.h>

__attribute__((noinline)) uint64_t guess(long n) {
    uint64_t x = 88172645463325252u, odd = 0;
    for (long i = 0; i < n; ++i) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if (x & 1) __asm__ volatile("add %0, %0, #1" : "+r"(odd));
    }
    return odd;
}

__attribute__((noinline)) uint64_t know(long n) {
    uint64_t odd = 0;
    for (long i = 0; i < n; ++i)
        if (n & 1) __asm__ volatile("add %0, %0, #1" : "+r"(odd));
    return odd;
}

int main(void) { return guess(300000) == 0 || know(300001) == 0; }
