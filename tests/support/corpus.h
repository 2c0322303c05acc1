/// Real captures for tests. They are not part of the repository: `WAYMARK_CORPUS` names their folder, or they stand in
/// ../shared/corpus next to it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

namespace waymark::support {

inline std::filesystem::path corpus_folder() {
    if (const char* folder = std::getenv("WAYMARK_CORPUS"); folder != nullptr && *folder != '\0') return folder;
    return std::filesystem::path(WAYMARK_SOURCE_DIR) / ".." / "shared" / "corpus";
}

/// A file or folder of the corpus, such as "ptm/tc2"; the path may not exist.
inline std::filesystem::path corpus_path(const std::string& name) { return corpus_folder() / name; }

/// The reason why a test that needs `name` cannot run; empty if it can.
inline std::string corpus_absent(const std::string& name) {
    std::error_code error;
    if (std::filesystem::exists(corpus_path(name), error)) return {};
    return "no " + corpus_path(name).string() + ": set WAYMARK_CORPUS to the folder of the real captures";
}

inline std::vector<std::uint8_t> read_file(const std::filesystem::path& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in) << "cannot open " << path;
    return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace waymark::support

/// Comes first in a test that reads `name` from the corpus: without the corpus, skips the test with a message.
#define WM_NEEDS_CORPUS(name)                                                                                     \
    do {                                                                                                          \
        if (const auto wm_why = ::waymark::support::corpus_absent(name); !wm_why.empty()) GTEST_SKIP() << wm_why; \
    } while (false)
