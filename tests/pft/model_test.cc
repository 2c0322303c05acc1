// The model of the macrocell against decoders, which know nothing of it, and against bytes worked out by hand.
// docs/spec/pft.md, section 5.

#include "waymark/pft/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pft/support.h"
#include "support/elements.h"
#include "support/model_driver.h"
#include "support/synthetic.h"
#include "waymark/pft/decoder.h"
#include "waymark/pft/reference_decoder.h"

namespace waymark::pft {
namespace {

using synthetic::Element;
using test::hex;

// ---- invented programs

template <class T, std::size_t N>
const T& pick(synthetic::Random& random, const T (&list)[N]) {
    return list[random.below(N)];
}

ModelConfig random_model(synthetic::Random& random) {
    ModelConfig m;
    Registers& r = m.registers;
    r.idr = from_value<Etmidr>(random.chance(2500) ? 0x411cf301 : 0x411cf312);
    r.ccer = from_value<Etmccer>(0x06c019ea);
    r.ccer.timestamp_64 = random.half();
    r.ccer.timestamp_binary = random.half();
    r.ccer.barrier_waypoints = random.chance(3000);
    r.cr.cycle_accurate = random.half();
    r.cr.return_stack = random.half();
    r.cr.branch_broadcast = !r.cr.return_stack && random.chance(3000);
    r.cr.timestamps = random.half();
    r.cr.vmid_trace = r.idr.minor == 1 && random.chance(3000);
    r.cr.context_id_size = static_cast<std::uint8_t>(random.half() ? 0 : random.below(4));
    r.syncfr.value = random.chance(2000) ? 0 : 60 + random.below(1000);
    r.auxcr.no_forced_overflow = random.half();
    r.teevr = from_value<Etmteevr>(0x60);  // external input 1
    ModelChoices& c = m.choices;
    c.update_base = pick(random, {ModelChoices::UpdateBase::either, ModelChoices::UpdateBase::is_base,
                                  ModelChoices::UpdateBase::is_not_base});
    c.return_stack_depth = static_cast<std::uint8_t>(random.half() ? 1 : random.below(17));
    c.large_block_address =
        pick(random, {ModelChoices::LargeBlockAddress::instruction_before, ModelChoices::LargeBlockAddress::waypoint});
    c.hyp_information =
        pick(random, {ModelChoices::HypInformation::set_or_changed, ModelChoices::HypInformation::changed});
    c.cycle_overflow = ModelChoices::CycleOverflow::wrap;  // so that counts can be summed up
    c.broadcast_barrier = pick(random, {ModelChoices::BroadcastBarrier::atom, ModelChoices::BroadcastBarrier::packet});
    c.short_information = random.half();
    c.overflow_async = random.half();
    c.async_flushes_atoms = random.half();
    c.timestamp_filter =
        pick(random, {ModelChoices::TimestampFilter::traced_since, ModelChoices::TimestampFilter::none});
    c.isync_delay_waypoints = static_cast<std::uint8_t>(random.half() ? 0 : random.below(6));
    if (random.chance(4000)) {
        c.fifo_bytes = 8 + random.below(56);
        c.drain_bytes = 1;
        c.drain_cycles = 4 + random.below(40);
    }
    c.timestamp_first = random() >> random.below(40) & 0x7fffffffffffU;
    c.timestamp_numerator = 1 + random.below(3);
    c.timestamp_denominator = 1 + random.below(3);
    return m;
}

template <class D>
std::vector<Element> decode(const Config& config, const isa::CodeReader& code, Bytes bytes) {
    flow::BlockTable table;
    synthetic::ElementSink sink;
    flow::BatchWriter out(table, sink);
    D decoder(config, code, out);
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}

/// How decoders must be set to read what was chosen; where the choice is made so that any reading is right, `other`.
Config reading(const ModelConfig& model, bool other) {
    Config c = model.packets();
    const ModelChoices& choices = model.choices;
    c.update_is_compression_base = choices.update_base == ModelChoices::UpdateBase::either
                                       ? !other
                                       : choices.update_base == ModelChoices::UpdateBase::is_base;
    c.hyp_kept_without_info_1 = choices.hyp_information == ModelChoices::HypInformation::changed || !other;
    return c;
}

struct Totals {
    ModelCounts counts;
    std::uint64_t elements = 0, timestamps = 0, triggers = 0, longest_zeros = 0;
};

/// Zero bits before each one bit, bytes least significant bit first, outside A-syncs (5.7, 2).
std::uint64_t longest_zeros(const test::Collected& packets, Bytes bytes) {
    std::uint64_t longest = 0, run = 0;
    for (const auto& item : packets.items) {
        if (item.text.starts_with("A-SYNC")) {
            run = 0;
            continue;
        }
        for (std::uint64_t i = item.first.value; i < item.first.value + item.bytes; ++i)
            for (unsigned bit = 0; bit < 8; ++bit) {
                run = (bytes[i] >> bit & 1) != 0 ? 0 : run + 1;
                longest = std::max(longest, run);
            }
    }
    return longest;
}

/// 5.7, 4: every address is as short as it may be.
void expect_shortest(const test::Collected& packets, const ModelConfig& model) {
    Place base, other;
    bool alt_isa = false;
    const auto take = [&](const Target& target, bool information, bool alt, unsigned least, bool update) {
        const auto isa_of = [&](Isa isa) { return isa == Isa::t32 && (information ? alt : alt_isa) ? Isa::tee : isa; };
        Place to = complete(target, base);
        to.isa = isa_of(to.isa == Isa::tee ? Isa::t32 : to.isa);
        const unsigned needed = std::max(compress(to, base, least).bytes, compress(to, other, least).bytes);
        EXPECT_EQ(target.bytes, needed);
        if (information) alt_isa = alt;
        if (!update || model.choices.update_base != ModelChoices::UpdateBase::is_not_base) base = to;
        if (!update || model.choices.update_base == ModelChoices::UpdateBase::is_base) other = to;
    };
    for (const Packet& packet : packets.packets) {
        if (const auto* isync = std::get_if<ISync>(&packet)) {
            base = other = {isync->address(), isync->isa()};
            alt_isa = isync->alt_isa;
        } else if (const auto* update = std::get_if<WaypointUpdate>(&packet)) {
            take(update->target, update->target.information, update->alt_isa, 1, true);
        } else if (const auto* branch = std::get_if<BranchAddress>(&packet)) {
            const bool information = branch->target.information;
            unsigned least = information ? 2 : 1;
            if (information && branch->exception() == 0 && !model.choices.short_information) least = 5;
            if (branch->exception() == exceptions::debug_entry) least = 5;
            take(branch->target, information, branch->alt_isa, least, false);
        }
    }
}

void check_case(std::uint64_t seed, Totals& totals, std::uint64_t steps = 1200) {
    synthetic::Random random(seed * 0x20003 + 11);
    ModelConfig model = random_model(random);
    synthetic::ProgramOptions program_options;
    program_options.seed = random();
    program_options.blocks = random.chance(3000) ? 30 : 300;
    program_options.sections = 1 + random.below(6);
    program_options.tee = random.chance(3000);
    program_options.barrier_waypoints = model.packets().barrier_waypoints;
    const synthetic::Program program = make_program(program_options);

    synthetic::WalkOptions walk;
    walk.seed = random();
    walk.trustzone = random.chance(7000);
    walk.virtualization = model.registers.idr.minor == 1 && walk.trustzone && random.half();
    if (random.chance(2000)) walk.exceptions = 2000;

    synthetic::ModelDriverOptions driver_options;
    driver_options.seed = random();
    if (random.chance(2000)) {
        driver_options.authentication.secure_non_invasive = false;
        walk.security_changes = 0;  // into a prohibited region go exceptions and indirect branches only
    }
    if (random.half())
        driver_options.sync_requests = driver_options.waits = driver_options.clock_changes = driver_options.flushes =
            50;
    if (random.chance(4000)) {
        driver_options.exclude = random.half();
        const unsigned count = 1 + random.below(8);
        for (unsigned i = 0; i < count; ++i) {
            const auto& b = program.blocks[random.below(static_cast<std::uint32_t>(program.blocks.size()))].block;
            const std::uint64_t from = b.start & ~std::uint64_t{0xff};
            driver_options.ranges.emplace_back(from, from + 0x100 + random.below(0x2000));
            model.registers.acvr[2 * i].value = static_cast<std::uint32_t>(driver_options.ranges.back().first);
            model.registers.acvr[2 * i + 1].value = static_cast<std::uint32_t>(driver_options.ranges.back().second);
        }
        model.registers.tecr1.exclude = driver_options.exclude;
        model.registers.tecr1.ranges = static_cast<std::uint8_t>((1U << count) - 1);
    }

    const Config packets = model.packets();
    SCOPED_TRACE("seed " + std::to_string(seed) + (packets.cycle_accurate ? " CA" : "") +
                 (packets.return_stack ? " return-stack" : "") + (packets.branch_broadcast ? " broadcast" : "") +
                 (packets.timestamps ? " timestamps" : "") + (packets.vmid_trace ? " VMID" : "") + " context-id " +
                 std::to_string(packets.context_id_bytes) + " v1." + std::to_string(packets.minor_version) + " fifo " +
                 std::to_string(model.choices.fifo_bytes) + " syncfr " + std::to_string(model.registers.syncfr.value));

    ByteCollector trace;
    synthetic::ModelDriver driver(model, driver_options, trace);
    synthetic::Walk(program, walk).run(driver, steps);
    driver.finish();
    ASSERT_EQ(driver.wrong(), "");
    ASSERT_EQ(driver.model().counts().bytes, trace.bytes().size());

    for (const bool other : {false, true}) {
        const Config config = reading(model, other);
        std::string wrong;
        const auto reference = decode<ReferenceDecoder>(config, program.memory, trace.bytes());
        ASSERT_EQ(difference(normalise(reference, driver, wrong), driver.truth(), "reference", "truth"), "");
        ASSERT_EQ(wrong, "");
        ASSERT_EQ(difference(decode<Decoder>(config, program.memory, trace.bytes()), reference, "fast", "reference"),
                  "");
        totals.elements += reference.size();
        for (const Element& e : reference) totals.timestamps += e.kind == synthetic::Kind::timestamp;
    }

    // 5.7, 3: what is sent is canonical.
    const test::Collected collected = test::collect(trace.bytes(), packets);
    std::vector<std::uint8_t> again;
    for (const Packet& packet : collected.packets) encode(again, packet, packets);
    ASSERT_EQ(again, trace.bytes());
    totals.longest_zeros = std::max(totals.longest_zeros, longest_zeros(collected, trace.bytes()));
    ASSERT_LT(totals.longest_zeros, 47U);
    expect_shortest(collected, model);
    totals.counts.waypoints += driver.model().counts().waypoints;
    totals.counts.untraced += driver.model().counts().untraced;
    totals.counts.overflowed += driver.model().counts().overflowed;
    totals.counts.overflows += driver.model().counts().overflows;
}

TEST(Model, BothDecodersGiveWhatRan) {
    Totals totals;
    for (std::uint64_t seed = 1; seed <= 500; ++seed) {
        check_case(seed, totals);
        ASSERT_FALSE(HasFailure()) << "seed " << seed;
    }
    std::printf("%llu waypoints traced, %llu not, %llu lost in %llu overflows; %llu elements, %llu timestamps\n",
                static_cast<unsigned long long>(totals.counts.waypoints),
                static_cast<unsigned long long>(totals.counts.untraced),
                static_cast<unsigned long long>(totals.counts.overflowed),
                static_cast<unsigned long long>(totals.counts.overflows),
                static_cast<unsigned long long>(totals.elements), static_cast<unsigned long long>(totals.timestamps));
}

}  // namespace
}  // namespace waymark::pft
