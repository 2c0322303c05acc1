#include <algorithm>
#include <string_view>
#include <utility>

#include "section_parts.h"
#include "sections.h"
#include "waymark/answers/steps.h"

namespace waymark::report {

using answers::Answers;
using answers::Steps;

PageSection steps_section(const Answers& answers, const Steps& steps, Limit most_ranges, bool is_window) {
    Json json;
    SharedTexts texts;
    const bool other_axis = answers.timeline.axis.unit != "instructions";
    json.begin_object();
    json.key("streams").begin_array();
    for (const Steps::Stream& s : steps.streams) {
        const std::size_t kept = std::min<std::size_t>(
            s.order.size(), std::max<std::size_t>(1, std::size_t{most_ranges} / steps.streams.size()));
        const std::vector<std::uint32_t> order(s.order.begin(), s.order.begin() + static_cast<std::ptrdiff_t>(kept));
        // Edges are numbered in order of first use, so the first ranges use the first edges.
        const std::size_t edges_kept = 1 + std::size_t{*std::max_element(order.begin(), order.end())};
        const std::vector<Steps::Edge> edges(s.edges.begin(),
                                             s.edges.begin() + static_cast<std::ptrdiff_t>(edges_kept));
        std::uint64_t instructions = 0;
        for (const std::uint32_t edge : order) instructions += edges[edge].instructions;
        const auto until = [&](const auto& all) {
            const auto end = std::find_if(all.begin(), all.end(), [&](const auto& x) { return x.at > instructions; });
            return std::vector(all.begin(), end);
        };
        const std::vector<Steps::Frame> frames = until(s.frames);
        const std::vector<Steps::Event> events = until(s.events);
        json.begin_object();
        json.key("source").string(s.source);
        json.key("instructions").number(s.instructions);
        json.key("window").boolean(is_window);
        json.key("first").number(s.first);
        // Instruction number at the beginning of an axis that counts instructions.
        const std::uint64_t zero = other_axis ? s.first : answers.timeline.axis.begin;
        json.key("lead").number(zero > s.first ? zero - s.first : 0);
        json.key("edges").begin_object();
        json.addresses("address", edges, [](const Steps::Edge& e) { return e.address; });
        json.column("bytes", edges, [](const Steps::Edge& e) { return e.bytes; });
        json.column("instructions", edges, [](const Steps::Edge& e) { return e.instructions; });
        json.column("isa", edges, [](const Steps::Edge& e) { return static_cast<int>(e.isa); });
        json.column("outcome", edges, [](const Steps::Edge& e) { return static_cast<int>(e.outcome); });
        json.end_object();
        json.column("order", order, [](std::uint32_t edge) { return edge; });
        json.key("frames").begin_object();
        json.differences("at", frames, [](const Steps::Frame& f) { return f.at; });
        if (other_axis)
            json.differences("time", frames, [zero = answers.timeline.axis.begin](const Steps::Frame& f) {
                return f.time > zero ? f.time - zero : 0;
            });
        json.column("what", frames, [](const Steps::Frame& f) { return static_cast<int>(f.what); });
        json.column("depth", frames, [](const Steps::Frame& f) { return f.depth; });
        json.column("function", frames, [](const Steps::Frame& f) { return index(f.function); });
        json.end_object();
        json.key("events").begin_object();
        json.differences("at", events, [](const Steps::Event& e) { return e.at; });
        json.column("kind", events, [](const Steps::Event& e) { return static_cast<int>(e.kind); });
        json.column("text", events, [&](const Steps::Event& e) { return texts.add(e.text); });
        json.end_object();
        json.end_object();
    }
    json.end_array();
    texts.write(json, "texts");
    json.end_object();
    return {json.str(), ""};
}

}  // namespace waymark::report
