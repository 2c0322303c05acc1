#include "waymark/doctor/capture_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <span>
#include <utility>

#include "bare_file.h"
#include "waymark/capture/branch_entry.h"
#include "waymark/capture/branch_stacks.h"
#include "waymark/capture/perf_cs_etm.h"
#include "waymark/capture/perf_file.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/quote.h"
#include "waymark/core/regular_file.h"
#include "waymark/core/wire.h"
#include "waymark/image/agreement.h"
#include "waymark/image/memory_map.h"
#include "waymark/pipeline/protocols.h"
#include "waymark/protocol/adapters.h"

namespace waymark::doctor {

namespace fs = std::filesystem;
namespace perf = capture::perf;

namespace {

/// Whether branch stacks come from x86-64, according to the programs. nullopt if no program is found.
std::optional<bool> runs_x86_64(const CaptureInput& options, const perf::PerfData& data) {
    std::vector<fs::path> files;
    for (const std::string& text : options.images)
        if (const auto image = image::parse_image_argument(text)) files.push_back(image->path);
    files.insert(files.end(), options.symbols.begin(), options.symbols.end());
    if (const auto search = options.file_search())
        for (const perf::Mapping& m : data.mappings)
            if (!m.data && m.file.starts_with('/'))
                if (const auto found = image::find_file(m.file, m.build_id, *search)) files.push_back(found->path);
    for (const fs::path& file : files)
        if (const auto found = image::agreement(file, 0, {})) return found->machine == image::ElfMachine::x86_64;
    return std::nullopt;
}

/// Infers the architecture from the addresses of branches in text: A64 instructions lie at multiples of 4, x86-64
/// instructions at any address. nullopt if there are too few addresses.
std::optional<bool> addresses_are_x86_64(const perf::PerfData& data) {
    constexpr std::size_t enough = 16;
    std::set<std::uint64_t> seen;
    const std::span<const std::uint8_t> all = data.unpacked_branches;
    for (std::size_t at = 0; at + perf::branch_entry_bytes <= all.size(); at += perf::branch_entry_bytes) {
        const auto entry = perf::parse_branch_entry(all.subspan(at).first<perf::branch_entry_bytes>());
        if (((entry.from | entry.to) & 3) != 0) return true;
        if (seen.size() < enough) seen.insert({entry.from, entry.to});
    }
    if (seen.size() < enough) return std::nullopt;
    return false;
}

Result<capture::Capture> branch_stacks(const CaptureInput& options, std::shared_ptr<const capture::ByteFile> file,
                                       perf::PerfData data) {
    std::optional<bool> x86_64 = perf::is_x86_64(data);
    if (!x86_64) x86_64 = runs_x86_64(options, data);
    if (!x86_64) x86_64 = addresses_are_x86_64(data);
    WM_ASSIGN_OR_RETURN(capture::Capture out,
                        perf::branch_stack_capture(options.capture, std::move(file), std::move(data)));
    perf::set_x86_64(out, x86_64.value_or(false), !x86_64);
    if (!x86_64)
        out.problems.push_back({options.capture,
                                0,
                                "the file does not state its machine, and its few addresses fit both AArch64 and "
                                "x86-64: AArch64 is assumed; give the program that ran (--image FILE).",
                                {},
                                capture::Problem::Kind::description});
    return out;
}

Result<capture::Capture> open_file(const CaptureInput& options, perf::Progress* progress, const Note& note) {
    if (options.protocol.empty()) {
        const open::Container& container = options.container();
        if (container.contents() == open::Content::flow) {
            if (!options.bare_option().empty())
                return Error{Errc::usage, fmt::format("{} is a perf.data file, which describes its contents and how it "
                                                      "was recorded; leave out {}",
                                                      options.capture, options.bare_option())};
            if (container.kind == open::Kind::stacks_text) {
                WM_ASSIGN_OR_RETURN(auto data, perf::read_branch_text(options.capture));
                return branch_stacks(options, nullptr, std::move(data));
            }
            WM_ASSIGN_OR_RETURN(auto data, perf::read_perf_data(container.file, progress));
            if (container.kind == open::Kind::stacks_perf)
                return branch_stacks(options, container.file.file, std::move(data));
            return perf::cs_etm_capture(options.capture, container.file.file, std::move(data));
        }
        if (auto error = open::no_trace(container)) return std::move(*error);
        return what_it_takes(options);
    }
    return bare_capture(options, note);
}

/// The error for a folder that is not a capture: lists the captures in it.
Error no_capture(const fs::path& folder) {
    std::string inside;
    std::error_code error;
    std::vector<std::string> captures;
    constexpr std::size_t most_looked_at = 1000;
    std::size_t looked_at = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
        if (++looked_at > most_looked_at) break;
        const open::Container inside_it = open::identify(entry.path().string());
        if (inside_it.is_perf() || (inside_it.is_folder && inside_it.kind != open::Kind::folder))
            captures.push_back(entry.path().string());
    }
    std::sort(captures.begin(), captures.end());
    if (!captures.empty()) inside = fmt::format("; it contains {}: name that", captures.front());
    return {
        Errc::not_found,
        fmt::format("{}: this folder contains no snapshot.ini, contents.ini or dpu.ini, so it is not a capture{}",
                    folder.string(), inside.empty() ? "; name the folder that has one, or a perf.data file" : inside)};
}

}  // namespace

