#include "waymark/listing/verified.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "print.h"
#include "waymark/core/numbers.h"

namespace waymark::listing {

namespace {

using record::TruthRange;
using verify::Verdict;
using verify::VerifiedSource;
using verify::VerifiedThread;

/// A row of two columns, marked if they differ.
void print_row(TextSink& out, std::string_view name, const std::string& executed, const std::string& decoded,
               bool heads = false) {
    print(out, "  {:<14} {:>20} {:>20}{}\n", name, executed, decoded, heads || executed == decoded ? "" : "  *");
}

std::string_view heading(Verdict verdict, std::string_view equal) {
    switch (verdict) {
        case Verdict::equal: return equal;
        case Verdict::not_compared: return "NOT COMPARED";
        default: return "DIFFERENT";
    }
}

std::string text(const std::optional<TruthRange>& range, const image::Symbols& symbols) {
    if (!range) return "nothing further";
    const std::string symbol = symbols.text({range->start});
    return fmt::format("{:#010x}-{:#010x}, {} instruction{}{}", range->start, range->end, range->instructions,
                       range->instructions == 1 ? "" : "s", symbol.empty() ? "" : fmt::format("  ({})", symbol));
}

void print_difference(const VerifiedSource& s, TextSink& out) {
    const record::Difference& d = *s.difference;
    print(out, "  first difference: range {}, from the packet at offset {:#x} of the buffer\n", grouped(d.number),
          d.capture.value);
    print(out, "    before it  {}\n    executed   {}\n    decoded    {}\n",
          d.before ? text(d.before, s.source->names->symbols) : "nothing", text(d.executed, s.source->names->symbols),
          text(d.decoded, s.source->names->symbols));
    for (const verify::PacketNear& packet : s.around)
        out.write(fmt::format("  {} {:>#10x}  {}\n", packet.here ? '>' : ' ', packet.at.value, packet.text));
}

/// Prints the result for a source whose buffer wrapped, or stopped before the source ended.
void print_wrapped(const VerifiedSource& s, bool complete, TextSink& out) {
    print(out, "source {}: {}\n", s.source->label(), heading(s.verdict, "equal, as far as the buffer kept it"));
    const char* const why = !s.executed.stopped   ? "the buffer wrapped: of {} ranges the last {}"
                            : !s.executed.wrapped ? "the buffer stopped early: of {} ranges {}"
                                                  : "the buffer wrapped and stopped early: of {} ranges {}";
    print(out, "  {} ({} instructions) are in the trace\n",
          fmt::format(fmt::runtime(why), grouped(s.executed.ranges), grouped(s.decoded.ranges)),
          grouped(s.decoded.instructions));
    if (s.decodes) print(out, "  {} bytes precede their first synchronisation\n", grouped(s.unsynchronised));
    if (s.verdict == Verdict::not_compared)
        out.write(complete ? "  only a recording made with --truth can be compared where the buffer wrapped or stopped "
                             "early\n"
                           : "  the recorder was killed: it is not known which part of the run the buffer contains\n");
    else if (s.verdict == Verdict::different)
        print_difference(s, out);
}

void print_source(const VerifiedSource& s, TextSink& out) {
    const record::SourceTruth &executed = s.executed, &decoded = s.decoded;
    print(out, "source {}: {}\n", s.source->label(), heading(s.verdict, "equal"));
    print_row(out, "", "executed", "decoded", true);
    print_row(out, "ranges", grouped(executed.ranges), grouped(decoded.ranges));
    print_row(out, "instructions", grouped(executed.instructions), grouped(decoded.instructions));
    print_row(out, "hash", fmt::format("{:#018x}", executed.hash), fmt::format("{:#018x}", decoded.hash));
    if (executed.lost_ranges != 0)
        print(out, "  {} ranges ({} instructions) were lost to a full FIFO; the trace declares {} overflow{}\n",
              grouped(executed.lost_ranges), grouped(executed.lost_instructions), grouped(s.overflows),
              s.overflows == 1 ? "" : "s");
    if (executed.filtered_ranges != 0)
        print(out,
              "  {} more ranges ({} instructions) executed that the unit was programmed not to trace, or not permitted "
              "to trace\n",
              grouped(executed.filtered_ranges), grouped(executed.filtered_instructions));
    if (executed.unfinished_instructions != 0)
        print(out, "  {} instructions executed after the last waypoint, which no unit traces\n",
              grouped(executed.unfinished_instructions));
    if (s.verdict != Verdict::different) return;
    if (s.difference)
        print_difference(s, out);
    else if (s.decodes && !s.has_ranges)
        out.write("  only a recording made with --truth shows where the first difference is\n");
}

void print_messages(const VerifiedSource& s, bool complete, TextSink& out) {
    const record::SourceTruth &executed = s.executed, &decoded = s.decoded;
    print(out, "source {}: {}\n", s.source->label(), heading(s.verdict, "equal"));
    print_row(out, "", "executed", "decoded", true);
    print_row(out, "messages", grouped(executed.ranges), grouped(decoded.ranges));
    print_row(out, "hash", fmt::format("{:#018x}", executed.hash), fmt::format("{:#018x}", decoded.hash));
    if (!complete) out.write("  the recorder was killed: it is not known which messages the trace contains\n");
}

void print_thread(const VerifiedThread& thread, bool partial, TextSink& out) {
    print(out, "thread {}: {}\n", thread.name,
          thread.verdict == Verdict::different      ? "DIFFERENT"
          : thread.verdict == Verdict::not_compared ? "NOT COMPARED"
          : partial                                 ? "equal, as far as the buffer kept it"
                                                    : "equal");
    if (!thread.ran)
        return print(out, "  {} instructions decoded of a thread that did not run\n", grouped(thread.decoded));
    print(out, "  executed {}, decoded {} instructions\n", grouped(thread.executed), grouped(thread.decoded));
    if (thread.not_traced != 0)
        print(out, "  {} instructions more executed that the unit was programmed not to trace\n",
              grouped(thread.not_traced));
    if (!thread.with_ranges) {
        if (thread.verdict == Verdict::not_compared)
            out.write("  trace or code is missing: only a recording made with --truth can be compared then\n");
        return;
    }
    if (thread.without_file != 0)
        print(out, "  {} instructions more executed in code of which no file was found, so it cannot be decoded\n",
              grouped(thread.without_file));
    if (thread.unfinished != 0)
        print(out, "  {} instructions executed after the last waypoint, which no unit traces\n",
              grouped(thread.unfinished));
    if (const auto& difference = thread.difference)
        print(out, "  first difference: {:#x} was decoded {} {} often than it executed\n", difference->address,
              counted(static_cast<std::uint64_t>(std::abs(difference->more)), "time"),
              difference->more > 0 ? "more" : "less");
}

}  // namespace

void print_verified(TextSink& out, const verify::VerifiedFlow& all, bool complete) {
    for (const VerifiedSource& s : all.sources) {
        if (!s.named)
            print(out, "source {}: NOT COMPARED: truth.txt does not contain this source\n", s.source->label());
        else if (s.of_messages)
            print_messages(s, complete, out);
        else if (s.executed.wrapped || s.executed.stopped)
            print_wrapped(s, complete, out);
        else
            print_source(s, out);
    }
}

void print_verdict(TextSink& out, const verify::VerifiedFlow& all) {
    const Verdict verdict = all.verdict();
    std::string others;
    std::size_t compared = 0;
    for (const VerifiedSource& s : all.sources) {
        if (s.verdict == Verdict::not_compared)
            others += (others.empty() ? "" : ", ") + s.source->label();
        else
            ++compared;
    }
    const bool some = verdict == Verdict::not_compared && compared != 0;
    std::string what;
    if (all.instructions != 0 || all.messages == 0) what = fmt::format("{} instructions", grouped(all.instructions));
    if (all.messages != 0) what += (what.empty() ? "" : " and ") + counted(all.messages, "message");
    const std::size_t sources = some ? compared : all.sources.size();
    print(out, "{}: {} of {} source{}{}\n", some ? "equal" : heading(verdict, "equal"), what, sources,
          sources == 1 ? "" : "s", some ? "; NOT COMPARED: " + others : "");
}

void print_verified(TextSink& out, const verify::VerifiedPerf& all) {
    if (all.together) out.write("threads are not in the trace: what all executed together is compared\n");
    for (const VerifiedThread& thread : all.threads) print_thread(thread, all.partial, out);
}

void print_verdict(TextSink& out, const verify::VerifiedPerf& all, std::size_t threads) {
    const Verdict verdict = all.verdict();
    // The truth consists of addresses only.
    const bool uncertain = std::any_of(all.missing.begin(), all.missing.end(), [](const pipeline::Damage& damage) {
        return damage.kind == pipeline::Damage::Kind::uncertain_code;
    });
    print(out, "{}: {} instructions of {}\n",
          verdict == Verdict::equal       ? uncertain ? "equal by address, though of uncertain files" : "equal"
          : verdict == Verdict::different ? "DIFFERENT"
                                          : "NOT COMPARED",
          grouped(all.instructions), counted(threads, "thread"));
}

void print_verified(TextSink& out, const record::DpuCompared& c) {
    print(out, "  {:<26} {:>20} {:>20}\n", "", "executed", "decoded");
    for (const record::DpuFigure& sum : c.sums)
        print(out, "  {:<26} {:>20} {:>20}{}\n", sum.name, grouped(sum.executed), grouped(sum.decoded),
              sum.executed == sum.decoded ? "" : "  *");
    for (const record::DpuFigure& d : c.differences)
        print(out, "  {}: executed {}, decoded {}\n", d.name, grouped(d.executed), grouped(d.decoded));
    if (c.different > c.differences.size())
        print(out, "  … and {} more\n", grouped(c.different - c.differences.size()));
    for (const std::string& note : c.notes) print(out, "  {}\n", note);
    const bool wrong = c.different != 0 || c.damaged;
    if (c.compared == 0)
        print(out, "{}: there was nothing that could be compared\n", wrong ? "DIFFERENT" : "NOT COMPARED");
    else
        print(out, "{}: {} compared{}{}\n",
              wrong     ? "DIFFERENT"
              : c.whole ? "equal"
                        : "equal as far as the trace goes",
              counted(c.compared, "figure"),
              c.different == 0 ? std::string() : fmt::format(", {} differ", grouped(c.different)),
              c.counters_left_out == 0 ? std::string()
                                       : fmt::format("; {} not compared", counted(c.counters_left_out, "counter")));
}

}  // namespace waymark::listing
