// The ini file of one device of a snapshot: a core or a trace source with its registers, and memory dumps.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "disk_access.h"
#include "snapshot_ini.h"
#include "text.h"
#include "waymark/capture/device_file.h"

namespace waymark::capture {
namespace {

class DeviceReader : SnapshotIni {
public:
    DeviceReader(SnapshotParts& parts, const Ini& ini, bool dumps = true) : SnapshotIni(parts, ini), dumps_(dumps) {}
    void read(const std::string& key);

private:
    [[nodiscard]] std::string device_class(const IniSection& device, const std::string& name, const std::string& type);
    [[nodiscard]] std::vector<Register> read_registers();
    [[nodiscard]] std::optional<Register> read_register(const IniEntry& entry);
    void read_dumps(const std::string& core);
    [[nodiscard]] std::optional<MemoryDump> read_dump(const IniSection& section);
    void check_dump_range(const IniSection& section, const IniEntry& file, const MemoryDump& dump);

    bool dumps_;  ///< false: memory dumps are left out
};

void DeviceReader::read(const std::string& key) {
    const IniSection* device = ini_.section("device");
    if (device == nullptr) {
        problem(0,
                "There is no section [device], so the file describes nothing; it was omitted. Add it, with name=, "
                "class= and type=.");
        return;
    }
    for (const IniSection& section : ini_.sections()) {
        if (text::lower(section.name).rfind("dump", 0) == 0) continue;
        const std::string suggestion = did_you_mean(section.name, {"device", "regs", "dump"});
        if (!text::equal_ignoring_case(section.name, "device") && !text::equal_ignoring_case(section.name, "regs") &&
            !suggestion.empty())
            problem(section.line, fmt::format("Section [{}] is unknown and was ignored.{}", section.name, suggestion));
    }
    unknown_keys(*device, {"name", "class", "type", "location"}, true);
    const auto value = [&](std::string_view wanted) {
        const IniEntry* entry = single(*device, wanted);
        return entry == nullptr ? std::string() : entry->value;
    };
    std::string name = value("name"), type = value("type"), location = value("location");
    if (name.empty()) {
        problem(device->line,
                fmt::format("[device] has no key 'name'; '{}', its key in [device_list], is used. Add one.", key));
        name = key;
    }
    const std::string kind = device_class(*device, name, type);
    if (!parts_.devices.insert(name).second) {
        problem(device->line, fmt::format("There is another device with the name '{}'; the first one is used and this "
                                          "one was omitted. Give it a different name.",
                                          name));
        return;
    }
    const std::string file = ini_.file().lexically_relative(parts_.folder).string();
    if (kind == "core") {
        if (type.empty())
            problem(device->line,
                    fmt::format("Core '{}' has no key 'type'. Add its type, such as type=Cortex-A15.", name));
        parts_.cores.emplace(name, parts_.capture.cores.size());
        parts_.capture.cores.push_back({name, type, read_registers(), location, file});
        read_dumps(name);
    } else if (kind == "trace_source") {
        if (type.empty())
            problem(device->line,
                    fmt::format("Trace source '{}' has no key 'type', so its protocol is unknown. Add it, "
                                "such as type=PFT1.1.",
                                name));
        parts_.sources.emplace(name, parts_.capture.sources.size());
        Source source{.name = name, .type = type};
        source.registers = read_registers();
        source.location = location;
        source.file = file;
        parts_.capture.sources.push_back(std::move(source));
        read_dumps({});
    } else if (kind == "trace_sink" || kind == "trace_link") {
        parts_.sinks.push_back({name, type, read_registers(), kind == "trace_link"});
        read_dumps({});
    } else {
        read_dumps({});
    }
}

std::string DeviceReader::device_class(const IniSection& device, const std::string& name, const std::string& type) {
    const IniEntry* entry = single(device, "class");
    if (entry != nullptr && !entry->value.empty()) {
        const std::vector<std::string_view> known{"core", "trace_source", "trace_sink", "trace_link", "memory_space"};
        std::string kind = text::lower(entry->value);
        if (std::find(known.begin(), known.end(), kind) != known.end()) return kind;
        // Other classes are allowed and informative, but a likely typing error gets a message.
        const std::string suggestion = did_you_mean(kind, known);
        if (!suggestion.empty())
            problem(
                entry->line,
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
    problem(
        device.line,
        guess.empty()
            ? fmt::format("Device '{}' has no key 'class' and was ignored. Add class=core or "
                          "class=trace_source.",
                          name)
            : fmt::format("Device '{}' has no key 'class'; because of its type '{}', it is read as class={}. Add it.",
                          name, type, guess));
    return guess;
}

std::vector<Register> DeviceReader::read_registers() {
    std::vector<Register> registers;
    const IniSection* section = ini_.section("regs");
    if (section == nullptr) return registers;
    std::map<std::string, std::pair<unsigned, std::uint64_t>> seen;  // lower-case name → first line and value
    for (const IniEntry& entry : section->entries) {
        auto reg = read_register(entry);
        if (!reg) continue;
        const auto [first, added] = seen.try_emplace(text::lower(reg->name), entry.line, reg->value);
        if (added) {
            registers.push_back(std::move(*reg));
            continue;
        }
        const auto [line, value] = first->second;
        problem(
            entry.line,
            value == reg->value
                ? fmt::format("Register {} appears again (first at line {}). Remove one.", reg->name, line)
                : fmt::format(
                      "Register {} is {:#x} here but {:#x} at line {}; the first one is used. Remove the wrong one.",
                      reg->name, reg->value, value, line));
    }
    return registers;
}

std::optional<Register> DeviceReader::read_register(const IniEntry& entry) {
    const std::string_view key = entry.key;
    const std::size_t open = key.find('(');
    Register reg{.name = std::string(text::trim(key.substr(0, open)))};
    if (reg.name.empty()) {
        problem(entry.line, fmt::format("'{}' has no register name and was omitted. Add one.", key));
        return std::nullopt;
    }
    bool size_given = false;
    if (open != key.npos) {
        const std::size_t close = key.find(')', open);
        if (close == key.npos)
            problem(entry.line,
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
                problem(entry.line, fmt::format("'{}' contains nothing known about register {} and was ignored. "
                                                "Expected id:N, or size:BITS from 1 to 64.",
                                                part, reg.name));
            }
        }
    }
    const auto value = text::number(text::unquote(entry.value));
    if (!value) {
        problem(entry.line, fmt::format("The value '{}' of register {} is not a number of up to 64 bits (0x… "
                                        "hexadecimal, 0… octal, else decimal); the register was omitted. Correct it.",
                                        entry.value, reg.name));
        return std::nullopt;
    }
    reg.value = *value;
    if (reg.bits < 64 && (reg.value >> reg.bits) != 0) {
        problem(entry.line,
                fmt::format("The value {:#x} of register {} has more than {} bits{}; the register is read "
                            "as one of 64. Correct the value, or write {}(size:64).",
                            reg.value, reg.name, reg.bits, size_given ? "" : ", the size if none is given", reg.name));
        reg.bits = 64;
    }
    return reg;
}

void DeviceReader::read_dumps(const std::string& core) {
    if (!dumps_) return;
    for (const IniSection& section : ini_.sections()) {
        if (text::lower(section.name).rfind("dump", 0) != 0) continue;
        auto dump = read_dump(section);
        if (!dump) continue;
        dump->core = core;
        parts_.capture.dumps.push_back(std::move(*dump));
    }
}

std::optional<MemoryDump> DeviceReader::read_dump(const IniSection& section) {
    unknown_keys(section, {"file", "address", "length", "offset", "space"}, false);
    const IniEntry* file = single(section, "file");
    const IniEntry* address = single(section, "address");
    if (file == nullptr || file->value.empty() || address == nullptr) {
        problem(section.line, fmt::format("[{}] has no key '{}' and was omitted. Add it.", section.name,
                                          address == nullptr ? "address" : "file"));
        return std::nullopt;
    }
    MemoryDump dump;
    const auto start = number(section, *address, "the dump was omitted");
    if (!start) return std::nullopt;
    dump.address = Address{*start};
    if (const IniEntry* offset = single(section, "offset")) {
        const auto value = number(section, *offset, "the dump was omitted");
        if (!value) return std::nullopt;
        dump.offset = *value;
    }
    if (const IniEntry* length = single(section, "length"))
        dump.length = number(section, *length, "the rest of the file is used");
    if (const IniEntry* space = single(section, "space")) {
        const std::vector<std::string_view> known{"N",   "S",    "R",   "H",    "EL1N", "EL1S", "EL1R",
                                                  "EL2", "EL2R", "EL3", "ROOT", "P",    "SP",   "NP"};
        dump.space = text::unquote(space->value);
        const bool is_known = std::any_of(known.begin(), known.end(),
                                          [&](std::string_view k) { return text::equal_ignoring_case(k, dump.space); });
        if (!is_known && !dump.space.empty()) {
            problem(space->line, fmt::format("Memory space '{}' is unknown; the dump is taken to be seen in any. Known "
                                             "are: {}.",
                                             dump.space, fmt::join(known, ", ")));
            dump.space.clear();
        }
    }
    dump.file = resolve(*file, text::unquote(file->value));
    check_dump_range(section, *file, dump);
    return dump;
}

void DeviceReader::check_dump_range(const IniSection& section, const IniEntry& file, const MemoryDump& dump) {
    if (dump.length && *dump.length != 0 && dump.address.value + (*dump.length - 1) < dump.address.value)
        problem(section.line, fmt::format("[{}] of {:#x} bytes at {:#x} leaves the 64-bit address space. Correct "
                                          "'address' or 'length'.",
                                          section.name, *dump.length, dump.address.value));
    const auto bytes = parts_.files.size(dump.file);
    if (!bytes) {
        problem(file.line,
                fmt::format("The memory dump '{}' cannot be read: {}. Copy it into the snapshot folder, or "
                            "remove [{}].",
                            file.value, bytes.error().message, section.name),
                dump.file);
        return;
    }
    if ((dump.address.value & 1U) != 0)
        problem(section.line, fmt::format("[{}] begins at the odd address {:#x}. If bit 0 comes from the address of a "
                                          "Thumb function, the dump is at {:#x}: correct 'address'.",
                                          section.name, dump.address.value, dump.address.value - 1));
    const std::uint64_t rest = dump.offset < *bytes ? *bytes - dump.offset : 0;
    if (rest == 0)
        problem(section.line,
                fmt::format("[{}] begins at offset {:#x} of '{}', which contains only {:#x} bytes, so it is empty. "
                            "Correct 'offset', or copy the whole file.",
                            section.name, dump.offset, file.value, *bytes),
                dump.file);
    else if (dump.length && *dump.length > rest)
        problem(section.line,
                fmt::format("A dump is shorter than stated: [{}] has length {:#x}, but '{}' contains only {:#x} bytes "
                            "from offset {:#x} on; those are used. Correct 'length', or copy the whole file.",
                            section.name, *dump.length, file.value, rest, dump.offset),
                dump.file);
}

}  // namespace

void read_snapshot_device(SnapshotParts& parts, const Ini& ini, const std::string& key) {
    DeviceReader(parts, ini).read(key);
}

std::optional<DeviceFile> read_device_file(std::string_view text, const std::filesystem::path& file) {
    const DiskAccess files("no device file");
    SnapshotParts parts{files, file.parent_path()};
    const Ini ini(file, text, parts.problems);
    if (ini.section("device") == nullptr) return std::nullopt;
    DeviceReader(parts, ini, false).read(file.stem().string());
    DeviceFile out;
    if (!parts.capture.sources.empty()) out.source = std::move(parts.capture.sources.front());
    if (!parts.sinks.empty()) out.sink = std::move(parts.sinks.front());
    out.problems = parts.problems.take();
    return out;
}

}  // namespace waymark::capture
