/// Sessions of sigrok, sampled here from bytes that are known: which channels carry them, and the bytes.
/// tests/doctor/sigrok_test.py has sigrok's own decoder as a witness.
#include "waymark/capture/sigrok.h"

#include <gtest/gtest.h>
#include <minizip/zip.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../../src/capture/logic_lines.h"
#include "support/temporary_folder.h"

namespace waymark::capture {
namespace {

using Octets = std::vector<std::uint8_t>;
using Level = std::vector<bool>;  // of a line, for each sample

Octets random_bytes(unsigned seed, std::size_t count) {
    std::mt19937 random(seed);
    Octets out(count);
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(random());
    return out;
}

/// A line that sends characters after an idle time; if it sends no stop bit, each character is bad.
Level uart(const Octets& bytes, double samples_per_bit, bool stop = true) {
    Level out;
    double at = 0;
    const auto add = [&](bool level, double bits) {
        at += bits * samples_per_bit;
        while (static_cast<double>(out.size()) < at) out.push_back(level);
    };
    add(true, 20);
    for (const std::uint8_t byte : bytes) {
        add(false, 1);
        for (unsigned n = 0; n < 8; ++n) add((byte >> n & 1) != 0, 1);
        add(stop, 1);
        add(true, byte % 3);
    }
    add(true, 20);
    return out;
}

/// The lines of a trace port: its clock, and its data lines from the lowest on. `skipped`: bits before the first byte.
std::vector<Level> trace_port(const Octets& bytes, unsigned width, unsigned skipped, unsigned samples_per_edge) {
    std::vector<bool> bits(skipped, true);
    for (const std::uint8_t byte : bytes)
        for (unsigned n = 0; n < 8; ++n) bits.push_back((byte >> n & 1) != 0);
    bits.resize((bits.size() + width - 1) / width * width);
    std::vector<Level> out(width + 1);
    bool clock = false;
    const auto add = [&](auto&& level) {
        for (unsigned i = 0; i < samples_per_edge; ++i) {
            out[0].push_back(clock);
            for (unsigned line = 0; line < width; ++line) out[line + 1].push_back(level(line));
        }
    };
    add([](unsigned) { return false; });
    for (std::size_t at = 0; at < bits.size(); at += width) {
        clock = !clock;
        add([&](unsigned line) { return bits[at + line]; });
    }
    return out;
}

/// Bytes with the full syncs of a formatter among them.
Octets with_syncs(const Octets& bytes) {
    Octets out;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        if (i % 20 == 0) out.insert(out.end(), {0xff, 0xff, 0xff, 0x7f});
        out.push_back(bytes[i] & 0x7f);
    }
    return out;
}

/// A session, as sigrok writes it.
struct Session {
    std::vector<std::pair<std::string, Level>> lines{};  ///< by channel: its name, what it carries
    unsigned unit_bytes = 1;
    std::string rate = "24 MHz";
    unsigned parts = 0;  ///< number of files with samples; 0: one file with the name of a whole session
    std::string metadata{}, version = "2";

