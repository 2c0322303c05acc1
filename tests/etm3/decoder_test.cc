// Packets and a program → flow (docs/spec/etmv3.md, 7).
#include "waymark/etm3/decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "support/bytes.h"
#include "waymark/etm3/encoder.h"
#include "waymark/flow/summary.h"

namespace waymark::etm3 {
namespace {

using waymark::test::hex;

/// A32 at 0x8000: mov r0, r0; beq 0x8010; mov r0, r0; bx lr; udf #0; b 0x8000
class Program final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value < 0x8000 || address.value >= 0x8000 + sizeof bytes) return {};
        return {Bytes(bytes).subspan(address.value - 0x8000), 0};
    }
    static constexpr std::uint8_t bytes[] = {0x00, 0x00, 0xa0, 0xe1, 0x01, 0x00, 0x00, 0x0a, 0x00, 0x00, 0xa0, 0xe1,
                                             0x1e, 0xff, 0x2f, 0xe1, 0xf0, 0x00, 0xf0, 0xe7, 0xf9, 0xff, 0xff, 0xea};
};

class Lines final : public flow::Sink {
public:
    void consume(const flow::Batch& batch) override {
        flow::in_order(
            batch,
            [&](const flow::Block& b, const flow::Range& r) {
                text += fmt::format("{:x}{}{} ", b.start, r.taken() ? "E" : "N",
                                    r.cycles == flow::no_cycles ? "" : std::to_string(r.cycles));
            },
            [&](const flow::Event& e) {
                if (const auto* x = std::get_if<flow::Exception>(&e.what))
                    text += fmt::format("[{} back to {:x}] ", x->type->name,
                                        x->preferred_return ? x->preferred_return->value : 0);
                else if (const auto* a = std::get_if<flow::Atoms>(&e.what))
                    text += fmt::format("[unplaced {}/{}] ", a->taken, a->not_taken);
                else if (const auto* i = std::get_if<flow::Inconsistency>(&e.what))
                    text += fmt::format("[{}] ", flow::name(i->conflict));
                else if (const auto* c = std::get_if<flow::Cycles>(&e.what))
                    text += fmt::format("[{} cycles] ", *c->cycles);
                else if (std::holds_alternative<flow::ExceptionReturn>(e.what))
                    text += "[return] ";
                else if (const auto* m = std::get_if<flow::NoMemory>(&e.what))
                    text += fmt::format("[no memory {:x}] ", m->address.value);
                else if (const auto* on = std::get_if<flow::TraceOn>(&e.what))
                    text += fmt::format("[on {}] ", static_cast<int>(on->reason));
                else if (std::holds_alternative<Gap>(e.what))
                    text += "[gap] ";
            });
    }
    std::string text;
};

template <class AnyDecoder>
std::string decoded(const std::vector<std::uint8_t>& bytes, const Config& config, std::size_t chunk) {
    Lines lines;
    flow::BlockTable table;
    flow::BatchWriter out(table, lines);
    const Program program;
    AnyDecoder decoder(config, program, out);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        decoder.feed(Bytes(bytes).subspan(at, std::min(chunk, bytes.size() - at)));
    decoder.finish();
    return lines.text;
}
std::string decoded_in_parallel(const std::vector<std::uint8_t>& bytes, const Config& config, unsigned workers) {
    Lines lines;
    flow::BlockTable table;
    const Program program;
    ParallelDecoder decoder(config, program, table, lines, {.workers = workers, .piece_bytes = 16});
    decoder.feed(bytes);
    decoder.finish();
    return lines.text;
}

/// The flow from all decoders, after an A-sync and an I-sync at 0x8000 in A32.
std::string flow_of(std::string_view packets, const Config& config = {}) {
    const auto bytes = hex("00 00 00 00 00 80 08 21 00 80 00 00 " + std::string(packets));
    const std::string reference = decoded<ReferenceDecoder>(bytes, config, 1000);
    for (const std::size_t chunk : {1U, 3U, 1000U}) {
        EXPECT_EQ(decoded<ReferenceDecoder>(bytes, config, chunk), reference);
        EXPECT_EQ(decoded<Decoder>(bytes, config, chunk), reference);
    }
    for (const unsigned workers : {1U, 2U, 3U}) EXPECT_EQ(decoded_in_parallel(bytes, config, workers), reference);
    const std::string begin = "[on 1] ";
    EXPECT_TRUE(reference.starts_with(begin)) << reference;
    return reference.substr(std::min(begin.size(), reference.size()));
}

TEST(Etm3Decoder, EachInstructionHasAnOutcome) {
    // E, N, N (of an instruction that is no branch), E of BX, and its address 0x8000.
    EXPECT_EQ(flow_of("c4 c0 84 01 84"), "8000E 8004N 8008N 800cE 8000E ");
    // BEQ taken to 0x8010, which is permanently undefined: that instruction's exception cancels it.
    EXPECT_EQ(flow_of("8c 81 80 80 80 48 32"), "8000E 8004E [Undefined Instruction back to 8010] ");
    // If nothing cancels it, trace and program contradict each other.
    EXPECT_EQ(flow_of("8c 0c"), "8000E 8004E [undefined instruction] [unplaced 1/0] ");
}

