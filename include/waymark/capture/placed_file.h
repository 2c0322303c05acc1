/// Files that are there whole or not at all: written without a name or beside their place, and moved there at the end.
/// A process that writes some removes unfinished ones when SIGINT, SIGTERM or SIGHUP ends it.
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

/// Whether writing to `path` would lose one of the inputs (captures, images), or a file of a capture folder, also where
/// `path` is a link to it; then the error that says so.
[[nodiscard]] std::optional<Error> would_replace(const std::string& path, const std::vector<std::string>& inputs);

/// A name beside the place of an output, for a file or folder that is not whole yet: `PLACE.PID-N.part`. What has the
/// name is removed by SIGINT, SIGTERM and SIGHUP. Nothing can be done about SIGKILL, so the next one for the same place
/// removes what earlier processes left.
class TemporaryName {
public:
    /// What to do about files and folders that killed processes left for the same place: finding them lists the folder.
    enum class Leftovers { remove, leave };

    TemporaryName() = default;
    /// A name that nobody has; the file or folder is for others to make.
    explicit TemporaryName(const std::filesystem::path& place, Leftovers leftovers = Leftovers::remove);
    TemporaryName(TemporaryName&& other) noexcept;
    TemporaryName& operator=(TemporaryName&& other) noexcept;
    ~TemporaryName();

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }
    [[nodiscard]] bool empty() const { return path_.empty(); }
    /// Shows other processes that the file or folder of this name, which is there now, is in use.
    void lock();
    /// Nothing has the name any more, or it is no temporary one.
    void release();
    /// Removes what killed processes left for `place`.
    static void remove_leftovers(const std::filesystem::path& place);

private:
    std::filesystem::path path_;
    int lock_ = -1, slot_ = -1;
};

/// How a file is placed.
struct Placing {
    TemporaryName::Leftovers leftovers = TemporaryName::Leftovers::remove;
    bool synced = false;  ///< is on the disk before it is at its place, so that a crash of the machine takes nothing
};

/// A file on its way to its place. Where the file system can, it has no name until `commit`, so that nothing is left of
/// it even where the program is killed; elsewhere it has a `TemporaryName`.
class PlacedFile {
public:
    /// `-` is standard output; that, and what is no regular file, is written as it comes. `usage`: the path is that of
    /// one of the inputs, or of a file in a capture folder; `unreadable`: the file cannot be created.
    static Result<std::unique_ptr<PlacedFile>> open(const std::string& path, const std::vector<std::string>& inputs,
                                                    Placing how = {});
    PlacedFile(const PlacedFile&) = delete;
    PlacedFile& operator=(const PlacedFile&) = delete;
    /// Without `commit` nothing is left, and what was at the place stays.
    ~PlacedFile();

    [[nodiscard]] std::FILE* file() const { return file_; }
    /// Closes the file and moves it to its place, unless there was an error before. An error of errno; 0: none.
    [[nodiscard]] int commit(int error);

private:
    PlacedFile(std::FILE* file, TemporaryName temporary, std::filesystem::path place)
        : file_(file), temporary_(std::move(temporary)), place_(std::move(place)) {}

    std::FILE* file_;
    Placing how_;
    bool unnamed_ = false;         // not yet in any folder
    TemporaryName temporary_;      // empty: there is none
    std::filesystem::path place_;  // empty: it is there already
};

/// The first error sticks, and `commit` returns it. Without `commit` no file is left.
class FileSink final : public ByteSink {
public:
    /// As `PlacedFile::open`.
    static Result<std::unique_ptr<FileSink>> open(const std::string& path, const std::vector<std::string>& inputs);
    FileSink(const FileSink&) = delete;
    FileSink& operator=(const FileSink&) = delete;
    ~FileSink() override = default;

    void write(Bytes bytes) override;
    /// Moves the file to its place. `unreadable`: something could not be written.
    [[nodiscard]] Status commit();

private:
    FileSink(std::unique_ptr<PlacedFile> file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}

    std::unique_ptr<PlacedFile> file_;
    std::string path_;
    int error_ = 0;
};

/// A folder of files on its way to its place: written beside it, in a folder with a `TemporaryName`.
class PlacedFolder {
public:
    /// `unreadable`: the folder cannot be made; `usage`: `path` is a file.
    static Result<std::unique_ptr<PlacedFolder>> open(const std::string& path);
    PlacedFolder(const PlacedFolder&) = delete;
    PlacedFolder& operator=(const PlacedFolder&) = delete;
    ~PlacedFolder();

    /// Where files go meanwhile.
    [[nodiscard]] const std::filesystem::path& folder() const { return temporary_.path(); }
    /// An error that names a file of `folder()`, with the name it was to have.
    [[nodiscard]] Error as_placed(Error error) const;
    /// Puts all into place. What is at the place is replaced in one step where `of_earlier` says of all it holds that
    /// it comes from an earlier run; else the files move there one by one, the one called `last` in the end, which is
    /// not there meanwhile. `unreadable`: something could not be moved.
    [[nodiscard]] Status commit(const std::string& last,
                                const std::function<bool(const std::filesystem::path& name)>& of_earlier);
    /// Puts all into place, where nothing or an empty folder is. `usage`: something is there.
    [[nodiscard]] Status commit_new();

private:
    PlacedFolder(TemporaryName temporary, std::filesystem::path place, std::string given)
        : temporary_(std::move(temporary)), place_(std::move(place)), given_(std::move(given)) {}

    TemporaryName temporary_;
    std::filesystem::path place_;
    std::string given_;  // as the caller named the place
};

}  // namespace waymark::capture
