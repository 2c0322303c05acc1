/* Preloaded by tests/shake: files of a folder are listed in an order that SHAKE_SEED chooses, as another file system would. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct listing {
    DIR* folder;
    struct dirent64** files;
    size_t count, next;
    struct listing* other;
};
static struct listing* listings;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t place(const struct dirent64* file) {
    const char* const seed = getenv("SHAKE_SEED");
    uint64_t z = (seed ? strtoull(seed, 0, 10) : 0) + 1;
    for (const char* c = file->d_name; *c; c++) z = (z ^ (unsigned char)*c) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    return z ^ z >> 27;
}
static int earlier(const void* a, const void* b) {
    const uint64_t x = place(*(struct dirent64* const*)a), y = place(*(struct dirent64* const*)b);
    return x < y ? -1 : x > y;
}
static struct listing* find(DIR* folder) {
    struct listing* at = listings;
    while (at && at->folder != folder) at = at->other;
    return at;
}
static void forget(DIR* folder) {
    pthread_mutex_lock(&lock);
    for (struct listing** at = &listings; *at; at = &(*at)->other)
        if ((*at)->folder == folder) {
            struct listing* const gone = *at;
            *at = gone->other;
            for (size_t i = 0; i < gone->count; i++) free(gone->files[i]);
            free(gone->files);
            free(gone);
            break;
        }
    pthread_mutex_unlock(&lock);
}

struct dirent64* readdir64(DIR* folder) {
    struct dirent64* (*const next)(DIR*) = (struct dirent64 * (*)(DIR*)) dlsym(RTLD_NEXT, "readdir64");
    pthread_mutex_lock(&lock);
    struct listing* at = find(folder);
    if (!at) {
        at = calloc(1, sizeof *at);
        at->folder = folder;
        at->other = listings;
        listings = at;
        for (struct dirent64* file; (file = next(folder));) {
            at->files = realloc(at->files, (at->count + 1) * sizeof *at->files);
            at->files[at->count] = malloc(sizeof *file);
            memcpy(at->files[at->count++], file, file->d_reclen < sizeof *file ? file->d_reclen : sizeof *file);
        }
        if (at->count) qsort(at->files, at->count, sizeof *at->files, earlier);
    }
    struct dirent64* const file = at->next < at->count ? at->files[at->next++] : 0;
    pthread_mutex_unlock(&lock);
    return file;
}
/* The two structures have the same layout. */
_Static_assert(sizeof(struct dirent) == sizeof(struct dirent64), "a machine of 64 bits");
struct dirent* readdir(DIR* folder) { return (struct dirent*)readdir64(folder); }
int closedir(DIR* folder) {
    forget(folder);
    return ((int (*)(DIR*))dlsym(RTLD_NEXT, "closedir"))(folder);
}
void rewinddir(DIR* folder) {
    forget(folder);
    ((void (*)(DIR*))dlsym(RTLD_NEXT, "rewinddir"))(folder);
}
