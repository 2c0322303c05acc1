/// The C interface of Waymark: hardware trace to the instructions that ran, and back. Link with -lwaymark.
///
/// Errors. A function that can fail returns a wm_status and has a last parameter `error`: if that is not NULL and the
/// function fails, `*error` becomes an error that describes what happened; release it with wm_error_free. If the
/// function succeeds, `*error` stays unchanged. No exception and no longjmp leaves the library, and it prints nothing.
/// Damaged trace is not an error: it is delivered as events and counted (wm_totals, wm_decoder_damage).
///
/// Threads. Different objects are independent, so each thread may use its own. A capture does not change after it was
/// opened: any number of threads may use one capture at the same time, each with separate decoders. All other objects
/// belong to one thread at a time. Only wm_decoder_cancel may be called from any thread and from a signal handler.
/// Callbacks are called one at a time, in the thread that called the library; with wm_decoder_set_jobs above 1,
/// possibly in another thread.
///
/// Lifetimes. Strings and arrays belong to the object that returned them and live as long as the object, unless stated
/// otherwise; the arguments of a callback live until it returns. A capture must outlive its decoders. wm_close and the
/// functions that end in _free allow NULL.
///
/// Compatibility. Programs that were compiled with this header work with later versions of the library that have the
/// same soname. Structures that the library fills only grow at the end: if you provide the room, first set
/// `struct_bytes` to sizeof. Structures that you provide in arrays with `each_bytes` or `operation_bytes` (wm_executed,
/// wm_operation) also grow at the end: zero a structure before you set its members. All others (wm_block, wm_range,
/// wm_event, wm_packet, wm_event_count, wm_eonce_item) keep their size; their reserved members must be 0. Later
/// versions may deliver events of further kinds: skip kinds that you do not know.
#ifndef WAYMARK_H
#define WAYMARK_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define WM_API __attribute__((visibility("default")))
#else
#define WM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// ---- errors

typedef enum wm_status {
    WM_OK = 0,
    WM_USAGE = 1,        ///< the call is invalid: an argument, an option, the order of calls
    WM_NOT_FOUND = 2,    ///< there is no such file, source, table or symbol, or nothing could be decoded
    WM_UNREADABLE = 3,   ///< the operating system refused, or a compressed file is damaged
    WM_BAD_FORMAT = 4,   ///< the contents of a file are invalid
    WM_UNSUPPORTED = 5,  ///< well-formed, but of a kind that Waymark does not know
    WM_CANCELLED = 6,    ///< a callback returned something else than 0, or wm_decoder_cancel was called
    WM_NO_MEMORY = 7,    ///< memory is exhausted
    WM_INTERNAL = 8      ///< a mistake in Waymark; please report it
} wm_status;

typedef struct wm_error wm_error;

WM_API wm_status wm_error_status(const wm_error* error);
/// Sentences that state the file or argument, what was found, what was expected, and what to do.
WM_API const char* wm_error_message(const wm_error* error);
/// The position in the file that the message names. Returns 0 if there is none; `*offset` then stays unchanged.
WM_API int wm_error_offset(const wm_error* error, uint64_t* offset);
WM_API void wm_error_free(wm_error* error);

/// The version of the library, such as "0.9.0".
WM_API const char* wm_version(void);

// ---- options for opening a capture

typedef struct wm_options wm_options;

/// NULL if memory is exhausted.
WM_API wm_options* wm_options_new(void);
WM_API void wm_options_free(wm_options* options);
/// Sets an option, or adds a value to an option that may be repeated. Names and values as on the command line, without
/// `--`:
///   image        FILE or FILE@ADDRESS: what ran, an ELF file or a memory dump; may be repeated, the last one is seen
///   symbols      FILE: ELF file used for names only; may be repeated
///   symfs, debug-dir, symdir, perf-map, jitdump, kallsyms: where names of code are found
///   midr         MIDR_EL1 of the core, for samples that do not say it
/// For trace without a description, which is a bare file, memory or bytes that are fed:
///   protocol     its name (`ptm1.1`), or the type of its source as snapshots spell it (`PTM1.1`, `ETE`);
///                `spe`: samples as a profiling buffer holds them; not for bytes that are fed
///   buffer-format  source_data (the default where bytes are fed), coresight or dstream_coresight
///   trace-id     of a source in frames; may be repeated
///   core         type of the core, such as `Cortex-A15`
///   register     NAME=VALUE, how the unit was programmed; may be repeated. Registers that have an option of their own
///                on the command line may be named by it: `etmcr`
/// WM_USAGE: no option has this name (the message lists those there are), or the value is malformed.
WM_API wm_status wm_options_set(wm_options* options, const char* name, const char* value, wm_error** error);
/// Program bytes at an address; they are copied. May be repeated.
WM_API wm_status wm_options_add_code(wm_options* options, uint64_t address, const void* bytes, size_t count,
                                     wm_error** error);

