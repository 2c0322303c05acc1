#include "captured_answers.h"

#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/sampled_code.h"
#include "waymark/analysis/source_text.h"
#include "waymark/doctor/dpu_input.h"
#include "waymark/doctor/dpu_view.h"
#include "waymark/doctor/profile_view.h"
#include "waymark/pipeline/answers_file.h"
#include "waymark/pipeline/message_answers.h"

namespace waymark::capi {

namespace {

using answers::Answers;
using KeepsOn = std::function<void(std::uint64_t, std::uint64_t)>;

Result<Answers> of_flow(const wm_capture& capture, const pipeline::FlowAnswersOptions& options,
                        const KeepsOn& keeps_on) {
    WM_ASSIGN_OR_RETURN(const auto selected, capture.session.select({}));
    return pipeline::trace_answers(
        capture.session, selected, options,
        [&](std::uint64_t bytes, std::optional<std::uint64_t> of) { keeps_on(bytes, of.value_or(0)); },
        [](const pipeline::Report&) {});
}

Result<Answers> of_samples(const wm_capture& capture, const pipeline::FlowAnswersOptions& options,
                           const KeepsOn& keeps_on) {
    class Observer final : public capture::perf::Progress {
    public:
        explicit Observer(const KeepsOn& keeps_on) : keeps_on_(keeps_on) {}
        void at(std::uint64_t bytes, std::uint64_t of) override { keeps_on_(bytes, of); }

    private:
        const KeepsOn& keeps_on_;
    } observer(keeps_on);
    if (!capture.input.images.empty())
        return Error{Errc::usage,
                     "the option image: files of a profile are found by their recorded names; the option symfs names a "
                     "folder with copies of them"};
    doctor::ProfileViewOptions profile;
    profile.input = capture.input;
    profile.midr = capture.midr;
    profile.workers = options.workers;
    profile.input.kallsyms = capture.kallsyms;
    WM_ASSIGN_OR_RETURN(doctor::ProfileView view, doctor::ProfileView::open(profile));
    analysis::SampleAnswersOptions wanted;
    wanted.inlined = options.inlined;
    wanted.most_slices = options.most_slices;
    WM_ASSIGN_OR_RETURN(Answers out, doctor::answers_of(view, capture.name, wanted, options.timeline, &observer));
    if (options.disassembly) analysis::disassemble(out);
    return out;
}

Result<Answers> of_counters(const wm_capture& capture, const pipeline::FlowAnswersOptions& options) {
    WM_ASSIGN_OR_RETURN(const doctor::DpuInput input, doctor::DpuInput::open(capture.input.capture));
    analysis::DpuAnswersOptions wanted;
    wanted.most_slices = options.most_slices;
    return doctor::answers_of(input, capture.input, capture.name, wanted, options.timeline);
}

Status add_source_text(const wm_capture& capture, Answers& answers) {
    auto files = capture.input.file_search();
    if (!files) return std::move(files.error());
    analysis::SourceSearch search;
    if (!capture.input.symfs.empty()) search.roots.emplace_back(capture.input.symfs);
    search.debug_folders = files->debug_path();
    analysis::read_sources(answers, search);
    return Nothing{};
}

}  // namespace

Result<Answers> answers_of(const wm_capture& capture, pipeline::FlowAnswersOptions options, const KeepsOn& keeps_on) {
    if (capture.live)
        return Error{Errc::usage, "a live capture has no answers: feed it to a decoder, and count the output"};
    if (capture.kind == WM_CAPTURE_ANSWERS) {
        Answers out = *capture.stored;
        pipeline::keep_what_is_asked(out, options);
        if (options.sources) WM_LEAVE_IF_ERROR(add_source_text(capture, out));
        return out;
    }
    Result<Answers> out = capture.kind == WM_CAPTURE_FLOW      ? of_flow(capture, options, keeps_on)
                          : capture.kind == WM_CAPTURE_SAMPLES ? of_samples(capture, options, keeps_on)
                                                               : of_counters(capture, options);
    if (!out) return capture.named(std::move(out.error()));
    if (options.sources) WM_LEAVE_IF_ERROR(add_source_text(capture, *out));
    for (answers::Finding& finding : out->health)
        for (std::string* const text : {&finding.what, &finding.todo}) *text = for_callers(std::move(*text));
    out->capture = capture.name;
    out->version = WAYMARK_VERSION;
    return out;
}

}  // namespace waymark::capi
