// Limits that other tests do not reach exactly: the last possible byte of a packet, the first version that has a
// packet, and registers of configurations that differ in one field.
#include <gtest/gtest.h>

#include "etm4/support.h"
#include "waymark/etm4/codec.h"
#include "waymark/etm4/config.h"

namespace waymark::etm4 {
namespace {

using test::collect;
using test::hex;

// Section 4: up to three further control bytes are read and ignored.
TEST(Etm4Edges, ControlBytesOfTraceInfo) {
    const Config config = test::ete();
    const auto most = collect(test::with_async(hex("01 81 80 80 00 00 f7")), config);
    ASSERT_EQ(most.items.size(), 3U) << most.text();
    EXPECT_EQ(most.items[1].text, "TRACE-INFO PLCTL=1 INFO=0");
    EXPECT_EQ(most.items[1].bytes, 6U);
    EXPECT_EQ(most.items[2].text, "ATOM atoms=E");
    EXPECT_NE(collect(test::with_async(hex("01 81 80 80 80 00 00 f7")), config).items[1].text.find("GAP"),
              std::string::npos);
}

// Section 7: the format of each header from 0xc0 on.
TEST(Etm4Edges, AtomFormats) {
    for (unsigned header = 0xc0; header <= 0xff; ++header) {
        unsigned format = 6;
        if (header >= 0xf8) format = 3;
        if (header == 0xf6 || header == 0xf7) format = 1;
        if (header == 0xf5 || (header >= 0xd5 && header <= 0xd7)) format = 5;
        if (header >= 0xd8 && header <= 0xdb) format = 2;
        if (header >= 0xdc && header <= 0xdf) format = 4;
        EXPECT_EQ(atom_format(static_cast<std::uint8_t>(header)), format) << std::hex << header;
    }
}

TEST(Etm4Edges, FunctionReturnsAreOfMProfileSince42) {
    Config config = test::m_profile();
    for (const auto& [version, allowed] : {std::pair{0x41, false}, std::pair{0x42, true}, std::pair{0x46, true}}) {
        config.version = static_cast<std::uint8_t>(version);
        EXPECT_EQ(FunctionReturn::allowed(config), allowed) << std::hex << version;
        EXPECT_EQ(collect(test::with_async(hex("05 f7")), config).items[1].text.starts_with("GAP"), !allowed);
    }
    config.profile = CoreProfile::a;
    EXPECT_FALSE(FunctionReturn::allowed(config));
}

// Section 12: TT 0 to 2; 0x43 is the header of another format.
TEST(Etm4Edges, ConditionalInstructionsOfFormat2) {
    for (const char* byte : {"40", "41", "42"}) {
        const auto got = collect(test::with_async(hex(byte)), test::conditional());
        ASSERT_EQ(got.items.size(), 2U);
        EXPECT_TRUE(got.items[1].text.starts_with("CONDITIONAL-INSTRUCTION-F2")) << got.text();
    }
    EXPECT_FALSE(ConditionalInstructionF2::is_header(0x43));
    EXPECT_FALSE(ConditionalInstructionF2::is_header(0x3f));
}

// An ETE has neither data nor conditional trace; each register field that enables one of them has its own note.
TEST(Etm4Edges, AnEteNotesEachFieldThatItDoesNotHave) {
    RegisterValues r = to_registers(test::ete());
    const auto notes = [&](std::uint32_t more) {
        RegisterValues asking = r;
        asking.configr = *r.configr | more;
        return read_config(asking, CoreProfile::a).notes;
    };
    EXPECT_TRUE(notes(0).empty());
    for (const std::uint32_t field : {0x2U, 0x4U, 0x100U, 0x400U, 0x10000U, 0x20000U}) {
        ASSERT_EQ(notes(field).size(), 1U) << std::hex << field;
        EXPECT_NE(notes(field).front().find("which an ETE does not have"), std::string::npos);
    }
}

TEST(Etm4Edges, RegistersOfEachSettingAlone) {
    using Change = void (*)(Config&);
    const Change changes[] = {
        [](Config& c) { c.branch_broadcast = true; },
        [](Config& c) { c.context_id_trace = false; },
        [](Config& c) { c.vmid_trace = false; },
        [](Config& c) { c.context_id_trace = c.vmid_trace = false; },
        [](Config& c) { c.cycle_counting = false; },
        [](Config& c) { c.timestamps = false; },
        [](Config& c) { c.timestamp_bits = 48; },
        [](Config& c) { c.return_stack = true; },
        [](Config& c) { c.p0_loads = true; },
        [](Config& c) { c.p0_stores = true; },
        [](Config& c) { c.p0_loads = c.p0_stores = true; },
        [](Config& c) { c.conditional_apsr = true; },
        [](Config& c) { c.vmid_is_contextidr = true; },
        [](Config& c) { c.transaction_start_p0 = true; },
        [](Config& c) { c.q_elements = true; },
        [](Config& c) { c.commit_mode_1 = true; },
        [](Config& c) { c.address_bytes = 4; },
        [](Config& c) { c.max_speculation = 100; },
        [](Config& c) { c.cycle_count_bits = 20; },
        [](Config& c) { c.trace_id = 0x7f; },
    };
    for (const Change change : changes) {
        Config config = test::etmv4();
        change(config);
        const ReadConfig read = read_config(to_registers(config), config.profile);
        EXPECT_TRUE(read.notes.empty()) << read.notes.front();
        EXPECT_EQ(read.config, config) << "change " << &change - changes;
    }
}

// Section 1: TRCIDR1 of an ETE has 15 in both fields of its version, which leaves it to TRCDEVARCH.
TEST(Etm4Edges, VersionsInTrcidr1) {
    EXPECT_EQ(to_registers(test::ete()).idr1, 0x4100fff0U);
    EXPECT_EQ(to_registers(test::etmv4()).idr1, 0x4100f440U);
}

}  // namespace
}  // namespace waymark::etm4
