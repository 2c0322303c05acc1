#include "waymark/exports/lcov.h"

#include "coverage.h"
#include "look_up.h"
#include "writer.h"

namespace waymark::exports {

using answers::Answers;
using answers::Branch;

namespace {

void write_functions(Writer& out, const Answers& answers, const CoveredFile& file) {
    std::uint64_t hit = 0;
    for (const CoveredFunction& f : file.functions)
        out.print("FN:{},{}\n", f.line, one_line(linkage_name(answers, f.function)));
    for (const CoveredFunction& f : file.functions) {
        out.print("FNDA:{},{}\n", f.entries, one_line(linkage_name(answers, f.function)));
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

Result<ExportReport> write_lcov(const Answers& answers, ByteSink& sink) {
    WM_ASSIGN_OR_RETURN(const std::vector<CoveredFile> files, covered_files(answers));
    Writer out(sink);
    if (const std::string run = answers::account_sentence(answers.account); !run.empty())
        out.print("# run: {}\n", one_line(run));
    for (const CoveredFile& file : files) {
        out.print("TN:\nSF:{}\n", one_line(path_text(answers, file.source)));
        if (!file.not_observed.empty()) out.print("# not observed: {}\n", line_list(file.not_observed));
        write_functions(out, answers, file);
        write_branches(out, file);
        for (const answers::Line& line : file.lines) out.print("DA:{},{}\n", line.line, hits(line));
        out.print("LF:{}\nLH:{}\nend_of_record\n", file.lines.size(), file.lines_hit());
    }
    ExportReport report;
    report.bytes = out.finish();
    note_coverage(files, report);
    return report;
}

}  // namespace waymark::exports
