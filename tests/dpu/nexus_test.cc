// Nexus messages (docs/spec/dpu.md, section 11): vectors, byte by byte, in both directions; the mapping of entries.
#include "waymark/dpu/nexus.h"

#include <gtest/gtest.h>

#include "support.h"

namespace {

using namespace waymark;
using namespace waymark::dpu;
using namespace waymark::dpu::test;
namespace nx = waymark::dpu::nexus;

Bytes8 bytes(const std::string& text) {
    Bytes8 out;
    for (const std::uint32_t byte : words(text)) out.push_back(static_cast<std::uint8_t>(byte));
    return out;
}

struct Messages {
    std::vector<nx::Message> messages;
    std::vector<Gap> gaps;
    std::uint64_t at = 0, idle = 0;
    void operator()(const nx::Message& message, nx::Extent extent) {
        messages.push_back(message);
        EXPECT_GE(extent.first.value, at);
        at = extent.end().value;
    }
    void operator()(const Gap& gap) {
        gaps.push_back(gap);
        EXPECT_GE(gap.first.value, at);
        at = gap.end.value;
    }
};
Messages parse_all(Bytes in, std::size_t piece = ~std::size_t{0},
                   nx::Parser<Messages>::Start start = nx::Parser<Messages>::Start::message) {
    Messages out;
    nx::Parser<Messages> parser(out, start);
    while (!in.empty()) {
        const std::size_t size = std::min(piece, in.size());
        parser.feed(in.first(size));
        in = in.subspan(size);
    }
    parser.finish();
    out.idle = parser.idle_bytes();
    return out;
}

void same(const std::string& hex, const nx::Message& message) {
    Bytes8 encoded;
    nx::encode(encoded, message);
    EXPECT_EQ(encoded, bytes(hex)) << nx::to_text(message);
    EXPECT_EQ(nx::parse_message(bytes(hex)), message) << hex;
}

// Section 11.4, every row.
// Requirements: R5 R38 R109
TEST(Nexus, Vectors) {
    using nx::BranchType;
    using nx::Sync;
    same("24 40 05 20 80 00 23", nx::ProgramTraceSync{0, Sync::trace_enabled, 0, 0x00401010 >> 1});
    same("08 C0 08 2B", nx::OwnershipTrace{0, nx::Process{true, 5, 5}.value()});
    same("08 80 0C 3B", nx::OwnershipTrace{0, nx::Process{false, 7, 7}.value()});
    same("10 40 01 20 90 00 23", nx::IndirectBranch{0, BranchType::exception, 0, (0x00401010 ^ 0x200) >> 1});
    same("10 00 00 05 00 10 04 23", nx::IndirectBranch{0, BranchType::indirect, 0x40, (0x200 ^ 0x00402000) >> 1});
    same("1C 00 10 A0 3D E0 05 01 B0 11 31 07", nx::DataAcquisition{0, 0x10, 6, {1000, 120, 0, 300, 12, 1}});
    same("1C 00 80 04 00 80 FC 28 0F", nx::DataAcquisition{0, 0x80, 1, {0xCAFE0001}});
    same("84 40 15 2C A3", nx::ProgramCorrelation{0, 5, 1, 0, {0xA0B}});
    same("20 00 C0 0B", nx::ErrorMessage{0, 0, 0x2C});
    same("78 00 0B", nx::RepeatBranch{0, 8});
    same("24 40 05 00 17", nx::ProgramTraceSync{0, Sync::trace_enabled, 0, 0x280 >> 1});
    same("10 40 01 00 14 04 23", nx::IndirectBranch{0, BranchType::exception, 0, (0x280 ^ 0x00402000) >> 1});
    same("24 80 45 10 80 04 23", nx::ProgramTraceSync{0, Sync::watchpoint, 4, 0x00403008 >> 1});
    same("1C C0 10 20 00 0C 41 3F", nx::DataAcquisition{0, 0x13, 2, {0x00403008, 15}});
    same("10 80 39 23", nx::IndirectBranch{0, BranchType::hardware_loop, 0x0E, (0x00403000 ^ 0x00403010) >> 1});
    EXPECT_EQ((nx::Process{true, 5, 5}.value()), 0xA0BU);
    EXPECT_EQ(nx::Process::of(0xE0E), (nx::Process{false, 7, 7}));
}

// Sections 10.1 and 11.4: the mapping gives the vectors.
// Requirements: R5 R38 R48
TEST(Nexus, MappingOfTaskSwitches) {
    Bytes8 out;
    nx::Mapper mapper(out, TraceMode::task, false, 0,
                      Counters{0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF});
    mapper.enabled({false, 5, 5});
    mapper.entry(
        TaskSwitch{
            0x00401010, 0x200, {0x7FFFFC17, 0x7FFFFF87, 0x7FFFFFFF, 0x7FFFFED3, 0x7FFFFFF3, 0x7FFFFFFE}, {true, 5}},
        {true, 5, 5});
    mapper.entry(UserData{{true, 5}, 0xCAFE0001}, {true, 5, 5});
    mapper.entry(Pad{}, {true, 5, 5});
    mapper.entry(
        TaskSwitch{
            0x280, 0x00402000, {0x7FFFFC17, 0x7FFFFF87, 0x7FFFFFFF, 0x7FFFFED3, 0x7FFFFFF3, 0x7FFFFFFE}, {false, 7}},
        {false, 7, 7});
    mapper.entry(GapEntry{2}, {false, 7, 7});
    mapper.entry(TaskSwitch{0x00401010, 0x200, {}, {true, 7}}, {true, 7, 7});
    mapper.disabled();
    const Messages read = parse_all(out);
    EXPECT_TRUE(read.gaps.empty());
    std::vector<std::string> texts;
    for (const auto& message : read.messages) texts.push_back(nx::to_text(message));
    EXPECT_EQ(texts, (std::vector<std::string>{
                         "OWNERSHIP SRC=0 PROCESS=0xa0a",
                         "DATA-ACQUISITION SRC=0 IDTAG=0x10 DQDATA=0x3e8,0x78,0,0x12c,0xc,1",
                         "SYNC SRC=0 SYNC=5 I-CNT=0 PC=0x200808",
                         "INDIRECT-BRANCH SRC=0 B-TYPE=1 I-CNT=0 U-ADDR=0x200908",
                         "OWNERSHIP SRC=0 PROCESS=0xa0b",
                         "DATA-ACQUISITION SRC=0 IDTAG=0x80 DQDATA=0xcafe0001",
                         "DATA-ACQUISITION SRC=0 IDTAG=0x10 DQDATA=0,0,0,0,0,0",
                         "SYNC SRC=0 SYNC=5 I-CNT=0 PC=0x140",
                         "INDIRECT-BRANCH SRC=0 B-TYPE=1 I-CNT=0 U-ADDR=0x201140",
                         "OWNERSHIP SRC=0 PROCESS=0xe0e",
                         "ERROR SRC=0 ETYPE=0 ECODE=0x2c",
                         "DATA-ACQUISITION SRC=0 IDTAG=0x11 DQDATA=0,0,0,0,0,0",
                         "SYNC SRC=0 SYNC=7 I-CNT=0 PC=0x200808",
                         "INDIRECT-BRANCH SRC=0 B-TYPE=1 I-CNT=0 U-ADDR=0x200908",
                         "OWNERSHIP SRC=0 PROCESS=0xe0f",
                         "CORRELATION SRC=0 EVCODE=4 CDF=0 I-CNT=0",
                     }));
}

// The rows of 11.3 for a complete flow: pairs, marks, loops with and without a start, periodic syncs.
TEST(Nexus, MappingOfCompressedFlow) {
    Bytes8 out;
    nx::Mapper mapper(out, TraceMode::eonce_comp, true);
    const nx::Process p{false, 7, 7};
    const TaskContext c{false, 7};
    mapper.enabled(p);
    mapper.entry(CompressedFlow{0x00402010, 0x00403000, c}, p);
    mapper.entry(CompressedPc{0x00403008, c}, p);
    mapper.entry(ShortLoop{7, 0x00403010, 15}, p);
    mapper.loop_starts().set(0x0040301C, 0x00403010);
    mapper.entry(CompressedFlow{0x00403012, 0x00403000, c}, p);
    mapper.entry(LongLoop{7, 0x0040301C, 9}, p);
    mapper.entry(LongLoop{7, 0x00403012, 1}, p);  // its start was seen
    std::vector<std::string> texts;
    for (const auto& message : parse_all(out).messages) texts.push_back(nx::to_text(message));
    EXPECT_EQ(texts, (std::vector<std::string>{
                         "OWNERSHIP SRC=0 PROCESS=0xe0e",
                         "SYNC SRC=0 SYNC=5 I-CNT=0 PC=0x201008",
                         "INDIRECT-BRANCH SRC=0 B-TYPE=0 I-CNT=0 U-ADDR=0x808",
                         "SYNC SRC=0 SYNC=6 I-CNT=4 PC=0x201804",
                         "DATA-ACQUISITION SRC=0 IDTAG=0x13 DQDATA=0x403010,0xf",
                         "SYNC SRC=0 SYNC=5 I-CNT=0 PC=0x201809",
                         "INDIRECT-BRANCH SRC=0 B-TYPE=0 I-CNT=0 U-ADDR=9",
                         "INDIRECT-BRANCH SRC=0 B-TYPE=2 I-CNT=0xe U-ADDR=8",
                         "REPEAT-BRANCH SRC=0 B-CNT=8",
                         "INDIRECT-BRANCH SRC=0 B-TYPE=2 I-CNT=1 U-ADDR=8",
                     }));
}

// The other rows of 11.3: samples, raw user data, watchpoints, loop items of the raw interface.
TEST(Nexus, MappingOfTheRest) {
    Bytes8 out;
    nx::Mapper mapper(out, TraceMode::eonce_raw, true, 3);
    const nx::Process p{true, 2, 4};
    mapper.entry(ContextEntry{{true, 2}}, p);
    mapper.entry(ContextEntry{{true, 2}}, p);
    mapper.entry(Sample{{true, 2}, {9, 9, 9, 9, 9, 9}}, p);
    mapper.entry(Sample{{true, 2}, {8, 7, 6, 5, 4, 0x7FFFFFFF}}, p);
    mapper.entry(UserRaw{0xFFFFFFFF}, p);
    mapper.watchpoint(0x24);
    mapper.pair(0x1000, 0x2000, nx::BranchType::indirect);
    mapper.pair(0x2004, 0x2000, nx::BranchType::hardware_loop);
    mapper.entry(RawPair{0x2008, 0x1000, {}}, p);
    mapper.entry(RawPair{0x0800, 0x1000, {}}, p);  // behind the known flow: it begins again
    std::vector<std::string> texts;
    for (const auto& message : parse_all(out).messages) texts.push_back(nx::to_text(message));
    EXPECT_EQ(texts, (std::vector<std::string>{
                         "OWNERSHIP SRC=3 PROCESS=0x805",
                         "DATA-ACQUISITION SRC=3 IDTAG=0x11 DQDATA=9,9,9,9,9,9",
                         "DATA-ACQUISITION SRC=3 IDTAG=0x12 DQDATA=1,2,3,4,5,0xa",
                         "DATA-ACQUISITION SRC=3 IDTAG=0x81 DQDATA=0xffffffff",
                         "WATCHPOINT SRC=3 WPHIT=0x24",
                         "SYNC SRC=3 SYNC=5 I-CNT=0 PC=0x800",
                         "INDIRECT-BRANCH SRC=3 B-TYPE=0 I-CNT=0 U-ADDR=0x1800",
                         "INDIRECT-BRANCH SRC=3 B-TYPE=2 I-CNT=2 U-ADDR=0",
                         "INDIRECT-BRANCH SRC=3 B-TYPE=0 I-CNT=4 U-ADDR=0x1800",
                         "SYNC SRC=3 SYNC=5 I-CNT=0 PC=0x400",
                         "INDIRECT-BRANCH SRC=3 B-TYPE=0 I-CNT=0 U-ADDR=0xc00",
                     }));
}

// At least one sync in 256 program trace messages, and the flow is the same.
TEST(Nexus, PeriodicSync) {
    Bytes8 out;
    nx::Mapper mapper(out, TraceMode::eonce_raw, true);
    for (unsigned i = 0; i < 2000; ++i) mapper.pair(0x1010, 0x1000, nx::BranchType::indirect);
    unsigned since = 0, periodic = 0, branches = 0;
    nx::Reader reader;
    for (const auto& message : parse_all(out).messages) {
        if (const auto* sync = std::get_if<nx::ProgramTraceSync>(&message)) {
            periodic += sync->sync == nx::Sync::periodic;
            since = 0;
        }
        EXPECT_LE(++since, 257U);
        const auto meaning = reader.read(message);
        if (!meaning) continue;
        ++branches;
        EXPECT_EQ(meaning->from, 0x1010U);
        EXPECT_EQ(meaning->to, 0x1000U);
        EXPECT_TRUE(meaning->from_known);
    }
    EXPECT_EQ(periodic, 7U);
    EXPECT_EQ(branches, 2000U);
}

TEST(Nexus, RoundTripOfRandomMessages) {
    wire::Random random(3);
    for (unsigned round = 0; round < 200; ++round) {
        Bytes8 out;
        std::vector<nx::Message> messages;
        for (unsigned i = 0; i < 50; ++i) {
            messages.push_back(nx::random_message(random));
            nx::encode(out, messages.back());
            const auto read = nx::from_text(nx::to_text(messages.back()));
            ASSERT_TRUE(read.has_value()) << nx::to_text(messages.back()) << ": " << read.error().message;
            EXPECT_EQ(*read, messages.back());
            if (random() % 4 == 0) out.insert(out.end(), 1 + random() % 3, nx::idle);
        }
        for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, out.size()}) {
            const Messages read = parse_all(out, piece);
            ASSERT_EQ(read.messages, messages);
            EXPECT_TRUE(read.gaps.empty());
        }
    }
    EXPECT_FALSE(nx::from_text("NONE").has_value());
    EXPECT_FALSE(nx::from_text("OWNERSHIP SRC=16 PROCESS=0").has_value());
    EXPECT_FALSE(nx::from_text("DATA-ACQUISITION SRC=0 IDTAG=1 DQDATA=1,2,3,4,5,6,7,8,9").has_value());
    EXPECT_FALSE(nx::from_text("DATA-ACQUISITION SRC=0 IDTAG=1 DQDATA=").has_value());
}

