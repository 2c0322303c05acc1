/// The unit under random events and programs, in all modes: the decoders find the true events in the trace buffer, by
/// an account with 64 bits that shares nothing with the model; losses are those that the trace declares.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "dpu/support.h"
#include "dpu/unit_driver.h"
#include "support/random.h"
#include "support/sanitized.h"

namespace waymark::dpu {
namespace {

using synthetic::Random;
using test::Driver;
using test::trace_control;

unsigned rounds(unsigned usual) {
    const char* more = std::getenv("WAYMARK_PROPERTY_ROUNDS");
    return more != nullptr ? static_cast<unsigned>(std::strtoul(more, nullptr, 10)) : sized(usual, usual / 5);
}

/// Section 4 as plainly as can be: raw register values, one counter at a time, totals in 64 bits.
class CounterTruth {
public:
    struct Counter {
        bool on = false, seen = false;
        std::uint64_t start = 0, counted = 0;  // since the value was written
        bool stopped_at_zero = false;
        std::uint64_t total = 0;  // ever

        [[nodiscard]] std::uint32_t value() const { return static_cast<std::uint32_t>((start - counted) & 0x7fffffff); }
    };

    void write(std::uint32_t offset, std::uint32_t value) { pending_.emplace_back(offset, value); }

    void cycle(const CycleInput& in) {
        std::array<bool, 6> was{}, enable{}, disable{};
        for (unsigned i = 0; i < 6; ++i) was[i] = counters[i].on;
        for (const auto& [offset, value] : pending_) {
            const std::uint32_t before = std::exchange(registers_[offset], value);
            for (unsigned i = 0; i < 6; ++i) {
                const std::uint32_t triad = i < 3 ? 0x20 : 0x24;
                if (offset == triad && ((before ^ value) & 1) != 0) counters[i].on = was[i] = false;
                const bool rules = offset == (grouped(i) ? triad : own(i));
                if (rules && (value >> 16 & 15) == 15) enable[i] = true;
                if (rules && (value >> 24 & 15) == 15) disable[i] = true;
                if (offset == own(i) + 4)
                    counters[i] = {counters[i].on, counters[i].seen, value & 0x7fffffff, 0, false, counters[i].total};
            }
        }
        pending_.clear();
        const bool match = matches(in.ctx);
        for (unsigned i = 0; i < 6; ++i) {
            const std::uint32_t c = control(i);
            if (happened(c >> 16 & 15, in) && passes(c >> 20 & 3, in.ctx, match)) enable[i] = true;
            if (happened(c >> 24 & 15, in) && passes(c >> 28 & 3, in.ctx, match)) disable[i] = true;
            Counter& k = counters[i];
            const bool counting = was[i] && k.on && !disable[i];
            if (enable[i] && !k.on) k.seen = false;
            k.on = (k.on || enable[i]) && !disable[i];
            if (k.on && match) k.seen = true;
            if (!counting || !passes(c >> 12 & 3, in.ctx, match)) continue;
            const std::uint64_t n = events((c >> 4) & 31, i % 3, k, in, match);
            const std::uint64_t left = k.value();
            k.total += n;
            const bool one_shot = (c >> 1 & 3) != 1;
            if (one_shot && left != 0 && n >= left) {
                k.start = k.counted = 0;
                k.on = false;
                fired[i] = true;
            } else {
                k.counted += n;
            }
        }
        last_match_ = match;
        last_ = in.ctx;
    }

