// Every kind of access of SVE, one after another, round and round. After each a nop, so that a sampled address of one cannot
// be taken for that of its neighbour.
        .arch   armv8.2-a+sve
        .global main
        .type   main, %function
main:   adrp    x0, buffer
        add     x0, x0, :lo12:buffer
        mov     w9, #20000
        ptrue   p0.s
        ptrue   p1.d
        index   z2.d, #0, #8
        mov     x1, #4
1:      ld1w    {z0.s}, p0/z, [x0, x1, lsl #2]
        nop
        st1w    {z0.s}, p0, [x0, #1, mul vl]
        nop
        ld2w    {z4.s, z5.s}, p0/z, [x0]
        nop
        ld1d    {z8.d}, p1/z, [x0, z2.d]
        nop
        st1d    {z8.d}, p1, [x0, z2.d]
        nop
        ldr     z3, [x0]
        nop
        str     z3, [x0, #1, mul vl]
        nop
        ldr     p2, [x0]
        nop
        ld1rw   {z6.s}, p0/z, [x0, #4]
        nop
        ldr     x3, [x0]
        subs    w9, w9, #1
        b.ne    1b
        mov     w0, #0
        ret
        .size   main, . - main
        .bss
        .balign 4096
buffer: .space  8192
