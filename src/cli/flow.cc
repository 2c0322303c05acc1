/// `waymark flow`: the executed program.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>

#include "answers.h"
#include "commands.h"
#include "dpu/listing.h"
#include "options.h"
#include "selected_session.h"
#include "trouble.h"
#include "unit_answers.h"
#include "views.h"
#include "waymark/analysis/flow_sink.h"
#include "waymark/analysis/kallsyms.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/flow/tee.h"
#include "waymark/listing/flow.h"
#include "waymark/listing/flow_summary.h"
#include "waymark/listing/views.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/diagnosis.h"
#include "waymark/pipeline/message_answers.h"
#include "waymark/pipeline/recover.h"

namespace waymark::cli {

namespace {

using Decoded = listing::DecodedSource;

struct FlowOptions {
    InputOptions input;
    std::string format = "text";
    bool strict = false, disassemble = false, reference = false, recover = false;
    unsigned jobs = 0;  // 0: all cores
    std::optional<std::uint64_t> limit{};
};

/// Reports problems at the end, so that users see them without reading the listing.
void report_trouble(const pipeline::Report& report, const std::vector<Decoded>& all) {
    for (const pipeline::BufferReport& buffer : report.buffers) say_damage(pipeline::damage_in(buffer));
    for (const Decoded& d : all) say_damage(d.damage);
}

/// The totals of a run that decoded no instruction.
pipeline::Gave gave_of(const std::vector<Decoded>& all) {
    pipeline::Gave gave;
    for (const Decoded& d : all) {
        gave.packets += d.packets;
        gave.no_memory += d.totals.no_memory;
        gave.uncommitted += d.totals.uncommitted;
        gave.untraced += d.totals.untraced;
        gave.unplaced += d.totals.unplaced;
        for (unsigned i = 0; i < gap_reasons; ++i) gave.gaps[i] += d.totals.gaps[i].times;
    }
    return gave;
}

/// The trace is intact and has no branch: the cores were idle.
bool ran_nothing(const pipeline::Gave& gave) {
    for (unsigned i = 0; i < gap_reasons; ++i)
        if (gave.gaps[i] != 0 && i != static_cast<unsigned>(GapReason::padding)) return false;
    return gave.packets != 0 && !gave.hides_code();
}

/// Passes the first lines on, and counts the others.
class FirstLines final : public listing::TextSink {
public:
    /// `most`: 0 for all.
    FirstLines(listing::TextSink& to, std::uint64_t most) : to_(to), most_(most) {}
    void write(std::string_view lines) override {
        const auto count = static_cast<std::uint64_t>(std::ranges::count(lines, '\n'));
        std::size_t end = lines.size();
        if (most_ != 0 && written_ + count > most_) {
            end = 0;
            for (std::uint64_t left = most_ - std::min(most_, written_); left != 0; --left)
                end = lines.find('\n', end) + 1;
        }
        to_.write(lines.substr(0, end));
        written_ += count;
    }
    [[nodiscard]] std::uint64_t left_out() const { return most_ == 0 || written_ < most_ ? 0 : written_ - most_; }

private:
    listing::TextSink& to_;
    std::uint64_t most_, written_ = 0;
};

class FlowCommand {
public:
    explicit FlowCommand(const FlowOptions& options) : options_(options) {}

