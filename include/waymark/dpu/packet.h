/// Every trace entry of the Debug and Profiling Unit in layout WL-1: the words written to the virtual trace buffer,
/// without state from earlier entries (docs/spec/dpu.md, section 7.2). Formats are described here once; see
/// core/wire.h. An entry here corresponds to a packet in other protocols.
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <variant>

#include "waymark/core/wire.h"
#include "waymark/dpu/codec.h"
#include "waymark/dpu/format.h"

namespace waymark::dpu {

using wire::bits;
using wire::fixed;

/// The kind of an entry's first word.
enum class Head : std::uint8_t {
    address,
    task_flag,
    short_loop,
    long_loop,
    user_data,
    dummy,
    vtb_filled,
    gap,
    invalid
};

[[nodiscard]] WM_INLINE constexpr Head head_of(std::uint32_t word, const TraceFormat& format) {
    if (!format.in_flag_page(word)) [[likely]]
        return Head::address;
    const auto flag = format.flag(word);
    if (!flag) return Head::invalid;
    switch (flag->kind) {
        case FlagKind::user_task:
        case FlagKind::supervisor_task: return Head::task_flag;
        case FlagKind::short_loop: return Head::short_loop;
        case FlagKind::long_loop: return Head::long_loop;
        case FlagKind::user_data: return Head::user_data;
        case FlagKind::dummy: return Head::dummy;
        case FlagKind::vtb_filled: return Head::vtb_filled;
        case FlagKind::gap: return Head::gap;
    }
    return Head::invalid;
}

[[nodiscard]] constexpr std::uint8_t in_mode(TraceMode mode) {
    return static_cast<std::uint8_t>(1U << static_cast<unsigned>(mode));
}
inline constexpr std::uint8_t in_all_modes = 0xff;
inline constexpr std::uint8_t in_framed_modes = in_all_modes & ~in_mode(TraceMode::user_raw);

/// Properties of an entry type that do not depend on its contents.
struct EntryInfo {
    std::string_view name;     ///< in capitals
    std::string_view id;       ///< from the table in section 7.2
    std::string_view section;  ///< of docs/spec/dpu.md
    std::uint8_t words{};      ///< without the c words that an EOnCE may append
    std::uint8_t max_bytes{};  ///< longest form
    Head head{};
    std::uint8_t modes{};  ///< a bit for each TraceMode in which it is allowed (7.3, the last column)
};

/// The longest entry.
inline constexpr unsigned max_entry_words = 9;

/// Six counter words.
void counter_words(auto& w, auto& counters) {
    w.word(bits<31, 1>("A0", counters[0]), fixed<0>(0));
    w.word(bits<31, 1>("A1", counters[1]), fixed<0>(0));
    w.word(bits<31, 1>("A2", counters[2]), fixed<0>(0));
    w.word(bits<31, 1>("B0", counters[3]), fixed<0>(0));
    w.word(bits<31, 1>("B1", counters[4]), fixed<0>(0));
    w.word(bits<31, 1>("B2", counters[5]), fixed<0>(0));
}

/// A flag without ID, alone in its word.
void bare_flag(auto& w, const TraceFormat& f, FlagKind kind, bool first) {
    w.word(fixed<31, 12>(f.dpu_base >> 12), fixed<11, 9>(static_cast<std::uint32_t>(kind)), fixed<8, 1>(0),
           fixed<0>(static_cast<std::uint32_t>(first)));
}

/// A task switch, or a change of privilege (mode 1).
struct TaskSwitch {
    static constexpr EntryInfo info{.name = "TASK-SWITCH",
                                    .id = "E1",
                                    .section = "7.2",
                                    .words = 9,
                                    .max_bytes = 36,
                                    .head = Head::address,
                                    .modes = in_mode(TraceMode::task)};
    std::uint32_t last_pc{};   ///< of the old task
    std::uint32_t first_pc{};  ///< of the new
    Counters counters{};
    TaskContext context;  ///< the new one

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.field("last_pc", p.last_pc, ProgramCounter{f, true});
        counter_words(w, p.counters);
        w.field("first_pc", p.first_pc, ProgramCounter{f});
        w.field("context", p.context, TaskFlag{f});
    }
    bool operator==(const TaskSwitch&) const = default;
};

