#include "waymark/pgo/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>

#include "waymark/analysis/image_answers.h"
#include "waymark/answers/parts.h"
#include "waymark/answers/sampled.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/perf_file.h"
#include "waymark/core/file_name.h"
#include "waymark/exports/autofdo.h"
#include "waymark/exports/bolt.h"
#include "waymark/exports/image_profile.h"
#include "waymark/image/dwarf_version.h"

namespace waymark::pgo {

namespace {

namespace fs = std::filesystem;
using answers::Index;
using exports::ExportReport;

constexpr std::array all_targets{
    Tool{"clang", "llvm-profile", "clang -fprofile-sample-use={}"},
    Tool{"autofdo", "autofdo-text", "create_llvm_prof --profiler text --binary PROGRAM --out OUT --profile {}"},
    Tool{"profgen", "profgen", "llvm-profgen --binary PROGRAM --output OUT --unsymbolized-profile {}"},
    Tool{"bolt", "bolt", "perf2bolt --pa -o OUT PROGRAM -p {}"},
    Tool{"branch-list", "branch-list", "simpleperf inject -i {}"},
};

/// Adds the branch lists that simpleperf made while it recorded.
Result<bool> add_recorded_lists(answers::BranchLists& lists, const open::Container& container) {
    if (!container.is_perf() || container.kind == open::Kind::stacks_perf) return false;
    if (container.unreadable) return *container.unreadable;
    WM_ASSIGN_OR_RETURN(const capture::perf::PerfData data, capture::perf::read_perf_data(container.file));
    if (data.branch_lists.empty()) return false;
    WM_RETURN_IF_ERROR(exports::add_branch_lists(lists, data.branch_lists, container.path));
    return true;
}

}  // namespace

std::span<const Tool> targets() { return all_targets; }

const Tool* find_target(std::string_view name) {
    const auto found = std::ranges::find(all_targets, name, &Tool::name);
    return found == all_targets.end() ? nullptr : &*found;
}

bool are_saturated(const answers::BranchLists& lists) {
    for (const auto& [key, image] : lists)
        for (const auto& [list, times] : image.lists)
            if (times == std::numeric_limits<std::uint64_t>::max()) return true;
    return false;
}

Result<bool> add_branch_lists(answers::BranchLists& lists, const open::Container& container) {
    const std::string& path = container.path;
    if (container.contents() != open::Content::branch_lists) return add_recorded_lists(lists, container);
    WM_ASSIGN_OR_RETURN(const std::unique_ptr<capture::ByteStream> stream, capture::open_bytes(path));
    constexpr std::uint64_t most = std::uint64_t{1} << 32;
    WM_ASSIGN_OR_RETURN(const std::vector<std::uint8_t> bytes, capture::read_all(*stream, most));
    WM_RETURN_IF_ERROR(exports::add_branch_lists(lists, bytes, path));
    return true;
}

Status keep_image(answers::BranchLists& lists, const std::string& image) {
    const auto is_it = [&](const answers::BranchListImage& of) {
        const std::string build = answers::build_key(image);
        constexpr std::size_t least_digits = 6;
        return of.path == image || fs::path(of.path).filename() == image ||
               (build.size() >= least_digits && answers::build_key(of.build_id).starts_with(build));
    };
    std::string names;
    for (const auto& [key, of] : lists) names += (names.empty() ? "" : ", ") + of.path;
    std::erase_if(lists, [&](const auto& list) { return !is_it(list.second); });
    if (!lists.empty()) return Nothing{};
    return Error{Errc::not_found, fmt::format("no image is called '{}'; there are: {}", image, names)};
}

Result<std::vector<Index>> Profiles::images() const {
    if (!options_.all && !options_.of_all_images()) {
        WM_ASSIGN_OR_RETURN(const Index image, exports::profile_image(answers_, options_.of_image));
        if (analysis::executed_in(answers_, image) == 0)
            return Error{Errc::not_found, fmt::format("nothing of {} ran in a file that was found{}",
                                                      answers_.images[image].name, warnings())};
        return std::vector<Index>{image};
    }
    std::vector<Index> out;
    for (Index i = 0; i < answers_.images.size(); ++i)
        if (analysis::executed_in(answers_, i) != 0) out.push_back(i);
    return out;
}
std::string Profiles::file_name_of(Index image) {
    const answers::Image& of = answers_.images[image];
    const std::string name = file_name(of.build_id.empty() ? of.name : of.build_id);
    std::string one = name;
    for (unsigned n = 2; !names_.insert(one).second; ++n) one = fmt::format("{}-{}", name, n);
    return one + std::string(exports::find_format(options_.target->format)->extension);
}

Result<ExportReport> Profiles::write(Index image, ByteSink& sink) {
    const std::string_view target = options_.target->name;
    if (target == "branch-list")
        return exports::write_branch_list(answers_, options_.list_version, sink, options_.of_image);
    const answers::Image& of = answers_.images[image];
    if (target == "autofdo") {
        return exports::write_autofdo_text(answers_, {.index = image, .as_loaded = options_.as_loaded}, sink);
    }
    if (target == "profgen") return exports::write_profgen(answers_, {.index = image}, sink);
    if (target == "bolt") return exports::write_bolt(answers_, {.traces = options_.bolt_traces, .index = image}, sink);
    const auto file = files_.file_of(of);
    if (!file)
        return Error{Errc::not_found, fmt::format("the file of {} is needed for its lines, and was not found: {}",
                                                  of.name, file.error().message)};
    WM_ASSIGN_OR_RETURN(const analysis::ImageAnswers made,
                        analysis::image_answers(answers_, image, file->path, files_.search().debug_path()));
    quality_[image] = made.quality;
    if (!made.quality.debug_info)
        return Error{Errc::not_found, fmt::format("{} has no debug information; build it with -g "
                                                  "-fdebug-info-for-profiling, or name the folder of its debug file "
                                                  "with --debug-dir",
                                                  file->path.string())};
    return exports::write_autofdo(made.answers, sink);
}

std::string Profiles::doubt(Index image) const {
    // Debian's create_llvm_prof writes an empty profile for a program whose debug information it cannot read.
    constexpr unsigned newest_read = 4;
    if (options_.target->name != "autofdo") return {};
    const answers::Image& of = answers_.images[image];
    const auto file = files_.file_of(of);
    if (!file) return {};
    const unsigned version = image::dwarf_version(file->path);
    if (version <= newest_read) return {};
    return fmt::format(
        "{} has debug information of DWARF {}, from which create_llvm_prof 0.19 "
        "(Debian's) makes an empty profile; it reads DWARF 4: compile with -gdwarf-4",
        of.name, version);
}

bool Profiles::of_counter() const { return answers::of_samples(answers_) && answers_.unit != "SPE"; }

std::string Profiles::samples() const { return of_counter() ? "samples of the program counter" : "samples"; }

Status Profiles::takes_samples() const {
    const std::string_view target = options_.target->name;
    if (answers::of_messages(answers_)) return Error{Errc::not_found, "messages do not show which code ran"};
    const bool sampled = !answers_.metrics.empty() && !answers_.metrics.front().exact;
    const bool taken = target == "clang" || (target == "bolt" && !of_counter());
    const bool lacks_lines = target == "clang" && answers_.instructions.empty();
    if (sampled && taken && !lacks_lines) return Nothing{};
    const std::string why = !sampled ? "no code that was decoded belongs to a file that was found"
                            : !taken ? fmt::format("{} have no {}; --for clang {} them", samples(),
                                                   target == "bolt" ? "branches" : "executed ranges",
                                                   of_counter() ? "takes" : "and --for bolt take")
                                     : "there are samples, but not of which instructions; an answers file of samples "
                                       "must be written without --only-ranges";
    return Error{Errc::not_found, why + warnings()};
}

Result<ExportReport> Profiles::write_samples(ByteSink& sink) const {
    return options_.target->name == "clang" ? exports::write_autofdo(answers_, sink)
                                            : exports::write_bolt(answers_, {options_.of_image, false}, sink);
}

analysis::ProfileCover Profiles::cover(const std::vector<Index>& images) const {
    return analysis::profile_cover(
        answers_, [&](Index i) { return options_.of_all_images() || std::ranges::find(images, i) != images.end(); },
        quality_);
}

std::string Profiles::warnings() const {
    std::string out;
    for (const answers::Finding& f : answers_.health)
        if (f.severity >= answers::Finding::Severity::warning) out += "; " + f.what;
    return out;
}

}  // namespace waymark::pgo
