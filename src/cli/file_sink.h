/// A file that is there whole or not at all: written beside its place and moved there at the end.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"

namespace waymark::cli {

/// Errors stick and are told by `commit`. What is not committed leaves nothing behind.
class FileSink final : public ByteSink {
public:
    /// `-` is standard output; that, and what is no regular file, is written as it comes. `usage`: the path is that of
    /// one of the inputs, or of a file in a capture folder; `unreadable`: the file cannot be created.
    static Result<std::unique_ptr<FileSink>> open(const std::string& path, const std::vector<std::string>& inputs);
    FileSink(const FileSink&) = delete;
    FileSink& operator=(const FileSink&) = delete;
    ~FileSink() override;

    void write(Bytes bytes) override;
    /// Moves the file to its place. `unreadable`: something could not be written.
    [[nodiscard]] waymark::Status commit();

private:
    FileSink(std::FILE* file, std::filesystem::path temporary, std::filesystem::path path)
        : file_(file), temporary_(std::move(temporary)), path_(std::move(path)) {}

    std::FILE* file_;
    std::filesystem::path temporary_;  // empty: there is none
    std::filesystem::path path_;
    int error_ = 0;
};

/// A name beside `path` that nobody has; the file is for others to make.
[[nodiscard]] std::filesystem::path temporary_name(const std::filesystem::path& path);

}  // namespace waymark::cli
