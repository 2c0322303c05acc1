// Signals of several kinds: a timer that interrupts work; faults that are left by a jump, repaired and tried again, or
// skipped; a handler on a stack of its own; a signal inside a handler.
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>

static volatile sig_atomic_t ticks, wanted, inner, mended, stepped, jumps;
static sigjmp_buf back;
static char* page;
static volatile enum { leave, mend } on_fault;

static void set_timer(int microseconds)
{
    const struct itimerval every = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &every, NULL);
}

static void on_tick(int number)
{
    (void)number;
    if (++ticks == wanted) set_timer(0);
    if (ticks % 2 == 0) raise(SIGUSR1);
}

static void on_user(int number)
{
    (void)number;
    ++inner;
}

static void on_segv(int number, siginfo_t* info, void* context)
{
    (void)number;
    (void)context;
    if (on_fault == mend && (char*)info->si_addr == page) {
        ++mended;
        mprotect(page, 4096, PROT_READ | PROT_WRITE);
        return;
    }
    siglongjmp(back, 1);
}

// Continues after the undefined instruction, with another result.
static void on_ill(int number, siginfo_t* info, void* context)
{
    (void)number;
    (void)info;
    mcontext_t* const state = &((ucontext_t*)context)->uc_mcontext;
    ++stepped;
#ifdef __aarch64__
    state->pc += 4;
    state->regs[0] += 100;
#else
    state->arm_pc += state->arm_cpsr & 0x20 ? 2 : 4;
    state->arm_r0 += 100;
#endif
}

static void handle(int number, void (*simple)(int), void (*with_context)(int, siginfo_t*, void*), int flags)
{
    struct sigaction action = {.sa_flags = flags};
    if (with_context) {
        action.sa_sigaction = with_context;
        action.sa_flags |= SA_SIGINFO;
    } else {
        action.sa_handler = simple;
    }
    if (sigaction(number, &action, NULL) != 0) {
        perror("sigaction");
        exit(1);
    }
}

__attribute__((noinline)) static unsigned collatz(unsigned n)
{
    unsigned steps = 0;
    for (; n != 1; ++steps) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

// An instruction that is undefined, in A64, or in Thumb and in ARM state.
#ifdef __aarch64__
__attribute__((noinline)) static unsigned undefined_in_a64(unsigned value)
{
    register unsigned w0 __asm__("w0") = value;
    __asm__ volatile("udf #9" : "+r"(w0));
    return w0;
}
#define undefined_in_thumb undefined_in_a64
#define undefined_in_arm undefined_in_a64
#else
__attribute__((noinline, target("thumb"))) static unsigned undefined_in_thumb(unsigned value)
{
    register unsigned r0 __asm__("r0") = value;
    __asm__ volatile("udf #9" : "+r"(r0));
    return r0;
}

__attribute__((noinline, target("arm"))) static unsigned undefined_in_arm(unsigned value)
{
    register unsigned r0 __asm__("r0") = value;
    __asm__ volatile("udf #9" : "+r"(r0));
    return r0;
}
#endif

__attribute__((noinline)) static void write_to(volatile char* where)
{
    *where = 1;
}

int main(int argc, char** argv)
{
    wanted = argc > 1 ? atoi(argv[1]) : 6;
    const int microseconds = argc > 2 ? atoi(argv[2]) : 1000;
    static char stack[65536];
    const stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    sigaltstack(&alternative, NULL);
    handle(SIGSEGV, NULL, on_segv, SA_ONSTACK);
    handle(SIGILL, NULL, on_ill, 0);
    handle(SIGALRM, on_tick, NULL, SA_RESTART);
    handle(SIGUSR1, on_user, NULL, SA_RESTART);
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) {
        perror("mmap");
        return 1;
    }

    for (int i = 0; i < 3; ++i) {
        if (sigsetjmp(back, 1) == 0)
            write_to(page);
        else
            ++jumps;
    }
    on_fault = mend;
    write_to(page);
    const unsigned results = undefined_in_thumb(1) + undefined_in_arm(2);

    set_timer(microseconds);
    unsigned rounds = 0, sum = 0;
    while (ticks < wanted || rounds == 0) {
        for (unsigned n = 1; n <= 50; ++n) sum += collatz(n);
        ++rounds;
    }

    const int good = jumps == 3 && mended == 1 && stepped == 2 && results == 203 && inner == ticks / 2 && sum % rounds == 0;
    printf("left by a jump %d, mended %d, stepped over %d, timer %d, within the timer's %d: %s\n", (int)jumps,
           (int)mended, (int)stepped, (int)ticks, (int)inner, good ? "good" : "BAD");
    return !good;
}
