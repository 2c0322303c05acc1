/* Bytes that are fed as they arrive: with any chunks, the decoder delivers what the whole file gives. */
#include "check.h"

/* Number of places at which the input is cut: fewer with sanitizers, as in support/sanitized.h, which is C++. */
enum { MOST_CUTS =
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
           200
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
           200
#else
           1000
#endif
#else
           1000
#endif
};

enum framing { FRAMED, BARE };

static wm_options* options_for(enum framing framing) {
    wm_options* options = wm_options_new();
    CHECK(options != NULL);
    size_t size = 0;
    unsigned char* code = read_file(at("examples/sort/capture/memory0.bin"), &size);
    OK(wm_options_add_code(options, 0x10000, code, size, error));
    free(code);
    OK(wm_options_set(options, "protocol", "PTM1.1", error));
    OK(wm_options_set(options, "core", "Cortex-A15", error));
    OK(wm_options_set(options, "register", "ETMCR=0x30001000", error));
    OK(wm_options_set(options, "register", "ETMIDR=0x411cf312", error));
    OK(wm_options_set(options, "register", "ETMCCER=0x34c01000", error));
    if (framing == BARE) return options;
    OK(wm_options_set(options, "buffer-format", "coresight", error));
    OK(wm_options_set(options, "trace-id", "0x10", error));
    return options;
}

static story whole(const wm_options* options, const unsigned char* bytes, size_t size) {
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    story collected = NEW_STORY;
    OK(wm_open_memory(bytes, size, "whole", options, &capture, error));
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_flow(decoder, collect, &collected);
    OK(wm_decoder_run(decoder, error));
    wm_decoder_free(decoder);
    wm_close(capture);
    return collected;
}

/* Feeds [0, cut) in chunks of `first` bytes, and the rest in chunks of `then`. */
static story fed(const wm_capture* capture, const unsigned char* bytes, size_t size, size_t cut, size_t first,
                 size_t then) {
    wm_decoder* decoder = NULL;
    story collected = NEW_STORY;
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_flow(decoder, collect, &collected);
    for (size_t done = 0; done < size;) {
        const size_t end = done < cut ? cut : size, most = done < cut ? first : then;
        const size_t count = end - done < most ? end - done : most;
        /* Elsewhere in memory each time, so that bytes that are kept too long are seen. */
        unsigned char* chunk = malloc(count);
        CHECK(chunk != NULL);
        memcpy(chunk, bytes + done, count);
        OK(wm_decoder_feed(decoder, chunk, count, error));
        memset(chunk, 0xee, count);
        free(chunk);
        done += count;
    }
    OK(wm_decoder_feed(decoder, NULL, 0, error));
    OK(wm_decoder_finish(decoder, error));
    OK(wm_decoder_finish(decoder, error));
    FAILS(WM_USAGE, "finished", wm_decoder_feed(decoder, "x", 1, error));
    wm_totals totals = {.struct_bytes = sizeof totals};
    wm_decoder_get_totals(decoder, &totals);
    CHECK(totals.ranges == collected.ranges && totals.instructions == collected.instructions);
    wm_decoder_free(decoder);
    return collected;
}

static void all_chunkings(enum framing framing, const unsigned char* bytes, size_t size, uint64_t least) {
    wm_options* options = options_for(framing);
    const story expected = whole(options, bytes, size);
    CHECK(expected.ranges >= least);
    wm_capture* capture = NULL;
    OK(wm_open_live(options, &capture, error));
    wm_options_free(options);
    const size_t cuts = size < MOST_CUTS ? size : MOST_CUTS;
    for (size_t i = 0; i < cuts + 40; ++i) {
        /* Every size of chunk up to 40, then a cut at every place of the beginning, or spread over the whole. */
        const size_t cut = i < 40 ? 0 : (i - 40) * size / cuts;
        const size_t then = i < 40 ? i + 1 : size;
        const story collected = fed(capture, bytes, size, cut, size, then);
        if (collected.hash != expected.hash || collected.ranges != expected.ranges ||
            collected.events != expected.events) {
            fprintf(stderr,
                    "cut at %zu, chunks of %zu: %" PRIu64 " ranges, %" PRIu64 " events; whole: %" PRIu64 ", %" PRIu64
                    "\n",
                    cut, then, collected.ranges, collected.events, expected.ranges, expected.events);
            exit(1);
        }
    }
    wm_close(capture);
}

/* Chunks of 1 to 40 bytes, then a cut at every place of the beginning, or at places spread over the whole. */
static unsigned char* unframed(const unsigned char* frames, size_t size, size_t* out_size) {
    unsigned char* out = malloc(size);
    CHECK(out != NULL);
    size_t count = 0;
    unsigned id = 0, next = 0;
    for (size_t frame = 0; frame + 16 <= size; frame += 16)
        for (size_t i = 0; i < 15; ++i) {
            unsigned byte = frames[frame + i];
            const unsigned flag = frames[frame + 15] >> (i / 2) & 1u;
            if (i % 2 == 0 && (byte & 1u) != 0) {
                next = byte >> 1;
                /* With the flag, the byte after it is still of the old source. */
                if (flag == 0 || i == 14) {
                    id = next;
                } else {
                    if (id == 0x10) out[count++] = frames[frame + i + 1];
                    id = next;
                    ++i;
                }
                continue;
            }
            if (i % 2 == 0) byte |= flag;
            if (id == 0x10) out[count++] = (unsigned char)byte;
        }
    *out_size = count;
    return out;
}

struct latency {
    uint64_t ranges, seen_after;
};
static int count_ranges(const wm_flow_batch* batch, void* user) {
    ((struct latency*)user)->ranges += batch->range_count;
    return 0;
}

/* Fed bytes are decoded at once, not at the end. */
static void is_live(const unsigned char* bytes, size_t size) {
    wm_options* options = options_for(FRAMED);
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    struct latency latency = {0, 0};
    OK(wm_open_live(options, &capture, error));
    wm_options_free(options);
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_flow(decoder, count_ranges, &latency);
    OK(wm_decoder_feed(decoder, bytes, size / 2, error));
    const uint64_t half = latency.ranges;
    OK(wm_decoder_feed(decoder, bytes + size / 2, size - size / 2, error));
    const uint64_t most = latency.ranges;
    OK(wm_decoder_finish(decoder, error));
    CHECK(half > 400 && most > half && latency.ranges - most < 50);
    wm_decoder_free(decoder);
    wm_close(capture);
}

void live_suite(void) {
    size_t size = 0, bare_size = 0;
    unsigned char* framed = read_file(at("examples/sort/capture/trace.bin"), &size);
    all_chunkings(FRAMED, framed, size, 1382);
    is_live(framed, size);
    unsigned char* bare = unframed(framed, size, &bare_size);
    all_chunkings(BARE, bare, bare_size, 1382);
    /* Damage: bytes that are no packet, and bytes that are missing. */
    for (size_t i = 100; i < bare_size; i += 157) bare[i] ^= (unsigned char)(0x21u + i);
    memmove(bare + 700, bare + 709, bare_size - 709);
    all_chunkings(BARE, bare, bare_size - 9, 100);
    for (size_t i = 90; i + 1 < size; i += 331) framed[i] ^= (unsigned char)(1u + i);
    all_chunkings(FRAMED, framed, size, 10);
    /* Bytes under IDs that no source can have, across the ends of chunks. */
    for (size_t i = 0; i < 64; ++i) framed[1000 + i] = (unsigned char)(i * 37 + 11);
    all_chunkings(FRAMED, framed, size, 10);
    free(bare);
    free(framed);
}
