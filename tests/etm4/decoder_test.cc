// Decoders of the instruction stream: invented programs and executions, whose truth is known; every kind of element by
// hand; streams that are joined late, cut and damaged.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "etm4/decoding.h"
#include "etm4/simulation.h"
#include "etm4/support.h"
#include "support/sanitized.h"

namespace waymark::etm4 {
namespace {

using synthetic::Element;
using synthetic::Kind;
using test::Simulation;

/// The first difference between two lists of lines; empty if they are equal.
std::string difference(const std::vector<std::string>& found, const std::vector<std::string>& expected) {
    const auto [f, x] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
    if (f == found.end() && x == expected.end()) return {};
    const auto at = static_cast<std::size_t>(f - found.begin());
    std::string out = "line " + std::to_string(at) + " of " + std::to_string(found.size()) + " and " +
                      std::to_string(expected.size()) + "\n";
    const auto show = [&](const char* who, const std::vector<std::string>& lines, std::size_t from, std::size_t to) {
        for (std::size_t i = from; i < std::min(to, lines.size()); ++i) out += who + lines[i] + "\n";
    };
    show("     both: ", found, at - std::min<std::size_t>(at, 5), at);
    show("    found: ", found, at, at + 5);
    show(" expected: ", expected, at, at + 5);
    return out;
}

struct DecoderClass {
    std::string name;
    Config config;
    Simulation::Options options;
};

/// Settings that change how a unit's trace is followed.
std::vector<DecoderClass> decoder_classes() {
    std::vector<DecoderClass> out;
    for (const bool ete : {false, true})
        for (const std::uint32_t speculation : {0U, 8U, 60U})
            for (const bool return_stack : {false, true})
                for (const bool broadcast : {false, true}) {
                    DecoderClass c;
                    c.config = ete ? test::ete(3) : test::etmv4();
                    c.config.q_elements = false;
                    c.config.max_speculation = speculation;
                    c.config.return_stack = return_stack;
                    c.config.branch_broadcast = broadcast;
                    c.config.wfx_p0 = broadcast;
                    c.options.source_addresses = ete;
                    c.name = std::string(ete ? "ete" : "etmv4") + "_speculation_" + std::to_string(speculation) +
                             (return_stack ? "_return_stack" : "") + (broadcast ? "_broadcast" : "");
                    out.push_back(c);
                }
    DecoderClass commit_mode_1 = out[4];
    commit_mode_1.name = "etmv4_commit_mode_1";
    commit_mode_1.config.commit_mode_1 = true;
    out.push_back(commit_mode_1);
    return out;
}

class Etm4Class : public testing::TestWithParam<DecoderClass> {};

TEST_P(Etm4Class, GivesWhatRan) {
    const DecoderClass& c = GetParam();
    std::uint64_t ranges = 0, cancelled = 0;
    const std::uint64_t programs = test::programs(sized(40U, 4U));
    for (std::uint64_t seed = 1; seed <= programs; ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Simulation simulation(c.config, seed, c.options);
        simulation.run(400);
        const std::vector<Element> elements =
            test::decode<ReferenceDecoder>(simulation.bytes, c.config, simulation.memory);
        ASSERT_EQ(difference(test::lines_of(elements), simulation.truth), "");
        ASSERT_NO_FATAL_FAILURE(
            test::expect_agree(seed, programs, elements, simulation.bytes, c.config, simulation.memory));
        ranges += static_cast<std::uint64_t>(
            std::count_if(elements.begin(), elements.end(), [](const Element& e) { return e.kind == Kind::range; }));
        cancelled += simulation.cancelled;
    }
    EXPECT_GT(ranges, 1000U);
    EXPECT_EQ(cancelled > 0, c.config.max_speculation >= 8);
    std::printf("%s: %llu ranges, %llu cancelled\n", c.name.c_str(), static_cast<unsigned long long>(ranges),
                static_cast<unsigned long long>(cancelled));
}

INSTANTIATE_TEST_SUITE_P(Everything, Etm4Class, testing::ValuesIn(decoder_classes()),
                         [](const auto& which) { return which.param.name; });

/// Where A-sync packets begin.
std::vector<std::size_t> syncs(const std::vector<std::uint8_t>& bytes) {
    std::vector<std::size_t> out;
    const std::vector<std::uint8_t> async = test::with_async({});
    for (auto at = bytes.begin(); (at = std::search(at, bytes.end(), async.begin(), async.end())) != bytes.end(); ++at)
        out.push_back(static_cast<std::size_t>(at - bytes.begin()));
    return out;
}

// Beginning at any later A-sync, a decoder gives the end of the run: with speculation, the Trace Info states how many
// of the first commits concern elements from before.
TEST(Etm4Decoder, JoinsAtEverySynchronisation) {
    for (const DecoderClass& c : decoder_classes())
        for (std::uint64_t seed = 1; seed <= sized(6U, 2U); ++seed) {
            SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
            Simulation simulation(c.config, seed, c.options);
            simulation.run(sized(400U, 100U));  // the test takes the square of the steps
            for (const std::size_t at : syncs(simulation.bytes)) {
                const Bytes tail = Bytes(simulation.bytes).subspan(at);
                const std::vector<Element> elements = test::decode<ReferenceDecoder>(tail, c.config, simulation.memory);
                std::vector<std::string> lines = test::lines_of(elements);
                std::erase(lines, "trace on 0");
                // Counts that commit elements from before the place are among these.
                if (c.config.max_speculation != 0)
                    lines.erase(lines.begin(), std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
                                    return !line.starts_with("cycles ");
                                }));
                ASSERT_LE(lines.size(), simulation.truth.size());
                std::vector<std::string> expected(simulation.truth.end() - static_cast<std::ptrdiff_t>(lines.size()),
                                                  simulation.truth.end());
                // The Overflow packet may be before the place.
                if (!lines.empty() && lines.front() == "trace on 1" && expected.front() == "trace on 2")
                    expected.front() = lines.front();
                ASSERT_EQ(difference(lines, expected), "") << "joined at " << at;
                ASSERT_NO_FATAL_FAILURE(test::expect_all_agree(elements, tail, c.config, simulation.memory));
            }
        }
}

