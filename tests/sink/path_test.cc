// Funnel, replicator, trace port, and whole paths with cross triggers: random programs of their registers, compared
// with simple descriptions of the path of each byte and each trigger.

#include "waymark/sink/path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "waymark/coresight/deformatter.h"
#include "waymark/sink/explain.h"

namespace waymark::sink {
namespace {

using coresight::TraceId;
using Streams = std::array<std::vector<std::uint8_t>, coresight::trace_ids>;

/// The number of random programs: 200, or WAYMARK_PROPERTY_PROGRAMS.
unsigned programs() {
    const char* const wanted = std::getenv("WAYMARK_PROPERTY_PROGRAMS");
    return wanted == nullptr ? 200 : static_cast<unsigned>(std::strtoul(wanted, nullptr, 10));
}

/// Everything in the order of arrival.
struct Order final : coresight::BusSink {
    std::vector<std::pair<std::uint8_t, std::uint8_t>> bytes;
    std::uint64_t flushes = 0;
    void write(TraceId id, Bytes more) override {
        for (const std::uint8_t byte : more) bytes.emplace_back(id.value, byte);
    }
    void flush() override { ++flushes; }
    [[nodiscard]] std::vector<std::uint8_t> of(std::uint8_t id) const {
        std::vector<std::uint8_t> out;
        for (const auto& [from, byte] : bytes)
            if (from == id) out.push_back(byte);
        return out;
    }
};

struct Unpacked {
    Streams bytes;
    /// Number of bytes of all sources before each trigger mark.
    std::vector<std::uint64_t> triggers;
    std::uint64_t before = 0;

