/// Names for the places of samples: file, function, source line (docs/spec/spe.md, section 5.5).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/samples.h"
#include "waymark/core/types.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/program_file.h"

namespace waymark::analysis {

/// Where to search for the mapped files.
struct ProgramOptions {
    image::FileSearch files{};
    /// A copy of the machine's /proc/kallsyms.
    std::filesystem::path kallsyms{};
};

/// Files are opened at the first lookup of a place in them. A file with another build ID than the recorded one is not
/// used. Not thread-safe.
class Program {
public:
    /// `capture` is borrowed and must outlive this.
    Program(const SampleCapture& capture, ProgramOptions options);
    ~Program();

    /// A function, or all code of a file without symbols.
    struct Function {
        std::uint32_t file{};
        std::string name{};          ///< readable name; empty: not known
        Address address{};           ///< in the file
        std::string linkage_name{};  ///< name in the symbol table
    };
    struct File {
        std::string name{};                    ///< recorded name; `[kernel]`, `[not mapped]`
        std::string path{};                    ///< the opened file; empty: none
        std::string problem{};                 ///< why there are no names or no lines; empty if there is no problem
        std::vector<std::uint8_t> build_id{};  ///< as recorded
        bool symbols{};
    };
    struct Code {
        std::uint32_t file{}, function{};
        std::optional<Address> address{};  ///< address in the file, without load bias; absent: not known
    };

    /// `mapping` as in SampleBatch.
    [[nodiscard]] Code find(std::uint32_t mapping, std::uint64_t pc);
    /// The source line, if there is debug information.
    [[nodiscard]] std::optional<image::SourceLine> line(std::uint32_t mapping, std::uint64_t pc);

    /// The inlined calls that contain a place, the outermost first.
    [[nodiscard]] std::vector<image::InlinedCall> inlined(std::uint32_t mapping, std::uint64_t pc);

    /// A function as declared in the source (image::DebugInfo::function); nullopt if that is not known.
    [[nodiscard]] std::optional<image::DeclaredFunction> declared(std::uint32_t function);

    /// The mapping that contains an address in the process of `mapping`, by the latest state; 0: none.
    [[nodiscard]] std::uint32_t mapping_beside(std::uint32_t mapping, std::uint64_t address);

    /// A place inside a variable.
    struct Variable {
        std::string_view name{};  ///< readable name; valid as long as this object
        std::uint64_t offset{};   ///< from its begin
    };
    /// The variable that contains an address, in the files that are mapped in the process of `mapping`. Addresses of
    /// data are derived from addresses of code, since perf.data files often do not record mappings of data. nullopt for
    /// stack and heap.
    [[nodiscard]] std::optional<Variable> variable(std::uint32_t mapping, std::uint64_t address);

    /// By Code::function; grows with lookups.
    [[nodiscard]] const Function& function(std::uint32_t number) const;
    [[nodiscard]] const File& file(std::uint32_t number) const;
    [[nodiscard]] std::uint32_t files() const;
    /// The function's name, or `(no symbol) in libfoo.so`.
    [[nodiscard]] std::string function_text(std::uint32_t number) const;
    /// The last part of a file's name.
    [[nodiscard]] static std::string_view short_name(std::string_view file);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::analysis
