/// The state that is needed to read entries (docs/spec/dpu.md, 7.4). After a loss, an entry restores each part:
///
///     context            any entry with a task flag: E1, E2, E3, E5, E6, E9, E11; E7 and E8 restore only its ID
///     last destination   any pair: E1, E2, E4, E5
///     counters           never lost: they continue to count; the next reading's difference is exact, not its owner
///
/// There is no other state: entries are complete in themselves.
#pragma once

#include <cstdint>
#include <optional>

#include "waymark/dpu/element.h"

namespace waymark::dpu {

/// Difference of two readings of a down counter of 31 bits.
[[nodiscard]] constexpr std::uint32_t counted(std::uint32_t before, std::uint32_t after) {
    return (before - after) & counter_mask;
}
/// A delta of this or more may hide a wrap, or come from a damaged word: damage to bit 30 of a word gives exactly this
/// (7.4).
inline constexpr std::uint32_t wide_delta = 1U << 30;
[[nodiscard]] constexpr bool is_wide(std::uint64_t delta) { return delta >= wide_delta; }

/// The known state at one place in a stream.
struct StreamState {
    TaskContext context;
    std::uint32_t destination{};  ///< target of the last pair
    std::uint16_t known{};        ///< Element::privilege_known, id_known, run_known
    Counters counters{};          ///< values of the last reading
    bool counted = false;         ///< `counters` means something
    // Facts about the interval since the last reading.
    TaskContext reading_context;        ///< the context in the last reading
    std::uint16_t reading_known{};      ///< the known fields of that context
    bool lossy = false, mixed = false;  ///< Reading::lossy, Reading::mixed

    static constexpr std::uint16_t context_known = Element::privilege_known | Element::id_known;

    WM_INLINE void show(const TaskContext& shown) {
        context = shown;
        known |= context_known;
        if (reading_known != context_known || !(shown == reading_context)) mixed = true;
    }
    /// A loop's flag has only the ID.
    WM_INLINE void show_id(std::uint8_t id) {
        context.id = id;
        known |= Element::id_known;
        if ((reading_known & Element::id_known) == 0 || id != reading_context.id) mixed = true;
    }
    /// Trace is missing: context and flow are unknown until the trace shows them again.
    void lose() {
        known = 0;
        context = {};
        destination = 0;
    }
    void begin(const StartState& start) {
        known = 0;
        context = {};
        if (start.context) {
            context = *start.context;
            known = context_known;
        }
        destination = 0;
        if (start.counters) {
            counters = *start.counters;
            counted = true;
        }
        reading_context = context;
        reading_known = known;
        mixed = false;
    }
};

}  // namespace waymark::dpu
