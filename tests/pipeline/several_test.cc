// Several captures together, and reasons why they are not complete.
#include "waymark/pipeline/several.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "waymark/analysis/profiled_files.h"
#include "waymark/answers/account.h"

namespace waymark::pipeline {
namespace {

using answers::Answers;
using Severity = answers::Finding::Severity;

Answers capture_of(const std::string& unit, std::vector<answers::Finding> health = {}) {
    Answers out;
    out.unit = unit;
    out.health = std::move(health);
    return out;
}

answers::Finding unused(const std::string& file) {
    answers::Finding out{Severity::note, file + " is of nothing that ran", ""};
    out.unused_file = file;
    return out;
}

class Several : public testing::Test {
protected:
    Result<Answers> all(const std::vector<std::string>& captures) {
        left_out_.clear();
        return answers_of_all(
            captures,
            [&](const std::string& capture) -> Result<Answers> {
                const auto found = captures_.find(capture);
                if (found == captures_.end()) return Error{Errc::not_found, capture};
                return found->second;
            },
            left_out_);
    }
    std::vector<LeftOut> left_out_;
    std::map<std::string, Answers> captures_;
};

// "." exists, and contains no capture; another name belongs to no file.
TEST_F(Several, WhatGivesNothingIsLeftOut) {
    captures_ = {{"a", capture_of("ETE")}, {"b", capture_of("ETE")}};
    const auto two = all({".", "a", ".", "b"});
    ASSERT_TRUE(two.has_value());
    EXPECT_EQ(two->capture, "a and 1 more");
    ASSERT_EQ(left_out_.size(), 2U);
    EXPECT_EQ(left_out_[0].capture, ".");
    const auto one = all({"a", "."});
    ASSERT_TRUE(one.has_value());
    EXPECT_EQ(one->capture, capture_of("ETE").capture);
    const auto none = all({".", "."});
    ASSERT_FALSE(none.has_value());
    EXPECT_EQ(none.error().code, Errc::not_found);
    EXPECT_TRUE(left_out_.empty());
    EXPECT_FALSE(all({"a", "no such file"}).has_value());
}

TEST_F(Several, OneAfterTheOther) {
    captures_ = {{"a", capture_of("ETE")}, {"b", capture_of("ETE")}, {"c", capture_of("SPE")}};
    for (auto& [name, capture] : captures_) capture.capture = name;
    const auto two = all({"a", "b"});
    ASSERT_TRUE(two.has_value());
    EXPECT_EQ(two->capture, "a and 1 more");
    EXPECT_TRUE(two->health.empty());
    EXPECT_EQ(all({"a", "none"}).error().code, Errc::not_found);
    EXPECT_EQ(all({"a", "c"}).error().code, Errc::usage);
}

// Counts of a capture that was given twice are in the sum twice.
TEST_F(Several, ACaptureThatIsAddedAgainIsNamed) {
    captures_ = {{"a", capture_of("ETE")}, {"run", capture_of("DPU")}};
    for (auto& [name, capture] : captures_) capture.capture = name;
    for (const std::string name : {"a", "run"}) {
        const auto twice = all({name, name});
        ASSERT_TRUE(twice.has_value());
        ASSERT_EQ(twice->health.size(), 1U);
        EXPECT_EQ(twice->health[0].severity, Severity::note);
        EXPECT_EQ(twice->health[0].what, "capture " + name + " (0 bytes of trace) is in the sum 2 times");
    }
}

TEST_F(Several, ACaptureThatIsGivenByTwoPathsIsNamed) {
    const std::string folder = testing::TempDir();
    std::ofstream(folder + "/snapshot.ini").put('\n');
    const std::vector<std::string> paths{folder, folder + "/.", folder + "/snapshot.ini"};
    for (const std::string& path : paths) {
        captures_[path] = capture_of("ETE");
        captures_[path].capture = path;
    }
    const auto sum = all(paths);
    ASSERT_TRUE(sum.has_value());
    ASSERT_EQ(sum->health.size(), 1U);
    EXPECT_EQ(sum->health[0].what, "capture " + folder + " (0 bytes of trace) is in the sum 3 times");
}

TEST_F(Several, WhatOneNeedsIsNotUnused) {
    captures_ = {{"a", capture_of("ETE", {unused("x"), unused("y")})}, {"b", capture_of("ETE", {unused("x")})}};
    const auto two = all({"a", "b"});
    ASSERT_TRUE(two.has_value());
    for (const answers::Finding& f : two->health) EXPECT_NE(f.unused_file, "y");
}

TEST_F(Several, LossesComeBeforeUnusedFiles) {
    const Answers lossy = capture_of("ETE", {unused("x"), {Severity::warning, "lost", ""}});
    const Answers other = capture_of("ETE", {unused("x")});
    const Answers whole = capture_of("ETE");
    EXPECT_EQ(shortcoming_of({&other, &lossy}).of, &lossy);
    EXPECT_EQ(shortcoming_of({&other, &lossy}).what, "lost");
    EXPECT_EQ(shortcoming_of({&other, &other}).what, "x is of nothing that ran");
    EXPECT_EQ(shortcoming_of({&other, &whole}).of, nullptr);
    // A part of the run without a finding.
    Answers part = whole;
    answers::add(part.account, {.reason = answers::AccountReason::no_address, .times = 2});
    EXPECT_EQ(shortcoming_of({&part, &lossy}).of, &lossy);
    EXPECT_EQ(shortcoming_of({&part, &other}).of, &part);
    EXPECT_EQ(shortcoming_of({&part, &other}).what, "not decoded: 2 stretches without an address");
}

/// The table of docs/account.md, by reason: the cells of the reason's row.
std::map<std::string, std::vector<std::string>> documented_reasons() {
    std::map<std::string, std::vector<std::string>> out;
    std::ifstream file(WAYMARK_SOURCE_DIR "/docs/account.md");
    for (std::string line; std::getline(file, line);) {
        if (!line.starts_with("| ")) continue;
        std::vector<std::string> cells;
        for (std::size_t from = 2, end = 0; (end = line.find(" |", from)) != line.npos; from = end + 3)
            cells.push_back(line.substr(from, end - from));
        if (cells.size() == 8) out[cells[1]] = cells;
    }
    return out;
}

// Gates and views treat each reason as the document states.
TEST_F(Several, ReasonsDoWhatTheirTableSays) {
    auto documented = documented_reasons();
    for (const answers::AccountRule& rule : answers::account_rules()) {
        const std::string word(answers::account_reason_words[static_cast<std::size_t>(rule.reason)]);
        SCOPED_TRACE(word);
        const std::vector<std::string> cells = documented[word];
        ASSERT_EQ(cells.size(), 8U);
        Answers part = capture_of("ETE");
        for (answers::Index image = 0; image < 2; ++image) {
            part.images.push_back({.name = image == 0 ? "program" : "library"});
            part.ranges.emplace_back();
            part.ranges.back().image = image;
            part.ranges.back().times = part.ranges.back().instructions = 10;
        }
        answers::add(part.account, {.reason = answers::AccountReason::decoded, .instructions = 200, .ranges = 20});
        if (rule.reason != answers::AccountReason::decoded) answers::add(part.account, {.reason = rule.reason});
        EXPECT_EQ(cells[0], answers::name(rule.state));
        EXPECT_EQ(cells[3], answers::completeness(part.account).word());
        const std::string cover = analysis::profile_cover(part, [](answers::Index i) { return i == 0; }, {}).text();
        EXPECT_EQ(cells[6] != "unchanged", cover.starts_with("at most 50.0% of the run")) << cover;
        // Ranges without functions are complete.
        const bool whole =
            rule.reason == answers::AccountReason::decoded || rule.reason == answers::AccountReason::no_functions;
        EXPECT_EQ(cover == "50.0% of the run", whole) << cover;
        EXPECT_EQ(cells[7] == "fails", shortcoming_of({&part}).of != nullptr);
    }
}

}  // namespace
}  // namespace waymark::pipeline