    [[nodiscard]] std::string described() const {
        std::string out = "[global]\nsigrok version=0.5.2\n\n[device 1]\ncapturefile=logic-1\ntotal probes=" +
                          std::to_string(lines.size()) + "\nsamplerate=" + rate + "\n";
        for (std::size_t i = 0; i < lines.size(); ++i)
            if (!lines[i].first.empty()) out += "probe" + std::to_string(i + 1) + "=" + lines[i].first + "\n";
        return out + "unitsize=" + std::to_string(unit_bytes) + "\n";
    }
    [[nodiscard]] std::string samples() const {
        std::size_t count = 0;
        for (const auto& line : lines) count = std::max(count, line.second.size());
        std::string out(count * unit_bytes, '\0');
        for (std::size_t channel = 0; channel < lines.size(); ++channel) {
            const Level& level = lines[channel].second;
            for (std::size_t i = 0; i < count && !level.empty(); ++i)
                if (level[std::min(i, level.size() - 1)])
                    out[i * unit_bytes + channel / 8] |= static_cast<char>(1 << channel % 8);
        }
        return out;
    }
    void write(const std::filesystem::path& path) const {
        zipFile zip = zipOpen64(path.c_str(), APPEND_STATUS_CREATE);
        const auto add = [&](const std::string& name, const std::string& contents) {
            EXPECT_EQ(zipOpenNewFileInZip(zip, name.c_str(), nullptr, nullptr, 0, nullptr, 0, nullptr, Z_DEFLATED, 1),
                      ZIP_OK);
            EXPECT_EQ(zipWriteInFileInZip(zip, contents.data(), static_cast<unsigned>(contents.size())), ZIP_OK);
            EXPECT_EQ(zipCloseFileInZip(zip), ZIP_OK);
        };
        if (!version.empty()) add("version", version);
        add("metadata", metadata.empty() ? described() : metadata);
        const std::string all = samples();
        if (parts == 0) add("logic-1", all);
        // Parts of odd sizes, with any size of a sample.
        const std::size_t each = parts == 0 ? 0 : (all.size() / parts) | 1;
        for (unsigned i = 0; i < parts; ++i)
            add("logic-1-" + std::to_string(i + 1), i + 1 == parts ? all.substr(i * each) : all.substr(i * each, each));
        EXPECT_EQ(zipClose(zip, nullptr), ZIP_OK);
    }
};

class Sigrok : public testing::Test {
protected:
    std::filesystem::path write(const Session& session) {
        const std::filesystem::path path = folder_.path() / "session.sr";
        session.write(path);
        return path;
    }
    LogicWiring wiring(const Session& session) {
        auto found = logic_wiring(write(session));
        if (!found) {
            ADD_FAILURE() << found.error().message;
            return {};
        }
        EXPECT_TRUE(found->has_value());
        return found->value_or(LogicWiring{});
    }
    Octets bytes(const Session& session, std::size_t at_once = 1000) {
        auto stream = open_sigrok(write(session));
        if (!stream || *stream == nullptr) {
            ADD_FAILURE() << (stream ? "no session" : stream.error().message);
            return {};
        }
        Octets out, piece(at_once);
        for (std::size_t got = 1; got != 0;) {
            auto read = (*stream)->read(piece);
            if (!read) {
                ADD_FAILURE() << read.error().message;
                return out;
            }
            got = *read;
            out.insert(out.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(got));
        }
        return out;
    }
    Error error(const Session& session) {
        const auto found = logic_wiring(write(session));
        EXPECT_FALSE(found);
        return found ? Error{} : found.error();
    }

