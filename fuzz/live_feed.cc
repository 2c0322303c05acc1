/// The C interface with fed bytes: any bytes, described in any way, with any code. Chunks of any size give what one
/// chunk gives; nothing crashes, and errors are errors.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "waymark.h"
#include "waymark/core/types.h"

namespace {

constexpr std::uint64_t fuzz_code_base = 0x8000;

struct Fed {
    std::uint64_t hash = 1469598103934665603U, ranges = 0, events = 0;
    void add(std::uint64_t number) { hash = (hash ^ number) * 1099511628211U; }
};

int take(const wm_flow_batch* batch, void* user) {
    Fed& fed = *static_cast<Fed*>(user);
    std::size_t next = 0;
    const auto event = [&](const wm_event& e) {
        for (const std::uint64_t n : {std::uint64_t{e.kind}, e.offset, e.address, e.other, e.value,
                                      std::uint64_t{e.cycles}, std::uint64_t{e.detail}, std::uint64_t{e.flags}})
            fed.add(n);
        ++fed.events;
    };
    for (std::size_t i = 0; i < batch->range_count; ++i) {
        while (next < batch->event_count && batch->events[next].before <= i) event(batch->events[next++]);
        const wm_range& range = batch->ranges[i];
        if (range.edge / 2 >= batch->block_count) std::abort();
        fed.add(batch->blocks[range.edge / 2].start);
        fed.add(range.edge & 1U);
        fed.add(batch->base + range.offset);
        if (wm_flow_buffer_offset(batch, batch->base + range.offset) == ~std::uint64_t{0}) std::abort();
        ++fed.ranges;
    }
    while (next < batch->event_count) event(batch->events[next++]);
    return 0;
}

Fed feed(const wm_capture* capture, waymark::Bytes bytes, std::size_t chunk) {
    wm_decoder* decoder = nullptr;
    Fed out;
    if (wm_decoder_new(capture, &decoder, nullptr) != WM_OK) std::abort();
    wm_decoder_on_flow(decoder, take, &out);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        if (wm_decoder_feed(decoder, bytes.data() + at, std::min(chunk, bytes.size() - at), nullptr) != WM_OK)
            std::abort();
    if (wm_decoder_finish(decoder, nullptr) != WM_OK) std::abort();
    wm_totals totals{};
    totals.struct_bytes = sizeof totals;
    wm_decoder_get_totals(decoder, &totals);
    if (totals.ranges != out.ranges) std::abort();
    for (std::size_t i = 0; i < wm_decoder_damage_count(decoder); ++i)
        if (wm_decoder_damage(decoder, i, nullptr)[0] == '\0') std::abort();
    wm_decoder_free(decoder);
    return out;
}

}  // namespace

/// Input: the kind of source (a byte), a register's value (4), how much of the rest is code (a byte, times 4), size of
/// chunks (a byte), code, trace.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    constexpr std::size_t head = 7;
    if (size < head || size > 4096) return 0;
    const unsigned what = data[0];
    std::uint32_t value = 0;
    for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{data[1 + i]} << 8 * i;
    const std::size_t code = std::min<std::size_t>(std::size_t{data[5]} * 4, size - head);
    const std::size_t chunk = std::max<std::size_t>(data[6], 1);

    wm_options* options = wm_options_new();
    const auto set = [&](const char* name, const std::string& text) {
        wm_error* error = nullptr;
        if (wm_options_set(options, name, text.c_str(), &error) != WM_OK) std::abort();
    };
    const bool is_ptm = (what & 1U) == 0;
    set("protocol", is_ptm ? "PTM1.1" : "ETE");
    set("register", (is_ptm ? "ETMCR=" : "TRCCONFIGR=") + std::to_string(value));
    const char* const formats[] = {"source_data", "coresight", "dstream_coresight"};
    const unsigned format = (what >> 1 & 3U) % 3;
    set("buffer-format", formats[format]);
    if (format != 0) {
        set("trace-id", "1");
        set("trace-id", "0x10");
    }
    if (code != 0 && wm_options_add_code(options, fuzz_code_base, data + head, code, nullptr) != WM_OK) std::abort();
    wm_capture* capture = nullptr;
    const wm_status opened = wm_open_live(options, &capture, nullptr);
    wm_options_free(options);
    if (opened != WM_OK) std::abort();

    const waymark::Bytes trace(data + head + code, size - head - code);
    const Fed whole = feed(capture, trace, std::max<std::size_t>(trace.size(), 1));
    const Fed pieces = feed(capture, trace, chunk);
    // With several sources the order depends on the chunks, and so does the judgement of IDs without a description.
    if (format == 0 && (whole.hash != pieces.hash || whole.ranges != pieces.ranges)) std::abort();
    wm_close(capture);
    return 0;
}
