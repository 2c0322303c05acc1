/* For programs recorded by `waymark record --unit dpu`: a write to DP_TD, the user data register of the Debug and
 * Profiling Unit. The value appears in the trace at the place of the write, with the task that wrote it.
 *
 *     #include <waymark_dpu.h>
 *     waymark_dp_td(0xcafe0001);
 *
 * The function makes a system call with a number that Linux does not use. Under `waymark record` the core stays in the
 * program and DP_TD is written; elsewhere the call has no effect and costs a refused system call. A seccomp filter that
 * kills on unknown system calls must permit 0xd9d0. On processors other than 32-bit Arm the function does nothing. */
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
