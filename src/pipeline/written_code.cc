#include "written_code.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "waymark/image/generated_code.h"

namespace waymark::pipeline {

namespace fs = std::filesystem;

namespace {

std::optional<fs::path> find(const std::string& file, const fs::path& capture, const image::FileSearch& search) {
    const fs::path recorded(file);
    std::vector<fs::path> places;
    if (search.symfs.empty()) {
        places.push_back(recorded);
    } else {
        places.push_back(image::place_below(search.symfs, recorded));
        places.push_back(image::place_below(search.symfs, recorded.filename()));
    }
    std::error_code none;
    const fs::path folder = fs::is_directory(capture, none) ? capture : capture.parent_path();
    places.push_back(folder / recorded.filename());
    for (const fs::path& place : places)
        if (fs::is_regular_file(place, none)) return place;
    return std::nullopt;
}

}  // namespace

Status add_written_code(const capture::Capture& capture, const SessionOptions& options, ChangedCode& to,
                        const std::function<void(std::string)>& problem) {
    struct File {
        fs::path path;
        std::optional<std::uint32_t> process;  // nullopt: the process that the file names
    };
    std::vector<File> files;
    for (const capture::WrittenCode& written : capture.spaces->written_code()) {
        if (const auto path = find(written.file, capture.path, options.files))
            files.push_back({*path, written.process});
        else if (options.jitdumps.empty())
            problem(
                fmt::format("'{}', in which process {} wrote down the code that it generated, was not found: such "
                            "code is not decoded. Copy the file beside the capture, or give it with --jitdump.",
                            written.file, written.process));
    }
    for (const std::string& path : options.jitdumps) files.push_back({path, std::nullopt});
    bool without_clock = false;
    for (const File& file : files) {
        auto read = image::read_jitdump(file.path);
        if (!read) {
            if (!file.process) return std::move(read.error());
            problem(fmt::format("{}; its code is not decoded.", read.error().message));
            continue;
        }
        for (std::string& what : read->problems) problem(std::move(what));
        const bool clock = capture.spaces->has_clock_of_written_code() && !read->other_clock;
        without_clock |= !clock && !read->pieces.empty();
        for (const image::GeneratedCode& piece : read->pieces)
            to.add({file.process.value_or(read->process),
                    clock ? piece.time : 0,
                    piece.address,
                    piece.bytes,
                    {piece.code.begin(), piece.code.end()},
                    piece.name.empty() ? "(no name)" : piece.name});
    }
    if (without_clock)
        problem(
            "the capture's times are not by the clock of the jitdump files (perf record -k 1), so the code that was "
            "generated last at each address is used for the whole trace.");
    return Nothing{};
}

}  // namespace waymark::pipeline
