/// Tables, samples and notes that messages of an ITM and an STM give.
#include "waymark/pipeline/message_answers.h"

#include <gtest/gtest.h>

#include <string>

#include "pipeline/whole_test.h"
#include "support/temporary_folder.h"
#include "waymark/pipeline/session.h"
#include "waymark/stm/encoder.h"

namespace waymark::pipeline {
namespace {

using Octets = std::vector<std::uint8_t>;

/// The answers from the bytes of one source.
answers::Answers answers_of(const std::string& type, const std::vector<capture::Register>& registers, Octets bytes,
                            const FlowAnswersOptions& options = {}) {
    const TemporaryFolder folder;
    capture::RawOptions raw;
    raw.format = capture::Buffer::Format::source_data;
    raw.source_type = type;
    raw.registers = registers;
    const auto session = make_session(
        capture::raw_capture(folder.write("t.bin", {reinterpret_cast<const char*>(bytes.data()), bytes.size()}), raw),
        {});
    EXPECT_TRUE(session.has_value());
    auto out = message_answers(*session, *session->select({}), options, {}, {});
    EXPECT_TRUE(out.has_value()) << out.error().message;
    // Tables of thousands of rows are too long to be read.
    if (out && out->timeline.slices.size() < 100 && bytes.size() < 1000) WholeTest::write(*out);
    return out ? std::move(*out) : answers::Answers();
}
class MessageAnswers : public WholeTest {};

/// The rows of a table, without the source; fields are separated by blanks, and `-` is empty. With `every` 3,
/// every third row.
std::vector<std::string> rows(const answers::Answers& a, std::string_view title, std::size_t every = 1) {
    std::vector<std::string> out;
    for (const answers::Table& table : a.tables) {
        if (table.title != title) continue;
        for (std::size_t i = 0; i < table.size(); i += every) {
            const auto& row = table.rows[i];
            std::string line;
            for (std::size_t c = 1; c < row.size(); ++c) {
                const std::string field = row[c].field();
                line += (c == 1 ? "" : " ") + (field.empty() ? std::string("-") : field);
            }
            out.push_back(line);
        }
    }
    return out;
}
std::string said(const answers::Answers& a) {
    std::string out;
    for (const answers::Finding& f : a.health) out += f.what + "\n";
    return out;
}
using Lines = std::vector<std::string>;

/// Each packet's bytes behind a synchronisation packet.
answers::Answers itm(const std::vector<Octets>& packets, const FlowAnswersOptions& options = {}) {
    Octets bytes{0, 0, 0, 0, 0, 0x80};
    for (const Octets& packet : packets) bytes.insert(bytes.end(), packet.begin(), packet.end());
    return answers_of("ITM", {{"ITMTCR", 0x00200000}}, bytes, options);
}

TEST_F(MessageAnswers, CountsOfPorts) {
    const answers::Answers a = itm({{0x01, 'a'}, {0x03, 1, 2, 3, 4}, {0xf9, 'z'}, {0x02, 1, 2}});
    EXPECT_EQ(rows(a, "stimulus ports"), (Lines{"0 3 7", "31 1 1"}));
    EXPECT_NE(said(a).find("it has no timestamps"), std::string::npos);
}

TEST_F(MessageAnswers, CountsOfEvents) {
    // CPI and CYC; SLEEP; CPI.
    EXPECT_EQ(rows(itm({{0x05, 0x21}, {0x05, 0x04}, {0x05, 0x01}}), "event counters"),
              (Lines{"CPI 2 512", "CYC 1 -", "SLEEP 1 256"}));
}

TEST_F(MessageAnswers, WatchedData) {
    // Comparator 1: two reads of a byte, a write of a word, an address without a value; comparator 3: a program
    // counter.
    const answers::Answers a = itm({{0x95, 0x10},
                                    {0x95, 0x07},
                                    {0x9f, 0x78, 0x56, 0x34, 0x12},
                                    {0x5e, 0x34, 0x12},
                                    {0x77, 0x00, 0x80, 0x00, 0x00}});
    const Lines found = rows(a, "watched data");
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0], "1 …1234 2 1 1 0x7 0x12345678 0x12345678");
    EXPECT_EQ(found[1], "3 - 0 0 1 - - -");
}

TEST_F(MessageAnswers, SamplesOfTheProgramCounter) {
    const answers::Answers a =
        itm({{0x17, 0, 0x80, 0, 0}, {0x17, 0, 0x80, 0, 0}, {0x17, 4, 0x80, 0, 0}, {0x15, 0}, {0x15, 0xff}},
            {.without_code = true});
    std::uint64_t samples = 0;
    for (const answers::AccountRow& row : a.account)
        if (row.reason == answers::AccountReason::decoded) samples += row.records.value_or(0);
    EXPECT_EQ(samples, 5U);
    EXPECT_TRUE(std::any_of(a.account.begin(), a.account.end(),
                            [](const auto& row) { return row.reason == answers::AccountReason::sampled; }));
}

TEST_F(MessageAnswers, HandlersOnTheTimelineAreBounded) {
    std::vector<Octets> packets;
    for (unsigned i = 0; i < 3; ++i)  // exception 16 is entered and left, and the thread goes on
        packets.insert(packets.end(), {{0x0e, 16, 0x10}, {0x0e, 16, 0x20}, {0x0e, 0, 0x30}});
    const auto handlers = [&](std::size_t most) {
        const answers::Answers a = itm(packets, {.timeline = true, .most_slices = most});
        const bool full =
            said(a).find("The timeline is full: 1 message, value or handler is not on it") != std::string::npos;
        return std::pair(a.timeline.slices.size(), full);
    };
    EXPECT_EQ(handlers(3), std::pair(std::size_t{3}, false));
    EXPECT_EQ(handlers(2), std::pair(std::size_t{2}, true));
}

TEST_F(MessageAnswers, OfChannelsAsManyAsTheTableHolds) {
    Octets bytes;
    stm::NibbleWriter out(bytes);
    const auto put = [&](const auto& packet) { stm::encode(out, packet); };
    put(stm::Async{});
    put(stm::VersionPacket{});
    stm::Master8 master;
    stm::Channel16 channel;
    stm::Data<2, false, false> byte;
    stm::Data<2, true, false> marked;
    for (unsigned m = 0; m < 2; ++m) {
        master.value = static_cast<std::uint8_t>(m);
        put(master);
        for (unsigned c = 0; c < (m == 0 ? 65535U : 4U); ++c) {
            channel.value = static_cast<std::uint16_t>(c);
            put(channel);
            put(byte);
        }
    }
    // Channels that the table has are counted on; 1, 2 and 3 of master 1 have no room.
    master.value = 0;
    put(master);
    channel.value = 7;
    put(channel);
    put(marked);
    put(byte);
    const answers::Answers a = answers_of("STM", {{"STMTCSR", 0x00200000}}, bytes);
    EXPECT_EQ(rows(a, "channels", 65535), (Lines{"0 0 1 1 0", "1 0 1 1 0"})) << "65,536 channels";
    EXPECT_EQ(rows(a, "channels", 7).at(1), "0 7 3 3 1");
    EXPECT_NE(said(a).find("the table of channels is full: 3 messages are counted nowhere"), std::string::npos)
        << said(a);
    EXPECT_TRUE(std::any_of(a.account.begin(), a.account.end(),
                            [](const auto& row) { return row.reason == answers::AccountReason::not_kept; }));
}

}  // namespace
}  // namespace waymark::pipeline
