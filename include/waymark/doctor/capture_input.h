/// What a user names as a capture, made ready to be decoded: a snapshot folder, a perf.data file with CoreSight trace,
/// or a bare trace file with what it does not say about itself.
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

/// A capture and what is given beside it. Messages name the options of the command line with which each is given.
struct CaptureInput {
    std::string capture;  ///< `-`: standard input
    std::vector<std::string> sources, images, symbols;
    std::vector<std::string> perf_maps, jitdumps;  ///< names of generated code
    std::string symfs;                             ///< where the files are that ran
    std::vector<std::string> debug_folders;        ///< where their debug files are besides
    std::vector<std::string> symbol_folders;       ///< where files with symbols are, at whatever path
    std::string kallsyms;                          ///< names of the kernel that ran; empty: none given
    bool code_of_files = false;                    ///< pipeline::SessionOptions has it
    // pipeline::SessionOptions has these too.
    std::vector<std::pair<Address, std::vector<std::uint8_t>>> code{};
    image::MemoryMap::Ask ask{};

    // For a bare trace file.
    std::string protocol, buffer_format;
    std::vector<std::string> trace_ids;
    /// Registers of the source, by the option that gives them (protocol::RegisterOption): `--etmcr`.
    std::map<std::string, std::string, std::less<>> registers;
    std::vector<std::string> named_registers{};  ///< any others, as `NAME=VALUE`
    std::string core{};                          ///< type of the traced core: `Cortex-M33`

    /// The first option of `registers` that was given; empty: none.
    [[nodiscard]] std::string register_option() const;
    /// The first option given that is for bare trace files only; empty: none.
    [[nodiscard]] std::string bare_option() const;
    /// The folders to look in. `usage`: one is none.
    [[nodiscard]] Result<image::FileSearch> file_search() const;
    /// What is read, so that no output replaces it: the capture, and the files of --image, --symbols, --perf-map and
    /// --jitdump.
    [[nodiscard]] std::vector<std::string> files() const;

    /// What `capture` is: looked at once, also for all copies of this input.
    [[nodiscard]] const open::Container& container() const;
    open::Lookup lookup{};
};

/// The names that --protocol takes.
[[nodiscard]] std::string protocol_option_names();
/// Every option that gives a register of a bare trace file, protocol by protocol.
[[nodiscard]] std::vector<protocol::RegisterOption> register_options();

/// `TRCCONFIGR=0x41`. `usage`: it is none.
[[nodiscard]] Result<RegisterValue> read_register(const std::string& text);
/// The number from 0 to `most` that an option (`--midr`) was given, decimal or hexadecimal. `usage`: it is none.
[[nodiscard]] Result<std::uint64_t> read_number(const std::string& text, std::string_view option, std::uint64_t most);

/// Why a perf.data file with a cs_etm event has nothing to decode: perf inject removed the trace. Nothing: there is
/// trace, or there never was any.
[[nodiscard]] std::optional<Error> trace_taken_out(const open::Container& container);
/// The capture is a file, or standard input, without a description: neither a folder nor with options that say what
/// it holds.
[[nodiscard]] bool is_bare(const CaptureInput& input);

/// Reads what is named. Problems that did not keep it from being read are in the session. `progress` may be null,
/// `note` empty; it takes what was guessed. Errors: the errors of reading; `usage`: options that the capture does not
/// go with, or a bare file without what it takes, with what its bytes show.
[[nodiscard]] Result<pipeline::Session> open_capture(const CaptureInput& input, capture::perf::Progress* progress,
                                                     const std::function<void(const std::string&)>& note);

}  // namespace waymark::doctor