// Damage is a gap up to the end of the damaged message; any bytes are accounted for, however they are divided.
TEST(Nexus, Damage) {
    EXPECT_EQ(parse_all(bytes("08 C0 08 2B 08 C2 08 2B 08 80 0C 3B")).gaps,
              (std::vector<Gap>{{Offset{4}, Offset{8}, GapReason::malformed_packet}}));
    EXPECT_EQ(parse_all(bytes("FC 00 03 08 80 0C 3B 08 C0")).gaps,
              (std::vector<Gap>{{Offset{0}, Offset{3}, GapReason::reserved_header},
                                {Offset{7}, Offset{9}, GapReason::incomplete_packet}}));
    const Messages wrapped = parse_all(bytes("08 2B 08 80 0C 3B"), 1, nx::Parser<Messages>::Start::anywhere);
    EXPECT_EQ(wrapped.gaps, (std::vector<Gap>{{Offset{0}, Offset{2}, GapReason::unsynchronised}}));
    EXPECT_EQ(wrapped.messages.size(), 1U);

    wire::Random random(11);
    for (unsigned round = 0; round < 500; ++round) {
        Bytes8 noise(1 + random() % 400);
        for (auto& byte : noise) byte = static_cast<std::uint8_t>(random());
        if (round % 3 == 0)
            for (auto& byte : noise) byte = static_cast<std::uint8_t>(byte & 0xfcU);  // no end
        const Messages whole = parse_all(noise);
        const Messages cut = parse_all(noise, 1 + random() % 9);
        EXPECT_EQ(whole.messages, cut.messages);
        EXPECT_EQ(whole.gaps, cut.gaps);
        std::uint64_t covered = whole.idle;
        for (const Gap& gap : whole.gaps) covered += gap.bytes();
        for (const auto& message : whole.messages) {
            Bytes8 again;
            nx::encode(again, message);
            covered += again.size();
        }
        EXPECT_LE(covered, noise.size());  // a sender may write leading zeros
    }
}

