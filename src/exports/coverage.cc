#include "coverage.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "look_up.h"
#include "waymark/answers/only.h"
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

namespace {

/// Directions that may have been taken unobserved. For branches that did not run, the line is named.
std::vector<CoveredDirection> directions_not_observed(const std::vector<const Branch*>& branches) {
    std::vector<CoveredDirection> out;
    std::uint32_t line = 0, block = 0;
    for (const Branch* b : branches) {
        block = b->line == line ? block + 1 : 0;
        line = b->line;
        if (outcomes(*b) != 1) continue;
        if ((b->taken == 0 ? b->seen_taken : b->seen_not_taken) == Seen::not_observed)
            out.push_back({line, block, b->taken != 0});
    }
    return out;
}

}  // namespace

bool CoveredFile::needs_end_lines() const {
    std::map<std::uint32_t, bool> entered;  // by first line
    for (const CoveredFunction& f : functions)
        if (f.name.find("{lambda(") == f.name.npos) entered[f.line] |= f.entries != 0;
    return std::any_of(lines.begin(), lines.end(), [&](const Line& line) {
        const auto next = entered.upper_bound(line.line);
        return hits(line) != 0 && next != entered.begin() && !std::prev(next)->second;
    });
}

namespace {

/// A header of an installed library, which does not belong to the program under test.
bool is_library_header(std::string_view path) {
    constexpr std::string_view cxx = "/include/c++/", include = "/include/", clang = "/lib/clang/", gcc = "/lib/gcc";
    if (path.find(cxx) != path.npos) return true;
    const bool installed =
        path.starts_with("/usr/") && !path.starts_with("/usr/src/") && !path.starts_with("/usr/local/src/");
    return installed &&
           (path.find(include) != path.npos || path.find(clang) != path.npos || path.find(gcc) != path.npos);
}

/// The path relative to a folder; empty if it is not below the folder.
std::string_view below(std::string_view path, std::string_view folder) {
    while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
    if (!path.starts_with(folder)) return {};
    path.remove_prefix(folder.size());
    if (folder == "/") return path;
    return path.starts_with('/') ? path.substr(1) : std::string_view();
}

/// Names a file as the options say; returns false if it lies below none of the source roots.
bool name_file(CoveredFile& file, std::string_view path, const CoveredSources& options) {
    file.path = std::string(path);
    const std::string normal = std::filesystem::path(file.path).lexically_normal().string();
    for (const auto& [from, to] : options.prefixes)
        if (const std::string_view rest = below(normal, from); !rest.empty()) {
            file.path = (std::filesystem::path(to) / rest).lexically_normal().string();
            break;
        }
    file.name = file.path;
    if (options.source_roots.empty()) return true;
    const std::string at = std::filesystem::path(file.path).lexically_normal().string();
    for (const std::string& root : options.source_roots)
        if (const std::string_view rest = below(at, root); !rest.empty()) {
            file.root = root;
            file.name = std::string(rest);
            return true;
        }
    return false;
}

/// Execution count of a line; nullopt if the line has no code.
std::optional<std::uint64_t> hits_of(const CoveredFile& file, std::uint32_t line) {
    const auto at = std::lower_bound(file.lines.begin(), file.lines.end(), line,
                                     [](const Line& row, std::uint32_t sought) { return row.line < sought; });
    return at != file.lines.end() && at->line == line ? std::optional(hits(*at)) : std::nullopt;
}

/// Newer versions of lcov recognise lambdas by their names; the oldest version ends names at a comma.
std::string covered_name(std::string_view linkage, std::string_view name) {
    if (name.find("{lambda(") == name.npos) return std::string(linkage);
    std::string out(name);
    std::replace(out.begin(), out.end(), ',', ';');
    return out;
}

/// Readers of lcov expect a count for the line of each function. They consider a function executed exactly if one of
/// its lines was.
void place_function(CoveredFile& file, CoveredFunction& f, const std::set<std::uint32_t>& own, Line declaration) {
    const bool has_line = hits_of(file, declaration.line).has_value();
    bool ran = false;
    for (const std::uint32_t line : own) ran |= hits_of(file, line).value_or(0) != 0;
    if (!has_line && !own.empty() && (ran || f.entries == 0)) f.line = *own.begin();
    f.last = own.empty() ? f.line : std::max(f.line, *own.rbegin());
    if (f.entries == 0)
        for (const std::uint32_t line : own)
            if (const auto times = hits_of(file, line); times.value_or(0) != 0) {
                f.entries = *times;  // counted with the function that it was inlined into
                break;
            }
    if (hits_of(file, f.line)) return;
    if (f.entries != 0) declaration.seen = Seen::executed;
    declaration.times = f.entries;
    file.lines.insert(std::upper_bound(file.lines.begin(), file.lines.end(), declaration.line,
                                       [](std::uint32_t sought, const Line& row) { return sought < row.line; }),
                      std::move(declaration));
}

/// Functions that exist only inlined also count as functions of their file.
struct InlinedFunctions {
    struct Found {
        std::uint32_t declared{};
        std::set<std::uint32_t> own{};
    };
    std::map<std::pair<Index, std::string>, Found> all{};  // by source and name

