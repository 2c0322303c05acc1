/* For generated64_test.py: code that an AArch64 program writes, runs and replaces, by one thread or several; code that
 * is unmapped and mapped anew; libraries that are loaded where another was. Prints what its functions returned. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef long (*function)(long);
static char* fresh(void) { return mmap(0, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0); }
static function make(char* at, unsigned value) {
    uint32_t code[] = {0x91000000u | (value & 4095) << 10, /* add x0, x0, #value */
                       0xd65f03c0};                        /* ret */
    memcpy(at, code, sizeof code);
    __builtin___clear_cache(at, at + sizeof code); /* DC CVAU, IC IVAU, DSB, ISB */
    return (function)at;
}
static __attribute__((noinline)) long use(function f) {
    long sum = 0;
    for (int i = 0; i < 5; ++i) sum = f(sum);
    return sum;
}
static long overwrite(int versions) {
    char* at = fresh();
    long sum = 0;
    for (int v = 0; v < versions; ++v) sum += use(make(at, v));
    return sum;
}
static void* work(void* versions) { return (void*)overwrite((int)(intptr_t)versions); }
static long remap(int times) {
    long sum = 0;
    char* at = fresh();
    for (int v = 0; v < times; ++v) {
        sum += use(make(at, v));
        munmap(at, 4096);
        if (mmap(at, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != at) abort();
    }
    return sum;
}
static volatile int done;
/* Maps code from a file, runs it, and unmaps it while the recorder may read the file; then replaces the file. */
static void* map_files(void* folder) {
    long sum = 0;
    for (int v = 0; v < 20; ++v) {
        char name[4096];
        snprintf(name, sizeof name, "%s/mapped-%d", (char*)folder, v);
        FILE* file = fopen(name, "wb");
        uint32_t code[] = {0x91000000u | (unsigned)(v + 1) << 10, 0xd65f03c0};
        fwrite(code, sizeof code, 1, file);
        fclose(file);
        file = fopen(name, "rb");
        char* at = mmap((void*)0x10000000, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fileno(file), 0);
        sum += use((function)at);
        munmap(at, 4096);
        fclose(file);
        remove(name);
    }
    done = 1;
    return (void*)sum;
}

int main(int argc, char** argv) {
    int n = argc > 2 ? atoi(argv[2]) : 0;
    if (!strcmp(argv[1], "overwrite")) printf("%ld\n", overwrite(n));
    if (!strcmp(argv[1], "remap")) printf("%ld\n", remap(n));
    if (!strcmp(argv[1], "threads")) {
        pthread_t threads[3];
        long sum = 0;
        for (int i = 0; i < 3; ++i) pthread_create(&threads[i], 0, work, (void*)(intptr_t)n);
        for (int i = 0; i < 3; ++i) {
            void* one;
            pthread_join(threads[i], &one);
            sum += (long)one;
        }
        printf("%ld\n", sum);
    }
    if (!strcmp(argv[1], "files")) {
        pthread_t thread;
        void* sum;
        pthread_create(&thread, 0, map_files, argv[2]);
        /* The other thread repeatedly unmaps addresses that belong to no file. */
        while (!done) munmap(fresh(), 4096);
        pthread_join(thread, &sum);
        printf("%ld\n", (long)sum);
    }
    if (!strcmp(argv[1], "libraries")) {
        long sum = 0;
        void* first = 0;
        int same = 0;
        for (int i = 0; i < 6; ++i) {
            void* library = dlopen(argv[2 + i % 2], RTLD_NOW);
            if (!library) return puts(dlerror()), 1;
            function f = (function)dlsym(library, "step");
            if (!first) first = (void*)f;
            same += first == (void*)f;
            sum += use(f);
            dlclose(library);
        }
        printf("%ld at one address %d times\n", sum, same);
    }
    return 0;
}
