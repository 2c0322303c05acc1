// A64 instructions as tracing sees them; assembled by aarch64-linux-gnu-as, targets as objdump lists them.
#include <gtest/gtest.h>

#include <vector>

#include "waymark/isa/decode_instr.h"

namespace waymark::isa {
namespace {

struct Known {
    std::uint64_t address;
    std::uint32_t word;
    Instruction expected;
};
Instruction direct(std::uint64_t target, bool link = false, bool conditional = false) {
    return {.target = {target},
            .bytes = 4,
            .waypoint = Waypoint::direct,
            .target_isa = Isa::a64,
            .link = link,
            .conditional = conditional};
}
Instruction indirect(bool link = false) { return {.bytes = 4, .waypoint = Waypoint::indirect, .link = link}; }
Instruction function_return() { return {.bytes = 4, .waypoint = Waypoint::indirect, .function_return = true}; }

TEST(A64Waypoints, AreAsObjdumpListsThem) {
    const Instruction plain{.bytes = 4};
    Instruction undefined = plain, eret = indirect();
    undefined.undefined = true;
    eret.exception_return = true;
    const std::vector<Known> all{
        {0xffff8000fffffff0, 0xa9bf7bfd, plain},                                    // stp x29, x30, [sp, #-16]!
        {0xffff8000fffffff4, 0x94000005, direct(0xffff800100000008, true)},         // bl
        {0xffff8000fffffff8, 0xb4000040, direct(0xffff800100000000, false, true)},  // cbz x0
        {0xffff8000fffffffc, 0xd63f0020, indirect(true)},                           // blr x1
        {0xffff800100000004, 0xd65f03c0, function_return()},                        // ret
        {0xffff800100000008,
         0xd5033fdf,
         {.target = {0xffff80010000000c}, .bytes = 4, .waypoint = Waypoint::barrier, .target_isa = Isa::a64}},  // isb
        {0xffff80010000000c, 0x54ffffe1, direct(0xffff800100000008, false, true)},                              // b.ne
        {0xffff800100000010, 0x372fff03, direct(0xffff8000fffffff0, false, true)},  // tbnz w3, #5
        {0xffff800100000014, 0xd65f0bff, function_return()},                        // retaa
        {0xffff800100000018, 0xd61f0040, indirect()},                               // br x2
        {0xffff80010000001c, 0xd61f089f, indirect()},                               // braaz x4
        {0xffff800100000020, 0xd73f08bf, indirect(true)},                           // blraa x5, sp
        {0xffff800100000024, 0xd69f03e0, eret},                                     // eret
        {0xffff800100000028, 0xd4000001, plain},                                    // svc #0
        {0xffff80010000002c, 0xd5033f9f, plain},                                    // dsb sy
        {0xffff800100000030, 0x17fffff0, direct(0xffff8000fffffff0)},               // b
        {0xffff800100000034, 0x00000000, undefined},                                // udf #0
        {0xffff800100000038, 0xd503207f, plain},                                    // wfi
    };
    for (const Known& known : all)
        EXPECT_EQ(decode_instr({known.address}, Isa::a64, known.word, false, {}), known.expected)
            << std::hex << known.word;
}

// docs/spec/etm4.md, 15.1: instructions unknown to binutils 2.40, by hand from the encodings.
TEST(A64Waypoints, OfArmv95AndLater) {
    constexpr std::uint64_t at = 0x40'0000;
    Instruction texit = indirect();
    texit.exception_return = true;
    const Instruction plain{.bytes = 4};
    const std::vector<Known> all{
        {at, 0x74000020, direct(at + 4, false, true)},      // cbgt w0, w0, . + 4
        {at, 0x74c23fe1, direct(at - 4, false, true)},      // cbeq w1, w2, . - 4
        {at, 0x7402a001, direct(at - 0x400, false, true)},  // cbbgt, imm9 = 0x100: the farthest backwards
        {at, 0x7402dfe1, direct(at + 0x3fc, false, true)} /* cbhgt, imm9 = 0x0ff */,
        {at, 0x74024001, plain},                        // bits 15:14 = 01: none
        {at, 0xf4420041, direct(at + 8, false, true)},  // cbge x1, x2, . + 8
        {at, 0xf4428041, plain},                        // no bytes and halfwords of X
        {at, 0x75010041, direct(at + 8, false, true)},  // cbgt w1, #2, . + 8
        {at, 0xf5010041, direct(at + 8, false, true)},  // cbgt x1, #2, . + 8
        {at, 0x75014041, plain},                        // bit 14 = 1: none
        {at, 0x54000051, direct(at + 8, false, true)},  // bc.ne . + 8
        {at, 0x5500003f, function_return()},            // retaasppc . - 4
        {at, 0x5520003f, function_return()},            // retabsppc . - 4
        {at, 0x55400000, plain},                        // not 11111 in bits 4:0
        {at, 0xd65f0be1, function_return()},            // retaasppcr x1
        {at, 0xd65f0fe1, function_return()},            // retabsppcr x1
        {at, 0xd65f0fff, function_return()},            // retab
        {at, 0xd6ff03e0, texit},                        // texit
        {at, 0xd6ff07e0, texit},                        // texit nb
    };
    for (const Known& known : all)
        EXPECT_EQ(decode_instr({known.address}, Isa::a64, known.word, false, {}), known.expected)
            << std::hex << known.word;
}

TEST(A64Waypoints, WaitAndTransactionStartWhereTheUnitTracesThem) {
    const Instruction plain{.bytes = 4};
    Instruction wait{.target = {4}, .bytes = 4, .waypoint = Waypoint::barrier, .target_isa = Isa::a64, .wait = true};
    for (const std::uint32_t word : {0xd503205fU, 0xd503207fU, 0xd5031000U, 0xd503103fU}) {  // wfe, wfi, wfet, wfit
        EXPECT_EQ(decode_instr({0}, Isa::a64, word, false, {}), plain) << std::hex << word;
        EXPECT_EQ(decode_instr({0}, Isa::a64, word, false, {.wait_waypoints = true}), wait) << std::hex << word;
    }
    EXPECT_EQ(decode_instr({0}, Isa::a64, 0xd503203f, false, {.wait_waypoints = true}), plain);  // yield
    Instruction start{.target = {4}, .bytes = 4, .waypoint = Waypoint::barrier, .target_isa = Isa::a64};
    start.transaction_start = true;
    const DecodeOptions transactions{.transaction_start_waypoints = true};
    EXPECT_EQ(decode_instr({0}, Isa::a64, 0xd5233065, false, {}), plain);
    EXPECT_EQ(decode_instr({0}, Isa::a64, 0xd5233065, false, transactions), start);  // tstart x5
    for (const std::uint32_t word :
         {0xd503307fU, 0xd4600000U, 0xd5233165U, 0xd50330ffU})  // tcommit, tcancel, ttest, sb
        EXPECT_EQ(decode_instr({0}, Isa::a64, word, false, transactions), plain) << std::hex << word;
}

TEST(A64Waypoints, ExceptionGeneratingInstructionsAreNone) {
    for (const std::uint32_t word : {0xd4000001U, 0xd4000002U, 0xd4000003U, 0xd4200000U, 0xd4400000U})
        EXPECT_EQ(decode_instr({0}, Isa::a64, word, false, {.wait_waypoints = true}), Instruction{.bytes = 4})
            << std::hex << word;  // svc, hvc, smc, brk, hlt
}

TEST(T32Waypoints, OfArmv81M) {
    const auto branch = [](std::uint64_t target, bool conditional) {
        return Instruction{.target = {target},
                           .bytes = 4,
                           .waypoint = Waypoint::direct,
                           .target_isa = Isa::t32,
                           .conditional = conditional};
    };
    // Assembled and listed by arm-linux-gnueabihf-as and objdump.
    const std::vector<Known> all{
        {0x1000, 0xf00fc007, branch(0x0ff8, true)},   // le lr, . - 8
        {0x1004, 0xf02fc007, branch(0x0ffc, false)},  // le . - 8
        {0x1008, 0xf01fc007, branch(0x1000, true)},   // letp lr, . - 8
        {0x100c, 0xf041c003, branch(0x1014, true)},   // wls lr, r1, . + 8
        {0x1010, 0xf002c005, branch(0x101c, true)},   // wlstp.8 lr, r2, . + 12
        {0x1014, 0xf022c005, branch(0x1020, true)},   // wlstp.32 lr, r2, . + 12
        {0x1018, 0xf00fc801, branch(0x101a, true)},   // le lr, . + 2: bit 11 is the lowest of the offset
        {0x1018, 0xf043e001, {.bytes = 4}},           // dls lr, r3
        {0x101c, 0xf00fe001, {.bytes = 4}},           // lctp
        {0x1020, 0xf140e031, {.bytes = 4}},           // bf
    };
    for (const Known& known : all)
        EXPECT_EQ(decode_instr({known.address}, Isa::t32, known.word, true, {}), known.expected)
            << std::hex << known.word;
}

TEST(T32Waypoints, WaitWhereTheUnitTracesIt) {
    const auto wait = [](std::uint64_t target, std::uint8_t bytes, Isa isa) {
        return Instruction{
            .target = {target}, .bytes = bytes, .waypoint = Waypoint::barrier, .target_isa = isa, .wait = true};
    };
    const DecodeOptions waits{.wait_waypoints = true};
    for (const std::uint32_t half : {0xbf20U, 0xbf30U}) {
        EXPECT_EQ(decode_instr({0}, Isa::t32, half, false, waits), wait(2, 2, Isa::t32));
        EXPECT_EQ(decode_instr({0}, Isa::t32, half, false, {}), Instruction{.bytes = 2});
    }
    EXPECT_EQ(decode_instr({0}, Isa::t32, 0xf3af8003, true, waits), wait(4, 4, Isa::t32));
    EXPECT_EQ(decode_instr({0}, Isa::a32, 0xe320f002, false, waits), wait(4, 4, Isa::a32));
    EXPECT_EQ(decode_instr({0}, Isa::a32, 0xe320f003, false, {}), Instruction{.bytes = 4});
    EXPECT_EQ(decode_instr({0}, Isa::a32, 0xe320f004, false, waits), Instruction{.bytes = 4});  // sev
}

TEST(A64Waypoints, TargetsWrapAt64Bits) {
    EXPECT_EQ(decode_instr({0}, Isa::a64, 0x17fffff0, false, {}).target, Address{0xffffffffffffffc0});
}

/// One word at the end of a section, cut by its end.
class Cut final : public CodeReader {
public:
    [[nodiscard]] Code at(Address address, const Space&) const override {
        static constexpr std::uint8_t word[] = {0xc0, 0x03, 0x5f, 0xd6};
        constexpr std::uint64_t first = 0xffffffffe;
        if (address.value < first || address.value >= first + 4) return {};
        const auto from = static_cast<std::size_t>(address.value - first);
        return {Bytes(word).subspan(from, from < 2 ? 2 - from : 4 - from), from < 2 ? 1U : 2U};
    }
};

TEST(A64Waypoints, AreFetchedAbove4GB) {
    EXPECT_EQ(fetch(Cut{}, {}, {0xffffffffe}, Isa::a64), (Fetched{0xd65f03c0, 4, 1}));
    EXPECT_EQ(fetch(Cut{}, {}, {0x1000000000}, Isa::a64), Fetched{});
    const auto ret = decode_at(Cut{}, {}, {0xffffffffe}, Isa::a64, {});
    ASSERT_TRUE(ret);
    EXPECT_TRUE(ret->function_return);
}

}  // namespace
}  // namespace waymark::isa