/// The memory to which an address belongs, as far as the trace shows it.
enum { WM_SPACE_NON_SECURE = 1, WM_SPACE_HYP = 2, WM_SPACE_NSE = 4 };
/// Fills `into` with program bytes from `address` on, and returns the number of known bytes; 0: none. It is called for
/// addresses that are in no image, always returns the same bytes, and is called by one thread at a time. `space`:
/// WM_SPACE_… bits.
typedef size_t (*wm_code_callback)(uint64_t address, unsigned space, void* into, size_t bytes, void* user);
WM_API void wm_options_set_code_callback(wm_options* options, wm_code_callback callback, void* user);

// ---- captures

typedef struct wm_capture wm_capture;
typedef struct wm_source wm_source;

typedef enum wm_capture_kind {
    WM_CAPTURE_FLOW = 0,      ///< program flow: PTM, ETMv3, ETMv4, ETE
    WM_CAPTURE_SAMPLES = 1,   ///< samples of the Statistical Profiling Extension
    WM_CAPTURE_COUNTERS = 2,  ///< counters of a Debug and Profiling Unit: answers only
    WM_CAPTURE_ANSWERS = 3    ///< an answers file: answers only
} wm_capture_kind;

/// Opens every input of `waymark info`: a snapshot folder, perf.data, a DPU folder, an answers file, a bare trace file
/// with the options that describe it. `options` may be NULL, and is not needed afterwards.
WM_API wm_status wm_open(const char* path, const wm_options* options, wm_capture** capture, wm_error** error);
/// The same for a file in memory, which is copied. `name` is used in messages.
WM_API wm_status wm_open_memory(const void* bytes, size_t count, const char* name, const wm_options* options,
                                wm_capture** capture, wm_error** error);
/// A capture whose bytes come later, through wm_decoder_feed. The option `protocol` is required; in frames, `trace-id`
/// for each source too.
WM_API wm_status wm_open_live(const wm_options* options, wm_capture** capture, wm_error** error);
WM_API void wm_close(wm_capture* capture);

WM_API wm_capture_kind wm_capture_get_kind(const wm_capture* capture);
/// Sentences about errors in the description of the capture, and about facts to know about it.
WM_API size_t wm_capture_problem_count(const wm_capture* capture);
WM_API const char* wm_capture_problem(const wm_capture* capture, size_t index);

/// Trace sources in the order of the capture; NULL: there is no such source. Captures of samples, counters and answers
/// have no sources.
WM_API size_t wm_source_count(const wm_capture* capture);
WM_API const wm_source* wm_source_at(const wm_capture* capture, size_t index);
WM_API const char* wm_source_name(const wm_source* source);
WM_API const char* wm_source_type(const wm_source* source);       ///< as the capture spells it: `PTM1.1`
WM_API const char* wm_source_core_type(const wm_source* source);  ///< `Cortex-A15`; empty: not known
/// `PTM`, `ETMv4`, `ETE`; empty: a protocol that Waymark does not decode.
WM_API const char* wm_source_unit(const wm_source* source);
WM_API int wm_source_trace_id(const wm_source* source);  ///< -1: it has none
WM_API int wm_source_has_flow(const wm_source* source);  ///< 1: its program flow can be decoded

// ---- symbols

typedef struct wm_symbol {
    size_t struct_bytes;       ///< set it to sizeof(wm_symbol)
    const char* name;          ///< for reading: demangled where it is a C++ name
    const char* linkage_name;  ///< as in the file
    uint64_t address;          ///< where it begins
    uint64_t bytes;            ///< its length as in the file; 0: not given
    uint64_t offset;           ///< of the requested address
} wm_symbol;

/// The symbol that contains an address. WM_NOT_FOUND: there is none. The strings live as long as the capture.
WM_API wm_status wm_symbol_at(const wm_source* source, uint64_t address, wm_symbol* symbol, wm_error** error);
/// The address of a symbol by its linkage name or its demangled name. WM_NOT_FOUND: no symbol has that name.
WM_API wm_status wm_symbol_address(const wm_source* source, const char* name, uint64_t* address, wm_error** error);

// ---- decoding

typedef enum wm_isa { WM_A32 = 0, WM_T32 = 1, WM_TEE = 2, WM_JAZELLE = 3, WM_A64 = 4 } wm_isa;

/// How a block ends.
enum { WM_END_NONE = 0, WM_END_DIRECT = 1, WM_END_INDIRECT = 2, WM_END_BARRIER = 3 };
/// Flags of the block's last instruction.
enum {
    WM_BLOCK_LINK = 1,         ///< it leaves a return address: a call
    WM_BLOCK_CONDITIONAL = 2,  ///< it has a condition
    WM_BLOCK_RETURN = 4,       ///< by convention it returns from a function
    WM_BLOCK_EXCEPTION_RETURN = 8,
    WM_BLOCK_UNDEFINED = 16,  ///< permanently undefined
    WM_BLOCK_WAIT = 32,       ///< WFI, WFE and the like
    WM_BLOCK_TRANSACTION = 64
};

