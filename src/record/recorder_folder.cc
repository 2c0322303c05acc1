/// The folder of a recording: description, truth, images and trace. They grow on disk so that the folder can be read at
/// any time.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>
#include <tuple>

#include "waymark/capture/not_permitted.h"
#include "waymark/capture/snapshot.h"
#include "waymark/record/files.h"
#include "waymark/record/recorder.h"

namespace waymark::record {

namespace fs = std::filesystem;

namespace {

/// Makes a text valid in an ini file: `#` and `;`, as in `{lambda(int)#1}`, would begin a comment.
std::string in_ini(std::string text) {
    std::replace_if(
        text.begin(), text.end(), [](char c) { return c == '#' || c == ';' || c == '\n' || c == '\r'; }, '_');
    return text;
}

/// Moves all files from one folder to the other, and removes the first.
Status move_files(const fs::path& from, const fs::path& to) {
    std::error_code error;
    std::vector<fs::path> files;
    for (const fs::directory_entry& entry : fs::directory_iterator(from, error)) files.push_back(entry.path());
    // snapshot.ini is moved last, because it names the others.
    std::sort(files.begin(), files.end(), [](const fs::path& a, const fs::path& b) {
        const auto last = [](const fs::path& p) { return p.filename() == "snapshot.ini"; };
        return last(a) != last(b) ? last(b) : a < b;
    });
    for (const fs::path& file : files) {
        fs::rename(file, to / file.filename(), error);
        if (error)
            return Error{Errc::unreadable,
                         fmt::format("cannot write {}: {}", (to / file.filename()).string(), error.message())};
    }
    fs::remove_all(from, error);
    return Nothing{};
}

}  // namespace

/// Describes the present memory of this epoch.
void Recorder::describe_images() {
    capture_.dumps.resize(dumps_before_);
    for (const std::string& core : epoch_cores_)
        for (capture::MemoryDump& dump : images_.dumps(core)) capture_.dumps.push_back(std::move(dump));
}

/// Moves the memory of this epoch to that of earlier ones.
Status Recorder::archive_images() {
    WM_RETURN_IF_ERROR(images_.archive());
    describe_images();
    images_.new_epoch();
    return Nothing{};
}

Status Recorder::write_trace(bool ended) {
    if (failure_) return *failure_;
    // The description is written first, so that the sources and code of all trace on disk are described there. Buffers
    // without a description are ignored by readers; otherwise a program that changes its code often would have all
    // buffers described at each change.
    const bool unknown = ended && capture_.buffers.size() > described_buffers_;
    if (!unknown && (!described_ || images_.changed())) WM_RETURN_IF_ERROR(describe(false));
    WM_RETURN_IF_ERROR(buffers_.write());
    // The first bytes are the ones that show to which trace the code before the recording belongs.
    return before_waits_ && buffers_.file_bytes() != 0 && !unknown ? describe(false) : Status(Nothing{});
}

Status Recorder::write_ram() {
    if (failure_) return *failure_;
    WM_RETURN_IF_ERROR(buffers_.write_ram());
    note_sink();
    if (!buffers_.wrapped()) return Nothing{};
    recorded_.wrapped = true;
    capture::Buffer& buffer = capture_.buffers.back();
    buffer.wrapped = true;
    buffer.overwritten = buffers_.replaced();
    for (SourceTruth& source : truth_.sources)
        if (std::find(buffer.sources.begin(), buffer.sources.end(), source.source) != buffer.sources.end())
            source.wrapped = true;
    return Nothing{};
}

/// Code that ran before the recording began. For a system, addresses alone do not identify code; nor do they if a file
/// whose code ran was mapped elsewhere later.
std::optional<capture::RanBefore> Recorder::ran_before() const {
    if (!extent_.start() || !extent_.began() || options_.system || modules_.unrecorded_moved()) return std::nullopt;
    return earlier_code_.found();
}

/// Describes the folder, with all files in `folder`, where the writer of snapshots expects them.
capture::Capture Recorder::description(bool complete, const fs::path& folder) const {
    capture::Capture described = capture_;
    described.modules = modules_.map();
    described.modules.names = generated_names_;
    if (recorded_.wrapped)
        described.description +=
            fmt::format(", the last {} bytes of a buffer that wrapped", options_.sink && options_.sink->buffer
                                                                            ? options_.sink->buffer->buffer.memory_bytes
                                                                            : options_.buffer_bytes);
    if (!described.buffers.empty()) {
        if (extent_.start())
            described.buffers.front().begins =
                in_ini(fmt::format("where execution first reached {} (--start-at)", extent_.start()->text()));
        described.buffers.back().ends = in_ini(ends_);
        if (!complete && ends_.empty()) described.buffers.back().ends = "before the program did, or still goes on";
    }
    for (capture::MemoryDump& dump : described.dumps) dump.file = folder / dump.file.filename();
    std::error_code error;
    for (capture::Buffer& buffer : described.buffers)
        for (fs::path& file : buffer.files) {
            // A reader then notices if frames are missing later.
            if (complete)
                if (const std::uintmax_t bytes = fs::file_size(file, error); !error)
                    buffer.length = buffer.length.value_or(0) + bytes;
            file = folder / file.filename();
        }
    return described;
}

Status Recorder::describe(bool complete) {
    WM_RETURN_IF_ERROR(images_.write());
    describe_images();
    // Written to a temporary file and moved into place, so that no reader sees half a file.
    const fs::path fresh = options_.folder / ".new";
    std::error_code ignored;
    fs::remove_all(fresh, ignored);
    const auto as_placed = [&](Error error) {
        const std::string within = fresh.string();
        if (const std::size_t at = error.message.find(within); at != error.message.npos)
            error.message.replace(at, within.size(), options_.folder.string());
        fs::remove_all(fresh, ignored);
        return error;
    };
    if (Status written = capture::write_snapshot(description(complete, fresh), sinks_, fresh); !written)
        return as_placed(std::move(written.error()));
    truth_.complete = complete;
    const std::string text = to_text(truth_);
    if (!(std::ofstream(fresh / truth_file, std::ios::binary) << text).flush())
        return as_placed(cannot("write", fresh / truth_file));
    auto before = ran_before();
    if (before) {
        // As long as there is no trace, the code does not belong to any.
        const auto trace = capture_.buffers.empty() ? Result<capture::RanBefore::Trace>(capture::RanBefore::Trace{})
                                                    : capture::trace_of(capture_.buffers.front());
        before->trace = trace ? *trace : capture::RanBefore::Trace{};
    }
    before_waits_ = before && before->trace.bytes == 0;
    if (!before || before_waits_)
        fs::remove(options_.folder / capture::ran_before_file, ignored);
    else if (!(std::ofstream(fresh / capture::ran_before_file, std::ios::binary) << capture::to_text(*before)).flush())
        return as_placed(cannot("write", fresh / capture::ran_before_file));
    if (recorded_.prohibited.empty())
        fs::remove(options_.folder / capture::not_permitted_file, ignored);
    else if (!(std::ofstream(fresh / capture::not_permitted_file, std::ios::binary)
               << capture::not_permitted_text(recorded_.prohibited))
                  .flush())
        return as_placed(cannot("write", fresh / capture::not_permitted_file));
    WM_RETURN_IF_ERROR(move_files(fresh, options_.folder));
    images_.remove_outdated();
    described_ = true;
    described_buffers_ = capture_.buffers.size();
    recorded_.decodable = !capture_.sources.empty();
    return Nothing{};
}

Status Recorder::flush() {
    if (failure_) return *failure_;
    for (auto& [number, t] : threads_)
        if (t.stream && t.stream->ranges) t.stream->ranges->flush();
    described_ = false;
    Status status = write_trace();
    if (status) status = write_ram();
    // In a memory the oldest trace may have been replaced.
    if (status && buffers_.in_memory() && ran_before()) status = describe(false);
    fail_if(status);
    return status;
}

Result<std::size_t> Recorder::take_generated_names(std::uint32_t process, fs::file_time_type began) {
    using Format = capture::GeneratedNames::Format;
    const fs::path perf_map = fmt::format("/tmp/perf-{}.map", process), jitdump = fmt::format("jit-{}.dump", process);
    for (const auto& [from, copy, format] :
         {std::tuple{perf_map, perf_map_copy, Format::perf_map}, std::tuple{jitdump, jitdump_copy, Format::jitdump}}) {
        std::error_code error;
        // An older file belongs to another process that had the number.
        if (!fs::is_regular_file(from, error) || fs::last_write_time(from, error) < began || error) continue;
        if (!fs::copy_file(from, options_.folder / copy, fs::copy_options::overwrite_existing, error))
            return Error{Errc::unreadable, fmt::format("cannot copy {} to {}: {}", from.string(),
                                                       (options_.folder / copy).string(), error.message())};
        generated_names_.push_back({format, std::string(copy)});
    }
    return generated_names_.size();
}

}  // namespace waymark::record
