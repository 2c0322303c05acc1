// Answers of several captures added up: in any order; inlined calls; images that share addresses.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/random.h"
#include "support/sanitized.h"
#include "waymark/answers/account.h"
#include "waymark/answers/account_effects.h"
#include "waymark/answers/answers.h"
#include "waymark/answers/metric_sets.h"
#include "waymark/answers/parts.h"
#include "waymark/answers/seen_lines.h"
#include "waymark/answers/sum.h"

namespace waymark::answers {
namespace {

/// Some of the functions f0 to f5 of two images that were loaded alike, with code that was inlined into them.
Answers random_answers(std::uint64_t seed) {
    synthetic::Random random(seed);
    Answers a;
    a.metrics.push_back({"instructions", "instructions"});
    if (random.half()) a.metrics.push_back({"cycles", "cycles"});
    a.images = {{"program", {}, "aa"}, {"library", {}, "bb"}};
    if (random.half()) std::swap(a.images[0], a.images[1]);
    a.sources = {{"a.c"}, {"b.c"}};
    if (random.half()) std::swap(a.sources[0], a.sources[1]);
    const auto costs = [&](std::uint64_t n) { return Costs(a.metrics.size(), n); };
    a.calls.push_back({none, none, CallNode::Kind::root, 0, costs(0)});
    for (std::uint64_t number = 0; number < 6; ++number) {
        if (random.below(3) == 0) continue;
        const auto function = static_cast<Index>(a.functions.size());
        const Index image = random.below(2), source = random.below(2);
        a.functions.push_back({"f" + std::to_string(number), "", image, 0x1000 + 0x100 * number, 0x100});
        // Each function has its own name here: the same place in both images would be two functions.
        a.functions.back().name += a.images[image].name;
        Index inlined = none;
        std::uint64_t sum = 0;
        for (std::uint64_t at = 0; at < 8; ++at) {
            if (random.below(3) == 0) {
                const InlinedCall call{random.half() ? inlined : none,
                                       function,
                                       "i" + std::to_string(random.below(3)),
                                       {},
                                       source,
                                       1 + random.below(2)};
                const auto found = std::find_if(a.inlined.begin(), a.inlined.end(), [&](const InlinedCall& c) {
                    return c.parent == call.parent && c.function == call.function && c.name == call.name &&
                           c.line == call.line;
                });
                inlined = static_cast<Index>(found - a.inlined.begin());
                if (found == a.inlined.end()) a.inlined.push_back(call);
            }
            Instruction i;
            i.address = 0x1000 + 0x100 * number + 4 * at;
            i.bytes = 4;
            i.function = function;
            i.source = source;
            i.line = 1;
            // An instruction belongs to the same function in each capture.
            i.times = 1 + random.below(100);
            i.costs = costs(i.times);
            sum += i.times;
            if (at % 2 == 0) i.inlined = inlined;
            a.instructions.push_back(i);
        }
        a.calls.push_back({0, function, CallNode::Kind::call, 1, costs(sum)});
    }
    const char* clauses[] = {"this", "that", "those"};
    for (const char* view : {"functions", "timeline"}) {
        if (random.below(4) == 0) continue;
        Trust t{.view = view};
        for (std::string* text : {&t.exact, &t.estimated, &t.not_known})
            for (const char* clause : clauses)
                if (random.half()) *text += (text->empty() ? "" : "; ") + std::string(clause);
        a.trust.push_back(t);
    }
    return a;
}

std::string place(const Answers& a, const InlineFrame& frame) {
    return std::string(frame.function) + "@" + (frame.source == none ? "?" : a.sources[frame.source].path) + ":" +
           std::to_string(frame.line);
}

/// All answers, by name, since the order of rows in tables does not matter.
std::multimap<std::string, std::string> delivered(const Answers& a) {
    std::multimap<std::string, std::string> out;
    const auto costs = [&](const Costs& c) {
        std::map<std::string, std::uint64_t> by_name;
        for (std::size_t m = 0; m < c.size(); ++m) by_name[a.metrics[m].name] += c[m];
        std::ostringstream text;
        for (const auto& [name, n] : by_name)
            if (n != 0) text << ' ' << name << ' ' << n;
        return text.str();
    };
    for (const Instruction& i : a.instructions) {
        std::ostringstream at;
        at << a.functions[i.function].name << '+' << i.address - a.functions[i.function].address;
        out.emplace(at.str(), std::to_string(i.times) + costs(i.costs));
    }
    for (std::size_t i = 0; i < a.inlined.size(); ++i) {
        Instruction in;
        in.inlined = static_cast<Index>(i);
        in.function = a.inlined[i].function;
        std::string chain = "inlined";
        for (const InlineFrame& frame : inline_frames(a, in)) chain += " " + place(a, frame);
        out.emplace(chain, "");
    }
    out.emplace("account", account_sentence(a.account));
    for (const InlinedCosts& c : inlined_costs(a)) out.emplace("cost of " + c.name, costs(c.self) + costs(c.inlined));
    for (const Trust& t : a.trust)
        for (const std::string* text : {&t.exact, &t.estimated, &t.not_known}) {
            std::vector<std::string> clauses;
            std::istringstream in(*text);
            for (std::string clause; std::getline(in, clause, ';');)
                clauses.push_back(clause.starts_with(' ') ? clause.substr(1) : clause);
            std::sort(clauses.begin(), clauses.end());
            for (const std::string& clause : clauses)
                out.emplace("trust in " + t.view, std::string(text == &t.exact       ? "exact "
                                                              : text == &t.estimated ? "estimated "
                                                                                     : "not ") +
                                                      clause);
        }
    return out;
}

Answers merged(Answers a, const Answers& b) {
    merge(a, b);
    return a;
}

TEST(Merging, IsAssociative) {
    for (std::uint64_t seed = 0; seed < sized(300U, 90U); seed += 3) {
        const Answers a = random_answers(seed), b = random_answers(seed + 1), c = random_answers(seed + 2);
        EXPECT_EQ(delivered(merged(merged(a, b), c)), delivered(merged(a, merged(b, c)))) << "seed " << seed;
    }
}

TEST(Merging, SaysWhereSomeHaveRangesAlone) {
    Answers full = random_answers(1), ranges;
    ranges.metrics = full.metrics;
    ranges.images = full.images;
    for (Answers* a : {&full, &ranges}) a->ranges.push_back({0, 0x1000, 0x1004, isa::Isa::a64, 2, 7, 0, 0});
    ASSERT_TRUE(has_only_ranges(ranges));
    ASSERT_FALSE(has_only_ranges(full));
    const auto said = [](const Answers& a) {
        return std::count_if(a.health.begin(), a.health.end(), [](const Finding& f) {
            return f.severity == Finding::Severity::warning && f.what.find("--only-ranges") != f.what.npos;
        });
    };
    EXPECT_EQ(said(merged(full, full)), 0);
    EXPECT_EQ(said(merged(ranges, ranges)), 0);
    for (const Answers& sum : {merged(full, ranges), merged(ranges, full), merged(merged(full, ranges), full),
                               merged(full, merged(ranges, ranges)), merged(merged(full, full), ranges)})
        EXPECT_EQ(said(sum), 1);
    // The account states it, and so do gates, tables and the page; the size is the size of the files without functions.
    full.account = {{.reason = AccountReason::decoded, .instructions = 60}};
    ranges.account = {{.reason = AccountReason::decoded, .instructions = 14}};
    EXPECT_FALSE(is_part_of_run(merged(ranges, ranges).account));
    EXPECT_FALSE(is_part_of_run(merged(full, full).account));
    EXPECT_EQ(merged(full, ranges).account, (Account{{.reason = AccountReason::decoded, .times = 2, .instructions = 74},
                                                     {.reason = AccountReason::no_functions, .instructions = 14}}));
    EXPECT_EQ(account_sentence(merged(full, merged(ranges, ranges)).account),
              "observed 88 instructions; not decoded: captures without functions (28 instructions)");
    EXPECT_EQ(delivered(merged(merged(full, ranges), ranges)), delivered(merged(full, merged(ranges, ranges))));
    // A capture that decoded nothing changes neither sum nor order: any file may come before it.
    Answers nothing;
    nothing.metrics = full.metrics;
    nothing.account = {{.reason = AccountReason::decoded}};
    EXPECT_EQ(delivered(merged(merged(ranges, nothing), full)), delivered(merged(ranges, merged(nothing, full))));
    EXPECT_TRUE(completeness(merged(full, ranges).account).strict);
    EXPECT_EQ(completeness(merged(full, ranges).account).word(), "lower bound");
    EXPECT_EQ(counts_note(merged(full, ranges).account),
              "counts are of the captures that have functions; as figures of the run they are lower bounds");
    // A file without any code lacks no functions of the others.
    EXPECT_FALSE(is_part_of_run(merged(Answers{}, ranges).account));
    // What did not run in the other files may have run in these.
    const auto not_executed = [](const Answers& a) {
        return std::count_if(a.instructions.begin(), a.instructions.end(),
                             [](const Instruction& i) { return i.seen == Seen::not_executed; }) +
               std::count_if(a.lines.begin(), a.lines.end(),
                             [](const Line& l) { return l.seen == Seen::not_executed; });
    };
    full.instructions.front().seen = Seen::not_executed;
    ASSERT_GT(not_executed(merged(full, full)), 0);
    EXPECT_EQ(not_executed(merged(full, ranges)), 0);
    EXPECT_EQ(not_executed(merged(merged(ranges, full), full)), 0);
    // The statement is true: functions, with their calls, are the functions of the other files.
    EXPECT_FALSE(full.calls.empty());
    EXPECT_EQ(delivered(merged(merged(full, ranges), full)), delivered(merged(ranges, merged(full, full))));
    EXPECT_EQ(merged(full, ranges).calls.size(), merged(full, full).calls.size());
}

/// An input of a sum, and its statement on each of four instructions of three images, whether it lists them or not.
struct Seeing {
    Answers answers;
    std::map<std::string, Seen> says;
    std::set<std::string> lists;
};
Seeing random_seeing(synthetic::Random& random) {
    Seeing out;
    Answers& a = out.answers;
    a.metrics.push_back({"instructions", "instructions"});
    a.sources = {{"a.c"}};
    a.hides_others = random.below(4) == 0;
    if (random.below(3) == 0) a.account.push_back({.reason = AccountReason::handlers});
    std::map<std::string, bool> listed;  // images, and whether they hide code
    for (const char* image : {"program", "library", "vmlinux"}) {
        if (random.below(3) == 0) continue;
        listed[image] = random.half();
        a.images.push_back({.name = image, .hides = listed[image]});
    }
    const bool any = std::any_of(listed.begin(), listed.end(), [](const auto& image) { return image.second; });
    const auto system = a.hides_others || any || !a.account.empty();
    for (std::uint32_t number = 0; number < 12; ++number) {
        const std::string image = number < 4 ? "program" : number < 8 ? "library" : "vmlinux";
        const std::string name = image + std::to_string(number);
        const auto found = listed.find(image);
        const bool hides = found != listed.end() ? found->second : image == "vmlinux" ? system : a.hides_others;
        if (found == listed.end() || random.below(3) == 0) {
            out.says[name] = hides ? Seen::not_observed : Seen::not_executed;
            continue;
        }
        const Seen seen = static_cast<Seen>(random.below(3));
        out.says[name] = seen;
        out.lists.insert(name);
        const auto at = std::find_if(a.images.begin(), a.images.end(), [&](const Image& i) { return i.name == image; });
        const auto function = static_cast<Index>(a.functions.size());
        const std::uint64_t address = 0x1000 + 16 * number;
        a.functions.push_back({name, "", static_cast<Index>(at - a.images.begin()), address, 16});
        Instruction i;
        i.address = address;
        i.bytes = 4;
        i.seen = seen;
        i.function = function;
        i.source = 0;
        i.line = number + 1;
        i.times = seen == Seen::executed ? 1 : 0;
        a.instructions.push_back(i);
        a.statements.push_back({address, function, 0, number + 101});
        for (const std::uint32_t line : {number + 1, number + 101}) a.lines.push_back({0, line, seen, function});
        Branch b;
        b.address = address;
        b.function = function;
        b.seen_taken = seen;
        b.seen_not_taken = Seen::not_executed;
        a.branches.push_back(b);
    }
    std::sort(a.lines.begin(), a.lines.end(), [](const Line& x, const Line& y) { return x.line < y.line; });
    return out;
}

TEST(Merging, EachWayOfABranchIsSeenByItself) {
    for (const auto& [taken, not_taken] :
         {std::pair(Seen::executed, Seen::not_observed), std::pair(Seen::not_observed, Seen::executed)}) {
        Answers a;
        a.images.emplace_back().name = "app";
        a.functions.push_back({"f", "", 0, 0x1000, 16});
        Branch& branch = a.branches.emplace_back();
        branch.address = 0x1000;
        branch.function = 0;
        branch.seen_taken = taken;
        branch.seen_not_taken = not_taken;
        const Answers other = a;
        merge(a, other);
        ASSERT_EQ(a.branches.size(), 1U);
        EXPECT_EQ(a.branches[0].seen_taken, taken);
        EXPECT_EQ(a.branches[0].seen_not_taken, not_taken);
    }
}

TEST(Merging, WhatAnInputHidesMayHaveRunUnlisted) {
    synthetic::Random random(1);
    std::size_t doubted = 0;
    for (std::size_t round = 0; round < sized(3000U, 300U); ++round) {
        std::vector<Seeing> inputs;
        for (std::uint64_t n = 2 + random.below(4); n != 0; --n) inputs.push_back(random_seeing(random));
        std::map<std::string, Seen> right;
        for (const Seeing& input : inputs)
            for (const std::string& name : input.lists) right[name] = Seen::not_executed;
        for (auto& [name, seen] : right)
            for (const Seeing& input : inputs) {
                const Seen says = input.says.at(name);
                doubted += says == Seen::not_observed && !input.lists.contains(name) ? 1 : 0;
                if (says == Seen::executed || (says == Seen::not_observed && seen != Seen::executed)) seen = says;
            }
        // Added up in any order, and as sums of sums.
        std::vector<Answers> rest;
        for (const Seeing& input : inputs) rest.push_back(input.answers);
        while (rest.size() > 1) {
            const std::size_t one = random.below(static_cast<std::uint32_t>(rest.size()));
            std::swap(rest[one], rest.back());
            Answers last = std::move(rest.back());
            rest.pop_back();
            Answers& to = rest[random.below(static_cast<std::uint32_t>(rest.size()))];
            to = merged(std::move(to), last);
        }
        const Answers& sum = rest.front();
        std::map<std::string, Seen> found, taken;
        std::map<std::uint32_t, Seen> lines;
        const std::vector<Seen> seen = seen_of_lines(sum);
        for (std::size_t row = 0; row < sum.lines.size(); ++row) lines[sum.lines[row].line] = seen[row];
        for (const Instruction& i : sum.instructions) {
            const std::string& name = sum.functions[i.function].name;
            found[name] = i.seen;
            EXPECT_EQ(lines[i.line], i.seen) << name;
            EXPECT_EQ(lines[i.line + 100], i.seen) << name;
        }
        for (const Branch& b : sum.branches) taken[sum.functions[b.function].name] = b.seen_taken;
        ASSERT_EQ(found, right) << "round " << round;
        ASSERT_EQ(taken, right) << "round " << round;
    }
    EXPECT_GT(doubted, 1000U);
}

TEST(Merging, TheAccountSaysWhatIsHidden) {
    const auto hides = [](AccountReason reason, bool all_images) {
        Answers a;
        a.images = {{"program"}};
        a.account = {{.reason = reason}};
        mark_unlisted_code(a, all_images);
        return std::pair(a.images[0].hides, a.hides_others);
    };
    for (const AccountRule& rule : account_rules()) {
        if (rule.reason == AccountReason::handlers) continue;
        const bool any = rule.hides != Hides::nothing;
        EXPECT_EQ(hides(rule.reason, true), std::pair(any, false)) << rule.what;
        EXPECT_EQ(hides(rule.reason, false), std::pair(any, any)) << rule.what;
    }
    // A handler is in no file that a process has mapped.
    EXPECT_EQ(hides(AccountReason::handlers, true), std::pair(false, false));
    EXPECT_EQ(hides(AccountReason::handlers, false), std::pair(true, true));
}

TEST(Merging, ABuildIsOneImageHoweverItsIdIsWritten) {
    EXPECT_EQ(build_key("0C9a20bf"), "0c9a20bf");
    EXPECT_EQ(build_key("0x0c9a20bf00000000"), "0c9a20bf");
    EXPECT_EQ(build_key("no digits"), "no digits");
    EXPECT_EQ(build_key("abc"), "abc") << "half a byte is none";
    Answers a, b;
    a.metrics = b.metrics = {{"instructions", "instructions"}};
    a.images = {{"loop", "/a/loop", "AB12"}};
    b.images = {{"loop-copy", "/b/loop", "ab120000"}};
    a.images[0].recorded = "/data/loop";
    for (Answers* one : {&a, &b}) one->ranges.push_back({0, 0x1000, 0x1004, isa::Isa::a64, 2, 7, 0, 0});
    for (const Answers& sum : {merged(a, b), merged(b, a)}) {
        ASSERT_EQ(sum.images.size(), 1U);
        EXPECT_EQ(sum.images[0].recorded, "/data/loop");
        ASSERT_EQ(sum.ranges.size(), 1U);
        EXPECT_EQ(sum.ranges[0].times, 14U);
    }
}

TEST(Merging, CostsOfInlinedCodeAddUpToAll) {
    for (std::uint64_t seed = 0; seed < 200; seed += 2) {
        Answers a = merged(random_answers(seed), random_answers(seed + 1));
        scale_metrics(a);
        std::uint64_t all = 0, wherever = 0, inlined = 0;
        for (const Instruction& i : a.instructions) {
            all += i.times;
            inlined += i.inlined == none ? 0 : i.times;
        }
        std::uint64_t of_inlined = 0;
        for (const InlinedCosts& c : inlined_costs(a)) {
            wherever += c.self[0];
            of_inlined += c.inlined[0];
        }
        EXPECT_EQ(wherever, all) << "seed " << seed;
        EXPECT_EQ(of_inlined, inlined) << "seed " << seed;
    }
}

// Captures with and without a metric: the sum keeps the two sets apart, in any order, and states which captures count
// the metric.
TEST(Merging, NotesOfAllMetricsStay) {
    const auto one = [](std::string note) {
        Answers a;
        a.capture = note;
        a.unit = "SPE";
        a.metrics = {{"samples", "samples", false, std::move(note)}};
        return a;
    };
    const auto note_of = [](Answers sum, const std::vector<Answers>& others) {
        for (const Answers& other : others) merge(sum, other);
        return sum.metrics.at(0).note;
    };
    const Answers often = one("a sample represents 256"), seldom = one("a sample represents 512"), silent = one("");
    EXPECT_EQ(note_of(often, {often}), often.metrics[0].note);
    const std::string both = "a sample represents 256; a sample represents 512";
    EXPECT_EQ(note_of(often, {seldom}), both);
    EXPECT_EQ(note_of(seldom, {often, silent, seldom}), both);
}

TEST(Merging, WhatOnlySomeCountIsScaledAndSaysSo) {
    const auto one = [](const char* capture, std::vector<Metric> metrics, const std::vector<Costs>& costs) {
        Answers a;
        a.capture = capture;
        a.unit = "PTM";
        a.metrics = std::move(metrics);
        a.images.push_back({"program", {}, "aa"});
        a.calls.push_back({none, none, CallNode::Kind::root, 0, {}});
        a.trust.push_back({.view = "functions", .exact = "all"});
        a.summary.push_back({"instructions", "1", ""});
        for (std::size_t i = 0; i < costs.size(); ++i) {
            if (costs[i].empty()) continue;
            const auto f = static_cast<Index>(a.functions.size());
            a.functions.push_back({"f" + std::to_string(i), "", 0, 0x1000 * (i + 1), 0x100});
            a.calls.push_back({0, f, CallNode::Kind::call, 1, costs[i]});
            Instruction instruction;
            instruction.address = 0x1000 * (i + 1);
            instruction.function = f;
            instruction.times = costs[i][0];
            if (a.metrics.size() > 1) instruction.costs = costs[i];
            a.instructions.push_back(instruction);
        }
        return a;
    };
    const Metric instructions{"instructions", "instructions"}, cycles{"cycles", "cycles"};
    const Answers a = one("a", {instructions, cycles}, {{100, 300}, {200, 200}, {}});
    const Answers b = one("b", {instructions}, {{300}, {200}, {50}});
    const Answers c = one("c", {instructions}, {{0}, {200}, {50}});
    for (Answers sum : {merged(merged(a, b), c), merged(b, merged(c, a)), merged(merged(c, b), a)}) {
        EXPECT_TRUE(have_sets(sum.metrics));
        scale_metrics(sum);
        ASSERT_EQ(sum.metrics.size(), 2U);
        EXPECT_TRUE(sum.metrics[0].exact);
        EXPECT_FALSE(sum.metrics[1].exact);
        EXPECT_EQ(sum.metrics[1].note, "counted in 1 of 3 captures, and scaled to all of them by instructions");
        EXPECT_EQ(sum.trust.front().estimated, "cycles, which some captures count: scaled to all");
        EXPECT_EQ(std::count_if(sum.health.begin(), sum.health.end(),
                                [](const Finding& f) { return f.what.starts_with("Not all captures count the same"); }),
                  1);
        std::map<std::string, Costs> of;
        for (const CallNode& node : sum.calls)
            if (node.function != none) of[sum.functions[node.function].name] = node.self;
        EXPECT_EQ(of["f0"], (Costs{400, 1200}));
        EXPECT_EQ(of["f1"], (Costs{600, 600}));
        EXPECT_EQ(of["f2"], (Costs{100, 167})) << "it ran where nothing counts cycles: as all code does";
        for (const Instruction& i : sum.instructions) EXPECT_EQ(i.costs, of[sum.functions[i.function].name]);
        ASSERT_FALSE(sum.summary.empty());
        EXPECT_EQ(sum.summary.front().value, "1,100");
        EXPECT_EQ(sum.summary.front().note, "in 3 captures");
    }
    // All captures count the same metrics: the sum has one set.
    const Answers same = merged(a, a);
    EXPECT_FALSE(have_sets(same.metrics));
    EXPECT_TRUE(same.metrics[1].exact && same.metrics[1].note.empty() && same.metrics[1].set.empty());
}

TEST(Merging, ImagesMayShareAddresses) {
    const auto one = [](const char* image, std::uint64_t times) {
        Answers a;
        a.metrics.push_back({"samples", "samples", false});
        a.images.push_back({image, {}, image});
        a.functions.push_back({"main", {}, 0, 0x1000, 16});
        a.functions.back().name = std::string("main of ") + image;
        Instruction i;
        i.address = 0x1004;
        i.function = 0;
        i.costs = {times};
        a.instructions.push_back(i);
        return a;
    };
    const Answers a = merged(one("program", 3), one("library", 4));
    ASSERT_EQ(a.instructions.size(), 2U);
    const auto costs = function_costs(a);
    const std::size_t program = a.functions[0].name == "main of program" ? 0 : 1;
    EXPECT_EQ(costs[program].self, Costs{3});
    EXPECT_EQ(costs[1 - program].self, Costs{4});
}

/// A capture with a timeline of `slices` calls of one function, which begins at any time.
Answers with_timeline(const std::string& name, std::uint64_t begin, std::uint64_t slices, const char* unit = "ns") {
    Answers a;
    a.capture = name;
    a.metrics.push_back({"instructions", "instructions"});
    a.functions.push_back({"work"});
    a.timeline.axis.unit = unit;
    a.timeline.axis.begin = begin;
    a.timeline.axis.end = begin + 10 * slices;
    a.timeline.tracks = {{"core 0"}, {"thread 1", 0}};
    for (std::uint64_t n = 0; n < slices; ++n) a.timeline.slices.push_back({begin + 10 * n, begin + 10 * n + 9, 1, 0});
    a.timeline.marks.push_back({begin, begin, 0, TimelineMark::Kind::gap, "lost"});
    a.timeline.series.push_back({"load", "1", 0, {{begin, 1.0}, {begin + 5, 2.0}}});
    return a;
}

TEST(MergedTimelines, AreThoseOfAFewCaptures) {
    std::vector<Answers> captures;
    for (unsigned n = 0; n < 40; ++n)
        captures.push_back(
            with_timeline("capture" + std::to_string(n), 1000 * n, 5 + n, n % 10 == 0 ? "cycles" : "ns"));
    std::vector<const Answers*> all;
    for (const Answers& a : captures) all.push_back(&a);
    const Answers sum = merged(all);
    const Timeline& t = sum.timeline;
    ASSERT_EQ(t.samples.size(), most_samples);
    EXPECT_EQ(t.axis.unit, "ns");
    EXPECT_EQ(t.axis.begin, 0U);
    ASSERT_EQ(t.tracks.size(), 3 * most_samples);
    // The timelines of the captures with the smallest hashes; each begins at 0, below its own track.
    std::vector<std::pair<std::uint64_t, std::string>> expected;
    for (unsigned n = 0; n < 40; ++n)
        if (n % 10 != 0) expected.emplace_back(sample_order(captures[n].capture), captures[n].capture);
    std::sort(expected.begin(), expected.end());
    for (std::size_t n = 0; n < most_samples; ++n) {
        const TimelineSample& sample = t.samples[n];
        EXPECT_EQ(sample.capture, expected[n].second);
        EXPECT_EQ(sample.track, 3 * n);
        EXPECT_EQ(t.tracks[sample.track].name, sample.capture);
        EXPECT_EQ(t.tracks[sample.track].parent, none);
        EXPECT_EQ(t.tracks[sample.track + 1].parent, sample.track);
        EXPECT_EQ(t.tracks[sample.track + 2].parent, sample.track + 1);
        const auto first =
            std::find_if(t.slices.begin(), t.slices.end(), [&](const Slice& s) { return s.track == sample.track + 2; });
        ASSERT_NE(first, t.slices.end());
        EXPECT_EQ(first->begin, 0U);
        EXPECT_EQ(t.marks[n].track, sample.track + 1);
        EXPECT_EQ(t.series[n].points[1].time, 5U);
        EXPECT_LE(sample.end, t.axis.end);
    }
    EXPECT_EQ(std::count_if(sum.health.begin(), sum.health.end(),
                            [](const Finding& f) { return f.what.starts_with("The timeline is a sample"); }),
              1);
    // A capture alone has the same detail as among others, and two captures with one name are both kept.
    const Answers large = with_timeline("large", 0, 10000);
    EXPECT_LE(merged(std::array{&large}).timeline.slices.size(), 2000U);
    const Answers one = with_timeline("same", 0, 5), other = with_timeline("same", 0, 6);
    EXPECT_EQ(merged(std::array{&one, &other, &one}).timeline.samples.size(), 2U);
}

TEST(MergedTimelines, OfOneNameAreTheSameOnlyIfAllOfThemIs) {
    const Answers one = with_timeline("same", 0, 5);
    const auto samples = [&](const Answers& other) { return merged(std::array{&one, &other}).timeline.samples.size(); };
    EXPECT_EQ(samples(one), 1U);
    Answers named = one;
    named.functions[0].name = "play";
    EXPECT_EQ(samples(named), 2U) << "another function ran";
    Answers late = one;
    late.timeline.slices.back().end = late.timeline.axis.end = std::uint64_t{1} << 56;
    Answers later = late;
    later.timeline.slices.back().end = later.timeline.axis.end = std::uint64_t{1} << 57;
    EXPECT_EQ(merged(std::array{&late, &later}).timeline.samples.size(), 2U) << "the highest byte of a time counts";
}

// Without a build ID the name alone says which file an image is.
TEST(Merging, DifferentCodeOfOneNameIsTold) {
    const auto capture = [](const char* build_id, const char* text) {
        Answers a;
        a.metrics.push_back({"instructions", "instructions"});
        a.images = {{"app", {}, build_id}};
        a.functions.push_back({"leaf", "", 0, 0x1000, 0x20});
        a.instructions.emplace_back();
        a.instructions.back().address = 0x1000;
        a.instructions.back().bytes = 4;
        a.instructions.back().function = 0;
        a.instructions.back().times = 1;
        a.instructions.back().text = text;
        return a;
    };
    const auto warnings = [](const std::vector<Answers>& all) {
        AnswersSum sum;
        for (const Answers& each : all) sum.add(each);
        std::vector<std::string> out;
        for (const Finding& f : sum.take().health)
            if (f.severity == Finding::Severity::warning) out.push_back(f.what);
        return out;
    };
    const Answers one = capture("", "add x0, x0, #1"), other = capture("", "sub x0, x0, #1");
    EXPECT_TRUE(warnings({one, one, capture("", "add x0, x0, x1"), capture("", "")}).empty());
    const std::vector<std::string> expected{
        "The captures have different code at the same addresses of app, which has no build ID: counts of two builds "
        "are "
        "added up as if they were one build."};
    EXPECT_EQ(warnings({one, one, other}), expected);
    EXPECT_EQ(warnings({other, one}), expected);
    AnswersSum sum;
    for (const Answers& each : {one, other}) sum.add(each);
    EXPECT_EQ(warnings({one, sum.take()}), expected);
    EXPECT_TRUE(warnings({capture("aa", "add x0, x0, #1"), capture("aa", "sub x0, x0, #1")}).empty());
}

TEST(Merging, InlinedCallsKeepTheirPlaces) {
    Answers a;
    a.metrics = {{"instructions", "instructions"}};
    a.images = {{"program", {}, "aa"}};
    a.sources = {{"a.c"}};
    a.functions.push_back({"outer", {}, 0, 0x1000, 64, 0, 10});
    a.inlined = {{none, 0, "middle", {}, 0, 12}, {0, 0, "inner", {}, 0, 5}};
    Instruction i;
    i.address = 0x1004;
    i.function = i.source = 0;
    i.line = 7;
    i.inlined = 1;
    i.times = 5;
    a.instructions = {i};
    const Answers sum = merged(a, a);
    ASSERT_EQ(sum.inlined.size(), 2U);
    EXPECT_EQ(sum.inlined[0].name.str(), "middle");
    EXPECT_EQ(sum.inlined[0].parent, none);
    EXPECT_EQ(sum.inlined[1].name.str(), "inner");
    EXPECT_EQ(sum.inlined[1].parent, 0U);
    ASSERT_EQ(sum.instructions.size(), 1U);
    EXPECT_EQ(sum.instructions[0].inlined, 1U);
    EXPECT_EQ(sum.instructions[0].times, 10U);
}

TEST(Merging, ALinkageNameThatIsTheNameIsStoredOnce) {
    const auto with = [](const char* linkage_name) {
        Answers a;
        a.metrics = {{"instructions", "instructions"}};
        a.images = {{"program", {}, "aa"}};
        a.functions.push_back({"outer", {}, 0, 0x1000, 64});
        a.inlined = {{none, 0, "f", linkage_name, none, 12}};
        a.instructions.push_back({.address = 0x1000, .function = 0, .times = 5, .inlined = 0});
        return a;
    };
    const Answers sum = merged(with("f"), with(""));
    ASSERT_EQ(sum.inlined.size(), 1U) << "one call";
    EXPECT_EQ(sum.inlined[0].linkage_name.str(), "");
    EXPECT_EQ(merged(with("_Z1fv"), with("_Z1fv")).inlined[0].linkage_name.str(), "_Z1fv");
}

// The scale is a metric that all captures count, wherever it stands.
TEST(Merging, TheScaleIsAMetricOfAllCaptures) {
    const auto one = [](const char* capture, std::vector<Metric> metrics, const Costs& costs) {
        Answers a;
        a.capture = capture;
        a.unit = "PTM";
        a.metrics = std::move(metrics);
        a.images.push_back({"program", {}, "aa"});
        a.functions.push_back({"f", "", 0, 0x1000, 0x100});
        a.calls = {{none, none, CallNode::Kind::root, 0, {}}, {0, 0, CallNode::Kind::call, 1, costs}};
        return a;
    };
    const Metric instructions{"instructions", "instructions"}, cycles{"cycles", "cycles"};
    Answers sum = merged(one("a", {instructions, cycles}, {100, 200}), one("b", {cycles}, {600}));
    scale_metrics(sum);
    ASSERT_EQ(sum.metrics.size(), 2U);
    EXPECT_EQ(sum.metrics[0].note, "counted in 1 of 2 captures, and scaled to all of them by cycles");
    EXPECT_TRUE(sum.metrics[1].note.empty());
    ASSERT_EQ(sum.calls.size(), 2U);
    EXPECT_EQ(sum.calls[1].self, (Costs{400, 800})) << "100 instructions in 200 of 800 cycles";
}

TEST(Merging, SumsStayAtTheLargestNumber) {
    constexpr std::uint64_t largest = ~std::uint64_t{0};
    Answers a;
    a.capture = "a";
    a.metrics.push_back({"instructions", "instructions"});
    a.summary = {{"instructions", std::to_string(largest - 1)}};
    a.functions.emplace_back().name = "f";
    a.functions.back().bytes = 8;
    a.calls = {{none, none, CallNode::Kind::root, 0, {0}}, {0, 0, CallNode::Kind::call, largest - 1, {largest - 1}}};
    a.instructions.push_back({.address = 4, .bytes = 4, .seen = Seen::executed, .function = 0, .times = largest - 1});
    const Answers sum = merged(std::array{&a, &a, &a});
    EXPECT_EQ(sum.summary.front().value, std::to_string(largest));
    EXPECT_EQ(function_costs(sum).front().calls, largest);
    EXPECT_EQ(function_costs(sum).front().self, Costs{largest});
    EXPECT_EQ(sum.instructions.front().times, largest);
}

TEST(MergedFindings, AreSaidOnceWhateverTheirNumbers) {
    const auto with = [](std::initializer_list<const char*> health) {
        Answers a;
        a.metrics.push_back({"instructions", "instructions"});
        for (const char* what : health) a.health.push_back({Finding::Severity::warning, what});
        return a;
    };
    const Answers a = with({"12 bytes of CPU 3 were lost (0.5%).", "libc.so.6 was not found."}),
                  b = with({"1,234 bytes of CPU 0 were lost (2%).", "7 bytes of CPU 1 were lost (1%).",
                            "libc.so.7 was not found."}),
                  c = with({"execution went to 0x4a10"}), d = with({"execution went to 0x10."});
    const auto all = merged(std::array{&a, &b, &c, &d}).health;
    ASSERT_EQ(all.size(), 5U);
    EXPECT_EQ(all[0].what, "1,234 bytes of CPU 0 were lost (2%).");
    EXPECT_EQ(all[0].captures, 2U);
    EXPECT_EQ(all[1].what, "execution went to 0x4a10");
    EXPECT_EQ(all[2].what, "execution went to 0x10.");
    // Numbers that are part of a name stay in it.
    EXPECT_EQ(all[3].what, "libc.so.6 was not found.");
    EXPECT_EQ(all[4].what, "libc.so.7 was not found.");
    const Answers two = merged(std::array{&a, &b}), three = merged(std::array{&two, &a});
    EXPECT_EQ(three.health[0].captures, 3U);
    // The prefix 0x without digits is not a number.
    const Answers e = with({"execution went to 0x"}), f = with({"execution went to 12"});
    EXPECT_EQ(merged(std::array{&e, &f}).health.size(), 2U);
}

TEST(InlineFrames, FromTheInnermostLineToTheFunction) {
    Answers a;
    a.metrics.push_back({"instructions", "instructions"});
    a.sources = {{"a.c"}, {"b.h"}};
    a.functions.push_back({"outer", {}, none, 0x1000, 64, 0, 10});
    a.inlined = {{none, 0, "middle", {}, 0, 12}, {0, 0, "inner", {}, 1, 5}, {none, 0, "inner", {}, 0, 13}};
    Instruction i;
    i.function = 0;
    i.source = 1;
    i.line = 7;
    i.inlined = 1;
    i.times = 5;
    a.instructions = {i, i, i};
    a.instructions[1].inlined = 2;
    a.instructions[2].inlined = none;
    const auto frames = inline_frames(a, i);
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(place(a, frames[0]), "inner@b.h:7");
    EXPECT_EQ(place(a, frames[1]), "middle@b.h:5");
    EXPECT_EQ(place(a, frames[2]), "outer@a.c:12");
    const auto costs = inlined_costs(a);
    ASSERT_EQ(costs.size(), 2U);  // `middle` executed no instruction of its own
    EXPECT_EQ(costs[0].self, Costs{5});
    EXPECT_EQ(costs[1].name, "inner");
    EXPECT_EQ(costs[1].self, Costs{10});
    EXPECT_EQ(costs[1].places, 2U);
    // An index without a row is not a frame.
    i.inlined = 77;
    EXPECT_EQ(inline_frames(a, i).size(), 1U);
}

}  // namespace
}  // namespace waymark::answers
