#include "trouble.h"

#include <algorithm>

#include "output.h"

namespace waymark::cli {

std::string about(const std::string& capture, const std::string& sentence) {
    return sentence.starts_with(capture) ? sentence : fmt::format("{}: {}", capture, sentence);
}

void say_gathered(std::string_view kind, const std::vector<std::string>& sentences) {
    for (const std::string& sentence : gathered(sentences)) say(kind, sentence);
}

bool is_part_of_run(const pipeline::Session& session) {
    return std::any_of(session.problems.begin(), session.problems.end(),
                       [](const capture::Problem& p) { return p.kind == capture::Problem::Kind::part; });
}

bool lost_in_frames(const pipeline::BufferReport& buffer) {
    return buffer.framed && (buffer.frames.lost_bytes() != 0 || !buffer.strays.empty());
}

}  // namespace waymark::cli
