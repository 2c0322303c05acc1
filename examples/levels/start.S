// Start-up and vectors of each exception level. EL3 is the monitor: it starts the others and changes the security state.

#include "levels.h"

        .macro  function name
        .globl  \name
        .type   \name, %function
        .balign 4
\name:
        .endm

        .macro  end name
        .size   \name, . - \name
        .endm

// A vector of 128 bytes.
        .macro  vector to
        .balign 128
        b       \to
        .endm

// A table of 16 vectors: what comes from AArch64 in a lower exception level, and nothing else.
        .macro  table name, synchronous, irq, fiq
        .balign 2048
        function \name
        .rept   8
        vector  unexpected
        .endr
        vector  \synchronous
        vector  \irq
        vector  \fiq
        .rept   5
        vector  unexpected
        .endr
        end     \name
        .endm

        .section .vectors, "ax"
        table   monitor_vectors, monitor_call, unexpected, monitor_fiq
        table   hypervisor_vectors, hypervisor_entry, unexpected, unexpected
        table   kernel_vectors, kernel_entry, kernel_irq_entry, unexpected
        table   secure_vectors, unexpected, unexpected, unexpected

        .text
        function reset
        mrs     x0, mpidr_el1
        tst     x0, #0xff
        b.ne    park                    // one core is enough
        mrs     x0, currentel
        cmp     x0, #(3 << 2)
        b.ne    park
        adrp    x0, monitor_stack
        add     x0, x0, :lo12:monitor_stack
        mov     sp, x0
        adr     x0, monitor_vectors
        msr     vbar_el3, x0
        mov     x0, #(SCR_RW | SCR_HCE | SCR_FIQ)
        msr     scr_el3, x0             // Secure so far
        isb
        adrp    x0, bss_begin
        add     x0, x0, :lo12:bss_begin
        adrp    x1, bss_end
        add     x1, x1, :lo12:bss_end
1:      cmp     x0, x1
        b.hs    2f
        stp     xzr, xzr, [x0], #16
        b       1b
2:      bl      start_monitor

        // To the hypervisor, which is Non-secure.
        mrs     x0, scr_el3
        orr     x0, x0, #SCR_NS
        msr     scr_el3, x0
        isb
        adr     x0, hypervisor_start
        msr     elr_el3, x0
        mov     x0, #(MASKED | EL2H)
        msr     spsr_el3, x0
        eret
park:   wfi
        b       park
        end     reset

        function unexpected
        mov     x0, #9
        b       leave
        end     unexpected

