#include "waymark/answers/seen_lines.h"

#include <set>
#include <utility>

namespace waymark::answers {

std::vector<Seen> seen_of_lines(const Answers& answers) {
    std::set<std::pair<Index, std::uint32_t>> doubted;
    for (const Instruction& i : answers.instructions)
        if (i.seen == Seen::not_observed)
            for (const auto& place : lines_of(answers, i)) doubted.insert(place);
    std::vector<Seen> out;
    out.reserve(answers.lines.size());
    for (const Line& l : answers.lines)
        out.push_back(l.seen == Seen::not_executed && doubted.contains({l.source, l.line}) ? Seen::not_observed
                                                                                           : l.seen);
    return out;
}

}  // namespace waymark::answers
