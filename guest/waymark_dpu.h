/* For programs recorded by `waymark record --unit dpu`: a write to DP_TD, the user data register of the Debug and
 * Profiling Unit. The datum appears in the trace where the program wrote it, with the task that did.
 *
 *     #include <waymark_dpu.h>
 *     waymark_dp_td(0xcafe0001);
 *
 * It is a system call of a number that Linux does not have: under `waymark record` the core stays in the program and
 * DP_TD is written; anywhere else nothing happens, and it costs what a refused system call costs. A seccomp filter that
 * kills on unknown system calls must let 0xd9d0 pass. Other processors than 32-bit Arm: nothing at all. */
#ifndef WAYMARK_DPU_H
#define WAYMARK_DPU_H

static inline void waymark_dp_td(unsigned long datum) {
#if defined(__arm__)
    register unsigned long r0 __asm__("r0") = datum;
    register unsigned long number __asm__("r1") = 0xd9d0;
    /* r7 may be the frame pointer, so no operand can name it. */
    __asm__ volatile("push {r7}\n\tmov r7, %1\n\tsvc #0\n\tpop {r7}" : "+r"(r0) : "r"(number) : "memory");
#else
    (void)datum;
#endif
}

#endif
