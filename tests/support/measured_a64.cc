#include "support/measured_a64.h"

#include <algorithm>
#include <array>
#include <utility>

#include "support/measured_streams.h"
#include "support/random.h"
#include "support/synthetic.h"
#include "waymark/core/byte_sink.h"
#include "waymark/etm4/model.h"
#include "waymark/isa/decode_instr.h"

namespace waymark::synthetic {

namespace {

/// Functions one after another, each of some blocks; the last block of each returns.
class A64Program {
public:
    struct Block {
        std::uint64_t start{};
        isa::Instruction last{};
        std::uint32_t instructions{};
        std::uint32_t target{};  ///< the block that a direct branch leads to
        std::uint32_t first{};   ///< the first block of its function
        std::uint8_t taken{};    ///< a conditional branch is taken this often in 256
        [[nodiscard]] std::uint64_t end() const { return start + 4 * std::uint64_t{instructions}; }
        [[nodiscard]] std::uint64_t last_address() const { return end() - 4; }
    };

    explicit A64Program(unsigned count) {
        Random random(1);
        std::vector<std::uint32_t> ends;  // the instruction that ends each block, without a target
        while (blocks.size() < count) {
            const auto first = static_cast<std::uint32_t>(blocks.size());
            functions.push_back(first);
            const auto size = static_cast<std::uint32_t>(4 + random.below(20));
            for (std::uint32_t i = 0; i < size; ++i) {
                Block block{.start = blocks.empty() ? base : blocks.back().end(),
                            .instructions = static_cast<std::uint32_t>(1 + random.below(9)),
                            .target = first + static_cast<std::uint32_t>(random.below(size)),
                            .first = first};
                // Most branches nearly always go one way.
                constexpr std::array<std::uint8_t, 4> chances{16, 240, 250, 128};
                block.taken = chances[random.below(chances.size())];
                ends.push_back(i + 1 == size ? 0xd65f03c0 : ending(random));
                blocks.push_back(block);
            }
        }
        Memory::Section section{base, {}};
        for (std::size_t i = 0; i < blocks.size(); ++i) {
            Block& block = blocks[i];
            std::uint32_t opcode = ends[i];
            if (opcode == 0x94000000)
                block.target = functions[random.below(static_cast<std::uint32_t>(functions.size()))];
            const std::uint64_t words = (blocks[block.target].start - block.last_address()) / 4;
            if (opcode == 0x94000000 || opcode == 0x14000000) opcode |= words & 0x3ffffffU;
            if (opcode >> 24 == 0x54) opcode |= (words & 0x7ffffU) << 5;
            const auto put = [&](std::uint32_t word) {
                for (unsigned n = 0; n < 4; ++n) section.bytes.push_back(static_cast<std::uint8_t>(word >> 8 * n));
            };
            for (std::uint32_t n = 1; n < block.instructions; ++n) put(0x91000400);  // ADD
            put(opcode);
            block.last = isa::decode_instr({block.last_address()}, isa::Isa::a64, opcode, true, {});
        }
        memory.sections.push_back(std::move(section));
    }

    std::vector<Block> blocks;
    std::vector<std::uint32_t> functions;  ///< their first blocks
    Memory memory;

private:
    static constexpr std::uint64_t base = 0xffff'8000'0008'0000;

