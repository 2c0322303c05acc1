// The fast follower and the reference follower are given the same calls, on random programs: they must give the same
// elements. Handwritten code tests the meaning of the calls.
#include "waymark/follow/follower.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <tuple>
#include <utility>

#include "support/elements.h"
#include "support/exceptions.h"
#include "support/random.h"
#include "support/sanitized.h"
#include "support/synthetic.h"
#include "waymark/follow/reference_follower.h"

namespace waymark::follow {

std::ostream& operator<<(std::ostream& out, const Place& p) {
    return out << isa::name(p.isa) << " 0x" << std::hex << p.address.value << std::dec;
}

namespace {

using flow::Context;
using synthetic::Kind;
using Indirect = Rules::Indirect;

// ---- a follower and its output

template <class Writer>
struct Output;
template <>
struct Output<flow::BatchWriter> {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    flow::BatchWriter out{table, sink};
};
template <>
struct Output<flow::CountWriter> {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    flow::CountWriter out{table, sink};
};

template <class Writer, class F>
struct Side : Output<Writer> {
    Side(const Rules& rules, const isa::CodeReader& code) : follower(rules, code, elements) {}
    Elements<Writer> elements{this->out};
    F follower;
    std::vector<synthetic::Element> finish() {
        elements.forget();
        this->out.flush();
        return this->sink.take();
    }
};
using Fast = Side<flow::BatchWriter, Follower<flow::BatchWriter>>;
using Counting = Side<flow::CountWriter, Follower<flow::CountWriter>>;
using Reference = Side<flow::BatchWriter, ReferenceFollower>;

// ---- random calls

/// Execution count of each edge, independent of how edges are numbered.
using Edges = std::map<std::tuple<std::uint64_t, std::uint32_t, std::uint32_t, Isa, flow::End, bool>, std::uint64_t>;
void add(Edges& edges, const flow::Block& b, bool taken, std::uint64_t times) {
    if (times != 0) edges[{b.start, b.bytes, b.section, b.isa, b.end, taken}] += times;
}

struct Script {
    std::uint64_t seed;
    bool return_stack;
    Indirect indirect;
};

class BothWays {
public:
    explicit BothWays(const Script& script)
        : random_(script.seed),
          program_(made(script.seed)),
          rules_{.walk = {.most_bytes = 4096}, .return_stack = script.return_stack, .indirect = script.indirect},
          reference_(rules_, program_.memory),
          fast_(std::make_unique<Follower<flow::BatchWriter>>(rules_, program_.memory, fast_out_.elements)),
          counting_(rules_, program_.memory) {}

    void run(unsigned calls) {
        for (unsigned i = 0; i < calls; ++i) {
            at_ = at_ + 1;
            call();
            const bool known = reference_.follower.known();
            ASSERT_EQ(fast_->known(), known) << "after call " << i;
            ASSERT_EQ(counting_.follower.known(), known) << "after call " << i;
            ASSERT_EQ(fast_->context(), reference_.follower.context()) << "after call " << i;
            if (known) {
                ASSERT_EQ(fast_->place(), reference_.follower.place()) << "after call " << i;
            }
        }
    }

    /// The delivered elements, by kind; they are compared with the reference meanwhile.
    std::set<Kind> finish() {
        const auto expected = reference_.finish();
        fast_out_.elements.forget();
        fast_out_.out.flush();
        const auto found = fast_out_.sink.take();
        EXPECT_EQ(synthetic::difference(found, expected, "fast", "reference"), "");

        Edges ran, counted;
        std::set<Kind> kinds;
        std::vector<synthetic::Element> events;
        for (const synthetic::Element& e : expected) {
            kinds.insert(e.kind);
            if (e.kind == Kind::range)
                add(ran, e.block, e.taken, 1);
            else
                events.push_back(e);
        }
        EXPECT_EQ(synthetic::difference(synthetic::events_of(counting_.finish()), events, "counting", "reference"), "");
        const auto counts = counting_.out.counts();
        const auto blocks = counting_.table.blocks();
        for (std::size_t edge = 0; edge < std::min(counts.size(), 2 * blocks.size()); ++edge)
            add(counted, blocks[edge / 2], edge % 2 != 0, counts[edge]);
        EXPECT_EQ(counted, ran);
        return kinds;
    }

private:
    static synthetic::Program made(std::uint64_t seed) {
        synthetic::Program program =
            synthetic::make_program({.seed = seed, .blocks = 60, .tee = seed % 2 == 0, .large_block_chance = 200});
        program.memory.one_view = seed % 3 == 0;
        const auto& b = program.blocks[seed % program.blocks.size()].block;
        program.memory.holes.emplace_back(b.start, b.start + 64);
        return program;
    }

