#include "waymark/analysis/kallsyms.h"

#include <gtest/gtest.h>

#include <vector>

#include "support/temporary_folder.h"

namespace waymark::analysis {
namespace {

TEST(Kallsyms, FunctionsAreThoseOfTheLines) {
    const std::string text =
        "ffffffc008000000 T _text\nffffffc008000010 t local\t[driver]\nffffffc008000020 D data\n"
        "0000000000000000 T hidden\nffffffc008000030 t $x\nffffffc008000040 t odd\t[]\nnonsense\n"
        "ffffffc008000050 T last";
    std::vector<std::string> found;
    const auto take = [&](std::size_t most) {
        found.clear();
        kallsyms_functions(text, [&](const KernelFunction& f) {
            found.push_back(f.name + " " + std::to_string(f.address & 0xff) + (f.global ? " global " : " local ") +
                            f.module);
            return found.size() < most;
        });
        return found;
    };
    using Found = std::vector<std::string>;
    EXPECT_EQ(take(10), (Found{"_text 0 global ", "local 16 local driver", "odd 64 local ", "last 80 global "}));
    EXPECT_EQ(take(1), (Found{"_text 0 global "})) << "no more are wanted";
}

TEST(Kallsyms, ALineIsAnAddressATypeOfFunctionAndAName) {
    const auto found = [](const std::string& line) {
        std::string out;
        kallsyms_functions(line + "\n", [&](const KernelFunction& f) {
            out += f.name + "/" + f.module + "/" + std::to_string(f.address) + (f.global ? "/global" : "");
            return true;
        });
        return out;
    };
    EXPECT_EQ(found("10 t f"), "f//16");
    EXPECT_EQ(found("10 T f"), "f//16/global");
    EXPECT_EQ(found("10 w f"), "f//16");
    EXPECT_EQ(found("10 W f"), "f//16");
    for (const char* const other : {"d", "D", "b", "r", "A", "V"})
        EXPECT_EQ(found(std::string("10 ") + other + " f"), "");
    EXPECT_EQ(found("10 t f\t[m]"), "f/m/16");
    EXPECT_EQ(found("10 t f\t[mod]x"), "f/mod/16");
    EXPECT_EQ(found("10 t f\tm]"), "f//16");
    EXPECT_EQ(found("10 t f\t[m"), "f//16");
    EXPECT_EQ(found("10 t f\t[]"), "f//16");
    EXPECT_EQ(found("10 t f\t"), "f//16");
    for (const char* const bad : {"0 t f", "10 t ", "10 t $x", "10 tf", "10  t f", "10 t", "10 ", "10", "t f", ""})
        EXPECT_EQ(found(bad), "") << bad;
}

TEST(Kallsyms, EachReasonIsSaid) {
    const TemporaryFolder folder;
    const std::string none = folder.path() / "none", zeros = folder.write("zeros", "0 T f\n");
    EXPECT_EQ(check_kallsyms(none).error().message, "--kallsyms: there is no file " + none);
    EXPECT_EQ(check_kallsyms(none).error().code, Errc::usage);
    EXPECT_EQ(
        check_kallsyms(zeros).error().message,
        "--kallsyms: " + zeros +
            " has no lines like those in /proc/kallsyms, or only addresses of 0, which users other than root see");
    EXPECT_EQ(check_kallsyms(zeros).error().code, Errc::usage);
    EXPECT_TRUE(check_kallsyms(folder.path()).error().message.starts_with("--kallsyms: ")) << "a folder";
}

TEST(Kallsyms, AFileIsCheckedBeforeItIsUsed) {
    const TemporaryFolder folder;
    const auto why = [&](const std::string& text) {
        const auto checked = check_kallsyms(folder.write("kallsyms", text));
        return checked ? std::string() : checked.error().message;
    };
    EXPECT_EQ(why("ffffffc008000000 T _text\n"), "");
    EXPECT_EQ(why("ffffffc008000000 T _text\nffffffc008000010 t f\n"), "");
    EXPECT_TRUE(why("0000000000000000 T _text\n").ends_with(no_kallsyms)) << why("0000000000000000 T _text\n");
    EXPECT_TRUE(why("").ends_with(no_kallsyms));
    EXPECT_FALSE(check_kallsyms(folder.path() / "none"));
}

}  // namespace
}  // namespace waymark::analysis