    std::array<Counter, 6> counters;
    std::array<bool, 6> fired{};
    bool tids = false;  // task IDs are also data IDs

private:
    [[nodiscard]] static std::uint32_t own(unsigned i) { return (i < 3 ? 0x2c : 0x54 - 3 * 8) + i * 8; }
    [[nodiscard]] bool grouped(unsigned i) { return (registers_[i < 3 ? 0x20 : 0x24] & 1) != 0; }
    [[nodiscard]] std::uint32_t control(unsigned i) { return registers_[grouped(i) ? (i < 3 ? 0x20 : 0x24) : own(i)]; }
    [[nodiscard]] bool matches(const CoreContext& c) {
        const std::uint32_t how = registers_[0x00] >> 28 & 3;
        return ((how & 1) == 0 || c.pid == (registers_[0x0c] & 255)) &&
               ((how & 2) == 0 || c.did == (registers_[0x10] & 255));
    }
    [[nodiscard]] static bool passes(std::uint32_t code, const CoreContext& c, bool match) {
        if (code == 0) return true;
        return match && (code == 3 || c.supervisor == (code == 2));
    }
    [[nodiscard]] static std::uint64_t of(const CycleInput& in, ItemKind kind, int channel = -1) {
        return static_cast<std::uint64_t>(std::count_if(in.items.begin(), in.items.end(), [&](const EonceItem& item) {
            return item.kind == kind && (channel < 0 || item.channel == channel);
        }));
    }
    [[nodiscard]] static bool happened(std::uint32_t code, const CycleInput& in) {
        if (code >= 1 && code <= 6) return of(in, ItemKind::edca, static_cast<int>(code) - 1) != 0;
        if (code == 7) return of(in, ItemKind::edcd) != 0;
        if (code == 8) return of(in, ItemKind::mark) != 0;
        return code == 9 && of(in, ItemKind::debugev) != 0;
    }
    [[nodiscard]] std::uint64_t events(std::uint32_t set, unsigned position, const Counter& k, const CycleInput& in,
                                       bool match) const {
        if (set > 20) return 0;
        const EventWire wire = event_set(set)[position];
        const std::uint64_t clock = in.in_debug ? 0 : 1;
        const auto interrupts = [&](bool exceptions) {
            return static_cast<std::uint64_t>(
                std::count_if(in.items.begin(), in.items.end(), [&](const EonceItem& item) {
                    return item.kind == ItemKind::interrupt && (item.cause != InterruptCause::interrupt) == exceptions;
                }));
        };
        switch (wire) {
            case EventWire::none: return 0;
            case EventWire::cycles: return clock;
            case EventWire::task_active: return match ? clock : 0;
            case EventWire::task_total: return k.seen ? clock : 0;
            case EventWire::task_in: return match && !last_match_ ? 1 : 0;
            case EventWire::task_switches:
                return last_ && (tids ? last_->did != in.ctx.did : last_->pid != in.ctx.pid) ? 1 : 0;
            case EventWire::interrupts: return interrupts(false);
            case EventWire::exceptions: return interrupts(true);
            case EventWire::mark: return of(in, ItemKind::mark);
            case EventWire::debugev: return of(in, ItemKind::debugev);
            case EventWire::edca0:
            case EventWire::edca1:
            case EventWire::edca2:
            case EventWire::edca3:
            case EventWire::edca4:
            case EventWire::edca5:
                return of(in, ItemKind::edca, static_cast<int>(wire) - static_cast<int>(EventWire::edca0));
            default: return in.wire[static_cast<std::size_t>(wire)];
        }
    }

    std::map<std::uint32_t, std::uint32_t> registers_;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> pending_;
    bool last_match_ = false;
    std::optional<CoreContext> last_;
};

/// Random execution: contexts that interrupts and the MMU change, loops that jump back again and again.
class Execution {
public:
    explicit Execution(Random& random) : random_(random) {}

    /// Fills `in` with a cycle; items live until the next.
    void next(CycleInput& in, unsigned items_in_100, bool tasks_change) {
        items_.clear();
        in.ctx = now_;
        if (tasks_change && random_.chance(200)) in.ctx = now_ = {random_.half(), id(), id()};
        in.in_debug = random_.chance(300);
        in.bus_others = random_.half();
        for (unsigned i = 0; i < event_wires; ++i)
            in.wire[i] = is_duration(static_cast<EventWire>(i)) ? random_.below(2) : random_.below(4);
        in.wire[static_cast<std::size_t>(EventWire::twb_low)] = 77;  // the unit's own: not listened to
        if (loop_left_ != 0) {
            --loop_left_;
            loop_.after = now_;
            items_.push_back(loop_);
        } else if (random_.below(100) < items_in_100) {
            items_.push_back(random_item());
        }
        in.items = items_;
    }

private:
    [[nodiscard]] std::uint8_t id() { return static_cast<std::uint8_t>(2 + random_.below(4)); }
    [[nodiscard]] std::uint32_t pc() { return 0x00400000 + 2 * random_.below(64); }
    EonceItem random_item() {
        EonceItem item;
        item.kind = static_cast<ItemKind>(random_.below(12));
        item.src = pc();
        item.dst = pc();
        item.channel = static_cast<std::uint8_t>(random_.below(6));
        item.cause = static_cast<InterruptCause>(random_.below(3));
        item.count = static_cast<std::uint32_t>(random_());
        item.ext = static_cast<std::uint32_t>(random_());
        if (item.kind == ItemKind::interrupt) now_.supervisor = true;
        if (item.kind == ItemKind::rte) now_ = {random_.chance(2000), id(), id()};
        item.after = now_;
        const bool loops = item.kind == ItemKind::loop_short || item.kind == ItemKind::loop_long;
        if ((loops || item.kind == ItemKind::cof) && random_.half()) {
            loop_ = item;
            if (!loops) std::tie(loop_.dst, loop_.src) = std::minmax(item.src, item.dst);
            loop_left_ = 1 + random_.below(20);
            item = loop_;
        }
        return item;
    }

