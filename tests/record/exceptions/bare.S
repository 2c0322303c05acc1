@ Every exception class that QEMU's vexpress boards can cause, without an operating system.
@
@ A comment "@ =" says what docs/spec/pft.md, 4.7, asks of the trace, as in linux.S. Every handler returns to where r7
@ points. -D GIC_DISTRIBUTOR, GIC_CPU, SYSTEM_REGISTERS, RAM; VIRTUALIZATION for a core that has Hyp mode.
        .syntax unified
        .arch   armv7-a
        .arch_extension sec
        .arch_extension virt
        .arm
        .macro  table irq=irq_entry, hyp=back
        .balign 32
        b       .
        b       \hyp
        b       \hyp
        b       \hyp
        b       \hyp
        b       \hyp
        b       \irq
        b       \irq
        .endm
        .set    fault, RAM + 0x100000
        .globl  _start
vectors: table
monitor_vectors: table
hyp_vectors: table hyp_back, hyp_back
back:   mov     lr, r7
        movs    pc, lr
irq_entry:
        ldr     r12, [r6, #0xc]        @ acknowledged
        str     r12, [r6, #0x10]       @ over
        mov     lr, r7
        movs    pc, lr
hyp_back:
        msr     elr_hyp, r7
        eret

_start: ldr     r8, =RAM + 0x2000000    @ beyond the image, so a reset keeps it
        ldr     r0, [r8]
        cmp     r0, #1
        beq     finish
        ldr     r0, =vectors
        mcr     p15, 0, r0, c12, c0, 0  @ VBAR
        ldr     r0, =monitor_vectors
        mcr     p15, 0, r0, c12, c0, 1  @ MVBAR
        @ Sections mapped one to one, all but the one after this program's last.
        ldr     r0, =RAM + 0x1000000
        ldr     r1, =0x00000c12         @ read and write, XN
        mov     r2, #4096
1:      str     r1, [r0], #4
        add     r1, r1, #0x100000
        subs    r2, r2, #1
        bne     1b
        ldr     r0, =RAM + 0x1000000
        lsr     r1, r0, #20
        ldr     r2, =RAM
        orr     r3, r2, #0xc00
        orr     r3, r3, #0x2
        str     r3, [r0, r2, lsr #18]   @ the first of RAM can be executed
        add     r1, r0, r2, lsr #18
        mov     r3, #0
        str     r3, [r1, #4]            @ and the second is nothing
        mcr     p15, 0, r0, c2, c0, 0   @ TTBR0
        mcr     p15, 0, r3, c2, c0, 2   @ TTBCR
        mov     r0, #1
        mcr     p15, 0, r0, c3, c0, 0   @ DACR
        mcr     p15, 0, r0, c8, c7, 0   @ TLBIALL
        dsb
        isb
        mrc     p15, 0, r0, c1, c0, 0
        orr     r0, r0, #1
        mcr     p15, 0, r0, c1, c0, 0
        isb

        adr     r7, c1
a1:     udf     #0                      @ = 9 c1 a1
c1:     adr     r7, c2
        b       a2
a2:     udf     #0                      @ = 9 c2 a2
c2:     adr     r7, c3
a3:     nop
b3:     bkpt    #0                      @ = 11 b3 a3
c3:     adr     r7, c4
        b       b4
b4:     bkpt    #0                      @ = 11 b4 none
c4:     adr     r7, c5
a5:     svc     #1                      @ = 10 c5 a5
c5:     adr     r7, c6
        b       a6
a6:     svc     #1                      @ = 10 c6 a6
c6:     cmp     r7, r7
        svcne   #1
        udfne   #0
        adr     r7, c7
a7:     ldr     r0, =RAM + 0x100000
b7:     ldr     r1, [r0]                @ = 12 b7 a7
        nop
c7:     adr     r7, c8
        b       b8
b8:     ldm     r0, {r1, r2}            @ = 12 b8 none
c8:     adr     r7, c9
        ldr     r0, =RAM + 0x100000
        bx      r0                      @ = 11 fault none
c9:     adr     r7, c10
        ldr     r0, =section_end
        bx      r0                      @ = 11 fault fault-4
c10:    adr     r7, c11
        smc     #0                      @ = 2 c11 a11
        .set    a11, . - 4
c11:    blx     thumb
        b       after_thumb
        .thumb
        .thumb_func
        .balign 4
thumb:  mov     r5, lr                  @ SVC has the same link register
        nop
        adr     r2, d1
        orr     r7, r2, #1
a30:    mov     r2, r2
b30:    bkpt    #0                      @ = 11 b30 a30
        nop
        .balign 4
d1:     adr     r2, d2
        orr     r7, r2, #1
        b       b31
b31:    bkpt    #0                      @ = 11 b31 none
        .balign 4
d2:     adr     r2, d3
        orr     r7, r2, #1
a32:    udf     #0                      @ = 9 c32 a32
c32:    nop
        .balign 4
d3:     adr     r2, d4
        orr     r7, r2, #1
a33:    udf.w   #0                      @ = 9 c33 a33
        .set    c33, a33 + 4
        .balign 4
d4:     adr     r2, d5
        orr     r7, r2, #1
a34:    svc     #1                      @ = 10 c34 a34
c34:    nop
        .balign 4
d5:     adr     r2, d6
        orr     r7, r2, #1
        ldr     r0, =RAM + 0x100000
b35:    ldr     r1, [r0]                @ = 12 b35 a35
        .set    a35, b35 - 2
        nop
        .balign 4
d6:     bx      r5
        .ltorg
        .arm
        .ltorg
after_thumb:

        @ IRQ: after straight code, and directly after the branch that allows it.
        ldr     r4, =GIC_DISTRIBUTOR
        ldr     r6, =GIC_CPU
        mov     r0, #0xff
        str     r0, [r6, #4]
        mov     r0, #1
        str     r0, [r6]
        str     r0, [r4]
        ldr     r1, =0x2000000
        adr     r7, c20
        cpsid   i
        str     r1, [r4, #0xf00]
        dsb
a20:    cpsie   i                       @ = 14 b20 a20
b20:    nop
c20:    cpsid   i
        str     r1, [r4, #0xf00]
        dsb
        adr     r7, c21
        adr     lr, b21
        mrs     r0, cpsr
        bic     r0, r0, #0x80
        msr     spsr_cxsf, r0
        movs    pc, lr                  @ = 14 b21 none
b21:    nop
c21:    @ The same as FIQ.
        mov     r0, #9
        str     r0, [r6]
        adr     r7, c22
        cpsid   f
        str     r1, [r4, #0xf00]
        dsb
a22:    cpsie   f                       @ = 15 b22 a22
b22:    nop
c22:    cpsid   f
        str     r1, [r4, #0xf00]
        dsb
        adr     r7, c23
        adr     lr, b23
        mrs     r0, cpsr
        bic     r0, r0, #0x40
        msr     spsr_cxsf, r0
        movs    pc, lr                  @ = 15 b23 none
b23:    nop
c23:
#ifdef VIRTUALIZATION
        @ Through Monitor mode to Hyp mode, and from there to Non-secure Supervisor mode.
        cps     #0x16
        mrc     p15, 0, r0, c1, c1, 0   @ SCR
        orr     r0, r0, #0x100          @ HCE
        orr     r0, r0, #1              @ NS
        mcr     p15, 0, r0, c1, c1, 0
        isb
        mov     r0, #0x1da
        msr     spsr_cxsf, r0
        adr     lr, in_hyp
        movs    pc, lr
in_hyp: ldr     r0, =hyp_vectors
        mcr     p15, 4, r0, c12, c0, 0  @ HVBAR
        mov     r0, #0x4000000          @ TVM: some registers cannot be written from below
        mcr     p15, 4, r0, c1, c1, 0   @ HCR
        mov     r0, #0x1d3
        msr     spsr_cxsf, r0
        adr     r0, supervisor
        msr     elr_hyp, r0
        eret
supervisor:
        ldr     r0, =vectors
        mcr     p15, 0, r0, c12, c0, 0
        adr     r7, c40
a40:    hvc     #0                      @ = 3 c40 a40
c40:    adr     r7, c41
        b       a41
a41:    hvc     #0                      @ = 3 c41 a41
c41:    adr     r7, c42
a42:    mov     r0, #0
b42:    mcr     p15, 0, r0, c13, c0, 1  @ = 3 b42 a42   (CONTEXTIDR, trapped)
        nop
c42:    adr     r7, c43
        b       b43
b43:    mcr     p15, 0, r0, c13, c0, 1  @ = 3 b43 none
        nop
c43:
#endif
        @ User mode: what is refused there comes amid other code.
        adr     r7, c24
        cps     #0x1f
        mov     r0, #0x10
        msr     cpsr_c, r0
        nop
        b       a24
a24:    mrc     p15, 0, r0, c14, c2, 1  @ = 9 a24+4 a24
        nop
c24:    adr     r7, c25
        nop
a25:    smc     #0                      @ = 9 c25 a25
c25:    adr     r7, c26
        nop
b26:    bkpt    #0                      @ = 11 b26 a26
        .set    a26, b26 - 4
c26:    adr     r7, c27
        mov     r0, #0
        mov     r1, #0
a27:    svc     #2                      @ = 10 c27 a27
c27:    @ A reset of the board. Nothing says what ran since the last branch.
        ldr     r8, =RAM + 0x2000000
        mov     r0, #1
        str     r0, [r8]
        ldr     r0, =SYSTEM_REGISTERS
        ldr     r1, =0xc0900000
        str     r1, [r0, #0xa4]
1:      b       1b                      @ = 8
finish: mov     r0, #0x18
        ldr     r1, =0x20026
        svc     #0x123456
        b       .

        .arm
        .ltorg

        .section .last, "ax"
section_end:
        nop
        nop
