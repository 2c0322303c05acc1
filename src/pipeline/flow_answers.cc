#include "waymark/pipeline/flow_answers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <deque>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <set>

#include "kernel_modules.h"
#include "waymark/analysis/flow_sink.h"
#include "waymark/analysis/image_tables.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/costs.h"
#include "waymark/answers/parts.h"
#include "waymark/answers/sum.h"
#include "waymark/image/disassembly.h"
#include "waymark/isa/cores.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/damage.h"
#include "waymark/pipeline/diagnosis.h"
#include "waymark/pipeline/gathered.h"

namespace waymark::pipeline {

namespace {

using answers::Answers;
using answers::Finding;

/// Whether the traced core is of the M profile.
bool has_modes(const Source& source) { return isa::core_profile(source.core_type) == isa::CoreProfile::m; }

/// One source in one buffer.
struct SourceStream {
    const Source* source{};
    std::string buffer;
    std::unique_ptr<analysis::FlowCode> code;
    std::unique_ptr<analysis::FlowTimeline> timeline;
    std::unique_ptr<analysis::FlowSteps> steps;
    std::unique_ptr<analysis::FlowSink> sink;
    const Source* first{};   ///< the source in which the thread began; `source` if there is no other
    bool continued = false;  ///< another stream continues the thread
};

class FlowAnswers {
public:
    FlowAnswers(const FlowAnswersOptions& options, const Session& session) : options_(options), session_(session) {}