// The messages of random entries mean what the entries said.
TEST(Nexus, EntriesThereAndBack) {
    for (const TraceMode mode : {TraceMode::eonce_raw, TraceMode::eonce_comp, TraceMode::task, TraceMode::flow,
                                 TraceMode::sw_sample, TraceMode::user})
        for (const bool complete : {false, true})
            for (std::uint64_t seed = 0; seed < 20; ++seed) {
                Bytes8 out;
                nx::Mapper mapper(out, mode, complete);
                RandomTrace trace(in(mode), seed);
                std::vector<nx::Meaning> expected;
                std::optional<Counters> before;
                std::optional<nx::Process> owner;
                bool had_loop = false;
                for (const Entry& entry : trace.entries(400)) {
                    const nx::Process process = std::visit(
                        [&](const auto& e) {
                            if constexpr (requires { e.context; }) return nx::Process::of(e.context);
                            return owner.value_or(nx::Process{});
                        },
                        entry);
                    mapper.entry(entry, process);
                    const auto told_owner = [&] {
                        if (owner == process) return;
                        owner = process;
                        nx::Meaning meaning;
                        meaning.kind = nx::Meaning::Kind::owner;
                        meaning.value = process.value();
                        expected.push_back(meaning);
                    };
                    const auto counters = [&](const Counters& values, nx::Tag tag) {
                        nx::Meaning meaning;
                        meaning.kind = nx::Meaning::Kind::counters;
                        meaning.tag = before ? tag : nx::Tag::first_counters;
                        for (unsigned i = 0; i < counter_count; ++i)
                            meaning.data[i] = before ? ((*before)[i] - values[i]) & counter_mask : values[i];
                        before = values;
                        expected.push_back(meaning);
                    };
                    const auto pair = [&](std::uint32_t from, std::uint32_t to, nx::BranchType type) {
                        nx::Meaning meaning;
                        meaning.kind = nx::Meaning::Kind::branch;
                        meaning.type = type;
                        meaning.from = from;
                        meaning.to = to;
                        meaning.from_known = true;
                        expected.push_back(meaning);
                    };
                    if (const auto* e = std::get_if<TaskSwitch>(&entry)) {
                        counters(e->counters, nx::Tag::change_counters);
                        pair(e->last_pc, e->first_pc, nx::BranchType::exception);
                        told_owner();
                    } else if (const auto* flow = std::get_if<Flow>(&entry)) {
                        counters(flow->counters, nx::Tag::change_counters);
                        pair(flow->last_pc, flow->first_pc, nx::BranchType::indirect);
                        told_owner();
                    } else if (const auto* raw = std::get_if<RawPair>(&entry)) {
                        pair(raw->source, raw->destination, nx::BranchType::indirect);
                    } else if (const auto* compressed = std::get_if<CompressedFlow>(&entry)) {
                        pair(compressed->source, compressed->destination, nx::BranchType::indirect);
                        told_owner();
                    } else if (const auto* sample = std::get_if<Sample>(&entry)) {
                        told_owner();
                        counters(sample->counters, nx::Tag::sample_counters);
                    } else if (std::holds_alternative<ContextEntry>(entry)) {
                        told_owner();
                    } else if (std::holds_alternative<ShortLoop>(entry) || std::holds_alternative<LongLoop>(entry)) {
                        had_loop = true;  // delivered when it is known: checked in the mapping above
                        owner = process;
                    } else if (std::holds_alternative<GapEntry>(entry)) {
                        owner.reset();
                        before.reset();
                    } else if (std::holds_alternative<UserData>(entry) || std::holds_alternative<CompressedPc>(entry)) {
                        told_owner();
                    }
                }
                const Messages read = parse_all(out);
                ASSERT_TRUE(read.gaps.empty());
                std::vector<nx::Meaning> meaning;
                nx::Reader reader;
                for (const auto& message : read.messages)
                    if (const auto one = reader.read(message)) {
                        EXPECT_NE(one->kind, nx::Meaning::Kind::unknown);
                        const bool wanted = one->kind == nx::Meaning::Kind::owner ||
                                            one->kind == nx::Meaning::Kind::counters ||
                                            one->kind == nx::Meaning::Kind::branch;
                        if (wanted && one->type != nx::BranchType::hardware_loop) meaning.push_back(*one);
                    }
                ASSERT_TRUE(had_loop || meaning == expected) << name(mode) << " seed " << seed;
                const auto is_branch = [](const nx::Meaning& one) { return one.kind == nx::Meaning::Kind::branch; };
                EXPECT_EQ(std::count_if(meaning.begin(), meaning.end(), is_branch),
                          std::count_if(expected.begin(), expected.end(), is_branch));
            }
}

}  // namespace
