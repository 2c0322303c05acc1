/* Captures that are opened from files and from memory; expectations from what QEMU executed (truth.txt). */
#include "check.h"

/* Of both kinds of files: `range_hash 15473…`, and `source ETE_1 ranges 1447 … hash 0x9c9f…`. */
static uint64_t truth(const char* folder, const char* name) {
    char path[256], line[512];
    snprintf(path, sizeof path, "%s/truth.txt", folder);
    FILE* file = fopen(at(path), "r");
    CHECK(file != NULL);
    while (fgets(line, sizeof line, file) != NULL) {
        if (line[0] == '#') continue;
        for (char* word = strtok(line, " \n"); word != NULL; word = strtok(NULL, " \n")) {
            if (strcmp(word, name) != 0 && (strncmp(name, "range_", 6) != 0 || strcmp(word, name + 6) != 0)) continue;
            fclose(file);
            return strtoull(strtok(NULL, " \n"), NULL, 0);
        }
    }
    fprintf(stderr, "%s has no %s\n", path, name);
    exit(1);
}

static void decodes_to_the_truth(const char* folder) {
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    story collected = NEW_STORY;
    OK(wm_open(at(folder), NULL, &capture, error));
    CHECK(wm_capture_get_kind(capture) == WM_CAPTURE_FLOW && wm_source_count(capture) == 1);
    const wm_source* source = wm_source_at(capture, 0);
    CHECK(wm_source_has_flow(source) && wm_source_trace_id(source) == 0x10 && wm_source_at(capture, 1) == NULL);
    OK(wm_decoder_new(capture, &decoder, error));
    OK(wm_decoder_select(decoder, "0x10", error));
    wm_decoder_on_flow(decoder, collect, &collected);
    OK(wm_decoder_run(decoder, error));
    CHECK(collected.ranges == truth(folder, "ranges"));
    CHECK(collected.instructions == truth(folder, "range_instructions"));
    CHECK(collected.range_hash == truth(folder, "range_hash"));
    wm_totals totals = {.struct_bytes = sizeof totals};
    wm_decoder_get_totals(decoder, &totals);
    CHECK(totals.ranges == collected.ranges && totals.instructions == collected.instructions && totals.packets > 0);
    CHECK(totals.exceptions == collected.exceptions && totals.gap_bytes == collected.gap_bytes);
    CHECK(wm_decoder_damage_count(decoder) == 0 && wm_decoder_damage(decoder, 0, NULL) == NULL);
    wm_decoder_free(decoder);

    /* In steps of any size, and on several threads, it is the same. */
    for (unsigned jobs = 1; jobs <= 3; jobs += 2)
        for (size_t step = 1; step < 5000; step = step * 3 + 1) {
            story again = NEW_STORY;
            OK(wm_decoder_new(capture, &decoder, error));
            wm_decoder_set_jobs(decoder, jobs);
            wm_decoder_on_flow(decoder, collect, &again);
            for (int more = 1; more != 0;) OK(wm_decoder_step(decoder, step, &more, error));
            CHECK(again.hash == collected.hash && again.ranges == collected.ranges && again.events == collected.events);
            wm_decoder_free(decoder);
        }
    wm_close(capture);
}

/* Memory for ranges, and the statements of batches about them. */
struct kept {
    size_t room_ranges; /* 0: the requested number */
    size_t most_rooms;
    wm_range* rooms[600];
    size_t room_sizes[600], room_count;
    wm_flow_batch batches[6000]; /* those with ranges */
    wm_block blocks[4096];
    size_t batch_count, new_places;
    story at_once;
};

static wm_range* give_room(const wm_source* source, size_t* count, void* user) {
    struct kept* kept = user;
    CHECK(wm_source_has_flow(source) && *count > 0 && kept->room_count < sizeof kept->rooms / sizeof *kept->rooms);
    if (kept->room_count == kept->most_rooms) return NULL;
    if (kept->room_ranges > *count) *count = kept->room_ranges;
    wm_range* room = malloc(*count * sizeof *room);
    CHECK(room != NULL);
    memset(room, 0xee, *count * sizeof *room);
    kept->room_sizes[kept->room_count] = *count;
    kept->rooms[kept->room_count++] = room;
    return room;
}

