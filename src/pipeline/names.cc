#include "names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace waymark::pipeline {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t no_file = ~std::size_t{0};

}  // namespace

Status NameFinder::add_given(const image::ImageArgument& argument, bool only_names) {
    WM_ASSIGN_OR_RETURN(const image::ImageKind kind, image::recognise(argument.path));
    Given file{argument, only_names, std::nullopt, std::nullopt};
    if (kind == image::ImageKind::elf || only_names) {
        auto info = image::DebugInfo::open(argument.path, options_.files.debug_path());
        if (info) file.info.emplace(std::move(*info));
    }
    if (file.info && !argument.address) {
        // The same build, or else a file of that name; that its build is another is found by its code.
        const auto same = [&](bool by_id) {
            return std::find_if(mapped_.begin(), mapped_.end(), [&](const Mapped& m) {
                return by_id ? !m.build_id.empty() && m.build_id == file.info->build_id()
                             : fs::path(m.file).filename() == argument.path.filename();
            });
        };
        auto at = same(true);
        if (at == mapped_.end()) at = same(false);
        if (at != mapped_.end()) file.mapped = static_cast<std::size_t>(at - mapped_.begin());
        if (std::string why = only_names ? std::string() : why_refused(file); !why.empty()) {
            file.refused = true;
            refused_(argument.path, std::move(why));
        }
    }
    given_.push_back(std::move(file));
    return Nothing{};
}

/// Why an image without an address is not what ran; empty: nothing of the map speaks against it.
std::string NameFinder::why_refused(const Given& file) const {
    if (mapped_.empty()) return {};
    constexpr std::string_view remedy =
        "it is not used. Give the file that ran, or FILE@ADDRESS to use this one there.";
    const std::vector<std::uint8_t>& id = file.info->build_id();
    const std::string has = id.empty() ? "it has no build ID" : "its build ID is " + capture::hex_text(id);
    if (file.mapped) {
        const Mapped& m = mapped_[*file.mapped];
        if (m.build_id.empty() || m.build_id == id) return {};
        return fmt::format("it is another build than {} in the capture: {}, recorded was {}; {}", m.file, has,
                           capture::hex_text(m.build_id), remedy);
    }
    if (id.empty()) return {};
    // Files at fixed addresses may be known to be there without having been mapped, as firmware is.
    const auto& segments = file.info->segments();
    const auto code = std::find_if(segments.begin(), segments.end(), [](const auto& s) { return s.executable; });
    if (code == segments.end()) return {};
    const auto at_it = std::find_if(capture_.modules.modules.begin(), capture_.modules.modules.end(),
                                    [&](const capture::Module& m) { return m.holds(code->address); });
    if (at_it != capture_.modules.modules.end())
        return fmt::format("{} was mapped where its code lies ({:#x}), and {}; {}",
                           at_it->file.empty() ? "other code" : at_it->file, code->address.value, has, remedy);
    if (segments.front().address.value == 0)
        return fmt::format(
            "it can be loaded anywhere, and no file of that build was mapped when the capture was made "
            "({}); {}",
            has, remedy);
    return {};
}

Status NameFinder::open() {
    std::map<std::pair<std::string, std::vector<std::uint8_t>>, std::size_t> known;
    for (const capture::Module& m : capture_.modules.modules) {
        if (m.file.empty()) {
            mapped_of_.push_back(no_file);
            std::uint64_t first = m.address.value, last = first + (m.bytes - 1);
            auto at = without_file_.upper_bound(last + 1);
            while (at != without_file_.begin() && std::prev(at)->second + 1 >= first) {
                --at;
                first = std::min(first, at->first);
                last = std::max(last, at->second);
                at = without_file_.erase(at);
            }
            without_file_[first] = last;
            continue;
        }
        const auto [at, fresh] = known.try_emplace({m.file, m.build_id}, mapped_.size());
        if (fresh) mapped_.push_back({m.file, m.build_id, std::nullopt});
        mapped_of_.push_back(at->second);
    }
    for (const std::string& text : options_.images) {
        WM_ASSIGN_OR_RETURN(const image::ImageArgument argument, image::parse_image_argument(text));
        WM_RETURN_IF_ERROR(add_given(argument, false));
    }
    for (const std::string& path : options_.symbols) WM_RETURN_IF_ERROR(add_given({path, std::nullopt}, true));
    for (std::size_t i = 0; i < mapped_.size(); ++i) {
        Mapped& m = mapped_[i];
        auto found = image::find_file(m.file, m.build_id, options_.files);
        if (found) {
            m.found.emplace(std::move(*found));
            continue;
        }
        // What was given by hand takes its place.
        if (std::any_of(given_.begin(), given_.end(), [&](const Given& g) { return g.mapped == i && !g.refused; }))
            continue;
        problem_({}, fmt::format("{}; code of it has no names. Give a folder with the files of the machine that was "
                                 "recorded with --symfs, or the file with --symbols.",
                                 found.error().message));
    }
    make_groups();
    return open_generated();
}

