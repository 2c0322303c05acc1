// Rows of `waymark spe records --format tsv`: listing/row.h against fmt, with the cells of a load and values that
// change as those of samples do: 64 places in code, everything that depends on the place equal, the rest new in each
// row.
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <string_view>

#include "../src/listing/row.h"

namespace waymark::listing {
namespace {

struct Sample {
    std::uint64_t pc, data, physical, timestamp, offset;
    std::uint32_t issue, total, translation;
};
Sample sample(std::uint64_t i) {
    const std::uint64_t mixed = i * 0x9e37'79b9'7f4a'7c15U;
    return {0xffff'8000'1020 + (mixed >> 58) * 4,
            0xffff'9000'0000 + (mixed >> 20 & 0xfffff8),
            0x8'1234'0000 + (mixed >> 24 & 0xfff8),
            1'234'567'890'123 + i * 37,
            i * 64,
            static_cast<std::uint32_t>(mixed & 15),
            static_cast<std::uint32_t>(mixed >> 4 & 255),
            static_cast<std::uint32_t>(mixed >> 12 & 3)};
}
constexpr std::string_view events = "RETIRED:L1D-ACCESS:TLB-ACCESS", comm = "program", dso = "/usr/lib/libc.so.6",
                           source = "L1D", operation = "load general";

void text_row(benchmark::State& state) {
    RowText out;
    TsvNumbers rising;
    SameTexts same;
    std::uint64_t i = 0, bytes = 0;
    for (auto _ : state) {
        const Sample s = sample(i++);
        SameTexts::Text& text = same.find({s.pc, 7, 0, 0, 0, 77, 1, 2, 3});
        TsvRow row(out, &rising, text);
        row.same(0, [&](auto& w) {
            w.number("cpu", true, 3);
            w.word("op", true, "LD");
            w.hex("pc", true, s.pc);
            w.number("el", true, 0);
            for (int flag = 0; flag < 3; ++flag) w.flag("flag", true, false);
            w.word("subclass", true, "GP-REG");
            for (int empty = 0; empty < 6; ++empty) w.number("empty", false, 0);
            w.word("event", true, events);
        });
        row.number("issue_lat", true, s.issue);
        row.number("total_lat", true, s.total);
        row.hex("vaddr", true, s.data);
        row.number("xlat_lat", true, s.translation);
        row.hex("paddr", true, s.physical);
        row.same(1, [&](auto& w) {
            w.word("data_source", true, source);
            for (int empty = 0; empty < 5; ++empty) w.number("empty", false, 0);
        });
        row.rising("ts", true, s.timestamp);
        row.hex("offset", true, s.offset);
        row.number("bytes", true, 64);
        row.rising("time_ns", true, s.timestamp * 40);
        row.same(2, [&](auto& w) {
            w.number("pid", true, 77);
            w.number("tid", true, 78);
            w.text("comm", true, comm);
            w.text("dso", true, dso);
            w.hex("dso_offset", true, s.pc & 0xffff);
            w.word("security", true, "non-secure");
        });
        row.number("exec_lat", true, s.total - s.issue);
        row.number("alt_issue_lat", false, 0);
        row.same(3, [&](auto& w) {
            w.hex("event_bits", true, 0x16);
            w.hex("op_type", true, 0);
            w.word("operation", true, operation);
            for (int empty = 0; empty < 5; ++empty) w.number("empty", false, 0);
            w.number("data_source_code", true, 0);
            for (int empty = 0; empty < 3; ++empty) w.number("empty", false, 0);
        });
        row.end();
        if (out.view().size() > 1 << 16) {
            bytes += out.view().size();
            out.clear();
        }
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(i));
    state.counters["bytes/row"] = static_cast<double>(bytes) / static_cast<double>(i);
}
BENCHMARK(text_row);

void with_fmt(benchmark::State& state) {
    fmt::memory_buffer out;
    std::uint64_t i = 0, bytes = 0;
    for (auto _ : state) {
        const Sample s = sample(i++);
        fmt::format_to(
            std::back_inserter(out),
            "{}\t{}\t{:#x}\t{}\t{}\t{}\t{}\t{}\t\t\t\t\t\t\t{}\t{}\t{}\t{:#x}\t{}\t{:#x}\t{}\t\t\t\t\t\t{}\t{:#x}"
            "\t{}\t{}\t{}\t{}\t{}\t{}\t{:#x}\t{}\t{}\t\t{:#x}\t{:#x}\t{}\t\t\t\t\t\t{}\t\t\t\n",
            3, "LD", s.pc, 0, 0, 0, 0, "GP-REG", events, s.issue, s.total, s.data, s.translation, s.physical, source,
            s.timestamp, s.offset, 64, s.timestamp * 40, 77, 78, comm, dso, s.pc & 0xffff, "non-secure",
            s.total - s.issue, 0x16, 0, operation, 0);
        if (out.size() > 1 << 16) {
            bytes += out.size();
            out.clear();
        }
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(i));
    state.counters["bytes/row"] = static_cast<double>(bytes) / static_cast<double>(i);
}
BENCHMARK(with_fmt);

}  // namespace
}  // namespace waymark::listing

BENCHMARK_MAIN();