static int keep(const wm_flow_batch* batch, void* user) {
    struct kept* kept = user;
    collect(batch, &kept->at_once);
    if (batch->range_count == 0) return 0;
    const wm_range* room = kept->rooms[kept->room_count - 1];
    CHECK(batch->ranges >= room && batch->ranges + batch->range_count <= room + kept->room_sizes[kept->room_count - 1]);
    CHECK(kept->batch_count < sizeof kept->batches / sizeof *kept->batches);
    const wm_flow_batch* before = kept->batch_count == 0 ? NULL : &kept->batches[kept->batch_count - 1];
    kept->new_places += before == NULL || before->ranges + before->range_count != batch->ranges;
    CHECK(before == NULL || before->base == batch->base);
    CHECK(batch->block_count <= sizeof kept->blocks / sizeof *kept->blocks);
    memcpy(kept->blocks, batch->blocks, batch->block_count * sizeof *batch->blocks);
    kept->batches[kept->batch_count++] = *batch;
    return 0;
}

/* Ranges stay in the memory that the program gives, one batch behind the other. */
static void ranges_are_kept(unsigned jobs, size_t step, size_t room_ranges) {
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    static struct kept kept;
    kept = (struct kept){.room_ranges = room_ranges, .most_rooms = SIZE_MAX, .at_once = NEW_STORY};
    story expected = NEW_STORY, later = NEW_STORY;
    OK(wm_open(at("examples/sort/capture"), NULL, &capture, error));
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_flow(decoder, collect, &expected);
    OK(wm_decoder_run(decoder, error));
    wm_decoder_free(decoder);

    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_set_jobs(decoder, jobs);
    wm_decoder_on_flow(decoder, keep, &kept);
    wm_decoder_set_room(decoder, give_room, &kept);
    for (int more = 1; more != 0;) OK(wm_decoder_step(decoder, step, &more, error));
    CHECK(kept.at_once.hash == expected.hash && kept.at_once.events == expected.events);
    CHECK(kept.new_places <= kept.room_count && (room_ranges < 2000 || kept.new_places == 1));
    for (size_t i = 0; i < kept.batch_count; ++i) {
        kept.batches[i].blocks = kept.blocks;
        kept.batches[i].event_count = 0;
        collect(&kept.batches[i], &later);
    }
    CHECK(later.range_hash == expected.range_hash && later.ranges == expected.ranges);
    wm_decoder_free(decoder);
    wm_close(capture);
    for (size_t i = 0; i < kept.room_count; ++i) free(kept.rooms[i]);
}

static void no_room_cancels(unsigned jobs) {
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    for (size_t rooms = 0; rooms < 2; ++rooms) {
        static struct kept kept;
        kept = (struct kept){.most_rooms = rooms, .at_once = NEW_STORY};
        OK(wm_open(at("examples/sort/capture"), NULL, &capture, error));
        OK(wm_decoder_new(capture, &decoder, error));
        wm_decoder_set_jobs(decoder, jobs);
        wm_decoder_on_flow(decoder, keep, &kept);
        wm_decoder_set_room(decoder, give_room, &kept);
        FAILS(WM_CANCELLED, "cancelled", wm_decoder_run(decoder, error));
        CHECK(kept.room_count == rooms && kept.at_once.ranges < 1382);
        wm_decoder_free(decoder);
        wm_close(capture);
        for (size_t i = 0; i < kept.room_count; ++i) free(kept.rooms[i]);
    }
}

struct sums {
    uint64_t ranges, instructions, calls;
};
static int on_counts(const wm_counts* counts, void* user) {
    struct sums* sums = user;
    for (size_t edge = 0; edge < counts->times_count; ++edge) {
        sums->ranges += counts->times[edge];
        sums->instructions += counts->times[edge] * counts->blocks[edge / 2].instructions;
    }
    ++sums->calls;
    return 0;
}

static void counts_are_those_of_ranges(void) {
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    struct sums sums = {0, 0, 0};
    OK(wm_open(at("examples/sort/capture"), NULL, &capture, error));
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_counts(decoder, on_counts, &sums);
    OK(wm_decoder_run(decoder, error));
    CHECK(sums.calls == 1 && sums.ranges == truth("examples/sort/capture", "ranges"));
    CHECK(sums.instructions == truth("examples/sort/capture", "range_instructions"));
    wm_decoder_free(decoder);
    wm_close(capture);
}