    template <class F>
    void all(F&& f) {
        f(reference_.follower);
        f(*fast_);
        f(counting_.follower);
    }
    /// Calls whose answers must be the same on both sides.
    template <class F>
    bool asked(F&& f) {
        const bool expected = f(reference_.follower);
        EXPECT_EQ(f(*fast_), expected);
        EXPECT_EQ(f(counting_.follower), expected);
        return expected;
    }

    Place somewhere() {
        const flow::Block& b = program_.blocks[random_.below(static_cast<std::uint32_t>(program_.blocks.size()))].block;
        switch (random_.below(40)) {
            case 0: return {{b.start + 2}, b.isa};  // perhaps inside an instruction
            case 1: return {{b.start + b.bytes}, b.isa};
            case 2: return {{0x13370000}, b.isa};  // nothing is there
            case 3: return {{b.start}, Isa::jazelle};
            case 4: return {{b.start}, b.isa == Isa::a32 ? Isa::t32 : Isa::a32};
            default: return {{b.start}, b.isa};
        }
    }
    Context some_context() {
        Context c{random_.half(), false, {}, {}};
        if (random_.half()) c.context_id = random_.below(3);
        return c;
    }
    void go(const Place& to, const Context& context) {
        all([&](auto& f) { f.go(to, context, at_); });
    }

    void call() {
        const Context now = reference_.follower.context();
        const std::uint32_t cycles = random_.half() ? random_.below(9) : flow::no_cycles;
        const std::uint32_t what = random_.below(1000);
        if (what < 700) {
            // Mostly like real execution: random outcomes would not leave a loop.
            const bool e = random_.below(4) != 0;
            if (asked([&](auto& f) { return f.ready(at_); }))
                asked([&](auto& f) { return f.atom(e, at_, cycles); });
            else if (random_.below(3) != 0)
                go(somewhere(), now);
        } else if (what < 850) {
            const Place to = somewhere();
            if (asked([&](auto& f) { return f.ready(at_); })) asked([&](auto& f) { return f.branch(to, at_, cycles); });
            go(to, random_.below(8) == 0 ? some_context() : now);
        } else if (what < 890) {
            const Context context = some_context();
            all([&](auto& f) { f.set_context(context, at_); });
        } else if (what < 930) {
            asked([&](auto& f) { return f.ready(at_); });
            const flow::Exception e{&synthetic::exception_type(random_.below(16)), {}, Address{0x18}, cycles};
            all([&](auto& f) { f.exception(e, at_); });
            go(somewhere(), now);
        } else if (what < 960) {
            Address to = somewhere().address;
            if (reference_.follower.known() && random_.below(8) != 0)
                to = {(reference_.follower.place().address.value + 2 * random_.below(16)) & 0xffffffff};
            const Stop stop = random_.half() ? Stop::before : Stop::after;
            all([&](auto& f) { f.walk_to(to, stop, at_); });
        } else if (what < 970) {
            const Place to = random_.half() && reference_.follower.known() ? reference_.follower.place() : somewhere();
            const Context context = random_.half() ? now : some_context();
            all([&](auto& f) { f.confirm(to, context, at_); });
            go(to, context);
        } else if (what < 975) {
            all([&](auto& f) { f.lose(); });
        } else if (what < 978) {
            all([&](auto& f) { f.forget(); });
        } else if (what < 981) {
            all([&](auto& f) { f.clear_return_stack(); });
        } else if (what < 984) {
            all([&](auto& f) { f.forbid_pushes(); });
        } else if (what < 990) {
            const ReturnStack::Entry entry{somewhere(), random_.half()};
            all([&](auto& f) { f.push(entry); });
        } else if (what < 995) {
            const flow::Atoms atoms{random_.below(3), random_.below(3)};
            reference_.elements.unplaced(at_, atoms);
            fast_out_.elements.unplaced(at_, atoms);
            counting_.elements.unplaced(at_, atoms);
        } else {
            // Another follower continues without a visible difference.
            auto next = std::make_unique<Follower<flow::BatchWriter>>(rules_, program_.memory, fast_out_.elements);
            next->resume(fast_->snapshot());
            fast_ = std::move(next);
        }
    }

    struct FastOutput : Output<flow::BatchWriter> {
        Elements<flow::BatchWriter> elements{out};
    };

