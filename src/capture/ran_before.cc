#include "waymark/capture/ran_before.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "disk_access.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/snapshot.h"

namespace waymark::capture {
namespace {

constexpr std::string_view ran_before_word = "waymark-before";
constexpr std::string_view last_line = "end";

/// Parses a number, decimal or hexadecimal after 0x.
std::optional<std::uint64_t> before_number(std::string_view digits) {
    const bool hexadecimal = digits.starts_with("0x");
    if (hexadecimal) digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, hexadecimal ? 16 : 10);
    if (digits.empty() || failure != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
    return value;
}

/// The words of a line; a line with too many words is refused by its count.
struct BeforeWords {
    explicit BeforeWords(std::string_view line) {
        while (!line.empty()) {
            const std::size_t end = std::min(line.find(' '), line.size());
            if (count < word.size()) word[count] = line.substr(0, end);
            ++count;
            line.remove_prefix(std::min(end + 1, line.size()));
        }
    }
    std::array<std::string_view, 3> word{};
    std::size_t count = 0;
};

/// Reads a line after the first. Returns the mistake in it, or an empty text.
std::string_view read_line(const BeforeWords& words, bool& counted, RanBefore& out) {
    const auto& [kind, first, second] = words.word;
    if (kind == "trace") {
        const auto bytes = before_number(first), sum = before_number(second);
        if (words.count != 3 || !bytes || !sum || *bytes == 0 || *bytes > RanBefore::Trace::most_bytes ||
            *sum > std::numeric_limits<std::uint32_t>::max() || out.trace.bytes != 0)
            return "it is not a number of bytes and their sum";
        out.trace = {*bytes, static_cast<std::uint32_t>(*sum)};
    } else if (kind == "instructions") {
        const auto number = before_number(first);
        if (words.count != 2 || !number || std::exchange(counted, true)) return "it is not a number of instructions";
        out.instructions = *number;
    } else if (kind == "code") {
        const auto address = before_number(first), bytes = before_number(second);
        if (words.count != 3 || !address || !bytes || *bytes == 0 ||
            *address > std::numeric_limits<std::uint64_t>::max() - *bytes)
            return "it is not an address and number of bytes";
        if (!out.code.empty() && *address <= out.code.back().first.value + out.code.back().bytes)
            return "it does not come after the code of the previous line";
        out.code.push_back({{*address}, *bytes});
    } else if (kind == "branch") {
        const auto address = before_number(first);
        if (words.count != 3 || !address || (second != "passed" && second != "both"))
            return "it is not an address with 'passed' or 'both'";
        if (!out.branches.empty() && *address <= out.branches.back().branch.value)
            return "it does not come after the branch of the previous line";
        out.branches.push_back({{*address}, second == "both"});
    } else {
        return "it begins with none of trace, instructions, code, branch, end";
    }
    return {};
}

}  // namespace

bool RanBefore::holds(Address address) const {
    const auto after =
        std::upper_bound(code.begin(), code.end(), address, [](Address a, const Stretch& s) { return a < s.first; });
    return after != code.begin() && address.value - std::prev(after)->first.value < std::prev(after)->bytes;
}

const RanBefore::Passed* RanBefore::passed(Address branch) const {
    const auto found = std::lower_bound(branches.begin(), branches.end(), branch,
                                        [](const Passed& p, Address a) { return p.branch < a; });
    return found != branches.end() && found->branch == branch ? &*found : nullptr;
}

std::string to_text(const RanBefore& ran) {
    std::string out = fmt::format("{} {}\ntrace {} {:#010x}\ninstructions {}\n", ran_before_word, ran_before_version,
                                  ran.trace.bytes, ran.trace.sum, ran.instructions);
    for (const RanBefore::Stretch& s : ran.code) out += fmt::format("code {:#x} {}\n", s.first.value, s.bytes);
    for (const RanBefore::Passed& p : ran.branches)
        out += fmt::format("branch {:#x} {}\n", p.branch.value, p.taken ? "both" : "passed");
    return out + std::string(last_line) + "\n";
}

std::optional<RanBefore> read_ran_before(std::string_view text, const std::filesystem::path& file,
                                         std::vector<Problem>& problems) {
    RanBefore out;
    unsigned number = 0;
    bool known = false, counted = false, ended = false;
    std::string_view what, advice = "copy the file again";
    while (!text.empty() && what.empty()) {
        ++number;
        const std::size_t end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        if (line.empty() || line.front() == '#') continue;
        const BeforeWords words(line);
        if (ended) {
            what = "it comes after the end";
        } else if (known) {
            ended = line == last_line;
            if (!ended) what = read_line(words, counted, out);
        } else if (words.count == 2 && words.word[0] == ran_before_word && before_number(words.word[1]) == 1) {
            what = "it has version 1, which does not state the trace to which it belongs";
            advice = "record again";
        } else if (words.count != 2 || words.word[0] != ran_before_word ||
                   before_number(words.word[1]) != ran_before_version) {
            what = "it is not 'waymark-before 2', so the file is damaged or of another version";
        } else {
            known = true;
        }
    }
    if (what.empty() && !ended) {
        number = 0;
        what = "its last line is missing";
    }
    if (what.empty() && out.trace.bytes == 0) {
        number = 0;
        what = "the trace to which it belongs is missing";
    }
    if (what.empty() && !counted) {
        number = 0;
        what = "the number of instructions is missing";
    }
    if (what.empty() && out.code.empty() != (out.instructions == 0)) {
        number = 0;
        what = "it has instructions without code, or code without instructions";
    }
    if (what.empty()) return out;
    problems.push_back(
        {file,
         number,
         fmt::format("This file was not read: {}. The code that ran before the recording began is not known; {}.", what,
                     advice),
         {}});
    return std::nullopt;
}

std::optional<RanBefore> read_ran_before(const std::filesystem::path& folder, const FileAccess& files,
                                         std::vector<Problem>& problems) {
    const std::filesystem::path path = folder / ran_before_file;
    const auto size = files.size(path);
    if (!size && size.error().code == Errc::not_found) return std::nullopt;
    const auto text = size ? files.text(path, max_ran_before_bytes) : Result<std::string>(size.error());
    if (text) return read_ran_before(*text, path, problems);
    problems.push_back(
        {path,
         0,
         fmt::format("It cannot be read, so the code that ran before the recording began is not known: {}.",
                     text.error().message),
         {}});
    return std::nullopt;
}

Result<RanBefore::Trace> trace_of(const Buffer& buffer, std::uint64_t most) {
    WM_ASSIGN_OR_RETURN(const std::unique_ptr<ByteStream> stream, open_buffer(buffer));
    std::vector<std::uint8_t> bytes(std::min(most, RanBefore::Trace::most_bytes));
    std::size_t have = 0;
    while (have < bytes.size()) {
        WM_ASSIGN_OR_RETURN(const std::size_t more, stream->read(std::span(bytes).subspan(have)));
        if (more == 0) break;
        have += more;
    }
    return RanBefore::Trace{have, static_cast<std::uint32_t>(crc32(0, bytes.data(), static_cast<uInt>(have)))};
}

namespace {

struct BeforeOfCapture {
    std::optional<RanBefore> ran;
    bool of_another_trace = false;
};
BeforeOfCapture before_of(const Capture& snapshot) {
    // The same folder may contain another capture.
    const std::filesystem::path folder = snapshot.path.parent_path();
    if (snapshot.path != snapshot_file(folder)) return {};
    const std::vector<Buffer>& buffers = snapshot.buffers;
    const auto begins = [](const Buffer& b) { return !b.begins.empty(); };
    if (std::count_if(buffers.begin(), buffers.end(), begins) != 1) return {};
    std::vector<Problem> reported;
    auto ran = read_ran_before(folder, DiskAccess(ran_before_file), reported);
    if (!ran) return {};
    // The trace of a recording that was killed continued after the file was written.
    const auto trace = trace_of(*std::find_if(buffers.begin(), buffers.end(), begins), ran->trace.bytes);
    if (!trace || *trace != ran->trace) return {{}, true};
    return {std::move(ran), false};
}

}  // namespace

std::optional<RanBefore> ran_before(const Capture& snapshot) { return before_of(snapshot).ran; }

void check_ran_before(Capture& snapshot) {
    if (!before_of(snapshot).of_another_trace) return;
    snapshot.problems.push_back({snapshot.path.parent_path() / ran_before_file,
                                 0,
                                 "This file was not used: it was written for a trace with another beginning than the "
                                 "trace in this folder, so one of the two is damaged or from another recording. The "
                                 "code that ran before the recording began is not known.",
                                 {}});
}

}  // namespace waymark::capture
