/// The unit under random operations and configurations: readers find the records that it reports, every sample has one
/// fate, and skipping changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "spe/unit_driver.h"
#include "support/random.h"
#include "support/sanitized.h"

namespace waymark::spe {
namespace {

using synthetic::Random;
using test::decode;
using test::Decoded;
using Kind = Operation::Kind;

unsigned rounds(unsigned usual) {
    const char* more = std::getenv("WAYMARK_PROPERTY_ROUNDS");
    return more != nullptr ? static_cast<unsigned>(std::strtoul(more, nullptr, 10)) : sized(usual, usual / 4);
}

constexpr std::uint64_t buffer_base = 0x4000'0000;

/// A possible unit with possible programming.
ModelConfig random_config(Random& random, const ProfilingBuffer& buffer) {
    ModelConfig config = test::plain_config(buffer);
    State& s = config.state;
    Registers& r = s.regs;
    s.arch = Architecture::of(static_cast<Version>(1 + random.below(6)));
    s.arch.sve = random.half();
    s.arch.ecv = random.half();
    PmsidrEl1& id = r.pmsidr_el1;
    id.fn_e = s.arch.fn_e;
    id.fds = s.arch.fds;
    id.eft = s.arch.eft = s.arch.version >= Version::v1_4 && random.half();
    id.sme = s.arch.sme = s.arch.version >= Version::v1_2 && random.half();
    id.pbt = s.arch.version >= Version::v1_2 && random.half();
    id.crr = random.half();
    id.fpf = random.half();
    id.lds = random.half();
    id.e_rnd = random.half();
    id.arch_inst = random.half();
    id.altclk = static_cast<std::uint8_t>(random.below(2));
    id.count_size = static_cast<std::uint8_t>(2 + random.below(2));
    id.max_size = static_cast<std::uint8_t>(7 + random.below(5));
    r.pmbidr_el1.align = static_cast<std::uint8_t>(random.half() ? 0 : random.below(id.max_size + 1U));
    r.pmbidr_el1.ea = static_cast<std::uint8_t>(random.below(3));

    r.pmsirr_el1.interval = 1 + random.below(3);
    r.pmsirr_el1.rnd = random.half();
    r.pmsicr_el1.count_31_0 = random.half() ? 0 : random.below(1000);
    r.pmsicr_el1.ecount = static_cast<std::uint8_t>(id.e_rnd && random.half() ? random.below(256) : 0);
    for (PmsfcrEl1& f = r.pmsfcr_el1; bool* bit : {&f.fe, &f.ft, &f.fl, &f.fn_e, &f.fds}) *bit = random.chance(2000);
    for (PmsfcrEl1& f = r.pmsfcr_el1; bool* bit : {&f.b, &f.ld, &f.st, &f.fp, &f.simd}) *bit = random.half();
    for (PmsfcrEl1& f = r.pmsfcr_el1; bool* bit : {&f.b_m, &f.ld_m, &f.st_m, &f.fp_m, &f.simd_m})
        *bit = random.chance(2000);
    r.pmsevfr_el1.e = random() & random() & random() & random();
    r.pmsnevfr_el1.e = random() & random() & random() & random();
    r.pmsdsfr_el1.s = random();
    r.pmslatfr_el1.minlat = static_cast<std::uint16_t>(random.below(40));
    for (Choices::Answer& answer : s.choices.answers) answer = static_cast<Choices::Answer>(random.below(3));
    s.choices.seed = random();
    for (bool* bit : {&r.pmscr_el1.cx, &r.pmscr_el1.pa, &r.pmscr_el1.ts, &r.pmscr_el2.cx, &r.pmscr_el2.pa,
                      &r.pmscr_el2.ts, &r.pmscr_el2.e2spe, &r.pmscr_el2.e0hspe})
        *bit = random.half();
    r.pmscr_el1.pct = r.pmscr_el2.pct = static_cast<std::uint8_t>(random.below(s.arch.ecv ? 4 : 2));
    r.mdcr_el2.e2pb = random.half() ? 0b11 : 0b00;
    r.hcr_el2.e2h = random.half();
    r.pstate.sm = random.half();
    if (s.arch.version >= Version::v1_2 && random.chance(1000)) r.pmblimitr_el1.fm = 0b10;

    s.arch.as_printed = random.chance(1000);

    ModelChoices& c = config.choices;
    if (random.half()) c = random.half() ? ModelChoices::neoverse() : ModelChoices::hiperf();
    c.in_flight = 1 + random.below(3);
    c.speculation = random.half();
    c.seed = random();
    c.events = random.half() ? ModelChoices{}.events : random();
    c.event_bytes = std::array<std::uint8_t, 5>{0, 1, 2, 4, 8}[random.below(5)];
    c.data_source_bytes = static_cast<std::uint8_t>(1 + random.below(2));
    c.not_taken_target = random.half();
    c.previous_target_on_all = random.half();
    c.data_top_byte = random.half();
    c.timestamp_at_end = random.half();
    c.padding_first = random.half();
    c.queued_records = random.half() ? 0 : random.below(6);
    c.writes_wait = random.half();
    c.external_abort_serror = random.half();
    c.counter_first = random();
    c.counter_numerator = 1 + random.below(5);
    c.counter_denominator = 1 + random.below(5);
    if (random.half()) {
        for (std::size_t i = c.order.size() - 1; i != 0; --i)
            std::swap(c.order[i], c.order[random.below(static_cast<std::uint32_t>(i + 1))]);
        c.slots = static_cast<std::uint16_t>(random() & 0x3fff);
    }
    if (const std::uint32_t longest = config.longest_record_bytes(); longest > 1U << id.max_size) {
        id.max_size = 8;
        r.pmbidr_el1.align = std::min<std::uint8_t>(r.pmbidr_el1.align, 8);
    }
    return config;
}

Access random_access(Random& random) {
    Access a{.address = {random()}, .tagged = random.half()};
    if (random.half()) a.physical = Address{random() >> 8};
    a.tag_checked = random.half();
    a.physical_tag = static_cast<std::uint8_t>(random.below(16));
    return a;
}

Executed random_operation(Random& random, std::uint64_t cycle) {
    Executed op;
    op.pc = {random()};
    op.cycle = cycle;
    Operation& o = op.operation;
    o.kind = static_cast<Kind>(random.below(14));
    for (bool* bit : {&o.conditional, &o.indirect, &o.floating_point, &o.simd, &o.predicated, &o.gather_scatter,
                      &o.acquire_release, &o.exclusive, &o.atomic, &o.control_stack, &o.common})
        *bit = random.half();
    o.call = static_cast<Operation::Call>(random.below(4));
    o.length_code = static_cast<std::uint8_t>(random.below(16));
    const bool memory = o.kind != Kind::other && o.kind != Kind::sve && o.kind != Kind::sme && o.kind != Kind::branch;
    if (memory) {
        o.store = random.half();
        o.load = !o.store || (o.kind == Kind::memory_copy && random.half());
        if (random.chance(9000)) op.access = random_access(random);
        if (o.load && o.store) op.store_access = random_access(random);
        if (random.half()) op.data_source = static_cast<std::uint16_t>(random.below(256));
        op.translation_latency = random.below(30);
    }
    op.events = random() & random();
    op.retired = random.chance(8000);
    op.condition_failed = random.chance(2000);
    op.continues = random.chance(3000);
    op.total_latency = 1 + (random.chance(500) ? random.below(100000) : random.below(60));
    op.issue_latency = random.below(op.total_latency + 1);
    if (random.half()) op.alternate_issue_latency = random.below(50);
    op.target.address = {random()};
    if (random.chance(1000)) op.target.exception_level = static_cast<std::uint8_t>(random.below(3));
    return op;
}

/// The results of a run.
struct Outcome {
    std::vector<std::uint8_t> memory;
    ModelCounts counts;
    std::vector<std::string> story;  ///< text of records that were read back meanwhile, and of fates
    bool operator==(const Outcome&) const = default;
};

std::string delivered(const SampleFate& s) {
    std::string out = std::to_string(s.member) + " " + std::string(name(s.fate)) + " " +
                      std::to_string(s.operation.pc.value) + " " + std::to_string(s.operation.cycle);
    if (s.record) out += " at " + std::to_string(s.record->first.value) + " " + std::to_string(s.record->timestamp);
    return out;
}

/// The first record that differs; empty if none does.
std::string difference(const std::vector<Record>& a, const std::vector<Record>& b) {
    const std::size_t i = static_cast<std::size_t>(
        std::mismatch(a.begin(), a.begin() + static_cast<std::ptrdiff_t>(std::min(a.size(), b.size())), b.begin())
            .first -
        a.begin());
    if (i == a.size() && i == b.size()) return {};
    const auto text = [&](const std::vector<Record>& list) {
        if (i == list.size()) return std::string("none");
        const Record& r = list[i];
        return std::to_string(r.first.value) + "+" + std::to_string(r.bytes) + " present " + std::to_string(r.present) +
               " defects " + std::to_string(r.defects) + " " +
               operation_text(operation(r.operation_class, r.operation_type));
    };
    return "record " + std::to_string(i) + ": " + text(a) + " / " + text(b);
}

/// A stream of operations and events between them, the same for the same seed. Skipping leaves out all operations that
/// may be skipped, and marks their branches.
class Driver {
public:
    Driver(std::uint64_t seed, bool skipping)
        : random_(seed), skipping_(skipping), buffer_({buffer_base}, 0x4000), config_(random_config(random_, buffer_)) {
        const Status status = config_.check();
        EXPECT_TRUE(status) << status.error().message;
        model_.emplace(config_, buffer_, &witness_);
    }

