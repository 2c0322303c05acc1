/// Finds where Linux loaded a kernel module (.ko), a relocatable file, and resolves calls from the module's code to
/// other code.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/image/symbols.h"

namespace waymark::pipeline {

/// Whether a file that the kernel mapped is a module: `/lib/modules/…/x.ko`, perhaps compressed, or `[x]`.
[[nodiscard]] bool is_kernel_module(std::string_view file);
/// Whether a kernel was mapped, also a guest's, or a module: `[kernel.kallsyms]_text`, `[guest.kernel.kallsyms]`, or
/// is_kernel_module().
[[nodiscard]] bool is_kernel(std::string_view file);
/// Whether the name is `[x]`, so that the path of the module is not known.
[[nodiscard]] bool is_module_without_path(std::string_view file);
/// The kernel's own name for a module: `x_y` for `/lib/x-y.ko.xz` and for `[x_y]`.
[[nodiscard]] std::string kernel_module_name(std::string_view file);

/// The functions of a running kernel, from copies of /proc/kallsyms and vmlinux.
class KernelFunctions {
public:
    /// Adds a copy of /proc/kallsyms. Errors: it cannot be read.
    Status add_kallsyms(const std::filesystem::path& file);
    /// Adds the kernel's file; the running kernel's addresses are higher by `load_bias`. Errors: the errors of
    /// `Symbols::add_elf`.
    Status add_kernel(const std::filesystem::path& vmlinux, std::uint64_t load_bias);

    /// A function that other files can call; the kernel's own functions come before the modules'.
    [[nodiscard]] std::optional<std::uint64_t> address_of(const std::string& name) const;

    struct Place {
        std::uint64_t load_bias{};
        std::size_t agreeing{},
            others{};  ///< number of the module's functions that agree with this place, and of the others
    };
    /// The place of a module with which most of its functions agree; nullopt if kallsyms has none of them.
    [[nodiscard]] std::optional<Place> place(const std::string& module, const std::filesystem::path& file) const;

private:
    struct Function {
        std::uint64_t address{};
        bool of_kernel{}, global{};
    };
    std::map<std::string, Function> callable_;
    std::map<std::string, std::vector<std::pair<std::string, std::uint64_t>>> modules_;
    image::Symbols kernel_;
};

}  // namespace waymark::pipeline
