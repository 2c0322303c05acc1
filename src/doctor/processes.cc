// Examines captures of several processes (perf.data with CoreSight trace): peculiarities of the file, missing parts of
// the file, and missing code.
#include <fmt/format.h>

#include <algorithm>

#include "examination.h"
#include "waymark/pipeline/process_survey.h"

namespace waymark::doctor {

namespace {

Severity severity_of(capture::Peculiarity::Weight weight) {
    switch (weight) {
        case capture::Peculiarity::Weight::normal: return Severity::note;
        case capture::Peculiarity::Weight::ambiguous: return Severity::warning;
        case capture::Peculiarity::Weight::fatal: return Severity::error;
    }
    return Severity::note;
}

}  // namespace

CaptureFinding finding_of(const capture::Peculiarity& p) {
    return {severity_of(p.weight), p.kind, {}, {}, {}, p.found, p.usual, p.means, p.advice};
}

void ProcessFindings::report() const {
    for (const capture::Problem& problem : session_.problems) report(problem);
    std::vector<const pipeline::Source*> sources;
    for (const pipeline::Source& source : session_.sources) sources.push_back(&source);
    const pipeline::ProcessSurvey survey =
        pipeline::survey_processes(session_, sources, options_.most_bytes, 1, [&](const pipeline::StreamInfo& stream) {
            return trial_sink(examination_.processes[stream.source.name], stream.offsets);
        });
    for (const auto* all : {&session_.capture.peculiarities, &survey.peculiarities})
        for (const capture::Peculiarity& p : *all) add_finding(finding_of(p));
    const std::string looked_at = survey.bytes == survey.of ? std::string()
                                                            : fmt::format(" (in {} of {} bytes of trace)",
                                                                          grouped(survey.bytes), grouped(survey.of));
    for (const pipeline::Damage& damage : survey.missing) {
        const bool uncertain = damage.kind == pipeline::Damage::Kind::uncertain_code;
        add_finding({Severity::warning,
                     uncertain ? "image-uncertain" : "image-missing",
                     {},
                     {},
                     {},
                     damage.found + looked_at,
                     uncertain ? "one file for each address within an AUX range" : "all code that ran",
                     uncertain
                         ? "the maps of the process changed within the range, and the time of a change is known no "
                           "better than by AUX range"
                         : "it was not found by its name or build ID, or no map of a process says which file it is",
                     damage.means});
    }
}

void ProcessFindings::report(const capture::Problem& problem) const {
    using Kind = capture::Problem::Kind;
    const std::string found = capture::to_string(problem);
    const std::string advice = "what is said there";
    switch (problem.kind) {
        case Kind::part:
            return add_finding({Severity::warning,
                                "lost-trace",
                                {},
                                {},
                                {},
                                found,
                                "all trace of the run",
                                "it was lost while it was recorded, or the file was cut or damaged",
                                advice + "; code that did not run counts as not observed"});
        case Kind::not_traced:
            return add_finding({Severity::warning,
                                "not-traced",
                                {},
                                {},
                                {},
                                found,
                                "a unit that traces the whole run",
                                "it was programmed so",
                                "treat code that did not run as not observed, and compare shares; record without "
                                "strobing for counts"});
        case Kind::damage:
            return add_finding({Severity::error,
                                "damaged-file",
                                {},
                                {},
                                {},
                                found,
                                "a whole file",
                                "it was cut, or damaged on the way",
                                "copy the whole file again, or record again; the readable part was decoded"});
        case Kind::names:
        case Kind::unused:
            return add_finding({Severity::warning,
                                std::string(missing_names),
                                {},
                                {},
                                {},
                                found,
                                "the mapped files, which contain the code that ran",
                                "the files are on the recorded machine and not here, or have no build ID",
                                advice + "; the findings image-missing list those that ran, with the cost of each"});
        case Kind::description:
            return add_finding({Severity::warning,
                                "description",
                                {},
                                {},
                                {},
                                found,
                                "metadata without contradictions",
                                "the recorder wrote them so, or the file is damaged",
                                advice});
    }
}

}  // namespace waymark::doctor
