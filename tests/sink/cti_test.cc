// The models of CTI and CTM: mapping, gates and acknowledgement, against a table of the outputs that each input
// reaches.

#include "waymark/sink/cti.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "waymark/sink/tmc.h"

namespace waymark::sink {
namespace {

TEST(Cti, RefusesWhatIsWrong) {
    EXPECT_FALSE((CtiConfig{.triggers = 0}.check()));
    EXPECT_FALSE((CtiConfig{.channels = 33}.check()));
    Cti cti({});
    EXPECT_NE(cti.write_register(Cti::triginstatus, 1).find("read-only"), std::string::npos);
    EXPECT_NE(cti.write_register(Cti::inen + 4 * 8, 1).find("8 triggers"), std::string::npos);
    EXPECT_NE(cti.write_register(0x004, 1).find("0x4"), std::string::npos);
    EXPECT_NE(cti.write_register(Cti::apppulse, 1).find("GLBEN"), std::string::npos);
    EXPECT_EQ(Cti::register_name(0x0b0), "CTIOUTEN4");
    EXPECT_EQ(cti.read_register(Cti::gate), 0xfU);
    EXPECT_EQ(cti.write_register(Cti::inen, 0xffffffff), "");
    EXPECT_EQ(cti.read_register(Cti::inen), 0xfU);
}

// 3: an output stays until it is acknowledged, and cannot be acknowledged while its channel is active.
TEST(Cti, OutputsAreAcknowledged) {
    Cti cti({.acknowledged = 2});
    std::vector<std::pair<unsigned, bool>> edges;
    cti.on_trigger_out([&](unsigned number, bool active) { edges.emplace_back(number, active); });
    for (const std::uint32_t n : {0U, 1U}) ASSERT_EQ(cti.write_register(Cti::outen + 4 * n, 1), "");
    ASSERT_EQ(cti.write_register(Cti::inen + 4 * 3, 1), "");
    cti.set_trigger_in(3, true);
    EXPECT_EQ(cti.read_register(Cti::trigoutstatus), 0U);  // GLBEN is 0
    ASSERT_EQ(cti.write_register(Cti::control, 1), "");
    EXPECT_EQ(cti.read_register(Cti::trigoutstatus), 3U);
    ASSERT_EQ(cti.write_register(Cti::intack, 1), "");
    EXPECT_EQ(cti.read_register(Cti::trigoutstatus), 3U);
    cti.set_trigger_in(3, false);
    EXPECT_EQ(cti.read_register(Cti::trigoutstatus), 1U);  // output 1 has a receiver that acknowledges
    ASSERT_EQ(cti.write_register(Cti::intack, 1), "");
    EXPECT_EQ(cti.read_register(Cti::trigoutstatus), 0U);
    const std::vector<std::pair<unsigned, bool>> expected{{0, true}, {1, true}, {1, false}, {0, false}};
    EXPECT_EQ(edges, expected);
    edges.clear();
    ASSERT_EQ(cti.write_register(Cti::apppulse, 1), "");
    const std::vector<std::pair<unsigned, bool>> pulsed{{0, true}, {1, true}, {1, false}};
    EXPECT_EQ(edges, pulsed);
}

/// Written and set values only, without the state of outputs: all receivers acknowledge.
struct Interface {
    bool enabled = false;
    std::uint32_t gate = 0, application = 0, inputs = 0;
    std::array<std::uint32_t, 8> in{}, out{};
    /// Channel `n` alone.
    [[nodiscard]] bool makes(unsigned n) const {
        bool any = (application >> n & 1U) != 0;
        for (unsigned t = 0; t < 8; ++t) any |= (inputs >> t & 1U) != 0 && (in[t] >> n & 1U) != 0;
        return enabled && any;
    }
};

TEST(Cti, ReachesWhatItIsMappedTo) {
    std::mt19937_64 random(3);
    std::size_t active = 0;
    for (unsigned round = 0; round < 200; ++round) {
        const std::size_t count = 1 + random() % 4;
        std::deque<Cti> interfaces;
        std::vector<Interface> tables(count);
        Ctm matrix;
        for (std::size_t i = 0; i < count; ++i) {
            interfaces.emplace_back(CtiConfig{.acknowledged = 0xff});
            matrix.connect(interfaces.back());
            tables[i].gate = 0xf;
        }
        for (unsigned step = 0; step < 60; ++step) {
            const std::size_t i = random() % count;
            Cti& cti = interfaces[i];
            Interface& table = tables[i];
            const auto value = static_cast<std::uint32_t>(random() % 16);
            const auto n = static_cast<unsigned>(random() % 8);
            const auto write = [&](std::uint32_t offset, std::uint32_t what) {
                EXPECT_EQ(cti.write_register(offset, what), "");
            };
            switch (random() % 7) {
                case 0: write(Cti::inen + 4 * n, table.in[n] = value); break;
                case 1: write(Cti::outen + 4 * n, table.out[n] = value); break;
                case 2: write(Cti::gate, table.gate = value); break;
                case 3: write(Cti::control, (table.enabled = value % 4 != 0) ? 1 : 0); break;
                case 4:
                    table.application |= value;
                    write(Cti::appset, value);
                    break;
                case 5:
                    table.application &= ~value;
                    write(Cti::appclear, value);
                    break;
                default:
                    table.inputs = (table.inputs & ~(1U << n)) | (value % 2) << n;
                    cti.set_trigger_in(n, value % 2 != 0);
                    break;
            }
            for (std::size_t to = 0; to < count; ++to) {
                for (unsigned t = 0; t < 8; ++t) {
                    bool expected = false;
                    for (unsigned channel = 0; channel < 4; ++channel) {
                        bool on = tables[to].makes(channel);
                        for (std::size_t from = 0; from < count; ++from)
                            on |= from != to && tables[from].makes(channel) && (tables[from].gate >> channel & 1U) != 0;
                        expected |= on && (tables[to].out[t] >> channel & 1U) != 0;
                    }
                    expected &= tables[to].enabled;
                    ASSERT_EQ(interfaces[to].trigger_out(t), expected) << round << ' ' << step;
                    active += expected ? 1 : 0;
                }
            }
        }
    }
    EXPECT_GT(active, 1000U);
}

// 4: the event of a trace unit stops a trace buffer.
TEST(Cti, TheEventOfAUnitStopsABuffer) {
    Tmc tmc({.kind = SinkKind::etb, .memory_bytes = 256});
    ASSERT_EQ(tmc.write_register(Tmc::ffcr, Ffcr::en_ft | Ffcr::stop_on_trig_evt), "");
    ASSERT_EQ(tmc.write_register(Tmc::trg, 7), "");
    ASSERT_EQ(tmc.write_register(Tmc::ctl, 1), "");
    Cti core({}), system({});
    Ctm matrix;
    matrix.connect(core);
    matrix.connect(system);
    ASSERT_EQ(core.write_register(Cti::inen + 4 * 4, 1), "");
    ASSERT_EQ(system.write_register(Cti::outen + 4, 1), "");
    system.on_trigger_out([&](unsigned number, bool active) {
        if (number == 1 && active) tmc.trigger();
    });
    const std::vector<std::uint8_t> bytes(64, 0x55);
    core.set_trigger_in(4, true);
    tmc.write(coresight::TraceId{0x10}, bytes);
    EXPECT_FALSE(tmc.stopped());  // neither is enabled
    core.set_trigger_in(4, false);
    for (Cti* const cti : {&core, &system}) ASSERT_EQ(cti->write_register(Cti::control, 1), "");
    core.set_trigger_in(4, true);
    EXPECT_EQ(tmc.trigger_at(), tmc.written());
    tmc.write(coresight::TraceId{0x10}, bytes);
    EXPECT_TRUE(tmc.stopped());
}

}  // namespace
}  // namespace waymark::sink
