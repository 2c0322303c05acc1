#include "waymark/record/trace_buffers.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "waymark/capture/placed_file.h"
#include "waymark/record/files.h"

namespace waymark::record {

namespace fs = std::filesystem;

TraceBuffers::~TraceBuffers() {
    if (file_ >= 0) ::close(file_);
}

/// Makes an unprogrammed sink, and programs it.
void TraceBuffers::open_sink() {
    program_ = sink::program_of(*setup_);
    sink::TmcConfig found = setup_->buffer;
    if (found.kind == sink::SinkKind::etr) {
        // Its program sets size and address.
        constexpr std::uint64_t any_size = 4096;
        found.memory_bytes = any_size;
        found.base = 0;
    }
    sink_ = std::make_unique<sink::Tmc>(found);
    port_ = sink::locked_port(*sink_);
    carry_out(program_.enable);
}

void TraceBuffers::carry_out(std::span<const flow::RegisterStep> steps) {
    std::uint64_t cycle = 0;
    WM_CHECK(flow::carry_out(steps, *port_, cycle));
}

Status TraceBuffers::open(fs::path file) {
    path_ = std::move(file);
    if (setup_) {
        open_sink();
    } else {
        if (ram_bytes_ != 0) ram_.emplace(static_cast<std::size_t>(ram_bytes_));
        formatter_ = std::make_unique<coresight::Formatter>(frames_);
    }
    file_ = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (file_ < 0) return cannot("create", path_);
    return Nothing{};
}

void TraceBuffers::add(coresight::TraceId id, Bytes bytes) {
    if (sink_)
        sink_->write(id, bytes);
    else
        formatter_->add(id, bytes);
}

void TraceBuffers::trigger() {
    if (sink_) sink_->trigger();
}

void TraceBuffers::flush() {
    if (formatter_) formatter_->flush();
    if (sink_) carry_out(program_.disable);
}

Status TraceBuffers::write() {
    if (ram_) {
        ram_->write(frames_);
        sent_ += frames_.size();
        frames_.clear();
    }
    if (file_ < 0 || frames_.empty()) return Nothing{};
    const std::size_t written = write_some(file_, frames_);
    const bool all = written == frames_.size();
    Error why = cannot("write", path_);
    // Only whole frames stay in the file.
    file_bytes_ += written - written % coresight::frame_bytes;
    sent_ += written - written % coresight::frame_bytes;
    if (!all) {
        static_cast<void>(ftruncate(file_, static_cast<off_t>(file_bytes_)));
        return why;
    }
    frames_.clear();
    return Nothing{};
}

Status TraceBuffers::write_ram() const {
    if (!ram_ && !sink_) return Nothing{};
    // The file is moved into place, so that no reader sees half a buffer.
    const std::vector<std::uint8_t> contents = sink_ ? sink_->contents() : ram_->contents();
    WM_ASSIGN_OR_RETURN(const auto file, capture::FileSink::open(path_.string(), {}));
    file->write(contents);
    return file->commit();
}

void TraceBuffers::close() {
    replaced_before_ += replaced();
    if (sink_) sent_ += sink_->written();
    ram_.reset();
    port_.reset();
    sink_.reset();
    if (file_ >= 0) ::close(file_);
    file_ = -1;
    file_bytes_ = 0;
    formatter_.reset();
}

std::uint64_t TraceBuffers::replaced() const {
    if (sink_) return sink_->written() - std::min<std::uint64_t>(sink_->written(), sink_->memory_bytes());
    return ram_ ? ram_->written() - std::min<std::uint64_t>(ram_->written(), ram_bytes_) : 0;
}

}  // namespace waymark::record