/// Gaps are in order and do not overlap.
void expect_ordered_gaps(const std::vector<Element>& elements, std::size_t size) {
    std::uint64_t end = 0;
    for (const Element& e : elements)
        if (e.kind == Kind::gap) {
            ASSERT_GE(e.a, end);
            ASSERT_LE(e.a, e.b);
            end = e.b;
        }
    ASSERT_LE(end, size);
}

TEST(Etm4Decoder, DamagedStreamsEndAndAgree) {
    wire::Random random(7);
    for (const DecoderClass& c : decoder_classes())
        for (std::uint64_t seed = 1; seed <= sized(10U, 2U); ++seed) {
            SCOPED_TRACE(c.name + ", seed " + std::to_string(seed));
            Simulation simulation(c.config, seed, c.options);
            simulation.run(300);
            std::vector<std::uint8_t> bytes = simulation.bytes;
            const std::vector<std::size_t> good = syncs(bytes);
            for (auto times = 1 + random() % 5; times != 0; --times) {
                const auto at = bytes.begin() + static_cast<std::ptrdiff_t>(random() % (bytes.size() / 2));
                switch (random() % 4) {
                    case 0: *at = static_cast<std::uint8_t>(*at ^ 1U << random() % 8); break;
                    case 1: *at = static_cast<std::uint8_t>(random()); break;
                    case 2: bytes.erase(at); break;
                    default: bytes.insert(at, static_cast<std::uint8_t>(random())); break;
                }
            }
            const std::vector<Element> elements = test::decode<ReferenceDecoder>(bytes, c.config, simulation.memory);
            ASSERT_NO_FATAL_FAILURE(expect_ordered_gaps(elements, bytes.size()));
            ASSERT_NO_FATAL_FAILURE(test::expect_all_agree(elements, bytes, c.config, simulation.memory));
        }
}

// ---- elements by hand, each with the section that says so

/// A few A64 instructions, and streams that begin at 0x1000.
class Etm4Elements : public testing::Test {
protected:
    Etm4Elements() {
        const std::uint32_t words[] = {
            0x91000400,  // 1000 add
            0x54000040,  // 1004 b.eq 100c
            0x91000400,  // 1008 add
            0x94000005,  // 100c bl 1020
            0xd65f03c0,  // 1010 ret
            0xd4000001,  // 1014 svc
            0x91000400,  // 1018 add
            0x14000000,  // 101c b .
            0xd5033fdf,  // 1020 isb
            0xd5233060,  // 1024 tstart x0
            0x91000400,  // 1028 add
            0xd61f0020,  // 102c br x1
        };
        synthetic::Memory::Section section{0x1000, {}};
        for (const std::uint32_t word : words)
            for (unsigned n = 0; n < 4; ++n) section.bytes.push_back(static_cast<std::uint8_t>(word >> 8 * n));
        memory_.sections.push_back(section);
    }
    void begin(const Config& config) {
        config_ = config;
        stream_.clear();
        add(ASync{});
        add(TraceInfo{});
        add(TraceOn{});
        AddressWithContext p;
        p.sf = config.profile != CoreProfile::m;
        p.ns = true;
        p.el = 1;
        p.address = {0x1000, 8, false};
        add(p);
    }
    template <class P>
    void add(const P& packet) {
        encode(stream_, packet, config_);
    }
    void atoms(std::initializer_list<bool> es) {
        for (const bool e : es) add(Atom{Atoms{1, e ? 1U : 0U}});
    }
    void address(std::uint64_t value) { add(LongAddress{{value, 8, false}}); }
    void exception(unsigned type, bool at_target = false) {
        Exception p;
        p.type_4_0 = type & 0x1fU;
        p.e1 = at_target;
        p.e0 = !at_target;
        add(p);
    }
    /// The result of all decoders, without the two elements of begin().
    std::vector<std::string> lines() {
        const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
        test::expect_all_agree(elements, stream_, config_, memory_);
        std::vector<std::string> out;
        for (const Element& e : elements) {
            auto known = test::lines_of({e});
            if (known.empty())
                known.push_back(std::string(name(e.kind)) + " " + std::to_string(e.a) + " " + std::to_string(e.b));
            if (known.front().starts_with("unexpected")) known.front() = to_text(e).substr(9);
            out.push_back(known.front());
        }
        EXPECT_EQ(out.at(0), "trace on 1");
        EXPECT_TRUE(out.at(1).starts_with("context"));
        out.erase(out.begin(), out.begin() + 2);
        return out;
    }
    using Lines = std::vector<std::string>;
    static std::string range(std::uint64_t start, std::uint64_t end, const char* outcome) {
        return test::range_line(start, end, (end - start) / 4, outcome);
    }
    /// An address to which nothing leads: these streams jump about.
    static std::string elsewhere(std::uint64_t from, std::uint64_t to) {
        const auto hex = [](std::uint64_t value) {
            std::ostringstream out;
            out << " 0x" << std::hex << value;
            return out.str();
        };
        return "inconsistency 0x9" + hex(from) + hex(to) + " 0x0";
    }
    static std::string mark(flow::Mark::Kind kind, std::uint64_t value = 0) {
        return "mark " + std::to_string(static_cast<unsigned>(kind)) + " " + std::to_string(value);
    }
    Config config_;
    std::vector<std::uint8_t> stream_;
    synthetic::Memory memory_;
};

