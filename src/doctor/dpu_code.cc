/// Makes the code for the trace from the images of a DPU capture, even if files took turns at one address.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "waymark/doctor/dpu.h"

namespace waymark::doctor {

std::string cost_and_remedy(const DpuImageProblem& problem) {
    return fmt::format(
        "its functions are shown by their addresses, and returns are distinguished from calls only by where they lead. "
        "Give a whole "
        "copy of the program with --image FILE{}",
        problem.image.load_bias == 0 ? std::string() : fmt::format("@{:#x}", problem.image.load_bias));
}

namespace {

/// Maps modules of a capture's map to its images, and finds modules that are the same file at the same place.
class MappedImages {
public:
    explicit MappedImages(const capture::DpuCapture& capture) : capture_(capture) {
        for (const capture::DpuImage& image : capture.images) info_.push_back(image::DebugInfo::open(image.path));
        for (const capture::Module& m : capture.modules.modules) {
            images_.push_back(image_of(m));
            const std::uint64_t shift = m.file.empty() ? m.address.value : m.address.value - m.offset;
            const auto [at, fresh] = numbers_.try_emplace({m.file, m.build_id, shift}, names_.size());
            if (fresh) names_.push_back(m.file);
            files_.push_back(at->second);
        }
    }

    [[nodiscard]] std::optional<std::size_t> image(std::size_t module) const { return images_[module]; }
    [[nodiscard]] std::size_t file(std::size_t module) const { return files_[module]; }
    [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
    /// The reason why an image does not match any module of the map although it should, as a sentence without its end;
    /// empty if no code of the image ran.
    [[nodiscard]] std::string why_not(std::size_t image) const {
        const std::string path = capture_.images[image].path.string();
        for (const capture::CopiedFile& c : capture_.modules.copies) {
            if (c.copy != capture_.images[image].path.filename().string()) continue;
            for (std::size_t i = 0; i < images_.size(); ++i) {
                const capture::Module& m = capture_.modules.modules[i];
                if (images_[i] || m.file != c.file || m.build_id != c.build_id) continue;
                return is(m, image) ? fmt::format(
                                          "{}: {} was built again while the program ran, and no build ID shows which "
                                          "of its builds was there when",
                                          path, m.file)
                                    : fmt::format("{}: it is not the build of {}, although {} states that it is a copy",
                                                  path, m.file, capture::module_map_file);
            }
        }
        return {};
    }
    [[nodiscard]] const Result<image::DebugInfo>& info(std::size_t image) const { return info_[image]; }

private:
    [[nodiscard]] bool is(const capture::Module& m, std::size_t image) const {
        if (!info_[image] || m.file.empty()) return false;
        const image::DebugInfo& info = *info_[image];
        const auto bias = info.load_bias(m.address, m.offset, m.bytes);
        if (!bias || static_cast<std::uint32_t>(*bias) != capture_.images[image].load_bias) return false;
        if (!m.build_id.empty() && m.build_id != info.build_id()) return false;
        const auto& copies = capture_.modules.copies;
        const std::string copy = capture_.images[image].path.filename().string();
        const auto named =
            std::find_if(copies.begin(), copies.end(), [&](const capture::CopiedFile& c) { return c.copy == copy; });
        // A stripped copy keeps the build ID of its original, so build IDs alone are not compared.
        if (named != copies.end()) return named->file == m.file && named->build_id == m.build_id;
        return m.build_id == info.build_id();
    }
    /// nullopt if several images match.
    [[nodiscard]] std::optional<std::size_t> image_of(const capture::Module& m) const {
        std::optional<std::size_t> out;
        for (std::size_t i = 0; i < info_.size(); ++i) {
            if (!is(m, i)) continue;
            if (out) return std::nullopt;
            out = i;
        }
        return out;
    }

    const capture::DpuCapture& capture_;
    std::vector<Result<image::DebugInfo>> info_;
    std::vector<std::optional<std::size_t>> images_;  // by module
    std::vector<std::size_t> files_;                  // by module
    std::map<std::tuple<std::string, std::vector<std::uint8_t>, std::uint64_t>, std::size_t> numbers_;
    std::vector<std::string> names_;  // by number of the file
};

using CodeMapping = analysis::CodeTurns::Mapping;

/// The addresses of executable code in an image.
std::vector<CodeMapping> code_of(const Result<image::DebugInfo>& info, std::uint32_t load_bias, std::size_t file) {
    std::vector<CodeMapping> out;
    if (!info) return out;
    for (const image::DebugInfo::Segment& s : info->segments())
        if (s.executable && s.bytes != 0)
            out.push_back({s.address.value + load_bias, s.address.value + load_bias + (s.bytes - 1), file});
    return out;
}

}  // namespace

std::vector<DpuImageProblem> name_code(const capture::DpuCapture& capture, const pipeline::DpuTrace& trace,
                                       std::uint64_t trace_bytes, analysis::DpuCode& code) {
    std::vector<DpuImageProblem> out;
    const MappedImages mapped(capture);
    const std::vector<capture::Module>& modules = capture.modules.modules;
    const auto add = [&](std::size_t image, const std::string& name, std::optional<std::size_t> file) {
        const capture::DpuImage& each = capture.images[image];
        if (std::string problem = code.add_image(each.path.string(), each.load_bias, name, file); !problem.empty())
            out.push_back({each, std::move(problem)});
    };
    std::vector<CodeMapping> mappings;
    std::vector<std::string> names = mapped.names();
    if (modules.empty()) {
        // Without a map, all images count as present all the time: two at one address cannot be distinguished.
        for (std::size_t i = 0; i < capture.images.size(); ++i) {
            const std::vector<CodeMapping> code_here = code_of(mapped.info(i), capture.images[i].load_bias, i);
            mappings.insert(mappings.end(), code_here.begin(), code_here.end());
            names.push_back(capture.images[i].path.string());
        }
        code.take_turns(analysis::CodeTurns(mappings, false), std::move(names));
        for (std::size_t i = 0; i < capture.images.size(); ++i)
            add(i, {},
                std::any_of(mappings.begin(), mappings.end(), [&](const CodeMapping& m) { return m.file == i; })
                    ? std::optional(i)
                    : std::nullopt);
    } else {
        const auto times = pipeline::module_times(capture, trace, trace_bytes);
        for (std::size_t i = 0; i < modules.size(); ++i) {
            const capture::Module& m = modules[i];
            const auto time = times ? (*times)[i] : pipeline::DpuModuleTime{};
            mappings.push_back({m.address.value, m.address.value + (m.bytes - 1), mapped.file(i), time.from, time.to});
        }
        code.take_turns(analysis::CodeTurns(mappings, times.has_value()), std::move(names));
        std::set<std::size_t> added_files, added_images;
        for (std::size_t i = 0; i < modules.size(); ++i) {
            const capture::Module& m = modules[i];
            if (m.file.empty()) continue;
            const std::size_t file = mapped.file(i);
            if (const auto image = mapped.image(i)) {
                if (added_files.insert(file).second) add(*image, m.file, file);
                added_images.insert(*image);
            } else {
                code.add_unread(m.file, static_cast<std::uint32_t>(m.address.value), m.bytes, m.offset, file);
            }
        }
        // The remaining images did not run, or are missing in the map: where the map has another file, they give no
        // names.
        for (std::size_t i = 0; i < capture.images.size(); ++i) {
            if (added_images.contains(i)) continue;
            const std::vector<CodeMapping> code_here = code_of(mapped.info(i), capture.images[i].load_bias, i);
            const bool replaced = std::any_of(code_here.begin(), code_here.end(), [&](const CodeMapping& c) {
                return std::any_of(mappings.begin(), mappings.end(),
                                   [&](const CodeMapping& m) { return m.first <= c.last && c.first <= m.last; });
            });
            if (!replaced)
                add(i, {}, std::nullopt);
            else if (const std::string problem = mapped.why_not(i); !problem.empty())
                out.push_back({capture.images[i], problem});
        }
    }
    for (const capture::DpuSymbol& symbol : capture.symbols) code.add_name(symbol.address, symbol.name);
    return out;
}

std::string turns_not_known(const capture::DpuCapture& capture, const analysis::DpuCode& code) {
    const std::vector<std::string> zones = code.unknown_turns();
    if (zones.empty()) return {};
    const std::string map = (capture.path.parent_path() / capture::module_map_file).string();
    const std::string& clock = capture.modules.clock;
    std::string why;
    if (capture.modules.empty())
        why = fmt::format("{}: several programs are at one address, and no {} states when each was there",
                          capture.path.string(), capture::module_map_file);
    else if (clock != capture::trace_bytes_clock)
        why = fmt::format(
            "{}: several files were mapped at one address in turn, and the times of the mappings are by a clock ({}) "
            "that the trace does not have",
            map, clock.empty() ? "not named" : clock);
    else
        why = fmt::format(
            "{}: several files were mapped at one address in turn, and dpu.ini does not state how much trace came "
            "before the remaining trace (DP_TSA, DP_TEA, DP_TW and lines_written)",
            map);
    return fmt::format("{}: the code that ran there is in rows such as {}. Record again for their names", why,
                       zones.front());
}

}  // namespace waymark::doctor
