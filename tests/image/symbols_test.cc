#include "waymark/image/symbols.h"
#include "support/shell.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <thread>

#include "support/temporary_folder.h"
#include "support/tiny_elf.h"
#include "waymark/image/memory_map.h"

namespace waymark::image {
namespace {

using Octets = std::vector<std::uint8_t>;

/// `name+offset` in hexadecimal; `-` for none.
std::string at(const Symbols& symbols, std::uint64_t address) {
    const auto found = symbols.find(Address{address});
    if (!found) return "-";
    char offset[32];
    std::snprintf(offset, sizeof offset, "+%llx", static_cast<unsigned long long>(found->offset));
    return std::string(found->name) + offset;
}

TEST(Symbols, NothingAtFirst) {
    const Symbols symbols;
    EXPECT_EQ(at(symbols, 0), "-");
    EXPECT_FALSE(symbols.address_of("main"));
    EXPECT_FALSE(symbols.contents(Address{0}));
    EXPECT_EQ(symbols.size(), 0U);
}

TEST(Symbols, SizesAndGaps) {
    Symbols symbols;
    symbols.add("a", Address{0x100}, 0x10, SymbolKind::function);
    symbols.add("b", Address{0x120}, 0x10, SymbolKind::function);
    symbols.add("label", Address{0x140}, 0, SymbolKind::none);
    symbols.add("c", Address{0x150}, 4, SymbolKind::function);
    EXPECT_EQ(at(symbols, 0xff), "-");
    EXPECT_EQ(at(symbols, 0x100), "a+0");
    EXPECT_EQ(at(symbols, 0x10f), "a+f");
    EXPECT_EQ(at(symbols, 0x110), "-");
    EXPECT_EQ(at(symbols, 0x12f), "b+f");
    EXPECT_EQ(at(symbols, 0x130), "-");
    EXPECT_EQ(at(symbols, 0x14f), "label+f");
    EXPECT_EQ(at(symbols, 0x153), "c+3");
    EXPECT_EQ(at(symbols, 0x154), "-");
    symbols.add("last", Address{0x1000}, 0, SymbolKind::function);
    EXPECT_EQ(at(symbols, 0x10000), "last+f000");
    EXPECT_EQ(at(symbols, ~std::uint64_t{0}), "last+ffffffffffffefff");
}

TEST(Symbols, WhatNoSymbolHoldsGoesByWhatComesBefore) {
    Symbols symbols;
    symbols.add("a", Address{0x1100}, 0x10, SymbolKind::function);
    symbols.add("table", Address{0x1118}, 4, SymbolKind::object);
    symbols.add("b", Address{0x2200}, 0x10, SymbolKind::function);
    EXPECT_EQ(symbols.text(Address{0x1130}), "");
    symbols.add_area("/lib/one.so", Address{0x1000}, 0x1000, 0x400);
    symbols.add_area("/lib/two.so", Address{0x2000}, 0x1000, 0);
    symbols.add_area("", Address{0x4000}, 0x1000, 0);
    EXPECT_EQ(symbols.text(Address{0x1104}), "a+0x4");
    EXPECT_EQ(symbols.text(Address{0x1130}), "a+0x30?");
    EXPECT_EQ(symbols.text(Address{0x1fff}), "a+0xeff?");
    // No name across files; before the first function, the place in the file.
    EXPECT_EQ(symbols.text(Address{0x2000}), "two.so+0x0?");
    EXPECT_EQ(symbols.text(Address{0x1010}), "one.so+0x410?");
    EXPECT_EQ(symbols.text(Address{0x4020}), "[no file]+0x20?");
    EXPECT_EQ(symbols.text(Address{0x3000}), "");
    EXPECT_EQ(symbols.area(Address{0x1fff})->name, "one.so");
    EXPECT_EQ(symbols.area(Address{0x1fff})->first, Address{0x1000});
    EXPECT_EQ(symbols.area(Address{0x1fff})->bytes, 0x1000U);
    EXPECT_EQ(symbols.area(Address{0x1fff})->file, "/lib/one.so");
    EXPECT_FALSE(symbols.area(Address{0xfff}));
    EXPECT_FALSE(symbols.area(Address{0x5000}));
    // The procedure linkage table is not part of the code after it.
    symbols.add("puts@plt", Address{0x4008}, 0xc, SymbolKind::function);
    EXPECT_EQ(symbols.text(Address{0x4020}), "[no file]+0x20?");
    EXPECT_FALSE(symbols.before(Address{0x4020}));
    // A stretch without names gets one name, from any address in it.
    ASSERT_TRUE(symbols.before(Address{0x1130}));
    EXPECT_EQ(symbols.before(Address{0x1130})->name, "a+0x10?");
    EXPECT_EQ(symbols.before(Address{0x1130})->address, Address{0x1110});
    EXPECT_FALSE(symbols.before(Address{0x1104}));
    EXPECT_FALSE(symbols.before(Address{0x1010}));
}

TEST(Symbols, TheInnermostWinsAndLabelsDoNotCutFunctions) {
    Symbols symbols;
    symbols.add("outer", Address{0x100}, 0x100, SymbolKind::function);
    symbols.add("inner", Address{0x140}, 0x10, SymbolKind::function);
    symbols.add("label", Address{0x180}, 0, SymbolKind::none);
    symbols.add("after", Address{0x1f0}, 0x20, SymbolKind::object);
    EXPECT_EQ(at(symbols, 0x13f), "outer+3f");
    EXPECT_EQ(at(symbols, 0x140), "inner+0");
    EXPECT_EQ(at(symbols, 0x150), "outer+50");
    EXPECT_EQ(at(symbols, 0x180), "outer+80");
    EXPECT_EQ(at(symbols, 0x1f0), "after+0");
    EXPECT_EQ(at(symbols, 0x20f), "after+1f");
    EXPECT_EQ(at(symbols, 0x210), "-");
    EXPECT_EQ(symbols.address_of("label"), Address{0x180});
}

TEST(Symbols, OneAddressSeveralNames) {
    Symbols symbols;
    symbols.add("nothing", Address{0}, 8, SymbolKind::none);
    symbols.add("object", Address{0}, 16, SymbolKind::object);
    symbols.add("function", Address{0}, 4, SymbolKind::function);
    symbols.add("alias", Address{0}, 4, SymbolKind::function);
    EXPECT_EQ(at(symbols, 3), "function+3");
    EXPECT_EQ(at(symbols, 4), "object+4");
    EXPECT_EQ(at(symbols, 15), "object+f");
    EXPECT_EQ(at(symbols, 16), "-");
    EXPECT_EQ(symbols.address_of("alias"), Address{0});
}

TEST(Symbols, AFunctionIsCalledByItsNameWithoutParameters) {
    Symbols symbols;
    symbols.add("_Z1fi", Address{0x100}, 0x10, SymbolKind::function);
    symbols.add("_Z1gi", Address{0x200}, 0x10, SymbolKind::function);
    symbols.add("_Z1gv", Address{0x300}, 0x10, SymbolKind::function);
    symbols.add("_Z2hhi", Address{0x400}, 0x10, SymbolKind::function);
    symbols.add("_Z3thei", Address{0x500}, 0x10, SymbolKind::object);
    EXPECT_EQ(symbols.function_called("f"), Address{0x100});
    EXPECT_EQ(symbols.function_called("f(int)"), Address{0x100});
    EXPECT_EQ(symbols.function_called("_Z1fi"), Address{0x100});
    EXPECT_EQ(symbols.function_called("g"), std::nullopt) << "two have that name";
    EXPECT_EQ(symbols.function_called("h"), std::nullopt);
    EXPECT_EQ(symbols.function_called("the"), std::nullopt) << "it is no function";
    symbols.add("_Z1fj", Address{0x100}, 0x10, SymbolKind::function);
    EXPECT_EQ(symbols.function_called("f"), Address{0x100}) << "two names of one function";
}

TEST(Symbols, TopOfTheAddressSpace) {
    Symbols symbols;
    const std::uint64_t top = ~std::uint64_t{0};
    symbols.add("huge", Address{top - 9}, top, SymbolKind::function);
    symbols.add("edge", Address{top}, 1, SymbolKind::function);
    EXPECT_EQ(at(symbols, top - 1), "huge+8");
    EXPECT_EQ(at(symbols, top), "edge+0");
    symbols.add("bottom", Address{0}, top, SymbolKind::object);
    EXPECT_EQ(at(symbols, top - 10), "bottom+fffffffffffffff5");
}

TEST(Symbols, AgreesWithASearchThroughAll) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937 random(seed);
        struct One {
            std::uint64_t address, bytes;
        };
        std::vector<One> all;
        Symbols symbols;
        for (unsigned i = 0; i < 15; ++i) {
            const One one{random() % 64, random() % 4 == 0 ? 0 : 1 + random() % 20};
            symbols.add(std::to_string(i), Address{one.address}, one.bytes, SymbolKind::function);
            all.push_back(one);
        }
        const auto covers = [&](std::size_t i, std::uint64_t address) {
            return all[i].bytes != 0 && all[i].address <= address && address < all[i].address + all[i].bytes;
        };
        for (std::uint64_t address = 0; address < 96; ++address) {
            std::optional<std::size_t> best;
            for (std::size_t i = 0; i < all.size(); ++i)
                if (covers(i, address) && (!best || all[i].address > all[*best].address)) best = i;
            if (!best) {
                // A symbol without a size applies if it is the nearest one before the address, and no symbol with a
                // size contains its start.
                std::uint64_t nearest = 0;
                bool any = false;
                for (const One& one : all)
                    if (one.address <= address) {
                        nearest = std::max(nearest, one.address);
                        any = true;
                    }
                for (std::size_t i = all.size(); any && i-- > 0;)
                    if (all[i].address == nearest && all[i].bytes == 0) best = i;
                for (std::size_t i = 0; i < all.size(); ++i)
                    if (covers(i, nearest)) best.reset();
            }
            const auto found = symbols.find(Address{address});
            ASSERT_EQ(found.has_value(), best.has_value()) << "seed " << seed << " address " << address;
            if (best) {
                ASSERT_EQ(found->name, std::to_string(*best)) << "seed " << seed << " address " << address;
            }
        }
    }
}

