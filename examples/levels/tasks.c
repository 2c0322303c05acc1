// EL0: two tasks. The first one works until enough timer interrupts came, and ends the program; the second one fills in.
#include "levels.h"

unsigned long print(const char*), yield(void), ask(unsigned long), multiply(unsigned long, unsigned long);
void done(unsigned long status);

enum { enough_ticks = 16, least_rounds = 3 };

static void print_number(const char* name, unsigned long value)
{
    char digits[24];
    char* first = digits + sizeof digits;
    *--first = 0;
    *--first = '\n';
    do {
        *--first = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    print(name);
    print(first);
}

__attribute__((noinline)) static unsigned long fibonacci(unsigned long n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

__attribute__((noinline)) static unsigned long prime(unsigned long n)
{
    for (unsigned long d = 2; d * d <= n; ++d)
        if (n % d == 0) return 0;
    return n > 1;
}

__attribute__((noinline)) static unsigned long work(unsigned long (*of)(unsigned long), unsigned long numbers)
{
    unsigned long total = 0;
    for (unsigned long n = 0; n < numbers; ++n) total += of(n);
    return total;
}

void first_task(void)
{
    print("levels on virt\n");
    unsigned long good = multiply(6, 7) == 42 && ask(1234567) == 29;
    const unsigned long result = work(prime, 200);
    unsigned rounds = 1;
    while (counts.ticks < enough_ticks || rounds < least_rounds) {
        good &= work(prime, 200) == result && ask(rounds) == rounds % 10 + rounds / 10 % 10 + rounds / 100 % 10 +
                                                                 rounds / 1000 % 10 + rounds / 10000 + 1;
        ++rounds;
        yield();
    }
    good &= result == 46 && counts.monitor_ticks > 0 && counts.secure_calls == rounds && counts.trapped_reads == 1 &&
            counts.hypervisor_calls == rounds + 1;
    print_number("timer interrupts (IRQ)       ", counts.ticks);
    print_number("monitor's timer (FIQ)        ", counts.monitor_ticks);
    print_number("system calls (SVC)           ", counts.system_calls);
    print_number("undefined instructions       ", counts.undefined);
    print_number("calls of Secure state (SMC)  ", counts.secure_calls);
    print_number("calls of hypervisor (HVC)    ", counts.hypervisor_calls);
    print_number("trapped by the hypervisor    ", counts.trapped_reads);
    print_number("rounds of work               ", rounds);
    print(good ? "good\n" : "BAD\n");
    done(!good);
}

void second_task(void)
{
    for (;;) {
        work(fibonacci, 9);
        yield();
    }
}
