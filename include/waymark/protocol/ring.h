/// Buffers whose bytes are not in the order in which their unit wrote them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "waymark/protocol/protocol.h"

namespace waymark::protocol {

/// The place of a unit's trace in a dump of memory.
struct Arrangement {
    struct Piece {
        std::uint64_t offset{}, bytes{};  ///< in the dump
        bool lost{};                      ///< trace between the piece before and this one is missing
        friend bool operator==(const Piece&, const Piece&) = default;
    };
    std::vector<Piece> pieces{};          ///< the oldest first; each continues the one before, or has `lost`
    std::vector<std::string> problems{};  ///< assumptions and contradictions: sentences
    bool wrapped{};                       ///< newer trace replaced older trace
    std::string ends{};  ///< where in the run, as in capture::Buffer; empty: the end is not known to be missing
    friend bool operator==(const Arrangement&, const Arrangement&) = default;
};

/// Also implemented by the Configuration of a unit that writes into a ring of memory.
class RingSource {
public:
    /// A dump larger than any memory of such a unit is not rearranged.
    static constexpr std::uint64_t most_bytes = std::uint64_t{1} << 26;

    virtual ~RingSource() = default;
    [[nodiscard]] virtual Arrangement arrange(Bytes dump) const = 0;
};

}  // namespace waymark::protocol
