// What the description of a capture says about the missing part of the run, and why nothing was decoded.
#include "waymark/pipeline/account.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/temporary_folder.h"
#include "waymark/flow/summary.h"
#include "waymark/pipeline/diagnosis.h"

namespace waymark::pipeline {
namespace {

using answers::AccountReason;
using answers::AccountRow;

/// A capture of some sources, of one core each time.
capture::Capture described(const std::string& type, unsigned sources, const std::filesystem::path& file = "t.bin") {
    capture::RawOptions raw;
    raw.source_type = type;
    if (type.starts_with("PTM"))
        raw.registers = {{"ETMCR", 0}, {"ETMCCER", 0}, {"ETMIDR", 0x411cf312}, {"ETMTRACEIDR", 1}};
    capture::Capture c = capture::raw_capture(file, raw);
    for (unsigned i = 1; i < sources; ++i) {
        capture::Source s = c.sources.front();
        s.name += std::to_string(i);
        if (!s.registers.empty()) s.registers.back().value = i + 1;
        c.buffers.push_back(c.buffers.front());
        c.buffers.back().name = "b" + std::to_string(i);
        c.buffers.back().sources = {s.name};
        c.sources.push_back(s);
    }
    return c;
}
answers::Account account(const Session& session) { return flow_account(session, *session.select({}), Report{}, {}); }

TEST(FlowAccount, SaysWhatTheDescriptionLacks) {
    auto session = make_session(described("PTM1.1", 1), {});
    ASSERT_TRUE(session.has_value());
    session->problems.clear();
    EXPECT_EQ(account(*session), answers::Account{});
    capture::Buffer& buffer = session->capture.buffers[0];
    buffer.wrapped = true;
    EXPECT_EQ(account(*session), answers::Account{{.reason = AccountReason::overwritten}});
    buffer.overwritten = 4096;
    EXPECT_EQ(account(*session), (answers::Account{{.reason = AccountReason::overwritten, .bytes = 4096}}));
    buffer.wrapped = false;
    buffer.begins = "after 1000 instructions (--limit)";
    buffer.ends = "after 2000 instructions (--limit)";
    EXPECT_EQ(account(*session),
              (answers::Account{{.reason = AccountReason::before_start}, {.reason = AccountReason::after_end}}));
}

// Each missing part that a buffer describes is also a problem; only further ones were lost by the recorder.
TEST(FlowAccount, CountsWhatTheProblemsAreAbout) {
    using Kind = capture::Problem::Kind;
    auto session = make_session(described("PTM1.1", 1), {});
    ASSERT_TRUE(session.has_value());
    session->capture.buffers[0].wrapped = true;
    const auto problems = [&](const std::vector<Kind>& kinds) {
        session->problems.clear();
        for (const Kind kind : kinds) session->problems.emplace_back().kind = kind;
    };
    problems({Kind::part, Kind::names, Kind::description});
    EXPECT_EQ(account(*session), answers::Account{{.reason = AccountReason::overwritten}});
    problems({Kind::part, Kind::part, Kind::part, Kind::damage, Kind::damage});
    const answers::Account rows = account(*session);
    const auto times = [&](AccountReason reason) {
        std::uint64_t out = 0;
        for (const AccountRow& row : rows) out += row.reason == reason ? row.times : 0;
        return out;
    };
    EXPECT_EQ(rows.size(), 3U);
    EXPECT_EQ(times(AccountReason::recorder), 2U);
    EXPECT_EQ(times(AccountReason::cut), 2U);
    session->capture.buffers[0].wrapped = false;
    problems({Kind::not_traced});
    EXPECT_EQ(account(*session), answers::Account{{.reason = AccountReason::strobing}});
}

TEST(FlowAccount, SeveralSourcesOfACoreAreItsSessions) {
    for (const unsigned sources : {1U, 2U, 4U}) {
        auto session = make_session(described("PTM1.1", sources), {});
        ASSERT_TRUE(session.has_value());
        session->problems.clear();
        answers::Account wanted;
        if (sources > 1) wanted.push_back({.reason = AccountReason::off, .times = sources - 1});
        EXPECT_EQ(account(*session), wanted);
    }
}

class WhyNothing : public testing::Test {
protected:
    /// A session of one source, of whose bytes all are read.
    void decode(const std::string& type, const std::vector<std::uint8_t>& bytes) {
        auto made = make_session(described(type, 1, folder.write("t.bin", bytes)), {});
        ASSERT_TRUE(made.has_value());
        session = std::move(*made);
        selected = *session.select({});
        report = run(session, selected, [&](const StreamInfo& stream) -> std::unique_ptr<Consumer> {
            return stream.source.has_flow() ? flow_consumer(stream, sink, DecoderKind::fast, 1) : nullptr;
        });
    }
    std::string why(const Gave& gave) const { return why_nothing(session, selected, report, gave); }

