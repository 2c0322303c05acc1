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
