// Writes into the file that WAYMARK_REACHED names which mutants each test reaches, and how much time it takes: a line
// "<test> <milliseconds of CPU> <numbers>…" for each test; the first line is for the time before all tests.
#include <cstring>
#include <ctime>
#include <fstream>

#include <gtest/gtest.h>

namespace {

class MutationListener : public testing::EmptyTestEventListener {
public:
    explicit MutationListener(const char* path) : out_(path) {}

private:
    void OnTestProgramStart(const testing::UnitTest&) override { write("-"); }
    void OnTestStart(const testing::TestInfo&) override { begun_ = std::clock(); }
    void OnTestEnd(const testing::TestInfo& test) override {
        const bool passed = test.result()->Passed() && !test.result()->Skipped();
        if (passed) write(std::string(test.test_suite_name()) + "." + test.name());
        std::memset(wm_reached, 0, sizeof wm_reached);
    }

    void write(const std::string& test) {
        out_ << test << ' ' << 1000.0 * static_cast<double>(std::clock() - begun_) / CLOCKS_PER_SEC;
        for (int i = 0; i <= WAYMARK_MUTANTS; ++i)
            if (wm_reached[i] != 0) out_ << ' ' << i;
        out_ << '\n' << std::flush;
        std::memset(wm_reached, 0, sizeof wm_reached);
    }

    std::ofstream out_;
    std::clock_t begun_ = 0;
};

[[maybe_unused]] const bool mutation_listener = [] {
    if (const char* path = std::getenv("WAYMARK_REACHED"); path != nullptr)
        testing::UnitTest::GetInstance()->listeners().Append(new MutationListener(path));
    return true;
}();

}  // namespace
