#include "waymark/image/memory_map.h"

#include <elf.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "support/corpus.h"
#include "support/temporary_folder.h"
#include "support/tiny_elf.h"

namespace waymark::image {
namespace {

using Octets = std::vector<std::uint8_t>;

constexpr isa::Space space_of(bool ns, bool hyp_mode) {
    isa::Space space;
    space.ns = ns;
    space.hyp = hyp_mode;
    return space;
}
constexpr isa::Space secure = space_of(false, false), non_secure = space_of(true, false), hyp = space_of(true, true);

std::string text_at(const MemoryMap& map, std::uint64_t address, const isa::Space& space = secure) {
    const isa::Code code = map.at(Address{address}, space);
    return {code.bytes.begin(), code.bytes.end()};
}

Octets octets(std::string_view text) { return {text.begin(), text.end()}; }

std::string listed(const std::vector<Region>& regions) {
    std::string text;
    for (const Region& r : regions) {
        char line[128];
        std::snprintf(line, sizeof line, "%llx+%llx %u %s%s\n", static_cast<unsigned long long>(r.address.value),
                      static_cast<unsigned long long>(r.bytes), r.section, r.space.name().c_str(),
                      r.shadowed_by ? (" under " + std::to_string(*r.shadowed_by)).c_str() : "");
        text += line;
    }
    return text;
}

// A snapshot has a source for each thread, and all sources have the same files: each file is mapped once, so a thousand
// sources take the memory of one.
TEST(MemoryMap, AFileIsMappedOnceForAllThatHaveIt) {
    const TemporaryFolder folder;
    const auto path = folder.path() / "code.bin";
    std::ofstream(path) << "first";
    MemoryMap one;
    ASSERT_TRUE(one.add_file(path, Address{0x1000}, 0, std::nullopt, {}, ""));
    {
        MemoryMap other;
        ASSERT_TRUE(other.add_file(path, Address{0x2000}, 1, std::nullopt, {}, ""));
        EXPECT_EQ(text_at(other, 0x2000), "irst");
        EXPECT_EQ(other.at(Address{0x2000}, secure).bytes.data(), one.at(Address{0x1000}, secure).bytes.data() + 1);
    }
    // Another file of this name is another file.
    std::filesystem::remove(path);
    std::ofstream(path) << "later";
    MemoryMap later;
    ASSERT_TRUE(later.add_file(path, Address{0x1000}, 0, std::nullopt, {}, ""));
    EXPECT_EQ(text_at(later, 0x1000), "later");
    EXPECT_EQ(text_at(one, 0x1000), "first");
}

TEST(SpaceFilter, LettersOfSnapshots) {
    // docs/spec/pft.md, 7.2. States: S, S+Hyp, N, N+Hyp, Root, Realm, Realm+Hyp.
    const std::map<std::string, std::string> expected{
        {"", "1111111"},    {"N", "0011000"},    {"S", "1100000"},    {"H", "0101001"},
        {"EL2", "0101001"}, {"EL1N", "0010000"}, {"P", "0010000"},    {"NP", "0010000"},
        {"SP", "1000000"},  {"EL1S", "1000000"}, {"el3", "1100100"},  {"n", "0011000"},
        {"R", "0000011"},   {"EL1R", "0000010"}, {"EL2R", "0000001"}, {"root", "0000100"}};
    for (const auto& [letters, states] : expected) {
        const auto filter = SpaceFilter::parse(letters);
        ASSERT_TRUE(filter) << letters;
        std::string held;
        for (unsigned state = 0; state < SpaceFilter::states; ++state) held += filter->has(state) ? '1' : '0';
        EXPECT_EQ(held, states) << letters;
    }
    for (const char* letters : {"X", "NS", "EL", "EL4", " "}) EXPECT_FALSE(SpaceFilter::parse(letters)) << letters;
    EXPECT_EQ(SpaceFilter::parse("NP")->name(), "EL1N");
    EXPECT_EQ(SpaceFilter().name(), "any");
    EXPECT_EQ(SpaceFilter::of({0, 2}).name(), "EL1S+EL1N");
    EXPECT_EQ(SpaceFilter::of({2, 3}), SpaceFilter::non_secure());
    EXPECT_EQ(SpaceFilter::state(hyp), 3U);
    EXPECT_EQ(SpaceFilter::parse("R")->name(), "R");
    EXPECT_EQ(SpaceFilter::parse("EL3")->name(), "EL3");
    EXPECT_EQ(SpaceFilter::parse("ROOT")->name(), "ROOT");
    EXPECT_EQ(SpaceFilter::state({.nse = true}), 4U);
    EXPECT_EQ(SpaceFilter::state({.ns = true, .nse = true}), 5U);
    EXPECT_EQ(SpaceFilter::state({.ns = true, .hyp = true, .nse = true}), 6U);
}

TEST(MemoryMap, NothingIsMappedAtFirst) {
    const MemoryMap map;
    EXPECT_TRUE(map.empty());
    EXPECT_TRUE(map.at(Address{0}, secure).bytes.empty());
    EXPECT_TRUE(map.regions().empty());
}

TEST(MemoryMap, BytesRunToTheEndOfTheirSection) {
    MemoryMap map;
    const auto added = map.add_bytes(octets("abcdef"), Address{0x100}, {}, "one");
    ASSERT_TRUE(added.has_value());
    EXPECT_EQ(added->section, 0U);
    EXPECT_EQ(added->sections, 1U);
    EXPECT_EQ(text_at(map, 0x100), "abcdef");
    EXPECT_EQ(text_at(map, 0x105), "f");
    EXPECT_EQ(text_at(map, 0x106), "");
    EXPECT_EQ(text_at(map, 0xff), "");
    EXPECT_EQ(map.sections()[0].name, "one");
    EXPECT_FALSE(map.empty());
}

TEST(MemoryMap, TheOneAddedLastIsSeen) {
    MemoryMap map;
    ASSERT_TRUE(map.add_bytes(octets("aaaaaaaaaa"), Address{10}).has_value());
    ASSERT_TRUE(map.add_bytes(octets("bbb"), Address{13}).has_value());
    EXPECT_EQ(text_at(map, 10), "aaa");
    EXPECT_EQ(text_at(map, 13), "bbb");
    EXPECT_EQ(text_at(map, 15), "b");
    EXPECT_EQ(text_at(map, 16), "aaaa");
    EXPECT_EQ(map.at(Address{16}, secure).section, 0U);
    EXPECT_EQ(map.at(Address{14}, secure).section, 1U);
    EXPECT_EQ(listed(map.regions()), "a+3 0 any\nd+3 0 any under 1\nd+3 1 any\n10+4 0 any\n");
    ASSERT_TRUE(map.add_bytes(octets("cccccccccccccccccccc"), Address{5}).has_value());
    EXPECT_EQ(text_at(map, 5), "cccccccccccccccccccc");
    EXPECT_EQ(listed(map.regions()), "5+14 2 any\na+a 0 any under 2\nd+3 1 any under 2\n");
}

TEST(MemoryMap, SpacesAreSeparate) {
    MemoryMap map;
    ASSERT_TRUE(map.add_bytes(octets("any-any-"), Address{0}).has_value());
    ASSERT_TRUE(map.add_bytes(octets("ns"), Address{2}, SpaceFilter::non_secure()).has_value());
    ASSERT_TRUE(map.add_bytes(octets("h"), Address{2}, SpaceFilter::hyp()).has_value());
    EXPECT_EQ(text_at(map, 0, secure), "any-any-");
    EXPECT_EQ(text_at(map, 2, non_secure), "ns");
    EXPECT_EQ(text_at(map, 2, hyp), "h");
    EXPECT_EQ(text_at(map, 3, hyp), "s");
    EXPECT_EQ(listed(map.regions()),
              "0+8 0 EL1S+ROOT+EL1R\n"
              "0+2 0 EL2S+EL1N+EL2N+EL2R\n"
              "2+1 0 H under 2\n"
              "2+2 0 EL1N under 1\n"
              "2+2 1 EL1N\n"
              "2+1 1 EL2N under 2\n"
              "2+1 2 H\n"
              "3+5 0 EL2S+EL2R\n"
              "3+1 0 EL2N under 1\n"
              "3+1 1 EL2N\n"
              "4+4 0 N\n");
}

TEST(MemoryMap, TopOfTheAddressSpace) {
    MemoryMap map;
    const std::uint64_t top = ~std::uint64_t{0};
    ASSERT_TRUE(map.add_bytes(octets("abcd"), Address{top - 3}).has_value());
    ASSERT_TRUE(map.add_bytes(octets("z"), Address{top}).has_value());
    EXPECT_EQ(text_at(map, top - 3), "abc");
    EXPECT_EQ(text_at(map, top), "z");
    const auto beyond = map.add_bytes(octets("abcd"), Address{top - 2}, {}, "late");
    ASSERT_FALSE(beyond.has_value());
    EXPECT_EQ(beyond.error().code, Errc::usage);
    EXPECT_EQ(beyond.error().message,
              "late: 0x4 bytes at 0xfffffffffffffffd leave the 64-bit address space; check the address");
    EXPECT_EQ(map.add_bytes({}, Address{0}).error().code, Errc::usage);
    EXPECT_EQ(map.regions().size(), 3U);
}

TEST(MemoryMap, AgreesWithPaintingByteByByte) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        constexpr std::size_t span = 64;
        MemoryMap map;
        std::array<std::array<int, span>, SpaceFilter::states> owner;
        for (auto& row : owner) row.fill(-1);
        const std::array filters{SpaceFilter::any(),   SpaceFilter::secure(),         SpaceFilter::non_secure(),
                                 SpaceFilter::hyp(),   SpaceFilter::secure_not_hyp(), SpaceFilter::non_secure_not_hyp(),
                                 SpaceFilter::realm(), SpaceFilter::realm_hyp(),      SpaceFilter::root(),
                                 SpaceFilter::el3()};
        for (int id = 0; id < 12; ++id) {
            const std::size_t first = random() % span, bytes = 1 + random() % (span - first);
            const SpaceFilter filter = filters[random() % filters.size()];
            ASSERT_TRUE(
                map.add_bytes(Octets(bytes, static_cast<std::uint8_t>(id)), Address{first}, filter).has_value());
            for (unsigned state = 0; state < SpaceFilter::states; ++state)
                for (std::size_t i = first; filter.has(state) && i < first + bytes; ++i) owner[state][i] = id;
        }
        for (unsigned state = 0; state < SpaceFilter::states; ++state) {
            const isa::Space space = SpaceFilter::space(state);
            ASSERT_EQ(SpaceFilter::state(space), state);
            for (std::size_t i = 0; i < span; ++i) {
                const isa::Code code = map.at(Address{i}, space);
                std::size_t run = 0;
                while (owner[state][i] >= 0 && i + run < span && owner[state][i + run] == owner[state][i]) ++run;
                ASSERT_EQ(code.bytes.size(), run) << "seed " << seed << " state " << state << " address " << i;
                if (run == 0) continue;
                ASSERT_EQ(code.section, static_cast<std::uint32_t>(owner[state][i])) << "seed " << seed;
                ASSERT_EQ(code.bytes[0], owner[state][i]) << "seed " << seed;
            }
        }
        // The visible bytes of the regions, which cover the same bytes.
        std::size_t seen = 0, painted = 0;
        for (const Region& region : map.regions())
            for (unsigned state = 0; state < SpaceFilter::states; ++state)
                if (!region.shadowed_by && region.space.has(state)) seen += region.bytes;
        for (const auto& row : owner)
            for (const int id : row) painted += id >= 0 ? 1 : 0;
        ASSERT_EQ(seen, painted) << "seed " << seed;
    }
}

