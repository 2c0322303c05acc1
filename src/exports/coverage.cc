#include "coverage.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "look_up.h"
#include "writer.h"

namespace waymark::exports {

using answers::Answers;
using answers::Branch;
using answers::Index;
using answers::Line;
using answers::Seen;

std::uint64_t CoveredFile::lines_hit() const {
    return static_cast<std::uint64_t>(
        std::count_if(lines.begin(), lines.end(), [](const Line& line) { return hits(line) != 0; }));
}

std::uint64_t CoveredFile::branches_hit() const {
    std::uint64_t out = 0;
    for (const Branch* b : branches) out += outcomes(*b);
    return out;
}

Result<std::vector<CoveredFile>> covered_files(const Answers& answers) {
    if (!answers.metrics.empty() && !answers.metrics.front().exact && answers.metrics.front().stretches == 0)
        return Error{
            Errc::not_found,
            "samples show some of the code that ran and cannot show what did not, so they are no coverage; csv, pprof "
            "and autofdo have their counts by line"};
    std::vector<CoveredFile> files;
    for (std::size_t i = 0; i < answers.lines.size();) {
        std::size_t end = i;
        while (end < answers.lines.size() && answers.lines[end].source == answers.lines[i].source) ++end;
        if (answers.lines[i].source < answers.sources.size()) {
            CoveredFile file;
            file.source = answers.lines[i].source;
            file.lines = std::span(answers.lines).subspan(i, end - i);
            for (const Line& line : file.lines)
                if (line.seen == Seen::not_observed) file.not_observed.push_back(line.line);
            files.push_back(std::move(file));
        }
        i = end;
    }
    if (files.empty()) return Error{Errc::not_found, lacks_lines(answers)};
    const auto find = [&](Index source) -> CoveredFile* {
        const auto at = std::lower_bound(files.begin(), files.end(), source,
                                         [](const CoveredFile& f, Index sought) { return f.source < sought; });
        return at != files.end() && at->source == source ? &*at : nullptr;
    };
    std::vector<bool> ran(answers.functions.size());
    for (const auto& i : answers.instructions)
        if (i.seen == Seen::executed && i.function < ran.size()) ran[i.function] = true;
    for (const Line& line : answers.lines)
        if (line.seen == Seen::executed && line.function < ran.size()) ran[line.function] = true;
    std::map<std::pair<Index, Index>, std::map<std::uint32_t, bool>> lines_of_functions;  // by source, function
    for (const auto& i : answers.instructions)
        for (const auto& [source, line] : lines_of(answers, i))
            lines_of_functions[{source, i.function}][line] |= i.seen == Seen::executed;
    if (answers.instructions.empty())
        for (const Line& line : answers.lines)
            lines_of_functions[{line.source, line.function}][line.line] |= hits(line) != 0;
    const auto entries = function_entries(answers);
    for (Index i = 0; i < answers.functions.size(); ++i) {
        const answers::Function& f = answers.functions[i];
        CoveredFile* file = f.synthetic || f.line == 0 ? nullptr : find(f.source);
        if (file == nullptr) continue;
        CoveredFunction covered{i, f.line, std::max<std::uint64_t>(entries[i], ran[i] ? 1 : 0)};
        for (const auto& [line, hit] : lines_of_functions[{f.source, i}]) {
            ++covered.lines;
            covered.lines_hit += hit ? 1 : 0;
        }
        file->functions.push_back(covered);
    }
    for (const Branch& b : answers.branches)
        if (b.kind == Branch::Kind::conditional && b.line != 0)
            if (CoveredFile* file = find(b.source)) file->branches.push_back(&b);
    for (CoveredFile& file : files) {
        std::stable_sort(file.functions.begin(), file.functions.end(),
                         [](const auto& a, const auto& b) { return a.line < b.line; });
        std::stable_sort(file.branches.begin(), file.branches.end(), [](const Branch* a, const Branch* b) {
            return std::tie(a->line, a->address) < std::tie(b->line, b->address);
        });
    }
    return files;
}

void note_coverage(const std::vector<CoveredFile>& files, ExportReport& report) {
    std::uint64_t lines = 0;
    for (const CoveredFile& file : files) lines += file.not_observed.size();
    if (lines != 0)
        report.notes.push_back(
            counted(lines, "line") + (lines == 1 ? " was" : " were") +
            " not observed: flow was lost where they could have run. The format has no word for that; they count as "
            "not executed, and comments in the file name them");
}

}  // namespace waymark::exports
