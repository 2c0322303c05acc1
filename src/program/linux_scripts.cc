#include <algorithm>

#include "script.h"
#include "waymark/core/quote.h"

namespace waymark::program {

namespace {

Error not_expressed(const std::string& what, std::string_view by) {
    return {Errc::unsupported,
            fmt::format("{} cannot express {}; --for devmem, openocd, csal, t32 and json can", by, what)};
}

/// The head of a script, without settings that the drivers choose: funnels, addresses and trace IDs.
std::string comments(const Plan& plan, const Proof& proof) {
    std::string out = fmt::format("# Programs: {}. Written by waymark program.\n", plan.components.back().title);
    const std::vector<std::string> head = head_of(plan, proof);
    for (std::size_t n = 1; n < head.size(); ++n) out += fmt::format("# {}\n", head[n]);
    return out;
}

/// perf does not set funnels, and chooses trace IDs and buffers itself.
Status only_what_perf_programs(const Plan& plan, const LinuxWords& words) {
    const flow::UnitOptions& unit = plan.wanted.unit;
    if (!unit.exclude.empty()) return not_expressed("--exclude-range", "perf");
    if (unit.trigger_at) return not_expressed("--trigger-at", "perf");
    if (!unit.registers.empty()) return not_expressed("registers that are given by name", "perf");
    // perf's address filters are offsets in a file.
    for (const std::string& range : words.view_ranges)
        if (words.program.empty() || range.find('-', 1) != range.npos)
            return not_expressed("--view-range " + range + ": it takes functions of PROGRAM", "perf");
    if (unit.vmid) return not_expressed("--vmid", "perf");
    if (!plan.wanted.units->traces_aarch64() && (unit.context_id_bytes != 0 || unit.branch_broadcast))
        return not_expressed("--context-id and --branch-broadcast of this unit", "perf");
    if (words.sync_given) return not_expressed("--sync, which its driver chooses", "perf");
    if (plan.wanted.sink && plan.wanted.sink->after_trigger)
        return not_expressed("a capture that stops at a trigger", "perf");
    return Nothing{};
}

}  // namespace

Result<std::string> sysfs_script(const Plan& plan, const Proof& proof, const LinuxWords&) {
    for (const Component& c : plan.components)
        if (!c.program.not_in_files.empty()) return not_expressed(c.program.not_in_files.front(), "Linux's driver");
    const auto& sink = plan.wanted.sink;
    if (sink && sink->buffer.kind == sink::SinkKind::etb11 && plan.wanted.unit.trigger_at && !sink->after_trigger)
        return not_expressed("a trigger after which the capture goes on (of an ETB the driver always stops it)",
                             "Linux's driver");
    std::string out = "#!/bin/sh\n" + comments(plan, proof);
    out +=
        "# For Linux's CoreSight drivers, as root: unit=etm0 sink=tmc_etr0 sh FILE start, then stop.\n"
        "# The drivers open the funnels between them, and they leave alone what they choose themselves.\n"
        "set -eu\n"
        "devices=${devices:-/sys/bus/coresight/devices}\n"
        "unit=${unit:?is the trace unit, such as etm0; see $devices}\n"
        "sink=${sink:?is the trace buffer, such as tmc_etr0; see $devices}\n"
        "put() { printf '%s\\n' \"$2\" >\"$devices/$1\"; }\n\n"
        "case ${1:-} in\nstart)\n";
    for (const Component& c : plan.components)
        for (const flow::DriverFile& file : c.program.driver_files)
            out += fmt::format("    put \"${}/{}\" '{}'\n", c.variable, file.name, file.value);
    out +=
        "    put \"$sink/enable_sink\" 1\n"
        "    put \"$unit/enable_source\" 1\n"
        "    ;;\n"
        "stop)\n"
        "    put \"$unit/enable_source\" 0\n"
        "    put \"$sink/enable_sink\" 0\n"
        "    ;;\n"
        "release)\n    :\n    ;;\n"
        "*)\n    echo \"usage: unit=etm0 sink=tmc_etr0 sh $0 start|stop|release\" >&2\n    exit 2\n    ;;\nesac\n";
    return out;
}

Result<std::string> perf_script(const Plan& plan, const Proof& proof, const LinuxWords& words) {
    WM_RETURN_IF_ERROR(only_what_perf_programs(plan, words));
    const flow::UnitOptions& unit = plan.wanted.unit;
    std::string terms;
    const auto add = [&](bool wanted, const std::string& term) {
        if (wanted) terms += (terms.empty() ? "" : ",") + term;
    };
    add(unit.cycle_accurate, "cycacc");
    add(unit.cycle_accurate && unit.cycle_threshold != 0, fmt::format("cc_threshold={}", unit.cycle_threshold));
    add(unit.timestamps, "timestamp");
    add(unit.return_stack, "retstack");
    add(unit.branch_broadcast, "branch_broadcast");
    add(unit.context_id_bytes != 0, "contextid");
    std::string out = "#!/bin/sh\n" + comments(plan, proof);
    out += "# perf chooses trace IDs, the buffer, and how often the unit synchronises.\n";
    out += fmt::format("exec perf record -e cs_etm/{}/u", terms);
    for (const std::string& range : words.view_ranges)
        out += " --filter " + shell_word(fmt::format("filter {} @{}", range, words.program));
    // Without a slash perf searches for the program in PATH.
    const bool in_path = words.program.find('/') == words.program.npos;
    out += words.program.empty() ? " -- \"$@\"\n"
                                 : fmt::format(" -- {} \"$@\"\n", shell_word((in_path ? "./" : "") + words.program));
    return out;
}

}  // namespace waymark::program