TEST(Symbols, Demangling) {
    EXPECT_EQ(demangle("_ZN3foo3barEi"), "foo::bar(int)");
    EXPECT_EQ(demangle("main"), "main");
    EXPECT_EQ(demangle("i"), "i");
    EXPECT_EQ(demangle("_Znonsense"), "_Znonsense");
    EXPECT_EQ(demangle("_Z" + std::string(100000, 'P')), "_Z" + std::string(100000, 'P'));
    Symbols symbols;
    symbols.add("_ZN3foo3barEi", Address{0x10}, 4, SymbolKind::function);
    EXPECT_EQ(at(symbols, 0x12), "foo::bar(int)+2");
    EXPECT_EQ(symbols.find(Address{0x12})->symbol.linkage_name, "_ZN3foo3barEi");
    EXPECT_EQ(symbols.address_of("_ZN3foo3barEi"), Address{0x10});
    EXPECT_EQ(symbols.address_of("foo::bar(int)"), Address{0x10});
    EXPECT_FALSE(symbols.address_of("foo::bar"));
    EXPECT_EQ(symbols.function_called("foo::bar"), Address{0x10});
}

TEST(Symbols, NamesThatCannotBeReadStayAsTheyAre) {
    // A function with 255 parameters of one type, whose name has 255 letters: 65,536 bytes, and one more.
    std::string parameters = "255" + std::string(255, 'X');
    for (unsigned i = 0; i < 254; ++i) parameters += "S_";
    EXPECT_EQ(demangle("_Z1f" + parameters).size(), 65536U);
    EXPECT_TRUE(demangle("_Z2ff" + parameters) == "_Z2ff" + parameters);
    EXPECT_EQ(demangle("_ZN3foo3barEi@plt"), "foo::bar(int)@plt");
    EXPECT_EQ(demangle("i@plt"), "i@plt");
}

