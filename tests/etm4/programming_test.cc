// The registers of the unit as a model, during execution (docs/spec/etm4-registers.md, 1.1, 1.6, 2.1 and 2.2).

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "etm4/support.h"
#include "waymark/core/byte_sink.h"
#include "waymark/etm4/access.h"
#include "waymark/etm4/model.h"

namespace waymark::etm4 {
namespace {

using isa::Isa;

class Etm4Programming : public testing::Test {
protected:
    static ModelConfig etmv4() {
        Config c = test::etmv4();
        c.context_id_trace = c.vmid_trace = c.cycle_counting = c.timestamps = c.q_elements = false;
        ModelConfig config{.registers = tracing_registers(c)};
        config.registers.idr0.trccci = true;
        return config;
    }
    static ModelConfig ete() {
        Config c = test::ete(3);
        c.context_id_trace = c.vmid_trace = c.cycle_counting = c.timestamps = c.q_elements = false;
        ModelConfig config{.registers = tracing_registers(c)};
        config.registers.idr0.trccci = true;
        return config;
    }
    /// A disabled model with execution at 0x1000.
    void make(const ModelConfig& config) {
        trace_ = {};
        config_ = packets_of(config.registers, config.profile);
        model_.emplace(config, trace_);
        model_->set_context({.ns = true, .aarch64 = true, .el = 1});
        model_->discontinuity({{{0x1000}, Isa::a64}, cycle_});
    }
    AccessResult write(unsigned offset, std::uint32_t value, Requester from = Requester::software) {
        return model_->write(offset, value, ++cycle_, from);
    }
    std::uint32_t read(unsigned offset, Requester from = Requester::software) {
        const ReadResult r = model_->read(offset, cycle_, from);
        EXPECT_EQ(r.result, AccessResult::done) << std::hex << offset;
        return r.value;
    }
    /// 2.1's state, as bits IDLE and PMSTABLE.
    std::uint32_t state(std::uint64_t clocks) {
        cycle_ += clocks;
        return read(Trcstatr::offset);
    }
    void enable() { ASSERT_EQ(write(Trcprgctlr::offset, 1), AccessResult::done); }
    void disable() { ASSERT_EQ(write(Trcprgctlr::offset, 0), AccessResult::done); }
    /// A branch at `at` that is taken to itself.
    void branch(std::uint64_t at) {
        isa::Instruction i;
        i.bytes = 4;
        i.waypoint = isa::Waypoint::direct;
        i.target = {at};
        model_->retire_block({.address = {at},
                              .isa = Isa::a64,
                              .instruction = i,
                              .passed = true,
                              .next = {{at}, Isa::a64},
                              .cycle = ++cycle_});
    }
    /// Names of packets sent so far.
    [[nodiscard]] std::string packets() const {
        std::string out;
        for (const test::Collected::Item& item : test::collect(trace_.bytes(), config_).items) {
            const std::string name = item.text.substr(0, item.text.find(' '));
            if (name != "ASYNC") out += (out.empty() ? "" : " ") + name;
        }
        return out;
    }

