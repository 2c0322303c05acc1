#include "waymark/exports/image_profile.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "look_up.h"
#include "waymark/answers/parts.h"
#include "writer.h"

namespace waymark::exports {

namespace {

using answers::Answers;
using answers::Image;
using answers::ImageBranch;
using answers::ImageRange;
using answers::Index;

/// Shared libraries, the dynamic linker and the kernel, by their names.
bool is_library(std::string_view name) {
    return name.ends_with(".so") || name.find(".so.") != name.npos || name.starts_with("ld-") || name.starts_with("[");
}

/// Chooses the program: the image with a function `main`, otherwise an image that is not a library; among several, the
/// one that ran most. A library is not chosen if the program is missing. nullopt: then `ran` names the libraries that
/// ran.
Index main_image(const Answers& a, std::string& ran) {
    struct Rank {
        bool ran{}, main{}, program{};
        std::uint64_t weight{};
        auto operator<=>(const Rank&) const = default;
    };
    std::vector<Rank> ranks(a.images.size());
    const auto add = [&](Index image, std::uint64_t times) {
        if (image >= ranks.size() || times == 0) return;
        ranks[image].ran = true;
        ranks[image].weight = saturating(ranks[image].weight, times);
    };
    for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i].program = !is_library(a.images[i].name);
    for (const answers::Function& f : a.functions)
        if (f.image < ranks.size() && f.name == "main") ranks[f.image].main = true;
    for (const answers::Edge& e : a.edges)
        if (const answers::Function* from = function_at(a, e.from_function)) add(from->image, e.times);
    for (const ImageRange& r : a.ranges) add(r.image, r.times);
    if (ranks.empty()) return answers::none;
    const auto first = std::max_element(ranks.begin(), ranks.end());
    if (first->main || first->program) return static_cast<Index>(first - ranks.begin());
    for (std::size_t i = 0; i < ranks.size(); ++i)
        if (ranks[i].ran) ran += (ran.empty() ? "" : ", ") + a.images[i].name;
    return answers::none;
}

/// Ranges and branches of one image, with addresses in the format's terms; nullopt: the format has no address for it.
template <class Convert>
struct Tables {
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> ranges{}, branches{};
    std::uint64_t left_out = 0;

    /// `outside`: target that stands for code outside the image; nullopt: branches to such code are omitted.
    Tables(const Answers& a, Index image, const Convert& convert, std::optional<std::uint64_t> outside) {
        const auto add = [](auto& table, std::uint64_t x, std::uint64_t y, std::uint64_t times) {
            std::uint64_t& sum = table[{x, y}];
            sum = saturating(sum, times);
        };
        for (const ImageRange& r : a.ranges) {
            if (r.image != image || r.times == 0) continue;
            const auto first = convert(r.first), last = convert(r.last);
            if (first && last)
                add(ranges, *first, *last, r.times);
            else
                ++left_out;
        }
        for (const ImageBranch& b : a.jumps) {
            if (b.image != image || b.times == 0) continue;
            const auto from = convert(b.from);
            const auto to = b.to_image == image ? convert(b.to) : outside;
            if (from && to)
                add(branches, *from, *to, b.times);
            else if (b.to_image == image || !from)
                ++left_out;
        }
        if (!outside) return;
        // The remaining taken branches have no target, because flow was lost after them.
        std::map<std::uint64_t, std::uint64_t> taken, led;
        for (const ImageRange& r : a.ranges)
            if (r.image == image) taken[r.last] = saturating(taken[r.last], r.taken);
        for (const ImageBranch& b : a.jumps)
            if (b.image == image) led[b.from] = saturating(led[b.from], b.times);
        for (const auto& [last, times] : taken)
            if (const auto from = convert(last); from && times > led[last])
                add(branches, *from, *outside, times - led[last]);
    }
};

Error no_ranges(const Answers& a, const Image& image) {
    return {Errc::not_found, a.ranges.empty()
                                 ? lacks(a, "exact ranges of code that ran")
                                 : fmt::format("nothing of {} was seen to run in a file that was found", image.name)};
}

/// The file's path on the recorded machine, as far as known.
const std::string& path_of(const Image& image) {
    if (!image.recorded.empty()) return image.recorded;
    return image.path.empty() ? image.name : image.path;
}

/// The subject of a profile, and its omissions.
ExportReport report_of(const Answers& a, Index image, std::uint64_t bytes, std::uint64_t left_out) {
    ExportReport report;
    report.bytes = bytes;
    const Image& of = a.images[image];
    report.notes.push_back(fmt::format("the profile is of {}{}", of.name,
                                       of.build_id.empty() ? ", which has no build ID" : ", build ID " + of.build_id));
    if (left_out != 0)
        report.notes.push_back(fmt::format("left out: {} outside the loaded segments of the file",
                                           counted(left_out, "range or branch", "ranges and branches")));
    return report;
}

}  // namespace

