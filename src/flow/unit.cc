#include "waymark/flow/unit.h"

namespace waymark::flow {

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

}  // namespace waymark::flow
