/// Formats a sample as the bytes of its record (docs/spec/spe.md, 1.6, 3.11, 4).
#pragma once

#include <cstdint>
#include <vector>

#include "waymark/spe/model.h"

namespace waymark::spe {

/// Events that a unit of this architecture defines (4.5), regardless of filters.
[[nodiscard]] std::uint64_t known_events(const Architecture& arch);

/// The layout of a unit's records.
struct RecordFormat {
    RecordOrder order{};
    std::uint16_t slots{};
    std::uint8_t event_bytes = 2, data_source_bytes = 1;
    bool padding_first{};
    std::uint8_t align{};  ///< PMBIDR_EL1.Align

    /// Precondition: every size in `choices` is a legal one.
    [[nodiscard]] static RecordFormat of(const ModelChoices& choices, const Architecture& arch, std::uint8_t align);
    /// The events that are recorded.
    [[nodiscard]] static std::uint64_t events(const ModelChoices& choices, const Architecture& arch);
};

struct FormattedRecord {
    std::vector<std::uint8_t> bytes;
    std::uint32_t lead_bytes{};    ///< empty places before the first packet: they belong to no record (4.1)
    std::uint32_t record_bytes{};  ///< size from there to the terminator
};
[[nodiscard]] FormattedRecord format_record(const Record& record, const RecordFormat& format);

}  // namespace waymark::spe