TEST(MemoryMap, FilesWithOffsetAndLength) {
    const TemporaryFolder folder;
    const auto path = folder.write("dump.bin", "0123456789");
    MemoryMap map;
    ASSERT_TRUE(map.add_file(path, Address{0x1000}).has_value());
    ASSERT_TRUE(map.add_file(path, Address{0x2000}, 3, 4).has_value());
    ASSERT_TRUE(map.add_file(path, Address{0x3000}, 9, std::nullopt, SpaceFilter::secure(), "tail").has_value());
    EXPECT_EQ(text_at(map, 0x1000), "0123456789");
    EXPECT_EQ(text_at(map, 0x2000), "3456");
    EXPECT_EQ(text_at(map, 0x3000), "9");
    EXPECT_EQ(text_at(map, 0x3000, non_secure), "");
    EXPECT_EQ(map.sections()[0].name, path.string());
    EXPECT_EQ(map.sections()[2].name, "tail");

    const auto cut = map.add_file(path, Address{0x4000}, 4, 100);
    ASSERT_TRUE(cut.has_value());
    ASSERT_EQ(cut->notes.size(), 1U);
    EXPECT_EQ(cut->notes[0],
              path.string() +
                  ": the dump is shorter than declared: 0x64 bytes were declared from offset 0x4 on, but the "
                  "file ends after 0x6; those are mapped. Correct the length, or copy the whole file.");
    EXPECT_EQ(text_at(map, 0x4000), "456789");
}

