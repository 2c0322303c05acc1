/* Units that are programmed by registers: trace buffers, ports and links, SPE, the DPU. */
#include "check.h"

static void write_all(wm_unit* unit, const char* const* names, const uint64_t* values) {
    for (size_t i = 0; names[i] != NULL; ++i) OK(wm_unit_write(unit, names[i], values[i], error));
}
static uint64_t value_of(wm_unit* unit, const char* name) {
    uint64_t value = 0;
    OK(wm_unit_read(unit, name, &value, error));
    return value;
}
static int level_of(wm_unit* unit, const char* name) {
    int level = 2;
    OK(wm_unit_line(unit, name, &level, error));
    CHECK(level == 0 || level == 1);
    return level;
}

/* docs/spec/tmc.md: the trigger counter stops the capture, and the buffer holds what is around the trigger. */
static void buffers_stop_at_their_trigger(void) {
    static const char* const kinds[] = {"etb", "tmc-etb", "tmc-etf", "tmc-etr"};
    static const char* const settings[] = {"memory_bytes=256", NULL};
    static const char* const names[] = {"FFCR", "TRG", "CTL", NULL};
    static const uint64_t values[] = {0x2003, 7, 1}; /* EnFt, EnTI, StopOnTrigEvt; 8 words; TraceCaptEn */
    uint8_t piece[20];
    for (size_t i = 0; i < sizeof piece; ++i) piece[i] = (uint8_t)(i + 1);
    for (int kind = 0; kind < 4; ++kind) {
        wm_unit* unit = NULL;
        OK(wm_unit_new(kinds[kind], settings, &unit, error));
        write_all(unit, names, values);
        FAILS(WM_USAGE, "TraceCaptEn", wm_unit_write(unit, "TRG", 3, error));
        for (int i = 0; i < 20; ++i) OK(wm_unit_send(unit, 0x10, piece, sizeof piece, error));
        CHECK(level_of(unit, "wrapped") == 1 && level_of(unit, "stopped") == 0);
        OK(wm_unit_signal(unit, "trigger", 1, error));
        int pieces = 0;
        for (; level_of(unit, "stopped") == 0; ++pieces) OK(wm_unit_send(unit, 0x10, piece, sizeof piece, error));
        /* 32 bytes of frames, of which 15 of 16 are trace, and the frame of the trigger. */
        CHECK(pieces >= 1 && pieces <= 4);
        CHECK((value_of(unit, "STS") & 7) == 7 && value_of(unit, "TRG") == 0);
        const uint8_t* bytes = NULL;
        CHECK(wm_unit_memory(unit, &bytes) == 256 && bytes != NULL);
        OK(wm_unit_write(unit, "CTL", 0, error));
        wm_unit_free(unit);
    }
    wm_unit* unit = NULL;
    FAILS(WM_USAGE, "tmc-etr, tpiu, funnel, replicator, cti", wm_unit_new("etf", NULL, &unit, error));
    static const char *const odd[] = {"memory_bytes=100", NULL}, *const other[] = {"bytes=256", NULL};
    FAILS(WM_USAGE, "multiple of 16", wm_unit_new("etb", odd, &unit, error));
    FAILS(WM_USAGE, "memory_bytes", wm_unit_new("etb", other, &unit, error));
    OK(wm_unit_new("tmc-etf", NULL, &unit, error));
    FAILS(WM_USAGE, "FFCR", wm_unit_write(unit, "FFCRX", 1, error));
    FAILS(WM_USAGE, "read-only", wm_unit_write(unit, "STS", 1, error));
    FAILS(WM_USAGE, "32 bits", wm_unit_write(unit, "TRG", (uint64_t)1 << 32, error));
    FAILS(WM_USAGE, "trigger, flush", wm_unit_signal(unit, "PSB", 1, error));
    FAILS(WM_USAGE, "triggered", wm_unit_line(unit, "PMBIRQ", &(int){0}, error));
    FAILS(WM_USAGE, "0x01 to 0x6f", wm_unit_send(unit, 0x70, piece, 1, error));
    FAILS(WM_USAGE, "spe does", wm_unit_retire(unit, &(wm_operation){.pc = 4}, 1, sizeof(wm_operation), error));
    FAILS(WM_USAGE, "dpu does", wm_unit_run(unit, 1, NULL, 0, NULL, error));
    /* A hardware FIFO passes everything on. */
    static const char* const fifo[] = {"MODE", "FFCR", "CTL", NULL};
    static const uint64_t on[] = {2, 0x1001, 1};
    write_all(unit, fifo, on);
    size_t passed = 0;
    for (int i = 0; i < 40; ++i) {
        OK(wm_unit_send(unit, 0x10, piece, sizeof piece, error));
        passed += wm_unit_take(unit, NULL);
    }
    CHECK(passed >= 40 * sizeof piece);
    wm_unit_free(unit);
}

