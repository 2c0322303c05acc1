#include "trace_output.h"

#include <fmt/format.h>

#include <utility>

#include "waymark/record/files.h"

namespace waymark::record {

Result<TraceOutput::File*> TraceOutput::open(const std::string& name, std::string_view buffer) {
    auto file = std::make_unique<File>(folder_ / name, buffer);
    if (!file->out) return cannot("write", file->path);
    files_.push_back(std::move(file));
    return files_.back().get();
}

Result<TraceOutput::Input> TraceOutput::add(std::string_view source, std::string_view buffer, coresight::TraceId id) {
    if (!joined_) {
        WM_ASSIGN_OR_RETURN(File* const file, open(fmt::format("trace_{}.bin", source), buffer));
        file->sources.emplace_back(source);
        return Input{*file, {}};
    }
    if (funnel_ == nullptr) {
        WM_ASSIGN_OR_RETURN(File* const file, open("trace.bin", "ETB"));
        frames_ = std::make_unique<coresight::FrameSink>(*file);
        funnel_ = std::make_unique<coresight::Funnel>(*frames_);
    }
    files_.front()->sources.emplace_back(source);
    return Input{funnel_->input({id}), id};
}

Status TraceOutput::finish(capture::Capture& capture) {
    if (funnel_ != nullptr) funnel_->flush();
    using Format = capture::Buffer::Format;
    const Format format = joined_ ? Format::coresight : Format::source_data;
    for (const auto& file : files_) {
        if (!file->out.flush()) return cannot("write", file->path);
        capture.buffers.push_back(
            {file->buffer, format, std::string(capture::name(format)), {file->path}, file->sources});
    }
    return Nothing{};
}

}  // namespace waymark::record