    Outcome run(unsigned operations) {
        while (operations-- != 0) {
            cycle_ += random_.below(3);
            drive(random_operation(random_, cycle_));
            if (model_->pmbirq() || model_->profiling_exception()) serve();
            if (random_.chance(30)) happening();
        }
        model_->drain(cycle_);
        read_back();
        Outcome out{{buffer_.bytes().begin(), buffer_.bytes().end()}, model_->counts(), {}};
        for (const SampleFate& s : witness_.samples) out.story.push_back(delivered(s));
        out.story.insert(out.story.end(), story_.begin(), story_.end());
        EXPECT_EQ(model_->pending(), 0U);
        return out;
    }

    [[nodiscard]] const test::Witness& witness() const { return witness_; }
    [[nodiscard]] std::uint64_t skipped() const { return skipped_; }

private:
    /// An operation is a member of the population if profiling is enabled: skip() counts only members.
    [[nodiscard]] bool member(const Executed& op) const {
        return !(op.continues && config_.state.regs.pmsidr_el1.arch_inst) &&
               (op.retired || config_.choices.speculation);
    }
    void drive(const Executed& op) {
        if (!skipping_ || !member(op) || model_->until_next() == 0) return model_->retire(op);
        model_->skip(1);
        ++skipped_;
        if (op.operation.kind == Kind::branch && op.retired && !op.condition_failed) model_->skipped_branch(op.target);
    }

