#include "waymark/listing/examination.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "print.h"
#include "table_json.h"
#include "waymark/answers/account_effects.h"
#include "waymark/core/numbers.h"
#include "waymark/core/quote.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::listing {

namespace {

using doctor::ImageVerdict;
using nlohmann::ordered_json;
using protocol::name;

void line(TextSink& out, std::string_view head, std::string_view sentence) {
    constexpr std::size_t width = 100, indent = 12;
    const std::string text = one_line(sentence);
    std::string row = fmt::format("  {:<9} ", head);
    std::size_t at = 0, column = indent;
    while (at < text.size()) {
        const std::size_t end = std::min(text.find(' ', at), text.size());
        const std::string_view word = std::string_view(text).substr(at, end - at);
        if (column != indent && column + 1 + word.size() > width) {
            row += "\n" + std::string(indent, ' ');
            column = indent;
        } else if (column != indent) {
            row += ' ';
            ++column;
        }
        row += word;
        column += word.size();
        at = end + 1;
    }
    out.write(row + '\n');
}

std::string examined_text(const doctor::ExaminedBuffer& b) {
    if (!b.bytes)
        return fmt::format("only its first {} examined: a compressed file or a stream", counted(b.looked_at, "byte"));
    if (*b.bytes == b.looked_at) return counted(*b.bytes, "byte") + ", all examined";
    return fmt::format("{} of {} examined, in {} pieces from its beginning to its end", grouped(b.looked_at),
                       counted(*b.bytes, "byte"), b.pieces);
}

std::string_view framing_text(capture::Buffer::Format format) {
    switch (format) {
        case capture::Buffer::Format::coresight: return "16-byte CoreSight frames";
        case capture::Buffer::Format::dstream_coresight: return "CoreSight frames with syncs";
        case capture::Buffer::Format::source_data: return "the bytes of one source";
        case capture::Buffer::Format::unknown: return "unknown framing";
    }
    return "";
}

/// A confidence is never rounded up to 100 %.
std::string confidence_text(double confidence) { return fmt::format("{:.4f}", std::floor(confidence * 1e4) / 1e4); }

std::string head_text(const follow::HeadRecovery& head) {
    if (head.outcome == follow::HeadOutcome::no_head) return "none: the stream begins with its A-sync";
    if (head.outcome == follow::HeadOutcome::no_sync)
        return "in the first MiB there is " + std::string(name(head.outcome));
    const std::string all = counted(head.async.value, "byte");
    const std::string obstacles = text(head.obstacles);
    const std::string ended = obstacles.empty() ? "" : "; known execution ended at " + obstacles;
    if (head.outcome != follow::HeadOutcome::recovered)
        return fmt::format("{}, none recovered: {}{}", all, name(head.outcome), ended);
    return fmt::format(
        "{} of {} recovered from {:#x} of the stream on{}, {}, confidence {}{}{}; "
        "waymark flow --recover shows them",
        grouped(head.bytes_before_async()), all, head.first.value,
        head.stretches.size() == 1 ? "" : fmt::format(" in {} stretches", head.stretches.size()),
        counted(head.packets, "packet"), confidence_text(head.confidence),
        head.confirmed ? ", and the following trace agrees" : "", ended);
}

std::string image_text(const ImageVerdict& v) {
    if (v.kind == ImageVerdict::Kind::unreadable || v.kind == ImageVerdict::Kind::other_build)
        return fmt::format("{}: {}", name(v.kind), v.why);
    std::string text = fmt::format("{}{}: {}: {}", name(v.kind), v.trial.proven() ? ", proven" : "", v.image,
                                   doctor::evidence(v.trial));
    if (v.shift) text += fmt::format("; proven as {}: {}", v.argument, doctor::evidence(v.shift->trial));
    if (v.kind != ImageVerdict::Kind::matches || v.trial.proven()) return text;
    if (v.trial.confirmed < doctor::paths_to_prove)
        text += fmt::format(" (too short for a proof, which takes {} different paths)", doctor::paths_to_prove);
    else if (v.trial.strayed * 10 > v.trial.indirect)
        text += " (no proof: a tenth or more of its outgoing branches lead to unknown code)";
    else
        text += fmt::format(" (no proof: execution continued {} directly beside its code)", times(v.trial.beside));
    return text;
}

void print_source(TextSink& out, const doctor::ExaminationReport& report, const doctor::ExaminedSource& s) {
    print(out, "\nsource {}{}  {}, {}\n", s.trace_id ? fmt::format("{:#04x} ", s.trace_id->value) : "", s.name,
          doctor::name(s.identity.protocol), counted(s.bytes, "byte"));
    if (s.identity.protocol == nullptr)
        for (const doctor::Tried& tried : s.identity.tried) line(out, "tried", tried.what + ": " + tried.result);
    for (const doctor::InferredField& fact : s.identity.facts)
        line(out, name(fact.certainty), fmt::format("{}: {} ({})", fact.what, fact.value, fact.proof));
    for (const doctor::InferredField& fact : s.program_facts)
        line(out, name(fact.certainty), fmt::format("{}: {} ({})", fact.what, fact.value, fact.proof));
    for (const auto& [head, sentence] : s.identity.remarks) line(out, head, sentence);
    for (const ImageVerdict& v : report.images)
        if (v.source == s.name) line(out, "image", image_text(v));
    if (s.head) line(out, "head", head_text(*s.head));
}

/// Lists at most three IDs that have neither a description nor known contents, as damaged frames produce them. Without
/// a description these are many IDs beside one with known contents: a bus has fewer sources.
void print_sources(TextSink& out, const doctor::ExaminationReport& report) {
    constexpr std::size_t shown = 3;
    constexpr std::ptrdiff_t many = 8;
    const auto unknown = std::count_if(report.sources.begin(), report.sources.end(),
                                       [](const doctor::ExaminedSource& s) { return s.identity.protocol == nullptr; });
    const bool damaged = unknown > many && unknown < std::ssize(report.sources);
    std::size_t strangers = 0;
    std::uint64_t bytes = 0;
    for (const doctor::ExaminedSource& s : report.sources) {
        const bool stranger = s.identity.protocol == nullptr && (report.labelled ? !s.described : damaged);
        if (stranger && ++strangers > shown)
            bytes += s.bytes;
        else
            print_source(out, report, s);
    }
    if (strangers > shown)
        print(out, "\nand {} more {}with unrecognised bytes, {} in total\n", counted(strangers - shown, "trace ID"),
              report.labelled ? "without a description and " : "", counted(bytes, "byte"));
}

void print_text(TextSink& out, const doctor::ExaminationReport& report) {
    print(out, "{}\n", report.verdict);
    if (!report.account.empty()) out.write("\n");
    print_account(out, report.account);
    for (const doctor::CaptureFinding& f : report.findings) {
        const std::string where = f.buffer.empty() ? std::string("the description")
                                  : f.offset       ? fmt::format("{:#x} of {}", f.offset->value, f.buffer)
                                                   : f.buffer;
        print(out, "\n{:<8} {}{}{}  {}\n", name(f.severity), where, f.source.empty() ? "" : ", source ", f.source,
              f.kind);
        line(out, "found", f.found);
        line(out, "expected", f.expected);
        line(out, "because", f.cause);
        line(out, "do", f.advice);
    }
    for (const doctor::ExaminedBuffer& b : report.buffers) {
        print(out, "\nbuffer {}  {}, {}\n", b.name,
              b.no_trace.empty() ? framing_text(b.format) : std::string_view("no trace"), examined_text(b));
        if (!b.not_frames.empty()) line(out, "tried", b.not_frames);
    }
    print_sources(out, report);
}

answers::Table findings_table(const doctor::ExaminationReport& report) {
    answers::Table table{
        .columns = {answers::Column::text("severity", "severity"), answers::Column::text("kind", "kind"),
                    answers::Column::text("buffer", "buffer"), answers::Column::text("source", "source"),
                    answers::Column::count("offset", "offset"), answers::Column::text("found", "found"),
                    answers::Column::text("expected", "expected"), answers::Column::text("cause", "cause"),
                    answers::Column::text("do", "do")}};
    for (const doctor::CaptureFinding& f : report.findings)
        table.add({std::string(name(f.severity)), f.kind, f.buffer, f.source,
                   f.offset ? answers::Cell(f.offset->value) : answers::Cell(), f.found, f.expected, f.cause,
                   f.advice});
    return table;
}

ordered_json trial_json(const doctor::Trial& trial) {
    return {{"ranges", trial.totals.ranges},
            {"branches_in_trace", trial.waypoints},
            {"confirmed", trial.confirmed},
            {"strayed", trial.strayed},
            {"contradictions", trial.contradictions},
            {"proven", trial.proven()},
            {"ended_early", trial.ended},
            {"no_memory", trial.totals.no_memory},
            {"first_contradiction", trial.first ? ordered_json(trial.first->offset.value) : ordered_json()}};
}

ordered_json source_json(const doctor::ExaminedSource& s) {
    ordered_json out{{"name", s.name},
                     {"trace_id", s.trace_id ? ordered_json(s.trace_id->value) : ordered_json()},
                     {"buffer", s.buffer},
                     {"protocol", doctor::name(s.identity.protocol)},
                     {"bytes", s.bytes}};
    out["tried"] = ordered_json::array();
    for (const doctor::Tried& t : s.identity.tried) out["tried"].push_back({{"what", t.what}, {"result", t.result}});
    out["facts"] = ordered_json::array();
    for (const auto* const facts : {&s.identity.facts, &s.program_facts})
        for (const doctor::InferredField& f : *facts)
            out["facts"].push_back({{"what", f.what},
                                    {"value", f.value},
                                    {"proven", f.certainty == protocol::Certainty::proven},
                                    {"certainty", name(f.certainty)},
                                    {"proof", f.proof}});
    if (s.head && s.head->outcome == follow::HeadOutcome::recovered)
        out["head"] = {{"bytes", s.head->async.value},     {"recovered_bytes", s.head->bytes_before_async()},
                       {"first", s.head->first.value},     {"packets", s.head->packets},
                       {"confidence", s.head->confidence}, {"confirmed", s.head->confirmed}};
    else if (s.head)
        out["head"] = {{"bytes", s.head->async.value}, {"recovered_bytes", 0}, {"why", name(s.head->outcome)}};
    return out;
}

ordered_json report_json(const doctor::ExaminationReport& report) {
    ordered_json out{{"verdict", report.verdict},
                     {"run", answers::account_sentence(report.account)},
                     {"findings", to_json(findings_table(report))}};
    out["buffers"] = ordered_json::array();
    for (const doctor::ExaminedBuffer& b : report.buffers)
        out["buffers"].push_back({{"name", b.name},
                                  {"format", capture::name(b.format)},
                                  {"bytes", b.bytes ? ordered_json(*b.bytes) : ordered_json()},
                                  {"looked_at", b.looked_at},
                                  {"pieces", b.pieces},
                                  {"skipped", b.skipped},
                                  {"not_frames", b.not_frames.empty() ? ordered_json() : ordered_json(b.not_frames)},
                                  {"no_trace", b.no_trace.empty() ? ordered_json() : ordered_json(b.no_trace)}});
    out["sources"] = ordered_json::array();
    for (const doctor::ExaminedSource& s : report.sources) out["sources"].push_back(source_json(s));
    out["images"] = ordered_json::array();
    for (const ImageVerdict& v : report.images) {
        ordered_json image{
            {"image", v.image}, {"source", v.source}, {"verdict", name(v.kind)}, {"argument", v.argument}};
        image["trial"] = trial_json(v.trial);
        if (v.shift) {
            image["shift"] = v.shift->bytes;
            image["shifted_trial"] = trial_json(v.shift->trial);
        }
        out["images"].push_back(std::move(image));
    }
    return out;
}

/// Findings that concern the bytes themselves.
std::vector<std::string> problems_of(const std::string& capture, const doctor::ExaminationReport& report) {
    std::vector<std::string> out;
    for (const doctor::CaptureFinding& f : report.findings) {
        if (f.kind == "no-image") continue;
        // A finding about an unreadable file names the file itself.
        const bool named = f.source.empty() && f.found.starts_with(capture + ": ");
        out.push_back(named
                          ? f.found
                          : fmt::format("{}{}: {}", f.buffer, f.source.empty() ? "" : ", source " + f.source, f.found));
    }
    return out;
}

/// The suggested next step.
std::string next_step(const std::string& capture, const doctor::ExaminationReport& report) {
    for (const pipeline::Protocol* protocol : pipeline::protocols())
        if (std::any_of(report.sources.begin(), report.sources.end(),
                        [&](const doctor::ExaminedSource& s) { return s.identity.protocol == protocol; }))
            return protocol->next_step(shell_file(capture));
    return "";
}

}  // namespace

