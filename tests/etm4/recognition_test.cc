// Recognition of ETMv4 and ETE trace without a description, problems of its bytes, and the description of a trace unit
// in a capture (docs/spec/etm4.md, sections 1 to 3). Streams are short enough to count their packets by hand.
#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "etm4/support.h"
#include "waymark/core/numbers.h"
#include "waymark/core/offset_map.h"
#include "waymark/etm4/config.h"
#include "waymark/etm4/protocol.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"

namespace waymark::etm4 {
namespace {

using protocol::CaptureFinding;
using protocol::Identity;
using protocol::Stretch;

constexpr Offset in_buffer{0x1000};
constexpr const char* async = "00 00 00 00 00 00 00 00 00 00 00 80 ";
constexpr const char* trace_info = "01 00 ";
const std::string sync = std::string(async) + trace_info;  // 14 bytes
constexpr const char* reserved = "42 ";                    // without conditional trace (section 12)
std::string repeated(const std::string& what, unsigned times) {
    std::string out;
    for (unsigned i = 0; i < times; ++i) out += what;
    return out;
}

std::vector<Stretch> stretch_of(const std::string& hex) {
    std::vector<Stretch> out(1);
    out[0].bytes = test::hex(hex);
    out[0].offsets.add({0}, in_buffer);
    out[0].head = true;
    return out;
}
Identity identified(const std::string& hex) {
    Identity out;
    EXPECT_TRUE(row().identify(stretch_of(hex), out)) << out.tried.front().result;
    EXPECT_EQ(out.protocol, &row());
    return out;
}
const Config& found_in(const Identity& identity) { return config_of(*identity.configuration); }

TEST(Etm4Recognition, NeedsAnASyncATraceInfoAndLittleDamage) {
    const auto refused = [](const std::string& hex) {
        Identity out;
        EXPECT_FALSE(row().identify(stretch_of(hex), out));
        EXPECT_EQ(out.protocol, nullptr);
        EXPECT_EQ(out.configuration, nullptr);
        EXPECT_EQ(out.tried.size(), 1U);
        return out.tried.front().what + ": " + out.tried.front().result;
    };
    EXPECT_EQ(refused("f7 f7"), "ETMv4 and ETE: no A-sync (00 00 00 00 00 00 00 00 00 00 00 80)");
    EXPECT_EQ(refused(std::string(async) + "f7"),
              "ETMv4 and ETE, 18 configurations: 2 packets, 1 A-sync, 0 Trace Infos, 0 stretches (0 bytes) without "
              "packets");
    // A quarter of the synchronisations may have damage, and no more. Neither bytes before an A-sync nor zeros at the
    // end count. 44 bytes are packets.
    const auto damaged = [](unsigned times) {
        std::string out;
        for (unsigned i = 0; i < 4; ++i) out += sync + repeated("f7", 20) + (i < times ? reserved : "");
        return out;
    };
    EXPECT_EQ(identified(damaged(2)).tried.front().result,
              "88 packets, 4 A-syncs, 4 Trace Infos, 2 stretches (2 bytes) without packets");
    EXPECT_EQ(refused(damaged(3)),
              "ETMv4 and ETE, 18 configurations: 88 packets, 4 A-syncs, 4 Trace Infos, 3 stretches (3 bytes) without "
              "packets");
    // Half as many bytes are lost as are parsed, and one byte more. Bytes before an A-sync do not count, nor do zeros
    // at the end. 44 bytes are packets.
    const auto lost = [](unsigned bytes) {
        return repeated("f7", 9) + sync + repeated("f7", 16) + reserved + repeated("f7", bytes - 1) + sync +
               repeated("00", 30);
    };
    EXPECT_EQ(identified(lost(22)).tried.front().result,
              "20 packets, 2 A-syncs, 2 Trace Infos, 1 stretch (22 bytes) without packets");
    refused(lost(23));
}

TEST(Etm4Recognition, GivesThePlaceOfTheFirstASync) {
    const Identity identity = identified("f7 f7 f7 " + sync + "f7 " + sync);
    EXPECT_EQ(identity.first_sync, in_buffer + 3);
    ASSERT_EQ(identity.remarks.size(), 1U);
    EXPECT_EQ(identity.remarks[0], (std::pair<std::string, std::string>{"syncs", "2 A-syncs"}));
}

TEST(Etm4Recognition, TakesTheConfigurationUnderWhichTheLeastIsLost) {
    // Features that both have: VMIDs of one byte and counts that commit belong to the first (5).
    Config c = found_in(identified(sync + "f7"));
    EXPECT_EQ(c.version, 0x46);
    EXPECT_FALSE(c.commit_mode_1);
    EXPECT_EQ(c.vmid_bytes, 1);
    EXPECT_FALSE(c.q_elements);
    EXPECT_FALSE(c.timestamp_markers);
    // A context with a VMID of one byte, and another with a VMID of four bytes (6).
    EXPECT_EQ(found_in(identified(sync + "81 f1 05 78 56 34 12 f7 f7 f7")).vmid_bytes, 1);
    c = found_in(identified(sync + "81 f1 05 00 00 00 78 42 42 42"));
    EXPECT_EQ(c.vmid_bytes, 4);
    EXPECT_FALSE(c.commit_mode_1);
    // Cycle counts with a number of commits, and cycle counts without (5).
    EXPECT_FALSE(found_in(identified(sync + "0e 01 42")).commit_mode_1);
    c = found_in(identified(sync + "0e 01 02 42"));
    EXPECT_TRUE(c.commit_mode_1);
    EXPECT_EQ(c.vmid_bytes, 1);
    c = found_in(identified(sync + "81 f1 05 00 00 00 78 42 42 42 0e 01 02 42"));
    EXPECT_TRUE(c.commit_mode_1);
    EXPECT_EQ(c.vmid_bytes, 4);
    // Only an ETE has Transaction Start (11).
    c = found_in(identified(sync + "0a f7"));
    EXPECT_EQ(c.version, 0x53);
    c = found_in(identified(sync + "0a 81 f1 05 00 00 00 78 42 42 42 0e 01 02 42"));
    EXPECT_EQ(c.version, 0x53);
    EXPECT_TRUE(c.commit_mode_1);
    EXPECT_EQ(c.vmid_bytes, 4);
}

std::string fact(const Identity& identity, std::string_view what) {
    for (const protocol::InferredField& f : identity.facts)
        if (f.what == what) return f.value + ", " + std::string(name(f.certainty));
    return "none";
}

TEST(Etm4Recognition, TakesEventsAloneForLikely) {
    for (const std::string& hex : {std::string(async) + "71", async + std::string("71 7f ") + async + "72"}) {
        const Identity identity = identified(hex);
        EXPECT_EQ(fact(identity, "unit"), "ETE, likely") << hex;
        for (const protocol::InferredField& f : identity.facts) {
            if (f.what == "unit") continue;
            EXPECT_EQ(f.certainty, protocol::Certainty::assumed) << f.what;
        }
        EXPECT_EQ(identity.waypoints, 0U);
    }
    // A byte before it, another packet, a reserved header, or nothing after the A-sync.
    for (const std::string& hex : {"f7 " + std::string(async) + "71", async + std::string("71 f7"),
                                   async + std::string("71 42"), std::string(async)}) {
        Identity out;
        EXPECT_FALSE(row().identify(stretch_of(hex), out)) << hex;
    }
    // Random short files, even behind an A-sync.
    std::mt19937_64 random(1);
    for (unsigned round = 0; round < 2000; ++round) {
        auto stretches = stretch_of(round % 2 == 0 ? async : "");
        for (std::size_t bytes = 2 + random() % 30; bytes != 0; --bytes)
            stretches[0].bytes.push_back(static_cast<std::uint8_t>(random()));
        Identity out;
        if (!row().identify(stretches, out)) continue;
        // Random bytes are Event packets and nothing else, or have a Trace Info.
        if (out.tried.front().result.find(" 0 Trace Infos") == std::string::npos) continue;
        for (const std::uint8_t byte : stretches[0].bytes)
            EXPECT_TRUE(byte == 0 || byte == 0x80 || (byte > 0x70 && byte < 0x80));
    }
}

TEST(Etm4Recognition, InfersWhetherTheUnitSpeculates) {
    const std::string begins = sync + "04 85 00 00 40 00 00 00 00 00 30 ";
    // A unit that commits: two elements wait at once (8).
    Identity identity = identified(begins + repeated("f7 f7 2d 02 ", 30));
    EXPECT_EQ(found_in(identity).max_speculation, 2U);
    EXPECT_EQ(fact(identity, "speculation"), "yes, proven");
    EXPECT_EQ(fact(identity, "speculation depth"), "at least 2, likely");
    // A unit that does not commit: with speculation, elements would wait at the second Trace Info.
    const std::string atoms_and_sync = repeated("f7 ", 20) + sync + "85 00 00 40 00 00 00 00 00 30 ";
    identity = identified(begins + atoms_and_sync + atoms_and_sync);
    EXPECT_EQ(found_in(identity).max_speculation, 0U);
    EXPECT_EQ(fact(identity, "speculation"), "no, proven");
    // With one Trace Info no element contradicts it.
    EXPECT_EQ(fact(identified(begins + "f7 f7 "), "speculation"), "no, likely");
    // Elements beyond MAXSPEC are committed without a packet, and the Trace Info says how many wait: 4.
    const std::string waits_4 = std::string(async) + "01 04 04 85 00 00 40 00 00 00 00 00 30 ";
    identity = identified(begins + repeated("f7 ", 20) + waits_4 + repeated("f7 ", 20) + waits_4);
    EXPECT_EQ(found_in(identity).max_speculation, 4U);
    EXPECT_EQ(fact(identity, "speculation depth"), "4, proven");
}

TEST(Etm4Recognition, CommitsDecideTheCommitMode) {
    // Cycle counts that commit earlier elements (mode 0): format 3, AA = 0 commits one element.
    const std::string begins = std::string(async) + "01 09 01 00 04 85 00 00 40 00 00 00 00 00 30 ";
    const std::string again = std::string(async) + "01 09 01 00 85 00 00 40 00 00 00 00 00 30 ";
    Identity identity = identified(begins + repeated("f7 10 ", 20) + again + repeated("f7 f7 14 ", 20) + again);
    EXPECT_TRUE(found_in(identity).cycle_counting);
    EXPECT_EQ(fact(identity, "cycle counts"), "yes, proven");
    // Counts of mode 0 and elements agree, and so do counts of mode 1 in a unit that does not speculate.
    EXPECT_NE(fact(identity, "cycle counts commit"), "none");
    // Commit packets beside counts: each Commit finds its elements only if counts commit nothing.
    identity = identified(begins + repeated("f7 f7 10 2d 02 ", 20) + again + "f7 ");
    EXPECT_TRUE(found_in(identity).commit_mode_1);
    EXPECT_EQ(found_in(identity).max_speculation, 2U);
    EXPECT_EQ(fact(identity, "cycle counts commit"), "no, proven");
}

TEST(Etm4Recognition, InfersTheProfile) {
    // An SVC of a Cortex-M33: there the exception return is an element, so that the Commit finds its four elements (9).
    const std::string m33 =
        sync + "04 83 20 01 00 10 00 06 17 96 25 02 60 83 2a 01 00 10 03 f7 07 91 81 00 f7 2d 04 00 03 ";
    const auto svc = [&](unsigned times) { return identified(repeated(sync + m33, times)); };
    Identity identity = svc(3);
    EXPECT_EQ(found_in(identity).profile, CoreProfile::m);
    EXPECT_EQ(fact(identity, "profile"), "M, proven");
    EXPECT_EQ(configuration(found_in(identity))->core_type(), "ARMv8-M");
    EXPECT_EQ(fact(svc(1), "profile"), "M, likely");  // a single one may be damage
    // Only T32 code, and no packet that excludes the M profile.
    identity = identified(sync + "04 83 20 01 00 10 00 f7 f7 ");
    EXPECT_EQ(fact(identity, "profile"), "M, assumed");
    // AArch64 exists in the A profile only.
    identity = identified(sync + repeated("04 85 00 00 40 00 00 00 00 00 30 f7 ", 2));
    EXPECT_EQ(found_in(identity).profile, CoreProfile::a);
    EXPECT_EQ(fact(identity, "profile"), "A, proven");
    // Function Return is a packet of the M profile only (5).
    EXPECT_EQ(fact(identified(repeated(sync + "04 83 20 01 00 10 00 f7 05 f7 f7 f7 ", 3)), "profile"), "M, proven");
    // If the bytes do not show the profile, the core for which a program was built does.
    const auto unit = configuration(found_in(identity));
    EXPECT_EQ(unit->beside("Cortex-A53"), nullptr);
    ASSERT_NE(unit->beside("ARMv8-M.main"), nullptr);
    EXPECT_EQ(unit->beside("ARMv8-M.main")->core_type(), "ARMv8-M");
}

TEST(Etm4Recognition, SaysHowSureItIs) {
    const std::string begins = sync + "04 85 00 00 40 00 00 00 00 00 30 ";
    Identity identity = identified(begins + "f7 f7 ");
    EXPECT_EQ(fact(identity, "unit"), "ETMv4, assumed");
    EXPECT_EQ(fact(identity, "Q elements"), "no, likely");
    EXPECT_EQ(fact(identity, "timestamps"), "no, likely");
    EXPECT_EQ(fact(identity, "Context ID"), "not traced, likely");
    // An ETE has no Exception Return (9), an ETMv4 no Transaction Start (11).
    EXPECT_EQ(fact(identified(repeated(begins + "f7 07 f7 f7 ", 3)), "unit"), "ETMv4, proven");
    EXPECT_EQ(fact(identified(repeated(begins + "f7 0a f7 f7 ", 3)), "unit"), "ETE, proven");
    EXPECT_EQ(fact(identified(begins + "f7 0a f7 f7 "), "unit"), "ETE, likely");  // a single one may be damage
    identity = identified(begins + "f7 a5 10 03 f7 a5 10 03 f7 ");
    EXPECT_TRUE(found_in(identity).q_elements);
    EXPECT_EQ(fact(identity, "Q elements"), "yes, proven");
}

// One damaged byte looks like a cycle count packet, and the Trace Info of `sync` has none.
TEST(Etm4Recognition, OneCycleCountProvesNothingAgainstTheTraceInfo) {
    const std::string begins = sync + "04 85 00 00 40 00 00 00 00 00 30 ";
    EXPECT_EQ(fact(identified(begins + "f7 f7 "), "cycle counts"), "no, proven");
    const Identity one = identified(begins + "f7 10 f7 ");
    EXPECT_EQ(fact(one, "cycle counts"), "no, likely");
    EXPECT_FALSE(found_in(one).cycle_counting);
    EXPECT_EQ(fact(one, "cycle counts commit"), "none");
    const Identity two = identified(begins + "f7 10 f7 10 ");
    EXPECT_EQ(fact(two, "cycle counts"), "yes, likely");
    EXPECT_TRUE(found_in(two).cycle_counting);
}

TEST(Etm4Description, IsHeldAgainstTheBytes) {
    const auto stream = stretch_of(sync + "04 85 00 00 40 00 00 00 00 00 30 " + repeated("f7 f7 2d 02 ", 30));
    Identity identity;
    ASSERT_TRUE(row().identify(stream, identity));
    Config described = found_in(identity);
    EXPECT_TRUE(row().settle(identity, *configuration(described), stream, "cpu_0.ini").findings.empty());
    described.max_speculation = 0;
    const protocol::Settled settled = row().settle(identity, *configuration(described), stream, "cpu_0.ini");
    ASSERT_EQ(settled.findings.size(), 1U);
    EXPECT_EQ(settled.findings[0].kind, "speculation");
    EXPECT_NE(settled.findings[0].advice.find("TRCIDR8"), std::string::npos);
    EXPECT_EQ(config_of(*settled.configuration).max_speculation, 2U);
}

TEST(Etm4Health, SaysWhereBytesAreDamaged) {
    const auto health = [](const std::string& hex) {
        const Config config = test::etmv4();
        return row().health({}, configuration(config).get(), stretch_of(hex), "etb");
    };
    EXPECT_TRUE(health(sync + "f7" + repeated("00", 40)).empty());
    const std::vector<CaptureFinding> head = health("f7 f7 " + sync + "f7" + repeated("00", 40));
    ASSERT_EQ(head.size(), 1U);
    EXPECT_EQ(head[0].kind, "unsynchronised");
    EXPECT_EQ(head[0].severity, protocol::Severity::note);
    EXPECT_EQ(head[0].found, "2 bytes before an A-sync");
    const std::vector<CaptureFinding> findings = health(sync + reserved + "f7 f7" + sync + reserved + sync);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings[0].kind, "damaged-packets");
    EXPECT_EQ(findings[0].severity, protocol::Severity::warning);
    EXPECT_EQ(findings[0].offset, in_buffer + 14);
    EXPECT_EQ(findings[0].found, "2 stretches (4 bytes) without packets");
}

TEST(Etm4Description, IsBelieved) {
    Identity identity;
    const Config described = test::ete();
    const protocol::Settled settled = row().settle(identity, *configuration(described), stretch_of(sync), "cpu_0.ini");
    EXPECT_TRUE(settled.findings.empty());
    EXPECT_EQ(config_of(*settled.configuration), described);
}

std::string settings_text(const Config& config) {
    std::string out;
    for (const protocol::Setting& s : configuration(config)->settings()) {
        out += (out.empty() ? "" : ", ") + s.name + " ";
        if (const auto* flag = std::get_if<bool>(&s.value)) out += *flag ? "yes" : "no";
        if (const auto* number = std::get_if<std::uint64_t>(&s.value)) out += std::to_string(*number);
        if (const auto* text = std::get_if<std::string>(&s.value)) out += *text;
    }
    return out;
}

TEST(Etm4Description, NamesItsSettings) {
    EXPECT_EQ(settings_text({}),
              "version ETMv4.0, cycle_counting no, context_id_bytes 0, vmid_bytes 0, return_stack no, branch_broadcast "
              "no, timestamps no, timestamp_bits 64, q_elements no, speculation_depth 0, waits_are_waypoints no");
    Config c;
    c.version = 0x46;
    c.context_id_trace = c.cycle_counting = c.vmid_trace = c.branch_broadcast = c.q_elements = true;
    c.vmid_bytes = 2;
    c.timestamp_bits = 48;
    c.max_speculation = 17;
    EXPECT_EQ(settings_text(c),
              "version ETMv4.6, cycle_counting yes, context_id_bytes 4, vmid_bytes 2, return_stack no, "
              "branch_broadcast yes, timestamps no, timestamp_bits 48, q_elements yes, speculation_depth 17, "
              "waits_are_waypoints no");
    c = {};
    c.version = 0x53;
    c.return_stack = c.timestamps = c.wfx_p0 = true;
    EXPECT_EQ(settings_text(c),
              "version ETE 1.3, cycle_counting no, context_id_bytes 0, vmid_bytes 0, return_stack yes, "
              "branch_broadcast no, timestamps yes, timestamp_bits 64, q_elements no, speculation_depth 0, "
              "waits_are_waypoints yes");
    EXPECT_EQ(configuration(c)->source_type(), "ETE");
    c.version = 0x44;
    EXPECT_EQ(configuration(c)->source_type(), "ETM4.4");
}

TEST(Etm4Description, DecidesWhichInstructionsAreWaypoints) {
    Config c;
    EXPECT_FALSE(configuration(c)->waypoints().wait_waypoints);
    EXPECT_FALSE(configuration(c)->waypoints().transaction_start_waypoints);
    c.wfx_p0 = true;
    EXPECT_TRUE(configuration(c)->waypoints().wait_waypoints);
    EXPECT_FALSE(configuration(c)->waypoints().transaction_start_waypoints);
    c = test::ete();
    EXPECT_FALSE(configuration(c)->waypoints().wait_waypoints);
    EXPECT_TRUE(configuration(c)->waypoints().transaction_start_waypoints);
    EXPECT_TRUE(configuration(c)->cycle_counts());
    c.cycle_counting = false;
    EXPECT_FALSE(configuration(c)->cycle_counts());
    // Only a program shows whether there is a return stack, and whether WFI and WFE are waypoints (from ETMv4.3 on).
    const auto variants_of = [](const Config& config) {
        std::string out;
        for (const auto& variant : configuration(config)->variants()) {
            Config v = config_of(*variant);
            out += std::to_string(v.return_stack) + std::to_string(v.wfx_p0) + ' ';
            v.return_stack = config.return_stack;
            v.wfx_p0 = config.wfx_p0;
            EXPECT_EQ(v, config);
        }
        return out;
    };
    c.return_stack = true;
    c.wfx_p0 = false;
    EXPECT_EQ(variants_of(c), "00 11 01 ");
    c.version = 0x42;
    EXPECT_EQ(variants_of(c), "00 ");
}

TEST(Etm4Description, TheCoreDecidesTheProfile) {
    const auto profile = [](std::string_view core) {
        return config_of(*row().configure({"cpu_0", "ETM4.4", core, {}, false}).configuration).profile;
    };
    for (const char* core :
         {"Cortex-M33", "cortex-m55", "Cortex-M7", "ARMv8-M", "ARMv8.1-M", "ARMv8-M.main", "ARMv7E-M", "STAR-MC1"})
        EXPECT_EQ(profile(core), CoreProfile::m) << core;
    for (const char* core : {"Cortex-R52", "ARMv8-R", "ARMv7-R", "ARMv8.4-R"})
        EXPECT_EQ(profile(core), CoreProfile::r) << core;
    for (const char* core : {"Cortex-A53", "Neoverse-N1", "ARMv8-A", "ARMv8.6-A", "ARM-AA64", "X-M", ""})
        EXPECT_EQ(profile(core), CoreProfile::a) << core;
    for (const std::string& problem : row().configure({"cpu_0", "ETM4.4", "", {}, false}).problems)
        EXPECT_TRUE(problem.starts_with("source 'cpu_0': ")) << problem;
    for (const std::uint64_t configr : {3U, 1U}) {
        const std::vector<RegisterValue> registers{{"TRCCONFIGR", configr, std::nullopt, 32}};
        std::string problems;
        for (const std::string& problem : row().configure({"cpu_0", "ETM4.4", "", registers, false}).problems)
            problems += problem;
        EXPECT_EQ(problems.find("atoms are counted") != problems.npos, configr == 3) << problems;
    }
    for (const char* type : {"ETM4.4", "etm4.0", "ETMv4.2", "ETE", "ete"}) EXPECT_TRUE(row().is_type(type)) << type;
    for (const char* type : {"ETM3.5", "PTM1.1", ""}) EXPECT_FALSE(row().is_type(type)) << type;
}

/// The names of the fields of a register that are not 0.
class FieldNames final : public protocol::FieldVisitor {
public:
    void number(std::string_view name, std::uint64_t value) override {
        if (value != 0) names_ += std::string(name) + ' ';
    }
    void text(std::string_view, std::string_view) override { ADD_FAILURE(); }
    std::string names_;
};

TEST(Etm4Description, NamesTheFieldsOfRegisters) {
    const auto fields = [](const std::string& name, std::uint64_t value) {
        FieldNames out;
        row().visit_register({name, value}, out);
        return out.names_;
    };
    for (const char* name : {"TRCCONFIGR", "TRCTRACEIDR", "TRCIDR0", "TRCIDR1", "TRCIDR2", "TRCDEVARCH"})
        EXPECT_NE(fields(name, 0xffffffff), "") << name;
    EXPECT_EQ(fields("TRCCONFIGR", 1U << 12 | 1U << 4), "RS CCI ");
    EXPECT_EQ(fields("TRCOSLSR", 0x2), "OSLK ");
    EXPECT_EQ(fields("TRCNOSUCH", 0xffffffff), "");
    // In a capture's form: the registers that decide its configuration.
    std::string registers;
    for (const RegisterValue& r : configuration(test::etmv4())->registers()) registers += r.name + ' ';
    EXPECT_EQ(registers.substr(0, 23), "TRCCONFIGR TRCTRACEIDR ");
    EXPECT_NE(registers.find("TRCIDR2 "), std::string::npos);
}

TEST(Etm4Description, SurveysAStream) {
    const auto survey = [](const std::string& hex) {
        OffsetMap offsets;
        offsets.add({0}, in_buffer);
        const auto surveyor = configuration(test::etmv4())->survey(offsets);
        surveyor->feed(test::hex(hex));
        surveyor->finish();
        return surveyor->survey();
    };
    using Troubles = std::vector<std::string>;
    protocol::Survey s = survey("f7 " + sync + "f7 " + sync);
    EXPECT_EQ(s.first_sync, in_buffer + 1);
    EXPECT_EQ(s.troubles, Troubles{});
    EXPECT_EQ(s.first_timestamp, std::nullopt);
    EXPECT_EQ(survey(std::string(async) + "f7").troubles, Troubles{"no Trace Info, so nothing can be decoded"});
    EXPECT_EQ(survey("f7").troubles, Troubles{});
    EXPECT_EQ(survey(sync + "00 05").troubles, Troubles{"its FIFO overflowed once; execution is missing there"});
    EXPECT_EQ(survey(sync + "00 05 00 05").troubles,
              Troubles{"its FIFO overflowed 2 times; execution is missing there"});
    s = survey(sync + "02 80 80 80 80 80 80 80 80 00 02 05 02 07");  // the whole address, then its low bits (5)
    EXPECT_EQ(s.first_timestamp, 0U);
    EXPECT_EQ(s.last_timestamp, 7U);
}

TEST(Etm4Description, NamesTheAddressesOfATrace) {
    const auto named = [](const std::string& hex) {
        std::string out;
        configuration(test::etmv4())->named_addresses(test::hex(hex), [&](const follow::Place& place) {
            out += address_text(place.address.value) + '/' + std::string(isa::name(place.isa)) + ' ';
        });
        return out;
    };
    const std::string a64 = std::string(isa::name(isa::Isa::a64)), a32 = std::string(isa::name(isa::Isa::a32)),
                      t32 = std::string(isa::name(isa::Isa::t32));
    // The width of addresses is unknown until a context (6).
    EXPECT_EQ(named(sync + "9d 00 20 00 00 00 00 00 00"), "");
    EXPECT_EQ(named(sync + "85 00 20 00 00 00 00 00 00 11 9a 01 20 00 00 95 03"),
              "0x00004000/" + a64 + " 0x00004004/" + a64 + " 0x0000400c/" + a64 + " ");
    EXPECT_EQ(named(sync + "83 01 20 00 00 00 9a 01 20 00 00"), "0x00002002/" + t32 + " 0x00004004/" + a32 + " ");
    // The address of an exception is its return address (9).
    EXPECT_EQ(named(sync + "85 00 20 00 00 00 00 00 00 11 06 1d 9a 01 20 00 00 9a 02 20 00 00"),
              "0x00004000/" + a64 + " 0x00004008/" + a64 + " ");
    // After damage nothing is known.
    EXPECT_EQ(named(sync + "85 00 20 00 00 00 00 00 00 11 " + reserved + sync + "9d 01 20 00 00 00 00 00 00"),
              "0x00004000/" + a64 + " ");
}

TEST(Etm4Sentences, NameTheAddressOfTheTraceAndThatOfTheProgram) {
    using flow::Conflict;
    const auto sentence = [](Conflict conflict) { return row().sentence({conflict, {0x8000}, {0x9004}}); };
    EXPECT_EQ(sentence(Conflict::update_behind),
              "the trace contains 0x9004, which execution has passed (0x8000 is next)");
    EXPECT_EQ(sentence(Conflict::no_return_address),
              "no address for the indirect branch at 0x8000, nor a return stack entry");
    EXPECT_EQ(sentence(Conflict::undefined_reached), "an atom leads over the undefined instruction at 0x8000");
    EXPECT_EQ(sentence(Conflict::runaway_walk),
              "an atom, but no branch up to 0x8000, which is farther than any block goes");
    EXPECT_EQ(sentence(Conflict::update_disagrees), "the trace names 0x9004, but the program leads to 0x8000");
    for (const Conflict other : {Conflict::sync_disagrees, Conflict::branch_disagrees, Conflict::vmid_missing})
        EXPECT_EQ(sentence(other), flow::name(other));
}

}  // namespace
}  // namespace waymark::etm4
