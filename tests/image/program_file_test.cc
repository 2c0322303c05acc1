#include "waymark/image/program_file.h"

#include <gtest/gtest.h>

#include <string>

namespace waymark::image {
namespace {

// A recorded path comes from a foreign file: it never leads outside the given folder.
TEST(FileSearch, LooksBelowTheFolderAlone) {
    EXPECT_EQ(place_below("/copy", "/usr/lib/libc.so.6"), "/copy/usr/lib/libc.so.6");
    EXPECT_EQ(place_below("/copy", "bin/a"), "/copy/bin/a");
    EXPECT_EQ(place_below("/copy", "/usr/../bin/./a"), "/copy/bin/a");
    EXPECT_EQ(place_below("/copy", "/../../etc/passwd"), "/copy/etc/passwd");
    EXPECT_EQ(place_below("/copy", "../../etc/passwd"), "/copy/etc/passwd");
    FileSearch search;
    search.symfs = "/copy";
    for (const char* file : {"/../../etc/passwd", "..", "/..", "/a/..", "/../x.apk!/../../../lib/a.so"})
        for (const auto& place : search.places(file, {}))
            EXPECT_TRUE(place.lexically_normal().string().starts_with("/copy")) << file << ": " << place;
}

}  // namespace
}  // namespace waymark::image