/* docs/spec/trace-bus.md: the input with the highest priority is next, and a filter leaves IDs out. */
static void links_pass_trace_on(void) {
    wm_unit *funnel = NULL, *replicator = NULL, *port = NULL;
    static const char *const inputs[] = {"inputs=4", NULL}, *const widths[] = {"widths=8", NULL};
    OK(wm_unit_new("funnel", inputs, &funnel, error));
    OK(wm_unit_new("replicator", NULL, &replicator, error));
    OK(wm_unit_new("tpiu", widths, &port, error));
    const uint8_t piece[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    OK(wm_unit_send(funnel, 0x10, piece, sizeof piece, error)); /* input 0 is closed */
    CHECK(level_of(funnel, "waiting") == 0);
    OK(wm_unit_write(funnel, "FUNCTL", 0x103, error));
    OK(wm_unit_send(funnel, 0x10, piece, sizeof piece, error));
    OK(wm_unit_signal(funnel, "input", 1, error));
    OK(wm_unit_send(funnel, 0x21, piece, sizeof piece, error));
    CHECK(level_of(funnel, "waiting") == 1);
    OK(wm_unit_signal(funnel, "pass", 5, error)); /* input 0 has the higher priority */
    const uint8_t* bytes = NULL;
    CHECK(wm_unit_take(funnel, &bytes) == 40);
    CHECK(bytes[0] == 0x10 && bytes[1] == 1 && bytes[30] == 0x10 && bytes[32] == 0x21 && bytes[33] == 1);
    OK(wm_unit_signal(funnel, "flush", 0, error));
    CHECK(level_of(funnel, "waiting") == 0 && wm_unit_take(funnel, NULL) == 24);
    OK(wm_unit_write(replicator, "IDFILTER1", 2, error)); /* 0x10 to 0x1f */
    OK(wm_unit_send(replicator, 0x10, piece, 4, error));
    OK(wm_unit_send(replicator, 0x21, piece, 4, error));
    CHECK(wm_unit_take(replicator, NULL) == 16);
    OK(wm_unit_signal(replicator, "output", 1, error));
    CHECK(wm_unit_take(replicator, &bytes) == 8 && bytes[0] == 0x21);
    OK(wm_unit_write(port, "CSPSR", 8, error));
    OK(wm_unit_write(port, "FFCR", 3, error));
    OK(wm_unit_send(port, 0x10, piece, sizeof piece, error));
    CHECK(wm_unit_take(port, NULL) >= 16 && level_of(port, "stopped") == 0);
    FAILS(WM_USAGE, "trigger, flush, idle", wm_unit_signal(port, "output", 1, error));
    FAILS(WM_USAGE, "0 to 3", wm_unit_signal(funnel, "input", 4, error));
    FAILS(WM_USAGE, "0 and 1", wm_unit_signal(replicator, "output", 2, error));
    FAILS(WM_USAGE, "0x01 to 0x6f", wm_unit_send(replicator, 0, piece, 1, error));
    wm_unit_free(funnel);
    wm_unit_free(replicator);
    wm_unit_free(port);
}

/* docs/spec/cti.md: triggers reach channels, channels of other interfaces reach triggers, and a gate closes the way
 * out. */
static void cross_triggers(void) {
    wm_unit* cti = NULL;
    OK(wm_unit_new("cti", NULL, &cti, error));
    static const char* const names[] = {"CTICONTROL", "CTIINEN4", "CTIOUTEN1", "CTIGATE", NULL};
    static const uint64_t values[] = {1, 1 << 2, 1 << 3, 1 << 2};
    write_all(cti, names, values);
    OK(wm_unit_signal(cti, "input4", 1, error));
    CHECK(level_of(cti, "channel2") == 1 && level_of(cti, "channel3") == 0 && level_of(cti, "output1") == 0);
    OK(wm_unit_write(cti, "CTIGATE", 0, error));
    CHECK(level_of(cti, "channel2") == 0);
    OK(wm_unit_signal(cti, "channel3", 1, error));
    CHECK(level_of(cti, "output1") == 1);
    OK(wm_unit_signal(cti, "channel3", 0, error));
    CHECK(level_of(cti, "output1") == 1); /* until it is acknowledged */
    OK(wm_unit_write(cti, "CTIINTACK", 2, error));
    CHECK(level_of(cti, "output1") == 0);
    FAILS(WM_USAGE, "input0 to input7, channel0 to channel3", wm_unit_signal(cti, "input8", 1, error));
    FAILS(WM_USAGE, "output0 to output7", wm_unit_line(cti, "stopped", &(int){0}, error));
    FAILS(WM_USAGE, "1 or 0", wm_unit_signal(cti, "input4", 2, error));
    wm_unit_free(cti);
}

/* docs/spec/spe.md: functions of the architecture one by one, samples, barriers, and the interrupt of a full buffer. */
static const char* answer_of(wm_unit* unit, const char* function, const wm_operation* operation) {
    const char *answer = NULL, *why = NULL;
    OK(wm_unit_decide(unit, function, operation, sizeof *operation, &answer, &why, error));
    CHECK(strlen(why) > 10);
    return answer;
}
static void run_loads(wm_unit* unit, unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
        const wm_operation load = {.pc = 0x400000 + 4 * (i % 8),
                                   .address = 0x10000 + 8 * i,
                                   .events = 1u << 2,
                                   .total_latency = 12,
                                   .kind = WM_OP_LOAD};
        OK(wm_unit_retire(unit, &load, 1, sizeof load, error));
    }
}
static void spe_samples(void) {
    static const char* const settings[] = {"version=v1.1", "interval=256", "memory_bytes=4096", "memory_base=0x10000",
                                           NULL};
    wm_unit* unit = NULL;
    OK(wm_unit_new("spe", settings, &unit, error));
    CHECK(strcmp(answer_of(unit, "ProfilingBufferOwner", NULL), "Non-secure EL2") == 0);
    CHECK(strcmp(answer_of(unit, "ProfilingBufferEnabled", NULL), "TRUE") == 0);
    CHECK(strcmp(answer_of(unit, "StatisticalProfilingEnabled", NULL), "TRUE") == 0);
    CHECK(strcmp(answer_of(unit, "CollectContextIDR2", NULL), "TRUE") == 0);
    CHECK(strcmp(answer_of(unit, "CollectPhysicalAddress", NULL), "FALSE") == 0);
    CHECK(strcmp(answer_of(unit, "CollectTimeStamp", NULL), "None") != 0);
    CHECK(strcmp(answer_of(unit, "CheckStatisticalProfilingAccess", NULL), "UNDEFINED") == 0); /* EL0 */
    const wm_operation quick = {.pc = 4, .total_latency = 12, .kind = WM_OP_LOAD};
    CHECK(strcmp(answer_of(unit, "CollectRecord", &quick), "TRUE") == 0);
    OK(wm_unit_write(unit, "PMSLATFR_EL1.MINLAT", 13, error));
    OK(wm_unit_write(unit, "PMSFCR_EL1.FL", 1, error));
    CHECK(strcmp(answer_of(unit, "CollectRecord", &quick), "FALSE") == 0);
    run_loads(unit, 2000);
    OK(wm_unit_signal(unit, "PSB", 0, error));
    OK(wm_unit_signal(unit, "DSB", 0, error));
    CHECK(wm_unit_memory(unit, NULL) == 0); /* filtered */
    OK(wm_unit_write(unit, "PMSFCR_EL1.FL", 0, error));
    run_loads(unit, 2560);
    OK(wm_unit_signal(unit, "PSB", 0, error));
    OK(wm_unit_signal(unit, "DSB", 0, error));
    const uint8_t* bytes = NULL;
    const size_t size = wm_unit_memory(unit, &bytes);
    CHECK(size > 0 && value_of(unit, "PMBPTR_EL1") == 0x10000 + size);
    /* With jitter, 9 to 10 intervals. The packets of PC are the only ones that begin with b0. */
    size_t records = 0;
    for (size_t i = 0; i + 9 <= size; ++i) records += bytes[i] == 0xb0 && bytes[i + 3] == 0x40;
    CHECK(records >= 8 && records <= 10);
    CHECK(level_of(unit, "PMBIRQ") == 0 && level_of(unit, "enabled") == 1);
    run_loads(unit, 40000);
    CHECK(level_of(unit, "PMBIRQ") == 1 && value_of(unit, "PMBSR_EL1.S") == 1);
    /* Service: the buffer is empty again. */
    OK(wm_unit_write(unit, "PMBPTR_EL1", 0x10000, error));
    OK(wm_unit_write(unit, "PMBSR_EL1", 0, error));
    CHECK(level_of(unit, "PMBIRQ") == 0);
    run_loads(unit, 2560);
    OK(wm_unit_signal(unit, "drain", 0, error));
    CHECK(wm_unit_memory(unit, NULL) > 0 && level_of(unit, "enabled") == 0);
    FAILS(WM_USAGE, "profiling is off", wm_unit_decide(unit, "CollectRecord", &quick, sizeof quick, NULL, NULL, error));
    FAILS(WM_USAGE, "CollectTimeStamp", wm_unit_decide(unit, "CollectNothing", NULL, 0, NULL, NULL, error));
    FAILS(WM_USAGE, "read-only", wm_unit_write(unit, "PMSIDR_EL1", 0, error));
    FAILS(WM_USAGE, "no register or field", wm_unit_write(unit, "PMSCR_EL1.FOO", 0, error));
    FAILS(WM_USAGE, "comes before", wm_unit_signal(unit, "cycle", 1, error));
    FAILS(WM_USAGE, "0 to 3", wm_unit_signal(unit, "exception_level", 4, error));
    FAILS(WM_USAGE, "kind", wm_unit_retire(unit, &(wm_operation){.pc = 4, .kind = 9}, 1, sizeof(wm_operation), error));
    wm_unit_free(unit);
    /* After reset nothing is enabled; each function names the field that says so. */
    OK(wm_unit_new("spe", NULL, &unit, error));
    const char* why = NULL;
    OK(wm_unit_decide(unit, "ProfilingBufferEnabled", NULL, 0, NULL, &why, error));
    CHECK(strstr(why, "PMBLIMITR_EL1.E") != NULL);
    FAILS(WM_USAGE, "v1.0 to v1.5", wm_unit_new("spe", (const char* const[]){"version=2", NULL}, &unit, error));
    wm_unit_free(unit);
}

