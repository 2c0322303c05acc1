// EL3, EL2 and EL1: the monitor, the service in Secure state, the hypervisor, and a kernel with two tasks.
#include "levels.h"

#define REGISTER(address) (*(volatile unsigned*)(address))
#define GIC_DISTRIBUTOR 0x08000000ul
#define GIC_CPU 0x08010000ul
#define write_register(name, value) __asm__ volatile("msr " #name ", %0" : : "r"((unsigned long)(value)) : "memory")
#define synchronise() __asm__ volatile("isb" ::: "memory")

enum { virtual_timer = 27, secure_timer = 29 };          // private interrupts
enum { tick = 31250, monitor_period = 4 * tick + 7777 };  // at 62.5 MHz: half a millisecond, and more than two

volatile struct counts counts;
static struct frame tasks[2];
static unsigned running;
extern char first_stack[], second_stack[];

// The compiler copies structures with these.
void* memcpy(void* to, const void* from, unsigned long bytes)
{
    for (unsigned long i = 0; i < bytes; ++i) ((volatile char*)to)[i] = ((const char*)from)[i];
    return to;
}

void* memset(void* to, int value, unsigned long bytes)
{
    for (unsigned long i = 0; i < bytes; ++i) ((volatile char*)to)[i] = (char)value;
    return to;
}

static void set_monitor_timer(void)
{
    write_register(cntps_tval_el1, monitor_period);
    write_register(cntps_ctl_el1, 1);
    synchronise();
}

// The monitor's timer stays in group 0, which raises FIQ; all else is Non-secure.
void start_monitor(void)
{
    REGISTER(GIC_DISTRIBUTOR + 0x80) = ~(1u << secure_timer);
    REGISTER(GIC_DISTRIBUTOR + 0x100) = 1u << secure_timer | 1u << virtual_timer;
    REGISTER(GIC_DISTRIBUTOR + 0x400 + virtual_timer / 4 * 4) = 0xa0a0a0a0;
    REGISTER(GIC_DISTRIBUTOR + 0x400 + secure_timer / 4 * 4) = 0x20202020;
    REGISTER(GIC_CPU + 0x04) = 0xff;       // all priorities
    REGISTER(GIC_CPU + 0x00) = 0xb;        // both groups on, group 0 as FIQ
    REGISTER(GIC_DISTRIBUTOR + 0x00) = 3;  // both groups on
    set_monitor_timer();
}

void monitor_tick(void)
{
    const unsigned id = REGISTER(GIC_CPU + 0x0c);
    if ((id & 0x3ff) == secure_timer) {
        counts.monitor_ticks = counts.monitor_ticks + 1;
        set_monitor_timer();
    }
    REGISTER(GIC_CPU + 0x10) = id;
}

// In Secure EL1.
unsigned long secure_service(unsigned long value)
{
    counts.secure_calls = counts.secure_calls + 1;
    unsigned long sum = 0;
    for (; value != 0; value /= 10) sum += value % 10;
    return sum;
}

// EL2: HVC adds one; it also traps the read of an identification register into x0.
void hypervisor(struct frame* frame, unsigned long syndrome)
{
    const unsigned class = syndrome >> 26 & 0x3f;
    if (class == 0x16) {
        counts.hypervisor_calls = counts.hypervisor_calls + 1;
        frame->x[0] += 1;
    } else if (class == 0x18) {
        counts.trapped_reads = counts.trapped_reads + 1;
        frame->x[0] = 0x1111;
        frame->elr += 4;
    } else {
        leave(8);
    }
}

static void set_timer(void)
{
    write_register(cntv_tval_el0, tick);
    write_register(cntv_ctl_el0, 1);
    synchronise();
}

// The address space of a task has its number.
static void switch_task(struct frame* frame)
{
    counts.switches = counts.switches + 1;
    tasks[running] = *frame;
    running ^= 1;
    *frame = tasks[running];
    write_register(contextidr_el1, running + 1);
    synchronise();
}

void start_kernel(struct frame* frame)
{
    tasks[0] = (struct frame){.elr = (unsigned long)first_task, .sp = (unsigned long)first_stack};
    tasks[1] = (struct frame){.elr = (unsigned long)second_task, .sp = (unsigned long)second_stack};
    if (read_features() != 0x1111 || ask_hypervisor(41) != 42) leave(7);
    *frame = tasks[0];
    write_register(contextidr_el1, 1);
    set_timer();
}

void kernel_irq(struct frame* frame)
{
    const unsigned id = REGISTER(GIC_CPU + 0x0c);
    if ((id & 0x3ff) == virtual_timer) {
        counts.ticks = counts.ticks + 1;
        set_timer();
        switch_task(frame);
    }
    REGISTER(GIC_CPU + 0x10) = id;
}

static void system_call(struct frame* frame, unsigned number)
{
    counts.system_calls = counts.system_calls + 1;
    switch (number) {
        case 0: semihosting(4, (const void*)frame->x[0]); break;
        case 1: switch_task(frame); break;
        case 2: frame->x[0] = ask_hypervisor(ask_secure(frame->x[0])); break;
        default: leave(frame->x[0]);
    }
}

// SVC, or an instruction that does not exist and multiplies.
void kernel_synchronous(struct frame* frame, unsigned long syndrome)
{
    const unsigned class = syndrome >> 26 & 0x3f;
    if (class == 0x15) {
        system_call(frame, syndrome & 0xffff);
    } else if (class == 0 && *(const unsigned*)frame->elr == 7) {
        counts.undefined = counts.undefined + 1;
        frame->x[0] *= frame->x[1];
        frame->elr += 4;
    } else {
        leave(6);
    }
}
