// The program, in User mode: exceptions made on purpose, then work until enough interrupts came.
#include "board.h"
#include "handlers.h"

enum { enough_ticks = 20, least_rounds = 4, numbers = 150 };

static inline void print(const char* text)
{
    register const char* r0 __asm__("r0") = text;
    __asm__ volatile("svc #0" : "+r"(r0) : : "r1", "r2", "r3", "r12", "cc", "memory");
}

static inline unsigned now(void)
{
    register unsigned r0 __asm__("r0");
    __asm__ volatile("svc #1" : "=r"(r0) : : "r1", "r2", "r3", "r12", "cc", "memory");
    return r0;
}

static inline void leave(unsigned status)
{
    register unsigned r0 __asm__("r0") = status;
    __asm__ volatile("svc #2" : "+r"(r0) : : "memory");
}

static void print_number(const char* name, unsigned value)
{
    char digits[12];
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

unsigned multiply_arm(unsigned a, unsigned b);
unsigned multiply_thumb(unsigned a, unsigned b);
unsigned gcd(unsigned a, unsigned b);

static unsigned prime(unsigned n)
{
    for (unsigned d = 2; d * d <= n; ++d)
        if (n % d == 0) return 0;
    return n > 1;
}

static unsigned coprime(unsigned n)
{
    return gcd(n + 1, 360) == 1;
}

static unsigned fibonacci(unsigned n)
{
    return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}

static unsigned small_fibonacci(unsigned n)
{
    return fibonacci(n % 8);
}

static unsigned sum(unsigned (*of)(unsigned))
{
    unsigned total = 0;
    for (unsigned n = 0; n < numbers; ++n) total += of(n);
    return total;
}

static unsigned work(void)
{
    static unsigned (*const functions[])(unsigned) = {prime, coprime, small_fibonacci};
    unsigned total = 0;
    for (unsigned i = 0; i < sizeof functions / sizeof *functions; ++i) total = total * 7 + sum(functions[i]);
    return total;
}

static unsigned memory_on_demand(void)
{
    volatile unsigned* memory = (volatile unsigned*)DEMAND;
    unsigned total = 0;
    for (unsigned i = 0; i < 3; ++i) memory[i * 0x40000] = i + 1;
    for (unsigned i = 0; i < 3; ++i) total += memory[i * 0x40000];
    return total;
}

void user_main(void)
{
    print("bare metal on " BOARD_NAME "\n");
    unsigned good = multiply_arm(6, 7) == 42 && multiply_thumb(6, 7) == 42;
    good &= memory_on_demand() == 6;
    ((void (*)(void))NOWHERE)();
    ((void (*)(void))(NOWHERE + 0x101))();

    const unsigned result = work();
    unsigned rounds = 1;
    while (now() < enough_ticks || rounds < least_rounds) {
        good &= work() == result;
        ++rounds;
    }

    good &= ticks >= enough_ticks && fiqs == ticks / 4 && undefined == 2 && data_aborts == 3 && prefetch_aborts == 2;
    print_number("timer interrupts (IRQ)    ", ticks);
    print_number("taken within them (FIQ)   ", fiqs);
    print_number("undefined instructions    ", undefined);
    print_number("data aborts               ", data_aborts);
    print_number("prefetch aborts           ", prefetch_aborts);
    print_number("rounds of work            ", rounds);
    print_number("result of each            ", result);
    print(good ? "good\n" : "BAD\n");
    leave(!good);
}