    /// Compares the new records with the unit's reports, and empties the buffer.
    void read_back() {
        model_->psb_csync();
        model_->dsb();
        const Bytes all = buffer_.written(model_->pointer());
        const Bytes bytes = all.subspan(std::min<std::size_t>(all.size(), start_ - buffer_base));
        std::vector<Record> expected;
        bool torn = false;
        for (; checked_ < witness_.samples.size(); ++checked_) {
            const SampleFate& s = witness_.samples[checked_];
            torn |= s.fate == Fate::torn;
            if (s.fate != Fate::written) continue;
            expected.push_back(s.record.value());
            expected.back().first = {s.record->first.value - start_};
        }
        if (!discards() && !torn) {
            EXPECT_EQ(difference(decode<Decoder>(bytes).records, expected), "");
            const Decoded slow = decode<ReferenceDecoder>(bytes);
            EXPECT_EQ(difference(slow.records, expected), "");
            EXPECT_TRUE(slow.gaps.empty());
            EXPECT_EQ(slow.totals.padding_bytes + slow.totals.record_bytes, bytes.size());
        }
    }
    [[nodiscard]] bool discards() const { return model_->registers().pmblimitr_el1.fm == 0b10; }

    void serve() {
        const PmbsrFields& s = model_->registers().pmbsr_el1;
        story_.push_back("stopped " + std::to_string(s.ec) + (s.coll ? " with collisions" : "") + " " +
                         std::to_string(s.mss) + " at " + std::to_string(model_->pointer().value) + " " +
                         std::to_string(cycle_));
        restart();
    }
    void restart() {
        read_back();
        buffer_.clear_faults();
        const std::uint64_t align = std::uint64_t{1} << config_.state.regs.pmbidr_el1.align;
        start_ = buffer_base + random_.below(0x1000) / align * align;
        if (random_.chance(3000)) {
            constexpr WriteFault::Kind kinds[] = {WriteFault::Kind::stage1, WriteFault::Kind::stage2,
                                                  WriteFault::Kind::granule_protection,
                                                  WriteFault::Kind::external_abort};
            buffer_.fault_at({start_ + random_.below(0x200)}, {kinds[random_.below(4)], 0x07, 0});
        }
        const std::uint64_t limit = (buffer_base >> 12) + 1 + random_.below(4);
        model_->change(cycle_, [&](State& state) {
            state.regs.pmbsr_el1 = {};
            state.regs.pmbptr_el1.ptr = start_;
            state.regs.pmblimitr_el1.limit = limit;
        });
    }