    Result<Answers> run(const std::vector<const Source*>& selected, const Progress& progress,
                        const std::function<void(const Report&)>& read) {
        std::vector<const Source*> sources;
        std::copy_if(selected.begin(), selected.end(), std::back_inserter(sources),
                     [](const Source* source) { return source->has_flow(); });
        const unsigned at_once = buffers_at_once(session_, options_.workers);
        // Bounds the memory of many sources.
        constexpr std::size_t always = 1'000'000;
        const std::size_t most_slices = std::min(
            options_.most_slices, std::max(always, options_.most_slices / std::max<std::size_t>(1, sources.size())));
        const auto make = [&](const StreamInfo& stream) {
            SourceStream& s = streams_.emplace_back();
            s.source = &stream.source;
            s.buffer = stream.buffer.name;
            s.code = std::make_unique<analysis::FlowCode>(stream.source.names->symbols, *stream.source.memory);
            if (options_.timeline)
                s.timeline = std::make_unique<analysis::FlowTimeline>(
                    options_.axis_of_cycles && stream.source.configuration->cycle_counts(), most_slices,
                    options_.window);
            if (s.timeline && options_.steps != nullptr && options_.most_steps != 0)
                s.steps = std::make_unique<analysis::FlowSteps>(options_.most_steps, s.timeline.get(), options_.window);
            analysis::CallObserver* const observer =
                s.steps ? static_cast<analysis::CallObserver*>(s.steps.get()) : s.timeline.get();
            s.sink = std::make_unique<analysis::FlowSink>(
                *s.code, [&offsets = stream.offsets](Offset at) { return offsets.capture(at).value; },
                // For a part of the flow, decoders do not count ways themselves.
                analysis::FlowSink::Options{.calls = options_.calls || options_.timeline || options_.instructions ||
                                                     (options_.ranges && stream.source.filter != nullptr),
                                            .ways = options_.ranges,
                                            .observer = observer});
            if (s.steps) {
                s.steps->lead_to(*s.sink);
                s.steps->name_modes(has_modes(stream.source));
            }
            s.first = s.source;
            // Calls continue in the stream that continues the thread.
            const auto before = std::find_if(streams_.rbegin() + 1, streams_.rend(), [&](const SourceStream& other) {
                return !other.continued && other.source->name == stream.source.continues;
            });
            if (before != streams_.rend()) {
                before->sink->hand_over(*s.sink);
                before->continued = true;
                s.first = before->first;
            }
            return flow_consumer(stream, s.steps ? static_cast<flow::Sink&>(*s.steps) : *s.sink, DecoderKind::fast,
                                 at_once > 1 ? 1 : options_.workers);
        };
        const Report report = pipeline::run(session_, sources, make, progress, options_.open, at_once);
        if (at_once > 1) {
            // Use a fixed order, independent of which buffer was read first.
            const auto place = [&](const SourceStream& s) { return session_.capture.find_buffer(s.buffer); };
            std::stable_sort(streams_.begin(), streams_.end(), [&](const SourceStream& a, const SourceStream& b) {
                return std::less<>{}(place(a), place(b));
            });
        }
        if (read) read(report);
        return answers(report, selected, !read_errors(session_, report).empty());
    }

private:
    /// `cut`: a buffer could not be read to its end.
    Result<Answers> answers(const Report& report, const std::vector<const Source*>& selected, bool cut) {
        Answers out;
        out.capture = session_.capture.path.string();
        std::vector<std::string_view> units;
        for (const SourceStream& s : streams_) {
            const std::string_view unit = s.source->protocol->unit_of(s.source->type);
            if (std::find(units.begin(), units.end(), unit) == units.end()) units.push_back(unit);
        }
        std::sort(units.begin(), units.end());  // captures are merged only if the names of their units are equal
        out.unit = fmt::format("{}", fmt::join(units, " and "));
        std::vector<analysis::FlowStream> streams;
        std::vector<const Names*> names;
        analysis::FlowAnswersOptions options;
        for (const SourceStream& s : streams_) {
            s.sink->finish();
            if (s.timeline) s.timeline->finish(s.sink->calls().now());
            options.cycles |= s.source->configuration->cycle_counts();
            streams.push_back({s.sink.get(), s.first->label(), s.source->configuration->waypoints(), s.buffer,
                               s.timeline.get(), s.steps.get(), has_modes(*s.source)});
            names.push_back(s.source->names.get());
        }
        options.instructions = options_.instructions;
        options.inlined = options_.inlined;
        options.ranges = options_.ranges;
        options.ticks_per_second =
            options_.timestamp_hz != 0 ? options_.timestamp_hz : session_.capture.timestamp_frequency_hz.value_or(0);
        options.all_functions = options_.all_functions;
        const analysis::StretchesOff off = analysis::stretches_off(streams);
        if (session_.capture.strobed || session_.capture.sampled || off.not_by_address != 0)
            options.stretches = std::max(stretches(off), std::uint64_t{1});
        options.sampled = session_.capture.sampled;
        out.account = account(report, selected);
        options.partial =
            answers::completeness(out.account).hides == answers::Hides::anything || options.stretches != 0;
        const answers::AddressRanges programs = user_level();
        if (!session_.capture.modules.empty())
            options.of_user_level = [&programs](std::uint64_t address) { return programs.find(address).has_value(); };
        std::optional<capture::RanBefore> ran_before;
        if (std::any_of(out.account.begin(), out.account.end(), answers::is_known_before))
            ran_before = capture::ran_before(session_.capture);
        if (ran_before) options.ran_before = &*ran_before;
        options.account = &out.account;
        options.most_slices = options_.most_slices;
        options.timestamps = options_.axis_of_timestamps;
        options.steps = options_.steps;
        options.window = options_.window;
        if (session_.capture.spaces) options.context_name = [this](std::uint32_t thread) { return name_of(thread); };
        fill_by_names(out, streams, names, options);
        answers::mark_unlisted_code(out, has_all_images(out));
        // Only Arm has these exception levels.
        if (session_.capture.x86_64) out.levels.clear();
        if (session_.capture.spaces)
            say_which_clock(out);
        else if (out.timeline.axis.unit == "ticks" && session_.capture.modules.clock == capture::instructions_clock)
            out.timeline.axis.note += " The recorder counted a tick for each cycle of all threads.";
        name_builds(out);
        if (options_.disassembly) disassemble(out);

        for (const BufferReport& buffer : report.buffers) out.trace_bytes += buffer.bytes;
        std::uint64_t ranges = 0;
        for (const SourceStream& s : streams_) ranges += ranges_in(s);
        out.cut = cut;
        if (ranges == 0 && !(options_.without_code && went_nowhere_known())) {
            Error why = why_nothing(report, selected);
            if (cut) why.code = Errc::unreadable;
            return why;
        }
        if (ranges == 0)
            out.health.push_back({Finding::Severity::bad, "Nothing was decoded: all code that ran is without an image.",
                                  "Give the program with --image FILE[@ADDRESS]: then this report shows functions, who "
                                  "called whom, source and code with coverage, branches and loops."});
        if (options.stretches != 0) stretches_health(out, options.stretches);
        health(out, report, selected);
        summarise(out, ranges);
        return out;
    }

