/// What damage to frames did to a capture, in the words that all commands use: flow, info, report and doctor say the
/// same of the same damage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "waymark/pipeline/run.h"

namespace waymark::pipeline {

struct Damage {
    enum class Kind : std::uint8_t {
        reserved_ids,     ///< bytes under trace IDs that are reserved
        trigger_ids,      ///< bytes under the IDs of triggers and flushes that are none
        padding,          ///< bytes under the null ID that are not zero
        damaged_ids,      ///< a few bytes under IDs of sources that nobody described
        undescribed_ids,  ///< so many of them that they are a source
        silence,          ///< a source ended inside a packet while others went on
    };
    Kind kind{};
    Offset first{};              ///< in the buffer
    std::string buffer, source;  ///< names; `source` is empty where any source may be meant
    std::string found, means;    ///< `21 bytes in 1 stretch have reserved trace IDs (0x70)`; what follows from it
    /// One sentence with place: `buffer ETB_0: 21 bytes in 1 stretch, first at offset 0x1b, have …: …`.
    std::string sentence;
};

/// What BufferReport::strays say, one entry for each kind.
[[nodiscard]] std::vector<Damage> damage_in(const BufferReport& buffer);
/// The sudden silence of a source; nothing: it ended as sources do.
[[nodiscard]] std::optional<Damage> damage_in(const StreamReport& stream);

}  // namespace waymark::pipeline