    explicit Unpacked(Bytes frames, bool port = false) {
        coresight::Deformatter reader({.framing = port ? coresight::Framing::tpiu : coresight::Framing::aligned});
        reader.feed(frames, *this);
        reader.finish(*this);
    }
    void data(TraceId id, Bytes more, Offset) {
        if (!coresight::is_source(id)) return;
        bytes[id.value].insert(bytes[id.value].end(), more.begin(), more.end());
        before += more.size();
    }
    void trigger(TraceId, Offset, std::uint8_t) { triggers.push_back(before); }
    void gap(const Gap&) {}
    void reset(Offset) {}
};

std::vector<std::uint8_t> some_bytes(std::mt19937_64& random, std::size_t most) {
    std::vector<std::uint8_t> out(random() % most + 1);
    for (auto& byte : out) byte = static_cast<std::uint8_t>(random());
    return out;
}

bool is_end_of(const std::vector<std::uint8_t>& part, const std::vector<std::uint8_t>& whole) {
    return part.size() <= whole.size() && std::equal(part.rbegin(), part.rend(), whole.rbegin());
}

TEST(Funnel, RefusesWhatIsWrong) {
    Order out;
    BusFunnel funnel(4, out);
    EXPECT_NE(funnel.write_register(BusFunnel::functl, 0xf01).find("reserved"), std::string::npos);
    EXPECT_EQ(funnel.write_register(BusFunnel::functl, 0x3ff), "");
    EXPECT_EQ(funnel.read_register(BusFunnel::functl), 0x30fU);  // four inputs
    EXPECT_NE(funnel.write_register(BusFunnel::prictl, 7).find("input 0"), std::string::npos);
    EXPECT_NE(funnel.write_register(0x008, 0), "");
    funnel.write(3, TraceId{0x10}, std::vector<std::uint8_t>{1, 2});
    EXPECT_EQ(funnel.write_register(BusFunnel::functl, 0x301), "");
    funnel.write(3, TraceId{0x10}, std::vector<std::uint8_t>{3});
    EXPECT_EQ(funnel.refused_bytes(), 1U);
    EXPECT_EQ(out.of(0x10), (std::vector<std::uint8_t>{1, 2}));
}

// docs/spec/trace-bus.md, 2.2: the input with the lowest priority value is next, among equal values the input with the
// lowest number; the selected input keeps the bus for HT + 1 transfers, as long as it has bytes.
TEST(FunnelProperty, GivesTheBusByPriority) {
    std::mt19937_64 random(36);
    for (unsigned program = 0; program < programs(); ++program) {
        SCOPED_TRACE(program);
        Order out;
        const auto inputs = static_cast<unsigned>(1 + random() % 8);
        BusFunnel funnel(inputs, out);
        const auto priorities = static_cast<std::uint32_t>(random());
        const auto hold = static_cast<unsigned>(random() % 15);
        ASSERT_EQ(funnel.write_register(BusFunnel::prictl, priorities), "");
        ASSERT_EQ(funnel.write_register(BusFunnel::functl, hold << 8 | 0xff), "");
        Streams given;
        std::vector<std::uint64_t> waits(inputs);  // transfers; pieces of whole transfers
        unsigned holder = inputs, made = 0;
        for (unsigned step = 0; step < 60; ++step) {
            if (random() % 2 == 0) {
                const auto input = static_cast<unsigned>(random() % inputs);
                auto piece = some_bytes(random, 12);
                piece.resize((piece.size() + 3) / 4 * 4);
                funnel.offer(input, TraceId{static_cast<std::uint8_t>(0x10 + input)}, piece);
                auto& all = given[0x10 + input];
                all.insert(all.end(), piece.begin(), piece.end());
                waits[input] += piece.size() / 4;
                continue;
            }
            const std::size_t before = out.bytes.size();
            const std::uint64_t passed = funnel.pass(1);
            unsigned next = inputs;
            const bool keeps = holder < inputs && made <= hold && waits[holder] != 0;
            if (keeps) next = holder;
            for (unsigned i = 0; i < inputs && !keeps; ++i)
                if (waits[i] != 0 && (next == inputs || (priorities >> 3 * i & 7U) < (priorities >> 3 * next & 7U)))
                    next = i;
            ASSERT_EQ(passed, next == inputs ? 0U : 1U);
            if (next == inputs) continue;
            made = next == holder ? made + 1 : 1;
            holder = next;
            --waits[next];
            ASSERT_EQ(out.bytes.size(), before + 4);
            ASSERT_EQ(out.bytes.back().first, 0x10 + next);
        }
        funnel.flush();
        EXPECT_EQ(funnel.waiting_bytes(), 0U);
        for (unsigned i = 0; i < inputs; ++i) EXPECT_EQ(out.of(static_cast<std::uint8_t>(0x10 + i)), given[0x10 + i]);
    }
}

TEST(ReplicatorProperty, LeavesOutTheIdsOfItsFilters) {
    std::mt19937_64 random(37);
    for (unsigned program = 0; program < programs(); ++program) {
        std::array<Order, 2> out;
        BusReplicator replicator(out[0], out[1]);
        std::array<std::vector<std::pair<std::uint8_t, std::uint8_t>>, 2> expected;
        std::array<std::uint32_t, 2> filter{};
        for (unsigned step = 0; step < 40; ++step) {
            if (random() % 4 == 0) {
                const std::size_t n = random() % 2;
                filter[n] = static_cast<std::uint32_t>(random()) & 0xff;
                ASSERT_EQ(replicator.write_register(static_cast<std::uint32_t>(4 * n), filter[n]), "");
                continue;
            }
            const auto id = static_cast<std::uint8_t>(random() % 128);
            const auto piece = some_bytes(random, 10);
            replicator.write(TraceId{id}, piece);
            for (std::size_t n = 0; n < 2; ++n)
                if ((filter[n] >> id / 16 & 1U) == 0)
                    for (const std::uint8_t byte : piece) expected[n].emplace_back(id, byte);
        }
        for (std::size_t n = 0; n < 2; ++n) EXPECT_EQ(out[n].bytes, expected[n]);
    }
}

TEST(TracePort, RefusesWhatIsWrong) {
    Tpiu port({.widths = 0x8000000b});
    EXPECT_NE(port.write_register(Tpiu::cspsr, 3).find("exactly one bit"), std::string::npos);
    EXPECT_NE(port.write_register(Tpiu::cspsr, 4).find("SSPSR"), std::string::npos);
    EXPECT_EQ(port.write_register(Tpiu::cspsr, 8), "");
    EXPECT_EQ(port.pins(), 4U);
    EXPECT_EQ(port.clocks(16), 32U);
    EXPECT_NE(port.write_register(Tpiu::ffsr, 0).find("read-only"), std::string::npos);
    EXPECT_EQ(port.read_register(Tpiu::fscr), 0x40U);
    EXPECT_EQ(port.write_register(Tpiu::ffcr, Tpiu::en_ftc | Tpiu::en_f_cont), "");
    port.write(TraceId{0x10}, std::vector<std::uint8_t>(40, 1));
    EXPECT_NE(port.write_register(Tpiu::ffcr, 0).find("FtStopped"), std::string::npos);
    EXPECT_FALSE(TpiuConfig{.widths = 0}.check());
}

// 4: the output contains all bytes in order; full syncs come after FSCR frames, and a trigger is marked where it came,
// or after TCVR words times the multiplier.
TEST(TracePortProperty, SendsEverythingInOrder) {
    std::mt19937_64 random(38);
    std::size_t stopped = 0;
    for (unsigned program = 0; program < programs(); ++program) {
        SCOPED_TRACE(program);
        Tpiu port({});
        const auto syncs = static_cast<std::uint32_t>(random() % 9);
        ASSERT_EQ(port.write_register(Tpiu::fscr, syncs), "");
        const auto words = static_cast<std::uint32_t>(random() % 40);
        ASSERT_EQ(port.write_register(Tpiu::tcvr, words), "");
        const auto twice = static_cast<std::uint32_t>(random() % 2);
        ASSERT_EQ(port.write_register(Tpiu::tmr, twice), "");
        const bool stops = random() % 2 == 0;
        const std::uint32_t ffcr = Tpiu::en_ftc | Tpiu::en_f_cont | Tpiu::trig_in | (stops ? Tpiu::stop_trig : 0);
        ASSERT_EQ(port.write_register(Tpiu::ffcr, ffcr), "");
        Streams given;
        std::uint64_t total = 0, sent_before = 0, refused = 0;
        std::vector<std::uint64_t> triggers;
        std::vector<std::uint8_t> out;
        for (unsigned step = 0; step < 60; ++step) {
            switch (random() % 8) {
                case 0:
                    if (port.stopped()) break;
                    if (triggers.empty()) sent_before = port.sent_bytes();
                    triggers.push_back(total);
                    port.trigger();
                    break;
                case 1: {
                    const auto some = port.take();
                    out.insert(out.end(), some.begin(), some.end());
                    break;
                }
                case 2:
                    if (syncs != 0) port.idle();
                    break;
                case 3:
                    // The same inside a frame.
                    ASSERT_EQ(port.write_register(Tpiu::fscr, syncs), "");
                    break;
                default: {
                    const TraceId id{static_cast<std::uint8_t>(0x10 + random() % 3)};
                    const auto piece = some_bytes(random, 30);
                    refused = port.refused_bytes();
                    port.write(id, piece);
                    const auto taken = piece.size() - (port.refused_bytes() - refused);
                    auto& all = given[id.value];
                    all.insert(all.end(), piece.begin(), piece.begin() + static_cast<std::ptrdiff_t>(taken));
                    total += taken;
                }
            }
        }
        if (!triggers.empty()) {
            ASSERT_TRUE(port.trigger_at());
            EXPECT_EQ(*port.trigger_at(), sent_before);
        }
        if (stops && port.stopped()) {
            ++stopped;
            // The event comes with the word that ends the count, and a frame is completed after it.
            const std::uint64_t count = std::uint64_t{words} << twice;
            const std::uint64_t after = port.sent_bytes() - sent_before;
            EXPECT_GE(after + 3, 4 * count);
            EXPECT_LE(after, 4 * count + 64);
        }
        ASSERT_EQ(port.write_register(Tpiu::ffcr, (ffcr & ~Tpiu::stop_trig) | Tpiu::stop_fl | Tpiu::f_on_man), "");
        ASSERT_TRUE(port.stopped());
        const auto rest = port.take();
        out.insert(out.end(), rest.begin(), rest.end());
        const Unpacked found(out, syncs != 0);
        for (std::size_t id = 0; id < coresight::trace_ids; ++id) EXPECT_EQ(found.bytes[id], given[id]) << id;
        EXPECT_EQ(found.triggers, triggers);
        if (syncs != 0 && total > 200) {
            // No stretch between two full syncs is longer than these frames, with half syncs between them.
            const std::vector<std::uint8_t> sync{0xff, 0xff, 0xff, 0x7f};
            EXPECT_NE(std::search(out.begin(), out.end(), sync.begin(), sync.end()), out.end());
        }
    }
    EXPECT_GT(stopped, programs() / 8);
}

// ---- whole paths

std::uint32_t register_of(const std::vector<SinkPath::Device>& devices, std::string_view device,
                          std::string_view name) {
    for (const SinkPath::Device& d : devices)
        if (d.name == device)
            for (const RegisterValue& r : d.registers)
                if (r.name == name) return static_cast<std::uint32_t>(r.value);
    ADD_FAILURE() << device << " has no register " << name;
    return 0;
}

/// A path with random registers, and the expected fate of bytes and triggers.
struct DrawnPath {
    PathSetup setup;
    std::uint32_t open = 0, filter = 0;
    bool triggers = true;

