#include "waymark/exports/firefox.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <set>
#include <unordered_map>

#include "look_up.h"
#include "timeline.h"
#include "waymark/core/saturating.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::CallNode;
using answers::Index;
using answers::Slice;
using answers::Timeline;
using answers::TimelineMark;

/// The strings of a thread, each stored once.
class Strings {
public:
    std::size_t operator()(std::string_view text) {
        const auto [at, fresh] = index_.try_emplace(std::string(text), all_.size());
        if (fresh) all_.emplace_back(text);
        return at->second;
    }
    [[nodiscard]] const std::vector<std::string>& all() const { return all_; }

private:
    std::unordered_map<std::string, std::size_t> index_;
    std::vector<std::string> all_;
};

/// One thread of the profile, collected before it is written, since its tables are kept beside its samples.
class Thread {
public:
    Thread(const Answers& answers, std::string name, bool in_time)
        : answers_(answers), name_(std::move(name)), in_time_(in_time) {}

    using Stack = std::uint32_t;
    static constexpr Stack no_stack = ~Stack{0};

    /// The stack that consists of `prefix` and a function above it.
    Stack stack(Stack prefix, Index function, std::string_view name) {
        const std::uint32_t frame = frame_of(function, name);
        const auto [at, fresh] = stacks_.try_emplace({prefix, frame}, static_cast<Stack>(stack_prefix_.size()));
        if (fresh) {
            stack_prefix_.push_back(prefix);
            stack_frame_.push_back(frame);
        }
        return at->second;
    }
    void sample(Stack stack, double time, double weight) {
        sample_stack_.push_back(stack);
        sample_time_.push_back(time);
        sample_weight_.push_back(weight);
    }
    /// Time that belongs to no sample, because the thread had ended.
    void end(double time) { ends_.push_back(time); }
    void mark(std::string_view name, std::string_view text, double begin, double end) {
        marks_.push_back({strings_(name), std::string(text), begin, end});
    }

    /// Spreads samples without a time evenly over this many milliseconds.
    void spread(double range) {
        for (std::size_t i = 0; i < sample_time_.size(); ++i)
            sample_time_[i] = range * static_cast<double>(i) / static_cast<double>(sample_time_.size());
    }
    /// Sorts samples and marks of several tracks by time.
    void sort() {
        for (const double time : ends_) sample(no_stack, time, 0);
        std::vector<std::size_t> order(sample_time_.size());
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::stable_sort(order.begin(), order.end(),
                         [&](std::size_t a, std::size_t b) { return sample_time_[a] < sample_time_[b]; });
        const auto reorder = [&](auto& column) {
            auto sorted = column;
            for (std::size_t i = 0; i < order.size(); ++i) sorted[i] = column[order[i]];
            column = std::move(sorted);
        };
        reorder(sample_stack_);
        reorder(sample_weight_);
        reorder(sample_time_);
        std::stable_sort(marks_.begin(), marks_.end(),
                         [](const Marker& a, const Marker& b) { return a.begin < b.begin; });
    }
    [[nodiscard]] std::size_t samples() const { return sample_time_.size(); }
    [[nodiscard]] bool empty() const { return sample_time_.empty() && marks_.empty(); }

    void write(Writer& out, std::uint64_t tid, bool is_main) const {
        const double begin = sample_time_.empty() ? 0 : sample_time_.front();
        out.print(
            "{{\"processType\":\"default\",\"processStartupTime\":0,\"processShutdownTime\":null,"
            "\"registerTime\":{:.6f},\"unregisterTime\":null,\"pausedRanges\":[],\"name\":",
            begin);
        out.json(name_);
        out.write(",\"processName\":");
        out.json(answers_.capture);
        out.print(",\"isMainThread\":{},\"pid\":\"1\",\"tid\":{},\"showMarkersInTimeline\":true,\n\"samples\":",
                  is_main, tid);
        write_samples(out);
        write_marks(out);
        write_stacks(out);
        write_functions(out);
        out.write(
            ",\n\"nativeSymbols\":{\"length\":0,\"libIndex\":[],\"address\":[],\"name\":[],\"functionSize\":[]}"
            ",\n\"stringArray\":[");
        bool first = true;
        for (const std::string& s : strings_.all()) {
            if (!std::exchange(first, false)) out.write(",");
            out.json(s);
        }
        out.write("]}");
    }

private:
    struct Marker {
        std::size_t name;
        std::string text;
        double begin, end;
    };