    TemporaryFolder folder_;
};

TEST_F(Sigrok, AUartOnAnyChannel) {
    const Octets sent = random_bytes(1, 300);
    for (const double samples_per_bit : {3.0, 4.7, 12.0, 104.17}) {
        SCOPED_TRACE(samples_per_bit);
        // The line is low until the target sends.
        Level line = uart(sent, samples_per_bit);
        line.insert(line.begin(), 50, false);
        const Session session{{{"RESET", Level{true}}, {"SWO", line}, {"", Level{}}}};
        const LogicWiring found = wiring(session);
        EXPECT_EQ(found.kind, LogicWiring::Kind::uart);
        EXPECT_EQ(found.channels, std::vector{1U});
        EXPECT_EQ(found.lines, "SWO");
        EXPECT_EQ(found.sample_rate, 24e6);
        EXPECT_NEAR(found.samples_per_bit, samples_per_bit, samples_per_bit / 100);
        // After the stop bit of the last character, the line does not change.
        EXPECT_EQ(found.characters, sent.size() - 1);
        EXPECT_EQ(found.bad_characters, 0U);
        EXPECT_TRUE(found.others.empty());
        EXPECT_EQ(bytes(session), sent);
    }
}

TEST_F(Sigrok, SamplesOfSeveralBytesInParts) {
    const Octets sent = random_bytes(2, 2000);
    for (const auto& [unit_bytes, parts] :
         {std::pair(1U, 0U), std::pair(1U, 2U), std::pair(2U, 1U), std::pair(3U, 5U), std::pair(8U, 2U)}) {
        SCOPED_TRACE(testing::Message() << unit_bytes << " bytes, " << parts << " parts");
        Session session{.unit_bytes = unit_bytes, .parts = parts};
        session.lines.resize(std::size_t{8} * unit_bytes);
        session.lines.back() = {"swo", uart(sent, 4)};
        EXPECT_EQ(wiring(session).channels, std::vector{8 * unit_bytes - 1});
        EXPECT_EQ(bytes(session, 700), sent);
    }
}

TEST_F(Sigrok, TheLineThatIsNamedForIt) {
    const Octets few = random_bytes(3, 40), many = random_bytes(4, 200);
    Session session{{{"UART TX", uart(many, 5)}, {"", uart(random_bytes(5, 100), 7)}, {"swo", uart(few, 9)}}};
    LogicWiring found = wiring(session);
    EXPECT_EQ(found.lines, "swo");
    EXPECT_EQ(found.characters, few.size() - 1);
    EXPECT_EQ(found.others, (std::vector<std::string>{"UART TX", "channel 2"}));
    session.lines[2].first = "pin TDO";
    EXPECT_EQ(wiring(session).lines, "pin TDO");
    // The line with the most characters is used, among named lines and among lines without a name.
    session.lines[1].first = "SWO of the other core";
    EXPECT_EQ(wiring(session).lines, "SWO of the other core");
    session.lines[2].first = session.lines[1].first = "x";
    EXPECT_EQ(wiring(session).lines, "UART TX");
    // A line named for serial wire output, and later lines with more characters.
    session = {{{"SWO", uart(few, 9)}, {"UART TX", uart(many, 5)}}};
    EXPECT_EQ(wiring(session).lines, "SWO");
}

TEST_F(Sigrok, CharactersWithoutAStopBitAreCounted) {
    // One bad character in 150, which is allowed; and all of them.
    Octets sent = random_bytes(6, 300);
    Level line = uart(sent, 8);
    const Level bad = uart({0x35}, 8, false);
    line.insert(line.end(), bad.begin(), bad.end());
    Session session{{{"SWO", line}}};
    const LogicWiring found = wiring(session);
    EXPECT_EQ(found.characters, sent.size());
    EXPECT_EQ(found.bad_characters, 1U);
    EXPECT_EQ(bytes(session), sent);
    session.lines[0].second = uart(Octets(300, 0x35), 8, false);
    EXPECT_EQ(error(session).code, Errc::unsupported);
}

TEST_F(Sigrok, TracePortsOfAllWidths) {
    const Octets sent = with_syncs(random_bytes(7, 300));
    for (const unsigned width : {1U, 2U, 4U, 8U, 16U})
        for (unsigned skipped = 0; skipped < 8; skipped += width) {
            SCOPED_TRACE(testing::Message() << width << " lines, " << skipped << " bits skipped");
            const auto port = trace_port(sent, width, skipped, 3);
            Session session{.unit_bytes = 3};
            session.lines.push_back({"nRESET", Level{true}});
            for (unsigned line = 0; line < width; ++line)
                session.lines.push_back({"TRACED" + std::to_string(line), port[line + 1]});
            session.lines.push_back({"TRACECLK", port[0]});
            const LogicWiring found = wiring(session);
            EXPECT_EQ(found.kind, LogicWiring::Kind::trace_port);
            EXPECT_EQ(found.clock, width + 1);
            EXPECT_EQ(found.channels.size(), width);
            EXPECT_EQ(found.channels.front(), 1U);
            EXPECT_EQ(found.channels.back(), width);
            EXPECT_EQ(found.skipped_bits, skipped);
            EXPECT_EQ(found.lines,
                      "TRACECLK and TRACED0" + (width == 1 ? "" : " to TRACED" + std::to_string(width - 1)));
            Octets got = bytes(session);
            ASSERT_GE(got.size(), sent.size());
            EXPECT_EQ(Octets(got.begin(), got.begin() + static_cast<std::ptrdiff_t>(sent.size())), sent);
            EXPECT_LE(got.size(), sent.size() + 1);
        }
}

TEST_F(Sigrok, NamesOfAPort) {
    const auto port = trace_port(with_syncs(random_bytes(8, 200)), 2, 0, 2);
    const auto kind = [&](const std::string& clock, const std::string& first, const std::string& second) {
        const Session session{{{second, port[2]}, {"CLOCK of the bus", Level{}}, {clock, port[0]}, {first, port[1]}}};
        const auto found = logic_wiring(write(session));
        return found && *found && (*found)->kind == LogicWiring::Kind::trace_port &&
               (*found)->channels == std::vector{3U, 0U} && (*found)->clock == 2;
    };
    EXPECT_TRUE(kind("TRACECLK", "TRACED0", "TRACED1"));
    EXPECT_TRUE(kind("trace clock", "d0", "d1"));
    EXPECT_TRUE(kind("TRACECLK", "data 0", "data 1"));
    // Another clock comes first; data lines are numbered from 0 and named as data.
    EXPECT_FALSE(kind("CLK", "TRACED0", "TRACED1"));
    EXPECT_FALSE(kind("TRACECLK", "TRACED1", "TRACED2"));
    EXPECT_FALSE(kind("TRACECLK", "TRACED", "TRACED"));
    EXPECT_FALSE(kind("TRACECLK", "0", "1"));
    EXPECT_FALSE(kind("TRACECLK", "led0", "led1"));
    EXPECT_FALSE(kind("x", "TRACED0", "TRACED1"));
}

TEST_F(Sigrok, APortNeedsTwoSyncs) {
    const auto kind = [&](unsigned syncs) {
        Octets sent(40, 0x55);
        for (unsigned i = 0; i < syncs; ++i) sent.insert(sent.end(), {0xff, 0xff, 0xff, 0x7f});
        const auto port = trace_port(sent, 1, 0, 2);
        const auto found = logic_wiring(write(Session{{{"TRACECLK", port[0]}, {"TRACED0", port[1]}}}));
        return found && *found ? std::optional((*found)->kind) : std::nullopt;
    };
    EXPECT_NE(kind(1), LogicWiring::Kind::trace_port);
    EXPECT_EQ(kind(2), LogicWiring::Kind::trace_port);
}

TEST_F(Sigrok, Rates) {
    const auto rate = [&](const std::string& text) {
        return wiring({.lines = {{"SWO", uart(random_bytes(9, 60), 4)}}, .rate = text}).sample_rate;
    };
    EXPECT_EQ(rate("24 MHz"), 24e6);
    EXPECT_EQ(rate("24MHz"), 24e6);
    EXPECT_EQ(rate("500 kHz"), 500e3);
    EXPECT_EQ(rate("2.5 GHz"), 2.5e9);
    EXPECT_EQ(rate("12500000"), 12.5e6);
    EXPECT_EQ(rate("7 Hz"), 7);
    EXPECT_EQ(rate("unknown"), 0);
    EXPECT_EQ(rate("-3 MHz"), 0);
    EXPECT_EQ(rate("0"), 0);
}

TEST_F(Sigrok, TheDeviceWithLogicSamples) {
    Session session{{{"SWO", uart(random_bytes(10, 60), 4)}}};
    session.metadata =
        "[device 1]\r\nprobe1=analog\r\nsamplerate=1 MHz\r\n[device 2]\r\ncapturefile=logic-1\r\nprobe1=SWO\r\n"
        "no value\r\nprobe0=none\r\nprobe65=none\r\nsamplerate=2 MHz\r\nunitsize=1\r\n[device 3]\r\n"
        "capturefile=logic-2\r\nunitsize=4\r\nprobe1=other\r\n";
    const LogicWiring found = wiring(session);
    EXPECT_EQ(found.lines, "SWO");
    EXPECT_EQ(found.sample_rate, 2e6);
    session.metadata = "[device 1]\nprobe1=analog\nsamplerate=1 MHz\n";
    EXPECT_EQ(error(session).code, Errc::unsupported);
    EXPECT_NE(error(session).message.find("without logic samples"), std::string::npos);
}

TEST_F(Sigrok, SizesOfSamples) {
    for (const unsigned unit_bytes : {0U, 9U}) {
        Session session{{{"SWO", uart(random_bytes(11, 60), 4)}}};
        session.metadata = "[device 1]\ncapturefile=logic-1\nunitsize=" + std::to_string(unit_bytes) + "\n";
        EXPECT_EQ(error(session).code, Errc::unsupported);
        EXPECT_NE(
            error(session).message.find("samples of " + std::to_string(unit_bytes) + " bytes, but at most 8 are read"),
            std::string::npos);
    }
}

TEST_F(Sigrok, WhatChannelsDoThatCarryNothing) {
    // A clock alone has no two different characters.
    Level clock;
    for (unsigned i = 0; i < 4000; ++i) clock.push_back(i / 4 % 2 != 0);
    Session session{{{"A", clock}, {"B", Level{true}}, {"", Level{}}}};
    EXPECT_NE(error(session).message.find("; channels that change: A; that do not: B;"), std::string::npos)
        << error(session).message;
    session.lines[0].second = {true};
    EXPECT_NE(error(session).message.find("; no channel changes;"), std::string::npos) << error(session).message;
    session.lines = {{"A", clock}};
    EXPECT_NE(error(session).message.find("; channels that change: A;"), std::string::npos) << error(session).message;
    EXPECT_EQ(error(session).message.find("that do not"), std::string::npos);
    // Too few characters.
    session.lines = {{"A", uart(random_bytes(12, 16), 4)}};
    EXPECT_EQ(error(session).code, Errc::unsupported);
    session.lines = {{"A", uart(random_bytes(12, 17), 4)}};
    EXPECT_EQ(wiring(session).characters, 16U);
}

TEST_F(Sigrok, DamagedSamples) {
    Session session{{{"SWO", uart(random_bytes(13, 3000), 4)}}, 1, "1 MHz", 2};
    const auto path = write(session);
    std::string contents;
    {
        std::ifstream in(path, std::ios::binary);
        contents.assign(std::istreambuf_iterator<char>(in), {});
    }
    const std::size_t second = contents.find("logic-1-2");
    ASSERT_NE(second, std::string::npos);
    contents[second + 200] = static_cast<char>(contents[second + 200] ^ 0x10);
    std::ofstream(path, std::ios::binary) << contents;
    const auto stream = open_sigrok(path);
    Octets out(1 << 20);
    std::optional<Error> error;
    if (!stream) {
        error = stream.error();
    } else {
        for (bool more = true; more && !error;) {
            auto got = (*stream)->read(out);
            if (!got) error = got.error();
            more = got && *got != 0;
        }
    }
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code, Errc::unreadable);
    EXPECT_NE(error->message.find("the samples in logic-1-2 are damaged"), std::string::npos) << error->message;
}

