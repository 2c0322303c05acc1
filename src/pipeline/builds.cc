#include "waymark/pipeline/builds.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <tuple>

#include "waymark/capture/snapshot.h"
#include "waymark/core/result.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/symbols.h"

namespace waymark::pipeline {

Builds::Builds(const std::vector<std::string>& captures, const image::FileSearch& files) : files_(files) {
    if (captures.size() < 2) return;
    for (const std::string& capture : captures) {
        if (capture::snapshot_file(capture).empty()) continue;
        const auto read = capture::read_snapshot(capture);
        if (!read) continue;  // reported when the capture's answers are needed
        for (const capture::Module& m : read->modules.modules)
            if (!m.file.empty() && !m.build_id.empty()) {
                of_capture_[capture].insert({m.build_id, m.file});
                of_build_[m.build_id].insert(m.file);
            }
    }
}

std::vector<std::string> Builds::names_for(const std::string& capture) const {
    std::vector<std::string> out;
    const auto found = of_capture_.find(capture);
    if (found == of_capture_.end()) return out;
    for (const auto& [id, file] : found->second) {
        const std::set<std::string>& copies = of_build_.at(id);
        if (copies.size() < 2) continue;
        auto [best, most] = symbols(file, id);
        const std::string own = best;
        for (const std::string& copy : copies)
            if (auto [path, count] = symbols(copy, id); count > most) std::tie(best, most) = {path, count};
        if (best != own) out.push_back(best);
    }
    return out;
}

std::vector<std::string> Builds::given_for(const std::string& capture, const std::vector<std::string>& files) const {
    const auto found = of_capture_.find(capture);
    if (found == of_capture_.end()) return files;
    std::vector<std::string> out;
    for (const std::string& file : files) {
        const auto argument = image::parse_image_argument(file);
        const auto info =
            argument && !argument->address ? image::DebugInfo::open(argument->path) : Error{Errc::not_found, {}};
        const bool is_of_another = info && of_build_.contains(info->build_id()) &&
                                   std::none_of(found->second.begin(), found->second.end(),
                                                [&](const auto& mapped) { return mapped.first == info->build_id(); });
        if (!is_of_another) out.push_back(file);
    }
    return out;
}

std::pair<std::string, std::size_t> Builds::symbols(const std::string& file, const Id& id) const {
    auto found = image::find_file(file, id, files_);
    if (!found || found->info.build_id() != id) return {};
    image::Symbols names;
    const Result<std::size_t> count = image::add_all_symbols(names, found->path, found->info, 0);
    return {found->path.string(), count ? *count : 0};
}

}  // namespace waymark::pipeline
