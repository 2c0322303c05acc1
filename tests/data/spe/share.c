/* Two threads count beside each other: in one cache line in shared(), in lines of their own in alone(). */
#include <pthread.h>

static struct {
    volatile long a, b;
} together __attribute__((aligned(64)));
static struct {
    volatile long a;
    char rest[248];
    volatile long b;
} apart __attribute__((aligned(256)));

static pthread_barrier_t both;

__attribute__((noinline)) void shared(volatile long *p) {
    for (long i = 0; i < 1000000; ++i) ++*p;
}
__attribute__((noinline)) void alone(volatile long *p) {
    for (long i = 0; i < 1000000; ++i) *p += 3;
}

static void *other(void *unused) {
    pthread_barrier_wait(&both);
    shared(&together.b);
    alone(&apart.b);
    return unused;
}

int main(void) {
    pthread_t thread;
    if (pthread_barrier_init(&both, 0, 2) != 0 || pthread_create(&thread, 0, other, 0) != 0) return 1;
    pthread_barrier_wait(&both);
    shared(&together.a);
    alone(&apart.a);
    pthread_join(thread, 0);
    return together.a + together.b + apart.a + apart.b != 8 * 1000000;
}
