/// Explains why sources gave nothing. All commands take these explanations from here. Sentences without a full stop.
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

/// The result of decoding, as far as it explains why nothing was decoded. For a list of packets, only `packets` is
/// known.
struct Gave {
    std::uint64_t packets{};
    std::array<std::uint64_t, gap_reasons> gaps{};  ///< stretches, by reason
    std::uint64_t no_memory{};                      ///< times execution went where no image is known
    std::uint64_t uncommitted{};                    ///< P0 elements that may or may not have run
    std::uint64_t untraced{}, unplaced{};           ///< stretches whose way or addresses the trace omits
    /// Whether code ran, or may have run, although no instruction was decoded.
    [[nodiscard]] bool hides_code() const { return no_memory + uncommitted + untraced + unplaced != 0; }
};

/// There is trace, but it shows no executed code.
inline constexpr std::string_view nothing_ran =
    "the trace does not show that anything ran: it has synchronisations, and no branch between them";

/// The reason why the selected sources gave nothing: no bytes, no packet, or no instruction.
[[nodiscard]] std::string why_nothing(const Session& session, const std::vector<const Source*>& selected,
                                      const Report& report, const Gave& gave);
/// The reason why `bytes` bytes of the sources contain no packet. Names settings that can be changed; a perf.data file
/// has none.
[[nodiscard]] std::string no_sync(const capture::Capture& capture, const std::vector<const Source*>& sources,
                                  std::uint64_t bytes);

}  // namespace waymark::pipeline
