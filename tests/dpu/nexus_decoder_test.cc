// Nexus messages become elements (docs/spec/dpu.md, the reverse of 11.3): each mode by hand, and random entries in both
// directions.
#include "waymark/dpu/nexus_decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "support.h"
#include "waymark/dpu/nexus.h"

namespace {

using namespace waymark;
using namespace waymark::dpu;
using namespace waymark::dpu::test;
namespace nx = waymark::dpu::nexus;

Bytes8 encoded(const std::vector<nx::Message>& messages) {
    Bytes8 out;
    for (const nx::Message& message : messages) nx::encode(out, message);
    return out;
}

Elements decoded(Bytes in, TraceMode mode, bool shows_did = false) {
    Elements out;
    nx::Decoder decoder(mode, shows_did, out, {});
    decoder.feed(in);
    decoder.finish();
    out.totals = decoder.totals();
    return out;
}

/// `flow 1000>2000 user 5 #0: 90 80 70 60 50 40`: kind, addresses, context, value or reading.
std::vector<std::string> texts(const Elements& all) {
    std::vector<std::string> out;
    for (const Element& e : all.elements) {
        std::string text = fmt::format("{} {:x}>{:x}", name(e.kind), e.from, e.to);
        if (e.has(Element::id_known)) text += fmt::format(" {} {}", e.context.supervisor ? "sv" : "user", e.context.id);
        if (!e.has_reading()) {
            text += fmt::format(" = {}", e.value);
        } else {
            const Reading& reading = all.readings[e.value];
            text += fmt::format(" {}:", reading.has(Reading::first) ? "first" : "then");
            for (const std::uint32_t value : reading.values) text += fmt::format(" {}", value);
        }
        out.push_back(text);
    }
    return out;
}
using Texts = std::vector<std::string>;

nx::Message owner(bool supervisor, unsigned pid, unsigned did) {
    return nx::OwnershipTrace{
        0, nx::Process{supervisor, static_cast<std::uint8_t>(pid), static_cast<std::uint8_t>(did)}.value()};
}
/// A branch to `to` from `from`, which the preceding message names.
nx::Message sync_at(std::uint32_t pc) { return nx::ProgramTraceSync{0, nx::Sync::trace_enabled, 0, pc >> 1}; }
nx::Message branch(std::uint32_t instructions, std::uint32_t last, std::uint32_t to,
                   nx::BranchType type = nx::BranchType::indirect) {
    return nx::IndirectBranch{0, type, instructions, (last ^ to) >> 1};
}
nx::Message counters(nx::Tag tag, const Counters& values) {
    nx::DataAcquisition message{0, static_cast<std::uint8_t>(tag), counter_count, {}};
    std::copy(values.begin(), values.end(), message.data.begin());
    return message;
}

// Absolute counters first, then their differences; the owner after a pair applies at its destination.
TEST(NexusDecoder, ChangesOfFlow) {
    const Bytes8 in =
        encoded({owner(false, 5, 7), counters(nx::Tag::first_counters, {90, 80, 70, 60, 50, 40}), sync_at(0x1000),
                 branch(0, 0x1000, 0x2000), owner(true, 6, 7), counters(nx::Tag::change_counters, {10, 0, 1, 2, 3, 4}),
                 sync_at(0x2010), branch(0, 0x2010, 0x3000), owner(false, 5, 7)});
    for (const TraceMode mode : {TraceMode::flow, TraceMode::task}) {
        const std::string kind(name(mode == TraceMode::flow ? ElementKind::flow : ElementKind::task_switch));
        EXPECT_EQ(texts(decoded(in, mode)),
                  (Texts{"context 0>0 user 5 = 0", kind + " 1000>2000 sv 6 first: 90 80 70 60 50 40",
                         kind + " 2010>3000 user 5 then: 80 80 69 58 47 36"}));
    }
    EXPECT_EQ(texts(decoded(in, TraceMode::flow, true))[1], "flow 1000>2000 sv 7 first: 90 80 70 60 50 40");
}

// A sample has no pair; in modes whose changes of flow have no counters, a pair after a sample is separate, and its
// owner is a separate element.
TEST(NexusDecoder, SamplesAndPairs) {
    const Bytes8 in = encoded({owner(false, 1, 1), counters(nx::Tag::first_counters, {9, 8, 7, 6, 5, 4}),
                               sync_at(0x1000), branch(0, 0x1000, 0x2000), owner(true, 2, 2)});
    EXPECT_EQ(texts(decoded(in, TraceMode::eonce_raw)),
              (Texts{"context 0>0 user 1 = 0", "sample 0>0 user 1 first: 9 8 7 6 5 4", "pair 1000>2000 user 1 = 0",
                     "context 0>0 sv 2 = 0"}));
    EXPECT_EQ(texts(decoded(in, TraceMode::eonce_comp)),
              (Texts{"context 0>0 user 1 = 0", "sample 0>0 user 1 first: 9 8 7 6 5 4", "pair 1000>2000 sv 2 = 0"}));
    const Bytes8 sampled =
        encoded({owner(false, 1, 1), counters(nx::Tag::first_counters, {9, 8, 7, 6, 5, 4}), sync_at(0x1000),
                 branch(0, 0x1000, 0x2000), counters(nx::Tag::sample_counters, {1, 1, 1, 1, 1, 1}), sync_at(0x2000),
                 branch(0, 0x2000, 0x3000)});
    EXPECT_EQ(texts(decoded(sampled, TraceMode::flow)),
              (Texts{"context 0>0 user 1 = 0", "flow 1000>2000 user 1 first: 9 8 7 6 5 4",
                     "sample 0>0 user 1 then: 8 7 6 5 4 3", "pair 2000>3000 user 1 = 0"}));
}

// A loop of compressed flow is a branch of its own type, and Repeat Branch messages count its further executions.
TEST(NexusDecoder, Loops) {
    const nx::Message back = branch(0, 0x1010, 0x1000, nx::BranchType::hardware_loop);
    const Bytes8 in =
        encoded({owner(false, 1, 1), sync_at(0x1010), back, nx::RepeatBranch{0, 8}, nx::RepeatBranch{0, 5},
                 sync_at(0x1020), branch(0, 0x1020, 0x2000), nx::RepeatBranch{0, 3}, owner(true, 2, 2),
                 nx::DataAcquisition{0, static_cast<std::uint8_t>(nx::Tag::loop), 2, {0x3008, 15}}});
    EXPECT_EQ(texts(decoded(in, TraceMode::eonce_comp)),
              (Texts{"context 0>0 user 1 = 0", "long loop 1010>0 user 1 = 14", "pair 1020>2000 user 1 = 0",
                     "context 0>0 sv 2 = 0", "long loop 3008>0 sv 2 = 15"}));
    // Raw flow writes each jump back as a pair.
    EXPECT_EQ(texts(decoded(encoded({sync_at(0x1010), back}), TraceMode::eonce_raw)), (Texts{"pair 1010>1000 = 0"}));
}

TEST(NexusDecoder, SoftwareAndPlaces) {
    const auto data = [](nx::Tag tag) {
        return nx::DataAcquisition{0, static_cast<std::uint8_t>(tag), 1, {0xcafe0001}};
    };
    const Elements all =
        decoded(encoded({owner(true, 4, 3), data(nx::Tag::user_data), data(nx::Tag::user_raw), nx::Watchpoint{0, 3},
                         nx::DataAcquisition{0, 0x7f, 1, {5}},  // with an unknown tag
                         nx::ProgramTraceSync{0, nx::Sync::watchpoint, 0, 0x4000 >> 1}}),
                TraceMode::eonce_raw);
    ASSERT_EQ(texts(all), (Texts{"context 0>0 sv 4 = 0", "user data 0>0 sv 4 = 3405643777",
                                 "user data 0>0 = 3405643777", "pc 4000>0 sv 4 = 0"}));
    EXPECT_EQ(all.elements[1].kind, ElementKind::user_data);
    EXPECT_EQ(all.elements[2].kind, ElementKind::user_raw);
}

// Losses; and, like the pads of a buffer, one mark where tracing went on after it was turned off.
TEST(NexusDecoder, LossesAndPauses) {
    const nx::ProgramCorrelation off{0, nx::ProgramCorrelation::trace_disabled, 0, 0, {}};
    const Bytes8 in = encoded({nx::ErrorMessage{0, 0, 0x2c}, nx::ErrorMessage{0, 0, nx::ErrorMessage::watchpoint},
                               sync_at(0x1000), branch(0, 0x1000, 0x2000), off, owner(false, 1, 1), off});
    const Elements all = decoded(in, TraceMode::eonce_raw);
    EXPECT_EQ(texts(all),
              (Texts{"lost entries 0>0 = 1", "pair 1000>2000 = 0", "held 0>0 = 0", "context 0>0 user 1 = 0"}));
    EXPECT_EQ(all.totals.lost, 1U);
    EXPECT_EQ(all.totals.holds, 1U);
    EXPECT_EQ(all.totals.bytes, in.size());
}

// Differences lost to damage are not in the next counters: they are absolute again.
TEST(NexusDecoder, DamageForgetsTheCounters) {
    Bytes8 in = encoded({counters(nx::Tag::first_counters, {9, 8, 7, 6, 5, 4})});
    in.insert(in.end(), {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x03});
    const Bytes8 more = encoded({counters(nx::Tag::sample_counters, {1, 1, 1, 1, 1, 1})});
    in.insert(in.end(), more.begin(), more.end());
    const Elements all = decoded(in, TraceMode::sw_sample);
    ASSERT_EQ(all.readings.size(), 2U);
    EXPECT_EQ(all.readings[1].values,
              (Counters{0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff, 0x7fffffff}));
}

/// The readings of a stream, with their kinds and contexts.
Texts readings(const Elements& all) {
    Texts out;
    const Texts every = texts(all);
    for (std::size_t i = 0; i < every.size(); ++i)
        if (all.elements[i].has_reading()) out.push_back(every[i]);
    return out;
}

// Readings, places and contexts of random entries are the same through a buffer and through messages.
TEST(NexusDecoder, RandomEntriesThereAndBack) {
    for (const TraceMode mode : {TraceMode::task, TraceMode::flow, TraceMode::sw_sample})
        for (std::uint64_t seed = 0; seed < 20; ++seed) {
            RandomTrace trace(in(mode), seed);
            std::vector<Entry> entries;
            std::optional<TaskContext> context;  // only a change of flow changes it
            for (Entry entry : trace.entries(300)) {
                if (auto* sample = std::get_if<Sample>(&entry))
                    sample->context = context.value_or(sample->context);
                else if (const auto* change = std::get_if<TaskSwitch>(&entry))
                    context = change->context;
                else if (const auto* flow = std::get_if<Flow>(&entry))
                    context = flow->context;
                else
                    continue;
                entries.push_back(entry);
            }
            Bytes8 messages;
            nx::Mapper mapper(messages, mode, false);
            for (const Entry& entry : entries)
                std::visit(
                    [&](const auto& e) {
                        if constexpr (requires { e.context; }) mapper.entry(entry, nx::Process::of(e.context));
                    },
                    entry);
            const Elements through_buffer =
                decode<ReferenceDecoder>(test::encoded(entries, in(mode)), in(mode), {}, true);
            const Elements through_messages = decoded(messages, mode);
            ASSERT_FALSE(through_buffer.readings.empty());
            const Texts expected = readings(through_buffer), found = readings(through_messages);
            ASSERT_EQ(expected.size(), found.size());
            for (std::size_t i = 0; i < expected.size(); ++i)
                ASSERT_EQ(expected[i], found[i]) << name(mode) << " seed " << seed << " reading " << i;
        }
}

}  // namespace
