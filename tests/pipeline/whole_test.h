/// Tests whose helpers write whole outputs beside approved text in tests/pipeline/whole.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>
#include <string>

#include "analysis/whole_answers.h"

namespace waymark::pipeline {

/// Temporary folders have other names each time.
inline std::string without_temporary_folders(std::string text) {
    const std::string begin = (std::filesystem::temp_directory_path() / "waymark-test-").string();
    constexpr std::size_t random_letters = 6;
    for (std::size_t at = 0; (at = text.find(begin, at)) != std::string::npos;)
        text.replace(at, begin.size() + random_letters, "FOLDER");
    return text;
}

class WholeTest : public testing::Test {
protected:
    WholeTest() { current_ = this; }
    ~WholeTest() override { current_ = nullptr; }

public:
    /// Adds an output of the running test.
    static void write(const std::string& text) {
        ASSERT_NE(current_, nullptr);
        current_->whole_.next(std::to_string(++current_->count_)) << without_temporary_folders(text);
    }
    static void write(const answers::Answers& a) {
        std::ostringstream out;
        support::write_answers_text(out, a);
        write(out.str());
    }

private:
    static inline WholeTest* current_ = nullptr;
    support::WholeAnswers whole_{"pipeline"};
    unsigned count_ = 0;
};

}  // namespace waymark::pipeline
