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
