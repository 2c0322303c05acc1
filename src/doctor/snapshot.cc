#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "waymark/capture/byte_stream.h"
#include "waymark/capture/not_permitted.h"
#include "waymark/capture/placed_file.h"
#include "waymark/capture/ran_before.h"
#include "waymark/capture/snapshot.h"
#include "waymark/capture/snapshot_sinks.h"
#include "waymark/core/file_error.h"
#include "waymark/doctor/examine.h"
#include "waymark/flow/summary.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/program_file.h"
#include "waymark/pipeline/run.h"
#include "waymark/protocol/message.h"

namespace waymark::doctor {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t most_copied_bytes = std::uint64_t{64} << 20;

Error cannot_write(const fs::path& path, std::string_view why) {
    return {Errc::unreadable, fmt::format("cannot write {}: {}", path.string(), why)};
}

Status write_bytes(const fs::path& path, Bytes bytes) {
    errno = 0;
    std::ofstream out(path, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    if (!out.flush()) return cannot_write(path, reason(errno));
    return Nothing{};
}

/// Copies the trace itself, without the bytes before its first frame.
Status bring(const ExaminedBuffer& buffer, const fs::path& to) {
    std::error_code error;
    if (buffer.decoded != nullptr)
        return write_bytes(
            to, Bytes(*buffer.decoded).subspan(std::min<std::size_t>(buffer.skipped, buffer.decoded->size())));
    if (buffer.container == nullptr && buffer.skipped == 0 && buffer.files.size() == 1 && buffer.bytes &&
        *buffer.bytes > most_copied_bytes) {
        fs::create_symlink(fs::absolute(buffer.files.front()), to, error);
        return error ? Status(cannot_write(to, error.message())) : Status(Nothing{});
    }
    WM_ASSIGN_OR_RETURN(
        const auto in,
        capture::open_buffer(
            {.name = buffer.name, .files = buffer.files, .parts = buffer.parts, .container = buffer.container}));
    errno = 0;
    std::ofstream out(to, std::ios::binary);
    std::vector<std::uint8_t> piece(std::size_t{1} << 20);
    std::uint64_t skip = buffer.skipped;
    for (;;) {
        const auto count = in->read(piece);
        if (!count || *count == 0) break;  // the readable part is kept; the report names the rest
        const std::uint64_t drop = std::min<std::uint64_t>(skip, *count);
        skip -= drop;
        out.write(reinterpret_cast<const char*>(piece.data() + drop), static_cast<std::streamsize>(*count - drop));
        if (!out) break;
    }
    if (!out.flush()) return cannot_write(to, reason(errno));
    return Nothing{};
}

std::vector<capture::Register> registers_of(const ExaminedSource& source) {
    std::vector<capture::Register> out = source.configuration->registers();
    const auto field = source.configuration->protocol().trace_id();
    if (!field || !source.trace_id) return out;
    const capture::Register id{std::string(field->register_name),
                               std::uint64_t{source.trace_id->value} << field->lowest_bit, field->number};
    const auto there = std::find_if(out.begin(), out.end(), [&](const auto& r) { return r.name == id.name; });
    if (there == out.end())
        out.push_back(id);
    else
        *there = id;
    return out;
}

/// Adds the pieces of memory that an image fills, each in a file of its own.
Status add_memory(capture::Capture& capture, const std::string& argument, const std::string& core,
                  const fs::path& folder, std::map<std::string, std::vector<capture::MemoryDump>>& written) {
    if (!written.contains(argument)) {
        WM_ASSIGN_OR_RETURN(const auto map, load_argument(argument)(0));
        std::vector<capture::MemoryDump> dumps;
        for (const follow::CodeExtent& extent : extents_of(*map, true)) {
            const fs::path file = folder / fmt::format("memory_{}_{:08x}.bin", written.size(), extent.first.value);
            const Bytes bytes = map->at(extent.first, {.ns = true}).bytes;
            WM_RETURN_IF_ERROR(write_bytes(file, bytes.first(std::min<std::uint64_t>(bytes.size(), extent.bytes))));
            dumps.push_back({{}, file, extent.first, 0, std::nullopt, {}});
        }
        written[argument] = std::move(dumps);
    }
    for (capture::MemoryDump dump : written[argument]) {
        dump.core = core;
        capture.dumps.push_back(std::move(dump));
    }
    return Nothing{};
}

/// Adds the ELF file, whose symbols and lines name the code; nothing for a raw dump. If the description has the file,
/// by its build ID or else by its path, the description's facts about the file remain.
Status add_program(capture::Capture& capture, const std::string& argument, const fs::path& folder) {
    WM_ASSIGN_OR_RETURN(const image::ImageArgument image, image::parse_image_argument(argument));
    const auto kind = image::recognise(image.path);
    if (!kind || *kind != image::ImageKind::elf) return Nothing{};
    WM_ASSIGN_OR_RETURN(const image::DebugInfo info, image::DebugInfo::open(image.path));
    std::error_code error;
    const std::string file = fs::absolute(image.path, error).lexically_normal().string();
    const std::vector<std::uint8_t> id = info.build_id();
    const auto is_it = [&](const auto& described) {
        return id.empty() ? described.build_id.empty() && described.file == file : described.build_id == id;
    };
    capture::ModuleMap& map = capture.modules;
    if (std::any_of(map.copies.begin(), map.copies.end(), is_it)) return Nothing{};
    const auto mapped = std::find_if(map.modules.begin(), map.modules.end(), is_it);
    std::string name = image.path.filename().string();
    std::replace_if(
        name.begin(), name.end(), [](char c) { return c == ' ' || c == '\t'; }, '_');
    for (unsigned n = 2; fs::exists(folder / name, error); ++n) name = fmt::format("{}_{}", n, name);
    if (!fs::copy_file(image.path, folder / name, error)) return cannot_write(folder / name, error.message());
    map.copies.push_back({name, id, mapped != map.modules.end() ? mapped->file : file});
    if (mapped != map.modules.end()) return Nothing{};
    const std::uint64_t bias = image.address.value_or(Address{}).value;
    if (map.empty()) map.clock = capture::instructions_clock;
    for (const image::DebugInfo::Segment& segment : info.segments())
        if (segment.executable && segment.bytes != 0)
            map.modules.push_back({0, segment.address + bias, segment.bytes, segment.offset, file, id, 0, {}});
    return Nothing{};
}

Status write_into(const ExaminationReport& report, const fs::path& folder);
Status write_described(const ExaminationReport& report, const fs::path& folder);

bool is_written(const ExaminedSource& source) { return source.has_flow() || source.has_messages(); }

/// Counts the messages of a stream.
class MessageCount final : public pipeline::ReaderConsumer, private protocol::MessageListener {
public:
    MessageCount(const protocol::MessageSource& source, Decoded& out) : out_(out) { reader_ = source.messages(*this); }

private:
    void message(const protocol::Message& message) override {
        ++(message.kind == protocol::MessageKind::damage ? out_.damages : out_.messages);
    }
    Decoded& out_;
};

}  // namespace

Result<Decoded> decode_written(const fs::path& folder) {
    WM_ASSIGN_OR_RETURN(capture::Capture capture, capture::read_snapshot(folder));
    WM_ASSIGN_OR_RETURN(const pipeline::Session session, pipeline::make_session(std::move(capture), {}));
    WM_ASSIGN_OR_RETURN(const auto selected, session.select({}));
    std::map<std::string, flow::Summary> sums;
    Decoded out;
    const pipeline::Report report = pipeline::run(
        session, selected, [&](const pipeline::StreamInfo& stream) -> std::unique_ptr<pipeline::Consumer> {
            if (const auto* const messages = protocol::message_source(stream.source.configuration.get()))
                return std::make_unique<MessageCount>(*messages, out);
            return pipeline::flow_consumer(stream, sums[stream.source.id_text()], pipeline::DecoderKind::fast);
        });
    for (const auto& [name, sum] : sums) out.totals += sum.totals();
    for (const std::uint64_t n : out.totals.inconsistencies) out.contradictions += n;
    return out;
}

Status write_inferred(const ExaminationReport& report, const fs::path& folder) {
    if (std::none_of(report.sources.begin(), report.sources.end(), is_written))
        return Error{Errc::usage,
                     fmt::format("no source sends {}, and none messages, so there is no snapshot to write; samples of "
                                 "a profile are read without a snapshot (waymark spe records FILE)",
                                 pipeline::decoded_trace())};
    std::error_code error;
    if (fs::exists(folder, error) && !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
        return Error{Errc::usage, fmt::format("{} exists and is not empty; name another folder", folder.string())};
    WM_ASSIGN_OR_RETURN(const auto placed, capture::PlacedFolder::open(folder.string()));
    if (Status written = report.description.empty() ? write_into(report, placed->folder())
                                                    : write_described(report, placed->folder());
        !written)
        return placed->as_placed(std::move(written.error()));
    return placed->commit_new();
}

namespace {

Status write_into(const ExaminationReport& report, const fs::path& folder) {
    capture::Capture capture;
    capture.description = "inferred by waymark doctor";
    std::map<std::string, std::vector<capture::MemoryDump>> written;
    std::set<std::string> names;
    for (std::size_t i = 0; i < report.buffers.size(); ++i) {
        const ExaminedBuffer& from = report.buffers[i];
        capture::Buffer buffer;
        buffer.name = fmt::format("buffer{}", i);
        buffer.format = from.format;
        buffer.format_name = std::string(capture::name(from.format));
        buffer.files = {folder / fmt::format("trace_{}.bin", i)};
        for (const ExaminedSource& source : report.sources) {
            if (source.buffer != from.name || !is_written(source)) continue;
            const std::string name =
                source.trace_id ? fmt::format("source_{:02x}", source.trace_id->value) : fmt::format("source_{}", i);
            buffer.sources.push_back(name);
            if (!names.insert(name).second) continue;  // the same source in another buffer
            capture::Source described;
            described.name = name;
            described.type = source.configuration->source_type();
            described.registers = registers_of(source);
            if (!source.has_flow()) {  // the bytes do not show its core
                capture.sources.push_back(std::move(described));
                continue;
            }
            const std::string core = "cpu" + name.substr(std::string_view("source").size());
            const std::string core_type = source.configuration->core_type();
            capture.cores.push_back({core, core_type});
            described.core = core;
            described.core_type = core_type;
            capture.sources.push_back(std::move(described));
            const auto arguments = source.image ? report.images[*source.image].arguments() : std::vector<std::string>{};
            for (const std::string& argument : arguments) {
                const bool first = !written.contains(argument);
                WM_RETURN_IF_ERROR(add_memory(capture, argument, core, folder, written));
                if (first) WM_RETURN_IF_ERROR(add_program(capture, argument, folder));
            }
        }
        if (buffer.sources.empty()) continue;
        WM_RETURN_IF_ERROR(bring(from, buffer.files.front()));
        capture.buffers.push_back(std::move(buffer));
    }
    return capture::write_snapshot(capture, folder);
}

/// Copies a file once under each name, or links a large one. Returns its path in the folder.
class Copies {
public:
    explicit Copies(const fs::path& folder) : folder_(folder) {}

    Result<fs::path> copy(const fs::path& from, const std::string& name) {
        const fs::path to = folder_ / name;
        if (!copied_.emplace(from.lexically_normal(), name).second) return to;
        std::error_code error;
        const auto bytes = fs::file_size(from, error);
        if (!error && bytes > most_copied_bytes)
            fs::create_symlink(fs::absolute(from), to, error);
        else if (!error)
            fs::copy_file(from, to, error);
        if (error) return cannot_write(to, error.message());
        return to;
    }

private:
    const fs::path& folder_;
    std::set<std::pair<fs::path, std::string>> copied_;
};

/// The memory of a snapshot, and the files with names of its code.
Status bring_memory(capture::Capture& capture, const fs::path& folder) {
    Copies copies(folder);
    std::error_code error;
    std::map<fs::path, std::string> dumped;  // several dumps may be parts of one file
    for (capture::MemoryDump& dump : capture.dumps) {
        if (!fs::exists(dump.file, error)) continue;  // the description keeps naming it
        const auto [known, is_new] =
            dumped.try_emplace(dump.file.lexically_normal(), fmt::format("code_{}.bin", dumped.size()));
        WM_ASSIGN_OR_RETURN(dump.file, copies.copy(dump.file, known->second));
    }
    const fs::path from = capture.path.parent_path();
    // No description names these files: they contain facts about the recording that its trace does not contain.
    std::set<std::string> names{std::string(capture::ran_before_file), std::string(capture::not_permitted_file)};
    for (const capture::CopiedFile& file : capture.modules.copies) names.insert(file.copy);
    for (const capture::GeneratedNames& file : capture.modules.names) names.insert(file.file);
    for (const std::string& name : names)
        if (fs::exists(from / name, error)) {
            WM_ASSIGN_OR_RETURN([[maybe_unused]] const fs::path copy, copies.copy(from / name, name));
        }
    return Nothing{};
}

/// The registers of the description, corrected by the settings that the bytes prove.
std::vector<capture::Register> corrected(std::vector<capture::Register> described, const ExaminedSource& source) {
    if (source.as_described != nullptr && source.configuration->equals(*source.as_described)) return described;
    for (capture::Register& right : registers_of(source)) {
        const auto there = std::find_if(described.begin(), described.end(),
                                        [&](const capture::Register& r) { return r.name == right.name; });
        if (there == described.end())
            described.push_back(std::move(right));
        else
            there->value = right.value;
    }
    return described;
}

/// Writes a snapshot folder that was examined, with its own description, corrected.
Status write_described(const ExaminationReport& report, const fs::path& folder) {
    // The capture as it was read: for the examination, the units' own rings of memory were put in order.
    WM_ASSIGN_OR_RETURN(capture::Capture capture, capture::read_snapshot(report.description));
    std::map<std::string, std::vector<capture::MemoryDump>> written;
    WM_RETURN_IF_ERROR(bring_memory(capture, folder));
    for (std::size_t i = 0; i < report.buffers.size(); ++i) {
        ExaminedBuffer from = report.buffers[i];
        from.container = nullptr;
        from.parts.clear();
        const auto buffer = std::find_if(capture.buffers.begin(), capture.buffers.end(),
                                         [&](const capture::Buffer& b) { return b.name == from.name; });
        if (buffer == capture.buffers.end()) continue;
        if (!from.bytes || from.skipped != 0 || from.decoded != nullptr) buffer->length.reset();
        if (from.no_trace.empty()) {
            buffer->format = from.format;
            buffer->format_name = std::string(capture::name(from.format));
        }
        buffer->files = {folder / fmt::format("trace_{}.bin", i)};
        WM_RETURN_IF_ERROR(bring(from, buffer->files.front()));
        for (const ExaminedSource& source : report.sources) {
            if (source.buffer != from.name || !is_written(source)) continue;
            auto described = std::find_if(capture.sources.begin(), capture.sources.end(),
                                          [&](const capture::Source& s) { return s.name == source.name; });
            if (described == capture.sources.end()) {  // no description: as of bare bytes
                described = capture.sources.insert(described, capture::Source{source.name, {}});
                buffer->sources.push_back(source.name);
                if (source.has_flow()) {
                    described->core = "cpu_of_" + source.name;
                    described->core_type = source.configuration->core_type();
                    capture.cores.push_back({described->core, described->core_type});
                }
            }
            if (!source.configured || !source.configuration->equals(*source.as_described))
                described->type = source.configuration->source_type();
            described->registers = corrected(std::move(described->registers), source);
            const std::string core = described->core;
            const auto arguments = source.image ? report.images[*source.image].arguments() : std::vector<std::string>{};
            for (const std::string& argument : arguments) {
                const bool first = !written.contains(argument);
                WM_RETURN_IF_ERROR(add_memory(capture, argument, core, folder, written));
                if (first) WM_RETURN_IF_ERROR(add_program(capture, argument, folder));
            }
        }
    }
    WM_ASSIGN_OR_RETURN(const std::vector<capture::SinkDevice> sinks, capture::read_snapshot_sinks(report.description));
    return capture::write_snapshot(capture, sinks, folder);
}

}  // namespace

}  // namespace waymark::doctor
