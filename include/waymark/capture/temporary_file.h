/// Files without a name, for what must be read at any place and comes as a stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "waymark/capture/byte_file.h"
#include "waymark/capture/byte_stream.h"
#include "waymark/core/result.h"

namespace waymark::capture {

/// A new file without a name in the folder that TMPDIR names (/tmp without it), for reading and writing: its
/// descriptor, which the caller closes. `unreadable`: it cannot be made; `what` it is for begins the message.
[[nodiscard]] Result<int> open_temporary_file(const std::string& what);

/// What a compressed file may unpack to: bytes, whatever its size, and times its size. More is no capture.
struct UnpackBounds {
    std::uint64_t bytes = std::uint64_t{1} << 30, times = 1024;
};

/// The bytes of a stream in such a file. A damaged stream gives what comes before the damage; `damage` (if given) then
/// has the error. Errors: `unreadable`: the file cannot be made or written; `unsupported`: a compressed stream is
/// beyond both bounds.
[[nodiscard]] Result<std::unique_ptr<ByteFile>> spooled(ByteStream& stream, const std::string& name,
                                                        std::vector<Error>* damage = nullptr, UnpackBounds most = {});

}  // namespace waymark::capture