    Random& random_;
    CoreContext now_{false, 5, 5};
    std::vector<EonceItem> items_;
    EonceItem loop_;
    unsigned loop_left_ = 0;
};

std::uint32_t random_control(Random& random, bool triad) {
    const std::uint32_t codes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 15};
    std::uint32_t value = random.below(4) << 28 | random.below(4) << 20 | random.below(4) << 12;
    value |= codes[random.below(10)] << 24 | codes[random.below(12)] << 16;
    if (random.half()) value &= ~(3U << 28 | 3U << 20 | 3U << 12 | 15U << 24);
    std::uint32_t set = random.below(21);
    if (set == 15) set = 2;  // the buffer's own events have a test of their own
    value |= set << 4 | (random.chance(7000) ? 2U : 0U);
    return triad ? value | random.below(2) : value;
}

std::uint32_t random_value(Random& random) {
    switch (random.below(4)) {
        case 0: return random.below(40);
        case 1: return 0x7ff85000 + random.below(0x800);  // words of the flag page
        case 2: return 0x7fffffff;
        default: return static_cast<std::uint32_t>(random()) & 0x7fffffff;
    }
}

constexpr std::uint32_t control_offsets[] = {0x20, 0x24, 0x2c, 0x34, 0x3c, 0x54, 0x5c, 0x64};
constexpr std::uint32_t value_offsets[] = {0x30, 0x38, 0x40, 0x58, 0x60, 0x68};

/// A unit and its truth, which get the same input.
struct Pair {
    Driver d;
    CounterTruth truth;
    explicit Pair(const ModelConfig& config, std::uint32_t lines = 64) : d(config, lines) {}
    void write(std::uint32_t offset, std::uint32_t value) {
        d.write(offset, value);
        truth.write(offset, value);
    }
    void random_writes(Random& random) {
        if (random.chance(300)) write(value_offsets[random.below(6)], random_value(random));
        if (random.chance(300)) {
            const unsigned k = random.below(8);
            write(control_offsets[k], random_control(random, k < 2));
        }
        if (random.chance(50)) write(DpCr::offset, random.below(4) << 28);
        if (random.chance(50)) write(DpRpid::offset, 2 + random.below(4));
        if (random.chance(50)) write(DpRdid::offset, 2 + random.below(4));
    }
    void begin(Random& random) {
        for (const std::uint32_t offset : value_offsets) write(offset, random_value(random));
        for (unsigned k = 0; k < 8; ++k) write(control_offsets[k], random_control(random, k < 2));
        if (random.half()) {
            write(DpTac::offset, 0x000f0023);
            write(DpTbc::offset, 0x000f0073);
        }
        write(DpCr::offset, random.below(4) << 28);
        write(DpRpid::offset, 2 + random.below(4));
        write(DpRdid::offset, 2 + random.below(4));
    }
    void check_counters(std::uint64_t cycle) const {
        for (unsigned i = 0; i < counter_count; ++i) {
            ASSERT_EQ(d.model.values()[i], truth.counters[i].value()) << "counter " << i << ", cycle " << cycle;
            ASSERT_EQ((d.read(DpSr::offset) >> i & 1) != 0, truth.counters[i].on) << "counter " << i << ", " << cycle;
            ASSERT_EQ((d.read(DpMr::offset) >> i & 1) != 0, truth.fired[i]) << "counter " << i << ", " << cycle;
        }
    }
};

// Requirements: R4 R10 R25 R27 R28 R29 R31 R36 R79 R81 R84 R86 R87 R88 R89 R90 R91 R92 R97 R107 R118
TEST(DpuModelProperty, CountersUnderRandomPrograms) {
    for (unsigned seed = 0; seed < rounds(60); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed);
        Pair p{ModelConfig{}};
        Execution execution(random);
        p.begin(random);
        for (unsigned cycle = 0; cycle < 600; ++cycle) {
            p.random_writes(random);
            execution.next(p.d.in, 20, true);
            p.truth.cycle(p.d.in);
            p.d.model.step(p.d.in);
            p.check_counters(cycle);
            if (HasFatalFailure()) return;
        }
    }
}

/// The entries that the trace should contain, item by item (5.3), with the counters of the account.
struct EntryTruth {
    TraceMode mode;
    bool tids = false, uden = false;
    std::optional<TaskContext> last_switch;
    std::vector<Entry> entries;