// Section 10.
TEST_F(Etm4Elements, Q) {
    const auto q = [&](std::uint64_t to, std::uint32_t count) {
        begin(test::ete());
        add(Q{.address = {to, 4, false}, .count = count, .type = 0xa});
        atoms({true});
        Lines out = lines();
        EXPECT_FALSE(out.empty());
        if (!out.empty()) out.pop_back();
        return out;
    };
    EXPECT_EQ(q(0x100c, 2), Lines{range(0x1000, 0x1008, "E")});
    EXPECT_EQ(q(0x1008, 2), Lines{range(0x1000, 0x1008, "N")});
    EXPECT_EQ(q(0x1004, 1), Lines{range(0x1000, 0x1004, "cut")});
    EXPECT_EQ(q(0x1018, 5), Lines{"untraced 0x1000 0x1018 0x5 0x1"});
    EXPECT_EQ(q(0x1020, 3), Lines{"untraced 0x1000 0x1020 0x3 0x1"});
    // Without a count, and the address as a packet of its own.
    begin(test::ete());
    add(Q{.address = {}, .count = 0, .type = 0xf});
    address(0x1020);
    atoms({true});
    EXPECT_EQ(lines(), (Lines{"untraced 0x1000 0x1020 0x0 0x1", range(0x1020, 0x1024, "E")}));
    // After a barrier; after an indirect branch whose target no packet named.
    begin(test::ete());
    address(0x1020);
    add(Q{.address = {0x102c, 4, false}, .count = 3, .type = 0xa});
    atoms({true});
    add(Q{.address = {0x1000, 4, false}, .count = 7, .type = 0xa});
    EXPECT_EQ(lines(),
              (Lines{elsewhere(0x1000, 0x1020), range(0x1020, 0x1024, "E"), range(0x1024, 0x1028, "E"),
                     range(0x1028, 0x102c, "cut"), range(0x102c, 0x1030, "E"), "untraced 0x0 0x1000 0x7 0x0"}));
}

// Section 10: calls that a Q element covers are not pushed on the return stack.
TEST_F(Etm4Elements, AQPushesNothing) {
    Config config = test::ete();
    config.return_stack = true;
    begin(config);
    address(0x1008);
    add(Q{.address = {0x1020, 4, false}, .count = 2, .type = 0xa});
    address(0x1010);
    atoms({true, true});
    EXPECT_EQ(lines(),
              (Lines{elsewhere(0x1000, 0x1008), range(0x1008, 0x1010, "E"), elsewhere(0x1020, 0x1010),
                     range(0x1010, 0x1014, "E"), "inconsistency 0x3 0x1010 0x0 0x0", "atoms 0x1 0x0 0x0 0x0"}));
}

// If the return stack gives the target of a return, a Q element after it begins at this target; the entry is removed.
TEST_F(Etm4Elements, AQBehindAReturn) {
    Config config = test::ete();
    config.return_stack = true;
    begin(config);
    address(0x1008);
    atoms({true});
    address(0x1010);
    atoms({true});
    add(Q{.address = {0x1018, 4, false}, .count = 7, .type = 0xa});
    address(0x1010);
    atoms({true, true});
    EXPECT_EQ(lines(),
              (Lines{elsewhere(0x1000, 0x1008), range(0x1008, 0x1010, "E"), elsewhere(0x1020, 0x1010),
                     range(0x1010, 0x1014, "E"), "untraced 0x1010 0x1018 0x7 0x1", elsewhere(0x1018, 0x1010),
                     range(0x1010, 0x1014, "E"), "inconsistency 0x3 0x1010 0x0 0x0", "atoms 0x1 0x0 0x0 0x0"}));
}

// TRCIDR0.QSUPP states that the unit can send Q elements; only TRCCONFIGR.QE lets it omit addresses before one.
TEST_F(Etm4Elements, OnlyEnabledQElementsExcuseAMissingAddress) {
    for (const bool enabled : {true, false}) {
        RegisterValues registers = to_registers(test::ete());
        Trcconfigr configr = from_value<Trcconfigr>(*registers.configr);
        ASSERT_NE(from_value<Trcidr0>(*registers.idr0).qsupp, 0);
        configr.qe = enabled ? 3 : 0;
        registers.configr = to_value(configr);
        begin(read_config(registers, CoreProfile::a).config);
        address(0x1010);
        atoms({true, true});
        Lines expected{elsewhere(0x1000, 0x1010), range(0x1010, 0x1014, "E"), "inconsistency 0x3 0x1010 0x0 0x0",
                       "atoms 0x1 0x0 0x0 0x0"};
        if (enabled) expected.erase(expected.begin() + 2);
        EXPECT_EQ(lines(), expected) << enabled;
    }
}

// Sections 7 and 14: impossible flow is reported at its place, and not delivered.
TEST_F(Etm4Elements, FlowThatCannotBeIsReported) {
    for (const std::uint32_t speculation : {0U, 8U}) {
        Config config = test::etmv4();
        config.max_speculation = speculation;
        const auto decoded = [&](std::uint32_t outcomes, const auto& more) {
            begin(config);
            more();
            if (speculation != 0) add(Commit{outcomes});
            return lines();
        };
        // bl at 0x100c is always taken; then no element has a place before the next address.
        EXPECT_EQ(decoded(3,
                          [&] {
                              atoms({false, false, true});
                          }),
                  (Lines{range(0x1000, 0x1008, "N"), "inconsistency 0x8 0x100c 0x0 0x0", "atoms 0x1 0x1 0x0 0x0"}));
        // After bl 0x1020 an address repeats the target, or is wrong.
        EXPECT_EQ(decoded(3,
                          [&] {
                              atoms({false, true});
                              address(0x1020);
                              atoms({true});
                          }),
                  (Lines{range(0x1000, 0x1008, "N"), range(0x1008, 0x1010, "E"), range(0x1020, 0x1024, "E")}));
        EXPECT_EQ(decoded(3,
                          [&] {
                              atoms({false, true});
                              address(0x1028);
                              atoms({false});
                          })
                      .at(2),
                  elsewhere(0x1020, 0x1028));
        // An indirect branch that is no exception return.
        EXPECT_EQ(decoded(2,
                          [&] {
                              address(0x1010);
                              atoms({true});
                              add(ExceptionReturn{});
                              address(0x1000);
                              atoms({false});
                          })
                      .at(2),
                  "inconsistency 0xa 0x1010 0x0 0x0");
    }
}