/// Those of the options after those of the capture: what comes later is what holds.
Status NameFinder::open_generated() {
    using Format = capture::GeneratedNames::Format;
    const fs::path folder = capture_.path.parent_path();
    for (const capture::GeneratedNames& names : capture_.modules.names)
        WM_RETURN_IF_ERROR(add_generated(names.format == Format::perf_map ? image::read_perf_map(folder / names.file)
                                                                          : image::read_jitdump(folder / names.file),
                                         false));
    for (const std::string& path : options_.perf_maps)
        WM_RETURN_IF_ERROR(add_generated(image::read_perf_map(path), true));
    for (const std::string& path : options_.jitdumps)
        WM_RETURN_IF_ERROR(add_generated(image::read_jitdump(path), true));
    return Nothing{};
}

/// `needed`: by the options; a file of the capture that cannot be read is a problem of its names alone.
Status NameFinder::add_generated(Result<image::GeneratedCodeFile> file, bool needed) {
    if (!file) {
        if (needed) return std::move(file.error());
        problem_({}, fmt::format("{}; generated code has no names from it.", file.error().message));
        return Nothing{};
    }
    for (std::string& what : file->problems) problem_({}, std::move(what));
    generated_owners_.push_back(std::move(file->owner));
    for (image::GeneratedCode& piece : file->pieces) {
        first_of_name_.push_back(names_met_.try_emplace(piece.name, generated_.size()).first->second);
        generated_.push_back(std::move(piece));
    }
    return Nothing{};
}

void NameFinder::report_doubtful() {
    const auto pieces = [](std::size_t n) { return fmt::format("{} piece{}", n, n == 1 ? "" : "s"); };
    if (doubtful_ != 0)
        problem_({}, fmt::format("Of {} of generated code the capture holds other bytes than the jitdump file, and the "
                                 "trace has no clock to compare with that of the file: such code has the name whose "
                                 "bytes agree best. Is the file of this run?",
                                 pieces(doubtful_)));
    if (replaced_ != 0)
        problem_({},
                 fmt::format("{} of generated code had another name before: the trace has no clock to compare with, "
                             "so the last name of each address is given for all of the trace. A jitdump file "
                             "(--jitdump) has the code itself, so that each of them is given where its code ran.",
                             pieces(replaced_)));
}

std::optional<std::uint64_t> NameFinder::bias_of(std::size_t module) const {
    if (mapped_of_[module] == no_file) return std::nullopt;
    const capture::Module& m = capture_.modules.modules[module];
    const Mapped& file = mapped_[mapped_of_[module]];
    std::optional<std::uint64_t> bias;
    if (file.found) bias = file.found->info.load_bias(m.address, m.offset, m.bytes);
    return bias;
}

std::optional<std::uint64_t> NameFinder::bias_in(const Given& file, const Modules& modules) const {
    if (!file.mapped) return std::nullopt;
    for (const std::size_t module : modules) {
        if (mapped_of_[module] != *file.mapped) continue;
        if (const auto bias = bias_of(module)) return bias;
        const capture::Module& m = capture_.modules.modules[module];
        if (const auto bias = file.info->load_bias(m.address, m.offset, m.bytes)) return bias;
    }
    return std::nullopt;
}

const NameFinder::Given* NameFinder::given(const image::ImageArgument& argument) const {
    const auto found =
        std::find_if(given_.begin(), given_.end(), [&](const Given& g) { return g.argument == argument; });
    return found == given_.end() ? nullptr : &*found;
}

bool NameFinder::is_mapped(const image::ImageArgument& argument) const {
    const Given* const file = given(argument);
    return file != nullptr && file->mapped.has_value();
}

bool NameFinder::is_refused(const image::ImageArgument& argument) const {
    const Given* const file = given(argument);
    return file != nullptr && file->refused;
}

std::uint64_t NameFinder::load_bias(const image::ImageArgument& argument, const std::string& source) const {
    if (argument.address) return argument.address->value;
    const Given* const file = given(argument);
    const auto group = group_of_.find(source);
    if (file == nullptr || group == group_of_.end()) return 0;
    return bias_in(*file, groups_[group->second].modules).value_or(0);
}

std::uint64_t NameFinder::load_bias(const image::ImageArgument& argument) const {
    if (argument.address) return argument.address->value;
    if (const Given* const file = given(argument))
        for (const Group& group : groups_)
            if (const auto bias = bias_in(*file, group.modules)) return *bias;
    return 0;
}

/// Linux joins neighbouring mappings that no file backs, so such an area may begin elsewhere later. Its code has one
/// name all the time: by the distance from where all that ever was joined to it begins.
std::uint64_t NameFinder::offset_of(const capture::Module& module) const {
    if (!module.file.empty()) return module.offset;
    return module.address.value - std::prev(without_file_.upper_bound(module.address.value))->first;
}

