#include "input.h"

#include <fmt/format.h>

#include "../trouble.h"
#include "listing.h"

namespace waymark::cli {

void say_layout(const std::string& format) {
    if (format != "text") say("note", dpu::layout_note);
}

ExitStatus refuse(const InputOptions& input) {
    return fail({Errc::usage, fmt::format("{} is the capture of one unit, described by its dpu.ini; leave out {}",
                                          input.capture, not_for_dpu(input))});
}

Result<FileBytes> nexus_bytes(const DpuInput& input) {
    if (input.capture().nexus.empty()) return FileBytes();
    return FileBytes::open(input.capture().nexus.string());
}

std::string not_for_dpu(const InputOptions& input) {
    if (!input.sources.empty()) return "--source";
    if (std::string option = input.bare_option(); !option.empty()) return option;
    if (!input.perf_maps.empty()) return "--perf-map";
    if (!input.jitdumps.empty()) return "--jitdump";
    if (const char* const given = input.selection.given(); given != nullptr) return given;
    return {};
}

void warn(const DpuInput& input) {
    for (const std::string& sentence : gathered(input.capture().problems)) say("warning", sentence);
}

}  // namespace waymark::cli
