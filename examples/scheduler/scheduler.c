/* A preemptive scheduler with two tasks for a Cortex-M3 (QEMU's mps2-an385) or a Cortex-M33 (mps2-an505), without a
   library. SysTick wakes PendSV, which switches the task. Both tasks write a log to port 0 of the ITM; `level` is what
   a sensor measures, and each task changes it in its own way. It ends QEMU with status 0 if all was as expected. */
typedef unsigned int word;
#define REGISTER(address) (*(volatile word*)(address))
#define ITM_PORT(n) (*(volatile unsigned char*)(0xE0000000u + 4u * (n)))

enum { tasks = 2, stack_words = 256, rounds = 6, ticks_wanted = 12 };

volatile word level = 100; /* watched: waymark record --watch level */
volatile word ticks, switches;
word current;
word stacks[tasks][stack_words];
word* stack_of[tasks];

/* As under QEMU the ITM's registers read 0, it is not asked whether the port is ready. */
static void log_text(const char* text) {
    while (*text) ITM_PORT(0) = (unsigned char)*text++;
}
static void log_number(word value) {
    char digits[11];
    word at = 10;
    digits[at] = 0;
    do digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) != 0);
    log_text(digits + at);
}

static void host(word operation, void* argument) {
    register word r0 __asm__("r0") = operation;
    register void* r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
}
static void leave(word status) {
    word block[2] = {0x20026, status};
    host(0x20, block);
    for (;;) {
    }
}

__attribute__((noinline)) static word work(word n) {
    volatile word sum = 0;
    for (word i = 0; i < n; ++i) sum += i & 5;
    return sum;
}

/* No task comes between the load and the store. */
static void change_level(word by) {
    __asm__ volatile("cpsid i" : : : "memory");
    level += by;
    __asm__ volatile("cpsie i" : : : "memory");
}

/* Fills the tank slowly. */
void fill_task(void) {
    for (word round = 0;; ++round) {
        change_level(1 + (work(20) & 1));
        if (round % 4 == 0) {
            log_text("fill: level ");
            log_number(level);
            log_text("\n");
        }
        work(10);
    }
}

/* Empties it now and then, and ends the program. */
void drain_task(void) {
    for (word round = 1;; ++round) {
        work(60);
        if (level > 20) change_level((word)-20);
        log_text("drain: round ");
        log_number(round);
        log_text("\n");
        if (round >= rounds && ticks >= ticks_wanted) leave(switches >= ticks_wanted ? 0 : 1);
    }
}

void sys_tick_handler(void) {
    ++ticks;
    REGISTER(0xE000ED04) = 1u << 28; /* ICSR.PENDSVSET */
}

word* next_stack(word* stack) {
    stack_of[current] = stack;
    current = (current + 1) % tasks;
    ++switches;
    return stack_of[current];
}

/* Saves what the exception did not, and goes on with the other task. */
__attribute__((naked)) void pend_sv_handler(void) {
    __asm__ volatile(
        "mrs r0, psp\n"
        "stmdb r0!, {r4-r11, lr}\n"
        "bl next_stack\n"
        "ldmia r0!, {r4-r11, lr}\n"
        "msr psp, r0\n"
        "bx lr\n");
}

/* The first task begins with the return of this SVC. */
__attribute__((naked)) void supervisor_handler(void) {
    __asm__ volatile(
        "ldr r0, =stack_of\n"
        "ldr r0, [r0]\n"
        "ldmia r0!, {r4-r11, lr}\n"
        "msr psp, r0\n"
        "bx lr\n");
}

void fault_handler(void) { leave(2); }

static void prepare(word task, void (*entry)(void)) {
    word* top = stacks[task] + stack_words;
    *--top = 1u << 24; /* xPSR: Thumb */
    *--top = (word)entry & ~1u;
    for (word i = 0; i < 6; ++i) *--top = 0; /* LR, R12, R3 to R0 */
    *--top = EXC_RETURN;
    for (word i = 0; i < 8; ++i) *--top = 0; /* R11 to R4 */
    stack_of[task] = top;
}

void reset_handler(void) {
    prepare(0, fill_task);
    prepare(1, drain_task);
    log_text("scheduler: start\n");
    REGISTER(0xE000ED20) = 0xFFu << 16; /* PendSV has the lowest priority */
    REGISTER(0xE000E014) = 100 - 1;     /* SysTick: each 100 of its ticks, which are 40 ns */
    REGISTER(0xE000E018) = 0;
    REGISTER(0xE000E010) = 7;
    __asm__ volatile("svc 0");
    leave(3);
}

extern word stack_top;
__attribute__((section(".vectors"), used)) void* const vectors[16] = {
    &stack_top,    (void*)reset_handler, (void*)fault_handler, (void*)fault_handler,      (void*)fault_handler,
    (void*)fault_handler, (void*)fault_handler, 0, 0, 0, 0, (void*)supervisor_handler, 0, 0,
    (void*)pend_sv_handler, (void*)sys_tick_handler};
