// Program entry and what the sort calls in assembly, for AArch64.

        .text
        .globl  _start
        .type   _start, %function
_start:
        mov     x29, #0
        mov     x30, #0
        bl      run
        mov     w8, #93                 // exit
        svc     #0
        udf     #0
        .size   _start, . - _start

// int ascending(int a, int b): what the sort calls through a pointer.
        .globl  ascending
        .type   ascending, %function
ascending:
        cmp     w0, w1
        cset    w0, lt
        ret
        .size   ascending, . - ascending

// long write_text(const char* text, unsigned bytes): to standard output.
        .globl  write_text
        .type   write_text, %function
write_text:
        mov     w2, w1
        mov     x1, x0
        mov     x0, #1
        mov     w8, #64                 // write
        svc     #0
        ret
        .size   write_text, . - write_text

        .section .note.GNU-stack, "", %progbits
