// What an AArch64 system can do that examples/levels does not: faults, traps, illegal returns, AArch32, code that is
// written while it runs.
//
// A comment "// = type [place]" contains the type of the exception (docs/spec/etm4-registers.md, 2.13) and its preferred
// return address; without a place, that is the next instruction of this file. Every handler returns to x20, in
// the state x21.
//
// -D AARCH32: EL0 runs in AArch32 state once. -D ENDLESS: it never ends. -D COPY: CONTEXTIDR_EL1 is also written by code that
// the program writes. -D VMID: VTTBR_EL2 is written, and with -D CONTEXTIDR_EL2 that register too, each time with branches after it.

        .set    scr, 0x501              // RW, HCE, NS
        .set    nowhere, 0x3f000000     // no memory and no device of the board
        .macro  handler elr, spsr
        .balign 128
        msr     \spsr, x21
        msr     \elr, x20
        eret
        .endm
        .macro  table elr, spsr
        .balign 2048
        .rept   16
        handler \elr, \spsr
        .endr
        .endm

        .text
        .globl  _start
_start: b       1f
        table   elr_el3, spsr_el3
        table   elr_el2, spsr_el2
        table   elr_el1, spsr_el1
        .equ    vectors3, _start + 2048
        .equ    vectors2, _start + 4096
        .equ    vectors1, _start + 6144
1:      ldr     x0, =vectors3
        msr     vbar_el3, x0
        ldr     x0, =vectors2
        msr     vbar_el2, x0
        ldr     x0, =vectors1
        msr     vbar_el1, x0
        mov     x0, #scr
        msr     scr_el3, x0
#ifdef VMID
        .macro  vmids vttbr, context
        ldr     x0, =(\vttbr << 48 | 0xabcdef)
        msr     vttbr_el2, x0
#ifdef CONTEXTIDR_EL2
        mov     x1, #\context
        msr     s3_4_c13_c0_1, x1       // CONTEXTIDR_EL2
#endif
        isb
        b       . + 4
        b       . + 4
        .endm
        vmids   0x11, 0x501
        vmids   0x12, 0x502
        vmids   0x13, 0x501
#endif
        ldr     x0, =(1 << 31 | 1 << 19) // RW, TSC: SMC of EL1 is trapped
        msr     hcr_el2, x0
        ldr     x0, =stack
        msr     sp_el1, x0
        mov     x21, #0x3c5             // EL1h
        msr     spsr_el3, x21
        ldr     x0, =kernel
        msr     elr_el3, x0
        isb
        eret

kernel: mov     x1, #7
        msr     contextidr_el1, x1
        isb
        adr     x20, 1f
        svc     #0
1:      nop                             // = 2 1b
        adr     x20, 1f
        hvc     #0
1:      nop                             // = 2 1b
        adr     x20, 1f
2:      smc     #0                      // = 3 2b
        nop
1:      adr     x20, 1f
2:      udf     #1                      // = 3 2b
        nop
1:      adr     x20, 1f
2:      brk     #1                      // = 6 2b
        nop
1:      adr     x20, 1f
        mov     x2, #nowhere
2:      ldr     x3, [x2]                // = 12 2b
        nop
1:      adr     x20, 1f
        blr     x2                      // = 11 nowhere
        nop
1:      adr     x20, 1f                 // a loop that a fault ends in its second round
        adr     x7, stack
        sub     x8, x2, x7
        mov     x9, #1
3:      nop
2:      ldr     x3, [x7]                // = 12 2b
        add     x7, x7, x8
        cbnz    x9, 3b
1:      adr     x20, 1f                 // an illegal return: from EL1 to EL2
        mov     x0, #0x3c9
        msr     spsr_el1, x0
        ldr     x0, =illegal
        msr     elr_el1, x0
        eret
illegal: nop                            // = 3 illegal
        nop
1:      nop
#ifdef COPY
        // Written by code that the image does not contain.
        ldr     x1, =copied
        ldr     x2, =0xd518d021         // msr contextidr_el1, x1
        str     w2, [x1]
        ldr     w2, ret_
        str     w2, [x1, #4]
        dsb     ish
        ic      iallu
        isb
        blr     x1
#endif
#ifdef ENDLESS
        mov     x2, #0x8000
2:      subs    x2, x2, #1
        b.ne    2b
again:  b       2b
#endif
#ifdef AARCH32
        adr     x20, 1f
        mov     x0, #0x10               // User mode
        msr     spsr_el1, x0
        ldr     x0, =in_aarch32
        msr     elr_el1, x0
        eret
1:      nop
#endif
        mov     x0, #0x18               // SYS_EXIT
        ldr     x1, =reason
        hlt     #0xf000
ret_:   ret
        .balign 4
in_aarch32:
        .word   0xe3a01005              // mov r1, #5
        .word   0xe2511001              // subs r1, r1, #1
        .word   0x1afffffd              // bne
        .word   0xef000000              // svc

        .ltorg
        .balign 8
reason: .quad   0x20026, 0
copied: .skip   64
        .balign 16
        .skip   256
stack:  .skip   16