    std::uint32_t frame_of(Index function, std::string_view name) {
        const std::size_t string = strings_(name);
        const auto [at, fresh] = frames_.try_emplace({function, string}, static_cast<std::uint32_t>(functions_.size()));
        if (!fresh) return at->second;
        functions_.push_back({string, function, resource_of(function), {}});
        if (const answers::Function* f = function_at(answers_, function))
            if (const std::string_view file = path_text(answers_, f->source); !file.empty())
                functions_.back().file = strings_(file);
        return at->second;
    }
    int resource_of(Index function) {
        const answers::Function* f = function_at(answers_, function);
        if (f == nullptr || f->image >= answers_.images.size()) return -1;
        const auto [at, fresh] = resources_.try_emplace(f->image, static_cast<int>(resource_image_.size()));
        if (fresh) {
            resource_image_.push_back(f->image);
            resource_name_.push_back(strings_(answers_.images[f->image].name));
        }
        return at->second;
    }

    /// Writes `"name":[…]`, with an element for each of `items`.
    template <class Items, class Put>
    static void column(Writer& out, std::string_view name, const Items& items, Put&& put) {
        out.print(",\"{}\":[", name);
        bool first = true;
        for (const auto& item : items) {
            if (!std::exchange(first, false)) out.write(",");
            put(item);
        }
        out.write("]");
    }

    void write_samples(Writer& out) const {
        out.print("{{\"length\":{},\"weightType\":\"{}\"", sample_stack_.size(), in_time_ ? "tracing-ms" : "samples");
        column(out, "stack", sample_stack_, [&](Stack s) { s == no_stack ? out.write("null") : out.print("{}", s); });
        column(out, "time", sample_time_, [&](double t) { out.print("{:.6f}", t); });
        column(out, "weight", sample_weight_,
               [&](double w) { in_time_ ? out.print("{:.6f}", w) : out.print("{:.0f}", w); });
        // CPU time since the previous sample, in nanoseconds: a traced thread is using its processor.
        if (in_time_) {
            std::size_t at = 0;
            column(out, "threadCPUDelta", sample_stack_, [&](Stack) {
                const bool ran = at != 0 && sample_stack_[at - 1] != no_stack;
                out.print("{:.0f}", ran ? sample_weight_[at - 1] * 1e6 : 0.0);
                ++at;
            });
        }
        out.write("},\n\"markers\":");
    }
    void write_marks(Writer& out) const {
        out.print("{{\"length\":{}", marks_.size());
        column(out, "name", marks_, [&](const Marker& m) { out.print("{}", m.name); });
        column(out, "startTime", marks_, [&](const Marker& m) { out.print("{:.6f}", m.begin); });
        column(out, "endTime", marks_,
               [&](const Marker& m) { m.end > m.begin ? out.print("{:.6f}", m.end) : out.write("null"); });
        column(out, "phase", marks_, [&](const Marker& m) { out.write(m.end > m.begin ? "1" : "0"); });
        column(out, "category", marks_, [&](const Marker&) { out.write("0"); });
        column(out, "data", marks_, [&](const Marker& m) {
            out.write("{\"type\":\"Text\",\"name\":");
            out.json(m.text);
            out.write("}");
        });
        out.write("},\n\"stackTable\":");
    }
    void write_stacks(Writer& out) const {
        out.print("{{\"length\":{}", stack_prefix_.size());
        column(out, "prefix", stack_prefix_, [&](Stack s) { s == no_stack ? out.write("null") : out.print("{}", s); });
        column(out, "frame", stack_frame_, [&](std::uint32_t f) { out.print("{}", f); });
        column(out, "category", stack_frame_, [&](std::uint32_t) { out.write("0"); });
        column(out, "subcategory", stack_frame_, [&](std::uint32_t) { out.write("0"); });
        out.print("}},\n\"frameTable\":{{\"length\":{}", functions_.size());
        const auto all = [&](std::string_view name, std::string_view value) {
            column(out, name, functions_, [&](const Func&) { out.write(value); });
        };
        all("address", "-1");
        all("inlineDepth", "0");
        all("category", "0");
        all("subcategory", "0");
        std::size_t at = 0;
        column(out, "func", functions_, [&](const Func&) { out.print("{}", at++); });
        all("nativeSymbol", "null");
        all("innerWindowID", "0");
        all("implementation", "null");
        column(out, "line", functions_, [&](const Func& f) { line(out, f); });
        all("column", "null");
        out.print("}},\n\"funcTable\":{{\"length\":{}", functions_.size());
        column(out, "name", functions_, [&](const Func& f) { out.print("{}", f.name); });
        all("isJS", "false");
        all("relevantForJS", "false");
        column(out, "resource", functions_, [&](const Func& f) { out.print("{}", f.resource); });
        column(out, "fileName", functions_,
               [&](const Func& f) { f.file ? out.print("{}", *f.file) : out.write("null"); });
        column(out, "lineNumber", functions_, [&](const Func& f) { line(out, f); });
        all("columnNumber", "null");
        out.write("},\n\"resourceTable\":");
    }
    void write_functions(Writer& out) const {
        constexpr int library = 1;
        out.print("{{\"length\":{}", resource_image_.size());
        column(out, "lib", resource_image_, [&](Index image) { out.print("{}", image); });
        column(out, "name", resource_name_, [&](std::size_t name) { out.print("{}", name); });
        column(out, "host", resource_image_, [&](Index) { out.write("null"); });
        column(out, "type", resource_image_, [&](Index) { out.print("{}", library); });
        out.write("}");
    }

