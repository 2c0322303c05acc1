/// Code of several processes: the code that each process sees, the places of files, and the sentences about code
/// without a file.
#include "waymark/pipeline/process_code.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fake_spaces.h"
#include "support/elements.h"

namespace waymark::pipeline {
namespace {

using synthetic::Element;
using synthetic::ElementSink;

/// File 0 has its place at 0x10000, file 1 at 0x20000. Process 10 (thread 1) has file 0 at 0x1000 and file 1 at 0x2000;
/// process 20 (thread 2) file 0 at 0x5000; process 30 (thread 3) the same as 10.
std::shared_ptr<FakeSpaces> three_processes() {
    auto out = std::make_shared<FakeSpaces>();
    out->images = {{"/zero", {}}, {"/one", {}}, {"/nowhere", {}}};
    for (std::uint32_t i = 1; i <= 3; ++i) out->named.push_back({0, {10 * i, i, "p", "t"}});
    const capture::MappedExtent zero{0x1000, 0x10ff, 0x1000 - std::uint64_t{0x10000}, 0, 0},
        one{0x2000, 0x20ff, 0x2000 - std::uint64_t{0x20000}, 1, 1}, nowhere{0x3000, 0x30ff, 0, capture::no_module, 2};
    out->memory[10] = out->memory[30] = {zero, one, nowhere};
    out->memory[20] = {{0x5000, 0x50ff, 0x5000 - std::uint64_t{0x10000}, 0, 0}};
    return out;
}

std::shared_ptr<image::MemoryMap> mapped_places() {
    auto out = std::make_shared<image::MemoryMap>();
    // Longer than its mapped part.
    EXPECT_TRUE(out->add_bytes(std::vector<std::uint8_t>(0x200, 'z'), {0x10000}));
    EXPECT_TRUE(out->add_bytes(std::vector<std::uint8_t>(0xff, 'o'), {0x20000}));
    EXPECT_TRUE(out->add_bytes(std::vector<std::uint8_t>(0x100, 'h'), {0x7000}));
    return out;
}

ProcessCode processes_code(std::shared_ptr<FakeSpaces> spaces, std::vector<std::uint32_t> by_hand = {}) {
    return {std::move(spaces), mapped_places(), nullptr, std::move(by_hand)};
}

TEST(ProcessCode, MemoriesOfOneContentsShareANumber) {
    const ProcessCode code = processes_code(three_processes());
    const std::uint32_t first = code.number(1, 0, 1);
    EXPECT_EQ(first, 1U);
    EXPECT_EQ(code.number(3, 0, 1), first);
    EXPECT_EQ(code.number(2, 0, 1), 2U);
    EXPECT_EQ(code.number(1, 5, 9), first);
    EXPECT_EQ(code.number(std::nullopt, 0, 1), 3U);
    EXPECT_EQ(code.number(99, 0, 1), 3U);  // nothing is known of either number
}

TEST(ProcessCode, AnExtentHasItsFirstAndLastAddress) {
    const ProcessCode code = processes_code(three_processes());
    const std::uint32_t number = code.number(1, 0, 1);
    EXPECT_EQ(code.extent(number, 0xfff), nullptr);
    ASSERT_NE(code.extent(number, 0x1000), nullptr);
    EXPECT_EQ(code.extent(number, 0x1000), code.extent(number, 0x10ff));
    EXPECT_EQ(code.extent(number, 0x1100), nullptr);
    ASSERT_NE(code.extent(number, 0x2000), nullptr);
    EXPECT_EQ(code.extent(number, 0x2000)->name, 1U);
    EXPECT_EQ(code.extent(code.number(std::nullopt, 0, 1), 0x1000), nullptr);
}

TEST(ProcessCode, BytesAreThoseOfTheFileAsFarAsItIsMapped) {
    const ProcessCode code = processes_code(three_processes());
    const std::uint32_t one = code.number(1, 0, 1), two = code.number(2, 0, 1);
    const isa::Code first = code.at(one, {0x1000});
    ASSERT_EQ(first.bytes.size(), 0x100U);
    EXPECT_EQ(first.bytes[0], 'z');
    EXPECT_EQ(code.at(one, {0x10ff}).bytes.size(), 1U);
    EXPECT_EQ(code.at(one, {0x1100}).bytes.size(), 0U);
    // Not more bytes than the file has.
    EXPECT_EQ(code.at(one, {0x2000}).bytes.size(), 0xffU);
    EXPECT_EQ(code.at(one, {0x20ff}).bytes.size(), 0U);
    EXPECT_EQ(code.at(one, {0x3000}).bytes.size(), 0U);  // a file that was not found
    EXPECT_EQ(code.at(one, {0x7000}).bytes.size(), 0U);  // in no memory of the process
    EXPECT_EQ(code.at(two, {0x1000}).bytes.size(), 0U);
    // Each file and shift has its own section.
    EXPECT_EQ(code.at(one, {0x1010}).section, first.section);
    const isa::Code there = code.at(two, {0x5000});
    EXPECT_NE(there.section, first.section);
    const ProcessCode::Placed placed = code.placed(there.section);
    EXPECT_EQ(placed.shift, 0x5000 - std::uint64_t{0x10000});
    EXPECT_EQ(placed.number, two);
    EXPECT_EQ(placed.section, code.placed(first.section).section);
    EXPECT_EQ(placed.name, 0U);
    EXPECT_EQ(placed.other, capture::no_name);
    EXPECT_EQ(code.placed(99).number, 0U);
    EXPECT_FALSE(code.any_uncertain());
}

TEST(ProcessCode, WhatWasPutThereByHandIsSeenWhereNothingIsMapped) {
    auto spaces = three_processes();
    // A gap between two mappings that is smaller than the section given by hand.
    spaces->memory[10].push_back({0x7080, 0x70ff, 0x7080 - std::uint64_t{0x10000}, 0, 0});
    const ProcessCode code = processes_code(spaces, {2});
    const std::uint32_t number = code.number(1, 0, 1);
    const isa::Code hand = code.at(number, {0x7010});
    ASSERT_EQ(hand.bytes.size(), 0x70U);
    EXPECT_EQ(hand.bytes[0], 'h');
    EXPECT_EQ(code.at(number, {0x7080}).bytes[0], 'z');
    // Sections of files are not cut.
    EXPECT_EQ(code.at(number, {0x10000}).bytes.size(), 0U);
    EXPECT_EQ(code.at(number, {0x6fff}).bytes.size(), 0U);
    const ProcessCode::Placed placed = code.placed(hand.section);
    EXPECT_EQ(placed.shift, 0U);
    EXPECT_EQ(placed.section, 2U);
    // Below all mappings, and above them.
    const std::uint32_t nobody = code.number(std::nullopt, 0, 1);
    EXPECT_EQ(code.at(nobody, {0x7000}).bytes.size(), 0x100U);
}

TEST(ProcessCode, ChangedCodeTakesThePlaceOfWhatWasMapped) {
    const auto places = mapped_places();
    const auto changed = std::make_shared<ChangedCode>();
    const auto add = [&](std::uint32_t process, std::uint64_t address, const char* name, std::uint8_t value) {
        changed->add({process, 10, {address}, 4, std::vector<std::uint8_t>(4, value), name});
    };
    add(10, 0x1010, "", 'c');
    add(10, 0x9000, "jitted", 'j');
    add(capture::CodeChange::kernel, 0xf000, "kernel", 'k');
    changed->finish(*places);
    const ProcessCode code(three_processes(), places, changed, {});
    const std::uint32_t before = code.number(1, 0, 9), after = code.number(1, 0, 10);
    EXPECT_NE(before, after);
    EXPECT_EQ(code.number(1, 5, 99), after);
    EXPECT_EQ(code.at(before, {0x1010}).bytes[0], 'z');
    EXPECT_EQ(code.at(before, {0x9000}).bytes.size(), 0U);
    // The bytes from there on, up to the end of the piece.
    const isa::Code part = code.at(after, {0x1011});
    ASSERT_EQ(part.bytes.size(), 3U);
    EXPECT_EQ(part.bytes[0], 'c');
    EXPECT_EQ(code.at(after, {0x1014}).bytes[0], 'z');
    const isa::Code jitted = code.at(after, {0x9001});
    ASSERT_EQ(jitted.bytes.size(), 3U);
    EXPECT_EQ(jitted.bytes[0], 'j');
    // All processes see the kernel's code, and so do unknown threads.
    for (const std::optional<std::uint32_t> thread :
         {std::optional<std::uint32_t>(2), std::optional<std::uint32_t>()}) {
        const std::uint32_t number = code.number(thread, 0, 10);
        ASSERT_EQ(code.at(number, {0xf000}).bytes.size(), 4U);
        EXPECT_EQ(code.at(number, {0xf000}).bytes[0], 'k');
        EXPECT_EQ(code.at(number, {0x9000}).bytes.size(), 0U);
    }
}

TEST(ProcessReader, ReadsWhatWasThereInItsTime) {
    auto spaces = three_processes();
    spaces->mapped_at = 10;
    const auto code =
        std::make_shared<const ProcessCode>(spaces, mapped_places(), nullptr, std::vector<std::uint32_t>());
    ProcessReader reader(code);
    reader.begin(0, 9, 1);
    EXPECT_EQ(reader.at({0x1000}, {}).bytes.size(), 0U);
    reader.begin(0, 10, 1);
    EXPECT_EQ(reader.at({0x1000}, {}).bytes.size(), 0x100U);
}

TEST(ProcessReader, ReadsTheCodeOfTheThreadThatRuns) {
    const auto code =
        std::make_shared<const ProcessCode>(three_processes(), mapped_places(), nullptr, std::vector<std::uint32_t>());
    ProcessReader reader(code);
    isa::Space one, two;
    one.context_id = 1;
    two.context_id = 2;
    EXPECT_EQ(reader.at({0x1000}, one).bytes.size(), 0x100U);
    EXPECT_EQ(reader.at({0x1000}, two).bytes.size(), 0U);
    EXPECT_EQ(reader.at({0x5000}, two).bytes.size(), 0x100U);
    EXPECT_EQ(reader.at({0x5000}, {}).bytes.size(), 0U);
    EXPECT_EQ(reader.thread({}), std::nullopt);
    // The thread of the ring applies if the trace names no thread.
    reader.begin(0, 10, 2);
    EXPECT_EQ(reader.at({0x5000}, {}).bytes.size(), 0x100U);
    EXPECT_EQ(reader.thread({}), 2U);
    EXPECT_EQ(reader.thread(one), 1U);
    // A view stands for the space.
    const isa::Space view = reader.view(two);
    EXPECT_NE(view.number, 0U);
    EXPECT_EQ(view.context_id, std::nullopt);
    EXPECT_EQ(reader.view(view), view);
    EXPECT_EQ(reader.at({0x5000}, view).bytes.size(), 0x100U);
}

flow::Block block(std::uint64_t start, std::uint32_t section, flow::End end = flow::End::indirect,
                  std::uint64_t target = 0) {
    flow::Block out;
    out.start = start;
    out.bytes = 8;
    out.instructions = 2;
    out.section = section;
    out.end = end;
    out.target = target;
    return out;
}

TEST(PlacedBlocks, HaveTheAddressesOfTheirFiles) {
    const ProcessCode code = processes_code(three_processes());
    const std::uint32_t number = code.number(1, 0, 1);
    const std::uint32_t section = code.at(number, {0x1000}).section;
    PlacedBlocks placed(code);
    std::vector<flow::Block> blocks = {
        block(0x1010, section, flow::End::direct, 0x2020), block(0x1020, section, flow::End::direct, 0x1000),
        block(0x1030, section, flow::End::barrier, 0x10f0), block(0x1040, section, flow::End::direct, 0x9000),
        block(0x1050, section, flow::End::indirect, 0x2020)};
    const auto at_their_places = placed.of(blocks);
    ASSERT_EQ(at_their_places.size(), 5U);
    EXPECT_EQ(at_their_places[0].start, 0x10010U);
    EXPECT_EQ(at_their_places[0].target, 0x20020U);  // in another file
    EXPECT_EQ(at_their_places[1].target, 0x10000U);
    EXPECT_EQ(at_their_places[2].target, 0x100f0U);
    EXPECT_EQ(at_their_places[3].target, 0x9000 - (0x1000 - std::uint64_t{0x10000}));  // in none
    EXPECT_EQ(at_their_places[4].target, 0x2020U);                                     // means nothing
    EXPECT_EQ(at_their_places[0].section, code.placed(section).section);
    EXPECT_EQ(at_their_places[0].bytes, 8U);
    // Existing blocks keep their places while more come.
    for (std::uint64_t i = 0; i < 3000; ++i) blocks.push_back(block(0x1000 + i % 0x100, section));
    const auto more = placed.of(blocks);
    ASSERT_EQ(more.size(), 3005U);
    EXPECT_EQ(more[0].start, 0x10010U);
    EXPECT_EQ(more[3004].start, 0x10000U + 2999 % 0x100);
    EXPECT_EQ(at_their_places[0].start, 0x10010U);
    EXPECT_EQ(placed.of(std::span(blocks).first(2)).size(), 2U);
    EXPECT_TRUE(PlacedBlocks(code).of({}).empty());
}

/// Events of a thread, and the code that a ProcessSink finds for these events.
class Moved {
public:
    explicit Moved(bool moves, std::shared_ptr<FakeSpaces> spaces = three_processes())
        : code_(
              std::make_shared<ProcessCode>(std::move(spaces), mapped_places(), nullptr, std::vector<std::uint32_t>())),
          reader_(code_),
          sink_(reader_, out_, moves) {}
    Moved& thread(std::optional<std::uint32_t> number) {
        flow::Context context;
        context.context_id = number;
        context.vmid = 7;
        return event(context);
    }
    Moved& event(flow::What what) {
        const flow::Event one{0, {0}, std::move(what)};
        sink_.consume({{}, {}, {}, {&one, 1}});
        return *this;
    }
    Moved& range(std::uint64_t start, std::uint32_t thread, std::uint32_t times = 1) {
        const std::uint32_t section = code_->at(code_->number(thread, 0, ~std::uint64_t{0}), {start}).section;
        blocks_.push_back(block(start, section));
        const flow::Range one{static_cast<std::uint32_t>(2 * (blocks_.size() - 1) + 1), 0, flow::no_cycles, times};
        sink_.consume({blocks_, {}, {&one, 1}, {}});
        return *this;
    }
    [[nodiscard]] const Element& last() const { return out_.elements().back(); }
    ProcessSink& sink() { return sink_; }
    ProcessReader& reader() { return reader_; }

private:
    std::shared_ptr<const ProcessCode> code_;
    ProcessReader reader_;
    ElementSink out_;
    ProcessSink sink_;
    std::vector<flow::Block> blocks_;
};

TEST(ProcessSink, GivesAddressesTheirPlaces) {
    Moved flow(true);
    flow.thread(1);
    EXPECT_EQ(flow.last().c, 1U);
    EXPECT_EQ(flow.last().d, Element::absent);  // the VMID has no meaning if the thread is known
    flow::Exception exception;
    exception.preferred_return = Address{0x1010};
    exception.vector = Address{0x2000};
    flow.event(exception);
    EXPECT_EQ(flow.last().b, 0x10010U);
    EXPECT_EQ(flow.last().c, 0x20000U);
    flow.event(flow::Exception{});
    EXPECT_EQ(flow.last().b, Element::absent);
    EXPECT_EQ(flow.last().c, Element::absent);
    flow.event(flow::NoMemory{{0x2010}});
    EXPECT_EQ(flow.last().a, 0x20010U);
    flow.event(flow::NoMemory{{0x9000}});
    EXPECT_EQ(flow.last().a, 0x9000U);
    flow.event(flow::Reached{{0x1020}});
    EXPECT_EQ(flow.last().a, 0x10020U);
    flow.event(flow::Inconsistency{flow::Conflict::sync_disagrees, {0x1000}, {0x2000}});
    EXPECT_EQ(flow.last().b, 0x10000U);
    EXPECT_EQ(flow.last().c, 0x20000U);
    flow.event(flow::Untraced{{0x1004}, {0x2004}, 3, true});
    EXPECT_EQ(flow.last().a, 0x10004U);
    EXPECT_EQ(flow.last().b, 0x20004U);
    EXPECT_EQ(flow.last().c, 3U);
    flow.range(0x1040, 1);
    EXPECT_EQ(flow.last().block.start, 0x10040U);
    flow.thread(2).event(flow::Reached{{0x5000}});
    EXPECT_EQ(flow.last().a, 0x10000U);
    flow.thread(std::nullopt);
    EXPECT_EQ(flow.last().c, Element::absent);
}

TEST(ProcessSink, OrLeavesThemAsTheyWere) {
    Moved flow(false);
    flow.thread(1);
    EXPECT_EQ(flow.last().d, 7U);
    flow.event(flow::Reached{{0x1020}});
    EXPECT_EQ(flow.last().a, 0x1020U);
    flow.range(0x1040, 1);
    EXPECT_EQ(flow.last().block.start, 0x1040U);
}

TEST(ProcessSink, CountsWhatLacksAFile) {
    Moved flow(true);
    flow.thread(1).event(flow::NoMemory{{0x3010}}).event(flow::Atoms{2, 3}).event(flow::NoMemory{{0x3004}});
    flow.event(flow::Atoms{1, 0}).event(flow::TraceOn{}).event(flow::Atoms{100, 100});
    flow.event(flow::NoMemory{{0x9000}}).event(Gap{}).event(flow::Atoms{50, 0});
    for (std::uint32_t thread = 11; thread < 18; ++thread) flow.thread(thread).event(flow::NoMemory{{0x9010}});
    flow.thread(11).event(flow::NoMemory{{0x9010}});
    const std::vector<MissingCode> missing = flow.sink().missing();
    ASSERT_EQ(missing.size(), 2U);
    EXPECT_EQ(missing[0].name, std::nullopt);
    EXPECT_EQ(missing[0].times, 9U);
    EXPECT_EQ(missing[0].first, Address{0x9000});
    EXPECT_EQ(missing[0].outcomes, 0U);
    EXPECT_EQ(missing[0].threads, (std::vector<std::uint32_t>{1, 11, 12, 13}));
    EXPECT_EQ(missing[1].name, 2U);
    EXPECT_EQ(missing[1].times, 2U);
    EXPECT_EQ(missing[1].first, Address{0x3004});
    EXPECT_EQ(missing[1].outcomes, 6U);
    EXPECT_TRUE(missing[1].threads.empty());
}

TEST(ProcessSink, CountsWhatMayBeOfAnotherFile) {
    auto spaces = three_processes();
    spaces->memory[10][0].other = 1;
    Moved flow(true, spaces);
    flow.thread(1).range(0x1040, 1, 5).range(0x1010, 1).range(0x2000, 1);
    const std::vector<UncertainCode> uncertain = flow.sink().uncertain();
    ASSERT_EQ(uncertain.size(), 1U);
    EXPECT_EQ(uncertain[0].name, 0U);
    EXPECT_EQ(uncertain[0].other, 1U);
    EXPECT_EQ(uncertain[0].ranges, 6U);
    EXPECT_EQ(uncertain[0].instructions, 12U);
    EXPECT_EQ(uncertain[0].first, Address{0x1010});
}

/// A sink whose forks can be joined.
class Forking final : public flow::Sink {
public:
    void consume(const flow::Batch&) override {}
    [[nodiscard]] flow::Split split() const override { return flow::Split::per_chunk; }
    [[nodiscard]] std::unique_ptr<flow::Sink> fork() const override { return std::make_unique<Forking>(); }
    void begin_at(const flow::Context& context) override { began = context; }
    void join(flow::Sink&) override { ++joined; }
    [[nodiscard]] bool counts_suffice() const override { return true; }
    void take_counts(const flow::EdgeCounts& all) override {
        blocks.assign(all.blocks.begin(), all.blocks.end());
        times.assign(all.times.begin(), all.times.end());
    }
    std::vector<flow::Block> blocks;
    std::vector<std::uint64_t> times;
    std::optional<flow::Context> began;
    int joined = 0;
};

TEST(ProcessSink, ForksAddUp) {
    const auto code =
        std::make_shared<const ProcessCode>(three_processes(), mapped_places(), nullptr, std::vector<std::uint32_t>());
    ProcessReader reader(code);
    Forking out;
    ProcessSink sink(reader, out, true);
    const auto give = [](flow::Sink& to, flow::What what) {
        const flow::Event one{0, {0}, std::move(what)};
        to.consume({{}, {}, {}, {&one, 1}});
    };
    flow::Context context;
    context.context_id = 1;
    give(sink, context);
    give(sink, flow::NoMemory{{0x3010}});
    const auto fork = sink.fork();
    fork->begin_at(context);
    give(*fork, flow::NoMemory{{0x3004}});
    give(*fork, flow::Atoms{1, 1});
    give(*fork, flow::NoMemory{{0x9000}});
    sink.join(*fork);
    EXPECT_EQ(out.joined, 1);
    const std::vector<MissingCode> missing = sink.missing();
    ASSERT_EQ(missing.size(), 2U);
    EXPECT_EQ(missing[0].times, 2U);
    EXPECT_EQ(missing[0].first, Address{0x3004});
    EXPECT_EQ(missing[0].outcomes, 2U);
    EXPECT_EQ(missing[1].times, 1U);
    EXPECT_EQ(missing[1].threads, (std::vector<std::uint32_t>{1}));
    // Outcomes after it belong to no known place.
    give(sink, flow::Atoms{1, 1});
    EXPECT_EQ(sink.missing()[0].outcomes, 2U);
}

TEST(ProcessSink, ForksThatMissTheSameAddUp) {
    auto spaces = three_processes();
    spaces->memory[10][0].other = 1;
    const auto code =
        std::make_shared<const ProcessCode>(spaces, mapped_places(), nullptr, std::vector<std::uint32_t>());
    ProcessReader reader(code);
    Forking out;
    ProcessSink sink(reader, out, true);
    const std::vector<flow::Block> blocks = {block(0x1040, code->at(code->number(1, 0, 1), {0x1040}).section)};
    const auto give = [&](flow::Sink& to, std::uint32_t thread, std::uint64_t address, std::uint32_t times) {
        flow::Context context;
        context.context_id = thread;
        const flow::Event events[] = {{0, {0}, context}, {0, {0}, flow::NoMemory{{address}}}};
        const flow::Range range{1, 0, flow::no_cycles, times};
        to.consume({blocks, {}, {&range, 1}, events});
    };
    give(sink, 1, 0x9000, 2);
    const auto fork = sink.fork();
    give(*fork, 2, 0x8000, 3);
    sink.join(*fork);
    const std::vector<MissingCode> missing = sink.missing();
    ASSERT_EQ(missing.size(), 1U);
    EXPECT_EQ(missing[0].times, 2U);
    EXPECT_EQ(missing[0].first, Address{0x8000});
    EXPECT_EQ(missing[0].threads, (std::vector<std::uint32_t>{1, 2}));
    const std::vector<UncertainCode> uncertain = sink.uncertain();
    ASSERT_EQ(uncertain.size(), 1U);
    EXPECT_EQ(uncertain[0].ranges, 5U);
    EXPECT_EQ(uncertain[0].instructions, 10U);
}

TEST(ProcessSink, CountsHaveTheirPlaces) {
    auto spaces = three_processes();
    spaces->memory[10][0].other = 1;
    for (const bool moves : {true, false}) {
        const auto code =
            std::make_shared<const ProcessCode>(spaces, mapped_places(), nullptr, std::vector<std::uint32_t>());
        ProcessReader reader(code);
        Forking out;
        ProcessSink sink(reader, out, moves);
        EXPECT_TRUE(sink.counts_suffice());
        const std::vector<flow::Block> blocks = {block(0x1040, code->at(code->number(1, 0, 1), {0x1040}).section),
                                                 block(0x1050, code->at(code->number(1, 0, 1), {0x1050}).section)};
        const std::vector<std::uint64_t> times = {0, 4, 3};
        sink.take_counts({blocks, times, 0});
        ASSERT_EQ(out.blocks.size(), 2U);
        EXPECT_EQ(out.blocks[1].start, moves ? 0x10050U : 0x1050U);
        EXPECT_EQ(out.times, times);
        ASSERT_EQ(sink.uncertain().size(), 1U);
        EXPECT_EQ(sink.uncertain()[0].ranges, 7U);
        EXPECT_EQ(sink.uncertain()[0].instructions, 14U);
    }
}

}  // namespace
}  // namespace waymark::pipeline
