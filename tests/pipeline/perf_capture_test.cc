/// perf.data with CoreSight trace, from the file to program flow: several processes, files at several addresses, maps
/// that change, ranges at which decoders begin again (docs/spec/perf-cs-etm.md, sections 1.4, 1.6 and 1.7).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <set>

#include "pipeline/whole_test.h"
#include "support/paths.h"
#include "support/perf_capture.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "waymark/flow/summary.h"
#include "waymark/pipeline/account.h"
#include "waymark/pipeline/flow_answers.h"
#include "waymark/pipeline/process_survey.h"

namespace waymark::pipeline {
namespace {

void write_whole(support::WholeAnswers& whole, const answers::Answers& a) {
    std::ostringstream out;
    support::write_answers_text(out, a);
    whole.next(fmt::format("{} instructions", a.instructions.size())) << without_temporary_folders(out.str());
}

TEST_F(PerfCapture, TwoProcessesWithDifferentFilesAtOneAddress) {
    const std::string a = program("a", 1), b = program("b", 2);
    process(10);
    process(20);
    map(10, 0x500040, a, 50);
    map(20, 0x500040, b, 50);
    map(20, 0x900040, a, 60);
    range(0, once(0x500040, 10) + once(0x500040, 20) + once(0x900040, 20), 0, 100);
    const Session session = open();
    for (const DecoderKind kind : {DecoderKind::fast, DecoderKind::reference}) {
        const Ran were = run(session, Addresses::as_they_were, kind);
        ASSERT_EQ(were.delivered.size(), 1U);
        const PerfFlow& delivered = were.delivered.at("cpu0 aux_cpu0");
        EXPECT_EQ(delivered.ranges, (Ranges{"0x500040+2", "0x500040+3", "0x900040+2"}));
        EXPECT_EQ(delivered.sections.at(0x500040).size(), 2U) << "other code is another block";
        EXPECT_TRUE(were.missing.empty());

        const Ran placed = run(session, Addresses::placed, kind);
        const Ranges& ranges = placed.delivered.at("cpu0 aux_cpu0").ranges;
        ASSERT_EQ(ranges.size(), 3U);
        EXPECT_EQ(ranges[0], "0x500040+2") << "where it was mapped first";
        EXPECT_EQ(ranges[2], ranges[0]) << "the same code of the same file";
        EXPECT_NE(ranges[1].substr(0, ranges[1].find('+')), "0x500040");
        EXPECT_TRUE(ranges[1].ends_with("+3"));
    }
}

// Indirect branches in code of both processes: to itself, to equal code in both, and to different code in each.
TEST_F(PerfCapture, WhatIsRememberedOfOneProcessIsRightForAnother) {
    constexpr std::uint32_t br = 0xd61f0000;
    const std::string both = program("both", 1, br), a = program("a", 1, br), b = program("b", 2, br);
    // A taken branch and a short address, twice: eight bytes, which decoders remember as a whole.
    const auto times = [](unsigned n, const std::vector<std::uint8_t>& bytes) {
        std::vector<std::uint8_t> out;
        for (unsigned i = 0; i < n; ++i) out.insert(out.end(), bytes.begin(), bytes.end());
        return out;
    };
    const std::vector<std::uint8_t> to_both{etmv4_taken, 0x95, 0x90, 0x00}, to_other{etmv4_taken, 0x95, 0x90, 0x08};
    const auto turn = [&](std::uint32_t thread) {
        return etmv4_start(0x500040, thread) + times(8, to_both) + times(6, to_other + to_both);
    };
    for (const std::uint32_t pid : {10U, 20U}) {
        process(pid);
        map(pid, 0x500040, both, 50);
        map(pid, 0x501040, pid == 10 ? a : b, 50);
    }
    std::vector<std::uint8_t> trace;
    Ranges expected;
    for (unsigned i = 0; i < 6; ++i) {
        const bool first = i % 2 == 0;
        trace = trace + turn(first ? 10 : 20);
        for (unsigned k = 0; k < 8; ++k) expected.emplace_back("0x500040+2");
        for (unsigned k = 0; k < 6; ++k) {
            expected.emplace_back("0x500040+2");
            expected.emplace_back(first ? "0x501040+2" : "0x501040+3");
        }
    }
    range(0, trace, 0, 100);
    const Session session = open();
    EXPECT_EQ(run(session, Addresses::as_they_were, DecoderKind::reference).delivered.at("cpu0 aux_cpu0").ranges,
              expected);
    for (unsigned i = 0; i < 5; ++i) {
        synthetic::vary_paths();
        EXPECT_EQ(run(session, Addresses::as_they_were).delivered.at("cpu0 aux_cpu0").ranges, expected) << i;
    }
    follow::usual_paths = {};
}

TEST_F(PerfCapture, FunctionsAreThoseOfTheFiles) {
    const std::string a = program("a", 1), b = program("b", 2);
    process(10);
    process(20);
    map(10, 0x500040, a, 50);
    map(20, 0x500040, b, 50);
    map(20, 0x900040, a, 60);
    range(0, once(0x500040, 10) + once(0x500040, 20) + once(0x900040, 20), 0, 100);
    range(1, once(0x900040, 20), 0, 100);
    const Session session = open();
    std::vector<const Source*> sources;
    for (const Source& source : session.sources) sources.push_back(&source);
    support::WholeAnswers whole("pipeline");
    for (const bool instructions : {false, true}) {
        FlowAnswersOptions options;
        options.calls = true;
        options.instructions = instructions;
        const auto answers = flow_answers(session, sources, options, {}, [](const Report&) {});
        ASSERT_TRUE(answers.has_value()) << answers.error().message;
        write_whole(whole, *answers);
        std::map<std::string, std::uint64_t> costs;
        const auto all = answers::function_costs(*answers);
        for (std::size_t i = 0; i < all.size(); ++i)
            if (all[i].self.at(0) != 0) costs[answers->functions[i].name] += all[i].self.at(0);
        EXPECT_EQ(costs, (std::map<std::string, std::uint64_t>{{"loop_of_a", 6}, {"loop_of_b", 3}}));
    }
}

TEST_F(PerfCapture, MapsAreThoseOfTheRange) {
    const std::string a = program("a", 1), b = program("b", 2);
    process(10);
    map(10, 0x500040, a, 50);
    range(0, once(0x500040, 10), 0, 100);
    map(10, 0x500040, b, 150);
    range(0, once(0x500040, 10), 0, 200);
    const Session session = open();
    for (const unsigned jobs : {1U, 2U})
        EXPECT_EQ(run(session, Addresses::as_they_were, DecoderKind::fast, jobs).delivered.at("cpu0 aux_cpu0").ranges,
                  (Ranges{"0x500040+2", "0x500040+3"}));
}

TEST_F(PerfCapture, ARangeBeginsAnew) {
    const std::string a = program("a", 1);
    process(10);
    map(10, 0x500040, a, 50);
    range(0, once(0x500040, 10), 0, 100);
    // Outcomes without an address do not continue any flow.
    range(0, std::vector<std::uint8_t>(32, etmv4_taken), 0, 200);
    range(0, once(0x500040, 10), 0x100, 300);
    const Session session = open();
    const Ran ran = run(session, Addresses::as_they_were);
    EXPECT_EQ(ran.delivered.at("cpu0 aux_cpu0").ranges, Ranges{"0x500040+2"});
    EXPECT_EQ(ran.delivered.at("cpu0 aux_cpu0_raw").ranges, Ranges{"0x500040+2"});
    for (const BufferReport& buffer : ran.report.buffers) {
        if (buffer.framed) {
            EXPECT_EQ(buffer.frames.accounted(), buffer.bytes);
        }
        EXPECT_FALSE(buffer.error.has_value());
    }
}

TEST_F(PerfCapture, WhereAUnitWasStoppedNothingIsLost) {
    const std::string a = program("a", 1);
    process(10);
    map(10, 0x500040, a, 50);
    range(0, once(0x500040, 10), 0, 100);
    range(0, once(0x500040, 10), 0, 200);
    range(1, once(0x500040, 10), 0x100, 100);
    range(1, once(0x500040, 10), 0x100, 200);
    range(1, once(0x500040, 10), 0x100 | AuxRange::collision, 300);
    range(1, once(0x500040, 10), 0x100, 400);
    range(1, once(0x500040, 10), 0x100, 500);
    const Session session = open();
    std::vector<const Source*> sources;
    for (const Source& source : session.sources) sources.push_back(&source);
    for (const DecoderKind kind : {DecoderKind::fast, DecoderKind::reference}) {
        std::map<std::string, flow::Summary> of;
        static_cast<void>(pipeline::run(session, sources, [&](const StreamInfo& stream) {
            return flow_consumer(stream, of[stream.source.name], kind);
        }));
        const auto times = [&](const char* source, GapReason reason) {
            return of[source].totals().gaps[static_cast<unsigned>(reason)].times;
        };
        EXPECT_EQ(of["cpu0"].totals().ranges, 2U);
        EXPECT_EQ(times("cpu0", GapReason::stopped), 1U);
        EXPECT_FALSE(of["cpu0"].totals().has_gaps());
        EXPECT_EQ(of["cpu1"].totals().ranges, 5U);
        EXPECT_EQ(times("cpu1", GapReason::stopped), 2U);
        EXPECT_EQ(times("cpu1", GapReason::missing), 2U) << "before and behind the range that is marked";
        EXPECT_EQ(times("cpu1", GapReason::framing), 0U) << "raw trace has no frames";
        EXPECT_TRUE(of["cpu1"].totals().has_gaps());
    }
}

TEST_F(PerfCapture, WhichOfTwoFilesRanInARangeIsUncertain) {
    const std::string a = program("a", 1), b = program("b", 2);
    process(10);
    map(10, 0x500040, a, 50);
    map(10, 0x600040, a, 50);
    range(0, once(0x500040, 10), 0, 100);
    map(10, 0x500040, b, 150);
    map(10, 0x600040, a, 150);
    range(0, once(0x500040, 10) + once(0x600040, 10), 0, 200);
    map(10, 0x500040, b, 250);
    range(0, once(0x500040, 10), 0, 300);
    const Session session = open();
    for (const Addresses addresses : {Addresses::as_they_were, Addresses::placed})
        for (const unsigned jobs : {1U, 3U}) {
            const Ran ran = run(session, addresses, DecoderKind::fast, jobs);
            ASSERT_EQ(ran.report.streams.size(), 1U);
            const auto uncertain = dynamic_cast<const FlowConsumer&>(*ran.report.streams[0].consumer).uncertain();
            ASSERT_EQ(uncertain.size(), 1U) << "the same file at its place again is no other code";
            EXPECT_EQ(uncertain[0].ranges, 1U);
            EXPECT_EQ(uncertain[0].instructions, 3U);
            EXPECT_EQ(uncertain[0].first, Address{0x500040});
            const auto damage = uncertain_code(session, ran.report);
            ASSERT_EQ(damage.size(), 1U);
            EXPECT_NE(damage[0].sentence.find(fmt::format("{} and {} were mapped within one AUX range", b, a)),
                      std::string::npos)
                << damage[0].sentence;
        }
    const auto answers = flow_answers(session, {session.sources.data()}, {.calls = true}, {}, {});
    ASSERT_TRUE(answers.has_value());
    support::WholeAnswers whole("pipeline");
    write_whole(whole, *answers);
    EXPECT_TRUE(answers::has_reason(answers->account, answers::AccountReason::shared_address));
    EXPECT_EQ(answers::completeness(answers->account).word(), "estimate");
    EXPECT_TRUE(std::any_of(answers->health.begin(), answers->health.end(), [](const answers::Finding& f) {
        return f.severity == answers::Finding::Severity::warning && f.what.find("is uncertain") != std::string::npos;
    }));
}

// A program that is executed in place of another, and a process ID that is reused.
TEST_F(PerfCapture, ANameHoldsForItsTime) {
    const std::string a = program("a", 1), b = program("b", 2);
    const auto exec = [&](const char* name, std::uint64_t time) {
        w_.task({TaskEvent::Kind::exec, 10, 10, 0, 0, time, name}, {10, 10, 0, time, 1});
    };
    exec("one", 50);
    map(10, 0x500040, a, 50);
    range(0, once(0x500040, 10), 0, 100);
    exec("two", 100);
    map(10, 0x500040, b, 100);
    range(0, once(0x500040, 10), 0, 200);
    exec("three", 200);
    map(10, 0x500040, a, 200);
    range(0, once(0x500040, 10) + once(0x500040, 10), 0, 300);
    exec("one", 350);
    map(10, 0x500040, a, 350);
    range(0, once(0x500040, 10), 0, 400);
    const Session whole = open();
    const auto selected = [&](const char* name) {
        Session session = whole;
        const auto done = select_flow(session, {.processes = {name}});
        EXPECT_TRUE(done.has_value()) << done.error().message;
        const Ran ran = run(session, Addresses::as_they_were);
        const auto note = filter_note(session, ran.report);
        const bool uncertain = note && note->uncertain;
        const auto account = account_of(session, {session.sources.data()});
        EXPECT_EQ(answers::has_reason(account, answers::AccountReason::no_context), uncertain);
        return std::pair(ran.delivered.at("cpu0 aux_cpu0").ranges, uncertain);
    };
    const std::string of_a = "0x500040+2", of_b = "0x500040+3";
    EXPECT_EQ(selected("two"), std::pair(Ranges{of_b}, false));
    EXPECT_EQ(selected("t*"), std::pair((Ranges{of_b, of_a, of_a}), true)) << "the last range began as three";
    EXPECT_EQ(selected("one"), std::pair((Ranges{of_a, of_a}), true));
}

// The unit was on for the whole of the chosen process, even if it was turned off for others.
class Pauses : public PerfCapture {
protected:
    /// The account of process 10. The processes ran one after the other.
    answers::Account of_process_10(const std::vector<std::uint32_t>& ran) {
        const std::string a = program("a", 1);
        for (const std::uint32_t process_id : {10U, 20U}) {
            process(process_id);
            map(process_id, 0x500040, a, 50);
        }
        std::uint64_t time = 0;
        for (const std::uint32_t process_id : ran) range(0, once(0x500040, process_id), 0, time += 100);
        Session session = open();
        EXPECT_TRUE(select_flow(session, {.processes = {"10"}}));
        return account_of(session, *session.select({}));
    }
    /// The part that the filter excludes.
    static const answers::AccountRow* filtered(const answers::Account& account) {
        const auto found = std::find_if(account.begin(), account.end(), [](const answers::AccountRow& row) {
            return row.reason == answers::AccountReason::filtered;
        });
        return found == account.end() ? nullptr : &*found;
    }
};
TEST_F(Pauses, AreNotTraceOfOtherProcesses) {
    const answers::Account account = of_process_10({10, 20, 20, 10});
    EXPECT_FALSE(answers::has_reason(account, answers::AccountReason::off)) << answers::account_sentence(account);
    ASSERT_NE(filtered(account), nullptr);
    EXPECT_EQ(filtered(account)->of, "process 10");
    EXPECT_EQ(filtered(account)->ranges, 2U);
}
TEST_F(Pauses, OfTheUnitRemain) {
    const answers::Account account = of_process_10({10, 10, 10});
    EXPECT_EQ(filtered(account), nullptr) << "nothing is left out";
    const auto off = std::find_if(account.begin(), account.end(), [](const answers::AccountRow& row) {
        return row.reason == answers::AccountReason::off;
    });
    ASSERT_NE(off, account.end());
    EXPECT_EQ(off->times, 2U);
}

TEST_F(PerfCapture, MissingFilesAreCounted) {
    const std::string a = program("a", 1);
    process(10);
    map(10, 0x500040, a, 50);
    map(10, 0x600040, "/nowhere/lib.so", 50);
    const std::vector<std::uint8_t> three{etmv4_taken, etmv4_not_taken, etmv4_taken};
    range(0, etmv4_start(0x600040, 10) + three + once(0x500040, 10) + etmv4_start(0x600040, 10) + three, 0, 100);
    range(1, etmv4_start(0x700040, 10) + three, 0, 100);
    const Session session = open();
    // The cost of a missing file is reported after decoding, and only for files whose code ran.
    EXPECT_TRUE(std::none_of(session.problems.begin(), session.problems.end(), [](const capture::Problem& p) {
        return p.message.find("/nowhere/lib.so") != std::string::npos;
    }));
    const Ran ran = run(session, Addresses::placed);
    ASSERT_EQ(ran.missing.size(), 2U);
    ASSERT_TRUE(ran.missing[0].name.has_value());
    EXPECT_EQ(session.sources[0].code->spaces().names()[*ran.missing[0].name].file, "/nowhere/lib.so");
    EXPECT_EQ(ran.missing[0].times, 2U);
    EXPECT_EQ(ran.missing[0].outcomes, 6U);
    EXPECT_FALSE(ran.missing[1].name.has_value()) << "nothing was mapped there";
    EXPECT_EQ(ran.missing[1].first.value, 0x700040U);
}

/// The same at EL1.
std::vector<std::uint8_t> once_in_kernel(std::uint64_t address, std::uint32_t thread) {
    std::vector<std::uint8_t> out = once(address, thread);
    out[out.size() - 6] |= 1;  // the level, before four bytes of the Context ID and the atom
    return out;
}

TEST_F(PerfCapture, Selections) {
    const std::string a = program("a", 1), b = program("b", 2);
    process(10);
    process(20);
    w_.task({TaskEvent::Kind::comm, 20, 20, 0, 0, 0, "other"}, {});
    map(10, 0x500040, a, 50);
    map(20, 0x500040, b, 50);
    map(20, 0x600040, "/nowhere/lib.so", 50);
    range(0, once(0x500040, 10) + once(0x500040, 20) + once(0x600040, 20) + once_in_kernel(0x500040, 10), 0, 100);
    range(0, once(0x500040, 10), 0, 200);
    const Session whole = open();
    const auto selected = [&](FlowSelection selection, unsigned jobs) {
        Session session = whole;
        const auto done = select_flow(session, std::move(selection));
        EXPECT_TRUE(done.has_value()) << done.error().message;
        return run(session, Addresses::as_they_were, DecoderKind::fast, jobs);
    };
    const auto ranges = [&](const FlowSelection& selection) {
        Ranges out = selected(selection, 1).delivered["cpu0 aux_cpu0"].ranges;
        EXPECT_EQ(out, selected(selection, 3).delivered["cpu0 aux_cpu0"].ranges);
        return out;
    };
    const std::string of_a = "0x500040+2", of_b = "0x500040+3", none = "none at 0x600040";
    EXPECT_EQ(ranges({}), (Ranges{of_a, of_b, none, of_a, of_a}));
    EXPECT_EQ(ranges({.processes = {"10"}}), (Ranges{of_a, of_a, of_a}));
    EXPECT_EQ(ranges({.processes = {"oth*"}}), (Ranges{of_b, none}));
    EXPECT_EQ(ranges({.threads = {"task", "20"}}), (Ranges{of_a, of_b, none, of_a, of_a}));
    EXPECT_EQ(ranges({.images = {"lib.so"}}), (Ranges{none})) << "what is missing is of an image, too";
    EXPECT_EQ(ranges({.images = {b}}), (Ranges{of_b}));
    EXPECT_EQ(ranges({.processes = {"10"}, .images = {"b"}}), Ranges{});
    EXPECT_EQ(ranges({.kernel = true}), (Ranges{of_a}));
    EXPECT_EQ(ranges({.kernel = false}), (Ranges{of_a, of_b, none, of_a}));
    EXPECT_EQ(ranges({.time = std::pair<std::uint64_t, std::uint64_t>{150, 300}}), (Ranges{of_a}));
    EXPECT_EQ(ranges({.cpus = {0}}), (Ranges{of_a, of_b, none, of_a, of_a}));
    // Only missing files of the selection are reported.
    EXPECT_TRUE(selected({.processes = {"10"}}, 1).missing.empty());
    EXPECT_EQ(selected({.processes = {"20"}}, 1).missing.size(), 1U);

    Session session = whole;
    ASSERT_TRUE(select_flow(session, {.processes = {"10"}, .images = {"b"}}).has_value());
    const auto note = filter_note(session, run(session, Addresses::placed).report);
    ASSERT_TRUE(note.has_value());
    EXPECT_TRUE(note->nothing_passed);
    EXPECT_EQ(note->text, fmt::format("none of the 5 ranges that ran is of process 10, image b. They are: 2 of "
                                      "task[10], {0}, user code, 1 of task[10], {0}, kernel code, 1 of other[20], {1}, "
                                      "user code, 1 of other[20], /nowhere/lib.so, user code",
                                      a, b));
    for (const FlowSelection& wrong :
         {FlowSelection{.processes = {"30"}}, FlowSelection{.threads = {"x"}}, FlowSelection{.images = {"c"}},
          FlowSelection{.cpus = {5}}, FlowSelection{.time = std::pair<std::uint64_t, std::uint64_t>{300, 400}}}) {
        Session again = whole;
        const auto refused = select_flow(again, wrong);
        ASSERT_FALSE(refused.has_value());
        EXPECT_EQ(refused.error().code, Errc::usage);
    }
    Session one_memory;
    EXPECT_FALSE(select_flow(one_memory, {.kernel = true}).has_value());
}

/// Between selected parts lies flow that the unit would have left out: no call or edge leads across it.
TEST_F(PerfCapture, WhatIsLeftOutIsATraceOn) {
    const std::string a = program("a", 1), b = program("b", 1);
    process(10);
    map(10, 0x500040, a, 50);
    map(10, 0x600040, b, 50);
    // a branches to its own beginning, so the next flow needs no synchronisation; a synchronisation leads to b.
    range(0, once(0x500040, 10) + std::vector<std::uint8_t>{etmv4_taken} + once(0x600040, 10) + once(0x500040, 10), 0,
          100);
    Session session = open();
    ASSERT_TRUE(select_flow(session, {.images = {"a"}}).has_value());
    std::vector<const Source*> sources{session.sources.data()};
    flow::Summary summary;
    static_cast<void>(pipeline::run(
        session, sources, [&](const StreamInfo& stream) { return flow_consumer(stream, summary, DecoderKind::fast); }));
    EXPECT_EQ(summary.totals().ranges, 3U);
    EXPECT_EQ(summary.totals().instructions, 6U);
}

TEST_F(PerfCapture, ContextIdsThatNobodyTraced) {
    const std::string a = program("a", 1);
    process(10);
    map(10, 0x500040, a, 50);
    std::vector<std::uint8_t> trace = once(0x500040, 10);
    // Without the bit that announces a Context ID, and without the Context ID.
    trace[trace.size() - 6] &= 0x7f;
    trace.erase(trace.end() - 5, trace.end() - 1);
    range(0, trace, 0, 100);
    const Session session = open();
    std::vector<const Source*> sources;
    for (const Source& source : session.sources) sources.push_back(&source);
    const ProcessSurvey survey = survey_processes(session, sources, 1 << 20);
    ASSERT_EQ(survey.peculiarities.size(), 1U);
    EXPECT_EQ(survey.peculiarities[0].kind, "no-context-ids");
    EXPECT_EQ(survey.bytes, survey.of);
    ASSERT_EQ(survey.missing.size(), 1U);
}

TEST_F(PerfCapture, ASurveyLooksAtAPart) {
    const std::string a = program("a", 1);
    process(10);
    map(10, 0x500040, a, 50);
    map(10, 0x600040, "/nowhere/first.so", 50);
    map(10, 0x700040, "/nowhere/later.so", 50);
    range(0, once(0x600040, 10), 0, 100);
    range(0, once(0x700040, 10), 0, 200);
    const Session session = open();
    std::vector<const Source*> sources;
    for (const Source& source : session.sources) sources.push_back(&source);
    const ProcessSurvey all = survey_processes(session, sources, 1 << 20);
    // The share of each ring that belongs to the first of the two ranges.
    const ProcessSurvey part = survey_processes(session, sources, all.of / 2 * session.capture.buffers.size());
    EXPECT_EQ(all.missing.size(), 2U);
    EXPECT_TRUE(all.peculiarities.empty());
    ASSERT_EQ(part.missing.size(), 1U);
    EXPECT_NE(part.missing[0].found.find("/nowhere/first.so"), std::string::npos);
    EXPECT_LT(part.bytes, part.of);
}

TEST_F(PerfCapture, RawTraceIsOfItsRing) {
    const std::string a = program("a", 1);
    process(10);
    map(10, 0x500040, a, 50);
    range(1, once(0x500040, 10), 0x100, 100);
    const Session session = open();
    EXPECT_EQ(run(session, Addresses::as_they_were).delivered.at("cpu1 aux_cpu1").ranges, Ranges{"0x500040+2"});
}

/// Files with random damage: wrong bytes, numbers of any size in any field, records that are gone, doubled or
/// exchanged, and files that end early. Each is an error with a message, or a capture of which everything can be
/// decoded; and what is decoded is bounded by the size of the file.
TEST_F(PerfCapture, DamagedFiles) {
    const std::string a = program("a", 1), b = program("b", 2);
    process(10);
    process(20);
    std::vector<std::uint64_t> records;
    const auto mark = [&] { records.push_back(w_.size()); };
    mark();
    w_.hardware_id(0x10, {10, 10, 0, 20, 0});
    mark();
    map(10, 0x500040, a, 50);
    mark();
    map(20, 0x500040, b, 50);
    mark();
    w_.task({TaskEvent::Kind::fork, 30, 30, 10, 10, 60, {}}, {10, 10, 0, 60, 1});
    mark();
    w_.task({TaskEvent::Kind::exec, 30, 30, 0, 0, 0, "other"}, {30, 30, 0, 70, 1});
    mark();
    map(30, 0x900040, a, 80);
    mark();
    range(0, once(0x500040, 10) + once(0x500040, 20) + once(0x900040, 30), 0, 100);
    mark();
    w_.task({TaskEvent::Kind::exit, 30, 30, 10, 10, 110, {}}, {30, 30, 0, 110, 1});
    mark();
    range(1, once(0x500040, 20), 0x100, 120);
    mark();
    range(0, once(0x500040, 20), AuxRange::truncated, 140);
    mark();
    // An ID that another process has now, with other files, one of which covers a part of the earlier file.
    w_.task({TaskEvent::Kind::fork, 30, 30, 20, 20, 150, {}}, {20, 20, 0, 150, 1});
    mark();
    map(30, 0x500440, a, 160);
    mark();
    w_.itrace_start(30, 30, {30, 30, 1, 165, 0});
    mark();
    w_.switch_to(20, 20, {30, 30, 1, 170, 1});
    mark();
    w_.switched(true, {20, 20, 1, 175, 1});
    mark();
    w_.text_poke({{0xffff800000500040}, 180, {0x1f, 0x20, 0x03, 0xd5}, {0, 0, 0, 0x14}}, {0, 0, 0, 180, 1});
    mark();
    w_.kernel_symbol({{0xffff800008000000}, 64, 185, false, "bpf_prog_1122_filter"}, {0, 0, 0, 185, 1});
    mark();
    w_.time_conversion({.shift = 1, .multiplier = 80});
    mark();
    w_.build_id({10, std::vector<std::uint8_t>(20, 7), a});
    mark();
    w_.lost(1, 5, {10, 10, 0, 190, 1});
    mark();
    // Earlier than the preceding range.
    range(1, once(0x500440, 30), 0, 90);
    mark();
    w_.finished_round();
    mark();
    const std::vector<std::uint8_t> whole = finished();

    unsigned rounds = sized(400U, 100U), errors = 0, decoded = 0;
    if (const char* more = std::getenv("WAYMARK_PROPERTY_ROUNDS")) rounds = static_cast<unsigned>(std::atoi(more));
    for (unsigned round = 0; round < rounds; ++round) {
        SCOPED_TRACE(fmt::format("round {}", round));
        synthetic::Random random(round);
        std::vector<std::uint8_t> bytes = whole;
        const auto anywhere = [&] { return random.below(static_cast<std::uint32_t>(bytes.size())); };
        for (unsigned n = 1 + random.below(3); n != 0; --n) switch (random.below(5)) {
                case 0: bytes[anywhere()] ^= static_cast<std::uint8_t>(1U << random.below(8)); break;
                case 1: {
                    constexpr std::uint64_t numbers[] = {0,
                                                         1,
                                                         0xffffffff,
                                                         std::uint64_t{1} << 31,
                                                         std::uint64_t{1} << 60,
                                                         std::uint64_t{1} << 63,
                                                         ~std::uint64_t{0},
                                                         7};
                    const std::size_t at = anywhere() / 8 * 8;
                    if (at + 8 <= bytes.size()) std::memcpy(&bytes[at], &pick(random, numbers), 8);
                    break;
                }
                case 2: {  // a record is gone, or there twice
                    const std::size_t i = random.below(static_cast<std::uint32_t>(records.size() - 1));
                    const auto first = whole.begin() + static_cast<std::ptrdiff_t>(records[i]);
                    const auto last = whole.begin() + static_cast<std::ptrdiff_t>(records[i + 1]);
                    if (bytes.size() < records[i + 1]) break;
                    const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(records[i]);
                    if (random.half())
                        bytes.erase(at, at + (last - first));
                    else
                        bytes.insert(at, first, last);
                    break;
                }
                case 3: bytes.resize(std::max<std::size_t>(1, anywhere())); break;
                case 4: {  // two stretches change places
                    const std::size_t count = 8 * (1 + random.below(12)), i = anywhere(), k = anywhere();
                    if (std::max(i, k) + count <= bytes.size() && (i + count <= k || k + count <= i))
                        std::swap_ranges(&bytes[i], &bytes[i] + count, &bytes[k]);
                    break;
                }
            }
        const std::size_t size = bytes.size();
        const std::shared_ptr<const capture::ByteFile> file = capture::byte_file_from_memory(std::move(bytes));
        auto data = capture::perf::read_perf_data(*file);
        if (!data) {
            EXPECT_FALSE(data.error().message.empty());
            ++errors;
            continue;
        }
        auto made = capture::perf::cs_etm_capture("perf.data", file, std::move(*data));
        if (!made) {
            EXPECT_FALSE(made.error().message.empty());
            ++errors;
            continue;
        }
        for (const capture::Problem& problem : made->problems) EXPECT_FALSE(problem.message.empty());
        auto session = make_session(std::move(*made), {});
        if (!session) {
            EXPECT_FALSE(session.error().message.empty());
            ++errors;
            continue;
        }
        const Ran ran = run(*session, Addresses::placed);
        std::uint64_t read = 0;
        for (const BufferReport& buffer : ran.report.buffers) {
            read += buffer.bytes;
            if (buffer.framed && !buffer.error) {
                EXPECT_EQ(buffer.frames.accounted(), buffer.bytes);
            }
        }
        EXPECT_LE(read, size);
        ++decoded;
    }
    EXPECT_GT(errors, rounds / 100);
    EXPECT_GT(decoded, rounds / 4);
}

}  // namespace
}  // namespace waymark::pipeline
