// Sentences of one kind become one sentence.
#include "waymark/pipeline/gathered.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace waymark::pipeline {
namespace {

using Sentences = std::vector<std::string>;

TEST(GatheredSentences, DifferOnlyInParticulars) {
    const std::string kind = without_particulars("a.bin: offset 0x1f: 'x' has 1,024 bytes [seen]");
    EXPECT_EQ(kind, without_particulars("b.bin: offset 0x2: 'it' has 7 bytes [never seen]"));
    EXPECT_NE(kind, without_particulars("b.bin: offset 0x2: 'it' has 7 words [never seen]"));
    // An apostrophe within a word begins no name.
    EXPECT_NE(without_particulars("it's here"), without_particulars("it's there"));
}

TEST(GatheredSentences, ThreeOfAKindAreAllShown) {
    const Sentences three{"a: is 1 long", "b: is 2 long", "no place", "c: is 3 long"};
    EXPECT_EQ(gathered(three), three);
    EXPECT_EQ(gathered(Sentences{}), Sentences{});
}

TEST(GatheredSentences, FromTheFourthOnTheyAreCounted) {
    EXPECT_EQ(gathered(Sentences{"x: is gone", "a: is 1 long", "a: is 2 long", "b: is 3 long", "y: is gone",
                                 "c: is 4 long", "d: is 5 long"}),
              (Sentences{"x: is gone", "a: is 1 long (the same 4 times more, as in b, c)", "y: is gone"}));
    // All in one place.
    EXPECT_EQ(gathered(Sentences{"a: is 1 long", "a: is 2 long", "a: is 3 long", "a: is 4 long"}),
              Sentences{"a: is 1 long (the same 3 times more)"});
    // Without a place, the names in quotes distinguish them.
    EXPECT_EQ(gathered(Sentences{"no 'a' here", "no 'b' here", "no 'c' here", "no 'd' here"}),
              Sentences{"no 'a' here (the same 3 times more, as in 'b', 'c')"});
}

TEST(GatheredSentences, OfProblemsBeginWithTheFile) {
    const capture::Problem one{.file = "a.ini", .line = 3, .message = "It lacks a key."};
    EXPECT_EQ(gathered(std::vector<capture::Problem>{one}), Sentences{"a.ini:3: It lacks a key."});
}

}  // namespace
}  // namespace waymark::pipeline
