// Paths that decoders remember, where the same bytes at the same position lead elsewhere: short and exact match
// addresses take bits of the three addresses before (docs/spec/etm4.md, section 6), and returns go where the return
// stack says.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "etm4/decoding.h"
#include "etm4/support.h"
#include "support/damage.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/synthetic.h"

namespace waymark::etm4 {
namespace {

using synthetic::Random;

constexpr std::uint64_t distributor = 0x0200'0000;

/// A64 code at places whose addresses differ in two bits. At each place there are, 64 bytes apart:
///
///     0x00    B distributor, if it is within reach, or NOP and BR
///     0x40    BR
///     0x80    BL function, if it is within reach, or NOP and BR; then BR
///
/// At the distributor is BR, and RET at the function.
struct DistantPlaces {
    static constexpr std::uint64_t function = distributor + 0x100;
    std::array<std::uint64_t, 4> places{};
    synthetic::Memory memory;

    DistantPlaces(unsigned one_bit, unsigned other_bit) {
        for (unsigned i = 0; i < places.size(); ++i)
            places[i] = 0x0100'0000 ^ std::uint64_t{i & 1U} << one_bit ^ std::uint64_t{i >> 1} << other_bit;
        std::array<std::uint64_t, 4> ascending = places;
        std::sort(ascending.begin(), ascending.end());
        add({distributor, {br}});
        add({function, {ret}});
        for (const std::uint64_t place : ascending) {
            add({place, {near(place) ? branch(0x14000000, place, distributor) : nop, br}});
            add({place + 0x40, {br}});
            add({place + 0x80, {near(place) ? branch(0x94000000, place + 0x80, function) : nop, br}});
        }
        std::sort(memory.sections.begin(), memory.sections.end(),
                  [](const auto& a, const auto& b) { return a.address < b.address; });
    }
    [[nodiscard]] static bool near(std::uint64_t place) { return place < 0x0800'0000; }

private:
    static constexpr std::uint32_t nop = 0xd503201f, br = 0xd61f0000, ret = 0xd65f03c0;
    static std::uint32_t branch(std::uint32_t opcode, std::uint64_t from, std::uint64_t to) {
        return opcode | (static_cast<std::uint32_t>(to - from) >> 2 & 0x3ffffffU);
    }
    void add(const std::pair<std::uint64_t, std::vector<std::uint32_t>>& code) {
        synthetic::Memory::Section section{code.first, {}};
        for (const std::uint32_t word : code.second)
            for (unsigned n = 0; n < 4; ++n) section.bytes.push_back(static_cast<std::uint8_t>(word >> 8 * n));
        memory.sections.push_back(std::move(section));
    }
};

/// A random execution of the program: the beginnings of executed blocks, and the trace.
class Wandering {
public:
    Wandering(const DistantPlaces& program, bool return_stack, std::uint64_t seed)
        : program_(program), return_stack_(return_stack), random_(seed) {
        bytes = test::with_async({0x01, 0x00, 0x04, 0x85});  // Trace Info, Trace On, Address with Context
        const std::uint64_t at = program_.places[0];
        put_address(at, 8);
        bytes.push_back(0x31);  // Non-secure, AArch64, EL1
        recent_.fill(at);
        at_ = at;
    }
    std::vector<std::uint8_t> bytes;
    std::vector<std::uint64_t> starts;