    /// Number of stretches in the trace. Of strobed trace each burst is one. Without calls, each time that tracing
    /// began again counts as one.
    [[nodiscard]] std::uint64_t stretches(const analysis::StretchesOff& off) const {
        std::uint64_t out = session_.capture.strobed ? 0 : off.all;
        for (const SourceStream& s : streams_) {
            const flow::Troubles& troubles = s.sink->troubles();
            out += 1;
            if (session_.capture.strobed)
                out += troubles.resumptions;
            else if (!s.sink->options().calls)
                out += troubles.resumptions + troubles.handlers_left_out;
        }
        return out;
    }
    void stretches_health(Answers& out, std::uint64_t stretches) const {
        if (session_.capture.sampled) {
            out.health.push_back({Finding::Severity::note,
                                  fmt::format("Samples of branches: {} of the run. What ran between them is not known, "
                                              "and counts are estimates.",
                                              counted(stretches, "stretch", "stretches")),
                                  "Compare shares, with their intervals."});
            return;
        }
        out.health.push_back(
            {Finding::Severity::note,
             fmt::format("Tracing was turned off and on amid the flow: the trace is of {} of the run. What ran "
                         "between them is not known, and counts are {}s.",
                         counted(stretches, "stretch", "stretches"), answers::completeness(out.account).word()),
             "Compare shares, with their intervals; record without strobing, start and stop for counts."});
    }

    /// Addresses at which files of programs were mapped that ran at user level. Addresses of a 32-bit kernel are low,
    /// so names count as well.
    [[nodiscard]] answers::AddressRanges user_level() const {
        constexpr std::uint64_t kernel = std::uint64_t{1} << 63;
        answers::AddressRanges out;
        for (const capture::Module& m : session_.capture.modules.modules)
            if (m.address.value < kernel && !is_kernel(m.file)) out.add(m.address.value, m.bytes, 0);
        return out;
    }
    /// Whether each file that was mapped for processes is an image of the answers.
    [[nodiscard]] bool has_all_images(const Answers& answers) const {
        constexpr std::uint64_t kernel = std::uint64_t{1} << 63;
        const std::vector<capture::Module>& modules = session_.capture.modules.modules;
        return !modules.empty() && std::all_of(modules.begin(), modules.end(), [&](const capture::Module& m) {
            return m.address.value >= kernel || m.file.starts_with('[') || is_kernel(m.file) ||
                   std::any_of(answers.images.begin(), answers.images.end(),
                               [&](const answers::Image& image) { return image.recorded == m.file; });
        });
    }
    /// The thread's last name.
    [[nodiscard]] analysis::ContextName name_of(std::uint32_t thread) const {
        constexpr std::uint64_t last = ~std::uint64_t{0};
        const capture::AddressSpaces& spaces = *session_.capture.spaces;
        const capture::AddressSpaces::Task task = spaces.task(thread, last);
        const std::string name = spaces.thread_name(thread, last);
        if (!task.process) return {"not known", name};
        return {task.process_name.empty() ? std::to_string(*task.process)
                                          : fmt::format("{}[{}]", task.process_name, *task.process),
                name};
    }
    /// Reports whether the timeline shows time.
    void say_which_clock(Answers& out) const {
        if (out.timeline.tracks.empty()) return;
        const bool kernel = session_.capture.spaces->time_of(0).has_value();
        const std::string& unit = out.timeline.axis.unit;
        out.timeline.axis.note +=
            unit == "ns" && kernel ? " They count the kernel's clock."
            : unit == "ns" || unit == "ticks"
                ? " They may not count the kernel's clock, so they give the order between CPUs, "
                  "and a time only if it is known that they do."
                : " There are no timestamps in common, so only the order within a CPU is known, and no time.";
    }

    /// Gives images whose files were not found the build IDs in the capture.
    void name_builds(Answers& out) const {
        for (answers::Image& image : out.images) {
            if (!image.build_id.empty() || !image.path.empty()) continue;
            std::set<std::string> ids;
            std::set<std::uint64_t> biases;  // without the file: the load biases of its offsets
            for (const capture::Module& m : session_.capture.modules.modules)
                if (std::filesystem::path(m.file).filename() == image.name) {
                    ids.insert(capture::hex_text(m.build_id));
                    biases.insert(m.address.value - m.offset);
                }
            if (ids.size() == 1) image.build_id = *ids.begin();
            if (ids.size() == 1 && biases.size() == 1) image.load_bias = *biases.begin();
        }
    }
    void disassemble(Answers& out) const {
        image::Disassembler disassembler;
        for (answers::Instruction& i : out.instructions)
            for (const SourceStream& s : streams_) {
                // Uses the first state that has memory at the address: differences between states are rare.
                for (const bool ns : {false, true})
                    if (i.text.empty())
                        i.text = disassembler.text(*s.source->memory, {ns, false, {}, {}}, i.address, i.isa);
                if (!i.text.empty()) break;
            }
    }