    ByteCollector trace_;
    Config config_;
    std::optional<Model> model_;
    std::uint64_t cycle_ = 1;
};

// 2.1: the table of states.
TEST_F(Etm4Programming, StatesFollowTheEnableBit) {
    make(etmv4());
    EXPECT_EQ(state(0), 3U);  // Idle
    enable();
    EXPECT_EQ(state(0) & 1U, 1U);  // Enabling
    EXPECT_EQ(state(1) & 1U, 0U);  // Running
    branch(0x1000);
    disable();
    EXPECT_EQ(state(0), 0U);  // Unstable
    EXPECT_EQ(state(1), 3U);
    EXPECT_EQ(model_->counts().p0, 1U);
}

// 2.1: Stable lasts until the FIFO has drained, and EN is not to be set again before.
TEST_F(Etm4Programming, StableUntilTheFifoIsEmpty) {
    ModelConfig config = etmv4();
    config.choices.fifo_bytes = 100;
    config.choices.drain_bytes = 1;
    config.choices.drain_cycles = 10;
    make(config);
    enable();
    branch(0x1000);
    disable();
    EXPECT_EQ(state(1), 2U);
    EXPECT_EQ(write(Trcvictlr::offset, 0), AccessResult::not_idle);
    EXPECT_EQ(write(Trcprgctlr::offset, 1), AccessResult::not_idle);
    const std::size_t bytes = trace_.bytes().size();
    ASSERT_GT(bytes, 12U);
    EXPECT_EQ(state(10 * bytes), 3U);
    EXPECT_EQ(write(Trcvictlr::offset, 0), AccessResult::done);
    EXPECT_EQ(read(Trcvictlr::offset), 0U);
}

// 1.1: trace registers are for Idle, TRCPRGCTLR and the claim tags for any state.
TEST_F(Etm4Programming, TraceRegistersAreIgnoredWhileTheUnitRuns) {
    make(ete());
    EXPECT_EQ(write(Trcccctlr::offset, 0x123), AccessResult::done);
    enable();
    for (const RegisterPlace& place : register_places()) {
        const WordAccess access = word_access(ete().registers, place.offset);
        if (!access.present || place.offset == Trcprgctlr::offset) continue;
        const AccessResult expected = !access.writable ? AccessResult::read_only
                                      : place.name == "TRCCLAIMSET" || place.name == "TRCCLAIMCLR"
                                          ? AccessResult::done
                                          : AccessResult::not_idle;
        EXPECT_EQ(write(place.offset, 0xffffffff), expected) << place.name;
    }
    EXPECT_EQ(read(Trcccctlr::offset), 0x123U);
    branch(0x1000);
    EXPECT_EQ(model_->counts().p0, 1U);
}

// 1.2 to 1.4: bits that a unit like a Cortex-A53's does not have are RES0. Values are worked out by hand from the
// tables.
TEST_F(Etm4Programming, BitsThatAreNotThereStayZero) {
    ModelConfig config = etmv4();
    config.registers.configr = {};
    config.registers.idr0 = from_value<Trcidr0>(0x28000ea1);
    config.registers.idr2 = from_value<Trcidr2>(0x00000488);
    config.registers.idr3 = from_value<Trcidr3>(0x0d7b0004);
    config.registers.idr4 = from_value<Trcidr4>(0x11170004);
    config.registers.idr5 = from_value<Trcidr5>(0x28c7081e);
    make(config);
    const std::vector<std::tuple<const char*, std::uint32_t>> expected = {
        {"TRCCONFIGR", 0x18d8},         // BB, CCI, CID, VMID, TS, RS
        {"TRCEVENTCTL0R", 0x8f8f8f8f},  // 16 selectors: SEL has 4 bits
        {"TRCEVENTCTL1R", 0x180f},      // four events, ATB trigger, low-power override
        {"TRCSTALLCTLR", 0x10f},       {"TRCTSCTLR", 0x8f},       {"TRCSYNCPR", 0x1f},
        {"TRCCCCTLR", 0xfff},          {"TRCBBCTLR", 0x10f},      {"TRCTRACEIDR", 0x7f},
        {"TRCVICTLR", 0x7b0e8f},  // levels as TRCIDR3 has them, error, reset, start/stop
        {"TRCVIIECTLR", 0xf000f},      {"TRCVISSCTLR", 0xff00ff}, {"TRCSEQEVR2", 0x8f8f},
        {"TRCSEQRSTEVR", 0x8f},        {"TRCSEQSTR", 3},          {"TRCEXTINSELR", 0xffffffff},
        {"TRCCNTRLDVR1", 0xffff},      {"TRCCNTCTLR0", 0x18f8f},  {"TRCCNTCTLR1", 0x38f8f},
        {"TRCRSCTLR2", 0x3fffff},      {"TRCRSCTLR15", 0x1fffff}, {"TRCSSCCR0", 0x10f00ff},
        {"TRCACVR7", 0xffffffff},      {"TRCACATR7", 0x7b0c},     {"TRCCIDCVR0", 0xffffffff},
        {"TRCVMIDCVR0", 0xff},         {"TRCCIDCCTLR0", 0xf},     {"TRCVMIDCCTLR0", 1}};
    for (const auto& [name, value] : expected) {
        const RegisterPlace* const place = register_called(name);
        ASSERT_NE(place, nullptr) << name;
        EXPECT_EQ(write(place->offset, 0xffffffff), AccessResult::done) << name;
        EXPECT_EQ(read(place->offset), value) << name;
        EXPECT_EQ(write(place->offset, 0), AccessResult::done) << name;
        EXPECT_EQ(read(place->offset), 0U) << name;
    }
    for (const char* const missing : {"TRCRSR", "TRCQCTLR", "TRCPROCSELR", "TRCITEEDCR", "TRCVIPCSSCTLR", "TRCVDCTLR",
                                      "TRCCNTVR2", "TRCRSCTLR16", "TRCSSCCR1", "TRCACVR8", "TRCCIDCVR1", "TRCDVCVR0"}) {
        EXPECT_EQ(write(register_called(missing)->offset, 1), AccessResult::not_present) << missing;
        EXPECT_EQ(model_->read(register_called(missing)->offset, cycle_), (ReadResult{AccessResult::not_present, 0}));
    }
    EXPECT_EQ(write(Trcidr0::offset, 0), AccessResult::read_only);
    EXPECT_EQ(read(Trcidr0::offset), 0x28000ea1U);
    EXPECT_EQ(model_->read(Trcoslar::offset, cycle_).result, AccessResult::write_only);
    EXPECT_EQ(write(0xf04, 0), AccessResult::not_present);
    EXPECT_EQ(write(0x402, 0), AccessResult::not_present);
    // 64 bits are two words.
    EXPECT_EQ(write(Trcacvr::offset + 4, 0xffff8000), AccessResult::done);
    EXPECT_EQ(model_->registers().acvr[0].address, 0xffff8000'00000000U);
}

// 1.1: examples of the formula.
// 1.6.
TEST_F(Etm4Programming, SaysThatItIsATraceUnit) {
    for (const ModelConfig& config : {etmv4(), ete()}) {
        make(config);
        EXPECT_EQ(read(Trcdevtype::offset), 0x13U);
        unsigned offset = Trccidr::offset;
        for (const std::uint32_t value : {0x0dU, 0x90U, 0x05U, 0xb1U}) {
            EXPECT_EQ(read(offset), value);
            offset += 4;
        }
    }
}

TEST_F(Etm4Programming, EncodingsOfSystemRegisters) {
    EXPECT_EQ(system_encoding(Trcprgctlr::offset), (SystemEncoding{0, 1, 0}));
    EXPECT_EQ(system_encoding(Trcacvr::offset + 8), (SystemEncoding{2, 2, 0}));
    EXPECT_EQ(system_encoding(Trcclaimset::offset), (SystemEncoding{7, 8, 6}));
    EXPECT_EQ(system_encoding(Trcdevarch::offset), (SystemEncoding{7, 15, 6}));
    EXPECT_EQ(system_encoding(Trcvictlr::offset), (SystemEncoding{0, 0, 2}));
    EXPECT_EQ(system_encoding(Trcrsr::offset), (SystemEncoding{0, 10, 0}));
    for (unsigned offset = 0; offset < 0x1000; offset += 4) EXPECT_EQ(offset_of(system_encoding(offset)), offset);
    EXPECT_EQ(offset_of(SystemEncoding{8, 0, 0}), std::nullopt);
}

TEST_F(Etm4Programming, NamesAndOffsets) {
    for (const auto& [name, offset] : {std::pair{"TRCRSCTLR2", 0x208U},
                                       {"TRCRSCTLR31", 0x27cU},
                                       {"TRCACATR15", 0x4f8U},
                                       {"TRCIMSPEC1", 0x1c4U},
                                       {"TRCPIDR7", 0xfdcU},
                                       {"TRCPIDR3", 0xfecU},
                                       {"TRCEXTINSELR", 0x120U},
                                       {"TRCEXTINSELR3", 0x12cU},
                                       {"TRCSEQEVR0", 0x100U}}) {
        ASSERT_NE(register_called(name), nullptr) << name;
        EXPECT_EQ(register_called(name)->offset, offset) << name;
    }
    EXPECT_EQ(register_called("TRCRSCTLR1"), nullptr);
    EXPECT_EQ(register_called("TRCACVR"), nullptr);
    EXPECT_EQ(register_at(0x40c)->name, "TRCACVR1");
    EXPECT_EQ(register_at(0x406), nullptr);
}

// 2.1 and 2.2: resources are read while they run, are paused with the unit, and go on where they were.
TEST_F(Etm4Programming, ResourcesGoOnInTheNextSession) {
    ModelConfig config = etmv4();
    Registers& r = config.registers;
    r.cntvr[0].value = 100;
    r.cntctlr[0].count_sel = 1;
    r.acvr[0].address = 0x1000;
    r.rsctlr[0].group = 4;
    r.rsctlr[0].select = 1;
    r.seqevr[0].forward_sel = 2;
    r.acvr[2].address = 0x1000;
    r.vissctlr.start = 4;
    r.victlr.ssstatus = false;
    r.ssccr[0].sac = 1;
    make(config);
    enable();
    const std::uint64_t began = cycle_;
    branch(0x1000);
    state(10);
    EXPECT_EQ(read(Trccntvr::offset), 100 - (cycle_ - began));
    EXPECT_EQ(read(Trcseqstr::offset), 1U);
    EXPECT_EQ(read(Trcvictlr::offset) >> 9 & 1U, 1U);
    EXPECT_EQ(read(Trcsscsr::offset), 0x80000001);
    disable();
    const std::uint32_t left = read(Trccntvr::offset);
    EXPECT_EQ(left, 100 - (cycle_ - began));
    state(20);
    EXPECT_EQ(read(Trccntvr::offset), left);
    EXPECT_EQ(write(Trcseqstr::offset, 3), AccessResult::done);
    enable();
    state(5);
    EXPECT_EQ(read(Trccntvr::offset), left - 5);
    EXPECT_EQ(read(Trcseqstr::offset), 3U);
    EXPECT_EQ(read(Trcvictlr::offset) >> 9 & 1U, 1U);
    EXPECT_EQ(read(Trcsscsr::offset), 0x80000001);
}

// 2.1: all pending elements are sent at the end of a session, and the next begins with its own synchronisation.
TEST_F(Etm4Programming, EachSessionBeginsAnew) {
    make(etmv4());
    enable();
    branch(0x1000);
    branch(0x1000);
    disable();
    const std::string session = "A-SYNC TRACE-INFO TRACE-ON ADDRESS-CONTEXT-64-IS0 ATOM-F2";
    const std::string once = packets();
    branch(0x1000);  // not traced
    EXPECT_EQ(packets(), once);
    state(1);
    enable();
    branch(0x1000);
    branch(0x1000);
    disable();
    EXPECT_EQ(packets(), once + " " + once);
    EXPECT_EQ(model_->counts().p0, 4U);
    EXPECT_EQ(model_->counts().untraced, 1U);
    static_cast<void>(session);
}

// 2.1 and 1.6: the unit's own OS Lock disables it, and keeps debuggers out.
TEST_F(Etm4Programming, TheOsLockOfAnEtmv4) {
    make(etmv4());
    EXPECT_EQ(read(Trcoslsr::offset), 0x8U);  // OSLM 2
    enable();
    branch(0x1000);
    EXPECT_EQ(write(Trcoslar::offset, 1), AccessResult::done);
    EXPECT_EQ(read(Trcoslsr::offset), 0xaU);
    EXPECT_EQ(read(Trcpdsr::offset), 0x21U);
    EXPECT_EQ(read(Trcprgctlr::offset), 1U);
    EXPECT_EQ(state(1), 3U);
    branch(0x1000);
    EXPECT_EQ(model_->counts().untraced, 1U);
    for (const unsigned offset : {Trcvictlr::offset, Trcidr0::offset, Trcclaimset::offset}) {
        EXPECT_EQ(model_->read(offset, cycle_, Requester::external).result, AccessResult::error);
        EXPECT_EQ(write(offset, 0, Requester::external), AccessResult::error);
        EXPECT_EQ(model_->read(offset, cycle_).result, AccessResult::done);
    }
    EXPECT_EQ(model_->read(Trcpdsr::offset, cycle_, Requester::external).value, 0x21U);
    EXPECT_EQ(write(Trcoslar::offset, 0), AccessResult::done);
    branch(0x1000);
    EXPECT_EQ(model_->counts().p0, 2U);
    model_->set_os_lock(true, ++cycle_);  // not its own
    EXPECT_EQ(read(Trcoslsr::offset), 0x8U);
}

TEST_F(Etm4Programming, TheOsLockOfTheProcessorGovernsAnEte) {
    make(ete());
    EXPECT_EQ(read(Trcoslsr::offset), 0x10U);
    EXPECT_EQ(write(Trcoslar::offset, 1), AccessResult::not_present);
    enable();
    model_->set_os_lock(true, ++cycle_);
    EXPECT_EQ(read(Trcoslsr::offset), 0x12U);
    branch(0x1000);
    EXPECT_EQ(model_->counts().p0, 0U);
    model_->set_os_lock(false, ++cycle_);
    branch(0x1000);
    EXPECT_EQ(model_->counts().p0, 1U);
}

// 1.6: the software lock is for memory-mapped accesses of an ETMv4.
TEST_F(Etm4Programming, TheSoftwareLock) {
    make(etmv4());
    EXPECT_EQ(read(Trclsr::offset), 1U);
    EXPECT_EQ(write(Trclar::offset, 0), AccessResult::done);
    EXPECT_EQ(read(Trclsr::offset), 3U);
    EXPECT_EQ(read(Trclsr::offset, Requester::external), 0U);
    EXPECT_EQ(write(Trcccctlr::offset, 5), AccessResult::locked);
    EXPECT_EQ(write(Trcprgctlr::offset, 1), AccessResult::locked);
    EXPECT_EQ(write(Trcccctlr::offset, 6, Requester::external), AccessResult::done);
    EXPECT_EQ(read(Trcccctlr::offset), 6U);
    EXPECT_EQ(write(Trclar::offset, 0xc5acce54), AccessResult::done);
    EXPECT_EQ(write(Trcccctlr::offset, 5), AccessResult::locked);
    EXPECT_EQ(write(Trclar::offset, 0xc5acce55), AccessResult::done);
    EXPECT_EQ(write(Trcccctlr::offset, 5), AccessResult::done);
    make(ete());
    EXPECT_EQ(write(Trclar::offset, 0), AccessResult::not_present);
    EXPECT_EQ(model_->read(Trclsr::offset, cycle_).result, AccessResult::not_present);
}

// 1.6: claim tags are set by one register and cleared by the other.
TEST_F(Etm4Programming, ClaimTags) {
    make(ete());
    EXPECT_EQ(read(Trcclaimset::offset), 0xfU);
    write(Trcclaimset::offset, 0x5);
    write(Trcclaimset::offset, 0x12);
    EXPECT_EQ(read(Trcclaimclr::offset), 0x7U);
    write(Trcclaimclr::offset, 0x3);
    EXPECT_EQ(read(Trcclaimclr::offset), 0x4U);
}

// 1.1 and 1.6: without power, the programming is lost; TRCPDCR.PU keeps it.
TEST_F(Etm4Programming, Power) {
    make(etmv4());
    EXPECT_EQ(read(Trcpdsr::offset), 1U);
    write(Trcccctlr::offset, 5);
    EXPECT_EQ(write(Trcpdcr::offset, 0xff), AccessResult::done);
    EXPECT_EQ(read(Trcpdcr::offset), 8U);
    model_->set_power(false, ++cycle_);
    EXPECT_EQ(read(Trcccctlr::offset), 5U);
    model_->set_power(true, ++cycle_);
    write(Trcpdcr::offset, 0);
    enable();
    branch(0x1000);
    model_->flush();
    branch(0x1000);
    const std::size_t sent = trace_.bytes().size();
    model_->set_power(false, ++cycle_);
    EXPECT_EQ(trace_.bytes().size(), sent);  // the atom that waited is lost
    EXPECT_EQ(model_->counts().p0, 1U);
    EXPECT_EQ(model_->counts().untraced, 1U);
    EXPECT_EQ(model_->read(Trcccctlr::offset, cycle_).result, AccessResult::error);
    EXPECT_EQ(write(Trcprgctlr::offset, 1), AccessResult::error);
    EXPECT_EQ(read(Trcpdsr::offset), 0U);
    EXPECT_EQ(write(Trcpdcr::offset, 8), AccessResult::done);  // requests power
    EXPECT_EQ(read(Trcpdsr::offset), 3U);
    EXPECT_EQ(read(Trcpdsr::offset), 1U);  // sticky until read
    EXPECT_EQ(read(Trcccctlr::offset), 0U);
    EXPECT_EQ(read(Trcprgctlr::offset), 0U);
    EXPECT_EQ(read(Trcidr4::offset), 0x11170004U);
}

// 2.2: inputs and events during a pause take effect when resources run.
TEST_F(Etm4Programming, StickyInputsAndEventsOfAnEte) {
    ModelConfig config = ete();
    Registers& r = config.registers;
    r.rsctlr[0].group = 0;
    r.rsctlr[0].select = 2;
    r.seqevr[0].forward_sel = 2;
    r.eventctl1r.insten = 4;
    r.rsctlr[1].group = 3;
    r.rsctlr[1].select = 1;
    r.seqevr[1].forward_sel = 3;
    make(config);
    EXPECT_EQ(write(Trcrsr::offset, 0x1402), AccessResult::done);
    EXPECT_EQ(write(Trcsscsr::offset, 0x40000000), AccessResult::done);
    EXPECT_EQ(read(Trcrsr::offset), 0x1402U);
    EXPECT_EQ(read(Trcsscsr::offset), 0x40000001U);
    enable();
    state(3);
    EXPECT_EQ(read(Trcrsr::offset), 0x1000U);
    EXPECT_EQ(read(Trcsscsr::offset), 0x80000001U);
    EXPECT_EQ(read(Trcseqstr::offset), 2U);  // both steps in the first clock
    EXPECT_EQ(packets(), "A-SYNC TRACE-INFO EVENT");
}

// 2.12: TRCRSR.TA decides on exceptions, and can be read.
TEST_F(Etm4Programming, TracingActiveOfAnEte) {
    for (const bool active : {false, true}) {
        ModelConfig config = ete();
        config.registers.rsr.ta = false;
        config.registers.acvr[0].address = 0x2000;
        config.registers.acvr[1].address = 0x2fff;
        config.registers.viiectlr.include = 1;
        make(config);
        ASSERT_EQ(write(Trcrsr::offset, active ? 0x1000 : 0), AccessResult::done);
        enable();
        model_->exception({.type = 0x0e, .back = {}, .handler = isa::Place{{0x2000}, Isa::a64}, .cycle = ++cycle_});
        EXPECT_EQ(model_->counts().p0, active ? 1U : 0U);
        EXPECT_EQ(read(Trcrsr::offset), active ? 0x1000U : 0U);
        branch(0x2000);
        EXPECT_EQ(read(Trcrsr::offset), 0x1000U);
        branch(0x1000);
        EXPECT_EQ(read(Trcrsr::offset), 0U);
    }
}

// 2.1: a transaction that is open in the trace is discarded with the session.
TEST_F(Etm4Programming, AnOpenTransactionIsDiscarded) {
    make(ete());
    enable();
    branch(0x1000);
    model_->transaction_start(++cycle_);
    disable();
    const std::string text = packets();
    EXPECT_TRUE(text.ends_with("DISCARD")) << text;
    model_->transaction_commit(++cycle_);
    EXPECT_EQ(packets(), text);
}

// Impossible programming, in words.
TEST_F(Etm4Programming, Objections) {
    Registers r = ete().registers;
    EXPECT_TRUE(objections_to(r).empty());
    r.syncpr.period = 5;
    r.rsctlr[3].group = 9;
    r.configr.bb = true;
    r.bbctlr.mode = true;
    r.acvr[2].address = 5;
    r.acvr[3].address = 4;
    r.configr.cci = true;
    r.ccctlr.threshold = 3;
    std::string all;
    for (const Objection& o : objections_to(r)) all += o.message + "\n";
    EXPECT_EQ(all,
              "TRCSYNCPR.PERIOD is 5; 0 and 8 to 20 are allowed\n"
              "TRCCCCTLR.THRESHOLD is 3; with TRCCONFIGR.CCI it is at least TRCIDR3.CCITMIN, 4\n"
              "TRCBBCTLR.MODE is 1 (inside the ranges) with RANGE 0, no range\n"
              "TRCRSCTLR5.GROUP is 9; 8 to 15 are reserved\n");
    r.viiectlr.include = 2;
    r.acatr[3].contexttype = 1;
    r.configr.qe = 1;
    r.idr0.qsupp = 2;
    all.clear();
    for (const Objection& o : objections_to(r)) all += o.message + "\n";
    EXPECT_NE(all.find("TRCCONFIGR.QE is 1; this unit has 0 and 3\n"), std::string::npos) << all;
    EXPECT_NE(all.find("the range of TRCACVR2 and TRCACVR3 begins at 0x5, after its end 0x4\n"), std::string::npos);
    EXPECT_NE(all.find("TRCACATR2 and TRCACATR3 differ"), std::string::npos);
}

// 2.18: TRCBBCTLR selects the branches whose addresses are sent, in both modes.
TEST_F(Etm4Programming, RangesOfBranchBroadcast) {
    for (const bool inside : {false, true}) {
        ModelConfig config = ete();
        Registers& r = config.registers;
        r.configr.bb = true;
        r.acvr[0].address = 0x1000;
        r.acvr[1].address = 0x1fff;
        r.bbctlr.range = 1;
        r.bbctlr.mode = inside;
        make(config);
        enable();
        for (const auto& [at, in] : {std::pair{0x1ffcU, true}, {0x2000U, false}, {0x1000U, true}, {0xffcU, false}}) {
            branch(at);
            const std::string before = packets();
            branch(at);
            model_->flush();
            const std::string added = packets().substr(before.size());
            EXPECT_EQ(added.find("ADDRESS") != std::string::npos, in == inside) << std::hex << at << added;
        }
    }
}

// 2.18: TRCQCTLR selects the blocks for which Q elements may be sent; one instruction permits the block.
TEST_F(Etm4Programming, RangesOfQElements) {
    for (const bool inside : {false, true}) {
        ModelConfig config = ete();
        Registers& r = config.registers;
        r.idr0.qsupp = 2;
        r.idr0.qfilt = true;
        r.configr.qe = 3;
        r.acvr[0].address = 0x1000;
        r.acvr[1].address = 0x1fff;
        r.qctlr.range = 1;
        r.qctlr.mode = inside;
        config.choices.q_one_in = 1;
        make(config);
        enable();
        for (const auto& [at, in] : {std::pair{0x1ffcU, true}, {0x2000U, false}, {0x1000U, true}, {0xffcU, false}}) {
            branch(at);
            model_->flush();
            const std::string before = packets();
            branch(at);
            model_->flush();
            const std::string added = packets().substr(before.size());
            EXPECT_EQ(added.find(" Q") != std::string::npos, in == inside) << std::hex << at << added;
        }
        // A jump from outside into the range, and the reverse: one of the two blocks is permitted by one instruction.
        for (const auto& [from, to] : {std::pair{0xff8U, 0x1000U}, {0x1ff8U, 0x2000U}}) {
            model_->discontinuity({{{from}, Isa::a64}, ++cycle_});
            const std::string before = packets();
            branch(to);
            model_->flush();
            EXPECT_NE(packets().substr(before.size()).find(" Q"), std::string::npos) << std::hex << from;
        }
    }
}

// 2.15: with TRCIDR0.TSMARK each timestamp follows a marker, regardless of what requested it.
TEST_F(Etm4Programming, TimestampMarkers) {
    for (const bool marked : {false, true}) {
        ModelConfig config = ete();
        Registers& r = config.registers;
        r.idr0.tsmark = marked;
        r.configr.ts = true;
        r.acvr[0].address = 0x1000;
        r.rsctlr[0].group = 4;
        r.rsctlr[0].select = 1;
        r.tsctlr.sel = 2;
        make(config);
        enable();
        for (unsigned n = 0; n < 4; ++n) branch(0x1000);
        disable();
        const std::string text = packets();
        const auto count = [&](const std::string& what) {
            std::size_t found = 0;
            for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; ++at) ++found;
            return found;
        };
        EXPECT_EQ(count("MARKER"), marked ? 4U : 0U) << text;
        EXPECT_EQ(count("MARKER TIMESTAMP"), marked ? 4U : 0U) << text;
        EXPECT_GE(count("TIMESTAMP"), 4U) << text;
    }
}

}  // namespace
}  // namespace waymark::etm4
