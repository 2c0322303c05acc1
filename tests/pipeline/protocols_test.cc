// Requirements on every row of the registry, for any protocol. Bytes are random: most of them are damage, and packets
// and gaps must still account for all bytes.
#include "waymark/pipeline/protocols.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "waymark/flow/summary.h"
#include "waymark/image/memory_map.h"

namespace waymark::pipeline {
namespace {

std::vector<std::uint8_t> random_bytes(std::uint64_t seed, std::size_t count) {
    std::mt19937_64 random(seed);
    std::vector<std::uint8_t> out(count);
    for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(random());
    // Synchronisation points of several protocols, so that the bytes are not all one gap.
    const std::vector<std::uint8_t> zeros(11, 0);
    for (std::size_t at = 64; at + zeros.size() + 2 < out.size(); at += 512) {
        std::copy(zeros.begin(), zeros.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
        out[at + zeros.size()] = 0x80;
    }
    const std::vector<std::uint8_t> ones(10, 0xff);
    for (std::size_t at = 320; at + ones.size() + 2 < out.size(); at += 512) {
        std::copy(ones.begin(), ones.end(), out.begin() + static_cast<std::ptrdiff_t>(at));
        out[at + ones.size()] = 0x0f;
    }
    return out;
}

/// Feeds in chunks of random sizes.
void feed(protocol::Reader& reader, Bytes bytes, std::mt19937_64& random) {
    while (!bytes.empty()) {
        const std::size_t count = std::min<std::size_t>(bytes.size(), 1 + random() % 97);
        reader.feed(bytes.first(count));
        bytes = bytes.subspan(count);
    }
    reader.finish();
}

class Listed final : public protocol::PacketListener {
public:
    void packet(const protocol::PacketView& packet, protocol::Extent at) override {
        EXPECT_EQ(at.first, end);
        end = at.end();
        text += std::string(packet.name()) + ' ' + packet.fields_text() + ' ' + packet.meaning() + '\n';
        names.insert(std::string(packet.name()));
        Fields fields;
        packet.visit(fields);
        ++packets;
    }
    void gap(const Gap& gap) override {
        EXPECT_EQ(gap.first, end);
        end = gap.end;
        text += "GAP " + std::string(name(gap.reason)) + ' ' + std::to_string(gap.bytes()) + '\n';
    }
    std::string text;
    std::set<std::string> names;
    std::uint64_t packets = 0;
    Offset end{};

private:
    class Fields final : public protocol::FieldVisitor {
        void number(std::string_view name, std::uint64_t) override { EXPECT_FALSE(name.empty()); }
        void text(std::string_view name, std::string_view) override { EXPECT_FALSE(name.empty()); }
    };
};

class Registry : public ::testing::TestWithParam<const Protocol*> {
protected:
    [[nodiscard]] const Protocol& protocol() const { return *GetParam(); }
    /// For protocols whose bytes come from sources of captures: a configuration without a description.
    [[nodiscard]] protocol::Configured undescribed() const {
        const std::vector<RegisterValue> none;
        return protocol().configure({"s", protocol().type_of_option("none"), "", none, false});
    }
};
/// Protocols whose bytes come from sources of captures.
class SourceRegistry : public Registry {};
/// Protocols whose flow is decoded.
class FlowRegistry : public Registry {};

std::vector<const Protocol*> rows(bool (*has)(const Protocol&)) {
    std::vector<const Protocol*> out;
    for (const Protocol* protocol : protocols())
        if (has(*protocol)) out.push_back(protocol);
    return out;
}
std::string unit(const ::testing::TestParamInfo<const Protocol*>& test) {
    return std::string(test.param->words().unit);
}
INSTANTIATE_TEST_SUITE_P(Rows, Registry, ::testing::ValuesIn(rows([](const Protocol&) { return true; })), unit);
INSTANTIATE_TEST_SUITE_P(Rows, SourceRegistry,
                         ::testing::ValuesIn(rows([](const Protocol& p) { return p.trace_id().has_value(); })), unit);
INSTANTIATE_TEST_SUITE_P(Rows, FlowRegistry,
                         ::testing::ValuesIn(rows([](const Protocol& p) { return p.decodes_flow(); })), unit);

TEST(Protocols, AreDistinct) {
    std::set<std::string_view> units, titles;
    for (const Protocol* p : protocols()) {
        EXPECT_TRUE(units.insert(p->words().unit).second) << p->words().unit;
        EXPECT_TRUE(titles.insert(p->words().title).second) << p->words().title;
        EXPECT_EQ(protocol_of_unit(p->words().unit), p);
    }
    EXPECT_EQ(protocol_of("no such type"), nullptr);
    EXPECT_EQ(protocol_of(""), nullptr);
    EXPECT_EQ(protocol_of_option("no such name"), nullptr);
    EXPECT_EQ(protocol_of_unit(""), nullptr);
}

TEST(Protocols, TraceIdsComeFromTheRegisterOfTheirUnit) {
    EXPECT_EQ(trace_id({{"ETMTRACEIDR", 0x13}}), 0x13);
    EXPECT_EQ(trace_id({{"TRCTRACEIDR", 0x90}}), 0x10);
    EXPECT_EQ(trace_id({{"STMTCSR", 0x220003}}), 0x22);
    EXPECT_EQ(trace_id({{"ITMTCR", 0x230001}}), 0x23);
    EXPECT_EQ(trace_id({{"ETMCR", 0x13}}), std::nullopt);
    EXPECT_EQ(trace_id_register({}, "PTM1.1"), "ETMTRACEIDR");
    EXPECT_EQ(trace_id_register({}, "ETM4.1"), "TRCTRACEIDR");
    EXPECT_EQ(trace_id_register({}, "ETE"), "TRCTRACEIDR");
    EXPECT_EQ(trace_id_register({}, "STM"), "STMTCSR");
    EXPECT_EQ(trace_id_register({{"ITMTCR", 1}}, "of no known type"), "ITMTCR");
    EXPECT_EQ(trace_id_register({}, "of no known type"), "ETMTRACEIDR");
}

TEST_P(Registry, HasWords) {
    const protocol::Words& w = protocol().words();
    for (const std::string_view word : {w.unit, w.unit_title, w.trace, w.title}) EXPECT_FALSE(word.empty());
    if (protocol().trace_id()) {
        for (const std::string_view word : {w.types, w.core_type, w.sync, w.sync_bytes}) EXPECT_FALSE(word.empty());
        EXPECT_FALSE(protocol().trace_id()->register_name.empty());
    }
    std::vector<std::string> names = protocol().packet_names();
    EXPECT_FALSE(names.empty());
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << "two packets have one name";
    EXPECT_FALSE(protocol().next_step("f").empty());
}

TEST_P(SourceRegistry, ConfiguresAgainWhatItWrites) {
    const auto assumed = undescribed();
    ASSERT_NE(assumed.configuration, nullptr);
    EXPECT_FALSE(assumed.problems.empty()) << "registers are missing";
    const protocol::Configuration& c = *assumed.configuration;
    EXPECT_EQ(&c.protocol(), &protocol());
    EXPECT_TRUE(protocol().is_type(c.source_type())) << c.source_type();
    EXPECT_EQ(protocol_of(c.source_type()), &protocol());
    EXPECT_FALSE(c.settings().empty());
    const std::vector<RegisterValue> registers = c.registers();
    const std::string type = c.source_type();
    const auto again = protocol().configure({"s", type, "", registers, false});
    EXPECT_TRUE(again.configuration->equals(c));
    for (const std::string& problem : again.problems) ADD_FAILURE() << problem;
    for (const auto& variant : c.variants()) EXPECT_FALSE(variant->equals(c));
}

TEST_P(Registry, DoesNotRecogniseRandomBytes) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{20000}}) {
        std::vector<protocol::Stretch> stretches(1);
        std::mt19937_64 random(count);
        for (std::size_t i = 0; i < count; ++i) stretches[0].bytes.push_back(static_cast<std::uint8_t>(random()));
        protocol::Identity identity;
        EXPECT_FALSE(protocol().identify(stretches, identity)) << count;
        EXPECT_EQ(identity.protocol, nullptr);
        EXPECT_EQ(identity.tried.size(), 1U);
    }
}

