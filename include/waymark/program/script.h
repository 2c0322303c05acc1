/// Plans in the languages of those who program hardware. Each script has three commands: start, stop, and release,
/// after the trace was read. docs/program.md says for each target what it needs and what was tried.
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
};
struct LanguageName {
    Language language;
    std::string_view name;
};
[[nodiscard]] std::span<const LanguageName> languages();

/// What the scripts for Linux say in its own words.
struct LinuxWords {
    std::string program;  ///< for perf: what is traced
    /// For perf: the functions and ranges to be traced as they were given, in place of addresses.
    std::vector<std::string> view_ranges{};
    bool sync_given = false;  ///< the distance of synchronisations was asked for, and is no default
};

/// The head of the script contains the figures of `proof`. Errors: `unsupported`: the target cannot express something
/// of the plan; the message names it, and a target that can.
[[nodiscard]] Result<std::string> script(const Plan& plan, Language target, const Proof& proof,
                                         const LinuxWords& words);

}  // namespace waymark::program
