/* Decodes trace while it comes, from standard input: live NAME=VALUE ..., with options such as protocol=ptm1.1. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <waymark.h>

static int fail(wm_error* error) {
    fprintf(stderr, "%s\n", wm_error_message(error));
    wm_error_free(error);
    return 1;
}

/* Called before wm_decoder_feed returns, with what the bytes fed so far have shown. */
static int on_flow(const wm_flow_batch* batch, void* user) {
    (void)user;
    if (batch->range_count == 0) return 0;
    const wm_block* last = &batch->blocks[batch->ranges[batch->range_count - 1].edge / 2];
    wm_symbol symbol = {.struct_bytes = sizeof symbol};
    const char* name = wm_symbol_at(batch->source, last->start, &symbol, NULL) == WM_OK ? symbol.name : "?";
    printf("%zu ranges, now at %#" PRIx64 " %s\n", batch->range_count, last->start, name);
    return 0;
}

int main(int argc, char** argv) {
    wm_error* error = NULL;
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    wm_options* options = wm_options_new();

    for (int i = 1; i < argc; ++i) {
        char* value = strchr(argv[i], '=');
        if (value == NULL) return fprintf(stderr, "%s: expected NAME=VALUE\n", argv[i]), 2;
        *value++ = '\0';
        if (wm_options_set(options, argv[i], value, &error) != WM_OK) return fail(error);
    }
    if (wm_open_live(options, &capture, &error) != WM_OK) return fail(error);
    wm_options_free(options);
    if (wm_decoder_new(capture, &decoder, &error) != WM_OK) return fail(error);
    wm_decoder_on_flow(decoder, on_flow, NULL);

    char bytes[512];
    for (ssize_t count; (count = read(STDIN_FILENO, bytes, sizeof bytes)) > 0;)
        if (wm_decoder_feed(decoder, bytes, (size_t)count, &error) != WM_OK) return fail(error);
    if (wm_decoder_finish(decoder, &error) != WM_OK) return fail(error);

    wm_totals totals = {.struct_bytes = sizeof totals};
    wm_decoder_get_totals(decoder, &totals);
    printf("%" PRIu64 " instructions in %" PRIu64 " ranges\n", totals.instructions, totals.ranges);
    wm_decoder_free(decoder);
    wm_close(capture);
    return totals.ranges == 0;
}
