#include "waymark/capture/dpu_folder.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>

#include "support/temporary_folder.h"

namespace waymark::capture {
namespace {

namespace fs = std::filesystem;

class Texts final : public FileAccess {
public:
    std::string ini;
    std::map<std::string, std::uint64_t> sizes;
    [[nodiscard]] Result<std::string> text(const fs::path&, std::uint64_t) const override { return ini; }
    [[nodiscard]] Result<std::uint64_t> size(const fs::path& path) const override {
        const auto found = sizes.find(path.string());
        if (found == sizes.end()) return Error{Errc::not_found, "there is no such file"};
        return found->second;
    }
    [[nodiscard]] Result<DpuCapture> read() const { return read_dpu_folder("c/dpu.ini", *this); }
};

/// The set-up of docs/spec/dpu.md, 10.1.
DpuCapture example(const fs::path& folder) {
    DpuCapture c;
    c.layout = "WL-1";
    c.buffer = folder / "vtb.bin";
    c.nexus = folder / "nexus.bin";
    c.registers = {{"DP_CR", 0},           {"DP_SR", 0},          {"DP_MR", 0x400},       {"DP_TAC", 0x000F0023},
                   {"DP_TBC", 0x000F0073}, {"DP_TC", 0x00200085}, {"DP_TSA", 0x20000000}, {"DP_TEA", 0x20000060},
                   {"DP_TER", 0},          {"DP_TW", 0x20000000}};
    c.initial = {0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF};
    c.final = {0x7FFFE7C7, 0x7FFFFC99, 0x7FFFFFFF, 0x7FFFF8CF, 0x7FFFFFC9, 0x7FFFFFFC};
    c.initial_context = {false, 5, 6};
    c.lines_written = 4;
    c.eonce_classes = {{"TINT", "TRTE"}};
    c.eonce_counters = 0;
    c.filters = {{0, true, false, 1, 5, 6, 0}, {99, false, false, 3, 5, 255, 1234}};
    c.history = DpuCounterHistory{0x21, 0x02, 0x10};
    c.readout = true;
    c.overruns = {0x40, 0x1000};
    c.periods = {{0x20000040, 0x00200003, DpuContext{true, 1, 1}, 2},
                 {0x20000060, 0x00200005, std::nullopt, std::nullopt}};
    c.driven = {{"CYCLES", "VLES"}};
    c.images = {{folder / "program"}, {folder / "lib" / "libc.so", 0x40001000}};
    c.windows = {{0x5555'0000'0000, 0x1000, 0x10000000}};
    c.symbols = {{0xFFF0B030, "[sys] write"}};
    c.parameters = {{"quantum", "100000"}};
    return c;
}

TEST(DpuFolder, ReadsWhatItWrites) {
    const TemporaryFolder folder;
    const fs::path where = folder.path() / "capture";
    const DpuCapture written = example(where);
    const auto status = write_dpu_folder(written, where);
    ASSERT_TRUE(status.has_value()) << status.error().message;
    folder.write("capture/vtb.bin", std::string(128, '\0'));
    folder.write("capture/nexus.bin", std::string("x"));
    EXPECT_TRUE(is_dpu_folder(where));
    EXPECT_TRUE(is_dpu_folder(where / "dpu.ini"));
    EXPECT_FALSE(is_dpu_folder(folder.path()));
    for (const fs::path& path : {where, where / "dpu.ini"}) {
        auto read = read_dpu_folder(path);
        ASSERT_TRUE(read.has_value()) << read.error().message;
        EXPECT_TRUE(read->problems.empty()) << to_string(read->problems[0]);
        read->path = written.path;
        EXPECT_EQ(*read, written);
    }
}

TEST(DpuFolder, OfEitherByteOrder) {
    const TemporaryFolder folder;
    for (const bool little : {false, true}) {
        DpuCapture written = example(folder.path());
        written.little_endian = little;
        written.readout = !little;
        ASSERT_TRUE(write_dpu_folder(written, folder.path()));
        folder.write("vtb.bin", std::string(128, '\0'));
        folder.write("nexus.bin", std::string("x"));
        const auto read = read_dpu_folder(folder.path());
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(read->little_endian, little);
        EXPECT_EQ(read->readout, !little);
    }
}

TEST(DpuFolder, AnAbsentFieldStaysAbsent) {
    const TemporaryFolder folder;
    DpuCapture written = example(folder.path());
    written.eonce_counters.reset();
    ASSERT_TRUE(write_dpu_folder(written, folder.path()));
    folder.write("vtb.bin", std::string(128, '\0'));
    folder.write("nexus.bin", std::string("x"));
    const auto read = read_dpu_folder(folder.path());
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->eonce_classes, written.eonce_classes);
    EXPECT_EQ(read->eonce_counters, std::nullopt);
}

TEST(DpuFolder, TheSizeOfABufferIsThatOfItsRegistersUnlessOneAddressReceivesAll) {
    const auto complains = [](const std::string& control, std::uint64_t bytes) {
        Texts files;
        files.ini = "[dpu]\nversion=1\nlayout=WL-1\nbuffer=b\n[registers]\nDP_TC=" + control +
                    "\nDP_TSA=0x20000000\nDP_TEA=0x20000060\n";
        files.sizes["c/b"] = bytes;
        const auto read = files.read();
        EXPECT_TRUE(read.has_value());
        return std::any_of(read->problems.begin(), read->problems.end(), [](const auto& problem) {
            return problem.message.find("but the buffer from DP_TSA to DP_TEA has 128") != std::string::npos;
        });
    };
    EXPECT_TRUE(complains("0x00200085", 127));
    EXPECT_FALSE(complains("0x00200085", 128));
    EXPECT_TRUE(complains("0x00200085", 129));
    EXPECT_FALSE(complains("0x00200185", 127));
    EXPECT_TRUE(complains("0x00200385", 127));
}

TEST(DpuFolder, ABaseIsAligned) {
    Texts files;
    files.ini = "[dpu]\nversion=1\nlayout=WL-1\ndpu_base=0xfff0b234\nbuffer=b\n";
    files.sizes["c/b"] = 64;
    const auto read = files.read();
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->dpu_base, 0xfff0b000U);
    EXPECT_TRUE(
        read->problems[0].message.starts_with("dpu_base 0xfff0b234 is not aligned to 4096 bytes, as every base "
                                              "must be; 0xfff0b000 is used."))
        << read->problems[0].message;
}

