#include "waymark/exports/cobertura.h"

#include <algorithm>
#include <map>
#include <set>

#include "coverage.h"
#include "look_up.h"
#include "waymark/core/quote.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::Branch;
using answers::Line;

struct Sums {
    std::uint64_t lines{}, lines_hit{}, branches{}, branches_hit{};
    void add(const CoveredFile& file) {
        lines += file.lines.size();
        lines_hit += file.lines_hit();
        branches += 2 * file.branches.size();
        branches_hit += file.branches_hit();
    }
};

/// The rate of an empty set is 1.
double rate(std::uint64_t hit, std::uint64_t all) {
    return all == 0 ? 1 : static_cast<double>(hit) / static_cast<double>(all);
}

/// Splits a path into its folder and the rest.
std::pair<std::string, std::string> split(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    if (slash == path.npos) return {".", std::string(path)};
    return {std::string(slash == 0 ? path.substr(0, 1) : path.substr(0, slash)), std::string(path.substr(slash + 1))};
}

/// The folder to which the name of a file is relative: readers join the two, and an absolute name after another folder
/// would not be a file.
std::string root_of(const CoveredFile& file) {
    if (!file.root.empty()) return file.root;
    return file.name.starts_with('/') ? "/" : ".";
}
std::string_view below_root(const CoveredFile& file) {
    const std::string_view name = file.name;
    return file.root.empty() ? name.substr(std::min(name.find_first_not_of('/'), name.size())) : name;
}

class CoberturaWriter {
public:
    CoberturaWriter(const Answers& answers, const std::vector<CoveredFile>& files, ByteSink& sink)
        : answers_(answers), files_(files), out_(sink) {}

    std::uint64_t write(std::uint64_t time) {
        Sums all;
        std::map<std::string, std::vector<const CoveredFile*>> packages;
        for (const CoveredFile& file : files_) {
            all.add(file);
            packages[split(file.name).first].push_back(&file);
        }
        out_.write(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<!DOCTYPE coverage SYSTEM \"http://cobertura.sourceforge.net/xml/coverage-04.dtd\">\n<coverage");
        rates(all);
        out_.print(
            " lines-covered=\"{}\" lines-valid=\"{}\" branches-covered=\"{}\" branches-valid=\"{}\" "
            "complexity=\"0\" version=\"waymark ",
            all.lines_hit, all.lines, all.branches_hit, all.branches);
        out_.xml(answers_.version);
        // Readers expect milliseconds.
        out_.print("\" timestamp=\"{}\">\n", time * 1000);
        if (const std::string run = answers::account_sentence(answers_.account); !run.empty())
            out_.print("  <!-- run: {} -->\n", xml_comment(run));
        out_.write("  <sources>\n");
        std::set<std::string> roots;
        for (const CoveredFile& file : files_) roots.insert(root_of(file));
        for (const std::string& root : roots) {
            out_.write("    <source>");
            out_.xml(root);
            out_.write("</source>\n");
        }
        out_.write("  </sources>\n  <packages>\n");
        for (const auto& [folder, files] : packages) package(folder, files);
        out_.write("  </packages>\n</coverage>\n");
        return out_.finish();
    }

private:
    void rates(const Sums& sums) {
        out_.print(" line-rate=\"{:.6f}\" branch-rate=\"{:.6f}\"", rate(sums.lines_hit, sums.lines),
                   rate(sums.branches_hit, sums.branches));
    }
    void name(std::string_view attribute, std::string_view value) {
        out_.print(" {}=\"", attribute);
        out_.xml(value);
        out_.write("\"");
    }

    void package(const std::string& folder, const std::vector<const CoveredFile*>& files) {
        Sums sums;
        for (const CoveredFile* file : files) sums.add(*file);
        out_.write("    <package");
        name("name", folder);
        rates(sums);
        out_.write(" complexity=\"0\">\n      <classes>\n");
        for (const CoveredFile* file : files) one_class(*file);
        out_.write("      </classes>\n    </package>\n");
    }
    void one_class(const CoveredFile& file) {
        Sums sums;
        sums.add(file);
        out_.write("        <class");
        name("name", split(file.name).second);
        name("filename", below_root(file));
        rates(sums);
        out_.write(" complexity=\"0\">\n");
        if (!file.not_observed.empty())
            out_.print("          <!-- not observed: {} -->\n", line_list(file.not_observed));
        if (!file.directions_not_observed.empty()) {
            std::vector<std::uint32_t> lines;
            for (const CoveredDirection& d : file.directions_not_observed)
                if (lines.empty() || lines.back() != d.line) lines.push_back(d.line);
            out_.print("          <!-- conditions not observed: {} -->\n", line_list(lines));
        }
        out_.write("          <methods>\n");
        for (std::size_t i = 0; i < file.functions.size(); ++i) method(file, i);
        out_.write("          </methods>\n          <lines>\n");
        auto branch = file.branches.begin();
        for (const Line& l : file.lines) {
            while (branch != file.branches.end() && (*branch)->line < l.line) ++branch;
            line(file, l, branch, 12);
        }
        out_.write("          </lines>\n        </class>\n");
    }
    void method(const CoveredFile& file, std::size_t at) {
        const CoveredFunction& f = file.functions[at];
        Sums sums;
        sums.lines = f.lines;
        sums.lines_hit = f.lines_hit;
        for (const Branch* b : file.branches) {
            if (f.function == answers::none || b->function != f.function) continue;
            sums.branches += 2;
            sums.branches_hit += outcomes(*b);
        }
        out_.write("            <method");
        name("name", f.function == answers::none ? f.name : function_name(answers_, f.function));
        out_.write(" signature=\"()\"");
        rates(sums);
        out_.print(
            " complexity=\"0\">\n"
            "              <lines>\n                <line number=\"{}\" hits=\"{}\"/>\n              </lines>\n"
            "            </method>\n",
            f.line, f.entries);
    }
    void line(const CoveredFile& file, const Line& l, std::vector<const Branch*>::const_iterator first,
              std::size_t indent) {
        out_.print("{:{}}<line number=\"{}\" hits=\"{}\"", "", indent, l.line, hits(l));
        auto end = first;
        std::uint64_t taken = 0;
        for (; end != file.branches.end() && (*end)->line == l.line; ++end) taken += outcomes(**end);
        if (first == end) {
            out_.write(" branch=\"false\"/>\n");
            return;
        }
        const auto all = static_cast<std::uint64_t>(2 * (end - first));
        out_.print(" branch=\"true\" condition-coverage=\"{}% ({}/{})\">\n{:{}}<conditions>\n", taken * 100 / all,
                   taken, all, "", indent + 2);
        for (auto b = first; b != end; ++b)
            out_.print("{:{}}<condition number=\"{}\" type=\"jump\" coverage=\"{}%\"/>\n", "", indent + 4, b - first,
                       50 * outcomes(**b));
        out_.print("{:{}}</conditions>\n{:{}}</line>\n", "", indent + 2, "", indent);
    }

    const Answers& answers_;
    const std::vector<CoveredFile>& files_;
    Writer out_;
};

}  // namespace

Result<ExportReport> write_cobertura(const Answers& answers, const CoberturaOptions& options, ByteSink& sink) {
    WM_ASSIGN_OR_RETURN(const Coverage coverage, coverage_of(answers, options.coverage));
    ExportReport report;
    report.bytes = CoberturaWriter(answers, coverage.files, sink).write(options.time);
    report.notes = coverage.notes();
    return report;
}

}  // namespace waymark::exports