    struct Func {
        std::size_t name;
        Index function;
        int resource;
        std::optional<std::size_t> file;
    };
    void line(Writer& out, const Func& f) const {
        const answers::Function* function = function_at(answers_, f.function);
        function == nullptr || function->line == 0 ? out.write("null") : out.print("{}", function->line);
    }

    const Answers& answers_;
    std::string name_;
    bool in_time_;
    Strings strings_;
    std::map<std::pair<Index, std::size_t>, std::uint32_t> frames_;
    std::vector<Func> functions_;
    std::map<Index, int> resources_;
    std::vector<Index> resource_image_;
    std::vector<std::size_t> resource_name_;
    std::map<std::pair<Stack, std::uint32_t>, Stack> stacks_;
    std::vector<Stack> stack_prefix_;
    std::vector<std::uint32_t> stack_frame_;
    std::vector<Stack> sample_stack_;
    std::vector<double> sample_time_, sample_weight_, ends_;
    std::vector<Marker> marks_;
};

class FirefoxWriter {
public:
    FirefoxWriter(const Answers& answers, const Timeline& timeline, std::size_t metric, ByteSink& sink)
        : answers_(answers), timeline_(timeline), ns_(timeline.axis), metric_(metric), out_(sink) {}

    std::uint64_t write() {
        Thread costs = of_costs();
        head(costs.samples());
        out_.write("\"threads\":[");
        of_tracks();
        if (costs.samples() != 0) put(costs, 0);
        out_.write("\n]}\n");
        return out_.finish();
    }
    /// Number of threads that were written; call after `write`.
    [[nodiscard]] std::size_t threads() const { return threads_; }

private:
    /// Milliseconds since the axis began.
    [[nodiscard]] double at(std::uint64_t time) const {
        return static_cast<double>(ns_(std::max(time, timeline_.axis.begin)) - ns_(timeline_.axis.begin)) / 1e6;
    }
    /// Length of the timeline in milliseconds; without a timeline the sum of costs at one nanosecond each.
    [[nodiscard]] double range() const {
        double end = timeline_.slices.empty() ? 0 : at(timeline_.axis.end);
        for (const Slice& s : timeline_.slices) end = std::max(end, at(s.end));
        constexpr double least = 1e-3;
        return std::max(end != 0 ? end : static_cast<double>(total_) / 1e6, least);
    }
    void head(std::size_t samples) {
        out_.print(
            "{{\"meta\":{{\"version\":27,\"preprocessedProfileVersion\":48,\"processType\":0,\"interval\":{:.6f},",
            range() / static_cast<double>(std::max<std::size_t>(samples, 1000)));
        out_.write("\"oscpu\":");
        out_.json(platform());
        out_.write(",\"startTime\":0,\"debug\":false,\"symbolicated\":true,\"stackwalk\":1,\"product\":");
        out_.json(ns_.note().empty() || timeline_.slices.empty()
                      ? answers_.capture
                      : fmt::format("{} ({})", answers_.capture, ns_.note()));
        out_.write(",\"importedFrom\":");
        out_.json("waymark " + answers_.version);
        if (const std::string run = answers::account_sentence(answers_.account); !run.empty()) {
            out_.write(
                ",\"extra\":[{\"label\":\"Capture\",\"entries\":[{\"label\":\"Run\",\"format\":\"string\",\"value\":");
            out_.json(run);
            out_.write("}]}]");
        }
        out_.write(
            ",\"usesOnlyOneStackType\":true,\"doesNotUseFrameImplementation\":true,"
            "\"sourceCodeIsNotOnSearchfox\":true,"
            "\"extensions\":{\"length\":0,\"id\":[],\"name\":[],\"baseURL\":[]},"
            "\"categories\":[{\"name\":\"Other\",\"color\":\"grey\",\"subcategories\":[\"Other\"]}],"
            "\"sampleUnits\":{\"time\":\"ms\",\"eventDelay\":\"ms\",\"threadCPUDelta\":\"ns\"},"
            "\"markerSchema\":[{\"name\":\"Text\",\"display\":[\"marker-chart\",\"marker-table\","
            "\"timeline-overview\"],\"chartLabel\":\"{marker.name} {marker.data.name}\","
            "\"tableLabel\":\"{marker.name} {marker.data.name}\","
            "\"data\":[{\"key\":\"name\",\"label\":\"What\",\"format\":\"string\",\"searchable\":true}]}]},\n"
            "\"pages\":[],\"libs\":[");
        bool first = true;
        std::size_t at = 0;
        for (const answers::Image& image : answers_.images) {
            if (!std::exchange(first, false)) out_.write(",");
            const std::string& path = image.path.empty() ? image.name : image.path;
            for (const auto& [key, value] :
                 {std::pair<std::string_view, std::string_view>{"{\"arch\":", architecture(static_cast<Index>(at++))},
                  {",\"name\":", image.name},
                  {",\"path\":", path},
                  {",\"debugName\":", image.name},
                  {",\"debugPath\":", path},
                  {",\"breakpadId\":", {}}}) {
                out_.write(key);
                out_.json(value);
            }
            out_.write(",\"codeId\":");
            image.build_id.empty() ? out_.write("null") : out_.json(image.build_id);
            out_.write("}");
        }
        out_.write("],\n");
    }
    /// The architecture in Mozilla's terms: `arm`, `arm64`, `x86_64`; empty if no code of the image is known.
    [[nodiscard]] std::string_view architecture(Index image) const {
        const auto word = [](isa::Isa isa) {
            return isa == isa::Isa::a64 ? "arm64" : isa == isa::Isa::x86_64 ? "x86_64" : "arm";
        };
        for (const answers::ImageRange& r : answers_.ranges)
            if (r.image == image) return word(r.isa);
        for (const answers::Instruction& i : answers_.instructions)
            if (const answers::Function* f = function_at(answers_, i.function); f != nullptr && f->image == image)
                return word(i.isa);
        return {};
    }
    /// The system, if its C library, loader or kernel ran, and the processor.
    [[nodiscard]] std::string platform() const {
        std::string_view processor;
        bool linux = false;
        for (Index i = 0; i < answers_.images.size(); ++i) {
            const std::string_view name = answers_.images[i].name;
            linux |= name.starts_with("ld-linux") || name.starts_with("libc.so.6") || name.starts_with("[kernel");
            if (processor.empty()) processor = architecture(i);
        }
        const std::string out(processor == "arm64" ? "aarch64" : processor);
        return linux ? out.empty() ? "Linux" : "Linux " + out : out;
    }
    void put(const Thread& thread, std::uint64_t tid) {
        out_.write(threads_ == 0 ? "\n" : ",\n");
        while (tid == 0 || !tids_.insert(tid).second) tid = ++next_tid_;
        thread.write(out_, tid, threads_ == 0);
        ++threads_;
    }

