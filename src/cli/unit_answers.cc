#include "unit_answers.h"

#include <fmt/format.h>

namespace waymark::cli {

waymark::Status refuse_flow_options(const AnswersOptions& options, const char* what) {
    const InputOptions& input = options.input;
    const bool has_time = options.timestamp_hz != 0 && input.protocol.empty() && input.buffer_format.empty();
    const std::string given = !input.sources.empty()     ? "--source"
                              : !input.symbols.empty()   ? "--symbols"
                              : !input.perf_maps.empty() ? "--perf-map"
                              : !input.jitdumps.empty()  ? "--jitdump"
                              : has_time                 ? "--timestamp-hz"
                                                         : input.bare_option();
    if (given.empty() && input.selection.given() == nullptr) return Nothing{};
    return Error{Errc::usage, fmt::format("{} is {}: leave out {}", input.capture, what,
                                          given.empty() ? input.selection.given() : given)};
}

answers::Answers finished(answers::Answers answers, const AnswersOptions& options) {
    answers.capture = options.input.capture;
    answers.version = WAYMARK_VERSION;
    for (const answers::Finding& f : answers.health)
        if (answers.cut && f.severity == answers::Finding::Severity::bad)
            say("error", fmt::format("{}: {}", answers.capture, f.what));
    return answers;
}

Error not_opened(Error error) {
    if (error.code == Errc::not_found) error.code = Errc::unreadable;
    return error;
}

}  // namespace waymark::cli
