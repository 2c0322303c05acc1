/* Loads from more pages than TLBs hold, in wide(); narrow() loads as often, from few. */
#include <stdlib.h>

enum { page = 4096, pages = 4096 };

__attribute__((noinline)) long wide(const volatile char *from, long rounds) {
    long sum = 0;
    for (long r = 0; r < rounds; ++r)
        for (long i = 0; i < pages; ++i) sum += from[i * page + i % 64 * 64];
    return sum;
}

__attribute__((noinline)) long narrow(const volatile char *from, long rounds) {
    long sum = 0;
    for (long r = 0; r < rounds; ++r)
        for (long i = 0; i < pages; ++i) sum += from[i];
    return sum;
}

int main(void) {
    char *all = calloc(pages + 1, page);
    return wide(all, 60) != 0 || narrow(all, 60) != 0;
}
