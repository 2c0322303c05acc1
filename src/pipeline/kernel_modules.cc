#include "kernel_modules.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <utility>

#include "waymark/analysis/kallsyms.h"

namespace waymark::pipeline {

namespace fs = std::filesystem;

bool is_module_without_path(std::string_view file) {
    if (file.size() < 3 || file.front() != '[' || file.back() != ']') return false;
    // Other mappings with such names: parts of the kernel, and its mappings in each process.
    constexpr std::array<std::string_view, 9> others{"kernel",  "guest",   "bpf",    "vdso", "vvar",
                                                     "vectors", "sigpage", "uprobe", "vsysc"};
    file.remove_prefix(1);
    return std::none_of(others.begin(), others.end(), [&](std::string_view other) { return file.starts_with(other); });
}

bool is_kernel_module(std::string_view file) {
    if (is_module_without_path(file)) return true;
    const std::string name = fs::path(file).filename().string();
    const std::size_t end = name.rfind(".ko");
    return end != name.npos && end != 0 && (end + 3 == name.size() || name[end + 3] == '.');
}

bool is_kernel(std::string_view file) {
    return file.starts_with("[kernel.kallsyms]") || file.starts_with("[guest.kernel.kallsyms") ||
           is_kernel_module(file);
}

std::string kernel_module_name(std::string_view file) {
    std::string name = fs::path(file).filename().string();
    if (name.size() > 2 && name.front() == '[' && name.back() == ']') return name.substr(1, name.size() - 2);
    name = name.substr(0, name.rfind(".ko"));
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

Status KernelFunctions::add_kallsyms(const fs::path& file) {
    WM_ASSIGN_OR_RETURN(const std::string text, analysis::read_kallsyms(file));
    analysis::kallsyms_functions(text, [this](analysis::KernelFunction function) {
        if (!function.module.empty()) modules_[function.module].emplace_back(function.name, function.address);
        const Function met{function.address, function.module.empty(), function.global};
        const auto [at, fresh] = callable_.try_emplace(std::move(function.name), met);
        const auto rank = [](const Function& f) { return std::pair(f.global, f.of_kernel); };
        if (!fresh && rank(met) > rank(at->second)) at->second = met;
        return true;
    });
    return Nothing{};
}

Status KernelFunctions::add_kernel(const fs::path& vmlinux, std::uint64_t load_bias) {
    if (const auto added = kernel_.add_elf(vmlinux, load_bias); !added) return added.error();
    return Nothing{};
}

std::optional<std::uint64_t> KernelFunctions::address_of(const std::string& name) const {
    if (const auto found = callable_.find(name); found != callable_.end()) return found->second.address;
    if (const auto found = kernel_.address_of(name)) return found->value;
    return std::nullopt;
}

std::optional<KernelFunctions::Place> KernelFunctions::place(const std::string& module, const fs::path& file) const {
    const auto functions = modules_.find(module);
    image::Symbols symbols;
    if (functions == modules_.end() || !symbols.add_elf(file)) return std::nullopt;
    // If several functions share a name, any of them may match; the right pairs agree with each other.
    std::unordered_multimap<std::string, std::uint64_t> in_file;
    for (const image::Symbol& symbol : symbols.all())
        if (symbol.kind == image::SymbolKind::function)
            in_file.emplace(symbol.linkage_name.empty() ? symbol.name : symbol.linkage_name, symbol.address.value);
    std::map<std::uint64_t, std::size_t> votes;  // by load bias
    std::size_t known = 0;
    for (const auto& [name, address] : functions->second) {
        const auto [first, last] = in_file.equal_range(name);
        for (auto at = first; at != last; ++at) ++votes[address - at->second];
        known += first != last ? 1 : 0;
    }
    const auto most =
        std::max_element(votes.begin(), votes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    if (most == votes.end()) return std::nullopt;
    return Place{most->first, most->second, known - std::min(known, most->second)};
}

}  // namespace waymark::pipeline
