/// How captures of a job are decoded.
#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "../unit_answers.h"
#include "commands.h"
#include "waymark/answers/parts.h"
#include "waymark/capture/module_map.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/memory_map.h"

namespace waymark::cli {

namespace {

/// Those of the files that were given which concern a capture: a build that others ran, and not this one, does not. It
/// depends on nothing but the capture, so that all divisions into shards give the same.
std::vector<std::string> files_for(const fleet::PlannedCapture& capture, const std::vector<std::string>& given) {
    std::set<std::string> builds;
    for (const fleet::RanFile& f : capture.ran)
        if (!f.build_id.empty()) builds.insert(f.build_id);
    if (builds.empty()) return given;
    std::vector<std::string> out;
    for (const std::string& file : given) {
        const auto argument = image::parse_image_argument(file);
        if (argument && !argument->address) {
            const auto info = image::DebugInfo::open(argument->path);
            if (info && !info->build_id().empty() && !builds.contains(capture::hex_text(info->build_id()))) continue;
        }
        out.push_back(file);
    }
    return out;
}

}  // namespace

void FleetDecoding::add_to(CLI::App& command) {
    const std::vector<CLI::Option*> before = command.get_options();
    answers_.input.add_to(command);
    command.remove_option(command.get_option("CAPTURE"));
    command.remove_option(command.get_option("--output"));
    answers_.input.selection.add_to(command);
    add_timestamp_hz(command, answers_);
    add_kallsyms(command, answers_);
    add_choice(command, "--contents", contents_, {"ranges", "code", "all"},
               "What answers files contain. ranges: only exact ranges and branches by build ID; code: also functions, "
               "calls, and all code of functions that ran; all: also functions that never ran, and disassembly");
    for (const CLI::Option* option : command.get_options())
        if (std::find(before.begin(), before.end(), option) == before.end()) options_.push_back(option);
}

std::vector<std::string> FleetDecoding::arguments() const {
    std::vector<std::string> out;
    for (const CLI::Option* option : options_) {
        const std::string name = option->get_name();
        if (option->count() == 0) continue;
        if (option->get_type_size() == 0) {
            out.push_back(name);
            continue;
        }
        const std::string type = option->get_type_name();
        for (const std::string& value : option->results()) {
            const bool is_place = type.starts_with("FILE") || type == "DIR";
            out.push_back(name + "=" +
                          (is_place ? std::filesystem::absolute(value).lexically_normal().string() : value));
        }
    }
    return out;
}

Result<std::unique_ptr<FleetDecoding>> FleetDecoding::read(const std::vector<std::string>& arguments) {
    auto out = std::make_unique<FleetDecoding>();
    CLI::App command;
    out->add_to(command);
    try {
        std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
        command.parse(reversed);
    } catch (const CLI::ParseError& error) {
        return Error{Errc::usage,
                     fmt::format("the options of the plan are not those of this version: {}", error.what())};
    }
    out->options_.clear();  // they end with `command`
    AnswersOptions& a = out->answers_;
    a.ranges = true;
    if (out->contents_ != "ranges") a.calls = a.instructions = a.inlined = a.input.code_of_files = true;
    if (out->contents_ == "all") a.disassembly = a.all_functions = true;
    return out;
}

fleet::DecodeCapture FleetDecoding::decoder(unsigned jobs) const {
    return [this, jobs](const fleet::PlannedCapture& capture) -> Result<answers::Answers> {
        AnswersOptions one = answers_;
        one.jobs = jobs;
        one.input.capture = capture.path;
        one.input.images = files_for(capture, answers_.input.images);
        one.input.symbols = files_for(capture, answers_.input.symbols);
        WM_ASSIGN_OR_RETURN(answers::Answers answers, answers_of(one));
        if (contents_ == "ranges") answers.edges.clear();
        // Else a reader of coverage would take what ran for all there is.
        if (contents_ != "all")
            answers.health.push_back({answers::Finding::Severity::note,
                                      "Functions that never ran are not in these answers.",
                                      "plan with --contents all if coverage has to count them"});
        answers::sort_findings(answers);
        return answers;
    };
}

}  // namespace waymark::cli
