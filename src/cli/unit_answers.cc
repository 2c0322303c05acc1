#include "unit_answers.h"

#include <fmt/format.h>

#include <filesystem>

#include "waymark/capture/byte_stream.h"
#include "waymark/capture/perf_file.h"

namespace waymark::cli {

namespace perf = capture::perf;

waymark::Status refuse_flow_options(const AnswersOptions& options, const char* what) {
    const InputOptions& input = options.input;
    const std::string register_option = input.register_option();
    const char* given = !input.sources.empty()         ? "--source"
                        : !input.symbols.empty()       ? "--symbols"
                        : !input.perf_maps.empty()     ? "--perf-map"
                        : !input.jitdumps.empty()      ? "--jitdump"
                        : !input.protocol.empty()      ? "--protocol"
                        : !input.buffer_format.empty() ? "--buffer-format"
                        : options.timestamp_hz != 0    ? "--timestamp-hz"
                        : !input.trace_ids.empty()     ? "--trace-id"
                        : !register_option.empty()     ? register_option.c_str()
                                                       : nullptr;
    if (given == nullptr) return Nothing{};
    return Error{Errc::usage, fmt::format("{} is {}: leave out {}", input.capture, what, given)};
}

answers::Answers finished(answers::Answers answers, const AnswersOptions& options) {
    answers.capture = options.input.capture;
    answers.version = WAYMARK_VERSION;
    for (const answers::Finding& f : answers.health)
        if (answers.cut && f.severity == answers::Finding::Severity::bad)
            say("error", fmt::format("{}: {}", answers.capture, f.what));
    return answers;
}

std::vector<std::uint8_t> first_bytes(const std::string& path) {
    std::error_code none;
    if (path == "-" || !std::filesystem::is_regular_file(path, none)) return {};
    const auto stream = capture::open_bytes(path);
    if (!stream) return {};
    std::vector<std::uint8_t> head(8);
    std::size_t have = 0;
    while (have < head.size()) {
        const auto count = (*stream)->read(std::span(head).subspan(have));
        if (!count || *count == 0) break;
        have += *count;
    }
    head.resize(have);
    return head;
}

namespace {

bool is_perf_data(const std::string& path) {
    if (path != "-" && perf::is_perf_folder(path)) return true;
    return perf::is_perf_data(first_bytes(path));
}

std::optional<std::uint32_t> auxtrace_type(const std::string& path) {
    const auto file = perf::open_perf_file(path);
    return file ? perf::auxtrace_type(*file->file) : std::nullopt;
}

}  // namespace

bool is_profile(const std::string& path) {
    return is_perf_data(path) && auxtrace_type(path) != perf::AuxtraceInfo::cs_etm;
}

bool is_cs_etm(const std::string& path) {
    return is_perf_data(path) && auxtrace_type(path) == perf::AuxtraceInfo::cs_etm;
}

Error not_opened(Error error) {
    if (error.code == Errc::not_found) error.code = Errc::unreadable;
    return error;
}

}  // namespace waymark::cli
