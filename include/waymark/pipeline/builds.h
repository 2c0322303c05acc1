/// Copies of programs in several captures: the names that one capture lacks, another may have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "waymark/image/program_file.h"

namespace waymark::pipeline {

/// Copies of the programs that were recorded, by build ID.
class Builds {
public:
    /// Reads the builds of the captures that have a map of modules.
    Builds(const std::vector<std::string>& captures, const image::FileSearch& files);
    /// Files of other captures that name code of this one better than its own files do.
    [[nodiscard]] std::vector<std::string> names_for(const std::string& capture) const;

    /// The given files (`FILE` or `FILE@ADDRESS`) that concern this capture. A build that only another capture ran does
    /// not.
    [[nodiscard]] std::vector<std::string> given_for(const std::string& capture,
                                                     const std::vector<std::string>& files) const;

private:
    using Id = std::vector<std::uint8_t>;
    /// The path of a file of this very build, and how many symbols it has.
    [[nodiscard]] std::pair<std::string, std::size_t> symbols(const std::string& file, const Id& id) const;
    const image::FileSearch& files_;
    std::map<std::string, std::set<std::pair<Id, std::string>>> of_capture_;
    std::map<Id, std::set<std::string>> of_build_;
};

}  // namespace waymark::pipeline
