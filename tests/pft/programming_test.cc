// The registers of the macrocell as a model, during execution (docs/spec/pft.md, 3.1 and 5.3).

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "pft/support.h"
#include "support/bytes.h"
#include "waymark/core/byte_sink.h"
#include "waymark/pft/access.h"
#include "waymark/pft/model.h"

namespace waymark::pft {
namespace {

using test::hex;

constexpr std::uint32_t never = 0x406f, key = 0xc5acce55;
constexpr std::uint32_t programming = 1U << 10, power_down = 1;
/// A-sync and the I-sync of 0x8000, then.
const char* const begins = "00 00 00 00 00 80 08 00 80 00 00 21";

class PtmProgramming : public testing::Test {
protected:
    static ModelConfig a15() {
        ModelConfig config;
        config.registers.ccr = from_value<Etmccr>(0x8d294004);
        return config;
    }
    /// A stopped macrocell, with execution at 0x8000.
    void make(const ModelConfig& config) {
        trace_ = {};
        seen_ = 0;
        model_.emplace(config, trace_);
        model_->discontinuity({{{0x8000}, Isa::a32}, false, false, cycle_});
    }
    AccessResult write(unsigned number, std::uint32_t value, Requester from = Requester::software) {
        return model_->write(number, value, ++cycle_, from);
    }
    std::uint32_t read(unsigned number, Requester from = Requester::software) {
        const ReadResult r = model_->read(number, cycle_, from);
        EXPECT_EQ(r.result, AccessResult::done) << std::hex << number;
        return r.value;
    }
    void go() {
        ASSERT_EQ(write(Etmcr::number, read(Etmcr::number) & ~(programming | power_down)), AccessResult::done);
    }
    void halt() { ASSERT_EQ(write(Etmcr::number, read(Etmcr::number) | programming), AccessResult::done); }
    void branch(std::uint32_t at) {
        Retired r;
        r.address = {at};
        r.isa = Isa::a32;
        r.instruction.bytes = 4;
        r.instruction.waypoint = isa::Waypoint::direct;
        r.next = {{at}, Isa::a32};
        r.cycle = ++cycle_;
        model_->retire_block(r, 0);
    }
    /// Bytes sent since the last call.
    std::vector<std::uint8_t> sent() {
        const std::vector<std::uint8_t> out(trace_.bytes().begin() + static_cast<std::ptrdiff_t>(seen_),
                                            trace_.bytes().end());
        seen_ = trace_.bytes().size();
        return out;
    }
    static std::vector<std::uint8_t> after_begin(const std::string& more) {
        return hex(std::string(begins) + " " + more);
    }

