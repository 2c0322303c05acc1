#include "waymark/record/a64_system.h"

#include <gtest/gtest.h>

#include "waymark/record/ring.h"

namespace waymark::record {
namespace {

using flow::ExceptionClass;

std::uint32_t at_el(unsigned el) { return el << words::el_bit; }

// Types of exceptions: docs/spec/etm4-registers.md, 2.13.
TEST(A64System, ClassesOfExceptions) {
    EXPECT_EQ(a64_exception(5, 0x15, true), ExceptionClass::irq);  // the syndrome belongs to an older exception
    EXPECT_EQ(a64_exception(6, 0, true), ExceptionClass::fiq);
    EXPECT_EQ(a64_exception(2, 0x15, true), ExceptionClass::supervisor_call);
    EXPECT_EQ(a64_exception(11, 0x16, true), ExceptionClass::hypervisor_call);
    EXPECT_EQ(a64_exception(13, 0x17, true), ExceptionClass::monitor_call);
    EXPECT_EQ(a64_exception(1, 0x17, false), ExceptionClass::trap);  // HCR_EL2.TSC
    EXPECT_EQ(a64_exception(1, 0x00, false), ExceptionClass::trap);
    EXPECT_EQ(a64_exception(1, 0x18, false), ExceptionClass::trap);
    EXPECT_EQ(a64_exception(1, 0x0d, false), ExceptionClass::prefetch_abort);
    EXPECT_EQ(a64_exception(3, 0x20, true), ExceptionClass::prefetch_abort);
    EXPECT_EQ(a64_exception(4, 0x25, false), ExceptionClass::data_abort);
    EXPECT_EQ(a64_exception(1, 0x22, true), ExceptionClass::alignment);
    EXPECT_EQ(a64_exception(7, 0x3c, false), ExceptionClass::breakpoint);
    EXPECT_EQ(a64_exception(7, 0x33, true), ExceptionClass::breakpoint);
    EXPECT_EQ(a64_exception(4, 0x35, false), ExceptionClass::watchpoint);
}

TEST(A64System, EachRegisterIsWrittenByItself) {
    A64State state;
    state.state(at_el(2));
    state.wrote(A64Register::scr_el3, std::uint64_t{1} << 34);  // E2H in HCR_EL2
    state.wrote(A64Register::contextidr_el1, 7);
    EXPECT_EQ(state.context().context_id, 7U);
    state.wrote(A64Register::hcr_el2, std::uint64_t{1} << 34);
    state.wrote(A64Register::contextidr_el1, 9);
    EXPECT_EQ(state.context().context_id, 7U) << "that name is CONTEXTIDR_EL2 now";
    state.wrote(A64Register::contextidr_el12, 8);
    EXPECT_EQ(state.context().context_id, 8U);
    state.wrote(A64Register::contextidr_el2, 6);
    EXPECT_EQ(state.context().context_id, 8U);
}

TEST(A64System, SecurityStateBelowEl3IsThatOfScr) {
    A64State state;
    EXPECT_EQ(state.context().el, 3);
    EXPECT_FALSE(state.context().ns);
    state.wrote(A64Register::scr_el3, 0x501);
    EXPECT_FALSE(state.context().ns);  // EL3 stays Secure
    state.state(at_el(1));
    EXPECT_TRUE(state.context().ns);
    EXPECT_EQ(state.context().el, 1);
    state.state(at_el(3));
    EXPECT_FALSE(state.context().ns);
    state.wrote(A64Register::scr_el3, 0x500);
    state.state(at_el(2));
    EXPECT_FALSE(state.context().ns);
    EXPECT_TRUE(state.context().hyp);
    // The state in the log takes precedence over the followed state.
    state.state(at_el(1) | words::ns_known | words::ns);
    EXPECT_TRUE(state.context().ns);
}

TEST(A64System, TheContextIdIsThatOfEl1) {
    A64State state;
    EXPECT_EQ(state.context().context_id, 0U);
    state.state(at_el(1));
    state.wrote(A64Register::contextidr_el1, 0x1'0000'0007);
    EXPECT_EQ(state.context().context_id, 7U);
    state.state(at_el(2));
    state.wrote(A64Register::contextidr_el1, 8);
    EXPECT_EQ(state.context().context_id, 8U);
    state.wrote(A64Register::hcr_el2, std::uint64_t{1} << 34);  // a host at EL2 writes its own register
    state.wrote(A64Register::contextidr_el1, 9);
    EXPECT_EQ(state.context().context_id, 8U);
    state.wrote(A64Register::contextidr_el12, 10);
    EXPECT_EQ(state.context().context_id, 10U);
}

TEST(A64System, TheVmidIsTheRegisterOfTheUnit) {
    A64State none, guest(flow::VmidRegister::vttbr_el2), host(flow::VmidRegister::contextidr_el2);
    EXPECT_EQ(guest.context().vmid, 0U);
    for (A64State* const state : {&none, &guest, &host}) {
        state->state(at_el(2));
        state->wrote(A64Register::vttbr_el2, 0x0123'4567'89ab'cdef);
        state->wrote(A64Register::contextidr_el2, 0x1'0000'0008);
    }
    EXPECT_EQ(none.context().vmid, std::nullopt);
    EXPECT_EQ(guest.context().vmid, 0x123U);
    EXPECT_EQ(host.context().vmid, 8U);
    // In a host at EL2, CONTEXTIDR_EL1 is another name for that register.
    host.wrote(A64Register::hcr_el2, std::uint64_t{1} << 34);
    host.wrote(A64Register::contextidr_el1, 9);
    EXPECT_EQ(host.context().vmid, 9U);
    EXPECT_EQ(host.context().context_id, 0U);
}

TEST(A64System, RegistersThatAreWritten) {
    EXPECT_EQ(a64_register_written(0xd51c2101), A64Register::vttbr_el2);       // msr vttbr_el2, x1
    EXPECT_EQ(a64_register_written(0xd51cd022), A64Register::contextidr_el2);  // msr contextidr_el2, x2
    EXPECT_EQ(a64_register_written(0xd53c2101), A64Register::none);            // mrs x1, vttbr_el2
}

TEST(A64System, PlacesAfterWrites) {
    constexpr std::uint32_t nop = 0xd503201f, scr = 0xd51e1105, context_id = 0xd518d03f, vttbr = 0xd51c2100;
    std::vector<std::uint8_t> bytes;
    for (const std::uint32_t word : {nop, scr, vttbr, context_id, nop})
        for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> (8 * i)));
    image::MemoryMap memory;
    ASSERT_TRUE(memory.add_bytes(bytes, {0x40080000}).has_value());
    const std::vector<std::pair<Address, Address>> expected{{{0x40080008}, {0x4008000c}}, {{0x40080010}, {0x40080014}}};
    EXPECT_EQ(after_register_writes(memory, {}), expected);
    EXPECT_EQ(after_register_writes(memory, {.vmid = true}),
              (std::vector<std::pair<Address, Address>>{
                  expected[0], {{0x4008000c}, {0x40080010}}, {{0x40080010}, {0x40080014}}}));
    EXPECT_EQ(a64_register_source(scr), 5U);
    EXPECT_EQ(a64_register_source(context_id), 31U);
}

TEST(A64System, PlacesForProfiling) {
    constexpr std::uint32_t nop = 0xd503201f, pmscr = 0xd5189903;
    std::vector<std::uint8_t> bytes;
    for (unsigned i = 0; i < 0x400; i += 4)
        for (unsigned b = 0; b < 4; ++b)
            bytes.push_back(static_cast<std::uint8_t>((i == 0x10 ? pmscr : nop) >> (8 * b)));
    image::MemoryMap memory;
    ASSERT_TRUE(memory.add_bytes(bytes, {0x40080000}).has_value());
    EXPECT_TRUE(programs_profiling(memory));
    EXPECT_TRUE(after_register_writes(memory, {.vmid = true}).empty());
    // After the write, and at both entries of what may be a vector table.
    EXPECT_EQ(after_register_writes(memory, {.profiling = true}),
              (std::vector<std::pair<Address, Address>>{
                  {{0x40080000}, {0x40080004}}, {{0x40080014}, {0x40080018}}, {{0x40080200}, {0x40080204}}}));
}

TEST(A64System, NoMoreWatchedWritesThanQemuTakesArguments) {
    std::vector<std::uint8_t> bytes;
    for (unsigned n = 0; n < 1000; ++n) bytes.insert(bytes.end(), {0x00, 0x11, 0x1e, 0xd5});  // MSR SCR_EL3, X0
    image::MemoryMap memory;
    ASSERT_TRUE(memory.add_bytes(bytes, {0x8000}).has_value());
    EXPECT_EQ(after_register_writes(memory, {}).size(), most_watched_writes);
}

}  // namespace
}  // namespace waymark::record