TEST(MemoryMap, FileErrors) {
    const TemporaryFolder folder;
    MemoryMap map;
    EXPECT_EQ(map.add_file(folder.path() / "gone", Address{0}).error().code, Errc::not_found);
    const auto directory = map.add_file(folder.path(), Address{0});
    EXPECT_EQ(directory.error().code, Errc::unreadable);
    EXPECT_NE(directory.error().message.find("is no regular file"), std::string::npos);
    EXPECT_EQ(map.add_file(folder.write("empty", ""), Address{0}).error().code, Errc::bad_format);
    const auto beyond = map.add_file(folder.write("dump", "1234"), Address{0}, 4);
    EXPECT_EQ(beyond.error().code, Errc::bad_format);
    EXPECT_NE(beyond.error().message.find("has 0x4 bytes, so there is nothing at offset 0x4"), std::string::npos);
    EXPECT_EQ(map.add_file(folder.path() / "dump", Address{~std::uint64_t{0}}).error().code, Errc::usage);
    EXPECT_EQ(map.add_file(folder.path() / "dump", Address{0}, 0, 0).error().code, Errc::usage);
    EXPECT_TRUE(map.empty());
}

TEST(MemoryMap, BytesSurviveAMoveAndTheFileName) {
    const TemporaryFolder folder;
    const auto path = folder.write("dump", "abcd");
    MemoryMap first;
    ASSERT_TRUE(first.add_file(path, Address{0}).has_value());
    const isa::Code code = first.at(Address{0}, secure);
    std::filesystem::remove(path);
    const MemoryMap second = std::move(first);
    EXPECT_EQ(second.at(Address{0}, secure).bytes.data(), code.bytes.data());
    EXPECT_EQ(text_at(second, 0), "abcd");
}