TEST_F(Etm4Elements, TimeDoesNotGoBack) {
    for (const std::uint32_t speculation : {0U, 8U}) {
        Config config = test::etmv4();
        config.max_speculation = speculation;
        begin(config);
        for (const std::uint64_t time : {70U, 70U, 60U, 61U}) add(Timestamp{.value = {time, 1}});
        std::vector<std::string> found;
        for (const std::string& line : lines())
            if (line.starts_with("inconsistency")) found.push_back(line);
        EXPECT_EQ(found, Lines{"inconsistency 0xb 0x46 0x3c 0x0"});
    }
}

// Instrumentation needs an A-sync, and no Trace Info (docs/spec/etm4-registers.md, 2.13 and 2.17).
TEST_F(Etm4Elements, InstrumentationWithoutATraceInfo) {
    config_ = test::ete();
    for (const bool synchronised : {true, false}) {
        stream_.clear();
        if (synchronised) add(ASync{});
        add(Instrumentation{0x1111, 1});
        add(Instrumentation{0x2222, 2});
        const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
        test::expect_all_agree(elements, stream_, config_, memory_);
        EXPECT_EQ(
            std::count_if(elements.begin(), elements.end(), [](const Element& e) { return e.kind == Kind::mark; }),
            synchronised ? 2 : 0);
    }
}

// 0 is no time (docs/spec/etm4-registers.md, 2.15), and the next timestamp is compressed against it.
TEST_F(Etm4Elements, TheTimestampThatIsNotKnown) {
    begin(test::etmv4());
    for (const std::uint64_t value : {0U, 5U}) add(Timestamp{compress_timestamp(value, 0), 0, false});
    const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
    test::expect_all_agree(elements, stream_, config_, memory_);
    std::vector<std::pair<std::uint64_t, std::uint64_t>> times;
    for (const Element& e : elements)
        if (e.kind == Kind::timestamp) times.emplace_back(e.a, e.b);
    EXPECT_EQ(times, (std::vector<std::pair<std::uint64_t, std::uint64_t>>{{0, 0}, {5, 1}}));
}

// The count of a timestamp resets nothing (5): the next cycle count contains it, so sums must leave it out.
TEST_F(Etm4Elements, TheCountOfATimestampIsCountedAgain) {
    struct Times final : flow::Sink {
        void consume(const flow::Batch& batch) override {
            for (const flow::Event& event : batch.events)
                if (const auto* const time = std::get_if<flow::Timestamp>(&event.what))
                    seen.emplace_back(time->cycles, time->counted_again);
        }
        std::vector<std::pair<std::uint32_t, bool>> seen;
    };
    begin(test::etmv4());
    add(Timestamp{compress_timestamp(5, 0), 20, true});
    add(CycleCountF1{0, 30, false});
    const auto times = [&]<class AnyDecoder>(std::type_identity<AnyDecoder>) {
        flow::BlockTable table;
        Times sink;
        flow::BatchWriter out(table, sink);
        AnyDecoder decoder(config_, memory_, out);
        decoder.feed(stream_);
        decoder.finish();
        return sink.seen;
    };
    const std::vector<std::pair<std::uint32_t, bool>> expected{{20, true}};
    EXPECT_EQ(times(std::type_identity<Decoder>()), expected);
    EXPECT_EQ(times(std::type_identity<ReferenceDecoder>()), expected);
}

// A count follows the youngest element that it commits (5), and a count without a number does as well.
TEST_F(Etm4Elements, ACountLiesBehindWhatItCommits) {
    Config config = test::etmv4();
    config.max_speculation = 8;
    begin(config);
    add(CycleCountF1{0, 0, true});
    atoms({false});
    address(0x1000);
    atoms({false});
    add(CycleCountF1{1, 30, false});
    add(Commit{1});
    EXPECT_EQ(lines(), (Lines{"cycles 4294967295", range(0x1000, 0x1008, "N"), elsewhere(0x1008, 0x1000), "cycles 30",
                              range(0x1000, 0x1008, "N")}));
}

// The address after a branch to the next instruction is the same, taken or not: no outcome is invented.
TEST_F(Etm4Elements, AQThatDoesNotShowAnOutcome) {
    memory_.sections[0].bytes = test::hex("20000054 00000014");  // 1000 b.eq 1004, 1004 b .
    begin(test::ete());
    add(Q{.address = {0x1004, 4, false}, .count = 1, .type = 0xa});
    atoms({true});
    EXPECT_EQ(lines(), (Lines{"untraced 0x1000 0x1004 0x1 0x1", range(0x1004, 0x1008, "E")}));
}

// Section 9: the instructions up to the return address ran; the handler's address comes next.
TEST_F(Etm4Elements, Exceptions) {
    begin(test::etmv4());
    atoms({false});
    address(0x1014);
    exception(0x02);
    address(0x1018);
    address(0x1020);
    atoms({true});
    exception(0x0e, true);
    address(0x1010);
    EXPECT_EQ(lines(), (Lines{range(0x1000, 0x1008, "N"), elsewhere(0x1008, 0x1014), range(0x1014, 0x1018, "cut"),
                              "exception 2 back 4120", range(0x1020, 0x1024, "E"), elsewhere(0x1024, 0x1010),
                              "exception 14 back 4112"}));
    // The walk to the return address would pass a branch; the decoder believes the trace.
    begin(test::etmv4());
    exception(0x0e);
    address(0x1010);
    EXPECT_EQ(lines(),
              (Lines{range(0x1000, 0x1004, "cut"), "inconsistency 0x6 0x1004 0x1010 0x0", "exception 14 back 4112"}));
}