    /// `forgotten`: of 10,000 returns, this number is sent with an address, so the stack keeps their calls and becomes
    /// full.
    void run(unsigned steps, std::uint32_t forgotten) {
        forgotten_ = forgotten;
        for (unsigned i = 0; i < steps; ++i) step();
    }

private:
    void step() {
        starts.push_back(at_);
        atom();
        const std::uint64_t place = at_ & ~std::uint64_t{0xff};
        const bool direct = at_ != distributor && at_ != DistantPlaces::function && DistantPlaces::near(place);
        if (direct && at_ == place) {
            at_ = distributor;
            return;
        }
        if (direct && at_ == place + 0x80) {
            if (return_stack_) {
                if (calls_.size() == 16) calls_.erase(calls_.begin());
                calls_.push_back(at_ + 4);
            }
            at_ = DistantPlaces::function;
            return;
        }
        if (at_ == DistantPlaces::function && !calls_.empty() && !random_.chance(forgotten_)) {
            at_ = calls_.back();
            calls_.pop_back();
            return;
        }
        at_ = somewhere();
        send(at_);
    }
    /// Near the newest address more often than not.
    std::uint64_t somewhere() {
        const std::uint64_t offset = random_.below(3) * 0x40;
        if (random_.chance(3000)) return recent_[random_.below(3)];
        if (random_.chance(6000) && (recent_[0] & ~std::uint64_t{0x1ff}) != distributor)
            return (recent_[0] & ~std::uint64_t{0xff}) + offset;
        if (random_.chance(3000)) return distributor;
        return program_.places[random_.below(4)] + offset;
    }
    /// In any form in which it can be sent.
    void send(std::uint64_t address) {
        const auto recent = std::find(recent_.begin(), recent_.begin() + sent_, address);
        const std::uint64_t changed = address ^ recent_[0];
        if (recent != recent_.begin() + sent_ && !random_.chance(2000)) {
            bytes.push_back(static_cast<std::uint8_t>(0x90 + (recent - recent_.begin())));
        } else if (changed < 1U << 17 && !random_.chance(1000)) {
            bytes.push_back(0x95);
            const bool two = changed >= 1U << 9;
            bytes.push_back(static_cast<std::uint8_t>((address >> 2 & 0x7fU) | (two ? 0x80U : 0U)));
            if (two) bytes.push_back(static_cast<std::uint8_t>(address >> 9));
        } else if (changed >> 32 == 0 && !random_.chance(1000)) {
            bytes.push_back(0x9a);
            put_address(address, 4);
        } else {
            bytes.push_back(0x9d);
            put_address(address, 8);
        }
        push(address);
    }
    void put_address(std::uint64_t address, unsigned size) {
        bytes.push_back(address >> 2 & 0x7fU);
        bytes.push_back(address >> 9 & 0x7fU);
        for (unsigned n = 2; n < size; ++n) bytes.push_back(static_cast<std::uint8_t>(address >> 8 * n));
    }
    /// E, each in a packet of its own.
    void atom() { bytes.push_back(0xf7); }
    void push(std::uint64_t address) {
        sent_ = std::min(sent_ + 1, 3);
        recent_[2] = recent_[1];
        recent_[1] = recent_[0];
        recent_[0] = address;
    }

