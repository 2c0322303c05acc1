// Runs every file of tests/data/wmt-etm4: one situation each, bytes and the expected reading, so that a reader can
// check it by hand. Blank lines and text from `#` on are free everywhere.
//
//     # What is tested, and why it is so.
//     # section 6: short address            one or more: the rule of docs/spec/etm4.md, as this test's list names it
//     [config]                              registers; those not given are the ones of a Cortex-A53 with CID and VMID
//     TRCCONFIGR=0xc1 profile=m             profile: a (default), r or m
//     [bytes]
//     00*11 80  01 00                       bytes in hexadecimal, `*n` times; `reset`: what follows does not continue
//     [packets]                             offset, packet as `waymark packets` prints it, `;` and what it means
//     0 A-SYNC
//     12 TRACE-INFO PLCTL=0
//     14 GAP incomplete packet, 3 bytes
//
// Packets must encode to the bytes they were read from. WM_UPDATE_APPROVED=1 rewrites the [packets] of files that
// differ; the difference is reviewed like code.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <sstream>

#include "etm4/support.h"
#include "support/wmt_text.h"

namespace waymark::etm4 {
namespace {

using waymark::test::difference;
using waymark::test::words;

const std::filesystem::path files_folder = std::filesystem::path(WAYMARK_TEST_DATA) / "wmt-etm4";

struct File {
    std::vector<std::string> lines, rules, packets;
    std::size_t packets_line = 0;
    Config config;
    std::vector<std::string> notes;
    std::vector<std::vector<std::uint8_t>> stream;
};

RegisterValues default_registers() {
    RegisterValues out;
    out.configr = 0xc1;
    out.traceidr = 0x10;
    out.idr0 = 0x28000ea1;
    out.idr1 = 0x4100f403;
    out.idr2 = 0x488;
    out.idr8 = 0;
    out.idr9 = out.idr10 = out.idr11 = out.idr12 = out.idr13 = 1;
    return out;
}

/// The file; returns an empty text, or its first mistake.
std::string read(const std::filesystem::path& path, File& file) {
    std::ifstream in(path);
    if (!in) return "cannot be read";
    for (std::string line; std::getline(in, line);) file.lines.push_back(line);
    RegisterValues registers = default_registers();
    CoreProfile profile = CoreProfile::a;
    const std::map<std::string, std::optional<std::uint32_t> RegisterValues::*> names = {
        {"TRCCONFIGR", &RegisterValues::configr}, {"TRCTRACEIDR", &RegisterValues::traceidr},
        {"TRCIDR0", &RegisterValues::idr0},       {"TRCIDR1", &RegisterValues::idr1},
        {"TRCIDR2", &RegisterValues::idr2},       {"TRCIDR8", &RegisterValues::idr8},
        {"TRCDEVARCH", &RegisterValues::devarch}};
    std::string part;
    file.stream.emplace_back();
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
        const std::string where = ":" + std::to_string(i + 1) + ": ";
        constexpr std::string_view rule = "# section ";
        if (file.lines[i].starts_with(rule)) file.rules.push_back(file.lines[i].substr(rule.size()));
        const std::string text = waymark::test::without_comment(file.lines[i]);
        if (text.empty()) continue;
        if (text.front() == '[') {
            part = text;
            if (part == "[packets]") file.packets_line = i + 1;
            continue;
        }
        if (part == "[packets]") {
            file.packets.push_back(text);
            continue;
        }
        for (const std::string& word : words(text)) {
            const auto [key, value] = waymark::test::key_value(word);
            std::uint64_t number = 0;
            if (part == "[config]" && key == "profile" && value.size() == 1) {
                profile = value == "m" ? CoreProfile::m : value == "r" ? CoreProfile::r : CoreProfile::a;
            } else if (part == "[config]" && names.contains(key) && wire::scan_number(value, number)) {
                registers.*names.at(key) = static_cast<std::uint32_t>(number);
            } else if (part == "[bytes]" && word == "reset") {
                file.stream.emplace_back();
            } else if (part == "[bytes]") {
                const std::size_t star = word.find('*');
                const auto byte = test::hex(word.substr(0, star));
                std::uint64_t times = 1;
                if (byte.size() != 1 || (star != word.npos && !wire::scan_number(word.substr(star + 1), times)))
                    return where + "'" + word + "' is no byte";
                file.stream.back().insert(file.stream.back().end(), times, byte.front());
            } else {
                return where + "'" + word + "' cannot be in " + (part.empty() ? "no part" : part);
            }
        }
    }
    if (part != "[packets]") return "the last part must be [packets]";
    const ReadConfig config = read_config(registers, profile);
    file.config = config.config;
    file.notes = config.notes;
    return {};
}

/// Lists packets, and collects the bytes to which they encode.
class Lister {
public:
    explicit Lister(const Config& config) : config_(config), explain_(config) {}
    std::vector<std::string> lines;
    std::vector<std::uint8_t> encoded;
    bool gaps = false;

