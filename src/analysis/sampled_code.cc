#include "waymark/analysis/sampled_code.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "waymark/image/disassembly.h"
#include "waymark/image/memory_map.h"

namespace waymark::analysis {

void disassemble(answers::Answers& answers) {
    enum class Code : std::uint8_t { not_tried, known, unknown };
    struct File {
        Code code{};
        image::MemoryMap map;
    };
    std::vector<File> files(answers.images.size());
    image::Disassembler disassembler;
    for (answers::Instruction& i : answers.instructions) {
        const answers::Index image =
            i.function < answers.functions.size() ? answers.functions[i.function].image : answers::none;
        if (image >= files.size()) continue;
        File& file = files[image];
        const std::string& path = answers.images[image].path;
        if (file.code == Code::not_tried)
            file.code = !path.empty() && file.map.add_elf(path).has_value() ? Code::known : Code::unknown;
        if (file.code == Code::known) i.text = disassembler.text(file.map, {}, i.address, i.isa);
    }
    std::string names;
    std::size_t unknown = 0;
    constexpr std::size_t most_names = 5;
    for (std::size_t i = 0; i < files.size(); ++i)
        if (files[i].code == Code::unknown && unknown++ < most_names)
            names += (names.empty() ? "" : ", ") + answers.images[i].name;
    if (unknown == 0) return;
    if (unknown > most_names) names += fmt::format(" and {} more", unknown - most_names);
    using answers::Finding;
    answers.health.insert(std::find_if(answers.health.begin(), answers.health.end(),
                                       [](const Finding& f) { return f.severity < Finding::Severity::note; }),
                          {Finding::Severity::note,
                           fmt::format("Instructions have no text where no file with their code was found: {}", names),
                           "Give a copy of the recorded machine's files with --symfs DIR",
                           {}});
}

}  // namespace waymark::analysis
