#include "waymark/pipeline/report_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "waymark/core/numbers.h"
#include "waymark/pipeline/protocols.h"

namespace waymark::pipeline {

Result<analysis::FlowWindow> read_window(const std::string& text) {
    const Error wrong{Errc::usage, fmt::format("--window takes FIRST..END in instructions of each source, such as "
                                               "1000000..1500000, 1000000.. or ..500000; not '{}'",
                                               text)};
    const std::size_t dots = text.find("..");
    if (dots == text.npos || text.size() == 2) return wrong;
    analysis::FlowWindow out;
    const std::string_view all = text;
    for (const auto& [digits, into] :
         {std::pair(all.substr(0, dots), &out.begin), std::pair(all.substr(dots + 2), &out.end)}) {
        if (digits.empty()) continue;
        const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), *into);
        if (failure != std::errc{} || end != digits.data() + digits.size()) return wrong;
    }
    if (out.begin < out.end) return out;
    return Error{Errc::usage, fmt::format("--window {}: it ends where it begins, or before", text)};
}

Status note_window(answers::Answers& answers, const analysis::FlowWindow& window) {
    const std::string first = grouped(window.begin);
    if (answers.timeline.slices.empty() && answers.timeline.marks.empty())
        return Error{
            Errc::not_found,
            fmt::format("--window: no source of {} has a call on its timeline from instruction {} on{}",
                        answers.capture, first,
                        window.end == analysis::FlowWindow{}.end ? std::string()
                                                                 : fmt::format(" up to {}", grouped(window.end)))};
    answers.health.push_back(
        {answers::Finding::Severity::note,
         fmt::format("The timeline and the steps show a window of the run: each source from its instruction {} on{}. "
                     "Figures without a range are about the whole capture.",
                     first,
                     window.end == analysis::FlowWindow{}.end ? std::string()
                                                              : fmt::format(" up to {}", grouped(window.end)))});
    return Nothing{};
}

bool is_of_flow(const answers::Answers& answers) {
    const Protocol* const protocol = protocol_of_unit(answers.unit);
    return protocol != nullptr && protocol->decodes_flow();
}

void note_missing_symbols(answers::Answers& answers) {
    using answers::Finding;
    if (!is_of_flow(answers) ||
        std::any_of(answers.functions.begin(), answers.functions.end(),
                    [](const answers::Function& f) { return !f.linkage_name.empty() || f.line != 0; }))
        return;
    const auto after_worse = std::find_if(answers.health.begin(), answers.health.end(),
                                          [](const Finding& f) { return f.severity < Finding::Severity::warning; });
    answers.health.insert(
        after_worse,
        {Finding::Severity::note, "No symbols are known: functions are called by their addresses.",
         "Give the program with --symbols FILE: it has names, and source lines if it has debug information."});
}

}  // namespace waymark::pipeline