    /// Splits the name of a track, `thread sort[24247] on cpu1`, into the part up to the thread's number and the
    /// number.
    static std::pair<std::string, std::uint64_t> thread_of(std::string_view track) {
        const std::size_t open = track.find('['), close = track.find(']', open == track.npos ? 0 : open);
        if (open == track.npos || close == track.npos) return {std::string(track), 0};
        std::uint64_t tid = 0;
        const std::string_view digits = track.substr(open + 1, close - open - 1);
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), tid);
        if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) return {std::string(track), 0};
        return {std::string(track.substr(0, close + 1)), tid};
    }
    /// Makes one thread from all tracks of a thread: it may have run on several processors.
    void of_tracks() {
        std::vector<std::pair<std::pair<std::string, std::uint64_t>, std::vector<Index>>> threads;
        for (Index track = 0; track < timeline_.tracks.size(); ++track) {
            const auto thread = thread_of(timeline_.tracks[track].name);
            const auto known = std::find_if(threads.begin(), threads.end(),
                                            [&](const auto& t) { return thread.second != 0 && t.first == thread; });
            if (known != threads.end())
                known->second.push_back(track);
            else
                threads.emplace_back(thread, std::vector<Index>{track});
        }
        for (const auto& [who, tracks] : threads) {
            Thread thread(answers_, tracks.size() == 1 ? timeline_.tracks[tracks[0]].name : who.first, true);
            for (const Index track : tracks) add_track(thread, track);
            if (thread.empty()) continue;
            thread.sort();
            put(thread, who.second);
        }
    }
    void add_track(Thread& thread, Index track) const {
        std::vector<Thread::Stack> stack;
        std::uint64_t since = 0;
        bool any = false;
        const auto spent = [&](std::uint64_t now) {
            if (any && now > since)
                thread.sample(stack.empty() ? Thread::no_stack : stack.back(), at(since), at(now) - at(since));
            since = now;
            any = true;
        };
        walk(
            slices_of(timeline_, track),
            [&](const Slice& s) {
                spent(s.begin);
                stack.push_back(thread.stack(stack.empty() ? Thread::no_stack : stack.back(), s.function,
                                             function_name(answers_, s.function)));
            },
            [&](const Slice&, std::uint64_t time) {
                spent(time);
                stack.pop_back();
            });
        if (any) thread.end(at(since));
        for (const TimelineMark& m : marks_of(timeline_, track))
            thread.mark(name(m.kind), m.text, at(m.begin), at(std::max(m.begin, m.end)));
    }

    /// Adds the costs of the call tree, one sample for each node that has costs, or the costs of functions if there is
    /// no tree. They have no times, so they are spread evenly over the timeline.
    Thread of_costs() {
        const std::string& metric = answers_.metrics[metric_].name;
        Thread thread(answers_, answers_.calls.empty() ? metric + " by function" : metric + " by call path", false);
        const auto add = [&](Thread::Stack stack, std::uint64_t weight) {
            add_saturating(total_, weight);
            if (weight != 0) thread.sample(stack, 0, static_cast<double>(weight));
        };
        if (answers_.calls.empty()) {
            const auto costs = answers::function_costs(answers_);
            for (Index i = 0; i < costs.size(); ++i)
                if (const std::uint64_t self = cost_of(costs[i].self, metric_); self != 0)
                    add(thread.stack(Thread::no_stack, i, function_name(answers_, i)), self);
        } else {
            std::vector<Thread::Stack> stacks(answers_.calls.size(), Thread::no_stack);
            for (Index i = 0; i < stacks.size(); ++i) {
                const CallNode& node = answers_.calls[i];
                const Index parent = parent_of(answers_, i);
                stacks[i] = thread.stack(parent == answers::none ? Thread::no_stack : stacks[parent], node.function,
                                         node_name(answers_, node));
                add(stacks[i], cost_of(node.self, metric_));
            }
        }
        thread.spread(range());
        return thread;
    }

    const Answers& answers_;
    const Timeline& timeline_;
    Nanoseconds ns_;
    std::size_t metric_;
    Writer out_;
    std::size_t threads_ = 0;
    std::uint64_t total_ = 0, next_tid_ = 0;
    std::set<std::uint64_t> tids_;
};

}  // namespace