    [[nodiscard]] TaskContext shown(const CoreContext& c) const { return {c.supervisor, tids ? c.did : c.pid}; }
    void cycle(const CycleInput& in, const CounterTruth& truth, bool sample, const std::vector<std::uint32_t>& data) {
        Counters values{};
        for (unsigned i = 0; i < counter_count; ++i) values[i] = truth.counters[i].value();
        if (!last_switch) last_switch = shown(in.ctx);
        CoreContext now = in.ctx;
        for (const EonceItem& item : in.items) {
            const bool interrupts = item.kind == ItemKind::interrupt || item.kind == ItemKind::rte;
            const bool calls = item.kind == ItemKind::call || item.kind == ItemKind::ret;
            const TaskContext after = shown(item.after);
            if (mode == TraceMode::task && interrupts && *last_switch != after) {
                entries.emplace_back(TaskSwitch{item.src, item.dst, values, after});
                last_switch = after;
            }
            if (mode == TraceMode::flow && (interrupts || calls))
                entries.emplace_back(Flow{item.src, item.dst, values, after});
            if (mode == TraceMode::edca5 && item.kind == ItemKind::edca && item.channel == 5)
                entries.emplace_back(Sample{after, values});
            now = item.after;
        }
        if (sample && mode != TraceMode::user_raw) entries.emplace_back(Sample{shown(now), values});
        for (const std::uint32_t datum : data) {
            if (mode == TraceMode::user_raw)
                entries.emplace_back(UserRaw{datum});
            else if (mode == TraceMode::user || uden)
                entries.emplace_back(UserData{shown(now), datum});
        }
    }
};

/// Entries with contents, and the number of entries that were lost before each.
struct Decoded {
    std::vector<Entry> entries;
    std::vector<std::uint64_t> lost_before;
    std::uint64_t lost = 0;
    bool sound = true;
};
Decoded decoded(const std::vector<std::uint32_t>& words, const TraceFormat& format) {
    const auto parsed = test::parse(test::memory(words), format, true);
    Decoded out;
    for (const test::Item& item : parsed.items) out.sound &= !item.text.starts_with("no entry");
    for (const Entry& entry : parsed.entries) {
        if (const auto* gap = std::get_if<GapEntry>(&entry)) {
            out.lost += gap->lost;
        } else if (!std::holds_alternative<Pad>(entry) && !std::holds_alternative<Closed>(entry) &&
                   !std::holds_alternative<ContextEntry>(entry)) {
            out.entries.push_back(entry);
            out.lost_before.push_back(out.lost);
        }
    }
    return out;
}

// Requirements: R3 R26 R32 R33 R34 R35 R40 R53 R54 R55 R61 R64 R66 R68 R71 R72 R74 R76 R80 R101 R113
TEST(DpuModelProperty, EntriesAndLossInAllSamplingModes) {
    std::uint64_t lost = 0, kept = 0, wraps = 0;
    for (unsigned seed = 0; seed < rounds(150); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed + 1000);
        const auto mode = static_cast<TraceMode>(2 + seed % 6);
        ModelConfig config = Driver::traced(mode);
        config.eonce.tchof = random.half();
        config.choices.bus_cycles_per_line = 1 + random.below(4);
        const bool starved = seed % 3 == 0;
        if (starved) config.choices.high = random.half() ? ModelChoices::Grant::when_idle : ModelChoices::Grant::never;
        Pair p{config, 4 + random.below(8)};
        Execution execution(random);
        p.begin(random);
        EntryTruth truth{mode, random.half(), random.half(), {}, {}};
        const std::uint32_t burst = random.below(4) << 16;
        const std::uint32_t how = random.half() ? test::tc_request : 0;
        const std::uint32_t tc =
            trace_control(mode, burst | how | (truth.tids ? test::tc_tids : 0) | (truth.uden ? test::tc_uden : 0));
        p.d.write(DpTer::offset, Driver::base + 32 * random.below(8));
        p.d.write(DpTc::offset, tc);
        p.truth.tids = truth.tids;
        for (unsigned cycle = 0; cycle < 1500; ++cycle) {
            if (cycle != 0 && random.chance(100)) p.random_writes(random);
            bool sample = false;
            std::vector<std::uint32_t> data;
            if (cycle != 0 && mode != TraceMode::user_raw && random.chance(500)) {
                sample = true;
                p.d.write(DpTc::offset, tc | test::tc_sample);
            }
            if (cycle != 0 && random.chance(500)) {
                // In USERRAW a record's first word is odd; the two words of pads are avoided.
                data.push_back(static_cast<std::uint32_t>(random()) | 1U);
                if (data[0] >> 12 == 0xfff0a) data.clear();
                if (!data.empty()) p.d.write(DpTd::offset, data[0]);
            }
            if (starved && random.chance(100))
                p.d.model.set_arbiter(static_cast<ModelChoices::Grant>(random.below(3)), config.choices.low);
            execution.next(p.d.in, 40, true);
            p.truth.cycle(p.d.in);
            truth.cycle(p.d.in, p.truth, sample, data);
            std::vector<EonceItem> items(p.d.in.items.begin(), p.d.in.items.end());
            p.d.step(items);
            p.check_counters(cycle);
            if (HasFatalFailure()) return;
        }
        p.d.model.set_arbiter(ModelChoices::Grant::always, ModelChoices::Grant::always);
        p.d.close();

        const Decoded found = decoded(p.d.written, config.format(from_value<DpTc>(tc)));
        EXPECT_TRUE(found.sound);
        const std::uint64_t all_lost = p.d.model.counts().lost;
        if (mode != TraceMode::user_raw) {
            ASSERT_EQ(found.lost, all_lost);
        }
        ASSERT_EQ(found.entries.size() + all_lost, truth.entries.size());
        for (std::size_t i = 0; i < found.entries.size() && mode != TraceMode::user_raw; ++i)
            ASSERT_EQ(found.entries[i], truth.entries[i + found.lost_before[i]]) << "entry " << i;
        if (mode == TraceMode::user_raw && all_lost == 0) {
            ASSERT_EQ(found.entries, truth.entries);
        }
        EXPECT_EQ(all_lost != 0, p.d.get<DpMr>().tlost);
        lost += all_lost;
        kept += found.entries.size();

        // The buffer holds the end of the written trace, and decodes as that end (wrap and overwrite).
        const bool wrapped = p.d.get<DpMr>().twrap;
        wraps += wrapped;
        const auto in_memory = p.d.vtb.in_order(p.d.read(DpTw::offset), wrapped);
        ASSERT_LE(in_memory.size(), p.d.written.size());
        ASSERT_TRUE(std::equal(in_memory.rbegin(), in_memory.rend(), p.d.written.rbegin()));
        if (mode != TraceMode::user_raw) {
            const Decoded tail = decoded(in_memory, config.format(from_value<DpTc>(tc)));
            ASSERT_LE(tail.entries.size(), found.entries.size());
            ASSERT_TRUE(std::equal(tail.entries.rbegin(), tail.entries.rend(), found.entries.rbegin()));
        }
    }
    EXPECT_GT(lost, 100U);
    EXPECT_GT(kept, sized(10000U, 2000U));
    EXPECT_GT(wraps, 10U);
}

