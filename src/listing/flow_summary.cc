#include "waymark/listing/flow_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "print.h"
#include "waymark/core/numbers.h"

namespace waymark::listing {

namespace {

void print_row(TextSink& out, std::string_view name, std::uint64_t value) {
    print(out, "  {:<28} {:>14}\n", name, grouped(value));
}

void print_rows(TextSink& out, const flow::Totals& t) {
    const auto row = [&](std::string_view name, std::uint64_t value) { print_row(out, name, value); };
    row("ranges", t.ranges);
    row("instructions", t.instructions + t.unseen_instructions);
    if (t.unseen_instructions != 0) row("  of these unseen", t.unseen_instructions);
    if (t.cycles != 0) row("cycles", t.cycles);
    row("exceptions", t.exceptions);
    row("exception returns", t.exception_returns);
    for (unsigned i = 0; i < flow::trace_on_reasons; ++i)
        if (t.trace_on[i] != 0)
            row(fmt::format("trace on: {}", flow::name(static_cast<flow::TraceOnReason>(i))), t.trace_on[i]);
    if (t.triggers != 0) row("triggers", t.triggers);
    if (t.timestamps != 0) row("timestamps", t.timestamps);
    if (t.first_timestamp) print(out, "  {:<28} {:>14}\n", "first timestamp", fmt::format("{:#x}", *t.first_timestamp));
    if (t.last_timestamp) print(out, "  {:<28} {:>14}\n", "last timestamp", fmt::format("{:#x}", *t.last_timestamp));
    for (unsigned i = 0; i < gap_reasons; ++i)
        if (t.gaps[i].times != 0 && is_loss(static_cast<GapReason>(i)))
            print(out, "  {:<28} {:>14}  {}\n", fmt::format("gap: {}", name(static_cast<GapReason>(i))),
                  grouped(t.gaps[i].times), counted(t.gaps[i].bytes, "byte"));
    if (t.no_memory != 0) row("gap: no image there", t.no_memory);
    if (t.reached != 0) row("reached without an image", t.reached);
    if (t.unplaced != 0) row("waypoints without an address", t.unplaced);
    if (t.untraced != 0) row("gap: way not traced", t.untraced);
    if (t.uncommitted != 0) row("neither committed nor cancelled", t.uncommitted);
    if (t.unknown_cycle_counts != 0) row("unknown cycle counts", t.unknown_cycle_counts);
    for (unsigned i = 0; i < flow::conflicts; ++i)
        if (t.inconsistencies[i] != 0)
            print(out, "  {:<32} {:>10}\n",
                  fmt::format("contradiction: {}", flow::name(static_cast<flow::Conflict>(i))),
                  grouped(t.inconsistencies[i]));
    print(out, "  {:<24} {:#018x}\n", "hash", t.hash);
}

/// Prints how the bytes of a buffer were used; the numbers add up. `read`: one of its sources was decoded.
void print_buffer(TextSink& out, const pipeline::BufferReport& buffer, bool read) {
    const auto row = [&](std::string_view name, std::uint64_t value) { print_row(out, name, value); };
    print(out, "buffer {} ({})\n", buffer.name, buffer.buffer->format_name);
    if (!read && !buffer.framed && buffer.bytes == 0)
        out.write("  not read: none of its sources is decoded\n");
    else
        row("bytes", buffer.bytes);
    if (buffer.framed) {
        using coresight::TraceIdClass;
        const coresight::Totals& t = buffer.frames;
        const std::uint64_t others = t.data_bytes(TraceIdClass::trigger) + t.data_bytes(TraceIdClass::flush) +
                                     t.data_bytes(TraceIdClass::reserved);
        row("  of sources", t.data_bytes(TraceIdClass::source));
        row("  of frames and padding", t.overhead_bytes() + t.padding_bytes());
        if (others != 0) row("  of triggers, reserved IDs", others);
        if (t.footer_bytes != 0) row("  of block footers", t.footer_bytes);
        if (t.unassociated != 0) row("  before the first ID", t.unassociated);
        if (t.lost_bytes() != 0) row("  lost", t.lost_bytes());
    }
    out.write("\n");
}

}  // namespace

void print_flow_summary(TextSink& out, const pipeline::Report& report, const std::vector<DecodedSource>& all,
                        const answers::Account& account) {
    for (const pipeline::BufferReport& buffer : report.buffers)
        print_buffer(out, buffer, buffer.error || std::any_of(all.begin(), all.end(), [&](const DecodedSource& d) {
                                      return d.buffer == buffer.name;
                                  }));
    flow::Totals sum;
    std::uint64_t bytes = 0, packets = 0, padding = 0;
    const auto head = [&](std::uint64_t n, std::uint64_t p, std::uint64_t pad, const flow::Totals& t) {
        const auto row = [&](std::string_view name, std::uint64_t value) { print_row(out, name, value); };
        const auto in = [&](GapReason reason) { return t.gaps[static_cast<unsigned>(reason)].bytes; };
        const std::uint64_t lost = t.gap_bytes() - in(GapReason::unsynchronised)-in(GapReason::padding);
        row("bytes", n);
        row("  decoded", n - t.gap_bytes() - pad);
        if (pad + in(GapReason::padding) != 0) row("  padding", pad + in(GapReason::padding));
        row("  unsynchronised", in(GapReason::unsynchronised));
        row("  lost", lost);
        row("packets", p);
    };
    for (const DecodedSource& d : all) {
        print(out, "source {} ({}{}{}), buffer {}\n", d.source->label(), d.source->type,
              d.source->core_type.empty() ? "" : ", ", d.source->core_type, d.buffer);
        head(d.bytes + d.padding, d.packets, d.padding, d.totals);
        print_rows(out, d.totals);
        out.write("\n");
        sum += d.totals;
        bytes += d.bytes + d.padding;
        packets += d.packets;
        padding += d.padding;
    }
    print(out, "total of {} source{}\n", all.size(), all.size() == 1 ? "" : "s");
    head(bytes, packets, padding, sum);
    if (all.size() == 1) sum.hash = all.front().totals.hash;
    print_rows(out, sum);
    out.write("\n");
    print_account(out, account);
}

}  // namespace waymark::listing
