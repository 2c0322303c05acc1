#include "waymark/analysis/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>

#include "waymark/analysis/kallsyms.h"
#include "waymark/capture/module_map.h"
#include "waymark/image/symbols.h"

namespace waymark::analysis {

namespace perf = capture::perf;
namespace fs = std::filesystem;

namespace {

bool is_kernel_text(const perf::Mapping& m) { return m.pid == perf::nobody && m.file.starts_with("[kernel.kallsyms]"); }
bool has_no_file(std::string_view name) { return name.empty() || name[0] == '[' || name.starts_with("//anon"); }

}  // namespace

struct Program::State {
    State(const SampleCapture& c, ProgramOptions o) : capture(c), options(std::move(o)) {
        files.push_back({"[not mapped]", {}, {}, {}, false});
        opened.emplace_back();
        opened.back().tried = true;
        of_mapping.assign(capture.data->mappings.size(), none);
        for (const perf::BuildId& id : capture.data->build_ids) build_ids[id.file] = id.id;
    }

    static constexpr std::uint32_t none = 0xffffffff;

    /// The contents of one File.
    struct Opened {
        bool tried = false;
        std::optional<image::DebugInfo> info;
        image::Symbols symbols;
        std::uint64_t kernel_bias = 0;                               // runtime address minus address in the file
        bool runtime_addresses = false;                              // symbols come from the running kernel
        std::unordered_map<std::uint64_t, std::uint32_t> functions;  // by address in the file
        std::uint32_t nameless = none;
    };

    std::uint32_t file_of(std::uint32_t mapping) {
        std::uint32_t& known = of_mapping[mapping - 1];
        if (known != none) return known;
        const perf::Mapping& m = capture.data->mappings[mapping - 1];
        std::vector<std::uint8_t> id = m.build_id;
        if (id.empty())
            if (const auto found = build_ids.find(m.file); found != build_ids.end()) id = found->second;
        if (id.empty() && is_kernel_text(m))
            if (const auto found = build_ids.find("[kernel.kallsyms]"); found != build_ids.end()) id = found->second;
        const std::string name = is_kernel_text(m) ? "[kernel]" : m.file;
        const auto [at, fresh] = by_name.try_emplace({name, id}, static_cast<std::uint32_t>(files.size()));
        if (fresh) {
            files.push_back({name, {}, {}, id, false});
            opened.emplace_back();
        }
        return known = at->second;
    }

    /// Places to search for the kernel's program, best first.
    [[nodiscard]] std::vector<fs::path> kernel_places(const File& file) const {
        std::vector<fs::path> out;
        const image::FileSearch& search = options.files;
        if (!search.symfs.empty())
            for (const std::string& name : {std::string("vmlinux"), "boot/vmlinux-" + capture.data->release,
                                            "usr/lib/debug/boot/vmlinux-" + capture.data->release})
                out.push_back(search.symfs / name);
        const std::string id = capture::hex_text(file.build_id);
        if (id.size() > 2)
            for (const fs::path& folder : search.build_id_folders()) {
                out.push_back(folder / ".build-id" / id.substr(0, 2) / id.substr(2) / "vmlinux");
                out.push_back(folder / ".build-id" / id.substr(0, 2) / (id.substr(2) + ".debug"));
            }
        return out;
    }

    void open(std::uint32_t number, const perf::Mapping& mapping) {
        Opened& o = opened[number];
        if (o.tried) return;
        o.tried = true;
        File& file = files[number];
        const bool kernel = is_kernel_text(mapping);
        if (kernel && read_kallsyms(file, o)) return;
        if (!kernel && has_no_file(file.name)) {
            file.problem = "code that is in no file";
            return;
        }
        auto found = kernel ? image::open_first(kernel_places(file), file.build_id, options.files)
                            : image::find_file(file.name, file.build_id, options.files);
        if (found) {
            file.path = found->path.string();
            o.info.emplace(std::move(found->info));
            read_symbols(file, o);
            if (kernel) {
                const auto text = o.symbols.address_of("_text");
                o.kernel_bias = text ? mapping.file_offset - text->value : 0;
            }
            return;
        }
        if (!found.error().message.empty())
            file.problem = found.error().message;
        else if (kernel && given_kallsyms && !*given_kallsyms)
            file.problem = given_kallsyms->error().message;
        else if (kernel && !options.kallsyms.empty())
            file.problem = fmt::format("{} {}", options.kallsyms.string(), no_kallsyms);
        else if (kernel)
            file.problem =
                "the kernel's symbols were not found; give a copy of its /proc/kallsyms with --kallsyms, or its "
                "vmlinux in --symfs DIR";
    }

