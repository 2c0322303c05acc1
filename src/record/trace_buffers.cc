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

Status TraceBuffers::open(fs::path file) {
    path_ = std::move(file);
    if (setup_) {
        path_to_sink_ = std::make_unique<sink::SinkPath>(*setup_);
    } else {
        if (ram_bytes_ != 0) ram_.emplace(static_cast<std::size_t>(ram_bytes_));
        formatter_ = std::make_unique<coresight::Formatter>(frames_);
    }
    file_ = ::open(path_.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (file_ < 0) return cannot("create", path_);
    return Nothing{};
}

void TraceBuffers::connect(coresight::TraceId id) {
    if (path_to_sink_) path_to_sink_->connect(id.value);
}

void TraceBuffers::add(coresight::TraceId id, Bytes bytes) {
    if (!path_to_sink_) {
        formatter_->add(id, bytes);
        return;
    }
    path_to_sink_->write(id.value, id, bytes);
    take_from_port();
}

void TraceBuffers::trigger(coresight::TraceId id) {
    if (path_to_sink_) path_to_sink_->trigger(id.value);
}

void TraceBuffers::flush() {
    if (formatter_) formatter_->flush();
    if (path_to_sink_) path_to_sink_->stop();
    take_from_port();
}

void TraceBuffers::take_from_port() {
    if (!path_to_sink_ || path_to_sink_->port() == nullptr) return;
    const std::vector<std::uint8_t> left = path_to_sink_->take();
    frames_.insert(frames_.end(), left.begin(), left.end());
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
    // Only whole frames stay in the file. The trace of a port has synchronisations between its frames.
    const bool whole_frames = !path_to_sink_;
    const std::size_t stays = whole_frames ? written - written % coresight::frame_bytes : written;
    file_bytes_ += stays;
    sent_ += stays;
    if (!all) {
        static_cast<void>(ftruncate(file_, static_cast<off_t>(file_bytes_)));
        return why;
    }
    frames_.clear();
    return Nothing{};
}

Status TraceBuffers::write_ram() const {
    if (!in_memory()) return Nothing{};
    // The file is moved into place, so that no reader sees half a buffer.
    const std::vector<std::uint8_t> contents = sink() != nullptr ? sink()->contents() : ram_->contents();
    WM_ASSIGN_OR_RETURN(const auto file, capture::FileSink::open(path_.string(), {}));
    file->write(contents);
    return file->commit();
}

void TraceBuffers::close() {
    replaced_before_ += replaced();
    if (sink() != nullptr) sent_ += sink()->written();
    ram_.reset();
    path_to_sink_.reset();
    if (file_ >= 0) ::close(file_);
    file_ = -1;
    file_bytes_ = 0;
    formatter_.reset();
}

std::uint64_t TraceBuffers::replaced() const {
    if (sink() != nullptr) return sink()->written() - std::min(sink()->written(), sink()->memory_bytes());
    return ram_ ? ram_->written() - std::min<std::uint64_t>(ram_->written(), ram_bytes_) : 0;
}

}  // namespace waymark::record
