/* Wrong use and wrong files: every call says what is wrong, and nothing is lost. */
#include "check.h"

static int stop_at_third(const wm_flow_batch* batch, void* user) {
    (void)batch;
    return ++*(int*)user == 3;
}
static int never_called(const wm_packet_batch* batch, void* user) {
    (void)batch;
    (void)user;
    exit(1);
}
static int stop(uint64_t bytes, uint64_t of, void* user) {
    ++*(int*)user;
    return bytes > 0 && of > 0;
}

static void arguments(void) {
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    wm_options* options = wm_options_new();
    FAILS(WM_USAGE, "path", wm_open(NULL, NULL, &capture, error));
    FAILS(WM_USAGE, "capture", wm_open("x", NULL, NULL, error));
    FAILS(WM_USAGE, "capture", wm_decoder_new(NULL, &decoder, error));
    FAILS(WM_USAGE, "options", wm_options_set(NULL, "image", "x", error));
    FAILS(WM_USAGE, "trace-id", wm_options_set(options, "no-option", "x", error));
    FAILS(WM_USAGE, "NAME=VALUE", wm_options_set(options, "register", "ETMCR", error));
    FAILS(WM_USAGE, "etmcr", wm_options_set(options, "etmcr", "many", error));
    FAILS(WM_USAGE, "bytes of code", wm_options_add_code(options, UINT64_MAX, "xy", 2, error));
    CHECK(wm_options_set(options, "no-option", "x", NULL) == WM_USAGE);
    wm_options_free(options);
    wm_options_free(NULL);
    wm_close(NULL);
    wm_decoder_free(NULL);
    wm_answers_free(NULL);
    wm_table_free(NULL);
    wm_model_free(NULL);
    wm_error_free(NULL);
    CHECK(wm_error_status(NULL) == WM_OK && strcmp(wm_error_message(NULL), "") == 0);
    CHECK(wm_version()[0] >= '0' && wm_version()[0] <= '9');
}

static void files(void) {
    wm_capture* capture = NULL;
    FAILS(WM_NOT_FOUND, "no/such", wm_open("no/such/capture", NULL, &capture, error));
    FAILS(WM_NOT_FOUND, "snapshot.ini", wm_open(at("examples"), NULL, &capture, error));
    FAILS(WM_USAGE, "ELF", wm_open(at("examples/sort/sort.elf"), NULL, &capture, error));
    FAILS(WM_USAGE, "a buffer of CoreSight frames",
          wm_open(at("examples/sort/capture/trace.bin"), NULL, &capture, error));
    /* The head of a perf.data file without the rest. */
    FAILS(WM_BAD_FORMAT, "header is cut", wm_open_memory("PERFILE2", 8, "perf", NULL, &capture, error));
    /* Messages contain the given name, not a path inside Waymark. */
    const char text[] = "this is a text and contains no trace\n";
    FAILS(WM_USAGE, "some text", wm_open_memory(text, sizeof text - 1, "some text", NULL, &capture, error));
    /* Options are called as wm_options_set knows them. */
    const unsigned char bare[] = {0x00, 0x00, 0x00, 0x00, 0x00, 0x80, 0x84, 0x86, 0x84};
    FAILS(WM_USAGE, "the option protocol", wm_open_memory(bare, sizeof bare, "bare trace", NULL, &capture, error));
    const unsigned char damaged[] = "WMANSWER\001\000\000\000damaged";
    wm_error* error = NULL;
    CHECK(wm_open_memory(damaged, sizeof damaged, "damaged", NULL, &capture, &error) != WM_OK);
    CHECK(strstr(wm_error_message(error), "/proc/") == NULL);
    wm_error_free(error);
    CHECK(capture == NULL);
}

static void live(void) {
    wm_capture* capture = NULL;
    wm_options* options = wm_options_new();
    FAILS(WM_USAGE, "protocol", wm_open_live(NULL, &capture, error));
    OK(wm_options_set(options, "protocol", "Z80", error));
    FAILS(WM_USAGE, "Z80", wm_open_live(options, &capture, error));
    OK(wm_options_set(options, "protocol", "ptm1.1", error));
    OK(wm_options_set(options, "buffer-format", "coresight", error));
    FAILS(WM_USAGE, "trace-id", wm_open_live(options, &capture, error));
    OK(wm_options_set(options, "trace-id", "0x70", error));
    FAILS(WM_USAGE, "0x70", wm_open_live(options, &capture, error));
    wm_options_free(options);
    options = wm_options_new();
    OK(wm_options_set(options, "protocol", "etmv4", error));
    OK(wm_options_set(options, "core", "Cortx-M33", error));
    FAILS(WM_USAGE, "the option core 'Cortx-M33'", wm_open_live(options, &capture, error));
    wm_options_free(options);
}

