/* Loads that miss every cache, in chase(); main() and count() do other things as often. Argument: how many rounds. */
#include <stdint.h>
#include <stdlib.h>

struct node {
    struct node *next;
    char rest[56];
};

__attribute__((noinline)) struct node *chase(struct node *n, long steps) {
    while (steps-- > 0) n = n->next;
    return n;
}

__attribute__((noinline)) uint64_t count(long n) {
    uint64_t x = 1;
    for (long i = 0; i < n; ++i) x = x * 6364136223846793005u + 1442695040888963407u;
    return x;
}

int main(int argc, char **argv) {
    const long rounds = argc > 1 ? atol(argv[1]) : 1;
    const size_t n = 1 << 18, stride = 99991; /* coprime to n */
    struct node *all = malloc(n * sizeof *all);
    for (size_t i = 0; i < n; ++i) all[i].next = &all[(i + stride) % n];
    return chase(all, 600000 * rounds) == NULL || count(400000 * rounds) == 0;
}