TEST(MemoryMap, ManyReaders) {
    MemoryMap map;
    for (std::uint64_t i = 0; i < 100; ++i) ASSERT_TRUE(map.add_bytes(octets("abcdefgh"), Address{i * 6}).has_value());
    std::vector<std::thread> threads;
    std::array<std::uint64_t, 4> sums{};
    for (auto& sum : sums)
        threads.emplace_back([&map, &sum] {
            for (std::uint64_t i = 0; i < 600; ++i) sum += map.at(Address{i}, secure).bytes.size();
        });
    for (auto& thread : threads) thread.join();
    EXPECT_EQ(sums[0], sums[3]);
}

TEST(SpaceFilter, EachHasAName) {
    std::string names;
    for (const SpaceFilter& f :
         {SpaceFilter::any(), SpaceFilter::secure(), SpaceFilter::non_secure(), SpaceFilter::realm(),
          SpaceFilter::hyp(), SpaceFilter::el3(), SpaceFilter::root(), SpaceFilter::secure_not_hyp(),
          SpaceFilter::non_secure_not_hyp(), SpaceFilter::realm_not_hyp(), SpaceFilter::realm_hyp(),
          SpaceFilter::of({1}), SpaceFilter::of({3}), SpaceFilter::of({0, 2, 5}),
          SpaceFilter::of({0, 1, 2, 3, 4, 5, 6}), SpaceFilter::of({})})
        names += f.name() + " ";
    EXPECT_EQ(names, "any S N R H EL3 ROOT EL1S EL1N EL1R EL2R EL2S EL2N EL1S+EL1N+EL1R any  ");
    for (unsigned state = 0; state < SpaceFilter::states; ++state)
        EXPECT_EQ(SpaceFilter::state(SpaceFilter::space(state)), state);
}

TEST(MemoryMap, EachErrorSaysWhatToDo) {
    const TemporaryFolder folder;
    const std::string dump = folder.write("dump", "1234");
    MemoryMap map;
    const auto why = [](const auto& result) { return result ? std::string("none") : result.error().message; };
    EXPECT_EQ(why(map.add_bytes({}, Address{0x10})), "bytes: there are no bytes to map at 0x10; give at least one");
    EXPECT_EQ(why(map.add_bytes(octets("ab"), Address{~std::uint64_t{0}}, {}, "name")),
              "name: 0x2 bytes at 0xffffffffffffffff leave the 64-bit address space; check the address");
    EXPECT_EQ(why(map.add_bytes(octets("ab"), Address{~std::uint64_t{0} - 1})), "none");
    EXPECT_EQ(why(map.add_file(dump, Address{0}, 4)),
              dump + ": has 0x4 bytes, so there is nothing at offset 0x4; check the offset, or copy the whole file");
    const auto notes = map.add_file(dump, Address{0}, 1, 4)->notes;
    EXPECT_EQ(notes,
              std::vector<std::string>{dump + ": the dump is shorter than declared: 0x4 bytes were declared from "
                                              "offset 0x1 on, but the file ends after 0x3; those are mapped. "
                                              "Correct the length, or copy the whole file."});
    EXPECT_TRUE(map.add_file(dump, Address{0}, 1, 3)->notes.empty());
    EXPECT_EQ(why(add_image(map, dump)),
              dump + ": is a raw memory dump (not an ELF file), and its address in memory is not known; write " + dump +
                  "@ADDRESS");
    EXPECT_EQ(why(parse_image_argument("f@")), "'f@': there is no address after '@'; write it as f@0x8000");
    EXPECT_EQ(why(parse_image_argument("f@0xg")),
              "'f@0xg': '0xg' after '@' is not an address of up to 64 bits; write it as f@0x8000");
    EXPECT_EQ(parse_image_argument("f@0X10")->address, Address{16});
    EXPECT_EQ(parse_image_argument("f@0x1")->address, Address{1});
    EXPECT_EQ(parse_image_argument("f@0x")->path, "f@0x") << "a name";
    EXPECT_EQ(why(parse_image_argument("@1")),
              "an image has no file name; write FILE, or FILE@ADDRESS for a raw memory dump");
}

