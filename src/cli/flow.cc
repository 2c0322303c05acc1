/// `waymark flow`: the executed program.
#include <algorithm>
#include <map>
#include <memory>

#include "calls.h"
#include "commands.h"
#include "listing.h"
#include "options.h"
#include "waymark/flow/summary.h"

namespace waymark::cli {

namespace {

struct FlowOptions {
    InputOptions input;
    std::string format = "text";
    bool strict = false, disassemble = false, reference = false;
};

/// Passes batches on to a listing, if there is one, and counts them.
class Tee final : public flow::Sink {
public:
    explicit Tee(std::unique_ptr<flow::Sink> next) : next_(std::move(next)) {}
    void consume(const flow::Batch& batch) override {
        summary_.consume(batch);
        if (next_) next_->consume(batch);
    }
    [[nodiscard]] const flow::Totals& totals() const { return summary_.totals(); }

private:
    flow::Summary summary_;
    std::unique_ptr<flow::Sink> next_;
};

/// One source in one buffer, decoded.
struct Decoded {
    const pipeline::Source* source;
    std::string buffer;
    std::uint64_t bytes, padding, packets;
    flow::Totals totals;
};

void print_rows(Output& out, const flow::Totals& t) {
    const auto row = [&](std::string_view name, std::uint64_t value) {
        out.print("  {:<28} {:>14}\n", name, grouped(value));
    };
    row("ranges", t.ranges);
    row("instructions", t.instructions);
    if (t.cycles != 0) row("cycles", t.cycles);
    row("exceptions", t.exceptions);
    row("exception returns", t.exception_returns);
    for (unsigned i = 0; i < flow::trace_on_reasons; ++i)
        if (t.trace_on[i] != 0)
            row(fmt::format("trace on: {}", flow::name(static_cast<flow::TraceOnReason>(i))), t.trace_on[i]);
    if (t.triggers != 0) row("triggers", t.triggers);
    if (t.timestamps != 0) row("timestamps", t.timestamps);
    if (t.first_timestamp) out.print("  {:<28} {:>14}\n", "first timestamp", fmt::format("{:#x}", *t.first_timestamp));
    if (t.last_timestamp) out.print("  {:<28} {:>14}\n", "last timestamp", fmt::format("{:#x}", *t.last_timestamp));
    for (unsigned i = 0; i < gap_reasons; ++i)
        if (t.gaps[i].times != 0)
            out.print("  {:<28} {:>14}  {} bytes lost\n", fmt::format("gap: {}", name(static_cast<GapReason>(i))),
                      grouped(t.gaps[i].times), grouped(t.gaps[i].bytes));
    if (t.no_memory != 0) row("gap: no image there", t.no_memory);
    for (unsigned i = 0; i < flow::conflicts; ++i)
        if (t.inconsistencies[i] != 0)
            row(fmt::format("contradiction: {}", flow::name(static_cast<flow::Conflict>(i))), t.inconsistencies[i]);
    out.print("  {:<28}  {:#018x}\n", "hash", t.hash);
}

void print_summary(Output& out, const std::vector<Decoded>& all) {
    flow::Totals sum;
    std::uint64_t bytes = 0, packets = 0, padding = 0;
    const auto head = [&](std::uint64_t n, std::uint64_t p, std::uint64_t pad, const flow::Totals& t) {
        out.print("  {:<28} {:>14}\n", "bytes", grouped(n));
        out.print("  {:<28} {:>14}\n", "  decoded", grouped(n - t.gap_bytes() - pad));
        if (pad != 0) out.print("  {:<28} {:>14}\n", "  end mark", grouped(pad));
        out.print("  {:<28} {:>14}\n", "  in gaps", grouped(t.gap_bytes()));
        out.print("  {:<28} {:>14}\n", "packets", grouped(p));
    };
    for (const Decoded& d : all) {
        out.print("source {} ({}{}{}), buffer {}\n", d.source->label(), d.source->type,
                  d.source->core_type.empty() ? "" : ", ", d.source->core_type, d.buffer);
        head(d.bytes + d.padding, d.packets, d.padding, d.totals);
        print_rows(out, d.totals);
        out.write("\n");
        sum += d.totals;
        bytes += d.bytes + d.padding;
        packets += d.packets;
        padding += d.padding;
    }
    out.print("total of {} source{}\n", all.size(), all.size() == 1 ? "" : "s");
    head(bytes, packets, padding, sum);
    if (all.size() == 1) sum.hash = all.front().totals.hash;
    print_rows(out, sum);
}

/// One line of causes at the end, so that nobody has to read the listing to learn that something is wrong.
void report_trouble(const std::vector<Decoded>& all) {
    for (const Decoded& d : all) {
        const flow::Totals& t = d.totals;
        std::uint64_t contradictions = 0;
        for (const std::uint64_t times : t.inconsistencies) contradictions += times;
        if (contradictions != 0)
            say("warning",
                fmt::format(
                    "source {}: trace and image contradict each other {} times; the image is probably not the program "
                    "that ran (waymark flow shows where: element 'inconsistency')",
                    d.source->label(), grouped(contradictions)));
        if (t.no_memory != 0)
            say("note",
                fmt::format(
                    "source {}: execution went {} times where no image is known; give it with --image FILE[@ADDRESS]",
                    d.source->label(), grouped(t.no_memory)));
        std::uint64_t lost = 0, stretches = 0;
        for (const GapReason reason : {GapReason::reserved_header, GapReason::malformed_packet,
                                       GapReason::incomplete_packet, GapReason::framing}) {
            lost += t.gaps[static_cast<unsigned>(reason)].bytes;
            stretches += t.gaps[static_cast<unsigned>(reason)].times;
        }
        if (stretches != 0)
            say("note",
                fmt::format(
                    "source {}: {} bytes lost in {} damaged stretch{}; decoding went on at the next synchronisation",
                    d.source->label(), grouped(lost), stretches, stretches == 1 ? "" : "es"));
    }
}

/// Why a run gave nothing at all.
std::string why_nothing(const pipeline::Session& session, const std::vector<Decoded>& all, std::size_t selected) {
    if (session.sources.empty()) return "the capture describes no trace source";
    if (all.empty())
        return fmt::format("none of the {} selected source{} is of a protocol Waymark decodes (PTM1.x, PFT1.x)",
                           selected, selected == 1 ? "" : "s");
    std::uint64_t bytes = 0, packets = 0;
    bool unsynchronised = false, no_memory = false;
    for (const Decoded& d : all) {
        bytes += d.bytes;
        packets += d.packets;
        unsynchronised |= d.totals.gaps[static_cast<unsigned>(GapReason::unsynchronised)].times != 0;
        no_memory |= d.totals.no_memory != 0;
    }
    if (bytes == 0) return "the buffers hold no byte of the selected sources; waymark info shows whose bytes they hold";
    if (packets == 0)
        return fmt::format(
            "no A-sync (00 00 00 00 00 80) in {} bytes: not PTM trace, framed otherwise than said (--buffer-format), "
            "or cut before "
            "its first synchronisation",
            grouped(bytes));
    if (no_memory) return "execution was only where no image is known; give the program with --image FILE[@ADDRESS]";
    if (unsynchronised) return "no I-sync follows an A-sync, so no address is known";
    return "no waypoint was traced between synchronisations";
}

class FlowCommand {
public:
    explicit FlowCommand(const FlowOptions& options) : options_(options) {}