Result<Index> profile_image(const Answers& answers, const std::string& name, Index index) {
    if (index < answers.images.size()) return index;
    if (name.empty()) {
        std::string ran;
        const Index image = main_image(answers, ran);
        if (image != answers::none) return image;
        if (!ran.empty())
            return Error{
                Errc::not_found,
                fmt::format("the program itself is not among the files that were found and ran, which are {}. Give its "
                            "file (--image, --symfs, --debug-dir), or choose one of these with --of-image",
                            ran)};
        return Error{Errc::not_found, lacks(answers, "program or library")};
    }
    constexpr std::size_t least_digits = 6;
    const std::string build = answers::build_key(name);
    std::string names;
    for (std::size_t i = 0; i < answers.images.size(); ++i) {
        const Image& image = answers.images[i];
        const std::string key = answers::build_key(image.build_id);
        const bool is_build =
            !build.empty() && (key == build || (build.size() >= least_digits && key.starts_with(build)));
        if (image.name == name || image.path == name || image.recorded == name || is_build)
            return static_cast<Index>(i);
        names += (names.empty() ? "" : ", ") + image.name;
    }
    return Error{Errc::not_found, fmt::format("no image is called '{}'; there are: {}", name, names)};
}

namespace {

/// Samples have no ranges, only single branches and their targets.
Result<ExportReport> write_sampled_text(const Answers& a, Index image,
                                        const std::function<std::optional<std::uint64_t>(std::uint64_t)>& offset,
                                        ByteSink& sink) {
    const auto is_in = [&](Index function) {
        const answers::Function* const f = function_at(a, function);
        return f != nullptr && f->image == image;
    };
    std::map<std::uint64_t, std::uint64_t> samples;
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> branches;
    std::uint64_t left_out = 0;
    for (const answers::Branch& b : a.branches) {
        if (!is_in(b.function)) continue;
        const auto at = offset(b.address);
        if (at)
            samples[*at] = saturating(samples[*at], saturating(b.taken, b.not_taken));
        else
            ++left_out;
    }
    for (const answers::Edge& e : a.edges) {
        if (!is_in(e.from_function) || !is_taken(a, e)) continue;
        const auto from = offset(e.from), to = is_in(e.to_function) ? offset(e.to) : std::optional<std::uint64_t>(0);
        if (!from || !to) continue;
        std::uint64_t& sum = branches[{*from, *to}];
        sum = saturating(sum, e.times);
    }
    if (samples.empty())
        return Error{
            Errc::not_found,
            a.images[image].segments.empty()
                ? fmt::format(
                      "{}: the file is needed for its addresses, and was not found; name its folder with --symfs",
                      a.images[image].name)
                : fmt::format("no sampled branch is in {}", a.images[image].name)};
    Writer out(sink);
    out.print("0\n{}\n", samples.size());
    for (const auto& [address, times] : samples) out.print("{:x}:{}\n", address, times);
    out.print("{}\n", branches.size());
    for (const auto& [branch, times] : branches) out.print("{:x}->{:x}:{}\n", branch.first, branch.second, times);
    return report_of(a, image, out.finish(), left_out);
}

}  // namespace

Result<ExportReport> write_autofdo_text(const Answers& answers, const ImageProfileOptions& options, ByteSink& sink) {
    WM_ASSIGN_OR_RETURN(const Index image, profile_image(answers, options.image, options.index));
    const Image& of = answers.images[image];
    bool differ = false;  // offsets differ from those by the other rule
    const auto offset = [&](std::uint64_t at) -> std::optional<std::uint64_t> {
        for (const Image::Segment& s : of.segments)
            if (s.executable && at >= s.address && at - s.address < s.bytes) {
                const std::uint64_t in_file = at - s.address + s.offset;
                const std::uint64_t loaded = at - of.segments.front().address + of.segments.front().offset;
                differ |= in_file != loaded;
                return options.as_loaded ? loaded : in_file;
            }
        return std::nullopt;
    };
    if (answers.ranges.empty() && !answers.metrics.empty() && !answers.metrics.front().exact)
        return write_sampled_text(answers, image, offset, sink);
    const Tables tables(answers, image, offset, 0);
    if (tables.ranges.empty()) return no_ranges(answers, of);
    Writer out(sink);
    out.print("{}\n", tables.ranges.size());
    for (const auto& [range, times] : tables.ranges) out.print("{:x}-{:x}:{}\n", range.first, range.second, times);
    // Number of addresses without a branch: program flow has none.
    out.print("0\n{}\n", tables.branches.size());
    for (const auto& [branch, times] : tables.branches)
        out.print("{:x}->{:x}:{}\n", branch.first, branch.second, times);
    // perf prints build IDs padded to 20 bytes.
    constexpr std::size_t digits = 40;
    if (!of.build_id.empty())
        out.print("// build_id: 0x{}\n",
                  of.build_id.substr(0, digits) + std::string(digits - std::min(digits, of.build_id.size()), '0'));
    out.print("// {}\n\n", one_line(path_of(of)));
    ExportReport report = report_of(answers, image, out.finish(), tables.left_out);
    if (differ && !options.as_loaded)
        report.notes.push_back(
            fmt::format("{} is not loaded as it lies in its file: these are offsets in the file, as simpleperf and "
                        "newer versions of "
                        "create_llvm_prof have them; 0.19, which Debian has, needs --autofdo-addresses loaded",
                        of.name));
    return report;
}

