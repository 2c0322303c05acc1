// The trace unit as a model, by hand: the sequences of docs/spec/etm4-registers.md, 5.6, and its resources (2.5
// to 2.12), whose states are followed clock by clock.

#include "waymark/etm4/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "etm4/support.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "waymark/core/byte_sink.h"

namespace waymark::etm4 {
namespace {

using isa::Isa;
using isa::Waypoint;

/// A model and the packets it sends.
class Etm4ModelByHand : public testing::Test {
protected:
    void begin(const ModelConfig& config, std::uint64_t at = 0x1000) {
        config_ = packets_of(config.registers, config.profile);
        model_.emplace(config, trace_);
        model_->set_context({.ns = true, .aarch64 = true, .el = 1});
        model_->start({{{at}, Isa::a64}, cycle_});
    }
    static ModelConfig plain(unsigned minor = 0) {
        Config c = test::ete(minor);
        c.context_id_trace = c.vmid_trace = c.cycle_counting = c.timestamps = c.q_elements = false;
        return {.registers = tracing_registers(c)};
    }
    /// A branch at `at`; `to` 0: it is not taken.
    void branch(std::uint64_t at, std::uint64_t to, Waypoint kind = Waypoint::direct, bool link = false) {
        isa::Instruction i;
        i.bytes = 4;
        i.waypoint = kind;
        i.link = link;
        i.target = {kind == Waypoint::direct ? to : 0};
        model_->retire_block({.address = {at},
                              .isa = Isa::a64,
                              .instruction = i,
                              .passed = to != 0,
                              .next = {{to}, Isa::a64},
                              .cycle = ++cycle_});
    }
    void exception(std::uint32_t type, std::uint32_t bytes_before, std::uint64_t handler) {
        model_->run(bytes_before, ++cycle_);
        model_->exception({.type = type, .back = {}, .handler = isa::Place{{handler}, Isa::a64}, .cycle = cycle_});
    }
    /// Names of packets with their relevant fields.
    std::string packets() {
        model_->finish();
        std::string out;
        for (const test::Collected::Item& item : test::collect(trace_.bytes(), config_).items)
            out += (out.empty() ? "" : "; ") + item.text;
        return out;
    }
    /// The state of a counter and the sequencer after this many more clocks.
    Registers after(std::uint64_t clocks) {
        cycle_ += clocks;
        model_->wait(cycle_);
        Registers r;
        model_->read_back(r);
        return r;
    }
    static void select(Registers& r, unsigned selector, unsigned group, unsigned mask, bool inverted = false) {
        r.rsctlr[selector - 2].group = static_cast<std::uint8_t>(group);
        r.rsctlr[selector - 2].select = static_cast<std::uint16_t>(mask);
        r.rsctlr[selector - 2].inv = inverted;
    }

