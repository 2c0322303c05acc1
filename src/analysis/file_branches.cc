#include "waymark/analysis/file_branches.h"

#include <fmt/format.h>

#include <algorithm>

namespace waymark::analysis {

namespace {

/// The file that is meant. Errors: `usage`.
Result<std::string> chosen_file(const Branches& branches, Program& program, const std::string& asked) {
    std::map<std::string, std::uint64_t> in_file;
    for (std::size_t i = 0; i < branches.pairs().size(); ++i)
        in_file[program.file(program.find(branches.pairs()[i].mapping, branches.pairs()[i].from).file).name] +=
            branches.sums()[i].samples;
    in_file.erase("[not mapped]");
    std::string names, wanted;
    for (const auto& [name, samples] : in_file) {
        names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
        if (asked.empty() ? in_file.size() == 1 : name == asked || Program::short_name(name) == asked) wanted = name;
    }
    if (!wanted.empty()) return wanted;
    return Error{Errc::usage,
                 asked.empty() ? fmt::format("this form is of one file: name it with --file; there are branches in {}",
                                             names.empty() ? "none that is known" : names)
                               : fmt::format("no sampled branch is in {}; there are some in {}", asked,
                                             names.empty() ? "no file that is known" : names)};
}

}  // namespace

Result<FileBranches> branches_of_file(const Branches& branches, Program& program, const std::string& name) {
    FileBranches out;
    WM_ASSIGN_OR_RETURN(out.file, chosen_file(branches, program, name));
    for (std::size_t i = 0; i < branches.pairs().size(); ++i) {
        const BranchPair& p = branches.pairs()[i];
        const BranchSum& s = branches.sums()[i];
        const auto from = program.find(p.mapping, p.from);
        if (program.file(from.file).name != out.file || !from.address) continue;
        out.samples[from.address->value] += s.samples;
        out.not_retired += s.not_retired;
        // Not taken ones go to the next instruction, which those tools work out themselves.
        if (s.taken() == 0) continue;
        const auto to = p.has_target ? program.find(program.mapping_beside(p.mapping, p.to), p.to) : Program::Code{};
        if (to.file != from.file || !to.address) {
            out.elsewhere += s.taken();
            continue;
        }
        FileBranches::Sum& sum = out.pairs[{from.address->value, to.address->value}];
        sum.taken += s.taken();
        sum.mispredicts += std::min(s.mispredicts, s.taken());
    }
    if (out.samples.empty())
        return Error{Errc::unreadable,
                     fmt::format("{}: the file is needed for its addresses, and it was not found; --symfs says where "
                                 "it is",
                                 out.file)};
    return out;
}

}  // namespace waymark::analysis