struct listed {
    uint64_t packets, bytes, next, isyncs;
};
static int on_packets(const wm_packet_batch* batch, void* user) {
    struct listed* listed = user;
    for (size_t i = 0; i < batch->packet_count; ++i) {
        const wm_packet* packet = &batch->packets[i];
        CHECK(packet->offset == listed->next && packet->bytes > 0);
        CHECK(packet->name[0] != '\0' && packet->fields != NULL && packet->meaning != NULL);
        listed->next = packet->offset + packet->bytes;
        listed->packets += packet->is_gap == 0;
        listed->isyncs += strcmp(packet->name, "I-SYNC") == 0;
    }
    return 0;
}

static void packets_cover_the_stream(void) {
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    struct listed listed = {0, 0, 0, 0};
    OK(wm_open(at("examples/sort/capture"), NULL, &capture, error));
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_packets(decoder, on_packets, &listed);
    OK(wm_decoder_run(decoder, error));
    wm_totals totals = {.struct_bytes = sizeof totals};
    wm_decoder_get_totals(decoder, &totals);
    CHECK(listed.next == totals.bytes && listed.packets == totals.packets && listed.isyncs > 0);
    wm_decoder_free(decoder);
    wm_close(capture);
}

static wm_options* bare_options(void) {
    wm_options* options = wm_options_new();
    CHECK(options != NULL);
    OK(wm_options_set(options, "protocol", "ptm1.1", error));
    OK(wm_options_set(options, "buffer-format", "coresight", error));
    OK(wm_options_set(options, "etmcr", "0x30001000", error));
    OK(wm_options_set(options, "etmidr", "0x411cf312", error));
    OK(wm_options_set(options, "register", "ETMCCER=0x34c01000", error));
    OK(wm_options_set(options, "trace-id", "0x10", error));
    return options;
}

static uint64_t ranges_of(const wm_capture* capture) {
    wm_decoder* decoder = NULL;
    story collected = NEW_STORY;
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_flow(decoder, collect, &collected);
    OK(wm_decoder_run(decoder, error));
    wm_decoder_free(decoder);
    CHECK(collected.ranges == 0 || collected.range_hash == truth("examples/sort/capture", "range_hash"));
    return collected.ranges;
}

static size_t known_calls = 0;
static size_t sort_code(uint64_t address, unsigned space, void* into, size_t bytes, void* user) {
    static const uint64_t base = 0x10000;
    size_t size = 0;
    unsigned char* code = read_file(at("examples/sort/capture/memory0.bin"), &size);
    CHECK(user == &known_calls && space <= 7);
    ++known_calls;
    size_t count = 0;
    if (address >= base && address < base + size) {
        count = (size_t)(base + size - address);
        if (count > bytes) count = bytes;
        memcpy(into, code + (address - base), count);
    }
    free(code);
    return count;
}

/* The same trace as a bare file and in memory, with its code as a file, as bytes, and from a callback. */
static void code_comes_in_every_way(void) {
    const uint64_t expected = truth("examples/sort/capture", "ranges");
    size_t size = 0, code_size = 0;
    unsigned char* trace = read_file(at("examples/sort/capture/trace.bin"), &size);
    unsigned char* code = read_file(at("examples/sort/capture/memory0.bin"), &code_size);
    for (int way = 0; way < 4; ++way) {
        wm_options* options = bare_options();
        char image[1100];
        snprintf(image, sizeof image, "%s", at("examples/sort/sort.elf"));
        if (way == 0) OK(wm_options_set(options, "image", image, error));
        if (way == 1) OK(wm_options_add_code(options, 0x10000, code, code_size, error));
        if (way == 2) wm_options_set_code_callback(options, sort_code, &known_calls);
        wm_capture* capture = NULL;
        OK(wm_open(at("examples/sort/capture/trace.bin"), options, &capture, error));
        const uint64_t from_file = ranges_of(capture);
        if (from_file != (way == 3 ? 0 : expected)) fprintf(stderr, "way %d: %" PRIu64 " ranges\n", way, from_file);
        CHECK(from_file == (way == 3 ? 0 : expected));
        wm_close(capture);
        OK(wm_open_memory(trace, size, "the trace", options, &capture, error));
        CHECK(ranges_of(capture) == (way == 3 ? 0 : expected));
        wm_close(capture);
        wm_options_free(options);
    }
    CHECK(known_calls > 0 && known_calls < 100);
    free(trace);
    free(code);
}

