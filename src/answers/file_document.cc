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
    void shared(std::string_view name, auto&&, std::string_view what) { line(name, "shared text", what); }
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
        "`waymark answers CAPTURE -o FILE` writes the results of decoding a capture into one file: "
        "`answers::Answers`\n"
        "(`include/waymark/answers/answers.h`), without the trace. `profile`, `coverage`, `branches`, `loops`,\n"
        "`exceptions`, `diff`, `report`, `export` and `pgo` read it like a capture, and `waymark merge` adds up any "
        "number\n"
        "of them. This document is generated from the description that reader and writer use\n"
        "(`include/waymark/answers/schema.h`).\n"
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
        "A table begins with the number of its columns. Each column follows: its name (a text), its type (a byte), "
        "and\n"
        "its values as a text: size in bytes, then one value for each row, one after another:\n"
        "\n"
        "| type | value |\n"
        "|---|---|\n"
        "| 0 number | unsigned LEB128: 7 bits in each byte, lowest first; bit 7 is set in all bytes but the last |\n"
        "| 1 address | the difference to the previous row (0 before the first) modulo 2^64, zigzag-coded as a number: "
        "2d for d >= 0, -2d - 1 for d < 0 |\n"
        "| 2 text | its length in bytes, a number, and the bytes |\n"
        "| 3 real | IEEE 754, 8 bytes |\n"
        "| 4 index | a number: 0 for no row, else the index of the row in its table plus 1 |\n"
        "| 5 choice | a number: one of those that the column's meaning lists |\n"
        "| 6 maybe | a byte 0 for no value, or a byte 1 and a number |\n"
        "| 7 list | the number of items. The column is a text of all these numbers, and then a table with the items "
        "of\n"
        "  all rows; items that are numbers or texts are its column `value` |\n"
        "| 8 shared text | a number: 0 for a text that no row before it has, which follows as in a column of texts; "
        "else the place of the text among the different texts of the column, from 1 on. A reader takes a column of "
        "texts, too |\n";
    // A row of a table must be one line.
    if (const std::size_t at = out.text_of.find("items of\n  all"); at != std::string::npos)
        out.text_of.replace(at, std::string_view("items of\n  all").size(), "items of all");
    out.text_of +=
        "\n"
        "## Versions\n"
        "\n"
        "Tables and columns are identified by their names. A reader skips those it does not know; a missing column "
        "has\n"
        "its default: 0, an empty text, no row. The version changes only where the layout above does. "
        "What\n"
        "a name means never changes. A reader refuses a file with a later version, or with a table it does not know "
        "that\n"
        "has bit 0 of its flags set. Readers check both checksums, every index, and that a file does not take more "
        "memory\n"
        "than 512 MiB plus 256 bytes for each byte of the file.\n"
        "\n"
        "The same results give the same bytes, with the same version of zstd.\n"
        "\n"
        "## Merging\n"
        "\n"
        "`waymark merge` identifies rows by these keys: images by build ID, or by name where there is none;\n"
        "functions by image, linkage name and address in the file; instructions, branches, edges, blocks and loops by\n"
        "address in the file and function; lines by file and number; paths of calls by the functions on them. Their\n"
        "counts are added, up to 2^64-1. Rows are then sorted by these keys. So merging is commutative and "
        "associative:\n"
        "any number of files gives the same file, byte for byte, in any order and in any grouping. Data without a sum\n"
        "is left out, and `health` says so: charts, and the unit's own tables. Timelines have no sum either, because\n"
        "the times of captures cannot be related. So of timelines a sample is kept: at most eight captures, those "
        "with\n"
        "the smallest hashes (XXH3, 64 bits) of their names among those with one unit of time; each begins at 0, below "
        "a\n"
        "track of its own, with at most 2,000 slices, and `samples` lists them. Findings that differ in numbers alone "
        "are\n"
        "one, with the numbers of one of them and the number of captures. Figures that are not numbers and differ\n"
        "become `differs`. The call tree is kept only if every capture has one. If only some files have more than "
        "ranges\n"
        "and branches (`--only-ranges`), the account has a row *no functions*, a warning says that the other tables\n"
        "are sums of these alone, and code that did not run in these is *not observed*. Code that one file lists and\n"
        "another does not is *not observed* if it may have run unobserved in the other (`images.hides`,\n"
        "`head.hides_others`), and did not run in any. A single file stays as it is.\n"
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