    synthetic::Random random_;
    const synthetic::Program program_;
    const Rules rules_;
    Reference reference_;
    FastOutput fast_out_;
    std::unique_ptr<Follower<flow::BatchWriter>> fast_;
    Counting counting_;
    Offset at_{};
};

TEST(Followers, AgreeOnRandomProgramsAndCalls) {
    std::set<Kind> kinds;
    const std::uint64_t seeds = sized(40, 8);
    for (std::uint64_t seed = 1; seed <= seeds; ++seed)
        for (const bool return_stack : {false, true})
            for (const Indirect indirect : {Indirect::pops, Indirect::waits}) {
                SCOPED_TRACE("seed " + std::to_string(seed) + (return_stack ? ", return stack" : "") +
                             (indirect == Indirect::waits ? ", waits" : ""));
                BothWays sides({seed, return_stack, indirect});
                sides.run(2000);
                if (HasFatalFailure()) return;
                kinds.merge(sides.finish());
                if (HasFailure()) return;
            }
    // So the calls covered all cases.
    EXPECT_EQ(kinds, (std::set<Kind>{Kind::range, Kind::context, Kind::exception, Kind::no_memory, Kind::inconsistency,
                                     Kind::atoms, Kind::reached}));
}

// ---- the meaning of the calls

//  8000  bl 8010      8010  bxne lr
//  8004  mov r0, r0   8014  blxne r3
//  8008  b 8008       8018  udf
constexpr std::uint8_t code[] = {0x02, 0x00, 0x00, 0xeb, 0x00, 0x00, 0xa0, 0xe1, 0xfe, 0xff, 0xff, 0xea, 0x00, 0x00,
                                 0xa0, 0xe1, 0x1e, 0xff, 0x2f, 0x11, 0x33, 0xff, 0x2f, 0x11, 0xf0, 0x00, 0xf0, 0xe7};
synthetic::Memory memory() {
    synthetic::Memory m;
    m.sections.push_back({0x8000, {std::begin(code), std::end(code)}});
    return m;
}
Place a32(std::uint64_t address) { return {{address}, Isa::a32}; }

/// 0x1000: add, b.eq 0x100c, add, bl 0x1018, add, eret, ret
synthetic::Memory a64_memory() {
    synthetic::Memory m;
    auto& bytes = m.sections.emplace_back(synthetic::Memory::Section{0x1000, {}}).bytes;
    for (const std::uint32_t word :
         {0x91000400U, 0x54000040U, 0x91000400U, 0x94000003U, 0x91000400U, 0xd69f03e0U, 0xd65f03c0U})
        for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> 8 * i));
    return m;
}
Place a64(std::uint64_t address) { return {{address}, Isa::a64}; }

template <class S>
class Calls : public testing::Test {
public:
    S& side(const Rules& rules) {
        side_ = std::make_unique<S>(rules, memory_);
        return *side_;
    }
    std::vector<Kind> kinds() {
        std::vector<Kind> out;
        for (const auto& e : side_->finish()) out.push_back(e.kind);
        return out;
    }

private:
    const synthetic::Memory memory_ = memory();
    std::unique_ptr<S> side_;
};
using Sides = testing::Types<Fast, Reference>;
TYPED_TEST_SUITE(Calls, Sides);

TYPED_TEST(Calls, AnOutcomeWithoutAnAddressPopsAtOnce) {
    auto& f = this->side({.return_stack = true}).follower;
    f.go(a32(0x8000), {}, {1});
    EXPECT_TRUE(f.atom(true, {2}));
    EXPECT_EQ(f.place(), a32(0x8010));
    EXPECT_TRUE(f.atom(true, {3}));
    ASSERT_TRUE(f.known());
    EXPECT_EQ(f.place(), a32(0x8004));
}

// An inner loop follows only links: there is no link where more must be done.
TEST(Links, LeadOverNothingButPlainOutcomes) {
    const synthetic::Memory m = memory();
    for (const bool return_stack : {false, true}) {
        Fast side({.return_stack = return_stack}, m);
        auto& f = side.follower;
        for (unsigned times = 0; times < 2; ++times) {
            f.go(a32(0x8000), {}, {1});
            EXPECT_TRUE(f.atom(true, {2}));
            EXPECT_TRUE(f.atom(false, {3}));
            EXPECT_TRUE(f.atom(false, {4}));
        }
        const BlockCache& cache = f.cache();
        const auto link = [&](std::uint64_t from, bool e) {
            return cache.links()[cache.peek(a32(from)) + (e ? 1 : 0)];
        };
        EXPECT_EQ(link(0x8010, false), cache.peek(a32(0x8014)));
        EXPECT_EQ(link(0x8010, true), indirect);
        // A taken call pushes an entry; an indirect call does too, after it pops one.
        EXPECT_EQ(link(0x8000, true), return_stack ? call : cache.peek(a32(0x8010)));
        EXPECT_EQ(link(0x8014, true), return_stack ? indirect_call : indirect);
        if (return_stack) {
            EXPECT_EQ(cache.call_target(cache.peek(a32(0x8000))), cache.peek(a32(0x8010)));
        }
        // A loop that reads beyond the last outcome stays in the table.
        for (const Position hub : {nowhere, indirect, call, indirect_call})
            for (const int e : {0, 1}) EXPECT_EQ(cache.links()[hub + e], hub);
    }
}

