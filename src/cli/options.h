/// The options that say which capture, shared by every command.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "output.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::cli {

struct InputOptions {
    std::string capture;
    std::vector<std::string> sources;
    std::vector<std::string> images;
    std::vector<std::string> symbols;
    std::vector<std::string> perf_maps, jitdumps;  ///< names of generated code
    std::string symfs;                             ///< where the files are that ran
    std::vector<std::string> debug_folders;        ///< where their debug files are besides
    std::string output;
    bool code_of_files = false;  ///< as pipeline::SessionOptions has it; no option of its own

    // For a bare trace file.
    std::string protocol, buffer_format;
    std::vector<std::string> trace_ids;
    /// Registers of the source, by the option that gives them (protocol::RegisterOption): `--etmcr`.
    std::map<std::string, std::string, std::less<>> registers;

    /// The first option of `registers` that was given; empty: none.
    [[nodiscard]] std::string register_option() const;

    /// Adds them all to a command.
    void add_to(CLI::App& command);
    /// Adds --symfs and --debug-dir alone.
    void add_folders_to(CLI::App& command);
    /// Adds --perf-map and --jitdump alone.
    void add_generated_to(CLI::App& command);
    /// These folders. `usage`: one is none.
    [[nodiscard]] Result<image::FileSearch> file_search() const;
    /// What is read, so that no output replaces it: the capture, and the files of --image, --symbols, --perf-map and
    /// --jitdump.
    [[nodiscard]] std::vector<std::string> files() const;
};

/// The number from 0 to `most` that an option (`--midr`) was given, decimal or hexadecimal. `usage`: it is none.
[[nodiscard]] Result<std::uint64_t> read_number(const std::string& text, std::string_view option, std::uint64_t most);

/// The capture is a file, or standard input, without a description: neither a folder nor with options that say what
/// it holds.
[[nodiscard]] bool is_bare(const InputOptions& options);

/// Reads what the options name. Problems that did not keep it from being read are in the session.
[[nodiscard]] Result<pipeline::Session> open_session(const InputOptions& options);

/// How many threads `--jobs` asks for: 0 for as many as there are processors, and never more than 256.
[[nodiscard]] unsigned workers(unsigned jobs);

/// The exit status that fits an error.
[[nodiscard]] ExitStatus status_of(const Error& error);

/// Says an error and gives its status.
ExitStatus fail(const Error& error);

/// Those of the selected sources whose flow can be decoded; says which are left out.
[[nodiscard]] std::vector<const pipeline::Source*> decodable(const std::vector<const pipeline::Source*>& selected);
/// Those whose packets can be listed; says which are left out.
[[nodiscard]] std::vector<const pipeline::Source*> listable(const std::vector<const pipeline::Source*>& selected);

/// Says the session's problems as warnings.
void warn(const pipeline::Session& session);

/// Says what kept buffers from being read to their end, a cut among it; true if anything did.
bool report_read_errors(const pipeline::Report& report);

}  // namespace waymark::cli