    const TemporaryFolder folder;
    flow::Summary sink;
    Session session;
    std::vector<const Source*> selected;
    Report report;
};

TEST_F(WhyNothing, IsTheFirstReasonThatHolds) {
    decode("PTM1.1", {1, 2, 3});
    EXPECT_EQ(why({}), no_sync(session.capture, selected, 3));
    EXPECT_NE(why({}).find("no A-sync (00 00 00 00 00 80) in 3 bytes: it is not PTM trace, is framed otherwise than "
                           "given (--buffer-format"),
              std::string::npos)
        << why({});
    Gave gave;
    gave.packets = 1;
    EXPECT_EQ(why(gave), nothing_ran);
    gave.untraced = 1;
    EXPECT_EQ(why(gave), "code ran, and the trace does not show which");
    gave.unplaced = 1;
    EXPECT_EQ(why(gave), "branches ran, and the trace has no address for them");
    gave.uncommitted = 2;
    EXPECT_EQ(why(gave),
              "none of 2 P0 elements was committed when the trace ended, so no instruction is known to have run");
    gave.gaps[static_cast<unsigned>(GapReason::unsynchronised)] = 1;
    EXPECT_EQ(why(gave), "no I-sync follows an A-sync, so no address is known");
    for (const GapReason reason :
         {GapReason::reserved_header, GapReason::malformed_packet, GapReason::framing, GapReason::missing}) {
        Gave damaged = gave;
        damaged.gaps[static_cast<unsigned>(reason)] = 1;
        EXPECT_EQ(why(damaged), "the trace is damaged, and nothing could be decoded");
    }
    gave.no_memory = 1;
    EXPECT_EQ(why(gave), "all code that ran is without an image; give the program with --image FILE[@ADDRESS]");
}

TEST_F(WhyNothing, WithoutBytes) {
    decode("PTM1.1", {1, 2, 3});
    report.streams[0].bytes = 0;
    EXPECT_EQ(why({}),
              "the buffers contain no bytes of the selected sources; waymark info shows which sources they "
              "contain");
    session.capture.buffers.clear();
    report.streams.clear();
    EXPECT_EQ(why({}), "the capture has no trace buffer");
    decode("PTM1.1", {});
    report.streams.clear();
    EXPECT_EQ(why({}), "no trace buffer is assigned to the selected sources");
    decode("PTM1.1", {});
    EXPECT_TRUE(report.buffers[0].error.has_value());
    EXPECT_EQ(why({}), "no byte of the selected sources could be read");
    session.sources.clear();
    EXPECT_EQ(why({}), "the capture describes no trace source");
}

TEST_F(WhyNothing, OfOtherUnits) {
    decode("HTM", {1, 2, 3});
    EXPECT_TRUE(why({}).starts_with("Waymark does not decode the protocol of the source: source0 (HTM). ")) << why({});
    decode("ITM", {});
    report.streams.clear();
    EXPECT_EQ(why({}), "no program flow is in the trace of source0 (ITM); waymark messages lists it");
    // The first source that has packets gives the words.
    decode("ETM4.1", {});
    EXPECT_EQ(no_sync({}, selected, 1).find("no A-sync"), no_sync({}, {}, 1).find("no A-sync"));
    EXPECT_NE(no_sync({}, selected, 1), no_sync({}, {}, 1));
}

}  // namespace
}  // namespace waymark::pipeline