/// Functions `f`, of 16 bytes, and `g` without a size, in a file whose code is [0x1000, 0x2000).
Symbols with_areas() {
    Symbols out;
    out.add("f", Address{0x1100}, 0x10, SymbolKind::function);
    out.add_area("/lib/lib.so", Address{0x1000}, 0x1000, 0x400);
    out.add_area("plain", Address{0x3000}, 1, 0);
    out.add_area("/nothing", Address{0x5000}, 0, 0);
    out.add_area("/", Address{0xfffffffffffffff0}, 0x100, 0x20);
    return out;
}

TEST(Symbols, AnAreaIsThePlaceInItsFile) {
    const Symbols symbols = with_areas();
    const auto area = [&](std::uint64_t address) -> std::string {
        const auto found = symbols.area(Address{address});
        return found ? fmt::format("{} {} {:#x}+{:#x} at {:#x}", found->file, found->name, found->first.value,
                                   found->bytes, found->offset)
                     : "-";
    };
    EXPECT_EQ(area(0xfff), "-");
    EXPECT_EQ(area(0x1000), "/lib/lib.so lib.so 0x1000+0x1000 at 0x400");
    EXPECT_EQ(area(0x1fff), "/lib/lib.so lib.so 0x1000+0x1000 at 0x400");
    EXPECT_EQ(area(0x2000), "-");
    EXPECT_EQ(area(0x3000), "plain plain 0x3000+0x1 at 0x0");
    EXPECT_EQ(area(0x3001), "-");
    EXPECT_EQ(area(0x5000), "-");
    EXPECT_EQ(area(~std::uint64_t{0}), "/  0xfffffffffffffff0+0x10 at 0x20");
}

TEST(Symbols, WhatHasNoSymbolGetsTheNameOfTheFunctionBeforeOrOfItsFile) {
    Symbols symbols = with_areas();
    EXPECT_EQ(symbols.text(Address{0xfff}), "");
    EXPECT_EQ(symbols.text(Address{0x1000}), "lib.so+0x400?");
    EXPECT_EQ(symbols.text(Address{0x10ff}), "lib.so+0x4ff?");
    EXPECT_EQ(symbols.text(Address{0x1100}), "f");
    EXPECT_EQ(symbols.text(Address{0x110f}), "f+0xf");
    EXPECT_EQ(symbols.text(Address{0x1110}), "f+0x10?");
    EXPECT_EQ(symbols.text(Address{0x3000}), "plain+0x0?");
    EXPECT_EQ(symbols.text(Address{0xfffffffffffffff1}), "[no file]+0x21?");
    const auto before = [&](std::uint64_t address) -> std::string {
        const auto found = symbols.before(Address{address});
        return found ? fmt::format("{} at {:#x}", found->name, found->address.value) : "-";
    };
    EXPECT_EQ(before(0x10ff), "-");
    EXPECT_EQ(before(0x110f), "-");
    EXPECT_EQ(before(0x1110), "f+0x10? at 0x1110");
    EXPECT_EQ(before(0x1fff), "f+0x10? at 0x1110");
    EXPECT_EQ(before(0x2000), "-");
    // Data are no code; an entry of the procedure linkage table ends what came before it.
    symbols.add("datum", Address{0x1200}, 4, SymbolKind::object);
    EXPECT_EQ(before(0x1204), "f+0x10? at 0x1110");
    symbols.add("puts@plt", Address{0x1300}, 4, SymbolKind::function);
    EXPECT_EQ(before(0x1304), "-");
    EXPECT_EQ(symbols.approximate(Address{0x1304}), "lib.so+0x704?");
    EXPECT_EQ(symbols.approximate(Address{0x1204}), "f+0x104?");
}

TEST(Symbols, TheFunctionBeforeIsSoughtBehind255Data) {
    for (const std::uint64_t data : {255U, 256U}) {
        Symbols symbols;
        symbols.add_area("/lib.so", Address{0x1000}, 0x10000, 0);
        symbols.add("f", Address{0x1000}, 4, SymbolKind::function);
        for (std::uint64_t i = 0; i < data; ++i) symbols.add("d", Address{0x1010 + 0x10 * i}, 4, SymbolKind::object);
        EXPECT_EQ(symbols.before(Address{0x1010 + 0x10 * data}).has_value(), data == 255);
    }
}

TEST(Symbols, AFunctionIsFoundByItsNameAloneIfThereIsOne) {
    Symbols symbols;
    symbols.add("_Z4sortPii", Address{0x100}, 4, SymbolKind::function);
    symbols.add("_Z4sortPii@plt", Address{0x200}, 4, SymbolKind::function);
    symbols.add("_Z5sortsv", Address{0x300}, 4, SymbolKind::function);
    symbols.add("_Z1vv", Address{0x400}, 4, SymbolKind::object);
    EXPECT_EQ(symbols.function_called("sort"), Address{0x100});
    EXPECT_EQ(symbols.function_called("sorts"), Address{0x300});
    EXPECT_EQ(symbols.function_called("sort(int*, int)"), Address{0x100});
    EXPECT_EQ(symbols.function_called("v"), std::nullopt);
    EXPECT_EQ(symbols.function_called("sor"), std::nullopt);
    symbols.add("_Z4sortPfi", Address{0x100}, 4, SymbolKind::function);
    EXPECT_EQ(symbols.function_called("sort"), Address{0x100}) << "two names of one place";
    symbols.add("_Z4sortPdi", Address{0x500}, 4, SymbolKind::function);
    EXPECT_EQ(symbols.function_called("sort"), std::nullopt);
}