Result<ExportReport> write_firefox(const Answers& answers, const FirefoxOptions& options, ByteSink& sink) {
    WM_RETURN_IF_ERROR(check_metric(answers, options.metric));
    const auto size = [&](const Timeline& timeline) {
        NullSink nowhere;
        return FirefoxWriter(answers, timeline, options.metric, nowhere).write();
    };
    {
        NullSink nowhere;
        FirefoxWriter trial(answers, answers.timeline, options.metric, nowhere);
        static_cast<void>(trial.write());
        if (trial.threads() == 0) return Error{Errc::not_found, lacks(answers, "costs of functions and no timeline")};
    }
    ExportReport report;
    Fitted fitted;
    if (options.max_bytes) {
        WM_ASSIGN_OR_RETURN(fitted, fit_beside_costs(answers.timeline, *options.max_bytes, size, report));
    }
    const Timeline& timeline = options.max_bytes ? fitted.timeline : answers.timeline;
    report.bytes = FirefoxWriter(answers, timeline, options.metric, sink).write();
    if (answers.timeline.slices.empty()) report.notes.push_back(lacks(answers, "timeline"));
    if (answers.calls.empty()) report.notes.push_back(lacks(answers, "who called whom: the thread of costs is flat"));
    if (!timeline.series.empty()) report.notes.push_back("series are left out; perfetto shows them");
    if (const Nanoseconds ns(timeline.axis); !ns.note().empty() && !timeline.slices.empty())
        report.notes.push_back(fmt::format("times are counts of {}: {}", timeline.axis.unit, ns.note()));
    return report;
}

}  // namespace waymark::exports
