// Packets and a program → flow (docs/spec/mtb.md, 4): the flow decoded from the model's buffer is the executed one.
#include "waymark/mtb/decoder.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "support/elements.h"
#include "support/wanted.h"
#include "waymark/flow/summary.h"
#include "waymark/isa/decode_instr.h"
#include "waymark/mtb/arrangement.h"
#include "waymark/mtb/encoder.h"
#include "waymark/mtb/model.h"
#include "waymark/mtb/protocol.h"

namespace waymark::mtb {
namespace {

using synthetic::Element, synthetic::Kind;

/// Memory from address 0 on.
class Memory final : public isa::CodeReader {
public:
    [[nodiscard]] isa::Code at(Address address, const isa::Space&) const override {
        if (address.value >= bytes.size()) return {};
        return {Bytes(bytes).subspan(address.value), 0};
    }
    void half(std::uint32_t value) {
        bytes.push_back(static_cast<std::uint8_t>(value));
        bytes.push_back(static_cast<std::uint8_t>(value >> 8));
    }
    void word(std::uint32_t value) {
        half(value & 0xffffU);
        half(value >> 16);
    }
    [[nodiscard]] std::uint32_t half_at(std::uint32_t at) const {
        return static_cast<std::uint32_t>(bytes[at] | bytes[at + 1] << 8);
    }
    [[nodiscard]] std::uint32_t size_at(std::uint32_t at) const { return isa::is_thumb_32(half_at(at)) ? 4 : 2; }
    std::vector<std::uint8_t> bytes;
};

template <class D>
std::vector<Element> decode(const std::vector<std::uint8_t>& bytes, const isa::CodeReader& code,
                            std::size_t chunk = 7) {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    flow::BatchWriter out(table, sink);
    D decoder({}, code, out);
    for (std::size_t at = 0; at < bytes.size(); at += chunk)
        decoder.feed(Bytes(bytes).subspan(at, std::min(chunk, bytes.size() - at)));
    decoder.finish();
    return sink.take();
}
std::vector<Element> decode_parallel(const std::vector<std::uint8_t>& bytes, const isa::CodeReader& code,
                                     unsigned workers) {
    synthetic::ElementSink sink;
    flow::BlockTable table;
    ParallelDecoder decoder({}, code, table, sink, {.workers = workers, .piece_bytes = 16});
    decoder.feed(bytes);
    decoder.finish();
    return sink.take();
}
void expect_agreement(const std::vector<Element>& found, const std::vector<std::uint8_t>& bytes,
                      const isa::CodeReader& code) {
    EXPECT_EQ(synthetic::difference(decode<ReferenceDecoder>(bytes, code), found), "");
    for (const unsigned workers : {1U, 3U})
        EXPECT_EQ(synthetic::difference(decode_parallel(bytes, code, workers), found), "");
}

std::string text_of(const std::vector<Element>& elements) {
    std::string out;
    for (const Element& e : elements) {
        if (e.kind == Kind::range)
            out += fmt::format("{:#x}..{:#x}{} ", e.block.start, e.block.start + e.block.bytes, e.taken ? "T" : "");
        else if (e.kind == Kind::exception)
            out +=
                fmt::format("exception {} ", e.a) + (e.b == Element::absent ? "" : fmt::format("before {:#x} ", e.b));
        else if (e.kind == Kind::inconsistency)
            out += fmt::format("[{}] ", flow::name(static_cast<flow::Conflict>(e.a)));
        else  // an MTB does not show the core's state
            out += fmt::format("{} ", synthetic::name(e.kind));
    }
    std::replace(out.begin(), out.end(), '_', ' ');
    return out;
}

/// A vector table, handlers, and code that jumps to random places in itself.
class Program {
public:
    static constexpr std::array<std::uint32_t, 4> vectors{3, 11, 14, 15};

    explicit Program(std::mt19937_64& random) : random_(random) {
        for (unsigned i = 0; i < 16; ++i) memory.word(0);
        const auto instructions = [&](unsigned count) {
            for (unsigned i = 0; i < count; ++i) {
                places_.push_back(static_cast<std::uint32_t>(memory.bytes.size()));
                add();
            }
            places_.push_back(static_cast<std::uint32_t>(memory.bytes.size()));
            memory.half(0x4770);  // BX LR
        };
        for (const std::uint32_t vector : vectors) {
            const auto at = static_cast<std::uint32_t>(memory.bytes.size());
            handlers.push_back(at);
            for (unsigned i = 0; i < 4; ++i)
                memory.bytes[4 * vector + i] = static_cast<std::uint8_t>((at | 1U) >> 8 * i);
            memory.half(0xbf00);  // each begins with an instruction of its own
            instructions(static_cast<unsigned>(random_() % 8));
        }
        instructions(30);
        for (const auto& [at, kind] : branches_) patch(at, kind);
    }
    [[nodiscard]] std::uint32_t any_place() { return places_[random_() % places_.size()]; }

