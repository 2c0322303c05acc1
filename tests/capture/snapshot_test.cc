#include "waymark/capture/snapshot.h"
#include "support/shell.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "support/corpus.h"
#include "support/temporary_folder.h"
#include "waymark/capture/byte_stream.h"

namespace waymark::capture {
namespace {

namespace fs = std::filesystem;

/// A snapshot folder in memory. Binary files are known by their size only.
class Texts final : public FileAccess {
public:
    std::map<std::string, std::string> texts;
    std::map<std::string, std::uint64_t> sizes;

    [[nodiscard]] Result<std::string> text(const fs::path& path, std::uint64_t limit) const override {
        const auto found = texts.find(path.string());
        if (found == texts.end())
            return Error{Errc::not_found, path.string() + ": there is no such file; check the name"};
        if (found->second.size() > limit) return Error{Errc::unsupported, path.string() + ": is longer than allowed"};
        return found->second;
    }
    [[nodiscard]] Result<std::uint64_t> size(const fs::path& path) const override {
        const auto found = sizes.find(path.string());
        if (found == sizes.end()) return Error{Errc::not_found, "there is no such file"};
        return found->second;
    }
    [[nodiscard]] Result<Capture> read() const { return read_snapshot("s/snapshot.ini", *this); }
};

/// The example of docs/spec/pft.md, 7.4.
Texts example() {
    Texts files;
    files.texts["s/snapshot.ini"] =
        "; head\n[snapshot]\nversion=1.0\ndescription=dual core boot trace\n[device_list]\ndevice0=core_a.ini\n"
        "device1=core_b.ini\ndevice2=flow_a.ini\ndevice3=flow_b.ini\n[trace]\nmetadata=trace.ini\n";
    files.texts["s/core_a.ini"] =
        "[device]\nname=core_a\nclass=core\ntype=Cortex-A9\n[regs]\nPC=0x00100040\nCPSR=0x000001D3\n[dump_rom]\n"
        "file=rom.bin\naddress=0x00100000\nlength=0x4000\n[dump_ram]\nfile=ram.bin\naddress=0x20000000\noffset="
        "0x1000\nspace=N\n";
    files.texts["s/core_b.ini"] = "[device]\nname=core_b\nclass=core\ntype=Cortex-A9\n";
    files.texts["s/flow_a.ini"] =
        "[device]\nname=flow_a\nclass=trace_source\ntype=PFT1.0\n[regs]\nETMCR(id:0x00)=0x10001000\n"
        "ETMIDR(id:0x79)=0x411CF301\nETMCCER(id:0x7A)=0x00C019EA\nETMTRACEIDR(id:0x80)=0x00000021\n";
    files.texts["s/flow_b.ini"] =
        "[device]\nname=flow_b\nclass=trace_source\ntype=PFT1.0\nlocation=address:0x8001c000\n";
    files.texts["s/trace.ini"] =
        "[trace_buffers]\nbuffers=buf0,buf1\n[buf0]\nname=ETB_MAIN\nfile=etb.bin\nformat=coresight\n[buf1]\nname=RAW_"
        "B\n"
        "file=flow_b.bin\nformat=source_data\n[core_trace_sources]\ncore_a=flow_a\ncore_b=flow_b\n[source_buffers]\n"
        "flow_a=ETB_MAIN\nflow_b=RAW_B\n";
    files.sizes = {{"s/rom.bin", 0x4000}, {"s/ram.bin", 0x2000}, {"s/etb.bin", 4096}, {"s/flow_b.bin", 777}};
    return files;
}

void replace(std::string& text, const std::string& from, const std::string& to) {
    const auto at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
}

std::string listed(const std::vector<Problem>& problems) {
    std::string text;
    for (const Problem& problem : problems) text += (text.empty() ? "" : "\n") + to_string(problem);
    return text;
}

/// The one problem of the example after a change to one of its files.
std::string only_problem(const std::string& file, const std::string& from, const std::string& to) {
    Texts files = example();
    replace(files.texts[file], from, to);
    const auto capture = files.read();
    if (!capture) return "ERROR " + capture.error().message;
    if (capture->problems.size() != 1) return "PROBLEMS " + listed(capture->problems);
    return to_string(capture->problems.front());
}

/// The result of a change of the example, which must have a problem.
Capture changed(const std::string& file, const std::string& from, const std::string& to) {
    Texts files = example();
    replace(files.texts[file], from, to);
    auto capture = files.read();
    EXPECT_TRUE(capture.has_value());
    return capture ? std::move(*capture) : Capture{};
}

TEST(Snapshot, ContentsIniIsRead) {
    const TemporaryFolder folder;
    const Texts files = example();
    for (const auto& [name, text] : files.texts) {
        const fs::path file = fs::path(name).filename();
        folder.write(file == "snapshot.ini" ? "contents.ini" : file.string(), text);
    }
    EXPECT_EQ(snapshot_file(folder.path()), folder.path() / "contents.ini");
    const auto capture = read_snapshot(folder.path());
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    EXPECT_EQ(capture->sources.size(), 2U);
    folder.write("snapshot.ini", files.texts.at("s/snapshot.ini"));
    EXPECT_EQ(snapshot_file(folder.path()), folder.path() / "snapshot.ini");
}

TEST(Snapshot, VersionOneIsWrittenWithAndWithoutAPoint) {
    Texts files = example();
    replace(files.texts["s/snapshot.ini"], "version=1.0", "version=1");
    const auto capture = files.read();
    ASSERT_TRUE(capture.has_value());
    EXPECT_EQ(listed(capture->problems), "");
}

TEST(Snapshot, Example) {
    const auto capture = example().read();
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_EQ(capture->path, "s/snapshot.ini");
    EXPECT_EQ(capture->description, "dual core boot trace");
    ASSERT_EQ(capture->cores.size(), 2U);
    EXPECT_EQ(capture->cores[0], (Core{"core_a", "Cortex-A9", {{"PC", 0x100040}, {"CPSR", 0x1d3}}, "", "core_a.ini"}));
    ASSERT_EQ(capture->sources.size(), 2U);
    const Source& a = capture->sources[0];
    EXPECT_EQ(a.name, "flow_a");
    EXPECT_EQ(a.type, "PFT1.0");
    EXPECT_EQ(a.core, "core_a");
    EXPECT_EQ(a.core_type, "Cortex-A9");
    ASSERT_NE(a.find_register("ETMIDR"), nullptr);
    EXPECT_EQ(*a.find_register("ETMIDR"), (Register{"ETMIDR", 0x411cf301, 0x79, 32}));
    EXPECT_EQ(a.find_register("etmidr"), nullptr);
    ASSERT_EQ(capture->buffers.size(), 2U);
    EXPECT_EQ(capture->buffers[0],
              (Buffer{"ETB_MAIN", Buffer::Format::coresight, "coresight", {"s/etb.bin"}, {"flow_a"}}));
    EXPECT_EQ(capture->buffers[1],
              (Buffer{"RAW_B", Buffer::Format::source_data, "source_data", {"s/flow_b.bin"}, {"flow_b"}}));
    ASSERT_EQ(capture->dumps.size(), 2U);
    EXPECT_EQ(capture->dumps[0], (MemoryDump{"core_a", "s/rom.bin", Address{0x100000}, 0, 0x4000, ""}));
    EXPECT_EQ(capture->dumps[1], (MemoryDump{"core_a", "s/ram.bin", Address{0x20000000}, 0x1000, std::nullopt, "N"}));
    EXPECT_EQ(capture->find_source("flow_b"), &capture->sources[1]);
    EXPECT_EQ(capture->find_buffer("nothing"), nullptr);
}

TEST(Snapshot, CommentsBlanksAndLineEnds) {
    Texts files = example();
    for (auto& [name, text] : files.texts) {
        std::string changed_text = "\xef\xbb\xbf";
        for (const char c : text)
            changed_text += c == '\n' ? "  # a comment = [with] all\r\n\r\n" : c == '=' ? " \t=  " : std::string(1, c);
        text = changed_text;
    }
    const auto capture = files.read();
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    EXPECT_EQ(*capture, example().read().value());
}

TEST(Snapshot, NamesOfSectionsAndKeysInAnyCase) {
    Texts files = example();
    replace(files.texts["s/core_a.ini"], "[dump_rom]\nfile", "[DUMP_rom]\nFile");
    replace(files.texts["s/trace.ini"], "[trace_buffers]\nbuffers", "[Trace_Buffers]\nBuffers");
    EXPECT_EQ(files.read().value(), example().read().value());
}

TEST(Snapshot, BracketsCountAtTheLineStartOnly) {
    const Capture capture = changed("s/snapshot.ini", "dual core boot trace", "a [device_list] of sorts");
    EXPECT_EQ(capture.description, "a [device_list] of sorts");
    EXPECT_EQ(capture.cores.size(), 2U);
}

TEST(Snapshot, QuotesAroundFilesValuesAndSpaces) {
    Texts files = example();
    replace(files.texts["s/core_a.ini"], "file=ram.bin", "file=\"ram.bin\"");
    replace(files.texts["s/core_a.ini"], "space=N", "space='N'");
    replace(files.texts["s/core_a.ini"], "PC=0x00100040", "PC=\"0x00100040\"");
    EXPECT_EQ(files.read().value(), example().read().value());
}

TEST(Snapshot, SeveralFilesInOneBuffer) {
    Texts files = example();
    replace(files.texts["s/trace.ini"], "file=etb.bin", "file= etb0.bin, etb1.bin ,etb2.bin");
    files.sizes.insert({{"s/etb0.bin", 30}, {"s/etb1.bin", 2}, {"s/etb2.bin", 16}});
    const auto capture = files.read();
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_EQ(capture->buffers[0].files, (std::vector<fs::path>{"s/etb0.bin", "s/etb1.bin", "s/etb2.bin"}));
}

TEST(Snapshot, BlanksInTheListOfBuffers) {
    EXPECT_EQ(changed("s/trace.ini", "buf0,buf1", " buf0 , buf1 "), example().read().value());
}

TEST(Snapshot, SourceInSeveralBuffersWithAStreamNumber) {
    Texts files = example();
    replace(files.texts["s/trace.ini"], "flow_a=ETB_MAIN",
            "flow_b(stream:0x12)=RAW_B\nflow_a ( stream : 3 ) = ETB_MAIN , RAW_B");
    replace(files.texts["s/trace.ini"], "\nflow_b=RAW_B", "");
    replace(files.texts["s/trace.ini"], "format=source_data", "format=dstream_coresight");
    const auto capture = files.read();
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_EQ(capture->sources[0].stream, 3U);
    EXPECT_EQ(capture->sources[1].stream, 0x12U);
    EXPECT_EQ(capture->buffers[0].sources, (std::vector<std::string>{"flow_a"}));
    EXPECT_EQ(capture->buffers[1].sources, (std::vector<std::string>{"flow_a", "flow_b"}));
    EXPECT_EQ(capture->buffers[1].format, Buffer::Format::dstream_coresight);
}

TEST(Snapshot, SourceByLocation) {
    Capture capture = changed("s/trace.ini", "core_b=flow_b", "core_b = @address:0x8001C000");
    EXPECT_EQ(capture, example().read().value());
    capture = changed("s/trace.ini", "flow_b=RAW_B", "@address:0x8001c000=RAW_B");
    EXPECT_EQ(capture, example().read().value());
}

TEST(Snapshot, NoSourceBuffersWithOneBuffer) {
    Texts files = example();
    files.texts["s/trace.ini"] =
        "[trace_buffers]\nbuffers=b\n[b]\nname=ETB\nfile=etb.bin\nformat=coresight\n"
        "[core_trace_sources]\ncore_a=flow_a\ncore_b=flow_b\n";
    const auto capture = files.read();
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_EQ(capture->buffers[0].sources, (std::vector<std::string>{"flow_a", "flow_b"}));
}

TEST(Snapshot, ClustersTimestampAndRegisterSizes) {
    Texts files = example();
    files.texts["s/snapshot.ini"] += "[clusters]\nbig=core_a\nall=core_b, core_a\n";
    files.texts["s/trace.ini"] += "[timestamp]\nfrequency=24000000\n";
    replace(files.texts["s/core_b.ini"], "type=Cortex-A9",
            "type=Cortex-A9\nother=ignored\n[regs]\nX0(size:64)=0xfedcba9876543210\nA(7)=010\nB( id : 8 , size : 16 "
            ")=0xffff");
    const auto capture = files.read();
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_EQ(capture->clusters, (std::vector<Cluster>{{"big", {"core_a"}}, {"all", {"core_b", "core_a"}}}));
    EXPECT_EQ(capture->timestamp_frequency_hz, 24000000U);
    EXPECT_EQ(
        capture->cores[1].registers,
        (std::vector<Register>{{"X0", 0xfedcba9876543210, std::nullopt, 64}, {"A", 8, 7, 32}, {"B", 0xffff, 8, 16}}));
}

TEST(Snapshot, ATimestampWithoutAFrequencyIsInTicks) {
    for (const char* section : {"[timestamp]\n", "[timestamp]\nfrequency=\n"}) {
        Texts files = example();
        files.texts["s/trace.ini"] += section;
        const auto capture = files.read();
        ASSERT_TRUE(capture) << section;
        EXPECT_EQ(capture->timestamp_frequency_hz, std::nullopt) << section;
        EXPECT_EQ(listed(capture->problems).find("frequency in"), std::string::npos) << listed(capture->problems);
    }
}

TEST(Snapshot, AnEmptyDumpLeavesNoAddressSpace) {
    Texts files = example();
    replace(files.texts["s/core_a.ini"], "length=0x4000", "length=0");
    EXPECT_EQ(listed(files.read()->problems).find("leaves the 64-bit address space"), std::string::npos);
    replace(files.texts["s/core_a.ini"], "address=0x00100000\nlength=0", "address=0xffffffffffffc000\nlength=0x4000");
    EXPECT_EQ(listed(files.read()->problems).find("leaves the 64-bit address space"), std::string::npos);
    replace(files.texts["s/core_a.ini"], "0xffffffffffffc000", "0xffffffffffffc001");
    EXPECT_NE(listed(files.read()->problems).find("leaves the 64-bit address space"), std::string::npos);
}

TEST(Snapshot, MemoryOfNoCoreIsSeenByAll) {
    Texts files = example();
    replace(files.texts["s/core_b.ini"], "class=core\ntype=Cortex-A9",
            "class=memory_space\n[dump]\nfile=rom.bin\naddress=0");
    replace(files.texts["s/trace.ini"], "core_b=flow_b\n", "");
    const auto capture = files.read();
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_EQ(capture->cores.size(), 1U);
    ASSERT_EQ(capture->dumps.size(), 3U);
    EXPECT_EQ(capture->dumps[2].core, "");
}

TEST(MissingParts, SayHowMuchOfAWrappedBufferIsKept) {
    Buffer buffer;
    buffer.name = "b";
    EXPECT_TRUE(missing_parts(buffer).empty());
    buffer.wrapped = true;
    const auto said = [&](const std::string& kept) {
        const std::vector<std::string> parts = missing_parts(buffer);
        ASSERT_EQ(parts.size(), 1U);
        EXPECT_EQ(parts[0],
                  "buffer b wrapped: " + kept + ". What ran before is not in it; a larger buffer keeps more.");
    };
    said("older trace was overwritten, and how much is not known");
    buffer.length = 4096;
    said("it holds the last 4,096 bytes of trace, and how much was overwritten is not known");
    buffer.overwritten = 1;
    said("it holds the last 4,096 of 4,097 bytes of trace");
    buffer.length.reset();
    said("1 byte of older trace was overwritten");
}

TEST(Snapshot, BackslashesOfWindows) {
    Texts files = example();
    replace(files.texts["s/core_a.ini"], "rom.bin", "mem\\rom.bin");
    files.sizes["s/mem/rom.bin"] = 0x4000;
    const auto capture = files.read();
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_EQ(capture->dumps[0].file, "s/mem/rom.bin");
    // A file that is not there keeps its name.
    files.sizes.erase("s/mem/rom.bin");
    EXPECT_EQ(files.read()->dumps[0].file, "s/mem\\rom.bin");
}

// One line for each mistake: the change, and the start of its sentence, with file and line.
struct Wrong {
    const char* what;
    const char* file;
    const char* from;
    const char* to;
    const char* expected;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.what; }

class SnapshotProblem : public testing::TestWithParam<Wrong> {};

TEST_P(SnapshotProblem, IsToldWithItsPlaceAndTheRestIsRead) {
    const Wrong& wrong = GetParam();
    const std::string message = only_problem(wrong.file, wrong.from, wrong.to);
    EXPECT_EQ(message.substr(0, std::string(wrong.expected).size()), wrong.expected) << message;
    EXPECT_EQ(message.back() == '.' || message.back() == '?', true) << message;
}

const Wrong wrong_things[] = {
    {"version", "s/snapshot.ini", "version=1.0", "version=2.0",
     "s/snapshot.ini:3: The snapshot has version '2.0', but only 1.0"},
    {"no_version", "s/snapshot.ini", "version=1.0\n", "", "s/snapshot.ini:2: [snapshot] has no key 'version'"},
    {"duplicate_key", "s/snapshot.ini", "version=1.0", "version=1.0\nversion=1.1",
     "s/snapshot.ini:4: Key 'version' appears again in [snapshot] with '1.1'; the first, '1.0' at line 3, is used."},
    {"unknown_key", "s/snapshot.ini", "version=1.0", "version=1.0\nverson=2",
     "s/snapshot.ini:4: Key 'verson' is unknown in [snapshot] and was ignored. Did you mean 'version'?"},
    {"unknown_section", "s/snapshot.ini", "; head", "[snapshots]",
     "s/snapshot.ini:1: Section [snapshots] is unknown and was ignored. Did you mean 'snapshot'?"},
    {"key_before_section", "s/snapshot.ini", "; head", "version=1.0",
     "s/snapshot.ini:1: Key 'version' comes before any section"},
    {"no_equals", "s/snapshot.ini", "; head\n[snapshot]", "[snapshot]\nwhat is this",
     "s/snapshot.ini:2: 'what is this' is neither [section] nor key=value"},
    {"no_key", "s/snapshot.ini", "version=1.0", "version=1.0\n=3", "s/snapshot.ini:4: There is no key before '=3'"},
    {"section_twice", "s/snapshot.ini", "[trace]", "[device_list]\n[trace]",
     "s/snapshot.ini:10: Section [device_list] appears again (first at line 5)"},
    {"open_section", "s/snapshot.ini", "[trace]", "[trace",
     "s/snapshot.ini:10: The section header '[trace' has no closing ']'."},
    {"text_behind_section", "s/snapshot.ini", "[trace]", "[trace] x=1",
     "s/snapshot.ini:10: The section header [trace] is followed by 'x=1'"},
    {"device_key_twice", "s/snapshot.ini",
     "device1=", "device0=", "s/snapshot.ini:7: Key 'device0' appears again in [device_list]"},
    {"device_listed_twice", "s/snapshot.ini", "[trace]", "device9=flow_b.ini\n[trace]",
     "s/snapshot.ini:10: 'flow_b.ini' is listed again (first at line 9)"},
    {"device_missing", "s/snapshot.ini", "[trace]", "device9=gone.ini\n[trace]",
     "s/snapshot.ini:10: the device 'gone.ini' is left out: s/gone.ini: there is no such file"},
    {"device_empty", "s/snapshot.ini", "[trace]", "device9=\n[trace]",
     "s/snapshot.ini:10: 'device9' names no file, but the device"},
    {"trace_missing", "s/snapshot.ini", "metadata=trace.ini", "metadata=gone.ini",
     "s/snapshot.ini:11: the trace description 'gone.ini' is left out: "},
    {"no_metadata", "s/snapshot.ini", "metadata=trace.ini", "", "s/snapshot.ini:10: [trace] has no key 'metadata'"},
    {"no_trace", "s/snapshot.ini", "[trace]\nmetadata=trace.ini\n", "", "s/snapshot.ini: There is no section [trace]"},
    {"outside", "s/snapshot.ini", "[trace]", "device9=../x.ini\n[trace]",
     "PROBLEMS s/snapshot.ini:10: '../x.ini' lies outside the snapshot"},
    {"cluster_core", "s/snapshot.ini", "[trace]", "[clusters]\nc=core_a,cor_b\n[trace]",
     "s/snapshot.ini:11: Cluster 'c' names 'cor_b', which is not a core of this snapshot; it was omitted. Did you mean "
     "'core_b'?"},
    {"cluster_twice", "s/snapshot.ini", "[trace]", "[clusters]\nc=core_a\nc=core_b\n[trace]",
     "s/snapshot.ini:12: Cluster 'c' appears again"},

    {"device_name", "s/core_a.ini", "name=core_a\n", "",
     "PROBLEMS s/core_a.ini:1: [device] has no key 'name'; 'device0', its key in"},
    {"device_section", "s/core_b.ini", "[device]", "[devices]", "PROBLEMS s/core_b.ini: There is no section [device]"},
    {"device_class", "s/core_a.ini", "class=core\n", "",
     "s/core_a.ini:1: Device 'core_a' has no key 'class'; because of its type 'Cortex-A9', it is read as class=core."},
    {"source_class", "s/flow_a.ini", "class=trace_source\n", "",
     "s/flow_a.ini:1: Device 'flow_a' has no key 'class'; because of its type 'PFT1.0', it is read as "
     "class=trace_source."},
    {"class_slip", "s/flow_a.ini", "class=trace_source", "class=trace_sorce",
     "PROBLEMS s/flow_a.ini:3: Device 'flow_a' is of class 'trace_sorce', which is unknown; neither its registers nor "
     "its trace "
     "are used. Did you mean 'trace_source'?"},
    {"core_type", "s/core_a.ini", "type=Cortex-A9\n", "", "s/core_a.ini:1: Core 'core_a' has no key 'type'."},
    {"source_type", "s/flow_a.ini", "type=PFT1.0\n", "",
     "s/flow_a.ini:1: Trace source 'flow_a' has no key 'type', so its protocol"},
    {"device_key_slip", "s/core_a.ini", "class=core", "class=core\nlocaton=x",
     "s/core_a.ini:4: Key 'locaton' is unknown in [device]"},
    {"device_section_slip", "s/core_a.ini", "[dump_rom]", "[reg]\n[dump_rom]",
     "s/core_a.ini:8: Section [reg] is unknown and was ignored. Did you mean 'regs'?"},

    {"register_value", "s/flow_a.ini", "0x10001000", "0x1000100g",
     "s/flow_a.ini:6: The value '0x1000100g' of register ETMCR is not a number"},
    {"register_huge", "s/flow_a.ini", "0x10001000", "0x10000000000000000",
     "s/flow_a.ini:6: The value '0x10000000000000000' of register"},
    {"register_empty", "s/flow_a.ini", "0x10001000", "",
     "s/flow_a.ini:6: The value '' of register ETMCR is not a number"},
    {"register_wide", "s/flow_a.ini", "0x10001000", "0x110001000",
     "s/flow_a.ini:6: The value 0x110001000 of register ETMCR has more than 32 bits, the size if none is given"},
    {"register_narrow", "s/flow_a.ini", "(id:0x00)", "(size:8)",
     "s/flow_a.ini:6: The value 0x10001000 of register ETMCR has more than 8 bits;"},
    {"register_info", "s/flow_a.ini", "(id:0x00)", "(id:0,siz:8)",
     "s/flow_a.ini:6: 'siz:8' contains nothing known about register ETMCR"},
    {"register_size", "s/flow_a.ini", "(id:0x00)", "(id:0,size:65)",
     "s/flow_a.ini:6: 'size:65' contains nothing known"},
    {"register_open", "s/flow_a.ini", "(id:0x00)", "(id:0x00",
     "s/flow_a.ini:6: Register ETMCR has a '(' without a ')'."},
    {"register_nameless", "s/flow_a.ini", "ETMCR(id:0x00)", "(id:0)", "s/flow_a.ini:6: '(id:0)' has no register name"},
    {"register_contradiction", "s/flow_a.ini", "ETMIDR(id:0x79)", "ETMCR",
     "s/flow_a.ini:7: Register ETMCR is 0x411cf301 here but 0x10001000 at line 6; the first one is used."},
    {"register_twice", "s/flow_a.ini", "ETMIDR(id:0x79)=0x411CF301", "etmcr=0x10001000",
     "s/flow_a.ini:7: Register etmcr appears again (first at line 6)."},

    {"dump_file_key", "s/core_a.ini", "file=rom.bin\n", "",
     "s/core_a.ini:8: [dump_rom] has no key 'file' and was omitted."},
    {"dump_address_key", "s/core_a.ini", "address=0x00100000\n", "",
     "s/core_a.ini:8: [dump_rom] has no key 'address' and was omitted."},
    {"dump_address", "s/core_a.ini", "0x00100000", "somewhere",
     "s/core_a.ini:10: 'address' in [dump_rom] is 'somewhere', which is not a number of up to 64 bits (0x… "
     "hexadecimal, "
     "0… octal, "
     "else decimal); the dump was omitted."},
    {"dump_length", "s/core_a.ini", "0x4000", "all",
     "s/core_a.ini:11: 'length' in [dump_rom] is 'all', which is not a number"},
    {"dump_offset", "s/core_a.ini", "offset=0x1000", "offset=-1",
     "s/core_a.ini:15: 'offset' in [dump_ram] is '-1', which is not a number"},
    {"dump_key", "s/core_a.ini", "offset=0x1000", "ofset=0x1000",
     "s/core_a.ini:15: Key 'ofset' is unknown in [dump_ram] and was ignored. Did you mean 'offset'?"},
    {"dump_space", "s/core_a.ini", "space=N", "space=X",
     "s/core_a.ini:16: Memory space 'X' is unknown; the dump is taken"},
    {"dump_missing", "s/core_a.ini", "rom.bin", "gone.bin",
     "s/core_a.ini:9: The memory dump 'gone.bin' cannot be read: there is no such file."},
    {"dump_short", "s/core_a.ini", "0x4000", "0x4001",
     "s/core_a.ini:8: A dump is shorter than stated: [dump_rom] has length 0x4001, but 'rom.bin' contains only 0x4000 "
     "bytes from offset 0x0 on; those are used."},
    {"dump_beyond", "s/core_a.ini", "offset=0x1000", "offset=0x2000",
     "s/core_a.ini:12: [dump_ram] begins at offset 0x2000 of 'ram.bin', which contains only"},
    {"dump_wraps", "s/core_a.ini", "0x00100000", "0xfffffffffffff000",
     "s/core_a.ini:8: [dump_rom] of 0x4000 bytes at 0xfffffffffffff000 leaves"},

    {"buffer_section", "s/trace.ini", "buf0,buf1", "buf0,buf1,buf2",
     "s/trace.ini:2: Buffer 'buf2' has no section [buf2] and was omitted. Add the sect"},
    {"buffer_empty_name", "s/trace.ini", "buf0,buf1", "buf0,,buf1",
     "s/trace.ini:2: A name between commas in 'buffers' is empty"},
    {"buffer_twice", "s/trace.ini", "buf0,buf1", "buf0,buf1,buf0", "s/trace.ini:2: Buffer 'buf0' is listed twice"},
    {"buffer_name", "s/trace.ini", "name=ETB_MAIN", "",
     "PROBLEMS s/trace.ini:3: [buf0] has no key 'name'; the name of the section is used."},
    {"buffer_same_name", "s/trace.ini", "name=RAW_B", "name=ETB_MAIN",
     "PROBLEMS s/trace.ini:7: There is another buffer with the name 'ETB_MAIN'"},
    {"buffer_file_key", "s/trace.ini", "file=etb.bin\n", "",
     "PROBLEMS s/trace.ini:3: Buffer 'ETB_MAIN' has no key 'file'"},
    {"buffer_file_part", "s/trace.ini", "file=etb.bin", "file=etb.bin,",
     "s/trace.ini:5: A file name between commas in buffer 'ETB_MAIN' is empty"},
    {"buffer_file", "s/trace.ini", "file=etb.bin", "file=gone.bin",
     "s/trace.ini:5: 's/gone.bin' of buffer 'ETB_MAIN' cannot be read: there is no"},
    {"buffer_format_key", "s/trace.ini", "format=coresight\n", "",
     "s/trace.ini:3: Buffer 'ETB_MAIN' has no key 'format'; it is read as coresight"},
    {"buffer_format", "s/trace.ini", "format=coresight", "format=coresite",
     "s/trace.ini:6: Buffer 'ETB_MAIN' has format 'coresite', which is unknown, so it cannot be read. Did you mean "
     "'coresight'?"},
    {"buffer_frames", "s/trace.ini", "format=source_data", "format=coresight",
     "s/trace.ini:9: 's/flow_b.bin' of buffer 'RAW_B' contains 777 bytes, which is not a multiple of the 16-byte "
     "frames"},
    {"buffer_key", "s/trace.ini", "format=coresight", "format=coresight\nfiles=x",
     "s/trace.ini:7: Key 'files' is unknown in [buf0]"},
    {"trace_section_slip", "s/trace.ini", "[trace_buffers]", "[source_bufers]\n[trace_buffers]",
     "s/trace.ini:1: Section [source_bufers] is unknown"},

    {"core_unknown", "s/trace.ini", "core_b=flow_b", "core_c=flow_b",
     "s/trace.ini:13: There is no core 'core_c'; the line was ignored. Did you mean"},
    {"core_source_unknown", "s/trace.ini", "core_b=flow_b", "core_b=flow_c",
     "s/trace.ini:13: There is no trace source 'flow_c'; the line was"},
    {"core_source_core", "s/trace.ini", "core_b=flow_b", "core_b=core_a",
     "s/trace.ini:13: Device 'core_a' is not a trace source"},
    {"core_twice", "s/trace.ini", "core_b=flow_b", "core_b=flow_b\ncore_b=flow_a",
     "s/trace.ini:14: Trace source 'flow_a' already traces core 'core_a'"},
    {"source_of_two_cores", "s/trace.ini", "core_b=flow_b", "core_b=flow_a",
     "s/trace.ini:13: Trace source 'flow_a' already traces core 'core_a'"},
    {"location_unknown", "s/trace.ini", "core_b=flow_b", "core_b=@dap:2",
     "s/trace.ini:13: No trace source has the location 'dap:2'"},
    {"no_core_sources", "s/trace.ini", "[core_trace_sources]\ncore_a=flow_a\ncore_b=flow_b\n", "",
     "s/trace.ini: There is no section [core_trace_sources]"},
    {"no_source_buffers", "s/trace.ini", "[source_buffers]\nflow_a=ETB_MAIN\nflow_b=RAW_B\n", "",
     "PROBLEMS s/trace.ini: There are 2 buffers but no section [source_buffers]"},
    {"source_twice", "s/trace.ini", "flow_b=RAW_B", "flow_b=RAW_B\nflow_b=ETB_MAIN",
     "s/trace.ini:17: Trace source 'flow_b' appears again in [source_buffers]"},
    {"source_nowhere", "s/trace.ini", "flow_a=ETB_MAIN\n", "",
     "PROBLEMS s/trace.ini:14: Trace source 'flow_a' is in no buffer"},
    {"source_buffer_unknown", "s/trace.ini", "flow_b=RAW_B", "flow_b=RAW_B,RAW_C",
     "s/trace.ini:16: Trace source 'flow_b' is assigned to buffer 'RAW_C', which does not exist; that was ignored. Did "
     "you mean 'RAW_B'?"},
    {"stream", "s/trace.ini", "flow_b=RAW_B", "flow_b(strem:1)=RAW_B",
     "s/trace.ini:16: '(strem:1)' after 'flow_b' is not understood"},
    {"two_in_source_data", "s/trace.ini", "flow_a=ETB_MAIN", "flow_a=ETB_MAIN,RAW_B",
     "s/trace.ini: Buffer 'RAW_B' has format source_data, which contains exactly one source, but 2 are assigned to "
     "it: flow_a, flow_b."},
    {"frequency", "s/trace.ini", "[trace_buffers]", "[timestamp]\nfrequency=fast\n[trace_buffers]",
     "s/trace.ini:2: 'frequency' in [timestamp] is 'fast'"},
    {"frequency_zero", "s/trace.ini", "[trace_buffers]", "[timestamp]\nfrequency=0\n[trace_buffers]",
     "s/trace.ini:2: The timestamp frequency is 0 Hz"},
};
INSTANTIATE_TEST_SUITE_P(Each, SnapshotProblem, testing::ValuesIn(wrong_things),
                         [](const auto& one) { return std::string(one.param.what); });

TEST(Snapshot, ASourceOfTwoCoresIsThatOfTheFirst) {
    const Capture capture = changed("s/trace.ini", "core_b=flow_b", "core_b=flow_a");
    ASSERT_EQ(capture.sources.size(), 2U);
    EXPECT_EQ(capture.sources[0].core, "core_a");
    EXPECT_EQ(capture.sources[1].core, "");
}

TEST(Snapshot, NamesGivenTwice) {
    Texts files = example();
    replace(files.texts["s/core_b.ini"], "name=core_b", "name=core_a");
    const auto capture = files.read();
    ASSERT_FALSE(capture->problems.empty());
    EXPECT_NE(listed(capture->problems).find("s/core_b.ini:1: There is another device with the name 'core_a'"),
              std::string::npos);
    EXPECT_EQ(capture->cores.size(), 1U);
}

/// A core may have several sources, each with the trace of a session in a buffer of its own.
TEST(Snapshot, SessionsOfOneCoreAreSeveralSources) {
    Texts files = example();
    replace(files.texts["s/trace.ini"], "core_b=flow_b", "core_a=flow_b");
    const auto sessions = files.read();
    EXPECT_EQ(listed(sessions->problems), "");
    EXPECT_EQ(sessions->sources[0].core, "core_a");
    EXPECT_EQ(sessions->sources[1].core, "core_a");
    EXPECT_EQ(sessions->sources[1].core_type, "Cortex-A9");
    replace(files.texts["s/trace.ini"], "flow_b=RAW_B", "flow_b=ETB_MAIN");
    const auto mistake = files.read();
    EXPECT_NE(listed(mistake->problems).find("s/trace.ini:13: Core 'core_a' already has a trace source, in line 12"),
              std::string::npos)
        << listed(mistake->problems);
    EXPECT_EQ(mistake->sources[1].core, "");
}

TEST(Snapshot, BadRegistersAreLeftOutAndWideOnesKept) {
    EXPECT_EQ(changed("s/flow_a.ini", "0x10001000", "0x1000100g").sources[0].find_register("ETMCR"), nullptr);
    EXPECT_EQ(*changed("s/flow_a.ini", "0x10001000", "0x110001000").sources[0].find_register("ETMCR"),
              (Register{"ETMCR", 0x110001000, 0, 64}));
}

TEST(Snapshot, MissingFilesStayListed) {
    Texts files = example();
    files.sizes.clear();
    const auto capture = files.read();
    EXPECT_EQ(capture->problems.size(), 4U);
    EXPECT_EQ(capture->dumps.size(), 2U);
    EXPECT_EQ(capture->buffers[0].files.size(), 1U);
}

TEST(Snapshot, EmptyBufferFile) {
    Texts files = example();
    files.sizes["s/etb.bin"] = 0;
    EXPECT_NE(listed(files.read()->problems).find("s/trace.ini:5: 's/etb.bin' of buffer 'ETB_MAIN' is empty."),
              std::string::npos);
}

TEST(Snapshot, WithoutTraceItIsADebugSnapshot) {
    Texts files = example();
    files.texts["s/snapshot.ini"] = "[snapshot]\nversion=1.0\n[device_list]\nd=core_a.ini\n";
    const auto capture = files.read();
    ASSERT_TRUE(capture.has_value());
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_TRUE(capture->buffers.empty());
}

TEST(Snapshot, ManyProblemsInOneFileAreCounted) {
    Texts files = example();
    for (int i = 0; i < 5000; ++i) files.texts["s/core_b.ini"] += "nonsense\n";
    const auto capture = files.read();
    ASSERT_EQ(capture->problems.size(), 101U);
    EXPECT_EQ(
        to_string(capture->problems.back()),
        "s/core_b.ini: 4900 more problems in this file are not listed. Correct the first ones and read it again.");
}

// A listed file that is missing is a part of the input that could not be read; a mistake in the text is not.
TEST(Snapshot, AListedFileThatIsMissingIsDamage) {
    Texts files = example();
    replace(files.texts["s/snapshot.ini"], "[trace]", "device9=gone.ini\n[trace]");
    replace(files.texts["s/trace.ini"], "core_b=flow_b", "core_c=flow_b");
    const auto capture = files.read();
    ASSERT_TRUE(capture.has_value());
    unsigned damage = 0;
    for (const Problem& problem : capture->problems) {
        const bool missing = to_string(problem).find("gone.ini") != std::string::npos;
        EXPECT_EQ(problem.kind == Problem::Kind::damage, missing) << to_string(problem);
        damage += missing ? 1 : 0;
    }
    EXPECT_EQ(damage, 1U);
}

TEST(Snapshot, TooManyDevices) {
    Texts files = example();
    std::string list = "[device_list]\n";
    for (int i = 0; i < 5000; ++i) list += "k" + std::to_string(i) + "=d" + std::to_string(i) + ".ini\n";
    replace(files.texts["s/snapshot.ini"], "[device_list]\n", list);
    for (int i = 0; i < 5000; ++i)
        files.texts["s/d" + std::to_string(i) + ".ini"] = "[device]\nname=d" + std::to_string(i) + "\nclass=other\n";
    const auto capture = files.read();
    ASSERT_TRUE(capture.has_value());
    EXPECT_TRUE(capture->cores.empty());  // they come behind the limit
    EXPECT_EQ(
        to_string(capture->problems.front()).find("s/snapshot.ini:4102: [device_list] has more than 4096 devices"), 0U);
}

TEST(Snapshot, FatalErrors) {
    Texts files;
    EXPECT_EQ(files.read().error().code, Errc::not_found);
    files.texts["s/snapshot.ini"] = "";
    EXPECT_EQ(files.read().error().code, Errc::bad_format);
    EXPECT_NE(files.read().error().message.find("contains no section"), std::string::npos);
    files.texts["s/snapshot.ini"] = std::string("[snapshot]\0", 11);
    EXPECT_NE(files.read().error().message.find("is a binary file"), std::string::npos);
    files.texts["s/snapshot.ini"] = std::string(max_ini_bytes + 1, '\n');
    EXPECT_EQ(files.read().error().code, Errc::unsupported);
    files.texts["s/snapshot.ini"] = "[snapshot]\nversion=1.0\n[device_list]\na=gone.ini\n";
    const auto nothing = files.read();
    ASSERT_FALSE(nothing.has_value());
    EXPECT_EQ(nothing.error().code, Errc::bad_format);
    EXPECT_NE(
        nothing.error().message.find("1 problem(s), the first: s/snapshot.ini:4: the device 'gone.ini' is left out"),
        std::string::npos)
        << nothing.error().message;
}

TEST(Snapshot, FatalErrorsOnDisk) {
    const TemporaryFolder folder;
    const auto empty = read_snapshot(folder.path());
    EXPECT_EQ(empty.error().code, Errc::not_found);
    EXPECT_NE(empty.error().message.find("this folder contains neither snapshot.ini nor contents.ini"),
              std::string::npos);
    EXPECT_EQ(read_snapshot(folder.path() / "gone").error().code, Errc::not_found);
    folder.write("snapshot.ini", std::string(max_ini_bytes + 1, '\n'));
    const auto large = read_snapshot(folder.path());
    EXPECT_EQ(large.error().code, Errc::unsupported);
    EXPECT_NE(large.error().message.find("is longer than 1048576 bytes"), std::string::npos);
}

TEST(Snapshot, FoldersInPlaceOfFiles) {
    const TemporaryFolder folder;
    folder.write("snapshot.ini", "[snapshot]\nversion=1.0\n[device_list]\na=core.ini\nb=sub\n");
    folder.write("core.ini", "[device]\nname=c\nclass=core\ntype=Cortex-A9\n[dump]\nfile=sub\naddress=0\n");
    fs::create_directory(folder.path() / "sub");
    const auto capture = read_snapshot(folder.path());
    ASSERT_TRUE(capture.has_value());
    ASSERT_EQ(capture->problems.size(), 2U);
    EXPECT_NE(listed(capture->problems).find("it is a folder"), std::string::npos);
    EXPECT_NE(listed(capture->problems).find("is a folder where a file was expected"), std::string::npos);
}

// --- real captures ---

TEST(SnapshotCorpus, Tc2) {
    WM_NEEDS_CORPUS("ptm");
    const auto capture = read_snapshot(support::corpus_folder() / "ptm/tc2");
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_EQ(read_snapshot(support::corpus_folder() / "ptm/tc2/snapshot.ini").value(), *capture);
    EXPECT_EQ(capture->cores.size(), 5U);
    EXPECT_EQ(capture->sources.size(), 6U);
    EXPECT_EQ(capture->dumps.size(), 5U);
    const Source* ptm = capture->find_source("PTM_0");
    ASSERT_NE(ptm, nullptr);
    EXPECT_EQ(ptm->type, "PTM1.1");
    EXPECT_EQ(ptm->core, "cpu_3");
    EXPECT_EQ(ptm->core_type, "Cortex-A15");
    EXPECT_EQ(*ptm->find_register("ETMTRACEIDR"), (Register{"ETMTRACEIDR", 0x13, 0x80, 32}));
    EXPECT_EQ(capture->find_source("ITM_0")->core, "");
    ASSERT_EQ(capture->buffers.size(), 1U);
    EXPECT_EQ(capture->buffers[0].sources,
              (std::vector<std::string>{"ETM_0", "ETM_1", "ETM_2", "PTM_0", "PTM_1", "ITM_0"}));
    EXPECT_EQ(concatenate(capture->buffers[0].files).value()->size(), 32768U);
}

TEST(SnapshotCorpus, Snowball) {
    WM_NEEDS_CORPUS("ptm");
    const auto capture = read_snapshot(support::corpus_folder() / "ptm/snowball");
    ASSERT_TRUE(capture.has_value()) << capture.error().message;
    EXPECT_EQ(listed(capture->problems), "");
    EXPECT_EQ(capture->cores.size(), 2U);
    EXPECT_EQ(capture->sources[1].core, "cpu_1");
    EXPECT_EQ(capture->dumps[0].address, Address{0xc0008000});
    EXPECT_EQ(capture->dumps[0].length, 0x50000U);
}

// --- writing ---

/// A complete capture, in a separate folder.
Capture complete(const TemporaryFolder& folder) {
    Capture c;
    c.path = folder.path() / "snapshot.ini";
    c.description = "all there is";
    c.cores = {{"a", "Cortex-A15", {{"R15", 0xc0008000}, {"X0", 0xfedcba9876543210, 5, 64}}, "dap:1,ap:2", "a.ini"},
               {"b", "ARMv7-A", {}, "", "b.ini"}};
    c.sources = {{"s",
                  "PTM1.1",
                  "a",
                  "Cortex-A15",
                  {{"ETMCR", 0x10001000, 0, 32}, {"ETMIDR", 0x411cf312, 0x79}},
                  7,
                  "",
                  "s.ini"},
                 {"t", "PFT1.0", "b", "ARMv7-A", {}, std::nullopt, "address:0x8", "t.ini"},
                 {"i", "ITM", "", "", {}, std::nullopt, "", "i.ini"}};
    c.buffers = {{"x",
                  Buffer::Format::coresight,
                  "coresight",
                  {folder.write("x0", "0123456789abcdef"), folder.write("x1", "0123456789abcdef")},
                  {"s", "t"}},
                 {"y", Buffer::Format::source_data, "source_data", {folder.write("sub/y", "1")}, {"i"}},
                 {"z", Buffer::Format::dstream_coresight, "dstream_coresight", {folder.write("z", "1")}, {"s"}}};
    c.dumps = {{"", folder.write("m0", "12345"), Address{0x8000}, 0, std::nullopt, ""},
               {"a", folder.write("m1", "12345"), Address{0xffff00008000}, 1, 4, "EL1N"},
               {"a", folder.path() / "m0", Address{0}, 0, 5, ""}};
    c.clusters = {{"one", {"a", "b"}}, {"two", {"b"}}};
    c.timestamp_frequency_hz = 1000;
    return c;
}

TEST(SnapshotWriter, ReadsBackEqual) {
    const TemporaryFolder folder;
    const Capture capture = complete(folder);
    const Status status = write_snapshot(capture, folder.path());
    ASSERT_TRUE(status.has_value()) << status.error().message;
    const auto again = read_snapshot(folder.path());
    ASSERT_TRUE(again.has_value()) << again.error().message;
    EXPECT_EQ(listed(again->problems), "");
    EXPECT_EQ(*again, capture);
    // The dump of every space has no key `space`.
    std::ifstream in(folder.path() / "a.ini");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    EXPECT_NE(text.find("space=EL1N\n"), std::string::npos);
    EXPECT_EQ(text.find("space=\n"), std::string::npos);
}

TEST(SnapshotWriter, APartOfTheRunReadsBackAndIsAProblem) {
    const TemporaryFolder folder;
    Capture capture = complete(folder);
    capture.buffers[0].length = 32;
    capture.buffers[0].wrapped = true;
    capture.buffers[0].overwritten = 1000;
    capture.buffers[0].begins = "where execution first reached 0x8000 (--start-at)";
    capture.buffers[2].ends = "after 10 instructions (--limit)";
    ASSERT_TRUE(write_snapshot(capture, folder.path()).has_value());
    auto again = read_snapshot(folder.path());
    ASSERT_TRUE(again.has_value()) << again.error().message;
    std::string said;
    for (const Problem& problem : again->problems) {
        EXPECT_EQ(problem.kind, Problem::Kind::part);
        said += problem.message + "\n";
    }
    EXPECT_EQ(said,
              "buffer x wrapped: it holds the last 32 of 1,032 bytes of trace. What ran before is not in it; a larger "
              "buffer keeps more.\n"
              "the recording began where execution first reached 0x8000 (--start-at): earlier execution is not in it.\n"
              "the recording ended after 10 instructions (--limit): later execution is not in it.\n");
    again->problems.clear();
    EXPECT_EQ(*again, capture);
    capture.buffers[0].begins = "a; b";
    EXPECT_FALSE(write_snapshot(capture, folder.path()).has_value());
}

TEST(SnapshotWriter, ChoosesFileNames) {
    const TemporaryFolder folder;
    Capture capture = complete(folder);
    capture.cores[0].file = "";
    capture.cores[1].file = "../escape.ini";
    capture.sources[0].file = "snapshot.ini";
    capture.sources[1].file = "i.ini";
    ASSERT_TRUE(write_snapshot(capture, folder.path()).has_value());
    const auto again = read_snapshot(folder.path());
    EXPECT_EQ(again->cores[0].file, "core_0.ini");
    EXPECT_EQ(again->cores[1].file, "core_1.ini");
    EXPECT_EQ(again->sources[0].file, "source_0.ini");
    EXPECT_EQ(again->sources[1].file, "i.ini");
    EXPECT_EQ(again->sources[2].file, "source_2.ini");
    capture.cores[0].file = "core_1.ini";
    ASSERT_TRUE(write_snapshot(capture, folder.path() / "taken").has_value());
    EXPECT_EQ(read_snapshot(folder.path() / "taken")->cores[1].file, "core_1_1.ini");
}

TEST(SnapshotWriter, FilesOutsideAreReachedFromTheFolder) {
    const TemporaryFolder folder;
    const Capture capture = complete(folder);
    const fs::path target = folder.path() / "copy" / "";
    ASSERT_TRUE(write_snapshot(capture, target).has_value());
    const auto again = read_snapshot(target);
    ASSERT_TRUE(again.has_value());
    EXPECT_TRUE(fs::equivalent(again->buffers[1].files[0], capture.buffers[1].files[0]));
    EXPECT_NE(listed(again->problems).find("lies outside the snapshot folder"), std::string::npos);
}

TEST(SnapshotWriter, RawCapture) {
    const TemporaryFolder folder;
    RawOptions options;
    options.source_type = "PTM1.1";
    options.registers = {{"ETMCR", 0x10001000, 0}};
    options.core_type = "Cortex-A15";
    options.dumps = {{"core0", folder.write("image", "1234"), Address{0x8000}}};
    options.more_files = {folder.write("second", "2")};
    Capture capture = raw_capture(folder.write("first", "1"), options);
    EXPECT_EQ(capture.buffers[0].files.size(), 2U);
    EXPECT_EQ(capture.buffers[0].format, Buffer::Format::source_data);
    EXPECT_EQ(capture.buffers[0].sources, (std::vector<std::string>{"source0"}));
    EXPECT_EQ(capture.sources[0].core, "core0");
    EXPECT_EQ(capture.sources[0].core_type, "Cortex-A15");
    ASSERT_TRUE(write_snapshot(capture, folder.path()).has_value());
    const auto again = read_snapshot(folder.path());
    EXPECT_EQ(listed(again->problems), "");
    capture.path = folder.path() / "snapshot.ini";
    capture.cores[0].file = "core_0.ini";
    capture.sources[0].file = "source_0.ini";
    EXPECT_EQ(*again, capture);
}

TEST(SnapshotWriter, RefusesWhatTheFormatCannotHold) {
    const TemporaryFolder folder;
    const auto refused = [&](auto change) {
        Capture capture = complete(folder);
        change(capture);
        const Status status = write_snapshot(capture, folder.path() / "out");
        if (status) return std::string("written");
        EXPECT_EQ(status.error().code, Errc::usage);
        return status.error().message;
    };
    const auto has = [](const std::string& message, const char* part) {
        return message.find(part) != std::string::npos;
    };
    EXPECT_TRUE(has(refused([](Capture& c) { c.description = "a;b"; }), "the character 0x3b"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.description = " a"; }), "blanks at its ends"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.description = "'a'"; }), "quotes"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.cores[0].name = ""; }), "core has no name"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.cores[0].name = "@x"; }), "must not begin with"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.cores[0].name = "s"; }), "another thing with that name"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.sources[0].name = "a=b"; }), "the character 0x3d"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.sources[0].location = "a;b"; }), "the character 0x3b"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.cores[0].location = "a;b"; }), "the character 0x3b"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.sources[0].core = "q"; }), "traces core 'q'"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.sources[1].core = "a"; }), "two trace sources"));
    EXPECT_TRUE(has(refused([](Capture& c) {
                        c.sources[1].stream = 3;
                        c.buffers[0].sources = {"s"};
                    }),
                    "stream number"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.buffers[0].name = "y"; }), "another thing with that name"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.buffers[0].files.clear(); }), "has no file"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.buffers[0].files[0] += ",x"; }), "the character 0x2c"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.buffers[0].files[0] = "-"; }), "standard input"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.buffers[0].sources.emplace_back("q"); }), "contains trace source 'q'"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.buffers[0].format_name = "source_data"; }), "contradicts"));
    EXPECT_TRUE(has(refused([](Capture& c) {
                        c.buffers[0].format = Buffer::Format::unknown;
                        c.buffers[0].format_name = "";
                    }),
                    "has no format name"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.clusters[0].cores = {"q"}; }), "names core 'q'"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.dumps[0].core = "q"; }), "belongs to core 'q'"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.cores[0].registers[0].bits = 8; }), "does not fit 8 bits"));
    EXPECT_TRUE(has(refused([](Capture& c) { c.cores[0].registers.push_back({"r15", 1}); }), "appears twice"));
    const Status blocked = write_snapshot(complete(folder), folder.write("file", "x") / "sub");
    ASSERT_FALSE(blocked.has_value());
    EXPECT_EQ(blocked.error().code, Errc::unreadable);
}