TEST(MemoryMap, MemoryThatIsAskedForIsKeptByThePage) {
    MemoryMap map;
    std::string asked;
    map.ask_beyond([&](Address address, const isa::Space&, std::span<std::uint8_t> bytes) -> std::size_t {
        asked += fmt::format("{:#x}+{} ", address.value, bytes.size());
        if (address.value >= 0x9000) return 0;
        std::fill(bytes.begin(), bytes.end(), std::uint8_t{'q'});
        return address.value >= 0x8800 ? 16 : bytes.size();
    });
    ASSERT_TRUE(map.add_bytes(octets("abc"), Address{0x7100}).has_value());
    EXPECT_EQ(text_at(map, 0x70fe).substr(0, 6), "qqabcq");
    EXPECT_EQ(text_at(map, 0x7100), "abc");
    EXPECT_EQ(text_at(map, 0x7ffe), "qq");
    EXPECT_EQ(text_at(map, 0x8ff0), std::string(16, 'q'));
    EXPECT_EQ(text_at(map, 0x8fff), "q");
    EXPECT_EQ(text_at(map, 0x9000), "");
    EXPECT_EQ(text_at(map, 0x9000), "");
    EXPECT_EQ(text_at(map, 0x9001), "");
    EXPECT_EQ(asked, "0x70fe+3842 0x8ff0+16 0x9000+4096 0x9001+4095 ");
}

// --- ELF ---

TinyElf segmented() {
    TinyElf elf;
    elf.segments = {{PT_LOAD, 0x8000, octets("codecode"), 0x100, 0},
                    {PT_NOTE, 0x9000, octets("note"), 0, 0},
                    {PT_LOAD, 0x10000, octets("data"), 0, 0},
                    {PT_LOAD, 0x20000, {}, 0x40, 0}};
    return elf;
}

TEST(MemoryMapElf, LoadableSegmentsAsFarAsTheFileHoldsThem) {
    for (const bool is_64 : {false, true}) {
        TinyElf elf = segmented();
        elf.is_64 = is_64;
        elf.machine = is_64 ? EM_AARCH64 : EM_ARM;
        MemoryMap map;
        ASSERT_TRUE(map.add_bytes(octets("x"), Address{1}).has_value());
        const auto added = map.add_elf_bytes(elf.build(), 0, {}, "prog");
        ASSERT_TRUE(added.has_value()) << added.error().message;
        EXPECT_EQ(added->section, 1U);
        EXPECT_EQ(added->sections, 2U);
        EXPECT_TRUE(added->notes.empty());
        EXPECT_EQ(text_at(map, 0x8000), "codecode");
        EXPECT_EQ(text_at(map, 0x8008), "");  // .bss
        EXPECT_EQ(text_at(map, 0x9000), "");
        EXPECT_EQ(text_at(map, 0x10002), "ta");
        EXPECT_EQ(map.sections()[2].name, "prog[LOAD 2]");
    }
}

TEST(MemoryMapElf, LoadBiasAndSpace) {
    const TemporaryFolder folder;
    const auto path = folder.write("prog", segmented().build());
    MemoryMap map;
    ASSERT_TRUE(map.add_elf(path, 0xfffff000, SpaceFilter::secure()).has_value());
    EXPECT_EQ(text_at(map, 0x7000), "codecode");  // modulo 2^32
    EXPECT_EQ(text_at(map, 0x7000, non_secure), "");
    EXPECT_EQ(map.sections()[0].name, path.string() + "[LOAD 0]");

    const auto over = map.add_elf(path, 0xffffffff - 0x8003);
    ASSERT_TRUE(over.has_value());
    ASSERT_EQ(over->notes.size(), 1U);
    EXPECT_NE(over->notes[0].find("LOAD 0 leaves the 32-bit address space; its first 0x4 bytes are mapped"),
              std::string::npos);
    EXPECT_EQ(text_at(map, 0xfffffffc), "code");
}

TEST(MemoryMapElf, RelocatableFilesAreLaidOutBySections) {
    TinyElf elf;
    elf.type = ET_REL;
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, octets("12345"), 4, 0},
                    {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, octets("dddd"), 4, 0},
                    {".init", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, octets("abc"), 16, 0},
                    {".comment", SHT_PROGBITS, 0, 0, octets("gcc"), 1, 0}};
    MemoryMap map;
    const auto added = map.add_elf_bytes(elf.build(), 0x100, {}, "mod.ko");
    ASSERT_TRUE(added.has_value()) << added.error().message;
    EXPECT_EQ(added->sections, 2U);
    ASSERT_EQ(added->notes.size(), 1U);
    EXPECT_NE(added->notes[0].find("placed one after another: .text at 0x100, .init at 0x110. Give"), std::string::npos)
        << added->notes[0];
    EXPECT_EQ(text_at(map, 0x100), "12345");
    EXPECT_EQ(text_at(map, 0x110), "abc");
}

