/// What an ELF file and its debug information say of an address: source lines, and where a file offset is loaded.
/// Separate debug files are found by build ID and by .gnu_debuglink; debuginfod servers are asked if and only if the
/// environment variable DEBUGINFOD_URLS names some.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::image {

struct SourceLine {
    std::string file;
    std::uint32_t line{};
    friend bool operator==(const SourceLine&, const SourceLine&) = default;
};

/// One file, of any machine. Not for several threads at once.
class DebugInfo {
public:
    /// `debug_folders` are searched before /usr/lib/debug, and hold folders as that one does (.build-id/…). Errors:
    /// `not_found`, `bad_format`: no ELF file.
    [[nodiscard]] static Result<DebugInfo> open(const std::filesystem::path& path,
                                                const std::vector<std::filesystem::path>& debug_folders = {});
    ~DebugInfo();
    DebugInfo(DebugInfo&&) noexcept;
    DebugInfo& operator=(DebugInfo&&) noexcept;

    /// The address, without a load bias, of a byte of the file; nothing if no segment holds it.
    [[nodiscard]] std::optional<Address> address_of(std::uint64_t file_offset) const;
    /// A segment holds this address (without a load bias).
    [[nodiscard]] bool holds(Address address) const;
    /// The line an address (without a load bias) was compiled from. Reads debug information when first called.
    [[nodiscard]] std::optional<SourceLine> line(Address address);
    /// There is debug information. Looks for it when first called.
    [[nodiscard]] bool has_lines();
    /// The separate file it was found in; empty: in the file itself, or nowhere. Looks for it when first called.
    [[nodiscard]] std::filesystem::path debug_file();
    /// Empty if the file has none.
    [[nodiscard]] const std::vector<std::uint8_t>& build_id() const;

private:
    struct State;
    explicit DebugInfo(std::unique_ptr<State> state);
    std::unique_ptr<State> state_;
};

}  // namespace waymark::image
