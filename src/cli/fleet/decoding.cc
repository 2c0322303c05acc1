/// How captures of a job are decoded.
#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "../unit_answers.h"
#include "commands.h"
#include "waymark/answers/parts.h"
#include "waymark/capture/module_map.h"
#include "waymark/fleet/image_cache.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/memory_map.h"

namespace waymark::cli {

namespace {

/// Slices of one capture's timeline, before a sum reduces its detail.
constexpr std::size_t most_slices_of_sample = 20000;

/// The given files that concern a capture, without builds that only other captures ran. The result depends only on the
/// capture, so that every division into shards has the same result.
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

/// Replaces paths in this machine's copy by the paths that are valid for everyone.
void name_sources(answers::Answers& answers, const std::filesystem::path& cache,
                  const std::vector<std::filesystem::path>& sources) {
    for (answers::Image& image : answers.images) {
        const std::filesystem::path place = std::filesystem::path(image.path).lexically_relative(cache);
        if (place.empty() || *place.begin() == "..") continue;
        std::error_code none;
        for (const std::filesystem::path& source : sources)
            if (std::filesystem::exists(source / place, none)) {
                image.path = (source / place).string();
                break;
            }
    }
}

}  // namespace

void FleetDecoding::add_to(const Command& command) {
    const std::vector<Option> before = command.get_options();
    answers_.input.add_to(command);
    command.remove_option("CAPTURE");
    command.remove_option("--output");
    answers_.input.selection.add_to(command);
    add_timestamp_hz(command, answers_);
    command.option("--kallsyms", answers_.kallsyms);
    command.option("--contents", contents_);
    for (const Option& option : command.get_options())
        if (std::find(before.begin(), before.end(), option) == before.end()) options_.push_back(option);
}

std::vector<std::string> FleetDecoding::arguments() const {
    std::vector<std::string> out;
    for (const Option& option : options_) {
        const std::string name = option->get_name();
        if (option->count() == 0) continue;
        if (option->is_flag()) {
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
    if (const auto wrong =
            parse_options(all_texts(), "waymark", arguments, [&](const Command& command) { out->add_to(command); }))
        return Error{Errc::usage, "the options in the plan are not options of this version: " + *wrong};
    out->options_.clear();  // the stored options end with `command`
    AnswersOptions& a = out->answers_;
    a.ranges = true;
    if (out->contents_ != "ranges") a.calls = a.instructions = a.inlined = true;
    if (out->contents_ == "all") a.disassembly = a.all_functions = true;
    return out;
}

void ImageCacheOptions::add_to(const Command& command) {
    command.option("--image-cache", folder);
    command.option("--image-cache-size", most_bytes)->transform(with_size_unit(true));
}

std::vector<std::string> ImageCacheOptions::arguments() const {
    if (folder.empty()) return {};
    return {"--image-cache=" + std::filesystem::absolute(folder).lexically_normal().string(),
            fmt::format("--image-cache-size={}", most_bytes)};
}

fleet::DecodeCapture FleetDecoding::decoder(unsigned jobs, const ImageCacheOptions& cache) const {
    auto fetched = std::make_shared<std::set<fleet::RanFile>>();
    return [this, jobs, cache, fetched](const fleet::PlannedCapture& capture) -> Result<answers::Answers> {
        AnswersOptions one = answers_;
        one.jobs = jobs;
        one.input.capture = capture.path;
        one.timeline = capture.timeline && contents_ != "ranges";
        one.most_slices = most_slices_of_sample;
        one.input.images = files_for(capture, answers_.input.images);
        one.input.symbols = files_for(capture, answers_.input.symbols);
        std::vector<std::string>& folders = one.input.debug_folders;
        const std::vector<std::filesystem::path> sources(folders.begin(), folders.end());
        std::error_code none;
        std::filesystem::create_directories(cache.folder, none);
        const bool cached =
            !cache.folder.empty() && !sources.empty() && std::filesystem::is_directory(cache.folder, none);
        if (cached) {
            std::vector<fleet::RanFile> wanted;
            for (const fleet::RanFile& f : capture.ran)
                if (fetched->insert(f).second) wanted.push_back(f);
            fleet::ImageCache(cache.folder, cache.most_bytes).fetch(wanted, sources);
            folders.insert(folders.begin(), cache.folder);
        }
        WM_ASSIGN_OR_RETURN(answers::Answers answers, answers_of(one));
        if (cached) name_sources(answers, cache.folder, sources);
        if (contents_ == "ranges") answers.edges.clear();
        // Otherwise a reader of coverage would mistake the executed code for all code.
        if (contents_ != "all")
            answers.health.push_back({answers::Finding::Severity::note, without_functions_that_never_ran,
                                      "plan with --contents all if coverage has to count them"});
        answers::sort_findings(answers);
        return answers;
    };
}

}  // namespace waymark::cli
