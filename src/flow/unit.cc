#include "waymark/flow/unit.h"

#include <fmt/format.h>

#include "waymark/flow/register_steps.h"

namespace waymark::flow {

Status check_fifo(const UnitOptions& options, unsigned least_bytes) {
    if (options.fifo_bytes != 0 && options.fifo_bytes < least_bytes)
        return Error{Errc::usage,
                     fmt::format("--fifo {}: a FIFO contains at least {} bytes; 0 means that it never fills",
                                 options.fifo_bytes, least_bytes)};
    if (options.drain_cycles == 0)
        return Error{Errc::usage, "--drain 0: at least one cycle passes while four bytes leave the FIFO"};
    return Nothing{};
}

std::size_t Unit::waypoints(Place from, std::span<const RetiredBlock> blocks) {
    const std::uint64_t before = lost();
    std::size_t taken = 0;
    while (taken < blocks.size() && lost() == before) {
        const RetiredBlock& b = blocks[taken++];
        const Place next{b.next, b.next_isa};
        waypoint({static_cast<std::uint32_t>(b.address - from.address), b.bytes_before},
                 {b.address, b.isa, *b.instruction, b.passed, next}, b.cycle);
        from = next;
    }
    return taken;
}

std::unique_ptr<PreparedSequence> Unit::prepare(Place, std::uint64_t, std::span<const RetiredBlock>) { return nullptr; }

std::size_t Unit::sequences(std::span<const RetiredSequence>) { return 0; }

Result<ComponentProgram> UnitFactory::program(const UnitOptions&, std::uint8_t) const {
    return Error{Errc::unsupported,
                 fmt::format("the model of {} has no registers that could prove a program for hardware", name())};
}

std::unique_ptr<Unit> UnitFactory::make_unprogrammed(const UnitOptions&, std::uint64_t, ByteSink&) const {
    return nullptr;
}

}  // namespace waymark::flow
