/// Source lines of this test program itself.
#include "waymark/image/debug_info.h"

#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "support/temporary_folder.h"
#include "support/tiny_dwarf.h"
#include "support/tiny_elf.h"
#include "waymark/image/program_file.h"

namespace waymark::image {
namespace {

[[gnu::noinline]] int here(int x) { return x + __LINE__; }
constexpr std::uint32_t line_of_here = __LINE__ - 1;

/// Load address of this program, less the address in its file.
std::uint64_t load_bias() {
    std::uint64_t bias = 0;
    ::dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* out) {
            *static_cast<std::uint64_t*>(out) = info->dlpi_addr;
            return 1;  // the first is the program
        },
        &bias);
    return bias;
}

TEST(DebugInfo, LinesOfThisProgram) {
    auto info = DebugInfo::open("/proc/self/exe");
    if (!info) info = DebugInfo::open(std::filesystem::read_symlink("/proc/self/exe"));
    ASSERT_TRUE(info) << info.error().message;
    ASSERT_TRUE(info->has_lines()) << "this source is compiled with -g1";
    int (*volatile function)(int) = here;
    const auto line = info->line({reinterpret_cast<std::uint64_t>(function) - load_bias()});
    ASSERT_TRUE(line);
    EXPECT_TRUE(line->file.ends_with("debug_info_test.cc")) << line->file;
    EXPECT_EQ(line->line, line_of_here);
}

/// A file with one segment of 16 bytes, at offset 64, for address 0x400000.
TinyElf one_segment() {
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    elf.segments.push_back({PT_LOAD, 0x400000, std::vector<std::uint8_t>(16), 0, 0});
    return elf;
}

