// The rules of docs/spec/pft.md that the .wmt files cite. The test fails for a rule without a file, and for a citation
// of an unknown rule.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "support/wmt.h"

namespace waymark::test {
namespace {

struct Section {
    const char* number;
    std::vector<const char*> rules;
};

// Sections 4 and 2.11 as a whole; of earlier sections, the rules that only a decoder shows. packet_test.cc tests packet
// formats.
const Section sections[] = {
    {"1.3", {"Thumb sizes", "ThumbEE handlers", "ENTERX and LEAVEX", "barriers", "block over two sections"}},
    {"2.3", {"cycle counts"}},
    {"2.5",
     {"short packets are in the last traced instruction set", "five bytes change the instruction set", "AltISA",
      "exception number"}},
    {"2.6", {"VMID after I-sync"}},
    {"2.7", {"base", "instruction set", "ThumbEE"}},
    {"2.9", {"partial timestamps", "Gray code"}},
    {"2.11",
     {"bytes before the first A-sync", "packets between A-sync and I-sync", "first I-sync periodic",
      "packets behind an A-sync in sync", "cut at an A-sync"}},
    {"4.1",
     {"atoms leave the base", "VMID starts undefined", "timestamp and trigger", "cycle counts", "ignore and A-sync",
      "reserved header", "malformed packet", "incomplete packet", "reset"}},
    {"4.2",
     {"branch packet walks from the old address", "exception packet walks nothing", "atoms oldest first",
      "atom N goes on", "Context ID packet", "VMID packet", "update advances past its last instruction",
      "update stops before a waypoint instruction", "update behind", "update disagrees", "update as compression base",
      "large block", "exception return changes nothing", "addresses wrap"}},
    {"4.3",
     {"any I-sync starts decoding", "reason 1 while synced", "reason 2 while synced", "reason 3 while synced",
      "periodic confirms", "another address", "another instruction set", "another Context ID",
      "NS and HYP alone are adopted", "unknown address is adopted silently", "base is set", "executes nothing"}},
    {"4.4",
     {"missing at the start of a block", "missing inside a block", "branch packet into missing code",
      "update into missing code", "atoms afterwards", "update sets the base while the address is unknown",
      "branch packet restores the address", "other packets while the address is unknown", "runaway walk",
      "undefined instruction reached", "branch without a condition not taken", "no image, branch broadcast"}},
    {"4.5",
     {"atom E on an indirect branch pops", "pop before push", "every taken link pushes", "branch packet does not pop",
      "sixteen entries", "full stack throws the oldest away", "entry holds the instruction set",
      "entry holds the security state", "emptied at every I-sync", "emptied at a gap",
      "emptied when a link may have been missed", "atom E with an empty stack", "atom E with the stack disabled",
      "exceptions leave the stack alone"}},
    {"4.6", {"branch packet on a direct branch", "another target", "barriers"}},
    {"4.7",
     {"after other instructions", "directly after a waypoint", "back to back", "reset",
      "SVC, SMC and undefined at the instruction", "aborts at the instruction before",
      "no preferred return address while the address is unknown", "instruction set of the vector", "exception return",
      "debug entry", "prohibited region", "target 0 of other exceptions is an address", "Jazelle"}},
    {"4.8",
     {"NS by information byte 0", "HYP by information byte 1", "HYP without information byte 1",
      "state-change branch with exception 0", "Secure by exception", "branch packet on a direct branch",
      "Context ID applies behind the waypoint", "VMID applies behind the waypoint", "memory space"}},
    {"4.9", {"trace off", "overflow"}},
};

TEST(WmtCoverage, every_rule_has_a_file) {
    std::map<std::string, std::vector<std::string>> files;  // by `4.5: pop before push`
    for (const Section& section : sections)
        for (const char* rule : section.rules) files[std::string(section.number) + ": " + rule];
    for (const auto& path : wmt_files(std::filesystem::path(WAYMARK_TEST_DATA) / "wmt")) {
        const auto wmt = read_wmt(path);
        ASSERT_TRUE(wmt.has_value()) << wmt.error().message;
        EXPECT_FALSE(wmt->rules.empty()) << path << " does not say which rule it tests";
        for (const std::string& rule : wmt->rules) {
            const auto found = files.find(rule);
            if (found == files.end())
                ADD_FAILURE() << path << ": '" << rule << "' is no rule of this test's list";
            else
                found->second.push_back(path.stem().string());
        }
    }
    for (const auto& [rule, named_by] : files)
        EXPECT_FALSE(named_by.empty()) << "no .wmt file has the line '# section " << rule << "'";
}

}  // namespace
}  // namespace waymark::test