/// A piece of code from where execution entered it to the instruction that ends it.
typedef struct wm_block {
    uint64_t start;         ///< address of the first instruction
    uint64_t target;        ///< of the last instruction if taken; direct branches and barriers only
    uint32_t bytes;         ///< start + bytes is the first address after it
    uint32_t instructions;  ///< how many
    uint32_t section;       ///< which image it is from
    uint8_t isa;            ///< wm_isa
    uint8_t end;            ///< WM_END_…
    uint8_t last_bytes;     ///< size of the last instruction
    uint8_t flags;          ///< WM_BLOCK_…
} wm_block;

#define WM_NO_CYCLES 0xffffffffu

/// One execution of a block.
typedef struct wm_range {
    uint32_t edge;    ///< index of the block * 2, + 1 if its last instruction was taken
    uint32_t offset;  ///< of its packet, less wm_flow_batch.base
    uint32_t cycles;  ///< the count that came with it, or WM_NO_CYCLES
    uint32_t times;   ///< more than 1 where the unit compresses loops
} wm_range;

/// The kind of an event, which decides the members of wm_event that have a meaning.
typedef enum wm_event_kind {
    WM_EVENT_GAP = 0,        ///< bytes without a result: offset; value: their number; detail and name: the reason
    WM_EVENT_TRACE_ON = 1,   ///< tracing begins, or begins again: detail and name: the reason; cycles
    WM_EVENT_CONTEXT = 2,    ///< state from here on: value: Context ID; other: VMID; detail: level; flags
    WM_EVENT_TIMESTAMP = 3,  ///< value; cycles; flags
    WM_EVENT_EXCEPTION = 4,  ///< name; detail: number; address: return; other: vector; cycles; flags
    WM_EVENT_EXCEPTION_RETURN = 5,
    WM_EVENT_NO_MEMORY = 6,  ///< no image has code at address
    WM_EVENT_TRIGGER = 7,
    WM_EVENT_CYCLES = 8,         ///< a count that came apart from a range: value; cycles; flags
    WM_EVENT_INCONSISTENCY = 9,  ///< trace and image contradict: detail and name; address found, other expected
    WM_EVENT_ATOMS = 10,         ///< branches that cannot be placed: value taken, other not taken
    WM_EVENT_REACHED = 11,       ///< the instruction at address ran, but not how execution came there
    WM_EVENT_UNTRACED = 12,      ///< from address to other; value: instructions, 0: unknown; flags
    WM_EVENT_MARK = 13           ///< detail: kind; value; other: exception level
} wm_event_kind;

enum {
    WM_EVENT_HAS_ADDRESS = 1,          ///< `address` is known
    WM_EVENT_HAS_OTHER = 2,            ///< `other` is known
    WM_EVENT_HAS_VALUE = 4,            ///< of a context: the Context ID is known; of cycles: their number is known
    WM_EVENT_NON_SECURE = 16,          ///< of a context
    WM_EVENT_HYP = 32,                 ///< of a context
    WM_EVENT_NSE = 64,                 ///< of a context: Root or, with NON_SECURE, Realm
    WM_EVENT_AARCH64 = 128,            ///< of a context
    WM_EVENT_PARTIAL = 256,            ///< of a timestamp: its high part was lost
    WM_EVENT_FREQUENCY_CHANGED = 512,  ///< of a timestamp
    WM_EVENT_OF_FLOW = 1024,           ///< of cycles: spent in the flow since cycles were counted last
    WM_EVENT_COUNTED_AGAIN = 2048      ///< of a timestamp: the next count of cycles includes its cycles
};
#define WM_NO_LEVEL 0xffffffffu

/// An element that is not a range, in its place among the ranges. Members without a meaning for its kind are 0.
typedef struct wm_event {
    uint32_t kind;    ///< wm_event_kind
    uint32_t before;  ///< it happened before ranges[before] of its batch
    uint64_t offset;  ///< of its packet in the stream
    uint64_t address, other, value;
    uint32_t cycles;  ///< or WM_NO_CYCLES
    uint32_t detail;
    uint32_t flags;  ///< WM_EVENT_…
    uint32_t reserved;
    const char* name;  ///< never NULL; lives as long as the program
} wm_event;

/// Consecutive elements of one source.
typedef struct wm_flow_batch {
    size_t struct_bytes;
    const wm_source* source;
    const char* buffer;      ///< name of the buffer that they are from
    const wm_block* blocks;  ///< all blocks of the stream so far. The array may move, its rows do not change
    size_t block_count;
    const wm_range* ranges;
    size_t range_count;
    uint64_t base;  ///< of wm_range.offset
    const wm_event* events;
    size_t event_count;
    const void* internal;
} wm_flow_batch;

/// A result other than 0 cancels: nothing more is delivered, and the function that decodes returns WM_CANCELLED.
typedef int (*wm_flow_callback)(const wm_flow_batch* batch, void* user);

/// Memory for ranges: returns room for at least `*count` ranges, and sets `*count` to the number that fits. NULL
/// cancels.
typedef wm_range* (*wm_room_callback)(const wm_source* source, size_t* count, void* user);

/// The position in the buffer of the byte at an offset in the stream. Only during the callback.
WM_API uint64_t wm_flow_buffer_offset(const wm_flow_batch* batch, uint64_t stream_offset);

