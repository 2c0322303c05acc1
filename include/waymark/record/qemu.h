/// Runs a program under QEMU with Waymark's plugin and feeds the executed code to a recording.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/record/recording.h"

namespace waymark::record {

struct QemuOptions {
    std::filesystem::path qemu;                 ///< `find_qemu`
    std::filesystem::path plugin;               ///< `find_plugin`
    std::vector<std::string> qemu_arguments{};  ///< before the program
    std::vector<std::string> program;           ///< with its arguments
    bool aarch64 = false;                       ///< an AArch64 program
    bool exact = true;                          ///< false: faster, but faults inside a block are not noticed
    bool memory = false;                        ///< accesses too: for the profile of an AArch64 program
    bool sized = false;     ///< accesses of a 32-bit program with their sizes, and `exact`: for record/dpu.h
    bool threads = false;   ///< with the kernel's numbers of threads and their names, as with `memory` and `sized`
    bool children = false;  ///< forked children too, as processes (ring.h, ProcessPart); goes with `threads`
    bool input = true;      ///< standard input is the program's; false: only if it is a terminal
    bool signals = false;   ///< for a Linux program: QEMU's log reports which signals are delivered
    /// For a whole system: addresses [first, second) for which QEMU's log shows how execution came there: the vector
    /// tables and the place where execution begins. Empty: a Linux program.
    std::vector<std::pair<Address, Address>> watched{};
};

/// How the program ended.
struct Ending {
    enum class Kind : std::uint8_t { exited, signalled } kind = Kind::exited;
    int code{};                    ///< exit status, or the number of the signal that ended it
    std::optional<int> interrupt;  ///< number of a signal that Waymark got and passed on
    bool killed{};                 ///< Waymark ended it, because writing failed
    std::uint32_t process{};       ///< the process number that the program itself saw
    bool ended{};                  ///< Waymark ended it, because the recording was complete
};

/// A program on PATH. Errors: `not_found`; the message names its Debian package.
[[nodiscard]] Result<std::filesystem::path> find_qemu(const std::string& name, const std::string& package);

/// libwaymark-qemu.so, in its place relative to this program in the build or installation. Errors: `not_found`.
[[nodiscard]] Result<std::filesystem::path> find_plugin();

/// Called about five times a second.
using RecordProgress = std::function<void()>;

/// Runs the program to its end. SIGINT, SIGTERM and SIGHUP, unless ignored, are passed on to it; the second kills it,
/// the third ends this process. A whole system is ended when the recording needs no more, since it may never end by
/// itself. The caller has to finish the recording. Errors: `unreadable`: QEMU did not start with the plugin.
[[nodiscard]] Result<Ending> run_qemu(const QemuOptions& options, Recording& recording, const RecordProgress& progress);

}  // namespace waymark::record