    explicit DrawnPath(std::mt19937_64& random) {
        const auto one_in = [&](unsigned n) { return random() % n == 0; };
        if (one_in(5)) {
            setup.port_pins = static_cast<unsigned>(1 + random() % 32);
        } else {
            SinkSetup& sink = setup.buffer.emplace();
            sink.buffer.kind = sink_names()[random() % 4].kind;
            sink.buffer.memory_bytes = 16 * (16 + random() % 100);
            if (sink.buffer.kind == SinkKind::etr) {
                sink.buffer.base = 0x80000000;
                sink.scatter_list = one_in(2);
                if (sink.scatter_list) sink.buffer.memory_bytes = ScatterEntry::page_bytes * (1 + random() % 3);
            }
            if (one_in(2)) sink.after_trigger = 4 * (1 + random() % (sink.most_after_trigger() / 4));
        }
        const auto give = [&](std::string name, std::uint32_t value) {
            setup.registers.push_back({std::move(name), {}, value, {}});
            return value;
        };
        // The program connects sources 0, 1 and 2.
        open = one_in(3) ? give("FUNCTL", static_cast<std::uint32_t>(random()) & 0xff) : 7;
        if (one_in(3)) give("PRICTL", static_cast<std::uint32_t>(random()) & 0xffffff);
        if (one_in(3)) filter = give("IDFILTER0", static_cast<std::uint32_t>(random()) & 0xff);
        std::uint32_t in = 1, out = 1, gate = 1;
        if (one_in(3)) in = give("CTIINEN4", static_cast<std::uint32_t>(random()) & 0xf);
        if (one_in(3)) out = give("CTIOUTEN1", static_cast<std::uint32_t>(random()) & 0xf);
        if (one_in(3)) gate = give("CTIGATE", static_cast<std::uint32_t>(random()) & 0xf);
        triggers = (in & gate & out) != 0;
        if (one_in(6)) triggers &= give("CTICONTROL", static_cast<std::uint32_t>(random()) & 1) != 0;
    }
    [[nodiscard]] bool passes(unsigned source, TraceId id) const {
        return (open >> source & 1U) != 0 && (filter >> id.value / 16 & 1U) == 0;
    }
};

TEST(PathProperty, KeepsBytesOrderAndTrigger) {
    std::mt19937_64 random(39);
    std::size_t triggered = 0, stopped = 0, wrapped = 0, scattered = 0;
    for (unsigned program = 0; program < programs(); ++program) {
        SCOPED_TRACE(program);
        const DrawnPath drawn_path(random);
        ASSERT_TRUE(drawn_path.setup.check()) << drawn_path.setup.check().error().message;
        SinkPath path(drawn_path.setup);
        for (const unsigned source : {0U, 1U, 2U}) path.connect(source);
        Streams given;
        std::optional<std::uint64_t> trigger_at;
        std::vector<std::uint8_t> port;
        std::uint64_t passed = 0;
        const auto written = [&] {
            return path.buffer() != nullptr ? path.buffer()->written() : path.port()->sent_bytes();
        };
        for (std::size_t pieces = random() % 80; pieces != 0 && !path.stopped(); --pieces) {
            const auto source = static_cast<unsigned>(random() % 3);
            if (random() % 8 == 0) {
                if (drawn_path.triggers && !trigger_at) trigger_at = written();
                path.trigger(source);
                continue;
            }
            const TraceId id{static_cast<std::uint8_t>(0x10 + 0x21 * source)};
            const auto piece = some_bytes(random, 40);
            const std::uint64_t refused = path.buffer() != nullptr ? path.buffer()->refused_bytes() : 0;
            path.write(source, id, piece);
            const std::uint64_t lost = path.buffer() != nullptr ? path.buffer()->refused_bytes() - refused : 0;
            if (!drawn_path.passes(source, id)) continue;
            auto& all = given[id.value];
            all.insert(all.end(), piece.begin(), piece.end() - static_cast<std::ptrdiff_t>(lost));
            passed += piece.size() - lost;
        }
        const bool stopped_by_trigger = path.stopped();
        if (stopped_by_trigger) {
            ASSERT_TRUE(drawn_path.setup.after_trigger() && drawn_path.triggers);
        }
        path.stop();
        ASSERT_TRUE(path.stopped());
        std::vector<std::uint8_t> frames;
        bool whole = true;
        if (const Tmc* const tmc = path.buffer(); tmc != nullptr) {
            frames = tmc->contents();
            whole = tmc->written() <= tmc->memory_bytes();
            EXPECT_EQ(frames.size(), std::min(tmc->written(), tmc->memory_bytes()));
            EXPECT_EQ(tmc->trigger_at(), trigger_at);
            if (stopped_by_trigger) {
                const std::uint64_t after = tmc->written() - *tmc->trigger_at();
                EXPECT_GE(after, *drawn_path.setup.after_trigger());
                EXPECT_LE(after, *drawn_path.setup.after_trigger() + 28);
                ++stopped;
            }
            scattered += tmc->pages().empty() ? 0 : 1;
            wrapped += whole ? 0 : 1;
        } else {
            frames = path.take();
            EXPECT_EQ(path.port()->trigger_at(), trigger_at);
        }
        triggered += trigger_at ? 1 : 0;
        const Unpacked found(frames, path.buffer() == nullptr);
        std::uint64_t there = 0;
        for (std::size_t id = 0; id < coresight::trace_ids; ++id) {
            there += found.bytes[id].size();
            if (whole)
                EXPECT_EQ(found.bytes[id], given[id]) << id;
            else
                EXPECT_TRUE(is_end_of(found.bytes[id], given[id])) << id;
        }
        if (whole) {
            EXPECT_EQ(there, passed);
        }
        const auto devices = path.devices();
        ASSERT_EQ(devices.size(), 7U);
        EXPECT_EQ(register_of(devices, "FUNNEL", "FUNCTL") & 0xff, drawn_path.open);
        // Each device that holds trace or triggers back is named.
        for (const SinkPath::Device& device : devices) {
            const auto explained = explain_device(device.type, device.registers, there != 0);
            ASSERT_TRUE(explained) << device.type;
            const bool closed = device.type == "Funnel"       ? drawn_path.open == 0
                                : device.type == "Replicator" ? drawn_path.filter == 0xff
                                                              : false;
            if (device.type == "Funnel" || device.type == "Replicator") {
                EXPECT_EQ(explained->explanation.stopped(), closed);
            }
        }
    }
    EXPECT_GT(triggered, programs() / 4);
    EXPECT_GT(stopped, programs() / 20);
    EXPECT_GT(wrapped, programs() / 20);
    EXPECT_GT(scattered, programs() / 30);
}

// 2.5 of docs/spec/tmc.md: pages in the order of the list, over several pages of lists.
TEST(ScatterList, NamesThePages) {
    std::mt19937_64 random(40);
    for (unsigned program = 0; program < programs() / 10; ++program) {
        SCOPED_TRACE(program);
        const auto count = static_cast<std::size_t>(1 + random() % 8);
        std::unordered_map<std::uint64_t, std::uint32_t> memory;
        std::vector<std::uint64_t> pages;
        const std::uint64_t table = 0x8000000000, next = 0x4000;
        std::uint64_t at = table + ScatterEntry::page_bytes;
        const std::uint64_t begins = at;
        for (std::size_t n = 0; n < count; ++n) {
            if (random() % 3 == 0) {
                const std::uint64_t to = next + n * 0x10000;
                memory[at] = ScatterEntry::word(ScatterEntry::link, to);
                at = to;
            }
            pages.push_back((random() % 0x10000) * ScatterEntry::page_bytes);
            memory[at] = ScatterEntry::word(n + 1 == count ? ScatterEntry::last : ScatterEntry::page, pages.back());
            at += 4;
        }
        Tmc tmc({.kind = SinkKind::etr, .memory_bytes = 4096});
        tmc.on_list([&](std::uint64_t address) -> std::optional<std::uint32_t> {
            const auto found = memory.find(address);
            return found == memory.end() ? std::nullopt : std::optional(found->second);
        });
        const auto write = [&](std::uint32_t offset, std::uint32_t value) { return tmc.write_register(offset, value); };
        ASSERT_EQ(write(Tmc::axictl, 0x80), "");
        ASSERT_EQ(write(Tmc::dbahi, 0x90), "");
        ASSERT_EQ(write(Tmc::dbalo, 0), "");
        EXPECT_NE(write(Tmc::ctl, 1).find("cannot be read"), std::string::npos);
        ASSERT_EQ(write(Tmc::dbahi, static_cast<std::uint32_t>(begins >> 32)), "");
        ASSERT_EQ(write(Tmc::dbalo, static_cast<std::uint32_t>(begins)), "");
        ASSERT_EQ(write(Tmc::ffcr, Ffcr::en_ft | Ffcr::stop_on_fl), "");
        ASSERT_EQ(write(Tmc::ctl, 1), "");
        EXPECT_EQ(tmc.pages(), pages);
        EXPECT_EQ(tmc.memory_bytes(), pages.size() * 4096);
        std::vector<std::uint8_t> given;
        while (given.size() < 4096 * count * 3 / 2) {
            const auto piece = some_bytes(random, 1000);
            tmc.write(TraceId{0x10}, piece);
            given.insert(given.end(), piece.begin(), piece.end());
            const std::uint64_t in_memory = tmc.written() % tmc.memory_bytes();
            const std::uint64_t pointer =
                std::uint64_t{tmc.read_register(Tmc::rwphi)} << 32 | tmc.read_register(Tmc::rwp);
            ASSERT_EQ(pointer, pages[in_memory / 4096] + in_memory % 4096);
        }
        ASSERT_EQ(write(Tmc::ffcr, Ffcr::en_ft | Ffcr::stop_on_fl | Ffcr::flush_man), "");
        EXPECT_TRUE(is_end_of(Unpacked(tmc.contents()).bytes[0x10], given));
        // A capture begins at the first page again.
        ASSERT_EQ(write(Tmc::ctl, 0), "");
        ASSERT_EQ(write(Tmc::ctl, 1), "");
        EXPECT_EQ(tmc.read_register(Tmc::rwp), static_cast<std::uint32_t>(pages.front()));
    }
}

TEST(ScatterList, MistakesAreNamed) {
    std::unordered_map<std::uint64_t, std::uint32_t> memory;
    Tmc tmc({.kind = SinkKind::etr, .memory_bytes = 4096, .base = 0x1000});
    tmc.on_list([&](std::uint64_t address) -> std::optional<std::uint32_t> {
        const auto found = memory.find(address);
        return found == memory.end() ? std::nullopt : std::optional(found->second);
    });
    ASSERT_EQ(tmc.write_register(Tmc::axictl, 0x80), "");
    const auto start = [&] { return tmc.write_register(Tmc::ctl, 1); };
    memory[0x1000] = 0x20;
    EXPECT_NE(start().find("0x20"), std::string::npos);
    memory[0x1000] = ScatterEntry::word(ScatterEntry::link, 0x1000);
    EXPECT_NE(start().find("circle"), std::string::npos);
    memory[0x1000] = ScatterEntry::word(ScatterEntry::link, 0x2000);
    EXPECT_NE(start().find("0x2000"), std::string::npos);
    for (std::uint64_t at = 0x2000; at < 0x3000; at += 4) memory[at] = ScatterEntry::word(ScatterEntry::page, 0x5000);
    EXPECT_NE(start().find("0x2ffc"), std::string::npos);
    memory[0x2ffc] = ScatterEntry::word(ScatterEntry::last, 0x5000);
    EXPECT_EQ(start(), "");
    EXPECT_EQ(tmc.pages().size(), 1024U);
}

TEST(Path, WrongRegistersAreNamed) {
    const auto refused = [](std::string name, std::uint64_t value, std::string field = {}) {
        PathSetup setup{.buffer = SinkSetup{}, .registers = {{std::move(name), std::move(field), value, "file:1"}}};
        const auto checked = setup.check();
        return checked ? std::string("taken") : checked.error().message;
    };
    EXPECT_EQ(refused("FUNCTL", 0x300), "taken");
    EXPECT_EQ(refused("CTL", 0), "taken");
    EXPECT_EQ(refused("FUNCTL", 0xf00),
              "file:1: FUNCTL 0xf00 is refused: FUNCTL: the hold time 0xf is reserved; write 0 to 0xe to bits 11:8");
    EXPECT_NE(refused("TRCVICTLR", 1).find("no register of the funnel"), std::string::npos);
    EXPECT_NE(refused("FUNCTL", 1, "HT").find("give the whole value"), std::string::npos);
    EXPECT_NE(refused("FUNCTL", std::uint64_t{1} << 32).find("32 bits"), std::string::npos);
    EXPECT_NE(refused("STS", 1).find("read-only"), std::string::npos);
}

// ---- explanations

std::string explained(std::string_view type, const std::vector<RegisterValue>& registers, bool saved = false) {
    const auto device = explain_device(type, registers, saved);
    if (!device) return "not explained";
    std::string out;
    for (const auto& f : device->explanation.findings)
        out += std::string(protocol::name(f.effect)) + " " + f.field + "; ";
    out += "not given:";
    for (const std::string& name : device->explanation.undecided) out += " " + name;
    return out;
}

TEST(PathExplanation, NamesTheField) {
    const auto value = [](std::string name, std::uint64_t v) { return RegisterValue{std::move(name), v, {}, 32}; };
    EXPECT_EQ(explained("CSTF", {}), "not given: FUNCTL");
    EXPECT_EQ(explained("Funnel", {value("FUNCTL", 0x300)}), "stops FUNCTL; not given:");
    EXPECT_EQ(explained("Funnel", {value("funnel_ctrl", 0x302)}), "may FUNCTL; not given:");
    EXPECT_EQ(explained("Funnel", {value("Ctrl_Reg", 0xfff)}), "note FUNCTL.HT; not given:");
    EXPECT_EQ(explained("Replicator", {value("IDFILTER0", 0), value("IDFILTER1", 0xff)}), "note IDFILTER1; not given:");
    EXPECT_EQ(explained("Replicator", {value("IDFILTER0", 2), value("IDFILTER1", 0xff)}),
              "may IDFILTER0; may IDFILTER1; not given:");
    EXPECT_EQ(explained("Replicator", {value("IDFILTER0", 0xff), value("IDFILTER1", 0xff)}),
              "may IDFILTER0; may IDFILTER1; stops IDFILTER0; not given:");
    EXPECT_EQ(explained("TPIU", {value("FFCR", 0), value("CSPSR", 3)}), "may CSPSR; note FFCR.EnFTC; not given:");
    EXPECT_EQ(explained("TPIU", {value("FFCR", 1), value("FSCR", 0)}), "note FFCR.EnFCont; note FSCR; not given:");
    EXPECT_EQ(explained("TPIU", {value("FFCR", 3), value("FFSR", 2)}), "stops FFSR.FtStopped; not given:");
    EXPECT_EQ(explained("TPIU", {value("FFCR", 3), value("FFSR", 2)}, true), "note FFSR.FtStopped; not given:");
    EXPECT_EQ(explained("TPIU", {value("FFCR", 3), value("CTPR", 0x20001)}), "stops CTPR; not given:");
    EXPECT_EQ(explained("CTI", {value("CTICONTROL", 0), value("CTIINEN4", 1), value("CTIOUTEN1", 0)}),
              "note CTICONTROL.GLBEN; not given:");
    EXPECT_EQ(explained("CTI", {value("CTICONTROL", 1), value("CTIINEN4", 3), value("CTIGATE", 1)}),
              "note CTIGATE; not given:");
    EXPECT_EQ(explained("CTI", {value("CTICONTROL", 1), value("CTIINEN4", 0)}), "note CTIINEN; not given:");
    EXPECT_EQ(explained("ETM", {}), "not explained");
    EXPECT_EQ(device_with({"rsz", "sts", "mode"}), "TMC");
    EXPECT_EQ(device_with({"RSZ", "AXICTL", "DBALO"}), "TMC-ETR");
    EXPECT_EQ(device_with({"CSPSR", "FFCR"}), "TPIU");
    EXPECT_EQ(device_with({"funnel_ctrl", "priority"}), "Funnel");
    EXPECT_EQ(device_with({"IDFILTER1"}), "Replicator");
    EXPECT_EQ(device_with({"CTIGATE"}), "CTI");
    EXPECT_EQ(device_with({"TRCVICTLR"}), "");
}

}  // namespace
}  // namespace waymark::sink
