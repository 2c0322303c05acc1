/// The worst names through each quoting function, read back by the reader of the format, or by its rules.
#include "waymark/core/quote.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace waymark {
namespace {

using namespace std::string_literals;

std::vector<std::string> worst_names() {
    return {"",
            "plain",
            "$(touch owned)",
            "`touch owned`",
            "a; touch owned",
            "a\ntouch owned\n",
            "'; touch owned; '",
            "\"; touch owned; \"",
            "-rf",
            "--output=/etc/passwd",
            "../../../etc/passwd",
            "=1+cmd|' /C calc'!A0",
            "+1",
            "-12.5",
            "@sum",
            "~root",
            "*?[a-z]{x,y}",
            "a b\tc",
            "\x1b[31m\x1b]0;title\x07",
            "nul\0in it"s,
            "\xff\xfe\xc3(",
            "\xed\xa0\x80",
            "\xef\xbf\xbe\xef\xbf\xbf",
            "\xe2\x80\xae"
            "evil",
            "\xc2\x9b"
            "31m",
            "<script>alert(1)</script>&amp;'\"",
            "--><b>",
            "]]>",
            "a;b;c 12",
            "%j%%s,ring=x,,y",
            "\\n\\u0000\\",
            std::string(100'000, 'x') + "'"};
}

/// The words that a shell reads from `words`, each ended by NUL.
std::string words_in_shell(const std::string& words) {
    const std::string command = "printf '%s\\0' " + words;
    const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::string out;
    std::array<char, 4096> buffer{};
    for (std::size_t n = 0; pipe && (n = fread(buffer.data(), 1, buffer.size(), pipe.get())) != 0;)
        out.append(buffer.data(), n);
    return out;
}

TEST(Quote, AWordOfAShellIsOneWord) {
    for (const std::string& name : worst_names()) {
        const std::string word = shell_word(name);
        EXPECT_EQ(words_in_shell(word), one_line(name) + '\0') << word.substr(0, 200);
    }
    EXPECT_EQ(shell_word("plain/path-1.elf@0x8000"), "plain/path-1.elf@0x8000");
    EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
    EXPECT_EQ(shell_file("-o"), "./-o");
    EXPECT_EQ(shell_file("-o x"), "'./-o x'");
}

TEST(Quote, JsonIsReadAsTheSameText) {
    for (const std::string& name : worst_names()) {
        const auto read = nlohmann::json::parse(json_text(name), nullptr, false);
        ASSERT_TRUE(read.is_string()) << json_text(name).substr(0, 200);
        EXPECT_EQ(read.get<std::string>(), utf8(name));
    }
}

TEST(Quote, JsonEscapesMarksOfDirection) {
    EXPECT_EQ(json_text("a\u202eb\u061c\u2069\u202f"), "\"a\\u202eb\\u061c\\u2069\u202f\"");
}

TEST(Quote, MarksOfDirectionDoNotReachTerminalsTablesAndPages) {
    const std::string name = "a\u202eb\u2067";
    const std::string replaced = "a\ufffdb\ufffd";
    EXPECT_EQ(csv_field(name), replaced);
    EXPECT_EQ(xml_text(name), replaced);
    EXPECT_EQ(folded_frame(name), replaced);
    EXPECT_EQ(shell_word(name), replaced);
}

TEST(Quote, XmlHasNoMarkupAndNothingForbidden) {
    for (const std::string& name : worst_names()) {
        const std::string text = xml_text(name), comment = xml_comment(name);
        EXPECT_EQ(text.find_first_of("<>\"'"), text.npos);
        EXPECT_EQ(comment.find("--"), comment.npos);
        EXPECT_EQ(utf8(text), text);
        for (const char c : text + comment) EXPECT_GE(static_cast<unsigned char>(c), 0x20);
        EXPECT_EQ(text.find("\xef\xbf\xbe"), text.npos);
        EXPECT_EQ(text.find("\xef\xbf\xbf"), text.npos);
    }
    EXPECT_EQ(xml_text("<a&\"b'>"), "&lt;a&amp;&quot;b&#39;&gt;");
    EXPECT_FALSE(xml_comment("-->-").ends_with("-"));
}

/// A field of CSV as RFC 4180 reads it; nothing: it is more or less than one field.
std::string csv_read(std::string_view field) {
    if (!field.starts_with('"')) return field.find_first_of(",\"\r\n") == field.npos ? std::string(field) : "more";
    std::string out;
    for (std::size_t i = 1; i < field.size(); ++i) {
        if (field[i] != '"') {
            out += field[i];
        } else if (i + 1 < field.size() && field[i + 1] == '"') {
            out += field[i++];
        } else {
            return i + 1 == field.size() ? out : "more";
        }
    }
    return "less";
}

TEST(Quote, ACsvFieldIsOneFieldAndNoFormula) {
    for (const std::string& name : worst_names()) {
        const std::string read = csv_read(csv_field(name));
        std::string expected;
        utf8_pieces(name, [&](std::string_view c) {
            expected += is_control(c) && c != "\t" && c != "\n" && c != "\r" ? replacement_character : c;
        });
        EXPECT_TRUE(read == expected || read == "'" + expected) << read.substr(0, 200);
        EXPECT_TRUE(!is_formula(read) || is_decimal(read)) << read;
    }
}

TEST(Quote, NamesOfSqlFramesAndOptionsDoNotEndEarly) {
    for (const std::string& name : worst_names()) {
        const std::string quoted = sql_name(name), frame = folded_frame(name);
        EXPECT_EQ(csv_read(quoted), name);
        EXPECT_EQ(frame.find_first_of(";\n\r"), frame.npos);
        EXPECT_EQ(utf8(frame), frame);
    }
    EXPECT_EQ(qemu_value("a,b,,c"), "a,,b,,,,c");
    EXPECT_EQ(slurm_output("50%j/x"), "50%%j/x");
}

}  // namespace
}  // namespace waymark
