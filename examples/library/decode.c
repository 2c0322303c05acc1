/* Decodes the program flow of a capture: decode CAPTURE [NAME=VALUE ...], with options such as image=program.elf. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <waymark.h>

static int fail(wm_error* error) {
    fprintf(stderr, "%s\n", wm_error_message(error));
    wm_error_free(error);
    return 1;
}

/* Called with a thousand ranges at a time, and what happened among them. */
static int on_flow(const wm_flow_batch* batch, void* user) {
    uint64_t* taken = user;
    for (size_t i = 0; i < batch->range_count; ++i) *taken += batch->ranges[i].edge & 1;
    for (size_t i = 0; i < batch->event_count; ++i) {
        const wm_event* event = &batch->events[i];
        if (event->kind == WM_EVENT_EXCEPTION)
            printf("%s: %s, return to %#" PRIx64 "\n", wm_source_name(batch->source), event->name, event->address);
    }
    return 0;
}

int main(int argc, char** argv) {
    wm_error* error = NULL;
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    wm_options* options = wm_options_new();
    uint64_t taken = 0;
    if (argc < 2) return fprintf(stderr, "usage: decode CAPTURE [NAME=VALUE ...]\n"), 2;

    for (int i = 2; i < argc; ++i) {
        char* value = strchr(argv[i], '=');
        if (value == NULL) return fprintf(stderr, "%s: expected NAME=VALUE\n", argv[i]), 2;
        *value++ = '\0';
        if (wm_options_set(options, argv[i], value, &error) != WM_OK) return fail(error);
    }
    if (wm_open(argv[1], options, &capture, &error) != WM_OK) return fail(error);
    wm_options_free(options);
    for (size_t i = 0; i < wm_source_count(capture); ++i) {
        const wm_source* source = wm_source_at(capture, i);
        printf("%s: %s of a %s\n", wm_source_name(source), wm_source_type(source), wm_source_core_type(source));
    }

    if (wm_decoder_new(capture, &decoder, &error) != WM_OK) return fail(error);
    wm_decoder_on_flow(decoder, on_flow, &taken);
    if (wm_decoder_run(decoder, &error) != WM_OK) return fail(error);

    wm_totals totals = {.struct_bytes = sizeof totals};
    wm_decoder_get_totals(decoder, &totals);
    printf("%" PRIu64 " instructions in %" PRIu64 " ranges, %" PRIu64 " branches taken\n", totals.instructions,
           totals.ranges, taken);
    for (size_t i = 0; i < wm_decoder_damage_count(decoder); ++i)
        fprintf(stderr, "%s\n", wm_decoder_damage(decoder, i, NULL));
    wm_decoder_free(decoder);
    wm_close(capture);
    return totals.ranges == 0;
}
