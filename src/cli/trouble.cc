#include "trouble.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "output.h"

namespace waymark::cli {

std::string about(const std::string& capture, const std::string& sentence) {
    return sentence.starts_with(capture) ? sentence : fmt::format("{}: {}", capture, sentence);
}

void say_gathered(std::string_view kind, const std::vector<std::string>& sentences) {
    for (const std::string& sentence : gathered(sentences)) say(kind, sentence);
}

void say_types_not_found(const std::vector<std::string>& asked, const listing::PacketsListed& listed,
                         std::string_view one, std::string_view many) {
    std::vector<std::string> missing;
    for (const std::string& type : std::set<std::string>(asked.begin(), asked.end()))
        if (!listed.found.contains(type)) missing.push_back(type);
    if (!missing.empty())
        say("note",
            fmt::format("none of {} has type {}", counted(listed.packets, one, many), fmt::join(missing, " or ")));
}

bool is_part_of_run(const pipeline::Session& session) {
    return std::any_of(session.problems.begin(), session.problems.end(),
                       [](const capture::Problem& p) { return p.kind == capture::Problem::Kind::part; });
}

bool lost_in_frames(const pipeline::BufferReport& buffer) {
    return buffer.framed && (buffer.frames.lost_bytes() != 0 || !buffer.strays.empty());
}

}  // namespace waymark::cli