TEST_F(Etm4Elements, WithoutTheHandlersAddressNothingCanBePlaced) {
    begin(test::etmv4());
    exception(0x0e);
    address(0x1000);
    atoms({true, false});
    address(0x1020);
    EXPECT_EQ(lines(), (Lines{"exception 14 back 4096", "atoms 0x1 0x1 0x0 0x0"}));
}

// PE Reset has no return address, a failed transaction none either.
TEST_F(Etm4Elements, ResetAndTransactionFailureOfAnEte) {
    begin(test::ete());
    Exception reset;
    add(reset);
    address(0x1020);
    atoms({true, true});
    add(TransactionStart{});
    Exception failure;
    failure.type_4_0 = 0x18;
    failure.e0 = true;
    add(failure);
    address(0x1020);
    atoms({true});
    add(TransactionCommit{});
    EXPECT_EQ(lines(),
              (Lines{"exception 0 back 18446744073709551615", range(0x1020, 0x1024, "E"), range(0x1024, 0x1028, "E"),
                     mark(flow::Mark::Kind::transaction_started), mark(flow::Mark::Kind::transaction_failed),
                     range(0x1020, 0x1024, "E"), mark(flow::Mark::Kind::transaction_committed)}));
}

TEST_F(Etm4Elements, ATailChainedExceptionHasNoReturnAddress) {
    begin(test::m_profile());
    exception(0x0f);
    add(LongAddress{{0xfffffffe, 4, true}});
    EXPECT_EQ(lines(), Lines{"exception 15 back 18446744073709551615"});
}

// Section 8: an impossible packet is a gap up to the next A-sync, and waiting elements are reported as not committed.
TEST_F(Etm4Elements, MoreCancelledThanThereIs) {
    Config config = test::etmv4();
    config.max_speculation = 8;
    begin(config);
    atoms({false, true});
    add(Commit{1});
    const std::size_t bad = stream_.size();
    add(CancelF1{2, false});
    atoms({true});
    const std::size_t sync = stream_.size();
    add(ASync{});
    add(TraceInfo{});
    address(0x1020);
    AddressWithContext p;
    p.sf = true;
    p.address = {0x1020, 8, false};
    add(p);
    atoms({true});
    add(Commit{1});
    EXPECT_EQ(lines(), (Lines{range(0x1000, 0x1008, "N"), mark(flow::Mark::Kind::uncommitted, 1),
                              "gap " + std::to_string(bad) + " " + std::to_string(sync), "trace on 0", "context 4 256",
                              range(0x1020, 0x1024, "E")}));
}

TEST_F(Etm4Elements, AnExceptionWithoutAnAddressIsAGap) {
    begin(test::etmv4());
    exception(0x0e);
    const std::size_t bad = stream_.size();
    atoms({true});
    EXPECT_EQ(lines(), (Lines{mark(flow::Mark::Kind::uncommitted, 1),
                              "gap " + std::to_string(bad) + " " + std::to_string(stream_.size())}));
}

// With a damaged MAXSPEC, a decoder does not keep everything.
TEST_F(Etm4Elements, WhatWaitsIsLimited) {
    config_ = test::etmv4();
    config_.max_speculation = 0xffffffff;
    begin(config_);
    atoms({true});
    const std::size_t many = (std::size_t{1} << 20) + 10;
    for (std::size_t i = 0; i < many; ++i) add(Event{1});
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    Decoder decoder(config_, memory_, out);
    decoder.feed(stream_);
    decoder.finish();
    const auto& elements = sink.elements();
    EXPECT_TRUE(std::any_of(elements.begin(), elements.end(), [](const Element& e) {
        return e.kind == Kind::gap && static_cast<GapReason>(e.c) == GapReason::malformed_packet;
    }));
}

// Section 11: branches before a Source Address were not taken; the decoder believes flow that the image does not show,
// and reports it.
TEST_F(Etm4Elements, SourceAddresses) {
    const auto source = [&](std::uint64_t at) {
        begin(test::ete());
        add(LongSourceAddress{{at, 4, false}});
        return lines();
    };
    EXPECT_EQ(source(0x1004), Lines{range(0x1000, 0x1008, "E")});
    EXPECT_EQ(source(0x100c), (Lines{range(0x1000, 0x1008, "N"), range(0x1008, 0x1010, "E")}));
    EXPECT_EQ(source(0x2000), Lines{"no_memory 0x2000 0x0 0x0 0x0"});
    EXPECT_EQ(source(0x1008), (Lines{range(0x1000, 0x1008, "N"), "inconsistency 0x6 0x100c 0x1008 0x0",
                                     "inconsistency 0x6 0x100c 0x1008 0x0", "reached 0x1008 0x0 0x0 0x0"}));
    begin(test::ete());
    address(0x1020);
    add(LongSourceAddress{{0x1004, 4, false}});
    EXPECT_EQ(lines(),
              (Lines{elsewhere(0x1000, 0x1020), "inconsistency 0x2 0x1020 0x1004 0x0", range(0x1004, 0x1008, "E")}));
}

// Section 3: the unit gives up waiting elements, and nothing is known until it synchronises again.
TEST_F(Etm4Elements, Discard) {
    Config config = test::etmv4();
    config.max_speculation = 8;
    begin(config);
    atoms({false, true});
    add(Commit{1});
    add(etm4::Discard{});
    const std::size_t lost = stream_.size();
    atoms({true, true});
    add(Commit{1});
    const std::size_t sync = stream_.size();
    add(ASync{});
    EXPECT_EQ(lines(), (Lines{range(0x1000, 0x1008, "N"), mark(flow::Mark::Kind::uncommitted, 1),
                              "gap " + std::to_string(lost) + " " + std::to_string(sync)}));
}