    void read_symbols(File& file, Opened& o) {
        const auto added = image::add_all_symbols(o.symbols, file.path, *o.info, 0);
        for (const image::DebugInfo::Segment& segment : o.info->segments())
            if (segment.executable) o.symbols.add_area(file.name, segment.address, segment.bytes, segment.offset);
        const std::size_t count = added ? *added : 0;
        file.symbols = count != 0;
        if (!added)
            file.problem = added.error().message;
        else if (count == 0)
            file.problem = file.path + " has no symbols";
        else if (!o.info->has_lines())
            file.problem = file.path + " has no debug information, so there are no source lines";
    }

    /// Addresses of the running kernel, from a copy of /proc/kallsyms: `ADDRESS TYPE NAME`.
    bool read_kallsyms(File& file, Opened& o) {
        std::vector<fs::path> paths;
        if (!options.kallsyms.empty()) {
            // Read once for all files of the kernel: a pipe can be read only once.
            if (!given_kallsyms) given_kallsyms = analysis::read_kallsyms(options.kallsyms);
            if (!*given_kallsyms) return false;
            if (add_kallsyms(**given_kallsyms, o)) return named_by(options.kallsyms, file, o);
        }
        if (const char* home = std::getenv("HOME"); home != nullptr && !file.build_id.empty())
            paths.push_back(fs::path(home) / ".debug/[kernel.kallsyms]" / capture::hex_text(file.build_id) /
                            "kallsyms");
        for (const fs::path& path : paths)
            if (const auto text = analysis::read_kallsyms(path); text && add_kallsyms(*text, o))
                return named_by(path, file, o);
        return false;
    }
    static bool named_by(const fs::path& path, File& file, Opened& o) {
        file.path = path.string();
        file.symbols = o.runtime_addresses = true;
        return true;
    }
    /// Returns whether the text contains a function.
    static bool add_kallsyms(std::string_view text, Opened& o) {
        bool any = false;
        kallsyms_functions(text, [&](KernelFunction function) {
            o.symbols.add(std::move(function.name), {function.address}, 0, image::SymbolKind::function);
            return any = true;
        });
        return any;
    }

    std::uint32_t function(std::uint32_t file, std::string_view name, std::string_view linkage_name, Address address) {
        const auto [at, fresh] =
            opened[file].functions.try_emplace(address.value, static_cast<std::uint32_t>(functions.size()));
        if (fresh) functions.push_back({file, std::string(name), address, std::string(linkage_name)});
        return at->second;
    }
    std::uint32_t nameless(std::uint32_t file) {
        std::uint32_t& known = opened[file].nameless;
        if (known == none) {
            known = static_cast<std::uint32_t>(functions.size());
            functions.push_back({file, {}, {}, {}});
        }
        return known;
    }

    /// The address in the file.
    std::optional<Address> address(std::uint32_t file, const perf::Mapping& m, std::uint64_t pc) {
        const Opened& o = opened[file];
        if (is_kernel_text(m)) return Address{o.runtime_addresses ? pc : pc - o.kernel_bias};
        if (!o.info) return std::nullopt;
        return o.info->address_of(pc - m.address.value + m.file_offset);
    }

