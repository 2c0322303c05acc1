// Calls, jumps and returns that authenticate the address they go to, each in another form.

        .arch   armv8.5-a

        .macro  function name
        .globl  \name
        .type   \name, %function
        .balign 4
\name:
        bti     c
        .endm

        .macro  end name
        .size   \name, . - \name
        .endm

        .text
// unsigned long call_signed(const struct entry*, unsigned long): key A, and the entry's own address.
        function call_signed
        paciasp
        stp     x29, x30, [sp, #-16]!
        mov     x29, sp
        ldr     x8, [x0]
        mov     x9, x0
        mov     x0, x1
        blraa   x8, x9
        ldp     x29, x30, [sp], #16
        retaa
        end     call_signed

// The same as a jump: the function returns to the caller.
        function jump_signed
        ldr     x16, [x0]
        mov     x9, x0
        mov     x0, x1
        braa    x16, x9
        end     jump_signed

// unsigned long call_with_zero(function*, unsigned long): key B, and 0.
        function call_with_zero
        pacibsp
        stp     x29, x30, [sp, #-16]!
        mov     x29, sp
        mov     x8, x0
        mov     x0, x1
        pacizb  x8
        blrabz  x8
        ldp     x29, x30, [sp], #16
        retab
        end     call_with_zero

// Key A, and 0; the return address is authenticated apart from the return.
        function jump_with_zero
        paciasp
        stp     x29, x30, [sp, #-16]!
        mov     x29, sp
        mov     x16, x0
        mov     x0, x1
        paciza  x16
        adr     x30, 1f
        braaz   x16
1:      bti     j
        ldp     x29, x30, [sp], #16
        autiasp
        ret
        end     jump_with_zero

// void sign(struct entry*, function*)
        function sign
        pacia   x1, x0
        str     x1, [x0]
        ret
        end     sign

        .section .note.GNU-stack, "", %progbits
