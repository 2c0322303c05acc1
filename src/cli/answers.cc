#include "answers.h"

#include <algorithm>
#include <cctype>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <set>

#include "disassembly.h"
#include "trouble.h"
#include "unit_answers.h"
#include "waymark/analysis/flow_answers.h"
#include "waymark/analysis/flow_sink.h"
#include "waymark/analysis/program.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/parts.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/diagnosis.h"

namespace waymark::cli {

namespace {

using answers::Answers;
using answers::Finding;

/// One source in one buffer.
struct Stream {
    const pipeline::Source* source{};
    std::string buffer;
    std::unique_ptr<analysis::FlowCode> code;
    std::unique_ptr<analysis::FlowTimeline> timeline;
    std::unique_ptr<analysis::FlowSink> sink;
    const pipeline::Source* first{};  ///< the source that began with the thread; `source` if that is none other
    bool continued = false;           ///< another stream goes on with the thread
};

class FlowAnswers {
public:
    FlowAnswers(const AnswersOptions& options, const pipeline::Session& session)
        : options_(options), session_(session) {}

    Result<Answers> run() {
        WM_ASSIGN_OR_RETURN(const std::vector<const pipeline::Source*> selected,
                            session_.select(options_.input.sources));
        const std::vector<const pipeline::Source*> sources = decodable(selected);
        const auto make = [&](const pipeline::StreamInfo& stream) {
            Stream& s = streams_.emplace_back();
            s.source = &stream.source;
            s.buffer = stream.buffer.name;
            s.code = std::make_unique<analysis::FlowCode>(stream.source.names->symbols, *stream.source.memory);
            if (options_.timeline)
                s.timeline = std::make_unique<analysis::FlowTimeline>(stream.source.configuration->cycle_counts(),
                                                                      options_.most_slices);
            s.sink = std::make_unique<analysis::FlowSink>(
                *s.code, [&offsets = stream.offsets](Offset at) { return offsets.capture(at).value; },
                analysis::FlowSink::Options{.calls = options_.calls || options_.timeline || options_.instructions,
                                            .observer = s.timeline.get()});
            s.first = s.source;
            // Calls go on where the thread does.
            const auto before = std::find_if(streams_.rbegin() + 1, streams_.rend(), [&](const Stream& other) {
                return !other.continued && other.source->name == stream.source.continues;
            });
            if (before != streams_.rend()) {
                before->sink->hand_over(*s.sink);
                before->continued = true;
                s.first = before->first;
            }
            return pipeline::flow_consumer(stream, *s.sink, pipeline::DecoderKind::fast, workers(options_.jobs));
        };
        ProgressLine progress;
        const pipeline::Report report = pipeline::run(
            session_, sources, make,
            progress.active() ? pipeline::Progress([&](std::uint64_t bytes, auto of) { progress.show(bytes, of); })
                              : nullptr);
        const bool cut = report_read_errors(report);
        return answers(report, selected, cut);
    }

private:
    /// `cut`: a buffer could not be read to its end.
    Result<Answers> answers(const pipeline::Report& report, const std::vector<const pipeline::Source*>& selected,
                            bool cut) {
        Answers out;
        out.capture = options_.input.capture;
        // A report is of one unit: where sources have several protocols, it is called by the first one.
        if (!streams_.empty()) out.unit = streams_.front().source->protocol->words().unit;
        out.version = WAYMARK_VERSION;
        std::vector<analysis::FlowStream> streams;
        std::vector<const pipeline::Names*> names;
        analysis::FlowAnswersOptions options;
        for (const Stream& s : streams_) {
            s.sink->finish();
            if (s.timeline) s.timeline->finish(s.sink->calls().now());
            options.cycles |= s.source->configuration->cycle_counts();
            streams.push_back(
                {s.sink.get(), s.first->label(), s.source->configuration->waypoints(), s.buffer, s.timeline.get()});
            names.push_back(s.source->names.get());
        }
        options.instructions = options_.instructions;
        options.inlined = options_.inlined;
        options.ticks_per_second =
            options_.timestamp_hz != 0 ? options_.timestamp_hz : session_.capture.timestamp_frequency_hz.value_or(0);
        options.all_functions = options_.all_functions;
        options.partial = cut || has_part_only();
        options.most_slices = options_.most_slices;
        fill_by_names(out, streams, names, options);
        name_builds(out);
        if (options_.disassembly) disassemble(out);
        if (options_.sources) answers::read_sources(out, {});

        for (const pipeline::BufferReport& buffer : report.buffers) out.trace_bytes += buffer.bytes;
        std::uint64_t ranges = 0;
        for (const Stream& s : streams_) ranges += ranges_in(s);
        out.cut = cut;
        if (ranges == 0 && !(options_.without_code && went_nowhere_known())) {
            Error why = why_nothing(report, selected);
            if (cut) why.code = Errc::unreadable;
            return why;
        }
        if (ranges == 0)
            out.health.push_back({Finding::Severity::bad,
                                  "Nothing was decoded: execution was only where no image is known.",
                                  "Give the program with --image FILE[@ADDRESS]: then this report shows functions, who "
                                  "called whom, source and code with coverage, branches and loops."});
        health(out, report);
        summarise(out, ranges);
        return out;
    }