// Links do not lead past a branch that is always taken, even if the call there has returned to the instruction after
// it.
TEST(Links, LeadNowherePastABranchWithoutACondition) {
    const synthetic::Memory m = a64_memory();
    for (const bool return_stack : {false, true}) {
        Fast side({.return_stack = return_stack, .indirect = Indirect::waits}, m);
        auto& f = side.follower;
        for (unsigned times = 0; times < 2; ++times) {
            f.go(a64(0x1010), {}, {1});
            EXPECT_TRUE(f.atom(true, {1}));
            f.go(a64(0x1008), {}, {2});
            EXPECT_TRUE(f.atom(true, {2}));
            EXPECT_TRUE(f.atom(true, {3}));
        }
        const BlockCache& cache = f.cache();
        const Position call_at = cache.peek(a64(0x1008)), back = cache.peek(a64(0x1010));
        if (return_stack) {
            EXPECT_EQ(f.pop_return(), back);
            EXPECT_EQ(cache.return_target(call_at), back);
        }
        EXPECT_EQ(cache.links()[call_at], nowhere);
        EXPECT_EQ(cache.links()[cache.peek(a64(0x1018))], nowhere);
    }
}

// Impossible flow is not delivered: it is reported, and the place is unknown.
TYPED_TEST(Calls, ABranchWithoutAConditionIsTaken) {
    const synthetic::Memory m = a64_memory();
    TypeParam side({.return_stack = true, .indirect = Indirect::waits}, m);
    auto& f = side.follower;
    std::uint64_t at = 0;
    for (unsigned times = 0; times < 2; ++times)  // the second time from the cache
        for (const auto& [start, branch] : {std::pair{0x1008U, 0x100cU}, {0x1010U, 0x1014U}, {0x1018U, 0x1018U}}) {
            f.go(a64(start), {}, {++at});
            EXPECT_FALSE(f.atom(false, {++at}));
            EXPECT_FALSE(f.known());
            EXPECT_FALSE(f.ready({at}));
        }
    f.go(a64(0x1000), {}, {++at});
    EXPECT_TRUE(f.atom(false, {++at}));  // b.eq
    std::vector<std::uint64_t> found;
    unsigned ranges = 0;
    for (const auto& e : side.finish()) {
        ranges += e.kind == Kind::range ? 1 : 0;
        if (e.kind == Kind::inconsistency) found.push_back(e.offset);
    }
    EXPECT_EQ(found, (std::vector<std::uint64_t>{2, 4, 6, 8, 10, 12}));
    EXPECT_EQ(ranges, 1U);
}

TYPED_TEST(Calls, AnAddressThatNothingLeadsToIsReported) {
    const synthetic::Memory m = a64_memory();
    TypeParam side({.return_stack = true, .indirect = Indirect::waits}, m);
    auto& f = side.follower;
    f.expect(a64(0x1000), {1});  // nothing is known yet
    f.go(a64(0x1008), {}, {1});
    f.expect(a64(0x1008), {2});
    EXPECT_TRUE(f.atom(true, {3}));  // bl 0x1018
    f.expect(a64(0x1018), {4});
    EXPECT_TRUE(f.known());
    EXPECT_TRUE(f.atom(true, {5}));  // ret
    EXPECT_EQ(f.branch_that_waits(), a64(0x1018));
    f.expect(a64(0x1000), {6});
    f.go(a64(0x1000), {}, {6});
    EXPECT_EQ(f.branch_that_waits(), std::nullopt);
    f.expect(a64(0x1010), {7});
    EXPECT_FALSE(f.known());
    EXPECT_EQ(side.finish().back(), synthetic::event_element(7, flow::Inconsistency{flow::Conflict::address_disagrees,
                                                                                    Address{0x1000}, Address{0x1010}}));
}