struct within {
    wm_decoder* decoder;
    unsigned calls;
};
static int runs_itself(const wm_flow_batch* batch, void* user) {
    (void)batch;
    struct within* within = user;
    int more = 7;
    ++within->calls;
    FAILS(WM_USAGE, "wm_decoder_run: a callback", wm_decoder_run(within->decoder, error));
    FAILS(WM_USAGE, "wm_decoder_step: a callback", wm_decoder_step(within->decoder, 10, &more, error));
    FAILS(WM_USAGE, "wm_decoder_feed: a callback", wm_decoder_feed(within->decoder, "x", 1, error));
    FAILS(WM_USAGE, "wm_decoder_finish: a callback", wm_decoder_finish(within->decoder, error));
    CHECK(more == 0);
    return 0;
}

static void order_of_calls(void) {
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    int calls = 0, more = 0;
    OK(wm_open(at("examples/sort/capture"), NULL, &capture, error));
    OK(wm_decoder_new(capture, &decoder, error));
    FAILS(WM_NOT_FOUND, "PTM_0", wm_decoder_select(decoder, "0x33", error));
    FAILS(WM_USAGE, "wm_open_live", wm_decoder_feed(decoder, "x", 1, error));
    FAILS(WM_USAGE, "wm_open_live", wm_decoder_finish(decoder, error));
    wm_decoder_on_flow(decoder, stop_at_third, &calls);
    wm_decoder_on_packets(decoder, never_called, NULL);
    FAILS(WM_USAGE, "either", wm_decoder_run(decoder, error));
    wm_decoder_on_packets(decoder, NULL, NULL);
    /* A callback that stops is not called again. */
    wm_status status = WM_OK;
    for (more = 1; more != 0 && status == WM_OK;) status = wm_decoder_step(decoder, 100, &more, NULL);
    CHECK(status == WM_CANCELLED && calls == 3);
    FAILS(WM_CANCELLED, "cancelled", wm_decoder_run(decoder, error));
    wm_decoder_free(decoder);

    calls = 0;
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_progress(decoder, stop, &calls);
    FAILS(WM_CANCELLED, "cancelled", wm_decoder_run(decoder, error));
    CHECK(calls == 1);
    wm_decoder_free(decoder);

    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_cancel(decoder);
    FAILS(WM_CANCELLED, "cancelled", wm_decoder_run(decoder, error));
    wm_decoder_free(decoder);

    /* A decoder decodes only once, and not within itself. */
    OK(wm_decoder_new(capture, &decoder, error));
    struct within within = {decoder, 0};
    wm_decoder_on_flow(decoder, runs_itself, &within);
    OK(wm_decoder_run(decoder, error));
    CHECK(within.calls > 1);
    FAILS(WM_USAGE, "decodes only once", wm_decoder_run(decoder, error));
    FAILS(WM_USAGE, "decodes only once", wm_decoder_step(decoder, 10, &more, error));
    CHECK(more == 0);
    wm_decoder_free(decoder);

    /* A decoder that is freed in the middle of its work. */
    OK(wm_decoder_new(capture, &decoder, error));
    OK(wm_decoder_step(decoder, 10, &more, error));
    CHECK(more == 1);
    wm_decoder_free(decoder);
    wm_close(capture);
}

/* Structures of earlier versions were shorter: no more is filled than there is room. */
static void shorter_structures(void) {
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    OK(wm_open(at("examples/sort/capture"), NULL, &capture, error));
    OK(wm_decoder_new(capture, &decoder, error));
    OK(wm_decoder_run(decoder, error));
    wm_totals totals;
    memset(&totals, 0xee, sizeof totals);
    totals.struct_bytes = offsetof(wm_totals, packets);
    wm_decoder_get_totals(decoder, &totals);
    CHECK(totals.struct_bytes == offsetof(wm_totals, packets) && totals.bytes == 1939);
    CHECK(totals.packets == UINT64_C(0xeeeeeeeeeeeeeeee));
    wm_decoder_free(decoder);
    wm_close(capture);
}

void errors_suite(void) {
    arguments();
    files();
    live();
    order_of_calls();
    shorter_structures();
}