    /// Images whose files were not found have the build IDs that the capture knows.
    void name_builds(Answers& out) const {
        for (answers::Image& image : out.images) {
            if (!image.build_id.empty() || !image.path.empty()) continue;
            std::set<std::string> ids;
            for (const capture::Module& m : session_.capture.modules.modules)
                if (std::filesystem::path(m.file).filename() == image.name) ids.insert(capture::hex_text(m.build_id));
            if (ids.size() == 1) image.build_id = *ids.begin();
        }
    }
    void disassemble(Answers& out) const {
        Disassembler disassembler;
        for (answers::Instruction& i : out.instructions)
            for (const Stream& s : streams_) {
                // In the first state that has something there: what one state sees and another does not is rare.
                for (const bool ns : {false, true})
                    if (i.text.empty())
                        i.text = disassembler.text(*s.source->memory, {ns, false, {}, {}}, i.address, i.isa);
                if (!i.text.empty()) break;
            }
    }

    /// The run has more than the streams: the capture says so, or a stream begins amid trace.
    [[nodiscard]] bool has_part_only() const {
        return is_part_of_run(session_) || std::any_of(streams_.begin(), streams_.end(), [](const Stream& s) {
                   return s.sink->troubles().gaps[static_cast<unsigned>(GapReason::unsynchronised)].times != 0;
               });
    }
    [[nodiscard]] bool went_nowhere_known() const {
        return std::any_of(streams_.begin(), streams_.end(),
                           [](const Stream& s) { return s.sink->troubles().no_memory.times != 0; });
    }

    Error why_nothing(const pipeline::Report& report, const std::vector<const pipeline::Source*>& selected) const {
        pipeline::Gave gave;
        for (const pipeline::StreamReport& stream : report.streams) gave.packets += pipeline::packets(*stream.consumer);
        for (const Stream& s : streams_) {
            gave.no_memory += s.sink->troubles().no_memory.times;
            for (unsigned i = 0; i < gap_reasons; ++i) gave.gaps[i] += s.sink->troubles().gaps[i].times;
        }
        return {Errc::not_found, "nothing decoded: " + pipeline::why_nothing(session_, selected, report, gave)};
    }

    // ---- what to know before trusting the rest

    void health(Answers& out, const pipeline::Report& report) const {
        using enum Finding::Severity;
        const auto add = [&](Finding::Severity severity, std::string what, std::string todo,
                             std::optional<std::uint64_t> offset = {}) {
            out.health.push_back({severity, std::move(what), std::move(todo), offset});
        };
        using Kind = capture::Problem::Kind;
        std::vector<capture::Problem> of_names, others;
        for (const capture::Problem& problem : session_.problems)
            if (problem.kind == Kind::unused) {
                add(warning, capture::to_string(problem), "");
                out.health.back().of_names = true;
                out.health.back().unused_file = problem.file.string();
            } else {
                (problem.kind == Kind::names ? of_names : others).push_back(problem);
            }
        for (std::string& sentence : gathered(others)) add(warning, std::move(sentence), "");
        for (std::string& sentence : gathered(of_names)) {
            add(warning, std::move(sentence), "");
            out.health.back().of_names = true;
        }
        for (const pipeline::BufferReport& buffer : report.buffers) {
            for (pipeline::Damage& damage : pipeline::damage_in(buffer))
                if (damage.kind == pipeline::Damage::Kind::cut)
                    add(bad, std::move(damage.sentence), "Copy the whole file again.");
                else
                    add(warning, std::move(damage.sentence), "");
            if (buffer.error)
                add(bad, fmt::format("buffer {} could not be read to its end: {}", buffer.name, buffer.error->message),
                    "Copy the capture again.");
        }
        for (const pipeline::StreamReport& stream : report.streams) stream_damage(out, stream);
        for (const Stream& s : streams_) stream_health(s, add);
        if (std::none_of(out.health.begin(), out.health.end(),
                         [](const Finding& f) { return f.severity >= warning && !f.of_names; }))
            add(good, "Nothing was lost, and trace and image agree everywhere.", "");
        answers::sort_findings(out);
    }

