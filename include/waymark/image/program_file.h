/// Finds the file that was mapped when a program ran, and all its names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/symbols.h"

namespace waymark::image {

/// Where to search for files.
struct FileSearch {
    /// Root of a copy of the recorded machine's files; empty: the files of this machine. It contains files at their
    /// paths, or by their names alone.
    std::filesystem::path symfs{};
    /// Further folders like ~/.debug and /usr/lib/debug.
    std::vector<std::filesystem::path> debug_folders{};
    /// Files in folders with symbols, such as those from Android's build, by name; null: there are none.
    using ByName = std::multimap<std::string, std::filesystem::path>;
    std::shared_ptr<const ByName> symbol_files{};

    /// Adds all files below the folders, at any path. Errors: `unreadable`: a folder cannot be read; `unsupported`:
    /// there are more than a million files.
    [[nodiscard]] Status add_symbol_folders(const std::vector<std::filesystem::path>& folders);

    /// Folders for DebugInfo::open: the folders of the options, then the one in `symfs`.
    [[nodiscard]] std::vector<std::filesystem::path> debug_path() const;
    /// All folders with files by build ID, in search order.
    [[nodiscard]] std::vector<std::filesystem::path> build_id_folders() const;
    /// Possible places of a file, the best first: in the folders with symbols if a build ID identifies it; at its
    /// recorded name; by its build ID, unless it is empty; otherwise in the folders with symbols.
    [[nodiscard]] std::vector<std::filesystem::path> places(std::string_view file,
                                                            const std::vector<std::uint8_t>& build_id) const;
};

/// The place of a recorded file in a folder with a copy of the machine's files. It is never outside of the folder, even
/// if the path contains `..`.
[[nodiscard]] std::filesystem::path place_below(const std::filesystem::path& folder,
                                                const std::filesystem::path& recorded);

/// An ELF file whose names and lines apply at its addresses plus `load_bias`.
struct LoadedFile {
    std::string path;
    std::uint64_t load_bias{};
    std::vector<std::filesystem::path> debug_folders{};  ///< where its separate debug file may be
    std::string name{};                                  ///< path when it was mapped; empty: same as `path`
};

struct FoundFile {
    std::filesystem::path path;
    DebugInfo info;
};

/// The first of these places that is an ELF file of this build; any build is accepted if `build_id` is empty or the
/// file has none. Errors: `not_found`: there is no file (the message is empty); `bad_format`: only files that are not
/// ELF or belong to another build, with the reason.
[[nodiscard]] Result<FoundFile> open_first(const std::vector<std::filesystem::path>& places,
                                           const std::vector<std::uint8_t>& build_id, const FileSearch& search);

/// The file that was mapped under this name. If the environment variable DEBUGINFOD_URLS names servers, they are asked
/// for a build that is found nowhere else. They are not asked again after they were silent for DEBUGINFOD_TIMEOUT
/// seconds, or ten. Errors: as `open_first`, with a message that lists the places searched.
[[nodiscard]] Result<FoundFile> find_file(std::string_view file, const std::vector<std::uint8_t>& build_id,
                                          const FileSearch& search);

/// Adds all symbols of a file: .symtab, .dynsym, .gnu_debugdata, entries of the procedure linkage table, and symbols of
/// a separate debug file. Returns their number. Errors: as `Symbols::add_elf`.
[[nodiscard]] Result<std::size_t> add_all_symbols(Symbols& symbols, const std::filesystem::path& path, DebugInfo& info,
                                                  std::uint64_t load_bias);

/// Whether the symbols of all functions of a file are known, because the file or its debug file has a symbol table. A
/// stripped file has only the names of its exports. False also for a file that cannot be read.
[[nodiscard]] bool has_symbol_table(const std::filesystem::path& path, DebugInfo& info);

}  // namespace waymark::image