TEST(Etm3Decoder, CyclesComeWithInstructionsOrApart) {
    const Config config{.cycle_accurate = true};
    EXPECT_EQ(flow_of("bc 84 e4 82", config),
              "[8 cycles] 8000E1 8004E2 [undefined instruction] [unplaced 1/0] [1 cycles] [unplaced 1/0] ");
    EXPECT_EQ(flow_of("86 bc 92", config), "8000E1 8004N0 [8 cycles] 8008E0 ");
    // The count of a periodic I-sync.
    EXPECT_EQ(flow_of("84 70 05 01 04 80 00 00 84", config), "8000E1 [5 cycles] 8004E1 ");
    // The largest count, in a periodic I-sync and in an I-sync where tracing was turned on.
    EXPECT_EQ(flow_of("84 70 ff ff ff ff 0f 01 04 80 00 00 84", config), "8000E1 [4294967295 cycles] 8004E1 ");
    EXPECT_EQ(flow_of("84 70 ff ff ff ff 0f 21 00 80 00 00 84", config), "8000E1 [4294967295 cycles] [on 1] 8000E1 ");
}

TEST(Etm3Decoder, WhatIsCancelledDidNotRun) {
    // E E, the second cancelled by an IRQ whose handler is 0x8008.
    EXPECT_EQ(flow_of("88 85 80 80 80 48 3c"), "8000E [IRQ back to 8004] ");
    // An IRQ that cancels nothing.
    EXPECT_EQ(flow_of("84 85 80 81 80 48 1c 84"), "8000E [IRQ back to 8004] 8008E ");
    // Exception return: the packet waits for an exception that may cancel it. On the A profile the instruction and the
    // packet are cancelled, on the M profile the packet.
    EXPECT_EQ(flow_of("cc 84 76 01"), "8000E 8004E [undefined instruction] [unplaced 2/1] [return] ");
    const std::string returns = "c4 88 76 85 80 80 80 48 ";
    EXPECT_EQ(flow_of(returns + "3c"), "8000E 8004N 8008E [IRQ back to 800c] ");
    EXPECT_EQ(flow_of(returns + "3c", {.m_profile = true}), "8000E 8004N 8008E 800cE [PendSV back to 0] ");
    EXPECT_EQ(flow_of("c4 88 76 01 84"), "8000E 8004N 8008E 800cE [return] 8000E ");
}

TEST(Etm3Decoder, ReportsWhatContradictsAndWhatIsMissing) {
    // BX without an address.
    EXPECT_EQ(
        flow_of("c4 88 84"),
        "8000E 8004N 8008E 800cE [" + std::string(flow::name(flow::Conflict::no_return_address)) + "] [unplaced 1/0] ");
    // An address to which nothing leads.
    EXPECT_EQ(flow_of("84 05 84"), "8000E [" + std::string(flow::name(flow::Conflict::address_disagrees)) + "] 8008E ");
    // A branch without a condition cannot fail.
    EXPECT_EQ(flow_of("c4 84 c0"),
              "8000E 8004N 8008E [" + std::string(flow::name(flow::Conflict::always_taken)) + "] [unplaced 0/1] ");
    // No image at 0x18000.
    EXPECT_EQ(flow_of("c4 88 81 80 83 80 08 84"), "8000E 8004N 8008E 800cE [no memory 18000] [unplaced 1/0] ");
    // A reserved header loses all up to the next A-sync and I-sync.
    EXPECT_EQ(flow_of("84 84 10 84 84 00 00 00 00 00 80 84 08 01 08 80 00 00 84"), "8000E [gap] [gap] [on 0] 8008E ");
}

// Only the next packet shows whether the last instruction and exception return before it were cancelled.
TEST(Etm3Decoder, WhatLostBytesMayCancelIsNotDelivered) {
    EXPECT_EQ(flow_of("84 84 10 84"), "8000E [gap] ");
    // The trace ends inside a branch packet.
    EXPECT_EQ(flow_of("88 85 80"), "8000E [gap] ");
    EXPECT_EQ(flow_of("c4 88 76 85 80"), "8000E 8004N 8008E [gap] ");
    // It ends between two packets.
    EXPECT_EQ(flow_of("88"), "8000E 8004E ");
}

TEST(Etm3Decoder, DecodersAgreeOnRandomPackets) {
    std::mt19937_64 random(7);
    for (unsigned n = 0; n < 60; ++n) {
        Config config{.cycle_accurate = n % 2 == 0, .m_profile = n % 3 == 0};
        config.context_id_bytes = n % 5 == 0 ? 4 : 0;
        std::vector<std::uint8_t> bytes;
        for (unsigned i = 0; i < 80; ++i) {
            if (i % 20 == 0) {
                encode(bytes, ASync{}, config);
                ISync sync;
                sync.address = 0x8000 + 4 * static_cast<std::uint32_t>(random() % 6);
                sync.reason = static_cast<ISyncReason>(random() % 4);
                encode(bytes, sync, config);
                continue;
            }
            if (random() % 4 != 0) {
                PHeader header;
                PHeaderField{config.cycle_accurate}.random(random, header.header);
                encode(bytes, header, config);
                continue;
            }
            std::size_t index = random() % Packets::size;
            Packets::for_each([&]<class P>() {
                if (index-- != 0) return;
                P packet{};
                wire::Generator generator(random);
                P::fields(generator, packet, config);
                if (generator.possible()) encode(bytes, packet, config);
            });
        }
        if (n % 4 == 0) bytes[random() % bytes.size()] ^= static_cast<std::uint8_t>(1U << random() % 8);
        const std::string reference = decoded<ReferenceDecoder>(bytes, config, 1000000);
        EXPECT_EQ(decoded<Decoder>(bytes, config, 1000000), reference);
        EXPECT_EQ(decoded<Decoder>(bytes, config, 7), reference);
        EXPECT_EQ(decoded_in_parallel(bytes, config, 2), reference);
    }
}

}  // namespace
}  // namespace waymark::etm3