TEST(Symbols, ABaseAnswersWhereTheTableIsSilent) {
    auto base = std::make_shared<Symbols>();
    base->add("file", Address{0x100}, 0x10, SymbolKind::function);
    base->add("both", Address{0x200}, 0x10, SymbolKind::function);
    base->add_area("/bin/file", Address{0x100}, 0x400, 0);
    Symbols symbols;
    symbols.add("generated", Address{0x180}, 0x10, SymbolKind::function);
    symbols.add("both", Address{0x280}, 0x10, SymbolKind::function);
    symbols.set_base(base);
    EXPECT_EQ(at(symbols, 0x108), "file+8");
    EXPECT_EQ(at(symbols, 0x188), "generated+8");
    EXPECT_EQ(symbols.address_of("file"), Address{0x100});
    EXPECT_EQ(symbols.address_of("both"), Address{0x280});
    EXPECT_EQ(symbols.text(Address{0x110}), "file+0x10?");
    EXPECT_EQ(symbols.area(Address{0x100})->name, "file");
    EXPECT_EQ(symbols.size(), 4U);
    EXPECT_FALSE(symbols.are_for_linux());
    std::string names;
    for (const Symbol& symbol : symbols.all()) names += fmt::format("{} ", symbol.name);
    EXPECT_EQ(names, "file generated both both ");
}

TinyElf program() {
    TinyElf elf;
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x8000, Octets(0x40), 4, 0}};
    elf.symbols = {{"$a", 0x8000, 0, STT_NOTYPE, STB_LOCAL, 1},    {"arm", 0x8000, 8, STT_FUNC, STB_GLOBAL, 1},
                   {"$t", 0x8008, 0, STT_NOTYPE, STB_LOCAL, 1},    {"thumb", 0x8009, 8, STT_FUNC, STB_LOCAL, 1},
                   {"$d.7", 0x8010, 0, STT_NOTYPE, STB_LOCAL, 1},  {"table", 0x8011, 4, STT_OBJECT, STB_GLOBAL, 1},
                   {"tail", 0x8020, 0, STT_NOTYPE, STB_GLOBAL, 1}, {"gone", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
                   {"file.c", 0, 0, STT_FILE, STB_LOCAL, SHN_ABS}, {"tls", 4, 4, STT_TLS, STB_GLOBAL, 1},
                   {"$dollar", 0x8030, 4, STT_FUNC, STB_GLOBAL, 1}};
    return elf;
}

TEST(SymbolsElf, SymbolsOfAFileAreWhatItsTableSays) {
    const auto listed_with = [](std::uint64_t load_bias) {
        Symbols symbols;
        EXPECT_EQ(symbols.add_elf_bytes(program().build(), load_bias, "x").value(), 5U);
        std::string out;
        for (const Symbol& s : symbols.all())
            out += fmt::format("{} {:#x}+{} kind {} isa {}\n", s.name, s.address.value, s.bytes,
                               static_cast<int>(s.kind), static_cast<int>(s.isa));
        return out;
    };
    const auto expected = [](std::uint64_t bias) {
        std::string out;
        const auto add = [&](const char* name, std::uint64_t address, unsigned bytes, SymbolKind kind, isa::Isa isa) {
            out += fmt::format("{} {:#x}+{} kind {} isa {}\n", name, (address + bias) & 0xffffffff, bytes,
                               static_cast<int>(kind), static_cast<int>(isa));
        };
        add("arm", 0x8000, 8, SymbolKind::function, isa::Isa::a32);
        add("thumb", 0x8008, 8, SymbolKind::function, isa::Isa::t32);
        add("table", 0x8011, 4, SymbolKind::object, isa::Isa::a32);
        add("tail", 0x8020, 0, SymbolKind::none, isa::Isa::a32);
        add("$dollar", 0x8030, 4, SymbolKind::function, isa::Isa::a32);
        return out;
    };
    EXPECT_EQ(listed_with(0), expected(0));
    EXPECT_EQ(listed_with(0x1000), expected(0x1000));
    EXPECT_EQ(listed_with(0xffffff00), expected(0xffffff00)) << "modulo 2^32";
    // Mapping symbols hold up to the end of the section.
    Symbols symbols;
    ASSERT_TRUE(symbols.add_elf_bytes(program().build(), 0x1000, "x").has_value());
    EXPECT_EQ(symbols.contents(Address{0x8fff}), std::nullopt);
    EXPECT_EQ(symbols.contents(Address{0x9000}), Contents::a32);
    EXPECT_EQ(symbols.contents(Address{0x9007}), Contents::a32);
    EXPECT_EQ(symbols.contents(Address{0x9008}), Contents::t32);
    EXPECT_EQ(symbols.contents(Address{0x9010}), Contents::data);
    EXPECT_EQ(symbols.contents(Address{0x903f}), Contents::data);
    EXPECT_EQ(symbols.contents(Address{0x9040}), std::nullopt);
    EXPECT_EQ(at(symbols, 0x902f), "tail+f");
    EXPECT_EQ(at(symbols, 0x9034), "-");
}

TEST(SymbolsElf, MappingSymbolsHaveTwoLettersAndMaybeASuffix) {
    const auto contents = [](const std::string& name) {
        TinyElf elf;
        elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x8000, Octets(0x40), 4, 0}};
        elf.symbols = {{name, 0x8000, 0, STT_NOTYPE, STB_LOCAL, 1}};
        Symbols symbols;
        EXPECT_TRUE(symbols.add_elf_bytes(elf.build(), 0, "x").has_value());
        EXPECT_EQ(symbols.size(), symbols.contents(Address{0x8000}) ? 0U : 1U) << name;
        return symbols.contents(Address{0x8000});
    };
    EXPECT_EQ(contents("$a"), Contents::a32);
    EXPECT_EQ(contents("$t.1"), Contents::t32);
    EXPECT_EQ(contents("$x.foo"), Contents::a64);
    EXPECT_EQ(contents("$d."), Contents::data);
    for (const char* const name : {"$", "$b", "$dx", "xd", "a", "$d7"}) EXPECT_EQ(contents(name), std::nullopt) << name;
}