/// Number of executions of each block of a stream.
typedef struct wm_counts {
    size_t struct_bytes;
    const wm_source* source;
    const char* buffer;
    const wm_block* blocks;
    size_t block_count;
    const uint64_t* times;  ///< by edge (wm_range.edge); edges beyond times_count never ran
    size_t times_count;
    uint64_t cycles;  ///< the sum of the cycle counts that came with ranges
} wm_counts;
typedef int (*wm_counts_callback)(const wm_counts* counts, void* user);

/// A packet, or bytes that are not a packet.
typedef struct wm_packet {
    uint64_t offset;      ///< in the stream
    uint32_t bytes;       ///< how many
    uint32_t is_gap;      ///< 1: no packet; `name` is the reason
    const char* name;     ///< as the specification spells it: `I-SYNC`
    const char* fields;   ///< `target=0x17/1 cycles=12`
    const char* meaning;  ///< in the light of the packets before it; may be empty
} wm_packet;
typedef struct wm_packet_batch {
    size_t struct_bytes;
    const wm_source* source;
    const char* buffer;
    const wm_packet* packets;
    size_t packet_count;
} wm_packet_batch;
typedef int (*wm_packet_callback)(const wm_packet_batch* batch, void* user);

/// The possible contents of a sample; bits of wm_sample_batch.present.
enum {
    WM_SAMPLE_PC = 1,
    WM_SAMPLE_BRANCH_TARGET = 2,
    WM_SAMPLE_DATA_VIRTUAL = 4,
    WM_SAMPLE_DATA_PHYSICAL = 8,
    WM_SAMPLE_PREVIOUS_TARGET = 16,
    WM_SAMPLE_TOTAL_LATENCY = 32,
    WM_SAMPLE_ISSUE_LATENCY = 64,
    WM_SAMPLE_TRANSLATION_LATENCY = 128,
    WM_SAMPLE_EVENTS = 512,
    WM_SAMPLE_OPERATION = 1024,
    WM_SAMPLE_DATA_SOURCE = 2048,
    WM_SAMPLE_CONTEXT_EL1 = 4096,
    WM_SAMPLE_CONTEXT_EL2 = 8192,
    WM_SAMPLE_TIMESTAMP = 16384
};
#define WM_NOBODY 0xffffffffu

/// Samples of one stream, column by column: element i of every array belongs to sample i. Values that a sample lacks
/// are 0.
typedef struct wm_sample_batch {
    size_t struct_bytes;
    size_t count;
    uint32_t cpu;                                                         ///< WM_NOBODY: the trace is of a thread
    uint32_t midr;                                                        ///< MIDR_EL1 of the core; 0: not known
    const uint64_t *pc, *branch_target, *previous_target;                 ///< addresses
    const uint64_t *data_virtual, *data_physical;                         ///< addresses
    const uint64_t *events, *timestamp;                                   ///< bits of the Events packet; ticks
    const uint32_t *pid, *tid;                                            ///< WM_NOBODY: not known
    const uint32_t *context_el1, *context_el2;                            ///< CONTEXTIDR
    const uint16_t* present;                                              ///< WM_SAMPLE_… bits
    const uint16_t *total_latency, *issue_latency, *translation_latency;  ///< cycles
    const uint16_t* data_source;
    const uint8_t* exception_level;                   ///< of the PC
    const uint8_t *operation_class, *operation_type;  ///< the Operation Type packet
} wm_sample_batch;
typedef int (*wm_sample_callback)(const wm_sample_batch* batch, void* user);

/// `of` is 0 if the size is not known. A result other than 0 cancels.
typedef int (*wm_progress_callback)(uint64_t bytes, uint64_t of, void* user);

/// Sums over all streams so far.
typedef struct wm_totals {
    size_t struct_bytes;  ///< set it to sizeof(wm_totals)
    uint64_t bytes;       ///< of the sources' trace
    uint64_t packets, ranges, instructions, cycles;
    uint64_t exceptions, exception_returns, contexts, timestamps;
    uint64_t gaps, gap_bytes;  ///< stretches that gave nothing, padding included
    uint64_t overflows;        ///< times that a unit's FIFO overflowed
    uint64_t no_memory;        ///< times that no image had the code
    uint64_t inconsistencies;  ///< contradictions between trace and image
    uint64_t samples;
} wm_totals;

typedef struct wm_decoder wm_decoder;

