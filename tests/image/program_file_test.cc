#include "waymark/image/program_file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/image/debuginfod.h"

namespace waymark::image {
namespace {

// A recorded path comes from a foreign file: it never leads outside the given folder.
TEST(FileSearch, LooksBelowTheFolderAlone) {
    EXPECT_EQ(place_below("/copy", "/usr/lib/libc.so.6"), "/copy/usr/lib/libc.so.6");
    EXPECT_EQ(place_below("/copy", "bin/a"), "/copy/bin/a");
    EXPECT_EQ(place_below("/copy", "/usr/../bin/./a"), "/copy/bin/a");
    EXPECT_EQ(place_below("/copy", "/../../etc/passwd"), "/copy/etc/passwd");
    EXPECT_EQ(place_below("/copy", "../../etc/passwd"), "/copy/etc/passwd");
    FileSearch search;
    search.symfs = "/copy";
    for (const char* file : {"/../../etc/passwd", "..", "/..", "/a/..", "/../x.apk!/../../../lib/a.so"})
        for (const auto& place : search.places(file, {}))
            EXPECT_TRUE(place.lexically_normal().string().starts_with("/copy")) << file << ": " << place;
}

std::string listed(const std::vector<std::filesystem::path>& paths) {
    std::string out;
    for (const auto& path : paths) out += path.string() + "\n";
    return out;
}

TEST(FileSearch, PlacesAreOrderedByHowWellTheyFit) {
    const char* const home = std::getenv("HOME");
    const std::string of_home = home == nullptr ? "" : std::string(home) + "/.debug";
    const auto by_id = [&](const std::string& folder, const std::string& last = "elf") {
        return folder + "/.build-id/ab/cdef/" + last + "\n" + folder + "/.build-id/ab/cdef.debug\n";
    };
    const std::string of_user = of_home.empty() ? "" : by_id(of_home);
    FileSearch search;
    EXPECT_EQ(listed(search.places("/bin/a", {})), "/bin/a\n");
    EXPECT_EQ(listed(search.places("/bin/a", {0xab})), "/bin/a\n") << "an ID of a byte names no file";
    EXPECT_EQ(listed(search.places("/bin/a", {0xab, 0xcd, 0xef})), "/bin/a\n" + of_user + by_id("/usr/lib/debug"));
    search.debug_folders = {"/d1", "/d2"};
    search.symfs = "/copy";
    EXPECT_EQ(listed(search.debug_path()), "/d1\n/d2\n/copy/usr/lib/debug\n");
    EXPECT_EQ(listed(search.places("/bin/a", {})), "/copy/bin/a\n/copy/a\n");
    EXPECT_EQ(listed(search.places("/bin/a", {0xab, 0xcd, 0xef})), "/copy/bin/a\n/copy/a\n" + by_id("/d1") +
                                                                       by_id("/d2") + by_id("/copy/usr/lib/debug") +
                                                                       of_user + by_id("/usr/lib/debug"));
    EXPECT_EQ(listed(search.places("/app/x.apk!/lib/a.so", {})),
              "/copy/app/x.apk!/lib/a.so\n/copy/x.apk!/lib/a.so\n/copy/a.so\n");
    // Files with symbols come first if a build ID identifies them, and last otherwise.
    search = {};
    search.symbol_files =
        std::make_shared<const FileSearch::ByName>(FileSearch::ByName{{"a", "/s/a"}, {"a", "/s/2/a"}, {"b", "/s/b"}});
    EXPECT_EQ(listed(search.places("/bin/a", {})), "/bin/a\n/s/a\n/s/2/a\n");
    EXPECT_TRUE(listed(search.places("/bin/a", {0xab, 0xcd, 0xef})).starts_with("/s/a\n/s/2/a\n/bin/a\n"));
}

TEST(FileSearch, FilesBelowFoldersWithSymbolsAreFoundByName) {
    const TemporaryFolder folder;
    folder.write("one/a", "1");
    folder.write("one/deep/er/b", "2");
    folder.write("two/a", "3");
    FileSearch search;
    ASSERT_TRUE(search.add_symbol_folders({}).has_value());
    EXPECT_EQ(search.symbol_files, nullptr);
    ASSERT_TRUE(search.add_symbol_folders({folder.path() / "one", folder.path() / "two"}).has_value());
    EXPECT_EQ(search.symbol_files->size(), 3U);
    EXPECT_EQ(search.symbol_files->count("a"), 2U);
    EXPECT_EQ(search.symbol_files->find("b")->second, folder.path() / "one/deep/er/b");
    const auto none = search.add_symbol_folders({folder.path() / "none"});
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, Errc::unreadable);
    EXPECT_EQ(none.error().message, (folder.path() / "none").string() + ": cannot be read: No such file or directory");
}

/// A program whose build ID has these bytes; empty: it has none.
std::vector<std::uint8_t> built(const std::vector<std::uint8_t>& id) {
    TinyElf elf;
    elf.segments = {{PT_LOAD, 0x8000, std::vector<std::uint8_t>(16), 0, 0}};
    if (!id.empty()) {
        std::vector<std::uint8_t> note{4,   0,   0,   0, static_cast<std::uint8_t>(id.size()), 0, 0, 0, 3, 0, 0, 0,
                                       'G', 'N', 'U', 0};
        note.insert(note.end(), id.begin(), id.end());
        elf.sections = {{".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x9000, note, 4, 0}};
        elf.segments.push_back({PT_NOTE, 0x9000, note, 0, 0});
    }
    return elf.build();
}

TEST(FileSearch, TheFirstFileOfTheBuildIsOpened) {
    const TemporaryFolder folder;
    const std::filesystem::path none = folder.path() / "none", text = folder.write("text", "text"),
                                right = folder.write("right", built({1, 2, 3, 4})),
                                other = folder.write("other", built({1, 2, 3, 5})),
                                nameless = folder.write("nameless", built({}));
    const auto opened_of = [&](const std::vector<std::filesystem::path>& places, std::vector<std::uint8_t> id) {
        const auto found = open_first(places, id, {});
        return found ? found->path.filename().string() : found.error().message;
    };
    EXPECT_EQ(opened_of({none, folder.path(), text, right, other}, {}), "right");
    EXPECT_EQ(opened_of({other, right}, {1, 2, 3, 4}), "right");
    EXPECT_EQ(opened_of({other, right}, {1, 2, 3, 4, 0, 0}), "right") << "zeros of a record";
    EXPECT_EQ(opened_of({other, right}, {0, 1, 2, 3, 4}), right.string() +
                                                              " is another build: its build ID is "
                                                              "01020304, recorded was 0001020304");
    EXPECT_EQ(opened_of({nameless, right}, {1, 2, 3, 4}), "nameless") << "a file without an ID may be any build";
    EXPECT_EQ(opened_of({none}, {}), "");
    EXPECT_EQ(open_first({none}, {}, {}).error().code, Errc::not_found);
    EXPECT_EQ(open_first({other}, {1, 2, 3, 4}, {}).error().code, Errc::bad_format);
    EXPECT_EQ(open_first({text, none}, {}, {}).error().code, Errc::bad_format);
}

TEST(FileSearch, WhatIsNotFoundIsSaid) {
    FileSearch search;
    const auto said = [&](const std::vector<std::uint8_t>& id) {
        const auto found = find_file("/nonexistent/prog", id, search);
        EXPECT_EQ(found.error().code, Errc::not_found);
        return found.error().message;
    };
    EXPECT_EQ(said({}), "/nonexistent/prog was not found on this machine");
    EXPECT_EQ(said({0xab, 0xcd}), "/nonexistent/prog was not found on this machine, nor a file with its build ID abcd");
    search.symfs = "/nonexistent/copy";
    EXPECT_EQ(said({}), "/nonexistent/prog was not found in /nonexistent/copy");
    EXPECT_EQ(silent_servers(), "");
}

TEST(FileSearch, ASymbolTableIsThatOfTheFile) {
    const TemporaryFolder folder;
    TinyElf elf;
    elf.segments = {{PT_LOAD, 0x8000, std::vector<std::uint8_t>(16), 0, 0}};
    elf.symbols = {{"f", 0x8000, 4, STT_FUNC, STB_GLOBAL, SHN_ABS},
                   {"g", 0x8004, 4, STT_FUNC, STB_GLOBAL, TinyElf::elsewhere}};
    const auto counts = [&](const TinyElf& made) {
        const auto path = folder.write("file", made.build());
        auto info = DebugInfo::open(path);
        EXPECT_TRUE(info.has_value());
        Symbols symbols;
        const auto count = add_all_symbols(symbols, path, *info, 0x1000);
        EXPECT_EQ(symbols.address_of("g").has_value(), !made.symbols.empty());
        return std::to_string(count.value()) + (has_symbol_table(path, *info) ? " all" : " exports");
    };
    EXPECT_EQ(counts(elf), "1 all");
    elf.symbol_table = SHT_DYNSYM;
    EXPECT_EQ(counts(elf), "1 exports");
    elf.symbols.clear();
    EXPECT_EQ(counts(elf), "0 exports");
}

}  // namespace
}  // namespace waymark::image
