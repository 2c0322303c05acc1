#include "waymark/answers/account.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <tuple>

#include "waymark/answers/account_effects.h"
#include "waymark/core/numbers.h"

namespace waymark::answers {
namespace {

using enum AccountState;
using Reason = AccountReason;

constexpr std::array<std::string_view, 3> hides_words{"not executed", "not observed where it can be reached from there",
                                                      "not observed"};
constexpr std::array<std::string_view, account_states> state_names{"observed", "not traced", "lost", "not decoded",
                                                                   "uncertain"};

/// The common part of all reasons with one effect.
constexpr AccountRule left_out(Reason reason, std::string_view one, std::string_view many, std::string_view what,
                               bool strict) {
    return {reason, not_traced, one, many, what, true, false, Hides::anything, strict};
}
constexpr AccountRule loss(Reason reason, Hides hides, std::string_view one, std::string_view many,
                           std::string_view what) {
    return {reason, lost, one, many, what, true, false, hides, true};
}
constexpr AccountRule gap(Reason reason, Hides hides, std::string_view one, std::string_view many,
                          std::string_view what) {
    return {reason, not_decoded, one, many, what, true, false, hides, true};
}
constexpr AccountRule doubt(Reason reason, std::string_view one, std::string_view many, std::string_view what) {
    return {reason, uncertain, one, many, what, false, true, Hides::anything, true};
}

constexpr std::array<AccountRule, account_reasons> rules{{
    {Reason::decoded, observed, "", "", "decoded, and attributed to the code that ran", false, false, Hides::nothing,
     false},
    left_out(Reason::before_start, "part before the recording began", "parts before the recording began",
             "the recording began later than the program (`begins=`, `record --start-at`); `--strict` passes "
             "if the recording began at `main`, the default of `record`. If the number of instructions is known, so is "
             "which code they were (`before.txt`): that code alone is *not observed*; else `coverage --strict` fails "
             "where own code was not observed",
             true),
    left_out(Reason::after_end, "part after the recording ended", "parts after the recording ended",
             "the recording ended earlier than the program (`ends=`, `record --limit`, `--stop-at`)", true),
    {Reason::handlers, not_traced, "exception whose handler the unit left out",
     "exceptions whose handlers the unit left out", "exception levels or filters turned trace off at an exception",
     true, false, Hides::reachable, false},
    // The user programmed the unit to trace a part, and the capture has all of that part.
    {Reason::off, not_traced, "stretch in which the unit was off", "stretches in which the unit was off",
     "filters, start/stop logic or enable bits turned trace off, and on again; or several sources have the trace of "
     "one core, each of a session",
     true, false, Hides::anything, false},
    left_out(Reason::held, "stretch in which software held trace", "stretches in which software held trace",
             "software held the trace of a DPU (TMPDIS), or turned it off (EN = 0)", true),
    {Reason::strobing, not_traced, "pause of strobing", "pauses of strobing",
     "the unit was switched on and off periodically, so the capture is a sample of the run", true, true,
     Hides::anything, true},
    left_out(Reason::filtered, "what the filter leaves out", "",
             "the unit recorded only what its filter lets pass (address filters, start and stop, SPE filters, IDFLT "
             "and modes USER and USERRAW of a DPU; an MTB records jumps, so it lacks code before the first and after "
             "the last one), or only what it was permitted to record (`not_permitted.txt`: authentication, power, OS "
             "Lock); or options select a part of the capture (`--source`, `--process`, `--only-image`, …)",
             false),
    {Reason::sampled, not_traced, "what ran between samples", "",
     "only samples were taken: one operation in an interval, the branches before a moment, or a DPU's counters now "
     "and then",
     false, true, Hides::anything, false},
    loss(Reason::overflow, Hides::reachable, "overflow", "overflows", "the unit's FIFO or buffer was full"),
    loss(Reason::packets, Hides::reachable, "stretch of damaged packets", "stretches of damaged packets",
         "bytes that are no packet, up to the next synchronisation"),
    loss(Reason::frames, Hides::reachable, "stretch of damaged frames", "stretches of damaged frames",
         "impossible frames, and packets that they cut in two"),
    // Only an ID that no source can have shows at once that bytes are missing. With another one, the bytes around them
    // have been read as one stream.
    {Reason::strays, lost, "stretch of bytes of no source", "stretches of bytes of no source",
     "bytes under trace IDs that no source has, so they are missing from the stream of another, which may have been "
     "misread there",
     true, true, Hides::anything, true},
    loss(Reason::unsynchronised, Hides::anything, "stretch before a synchronisation",
         "stretches before a synchronisation", "the trace of a source begins inside a packet"),
    {Reason::collided, lost, "stretch with collided samples", "stretches with collided samples",
     "a sample came due while the unit was busy with the preceding one, so long operations are sampled too rarely",
     true, true, Hides::anything, false},
    loss(Reason::overwritten, Hides::anything, "overwritten buffer", "overwritten buffers",
         "a buffer wrapped, so its beginning is gone"),
    loss(Reason::cut, Hides::anything, "cut or unreadable place", "cut or unreadable places",
         "a file lacks its end, or could not be read there"),
    loss(Reason::recorder, Hides::anything, "loss of the recorder", "losses of the recorder",
         "the recorder dropped trace or its own records, or read the unit before all had left it"),
    loss(Reason::silence, Hides::anything, "source that fell silent", "sources that fell silent",
         "a source ended inside a packet while others went on"),
    gap(Reason::protocol, Hides::anything, "source that is not decoded", "sources that are not decoded",
        "no decoder for the protocol of a source, or its description is missing"),
    gap(Reason::no_image, Hides::anything, "stretch without an image", "stretches without an image",
        "execution led to code without an image"),
    gap(Reason::no_address, Hides::reachable, "stretch without an address", "stretches without an address",
        "the outcomes of branches are known, but not their addresses"),
    gap(Reason::untraced_way, Hides::reachable, "stretch whose way the trace omits",
        "stretches whose way the trace omits",
        "code ran, but the trace does not state which: Q elements, a reset behind the last waypoint"),
    gap(Reason::uncommitted, Hides::reachable, "end of speculation", "ends of speculation",
        "instructions were speculative when the trace ended"),
    // With a wrong image, other code than what ran has been counted up to the place where that shows.
    {Reason::contradiction, uncertain, "contradiction", "contradictions",
     "trace and image, or two parts of the trace, contradict each other, so code that was decoded before may be other "
     "code than what ran",
     true, true, Hides::anything, true},
    // The walk is counted up to its end, though other code ran.
    {Reason::no_code, uncertain, "walk through what is no code", "walks through what is no code",
     "no branch within 64 KiB, and then no image: other code than what was decoded ran", true, true, Hides::anything,
     true},
    gap(Reason::not_kept, Hides::anything, "full table", "full tables", "the analysis met more than its tables hold"),
    doubt(Reason::shared_address, "stretch at an address of several files", "stretches at an address of several files",
          "several files were mapped at one address while it ran"),
    doubt(Reason::no_context, "stretch whose process is uncertain", "stretches whose process is uncertain",
          "the trace does not carry which process or thread ran"),
    gap(Reason::no_functions, Hides::anything, "captures without functions", "",
        "a merged file has only ranges and branches (`answers --only-ranges`), so functions, lines, calls and levels "
        "of the sum lack what ran there; ranges and exceptions do not"),
}};

constexpr bool in_order() {
    for (std::size_t i = 0; i < rules.size(); ++i)
        if (static_cast<std::size_t>(rules[i].reason) != i) return false;
    return true;
}
static_assert(in_order());

std::uint64_t sum(std::uint64_t a, std::uint64_t b) {
    return a > std::numeric_limits<std::uint64_t>::max() - b ? std::numeric_limits<std::uint64_t>::max() : a + b;
}
void add_size(std::optional<std::uint64_t>& to, const std::optional<std::uint64_t>& size) {
    to = to && size ? std::optional(sum(*to, *size)) : std::nullopt;
}

/// A row as a clause, such as `3 overflows (21 bytes)`.
std::string clause(const AccountRow& row) {
    const AccountRule& rule = account_rule(row.reason);
    std::string out = rule.many.empty() ? std::string(rule.one) : counted(row.times, rule.one, rule.many);
    std::string sizes = row.of;
    if (row.reason == Reason::before_start && row.times == 1) {
        const bool main = row.of == at_main;
        out = main ? "what ran before main, where the recording began" : "what ran before the recording began";
        if (main) sizes.clear();
    }
    const auto add = [&](const std::optional<std::uint64_t>& size, std::string_view one) {
        if (size) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", counted(*size, one));
    };
    add(row.bytes, "byte");
    add(row.instructions, "instruction");
    add(row.records, "record");
    add(row.ranges, row.reason == Reason::no_address    ? "waypoint"
                    : row.reason == Reason::uncommitted ? "P0 element"
                                                        : "range");
    return sizes.empty() ? out : fmt::format("{} ({})", out, sizes);
}

}  // namespace

std::string_view name(AccountState state) { return state_names[static_cast<std::size_t>(state)]; }

std::span<const AccountRule> account_rules() { return rules; }

const AccountRule& account_rule(AccountReason reason) { return rules[static_cast<std::size_t>(reason)]; }

void add(Account& to, AccountRow row) {
    const auto at = std::lower_bound(to.begin(), to.end(), row, [](const AccountRow& a, const AccountRow& b) {
        return std::tie(a.reason, a.of) < std::tie(b.reason, b.of);
    });
    if (at == to.end() || at->reason != row.reason || at->of != row.of) {
        to.insert(at, std::move(row));
        return;
    }
    at->times = sum(at->times, row.times);
    add_size(at->bytes, row.bytes);
    add_size(at->instructions, row.instructions);
    add_size(at->ranges, row.ranges);
    add_size(at->records, row.records);
}

void add(Account& to, const Account& other) {
    for (const AccountRow& row : other) add(to, row);
}

std::string counts_note(const Account& account) {
    const Completeness is = completeness(account);
    if (!is.estimates && !is.lower_bounds) return {};
    const std::string_view of =
        has_reason(account, Reason::no_functions) ? "the captures that have functions" : "what was decoded";
    const bool lacks_a_part = std::any_of(account.begin(), account.end(), [](const AccountRow& row) {
        return account_rule(row.reason).lowers_sums && !account_rule(row.reason).estimates;
    });
    if (is.estimates && lacks_a_part)
        return fmt::format("counts are of {}, and estimates; the rest of the run has no counts", of);
    return fmt::format("counts are of {}; as figures of the run{}", of,
                       is.estimates ? ", counts and shares are estimates" : " they are lower bounds");
}

std::string_view Completeness::word() const { return estimates ? "estimate" : lower_bounds ? "lower bound" : "exact"; }

Completeness completeness(const Account& account) {
    Completeness out;
    for (const AccountRow& row : account) {
        const AccountRule& rule = account_rule(row.reason);
        out.lower_bounds |= rule.lowers_sums;
        out.estimates |= rule.estimates;
        out.hides = std::max(out.hides, is_known_before(row) ? Hides::reachable : rule.hides);
        out.strict |= rule.strict && !(row.reason == Reason::before_start && row.of == at_main);
    }
    return out;
}

bool is_known_before(const AccountRow& row) { return row.reason == Reason::before_start && row.instructions; }

bool has_reason(const Account& account, AccountReason reason) {
    return std::any_of(account.begin(), account.end(),
                       [reason](const AccountRow& row) { return row.reason == reason; });
}

bool is_part_of_run(const Account& account) {
    return std::any_of(account.begin(), account.end(),
                       [](const AccountRow& row) { return row.reason != Reason::decoded; });
}

std::vector<std::string> account_clauses(const Account& account) {
    std::vector<std::string> out;
    for (std::size_t state = 0; state < account_states; ++state) {
        std::string parts;
        for (const AccountRow& row : account) {
            if (account_rule(row.reason).state != static_cast<AccountState>(state)) continue;
            if (row.reason == Reason::decoded)
                parts = row.instructions ? counted(*row.instructions, "instruction")
                        : row.records    ? counted(*row.records, "record")
                        : row.bytes      ? counted(*row.bytes, "byte") + " of trace"
                                         : counted(row.times, "stretch", "stretches");
            else
                parts += fmt::format("{}{}", parts.empty() ? "" : ", ", clause(row));
        }
        const bool is_observed = static_cast<AccountState>(state) == observed;
        if (!parts.empty()) out.push_back(fmt::format("{}{} {}", state_names[state], is_observed ? "" : ":", parts));
    }
    return out;
}

std::string account_sentence(const Account& account) {
    return fmt::format("{}", fmt::join(account_clauses(account), "; "));
}

bool hides_within_calls(AccountReason reason) {
    switch (reason) {
        case Reason::decoded:
        case Reason::before_start:
        case Reason::after_end:
        case Reason::overflow:
        case Reason::packets:
        case Reason::frames:
        case Reason::unsynchronised:
        case Reason::overwritten:
        case Reason::cut:
        case Reason::no_image:
        case Reason::no_functions: return false;
        default: return account_rule(reason).lowers_sums || account_rule(reason).estimates;
    }
}

bool adds_to_decoded(AccountReason reason) {
    return reason != Reason::decoded && reason != Reason::no_functions && !account_rule(reason).estimates;
}

std::string account_document() {
    std::string out =
        "# How much of the run this is\n"
        "\n"
        "A capture shows a part of what ran. The *account* of a capture states what became of the rest: a row for "
        "each\n"
        "reason, with its size where that is known (`answers::Account`, `include/waymark/answers/account.h`). Every\n"
        "command reads its statements from the account, and from nothing else: the sentence in the head of a view, "
        "the\n"
        "words *exact*, *lower bound* and *estimate*, *not observed* in place of *not executed*, and the status "
        "under\n"
        "`--strict`. Answers files contain the account, and `waymark merge` adds accounts up.\n"
        "\n"
        "This document is generated from the table that the program uses. The columns:\n"
        "\n"
        "- *counts*: what the counts of instructions, calls and costs are if a part of the run has this reason.\n"
        "- *code that was not seen*: whether it is called *not executed*, or *not observed* because it may have run.\n"
        "  From where flow was lost, the code that can be reached is known. *Not executed* is then said of other "
        "code;\n"
        "  an interrupt or a signal that came and went in what was lost may have run it all the same.\n"
        "- *lengths of calls*: whether a call that is seen whole may contain such a part.\n"
        "- *share of the run*: how much of the run a profile covers. The part adds to the whole, with its size if "
        "that\n"
        "  is known; else the share is the greatest possible one. Or the part does not change the share.\n"
        "- *`--strict`*: whether the command exits with status 1.\n"
        "\n"
        "| state | reason | meaning | counts | code that was not seen | lengths of calls | share of the run | "
        "`--strict` |\n"
        "|---|---|---|---|---|---|---|---|\n";
    for (const AccountRule& rule : rules)
        out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} |\n", name(rule.state),
                           account_reason_words[static_cast<std::size_t>(rule.reason)], rule.what,
                           Completeness{rule.lowers_sums, rule.estimates, {}, false}.word(),
                           hides_words[static_cast<std::size_t>(rule.hides)],
                           rule.estimates                    ? "estimate"
                           : hides_within_calls(rule.reason) ? "at least"
                                                             : "exact",
                           adds_to_decoded(rule.reason) ? "size, or at most" : "unchanged",
                           rule.strict ? "fails" : "passes");
    out +=
        "\n"
        "## What views and gates do\n"
        "\n"
        "Every view has the sentence of the account, or a note on standard error where its format has no place for "
        "it.\n"
        "Beside that:\n"
        "\n"
        "| view or gate | column | effect |\n"
        "|---|---|---|\n"
        "| `profile`, `branches`, `loops`, `exceptions`, `diff`, exports of costs | counts | the word beside the "
        "figures |\n"
        "| `coverage`, `branches`, exports of coverage | code that was not seen | *not executed* or *not observed*, "
        "by instruction, line and direction |\n"
        "| `coverage --fail-under` | code that was not seen | *not observed* counts as not run |\n"
        "| `coverage --strict` without `--fail-under` | code that was not seen | status 1 if the program's own code "
        "was "
        "not observed in a recording from `main` on that does not state what ran before |\n"
        "| `calls --slowest` | lengths of calls | the word beside the figures |\n"
        "| `pgo` | share of the run | `covers N %` and `at most` |\n"
        "| `--strict` of views of program flow, of `flow`, `messages` and `diff` | `--strict` | status 1 |\n"
        "| `--strict` of `spe` and `dpu` | | status 1 if the unit's own figures show a loss |\n"
        "| `doctor` | `--strict` | the capture *decodes in part*; else *nothing is wrong*, if nothing else is found |\n"
        "| `info` | `--strict` | *Nothing wrong was found*, if the capture passes |\n"
        "| exports | counts | the sentence and the word, where the format has a place for them: SQLite, CSV, JSON "
        "lines "
        "(tables `capture` and `metrics`), callgrind; the sentence alone: lcov, Cobertura, pprof, Firefox Profiler |\n"
        "| `verify`, `fleet status` | | the sentence alone: they compare and count what was decoded |\n"
        "\n"
        "A threshold (`diff --threshold`) compares what was decoded; with `--strict` it also fails where one side "
        "lacks a part.\n";
    return out;
}

}  // namespace waymark::answers
