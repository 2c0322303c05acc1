/* Executed instructions through the model of a unit, and its trace through a decoder: what comes out is what went in.
 * The instructions are those that QEMU executed, from the recordings of examples/sort. */
#include "check.h"

enum { most = 100000 };

struct run {
    wm_model* model;
    const unsigned char* code;
    uint64_t base;
    size_t size;
    uint64_t executed, exceptions;
};

static uint32_t word(const struct run* run, uint64_t address, unsigned bytes) {
    CHECK(address >= run->base && address + bytes <= run->base + run->size);
    const unsigned char* b = run->code + (address - run->base);
    const uint32_t low = (uint32_t)(b[0] | b[1] << 8);
    return bytes == 2 ? low : low | (uint32_t)(b[2] | b[3] << 8) << 16;
}

static void execute(struct run* run, const wm_block* block, int taken) {
    const int is_thumb = block->isa == WM_T32;
    for (uint64_t address = block->start; address < block->start + block->bytes;) {
        wm_executed one = {address, 0, 0, block->isa, 0, 0};
        const uint32_t half = is_thumb ? word(run, address, 2) : 0;
        const unsigned bytes = is_thumb && half < 0xe800u ? 2 : 4;
        one.opcode = !is_thumb ? word(run, address, 4) : bytes == 2 ? half : half << 16 | word(run, address + 2, 2);
        if (address + bytes == block->start + block->bytes && !taken) one.flags = WM_CONDITION_FAILED;
        OK(wm_model_execute(run->model, &one, 1, sizeof one, error));
        address += bytes;
        ++run->executed;
    }
}

static int run_again(const wm_flow_batch* batch, void* user) {
    struct run* run = user;
    size_t next = 0;
    for (size_t i = 0; i <= batch->range_count; ++i) {
        for (; next < batch->event_count && batch->events[next].before <= i; ++next) {
            const wm_event* event = &batch->events[next];
            if (event->kind != WM_EVENT_EXCEPTION) continue;
            CHECK((event->flags & WM_EVENT_HAS_ADDRESS) != 0);
            OK(wm_model_exception(run->model, "supervisor call", event->address, WM_NOT_RECORDED, WM_A32, 0, error));
            ++run->exceptions;
        }
        if (i < batch->range_count)
            execute(run, &batch->blocks[batch->ranges[i].edge / 2], (int)(batch->ranges[i].edge & 1));
    }
    return 0;
}

static story decoded(const wm_capture* capture) {
    wm_decoder* decoder = NULL;
    story collected = NEW_STORY;
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_flow(decoder, collect, &collected);
    OK(wm_decoder_run(decoder, error));
    wm_decoder_free(decoder);
    return collected;
}

static void goes_round(const char* unit, const char* folder, const char* code, uint64_t base, size_t offset,
                       const char* const* settings) {
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, code);
    size_t size = 0;
    unsigned char* file = read_file(at(path), &size);
    struct run run = {NULL, file + offset, base, size - offset, 0, 0};
    OK(wm_model_new(unit, settings, &run.model, error));
    if (strcmp(unit, "ptm") != 0) {
        const wm_core_state state = {sizeof state, 1, 0, 0, 1, 0, 0, 0};
        OK(wm_model_state(run.model, &state, error));
    }

    wm_capture* recorded = NULL;
    OK(wm_open(at(folder), NULL, &recorded, error));
    const story expected = decoded(recorded);
    wm_decoder* decoder = NULL;
    OK(wm_decoder_new(recorded, &decoder, error));
    wm_decoder_on_flow(decoder, run_again, &run);
    OK(wm_decoder_run(decoder, error));
    wm_decoder_free(decoder);
    wm_close(recorded);
    OK(wm_model_finish(run.model, error));
    CHECK(run.executed == expected.instructions && run.exceptions == expected.exceptions);

    const uint8_t* trace = NULL;
    const size_t bytes = wm_model_take(run.model, &trace);
    CHECK(bytes > 500 && bytes < 20000);
    wm_options* options = wm_options_new();
    OK(wm_options_describe(options, run.model, error));
    OK(wm_options_add_code(options, base, run.code, run.size, error));
    wm_capture* capture = NULL;
    OK(wm_open_live(options, &capture, error));
    wm_options_free(options);
    story collected = NEW_STORY;
    OK(wm_decoder_new(capture, &decoder, error));
    wm_decoder_on_flow(decoder, collect, &collected);
    OK(wm_decoder_feed(decoder, trace, bytes, error));
    OK(wm_decoder_finish(decoder, error));
    wm_decoder_free(decoder);
    wm_close(capture);
    CHECK(wm_model_take(run.model, &trace) == 0);
    wm_model_free(run.model);
    free(file);
    if (collected.range_hash != expected.range_hash) {
        fprintf(stderr, "%s: %" PRIu64 " ranges, %" PRIu64 " instructions; expected %" PRIu64 ", %" PRIu64 "\n", unit,
                collected.ranges, collected.instructions, expected.ranges, expected.instructions);
        exit(1);
    }
    CHECK(collected.exceptions == expected.exceptions && collected.gap_bytes == 0);
}

