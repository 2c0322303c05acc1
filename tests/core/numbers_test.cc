#include "waymark/core/numbers.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <string>

namespace waymark {
namespace {

/// The cases that the page of the report is tested with, too.
TEST(Numbers, AreWrittenAsTheTableSays) {
    std::ifstream in(WAYMARK_SOURCE_DIR "/web/test/numbers.tsv");
    std::map<std::string, unsigned> done;
    for (std::string line; std::getline(in, line);) {
        if (line.empty() || line.front() == '#') continue;
        const auto first = line.find('\t'), second = line.find('\t', first + 1);
        ASSERT_NE(second, line.npos) << line;
        const std::string kind = line.substr(0, first), arguments = line.substr(first + 1, second - first - 1);
        const auto whole = [](const std::string& text) { return std::strtoull(text.c_str(), nullptr, 10); };
        const double real = std::strtod(arguments.c_str(), nullptr);
        std::string found = "no such kind";
        if (kind == "count") found = grouped(whole(arguments));
        if (kind == "decimal") found = decimal_text(real);
        if (kind == "quantity") found = quantity_text(real);
        if (kind == "share") found = share_text(whole(arguments), whole(arguments.substr(arguments.find(' ') + 1)));
        if (kind == "duration") found = duration_text(real);
        if (kind == "size") found = size_text(whole(arguments));
        if (kind == "address") found = address_text(whole(arguments));
        EXPECT_EQ(found, line.substr(second + 1)) << line;
        ++done[kind];
    }
    EXPECT_EQ(done.size(), 7U);
    for (const auto& [kind, cases] : done) EXPECT_GE(cases, 5U) << kind;
}

TEST(Numbers, AreCountedInSentences) {
    EXPECT_EQ(counted(0, "byte"), "0 bytes");
    EXPECT_EQ(counted(1, "byte"), "1 byte");
    EXPECT_EQ(counted(2345, "byte"), "2,345 bytes");
    EXPECT_EQ(counted(1, "entry", "entries"), "1 entry");
    EXPECT_EQ(counted(~std::uint64_t{0}, "entry", "entries"), "18,446,744,073,709,551,615 entries");
}

}  // namespace
}  // namespace waymark
