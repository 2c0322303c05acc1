/* For aarch64_test.py: signals that its own instructions cause, one that it sends itself, calls and returns through
 * pointers, threads, atomic accesses. */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sigjmp_buf back;
static volatile int hits;
static atomic_uint sum;

static void leave(int number, siginfo_t* info, void* context) {
    (void)number, (void)info, (void)context;
    ++hits;
    siglongjmp(back, 1);
}
static void count(int number) {
    (void)number;
    ++hits;
}
static void* work(void* seed) {
    volatile uint64_t x = (uintptr_t)seed;
    for (int i = 0; i < 2000; i++) {
        x = x * 6364136223846793005ull + 1;
        if (x >> 63) x ^= (unsigned)i;
        atomic_fetch_add(&sum, 1);
    }
    return (void*)(uintptr_t)x;
}
static int compare(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

int main(void) {
    struct sigaction jumps, counts;
    memset(&jumps, 0, sizeof jumps);
    jumps.sa_sigaction = leave;
    jumps.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &jumps, 0), sigaction(SIGILL, &jumps, 0), sigaction(SIGTRAP, &jumps, 0);
    memset(&counts, 0, sizeof counts);
    counts.sa_handler = count;
    sigaction(SIGUSR1, &counts, 0);
    if (!sigsetjmp(back, 1)) *(volatile int*)8 = 1;
    if (!sigsetjmp(back, 1)) __asm__ volatile("udf #0");
    if (!sigsetjmp(back, 1)) __asm__ volatile("brk #5");
    raise(SIGUSR1);
    int numbers[300];
    for (int i = 0; i < 300; i++) numbers[i] = rand();
    qsort(numbers, 300, sizeof *numbers, compare);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++) pthread_create(&threads[i], 0, work, (void*)(uintptr_t)i);
    for (int i = 0; i < 3; i++) pthread_join(threads[i], 0);
    printf("hits %d sum %u\n", hits, sum);
    return 0;
}