    const DistantPlaces& program_;
    const bool return_stack_;
    Random random_;
    std::uint32_t forgotten_ = 0;
    std::uint64_t at_ = 0;
    std::array<std::uint64_t, 3> recent_{};  // the newest first
    int sent_ = 1;
    std::vector<std::uint64_t> calls_;
};

Config plain_config(bool return_stack) {
    Config config = test::etmv4();
    config.return_stack = return_stack;
    config.cycle_counting = config.timestamps = false;
    return config;
}

void check(const DistantPlaces& program, bool return_stack, std::uint64_t seed) {
    const Config config = plain_config(return_stack);
    Wandering ran(program, return_stack, seed);
    ran.run(sized(3000U, 600U), 500);
    const auto elements = test::decode<ReferenceDecoder>(ran.bytes, config, program.memory);
    std::vector<std::uint64_t> starts;
    for (const synthetic::Element& e : elements)
        if (e.kind == synthetic::Kind::range) starts.push_back(e.block.start);
    ASSERT_EQ(starts, ran.starts);
    for (unsigned i = 0; i < 5; ++i)  // all ways to keep paths
        ASSERT_EQ(synthetic::difference(test::decode<Decoder>(ran.bytes, config, program.memory), elements), "");
    test::expect_agrees(8, elements, ran.bytes, config, program.memory);
}

TEST(Etm4Paths, OfTheSameBytesAfterOtherAddressesAreNotTaken) {
    for (const bool return_stack : {false, true})
        for (const auto& [one, other] : {std::pair{9U, 10U},
                                         {9U, 16U},
                                         {10U, 17U},
                                         {15U, 16U},
                                         {16U, 17U},
                                         {16U, 18U},
                                         {17U, 20U},
                                         {23U, 22U},
                                         {18U, 31U},
                                         {12U, 32U},
                                         {16U, 33U},
                                         {31U, 32U},
                                         {32U, 33U},
                                         {17U, 48U},
                                         {40U, 63U}})
            for (std::uint64_t seed = 1; seed <= 3; ++seed) {
                SCOPED_TRACE("bits " + std::to_string(one) + " and " + std::to_string(other) +
                             (return_stack ? ", return stack" : ""));
                ASSERT_NO_FATAL_FAILURE(check(DistantPlaces(one, other), return_stack, seed));
            }
}

TEST(Etm4Paths, OfDamagedStreamsAreFollowedAsByTheReference) {
    const Config config = plain_config(true);
    const DistantPlaces program(9, 16);
    Random random(7);
    constexpr unsigned damages = 20;
    for (std::uint64_t seed = 1; seed * damages <= test::programs(sized(1200U, 240U)); ++seed) {
        Wandering ran(program, true, seed);
        ran.run(300, seed % 2 == 0 ? 5000 : 1000);
        for (unsigned i = 0; i < damages; ++i) {
            const std::vector<std::uint8_t> bytes = synthetic::damage(ran.bytes, random).bytes;
            SCOPED_TRACE("seed " + std::to_string(seed) + ", damage " + std::to_string(i));
            const auto elements = test::decode<ReferenceDecoder>(bytes, config, program.memory);
            for (unsigned way = 0; way < 5; ++way)
                ASSERT_EQ(synthetic::difference(test::decode<Decoder>(bytes, config, program.memory), elements), "");
        }
    }
}

// A call and its return change nothing, except that a full stack loses its oldest entry. A unit whose stack is empty
// sends the address of a return, so only a stream without this address shows the difference.
TEST(Etm4Paths, OfCallsDropTheOldestEntryOfAFullReturnStack) {
    const Config config = plain_config(true);
    const DistantPlaces program(9, 16);
    const std::uint64_t call = program.places[0] + 0x80;
    std::vector<std::uint8_t> bytes = test::with_async({0x01, 0x00, 0x04, 0x85});
    const auto put_address = [&](std::uint64_t address) {
        bytes.push_back(address >> 2 & 0x7fU);
        bytes.push_back(address >> 9 & 0x7fU);
        for (unsigned n = 2; n < 8; ++n) bytes.push_back(static_cast<std::uint8_t>(address >> 8 * n));
    };
    const auto repeat = [&](unsigned times, const std::vector<std::uint8_t>& packets) {
        for (; times != 0; --times) bytes.insert(bytes.end(), packets.begin(), packets.end());
    };
    constexpr std::uint8_t e = 0xf7, newest = 0x90;
    // BL, RET without an address, BR to the BR at 0x40, which goes to the function.
    const auto go_to_function = [&] {
        repeat(1, {e, e, e, 0x95, 0x10, e, 0x9d});
        put_address(DistantPlaces::function);
    };
    put_address(call);
    bytes.push_back(0x31);
    repeat(20, {e, e, e, newest});  // BL, RET without an address, BR back to the BL
    for (unsigned i = 0; i < 3; ++i) {
        go_to_function();
        repeat(1, {e, 0x92});  // RET with the address of the BL
    }
    repeat(16, {e, e, newest});  // BL, RET with the address of the BL: its call stays on the stack
    go_to_function();
    repeat(40, {e, e, newest});  // RET to each call that the stack still has, BR to the function
    const auto elements = test::decode<ReferenceDecoder>(bytes, config, program.memory);
    const auto returned = std::count_if(elements.begin(), elements.end(), [&](const synthetic::Element& element) {
        return element.kind == synthetic::Kind::range && element.block.start == call + 4;
    });
    EXPECT_EQ(returned, 20 + 3 + 1 + 15);
    test::expect_all_agree(elements, bytes, config, program.memory);
    for (unsigned way = 0; way < 5; ++way)
        ASSERT_EQ(synthetic::difference(test::decode<Decoder>(bytes, config, program.memory), elements), "");
}

}  // namespace
}  // namespace waymark::etm4