// Requirements: R1 R2 R31 R34 R64 R68 R101 R112 R121 R128 R129
TEST(DpuModelProperty, SumsPerTaskEqualTheAccount) {
    std::uint64_t activations = 0;
    for (unsigned seed = 0; seed < rounds(60); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed + 30000);
        Pair p{Driver::traced(TraceMode::task), 0x2000};
        for (const std::uint32_t offset : value_offsets) p.write(offset, random_value(random));
        for (const std::uint32_t offset : {DpTac::offset, DpTbc::offset})
            p.write(offset, 0x000f0003 | random.below(15) << 4);  // all three counters from here on, wrapping
        const std::uint32_t tc = trace_control(TraceMode::task);
        p.d.write(DpTc::offset, tc);
        Execution execution(random);
        using Key = std::pair<bool, std::uint8_t>;
        std::map<Key, std::array<std::uint64_t, counter_count>> truth, reported;
        std::vector<Key> stays, shown;
        for (unsigned cycle = 0; cycle < 3000; ++cycle) {
            execution.next(p.d.in, 20, false);
            const CoreContext ctx = p.d.in.ctx;
            const auto before = p.truth.counters;
            const bool sample = cycle != 0 && random.chance(100);
            if (sample) p.d.write(DpTc::offset, tc | test::tc_sample);
            p.truth.cycle(p.d.in);
            const Key key{ctx.supervisor, ctx.pid};
            if (stays.empty() || stays.back() != key) stays.push_back(key);
            for (unsigned i = 0; i < counter_count; ++i) truth[key][i] += p.truth.counters[i].total - before[i].total;
            const std::vector<EonceItem> items(p.d.in.items.begin(), p.d.in.items.end());
            p.d.step(items);
        }
        // A last sample closes the last stay.
        p.d.write(DpTc::offset, tc | test::tc_sample);
        const auto before = p.truth.counters;
        p.d.in.in_debug = false;
        p.truth.cycle(p.d.in);
        const Key last{p.d.in.ctx.supervisor, p.d.in.ctx.pid};
        if (stays.back() != last) stays.push_back(last);
        for (unsigned i = 0; i < counter_count; ++i) truth[last][i] += p.truth.counters[i].total - before[i].total;
        p.d.in.bus_others = false;
        p.d.step();
        p.d.close();
        ASSERT_EQ(p.d.model.counts().lost, 0U);
        ASSERT_FALSE(p.d.get<DpMr>().twrap);

        const TracePeriod& period = p.d.model.periods().at(0);
        const StartState begin{TaskContext{period.context.supervisor, period.context.pid}, period.initial};
        const auto in_memory = p.d.vtb.in_order(p.d.read(DpTw::offset), false);
        const auto found = test::decode<Decoder>(test::memory(in_memory),
                                                 p.d.model.config().format(from_value<DpTc>(tc)), begin, true);
        EXPECT_EQ(found.totals.lost_bytes(), 0U);
        Key at{period.context.supervisor, period.context.pid};
        shown.push_back(at);
        for (const Element& e : found.elements) {
            if (!e.has_reading()) continue;
            for (unsigned i = 0; i < counter_count; ++i) reported[at][i] += found.readings[e.value].deltas[i];
            at = {e.context.supervisor, e.context.id};
            if (shown.back() != at) shown.push_back(at);
        }
        ASSERT_EQ(reported, truth);
        ASSERT_EQ(shown, stays);
        activations += stays.size();
    }
    EXPECT_GT(activations, sized(2000U, 400U));
}

