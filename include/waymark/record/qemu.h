/// Runs a program under QEMU with Waymark's plugin and feeds what it executes to a recording.
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
    bool exact = true;                          ///< false: faster, a fault inside a block is not seen
    bool memory = false;                        ///< accesses too: what a profile of an AArch64 program is made from
    bool sized = false;     ///< accesses of a 32-bit program with their sizes, and `exact`: what record/dpu.h takes
    bool threads = false;   ///< with the kernel's numbers of threads and their names, as with `memory` and `sized`
    bool children = false;  ///< forked children too, as processes (ring.h, ProcessPart); goes with `threads`
    bool input = true;      ///< standard input is the program's; false: only if it is a terminal
    bool signals = false;   ///< for a Linux program: QEMU's log reports which signals are delivered
    /// A whole system: addresses [first, second) where QEMU's log is to show how execution came there; the vector
    /// tables and where execution begins. Empty: a Linux program.
    std::vector<std::pair<Address, Address>> watched{};
};

/// How the program ended.
struct Ending {
    enum class Kind : std::uint8_t { exited, signalled } kind = Kind::exited;
    int code{};                    ///< exit status, or number of the signal
    std::optional<int> interrupt;  ///< number of a signal that we were sent and passed on
    bool killed{};                 ///< by us, because nothing could be written any more
    std::uint32_t process{};       ///< its number, which it saw itself
    bool ended{};                  ///< by us, because the recorder wanted no more
};

/// A program on PATH. Errors: `not_found`; the message names the Debian package it is in.
[[nodiscard]] Result<std::filesystem::path> find_qemu(const std::string& name, const std::string& package);

/// libwaymark-qemu.so, where the build or the installation put it beside this program. Errors: `not_found`.
[[nodiscard]] Result<std::filesystem::path> find_plugin();

/// Called about five times a second.
using RecordProgress = std::function<void()>;

/// Runs the program to its end. SIGINT, SIGTERM and SIGHUP, unless ignored, are passed on to it; the second kills it,
/// the third ends this process. A whole system is ended when the recording wants no more: it may never end by itself.
/// The recording is left to be finished by the caller. Errors: `unreadable`: QEMU did not start with the plugin.
[[nodiscard]] Result<Ending> run_qemu(const QemuOptions& options, Recording& recording, const RecordProgress& progress);

}  // namespace waymark::record
