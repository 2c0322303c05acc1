/// Capture folders of a Debug and Profiling Unit: dpu.ini and the binary files it names (docs/spec/dpu.md, 7.5). This
/// layer does not know the meaning of the trace's words.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/result.h"

namespace waymark::capture {

// Values of the parameter `ended`. `whole_run`: the program ended by itself, so the recording has the whole run.
// `limited_run`: the recording ended after the requested number of instructions. Other values are sentences.
inline constexpr std::string_view whole_run = "exit";
inline constexpr std::string_view limited_run = "by --limit, and the program ran on";
/// The end of the sentence if the recording has everything that the program did up to that end.
inline constexpr std::string_view recorded_up_to_there = ", and everything up to there is recorded";
// Parameters of a recording during which tracing was off (EN = 0) for a part of the run: cycles of the whole run,
// cycles before tracing began, between two stretches of trace, and after tracing ended.
inline constexpr std::string_view run_cycles_key = "run_cycles", off_before_key = "off_before",
                                  off_between_key = "off_between", off_after_key = "off_after";

/// Privilege and both task IDs.
struct DpuContext {
    bool supervisor = false;
    std::uint8_t pid{}, did{};
    friend bool operator==(const DpuContext&, const DpuContext&) = default;
};

/// A period that begins when tracing is enabled: EN 0→1.
struct DpuPeriod {
    std::uint32_t dp_tw{}, dp_tc{};  ///< at that time
    std::optional<DpuContext> context{};
    std::optional<std::uint64_t> lines_written{};  ///< before it
    friend bool operator==(const DpuPeriod&, const DpuPeriod&) = default;
};

/// IDFLT and its comparison values, from one place in the trace on.
struct DpuFilter {
    std::uint64_t words{};  ///< words of trace written before it since the first enable
    bool idflt = false, tids = false;
    std::uint8_t tidcm{}, rpid{}, rdid{};
    std::optional<std::uint64_t>
        message_bytes{};  ///< bytes of Nexus messages before it; nullopt: there are no messages
    friend bool operator==(const DpuFilter&, const DpuFilter&) = default;
};

/// Facts beyond the registers on which figures of counters depend. A bit for each counter, A0 first: the change
/// occurred while tracing was on.
struct DpuCounterHistory {
    std::uint8_t partial{};    ///< it did not count all the time
    std::uint8_t changed{};    ///< its event selection was reprogrammed
    std::uint8_t rewritten{};  ///< its value was written
    friend bool operator==(const DpuCounterHistory&, const DpuCounterHistory&) = default;
};

/// A piece of a program in the trace's addresses: 64-bit guests have windows of 32 bits.
struct DpuWindow {
    std::uint64_t guest{}, bytes{};
    std::uint32_t window{};
    friend bool operator==(const DpuWindow&, const DpuWindow&) = default;
};

/// A program or library.
struct DpuImage {
    std::filesystem::path path;
    std::uint32_t load_bias = 0;  ///< load bias
    friend bool operator==(const DpuImage&, const DpuImage&) = default;
};

/// A name for an address of the trace that no program contains, such as an entry of the operating system.
struct DpuSymbol {
    std::uint32_t address{};
    std::string name;
    friend bool operator==(const DpuSymbol&, const DpuSymbol&) = default;
};

struct DpuCapture {
    using Values = std::array<std::uint32_t, 6>;  ///< values of the counters A0 to B2

    std::filesystem::path path{};  ///< of dpu.ini
    std::string layout{};          ///< layout of flags, entries and event sets: `WL-1`
    std::uint32_t dpu_base = 0xfff0a000;
    bool little_endian = false;         ///< byte order of a word in memory
    std::filesystem::path buffer{};     ///< the virtual trace buffer from DP_TSA to DP_TEA + 31, or the data that a
                                        ///< peripheral received in single address mode
    std::filesystem::path nexus{};      ///< messages of the Nexus interface; empty path: none
    std::vector<Register> registers{};  ///< values after the stop: `DP_CR` to `DP_TW`
    std::optional<Values> initial{}, final{};  ///< counters at enable and at the stop
    std::optional<DpuContext> initial_context{};
    std::optional<std::uint64_t> lines_written{};             ///< number since the first enable
    std::optional<std::vector<std::string>> eonce_classes{};  ///< the classes among TCHOF, TINT, … that were on
    std::optional<std::uint8_t> eonce_counters{};             ///< c: words the EOnCE appended, 0 to 2
    std::vector<DpuPeriod> periods{};  ///< only if enabled more than once: all periods, oldest first
    std::vector<DpuFilter> filters{};  ///< only if it changed while tracing was on: all settings, oldest first
    std::optional<DpuCounterHistory> history{};  ///< if the capture states it
    bool readout = false;                   ///< the buffer file contains the pieces that were read out in request mode
    std::vector<std::uint64_t> overruns{};  ///< with `readout`: offsets in the file before which trace is missing
    std::optional<std::vector<std::string>> driven{};  ///< event wires that were connected
    std::vector<DpuImage> images{};
    std::vector<DpuWindow> windows{};
    std::vector<DpuSymbol> symbols{};
    std::vector<std::pair<std::string, std::string>> parameters{};  ///< of the model that replaced the core
    ModuleMap modules{};                                            ///< mappings of files; empty: not known
    std::vector<Problem> problems{};  ///< errors and missing parts, and their consequences

    [[nodiscard]] const Register* find_register(std::string_view name) const {
        return capture::find_register(registers, name);
    }
    friend bool operator==(const DpuCapture&, const DpuCapture&) = default;
};

/// The name of the file that identifies such a folder.
inline constexpr std::string_view dpu_ini = "dpu.ini";
/// Whether `path` is a folder with a dpu.ini, or such a file.
[[nodiscard]] bool is_dpu_folder(const std::filesystem::path& path);

/// Reads dpu.ini. `path` is the folder or the file. Everything readable is read. `DpuCapture::problems` has a sentence
/// for each other part, for each missing part, and for its consequences. Binary files are not opened, only measured: a
/// truncated file is a problem, and its existing bytes can be read. Errors:
/// - `not_found`: no such folder, no dpu.ini in it, or neither the buffer nor the Nexus file that it names exists;
/// - `unreadable`: the operating system refused;
/// - `bad_format`: no section [dpu], or it names no layout, or neither buffer nor nexus;
/// - `unsupported`: dpu.ini is of another version, or longer than `max_ini_bytes`.
[[nodiscard]] Result<DpuCapture> read_dpu_folder(const std::filesystem::path& path);
/// The same with other files; `ini` is the path of dpu.ini in `files`.
[[nodiscard]] Result<DpuCapture> read_dpu_folder(const std::filesystem::path& ini, const FileAccess& files);

/// Writes dpu.ini into `folder`, which is created; the caller writes the binary files. Paths inside `folder` are
/// written relative to it. Reading it again gives an equal capture, except for `path` and `problems`. Errors: `usage`:
/// a name, path or text that the format cannot represent (`;`, `#`, line breaks, and in lists commas); `unreadable`:
/// the file cannot be written.
[[nodiscard]] Status write_dpu_folder(const DpuCapture& capture, const std::filesystem::path& folder);

}  // namespace waymark::capture