TEST(SymbolsElf, AbsoluteSymbolsNameNoCode) {
    TinyElf elf = program();
    elf.symbols.push_back({"_stack_bytes", 0x8002, 0, STT_NOTYPE, STB_GLOBAL, SHN_ABS});
    elf.symbols.push_back({"_version", 0x8036, 4, STT_FUNC, STB_GLOBAL, SHN_ABS});
    Symbols symbols;
    const auto count = symbols.add_elf_bytes(elf.build(), 0, "prog");
    ASSERT_TRUE(count.has_value()) << count.error().message;
    EXPECT_EQ(*count, 5U);
    EXPECT_EQ(at(symbols, 0x8002), "arm+2");
    EXPECT_EQ(at(symbols, 0x8036), "-");
    EXPECT_FALSE(symbols.address_of("_stack_bytes"));
}

TEST(SymbolsElf, ArmWithThumbBitsAndMappingSymbols) {
    for (const int table : {SHT_SYMTAB, SHT_DYNSYM}) {
        TinyElf elf = program();
        elf.symbol_table = static_cast<std::uint32_t>(table);
        Symbols symbols;
        const auto count = symbols.add_elf_bytes(elf.build(), 0, "prog");
        ASSERT_TRUE(count.has_value()) << count.error().message;
        EXPECT_EQ(*count, 5U);
        EXPECT_EQ(at(symbols, 0x8004), "arm+4");
        EXPECT_EQ(at(symbols, 0x8008), "thumb+0");
        EXPECT_EQ(symbols.find(Address{0x8008})->symbol.isa, isa::Isa::t32);
        EXPECT_EQ(symbols.find(Address{0x8004})->symbol.isa, isa::Isa::a32);
        EXPECT_EQ(symbols.address_of("thumb"), Address{0x8008});
        EXPECT_EQ(at(symbols, 0x8010), "-");
        EXPECT_EQ(symbols.find(Address{0x8011})->symbol.kind, SymbolKind::object);
        EXPECT_EQ(symbols.find(Address{0x8004})->symbol.kind, SymbolKind::function);
        EXPECT_EQ(at(symbols, 0x8011), "table+0");  // an object at an odd address is no Thumb code
        EXPECT_EQ(at(symbols, 0x802f), "tail+f");
        EXPECT_EQ(at(symbols, 0x8031), "$dollar+1");
        EXPECT_EQ(at(symbols, 0x8034), "-");
        EXPECT_FALSE(symbols.address_of("$a"));
        EXPECT_FALSE(symbols.address_of("gone"));
        EXPECT_EQ(symbols.contents(Address{0x8007}), Contents::a32);
        EXPECT_EQ(symbols.contents(Address{0x8008}), Contents::t32);
        EXPECT_EQ(symbols.contents(Address{0x803f}), Contents::data);
        EXPECT_FALSE(symbols.contents(Address{0x8040}));
        EXPECT_FALSE(symbols.contents(Address{0x7fff}));
        ASSERT_EQ(symbols.all().size(), 5U);
        EXPECT_EQ(symbols.all()[1].name, "thumb");
    }
}

TEST(SymbolsElf, ASymbolWithoutSizeEndsWithItsSection) {
    TinyElf elf = program();
    elf.symbols.pop_back();
    Symbols symbols;
    ASSERT_TRUE(symbols.add_elf_bytes(elf.build(), 0, "prog").has_value());
    EXPECT_EQ(at(symbols, 0x803f), "tail+1f");
    EXPECT_EQ(at(symbols, 0x8040), "-");

    elf.symbols.push_back({"end", 0x8040, 0, STT_NOTYPE, STB_GLOBAL, 1});  // as the linker's _end
    ASSERT_TRUE(symbols.add_elf_bytes(elf.build(), 0, "prog").has_value());
    EXPECT_EQ(at(symbols, 0x8040), "end+0");
    EXPECT_EQ(at(symbols, 0x8041), "-");
}

TEST(SymbolsElf, AArch64AndBias) {
    TinyElf elf = program();
    elf.is_64 = true;
    elf.machine = EM_AARCH64;
    elf.symbols = {{"$x", 0x8000, 0, STT_NOTYPE, STB_LOCAL, 1}, {"f", 0x8000, 8, STT_FUNC, STB_GLOBAL, 1}};
    Symbols symbols;
    ASSERT_TRUE(symbols.add_elf_bytes(elf.build(), 0xffff000000000000, "prog").has_value());
    EXPECT_EQ(at(symbols, 0xffff000000008004), "f+4");
    EXPECT_EQ(symbols.contents(Address{0xffff000000008004}), Contents::a64);
}

TEST(SymbolsElf, SeveralFilesMergeAndViewsStay) {
    Symbols symbols;
    ASSERT_TRUE(symbols.add_elf_bytes(program().build(), 0, "one").has_value());
    const Symbol first = symbols.find(Address{0x8000})->symbol;
    for (std::uint64_t i = 1; i < 50; ++i)
        ASSERT_TRUE(symbols.add_elf_bytes(program().build(), i * 0x1000, "more").has_value());
    EXPECT_EQ(at(symbols, 0x9004), "arm+4");
    EXPECT_EQ(symbols.size(), 250U);
    EXPECT_EQ(first.name, "arm");
    EXPECT_EQ(symbols.address_of("arm"), Address{0x8000});
}

