/// Where a stream can be cut for several threads (parallel.h): behind the packet that gives the whole state.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>

#include "waymark/core/wire.h"

namespace waymark::follow {

/// From a synchronisation packet on, whether packets follow up to one behind which the stream can be cut. `from`:
/// behind the synchronisation packet. `parse(bytes, from, cut)` parses the packet at `from`, where `bytes` begin, and
/// sets `cut` if that packet gives the state.
template <class Cut, class Parse>
[[nodiscard]] std::optional<Cut> cut_behind(Bytes bytes, std::size_t from, Parse&& parse) {
    // As far as the packet may stay behind.
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
