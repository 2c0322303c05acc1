/// Paths that decoders remember (follow/paths.h), forced to be rare, or frequent and constantly displaced, or
/// alternately absent.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>

#include "support/elements.h"
#include "waymark/core/types.h"
#include "waymark/flow/blocks.h"
#include "waymark/follow/paths.h"

namespace waymark::synthetic {

/// The next decoders keep paths in another way than the decoders before, in turn through all ways.
inline void vary_paths() {
    static constexpr std::array<follow::PathOptions, 7> all{{{.log2_size = 11, .eager = true},
                                                             {.log2_size = 1, .eager = true},
                                                             {},
                                                             {.log2_size = 1, .alternate = true},
                                                             {.log2_size = 4, .eager = true},
                                                             {.alternate = true},
                                                             {.none = true}}};
    static std::size_t next = 0;
    follow::usual_paths = all[next++ % all.size()];
}

/// Targets of indirect branches and their counts: by the addresses of branch and target.
using Ways = std::map<std::array<std::uint64_t, 4>, std::uint64_t>;

/// Counts from a decoder that keeps paths in this way.
template <class Decoder, class Config>
[[nodiscard]] Ways ways_with(const follow::PathOptions& paths, Bytes bytes, const Config& config,
                             const isa::CodeReader& code) {
    follow::usual_paths = paths;
    flow::BlockTable table;
    ElementSink events;
    flow::CountWriter out(table, events);
    out.count_ways();
    Decoder decoder(config, code, out);
    decoder.feed(bytes);
    decoder.finish();
    Ways found;
    for (const flow::EdgeWay& way : out.ways().all()) {
        const flow::Block& from = table.blocks()[way.edge / 2];
        const bool known = way.block != flow::EdgeWay::no_block;
        const std::uint64_t to = known ? table.blocks()[way.block].start : 0;
        found[{from.start, from.section, to, known ? 1U : 0U}] += way.times;
    }
    return found;
}

}  // namespace waymark::synthetic
