#include "check.h"

static void add(uint64_t* hash, uint64_t number) { *hash = (*hash ^ number) * UINT64_C(1099511628211); }

static void add_range(story* s, const wm_flow_batch* batch, const wm_range* range) {
    CHECK(range->edge / 2 < batch->block_count);
    const wm_block* block = &batch->blocks[range->edge / 2];
    add(&s->range_hash, block->start);
    add(&s->range_hash, block->start + block->bytes);
    add(&s->hash, block->start);
    add(&s->hash, block->bytes);
    add(&s->hash, range->edge & 1);
    add(&s->hash, range->cycles);
    add(&s->hash, batch->base + range->offset);
    ++s->ranges;
    s->instructions += block->instructions;
    s->taken += range->edge & 1;
}

static void add_event(story* s, const wm_event* event) {
    add(&s->hash, event->kind);
    add(&s->hash, event->offset);
    add(&s->hash, event->address);
    add(&s->hash, event->other);
    add(&s->hash, event->value);
    add(&s->hash, event->cycles);
    add(&s->hash, event->detail);
    add(&s->hash, event->flags);
    for (const char* c = event->name; *c != '\0'; ++c) add(&s->hash, (unsigned char)*c);
    ++s->events;
    s->exceptions += event->kind == WM_EVENT_EXCEPTION;
    if (event->kind == WM_EVENT_GAP) s->gap_bytes += event->value;
}

int collect(const wm_flow_batch* batch, void* user_story) {
    story* s = user_story;
    CHECK(batch->struct_bytes >= sizeof *batch && batch->source != NULL && batch->buffer != NULL);
    size_t next = 0;
    for (size_t i = 0; i < batch->range_count; ++i) {
        while (next < batch->event_count && batch->events[next].before <= i) add_event(s, &batch->events[next++]);
        add_range(s, batch, &batch->ranges[i]);
    }
    while (next < batch->event_count) add_event(s, &batch->events[next++]);
    return 0;
}