/* docs/spec/dpu.md, 10.1: the worked example, word for word. */
static void dpu_example(void) {
    static const char* const settings[] = {"TINT=1", "TRTE=1", NULL};
    static const char* const names[] = {"DP_TSA",  "DP_TEA",  "DP_TW",  "DP_CA0V", "DP_CA1V", "DP_CA2V", "DP_CB0V",
                                        "DP_CB1V", "DP_CB2V", "DP_TAC", "DP_TBC",  "DP_TC",   NULL};
    static const uint64_t values[] = {0x20000000, 0x20000060, 0x20000000, 0x7fffffff, 0x7fffffff, 0x7fffffff,
                                      0x7fffffff, 0x7fffffff, 0x7fffffff, 0x000f0023, 0x000f0073, 0x00200085};
    static const uint32_t expected[32] = {
        0x00401011, 0xFFFFF82E, 0xFFFFFF0E, 0xFFFFFFFE, 0xFFFFFDA6, 0xFFFFFFE6, 0xFFFFFFFC, 0x00000200,
        0xFFF0A40A, 0x00000281, 0xFFFFF69E, 0xFFFFFEAA, 0xFFFFFFFE, 0xFFFFFD56, 0xFFFFFFD4, 0xFFFFFFFC,
        0x00402000, 0xFFF0A20E, 0xFFF0A20F, 0xFFFFCF8E, 0xFFFFF932, 0xFFFFFFFE, 0xFFFFF19E, 0xFFFFFF92,
        0xFFFFFFF8, 0xFFF0A000, 0xFFF0AC0F, 0xFFF0A20E, 0x000195FC, 0x00000002, 0xFFF0A001, 0xFFF0A001};
    wm_unit* unit = NULL;
    OK(wm_unit_new("dpu", settings, &unit, error));
    write_all(unit, names, values);
    OK(wm_unit_signal(unit, "PID", 5, error));
    OK(wm_unit_signal(unit, "DID", 5, error));
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    const wm_event_count first[] = {{"STALL_ALL", 120}, {"DC_HIT", 300}, {"DC_MISS", 12}, {"DC_THRASH", 1}};
    OK(wm_unit_run(unit, 999, first, 4, NULL, error));
    const wm_eonce_item service = {
        .kind = "interrupt", .source = 0x401010, .destination = 0x200, .supervisor = 1, .pid = 5, .did = 5};
    OK(wm_unit_run(unit, 1, NULL, 0, &service, error));
    const wm_event_count second[] = {{"STALL_ALL", 50}, {"DC_HIT", 40}, {"DC_MISS", 9}};
    OK(wm_unit_run(unit, 150, second, 3, NULL, error));
    OK(wm_unit_signal(unit, "PID", 7, error));
    OK(wm_unit_signal(unit, "DID", 7, error));
    OK(wm_unit_run(unit, 49, NULL, 0, NULL, error));
    const wm_eonce_item back = {.kind = "rte", .source = 0x280, .destination = 0x402000, .pid = 7, .did = 7};
    OK(wm_unit_run(unit, 1, NULL, 0, &back, error));
    const wm_event_count third[] = {{"STALL_ALL", 700}, {"DC_HIT", 1500}, {"DC_MISS", 33}, {"DC_THRASH", 2}};
    OK(wm_unit_run(unit, 4999, third, 4, NULL, error));
    OK(wm_unit_write(unit, "DP_TC.SAMPLE", 1, error));
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    CHECK(value_of(unit, "DP_TC.SAMPLE") == 0);
    OK(wm_unit_write(unit, "DP_TD", 0xcafe0001, error));
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    OK(wm_unit_write(unit, "DP_TC.TMPDIS", 1, error));
    for (int i = 0; i < 1000 && level_of(unit, "idle") == 0; ++i) OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    CHECK(level_of(unit, "idle") == 1);
    const uint8_t* bytes = NULL;
    CHECK(wm_unit_memory(unit, &bytes) == sizeof expected);
    for (size_t i = 0; i < 32; ++i) {
        const uint8_t* b = bytes + 4 * i;
        CHECK(((uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3]) == expected[i]);
    }
    CHECK(value_of(unit, "DP_TW") == 0x20000000 && value_of(unit, "DP_MR.TWRAP") == 1);
    FAILS(WM_USAGE, "DP_TC", wm_unit_write(unit, "DP_FOO", 1, error));
    FAILS(WM_USAGE, "no event", wm_unit_run(unit, 1, &(wm_event_count){"CYCLES", 1}, 1, NULL, error));
    FAILS(WM_USAGE, "2 of 1 cycles", wm_unit_run(unit, 1, &(wm_event_count){"STALL_ALL", 2}, 1, NULL, error));
    FAILS(WM_USAGE, "loop_long", wm_unit_run(unit, 1, NULL, 0, &(wm_eonce_item){.kind = "jump"}, error));
    FAILS(WM_USAGE, "one cycle", wm_unit_run(unit, 2, NULL, 0, &service, error));
    wm_unit_free(unit);
    /* The one-shot counter of section 4.1: after exactly its value, the line is set. */
    OK(wm_unit_new("dpu", NULL, &unit, error));
    static const char* const one_shot[] = {"DP_CA0V", "DP_CA0C", "DP_CR", NULL};
    static const uint64_t counts[] = {3, 0x000f0010, 1};
    write_all(unit, one_shot, counts);
    for (uint64_t cycle = 0; cycle < 6; ++cycle) {
        OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
        CHECK(level_of(unit, "interrupt0") == (cycle >= 3));
        CHECK(value_of(unit, "DP_CA0V") == (cycle < 3 ? 3 - cycle : 0));
    }
    wm_unit_free(unit);
}