    ExitStatus run() {
        if (options_.input.container().contents() == Content::counters)
            return run_dpu_flow(options_.input, options_.format, options_.strict);
        if (const auto taken_out = trace_taken_out(options_.input.container())) return fail_answers(*taken_out, {});
        if (!options_.input.kallsyms.empty())
            if (const Status good = analysis::check_kallsyms(options_.input.kallsyms); !good) return fail(good.error());
        const auto opened = open_selected(options_.input);
        if (!opened) return fail(opened.error());
        const pipeline::Session& session = opened->session;
        std::vector<const pipeline::Source*> sources;
        std::copy_if(opened->selected.begin(), opened->selected.end(), std::back_inserter(sources),
                     [](const pipeline::Source* source) { return source->has_flow(); });
        auto output = Output::open(options_.input.output, options_.input.files());
        if (!output) return fail(output.error());
        return decode(session, sources, opened->selected, *output);
    }

private:
    ExitStatus decode(const pipeline::Session& session, const std::vector<const pipeline::Source*>& sources,
                      const std::vector<const pipeline::Source*>& selected, Output& out) {
        std::optional<listing::FlowListing> lines;
        constexpr std::uint64_t most_lines = 1000, most_rows = 100;
        const bool calls_asked = options_.format == "calls";
        const std::uint64_t limit = options_.limit       ? *options_.limit
                                    : out.columns() == 0 ? 0
                                    : calls_asked        ? most_rows
                                                         : most_lines;
        FirstLines first_lines(out, options_.format == "text" ? limit : 0);
        if (options_.format != "summary" && !calls_asked)
            lines.emplace(first_lines, listing::format_of(options_.format), options_.disassemble);

        std::map<std::pair<const pipeline::Source*, const capture::Buffer*>, std::unique_ptr<flow::Tee>> tees;
        struct Calls {
            std::unique_ptr<analysis::FlowCode> code;
            analysis::FlowSink* sink;
            const pipeline::Source* source;
        };
        // Keyed by the source in which a thread began: the thread's calls there, and in the sources in which it
        // continued.
        std::map<const pipeline::Source*, std::vector<Calls>> calls;
        const auto make = [&](const pipeline::StreamInfo& stream) {
            std::unique_ptr<flow::Sink> next;
            if (lines) {
                next = lines->of(stream);
            } else if (options_.format == "calls") {
                auto code = std::make_unique<analysis::FlowCode>(stream.source.names->symbols, *stream.source.memory);
                auto sink = std::make_unique<analysis::FlowSink>(
                    *code, [](Offset at) { return at.value; }, analysis::FlowSink::Options{.calls = true});
                std::vector<Calls>* thread = &calls[&stream.source];
                for (auto& [first, parts] : calls)
                    if (!parts.empty() && !stream.source.continues.empty() &&
                        parts.back().source->name == stream.source.continues) {
                        parts.back().sink->hand_over(*sink);
                        thread = &parts;
                    }
                thread->push_back({std::move(code), sink.get(), &stream.source});
                next = std::move(sink);
            }
            auto& tee = tees[{&stream.source, &stream.buffer}];
            tee = std::make_unique<flow::Tee>(
                [&offsets = stream.offsets](Offset at) { return offsets.capture(at).value; }, std::move(next));
            const auto kind = options_.reference ? pipeline::DecoderKind::reference : pipeline::DecoderKind::fast;
            if (options_.recover && !stream.source.protocol->recovers_head())
                say("note", fmt::format("source {}: --recover has no effect: from {} only flow behind the first "
                                        "synchronisation is known",
                                        stream.source.label(), stream.source.protocol->words().unit));
            else if (options_.recover)
                return pipeline::recovering_consumer(stream, *tee, kind, heads_[{&stream.source, &stream.buffer}]);
            // A listing shows addresses as traced; the call tree is keyed by places in files.
            return pipeline::flow_consumer(
                stream, *tee, kind, workers(options_.jobs),
                options_.format == "calls" ? pipeline::Addresses::placed : pipeline::Addresses::as_they_were);
        };
        ProgressLine progress;
        const pipeline::Report report = pipeline::run(session, sources, make, shown_on(progress));

        std::vector<Decoded> all;
        std::vector<pipeline::DecodedStream> streams_decoded;
        for (const pipeline::StreamReport& stream : report.streams) {
            const capture::Buffer* buffer = session.capture.find_buffer(stream.buffer);
            const flow::Tee& tee = *tees.at({stream.source, buffer});
            all.push_back({stream.source, stream.buffer, stream.bytes, stream.padding,
                           pipeline::packets(*stream.consumer), tee.totals(),
                           pipeline::damage_in(stream, tee.troubles(), tee.totals().ranges)});
            streams_decoded.push_back({&stream, &tee.troubles(), tee.totals().ranges, tee.totals().instructions});
            if (const auto head = heads_.find({stream.source, buffer}); head != heads_.end())
                report_head(*stream.source, stream.buffer, head->second);
        }
        answers::Account account = pipeline::flow_account(session, selected, report, streams_decoded);
        answers::add(account, pipeline::messages_lost(session, selected));
        if (first_lines.left_out() != 0)
            out.print("… and {}; --limit 0 shows all\n", counted(first_lines.left_out(), "more line"));
        if (options_.format == "summary") listing::print_flow_summary(out, report, all, account);
        for (const pipeline::Source* source : sources) {
            const auto found = calls.find(source);
            if (found == calls.end() || found->second.empty()) continue;
            out.print("source {} ({}{}{})\n", source->label(), source->type, source->core_type.empty() ? "" : ", ",
                      source->core_type);
            std::vector<analysis::FlowStream> streams;
            std::vector<const pipeline::Names*> names;
            for (const Calls& c : found->second) {
                c.sink->finish();
                streams.push_back({.sink = c.sink, .source = source->label()});
                names.push_back(c.source->names.get());
            }
            answers::Answers answers;
            pipeline::fill_by_names(answers, streams, names, {});
            listing::print_calls_tree(out, answers, limit);
        }
        return finish(session, report, all, account, selected, out);
    }

