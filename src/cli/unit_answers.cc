#include "unit_answers.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "disassembly.h"
#include "dpu_answers.h"
#include "spe_answers.h"
#include "trouble.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/spe_answers.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/doctor/dpu.h"
#include "waymark/dpu/format.h"
#include "waymark/image/memory_map.h"
#include "waymark/record_dpu/dpu.h"

namespace waymark::cli {

namespace perf = capture::perf;

namespace {

/// What only captures of trace macrocells need.
waymark::Status refuse_flow_options(const AnswersOptions& options, const char* what) {
    const InputOptions& input = options.input;
    const std::string register_option = input.register_option();
    const char* given = !input.sources.empty()         ? "--source"
                        : !input.symbols.empty()       ? "--symbols"
                        : !input.perf_maps.empty()     ? "--perf-map"
                        : !input.jitdumps.empty()      ? "--jitdump"
                        : !input.protocol.empty()      ? "--protocol"
                        : !input.buffer_format.empty() ? "--buffer-format"
                        : options.timestamp_hz != 0    ? "--timestamp-hz"
                        : !input.trace_ids.empty()     ? "--trace-id"
                        : !register_option.empty()     ? register_option.c_str()
                                                       : nullptr;
    if (given == nullptr) return Nothing{};
    return Error{Errc::usage, fmt::format("{} is {}: leave out {}", input.capture, what, given)};
}

/// What kept a capture from being read to its end is said at once, as of every other.
answers::Answers finished(answers::Answers answers, const AnswersOptions& options) {
    answers.capture = options.input.capture;
    answers.version = WAYMARK_VERSION;
    for (const answers::Finding& f : answers.health)
        if (answers.cut && f.severity == answers::Finding::Severity::bad)
            say("error", fmt::format("{}: {}", answers.capture, f.what));
    return answers;
}

/// Instructions of a profile as text, from the files they were sampled in: addresses are those in the files. Where
/// there are no such files is said in one finding.
void disassemble(answers::Answers& answers) {
    enum class Code : std::uint8_t { not_tried, known, unknown };
    struct File {
        Code code{};
        image::MemoryMap map;
    };
    std::vector<File> files(answers.images.size());
    Disassembler disassembler;
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

bool is_profile(const std::string& path) {
    std::error_code none;
    if (path == "-" || !std::filesystem::is_regular_file(path, none)) return false;
    const auto stream = capture::open_bytes(path);
    if (!stream) return false;
    std::array<std::uint8_t, 8> head{};
    std::size_t have = 0;
    while (have < head.size()) {
        const auto count = (*stream)->read(std::span(head).subspan(have));
        if (!count || *count == 0) break;
        have += *count;
    }
    return perf::is_perf_data(Bytes(head).first(have));
}

Error not_opened(Error error) {
    if (error.code == Errc::not_found) error.code = Errc::unreadable;
    return error;
}

Result<answers::Answers> answers_of_profile(const AnswersOptions& options) {
    WM_RETURN_IF_ERROR(refuse_flow_options(options, "a profile, which says itself how it was recorded"));
    if (!options.input.images.empty())
        return Error{Errc::usage,
                     "--image: files of a profile are found by their recorded names; --symfs DIR says where "
                     "copies of them are"};
    AnswerOptions input;
    input.capture = options.input.capture;
    input.symfs = options.input.symfs;
    input.kallsyms = options.kallsyms;
    input.debug_folders = options.input.debug_folders;
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

Result<answers::Answers> answers_of_dpu_folder(const AnswersOptions& options) {
    WM_RETURN_IF_ERROR(refuse_flow_options(options, "a capture of a DPU, which says itself how it was recorded"));
    const auto opened = DpuInput::open(options.input.capture);
    if (!opened) return not_opened(opened.error());
    const DpuInput& input = *opened;
    analysis::DpuCode code;
    WM_ASSIGN_OR_RETURN(image::FileSearch files, options.input.file_search());
    code.look_in(std::move(files));
    analysis::DpuSaid said;
    said.problems = input.name_code(code);
    for (const std::string& image : options.input.images) WM_RETURN_IF_ERROR(add_image(code, image));
    for (std::string& sentence : gathered(input.capture().problems)) said.problems.push_back(std::move(sentence));
    analysis::DpuSetup setup = input.setup();
    std::optional<analysis::DpuTimes> times;
    const auto beside = [&](const analysis::DpuSetup& with) {
        return options.timeline ? &times.emplace(with) : nullptr;
    };
    WM_ASSIGN_OR_RETURN(const doctor::DpuSums sums,
                        doctor::add_up(input.trace(), input.trace_bytes(), setup, code, beside));
    if (times) times->finish();
    const pipeline::DpuDecoded& decoded = sums.decoded;
    const analysis::DpuCosts& costs = *sums.costs;
    if (!DpuInput::tells(decoded.totals))
        return Error{input.is_cut(decoded) ? Errc::unreadable : Errc::not_found,
                     fmt::format("{}: nothing was decoded: {}", options.input.capture, input.why_nothing())};
    for (unsigned c = 0; c < dpu::counter_count; ++c) {
        const auto event = input.event(c);
        if (event != dpu::EventWire::none && input.is_driven(c)) said.events[c] = input.event_name(c);
    }
    said.mode = input.mode();
    said.mode_text = input.mode_text();
    said.cycles = setup.cycles;
    for (unsigned id = 0; id < 256; ++id)
        if (const std::string task = input.parameter(fmt::format("task{}", id)); !task.empty())
            said.tasks[static_cast<std::uint8_t>(id)] = task;
    said.program = input.parameter("program");
    if (input.parameter("ended") == record::limited_run)
        said.problems.push_back(
            fmt::format("The recording ended {}: what ran afterwards is not in it", record::limited_run));
    said.cycles_note = input.parameter("cycles");
    said.layout = dpu::layout_note;
    analysis::DpuCounts rows{};
    for (const auto& [owner, task] : costs.tasks()) analysis::add(rows, task.sum);
    said.reconciled = costs.reconciled(rows);
    said.totals = decoded.totals;
    said.overwritten = decoded.overwritten;
    said.cut = decoded.cut;
    said.complete = setup.complete;
    said.missing_bytes = input.missing_bytes();
    said.rules = input.counter_rules();
    analysis::DpuAnswersOptions wanted;
    wanted.sources = options.sources;
    wanted.most_slices = options.most_slices;
    return finished(analysis::answers_of_dpu(costs, times ? &*times : nullptr, code, said, wanted), options);
}

}  // namespace waymark::cli