// After an A-sync without a Trace Info, trace is lost, regardless of earlier losses.
TEST_F(Etm4Elements, WithoutATraceInfoNothingIsSynchronised) {
    begin(test::etmv4());
    const std::size_t bad = stream_.size();
    add(CancelF1{1, false});
    add(ASync{});
    const std::size_t waits = stream_.size();
    atoms({true});
    const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
    test::expect_all_agree(elements, stream_, config_, memory_);
    std::vector<Element> gaps;
    std::copy_if(elements.begin(), elements.end(), std::back_inserter(gaps),
                 [](const Element& e) { return e.kind == Kind::gap; });
    ASSERT_EQ(gaps.size(), 2U);
    EXPECT_EQ(gaps[0].a, bad);
    EXPECT_EQ(static_cast<GapReason>(gaps[0].c), GapReason::malformed_packet);
    EXPECT_EQ(gaps[1].a, waits);
    EXPECT_EQ(static_cast<GapReason>(gaps[1].c), GapReason::unsynchronised);
}

// Section 9: the context between an Exception and its address is that of the exception.
TEST_F(Etm4Elements, TheContextOfAnException) {
    begin(test::etmv4());
    exception(0x0e);
    Context context;
    context.has_payload = context.sf = context.ns = true;
    context.el = 2;
    add(context);
    address(0x1000);
    address(0x1020);
    atoms({true});
    const Lines out = lines();
    ASSERT_EQ(out.size(), 3U);
    EXPECT_TRUE(out[0].starts_with("context")) << out[0];
    EXPECT_EQ(out[1], "exception 14 back 4096");
    EXPECT_EQ(out[2], range(0x1020, 0x1024, "E"));
}

// Where execution is unknown, an exception's return address does not show which code ran before it.
TEST_F(Etm4Elements, AnExceptionAfterABranchWithoutAnAddress) {
    begin(test::etmv4());
    address(0x102c);
    atoms({true});
    exception(0x0e);
    address(0x1010);
    address(0x1020);
    atoms({true});
    const Lines out = lines();
    EXPECT_EQ(std::count_if(out.begin(), out.end(), [](const std::string& l) { return l.starts_with("reached"); }), 0);
    EXPECT_EQ(out.back(), range(0x1020, 0x1024, "E"));
}

// Section 9: an Exception Return is counted by commits on cores of the M profile alone.
TEST_F(Etm4Elements, ExceptionReturnsAreP0OnTheMProfile) {
    for (const CoreProfile profile : {CoreProfile::a, CoreProfile::r, CoreProfile::m})
        for (const std::uint8_t version : std::initializer_list<std::uint8_t>{0x40, 0x41, 0x42, 0x45}) {
            Config config = test::m_profile();
            config.profile = profile;
            config.version = version;
            config.max_speculation = 8;
            begin(config);
            atoms({true});
            add(ExceptionReturn{});
            add(Commit{2});
            const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
            const bool fits =
                std::none_of(elements.begin(), elements.end(), [](const Element& e) { return e.kind == Kind::gap; });
            EXPECT_EQ(fits, profile == CoreProfile::m) << static_cast<unsigned>(version);
            test::expect_all_agree(elements, stream_, config_, memory_);
        }
}

// Section 9: from Thread mode (EL 0) to a handler (EL 3) and back; the handler returns with BX LR, whose atom, the
// Exception Return packet and the address are three packets. Exception, two atoms and the return are four P0 elements.
TEST_F(Etm4Elements, AHandlerOfTheMProfile) {
    memory_.sections[0].bytes = test::hex("00bf 05df 00bf fbe7 7047");  // 1000 nop, svc, nop, 1006 b 1000, 1008 bx lr
    config_ = test::m_profile();
    config_.max_speculation = 16;
    const auto at = [&](std::uint64_t address, std::uint8_t el) {
        AddressWithContext p;
        p.el = el;
        p.address = {address, 4, true};
        add(p);
    };
    for (const std::uint32_t committed : {3U, 4U, 5U}) {
        stream_.clear();
        add(ASync{});
        add(TraceInfo{});
        add(TraceOn{});
        at(0x1000, 0);
        exception(0x0b);
        add(ShortAddress{{4, 1, true}});
        at(0x1008, 3);
        atoms({true});
        add(ExceptionReturn{});
        at(0x1004, 0);
        atoms({true});
        const std::size_t commit = stream_.size();
        add(Commit{committed});
        const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
        test::expect_all_agree(elements, stream_, config_, memory_);
        Lines out;
        for (const Element& e : elements) {
            if (e.kind == Kind::context)
                out.push_back("EL" + std::to_string((e.b >> 8) - 1) + ((e.b & 0xffU) != 0 ? " HYP" : ""));
            else if (e.kind == Kind::gap)
                out.push_back("gap at " + std::to_string(e.a));
            else
                for (const std::string& line : test::lines_of({e})) out.push_back(line);
        }
        Lines expected{"trace on 1",
                       "EL0",
                       test::range_line(0x1000, 0x1004, 2, "cut"),
                       "exception 11 back 4100",
                       "EL3",
                       test::range_line(0x1008, 0x100a, 1, "E"),
                       "exception return",
                       "EL0",
                       test::range_line(0x1004, 0x1008, 2, "E")};
        // Uncommitted elements are reported as such; more commits than elements are impossible.
        if (committed == 3) expected.back() = mark(flow::Mark::Kind::uncommitted, 1);
        if (committed == 5)
            expected = {"trace on 1", "EL0", mark(flow::Mark::Kind::uncommitted, 4),
                        "gap at " + std::to_string(commit)};
        EXPECT_EQ(out, expected) << committed;
    }
}

