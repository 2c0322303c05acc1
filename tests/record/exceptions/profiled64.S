// EL3 gives the buffer to EL1, EL1 programs the unit, and loops run at EL1 and EL0, and at EL1 with other physical addresses.
        .macro table name
        .balign 2048
\name:
        .rept 16
        .balign 128
        b handler
        .endr
        .endm
        .macro pass el                      // behind an instruction that QEMU lacks; other exceptions of EL1: `mapped`
        mrs x11, esr_\el
        lsr x11, x11, #26
        cbnz x11, mapped
        mrs x11, elr_\el
        add x11, x11, #4
        msr elr_\el, x11
        eret
        .endm
        .macro loop name, count
        .globl \name
        .type \name, %function
\name:  mov x2, #\count
1:      ldr x4, [x3]
        add x4, x4, x2
        str x4, [x3]
        subs x2, x2, #1
        b.ne 1b
        ret
        .size \name, . - \name
        .endm
        .text
        .globl _start
_start: adr x0, vectors
        msr vbar_el3, x0
        msr vbar_el2, x0
        msr vbar_el1, x0
        mov x0, #(1 << 10 | 1 << 8 | 1)     // RW, HCE, NS
        msr scr_el3, x0
        mov x0, #(3 << 12)                  // NSPB
        msr mdcr_el3, x0
        adr x0, hypervisor
        msr elr_el3, x0
        mov x0, #0x3c9
        msr spsr_el3, x0
        eret
hypervisor:
#ifdef HOST
// EL2 is the host of EL0, owns the buffer, and programs the unit.
        ldr x0, =(1 << 34 | 1 << 31 | 1 << 27)  // E2H, RW, TGE
        msr hcr_el2, x0
        isb
        msr mdcr_el2, xzr
        ldr x0, =0x50000000
        msr s3_0_c9_c10_1, x0               // PMBPTR_EL1
        ldr x0, =0x50010001
        msr s3_0_c9_c10_0, x0               // PMBLIMITR_EL1
        mov x0, #256
        msr s3_0_c9_c9_3, x0                // PMSIRR_EL1
        mov x0, #0x21                       // TS, E0HSPE
        msr s3_0_c9_c9_0, x0                // PMSCR_EL1, which is PMSCR_EL2 here
        isb
        adr x3, word
        bl loop_unsampled
        adr x0, guest
        msr elr_el2, x0
        msr spsr_el2, xzr
        eret
guest:  bl loop_user
        svc #0
#endif
        mov x0, #(1 << 31)                  // RW
        msr hcr_el2, x0
        mov x0, #MDCR
        msr mdcr_el2, x0
        mov x0, #0x18                       // PA, CX
        msr s3_4_c9_c9_0, x0                // PMSCR_EL2
        mov x0, #0x55
        msr contextidr_el2, x0
        adr x0, kernel
        msr elr_el2, x0
        mov x0, #0x3c5
        msr spsr_el2, x0
        eret
kernel: adr x3, word
        bl loop_before
        ldr x0, =0x50000000
        msr s3_0_c9_c10_1, x0               // PMBPTR_EL1
        ldr x0, =0x50010001
        msr s3_0_c9_c10_0, x0               // PMBLIMITR_EL1: 64 KiB, E
        mov x0, #256
        msr s3_0_c9_c9_3, x0                // PMSIRR_EL1
        mov x0, #0x77
        msr contextidr_el1, x0
        mov x0, #0x2a                       // TS, CX, E1SPE
        msr s3_0_c9_c9_0, x0                // PMSCR_EL1
        isb
        bl loop_kernel
        mov x0, #0x1                        // E0SPE
        msr s3_0_c9_c9_0, x0
#ifdef INTERVAL
        mov x0, #INTERVAL
        msr s3_0_c9_c9_3, x0                // PMSIRR_EL1
#endif
        ldr x0, =0x20002                    // LD, FT
        msr s3_0_c9_c9_4, x0                // PMSFCR_EL1
        isb
        bl loop_unsampled
        adr x0, user
        msr elr_el1, x0
        msr spsr_el1, xzr
        eret
user:   bl loop_user
        msr s3_0_c9_c9_0, xzr               // undefined at EL0
        svc #0
handler:
        mrs x10, currentel
        cmp x10, #4
        b.eq 1f
        pass el2
1:      pass el1
// EL1 sees the gigabyte at 0x40000000 at 0, too.
mapped: cmp x10, #8
        b.eq finish
        adr x0, translation
        msr ttbr0_el1, x0
        mov x0, #25                         // T0SZ: 39 bits
        msr tcr_el1, x0
        mov x0, #0xff
        msr mair_el1, x0
        isb
        mrs x0, sctlr_el1
        orr x0, x0, #1
        msr sctlr_el1, x0
        isb
        msr s3_0_c9_c9_4, xzr
        mov x0, #0x32                       // TS, PA, E1SPE
        msr s3_0_c9_c9_0, x0
        isb
        adr x3, word
        mov x0, #0x40000000
        sub x3, x3, x0
        bl loop_mapped
finish: psb csync
        dsb sy
        msr s3_0_c9_c9_0, xzr
        mov x0, #0x18
        adr x1, ended
        hlt #0xf000
1:      b 1b
        loop loop_before, 20000
        loop loop_kernel, 20000
        loop loop_unsampled, 20000
        loop loop_user, 20000
        loop loop_mapped, 60000
        table vectors
        .balign 4096
translation:
        .quad 0x40000401, 0x40000401
        .balign 4096
ended:  .quad 0x20026, 0
word:   .quad 0
