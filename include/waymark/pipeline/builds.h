/// Copies of programs in several captures: names that one capture lacks may be in another.
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
    /// Files of other captures that contain more names for the code of this capture than its own files.
    [[nodiscard]] std::vector<std::string> names_for(const std::string& capture) const;

    /// The given files (`FILE` or `FILE@ADDRESS`) that concern this capture. A build that only another capture ran does
    /// not concern it.
    [[nodiscard]] std::vector<std::string> given_for(const std::string& capture,
                                                     const std::vector<std::string>& files) const;

private:
    using Id = std::vector<std::uint8_t>;
    /// The path of a file of exactly this build, and its number of symbols.
    [[nodiscard]] std::pair<std::string, std::size_t> symbols(const std::string& file, const Id& id) const;
    const image::FileSearch& files_;
    std::map<std::string, std::set<std::pair<Id, std::string>>> of_capture_;
    std::map<Id, std::set<std::string>> of_build_;
};

}  // namespace waymark::pipeline