TYPED_TEST(Calls, AReturnWaitsForAnAddress) {
    auto& f = this->side({.return_stack = true, .indirect = Indirect::waits}).follower;
    f.go(a32(0x8000), {}, {1});
    EXPECT_TRUE(f.atom(true, {2}));
    EXPECT_TRUE(f.atom(true, {3}));
    EXPECT_FALSE(f.known());
    // The address is traced: the entry stays for the next return.
    f.go(a32(0x8010), {}, {4});
    EXPECT_TRUE(f.atom(true, {5}));
    EXPECT_FALSE(f.known());
    // No address comes before the next outcome.
    ASSERT_TRUE(f.ready({6}));
    EXPECT_EQ(f.place(), a32(0x8004));
    EXPECT_TRUE(f.atom(true, {6}));
    EXPECT_EQ(this->kinds(), (std::vector{Kind::context, Kind::range, Kind::range, Kind::range, Kind::range}));
}

TYPED_TEST(Calls, AnIndirectCallIsPushedBeforeItIsCompared) {
    auto& f = this->side({.return_stack = true, .indirect = Indirect::waits}).follower;
    f.go(a32(0x8014), {}, {1});
    EXPECT_TRUE(f.atom(true, {2}));
    ASSERT_TRUE(f.ready({3}));
    EXPECT_EQ(f.place(), a32(0x8018));
}

TYPED_TEST(Calls, NothingIsPushedUntilThePlaceIsGiven) {
    auto& f = this->side({.return_stack = true, .indirect = Indirect::waits}).follower;
    f.go(a32(0x8000), {}, {1});
    f.forbid_pushes();
    EXPECT_TRUE(f.atom(true, {2}));
    EXPECT_TRUE(f.atom(true, {3}));
    EXPECT_FALSE(f.ready({4}));
    EXPECT_EQ(this->kinds(), (std::vector{Kind::context, Kind::range, Kind::range, Kind::inconsistency}));
}

TYPED_TEST(Calls, WithoutAReturnStackAReturnNeedsAnAddress) {
    auto& side = this->side({});
    side.follower.go(a32(0x8010), {}, {1});
    EXPECT_TRUE(side.follower.atom(true, {2}));
    EXPECT_FALSE(side.follower.known());
    const auto elements = side.finish();
    ASSERT_EQ(elements.size(), 3U);
    EXPECT_EQ(elements.back(),
              synthetic::event_element(2, flow::Inconsistency{flow::Conflict::no_return_address, Address{0x8010}, {}}));
}

TYPED_TEST(Calls, ABranchThatTheCodeContradictsIsReported) {
    auto& side = this->side({});
    side.follower.go(a32(0x8000), {}, {1});
    EXPECT_TRUE(side.follower.branch(a32(0x8014), {2}));
    EXPECT_EQ(side.finish().back(), synthetic::event_element(2, flow::Inconsistency{flow::Conflict::branch_disagrees,
                                                                                    Address{0x8010}, Address{0x8014}}));
}

TYPED_TEST(Calls, AnExceptionSaysWhereExecutionWouldHaveGoneOn) {
    auto& side = this->side({});
    side.follower.exception({&synthetic::exception_type(5), {}, Address{0x18}}, {1});
    side.follower.go(a32(0x8000), {}, {2});
    side.follower.walk_to({0x8000}, Stop::before, {3});
    side.follower.exception({&synthetic::exception_type(6), {}, {}}, {3});
    const auto elements = side.finish();
    ASSERT_EQ(elements.size(), 3U);
    EXPECT_EQ(elements[0],
              synthetic::event_element(1, flow::Exception{&synthetic::exception_type(5), {}, Address{0x18}}));
    EXPECT_EQ(elements[2],
              synthetic::event_element(3, flow::Exception{&synthetic::exception_type(6), Address{0x8000}, {}}));
}

TYPED_TEST(Calls, ASyncThatDisagreesIsReported) {
    auto& side = this->side({});
    Context context{true, false, 7, {}};
    side.follower.confirm(a32(0x8004), context, {1});  // nothing is known yet
    side.follower.go(a32(0x8004), context, {1});
    side.follower.confirm(a32(0x8004), context, {2});
    side.follower.confirm(a32(0x8008), context, {3});
    context.context_id = 8;
    side.follower.confirm(a32(0x8004), context, {4});
    std::vector<std::uint64_t> offsets;
    for (const auto& e : side.finish())
        if (e.kind == Kind::inconsistency) offsets.push_back(e.offset);
    EXPECT_EQ(offsets, (std::vector<std::uint64_t>{3, 4}));
}

