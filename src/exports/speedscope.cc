#include "waymark/exports/speedscope.h"
#include "waymark/core/saturating.h"

#include <utility>

#include "look_up.h"
#include "timeline.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::CallNode;
using answers::Index;
using answers::Slice;
using answers::Timeline;

class SpeedscopeWriter {
public:
    SpeedscopeWriter(const Answers& answers, const Timeline& timeline, std::size_t metric, ByteSink& sink)
        : answers_(answers), timeline_(timeline), ns_(timeline.axis), metric_(metric), out_(sink) {}

    std::uint64_t write() {
        out_.write(R"({"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":)");
        out_.json("waymark " + answers_.version);
        out_.write(",\"name\":");
        out_.json(answers_.capture);
        out_.write(",\"shared\":{\"frames\":[");
        frames();
        out_.write("\n]},\"profiles\":[");
        bool first = true;
        for (Index track = 0; track < timeline_.tracks.size(); ++track) {
            const std::span<const Slice> slices = slices_of(timeline_, track);
            if (slices.empty()) continue;
            out_.write(first ? "\n" : ",\n");
            first = false;
            evented(timeline_.tracks[track].name, slices);
        }
        if (has_costs()) {
            out_.write(first ? "\n" : ",\n");
            costs();
        }
        out_.write("\n]}\n");
        return out_.finish();
    }
    [[nodiscard]] bool has_costs() const {
        if (!answers_.calls.empty()) return true;
        for (const auto& f : answers::function_costs(answers_))
            if (cost_of(f.self, metric_) != 0) return true;
        return false;
    }

private:
    /// Frame of a function: functions first, then names of nodes without a function.
    [[nodiscard]] std::size_t frame_of(Index function) const {
        return function < answers_.functions.size() ? function : answers_.functions.size();
    }
    [[nodiscard]] std::size_t frame_of(const CallNode& node) const {
        const std::size_t functions = answers_.functions.size();
        if (node.function < functions) return node.function;
        return node.kind == CallNode::Kind::root             ? functions + 1
               : node.kind == CallNode::Kind::unsynchronised ? functions + 2
                                                             : functions;
    }
    void frames() {
        for (const answers::Function& f : answers_.functions) {
            out_.write(&f == answers_.functions.data() ? "\n{\"name\":" : ",\n{\"name\":");
            out_.json(f.name);
            if (const std::string_view file = path_text(answers_, f.source); !file.empty()) {
                out_.write(",\"file\":");
                out_.json(file);
                if (f.line != 0) out_.print(",\"line\":{}", f.line);
            }
            out_.write("}");
        }
        out_.write(answers_.functions.empty() ? "\n" : ",\n");
        for (const auto kind : {CallNode::Kind::call, CallNode::Kind::root, CallNode::Kind::unsynchronised}) {
            out_.write(kind == CallNode::Kind::call ? "{\"name\":" : ",\n{\"name\":");
            out_.json(node_name(answers_, CallNode{.kind = kind}));
            out_.write("}");
        }
    }

    void evented(std::string_view name, std::span<const Slice> slices) {
        const std::uint64_t base = slices.front().begin;
        const bool is_time = ns_.note().empty();
        const auto at = [&](std::uint64_t time) {
            const std::uint64_t since = std::max(time, base);
            return is_time ? ns_(since) - ns_(base) : since - base;
        };
        std::uint64_t end = base;
        for (const Slice& s : slices) end = std::max(end, s.end);
        out_.write("{\"type\":\"evented\",\"name\":");
        out_.json(is_time ? std::string(name) : fmt::format("{} ({})", name, timeline_.axis.unit));
        out_.print(",\"unit\":\"{}\",\"startValue\":0,\"endValue\":{},\"events\":[", is_time ? "nanoseconds" : "none",
                   at(end));
        bool first = true;
        const auto event = [&](char type, Index function, std::uint64_t time) {
            out_.print("{}{{\"type\":\"{}\",\"frame\":{},\"at\":{}}}", first ? "\n" : ",\n", type, frame_of(function),
                       at(time));
            first = false;
        };
        walk(
            slices, [&](const Slice& s) { event('O', s.function, s.begin); },
            [&](const Slice& s, std::uint64_t time) { event('C', s.function, time); });
        out_.write("]}");
    }