static void symbols_are_found(void) {
    wm_capture* capture = NULL;
    wm_options* options = wm_options_new();
    OK(wm_options_set(options, "symbols", at("examples/sort/sort.elf"), error));
    OK(wm_open(at("examples/sort/capture"), options, &capture, error));
    wm_options_free(options);
    const wm_source* source = wm_source_at(capture, 0);
    uint64_t address = 0;
    OK(wm_symbol_address(source, "quicksort", &address, error));
    wm_symbol symbol = {.struct_bytes = sizeof symbol};
    OK(wm_symbol_at(source, address + 4, &symbol, error));
    CHECK(strcmp(symbol.name, "quicksort") == 0 && symbol.address == address && symbol.offset == 4 && symbol.bytes > 4);
    FAILS(WM_NOT_FOUND, "0x1", wm_symbol_at(source, 1, &symbol, error));
    FAILS(WM_NOT_FOUND, "no_such_name", wm_symbol_address(source, "no_such_name", &address, error));
    wm_close(capture);
}

static int one_sample(const wm_sample_batch* batch, void* user_count) {
    CHECK(batch->count == 1 && batch->cpu == WM_NOBODY && batch->midr == 0x410fd0c0);
    CHECK(batch->pc[0] == 0x402010 && batch->exception_level[0] == 0 && batch->total_latency[0] == 12);
    CHECK(batch->present[0] == (WM_SAMPLE_PC | WM_SAMPLE_OPERATION | WM_SAMPLE_TOTAL_LATENCY | WM_SAMPLE_EVENTS));
    CHECK(batch->events[0] == 0x16 && batch->operation_class[0] == 1 && batch->operation_type[0] == 0);
    ++*(int*)user_count;
    return 0;
}

/* A bare profiling buffer, whose protocol is given as an option, since its bytes do not show it. */
static void a_profiling_buffer_has_samples(void) {
    /* A record by the description of packets: address, operation type, total latency, events, end. */
    static const unsigned char record[] = {0xb0, 0x10, 0x20, 0x40, 0x00, 0x00, 0x00, 0x00, 0x80, 0x49,
                                           0x00, 0x98, 0x0c, 0x00, 0x52, 0x16, 0x00, 0x01, 0x00};
    wm_capture* capture = NULL;
    wm_decoder* decoder = NULL;
    wm_options* options = wm_options_new();
    wm_answers* answers = NULL;
    int count = 0;
    OK(wm_options_set(options, "protocol", "spe", error));
    OK(wm_options_set(options, "midr", "0x410fd0c0", error));
    OK(wm_open_memory(record, sizeof record, "the buffer", options, &capture, error));
    CHECK(wm_capture_get_kind(capture) == WM_CAPTURE_SAMPLES && wm_source_count(capture) == 0);
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_samples(decoder, one_sample, &count);
    OK(wm_decoder_run(decoder, error));
    CHECK(count == 1);
    wm_decoder_free(decoder);
    wm_close(capture);
    OK(wm_options_set(options, "kallsyms", "no/such/kallsyms", error));
    OK(wm_open_memory(record, sizeof record, "the buffer", options, &capture, error));
    FAILS(WM_USAGE, "no/such/kallsyms", wm_answers_of(capture, WM_ANSWERS_CALLS, 1, NULL, NULL, &answers, error));
    wm_close(capture);
    FAILS(WM_NOT_FOUND, "no/such/buffer", wm_open("no/such/buffer", options, &capture, error));
    FAILS(WM_USAGE, "sort.elf", wm_open(at("examples/sort/sort.elf"), options, &capture, error));
    wm_options_free(options);
}

void decode_suite(void) {
    a_profiling_buffer_has_samples();
    decodes_to_the_truth("examples/sort/capture");
    decodes_to_the_truth("examples/sort/capture-aarch64");
    for (unsigned jobs = 1; jobs <= 3; jobs += 2) {
        ranges_are_kept(jobs, 4096, 0);
        ranges_are_kept(jobs, 4096, 1 << 16);
        ranges_are_kept(jobs, 7, 1 << 16);
        ranges_are_kept(jobs, 100, 1100);
        no_room_cancels(jobs);
    }
    counts_are_those_of_ranges();
    packets_cover_the_stream();
    code_comes_in_every_way();
    symbols_are_found();
}
