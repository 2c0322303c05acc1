#include "names.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "waymark/analysis/kallsyms.h"
#include "waymark/capture/module_map.h"
#include "waymark/image/agreement.h"

namespace waymark::pipeline {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t no_file = ~std::size_t{0};
/// perf's name for the running kernel, followed by the symbol whose address the mapping has in place of an offset.
constexpr std::string_view kernel = "[kernel.kallsyms]";

/// Difference between the running kernel's addresses and its file's.
std::optional<std::uint64_t> kernel_bias(const capture::Module& module, const fs::path& file) {
    image::Symbols symbols;
    symbols.accept(image::Machines::arm_and_x86_64);
    if (!symbols.add_elf(file)) return std::nullopt;
    const std::string symbol = module.file.substr(kernel.size());
    const auto address = symbols.address_of(symbol.empty() ? "_text" : symbol);
    if (!address) return std::nullopt;
    return module.offset - address->value;
}

}  // namespace

Status NameFinder::add_given(const image::ImageArgument& argument, bool only_names) {
    WM_ASSIGN_OR_RETURN(const image::ImageKind kind, image::recognise(argument.path));
    Given file{argument, only_names, std::nullopt, std::nullopt};
    if (kind == image::ImageKind::elf || only_names) {
        auto info = image::DebugInfo::open(argument.path, options_.files.debug_path());
        if (info) file.info.emplace(std::move(*info));
    }
    if (file.info && !argument.address) {
        // Matches the same build, or a file of that name; a difference of builds is found by comparing code.
        const auto same = [&](bool by_id) {
            return std::find_if(mapped_.begin(), mapped_.end(), [&](const Mapped& m) {
                if (by_id) return !m.build_id.empty() && m.build_id == file.info->build_id();
                const std::string name = argument.path.filename().string();
                if (m.file.starts_with(kernel)) return name.starts_with("vmlinux");
                if (is_kernel_module(m.file) && is_kernel_module(name))
                    return kernel_module_name(m.file) == kernel_module_name(name);
                return fs::path(m.file).filename() == name;
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

/// The reason why an image without an address cannot be the executed file; empty if nothing in the map contradicts it.
std::string NameFinder::why_refused(const Given& file) const {
    if (mapped_.empty())
        return capture_.spaces ? "the capture has no maps of processes, so the address of the file is not known; it is "
                                 "not used. Give FILE@ADDRESS (its load address; 0 for a program that is not "
                                 "position-independent), copy the whole capture again, or record again."
                               : "";
    constexpr std::string_view remedy =
        "it is not used. Give the file that ran, or FILE@ADDRESS to use this one there.";
    const std::vector<std::uint8_t>& id = file.info->build_id();
    const std::string has = id.empty() ? "it has no build ID" : "its build ID is " + capture::hex_text(id);
    if (file.mapped) {
        const Mapped& m = mapped_[*file.mapped];
        if (m.build_id.empty() || m.build_id == id) return {};
        return fmt::format("it is not the build of {} in the capture: {}, recorded was {}; {}", m.file, has,
                           capture::hex_text(m.build_id), remedy);
    }
    // If processes have memory of their own, code is only read through mappings.
    if (capture_.spaces)
        return fmt::format("no file of this name or build was mapped when the capture was made ({}); {}", has, remedy);
    if (id.empty()) return {};
    // Files at fixed addresses, such as firmware, may be in memory without having been mapped.
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

/// The reason why a file without a matching build ID is not the mapped file: its code differs from the code in the
/// capture. Empty if nothing contradicts it.
std::string NameFinder::why_another(std::size_t mapped, const Memory& dumped) const {
    const Mapped& m = mapped_[mapped];
    const auto at = std::find(mapped_of_.begin(), mapped_of_.end(), mapped);
    const auto bias = bias_of(static_cast<std::size_t>(at - mapped_of_.begin()));
    if (!bias || dumped.empty()) return {};
    const auto found = image::agreement(m.found->path, *bias, dumped);
    if (!found) return {};
    // The limit is the same as for given files (SessionMaker::check_build).
    constexpr std::uint64_t enough = 32;
    if (found->relocatable || found->compared < enough || found->different <= found->compared / 16) return {};
    return fmt::format(
        "{} was recorded without a build ID, and {} is not the file that ran: of {} bytes of its code that the capture "
        "contains too, {} differ; it is not used",
        m.file, m.found->path.string(), found->compared, found->different);
}

Status NameFinder::open(const std::function<Memory()>& dumped) {
    std::optional<Memory> memory;
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
    report_no_map();
    for (std::size_t i = 0; i < mapped_.size(); ++i) {
        Mapped& m = mapped_[i];
        auto found = m.file.starts_with(kernel)       ? find_kernel(m)
                     : is_module_without_path(m.file) ? find_module(m)
                                                      : find_mapped(m);
        if (found) {
            const bool same_build = !m.build_id.empty() && found->info.build_id() == m.build_id;
            m.found.emplace(std::move(*found));
            if (!same_build && !capture_.spaces && !capture_.dumps.empty()) {
                if (!memory) memory = dumped();
                if (std::string why = why_another(i, *memory); !why.empty()) {
                    m.found.reset();
                    found = Error{Errc::bad_format, std::move(why)};
                }
            }
        }
        if (found) {
            if (capture_.spaces && m.build_id.empty() && !is_given(i))
                problem_({}, fmt::format("'{}' was recorded without a build ID; '{}' is used without a check. If it is "
                                         "another "
                                         "build, its code is decoded wrongly.",
                                         m.file, m.found->path.string()));
            if (options_.code_of_files && !file_of_build(i) && !is_given(i))
                problem_({}, fmt::format("{}: only the pages that ran are known, because there is no build ID to check "
                                         "whether {} is the file that ran. If it is, give it with --image.",
                                         m.file, m.found->path.string()));
            continue;
        }
        // A file that the user gave replaces it.
        if (is_given(i)) continue;
        if (capture_.spaces) {
            // The consequences are known, and reported, after decoding.
            std::error_code none;
            if (m.file.starts_with(kernel) && fs::is_regular_file(kcore_of(capture_), none)) {
                if (!kallsyms().empty()) continue;
                problem_({}, found.error().message +
                                 "; the kernel's code is that of the copy of /proc/kcore, without "
                                 "names. Give vmlinux with --image.");
                continue;
            }
            // If its code ran, missing_code() reports the consequences and where to put the file.
            if (found.error().code == Errc::not_found && !m.file.starts_with(kernel)) continue;
            problem_({},
                     fmt::format("{}; its code is not decoded. Give the file with --image.", found.error().message));
            continue;
        }
        problem_({}, fmt::format("{}; its code has no names{}. Give the file with --symbols, or with --symfs a folder "
                                 "with "
                                 "the files of the recorded machine.",
                                 found.error().message,
                                 options_.code_of_files ? ", and only the pages that ran are known" : ""));
    }
    make_groups();
    return open_generated();
}

/// Finds the copy stored with the capture, or else the file by its name or build ID.
Result<image::FoundFile> NameFinder::find_mapped(const Mapped& m) const {
    std::error_code error;
    const fs::path folder = fs::is_directory(capture_.path, error) ? capture_.path : capture_.path.parent_path();
    for (const capture::CopiedFile& copied : capture_.modules.copies) {
        if (copied.file != m.file || copied.build_id != m.build_id) continue;
        if (auto found = image::open_first({folder / copied.copy}, m.build_id, options_.files)) return found;
    }
    return image::find_file(m.file, m.build_id, options_.files);
}

/// Finds the kernel by build ID, or as `vmlinux` among the files of the recorded machine.
Result<image::FoundFile> NameFinder::find_kernel(const Mapped& m) const {
    std::vector<fs::path> places;
    const image::FileSearch& search = options_.files;
    if (!search.symfs.empty())
        for (const char* name : {"vmlinux", "boot/vmlinux", "usr/lib/debug/vmlinux"})
            places.push_back(search.symfs / name);
    const std::string id = capture::hex_text(m.build_id);
    if (id.size() > 2)
        for (const fs::path& folder : search.build_id_folders()) {
            places.push_back(folder / ".build-id" / id.substr(0, 2) / id.substr(2) / "vmlinux");
            places.push_back(folder / ".build-id" / id.substr(0, 2) / id.substr(2) / "elf");
            places.push_back(folder / ".build-id" / id.substr(0, 2) / (id.substr(2) + ".debug"));
        }
    auto found = image::open_first(places, m.build_id, search);
    if (!found && found.error().message.empty())
        return Error{Errc::not_found, "the vmlinux of the kernel that ran was not found" +
                                          (id.empty() ? std::string() : ", by its build ID " + id)};
    return found;
}

/// Kernel modules below `symfs`, by the kernel's names for them.
std::vector<fs::path> NameFinder::module_files(const std::string& name) const {
    const fs::path& root = options_.files.symfs;
    if (!module_files_) {
        module_files_.emplace();
        std::error_code error;
        if (!root.empty())
            for (auto at = fs::recursive_directory_iterator(root / "lib/modules", error);
                 !error && at != fs::recursive_directory_iterator(); at.increment(error)) {
                std::error_code none;
                const std::string file = at->path().filename().string();
                if (is_kernel_module(file) && at->is_regular_file(none))
                    module_files_->emplace(kernel_module_name(file), at->path());
            }
    }
    std::vector<fs::path> out;
    const auto [first, last] = module_files_->equal_range(name);
    for (auto at = first; at != last; ++at) out.push_back(at->second);
    std::sort(out.begin(), out.end());
    return out;
}

/// Finds the file of a module of which the recorder only knew the name.
Result<image::FoundFile> NameFinder::find_module(const Mapped& m) const {
    const std::string name = kernel_module_name(m.file);
    if (auto found = image::open_first(module_files(name), m.build_id, options_.files)) return found;
    std::string with_dashes = name;
    std::replace(with_dashes.begin(), with_dashes.end(), '_', '-');
    if (auto found = image::find_file("/lib/modules/" + with_dashes + ".ko", m.build_id, options_.files)) return found;
    return image::find_file("/lib/modules/" + name + ".ko", m.build_id, options_.files);
}

/// Captures of `waymark record` have a module map if any code ran. Captures of other tools have none.
void NameFinder::report_no_map() {
    const fs::path path = capture_.path.parent_path() / capture::module_map_file;
    std::error_code error;
    if (!capture_.description.starts_with("recorded under QEMU") || !given_.empty() || fs::exists(path, error)) return;
    problem_(path,
             "This file is missing. It lists the mapped files; without it code has addresses, but no names. "
             "Copy it from the recording, or give the files with --image FILE@ADDRESS.");
}

/// A file of the options takes the place of one that was mapped.
bool NameFinder::is_given(std::size_t mapped) const {
    return std::any_of(given_.begin(), given_.end(), [&](const Given& g) { return g.mapped == mapped && !g.refused; });
}

/// Whether the file is a stripped copy, and a file of the same build with line tables was found.
bool NameFinder::has_fewer_lines(Given& file) {
    if (!file.mapped || !file.info || file.argument.address) return false;
    Mapped& there = mapped_[*file.mapped];
    return there.found && !there.build_id.empty() && file.info->build_id() == there.build_id &&
           there.found->info.build_id() == there.build_id && !file.info->has_lines() && there.found->info.has_lines();
}

/// A copy of a mapped file that has the same build according to its build ID.
std::optional<fs::path> NameFinder::file_of_build(std::size_t mapped) const {
    const Mapped& m = mapped_[mapped];
    // If all code comes from files, only the file of that name can be used.
    if (m.build_id.empty() && capture_.spaces && m.found) return m.found->path;
    if (m.build_id.empty()) return std::nullopt;
    if (m.found && m.found->info.build_id() == m.build_id) return m.found->path;
    for (const Given& g : given_)
        if (g.mapped == mapped && !g.refused && g.info && g.info->build_id() == m.build_id) return g.argument.path;
    return std::nullopt;
}

std::vector<std::pair<fs::path, std::uint64_t>> NameFinder::code_files(const std::string& source) const {
    std::set<std::pair<fs::path, std::uint64_t>> out;
    const auto& all = capture_.modules.modules;
    const auto group = group_of_.find(source);
    if (group == group_of_.end()) return {};
    const Modules& seen = groups_[group->second].modules;
    for (const std::size_t i : seen) {
        if (mapped_of_[i] == no_file) continue;
        const auto path = file_of_build(mapped_of_[i]);
        if (!path || std::any_of(given_.begin(), given_.end(), [&](const Given& g) {
                return g.mapped == mapped_of_[i] && !g.only_names && !g.refused;
            }))
            continue;
        // Code that was mapped there at another time may have run.
        if (std::any_of(seen.begin(), seen.end(),
                        [&](std::size_t k) { return mapped_of_[k] != mapped_of_[i] && all[k].overlaps(all[i]); }))
            continue;
        std::optional<std::uint64_t> bias = bias_of(i);
        for (const Given& g : given_) {
            if (bias || g.mapped != mapped_of_[i] || !g.info) continue;
            bias = module_bias(all[i], g.argument.path);
            if (!bias) bias = g.info->load_bias(all[i].address, all[i].offset, all[i].bytes);
        }
        if (bias) out.emplace(*path, *bias);
    }
    return {out.begin(), out.end()};
}

/// Later files take precedence: the capture's own, then --perf-map, then --jitdump.
Status NameFinder::open_generated() {
    using Format = capture::GeneratedNames::Format;
    const fs::path folder = capture_.path.parent_path();
    for (const capture::GeneratedNames& names : capture_.modules.names)
        WM_RETURN_IF_ERROR(add_generated(names.format == Format::perf_map ? image::read_perf_map(folder / names.file)
                                                                          : image::read_jitdump(folder / names.file),
                                         false));
    for (const std::string& path : options_.perf_maps)
        WM_RETURN_IF_ERROR(add_generated(image::read_perf_map(path), true));
    // With several processes, such code gets places of its own.
    if (!capture_.spaces)
        for (const std::string& path : options_.jitdumps)
            WM_RETURN_IF_ERROR(add_generated(image::read_jitdump(path), true));
    return Nothing{};
}

/// `needed`: the options name the file. If a file of the capture cannot be read, only its names are missing.
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
        problem_({}, fmt::format("For {} of generated code the capture contains other bytes than the jitdump file, and "
                                 "the trace has no clock to compare with the clock of the file: such code has the name "
                                 "whose bytes agree best. Is the file of this run?",
                                 pieces(doubtful_)));
    if (replaced_ != 0)
        problem_({}, fmt::format("{} of generated code had another name before: the trace has no clock to compare "
                                 "with, so the last name of each address is used for the whole trace. A jitdump file "
                                 "(--jitdump) has the code itself, so each name is used where its code ran.",
                                 pieces(replaced_)));
}

std::optional<std::uint64_t> NameFinder::bias_of(std::size_t module) const {
    if (mapped_of_[module] == no_file) return std::nullopt;
    const capture::Module& m = capture_.modules.modules[module];
    const Mapped& file = mapped_[mapped_of_[module]];
    if (!file.found) return std::nullopt;
    if (m.file.starts_with(kernel)) return kernel_bias(m, file.found->path);
    if (const auto bias = module_bias(m, file.found->path)) return bias;
    return file.found->info.load_bias(m.address, m.offset, m.bytes);
}

const KernelFunctions& NameFinder::kernel_functions() const {
    if (kernel_functions_) return *kernel_functions_;
    kernel_functions_.emplace();
    if (const fs::path file = kallsyms(); !file.empty())
        if (const Status status = kernel_functions_->add_kallsyms(file); !status)
            problem_(file, status.error().message);
    const auto add = [&](const capture::Module& m, const fs::path& vmlinux) {
        // The reader of its names reports an error.
        if (const auto bias = kernel_bias(m, vmlinux)) (void)kernel_functions_->add_kernel(vmlinux, *bias);
    };
    const auto& all = capture_.modules.modules;
    const auto first = std::find_if(all.begin(), all.end(), [](const auto& m) { return m.file.starts_with(kernel); });
    if (first == all.end()) return *kernel_functions_;
    const std::size_t mapped = mapped_of_[static_cast<std::size_t>(first - all.begin())];
    if (mapped_[mapped].found) add(*first, mapped_[mapped].found->path);
    for (const Given& g : given_)
        if (g.mapped == mapped && !g.refused && !g.only_names) add(*first, g.argument.path);
    return *kernel_functions_;
}

std::optional<std::uint64_t> NameFinder::kernel_function(const std::string& name) {
    return kernel_functions().address_of(name);
}

/// Finds the load bias by the addresses of the module's functions, since the beginning of a module depends on the
/// kernel. nullopt if it is not a module, or kallsyms does not have it.
std::optional<std::uint64_t> NameFinder::module_bias(const capture::Module& m, const fs::path& file) const {
    if (!is_kernel_module(m.file)) return std::nullopt;
    const auto [at, fresh] = kernel_modules_.try_emplace({m.file, file});
    if (fresh) {
        at->second = kernel_functions().place(kernel_module_name(m.file), file);
        if (at->second && at->second->others > at->second->agreeing / 16)
            problem_(file, fmt::format("it is of another build than the module that was loaded: of {} of its functions "
                                       "in kallsyms, {} have another distance from the rest. Its code may be decoded "
                                       "wrongly; give the file of that build.",
                                       at->second->agreeing + at->second->others, at->second->others));
    }
    if (!at->second) {
        if (!m.code_offset) return std::nullopt;
        const auto info = image::DebugInfo::open(file);
        if (!info || info->segments().empty()) return std::nullopt;
        return m.address.value + *m.code_offset - info->segments().front().address.value;
    }
    if (m.holds({at->second->load_bias})) return at->second->load_bias;
    problem_(file,
             fmt::format(
                 "by kallsyms its code is at {:#x}, but the capture has it from {:#x} on: kallsyms is of another boot, "
                 "or the module was loaded again. The beginning of the mapping is used; give the kallsyms of that run.",
                 at->second->load_bias, m.address.value));
    return std::nullopt;
}

std::optional<std::uint64_t> NameFinder::bias_in(const Given& file, const Modules& modules) const {
    if (!file.mapped) return std::nullopt;
    for (const std::size_t module : modules) {
        if (mapped_of_[module] != *file.mapped) continue;
        if (const auto bias = bias_of(module)) return bias;
        const capture::Module& m = capture_.modules.modules[module];
        if (m.file.starts_with(kernel)) return kernel_bias(m, file.argument.path);
        if (const auto bias = module_bias(m, file.argument.path)) return bias;
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

/// Linux joins adjacent anonymous mappings, so such an area may begin at another address later. Its code keeps one
/// name: the distance from the beginning of the whole joined area.
std::uint64_t NameFinder::offset_of(const capture::Module& module) const {
    if (!module.file.empty()) return module.offset;
    return module.address.value - std::prev(without_file_.upper_bound(module.address.value))->first;
}

/// Whether no address of one belongs to different files in both.
bool NameFinder::fits(const Modules& a, const Modules& b) const {
    const auto& all = capture_.modules.modules;
    const auto last = [&](std::size_t n) { return all[n].address.value + (all[n].bytes - 1); };
    // Mappings sorted by address, with the highest end address up to each entry. A program that loads libraries
    // repeatedly has thousands of lines, few of which overlap.
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
    const auto pieces_in = [&](const image::MemoryMap& seen) {
        image::NamedPieces found = image::named_pieces(generated_, seen);
        for (image::NamedPiece& piece : found.pieces) piece.from = first_of_name_[piece.from];
        return found;
    };
    const auto above = [&](const std::shared_ptr<const Names>& base, const std::vector<image::NamedPiece>& pieces) {
        auto names = std::make_shared<Names>();
        names->files = group.names->files;
        names->symbols.set_base({base, &base->symbols});
        for (const image::NamedPiece& piece : pieces)
            names->symbols.add(generated_[piece.from].name, piece.address, piece.bytes, image::SymbolKind::function);
        return names;
    };
    // All sources name the same addresses, most with the same result. They share the usual names, and each source has
    // its own different names in addition.
    if (usual_.empty()) usual_ = pieces_in({}).pieces;
    if (!group.usual) group.usual = above(group.names, usual_);
    const image::NamedPieces found = pieces_in(memory);
    std::vector<image::NamedPiece> others;
    std::set_difference(found.pieces.begin(), found.pieces.end(), usual_.begin(), usual_.end(),
                        std::back_inserter(others));
    const auto [at, fresh] = group.with_generated.try_emplace(others);
    if (fresh) {
        at->second = others.empty() ? group.usual : above(group.usual, others);
        doubtful_ = std::max(doubtful_, found.doubtful);
        replaced_ = std::max(replaced_, found.replaced);
    }
    return at->second;
}

/// The given file, or the copy that perf saved with the kernel's code.
fs::path NameFinder::kallsyms() const {
    if (!options_.kallsyms.empty()) return options_.kallsyms;
    std::error_code none;
    fs::path copied = kcore_of(capture_).parent_path() / "kallsyms";
    return fs::is_regular_file(copied, none) ? copied : fs::path();
}

/// If no file has names for the kernel or a module, /proc/kallsyms has them: with addresses of the running kernel, like
/// the kernel's mapping.
void NameFinder::add_kernel_functions(const Modules& modules, image::Symbols& to) {
    const auto is_nameless = [&](std::size_t module) {
        const std::size_t file = mapped_of_[module];
        return file != no_file && (mapped_[file].file.starts_with(kernel) || is_kernel_module(mapped_[file].file)) &&
               !mapped_[file].found && !is_given(file);
    };
    std::vector<const capture::Module*> areas;
    for (const std::size_t module : modules)
        if (is_nameless(module)) areas.push_back(&capture_.modules.modules[module]);
    const fs::path path = kallsyms();
    if (areas.empty() || path.empty()) return;
    const auto text = analysis::read_kallsyms(path);
    if (!text && !options_.kallsyms.empty()) problem_(path, text.error().message);
    if (!text) return;
    analysis::kallsyms_functions(*text, [&](analysis::KernelFunction f) {
        if (std::any_of(areas.begin(), areas.end(), [&](const capture::Module* m) { return m->holds({f.address}); }))
            to.add(std::move(f.name), {f.address}, 0, image::SymbolKind::function);
        return true;
    });
}

Result<std::shared_ptr<const Names>> NameFinder::make(const Modules& modules) {
    auto out = std::make_shared<Names>();
    if (capture_.x86_64) out->symbols.accept(image::Machines::arm_and_x86_64);
    std::set<std::pair<fs::path, std::uint64_t>> taken;
    const auto take = [&](const fs::path& path, image::DebugInfo& info, std::uint64_t bias,
                          const std::string& name) -> Status {
        if (!taken.emplace(path, bias).second) return Nothing{};
        const auto added = image::add_all_symbols(out->symbols, path, info, bias);
        if (!added) return added.error();
        out->files.push_back({path.string(), bias, options_.files.debug_path(), name});
        return Nothing{};
    };
    // Names from given files take precedence.
    for (Given& file : given_) {
        if (file.refused) continue;
        if (!file.info) {
            // Not an ELF file with segments: a memory dump, or an object file.
            const auto kind = image::recognise(file.argument.path);
            if (!file.only_names && (!kind || *kind != image::ImageKind::elf)) continue;
            const auto added =
                out->symbols.add_elf(file.argument.path, file.argument.address.value_or(Address{}).value);
            if (!added) return added.error();
            continue;
        }
        const std::uint64_t bias =
            file.argument.address ? file.argument.address->value : bias_in(file, modules).value_or(0);
        if (has_fewer_lines(file)) {
            // The original file follows with the modules; it has the line tables of this build.
            WM_RETURN_IF_ERROR(image::add_all_symbols(out->symbols, file.argument.path, *file.info, bias));
            continue;
        }
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
        // If a file cannot be read, only its names are missing.
        if (const Status status = take(file.found->path, file.found->info, *bias, file.file); !status)
            problem_(file.found->path, status.error().message);
    }
    add_kernel_functions(modules, out->symbols);
    if (changed_) changed_->add_symbols(out->symbols);
    return std::shared_ptr<const Names>(out);
}

}  // namespace waymark::pipeline