// Section 19: damage that no packet showed is noticed at the next Trace Info, if it contradicts the waiting elements.
TEST_F(Etm4Elements, ATraceInfoThatContradictsBeginsAnew) {
    const auto go_on = [&](const TraceInfo& info) {
        add(ASync{});
        add(info);
        AddressWithContext p;
        p.sf = p.ns = true;
        p.el = 1;
        p.address = {0x1020, 8, false};
        add(p);
        atoms({true});
    };
    // The address of an exception did not come.
    begin(test::etmv4());
    atoms({false});
    exception(0x0e);
    go_on({});
    EXPECT_EQ(lines(), (Lines{range(0x1000, 0x1008, "N"), mark(flow::Mark::Kind::uncommitted, 1), "trace on 0",
                              "context 5 512", range(0x1020, 0x1024, "E")}));
    // Two elements wait, and SPEC states how many wait.
    for (const std::uint32_t speculation : {2U, 5U}) {
        Config config = test::etmv4();
        config.max_speculation = 8;
        begin(config);
        atoms({false, true});
        TraceInfo info;
        info.sections = 4;
        info.speculation = speculation;
        go_on(info);
        add(Commit{speculation + 1});
        Lines expected{mark(flow::Mark::Kind::uncommitted, 2), "trace on 0", "context 5 512"};
        if (speculation == 2) expected = {range(0x1000, 0x1008, "N"), range(0x1008, 0x1010, "E")};
        expected.push_back(range(0x1020, 0x1024, "E"));
        EXPECT_EQ(lines(), expected) << speculation;
    }
}

// Where loads or stores are P0 instructions, an atom does not name its instruction: nothing is invented.
TEST_F(Etm4Elements, AtomsOfLoadsAndStoresAreCounted) {
    for (const bool loads : {true, false}) {
        Config config = test::etmv4();
        config.p0_loads = loads;
        config.p0_stores = !loads;
        begin(config);
        atoms({true, false, true});
        exception(0x0e);
        address(0x1010);
        address(0x1020);
        add(ASync{});
        add(TraceInfo{});
        address(0x1000);
        atoms({true});
        EXPECT_EQ(lines(), (Lines{"atoms 0x2 0x1 0x0 0x0", "exception 14 back 4112", "atoms 0x1 0x0 0x0 0x0"}));
    }
}

// An exception and a Q without the address that belongs to them are reported, not dropped.
TEST_F(Etm4Elements, WhatWaitsForItsAddressAtTheEndIsReported) {
    begin(test::etmv4());
    exception(0x0e);
    EXPECT_EQ(lines(), Lines{mark(flow::Mark::Kind::uncommitted, 1)});
    begin(test::ete());
    add(Q{.address = {}, .count = 3, .type = 0xc});
    EXPECT_EQ(lines(), Lines{mark(flow::Mark::Kind::uncommitted, 1)});
    begin(test::etmv4());
    exception(0x0e);
    add(Overflow{});
    EXPECT_EQ(lines(), (Lines{mark(flow::Mark::Kind::uncommitted, 1), mark(flow::Mark::Kind::overflow_at_end, 0)}));
}

// Section 6: T32 code may have its addresses with 64 bits, too.
TEST_F(Etm4Elements, HalfwordAddressesOf64Bits) {
    config_ = test::etmv4();
    stream_.clear();
    memory_.sections[0].bytes = test::hex("ff e7 70 47");  // 1000 b 1002, 1002 bx lr
    add(ASync{});
    add(TraceInfo{});
    AddressWithContext p;
    p.ns = true;
    p.address = {0x1000, 8, true};
    add(p);
    constexpr unsigned times = 20;
    for (unsigned i = 0; i < times; ++i) {
        atoms({true, true});
        add(LongAddress{{0x1000, 8, true}});
    }
    const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
    test::expect_all_agree(elements, stream_, config_, memory_);
    EXPECT_EQ(std::count_if(elements.begin(), elements.end(),
                            [](const Element& e) {
                                return e.kind == Kind::range && e.block.start == 0x1002 && e.block.instructions == 1;
                            }),
              times);
}

/// Synchronisation points with a context and some branches between them, without speculation.
class Etm4Pieces : public Etm4Elements {
protected:
    void sections(unsigned count) {
        for (unsigned i = 0; i < count; ++i) {
            begin(i);
            for (unsigned k = 0; k < 30; ++k) {
                address(0x100c);
                atoms({true, true});  // bl 1020, isb
            }
        }
    }

private:
    void begin(std::uint32_t context_id) {
        add(ASync{});
        add(TraceInfo{});
        AddressWithContext p;
        p.sf = p.ns = p.has_context_id = true;
        p.el = 1;
        p.context_id = context_id;
        p.address = {0x1000, 8, false};
        add(p);
    }
};

// In a sound stream, each piece begins as expected, and is decoded once.
TEST_F(Etm4Pieces, OfASoundStreamAreDecodedOnce) {
    config_ = test::etmv4();
    sections(60);
    const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
    test::expect_all_agree(elements, stream_, config_, memory_);
    std::uint64_t repeated = 1;
    EXPECT_EQ(test::decode_parallel(stream_, config_, memory_, 3, 200, &repeated), elements);
    EXPECT_EQ(repeated, 0U);
}

// Packets after a reset do not follow the packets before it.
TEST_F(Etm4Pieces, AResetForgets) {
    config_ = test::etmv4();
    sections(3);
    const std::vector<std::uint8_t> unsynchronised = test::hex("f7 f7 f7");
    const auto decode = [&](auto& decoder) {
        decoder.feed(stream_);
        decoder.reset(GapReason::framing);
        decoder.feed(unsynchronised);
        decoder.finish();
    };
    flow::BlockTable table;
    synthetic::ElementSink sink, parallel;
    flow::BatchWriter out(table, sink);
    ReferenceDecoder reference(config_, memory_, out);
    decode(reference);
    const std::vector<Element> expected = sink.take();
    EXPECT_EQ(expected.back().kind, Kind::gap);
    EXPECT_EQ(expected.back().a, stream_.size());
    Decoder fast(config_, memory_, out);
    decode(fast);
    EXPECT_EQ(synthetic::difference(sink.take(), expected, "fast", "reference"), "");
    ParallelDecoder several(config_, memory_, table, parallel, {.workers = 2, .piece_bytes = 100});
    decode(several);
    EXPECT_EQ(synthetic::difference(parallel.take(), expected, "parallel", "reference"), "");
}

