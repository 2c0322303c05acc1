// A program for bench/record.sh: sorting, an interpreter and a hash table, in small blocks (about five instructions per
// waypoint), which is a heavy load for the recorder. Argument: the number of rounds; prints a checksum.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t state = 1;
static uint32_t next(void) {
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

static int ascending(const void* a, const void* b) {
    const uint32_t x = *(const uint32_t*)a, y = *(const uint32_t*)b;
    return x < y ? -1 : x > y;
}

enum operation { add, subtract, multiply, repeat, count_down, push, end };
static int interpret(const unsigned char* program, int n) {
    int stack[64] = {0}, depth = 0, sum = 0;
    for (const unsigned char* at = program;;) switch (*at++) {
            case add: sum += n; break;
            case subtract: sum -= 3; break;
            case multiply: sum = sum * 5 + 1; break;
            case count_down: n--; break;
            case push: stack[depth++ & 63] = sum; break;
            case repeat:
                if (n > 0) at = program;
                break;
            case end: return sum + stack[0];
        }
}

struct entry {
    struct entry* next;
    uint32_t key, seen;
};
static struct entry* table[4096];
static uint32_t look_up(uint32_t key) {
    struct entry** slot = &table[key * 2654435761u >> 20];
    for (struct entry* e = *slot; e; e = e->next)
        if (e->key == key) return ++e->seen;
    struct entry* e = malloc(sizeof *e);
    *e = (struct entry){*slot, key, 1};
    *slot = e;
    return 1;
}

int main(int argc, char** argv) {
    static uint32_t numbers[20000];
    static const unsigned char program[] = {add, multiply, push, subtract, count_down, repeat, end};
    const int rounds = argc > 1 ? atoi(argv[1]) : 10;
    uint32_t sum = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = 0; i < 20000; i++) numbers[i] = next();
        qsort(numbers, 20000, sizeof *numbers, ascending);
        sum += numbers[100] + (uint32_t)interpret(program, 60000);
        for (int i = 0; i < 40000; i++) sum += look_up(next() % 9000);
    }
    printf("%u\n", sum);
}