/* A write of a field writes its register: docs/spec/dpu.md, 3.2 and 3.4. */
static void dpu_fields(void) {
    static const char* const settings[] = {"TINT=1", "TRTE=1", NULL};
    static const char* const names[] = {"DP_CA0V", "DP_CB0V", "DP_CA0C", "DP_CB0C", "DP_CR", NULL};
    static const uint64_t counts[] = {3, 3, 0x000f0010, 0x000f0010, 0x41}; /* one-shot counters A0 and B0, to line 0 */
    wm_unit* unit = NULL;
    OK(wm_unit_new("dpu", settings, &unit, error));
    write_all(unit, names, counts);
    OK(wm_unit_run(unit, 6, NULL, 0, NULL, error));
    CHECK(value_of(unit, "DP_MR") == 9);
    /* Writing 1 clears a flag; the other flag stays. */
    OK(wm_unit_write(unit, "DP_MR.DRCB0", 1, error));
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    CHECK(value_of(unit, "DP_MR") == 1 && level_of(unit, "interrupt0") == 1);
    OK(wm_unit_write(unit, "DP_MR.DRCA0", 0, error));
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    CHECK(value_of(unit, "DP_MR") == 1);
    /* A run that is refused changes nothing. */
    FAILS(WM_USAGE, "no item", wm_unit_run(unit, 1, NULL, 0, &(wm_eonce_item){.kind = "jump"}, error));
    CHECK(level_of(unit, "interrupt0") == 1);
    /* Two fields in one cycle: both are written. */
    static const char* const trace[] = {"DP_TSA", "DP_TEA", "DP_TW", "DP_TC", NULL};
    static const uint64_t off[] = {0x20000000, 0x20000060, 0x20000000, 0x00200084};
    write_all(unit, trace, off);
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    CHECK(value_of(unit, "DP_TC") == 0x00200084);
    OK(wm_unit_write(unit, "DP_TC.EN", 1, error));
    OK(wm_unit_write(unit, "DP_TC.GLOBAL", 1, error));
    CHECK(value_of(unit, "DP_TC.EN") == 0); /* it acts in the next cycle */
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    CHECK(value_of(unit, "DP_TC.EN") == 1 && value_of(unit, "DP_TC.GLOBAL") == 1);
    OK(wm_unit_write(unit, "DP_TC.TMPDIS", 1, error));
    OK(wm_unit_write(unit, "DP_TC.GLOBAL", 0, error));
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    CHECK(value_of(unit, "DP_TC.TMPDIS") == 1 && value_of(unit, "DP_TC.GLOBAL") == 0);
    /* The write before last has taken effect: the next write starts from the unit's present value. */
    OK(wm_unit_write(unit, "DP_TC", 0x00200084, error));
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    OK(wm_unit_write(unit, "DP_TC.GLOBAL", 1, error));
    OK(wm_unit_run(unit, 1, NULL, 0, NULL, error));
    CHECK(value_of(unit, "DP_TC.EN") == 0 && value_of(unit, "DP_TC.GLOBAL") == 1);
    wm_unit_free(unit);
}