TYPED_TEST(Calls, OutcomesInARowThatCannotBePlacedAreOneEvent) {
    auto& side = this->side({});
    side.elements.unplaced({1}, {2, 1});
    side.elements.unplaced({4}, {3, 5});
    EXPECT_EQ(side.elements.unplaced_first(), Offset{1});
    side.follower.go(a32(0x8000), {}, {7});
    EXPECT_EQ(side.elements.unplaced_first(), std::nullopt);
    side.elements.unplaced({9}, {0, 1});
    const auto elements = side.finish();
    ASSERT_GE(elements.size(), 2U);
    EXPECT_EQ(elements.front(), synthetic::event_element(1, flow::Atoms{5, 6}));
    EXPECT_EQ(elements.back(), synthetic::event_element(9, flow::Atoms{0, 1}));
}

//  ffff8000fffffff0  stp x29, x30, [sp, #-16]!   ffff800100000008  isb
//  ffff8000fffffff4  bl ffff800100000008         ffff80010000000c  b.ne ffff800100000008
//  ffff8000fffffff8  cbz x0, ffff800100000000    ffff800100000010  tbnz w3, #5, ffff8000fffffff0
//  ffff8000fffffffc  blr x1                      ffff800100000014  retaa
//  ffff800100000000  ldp x29, x30, [sp], #16
//  ffff800100000004  ret
TYPED_TEST(Calls, FollowA64OverABoundaryOf4GB) {
    synthetic::Memory m;
    auto& bytes = m.sections.emplace_back(synthetic::Memory::Section{0xffff8000fffffff0, {}}).bytes;
    for (const std::uint32_t word : {0xa9bf7bfdU, 0x94000005U, 0xb4000040U, 0xd63f0020U, 0xa8c17bfdU, 0xd65f03c0U,
                                     0xd5033fdfU, 0x54ffffe1U, 0x372fff03U, 0xd65f0bffU})
        for (unsigned i = 0; i < 4; ++i) bytes.push_back(static_cast<std::uint8_t>(word >> 8 * i));
    TypeParam side({.return_stack = true, .indirect = Indirect::waits}, m);
    auto& f = side.follower;
    const auto a64 = [](std::uint64_t address) { return Place{{address}, Isa::a64}; };
    std::uint64_t at = 0;
    for (unsigned times = 0; times < 3; ++times) {  // the second time from the cache
        f.go(a64(0xffff8000fffffff0), {}, {at});
        const std::pair<bool, std::uint64_t> way[] = {
            {true, 0xffff800100000008},   // bl
            {true, 0xffff80010000000c},   // isb
            {true, 0xffff800100000008},   // b.ne, taken
            {true, 0xffff80010000000c},   // isb
            {false, 0xffff800100000010},  // b.ne
            {false, 0xffff800100000014},  // tbnz
            {true, 0xffff8000fffffff8},   // retaa
            {true, 0xffff800100000000},   // cbz, taken
        };
        for (const auto& [e, to] : way) {
            ASSERT_TRUE(f.atom(e, {at}));
            ASSERT_TRUE(f.ready({++at}));
            ASSERT_EQ(f.place(), a64(to));
        }
        f.walk_to({0xffff800100000004}, Stop::before, {at});
        ASSERT_EQ(f.place(), a64(0xffff800100000004));
    }
    std::uint64_t ranges = 0;
    for (const auto& e : side.finish()) {
        EXPECT_TRUE(e.kind == Kind::range || e.kind == Kind::context) << to_text(e);
        ranges += e.kind == Kind::range ? 1 : 0;
    }
    EXPECT_EQ(ranges, 3U * 9);
}

// Waypoint instructions before the source were not taken. A contradiction of the image makes flow unknown.
TYPED_TEST(Calls, ASourceAddressTakesTheWaypointThere) {
    const synthetic::Memory m = a64_memory();
    TypeParam side({.return_stack = true, .indirect = Indirect::waits}, m);
    auto& f = side.follower;
    for (unsigned times = 0; times < 2; ++times) {
        f.go(a64(0x1000), {}, {1});
        EXPECT_TRUE(f.source({0x100c}, {2}));
        EXPECT_EQ(f.place(), a64(0x1018));
        EXPECT_TRUE(f.atom(true, {3}));  // ret, to the address that the source pushed
        EXPECT_TRUE(f.ready({4}));
        EXPECT_EQ(f.place(), a64(0x1010));
    }
    f.go(a64(0x1000), {}, {5});
    EXPECT_FALSE(f.source({0x1008}, {6}));
    EXPECT_FALSE(f.known());
    const auto elements = side.finish();
    EXPECT_EQ(elements.back(), synthetic::event_element(6, flow::Inconsistency{flow::Conflict::update_disagrees,
                                                                               Address{0x100c}, Address{0x1008}}));
}

