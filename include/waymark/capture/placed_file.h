/// Files that are written atomically: they are written without a name or under a temporary name, and moved into place
/// at the end. If SIGINT, SIGTERM or SIGHUP ends the process, unfinished files are removed.
#pragma once

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/byte_sink.h"
#include "waymark/core/result.h"

namespace waymark::capture {

/// The error if writing to `path` would destroy one of the inputs (captures, images), or a file of a capture folder,
/// even through a link.
[[nodiscard]] std::optional<Error> would_replace(const std::string& path, const std::vector<std::string>& inputs);

/// A temporary name, `PLACE.PID-N.part`, for an output file or folder that is not complete yet. SIGINT, SIGTERM and
/// SIGHUP remove the file or folder. SIGKILL cannot be handled, so the next temporary name for the same place removes
/// what killed processes left.
class TemporaryName {
public:
    /// Whether to remove files and folders that killed processes left for the same place: finding them means listing
    /// the folder.
    enum class Leftovers { remove, leave };

    TemporaryName() = default;
    /// An unused name; the caller creates the file or folder.
    explicit TemporaryName(const std::filesystem::path& place, Leftovers leftovers = Leftovers::remove);
    TemporaryName(TemporaryName&& other) noexcept;
    TemporaryName& operator=(TemporaryName&& other) noexcept;
    ~TemporaryName();

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] bool empty() const { return path_.empty(); }
    /// Shows other processes that the existing file or folder of this name is in use.
    void lock();
    /// The name is no longer in use, or has become permanent.
    void release();
    /// Removes files and folders that killed processes left for `place`.
    static void remove_leftovers(const std::filesystem::path& place);

private:
    std::filesystem::path path_;
    int lock_ = -1, slot_ = -1;
};

/// Options for placing a file.
struct Placing {
    TemporaryName::Leftovers leftovers = TemporaryName::Leftovers::remove;
    bool synced = false;  ///< the file is written to disk before it is moved into place, so that a crash of the machine
                          ///< loses nothing
};

/// A file that will be moved into place. If the file system supports it, the file has no name until `commit`, so that
/// nothing is left even if the program is killed; otherwise it has a `TemporaryName`.
class PlacedFile {
public:
    /// `-` is standard output; it and any path other than a regular file are written directly. `usage`: the path is one
    /// of the inputs, or a file in a capture folder; `unreadable`: the file cannot be created.
    static Result<std::unique_ptr<PlacedFile>> open(const std::string& path, const std::vector<std::string>& inputs,
                                                    Placing how = {});
    PlacedFile(const PlacedFile&) = delete;
    PlacedFile& operator=(const PlacedFile&) = delete;
    /// Without `commit` the new file is removed, and the old one stays.
    ~PlacedFile();

    [[nodiscard]] std::FILE* file() const { return file_; }
    /// Closes the file and moves it into place, unless there was an error before. Returns an errno value; 0: no error.
    [[nodiscard]] int commit(int error);

private:
    PlacedFile(std::FILE* file, TemporaryName temporary, std::filesystem::path place)
        : file_(file), temporary_(std::move(temporary)), place_(std::move(place)) {}

    std::FILE* file_;
    Placing how_;
    bool unnamed_ = false;         // the file has no name yet
    TemporaryName temporary_;      // empty if there is none
    std::filesystem::path place_;  // empty: the file is in place already
};

/// A file that keeps its first error: `commit` returns it. Without `commit` no file is left.
class FileSink final : public ByteSink {
public:
    /// As `PlacedFile::open`.
    static Result<std::unique_ptr<FileSink>> open(const std::string& path, const std::vector<std::string>& inputs);
    FileSink(const FileSink&) = delete;
    FileSink& operator=(const FileSink&) = delete;
    ~FileSink() override = default;

    void write(Bytes bytes) override;
    /// Moves the file into place. `unreadable`: something could not be written.
    [[nodiscard]] Status commit();

private:
    FileSink(std::unique_ptr<PlacedFile> file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

    std::unique_ptr<PlacedFile> file_;
    std::string path_;
    int error_ = 0;
};

/// A folder that will be moved into place: it is written under a `TemporaryName`.
class PlacedFolder {
public:
    /// `unreadable`: the folder cannot be created; `usage`: `path` is a file.
    static Result<std::unique_ptr<PlacedFolder>> open(const std::string& path);
    PlacedFolder(const PlacedFolder&) = delete;
    PlacedFolder& operator=(const PlacedFolder&) = delete;
    ~PlacedFolder();

    /// The folder to write files to.
    [[nodiscard]] const std::filesystem::path& folder() const { return temporary_.path(); }
    /// Changes an error about a file in `folder()` to use the file's final name.
    [[nodiscard]] Error as_placed(Error error) const;
    /// Moves everything into place. An existing folder is replaced in one step if `of_earlier` accepts all of its files
    /// as output of an earlier run. Otherwise the files are moved one by one, and the file called `last` comes last and
    /// is absent meanwhile. `unreadable`: something could not be moved.
    [[nodiscard]] Status commit(const std::string& last,
                                const std::function<bool(const std::filesystem::path& name)>& of_earlier);
    /// Moves everything into place if nothing or an empty folder is there. `usage`: something is there.
    [[nodiscard]] Status commit_new();

private:
    PlacedFolder(TemporaryName temporary, std::filesystem::path place, std::string given)
        : temporary_(std::move(temporary)), place_(std::move(place)), given_(std::move(given)) {}

    TemporaryName temporary_;
    std::filesystem::path place_;
    std::string given_;  // the place in the caller's words
};

}  // namespace waymark::capture