    ByteCollector trace_;
    Config config_;
    std::optional<Model> model_;
    std::uint64_t cycle_ = 1;
};

// 5.6: a program that an interrupt stops.
TEST_F(Etm4ModelByHand, BranchesAndAnInterrupt) {
    begin(plain());
    branch(0x1000, 0x2000);
    branch(0x200c, 0);
    exception(0x0e, 4, 0x8000);
    const std::string text = packets();
    EXPECT_EQ(text.find("A-SYNC"), 0U) << text;
    // TraceInfo TraceOn Context Addr(1000) E | N | Exception(IRQ, 2014)
    std::vector<std::uint8_t> bytes = trace_.bytes();
    bytes.erase(bytes.begin(), bytes.begin() + 12);
    EXPECT_EQ(bytes, test::hex("01 01 00 04 82 00 08 00 00 31 d9 06 1d 95 85 10")) << text;
}

// 5.6: an exception at the vector of another one has no instruction before it.
TEST_F(Etm4ModelByHand, AnExceptionAtTheVectorOfAnother) {
    begin(plain(), 0x2000);
    branch(0x2000, 0);
    exception(0x0c, 0, 0x4000);
    exception(0x0e, 0, 0x4080);
    model_->finish();
    std::vector<std::uint8_t> bytes = trace_.bytes();
    bytes.erase(bytes.begin(), bytes.begin() + 12);
    // Exception(Data fault, 2004), Addr(4000), Exception(IRQ, 4000)
    EXPECT_EQ(bytes, test::hex("01 01 00 04 82 00 10 00 00 31 f6 06 19 95 01 95 80 20 06 1d 90"));
}

// docs/spec/etm4.md, 9: at the target of an indirect branch the address is sent once.
TEST_F(Etm4ModelByHand, AnExceptionAtTheTargetOfABranch) {
    for (const bool folds : {true, false}) {
        trace_ = {};
        ModelConfig config = plain();
        config.choices.folds_exception_address = folds;
        begin(config);
        branch(0x1000, 0x1020, Waypoint::indirect);
        exception(0x0e, 0, 0x8000);
        model_->finish();
        std::vector<std::uint8_t> bytes = trace_.bytes();
        bytes.erase(bytes.begin(), bytes.begin() + 23);
        EXPECT_EQ(bytes, test::hex(folds ? "06 5c 95 08" : "95 08 06 1d 90"));
    }
}

// 2.18: a call and its return need no address.
TEST_F(Etm4ModelByHand, TheReturnStack) {
    ModelConfig config = plain();
    config.registers.configr.rs = config.registers.idr0.retstack = true;
    begin(config);
    branch(0x1000, 0x1020, Waypoint::direct, true);
    branch(0x1020, 0x1004, Waypoint::indirect);
    branch(0x1004, 0);
    EXPECT_EQ(packets().find("ADDRESS-SHORT"), std::string::npos);
    EXPECT_EQ(trace_.bytes().back(), 0xfb);  // EEN
}

// 2.9: a self-reload counter with reload value R is at zero in one clock of R + 1.
TEST_F(Etm4ModelByHand, ACounterThatReloadsItself) {
    ModelConfig config = plain();
    Registers& r = config.registers;
    r.cntrldvr[0].value = 3;
    r.cntvr[0].value = 3;
    r.cntctlr[0].reload_self = true;
    r.cntctlr[0].count_sel = 1;
    select(r, 2, 2, 1);  // counter 0 at zero
    r.eventctl0r.sel0 = 2;
    begin(config);
    std::string outputs, values;
    for (unsigned n = 0; n < 12; ++n) {
        values += std::to_string(after(1).cntvr[0].value);
        outputs += (model_->external_outputs() & 1U) != 0 ? '1' : '0';
    }
    EXPECT_EQ(values, "210321032103");
    EXPECT_EQ(outputs, "000100010001");
}

// 2.9: without it, the counter stays at zero; a chained one counts the reloads of the one before.
TEST_F(Etm4ModelByHand, CountersThatStopAndChain) {
    ModelConfig config = plain();
    Registers& r = config.registers;
    r.cntvr[0].value = r.cntrldvr[0].value = 1;
    r.cntctlr[0].reload_self = true;
    r.cntctlr[0].count_sel = 1;
    r.cntvr[1].value = 2;
    r.cntctlr[1].chain = true;
    begin(config);
    std::string values;
    for (unsigned n = 0; n < 8; ++n) values += std::to_string(after(1).cntvr[1].value);
    EXPECT_EQ(values, "21100000");
}

// 2.10 and 2.6: addresses move the sequencer on, an external input resets it.
TEST_F(Etm4ModelByHand, TheSequencer) {
    ModelConfig config = plain();
    Registers& r = config.registers;
    r.acvr[0].address = 0x1008;
    r.acvr[1].address = 0x1010;
    select(r, 2, 4, 1);
    select(r, 3, 4, 2);
    select(r, 4, 0, 1);
    r.seqevr[0].forward_sel = 2;
    r.seqevr[1].forward_sel = 3;
    r.seqevr[1].back_sel = 2;
    r.seqrstevr.sel = 4;
    begin(config);
    branch(0x1004, 0);
    EXPECT_EQ(after(1).seqstr.state, 0);
    branch(0x1008, 0x100c);
    EXPECT_EQ(after(1).seqstr.state, 1);
    branch(0x1010, 0x1000);
    EXPECT_EQ(after(1).seqstr.state, 2);
    branch(0x1008, 0x100c);
    EXPECT_EQ(after(1).seqstr.state, 1);
    model_->set_external_input(0, true);
    EXPECT_EQ(after(1).seqstr.state, 0);
    model_->set_external_input(0, false);
    EXPECT_EQ(after(1).seqstr.state, 0);
}

// 2.8 and 2.17: a single-shot comparator fires once, and its event is in the trace. 2.10: the reset has priority, even
// if nothing else moves the sequencer.
TEST_F(Etm4ModelByHand, TheSequencerIsResetAlone) {
    ModelConfig config = plain();
    config.registers.seqstr.state = 2;
    config.registers.seqrstevr.sel = 1;  // always
    begin(config);
    branch(0x1000, 0x1000);
    EXPECT_EQ(after(1).seqstr.state, 0);
}

// 2.8 and 2.12: the effects of a failed transaction on filters are undone.
TEST_F(Etm4ModelByHand, AFailedTransactionLeavesFiltersAsTheyWere) {
    for (const bool commits : {false, true}) {
        SCOPED_TRACE(commits);
        trace_ = {};
        ModelConfig config = plain();
        config.registers.acvr[0].address = 0x1010;
        config.registers.acvr[1].address = 0x1020;
        config.registers.vissctlr.stop = 1;
        config.registers.ssccr[0].sac = 2;
        begin(config);
        branch(0x1000, 0x1004);
        model_->transaction_start(++cycle_);
        branch(0x1010, 0x1014);
        branch(0x1020, 0x1024);
        Registers r = after(1);
        EXPECT_FALSE(r.victlr.ssstatus);
        EXPECT_FALSE(r.sscsr[0].status);  // nobody knows yet
        if (commits)
            model_->transaction_commit(++cycle_);
        else
            model_->transaction_fail({{{0x1004}, Isa::a64}, ++cycle_});
        r = after(1);
        EXPECT_EQ(r.victlr.ssstatus, !commits);
        EXPECT_EQ(r.sscsr[0].status, commits);
    }
}

// 2.15: a flush by the trace bus gives a timestamp of the last P0 element, once; not of an ETMv4.
TEST_F(Etm4ModelByHand, AFlushGivesATimestamp) {
    for (const bool ete : {true, false}) {
        SCOPED_TRACE(ete);
        trace_ = {};
        Config c = ete ? test::ete(0) : test::etmv4();
        c.context_id_trace = c.vmid_trace = c.cycle_counting = c.q_elements = false;
        begin({.registers = tracing_registers(c)});
        const auto timestamps = [&] {
            std::size_t count = 0;
            for (const Packet& p : test::collect(trace_.bytes(), config_).packets)
                count += std::holds_alternative<Timestamp>(p) ? 1 : 0;
            return count;
        };
        branch(0x1000, 0x1000);
        model_->flush();
        const std::size_t before = timestamps();
        branch(0x1000, 0x1000);
        model_->flush();
        EXPECT_EQ(timestamps(), before + (ete ? 1 : 0));
        model_->flush();
        EXPECT_EQ(timestamps(), before + (ete ? 1 : 0));
    }
}

TEST_F(Etm4ModelByHand, ASingleShotComparatorAndItsEvent) {
    for (const bool multiple : {false, true}) {
        trace_ = {};
        ModelConfig config = plain();
        Registers& r = config.registers;
        r.acvr[0].address = 0x1004;
        r.ssccr[0].sac = 1;
        r.ssccr[0].rst = multiple;
        select(r, 4, 3, 1);
        r.eventctl0r.sel0 = 4;
        r.eventctl1r.insten = 1;
        begin(config);
        EXPECT_FALSE(after(5).sscsr[0].status);
        branch(0x1004, 0x1004);
        EXPECT_TRUE(after(1).sscsr[0].status);
        branch(0x1004, 0x1004);
        after(5);
        const std::string text = packets();
        std::size_t events = 0;
        for (std::size_t at = 0; (at = text.find("EVENT", at)) != std::string::npos; ++at) ++events;
        // In single-shot mode it stays active.
        EXPECT_TRUE(multiple ? events == 2 : events > 2) << text;
    }
}

// 2.15: the event of TRCTSCTLR requests timestamps.
TEST_F(Etm4ModelByHand, TimestampsByEvent) {
    ModelConfig config = plain();
    Registers& r = config.registers;
    r.configr.ts = true;
    r.acvr[0].address = 0x1008;
    select(r, 2, 4, 1);
    r.tsctlr.sel = 2;
    begin(config);
    for (unsigned n = 0; n < 3; ++n) branch(0x1000, 0x1000);
    const std::size_t before = trace_.bytes().size();
    branch(0x1008, 0x1000);
    branch(0x1000, 0x1000);
    const std::string text = packets();
    EXPECT_GT(trace_.bytes().size(), before);
    std::size_t stamps = 0;
    for (std::size_t at = 0; (at = text.find("TIMESTAMP", at)) != std::string::npos; ++at) ++stamps;
    EXPECT_EQ(stamps, 2U) << text;  // the timestamp of the Trace Info, and this one
}

// 2.12: TRCERR and TRCRESET trace these exceptions though ViewInst is low.
TEST_F(Etm4ModelByHand, ForcedExceptions) {
    for (const bool forced : {false, true}) {
        trace_ = {};
        ModelConfig config = plain();
        config.registers.victlr.sel = 0;
        config.registers.victlr.trcerr = forced;
        begin(config);
        branch(0x1000, 0x1000);
        exception(exceptions::system_error, 0, 0x8000);
        exception(0x0e, 0, 0x8080);
        const std::string text = packets();
        EXPECT_EQ(text.find("EXCEPTION") != std::string::npos, forced) << text;
    }
}

// docs/spec/etm4.md, 8.
TEST_F(Etm4ModelByHand, WrongPathsFollowFromTheSeed) {
    std::vector<std::vector<std::uint8_t>> traces;
    for (const std::uint64_t seed : {1U, 1U, 2U}) {
        trace_ = {};
        cycle_ = 1;
        ModelConfig config = plain();
        config.registers.idr8.value = 8;
        config.choices.mispredict_one_in = 2;
        config.choices.seed = seed;
        begin(config);
        isa::Instruction i;
        i.bytes = 4;
        i.waypoint = Waypoint::direct;
        i.conditional = true;
        i.target = {0x1000};
        for (unsigned n = 0; n < 40; ++n)
            model_->retire_block({.address = {0x1000},
                                  .isa = Isa::a64,
                                  .instruction = i,
                                  .passed = true,
                                  .next = {{0x1000}, Isa::a64},
                                  .cycle = ++cycle_});
        model_->finish();
        EXPECT_NE(model_->counts().cancelled, 0U);
        traces.push_back(trace_.bytes());
    }
    EXPECT_EQ(traces[0], traces[1]);
    EXPECT_NE(traces[0], traces[2]);
}

// 2.18, prohibited region: if an exception enters it, the Exception element comes last, and a Trace On follows.
TEST_F(Etm4ModelByHand, SecureStateThatIsNotPermittedIsNotSeen) {
    for (const bool permitted : {true, false}) {
        trace_ = {};
        begin(plain());
        if (!permitted) model_->set_permission({.non_secure = true, .secure = false});
        branch(0x1000, 0x1000);
        model_->run(4, ++cycle_);
        model_->set_context({.ns = false, .aarch64 = true, .el = 3});
        exception(0x02, 0, 0x8000);
        branch(0x8000, 0x9000, Waypoint::indirect);
        // An exception inside the prohibited region is not traced either.
        exception(0x0e, 0, 0xa000);
        model_->set_context({.ns = true, .aarch64 = true, .el = 1});
        branch(0xa000, 0x1004, Waypoint::indirect);
        branch(0x1004, 0);
        const std::string text = packets();
        const auto count = [&](const std::string& what) {
            std::size_t n = 0;
            for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
            return n;
        };
        EXPECT_EQ(count("TRACE-ON"), permitted ? 1U : 2U) << text;
        EXPECT_EQ(count("EXCEPTION"), permitted ? 2U : 1U) << text;
        for (const char* const inside : {"8000", "9000", "a000"}) EXPECT_EQ(count(inside) != 0, permitted) << text;
        EXPECT_EQ(model_->counts().untraced, permitted ? 0U : 3U);
    }
}

// If the authentication signals forbid trace, only pending trace is sent; NIDEN of an ETE does not concern Non-secure
// state.
TEST_F(Etm4ModelByHand, AuthenticationSignalsChange) {
    for (const bool ete : {true, false}) {
        trace_ = {};
        Config c = test::ete(0);
        c.context_id_trace = c.vmid_trace = c.cycle_counting = c.timestamps = c.q_elements = false;
        if (!ete) c.version = 0x40;
        begin({.registers = tracing_registers(c)});
        branch(0x1000, 0x1000);
        branch(0x1000, 0x2000);
        model_->set_permission({.non_secure = false, .secure = false});
        const std::size_t sent = trace_.bytes().size();
        branch(0x2000, 0x3000);
        branch(0x3000, 0x4000);
        EXPECT_EQ(model_->counts().untraced, ete ? 0U : 2U);
        if (!ete) {
            EXPECT_EQ(trace_.bytes().size(), sent);
        }
        model_->set_permission({});
        branch(0x4000, 0);
        const std::string text = packets();
        EXPECT_EQ(text.find("TRACE-ON") == text.rfind("TRACE-ON"), ete) << text;
        EXPECT_EQ(text.find("3000"), std::string::npos) << text;
    }
}

// Event 0 with TRCEVENTCTL1R.ATB is the trigger of the trace bus, whether Event packets are sent or not.
TEST_F(Etm4ModelByHand, TheTriggerOfTheTraceBus) {
    for (const bool atb : {true, false})
        for (const bool packets_too : {true, false}) {
            trace_ = {};
            ModelConfig config = plain();
            Registers& r = config.registers;
            r.acvr[0].address = 0x2004;
            select(r, 2, 4, 1);  // single address comparator 0
            r.eventctl0r.sel0 = 2;
            r.eventctl1r.atb = atb;
            r.eventctl1r.insten = packets_too ? 1 : 0;
            begin(config);
            std::vector<std::size_t> at;
            model_->on_trigger([&] { at.push_back(trace_.bytes().size()); });
            branch(0x1000, 0x2000);
            branch(0x2008, 0x1000);
            cycle_ += 5;
            branch(0x1000, 0x2000);
            branch(0x2008, 0x1000);
            cycle_ += 5;
            branch(0x1000, 0);
            EXPECT_EQ(at.size(), atb ? 2U : 0U);
            model_->finish();
            if (atb && packets_too) {
                for (const std::size_t place : at) {
                    // Atoms that wait, and the Event packet.
                    const auto& bytes = trace_.bytes();
                    ASSERT_LT(place, bytes.size());
                    EXPECT_TRUE(bytes[place] == 0x71 || bytes.at(place + 1) == 0x71) << place;
                }
            }
        }
}

// Many blocks in one call give the same bytes as separate calls, with any coincidence of atoms and synchronisations.
TEST(Etm4Model, ManyBlocksAtOnce) {
    synthetic::Random random(1);
    std::uint64_t sequences = 0;
    for (unsigned round = 0; round < sized(400U, 90U); ++round) {
        Config c = test::ete(0);
        c.context_id_trace = c.vmid_trace = c.q_elements = false;
        c.cycle_counting = random.below(2) == 0;
        c.timestamps = random.below(2) == 0;
        c.branch_broadcast = random.below(4) == 0;
        c.commit_mode_1 = random.below(8) != 0;
        c.return_stack = round % 5 == 0;
        ModelConfig config{.registers = tracing_registers(c)};
        if (c.cycle_counting) {
            const std::array thresholds{1U, 4U, 20U, 300U};
            config.registers.ccctlr.threshold = static_cast<std::uint16_t>(thresholds[random.below(4)]);
            config.choices.cycle_count_format_2 = random.below(4) != 0;
        }
        config.registers.syncpr.period = static_cast<std::uint8_t>(round % 3 == 0 ? 0 : 8 + round % 4);
        ByteCollector one_trace, many_trace, again_trace;
        Model one(config, one_trace), many(config, many_trace), again(config, again_trace);
        const isa::Place first{{0x1000}, Isa::a64};
        for (Model* model : {&one, &many, &again}) {
            model->set_context({.ns = true, .aarch64 = true, .el = 1});
            model->start({first, 1});
        }
        // How often a branch is taken: seldom, now and then, or nearly always, so that runs exceed a packet.
        const unsigned taken_of_1000 = std::array{0U, 80U, 500U, 950U, 995U, 1000U}[round % 6];
        const unsigned indirect_of_1000 = std::array{0U, 3U, 150U}[round / 6 % 3];
        isa::Instruction direct, indirect, call;
        direct.bytes = indirect.bytes = call.bytes = 4;
        direct.waypoint = call.waypoint = Waypoint::direct;
        call.link = true;
        indirect.waypoint = Waypoint::indirect;
        Address at = first.address;
        std::vector<RetiredBlock> blocks;
        std::uint64_t cycle = 1;
        for (unsigned n = 0; n < 3000; ++n) {
            RetiredBlock b;
            b.instruction = random.below(1000) < indirect_of_1000 ? &indirect : random.below(20) == 0 ? &call : &direct;
            b.passed = b.instruction != &direct || random.below(1000) < taken_of_1000;
            b.isa = b.next_isa = Isa::a64;
            b.address = at + 4 * random.below(4);
            const Address far{std::uint64_t{random.below(1 << 30)} << random.below(20) & ~std::uint64_t{3}};
            at = b.passed ? random.below(3) == 0 ? far : Address{0x1000 + 4 * random.below(64)} : b.address + 4;
            b.next = at;
            // Counts of every length, and now and then one that is longer than a packet can hold.
            b.cycle = cycle += 1 + (random.below(20) == 0 ? std::uint64_t{random.below(64)} << random.below(10) : 0);
            blocks.push_back(b);
        }
        for (const RetiredBlock& b : blocks)
            one.retire_block({.address = b.address,
                              .isa = b.isa,
                              .instruction = *b.instruction,
                              .passed = b.passed,
                              .next = {b.next, b.next_isa},
                              .cycle = b.cycle});
        for (std::size_t begin = 0; begin < blocks.size();) {
            const std::size_t size =
                std::min<std::size_t>(1 + random.below(round % 2 == 0 ? 300 : 40), blocks.size() - begin);
            const std::size_t taken = many.retire_blocks(std::span<const RetiredBlock>(blocks).subspan(begin, size));
            ASSERT_EQ(taken, size);
            begin += taken;
        }
        // As sequences, as far as the unit can take them.
        isa::Place from = first;
        for (std::span<const RetiredBlock> rest = blocks; !rest.empty();) {
            std::vector<std::span<const RetiredBlock>> pieces;
            std::vector<std::unique_ptr<flow::PreparedSequence>> prepared;
            std::vector<flow::RetiredSequence> run;
            for (unsigned n = random.below(6); n != 0 && !rest.empty(); --n) {
                const auto piece = rest.first(std::min<std::size_t>(rest.size(), 1 + random.below(7)));
                auto made = again.prepare(from, piece);
                if (made == nullptr) break;
                run.push_back({made.get(), piece.back().cycle});
                prepared.push_back(std::move(made));
                pieces.push_back(piece);
                from = {piece.back().next, piece.back().next_isa};
                rest = rest.subspan(piece.size());
            }
            const std::size_t taken = run.empty() ? 0 : again.retire_sequences(run);
            sequences += taken;
            for (std::size_t n = taken; n < pieces.size(); ++n)
                ASSERT_EQ(again.retire_blocks(pieces[n]), pieces[n].size());
            const auto piece = rest.first(std::min<std::size_t>(rest.size(), random.below(3)));
            if (piece.empty()) continue;
            ASSERT_EQ(again.retire_blocks(piece), piece.size());
            from = {piece.back().next, piece.back().next_isa};
            rest = rest.subspan(piece.size());
        }
        for (Model* model : {&one, &many, &again}) model->finish();
        ASSERT_EQ(one.counts(), many.counts()) << "round " << round;
        ASSERT_EQ(one_trace.bytes(), many_trace.bytes()) << "round " << round;
        ASSERT_EQ(one.counts(), again.counts()) << "round " << round;
        ASSERT_EQ(one_trace.bytes(), again_trace.bytes()) << "round " << round;
    }
    EXPECT_GT(sequences, sized(10'000U, 2'000U));
}

}  // namespace
}  // namespace waymark::etm4
