/// Effects of a reason on single views and gates, beyond the rule of the reason (answers/account.h).
#pragma once

#include <string>
#include <string_view>

#include "waymark/answers/account.h"

namespace waymark::answers {

/// The `of` of a `before_start` row if the recording began at the program's main, so that it deliberately lacks the
/// loading of the program: --strict passes.
inline constexpr std::string_view at_main = "main";

/// Whether the row is about a part before the recording for which the recorder counted the instructions. It then also
/// knows their code (capture/ran_before.h), and only that code may be hidden.
[[nodiscard]] bool is_known_before(const AccountRow& row);

/// Whether such a place leaves no mark on the timeline, so that any call may contain one and its length is a lower
/// bound.
[[nodiscard]] bool hides_within_calls(AccountReason reason);
/// Whether code in this state adds to the decoded code, so that a profile covers less of the run. Samples stand for
/// everything that ran, and uncertain code is part of the decoded code, as are ranges without functions.
[[nodiscard]] bool adds_to_decoded(AccountReason reason);

/// How the counts of a view relate to the run, in one sentence; empty: they are exact.
[[nodiscard]] std::string counts_note(const Account& account);
/// How sums of a metric relate to the whole run: `exact`, `lower bound` or `estimate`. `counted`: every occurrence was
/// counted (Metric::exact).
[[nodiscard]] inline std::string_view word_of(const Account& account, bool counted) {
    return counted ? completeness(account).word() : "estimate";
}

}  // namespace waymark::answers
