#include "waymark/record/output_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>

#include "waymark/record/files.h"

namespace waymark::record {

Result<OutputLock> OutputLock::of_folder(const std::filesystem::path& folder) {
    const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file < 0) return cannot("open", folder);
    OutputLock lock(file);
    WM_RETURN_IF_ERROR(of_file(file, folder));
    return lock;
}

Status OutputLock::of_file(int file, const std::filesystem::path& path) {
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
