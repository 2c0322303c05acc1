/// Each field of the records and features of perf.data is at the place that docs/spec/spe.md, 5.2, and
/// docs/spec/perf-cs-etm.md, section 3.1, give: fields that are written one by one are read one by one.
#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../src/capture/perf_code.h"
#include "support/perf_file.h"
#include "waymark/capture/branch_entry.h"
#include "waymark/capture/perf_data.h"
#include "waymark/capture/perf_part.h"
#include "waymark/capture/perf_writer.h"

namespace waymark::capture::perf {
namespace {

using Octets = std::vector<std::uint8_t>;

/// Fields of a record, little-endian.
struct Fields {
    Octets bytes;
    Fields& number(std::uint64_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i) bytes.push_back(static_cast<std::uint8_t>(value >> (8 * i)));
        return *this;
    }
    Fields& words(std::initializer_list<std::uint64_t> values) {
        for (const std::uint64_t value : values) number(value, 8);
        return *this;
    }
    Fields& text(std::string_view value, std::size_t size) {
        bytes.insert(bytes.end(), value.begin(), value.end());
        bytes.resize(bytes.size() + size - value.size());
        return *this;
    }
    Fields& counted(std::string_view value, std::size_t size) { return number(size, 4).text(value, size); }
};

constexpr std::uint64_t sample_id_all = std::uint64_t{1} << 18;

/// An event with every field of a trailer.
Attr event(std::uint64_t id) {
    Attr out;
    out.type = static_cast<std::uint32_t>(id);
    out.sample_type = sample::tid | sample::time | sample::id | sample::stream_id | sample::cpu | sample::identifier;
    out.flags = sample_id_all;
    out.ids = {id, id + 1};
    return out;
}

template <class Write>
PerfData made(std::vector<Attr> attrs, Write&& write, PerfWriter::Form form = PerfWriter::Form::file,
              bool index = true) {
    ByteCollector out;
    PerfWriter writer(out, std::move(attrs), form);
    write(writer);
    writer.finished_round();  // a file without data is one whose recorder was killed, and has no features
    const auto front = writer.finish(index);
    Octets bytes(out.bytes().begin(), out.bytes().end());
    std::copy(front.begin(), front.end(), bytes.begin());
    auto got = read_perf_data(*byte_file_from_memory(std::move(bytes)));
    EXPECT_TRUE(got) << got.error().message;
    return got ? std::move(*got) : PerfData{};
}

/// The losses of a file, a line each.
std::string said(const PerfData& data) {
    std::string out;
    for (const Loss& loss : data.losses) out += loss.message + "\n";
    return out;
}

constexpr PerfWriter::At here{12, 13, 1, 5000, 1};

TEST(PerfFields, EachOfAnAttribute) {
    Attr all = event(10);
    all.config = 2, all.sample_period = 3, all.read_format = 4, all.config1 = 6, all.config2 = 7;
    all.clock = 8, all.config3 = 9, all.config4 = 11;
    for (const auto form : {PerfWriter::Form::file, PerfWriter::Form::pipe}) {
        const PerfData data = made(
            {all, event(20)}, [](PerfWriter&) {}, form);
        ASSERT_EQ(data.attrs.size(), 2U);
        EXPECT_EQ(data.attrs[0], all);
        EXPECT_EQ(data.attrs[1], event(20));
        EXPECT_EQ(said(data), "");
        EXPECT_EQ(data.pipe, form == PerfWriter::Form::pipe);
        EXPECT_FALSE(data.unfinished);
    }
}

TEST(PerfFields, EachOfARecordOfTheKernel) {
    const PerfData data = made({event(10), event(20)}, [](PerfWriter& w) {
        w.hardware_id(0x99, here);
        w.kernel_symbol({{0xffff000000001000}, 0x40, 0, false, "first"}, here);
        w.kernel_symbol({{0xffff000000002000}, 0x41, 0, true, "second"}, {12, 13, 0, 6000, 0});
        w.text_poke({{0xffff000000003000}, 0, {1, 2, 3}, {4, 5}}, here);
        w.switch_to(21, 22, here);
        w.switched(true, here);
        w.switched(false, here);
        w.itrace_start(31, 32, here);
        w.lost(20, 3, here);
        w.record(Type::lost_samples, 0, Fields{}.words({4}).bytes, &here);
        w.aux({1, 2, AuxRange::partial, {}}, here);
    });
    EXPECT_EQ(said(data), "");
    EXPECT_EQ(data.unknown_ids, 0U);
    const SampleId id{12, 13, 1, 5000};
    ASSERT_EQ(data.hardware_ids.size(), 1U);
    EXPECT_EQ(data.hardware_ids[0], (HardwareId{0x99, id}));
    ASSERT_EQ(data.kernel_symbols.size(), 2U);
    EXPECT_EQ(data.kernel_symbols[0], (KernelSymbol{{0xffff000000001000}, 0x40, 5000, false, "first"}));
    EXPECT_EQ(data.kernel_symbols[1], (KernelSymbol{{0xffff000000002000}, 0x41, 6000, true, "second"}));
    ASSERT_EQ(data.text_pokes.size(), 1U);
    EXPECT_EQ(data.text_pokes[0], (TextPoke{{0xffff000000003000}, 5000, {1, 2, 3}, {4, 5}}));
    ASSERT_EQ(data.switches.size(), 4U);
    EXPECT_EQ(data.switches[0], (Switch{1, 21, 22, 5000}));
    EXPECT_EQ(data.switches[1], (Switch{1, nobody, nobody, 5000}));
    EXPECT_EQ(data.switches[2], (Switch{1, 12, 13, 5000}));
    EXPECT_EQ(data.switches[3], (Switch{1, 31, 32, 5000}));
    EXPECT_EQ(data.lost_records, 7U);
    EXPECT_EQ(data.aux, (std::vector<AuxRange>{{1, 2, AuxRange::partial, id}}));
    EXPECT_EQ(data.count(Type::context_switch), 2U);
    EXPECT_EQ(data.count(Type::lost), 1U);
}

TEST(PerfFields, EachOfAMappingAndOfAFork) {
    const PerfData data = made({event(10)}, [](PerfWriter& w) {
        Fields m;
        m.number(1, 4).number(2, 4).words({0x1000, 0x2000, 0x3000}).number(8, 4).number(9, 4).words({10, 11});
        m.number(5, 4).number(0x20040112, 4).text("/bin/a", 8);
        w.record(Type::mmap2, 0, m.bytes, &here);
        for (const auto kind : {TaskEvent::Kind::fork, TaskEvent::Kind::exit}) w.task({kind, 1, 2, 3, 4, 6, {}}, here);
    });
    EXPECT_EQ(said(data), "");
    ASSERT_EQ(data.mappings.size(), 1U);
    const Mapping& m = data.mappings[0];
    EXPECT_EQ(m.pid, 1U);
    EXPECT_EQ(m.tid, 2U);
    EXPECT_EQ(m.address.value, 0x1000U);
    EXPECT_EQ(m.bytes, 0x2000U);
    EXPECT_EQ(m.file_offset, 0x3000U);
    EXPECT_EQ(m.protection, 5U);
    EXPECT_EQ(m.flags, 0x20040112U);
    EXPECT_FALSE(m.data);
    EXPECT_EQ(m.file, "/bin/a");
    ASSERT_EQ(data.tasks.size(), 2U);
    EXPECT_EQ(data.tasks[0], (TaskEvent{TaskEvent::Kind::fork, 1, 2, 3, 4, 6, {}}));
    EXPECT_EQ(data.tasks[1].kind, TaskEvent::Kind::exit);
}

// The identifier at the end selects the event whose trailer it is: the second one has no time.
TEST(PerfFields, TheTrailerIsThatOfItsEvent) {
    Attr timeless = event(20);
    timeless.sample_type = sample::tid | sample::cpu | sample::identifier;
    const PerfData data = made({event(10), timeless}, [](PerfWriter& w) {
        w.hardware_id(1, {12, 13, 1, 5000, 0});
        w.hardware_id(2, {12, 13, 1, 5000, 1});
        w.hardware_id(3, {});
        // For an event that the file does not contain.
        w.record(Type::aux_output_hw_id, 0, Fields{}.words({4, 7, 8, 9, 10, 11, 99}).bytes);
    });
    ASSERT_EQ(data.hardware_ids.size(), 4U);
    EXPECT_EQ(data.hardware_ids[0].where, (SampleId{12, 13, 1, 5000}));
    EXPECT_EQ(data.hardware_ids[1].where, (SampleId{12, 13, 1, std::nullopt}));
    EXPECT_EQ(data.hardware_ids[2].where, (SampleId{0, 0, 0, 0}));
    EXPECT_EQ(data.hardware_ids[3].where, (SampleId{7, 0, 11, 8}));
    EXPECT_EQ(data.unknown_ids, 1U);
}

TEST(PerfFields, EachOfTheDescription) {
    const TimeConversion time{10, 20, 30, 40, 50, true};
    const auto write = [&](PerfWriter& w) {
        const std::string words[] = {"perf", "record", "-a"};
        w.feature_text(Feature::hostname, "host");
        w.feature_text(Feature::os_release, "6.1.0");
        w.feature_text(Feature::version, "6.2");
        w.feature_text(Feature::arch, "aarch64");
        w.feature_text(Feature::cpu_description, "a CPU");
        w.feature_text(Feature::cpu_id, "0x410fd0c1");
        w.cpus(3, 4);
        w.command_line(words);
        w.pmus({{1, "one"}, {9, "nine"}});
        w.time_conversion(time);
        w.auxtrace_info({AuxtraceInfo::arm_spe, {8, 1}});
    };
    for (const auto form : {PerfWriter::Form::file, PerfWriter::Form::pipe}) {
        const PerfData data = made({event(10)}, write, form);
        EXPECT_EQ(data.hostname, "host");
        EXPECT_EQ(data.release, "6.1.0");
        EXPECT_EQ(data.version, "6.2");
        EXPECT_EQ(data.architecture, "aarch64");
        EXPECT_EQ(data.cpu_description, "a CPU");
        EXPECT_EQ(data.cpu_id, "0x410fd0c1");
        EXPECT_EQ(data.cpus_online, 3U);
        EXPECT_EQ(data.cpus_available, 4U);
        EXPECT_EQ(data.command_line, "perf record -a");
        EXPECT_EQ(data.pmus, (std::map<std::uint32_t, std::string>{{1, "one"}, {9, "nine"}}));
        EXPECT_EQ(data.time_conversion, time);
        EXPECT_FALSE(data.late_time_conversion);
        EXPECT_FALSE(data.simpleperf);
        EXPECT_FALSE(data.branch_list);
        EXPECT_EQ(said(data), "");
    }
    const PerfData late = made({event(10)}, [&](PerfWriter& w) {
        w.auxtrace_info({AuxtraceInfo::arm_spe, {8, 1}});
        w.time_conversion(time);
    });
    EXPECT_TRUE(late.late_time_conversion);
}

// Bytes of a header and of records at the places that docs/spec/perf-cs-etm.md, 3.1, gives.
TEST(PerfFields, WhatIsWrittenAtTheEdges) {
    ByteCollector out;
    PerfWriter writer(out, {event(10)});
    const std::size_t at = out.bytes().size();
    writer.time_conversion({10, 20, 30, 40, 50, true});
    ASSERT_EQ(out.bytes().size(), at + 56);
    // cap_user_time_zero, without which the others mean nothing, and cap_user_time_short.
    EXPECT_EQ(out.bytes()[at + 48], 1);
    EXPECT_EQ(out.bytes()[at + 49], 1);
    // The last feature in a word of the header, and the first in the next word.
    writer.feature(static_cast<Feature>(63), {1});
    writer.feature(static_cast<Feature>(64), {1});
    const auto front = writer.finish();
    EXPECT_EQ(front[72 + 7] & 0x80, 0x80);
    EXPECT_EQ(front[72 + 8], 1);
    // The largest record.
    const PerfData data = made({event(10)}, [](PerfWriter& w) { w.record(Type::lost_samples, 0, Octets(0xfff0)); });
    EXPECT_EQ(data.count(Type::lost_samples), 1U);
    EXPECT_EQ(said(data), "");
}

// An attribute whose values are known only at the end.
TEST(PerfFields, AnAttributeThatChanges) {
    const PerfData data = made({event(10), event(11)}, [](PerfWriter& w) {
        w.record(Type::lost_samples, 0, Octets(8));
        Attr changed = event(10);
        changed.sample_period = 256;
        changed.config1 = 9;
        w.change_attr(0, changed);
    });
    ASSERT_EQ(data.attrs.size(), 2U);
    EXPECT_EQ(data.attrs[0].sample_period, 256U);
    EXPECT_EQ(data.attrs[0].config1, 9U);
    EXPECT_EQ(data.attrs[1].config1, event(11).config1);
    EXPECT_EQ(data.count(Type::lost_samples), 1U);
    EXPECT_EQ(said(data), "");
}

TEST(PerfFields, ThePartOfTheRun) {
    const RecordedPart part{"at main", "after 5 instructions", {256, 4096}, "profiling off for 9 operations"};
    const RecordedPart read = recorded_part(version_with(part));
    EXPECT_EQ(read.begins, part.begins);
    EXPECT_EQ(read.ends, part.ends);
    EXPECT_EQ(read.intervals, part.intervals);
    EXPECT_EQ(read.left_out, part.left_out);
    EXPECT_EQ(version_with(recorded_part("waymark")), "waymark");
    EXPECT_TRUE(recorded_part("waymark; intervals x").intervals.empty());
    EXPECT_TRUE(recorded_part("6.1; ends early").ends.empty());
}

// A number, followed by that number of words; a number that is too large does not lead beyond the feature.
TEST(PerfFields, ACommandLineThatIsCut) {
    const PerfData data = made({event(10)}, [](PerfWriter& w) {
        w.feature(Feature::command_line, Fields{}.number(9, 4).counted("perf", 8).counted("list", 8).bytes);
        w.feature(Feature::pmu_mappings, Fields{}.number(9, 4).number(4, 4).counted("four", 8).bytes);
    });
    EXPECT_EQ(data.command_line, "perf list");
    EXPECT_EQ(data.pmus, (std::map<std::uint32_t, std::string>{{4, "four"}}));
}

TEST(PerfFields, AnIndexHasACountOrNone) {
    const auto with = [](Octets index) {
        return made(
            {event(10)}, [&](PerfWriter& w) { w.feature(Feature::auxtrace_index, std::move(index)); },
            PerfWriter::Form::file, false);
    };
    EXPECT_FALSE(with(Fields{}.words({1, 100, 8}).bytes).index_without_count);
    EXPECT_FALSE(with(Fields{}.words({0}).bytes).index_without_count);
    EXPECT_TRUE(with(Fields{}.words({100, 8}).bytes).index_without_count);
    EXPECT_TRUE(with(Fields{}.words({100, 8, 200, 8}).bytes).index_without_count);
    EXPECT_FALSE(with({}).index_without_count);
    EXPECT_TRUE(with(Fields{}.words({0}).bytes).indexed);
    EXPECT_FALSE(made(
                     {event(10)}, [](PerfWriter&) {}, PerfWriter::Form::file, false)
                     .indexed);
}

TEST(PerfFields, FeaturesOfSimpleperf) {
    // In protobuf: 1: path; 7: a module, whose 1 is the offset of its code; others are passed over, of every type.
    const auto message = [](Octets bytes) {
        Octets out = Fields{}.number(bytes.size(), 4).bytes;
        out.insert(out.end(), bytes.begin(), bytes.end());
        return out;
    };
    Octets files = message({0x0a, 2, '/', 'a', 0x3a, 5, 0x10, 9, 0x08, 0x80, 0x20});  // 1: 0x1000
    const Octets second = message({0x10, 0x81, 0x01, 0x19, 1,   2,  3, 4, 5, 6, 7, 8, 0x25, 1, 2, 3, 4, 0x22, 1, 7,  //
                                   0x3a, 0,    0x0a, 2,    '/', 'b'});
    const Octets third = message({0x0a, 2, '/', 'c'});
    files.insert(files.end(), second.begin(), second.end());
    files.insert(files.end(), third.begin(), third.end());
    const PerfData data = made({event(10)}, [&](PerfWriter& w) {
        w.feature(Feature(129), Fields{}.text("product", 8).text("a phone", 8).text("empty", 6).text("", 1).bytes);
        w.feature(Feature(132), files);
        w.feature(Feature(133), {1, 2, 3});
    });
    EXPECT_EQ(data.meta_info, (std::map<std::string, std::string>{{"product", "a phone"}, {"empty", ""}}));
    EXPECT_EQ(data.code_offsets, (std::map<std::string, std::uint64_t>{{"/a", 0x1000}, {"/b", 0}}));
    EXPECT_EQ(data.branch_lists, (Octets{1, 2, 3}));
    EXPECT_TRUE(data.branch_list);
    EXPECT_TRUE(data.simpleperf);
    const PerfData ended = made({event(10)}, [&](PerfWriter& w) {
        w.feature(Feature(129), Fields{}.text("a", 2).text("b", 2).text("", 1).text("c", 2).text("d", 2).bytes);
    });
    EXPECT_EQ(ended.meta_info, (std::map<std::string, std::string>{{"a", "b"}})) << "an empty name ends it";
    EXPECT_FALSE(ended.branch_list);
}

TEST(PerfFields, WhatAFileHolds) {
    const auto of = [](std::vector<Attr> attrs, auto write) {
        ByteCollector out;
        PerfWriter writer(out, std::move(attrs));
        write(writer);
        const auto front = writer.finish();
        Octets bytes(out.bytes().begin(), out.bytes().end());
        std::copy(front.begin(), front.end(), bytes.begin());
        return holds(*byte_file_from_memory(std::move(bytes)));
    };
    Attr stacks = event(10);
    stacks.sample_type |= sample::branch_stack;
    const auto trace = [](PerfWriter& w) { w.auxtrace({}, Octets(8, 1)); };
    EXPECT_EQ(of({event(10)}, [](PerfWriter&) {}), Holds::nothing_known);
    EXPECT_EQ(of({stacks}, [](PerfWriter&) {}), Holds::branch_stacks);
    EXPECT_EQ(of({event(10)}, trace), Holds::other_trace);
    EXPECT_EQ(of({stacks}, [](PerfWriter& w) { w.auxtrace_info({AuxtraceInfo::cs_etm, {0}}); }), Holds::cs_etm);
    EXPECT_EQ(of({stacks}, [](PerfWriter& w) { w.auxtrace_info({AuxtraceInfo::arm_spe, {0}}); }), Holds::other_trace);
}

// ---- samples

/// A sample of `type` with two entries, and all fields that the type has.
Octets sample_of(std::uint64_t type, std::uint64_t read_format, bool hardware_index) {
    Fields f;
    if ((type & sample::identifier) != 0) f.words({10});
    if ((type & sample::ip) != 0) f.words({0x1111});
    if ((type & sample::tid) != 0) f.number(12, 4).number(13, 4);
    if ((type & sample::time) != 0) f.words({5000});
    if ((type & sample::addr) != 0) f.words({0x2222});
    if ((type & sample::id) != 0) f.words({10});
    if ((type & sample::stream_id) != 0) f.words({10});
    if ((type & sample::cpu) != 0) f.number(3, 4).number(0, 4);
    if ((type & sample::period) != 0) f.words({0x3333});
    if ((type & sample::read) != 0) {
        const bool group = (read_format & 8) != 0;
        const std::uint64_t values = group ? 2 : 1;
        if (group) f.words({values});
        if (group) {
            if ((read_format & 1) != 0) f.words({77});
            if ((read_format & 2) != 0) f.words({78});
        }
        for (std::uint64_t i = 0; i < values; ++i) {
            f.words({100 + i});
            if (!group && (read_format & 1) != 0) f.words({77});
            if (!group && (read_format & 2) != 0) f.words({78});
            if ((read_format & 4) != 0) f.words({79});
            if ((read_format & 16) != 0) f.words({80});
        }
    }
    if ((type & sample::callchain) != 0) f.words({3, 1, 2, 3});
    if ((type & sample::raw) != 0) f.number(5, 4).text("12345", 12);  // up to a multiple of 8
    f.words({2});
    if (hardware_index) f.words({~std::uint64_t{0}});
    for (const std::uint64_t from : {0x1000, 0x2000}) {
        const auto entry = encode_branch_entry({.from = from, .to = from + 0x100, .mispredicted = true});
        f.bytes.insert(f.bytes.end(), entry.begin(), entry.end());
    }
    return f.bytes;
}

TEST(PerfSamples, TheStackIsBehindEveryFieldThatTheEventHas) {
    constexpr std::uint64_t least = sample::branch_stack, all = sample::ip | sample::tid | sample::time | sample::addr |
                                                                sample::id | sample::stream_id | sample::cpu |
                                                                sample::period | sample::read | sample::callchain |
                                                                sample::raw | sample::identifier | least;
    const auto check = [](std::uint64_t type, std::uint64_t read_format, bool hardware_index) {
        Attr attr;
        attr.sample_type = type;
        attr.read_format = read_format;
        attr.branch_sample_type = hardware_index ? 1U << 17 : 1U;
        attr.ids = {10};
        // PerfWriter writes no branch_sample_type, which is word 72 of the attribute.
        ByteCollector out;
        PerfWriter writer(out, {attr});
        writer.record(Type::sample, 2, sample_of(type, read_format, hardware_index));
        const auto front = writer.finish();
        Octets bytes(out.bytes().begin(), out.bytes().end());
        std::copy(front.begin(), front.end(), bytes.begin());
        const std::size_t attr_at = 104 + 8;  // behind the header and one id
        for (unsigned i = 0; i < 8; ++i)
            bytes[attr_at + 72 + i] = static_cast<std::uint8_t>(attr.branch_sample_type >> (8 * i));
        const auto data = read_perf_data(*byte_file_from_memory(bytes));
        ASSERT_TRUE(data) << data.error().message;
        ASSERT_EQ(data->attrs.at(0).branch_sample_type, attr.branch_sample_type);
        SCOPED_TRACE(testing::Message() << std::hex << type << " read format " << read_format);
        ASSERT_EQ(said(*data), "");
        ASSERT_EQ(data->branch_samples.size(), 1U);
        const BranchSample& s = data->branch_samples[0];
        EXPECT_EQ(s.entries, 2U);
        EXPECT_FALSE(s.unpacked);
        EXPECT_EQ(s.pid, (type & sample::tid) != 0 ? 12U : nobody);
        EXPECT_EQ(s.tid, (type & sample::tid) != 0 ? 13U : nobody);
        EXPECT_EQ(s.cpu, (type & sample::cpu) != 0 ? 3U : nobody);
        EXPECT_EQ(s.time.value_or(0), (type & sample::time) != 0 ? 5000U : 0U);
        const auto entry = parse_branch_entry(
            std::span<const std::uint8_t, branch_entry_bytes>(bytes.data() + s.offset, branch_entry_bytes));
        EXPECT_EQ(entry, (BranchEntry{.from = 0x1000, .to = 0x1100, .mispredicted = true}));
    };
    check(least, 0, false);
    check(least, 0, true);
    check(all, 0, true);
    for (std::uint64_t bit = 1; bit <= sample::identifier; bit <<= 1)
        if ((all & bit) != 0) check(least | bit, 0, false);
    for (const std::uint64_t read_format : {1, 2, 4, 8, 16, 31, 23, 24})
        check(least | sample::read, read_format, (read_format & 1) != 0);
}

// With several events, the identifier selects the sample's.
TEST(PerfSamples, TheEventIsThatOfTheIdentifier) {
    Attr one, other;
    one.sample_type = sample::identifier | sample::branch_stack;
    one.ids = {10};
    other.sample_type = one.sample_type | sample::tid;
    other.ids = {20};
    const auto samples = [&](std::vector<Attr> attrs) {
        return made(std::move(attrs), [](PerfWriter& w) {
            w.record(Type::sample, 2, Fields{}.words({10, 1, 0x10, 0x20, 0}).bytes);
            w.record(Type::sample, 2, Fields{}.words({20}).number(7, 4).number(8, 4).words({1, 0x30, 0x40, 0}).bytes);
            w.record(Type::sample, 2, Fields{}.words({99, 1, 0x50, 0x60, 0}).bytes);
        });
    };
    const PerfData two = samples({one, other});
    EXPECT_EQ(said(two), "");
    EXPECT_EQ(two.unknown_ids, 1U);
    ASSERT_EQ(two.branch_samples.size(), 3U);
    EXPECT_EQ(two.branch_samples[0].event, 0U);
    EXPECT_EQ(two.branch_samples[1].event, 1U);
    EXPECT_EQ(two.branch_samples[1].tid, 8U);
    EXPECT_EQ(two.branch_samples[2].event, 0U);
    // A file with one event has samples of that event alone.
    EXPECT_EQ(samples({one}).unknown_ids, 0U);
}

TEST(PerfSamples, AStackWithoutEntriesOrWithTooManyIsNone) {
    Attr attr;
    attr.sample_type = sample::tid | sample::branch_stack;
    const PerfData data = made({attr}, [](PerfWriter& w) {
        w.record(Type::sample, 2, Fields{}.words({1, 0}).bytes);
        w.record(Type::sample, 2, Fields{}.words({1, 2, 0, 0, 0}).bytes);
        w.record(Type::sample, 2, Fields{}.words({1, 1, 0x10, 0x20, 0}).bytes);
    });
    EXPECT_EQ(data.empty_branch_samples, 1U);
    EXPECT_EQ(said(data), "a sample whose branch stack has 2 entries, but 24 bytes are left in the record\n");
    EXPECT_EQ(data.branch_samples.size(), 1U);
}

TEST(BranchEntries, EachFieldIsReadAsItWasWritten) {
    const BranchEntry plain{.from = 0x123456789abcdef0, .to = 0xfedcba9876543210};
    const auto check = [&](auto set) {
        BranchEntry entry = plain;
        set(entry);
        EXPECT_EQ(parse_branch_entry(encode_branch_entry(entry)), entry);
    };
    check([](BranchEntry&) {});
    check([](BranchEntry& e) { e.mispredicted = true; });
    check([](BranchEntry& e) { e.predicted = true; });
    check([](BranchEntry& e) { e.in_transaction = true; });
    check([](BranchEntry& e) { e.aborted = true; });
    check([](BranchEntry& e) { e.cycles = 0xffff; });
    check([](BranchEntry& e) { e.type = BranchEntryType::extended; });
    check([](BranchEntry& e) { e.speculation = Speculation::right_path; });
    check([](BranchEntry& e) { e.new_type = 15; });
    check([](BranchEntry& e) { e.privilege = 7; });
    // The fields as Linux has them: bits 0 to 3 are flags, then cycles, type, speculation, new type and privilege.
    const auto bytes = encode_branch_entry({.mispredicted = true,
                                            .aborted = true,
                                            .cycles = 0x102,
                                            .type = BranchEntryType::call,
                                            .speculation = Speculation::wrong_path,
                                            .new_type = 5,
                                            .privilege = 3});
    EXPECT_EQ((std::vector<std::uint8_t>(bytes.begin() + 16, bytes.end())),
              (std::vector<std::uint8_t>{0x29, 0x10, 0x40, 0xd5, 0, 0, 0, 0}));
}

// ---- code of the kernel

/// One struct bpf_prog_info of 128 bytes with its arrays behind it.
Octets bpf_program(std::string_view name, std::vector<std::pair<std::uint64_t, Octets>> functions) {
    Fields arrays;
    for (const auto& f : functions) arrays.bytes.insert(arrays.bytes.end(), f.second.begin(), f.second.end());
    const std::uint64_t code_bytes = arrays.bytes.size();
    const std::uint64_t addresses = code_bytes;
    for (const auto& f : functions) arrays.words({f.first});
    const std::uint64_t lengths = arrays.bytes.size();
    for (const auto& f : functions) arrays.number(f.second.size(), 4);
    Fields info;
    info.number(0, 8).text("\x01\x23\x45\x67\x89\xab\xcd\xef", 8).number(code_bytes, 4).number(0, 4).number(0, 8);
    info.text("", 64 - info.bytes.size()).text(name, 16).text("", 104 - 80);
    info.number(functions.size(), 4).number(functions.size(), 4).words({addresses, lengths});
    Fields out;
    out.number(info.bytes.size(), 4).number(arrays.bytes.size(), 4).number(0, 8);
    out.bytes.insert(out.bytes.end(), info.bytes.begin(), info.bytes.end());
    out.bytes.insert(out.bytes.end(), arrays.bytes.begin(), arrays.bytes.end());
    return out.bytes;
}

TEST(PerfCode, FunctionsOfBpfPrograms) {
    Octets feature = Fields{}.number(2, 4).bytes;
    for (const Octets& program : {bpf_program("count", {{0xffff1000, {1, 2, 3, 4}}, {0xffff2000, {5, 6}}}),
                                  bpf_program("", {{0xffff3000, {7}}})})
        feature.insert(feature.end(), program.begin(), program.end());
    const std::string tag = "bpf_prog_0123456789abcdef";
    const std::vector<BpfFunction> all{
        {{0xffff1000}, {1, 2, 3, 4}, tag + "_count"}, {{0xffff2000}, {5, 6}, tag}, {{0xffff3000}, {7}, tag}};
    EXPECT_EQ(bpf_functions(feature), all);
    // A program whose numbers of addresses and lengths differ has none; the next one is read.
    Octets other = feature;
    other[4 + 16 + 108] = 3;
    EXPECT_EQ(bpf_functions(other), (std::vector<BpfFunction>{all[2]}));
    // Fields that the bytes have only in part are left out, wherever the bytes end.
    for (std::size_t bytes = 0; bytes < feature.size(); ++bytes) {
        const auto part = bpf_functions(Bytes(feature).first(bytes));
        EXPECT_LT(part.size(), 3U) << bytes;
        EXPECT_TRUE(std::equal(part.begin(), part.end(), all.begin())) << bytes;
    }
}

TEST(PerfCode, ChangesOfTheKernelsText) {
    PerfData data;
    data.kernel_symbols = {{{0x1000}, 0x10, 5, false, "new"}, {{0x1000}, 0x10, 30, true, "new"}};
    data.text_pokes = {{{0x1008}, 20, {1, 1}, {2, 2, 2}},
                       {{0x1008}, 10, {0}, {1, 1}},
                       {{0x1010}, 10, {}, {9}},
                       {{0x2000}, 15, {}, {}}};
    EXPECT_EQ(kernel_code_changes(data),
              (std::vector<CodeChange>{{CodeChange::kernel, 0, {0x1008}, 1, {0}, "new"},
                                       {CodeChange::kernel, 10, {0x1008}, 2, {1, 1}, "new"},
                                       {CodeChange::kernel, 10, {0x1010}, 1, {9}, ""},
                                       {CodeChange::kernel, 20, {0x1008}, 3, {2, 2, 2}, "new"}}));
}

TEST(PerfCode, PokesOfOneTimeStayInOrder) {
    PerfData data;
    for (std::uint8_t i = 1; i < 40; ++i) data.text_pokes.push_back({{0x1000}, 7, {}, {i}});
    const auto changes = kernel_code_changes(data);
    ASSERT_EQ(changes.size(), 39U);
    for (std::uint8_t i = 1; i < 40; ++i) EXPECT_EQ(changes[i - 1U].code, Octets{i});
}

}  // namespace
}  // namespace waymark::capture::perf