    void happening() {
        switch (random_.below(7)) {
            case 0: return model_->set_exception_level(cycle_, static_cast<std::uint8_t>(random_.below(3)));
            case 1: return model_->set_context(static_cast<std::uint32_t>(random_()), random_.below(1000));
            case 2: return model_->psb_csync();
            case 3: return model_->dsb();
            case 4: cycle_ += random_.below(2000); return model_->advance(cycle_);
            case 5: {  // off and on again, with the loss of samples in flight
                model_->change(cycle_, [](State& s) { s.regs.pmblimitr_el1.e = false; });
                story_.push_back("off at " + std::to_string(model_->pointer().value));
                restart();
                return model_->change(cycle_, [](State& s) { s.regs.pmblimitr_el1.e = true; });
            }
            default: {
                const std::uint32_t interval = 1 + random_.below(3);
                return model_->change(cycle_, [&](State& s) {
                    s.regs.pmsirr_el1.interval = interval;
                    s.regs.pmsicr_el1 = {};
                });
            }
        }
    }

    Random random_;
    bool skipping_;
    ProfilingBuffer buffer_;
    ModelConfig config_;
    test::Witness witness_;
    std::optional<Model> model_;
    std::uint64_t cycle_ = 0, skipped_ = 0, start_ = buffer_base;
    std::size_t checked_ = 0;
    std::vector<std::string> story_;
};

TEST(ModelProperty, SkippingChangesNothing) {
    std::uint64_t skipped = 0, operations = 0;
    std::array<std::uint64_t, fate_count> fates{};
    for (unsigned seed = 1; seed <= rounds(60) && !testing::Test::HasFailure(); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Driver plain(seed, false), quick(seed, true);
        const Outcome expected = plain.run(20000);
        const Outcome run = quick.run(20000);
        EXPECT_TRUE(run.counts == expected.counts);
        EXPECT_TRUE(run.memory == expected.memory);
        ASSERT_EQ(run.story.size(), expected.story.size());
        for (std::size_t i = 0; i < run.story.size(); ++i) ASSERT_EQ(run.story[i], expected.story[i]);
        skipped += quick.skipped();
        operations += 20000;

        // Every sample has one fate, and each count is right.
        const ModelCounts& c = expected.counts;
        EXPECT_EQ(std::accumulate(c.fates.begin(), c.fates.end(), std::uint64_t{0}), c.chosen);
        EXPECT_EQ(plain.witness().samples.size(), c.chosen);
        EXPECT_EQ(c.pmu.sample_collision, c.with(Fate::collided));
        EXPECT_EQ(c.pmu.sample_feed - c.pmu.sample_filtrate, c.with(Fate::filtered));
        EXPECT_EQ(c.pmu.sample_pop + c.outside, 20000U);
        for (std::size_t f = 0; f < fate_count; ++f) fates[f] += c.fates[f];
    }
    // All fates occur in the streams, and most operations can be skipped.
    for (std::size_t f = 0; f < fate_count; ++f) EXPECT_GT(fates[f], 0U) << name(static_cast<Fate>(f));
    EXPECT_GT(skipped, operations / 2);
}

/// The part of an operation that an operation type packet can carry, as the reader gives it.
TEST(ModelProperty, OperationTypesReadBack) {
    Random random(3);
    Architecture arch = Architecture::of(Version::v1_4);
    arch.sve = arch.sme = true;
    for (unsigned i = 0; i < 20000; ++i) {
        Operation o = random_operation(random, 0).operation;
        if (o.load && o.store) o.store = false;
        if (o.kind == Kind::memory_set) o.store = true, o.load = false;
        if (o.kind == Kind::extended && !o.acquire_release && !o.exclusive && !o.atomic) continue;
        const OperationType type = operation_type(o, arch, true, true);
        const Operation read = operation(type.kind, type.type);
        EXPECT_EQ(read.kind, o.kind) << operation_text(o) << " / " << operation_text(read);
        EXPECT_EQ(read.load, o.load);
        EXPECT_EQ(read.store, o.store);
        if (o.kind == Kind::branch) {
            EXPECT_EQ(read.conditional, o.conditional);
            EXPECT_EQ(read.indirect, o.indirect);
            EXPECT_EQ(read.call, o.call);
            EXPECT_EQ(read.control_stack, o.control_stack);
        }
        if (o.kind == Kind::extended) {
            EXPECT_EQ(read.acquire_release, o.acquire_release);
            EXPECT_EQ(read.exclusive, o.exclusive);
            EXPECT_EQ(read.atomic, o.atomic);
        }
        if (o.kind == Kind::other || o.kind == Kind::sve || o.kind == Kind::sme) {
            EXPECT_EQ(read.floating_point, o.floating_point);
        }
        if (o.kind == Kind::sve || o.kind == Kind::sve_memory) {
            EXPECT_EQ(read.predicated, o.predicated);
            EXPECT_EQ(read.length_code, o.length_code & 7);
        }
        EXPECT_EQ(read.gather_scatter, o.kind == Kind::sve_memory && o.gather_scatter);
        if (o.kind == Kind::sme) {
            EXPECT_EQ(read.length_code, o.length_code);
        }
    }
}

/// The registers follow section 1.2 member by member: computed a second time here, with plain numbers.
TEST(ModelProperty, IntervalStepByStep) {
    for (const bool e_rnd : {false, true}) {
        test::UnitUnderTest unit;
        unit.config.state.arch = Architecture::of(Version::v1_2);
        unit.regs().pmsidr_el1.fn_e = true;
        unit.regs().pmblimitr_el1.fm = 0b10;
        unit.regs().pmsirr_el1.rnd = true;
        unit.regs().pmsidr_el1.e_rnd = e_rnd;
        Model& model = unit.model();
        unsigned chosen = 0;
        for (std::uint64_t i = 1; i <= 100000; ++i) {
            const PmsicrEl1 before = model.registers().pmsicr_el1;
            const bool next = model.until_next() == 0;
            const std::uint64_t already = model.counts().chosen;
            model.retire(test::other(1, i, 0));
            const PmsicrEl1 after = model.registers().pmsicr_el1;
            bool expected = false;
            if (before.count_31_0 == 1) {
                ASSERT_EQ(after.count_31_0, 0U);
                expected = !e_rnd || after.ecount == 0;
            } else {
                const bool reload = before.count_31_0 == 0;
                const std::uint32_t drawn = reload && !e_rnd ? 0xffU : 0U;
                ASSERT_EQ(after.count_31_0 & ~drawn, reload ? 0x100U : before.count_31_0 - 1);
                ASSERT_EQ(after.ecount, before.ecount == 0 ? 0 : before.ecount - 1);
                expected = before.ecount == 1;
            }
            ASSERT_EQ(model.counts().chosen - already, expected ? 1U : 0U);
            ASSERT_EQ(next, expected);
            chosen += expected;
        }
        EXPECT_NEAR(chosen, e_rnd ? 100000 / 257.0 : 100000 / 384.5, 12);
    }
}

}  // namespace
}  // namespace waymark::spe