TEST_F(Sigrok, OtherFiles) {
    const std::uint8_t zip[] = {'P', 'K', 3, 4, 0}, other[] = {'P', 'K', 5, 6};
    EXPECT_TRUE(may_be_sigrok(Bytes(zip, 4)));
    EXPECT_TRUE(may_be_sigrok(zip));
    EXPECT_FALSE(may_be_sigrok(Bytes(zip, 3)));
    EXPECT_FALSE(may_be_sigrok(other));
    const auto is_session = [&](const std::filesystem::path& path) {
        const auto found = logic_wiring(path);
        const auto stream = open_sigrok(path);
        EXPECT_EQ(!stream || *stream != nullptr, !found || found->has_value());
        return !found || found->has_value();
    };
    const auto text = folder_.path() / "text";
    std::ofstream(text) << "PK\3\4 but no archive";
    EXPECT_FALSE(is_session(text));
    Session session{{{"SWO", uart(random_bytes(14, 60), 4)}}};
    EXPECT_TRUE(is_session(write(session)));
    session.version = "0";
    EXPECT_FALSE(is_session(write(session)));
    session.version = "";
    EXPECT_FALSE(is_session(write(session)));
}

TEST(UartLine, NeedsTwoDifferentCharacters) {
    // Forty characters, one after the other, with 10 samples for each bit.
    const auto speed = [](const std::vector<std::uint8_t>& characters) {
        std::vector<std::uint64_t> changes;
        bool high = true;
        for (unsigned i = 0; i < 40; ++i) {
            const unsigned bits = characters[i % characters.size()] << 1U | 0x200U;
            for (unsigned bit = 0; bit < 10; ++bit)
                if (((bits >> bit & 1U) != 0) != high) {
                    high = !high;
                    changes.push_back(10 * (10 * i + bit));
                }
        }
        return uart_speed(changes);
    };
    const auto two = speed({0x15, 0x2a});
    ASSERT_TRUE(two.has_value());
    EXPECT_NEAR(two->samples_per_bit, 10, 0.2);
    EXPECT_FALSE(speed({0x15}).has_value());
}