/* Mistakes for which include/waymark.h promises WM_USAGE. */
static void refusals(void) {
    const uint64_t wide = (uint64_t)1 << 32;
    wm_unit* unit = NULL;
    OK(wm_unit_new("spe", NULL, &unit, error));
    FAILS(WM_USAGE, "32 bits", wm_unit_signal(unit, "CONTEXTIDR_EL1", wide, error));
    FAILS(WM_USAGE, "32 bits", wm_unit_signal(unit, "CONTEXTIDR_EL2", wide, error));
    OK(wm_unit_signal(unit, "CONTEXTIDR_EL1", wide - 1, error));
    wm_unit_free(unit);
    static const char *const bits[] = {"supervisor", "debug", "DPUE", "bus_others"}, *const ids[] = {"PID", "DID"};
    OK(wm_unit_new("dpu", NULL, &unit, error));
    for (int i = 0; i < 4; ++i) {
        FAILS(WM_USAGE, bits[i], wm_unit_signal(unit, bits[i], 2, error));
        OK(wm_unit_signal(unit, bits[i], i == 2, error));
    }
    for (int i = 0; i < 2; ++i) FAILS(WM_USAGE, "8 bits", wm_unit_signal(unit, ids[i], 256, error));
    FAILS(WM_USAGE, "read-only", wm_unit_write(unit, "DP_SR", 1, error));
    FAILS(WM_USAGE, "read-only", wm_unit_write(unit, "DP_SR.ENCA0", 1, error));
    const wm_event_count twice[] = {{"DC_MISS", 1}, {"DC_HIT", 1}, {"DC_MISS", 2}};
    FAILS(WM_USAGE, "DC_MISS is given twice", wm_unit_run(unit, 5, twice, 3, NULL, error));
    OK(wm_unit_run(unit, 5, twice, 2, NULL, error));
    FAILS(WM_USAGE, "0 to 5", wm_unit_run(unit, 1, NULL, 0, &(wm_eonce_item){.kind = "edca", .channel = 6}, error));
    OK(wm_unit_run(unit, 1, NULL, 0, &(wm_eonce_item){.kind = "edca", .channel = 5}, error));
    FAILS(WM_USAGE, "supervisor",
          wm_unit_run(unit, 1, NULL, 0, &(wm_eonce_item){.kind = "rte", .supervisor = 2}, error));
    FAILS(WM_USAGE, "reserved", wm_unit_run(unit, 1, NULL, 0, &(wm_eonce_item){.kind = "rte", .reserved = {1}}, error));
    /* Several mistakes: the message names the first, and the number of the others. */
    for (int i = 0; i < 1000; ++i) OK(wm_unit_write(unit, "DP_CA0C", (uint64_t)1 << 31 | 1, error));
    FAILS(WM_USAGE, ", and 999 more; the cycles ran", wm_unit_run(unit, 1, NULL, 0, NULL, error));
    wm_unit_free(unit);
    /* Nothing to lend. */
    const uint8_t* bytes = (const uint8_t*)"";
    CHECK(wm_unit_memory(NULL, &bytes) == 0 && bytes == NULL);
    bytes = (const uint8_t*)"";
    CHECK(wm_unit_take(NULL, &bytes) == 0 && bytes == NULL && wm_unit_take(NULL, NULL) == 0);
    bytes = (const uint8_t*)"";
    CHECK(wm_model_take(NULL, &bytes) == 0 && bytes == NULL);
}