/// The elements of one item once loops are written out again.
struct Reported {
    std::uint32_t src{}, dst{};
    bool pc_alone = false, dst_known = true;
    TaskContext context;
};

// Requirements: R16 R17 R18 R19 R20 R21 R22 R23 R24 R45 R49 R50 R51 R52 R77 R78 R104 R105 R106 R115 R116 R117
TEST(DpuModelProperty, EonceWordsRawAndCompressed) {
    std::uint64_t loops = 0;
    for (unsigned seed = 0; seed < rounds(120); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed + 5000);
        const auto mode = seed % 2 == 0 ? TraceMode::eonce_raw : TraceMode::eonce_comp;
        ModelConfig config;
        EonceSetup& e = config.eonce;
        for (bool* on : {&e.tchof, &e.tint, &e.tloop, &e.tsub, &e.trte}) *on = random.chance(8000);
        if (random.half())
            e.tcount = random.half(), e.tcntext = random.half();
        else
            e.tmark = random.half(), e.texec = random.half();
        Driver d(config, 8);
        const bool tids = random.half();
        // With bursts of eight, the buffer is full before it asks: several entries in one cycle may be lost.
        const std::uint32_t tc =
            trace_control(mode, random.below(3) << 16 | (tids ? test::tc_tids : 0) | test::tc_uden);
        d.write(DpTc::offset, tc);
        Execution execution(random);
        std::vector<Reported> truth;
        CoreContext now;
        for (unsigned cycle = 0; cycle < 1500; ++cycle) {
            if (cycle != 0 && random.chance(50)) d.write(DpTc::offset, tc | test::tc_sample);
            if (cycle != 0 && random.chance(50)) d.write(DpTd::offset, cycle);
            execution.next(d.in, 40, true);
            d.in.bus_others = false;
            now = d.in.ctx;
            for (const EonceItem& item : d.in.items) {
                const bool traced = item.kind == ItemKind::call || item.kind == ItemKind::ret ? e.tchof || e.tsub
                                    : item.kind == ItemKind::rte                              ? e.tchof || e.trte
                                    : item.kind == ItemKind::interrupt                        ? e.tint
                                    : item.kind == ItemKind::cof                              ? e.tchof
                                    : item.kind == ItemKind::loop_short || item.kind == ItemKind::loop_long ? e.tloop
                                    : item.kind == ItemKind::mark                                           ? e.tmark
                                                                  : item.kind == ItemKind::exec_set && e.texec;
                const bool alone =
                    item.kind == ItemKind::loop_short || item.kind == ItemKind::mark || item.kind == ItemKind::exec_set;
                if (traced)
                    truth.push_back({item.src,
                                     alone ? 0 : item.dst,
                                     alone,
                                     true,
                                     {item.after.supervisor, tids ? item.after.did : item.after.pid}});
            }
            std::vector<EonceItem> items(d.in.items.begin(), d.in.items.end());
            d.step(items);
        }
        d.close();
        EXPECT_EQ(d.model.counts().lost, 0U);

        // Pairs written out again. A context entry directly after a pair applies from its destination.
        const auto parsed = test::parse(test::memory(d.written), config.format(from_value<DpTc>(tc)), true);
        std::vector<Reported> reported;
        TaskContext context;
        bool behind_pair = false;
        for (const Entry& entry : parsed.entries) {
            const bool was_behind = std::exchange(behind_pair, false);
            if (const auto* c = std::get_if<ContextEntry>(&entry)) {
                context = c->context;
                if (was_behind) reported.back().context = context;
            } else if (const auto* s = std::get_if<Sample>(&entry)) {
                context = s->context;
            } else if (const auto* u = std::get_if<UserData>(&entry)) {
                context = u->context;
            } else if (const auto* pair = std::get_if<RawPair>(&entry)) {
                reported.push_back({pair->source, pair->destination, false, true, context});
                behind_pair = true;
            } else if (const auto* pc = std::get_if<RawPc>(&entry)) {
                reported.push_back({pc->pc, 0, true, true, context});
            } else if (const auto* flow = std::get_if<CompressedFlow>(&entry)) {
                context = flow->context;
                reported.push_back({flow->source, flow->destination, false, true, context});
            } else if (const auto* marked = std::get_if<CompressedPc>(&entry)) {
                context = marked->context;
                reported.push_back({marked->pc, 0, true, true, context});
            } else if (const auto* shorter = std::get_if<ShortLoop>(&entry)) {
                EXPECT_EQ(shorter->id, context.id);
                reported.insert(reported.end(), shorter->reps, {shorter->last_address, 0, true, true, context});
                ++loops;
            } else if (const auto* longer = std::get_if<LongLoop>(&entry)) {
                EXPECT_EQ(longer->id, context.id);
                reported.insert(reported.end(), longer->reps, {longer->last_address, 0, false, false, context});
                ++loops;
            }
        }
        ASSERT_EQ(reported.size(), truth.size());
        for (std::size_t i = 0; i < reported.size(); ++i) {
            ASSERT_EQ(reported[i].src, truth[i].src) << i;
            ASSERT_EQ(reported[i].pc_alone, truth[i].pc_alone) << i;
            if (reported[i].dst_known) {
                ASSERT_EQ(reported[i].dst, truth[i].dst) << i;
            }
            // With a sample in the same cycle, the pair's own context entry does not follow it.
            if (mode == TraceMode::eonce_comp) {
                ASSERT_EQ(reported[i].context, truth[i].context) << i;
            }
        }
    }
    EXPECT_GT(loops, 500U);
}

