/// Execution before the first synchronisation point of a stream, inferred from the program: what a search for it is
/// given, and what it found (docs/recover.md).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "waymark/core/types.h"
#include "waymark/follow/place.h"

namespace waymark::follow {

/// What is known of a core between two packets.
struct Standing {
    Place current;  ///< where execution is
    Place last;     ///< what the next address is compressed against
    bool ns{}, hyp{}, nse{};
    std::vector<Place> returns{};  ///< the return stack, the latest entry last
    /// The addresses before `last` that packets can repeat, the later one first, where they are known.
    std::array<std::optional<Place>, 2> earlier{};
    std::uint64_t uncommitted{};  ///< elements from before that no packet has committed yet, where the core speculates
    friend bool operator==(const Standing&, const Standing&) = default;
};

/// Addresses that hold program bytes.
struct CodeExtent {
    Address first{};
    std::uint64_t bytes{};
    friend bool operator==(const CodeExtent&, const CodeExtent&) = default;
};

/// What bounds the search. What lies beyond is not searched, and the result says so.
struct RecoverLimits {
    std::size_t head_bytes = std::size_t{1} << 18;  ///< the part of the head nearest to the A-sync
    std::size_t places = std::size_t{1} << 20;      ///< followed at once
    std::uint64_t steps = std::uint64_t{1} << 25;   ///< instructions and places looked at
};

/// Of what follows the A-sync, so much is decoded to see what part of the program is known.
inline constexpr std::size_t judged_bytes = std::size_t{1} << 14;

/// Why there is nothing, or not more.
enum class HeadOutcome : std::uint8_t {
    recovered,
    no_head,      ///< the stream begins with its A-sync
    no_sync,      ///< no A-sync, or no I-sync after it, in the bytes given
    no_parse,     ///< no chain of packets leads to the A-sync: another configuration, or damage
    no_code,      ///< there is no program to hold the packets against
    no_path,      ///< no place in the program explains the packets up to the sync
    ambiguous,    ///< several do
    unconfirmed,  ///< one does, but too little speaks for it
    too_much,     ///< the limits ended the search
    unsupported,  ///< the unit traces more than branches
    speculation,  ///< no depth of speculation at the beginning of the head fits its commits and the depth at the sync
};
[[nodiscard]] std::string_view name(HeadOutcome outcome);

/// Places in the head where knowledge of execution ended, and why.
struct Obstacles {
    std::uint64_t untraced{};  ///< instructions ran whose path is not traced (Q elements)
    std::uint64_t repeated{};  ///< an address that repeats one from before the head, which may be any
    std::uint64_t lost{};      ///< the trace lost bytes (overflow, discard)
    friend bool operator==(const Obstacles&, const Obstacles&) = default;
};

/// `2 Q elements, 1 loss of trace`; empty if there are none.
[[nodiscard]] std::string text(const Obstacles& obstacles);

/// A part of the head, and how the core stood at its beginning.
struct HeadStretch {
    Offset first{}, end{};
    Standing standing{};
};

struct HeadRecovery {
    HeadOutcome outcome{};
    Offset sync{};                         ///< of the I-sync after the first A-sync: the head is everything before it
    Offset async{};                        ///< of that A-sync
    Offset first{};                        ///< where what is recovered begins; `sync` if nothing is
    std::vector<HeadStretch> stretches{};  ///< recovered, in order; what lies between is ambiguous
    std::uint64_t packets{};               ///< recovered
    std::uint64_t checks{};                ///< outcomes and addresses that the path had to explain, and did
    std::uint64_t places{};                ///< that it was distinguished from
    std::uint64_t paths{};                 ///< left at the sync, before any was chosen
    Obstacles obstacles{};
    double unseen{};   ///< share of the trace after the A-sync that reports unknown code
    double chance{};   ///< share of checks that places pass which turn out wrong, as measured in this search
    bool confirmed{};  ///< the I-sync is periodic and names the address the path has reached
    /// How sure the least sure of the recovered ranges are: 1 / (1 + r). A place can be wrong only if execution was
    /// where no code is known, which odds of `unseen` say; r is those odds times min(1, places · chance^checks) of a
    /// place that passes all checks by chance: up to the sync, with p = 1 / places if `confirmed`, plus up to the first
    /// address, which execution could have come to from there.
    double confidence{};
    [[nodiscard]] std::uint64_t bytes() const;  ///< recovered, up to the I-sync
    /// Recovered of the `async` bytes before the A-sync, which are what is not known without it.
    [[nodiscard]] std::uint64_t bytes_before_async() const;
};

/// A path less sure than this is not given.
inline constexpr double least_confidence = 0.9;

}  // namespace waymark::follow
