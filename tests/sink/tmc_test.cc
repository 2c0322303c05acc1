// The model of ETB and TMC: registers, and properties over random streams and programs.

#include "waymark/sink/tmc.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "waymark/coresight/deformatter.h"
#include "waymark/sink/explain.h"
#include "waymark/sink/programming.h"

namespace waymark::sink {
namespace {

using coresight::TraceId;

constexpr std::uint32_t marks = Ffcr::en_ft | Ffcr::en_ti;

/// Contents of frames, by source.
struct Sources {
    std::array<std::vector<std::uint8_t>, coresight::trace_ids> bytes;
    std::size_t triggers = 0;

    void data(TraceId id, Bytes more, Offset) {
        if (coresight::is_source(id)) bytes[id.value].insert(bytes[id.value].end(), more.begin(), more.end());
    }
    void trigger(TraceId, Offset, std::uint8_t) { ++triggers; }
    void gap(const Gap&) {}
    void reset(Offset) {}
};

Sources unpacked(Bytes frames) {
    Sources out;
    coresight::Deformatter reader;
    reader.feed(frames, out);
    reader.finish(out);
    return out;
}

/// Input of a sink.
struct Given {
    std::array<std::vector<std::uint8_t>, coresight::trace_ids> bytes;
    void write(Tmc& tmc, TraceId id, const std::vector<std::uint8_t>& more) {
        const std::uint64_t before = tmc.refused_bytes();
        tmc.write(id, more);
        const auto taken = more.size() - static_cast<std::size_t>(tmc.refused_bytes() - before);
        bytes[id.value].insert(bytes[id.value].end(), more.begin(), more.begin() + static_cast<std::ptrdiff_t>(taken));
    }
};

std::vector<std::uint8_t> drawn(std::mt19937_64& random, std::size_t most) {
    std::vector<std::uint8_t> out(random() % most + 1);
    for (auto& byte : out) byte = static_cast<std::uint8_t>(random());
    return out;
}

bool is_tail(const std::vector<std::uint8_t>& part, const std::vector<std::uint8_t>& whole) {
    return part.size() <= whole.size() && std::equal(part.rbegin(), part.rend(), whole.rbegin());
}

TEST(Tmc, TakesNoMoreMemoryThanWasWritten) {
    Tmc tmc({.kind = SinkKind::etr, .memory_bytes = 4096});
    const auto peak = [] {
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        return usage.ru_maxrss;  // KiB
    };
    const auto before = peak();
    // 4 GiB less 16 bytes, the largest number of words.
    constexpr std::uint32_t words = 0x3ffffffc;
    ASSERT_EQ(tmc.write_register(Tmc::rsz, words), "");
    EXPECT_EQ(tmc.read_register(Tmc::rsz), words);
    // The last frame of the memory and the first one follow each other.
    constexpr std::uint32_t last = words * 4U - 16U;
    ASSERT_EQ(tmc.write_register(Tmc::rwp, last), "");
    ASSERT_EQ(tmc.write_register(Tmc::ffcr, Ffcr::en_ft | Ffcr::stop_on_fl), "");
    ASSERT_EQ(tmc.write_register(Tmc::ctl, Ctl::trace_capt_en), "");
    std::vector<std::uint8_t> sent(100);
    for (std::size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<std::uint8_t>(i);
    tmc.write(TraceId{0x10}, sent);
    ASSERT_EQ(tmc.write_register(Tmc::ffcr, Ffcr::en_ft | Ffcr::stop_on_fl | Ffcr::flush_man), "");
    EXPECT_TRUE(tmc.stopped());
    EXPECT_EQ(unpacked(tmc.contents()).bytes[0x10], sent);
    EXPECT_LT(peak() - before, 64 * 1024);
}

TEST(Tmc, AnotherSizeOrPlaceBringsNoOldTrace) {
    Tmc tmc({.kind = SinkKind::etr, .memory_bytes = 4096, .base = 0x80000000});
    for (const std::uint32_t offset : {Tmc::rsz, Tmc::dbalo}) {
        ASSERT_EQ(tmc.write_register(Tmc::ctl, Ctl::trace_capt_en), "");
        tmc.write(TraceId{0x10}, std::vector<std::uint8_t>(200, 0x55));
        ASSERT_FALSE(tmc.contents().empty());
        ASSERT_EQ(tmc.write_register(Tmc::ctl, 0), "");
        ASSERT_EQ(tmc.write_register(offset, offset == Tmc::rsz ? 0x800 : 0x90000000), "");
        EXPECT_TRUE(tmc.contents().empty());
    }
}

// RWP is the low half of the pointer: the memory of an ETR may reach across a multiple of 4 GiB.
TEST(Tmc, WritePointerOfMemoryAcross4GiB) {
    Tmc tmc({.kind = SinkKind::etr, .memory_bytes = 8192, .base = 0xfffff000});
    EXPECT_EQ(tmc.write_register(Tmc::rwp, 0xfffff100), "");
    EXPECT_EQ(tmc.write_register(Tmc::rwp, 0x100), "");
    EXPECT_EQ(tmc.read_register(Tmc::rwp), 0x100U);
    EXPECT_EQ(tmc.read_register(Tmc::rwphi), 1U);
    EXPECT_NE(tmc.write_register(Tmc::rwp, 0x1000), "");
    EXPECT_NE(tmc.write_register(Tmc::rwp, 0xffffeff0), "");
}

TEST(Tmc, RefusesWhatTheManualLeavesOpen) {
    Tmc tmc({.kind = SinkKind::etb, .memory_bytes = 256});
    EXPECT_NE(tmc.write_register(Tmc::mode, 2).find("MODE 2"), std::string::npos);
    EXPECT_EQ(tmc.write_register(Tmc::ffcr, marks), "");
    EXPECT_EQ(tmc.write_register(Tmc::ctl, 1), "");
    EXPECT_NE(tmc.write_register(Tmc::trg, 3).find("TraceCaptEn"), std::string::npos);
    EXPECT_NE(tmc.write_register(Tmc::ffcr, 0).find("FtStopped"), std::string::npos);
    EXPECT_EQ(tmc.read_register(Tmc::sts), Sts::empty);
    EXPECT_NE(tmc.write_register(Tmc::sts, 0).find("read-only"), std::string::npos);
    Tmc old({.kind = SinkKind::etb11, .memory_bytes = 256});
    EXPECT_NE(old.write_register(Tmc::mode, 0), "");
    EXPECT_EQ(old.read_register(Tmc::rsz), 64U);
}

TEST(Tmc, StopsAfterTheCountOfTheTrigger) {
    std::mt19937_64 random(7);
    for (unsigned round = 0; round < 200; ++round) {
        Tmc tmc({.kind = SinkKind::etr, .memory_bytes = 1024, .base = 0x80000000});
        const auto words = static_cast<std::uint32_t>(random() % 300);
        ASSERT_EQ(tmc.write_register(Tmc::ffcr, marks | Ffcr::stop_on_trig_evt), "");
        ASSERT_EQ(tmc.write_register(Tmc::trg, words), "");
        ASSERT_EQ(tmc.write_register(Tmc::ctl, 1), "");
        Given given;
        const std::size_t before = random() % 40;
        for (std::size_t i = 0; i < before; ++i) given.write(tmc, TraceId{0x10}, drawn(random, 50));
        const std::uint64_t at = tmc.written();
        tmc.trigger();
        ASSERT_EQ(tmc.trigger_at(), at);
        while (!tmc.stopped()) {
            tmc.trigger();  // ignored while the counter runs
            ASSERT_EQ(tmc.read_register(Tmc::sts) & Sts::triggered, 0U);
            given.write(tmc, TraceId{0x10}, drawn(random, 50));
        }
        const std::uint64_t after = tmc.written() - at;
        EXPECT_GE(after, (std::uint64_t{words} + 1) * 4);
        EXPECT_LE(after, (std::uint64_t{words} + 1) * 4 + 12);
        EXPECT_EQ(tmc.read_register(Tmc::trg), 0U);
        EXPECT_EQ(tmc.read_register(Tmc::rwp), 0x80000000 + tmc.written() % 1024);
        EXPECT_NE(tmc.read_register(Tmc::sts) & Sts::triggered, 0U);
        const std::uint64_t refused = tmc.refused_bytes();
        tmc.write(TraceId{0x10}, drawn(random, 50));
        EXPECT_GT(tmc.refused_bytes(), refused);
        EXPECT_TRUE(is_tail(unpacked(tmc.contents()).bytes[0x10], given.bytes[0x10]));
    }
}

// The mark of the trigger stays, however much of the buffer is filled after it.
TEST(Tmc, KeepsTheMarkOfItsTrigger) {
    std::mt19937_64 random(17);
    for (unsigned round = 0; round < 200; ++round) {
        const SinkSetup setup{.buffer = {.kind = SinkKind::etb, .memory_bytes = 256 + 16 * (random() % 64)}};
        Tmc tmc(setup.buffer);
        ASSERT_EQ(tmc.write_register(Tmc::ffcr, marks | Ffcr::trig_on_trig_in | Ffcr::stop_on_trig_evt), "");
        ASSERT_EQ(tmc.write_register(Tmc::trg, static_cast<std::uint32_t>(setup.most_after_trigger() / 4 - 1)), "");
        ASSERT_EQ(tmc.write_register(Tmc::ctl, 1), "");
        Given given;
        for (std::size_t i = random() % 40; i != 0; --i) given.write(tmc, TraceId{0x10}, drawn(random, 50));
        tmc.trigger();
        while (!tmc.stopped()) given.write(tmc, TraceId{0x10}, drawn(random, 50));
        EXPECT_EQ(unpacked(tmc.contents()).triggers, 1U) << round;
    }
}

TEST(Tmc, IsNotProgrammedToOverwriteItsTrigger) {
    SinkSetup setup{.buffer = {.memory_bytes = 4096}, .after_trigger = 4064};
    EXPECT_TRUE(setup.check());
    for (const std::uint64_t bytes : {4068, 4092, 4096}) {
        setup.after_trigger = bytes;
        EXPECT_FALSE(setup.check()) << bytes;
    }
}

/// Bytes are conserved and keep their order in every program: all bytes without a wrap, the newest bytes with one.
TEST(Tmc, KeepsBytesInOrder) {
    std::mt19937_64 random(11);
    for (unsigned round = 0; round < 300; ++round) {
        const std::uint64_t size = 64 * (random() % 32 + 1);
        Tmc tmc({.kind = round % 2 == 0 ? SinkKind::etb : SinkKind::etf, .memory_bytes = size});
        std::uint32_t program = Ffcr::en_ft | Ffcr::stop_on_fl;
        for (const std::uint32_t bit : {Ffcr::en_ti, Ffcr::trig_on_trig_in, Ffcr::trig_on_trig_evt, Ffcr::trig_on_fl})
            if (random() % 2 != 0) program |= bit;
        ASSERT_EQ(tmc.write_register(Tmc::ffcr, program), "");
        ASSERT_EQ(tmc.write_register(Tmc::trg, static_cast<std::uint32_t>(random() % 64)), "");
        ASSERT_EQ(tmc.write_register(Tmc::ctl, 1), "");
        Given given;
        for (std::size_t pieces = random() % 60; pieces != 0; --pieces) {
            given.write(tmc, TraceId{static_cast<std::uint8_t>(0x10 + random() % 3)}, drawn(random, 40));
            if (random() % 8 == 0) tmc.trigger();
        }
        ASSERT_EQ(tmc.write_register(Tmc::ffcr, program | Ffcr::flush_man), "");
        ASSERT_TRUE(tmc.stopped());
        EXPECT_EQ(tmc.refused_bytes(), 0U);
        const std::vector<std::uint8_t> frames = tmc.contents();
        EXPECT_EQ(frames.size() % 16, 0U);
        EXPECT_EQ(frames.size(), std::min<std::uint64_t>(tmc.written(), size));
        const Sources found = unpacked(frames);
        for (std::size_t id = 0; id < coresight::trace_ids; ++id) {
            if (tmc.written() <= size)
                EXPECT_EQ(found.bytes[id], given.bytes[id]);
            else
                EXPECT_TRUE(is_tail(found.bytes[id], given.bytes[id]));
        }
        // Words read through RRD.
        std::vector<std::uint8_t> read;
        for (std::uint64_t i = 0; i < frames.size(); i += 4) {
            const std::uint32_t word = tmc.read_register(Tmc::rrd);
            for (unsigned b = 0; b < 4; ++b) read.push_back(static_cast<std::uint8_t>(word >> 8 * b));
        }
        EXPECT_EQ(read, frames);
        EXPECT_EQ(tmc.read_register(Tmc::rrd), 0xffffffffU);
    }
}

TEST(Tmc, FifosLoseNothingThatTheyTook) {
    std::mt19937_64 random(13);
    for (const std::uint32_t mode : {1U, 2U})
        for (unsigned round = 0; round < 60; ++round) {
            Tmc tmc({.kind = SinkKind::etf, .memory_bytes = 256});
            ASSERT_EQ(tmc.write_register(Tmc::mode, mode), "");
            ASSERT_NE(tmc.write_register(Tmc::ffcr, Ffcr::en_ft | Ffcr::stop_on_trig_evt), "");
            ASSERT_EQ(tmc.write_register(Tmc::ffcr, Ffcr::en_ft | Ffcr::stop_on_fl), "");
            ASSERT_EQ(tmc.write_register(Tmc::bufwm, 8), "");
            ASSERT_EQ(tmc.write_register(Tmc::ctl, 1), "");
            Given given;
            std::vector<std::uint8_t> passed;
            const auto take = [&](std::uint64_t bytes) {
                if (mode == 2) {
                    const auto frames = tmc.drain(bytes);
                    passed.insert(passed.end(), frames.begin(), frames.end());
                    return;
                }
                for (std::uint64_t i = 0; i + 4 <= bytes && tmc.read_register(Tmc::cbuflevel) != 0; i += 4) {
                    const std::uint32_t word = tmc.read_register(Tmc::rrd);
                    for (unsigned b = 0; b < 4; ++b) passed.push_back(static_cast<std::uint8_t>(word >> 8 * b));
                }
            };
            for (unsigned i = 0; i < 60; ++i) {
                given.write(tmc, TraceId{0x21}, drawn(random, 30));
                const bool full = (tmc.read_register(Tmc::sts) & Sts::full) != 0;
                EXPECT_EQ(full, tmc.read_register(Tmc::cbuflevel) >= 64 - 8);
                if (random() % 3 == 0) take(random() % 128);
            }
            ASSERT_EQ(tmc.write_register(Tmc::ffcr, Ffcr::en_ft | Ffcr::stop_on_fl | Ffcr::flush_man), "");
            take(1024);
            EXPECT_EQ(unpacked(passed).bytes[0x21], given.bytes[0x21]);
        }
}

TEST(Tmc, MarksAWrapWithABarrier) {
    Tmc tmc({.kind = SinkKind::etb, .memory_bytes = 64});
    ASSERT_EQ(tmc.write_register(Tmc::ffcr, Ffcr::en_ft), "");
    ASSERT_EQ(tmc.write_register(Tmc::ctl, 1), "");
    tmc.write(TraceId{0x10}, std::vector<std::uint8_t>(200, 0x55));
    EXPECT_NE(tmc.read_register(Tmc::sts) & Sts::full, 0U);
    const auto bytes = tmc.contents_with_barrier();
    EXPECT_EQ(bytes.size(), 64U);
    const std::vector<std::uint8_t> barrier{0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f,
                                            0xff, 0xff, 0xff, 0x7f, 0xff, 0xff, 0xff, 0x7f};
    EXPECT_TRUE(std::equal(barrier.begin(), barrier.end(), bytes.begin()));
}

/// Missing registers are unknown, and a buffer that was read looks like one that was never written.
TEST(TmcExplanation, ConcludesNothingFromRegistersNotGiven) {
    const auto explained = [](const std::vector<RegisterValue>& registers, bool saved) {
        const auto e = explain(SinkKind::etf, registers, saved);
        std::string out;
        for (const auto& f : e.findings) {
            out += std::string(protocol::name(f.effect)) + " " + f.field + "; ";
            EXPECT_EQ(f.text.find("nothing was written to"), std::string::npos) << f.text;
            EXPECT_EQ(f.text.find("and nothing was written"), std::string::npos) << f.text;
        }
        out += "not given:";
        for (const std::string& name : e.undecided) out += " " + name;
        return out;
    };
    const RegisterValue ctl{"CTL", 0, {}, 32}, ffcr{"FFCR", 1, {}, 32}, mode{"MODE", 0, {}, 32},
        rwp{"RWP", 0x150, {}, 32}, rrp{"RRP", 0x150, {}, 32}, sts{"STS", 0xc, {}, 32}, full{"STS", 1, {}, 32},
        stopped{"FFSR", 2, {}, 32}, on{"CTL", 1, {}, 32};
    EXPECT_EQ(explained({ctl, ffcr}, false), "note CTL.TraceCaptEn; not given: RWP RRP STS MODE");
    EXPECT_EQ(explained({ctl, ffcr, mode}, true), "note CTL.TraceCaptEn; not given:");
    EXPECT_EQ(explained({ctl, ffcr, mode, rwp, rrp}, false), "note CTL.TraceCaptEn; not given: STS");
    EXPECT_EQ(explained({ctl, ffcr, mode, rwp, rrp, sts}, false), "stops CTL.TraceCaptEn; may RWP; not given:");
    EXPECT_EQ(explained({ctl, ffcr, mode, rwp, rrp, sts}, true), "note CTL.TraceCaptEn; not given:");
    // In a FIFO mode, STS.Full is the fill level: nothing wrapped.
    EXPECT_EQ(explained({ctl, ffcr, full}, true), "note CTL.TraceCaptEn; note STS.Full; not given: MODE");
    EXPECT_NE(explain(SinkKind::etf, {on, ffcr, full}).findings.at(0).text.find("in circular mode"), std::string::npos);
    // FFCR shows the cause for which the formatter stopped.
    EXPECT_EQ(explained({on, mode, stopped}, false), "may FFSR.FtStopped; not given:");
    EXPECT_EQ(explained({on, mode, ffcr, stopped}, false), "stops FFSR.FtStopped; not given:");
    EXPECT_EQ(explained({on, mode, ffcr, stopped}, true), "note FFSR.FtStopped; not given:");
    // STS shows whether the trigger stopped it.
    const RegisterValue by_trigger{"FFCR", Ffcr::en_ft | Ffcr::stop_on_trig_evt, {}, 32},
        triggered{"STS", Sts::triggered, {}, 32}, untriggered{"STS", 0, {}, 32};
    EXPECT_EQ(explained({on, mode, by_trigger, stopped}, false), "may FFSR.FtStopped; not given: STS");
    EXPECT_EQ(explained({on, mode, by_trigger, stopped, triggered}, false), "may FFCR.StopOnTrigEvt; not given:");
    EXPECT_EQ(explained({on, mode, by_trigger, stopped, untriggered}, false),
              "note STS.Triggered; stops FFSR.FtStopped; not given:");
}

/// The explanation of a model's registers names the field.
TEST(TmcExplanation, NamesTheField) {
    const auto fields = [](const Tmc& tmc, SinkKind kind) {
        std::string out;
        for (const auto& f : explain(kind, tmc.registers()).findings)
            out += std::string(protocol::name(f.effect)) + " " + f.field + "; ";
        return out;
    };
    Tmc off({.kind = SinkKind::etb, .memory_bytes = 256});
    ASSERT_EQ(off.write_register(Tmc::ffcr, marks), "");
    EXPECT_EQ(fields(off, SinkKind::etb), "stops CTL.TraceCaptEn; may RWP; ");
    ASSERT_EQ(off.write_register(Tmc::ctl, 1), "");
    EXPECT_EQ(fields(off, SinkKind::etb), "may STS.Empty; ");
    off.write(TraceId{0x10}, std::vector<std::uint8_t>(400, 1));
    EXPECT_EQ(fields(off, SinkKind::etb), "note STS.Full; ");

    Tmc triggered({.kind = SinkKind::etr, .memory_bytes = 256});
    ASSERT_EQ(triggered.write_register(Tmc::ffcr, marks | Ffcr::stop_on_trig_evt), "");
    ASSERT_EQ(triggered.write_register(Tmc::ctl, 1), "");
    triggered.trigger();
    triggered.write(TraceId{0x10}, std::vector<std::uint8_t>(100, 1));
    EXPECT_EQ(fields(triggered, SinkKind::etr), "may FFCR.StopOnTrigEvt; ");

    Tmc fifo({.kind = SinkKind::etf, .memory_bytes = 256});
    ASSERT_EQ(fifo.write_register(Tmc::mode, 2), "");
    ASSERT_EQ(fifo.write_register(Tmc::ctl, 1), "");
    EXPECT_EQ(fields(fifo, SinkKind::etf), "may MODE; note FFCR.EnFt; ");
    EXPECT_EQ(kind_of("tmc_etr"), SinkKind::etr);
    EXPECT_EQ(kind_of("ETB"), SinkKind::etb11);
    EXPECT_EQ(kind_of("PTM1.1"), std::nullopt);
}

}  // namespace
}  // namespace waymark::sink
