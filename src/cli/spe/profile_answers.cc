#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "../unit_answers.h"
#include "answers.h"
#include "waymark/analysis/spe_answers.h"
#include "waymark/image/disassembly.h"
#include "waymark/image/memory_map.h"

namespace waymark::cli {

namespace {

/// Instructions of a profile as text, from the files they were sampled in: addresses are those in the files. Where
/// there are no such files is said in one finding.
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

}  // namespace

Result<answers::Answers> answers_of_profile(const AnswersOptions& options) {
    WM_RETURN_IF_ERROR(refuse_flow_options(options, "a profile, which says itself how it was recorded"));
    if (!options.input.images.empty())
        return Error{Errc::usage,
                     "--image: files of a profile are found by their recorded names; --symfs DIR says where "
                     "copies of them are"};
    AnswerOptions input;
    input.capture = options.input.capture;
    input.names = options.input;
    input.kallsyms = options.kallsyms;
    input.jobs = options.jobs;
    auto opened = Answer::open(input);
    if (!opened) return not_opened(opened.error());
    Answer answer = std::move(*opened);
    analysis::SampleAnswersOptions wanted;
    wanted.sources = options.sources;
    wanted.inlined = options.inlined;
    wanted.symfs = options.input.symfs;
    wanted.most_slices = options.most_slices;
    analysis::GatheredSamples gathered({options.timeline, options.timeline ? wanted.line_bytes : 0});
    answer.run(gathered);
    const analysis::SampleTotals totals = answer.totals();
    if (answer.quality().selected == 0)
        return Error{answer.say_damage() ? Errc::unreadable : Errc::not_found,
                     fmt::format("{}: no SPE samples: {}", options.input.capture, answer.why_nothing())};
    std::optional<analysis::Sharing> sharing;
    if (gathered.candidates) {
        sharing.emplace(*gathered.candidates);
        answer.run(*sharing);
    }
    answers::Answers answers = analysis::answers_of_samples(answer.capture(), totals, gathered,
                                                            sharing ? &*sharing : nullptr, answer.program(), wanted);
    if (options.disassembly) disassemble(answers);
    return finished(std::move(answers), options);
}

}  // namespace waymark::cli
