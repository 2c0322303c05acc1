/// Prints views of answers (waymark/answers/views.h).
#pragma once

#include <cstdint>
#include <string>

#include "waymark/answers/views.h"
#include "waymark/command_line/output.h"

namespace waymark::cli {

/// Options for printing a view.
struct ViewFormat {
    std::string format = "text";
    std::uint64_t limit = 20;  ///< maximum rows of text; 0: all
    bool wide = false;         ///< text shows names in full length
    /// Maximum length of a name in text; 0: unlimited.
    [[nodiscard]] std::size_t widest() const { return wide ? 0 : 60; }
};

using listing::print_account;

/// Prints the warnings of a view's head on standard error, for output without it. `named`: with the capture's name.
/// Messages that were already printed, such as the reason why the capture could not be read to its end, are not
/// repeated.
void say_head(const answers::Answers& answers, bool named = false);

// Prints a view. Returns the exit status: `nothing` if a gate fails or there is nothing to show; standard error gives
// the reason.
[[nodiscard]] ExitStatus show(const answers::Answers& answers, const Result<answers::View>& view, const ViewFormat& how,
                              Output& out);
[[nodiscard]] ExitStatus show_diff(const answers::Answers& before, const answers::Answers& after,
                                   const answers::DiffOptions& options, const ViewFormat& how, Output& out);

}  // namespace waymark::cli
