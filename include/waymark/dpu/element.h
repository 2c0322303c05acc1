/// What trace entries mean when read in order: changes of flow with their context, counter readings with the
/// differences since the one before, loops, user data, losses (docs/spec/dpu.md, sections 7.4 and 12.1).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "waymark/core/gap.h"
#include "waymark/core/types.h"
#include "waymark/dpu/packet.h"

namespace waymark::dpu {

enum class ElementKind : std::uint8_t {
    task_switch,  ///< from, to, reading; context is the new task's (E1)
    flow,         ///< from, to, reading; context is that at `to` (E2)
    sample,       ///< reading (E3)
    pair,         ///< from, to (E4, E5): `from` of a hardware loop in EONCE_RAW is its last address, `to` its start
    pc,           ///< from (E4b, E6)
    short_loop,   ///< from: last address; value: times it jumped back (E7)
    long_loop,    ///< as short_loop (E8)
    user_data,    ///< value (E9)
    user_raw,     ///< value (E10)
    context,      ///< context (E11)
    closed,       ///< tracing was turned off; one for a run of them (E13)
    lost,         ///< value: entries for which there was no room (E14)
    gap,          ///< reason; value: bytes that gave no entry, 4294967295 where there are more
    held,         ///< tracing was held (TMPDIS): what happened then is in no entry; one for a run of pads (E12)
    enabled,      ///< tracing was off (EN = 0) and begins again: what happened meanwhile is in no entry
};
inline constexpr unsigned element_kinds = 15;
[[nodiscard]] std::string_view name(ElementKind kind);

/// One thing the trace says.
struct Element {
    // Bits of `flags`.
    static constexpr std::uint16_t privilege_known = 1;  ///< context.supervisor means something
    static constexpr std::uint16_t id_known = 2;         ///< context.id means something
    static constexpr std::uint16_t run_known = 4;        ///< `start` means something
    /// Stood next to damage, which likes to look like this: its own context is shown, but holds for nothing (7.3, 4).
    static constexpr std::uint16_t doubtful = 8;
    /// Context: it holds from the destination of the pair directly before (5.3).
    static constexpr std::uint16_t at_destination = 16;

    Offset offset;          ///< of its first word
    std::uint32_t start{};  ///< where the straight run began that ends at `from`: the destination before
    std::uint32_t from{}, to{};
    std::uint32_t value{};  ///< of kinds with a reading: its index in Batch::readings
    TaskContext context;    ///< after the element, so far as known
    ElementKind kind{};
    GapReason reason{};
    std::uint16_t flags{};

    [[nodiscard]] constexpr bool has(std::uint16_t flag) const { return (flags & flag) != 0; }
    [[nodiscard]] constexpr bool has_reading() const { return kind <= ElementKind::sample; }
    friend bool operator==(const Element&, const Element&) = default;
};
static_assert(sizeof(Element) == 32);

/// The counters at one instant, and what they counted since the reading before.
struct Reading {
    // Bits of `flags`: of the interval that ends here.
    static constexpr std::uint8_t first = 1;  ///< nothing was known before: the deltas are 0
    /// The trace lacks something in it (E14, damage, a hold, a pause of tracing): whose the deltas are is not known.
    static constexpr std::uint8_t lossy = 2;
    /// Another context than that of the reading before was shown in it.
    static constexpr std::uint8_t mixed = 4;

    Counters values{};
    Counters deltas{};    ///< (previous - current) modulo 2^31, for the counters count down
    std::uint8_t wide{};  ///< a bit for each counter with a delta of 2^30 or more: it may have wrapped unseen
    std::uint8_t flags{};

    [[nodiscard]] constexpr bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
    friend bool operator==(const Reading&, const Reading&) = default;
};

/// Consecutive elements of one stream. Borrowed: valid during ElementSink::consume().
struct Batch {
    std::span<const Element> elements;
    std::span<const Reading> readings;  ///< of those elements that have one, in order
};

/// Takes what a decoder delivers.
class ElementSink {
public:
    virtual ~ElementSink() = default;
    /// Batches come in stream order.
    virtual void consume(const Batch& batch) = 0;
};

/// What a stream held. Every byte is in one entry or one gap.
struct Totals {
    std::uint64_t bytes{};                               ///< fed
    std::uint64_t entry_bytes{};                         ///< of whole entries, pads included
    std::array<std::uint64_t, Entries::size> entries{};  ///< by type, in the order of Entries
    std::uint64_t doubtful{};                            ///< of them: next to damage
    std::array<std::uint64_t, gap_reasons> gaps{};       ///< by reason
    std::array<std::uint64_t, gap_reasons> gap_bytes{};
    std::uint64_t lost{};   ///< entries for which there was no room: the sum of all E14
    std::uint64_t holds{};  ///< times that tracing was held
    std::uint64_t offs{};   ///< times that tracing was off and began again
    std::uint64_t readings{};
    std::uint64_t wide{};                               ///< of them: with a delta of 2^30 or more
    std::array<std::uint64_t, counter_count> deltas{};  ///< sum over all readings
    friend bool operator==(const Totals&, const Totals&) = default;

    template <class P>
    [[nodiscard]] std::uint64_t count() const {
        return entries[entry_index<P>];
    }
    [[nodiscard]] std::uint64_t lost_bytes() const;
};

/// What is known when tracing is enabled: from the capture's header (7.5).
struct StartState {
    std::optional<TaskContext> context;
    std::optional<Counters> counters;
};

}  // namespace waymark::dpu
