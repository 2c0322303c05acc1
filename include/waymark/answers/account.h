/// The account of a run: which part a capture shows, and what happened to the rest, each part with its reason and size.
/// Producers write one row for each reason. Every statement about completeness is derived from these rows: the sentence
/// in the head of a view, the words "exact" and "lower bound", "not observed" in place of "not executed", and the
/// status under --strict. docs/account.md contains the table of reasons, made from `account_rules`.
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

/// What happened to a part of the run.
enum class AccountState : std::uint8_t {
    observed,     ///< decoded, and attributed to the code that ran
    not_traced,   ///< excluded by the unit's programming or the recorder's options
    lost,         ///< traced, but the trace is incomplete
    not_decoded,  ///< its trace is in the capture, but the executed code does not follow from it
    uncertain,    ///< decoded, but other code may have been at the addresses
};
inline constexpr std::size_t account_states = 5;
/// `observed`, `not traced`, `lost`, `not decoded`, `uncertain`.
[[nodiscard]] std::string_view name(AccountState state);

/// Why a part of the run is in its state. Each reason belongs to one state (`account_rule`).
enum class AccountReason : std::uint8_t {
    decoded,  ///< the observed part
    // not traced
    before_start,  ///< ran before the recording began
    after_end,     ///< ran after the recording ended
    handlers,      ///< the unit did not trace from an exception on: exception levels, filters
    off,           ///< the unit did not trace for a while: filters, exception levels, start/stop, enable bits
    held,          ///< software held the trace of a DPU (TMPDIS), or turned it off (EN = 0)
    strobing,      ///< the unit was switched on and off periodically
    filtered,      ///< the unit only recorded what its filter selects (SPE filters, IDFLT)
    sampled,       ///< the unit samples one operation in each interval
    // lost
    overflow,        ///< the unit's FIFO or buffer overflowed
    packets,         ///< bytes that are not a packet, up to the next synchronisation
    frames,          ///< damaged frames
    strays,          ///< bytes under IDs without a source: they are missing in the stream of another
    unsynchronised,  ///< bytes before the first synchronisation
    collided,        ///< samples that came due while the unit was busy with the previous one
    overwritten,     ///< a buffer wrapped, or a snapshot kept only the end
    cut,             ///< the end of a file is missing, or could not be read
    recorder,        ///< the recorder dropped trace or its own records
    silence,         ///< a source ended inside a packet while others continued
    // not decoded
    protocol,       ///< there is no decoder for the protocol of a source
    no_image,       ///< code without a known image
    no_address,     ///< outcomes of branches with unknown addresses
    untraced_way,   ///< the trace states that code ran, but not which (Q elements)
    uncommitted,    ///< speculative at the end of the trace
    contradiction,  ///< trace and image contradict each other
    no_code,        ///< the decoded path contains bytes that are not code
    not_kept,       ///< a table of the analysis was full
    // uncertain
    shared_address,  ///< several files were mapped at one address at that time
    no_context,      ///< the trace does not tell which process ran
    // not decoded: files store the number of a reason, so it follows the others
    no_functions,  ///< merged with captures that have functions, a file has none (waymark answers --only-ranges)
};
inline constexpr std::size_t account_reasons = 30;
/// The words of the reasons in files and tables, in order. They never change.
inline constexpr std::array<std::string_view, account_reasons> account_reason_words{
    "decoded",       "before start", "after end", "handlers",       "off",         "held",
    "strobing",      "filtered",     "sampled",   "overflow",       "packets",     "frames",
    "stray bytes",   "not in sync",  "collided",  "overwritten",    "cut",         "recorder",
    "silence",       "protocol",     "no image",  "no address",     "way omitted", "uncommitted",
    "contradiction", "no code",      "not kept",  "shared address", "no context",  "no functions"};

/// Unseen code that may have run nevertheless.
enum class Hides : std::uint8_t {
    nothing,    ///< none: unseen code did not run
    reachable,  ///< code that can be reached from where flow was lost
    anything,   ///< any
};

/// The effect of a reason on the figures of a capture.
struct AccountRule {
    AccountReason reason{};
    AccountState state{};
    /// The name of a row: `overflow`, `overflows`. Both empty for `decoded`; only `many` is empty if the number of
    /// times has no meaning.
    std::string_view one{}, many{};
    std::string_view what{};   ///< a clause for the documents
    bool lowers_sums = false;  ///< counts of executions (instructions, calls, costs) are lower bounds
    bool estimates = false;    ///< counts of executions are estimates of the whole
    Hides hides{};             ///< unseen code is "not observed" or "not executed"
    bool strict = false;       ///< --strict fails
};
/// One rule for each reason, in order.
[[nodiscard]] std::span<const AccountRule> account_rules();
[[nodiscard]] const AccountRule& account_rule(AccountReason reason);

/// A part of the run. Unknown sizes are absent, never 0.
struct AccountRow {
    AccountReason reason{};
    std::string of{};                             ///< name of a protocol or an image; empty: none in particular
    std::uint64_t times = 1;                      ///< number of stretches, at least 1
    std::optional<std::uint64_t> bytes{};         ///< of trace
    std::optional<std::uint64_t> instructions{};  ///< that ran
    std::optional<std::uint64_t>
        ranges{};  ///< executions of blocks; for `no_address`: waypoints; for `uncommitted`: P0 elements
    std::optional<std::uint64_t> records{};  ///< samples of SPE, readings of a DPU
    friend bool operator==(const AccountRow&, const AccountRow&) = default;
};

/// Sorted by reason, then by `of`; one row for each pair.
using Account = std::vector<AccountRow>;

/// Adds a row. Sizes of rows with equal reason are added; if one of two sizes is unknown, the sum is unknown. Numbers
/// saturate. Adding is commutative and associative.
void add(Account& to, AccountRow row);
void add(Account& to, const Account& other);

/// The consequences of an account for the figures.
struct Completeness {
    bool lower_bounds{};  ///< counts of executions are lower bounds
    bool estimates{};     ///< counts of executions are estimates of the whole run
    Hides hides{};        ///< unseen code that may have run
    bool strict{};        ///< --strict fails
    /// `exact`, `lower bound` or `estimate`.
    [[nodiscard]] std::string_view word() const;
};
[[nodiscard]] Completeness completeness(const Account& account);

/// Whether the account has a row of this reason.
[[nodiscard]] bool has_reason(const Account& account, AccountReason reason);
/// Whether some part of the run is in another state than observed.
[[nodiscard]] bool is_part_of_run(const Account& account);

/// The clauses of the sentence below, one for each occurring state.
[[nodiscard]] std::vector<std::string> account_clauses(const Account& account);
/// How much of the run is covered, in one sentence without a full stop: `observed 61,081 instructions; lost: 3 FIFO
/// overflows; not decoded: 2 stretches without an image (libm.so)`. Empty for an empty account.
[[nodiscard]] std::string account_sentence(const Account& account);

/// docs/account.md.
[[nodiscard]] std::string account_document();

}  // namespace waymark::answers
