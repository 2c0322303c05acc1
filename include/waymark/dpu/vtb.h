/// The virtual trace buffer: where in a dump of the buffer the trace begins and how it goes on (docs/spec/dpu.md,
/// sections 3.4 and 5.7).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::dpu {

/// What is written at a time: eight words, one entry of the trace write buffer.
inline constexpr std::uint32_t line_bytes = 32;
/// Where the line begins that holds this address.
constexpr std::uint32_t line_of(std::uint32_t address) { return address & ~(line_bytes - 1); }

/// What decides the reading order, as read after the stop.
struct VtbState {
    std::uint32_t tsa{}, tea{}, tw{};  ///< DP_TSA, DP_TEA, DP_TW; low five bits are ignored
    bool single_address = false;       ///< DP_TC.VTBWM = 01: the dump is what the one address received, in order
    bool wrapped = false;              ///< DP_MR.TWRAP
    std::optional<std::uint64_t> lines_written;  ///< since the first enable, where the capture says
};

/// Bytes of the dump that follow one another in the trace.
struct Stretch {
    std::uint64_t offset{}, bytes{};
    bool jump = false;  ///< what the trace had before it is missing from the dump
    friend bool operator==(const Stretch&, const Stretch&) = default;
};

struct ReadingOrder {
    std::vector<Stretch> stretches;  ///< oldest first, none empty
    bool overwritten = false;        ///< older trace was overwritten: the first entry may be cut
    bool cut = false;                ///< the dump ends before the newest trace: the last entry may be cut

    [[nodiscard]] std::uint64_t bytes() const;
};

/// Overwrite and request mode: a ring, from DP_TW on if it wrapped, else from DP_TSA to DP_TW; where the number of
/// lines written is known, exactly these. A dump shorter than the buffer is read as far as it goes, one that is longer
/// too. `bad_format`: DP_TEA lies below DP_TSA, or DP_TW outside of them; the message says what to check.
[[nodiscard]] Result<ReadingOrder> reading_order(const VtbState& state, std::uint64_t dump_bytes);

/// A dump without registers begins at its first byte; lines that are zero at its end were never written.
[[nodiscard]] Bytes without_unwritten(Bytes dump);

/// Tracing was enabled again (`periods`, 7.5).
struct PeriodStart {
    std::uint32_t tw{};                          ///< DP_TW at that time
    std::optional<std::uint64_t> lines_written;  ///< before it, where the capture says
};
/// Where in the trace of a whole dump each period begins, in bytes from the oldest; none where its beginning was
/// overwritten. Without `lines_written` a period is taken to be shorter than the buffer. `periods` oldest first.
[[nodiscard]] std::vector<std::optional<std::uint64_t>> period_starts(const VtbState& state, const ReadingOrder& order,
                                                                      std::span<const PeriodStart> periods);

/// Reads a ring while it fills, as software does in request mode: at each request what was written since the one
/// before.
class Readout {
public:
    /// `tw`: DP_TW when tracing was enabled.
    Readout(std::uint32_t tsa, std::uint32_t tea, std::uint32_t tw)
        : tsa_(tsa), size_(tea - tsa + line_bytes), at_(tw) {}

    struct Piece {
        std::vector<Stretch> stretches;  ///< offsets from DP_TSA
        bool overrun = false;            ///< trace that was not yet read was overwritten: at least a lap
    };
    /// DP_TW now, and DP_MR.TWRAP, which the reader clears each time it was set.
    [[nodiscard]] Piece take(std::uint32_t tw, bool wrapped);

private:
    std::uint32_t tsa_, size_, at_;
};

}  // namespace waymark::dpu
