#include "waymark/pipeline/process_survey.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>

#include "waymark/core/numbers.h"
#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

namespace {

/// Counts contexts, and contexts that name a thread. Missing code is counted before it.
class ContextSink final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        for (const flow::Event& event : batch.events) {
            const auto* context = std::get_if<flow::Context>(&event.what);
            if (context == nullptr) continue;
            ++contexts;
            with_ids += context->context_id || context->vmid ? 1 : 0;
        }
    }
    [[nodiscard]] bool counts_suffice() const override { return true; }
    [[nodiscard]] flow::Split split() const override { return flow::Split::per_worker; }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override { return std::make_unique<ContextSink>(); }
    void join(flow::Sink& fork) override {
        const auto& other = static_cast<const ContextSink&>(fork);
        contexts += other.contexts;
        with_ids += other.with_ids;
    }
    std::uint64_t contexts = 0, with_ids = 0;
};

/// Passes a batch to two sinks, one after the other.
class Both final : public flow::Sink {
public:
    Both(flow::Sink& first, std::unique_ptr<flow::Sink> second) : first_(first), second_(std::move(second)) {}
    void consume(const flow::Batch& batch) override {
        first_.consume(batch);
        second_->consume(batch);
    }

private:
    flow::Sink& first_;
    std::unique_ptr<flow::Sink> second_;
};

/// Whether the capture's parts tell which thread ran.
bool threads_known(const capture::Capture& capture) {
    return std::all_of(capture.buffers.begin(), capture.buffers.end(), [](const capture::Buffer& buffer) {
        return std::all_of(buffer.parts.begin(), buffer.parts.end(),
                           [](const capture::BufferPart& part) { return part.thread.has_value(); });
    });
}

}  // namespace

void shorten(capture::Capture& capture, std::uint64_t most_bytes) {
    if (capture.buffers.empty()) return;
    const std::uint64_t share = most_bytes / capture.buffers.size();
    for (capture::Buffer& buffer : capture.buffers) {
        std::uint64_t bytes = 0;
        std::size_t count = 0;
        while (count < buffer.parts.size() && (count == 0 || bytes + buffer.parts[count].bytes <= share))
            bytes += buffer.parts[count++].bytes;
        buffer.parts.resize(count);
        // Only whole frames.
        constexpr std::uint64_t frame = 16;
        if (count == 1) buffer.parts[0].bytes = std::min(bytes, std::max(frame, share / frame * frame));
    }
}

ProcessSurvey survey_processes(const Session& session, const std::vector<const Source*>& selected,
                               std::uint64_t most_bytes, unsigned workers, const MakeSink& also) {
    ProcessSurvey out;
    if (session.capture.spaces == nullptr) return out;
    Session part = session;
    shorten(part.capture, most_bytes);
    for (const capture::Buffer& buffer : session.capture.buffers) out.of += capture::bytes_in(buffer.parts);
    for (const capture::Buffer& buffer : part.capture.buffers) out.bytes += capture::bytes_in(buffer.parts);

    std::vector<const Source*> with_flow;
    for (const Source* source : selected)
        if (source->has_flow()) with_flow.push_back(source);
    ContextSink sink;
    std::vector<std::unique_ptr<Both>> both;
    const Report decoded = run(part, with_flow, [&](const StreamInfo& stream) {
        if (!also) return flow_consumer(stream, sink, DecoderKind::fast, workers, Addresses::as_they_were);
        both.push_back(std::make_unique<Both>(sink, also(stream)));
        return flow_consumer(stream, *both.back(), DecoderKind::fast, 1, Addresses::as_they_were);
    });
    out.missing = code_damage(part, decoded);

    // The metadata state this kind of context ID.
    if (session.capture.spaces->thread_of(1, 1) && sink.contexts != 0 && sink.with_ids == 0)
        out.peculiarities.push_back(
            {"no-context-ids",
             fmt::format("threads are not in the trace: its metadata announce their IDs, but {} none",
                         sink.contexts == 1 ? "its only context has"
                                            : fmt::format("its {} contexts have", grouped(sink.contexts))),
             "context IDs or VMIDs, from which threads are known",
             std::string("the kernel traces them only when the recorder is in the initial PID namespace, so not in a "
                         "container; ") +
                 (threads_known(part.capture)
                      ? "the thread of each AUX range is the thread that its record or SWITCH records name"
                      : "the processes that ran are not known, so no code of a process is found"),
             "record outside the container, or with --per-thread", capture::Peculiarity::Weight::ambiguous});
    return out;
}

}  // namespace waymark::pipeline
