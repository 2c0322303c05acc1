/// Execution before the first synchronisation point of a stream, inferred from the program: input and result of the
/// search (docs/recover.md).
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

/// The known state of a core between two packets.
struct Standing {
    Place current;  ///< where execution is
    Place last;     ///< base of the next address
    bool ns{}, hyp{}, nse{};
    std::vector<Place> returns{};  ///< the return stack, the latest entry last
    /// The addresses before `last` that packets can repeat, the newest first, as far as known.
    std::array<std::optional<Place>, 2> earlier{};
    std::uint64_t uncommitted{};  ///< elements from before that no packet has committed yet, if the core speculates
    friend bool operator==(const Standing&, const Standing&) = default;
};

/// A range of addresses with program bytes.
struct CodeExtent {
    Address first{};
    std::uint64_t bytes{};
    friend bool operator==(const CodeExtent&, const CodeExtent&) = default;
};

/// Limits of the search. The search does not go beyond them, and the result states this.
struct RecoverLimits {
    std::size_t head_bytes = std::size_t{1} << 18;  ///< maximum size of the part of the head before the A-sync
    std::size_t places = std::size_t{1} << 20;      ///< followed at once
    std::uint64_t steps = std::uint64_t{1} << 25;   ///< maximum number of instructions and places examined
};

/// Number of bytes after the A-sync that are decoded to see which part of the program is known.
inline constexpr std::size_t judged_bytes = std::size_t{1} << 14;

/// The reason why nothing was recovered, or not more.
enum class HeadOutcome : std::uint8_t {
    recovered,
    no_head,      ///< the stream begins with its A-sync
    no_sync,      ///< no A-sync, or no I-sync after it, in the given bytes
    no_parse,     ///< no chain of packets leads to the A-sync: another configuration, or damage
    no_code,      ///< there is no program to compare the packets with
    no_path,      ///< no place in the program explains the packets up to the sync
    ambiguous,    ///< several do
    unconfirmed,  ///< a place does, but with too little evidence
    too_much,     ///< a limit ended the search
    unsupported,  ///< the unit traces more than branches
    speculation,  ///< no depth of speculation at the beginning of the head fits its commits and the depth at the sync
};
[[nodiscard]] std::string_view name(HeadOutcome outcome);

/// Places in the head where the known execution ended, by reason.
struct Obstacles {
    std::uint64_t untraced{};  ///< instructions ran on an untraced path (Q elements)
    std::uint64_t repeated{};  ///< an address repeats one from before the head, which may be any
    std::uint64_t lost{};      ///< the trace lost bytes (overflow, discard)
    friend bool operator==(const Obstacles&, const Obstacles&) = default;
};

/// Text such as `2 Q elements, 1 loss of trace`; empty if there are none.
[[nodiscard]] std::string text(const Obstacles& obstacles);

/// A part of the head, and the state of the core at its beginning.
struct HeadStretch {
    Offset first{}, end{};
    Standing standing{};
};

struct HeadRecovery {
    HeadOutcome outcome{};
    Offset sync{};   ///< offset of the I-sync after the first A-sync: the head is everything before it
    Offset async{};  ///< of that A-sync
    Offset first{};  ///< beginning of the recovered part; `sync` if nothing was recovered
    std::vector<HeadStretch> stretches{};  ///< recovered stretches in order; the parts between are ambiguous
    std::uint64_t packets{};               ///< recovered
    std::uint64_t checks{};                ///< outcomes and addresses that the path had to explain
    std::uint64_t places{};                ///< number of places that it was distinguished from
    std::uint64_t paths{};                 ///< paths left at the sync, before one was chosen
    Obstacles obstacles{};
    double unseen{};   ///< share of the trace after the A-sync that reports execution in unknown code
    double chance{};   ///< share of checks that wrong places pass, as measured in this search
    bool confirmed{};  ///< the I-sync is periodic and gives the address that the path has reached
    /// Certainty of the least certain recovered range: 1 / (1 + r). A place can only be wrong if execution was in
    /// unknown code. r is the odds for that (from `unseen`), multiplied by the sum of the probabilities that a place
    /// passes all checks by chance: min(1, places · chance^checks) up to the sync, with p = 1 / places if `confirmed`;
    /// and up to the first address, to which execution could have come from unknown code.
    double confidence{};
    [[nodiscard]] std::uint64_t bytes() const;  ///< number of recovered bytes, up to the I-sync
    /// Number of recovered bytes among the `async` bytes before the A-sync, which would be unknown otherwise.
    [[nodiscard]] std::uint64_t bytes_before_async() const;
};

/// A path with a lower confidence is not reported.
inline constexpr double least_confidence = 0.9;

}  // namespace waymark::follow
