/// The files of a capture's folder, on disk.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "waymark/capture/byte_stream.h"
#include "waymark/capture/placed_file.h"
#include "waymark/capture/snapshot.h"
#include "waymark/core/file_error.h"

namespace waymark::capture {

/// Writes a text file atomically. Error `unreadable`, with the operating system's reason, if it cannot be written.
[[nodiscard]] inline Status save_text(const std::filesystem::path& path, std::string_view text) {
    WM_ASSIGN_OR_RETURN(const auto file, FileSink::open(path.string(), {}));
    file->write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
    return file->commit();
}

class DiskAccess final : public FileAccess {
public:
    /// `too_long`: the text of the error for a file beyond its limit, with what to name instead. Must outlive this
    /// object.
    explicit DiskAccess(std::string_view too_long) : too_long_(too_long) {}

    [[nodiscard]] Result<std::string> text(const std::filesystem::path& path, std::uint64_t limit) const override {
        auto stream = open_bytes(path);
        if (!stream) return std::move(stream.error());
        auto bytes = read_all(**stream, limit);
        if (bytes) return std::string(bytes->begin(), bytes->end());
        if (bytes.error().code != Errc::unsupported) return std::move(bytes.error());
        return Error{Errc::unsupported,
                     fmt::format("{}: is longer than {} bytes, so it is {}", path.string(), limit, too_long_),
                     Offset{limit}};
    }

    [[nodiscard]] Result<std::uint64_t> size(const std::filesystem::path& path) const override {
        namespace fs = std::filesystem;
        std::error_code failure;
        const fs::file_status status = fs::status(path, failure);
        if (status.type() == fs::file_type::not_found) return Error{Errc::not_found, "there is no such file"};
        if (failure) return Error{Errc::unreadable, failure.message()};
        if (status.type() == fs::file_type::directory) return Error{Errc::unreadable, "it is a folder"};
        const std::uint64_t bytes = fs::file_size(path, failure);
        if (failure) return Error{Errc::unreadable, failure.message()};
        return bytes;
    }

private:
    std::string_view too_long_;
};

}  // namespace waymark::capture