TEST(DebugInfo, OffsetsBecomeAddresses) {
    const auto bytes = one_segment().build();
    const TemporaryFolder folder;
    auto info = DebugInfo::open(folder.write("a.elf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
    ASSERT_TRUE(info) << info.error().message;
    EXPECT_EQ(info->address_of(64), Address{0x400000});
    EXPECT_EQ(info->address_of(79), Address{0x40000f});
    EXPECT_FALSE(info->address_of(80));
    EXPECT_FALSE(info->address_of(63));
    EXPECT_FALSE(info->has_lines());
    EXPECT_FALSE(info->line({0x400000}));
    EXPECT_TRUE(info->build_id().empty());
}

TEST(DebugInfo, AMappingShowsTheLoadBias) {
    TinyElf elf = one_segment();
    const auto bytes = elf.build();
    const TemporaryFolder folder;
    const auto path = folder.write("a.elf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    const auto info = DebugInfo::open(path);
    ASSERT_TRUE(info) << info.error().message;
    // The segment is at offset 64 of the file.
    EXPECT_EQ(info->load_bias({0x7f0040}, 64, 16), 0x3f0040U);
    EXPECT_EQ(info->load_bias({0x7f0000}, 0, 0x1000), 0x3f0040U) << "a mapping of the whole file";
    EXPECT_EQ(info->load_bias({0x7f0046}, 70, 4), 0x3f0040U) << "a mapping of its middle";
    EXPECT_EQ(info->load_bias({0x400000}, 79, 1), std::uint64_t{0} - 15);
    EXPECT_EQ(info->load_bias({0x7f0000}, 0, 64), std::nullopt);
    EXPECT_EQ(info->load_bias({0x7f0000}, 80, 64), std::nullopt);

    elf.type = ET_REL;
    elf.segments.clear();
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, std::vector<std::uint8_t>(16), 4, 0}};
    const auto module = elf.build();
    const auto loaded =
        DebugInfo::open(folder.write("m.ko", {reinterpret_cast<const char*>(module.data()), module.size()}));
    ASSERT_TRUE(loaded) << loaded.error().message;
    EXPECT_EQ(loaded->load_bias({0xffff0000}, 0x1000, 16), 0xfffef000U);
}

TEST(DebugInfo, LinesOfAFileWithoutAnIndexOfUnits) {
    for (const bool relocatable : {false, true}) {
        TinyElf elf;
        elf.is_64 = true;
        elf.machine = EM_AARCH64;
        const std::uint64_t begin = relocatable ? 0 : 0x400000;
        if (relocatable)
            elf.type = ET_REL;
        else
            elf.segments.push_back({PT_LOAD, begin, std::vector<std::uint8_t>(0x40), 0, 0});
        elf.sections = {
            {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, begin, std::vector<std::uint8_t>(0x40), 4, 0}};
        TinyDwarf lines(true, 4);
        lines.add(begin, 16);
        lines.add(begin + 0x20, 16);
        lines.write(elf);
        elf.symbols = {{"f", begin, 16, STT_FUNC, STB_GLOBAL, 1}};
        SCOPED_TRACE(relocatable);
        const auto bytes = elf.build();
        const TemporaryFolder folder;
        auto info = DebugInfo::open(folder.write("a.elf", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
        ASSERT_TRUE(info) << info.error().message;
        EXPECT_TRUE(info->has_lines());
        EXPECT_TRUE(info->debug_file().empty());
        for (std::uint64_t at = begin; at < begin + 0x40; ++at) {
            const std::uint32_t expected = lines.line_of(at);
            const auto line = info->line({at});
            EXPECT_EQ(line ? line->line : 0, expected) << at - begin;
            const auto statements = info->statements({at});
            EXPECT_EQ(statements.size(), expected != 0 && at % 4 == 0 ? 1U : 0U) << at - begin;
            if (!statements.empty()) {
                EXPECT_EQ(statements[0].line, expected);
                EXPECT_EQ(statements[0].file, TinyDwarf::source);
            }
            EXPECT_TRUE(info->inlined({at}).calls.empty());
            EXPECT_TRUE(info->inlined({at}).holds({at}));
            EXPECT_FALSE(info->function({at}));
        }
    }
}

TEST(FileSearch, TheCacheHasTheVdsoUnderItsOwnName) {
    FileSearch search;
    search.debug_folders = {"/cache"};
    const auto has = [&](std::string_view file, const char* place) {
        const auto places = search.places(file, {0xab, 0xcd, 0xef});
        return std::find(places.begin(), places.end(), std::filesystem::path(place)) != places.end();
    };
    EXPECT_TRUE(has("[vdso]", "/cache/.build-id/ab/cdef/vdso"));
    EXPECT_FALSE(has("[vdso]", "/cache/.build-id/ab/cdef/elf"));
    EXPECT_TRUE(has("/lib/libc.so.6", "/cache/.build-id/ab/cdef/elf"));
}

// elfutils places the sections in file order; in memory, sections that start a module come last.
TEST(DebugInfo, LinesOfSectionsThatLieElsewhereInMemory) {
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    elf.type = ET_REL;
    for (const char* const name : {".init.text", ".text"})
        elf.sections.push_back(
            {name, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, std::vector<std::uint8_t>(0x20), 4, 0});
    TinyDwarf lines(true, 4);
    lines.add(0, 0x20);  // of the first section as elfutils places it
    lines.write(elf);
    elf.symbols = {{"f", 0, 16, STT_FUNC, STB_GLOBAL, 1}};
    const TemporaryFolder folder;
    auto info = DebugInfo::open(folder.write("m.ko", elf.build()));
    ASSERT_TRUE(info) << info.error().message;
    const auto line = [&](std::uint64_t address) {
        const auto found = info->line({address});
        return found ? found->line : 0;
    };
    // .text is at 0 in memory, and .init.text follows it.
    EXPECT_EQ(line(0x20), 1U);
    EXPECT_EQ(line(0x24), 2U);
    EXPECT_EQ(line(0x3c), 8U);
    EXPECT_EQ(line(0x00), 0U);
    EXPECT_EQ(line(0x40), 0U);
}

TEST(DebugInfo, Refused) {
    const TemporaryFolder folder;
    const std::string text = folder.write("text", "no ELF file");
    EXPECT_EQ(DebugInfo::open(text).error().message, text + ": no ELF file with segments: not a valid ELF file");
    EXPECT_EQ(DebugInfo::open("/nonexistent").error().message, "/nonexistent: no such file");
    EXPECT_EQ(DebugInfo::open(folder.path() / "none").error().code, Errc::not_found);
    EXPECT_EQ(DebugInfo::open(folder.write("text", "no ELF file")).error().code, Errc::bad_format);
    EXPECT_EQ(DebugInfo::open(folder.write("cut",
                                           "\x7f"
                                           "ELF"))
                  .error()
                  .code,
              Errc::bad_format);
}

}  // namespace
}  // namespace waymark::image
