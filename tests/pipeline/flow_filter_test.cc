/// Parts of the flow of several processes: the meaning of a selection, the flow that passes a filter, and the sentences
/// about both.
#include "waymark/pipeline/flow_filter.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fake_spaces.h"
#include "support/elements.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {
namespace {

using capture::AddressSpaces;
using synthetic::Element;
using synthetic::ElementSink;

constexpr std::uint64_t one_second = 1'000'000'000, kernel_half = std::uint64_t{1} << 63;

/// Two processes: main (10) with threads 1 and 3, and other (20) with thread 2; each has an image.
std::shared_ptr<FakeSpaces> some_spaces() {
    auto out = std::make_shared<FakeSpaces>();
    out->images = {{"/usr/bin/main", {0x12, 0x34, 0x56, 0x78, 0x9a}}, {"/usr/bin/other", {}}, {"[kernel]", {}}};
    out->named = {{0, {10, 1, "main", "main"}}, {0, {20, 2, "other", "other"}}, {0, {10, 3, "main", "helper"}}};
    const auto extent = [](std::uint64_t first, std::uint32_t name) {
        return capture::MappedExtent{first, first + 0xfff, 0, name, name, 0};
    };
    out->memory[10] = {extent(0x1000, 0), extent(kernel_half, 2)};
    out->memory[20] = {extent(0x1000, 1), extent(kernel_half, 2)};
    return out;
}

Session session_of(std::shared_ptr<FakeSpaces> spaces) {
    Session out;
    out.capture.path = "perf.data";
    out.capture.spaces = std::move(spaces);
    for (const char* name : {"cpu0", "cpu1"}) {
        Source& source = out.sources.emplace_back();
        source.name = name;
    }
    return out;
}

std::string said(Session& session, FlowSelection selection) {
    const Status status = select_flow(session, std::move(selection));
    return status.has_value() ? "" : status.error().message;
}
std::string said(FlowSelection selection) {
    Session session = session_of(some_spaces());
    return said(session, std::move(selection));
}

TEST(FlowSelection, OfNothingIsEverything) {
    Session one_memory;
    EXPECT_EQ(said(one_memory, {}), "");
    Session session = session_of(some_spaces());
    EXPECT_EQ(said(session, {}), "");
    EXPECT_EQ(session.sources[0].filter, nullptr);
}

TEST(FlowSelection, NeedsSeveralProcesses) {
    Session one_memory;
    one_memory.capture.path = "snapshot.ini";
    EXPECT_EQ(said(one_memory, {.kernel = true}).find("snapshot.ini: --process, --exclude-process"), 0U);
}

TEST(FlowSelection, NamesWhatThereIs) {
    EXPECT_EQ(said({.processes = {"nobody"}}),
              "--process 'nobody': the capture has no such process. It has: main[10], other[20]");
    EXPECT_EQ(said({.threads = {"nobody"}}),
              "--thread 'nobody': the capture has no such thread. It has: helper[3], main[1], other[2]");
    EXPECT_EQ(said({.images = {"nothing"}}),
              "--only-image 'nothing': the capture has no such image. It has: /usr/bin/main, /usr/bin/other, [kernel]");
    EXPECT_EQ(said({.cpus = {0, 7}}), "--cpu '7': the capture has no such CPU. It has: cpu0, cpu1");
    EXPECT_EQ(said({.threads = {"~("}}), "--thread '~(': the text after ~ is not a regular expression");
    EXPECT_EQ(said({.processes = {"~("}}), "--process '~(': the text after ~ is not a regular expression");
    EXPECT_EQ(said({.excluded = {"~["}}), "--exclude-process '~[': the text after ~ is not a regular expression");
    EXPECT_EQ(said({.images = {"~["}}), "--only-image '~[': the text after ~ is not a regular expression");
    EXPECT_EQ(said({.processes = {"main"}, .threads = {"helper"}, .images = {"other"}, .cpus = {1}}), "");
    // An excluded process need not exist.
    EXPECT_EQ(said({.excluded = {"nobody"}}), "");
}

TEST(FlowSelection, ListsTwelve) {
    auto spaces = std::make_shared<FakeSpaces>();
    for (std::uint32_t i = 10; i < 24; ++i) spaces->named.push_back({0, {std::optional(i), i, {}, {}}});
    Session session = session_of(spaces);
    EXPECT_EQ(
        said(session, {.processes = {"x"}}),
        "--process 'x': the capture has no such process. It has: 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21 and "
        "2 more");
    spaces->named.resize(12);
    EXPECT_EQ(said(session, {.processes = {"x"}}).find("more"), std::string::npos);
    spaces->named.clear();
    EXPECT_EQ(said(session, {.processes = {"x"}}), "--process 'x': the capture has no such process. It has: none");
}

TEST(FlowSelection, OfThreadsNeedsToKnowThem) {
    auto spaces = some_spaces();
    spaces->has_contexts = false;
    Session session = session_of(spaces);
    for (const FlowSelection& each : {FlowSelection{.processes = {"main"}}, FlowSelection{.threads = {"main"}},
                                      FlowSelection{.excluded = {"main"}}})
        EXPECT_EQ(said(session, each).find("--process and --thread need the thread that ran"), 0U);
    EXPECT_EQ(said(session, {.images = {"main"}}), "");
    capture::Buffer ring;
    ring.parts.resize(2);
    ring.parts[1].thread = 1;
    session.capture.buffers.push_back(ring);
    EXPECT_EQ(said(session, {.processes = {"main"}}), "");
}

TEST(FlowSelection, OfCpusLeavesOutTheOthers) {
    Session session = session_of(some_spaces());
    EXPECT_EQ(said(session, {.cpus = {1}}), "");
    EXPECT_TRUE(session.sources[0].left_out);
    EXPECT_FALSE(session.sources[1].left_out);
    ASSERT_NE(session.sources[0].filter, nullptr);
    EXPECT_EQ(session.sources[0].filter, session.sources[1].filter);
}

TEST(FlowSelection, OfATimeLeavesOutPartsOfBuffers) {
    Session session = session_of(some_spaces());
    capture::Buffer buffer;
    const auto part = [&](std::uint64_t from, std::uint64_t to) {
        capture::BufferPart& out = buffer.parts.emplace_back();
        out.from = from;
        out.to = to;
        out.follows = true;
    };
    part(100, 199);
    part(200, 300);
    part(301, 400);
    part(401, 500);
    buffer.parts[0].follows = false;
    session.capture.buffers = {buffer};
    EXPECT_EQ(said(session, {.time = std::pair<std::uint64_t, std::uint64_t>(300, 401)}), "");
    const auto& left = session.capture.buffers[0].parts;
    ASSERT_EQ(left.size(), 3U);
    EXPECT_EQ(left[0].from, 200U);
    EXPECT_FALSE(left[0].follows);  // the part before it is left out
    EXPECT_TRUE(left[1].follows);
    EXPECT_TRUE(left[2].follows);
    session.capture.buffers = {buffer};
    EXPECT_EQ(said(session, {.time = std::pair<std::uint64_t, std::uint64_t>(0, 99)}),
              "--time 0.000000000..0.000000099: there is no trace of that time. It goes from 0.000000100 to "
              "0.000000500");
    session.capture.buffers = {buffer};
    session.capture.buffers[0].parts[0].from = 0;  // not known
    EXPECT_EQ(said(session, {.time = std::pair<std::uint64_t, std::uint64_t>(2 * one_second, 3 * one_second + 7)}),
              "--time 2.000000000..3.000000007: there is no trace of that time. It goes from 0.000000199 to "
              "0.000000500");
    session.capture.buffers = {buffer};
    session.capture.buffers[0].parts.resize(1);
    session.capture.buffers[0].parts[0].to = 100;
    EXPECT_EQ(said(session, {.time = std::pair<std::uint64_t, std::uint64_t>(1, 2)}),
              "--time 0.000000001..0.000000002: there is no trace of that time. It goes from 0.000000100 to "
              "0.000000100");
    session.capture.buffers = {buffer};
    session.capture.buffers[0].parts.resize(1);
    session.capture.buffers[0].parts[0].from = session.capture.buffers[0].parts[0].to = 0;
    EXPECT_EQ(said(session, {.time = std::pair<std::uint64_t, std::uint64_t>(1, 2)}),
              "--time 0.000000001..0.000000002: there is no trace of that time. It goes from 0.000000000 to "
              "0.000000000");
    session.capture.buffers.clear();
    EXPECT_EQ(said(session, {.time = std::pair<std::uint64_t, std::uint64_t>(1, 2)}),
              "--time: the capture has no trace with a time");
}

TEST(FlowSelection, WithoutTheRecorder) {
    auto spaces = some_spaces();
    spaces->named.push_back({0, {30, 30, "perf", "perf"}});
    spaces->named.push_back({0, {40, 40, "simpleperf", "simpleperf"}});
    Session session = session_of(spaces);
    session.capture.recorder = "main";
    EXPECT_EQ(said(session, {.without_recorder = true}), "");
    const FlowFilter& filter = *session.sources[0].filter;
    EXPECT_EQ(filter.text(), "not process perf or simpleperf or main");
    EXPECT_FALSE(filter.wants_thread(30, 0));
    EXPECT_FALSE(filter.wants_thread(40, 0));
    EXPECT_FALSE(filter.wants_thread(1, 0));
    EXPECT_TRUE(filter.wants_thread(2, 0));
    EXPECT_TRUE(filter.wants_thread({}, 0));
}

TEST(FlowFilter, MeansThreadsByNumberNameAndExpression) {
    const auto spaces = some_spaces();
    const auto wanted = [&](FlowSelection selection) {
        const FlowFilter filter(std::move(selection), spaces);
        std::string out;
        for (const std::uint32_t thread : {1U, 2U, 3U, 9U}) out += filter.wants_thread(thread, 0) ? 'y' : 'n';
        return out + (filter.wants_thread({}, 0) ? 'y' : 'n');
    };
    EXPECT_EQ(wanted({}), "yyyyy");
    EXPECT_EQ(wanted({.processes = {"10"}}), "ynynn");
    EXPECT_EQ(wanted({.processes = {"main"}}), "ynynn");
    EXPECT_EQ(wanted({.processes = {"m*n"}}), "ynynn");
    EXPECT_EQ(wanted({.processes = {"mai"}}), "nnnnn");
    EXPECT_EQ(wanted({.processes = {"~th"}}), "nynnn");
    EXPECT_EQ(wanted({.processes = {"main", "20"}}), "yyynn");
    EXPECT_EQ(wanted({.threads = {"3"}}), "nnynn");
    EXPECT_EQ(wanted({.threads = {"helper"}}), "nnynn");
    EXPECT_EQ(wanted({.processes = {"main"}, .threads = {"~e"}}), "nnynn");
    EXPECT_EQ(wanted({.excluded = {"main"}}), "nynyy");
    EXPECT_EQ(wanted({.processes = {"main", "other"}, .excluded = {"10"}}), "nynnn");
    EXPECT_EQ(wanted({.threads = {"9"}}), "nnnyn");
}

TEST(FlowFilter, MeansImagesByPathNameAndBuildId) {
    const auto spaces = some_spaces();
    const auto wanted = [&](const std::string& name) {
        const FlowFilter filter({.images = {name}}, spaces);
        EXPECT_TRUE(filter.by_image());
        std::string out;
        for (const std::uint32_t image : {0U, 1U, 2U}) out += filter.wants_image(image) ? 'y' : 'n';
        return out + (filter.wants_image({}) ? 'y' : 'n');
    };
    EXPECT_EQ(wanted("/usr/bin/main"), "ynnn");
    EXPECT_EQ(wanted("main"), "ynnn");
    EXPECT_EQ(wanted("/usr/bin/*"), "yynn");
    EXPECT_EQ(wanted("/usr*main"), "ynnn");
    EXPECT_EQ(wanted("12345678"), "ynnn");
    EXPECT_EQ(wanted("123456789a"), "ynnn");
    EXPECT_EQ(wanted("1234567"), "nnnn");
    EXPECT_EQ(wanted("23456789"), "nnnn");
    const FlowFilter all({}, spaces);
    EXPECT_TRUE(all.wants_image({}));
    EXPECT_FALSE(all.by_image());
}

TEST(FlowFilter, SaysWhatIsWanted) {
    const auto text = [&](FlowSelection selection) { return FlowFilter(std::move(selection), some_spaces()).text(); };
    EXPECT_EQ(text({.processes = {"a", "b"},
                    .threads = {"t"},
                    .excluded = {"x"},
                    .images = {"i"},
                    .cpus = {1, 2},
                    .kernel = true,
                    .time = std::pair<std::uint64_t, std::uint64_t>(1, one_second)}),
              "process a or b, not process x, thread t, image i, CPU 1 or 2, kernel code, time "
              "0.000000001..1.000000000");
    EXPECT_EQ(text({.kernel = false}), "user code");
}

TEST(FlowFilter, WantsTimesThatTouch) {
    const FlowFilter filter({.time = std::pair<std::uint64_t, std::uint64_t>(10, 20)}, some_spaces());
    EXPECT_TRUE(filter.by_time());
    EXPECT_TRUE(filter.wants_time(0, 10));
    EXPECT_TRUE(filter.wants_time(20, 30));
    EXPECT_FALSE(filter.wants_time(0, 9));
    EXPECT_FALSE(filter.wants_time(21, 30));
}

/// The decoder's output, and the part that passes.
class Passing {
public:
    explicit Passing(FlowSelection selection, std::shared_ptr<FakeSpaces> spaces = some_spaces())
        : code_(std::make_shared<ProcessCode>(spaces, std::make_shared<image::MemoryMap>(), nullptr,
                                              std::vector<std::uint32_t>())),
          reader_(code_),
          filter_(std::make_shared<FlowFilter>(std::move(selection), spaces), reader_, out_) {
        begin(100, 200);
    }