    Status run() {
        auto opened = open_session(options_.input);
        if (!opened) return fail(opened.error());
        const pipeline::Session session = std::move(*opened);
        warn(session);
        const auto selected = session.select(options_.input.sources);
        if (!selected) return fail(selected.error());
        std::vector<const pipeline::Source*> sources;
        for (const pipeline::Source* source : *selected) {
            if (source->protocol == pipeline::Protocol::pft)
                sources.push_back(source);
            else
                say("note", fmt::format("source {} is {}, which Waymark does not decode; left out", source->label(),
                                        source->type.empty() ? "of unknown type" : source->type));
        }
        auto output = Output::open(options_.input.output);
        if (!output) return fail(output.error());
        return decode(session, sources, selected->size(), *output);
    }

private:
    Status decode(const pipeline::Session& session, const std::vector<const pipeline::Source*>& sources,
                  std::size_t selected, Output& out) {
        const bool listing = options_.format != "summary" && options_.format != "calls";
        const Format format = options_.format == "tsv"    ? Format::tsv
                              : options_.format == "json" ? Format::json
                                                          : Format::text;
        ListingContext context{out, session.symbols, options_.disassemble};
        if (listing) begin_listing(context, format);

        std::map<std::pair<const pipeline::Source*, const capture::Buffer*>, std::unique_ptr<Tee>> tees;
        std::map<const pipeline::Source*, std::unique_ptr<CallTree>> calls;
        const auto make = [&](const pipeline::StreamInfo& stream) {
            std::unique_ptr<flow::Sink> next;
            if (listing) {
                next = make_listing(context, stream, format);
            } else if (options_.format == "calls") {
                auto& tree = calls[&stream.source];
                if (!tree) tree = std::make_unique<CallTree>(session.symbols);
                next = tree->sink();
            }
            auto& tee = tees[{&stream.source, &stream.buffer}];
            tee = std::make_unique<Tee>(std::move(next));
            return pipeline::flow_consumer(
                stream, *tee, options_.reference ? pipeline::DecoderKind::reference : pipeline::DecoderKind::fast);
        };
        ProgressLine progress;
        const pipeline::Report report = pipeline::run(
            session, sources, make,
            progress.active() ? pipeline::Progress([&](std::uint64_t bytes, auto of) { progress.show(bytes, of); })
                              : nullptr);

        std::vector<Decoded> all;
        for (const pipeline::StreamReport& stream : report.streams) {
            const capture::Buffer* buffer = session.capture.find_buffer(stream.buffer);
            all.push_back({stream.source, stream.buffer, stream.bytes, stream.padding,
                           pipeline::packets(*stream.consumer), tees.at({stream.source, buffer})->totals()});
        }
        if (options_.format == "summary") print_summary(out, all);
        for (const auto& [source, tree] : calls) {
            out.print("source {} ({}{}{})\n", source->label(), source->type, source->core_type.empty() ? "" : ", ",
                      source->core_type);
            tree->print(out);
        }
        return finish(session, report, all, selected, out);
    }

