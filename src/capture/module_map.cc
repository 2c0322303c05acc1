#include "waymark/capture/module_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot.h"

namespace waymark::capture {
namespace {

constexpr std::string_view head_word = "waymark-maps";
constexpr std::size_t most_map_problems = 20;
/// More than any process has; the limit keeps a hostile file from slowing down every lookup.
constexpr std::size_t most_modules = 1 << 16;

/// A name as the last word of a line: control characters and % become %XX, so that any path fits on one line.
std::string escaped_name(std::string_view name) {
    std::string out;
    for (const char c : name) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f || c == '%')
            out += fmt::format("%{:02x}", byte);
        else
            out += c;
    }
    return out;
}

std::optional<unsigned> hex_digit(char c) {
    if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
    if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
    if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
    return std::nullopt;
}

std::optional<std::string> plain_name(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size()) return std::nullopt;
        const auto high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
        if (!high || !low) return std::nullopt;
        out += static_cast<char>(*high << 4 | *low);
        i += 2;
    }
    return out;
}

std::optional<std::vector<std::uint8_t>> bytes_of(std::string_view digits) {
    std::vector<std::uint8_t> out;
    constexpr std::size_t longest = 128;
    if (digits.size() % 2 != 0 || digits.size() > longest) return std::nullopt;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
        const auto high = hex_digit(digits[i]), low = hex_digit(digits[i + 1]);
        if (!high || !low) return std::nullopt;
        out.push_back(static_cast<std::uint8_t>(*high << 4 | *low));
    }
    return out;
}

/// Takes the next word, up to a blank, off the front of a line.
std::string_view word(std::string_view& line) {
    const std::size_t end = std::min(line.find(' '), line.size());
    const std::string_view out = line.substr(0, end);
    line.remove_prefix(std::min(end + 1, line.size()));
    return out;
}

/// Parses a number, decimal or hexadecimal after 0x. Returns false if the word is not a number.
bool take(std::string_view& line, std::uint64_t& value) {
    std::string_view digits = word(line);
    const bool hexadecimal = digits.starts_with("0x");
    if (hexadecimal) digits.remove_prefix(2);
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
    return !digits.empty() && failure == std::errc{} && end == digits.data() + digits.size();
}

/// Parses the end of a time span: a number, or `-` for none.
bool take(std::string_view& line, std::optional<std::uint64_t>& value) {
    if (line.starts_with("-")) {
        value.reset();
        return word(line) == "-";
    }
    std::uint64_t number = 0;
    if (!take(line, number)) return false;
    value = number;
    return true;
}

constexpr std::string_view no_build_id = "the build ID is not a hexadecimal number of up to 64 bytes";

/// Parses a build ID, or `-` for none. Returns false if the word is neither.
bool read_build_id(std::string_view& line, std::vector<std::uint8_t>& out) {
    const std::string_view id = word(line);
    if (id == "-") return true;
    auto bytes = bytes_of(id);
    if (!bytes || bytes->empty()) return false;
    out = std::move(*bytes);
    return true;
}

std::string build_id_text(const std::vector<std::uint8_t>& id) { return id.empty() ? "-" : hex_text(id); }

std::string end_text(const std::optional<std::uint64_t>& to) { return to ? std::to_string(*to) : "-"; }

/// Parses a line after `map`. Returns the mistake in it; empty if there is none.
std::string_view read_module(std::string_view line, Module& out) {
    std::uint64_t process = 0;
    if (!take(line, process) || process > 0xffffffff) return "the process is not a number of 32 bits";
    out.process = static_cast<std::uint32_t>(process);
    if (!take(line, out.from) || !take(line, out.to)) return "its times are not numbers";
    if (out.to && *out.to < out.from) return "it ends before it begins";
    if (!take(line, out.address.value) || !take(line, out.bytes)) return "address and size are no numbers";
    if (out.bytes == 0) return "it has no bytes";
    if (out.bytes - 1 > ~std::uint64_t{0} - out.address.value) return "it exceeds the address space";
    if (!take(line, out.offset)) return "the offset in the file is not a number";
    if (!read_build_id(line, out.build_id)) return no_build_id;
    if (line == "-") return {};
    const auto name = plain_name(line);
    if (!name || name->empty()) return "the name of the file is missing or wrongly escaped";
    out.file = *name;
    return {};
}