    static std::uint32_t ending(Random& random) {
        const std::uint64_t kind = random.below(100);
        if (kind < 68) return 0x54000000;  // B.EQ
        if (kind < 80) return 0x14000000;  // B
        if (kind < 90) return 0x94000000;  // BL
        if (kind < 94) return 0xd63f0000;  // BLR
        if (kind < 97) return 0xd61f0000;  // BR
        return kind < 99 ? 0xd65f03c0      // RET
                         : 0xd5033fdf;     // ISB
    }
};

struct A64PartOptions {
    unsigned blocks = 1500;
    bool return_stack = false, cycle_accurate = false, speculates = false, source_addresses = false;
    std::uint64_t seed = 1;
};

MeasuredA64Part make_a64_part(const A64PartOptions& options, std::uint64_t waypoints) {
    MeasuredA64Part part;
    part.config.version = options.source_addresses ? 0x53 : 0x42;
    part.config.return_stack = options.return_stack;
    part.config.cycle_counting = part.config.timestamps = options.cycle_accurate;
    part.config.max_speculation = options.speculates ? 8 : 0;
    etm4::ModelConfig unit{.registers = etm4::tracing_registers(part.config)};
    unit.registers.syncpr.period = 10;
    unit.choices.cycle_count_format_2 = false;  // OpenCSD misreads it
    if (options.source_addresses) unit.choices.source_address_after = 1;
    if (options.speculates) unit.choices.mispredict_one_in = 50;
    part.config = etm4::packets_of(unit.registers, unit.profile);

    const A64Program program(options.blocks);
    ByteCollector trace;
    etm4::Model model(unit, trace);
    Random random(options.seed + 1);
    flow::Context context;
    context.el = 1;
    context.ns = context.aarch64 = true;
    model.set_context(context);

    std::uint32_t at = 0;
    std::uint64_t cycle = 100;
    std::vector<std::uint32_t> calls;
    const auto place = [&](std::uint32_t block) { return isa::Place{{program.blocks[block].start}, isa::Isa::a64}; };
    const auto any_function = [&] {
        return program.functions[random.below(static_cast<std::uint32_t>(program.functions.size()))];
    };
    model.start({place(at), cycle});
    for (std::uint64_t i = 0; i < waypoints; ++i) {
        const A64Program::Block& block = program.blocks[at];
        cycle += block.instructions + (random.below(8) == 0 ? random.below(100) : 0);
        if (random.below(500) == 0) {
            // An interrupt before its first instruction; the handler returns like a function.
            const std::uint32_t handler = any_function();
            model.exception({.type = 0x0e, .back = {}, .handler = place(handler), .cycle = cycle});
            at = handler;
            continue;
        }
        const bool passed = !block.last.conditional || random.below(256) < block.taken;
        std::uint32_t next = at + 1;
        if (block.last.waypoint == isa::Waypoint::indirect) {
            if (block.last.function_return && !calls.empty()) {
                next = calls.back();
                calls.pop_back();
            } else {
                next = any_function();
            }
        } else if (block.last.waypoint == isa::Waypoint::direct && passed) {
            next = block.target;
        }
        if (block.last.link) {
            calls.push_back(at + 1);
            if (calls.size() > 100) calls.erase(calls.begin());
        }
        part.truth.ranges++;
        part.truth.instructions += block.instructions;
        part.truth.hash.add(block.start);
        part.truth.hash.add(block.end());
        model.retire_block({.address = {block.last_address()},
                            .isa = isa::Isa::a64,
                            .instruction = block.last,
                            .passed = passed,
                            .next = place(next),
                            .cycle = cycle});
        at = next;
    }
    model.finish();
    part.bytes = trace.bytes();
    part.code = std::make_shared<Memory>(program.memory);
    for (const auto& section : program.memory.sections) part.sections.push_back({section.address, section.bytes});
    return part;
}

}  // namespace

std::size_t MeasuredA64Stream::bytes() const {
    std::size_t sum = frames.size();
    if (frames.empty())
        for (const MeasuredA64Part& part : parts) sum += part.bytes.size();
    return sum;
}

MeasuredA64Stream measured_a64_stream(char which, std::uint64_t waypoints) {
    MeasuredA64Stream s;
    switch (which) {
        case 'b': s.parts.push_back(make_a64_part({}, waypoints)); break;
        case 'c': s.parts.push_back(make_a64_part({.blocks = 50000}, waypoints)); break;
        case 'd': s.parts.push_back(make_a64_part({.return_stack = true}, waypoints)); break;
        case 'e': s.parts.push_back(make_a64_part({.cycle_accurate = true}, waypoints)); break;
        case 'n': s.parts.push_back(make_a64_part({.source_addresses = true}, waypoints)); break;
        case 's': s.parts.push_back(make_a64_part({.speculates = true}, waypoints)); break;
        default:
            for (const std::uint64_t i : {0U, 1U}) {
                s.parts.push_back(make_a64_part({.seed = 1 + 10 * i}, waypoints / 2));
                s.parts.back().id = {static_cast<std::uint8_t>(0x10 + i)};
            }
            s.frames = framed({{{s.parts[0].id, s.parts[0].bytes}, {s.parts[1].id, s.parts[1].bytes}}});
            break;
    }
    return s;
}

}  // namespace waymark::synthetic