/// A decoder of all sources, on one thread. Set its outputs, then decode; it decodes only once.
WM_API wm_status wm_decoder_new(const wm_capture* capture, wm_decoder** decoder, wm_error** error);
WM_API void wm_decoder_free(wm_decoder* decoder);
/// Selects only this source: its trace ID (`0x13`) or name. May be repeated. WM_NOT_FOUND: there is no such source; the
/// message lists the existing ones.
WM_API wm_status wm_decoder_select(wm_decoder* decoder, const char* source, wm_error** error);
/// Number of threads that decode. It does not change the result. 0: one thread for each processor.
WM_API void wm_decoder_set_jobs(wm_decoder* decoder, unsigned jobs);
/// Choose one of these outputs: flow as ranges and events; flow as counts of blocks, which is faster; packets; samples.
/// Without any, flow or samples are only summed up (wm_decoder_get_totals).
WM_API void wm_decoder_on_flow(wm_decoder* decoder, wm_flow_callback callback, void* user);
/// With wm_decoder_on_flow, for a program that stores ranges: they are put into the program's memory, one batch after
/// the other, instead of memory that the library reuses. Batches of one source keep their `base` as long as possible. A
/// source uses the room that it received last; the unused rest is wasted.
WM_API void wm_decoder_set_room(wm_decoder* decoder, wm_room_callback callback, void* user);
WM_API void wm_decoder_on_counts(wm_decoder* decoder, wm_counts_callback callback, void* user);
WM_API void wm_decoder_on_packets(wm_decoder* decoder, wm_packet_callback callback, void* user);
WM_API void wm_decoder_on_samples(wm_decoder* decoder, wm_sample_callback callback, void* user);
/// Called a few times for each 4 MiB.
WM_API void wm_decoder_on_progress(wm_decoder* decoder, wm_progress_callback callback, void* user);
/// Stops decoding at the next opportunity. May be called by any thread, and by signal handlers.
WM_API void wm_decoder_cancel(wm_decoder* decoder);

// A callback of a decoder must neither call the four functions below for that decoder nor free it: WM_USAGE. It may use
// other decoders.

/// Decodes everything. WM_UNREADABLE: a file could not be read to its end; everything before that was delivered.
/// WM_USAGE: everything was already decoded.
WM_API wm_status wm_decoder_run(wm_decoder* decoder, wm_error** error);
/// Decodes the next `bytes` of the capture, at most. `*more` is 0 when nothing is left: everything was then delivered,
/// and errors are as for wm_decoder_run. Not for samples.
WM_API wm_status wm_decoder_step(wm_decoder* decoder, size_t bytes, int* more, wm_error** error);
/// The next bytes of a capture from wm_open_live, in chunks of any size. Everything known by then is delivered before
/// it returns; the division into chunks does not change the delivered elements.
WM_API wm_status wm_decoder_feed(wm_decoder* decoder, const void* bytes, size_t count, wm_error** error);
/// The stream that was fed ends: the rest is delivered.
WM_API wm_status wm_decoder_finish(wm_decoder* decoder, wm_error** error);

WM_API void wm_decoder_get_totals(const wm_decoder* decoder, wm_totals* totals);
typedef enum wm_severity { WM_GOOD = 0, WM_NOTE = 1, WM_WARNING = 2, WM_BAD = 3 } wm_severity;
/// Sentences with places about losses and contradictions, when everything is decoded. `severity` may be NULL.
WM_API size_t wm_decoder_damage_count(const wm_decoder* decoder);
WM_API const char* wm_decoder_damage(const wm_decoder* decoder, size_t index, wm_severity* severity);

// ---- answers

typedef struct wm_answers wm_answers;

/// Parts that cost time or memory, and are omitted unless they are requested.
enum {
    WM_ANSWERS_CALLS = 1,  ///< the call tree, inclusive costs, exceptions and levels
    WM_ANSWERS_TIMELINE = 2,
    WM_ANSWERS_INSTRUCTIONS = 4,   ///< instructions, lines, branches, edges, blocks and loops
    WM_ANSWERS_ALL_FUNCTIONS = 8,  ///< instructions also of functions that never ran
    WM_ANSWERS_INLINED = 16,       ///< inlined calls
    WM_ANSWERS_RANGES = 32,        ///< exact ranges and branches by image
    WM_ANSWERS_DISASSEMBLY = 64,   ///< text of instructions
    WM_ANSWERS_SOURCES = 128,      ///< text of source files
    WM_ANSWERS_ALL = 255
};

/// Decodes a capture of any kind and gathers functions, costs, coverage and all other answers. `parts`: WM_ANSWERS_…
/// bits; `jobs` as for decoders; `progress` may be NULL. Damage, and a file that was cut, are in the tables `health`
/// and `capture`. WM_NOT_FOUND: nothing could be decoded, with the reason.
WM_API wm_status wm_answers_of(const wm_capture* capture, unsigned parts, unsigned jobs, wm_progress_callback progress,
                               void* user, wm_answers** answers, wm_error** error);
WM_API void wm_answers_free(wm_answers* answers);
/// Writes an answers file, which wm_open reads and `waymark merge` adds up.
WM_API wm_status wm_answers_save(const wm_answers* answers, const char* path, wm_error** error);
/// Writes a file in one of the formats of `waymark export` (perfetto, pprof, lcov, …).
WM_API wm_status wm_answers_export(const wm_answers* answers, const char* format, const char* path, wm_error** error);

/// The tables of answers; docs/sqlite-schema.md describes them. Functions and their costs, `metrics` and `health` need
/// no bit of WM_ANSWERS_….
WM_API size_t wm_answers_table_count(void);
WM_API const char* wm_answers_table_name(size_t index);  ///< NULL: there are fewer

