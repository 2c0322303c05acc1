// How a capture describes a macrocell, and the configuration made from it (docs/spec/pft.md, section 3).
#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "pft/support.h"
#include "waymark/core/numbers.h"
#include "waymark/flow/summary.h"
#include "waymark/pft/config.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/packet.h"
#include "waymark/pft/protocol.h"
#include "waymark/pft/recover.h"

namespace waymark::pft {
namespace {

std::uint64_t register_of(const Config& config, std::string_view name) {
    const std::vector<RegisterValue> registers = configuration(config)->registers();
    const RegisterValue* r = find_register(registers, name);
    EXPECT_NE(r, nullptr) << name;
    return r == nullptr ? 0 : r->value;
}
/// The bits in which two configurations differ.
std::uint64_t changed_bits(std::string_view name, const Config& one, const Config& other) {
    return register_of(one, name) ^ register_of(other, name);
}

TEST(PftConfiguration, HasTheBitsOfItsRegisters) {
    const Config none;
    const auto with = [](auto&& change) {
        Config c;
        change(c);
        return c;
    };
    EXPECT_EQ(register_of(none, "ETMCR"), 0U);
    EXPECT_EQ(register_of(none, "ETMCCER"), 0U);
    EXPECT_EQ(register_of(none, "ETMIDR"), 0x411cf310U);
    EXPECT_EQ(register_of(with([](Config& c) { c.minor_version = 0; }), "ETMIDR"), 0x411cf300U);
    constexpr std::uint64_t bit = 1;
    const Config cycles = with([](Config& c) { c.cycle_accurate = true; });
    EXPECT_EQ(register_of(cycles, "ETMCR"), bit << 12);
    EXPECT_EQ(register_of(cycles, "ETMCCER"), 0U);
    const Config broadcast = with([](Config& c) { c.branch_broadcast = true; });
    EXPECT_EQ(register_of(broadcast, "ETMCR"), bit << 8);
    EXPECT_EQ(register_of(broadcast, "ETMCCER"), 0U);
    const Config vmids = with([](Config& c) { c.vmid_trace = true; });
    EXPECT_EQ(register_of(vmids, "ETMCR"), bit << 30);
    // Enabled features are implemented, too.
    const Config stack = with([](Config& c) { c.return_stack = true; });
    EXPECT_EQ(register_of(stack, "ETMCR"), bit << 29);
    EXPECT_EQ(register_of(stack, "ETMCCER"), bit << 23);
    const Config times = with([](Config& c) { c.timestamps = true; });
    EXPECT_EQ(register_of(times, "ETMCR"), bit << 28);
    EXPECT_EQ(register_of(times, "ETMCCER"), bit << 22);
    const Config barriers = with([](Config& c) { c.barrier_waypoints = true; });
    EXPECT_EQ(register_of(barriers, "ETMCR"), 0U);
    EXPECT_EQ(register_of(barriers, "ETMCCER"), bit << 24);
    EXPECT_EQ(changed_bits("ETMCCER", none, with([](Config& c) { c.gray_timestamps = false; })), bit << 28);
    EXPECT_EQ(changed_bits("ETMCCER", none, with([](Config& c) { c.timestamp_bytes = 9; })), bit << 29);
    for (const auto& size : {std::pair{1, 1U}, {2, 2U}, {4, 3U}})
        EXPECT_EQ(
            register_of(with([&](Config& c) { c.context_id_bytes = static_cast<std::uint8_t>(size.first); }), "ETMCR"),
            std::uint64_t{size.second} << 14);
    // Numbers in a capture's form.
    const std::vector<RegisterValue> registers = configuration(none)->registers();
    ASSERT_EQ(registers.size(), 3U);
    EXPECT_EQ(find_register(registers, "ETMCR")->id, 0x00U);
    EXPECT_EQ(find_register(registers, "ETMIDR")->id, 0x79U);
    EXPECT_EQ(find_register(registers, "ETMCCER")->id, 0x7aU);
    EXPECT_EQ(configuration(none)->source_type(), "PTM1.1");
    EXPECT_EQ(configuration(with([](Config& c) { c.minor_version = 0; }))->source_type(), "PTM1.0");
}

std::string text_of(const std::vector<protocol::Setting>& settings) {
    std::string out;
    for (const protocol::Setting& s : settings) {
        out += (out.empty() ? "" : ", ") + s.name + " ";
        if (const auto* flag = std::get_if<bool>(&s.value)) out += *flag ? "yes" : "no";
        if (const auto* number = std::get_if<std::uint64_t>(&s.value)) out += std::to_string(*number);
        if (const auto* text = std::get_if<std::string>(&s.value)) out += *text;
    }
    return out;
}

TEST(PftConfiguration, SaysItsSettings) {
    Config c;
    EXPECT_EQ(text_of(configuration(c)->settings()),
              "version PFT v1.1, cycle_accurate no, context_id_bytes 0, vmid no, return_stack no, branch_broadcast no, "
              "timestamps no, timestamp_bits 48, timestamp_encoding Gray, barriers_are_waypoints ISB");
    c.cycle_accurate = c.return_stack = c.timestamps = true;
    c.context_id_bytes = 4;
    EXPECT_EQ(text_of(configuration(c)->settings()),
              "version PFT v1.1, cycle_accurate yes, context_id_bytes 4, vmid no, return_stack yes, branch_broadcast "
              "no, timestamps yes, timestamp_bits 48, timestamp_encoding Gray, barriers_are_waypoints ISB");
    c = {};
    c.minor_version = 0;
    c.vmid_trace = c.branch_broadcast = c.barrier_waypoints = true;
    c.timestamp_bytes = 9;
    c.gray_timestamps = false;
    EXPECT_EQ(text_of(configuration(c)->settings()),
              "version PFT v1.0, cycle_accurate no, context_id_bytes 0, vmid yes, return_stack no, branch_broadcast "
              "yes, timestamps no, timestamp_bits 64, timestamp_encoding natural binary, barriers_are_waypoints ISB, "
              "DMB, DSB");
}

TEST(PftConfiguration, VariesInWhatOnlyAProgramShows) {
    Config c;
    c.cycle_accurate = true;
    c.return_stack = true;
    std::string stacks_and_barriers;
    for (const auto& variant : configuration(c)->variants()) {
        Config v = config_of(*variant);
        stacks_and_barriers += std::to_string(v.return_stack) + std::to_string(v.barrier_waypoints) + ' ';
        v.return_stack = c.return_stack;
        v.barrier_waypoints = c.barrier_waypoints;
        EXPECT_EQ(v, c);
    }
    EXPECT_EQ(stacks_and_barriers, "00 01 11 ");
    c.return_stack = false;
    EXPECT_FALSE(configuration(c)->waypoints().dmb_dsb_waypoints);
    EXPECT_TRUE(configuration(c)->cycle_counts());
    c.cycle_accurate = false;
    c.barrier_waypoints = true;
    EXPECT_TRUE(configuration(c)->waypoints().dmb_dsb_waypoints);
    EXPECT_FALSE(configuration(c)->cycle_counts());
}

// ---- descriptions

protocol::Configured configured(const std::string& type, const std::vector<RegisterValue>& registers,
                                bool from_command_line = false) {
    return row().configure({"cpu_0", type, "", registers, from_command_line});
}

TEST(PftConfigure, TakesTheRegistersOfACapture) {
    // The registers of a Cortex-A15: cycle-accurate, Context IDs of four bytes, timestamps, stopped by the Programming
    // bit.
    const protocol::Configured a15 =
        configured("PTM1.1", {{"ETMCR", 0x1000d400}, {"ETMCCER", 0x34c01ac2}, {"ETMIDR", 0x411cf312}});
    EXPECT_EQ(a15.problems, std::vector<std::string>{});
    Config expected;
    expected.cycle_accurate = expected.timestamps = true;
    expected.context_id_bytes = 4;
    expected.timestamp_bytes = 9;
    expected.gray_timestamps = false;
    EXPECT_EQ(config_of(*a15.configuration), expected);
    // Version 1.0 has 48-bit Gray coded timestamps with any ETMCCER.
    const protocol::Configured a9 =
        configured("PFT1.0", {{"ETMCR", 0}, {"ETMCCER", 0x34c01ac2}, {"ETMIDR", 0x411cf301}});
    EXPECT_EQ(a9.problems, std::vector<std::string>{});
    expected = {};
    expected.minor_version = 0;
    EXPECT_EQ(config_of(*a9.configuration), expected);
}

TEST(PftConfigure, SaysWhatItAssumes) {
    using Problems = std::vector<std::string>;
    const protocol::Configured none = configured("PTM1.0", {});
    EXPECT_EQ(none.problems,
              (Problems{"source 'cpu_0' has no register ETMCR; decoding goes on as if it were 0x0 (no cycle counts, "
                        "Context IDs or return stack). Add 'ETMCR=VALUE' to its [regs].",
                        "source 'cpu_0' has no register ETMIDR; decoding goes on as if it were 0x4100f300 (the version "
                        "of its type). Add 'ETMIDR=VALUE' to its [regs].",
                        "source 'cpu_0' has no register ETMCCER; decoding goes on as if it were 0x0 (48-bit Gray coded "
                        "timestamps, no barrier waypoints). Add 'ETMCCER=VALUE' to its [regs]."}));
    EXPECT_EQ(config_of(*none.configuration).minor_version, 0);
    EXPECT_EQ(config_of(*configured("PTM1.1", {}).configuration).minor_version, 1);
    EXPECT_EQ(config_of(*configured("PTM", {}).configuration).minor_version, 1);
    EXPECT_EQ(configured("PTM1.1", {}, true).problems.front(),
              "--etmcr is not given; decoding goes on as if ETMCR were 0x0 (no cycle counts, Context IDs or return "
              "stack).");
    EXPECT_EQ(configured("PTM1.1", {}, true).problems[1],
              "--etmidr is not given; decoding goes on as if ETMIDR were 0x4100f310 (the version of its type).");
    EXPECT_EQ(configured("PTM1.1", {{"ETMCR", 0}, {"ETMIDR", 0x411cf312}}, true).problems,
              (Problems{"--etmccer is not given; decoding goes on as if ETMCCER were 0x0 (48-bit Gray coded "
                        "timestamps, no barrier waypoints)."}));
}

TEST(PftConfigure, SaysWhatContradictsItself) {
    using Problems = std::vector<std::string>;
    const auto problems = [](const std::string& type, std::uint64_t cr, std::uint64_t idr) {
        return configured(type, {{"ETMCR", cr}, {"ETMCCER", 0}, {"ETMIDR", idr}}).problems;
    };
    EXPECT_EQ(
        problems("PTM1.0", 0, 0x411cf312),
        (Problems{"source 'cpu_0' is of type PTM1.0, but its ETMIDR 0x411cf312 says PFT v1.1; decoding follows the "
                  "register. Correct whichever is wrong."}));
    EXPECT_EQ(problems("PTM", 0, 0x411cf312), Problems{});  // names no version
    EXPECT_EQ(problems("PTM1.", 0, 0x411cf312), Problems{});
    EXPECT_EQ(problems("PTM1.x", 0, 0x411cf312), Problems{});
    EXPECT_EQ(problems("PTM1.9", 0, 0x411cf312).size(), 1U);
    // The version of an ETMv3 is not a version of PFT, so the version of the type applies.
    EXPECT_EQ(problems("PTM1.0", 0, 0x410cf240),
              (Problems{"source 'cpu_0' is of type PTM1.0, but its ETMIDR 0x410cf240 is not that of a PTM (bits [15:8] "
                        "are 0xf2, expected 0xf3); decoding goes on as PFT v1.0. Correct whichever is wrong."}));
    EXPECT_EQ(problems("PTM1.1", 0, 0x410c2310).size(), 1U);
    EXPECT_EQ(problems("PTM1.1", 1U << 29 | 1U << 8, 0x411cf312),
              (Problems{"source 'cpu_0': ETMCR 0x20000100 enables both return stack and branch broadcast, which a PTM "
                        "does not allow; the value may not be the one in force while tracing."}));
    EXPECT_EQ(problems("PTM1.1", 1U << 29, 0x411cf312), Problems{});
    EXPECT_EQ(problems("PTM1.1", 1U << 8, 0x411cf312), Problems{});
}

TEST(PftRow, KnowsItsNamesInAnyCase) {
    for (const char* type : {"PTM1.0", "ptm1.1", "PFT1.1", "pft1.0", "PTM", "PFT1"}) EXPECT_TRUE(row().is_type(type));
    for (const char* type : {"PTM2.0", "ETM4.1", "STM", ""}) EXPECT_FALSE(row().is_type(type)) << type;
    EXPECT_EQ(row().type_of_option("ptm"), "PTM1.1");
    EXPECT_EQ(row().type_of_option("PFT"), "PFT1.1");
    EXPECT_EQ(row().type_of_option("ptm1.0"), "PTM1.0");
    EXPECT_EQ(row().type_of_option("etm4"), "");
    EXPECT_TRUE(row().how_to_read("trace.bin").empty());
    EXPECT_NE(row().next_step("trace.bin").find("waymark doctor trace.bin "), std::string::npos);
    std::string options;
    for (const protocol::RegisterOption& o : row().register_options())
        options += std::string(o.option) + ' ' + std::string(o.register_name) + ' ';
    EXPECT_EQ(options, "--etmcr ETMCR --etmccer ETMCCER --etmidr ETMIDR ");
}

/// `name=value` of each field of a register that is not 0.
class FieldsSet final : public protocol::FieldVisitor {
public:
    void number(std::string_view name, std::uint64_t value) override {
        if (value != 0) text_ += std::string(name) + '=' + std::to_string(value) + ' ';
    }
    void text(std::string_view, std::string_view) override { ADD_FAILURE(); }
    std::string text_;
};
std::string fields_set(const std::string& name, std::uint64_t value) {
    FieldsSet out;
    row().visit_register({name, value}, out);
    return out.text_;
}

TEST(PftRow, NamesTheFieldsOfRegisters) {
    EXPECT_EQ(fields_set("ETMCR", 0x40009000), "VMID trace enable=1 ContextIDSize=2 cycle-accurate=1 ");
    EXPECT_EQ(fields_set("ETMCCER", 0x31000000),
              "64-bit timestamps=1 natural binary timestamps=1 DMB and DSB are "
              "waypoints=1 ");
    EXPECT_EQ(fields_set("ETMTRACEIDR", 0x15), "trace ID=21 ");
    EXPECT_NE(fields_set("ETMIDR", 0x411cf312), "");
    EXPECT_EQ(fields_set("ETMSYNCFR", 0x400), "value=1024 ");
}

// ---- packets that a configuration reads from a stream

std::vector<std::uint8_t> packed(const Config& config, const std::vector<Packet>& packets) {
    std::vector<std::uint8_t> out;
    for (const Packet& p : packets) encode(out, p, config);
    return out;
}
ISync isync_at(std::uint32_t address, ISyncReason reason = ISyncReason::periodic, bool thumb = false) {
    ISync p;
    p.address_31_1 = address >> 1;
    p.reason = reason;
    p.thumb = thumb;
    return p;
}
BranchAddress branch_by(std::uint32_t bits, std::uint8_t bytes, Isa isa = Isa::a32) {
    return {.target = {.bits = bits, .bytes = bytes, .isa = isa}};
}

TEST(PftConfiguration, NamesTheAddressesOfATrace) {
    const auto named = [](const Config& config, const std::vector<std::uint8_t>& bytes) {
        std::string out;
        configuration(config)->named_addresses(bytes, [&](const Place& place) {
            out += address_text(place.address.value) + (place.isa == Isa::t32 ? "t " : " ");
        });
        return out;
    };
    Config c;
    BranchAddress exception = branch_by(0x3fffc006, 5);
    exception.target.information = true;
    exception.exception_3_0 = 14;
    std::vector<std::uint8_t> bytes =
        packed(c, {ASync{}, isync_at(0x8000), branch_by(4, 1), exception, branch_by(8, 1)});
    // The program does not contain the vector; the next address is compressed against it (2.5).
    EXPECT_EQ(named(c, bytes), "0x00008000 0x00008010 0xffff0020 ");
    // A waypoint update affects the next address only if it is the base of compression (OQ1).
    bytes = packed(c, {ASync{}, isync_at(0x8000),
                       WaypointUpdate{.target = {.bits = 0x2401, .bytes = 5, .isa = Isa::a32}}, branch_by(4, 1)});
    EXPECT_EQ(named(c, bytes), "0x00008000 0x00009010 ");
    c.update_is_compression_base = false;
    EXPECT_EQ(named(c, bytes), "0x00008000 0x00008010 ");
    // Before an I-sync and after damage, only a whole address is known.
    const std::vector<std::uint8_t> unknown =
        packed(c, {ASync{}, branch_by(4, 1), branch_by(0x4801, 5, Isa::t32), branch_by(4, 1)});
    EXPECT_EQ(named(c, unknown), "0x00009002t 0x00009008t ");
    bytes = packed(c, {ASync{}, isync_at(0x8000)});
    bytes.push_back(0x02);
    const std::vector<std::uint8_t> rest = packed(c, {ASync{}, branch_by(4, 1)});
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    EXPECT_EQ(named(c, bytes), "0x00008000 ");
    EXPECT_EQ(named(c, packed(c, {ASync{}, isync_at(0x8000, ISyncReason::periodic, true), branch_by(4, 1)})),
              "0x00008000t 0x00008008t ");
}

TEST(PftConfiguration, SurveysAStream) {
    Config c;
    const auto survey = [&](const std::vector<std::uint8_t>& bytes) {
        OffsetMap offsets;
        offsets.add({0}, {0x100});
        const auto surveyor = configuration(c)->survey(offsets);
        surveyor->feed(bytes);
        surveyor->finish();
        return surveyor->survey();
    };
    using Syncs = std::vector<std::pair<std::string, std::uint64_t>>;
    using Troubles = std::vector<std::string>;
    protocol::Survey s = survey(packed(c, {Ignore{}, ASync{}, isync_at(0x8000, ISyncReason::trace_enabled),
                                           isync_at(0x8000), ASync{}, isync_at(0x8000)}));
    EXPECT_EQ(s.first_sync, Offset{0x101});
    EXPECT_EQ(s.syncs, (Syncs{{std::string(name(ISyncReason::periodic)), 2},
                              {std::string(name(ISyncReason::trace_enabled)), 1}}));
    EXPECT_EQ(s.troubles, Troubles{});
    EXPECT_EQ(s.first_timestamp, std::nullopt);
    EXPECT_EQ(survey(packed(c, {ASync{}, Ignore{}})).troubles, Troubles{"no I-sync, so no address is known"});
    EXPECT_EQ(survey({0x66}).troubles, Troubles{});
    EXPECT_EQ(survey(packed(c, {ASync{}, isync_at(0x8000, ISyncReason::overflow_restart)})).troubles,
              Troubles{"its FIFO overflowed once; execution is missing there"});
    EXPECT_EQ(survey(packed(c, {ASync{}, isync_at(0x8000, ISyncReason::overflow_restart),
                                isync_at(0x8000, ISyncReason::overflow_restart)}))
                  .troubles,
              Troubles{"its FIFO overflowed 2 times; execution is missing there"});
    // Timestamps after a whole timestamp, in natural binary: Gray 3 and 2 are 2 and 3.
    const std::vector<Packet> times = {ASync{}, isync_at(0x8000), Timestamp{.value = {1, 1}},
                                       Timestamp{.value = {3, 7}}, Timestamp{.value = {2, 1}}};
    std::vector<std::uint8_t> bytes = packed(c, times);
    s = survey(bytes);
    EXPECT_EQ(s.first_timestamp, 2U);
    EXPECT_EQ(s.last_timestamp, 3U);
    EXPECT_EQ(s.troubles, Troubles{"ETMCR says no timestamps, but there are some; ETMCR may not be the value in force "
                                   "while tracing"});
    // After damage, the high bits are unknown again.
    bytes.push_back(0x02);
    const std::vector<std::uint8_t> rest = packed(c, {ASync{}, Timestamp{.value = {7, 1}}});
    bytes.insert(bytes.end(), rest.begin(), rest.end());
    EXPECT_EQ(survey(bytes).last_timestamp, 3U);
    c.timestamps = true;
    EXPECT_EQ(survey(bytes).troubles, Troubles{});
}

TEST(PftConfiguration, HasASyncWhereEnoughFollowsIt) {
    const auto whole = configuration({});
    std::vector<std::uint8_t> bytes = packed({}, {Ignore{}, ASync{}});
    bytes.resize(6 + judged_bytes, 0x66);
    EXPECT_FALSE(whole->has_sync(bytes));
    bytes.push_back(0x66);
    EXPECT_TRUE(whole->has_sync(bytes));
    EXPECT_FALSE(whole->has_sync(Bytes(bytes).subspan(2)));  // one zero too few
}

/// From 0x8000 on 64 instructions that are no branches, then a branch to itself.
class LongBlock final : public isa::CodeReader {
public:
    LongBlock() {
        for (unsigned i = 0; i < 64; ++i) bytes_.insert(bytes_.end(), {0x00, 0x00, 0x80, 0xe0});  // ADD R0, R0, R0
        bytes_.insert(bytes_.end(), {0xfe, 0xff, 0xff, 0xea});
    }
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value < 0x8000 || address.value >= 0x8000 + bytes_.size()) return {};
        return {Bytes(bytes_).subspan(address.value - 0x8000), 0};
    }

private:
    std::vector<std::uint8_t> bytes_;
};

TEST(PftConfiguration, WalksNoFartherThanAsked) {
    const LongBlock code;
    const std::vector<std::uint8_t> bytes = packed({}, {ASync{}, isync_at(0x8000), Atom{}});
    for (const protocol::DecoderKind kind : {protocol::DecoderKind::fast, protocol::DecoderKind::reference}) {
        const auto conflicts = [&](std::optional<std::uint32_t> most) {
            flow::Summary summary;
            flow::BlockTable table;
            flow::BatchWriter out(table, summary);
            const auto decoder = configuration({})->decoder(code, out, {.kind = kind, .max_walk_bytes = most});
            decoder->feed(bytes);
            decoder->finish();
            out.flush();
            EXPECT_EQ(decoder->packets(), 3U);
            return summary.totals().inconsistencies[static_cast<unsigned>(flow::Conflict::runaway_walk)];
        };
        EXPECT_EQ(conflicts(std::nullopt), 0U);
        EXPECT_EQ(conflicts(4 * 65), 0U);
        EXPECT_EQ(conflicts(4 * 32), 1U);
    }
}

}  // namespace
}  // namespace waymark::pft
