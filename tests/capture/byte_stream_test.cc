#include "waymark/capture/byte_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "support/temporary_folder.h"
#include "waymark/capture/capture.h"
#include "waymark/capture/temporary_file.h"

namespace waymark::capture {
namespace {

using Octets = std::vector<std::uint8_t>;

Octets noise(std::size_t count) {
    std::mt19937 random(7);
    Octets bytes(count);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random() & 0x1f);  // compressible, but not much
    return bytes;
}

Octets gzip(const Octets& bytes) {
    z_stream s{};
    EXPECT_EQ(deflateInit2(&s, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    Octets out(deflateBound(&s, bytes.size()) + 64);
    s.next_in = const_cast<Bytef*>(bytes.data());
    s.avail_in = static_cast<uInt>(bytes.size());
    s.next_out = out.data();
    s.avail_out = static_cast<uInt>(out.size());
    EXPECT_EQ(deflate(&s, Z_FINISH), Z_STREAM_END);
    out.resize(s.total_out);
    deflateEnd(&s);
    return out;
}

Octets zstd(const Octets& bytes) {
    Octets out(ZSTD_compressBound(bytes.size()));
    ZSTD_CCtx* context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    out.resize(ZSTD_compress2(context, out.data(), out.size(), bytes.data(), bytes.size()));
    ZSTD_freeCCtx(context);
    return out;
}

Octets operator+(Octets a, const Octets& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

struct Drained {
    Octets bytes;
    std::optional<Error> error;
};

Drained drain(Result<std::unique_ptr<ByteStream>> stream, std::size_t step = 1000) {
    Drained result;
    if (!stream) {
        result.error = stream.error();
        return result;
    }
    Octets chunk(step);
    while (true) {
        auto got = (*stream)->read(chunk);
        if (!got) {
            result.error = got.error();
            EXPECT_FALSE((*stream)->read(chunk).has_value()) << "an error must stay";
            return result;
        }
        if (*got == 0) {
            EXPECT_EQ((*stream)->read(chunk).value(), 0U) << "the end must stay";
            return result;
        }
        EXPECT_LE(*got, step);
        result.bytes.insert(result.bytes.end(), chunk.begin(), chunk.begin() + static_cast<std::ptrdiff_t>(*got));
    }
}

TEST(ByteStream, PlainFile) {
    const TemporaryFolder folder;
    for (const std::size_t count : {1U, 2U, 3U, 4U, 5U, 70000U}) {
        const Octets bytes = noise(count);
        const auto path = folder.write("plain.bin", bytes);
        EXPECT_EQ(open_bytes(path).value()->size(), count);
        for (const std::size_t step : {1U, 3U, 4U, 65536U}) EXPECT_EQ(drain(open_bytes(path), step).bytes, bytes);
    }
}

TEST(ByteStream, CompressedFilesAreKnownByTheirFirstBytesWhateverTheirName) {
    const TemporaryFolder folder;
    const Octets bytes = noise(300000);
    for (const Octets& packed : {gzip(bytes), zstd(bytes)}) {
        const auto path = folder.write("trace.bin", packed);
        EXPECT_EQ(open_bytes(path).value()->size(), std::nullopt);
        for (const std::size_t step : {7U, 65536U, 1U << 20}) {
            const Drained all = drain(open_bytes(path), step);
            EXPECT_FALSE(all.error) << all.error->message;
            EXPECT_EQ(all.bytes, bytes);
        }
    }
    const auto plain = folder.write("plain.gz", bytes);
    EXPECT_EQ(drain(open_bytes(plain)).bytes, bytes);
}

TEST(ByteStream, SeveralMembersAndFrames) {
    const TemporaryFolder folder;
    const Octets a = noise(1000), b = noise(70000);
    EXPECT_EQ(drain(open_bytes(folder.write("a", gzip(a) + gzip(b) + gzip({})))).bytes, a + b);
    EXPECT_EQ(drain(open_bytes(folder.write("b", zstd(a) + zstd({}) + zstd(b)))).bytes, a + b);
    const Octets skippable{0x50, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 'a', 'b', 'c'};
    EXPECT_EQ(drain(open_bytes(folder.write("c", skippable + zstd(a) + skippable))).bytes, a);
    const Drained padded = drain(open_bytes(folder.write("d", gzip(a) + Octets(100000, 0))));
    EXPECT_EQ(padded.bytes, a);
    EXPECT_FALSE(padded.error);
}

TEST(ByteFile, UnpackedFilesAreBounded) {
    const TemporaryFolder folder;
    const Octets bytes(1U << 20, 0);
    for (const Octets& packed : {gzip(bytes), zstd(bytes)}) {
        const auto path = folder.write("zeros", packed);
        const auto unpacked = [&](UnpackBounds most) {
            const auto stream = open_bytes(path);
            return spooled(**stream, "zeros", nullptr, most);
        };
        // Within the limit by size, or within the limit in proportion.
        EXPECT_TRUE(unpacked({bytes.size(), 1}).has_value());
        EXPECT_TRUE(unpacked({1, bytes.size() / packed.size() + 2}).has_value());
        const auto refused = unpacked({bytes.size() / 2, 16});
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code, Errc::unsupported);
        EXPECT_NE(refused.error().message.find("unpack it with"), std::string::npos) << refused.error().message;
    }
}

TEST(ByteFile, TemporaryFilesGoWhereTmpdirSays) {
    const TemporaryFolder folder;
    const auto path = folder.write("packed", zstd(noise(1000)));
    const char* const set = std::getenv("TMPDIR");
    const std::string before = set == nullptr ? "" : set;
    ::setenv("TMPDIR", (folder.path() / "none").c_str(), 1);
    const auto refused = open_byte_file(path);
    ::setenv("TMPDIR", folder.path().c_str(), 1);
    EXPECT_TRUE(open_byte_file(path).has_value());
    const auto file = open_temporary_file("x");
    if (before.empty())
        ::unsetenv("TMPDIR");
    else
        ::setenv("TMPDIR", before.c_str(), 1);
    ASSERT_FALSE(refused.has_value());
    EXPECT_NE(refused.error().message.find("TMPDIR"), std::string::npos) << refused.error().message;
    ASSERT_TRUE(file.has_value());
    std::error_code none;
    const std::string place = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(*file), none).string();
    ::close(*file);
    EXPECT_TRUE(place.starts_with(folder.path().string())) << place;
}

TEST(ByteStream, CompressedNothingIsNoError) {
    const TemporaryFolder folder;
    for (const Octets& packed : {gzip({}), zstd({})}) {
        const Drained all = drain(open_bytes(folder.write("empty", packed)));
        EXPECT_FALSE(all.error);
        EXPECT_TRUE(all.bytes.empty());
    }
}

TEST(ByteStream, TruncatedGivesWhatThereIsThenTheError) {
    const TemporaryFolder folder;
    const Octets bytes = noise(400000);
    for (const Octets& packed : {gzip(bytes), zstd(bytes)}) {
        for (const std::size_t keep : {5UL, packed.size() / 2, packed.size() - 1}) {
            const auto path =
                folder.write("cut", Octets(packed.begin(), packed.begin() + static_cast<std::ptrdiff_t>(keep)));
            const Drained all = drain(open_bytes(path));
            ASSERT_TRUE(all.error);
            EXPECT_EQ(all.error->code, Errc::unreadable);
            EXPECT_EQ(all.error->offset, Offset{keep});
            EXPECT_NE(all.error->message.find(path.string()), std::string::npos);
            EXPECT_NE(all.error->message.find("end inside a"), std::string::npos) << all.error->message;
            EXPECT_NE(all.error->message.find("Copy the file again"), std::string::npos);
            ASSERT_LE(all.bytes.size(), bytes.size());
            EXPECT_TRUE(std::equal(all.bytes.begin(), all.bytes.end(), bytes.begin()));
            // Bytes that were decompressed together with the failure are delivered too, with any size of requests.
            for (const std::size_t step : {7U, 1U << 20}) {
                EXPECT_EQ(drain(open_bytes(path), step).bytes.size(), all.bytes.size());
            }
            if (keep == packed.size() / 2) {
                EXPECT_GT(all.bytes.size(), 100000U);
            }
        }
    }
}

TEST(ByteStream, DamageAndGarbage) {
    const TemporaryFolder folder;
    const Octets bytes = noise(400000);
    for (Octets packed : {gzip(bytes), zstd(bytes)}) {
        const Drained garbage = drain(open_bytes(folder.write("garbage", packed + Octets{'n', 'o', '!', '!', '!'})));
        EXPECT_EQ(garbage.bytes, bytes);
        ASSERT_TRUE(garbage.error);
        EXPECT_NE(garbage.error->message.find("after the"), std::string::npos) << garbage.error->message;

        for (std::size_t i = 0; i < 32; ++i) packed[packed.size() / 2 + i] ^= 0xff;
        const Drained all = drain(open_bytes(folder.write("damaged", packed)));
        ASSERT_TRUE(all.error);
        EXPECT_NE(all.error->message.find("damaged"), std::string::npos) << all.error->message;
    }
}

TEST(ByteStream, ZstdWithAWindowBeyondBoundedMemory) {
    const TemporaryFolder folder;
    ZSTD_CCtx* context = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(context, ZSTD_c_windowLog, 30);
    const Octets bytes = noise(1000);
    Octets packed(4096);
    ZSTD_outBuffer out{packed.data(), packed.size(), 0};
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    // Without a size given beforehand the frame declares the window.
    ZSTD_compressStream2(context, &out, &in, ZSTD_e_flush);
    EXPECT_EQ(ZSTD_compressStream2(context, &out, &in, ZSTD_e_end), 0U);
    ZSTD_freeCCtx(context);
    packed.resize(out.pos);
    const Drained all = drain(open_bytes(folder.write("long", packed)));
    ASSERT_TRUE(all.error);
    EXPECT_NE(all.error->message.find("zstd -d --long=31"), std::string::npos) << all.error->message;
}

TEST(ByteStream, EveryFlippedByteTerminates) {
    const TemporaryFolder folder;
    const Octets bytes = noise(500);
    for (const Octets& packed : {gzip(bytes), zstd(bytes)})
        for (std::size_t i = 4; i < packed.size(); i += 3) {
            Octets copy = packed;
            copy[i] ^= 0x5a;
            drain(open_bytes(folder.write("flip", copy)));
        }
}

TEST(ByteStream, ErrorsOfOpening) {
    const TemporaryFolder folder;
    const auto missing = open_bytes(folder.path() / "missing.bin");
    ASSERT_FALSE(missing.has_value());
    EXPECT_EQ(missing.error().code, Errc::not_found);
    EXPECT_EQ(missing.error().message,
              (folder.path() / "missing.bin").string() + ": there is no such file; check the name");

    const auto directory = open_bytes(folder.path());
    ASSERT_FALSE(directory.has_value());
    EXPECT_EQ(directory.error().code, Errc::unreadable);
    EXPECT_NE(directory.error().message.find("is a folder"), std::string::npos);

    const auto empty = open_bytes(folder.write("empty.bin", ""));
    ASSERT_FALSE(empty.has_value());
    EXPECT_EQ(empty.error().code, Errc::bad_format);
    EXPECT_NE(empty.error().message.find("is empty"), std::string::npos);
}

TEST(ByteStream, NoPermission) {
    const TemporaryFolder folder;
    const auto secret = folder.write("secret.bin", "x");
    std::filesystem::permissions(secret, std::filesystem::perms::none);
    // Root may read everything, so it becomes nobody for a moment.
    const bool root = ::geteuid() == 0;
    constexpr uid_t nobody = 65534;
    if (root && ::seteuid(nobody) != 0) GTEST_SKIP() << "root cannot become nobody in this user namespace";
    const auto refused = open_bytes(secret);
    if (root) {
        ASSERT_EQ(::seteuid(0), 0);
    }
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::unreadable);
    EXPECT_NE(refused.error().message.find("no permission"), std::string::npos);
}

/// Replaces standard input for the duration of a test.
class WithInput {
public:
    explicit WithInput(const std::filesystem::path& file) : kept_(::dup(STDIN_FILENO)) {
        const int descriptor = ::open(file.c_str(), O_RDONLY);
        ::dup2(descriptor, STDIN_FILENO);
        ::close(descriptor);
    }
    ~WithInput() {
        ::dup2(kept_, STDIN_FILENO);
        ::close(kept_);
    }

private:
    int kept_;
};

TEST(ByteStream, StandardInput) {
    const TemporaryFolder folder;
    const Octets bytes = noise(5000);
    for (const Octets& content : {bytes, gzip(bytes), zstd(bytes)}) {
        const WithInput input(folder.write("input", content));
        EXPECT_EQ(drain(open_bytes("-")).bytes, bytes);
    }
    const WithInput input(folder.write("input", ""));
    const auto empty = open_bytes("-");
    ASSERT_FALSE(empty.has_value());
    EXPECT_NE(empty.error().message.find("standard input: is empty"), std::string::npos);
}

TEST(ByteStream, Concatenation) {
    const TemporaryFolder folder;
    const Octets a = noise(10), b = noise(70000), c = noise(17);
    const auto first = folder.write("a", a), second = folder.write("b", gzip(b)), third = folder.write("c", zstd(c)),
               empty = folder.write("empty", "");
    EXPECT_EQ(drain(concatenate({first, empty, second, third, empty})).bytes, a + b + c);
    EXPECT_EQ(drain(concatenate({second})).bytes, b);

    const Drained broken = drain(concatenate({first, folder.path() / "missing", third}));
    EXPECT_EQ(broken.bytes, a);
    ASSERT_TRUE(broken.error);
    EXPECT_EQ(broken.error->code, Errc::not_found);

    EXPECT_EQ(concatenate({}).error().code, Errc::usage);
    EXPECT_EQ(concatenate({empty, empty}).error().code, Errc::bad_format);
    EXPECT_EQ(concatenate({folder.path() / "missing", first}).error().code, Errc::not_found);
}

// The recording of a unit that was programmed to trace nothing is complete.
TEST(ByteStream, ABufferToWhichNothingWasWrittenIsRead) {
    const TemporaryFolder folder;
    Buffer buffer{.name = "ETB", .length = 0};
    buffer.files = {folder.write("empty", "")};
    const auto stream = open_buffer(buffer);
    ASSERT_TRUE(stream.has_value());
    EXPECT_TRUE(read_all(**stream, 100).value().empty());
    buffer.length.reset();
    EXPECT_FALSE(open_buffer(buffer).has_value());
    buffer.length = 16;
    EXPECT_FALSE(open_buffer(buffer).has_value());
}

TEST(ByteStream, OfAPartIsReadInPieces) {
    const auto file = byte_file_from_memory({0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
    const auto part = open_part(*file, {.offset = 2, .bytes = 5});
    EXPECT_EQ(part->size(), 5U);
    Octets piece(3), got;
    for (std::size_t n = 1; n != 0;
         got.insert(got.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(n)))
        n = part->read(piece).value();
    EXPECT_EQ(got, (Octets{2, 3, 4, 5, 6}));
    EXPECT_FALSE(open_part(*file, {.offset = 20, .bytes = 5})->read(piece).has_value());
}

TEST(ByteStream, MemoryAndReadAll) {
    const Octets bytes = noise(100000);
    EXPECT_EQ(read_all(*from_memory(bytes), 100000).value(), bytes);
    EXPECT_EQ(from_memory(bytes)->size(), 100000U);
    const auto limited = read_all(*from_memory(bytes), 99999);
    ASSERT_FALSE(limited.has_value());
    EXPECT_EQ(limited.error().code, Errc::unsupported);
}

}  // namespace
}  // namespace waymark::capture