/// Relocations, in order: offset, number of the symbol, type, and of AArch64 the addend.
Octets relocations_64(const std::vector<std::array<std::uint64_t, 4>>& all) {
    Octets out;
    for (const auto& [offset, symbol, type, addend] : all)
        for (const std::uint64_t word : {offset, symbol << 32 | type, addend})
            for (unsigned i = 0; i < 64; i += 8) out.push_back(static_cast<std::uint8_t>(word >> i));
    return out;
}
Octets relocations_32(const std::vector<std::array<std::uint32_t, 3>>& all) {
    Octets out;
    for (const auto& [offset, symbol, type] : all)
        for (const std::uint32_t word : {offset, symbol << 8 | type})
            for (unsigned i = 0; i < 32; i += 8) out.push_back(static_cast<std::uint8_t>(word >> i));
    return out;
}
Octets words(const std::vector<std::uint32_t>& all) {
    Octets out;
    for (const std::uint32_t word : all)
        for (unsigned i = 0; i < 32; i += 8) out.push_back(static_cast<std::uint8_t>(word >> i));
    return out;
}
std::string word_at(const MemoryMap& map, std::uint64_t address) {
    const Bytes bytes = map.at(Address{address}, {}).bytes;
    if (bytes.size() < 4) return "nothing";
    return fmt::format("{:02x}{:02x}{:02x}{:02x}", bytes[3], bytes[2], bytes[1], bytes[0]);
}

TEST(MemoryMapElf, BranchesOfRelocatableFilesLeadWhereTheyShould) {
    TinyElf elf;
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    elf.type = ET_REL;
    constexpr std::uint32_t nop = 0xd503201f, bl = 0x94000000, b = 0x14000000, beq = 0x54000000, tbz = 0x36000000;
    elf.sections = {
        {".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, words({bl, bl, nop, bl, b, beq, tbz, bl, nop}), 4, 0},
        {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, Octets(8, 'd'), 4, 0},
        {".other", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, words({nop, nop}), 64, 0},
        {".rela.text", SHT_RELA, 0, 0,
         relocations_64({{0, 1, R_AARCH64_CALL26, 4},
                         {4, 2, R_AARCH64_CALL26, 0},
                         {12, 3, R_AARCH64_CALL26, 0},
                         {16, 4, R_AARCH64_JUMP26, 0},
                         {20, 1, R_AARCH64_CONDBR19, 0},
                         {24, 1, R_AARCH64_TSTBR14, 0},
                         {28, 5, R_AARCH64_CALL26, 0},
                         {32, 1, R_AARCH64_ABS64, 0},
                         {34, 1, R_AARCH64_CALL26, 0},    // an offset beyond the section's end
                         {0, 99, R_AARCH64_CALL26, 0}}),  // a symbol that does not exist
         8, 0, 1}};
    elf.symbols = {{"other", 0, 8, STT_FUNC, STB_GLOBAL, 3},
                   {"near", 0, 0, STT_NOTYPE, STB_GLOBAL, SHN_UNDEF},
                   {"nobody", 0, 0, STT_NOTYPE, STB_GLOBAL, SHN_UNDEF},
                   {"far", 0, 0, STT_NOTYPE, STB_GLOBAL, SHN_UNDEF},
                   {"datum", 0, 8, STT_OBJECT, STB_GLOBAL, 2}};
    const AddressOf outside = [](const std::string& name) -> std::optional<std::uint64_t> {
        if (name == "near") return 0x10000;
        if (name == "far") return 0x10000 + (std::uint64_t{1} << 27) + 16;  // one instruction too far
        return std::nullopt;
    };
    const TemporaryFolder folder;
    MemoryMap map;
    const auto added = map.add_elf(folder.write("mod.ko", elf.build()), 0x10000, {}, "mod.ko", outside);
    ASSERT_TRUE(added.has_value()) << added.error().message;
    EXPECT_EQ(added->sections, 2U);
    ASSERT_EQ(added->notes.size(), 1U);
    EXPECT_NE(added->notes[0].find("Where 4 branches to other files lead is not known"), std::string::npos)
        << added->notes[0];
    EXPECT_EQ(word_at(map, 0x10000), "nothing");   // claimed twice, once for nobody
    EXPECT_EQ(word_at(map, 0x10004), "97ffffff");  // bl .-4
    EXPECT_EQ(word_at(map, 0x10008), "d503201f");
    EXPECT_EQ(word_at(map, 0x1000c), "nothing");   // nobody
    EXPECT_EQ(word_at(map, 0x10010), "nothing");   // far
    EXPECT_EQ(word_at(map, 0x10014), "54000160");  // beq .+0x2c
    EXPECT_EQ(word_at(map, 0x10018), "36000140");  // tbz w0, #0, .+0x28
    EXPECT_EQ(word_at(map, 0x1001c), "nothing");   // data has no place
    EXPECT_EQ(word_at(map, 0x10020), "d503201f");
    EXPECT_EQ(word_at(map, 0x10040), "d503201f");
    // The visible part ends before each of them.
    EXPECT_EQ(map.at(Address{0x10004}, {}).bytes.size(), 8U);
    const std::vector<Region> regions = map.regions();
    ASSERT_EQ(regions.size(), 4U);
    EXPECT_EQ(regions[1].address, Address{0x10014});
    EXPECT_EQ(regions[1].bytes, 8U);
}

TEST(MemoryMapElf, BranchesOfArmRelocatableFilesLeadWhereTheyShould) {
    TinyElf elf;
    elf.type = ET_REL;
    // The addends that assemblers write: they subtract the distance of the program counter.
    constexpr std::uint32_t bl = 0xebfffffe, b = 0xeafffffe, bne = 0x1afffffe, bl_t32 = 0xfffef7ff, b_t32 = 0xbffef7ff;
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0,
                     words({bl, bl, b, bne, bl_t32, bl_t32, b_t32, b_t32}), 4, 0},
                    {".other", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, Octets(8, 'o'), 64, 0},
                    {".rel.text", SHT_REL, 0, 0,
                     relocations_32({{0, 1, R_ARM_CALL},
                                     {4, 2, R_ARM_CALL},
                                     {8, 1, R_ARM_JUMP24},
                                     {12, 2, R_ARM_JUMP24},
                                     {16, 2, R_ARM_THM_PC22},
                                     {20, 1, R_ARM_THM_PC22},
                                     {24, 2, R_ARM_THM_JUMP24},
                                     {28, 1, R_ARM_THM_JUMP24}}),
                     4, 0, 1}};
    elf.symbols = {{"a32", 0, 4, STT_FUNC, STB_GLOBAL, 2}, {"t32", 5, 2, STT_FUNC, STB_GLOBAL, 2}};
    MemoryMap map;
    ASSERT_TRUE(map.add_elf_bytes(elf.build(), 0x8000, {}, "mod.ko").has_value());
    EXPECT_EQ(word_at(map, 0x8000), "eb00000e");  // bl 0x8040
    EXPECT_EQ(word_at(map, 0x8004), "fa00000e");  // blx 0x8044
    EXPECT_EQ(word_at(map, 0x8008), "ea00000c");  // b 0x8040
    EXPECT_EQ(word_at(map, 0x800c), "nothing");   // bne cannot change the instruction set
    EXPECT_EQ(word_at(map, 0x8010), "f818f000");  // bl 0x8044
    EXPECT_EQ(word_at(map, 0x8014), "e814f000");  // blx 0x8040
    EXPECT_EQ(word_at(map, 0x8018), "b814f000");  // b.w 0x8044
    EXPECT_EQ(word_at(map, 0x801c), "nothing");
}