std::string_view format_word(GeneratedNames::Format format) {
    return format == GeneratedNames::Format::perf_map ? "perf-map" : "jitdump";
}

std::string_view read_thread(std::string_view line, TracedThread& out) {
    std::uint64_t thread = 0;
    if (!take(line, thread) || thread > 0xffffffff) return "the thread is not a number of 32 bits";
    out.thread = static_cast<std::uint32_t>(thread);
    const auto name = plain_name(line);
    if (!name || name->empty()) return "the name of the source is missing or wrongly escaped";
    out.source = *name;
    return {};
}

std::string_view read_names(std::string_view line, GeneratedNames& out) {
    const std::string_view format = word(line);
    for (const auto known : {GeneratedNames::Format::perf_map, GeneratedNames::Format::jitdump}) {
        if (format != format_word(known)) continue;
        out.format = known;
        const auto name = plain_name(line);
        // The name must be a file in the folder, not a path to another one.
        if (!name || name->empty() || name->find('/') != name->npos) return "it names no file in the folder";
        out.file = *name;
        return {};
    }
    return "its format is neither perf-map nor jitdump";
}

std::string_view read_copy(std::string_view line, CopiedFile& out) {
    const auto copy = plain_name(word(line));
    if (!copy || copy->empty() || copy->find('/') != copy->npos) return "it names no file in the folder";
    out.copy = *copy;
    if (!read_build_id(line, out.build_id)) return no_build_id;
    const auto name = plain_name(line);
    if (!name || name->empty()) return "the name of the file is missing or wrongly escaped";
    out.file = *name;
    return {};
}

std::string_view read_time(std::string_view line, TracedTime& out) {
    if (!take(line, out.from) || !take(line, out.to)) return "its times are not numbers";
    if (out.to && *out.to < out.from) return "it ends before it begins";
    const auto name = plain_name(line);
    if (!name || name->empty()) return "the name of the source is missing or wrongly escaped";
    out.source = *name;
    return {};
}

}  // namespace

std::string hex_text(const std::vector<std::uint8_t>& bytes) {
    std::string out;
    for (const std::uint8_t byte : bytes) out += fmt::format("{:02x}", byte);
    return out;
}

std::vector<std::size_t> ModuleMap::seen_by(std::string_view source) const {
    const auto traced =
        std::find_if(sources.begin(), sources.end(), [&](const TracedTime& t) { return t.source == source; });
    std::vector<std::size_t> out;
    for (std::size_t i = 0; i < modules.size(); ++i) {
        const Module& m = modules[i];
        const bool before = traced != sources.end() && m.to && *m.to <= traced->from;
        const bool after = traced != sources.end() && traced->to && m.from >= *traced->to && *traced->to > traced->from;
        if (!before && !after) out.push_back(i);
    }
    return out;
}

std::string_view ModuleMap::before(std::string_view source) const {
    const auto mine =
        std::find_if(threads.begin(), threads.end(), [&](const TracedThread& t) { return t.source == source; });
    if (mine == threads.end()) return {};
    const auto earlier = std::find_if(std::make_reverse_iterator(mine), threads.rend(),
                                      [&](const TracedThread& t) { return t.thread == mine->thread; });
    return earlier == threads.rend() ? std::string_view() : std::string_view(earlier->source);
}