TEST(SymbolsElf, RelocatableFilesAgreeWithTheMemoryMap) {
    TinyElf elf;
    elf.type = ET_REL;
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, Octets(6, 'a'), 4, 0},
                    {".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 0, Octets(8, 'd'), 4, 0},
                    {".init", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0, Octets(8, 'b'), 8, 0}};
    elf.symbols = {{"f", 0, 6, STT_FUNC, STB_GLOBAL, 1},
                   {"v", 0, 8, STT_OBJECT, STB_GLOBAL, 2},
                   {"g", 5, 2, STT_FUNC, STB_GLOBAL, 3}};
    Symbols symbols;
    MemoryMap map;
    ASSERT_EQ(symbols.add_elf_bytes(elf.build(), 0x100, "mod").value(), 2U);
    ASSERT_TRUE(map.add_elf_bytes(elf.build(), 0x100, {}, "mod").has_value());
    EXPECT_EQ(symbols.address_of("f"), Address{0x100});
    EXPECT_EQ(symbols.address_of("g"), Address{0x10c});
    EXPECT_EQ(map.at(Address{0x10c}, {}).bytes[0], 'b');
}

// Procedure linkage tables as GNU ld writes them.

TinyElf linked(std::uint16_t machine, bool is_64, std::uint64_t address, Octets code, Octets relocations) {
    TinyElf elf;
    elf.is_64 = is_64;
    elf.machine = machine;
    elf.symbol_table = SHT_DYNSYM;
    elf.symbols = {{"puts", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF}, {"exit", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF}};
    elf.sections = {{".plt", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, address, std::move(code), 16, 0},
                    {is_64 ? ".rela.plt" : ".rel.plt", is_64 ? std::uint32_t{SHT_RELA} : std::uint32_t{SHT_REL},
                     SHF_ALLOC, 0x100, std::move(relocations), 8, 0, 1}};
    return elf;
}
/// The numbers in little-endian order, each in `bytes` bytes.
Octets numbers(const std::vector<std::uint64_t>& all, unsigned bytes) {
    Octets out;
    for (const std::uint64_t one : all)
        for (unsigned i = 0; i < bytes; ++i) out.push_back(static_cast<std::uint8_t>(one >> 8 * i));
    return out;
}
constexpr std::uint64_t rela(std::uint64_t symbol, std::uint64_t type) { return symbol << 32 | type; }
Symbols symbols_of(const TinyElf& elf) {
    Symbols out;
    out.accept(Machines::arm_and_x86_64);
    EXPECT_TRUE(out.add_elf_bytes(elf.build(), 0, "prog").has_value());
    return out;
}

TEST(SymbolsElf, LinkageTableOfArm) {
    const Octets code =
        numbers({0xe52de004, 0xe59fe004, 0xe08fe00e, 0xe5bef008, 0x1c18,  // what resolves a name
                 0xe28fc601, 0xe28cca10, 0xe5bcf0a0,  // +14: add ip, pc, #1 << 20; add ip, ip, #16 << 12; …
                 0x46c04778, 0xe28fc600, 0xe28ccaff, 0xe5bcffff,   // +20: the same behind bx pc; nop
                 0xe28fc600, 0xe28cca02, 0xe5bcf000,               // +30: a pointer that no relocation names
                 0xe28fc600, 0xe28cca03, 0xe59cf000, 0xe28fc600},  // +3c: another instruction at its end
                4);
    constexpr std::uint32_t jump_slot = R_ARM_JUMP_SLOT;
    const Symbols symbols = symbols_of(linked(EM_ARM, false, 0x8000, code,
                                              numbers({0x801c + 0x1100a0, 1 << 8 | jump_slot, 0x802c + 0xfffff,
                                                       2 << 8 | jump_slot, 0x8044 + 0x3000, 1 << 8 | jump_slot},
                                                      4)));
    EXPECT_EQ(at(symbols, 0x8000), "PLT0@plt+0");
    EXPECT_EQ(at(symbols, 0x8013), "PLT0@plt+13");
    EXPECT_EQ(at(symbols, 0x8014), "puts@plt+0");
    EXPECT_EQ(at(symbols, 0x801f), "puts@plt+b");
    EXPECT_EQ(symbols.find(Address{0x8014})->symbol.isa, isa::Isa::a32);
    EXPECT_EQ(at(symbols, 0x8020), "exit@plt+0");
    EXPECT_EQ(at(symbols, 0x802f), "exit@plt+f");
    EXPECT_EQ(symbols.find(Address{0x8020})->symbol.isa, isa::Isa::t32);
    for (const std::uint64_t none : {0x8030U, 0x803cU, 0x8044U, 0x8048U}) EXPECT_EQ(at(symbols, none), "-");
    EXPECT_EQ(symbols.size(), 3U);
}

TEST(SymbolsElf, LinkageTableOfAArch64) {
    constexpr std::uint32_t bti_c = 0xd503245f, stp = 0xa9bf7bf0, br = 0xd61f0220, nop = 0xd503201f;
    for (const bool guarded : {false, true}) {
        std::vector<std::uint64_t> code{stp, 0xf00000f0, 0xf947fe11, 0x913fe210, br, nop, nop};
        code.insert(guarded ? code.begin() : code.end(), guarded ? bti_c : nop);
        // adrp x16, 0x420000; ldr x17, [x16, #8]
        code.insert(code.end(), {0x90000110, 0xf9400611, 0x91002210, br});
        // adrp x16, 0x3ff000, which is before the table; ldr x17, [x16, #4088]
        code.insert(code.end(), {bti_c, 0xf0fffff0, 0xf947fe11, 0x913fe210, br});
        // A pointer that no relocation names, and instructions that are no entry.
        code.insert(code.end(), {0x90000110, 0xf9400a11, 0x91004210, br, 0x90000110, 0xb9400211, 0x91000210, br});
        const Symbols symbols = symbols_of(
            linked(EM_AARCH64, true, 0x400000, numbers(code, 4),
                   numbers({0x420008, rela(1, R_AARCH64_JUMP_SLOT), 0, 0x3ffff8, rela(2, R_AARCH64_JUMP_SLOT), 0}, 8)));
        EXPECT_EQ(at(symbols, 0x400000), "PLT0@plt+0");
        EXPECT_EQ(at(symbols, 0x40001f), "PLT0@plt+1f");
        EXPECT_EQ(at(symbols, 0x400020), "puts@plt+0");
        EXPECT_EQ(at(symbols, 0x40002f), "puts@plt+f");
        EXPECT_EQ(at(symbols, 0x400030), "exit@plt+0");
        EXPECT_EQ(at(symbols, 0x400043), "exit@plt+13");
        EXPECT_EQ(at(symbols, 0x400044), "-");
        EXPECT_EQ(symbols.size(), 3U);
    }
}

