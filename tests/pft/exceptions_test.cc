// Meanings of exception numbers (docs/spec/pft.md, section 2.5), and the number sent for a class of exceptions.
#include "waymark/pft/exceptions.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>

namespace waymark::pft {
namespace {

using flow::ExceptionClass;

TEST(Exceptions, EachNumberHasItsClass) {
    constexpr std::array classes{ExceptionClass::reserved,
                                 ExceptionClass::debug_halt,
                                 ExceptionClass::monitor_call,
                                 ExceptionClass::hypervisor_call,
                                 ExceptionClass::system_error,
                                 ExceptionClass::check_failed,
                                 ExceptionClass::reserved,
                                 ExceptionClass::reserved,
                                 ExceptionClass::reset,
                                 ExceptionClass::undefined,
                                 ExceptionClass::supervisor_call,
                                 ExceptionClass::prefetch_abort,
                                 ExceptionClass::data_abort,
                                 ExceptionClass::other,
                                 ExceptionClass::irq,
                                 ExceptionClass::fiq};
    for (std::uint32_t n = 0; n < exception_numbers; ++n) {
        EXPECT_EQ(exception_type(n).number, n);
        EXPECT_EQ(exception_type(n).kind, n < classes.size() ? classes[n] : ExceptionClass::unknown) << n;
        EXPECT_EQ(exception_type(n).known(), n < classes.size() && classes[n] != ExceptionClass::reserved) << n;
        EXPECT_EQ(exception_type(n).name.empty(), false) << n;
    }
    EXPECT_EQ(exception_type(16).name, "unknown");
    EXPECT_EQ(exception_type(7).name, "reserved");
}

/// The table of section 2.5: `| 14 | IRQ |`.
std::map<std::uint32_t, std::string> published_table() {
    std::ifstream file(WAYMARK_SOURCE_DIR "/docs/spec/pft.md");
    std::map<std::uint32_t, std::string> out;
    bool inside = false;
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with("Exception numbers (PFTv1.1")) inside = true;
        if (!inside || !line.starts_with("|")) continue;
        std::istringstream cells(line);
        std::string first;
        std::getline(cells, first, '|');
        for (std::string number, text; std::getline(cells, number, '|') && std::getline(cells, text, '|');) {
            std::istringstream numbers(number);
            for (std::uint32_t n = 0; numbers >> n; numbers.ignore()) out[n] = text;
        }
        if (out.contains(15)) break;
    }
    return out;
}

TEST(Exceptions, AreNamedAsTheSpecificationNamesThem) {
    const std::map<std::uint32_t, std::string> published = published_table();
    ASSERT_EQ(published.size(), 16U) << "the table in docs/spec/pft.md was not found";
    // A word that only this row of the specification has.
    const std::map<std::uint32_t, std::string> words{{0, "none"},
                                                     {1, "Debug state entry"},
                                                     {2, "SMC"},
                                                     {3, "Hyp mode"},
                                                     {4, "asynchronous Data Abort"},
                                                     {5, "ThumbEE check failed"},
                                                     {6, "reserved"},
                                                     {7, "reserved"},
                                                     {8, "processor reset"},
                                                     {9, "Undefined Instruction"},
                                                     {10, "SVC"},
                                                     {11, "Prefetch Abort"},
                                                     {12, "synchronous Data Abort"},
                                                     {13, "generic"},
                                                     {14, "IRQ"},
                                                     {15, "FIQ"}};
    for (const auto& [n, word] : words) {
        EXPECT_NE(published.at(n).find(word), std::string::npos) << n << ": " << published.at(n);
        EXPECT_NE(exception_type(n).name.find(word), std::string::npos) << n << ": " << exception_type(n).name;
    }
}

TEST(Exceptions, AClassIsSentAsItsNumber) {
    for (std::uint32_t n = 1; n < 16; ++n)
        if (exception_type(n).known()) {
            EXPECT_EQ(exception_number(exception_type(n).kind), n);
        }
    EXPECT_EQ(exception_number(ExceptionClass::trap), 3U);
    EXPECT_EQ(exception_number(ExceptionClass::breakpoint), 11U);
    EXPECT_EQ(exception_number(ExceptionClass::watchpoint), 12U);
    // A class without a number in the macrocell is "generic", never an ordinary branch and never reserved.
    for (unsigned kind = 0; kind < flow::exception_classes; ++kind)
        EXPECT_TRUE(exception_type(exception_number(static_cast<ExceptionClass>(kind))).known()) << kind;
    EXPECT_EQ(exception_number(ExceptionClass::lockup), 13U);
}

}  // namespace
}  // namespace waymark::pft