/// No address of one belongs to another file in the other.
bool NameFinder::fits(const Modules& a, const Modules& b) const {
    const auto& all = capture_.modules.modules;
    const auto last = [&](std::size_t n) { return all[n].address.value + (all[n].bytes - 1); };
    // In order of address, with the last address of all up to each: a program that loads libraries again and again has
    // thousands of lines, few of which overlap.
    Modules sorted = b;
    std::sort(sorted.begin(), sorted.end(),
              [&](std::size_t x, std::size_t y) { return all[x].address.value < all[y].address.value; });
    std::vector<std::uint64_t> reach;
    for (const std::size_t k : sorted) reach.push_back(std::max(reach.empty() ? 0 : reach.back(), last(k)));
    for (const std::size_t i : a) {
        auto at = std::upper_bound(sorted.begin(), sorted.end(), last(i),
                                   [&](std::uint64_t l, std::size_t k) { return l < all[k].address.value; });
        while (at != sorted.begin() &&
               reach[static_cast<std::size_t>(at - sorted.begin()) - 1] >= all[i].address.value) {
            const std::size_t k = *--at;
            if (i != k && all[i].overlaps(all[k]) &&
                (mapped_of_[i] != mapped_of_[k] ||
                 all[i].address.value - all[i].offset != all[k].address.value - all[k].offset))
                return false;
        }
    }
    return true;
}

void NameFinder::make_groups() {
    for (const capture::Source& source : capture_.sources) {
        Modules seen = capture_.modules.seen_by(source.name);
        auto group =
            std::find_if(groups_.begin(), groups_.end(), [&](const Group& g) { return fits(g.modules, seen); });
        if (group == groups_.end()) group = groups_.insert(groups_.end(), Group{});
        Modules both;
        std::set_union(group->modules.begin(), group->modules.end(), seen.begin(), seen.end(),
                       std::back_inserter(both));
        group->modules = std::move(both);
        group_of_[source.name] = static_cast<std::size_t>(group - groups_.begin());
    }
}

Result<std::shared_ptr<const Names>> NameFinder::names_of(const std::string& source, const image::MemoryMap& memory) {
    Group& group = groups_[group_of_.at(source)];
    if (!group.names) {
        WM_ASSIGN_OR_RETURN(group.names, make(group.modules));
    }
    if (generated_.empty()) return group.names;
    image::NamedPieces found = image::named_pieces(generated_, memory);
    for (image::NamedPiece& piece : found.pieces) piece.from = first_of_name_[piece.from];
    const auto [at, fresh] = group.with_generated.try_emplace(found.pieces);
    if (fresh) {
        auto names = std::make_shared<Names>();
        names->files = group.names->files;
        names->symbols.set_base({group.names, &group.names->symbols});
        for (const image::NamedPiece& piece : found.pieces)
            names->symbols.add(generated_[piece.from].name, piece.address, piece.bytes, image::SymbolKind::function);
        at->second = std::move(names);
        doubtful_ = std::max(doubtful_, found.doubtful);
        replaced_ = std::max(replaced_, found.replaced);
    }
    return at->second;
}

Result<std::shared_ptr<const Names>> NameFinder::make(const Modules& modules) {
    auto out = std::make_shared<Names>();
    std::set<std::pair<fs::path, std::uint64_t>> taken;
    const auto take = [&](const fs::path& path, image::DebugInfo& info, std::uint64_t bias,
                          const std::string& name) -> Status {
        if (!taken.emplace(path, bias).second) return Nothing{};
        const auto added = image::add_all_symbols(out->symbols, path, info, bias);
        if (!added) return added.error();
        out->files.push_back({path.string(), bias, options_.files.debug_path(), name});
        return Nothing{};
    };
    // What was given by hand is what its names are taken from first.
    for (Given& file : given_) {
        if (file.refused) continue;
        if (!file.info) {
            // No ELF file with segments: a memory dump, or an object file.
            const auto kind = image::recognise(file.argument.path);
            if (!file.only_names && (!kind || *kind != image::ImageKind::elf)) continue;
            const auto added =
                out->symbols.add_elf(file.argument.path, file.argument.address.value_or(Address{}).value);
            if (!added) return added.error();
            continue;
        }
        const std::uint64_t bias =
            file.argument.address ? file.argument.address->value : bias_in(file, modules).value_or(0);
        WM_RETURN_IF_ERROR(
            take(file.argument.path, *file.info, bias, file.mapped ? mapped_[*file.mapped].file : std::string()));
        if (file.mapped) continue;
        for (const image::DebugInfo::Segment& s : file.info->segments())
            if (s.executable)
                out->symbols.add_area(file.argument.path.string(), Address{s.address.value + bias}, s.bytes, s.offset);
    }
    for (const std::size_t module : modules) {
        const capture::Module& m = capture_.modules.modules[module];
        out->symbols.add_area(m.file, m.address, m.bytes, offset_of(m));
        const auto bias = bias_of(module);
        if (!bias) continue;
        Mapped& file = mapped_[mapped_of_[module]];
        // A file that cannot be read is a problem of its names alone.
        if (const Status status = take(file.found->path, file.found->info, *bias, file.file); !status)
            problem_(file.found->path, status.error().message);
    }
    return std::shared_ptr<const Names>(out);
}

}  // namespace waymark::pipeline