static wm_status run_two(wm_model* model, uint64_t first, uint32_t opcode, uint64_t second, wm_error** error) {
    const wm_executed two[2] = {{first, 0, opcode, WM_A32, 0, 0}, {second, 0, 0xe1a00000u, WM_A32, 0, 0}};
    return wm_model_execute(model, two, 2, sizeof two[0], error);
}

static void contradictions_are_refused(void) {
    wm_model* model = NULL;
    FAILS(WM_USAGE, "ptm", wm_model_new("no-unit", NULL, &model, error));
    const char* const wrong[] = {"no_setting=1", NULL};
    FAILS(WM_USAGE, "sync_bytes", wm_model_new("ptm", wrong, &model, error));
    const char* const bad[] = {"sync_bytes=many", NULL};
    FAILS(WM_USAGE, "many", wm_model_new("ptm", bad, &model, error));
    const char* const core[] = {"core=z80", NULL};
    FAILS(WM_USAGE, "z80", wm_model_new("ptm", core, &model, error));

    OK(wm_model_new("ptm", NULL, &model, error));
    /* mov r0, r0 is no branch; b 0x8010 goes to 0x8010 or, not taken, 0x8004. */
    FAILS(WM_USAGE, "not a branch", run_two(model, 0x8000, 0xe1a00000u, 0x9000, error));
    wm_model_free(model);
    OK(wm_model_new("ptm", NULL, &model, error));
    FAILS(WM_USAGE, "0x8010", run_two(model, 0x8000, 0xea000002u, 0x9000, error));
    FAILS(WM_USAGE, "IRQ", wm_model_exception(model, "no such exception", 0x8000, 0x18, WM_A32, 0, error));
    OK(wm_model_finish(model, error));
    FAILS(WM_USAGE, "finished", run_two(model, 0x8000, 0xe1a00000u, 0x8004, error));
    wm_model_free(model);
    size_t count = 0;
    while (wm_exception_name(count) != NULL) ++count;
    CHECK(count > 20);
}

/* An ETMv4 in AArch64: nop; b .-4 again and again. */
static size_t loop(wm_model* model, unsigned rounds) {
    for (unsigned i = 0; i < rounds; ++i) {
        const wm_executed two[2] = {{0x1000, 0, 0xd503201fu, WM_A64, 0, 0}, {0x1004, 0, 0x17ffffffu, WM_A64, 0, 0}};
        OK(wm_model_execute(model, two, 2, sizeof two[0], error));
    }
    return wm_model_take(model, NULL);
}

static void signals_forbid_trace(void) {
    wm_model* model = NULL;
    const wm_core_state state = {sizeof state, 1, 0, 0, 1, 0, 0, 0};
    for (int unit = 0; unit < 2; ++unit) {
        OK(wm_model_new(unit == 0 ? "etmv4" : "ete", NULL, &model, error));
        OK(wm_model_state(model, &state, error));
        FAILS(WM_USAGE, "nothing was executed", wm_model_signal(model, "power", 0, error));
        CHECK(loop(model, 500) > 20);
        FAILS(WM_USAGE, "SPNIDEN", wm_model_signal(model, "KEY", 0, error));
        FAILS(WM_USAGE, "0 or 1", wm_model_signal(model, "power", 2, error));
        if (unit == 0) {
            OK(wm_model_signal(model, "NIDEN", 0, error));
            loop(model, 1); /* what was pending */
            CHECK(loop(model, 500) == 0);
            OK(wm_model_signal(model, "DBGEN", 1, error)); /* permits it too */
            CHECK(loop(model, 500) > 20);
        } else {
            FAILS(WM_USAGE, "always traces Non-secure state", wm_model_signal(model, "NIDEN", 0, error));
        }
        static const char* const others[] = {"power", "os_lock"};
        for (int n = 0; n < 2; ++n) {
            OK(wm_model_signal(model, others[n], n, error));
            loop(model, 1);
            CHECK(loop(model, 500) == 0);
            OK(wm_model_signal(model, others[n], 1 - n, error));
            CHECK(loop(model, 500) > 20);
        }
        OK(wm_model_signal(model, "os_lock", WM_SIGNAL_CHECK, error)); /* changes nothing */
        CHECK(loop(model, 500) > 20);
        OK(wm_model_finish(model, error));
        FAILS(WM_USAGE, "finished", wm_model_signal(model, "SPNIDEN", 0, error));
        FAILS(WM_USAGE, "finished", wm_model_signal(model, "power", 0, error));
        wm_model_free(model);
    }
}

void model_suite(void) {
    signals_forbid_trace();
    const char* const ptm[] = {"core=cortex-a15", "cycle_accurate=1", "sync_bytes=256", NULL};
    const char* const ete[] = {"sync_bytes=256", "return_stack=1", NULL};
    goes_round("ptm", "examples/sort/capture", "memory0.bin", 0x10000, 0, ptm);
    goes_round("ptm", "examples/sort/capture", "memory0.bin", 0x10000, 0, NULL);
    goes_round("ete", "examples/sort/capture-aarch64", "code_1.bin", 0x400000, 0x1000, ete);
    contradictions_are_refused();
}
