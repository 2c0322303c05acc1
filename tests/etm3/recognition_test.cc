// The bytes of an ETMv3 alone: it is recognised in every setting, data trace included, and no setting is wrongly
// proven.
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "random_trace.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/synthetic.h"
#include "waymark/etm3/encoder.h"
#include "waymark/etm3/protocol.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/protocol.h"
#include "waymark/protocol/protocol.h"

namespace waymark::etm3 {
namespace {

using protocol::Certainty;
using protocol::Identity;
using protocol::Stretch;

std::optional<Identity> identified(std::vector<std::uint8_t> bytes) {
    Stretch stretch;
    stretch.bytes = std::move(bytes);
    stretch.offsets.add({0}, {0});
    stretch.head = true;
    Identity out;
    if (!row().identify({stretch}, out)) return std::nullopt;
    return out;
}
std::string data_of(const Config& c) {
    return c.data_address ? c.data_value ? "addresses and values" : "addresses" : c.data_value ? "values" : "no";
}

TEST(Etm3Recognition, EverySettingIsReadFromTheBytes) {
    synthetic::Random random(3);
    const unsigned traces = sized(120U, 24U);
    unsigned proven = 0;
    for (unsigned n = 0; n < traces; ++n) {
        SCOPED_TRACE(n);
        const auto program = synthetic::make_program({.seed = n + 1U, .blocks = 120, .large_block_chance = 0});
        Config config = test::random_config(random);
        config.data_address = n % 4 == 1 || n % 4 == 3;
        config.data_value = n % 4 >= 2;
        test::RandomTrace trace(config, program, n + 1U);
        trace.run(800, 200);
        const auto identity = identified(trace.bytes);
        ASSERT_TRUE(identity);
        const Config found = config_of(*identity->configuration);
        EXPECT_EQ(data_of(found), data_of(config));
        for (const protocol::InferredField& fact : identity->facts) {
            const std::string value =
                fact.what == "cycle counts"      ? (config.cycle_accurate ? "yes" : "no")
                : fact.what == "branch encoding" ? (config.alternative_branches ? "alternative" : "original")
                : fact.what == "data trace"      ? data_of(config)
                : fact.what == "timestamps"      ? (config.timestamp_bytes == 9 ? "64 bits" : "48 bits")
                : config.context_id_bytes == 0   ? "not traced"
                : config.context_id_bytes == 1   ? "1 byte"
                                                 : std::to_string(config.context_id_bytes) + " bytes";
            if (fact.certainty != Certainty::proven) continue;
            ++proven;
            EXPECT_EQ(fact.value, value) << fact.what << ": " << fact.proof;
        }
    }
    EXPECT_GE(proven, 2 * traces);
}

// A PTM with the same settings reads these bytes without an error.
TEST(Etm3Recognition, IsNotTakenForProgramFlowTrace) {
    std::vector<std::uint8_t> bytes;
    const Config config{.context_id_bytes = 1};
    for (std::uint32_t n = 0; n < 8; ++n) {
        encode(bytes, ASync{}, config);
        ISync sync;
        sync.address = 0x10000 + 0x134 * n;
        sync.context_id = 0x10;
        encode(bytes, sync, config);
        for (unsigned i = 0; i < 4; ++i) encode(bytes, PHeader{0x84}, config);
    }
    Stretch stretch;
    stretch.bytes = bytes;
    stretch.head = true;
    Identity ptm;
    ASSERT_TRUE(pft::row().identify({stretch}, ptm)) << "this is no test";
    const auto identity = identified(bytes);
    ASSERT_TRUE(identity);
    EXPECT_EQ(config_of(*identity->configuration).context_id_bytes, 1);

    bytes.clear();
    const pft::Config of_ptm{.context_id_bytes = 1};
    for (std::uint32_t n = 0; n < 8; ++n) {
        pft::encode(bytes, pft::ASync{}, of_ptm);
        pft::ISync sync;
        sync.address_31_1 = (0x10100 + 0x134 * n) >> 1;
        sync.context_id = 0x10;
        pft::encode(bytes, sync, of_ptm);
        for (unsigned i = 0; i < 4; ++i) bytes.push_back(0x84);
    }
    EXPECT_FALSE(identified(bytes));
}

TEST(Etm3Recognition, DamageIsNoDataTrace) {
    synthetic::Random random(4);
    const unsigned traces = sized(60U, 12U);
    for (unsigned n = 0; n < traces; ++n) {
        SCOPED_TRACE(n);
        const auto program = synthetic::make_program({.seed = n + 1U, .blocks = 120, .large_block_chance = 0});
        const Config config = test::random_config(random);
        test::RandomTrace trace(config, program, n + 1U);
        trace.run(800, 200);
        for (unsigned damages = 1 + random.below(12); damages != 0; --damages)
            trace.bytes[random.below(static_cast<std::uint32_t>(trace.bytes.size()))] =
                static_cast<std::uint8_t>(random.below(256));
        if (const auto identity = identified(trace.bytes)) {
            EXPECT_EQ(data_of(config_of(*identity->configuration)), "no");
        }
    }
}

}  // namespace
}  // namespace waymark::etm3
