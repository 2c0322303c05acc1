/// Code that was changed while it ran: which code is at an address, and from which time on.
#include "waymark/pipeline/changed_code.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace waymark::pipeline {
namespace {

using capture::CodeChange;
using capture::MappedExtent;

constexpr std::uint64_t highest = ~std::uint64_t{0};

CodeChange change(std::uint64_t time, std::uint64_t address, std::size_t bytes, std::string name = {}, char value = 'c',
                  std::uint32_t process = 1) {
    CodeChange out;
    out.process = process;
    out.time = time;
    out.address = {address};
    out.bytes = bytes;
    out.code = std::vector<std::uint8_t>(bytes, static_cast<std::uint8_t>(value));
    out.name = std::move(name);
    return out;
}
CodeChange removal(std::uint64_t time, std::uint64_t address, std::size_t bytes) {
    CodeChange out = change(time, address, bytes);
    out.code.clear();
    return out;
}

struct Changes {
    ChangedCode code;
    image::MemoryMap map;
    explicit Changes(std::vector<CodeChange> all) {
        for (CodeChange& each : all) code.add(std::move(each));
        code.finish(map);
    }
    /// `first-last` of each extent; for an extent with its own code, also the number of its change.
    [[nodiscard]] std::string after(std::uint64_t from, std::uint64_t to, std::vector<MappedExtent> extents,
                                    std::uint32_t process = 1) const {
        code.apply(process, code.state(process, from, to), extents);
        std::string out;
        for (const MappedExtent& e : extents)
            out += fmt::format("{}{:x}-{:x}{}", out.empty() ? "" : " ", e.first, e.last,
                               e.code == 0 ? "" : fmt::format("={}", e.code));
        return out;
    }
};

TEST(ChangedCode, CountsWhatHappenedBeforeATimeAndInIt) {
    const Changes changes(
        {change(30, 0x1000, 4), change(10, 0x1000, 4), change(20, 0x1000, 4), change(5, 0, 4, "", 'c', 2)});
    const auto state = [&](std::uint64_t from, std::uint64_t to) {
        const ChangedCode::State out = changes.code.state(1, from, to);
        return fmt::format("{} {}", out.before, out.in);
    };
    EXPECT_EQ(state(0, 9), "0 0");
    EXPECT_EQ(state(0, 10), "0 1");
    EXPECT_EQ(state(10, 19), "1 1");
    EXPECT_EQ(state(15, 30), "1 3");
    EXPECT_EQ(state(99, 15), "1 1");  // a time that ends before it begins
    EXPECT_EQ(changes.code.state(3, 0, highest).in, 0U);
    EXPECT_FALSE(changes.code.empty());
    EXPECT_TRUE(ChangedCode().empty());
}

TEST(ChangedCode, CutsWhatWasThere) {
    const MappedExtent around{0x1000, 0x1fff, 0x500, 3, 4};
    const auto with = [&](std::uint64_t first, std::size_t bytes) {
        return Changes({change(1, first, bytes)}).after(0, 9, {around, {0x3000, 0x3fff, 0, 5, 6}});
    };
    EXPECT_EQ(with(0x1100, 0x10), "1000-10ff 1100-110f=1 1110-1fff 3000-3fff");
    EXPECT_EQ(with(0x1000, 0x10), "1000-100f=1 1010-1fff 3000-3fff");
    EXPECT_EQ(with(0x1ff0, 0x10), "1000-1fef 1ff0-1fff=1 3000-3fff");
    EXPECT_EQ(with(0x1000, 0x1000), "1000-1fff=1 3000-3fff");
    EXPECT_EQ(with(0x1f00, 0x1200), "1000-1eff 1f00-30ff=1 3100-3fff");
    EXPECT_EQ(with(0x800, 0x900), "800-10ff=1 1100-1fff 3000-3fff");
    EXPECT_EQ(with(0x2000, 0x10), "1000-1fff 2000-200f=1 3000-3fff");
    EXPECT_EQ(with(0x4000, 0x10), "1000-1fff 3000-3fff 4000-400f=1");
    EXPECT_EQ(with(0xff0, 0x10), "ff0-fff=1 1000-1fff 3000-3fff");
    // A change of no bytes has no effect, nor has a change of another process, or at a later time.
    EXPECT_EQ(Changes({change(1, 0x1100, 0)}).after(0, 9, {around}), "1000-1fff");
    EXPECT_EQ(Changes({change(1, 0x1100, 4)}).after(0, 9, {around}, 2), "1000-1fff");
    EXPECT_EQ(Changes({change(10, 0x1100, 4)}).after(0, 9, {around}), "1000-1fff");
}

TEST(ChangedCode, APartOfAMappingHasItsPlace) {
    const Changes changes({change(1, 0x1100, 0x10), change(2, 0x1ff8, 0x10)});
    std::vector<MappedExtent> extents = {{0x1000, 0x1fff, 0x500, 3, 4}};
    changes.code.apply(1, changes.code.state(1, 0, 9), extents);
    ASSERT_EQ(extents.size(), 4U);
    EXPECT_EQ(extents[1].first, 0x1100U);
    EXPECT_EQ(extents[1].shift, 0x500U);
    EXPECT_EQ(extents[1].module, 3U);
    EXPECT_EQ(extents[1].name, 4U);
    EXPECT_EQ(extents[2].first, 0x1110U);
    EXPECT_EQ(extents[2].shift, 0x500U);
    // A change that exceeds the extent is not split.
    EXPECT_EQ(extents[3].first, 0x1ff8U);
    EXPECT_EQ(extents[3].module, capture::no_module);
    EXPECT_EQ(extents[3].shift, 0U);
}

TEST(ChangedCode, APartAtTheBeginningOfAMappingIsOneToo) {
    const Changes changes({change(1, 0x1000, 0x10), change(1, 0x1ff0, 0x10)});
    std::vector<MappedExtent> extents = {{0x1000, 0x1fff, 0x500, 3, 4}};
    changes.code.apply(1, changes.code.state(1, 0, 9), extents);
    ASSERT_EQ(extents.size(), 3U);
    EXPECT_EQ(extents[0].module, 3U);
    EXPECT_EQ(extents[2].module, 3U);
    EXPECT_EQ(extents[2].code, 2U);
}

TEST(ChangedCode, WhatWasRemovedMayHaveRunBefore) {
    const Changes changes({change(10, 0x1000, 0x10, "f"), removal(20, 0x1000, 0x10)});
    EXPECT_EQ(changes.after(0, 5, {}), "");
    EXPECT_EQ(changes.after(0, 15, {}), "1000-100f=1");
    EXPECT_EQ(changes.after(15, 25, {}), "1000-100f=1");
    EXPECT_EQ(changes.after(20, 25, {}), "");
    EXPECT_EQ(changes.after(20, 25, {{0x800, 0x17ff, 0, 0, 0}}), "800-fff 1010-17ff");
}

TEST(ChangedCode, CodeWithANameHasAPlaceOfItsOwn) {
    constexpr std::uint64_t first_place = std::uint64_t{1} << 60;
    const Changes changes({change(1, 0x1010, 100, "one", 'a'), change(2, 0x1010, 100, "two", 'b'),
                           change(3, 0x1010, 100, "one", 'a'), change(4, 0x2000, 4, "", 'n'),
                           change(5, 0x3000, 4, "kernel", 'k', CodeChange::kernel)});
    std::vector<MappedExtent> one, two, again;
    changes.code.apply(1, changes.code.state(1, 0, 1), one);
    changes.code.apply(1, changes.code.state(1, 0, 2), two);
    changes.code.apply(1, changes.code.state(1, 0, 3), again);
    ASSERT_EQ(one.size(), 1U);
    EXPECT_EQ(0x1010 - one[0].shift, first_place);
    EXPECT_EQ(changes.code.code(one[0]).size(), 100U);
    EXPECT_EQ(changes.code.code(one[0])[0], 'a');
    // The next copy begins at a multiple of 64 after this one, and so does its address.
    EXPECT_EQ(0x1010 - two[0].shift, first_place + 128 + 0x10);
    EXPECT_EQ(changes.code.code(two[0])[0], 'b');
    EXPECT_EQ(again[0].shift, one[0].shift);  // the same function returned
    ASSERT_EQ(changes.map.sections().size(), 3U);
    EXPECT_EQ(changes.map.sections()[0].name, "[jit]");
    EXPECT_EQ(changes.map.sections()[2].name, "[kernel code]");
    EXPECT_EQ(changes.map.at({first_place}, {}).bytes.size(), 100U);
    // The bytes of the remaining part of the stretch.
    MappedExtent rest = one[0];
    rest.first += 40;
    EXPECT_EQ(changes.code.code(rest).size(), 60U);
    image::Symbols symbols;
    changes.code.add_symbols(symbols);
    // One symbol for each time the function was there, also before the last time.
    EXPECT_EQ(symbols.all().size(), 4U);
    const auto found = symbols.find({first_place + 99});
    ASSERT_TRUE(found);
    EXPECT_EQ(found->symbol.linkage_name, "one");
    EXPECT_FALSE(symbols.find({first_place + 100}));
    EXPECT_EQ(symbols.find({first_place + 128 + 0x10})->symbol.linkage_name, "two");
}

}  // namespace
}  // namespace waymark::pipeline
