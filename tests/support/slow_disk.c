/* Preloaded by tests/shake: each open, read, write and fsync of a file sleeps before it does its work. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

/* Sleeps at most this number of microseconds, and sometimes 50 milliseconds, like a busy disk. */
static void wait_for_disk(uint64_t most) {
    static atomic_uint_fast64_t calls;
    static uint64_t seed;
    if (seed == 0) seed = (getenv("SHAKE_SEED") ? strtoull(getenv("SHAKE_SEED"), 0, 10) : 0) * 2654435761u + 1;
    uint64_t z = (seed + atomic_fetch_add(&calls, 1)) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    const uint64_t us = z % 1000 == 0 ? 50000 : (z >> 20) % (most + 1);
    const struct timespec length = {0, (long)us * 1000};
    const int kept = errno;
    nanosleep(&length, 0);
    errno = kept;
}
static int is_file(int fd) {
    struct stat state;
    const int kept = errno, file = fstat(fd, &state) == 0 && S_ISREG(state.st_mode);
    errno = kept;
    return file;
}
#define NEXT(result, name, ...) \
    static result (*next)(__VA_ARGS__); \
    if (!next) next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)
#define MODE \
    mode_t mode = 0; \
    if (flags & (O_CREAT | __O_TMPFILE)) { \
        va_list more; \
        va_start(more, flags); \
        mode = va_arg(more, mode_t); \
        va_end(more); \
    }
#define OPEN(name) \
    int name(const char* path, int flags, ...) { \
        NEXT(int, name, const char*, int, ...); \
        MODE \
        wait_for_disk(1000); \
        return next(path, flags, mode); \
    }
#define OPENAT(name) \
    int name(int folder, const char* path, int flags, ...) { \
        NEXT(int, name, int, const char*, int, ...); \
        MODE \
        wait_for_disk(1000); \
        return next(folder, path, flags, mode); \
    }
#define SYNC(name) \
    int name(int fd) { \
        NEXT(int, name, int); \
        wait_for_disk(40000); \
        return next(fd); \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
SYNC(fsync)
SYNC(fdatasync)
ssize_t read(int fd, void* to, size_t bytes) {
    NEXT(ssize_t, read, int, void*, size_t);
    if (is_file(fd)) wait_for_disk(200);
    return next(fd, to, bytes);
}
ssize_t write(int fd, const void* from, size_t bytes) {
    NEXT(ssize_t, write, int, const void*, size_t);
    if (is_file(fd)) wait_for_disk(200);
    return next(fd, from, bytes);
}
