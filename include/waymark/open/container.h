/// Recognises a capture that a user names, once: `identify` examines the path and the first bytes, and every command
/// uses the `Container` it returns. The table of `container.cc` has one row for each kind.
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
    stacks_text,     ///< output of `perf script` with branch stacks
    snapshot,        ///< a folder with snapshot.ini, or an .ini file
    folder,          ///< any other folder
    program,         ///< an ELF file
    text,            ///< any other text
    bytes,           ///< any other file
    special_file,    ///< a named pipe, a device or a socket; its bytes are not examined
    missing,         ///< there is no such file or folder
};

/// The contents of a container, which decide how commands read it.
enum class Content : std::uint8_t {
    flow,          ///< trace of program flow with a description: a pipeline::Session
    samples,       ///< perf.data of a profiling unit: an analysis::SampleCapture
    counters,      ///< trace of a Debug and Profiling Unit
    answers,       ///< results, no trace
    branch_lists,  ///< lists of branches, without trace
    bytes,         ///< possibly trace, without a description
    nothing,       ///< no trace
};

/// A row of the table.
struct KindInfo {
    Kind kind;
    std::string_view title;  ///< such as `a perf.data file with CoreSight trace`
    Content contents;
    /// The error for commands that decode program flow; `{0}` is the path, `{1}` the path quoted for a shell. Empty:
    /// such commands read the container, or report what its bytes show.
    std::string_view no_trace;
    /// The same for the commands of `waymark spe`.
    std::string_view no_samples;
};

/// The table's row of a kind.
[[nodiscard]] const KindInfo& info(Kind kind);
/// All rows.
[[nodiscard]] std::span<const KindInfo> kinds();

/// A path, and the file or folder at this path.
struct Container {
    std::string path;  ///< `-`: standard input
    Kind kind = Kind::missing;
    bool is_folder = false;
    /// The first 64 KiB, unpacked if the file is compressed. They remain available in standard input for the next
    /// reader.
    std::vector<std::uint8_t> head{};
    /// The whole open file. Null for another kind of folder, and for a compressed file or a stream that is not
    /// perf.data.
    capture::perf::PerfFile file{};
    std::optional<Error> unreadable{};  ///< why the bytes could not be read

    [[nodiscard]] Content contents() const { return info(kind).contents; }
    /// Whether it is perf.data, as a file or a folder.
    [[nodiscard]] bool is_perf() const {
        return kind == Kind::coresight_perf || kind == Kind::stacks_perf || kind == Kind::samples_perf;
    }
    /// Whether it is a snapshot, or can only be opened as one.
    [[nodiscard]] bool is_snapshot() const;
    /// The path; `standard input` for `-`.
    [[nodiscard]] std::string name() const { return path == "-" ? "standard input" : path; }
};

/// Identifies a path. A regular file is opened once; a named pipe or device is not opened. Standard input keeps its
/// bytes, unless it is perf.data, which is then in `Container::file`. `described`: options describe the bytes, so that
/// even perf.data stays in standard input.
[[nodiscard]] Container identify(const std::string& path, bool described = false);

/// The container of a path, identified at first use. Copies share the result. Not thread-safe before the first call.
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

/// The error for commands that decode program flow if the container is of an entirely different kind: a program, a text
/// (unless `text_too` is false) or answers.
[[nodiscard]] std::optional<Error> no_trace(const Container& container, bool text_too = true);

/// The same for commands that need samples.
[[nodiscard]] std::optional<Error> no_samples(const Container& container);

/// Opens the container as samples: perf.data, or the raw bytes of a profiling buffer. Errors: the errors of
/// analysis::open_samples.
[[nodiscard]] Result<analysis::SampleCapture> open_samples(const Container& container, std::uint32_t midr = 0,
                                                           capture::perf::Progress* progress = nullptr);

}  // namespace waymark::open