/// A call, a return, an interrupt or a return from one (mode 2).
struct Flow {
    static constexpr EntryInfo info{.name = "FLOW",
                                    .id = "E2",
                                    .section = "7.2",
                                    .words = 9,
                                    .max_bytes = 36,
                                    .head = Head::address,
                                    .modes = in_mode(TraceMode::flow)};
    std::uint32_t last_pc{};   ///< last instruction before the change of flow
    std::uint32_t first_pc{};  ///< after it
    Counters counters{};
    TaskContext context;  ///< after it

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.field("last_pc", p.last_pc, ProgramCounter{f, true});
        counter_words(w, p.counters);
        w.field("context", p.context, TaskFlag{f});
        w.field("first_pc", p.first_pc, ProgramCounter{f});
    }
    bool operator==(const Flow&) const = default;
};

/// All counters at one instant, requested by software or by EDCA5 (modes 3 and 4). Exactly 256 bits.
struct Sample {
    static constexpr EntryInfo info{.name = "SAMPLE",
                                    .id = "E3",
                                    .section = "7.2",
                                    .words = 8,
                                    .max_bytes = 32,
                                    .head = Head::task_flag,
                                    .modes = in_framed_modes};
    TaskContext context;
    Counters counters{};

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.field("context", p.context, TaskFlag{f, true});
        counter_words(w, p.counters);
        bare_flag(w, f, FlagKind::dummy, false);
    }
    bool operator==(const Sample&) const = default;
};

/// The counter words that an EOnCE appends to its own words, the event counter first.
using EonceCounters = std::array<std::uint32_t, 2>;
void eonce_counter_words(auto& w, auto& counters, const TraceFormat& f) {
    if (f.eonce_counters > 0) w.word(bits<31, 1>("count", counters[0]), fixed<0>(0));
    if (f.eonce_counters > 1) w.word(bits<31, 1>("count2", counters[1]), fixed<0>(0));
}

/// Two addresses from the EOnCE: source and destination of a change of flow, or the last and start address of a long
/// loop.
struct RawPair {
    static constexpr EntryInfo info{.name = "RAW-PAIR",
                                    .id = "E4",
                                    .section = "7.2",
                                    .words = 2,
                                    .max_bytes = 16,
                                    .head = Head::address,
                                    .modes = in_mode(TraceMode::eonce_raw)};
    std::uint32_t source{}, destination{};
    EonceCounters counters{};

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.field("source", p.source, ProgramCounter{f, true});
        w.field("destination", p.destination, ProgramCounter{f});
        eonce_counter_words(w, p.counters, f);
    }
    bool operator==(const RawPair&) const = default;
};

/// One address from the EOnCE: the address of a MARK or of an execution set, or the last address of a short loop.
struct RawPc {
    static constexpr EntryInfo info{.name = "RAW-PC",
                                    .id = "E4b",
                                    .section = "7.2",
                                    .words = 1,
                                    .max_bytes = 12,
                                    .head = Head::address,
                                    .modes = in_mode(TraceMode::eonce_raw)};
    std::uint32_t pc{};
    EonceCounters counters{};

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.field("pc", p.pc, ProgramCounter{f, true});
        eonce_counter_words(w, p.counters, f);
    }
    bool operator==(const RawPc&) const = default;
};

