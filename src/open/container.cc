#include "waymark/open/container.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <system_error>
#include <utility>

#include "waymark/answers/file.h"
#include "waymark/capture/branch_stacks.h"
#include "waymark/capture/byte_file.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/capture/dpu_folder.h"
#include "waymark/capture/snapshot.h"
#include "waymark/capture/temporary_file.h"
#include "waymark/core/quote.h"
#include "waymark/core/utf8.h"
#include "waymark/exports/branch_list.h"

namespace waymark::open {

namespace fs = std::filesystem;
namespace perf = capture::perf;

namespace {

constexpr std::size_t head_bytes = std::size_t{1} << 16;

/// The properties of a path that a row may examine.
struct Sight {
    const fs::path& path;
    fs::file_type type;
    bool is_stream;  ///< standard input
    Bytes head;
    std::optional<perf::Holds> holds{};  ///< of perf.data

    [[nodiscard]] std::string_view text() const { return {reinterpret_cast<const char*>(head.data()), head.size()}; }
};

struct Row {
    KindInfo info;
    bool (*is_it)(const Sight&);
};

bool holds(const Sight& s, perf::Holds what) { return s.holds && *s.holds == what; }

/// Whether the head of a file is text in UTF-8. The last character may be cut.
bool is_readable(std::string_view text) {
    constexpr std::size_t longest = 4;
    while (!text.empty()) {
        const char c = text.front();
        const bool plain = (c >= ' ' && c <= '~') || c == '\n' || c == '\r' || c == '\t';
        const std::size_t bytes = plain ? 1 : static_cast<unsigned char>(c) < 0x80 ? 0 : utf8_character(text);
        if (bytes == 0) return text.size() < longest && static_cast<unsigned char>(c) >= 0xc0;
        text.remove_prefix(bytes);
    }
    return true;
}

constexpr std::string_view answers_instead =
    "{0} is an answers file, which contains results and no trace: profile, coverage, branches, loops, exceptions, "
    "diff, report, export, pgo and merge read it; for this command name the capture";
constexpr std::string_view lists_instead =
    "{0} is a file of branch lists, which are decoded already and contain no trace: waymark pgo {1} makes a profile of "
    "them, and waymark info {1} lists them";
constexpr std::string_view program_instead =
    "{0} is an ELF file (a program or library) and contains no trace. Name the capture, and give this file with "
    "--image {0}";
constexpr std::string_view text_instead =
    "{0} is a text file and contains no trace. Name a capture folder, a perf.data file, or the file of a trace buffer; "
    "if it holds bytes as digits, waymark doctor {1} reads them";

/// The kinds, in the order in which they are tried: the first row whose function accepts the file is used.
constexpr std::array rows{
    Row{{Kind::counters, "a capture folder of a Debug and Profiling Unit", Content::counters, "",
         "{0} is a capture of a Debug and Profiling Unit and contains no samples: waymark dpu report {0} shows its "
         "contents"},
        [](const Sight& s) { return !s.is_stream && capture::is_dpu_folder(s.path); }},
    Row{{Kind::answers, "an answers file", Content::answers, answers_instead, answers_instead},
        [](const Sight& s) { return answers::is_answers_file(s.head); }},
    Row{{Kind::branch_lists, "a file of branch lists", Content::branch_lists, lists_instead, lists_instead},
        [](const Sight& s) { return !s.is_stream && exports::is_branch_list(s.head); }},
    Row{{Kind::coresight_perf, "a perf.data file with CoreSight trace", Content::flow, "", ""},
        [](const Sight& s) { return holds(s, perf::Holds::cs_etm); }},
    Row{{Kind::stacks_perf, "a perf.data file with branch stacks", Content::flow, "", ""},
        [](const Sight& s) { return holds(s, perf::Holds::branch_stacks); }},
    Row{{Kind::samples_perf, "a perf.data file", Content::samples, "", ""},
        [](const Sight& s) { return s.holds.has_value(); }},
    Row{{Kind::stacks_text, "text of perf script with branch stacks", Content::flow, "", ""},
        [](const Sight& s) { return perf::is_branch_text(s.text()); }},
    Row{{Kind::snapshot, "a snapshot folder", Content::flow, "",
         "{0} is a snapshot of trace macrocells and contains no samples: waymark report {0}, profile and flow show its "
         "contents; waymark spe takes perf.data files"},
        [](const Sight& s) {
            return s.type == fs::file_type::directory
                       ? !capture::snapshot_file(s.path).empty()
                       : s.type == fs::file_type::regular && s.path.extension() == ".ini";
        }},
    Row{{Kind::folder, "a folder", Content::nothing, "", ""},
        [](const Sight& s) { return s.type == fs::file_type::directory; }},
    Row{{Kind::program, "an ELF file", Content::nothing, program_instead, program_instead},
        [](const Sight& s) {
            return !s.is_stream && s.text().starts_with(
                                       "\x7f"
                                       "ELF");
        }},
    Row{{Kind::text, "a text file", Content::nothing, text_instead, text_instead},
        [](const Sight& s) {
            constexpr std::size_t least_bytes = 8;
            return !s.is_stream && s.head.size() >= least_bytes && is_readable(s.text());
        }},
    Row{{Kind::bytes, "a file without a description", Content::bytes, "", ""},
        [](const Sight& s) { return s.is_stream || s.type == fs::file_type::regular; }},
    Row{{Kind::missing, "no file", Content::nothing, "", ""},
        [](const Sight& s) { return s.type == fs::file_type::not_found || s.type == fs::file_type::none; }},
    Row{{Kind::special_file, "a pipe or device", Content::nothing, "", ""}, [](const Sight&) { return true; }},
};

constexpr auto infos = [] {
    std::array<KindInfo, rows.size()> out{};
    for (std::size_t i = 0; i < rows.size(); ++i) out[i] = rows[i].info;
    return out;
}();

/// Whether the bytes begin like gzip, zstd, or the header that pzstd writes.
bool may_be_packed(Bytes head) {
    constexpr std::uint8_t gzip = 0x1f, zstd = 0x28;
    return !head.empty() && (head[0] == gzip || head[0] == zstd || (head[0] & 0xf0) == 0x50);
}

/// The first bytes of standard input, unpacked; the next reader gets them again.
std::vector<std::uint8_t> standard_input_head() {
    std::vector<std::uint8_t> head = capture::peek_standard_input(head_bytes);
    if (!may_be_packed(head)) return head;
    const auto copy = capture::open_temporary_file("standard input");
    if (!copy) return head;
    if (::write(*copy, head.data(), head.size()) == static_cast<ssize_t>(head.size()))
        if (auto opened = capture::open_head(fmt::format("/proc/self/fd/{}", *copy), head_bytes))
            head = std::move(opened->bytes);
    ::close(*copy);
    return head;
}

/// Examines standard input, and reads it to the end if it is perf.data that no option describes.
void take_standard_input(Container& out, bool described) {
    out.head = standard_input_head();
    if (described || !perf::is_perf_data(out.head)) return;
    if (auto file = perf::open_perf_file(out.path))
        out.file = std::move(*file);
    else
        out.unreadable = std::move(file.error());
}

void take_file(Container& out) {
    auto opened = capture::open_head(out.path, head_bytes);
    if (!opened) {
        out.unreadable = std::move(opened.error());
        return;
    }
    out.head = std::move(opened->bytes);
    out.file.file = std::move(opened->file);
    if (out.file.file != nullptr || !perf::is_perf_data(out.head)) return;
    // A compressed file is unpacked as a whole.
    if (auto file = perf::open_perf_file(out.path))
        out.file = std::move(*file);
    else
        out.unreadable = std::move(file.error());
}

std::optional<Error> instead(std::string_view words, const Container& container) {
    if (words.empty()) return std::nullopt;
    return Error{Errc::usage, fmt::format(fmt::runtime(words), container.name(), shell_file(container.path))};
}

}  // namespace

const KindInfo& info(Kind kind) {
    return *std::find_if(infos.begin(), infos.end(), [&](const KindInfo& row) { return row.kind == kind; });
}

std::span<const KindInfo> kinds() { return infos; }

bool Container::is_snapshot() const {
    if (kind == Kind::missing) return fs::path(path).extension() == ".ini";
    return kind == Kind::snapshot || kind == Kind::folder || kind == Kind::counters;
}

Container identify(const std::string& path, bool described) {
    Container out;
    out.path = path;
    const fs::path place = path;
    std::error_code none;
    const bool is_stream = path == "-";
    const fs::file_type type = is_stream ? fs::file_type::unknown : fs::status(place, none).type();
    out.is_folder = type == fs::file_type::directory;
    bool is_perf = false;
    if (is_stream) {
        take_standard_input(out, described);
    } else if (type == fs::file_type::regular) {
        take_file(out);
    } else if (out.is_folder && perf::is_perf_folder(place)) {
        is_perf = true;
        if (auto file = perf::open_perf_file(place))
            out.file = std::move(*file);
        else
            out.unreadable = std::move(file.error());
    }
    Sight sight{place, type, is_stream, out.head};
    if (is_perf || (perf::is_perf_data(out.head) && !(is_stream && described)))
        sight.holds = out.file.file == nullptr ? perf::Holds::nothing_known : perf::holds(out.file);
    out.kind = std::find_if(rows.begin(), rows.end(), [&](const Row& row) { return row.is_it(sight); })->info.kind;
    return out;
}

std::optional<Error> no_trace(const Container& container, bool text_too) {
    if (container.kind == Kind::text && !text_too) return std::nullopt;
    return instead(info(container.kind).no_trace, container);
}

std::optional<Error> no_samples(const Container& container) {
    return instead(info(container.kind).no_samples, container);
}

Result<analysis::SampleCapture> open_samples(const Container& container, std::uint32_t midr, perf::Progress* progress) {
    if (container.unreadable) return *container.unreadable;
    if (container.file.file != nullptr) return analysis::open_samples(container.path, container.file, midr, progress);
    return analysis::open_samples(container.path, midr, progress);
}

}  // namespace waymark::open
