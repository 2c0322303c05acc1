/// Information of a protocol's packets about execution before the place of execution is known: the input of the search
/// for the head of a trace (head.h, docs/recover.md). A protocol makes one observation from each packet, or from
/// several that belong together, such as an exception and its address.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "waymark/core/types.h"
#include "waymark/follow/place.h"

namespace waymark::follow {

/// An address as carried in a packet: complete, its low bits, or a reference to one of the most recent addresses.
struct SentPlace {
    std::uint64_t bits{};                   ///< the bits that were sent; the bits below the alignment are 0
    std::uint8_t width{};                   ///< number of bits sent; the upper bits come from the last address
    bool whole{};                           ///< all bits are sent
    bool halfword{};                        ///< bits are sent from bit 1 on, regardless of the instruction set
    std::optional<std::uint8_t> repeats{};  ///< no address bits sent; index into the recent addresses, 0 the last
    std::optional<Isa> isa{};               ///< absent: HeadRules::isa_of_base determines it
    std::optional<bool> a64{};              ///< if it does not: whether execution is in A64 state; absent: unchanged
    std::optional<bool> thumb_ee{};         ///< in Thumb state: whether it is ThumbEE
    friend bool operator==(const SentPlace&, const SentPlace&) = default;
};

/// Observations, in terms that do not belong to a single protocol.
namespace seen {

/// The next waypoint instructions were taken (bit set) or not, the oldest in bit 0.
struct Outcomes {
    std::uint32_t taken{};
    std::uint8_t count{};  ///< 1 to 32
    friend bool operator==(const Outcomes&, const Outcomes&) = default;
};
/// The next waypoint instruction was taken, to this place.
struct Branch {
    SentPlace to;
    friend bool operator==(const Branch&, const Branch&) = default;
};
/// Execution continues there, wherever it was before: an exception.
struct Jump {
    SentPlace to;
    bool out_of_sight{};  ///< the code that runs there is not traced by address
    friend bool operator==(const Jump&, const Jump&) = default;
};
/// Execution is there: at the target of the preceding taken indirect branch, at a handler, or at a known place.
struct Arrival {
    SentPlace at;
    friend bool operator==(const Arrival&, const Arrival&) = default;
};
/// An address that is a base for later ones; execution did not go there.
struct Named {
    SentPlace at;
    friend bool operator==(const Named&, const Named&) = default;
};
/// Execution has passed the instruction there, with no other waypoint instruction before it.
struct Reached {
    SentPlace at;
    friend bool operator==(const Reached&, const Reached&) = default;
};
/// An exception, before the instruction there. The place of its handler follows, or is not known.
struct Interrupted {
    std::optional<SentPlace> at{};  ///< absent: at an unknown place
    bool at_target{};               ///< it is the target of the preceding taken indirect branch
    friend bool operator==(const Interrupted&, const Interrupted&) = default;
};
/// The waypoint instruction there was taken, and earlier ones were not.
struct Source {
    SentPlace at;
    friend bool operator==(const Source&, const Source&) = default;
};
/// A synchronisation point repeats the place (`continues`), or gives the place where tracing began again.
struct Sync {
    Place at;
    bool continues{};
    friend bool operator==(const Sync&, const Sync&) = default;
};
/// Tracing begins again, at the place of the next Arrival. The return stack is empty.
struct Restart {
    friend bool operator==(const Restart&, const Restart&) = default;
};
/// Whether execution is in A64 state from here on.
struct Width {
    bool a64{};
    friend bool operator==(const Width&, const Width&) = default;
};
/// Instructions ran on an untraced path.
struct Untraced {
    friend bool operator==(const Untraced&, const Untraced&) = default;
};
/// Execution continued at an unknown place: a transaction failed, or the core was reset.
struct Departed {
    friend bool operator==(const Departed&, const Departed&) = default;
};
/// No information about the path of execution: cycle counts, timestamps, identifiers.
struct Nothing {
    friend bool operator==(const Nothing&, const Nothing&) = default;
};

}  // namespace seen

using Observed = std::variant<seen::Nothing, seen::Outcomes, seen::Branch, seen::Jump, seen::Arrival, seen::Named,
                              seen::Reached, seen::Interrupted, seen::Source, seen::Sync, seen::Restart, seen::Width,
                              seen::Untraced, seen::Departed>;

/// An observation, and its packet: the first one, if it came from several.
struct Observation {
    Offset at{};
    Observed seen{};
};

}  // namespace waymark::follow
