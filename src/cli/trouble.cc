#include "trouble.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "waymark/command_line/output.h"

namespace waymark::cli {

void say_gathered(std::string_view kind, const std::vector<std::string>& sentences) {
    for (const std::string& sentence : gathered(sentences)) say(kind, sentence);
}

ExitStatus say_types_not_found(const std::vector<std::string>& asked, const listing::PacketsListed& listed,
                               std::string_view one, std::string_view many) {
    std::vector<std::string> missing;
    const std::set<std::string> types(asked.begin(), asked.end());
    for (const std::string& type : types)
        if (!listed.found.contains(type)) missing.push_back(type);
    if (missing.empty()) return decoded;
    const bool none = missing.size() == types.size();
    say(none ? "error" : "note",
        fmt::format("none of {} has type {}", counted(listed.packets, one, many), fmt::join(missing, " or ")));
    return none ? nothing : decoded;
}

void say_damage(const std::vector<pipeline::Damage>& damage) {
    using Kind = pipeline::Damage::Kind;
    for (const pipeline::Damage& each : damage)
        if (each.kind != Kind::cut && each.kind != Kind::unsynchronised && each.kind != Kind::overflow)
            say(each.severity == pipeline::Severity::note ? "note" : "warning", each.sentence);
}

void say_gaps(const listing::PacketsListed& listed) {
    for (unsigned i = 0; i < gap_reasons; ++i) {
        const auto reason = static_cast<GapReason>(i);
        const flow::Trouble& gap = listed.gaps[i];
        if (gap.times != 0 && is_loss(reason))
            say("warning", fmt::format("{} in {}, first at offset {:#x} of the file: {}", counted(gap.bytes, "byte"),
                                       counted(gap.times, "stretch", "stretches"), gap.offset, name(reason)));
    }
}

void say_left_out(const std::vector<pipeline::LeftOut>& captures) {
    for (const pipeline::LeftOut& each : captures)
        say("warning",
            fmt::format("{}. It is omitted: the result is about the other captures", about(each.capture, each.why)));
}

ExitStatus with_left_out(const std::vector<pipeline::LeftOut>& captures, ExitStatus status) {
    return status == decoded && !captures.empty() ? nothing : status;
}

}  // namespace waymark::cli