    InlinedFunctions(const Answers& answers, const answers::Chosen& chosen) {
        std::set<std::string_view> outlined;
        for (Index i = 0; i < answers.functions.size(); ++i)
            outlined.insert(answers::without_suffix(linkage_name(answers, i)));
        for (const answers::Instruction& i : answers.instructions) {
            if (i.inlined >= answers.inlined.size()) continue;
            const answers::InlinedCall& call = answers.inlined[i.inlined];
            const std::string_view linkage = call.linkage_name.empty() ? call.name : call.linkage_name;
            if (call.declared_line == 0 || i.line < call.declared_line || outlined.contains(linkage) ||
                !chosen(i.function, i.source))
                continue;
            Found& found = all[{i.source, covered_name(linkage, call.name)}];
            found.declared = call.declared_line;
            found.own.insert(i.line);
        }
    }
};

Error no_files(const std::vector<std::string>& elsewhere, const CoveredSources& options) {
    return {Errc::not_found, fmt::format("no source file is below {}; the program's are elsewhere, such as {}: "
                                         "--path-prefix OLD=NEW replaces the beginning of paths",
                                         options.source_roots.front(), elsewhere.front())};
}

}  // namespace

Result<Coverage> coverage_of(const Answers& answers, const CoveredSources& options) {
    if (!answers.metrics.empty() && !answers.metrics.front().exact && answers.metrics.front().stretches == 0)
        return Error{Errc::not_found,
                     "samples show some of the code that ran, but not which code did not run, so they are no coverage; "
                     "csv, pprof and autofdo have their counts by line"};
    const answers::Chosen chosen(answers, options.only, options.code);
    if (const std::string unknown = chosen.unknown(); !unknown.empty()) return Error{Errc::not_found, unknown};
    Coverage out;
    std::vector<CoveredFile>& files = out.files;
    std::vector<std::string> elsewhere;
    for (std::size_t i = 0; i < answers.lines.size();) {
        const Index source = answers.lines[i].source;
        CoveredFile file;
        file.source = source;
        for (; i < answers.lines.size() && answers.lines[i].source == source; ++i)
            if (chosen(answers.lines[i].function, source)) file.lines.push_back(answers.lines[i]);
        if (source >= answers.sources.size() || file.lines.empty()) continue;
        const std::string_view path = path_text(answers, source);
        if (!name_file(file, path, options))
            elsewhere.emplace_back(path);
        else if (options.only.empty() && options.source_roots.empty() && is_library_header(file.path))
            out.headers.push_back(file.path);
        else
            files.push_back(std::move(file));
    }
    if (files.empty() && !elsewhere.empty()) return no_files(elsewhere, options);
    if (files.empty() && !out.headers.empty())
        return Error{
            Errc::not_found,
            fmt::format(
                "all source lines are of headers of libraries, such as {}; --only selects what the report contains",
                out.headers.front())};
    if (files.empty()) return Error{Errc::not_found, lacks_lines(answers)};
    const auto find = [&](Index source) -> CoveredFile* {
        const auto at = std::lower_bound(files.begin(), files.end(), source,
                                         [](const CoveredFile& f, Index sought) { return f.source < sought; });
        return at != files.end() && at->source == source ? &*at : nullptr;
    };
    std::vector<bool> ran(answers.functions.size()), may_have_run(answers.functions.size());
    for (const auto& i : answers.instructions) {
        if (i.function >= ran.size()) continue;
        if (i.seen == Seen::executed) ran[i.function] = true;
        if (i.seen == Seen::not_observed) may_have_run[i.function] = true;
    }
    for (const Line& line : answers.lines)
        if (line.seen == Seen::executed && line.function < ran.size()) ran[line.function] = true;
    std::map<std::pair<Index, Index>, std::map<std::uint32_t, bool>> lines_of_functions;  // by source, function
    std::map<Index, std::set<std::uint32_t>> own;  // by function: its lines in the file where it begins
    const auto add = [&](Index source, Index function, std::uint32_t line, bool executed, bool inlined) {
        lines_of_functions[{source, function}][line] |= executed;
        if (function >= answers.functions.size()) return;
        const answers::Function& f = answers.functions[function];
        if (!inlined && source == f.source && line >= f.line) own[function].insert(line);
    };
    for (const auto& i : answers.instructions)
        for (const auto& [source, line] : lines_of(answers, i))
            add(source, i.function, line, i.seen == Seen::executed, i.inlined < answers.inlined.size());
    if (answers.instructions.empty())
        for (const Line& line : answers.lines) add(line.source, line.function, line.line, hits(line) != 0, false);
    const auto entries = function_entries(answers);
    for (Index i = 0; i < answers.functions.size(); ++i) {
        const answers::Function& f = answers.functions[i];
        CoveredFile* file = f.synthetic || f.line == 0 || !chosen(i, f.source) ? nullptr : find(f.source);
        if (file == nullptr) continue;
        CoveredFunction covered;
        covered.name = covered_name(linkage_name(answers, i), function_name(answers, i));
        covered.line = f.line;
        covered.entries = std::max<std::uint64_t>(entries[i], ran[i] ? 1 : 0);
        covered.function = i;
        for (const auto& [line, hit] : lines_of_functions[{f.source, i}]) {
            ++covered.lines;
            covered.lines_hit += hit ? 1 : 0;
        }
        Line declaration;
        declaration.source = f.source;
        declaration.line = f.line;
        declaration.function = i;
        declaration.seen = may_have_run[i] ? Seen::not_observed : Seen::not_executed;
        place_function(*file, covered, own[i], declaration);
        file->functions.push_back(covered);
    }
    for (const auto& [key, inlined] : InlinedFunctions(answers, chosen).all) {
        CoveredFile* const file = find(key.first);
        if (file == nullptr) continue;
        CoveredFunction covered;
        covered.name = key.second;
        covered.line = inlined.declared;
        covered.lines = inlined.own.size();
        for (const std::uint32_t line : inlined.own) covered.lines_hit += hits_of(*file, line).value_or(0) != 0 ? 1 : 0;
        Line declaration;
        declaration.source = key.first;
        declaration.line = inlined.declared;
        declaration.seen = Seen::not_executed;
        place_function(*file, covered, inlined.own, declaration);
        file->functions.push_back(std::move(covered));
    }
    for (const Branch& b : answers.branches)
        if (b.kind == Branch::Kind::conditional && b.line != 0 && chosen(b.function, b.source))
            if (CoveredFile* file = find(b.source)) file->branches.push_back(&b);
    for (CoveredFile& file : files) {
        for (const Line& line : file.lines)
            if (line.seen == Seen::not_observed) file.not_observed.push_back(line.line);
        std::stable_sort(file.functions.begin(), file.functions.end(),
                         [](const auto& a, const auto& b) { return a.line < b.line; });
        std::stable_sort(file.branches.begin(), file.branches.end(), [](const Branch* a, const Branch* b) {
            return std::tie(a->line, a->address) < std::tie(b->line, b->address);
        });
        file.directions_not_observed = directions_not_observed(file.branches);
    }
    return out;
}

std::vector<std::string> Coverage::notes() const {
    std::vector<std::string> out;
    std::uint64_t lines = 0, directions = 0;
    for (const CoveredFile& file : files) {
        lines += file.not_observed.size();
        directions += file.directions_not_observed.size();
    }
    if (lines != 0)
        out.push_back(counted(lines, "line") + (lines == 1 ? " was" : " were") +
                      " not observed, and may have run. The format cannot express that: the count is 0, and comments "
                      "in the file list them");
    if (directions != 0)
        out.push_back(counted(directions, "direction of branches", "directions of branches") +
                      (directions == 1 ? " was" : " were") +
                      " not observed, and may have been taken. The count is 0, and comments in the file list them");
    if (!headers.empty())
        out.push_back(fmt::format("{} of libraries left out, such as {}; --only selects what the report contains",
                                  counted(headers.size(), "header"), headers.front()));
    return out;
}

}  // namespace waymark::exports
