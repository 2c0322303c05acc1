/// Unnamed files, for streams that need random access.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "waymark/capture/byte_file.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/core/result.h"

namespace waymark::capture {

/// Creates an unnamed file in the folder that TMPDIR names (default /tmp), for reading and writing, and returns its
/// descriptor, which the caller closes. `unreadable`: it cannot be created; the message begins with `what`, its
/// purpose.
[[nodiscard]] Result<int> open_temporary_file(const std::string& what);

/// Limits for unpacking a compressed file: a number of bytes, and a multiple of its size. A real capture exceeds at
/// most one of them.
struct UnpackBounds {
    std::uint64_t bytes = std::uint64_t{1} << 30, times = 1024;
};

/// The bytes of a stream in such a file. A damaged stream gives the bytes before the damage; `damage` (if given) then
/// has the error. Errors: `unreadable`: the file cannot be created or written; `unsupported`: a compressed stream
/// exceeds both limits.
[[nodiscard]] Result<std::unique_ptr<ByteFile>> spooled(ByteStream& stream, const std::string& name,
                                                        std::vector<Error>* damage = nullptr, UnpackBounds most = {});

}  // namespace waymark::capture