void print_examination(TextSink& out, const doctor::ExaminationReport& report, LineFormat format) {
    if (format == LineFormat::tsv) return print_tsv(out, findings_table(report));
    if (format == LineFormat::json) return out.write(json_text(report_json(report)) + "\n");
    print_text(out, report);
}

void print_bare_info(TextSink& out, const std::string& capture, const doctor::ExaminationReport& report,
                     LineFormat format) {
    const std::string next = next_step(capture, report);
    if (format == LineFormat::text) {
        print(out, "capture {}\n  a file without a description; the following is inferred from its bytes\n", capture);
        for (const doctor::ExaminedBuffer& b : report.buffers)
            print(out, "\nbuffer {}  {}, {}\n", b.name, framing_text(b.format), examined_text(b));
        print_sources(out, report);
        const std::vector<std::string> problems = problems_of(capture, report);
        if (!problems.empty())
            out.write("\nremarks\n");
        else if (report.recognised)
            out.write("\nNothing wrong was found.\n");
        for (const std::string& problem : problems) print(out, "  - {}\n", problem);
        if (!next.empty()) print(out, "\nnext: {}\n", next);
    } else {
        ordered_json info = report_json(report);
        ordered_json all{{"capture", capture}, {"kind", "bare bytes"}};
        for (const char* key : {"buffers", "sources"}) all[key] = info[key];
        all["problems"] = problems_of(capture, report);
        all["next"] = next;
        print_document(out, all, format);
    }
}

}  // namespace waymark::listing
