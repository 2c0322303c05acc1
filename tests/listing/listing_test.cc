// Listings as programs that use the library get them: each form has the same lines and the same columns.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../../src/listing/row.h"
#include "support/temporary_folder.h"
#include "waymark/listing/dpu_elements.h"
#include "waymark/listing/packets.h"
#include "waymark/listing/spe_records.h"

namespace waymark::listing {
namespace {

class Collector final : public TextSink {
public:
    void write(std::string_view lines) override {
        EXPECT_TRUE(lines.empty() || lines.back() == '\n') << "lines come whole";
        text_ += lines;
    }
    [[nodiscard]] std::vector<std::string> lines() const {
        std::vector<std::string> out;
        for (std::size_t at = 0; at < text_.size(); at = text_.find('\n', at) + 1)
            out.push_back(text_.substr(at, text_.find('\n', at) - at));
        return out;
    }

private:
    std::string text_;
};

std::vector<std::string> fields(const std::string& line) {
    std::vector<std::string> out(1);
    for (const char c : line)
        if (c == '\t')
            out.emplace_back();
        else
            out.back() += c;
    return out;
}

/// Names of the members of the outermost object.
std::set<std::string> names(const std::string& json) {
    std::set<std::string> out;
    int depth = 0;
    std::string text;
    for (std::size_t i = 0; i < json.size(); ++i) {
        if (json[i] == '"') {
            text.clear();
            while (json[++i] != '"') text += json[json[i] == '\\' ? ++i : i];
            if (depth == 1 && json[i + 1] == ':') out.insert(text);
        }
        depth += json[i] == '{' || json[i] == '[';
        depth -= json[i] == '}' || json[i] == ']';
    }
    EXPECT_EQ(depth, 0) << json;
    return out;
}

/// `list` as tsv and as JSON. `more`: members of JSON that are not columns.
void compare(const std::function<void(TextSink&, LineFormat)>& list, const std::set<std::string>& more) {
    Collector tsv, json, text;
    list(tsv, LineFormat::tsv);
    list(json, LineFormat::json);
    list(text, LineFormat::text);
    const auto rows = tsv.lines(), objects = json.lines();
    ASSERT_GT(rows.size(), 2U);
    EXPECT_GE(text.lines().size(), objects.size());
    ASSERT_EQ(rows.size(), objects.size() + 1) << "one line above the rows";
    std::set<std::string> columns = more;
    for (const std::string& name : fields(rows.front())) columns.insert(name);
    for (std::size_t i = 0; i < objects.size(); ++i) {
        EXPECT_EQ(fields(rows[i + 1]).size(), fields(rows.front()).size()) << rows[i + 1];
        for (const std::string& name : names(objects[i])) EXPECT_TRUE(columns.contains(name)) << name;
    }
}

/// A capture of the tests of the command line, whose binary files are hexadecimal there (tests/cli/cli_test.py).
class Listing : public testing::Test {
protected:
    std::filesystem::path fixture(const std::string& name) const {
        const std::filesystem::path from = std::filesystem::path(WAYMARK_SOURCE_DIR) / "tests/cli/fixtures" / name;
        for (const auto& entry : std::filesystem::directory_iterator(from)) {
            std::ifstream in(entry.path());
            std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>()), bytes;
            if (entry.path().extension() != ".hex") {
                folder_.write(entry.path().filename().string(), text);
                continue;
            }
            std::istringstream lines(text);
            for (std::string line, word; std::getline(lines, line);) {
                std::istringstream words(line.substr(0, line.find('#')));
                while (words >> word)
                    for (std::size_t at = word.size(); at != 0; at -= 2)
                        bytes += static_cast<char>(std::stoul(word.substr(at - 2, 2), nullptr, 16));
            }
            folder_.write(entry.path().stem().string(), bytes);
        }
        return folder_.path();
    }

private:
    TemporaryFolder folder_;
};

TEST_F(Listing, SampledRecordsAndTheirPacketsHaveTheSameLinesInEachForm) {
    const auto capture = analysis::open_samples(fixture("spe") / "perf.data");
    ASSERT_TRUE(capture);
    compare(
        [&](TextSink& out, LineFormat format) {
            const RecordsListed listed = list_spe_records(*capture, {.format = format}, out);
            EXPECT_EQ(listed.records, listed.shown);
            EXPECT_FALSE(listed.error);
        },
        {});
    compare(
        [&](TextSink& out, LineFormat format) {
            PacketsListed listed;
            EXPECT_TRUE(list_spe_packets(*capture, out, format, {}, listed));
            EXPECT_GT(listed.packets, 0U);
        },
        {"gap"});
}

TEST_F(Listing, OfAFilteredListingOnlyTheTypesAreThere) {
    const auto capture = analysis::open_samples(fixture("spe") / "perf.data");
    ASSERT_TRUE(capture);
    Collector out;
    PacketsListed listed;
    ASSERT_TRUE(list_spe_packets(*capture, out, LineFormat::tsv, {"ADDRESS", "no such type"}, listed));
    EXPECT_EQ(listed.found, PacketTypes{"ADDRESS"});
    const auto lines = out.lines();
    EXPECT_LT(lines.size() - 1, listed.packets);
    EXPECT_TRUE(std::all_of(lines.begin() + 1, lines.end(),
                            [](const std::string& line) { return fields(line)[3] == "ADDRESS"; }));
}

TEST_F(Listing, EntriesAndElementsOfADpuHaveTheSameLinesInEachForm) {
    for (const char* folder : {"dpu", "dpu-loops"}) {
        const auto input = doctor::DpuInput::open(fixture(folder).string());
        ASSERT_TRUE(input) << input.error().message;
        compare([&](TextSink& out, LineFormat format) { EXPECT_TRUE(list_dpu_packets(*input, {}, out, format, {})); },
                {"gap", "doubtful"});
        compare(
            [&](TextSink& out, LineFormat format) {
                const analysis::DpuCode none;
                DpuListing sink(out, format, *input, none);
                EXPECT_TRUE(pipeline::decode_dpu(input->trace(), input->trace_bytes(), sink));
            },
            {"values", "deltas", "lossy"});
    }
}

TEST(Row, NumbersAreThoseOfPrintf) {
    for (unsigned bits = 0; bits <= 64; ++bits)
        for (const std::uint64_t less : {0U, 1U, 0x1234U}) {
            const std::uint64_t value = (bits == 64 ? 0 : std::uint64_t{1} << bits) - less;
            char text[number_room * 2], expected[number_room * 2];
            std::snprintf(expected, sizeof expected, "0x%08llx", static_cast<unsigned long long>(value));
            EXPECT_EQ(std::string(text, put_address(text, value)), expected);
            std::snprintf(expected, sizeof expected, "0x%llx", static_cast<unsigned long long>(value));
            EXPECT_EQ(std::string(text, put_hexadecimal(text, value)), expected);
            std::snprintf(expected, sizeof expected, "%llu", static_cast<unsigned long long>(value));
            EXPECT_EQ(std::string(text, put_decimal(text, value)), expected);
        }
}

TEST(Row, WhatIsNotKnownIsEmptyInTsvAndAbsentInJson) {
    const auto write = [](auto row, bool known) {
        row.number("a", known, 1);
        row.nullable("b", known, "");
        row.always("c", "");
        row.text("d", known, "x\ty\"");
        row.flag("e", known, true);
        row.end();
    };
    RowText tsv, json, head;
    NoSame same;
    for (const bool known : {true, false}) {
        write(TsvRow(tsv, nullptr, same), known);
        write(JsonRow(json, same), known);
    }
    write(HeaderRow(head), true);
    EXPECT_EQ(head.view(), "a\tb\tc\td\te\n");
    EXPECT_EQ(tsv.view(), "1\t\t\tx\\ty\"\t1\n\t\t\t\t\n");
    EXPECT_EQ(json.view(), "{\"a\":1,\"b\":null,\"c\":\"\",\"d\":\"x\\ty\\\"\",\"e\":true}\n{\"c\":\"\"}\n");
}

}  // namespace
}  // namespace waymark::listing