// Events of an ETE between an A-sync and its Trace Info are delivered, and no other packet is.
TEST_F(Etm4Elements, EventsBeforeTheTraceInfo) {
    config_ = test::ete();
    stream_.clear();
    add(ASync{});
    add(Event{5});
    const std::size_t lost = stream_.size();
    add(Atom{});
    const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
    test::expect_all_agree(elements, stream_, config_, memory_);
    ASSERT_EQ(elements.size(), 2U);
    EXPECT_EQ(elements[0].kind, Kind::mark);
    EXPECT_EQ(elements[1].kind, Kind::gap);
    EXPECT_EQ(elements[1].a, lost);
}

// Section 4: pushes are forbidden from a Trace Info to the next address, since a decoder that joins there cannot know
// the code before.
TEST_F(Etm4Elements, NothingIsPushedBetweenTraceInfoAndAddress) {
    for (const bool forbidden : {false, true}) {
        Config config = test::etmv4();
        config.return_stack = true;
        begin(config);
        atoms({false});
        if (forbidden) {
            add(ASync{});
            add(TraceInfo{});
        }
        atoms({true, true, true});  // bl 1020, isb, br (there is no tstart in ETMv4)
        atoms({true});              // at 1010, if that was pushed
        const Lines out = lines();
        EXPECT_EQ(std::count(out.begin(), out.end(), range(0x1010, 0x1014, "E")), forbidden ? 0 : 1);
    }
}

// Step 6: a context of another width leaves execution where it is.
TEST_F(Etm4Elements, AContextOfAnotherWidthMovesNothing) {
    begin(test::etmv4());
    atoms({false});
    Context narrow;
    narrow.has_payload = true;
    narrow.ns = true;
    narrow.el = 1;
    add(narrow);
    atoms({true});
    const Lines out = lines();
    EXPECT_EQ(out.at(0), range(0x1000, 0x1008, "N"));
    EXPECT_TRUE(std::none_of(out.begin() + 1, out.end(),
                             [](const std::string& line) { return line.find("1000") != std::string::npos; }));
}

// Section 10: if the last instruction of a Q is no branch, the Q ends at the next branch, or its path is unknown.
TEST_F(Etm4Elements, AQThatEndsAtABarrierGoesOnBehindIt) {
    for (const std::uint64_t to : {0x1024U, 0x102cU}) {
        begin(test::ete());
        address(0x1020);
        add(Q{.address = {to, 4, false}, .count = 1, .type = 0xa});
        const Lines out = lines();
        EXPECT_EQ(std::count(out.begin(), out.end(), range(0x1020, 0x1024, "E")), to == 0x1024 ? 1 : 0);
    }
}

// Section 4, "Later Trace Info": pushes are forbidden until an address comes, and a Source Address is no address.
TEST_F(Etm4Elements, ASourceAddressAllowsNoPushes) {
    for (const bool forbidden : {false, true}) {
        Config config = test::ete();
        config.return_stack = true;
        begin(config);
        if (forbidden) {
            add(ASync{});
            add(TraceInfo{});
        }
        add(TraceOn{});
        add(LongSourceAddress{{0x100c, 4, false}});  // bl 1020
        atoms({true, true, true});                   // isb, tstart, br
        atoms({true});                               // at 1010, if that was pushed
        const Lines out = lines();
        EXPECT_EQ(std::count(out.begin(), out.end(), range(0x1010, 0x1014, "E")), forbidden ? 0 : 1);
    }
}

// The next Trace On follows the overflow, even if other trace is lost before it.
TEST_F(Etm4Elements, ADiscardDoesNotEndAnOverflow) {
    begin(test::etmv4());
    for (const bool overflow : {true, false}) {
        if (overflow)
            add(Overflow{});
        else
            add(Discard{});
        add(ASync{});
        add(TraceInfo{});
    }
    add(TraceOn{});
    EXPECT_EQ(lines().back(), "trace on " + std::to_string(static_cast<unsigned>(flow::TraceOnReason::overflow)));
}

// Before any context the width of addresses is not known.
TEST_F(Etm4Elements, BeforeAContextAddressesAreWhole) {
    config_ = test::ete();
    for (const bool q : {false, true}) {
        stream_.clear();
        add(ASync{});
        add(TraceInfo{});
        if (q)
            add(Q{.address = {}, .count = 3, .type = 0xc});
        else
            exception(0x0e);
        address(0xffff'ffc0'0008'3c00);
        const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
        test::expect_all_agree(elements, stream_, config_, memory_);
        EXPECT_TRUE(std::any_of(elements.begin(), elements.end(), [](const Element& e) {
            return to_text(e).find("ffffffc000083c00") != std::string::npos;
        }));
    }
}

// An address without a context does not show where execution continues after a reset.
TEST_F(Etm4Elements, AnAddressWithoutAContextEndsAtAReset) {
    config_ = test::ete();
    for (const unsigned type : {0x00U, 0x18U}) {
        stream_.clear();
        add(ASync{});
        add(TraceInfo{});
        address(0x1000);
        exception(type);
        Context context;
        context.has_payload = context.sf = context.ns = true;
        add(context);
        atoms({true});
        const std::vector<Element> elements = test::decode<ReferenceDecoder>(stream_, config_, memory_);
        test::expect_all_agree(elements, stream_, config_, memory_);
        EXPECT_TRUE(
            std::none_of(elements.begin(), elements.end(), [](const Element& e) { return e.kind == Kind::range; }));
    }
}

}  // namespace
}  // namespace waymark::etm4
