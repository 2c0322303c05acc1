/// A capture as the user names it, and how it is opened for decoding: a snapshot folder, a perf.data file with
/// CoreSight trace, or a bare trace file with the description it lacks.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/capture/perf_data.h"
#include "waymark/core/result.h"
#include "waymark/image/memory_map.h"
#include "waymark/image/program_file.h"
#include "waymark/open/container.h"
#include "waymark/pipeline/session.h"

namespace waymark::doctor {

/// A capture and the options that accompany it. Messages name the corresponding options of the command line.
struct CaptureInput {
    std::string capture;  ///< `-`: standard input
    std::vector<std::string> sources, images, symbols;
    std::vector<std::string> perf_maps, jitdumps;  ///< names of generated code
    std::string symfs;                             ///< the folder with the files that ran
    std::vector<std::string> debug_folders;        ///< further folders with their debug files
    std::vector<std::string> symbol_folders;       ///< folders that are searched for files with symbols at any path
    std::string kallsyms;                          ///< symbols of the running kernel; empty: not given
    bool code_of_files = false;                    ///< pipeline::SessionOptions has it
    // The same as in pipeline::SessionOptions.
    std::vector<std::pair<Address, std::vector<std::uint8_t>>> code{};
    image::MemoryMap::Ask ask{};

    // For a bare trace file.
    std::string protocol, buffer_format;
    std::vector<std::string> trace_ids;
    /// Registers of the source, by option (protocol::RegisterOption): `--etmcr`.
    std::map<std::string, std::string, std::less<>> registers;
    std::vector<std::string> named_registers{};  ///< other registers, as `NAME=VALUE`
    std::string core{};                          ///< type of the traced core, such as `Cortex-M33`

    /// The first option of `registers` that was given; empty if none was.
    [[nodiscard]] std::string register_option() const;
    /// The first given option that is valid only for bare trace files; empty if there is none.
    [[nodiscard]] std::string bare_option() const;
    /// The folders to search. `usage`: one is not a folder.
    [[nodiscard]] Result<image::FileSearch> file_search() const;
    /// The input files, so that no output replaces them: the capture, and the files of --image, --symbols, --perf-map
    /// and --jitdump.
    [[nodiscard]] std::vector<std::string> files() const;

    /// The kind of `capture`, determined once, also for all copies of this input.
    [[nodiscard]] const open::Container& container() const;
    open::Lookup lookup{};
};

/// The names that --protocol takes.
[[nodiscard]] std::string protocol_option_names();
/// Every option for a register of a bare trace file, sorted by protocol.
[[nodiscard]] std::vector<protocol::RegisterOption> register_options();

/// Parses `TRCCONFIGR=0x41`. `usage`: it has another form.
[[nodiscard]] Result<RegisterValue> read_register(const std::string& text);
/// Parses the number from 0 to `most` of an option such as `--midr`, decimal or hexadecimal. `usage`: it is not such a
/// number.
[[nodiscard]] Result<std::uint64_t> read_number(const std::string& text, std::string_view option, std::uint64_t most);

/// The error if perf inject removed the trace of a perf.data file with a cs_etm event; nullopt otherwise.
[[nodiscard]] std::optional<Error> trace_taken_out(const open::Container& container);
/// Whether the capture is a file, or standard input, without a description: not a folder, and without options that
/// describe it.
[[nodiscard]] bool is_bare(const CaptureInput& input);

/// Opens the capture. Problems that did not prevent reading are in the session. `progress` may be null, `note` empty;
/// it receives inferences. Errors: the errors of reading; `usage`: options that are not valid for the capture, or a
/// bare file without a description, with what its bytes show.
[[nodiscard]] Result<pipeline::Session> open_capture(const CaptureInput& input, capture::perf::Progress* progress,
                                                     const std::function<void(const std::string&)>& note);

}  // namespace waymark::doctor
