// Threads that share work: several take jobs from a queue under a mutex, some end early, others begin after them.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { workers = 3, queue_size = 8 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER, space = PTHREAD_COND_INITIALIZER;
static unsigned queue[queue_size], first, waiting, closed;

static void give(unsigned job)
{
    pthread_mutex_lock(&mutex);
    while (waiting == queue_size) pthread_cond_wait(&space, &mutex);
    queue[(first + waiting++) % queue_size] = job;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&mutex);
}

static int take(unsigned* job)
{
    pthread_mutex_lock(&mutex);
    while (waiting == 0 && !closed) pthread_cond_wait(&more, &mutex);
    const int got = waiting > 0;
    if (got) {
        *job = queue[first];
        first = (first + 1) % queue_size;
        --waiting;
        pthread_cond_signal(&space);
    }
    pthread_mutex_unlock(&mutex);
    return got;
}

static void close_queue(void)
{
    pthread_mutex_lock(&mutex);
    closed = 1;
    pthread_cond_broadcast(&more);
    pthread_mutex_unlock(&mutex);
}

// Steps until 3n + 1 and n / 2 lead to 1.
static unsigned collatz(unsigned n)
{
    unsigned steps = 0;
    for (; n != 1; ++steps) n = n % 2 ? 3 * n + 1 : n / 2;
    return steps;
}

static void* worker(void* total)
{
    unsigned job;
    while (take(&job)) *(unsigned*)total += collatz(job);
    return total;
}

static void* counter(void* n)
{
    *(unsigned*)n = collatz(*(unsigned*)n);
    return n;
}

static pthread_t start(void* (*what)(void*), unsigned* with)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, what, with) != 0) {
        perror("pthread_create");
        exit(1);
    }
    return thread;
}

int main(int argc, char** argv)
{
    const unsigned jobs = argc > 1 ? (unsigned)atoi(argv[1]) : 60;
    unsigned totals[workers] = {0}, total = 0, expected = 0;
    pthread_t threads[workers];

    for (unsigned i = 0; i < workers; ++i) threads[i] = start(worker, &totals[i]);
    for (unsigned i = 1; i <= jobs; ++i) give(i);
    close_queue();
    for (unsigned i = 0; i < workers; ++i) {
        pthread_join(threads[i], NULL);
        total += totals[i];
    }

    // One after another: each reuses the thread ID of the one that ended.
    unsigned in_turn = 0;
    for (unsigned i = 1; i <= 4; ++i) {
        unsigned n = i * 27;
        pthread_join(start(counter, &n), NULL);
        in_turn += n;
    }

    for (unsigned i = 1; i <= jobs; ++i) expected += collatz(i);
    printf("%u workers did %u jobs in %u steps; four threads in turn did %u\n", workers, jobs, total, in_turn);
    return total != expected;
}