    void stream_damage(Answers& out, const pipeline::StreamReport& stream) const {
        using enum Finding::Severity;
        const auto s = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& each) {
            return each.source == stream.source && each.buffer == stream.buffer;
        });
        if (s == streams_.end()) return;
        for (const pipeline::Damage& damage : pipeline::damage_in(stream, s->sink->troubles(), ranges_in(*s))) {
            std::string todo = damage.means;
            if (!todo.empty())
                todo = static_cast<char>(std::toupper(static_cast<unsigned char>(todo.front()))) + todo.substr(1) + ".";
            out.health.push_back({damage.severity == pipeline::Severity::error     ? bad
                                  : damage.severity == pipeline::Severity::warning ? warning
                                                                                   : note,
                                  fmt::format("source {}: {}", stream.source->label(), damage.found), std::move(todo),
                                  damage.first.value});
        }
    }
    [[nodiscard]] static std::uint64_t ranges_in(const Stream& s) {
        std::uint64_t ranges = 0;
        for (const analysis::FlowCounts* counts : s.sink->counts())
            for (const std::uint64_t times : counts->times) ranges += times;
        return ranges;
    }

    template <class Add>
    void stream_health(const Stream& s, const Add& add) const {
        using enum Finding::Severity;
        const std::string source = "source " + s.source->label() + ": ";
        const analysis::FlowCalls::LeftOut& left = s.sink->calls().left_out();
        if (left.calls != 0)
            add(warning,
                fmt::format("{}the call tree is full: {} are counted as part of their callers", source,
                            counted(left.calls, "call")),
                "");
        if (left.frames != 0)
            add(note,
                fmt::format("{}calls were nested deeper than {}: the {} lowest frames were forgotten", source,
                            analysis::FlowCalls::most_frames, grouped(left.frames)),
                "");
        std::uint64_t ways = 0, losses = 0;
        for (const analysis::FlowCounts* counts : s.sink->counts()) {
            ways += counts->ways_left_out;
            losses += counts->losses_left_out;
        }
        if (ways != 0)
            add(warning,
                fmt::format("{}indirect branches have led to too many places: of {} it was not counted where to",
                            source, grouped(ways)),
                "");
        if (losses != 0)
            add(note,
                fmt::format("{}flow was lost at more places than are kept: nothing counts as not executed", source),
                "");
        if (left.contexts != 0)
            add(note,
                fmt::format("{}more than {} Context IDs: the others share one stack", source,
                            analysis::FlowCalls::most_stacks),
                "");
    }

