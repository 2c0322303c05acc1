/* Short enough for a log of every instruction. */
#include <stdio.h>

int main(void) { return puts("hello") < 0; }