// A block may be its waypoint instruction alone.
TYPED_TEST(Calls, ASourceAddressPassesAWaypointWhereItBegins) {
    const synthetic::Memory m = a64_memory();
    TypeParam side({}, m);
    auto& f = side.follower;
    f.go(a64(0x1004), {}, {1});
    EXPECT_TRUE(f.source({0x100c}, {2}));  // the source is not the b.eq there
    EXPECT_EQ(f.place(), a64(0x1018));
    std::vector<bool> taken;
    for (const auto& e : side.finish())
        if (e.kind == Kind::range) taken.push_back(e.taken);
    EXPECT_EQ(taken, (std::vector<bool>{false, true}));
}

// The same low halves of addresses, other code: b 1000; nop, b 100001000; nop, nop, b 200001000.
TYPED_TEST(Calls, CodeAboveAndBelow4GBIsNotMixed) {
    synthetic::Memory m;
    for (std::uint64_t i = 0; i < 3; ++i) {
        auto& bytes = m.sections.emplace_back(synthetic::Memory::Section{(i << 32) + 0x1000, {}}).bytes;
        for (std::uint64_t k = 0; k < i; ++k) bytes.insert(bytes.end(), {0x1f, 0x20, 0x03, 0xd5});
        const std::uint32_t branch = 0x14000000U | ((0U - static_cast<std::uint32_t>(i)) & 0x3ffffffU);
        for (unsigned k = 0; k < 4; ++k) bytes.push_back(static_cast<std::uint8_t>(branch >> 8 * k));
    }
    TypeParam side({}, m);
    auto& f = side.follower;
    for (std::uint64_t i = 0; i < 6; ++i) {
        const Place start = a64((i % 3 << 32) + 0x1000);
        f.go(start, {}, {i});
        EXPECT_TRUE(f.atom(true, {i}));
        EXPECT_EQ(f.place(), start);
    }
    std::vector<std::uint32_t> instructions;
    for (const auto& e : side.finish())
        if (e.kind == Kind::range) instructions.push_back(e.block.instructions);
    EXPECT_EQ(instructions, (std::vector<std::uint32_t>{1, 2, 3, 1, 2, 3}));
}

TYPED_TEST(Calls, WhoLeavesKeepsTheReturnStack) {
    const synthetic::Memory m = a64_memory();
    TypeParam side({.return_stack = true, .indirect = Indirect::waits}, m);
    auto& f = side.follower;
    f.go(a64(0x1008), {}, {1});
    EXPECT_TRUE(f.atom(true, {2}));  // bl
    f.leave();
    EXPECT_FALSE(f.ready({3}));
    f.go(a64(0x1018), {}, {4});
    EXPECT_TRUE(f.atom(true, {5}));
    EXPECT_TRUE(f.ready({6}));
    EXPECT_EQ(f.place(), a64(0x1010));
}

// Once the trace has given the address for which a return waits, the address is not taken from the return stack.
TYPED_TEST(Calls, WhoLeavesWaitsForNoReturn) {
    const synthetic::Memory m = a64_memory();
    TypeParam side({.return_stack = true, .indirect = Indirect::waits}, m);
    auto& f = side.follower;
    f.go(a64(0x1008), {}, {1});
    EXPECT_TRUE(f.atom(true, {2}));  // bl
    EXPECT_TRUE(f.atom(true, {3}));  // ret
    f.leave();
    EXPECT_FALSE(f.ready({4}));
    EXPECT_FALSE(f.known());
}

// A reader of packets follows links from a position, but must not if the place is unknown.
TEST(Links, LeadNowhereFromAnUnknownPlace) {
    const synthetic::Memory m = a64_memory();
    using F = Follower<flow::BatchWriter>;
    for (void (F::*forgets)() : {&F::lose, &F::leave, &F::forget}) {
        Fast side({}, m);
        auto& f = side.follower;
        f.go(a64(0x1000), {}, {1});
        EXPECT_TRUE(f.atom(false, {2}));
        ASSERT_GE(f.position(), 0);
        (f.*forgets)();
        EXPECT_LT(f.position(), 0);
    }
}

