// Flow from branch stacks over known code: assembled by aarch64-linux-gnu-as, listed by objdump.
#include "waymark/stacks/decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "support/elements.h"
#include "support/synthetic.h"
#include "waymark/flow/blocks.h"
#include "waymark/stacks/protocol.h"

namespace waymark::stacks {
namespace {

//  1000:  52800140  mov w0, #10
//  1004:  7100001f  cmp w0, #0
//  1008:  54000060  b.eq 1014
//  100c:  51000400  sub w0, w0, #1
//  1010:  17fffffd  b 1004
//  1014:  d65f03c0  ret
const std::vector<std::uint8_t> code{0x40, 0x01, 0x80, 0x52, 0x1f, 0x00, 0x00, 0x71, 0x60, 0x00, 0x00, 0x54,
                                     0x00, 0x04, 0x00, 0x51, 0xfd, 0xff, 0xff, 0x17, 0xc0, 0x03, 0x5f, 0xd6};

synthetic::Memory memory() {
    synthetic::Memory m;
    m.sections.push_back({0x1000, code});
    return m;
}

std::vector<std::uint8_t> bytes_of(const std::vector<StackEntry>& entries) {
    std::vector<std::uint8_t> out;
    for (const StackEntry& e : entries) {
        const auto bytes = capture::perf::encode_branch_entry(e);
        out.insert(out.end(), bytes.begin(), bytes.end());
    }
    return out;
}

StackEntry branch(std::uint64_t from, std::uint64_t to) {
    StackEntry out;
    out.from = from;
    out.to = to;
    return out;
}

/// Ranges as `from-to`, with `+` if the branch was taken; other elements by their kind, without contexts.
std::string decode(const std::vector<std::uint8_t>& bytes) {
    const synthetic::Memory code_of = memory();
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    StackDecoder<flow::BatchWriter> decoder({}, code_of, out);
    decoder.feed(bytes);
    decoder.finish();
    out.flush();
    std::string text;
    for (const synthetic::Element& e : sink.take()) {
        if (e.kind == synthetic::Kind::range)
            text += fmt::format("{:x}-{:x}{} ", e.block.start, e.block.start + e.block.bytes, e.taken ? "+" : "");
        if (e.kind == synthetic::Kind::inconsistency) text += "contradiction ";
        if (e.kind == synthetic::Kind::no_memory) text += "no-code ";
        if (e.kind == synthetic::Kind::exception) text += "exception ";
        if (e.kind == synthetic::Kind::gap) text += "gap ";
    }
    return text;
}

TEST(StackDecoder, GoesThroughTheCodeBetweenTwoBranches) {
    // The newest first: two iterations of the loop. The oldest entry gives only its own branch.
    EXPECT_EQ(decode(bytes_of({branch(0x1010, 0x1004), branch(0x1010, 0x1004)})), "1010-1014+ 1004-100c 100c-1014+ ");
    EXPECT_EQ(decode(bytes_of({branch(0x1008, 0x1014), branch(0x1010, 0x1004)})), "1010-1014+ 1004-100c+ ");
}

TEST(StackDecoder, LeavesOutWhatTheCodeContradicts) {
    // Past a branch that is always taken; to an address that the branch cannot reach; backwards; inside an instruction.
    EXPECT_EQ(decode(bytes_of({branch(0x1014, 0x2000), branch(0x1010, 0x1004)})), "1010-1014+ contradiction ");
    EXPECT_EQ(decode(bytes_of({branch(0x1008, 0x1010), branch(0x1010, 0x1004)})), "1010-1014+ contradiction ");
    EXPECT_EQ(decode(bytes_of({branch(0x1000, 0x1004), branch(0x1010, 0x1004)})), "1010-1014+ contradiction ");
    EXPECT_EQ(decode(bytes_of({branch(0x100a, 0x1014), branch(0x1010, 0x1004)})), "1010-1014+ contradiction ");
}

TEST(StackDecoder, CutsTheFlowAtWrongPathsAndMissingAddresses) {
    StackEntry wrong = branch(0x1008, 0x1014);
    wrong.speculation = Speculation::wrong_path;
    EXPECT_EQ(decode(bytes_of({branch(0x1010, 0x1004), wrong, branch(0x1010, 0x1004)})), "1010-1014+ 1010-1014+ ");
    EXPECT_EQ(decode(bytes_of({branch(0x1010, 0x1004), branch(0x1010, 0)})), "1010-1014+ 1010-1014+ ");
}

TEST(StackDecoder, EndsInFrontOfWhatWasInterrupted) {
    StackEntry interrupt = branch(0x100c, 0xffff000000001000);
    interrupt.type = BranchEntryType::interrupt;
    EXPECT_EQ(decode(bytes_of({interrupt, branch(0x1010, 0x1004)})), "1010-1014+ 1004-100c exception ");
}

TEST(StackDecoder, CountsWhatHasNoCodeAndWhatIsCut) {
    EXPECT_EQ(decode(bytes_of({branch(0x3010, 0x3000), branch(0x1014, 0x3000)})), "1014-1018+ no-code ");
    std::vector<std::uint8_t> cut = bytes_of({branch(0x1010, 0x1004)});
    cut.resize(cut.size() + 5);
    EXPECT_EQ(decode(cut), "1010-1014+ gap ");
}

/// Nothing but `nop`.
class Straight final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address, const isa::Space&) const override { return {nop_, 0}; }

private:
    std::vector<std::uint8_t> nop_{0x1f, 0x20, 0x03, 0xd5};
};

class Nowhere final : public flow::Sink {
public:
    void consume(const flow::Batch&) override {}
};

TEST(StackDecoder, RemembersABoundedNumberOfStretches) {
    const Straight straight;
    flow::BlockTable table;
    Nowhere sink;
    flow::BatchWriter out(table, sink);
    using Decoder = StackDecoder<flow::BatchWriter>;
    Decoder decoder({}, straight, out);
    std::vector<StackEntry> entries;
    for (std::uint64_t i = 0; i <= Decoder::most_remembered + 1; ++i) {
        // Each branch is at the target of the preceding one, and all stretches differ.
        StackEntry e = branch(0x10000 + 8 * i, 0x10000 + 8 * i - 8);
        e.type = BranchEntryType::interrupt;
        entries.push_back(e);
    }
    decoder.feed(bytes_of(entries));
    decoder.finish();
    EXPECT_EQ(decoder.packets(), Decoder::most_remembered + 2);
    EXPECT_GT(decoder.remembered(), 0U);
    EXPECT_LE(decoder.remembered(), Decoder::most_remembered);
}

bool recognised(const std::vector<std::uint8_t>& bytes) {
    protocol::Stretch stretch;
    stretch.bytes = bytes;
    protocol::Identity identity;
    return row().identify({stretch}, identity);
}

TEST(StackIdentity, NeedsAddressesAndClearReservedBits) {
    const std::vector<std::uint8_t> good = bytes_of({branch(0x1010, 0x1004), branch(0x1010, 0x1004)});
    EXPECT_TRUE(recognised(good));
    std::vector<std::uint8_t> reserved = good;
    reserved[23] = 0x80;
    EXPECT_FALSE(recognised(reserved));
    std::vector<std::uint8_t> both = good;
    both[16] = 3;  // predicted and mispredicted
    EXPECT_FALSE(recognised(both));
    std::vector<std::uint8_t> address = good;
    address[6] = 1;  // bit 48 alone
    EXPECT_FALSE(recognised(address));
    EXPECT_FALSE(recognised({good.begin(), good.begin() + 24}));
}

}  // namespace
}  // namespace waymark::stacks