    void costs() {
        if (answers_.calls.empty())
            by_function();
        else
            by_call_path();
    }
    void head(std::string_view type, std::string_view by, std::uint64_t sum) {
        const answers::Metric& metric = answers_.metrics[metric_];
        out_.print("{{\"type\":\"{}\",\"name\":", type);
        out_.json(fmt::format("{} by {}", metric.name, by));
        out_.print(",\"unit\":\"{}\",\"startValue\":0,\"endValue\":{},",
                   metric.unit == "ns"      ? "nanoseconds"
                   : metric.unit == "bytes" ? "bytes"
                                            : "none",
                   sum);
    }
    void by_function() {
        const auto costs = answers::function_costs(answers_);
        std::uint64_t sum = 0;
        for (const auto& f : costs) add_saturating(sum, cost_of(f.self, metric_));
        head("sampled", "function", sum);
        std::string samples, weights;
        for (std::size_t i = 0; i < costs.size(); ++i) {
            const std::uint64_t weight = cost_of(costs[i].self, metric_);
            if (weight == 0) continue;
            samples += fmt::format("{}[{}]", samples.empty() ? "\n" : ",\n", i);
            weights += fmt::format("{}{}", weights.empty() ? "" : ",", weight);
        }
        out_.write("\"samples\":[");
        out_.write(samples);
        out_.write("],\"weights\":[");
        out_.write(weights);
        out_.write("]}");
    }
    /// Walks the tree, using the cost so far as time. Open and close events take the same room at any depth, while a
    /// sample would repeat the whole path to its node.
    void by_call_path() {
        const std::size_t count = answers_.calls.size();
        std::vector<std::uint64_t> inclusive(count);
        std::vector<Index> child(count, answers::none), sibling(count, answers::none), stack;
        for (Index i = static_cast<Index>(count); i-- > 0;) {
            add_saturating(inclusive[i], cost_of(answers_.calls[i].self, metric_));
            const Index up = parent_of(answers_, i);
            if (up == answers::none) continue;
            add_saturating(inclusive[up], inclusive[i]);
            sibling[i] = std::exchange(child[up], i);
        }
        std::uint64_t sum = 0, now = 0;
        for (Index i = 0; i < count; ++i)
            if (parent_of(answers_, i) == answers::none) add_saturating(sum, inclusive[i]);
        head("evented", "call path", sum);
        out_.write("\"events\":[");
        bool first = true;
        const auto event = [&](char type, Index node) {
            out_.print("{}{{\"type\":\"{}\",\"frame\":{},\"at\":{}}}", first ? "\n" : ",\n", type,
                       frame_of(answers_.calls[node]), now);
            first = false;
        };
        const auto open = [&](Index node) {
            event('O', node);
            add_saturating(now, cost_of(answers_.calls[node].self, metric_));
            stack.push_back(node);
        };
        for (Index root = 0; root < count; ++root) {
            if (parent_of(answers_, root) != answers::none || inclusive[root] == 0) continue;
            open(root);
            while (!stack.empty()) {
                const Index at = stack.back();
                Index& next = child[at];
                while (next != answers::none && inclusive[next] == 0) next = sibling[next];
                if (next != answers::none) {
                    open(std::exchange(next, sibling[next]));
                } else {
                    event('C', at);
                    stack.pop_back();
                }
            }
        }
        out_.write("]}");
    }

    const Answers& answers_;
    const Timeline& timeline_;
    Nanoseconds ns_;
    std::size_t metric_;
    Writer out_;
};

}  // namespace

Result<ExportReport> write_speedscope(const Answers& answers, const SpeedscopeOptions& options, ByteSink& sink) {
    WM_RETURN_IF_ERROR(check_metric(answers, options.metric));
    NullSink nowhere;
    const bool costs = SpeedscopeWriter(answers, {}, options.metric, nowhere).has_costs();
    if (answers.timeline.slices.empty() && !costs)
        return Error{Errc::not_found, lacks(answers, "costs of functions and no timeline")};
    ExportReport report;
    const auto size = [&](const Timeline& timeline) {
        return SpeedscopeWriter(answers, timeline, options.metric, nowhere).write();
    };
    Fitted fitted;
    if (options.max_bytes) {
        WM_ASSIGN_OR_RETURN(fitted, fit_beside_costs(answers.timeline, *options.max_bytes, size, report));
    }
    const Timeline& timeline = options.max_bytes ? fitted.timeline : answers.timeline;
    report.bytes = SpeedscopeWriter(answers, timeline, options.metric, sink).write();
    if (answers.timeline.slices.empty()) report.notes.push_back(lacks(answers, "timeline"));
    if (!costs)
        report.notes.push_back("there is no profile by cost: no function has a cost in this metric");
    else if (answers.calls.empty())
        report.notes.push_back(lacks(answers, "who called whom: the profile by cost is flat"));
    if (!timeline.marks.empty() || !timeline.series.empty())
        report.notes.push_back("speedscope shows neither gaps and other marks nor series; perfetto and firefox do");
    return report;
}

}  // namespace waymark::exports
