// The addresses of QEMU's two boards with a core that has a Program Trace Macrocell.
#pragma once

#if defined BOARD_VEXPRESS_A9
#define BOARD_NAME "vexpress-a9"
#define RAM 0x60000000
#define GIC_DISTRIBUTOR 0x1e001000
#define GIC_CPU 0x1e000100
#define TIMER 0x10011000
#elif defined BOARD_VEXPRESS_A15
#define BOARD_NAME "vexpress-a15"
#define RAM 0x80000000
#define GIC_DISTRIBUTOR 0x2c001000
#define GIC_CPU 0x2c002000
#define TIMER 0x1c110000
#else
#error "define BOARD_VEXPRESS_A9 or BOARD_VEXPRESS_A15"
#endif

#define TIMER_INTERRUPT 34  // an SP804, shared peripheral interrupt 2
#define DEMAND 0xe0000000   // virtual addresses that get memory at the first access
#define NOWHERE 0xf0000000  // virtual addresses that never get any
