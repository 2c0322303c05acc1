/// What single views and gates make of a reason of the account, where that is more than the rule of the reason says
/// (answers/account.h).
#pragma once

#include <string>
#include <string_view>

#include "waymark/answers/account.h"

namespace waymark::answers {

/// What a row of `before_start` is of where the recording began at the program's main, so that it lacks what loads the
/// program on purpose: --strict passes.
inline constexpr std::string_view at_main = "main";

/// The row is of a part before the recording of which the recorder counted the instructions. It then saw which code
/// they were too (capture/ran_before.h), and what the part hides is that code.
[[nodiscard]] bool is_known_before(const AccountRow& row);

/// Such a place leaves no mark on the timeline, so any call may contain one, and its length is at least what is seen.
[[nodiscard]] bool hides_within_calls(AccountReason reason);
/// What ran there adds to what was decoded, so that a profile covers less of the run. Samples stand for all that ran,
/// and what is uncertain is among what was decoded.
[[nodiscard]] bool adds_to_decoded(AccountReason reason);

/// What the counts of a view are of the run, in one sentence; empty: they are exact.
[[nodiscard]] std::string counts_note(const Account& account);
/// What sums of a metric are of the whole run: `exact`, `lower bound` or `estimate`. `counted`: each thing was counted
/// (Metric::exact).
[[nodiscard]] inline std::string_view word_of(const Account& account, bool counted) {
    return counted ? completeness(account).word() : "estimate";
}

}  // namespace waymark::answers