std::string protocol_option_names() {
    std::string out;
    for (const pipeline::Protocol* protocol : pipeline::protocols()) {
        if (protocol->option_names().empty()) continue;
        if (!out.empty()) out += ", ";
        out += protocol->option_names();
    }
    return out;
}

std::vector<protocol::RegisterOption> register_options() {
    std::vector<protocol::RegisterOption> out;
    for (const pipeline::Protocol* protocol : pipeline::protocols())
        for (const protocol::RegisterOption& option : protocol->register_options())
            // Units of two protocols may have a register with the same name.
            if (std::none_of(out.begin(), out.end(), [&](const auto& o) { return o.option == option.option; }))
                out.push_back(option);
    return out;
}

std::string CaptureInput::register_option() const {
    for (const protocol::RegisterOption& option : register_options()) {
        const auto given = registers.find(option.option);
        if (given != registers.end() && !given->second.empty()) return std::string(option.option);
    }
    return {};
}

std::string CaptureInput::bare_option() const {
    if (!protocol.empty()) return "--protocol";
    if (!buffer_format.empty()) return "--buffer-format";
    if (!trace_ids.empty()) return "--trace-id";
    if (!named_registers.empty()) return "--register";
    if (!core.empty()) return "--core";
    return register_option();
}

std::vector<std::string> CaptureInput::files() const {
    std::vector<std::string> out = symbols;
    out.insert(out.end(), perf_maps.begin(), perf_maps.end());
    out.insert(out.end(), jitdumps.begin(), jitdumps.end());
    out.push_back(capture);
    for (const std::string& argument : images)
        if (const auto image = image::parse_image_argument(argument)) out.push_back(image->path.string());
    return out;
}

Result<image::FileSearch> CaptureInput::file_search() const {
    image::FileSearch out{symfs, {debug_folders.begin(), debug_folders.end()}};
    std::error_code ignored;
    const auto check = [&](const char* option, const std::string& folder) -> Status {
        if (fs::is_directory(folder, ignored)) return Nothing{};
        return Error{Errc::usage, fmt::format("{}: {} is not a folder", option, folder)};
    };
    if (!symfs.empty()) WM_RETURN_IF_ERROR(check("--symfs", symfs));
    for (const std::string& folder : debug_folders) WM_RETURN_IF_ERROR(check("--debug-dir", folder));
    for (const std::string& folder : symbol_folders) WM_RETURN_IF_ERROR(check("--symdir", folder));
    WM_RETURN_IF_ERROR(out.add_symbol_folders({symbol_folders.begin(), symbol_folders.end()}));
    return out;
}

