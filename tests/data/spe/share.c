/* Two threads count in turn: in one cache line in shared(), in lines of their own in alone(). A pipe says whose turn it
   is, so that the line goes from one to the other however the system runs them, and no other line does. */
#include <pthread.h>
#include <unistd.h>

enum { turns = 30000, more = 1000000 };

static struct {
    volatile long a, b;
} together __attribute__((aligned(64)));
static struct {
    volatile long a;
    char rest[248];
    volatile long b;
} apart __attribute__((aligned(256)));

static int to_main[2], to_other[2];

__attribute__((noinline)) void shared(volatile long *p, int take, int give) {
    char turn;
    for (long i = 0; i < turns; ++i) {
        if (read(take, &turn, 1) != 1) _exit(1);
        ++*p;
        if (write(give, &turn, 1) != 1) _exit(1);
    }
}
__attribute__((noinline)) void alone(volatile long *p) {
    for (long i = 0; i < more; ++i) *p += 3;
}

static void *other(void *unused) {
    shared(&together.b, to_other[0], to_main[1]);
    alone(&apart.b);
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pipe(to_main) != 0 || pipe(to_other) != 0 || pthread_create(&thread, 0, other, 0) != 0) return 1;
    if (write(to_main[1], "", 1) != 1) return 1;
    shared(&together.a, to_main[0], to_other[1]);
    alone(&apart.a);
    pthread_join(thread, 0);
    return together.a + together.b != 2 * turns || apart.a + apart.b != 6 * more;
}
