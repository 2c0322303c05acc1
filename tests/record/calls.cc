// A program that logs its own calls, for tests/record/calls_test.py. Each line of its output: caller's place, callee.
#include <ucontext.h>
#include <coroutine>
#include <csetjmp>
#include <csignal>
#include <cstdio>

#define BARE extern "C" __attribute__((no_instrument_function, noinline, noclone))
#define CALLED extern "C" __attribute__((noinline, noclone))

namespace {
struct Call {
    void *from, *to;
};
Call calls[4096];
int count = 0;
}  // namespace
BARE void __cyg_profile_func_enter(void* function, void* from) {
    if (count < 4096) calls[count++] = {from, function};
}
BARE void __cyg_profile_func_exit(void*, void*) {}

volatile int sink;

// ---- longjmp, out of functions and out of a recursive one
std::jmp_buf place, places[8];
CALLED void jump_leaf(int n) { std::longjmp(place, n); }
CALLED void jump_middle(int n) {
    jump_leaf(n + 1);
    sink = n;
}
CALLED void after_jump(int n) { sink = n; }
CALLED void jump_test() {
    volatile int i = 0;
    const int came = setjmp(place);
    after_jump(came);
    i = i + 1;
    if (i < 5) jump_middle(i);
    after_jump(100);
}
CALLED void at_level(int n) { sink = n; }
CALLED void recurse_jump(int level) {
    volatile int n = level;
    if (n == 3 && setjmp(places[3]) != 0) {
        at_level(n);
        return;
    }
    if (n == 7) std::longjmp(places[3], 1);
    recurse_jump(n + 1);
    at_level(n);
}

// ---- a C++ exception through ten frames, with and without cleanups
CALLED void clean(int n) { sink = n; }
CALLED void caught(int n) { sink = n; }
struct Guard {
    int n;
    ~Guard() { clean(n); }
};
CALLED void throw_plain(int n) {
    if (n == 10) throw n;
    throw_plain(n + 1);
    sink = n;
}
CALLED void throw_cleaning(int n) {
    Guard guard{n};
    if (n == 10) throw n;
    throw_cleaning(n + 1);
    sink = n;
}
CALLED void catch_test() {
    for (int i = 0; i < 3; ++i) {
        try {
            throw_plain(1);
        } catch (int n) {
            caught(n);
        }
        try {
            throw_cleaning(1);
        } catch (int n) {
            caught(n);
        }
        after_jump(i);
    }
}

// ---- tail calls
// Compiled with their hooks, the calls would not be the last operations of their functions.
CALLED void tail_last(int n) { sink = n; }
BARE void tail_second(int n) {
    sink = n;
    tail_last(n + 1);
}
BARE void tail_first(int n) {
    sink = n;
    tail_second(n + 1);
}
CALLED void tail_test() {
    for (int i = 0; i < 4; ++i) tail_first(i);
    after_jump(0);
}

// ---- coroutines with stacks: one that is resumed at several depths, and two that take turns
ucontext_t outside, inside[2];
char stacks[2][65536];
int current;
CALLED void work(int n) { sink = n; }
CALLED void give_way() {
    work(1);
    swapcontext(&inside[current], &outside);
    work(2);
}
CALLED void deeper(int n) {
    give_way();
    work(n);
}
CALLED void coroutine_body() {
    for (int i = 0; i < 4; ++i) {
        give_way();
        deeper(i);
    }
}
CALLED void other_body() {
    for (int i = 0; i < 4; ++i) {
        deeper(i);
        deeper(-i);
    }
}
CALLED void go_on(int which) {
    current = which;
    swapcontext(&outside, &inside[which]);
    work(3);
}
CALLED void coroutine_test() {
    for (int i = 0; i < 2; ++i) {
        getcontext(&inside[i]);
        inside[i].uc_stack.ss_sp = stacks[i];
        inside[i].uc_stack.ss_size = sizeof stacks[i];
        inside[i].uc_link = &outside;
    }
    makecontext(&inside[0], coroutine_body, 0);
    makecontext(&inside[1], other_body, 0);
    for (int i = 0; i < 8; ++i) {
        go_on(0);
        go_on(1);
        after_jump(i);
    }
}

// ---- coroutines of C++20
struct Task {
    struct promise_type {
        [[gnu::no_instrument_function]] promise_type() {}
        int value = 0;
        [[gnu::no_instrument_function]] Task get_return_object() {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        [[gnu::no_instrument_function]] std::suspend_always initial_suspend() { return {}; }
        [[gnu::no_instrument_function]] std::suspend_always final_suspend() noexcept { return {}; }
        [[gnu::no_instrument_function]] std::suspend_always yield_value(int n) {
            value = n;
            return {};
        }
        [[gnu::no_instrument_function]] void return_void() {}
        [[gnu::no_instrument_function]] void unhandled_exception() {}
    };
    std::coroutine_handle<promise_type> handle;
};
[[gnu::noinline, gnu::noclone]] Task numbers() {
    for (int i = 0; i < 5; ++i) {
        work(i);
        co_yield i;
    }
}
CALLED void generator_test() {
    Task task = numbers();
    while (!task.handle.done()) {
        task.handle.resume();
        after_jump(task.handle.promise().value);
    }
    task.handle.destroy();
}

// ---- a signal's handler that leaves by longjmp
sigjmp_buf from_handler;
CALLED void in_handler(int n) { sink = n; }
CALLED void handler(int n) {
    in_handler(n);
    siglongjmp(from_handler, 1);
}
CALLED void fails(int n) {
    sink = n;
    std::raise(SIGUSR1);
    sink = 0;
}
CALLED void signal_test() {
    std::signal(SIGUSR1, handler);
    volatile int i = 0;
    while (i < 3) {
        if (sigsetjmp(from_handler, 1) == 0)
            fails(i);
        else
            caught(i);
        after_jump(i);
        i = i + 1;
    }
}

CALLED void tests() {
    jump_test();
    recurse_jump(0);
    catch_test();
    tail_test();
    coroutine_test();
    generator_test();
    signal_test();
    after_jump(1);
}
BARE int main() {
    tests();
    for (int i = 0; i < count; ++i) std::printf("%p %p\n", calls[i].from, calls[i].to);
}
