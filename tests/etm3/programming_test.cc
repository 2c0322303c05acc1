// TraceEnable, triggers and the registers of an ETMv3 as a model, during execution (docs/spec/etmv3.md, 13).

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "etm3/support.h"
#include "support/sanitized.h"
#include "waymark/core/byte_sink.h"
#include "waymark/etm3/model.h"
#include "waymark/pft/access.h"
#include "waymark/pft/explain.h"

namespace waymark::etm3 {
namespace {

constexpr std::uint32_t key = 0xc5acce55, programming = 1U << 10;
constexpr std::uint32_t never = 0x406f;

/// A unit whose execution stands at 0x8000, in A32; every instruction is four bytes long.
class Etm3Programming : public testing::Test {
protected:
    Etm3Programming() { config_.registers.syncfr.value = 0; }

    void make() {
        trace_ = {};
        here_ = {{0x8000}, Isa::a32};
        model_.emplace(config_, trace_);
    }
    void start() {
        make();
        model_->start({here_, false, false, cycle_});
    }
    void step(bool passed = true) { jump_to(here_.address + 4, isa::Waypoint::none, passed); }
    void jump(std::uint64_t to) { jump_to({to}, isa::Waypoint::indirect, true); }
    void exception(std::uint64_t to, bool cancels = false) {
        ExceptionTaken e;
        e.number = 14;
        e.vector = here_ = {{to}, Isa::a32};
        e.cycle = ++cycle_;
        e.cancels = cancels;
        model_->exception(e);
    }
    /// Runs 0x8000 to 0x8020.
    std::string run_straight() {
        start();
        for (unsigned n = 0; n < 8; ++n) step(n != 3);
        return text();
    }
    /// In short: packets, with addresses of I-syncs and branches.
    std::string text() {
        model_->finish();
        std::string out;
        const test::Listed all = test::list(trace_.bytes(), config_.packets());
        for (const Packet& packet : all.packets) {
            std::string one = std::visit([&](const auto& p) { return to_text(p, config_.packets()); }, packet);
            const std::size_t address = one.find("address=");
            if (one.starts_with("I-SYNC"))
                one =
                    one.substr(0, one.find(' ')) + " " + one.substr(one.find("reason="), 8) + " " + one.substr(address);
            else if (!one.starts_with("P-HEADER"))
                one = one.substr(0, one.find(' '));
            out += one + "\n";
        }
        return out;
    }
    AccessResult write(unsigned number, std::uint32_t value, Requester from = Requester::software) {
        return model_->write(number, value, ++cycle_, from);
    }
    std::uint32_t read(unsigned number) {
        const ReadResult r = model_->read(number, cycle_);
        EXPECT_EQ(r.result, AccessResult::done) << std::hex << number;
        return r.value;
    }
    Registers& registers() { return config_.registers; }
    void range(unsigned pair, std::uint32_t first, std::uint32_t end) {
        registers().acvr[2 * pair].value = first;
        registers().acvr[2 * pair + 1].value = end;
        registers().tecr1.ranges = static_cast<std::uint8_t>(registers().tecr1.ranges | 1U << pair);
    }

