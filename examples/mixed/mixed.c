// Calls functions of both instruction sets (parts.S, and two here) through pointers, BLX <register>, from both.
#include <stdio.h>
#include <stdlib.h>

typedef unsigned function(unsigned);

function to_and_fro_arm, to_and_fro_thumb, through_table, by_sum, by_move, by_bytes, by_halfwords, conditional_arm,
    across_pages;
unsigned conditional(unsigned, unsigned, function*);
function piece_arm_double;

static function* const functions[] = {
    to_and_fro_arm, to_and_fro_thumb, through_table, by_sum, by_move, by_bytes, by_halfwords, conditional_arm, across_pages,
};
enum { count = sizeof functions / sizeof *functions };

__attribute__((noinline, target("arm"))) static unsigned from_arm(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < count; ++i) sum = sum * 3 + functions[i](n & 15);
    return sum;
}

__attribute__((noinline, target("thumb"))) static unsigned from_thumb(unsigned n)
{
    unsigned sum = conditional(n, 0, piece_arm_double);
    for (unsigned i = count; i-- > 0;) sum = sum * 5 + functions[i](n & 15);
    return sum;
}

int main(int argc, char** argv)
{
    const unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 32;
    unsigned sum = 0;
    for (unsigned n = 0; n < rounds; ++n) sum += from_arm(n) ^ from_thumb(n);
    printf("%u rounds: %u\n", rounds, sum);
    return 0;
}
