// The layer between the board and the program: memory, interrupts, exceptions, three services.
#include "handlers.h"
#include "board.h"

#define REGISTER(address) (*(volatile unsigned*)(address))
#define SECTION_MEMORY 0xc0e  // 1 MB, full access, cacheable
#define SECTION_DEVICE 0xc12  // 1 MB, full access, never executed

unsigned translation_table[4096] __attribute__((aligned(16384)));
volatile unsigned ticks, fiqs, undefined, data_aborts, prefetch_aborts;

static void map(unsigned virtual, unsigned physical, unsigned sections, unsigned attributes)
{
    for (unsigned i = 0; i < sections; ++i)
        translation_table[(virtual >> 20) + i] = (physical & 0xfff00000) + (i << 20) + attributes;
}

void map_memory(void)
{
    map(RAM, RAM, 8, SECTION_MEMORY);
    map(GIC_CPU, GIC_CPU, 1, SECTION_DEVICE);
    map(GIC_DISTRIBUTOR, GIC_DISTRIBUTOR, 1, SECTION_DEVICE);
    map(TIMER, TIMER, 1, SECTION_DEVICE);
}

// The timer is in group 1 and raises IRQ; software interrupt 0 stays in group 0, which is configured to raise FIQ.
void start_timer(void)
{
    REGISTER(GIC_DISTRIBUTOR + 0x80 + TIMER_INTERRUPT / 32 * 4) |= 1u << TIMER_INTERRUPT % 32;   // group 1
    REGISTER(GIC_DISTRIBUTOR + 0x100 + TIMER_INTERRUPT / 32 * 4) = 1u << TIMER_INTERRUPT % 32;   // enabled
    REGISTER(GIC_DISTRIBUTOR + 0x400 + TIMER_INTERRUPT / 4 * 4) = 0x80808080;                    // priority
    REGISTER(GIC_DISTRIBUTOR + 0x800 + TIMER_INTERRUPT / 4 * 4) = 0x01010101;                    // to this core
    REGISTER(GIC_CPU + 0x04) = 0xff;                                                             // all priorities
    REGISTER(GIC_CPU + 0x00) = 0xf;        // both groups on, acknowledged the same way, group 0 as FIQ
    REGISTER(GIC_DISTRIBUTOR + 0x00) = 3;  // both groups on
    REGISTER(TIMER + 0x00) = 500;          // at 1 MHz: every half millisecond
    REGISTER(TIMER + 0x08) = 0xe2;         // on, periodic, interrupt, 32 bits
}

// Every fourth tick requests a FIQ, which interrupts this handler at once.
void irq_handler(void)
{
    const unsigned id = REGISTER(GIC_CPU + 0x0c);
    if ((id & 0x3ff) == TIMER_INTERRUPT) {
        REGISTER(TIMER + 0x0c) = 1;
        ticks = ticks + 1;
        if (ticks % 4 == 0) REGISTER(GIC_DISTRIBUTOR + 0xf00) = 2u << 24;  // software interrupt 0 to this core
    }
    REGISTER(GIC_CPU + 0x10) = id;
}

// UDF multiplies r0 by r1. The return address is already that of the next instruction.
void undefined_handler(unsigned* registers, unsigned state)
{
    const int thumb = state >> 5 & 1;
    const unsigned address = registers[13] - (thumb ? 2 : 4);
    const unsigned instruction = thumb ? *(unsigned short*)address : *(unsigned*)address;
    if (instruction != (thumb ? 0xde07 : 0xe7f000f7)) service_exit(2);
    undefined = undefined + 1;
    registers[0] *= registers[1];
}

void data_abort_handler(unsigned address)
{
    if (address >> 24 != DEMAND >> 24) service_exit(3);
    const unsigned section = (address - DEMAND) >> 20;
    if (section >= 4) service_exit(3);
    data_aborts = data_aborts + 1;
    map(address, RAM + (16 + section) * 0x100000, 1, SECTION_MEMORY);
    __asm__ volatile("dsb\n\tisb" ::: "memory");
}

void prefetch_abort_handler(unsigned address)
{
    if (address >> 24 != NOWHERE >> 24) service_exit(4);
    prefetch_aborts = prefetch_aborts + 1;
}

int semihosting(int operation, const void* argument);
void semihosting_exit(const void* argument);

void service_print(const char* text)
{
    semihosting(4, text);
}

unsigned service_ticks(void)
{
    return ticks;
}

void service_exit(unsigned status)
{
    const unsigned reason[2] = {0x20026, status};
    semihosting_exit(reason);
}

// Called by the division of a core that has none, when the divisor is 0: never here.
unsigned __aeabi_idiv0(unsigned result)
{
    return result;
}
