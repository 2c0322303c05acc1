/// Names for the places samples come from: file, function, source line (docs/spec/spe.md, section 5.5).
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

/// Where to look for the files that were mapped.
struct ProgramOptions {
    image::FileSearch files{};
    /// A copy of the machine's /proc/kallsyms.
    std::filesystem::path kallsyms{};
};

/// Files are opened when a place in them is asked for first. A file whose build ID is not the recorded one is not
/// taken. Not for several threads at once.
class Program {
public:
    /// `capture` is borrowed and must outlive this.
    Program(const SampleCapture& capture, ProgramOptions options);
    ~Program();

    /// A function, or all code of a file that no symbol names.
    struct Function {
        std::uint32_t file{};
        std::string name{};          ///< as for reading; empty: not known
        Address address{};           ///< in the file
        std::string linkage_name{};  ///< as in the symbol table
    };
    struct File {
        std::string name{};                    ///< as recorded; `[kernel]`, `[not mapped]`
        std::string path{};                    ///< what was opened; empty: nothing
        std::string problem{};                 ///< why there are no names, or no lines; empty: there is none
        std::vector<std::uint8_t> build_id{};  ///< as recorded
        bool symbols{};
    };
    struct Code {
        std::uint32_t file{}, function{};
        std::optional<Address> address{};  ///< in the file, without load bias; absent: not known
    };

    /// `mapping` as in SampleBatch.
    [[nodiscard]] Code find(std::uint32_t mapping, std::uint64_t pc);
    /// The source line, if there is debug information.
    [[nodiscard]] std::optional<image::SourceLine> line(std::uint32_t mapping, std::uint64_t pc);

    /// The inlined calls a place lies in, the outermost first.
    [[nodiscard]] std::vector<image::InlinedCall> inlined(std::uint32_t mapping, std::uint64_t pc);

    /// A function as its author wrote it (image::DebugInfo::function); nothing where that is not known.
    [[nodiscard]] std::optional<image::DeclaredFunction> declared(std::uint32_t function);

    /// The mapping of the same process as `mapping` that an address lies in, by where it lay last; 0: none.
    [[nodiscard]] std::uint32_t mapping_beside(std::uint32_t mapping, std::uint64_t address);

    /// A place in a variable.
    struct Variable {
        std::string_view name{};  ///< as for reading; as long as this
        std::uint64_t offset{};   ///< from its begin
    };
    /// The variable an address lies in: of the files that are mapped in the process of `mapping`, by where their code
    /// lies, since perf.data files often do not record where data is mapped. Nothing for stack and heap.
    [[nodiscard]] std::optional<Variable> variable(std::uint32_t mapping, std::uint64_t address);

    /// By Code::function; grows while places are asked for.
    [[nodiscard]] const Function& function(std::uint32_t number) const;
    [[nodiscard]] const File& file(std::uint32_t number) const;
    [[nodiscard]] std::uint32_t files() const;
    /// `name`, or `(no symbol) in libfoo.so`.
    [[nodiscard]] std::string function_text(std::uint32_t number) const;
    /// The last part of a file's name.
    [[nodiscard]] static std::string_view short_name(std::string_view file);

private:
    struct State;
    std::unique_ptr<State> state_;
};

}  // namespace waymark::analysis