    [[nodiscard]] bool went_nowhere_known() const {
        return std::any_of(streams_.begin(), streams_.end(),
                           [](const SourceStream& s) { return s.sink->troubles().no_memory.times != 0; });
    }

    Error why_nothing(const Report& report, const std::vector<const Source*>& selected) const {
        Gave gave;
        for (const StreamReport& stream : report.streams) gave.packets += packets(*stream.consumer);
        for (const SourceStream& s : streams_) {
            const flow::Troubles& troubles = s.sink->troubles();
            gave.no_memory += troubles.no_memory.times;
            gave.uncommitted += troubles.uncommitted.amount;
            gave.untraced += troubles.untraced.times;
            gave.unplaced += troubles.unplaced.times;
            for (unsigned i = 0; i < gap_reasons; ++i) gave.gaps[i] += troubles.gaps[i].times;
        }
        return {Errc::not_found, "nothing decoded: " + pipeline::why_nothing(session_, selected, report, gave)};
    }

    // ---- findings that qualify the results

    void health(Answers& out, const Report& report, const std::vector<const Source*>& selected) const {
        using enum Finding::Severity;
        const auto add = [&](Finding::Severity severity, std::string what, std::string todo,
                             std::optional<std::uint64_t> offset = {}) {
            out.health.push_back({severity, std::move(what), std::move(todo), offset});
        };
        using ProblemKind = capture::Problem::Kind;
        std::vector<capture::Problem> of_names, others;
        for (std::string& sentence : file_damage(session_)) add(bad, std::move(sentence), "Copy the whole file again.");
        for (const capture::Problem& problem : session_.problems)
            if (problem.kind == ProblemKind::damage) {
                continue;
            } else if (problem.kind == ProblemKind::unused) {
                add(warning, capture::to_string(problem), "");
                out.health.back().of_names = true;
                out.health.back().unused_file = problem.file.string();
            } else {
                (problem.kind == ProblemKind::names ? of_names : others).push_back(problem);
            }
        for (std::string& sentence : gathered(others)) add(warning, std::move(sentence), "");
        for (std::string& sentence : gathered(of_names)) {
            add(warning, std::move(sentence), "");
            out.health.back().of_names = true;
        }
        for (const BufferReport& buffer : report.buffers) {
            for (Damage& damage : damage_in(buffer))
                if (damage.kind == Damage::Kind::cut)
                    add(bad, std::move(damage.sentence), "Copy the whole file again.");
                else
                    add(warning, std::move(damage.sentence), "");
            if (auto unread = error_of(buffer)) add(bad, std::move(*unread), "Copy the capture again.");
            if (const std::uint64_t triggers = buffer.frames.data[coresight::trigger_id.value]; triggers != 0)
                add(note,
                    fmt::format("Buffer {}: {} marked in its frames.", buffer.name,
                                triggers == 1 ? std::string("a trigger is")
                                              : fmt::format("{} triggers are", grouped(triggers))),
                    "`waymark doctor` says where; what led to it is before that place.");
        }
        for (const Damage& damage : not_decoded(session_, selected, report))
            add(damage.severity == Severity::note ? note : warning, damage.sentence + ".", "");
        for (const StreamReport& stream : report.streams) stream_damage(out, stream);
        if (auto filtered = filter_note(session_, report); filtered && !filtered->nothing_passed)
            add(filtered->uncertain ? warning : note, std::move(filtered->text) + ".",
                filtered->uncertain ? "Timestamps of the kernel's clock tell which part ran when (perf from 6.3 on)."
                                    : "");
        for (Damage& damage : code_damage(session_, report))
            add(warning, std::move(damage.found),
                damage.means.empty() ? std::string()
                                     : static_cast<char>(std::toupper(static_cast<unsigned char>(damage.means[0]))) +
                                           damage.means.substr(1) + ".");
        for (const SourceStream& s : streams_) stream_health(s, add);
        if (!answers::completeness(out.account).strict &&
            std::none_of(out.health.begin(), out.health.end(),
                         [](const Finding& f) { return f.severity >= warning && !f.of_names; }))
            add(good,
                std::any_of(
                    out.account.begin(), out.account.end(),
                    [](const answers::AccountRow& row) { return row.reason != answers::AccountReason::decoded; })
                    ? "Nothing of what was traced was lost, and trace and image agree everywhere."
                    : "Nothing was lost, and trace and image agree everywhere.",
                "");
        answers::sort_findings(out);
    }

