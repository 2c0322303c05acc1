// Undefined instructions that software executes on purpose: their exception is traced by a waypoint update at the
// instruction itself (docs/spec/pft.md, 4.7); without one, no walk passes such an instruction.

#include <gtest/gtest.h>

#include "pft/support.h"
#include "support/elements.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pft {
namespace {

/// 0x1000: NOP; 0x1004: UDF #0; 0x1008: B .
class Code final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value < 0x1000 || address.value >= 0x1000 + bytes_.size()) return {};
        return {Bytes(bytes_).subspan(address.value - 0x1000), 0};
    }

private:
    std::vector<std::uint8_t> bytes_ = test::hex("00 f0 20 e3  f0 00 f0 e7  fe ff ff ea");
};

template <class D>
std::vector<synthetic::Element> decode(std::string_view packets) {
    const Code code;
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    D decoder({}, code, out);
    decoder.feed(test::with_async(test::hex(packets)));
    decoder.finish();
    return sink.take();
}

template <class D>
class UndefinedInstruction : public testing::Test {};
using Decoders = testing::Types<ReferenceDecoder, Decoder>;
TYPED_TEST_SUITE(UndefinedInstruction, Decoders);

TYPED_TEST(UndefinedInstruction, ThatRaisedItsExceptionIsWalkedTo) {
    // I-sync at 0x1000, update to A[7:2] = 1, exception 9 (Undefined) to 4.
    const auto found = decode<TypeParam>("08 00 10 00 00 21  72 03  83 80 80 80 48 12");
    ASSERT_EQ(found.size(), 4U);
    EXPECT_EQ(found[2].kind, synthetic::Kind::range);
    EXPECT_EQ(found[2].block.start, 0x1000U);
    EXPECT_EQ(found[2].block.instructions, 2U);
    EXPECT_EQ(found[3].kind, synthetic::Kind::exception);
    EXPECT_EQ(found[3].b, 0x1008U);
}

TYPED_TEST(UndefinedInstruction, IsNotWalkedThrough) {
    // An atom can only belong to the branch after it.
    const auto found = decode<TypeParam>("08 00 10 00 00 21  84");
    ASSERT_EQ(found.size(), 5U);
    EXPECT_EQ(found[2].block.instructions, 1U);
    EXPECT_EQ(found[3].kind, synthetic::Kind::inconsistency);
    EXPECT_EQ(found[3].a, static_cast<std::uint64_t>(flow::Conflict::undefined_reached));
    EXPECT_EQ(found[3].b, 0x1004U);
    EXPECT_EQ(found[4].kind, synthetic::Kind::atoms);
    EXPECT_EQ(found[4].a, 1U);
}

}  // namespace
}  // namespace waymark::pft
