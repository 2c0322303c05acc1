/// A folder for files that a test writes: it is removed when the test ends, unless the test failed.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <gtest/gtest.h>

#include "waymark/core/result.h"

namespace waymark {

class TemporaryFolder {
public:
    TemporaryFolder() {
        std::string name = (std::filesystem::temp_directory_path() / "waymark-test-XXXXXX").string();
        WM_CHECK(::mkdtemp(name.data()) != nullptr);
        path_ = name;
    }
    TemporaryFolder(const TemporaryFolder&) = delete;
    TemporaryFolder& operator=(const TemporaryFolder&) = delete;
    ~TemporaryFolder() {
        const testing::TestInfo* const test = testing::UnitTest::GetInstance()->current_test_info();
        if (test != nullptr && test->result()->Failed()) {
            std::printf("kept: %s\n", path_.c_str());
            return;
        }
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }

    [[nodiscard]] const std::filesystem::path& path() const { return path_; }

    /// Writes a file, and the folders it is in; returns its path.
    std::filesystem::path write(const std::string& name, std::string_view contents) const {
        const std::filesystem::path file = path_ / name;
        std::filesystem::create_directories(file.parent_path());
        std::ofstream out(file, std::ios::binary);
        out.write(contents.data(), static_cast<std::streamsize>(contents.size()));
        WM_CHECK(out.good());
        return file;
    }
    std::filesystem::path write(const std::string& name, const std::vector<std::uint8_t>& contents) const {
        return write(name, std::string_view(reinterpret_cast<const char*>(contents.data()), contents.size()));
    }

private:
    std::filesystem::path path_;
};

}  // namespace waymark
