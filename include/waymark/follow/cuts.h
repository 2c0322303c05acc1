/// Finds places where a stream can be cut for several threads (parallel.h): after a packet that gives the complete
/// state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "waymark/core/wire.h"

namespace waymark::follow {

/// Searches, from a synchronisation packet on, for a packet after which the stream can be cut. `from`: end of the
/// synchronisation packet. `parse(bytes, from, cut)` parses the packet at `from`, where `bytes` begin, and sets `cut`
/// if that packet gives the state.
template <class Cut, class Parse>
[[nodiscard]] std::optional<Cut> cut_behind(Bytes bytes, std::size_t from, Parse&& parse) {
    // Maximum distance of that packet.
    constexpr std::size_t most_bytes = 4096;
    const std::size_t end = std::min(bytes.size(), from + most_bytes);
    std::optional<Cut> cut;
    while (from < end && bytes[from] != 0 && !cut) {
        const wire::Parsed parsed = parse(bytes.subspan(from, end - from), from, cut);
        if (parsed.step != Step::ok) return {};
        from += parsed.bytes;
    }
    return cut;
}

}  // namespace waymark::follow