typedef struct wm_table wm_table;
typedef enum wm_column_type {
    WM_COLUMN_INTEGER = 0,
    WM_COLUMN_ADDRESS = 1,  ///< an integer, best shown in hexadecimal
    WM_COLUMN_REAL = 2,
    WM_COLUMN_TEXT = 3
} wm_column_type;

/// A table of the answers. It may outlive the answers. WM_NOT_FOUND: there is no table with that name; the message
/// lists them.
WM_API wm_status wm_answers_table(const wm_answers* answers, const char* name, wm_table** table, wm_error** error);
WM_API void wm_table_free(wm_table* table);
WM_API size_t wm_table_rows(const wm_table* table);
WM_API size_t wm_table_columns(const wm_table* table);
/// Columns are numbered from 0. NULL: there is no such column.
WM_API const char* wm_table_column_name(const wm_table* table, size_t column);
WM_API const char* wm_table_column_meaning(const wm_table* table, size_t column);
/// `functions.id` if it refers to rows of another table, otherwise empty.
WM_API const char* wm_table_column_refers(const wm_table* table, size_t column);
WM_API wm_column_type wm_table_column_type(const wm_table* table, size_t column);
/// The number of the column with this name, or -1.
WM_API int wm_table_find_column(const wm_table* table, const char* name);
/// The values of a column, by row, in the array for its type; NULL for another type. For an unknown value, integers and
/// reals are 0 and texts NULL.
WM_API const uint64_t* wm_table_integers(const wm_table* table, size_t column);
WM_API const double* wm_table_reals(const wm_table* table, size_t column);
WM_API const char* const* wm_table_texts(const wm_table* table, size_t column);
/// By row: 1 if the value is known.
WM_API const uint8_t* wm_table_known(const wm_table* table, size_t column);

// ---- models: from executed instructions to the trace of a unit

typedef struct wm_model wm_model;

/// A trace unit: `ptm`, `etmv4` or `ete`. `settings`: NULL, or `name=value` strings up to a NULL:
///   core (`cortex-a15`), cycle_accurate, timestamps, return_stack, branch_broadcast (1 or 0), context_id_bytes,
///   sync_bytes (between synchronisation points), fifo_bytes (0: it never overflows), drain_cycles, cycle_threshold,
///   speculation_depth, seed, register (NAME=VALUE; may be repeated).
/// WM_USAGE: an unknown unit or setting (the message lists them), or a combination that the unit does not have.
WM_API wm_status wm_model_new(const char* unit, const char* const* settings, wm_model** model, wm_error** error);
WM_API void wm_model_free(wm_model* model);

/// The state of the core from the next instruction on.
typedef struct wm_core_state {
    size_t struct_bytes;  ///< set it to sizeof(wm_core_state)
    uint8_t non_secure, hyp, nse, aarch64;
    uint8_t level;  ///< exception level, 0 to 3; AArch64 only
    uint8_t has_context_id;
    uint32_t context_id;
} wm_core_state;
WM_API wm_status wm_model_state(wm_model* model, const wm_core_state* state, wm_error** error);

enum { WM_CONDITION_FAILED = 1 };
/// An instruction that was executed.
typedef struct wm_executed {
    uint64_t address;
    uint64_t cycle;   ///< when it completed; never decreases. 0: one after the instruction before it
    uint32_t opcode;  ///< A32 and A64: the word; T32: the halfword, or first << 16 | second
    uint8_t isa;      ///< wm_isa
    uint8_t flags;    ///< WM_CONDITION_FAILED: only needed for a branch to the next instruction
    uint16_t reserved;
} wm_executed;
/// Executes instructions, in order; each continues at the next one. `each_bytes`: sizeof(wm_executed). WM_USAGE: the
/// list contradicts itself, for example if execution continues elsewhere although an instruction is not a branch; the
/// instructions before it were executed.
WM_API wm_status wm_model_execute(wm_model* model, const wm_executed* list, size_t count, size_t each_bytes,
                                  wm_error** error);
#define WM_NOT_RECORDED UINT64_MAX
/// An exception is taken. `kind`: a name such as `IRQ` or `supervisor call` (wm_exception_name). `preferred_return`:
/// the address at which execution would have continued. `handler`: the address of the next instruction;
/// WM_NOT_RECORDED: the handler is not recorded, and the next instruction is the first one after it.
WM_API wm_status wm_model_exception(wm_model* model, const char* kind, uint64_t preferred_return, uint64_t handler,
                                    wm_isa handler_isa, uint64_t cycle, wm_error** error);