TEST_P(SourceRegistry, EveryByteIsInAPacketOrAGapHoweverTheyAreFed) {
    const auto configuration = undescribed().configuration;
    std::uint64_t packets = 0;
    for (std::uint64_t seed = 0; seed < 8; ++seed) {
        const std::vector<std::uint8_t> bytes = random_bytes(seed, 8192);
        std::mt19937_64 random(seed);
        Listed whole, parts;
        const auto one = configuration->list(whole);
        one->feed(bytes);
        one->finish();
        const auto several = configuration->list(parts);
        feed(*several, bytes, random);
        EXPECT_EQ(whole.end, Offset{bytes.size()});
        EXPECT_EQ(whole.text, parts.text);
        const std::vector<std::string> known = protocol().packet_names();
        for (const std::string& name : whole.names)
            EXPECT_NE(std::find(known.begin(), known.end(), name), known.end()) << name;

        OffsetMap offsets;
        const auto surveyor = configuration->survey(offsets);
        feed(*surveyor, bytes, random);
        const protocol::Survey survey = surveyor->survey();
        std::uint64_t counted = 0, in_gaps = 0;
        for (const auto& [name, times] : survey.packets) counted += times;
        for (const auto& gap : survey.gaps) in_gaps += gap.bytes;
        EXPECT_EQ(counted, whole.packets);
        EXPECT_EQ(survey.bytes_in_packets + in_gaps, bytes.size());
        EXPECT_TRUE(survey.first_sync.has_value());
        packets += counted;
    }
    EXPECT_GT(packets, 0U) << "the test's synchronisation points are not those of this protocol: add them";
}

TEST_P(FlowRegistry, DecodersAgree) {
    const auto configuration = undescribed().configuration;
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
        const std::vector<std::uint8_t> bytes = random_bytes(seed, 65536);
        image::MemoryMap map;
        ASSERT_TRUE(map.add_bytes(random_bytes(seed + 100, 65536), {0}).has_value());
        const auto decode = [&](protocol::DecoderKind kind) {
            flow::Summary summary;
            flow::BlockTable table;
            flow::BatchWriter out(table, summary);
            const auto decoder = configuration->decoder(map, out, {.kind = kind});
            std::mt19937_64 random(seed);
            feed(*decoder, bytes, random);
            out.flush();
            return std::tuple(summary.totals().hash, summary.totals().gap_bytes(), summary.totals().ranges,
                              decoder->packets());
        };
        const auto reference = decode(protocol::DecoderKind::reference);
        EXPECT_EQ(decode(protocol::DecoderKind::fast), reference);
        flow::Summary summary;
        flow::BlockTable table;
        const auto parallel = configuration->parallel_decoder(map, table, summary, {.workers = 2, .piece_bytes = 4096});
        parallel->feed(bytes);
        parallel->finish();
        EXPECT_EQ(std::tuple(summary.totals().hash, summary.totals().gap_bytes(), summary.totals().ranges,
                             parallel->packets()),
                  reference);
    }
}

}  // namespace
}  // namespace waymark::pipeline
