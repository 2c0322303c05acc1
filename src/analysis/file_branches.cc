#include "waymark/analysis/file_branches.h"

#include <fmt/format.h>

#include <cstdint>
#include <map>

namespace waymark::analysis {

Result<std::string> file_of_branches(const Branches& branches, Program& program, const std::string& asked) {
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
    return Error{
        Errc::usage,
        asked.empty()
            ? fmt::format(
                  "this format contains branches of one file: name the file with --file; there are branches in {}",
                  names.empty() ? "none that is known" : names)
            : fmt::format("no sampled branch is in {}; there are some in {}", asked,
                          names.empty() ? "no file that is known" : names)};
}

}  // namespace waymark::analysis
