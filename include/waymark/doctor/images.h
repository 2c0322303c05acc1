/// Does an image hold the program that ran? Decoding proves it: code and trace of one program agree everywhere, those
/// of two contradict each other within a few packets.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/doctor/identify.h"
#include "waymark/flow/summary.h"
#include "waymark/image/memory_map.h"
#include "waymark/pft/recover.h"

namespace waymark::doctor {

/// What decoding with an image gave.
struct Trial {
    flow::Totals totals;
    std::uint64_t contradictions{};
    struct First {
        Offset offset;  ///< in the buffer
        flow::Inconsistency what;
    };
    std::optional<First> first;
    std::optional<Offset> first_no_memory;
    Address no_memory{};                                    ///< where execution went there
    std::map<std::uint64_t, std::uint64_t> no_memory_at{};  ///< how often it went where there is none, by address
    bool ended{};  ///< there were so many contradictions that the rest was left out
    /// Contradictions are so rare that damage or code that was modified explains them.
    [[nodiscard]] bool agrees() const { return totals.ranges >= 8 && contradictions * 50 < totals.ranges; }
};
/// A trial ends after so many contradictions.
inline constexpr std::uint64_t most_contradictions = 200;
[[nodiscard]] Trial try_image(const std::vector<Stretch>& stretches, const pft::Config& config,
                              const isa::CodeReader& code, std::uint64_t most_bytes = ~std::uint64_t{0});

/// An image, loaded so many bytes above where it says.
using LoadImage = std::function<Result<std::shared_ptr<image::MemoryMap>>(std::uint64_t shift)>;
/// `FILE[@ADDRESS]`; a raw dump without an address begins at 0.
[[nodiscard]] LoadImage load_argument(std::string argument);
/// Where a map has bytes, in Non-secure or Secure state.
[[nodiscard]] std::vector<pft::CodeExtent> extents_of(const image::MemoryMap& map, bool ns);

struct Shift {
    std::uint64_t bytes{};  ///< to be added to the image's addresses, modulo 2^32
    std::uint64_t votes{}, candidates{};
    Trial trial;
};
/// The shift with which the image agrees with the trace. Candidates are differences between addresses the trace names
/// (I-syncs, branches) and places branches of the image lead to; the most frequent are proven by decoding. Nothing if
/// none agrees.
[[nodiscard]] std::optional<Shift> find_shift(const std::vector<Stretch>& stretches, const pft::Config& config,
                                              const LoadImage& load);

}  // namespace waymark::doctor