TEST(DpuFolder, NamesThatAnIniFileCannotHoldAreRefused) {
    const TemporaryFolder folder;
    for (const char* name : {"A=B", "[A"}) {
        DpuCapture written = example(folder.path());
        written.registers.push_back({name, 1});
        EXPECT_FALSE(write_dpu_folder(written, folder.path())) << name;
    }
}

TEST(DpuFolder, AFilterNeedsEachOfItsKeys) {
    const std::vector<std::string> keys{"words=1\n", "DP_TC=0x800\n", "DP_CR=0\n", "DP_RPID=5\n", "DP_RDID=6\n"};
    for (std::size_t absent = 0; absent <= keys.size(); ++absent) {
        Texts files;
        files.ini = "[dpu]\nversion=1\nlayout=WL-1\nbuffer=b\n[filter]\n";
        for (std::size_t i = 0; i < keys.size(); ++i)
            if (i != absent) files.ini += keys[i];
        files.sizes["c/b"] = 64;
        const auto read = files.read();
        ASSERT_TRUE(read.has_value());
        const bool whole = absent == keys.size();
        EXPECT_EQ(read->filters.size(), whole ? 1U : 0U) << absent;
        EXPECT_EQ(std::any_of(read->problems.begin(), read->problems.end(),
                              [](const auto& problem) {
                                  return problem.message.starts_with("Section [filter] needs words, DP_TC");
                              }),
                  !whole)
            << absent;
    }
}

TEST(DpuFolder, ListsAreBounded) {
    Texts files;
    files.ini = "[dpu]\nversion=1\nlayout=WL-1\nbuffer=b\n[images]\n";
    for (unsigned i = 0; i < 65538; ++i) files.ini += "image" + std::to_string(i) + "=i\n";
    files.sizes["c/b"] = files.sizes["c/i"] = 64;
    const auto read = files.read();
    ASSERT_TRUE(read.has_value());
    EXPECT_EQ(read->images.size(), 65536U);
    files.ini = "[dpu]\nversion=1\nlayout=WL-1\nbuffer=b\n";
    for (unsigned i = 0; i < 65538; ++i) files.ini += "[period" + std::to_string(i) + "]\nDP_TW=0\nDP_TC=1\n";
    const auto periods = files.read();
    ASSERT_TRUE(periods.has_value());
    EXPECT_EQ(periods->periods.size(), 65536U);
}

TEST(DpuFolder, WithoutMostOfIt) {
    Texts files;
    files.ini = "[dpu]\nversion=1\nlayout=WL-1\nbuffer=vtb.bin\n";
    files.sizes["c/vtb.bin"] = 64;
    const auto read = files.read();
    ASSERT_TRUE(read.has_value()) << read.error().message;
    EXPECT_EQ(read->problems.size(), 8U);
    EXPECT_EQ(
        to_string(read->problems[0]),
        "c/dpu.ini: The capture does not give DP_TC: entries are distinguished without the trace mode, and damage is "
        "seen less often.");
}

