/// The account of a run: which part a capture shows, and what became of the rest, each part with its reason and its
/// size. Producers write one row for each reason; every statement about completeness is read from these rows: the
/// sentence in the head of a view, the words "exact" and "lower bound", "not observed" in place of "not executed", and
/// the status under --strict. docs/account.md contains the table of reasons, made from `account_rules`.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace waymark::answers {

/// What became of a part of the run.
enum class AccountState : std::uint8_t {
    observed,     ///< decoded, and attributed to the code that ran
    not_traced,   ///< the unit was programmed, or the recorder told, to leave it out
    lost,         ///< it was traced, and its trace did not arrive whole
    not_decoded,  ///< its trace is in the capture, but what ran does not follow from it
    uncertain,    ///< decoded, but the code may have been other code
};
inline constexpr std::size_t account_states = 5;
/// `observed`, `not traced`, `lost`, `not decoded`, `uncertain`.
[[nodiscard]] std::string_view name(AccountState state);

/// Why a part of the run is in its state. Each reason belongs to one state (`account_rule`).
enum class AccountReason : std::uint8_t {
    decoded,  ///< the part that is observed
    // not traced
    before_start,  ///< ran before the recording began
    after_end,     ///< ran after the recording ended
    handlers,      ///< the unit did not trace from an exception on: exception levels, filters
    off,           ///< the unit did not trace for a while: filters, exception levels, start/stop, enable bits
    held,          ///< software held the trace of a DPU (TMPDIS), or turned it off (EN = 0)
    strobing,      ///< the unit was switched on and off periodically
    filtered,      ///< the unit recorded what its filter lets by alone (SPE filters, IDFLT)
    sampled,       ///< the unit takes one operation in an interval
    // lost
    overflow,        ///< the unit's FIFO or buffer overflowed
    packets,         ///< bytes that are no packet, up to the next synchronisation
    frames,          ///< damaged frames
    strays,          ///< bytes under IDs that no source has: they lack in the stream of another
    unsynchronised,  ///< bytes before the first synchronisation
    collided,        ///< samples that came due while the unit was busy with the one before
    overwritten,     ///< a buffer wrapped, or a snapshot kept the end alone
    cut,             ///< a file lacks its end, or could not be read
    recorder,        ///< the recorder dropped trace or its own records
    silence,         ///< a source ended inside a packet while others went on
    // not decoded
    protocol,       ///< no decoder for the protocol of a source
    no_image,       ///< code of which no image is known
    no_address,     ///< outcomes of branches whose addresses are not known
    untraced_way,   ///< the trace states that code ran, but not which (Q elements)
    uncommitted,    ///< speculative when the trace ended
    contradiction,  ///< trace and image contradict each other
    no_code,        ///< what was walked is not code
    not_kept,       ///< a table of the analysis was full
    // uncertain
    shared_address,  ///< several files were mapped at one address while it ran
    no_context,      ///< the trace does not carry which process ran
};
inline constexpr std::size_t account_reasons = 29;
/// The words of the reasons in files and tables, in their order. They never change.
inline constexpr std::array<std::string_view, account_reasons> account_reason_words{
    "decoded",       "before start", "after end", "handlers",       "off",         "held",
    "strobing",      "filtered",     "sampled",   "overflow",       "packets",     "frames",
    "stray bytes",   "not in sync",  "collided",  "overwritten",    "cut",         "recorder",
    "silence",       "protocol",     "no image",  "no address",     "way omitted", "uncommitted",
    "contradiction", "no code",      "not kept",  "shared address", "no context"};

/// Which code that was not seen may have run all the same.
enum class Hides : std::uint8_t {
    nothing,    ///< none: it did not run
    reachable,  ///< what can be reached from where flow was lost
    anything,   ///< any
};

/// What a reason does to the figures of a capture.
struct AccountRule {
    AccountReason reason{};
    AccountState state{};
    /// As a row is called: `overflow`, `overflows`. Both empty for `decoded`; `many` alone is empty where the number of
    /// times says nothing.
    std::string_view one{}, many{};
    std::string_view what{};   ///< for the documents, a clause
    bool lowers_sums = false;  ///< counts of what ran (instructions, calls, costs) are lower bounds
    bool estimates = false;    ///< counts of what ran are estimates of the whole
    Hides hides{};             ///< code that was not seen: "not observed" or "not executed"
    bool strict = false;       ///< --strict fails
};
/// One rule for each reason, in the order of the reasons.
[[nodiscard]] std::span<const AccountRule> account_rules();
[[nodiscard]] const AccountRule& account_rule(AccountReason reason);

/// A part of the run. Sizes that are not known are absent, never 0.
struct AccountRow {
    AccountReason reason{};
    std::string of{};                             ///< a protocol or an image; empty: none in particular
    std::uint64_t times = 1;                      ///< stretches, at least 1
    std::optional<std::uint64_t> bytes{};         ///< of trace
    std::optional<std::uint64_t> instructions{};  ///< that ran
    std::optional<std::uint64_t> ranges{};        ///< executions of blocks; of `no_address`: waypoints; of
                                                  ///< `uncommitted`: P0 elements
    std::optional<std::uint64_t> records{};       ///< samples of SPE, readings of a DPU
    friend bool operator==(const AccountRow&, const AccountRow&) = default;
};

/// By reason, then by what the row is of; one row for each pair.
using Account = std::vector<AccountRow>;

/// Adds a row: sizes of one reason add up, and a size that one of the two does not know is not known of the sum.
/// Numbers stay at their greatest value rather than wrap. Adding is commutative and associative.
void add(Account& to, AccountRow row);
void add(Account& to, const Account& other);

/// What follows from an account for the figures.
struct Completeness {
    bool lower_bounds{};  ///< counts of what ran are lower bounds
    bool estimates{};     ///< counts of what ran are estimates of the whole run
    Hides hides{};        ///< code that was not seen
    bool strict{};        ///< --strict fails
    /// `exact`, `lower bound` or `estimate`.
    [[nodiscard]] std::string_view word() const;
};
[[nodiscard]] Completeness completeness(const Account& account);

/// Something of the run is in another state than observed.
[[nodiscard]] bool is_part_of_run(const Account& account);

/// The clauses of the sentence below, one for each state that occurs.
[[nodiscard]] std::vector<std::string> account_clauses(const Account& account);
/// How much of the run this is, in one sentence without a full stop: `observed 61,081 instructions; lost: 3 FIFO
/// overflows; not decoded: 2 stretches without an image (libm.so)`. Empty for an empty account.
[[nodiscard]] std::string account_sentence(const Account& account);

/// docs/account.md.
[[nodiscard]] std::string account_document();

}  // namespace waymark::answers