/// A change of flow that is not a loop.
struct CompressedFlow {
    static constexpr EntryInfo info{.name = "COMPRESSED-FLOW",
                                    .id = "E5",
                                    .section = "7.2",
                                    .words = 3,
                                    .max_bytes = 12,
                                    .head = Head::address,
                                    .modes = in_mode(TraceMode::eonce_comp)};
    std::uint32_t source{}, destination{};
    TaskContext context;  ///< at the destination

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.field("source", p.source, ProgramCounter{f, true});
        w.field("context", p.context, TaskFlag{f});
        w.field("destination", p.destination, ProgramCounter{f});
    }
    bool operator==(const CompressedFlow&) const = default;
};

/// The address of a MARK or of an execution set, with its context.
struct CompressedPc {
    static constexpr EntryInfo info{.name = "COMPRESSED-PC",
                                    .id = "E6",
                                    .section = "7.2",
                                    .words = 2,
                                    .max_bytes = 8,
                                    .head = Head::address,
                                    .modes = in_mode(TraceMode::eonce_comp)};
    std::uint32_t pc{};
    TaskContext context;

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.field("pc", p.pc, ProgramCounter{f, true});
        w.field("context", p.context, TaskFlag{f});
    }
    bool operator==(const CompressedPc&) const = default;
};

/// A short hardware loop that jumped back `reps` times.
struct ShortLoop {
    static constexpr EntryInfo info{.name = "SHORT-LOOP",
                                    .id = "E7",
                                    .section = "7.2",
                                    .words = 3,
                                    .max_bytes = 12,
                                    .head = Head::short_loop,
                                    .modes = in_mode(TraceMode::eonce_comp)};
    std::uint8_t id{};  ///< of the task
    std::uint32_t last_address{};
    std::uint32_t reps = 1;

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.word(fixed<31, 12>(f.dpu_base >> 12), fixed<11, 9>(static_cast<std::uint32_t>(FlagKind::short_loop)),
               bits<8, 1>("id", p.id), fixed<0>(1));
        w.field("last_address", p.last_address, ProgramCounter{f});
        w.field("reps", p.reps, CountField{});
    }
    bool operator==(const ShortLoop&) const = default;
};

/// A long hardware loop, or a loop in software, that jumped back `reps` times.
struct LongLoop {
    static constexpr EntryInfo info{.name = "LONG-LOOP",
                                    .id = "E8",
                                    .section = "7.2",
                                    .words = 3,
                                    .max_bytes = 12,
                                    .head = Head::long_loop,
                                    .modes = in_mode(TraceMode::eonce_comp)};
    std::uint8_t id{};  ///< of the task
    std::uint32_t last_address{};
    std::uint32_t reps = 1;

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.word(fixed<31, 12>(f.dpu_base >> 12), fixed<11, 9>(static_cast<std::uint32_t>(FlagKind::long_loop)),
               bits<8, 1>("id", p.id), fixed<0>(1));
        w.field("last_address", p.last_address, ProgramCounter{f});
        w.field("reps", p.reps, CountField{});
    }
    bool operator==(const LongLoop&) const = default;
};

/// Data that a program wrote to DP_TD (mode 5, tagged).
struct UserData {
    static constexpr EntryInfo info{.name = "USER-DATA",
                                    .id = "E9",
                                    .section = "7.2",
                                    .words = 4,
                                    .max_bytes = 16,
                                    .head = Head::user_data,
                                    .modes = in_framed_modes};
    TaskContext context;
    std::uint32_t data{};

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        w.field("context", p.context, TaggedContext{f});
        w.field("data", p.data, SplitDatum{});
    }
    bool operator==(const UserData&) const = default;
};

/// Data that a program wrote to DP_TD (mode 5, literal): any word, except the two that are read as padding.
struct UserRaw {
    static constexpr EntryInfo info{.name = "USER-RAW",
                                    .id = "E10",
                                    .section = "7.2",
                                    .words = 1,
                                    .max_bytes = 4,
                                    .head = Head::address,
                                    .modes = in_mode(TraceMode::user_raw)};
    std::uint32_t data{};