TEST(DpuFolder, EachRegisterOfAGroupIsNeeded) {
    const std::vector<std::string> ring{"DP_TSA", "DP_TEA", "DP_TW", "DP_MR"}, events{"DP_TAC", "DP_TBC"};
    const auto lacks = [&](const std::string& without, const std::string& message) {
        Texts files;
        files.ini = "[dpu]\nversion=1\nlayout=WL-1\nbuffer=vtb.bin\n[registers]\n";
        for (const auto* const group : {&ring, &events})
            for (const std::string& name : *group)
                if (name != without) files.ini += name + "=0x400\n";
        files.sizes["c/vtb.bin"] = 64;
        const auto read = files.read();
        EXPECT_TRUE(read.has_value());
        return std::any_of(read->problems.begin(), read->problems.end(), [&](const auto& problem) {
            return to_string(problem).find(" does not give " + message + ":") != std::string::npos;
        });
    };
    for (const std::string& name : ring) EXPECT_TRUE(lacks(name, "DP_TSA, DP_TEA, DP_TW and DP_MR")) << name;
    for (const std::string& name : events) EXPECT_TRUE(lacks(name, "DP_TAC and DP_TBC")) << name;
    EXPECT_FALSE(lacks("", "DP_TSA, DP_TEA, DP_TW and DP_MR"));
    EXPECT_FALSE(lacks("", "DP_TAC and DP_TBC"));
}

// With NXMODE 11, or without a buffer, only messages place a change of the filters.
TEST(DpuFolder, ChangesOfFiltersNeedAPlaceAmongMessages) {
    const std::string filters = "[filter0]\nwords=0\nDP_TC=0x800\nDP_CR=0x10000000\nDP_RPID=5\nDP_RDID=0\n";
    const auto asks = [&](const std::string& head, const std::string& second) {
        Texts files;
        files.ini = "[dpu]\nversion=1\nlayout=WL-1\n" + head + filters +
                    "message_bytes=0\n[filter1]\nwords=0\nDP_TC=0\n" + "DP_CR=0\nDP_RPID=5\nDP_RDID=0\n" + second;
        files.sizes["c/n"] = files.sizes["c/b"] = 64;
        const auto read = files.read();
        EXPECT_TRUE(read.has_value());
        return std::any_of(read->problems.begin(), read->problems.end(), [](const auto& problem) {
            return to_string(problem) ==
                   "c/dpu.ini: The capture does not give message_bytes of each [filter]: the places in the "
                   "Nexus messages at which the filters change are not known, so counts of other tasks may be "
                   "assigned to this one.";
        });
    };
    EXPECT_TRUE(asks("nexus=n\n", ""));
    EXPECT_FALSE(asks("nexus=n\n", "message_bytes=17\n"));
    EXPECT_TRUE(asks("buffer=b\nnexus=n\n[registers]\nDP_TC=0x03000001\n", ""));
    EXPECT_FALSE(asks("buffer=b\nnexus=n\n[registers]\nDP_TC=0x01000001\n", ""));
    EXPECT_FALSE(asks("buffer=b\n", ""));
}

TEST(DpuFolder, Errors) {
    const TemporaryFolder folder;
    EXPECT_EQ(read_dpu_folder(folder.path() / "none").error().code, Errc::not_found);
    EXPECT_EQ(read_dpu_folder(folder.path()).error().code, Errc::not_found);
    Texts files;
    const auto fails = [&](const std::string& ini, Errc code) {
        files.ini = ini;
        const auto read = files.read();
        ASSERT_FALSE(read.has_value()) << ini;
        EXPECT_EQ(read.error().code, code) << read.error().message;
    };
    fails("", Errc::bad_format);
    fails("[snapshot]\nversion=1\n", Errc::bad_format);
    fails("[dpu]\nversion=2\nlayout=WL-1\nbuffer=b\n", Errc::unsupported);
    fails("[dpu]\nversion=1\nbuffer=b\n", Errc::bad_format);
    fails("[dpu]\nversion=1\nlayout=WL-1\n", Errc::bad_format);
    fails("[dpu]\nversion=1\nlayout=WL-1\nbuffer=b\n", Errc::not_found);
    fails("[dpu]\nversion=1\nlayout=WL-1\nnexus=b\n", Errc::not_found);
    EXPECT_EQ(files.read().error().message,
              "c/b: there is no such file, but c/dpu.ini names it as nexus; copy the whole capture folder");

    DpuCapture capture = example(folder.path());
    capture.layout = "WL;1";
    EXPECT_EQ(write_dpu_folder(capture, folder.path()).error().code, Errc::usage);
    capture = example(folder.path());
    capture.symbols[0].name = "a\nb";
    EXPECT_EQ(write_dpu_folder(capture, folder.path()).error().code, Errc::usage);
    capture = example(folder.path());
    capture.driven = {{"A,B"}};
    EXPECT_EQ(write_dpu_folder(capture, folder.path()).error().code, Errc::usage);
    folder.write("file", std::string("x"));
    EXPECT_EQ(write_dpu_folder(example(folder.path()), folder.path() / "file").error().code, Errc::unreadable);
}