    void summarise(Answers& out, std::uint64_t ranges) const {
        std::uint64_t instructions = 0, exceptions = 0, calls = 0, stray = 0;
        for (const Stream& s : streams_)
            for (const analysis::FlowCounts* counts : s.sink->counts()) {
                for (std::size_t edge = 0; edge < counts->times.size(); ++edge)
                    instructions += counts->times[edge] * counts->known.edges[edge].instructions;
                stray += counts->cycles;
            }
        for (const answers::ExceptionRow& e : out.exceptions) exceptions += e.times;
        // As waymark profile counts them: what ran, and how often it was entered by a call or a jump in place of one.
        std::uint64_t functions = 0, synthetic = 0;
        const std::vector<answers::FunctionCosts> costs = answers::function_costs(out);
        for (std::size_t i = 0; i < costs.size(); ++i) {
            if (!answers::ran(costs[i])) continue;
            ++functions;
            if (out.functions[i].synthetic)
                ++synthetic;
            else
                calls += costs[i].calls;
        }
        const auto add = [&](std::string name, std::uint64_t value) {
            out.summary.push_back({std::move(name), std::to_string(value)});
        };
        add("sources", static_cast<std::uint64_t>(std::count_if(streams_.begin(), streams_.end(),
                                                                [](const Stream& s) { return s.first == s.source; })));
        add("instructions", instructions);
        add("ranges", ranges);
        if (out.metrics.size() > 1) {
            std::uint64_t cycles = stray;
            for (const answers::CallNode& node : out.calls)
                if (node.self.size() > 1) cycles += node.self[1];
            add("cycles", cycles);
        }
        add("calls", calls);
        add("exceptions", exceptions);
        add("functions", functions);
        if (synthetic != 0)
            out.summary.back().note =
                fmt::format("{} of them no code of the program, such as exceptions", grouped(synthetic));
    }

    const AnswersOptions& options_;
    const pipeline::Session& session_;
    std::deque<Stream> streams_;
};

}  // namespace

void fill_by_names(Answers& answers, const std::vector<analysis::FlowStream>& streams,
                   const std::vector<const pipeline::Names*>& names, analysis::FlowAnswersOptions options) {
    // A tree of calls has the name of its source where there are several, whatever names the other streams have.
    std::map<const pipeline::Names*, std::vector<analysis::FlowStream>> by_names;
    std::vector<const pipeline::Names*> order;
    bool timeline = false;
    for (std::size_t i = 0; i < streams.size(); ++i) {
        timeline |= streams[i].timeline != nullptr;
        options.several_sources |= streams[i].source != streams.front().source;
        std::vector<analysis::FlowStream>& same = by_names[names[i]];
        if (same.empty()) order.push_back(names[i]);
        same.push_back(streams[i]);
    }
    if (order.empty()) analysis::fill_flow_answers(answers, {}, options);
    for (const pipeline::Names* each : order) {
        options.files = each->files;
        if (each == order.front()) {
            analysis::fill_flow_answers(answers, by_names.at(each), options);
            continue;
        }
        Answers more;
        more.capture = answers.capture;
        more.unit = answers.unit;
        more.version = answers.version;
        analysis::fill_flow_answers(more, by_names.at(each), options);
        answers::merge(answers, more);
    }
    if (order.size() <= 1 || !timeline) return;
    answers.timeline = {};
    std::erase_if(answers.trust, [](const answers::Trust& t) { return t.view == "timeline"; });
    answers.health.push_back({Finding::Severity::note,
                              "There is no timeline: addresses belonged to different files, or to different generated "
                              "code, at different times.",
                              "",
                              {}});
}

void add_timestamp_hz(CLI::App& command, AnswersOptions& options) {
    command
        .add_option("--timestamp-hz", options.timestamp_hz,
                    "The trace's timestamps count so many ticks a second (K, M and G are understood): the timeline is "
                    "in nanoseconds then. If not given, what the snapshot says")
        ->option_text("HZ")
        ->transform(CLI::AsNumberWithUnit(std::map<std::string, std::uint64_t>{{"hz", 1},
                                                                               {"k", 1000},
                                                                               {"khz", 1000},
                                                                               {"m", 1000000},
                                                                               {"mhz", 1000000},
                                                                               {"g", 1000000000},
                                                                               {"ghz", 1000000000}},
                                          CLI::AsNumberWithUnit::CASE_INSENSITIVE))
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{100'000'000'000}));
}

void add_kallsyms(CLI::App& command, AnswersOptions& options) {
    command.add_option("--kallsyms", options.kallsyms, "A copy of the recorded machine's /proc/kallsyms")
        ->type_name("FILE")
        ->group("Names");
}

Result<Answers> answers_of(const AnswersOptions& options) {
    // Which unit it is of.
    if (capture::is_dpu_folder(options.input.capture)) return answers_of_dpu_folder(options);
    if (is_profile(options.input.capture)) return answers_of_profile(options);
    auto opened = open_session(options.input);
    if (!opened) return not_opened(opened.error());
    const pipeline::Session session = std::move(*opened);
    warn(session);
    return FlowAnswers(options, session).run();
}

}  // namespace waymark::cli