// SMC. From Non-secure state: the service in Secure EL1 is called with x0; from there: it returns x0. What EL1 has in its
// registers is the other state's meanwhile.
        function monitor_call
        stp     x1, x2, [sp, #-16]!
        stp     x3, x4, [sp, #-16]!
        adrp    x4, saved
        add     x4, x4, :lo12:saved
        mrs     x1, scr_el3
        tbz     x1, #0, from_secure

        mrs     x2, elr_el3
        mrs     x3, spsr_el3
        stp     x2, x3, [x4]
        mrs     x2, elr_el1
        mrs     x3, spsr_el1
        stp     x2, x3, [x4, #16]
        mrs     x2, vbar_el1
        mrs     x3, sp_el1
        stp     x2, x3, [x4, #32]
        mrs     x2, contextidr_el1
        stp     x2, x30, [x4, #48]
        bic     x1, x1, #SCR_NS
        msr     scr_el3, x1
        mov     x2, #SECURE_CONTEXT
        msr     contextidr_el1, x2
        isb
        adr     x2, secure_vectors
        msr     vbar_el1, x2
        adrp    x2, secure_stack
        add     x2, x2, :lo12:secure_stack
        msr     sp_el1, x2
        adr     x2, secure_entry
        msr     elr_el3, x2
        mov     x2, #(MASKED | EL1H)
        msr     spsr_el3, x2
        b       monitor_return

from_secure:
        orr     x1, x1, #SCR_NS
        msr     scr_el3, x1
        ldp     x2, x30, [x4, #48]
        msr     contextidr_el1, x2
        isb
        ldp     x2, x3, [x4]
        msr     elr_el3, x2
        msr     spsr_el3, x3
        ldp     x2, x3, [x4, #16]
        msr     elr_el1, x2
        msr     spsr_el1, x3
        ldp     x2, x3, [x4, #32]
        msr     vbar_el1, x2
        msr     sp_el1, x3
monitor_return:
        ldp     x3, x4, [sp], #16
        ldp     x1, x2, [sp], #16
        eret
        end     monitor_call

        function secure_entry
        bl      secure_service
        smc     #1
        end     secure_entry

// What an exception handler in C may change.
        .macro  push_all elr, spsr
        sub     sp, sp, #FRAME_BYTES
        stp     x0, x1, [sp]
        stp     x2, x3, [sp, #16]
        stp     x4, x5, [sp, #32]
        stp     x6, x7, [sp, #48]
        stp     x8, x9, [sp, #64]
        stp     x10, x11, [sp, #80]
        stp     x12, x13, [sp, #96]
        stp     x14, x15, [sp, #112]
        stp     x16, x17, [sp, #128]
        stp     x18, x19, [sp, #144]
        stp     x20, x21, [sp, #160]
        stp     x22, x23, [sp, #176]
        stp     x24, x25, [sp, #192]
        stp     x26, x27, [sp, #208]
        stp     x28, x29, [sp, #224]
        mrs     x0, \elr
        stp     x30, x0, [sp, #240]
        mrs     x0, \spsr
        mrs     x1, sp_el0
        stp     x0, x1, [sp, #256]
        mov     x0, sp
        .endm

        .macro  pop_all elr, spsr
        ldp     x0, x1, [sp, #256]
        msr     \spsr, x0
        msr     sp_el0, x1
        ldp     x30, x0, [sp, #240]
        msr     \elr, x0
        ldp     x28, x29, [sp, #224]
        ldp     x26, x27, [sp, #208]
        ldp     x24, x25, [sp, #192]
        ldp     x22, x23, [sp, #176]
        ldp     x20, x21, [sp, #160]
        ldp     x18, x19, [sp, #144]
        ldp     x16, x17, [sp, #128]
        ldp     x14, x15, [sp, #112]
        ldp     x12, x13, [sp, #96]
        ldp     x10, x11, [sp, #80]
        ldp     x8, x9, [sp, #64]
        ldp     x6, x7, [sp, #48]
        ldp     x4, x5, [sp, #32]
        ldp     x2, x3, [sp, #16]
        ldp     x0, x1, [sp]
        add     sp, sp, #FRAME_BYTES
        .endm

// FIQ, from whatever ran: the monitor's own timer.
        function monitor_fiq
        push_all elr_el3, spsr_el3
        bl      monitor_tick
        pop_all elr_el3, spsr_el3
        eret
        end     monitor_fiq

        function hypervisor_start
        adrp    x0, hypervisor_stack
        add     x0, x0, :lo12:hypervisor_stack
        mov     sp, x0
        adr     x0, hypervisor_vectors
        msr     vbar_el2, x0
        ldr     x0, =(HCR_RW | HCR_TID3)
        msr     hcr_el2, x0
        msr     cntvoff_el2, xzr
        adr     x0, kernel_start
        msr     elr_el2, x0
        mov     x0, #(MASKED | EL1H)
        msr     spsr_el2, x0
        isb
        eret
        end     hypervisor_start

// HVC, and what the hypervisor traps.
        function hypervisor_entry
        push_all elr_el2, spsr_el2
        mrs     x1, esr_el2
        bl      hypervisor
        pop_all elr_el2, spsr_el2
        eret
        end     hypervisor_entry

        function kernel_start
        adrp    x0, kernel_stack
        add     x0, x0, :lo12:kernel_stack
        mov     sp, x0
        adr     x0, kernel_vectors
        msr     vbar_el1, x0
        isb
        sub     sp, sp, #FRAME_BYTES
        mov     x0, sp
        bl      start_kernel            // fills the frame: the first task's
        b       kernel_return
        end     kernel_start

        function kernel_entry
        push_all elr_el1, spsr_el1
        mrs     x1, esr_el1
        bl      kernel_synchronous
        b       kernel_return
        end     kernel_entry

        function kernel_irq_entry
        push_all elr_el1, spsr_el1
        bl      kernel_irq
        end     kernel_irq_entry
        function kernel_return
        pop_all elr_el1, spsr_el1
        eret
        end     kernel_return

// unsigned long ask_secure(unsigned long), ask_hypervisor(unsigned long), read_features(void): of the kernel.
        function ask_secure
        smc     #0
        ret
        end     ask_secure

        function ask_hypervisor
        hvc     #0
        ret
        end     ask_hypervisor

        function read_features
        mrs     x0, id_aa64pfr0_el1     // the hypervisor traps it
        ret
        end     read_features

// unsigned long multiply(unsigned long a, unsigned long b): an instruction that does not exist multiplies.
        function multiply
        udf     #7
        ret
        end     multiply

// unsigned long print(const char*), yield(void), ask(unsigned long), leave(unsigned long): system calls.
        function print
        svc     #0
        ret
        end     print

        function yield
        svc     #1
        ret
        end     yield

        function ask
        svc     #2
        ret
        end     ask

        function done
        svc     #3
        ret
        end     done

// unsigned long semihosting(unsigned long operation, const void* argument)
        function semihosting
        hlt     #0xf000
        ret
        end     semihosting

// void leave(unsigned long status): SYS_EXIT
        function leave
        adrp    x1, reason
        add     x1, x1, :lo12:reason
        str     x0, [x1, #8]
        mov     x0, #0x18
        hlt     #0xf000
        b       .
        end     leave

        .data
        .balign 16
saved:  .skip   64                      // of EL1 in Non-secure state, during a Secure service
reason: .quad   0x20026, 0              // ADP_Stopped_ApplicationExit

        .section .note.GNU-stack, "", %progbits
