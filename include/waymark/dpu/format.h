/// Layout WL-1 of trace words: the trace flags, and the meaning of words (docs/spec/dpu.md, section 6). The published
/// description of the unit omits these tables, so the layout is Waymark's own and is not claimed to match silicon. Only
/// this header, codec.h and packet.h depend on it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "waymark/core/types.h"

namespace waymark::dpu {

/// The name of this layout in captures, and its origin for messages.
inline constexpr std::string_view layout_name = "WL-1";
inline constexpr std::string_view layout_note =
    "layout WL-1: flags, entries and event sets as Waymark defines them, for the published description of the unit "
    "omits them";

/// DP_TC.TMODE: the contents of the virtual trace buffer (3.4). Codes from 8 on are reserved.
enum class TraceMode : std::uint8_t {
    eonce_raw,   ///< EOnCE words unchanged
    eonce_comp,  ///< compressed EOnCE words and task flags
    task,        ///< task switches: mode 1
    flow,        ///< subroutines and interrupts: mode 2
    sw_sample,   ///< samples on SAMPLE: mode 3
    edca5,       ///< samples on events of EDCA5: mode 4
    user,        ///< tagged user data: mode 5
    user_raw,    ///< data written to DP_TD, verbatim: mode 5
};
inline constexpr unsigned trace_modes = 8;
/// The name in section 3.4, such as `TASK`.
[[nodiscard]] std::string_view name(TraceMode mode);

/// Six counters in two triads: A0, A1, A2, B0, B1, B2.
inline constexpr unsigned counter_count = 6;
inline constexpr unsigned counters_per_triad = 3;
/// Counters have 31 bits.
inline constexpr std::uint32_t counter_mask = 0x7fffffff;
/// A name from `A0` to `B2`. Precondition: `counter` < counter_count.
[[nodiscard]] std::string_view counter_name(unsigned counter);

/// Bits 11:9 of a flag. The last two are Waymark's addition to the published list.
enum class FlagKind : std::uint8_t {
    dummy,
    user_task,
    supervisor_task,
    short_loop,
    long_loop,
    vtb_filled,
    user_data,
    gap,
};
[[nodiscard]] std::string_view name(FlagKind kind);

/// Whether the flag carries a task ID; in other flags bits 8:1 are zero.
[[nodiscard]] constexpr bool has_id(FlagKind kind) {
    return kind != FlagKind::dummy && kind != FlagKind::vtb_filled && kind != FlagKind::gap;
}

/// A decoded trace flag.
struct Flag {
    FlagKind kind{};
    std::uint8_t id{};   ///< task ID; 0 for kinds without one
    bool first = false;  ///< X: the flag begins an entry
    friend bool operator==(const Flag&, const Flag&) = default;
};

/// DP base of section 3.1, if no other is given. 4-KiB aligned, as every base must be.
inline constexpr std::uint32_t default_dpu_base = 0xfff0a000;
inline constexpr std::uint32_t flag_page_bytes = 4096;

/// Everything on which the words of a trace depend. Under another format, the same words mean different entries.
struct TraceFormat {
    std::uint32_t dpu_base = default_dpu_base;  ///< 4-KiB aligned: the unit computes its flags from it
    /// DP_TC.TMODE; nullopt: not known. Then whole entries are still distinguished, but damage is detected less often
    /// (7.3).
    std::optional<TraceMode> mode = TraceMode::task;
    /// Number of words that the EOnCE appends to its own (c), 0 to 2 (TCOUNT, TCNTEXT). Only used in EONCE_RAW.
    std::uint8_t eonce_counters = 0;

    /// Whether an address is in the page of the flags, where no program counter can be (6.2).
    [[nodiscard]] WM_INLINE constexpr bool in_flag_page(std::uint32_t word) const {
        return (word ^ dpu_base) < flag_page_bytes;
    }
    /// The word of a flag.
    [[nodiscard]] WM_INLINE constexpr std::uint32_t word(const Flag& flag) const {
        return dpu_base | static_cast<std::uint32_t>(flag.kind) << 9 | std::uint32_t{flag.id} << 1 |
               static_cast<std::uint32_t>(flag.first);
    }
    /// The flag in a word, if the word can be a flag: words of the flag page with an ID for a kind without ID are
    /// invalid (6.1).
    [[nodiscard]] WM_INLINE constexpr std::optional<Flag> flag(std::uint32_t word) const {
        if (!in_flag_page(word)) return std::nullopt;
        const Flag flag{static_cast<FlagKind>(word >> 9 & 7U), static_cast<std::uint8_t>(word >> 1), (word & 1U) != 0};
        if (flag.id != 0 && !has_id(flag.kind)) return std::nullopt;
        return flag;
    }
    friend bool operator==(const TraceFormat&, const TraceFormat&) = default;
};

/// Order of the bytes of a word in memory: a property of the capture, not of the layout (3.4).
enum class ByteOrder : std::uint8_t { big, little };

}  // namespace waymark::dpu