// Requirements: R40 R55 R57 R73 R74 R75 R76 R79
TEST(DpuModelProperty, WhateverTheProgramTheTraceIsUnderstood) {
    constexpr std::uint32_t offsets[] = {0x00, 0x04, 0x08, 0x0c, 0x10, 0x14, 0x20, 0x24, 0x2c, 0x30, 0x34, 0x38, 0x3c,
                                         0x40, 0x54, 0x58, 0x5c, 0x60, 0x64, 0x68, 0x7c, 0x80, 0x84, 0x88, 0x8c, 0x90};
    std::uint64_t entries = 0, lost = 0, periods = 0, modes = 0;
    for (unsigned seed = 0; seed < rounds(150); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed + 20000);
        ModelConfig config;
        EonceSetup& e = config.eonce;
        for (bool* on : {&e.tchof, &e.tint, &e.tmark, &e.tloop, &e.tsub, &e.trte}) *on = random.half();
        e.texec = random.chance(1000);
        config.choices.high = static_cast<ModelChoices::Grant>(random.below(2));
        config.choices.full = random.chance(1000) ? ModelChoices::Full::stall : ModelChoices::Full::drop;
        config.choices.bus_cycles_per_line = 1 + random.below(40);
        Model model(config);
        test::PeriodCheck trace;
        Execution execution(random);
        CycleInput in;
        const auto trace_register = [&] {
            std::uint32_t tc = static_cast<std::uint32_t>(random()) & 0x033f0fa0;
            tc |= (random.chance(500) ? random.below(16) : random.below(8)) << 1;
            if (random.chance(500)) tc |= test::tc_tmpdis;
            return random.chance(8500) ? tc | 1U : 0U;
        };
        model.write(DpTea::offset, 0x1000);
        for (unsigned cycle = 0; cycle < 2000; ++cycle) {
            if (random.chance(150)) model.write(DpTc::offset, trace_register());
            if (random.chance(200)) model.write(DpTd::offset, static_cast<std::uint32_t>(random()));
            // Any register with any value; the buffer's registers seldom, so that something is traced.
            if (random.chance(100)) {
                const std::uint32_t offset = offsets[random.below(26)];
                if (offset < 0x80 || offset == 0x90 || random.chance(300))
                    model.write(offset, static_cast<std::uint32_t>(random()));
                if (random.chance(3000)) {
                    model.write(DpTsa::offset, 0);
                    model.write(DpTea::offset, 0x1000);
                    model.write(DpTw::offset, 32 * random.below(0x80));
                }
            }
            execution.next(in, 40, true);
            trace.take(model, model.step(in));
            if (random.chance(1000)) {
                in.items = {};
                if (const CycleOutput* out = model.run(in, random.below(60))) trace.take(model, *out);
            }
        }
        ASSERT_EQ(trace.misunderstood(model), 0U);
        entries += model.counts().entries;
        lost += model.counts().lost;
        periods += model.periods().size();
        for (const TracePeriod& p : model.periods()) modes |= 1U << from_value<DpTc>(p.tc).tmode;
    }
    EXPECT_GT(entries, sized(10000U, 2000U));
    EXPECT_GT(lost, sized(10U, 2U));
    EXPECT_GT(periods, sized(500U, 100U));
    EXPECT_EQ(modes & 0xff, 0xffU);
}