    void stream_damage(Answers& out, const StreamReport& stream) const {
        using enum Finding::Severity;
        const auto s = std::find_if(streams_.begin(), streams_.end(), [&](const SourceStream& each) {
            return each.source == stream.source && each.buffer == stream.buffer;
        });
        if (s == streams_.end()) return;
        for (const Damage& damage : damage_in(stream, s->sink->troubles(), ranges_in(*s))) {
            std::string todo = damage.means;
            if (!todo.empty())
                todo = static_cast<char>(std::toupper(static_cast<unsigned char>(todo.front()))) + todo.substr(1) + ".";
            out.health.push_back({damage.severity == Severity::error     ? bad
                                  : damage.severity == Severity::warning ? warning
                                                                         : note,
                                  fmt::format("source {}: {}", stream.source->label(), damage.found), std::move(todo),
                                  damage.first.value});
        }
    }
    [[nodiscard]] static std::uint64_t ranges_in(const SourceStream& s) {
        std::uint64_t ranges = 0;
        for (const analysis::FlowCounts* counts : s.sink->counts())
            for (const std::uint64_t times : counts->times) ranges += times;
        return ranges;
    }

    [[nodiscard]] answers::Account account(const Report& report, const std::vector<const Source*>& selected) const {
        std::vector<DecodedStream> decoded;
        for (const StreamReport& stream : report.streams)
            for (const SourceStream& s : streams_)
                if (s.source == stream.source && s.buffer == stream.buffer)
                    decoded.push_back({&stream, &s.sink->troubles(), ranges_in(s), instructions_in(s)});
        answers::Account out = flow_account(session_, selected, report, decoded);
        for (const SourceStream& s : streams_) {
            const analysis::FlowCalls::LeftOut& left = s.sink->calls().left_out();
            std::uint64_t losses = left.contexts;
            for (const analysis::FlowCounts* counts : s.sink->counts())
                losses += counts->ways_left_out + counts->losses_left_out;
            if (losses != 0) answers::add(out, {.reason = answers::AccountReason::not_kept});
        }
        return out;
    }
    [[nodiscard]] static std::uint64_t instructions_in(const SourceStream& s) {
        std::uint64_t instructions = 0;
        for (const analysis::FlowCounts* counts : s.sink->counts())
            for (std::size_t edge = 0; edge < counts->times.size(); ++edge)
                instructions += counts->times[edge] * counts->known.edges[edge].instructions;
        return instructions;
    }

    template <class Add>
    void stream_health(const SourceStream& s, const Add& add) const {
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
                            analysis::CallStacks::most_frames, grouped(left.frames)),
                "");
        std::uint64_t ways = 0, losses = 0;
        for (const analysis::FlowCounts* counts : s.sink->counts()) {
            ways += counts->ways_left_out;
            losses += counts->losses_left_out;
        }
        if (ways != 0)
            add(warning,
                fmt::format("{}indirect branches have led to too many places: for {} the destination was not counted",
                            source, grouped(ways)),
                "");
        if (losses != 0)
            add(note,
                fmt::format("{}flow was lost at more places than can be stored: nothing counts as not executed",
                            source),
                "");
        if (left.contexts != 0)
            add(note,
                fmt::format("{}more than {} Context IDs: the others share one stack", source,
                            analysis::CallStacks::most_stacks),
                "");
    }

