#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include "disk_access.h"
#include "ini.h"
#include "text.h"
#include "waymark/capture/snapshot.h"
#include "waymark/capture/snapshot_sinks.h"

namespace waymark::capture {
namespace {

namespace fs = std::filesystem;

/// `forbidden`: further characters that have a meaning in this place.
Status check_text(std::string_view what, std::string_view text, std::string_view forbidden = {}) {
    WM_RETURN_IF_ERROR(check_value("a snapshot", what, text, forbidden));
    if (text::unquote(text) != text)
        return Error{
            Errc::usage,
            fmt::format("{} '{}' cannot be written to a snapshot: its quotes would be lost; remove them", what, text)};
    return Nothing{};
}

Status check_name(std::string_view what, std::string_view name) {
    if (name.empty()) return Error{Errc::usage, fmt::format("{} has no name; give it one", what)};
    // A key must not look like a section, a location or a stream, nor end early; in lists, commas separate names.
    if (name.front() == '[' || name.front() == '@')
        return Error{
            Errc::usage,
            fmt::format(
                "{} '{}' cannot be written to a snapshot: a name must not begin with '[' or '@'; choose another", what,
                name)};
    return check_text(what, name, "=,()");
}

class SnapshotWriter {
public:
    SnapshotWriter(const Capture& capture, const std::vector<SinkDevice>& sinks, fs::path folder)
        : capture_(capture), sinks_(sinks), folder_(std::move(folder)) {}

    Status write();

private:
    Status check() const;
    Status check_links() const;
    Status plan_device(const std::string& preferred, std::string fallback, std::string text);
    [[nodiscard]] Result<std::string> relative(const fs::path& file, std::string_view forbidden) const;
    [[nodiscard]] Result<std::string> registers(const std::vector<Register>& registers) const;
    [[nodiscard]] Result<std::string> dumps(const std::string& core) const;
    [[nodiscard]] Result<std::string> device(std::string_view name, std::string_view device_class,
                                             std::string_view type, std::string_view location,
                                             const std::vector<Register>& regs) const;
    [[nodiscard]] Result<std::string> trace() const;
    Status save(const std::string& name, const std::string& text) const;

