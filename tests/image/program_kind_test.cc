#include "waymark/image/program_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <vector>

#include "support/temporary_folder.h"

namespace waymark::image {
namespace {

/// A 32-bit ELF file for Arm with one program header of this type.
std::vector<std::uint8_t> elf(std::uint16_t type, std::uint32_t entry, std::uint32_t segment, std::uint32_t headers) {
    std::vector<std::uint8_t> out;
    const auto put = [&](std::uint64_t value, unsigned bytes) {
        for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
    };
    out = {0x7f, 'E', 'L', 'F', 1, 1, 1};
    out.resize(16);
    put(type, 2);
    put(40, 2);  // EM_ARM
    put(1, 4);
    put(entry, 4);
    put(headers, 4);     // e_phoff
    put(0, 4);           // e_shoff
    put(0x05000000, 4);  // e_flags
    for (const unsigned value : {52, 32, 1, 40, 0, 0}) put(value, 2);
    out.resize(std::max<std::size_t>(out.size(), headers == 0xffffffff ? 0 : headers));
    for (const std::uint32_t value : {segment, 0U, 0U, 0U, 0U, 0U, 4U, 4U}) put(value, 4);
    return out;
}

TEST(ProgramKind, IsWhatTheHeadersSay) {
    const TemporaryFolder folder;
    const auto kind = [&](const std::vector<std::uint8_t>& bytes) { return program_kind(folder.write("file", bytes)); };
    constexpr std::uint16_t exec = 2, dyn = 3;
    constexpr std::uint32_t load = 1, dynamic = 2;
    const auto fixed = kind(elf(exec, 0x8001, load, 52));
    ASSERT_TRUE(fixed.has_value()) << fixed.error().message;
    EXPECT_FALSE(fixed->aarch64 || fixed->position_independent || fixed->dynamic);
    EXPECT_EQ(fixed->entry, Address{0x8000});
    // The program headers need not directly follow the file's header.
    const auto library = kind(elf(dyn, 0x500, dynamic, 128));
    ASSERT_TRUE(library.has_value());
    EXPECT_TRUE(library->position_independent && library->dynamic);
    EXPECT_EQ(library->entry, Address{0x500});
}

TEST(ProgramKind, WhatIsNoProgramIsAnError) {
    const TemporaryFolder folder;
    EXPECT_FALSE(program_kind(folder.path() / "none").has_value());
    EXPECT_FALSE(program_kind(folder.write("text", {'h', 'i'})).has_value());
    // Program headers beyond the end of the file.
    const auto beyond = program_kind(folder.write("beyond", elf(2, 0, 1, 0xffffffff)));
    ASSERT_FALSE(beyond.has_value());
    EXPECT_EQ(beyond.error().code, Errc::bad_format);
}

}  // namespace
}  // namespace waymark::image