    static void fields(auto& w, auto& p, const TraceFormat&) { w.field("data", p.data, RawWord{}); }
    bool operator==(const UserRaw&) const = default;
};

/// The context in force from here on.
struct ContextEntry {
    static constexpr EntryInfo info{.name = "CONTEXT",
                                    .id = "E11",
                                    .section = "7.2",
                                    .words = 1,
                                    .max_bytes = 4,
                                    .head = Head::task_flag,
                                    .modes = in_framed_modes};
    TaskContext context;

    static void fields(auto& w, auto& p, const TraceFormat& f) { w.field("context", p.context, TaskFlag{f, true}); }
    bool operator==(const ContextEntry&) const = default;
};

/// Fills the line after a flush.
struct Pad {
    static constexpr EntryInfo info{.name = "PAD",
                                    .id = "E12",
                                    .section = "7.2",
                                    .words = 1,
                                    .max_bytes = 4,
                                    .head = Head::dummy,
                                    .modes = in_all_modes};

    static void fields(auto& w, auto&, const TraceFormat& f) { bare_flag(w, f, FlagKind::dummy, true); }
    bool operator==(const Pad&) const = default;
};

/// Fills the line when tracing is turned off: nothing valid follows in this line.
struct Closed {
    static constexpr EntryInfo info{.name = "CLOSED",
                                    .id = "E13",
                                    .section = "7.2",
                                    .words = 1,
                                    .max_bytes = 4,
                                    .head = Head::vtb_filled,
                                    .modes = in_all_modes};

    static void fields(auto& w, auto&, const TraceFormat& f) { bare_flag(w, f, FlagKind::vtb_filled, true); }
    bool operator==(const Closed&) const = default;
};

/// Number of entries that did not fit.
struct GapEntry {
    static constexpr EntryInfo info{.name = "GAP",
                                    .id = "E14",
                                    .section = "7.2",
                                    .words = 2,
                                    .max_bytes = 8,
                                    .head = Head::gap,
                                    .modes = in_framed_modes};
    std::uint32_t lost = 1;  ///< saturates at counter_mask

    static void fields(auto& w, auto& p, const TraceFormat& f) {
        bare_flag(w, f, FlagKind::gap, true);
        w.field("lost", p.lost, CountField{});
    }
    bool operator==(const GapEntry&) const = default;
};

/// All entry types, in the order in which a piece of trace is tried: literal user data comes last.
using Entries = wire::PacketList<TaskSwitch, Flow, Sample, RawPair, RawPc, CompressedFlow, CompressedPc, ShortLoop,
                                 LongLoop, UserData, ContextEntry, Pad, Closed, GapEntry, UserRaw>;
using Entry = std::variant<TaskSwitch, Flow, Sample, RawPair, RawPc, CompressedFlow, CompressedPc, ShortLoop, LongLoop,
                           UserData, ContextEntry, Pad, Closed, GapEntry, UserRaw>;

/// Index in that order, also used for counts by type.
template <class P>
inline constexpr std::size_t entry_index = [] {
    std::size_t at = 0, found = 0;
    Entries::for_each([&]<class E>() {
        if (std::same_as<E, P>) found = at;
        ++at;
    });
    return found;
}();

/// Whether the entry type is allowed in a trace of this format. If the mode is unknown, all except literal user data
/// are.
template <class P>
[[nodiscard]] WM_INLINE constexpr bool legal(const TraceFormat& format) {
    return ((format.mode ? in_mode(*format.mode) : in_framed_modes) & P::info.modes) != 0;
}

/// Number of words of an entry of this type.
template <class P>
[[nodiscard]] constexpr unsigned entry_words(const TraceFormat& format) {
    constexpr bool from_eonce = requires(P p) { requires std::same_as<decltype(p.counters), EonceCounters>; };
    return P::info.words + (from_eonce ? format.eonce_counters : 0U);
}

}  // namespace waymark::dpu
