#include "waymark/exports/lcov.h"

#include <algorithm>

#include "coverage.h"
#include "look_up.h"
#include "writer.h"

namespace waymark::exports {

using answers::Answers;
using answers::Branch;

namespace {

void write_functions(Writer& out, const CoveredFile& file, bool end_lines) {
    std::uint64_t hit = 0;
    for (const CoveredFunction& f : file.functions)
        out.print("FN:{},{}{}\n", f.line, end_lines ? fmt::format("{},", f.last) : "", one_line(f.name));
    for (const CoveredFunction& f : file.functions) {
        out.print("FNDA:{},{}\n", f.entries, one_line(f.name));
        hit += std::uint64_t{f.entries != 0};
    }
    out.print("FNF:{}\nFNH:{}\n", file.functions.size(), hit);
}

/// Each branch instruction of a line is a block of two branches: taken, not taken.
void write_branches(Writer& out, const CoveredFile& file) {
    if (file.branches.empty()) return;
    std::uint32_t line = 0, block = 0;
    for (const Branch* b : file.branches) {
        block = b->line == line ? block + 1 : 0;
        line = b->line;
        const bool ran = b->taken != 0 || b->not_taken != 0;
        for (unsigned outcome = 0; outcome < 2; ++outcome) {
            out.print("BRDA:{},{},{},", line, block, outcome);
            ran ? out.print("{}\n", outcome == 0 ? b->taken : b->not_taken) : out.write("-\n");
        }
    }
    out.print("BRF:{}\nBRH:{}\n", 2 * file.branches.size(), file.branches_hit());
}

}  // namespace

Result<ExportReport> write_lcov(const Answers& answers, const CoveredSources& options, ByteSink& sink) {
    WM_ASSIGN_OR_RETURN(const Coverage coverage, coverage_of(answers, options));
    Writer out(sink);
    if (const std::string run = answers::account_sentence(answers.account); !run.empty())
        out.print("# run: {}\n", one_line(run));
    for (const CoveredFile& file : coverage.files) {
        out.print("TN:\nSF:{}\n", one_line(file.path));
        if (!file.not_observed.empty()) out.print("# not observed: {}\n", line_list(file.not_observed));
        if (!file.directions_not_observed.empty()) {
            out.write("# branches not observed:");
            for (const CoveredDirection& d : file.directions_not_observed)
                out.print(" {},{},{}", d.line, d.block, d.not_taken ? 1 : 0);
            out.write("\n");
        }
        write_functions(out, file, options.end_lines);
        write_branches(out, file);
        for (const answers::Line& line : file.lines) out.print("DA:{},{}\n", line.line, hits(line));
        out.print("LF:{}\nLH:{}\nend_of_record\n", file.lines.size(), file.lines_hit());
    }
    ExportReport report;
    report.bytes = out.finish();
    report.notes = coverage.notes();
    const auto needs = std::find_if(coverage.files.begin(), coverage.files.end(),
                                    [](const CoveredFile& file) { return file.needs_end_lines(); });
    if (!options.end_lines && needs != coverage.files.end())
        report.notes.push_back(
            fmt::format("lcov 2.2 and later assume that a function ends where the next begins, which is wrong in {}: "
                        "for these versions write the file with --lcov-end-lines",
                        needs->path));
    return report;
}

}  // namespace waymark::exports
