// Explains what prevents tracing: explain() against the model that has the same registers.

#include "waymark/pft/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "support/sanitized.h"
#include "waymark/core/byte_sink.h"
#include "waymark/pft/access.h"
#include "waymark/pft/model.h"

namespace waymark::pft {
namespace {

using protocol::UnitExplanation, protocol::TraceEffect;

std::uint32_t random_event(std::mt19937_64& random) {
    const auto below = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
    const auto resource = [&]() -> std::uint32_t {
        switch (below(7)) {
            case 0: return below(8);
            case 1: return 1U << 4 | below(4);
            case 2: return 4U << 4 | below(4);
            case 3: return 5U << 4 | (below(2) == 0 ? below(3) : 8 + below(4));
            case 4: return 6U << 4 | 13;
            case 5: return 6U << 4 | below(4);
            default: return 6U << 4 | 15;
        }
    };
    return below(8) << 14 | resource() << 7 | resource();
}

Registers programmed(std::mt19937_64& random) {
    const auto below = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
    const auto one_in = [&](unsigned n) { return below(n) == 0; };
    Registers r;
    for (unsigned n = 0; n < 8; n += 2) {
        const std::uint32_t low = 0x8000 + 4 * below(64);
        r.acvr[n].value = low, r.acvr[n + 1].value = low + 4 + 4 * below(64);
        if (one_in(4)) r.acvr[n].value = 0, r.acvr[n + 1].value = 0xffffffff;
        auto& a = r.actr[n];
        if (one_in(3)) a.ns_low = true;
        if (one_in(4)) a.secure_low = true;
        if (one_in(4)) a.ns_high = true;
        if (one_in(5)) a.secure_high = true;
        if (one_in(5)) a.hyp = true;
        if (one_in(6)) a.context_id = static_cast<std::uint8_t>(1 + below(3));
        r.actr[n + 1] = a;
    }
    for (auto& id : r.cidcvr) id.value = below(3);
    if (one_in(3)) r.cidcmr.value = 0xffffffff;
    if (one_in(2)) r.teevr = from_value<Etmteevr>(random_event(random));
    if (one_in(3)) r.tecr1.ranges = static_cast<std::uint8_t>(below(16));
    if (one_in(3)) r.tecr1.exclude = false;
    if (one_in(3)) r.tecr1.start_stop = true;
    if (one_in(2)) r.sr.start_stop = true;
    if (one_in(3)) r.tsscr.start = static_cast<std::uint16_t>(1U << below(8));
    if (one_in(3)) r.tsscr.stop = static_cast<std::uint16_t>(1U << below(8));
    if (one_in(3)) r.sqevr[0] = from_value<Etmsqevr>(random_event(random));
    r.sqr.value = below(3);
    return r;
}

struct ModeAt {
    std::string name;
    bool ns, hyp;
};

ModelCounts traced(const Registers& r, const ModeAt& place, std::mt19937_64& random, unsigned blocks) {
    const auto below = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
    ByteCollector trace;
    Model model({.registers = r, .choices = {}}, trace);
    std::uint64_t cycle = 1, here = 0x8000;
    model.set_user_mode(place.name.starts_with("User"));
    model.start({{{here}, isa::Isa::a32}, place.ns, place.hyp, cycle});
    for (unsigned n = 0; n < blocks; ++n) {
        const std::uint32_t before = below(4);
        model.run(4 * before, 4, cycle);
        here += 4 * before;
        for (unsigned input = 1; input <= 4; ++input) model.set_external_input(input, below(2) == 0);
        Retired w;
        w.address = {here};
        w.isa = isa::Isa::a32;
        w.instruction.bytes = 4;
        w.instruction.waypoint = isa::Waypoint::direct;
        w.instruction.target = {0x8000 + 4 * below(256)};
        w.next = {w.instruction.target, isa::Isa::a32};
        w.ns = place.ns, w.hyp = place.hyp;
        w.cycle = cycle += below(3);
        model.retire_block(w, before == 0 ? 0 : 4);
        here = w.instruction.target.value;
    }
    model.finish();
    return model.counts();
}

std::string words(const UnitExplanation& e, const protocol::TracedLevel& level) {
    std::string out;
    for (const auto* const findings : {&e.findings, &level.obstacles})
        for (const auto& f : *findings) out += "\n" + f.text;
    return out;
}
bool has(const std::vector<protocol::TraceCondition>& findings, TraceEffect effect) {
    return std::any_of(findings.begin(), findings.end(), [&](const auto& f) { return f.effect == effect; });
}

/// The explanation that explain() gives for three quarters of the registers; the macrocell itself has the others.
UnitExplanation explain_fewer(const Registers& r, std::mt19937_64& random) {
    Registers known;
    std::set<std::string, std::less<>> given;
    for (const RegisterPlace& place : register_places()) {
        if (random() % 4 == 0) continue;
        given.insert(place.name);
        known.set(place.number, r.get(place.number).value_or(0));
    }
    return explain(known, {}, [&](std::string_view name) { return given.contains(name); });
}

enum class Says { nothing, everything, part };
Says says(const UnitExplanation& e, const protocol::TracedLevel& level) {
    if (e.stopped() || has(level.obstacles, TraceEffect::stops)) return Says::nothing;
    const bool all = !has(e.findings, TraceEffect::may) && level.obstacles.empty() && e.undecided.empty();
    return all ? Says::everything : Says::part;
}

// If explain() says "nothing", the model traces nothing; if it says "everything", it traces every block. The same holds
// if explain() gets a part of the registers. All three answers occur often.
TEST(PtmExplain, AgreesWithTheModel) {
    const std::vector<ModeAt> places{{"User mode, Secure", false, false},
                                     {"privileged modes, Secure", false, false},
                                     {"User mode, Non-secure", true, false},
                                     {"privileged modes, Non-secure", true, false},
                                     {"Hyp mode", true, true}};
    unsigned none = 0, all = 0, part_seen = 0, none_of_fewer = 0;
    for (std::uint64_t seed = 0; seed < sized(600U, 150U); ++seed) {
        std::mt19937_64 random(seed);
        const Registers r = programmed(random);
        const UnitExplanation whole = explain(r, {}, [](std::string_view) { return true; });
        const UnitExplanation fewer = explain_fewer(r, random);
        for (const ModeAt& place : places) {
            constexpr unsigned blocks = 24;
            const ModelCounts counts = traced(r, place, random, blocks);
            for (const UnitExplanation* const e : {&whole, &fewer}) {
                const auto level = std::find_if(e->levels.begin(), e->levels.end(),
                                                [&](const protocol::TracedLevel& l) { return l.name == place.name; });
                ASSERT_NE(level, e->levels.end()) << place.name;
                const Says what = says(*e, *level);
                if (what == Says::nothing) {
                    ++(e == &whole ? none : none_of_fewer);
                    ASSERT_EQ(counts.waypoints, 0U) << "seed " << seed << ", " << place.name << words(*e, *level);
                } else if (what == Says::everything) {
                    ++all;
                    ASSERT_EQ(counts.waypoints, blocks) << "seed " << seed << ", " << place.name << words(*e, *level);
                } else if (e == &whole && counts.waypoints != 0 && counts.waypoints != blocks) {
                    ++part_seen;
                }
            }
        }
    }
    EXPECT_GT(none, sized(500U, 125U));
    EXPECT_GT(none_of_fewer, sized(200U, 50U));
    EXPECT_GT(all, sized(200U, 50U));
    EXPECT_GT(part_seen, sized(200U, 50U));
}

std::vector<std::string> stopping(const Registers& r, const ManagementValues& management = {}) {
    const UnitExplanation e = explain(r, management, [](std::string_view) { return true; });
    std::vector<std::string> out;
    for (const auto& f : e.findings)
        if (f.effect == TraceEffect::stops) out.push_back(f.field);
    return out;
}

// 3, 3.1 and 5.6: each bit that stops the macrocell is named, and no other bit.
TEST(PtmExplain, NamesTheBitThatStopsTheMacrocell) {
    using Fields = std::vector<std::string>;
    const Registers plain;
    EXPECT_EQ(stopping(plain), Fields{});
    const auto only = [&](auto change) {
        Registers r = plain;
        change(r);
        return stopping(r);
    };
    EXPECT_EQ(only([](Registers& r) { r.cr.programming = true; }), Fields{"ETMCR[10]"});
    EXPECT_EQ(only([](Registers& r) { r.cr.power_down = true; }), Fields{"ETMCR[0]"});
    EXPECT_EQ(only([](Registers& r) { r.teevr = from_value<Etmteevr>(0x406f); }), Fields{"ETMTEEVR"});
    EXPECT_EQ(only([](Registers& r) { r.tecr1.exclude = false; }), Fields{"ETMTECR1[24]"});
    EXPECT_EQ(only([](Registers& r) { r.tecr1.start_stop = true; }), Fields{"ETMTECR1[25]"});
    EXPECT_EQ(stopping(plain, {.oslsr = 3}), Fields{"ETMOSLSR[1]"});
    EXPECT_EQ(stopping(plain, {.pdsr = 0}), Fields{"ETMPDSR[0]"});
}

// 5.6: without start comparators the start/stop block can only be on already, or a watchpoint turns it on.
TEST(PtmExplain, NamesTheCaseInWhichItTracesAllTheSame) {
    Registers r;
    r.tecr1.start_stop = true;
    const auto found = [&](const std::vector<std::string>& missing) {
        return explain(r, {},
                       [&](std::string_view name) {
                           return std::find(missing.begin(), missing.end(), name) == missing.end();
                       })
            .findings.at(0);
    };
    EXPECT_EQ(found({"ETMSR"}).unless, "it is on already (ETMSR[2], not given)");
    EXPECT_EQ(found({"ETMTESSEICR"}).unless, "a watchpoint turns it on (ETMTESSEICR, not given)");
    EXPECT_NE(found({"ETMTESSEICR"}).text.find("; then nothing is traced, unless a watchpoint turns"),
              std::string::npos);
    EXPECT_EQ(found({"ETMTESSEICR"}).effect, TraceEffect::may);
    EXPECT_EQ(found({}).unless, "");
    EXPECT_EQ(found({}).effect, TraceEffect::stops);
}

// Missing registers are not judged: neither the range of comparators, nor an ETMv3 by the rules of a PTM.
TEST(PtmExplain, JudgesOnlyWhatIsGiven) {
    Registers r;
    r.tecr1.ranges = 1;
    const auto given = [](std::string_view name) { return name == "ETMCR" || name == "ETMTECR1" || name == "ETMIDR"; };
    const auto fields = [](const UnitExplanation& e) {
        std::vector<std::string> out;
        for (const auto& f : e.findings) out.push_back(f.field);
        return out;
    };
    EXPECT_EQ(fields(explain(r, {}, given)), (std::vector<std::string>{"ETMTECR1[7:0]"}));
    EXPECT_EQ(explain(r, {}, given).undecided, (std::vector<std::string>{"ETMTEEVR", "ETMACVR1"}));
    r.idr = from_value<Etmidr>(0x4104f240);
    const UnitExplanation other = explain(r, {}, given);
    EXPECT_EQ(fields(other), (std::vector<std::string>{"ETMIDR", "ETMTECR1[7:0]"}));
    EXPECT_EQ(other.unit, "PTM");
}

// 5.3: authentication, for each security state.
TEST(PtmExplain, AuthenticationIsForEachSecurityState) {
    const UnitExplanation e = explain({}, {.authstatus = 0x8c}, [](std::string_view) { return true; });
    for (const auto& level : e.levels)
        EXPECT_EQ(level.obstacles.empty(),
                  level.name.find("Secure") == std::string::npos || level.name.find("Non-secure") != std::string::npos)
            << level.name;
}

}  // namespace
}  // namespace waymark::pft
