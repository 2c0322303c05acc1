/// Text of several outputs beside approved text in a file. WM_UPDATE_APPROVED=1 writes the file: review it like code.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace waymark::support {

class Approved {
public:
    /// Begins the next output.
    std::ostream& add(std::string_view name) { return out_ << "==== " << name << '\n'; }
    /// Compares with the file, whose path is below the source folder; names the first line that differs.
    void check(const std::string& file) const {
        const std::string path = WAYMARK_SOURCE_DIR "/tests/" + file;
        if (std::getenv("WM_UPDATE_APPROVED") != nullptr) std::ofstream(path, std::ios::binary) << out_.str();
        std::ifstream in(path, std::ios::binary);
        std::istringstream lines(out_.str());
        std::string wanted, made, output;
        for (std::size_t number = 1;; ++number) {
            const bool more = static_cast<bool>(std::getline(in, wanted));
            const bool any = static_cast<bool>(std::getline(lines, made));
            if (any && made.starts_with("==== ")) output = made;
            ASSERT_EQ(more, any) << path << ":" << number << ": " << (any ? made : wanted) << "\nin " << output;
            if (!any) return;
            ASSERT_EQ(made, wanted) << path << ":" << number << "\nin " << output;
        }
    }

private:
    std::ostringstream out_;
};

}  // namespace waymark::support
