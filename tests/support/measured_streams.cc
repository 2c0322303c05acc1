#include "support/measured_streams.h"

#include <algorithm>
#include <array>

#include "support/random.h"
#include "support/synthetic.h"
#include "waymark/coresight/formatter.h"
#include "waymark/pft/registers.h"

namespace waymark::synthetic {

namespace {

struct PartOptions {
    unsigned blocks = 1500;
    bool return_stack = false, cycle_accurate = false;
    std::uint64_t seed = 1;
};

MeasuredPart make_part(const PartOptions& options, std::uint64_t waypoints) {
    MeasuredPart part;
    part.etmcr = (options.return_stack ? 1U << 29 : 0U) | (options.cycle_accurate ? 1U << 28 | 1U << 12 : 0U);
    part.config =
        pft::Config::from_registers(from_value<pft::Etmcr>(part.etmcr), from_value<pft::Etmccer>(part.etmccer),
                                    from_value<pft::Etmidr>(part.etmidr));
    const Program program = make_program(
        {.seed = 1, .blocks = options.blocks, .a32_eret = false, .blx_may_fail = false, .large_block_chance = 0});
    // Plain execution: with features that OpenCSD reads differently (docs/spec/pft.md, 4.10), the two would do
    // different work.
    Walk walk(program, {.seed = options.seed + 1,
                        .exceptions = 20,
                        .debug = 0,
                        .context_changes = 0,
                        .vmid_changes = 0,
                        .filter_changes = 0,
                        .overflows = 0,
                        .jazelle = 0,
                        .security_changes = 0,
                        .odd_exceptions = 0,
                        .trustzone = false});
    TraceWriter writer(part.config, {.seed = options.seed + 2, .keep_truth = false});
    walk.run(writer, waypoints);
    writer.finish();
    part.bytes = writer.bytes();
    part.truth = writer.range_truth();
    part.code = std::make_shared<Memory>(program.memory);
    for (const auto& section : program.memory.sections) part.sections.push_back({section.address, section.bytes});
    return part;
}

MeasuredStream two_sources(std::uint64_t waypoints) {
    MeasuredStream s;
    for (const std::uint64_t i : {0U, 1U}) {
        s.parts.push_back(make_part({.seed = 1 + 10 * i}, waypoints / 2));
        s.parts.back().id = {static_cast<std::uint8_t>(0x10 + i)};
    }
    s.frames = framed({{{s.parts[0].id, s.parts[0].bytes}, {s.parts[1].id, s.parts[1].bytes}}});
    return s;
}

}  // namespace

std::vector<std::uint8_t> framed(std::array<FramedSource, 2> sources) {
    std::vector<std::uint8_t> frames;
    coresight::Formatter formatter(frames);
    // In turns of several bytes, as a funnel forwards them.
    Random random(5);
    while (!sources[0].bytes.empty() || !sources[1].bytes.empty())
        for (FramedSource& source : sources) {
            const std::size_t now = std::min<std::size_t>(source.bytes.size(), 1 + random.below(24));
            formatter.add(source.id, source.bytes.first(now));
            source.bytes = source.bytes.subspan(now);
        }
    formatter.flush();
    return frames;
}

std::size_t MeasuredStream::bytes() const {
    std::size_t sum = frames.size();
    if (frames.empty())
        for (const MeasuredPart& part : parts) sum += part.bytes.size();
    return sum;
}

MeasuredStream measured_stream(char which, std::uint64_t waypoints) {
    MeasuredStream s;
    switch (which) {
        case 'b': s.parts.push_back(make_part({}, waypoints)); break;
        case 'c': s.parts.push_back(make_part({.blocks = 50000}, waypoints)); break;
        case 'd': s.parts.push_back(make_part({.return_stack = true}, waypoints)); break;
        case 'e': s.parts.push_back(make_part({.cycle_accurate = true}, waypoints)); break;
        default: return two_sources(waypoints);
    }
    return s;
}

}  // namespace waymark::synthetic