TEST(MemoryMapElf, CutShort) {
    TinyElf elf = segmented();
    elf.segments.back() = {PT_LOAD, 0x20000, octets("end"), 0, 0x10000};
    MemoryMap map;
    const auto added = map.add_elf_bytes(elf.build(), 0, {}, "prog");
    ASSERT_TRUE(added.has_value());
    ASSERT_EQ(added->notes.size(), 1U);
    EXPECT_NE(added->notes[0].find("prog: LOAD 3 declares 0x10000 bytes, but the file ends after"), std::string::npos);
    EXPECT_EQ(text_at(map, 0x20000).substr(0, 3), "end");
}

TEST(MemoryMapElf, Errors) {
    const auto message = [](const Octets& file) {
        MemoryMap map;
        const auto added = map.add_elf_bytes(file, 0, {}, "prog");
        return added ? std::string("added") : added.error().message;
    };
    EXPECT_NE(message(octets("\x7f"
                             "ELG not"))
                  .find("prog: is not an ELF file"),
              std::string::npos);
    EXPECT_NE(message(octets("\x7f"
                             "ELF"))
                  .find("is a damaged ELF file"),
              std::string::npos);
    TinyElf elf = segmented();
    elf.machine = EM_X86_64;
    EXPECT_NE(message(elf.build()).find("is an ELF file for x86-64 (62), but Arm (40) or AArch64 (183)"),
              std::string::npos);
    elf = segmented();
    elf.segments.clear();
    EXPECT_NE(message(elf.build()).find("has no loadable segment with contents"), std::string::npos);
    elf.type = ET_REL;
    EXPECT_NE(message(elf.build()).find("has no executable section with contents"), std::string::npos);
    elf = segmented();
    elf.sections = {{".text", SHT_NOBITS, SHF_ALLOC | SHF_EXECINSTR, 0x8000, {}, 4, 8}};
    EXPECT_NE(message(elf.build()).find("contains only debug information"), std::string::npos);
    Octets big = segmented().build();
    big[EI_DATA] = ELFDATA2MSB;
    std::swap(big[offsetof(Elf32_Ehdr, e_machine)], big[offsetof(Elf32_Ehdr, e_machine) + 1]);
    EXPECT_NE(message(big).find("is a big-endian ELF file"), std::string::npos) << message(big);

    MemoryMap map;
    EXPECT_EQ(map.add_elf("/nonexistent/prog").error().code, Errc::not_found);
    EXPECT_TRUE(map.empty());
}

