/// The virtual trace buffer: where the trace begins in a dump of the buffer, and in which order it continues
/// (docs/spec/dpu.md, sections 3.4 and 5.7).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "waymark/core/result.h"
#include "waymark/core/types.h"

namespace waymark::dpu {

/// The size of one write: eight words, one entry of the trace write buffer.
inline constexpr std::uint32_t line_bytes = 32;
/// The beginning of the line that contains this address.
constexpr std::uint32_t line_of(std::uint32_t address) { return address & ~(line_bytes - 1); }

/// The registers that decide the reading order, with their values after the stop.
struct VtbState {
    std::uint32_t tsa{}, tea{}, tw{};  ///< DP_TSA, DP_TEA, DP_TW; low five bits are ignored
    bool single_address =
        false;             ///< DP_TC.VTBWM = 01: the dump has the lines that the single address received, in order
    bool wrapped = false;  ///< DP_MR.TWRAP
    std::optional<std::uint64_t> lines_written;  ///< since the first enable, if the capture states it
};

/// Bytes of the dump that are adjacent in the trace.
struct Stretch {
    std::uint64_t offset{}, bytes{};
    bool jump = false;  ///< the trace before it is missing in the dump
    friend bool operator==(const Stretch&, const Stretch&) = default;
};

struct ReadingOrder {
    std::vector<Stretch> stretches;  ///< oldest first, none empty
    bool overwritten = false;        ///< older trace was overwritten: the first entry may be cut
    bool cut = false;                ///< the dump ends before the newest trace: the last entry may be cut

    [[nodiscard]] std::uint64_t bytes() const;
};

/// Overwrite and request mode: a ring, which begins at DP_TW if it wrapped, otherwise at DP_TSA and ends at DP_TW; if
/// the number of lines written is known, exactly these lines. A dump that is shorter or longer than the buffer is read
/// as far as possible. `bad_format`: DP_TEA is below DP_TSA, or DP_TW is outside of both; the message says what to
/// check.
[[nodiscard]] Result<ReadingOrder> reading_order(const VtbState& state, std::uint64_t dump_bytes);

/// A dump without registers begins at its first byte; lines of zeros at its end were never written.
[[nodiscard]] Bytes without_unwritten(Bytes dump);

/// The offset in the trace at which tracing was enabled again (`periods`, 7.5).
struct PeriodStart {
    std::uint32_t tw{};                          ///< DP_TW at that time
    std::optional<std::uint64_t> lines_written;  ///< number before it, if the capture states it
};
/// The beginning of each period in the trace of a whole dump, in bytes from the oldest; nullopt if its beginning was
/// overwritten. Without `lines_written` a period is assumed to be shorter than the buffer. `periods` oldest first.
[[nodiscard]] std::vector<std::optional<std::uint64_t>> period_starts(const VtbState& state, const ReadingOrder& order,
                                                                      std::span<const PeriodStart> periods);

/// Reads a ring while it is being filled, as software does in request mode: each request reads the trace since the
/// previous one.
class Readout {
public:
    /// `tw`: DP_TW when tracing was enabled.
    Readout(std::uint32_t tsa, std::uint32_t tea, std::uint32_t tw)
        : tsa_(tsa), size_(tea - tsa + line_bytes), at_(tw) {}

    struct Piece {
        std::vector<Stretch> stretches;  ///< offsets from DP_TSA
        bool overrun = false;            ///< unread trace was overwritten: at least a full lap
    };
    /// `tw`: the present DP_TW; `wrapped`: DP_MR.TWRAP, which the reader clears each time.
    [[nodiscard]] Piece take(std::uint32_t tw, bool wrapped);

private:
    std::uint32_t tsa_, size_, at_;
};

}  // namespace waymark::dpu