    ModelConfig config_;
    ByteCollector trace_;
    std::optional<Model> model_;
    Place here_;
    std::uint64_t cycle_ = 1;

private:
    void jump_to(Address to, isa::Waypoint waypoint, bool passed) {
        Executed e;
        e.address = here_.address;
        e.isa = here_.isa;
        e.instruction.bytes = 4;
        e.instruction.waypoint = waypoint;
        e.passed = passed;
        e.next = here_ = {to, Isa::a32};
        e.cycle = ++cycle_;
        model_->instruction(e);
    }
};

const std::string async = "A-SYNC\n";

TEST_F(Etm3Programming, IncludesSingleInstructionsOfARange) {
    registers().tecr1.exclude = false;
    range(1, 0x8008, 0x8014);
    EXPECT_EQ(run_straight(), async + "I-SYNC reason=1 address=0x8008\nP-HEADER atoms=EN/1\nP-HEADER atoms=E/1\n");
}

TEST_F(Etm3Programming, ExcludesSingleInstructionsOfARange) {
    range(1, 0x8008, 0x8014);
    EXPECT_EQ(run_straight(), async +
                                  "I-SYNC reason=1 address=0x8000\nP-HEADER atoms=EE/1\n"
                                  "I-SYNC reason=1 address=0x8014\nP-HEADER atoms=EEE/1\n");
}

TEST_F(Etm3Programming, IncludesAndExcludesSingleAddresses) {
    registers().acvr[2].value = 0x8004;
    registers().tecr2.single = 1U << 2;
    EXPECT_EQ(run_straight(), async +
                                  "I-SYNC reason=1 address=0x8000\nP-HEADER atoms=E/1\n"
                                  "I-SYNC reason=1 address=0x8008\nP-HEADER atoms=EN/1\nP-HEADER atoms=EEEE/1\n");
    registers().tecr1.exclude = false;
    EXPECT_EQ(run_straight(), async + "I-SYNC reason=1 address=0x8004\nP-HEADER atoms=E/1\n");
}

TEST_F(Etm3Programming, ComparesSingleAddressesInTheSizeOfTheirAccessType) {
    registers().tecr1.exclude = false;
    registers().acvr[0].value = 0x8006;
    registers().tecr2.single = 1;
    EXPECT_EQ(run_straight(), "");  // halfwords: 0x8006 is no instruction
    registers().actr[0] = from_value<pft::Etmactr>(1U | 3U << 3);
    EXPECT_EQ(run_straight(), async + "I-SYNC reason=1 address=0x8004\nP-HEADER atoms=E/1\n");
}

TEST_F(Etm3Programming, TheConditionOfAnInstructionMayDecide) {
    registers().tecr1.exclude = false;
    range(0, 0x8004, 0x8014);
    for (const unsigned type : {2U, 3U}) {
        registers().actr[0] = registers().actr[1] = from_value<pft::Etmactr>(type);
        const std::string all = run_straight();
        EXPECT_EQ(all, type == 3 ? async + "I-SYNC reason=1 address=0x800c\nP-HEADER atoms=N/1\n"
                                 : async +
                                       "I-SYNC reason=1 address=0x8004\nP-HEADER atoms=EE/1\n"
                                       "I-SYNC reason=1 address=0x8010\nP-HEADER atoms=E/1\n");
    }
}

TEST_F(Etm3Programming, StartsAndStopsAtAddresses) {
    registers().tecr1.start_stop = true;
    registers().acvr[4].value = 0x8004;
    registers().acvr[5].value = 0x800c;
    registers().tsscr.start = 1U << 4;
    registers().tsscr.stop = 1U << 5;
    // The instruction at which it stops is still traced, as the block of a PTM is.
    EXPECT_EQ(run_straight(), async + "I-SYNC reason=1 address=0x8004\nP-HEADER atoms=EEN/1\n");
    EXPECT_FALSE(model_->registers().sr.start_stop);
}

TEST_F(Etm3Programming, AnEventDecidesEachInstruction) {
    registers().cntvr[0].value = registers().cntrldvr[0].value = 3;
    registers().cntenr[0] = from_value<pft::Etmcntenr>(0x2006f);
    registers().teevr = from_value<pft::Etmteevr>(4U << 4);  // counter 1 at zero
    EXPECT_EQ(run_straight(), async + "I-SYNC reason=1 address=0x8008\nP-HEADER atoms=EN/1\nP-HEADER atoms=EEEE/1\n");
    EXPECT_EQ(model_->registers().cntvr[0].value, 0U);
}

// An exception is shown with the instruction before it, even if the handler is not traced; if that instruction is not
// traced, neither is the exception.
TEST_F(Etm3Programming, ShowsAnExceptionWithTheInstructionBeforeIt) {
    registers().tecr1.exclude = false;
    range(0, 0x8000, 0x8008);
    start();
    step();
    exception(0x9000);
    step();
    exception(0x8000);
    step();
    jump(0x9000);
    exception(0x8004, true);
    step();
    EXPECT_EQ(text(), async +
                          "I-SYNC reason=1 address=0x8000\nP-HEADER atoms=E/1\nBRANCH-ADDRESS\n"
                          "I-SYNC reason=1 address=0x8000\nP-HEADER atoms=EE/1\nBRANCH-ADDRESS\n"
                          "I-SYNC reason=1 address=0x8004\nP-HEADER atoms=E/1\n");
    EXPECT_EQ(model_->counts().untraced, 3U);
    EXPECT_EQ(model_->counts().exceptions, 1U);
}

TEST_F(Etm3Programming, TriggersBeforeTheInstruction) {
    registers().acvr[6].value = 0x8008;
    registers().trigger = from_value<pft::Etmtrigger>(6);
    unsigned called = 0;
    start();
    model_->on_trigger([&] { ++called; });
    for (unsigned n = 0; n < 8; ++n) step();
    EXPECT_TRUE(model_->status().triggered);
    EXPECT_EQ(text(),
              async + "I-SYNC reason=1 address=0x8000\nP-HEADER atoms=EE/1\nTRIGGER\nP-HEADER atoms=EEEEEE/1\n");
    EXPECT_EQ(called, 1U);
}

TEST_F(Etm3Programming, TriggersWhereNothingIsTraced) {
    registers().acvr[6].value = 0x8018;
    registers().trigger = from_value<pft::Etmtrigger>(6);
    registers().tecr1.exclude = false;
    range(0, 0x8000, 0x8008);
    EXPECT_EQ(run_straight(), async + "I-SYNC reason=1 address=0x8000\nP-HEADER atoms=EE/1\nTRIGGER\n");
}

TEST_F(Etm3Programming, ProhibitedRegions) {
    start();
    step();
    model_->set_authentication({true, false});
    step();
    model_->set_authentication({true, true});
    step();
    EXPECT_EQ(text(), async +
                          "I-SYNC reason=1 address=0x8000\nP-HEADER atoms=E/1\n"
                          "I-SYNC reason=1 address=0x8008\nP-HEADER atoms=E/1\n");
}

TEST_F(Etm3Programming, AnExceptionWhileItIsStoppedIsNotShown) {
    start();
    step();
    model_->write(pft::Etmcr::number, programming, ++cycle_);
    exception(0x9000);
    model_->write(pft::Etmcr::number, 0, ++cycle_);
    step();
    EXPECT_EQ(text(), async +
                          "I-SYNC reason=1 address=0x8000\nP-HEADER atoms=E/1\nA-SYNC\n"
                          "I-SYNC reason=1 address=0x9000\nP-HEADER atoms=E/1\n");
    EXPECT_EQ(model_->counts().untraced, 1U);
}

TEST_F(Etm3Programming, RegistersAreWrittenWhileItIsStopped) {
    make();
    model_->discontinuity({here_, false, false, cycle_});
    step();
    EXPECT_EQ(write(pft::Etmtecr2::number, 0xffff), AccessResult::done);
    EXPECT_EQ(read(pft::Etmtecr2::number), 0xffU);  // four pairs
    EXPECT_EQ(write(pft::Etmtecr2::number, 0), AccessResult::done);
    EXPECT_EQ(write(pft::Etmactr::number, 0xffffffff), AccessResult::done);
    EXPECT_EQ(read(pft::Etmactr::number), 0xff9fU);  // no comparison of data values
    EXPECT_EQ(write(pft::Etmactr::number, 9), AccessResult::done);
    EXPECT_EQ(write(pft::Etmauxcr::number, 1), AccessResult::not_present);
    EXPECT_EQ(write(pft::Etmcr::number, 0xffffffff & ~programming & ~1U), AccessResult::done);
    EXPECT_EQ(read(pft::Etmcr::number), 0x5e23fb70U);  // no data trace, no stall
    EXPECT_EQ(write(pft::Etmtecr2::number, 0xff), AccessResult::not_idle);
    EXPECT_EQ(write(pft::management::oslar, key), AccessResult::done);
    EXPECT_EQ(read(pft::Etmsr::number) & 2U, 2U);
    EXPECT_EQ(write(pft::management::oslar, 0), AccessResult::done);
    EXPECT_EQ(read(pft::Etmsr::number) & 2U, 0U);
    model_->set_power(false, ++cycle_);
    EXPECT_EQ(model_->read(pft::Etmcr::number, cycle_).result, AccessResult::error);
    model_->set_power(true, ++cycle_);
    EXPECT_EQ(read(pft::management::pdsr) & 3U, 3U);
}

/// The rules of section 13 for ranges and single addresses, written down a second time.
bool selected(const Registers& r, std::uint64_t address, bool passed) {
    bool some = false;
    const auto condition = [&](unsigned n) {
        const unsigned type = r.actr[n].access;
        return type < 2 || (type == 2) == passed;
    };
    for (unsigned n = 0; n < 4; ++n)
        some |= (r.tecr1.ranges >> n & 1U) != 0 && condition(2 * n) && r.acvr[2 * n].value <= address &&
                address < r.acvr[2 * n + 1].value;
    for (unsigned n = 0; n < 8; ++n)
        some |= (r.tecr2.single >> n & 1U) != 0 && condition(n) && r.acvr[n].value == address;
    return some != r.tecr1.exclude;
}

// The instructions of random runs that are traced: the model's decision against the rules. Registers that are written
// while the unit is stopped select like registers that the unit is constructed with.
TEST_F(Etm3Programming, SelectsInstructionsOfRandomPrograms) {
    std::uint64_t traced = 0, untraced = 0;
    for (std::uint64_t seed = 0; seed < sized(400U, 100U); ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random(seed);
        const auto below = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
        Registers wanted = tracing_registers();
        wanted.syncfr.value = below(2) * 64;
        wanted.tecr1.exclude = below(2) == 0;
        wanted.tecr1.ranges = static_cast<std::uint8_t>(below(16));
        wanted.tecr2.single = static_cast<std::uint16_t>(below(3) == 0 ? below(256) : 0);
        for (unsigned n = 0; n < 4; ++n) {
            wanted.acvr[2 * n].value = 0x8000 + 4 * below(64);
            wanted.acvr[2 * n + 1].value = wanted.acvr[2 * n].value + 4 + 4 * below(16);
            const auto type = static_cast<std::uint8_t>(below(4) == 0 ? 2 + below(2) : 1);
            wanted.actr[2 * n].access = wanted.actr[2 * n + 1].access = type;
        }
        const bool written = below(2) == 0;
        config_.registers = written ? tracing_registers() : wanted;
        make();
        if (written) {
            model_->discontinuity({here_, false, false, cycle_});
            for (const pft::RegisterPlace& place : pft::register_places())
                if (place.number != pft::Etmcr::number && place.number != pft::Etmsr::number &&
                    pft::register_access(wanted, place.number).writable) {
                    EXPECT_EQ(write(place.number, *wanted.get(place.number)), AccessResult::done) << place.name;
                }
            EXPECT_EQ(write(pft::Etmcr::number, 0), AccessResult::done);
        } else {
            model_->start({here_, false, false, cycle_});
        }
        config_.registers = wanted;
        std::vector<std::uint64_t> expected;
        for (unsigned n = 0; n < 200; ++n) {
            const std::uint64_t at = here_.address.value;
            const bool leaves = below(8) == 0 || at >= 0x8200, passed = leaves || below(4) != 0;
            const bool one = selected(wanted, at, passed);
            if (one) expected.push_back(at);
            (one ? traced : untraced) += 1;
            if (leaves)
                jump(0x8000 + 4 * below(128));
            else
                step(passed);
        }
        EXPECT_EQ(model_->counts().untraced, 200 - expected.size());
        model_->finish();
        EXPECT_EQ(model_->counts().instructions, expected.size());
        // Each stretch async with an I-sync that has its address.
        const test::Listed all = test::list(trace_.bytes(), config_.packets());
        std::uint64_t at = 0;
        std::vector<std::uint64_t> found;
        for (const Packet& packet : all.packets) {
            if (const auto* sync = std::get_if<ISync>(&packet)) at = sync->address;
            if (const auto* header = std::get_if<PHeader>(&packet)) {
                const std::string text = to_text(*header, config_.packets());
                for (const char c : text.substr(text.find("atoms=") + 6, text.find('/') - text.find("atoms=") - 6)) {
                    static_cast<void>(c);
                    found.push_back(at);
                    at += 4;
                }
            }
            if (const auto* branch = std::get_if<BranchAddress>(&packet)) {
                // Each traced stretch, with an I-sync that has its address.
                static_cast<void>(branch);
                at = found.size() < expected.size() ? expected[found.size()] : 0;
            }
        }
        EXPECT_EQ(found, expected);
        if (HasFailure()) return;
    }
    EXPECT_GT(traced, 1000U);
    EXPECT_GT(untraced, 1000U);
}

// If explain() says "nothing", the model traces nothing; if it says "everything", it traces every instruction.
TEST_F(Etm3Programming, ExplainAgreesWithTheModel) {
    unsigned none = 0, all = 0, part = 0;
    for (std::uint64_t seed = 0; seed < sized(600U, 150U); ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random(seed);
        const auto below = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
        const auto one_in = [&](unsigned n) { return below(n) == 0; };
        Registers& r = config_.registers = tracing_registers();
        for (unsigned n = 0; n < 4; ++n) {
            r.acvr[2 * n].value = one_in(4) ? 0 : 0x8000 + 4 * below(16);
            r.acvr[2 * n + 1].value = r.acvr[2 * n].value == 0 ? 0xffffffff : r.acvr[2 * n].value + 4 + 4 * below(16);
            pft::Etmactr& access = r.actr[2 * n];
            access.access = static_cast<std::uint8_t>(one_in(5) ? below(7) : 1);
            access.secure_low = one_in(5);
            access.secure_high = one_in(5);
            r.actr[2 * n + 1] = access;
        }
        if (one_in(2)) r.teevr = from_value<pft::Etmteevr>(one_in(2) ? never : one_in(2) ? below(8) : 0x10U | below(4));
        if (one_in(3)) r.tecr1.ranges = static_cast<std::uint8_t>(below(16));
        if (one_in(4)) r.tecr2.single = static_cast<std::uint16_t>(below(256));
        if (one_in(3)) r.tecr1.exclude = false;
        if (one_in(4)) r.tecr1.start_stop = true;
        if (one_in(2)) r.sr.start_stop = true;
        if (one_in(3)) r.tsscr.start = static_cast<std::uint16_t>(1U << below(8));
        if (one_in(3)) r.tsscr.stop = static_cast<std::uint16_t>(1U << below(8));
        std::set<std::string, std::less<>> given;
        Registers known = tracing_registers();
        for (const pft::RegisterPlace& place : pft::register_places()) {
            if (seed % 2 == 0 && one_in(4)) continue;
            given.insert(place.name);
            known.set(place.number, r.get(place.number).value_or(0));
        }
        const protocol::UnitExplanation e = pft::explain(
            known, {}, [&](std::string_view name) { return given.contains(name); }, pft::Macrocell::etmv3);
        EXPECT_EQ(e.document, "docs/spec/etmv3.md");
        for (const bool user : {true, false}) {
            const std::string level = user ? "User mode, Secure" : "privileged modes, Secure";
            const auto its =
                std::find_if(e.levels.begin(), e.levels.end(), [&](const auto& l) { return l.name == level; });
            ASSERT_NE(its, e.levels.end());
            const auto has = [](const auto& list, protocol::TraceEffect effect) {
                return std::any_of(list.begin(), list.end(), [&](const auto& f) { return f.effect == effect; });
            };
            make();
            model_->set_user_mode(user);
            model_->start({here_, false, false, ++cycle_});
            for (unsigned n = 0; n < 24; ++n) {
                if (one_in(4))
                    jump(0x8000 + 4 * below(32));
                else
                    step(!one_in(4));
            }
            model_->finish();
            const std::uint64_t traced = model_->counts().instructions;
            std::string words;
            for (const auto* const list : {&e.findings, &its->obstacles})
                for (const auto& f : *list) words += "\n" + f.text;
            if (e.stopped() || has(its->obstacles, protocol::TraceEffect::stops)) {
                ++none;
                EXPECT_EQ(traced, 0U) << words;
            } else if (!has(e.findings, protocol::TraceEffect::may) && its->obstacles.empty() && e.undecided.empty()) {
                ++all;
                EXPECT_EQ(model_->counts().untraced, 0U) << words;
            } else {
                ++part;
            }
        }
        if (HasFailure()) return;
    }
    EXPECT_GT(none, 20U);
    EXPECT_GT(all, 20U);
    EXPECT_GT(part, 100U);
}

}  // namespace
}  // namespace waymark::etm3
