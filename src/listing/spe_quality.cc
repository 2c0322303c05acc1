#include <fmt/format.h>

#include <filesystem>
#include <set>

#include "print.h"
#include "spe_quality.h"
#include "table_json.h"
#include "waymark/answers/account_effects.h"
#include "waymark/core/numbers.h"
#include "waymark/core/quote.h"
#include "waymark/listing/profile.h"

namespace waymark::listing {

namespace {

namespace perf = capture::perf;
using analysis::Flagged;
using analysis::StreamQuality;
using answers::Cell;
using answers::Column;
using answers::Table;
using nlohmann::ordered_json;

/// The name of a stream: `CPU 3`, `thread 1234`, `the buffer`.
std::string stream_text(const StreamQuality& s) {
    if (s.cpu != perf::nobody) return fmt::format("CPU {}", s.cpu);
    return s.tid != perf::nobody ? fmt::format("thread {}", s.tid) : "the buffer";
}

std::string flagged_text(const Flagged& f) {
    return fmt::format("{} ({})", counted(f.stretches, "stretch", "stretches"), counted(f.bytes, "byte"));
}

Table streams_table(const analysis::Quality& quality) {
    const auto known = [](std::uint32_t v) { return v == perf::nobody ? answers::Value() : answers::Value(v); };
    Table table{.columns = {Column::text("cpu", "CPU"), Column::count("tid", ""), Column::text("core", "core"),
                            Column::count("records", "records"), Column::count("selected", "asked for"),
                            Column::count("bytes", "bytes"), Column::real("mean_ns", "mean gap"),
                            Column::count("min_interval", "least interval"), Column::count("collided", "collided"),
                            Column::count("truncated", "cut short"), Column::count("lost_bytes", "lost bytes"),
                            Column::count("damaged", "damaged"), Column::count("inconsistent", "odd"),
                            Column::count("no_pc", "no PC")}};
    for (const StreamQuality& s : quality.streams)
        table.add({Cell(stream_text(s), known(s.cpu)), Cell("", known(s.tid)),
                   Cell(analysis::core_name(s.midr, quality.modelled)), Cell(s.records), Cell(s.selected),
                   Cell(s.bytes), s.mean_ns ? Cell(duration_text(*s.mean_ns), *s.mean_ns) : Cell::none(),
                   s.min_interval == 0 ? Cell::none() : Cell(s.min_interval), Cell(s.collided.stretches),
                   Cell(s.truncated.stretches), Cell(s.lost_bytes), Cell(s.damaged), Cell(s.inconsistent),
                   Cell(s.no_pc)});
    return table;
}

void print_whole(TextSink& out, const doctor::ProfileView& view) {
    print_quality_head(out, view);
    out.write("\n");
    print_text(out, streams_table(view.quality()));
    out.write(
        "collided, cut short: stretches of the buffer so marked. damaged: records with bytes that are no packet.\n"
        "odd: records with packets their operation cannot have.\n");
}

}  // namespace

void print_quality_head(TextSink& out, const doctor::ProfileView& view) {
    const analysis::Quality& q = view.quality();
    const bool bare = view.capture().bare;
    const std::uint64_t no_pc = [&] {
        std::uint64_t sum = 0;
        for (const StreamQuality& s : q.streams) sum += s.no_pc;
        return sum;
    }();
    print(out, "capture   {}\n", view.capture().file->name());
    print(out, "samples   {}{}{}{}\n", grouped(q.selected),
          q.selected == q.records - no_pc ? "" : fmt::format(" asked for, of {} records", grouped(q.records)),
          no_pc == 0 ? "" : fmt::format("; {} without a PC are left out", counted(no_pc, "record")),
          q.streams.size() < 2 ? "" : fmt::format("; {} streams", q.streams.size()));
    std::set<std::uint32_t> midrs;
    for (const StreamQuality& s : q.streams)
        if (s.records != 0) midrs.insert(s.midr);
    std::string cores;
    for (const std::uint32_t midr : midrs) cores += (cores.empty() ? "" : ", ") + analysis::core_name(midr, q.modelled);
    if (!cores.empty())
        print(out, "cores     {}{}{}\n", cores,
              q.modelled ? ": latencies, data sources and events of caches, TLBs and prediction are the model's" : "",
              midrs.contains(0) ? ": data sources have no names; --midr VALUE says which core it was" : "");
    print_account(out, view.account(), 10);
    if (q.sampling.empty() && !bare) print(out, "interval  not in the file\n");
    if (bare) print(out, "interval  not known, nor filters and threads: bare bytes of a buffer\n");
    for (const analysis::Sampling& s : q.sampling) {
        const std::string scale =
            s.scale_low() == s.scale_high()
                ? fmt::format("{:.0f}", s.scale_low())
                : fmt::format("{} to {}", quantity_text(s.scale_low()), quantity_text(s.scale_high()));
        print(out, "interval  {}{}: a sample represents about {} operations{}\n", analysis::interval_text(s),
              s.asked == s.interval || s.longest != s.interval ? "" : fmt::format(" (asked for {})", grouped(s.asked)),
              scale, s.filters.empty() ? "" : " among those the filters let pass");
        std::string filters;
        for (const std::string& f : s.filters) filters += (filters.empty() ? "" : "; ") + f;
        print(out, "filters   {}\n", filters.empty() ? "none" : filters);
    }
    if (q.collided.stretches != 0)
        print(out, "collided  {}: samples were dropped there, mostly of long operations\n", flagged_text(q.collided));
    if (q.truncated.stretches != 0 || q.partial.stretches != 0)
        print(out, "cut short {}, {} of them inside a record: the buffer was full or could not be written\n",
              flagged_text(q.truncated), grouped(q.partial.stretches));
    if (q.lost_bytes() + q.damaged_bytes() + q.container_losses != 0)
        print(out, "lost      {} in no record, {} damaged inside records, {} of the file's own structure\n",
              counted(q.lost_bytes(), "byte"), grouped(q.damaged_bytes()), counted(q.container_lost_bytes, "byte"));
    else
        print(out, "lost      {}{}\n",
              bare ? "nothing in these bytes; whether the buffer was full is not known" : "nothing",
              q.collided.stretches != 0 ? " but the samples that collided" : "");
    if (q.lost_events != 0)
        print(out, "          perf lost {} about threads and mappings\n", counted(q.lost_events, "record"));
    if (q.without_address != 0) {
        const std::string why = analysis::why_no_address(q);
        print(out, "addresses not known of {} of loads and stores{}; they are in no cache line and have no data page\n",
              counted(q.without_address, "sample"), why.empty() ? "" : fmt::format(" ({})", why));
    }
    if (!bare) {
        if (q.without_thread != 0)
            print(out, "threads   not known of {} ({}): record with context packets (as root) or with switch events\n",
                  counted(q.without_thread, "sample"), Cell::share(q.without_thread, q.selected).shown);
        if (q.without_mapping != 0)
            print(out, "code      {} ({}) outside every known mapping\n", counted(q.without_mapping, "sample"),
                  Cell::share(q.without_mapping, q.selected).shown);
        if (!q.clock)
            print(out, "clock     not in the file: samples are counted as if every mapping had existed all the time\n");
    }
    for (const auto& [midr, erratum] : q.errata)
        print(out, "erratum   {}: {} ({})\n", erratum.number, erratum.text, analysis::core_name(midr));
}

ordered_json quality_json(const doctor::ProfileView& view) {
    const analysis::Quality& q = view.quality();
    const auto flagged = [](const Flagged& f) { return ordered_json{{"stretches", f.stretches}, {"bytes", f.bytes}}; };
    const auto known = [](std::uint32_t v) { return v == perf::nobody ? ordered_json() : ordered_json(v); };
    ordered_json streams = ordered_json::array(), sampling = ordered_json::array(), errata = ordered_json::array();
    for (const StreamQuality& s : q.streams)
        streams.push_back({{"cpu", known(s.cpu)},
                           {"tid", known(s.tid)},
                           {"midr", s.midr},
                           {"core", analysis::core_name(s.midr, q.modelled)},
                           {"bytes", s.bytes},
                           {"records", s.records},
                           {"selected", s.selected},
                           {"no_pc", s.no_pc},
                           {"damaged", s.damaged},
                           {"inconsistent", s.inconsistent},
                           {"lost_bytes", s.lost_bytes},
                           {"damaged_bytes", s.damaged_bytes},
                           {"collided", flagged(s.collided)},
                           {"truncated", flagged(s.truncated)},
                           {"partial", flagged(s.partial)},
                           {"overwritten", flagged(s.overwritten)},
                           {"mean_ns", s.mean_ns ? ordered_json(*s.mean_ns) : ordered_json()},
                           {"min_interval", s.min_interval}});
    for (const analysis::Sampling& s : q.sampling)
        sampling.push_back({{"asked", s.asked},
                            {"interval", s.interval},
                            {"longest_interval", s.longest},
                            {"jitter", s.jitter},
                            {"timestamps", s.timestamps},
                            {"physical_addresses", s.physical_addresses},
                            {"scale_low", s.scale_low()},
                            {"scale_high", s.scale_high()},
                            {"filters", s.filters}});
    for (const auto& [midr, erratum] : q.errata)
        errata.push_back({{"midr", midr}, {"number", erratum.number}, {"text", erratum.text}});
    return {{"run", answers::account_sentence(view.account())},
            {"samples", q.selected},
            {"records", q.records},
            {"without_thread", q.without_thread},
            {"with_context", q.with_context},
            {"without_mapping", q.without_mapping},
            {"without_address", q.without_address},
            {"sve_without_address", q.sve_without_address},
            {"clock", q.clock},
            {"unfinished", q.unfinished},
            {"lost_bytes", q.lost_bytes()},
            {"damaged_bytes", q.damaged_bytes()},
            {"file_lost_bytes", q.container_lost_bytes},
            {"lost_events", q.lost_events},
            {"collided", flagged(q.collided)},
            {"truncated", flagged(q.truncated)},
            {"partial", flagged(q.partial)},
            {"sampling", sampling},
            {"modelled", q.modelled},
            {"errata", errata},
            {"streams", streams}};
}

void print_quality(TextSink& out, const doctor::ProfileView& view, LineFormat format) {
    if (format == LineFormat::tsv) return print_tsv(out, streams_table(view.quality()));
    if (format == LineFormat::json) return out.write(json_text(quality_json(view)) + "\n");
    print_whole(out, view);
}

void print_profile_info(TextSink& out, const doctor::ProfileView& view, const std::string& capture, LineFormat format) {
    std::error_code error;
    const std::uintmax_t bytes = std::filesystem::file_size(capture, error);
    constexpr const char* kind = "perf.data, samples of the Statistical Profiling Extension (SPE)";
    if (format != LineFormat::text)
        return print_document(out,
                              ordered_json{{"capture", capture},
                                           {"kind", kind},
                                           {"bytes", error ? ordered_json() : ordered_json(bytes)},
                                           {"run", answers::account_sentence(view.account())},
                                           {"samples", quality_json(view)}},
                              format);
    print(out, "capture {}\n  {}, {}\n\n", capture, kind, error ? "of unknown size" : counted(bytes, "byte"));
    print_whole(out, view);
    print(out, "\nnext: waymark spe report {} explains what the samples mean\n", shell_file(capture));
}

}  // namespace waymark::listing
