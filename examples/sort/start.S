@ Program entry, in ARM state: the rest is Thumb, so calls change the instruction set.

        .syntax unified
        .arm
        .text
        .globl  _start
        .type   _start, %function
_start:
        mov     fp, #0
        mov     lr, #0
        blx     run
        mov     r7, #1                  @ exit
        svc     #0
        udf     #0
        .size   _start, . - _start

@ int ascending(int a, int b): what the sort calls through a pointer, in ARM state.
        .globl  ascending
        .type   ascending, %function
ascending:
        cmp     r0, r1
        movlt   r0, #1
        movge   r0, #0
        bx      lr
        .size   ascending, . - ascending

@ long write_text(const char* text, unsigned bytes): to standard output.
        .thumb
        .globl  write_text
        .type   write_text, %function
        .thumb_func
write_text:
        push    {r7, lr}
        mov     r2, r1
        mov     r1, r0
        movs    r0, #1
        movs    r7, #4                  @ write
        svc     #0
        pop     {r7, pc}
        .size   write_text, . - write_text

        .section .note.GNU-stack, "", %progbits