namespace {

/// The preferred load address of the page with a file's first code, from which llvm-profgen counts.
std::optional<std::uint64_t> preferred_base(const Image& image) {
    constexpr std::uint64_t page = 4096;
    for (const Image::Segment& s : image.segments)
        if (s.executable) return s.address / page * page;
    return std::nullopt;
}

}  // namespace

Result<ExportReport> write_profgen(const Answers& answers, const ImageProfileOptions& options, ByteSink& sink) {
    WM_ASSIGN_OR_RETURN(const Index image, profile_image(answers, options.image, options.index));
    const Image& of = answers.images[image];
    const auto base = preferred_base(of);
    const auto offset = [&](std::uint64_t at) -> std::optional<std::uint64_t> {
        return base && at >= *base ? std::optional(at - *base) : std::nullopt;
    };
    const Tables tables(answers, image, offset, std::nullopt);
    if (tables.ranges.empty()) return no_ranges(answers, of);
    Writer out(sink);
    out.print("{}\n", tables.ranges.size());
    for (const auto& [range, times] : tables.ranges) out.print("{:x}-{:x}:{}\n", range.first, range.second, times);
    out.print("{}\n", tables.branches.size());
    for (const auto& [branch, times] : tables.branches)
        out.print("{:x}->{:x}:{}\n", branch.first, branch.second, times);
    return report_of(answers, image, out.finish(), tables.left_out);
}

Result<ExportReport> write_profgen_script(const Answers& answers, const ImageProfileOptions& options, ByteSink& sink) {
    WM_ASSIGN_OR_RETURN(const Index image, profile_image(answers, options.image, options.index));
    const Image& of = answers.images[image];
    const auto same = [](std::uint64_t at) { return std::optional(at); };
    Tables tables(answers, image, same, 0);
    if (tables.ranges.empty()) return no_ranges(answers, of);
    Writer out(sink);
    constexpr std::uint64_t page = 4096;
    const std::string name = one_line(path_of(of));
    for (const Image::Segment& s : of.segments) {
        if (!s.executable) continue;
        const std::uint64_t before = s.address % page;
        out.print("PERF_RECORD_MMAP2 1/1: [{:#x}({:#x}) @ {:#x} 00:00 0 0]: r-xp {}\n", s.address - before,
                  (s.bytes + before + page - 1) / page * page, s.offset - std::min(s.offset, before), name);
    }
    // How control reached the beginnings of ranges: by branches, and otherwise by falling through.
    std::map<std::uint64_t, std::vector<std::pair<std::uint64_t, std::uint64_t>>> came_from;
    for (const ImageBranch& b : answers.jumps)
        if (b.to_image == image && b.times != 0) came_from[b.to].emplace_back(b.image == image ? b.from : 0, b.times);
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> alone = std::move(tables.branches);
    for (const auto& [range, times] : tables.ranges) {
        const std::uint64_t first = range.first, last = range.second;
        const auto sample = [&](std::uint64_t from, std::uint64_t count) {
            out.print("{}\n {:x} {:#x}/0x0/P/-/-/0 {:#x}/{:#x}/P/-/-/0\n", count, last, last, from, first);
        };
        std::uint64_t left = times;
        auto& ways = came_from[first];
        while (left != 0 && !ways.empty()) {
            auto& [from, count] = ways.back();
            const std::uint64_t here = std::min(left, count);
            sample(from, here);
            left -= here;
            count -= here;
            if (const auto at = alone.find({from, first}); at != alone.end()) at->second -= std::min(at->second, here);
            if (count == 0) ways.pop_back();
        }
        constexpr std::uint64_t a64 = 4;
        if (left != 0) sample(first - a64, left);
    }
    for (const auto& [branch, times] : alone)
        if (times != 0) out.print("{}\n {:x} {:#x}/{:#x}/P/-/-/0\n", times, branch.second, branch.first, branch.second);
    return report_of(answers, image, out.finish(), tables.left_out);
}

}  // namespace waymark::exports
