/// What a user names as a capture, recognised once: `identify` looks at the path and at the first bytes, and every
/// command asks the `Container` it returns. The table of `container.cc` has one row for each kind.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/analysis/samples.h"
#include "waymark/capture/perf_file.h"
#include "waymark/core/result.h"

namespace waymark::open {

/// Kinds of containers.
enum class Kind : std::uint8_t {
    counters,        ///< a folder with dpu.ini, or that file
    answers,         ///< an answers file
    branch_lists,    ///< a file of simpleperf's branch lists
    coresight_perf,  ///< perf.data with trace of CoreSight units
    stacks_perf,     ///< perf.data with branch stacks and no trace
    samples_perf,    ///< any other perf.data
    stacks_text,     ///< text of `perf script` with branch stacks
    snapshot,        ///< a folder with snapshot.ini, or an .ini file
    folder,          ///< any other folder
    program,         ///< an ELF file
    text,            ///< any other text
    bytes,           ///< any other file
    special_file,    ///< a named pipe, a device or a socket; its bytes are not looked at
    missing,         ///< no file or folder
};

/// What a container holds, which decides how a command reads it.
enum class Content : std::uint8_t {
    flow,          ///< trace of program flow with a description: a pipeline::Session
    samples,       ///< perf.data of a profiling unit: an analysis::SampleCapture
    counters,      ///< trace of a Debug and Profiling Unit
    answers,       ///< results, no trace
    branch_lists,  ///< lists of branches, no trace
    bytes,         ///< perhaps trace, without a description
    nothing,       ///< no trace
};

/// A row of the table.
struct KindInfo {
    Kind kind;
    std::string_view title;  ///< `a perf.data file with CoreSight trace`
    Content contents;
    /// The error of commands that decode program flow; `{0}` is the path, `{1}` the path as a shell takes it. Empty:
    /// they read the container, or report what its bytes show.
    std::string_view no_trace;
    /// The same for the commands of `waymark spe`.
    std::string_view no_samples;
};

/// The table's row of a kind.
[[nodiscard]] const KindInfo& info(Kind kind);
/// All rows.
[[nodiscard]] std::span<const KindInfo> kinds();

/// A path and what was found there.
struct Container {
    std::string path;  ///< `-`: standard input
    Kind kind = Kind::missing;
    bool is_folder = false;
    /// The first 64 KiB, unpacked if the file is compressed. Standard input keeps these bytes for the next reader.
    std::vector<std::uint8_t> head{};
    /// The whole file, open. Null: it is a folder of another kind, a compressed file or a stream that is not perf.data.
    capture::perf::PerfFile file{};
    std::optional<Error> unreadable{};  ///< why there are no bytes

    [[nodiscard]] Content contents() const { return info(kind).contents; }
    /// perf.data, as a file or a folder.
    [[nodiscard]] bool is_perf() const {
        return kind == Kind::coresight_perf || kind == Kind::stacks_perf || kind == Kind::samples_perf;
    }
    /// A snapshot, or what can only be opened as one.
    [[nodiscard]] bool is_snapshot() const;
    /// `standard input` for `-`.
    [[nodiscard]] std::string name() const { return path == "-" ? "standard input" : path; }
};

/// Looks at a path. A regular file is opened once; a named pipe or device is not opened. Standard input keeps its
/// bytes, unless it is perf.data, which `Container::file` then has. `described`: options describe the bytes, so that
/// even perf.data stays in standard input.
[[nodiscard]] Container identify(const std::string& path, bool described = false);

/// The container of a path, identified when first asked for. Copies share what they were copied with. Not for several
/// threads before the first call.
class Lookup {
public:
    [[nodiscard]] const Container& of(const std::string& path, bool described = false) const {
        if (found_ == nullptr || found_->path != path)
            found_ = std::make_shared<const Container>(identify(path, described));
        return *found_;
    }

private:
    mutable std::shared_ptr<const Container> found_;
};

/// The error for commands that decode program flow where the container is of another kind altogether: a program, a
/// text (unless `text_too` is false) or answers.
[[nodiscard]] std::optional<Error> no_trace(const Container& container, bool text_too = true);

/// The same for commands that need samples.
[[nodiscard]] std::optional<Error> no_samples(const Container& container);

/// The container as samples: perf.data, or the bare bytes of a profiling buffer. Errors: the
/// errors of analysis::open_samples.
[[nodiscard]] Result<analysis::SampleCapture> open_samples(const Container& container, std::uint32_t midr = 0,
                                                           capture::perf::Progress* progress = nullptr);

}  // namespace waymark::open
