/* Two threads with a capture each, and then both with decoders of one capture; a third one cancels. */
#include <pthread.h>

#include "check.h"

enum { rounds = 20 };

static story decode(const wm_capture* capture, unsigned jobs) {
    wm_decoder* decoder = NULL;
    story collected = NEW_STORY;
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_set_jobs(decoder, jobs);
    wm_decoder_on_flow(decoder, collect, &collected);
    OK(wm_decoder_run(decoder, error));
    wm_decoder_free(decoder);
    return collected;
}

static void* with_its_own(void* folder) {
    for (int i = 0; i < rounds; ++i) {
        char path[1024];
        snprintf(path, sizeof path, "%s/%s", root, (const char*)folder);
        wm_capture* capture = NULL;
        OK(wm_open(path, NULL, &capture, error));
        CHECK(decode(capture, 1 + (unsigned)(i % 2)).ranges > 1000);
        wm_close(capture);
        wm_error* error = NULL;
        CHECK(wm_open("no/such/file", NULL, &capture, &error) == WM_NOT_FOUND);
        wm_error_free(error);
    }
    return NULL;
}

static void* with_a_shared_one(void* user) {
    const wm_capture* capture = user;
    for (int i = 0; i < rounds; ++i) {
        CHECK(decode(capture, 1).ranges == 1382);
        wm_symbol symbol = {.struct_bytes = sizeof symbol};
        OK(wm_symbol_at(wm_source_at(capture, 0), 0x100d6, &symbol, error));
        CHECK(symbol.name[0] != '\0');
        wm_answers* answers = NULL;
        OK(wm_answers_of(capture, WM_ANSWERS_CALLS, 1, NULL, NULL, &answers, error));
        wm_answers_free(answers);
    }
    return NULL;
}

static void two(void* (*run)(void*), void* first, void* second) {
    pthread_t threads[2];
    CHECK(pthread_create(&threads[0], NULL, run, first) == 0);
    CHECK(pthread_create(&threads[1], NULL, run, second) == 0);
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
}

static void* cancel(void* decoder) {
    wm_decoder_cancel(decoder);
    return NULL;
}

static void another_thread_cancels(const wm_capture* capture) {
    wm_decoder* decoder = NULL;
    OK(wm_decoder_new(capture, &decoder, error));
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, cancel, decoder) == 0);
    wm_status status = WM_OK;
    for (int more = 1; more != 0 && status == WM_OK;) status = wm_decoder_step(decoder, 1, &more, NULL);
    CHECK(pthread_join(thread, NULL) == 0);
    int more = 0;
    FAILS(WM_CANCELLED, "cancelled", wm_decoder_step(decoder, 1, &more, error));
    wm_decoder_free(decoder);
}

void threads_suite(void) {
    two(with_its_own, "examples/sort/capture", "examples/sort/capture-aarch64");
    wm_options* options = wm_options_new();
    OK(wm_options_set(options, "symbols", at("examples/sort/sort.elf"), error));
    wm_capture* capture = NULL;
    OK(wm_open(at("examples/sort/capture"), options, &capture, error));
    wm_options_free(options);
    two(with_a_shared_one, capture, capture);
    another_thread_cancels(capture);
    wm_close(capture);
}