    const SampleCapture& capture;
    ProgramOptions options;
    std::optional<Result<std::string>> given_kallsyms;  // once read
    std::vector<std::uint32_t> of_mapping;
    std::map<std::string, std::vector<std::uint8_t>> build_ids;
    std::map<std::pair<std::string, std::vector<std::uint8_t>>, std::uint32_t> by_name;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> starts;  // pid and address to mapping
    // By process: the files with segments that it maps, each with its bias. A file may occur twice.
    std::map<std::uint32_t, std::set<std::pair<std::uint32_t, std::uint64_t>>> loaded;
    std::vector<File> files;
    std::vector<Opened> opened;
    std::vector<Function> functions;
};

Program::Program(const SampleCapture& capture, ProgramOptions options)
    : state_(std::make_unique<State>(capture, std::move(options))) {}
Program::~Program() = default;

Program::Code Program::find(std::uint32_t mapping, std::uint64_t pc) {
    State& s = *state_;
    if (mapping == 0) {
        for (const perf::KernelSymbol& symbol : s.capture.data->kernel_symbols)
            if (!symbol.unregistered && pc >= symbol.address.value && pc - symbol.address.value < symbol.bytes)
                return {0, s.function(0, symbol.name, symbol.name, symbol.address), Address{pc}};
        return {0, s.nameless(0), std::nullopt};
    }
    const perf::Mapping& m = s.capture.data->mappings[mapping - 1];
    const std::uint32_t file = s.file_of(mapping);
    s.open(file, m);
    const std::optional<Address> address = s.address(file, m, pc);
    if (!address) return {file, s.nameless(file), std::nullopt};
    if (const auto found = s.opened[file].symbols.find(*address))
        return {file, s.function(file, found->name, found->symbol.linkage_name, found->symbol.address), address};
    if (const auto before = s.opened[file].symbols.before(*address))
        return {file, s.function(file, before->name, {}, before->address), address};
    return {file, s.nameless(file), address};
}

std::optional<image::SourceLine> Program::line(std::uint32_t mapping, std::uint64_t pc) {
    const Code code = find(mapping, pc);
    State::Opened& o = state_->opened[code.file];
    if (!code.address || !o.info) return std::nullopt;
    return o.info->line(*code.address);
}

std::vector<image::InlinedCall> Program::inlined(std::uint32_t mapping, std::uint64_t pc) {
    const Code code = find(mapping, pc);
    State::Opened& o = state_->opened[code.file];
    if (!code.address || !o.info) return {};
    return o.info->inlined(*code.address).calls;
}

std::optional<image::DeclaredFunction> Program::declared(std::uint32_t function) {
    const Function& f = state_->functions[function];
    State::Opened& o = state_->opened[f.file];
    if (f.name.empty() || !o.info) return std::nullopt;
    return o.info->function(f.address);
}

std::uint32_t Program::mapping_beside(std::uint32_t mapping, std::uint64_t address) {
    if (mapping == 0) return 0;
    const auto& mappings = state_->capture.data->mappings;
    const auto holds = [&](std::uint32_t number) {
        const perf::Mapping& m = mappings[number - 1];
        return address >= m.address.value && address - m.address.value < m.bytes;
    };
    if (holds(mapping)) return mapping;
    auto& starts = state_->starts;
    if (starts.empty())
        for (std::uint32_t i = 0; i < mappings.size(); ++i)
            starts.insert_or_assign({mappings[i].pid, mappings[i].address.value}, i + 1);
    const std::uint32_t pid = mappings[mapping - 1].pid;
    const auto next = starts.upper_bound({pid, address});
    if (next == starts.begin()) return 0;
    const auto& [where, number] = *std::prev(next);
    return where.first == pid && holds(number) ? number : 0;
}

std::optional<Program::Variable> Program::variable(std::uint32_t mapping, std::uint64_t address) {
    if (mapping == 0) return std::nullopt;
    State& s = *state_;
    const auto& mappings = s.capture.data->mappings;
    const std::uint32_t pid = mappings[mapping - 1].pid;
    const auto [images, fresh] = s.loaded.try_emplace(pid);
    if (fresh)
        for (std::uint32_t i = 0; i < mappings.size(); ++i) {
            const perf::Mapping& m = mappings[i];
            if (m.pid != pid || is_kernel_text(m) || has_no_file(m.file)) continue;
            const std::uint32_t file = s.file_of(i + 1);
            s.open(file, m);
            const auto in_file = s.address(file, m, m.address.value);
            if (in_file) images->second.emplace(file, m.address.value - in_file->value);
        }
    for (const auto& [file, bias] : images->second) {
        const State::Opened& o = s.opened[file];
        const std::uint64_t in_file = address - bias;
        const auto& segments = o.info->segments();
        if (std::none_of(segments.begin(), segments.end(), [&](const image::DebugInfo::Segment& segment) {
                return in_file >= segment.address.value && in_file - segment.address.value < segment.bytes;
            }))
            continue;
        const auto found = o.symbols.find(Address{in_file});
        if (found && found->symbol.kind == image::SymbolKind::object) return Variable{found->name, found->offset};
    }
    return std::nullopt;
}

const Program::Function& Program::function(std::uint32_t number) const { return state_->functions[number]; }
const Program::File& Program::file(std::uint32_t number) const { return state_->files[number]; }
std::uint32_t Program::files() const { return static_cast<std::uint32_t>(state_->files.size()); }

std::string_view Program::short_name(std::string_view file) {
    const std::size_t slash = file.rfind('/');
    return slash == file.npos ? file : file.substr(slash + 1);
}

std::string Program::function_text(std::uint32_t number) const {
    const Function& f = function(number);
    return f.name.empty() ? fmt::format("(no symbol) {}", short_name(file(f.file).name)) : f.name;
}

}  // namespace waymark::analysis