TEST(SymbolsElf, LinkageTablesOfX86) {
    const Octets code{0xff, 0x35, 0xe2, 0x2f, 0, 0, 0xff, 0x25, 0xe4, 0x2f, 0, 0,    0x0f, 0x1f, 0x40, 0,  // push, jmp
                      0xff, 0x25, 0xea, 0x0f, 0, 0, 0x68, 0,    0,    0,    0, 0xe9, 0xe0, 0xff, 0xff, 0xff};
    // endbr64; jmp *-0x10a(%rip), and jumps of other kinds
    const Octets second{0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x25, 0xf6, 0xfe, 0xff, 0xff, 0x66, 0x0f, 0x1f, 0x44, 0, 0,
                        0xf3, 0x0f, 0x1e, 0xfa, 0xff, 0x24, 0xe6, 0xfe, 0xff, 0xff, 0x66, 0x0f, 0x1f, 0x44, 0, 0,
                        0xf3, 0x0f, 0x1e, 0xfa, 0xfe, 0x25, 0xd6, 0xfe, 0xff, 0xff, 0x66, 0x0f, 0x1f, 0x44, 0, 0};
    TinyElf elf = linked(EM_X86_64, true, 0x1000, code,
                         numbers({0x2000, rela(1, R_X86_64_JUMP_SLOT), 0, 0x1000, rela(2, R_X86_64_JUMP_SLOT), 0}, 8));
    elf.sections.push_back({".plt.sec", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x1100, second, 16, 0});
    const Symbols symbols = symbols_of(elf);
    EXPECT_EQ(at(symbols, 0x1000), "PLT0@plt+0");
    EXPECT_EQ(at(symbols, 0x100f), "PLT0@plt+f");
    EXPECT_EQ(at(symbols, 0x1010), "puts@plt+0");
    EXPECT_EQ(at(symbols, 0x101f), "puts@plt+f");
    EXPECT_EQ(at(symbols, 0x1100), "exit@plt+0");
    EXPECT_EQ(at(symbols, 0x110f), "exit@plt+f");
    EXPECT_EQ(at(symbols, 0x1110), "-");
    EXPECT_EQ(symbols.size(), 3U);
}

TEST(SymbolsElf, Errors) {
    Symbols symbols;
    EXPECT_EQ(symbols.add_elf("/nonexistent").error().code, Errc::not_found);
    EXPECT_EQ(symbols.add_elf_bytes({1, 2, 3, 4, 5}, 0, "x").error().code, Errc::bad_format);
    TinyElf stripped = program();
    stripped.symbols.clear();
    EXPECT_EQ(symbols.add_elf_bytes(stripped.build(), 0, "x").value(), 0U);
}

/// Lets every symbol but the first begin a byte further inside the name of the first.
Octets with_shared_tails(const TinyElf& elf) {
    Octets file = elf.build();
    Elf32_Ehdr header;
    std::memcpy(&header, file.data(), sizeof header);
    for (std::size_t i = 0; i < header.e_shnum; ++i) {
        Elf32_Shdr section;
        std::memcpy(&section, file.data() + header.e_shoff + i * sizeof section, sizeof section);
        if (section.sh_type != SHT_SYMTAB) continue;
        for (std::size_t n = 1; n < section.sh_size / sizeof(Elf32_Sym); ++n) {
            Elf32_Sym symbol;
            std::uint8_t* const at = file.data() + section.sh_offset + n * sizeof symbol;
            std::memcpy(&symbol, at, sizeof symbol);
            symbol.st_name = static_cast<Elf32_Word>(n);
            std::memcpy(at, &symbol, sizeof symbol);
        }
    }
    return file;
}

std::uint64_t name_bytes(const Symbols& symbols) {
    std::uint64_t out = 0;
    for (const Symbol& symbol : symbols.all()) out += symbol.name.size() + symbol.linkage_name.size();
    return out;
}

TEST(SymbolsElf, NamesThatShareTheirTailsStayInProportionToTheFile) {
    TinyElf elf;
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x8000, Octets(0x40), 4, 0}};
    std::string longest;
    while (longest.size() < 100000) longest += "\xc3\xa4" + std::to_string(longest.size());
    elf.symbols.push_back({longest, 0x8000, 4, STT_FUNC, STB_GLOBAL, 1});
    for (std::uint64_t i = 1; i < 2000; ++i) elf.symbols.push_back({"", 0x8000 + i, 0, STT_FUNC, STB_GLOBAL, 1});
    const Octets file = with_shared_tails(elf);
    Symbols symbols;
    ASSERT_EQ(symbols.add_elf_bytes(file, 0, "tails").value(), 2000U);
    EXPECT_LE(name_bytes(symbols), 16 * file.size());  // without a bound 400 MB
    // Names that fit are shown whole; others show that they were cut, and never inside a character.
    EXPECT_EQ(symbols.find(Address{0x8000})->name, longest);
    const std::string_view cut = symbols.find(Address{0x8000 + 1998})->name;
    ASSERT_TRUE(cut.ends_with("…"));
    EXPECT_LE(cut.size(), 131U);
    EXPECT_EQ(cut.substr(0, cut.size() - 3), std::string_view(longest).substr(1998, cut.size() - 3));
    for (const Symbol& symbol : symbols.all()) {
        std::string_view name = symbol.name;
        if (name.ends_with("…")) name.remove_suffix(3);
        EXPECT_NE(static_cast<unsigned char>(name.back()), 0xc3U);
    }
}