TYPED_TEST(Calls, ExceptionReturnsAreReportedWhereNoPacketDoes) {
    const synthetic::Memory m = a64_memory();
    for (const bool reported : {false, true}) {
        TypeParam side({.indirect = Indirect::waits, .report_exception_returns = reported}, m);
        for (unsigned times = 0; times < 2; ++times) {  // the second time from the cache
            side.follower.go(a64(0x1010), {}, {1});
            EXPECT_TRUE(side.follower.atom(true, {2}));
        }
        unsigned returns = 0;
        for (const auto& e : side.finish()) returns += e.kind == Kind::exception_return ? 1 : 0;
        EXPECT_EQ(returns, reported ? 2U : 0U);
    }
}

// Blocks, links, and memory for their counts that one follower has learned are shared with others.
TEST(Links, AreSharedWithOthersOfTheSameStream) {
    constexpr std::uint64_t count = 1200;
    synthetic::Memory m;
    auto& bytes = m.sections.emplace_back(synthetic::Memory::Section{0x1000, {}}).bytes;
    for (std::uint64_t i = 0; i < count; ++i) bytes.insert(bytes.end(), {0x01, 0x00, 0x00, 0x14});  // b to the next
    const Rules rules;
    const auto logs = std::make_shared<BlockLogs>();
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::CountWriter first_out(table, sink), second_out(table, sink);
    Elements<flow::CountWriter> first_elements(first_out), second_elements(second_out);
    Follower<flow::CountWriter> first(rules, m, first_elements, logs), second(rules, m, second_elements, logs);
    first.go(a64(0x1000), {}, {1});
    for (std::uint64_t i = 0; i < count; ++i) ASSERT_TRUE(first.atom(true, {1}));
    // Each time a memory space is entered, learned blocks are exchanged.
    first.forget();
    first.go(a64(0x1000), {}, {2});
    second.go(a64(0x1000), {}, {3});
    const BlockCache& cache = second.cache();
    for (std::uint64_t i = 0; i + 1 < count; ++i) {
        const Position at = cache.peek(a64(0x1000 + 4 * i));
        ASSERT_GE(at, 0);
        EXPECT_EQ(cache.links()[at + 1], cache.peek(a64(0x1004 + 4 * i)));
    }
    EXPECT_GE(second_out.counts().size(), 2 * count);
}

// So an inner loop does not pass the return.
TEST(Links, LeadOverNoExceptionReturnThatIsReported) {
    const synthetic::Memory m = a64_memory();
    for (const bool reported : {false, true}) {
        Fast side({.indirect = Indirect::waits, .report_exception_returns = reported}, m);
        auto& f = side.follower;
        for (const std::uint64_t start : {0x1010U, 0x1018U}) {  // add, eret; ret
            f.go(a64(start), {}, {1});
            EXPECT_TRUE(f.atom(true, {2}));
        }
        const BlockCache& cache = f.cache();
        EXPECT_EQ(cache.links()[cache.peek(a64(0x1010)) + 1], reported ? nowhere : indirect);
        EXPECT_EQ(cache.links()[cache.peek(a64(0x1018)) + 1], indirect);
    }
}

/// Each process has another program at the same address.
class Processes final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address address, const isa::Space& space) const override {
        // b 8000; nop, b 8000
        static constexpr std::uint8_t first[] = {0xfe, 0xff, 0xff, 0xea};
        static constexpr std::uint8_t second[] = {0x00, 0x00, 0xa0, 0xe1, 0xfd, 0xff, 0xff, 0xea};
        const bool is_first = space.context_id == 1U;
        const Bytes program = is_first ? Bytes(first) : Bytes(second);
        if (address.value < 0x8000 || address.value - 0x8000 >= program.size()) return {};
        return {program.subspan(address.value - 0x8000), is_first ? 1U : 2U};
    }
};

TYPED_TEST(Calls, ProcessesAreNotMixed) {
    const Processes processes;
    TypeParam side({}, processes);
    auto& f = side.follower;
    std::vector<std::uint32_t> sections, instructions;
    for (std::uint64_t i = 0; i < 6; ++i) {
        const Context context{true, false, static_cast<std::uint32_t>(1 + i % 2), {}};
        // The process changes by a branch, and at a place.
        if (i < 3)
            f.go(a32(0x8000), context, {i});
        else
            f.set_context(context, {i});
        EXPECT_TRUE(f.atom(true, {i}));
        EXPECT_TRUE(f.atom(true, {i}));
    }
    for (const auto& e : side.finish())
        if (e.kind == Kind::range) {
            sections.push_back(e.block.section);
            instructions.push_back(e.block.instructions);
        }
    EXPECT_EQ(sections, (std::vector<std::uint32_t>{1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2}));
    EXPECT_EQ(instructions, sections);
}

}  // namespace
}  // namespace waymark::follow
