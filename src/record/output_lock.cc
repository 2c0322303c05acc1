#include "waymark/record/output_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "waymark/core/file_error.h"
#include "waymark/record/files.h"

namespace waymark::record {

Result<OutputLock> OutputLock::of_folder(const std::filesystem::path& folder) {
    const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return cannot("open", folder);
    OutputLock lock(file);
    WM_RETURN_IF_ERROR(take(file, folder));
    return lock;
}

Result<OutputLock> OutputLock::of_new_folder(const std::filesystem::path& folder, const std::filesystem::path& path) {
    for (;;) {
        if (mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) return cannot_create(path, errno);
        const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (file < 0 && errno == ENOENT) continue;
        if (file < 0) return cannot_create(path, errno);
        OutputLock lock(file);
        WM_RETURN_IF_ERROR(take(file, path));
        // The previous holder may have removed the file.
        struct stat locked {
        }, there{};
        if (fstat(file, &locked) == 0 && stat(folder.c_str(), &there) == 0 && locked.st_dev == there.st_dev &&
            locked.st_ino == there.st_ino)
            return lock;
    }
}

Status OutputLock::take(int file, const std::filesystem::path& path) {
    int done = -1;
    do done = flock(file, LOCK_EX | LOCK_NB);
    while (done != 0 && errno == EINTR);
    if (done == 0 || errno != EWOULDBLOCK) return Nothing{};
    return Error{Errc::usage, fmt::format("{}: another 'waymark record' is writing there; wait until it has ended, or "
                                          "name another place",
                                          path.string())};
}

OutputLock::~OutputLock() {
    if (file_ >= 0) close(file_);
}

}  // namespace waymark::record