TEST(SymbolsElf, OneTableDescribedManyTimesIsNotReadManyTimes) {
    TinyElf elf = program();
    Octets file = elf.build();
    Elf32_Ehdr header;
    std::memcpy(&header, file.data(), sizeof header);
    std::vector<Elf32_Shdr> sections(header.e_shnum);
    std::memcpy(sections.data(), file.data() + header.e_shoff, sections.size() * sizeof(Elf32_Shdr));
    for (const Elf32_Shdr section : std::vector<Elf32_Shdr>(sections))
        if (section.sh_type == SHT_SYMTAB) sections.insert(sections.end(), 5000, section);
    header.e_shoff = static_cast<Elf32_Off>(file.size());
    header.e_shnum = static_cast<Elf32_Half>(sections.size());
    std::memcpy(file.data(), &header, sizeof header);
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(sections.data());
    file.insert(file.end(), bytes, bytes + sections.size() * sizeof(Elf32_Shdr));
    Symbols symbols;
    // The same symbol counts once; only mapping symbols would accumulate.
    EXPECT_EQ(symbols.add_elf_bytes(file, 0, "tables").value(), 5U);
    EXPECT_EQ(symbols.contents(Address{0x8007}), Contents::a32);
}

TEST(SymbolsElf, NamesThatWouldGrowWithoutBoundStayAsTheyAre) {
    // Each step refers twice to the step before: 2^n.
    const auto sequence = [](unsigned n) {
        constexpr std::string_view digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
        std::string out;
        for (; n > 0; n = (n - 1) / 36) {
            out.insert(out.begin(), digits[(n - 1) % 36]);
            if (n <= 36) break;
        }
        return "S" + out + "_";
    };
    const auto name = [&](unsigned steps) {
        std::string out = "_Z1f1PIiiE";
        for (unsigned i = 0; i < steps; ++i) out += "S_I" + sequence(i + 1) + sequence(i + 1) + "E";
        return out;
    };
    EXPECT_EQ(demangle(name(2)),
              "f(P<int, int>, P<P<int, int>, P<int, int> >, P<P<P<int, int>, P<int, int> >, "
              "P<P<int, int>, P<int, int> > >)");
    EXPECT_GT(demangle(name(9)).size(), 10000U);  // long, but readable
    for (const unsigned steps : {15U, 40U, 200U}) EXPECT_TRUE(demangle(name(steps)) == name(steps)) << steps;
    // Many substitutions alone are no reason to stop: names that grow little are shown.
    std::string many = "_Z1f1P";
    for (unsigned i = 0; i < 100; ++i) many += "S_";
    EXPECT_EQ(demangle(many).substr(0, 10), "f(P, P, P,");

    TinyElf elf;
    elf.sections = {{".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x8000, Octets(0x40), 4, 0}};
    for (std::uint64_t i = 0; i < 2000; ++i)
        elf.symbols.push_back({name(9) + "1C" + std::to_string(i), 0x8000 + i, 0, STT_FUNC, STB_GLOBAL, 1});
    const Octets file = elf.build();
    Symbols symbols;
    ASSERT_TRUE(symbols.add_elf_bytes(file, 0, "bombs").has_value());
    EXPECT_LE(name_bytes(symbols), 24 * file.size());
}

TEST(SymbolsElf, EveryFlippedByteIsAnswered) {
    const Octets good = program().build();
    for (std::size_t i = 0; i < good.size(); ++i)
        for (const int flip : {0x01, 0x80, 0xff}) {
            Octets bad = good;
            bad[i] = static_cast<std::uint8_t>(bad[i] ^ flip);
            Symbols symbols;
            if (const auto count = symbols.add_elf_bytes(bad, 0, "prog"); count) {
                EXPECT_LE(*count, 11U);
                at(symbols, 0x8008);
            }
        }
}

TEST(SymbolsElf, ManyReaders) {
    Symbols symbols;
    ASSERT_TRUE(symbols.add_elf_bytes(program().build(), 0, "prog").has_value());
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) threads.emplace_back([&symbols] { EXPECT_EQ(at(symbols, 0x8004), "arm+4"); });
    for (auto& thread : threads) thread.join();
}

TEST(SymbolsElf, AProgramFromTheCrossCompiler) {
    if (std::system("command -v arm-linux-gnueabihf-gcc >/dev/null") != 0)
        GTEST_SKIP() << "arm-linux-gnueabihf-gcc (Debian: gcc-arm-linux-gnueabihf) is not installed";
    const TemporaryFolder folder;
    const auto source = folder.write("p.c",
                                     "int f(int x) __asm__(\"_ZN1n1fEi\");\n"
                                     "__attribute__((noinline, target(\"arm\"))) int f(int x) { return x * 3; }\n"
                                     "__attribute__((target(\"thumb\"))) void _start(void) { f(2); for (;;) {} }\n");
    const auto binary = folder.path() / "p";
    const std::string command =
        "arm-linux-gnueabihf-gcc -O1 -nostdlib -static -o " + shell_word(binary) + " " + shell_word(source);
    ASSERT_EQ(std::system(command.c_str()), 0);
    Symbols symbols;
    MemoryMap map;
    ASSERT_TRUE(symbols.add_elf(binary).has_value());
    ASSERT_TRUE(map.add_elf(binary).has_value());
    const auto f = symbols.address_of("n::f(int)"), start = symbols.address_of("_start");
    ASSERT_TRUE(f && start);
    EXPECT_EQ(symbols.contents(*f), Contents::a32);
    EXPECT_EQ(symbols.contents(*start), Contents::t32);
    EXPECT_EQ(symbols.find(*start)->symbol.isa, isa::Isa::t32);
    // add r0, r0, r0, lsl #1; bx lr
    const Bytes code = map.at(*f, {}).bytes;
    ASSERT_GE(code.size(), 8U);
    EXPECT_EQ((Octets{code.begin(), code.begin() + 4}), (Octets{0x80, 0x00, 0x80, 0xe0}));
}

}  // namespace
}  // namespace waymark::image
