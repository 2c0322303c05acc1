@ Vectors, start-up and the entry points of exceptions, all in ARM state; the handlers are Thumb (handlers.c). Each
@ entry point returns from its exception in a different way.

#include "board.h"

#define MODE_USER       0x10
#define MODE_FIQ        0x11
#define MODE_IRQ        0x12
#define MODE_SUPERVISOR 0x13
#define MODE_ABORT      0x17
#define MODE_UNDEFINED  0x1b
#define MODE_SYSTEM     0x1f

        .syntax unified
        .arm

        .macro  function name
        .globl  \name
        .type   \name, %function
\name:
        .endm

        .macro  end name
        .size   \name, . - \name
        .endm

        .section .vectors, "ax"
        .balign 32
        function vectors
        b       reset
        b       undefined_entry
        ldr     pc, supervisor_call_address
        b       prefetch_abort_entry
        b       data_abort_entry
        nop                             @ Hyp mode's, not used
        b       irq_entry
        b       fiq_entry
supervisor_call_address:
        .word   supervisor_call_entry
        end     vectors

        .text
        function reset
        ldr     r0, =vectors
        mcr     p15, 0, r0, c12, c0, 0  @ VBAR
        cps     #MODE_IRQ
        ldr     sp, =irq_stack
        cps     #MODE_ABORT
        ldr     sp, =abort_stack
        cps     #MODE_UNDEFINED
        ldr     sp, =undefined_stack
        cps     #MODE_SYSTEM
        ldr     sp, =user_stack
        cps     #MODE_SUPERVISOR
        ldr     sp, =supervisor_stack

        ldr     r0, =bss_begin
        ldr     r1, =bss_end
        mov     r2, #0
1:      cmp     r0, r1
        strlo   r2, [r0], #4
        blo     1b

        bl      map_memory              @ Thumb: the linker makes this BLX
        ldr     r0, =translation_table
        mcr     p15, 0, r0, c2, c0, 0   @ TTBR0
        mov     r0, #0
        mcr     p15, 0, r0, c2, c0, 2   @ TTBCR: TTBR0 for all
        mov     r0, #1
        mcr     p15, 0, r0, c3, c0, 0   @ DACR: domain 0 is a client
        mov     r0, #0
        mcr     p15, 0, r0, c8, c7, 0   @ TLBIALL
        dsb
        isb
        mrc     p15, 0, r0, c1, c0, 0   @ SCTLR
        orr     r0, r0, #1              @ MMU on
        bic     r0, r0, #0x40000000     @ exceptions are taken in ARM state
        mcr     p15, 0, r0, c1, c0, 0
        isb
        bl      start_timer

        @ To the program, in User mode and Thumb state, with interrupts on.
        ldr     lr, =user_main
        mov     r0, #(MODE_USER | 0x20)
        msr     spsr_cxsf, r0
        bic     lr, lr, #1
        movs    pc, lr
        end     reset

@ Undefined Instruction: the handler may change every register and says where to go on.
        function undefined_entry
        push    {r0-r12, lr}
        mov     r0, sp
        mrs     r1, spsr
        bl      undefined_handler
        ldm     sp!, {r0-r12, pc}^
        end     undefined_entry

@ SVC n, from either state: calls services[n] with r0 to r3 as they are.
        function supervisor_call_entry
        push    {r4, lr}
        mrs     r12, spsr
        tst     r12, #0x20
        ldrhne  r12, [lr, #-2]
        ldreq   r12, [lr, #-4]
        and     r12, r12, #0xff
        cmp     r12, #3
        bhs     1f
        adr     r4, services
        ldr     r12, [r4, r12, lsl #2]
        blx     r12
1:      pop     {r4, lr}
        movs    pc, lr
services:
        .word   service_print, service_ticks, service_exit
        end     supervisor_call_entry

@ Prefetch Abort: as if the function at the bad address had returned at once.
        function prefetch_abort_entry
        push    {r0-r3, r12, lr}
        mrc     p15, 0, r0, c6, c0, 2   @ IFAR
        bl      prefetch_abort_handler
        add     r0, sp, #20
        stm     r0, {lr}^               @ User mode's
        mrs     r1, spsr
        ldr     r0, [sp, #20]
        tst     r0, #1
        orrne   r1, r1, #0x20
        biceq   r1, r1, #0x20
        msr     spsr_cxsf, r1
        bic     r0, r0, #1
        str     r0, [sp, #20]
        pop     {r0-r3, r12, lr}
        movs    pc, lr
        end     prefetch_abort_entry

@ Data Abort: the handler gives memory to the address, and the access is made again.
        function data_abort_entry
        sub     lr, lr, #8
        push    {r0-r3, r12, lr}
        mrc     p15, 0, r0, c6, c0, 0   @ DFAR
        bl      data_abort_handler
        ldm     sp!, {r0-r3, r12, pc}^
        end     data_abort_entry

        function irq_entry
        sub     lr, lr, #4
        srsdb   sp!, #MODE_IRQ
        push    {r0-r3, r12, lr}
        bl      irq_handler
        pop     {r0-r3, r12, lr}
        rfeia   sp!
        end     irq_entry

@ FIQ: its own r8 to r12 are all it needs.
        function fiq_entry
        ldr     r8, =GIC_CPU
        ldr     r9, [r8, #0x0c]         @ acknowledge
        ldr     r10, =fiqs
        ldr     r11, [r10]
        add     r11, r11, #1
        str     r11, [r10]
        str     r9, [r8, #0x10]         @ end of interrupt
        subs    pc, lr, #4
        end     fiq_entry

@ int semihosting(int operation, const void* argument)
        .thumb
        .thumb_func
        function semihosting
        svc     #0xab
        bx      lr
        end     semihosting

@ void semihosting_exit(const void* argument): SYS_EXIT_EXTENDED; the same call from ARM state.
        .arm
        function semihosting_exit
        mov     r1, r0
        mov     r0, #0x20
        svc     #0x123456
        b       .
        end     semihosting_exit

@ unsigned multiply_arm(unsigned a, unsigned b), multiply_thumb: an instruction that does not exist multiplies.
        function multiply_arm
        udf     #7
        bx      lr
        end     multiply_arm

        .thumb
        .thumb_func
        function multiply_thumb
        udf     #7
        bx      lr
        end     multiply_thumb

@ unsigned gcd(unsigned a, unsigned b), in ARM state, with conditional instructions and one conditional return.
        .arm
        function gcd
        cmp     r0, r1
        subhi   r0, r0, r1
        sublo   r1, r1, r0
        bxeq    lr
        b       gcd
        end     gcd

        .section .note.GNU-stack, "", %progbits
