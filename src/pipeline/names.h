/// Provides names for the sources of a capture, from the files of its module map and of the options, each at the
/// address where it was mapped while a source traced.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernel_modules.h"
#include "waymark/image/generated_code.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_file.h"
#include "waymark/pipeline/changed_code.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// The folder in which perf record --kcore stores its copy of the kernel's memory.
[[nodiscard]] inline std::filesystem::path kcore_of(const capture::Capture& capture) {
    return capture.path / "kcore_dir" / "kcore";
}

class NameFinder {
public:
    using Problem = std::function<void(const std::filesystem::path& file, std::string message)>;

    /// `problem`: receives problems with code without names. `refused`: receives images of the options that are not
    /// used.
    NameFinder(const capture::Capture& capture, const SessionOptions& options, Problem problem, Problem refused)
        : capture_(capture), options_(options), problem_(std::move(problem)), refused_(std::move(refused)) {}

    using Memory = std::vector<std::shared_ptr<const image::MemoryMap>>;
    /// Opens the files. `dumped`: returns the memory in the capture itself; called only if that memory decides whether
    /// a file is the mapped one. Errors: a file of the options cannot be read.
    Status open(const std::function<Memory()>& dumped);

    /// Sources share one object if they saw the same files and the same generated code at the same addresses. `memory`:
    /// the memory that the source's core saw.
    Result<std::shared_ptr<const Names>> names_of(const std::string& source, const image::MemoryMap& memory);
    /// The files that a source saw, by path and load bias, whose code certainly was mapped: the build ID agrees, and
    /// nothing else was mapped at the same place. Files of the options are omitted.
    [[nodiscard]] std::vector<std::pair<std::filesystem::path, std::uint64_t>> code_files(
        const std::string& source) const;
    /// Sets code that has separate places; call it before `names_of`.
    void set_changed_code(std::shared_ptr<const ChangedCode> changed) { changed_ = std::move(changed); }
    /// The address of a kernel function, for calls from a kernel module.
    [[nodiscard]] std::optional<std::uint64_t> kernel_function(const std::string& name);
    /// Reports generated code whose names do not fit its bytes. Call it after all sources.
    void report_doubtful();

    /// The load bias of a file of the options: the address given with it, otherwise where a source saw it mapped,
    /// otherwise 0.
    [[nodiscard]] std::uint64_t load_bias(const image::ImageArgument& argument, const std::string& source) const;
    /// The load bias that the first source saw.
    [[nodiscard]] std::uint64_t load_bias(const image::ImageArgument& argument) const;
    /// Whether a module of the map is this file.
    [[nodiscard]] bool is_mapped(const image::ImageArgument& argument) const;
    /// Whether the map shows that an image cannot be the executed file: neither its code nor its names are used.
    [[nodiscard]] bool is_refused(const image::ImageArgument& argument) const;

private:
    /// A file that was mapped.
    struct Mapped {
        std::string file;
        std::vector<std::uint8_t> build_id;
        std::optional<image::FoundFile> found;
    };
    /// A file of the options.
    struct Given {
        image::ImageArgument argument;
        bool only_names = false;
        std::optional<std::size_t> mapped;  ///< the same file in mapped_
        std::optional<image::DebugInfo> info;
        bool refused = false;
    };
    using Modules = std::vector<std::size_t>;  // indices of modules in the map

    Status add_given(const image::ImageArgument& argument, bool only_names);
    [[nodiscard]] Result<image::FoundFile> find_mapped(const Mapped& mapped) const;
    [[nodiscard]] Result<image::FoundFile> find_kernel(const Mapped& mapped) const;
    [[nodiscard]] Result<image::FoundFile> find_module(const Mapped& mapped) const;
    [[nodiscard]] std::vector<std::filesystem::path> module_files(const std::string& name) const;
    [[nodiscard]] const KernelFunctions& kernel_functions() const;
    [[nodiscard]] std::string why_refused(const Given& file) const;
    [[nodiscard]] const Given* given(const image::ImageArgument& argument) const;
    [[nodiscard]] std::optional<std::uint64_t> bias_of(std::size_t module) const;
    /// The load bias of this file if the module belongs to the kernel.
    [[nodiscard]] std::optional<std::uint64_t> module_bias(const capture::Module& module,
                                                           const std::filesystem::path& file) const;
    [[nodiscard]] std::optional<std::uint64_t> bias_in(const Given& file, const Modules& modules) const;
    [[nodiscard]] std::uint64_t offset_of(const capture::Module& module) const;
    [[nodiscard]] bool fits(const Modules& a, const Modules& b) const;
    void make_groups();
    Result<std::shared_ptr<const Names>> make(const Modules& modules);
    [[nodiscard]] std::filesystem::path kallsyms() const;
    void add_kernel_functions(const Modules& modules, image::Symbols& to);
    void report_no_map();
    [[nodiscard]] std::string why_another(std::size_t mapped, const Memory& dumped) const;
    Status open_generated();
    [[nodiscard]] bool has_fewer_lines(Given& file);
    [[nodiscard]] bool is_given(std::size_t mapped) const;
    [[nodiscard]] std::optional<std::filesystem::path> file_of_build(std::size_t mapped) const;
    Status add_generated(Result<image::GeneratedCodeFile> file, bool needed);

    const capture::Capture& capture_;
    const SessionOptions& options_;
    Problem problem_, refused_;
    std::vector<Mapped> mapped_;
    std::vector<std::size_t> mapped_of_;  ///< by module; nullopt: no file
    std::vector<Given> given_;
    /// Anonymous memory that was mapped at any time: first address → last address; adjacent areas are joined.
    std::map<std::uint64_t, std::uint64_t> without_file_;
    struct Group {
        Modules modules;
        std::shared_ptr<const Names> names;
        std::shared_ptr<const Names> usual{};  ///< with generated code placed as in usual_
        /// Names with generated code, by the pieces whose places differ from usual_.
        std::map<std::vector<image::NamedPiece>, std::shared_ptr<const Names>> with_generated{};
    };
    std::vector<Group> groups_;
    std::map<std::string, std::size_t> group_of_;  ///< by source
    std::vector<image::GeneratedCode> generated_;  ///< of all files, in order
    std::vector<std::shared_ptr<const void>> generated_owners_;
    std::vector<std::size_t> first_of_name_;  ///< by index in it: the first entry with the same name
    std::map<std::string, std::size_t> names_met_;
    std::vector<image::NamedPiece> usual_;  ///< places of generated code, unless memory says otherwise
    std::size_t doubtful_ = 0, replaced_ = 0;
    std::shared_ptr<const ChangedCode> changed_;  ///< may be null
    /// Read when the first kernel module is placed; and the place of each module, by name in the capture and file.
    mutable std::optional<KernelFunctions> kernel_functions_;
    mutable std::map<std::pair<std::string, std::filesystem::path>, std::optional<KernelFunctions::Place>>
        kernel_modules_;
    mutable std::optional<std::multimap<std::string, std::filesystem::path>>
        module_files_;  ///< files below symfs, by name
};

}  // namespace waymark::pipeline