std::string to_text(const ModuleMap& map) {
    std::string out = fmt::format("{} {}\n", head_word, module_map_version);
    if (!map.clock.empty()) out += fmt::format("clock {}\n", escaped_name(map.clock));
    for (const TracedTime& t : map.sources)
        out += fmt::format("source {} {} {}\n", t.from, end_text(t.to), escaped_name(t.source));
    for (const TracedThread& t : map.threads) out += fmt::format("thread {} {}\n", t.thread, escaped_name(t.source));
    for (const GeneratedNames& n : map.names)
        out += fmt::format("names {} {}\n", format_word(n.format), escaped_name(n.file));
    for (const CopiedFile& c : map.copies)
        out += fmt::format("copy {} {} {}\n", escaped_name(c.copy), build_id_text(c.build_id), escaped_name(c.file));
    for (const Module& m : map.modules)
        out += fmt::format("map {} {} {} {:#x} {:#x} {:#x} {} {}\n", m.process, m.from, end_text(m.to), m.address.value,
                           m.bytes, m.offset, build_id_text(m.build_id), m.file.empty() ? "-" : escaped_name(m.file));
    return out;
}

ModuleMap read_module_map(std::string_view text, const std::filesystem::path& file, std::vector<Problem>& problems) {
    ModuleMap out;
    std::size_t wrong = 0;
    unsigned number = 0;
    const auto problem = [&](std::string message) {
        if (wrong++ < most_map_problems) problems.push_back({file, number, std::move(message), {}});
    };
    bool known = false;
    while (!text.empty()) {
        ++number;
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() || line.front() == '#') continue;
        const std::string_view kind = word(line);
        if (!known) {
            std::uint64_t version = 0;
            if (kind != head_word || !take(line, version) || version != module_map_version) {
                problem(
                    fmt::format("It does not begin with '{} {}', so it is damaged or of another version, and was not "
                                "read: the places of mapped files are not known. Copy it again, or give the program "
                                "with --image FILE@ADDRESS.",
                                head_word, module_map_version));
                return out;
            }
            known = true;
            continue;
        }
        std::string_view what;
        if (kind == "map") {
            Module module;
            what = out.modules.size() >= most_modules ? "there are more than in any real recording"
                                                      : read_module(line, module);
            if (what.empty()) out.modules.push_back(std::move(module));
        } else if (kind == "source") {
            TracedTime time;
            what = out.sources.size() >= most_modules ? "there are more than in any real recording"
                                                      : read_time(line, time);
            if (what.empty()) out.sources.push_back(std::move(time));
        } else if (kind == "thread") {
            TracedThread thread;
            what = out.threads.size() >= most_modules ? "there are more than in any real recording"
                                                      : read_thread(line, thread);
            if (what.empty()) out.threads.push_back(std::move(thread));
        } else if (kind == "names") {
            GeneratedNames names;
            what = out.names.size() >= most_modules ? "there are more than in any real recording"
                                                    : read_names(line, names);
            if (what.empty()) out.names.push_back(std::move(names));
        } else if (kind == "copy") {
            CopiedFile copy;
            what =
                out.copies.size() >= most_modules ? "there are more than in any real recording" : read_copy(line, copy);
            if (what.empty()) out.copies.push_back(std::move(copy));
        } else if (kind == "clock") {
            const auto name = plain_name(line);
            if (name)
                out.clock = *name;
            else
                what = "the name of the clock is wrongly escaped";
        } else {
            what = "it begins with none of map, source, thread, names, copy, clock";
        }
        if (!what.empty())
            problem(fmt::format(
                "This line was omitted: {}. Code that was mapped there has no names; copy the file again.", what));
    }
    if (!known && wrong == 0) problem("It is empty, so the places of mapped files are not known. Copy it again.");
    if (wrong > most_map_problems) {
        number = 0;
        wrong = 0;
        problem("More lines were omitted, each with an error. Copy the file again.");
    }
    return out;
}

ModuleMap read_module_map(const std::filesystem::path& folder, const FileAccess& files,
                          std::vector<Problem>& problems) {
    const std::filesystem::path path = folder / module_map_file;
    if (!files.size(path)) return {};
    const auto text = files.text(path, max_module_map_bytes);
    if (text) return read_module_map(*text, path, problems);
    problems.push_back(
        {path,
         0,
         fmt::format("It cannot be read, so the places of mapped files are not known: {}.", text.error().message),
         {}});
    return {};
}

}  // namespace waymark::capture
