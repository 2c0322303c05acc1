/// The integration of a Debug and Profiling Unit and the sources of its inputs (docs/spec/dpu.md, sections 9 and 13),
/// and Waymark's choices where the specification is unclear. Its programming is in the registers.
#pragma once

#include <cstdint>
#include <string>

#include "waymark/core/result.h"
#include "waymark/dpu/format.h"
#include "waymark/dpu/registers.h"

namespace waymark::dpu {

/// Reports of the EOnCE to the unit (9): changes of flow, loops, watchpoints, and the instructions made for
/// debugging.
enum class ItemKind : std::uint8_t {
    call,
    ret,
    rte,
    interrupt,  ///< interrupt, exception or system call
    cof,        ///< any other change of flow (COF)
    loop_short,
    loop_long,
    mark,
    exec_set,
    edca,
    edcd,
    debugev,
};

/// The EOnCE's programming: the items it passes on as trace, and the counters it appends.
struct EonceSetup {
    bool tchof = false;    ///< changes of flow, calls, returns, returns from exceptions
    bool tint = false;     ///< interrupts
    bool texec = false;    ///< every execution set
    bool tmark = false;    ///< MARK
    bool tloop = false;    ///< hardware loops
    bool tsub = false;     ///< calls and returns
    bool trte = false;     ///< returns from exceptions
    bool tcount = false;   ///< appends its event counter
    bool tcntext = false;  ///< appends its extension counter

    /// Whether items of this kind become trace. An item that two classes pass is written once.
    [[nodiscard]] constexpr bool passes(ItemKind kind) const {
        switch (kind) {
            case ItemKind::call:
            case ItemKind::ret: return tchof || tsub;
            case ItemKind::rte: return tchof || trte;
            case ItemKind::interrupt: return tint;
            case ItemKind::cof: return tchof;
            case ItemKind::loop_short:
            case ItemKind::loop_long: return tloop;
            case ItemKind::mark: return tmark;
            case ItemKind::exec_set: return texec;
            case ItemKind::edca:
            case ItemKind::edcd:
            case ItemKind::debugev: return false;
        }
        return false;
    }
    /// c: number of words appended to an item, 0 to 2.
    [[nodiscard]] constexpr std::uint8_t counters() const {
        return static_cast<std::uint8_t>(static_cast<unsigned>(tcount) + static_cast<unsigned>(tcntext));
    }
    /// The setup that a trace mode needs (5.3).
    [[nodiscard]] static EonceSetup for_mode(TraceMode mode);
    /// Missing settings for this mode, as a sentence; empty if there are none.
    [[nodiscard]] std::string missing(TraceMode mode) const;
    bool operator==(const EonceSetup&) const = default;
};

/// Choices where the specification is implementation defined or unclear (13.3).
struct ModelChoices {
    /// There is no room for an entry: it is lost, or the core waits. The behaviour of silicon is not documented.
    enum class Full : std::uint8_t { drop, stall } full = Full::drop;
    /// When the data control unit grants a request of the trace write buffer (5.6).
    enum class Grant : std::uint8_t { always, when_idle, never };
    Grant high = Grant::always, low = Grant::when_idle;
    /// A burst of k lines holds the bus for k times as many cycles. At least 1.
    std::uint32_t bus_cycles_per_line = 1;
    /// Number of an entry's words that leave the shadow registers in a cycle; 0: all at once (5.2).
    std::uint32_t drain_words_per_cycle = 0;
    /// Number of message bytes that the Nexus interface can hold, and that it outputs in a cycle; messages that do not
    /// fit are lost there and reported by an Error message (5.8).
    std::uint32_t nexus_queue_bytes = 256;
    std::uint32_t nexus_bytes_per_cycle = 256;
    bool operator==(const ModelChoices&) const = default;
};

struct ModelConfig {
    std::uint32_t dpu_base = default_dpu_base;  ///< 4-KiB aligned
    EonceSetup eonce;
    ModelChoices choices;

    /// Checks whether such a unit exists; `unsupported` names the mistake and the remedy.
    [[nodiscard]] Status check() const;
    /// The parameters on which the words of a trace under this DP_TC depend.
    [[nodiscard]] TraceFormat format(const DpTc& tc) const {
        return {dpu_base, tc.tmode < trace_modes ? std::optional(tc.mode()) : std::nullopt, eonce.counters()};
    }
};

}  // namespace waymark::dpu
