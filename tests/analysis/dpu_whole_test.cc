/// Whole answers, tables and findings of the Debug and Profiling Unit, beside approved text.
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>

#include "analysis/whole_answers.h"
#include "support/dpu_elements.h"
#include "waymark/analysis/dpu_answers.h"
#include "waymark/analysis/dpu_doubts.h"
#include "waymark/analysis/dpu_findings.h"
#include "waymark/analysis/dpu_tables.h"

namespace waymark::analysis {

using namespace answers;
namespace {

using dpu::ElementKind, dpu::Reading;
using support::os5, support::user5, support::user7;

class DpuWhole : public testing::Test, public support::DpuElements {
protected:
    DpuWhole() : DpuElements(support::dpu_setup(dpu::TraceMode::flow)) {
        said_.events = {"CYCLES", "DC_MISS", "STALL_DATA", "WAIT", "", ""};
        said_.cycles = 0;
        said_.tasks = {{5, "worker"}};
        said_.totals.bytes = 4096;
        said_.totals.entry_bytes = 4000;
        code_.add_name(0x2000, "f");
        code_.add_name(0x3000, "g");
        code_.add_name(0x200, "service");
    }
    void mode(dpu::TraceMode mode) {
        setup_.mode = said_.mode = mode;
        said_.mode_text = name(mode);
    }
    /// A run in which functions call each other, with services, losses and data of the user.
    void flow() {
        said_.totals.lost = 3;
        said_.totals.holds = 1;
        said_.totals.gaps[static_cast<unsigned>(GapReason::framing)] = 1;
        said_.totals.gap_bytes[static_cast<unsigned>(GapReason::framing)] = 16;
        change(ElementKind::flow, 0x1000, 0x2000, user5, 1);     // f
        change(ElementKind::flow, 0x2010, 0x3000, user5, 2, 1);  // g
        change(ElementKind::flow, 0x3010, 0x2000, user5, 4);     // f once more
        change(ElementKind::flow, 0x2020, 0x3014, user5, 8);
        change(ElementKind::flow, 0x3020, 0x200, os5, 16, 3);  // a service of g
        change(ElementKind::flow, 0x240, 0x3022, user5, 32, 5);
        element(ElementKind::user_data).value = 0xcafe0001;
        change(ElementKind::flow, 0x3024, 0x200, os5, 10, 3);  // and again, longer
        change(ElementKind::flow, 0x244, 0x4000, user7, 70, 5);
        change(ElementKind::flow, 0x4010, 0x200, os5, 100, 1);
        change(ElementKind::flow, 0x248, 0x3026, user5, 20, 1);
        element(ElementKind::lost).value = 3;
        change(ElementKind::flow, 0x3030, 0x2014, user5, 64, 2, Reading::lossy);
        element(ElementKind::held);
        change(ElementKind::flow, 0x2030, 0x1004, user5, 128, 7, Reading::lossy);
        dpu::Element& gap = element(ElementKind::gap);
        gap.reason = GapReason::framing;
        gap.offset = {0x80};
        change(ElementKind::flow, 0x1008, 0x2000, user5, 256, 9);
    }
    void tasks() {
        change(ElementKind::task_switch, 0x1010, 0x200, os5, 1000, 10);
        change(ElementKind::task_switch, 0x280, 0x2000, user7, 200, 20);
        element(ElementKind::enabled);
        change(ElementKind::task_switch, 0x2100, 0x1000, user5, 300, 5, Reading::lossy);
        change(ElementKind::task_switch, 0x1020, 0x3000, user7, 50, 1);
    }
    void write(std::string_view what) {
        end_after(40);
        DpuDoubts doubts(setup_);
        doubts.consume({elements_, readings_});
        doubts.finish();
        setup_.doubtful = doubts.readings();
        DpuCosts costs(setup_, code_);
        DpuTimes times(setup_);
        costs.consume({elements_, readings_});
        times.consume({elements_, readings_});
        costs.finish();
        times.finish();
        std::ostream& out = whole_.next(what);
        support::write_answers_text(out, answers_of_dpu(costs, &times, code_, said_, options_));
        const DpuTables tables(costs, code_, said_, 1);
        for (const auto make : {&DpuTables::tasks, &DpuTables::functions, &DpuTables::paths, &DpuTables::interrupts,
                                &DpuTables::timeline, &DpuTables::loops, &DpuTables::data})
            for (const std::size_t most : {0, 2}) {
                const DpuTable made = (tables.*make)(most);
                support::write_table(out, made.table);
                out << "left out " << made.left_out << ", sum";
                if (made.sum)
                    for (const std::uint64_t count : *made.sum) out << ' ' << count;
                out << (made.empty.empty() ? "" : ", empty: ") << made.empty << '\n';
            }
        if (!ranges_.empty()) {
            const DpuTable made = tables.ranges(ranges_, setup_.ranges);
            support::write_table(out, made.table);
            out << "sum " << made.sum.has_value() << '\n';
        }
        for (const bool by_function : {false, true}) support::write_table(out, tables.ratios(by_function).table);
        support::write_table(out, tables.health().table);
        support::write_table(out, tables.reconciliation(costs.total()));
        for (const char* view :
             {"tasks", "functions", "paths", "interrupts", "ranges", "timeline", "loops", "data", "health", "report"}) {
            const Trust trust = trust_in(view, said_, costs);
            out << "trust " << view << ": exact: " << trust.exact << "; estimated: " << trust.estimated
                << "; not known: " << trust.not_known << '\n';
        }
        out << "whole " << is_whole(said_, costs) << '\n';
    }
    support::WholeAnswers whole_;
    DpuCode code_;
    DpuSaid said_;
    DpuAnswersOptions options_;
    const std::string none_;
    std::vector<std::string> ranges_;
};

TEST_F(DpuWhole, Flow) {
    mode(dpu::TraceMode::flow);
    flow();
    write("with cycles");
    options_.most_rows = 1;
    options_.most_slices = 4;
    said_.events[1] = "";
    said_.unconnected[2] = true;
    said_.cycles.reset();
    setup_.cycles.reset();
    write("without cycles, few rows");
}

TEST_F(DpuWhole, CodeRangesAndFewStays) {
    mode(dpu::TraceMode::flow);
    flow();
    setup_.most_stays = 3;
    setup_.ranges = {{0x2000, 0x2fff}, {0x200, 0x2ff}, {0x9000, 0x9fff}};
    ranges_ = {"f", "services", "nothing"};
    write("three ranges");
    setup_.ranges.push_back({0x2000, 0x3fff});
    ranges_.emplace_back("f and g");
    write("ranges that overlap");
}

TEST_F(DpuWhole, Tasks) {
    mode(dpu::TraceMode::task);
    tasks();
    write("tasks");
    said_.events = {};
    said_.cycles.reset();
    write("no event");
}

TEST_F(DpuWhole, Samples) {
    mode(dpu::TraceMode::sw_sample);
    change(ElementKind::sample, 0, 0, user5, 10, 2);
    change(ElementKind::sample, 0, 0, user7, 30, 3);
    said_.cycles_note = "made by an emulator";
    write("samples");
    said_.mode.reset();
    said_.cycles_note.clear();
    write("mode not known");
}

TEST_F(DpuWhole, LoopsAndData) {
    mode(dpu::TraceMode::eonce_comp);
    for (const std::uint32_t jumps : {15U, 3U}) {
        dpu::Element& e = element(ElementKind::long_loop);
        e.from = 0x2010;
        e.value = jumps;
    }
    dpu::Element& pair = element(ElementKind::pair);
    pair.from = 0x2010;
    pair.to = 0x2000;
    for (const std::uint32_t datum : {0xcafe0001U, 5U, 6U}) element(ElementKind::user_data).value = datum;
    write("loops");
}

/// What a capture may say about itself, alone and together.
TEST_F(DpuWhole, WhatTheCaptureSays) {
    mode(dpu::TraceMode::flow);
    const DpuSaid plain = said_;
    flow();
    const auto with = [&](std::string_view what, const auto& change_said) {
        said_ = plain;
        change_said(said_);
        DpuCosts costs(setup_, code_);
        costs.consume({elements_, readings_});
        costs.finish();
        std::ostream& out = whole_.next(what);
        support::RowText text(out, none_);
        for (const auto& findings : {dpu_losses(said_), dpu_doubts(costs, said_, 0)})
            for (const DpuFinding& f : findings) {
                out << static_cast<int>(f.kind) << ' ' << static_cast<int>(f.severity) << ": " << f.what << ". "
                    << f.todo << ". times " << f.times << ", reason " << static_cast<int>(f.reason);
                text.maybe("bytes", f.bytes, {});
                text.maybe("records", f.records, {});
                if (f.first) out << ", first " << f.first->value;
                out << '\n';
            }
        out << "left out: " << dpu_left_out(said_) << "\naccount\n";
        for (const AccountRow& row : dpu_account(said_, costs)) {
            schema::fields(text, row);
            out << '\n';
        }
        const Answers a = answers_of_dpu(costs, nullptr, code_, said_, {});
        for (const Finding& f : a.health) {
            schema::fields(text, f);
            out << '\n';
        }
        for (const Figure& f : a.summary) {
            schema::fields(text, f);
            out << '\n';
        }
        out << "cut " << a.cut << ", whole " << is_whole(said_, costs) << '\n';
    };
    with("one of each", [](DpuSaid& s) {
        s.totals.lost = s.totals.holds = s.offs = s.unplaced = s.missing_bytes = 1;
        s.totals.doubtful = 1;
        s.totals.gap_bytes[static_cast<unsigned>(GapReason::framing)] = 1;
        s.totals.gaps[static_cast<unsigned>(GapReason::framing)] = 1;
    });
    with("several of each", [](DpuSaid& s) {
        s.totals.lost = 1002, s.totals.holds = 3, s.offs = 4, s.unplaced = 5, s.missing_bytes = 6;
        s.totals.doubtful = 7;
        for (unsigned r = 0; r < gap_reasons; ++r) s.totals.gap_bytes[r] = 100 + r, s.totals.gaps[r] = 10 + r;
        s.off_cycles = 50;
        s.run_cycles = 2000;
        s.rewritten[1] = true;
        s.problems = {"a problem", "another"};
        s.rules = {"A1 counts in user state"};
    });
    with("overwritten and cut", [](DpuSaid& s) {
        s.overwritten = s.cut = true;
        s.totals.gap_bytes[static_cast<unsigned>(GapReason::unsynchronised)] = 16;
        s.off_cycles = 7;
    });
    with("unit not empty", [](DpuSaid& s) {
        s.complete = false;
        s.lost_unseen = true;
        s.ended = "by --limit, and the program ran on";
        s.program = "prog.eld";
        s.layout = "2 counters";
        s.cycles_note = "instructions times 2";
    });
    with("filter", [](DpuSaid& s) { s.filter = "PID 3"; });
    with("filter that changed", [](DpuSaid& s) { s.filter = "PID 3", s.filter_changed = true; });
    for (const auto mode : {dpu::TraceMode::user, dpu::TraceMode::user_raw, dpu::TraceMode::sw_sample,
                            dpu::TraceMode::edca5, dpu::TraceMode::task})
        with(name(mode), [&](DpuSaid& s) { s.mode = mode, s.mode_text = name(mode); });
    damage(2, 0, 1U << 30);
    with("damage", [](DpuSaid&) {});
    setup_.doubtful = {2};
    with("damage left out", [](DpuSaid&) {});
    with("damage left out, without events", [](DpuSaid& s) { s.events = {}; });
    setup_.doubtful.clear();
    change(ElementKind::flow, 0x1008, 0x2000, user5, 0x60000000, 9);
    change(ElementKind::flow, 0x1008, 0x2000, user5, 0x60000000, 9, Reading::lossy);
    with("long intervals", [](DpuSaid&) {});
}

TEST_F(DpuWhole, ACounterThatWasWrittenRaisesNoDoubt) {
    for (unsigned i = 0; i < 20; ++i) change(ElementKind::flow, 0x1000, 0x2000, user5, 100, 10);
    damage(9, 1, 1U << 30);
    const auto doubted = [&](std::uint8_t rewritten) {
        setup_.rewritten = rewritten;
        DpuDoubts doubts(setup_);
        doubts.consume({elements_, readings_});
        doubts.finish();
        return doubts.readings();
    };
    using Readings = std::vector<std::uint64_t>;
    EXPECT_EQ(doubted(0), Readings{9});
    EXPECT_EQ(doubted(0b01), Readings{9});
    EXPECT_EQ(doubted(0b10), Readings{});
}

TEST_F(DpuWhole, RandomFlow) {
    mode(dpu::TraceMode::flow);
    std::mt19937 random(7);
    const auto below = [&](std::uint32_t n) { return static_cast<std::uint32_t>(random() % n); };
    constexpr std::uint32_t places[] = {0x1000, 0x2000, 0x3000, 0x2010, 0x3010, 0x200, 0x240};
    for (unsigned i = 0; i < 60; ++i) {
        // One after the other: compilers evaluate arguments in different orders.
        const std::uint32_t from = places[below(7)] + 8, to = places[below(7)];
        const bool supervisor = below(3) == 0;
        const auto id = static_cast<std::uint8_t>(below(2) + 5);
        const std::uint32_t cycles = below(100), misses = below(9);
        const std::uint8_t flags = below(15) == 0 ? Reading::lossy : std::uint8_t{0};
        change(ElementKind::flow, from, to, {supervisor, id}, cycles, misses, flags);
    }
    write("random");
}

}  // namespace
}  // namespace waymark::analysis
