/* For perf_test.py: children and a grandchild that work, take a signal, and end in different ways. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile int hits;
static void count(int number) { (void)number; ++hits; }
__attribute__((noinline)) static int child_work(int n) {
    volatile int sum = 0;
    for (int i = 0; i < n * 1000; i++) sum += i & 3;
    return sum;
}
int main(void) {
    signal(SIGUSR1, count);
    raise(SIGUSR1);
    for (int i = 1; i <= 3; i++)
        if (fork() == 0) {
            raise(SIGUSR1);
            child_work(i);
            if (i == 2 && fork() == 0) { child_work(7); _exit(hits); }
            if (i == 2) wait(0);
            if (i == 3) kill(getpid(), SIGKILL);
            printf("child %d %d\n", i, hits);
            exit(i);
        }
    child_work(5);
    int status, left = 0;
    while (wait(&status) > 0) left += WIFEXITED(status) ? WEXITSTATUS(status) : 100;
    printf("hits %d left %d\n", hits, left);
    return 0;
}
