// A stack machine that interprets bytecode: primes by a sieve, or Fibonacci numbers by recursion. It dispatches instructions
// either through a table of functions or through a table of labels.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { stack_size = 512, memory_size = 4096 };

struct machine {
    const unsigned char* at;  // the next instruction
    const unsigned char* code;
    unsigned stack[stack_size], *top;  // top: the last value pushed
    unsigned calls[stack_size], depth;
    unsigned locals[4];
    unsigned char memory[memory_size];
    unsigned long executed;
    int running;
};

// Every instruction: its name, and what it does. `m` is the machine; `next` takes the next byte of the program.
#define INSTRUCTIONS(DO)                                                                    \
    DO(push, *++m->top = next)                                                              \
    DO(load, *++m->top = m->locals[next])                                                   \
    DO(store, m->locals[next] = *m->top--)                                                  \
    DO(fetch, *m->top = m->memory[*m->top % memory_size])                                   \
    DO(put, (m->memory[m->top[-1] % memory_size] = (unsigned char)*m->top, m->top -= 2))    \
    DO(add, (m->top[-1] += *m->top, --m->top))                                              \
    DO(subtract, (m->top[-1] -= *m->top, --m->top))                                         \
    DO(multiply, (m->top[-1] *= *m->top, --m->top))                                         \
    DO(less, (m->top[-1] = m->top[-1] < *m->top, --m->top))                                 \
    DO(copy, (m->top[1] = *m->top, ++m->top))                                               \
    DO(swap, swap_values(m->top))                                                           \
    DO(go, go(m, next))                                                                     \
    DO(go_if_zero, go_if_zero(m, next))                                                     \
    DO(call, call(m, next))                                                                 \
    DO(leave, m->at = m->code + m->calls[--m->depth])                                       \
    DO(print, printf("%u ", *m->top--))                                                     \
    DO(halt, m->running = 0)

#define NAME(name, what) op_##name,
enum operation { INSTRUCTIONS(NAME) operations };
#undef NAME

#define next (*m->at++)

static void swap_values(unsigned* top)
{
    const unsigned value = *top;
    *top = top[-1];
    top[-1] = value;
}

static void go(struct machine* m, unsigned target)
{
    m->at = m->code + target;
}

static void go_if_zero(struct machine* m, unsigned target)
{
    if (*m->top-- == 0) go(m, target);
}

static void call(struct machine* m, unsigned target)
{
    if (m->depth == stack_size) abort();
    m->calls[m->depth++] = (unsigned)(m->at - m->code);
    go(m, target);
}

// One function per instruction, called through a table.
#define FUNCTION(name, what) \
    static void do_##name(struct machine* m) { (void)(what); }
INSTRUCTIONS(FUNCTION)
#undef FUNCTION

__attribute__((noinline)) static void run_by_table(struct machine* m)
{
#define ENTRY(name, what) do_##name,
    static void (*const functions[])(struct machine*) = {INSTRUCTIONS(ENTRY)};
#undef ENTRY
    for (m->running = 1; m->running; ++m->executed) functions[next](m);
}

// One label per instruction, and a jump at the end of each.
__attribute__((noinline)) static void run_by_labels(struct machine* m)
{
#define ENTRY(name, what) &&label_##name,
    static const void* const labels[] = {INSTRUCTIONS(ENTRY)};
#undef ENTRY
    m->running = 1;
#define LABEL(name, what)                   \
    label_##name : (void)(what);            \
    ++m->executed;                          \
    if (!m->running) return;                \
    goto* labels[next];
    goto* labels[next];
    INSTRUCTIONS(LABEL)
#undef LABEL
}

#undef next

enum { limit = 0, i = 1, j = 2 };  // locals

// for (i = 2; i < limit; ++i) if (!memory[i]) { print(i); for (j = i + i; j < limit; j += i) memory[j] = 1; }
static const unsigned char sieve[] = {
    op_push, 2, op_store, i,
    /* 4: */ op_load, i, op_load, limit, op_less, op_go_if_zero, 49,
    /* 11: */ op_load, i, op_fetch, op_push, 1, op_less, op_go_if_zero, 40,
    /* 19: */ op_load, i, op_print, op_load, i, op_copy, op_add,
    /* 26: */ op_copy, op_store, j, op_load, limit, op_less, op_go_if_zero, 40,
    /* 34: */ op_go, 50, 0, 0, 0, 0,
    /* 40: */ op_load, i, op_push, 1, op_add, op_store, i, op_go, 4,
    /* 49: */ op_halt,
    /* 50: */ op_load, j, op_push, 1, op_put, op_load, j, op_load, i, op_add, op_go, 26,
};

// print(fibonacci(limit)); fibonacci(n): n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2)
static const unsigned char fibonacci[] = {
    op_load, limit, op_call, 6, op_print, op_halt,
    /* 6: */ op_copy, op_push, 2, op_less, op_go_if_zero, 13, op_leave,
    /* 13: */ op_copy, op_push, 1, op_subtract, op_call, 6,
    /* 19: */ op_swap, op_push, 2, op_subtract, op_call, 6,
    /* 25: */ op_add, op_leave,
};

int main(int argc, char** argv)
{
    const char* const program = argc > 1 ? argv[1] : "sieve";
    const unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 100;
    const char* const how = argc > 3 ? argv[3] : "table";

    static struct machine m;
    m.code = strcmp(program, "fibonacci") == 0 ? fibonacci : strcmp(program, "sieve") == 0 ? sieve : NULL;
    const int by_labels = strcmp(how, "labels") == 0;
    if (!m.code || n > (m.code == sieve ? memory_size : 40) || (!by_labels && strcmp(how, "table") != 0)) {
        fprintf(stderr, "usage: interpreter [sieve|fibonacci [N [table|labels]]]; N up to 4096, 40 for fibonacci\n");
        return 2;
    }
    m.at = m.code;
    m.top = m.stack;
    m.locals[limit] = n;
    (by_labels ? run_by_labels : run_by_table)(&m);
    printf("\n%lu instructions interpreted\n", m.executed);
    return 0;
}
