#include "waymark/image/agreement.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "support/tiny_elf.h"

namespace waymark::image {
namespace {

using Octets = std::vector<std::uint8_t>;
using Maps = std::vector<std::shared_ptr<const MemoryMap>>;

Octets code(std::uint8_t first) {
    Octets out(0x100);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = static_cast<std::uint8_t>(first + i) | 1U;
    return out;
}

/// A note with an ID of four bytes.
Octets note(std::uint8_t id) { return {4, 0, 0, 0, 4, 0, 0, 0, 3, 0, 0, 0, 'G', 'N', 'U', 0, id, id, id, id}; }

/// Code at 0x8000, and a note of its build at 0x7000.
TinyElf program(std::uint8_t id) {
    TinyElf elf;
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x8000, code(1), 4, 0},
                    {".note.gnu.build-id", SHT_NOTE, SHF_ALLOC, 0x7000, note(id), 4, 0},
                    {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0x9000, Octets(8), 4, 0}};
    return elf;
}

struct Piece {
    Octets bytes;
    std::uint64_t address;
    SpaceFilter space{};
};
std::shared_ptr<const MemoryMap> memory(const std::vector<Piece>& pieces) {
    auto map = std::make_shared<MemoryMap>();
    for (const Piece& p : pieces) EXPECT_TRUE(map->add_bytes(p.bytes, Address{p.address}, p.space).has_value());
    return map;
}

class AgreementTest : public testing::Test {
protected:
    Agreement of(const TinyElf& elf, const Maps& maps, std::uint64_t bias = 0) {
        const auto path = folder_.write("program", elf.build());
        const auto found = agreement(path, bias, maps);
        EXPECT_TRUE(found.has_value()) << (found ? "" : found.error().message);
        return found ? *found : Agreement();
    }
    TemporaryFolder folder_;
};

TEST_F(AgreementTest, WhatTheFileSaysOfItself) {
    const Agreement a = of(program(7), {});
    EXPECT_EQ(a.machine, ElfMachine::arm);
    EXPECT_FALSE(a.position_independent);
    EXPECT_EQ(a.first, Address{0x8000});
    EXPECT_EQ(a.end, Address{0x8100});
    EXPECT_EQ(a.build_id, "07070707");
    EXPECT_EQ(a.build_id_there, "");
    EXPECT_EQ(a.known, 0U);
    TinyElf other = program(7);
    other.is_64 = true;
    other.machine = EM_AARCH64;
    other.type = ET_DYN;
    EXPECT_EQ(of(other, {}).machine, ElfMachine::aarch64);
    EXPECT_TRUE(of(other, {}).position_independent);
    EXPECT_FALSE(of(other, {}).relocatable);
    other.type = ET_REL;
    EXPECT_TRUE(of(other, {}).relocatable);
}

TEST_F(AgreementTest, TheSameCode) {
    const Agreement a = of(program(7), {memory({{code(1), 0x8000}, {note(7), 0x7000}})});
    EXPECT_EQ(a.known, 0x100U);
    EXPECT_EQ(a.compared, 0x100U);
    EXPECT_EQ(a.different, 0U);
    EXPECT_EQ(a.build_id_there, "07070707");
}

TEST_F(AgreementTest, PartOfItAndZerosThatSayNothing) {
    Octets page = code(1);
    std::fill(page.begin() + 0x40, page.begin() + 0x80, std::uint8_t{0});
    page.resize(0xc0);
    const Agreement a = of(program(7), {memory({{page, 0x8000}})});
    EXPECT_EQ(a.known, 0xc0U);
    EXPECT_EQ(a.compared, 0x80U);
    EXPECT_EQ(a.different, 0U);
    EXPECT_EQ(a.build_id_there, "");
}

TEST_F(AgreementTest, AnotherBuild) {
    const Agreement a = of(program(7), {memory({{code(3), 0x8000}, {note(8), 0x7000}})});
    EXPECT_EQ(a.compared, 0x100U);
    EXPECT_GT(a.different, 0x80U);
    EXPECT_EQ(a.build_id_there, "08080808");
    // Notes of other kinds do not count.
    EXPECT_EQ(of(program(7), {memory({{code(1), 0x7000}})}).build_id_there, "");
}

TEST_F(AgreementTest, OfSeveralMemoriesThatWhichAgreesBest) {
    const auto one = memory({{code(3), 0x8000}}), none = memory({{code(1), 0x20000}});
    const auto two = memory({{code(5), 0x8000, SpaceFilter::secure()}, {code(1), 0x8000, SpaceFilter::non_secure()}});
    EXPECT_EQ(of(program(7), {one, none, two}).different, 0U);
    EXPECT_EQ(of(program(7), {two, one}).different, 0U);
    EXPECT_NE(of(program(7), {none, one}).different, 0U);
    EXPECT_EQ(of(program(7), {none}).known, 0U);
}

TEST_F(AgreementTest, SeparateDebugFilesAndBiases) {
    TinyElf debug = program(7);
    debug.sections[0].type = SHT_NOBITS;
    const Agreement a = of(debug, {memory({{code(3), 0x8000}, {note(7), 0x7000}})});
    EXPECT_EQ(a.known, 0x100U);
    EXPECT_EQ(a.compared, 0U);
    EXPECT_EQ(a.build_id_there, "07070707");
    const Agreement b = of(program(7), {memory({{code(1), 0x18000}})}, 0x10000);
    EXPECT_EQ(b.first, Address{0x18000});
    EXPECT_EQ(b.compared, 0x100U);
    EXPECT_EQ(b.different, 0U);
}

TEST_F(AgreementTest, DamagedNotesEnd) {
    for (std::size_t at = 0; at < 12; ++at) {
        TinyElf elf = program(7);
        elf.sections[1].bytes[at] = 0xff;
        of(elf, {memory({{code(1), 0x8000}, {note(7), 0x7000}})});
    }
    TinyElf cut = program(7);
    cut.sections[1].bytes.resize(11);
    EXPECT_EQ(of(cut, {}).build_id, "");
    TinyElf far = program(7);
    far.sections[0].declared_bytes = 0xfffffff0;
    of(far, {memory({{code(1), 0x8000}})});
}

}  // namespace
}  // namespace waymark::image
