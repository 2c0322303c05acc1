#include "waymark/capture/snapshot.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include "disk_access.h"
#include "ini.h"
#include "text.h"
#include "waymark/capture/byte_stream.h"

namespace waymark::capture {
namespace {

namespace fs = std::filesystem;

// No real system comes near; a hostile snapshot.ini cannot keep the reader busy for hours.
constexpr std::size_t max_devices = 4096;
constexpr std::size_t frame_bytes = 16;

class SnapshotReader {
public:
    SnapshotReader(fs::path snapshot_ini, const FileAccess& files)
        : files_(files), folder_(snapshot_ini.parent_path()) {
        capture_.path = std::move(snapshot_ini);
    }

    Result<Capture> read();

private:
    // Files.
    [[nodiscard]] fs::path resolve(const Ini& ini, const IniEntry& entry, std::string_view written);
    void check_buffer_file(const Ini& ini, const IniEntry& entry, const Buffer& buffer, const fs::path& file);
    [[nodiscard]] std::optional<Ini> open_ini(const Ini& from, const IniEntry& entry, std::string_view what);

    // Sections and keys.
    void problem(const Ini& ini, unsigned line, std::string message, const fs::path& lacks = {}) {
        problems_.add(ini.file(), line, std::move(message), lacks);
    }
    void unknown_sections(const Ini& ini, const std::vector<std::string_view>& known);
    void unknown_keys(const Ini& ini, const IniSection& section, const std::vector<std::string_view>& known,
                      bool others_allowed);
    [[nodiscard]] std::optional<std::uint64_t> number(const Ini& ini, const IniSection& section, const IniEntry& entry,
                                                      std::string_view consequence);

    void read_version(const Ini& ini);
    void read_devices(const Ini& ini);
    void read_clusters(const Ini& ini);
    void read_device(const Ini& ini, const std::string& key);
    [[nodiscard]] std::string device_class(const Ini& ini, const IniSection& device, const std::string& name,
                                           const std::string& type);
    [[nodiscard]] std::vector<Register> read_registers(const Ini& ini);
    [[nodiscard]] std::optional<Register> read_register(const Ini& ini, const IniEntry& entry);
    void read_dumps(const Ini& ini, const std::string& core);
    [[nodiscard]] std::optional<MemoryDump> read_dump(const Ini& ini, const IniSection& section);
    void check_dump_range(const Ini& ini, const IniSection& section, const IniEntry& file, const MemoryDump& dump);

    void read_trace(const Ini& ini);
    void read_buffers(const Ini& ini);
    void read_buffer(const Ini& ini, const IniSection& section);
    void read_core_sources(const Ini& ini);
    void read_source_buffers(const Ini& ini);
    void read_source_buffer(const Ini& ini, const IniEntry& entry, std::set<std::string>& seen);
    void read_timestamp(const Ini& ini);
    void check_buffers(const Ini& ini);
    [[nodiscard]] Source* source_named(const Ini& ini, const IniEntry& entry, std::string_view written);

    template <class T>
    [[nodiscard]] static std::vector<std::string_view> names(const std::vector<T>& things) {
        std::vector<std::string_view> result;
        for (const T& thing : things) result.emplace_back(thing.name);
        return result;
    }

