/// The meaning of trace entries read in order: changes of flow with their context, counter readings with differences
/// from the previous one, loops, user data, losses (docs/spec/dpu.md, sections 7.4 and 12.1).
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
    flow,         ///< from, to, reading; context is the one at `to` (E2)
    sample,       ///< reading (E3)
    pair,        ///< from, to (E4, E5): for a hardware loop in EONCE_RAW, `from` is its last address and `to` its start
    pc,          ///< from (E4b, E6)
    short_loop,  ///< from: last address; value: number of backward jumps (E7)
    long_loop,   ///< as short_loop (E8)
    user_data,   ///< value (E9)
    user_raw,    ///< value (E10)
    context,     ///< context (E11)
    closed,      ///< tracing was turned off; a run of them gives one element (E13)
    lost,        ///< value: number of entries that did not fit (E14)
    gap,         ///< reason; value: number of bytes without an entry, at most 4294967295
    held,     ///< tracing was held (TMPDIS): no entry shows the time meanwhile; a run of pads gives one element (E12)
    enabled,  ///< tracing was off (EN = 0) and begins again: no entry shows the time meanwhile
};
inline constexpr unsigned element_kinds = 15;
[[nodiscard]] std::string_view name(ElementKind kind);

/// One statement of the trace.
struct Element {
    // Bits of `flags`.
    static constexpr std::uint16_t privilege_known = 1;  ///< context.supervisor means something
    static constexpr std::uint16_t id_known = 2;         ///< context.id means something
    static constexpr std::uint16_t run_known = 4;        ///< `start` means something
    /// The entry is next to damage, which often produces such entries. The element shows the entry's context, but the
    /// context does not apply to anything (7.3, 4).
    static constexpr std::uint16_t doubtful = 8;
    /// For a context: it applies from the destination of the directly preceding pair on (5.3).
    static constexpr std::uint16_t at_destination = 16;

    Offset offset;          ///< offset of its first word
    std::uint32_t start{};  ///< beginning of the straight run that ends at `from`: the previous destination
    std::uint32_t from{}, to{};
    std::uint32_t value{};  ///< for kinds with a reading: its index in Batch::readings
    TaskContext context;    ///< after the element, as far as known
    ElementKind kind{};
    GapReason reason{};
    std::uint16_t flags{};

    [[nodiscard]] constexpr bool has(std::uint16_t flag) const { return (flags & flag) != 0; }
    [[nodiscard]] constexpr bool has_reading() const { return kind <= ElementKind::sample; }
    friend bool operator==(const Element&, const Element&) = default;
};
static_assert(sizeof(Element) == 32);

/// The counters at one instant, and their counts since the previous reading.
struct Reading {
    // Bits of `flags`, for the interval that ends here.
    static constexpr std::uint8_t first = 1;  ///< no earlier reading was known: the deltas are 0
    /// Trace is missing in the interval (E14, damage, a hold, a pause of tracing): the owner of the deltas is not
    /// known.
    static constexpr std::uint8_t lossy = 2;
    /// The interval shows another context than the previous reading.
    static constexpr std::uint8_t mixed = 4;

    Counters values{};
    Counters deltas{};    ///< (previous - current) modulo 2^31, since the counters count down
    std::uint8_t wide{};  ///< a bit for each counter with a delta of 2^30 or more: it may have wrapped unseen
    std::uint8_t flags{};

    [[nodiscard]] constexpr bool has(std::uint8_t flag) const { return (flags & flag) != 0; }
    friend bool operator==(const Reading&, const Reading&) = default;
};

/// Consecutive elements of one stream. Borrowed: valid during ElementSink::consume().
struct Batch {
    std::span<const Element> elements;
    std::span<const Reading> readings;  ///< of the elements that have one, in order
};

/// Receives the output of a decoder.
class ElementSink {
public:
    virtual ~ElementSink() = default;
    /// Batches come in stream order.
    virtual void consume(const Batch& batch) = 0;
};

/// Totals of a stream. Every byte is in one entry or one gap.
struct Totals {
    std::uint64_t bytes{};                               ///< fed
    std::uint64_t entry_bytes{};                         ///< bytes of whole entries, including pads
    std::array<std::uint64_t, Entries::size> entries{};  ///< number by type, in the order of Entries
    std::uint64_t doubtful{};                            ///< number of those next to damage
    std::array<std::uint64_t, gap_reasons> gaps{};       ///< by reason
    std::array<std::uint64_t, gap_reasons> gap_bytes{};
    std::uint64_t lost{};   ///< entries that did not fit: the sum of all E14
    std::uint64_t holds{};  ///< number of holds of tracing
    std::uint64_t offs{};   ///< number of times that tracing was off and began again
    std::uint64_t readings{};
    std::uint64_t wide{};                               ///< number of those with a delta of 2^30 or more
    std::array<std::uint64_t, counter_count> deltas{};  ///< sum over all readings
    friend bool operator==(const Totals&, const Totals&) = default;

    template <class P>
    [[nodiscard]] std::uint64_t count() const {
        return entries[entry_index<P>];
    }
    [[nodiscard]] std::uint64_t lost_bytes() const;
};

/// The state when tracing is enabled, from the capture's header (7.5).
struct StartState {
    std::optional<TaskContext> context;
    std::optional<Counters> counters;
};

}  // namespace waymark::dpu
