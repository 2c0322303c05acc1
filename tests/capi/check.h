/* What the tests of the C interface share. */
#ifndef WAYMARK_TESTS_CAPI_CHECK_H
#define WAYMARK_TESTS_CAPI_CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <waymark.h>

/* Ends the test with the place and the condition that does not hold. */
#define CHECK(condition)                                                                   \
    do {                                                                                   \
        if (!(condition)) {                                                                \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                                       \
        }                                                                                  \
    } while (0)
/* A call that succeeds. */
#define OK(call)                                                                            \
    do {                                                                                    \
        wm_error* ok_error = NULL;                                                          \
        wm_error** const error = &ok_error;                                                 \
        if ((call) != WM_OK) {                                                              \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, wm_error_message(ok_error)); \
            exit(1);                                                                        \
        }                                                                                   \
    } while (0)
/* A call that fails with this status, and a message that contains the text. */
#define FAILS(wanted, text, call)                                                                                    \
    do {                                                                                                             \
        wm_error* fails_error = NULL;                                                                                \
        wm_error** const error = &fails_error;                                                                       \
        const wm_status fails_status = (call);                                                                       \
        if (fails_status != (wanted) || wm_error_status(fails_error) != (wanted) ||                                  \
            strstr(wm_error_message(fails_error), (text)) == NULL) {                                                 \
            fprintf(stderr, "%s:%d: status %d, '%s'; expected %d and '%s'\n", __FILE__, __LINE__, (int)fails_status, \
                    wm_error_message(fails_error), (int)(wanted), (text));                                           \
            exit(1);                                                                                                 \
        }                                                                                                            \
        wm_error_free(fails_error);                                                                                  \
    } while (0)

/* The folder of sources. */
extern const char* root;
/* A path below `root`; it is valid until seven more calls. */
const char* at(const char* path);
/* The bytes of a file; the caller frees them. */
unsigned char* read_file(const char* path, size_t* size);

/* What was delivered, in order, however it was divided into batches: a hash, and counts. */
typedef struct story {
    uint64_t hash, range_hash; /* range_hash: as the files truth.txt have it */
    uint64_t ranges, events, instructions, taken, exceptions, gap_bytes;
} story;
#define NEW_STORY \
    { 1469598103934665603u, 1469598103934665603u, 0, 0, 0, 0, 0, 0 }
int collect(const wm_flow_batch* batch, void* user_story);

#endif