/// Memory and registers after two ways of passing the same events.
void expect_same(const Driver& a, const Driver& b) {
    ASSERT_EQ(a.words(), b.words());
    ASSERT_EQ(a.model.counts(), b.model.counts());
    const Registers mine = a.model.registers(), others = b.model.registers();
    Registers::for_each(mine, [&](const auto& r) {
        const auto other = others.get(r.offset);
        ASSERT_EQ(to_value(r), other.value_or(0)) << r.name;
    });
    ASSERT_EQ(a.bursts.size(), b.bursts.size());
    for (std::size_t i = 0; i < a.bursts.size(); ++i) {
        ASSERT_EQ(a.bursts[i].cycle, b.bursts[i].cycle) << i;
        ASSERT_EQ(a.bursts[i].address, b.bursts[i].address) << i;
    }
}

TEST(DpuModelProperty, StretchesAreTheSameAsCycles) {
    std::uint64_t stretches = 0;
    for (unsigned seed = 0; seed < rounds(120); ++seed) {
        SCOPED_TRACE("seed " + std::to_string(seed));
        Random random(seed + 9000);
        const auto mode = static_cast<TraceMode>(random.below(8));
        ModelConfig config = Driver::traced(mode);
        config.choices.bus_cycles_per_line = 1 + random.below(40);
        config.choices.high = static_cast<ModelChoices::Grant>(random.below(3));
        config.choices.drain_words_per_cycle = random.below(3);
        Driver a(config), b(config);
        const auto write = [&](std::uint32_t offset, std::uint32_t value) {
            a.write(offset, value);
            b.write(offset, value);
        };
        for (const std::uint32_t offset : value_offsets) write(offset, random_value(random));
        for (unsigned k = 0; k < 8; ++k) {
            std::uint32_t control = random_control(random, k < 2);
            if (random.chance(2000)) control = (control & ~(31U << 4)) | 15U << 4;
            write(control_offsets[k], control);
        }
        write(DpCr::offset, random.below(4) << 28 | (static_cast<std::uint32_t>(random()) & 0x3fff));
        write(DpRpid::offset, 5);
        write(DpTer::offset, Driver::base + 0x48);
        std::uint32_t tc = trace_control(mode, random.below(4) << 16 | random.below(3) << 8 |
                                                   (random.half() ? test::tc_uden | test::tc_ctxen : 0) |
                                                   (random.half() ? test::tc_idflt : 0));
        write(DpTc::offset, tc);
        Execution execution(random);
        CycleInput in;
        for (unsigned turn = 0; turn < 300; ++turn) {
            execution.next(in, 60, true);
            a.in = b.in = in;
            const std::vector<EonceItem> items(in.items.begin(), in.items.end());
            a.step(items);
            b.step(items);
            // A stretch of cycles; its events are at any place in it.
            const std::uint64_t cycles = random.below(50);
            const bool others = random.half(), debug = random.chance(500);
            if (random.chance(1000)) write(DpTc::offset, tc ^= test::tc_tmpdis);
            if (random.chance(1000)) write(DpTc::offset, tc | test::tc_sample);
            if (random.chance(500)) write(DpTd::offset, turn);
            CycleInput whole;
            whole.ctx = in.ctx;
            if (!items.empty()) whole.ctx = items.back().after;
            if (random.chance(1000)) whole.ctx.pid = static_cast<std::uint8_t>(2 + random.below(4));
            whole.bus_others = others;
            whole.in_debug = debug;
            std::vector<CycleInput> single(cycles, whole);
            for (unsigned i = 0; i < event_wires && cycles != 0; ++i) {
                const std::uint64_t n = random.below(20);
                whole.wire[i] = n;
                for (std::uint64_t k = 0; k < n; ++k)
                    ++single[random.below(static_cast<std::uint32_t>(cycles))].wire[i];
            }
            a.in = whole;
            if (const CycleOutput* out = a.model.run(whole, cycles)) {
                ++stretches;
                a.take(*out);
            } else {
                for (const CycleInput& cycle : single) {
                    a.in = cycle;
                    a.step();
                }
            }
            for (const CycleInput& cycle : single) {
                b.in = cycle;
                b.step();
            }
            expect_same(a, b);
            if (HasFatalFailure()) return;
        }
    }
    EXPECT_GT(stretches, 3000U);
}

}  // namespace
}  // namespace waymark::dpu
