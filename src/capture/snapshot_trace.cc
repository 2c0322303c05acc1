// trace.ini of a snapshot: buffers, the trace sources in each buffer, and the core that each source traces.

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "snapshot_ini.h"
#include "text.h"

namespace waymark::capture {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t frame_bytes = 16;

class TraceReader : SnapshotIni {
public:
    TraceReader(SnapshotParts& parts, const Ini& ini) : SnapshotIni(parts, ini) {}
    void read();

private:
    void read_buffers();
    void read_buffer(const IniSection& section);
    void read_core_sources();
    void read_source_buffers();
    void read_source_buffer(const IniEntry& entry, std::set<std::string>& seen);
    void read_timestamp();
    void check_buffers();
    /// The source that is named, directly or as `@location`; reports a problem if there is none.
    [[nodiscard]] Source* source_named(const IniEntry& entry, std::string_view written);
    void check_buffer_file(const IniEntry& entry, const Buffer& buffer, const fs::path& file);
};

void TraceReader::read() {
    std::vector<std::string_view> known{"trace_buffers", "core_trace_sources", "source_buffers", "timestamp"};
    if (const IniSection* list = ini_.section("trace_buffers"))
        for (const IniEntry& entry : list->entries)
            if (text::equal_ignoring_case(entry.key, "buffers"))
                for (const std::string_view buffer : text::split(entry.value, ',')) known.push_back(buffer);
    unknown_sections(known);
    read_buffers();
    read_source_buffers();
    read_core_sources();
    read_timestamp();
    check_buffers();
}

void TraceReader::read_buffers() {
    const IniSection* list = ini_.section("trace_buffers");
    const IniEntry* buffers = list == nullptr ? nullptr : single(*list, "buffers");
    if (buffers == nullptr) {
        problem(list == nullptr ? 0 : list->line,
                "There is no key 'buffers' in a section [trace_buffers], so there is no trace. Add buffers= and the "
                "names of "
                "the buffer sections.");
        return;
    }
    unknown_keys(*list, {"buffers"}, false);
    std::vector<std::string_view> sections = names(ini_.sections());
    std::set<std::string> seen;
    for (const std::string_view name : text::split(buffers->value, ',')) {
        if (name.empty()) {
            problem(buffers->line, "A name between commas in 'buffers' is empty; it was ignored. Remove the comma.");
            continue;
        }
        if (!seen.insert(text::lower(name)).second) {
            problem(buffers->line, fmt::format("Buffer '{}' is listed twice and was read once. Remove one.", name));
            continue;
        }
        if (const IniSection* section = ini_.section(name))
            read_buffer(*section);
        else
            problem(buffers->line, fmt::format("Buffer '{}' has no section [{}] and was omitted.{} Add the section, "
                                               "with name=, file= and format=.",
                                               name, name, did_you_mean(name, sections)));
    }
}

void TraceReader::read_buffer(const IniSection& section) {
    unknown_keys(section, {"name", "file", "format", "length", "overwritten", "begins", "ends"}, false);
    Buffer buffer;
    if (const IniEntry* name = single(section, "name")) buffer.name = name->value;
    if (buffer.name.empty()) {
        problem(section.line,
                fmt::format("[{}] has no key 'name'; the name of the section is used. Add it.", section.name));
        buffer.name = section.name;
    }
    if (parts_.capture.find_buffer(buffer.name) != nullptr) {
        problem(section.line, fmt::format("There is another buffer with the name '{}'; the first one is used and this "
                                          "one was omitted. Give it a different name.",
                                          buffer.name));
        return;
    }
    if (const IniEntry* format = single(section, "format"); format != nullptr && !format->value.empty()) {
        buffer.format_name = format->value;
        buffer.format = buffer_format(format->value);
        if (buffer.format == Buffer::Format::unknown)
            problem(format->line,
                    fmt::format("Buffer '{}' has format '{}', which is unknown, so it cannot be read.{} Known are: "
                                "coresight, source_data, dstream_coresight.",
                                buffer.name, format->value,
                                did_you_mean(format->value, {"coresight", "source_data", "dstream_coresight"})));
    } else {
        problem(section.line, fmt::format("Buffer '{}' has no key 'format'; it is read as coresight (16-byte frames). "
                                          "Add format=coresight or format=source_data.",
                                          buffer.name));
        buffer.format_name = name(buffer.format);
    }
    if (const IniEntry* length = single(section, "length"))
        buffer.length = number(section, *length, "it is not known how many bytes were written");
    if (const IniEntry* overwritten = single(section, "overwritten"))
        buffer.overwritten =
            number(section, *overwritten, "it is not known whether older trace was replaced").value_or(0);
    buffer.wrapped = buffer.overwritten != 0;
    if (const IniEntry* begins = single(section, "begins")) buffer.begins = begins->value;
    if (const IniEntry* ends = single(section, "ends")) buffer.ends = ends->value;
    const IniEntry* file = single(section, "file");
    if (file == nullptr || file->value.empty()) {
        problem(section.line,
                fmt::format("Buffer '{}' has no key 'file', so its trace cannot be read; it was omitted. Add it.",
                            buffer.name));
        return;
    }
    for (const std::string_view part : text::split(file->value, ',')) {
        const std::string_view path = text::unquote(part);
        if (path.empty()) {
            problem(file->line, fmt::format("A file name between commas in buffer '{}' is empty; it was ignored. "
                                            "Remove the comma.",
                                            buffer.name));
            continue;
        }
        buffer.files.push_back(resolve(*file, path));
        check_buffer_file(*file, buffer, buffer.files.back());
    }
    parts_.capture.buffers.push_back(std::move(buffer));
}

void TraceReader::check_buffer_file(const IniEntry& entry, const Buffer& buffer, const fs::path& file) {
    const auto bytes = parts_.files.size(file);
    if (!bytes) {
        problem(entry.line,
                fmt::format("'{}' of buffer '{}' cannot be read: {}. Copy it into the snapshot folder.", file.string(),
                            buffer.name, bytes.error().message),
                file);
        return;
    }
    // A unit that traced nothing has written nothing.
    if (*bytes == 0 && buffer.length != 0U)
        problem(
            entry.line,
            fmt::format("'{}' of buffer '{}' is empty. Check that the trace was saved.", file.string(), buffer.name),
            file);
    // Only all parts together must consist of whole frames. The size of a compressed file shows nothing about that.
    const std::string extension = text::lower(file.extension().string());
    const bool compressed = extension == ".gz" || extension == ".zst";
    const bool single_file = entry.value.find(',') == std::string::npos;
    if (buffer.format == Buffer::Format::coresight && single_file && !compressed && *bytes % frame_bytes != 0)
        problem(entry.line,
                fmt::format("'{}' of buffer '{}' contains {} bytes, which is not a multiple of the {}-byte frames of "
                            "format coresight; its end, from offset {:#x} on, is not a frame. If the file was cut, "
                            "copy it again; if it is trace of one source without frames, write format=source_data.",
                            file.string(), buffer.name, *bytes, frame_bytes, *bytes - *bytes % frame_bytes),
                file);
}

Source* TraceReader::source_named(const IniEntry& entry, std::string_view written) {
    if (!written.empty() && written.front() == '@') {
        const std::string location = text::lower(text::trim(written.substr(1)));
        for (Source& source : parts_.capture.sources)
            if (!location.empty() && text::lower(source.location) == location) return &source;
        problem(entry.line,
                fmt::format("No trace source has the location '{}'; the line was ignored. Write the name of "
                            "the source, or location={} in its [device].",
                            text::trim(written.substr(1)), text::trim(written.substr(1))));
        return nullptr;
    }
    const auto found = parts_.sources.find(std::string(written));
    if (found != parts_.sources.end()) return &parts_.capture.sources[found->second];
    problem(entry.line,
            parts_.devices.count(std::string(written)) != 0
                ? fmt::format(
                      "Device '{}' is not a trace source; the line was ignored. Name a device of class=trace_source.",
                      written)
                : fmt::format("There is no trace source '{}'; the line was ignored.{}", written,
                              did_you_mean(written, names(parts_.capture.sources))));
    return nullptr;
}

void TraceReader::read_core_sources() {
    const IniSection* section = ini_.section("core_trace_sources");
    if (section == nullptr) {
        if (!parts_.capture.cores.empty() && !parts_.capture.sources.empty())
            problem(0,
                    "There is no section [core_trace_sources], so it is not known which source traces which core. Add "
                    "it, with a line CORE=SOURCE for each.");
        return;
    }
    std::map<std::string, std::pair<unsigned, std::string>> seen;  // lines and sources, by core
    // A source in another buffer has the trace of another session.
    const auto share_a_buffer = [&](const std::string& one, const std::string& other) {
        const auto& buffers = parts_.capture.buffers;
        return std::any_of(buffers.begin(), buffers.end(), [&](const Buffer& buffer) {
            const auto has = [&](const std::string& name) {
                return std::find(buffer.sources.begin(), buffer.sources.end(), name) != buffer.sources.end();
            };
            return has(one) && has(other);
        });
    };
    for (const IniEntry& entry : section->entries) {
        const auto core = parts_.cores.find(entry.key);
        if (core == parts_.cores.end()) {
            problem(entry.line, fmt::format("There is no core '{}'; the line was ignored.{}", entry.key,
                                            did_you_mean(entry.key, names(parts_.capture.cores))));
            continue;
        }
        const auto [first, added] = seen.try_emplace(entry.key, entry.line, entry.value);
        if (!added && share_a_buffer(first->second.second, entry.value)) {
            problem(
                entry.line,
                fmt::format("Core '{}' already has a trace source, in line {}, which is used. Remove one of the two.",
                            entry.key, first->second.first));
            continue;
        }
        Source* source = source_named(entry, entry.value);
        if (source == nullptr) continue;
        if (!source->core.empty()) {
            problem(
                entry.line,
                fmt::format(
                    "Trace source '{}' already traces core '{}', which is used; core '{}' has no source. Correct one.",
                    source->name, source->core, entry.key));
            continue;
        }
        source->core = entry.key;
        source->core_type = parts_.capture.cores[core->second].type;
    }
}

void TraceReader::read_source_buffers() {
    const IniSection* section = ini_.section("source_buffers");
    if (section != nullptr) {
        std::set<std::string> seen;
        for (const IniEntry& entry : section->entries) read_source_buffer(entry, seen);
        for (const Source& source : parts_.capture.sources)
            if (seen.count(source.name) == 0)
                problem(section->line,
                        fmt::format("Trace source '{}' is in no buffer, so its trace is not read. Add a line "
                                    "{}=BUFFER, or remove the source from the snapshot.",
                                    source.name, source.name));
    } else if (parts_.capture.buffers.size() == 1) {
        for (const Source& source : parts_.capture.sources)
            parts_.capture.buffers.front().sources.push_back(source.name);
    } else if (parts_.capture.buffers.size() > 1) {
        problem(0,
                fmt::format("There are {} buffers but no section [source_buffers], so it is not known which source is "
                            "in which. Add it, with a line SOURCE=BUFFER for each.",
                            parts_.capture.buffers.size()));
    }
}

void TraceReader::read_source_buffer(const IniEntry& entry, std::set<std::string>& seen) {
    std::string_view name = entry.key;
    std::optional<std::uint32_t> stream;
    if (const std::size_t open = name.find('('); open != name.npos && parts_.sources.count(entry.key) == 0) {
        std::string_view info =
            name.substr(open + 1, name.find(')', open) == name.npos ? name.npos : name.find(')', open) - open - 1);
        name = text::trim(name.substr(0, open));
        const std::size_t colon = info.find(':');
        const auto value = colon == info.npos ? std::nullopt : text::number(text::trim(info.substr(colon + 1)));
        if (value && *value <= std::numeric_limits<std::uint32_t>::max() &&
            text::equal_ignoring_case(text::trim(info.substr(0, colon)), "stream"))
            stream = static_cast<std::uint32_t>(*value);
        else
            problem(entry.line, fmt::format("'({})' after '{}' is not understood and was ignored. Expected "
                                            "(stream:N).",
                                            info, name));
    }
    Source* source = source_named(entry, name);
    if (source == nullptr) return;
    if (!seen.insert(source->name).second) {
        problem(entry.line, fmt::format("Trace source '{}' appears again in [source_buffers]; the first line is used. "
                                        "Join the two, with commas between the buffers.",
                                        source->name));
        return;
    }
    source->stream = stream;
    for (const std::string_view buffer_name : text::split(entry.value, ',')) {
        const auto buffer = std::find_if(parts_.capture.buffers.begin(), parts_.capture.buffers.end(),
                                         [&](const Buffer& b) { return b.name == buffer_name; });
        if (buffer == parts_.capture.buffers.end()) {
            problem(
                entry.line,
                fmt::format("Trace source '{}' is assigned to buffer '{}', which does not exist; that was ignored.{}",
                            source->name, buffer_name, did_you_mean(buffer_name, names(parts_.capture.buffers))));
            continue;
        }
        if (std::find(buffer->sources.begin(), buffer->sources.end(), source->name) == buffer->sources.end())
            buffer->sources.push_back(source->name);
    }
}

void TraceReader::read_timestamp() {
    const IniSection* section = ini_.section("timestamp");
    if (section == nullptr) return;
    unknown_keys(*section, {"frequency"}, true);
    const IniEntry* frequency = single(*section, "frequency");
    if (frequency == nullptr || frequency->value.empty()) return;
    const auto hz = number(*section, *frequency, "times are shown in ticks");
    if (hz && *hz == 0)
        problem(frequency->line, "The timestamp frequency is 0 Hz; times are shown in ticks. Correct or remove it.");
    else
        parts_.capture.timestamp_frequency_hz = hz;
}

void TraceReader::check_buffers() {
    std::map<std::string_view, std::size_t> order;
    for (std::size_t i = 0; i < parts_.capture.sources.size(); ++i) order.emplace(parts_.capture.sources[i].name, i);
    for (Buffer& buffer : parts_.capture.buffers) {
        std::sort(buffer.sources.begin(), buffer.sources.end(),
                  [&](const std::string& a, const std::string& b) { return order.at(a) < order.at(b); });
        if (buffer.format == Buffer::Format::source_data && buffer.sources.size() != 1)
            problem(0, fmt::format(
                           "Buffer '{}' has format source_data, which contains exactly one source, but {} are assigned "
                           "to it{}{}. Correct [source_buffers], or write format=coresight if it has 16-byte frames.",
                           buffer.name, buffer.sources.size(), buffer.sources.empty() ? "" : ": ",
                           fmt::join(buffer.sources, ", ")));
        else if (buffer.sources.empty() && ini_.section("source_buffers") != nullptr)
            problem(0, fmt::format("No trace source is assigned to buffer '{}', so nothing in it can be decoded. Add a "
                                   "line SOURCE={} to [source_buffers].",
                                   buffer.name, buffer.name));
    }
}

}  // namespace

void read_snapshot_trace(SnapshotParts& parts, const Ini& ini) { TraceReader(parts, ini).read(); }

}  // namespace waymark::capture
