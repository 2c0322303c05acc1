#include "maps.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "print.h"
#include "waymark/core/numbers.h"

namespace waymark::listing {

using nlohmann::ordered_json;

ordered_json maps_json(const capture::ModuleMap& map) {
    if (map.empty()) return {};
    ordered_json files = ordered_json::array();
    std::map<std::pair<std::string, std::string>, std::size_t> known;
    for (const capture::Module& m : map.modules) {
        const std::string build_id = capture::hex_text(m.build_id);
        const auto [at, fresh] = known.try_emplace({m.file, build_id}, files.size());
        if (fresh)
            files.push_back({{"file", m.file.empty() ? ordered_json() : ordered_json(m.file)},
                             {"build_id", build_id.empty() ? ordered_json() : ordered_json(build_id)},
                             {"mapped", ordered_json::array()}});
        files[at->second]["mapped"].push_back({{"process", m.process},
                                               {"from", m.from},
                                               {"to", m.to ? ordered_json(*m.to) : ordered_json()},
                                               {"address", fmt::format("{:#010x}", m.address.value)},
                                               {"bytes", m.bytes},
                                               {"offset", m.offset}});
    }
    ordered_json out{{"clock", map.clock}, {"files", std::move(files)}};
    ordered_json names = ordered_json::array();
    for (const capture::GeneratedNames& n : map.names)
        names.push_back({{"format", n.format == capture::GeneratedNames::Format::perf_map ? "perf-map" : "jitdump"},
                         {"file", n.file}});
    out["names_of_generated_code"] = std::move(names);
    return out;
}

void print_maps(TextSink& out, const ordered_json& maps) {
    if (maps.is_null()) return;
    constexpr std::size_t most_files = 12;
    const ordered_json& files = maps["files"];
    print(out, "\nmapped  {}\n", counted(files.size(), "file"));
    for (std::size_t i = 0; i < files.size(); ++i) {
        if (i == most_files && files.size() > most_files + 1) {
            print(out, "  … and {} more; --format json lists each\n", files.size() - i);
            break;
        }
        const ordered_json& file = files[i];
        const ordered_json& first = file["mapped"].front();
        const std::uint64_t address = std::stoull(first["address"].get<std::string>(), nullptr, 16);
        const std::size_t more = file["mapped"].size() - 1;
        print(out, "  {:#010x}-{:#010x}  {}{}{}\n", address, address + first["bytes"].get<std::uint64_t>(),
              file["file"].is_null() ? "(generated code: no file)" : file["file"].get<std::string>(),
              file["build_id"].is_null() ? "" : ", build ID " + file["build_id"].get<std::string>().substr(0, 16),
              more == 0 ? "" : fmt::format(", and {}", counted(more, "more time or place", "more times or places")));
    }
    for (const ordered_json& names : maps["names_of_generated_code"])
        print(out, "  names of generated code: {} ({})\n", names["file"].get<std::string>(),
              names["format"].get<std::string>());
}

}  // namespace waymark::listing