WM_API const char* wm_exception_name(size_t index);  ///< NULL: there are fewer
/// A signal from outside the unit changes, for instructions from here on. A branch that was executed last counts as
/// executed after the change, since only the next instruction shows its outcome. `signal`: `NIDEN`, `DBGEN`, `SPNIDEN`,
/// `SPIDEN` (debug authentication: 1, 0, 1, 0 at first), `power` (1 at first; when it comes back, the unit is
/// programmed as before) or `os_lock` (0 at first). Instructions executed meanwhile are not in the trace. `value`: 0 or
/// 1; WM_SIGNAL_CHECK: nothing changes, and the status is the status of such a change. WM_USAGE: another signal or
/// value, a signal that the unit lacks, `power` or `os_lock` before any instruction was executed, or any signal after
/// wm_model_finish.
#define WM_SIGNAL_CHECK (-1)
WM_API wm_status wm_model_signal(wm_model* model, const char* signal, int value, wm_error** error);
/// The program ended; completes the trace.
WM_API wm_status wm_model_finish(wm_model* model, wm_error** error);
/// Takes the bytes made since the last call; they live until the next call for this model.
WM_API size_t wm_model_take(wm_model* model, const uint8_t** bytes);
/// Sets `protocol`, `core` and `register` of the options, so that a decoder can read the trace of this unit.
WM_API wm_status wm_options_describe(wm_options* options, const wm_model* model, wm_error** error);

// ---- models: units that are programmed by registers

/// A trace buffer, a profiling unit or the Debug and Profiling Unit of a DSP. Since 0.10.
typedef struct wm_unit wm_unit;
/// `kind` with its `settings` (NULL, or `name=value` strings up to a NULL):
///   etb, tmc-etb, tmc-etf, tmc-etr (docs/spec/tmc.md), at first disabled: memory_bytes (65536), base (of the memory of
///     an ETR)
///   tpiu, a trace port (docs/spec/trace-bus.md): widths (SSPSR: bit n - 1 for n pins; 0x8000800b)
///   funnel: inputs (1 to 8; 8); replicator: none. After reset a funnel's inputs are closed, and a replicator passes
///   all cti, a cross-trigger interface (docs/spec/cti.md): triggers (8) and channels (4), 1 to 32, acknowledged (bit
///   n: the
///     receiver of output n acknowledges it; 0)
///   spe (docs/spec/spe.md): version (v1.0 to v1.5; v1.2), memory_base (0x80000000) and memory_bytes (1048576) of the
///     only memory that is writable, interval (a multiple of 256: programmed as Linux does for EL0; 0, the default: as
///     after reset), in_flight (1), seed
///   dpu (docs/spec/dpu.md), after reset: base (of its registers), and what the EOnCE passes on: TCHOF, TINT, TEXEC,
///     TMARK, TLOOP, TSUB, TRTE, TCOUNT, TCNTEXT (1 or 0)
/// WM_USAGE: an unknown kind or setting (the message lists them), or a value that is impossible.
WM_API wm_status wm_unit_new(const char* kind, const char* const* settings, wm_unit** unit, wm_error** error);
WM_API void wm_unit_free(wm_unit* unit);

/// Writes a register: `FFCR`, `PMSCR_EL1`, `DP_TC` (docs/registers); for spe and dpu also one field: `PMSCR_EL1.E0SPE`,
/// `DP_TC.EN`. The other fields keep their values, or the values written last; flags that are cleared by writing 1
/// stay. SPE: the function does not check whether software at this exception level may write the register; use
/// wm_unit_decide. DPU: the write takes effect in the next cycle. WM_USAGE: no such register, a read-only register, a
/// value that does not fit, or a write that the specification forbids in this state: it changes nothing.
WM_API wm_status wm_unit_write(wm_unit* unit, const char* name, uint64_t value, wm_error** error);
/// Reads a register or a field, with its side effects (RRD of a buffer removes a word).
WM_API wm_status wm_unit_read(wm_unit* unit, const char* name, uint64_t* value, wm_error** error);
/// Something happens to the unit.
///   buffers and tpiu: trigger, flush; tpiu: idle, no source has anything (`value` does not matter)
///   funnel: input (to which wm_unit_send sends from now on), pass (as many transfers of four bytes), flush (all pass)
///   replicator: output (from which wm_unit_take takes from now on)
///   cti: input0, input1, … and channel0, channel1, …, as other interfaces make them active (1 or 0)
///   spe: exception_level (0 to 3), PSB, DSB, drain (stops as Linux does), cycle (time passes up to it), counter (the
///     physical counter), CONTEXTIDR_EL1, CONTEXTIDR_EL2
///   dpu, from the next cycle on: supervisor, debug, DPUE, bus_others (1 or 0), PID, DID (0 to 255)
/// WM_USAGE: another signal, or an impossible value.
WM_API wm_status wm_unit_signal(wm_unit* unit, const char* signal, uint64_t value, wm_error** error);
/// The output signals of the unit, 1 or 0. buffers: stopped, triggered, wrapped; tpiu: stopped; funnel: waiting (bytes
/// that have not passed); cti: output0, output1, … and channel0, channel1, …, which it makes active; spe: PMBIRQ,
/// enabled; dpu: interrupt0, interrupt1, debug_request (at any time in the last wm_unit_run), idle. WM_USAGE: another
/// line.
WM_API wm_status wm_unit_line(wm_unit* unit, const char* line, int* level, wm_error** error);
/// The memory to which the unit writes; it lives until the next call for this unit. buffers: the bytes for a reader,
/// the oldest byte first; spe: the profiling buffer up to PMBPTR_EL1; dpu: from DP_TSA to the line of DP_TEA, in memory
/// order. Returns 0 and sets `*bytes` to NULL if there is nothing, or no memory to lend it.
WM_API size_t wm_unit_memory(wm_unit* unit, const uint8_t** bytes);
/// The bytes that left the unit since the last call, lent like the memory of wm_unit_memory. tmc-etf as a hardware
/// FIFO: frames; tpiu: bytes through its pins; funnel, replicator: a trace ID and a byte by turns; dpu: bytes of Nexus
/// messages, up to 64 MiB of which wait.
WM_API size_t wm_unit_take(wm_unit* unit, const uint8_t** bytes);

