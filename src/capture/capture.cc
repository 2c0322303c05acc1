#include "waymark/capture/capture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "text.h"
#include "waymark/capture/begins.h"
#include "waymark/core/numbers.h"

namespace waymark::capture {
namespace {

constexpr std::array<std::pair<Buffer::Format, std::string_view>, 3> formats{{
    {Buffer::Format::coresight, "coresight"},
    {Buffer::Format::source_data, "source_data"},
    {Buffer::Format::dstream_coresight, "dstream_coresight"},
}};

template <class T>
const T* by_name(const std::vector<T>& things, std::string_view wanted) {
    const auto found = std::find_if(things.begin(), things.end(), [&](const T& t) { return t.name == wanted; });
    return found == things.end() ? nullptr : &*found;
}

}  // namespace

std::string_view name(Buffer::Format format) {
    for (const auto& [value, text] : formats)
        if (value == format) return text;
    return {};
}

Buffer::Format buffer_format(std::string_view name) {
    for (const auto& [value, text] : formats)
        if (text::equal_ignoring_case(text, name)) return value;
    return Buffer::Format::unknown;
}

std::string to_string(const Problem& problem) {
    if (problem.file.empty()) return problem.message;
    if (problem.line == 0) return fmt::format("{}: {}", problem.file.string(), problem.message);
    return fmt::format("{}:{}: {}", problem.file.string(), problem.line, problem.message);
}

std::string to_string(const Peculiarity& peculiarity) {
    std::string advice = peculiarity.advice;
    if (!advice.empty()) advice.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(advice.front())));
    return fmt::format("{}: {}. {}.", peculiarity.found, peculiarity.means, advice);
}

namespace {

/// The part of its trace that a buffer still holds after it wrapped.
std::string kept_of(const Buffer& buffer) {
    if (buffer.overwritten == 0)
        return buffer.length ? fmt::format("it holds the last {} of trace, and how much was overwritten is not known",
                                           counted(*buffer.length, "byte"))
                             : "older trace was overwritten, and how much is not known";
    if (buffer.length)
        return fmt::format("it holds the last {} of {} of trace", grouped(*buffer.length),
                           counted(*buffer.length + buffer.overwritten, "byte"));
    return fmt::format("{} of older trace {} overwritten", counted(buffer.overwritten, "byte"),
                       buffer.overwritten == 1 ? "was" : "were");
}

}  // namespace

std::vector<std::string> missing_parts(const Buffer& buffer) {
    std::vector<std::string> out;
    if (buffer.wrapped)
        out.push_back(fmt::format("buffer {} wrapped: {}. What ran before is not in it; a larger buffer keeps more.",
                                  buffer.name, kept_of(buffer)));
    if (!buffer.begins.empty() && !begins_at_main(buffer.begins))
        out.push_back(fmt::format("the recording began {}: earlier execution is not in it.", buffer.begins));
    if (!buffer.ends.empty())
        out.push_back(fmt::format("the recording ended {}: later execution is not in it.", buffer.ends));
    return out;
}

const Core* Capture::find_core(std::string_view core_name) const { return by_name(cores, core_name); }
const Source* Capture::find_source(std::string_view source_name) const { return by_name(sources, source_name); }
const Buffer* Capture::find_buffer(std::string_view buffer_name) const { return by_name(buffers, buffer_name); }

Capture raw_capture(const std::filesystem::path& file, RawOptions options) {
    Capture capture;
    capture.path = file;
    capture.cores.push_back({.name = options.core_name, .type = options.core_type});
    capture.sources.push_back({.name = options.source_name,
                               .type = std::move(options.source_type),
                               .core = std::move(options.core_name),
                               .core_type = std::move(options.core_type),
                               .registers = std::move(options.registers)});
    Buffer buffer{.name = "buffer0", .format = options.format, .format_name = std::string(name(options.format))};
    buffer.files.push_back(file);
    std::move(options.more_files.begin(), options.more_files.end(), std::back_inserter(buffer.files));
    buffer.sources.push_back(std::move(options.source_name));
    capture.buffers.push_back(std::move(buffer));
    capture.dumps = std::move(options.dumps);
    return capture;
}

}  // namespace waymark::capture
