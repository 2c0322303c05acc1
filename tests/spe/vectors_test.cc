/// The decision tables of docs/spec/spe.md, 3.14, row by row, from tests/data/spe/vectors.txt.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "spe/state.h"
#include "waymark/spe/sampling.h"

namespace waymark::spe::test {
namespace {

using Row = std::vector<std::string>;

std::string text_of(const std::filesystem::path& path) {
    std::ifstream file(path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::vector<Row> vectors() {
    std::vector<Row> rows;
    std::istringstream lines(text_of(std::filesystem::path(WAYMARK_TEST_DATA) / "spe/vectors.txt"));
    for (std::string line; std::getline(lines, line);)
        if (!line.empty() && !line.starts_with("#")) rows.push_back(split(line, "|"));
    return rows;
}

std::string kind(const Row& row) { return row[0].substr(0, row[0].find('-')); }
std::string_view text(bool value) { return value ? "TRUE" : "FALSE"; }
std::string_view text(const Owner& owner) { return owner.el == EL2 ? "EL2" : owner.el == EL1 ? "EL1" : "neither"; }

OpType optype(std::string_view text) {
    for (unsigned i = 0; i <= static_cast<unsigned>(OpType::Invalid); ++i)
        if (name(static_cast<OpType>(i)) == text) return static_cast<OpType>(i);
    ADD_FAILURE() << "'" << text << "' is no operation type";
    return OpType::Invalid;
}

/// The functions' answers for a row's state, in the row's own columns.
Row answers(const Row& row, bool as_printed) {
    const std::string group = kind(row);
    const auto number = [&](std::size_t column) {
        std::uint64_t n = 0;
        EXPECT_TRUE(wire::scan_number(row.at(column), n)) << row[0];
        return n;
    };
    State s = state_of(row.at(group == "REC" ? 4 : 1));
    s.arch.as_printed = as_printed;
    Row out(row.begin(), row.begin() + (group == "REC" ? 5 : 2));
    const auto add = [&](std::string_view value) { out.emplace_back(value); };
    if (group == "OWN") {
        const Owner owner = ProfilingBufferOwner(s);
        add(text(owner.secure()));
        add(text(owner));
    } else if (group == "BUF") {
        add(text(ProfilingBufferEnabled(s)));
    } else if (group == "EN") {
        add(text(StatisticalProfilingEnabled(s)));
    } else if (group == "ACC") {
        add(name(CheckProfilingBufferAccess(s)));
        add(name(CheckStatisticalProfilingAccess(s)));
    } else if (group == "CTX") {
        add(text(CollectContextIDR1(s)));
        add(text(CollectContextIDR2(s)));
    } else if (group == "PA") {
        add(text(CollectPhysicalAddress(s)));
    } else if (group == "TS") {
        add(name(CollectTimeStamp(s)));
    } else if (group == "REC") {
        add(text(CollectRecord(s, number(1), static_cast<std::uint32_t>(number(2)), optype(row.at(3)))));
    }
    return out;
}

void check(bool as_printed) {
    for (Row row : vectors()) {
        // The context rows have a column for each reading.
        if (kind(row) == "CTX") {
            ASSERT_EQ(row.size(), 5U);
            row.erase(row.begin() + (as_printed ? 4 : 3));
        }
        EXPECT_EQ(answers(row, as_printed), row) << row[0] << ": " << row.at(kind(row) == "REC" ? 4 : 1);
    }
}

TEST(Vectors, corrected) { check(false); }
TEST(Vectors, as_printed) { check(true); }

TEST(Vectors, are_those_of_the_specification) {
    const std::string spec = text_of(std::filesystem::path(WAYMARK_SOURCE_DIR) / "docs/spec/spe.md");
    const std::size_t begin = spec.find("### 3.14"), end = spec.find("### 3.15");
    ASSERT_NE(begin, spec.npos);
    const std::string section = spec.substr(begin, end - begin);
    std::smatch said;
    ASSERT_TRUE(std::regex_search(section, said, std::regex("([0-9]+) rows in all")));

    const std::vector<Row> rows = vectors();
    EXPECT_EQ(std::to_string(rows.size()), said[1]);
    std::map<std::string, unsigned> counts;
    for (const Row& row : rows) ++counts[kind(row)];
    const std::map<std::string, unsigned> expected{{"OWN", 15}, {"BUF", 12}, {"EN", 32}, {"ACC", 30},
                                                   {"CTX", 16}, {"PA", 16},  {"TS", 23}, {"REC", 49}};
    EXPECT_EQ(counts, expected);

    std::vector<Row> printed;
    std::istringstream lines(section);
    for (std::string line; std::getline(lines, line);)
        if (std::regex_search(line, std::regex(R"(^\| (OWN|BUF|EN|ACC|CTX|PA|TS|REC)-)")))
            printed.push_back(split(std::string_view(line).substr(1, line.size() - 2), "|"));
    EXPECT_EQ(printed, rows);
}

/// The rows MOD-01 to MOD-16, in the same notation; their setups are described in words.
struct Modern {
    const char* id;
    const char* configuration;
    Version version;
    bool eft;
    std::uint64_t events;
    OpType optype;
    SampleDetails details;
    bool accepted;
};

TEST(Vectors, modern_filters) {
    const auto v2 = Version::v1_2, v4 = Version::v1_4;
    const auto load = OpType::Load, store = OpType::Store;
    const auto source = [](std::uint16_t code) { return SampleDetails{.data_source = code}; };
    const SampleDetails none, scalar{.fp = true}, vector{.simd = true};
    const Modern rows[] = {
        {"MOD-01", "FnE=1, NEVFR=0x8", v2, false, 0x8, load, none, false},
        {"MOD-02", "FnE=1, NEVFR=0x8", v2, false, 0x2, load, none, true},
        {"MOD-03", "FnE=1, NEVFR=0x28", v2, false, 0x20, load, none, false},
        {"MOD-04", "FE=1, EVFR=0x2, FnE=1, NEVFR=0x8", v2, false, 0x2, load, none, true},
        {"MOD-05 no", "FE=1, EVFR=0x8, FnE=1, NEVFR=0x8, BADPMSFCR=0", v2, false, 0x0, load, none, true},
        {"MOD-05 no", "FE=1, EVFR=0x8, FnE=1, NEVFR=0x8, BADPMSFCR=0", v2, false, 0x8, load, none, true},
        {"MOD-05 yes", "FE=1, EVFR=0x8, FnE=1, NEVFR=0x8, BADPMSFCR=1", v2, false, 0x8, load, none, false},
        {"MOD-06", "FE=1, EVFR=0x4", v4, false, 0x0, load, none, false},
        {"MOD-07", "FE=1, EVFR=0x40", v2, false, 0x42, load, none, true},
        {"MOD-08", "FT=1, BADPMSFCR=0", v2, false, 0x2, load, none, true},
        {"MOD-08 yes", "FT=1, BADPMSFCR=1", v2, false, 0x2, load, none, false},
        {"MOD-09", "FT=1, BADPMSFCR=1", v2, true, 0x2, load, none, true},
        {"MOD-10", "FT=1, LD=1, LDm=1, SIMDm=1", v2, true, 0x2, load, none, true},
        {"MOD-10 fp", "FT=1, LD=1, LDm=1, SIMDm=1", v2, true, 0x2, load, scalar, true},
        {"MOD-11", "FT=1, LD=1, LDm=1, SIMDm=1", v2, true, 0x2, load, vector, false},
        {"MOD-12", "FT=1, LD=1, ST=1, FP=1, FPm=1", v2, true, 0x2, store, scalar, true},
        {"MOD-13", "FT=1, LD=1, ST=1, FP=1, FPm=1", v2, true, 0x2, store, none, false},
        {"MOD-14", "FDS=1, DSFR=0x1", v4, false, 0x2, load, source(0x40), true},
        {"MOD-15", "FDS=1, DSFR=0x0", v4, false, 0x2, load, none, true},
        {"MOD-16", "FDS=1, DSFR=0x0", v4, false, 0x2, load, source(8), false},
        {"a store has no source to go by", "FDS=1, DSFR=0x0", v4, false, 0x2, store, source(8), true},
    };
    for (const Modern& row : rows) {
        State s = state_of(row.configuration);
        s.arch = Architecture::of(row.version);
        s.arch.eft = row.eft;
        EXPECT_EQ(CollectRecord(s, row.events, 10, row.optype, row.details), row.accepted) << row.id;
    }
}

TEST(Vectors, a_contradiction_asks_twice) {  // MOD-05
    State s = state_of("FE=1, EVFR=0x8, FnE=1, NEVFR=0x8");
    s.arch = Architecture::of(Version::v1_2);
    s.choices[Unpredictable::BADPMSFCR] = Choices::Answer::drawn;
    unsigned answers = 0;
    for (s.choices.seed = 0; s.choices.seed < 100; ++s.choices.seed) {
        const auto d = CollectRecord(s, 0x8, 10, OpType::Load);
        ASSERT_EQ(d.consulted.size(), 2U);
        const Consultation inverted = d.consulted.begin()[0], event = d.consulted.begin()[1];
        EXPECT_EQ(inverted.which, Unpredictable::BADPMSFCR);
        EXPECT_EQ(event.which, Unpredictable::BADPMSFCR);
        EXPECT_EQ(d.value, inverted.answer == 0 && event.answer == 0);
        answers |= 1U << (2 * inverted.answer + event.answer);
    }
    EXPECT_EQ(answers, 0xfU) << "the two draws depend on each other";
}

TEST(Vectors, room_for_a_record) {  // MOD-17, MOD-18
    Registers r;
    r.pmsidr_el1.max_size = 6;
    r.pmblimitr_el1.limit = 0x2000 >> 12;
    r.pmbptr_el1.ptr = 0x1fc0;
    EXPECT_FALSE(buffer_full(r));
    for (const std::uint64_t ptr : {0x1fc1, 0x2000, 0x3000}) {
        r.pmbptr_el1.ptr = ptr;
        EXPECT_TRUE(buffer_full(r)) << ptr;
    }
    r.pmbsr_el1.ec = 0x24;
    r.pmbsr_el1.coll = true;
    record_buffer_full(r);
    EXPECT_EQ(to_value(r.pmbsr_el1), 0x0003'0001U);
    // An event that is present already stays.
    r.pmbsr_el1 = from_value<PmbsrEl1>(0x9002'0007);
    record_buffer_full(r);
    EXPECT_EQ(to_value(r.pmbsr_el1), 0x9002'0007U);
    // Without a limit address there is no room.
    r.pmblimitr_el1.limit = 0;
    r.pmbptr_el1.ptr = 0;
    EXPECT_TRUE(buffer_full(r));
}

TEST(Vectors, chosen_members) {  // MOD-19
    Registers r;
    r.pmsirr_el1.interval = 1;
    std::vector<unsigned> chosen, reloads;
    for (unsigned member = 1; member <= 771; ++member) {
        const bool reload = r.pmsicr_el1.count_31_0 == 0;
        if (count_member(r, 0xab)) chosen.push_back(member);
        if (reload) reloads.push_back(member);
    }
    EXPECT_EQ(chosen, (std::vector<unsigned>{257, 514, 771}));
    EXPECT_EQ(reloads, (std::vector<unsigned>{1, 258, 515}));
}

TEST(Sampling, mean_distances) {  // 1.2
    for (const bool e_rnd : {false, true}) {
        Registers r;
        r.pmsirr_el1.interval = 4;
        r.pmsirr_el1.rnd = true;
        r.pmsidr_el1.e_rnd = e_rnd;
        wire::Random random(7);
        unsigned chosen = 0;
        constexpr unsigned members = 4'000'000;
        for (unsigned i = 0; i < members; ++i) chosen += count_member(r, static_cast<std::uint8_t>(random()));
        EXPECT_NEAR(members / double(chosen), 256 * 4 + (e_rnd ? 1 : 128.5), 3) << e_rnd;
    }
}

TEST(Sampling, barrier) {  // 1.7
    Outstanding records;
    records.formatted = {{1}, {2}};
    ProfilingSynchronizationBarrier(records);
    EXPECT_TRUE(records.formatted.empty());
    EXPECT_TRUE(records.complete.empty());
    records.formatted.push_back({3});
    records.discard();
    EXPECT_EQ(records.lost, 1U);
    records.data_synchronization_barrier();
    EXPECT_EQ(records.complete, (std::vector<Outstanding::Record>{{1}, {2}}));
    EXPECT_TRUE(records.initiated.empty());
}

}  // namespace
}  // namespace waymark::spe::test
