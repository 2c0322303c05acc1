/// What a protocol's packets say of execution before the place of execution is known: the input of the search for the
/// head of a trace (head.h, docs/recover.md). A protocol makes one observation of each packet, or of several that mean
/// one thing, such as an exception and its address.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "waymark/core/types.h"
#include "waymark/follow/place.h"

namespace waymark::follow {

/// An address as a packet carries it: whole, its low bits, or a reference to one of the most recent addresses.
struct SentPlace {
    std::uint64_t bits{};                   ///< the bits that were sent; the bits below the alignment are 0
    std::uint8_t width{};                   ///< number of bits sent; the bits above come from the last address named
    bool whole{};                           ///< all bits are sent
    bool halfword{};                        ///< bits are sent from bit 1 on, whatever the instruction set
    std::optional<std::uint8_t> repeats{};  ///< none are sent: the address is this one of the most recent, 0 the last
    std::optional<Isa> isa{};               ///< absent: HeadRules::isa_of_base determines it
    std::optional<bool> a64{};              ///< where it does not: whether execution is in A64 state; absent: as before
    std::optional<bool> thumb_ee{};         ///< in Thumb state: whether it is ThumbEE
    friend bool operator==(const SentPlace&, const SentPlace&) = default;
};

/// Observations, each in words that no protocol has alone.
namespace seen {

/// The next waypoint instructions were taken (bit set) or not, the oldest in bit 0.
struct Outcomes {
    std::uint32_t taken{};
    std::uint8_t count{};  ///< 1 to 32
    friend bool operator==(const Outcomes&, const Outcomes&) = default;
};
/// The next waypoint instruction was taken, and execution went there.
struct Branch {
    SentPlace to;
    friend bool operator==(const Branch&, const Branch&) = default;
};
/// Execution goes on there, wherever it was: an exception.
struct Jump {
    SentPlace to;
    bool out_of_sight{};  ///< what runs there is not traced by address
    friend bool operator==(const Jump&, const Jump&) = default;
};
/// Execution is there: where the taken indirect branch before went, or a handler, or where it is known to be.
struct Arrival {
    SentPlace at;
    friend bool operator==(const Arrival&, const Arrival&) = default;
};
/// An address that later ones are compressed against; execution did not go there.
struct Named {
    SentPlace at;
    friend bool operator==(const Named&, const Named&) = default;
};
/// Execution has passed the instruction there, which is none of the other waypoint instructions' predecessors.
struct Reached {
    SentPlace at;
    friend bool operator==(const Reached&, const Reached&) = default;
};
/// An exception, before the instruction there. Where its handler is follows, or is not known.
struct Interrupted {
    std::optional<SentPlace> at{};  ///< absent: at an unknown place
    bool at_target{};               ///< it is where the taken indirect branch before went
    friend bool operator==(const Interrupted&, const Interrupted&) = default;
};
/// The waypoint instruction there was taken, and those before it were not.
struct Source {
    SentPlace at;
    friend bool operator==(const Source&, const Source&) = default;
};
/// A synchronisation point repeats the place (`continues`), or says where tracing began again.
struct Sync {
    Place at;
    bool continues{};
    friend bool operator==(const Sync&, const Sync&) = default;
};
/// Tracing begins again: where, the next Arrival says. The return stack is empty.
struct Restart {
    friend bool operator==(const Restart&, const Restart&) = default;
};
/// From here on execution is in A64 state, or in another.
struct Width {
    bool a64{};
    friend bool operator==(const Width&, const Width&) = default;
};
/// Instructions ran whose path is not traced.
struct Untraced {
    friend bool operator==(const Untraced&, const Untraced&) = default;
};
/// Execution went on at a place that is not known: a transaction failed, the core was reset.
struct Departed {
    friend bool operator==(const Departed&, const Departed&) = default;
};
/// Says nothing of where execution goes: cycle counts, timestamps, identifiers.
struct Nothing {
    friend bool operator==(const Nothing&, const Nothing&) = default;
};

}  // namespace seen

using Observed = std::variant<seen::Nothing, seen::Outcomes, seen::Branch, seen::Jump, seen::Arrival, seen::Named,
                              seen::Reached, seen::Interrupted, seen::Source, seen::Sync, seen::Restart, seen::Width,
                              seen::Untraced, seen::Departed>;

/// An observation, and its packet: the first one, if it has several.
struct Observation {
    Offset at{};
    Observed seen{};
};

}  // namespace waymark::follow
