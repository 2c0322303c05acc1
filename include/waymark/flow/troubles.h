/// What keeps program flow from being known, counted, with the place of the first of each kind.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>

#include "waymark/core/gap.h"
#include "waymark/flow/flow.h"
#include "waymark/flow/summary.h"

namespace waymark::flow {

/// Something wrong, and where it was met first.
struct Trouble {
    std::uint64_t times{}, bytes{};
    std::uint64_t offset{};  ///< of the first, in the capture's buffer
    std::uint64_t address{}, expected{};
    friend bool operator==(const Trouble&, const Trouble&) = default;
};

/// From an offset in the stream to one in the capture's buffer.
using MapOffset = std::function<std::uint64_t(Offset)>;

/// Of one stream.
struct Troubles {
    std::array<Trouble, gap_reasons> gaps{};
    std::array<Trouble, conflicts> contradictions{};
    Trouble no_memory, overflows;
    Trouble long_walks;  ///< no branch in 64 KiB, and then no image: what was walked is no code; `address`: its start
    std::uint64_t contexts{}, timestamps{}, triggers{};
    std::optional<std::uint64_t> first_timestamp, last_timestamp;

    /// Counts the events of the next batch; `offset` is called for the first of each kind.
    void consume(const Batch& batch, const MapOffset& offset);
    /// Adds what was counted later in the stream.
    Troubles& operator+=(const Troubles& later);
    /// All contradictions together, with the place of the first; and its kind. Precondition of the kind: there is one.
    [[nodiscard]] Trouble contradicted() const;
    [[nodiscard]] Inconsistency first_contradiction() const;
    friend bool operator==(const Troubles&, const Troubles&) = default;

private:
    void note(const Event& event, const MapOffset& offset);
    std::optional<Block> last_;  // that ran
};

}  // namespace waymark::flow