    Status finish(const pipeline::Session& session, const pipeline::Report& report, const std::vector<Decoded>& all,
                  std::size_t selected, Output& out) {
        std::string why;
        if (out.close(why) != decoded) {
            say("error", why);
            return unreadable;
        }
        const bool read_errors = report_read_errors(report);
        report_trouble(all);
        const auto any = [&](auto&& test) { return std::any_of(all.begin(), all.end(), test); };
        const bool ranges = any([](const Decoded& d) { return d.totals.ranges != 0; });
        if (!ranges) say("error", "nothing decoded: " + why_nothing(session, all, selected));
        if (read_errors) return unreadable;
        if (!ranges) return nothing;
        bool lost = any([](const Decoded& d) { return d.totals.has_gaps(); });
        for (const pipeline::BufferReport& buffer : report.buffers)
            lost |= buffer.framed && buffer.frames.lost_bytes() != 0;
        if (options_.strict && lost) {
            say("error", "--strict: something was lost or contradicts the image, see --format summary");
            return nothing;
        }
        return decoded;
    }

    const FlowOptions& options_;
};

}  // namespace

Run add_flow(CLI::App& app) {
    auto options = std::make_shared<FlowOptions>();
    CLI::App& command = *app.add_subcommand(
        "flow", "The executed program: every range of instructions, exception, context change and gap, in order");
    options->input.add_to(command);
    command
        .add_option("--format", options->format,
                    "text: for reading; tsv, json (a JSON object per line): for programs; summary: counts and a hash "
                    "of the ranges; calls: who "
                    "called whom")
        ->check(CLI::IsMember({"text", "tsv", "json", "summary", "calls"}))
        ->capture_default_str();
    command.add_flag("--disassemble", options->disassemble, "text: show the instructions of each range");
    command.add_flag("--strict", options->strict, "Exit with 1 if anything was lost or contradicts the image");
    command.add_flag("--reference-decoder", options->reference,
                     "Decode with the step-by-step reference decoder (slower, same result)");
    command.footer(
        "Examples:\n"
        "  waymark flow CAPTURE --image vmlinux --format summary\n"
        "  waymark flow CAPTURE --source 0x13 --disassemble | less\n"
        "  waymark flow dump.bin --protocol ptm1.1 --etmcr 0x10001000 --image firmware.elf\n");
    return [options] { return FlowCommand(*options).run(); };
}

}  // namespace waymark::cli