TEST(MemoryMapElf, EveryFlippedByteIsAnswered) {
    for (const bool is_64 : {false, true}) {
        TinyElf elf = segmented();
        elf.is_64 = is_64;
        elf.machine = is_64 ? EM_AARCH64 : EM_ARM;
        elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x8000, octets("12345678"), 4, 0}};
        const Octets good = elf.build();
        for (std::size_t i = 0; i < good.size(); ++i)
            for (const int flip : {0x01, 0x80, 0xff}) {
                Octets bad = good;
                bad[i] = static_cast<std::uint8_t>(bad[i] ^ flip);
                MemoryMap map;
                if (const auto added = map.add_elf_bytes(bad, 0, {}, "prog"); !added) {
                    EXPECT_FALSE(added.error().message.empty());
                    continue;
                }
                for (const Section& section : map.sections()) {
                    const auto code = map.at(section.address, secure);
                    unsigned sum = 0;
                    for (const std::uint8_t byte : code.bytes) sum += byte;  // the sanitizer checks the range
                    EXPECT_GE(sum, 0U);
                }
            }
        for (std::size_t keep = 0; keep < good.size(); ++keep) {
            MemoryMap map;
            const auto added =
                map.add_elf_bytes(Octets(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(keep)), 0, {}, "p");
            EXPECT_TRUE(added.has_value() || !added.error().message.empty());
        }
    }
}

// --- FILE[@ADDRESS] ---

TEST(ImageArgument, Splits) {
    EXPECT_EQ(*parse_image_argument("vmlinux"), (ImageArgument{"vmlinux", std::nullopt}));
    EXPECT_EQ(*parse_image_argument("d.bin@0xc0008000"), (ImageArgument{"d.bin", Address{0xc0008000}}));
    EXPECT_EQ(*parse_image_argument("d.bin@0"), (ImageArgument{"d.bin", Address{0}}));
    EXPECT_EQ(*parse_image_argument("d.bin@32768"), (ImageArgument{"d.bin", Address{0x8000}}));
    EXPECT_EQ(*parse_image_argument("a@b/d.bin"), (ImageArgument{"a@b/d.bin", std::nullopt}));
    EXPECT_EQ(*parse_image_argument("d@2.bin@0x10"), (ImageArgument{"d@2.bin", Address{0x10}}));
    EXPECT_EQ(*parse_image_argument("d@2.bin"), (ImageArgument{"d@2.bin", std::nullopt}));
    for (const char* text : {"", "@0x8000", "d.bin@", "d.bin@0x", "d.bin@0xg", "d.bin@0x10000000000000000",
                             "d.bin@99999999999999999999"}) {
        const auto argument = parse_image_argument(text);
        if (argument) {
            EXPECT_EQ(std::string(text), "d.bin@0x");  // a file may have this name
        } else {
            EXPECT_EQ(argument.error().code, Errc::usage) << text;
        }
    }
    EXPECT_EQ(parse_image_argument("d.bin@0xg").error().message,
              "'d.bin@0xg': '0xg' after '@' is not an address of up to 64 bits; write it as d.bin@0x8000");
}

TEST(ImageArgument, RecognisesAndAdds) {
    const TemporaryFolder folder;
    const auto elf = folder.write("prog.bin", segmented().build()), raw = folder.write("raw.elf", "abcd"),
               tiny = folder.write("t", "\x7f");
    EXPECT_EQ(*recognise(elf), ImageKind::elf);
    EXPECT_EQ(*recognise(raw), ImageKind::raw);
    EXPECT_EQ(*recognise(tiny), ImageKind::raw);
    EXPECT_EQ(recognise(folder.path() / "gone").error().code, Errc::not_found);

    MemoryMap map;
    ASSERT_TRUE(add_image(map, elf.string()).has_value());
    ASSERT_TRUE(add_image(map, elf.string() + "@0x100000").has_value());
    ASSERT_TRUE(add_image(map, raw.string() + "@0x40").has_value());
    EXPECT_EQ(text_at(map, 0x8000), "codecode");
    EXPECT_EQ(text_at(map, 0x108000), "codecode");
    EXPECT_EQ(text_at(map, 0x40), "abcd");
    const auto nowhere = add_image(map, raw.string());
    EXPECT_EQ(nowhere.error().code, Errc::usage);
    EXPECT_EQ(nowhere.error().message, raw.string() +
                                           ": is a raw memory dump (not an ELF file), and its address in memory is not "
                                           "known; write " +
                                           raw.string() + "@ADDRESS");
}

TEST(MemoryMapCorpus, KernelDump) {
    WM_NEEDS_CORPUS("ptm/tc2");
    MemoryMap map;
    const auto added =
        map.add_file(support::corpus_folder() / "ptm/tc2/kernel_dump.bin", Address{0xc0008000}, 0, 0x50000);
    ASSERT_TRUE(added.has_value());
    EXPECT_TRUE(added->notes.empty());
    EXPECT_EQ(map.at(Address{0xc0008000}, non_secure).bytes.size(), 0x50000U);
    EXPECT_EQ(map.at(Address{0xc0057fff}, secure).bytes.size(), 1U);
    EXPECT_TRUE(map.at(Address{0xc0058000}, secure).bytes.empty());
}

}  // namespace
}  // namespace waymark::image
