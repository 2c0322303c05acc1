#include "waymark/image/program_kind.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"
#include "support/tiny_elf.h"

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

/// Attributes of a whole file (Addenda to, and Errata in, the ABI for the Arm Architecture, 2.2).
std::vector<std::uint8_t> attributes(std::vector<std::uint8_t> of_file) {
    const auto prepend = [&](std::vector<std::uint8_t> head) {
        const auto bytes = static_cast<std::uint8_t>(head.size() + 4 + of_file.size());
        head.insert(head.end(), {bytes, 0, 0, 0});
        of_file.insert(of_file.begin(), head.begin(), head.end());
    };
    prepend({1});
    of_file.insert(of_file.begin(), {'a', 'e', 'a', 'b', 'i', 0});
    const auto bytes = static_cast<std::uint8_t>(4 + of_file.size());
    of_file.insert(of_file.begin(), {'A', bytes, 0, 0, 0});
    return of_file;
}

std::string architecture(const std::vector<std::uint8_t>& section, bool is_64 = false) {
    const TemporaryFolder folder;
    TinyElf file;
    file.is_64 = is_64;
    file.machine = is_64 ? EM_AARCH64 : EM_ARM;
    file.sections = {{".ARM.attributes", SHT_ARM_ATTRIBUTES, 0, 0, section, 1, 0}};
    const auto found = program_kind(folder.write("file", file.build()));
    EXPECT_TRUE(found.has_value());
    EXPECT_EQ(found->aarch64, is_64);
    return found->architecture;
}

TEST(ProgramKind, TheArchitectureIsThatOfTheAttributes) {
    const std::pair<unsigned, const char*> names[] = {{9, ""},
                                                      {10, "ARMv7"},
                                                      {11, "ARMv6-M"},
                                                      {12, "ARMv6S-M"},
                                                      {13, "ARMv7E-M"},
                                                      {14, "ARMv8-A"},
                                                      {15, "ARMv8-R"},
                                                      {16, "ARMv8-M.base"},
                                                      {17, "ARMv8-M.main"},
                                                      {18, ""},
                                                      {20, ""},
                                                      {21, "ARMv8.1-M.main"},
                                                      {22, "ARMv9-A"},
                                                      {23, ""}};
    for (const auto& [number, name] : names)
        EXPECT_EQ(architecture(attributes({6, static_cast<std::uint8_t>(number)})), name) << number;
    EXPECT_EQ(architecture(attributes({7, 'M', 6, 10})), "ARMv7-M");
    EXPECT_EQ(architecture(attributes({6, 10, 7, 'R'})), "ARMv7-R");
    EXPECT_EQ(architecture(attributes({6, 10, 7, 'A'})), "ARMv7-A");
    EXPECT_EQ(architecture(attributes({6, 10, 7, 'S'})), "ARMv7");
    EXPECT_EQ(architecture({}, true), "ARMv8-A");
}

TEST(ProgramKind, OtherAttributesAreSkippedByTheirForm) {
    // Texts: 4, 5, and from 33 on the odd ones. 32: a number and a text. A number may have several bytes.
    EXPECT_EQ(architecture(attributes({4, 6, 11, 0, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({5, 6, 11, 0, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({32, 6, 6, 11, 0, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({33, 6, 11, 0, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({67, 6, 11, 0, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({34, 6, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({8, 6, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({3, 6, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({31, 6, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({8, 0x86, 0x06, 6, 13})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({0x86, 0x00, 0x8d, 0x00})), "ARMv7E-M");
    EXPECT_EQ(architecture(attributes({0x86, 0x01, 11, 6, 0x8d, 0x01})), "") << "141 is no architecture";
    // The last attribute of a kind counts.
    EXPECT_EQ(architecture(attributes({6, 11, 6, 13})), "ARMv7E-M");
}

TEST(ProgramKind, DamagedAttributesNameNoArchitecture) {
    const std::vector<std::uint8_t> good = attributes({6, 13});
    ASSERT_EQ(architecture(good), "ARMv7E-M");
    for (const std::size_t place : {0U, 5U, 9U, 11U}) {
        std::vector<std::uint8_t> bad = good;
        ++bad[place];
        EXPECT_EQ(architecture(bad), "") << place;
    }
    // The length of the vendor's subsection counts from the length's own place.
    std::vector<std::uint8_t> two = attributes({6, 13});
    two.insert(two.end(), {6, 11});
    EXPECT_EQ(architecture(two), "ARMv7E-M");
    for (std::size_t bytes = 0; bytes < good.size() - 1; ++bytes)
        EXPECT_EQ(architecture({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(bytes)}), "") << bytes;
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
