/// Where the file lies that was mapped when a program ran, and all names it has.
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

/// Where to look for files.
struct FileSearch {
    /// Root of a copy of the recorded machine's files; empty: the files of this machine. Files lie in it at their
    /// paths, or by their names alone.
    std::filesystem::path symfs{};
    /// Folders as ~/.debug and /usr/lib/debug, which are looked into besides.
    std::vector<std::filesystem::path> debug_folders{};
    /// Files of folders with symbols, such as those that Android's build leaves, by name; null: there are none.
    using ByName = std::multimap<std::string, std::filesystem::path>;
    std::shared_ptr<const ByName> symbol_files{};

    /// Takes in all files below the folders, which need not lie at any path. Errors: `unreadable`: a folder cannot be
    /// read; `unsupported`: there are more than a million of files.
    [[nodiscard]] Status add_symbol_folders(const std::vector<std::filesystem::path>& folders);

    /// Folders for DebugInfo::open: the folders of the options, then the folder of `symfs`.
    [[nodiscard]] std::vector<std::filesystem::path> debug_path() const;
    /// All folders that hold files by build ID, the first to be looked into first.
    [[nodiscard]] std::vector<std::filesystem::path> build_id_folders() const;
    /// Places of a file, the best first: in the folders with symbols where a build ID identifies the one meant, by its
    /// recorded name, by its build ID (empty: none), and in the folders with symbols without one.
    [[nodiscard]] std::vector<std::filesystem::path> places(std::string_view file,
                                                            const std::vector<std::uint8_t>& build_id) const;
};

/// Where a file of the recorded machine lies in a folder with a copy of its files: never outside, however often its
/// path goes up.
[[nodiscard]] std::filesystem::path place_below(const std::filesystem::path& folder,
                                                const std::filesystem::path& recorded);

/// An ELF file whose names and lines hold at its addresses plus `load_bias`.
struct LoadedFile {
    std::string path;
    std::uint64_t load_bias{};
    std::vector<std::filesystem::path> debug_folders{};  ///< where its separate debug file may be
    std::string name{};                                  ///< as it was mapped; empty: as `path`
};

struct FoundFile {
    std::filesystem::path path;
    DebugInfo info;
};

/// The first of these places that is an ELF file of this build; every build serves where `build_id` or the file has
/// none. Errors: `not_found`: no file is there (the message is empty); `bad_format`: only files that are none, or of
/// another build, with the reason.
[[nodiscard]] Result<FoundFile> open_first(const std::vector<std::filesystem::path>& places,
                                           const std::vector<std::uint8_t>& build_id, const FileSearch& search);

/// The file that was mapped under this name. If and only if the environment variable DEBUGINFOD_URLS names servers,
/// they are asked for a build that is nowhere else; not again once they were silent for DEBUGINFOD_TIMEOUT seconds, or
/// ten. Errors: as `open_first`, with a message that says where was looked.
[[nodiscard]] Result<FoundFile> find_file(std::string_view file, const std::vector<std::uint8_t>& build_id,
                                          const FileSearch& search);

/// Takes all symbols there are of a file: .symtab, .dynsym, .gnu_debugdata, entries of the procedure linkage table, and
/// symbols of a separate debug file. Returns how many. Errors: as `Symbols::add_elf`.
[[nodiscard]] Result<std::size_t> add_all_symbols(Symbols& symbols, const std::filesystem::path& path, DebugInfo& info,
                                                  std::uint64_t load_bias);

/// Whether the symbols of all functions of a file are known: it, or its debug file, has a symbol table. A stripped file
/// has only names of what it exports. False, too, of a file that cannot be read.
[[nodiscard]] bool has_symbol_table(const std::filesystem::path& path, DebugInfo& info);

}  // namespace waymark::image