TEST(UartLine, SpikesAndTheFirstIdleTime) {
    UartLine line(2, 10);
    Octets got;
    const auto take = [&](bool high, std::uint64_t first, std::uint64_t end) {
        line.take({high ? 4U : 0U, first, end}, [&](std::uint8_t byte) { got.push_back(byte); });
    };
    // A line that is low from the beginning sends no character.
    take(false, 0, 200);
    take(true, 200, 300);
    // A start bit is low in its middle.
    take(false, 300, 304);
    take(true, 304, 500);
    EXPECT_EQ(line.characters() + line.bad_characters(), 0U);
    // 0x01: a start bit, a 1, seven 0, and a stop bit, which is known in its middle.
    take(false, 500, 510);
    take(true, 510, 520);
    take(false, 520, 590);
    take(true, 590, 595);
    EXPECT_TRUE(got.empty());
    take(true, 595, 596);
    EXPECT_EQ(got, Octets{0x01});
    // Without a stop bit, the next character begins after the line was high.
    take(false, 600, 700);
    take(false, 700, 720);
    EXPECT_EQ(line.bad_characters(), 1U);
    take(true, 720, 730);
    take(false, 730, 820);
    take(true, 820, 840);
    EXPECT_EQ(got, (Octets{0x01, 0x00}));
    EXPECT_EQ(line.characters(), 2U);
}

}  // namespace
}  // namespace waymark::capture
