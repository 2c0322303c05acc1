// Recognition of bytes without a description, mistakes of descriptions, and problems of the bytes themselves. Every
// stream is short enough to count its packets by hand (docs/spec/pft.md, sections 2 and 3).
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pft/support.h"
#include "waymark/flow/flow.h"
#include "waymark/pft/config.h"
#include "waymark/pft/encoder.h"
#include "waymark/pft/likeness.h"
#include "waymark/pft/packet.h"
#include "waymark/pft/protocol.h"

namespace waymark::pft {
namespace {

using protocol::CaptureFinding;
using protocol::Certainty;
using protocol::Identity;
using protocol::InferredField;
using protocol::Severity;
using protocol::Stretch;
using Buffer = std::vector<std::uint8_t>;

/// Offset at which the stretches begin in their buffer.
constexpr Offset in_buffer{0x1000};

std::vector<Stretch> in_one(Buffer bytes) {
    std::vector<Stretch> out(1);
    out[0].bytes = std::move(bytes);
    out[0].offsets.add({0}, in_buffer);
    out[0].head = true;
    return out;
}
std::optional<Offset> buffer_offset(std::uint64_t in_stream) { return in_buffer + in_stream; }

/// Packets as one configuration writes them.
class Packed {
public:
    explicit Packed(const Config& config) : config_(config) {}
    Packed& add(const Packet& packet) {
        encode(bytes_, packet, config_);
        return *this;
    }
    Packed& raw(std::string_view hex) {
        const Buffer more = test::hex(hex);
        bytes_.insert(bytes_.end(), more.begin(), more.end());
        return *this;
    }
    /// A-sync and I-sync.
    Packed& sync(ISyncReason reason = ISyncReason::periodic, std::uint32_t context_id = 0) {
        add(ASync{});
        return isync(reason, context_id);
    }
    Packed& isync(ISyncReason reason, std::uint32_t context_id = 0) {
        ISync p;
        p.address_31_1 = 0x8000 >> 1;
        p.reason = reason;
        p.context_id = context_id;
        return add(p);
    }
    Packed& time(std::uint64_t sent, std::uint8_t bytes) { return add(Timestamp{.value = {sent, bytes}}); }
    /// An E atom; cycle-accurate, of no cycle: 0x80, which is no packet elsewhere (section 2.4).
    Packed& atom() { return add(Atom{.outcome = {.atoms = {1, 0}, .cycles = 0}}); }
    /// Five E atoms, which are never one packet with cycle counts.
    Packed& atoms() { return add(Atom{.outcome = {.atoms = {5, 0}, .cycles = 0}}); }
    [[nodiscard]] const Buffer& bytes() const { return bytes_; }
    [[nodiscard]] std::vector<Stretch> stretches() const { return in_one(bytes_); }

private:
    Config config_;
    Buffer bytes_;
};

const InferredField* fact(const Identity& identity, std::string_view what) {
    const auto found = std::find_if(identity.facts.begin(), identity.facts.end(),
                                    [&](const InferredField& f) { return f.what == what; });
    return found == identity.facts.end() ? nullptr : &*found;
}
std::string text_of(const InferredField& f) {
    return f.what + ": " + f.value + (f.certainty == protocol::Certainty::proven ? ", proven: " : ": ") + f.proof;
}
std::string kinds(const std::vector<CaptureFinding>& findings) {
    std::string out;
    for (const CaptureFinding& f : findings) out += (out.empty() ? "" : " ") + f.kind;
    return out;
}

Identity identified(const std::vector<Stretch>& stretches) {
    Identity out;
    EXPECT_TRUE(row().identify(stretches, out));
    EXPECT_EQ(out.protocol, &row());
    return out;
}
const Recognised& evidence(const Identity& identity) { return static_cast<const Recognised&>(*identity.evidence); }

// ---- counts

TEST(PftLikeness, CountsEachKindOfPacket) {
    Config c;
    c.context_id_bytes = 4;
    c.vmid_trace = true;
    Packed p(c);
    p.raw("08 80 ff").sync(ISyncReason::trace_enabled, 7);           // at 3: 6 and 10 bytes
    p.atoms().add(Atom{.outcome = {.atoms = {2, 1}, .cycles = 0}});  // at 19
    p.add(BranchAddress{.target = {.bits = 3, .bytes = 1}});         // at 21
    BranchAddress exception{.target = {.bits = 0x10, .bytes = 2, .information = true}};
    exception.exception_3_0 = 1;
    p.add(exception);                                                           // at 22: 3 bytes
    p.add(ContextId{8}).add(Vmid{1}).add(ExceptionReturn{});                    // at 25: 5, 2 and 1
    p.time(5, 1);                                                               // at 33: 2 bytes, high bits unknown
    p.time(9, 7);                                                               // at 35: 8
    p.isync(ISyncReason::overflow_restart, 9);                                  // at 43: 10
    p.isync(ISyncReason::periodic, 9).isync(ISyncReason::periodic, 10);         // at 53 and 63
    p.add(Trigger{}).add(Ignore{}).add(WaypointUpdate{.target = {.bits = 1}});  // at 73: 1, 1 and 2
    p.sync(ISyncReason::periodic, 10);                                          // at 77
    ASSERT_EQ(p.bytes().size(), 93U);
    const Likeness is = likeness(p.stretches(), c);
    EXPECT_EQ(is.bytes, 93U);
    EXPECT_EQ(is.packets, 19U);
    EXPECT_EQ(is.asyncs, 2U);
    EXPECT_EQ(is.isyncs, 5U);
    EXPECT_EQ(is.atoms, 7U);
    EXPECT_EQ(is.branches, 2U);
    EXPECT_EQ(is.exceptions, 1U);
    EXPECT_EQ(is.vmids, 1U);
    EXPECT_EQ(is.exception_returns, 1U);
    EXPECT_EQ(is.timestamps, 2U);
    EXPECT_EQ(is.whole_timestamps, 1U);
    EXPECT_EQ(is.overflows, 1U);
    EXPECT_EQ(is.context_changes, 1U);  // not the change after the overflow, nor the one that a packet announced
    EXPECT_EQ(is.unsynchronised_bytes, 3U);
    EXPECT_EQ(is.errors, 0U);
    EXPECT_EQ(is.lost_bytes, 0U);
    EXPECT_EQ(is.spacings, 1U);
    EXPECT_EQ(is.least_spacing, 74U);
    EXPECT_EQ(is.most_spacing, 74U);
    EXPECT_EQ(is.first_async, buffer_offset(3));
    EXPECT_EQ(is.first_timestamp, buffer_offset(33));
    EXPECT_EQ(is.first_overflow, buffer_offset(43));
    EXPECT_EQ(is.first_context_change, buffer_offset(63));
    EXPECT_EQ(is.first_error, std::nullopt);
    EXPECT_EQ(is.first_padding, std::nullopt);
}

TEST(PftLikeness, CountsDamageAndForgetsAcrossIt) {
    Config c;
    c.context_id_bytes = 1;
    Packed p(c);
    p.sync(ISyncReason::periodic, 1).time(100, 7);  // at 0: 6, 7 and 8
    p.raw("02 84 84");                              // at 21: a reserved header (2.1), lost up to the A-sync
    p.sync(ISyncReason::periodic, 2).time(50, 7);   // at 24: another Context ID, an earlier time
    p.raw("82 84");                                 // at 45: no marker (2.4)
    p.sync(ISyncReason::periodic, 2).time(40, 7);   // at 47
    p.raw("00 00 00 00 00 00 00");                  // at 68
    const Likeness is = likeness(p.stretches(), c);
    EXPECT_EQ(is.errors, 2U);
    EXPECT_EQ(is.lost_bytes, 5U);
    EXPECT_EQ(is.first_error, buffer_offset(21));
    EXPECT_EQ(is.padding_bytes, 7U);
    EXPECT_EQ(is.first_padding, buffer_offset(68));
    EXPECT_EQ(is.unsynchronised_bytes, 0U);
    EXPECT_EQ(is.context_changes, 0U);
    EXPECT_EQ(is.backwards_binary, 0U);
    EXPECT_EQ(is.spacings, 0U);
    EXPECT_EQ(is.asyncs, 3U);
    EXPECT_EQ(is.against(), 2U);
}

TEST(PftLikeness, CountsTimestampsThatGoBackwardsReadEitherWay) {
    Config c;
    Packed p(c);
    // 2 ^ 2 >> 1 = 3: as Gray code 1, 3, 2 are 1, 2, 3.
    p.sync().time(1, 7).time(3, 1).time(2, 1).time(2, 1);  // Without a whole timestamp, the high bits are unknown
                                                           // (2.9).
    const Likeness gray = likeness(p.stretches(), c);
    EXPECT_EQ(gray.backwards_gray, 0U);
    EXPECT_EQ(gray.backwards_binary, 1U);
    EXPECT_EQ(gray.first_backwards_binary, buffer_offset(22));
    p = Packed(c);
    p.sync().time(1, 7).time(2, 1).time(3, 1).time(3, 1);
    const Likeness binary = likeness(p.stretches(), c);
    EXPECT_EQ(binary.backwards_gray, 1U);
    EXPECT_EQ(binary.first_backwards_gray, buffer_offset(22));
    EXPECT_EQ(binary.backwards_binary, 0U);
    // If no timestamp is ever whole, their size may be wrong.
    p = Packed(c);
    p.sync().time(3, 1).time(1, 1);
    EXPECT_EQ(likeness(p.stretches(), c).backwards_binary, 0U);
    // Where no timestamp is ever whole, their size may be wrong.
    EXPECT_EQ(likeness(p.stretches(), c).against(), 2U);
}

TEST(PftLikeness, MeasuresTheSpacingOfASyncs) {
    const Config c;
    Packed p(c);
    p.sync().sync().atom().sync().atom().atom().sync();  // A-syncs at 0, 12, 25 and 39
    const Likeness is = likeness(p.stretches(), c);
    EXPECT_EQ(is.spacings, 3U);
    EXPECT_EQ(is.least_spacing, 12U);
    EXPECT_EQ(is.most_spacing, 14U);
    EXPECT_EQ(is.spacing_sum, 39U);
    EXPECT_EQ(identified(p.stretches()).remarks, (std::vector<std::pair<std::string, std::string>>{
                                                     {"syncs", "4 A-syncs, 12 to 14 bytes apart, 13 in the mean"}}));
    EXPECT_EQ(identified(Packed(c).sync().sync().sync().stretches()).remarks.front().second,
              "3 A-syncs, 12 bytes apart");
    EXPECT_EQ(identified(Packed(c).sync().stretches()).remarks.front().second, "1 A-sync");
}

// ---- recognition

TEST(PftRecognition, NeedsAnASyncAndAnISyncAndLittleDamage) {
    const Config c;
    const auto refused = [](const std::vector<Stretch>& stretches) {
        Identity out;
        EXPECT_FALSE(row().identify(stretches, out));
        EXPECT_EQ(out.configuration, nullptr);
        EXPECT_EQ(out.tried.size(), 1U);
        EXPECT_EQ(out.tried.front().what, "Program Flow Trace (PTM), 16 configurations");
        return out.tried.front().result;
    };
    EXPECT_EQ(refused(in_one(test::hex("84 84 84"))), "at best no A-sync (00 00 00 00 00 80)");
    EXPECT_EQ(refused(Packed(c).add(ASync{}).add(Ignore{}).stretches()), "at best 1 A-sync, but no I-sync");
    // A quarter of the synchronisations may have damage, and no more. Neither bytes before an A-sync nor zeros at the
    // end count.
    const auto damaged = [&](unsigned times) {
        Packed p(c);
        for (unsigned i = 0; i < 4; ++i) {
            p.sync();
            for (unsigned k = 0; k < 20; ++k) p.add(Ignore{});
            if (i < times) p.raw("02");
        }
        return p.stretches();
    };
    Identity enough;
    EXPECT_TRUE(row().identify(damaged(2), enough));
    EXPECT_EQ(enough.tried.front().result,
              "at best 88 packets, 4 A-syncs, 4 I-syncs, 2 stretches (2 bytes) without packets");
    EXPECT_EQ(refused(damaged(3)), "at best 88 packets, 4 A-syncs, 4 I-syncs, 3 stretches (3 bytes) without packets");
    // Half as many bytes are lost as are parsed, and one byte more. Bytes before an A-sync do not count, nor do zeros
    // at the end.
    const auto lost = [&](unsigned bytes) {
        Packed p(c);
        p.raw("0c 0c 0c 0c 0c 0c 0c 0c").sync();
        for (unsigned i = 0; i < 16; ++i) p.add(Ignore{});
        p.raw("02");
        for (unsigned i = 1; i < bytes; ++i) p.raw("66");
        p.sync().raw("00 00 00 00 00 00 00 00");
        return p.stretches();
    };
    EXPECT_TRUE(row().identify(lost(20), enough));
    EXPECT_EQ(refused(lost(21)), "at best 20 packets, 2 A-syncs, 2 I-syncs, 1 stretch (21 bytes) without packets");
}

TEST(PftRecognition, ProvesNothingWithBytesThatParseAnyWay) {
    Packed p((Config()));
    p.sync(ISyncReason::periodic);
    for (unsigned i = 0; i < 12; ++i) p.atom();
    const Identity identity = identified(p.stretches());
    EXPECT_EQ(identity.facts,
              (std::vector<InferredField>{
                  {"cycle counts", "no", Certainty::assumed, "with them would parse as well"},
                  {"Context ID", "not traced", Certainty::assumed, "1 byte would parse as well"},
                  {"timestamps", "none", Certainty::likely, "no timestamp packet"},
                  {"version", "PFT v1.1", Certainty::assumed, "nothing in the bytes distinguishes v1.0 from v1.1"},
              }));
    EXPECT_FALSE(evidence(identity).cycle_accurate_proven);
    EXPECT_FALSE(evidence(identity).context_id_proven);
    EXPECT_FALSE(evidence(identity).timestamp_size_proven);
    EXPECT_FALSE(evidence(identity).encoding_proven);
    EXPECT_FALSE(evidence(identity).version_proven);
    EXPECT_EQ(config_of(*identity.configuration), Config());
    EXPECT_EQ(identity.waypoints, 12U);
    EXPECT_EQ(identity.first_sync, in_buffer);
}

TEST(PftRecognition, CountsOutcomesAndAddressesOfBranchesAsWaypoints) {
    Packed p((Config()));
    BranchAddress exception{.target = {.bits = 0x10, .bytes = 2, .information = true}};
    exception.exception_3_0 = 1;
    p.sync().atoms().atom().add(BranchAddress{.target = {.bits = 3}}).add(exception);
    EXPECT_EQ(identified(p.stretches()).waypoints, 7U);  // an exception is not such a change
}

/// Every configuration that changes the form of packets, with a stream that contradicts the other configurations.
Packed telling(const Config& c) {
    Packed p(c);
    const std::uint32_t mask = c.context_id_bytes == 4 ? ~0U : (1U << 8 * c.context_id_bytes) - 1;
    for (std::uint32_t i = 0; i < 24; ++i) {
        p.sync(i % 2 == 0 ? ISyncReason::periodic : ISyncReason::trace_enabled, 0x06040402U & mask);
        // Numbers without meaning: the bytes after an I-sync differ each time.
        for (std::uint32_t k = 0; k < 8; ++k) {
            if (c.cycle_accurate)
                p.add(Atom{.outcome = {.atoms = {1, 0}, .cycles = (i * 8 + k) % 3}});
            else
                p.add(Atom{.outcome = {.atoms = {5, static_cast<std::uint8_t>((i * 7 + k * 3) % 32)}, .cycles = 0}});
        }
        const std::uint64_t time = 1000 + i * 33;
        p.time(c.gray_timestamps ? to_gray(time) : time, i % 6 == 0 ? c.timestamp_bytes : 2);
    }
    return p;
}

TEST(PftRecognition, FindsEveryConfigurationThatTheBytesShow) {
    for (const Config& made : test::all_configs()) {
        SCOPED_TRACE(testing::Message() << made.cycle_accurate << ' ' << unsigned{made.context_id_bytes} << ' '
                                        << unsigned{made.timestamp_bytes});
        const Identity identity = identified(telling(made).stretches());
        const Config& is = config_of(*identity.configuration);
        EXPECT_EQ(is.cycle_accurate, made.cycle_accurate);
        EXPECT_EQ(is.context_id_bytes, made.context_id_bytes);
        EXPECT_EQ(is.timestamp_bytes, made.timestamp_bytes);
        EXPECT_EQ(is.gray_timestamps, made.gray_timestamps);
        EXPECT_TRUE(is.timestamps);
        EXPECT_FALSE(is.vmid_trace);
        const Recognised& found = evidence(identity);
        EXPECT_TRUE(found.cycle_accurate_proven && found.context_id_proven && found.timestamp_size_proven &&
                    found.encoding_proven);
        EXPECT_EQ(found.likeness.errors, 0U);
        EXPECT_EQ(found.config, is);
        const bool wide = made.timestamp_bytes == 9;
        ASSERT_NE(fact(identity, "timestamps"), nullptr);
        EXPECT_EQ(fact(identity, "cycle counts")->value, made.cycle_accurate ? "yes" : "no");
        EXPECT_EQ(fact(identity, "timestamps")->value, wide ? "64 bits" : "48 bits");
        EXPECT_EQ(fact(identity, "timestamp encoding")->value, wide ? "natural binary" : "Gray");
        // v1.0 has no 64-bit timestamps, and Gray code is the v1.0 encoding (section 2.9).
        EXPECT_EQ(fact(identity, "version")->value, wide ? "PFT v1.1" : "PFT v1.0");
        EXPECT_EQ(is.minor_version, wide ? 1 : 0);
        EXPECT_EQ(found.version_proven, wide);
        for (const InferredField& f : identity.facts) {
            if (f.what == "version") continue;
            EXPECT_EQ(f.certainty, protocol::Certainty::proven) << f.what << ": " << f.proof;
        }
    }
}

TEST(PftRecognition, SaysWhatContradictsAnotherConfiguration) {
    // Five outcomes in a packet, whose bits are cycle counts of over five bytes with cycle counts: one contradiction
    // for each A-sync. Read as a Context ID, the first outcomes change without a packet that announces it.
    Packed p((Config()));
    for (std::uint8_t i = 0; i < 3; ++i) {
        p.sync();
        for (std::uint8_t k = 0; k < 16; ++k) p.add(Atom{.outcome = {.atoms = {5, i}, .cycles = 0}});
    }
    EXPECT_EQ(text_of(identified(p.stretches()).facts[0]),
              "cycle counts: no, proven: with them: 3 contradictions, here 0");
    EXPECT_EQ(text_of(identified(p.stretches()).facts[1]),
              "Context ID: not traced, proven: 1 byte: 2 contradictions, here 0");
    // A reserved header is damage under both configurations.
    p.raw("02").sync();
    EXPECT_EQ(text_of(identified(p.stretches()).facts[0]),
              "cycle counts: no, proven: with them: 3 contradictions, here 1");
}

TEST(PftRecognition, TellsTheVersionByWhatOnlyOneHas) {
    const auto version = [](const Packed& p) {
        const Identity identity = identified(p.stretches());
        const InferredField& f = *fact(identity, "version");
        EXPECT_EQ(f.certainty == protocol::Certainty::proven, evidence(identity).version_proven);
        EXPECT_EQ(f.value, "PFT v1." + std::to_string(config_of(*identity.configuration).minor_version));
        return f.value + (f.certainty == protocol::Certainty::proven ? ", proven: " : ": ") + f.proof;
    };
    const Config c;
    EXPECT_EQ(version(Packed(c).sync().add(Vmid{3})), "PFT v1.1, proven: 1 VMID packet, which only v1.1 has");
    EXPECT_TRUE(config_of(*identified(Packed(c).sync().add(Vmid{3}).stretches()).configuration).vmid_trace);
    EXPECT_EQ(version(Packed(c).sync().add(ExceptionReturn{}).add(ExceptionReturn{})),
              "PFT v1.1, proven: 2 exception return packets, which only v1.1 has");
    // As Gray code 1, 2, 3 are 1, 3, 2.
    EXPECT_EQ(version(Packed(c).sync().time(1, 7).time(2, 1).time(3, 1)),
              "PFT v1.1, proven: timestamps in natural binary, which only v1.1 has");
    EXPECT_EQ(version(Packed(c).sync().time(1, 7).time(3, 1).time(2, 1)),
              "PFT v1.0: Gray code, and nothing that only v1.1 has");
    // One timestamp shows no order, so it shows no encoding.
    EXPECT_EQ(version(Packed(c).sync().time(1, 7)), "PFT v1.1: nothing in the bytes distinguishes v1.0 from v1.1");
    Config wide;
    wide.timestamp_bytes = 9;
    Packed p(wide);
    for (std::uint8_t i = 0; i < 2; ++i) {
        p.sync();
        for (unsigned k = 0; k < 16; ++k) p.add(Atom{.outcome = {.atoms = {5, i}, .cycles = 0}});
    }
    EXPECT_EQ(version(p.time(std::uint64_t{1} << 63, 9)), "PFT v1.1, proven: 64-bit timestamps, which only v1.1 has");
}

TEST(PftRecognition, SaysHowTimestampsAreEncodedAndWhy) {
    const Config c;
    const auto encoding = [](const Packed& p) {
        return text_of(*fact(identified(p.stretches()), "timestamp encoding"));
    };
    EXPECT_EQ(encoding(Packed(c).sync().time(1, 7).time(2, 1).time(3, 1)),
              "timestamp encoding: natural binary, proven: as Gray code 1 of 3 go backwards, as binary 0");
    EXPECT_EQ(encoding(Packed(c).sync().time(1, 7).time(3, 1).time(2, 1)),
              "timestamp encoding: Gray, proven: as Gray code 0 of 3 go backwards, as binary 1");
    EXPECT_EQ(encoding(Packed(c).sync().time(1, 7)), "timestamp encoding: Gray: too few timestamps to decide");
    EXPECT_TRUE(evidence(identified(Packed(c).sync().time(1, 7).time(2, 1).time(3, 1).stretches())).encoding_proven);
}

// ---- a description against the bytes

protocol::Settled settled(const std::vector<Stretch>& stretches, const Config& described) {
    return row().settle(identified(stretches), *configuration(described), stretches, "cpu_0.ini");
}

TEST(PftDescription, IsBelievedWhereTheBytesDoNotContradictIt) {
    Config made;
    made.timestamps = true;
    made.minor_version = 0;
    Config described = made;
    described.return_stack = described.barrier_waypoints = described.branch_broadcast = described.vmid_trace = true;
    described.minor_version = 1;
    const protocol::Settled right = settled(telling(made).stretches(), described);
    EXPECT_EQ(kinds(right.findings), "");
    EXPECT_EQ(config_of(*right.configuration), described);
    // Bytes that parse under any setting contradict no description.
    described.cycle_accurate = true;
    described.context_id_bytes = 1;
    described.timestamp_bytes = 9;
    described.gray_timestamps = false;
    Packed p((Config()));
    p.sync();
    for (unsigned i = 0; i < 12; ++i) p.atom();
    EXPECT_EQ(kinds(settled(p.stretches(), described).findings), "");
    EXPECT_EQ(config_of(*settled(p.stretches(), described).configuration), described);
}

TEST(PftDescription, CycleCountsThatAreNotThere) {
    Packed p((Config()));
    for (std::uint8_t i = 0; i < 3; ++i) {
        p.sync();
        for (std::uint8_t k = 0; k < 8; ++k) p.add(Atom{.outcome = {.atoms = {5, i}, .cycles = 0}});
    }
    Config described;
    described.cycle_accurate = true;
    described.return_stack = true;
    const protocol::Settled with = settled(p.stretches(), described);
    ASSERT_EQ(kinds(with.findings), "cycle-accurate");
    // At 12 a count with six bytes, although five are the maximum (2.3): 8 bytes are lost up to the next A-sync.
    EXPECT_EQ(
        with.findings[0],
        (CaptureFinding{Severity::error,
                        "cycle-accurate",
                        {},
                        {},
                        buffer_offset(12),
                        "ETMCR says cycle-accurate; parsed so, 3 stretches (24 bytes) without packets, and 0 Context "
                        "IDs change without a statement",
                        "no cycle counts in the bytes: so 0 stretches without packets",
                        "the registers were read before or after another setting was in force, or from another unit",
                        "correct ETMCR bit 12 of cpu_0.ini"}));
    EXPECT_FALSE(config_of(*with.configuration).cycle_accurate);
    EXPECT_TRUE(config_of(*with.configuration).return_stack);  // which the bytes do not contradict
}

TEST(PftDescription, CycleCountsThatAreMissing) {
    Config made;
    made.cycle_accurate = true;
    Packed p(made);
    p.sync().atom().sync().atom().atom();  // 0x80 at 12, 25 and 26
    Config described;
    described.branch_broadcast = true;
    const protocol::Settled without = settled(p.stretches(), described);
    ASSERT_EQ(kinds(without.findings), "cycle-accurate");
    EXPECT_EQ(without.findings[0].found,
              "ETMCR says no cycle counts; parsed so, 2 stretches (3 bytes) without packets, and 0 Context IDs change "
              "without a statement");
    EXPECT_EQ(without.findings[0].expected, "cycle counts in the bytes: so 0 stretches without packets");
    EXPECT_EQ(without.findings[0].offset, buffer_offset(12));
    EXPECT_TRUE(config_of(*without.configuration).cycle_accurate);
}

// One wrong setting does not affect the others: settings that agree with the bytes are not mentioned.
TEST(PftDescription, OnlyWhatIsWrongIsFound) {
    for (const Config& made : test::all_configs()) {
        Config described = made;
        described.timestamps = true;
        const auto stretches = telling(made).stretches();
        const Identity identity = identified(stretches);
        const auto found = [&](const Config& c) {
            return kinds(row().settle(identity, *configuration(c), stretches, "cpu_0.ini").findings);
        };
        EXPECT_EQ(found(described), "");
        Config other = described;
        other.cycle_accurate = !made.cycle_accurate;
        EXPECT_EQ(found(other), "cycle-accurate");
        other = described;
        other.context_id_bytes = made.context_id_bytes == 1 ? 2 : 1;
        EXPECT_EQ(found(other), "context-id-size");
        other = described;
        other.timestamp_bytes = made.timestamp_bytes == 7 ? 9 : 7;
        EXPECT_EQ(found(other), "timestamp-size");
        other = described;
        other.gray_timestamps = !made.gray_timestamps;
        EXPECT_EQ(found(other), "timestamp-encoding");
    }
}

TEST(PftDescription, ContextIdsOfAnotherSize) {
    Config made;
    made.context_id_bytes = 1;
    Packed p(made);
    for (std::uint8_t i = 0; i < 3; ++i) {
        p.sync(ISyncReason::periodic, 4);  // With a size of two bytes, everything parses, but the second byte is an
                                           // outcome that changes.
        for (std::uint8_t k = 0; k < 8; ++k) p.add(Atom{.outcome = {.atoms = {5, i}, .cycles = 0}});
    }
    const protocol::Settled none = settled(p.stretches(), Config());
    ASSERT_EQ(kinds(none.findings), "context-id-size");
    EXPECT_EQ(none.findings[0].found,
              "ETMCR says Context IDs of 0 bytes; parsed so, 3 stretches (27 bytes) without packets, and 0 Context IDs "
              "change without a statement");
    EXPECT_EQ(none.findings[0].expected, "Context IDs of 1 byte: so 0 stretches without packets");
    EXPECT_EQ(none.findings[0].advice, "correct ETMCR bits 15:14 of cpu_0.ini");
    EXPECT_EQ(none.findings[0].offset, buffer_offset(12));
    EXPECT_EQ(config_of(*none.configuration).context_id_bytes, 1);
    // Of two bytes, all parses, but the second byte is an outcome that changes.
    Config two;
    two.context_id_bytes = 2;
    const protocol::Settled more = settled(p.stretches(), two);
    ASSERT_EQ(kinds(more.findings), "context-id-size");
    EXPECT_EQ(more.findings[0].found,
              "ETMCR says Context IDs of 2 bytes; parsed so, 0 stretches (0 bytes) without packets, and 2 Context IDs "
              "change without a statement");
    EXPECT_EQ(more.findings[0].offset, buffer_offset(21 + 6));  // the second I-sync
}

TEST(PftDescription, TimestampsOfAnotherSizeOrEncoding) {
    Config made;
    made.timestamps = true;
    Packed p(made);
    p.sync().time(1, 7).time(3, 1).time(2, 1);  // Gray code; at 12, 20 and 22
    Config described = made;
    described.timestamp_bytes = 9;
    const protocol::Settled wide = settled(p.stretches(), described);
    ASSERT_EQ(kinds(wide.findings), "timestamp-size");
    EXPECT_EQ(wide.findings[0].severity, Severity::error);
    EXPECT_EQ(wide.findings[0].found,
              "ETMCCER says timestamps of 64 bits; parsed so, 0 stretches (0 bytes) without packets, and 0 Context IDs "
              "change without a statement");
    EXPECT_EQ(wide.findings[0].expected, "timestamps of 48 bits: so 0 stretches without packets");
    EXPECT_EQ(wide.findings[0].advice, "correct ETMCCER bit 29 of cpu_0.ini");
    EXPECT_EQ(config_of(*wide.configuration).timestamp_bytes, 7);
    // If the size is wrong, the encoding is not proven either.
    described.gray_timestamps = false;
    EXPECT_TRUE(config_of(*settled(p.stretches(), described).configuration).gray_timestamps);

    described = made;
    described.gray_timestamps = false;
    const protocol::Settled binary = settled(p.stretches(), described);
    ASSERT_EQ(kinds(binary.findings), "timestamp-encoding");
    EXPECT_EQ(binary.findings[0], (CaptureFinding{Severity::warning,
                                                  "timestamp-encoding",
                                                  {},
                                                  {},
                                                  buffer_offset(22),
                                                  "with the encoding of ETMCCER, 1 of 3 timestamps go backwards",
                                                  "Gray code",
                                                  "ETMCCER or ETMIDR is of another unit",
                                                  "correct ETMCCER bit 28 of cpu_0.ini"}));
    p = Packed(made);
    p.sync().time(1, 7).time(2, 1).atom().time(3, 1);  // natural binary
    const protocol::Settled gray = settled(p.stretches(), made);
    ASSERT_EQ(kinds(gray.findings), "timestamp-encoding");
    EXPECT_EQ(gray.findings[0].expected, "natural binary");
    EXPECT_EQ(gray.findings[0].found, "with the encoding of ETMCCER, 1 of 3 timestamps go backwards");
    EXPECT_EQ(gray.findings[0].offset, buffer_offset(23));
}

TEST(PftDescription, TimestampsThatWereSaidToBeOff) {
    Config made;
    made.timestamps = true;
    Packed p(made);
    p.sync().time(1, 7);
    const protocol::Settled off = settled(p.stretches(), Config());
    ASSERT_EQ(kinds(off.findings), "timestamps-on");
    EXPECT_EQ(off.findings[0], (CaptureFinding{Severity::warning,
                                               "timestamps-on",
                                               {},
                                               {},
                                               buffer_offset(12),
                                               "1 timestamp, but ETMCR bit 28 is 0",
                                               "ETMCR bit 28 set",
                                               "ETMCR is not the value in force while tracing",
                                               "correct ETMCR of cpu_0.ini"}));
    EXPECT_EQ(kinds(settled(p.stretches(), made).findings), "");
}

TEST(PftDescription, WhatAProgramProvesOfIt) {
    Config proven, described;
    proven.return_stack = true;
    const auto differences = [&] { return configuration(proven)->differences(*configuration(described), "cpu_0.ini"); };
    ASSERT_EQ(kinds(differences()), "return-stack");
    EXPECT_EQ(differences()[0].severity, Severity::error);
    EXPECT_EQ(differences()[0].found, "ETMCR says return stack off; decoded so, the image is contradicted");
    EXPECT_EQ(differences()[0].expected, "return stack on");
    EXPECT_EQ(differences()[0].advice, "correct ETMCR bit 29 of cpu_0.ini");
    std::swap(proven, described);
    EXPECT_EQ(differences()[0].found, "ETMCR says return stack on; decoded so, the image is contradicted");
    EXPECT_EQ(differences()[0].expected, "return stack off");
    proven = described;
    EXPECT_EQ(kinds(differences()), "");
    proven.barrier_waypoints = true;
    ASSERT_EQ(kinds(differences()), "barrier-waypoints");
    EXPECT_EQ(differences()[0].severity, Severity::error);
    EXPECT_EQ(differences()[0].found, "ETMCCER says DMB and DSB are no waypoints");
    EXPECT_EQ(differences()[0].expected, "waypoints");
    EXPECT_EQ(differences()[0].advice, "correct ETMCCER bit 24 of cpu_0.ini");
    std::swap(proven, described);
    EXPECT_EQ(differences()[0].found, "ETMCCER says DMB and DSB are waypoints");
    EXPECT_EQ(differences()[0].expected, "no waypoints");
}

// ---- problems of the bytes

std::vector<CaptureFinding> health(const std::vector<Stretch>& stretches, const Config& config = {}) {
    return row().health({}, configuration(config).get(), stretches, "etb");
}

TEST(PftHealth, HasNothingToSayOfSoundTrace) {
    Config c;
    Packed p(c);
    p.sync().time(1, 7).time(3, 1).atoms().sync(ISyncReason::trace_enabled).atoms();
    EXPECT_EQ(kinds(health(p.stretches(), c)), "");
}

TEST(PftHealth, DamageOverflowAndWhatCameBeforeTheFirstASync) {
    Packed p((Config()));
    p.raw("84 84").sync().raw("02 84").sync().raw("82").sync(ISyncReason::overflow_restart);
    const std::vector<CaptureFinding> one = health(p.stretches());
    ASSERT_EQ(kinds(one), "damaged-packets overflow unsynchronised");
    EXPECT_EQ(one[0].severity, Severity::warning);
    EXPECT_EQ(one[0].offset, buffer_offset(14));
    EXPECT_EQ(one[0].found, "2 stretches (3 bytes) without packets, under any configuration");
    EXPECT_EQ(one[1].severity, Severity::warning);
    EXPECT_EQ(one[1].offset, buffer_offset(35));
    EXPECT_EQ(one[1].found, "the unit's FIFO overflowed 1 time");
    EXPECT_EQ(one[2].severity, Severity::note);
    EXPECT_EQ(one[2].offset, in_buffer);
    EXPECT_EQ(one[2].found, "2 bytes before an A-sync");
    EXPECT_EQ(one[2].cause, "the beginning of a buffer that wrapped");
    std::vector<Stretch> two = p.stretches();
    two.push_back(two[0]);
    EXPECT_EQ(health(two)[2].cause, "the beginning of a buffer that wrapped, and of each examined piece");
    EXPECT_EQ(health(two)[2].found, "4 bytes before an A-sync");
}

TEST(PftHealth, ASyncsFarApart) {
    const auto apart = [](std::size_t bytes) {
        Packed p((Config()));
        p.sync();
        Buffer out = p.bytes();
        out.resize(bytes, 0x66);
        p.sync();
        out.insert(out.end(), p.bytes().begin(), p.bytes().end());
        return health(in_one(out));
    };
    EXPECT_EQ(kinds(apart(16384)), "");
    ASSERT_EQ(kinds(apart(16385)), "sync-spacing");
    EXPECT_EQ(apart(16385)[0].found, "up to 16,385 bytes between A-syncs (least 12, mean 8198)");
    EXPECT_EQ(apart(16385)[0].expected, "about 1024 bytes");
    EXPECT_EQ(apart(16385)[0].offset, in_buffer);
    EXPECT_EQ(apart(16385)[0].severity, Severity::warning);
}

TEST(PftHealth, TimestampsThatGoBackwards) {
    Config gray, binary;
    binary.gray_timestamps = false;
    Packed p(gray);
    p.sync().time(1, 7).time(3, 1).time(2, 1);  // as Gray code 1, 2, 3
    EXPECT_EQ(kinds(health(p.stretches(), gray)), "");
    ASSERT_EQ(kinds(health(p.stretches(), binary)), "time-backwards");
    EXPECT_EQ(health(p.stretches(), binary)[0].found, "1 of 3 timestamps is below the one before");
    EXPECT_EQ(health(p.stretches(), binary)[0].offset, buffer_offset(22));
    EXPECT_EQ(health(p.stretches(), binary)[0].severity, Severity::warning);
    p = Packed(gray);
    p.sync().time(1, 7).time(2, 1).atom().time(3, 1);
    EXPECT_EQ(kinds(health(p.stretches(), binary)), "");
    ASSERT_EQ(kinds(health(p.stretches(), gray)), "time-backwards");
    EXPECT_EQ(health(p.stretches(), gray)[0].found, "1 of 3 timestamps is below the one before");
    EXPECT_EQ(health(p.stretches(), gray)[0].offset, buffer_offset(23));
}

TEST(PftHealth, ZerosAtTheEnd) {
    Packed p((Config()));
    p.sync();
    Buffer bytes = p.bytes();
    bytes.resize(12 + 64);
    EXPECT_EQ(kinds(health(in_one(bytes))), "");
    bytes.resize(12 + 65);
    const std::vector<CaptureFinding> findings = health(in_one(bytes));
    ASSERT_EQ(kinds(findings), "trailing-zeros");
    EXPECT_EQ(findings[0].severity, Severity::note);
    EXPECT_EQ(findings[0].offset, buffer_offset(12));
    EXPECT_EQ(findings[0].found, "65 bytes of zeros at the end");
}

TEST(PftSentences, NameTheAddressOfTheTraceAndThatOfTheProgram) {
    using flow::Conflict;
    const auto sentence = [](Conflict conflict, std::uint64_t found = 0x8000, std::uint64_t expected = 0x9004) {
        return row().sentence({conflict, {found}, {expected}});
    };
    EXPECT_EQ(sentence(Conflict::sync_disagrees),
              "the I-sync contains 0x00009004, but the walk has reached 0x00008000");
    EXPECT_EQ(sentence(Conflict::sync_disagrees, 0x8000, 0x8000),
              "the I-sync confirms 0x00008000, but not the instruction set or context reached");
    EXPECT_EQ(sentence(Conflict::branch_disagrees),
              "the branch packet goes to 0x00009004, the image's direct branch to 0x00008000");
    EXPECT_EQ(sentence(Conflict::update_behind),
              "the waypoint update contains 0x00009004, which the walk has passed (0x00008000 is next)");
    EXPECT_EQ(sentence(Conflict::no_return_address),
              "no address for the indirect branch at 0x00008000, nor a return stack entry");
    EXPECT_EQ(sentence(Conflict::undefined_reached), "an atom leads over the undefined instruction at 0x00008000");
    EXPECT_EQ(sentence(Conflict::runaway_walk),
              "an atom, but no branch up to 0x00008000, which is farther than any block goes");
    EXPECT_EQ(sentence(Conflict::update_disagrees),
              "the waypoint update names 0x00009004, but the program leads to 0x00008000");
    EXPECT_EQ(sentence(Conflict::vmid_missing),
              "VMIDs are traced (ETMCR bit 30), but none is between an I-sync and the packet here");
}

}  // namespace
}  // namespace waymark::pft
