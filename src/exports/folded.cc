#include "waymark/exports/folded.h"

#include "look_up.h"
#include "waymark/core/quote.h"
#include "writer.h"

namespace waymark::exports {

using answers::Answers;
using answers::CallNode;
using answers::Index;

Result<ExportReport> write_folded(const Answers& answers, const FoldedOptions& options, ByteSink& sink) {
    WM_RETURN_IF_ERROR(check_metric(answers, options.metric));
    Writer out(sink);
    ExportReport report;
    std::vector<std::string> frames(answers.functions.size());
    for (std::size_t i = 0; i < frames.size(); ++i)
        frames[i] = folded_frame(function_name(answers, static_cast<Index>(i)));
    std::uint64_t lines = 0;
    if (answers.calls.empty()) {
        const auto costs = answers::function_costs(answers);
        for (std::size_t i = 0; i < costs.size(); ++i)
            if (const std::uint64_t self = cost_of(costs[i].self, options.metric); self != 0) {
                out.print("{} {}\n", frames[i], self);
                ++lines;
            }
        report.notes.push_back(lacks(answers, "who called whom: the stacks are flat, a function each"));
    }
    std::vector<Index> path;
    CutPaths paths(answers);
    for (std::size_t i = 0; i < answers.calls.size(); ++i) {
        const std::uint64_t self = cost_of(answers.calls[i].self, options.metric);
        if (self == 0) continue;
        path.clear();
        std::size_t left_out = 0;
        paths.walk(
            static_cast<Index>(i), [&](Index node) { path.push_back(node); },
            [&](std::size_t n) {
                left_out = n;
                path.push_back(answers::none);
            });
        for (std::size_t level = path.size(); level-- > 0;) {
            if (path[level] == answers::none) {
                out.print("[{} frames left out];", left_out);
                continue;
            }
            const CallNode& node = answers.calls[path[level]];
            if (node.kind == CallNode::Kind::root && function_at(answers, node.function) == nullptr && path.size() > 1)
                continue;  // has no meaning
            out.write(node.function < frames.size() ? frames[node.function] : std::string(node_name(answers, node)));
            if (level != 0) out.write(";");
        }
        out.print(" {}\n", self);
        ++lines;
    }
    if (lines == 0) return Error{Errc::not_found, lacks(answers, "cost of any function in this metric")};
    if (std::string note = paths.note(); !note.empty()) report.notes.push_back(std::move(note));
    report.bytes = out.finish();
    return report;
}

}  // namespace waymark::exports