    ByteCollector trace_;
    std::optional<Model> model_;
    std::uint64_t cycle_ = 1;
    std::size_t seen_ = 0;
};

// 5.3: the Programming bit and the power-down bit stop it at once, pending packets are sent, and it begins again.
TEST_F(PtmProgramming, BothBitsStopItAndSendWhatIsPending) {
    for (const std::uint32_t bit : {programming, power_down}) {
        make(a15());
        EXPECT_EQ(read(Etmsr::number), 2U);
        go();
        EXPECT_EQ(read(Etmsr::number), 0U);
        branch(0x8000);
        branch(0x8000);
        EXPECT_EQ(sent(), hex(begins));
        EXPECT_EQ(write(Etmcr::number, read(Etmcr::number) | bit), AccessResult::done);
        EXPECT_EQ(sent(), hex("88"));
        EXPECT_EQ(read(Etmsr::number), 2U);
        EXPECT_EQ(read(Etmcr::number) & (programming | power_down), bit);
        branch(0x8000);
        EXPECT_EQ(sent(), hex(""));
        go();
        branch(0x8000);
        model_->finish();
        EXPECT_EQ(sent(), after_begin("84"));
        EXPECT_EQ(model_->counts().waypoints, 3U);
        EXPECT_EQ(model_->counts().untraced, 1U);
    }
}

// 3.1: while tracing is on, only registers that stop it can be written.
TEST_F(PtmProgramming, RegistersAreWrittenWhileItIsStopped) {
    make(a15());
    EXPECT_EQ(write(Etmacvr::number, 0x1234), AccessResult::done);
    go();
    for (const RegisterPlace& place : register_places()) {
        const RegisterAccess access = register_access(a15().registers, place.number);
        if (!access.present || place.number == Etmcr::number) continue;
        EXPECT_EQ(write(place.number, 0xffffffff), access.writable ? AccessResult::not_idle : AccessResult::read_only)
            << place.name;
    }
    EXPECT_EQ(read(Etmacvr::number), 0x1234U);
    // Cycle counts would change the form of packets: the change waits until tracing stops.
    EXPECT_EQ(write(Etmcr::number, 1U << 12), AccessResult::done);
    EXPECT_EQ(read(Etmcr::number), 0U);
    branch(0x8000);
    halt();
    EXPECT_EQ(sent(), after_begin("84"));
    EXPECT_EQ(write(Etmcr::number, 1U << 12 | programming), AccessResult::done);
    go();
    branch(0x8000);
    halt();
    const std::vector<std::uint8_t> counted = sent();
    EXPECT_GT(counted.size(), after_begin("84").size());  // the I-sync has a cycle count
}

// 3: the features of a Cortex-A15's macrocell, by its ETMCCR and ETMCCER.
TEST_F(PtmProgramming, BitsThatAreNotThereStayZero) {
    make(a15());
    const std::vector<std::pair<const char*, std::uint32_t>> expected = {
        {"ETMTRIGGER", 0x1ffff},    {"ETMTEEVR", 0x1ffff},      {"ETMTECR1", 0x0300000f},
        {"ETMTSSCR", 0xff00ff},     {"ETMACVR8", 0xffffffff},   {"ETMACTR8", 0xff07},
        {"ETMCNTRLDVR2", 0xffff},   {"ETMCNTENR1", 0x3ffff},    {"ETMCNTRLDEVR2", 0x1ffff},
        {"ETMCNTVR2", 0xffff},      {"ETMSQ13EVR", 0x1ffff},    {"ETMSQR", 3},
        {"ETMEXTOUTEVR2", 0x1ffff}, {"ETMCIDCVR1", 0xffffffff}, {"ETMCIDCMR", 0xffffffff},
        {"ETMSYNCFR", 0xfff},       {"ETMTSEVR", 0x1ffff},      {"ETMAUXCR", 7},
        {"ETMTRACEIDR", 0x7f},      {"ETMVMIDCVR", 0xff},       {"ETMEXTINSELR", 0xffff}};
    for (const auto& [name, value] : expected) {
        const RegisterPlace* const place = register_called(name);
        ASSERT_NE(place, nullptr) << name;
        EXPECT_EQ(write(place->number, 0xffffffff), AccessResult::done) << name;
        EXPECT_EQ(read(place->number), value) << name;
    }
    for (const char* const missing : {"ETMACVR9", "ETMACTR16", "ETMCNTVR3", "ETMEXTOUTEVR3", "ETMCIDCVR2"})
        EXPECT_EQ(write(register_called(missing)->number, 1), AccessResult::not_present) << missing;
    EXPECT_EQ(write(Etmidr::number, 0), AccessResult::read_only);
    EXPECT_EQ(write(Etmcr::number, 0xffffffff), AccessResult::done);
    EXPECT_EQ(read(Etmcr::number), 0x7f00d701U);
    EXPECT_EQ(register_called("ETMSQ21EVR")->number, 0x61U);
    EXPECT_EQ(register_called("ETMACVR"), nullptr);
    EXPECT_EQ(register_called("ETMACVR0"), nullptr);
    EXPECT_EQ(write(0x91, 0), AccessResult::not_present);
}

// 5.6: resources are read while they run, and continue from their last or written values.
TEST_F(PtmProgramming, ResourcesGoOnInTheNextSession) {
    ModelConfig config = a15();
    Registers& r = config.registers;
    r.cntvr[0].value = 100;
    r.cntrldvr[0].value = 100;
    r.cntenr[0] = from_value<Etmcntenr>(0x6f);
    r.acvr[0].value = 0x8000;
    r.sqevr[0] = from_value<Etmsqevr>(0);      // 1 to 2: comparator 1
    r.trigger = from_value<Etmtrigger>(0x40);  // counter 1 at zero
    r.tsscr.start = 2;
    r.acvr[1].value = 0x8000;
    make(config);
    go();
    const std::uint64_t began = cycle_;
    branch(0x8000);
    EXPECT_EQ(read(Etmcntvr::number), 100 - (cycle_ - began));
    EXPECT_EQ(read(Etmsqr::number), 1U);
    EXPECT_EQ(read(Etmsr::number), 4U);  // start/stop block on
    halt();
    const std::uint32_t left = read(Etmcntvr::number);
    cycle_ += 50;
    EXPECT_EQ(read(Etmcntvr::number), left);
    EXPECT_EQ(read(Etmsr::number), 6U);
    EXPECT_EQ(write(Etmsqr::number, 2), AccessResult::done);
    EXPECT_EQ(write(Etmsr::number, 0), AccessResult::done);
    go();
    EXPECT_EQ(read(Etmsqr::number), 2U);
    EXPECT_EQ(read(Etmsr::number), 0U);
    cycle_ += 3;
    EXPECT_EQ(read(Etmcntvr::number), left - 3);
    cycle_ += 200;
    EXPECT_EQ(read(Etmcntvr::number), 0U);
    EXPECT_EQ(read(Etmsr::number) & 8U, 8U);  // triggered
}

// 5.6: TraceEnable of each session follows the registers written for it.
TEST_F(PtmProgramming, RangesWrittenLater) {
    make(a15());
    go();
    branch(0x8000);
    halt();
    sent();
    EXPECT_EQ(write(Etmacvr::number, 0x9000), AccessResult::done);
    EXPECT_EQ(write(Etmacvr::number + 1, 0x9100), AccessResult::done);
    EXPECT_EQ(write(Etmtecr1::number, 1), AccessResult::done);
    go();
    branch(0x8000);
    EXPECT_EQ(model_->counts().untraced, 1U);
    model_->discontinuity({{{0x9000}, Isa::a32}, false, false, cycle_});
    branch(0x9000);
    halt();
    EXPECT_EQ(sent(), hex("00 00 00 00 00 80 08 00 90 00 00 21 84"));
}

// 3.1: the OS Lock stops the macrocell, and keeps debuggers out; v1.0 has none.
TEST_F(PtmProgramming, TheOsLock) {
    make(a15());
    EXPECT_EQ(read(management::oslsr), 1U);
    go();
    branch(0x8000);
    EXPECT_EQ(write(management::oslar, key), AccessResult::done);
    EXPECT_EQ(read(management::oslsr), 3U);
    EXPECT_EQ(read(management::pdsr), 0x21U);
    EXPECT_EQ(sent(), after_begin("84"));
    branch(0x8000);
    EXPECT_EQ(model_->read(Etmidr::number, cycle_, Requester::external).result, AccessResult::error);
    EXPECT_EQ(write(Etmteevr::number, never, Requester::external), AccessResult::error);
    EXPECT_EQ(read(Etmidr::number), 0x411cf312U);
    EXPECT_EQ(write(management::oslar, 0), AccessResult::done);
    branch(0x8000);
    halt();
    EXPECT_EQ(sent(), after_begin("84"));
    ModelConfig config = a15();
    config.registers.idr = from_value<Etmidr>(0x411cf301);
    make(config);
    EXPECT_EQ(write(management::oslar, key), AccessResult::not_present);
    EXPECT_EQ(read(management::oslsr), 0U);
    EXPECT_EQ(model_->read(management::oslar, cycle_).result, AccessResult::not_present);
}

TEST_F(PtmProgramming, TheSoftwareLockAndClaimTags) {
    make(a15());
    EXPECT_EQ(read(management::lsr), 1U);
    EXPECT_EQ(write(management::lar, 0), AccessResult::done);
    EXPECT_EQ(read(management::lsr), 3U);
    EXPECT_EQ(read(management::lsr, Requester::external), 0U);
    EXPECT_EQ(write(Etmsyncfr::number, 5), AccessResult::locked);
    EXPECT_EQ(write(Etmsyncfr::number, 6, Requester::external), AccessResult::done);
    EXPECT_EQ(write(management::lar, key), AccessResult::done);
    EXPECT_EQ(read(Etmsyncfr::number), 6U);
    EXPECT_EQ(write(Etmsyncfr::number, 5), AccessResult::done);
    EXPECT_EQ(model_->read(management::lar, cycle_).result, AccessResult::write_only);
    write(management::claimset, 6);
    write(management::claimclr, 4);
    EXPECT_EQ(read(management::claimclr), 2U);
    EXPECT_EQ(read(management::claimset), 0xfU);
}

// 3.1: without power the program and pending packets are lost; ETMPDCR keeps it.
TEST_F(PtmProgramming, Power) {
    make(a15());
    EXPECT_EQ(read(management::pdsr), 1U);
    write(Etmsyncfr::number, 500);
    write(management::pdcr, 8);
    model_->set_power(false, ++cycle_);
    EXPECT_EQ(read(Etmsyncfr::number), 500U);
    model_->set_power(true, ++cycle_);
    write(management::pdcr, 0);
    go();
    branch(0x8000);
    branch(0x8000);
    model_->set_power(false, ++cycle_);
    EXPECT_EQ(sent(), hex(begins));
    EXPECT_EQ(model_->counts().waypoints, 0U);
    EXPECT_EQ(model_->read(Etmcr::number, cycle_).result, AccessResult::error);
    EXPECT_EQ(write(Etmcr::number, 0), AccessResult::error);
    EXPECT_EQ(read(management::pdsr), 0U);
    model_->set_power(true, ++cycle_);
    EXPECT_EQ(read(management::pdsr), 3U);
    EXPECT_EQ(read(management::pdsr), 1U);
    EXPECT_EQ(read(Etmsyncfr::number), 1024U);
    EXPECT_EQ(read(Etmcr::number), programming | power_down);
    EXPECT_EQ(read(Etmccr::number), 0x8d294004U);
    branch(0x8000);
    EXPECT_EQ(sent(), hex(""));
}

TEST_F(PtmProgramming, Objections) {
    Registers r = a15().registers;
    EXPECT_TRUE(objections_to(r).empty());
    r.cr.return_stack = r.cr.branch_broadcast = true;
    r.sqr.value = 3;
    r.tecr1.ranges = 2;
    r.acvr[2].value = r.acvr[3].value = 0x10;
    r.actr[3].hyp = true;
    r.actr[0].access = 0;
    const std::vector<std::string> found = objections_to(r);
    ASSERT_EQ(found.size(), 5U);
    EXPECT_NE(found[2].find("ETMACVR3 and ETMACVR4"), std::string::npos) << found[2];
    EXPECT_NE(found[3].find("ETMACTR3 and ETMACTR4 differ"), std::string::npos) << found[3];
    EXPECT_NE(found[4].find("ETMACTR1"), std::string::npos) << found[4];
}

}  // namespace
}  // namespace waymark::pft