/// Output of a program; nothing when it fails.
std::string output_of(const std::string& command) {
    std::string text;
    FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
    if (pipe == nullptr) return text;
    char chunk[4096];
    while (const std::size_t got = std::fread(chunk, 1, sizeof chunk, pipe)) text.append(chunk, got);
    return ::pclose(pipe) == 0 ? text : std::string();
}

TEST(SnapshotWriter, OpenCsdListsARewrittenFolderLikeTheOriginal) {
    WM_NEEDS_CORPUS("ptm");
    if (output_of("command -v trc_pkt_lister").empty())
        GTEST_SKIP() << "trc_pkt_lister (Debian: libopencsd-bin) is not installed";
    for (const char* name : {"tc2", "snowball"}) {
        const TemporaryFolder folder;
        const fs::path original = support::corpus_folder() / "ptm" / name;
        Capture capture = read_snapshot(original).value();
        for (const auto& entry : fs::directory_iterator(original))
            if (entry.path().extension() == ".bin") fs::copy(entry.path(), folder.path());
        for (Buffer& buffer : capture.buffers)
            for (fs::path& file : buffer.files) file = folder.path() / file.filename();
        for (MemoryDump& dump : capture.dumps) dump.file = folder.path() / dump.file.filename();
        capture.path = folder.path() / "snapshot.ini";
        ASSERT_TRUE(write_snapshot(capture, folder.path()).has_value());
        EXPECT_EQ(read_snapshot(folder.path()).value(), capture);

        // The program leaves a log file in its folder, with any options.
        const auto list = [&folder](const fs::path& snapshot) {
            std::string text = output_of("cd " + shell_word(folder.path()) + " && trc_pkt_lister -ss_dir " +
                                         shell_word(snapshot) + " -decode -logstdout");
            // The log contains the folder's name.
            for (auto at = text.find(snapshot.string()); at != std::string::npos; at = text.find(snapshot.string(), at))
                text.erase(at, snapshot.string().size());
            return text;
        };
        const std::string expected = list(original);
        EXPECT_GT(expected.size(), 100000U);
        const std::string actual = list(folder.path());
        EXPECT_EQ(actual.size(), expected.size());
        EXPECT_TRUE(actual == expected);
    }
}

}  // namespace
}  // namespace waymark::capture
