/// The document that describes the answers file, made from the description that its reader and writer use.
#include <fmt/format.h>

#include <array>
#include <cctype>
#include <string>
#include <utility>

#include "file_format.h"
#include "waymark/answers/file.h"

namespace waymark::answers {
namespace {

class Documenter {
public:
    std::string text_of{};

    template <class Row>
    void table(std::string_view name, std::string_view what) {
        text_of += fmt::format("### {}\n\n{}\n\n| column | type | meaning |\n|---|---|---|\n", name, sentence(what));
        rows<Row>({});
        text_of += "\n";
    }
    void number(std::string_view name, auto&&, std::string_view what) { line(name, "number", what); }
    void address(std::string_view name, auto&&, std::string_view what) { line(name, "address", what); }
    void text(std::string_view name, auto&&, std::string_view what) { line(name, "text", what); }
    void real(std::string_view name, auto&&, std::string_view what) { line(name, "real", what); }
    void maybe(std::string_view name, auto&&, std::string_view what) { line(name, "maybe", what); }
    void index(std::string_view name, auto&&, IndexedTable place, std::string_view what) {
        static constexpr std::array<std::string_view, place_count> names{"images",  "sources", "functions",
                                                                         "inlined", "calls",   "tracks"};
        line(name, fmt::format("index of {}", names[static_cast<std::size_t>(place)]), what);
    }
    void choice(std::string_view name, auto&&, const auto& words, std::string_view what) {
        std::string list;
        for (std::size_t i = 0; i < words.size(); ++i) list += fmt::format("{}{} {}", i == 0 ? "" : ", ", i, words[i]);
        line(name, "choice", fmt::format("{}: {}", what, list));
    }
    template <class T>
    void list(std::string_view name, const std::vector<T>&, std::string_view what) {
        if constexpr (Scalar<T>) {
            line(name, std::same_as<T, std::string> ? "list of texts" : "list of numbers", what);
        } else {
            line(name, "list", what);
            rows<T>(std::string(name));
        }
    }

private:
    template <class Row>
    void rows(const std::string& within) {
        const std::string before = std::exchange(within_, within.empty() ? within_ : within_ + within + ".");
        const Row row{};
        schema::fields(*this, row);
        within_ = before;
    }
    void line(std::string_view name, std::string_view type, std::string_view what) {
        text_of += fmt::format("| {}{} | {} | {} |\n", within_, name, type, what);
    }
    static std::string sentence(std::string_view what) {
        std::string out(what);
        if (!out.empty()) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
        return out + ".";
    }
    std::string within_;
};

}  // namespace

std::string answers_document() {
    Documenter out;
    out.text_of =
        "# The answers file\n"
        "\n"
        "`waymark answers CAPTURE -o FILE` writes what a capture says about its program into one file: "
        "`answers::Answers`\n"
        "(`include/waymark/answers/answers.h`), without the capture. Every command that shows answers takes it like a\n"
        "capture, and `waymark merge` adds any number of them up. This document is made from the description that "
        "reader\n"
        "and writer use (`include/waymark/answers/schema.h`).\n"
        "\n"
        "## Layout\n"
        "\n"
        "Numbers of fixed size are little-endian. A file is\n"
        "\n"
        "| bytes | content |\n"
        "|---|---|\n"
        "| 8 | 89 57 4d 41 4e 53 0d 0a |\n"
        "| 4 | version: 1 |\n"
        "| 4 | 0 |\n"
        "| … | sections, one for each table that has rows |\n"
        "| 1 | 0: there is no further section |\n"
        "| 4 | number of sections |\n"
        "| 4 | CRC-32 (as in zlib) of all bytes before |\n"
        "\n"
        "and a section is\n"
        "\n"
        "| bytes | content |\n"
        "|---|---|\n"
        "| 1 | length of the table's name, not 0 |\n"
        "| … | name |\n"
        "| 1 | flags: bit 0: a reader that does not know the table must refuse the file; the other bits are 0 |\n"
        "| 8 | number of rows |\n"
        "| 8 | size of the table |\n"
        "| 8 | size of the table as it is stored |\n"
        "| … | the table, one frame of zstd |\n"
        "| 4 | CRC-32 of the section before |\n"
        "\n"
        "A table is the number of its columns and then each column: its name (a text), its type (a byte), and the size "
        "of\n"
        "its values and the values (a text of bytes). Values of a column follow one another, one for each row:\n"
        "\n"
        "| type | value |\n"
        "|---|---|\n"
        "| 0 number | 7 bits a byte, the lowest first; bit 7 is set in all bytes but the last |\n"
        "| 1 address | the difference to the row before (to 0 in the first one) modulo 2^64, as a number: twice a "
        "positive one, twice the amount of a negative one less 1 |\n"
        "| 2 text | its length in bytes, a number, and the bytes |\n"
        "| 3 real | IEEE 754, 8 bytes |\n"
        "| 4 index | a number: 0 for no row, else 1 more than the place of the row in its table |\n"
        "| 5 choice | a number: the place of a word in the list that the column's meaning gives |\n"
        "| 6 maybe | a byte 0 for nothing, or a byte 1 and a number |\n"
        "| 7 list | the number of items. The column is a text of all these numbers, and then a table with the items "
        "of\n"
        "  all rows; items that are numbers or texts are its column `value` |\n";
    // A line of a table is one line.
    if (const std::size_t at = out.text_of.find("items of\n  all"); at != std::string::npos)
        out.text_of.replace(at, std::string_view("items of\n  all").size(), "items of all");
    out.text_of +=
        "\n"
        "## Versions\n"
        "\n"
        "Tables and columns are known by their names. A reader passes over those it does not know, and a column that "
        "is\n"
        "not there has its default: 0, an empty text, no row. The version changes only where the layout above does. "
        "What\n"
        "a name means never changes. A reader refuses a file with a later version, or with a table it does not know "
        "that\n"
        "has bit 0 of its flags set. Readers check both checksums, every index, and that a file does not take more "
        "memory\n"
        "than 512 MiB and 256 bytes for each of its own.\n"
        "\n"
        "The same answers give the same bytes, with the same version of zstd.\n"
        "\n"
        "## Merging\n"
        "\n"
        "`waymark merge` finds equal rows by what they are about: images by build ID, or by name where there is none;\n"
        "functions by image, linkage name and address in the file; instructions, branches, edges, blocks and loops by\n"
        "address in the file and function; lines by file and number; paths of calls by the functions on them. Their\n"
        "numbers add up, and stop at 2^64-1. Rows are then put in one order that depends on nothing but what they are\n"
        "about. So merging is commutative and associative: any number of files, in any order and by any tree of "
        "merges,\n"
        "give the same file, byte for byte. What has no sum is left out: timelines, for captures have no time in "
        "common,\n"
        "charts, and tables that only one unit has; `health` then says so. Figures that are no numbers and differ "
        "become\n"
        "`differs`. A tree of calls is kept only where every capture has one.\n"
        "\n"
        "## Tables\n"
        "\n";
    out.table<schema::AnswersHead>("head", "one row: what is no table");
    out.table<TimeAxis>("axis", "one row: what times of the timeline are");
    const Answers none_known;
    schema::tables([&]<class Row>(std::string_view name, const std::vector<Row>&,
                                  std::string_view what) { out.table<Row>(name, what); },
                   none_known);
    out.table<schema::StoredTable>("tables", "tables that only one unit has");
    while (out.text_of.ends_with("\n\n")) out.text_of.pop_back();
    return out.text_of;
}

}  // namespace waymark::answers
