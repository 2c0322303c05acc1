@ Every exception a Linux program can cause, each in the middle of straight code and directly after a branch.
@
@ A comment "@ =" says what docs/spec/pft.md, 4.7, asks of the trace: the exception's number, the preferred return
@ address, and the instruction that the waypoint update names, or none. SVC (10) is left out of the comparison; it ends
@ each handler. tests/record/exceptions_test.py reads the comments in order.
        .syntax unified
        .arch   armv7-a
        .arch_extension sec
        .arm
        .globl  _start
_start: adr     r9, numbers
1:      ldr     r0, [r9], #4
        cmp     r0, #0
        beq     2f
        ldr     r1, =action
        cmp     r0, #12                 @ SIGUSR2's handler takes no siginfo
        ldreq   r1, =plain_action
        mov     r2, #0
        mov     r3, #8
        mov     r7, #174                @ rt_sigaction
        svc     #0
        b       1b

2:      adr     r9, c1
a1:     nop
b1:     bkpt    #0                      @ = 11 b1 a1
c1:     adr     r9, c2
        b       b2
b2:     bkpt    #0                      @ = 11 b2 none
c2:     adr     r9, c4
a3:     udf     #0                      @ = 9 c3 a3
c3:     nop
c4:     adr     r9, c5
        b       a5
a5:     udf     #0                      @ = 9 c5 a5
c5:     cmp     r0, r0
        udfne   #0
        adr     r9, c7
a7:     mrc     p15, 0, r0, c1, c0, 0   @ = 9 c7 a7     (only in privileged modes)
c7:     adr     r9, c9
        b       a9
a9:     smc     #0                      @ = 9 c9 a9     (only in privileged modes)
c9:     adr     r9, c11
a11:    mov     r1, #4
b11:    ldr     r1, [r1]                @ = 12 b11 a11
        nop
c11:    adr     r9, c12
        mov     r1, #4
        b       b12
b12:    ldm     r1, {r1, r2}            @ = 12 b12 none
c12:    blx     thumb
        b       after_thumb
        .thumb
        .thumb_func
        .balign 4
thumb:  adr     r2, d1
        orr     r9, r2, #1
a20:    mov     r2, r2
b20:    bkpt    #0                      @ = 11 b20 a20
        .balign 4
d1:     adr     r2, d2
        orr     r9, r2, #1
        b       b21
b21:    bkpt    #0                      @ = 11 b21 none
        .balign 4
d2:     adr     r2, d3
        orr     r9, r2, #1
a22:    udf     #0                      @ = 9 c22 a22
c22:    nop
        .balign 4
d3:     adr     r2, e3
        orr     r9, r2, #1
a23:    udf.w   #0                      @ = 9 c23 a23   (by Linux a breakpoint: SIGTRAP)
c23:    nop
        .balign 4
e3:     adr     r2, d4
        orr     r9, r2, #1
        cmp     r0, r0
        it      ne                      @ its condition fails, so what is undefined is passed
        udfne   #0
        itt     ne
        udfne.w #0
        udfne   #0
        it      eq
a24:    udfeq   #0                      @ = 9 c24 a24
c24:    nop
        .balign 4
d4:     adr     r2, d5
        orr     r9, r2, #1
a25:    movs    r1, #4
b25:    ldr.w   r1, [r1]                @ = 12 b25 a25
        nop
        .balign 4
d5:     adr     r2, d6
        orr     r9, r2, #1
        b       b26
b26:    ldr     r1, [r1]                @ = 12 b26 none
        .balign 4
d6:     bx      lr
        .arm
after_thumb:
        adr     r9, c13
        ldr     r3, =0x1000
        blx     r3                      @ = 11 0x1000 none      (nothing is there)
c13:    adr     r9, c14
        ldr     r3, =section_end
        blx     r3                      @ = 11 0x201000 0x200ffc
c14:    adr     r9, c15
        ldr     r3, =section_last
        blx     r3                      @ = 11 0x201000 0x200ffc
c15:    adr     r9, c16
        ldr     r3, =section_thumb_end
        blx     r3                      @ = 11 0x301000 0x300ffe
c16:    adr     r9, c17
        ldr     r3, =data
        blx     r3                      @ = 11 data none        (not executable)
c17:    adr     r9, c18
        ldr     r0, =numbers
a18:    mov     r1, #1
b18:    str     r1, [r0, #4]!           @ = 12 b18 a18          (not writable)
        nop
c18:
        @ Nobody else stands between a program and the signals it sends itself: they are part of the call.
        mov     r7, #20                 @ getpid
        svc     #0
        mov     r4, r0
        mov     r1, #10                 @ SIGUSR1
        mov     r7, #37                 @ kill
        svc     #0
        mov     r0, r4
        mov     r1, #12
        svc     #0
        @ SIGSEGV that was sent is no fault.
        mov     r0, r4
        mov     r1, #11
        svc     #0

        mov     r0, #0
        mov     r7, #248
        svc     #0
numbers: .word  4, 5, 7, 8, 10, 11, 12, 0


        .arm
        @ handler(signal, info, context): goes on at r9, where no other sent the signal.
handler:
        ldr     r1, [r1, #8]            @ si_code
        cmp     r1, #0
        bxle    lr
        ldr     r3, [r2, #68]           @ r9
        ldr     r12, [r2, #96]          @ cpsr
        bic     r12, r12, #0x20
        tst     r3, #1
        orrne   r12, r12, #0x20
        bic     r3, r3, #1
        str     r3, [r2, #92]           @ pc
        str     r12, [r2, #96]
        bx      lr
plain_handler:
        bx      lr
        .ltorg

        .data
action: .word   handler, 4, 0, 0, 0, 0
plain_action: .word plain_handler, 0, 0, 0, 0, 0
data:   nop

        .section .last, "ax"            @ at the end of a page with nothing after it
section_end:
        nop
section_last:
        nop

        .section .last_thumb, "ax"      @ as well
        .thumb
        .thumb_func
section_thumb_end:
        nop
        nop
