// Loops of all forms, for tests/record/loops_test.py. Names of the tested functions begin with loop_.
#include <csetjmp>

#define LOOP extern "C" __attribute__((noinline)) void

volatile int sink;
int numbers[64];

LOOP loop_while(int n) {
    while (n > 0) sink = n--;
}
LOOP loop_do(int n) {
    do sink = n;
    while (--n > 0);
}
LOOP loop_for_if_else(int n) {
    for (int i = 0; i < n; ++i)
        if (i % 3 == 0)
            sink = i;
        else
            sink = sink + 2;
}
LOOP loop_continue_break(int n) {
    for (int i = 0; i < n; ++i) {
        if (i % 4 == 1) continue;
        if (i > 70) break;
        sink = sink + i;
    }
}
LOOP loop_nested(int n) {
    for (int i = 0; i < n; ++i)
        for (int k = 0; k < i % 5; ++k) {
            int m = k;
            while (m-- > 0) sink = sink + m;
        }
}
LOOP loop_switch(int n) {
    for (int i = 0; i < n; ++i) {
        switch (i % 7) {
            case 0: sink = 1; continue;
            case 1: sink = sink + 2; break;
            case 2: sink = sink * 3;
            case 3: sink = sink ^ 4; break;
            case 5:
                if (i > 90) return;
                break;
            default: sink = i;
        }
        sink = sink + 1;
    }
}
LOOP loop_same_head(int n) {
    int i = 0;
again:
    sink = i++;
    if (i % 3 != 0) goto again;
    sink = sink + 1;
    if (i < n) goto again;
}
LOOP loop_into_the_middle(int n, int where) {
    int i = 0;
    if (where != 0) goto middle;
    while (i < n) {
        sink = sink + i;
        if (sink % 5 == 2) sink = 3;
    middle:
        sink = sink ^ i;
        ++i;
    }
}
LOOP loop_array(int n) {
    for (int i = 0; i < n; ++i) numbers[i & 63] = numbers[i & 63] * 3 + i;
    int sum = 0;
    for (int i = 0; i < 64; ++i) sum += numbers[i];
    sink = sum;
}
LOOP throws(int i) {
    if (i % 3 == 0) throw i;
    sink = i;
}
LOOP loop_catch(int n) {
    for (int i = 0; i < n; ++i) try {
            throws(i);
        } catch (int caught) {
            sink = caught;
        }
}
std::jmp_buf place;
LOOP jumps(int i) {
    if (i % 4 == 0) std::longjmp(place, i + 1);
    sink = i;
}
LOOP loop_setjmp(volatile int n) {
    for (volatile int i = 0; i < n; i = i + 1)
        if (setjmp(place) == 0) jumps(i);
}

int main() {
    loop_while(100);
    loop_do(17);
    loop_for_if_else(100);
    loop_continue_break(40);
    loop_continue_break(100);
    loop_nested(23);
    loop_switch(60);
    loop_switch(100);
    loop_same_head(50);
    loop_into_the_middle(20, 0);
    loop_into_the_middle(20, 1);
    loop_array(130);
    loop_catch(10);
    loop_setjmp(10);
}
