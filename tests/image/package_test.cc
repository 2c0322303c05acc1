/// Compressed kernel modules in memory.
#include "waymark/image/package.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "../../src/image/compressed.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/image/debug_info.h"
#include "waymark/image/memory_map.h"

namespace waymark::image {
namespace {

void write_gz(const std::filesystem::path& path, std::string_view bytes) {
    const gzFile file = gzopen(path.c_str(), "wb1");
    ASSERT_NE(file, nullptr);
    ASSERT_EQ(gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size())), static_cast<int>(bytes.size()));
    ASSERT_EQ(gzclose(file), Z_OK);
}

TEST(Package, ZerosOfACompressedModuleTakeNoMemory) {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path() / "zeros.ko.gz";
    std::string bytes(4 << 20, '\0');
    bytes[5] = 'a';
    bytes[1 << 20] = 'b';
    bytes += "end";
    write_gz(path, bytes);
    const auto copy = openable(path);
    ASSERT_TRUE(copy) << copy.error().message;
    struct stat status {};
    ASSERT_EQ(stat(copy->path.c_str(), &status), 0);
    EXPECT_EQ(static_cast<std::size_t>(status.st_size), bytes.size());
    EXPECT_LE(status.st_blocks * 512, 3 * 4096);
    std::ifstream in(copy->path, std::ios::binary);
    EXPECT_TRUE(bytes == std::string(std::istreambuf_iterator<char>(in), {}));
    EXPECT_EQ(openable(path)->path, copy->path);
}

TEST(Package, AModuleThatEndsInZerosHasItsSize) {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path() / "tail.ko.gz";
    write_gz(path, "x" + std::string(10'000, '\0'));
    const auto copy = openable(path);
    ASSERT_TRUE(copy) << copy.error().message;
    EXPECT_EQ(std::filesystem::file_size(copy->path), 10'001U);
}

/// Bytes of the copies of files that this process has in memory.
std::uint64_t bytes_in_memory() {
    std::uint64_t sum = 0;
    for (const auto& each : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code error;
        const std::string name = std::filesystem::read_symlink(each.path(), error).string();
        if (!error && name.find("waymark-package") != name.npos) sum += std::filesystem::file_size(each.path());
    }
    return sum;
}

constexpr std::size_t large = (most_kept >> 1) + (1 << 20);

TEST(Package, CopiesThatNobodyUsesAreReleased) {
    const TemporaryFolder folder;
    for (const char* name : {"a.ko.gz", "b.ko.gz", "c.ko.gz", "small.ko.gz"})
        write_gz(folder.path() / name, std::string(name[0] == 's' ? 1000 : large, 'x'));
    const auto used = openable(folder.path() / "a.ko.gz");
    ASSERT_TRUE(used);
    for (const char* name : {"b.ko.gz", "c.ko.gz"}) ASSERT_TRUE(openable(folder.path() / name));
    // The file in use, and the last one.
    EXPECT_EQ(bytes_in_memory(), 2 * large);
    EXPECT_EQ(openable(folder.path() / "a.ko.gz")->path, used->path);
    const auto small = openable(folder.path() / "small.ko.gz");
    ASSERT_TRUE(small);
    EXPECT_EQ(bytes_in_memory(), large + 1000);
}

TEST(Package, AModuleWhoseLinesNobodyReadsIsReleased) {
    const TemporaryFolder folder;
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    elf.type = ET_REL;
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, {1, 2, 3, 4}, 4, 0},
                    {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, std::vector<std::uint8_t>(large, 'd'), 4, 0}};
    const std::vector<std::uint8_t> bytes = elf.build();
    write_gz(folder.path() / "x.ko.gz", {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    write_gz(folder.path() / "later.ko.gz", std::string(large, 'x'));
    auto info = DebugInfo::open(folder.path() / "x.ko.gz");
    ASSERT_TRUE(info) << info.error().message;
    MemoryMap map;
    ASSERT_TRUE(map.add_elf(folder.path() / "x.ko.gz", 0x1000));
    EXPECT_FALSE(info->has_lines());
    EXPECT_FALSE(info->line(Address{0}));
    ASSERT_TRUE(openable(folder.path() / "later.ko.gz"));
    EXPECT_EQ(bytes_in_memory(), large);
    // Its code and layout stay known.
    EXPECT_EQ(map.at(Address{0x1000}, {}).bytes.size(), 4U);
    ASSERT_EQ(info->segments().size(), 1U);
    EXPECT_EQ(info->segments()[0].bytes, 4U);
}

}  // namespace
}  // namespace waymark::image