    const FileAccess& files_;
    fs::path folder_;
    Capture capture_;
    ProblemList problems_;
    std::set<std::string> devices_;                       // names of all, also of classes that are not kept
    std::map<std::string, std::size_t> cores_, sources_;  // by name
};

fs::path SnapshotReader::resolve(const Ini& ini, const IniEntry& entry, std::string_view written) {
    fs::path relative{std::string(written)};
    // Captures saved on Windows.
    if (written.find('\\') != written.npos && !files_.size(folder_ / relative)) {
        std::string slashes(written);
        std::replace(slashes.begin(), slashes.end(), '\\', '/');
        if (files_.size(folder_ / slashes)) relative = slashes;
    }
    const fs::path normal = relative.lexically_normal();
    if (relative.is_absolute() || (!normal.empty() && *normal.begin() == ".."))
        problem(ini, entry.line,
                fmt::format(
                    "'{}' lies outside the snapshot folder. It is read, but is lost when the folder is copied; move "
                    "it into the folder.",
                    written));
    return folder_ / relative;
}

std::optional<Ini> SnapshotReader::open_ini(const Ini& from, const IniEntry& entry, std::string_view what) {
    if (entry.value.empty()) {
        problem(from, entry.line,
                fmt::format("'{}' names no file, but {} was expected. Name its ini file.", entry.key, what));
        return std::nullopt;
    }
    const fs::path path = resolve(from, entry, entry.value);
    auto text = files_.text(path, max_ini_bytes);
    if (!text) {
        problem(from, entry.line, fmt::format("{} '{}' is left out: {}.", what, entry.value, text.error().message));
        return std::nullopt;
    }
    return Ini(path, *text, problems_);
}

void SnapshotReader::unknown_sections(const Ini& ini, const std::vector<std::string_view>& known) {
    for (const IniSection& section : ini.sections()) {
        const bool is_known = std::any_of(
            known.begin(), known.end(), [&](std::string_view k) { return text::equal_ignoring_case(k, section.name); });
        if (is_known) continue;
        // Further sections are allowed; one that looks like a slip of the pen is worth a word.
        const std::string suggestion = problems_.suggestion(ini.file(), section.name, known);
        if (!suggestion.empty())
            problem(ini, section.line,
                    fmt::format("Section [{}] is unknown and was ignored.{}", section.name, suggestion));
    }
}

void SnapshotReader::unknown_keys(const Ini& ini, const IniSection& section, const std::vector<std::string_view>& known,
                                  bool others_allowed) {
    for (const IniEntry& entry : section.entries) {
        const bool is_known = std::any_of(known.begin(), known.end(),
                                          [&](std::string_view k) { return text::equal_ignoring_case(k, entry.key); });
        if (is_known) continue;
        const std::string suggestion = problems_.suggestion(ini.file(), entry.key, known);
        if (others_allowed && suggestion.empty()) continue;
        problem(ini, entry.line,
                fmt::format("Key '{}' is unknown in [{}] and was ignored.{}", entry.key, section.name,
                            suggestion.empty() ? fmt::format(" Known are: {}.", fmt::join(known, ", ")) : suggestion));
    }
}

std::optional<std::uint64_t> SnapshotReader::number(const Ini& ini, const IniSection& section, const IniEntry& entry,
                                                    std::string_view consequence) {
    const auto value = text::number(text::unquote(entry.value));
    if (!value)
        problem(
            ini, entry.line,
            fmt::format("'{}' in [{}] is '{}', which is no number of up to 64 bits (0x… hexadecimal, 0… octal, else "
                        "decimal); {}. Correct it.",
                        entry.key, section.name, entry.value, consequence));
    return value;
}

Result<Capture> SnapshotReader::read() {
    auto text = files_.text(capture_.path, max_ini_bytes);
    if (!text) return std::move(text.error());
    if (text->find('\0') != std::string::npos)
        return Error{Errc::bad_format,
                     fmt::format("{}: is a binary file, but the snapshot.ini of a snapshot folder was "
                                 "expected; name the folder or its snapshot.ini",
                                 capture_.path.string())};
    const Ini ini(capture_.path, *text, problems_);
    if (ini.sections().empty())
        return Error{Errc::bad_format,
                     fmt::format("{}: holds no section, but [snapshot], [device_list] and [trace] were "
                                 "expected; name the folder or its snapshot.ini",
                                 capture_.path.string())};

    unknown_sections(ini, {"snapshot", "device_list", "clusters", "trace"});
    read_version(ini);
    read_devices(ini);
    read_clusters(ini);
    const IniSection* trace = ini.section("trace");
    if (trace != nullptr) {
        unknown_keys(ini, *trace, {"metadata"}, false);
        if (const IniEntry* metadata = ini.single(*trace, "metadata", problems_)) {
            if (const auto trace_ini = open_ini(ini, *metadata, "the trace description")) read_trace(*trace_ini);
        } else {
            problem(ini, trace->line,
                    "[trace] has no key 'metadata', so there is no trace. Add the path of trace.ini.");
        }
    } else if (!capture_.sources.empty()) {
        problem(ini, 0,
                "There is no section [trace], so there is no trace, though there are trace sources. Add it, with "
                "metadata= and the path of trace.ini.");
    }

    capture_.problems = problems_.take();
    for (const Buffer& buffer : capture_.buffers)
        for (std::string& sentence : missing_parts(buffer))
            capture_.problems.push_back({folder_, 0, std::move(sentence), {}, Problem::Kind::part});
    // Not named by snapshot.ini, so that other readers do not meet it.
    capture_.modules = read_module_map(folder_, files_, capture_.problems);
    if (capture_.cores.empty() && capture_.sources.empty() && capture_.buffers.empty() && capture_.dumps.empty()) {
        std::string first = "it names no device and no trace buffer";
        if (!capture_.problems.empty()) first = to_string(capture_.problems.front());
        return Error{Errc::bad_format,
                     fmt::format("{}: nothing of this snapshot can be read; {} problem(s), the first: {}",
                                 capture_.path.string(), capture_.problems.size(), first)};
    }
    return std::move(capture_);
}

void SnapshotReader::read_version(const Ini& ini) {
    const IniSection* snapshot = ini.section("snapshot");
    if (snapshot == nullptr) {
        problem(ini, 0, "There is no section [snapshot]; it is read as version 1.0. Add it, with version=1.0.");
        return;
    }
    unknown_keys(ini, *snapshot, {"version", "description"}, false);
    const IniEntry* version = ini.single(*snapshot, "version", problems_);
    if (version == nullptr)
        problem(ini, snapshot->line, "[snapshot] has no key 'version'; it is read as version 1.0. Add version=1.0.");
    else if (version->value != "1.0")
        problem(ini, version->line,
                fmt::format(
                    "The snapshot has version '{}', but only 1.0 is known; it is read as 1.0. Check what follows, or "
                    "write version=1.0.",
                    version->value));
    if (const IniEntry* description = ini.single(*snapshot, "description", problems_))
        capture_.description = description->value;
}

void SnapshotReader::read_devices(const Ini& ini) {
    const IniSection* list = ini.section("device_list");
    if (list == nullptr || list->entries.empty()) {
        problem(ini, list == nullptr ? 0 : list->line,
                "[device_list] is missing or empty, so neither cores nor trace sources are known. List the device ini "
                "files "
                "in it, as device0=core.ini.");
        return;
    }
    std::map<std::string, unsigned> keys, paths;
    for (const IniEntry& entry : list->entries) {
        if (paths.size() >= max_devices) {
            problem(ini, entry.line,
                    fmt::format("[device_list] has more than {} devices; the rest was ignored. Split the snapshot.",
                                max_devices));
            return;
        }
        if (const auto [first, added] = keys.try_emplace(text::lower(entry.key), entry.line); !added)
            problem(ini, entry.line,
                    fmt::format("Key '{}' appears again in [device_list] (first at line {}); both devices "
                                "were read. Give each a key of its own.",
                                entry.key, first->second));
        if (const auto [first, added] = paths.try_emplace(entry.value, entry.line); !added) {
            problem(ini, entry.line,
                    fmt::format("'{}' is listed again (first at line {}) and was read once. Remove one.", entry.value,
                                first->second));
            continue;
        }
        if (const auto device = open_ini(ini, entry, "the device")) read_device(*device, entry.key);
    }
}

void SnapshotReader::read_clusters(const Ini& ini) {
    const IniSection* clusters = ini.section("clusters");
    if (clusters == nullptr) return;
    std::set<std::string> seen;
    for (const IniEntry& entry : clusters->entries) {
        if (!seen.insert(entry.key).second) {
            problem(ini, entry.line,
                    fmt::format("Cluster '{}' appears again; the first counts. Remove one.", entry.key));
            continue;
        }
        Cluster cluster{entry.key, {}};
        for (const std::string_view core : text::split(entry.value, ',')) {
            if (cores_.count(std::string(core)) != 0)
                cluster.cores.emplace_back(core);
            else
                problem(ini, entry.line,
                        fmt::format("Cluster '{}' names '{}', which is no core of this snapshot; it was left out.{}",
                                    entry.key, core, problems_.suggestion(ini.file(), core, names(capture_.cores))));
        }
        capture_.clusters.push_back(std::move(cluster));
    }
}

void SnapshotReader::read_device(const Ini& ini, const std::string& key) {
    const IniSection* device = ini.section("device");
    if (device == nullptr) {
        problem(ini, 0,
                "There is no section [device], so the file describes nothing; it was left out. Add it, with name=, "
                "class= and type=.");
        return;
    }
    for (const IniSection& section : ini.sections()) {
        if (text::lower(section.name).rfind("dump", 0) == 0) continue;
        const std::string suggestion = problems_.suggestion(ini.file(), section.name, {"device", "regs", "dump"});
        if (!text::equal_ignoring_case(section.name, "device") && !text::equal_ignoring_case(section.name, "regs") &&
            !suggestion.empty())
            problem(ini, section.line,
                    fmt::format("Section [{}] is unknown and was ignored.{}", section.name, suggestion));
    }
    unknown_keys(ini, *device, {"name", "class", "type", "location"}, true);
    const auto value = [&](std::string_view wanted) {
        const IniEntry* entry = ini.single(*device, wanted, problems_);
        return entry == nullptr ? std::string() : entry->value;
    };
    std::string name = value("name"), type = value("type"), location = value("location");
    if (name.empty()) {
        problem(ini, device->line,
                fmt::format("[device] has no key 'name'; '{}', its key in [device_list], is used. Add one.", key));
        name = key;
    }
    const std::string kind = device_class(ini, *device, name, type);
    if (!devices_.insert(name).second) {
        problem(ini, device->line,
                fmt::format("There is another device of the name '{}'; the first counts and this one was "
                            "left out. Give it a name of its own.",
                            name));
        return;
    }
    const std::string file = ini.file().lexically_relative(folder_).string();
    if (kind == "core") {
        if (type.empty())
            problem(ini, device->line,
                    fmt::format("Core '{}' has no key 'type'. Add its type, such as type=Cortex-A15.", name));
        cores_.emplace(name, capture_.cores.size());
        capture_.cores.push_back({name, type, read_registers(ini), location, file});
        read_dumps(ini, name);
    } else if (kind == "trace_source") {
        if (type.empty())
            problem(ini, device->line,
                    fmt::format("Trace source '{}' has no key 'type', so its protocol is unknown. Add it, "
                                "such as type=PFT1.1.",
                                name));
        sources_.emplace(name, capture_.sources.size());
        Source source{.name = name, .type = type};
        source.registers = read_registers(ini);
        source.location = location;
        source.file = file;
        capture_.sources.push_back(std::move(source));
        read_dumps(ini, {});
    } else {
        read_dumps(ini, {});
    }
}

std::string SnapshotReader::device_class(const Ini& ini, const IniSection& device, const std::string& name,
                                         const std::string& type) {
    const IniEntry* entry = ini.single(device, "class", problems_);
    if (entry != nullptr && !entry->value.empty()) {
        const std::vector<std::string_view> known{"core", "trace_source", "memory_space"};
        std::string kind = text::lower(entry->value);
        if (std::find(known.begin(), known.end(), kind) != known.end()) return kind;
        // Other classes are allowed and informative; one that looks like a slip of the pen is worth a word.
        const std::string suggestion = problems_.suggestion(ini.file(), kind, known);
        if (!suggestion.empty())
            problem(
                ini, entry->line,
                fmt::format("Device '{}' is of class '{}', which is unknown; neither its registers nor its trace are "
                            "used.{}",
                            name, entry->value, suggestion));
        return kind;
    }
    const std::string lower = text::lower(type);
    constexpr std::array<std::string_view, 6> source_types{"ptm", "pft", "etm", "ete", "itm", "stm"};
    constexpr std::array<std::string_view, 2> core_types{"cortex", "armv"};
    const auto begins = [&](std::string_view prefix) { return lower.rfind(prefix, 0) == 0; };
    std::string guess;
    if (std::any_of(source_types.begin(), source_types.end(), begins)) guess = "trace_source";
    if (std::any_of(core_types.begin(), core_types.end(), begins)) guess = "core";
    problem(ini, device.line,
            guess.empty()
                ? fmt::format("Device '{}' has no key 'class' and was ignored. Add class=core or "
                              "class=trace_source.",
                              name)
                : fmt::format("Device '{}' has no key 'class'; by its type '{}' it is taken for class={}. Add it.",
                              name, type, guess));
    return guess;
}

std::vector<Register> SnapshotReader::read_registers(const Ini& ini) {
    std::vector<Register> registers;
    const IniSection* section = ini.section("regs");
    if (section == nullptr) return registers;
    std::map<std::string, std::pair<unsigned, std::uint64_t>> seen;  // lower-case name → first line and value
    for (const IniEntry& entry : section->entries) {
        auto reg = read_register(ini, entry);
        if (!reg) continue;
        const auto [first, added] = seen.try_emplace(text::lower(reg->name), entry.line, reg->value);
        if (added) {
            registers.push_back(std::move(*reg));
            continue;
        }
        const auto [line, value] = first->second;
        problem(
            ini, entry.line,
            value == reg->value
                ? fmt::format("Register {} appears again (first at line {}). Remove one.", reg->name, line)
                : fmt::format("Register {} is {:#x} here but {:#x} at line {}; the first counts. Remove the wrong one.",
                              reg->name, reg->value, value, line));
    }
    return registers;
}

std::optional<Register> SnapshotReader::read_register(const Ini& ini, const IniEntry& entry) {
    const std::string_view key = entry.key;
    const std::size_t open = key.find('(');
    Register reg{.name = std::string(text::trim(key.substr(0, open)))};
    if (reg.name.empty()) {
        problem(ini, entry.line, fmt::format("'{}' has no register name and was left out. Add one.", key));
        return std::nullopt;
    }
    bool size_given = false;
    if (open != key.npos) {
        const std::size_t close = key.find(')', open);
        if (close == key.npos)
            problem(ini, entry.line,
                    fmt::format("Register {} has a '(' without a ')'. Write NAME(id:N,size:BITS).", reg.name));
        for (const std::string_view part :
             text::split(key.substr(open + 1, close == key.npos ? close : close - open - 1), ',')) {
            const std::size_t colon = part.find(':');
            const std::string what = colon == part.npos ? "id" : text::lower(text::trim(part.substr(0, colon)));
            const auto value = text::number(text::trim(colon == part.npos ? part : part.substr(colon + 1)));
            if (what == "id" && value && *value <= std::numeric_limits<unsigned>::max()) {
                reg.id = static_cast<unsigned>(*value);
            } else if (what == "size" && value && *value >= 1 && *value <= 64) {
                reg.bits = static_cast<unsigned>(*value);
                size_given = true;
            } else {
                problem(ini, entry.line,
                        fmt::format("'{}' says nothing known about register {} and was ignored. Expected "
                                    "id:N, or size:BITS from 1 to 64.",
                                    part, reg.name));
            }
        }
    }
    const auto value = text::number(text::unquote(entry.value));
    if (!value) {
        problem(ini, entry.line,
                fmt::format("The value '{}' of register {} is no number of up to 64 bits (0x… hexadecimal, "
                            "0… octal, else decimal); the register was left out. Correct it.",
                            entry.value, reg.name));
        return std::nullopt;
    }
    reg.value = *value;
    if (reg.bits < 64 && (reg.value >> reg.bits) != 0) {
        problem(
            ini, entry.line,
            fmt::format("The value {:#x} of register {} has more than {} bits{}; the register is taken as one of 64. "
                        "Correct the value, or write {}(size:64).",
                        reg.value, reg.name, reg.bits, size_given ? "" : ", the size where none is given", reg.name));
        reg.bits = 64;
    }
    return reg;
}

void SnapshotReader::read_dumps(const Ini& ini, const std::string& core) {
    for (const IniSection& section : ini.sections()) {
        if (text::lower(section.name).rfind("dump", 0) != 0) continue;
        auto dump = read_dump(ini, section);
        if (!dump) continue;
        dump->core = core;
        capture_.dumps.push_back(std::move(*dump));
    }
}

std::optional<MemoryDump> SnapshotReader::read_dump(const Ini& ini, const IniSection& section) {
    unknown_keys(ini, section, {"file", "address", "length", "offset", "space"}, false);
    const IniEntry* file = ini.single(section, "file", problems_);
    const IniEntry* address = ini.single(section, "address", problems_);
    if (file == nullptr || file->value.empty() || address == nullptr) {
        problem(ini, section.line,
                fmt::format("[{}] has no key '{}' and was left out. Add it.", section.name,
                            address == nullptr ? "address" : "file"));
        return std::nullopt;
    }
    MemoryDump dump;
    const auto start = number(ini, section, *address, "the dump was left out");
    if (!start) return std::nullopt;
    dump.address = Address{*start};
    if (const IniEntry* offset = ini.single(section, "offset", problems_)) {
        const auto value = number(ini, section, *offset, "the dump was left out");
        if (!value) return std::nullopt;
        dump.offset = *value;
    }
    if (const IniEntry* length = ini.single(section, "length", problems_))
        dump.length = number(ini, section, *length, "the rest of the file is taken");
    if (const IniEntry* space = ini.single(section, "space", problems_)) {
        const std::vector<std::string_view> known{"N",   "S",    "R",   "H",    "EL1N", "EL1S", "EL1R",
                                                  "EL2", "EL2R", "EL3", "ROOT", "P",    "SP",   "NP"};
        dump.space = text::unquote(space->value);
        const bool is_known = std::any_of(known.begin(), known.end(),
                                          [&](std::string_view k) { return text::equal_ignoring_case(k, dump.space); });
        if (!is_known && !dump.space.empty()) {
            problem(ini, space->line,
                    fmt::format("Memory space '{}' is unknown; the dump is taken to be seen in any. Known "
                                "are: {}.",
                                dump.space, fmt::join(known, ", ")));
            dump.space.clear();
        }
    }
    dump.file = resolve(ini, *file, text::unquote(file->value));
    check_dump_range(ini, section, *file, dump);
    return dump;
}

void SnapshotReader::check_dump_range(const Ini& ini, const IniSection& section, const IniEntry& file,
                                      const MemoryDump& dump) {
    if (dump.length && *dump.length != 0 && dump.address.value + (*dump.length - 1) < dump.address.value)
        problem(ini, section.line,
                fmt::format("[{}] of {:#x} bytes at {:#x} leaves the 64-bit address space. Correct "
                            "'address' or 'length'.",
                            section.name, *dump.length, dump.address.value));
    const auto bytes = files_.size(dump.file);
    if (!bytes) {
        problem(ini, file.line,
                fmt::format("The memory dump '{}' cannot be read: {}. Copy it into the snapshot folder, or "
                            "remove [{}].",
                            file.value, bytes.error().message, section.name),
                dump.file);
        return;
    }
    const std::uint64_t rest = dump.offset < *bytes ? *bytes - dump.offset : 0;
    if (rest == 0)
        problem(ini, section.line,
                fmt::format("[{}] begins at offset {:#x} of '{}', which holds only {:#x} bytes, so it is "
                            "empty. Correct 'offset', or copy the whole file.",
                            section.name, dump.offset, file.value, *bytes),
                dump.file);
    else if (dump.length && *dump.length > rest)
        problem(ini, section.line,
                fmt::format("A dump shorter than it says: [{}] has length {:#x}, but '{}' holds only {:#x} "
                            "bytes from offset {:#x} on; those are used. Correct 'length', or copy the "
                            "whole file.",
                            section.name, *dump.length, file.value, rest, dump.offset),
                dump.file);
}

void SnapshotReader::read_trace(const Ini& ini) {
    std::vector<std::string_view> known{"trace_buffers", "core_trace_sources", "source_buffers", "timestamp"};
    if (const IniSection* list = ini.section("trace_buffers"))
        for (const IniEntry& entry : list->entries)
            if (text::equal_ignoring_case(entry.key, "buffers"))
                for (const std::string_view buffer : text::split(entry.value, ',')) known.push_back(buffer);
    unknown_sections(ini, known);
    read_buffers(ini);
    read_core_sources(ini);
    read_source_buffers(ini);
    read_timestamp(ini);
    check_buffers(ini);
}

void SnapshotReader::read_buffers(const Ini& ini) {
    const IniSection* list = ini.section("trace_buffers");
    const IniEntry* buffers = list == nullptr ? nullptr : ini.single(*list, "buffers", problems_);
    if (buffers == nullptr) {
        problem(ini, list == nullptr ? 0 : list->line,
                "There is no key 'buffers' in a section [trace_buffers], so there is no trace. Add buffers= and the "
                "names of "
                "the buffer sections.");
        return;
    }
    unknown_keys(ini, *list, {"buffers"}, false);
    std::vector<std::string_view> sections = names(ini.sections());
    std::set<std::string> seen;
    for (const std::string_view name : text::split(buffers->value, ',')) {
        if (name.empty()) {
            problem(ini, buffers->line,
                    "A name between commas in 'buffers' is empty; it was passed over. Remove the comma.");
            continue;
        }
        if (!seen.insert(text::lower(name)).second) {
            problem(ini, buffers->line,
                    fmt::format("Buffer '{}' is listed twice and was read once. Remove one.", name));
            continue;
        }
        if (const IniSection* section = ini.section(name))
            read_buffer(ini, *section);
        else
            problem(ini, buffers->line,
                    fmt::format(
                        "Buffer '{}' has no section [{}] and was left out.{} Add the section, with name=, file= and "
                        "format=.",
                        name, name, problems_.suggestion(ini.file(), name, sections)));
    }
}

void SnapshotReader::read_buffer(const Ini& ini, const IniSection& section) {
    unknown_keys(ini, section, {"name", "file", "format", "length", "overwritten", "begins", "ends"}, false);
    Buffer buffer;
    if (const IniEntry* name = ini.single(section, "name", problems_)) buffer.name = name->value;
    if (buffer.name.empty()) {
        problem(ini, section.line,
                fmt::format("[{}] has no key 'name'; the name of the section is used. Add it.", section.name));
        buffer.name = section.name;
    }
    if (capture_.find_buffer(buffer.name) != nullptr) {
        problem(ini, section.line,
                fmt::format("There is another buffer of the name '{}'; the first counts and this one was "
                            "left out. Give it a name of its own.",
                            buffer.name));
        return;
    }
    if (const IniEntry* format = ini.single(section, "format", problems_);
        format != nullptr && !format->value.empty()) {
        buffer.format_name = format->value;
        buffer.format = buffer_format(format->value);
        if (buffer.format == Buffer::Format::unknown)
            problem(ini, format->line,
                    fmt::format("Buffer '{}' is of format '{}', which is unknown, so it cannot be read.{} Known are: "
                                "coresight, source_data, dstream_coresight.",
                                buffer.name, format->value,
                                problems_.suggestion(ini.file(), format->value,
                                                     {"coresight", "source_data", "dstream_coresight"})));
    } else {
        problem(ini, section.line,
                fmt::format("Buffer '{}' has no key 'format'; it is taken as coresight (16-byte frames). "
                            "Add format=coresight or format=source_data.",
                            buffer.name));
        buffer.format_name = name(buffer.format);
    }
    if (const IniEntry* length = ini.single(section, "length", problems_))
        buffer.length = number(ini, section, *length, "it is not known how many bytes were written");
    if (const IniEntry* overwritten = ini.single(section, "overwritten", problems_))
        buffer.overwritten =
            number(ini, section, *overwritten, "it is not known whether older trace was replaced").value_or(0);
    if (const IniEntry* begins = ini.single(section, "begins", problems_)) buffer.begins = begins->value;
    if (const IniEntry* ends = ini.single(section, "ends", problems_)) buffer.ends = ends->value;
    const IniEntry* file = ini.single(section, "file", problems_);
    if (file == nullptr || file->value.empty()) {
        problem(ini, section.line,
                fmt::format("Buffer '{}' has no key 'file', so its trace cannot be read; it was left out. "
                            "Add it.",
                            buffer.name));
        return;
    }
    for (const std::string_view part : text::split(file->value, ',')) {
        const std::string_view path = text::unquote(part);
        if (path.empty()) {
            problem(ini, file->line,
                    fmt::format("A file name between commas in buffer '{}' is empty; it was passed over. "
                                "Remove the comma.",
                                buffer.name));
            continue;
        }
        buffer.files.push_back(resolve(ini, *file, path));
        check_buffer_file(ini, *file, buffer, buffer.files.back());
    }
    capture_.buffers.push_back(std::move(buffer));
}

void SnapshotReader::check_buffer_file(const Ini& ini, const IniEntry& entry, const Buffer& buffer,
                                       const fs::path& file) {
    const auto bytes = files_.size(file);
    if (!bytes) {
        problem(ini, entry.line,
                fmt::format("'{}' of buffer '{}' cannot be read: {}. Copy it into the snapshot folder.", file.string(),
                            buffer.name, bytes.error().message),
                file);
        return;
    }
    if (*bytes == 0)
        problem(
            ini, entry.line,
            fmt::format("'{}' of buffer '{}' is empty. Check that the trace was saved.", file.string(), buffer.name),
            file);
    // Only parts together need be whole frames; of a compressed file the size says nothing.
    const std::string extension = text::lower(file.extension().string());
    const bool compressed = extension == ".gz" || extension == ".zst";
    const bool single_file = entry.value.find(',') == std::string::npos;
    if (buffer.format == Buffer::Format::coresight && single_file && !compressed && *bytes % frame_bytes != 0)
        problem(
            ini, entry.line,
            fmt::format("'{}' of buffer '{}' holds {} bytes, which is no multiple of the {}-byte frames "
                        "of format coresight; its end, from offset {:#x} on, is no frame. If the file was cut, copy "
                        "it again; if it is trace of one source without frames, write format=source_data.",
                        file.string(), buffer.name, *bytes, frame_bytes, *bytes - *bytes % frame_bytes),
            file);
}

/// A source by name or `@location`; a problem when there is none.
Source* SnapshotReader::source_named(const Ini& ini, const IniEntry& entry, std::string_view written) {
    if (!written.empty() && written.front() == '@') {
        const std::string location = text::lower(text::trim(written.substr(1)));
        for (Source& source : capture_.sources)
            if (!location.empty() && text::lower(source.location) == location) return &source;
        problem(ini, entry.line,
                fmt::format("No trace source has the location '{}'; the line was ignored. Write the name of "
                            "the source, or location={} in its [device].",
                            text::trim(written.substr(1)), text::trim(written.substr(1))));
        return nullptr;
    }
    const auto found = sources_.find(std::string(written));
    if (found != sources_.end()) return &capture_.sources[found->second];
    problem(
        ini, entry.line,
        devices_.count(std::string(written)) != 0
            ? fmt::format("Device '{}' is no trace source; the line was ignored. Name a device of class=trace_source.",
                          written)
            : fmt::format("There is no trace source '{}'; the line was ignored.{}", written,
                          problems_.suggestion(ini.file(), written, names(capture_.sources))));
    return nullptr;
}

void SnapshotReader::read_core_sources(const Ini& ini) {
    const IniSection* section = ini.section("core_trace_sources");
    if (section == nullptr) {
        if (!capture_.cores.empty() && !capture_.sources.empty())
            problem(ini, 0,
                    "There is no section [core_trace_sources], so it is not known which source traces which core. Add "
                    "it, with a line CORE=SOURCE for each.");
        return;
    }
    std::map<std::string, unsigned> seen;
    for (const IniEntry& entry : section->entries) {
        const auto core = cores_.find(entry.key);
        if (core == cores_.end()) {
            problem(ini, entry.line,
                    fmt::format("There is no core '{}'; the line was ignored.{}", entry.key,
                                problems_.suggestion(ini.file(), entry.key, names(capture_.cores))));
            continue;
        }
        if (const auto [first, added] = seen.try_emplace(entry.key, entry.line); !added) {
            problem(ini, entry.line,
                    fmt::format("Core '{}' has a trace source already (line {}), which counts. Remove one.", entry.key,
                                first->second));
            continue;
        }
        Source* source = source_named(ini, entry, entry.value);
        if (source == nullptr) continue;
        if (!source->core.empty()) {
            problem(ini, entry.line,
                    fmt::format("Trace source '{}' traces core '{}' already, which counts; core '{}' is left "
                                "without. Correct one.",
                                source->name, source->core, entry.key));
            continue;
        }
        source->core = entry.key;
        source->core_type = capture_.cores[core->second].type;
    }
}

void SnapshotReader::read_source_buffers(const Ini& ini) {
    const IniSection* section = ini.section("source_buffers");
    if (section != nullptr) {
        std::set<std::string> seen;
        for (const IniEntry& entry : section->entries) read_source_buffer(ini, entry, seen);
        for (const Source& source : capture_.sources)
            if (seen.count(source.name) == 0)
                problem(ini, section->line,
                        fmt::format("Trace source '{}' is in no buffer, so its trace is not read. Add a line "
                                    "{}=BUFFER, or remove the source from the snapshot.",
                                    source.name, source.name));
    } else if (capture_.buffers.size() == 1) {
        for (const Source& source : capture_.sources) capture_.buffers.front().sources.push_back(source.name);
    } else if (capture_.buffers.size() > 1) {
        problem(ini, 0,
                fmt::format("There are {} buffers but no section [source_buffers], so it is not known which source is "
                            "in which. Add it, with a line SOURCE=BUFFER for each.",
                            capture_.buffers.size()));
    }
}

void SnapshotReader::read_source_buffer(const Ini& ini, const IniEntry& entry, std::set<std::string>& seen) {
    std::string_view name = entry.key;
    std::optional<std::uint32_t> stream;
    if (const std::size_t open = name.find('('); open != name.npos && sources_.count(entry.key) == 0) {
        std::string_view info =
            name.substr(open + 1, name.find(')', open) == name.npos ? name.npos : name.find(')', open) - open - 1);
        name = text::trim(name.substr(0, open));
        const std::size_t colon = info.find(':');
        const auto value = colon == info.npos ? std::nullopt : text::number(text::trim(info.substr(colon + 1)));
        if (value && *value <= std::numeric_limits<std::uint32_t>::max() &&
            text::equal_ignoring_case(text::trim(info.substr(0, colon)), "stream"))
            stream = static_cast<std::uint32_t>(*value);
        else
            problem(ini, entry.line,
                    fmt::format("'({})' after '{}' is not understood and was ignored. Expected "
                                "(stream:N).",
                                info, name));
    }
    Source* source = source_named(ini, entry, name);
    if (source == nullptr) return;
    if (!seen.insert(source->name).second) {
        problem(ini, entry.line,
                fmt::format("Trace source '{}' appears again in [source_buffers]; the first line counts. Join "
                            "the two, with commas between the buffers.",
                            source->name));
        return;
    }
    source->stream = stream;
    for (const std::string_view buffer_name : text::split(entry.value, ',')) {
        const auto buffer = std::find_if(capture_.buffers.begin(), capture_.buffers.end(),
                                         [&](const Buffer& b) { return b.name == buffer_name; });
        if (buffer == capture_.buffers.end()) {
            problem(
                ini, entry.line,
                fmt::format("Trace source '{}' is said to be in buffer '{}', which is not there; that was ignored.{}",
                            source->name, buffer_name,
                            problems_.suggestion(ini.file(), buffer_name, names(capture_.buffers))));
            continue;
        }
        if (std::find(buffer->sources.begin(), buffer->sources.end(), source->name) == buffer->sources.end())
            buffer->sources.push_back(source->name);
    }
}

void SnapshotReader::read_timestamp(const Ini& ini) {
    const IniSection* section = ini.section("timestamp");
    if (section == nullptr) return;
    unknown_keys(ini, *section, {"frequency"}, true);
    const IniEntry* frequency = ini.single(*section, "frequency", problems_);
    if (frequency == nullptr || frequency->value.empty()) return;
    const auto hz = number(ini, *section, *frequency, "times are shown in ticks");
    if (hz && *hz == 0)
        problem(ini, frequency->line,
                "The timestamp frequency is 0 Hz; times are shown in ticks. Correct or remove it.");
    else
        capture_.timestamp_frequency_hz = hz;
}

void SnapshotReader::check_buffers(const Ini& ini) {
    std::map<std::string_view, std::size_t> order;
    for (std::size_t i = 0; i < capture_.sources.size(); ++i) order.emplace(capture_.sources[i].name, i);
    for (Buffer& buffer : capture_.buffers) {
        std::sort(buffer.sources.begin(), buffer.sources.end(),
                  [&](const std::string& a, const std::string& b) { return order.at(a) < order.at(b); });
        if (buffer.format == Buffer::Format::source_data && buffer.sources.size() != 1)
            problem(ini, 0,
                    fmt::format("Buffer '{}' is of format source_data, which holds exactly one source, but {} are tied "
                                "to it{}{}. Correct [source_buffers], or write format=coresight if it has 16-byte "
                                "frames.",
                                buffer.name, buffer.sources.size(), buffer.sources.empty() ? "" : ": ",
                                fmt::join(buffer.sources, ", ")));
        else if (buffer.sources.empty() && ini.section("source_buffers") != nullptr)
            problem(ini, 0,
                    fmt::format("No trace source is tied to buffer '{}', so nothing in it can be decoded. Add a line "
                                "SOURCE={} to [source_buffers].",
                                buffer.name, buffer.name));
    }
}

}  // namespace

Result<Capture> read_snapshot(const fs::path& snapshot_ini, const FileAccess& files) {
    return SnapshotReader(snapshot_ini, files).read();
}

Result<Capture> read_snapshot(const fs::path& path) {
    std::error_code ignored;
    if (!fs::is_directory(path, ignored))
        return read_snapshot(path, DiskAccess("no ini file of a snapshot; name the folder or its snapshot.ini"));
    const fs::path ini = path / "snapshot.ini";
    if (fs::status(ini, ignored).type() == fs::file_type::not_found)
        return Error{Errc::not_found,
                     fmt::format("{}: this folder holds no snapshot.ini, so it is no snapshot; name the folder "
                                 "that has it",
                                 path.string())};
    return read_snapshot(ini, DiskAccess("no ini file of a snapshot; name the folder or its snapshot.ini"));
}

}  // namespace waymark::capture