    Memory memory;
    std::vector<std::uint32_t> handlers;  // as `vectors`

private:
    enum class Branch : std::uint8_t { conditional, always, call };

    void add() {
        const auto at = static_cast<std::uint32_t>(memory.bytes.size());
        switch (random_() % 14) {
            case 0:
            case 1:
            case 2: branches_.emplace_back(at, Branch::conditional); return memory.half(0xd000);
            case 3: branches_.emplace_back(at, Branch::always); return memory.half(0xe000);
            case 4: branches_.emplace_back(at, Branch::call); return memory.word(0);
            case 5: return memory.half(0x4770);      // BX LR
            case 6: return memory.half(0xdf01);      // SVC
            case 7: return memory.half(0xde00);      // UDF
            case 8: return memory.word(0x8f6ff3bf);  // ISB
            case 9: return memory.half(0xbf30);      // WFI
            default: return memory.half(0x3000 + static_cast<std::uint32_t>(random_() % 0x100));
        }
    }
    void patch(std::uint32_t at, Branch kind) {
        for (;;) {
            const std::uint32_t to = any_place();
            const auto away = static_cast<std::int32_t>(to) - static_cast<std::int32_t>(at) - 4;
            const auto put = [&](std::uint32_t offset, std::uint32_t value) {
                memory.bytes[at + offset] = static_cast<std::uint8_t>(value);
                memory.bytes[at + offset + 1] = static_cast<std::uint8_t>(value >> 8);
            };
            const auto bits = static_cast<std::uint32_t>(away);
            if (kind == Branch::conditional) {
                if (away < -256 || away > 254) continue;
                put(0, 0xd000U | static_cast<std::uint32_t>(random_() % 14) << 8 | (bits >> 1 & 0xffU));
            } else if (kind == Branch::always) {
                put(0, 0xe000U | (bits >> 1 & 0x7ffU));
            } else {
                const std::uint32_t s = away < 0 ? 1 : 0;
                put(0, 0xf000U | s << 10 | (bits >> 12 & 0x3ffU));
                put(2, 0xf800U | (bits >> 1 & 0x7ffU));
            }
            return;
        }
    }

    std::mt19937_64& random_;
    std::vector<std::uint32_t> places_;
    std::vector<std::pair<std::uint32_t, Branch>> branches_;
};

/// Runs a program, and keeps the truth.
class Execution {
public:
    Execution(Program& program, Model& model, std::mt19937_64& random, unsigned instructions)
        : program_(program), model_(model), random_(random) {
        std::uint32_t pc = program.any_place();
        model.enable(true);
        while (truth.size() < instructions) pc = step(pc);
    }

    struct Written {
        std::size_t truth{};  ///< number of ranges executed before it
        bool starts{};
    };
    std::vector<std::uint32_t> truth;
    std::vector<Written> packets;

private:
    /// The model may have written a packet since.
    void note() {
        if (model_.packets() == packets.size()) return;
        packets.push_back({truth.size(), starts_});
        starts_ = false;
    }
    std::uint32_t enter(std::uint32_t preferred_return, std::uint32_t handler) {
        model_.exception(preferred_return, handler);
        note();
        return handler;
    }
    std::uint32_t interrupt(std::uint32_t pc, std::size_t vector) {
        interrupted_.push_back(pc);
        return enter(pc, program_.handlers[vector]);
    }
    std::uint32_t go(std::uint32_t pc, std::uint32_t bytes, std::uint32_t to) {
        model_.instruction(pc, bytes, to);
        note();
        return to;
    }
    std::uint32_t step(std::uint32_t pc) {
        const bool begins_handler =
            std::find(program_.handlers.begin(), program_.handlers.end(), pc) != program_.handlers.end();
        if (random_() % 200 == 0) {
            model_.enable(!model_.enabled());
            starts_ = model_.enabled();
        }
        // A return to the beginning of a handler looks like a chained exception.
        if (!begins_handler && interrupted_.size() < 4 && random_() % 30 == 0) return interrupt(pc, 2 + random_() % 2);
        const auto instruction = isa::decode_at(program_.memory, {}, {pc}, isa::Isa::t32, {});
        const std::uint32_t half = program_.memory.half_at(pc), next = pc + instruction->bytes;
        if (half == 0xde00) return interrupted_.size() < 4 ? interrupt(pc, 0) : leave(pc);
        truth.push_back(pc);
        if (half == 0xdf01) return interrupted_.size() < 4 ? interrupt(next, 1) : next;
        if (half == 0x4770) {
            if (interrupted_.empty() || random_() % 2 == 0) return go(pc, 2, program_.any_place());
            go(pc, 2, 0xfffffff8);
            if (random_() % 4 == 0) return enter(0xfffffff8, program_.handlers[2 + random_() % 2]);
            const std::uint32_t to = interrupted_.back();
            interrupted_.pop_back();
            model_.returned(0xfffffff8, to);
            note();
            return to;
        }
        if (instruction->waypoint != isa::Waypoint::direct) return next;
        const bool taken = !instruction->conditional || random_() % 2 == 0;
        return go(pc, instruction->bytes, taken ? static_cast<std::uint32_t>(instruction->target.value) : next);
    }
    /// A debugger moves the PC.
    std::uint32_t leave(std::uint32_t pc) { return enter(pc, program_.any_place()); }

