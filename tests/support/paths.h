/// Paths that decoders remember (follow/paths.h), forced to be rare, or frequent and displaced all the time.
#pragma once

#include <array>
#include <cstddef>

#include "waymark/follow/paths.h"

namespace waymark::synthetic {

/// The decoders made next keep paths in another way than those before, of all ways there are in turn.
inline void vary_paths() {
    static constexpr std::array<follow::PathOptions, 5> all{{{.log2_size = 11, .eager = true},
                                                             {.log2_size = 1, .eager = true},
                                                             {},
                                                             {.log2_size = 4, .eager = true},
                                                             {.none = true}}};
    static std::size_t next = 0;
    follow::usual_paths = all[next++ % all.size()];
}

}  // namespace waymark::synthetic
