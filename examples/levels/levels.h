// Bits of system registers, and definitions that assembly and C share.
#pragma once

#define SCR_NS 1
#define SCR_FIQ (1 << 2)    // FIQ is taken to EL3
#define SCR_HCE (1 << 8)    // HVC exists
#define SCR_RW (1 << 10)    // EL2 is AArch64
#define HCR_TID3 (1 << 18)  // EL1's reads of identification registers are trapped
#define HCR_RW (1 << 31)    // EL1 is AArch64
#define MASKED 0x3c0        // of a saved state: all interrupts
#define EL1H 5
#define EL2H 9

#define FRAME_BYTES 272
#define SECURE_CONTEXT 0x5ec

#ifndef __ASSEMBLER__
struct frame {
    unsigned long x[31], elr, spsr, sp;
};
_Static_assert(sizeof(struct frame) == FRAME_BYTES, "start.S saves as much");

unsigned long ask_secure(unsigned long), ask_hypervisor(unsigned long), read_features(void);
unsigned long semihosting(unsigned long operation, const void* argument);
void leave(unsigned long status) __attribute__((noreturn));

void first_task(void), second_task(void);

struct counts {
    unsigned ticks, monitor_ticks, secure_calls, hypervisor_calls, trapped_reads, undefined, system_calls, switches;
};
extern volatile struct counts counts;
#endif
