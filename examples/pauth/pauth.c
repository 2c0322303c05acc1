// Pointers to functions that are signed where they are stored, and authenticated where they are called; return addresses
// that are signed too. One pointer is forged, and its call fails.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

typedef unsigned long function(unsigned long);
struct entry {
    function* target;
};

unsigned long call_signed(const struct entry*, unsigned long), jump_signed(const struct entry*, unsigned long);
unsigned long call_with_zero(function*, unsigned long), jump_with_zero(function*, unsigned long);
void sign(struct entry*, function*);

static unsigned long calls;
static sigjmp_buf back;

// A leaf: only -mbranch-protection=pac-ret+leaf signs its return address.
__attribute__((noinline)) static unsigned long twice(unsigned long n)
{
    ++calls;
    return 2 * n;
}

__attribute__((noinline)) static unsigned long successor(unsigned long n)
{
    ++calls;
    return n + 1;
}

__attribute__((noinline)) static unsigned long factorial(unsigned long n)
{
    ++calls;
    return n < 2 ? 1 : n * factorial(n - 1);
}

static void on_fault(int number)
{
    (void)number;
    siglongjmp(back, 1);
}

// The pointer of one entry in others: it was signed for another address than where it is. A signature has seven
// bits here, so one forged pointer in 128 is right by chance; then the next one is called.
__attribute__((noinline)) static int forged_is_caught(const struct entry* from)
{
    struct entry forged[8];
    for (unsigned i = 0; i < 8; ++i) forged[i] = *from;
    if (sigsetjmp(back, 1) != 0) return 1;
    for (unsigned i = 0; i < 8; ++i) call_signed(&forged[i], 1);
    return 0;
}

int main(int argc, char** argv)
{
    const unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 20;
    struct entry entries[3];
    sign(&entries[0], twice);
    sign(&entries[1], successor);
    sign(&entries[2], factorial);
    signal(SIGSEGV, on_fault);
    signal(SIGILL, on_fault);

    unsigned long sum = 0;
    for (unsigned long n = 0; n < rounds; ++n) {
        for (unsigned i = 0; i < 3; ++i) sum += call_signed(&entries[i], n % 8) - jump_signed(&entries[i], n % 8);
        sum += call_with_zero(twice, n) + jump_with_zero(successor, n);
    }
    const int caught = forged_is_caught(&entries[1]);
    const int good = caught && sum == rounds * (rounds - 1) / 2 * 3 + rounds;
    printf("%lu rounds, %lu calls of signed pointers' functions, %d forged pointer caught: %s\n", rounds, calls, caught,
           good ? "good" : "BAD");
    return !good;
}