/// Buffers, tpiu, funnel, replicator: bytes of a source, 0x01 to 0x6f. Bytes that the unit does not accept are lost, as
/// in hardware.
WM_API wm_status wm_unit_send(wm_unit* unit, uint8_t trace_id, const uint8_t* bytes, size_t count, wm_error** error);

enum { WM_OP_OTHER, WM_OP_LOAD, WM_OP_STORE, WM_OP_BRANCH };
enum {
    WM_OP_CONDITIONAL = 1,
    WM_OP_INDIRECT = 2,
    WM_OP_ATOMIC = 4,
    WM_OP_SIMD_FP = 8,
    WM_OP_NOT_TAKEN = 16,    ///< a branch, or another conditional operation whose condition failed
    WM_OP_NOT_RETIRED = 32,  ///< speculative, and discarded
    WM_OP_HAS_PHYSICAL = 64,
    WM_OP_HAS_DATA_SOURCE = 128
};
/// An operation that went through the pipeline. Latencies are cycles from its dispatch.
typedef struct wm_operation {
    uint64_t pc;
    uint64_t cycle;     ///< of its dispatch; never decreases. 0: one after the operation before it
    uint64_t address;   ///< load, store: of the data; branch: the target, or the next instruction if it was not taken
    uint64_t physical;  ///< of the data, with WM_OP_HAS_PHYSICAL
    uint64_t events;    ///< bits as in PMSEVFR_EL1; the unit sets the bits that it knows itself
    uint32_t total_latency, issue_latency, translation_latency;
    uint16_t data_source;  ///< with WM_OP_HAS_DATA_SOURCE
    uint8_t kind;          ///< WM_OP_OTHER to WM_OP_BRANCH
    uint8_t flags;
} wm_operation;
/// SPE: operations are executed, in program order. `each_bytes`: sizeof(wm_operation). WM_USAGE: an impossible
/// operation; the operations before it were executed.
WM_API wm_status wm_unit_retire(wm_unit* unit, const wm_operation* list, size_t count, size_t each_bytes,
                                wm_error** error);
/// SPE: a function of the architecture, by its published name, for the present registers and exception level:
/// CheckProfilingBufferAccess, CheckStatisticalProfilingAccess, ProfilingBufferOwner, ProfilingBufferEnabled,
/// StatisticalProfilingEnabled, CollectContextIDR1, CollectContextIDR2, CollectPhysicalAddress, CollectTimeStamp, or
/// CollectRecord, which needs `operation` (otherwise NULL). `operation_bytes`: sizeof(wm_operation). `answer`: `TRUE`,
/// `FALSE`, `OK`, `TrapToEL2`, `Non-secure EL1`, `Virtual` and so on; `why`: the condition that decided it. Both may be
/// NULL, and live until the next call for this unit. WM_USAGE: another function, or CollectRecord without an operation
/// or while profiling is off.
WM_API wm_status wm_unit_decide(wm_unit* unit, const char* function, const wm_operation* operation,
                                size_t operation_bytes, const char** answer, const char** why, wm_error** error);

/// An event of the DSP's platform: `DC_MISS`, `STALL_ALL` (docs/spec/dpu.md, section 8).
typedef struct wm_event_count {
    const char* name;
    uint64_t times;  ///< in all cycles of the call; for an event with a duration, the number of cycles
} wm_event_count;
/// A report of the EOnCE: `call`, `ret`, `rte`, `interrupt`, `cof`, `loop_short`, `loop_long`, `mark`, `exec_set`,
/// `edca`, `edcd`, `debugev`.
typedef struct wm_eonce_item {
    const char* kind;
    uint32_t source, destination;  ///< last and start address of a loop; MARK and execution sets have only `source`
    uint32_t count, extension;     ///< the EOnCE's counters, with TCOUNT and TCNTEXT
    uint8_t channel;               ///< edca: 0 to 5
    uint8_t supervisor, pid, did;  ///< privilege and IDs after the item, from then on
    uint8_t reserved[4];
} wm_eonce_item;
/// DPU: cycles pass, with these events spread evenly over them; or one cycle with `item` (otherwise NULL). WM_USAGE: an
/// unknown event or item, an event that is given twice, or too many events; nothing ran. WM_USAGE also for mistakes in
/// the values written to registers, with the first mistake in the message; the cycles ran nevertheless.
WM_API wm_status wm_unit_run(wm_unit* unit, uint64_t cycles, const wm_event_count* events, size_t count,
                             const wm_eonce_item* item, wm_error** error);

#ifdef __cplusplus
}
#endif

#endif
