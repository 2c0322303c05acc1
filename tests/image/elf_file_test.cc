#include "../../src/image/elf_file.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "support/tiny_elf.h"

namespace waymark::image {
namespace {

using Octets = std::vector<std::uint8_t>;
using ElfSection = TinyElf::Section;
constexpr std::uint64_t code_flags = SHF_ALLOC | SHF_EXECINSTR;

/// Numbers in little-endian order, `bytes` bytes each.
Octets numbers_of(const std::vector<std::uint64_t>& all, unsigned bytes) {
    Octets out;
    for (const std::uint64_t number : all)
        for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(number >> (8 * i)));
    return out;
}
Octets text_octets(std::string_view text) { return {text.begin(), text.end()}; }

ElfFile opened(const TinyElf& elf, Machines machines = Machines::arm) {
    auto file = ElfFile::open(share(elf.build()), "prog", machines);
    EXPECT_TRUE(file.has_value()) << file.error().message;
    return std::move(*file);
}
std::string refusal(const Octets& bytes, Machines machines = Machines::arm) {
    const auto file = ElfFile::open(share(bytes), "prog", machines);
    return file ? "none" : file.error().message;
}
std::string listed(const Result<std::vector<ElfFile::Piece>>& pieces) {
    if (!pieces) return pieces.error().message;
    std::string out;
    for (const auto& p : *pieces)
        out += fmt::format("{} at {:#x}: {} of {} bytes, section {}\n", p.name, p.address, p.bytes, p.declared_bytes,
                           p.section);
    return out;
}
std::string listed(const std::vector<ElfFile::SymbolEntry>& symbols) {
    std::string out;
    for (const auto& s : symbols)
        out += fmt::format("{} {:#x}+{} type {} binding {} in {:#x}-{:#x}{}\n", s.name, s.value, s.bytes, s.type,
                           s.binding, s.section_start, s.section_end, s.absolute ? " absolute" : "");
    return out;
}

TEST(ElfFile, OtherFilesAreRefusedWithTheReason) {
    EXPECT_EQ(refusal(text_octets("abcde")),
              "prog: is not an ELF file: it begins with 61 62 63 64, not with 7f 45 4c 46; name the program or library "
              "itself, as the linker wrote it");
    EXPECT_EQ(refusal(text_octets("\x7f"
                                  "EL")),
              "prog: is not an ELF file: it begins with 7f 45 4c, not with 7f 45 4c 46; name the program or library "
              "itself, as the linker wrote it");
    TinyElf elf;
    const auto of_machine = [&](std::uint16_t machine, Machines machines) {
        elf.machine = machine;
        return refusal(elf.build(), machines);
    };
    const auto expected = [](const std::string& machine) {
        return "prog: is an ELF file for " + machine +
               ", but Arm (40) or AArch64 (183) was expected; name a program for one of these";
    };
    EXPECT_EQ(of_machine(EM_386, Machines::arm), expected("x86 (3)"));
    EXPECT_EQ(of_machine(EM_RISCV, Machines::arm), expected("RISC-V (243)"));
    EXPECT_EQ(of_machine(EM_MIPS, Machines::arm), expected("machine 8"));
    EXPECT_EQ(of_machine(EM_X86_64, Machines::arm_and_starcore), expected("x86-64 (62)"));
    EXPECT_EQ(of_machine(EM_STARCORE, Machines::arm_and_x86_64), expected("machine 58"));
    EXPECT_EQ(of_machine(EM_X86_64, Machines::arm_and_x86_64), "none");
    EXPECT_EQ(of_machine(EM_STARCORE, Machines::arm_and_starcore), "none");
    EXPECT_EQ(of_machine(EM_AARCH64, Machines::arm), "none");
}

TEST(ElfFile, FilesThatCannotBeMappedAreErrors) {
    const TemporaryFolder folder;
    const auto error = [](const std::filesystem::path& path) {
        const auto file = map_file(path.string());
        return file ? Error{Errc::usage, "none"} : file.error();
    };
    const std::string none = folder.path() / "none", empty = folder.write("empty", ""),
                      text = folder.write("text", "t");
    EXPECT_EQ(error(none).code, Errc::not_found);
    EXPECT_EQ(error(none).message, none + ": there is no such file; check the name");
    EXPECT_EQ(error(text + "/below").code, Errc::not_found);
    EXPECT_EQ(error(folder.path()).code, Errc::unreadable);
    EXPECT_EQ(error(folder.path()).message,
              folder.path().string() + ": is no regular file, but program bytes were expected; name a file");
    EXPECT_EQ(error(empty).code, Errc::bad_format);
    EXPECT_EQ(error(empty).message, empty + ": is empty, but program bytes were expected; check how it was made");
    std::filesystem::create_symlink(folder.path() / "loop", folder.path() / "loop");
    EXPECT_EQ(error(folder.path() / "loop").code, Errc::unreadable);
    EXPECT_EQ(error(folder.path() / "loop").message,
              (folder.path() / "loop").string() +
                  ": cannot be opened: Too many levels of symbolic links; check the "
                  "owner and mode of the file and of the folders above it");
}

TEST(ElfFile, AChangedFileIsMappedAgain) {
    const TemporaryFolder folder;
    const auto path = folder.write("file", "abc").string();
    const auto first = map_file(path), second = map_file(path);
    ASSERT_TRUE(first && second);
    EXPECT_EQ(first->bytes.data(), second->bytes.data());
    folder.write("other", "defg");
    std::filesystem::rename(folder.path() / "other", path);
    const auto third = map_file(path);
    ASSERT_TRUE(third);
    EXPECT_EQ(third->bytes.size(), 4U);
    EXPECT_EQ(first->bytes.size(), 3U);
    EXPECT_EQ(third->bytes[0], 'd');
}

TEST(ElfFile, HeadersSayWhatTheFileIs) {
    struct Case {
        std::uint16_t type, machine;
        bool is_64, relocatable, position_independent, arm, x86_64;
    };
    for (const Case& c : {Case{ET_EXEC, EM_ARM, false, false, false, true, false},
                          Case{ET_DYN, EM_AARCH64, true, false, true, false, false},
                          Case{ET_REL, EM_AARCH64, true, true, false, false, false},
                          Case{ET_DYN, EM_X86_64, true, false, true, false, true}}) {
        TinyElf elf;
        elf.type = c.type, elf.machine = c.machine, elf.is_64 = c.is_64;
        const ElfFile file = opened(elf, Machines::arm_and_x86_64);
        EXPECT_EQ(file.is_relocatable(), c.relocatable);
        EXPECT_EQ(file.is_position_independent(), c.position_independent);
        EXPECT_EQ(file.is_32_bit(), !c.is_64);
        EXPECT_EQ(file.is_arm(), c.arm);
        EXPECT_EQ(file.is_x86_64(), c.x86_64);
        EXPECT_FALSE(file.is_dynamic().value());
        elf.segments = {{PT_LOAD, 0x1000, Octets(4), 0, 0}, {PT_DYNAMIC, 0x2000, Octets(4), 0, 0}};
        EXPECT_TRUE(opened(elf, Machines::arm_and_x86_64).is_dynamic().value());
    }
}

TEST(ElfFile, SegmentsWithContentsArePieces) {
    TinyElf elf;
    elf.segments = {{PT_LOAD, 0x8000, Octets(8), 0x100, 0},
                    {PT_NOTE, 0x9000, Octets(4), 0, 0},
                    {PT_LOAD, 0x9800, {}, 0x10, 0},
                    {PT_LOAD, 0xa000, Octets(1), 0, 0}};
    EXPECT_EQ(listed(opened(elf).pieces()),
              "LOAD 0 at 0x8000: 8 of 8 bytes, section 0\nLOAD 3 at 0xa000: 1 of 1 bytes, section 0\n");
    elf.segments = {{PT_NOTE, 0x9000, Octets(4), 0, 0}};
    EXPECT_EQ(listed(opened(elf).pieces()),
              "prog: has no loadable segment with contents, so there is no code in it; name the program that was "
              "traced");
    elf.type = ET_REL;
    EXPECT_EQ(listed(opened(elf).pieces()),
              "prog: has no executable section with contents, so there is no code in it; name the program that was "
              "traced");
    // Contents behind the end of the file.
    elf.type = ET_EXEC;
    elf.segments = {{PT_LOAD, 0x9000, Octets(4), 0, 0}};
    Octets file = elf.build();
    Elf32_Ehdr header;
    std::memcpy(&header, file.data(), sizeof header);
    const std::uint32_t beyond = static_cast<std::uint32_t>(file.size());
    std::memcpy(file.data() + header.e_phoff + offsetof(Elf32_Phdr, p_offset), &beyond, sizeof beyond);
    EXPECT_EQ(listed(ElfFile::open(share(file), "prog")->pieces()),
              "prog: is a damaged ELF file: all contents lie after the end of the file; it was cut short; build or "
              "copy it again");
    const std::uint32_t last = beyond - 1;
    std::memcpy(file.data() + header.e_phoff + offsetof(Elf32_Phdr, p_offset), &last, sizeof last);
    EXPECT_EQ(listed(ElfFile::open(share(file), "prog")->pieces()), "LOAD 0 at 0x9000: 1 of 4 bytes, section 0\n");
}

TEST(ElfFile, AFileWhoseCodeIsEmptyIsADebugFile) {
    const auto error_of = [](std::uint32_t type, std::uint64_t flags, std::uint64_t bytes) {
        TinyElf elf;
        elf.segments = {{PT_LOAD, 0x8000, Octets(8), 0, 0}};
        elf.sections = {{".text", type, flags, 0x8000, {}, 4, bytes}};
        return listed(opened(elf).pieces());
    };
    const std::string piece = "LOAD 0 at 0x8000: 8 of 8 bytes, section 0\n";
    EXPECT_EQ(error_of(SHT_NOBITS, code_flags, 8),
              "prog: contains only debug information, its code sections are empty; name the program file it was "
              "separated from");
    EXPECT_EQ(error_of(SHT_NOBITS, code_flags, 0), piece);
    EXPECT_EQ(error_of(SHT_NOBITS, SHF_ALLOC | SHF_WRITE, 8), piece);
    EXPECT_EQ(error_of(SHT_PROGBITS, code_flags, 8), piece);
}

/// The pieces of a relocatable file with these sections.
std::string placed(const std::vector<ElfSection>& sections) {
    TinyElf elf;
    elf.type = ET_REL;
    elf.sections = sections;
    return listed(opened(elf).pieces());
}

TEST(ElfFile, SectionsOfRelocatableFilesFollowOneAnother) {
    EXPECT_EQ(placed({{".init.text", SHT_PROGBITS, code_flags, 0, Octets(3), 2, 0},
                      {".text", SHT_PROGBITS, code_flags, 0, Octets(5), 4, 0},
                      {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, Octets(4), 4, 0},
                      {".note", SHT_NOTE, code_flags, 0, Octets(4), 4, 0},
                      {".unloaded", SHT_PROGBITS, SHF_EXECINSTR, 0, Octets(4), 4, 0},
                      {".empty", SHT_PROGBITS, code_flags, 0, {}, 4, 0},
                      {".text.hot", SHT_PROGBITS, code_flags, 0, Octets(2), 16, 0},
                      {".fixed", SHT_PROGBITS, code_flags, 0x101, Octets(2), 8, 0},
                      {".last", SHT_PROGBITS, code_flags, 0, Octets(1), 1, 0}}),
              ".init.text at 0x104: 3 of 3 bytes, section 1\n"
              ".text at 0x0: 5 of 5 bytes, section 2\n"
              ".text.hot at 0x10: 2 of 2 bytes, section 7\n"
              ".fixed at 0x101: 2 of 2 bytes, section 8\n"
              ".last at 0x103: 1 of 1 bytes, section 9\n");
}

TEST(ElfFile, AlignmentsThatNoFileHasAreIgnored) {
    const auto second_at = [](std::uint64_t alignment) {
        const std::string all = placed({{".text", SHT_PROGBITS, code_flags, 0, Octets(1), 1, 0},
                                        {".b", SHT_PROGBITS, code_flags, 0, Octets(1), alignment, 0}});
        const std::size_t at = all.find(".b at ") + 6;
        return all.substr(at, all.find(':', at) - at);
    };
    EXPECT_EQ(second_at(0), "0x1");
    EXPECT_EQ(second_at(1), "0x1");
    EXPECT_EQ(second_at(2), "0x2");
    EXPECT_EQ(second_at(64), "0x40");
    EXPECT_EQ(second_at(std::uint64_t{1} << 20), "0x100000");
    EXPECT_EQ(second_at(std::uint64_t{1} << 21), "0x1");
}

// Linux fills .plt and .text.ftrace_trampoline, so that code aligned to pages begins at the next page.
TEST(ElfFile, CodeBehindSectionsThatTheKernelFillsBeginsAtTheNextPage) {
    const auto text_at = [](const std::string& before, std::uint64_t flags, std::uint64_t alignment) {
        const std::string all = placed({{before, SHT_PROGBITS, flags, 0, Octets(4), 1, 0},
                                        {".text", SHT_PROGBITS, code_flags, 0, Octets(4), alignment, 0},
                                        {".more", SHT_PROGBITS, code_flags, 0, Octets(4), 4096, 0}});
        return all;
    };
    const std::string at_next_page =
        ".text at 0x1000: 4 of 4 bytes, section 2\n.more at 0x2000: 4 of 4 bytes, section 3\n";
    const std::string at_start = ".text at 0x0: 4 of 4 bytes, section 2\n.more at 0x1000: 4 of 4 bytes, section 3\n";
    EXPECT_EQ(text_at(".plt", code_flags, 4096), at_next_page);
    EXPECT_EQ(text_at(".text.ftrace_trampoline", SHF_ALLOC, 4096), at_next_page);
    EXPECT_EQ(text_at(".plt", SHF_EXECINSTR, 4096), at_start);
    EXPECT_EQ(text_at(".plt", code_flags, 2048), at_start);
    EXPECT_EQ(text_at(".data", SHF_ALLOC, 4096), at_start);
}

/// A branch of type `type` at `from` in a relocatable file, which leads to a symbol of `target`. What the loader writes
/// there: eight digits, or `unknown`; `-`: nothing.
struct Branch {
    std::uint32_t type{};
    std::uint32_t instruction{};
    std::uint64_t target{};                    // address, with the Thumb bit
    std::optional<std::uint64_t> addend = {};  // nullopt: a table without addends
    unsigned symbol_type = STT_FUNC;
    std::uint16_t section = SHN_ABS;
    std::uint32_t offset = 0;
};
std::string loaded(std::uint16_t machine, const Branch& branch, std::uint64_t from = 0x4000000,
                   const AddressOf& outside = {}) {
    TinyElf elf;
    elf.machine = machine;
    elf.is_64 = machine == EM_AARCH64;
    elf.type = ET_REL;
    Octets relocation = elf.is_64 ? numbers_of({branch.offset, std::uint64_t{1} << 32 | branch.type}, 8)
                                  : numbers_of({branch.offset, 1U << 8 | branch.type}, 4);
    if (branch.addend) {
        const Octets addend = numbers_of({*branch.addend}, elf.is_64 ? 8 : 4);
        relocation.insert(relocation.end(), addend.begin(), addend.end());
    }
    Octets code = numbers_of({branch.instruction, 0x11223344}, 4);
    elf.sections = {
        {".text", SHT_PROGBITS, code_flags, 0, code, 4, 0},
        {".rel.text", static_cast<std::uint32_t>(branch.addend ? SHT_RELA : SHT_REL), 0, 0, relocation, 4, 0, 1}};
    elf.symbols = {{"to", branch.target, 4, branch.symbol_type, STB_GLOBAL, branch.section}};
    const ElfFile file = opened(elf);
    const ElfFile::Branches out = file.relocated_branches(from, outside);
    const std::uint64_t start = file.pieces()->front().offset;
    if (!out.unknown.empty()) {
        EXPECT_EQ(out.unknown, std::vector<std::uint64_t>{start + branch.offset});
        EXPECT_TRUE(out.patches.empty());
        return "unknown";
    }
    if (out.patches.empty()) return "-";
    EXPECT_EQ(out.patches.size(), 1U);
    EXPECT_EQ(out.patches[0].offset, start + branch.offset);
    return fmt::format("{:08x}", out.patches[0].value);
}

TEST(RelocatedBranches, OfA64ReachAsFarAsTheInstruction) {
    constexpr std::uint64_t from = 0x4000'0000;
    struct Case {
        std::uint32_t type, instruction;
        std::int64_t distance;
        const char* loaded;
    };
    constexpr std::int64_t far = std::int64_t{1} << 27, middle = std::int64_t{1} << 20, near = 1 << 15;
    for (const Case& c :
         {Case{R_AARCH64_CALL26, 0x94000000, far - 4, "95ffffff"}, Case{R_AARCH64_CALL26, 0x94000000, far, "unknown"},
          Case{R_AARCH64_CALL26, 0x97ffffff, -far, "96000000"}, Case{R_AARCH64_CALL26, 0x94000000, -far - 4, "unknown"},
          Case{R_AARCH64_CALL26, 0x94000000, 2, "unknown"}, Case{R_AARCH64_JUMP26, 0x17ffffff, 4, "14000001"},
          Case{R_AARCH64_CONDBR19, 0x54ffffe1, middle - 4, "547fffe1"},
          Case{R_AARCH64_CONDBR19, 0x54000001, middle, "unknown"},
          Case{R_AARCH64_CONDBR19, 0x54000001, -middle, "54800001"},
          Case{R_AARCH64_CONDBR19, 0x54000001, -middle - 4, "unknown"},
          Case{R_AARCH64_TSTBR14, 0xb71fffff, near - 4, "b71bffff"},
          Case{R_AARCH64_TSTBR14, 0x36000000, near, "unknown"}, Case{R_AARCH64_TSTBR14, 0x36000000, -near, "36040000"},
          Case{R_AARCH64_TSTBR14, 0x36000000, -near - 4, "unknown"}, Case{R_AARCH64_ABS32, 0x36000000, 4, "-"}})
        EXPECT_EQ(loaded(EM_AARCH64, {c.type, c.instruction, from + static_cast<std::uint64_t>(c.distance), 0}, from),
                  c.loaded)
            << c.type << " " << c.distance;
    EXPECT_EQ(loaded(EM_AARCH64, {R_AARCH64_CALL26, 0x94000000, from, 0x100}, from), "94000040");
    EXPECT_EQ(loaded(EM_AARCH64, {R_AARCH64_CALL26, 0x94000000, from + 1, ~std::uint64_t{0}}, from), "94000000");
    // The second of two words, and none.
    EXPECT_EQ(loaded(EM_AARCH64, {R_AARCH64_CALL26, 0x94000000, from, 0, STT_FUNC, SHN_ABS, 4}, from), "13ffffff");
    EXPECT_EQ(loaded(EM_AARCH64, {R_AARCH64_CALL26, 0x94000000, from, 0, STT_FUNC, SHN_ABS, 5}, from), "-");
}

// The words are what objdump reads as bl, b.w and blx over the distance.
TEST(RelocatedBranches, OfT32ReachAsFarAsTheInstruction) {
    constexpr std::uint64_t from = 0x4000000;
    struct Case {
        std::int64_t distance;  // from the instruction's own program counter, which is 4 further
        const char *bl, *b, *blx;
    };
    for (const Case& c :
         {Case{4, "f802f000", "b802f000", "e802f000"}, Case{-0x1000000, "d000f400", "9000f400", "c000f400"},
          Case{0xfffffc, "d7fef3ff", "97fef3ff", "c7fef3ff"}, Case{0x400000, "f000f000", "b000f000", "e000f000"},
          Case{0x800000, "d800f000", "9800f000", "c800f000"}, Case{-0x400000, "f800f400", "b800f400", "e800f400"},
          Case{-0x800000, "f000f400", "b000f400", "e000f400"}, Case{-0xabcde8, "d90cf543", "990cf543", "c90cf543"},
          Case{0x5a5a58, "f52cf1a5", "b52cf1a5", "e52cf1a5"}, Case{0x1000000, "unknown", "unknown", "unknown"},
          Case{-0x1000004, "unknown", "unknown", "unknown"}}) {
        const std::uint64_t to = from + 4 + static_cast<std::uint64_t>(c.distance);
        EXPECT_EQ(loaded(EM_ARM, {R_ARM_THM_PC22, 0xfffef7ff, to | 1}, from), c.bl) << c.distance;
        EXPECT_EQ(loaded(EM_ARM, {R_ARM_THM_JUMP24, 0xbffef7ff, to | 1}, from), c.b) << c.distance;
        EXPECT_EQ(loaded(EM_ARM, {R_ARM_THM_PC22, 0xfffef7ff, to}, from), c.blx) << c.distance;
        EXPECT_EQ(loaded(EM_ARM, {R_ARM_THM_JUMP24, 0xbffef7ff, to}, from), "unknown");
        // Only the value of a function shows its instruction set.
        EXPECT_EQ(loaded(EM_ARM, {R_ARM_THM_JUMP24, 0xbffef7ff, to, std::nullopt, STT_NOTYPE}, from), c.b);
    }
    EXPECT_EQ(loaded(EM_ARM, {R_ARM_THM_PC22, 0xf802f000, 0x4000010 | 1, 0x20}, from), "f818f000");
}

// A linker that has only the bytes keeps the distance that they contain: an addend in the instruction.
TEST(RelocatedBranches, WithoutAddendsTheInstructionContainsOne) {
    constexpr std::uint64_t from = 0x4000000;
    for (const char* const held :
         {"f802f000", "d000f400", "d7fef3ff", "f000f000", "d800f000", "f800f400", "f000f400", "d90cf543", "f52cf1a5"}) {
        const auto word = static_cast<std::uint32_t>(std::stoul(held, nullptr, 16));
        EXPECT_EQ(loaded(EM_ARM, {R_ARM_THM_PC22, word, from | 1}, from), held);
    }
    for (const std::uint32_t word : {0xeb000001U, 0xebffffffU, 0xeb7fffffU, 0xeb800000U, 0xeb123456U}) {
        EXPECT_EQ(loaded(EM_ARM, {R_ARM_CALL, word, from}, from), fmt::format("{:08x}", word));
        for (const std::uint32_t blx : {0xfa000000U, 0xfb000000U}) {
            const std::uint32_t call = blx | (word & 0xffffff);
            EXPECT_EQ(loaded(EM_ARM, {R_ARM_CALL, call, from | 1}, from), fmt::format("{:08x}", call));
            EXPECT_EQ(loaded(EM_ARM, {R_ARM_CALL, call, from, std::nullopt, STT_NOTYPE}, from),
                      fmt::format("{:08x}", call));
        }
    }
}

TEST(RelocatedBranches, OfA32KeepTheirConditionAndReachAsFarAsTheInstruction) {
    constexpr std::uint64_t from = 0x4000000;
    constexpr std::int64_t far = 1 << 25;
    constexpr std::uint32_t bl = 0xeb000000, beq = 0x0a000000, blne = 0x1b000000, blx = 0xfa000000;
    struct Case {
        std::uint32_t type, instruction;
        std::int64_t distance;
        bool thumb;
        const char* loaded;
    };
    for (const Case& c :
         {Case{R_ARM_CALL, bl, far - 4, false, "eb7fffff"}, Case{R_ARM_CALL, bl, far, false, "unknown"},
          Case{R_ARM_CALL, bl, -far, false, "eb800000"}, Case{R_ARM_CALL, bl, -far - 4, false, "unknown"},
          Case{R_ARM_JUMP24, beq, 0x100, false, "0a000040"}, Case{R_ARM_JUMP24, blne, 0x100, false, "1b000040"},
          Case{R_ARM_PC24, bl, 0x100, false, "eb000040"}, Case{R_ARM_CALL, bl, 0x100, true, "fa000040"},
          Case{R_ARM_CALL, bl, 0x102, true, "fb000040"}, Case{R_ARM_JUMP24, beq, 0x100, true, "unknown"},
          Case{R_ARM_JUMP24, blne, 0x100, true, "unknown"}, Case{R_ARM_CALL, blx, 0x102, true, "fb000040"},
          Case{R_ARM_CALL, blx, 0x100, false, "eb000040"}, Case{R_ARM_ABS32, bl, 0x100, false, "-"}})
        EXPECT_EQ(loaded(EM_ARM,
                         {c.type, c.instruction, (from + static_cast<std::uint64_t>(c.distance)) | (c.thumb ? 1U : 0U)},
                         from),
                  c.loaded)
            << fmt::format("{:08x} {}", c.instruction, c.distance);
    EXPECT_EQ(loaded(EM_ARM, {R_ARM_CALL, 0xeb000010, from, 0x20}, from), "eb000008");
}

TEST(RelocatedBranches, SymbolsOfOtherFilesAreAskedFor) {
    std::string asked;
    const AddressOf outside = [&](const std::string& name) -> std::optional<std::uint64_t> {
        asked += name;
        return 0x4000101;
    };
    const Branch branch{R_ARM_CALL, 0xeb000000, 0, std::nullopt, STT_FUNC, SHN_UNDEF};
    EXPECT_EQ(loaded(EM_ARM, branch, 0x4000000, outside), "eb000040");
    EXPECT_EQ(asked, "to");
    EXPECT_EQ(loaded(EM_ARM, branch, 0x4000000, {}), "unknown");
    EXPECT_EQ(loaded(EM_ARM, branch, 0x4000000, [](const std::string&) { return std::nullopt; }), "unknown");
    // A symbol of a section without an address, and one of the code itself.
    EXPECT_EQ(loaded(EM_ARM, {R_ARM_CALL, 0xeb000000, 0, std::nullopt, STT_FUNC, 2}), "unknown");
    EXPECT_EQ(loaded(EM_ARM, {R_ARM_CALL, 0xeb000000, 4, std::nullopt, STT_FUNC, 1}), "eb000001");
    EXPECT_EQ(loaded(EM_ARM, {R_ARM_CALL, 0xeb000000, 4, std::nullopt, STT_NOTYPE, 1}), "eb000001");
}

TEST(ElfFile, SymbolsHaveTheBoundsOfTheirSections) {
    TinyElf elf;
    elf.sections = {{".text", SHT_PROGBITS, code_flags, 0x8000, Octets(0x20), 4, 0}};
    elf.symbols = {{"f", 0x8001, 4, STT_FUNC, STB_LOCAL, 1},
                   {"undefined", 0x8000, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
                   {"common", 4, 4, STT_OBJECT, STB_GLOBAL, SHN_COMMON},
                   {"", 0x8000, 0, STT_FUNC, STB_GLOBAL, 1},
                   {"constant", 0x42, 0, STT_NOTYPE, STB_GLOBAL, SHN_ABS},
                   {"elsewhere", 0x9000, 8, STT_OBJECT, STB_WEAK, TinyElf::elsewhere}};
    EXPECT_EQ(listed(opened(elf).symbols()),
              "f 0x8001+4 type 2 binding 0 in 0x8000-0x8020\n"
              "constant 0x42+0 type 0 binding 1 in 0x0-0x0 absolute\n"
              "elsewhere 0x9000+8 type 1 binding 2 in 0x0-0x0\n");
    EXPECT_TRUE(opened(elf).has_symbol_table());
    elf.symbol_table = SHT_DYNSYM;
    EXPECT_EQ(opened(elf).symbols().size(), 3U);
    EXPECT_FALSE(opened(elf).has_symbol_table());
    elf.symbol_table = SHT_PROGBITS;
    EXPECT_TRUE(opened(elf).symbols().empty());
    elf.type = ET_REL;
    elf.symbol_table = SHT_SYMTAB;
    elf.sections = {{".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, Octets(0x20), 4, 0},
                    {".a", SHT_PROGBITS, code_flags, 0, Octets(0x11), 4, 0},
                    {".b", SHT_PROGBITS, code_flags, 0, Octets(0x20), 8, 0}};
    elf.symbols = {{"in_b", 4, 4, STT_FUNC, STB_GLOBAL, 3}, {"in_data", 0, 4, STT_OBJECT, STB_GLOBAL, 1}};
    EXPECT_EQ(listed(opened(elf).symbols()), "in_b 0x1c+4 type 2 binding 1 in 0x18-0x38\n");
}

TEST(ElfFile, CodeIsEachExecutableSection) {
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    constexpr std::uint64_t four_gib = std::uint64_t{1} << 32;
    elf.sections = {{".text", SHT_PROGBITS, code_flags, 0x1000, Octets(8, 7), 4, 0},
                    {".nothing", SHT_NOBITS, code_flags, 0x2000, {}, 4, 0x10},
                    {".data", SHT_PROGBITS, SHF_ALLOC, 0x3000, Octets(8), 4, 0},
                    {".unloaded", SHT_PROGBITS, SHF_EXECINSTR, 0x4000, Octets(8), 4, 0},
                    {".note", SHT_NOTE, code_flags, 0x5000, Octets(8), 4, 0},
                    {".empty", SHT_PROGBITS, code_flags, 0x6000, {}, 4, 0},
                    {".largest", SHT_NOBITS, code_flags, 0x7000, {}, 4, four_gib},
                    {".larger", SHT_NOBITS, code_flags, 0x7000, {}, 4, four_gib + 1},
                    {".top", SHT_NOBITS, code_flags, highest - 8, {}, 4, 8},
                    {".beyond", SHT_NOBITS, code_flags, highest - 7, {}, 4, 8}};
    std::string out;
    const ElfFile file = opened(elf);
    for (const auto& piece : file.code())
        out += fmt::format("{:#x}+{:#x}: {} {}\n", piece.address, piece.declared_bytes, piece.contents.size(),
                           piece.contents.empty() ? 0 : piece.contents[7]);
    EXPECT_EQ(out, "0x1000+0x8: 8 7\n0x2000+0x10: 0 0\n0x7000+0x100000000: 0 0\n0xfffffffffffffff7+0x8: 0 0\n");
    elf.type = ET_REL;
    elf.sections = {{".a", SHT_PROGBITS, code_flags, 0, Octets(8, 7), 4, 0},
                    {".b", SHT_PROGBITS, code_flags, 0, Octets(8, 7), 64, 0}};
    EXPECT_EQ(opened(elf).code()[1].address, 64U);
}

Octets note(const std::string& name, std::uint32_t type, const Octets& contents) {
    Octets out = numbers_of({name.size() + 1, contents.size(), type}, 4);
    out.insert(out.end(), name.begin(), name.end());
    out.resize((out.size() + 1 + 3) & ~std::size_t{3});
    out.insert(out.end(), contents.begin(), contents.end());
    out.resize((out.size() + 3) & ~std::size_t{3});
    return out;
}
Octets joined(Octets a, const Octets& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
}

TEST(ElfFile, TheBuildIdIsTheFirstNoteOfThatKindInMemory) {
    const Octets id = note("GNU", NT_GNU_BUILD_ID, {1, 2, 3, 4, 5});
    const auto found = [](const std::vector<ElfSection>& sections) -> std::string {
        TinyElf elf;
        elf.sections = sections;
        const ElfFile file = opened(elf);
        const auto out = file.build_id();
        return out ? fmt::format("{:#x}: {} of {} bytes, first {}", out->address, out->bytes.size(), out->note.size(),
                                 out->bytes[0])
                   : "none";
    };
    const auto section = [](const Octets& bytes) {
        return std::vector<ElfSection>{{".notes", SHT_NOTE, SHF_ALLOC, 0x8000, bytes, 4, 0}};
    };
    EXPECT_EQ(found(section(id)), "0x8000: 5 of 21 bytes, first 1");
    EXPECT_EQ(found(section(joined(note("GNU", NT_GNU_ABI_TAG, Octets(5)), id))), "0x8018: 5 of 21 bytes, first 1");
    EXPECT_EQ(found(section(joined(note("GNU", NT_GNU_BUILD_ID, {}), id))), "0x8010: 5 of 21 bytes, first 1");
    EXPECT_EQ(found(section(joined(note("Name!", NT_GNU_BUILD_ID, {9}), id))), "0x8018: 5 of 21 bytes, first 1");
    EXPECT_EQ(found(section(joined(id, note("GNU", NT_GNU_BUILD_ID, {9})))), "0x8000: 5 of 21 bytes, first 1");
    Octets cut = id;
    cut.pop_back();
    EXPECT_EQ(found(section(cut)), "none");
    EXPECT_EQ(found(section(Octets(11))), "none");
    EXPECT_EQ(found({{".notes", SHT_NOTE, 0, 0x8000, id, 4, 0}}), "none");
    EXPECT_EQ(found({{".notes", SHT_PROGBITS, SHF_ALLOC, 0x8000, id, 4, 0}}), "none");
    EXPECT_EQ(found({{".a", SHT_NOTE, SHF_ALLOC, 0x8000, id, 4, 0},
                     {".b", SHT_NOTE, SHF_ALLOC, 0x9000, note("GNU", NT_GNU_BUILD_ID, {9}), 4, 0}}),
              "0x8000: 5 of 21 bytes, first 1");
    EXPECT_EQ(found({}), "none");
}

TEST(ElfFile, AFileIsForLinuxIfItsNotesOrItsInterpreterSaySo) {
    const auto for_linux = [](const std::vector<ElfSection>& sections) {
        TinyElf elf;
        elf.sections = sections;
        return opened(elf).is_for_linux();
    };
    const auto has_note = [&](const std::string& name, std::uint32_t type, const Octets& contents) {
        return for_linux({{".note", SHT_NOTE, 0, 0, note(name, type, contents), 4, 0}});
    };
    EXPECT_FALSE(for_linux({}));
    EXPECT_TRUE(for_linux({{".interp", SHT_PROGBITS, SHF_ALLOC, 0, text_octets("/lib/ld.so"), 1, 0}}));
    EXPECT_FALSE(for_linux({{".interp", SHT_NOBITS, SHF_ALLOC, 0, {}, 1, 4}}));
    EXPECT_FALSE(for_linux({{".data", SHT_PROGBITS, SHF_ALLOC, 0, Octets(4), 1, 0}}));
    EXPECT_TRUE(has_note("GNU", NT_GNU_ABI_TAG, Octets(16)));
    EXPECT_FALSE(has_note("GNU", NT_GNU_ABI_TAG, {1, 0, 0, 0}));
    EXPECT_FALSE(has_note("GNU", NT_GNU_ABI_TAG, {0, 0, 0, 1}));
    EXPECT_FALSE(has_note("GNU", NT_GNU_ABI_TAG, {0, 0, 0}));
    EXPECT_FALSE(has_note("GNU", NT_GNU_BUILD_ID, Octets(4)));
    EXPECT_FALSE(has_note("ARM", NT_GNU_ABI_TAG, Octets(4)));
    EXPECT_TRUE(has_note("Android", 1, Octets(4)));
    EXPECT_TRUE(has_note("Go", 4, Octets(4)));
    TinyElf elf;
    Octets file = elf.build();
    file[EI_OSABI] = ELFOSABI_LINUX;
    EXPECT_TRUE(ElfFile::open(share(file), "prog")->is_for_linux());
}

TEST(ElfFile, AttributesAreTheirSection) {
    TinyElf elf;
    elf.sections = {{".data", SHT_PROGBITS, SHF_ALLOC, 0x8000, text_octets("data"), 1, 0},
                    {".ARM.attributes", SHT_ARM_ATTRIBUTES, 0, 0, text_octets("Abc"), 1, 0}};
    const ElfFile file = opened(elf);
    const Bytes attributes = file.attributes();
    EXPECT_EQ(std::string(attributes.begin(), attributes.end()), "Abc");
    elf.sections.pop_back();
    EXPECT_TRUE(opened(elf).attributes().empty());
}

}  // namespace
}  // namespace waymark::image
