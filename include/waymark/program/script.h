/// Writes plans in the languages of people who program hardware. Each script has three commands: start, stop, and
/// release after the trace was read. docs/program.md lists the requirements of each target, and which targets were
/// tried.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "waymark/program/plan.h"

namespace waymark::program {

enum class Language : std::uint8_t {
    sysfs,    ///< Linux's CoreSight drivers, as a shell script
    perf,     ///< a command line of perf record
    openocd,  ///< Tcl for OpenOCD, through a memory access port
    csal,     ///< C for the CoreSight Access Library
    devmem,   ///< a shell script with devmem, on the target itself
    t32,      ///< PRACTICE for TRACE32
    json,     ///< the accesses as data
    c,        ///< C for software on the core itself, which writes system registers
};
struct LanguageName {
    Language language;
    std::string_view name;
};
[[nodiscard]] std::span<const LanguageName> languages();

/// Wording of the scripts for Linux.
struct LinuxWords {
    std::string program;  ///< for perf: the traced program
    /// For perf: the functions and ranges to trace, as the user gave them, instead of addresses.
    std::vector<std::string> view_ranges{};
    bool sync_given = false;  ///< the user gave the distance of synchronisations
};

/// The head of the script contains the figures of `proof`. Errors: `unsupported`: the target cannot express a part of
/// the plan; the message names the part, and a suitable target.
[[nodiscard]] Result<std::string> script(const Plan& plan, Language target, const Proof& proof,
                                         const LinuxWords& words);

}  // namespace waymark::program
