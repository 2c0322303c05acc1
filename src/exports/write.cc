#include "waymark/exports/write.h"

#include <fmt/format.h>

#include <cstdlib>
#include <ctime>

#include "waymark/answers/sampled.h"
#include "waymark/exports/autofdo.h"
#include "waymark/exports/bolt.h"
#include "waymark/exports/branch_list.h"
#include "waymark/exports/callgrind.h"
#include "waymark/exports/cobertura.h"
#include "waymark/exports/firefox.h"
#include "waymark/exports/folded.h"
#include "waymark/exports/image_profile.h"
#include "waymark/exports/lcov.h"
#include "waymark/exports/perfetto.h"
#include "waymark/exports/pprof.h"
#include "waymark/exports/speedscope.h"

namespace waymark::exports {

namespace {

/// Seconds since 1970, or SOURCE_DATE_EPOCH if it is set, so that equal captures give equal files.
std::uint64_t seconds_since_1970() {
    if (const char* fixed = std::getenv("SOURCE_DATE_EPOCH"); fixed != nullptr)
        return std::strtoull(fixed, nullptr, 10);
    return static_cast<std::uint64_t>(std::time(nullptr));
}

}  // namespace

Result<ExportReport> write(const Format& format, const answers::Answers& a, const WriteOptions& options,
                           ByteSink& sink) {
    const std::string_view name = format.name;
    const bool of_time = name == "perfetto" || name == "firefox" || name == "speedscope";
    const answers::Timeline& timeline = a.timeline;
    const bool any_time = !timeline.slices.empty() || !timeline.marks.empty() || !timeline.series.empty();
    if (answers::of_messages(a) && !(of_time && any_time))
        return Error{Errc::not_found, fmt::format("{}: messages do not show which code ran, and --to {} needs {}; "
                                                  "waymark messages lists them",
                                                  a.capture, name, format.needs)};
    if (name == "perfetto") return write_perfetto(a, {options.most_bytes}, sink);
    if (name == "firefox") return write_firefox(a, {options.metric, options.most_bytes}, sink);
    if (name == "speedscope") return write_speedscope(a, {options.metric, options.most_bytes}, sink);
    if (name == "folded") return write_folded(a, {options.metric}, sink);
    if (name == "pprof") return write_pprof(a, {options.metric}, sink);
    if (name == "callgrind") return write_callgrind(a, {options.metric}, sink);
    if (name == "lcov") return write_lcov(a, options.coverage, sink);
    if (name == "cobertura") return write_cobertura(a, {seconds_since_1970(), options.coverage}, sink);
    if (name == "llvm-profile") return write_autofdo(a, sink);
    if (name == "autofdo-text")
        return write_autofdo_text(a, {.image = options.image, .as_loaded = options.autofdo_as_loaded}, sink);
    if (name == "profgen") return write_profgen(a, {options.image}, sink);
    if (name == "profgen-script") return write_profgen_script(a, {options.image}, sink);
    if (name == "branch-list") return write_branch_list(a, options.branch_list_version, sink, options.image);
    WM_CHECK(name == "bolt");
    return write_bolt(a, {options.image, options.bolt_traces}, sink);
}

}  // namespace waymark::exports