/* A program of another version has a shorter or longer wm_operation. */
static void operations_of_other_versions(void) {
    static const char* const settings[] = {"version=v1.1", "interval=256", NULL};
    struct {
        wm_operation known;
        uint64_t more;
    } const longer = {{.pc = 4, .total_latency = 12, .kind = WM_OP_LOAD}, ~(uint64_t)0};
    wm_unit* unit = NULL;
    const char* answer = NULL;
    OK(wm_unit_new("spe", settings, &unit, error));
    OK(wm_unit_write(unit, "PMSLATFR_EL1.MINLAT", 12, error));
    OK(wm_unit_write(unit, "PMSFCR_EL1.FL", 1, error));
    OK(wm_unit_decide(unit, "CollectRecord", &longer.known, sizeof longer, &answer, NULL, error));
    CHECK(strcmp(answer, "TRUE") == 0);
    /* If its latency is not given, it is 0. */
    OK(wm_unit_decide(unit, "CollectRecord", &longer.known, offsetof(wm_operation, total_latency), &answer, NULL,
                      error));
    CHECK(strcmp(answer, "FALSE") == 0);
    const wm_operation jump = {.pc = 4, .kind = 9};
    FAILS(WM_USAGE, "no kind 9", wm_unit_decide(unit, "CollectRecord", &jump, sizeof jump, NULL, NULL, error));
    wm_unit_free(unit);
}

void unit_suite(void) {
    wm_unit* unit = NULL;
    FAILS(WM_USAGE, "kind", wm_unit_new(NULL, NULL, &unit, error));
    FAILS(WM_USAGE, "unit", wm_unit_write(NULL, "CTL", 1, error));
    wm_unit_free(NULL);
    buffers_stop_at_their_trigger();
    links_pass_trace_on();
    cross_triggers();
    spe_samples();
    dpu_example();
    dpu_fields();
    refusals();
    operations_of_other_versions();
}
