/// Compressed kernel modules in memory.
#include "waymark/image/package.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <zlib.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "support/temporary_folder.h"

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
    ASSERT_EQ(stat(copy->c_str(), &status), 0);
    EXPECT_EQ(static_cast<std::size_t>(status.st_size), bytes.size());
    EXPECT_LE(status.st_blocks * 512, 3 * 4096);
    std::ifstream in(*copy, std::ios::binary);
    EXPECT_TRUE(bytes == std::string(std::istreambuf_iterator<char>(in), {}));
    EXPECT_EQ(*openable(path), *copy);
}

TEST(Package, AModuleThatEndsInZerosHasItsSize) {
    const TemporaryFolder folder;
    const std::filesystem::path path = folder.path() / "tail.ko.gz";
    write_gz(path, "x" + std::string(10'000, '\0'));
    const auto copy = openable(path);
    ASSERT_TRUE(copy) << copy.error().message;
    EXPECT_EQ(std::filesystem::file_size(*copy), 10'001U);
}

}  // namespace
}  // namespace waymark::image
