#include "input.h"

#include <fmt/format.h>

#include <filesystem>

#include "../trouble.h"
#include "listing.h"
#include "waymark/core/wire.h"
#include "waymark/image/agreement.h"

namespace waymark::cli {

waymark::Status add_image(analysis::DpuCode& code, const std::string& text) {
    std::string path = text;
    std::uint64_t bias = 0;
    // A file may have the sign in its name.
    if (const auto at = text.rfind('@'); at != text.npos && !std::filesystem::exists(text)) {
        if (!wire::scan_number(text.substr(at + 1), bias))
            return Error{Errc::usage,
                         fmt::format("--image {}: '{}' is no load bias, and there is no file of that name; "
                                     "write FILE or FILE@0x10000",
                                     text, text.substr(at + 1))};
        path = text.substr(0, at);
    }
    if (bias > 0xffffffff) return Error{Errc::usage, fmt::format("--image {}: a load bias has 32 bits", text)};
    if (const auto found = image::agreement(path, 0, {}); found && found->machine != image::ElfMachine::arm)
        return Error{Errc::unsupported,
                     fmt::format("--image {}: it is a program for {}, but programs for {} stand in for the unit's core",
                                 text, image::name(found->machine), image::name(image::ElfMachine::arm))};
    if (std::string problem = code.add_image(path, static_cast<std::uint32_t>(bias)); !problem.empty())
        return Error{Errc::unreadable, "--image " + text + ": " + problem};
    return Nothing{};
}

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
    if (!input.protocol.empty()) return "--protocol";
    if (!input.buffer_format.empty()) return "--buffer-format";
    if (!input.trace_ids.empty()) return "--trace-id";
    if (const std::string option = input.register_option(); !option.empty()) return option;
    if (!input.perf_maps.empty()) return "--perf-map";
    if (!input.jitdumps.empty()) return "--jitdump";
    return {};
}

void warn(const DpuInput& input) {
    for (const std::string& sentence : gathered(input.capture().problems)) say("warning", sentence);
}

}  // namespace waymark::cli