Result<RegisterValue> read_register(const std::string& text) {
    const std::size_t sign = text.find('=');
    std::uint64_t value = 0;
    if (sign == std::string::npos || sign == 0 || !wire::scan_number(std::string_view(text).substr(sign + 1), value))
        return Error{Errc::usage,
                     fmt::format("--register takes NAME=VALUE with a number (0x for hexadecimal), not '{}'", text)};
    return RegisterValue{protocol::upper(text.substr(0, sign)), value};
}

Result<std::uint64_t> read_number(const std::string& text, std::string_view option, std::uint64_t most) {
    std::uint64_t value = 0;
    if (!wire::scan_number(text, value) || value > most)
        return Error{Errc::usage, fmt::format("{} takes a number from 0 to {:#x} (0x for hexadecimal), not '{}'",
                                              option, most, text)};
    return value;
}

const open::Container& CaptureInput::container() const { return lookup.of(capture, !bare_option().empty()); }

std::optional<Error> trace_taken_out(const open::Container& container) {
    const std::string& path = container.path;
    const perf::PerfFile& file = container.file;
    if (!container.is_perf() || file.file == nullptr || perf::auxtrace_type(file)) return std::nullopt;
    auto data = perf::read_perf_data(file);
    if (!data || data->auxtrace_info || !data->branch_samples.empty()) return std::nullopt;
    if (data->chunks.empty() && data->has_branch_stacks()) {
        auto capture = perf::branch_stack_capture(path, file.file, std::move(*data));
        return capture ? std::nullopt : std::optional(std::move(capture.error()));
    }
    // There is trace, but no description for it.
    if (!data->chunks.empty()) {
        auto capture = perf::cs_etm_capture(path, file.file, std::move(*data));
        return capture ? std::nullopt : std::optional(std::move(capture.error()));
    }
    const std::vector<capture::Peculiarity> found = perf::without_cs_trace(*data);
    if (found.empty()) return std::nullopt;
    return Error{Errc::not_found, fmt::format("{}: nothing decoded: {}", path, capture::to_string(found.back()))};
}

bool is_bare(const CaptureInput& options) {
    if (!options.bare_option().empty() || !options.images.empty() || !options.symbols.empty() ||
        !options.perf_maps.empty() || !options.jitdumps.empty() || !options.sources.empty())
        return false;
    std::error_code error;
    return options.capture == "-" ||
           (fs::is_regular_file(options.capture, error) && fs::path(options.capture).extension() != ".ini");
}

Result<pipeline::Session> open_capture(const CaptureInput& options, perf::Progress* progress, const Note& note) {
    const fs::path path = options.capture;
    const open::Container& container = options.container();
    const bool snapshot = container.is_snapshot();
    if (!snapshot && container.kind == open::Kind::missing)
        return Error{Errc::not_found, fmt::format("{}: no such file or folder", options.capture)};
    if (container.kind == open::Kind::special_file)
        if (const auto error_of = no_regular_file(path)) return *error_of;
    if (container.is_folder && snapshot && container.kind != open::Kind::snapshot) return no_capture(path);
    if (const std::string given = options.bare_option(); snapshot && !given.empty())
        return Error{Errc::usage,
                     fmt::format("{} is a snapshot, which describes its contents and how it was recorded; leave out {} "
                                 "(or change the snapshot's ini files)",
                                 options.capture, given)};
    Result<capture::Capture> capture = snapshot ? capture::read_snapshot(path) : open_file(options, progress, note);
    if (!capture) return std::move(capture.error());
    WM_ASSIGN_OR_RETURN(image::FileSearch files, options.file_search());
    pipeline::SessionOptions session{.images = options.images, .symbols = options.symbols};
    session.perf_maps = options.perf_maps;
    session.jitdumps = options.jitdumps;
    session.kallsyms = options.kallsyms;
    session.files = std::move(files);
    session.code_of_files = options.code_of_files;
    session.code = options.code;
    session.ask = options.ask;
    return pipeline::make_session(std::move(*capture), session);
}

}  // namespace waymark::doctor