    void summarise(Answers& out, std::uint64_t ranges) const {
        std::uint64_t instructions = 0, exceptions = 0, calls = 0, stray = 0, unseen = 0;
        for (const SourceStream& s : streams_)
            for (const analysis::FlowCounts* counts : s.sink->counts()) {
                for (std::size_t edge = 0; edge < counts->times.size(); ++edge)
                    instructions += counts->times[edge] * counts->known.edges[edge].instructions;
                stray += counts->cycles;
                unseen += counts->unseen_instructions;
            }
        for (const answers::ExceptionRow& e : out.exceptions) exceptions += e.times;
        // Counts as waymark profile does: functions that ran, and how often each was entered by a call or a tail call.
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
        if (std::string_view how = session_.capture.description; !how.empty()) {
            constexpr std::string_view recorded = "recorded ";
            if (how.starts_with(recorded)) how.remove_prefix(recorded.size());
            out.summary.push_back({std::string(answers::recorded_figure), std::string(how)});
        }
        add("sources",
            static_cast<std::uint64_t>(std::count_if(streams_.begin(), streams_.end(),
                                                     [](const SourceStream& s) { return s.first == s.source; })));
        add("instructions", instructions + unseen);
        if (unseen != 0)
            out.summary.back().note = fmt::format("{} of them unseen: the trace does not say which", grouped(unseen));
        add("ranges", ranges);
        std::uint64_t not_decoded = 0;
        for (const SourceStream& s : streams_)
            not_decoded += s.sink->troubles().without_code + s.sink->troubles().unplaced.amount;
        if (not_decoded != 0) {
            add(std::string(answers::ranges_not_decoded), not_decoded);
            out.summary.back().note = "their code is not known: outcomes of branches have no address";
        }
        // Ranges alone do not show calls.
        const bool calls_known = options_.calls || options_.timeline || options_.instructions;
        if (out.metrics.size() > 1 && calls_known) {
            std::uint64_t cycles = stray;
            for (const answers::CallNode& node : out.calls)
                if (node.self.size() > 1) cycles += node.self[1];
            add("cycles", cycles);
        }
        if (calls_known) add("calls", calls);
        add("exceptions", exceptions);
        if (!calls_known) return;
        add("functions", functions);
        if (synthetic != 0)
            out.summary.back().note = fmt::format("{} not program code, such as exceptions", grouped(synthetic));
    }

    const FlowAnswersOptions& options_;
    const Session& session_;
    std::deque<SourceStream> streams_;
};

}  // namespace

Result<Answers> flow_answers(const Session& session, const std::vector<const Source*>& selected,
                             const FlowAnswersOptions& options, const Progress& progress,
                             const std::function<void(const Report&)>& read) {
    return FlowAnswers(options, session).run(selected, progress, read);
}

void fill_by_names(Answers& answers, const std::vector<analysis::FlowStream>& streams,
                   const std::vector<const Names*>& names, analysis::FlowAnswersOptions options) {
    // If there are several trees of calls, each has the name of its source, independent of the names of other streams.
    std::map<const Names*, std::vector<analysis::FlowStream>> by_names;
    std::vector<const Names*> order;
    bool timeline = false;
    for (std::size_t i = 0; i < streams.size(); ++i) {
        timeline |= streams[i].timeline != nullptr;
        options.several_sources |= streams[i].source != streams.front().source;
        std::vector<analysis::FlowStream>& same = by_names[names[i]];
        if (same.empty()) order.push_back(names[i]);
        same.push_back(streams[i]);
    }
    if (order.empty()) analysis::fill_flow_answers(answers, {}, options);
    const auto fill = [&](Answers& to, const Names* each) {
        options.files = each->files;
        analysis::fill_flow_answers(to, by_names.at(each), options);
        analysis::place_images(to, options.files);
        if (options.ranges) analysis::fill_image_tables(to, by_names.at(each), options.files);
        if (order.size() > 1) {
            to.timeline = {};
            if (options.steps != nullptr) options.steps->streams.clear();
        }
    };
    for (const Names* each : order) {
        if (each == order.front()) {
            fill(answers, each);
            continue;
        }
        Answers more;
        more.capture = answers.capture;
        more.unit = answers.unit;
        more.version = answers.version;
        fill(more, each);
        answers::merge(answers, more);
        // All these answers are parts of one capture.
        answers.capture = more.capture;
        answers.parts.clear();
        for (Finding& f : answers.health) f.captures = 0;
    }
    if (order.size() <= 1 || !timeline) return;
    answers.health.push_back({Finding::Severity::note,
                              "There is no timeline: addresses belonged to different files, or to different generated "
                              "code, at different times.",
                              "",
                              {}});
}

}  // namespace waymark::pipeline
