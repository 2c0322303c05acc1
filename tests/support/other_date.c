/* Preloaded by tests/shake: the clock that tells the date is SHAKE_SECONDS ahead, and so are the times of files. Intervals
   stay as they are. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long ahead(void) {
    static long seconds;
    static int known;
    if (!known) {
        const char* const text = getenv("SHAKE_SECONDS");
        seconds = text ? strtol(text, 0, 10) : 0;
        known = 1;
    }
    return seconds;
}

#define NEXT(result, name, ...) \
    static result (*next)(__VA_ARGS__); \
    if (!next) next = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name)

/* Without dlsym, which may ask for the time before it is usable. */
int clock_gettime(clockid_t clock, struct timespec* to) {
    const int status = (int)syscall(SYS_clock_gettime, clock, to);
    if (status == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) to->tv_sec += ahead();
    return status;
}
int gettimeofday(struct timeval* restrict to, void* restrict zone) {
    struct timespec now;
    (void)zone;
    if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    to->tv_sec = now.tv_sec;
    to->tv_usec = now.tv_nsec / 1000;
    return 0;
}
time_t time(time_t* to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (to) *to = now.tv_sec;
    return now.tv_sec;
}
int timespec_get(struct timespec* to, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, to) == 0 ? base : 0;
}

/* The kernel's clock is not ahead. Times that are not dates belong to the other clock. */
static struct timespec of_kernel(const struct timespec* until) {
    struct timespec out = *until;
    if (out.tv_sec > 1000000000 / 2) out.tv_sec -= ahead();
    return out;
}
int pthread_cond_timedwait(pthread_cond_t* restrict condition, pthread_mutex_t* restrict mutex,
                           const struct timespec* restrict until) {
    NEXT(int, pthread_cond_timedwait, pthread_cond_t*, pthread_mutex_t*, const struct timespec*);
    const struct timespec kernel = of_kernel(until);
    return next(condition, mutex, &kernel);
}
int pthread_mutex_timedlock(pthread_mutex_t* restrict mutex, const struct timespec* restrict until) {
    NEXT(int, pthread_mutex_timedlock, pthread_mutex_t*, const struct timespec*);
    const struct timespec kernel = of_kernel(until);
    return next(mutex, &kernel);
}
int sem_timedwait(sem_t* restrict semaphore, const struct timespec* restrict until) {
    NEXT(int, sem_timedwait, sem_t*, const struct timespec*);
    const struct timespec kernel = of_kernel(until);
    return next(semaphore, &kernel);
}

#define SHIFTED(name, type, parameters, arguments) \
    int name(parameters, struct type* restrict to) { \
        NEXT(int, name, parameters, struct type*); \
        const int status = next(arguments, to); \
        if (status == 0) { \
            to->st_atim.tv_sec += ahead(); \
            to->st_mtim.tv_sec += ahead(); \
            to->st_ctim.tv_sec += ahead(); \
        } \
        return status; \
    }
SHIFTED(stat, stat, const char* restrict path, path)
SHIFTED(lstat, stat, const char* restrict path, path)
SHIFTED(fstat, stat, int fd, fd)
SHIFTED(stat64, stat64, const char* restrict path, path)
SHIFTED(lstat64, stat64, const char* restrict path, path)
SHIFTED(fstat64, stat64, int fd, fd)
#define SHIFTED_AT(name, type) \
    int name(int folder, const char* restrict path, struct type* restrict to, int flags) { \
        NEXT(int, name, int, const char*, struct type*, int); \
        const int status = next(folder, path, to, flags); \
        if (status == 0) { \
            to->st_atim.tv_sec += ahead(); \
            to->st_mtim.tv_sec += ahead(); \
            to->st_ctim.tv_sec += ahead(); \
        } \
        return status; \
    }
SHIFTED_AT(fstatat, stat)
SHIFTED_AT(fstatat64, stat64)
int statx(int folder, const char* restrict path, int flags, unsigned mask, struct statx* restrict to) {
    NEXT(int, statx, int, const char*, int, unsigned, struct statx*);
    const int status = next(folder, path, flags, mask, to);
    if (status == 0) {
        to->stx_atime.tv_sec += ahead();
        to->stx_mtime.tv_sec += ahead();
        to->stx_ctime.tv_sec += ahead();
        to->stx_btime.tv_sec += ahead();
    }
    return status;
}

static const struct timespec* set(const struct timespec times[2], struct timespec kernel[2]) {
    if (!times) return 0;
    for (int i = 0; i < 2; i++) {
        kernel[i] = times[i];
        if (times[i].tv_nsec != UTIME_NOW && times[i].tv_nsec != UTIME_OMIT) kernel[i].tv_sec -= ahead();
    }
    return kernel;
}
int utimensat(int folder, const char* path, const struct timespec times[2], int flags) {
    NEXT(int, utimensat, int, const char*, const struct timespec*, int);
    struct timespec kernel[2];
    return next(folder, path, set(times, kernel), flags);
}
int futimens(int fd, const struct timespec times[2]) {
    NEXT(int, futimens, int, const struct timespec*);
    struct timespec kernel[2];
    return next(fd, set(times, kernel));
}