    void begin(std::uint64_t from, std::uint64_t to, bool follows = false, std::optional<std::uint32_t> thread = {}) {
        deliver();
        capture::BufferPart part;
        part.from = from;
        part.to = to;
        part.follows = follows;
        part.thread = thread;
        reader_.begin(from, to, thread);
        filter_.begin(part);
    }
    Passing& range(std::uint64_t start) {
        flow::Block block;
        block.start = start;
        const auto known = std::find(blocks_.begin(), blocks_.end(), block);
        const auto id = static_cast<std::uint32_t>(known - blocks_.begin());
        if (known == blocks_.end()) blocks_.push_back(block);
        ranges_.push_back({2 * id + 1, static_cast<std::uint32_t>(++offset_ - base), flow::no_cycles, 1});
        return *this;
    }
    Passing& event(flow::What what) {
        events_.push_back({static_cast<std::uint32_t>(ranges_.size()), {++offset_}, std::move(what)});
        return *this;
    }
    Passing& thread(std::uint32_t number, std::optional<std::uint8_t> el = {}) {
        flow::Context context;
        context.context_id = number;
        context.el = el;
        return event(context);
    }
    void deliver() {
        filter_.consume({blocks_, {base}, ranges_, events_});
        ranges_.clear();
        events_.clear();
    }
    /// Kinds of elements; for ranges their addresses.
    std::string passed() {
        deliver();
        std::string out;
        for (const Element& e : out_.elements())
            out += (out.empty() ? "" : " ") +
                   (e.kind == synthetic::Kind::range ? fmt::format("{:x}", e.block.start) : std::string(name(e.kind)));
        return out;
    }
    [[nodiscard]] const Filtered& filtered() const { return filter_.filtered(); }
    [[nodiscard]] const std::vector<Element>& elements() const { return out_.elements(); }

private:
    static constexpr std::uint64_t base = 1000;
    std::shared_ptr<const ProcessCode> code_;
    ProcessReader reader_;
    ElementSink out_;
    FilterSink filter_;
    std::vector<flow::Block> blocks_;
    std::vector<flow::Range> ranges_;
    std::vector<flow::Event> events_;
    std::uint64_t offset_ = base;
};

TEST(FilterSink, PassesTheThreadsThatAreWanted) {
    Passing flow({.processes = {"main"}});
    flow.thread(1).range(0x1000).event(flow::Exception{}).thread(2).range(0x1010).event(flow::Exception{});
    flow.event(flow::Cycles{}).thread(3).range(0x1020);
    // After flow that did not pass, elements look as if the unit had been off.
    EXPECT_EQ(flow.passed(), "context 1000 exception context context trace_on 1020");
    const Element& on = flow.elements()[5];
    EXPECT_EQ(on.a, static_cast<std::uint64_t>(flow::TraceOnReason::enabled));
    EXPECT_EQ(on.offset, flow.elements()[6].offset);
    EXPECT_EQ(flow.filtered().passed, 2U);
    EXPECT_EQ(flow.filtered().uncertain, 0U);
    ASSERT_EQ(flow.filtered().left_out.size(), 1U);
    const auto& [kind, count] = *flow.filtered().left_out.begin();
    EXPECT_EQ(kind, (Filtered::Kind{2, 1, false}));
    EXPECT_EQ(count, 1U);
    EXPECT_EQ(flow.filtered().last, 200U);
}

TEST(FilterSink, AGapHidesWhatWasLeftOut) {
    for (const flow::What& between : {flow::What(Gap{}), flow::What(flow::TraceOn{})}) {
        Passing flow({.processes = {"main"}});
        flow.thread(2).range(0x1000).event(between).thread(1).range(0x1010);
        EXPECT_EQ(flow.passed(),
                  fmt::format("context {} context 1010", std::holds_alternative<Gap>(between) ? "gap" : "trace_on"));
    }
}

TEST(FilterSink, PassesTheImagesThatAreWanted) {
    Passing flow({.images = {"main"}});
    flow.thread(1).range(0x1000).range(0x2000).range(0x1000).event(flow::NoMemory{{0x1100}});
    flow.event(flow::Atoms{1, 2}).event(flow::NoMemory{{0x2100}}).event(flow::Atoms{3, 4});
    flow.event(flow::Reached{{0x1ffc}})
        .event(flow::Reached{{0x2000}})
        .event(flow::Untraced{{0x1000}, {0x2000}, 0, true});
    flow.event(flow::Untraced{{0x2000}, {0x1000}, 0, true}).event(flow::ExceptionReturn{}).event(flow::Mark{});
    EXPECT_EQ(flow.passed(), "context 1000 trace_on 1000 no_memory atoms trace_on reached trace_on untraced mark");
    EXPECT_EQ(flow.filtered().passed, 5U);
    EXPECT_EQ(flow.filtered().left_out.at({1, std::nullopt, false}), 4U);
    // The same address in another memory is another image.
    Passing other({.images = {"main"}});
    other.thread(2).event(flow::NoMemory{{0x1000}}).thread(1).event(flow::NoMemory{{0x1000}});
    EXPECT_EQ(other.passed(), "context context trace_on no_memory");
    EXPECT_EQ(other.filtered().left_out.at({2, 1, false}), 1U);
}

TEST(FilterSink, PassesTheLevelThatIsWanted) {
    for (const bool kernel : {true, false}) {
        Passing flow({.kernel = kernel});
        flow.thread(1, 0).range(0x1000).thread(1, 1).range(0x1010).thread(1).range(kernel_half);
        EXPECT_EQ(flow.passed(),
                  kernel ? "context context trace_on 1010 context 8000000000000000" : "context 1000 context context");
        Passing by_address({.kernel = kernel});
        by_address.thread(1).range(0x1000).range(kernel_half);
        by_address.range(kernel_half >> 1U);
        EXPECT_EQ(by_address.passed(),
                  kernel ? "context trace_on 8000000000000000" : "context 1000 trace_on 4000000000000000");
    }
}

TEST(FilterSink, PassesTheTimeThatIsWanted) {
    auto spaces = some_spaces();
    spaces->has_clock = true;
    Passing flow({.time = std::pair<std::uint64_t, std::uint64_t>(120, 150)}, spaces);
    const auto at = [](std::uint64_t value, bool known = true) {
        flow::Timestamp out;
        out.value = value;
        out.known = known;
        return out;
    };
    // Before the first timestamp, the time at which the preceding part ended applies.
    flow.thread(1)
        .range(0x1000)
        .event(at(12))
        .range(0x1010)
        .event(at(16, false))
        .range(0x1020)
        .event(at(16))
        .range(0x1030);
    EXPECT_EQ(flow.passed(), "context timestamp trace_on 1010 timestamp 1020 timestamp");
    // A part that follows continues at the same time, another part does not.
    flow.begin(130, 200, true);
    flow.range(0x1040);
    flow.begin(130, 200, false);
    flow.range(0x1050);
    EXPECT_EQ(flow.passed(), "context timestamp trace_on 1010 timestamp 1020 timestamp trace_on 1050");
    // Without a clock, each part that overlaps the time passes completely.
    Passing without({.time = std::pair<std::uint64_t, std::uint64_t>(150, 160)});
    without.thread(1).range(0x1000);
    EXPECT_EQ(without.passed(), "context 1000");
}

TEST(FilterSink, ATimestampNamesTheThreadOfThen) {
    auto spaces = some_spaces();
    spaces->has_clock = true;
    spaces->named = {{0, {10, 1, "sh", "sh"}}, {150, {10, 1, "main", "main"}}};
    Passing flow({.processes = {"main"}}, spaces);
    flow::Timestamp early, late;
    early.value = 14;
    late.value = 15;
    flow.thread(1).event(early).range(0x1000).event(late).range(0x1010);
    EXPECT_EQ(flow.passed(), "context timestamp timestamp trace_on 1010");
    EXPECT_EQ(flow.filtered().uncertain, 0U);
}

TEST(FilterSink, AThreadThatChangedItsNameIsUncertain) {
    auto spaces = some_spaces();
    spaces->named = {{0, {10, 1, "sh", "sh"}}, {150, {10, 1, "main", "main"}}};
    Passing flow({.processes = {"main"}}, spaces);
    flow.thread(1).range(0x1000).range(0x1010);
    EXPECT_EQ(flow.passed(), "context 1000 1010");
    EXPECT_EQ(flow.filtered().uncertain, 2U);
    Passing before({.processes = {"sh"}}, spaces);
    before.thread(1).range(0x1000);
    EXPECT_EQ(before.passed(), "context");
    EXPECT_EQ(before.filtered().uncertain, 1U);
    // A thread that had no name yet counts as the same thread.
    spaces->named = {{150, {10, 1, "main", "main"}}};
    Passing fresh({.processes = {"main"}}, spaces);
    fresh.thread(1).range(0x1000);
    EXPECT_EQ(fresh.passed(), "context 1000");
    EXPECT_EQ(fresh.filtered().uncertain, 0U);
}

TEST(FilterSink, TheThreadOfAPartIsThatOfItsRing) {
    auto spaces = some_spaces();
    spaces->has_contexts = false;
    Passing flow({.threads = {"2"}}, spaces);
    flow.begin(100, 200, false, 1);
    flow.range(0x1000);
    flow.begin(200, 300, false, 2);
    flow.range(0x1010);
    EXPECT_EQ(flow.passed(), "trace_on 1010");
    EXPECT_EQ(flow.filtered().left_out.at({1, 0, false}), 1U);
    EXPECT_EQ(flow.filtered().last, 200U);
}

// ---- sentences about filtered flow

class Counted final : public FlowConsumer {
public:
    explicit Counted(Filtered filtered) : filtered_(std::move(filtered)) {}
    void feed(Bytes) override {}
    void reset(GapReason) override {}
    void finish() override {}
    void flush() override {}
    [[nodiscard]] std::array<Offset, 2> pending() const override { return {}; }
    [[nodiscard]] std::uint64_t packets() const override { return 0; }
    [[nodiscard]] const Filtered* filtered() const override { return &filtered_; }

private:
    Filtered filtered_;
};

Report report_of(std::vector<Filtered> streams) {
    Report out;
    for (Filtered& each : streams) out.streams.emplace_back().consumer = std::make_unique<Counted>(std::move(each));
    out.streams.emplace_back();
    return out;
}

TEST(FilterNote, SaysHowMuchPassed) {
    Session session = session_of(some_spaces());
    EXPECT_FALSE(filter_note(session, {}));
    ASSERT_EQ(said(session, {.processes = {"main"}}), "");
    Filtered one, two;
    one.passed = 2;
    two.passed = 1;
    two.left_out[{2, 1, false}] = 1000;
    auto note = filter_note(session, report_of({one, two}));
    ASSERT_TRUE(note);
    EXPECT_EQ(note->text, "only code that ran of process main is shown: 3 of 1,003 ranges");
    EXPECT_FALSE(note->uncertain);
    EXPECT_FALSE(note->nothing_passed);
    two.uncertain = 1;
    note = filter_note(session, report_of({one, two}));
    EXPECT_EQ(note->text,
              "only code that ran of process main is shown: 3 of 1,003 ranges. Of 1 range it is uncertain whether they "
              "belong "
              "to it: the thread changed its name within their AUX range");
    EXPECT_TRUE(note->uncertain);
}

TEST(FilterNote, OfNothingSaysWhatThereIs) {
    Session session = session_of(some_spaces());
    ASSERT_EQ(said(session, {.processes = {"main"}}), "");
    Filtered one, two;
    one.left_out[{2, 1, false}] = 3;
    one.left_out[{std::nullopt, std::nullopt, true}] = 4;
    two.left_out[{2, 1, false}] = 2;
    two.last = 100;
    const auto note = filter_note(session, report_of({one, two}));
    ASSERT_TRUE(note);
    EXPECT_TRUE(note->nothing_passed);
    EXPECT_EQ(
        note->text,
        "none of the 9 ranges that ran is of process main. They are: 5 of other[2], /usr/bin/other, user code, 4 of "
        "a thread that is not known, an image that is not known, kernel code");
    EXPECT_FALSE(filter_note(session, report_of({}))->nothing_passed);
}

}  // namespace
}  // namespace waymark::pipeline