    const Capture& capture_;
    const std::vector<SinkDevice>& sinks_;
    fs::path folder_;
    std::vector<std::pair<std::string, std::string>> devices_;  // file name, text
    std::set<std::string> taken_{"snapshot.ini", "trace.ini"};
};

Status SnapshotWriter::check() const {
    WM_RETURN_IF_ERROR(check_text("the description", capture_.description));
    std::set<std::string> names;
    const auto add = [&](std::string_view what, const std::string& name) -> Status {
        WM_RETURN_IF_ERROR(check_name(what, name));
        if (!names.insert(name).second)
            return Error{Errc::usage,
                         fmt::format("{} '{}': there is another thing with that name; rename one", what, name)};
        return Nothing{};
    };
    for (const Core& core : capture_.cores) {
        WM_RETURN_IF_ERROR(add("core", core.name));
        WM_RETURN_IF_ERROR(check_text("core type", core.type));
        WM_RETURN_IF_ERROR(check_text("location", core.location));
    }
    for (const Source& source : capture_.sources) {
        WM_RETURN_IF_ERROR(add("trace source", source.name));
        WM_RETURN_IF_ERROR(check_text("trace source type", source.type));
        WM_RETURN_IF_ERROR(check_text("location", source.location));
    }
    names.clear();
    for (const Buffer& buffer : capture_.buffers) {
        WM_RETURN_IF_ERROR(add("buffer", buffer.name));
        WM_RETURN_IF_ERROR(check_text("buffer format", buffer.format_name));
        if (buffer.files.empty())
            return Error{Errc::usage, fmt::format("buffer '{}' has no file; name at least one", buffer.name)};
    }
    names.clear();
    for (const SinkDevice& sink : sinks_) {
        WM_RETURN_IF_ERROR(add("trace buffer's device", sink.name));
        WM_RETURN_IF_ERROR(check_text("trace buffer's type", sink.type));
    }
    names.clear();
    for (const Cluster& cluster : capture_.clusters) WM_RETURN_IF_ERROR(add("cluster", cluster.name));
    return check_links();
}

Status SnapshotWriter::check_links() const {
    std::set<std::string> cores, in_a_buffer;
    for (const Source& source : capture_.sources) {
        if (source.core.empty()) continue;
        if (capture_.find_core(source.core) == nullptr)
            return Error{Errc::usage,
                         fmt::format("trace source '{}' traces core '{}', which is not in the capture; add it",
                                     source.name, source.core)};
        if (!cores.insert(source.core).second)
            return Error{
                Errc::usage,
                fmt::format("core '{}' has two trace sources, but a snapshot can contain only one", source.core)};
    }
    for (const Buffer& buffer : capture_.buffers)
        for (const std::string& source : buffer.sources) {
            if (capture_.find_source(source) == nullptr)
                return Error{Errc::usage,
                             fmt::format("buffer '{}' contains trace source '{}', which is not in the capture; add it",
                                         buffer.name, source)};
            in_a_buffer.insert(source);
        }
    for (const Source& source : capture_.sources)
        if (source.stream && in_a_buffer.count(source.name) == 0)
            return Error{Errc::usage, fmt::format("trace source '{}' has a stream number but is in no buffer, and a "
                                                  "snapshot gives the number with the buffer; assign it to one",
                                                  source.name)};
    for (const Cluster& cluster : capture_.clusters)
        for (const std::string& core : cluster.cores)
            if (capture_.find_core(core) == nullptr)
                return Error{Errc::usage,
                             fmt::format("cluster '{}' names core '{}', which is not in the capture; add it",
                                         cluster.name, core)};
    for (const MemoryDump& dump : capture_.dumps)
        if (!dump.core.empty() && capture_.find_core(dump.core) == nullptr)
            return Error{Errc::usage,
                         fmt::format("memory dump '{}' belongs to core '{}', which is not in the capture; add it",
                                     dump.file.string(), dump.core)};
    return Nothing{};
}

Result<std::string> SnapshotWriter::relative(const fs::path& file, std::string_view forbidden) const {
    if (file == "-" || file.empty())
        return Error{Errc::usage, "standard input cannot be part of a snapshot; save it to a file and name that"};
    std::error_code ignored;
    const fs::path from = fs::absolute(folder_, ignored).lexically_normal();
    const fs::path to = fs::absolute(file, ignored).lexically_normal();
    // With a trailing slash `lexically_relative` would count one more level.
    std::string result = to.lexically_relative(from.has_filename() ? from : from.parent_path()).generic_string();
    WM_RETURN_IF_ERROR(check_text("file name", result, forbidden));
    return result;
}

Result<std::string> SnapshotWriter::registers(const std::vector<Register>& registers) const {
    std::string text;
    std::set<std::string> names;
    for (const Register& reg : registers) {
        WM_RETURN_IF_ERROR(check_name("register", reg.name));
        if (!names.insert(text::lower(reg.name)).second)
            return Error{Errc::usage, fmt::format("register {} appears twice; remove one", reg.name)};
        if (reg.bits < 1 || reg.bits > 64 || (reg.bits < 64 && (reg.value >> reg.bits) != 0))
            return Error{Errc::usage,
                         fmt::format("register {}: value {:#x} does not fit {} bits; a register has 1 to 64", reg.name,
                                     reg.value, reg.bits)};
        std::string info;
        if (reg.id) info = fmt::format("id:{:#04x}", *reg.id);
        if (reg.bits != 32) info += fmt::format("{}size:{}", info.empty() ? "" : ",", reg.bits);
        text += info.empty() ? reg.name : fmt::format("{}({})", reg.name, info);
        text += fmt::format("={:#010x}\n", reg.value);
    }
    return text.empty() ? text : "\n[regs]\n" + text;
}

Result<std::string> SnapshotWriter::dumps(const std::string& core) const {
    std::string text;
    unsigned count = 0;
    for (const MemoryDump& dump : capture_.dumps) {
        if (dump.core != core) continue;
        WM_ASSIGN_OR_RETURN(const std::string file, relative(dump.file, ""));
        WM_RETURN_IF_ERROR(check_text("memory space", dump.space));
        text += fmt::format("\n[dump{}]\nfile={}\naddress={:#010x}\n", count++, file, dump.address.value);
        if (dump.length) text += fmt::format("length={:#x}\n", *dump.length);
        if (dump.offset != 0) text += fmt::format("offset={:#x}\n", dump.offset);
        if (!dump.space.empty()) text += fmt::format("space={}\n", dump.space);
    }
    return text;
}

Result<std::string> SnapshotWriter::device(std::string_view name, std::string_view device_class, std::string_view type,
                                           std::string_view location, const std::vector<Register>& regs) const {
    std::string text = fmt::format("[device]\nname={}\nclass={}\n", name, device_class);
    if (!type.empty()) text += fmt::format("type={}\n", type);
    if (!location.empty()) text += fmt::format("location={}\n", location);
    WM_ASSIGN_OR_RETURN(const std::string values, registers(regs));
    return text + values;
}

/// Keeps the file name that a device had, if it names a file inside the folder and is not used twice.
Status SnapshotWriter::plan_device(const std::string& preferred, std::string fallback, std::string text) {
    const fs::path path(preferred);
    const bool plain = !preferred.empty() && path == path.filename() && path.extension() == ".ini" &&
                       check_text("", preferred).has_value() && taken_.count(preferred) == 0;
    std::string chosen = plain ? preferred : std::move(fallback);
    const std::string stem = fs::path(chosen).stem().string();
    for (unsigned i = 1; !taken_.insert(chosen).second; ++i) chosen = fmt::format("{}_{}.ini", stem, i);
    devices_.emplace_back(std::move(chosen), std::move(text));
    return Nothing{};
}

Result<std::string> SnapshotWriter::trace() const {
    std::string list, sections, cores, buffers;
    for (std::size_t i = 0; i < capture_.buffers.size(); ++i) {
        const Buffer& buffer = capture_.buffers[i];
        list += fmt::format("{}buffer{}", i == 0 ? "" : ",", i);
        std::string files;
        for (const fs::path& file : buffer.files) {
            WM_ASSIGN_OR_RETURN(const std::string part, relative(file, ","));
            files += (files.empty() ? "" : ",") + part;
        }
        const std::string format = buffer.format_name.empty() ? std::string(name(buffer.format)) : buffer.format_name;
        if (format.empty())
            return Error{Errc::usage, fmt::format("buffer '{}' has no format name; give it one", buffer.name)};
        if (buffer_format(format) != buffer.format)
            return Error{Errc::usage,
                         fmt::format("buffer '{}': its format name '{}' contradicts its format", buffer.name, format)};
        sections += fmt::format("\n[buffer{}]\nname={}\nfile={}\nformat={}\n", i, buffer.name, files, format);
        if (buffer.length) sections += fmt::format("length={}\n", *buffer.length);
        if (buffer.overwritten != 0) sections += fmt::format("overwritten={}\n", buffer.overwritten);
        for (const auto& [key, text] : {std::pair("begins", &buffer.begins), std::pair("ends", &buffer.ends)}) {
            WM_RETURN_IF_ERROR(check_text(fmt::format("buffer '{}', '{}'", buffer.name, key), *text));
            if (!text->empty()) sections += fmt::format("{}={}\n", key, *text);
        }
    }
    for (const Source& source : capture_.sources) {
        if (!source.core.empty()) cores += fmt::format("{}={}\n", source.core, source.name);
        std::string names;
        for (const Buffer& buffer : capture_.buffers)
            if (std::find(buffer.sources.begin(), buffer.sources.end(), source.name) != buffer.sources.end())
                names += (names.empty() ? "" : ",") + buffer.name;
        const std::string stream = source.stream ? fmt::format("(stream:{})", *source.stream) : std::string();
        if (!names.empty()) buffers += fmt::format("{}{}={}\n", source.name, stream, names);
    }
    std::string text = fmt::format("[trace_buffers]\nbuffers={}\n{}\n[core_trace_sources]\n{}\n[source_buffers]\n{}",
                                   list, sections, cores, buffers);
    if (capture_.timestamp_frequency_hz)
        text += fmt::format("\n[timestamp]\nfrequency={}\n", *capture_.timestamp_frequency_hz);
    return text;
}

Status SnapshotWriter::save(const std::string& name, const std::string& text) const {
    return save_text(folder_ / name, text);
}

Status SnapshotWriter::write() {
    WM_RETURN_IF_ERROR(check());
    // Memory of all cores comes first, so that a core's own memory is added later and wins where both define an
    // address.
    WM_ASSIGN_OR_RETURN(const std::string shared, dumps({}));
    if (!shared.empty()) {
        std::string memory = "memory";
        while (capture_.find_core(memory) != nullptr || capture_.find_source(memory) != nullptr) memory += '_';
        WM_ASSIGN_OR_RETURN(std::string text, device(memory, "memory_space", {}, {}, {}));
        WM_RETURN_IF_ERROR(plan_device({}, "memory.ini", text + shared));
    }
    for (std::size_t i = 0; i < capture_.cores.size(); ++i) {
        const Core& core = capture_.cores[i];
        WM_ASSIGN_OR_RETURN(std::string text, device(core.name, "core", core.type, core.location, core.registers));
        WM_ASSIGN_OR_RETURN(const std::string memory, dumps(core.name));
        WM_RETURN_IF_ERROR(plan_device(core.file, fmt::format("core_{}.ini", i), text + memory));
    }
    for (std::size_t i = 0; i < capture_.sources.size(); ++i) {
        const Source& source = capture_.sources[i];
        WM_ASSIGN_OR_RETURN(std::string text,
                            device(source.name, "trace_source", source.type, source.location, source.registers));
        WM_RETURN_IF_ERROR(plan_device(source.file, fmt::format("source_{}.ini", i), std::move(text)));
    }
    for (std::size_t i = 0; i < sinks_.size(); ++i) {
        const SinkDevice& sink = sinks_[i];
        WM_ASSIGN_OR_RETURN(std::string text,
                            device(sink.name, sink.link ? "trace_link" : "trace_sink", sink.type, {}, sink.registers));
        WM_RETURN_IF_ERROR(plan_device({}, fmt::format("{}_{}.ini", sink.link ? "link" : "sink", i), std::move(text)));
    }

    std::string snapshot = "[snapshot]\nversion=1.0\n";
    if (!capture_.description.empty()) snapshot += fmt::format("description={}\n", capture_.description);
    snapshot += "\n[device_list]\n";
    for (std::size_t i = 0; i < devices_.size(); ++i) snapshot += fmt::format("device{}={}\n", i, devices_[i].first);
    if (!capture_.clusters.empty()) snapshot += "\n[clusters]\n";
    for (const Cluster& cluster : capture_.clusters)
        snapshot += fmt::format("{}={}\n", cluster.name, fmt::join(cluster.cores, ","));
    const bool has_trace =
        !capture_.buffers.empty() || !capture_.sources.empty() || capture_.timestamp_frequency_hz.has_value();
    if (has_trace) snapshot += "\n[trace]\nmetadata=trace.ini\n";

    std::string trace_text;
    if (has_trace) {
        WM_ASSIGN_OR_RETURN(trace_text, trace());
    }
    std::error_code failure;
    fs::create_directories(folder_, failure);
    if (failure)
        return Error{Errc::unreadable,
                     fmt::format("{}: the folder cannot be made: {}", folder_.string(), failure.message())};
    for (const auto& [name, text] : devices_) WM_RETURN_IF_ERROR(save(name, text));
    if (has_trace) WM_RETURN_IF_ERROR(save("trace.ini", trace_text));
    if (capture_.modules.says_something())
        WM_RETURN_IF_ERROR(save(std::string(module_map_file), to_text(capture_.modules)));
    return save("snapshot.ini", snapshot);
}

}  // namespace

Status write_snapshot(const Capture& capture, const fs::path& folder) { return write_snapshot(capture, {}, folder); }

Status write_snapshot(const Capture& capture, const std::vector<SinkDevice>& sinks, const fs::path& folder) {
    return SnapshotWriter(capture, sinks, folder).write();
}

}  // namespace waymark::capture
