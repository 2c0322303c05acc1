/// Why sources gave nothing: the one place that says so, for all commands. Sentences without a full stop.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/gap.h"
#include "waymark/pipeline/run.h"
#include "waymark/pipeline/session.h"

namespace waymark::pipeline {

/// What decoding gave, as far as it explains why that was nothing. A list of packets knows `packets` alone.
struct Gave {
    std::uint64_t packets{};
    std::array<std::uint64_t, gap_reasons> gaps{};  ///< stretches, by reason
    std::uint64_t no_memory{};                      ///< times execution went where no image is known
};

/// There is trace, and it shows that nothing ran.
inline constexpr std::string_view nothing_ran =
    "nothing ran while it was traced: the trace has synchronisations, and no branch between them";

/// Why the selected sources gave nothing: no bytes, no packet, or no instruction.
[[nodiscard]] std::string why_nothing(const Session& session, const std::vector<const Source*>& selected,
                                      const Report& report, const Gave& gave);
/// Why `bytes` bytes of the sources gave not a single packet. What can be changed is named: of a perf.data file,
/// nothing.
[[nodiscard]] std::string no_sync(const capture::Capture& capture, const std::vector<const Source*>& sources,
                                  std::uint64_t bytes);

}  // namespace waymark::pipeline