    Program& program_;
    Model& model_;
    std::mt19937_64& random_;
    std::vector<std::uint32_t> interrupted_;
    bool starts_ = true;
};

std::vector<std::uint8_t> in_order(const Model& model) {
    const auto registers = model.registers();
    const auto made = row().configure({"s", "MTB", "", registers, false});
    std::vector<std::uint8_t> out;
    for (const auto& piece : arrange(model.buffer(), config_of(*made.configuration)).pieces)
        out.insert(out.end(), model.buffer().begin() + static_cast<std::ptrdiff_t>(piece.offset),
                   model.buffer().begin() + static_cast<std::ptrdiff_t>(piece.offset + piece.bytes));
    return out;
}

TEST(MtbDecoder, GivesWhatWasExecuted) {
    std::uint64_t instructions = 0;
    for (std::uint64_t seed = 0; seed < wanted(300); ++seed) {
        std::mt19937_64 random(seed);
        Program program(random);
        Model model({.mask = static_cast<unsigned>(random() % 9), .block = 0});
        const Execution run(program, model, random, 400);
        const std::vector<std::uint8_t> bytes = in_order(model);
        ASSERT_EQ(run.packets.size(), model.packets());
        const std::size_t held = std::min<std::size_t>(run.packets.size(), model.buffer().size() / 8);
        ASSERT_EQ(bytes.size(), held * 8);
        std::vector<std::uint32_t> expected, found;
        for (std::size_t i = run.packets.size() - held + 1; held != 0 && i < run.packets.size(); ++i)
            if (!run.packets[i].starts)
                expected.insert(expected.end(),
                                run.truth.begin() + static_cast<std::ptrdiff_t>(run.packets[i - 1].truth),
                                run.truth.begin() + static_cast<std::ptrdiff_t>(run.packets[i].truth));
        const auto elements = decode<Decoder>(bytes, program.memory);
        for (const Element& e : elements) {
            EXPECT_TRUE(e.kind != Kind::inconsistency && e.kind != Kind::no_memory && e.kind != Kind::atoms)
                << "seed " << seed << ": " << synthetic::to_text(e);
            if (e.kind != Kind::range) continue;
            for (std::uint64_t at = e.block.start; at < e.block.start + e.block.bytes;
                 at += program.memory.size_at(static_cast<std::uint32_t>(at)))
                found.push_back(static_cast<std::uint32_t>(at));
        }
        ASSERT_EQ(found, expected) << "seed " << seed;
        expect_agreement(elements, bytes, program.memory);
        instructions += found.size();
    }
    EXPECT_GT(instructions, 20000U);
}

/// 0: table; 0x40: SysTick; 0x50: PendSV; 0x60: a function.
Memory small_program() {
    Memory m;
    for (unsigned i = 0; i < 16; ++i)
        m.word(i == 1 ? 0x61 : i == 14 ? 0x51 : i == 15 ? 0x41 : i == 3 || i == 4 ? 0x59 : 0);
    for (unsigned i = 0; i < 7; ++i) m.half(0xbf00);
    m.half(0x4770);  // 0x4e
    for (unsigned i = 0; i < 3; ++i) m.half(0xbf00);
    m.half(0x4770);  // 0x56
    for (unsigned i = 0; i < 4; ++i) m.half(0xbf00);
    m.half(0x3001);      // 0x60
    m.half(0xd0fd);      // 0x62: BEQ 0x60
    m.word(0x8f6ff3bf);  // 0x64: ISB
    m.half(0x3001);      // 0x68
    m.half(0xe7f9);      // 0x6a: B 0x60
    return m;
}
std::vector<std::uint8_t> packed(const std::vector<std::array<std::uint32_t, 2>>& words) {
    std::vector<std::uint8_t> out;
    for (const auto& [source, destination] : words)
        encode(out, {{source & ~1U, (source & 1U) != 0}, {destination & ~1U, (destination & 1U) != 0}});
    return out;
}
std::string flow_of(const std::vector<std::array<std::uint32_t, 2>>& words) {
    const Memory memory = small_program();
    const auto bytes = packed(words);
    const auto found = decode<Decoder>(bytes, memory);
    expect_agreement(found, bytes, memory);
    return text_of(found);
}

TEST(MtbDecoder, FollowsBranchesExceptionsAndReturns) {
    // From the first destination on: the branch at 0x62 is taken once, and then not taken.
    EXPECT_EQ(flow_of({{0x6a, 0x61}, {0x62, 0x60}, {0x6a, 0x60}}),
              "trace on 0x60..0x64T 0x60..0x64 0x64..0x68T 0x68..0x6cT ");
    EXPECT_EQ(flow_of({{0x6a, 0x61}, {0x69, 0x40}, {0x4e, 0xfffffff8}, {0xfffffff9, 0x68}, {0x6a, 0x60}}),
              "trace on 0x60..0x64 0x64..0x68T exception 15 before 0x68 0x40..0x50T exception return 0x68..0x6cT ");
    // Tail-chaining, and an exception before the first instruction of a path.
    EXPECT_EQ(flow_of({{0x6a, 0x60}, {0x61, 0x40}, {0x4e, 0xfffffff8}, {0xfffffff9, 0x50}, {0x56, 0xfffffff8}}),
              "trace on exception 15 before 0x60 0x40..0x50T exception return exception 14 0x50..0x58T ");
    // Several vectors with one handler; a place that is no handler; lockup.
    EXPECT_EQ(flow_of({{0x6a, 0x60}, {0x61, 0x58}, {0x59, 0x68}, {0x69, 0xfffffffe}, {0x6a, 0x60}}),
              "trace on exception 1024 before 0x60 exception 1025 before 0x58 exception 1026 before 0x68 ");
    // A Cortex-M33 has a packet for an ISB, whose destination is the next instruction.
    EXPECT_EQ(flow_of({{0x6a, 0x60}, {0x64, 0x68}, {0x6a, 0x60}}), "trace on 0x60..0x64 0x64..0x68T 0x68..0x6cT ");
    // Any instruction can have a packet.
    EXPECT_EQ(flow_of({{0x6a, 0x60}, {0x60, 0x68}, {0x6a, 0x60}}), "trace on 0x60..0x62 0x68..0x6cT ");
    // The second packet has S: the flow between is unknown.
    EXPECT_EQ(flow_of({{0x6a, 0x60}, {0x6a, 0x69}, {0x6a, 0x60}}), "trace on trace on 0x68..0x6cT ");
}

TEST(MtbDecoder, AllDecodersGiveTheSameOfAnyBytes) {
    for (std::uint64_t seed = 0; seed < wanted(20); ++seed) {
        std::mt19937_64 random(seed);
        const Program program(random);
        std::vector<std::uint8_t> bytes;
        for (unsigned i = 0; i < 300; ++i) {
            const auto address = [&] {
                const auto any = static_cast<std::uint32_t>(random());
                return any % 8 == 0 ? any : any % 0x200U;
            };
            const std::uint32_t source = address(), destination = address();
            encode(bytes, {{source & ~1U, (source & 1U) != 0}, {destination & ~1U, random() % 16 == 0}});
        }
        bytes.resize(bytes.size() - 3);
        expect_agreement(decode<Decoder>(bytes, program.memory), bytes, program.memory);
    }
}

TEST(MtbDecoder, ReportsWhatContradicts) {
    const std::string backwards(flow::name(flow::Conflict::update_behind)),
        taken(flow::name(flow::Conflict::always_taken));
    EXPECT_EQ(flow_of({{0x6a, 0x68}, {0x60, 0x40}, {0x4e, 0x60}}), "trace on [" + backwards + "] atoms 0x40..0x50T ");
    // Over a branch that is always taken.
    EXPECT_EQ(flow_of({{0x6a, 0x68}, {0x6c, 0x40}}), "trace on [" + taken + "] atoms ");
    // A direct branch that goes elsewhere.
    EXPECT_EQ(flow_of({{0x6a, 0x68}, {0x6a, 0x40}}),
              "trace on 0x68..0x6cT [" + std::string(flow::name(flow::Conflict::branch_disagrees)) + "] ");
    // A destination that is not the start of an instruction: after the barrier.
    EXPECT_EQ(flow_of({{0x6a, 0x64}, {0x66, 0x40}}), "trace on 0x64..0x68T [" + backwards + "] atoms ");
    // A return whose target is unknown.
    EXPECT_EQ(
        flow_of({{0x6a, 0x40}, {0x4e, 0xfffffff8}, {0x68, 0x60}}),
        "trace on 0x40..0x50T [" + std::string(flow::name(flow::Conflict::address_disagrees)) + "] exception return ");
    // A jump to unknown memory, and the fault there.
    EXPECT_EQ(flow_of({{0x4e, 0xbf00de4c}, {0xbf00de4d, 0x58}}), "trace on exception 1024 before 0xbf00de4c ");
}

}  // namespace
}  // namespace waymark::mtb