    template <class P>
    void operator()(const P& packet, Extent at) {
        const std::string meaning = explain_(packet);
        lines.push_back(std::to_string(at.first.value) + " " + to_text(packet, config_) +
                        (meaning.empty() ? "" : " ; " + meaning));
        encode(encoded, packet, config_);
        const auto scanned = from_text(to_text(packet, config_), config_);
        ASSERT_TRUE(scanned.has_value()) << scanned.error().message;
        EXPECT_EQ(*scanned, Packet(packet));
    }
    void operator()(const Gap& gap) {
        explain_(gap);
        lines.push_back(std::to_string(gap.first.value) + " GAP " + std::string(name(gap.reason)) + ", " +
                        std::to_string(gap.bytes()) + (gap.bytes() == 1 ? " byte" : " bytes"));
        gaps = true;
    }

private:
    const Config& config_;
    Explainer explain_;
};

class Etm4WmtFile : public testing::TestWithParam<std::filesystem::path> {};

TEST_P(Etm4WmtFile, is_read_as_described) {
    File file;
    const std::string wrong = read(GetParam(), file);
    ASSERT_EQ(wrong, "") << GetParam();
    EXPECT_TRUE(file.notes.empty()) << GetParam() << ": " << file.notes.front();
    for (const std::size_t piece : {0U, 1U, 2U, 3U, 7U}) {
        Lister lister(file.config);
        Parser<Lister> parser(file.config, lister);
        std::vector<std::uint8_t> whole;
        for (std::size_t part = 0; part < file.stream.size(); ++part) {
            if (part != 0) parser.reset();
            Bytes rest = file.stream[part];
            whole.insert(whole.end(), rest.begin(), rest.end());
            while (!rest.empty()) {
                const Bytes now = rest.first(piece == 0 ? rest.size() : std::min(piece, rest.size()));
                parser.feed(std::vector<std::uint8_t>(now.begin(), now.end()));
                rest = rest.subspan(now.size());
            }
        }
        parser.finish();
        if (piece == 0 && lister.lines != file.packets && std::getenv("WM_UPDATE_APPROVED") != nullptr) {
            std::ofstream(GetParam(), std::ios::binary)
                << waymark::test::with_part(file.lines, file.packets_line, file.packets, lister.lines);
            GTEST_SKIP() << "[packets] is rewritten; review it:\n" << difference(file.packets, lister.lines);
        }
        const std::string differs = difference(file.packets, lister.lines);
        EXPECT_TRUE(differs.empty()) << GetParam() << ", in pieces of " << piece << ": - as the file says, + as read\n"
                                     << differs;
        if (!lister.gaps) {
            EXPECT_EQ(lister.encoded, whole);
        }
    }
}

std::string test_name(const testing::TestParamInfo<std::filesystem::path>& file) {
    std::string name = file.param.stem().string();
    for (char& ch : name)
        if (std::isalnum(static_cast<unsigned char>(ch)) == 0) ch = '_';
    return name;
}
INSTANTIATE_TEST_SUITE_P(files, Etm4WmtFile, testing::ValuesIn(waymark::test::wmt_files(files_folder)), test_name);

// Rules of docs/spec/etm4.md that are about bytes and packets. The test fails for a rule without a file, and for a
// citation of an unknown rule.
constexpr std::string_view rules[] = {
    "2: reserved header",
    "2: reserved for this configuration",
    "3: bytes before the first A-sync",
    "3: eleven zeros and no others",
    "3: A-sync does not end what is known",
    "3: discard and overflow",
    "3: end inside a packet",
    "4: everything begins anew",
    "4: sections",
    "5: timestamps replace low bits",
    "5: threshold is added",
    "5: commit mode 1",
    "5: events before the first Trace Info",
    "5: markers",
    "6: short address",
    "6: 32 and 64 bits",
    "6: exact match",
    "6: instruction set",
    "6: security states",
    "6: identifiers",
    "7: atoms",
    "8: commit, cancel, mispredict",
    "9: exceptions of the A profile",
    "9: exceptions of the M profile",
    "9: PE reset and transaction failure of an ETE",
    "10: Q elements",
    "11: source addresses",
    "11: transactions",
    "11: instrumentation",
    "12: conditional instructions",
    "13: data sync markers",
    "17: worked vectors",
};

TEST(Etm4WmtCoverage, every_rule_has_a_file) {
    std::map<std::string_view, unsigned> named;
    for (const std::string_view rule : rules) named[rule] = 0;
    for (const auto& path : waymark::test::wmt_files(files_folder)) {
        File file;
        ASSERT_EQ(read(path, file), "") << path;
        EXPECT_FALSE(file.rules.empty()) << path << " does not say which rule it tests";
        for (const std::string& rule : file.rules) {
            const auto found = named.find(rule);
            if (found == named.end())
                ADD_FAILURE() << path << ": '" << rule << "' is no rule of this test's list";
            else
                ++found->second;
        }
    }
    for (const auto& [rule, count] : named)
        EXPECT_GT(count, 0U) << "no .wmt file has the line '# section " << rule << "'";
}

}  // namespace
}  // namespace waymark::etm4
