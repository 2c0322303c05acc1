@ Functions in ARM and in Thumb state that go to each other in every way the architecture has. Each takes and gives back
@ one unsigned number.

        .syntax unified
        .text

        .macro  arm_function name
        .arm
        .balign 4
        .globl  \name
        .type   \name, %function
\name:
        .endm

        .macro  thumb_function name
        .thumb
        .balign 2
        .globl  \name
        .type   \name, %function
        .thumb_func
\name:
        .endm

        .macro  end name
        .size   \name, . - \name
        .endm

@ BLX <label> to Thumb, return by LDM with PC.
        arm_function to_and_fro_arm
        push    {r4, lr}
        mov     r4, r0
        subs    r0, r0, #1
        popmi   {r4, pc}                @ conditional, and seldom
        blx     to_and_fro_thumb
        add     r0, r0, r4
        ldm     sp!, {r4, pc}
        end     to_and_fro_arm

@ BLX <label> to ARM, return by POP {pc}. The two call each other until 0.
        thumb_function to_and_fro_thumb
        push    {r4, lr}
        movs    r4, r0
        cbz     r0, 1f
        subs    r0, #1
        blx     to_and_fro_arm
        eors    r0, r4
1:      pop     {r4, pc}
        end     to_and_fro_thumb

@ A jump through a table of addresses, LDR pc, to pieces in both states; those end with BX lr.
        arm_function through_table
        and     r1, r0, #3
        adr     r2, 1f
        ldr     pc, [r2, r1, lsl #2]
1:      .word   piece_arm_double, piece_thumb_add, piece_arm_negate, piece_thumb_halve
        end     through_table

        arm_function piece_arm_double
        lsl     r0, r0, #1
        bx      lr
        end     piece_arm_double

        thumb_function piece_thumb_add
        adds    r0, #11
        bx      lr
        end     piece_thumb_add

        arm_function piece_arm_negate
        rsb     r0, r0, #0
        mov     pc, lr                  @ in ARM state of version 7 this changes state as BX does
        end     piece_arm_negate

        thumb_function piece_thumb_halve
        lsrs    r0, r0, #1
        bx      lr
        end     piece_thumb_halve

@ Jumps by arithmetic on PC, in both states.
        arm_function by_sum
        and     r1, r0, #3
        add     pc, pc, r1, lsl #2
        nop
        b       1f
        b       2f
        b       3f
        add     r0, r0, #1
1:      add     r0, r0, #1
2:      add     r0, r0, #1
3:      add     r0, r0, #1
        bx      lr
        end     by_sum

        thumb_function by_move
        and     r1, r0, #1
        adr     r2, 1f
        add     r2, r2, r1, lsl #2
        mov     pc, r2                  @ stays in Thumb state
        .balign 4
1:      adds    r0, #3
        bx      lr
        adds    r0, #5
        bx      lr
        end     by_move

@ Table branches.
        thumb_function by_bytes
        and     r1, r0, #3
        tbb     [pc, r1]
1:      .byte   (2f - 1b) / 2, (3f - 1b) / 2, (4f - 1b) / 2, (5f - 1b) / 2
2:      adds    r0, #2
3:      adds    r0, #3
4:      adds    r0, #4
5:      bx      lr
        end     by_bytes

        thumb_function by_halfwords
        and     r1, r0, #1
        tbh     [pc, r1, lsl #1]
1:      .hword  (2f - 1b) / 2, (3f - 1b) / 2
2:      b.w     4f
3:      adds    r0, #7
4:      bx      lr
        end     by_halfwords

@ IT blocks: conditional instructions, and blocks that end with a conditional branch, return or call.
        thumb_function conditional
        push    {r4, lr}
        tst     r0, #1
        ittee   ne
        addne   r0, #1
        lslne   r0, #1
        subeq   r0, #1
        lsreq   r0, #1
        tst     r0, #2
        it      ne
        blxne   r2                      @ the state of `r2`, which is piece_arm_double
        tst     r0, #8
        itt     eq
        addeq   r0, #9
        popeq   {r4, pc}
        movs    r4, #4
1:      adds    r0, r4
        subs    r4, #1
        bne     1b
        tst     r0, #16
        it      eq
        beq     2f                      @ the encoding without a condition of its own
        eor     r0, r0, #5
2:      pop     {r4, pc}
        end     conditional

@ The same in ARM state: conditional calls of both kinds, and a conditional return.
        arm_function conditional_arm
        push    {r4, lr}
        tst     r0, #1
        blne    piece_arm_double
        tst     r0, #2
        ldreq   r3, =piece_thumb_add
        blxeq   r3
        cmp     r0, #100
        pophi   {r4, pc}
        tst     r0, #4
        bleq    by_sum
        pop     {r4, pc}
        end     conditional_arm
        .ltorg

@ A loop whose branch lies on both sides of the end of a page.
        .section .text.page, "ax"
        .balign 4096
        .space  4096 - 8
        thumb_function across_pages
        push    {lr}
        movs    r1, #3
1:      subs    r1, #1
        bne.w   1b
        adds    r0, #1
        bl      piece_thumb_halve
        pop     {pc}
        end     across_pages

        .section .note.GNU-stack, "", %progbits