/// Every mistake is reported, and the rest is kept.
TEST(DpuFolder, Problems) {
    Texts files;
    files.sizes["c/vtb.bin"] = 96;
    files.ini =
        "[dpu]\nversion=1\nlayout=WL-1\nbuffer=vtb.bin\nbyte_order=middle\ndpu_base=0xfff0a800\nlines=3\n"
        "nexus=gone.bin\n"
        "[registers]\nDP_TSA=0x20000000\nDP_TEA=0x20000060\nDP_TW=one\nDP_TSA=0\nDP_TC=5\n"
        "[initial]\nA0=1\nA1=0x80000000\ncontext=guest,1,1\n[final]\nA0=1\nA1=1\nA2=1\nB0=1\nB1=1\nB2=1\n"
        "[filter0]\nword=0\n[eonce]\ncounters=3\n[events]\ndriven=\n[period1]\nDP_TW=0\n[address_map]\n0=1\n[symbols]"
        "\nx=y\n[imagse]\n";
    const auto read = files.read();
    ASSERT_TRUE(read.has_value()) << read.error().message;
    std::string all;
    for (const Problem& problem : read->problems) all += to_string(problem) + "\n";
    for (const char* part :
         {"byte_order is 'middle'", "dpu_base 0xfff0a800 is not aligned", "has no key 'lines'", "has no key 'word'",
          "Section [filter0] needs words", "'one' is not a value of 32 bits; register 'DP_TW'",
          "Register 'DP_TSA' appears again", "'0x80000000' of key 'A1'", "'guest,1,1' is not a context",
          "gives 1 of 6 counters", "'3' of key 'counters'", "[period1] needs DP_TW and DP_TC", "'0=1' is not a window",
          "'x' is not an address", "no section [imagse]; it was ignored. Did you mean 'images'?",
          "vtb.bin has 96 bytes, but the buffer from DP_TSA to DP_TEA has 128: it is cut",
          "c/gone.bin: there is no such file", "does not give the initial values"})
        EXPECT_NE(all.find(part), std::string::npos) << part << "\n" << all;
    // All events are known, so none is named.
    EXPECT_EQ(all.find("the events that were driven"), std::string::npos) << all;
    EXPECT_EQ(read->dpu_base, 0xFFF0A000U);
    EXPECT_EQ(read->registers.size(), 3U);
    EXPECT_TRUE(read->final);
    EXPECT_FALSE(read->initial);
    EXPECT_EQ(read->driven, std::vector<std::string>{});
    EXPECT_TRUE(read->periods.empty());
}

/// Damaged text ends with a capture or an error that says something.
TEST(DpuFolder, DamagedText) {
    const TemporaryFolder folder;
    ASSERT_TRUE(write_dpu_folder(example(folder.path()), folder.path()).has_value());
    std::ifstream in(folder.path() / "dpu.ini", std::ios::binary);
    const std::string whole{std::istreambuf_iterator<char>(in), {}};
    Texts files;
    files.sizes["c/vtb.bin"] = 128;
    std::mt19937_64 random(1);
    unsigned captures = 0;
    for (unsigned round = 0; round < 2000; ++round) {
        files.ini = whole;
        for (std::uint64_t n = 1 + random() % 6; n-- > 0 && !files.ini.empty();) {
            const std::size_t at = random() % files.ini.size();
            switch (random() % 4) {
                case 0: files.ini[at] = static_cast<char>(random()); break;
                case 1: files.ini.erase(at, random() % 40); break;
                case 2: files.ini.insert(at, files.ini.substr(random() % files.ini.size(), random() % 60)); break;
                default: files.ini[at] = "[]=,\n;#0x"[random() % 9]; break;
            }
        }
        const auto read = files.read();
        captures += read.has_value();
        if (!read) {
            EXPECT_FALSE(read.error().message.empty());
            continue;
        }
        for (const Problem& problem : read->problems) EXPECT_FALSE(problem.message.empty());
        EXPECT_EQ(read->dpu_base % 4096, 0U);
        EXPECT_LE(read->eonce_counters.value_or(0), 2U);
    }
    EXPECT_GT(captures, 500U);
}

}  // namespace
}  // namespace waymark::capture