    /// Of sources that send messages alone, another command shows what they sent; there is nothing to diagnose.
    void say_nothing(const std::string& why, const std::vector<const pipeline::Source*>& selected) const {
        const bool messages = std::all_of(selected.begin(), selected.end(),
                                          [](const pipeline::Source* s) { return pipeline::has_messages(*s); });
        const std::string reason = "nothing decoded: " + why;
        say("error", messages ? reason : with_doctor(reason, options_.input.capture, options_.input.images));
    }
    ExitStatus finish(const pipeline::Session& session, const pipeline::Report& report, const std::vector<Decoded>& all,
                      const answers::Account& account, const std::vector<const pipeline::Source*>& selected,
                      Output& out) {
        if (out.close() != decoded) return unreadable;
        const bool read_errors = report_read_errors(session, report);
        report_trouble(report, all);
        const std::vector<pipeline::Damage> not_decoded = pipeline::not_decoded(session, selected, report);
        for (const pipeline::Damage& damage : not_decoded)
            say(damage.severity == pipeline::Severity::note ? "note" : "warning", damage.sentence);
        for (const pipeline::Damage& damage : pipeline::code_damage(session, report)) say("warning", damage.sentence);
        if (const auto filtered = pipeline::filter_note(session, report); filtered && !filtered->nothing_passed)
            say("note", filtered->text);
        const auto any = [&](auto&& test) { return std::any_of(all.begin(), all.end(), test); };
        const bool ranges = any([](const Decoded& d) { return d.totals.ranges != 0; });
        // Without an image, packets still carry addresses, exceptions, contexts and outcomes.
        const bool blind = !ranges && options_.format != "calls" &&
                           any([](const Decoded& d) { return d.totals.no_memory != 0 || d.totals.reached != 0; });
        if (blind)
            say("warning",
                "no instruction is decoded: only code without an image was executed, so only the contents of packets "
                "are known (addresses, exceptions, contexts, counts of atoms); give the program with --image "
                "FILE[@ADDRESS]");
        const pipeline::Gave gave = gave_of(all);
        const bool idle = !ranges && !blind && ran_nothing(gave);
        if (idle)
            say("note", std::string(pipeline::nothing_ran));
        else if (!ranges && !blind)
            say_nothing(pipeline::why_nothing(session, selected, report, gave), selected);
        if (read_errors) return unreadable;
        if (!ranges && !blind && !idle) return nothing;
        if (options_.strict && answers::completeness(account).strict) {
            say("error", "--strict: " + answers::account_sentence(account));
            return nothing;
        }
        // Missing names are not a loss. A wrong description, or an image of another program, counts as one, as in other
        // commands.
        const auto wrong = std::find_if(
            session.problems.begin(), session.problems.end(),
            [](const capture::Problem& p) { return p.kind != capture::Problem::Kind::names && !p.is_loss(); });
        if (options_.strict && wrong != session.problems.end()) {
            say("error", about(options_.input.capture, capture::to_string(*wrong)) + " (--strict)");
            return nothing;
        }
        return decoded;
    }

    /// Reports the known facts about the time before the first A-sync.
    static void report_head(const pipeline::Source& source, const std::string& buffer,
                            const follow::HeadRecovery& head) {
        if (head.outcome == follow::HeadOutcome::no_head) return;
        const std::string bytes = counted(head.async.value, "byte");
        const std::string obstacles = text(head.obstacles);
        const std::string ended = obstacles.empty() ? "" : "; known execution ended at " + obstacles;
        if (head.outcome != follow::HeadOutcome::recovered)
            return say("note",
                       fmt::format("source {}: nothing is recovered before its first A-sync in buffer {}{}: {}{}",
                                   source.label(), buffer, head.async == Offset{} ? "" : " (" + bytes + ")",
                                   name(head.outcome), ended));
        say("note", fmt::format("source {}: {} of the {} before its first A-sync in buffer {} are recovered, with a "
                                "confidence of {:.4f}; they are marked 'recovered'{}",
                                source.label(), grouped(head.bytes_before_async()), bytes, buffer,
                                std::floor(head.confidence * 1e4) / 1e4, ended));  // never rounded up to 100 %
    }

    const FlowOptions& options_;
    std::map<std::pair<const pipeline::Source*, const capture::Buffer*>, follow::HeadRecovery> heads_;
};

}  // namespace

Run add_flow(const Command& app) {
    auto options = std::make_shared<FlowOptions>();
    const Command command = app.add("flow");
    options->input.add_to(command);
    options->input.selection.add_to(command);
    command.option("--kallsyms", options->input.kallsyms);
    command.option("--format", options->format);
    command.option("--limit", options->limit);
    command.flag("--disassemble", options->disassemble);
    command.option("--jobs", options->jobs)->check(range(0U, 256U));
    command.flag("--strict", options->strict);
    command.flag("--recover", options->recover);
    command.flag("--reference-decoder", options->reference);
    return [options] { return FlowCommand(*options).run(); };
}

}  // namespace waymark::cli
